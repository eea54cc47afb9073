"""Renaming a note, and what becomes of the links to it and in it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from msgspec.structs import replace

from notebook_sync.errors import NotebookError, UsageError
from notebook_sync.files.frontmatter import read_frontmatter
from notebook_sync.files.names import is_note_name
from notebook_sync.files.parse import parse
from notebook_sync.model import Note, id_from_path
from notebook_sync.permissions import guarded_names
from notebook_sync.services.core import Core
from notebook_sync.services.documents import may_change, note_to_change, written
from notebook_sync.services.lookup import BY_NAME, BY_PATH, Names, NoteName, file_names, note_names
from notebook_sync.services.results import Written
from notebook_sync.services.view import View
from notebook_sync.services.writing import Change, change_notes, require_base
from notebook_sync.sessions import Session
from notebook_sync.store.rows import Has, both
from notebook_sync.sync.project import name_keys
from prompt.outline import Outline

_MOST_SHOWN = 10
_RENAME = "notebook_rename"


def rename_note(
    core: Core,
    session: Session,
    name: str,
    to: str,
    *,
    links: bool,
    expected_digest: str,
    reason: str,
    dry_run: bool,
) -> Written:
    """Give a note another path, and rewrite the links that would break where `links` asks for it.

    Raises NotPermitted, UnsafePath for a path that is taken or cannot be a note's, UsageError for the same path,
    Conflict.
    """
    view, path, _ = note_to_change(core, session, name, _RENAME)
    # A folder keeps the file's name, and `.md` may be left out.
    target = core.tree.place(f"{to}{posixpath.basename(path)}" if to.endswith("/") else to)
    if not is_note_name(posixpath.basename(target)):
        target = core.tree.place(f"{target}.md")
    if target == path:
        raise UsageError(f"{path} has this path already")
    view.require("add", target, _RENAME)
    said: list[str] = []

    def plan() -> list[Change]:
        before = core.tree.read(path).raw
        require_base(view, path, before, expected_digest)
        moved = Change(target, before, before, "rename", reason=reason, moved_from=path)
        rewritten, said[:] = _with_links(core, view, moved, links=links)
        return [moved, *rewritten]

    saved = change_notes(core, session, "rename", plan, dry_run=dry_run)
    done = written(core, saved, target, "renamed")
    return replace(done, warnings=[*done.warnings, *said])


# ---- links


@dataclass(frozen=True, slots=True)
class _Move:
    """What links mean before and after a note gets another path."""

    path: str
    target: str
    before: Names
    after: Names

    def place_of(self, source: str) -> str:
        """Where a note is after the move."""
        return self.target if source == self.path else source

    def respelled(self, link: str, source: str, *, is_wiki: bool) -> str:
        """The target of a link in the note that was at `source`, so that it leads where it did: as it is if it still
        does, else another of its form, "" for none. It has to be as good a name as before: other programs follow no
        titles, and in Markdown's links no names of files."""
        was = self.before.ranked(link, source) if link else []
        if not was:
            return link
        place, end = self.place_of(source), self.place_of(was[0][1])
        worst = max(was[0][0], BY_NAME if is_wiki else BY_PATH)
        is_from_root = posixpath.normpath(link) == was[0][1]
        for option in (link, *_spellings(link, end, place, is_wiki=is_wiki, is_from_root=is_from_root)):
            now = self.after.ranked(option, place)
            if now and now[0][1] == end and now[0][0] <= worst:
                return option
        return ""


def _with_links(core: Core, view: View, moved: Change, *, links: bool) -> tuple[list[Change], list[str]]:
    """The changes of links that the move would break, where `links` asks for them; and what to say of the others."""
    path, target, raw = moved.moved_from, moved.path, moved.before or b""
    old, new = (parse(each, raw, timezone=core.settings.timezone) for each in (path, target))
    known = [each for each in note_names(core, view) if each.path != path]
    files, guarded = file_names(core, view), guarded_names(core.settings.prompt)
    named = (NoteName(note.wanted_id, note.path, note.title, note.aliases) for note in (old, new))
    move = _Move(path, target, *(Names([*known, name], files, guarded) for name in named))
    changes, broken = [], []
    for source in (path, *_sources(core, view, old)):
        try:
            before = raw if source == path else core.tree.read(source).raw
        except NotebookError:
            continue
        place, text = move.place_of(source), before.decode(errors="replace")
        may_rewrite = links and text.encode() == before and may_change(core, view, source)
        pieces, done = [], 0
        for start, end, spelled in _broken(move, source, text):
            if spelled and may_rewrite:
                pieces += [text[done:start], spelled]
                done = end
            else:
                broken.append(f"{place}:{text.count(chr(10), 0, start) + 1}")
        if pieces:
            after = "".join([*pieces, text[done:]]).encode()
            changes.append(Change(place, before, after, "rename", reason=moved.reason))
    more = f" and {len(broken) - _MOST_SHOWN} more" if len(broken) > _MOST_SHOWN else ""
    said = (
        f"links that lead nowhere after renaming {path} to {target}: {', '.join(broken[:_MOST_SHOWN])}{more}; rename "
        "with links to rewrite those in notes that you may change"
    )
    return changes, [said] if broken else []


def _sources(core: Core, view: View, note: Note) -> list[str]:
    """The notes with a link that may lead to this one, by the last part of its names."""
    keys = tuple(name_keys((note.path, note.title, note.wanted_id, *note.aliases)))
    rows = core.index.documents.tuples(("path",), both(view.whole, Has("linked", keys)))
    return sorted(path for (path,) in rows if path and path != note.path)


def _broken(move: _Move, source: str, text: str) -> Iterator[tuple[int, int, str]]:
    """Where the targets of links in the note at `source` are that the move breaks, in order, and how they are to be
    spelled; "" where nothing leads there. Labels and fragments stay."""
    start, done = read_frontmatter(text).body_start, 0
    for at, spelled, is_wiki in _sites(text[start:]):
        link = spelled if is_wiki else unquote(spelled)
        new = move.respelled(link, source, is_wiki=is_wiki)
        if new != link and start + at >= done:
            done = start + at + len(spelled)
            yield start + at, done, new if is_wiki else _UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", new)


def _sites(content: str) -> list[tuple[int, str, bool]]:
    """Where the targets of links and images are, as they are spelled, in order; True for `[[links]]`."""
    outline, sites = Outline(content), []
    for span in outline.links:
        at = content.rfind("](", span.start, span.end)
        if wiki := _WIKI.match(content, span.start):
            sites.append((wiki.start(1), wiki[1], True))
        elif at >= 0 and (inline := _INLINE.match(content, at, span.end)):
            sites.append((inline.start(1), inline[1], False))
    for block in outline.root.children:
        if block.type == "definition":
            sites += [(match.start(1), match[1], False) for match in _DEFINED.finditer(content, block.start, block.end)]
    return sorted(sites)


def _spellings(link: str, end: str, place: str, *, is_wiki: bool, is_from_root: bool) -> list[str]:
    """Targets of the form of `link` that may lead from the note at `place` to `end`."""
    full = end if link.lower().endswith(".md") else id_from_path(end)
    if is_wiki:
        options = [full] if "/" in link else [posixpath.basename(full), full]
        return [option for option in options if not _NOT_IN_WIKI.search(option)]
    if link.startswith("/"):
        return [f"/{full}"]
    options = [posixpath.relpath(full, posixpath.dirname(place) or "."), full]
    return options[::-1] if is_from_root else options


_WIKI = re.compile(r"!?\[\[\s*([^\[\]|#\n]*?)\s*(?=\\?\||#|\]\])")
_DESTINATION = r"\s*<?((?<=<)[^<>\n#?]*|[^\s<>#?]*?(?=[\s#?]|\)?\Z))"
_INLINE = re.compile(rf"\]\({_DESTINATION}")
_DEFINED = re.compile(r"^ {0,3}\[[^\]\n]+\]:\s*<?((?<=<)[^<>\n#?]*|[^\s<>#?]*)", re.MULTILINE)
_UNSAFE = re.compile(r"[\s()<>%#?\\]")
_NOT_IN_WIKI = re.compile(r"[\[\]|#^]")
