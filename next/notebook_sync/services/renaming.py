"""Renaming a note, and what becomes of the links to it and in it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from urllib.parse import unquote

from msgspec.structs import replace

from notebook_sync.errors import NotebookError, UnsafePath, UsageError
from notebook_sync.files.frontmatter import read_frontmatter
from notebook_sync.files.names import is_note_name
from notebook_sync.files.parse import parse
from notebook_sync.files.unified import unified_diff
from notebook_sync.model import Link, Note, id_from_path
from notebook_sync.permissions import fold_name, guarded_names
from notebook_sync.services.changes import Change
from notebook_sync.services.core import Core
from notebook_sync.services.documents import may_change, note_to_change, require_base, why_not_free, written
from notebook_sync.services.lookup import BY_NAME, BY_PATH, Names, NoteName, file_names, note_names
from notebook_sync.services.results import Written
from notebook_sync.services.view import View
from notebook_sync.services.writing import Saved, save, writing
from notebook_sync.sessions import Session
from prompt.outline import Outline

_MOST_SHOWN = 10


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
    view, path, _ = note_to_change(core, session, name, "notebook_rename")
    # A folder keeps the file's name, and `.md` may be left out.
    target = core.tree.place(f"{to}{posixpath.basename(path)}" if to.endswith("/") else to)
    if not is_note_name(posixpath.basename(target)):
        target = core.tree.place(f"{target}.md")
    if target == path:
        raise UsageError(f"{path} has this path already")
    view.require("add", target, "notebook_rename")
    with nullcontext() if dry_run else writing(core, "rename"):
        before = core.tree.read(path).raw
        require_base(core, view, path, before, expected_digest)
        if taken := why_not_free(core, view, target, path):
            raise UnsafePath(target, taken)
        plan = _plan(core, view, path, target, before, links=links)
        moved = Change(target, before, before, "rename", reason=reason, moved_from=path)
        changes = [Change(each, *texts, "rename", reason=reason) for each, texts in plan.rewritten.items()]
        saved = Saved() if dry_run else save(core, [moved, *changes], session)
    after = plan.rewritten.get(target, (before, before))[1]
    done = written(core, target, before, after, saved, "dry_run" if dry_run else "renamed")
    return replace(done, changed=True, diff=plan.diff(), warnings=[*done.warnings, *plan.warnings(path, target)])


# ---- links


@dataclass(slots=True)
class _Plan:
    """What a rename does to links: by path, the texts before and after of the notes that are rewritten; and the places
    (`path:line`) of links that break."""

    rewritten: dict[str, tuple[bytes, bytes]] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    count: int = 0

    def warnings(self, path: str, target: str) -> Iterator[str]:
        """What was rewritten, and what breaks."""
        if self.count:
            yield f"{self.count} links rewritten in {len(self.rewritten)} notes"
        if self.broken:
            more = f" and {len(self.broken) - _MOST_SHOWN} more" if len(self.broken) > _MOST_SHOWN else ""
            what = "link breaks" if len(self.broken) == 1 else "links break"
            yield (
                f"{len(self.broken)} {what} by renaming {path} to {target}: "
                f"{', '.join(self.broken[:_MOST_SHOWN])}{more}; rename with links to rewrite those in notes that you "
                "may change"
            )

    def diff(self) -> str:
        """What is rewritten, as one unified diff."""
        texts = {path: [raw.decode(errors="replace") for raw in raws] for path, raws in self.rewritten.items()}
        return "".join(unified_diff(old, new, path) for path, (old, new) in texts.items())


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

    def end_of(self, link: str, source: str) -> str:
        """Where a link in the note at `source` is to lead after the move; "" where it leads nowhere."""
        return self.place_of(next(iter(self.before.find(link, source)), "")) if link else ""

    def leads_to(self, link: str, source: str, end: str, *, is_wiki: bool) -> bool:
        """Whether a link in the note that was at `source` leads to `end` after the move, and by as good a name as
        before: other programs follow no titles, and in Markdown's links no names of files."""
        was, now = self.before.ranked(link, source), self.after.ranked(link, self.place_of(source))
        worst = was[0][0] if was else BY_PATH
        worst = max(worst, BY_NAME) if is_wiki else worst
        return bool(now) and now[0][1] == end and now[0][0] <= worst


def _plan(core: Core, view: View, path: str, target: str, before: bytes, *, links: bool) -> _Plan:
    zone = core.settings.timezone
    old, new = parse(path, before, timezone=zone), parse(target, before, timezone=zone)
    known = [each for each in note_names(core, view) if each.path != path]
    files, guarded = file_names(core, view), guarded_names(core.settings.prompt)
    named = (NoteName(note.wanted_id, note.path, note.title, note.aliases) for note in (old, new))
    move = _Move(path, target, *(Names([*known, name], files, guarded) for name in named))
    plan = _Plan()
    for source in (path, *_sources(core, view, old)):
        try:
            raw = before if source == path else core.tree.read(source).raw
        except NotebookError:
            continue
        was = parse(source, raw, timezone=zone).links
        ends = [move.end_of(link.target, source) for link in was]
        lost = _lost(move, source, was, ends)
        if lost and links and may_change(core, view, source):
            rewritten = _rewritten(move, source, raw)
            now = parse(source, rewritten, timezone=zone).links
            left = _lost(move, source, now, ends) if len(now) == len(was) else lost
            if len(left) < len(lost):
                plan.rewritten[move.place_of(source)] = (raw, rewritten)
                plan.count += len(lost) - len(left)
                lost = left
        plan.broken += [f"{move.place_of(source)}:{was[number].line}" for number in lost]
    return plan


def _sources(core: Core, view: View, note: Note) -> list[str]:
    """The notes with a link that may lead to this one, by the last part of its names."""
    names = (note.path, id_from_path(note.path), note.title, note.wanted_id, *note.aliases)
    wanted = {fold_name(posixpath.basename(name)) for name in names}
    rows = core.index.documents.tuples(("path", "links"), view.whole)
    return [
        path
        for path, links in rows
        if path and path != note.path and any(fold_name(posixpath.basename(link)) in wanted for link in links)
    ]


def _lost(move: _Move, source: str, links: Sequence[Link], ends: Sequence[str]) -> list[int]:
    """The numbers of the links that do not lead to their ends after the move."""
    pairs = enumerate(zip(links, ends, strict=True))
    return [
        number
        for number, (link, end) in pairs
        if end and not move.leads_to(link.target, source, end, is_wiki=link.kind != "markdown")
    ]


def _rewritten(move: _Move, source: str, raw: bytes) -> bytes:
    """The text of the note at `source` with other targets in the links that the move breaks; labels and fragments
    stay."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return raw
    start = read_frontmatter(text).body_start
    pieces, done = [text[:start]], start
    for at, spelled, is_wiki in _sites(text[start:]):
        link = spelled if is_wiki else unquote(spelled)
        end = move.end_of(link, source)
        if end and start + at >= done and not move.leads_to(link, source, end, is_wiki=is_wiki):
            new = _respelled(move, source, link, end, is_wiki=is_wiki)
            pieces += [text[done : start + at], new or spelled]
            done = start + at + len(spelled)
    return "".join([*pieces, text[done:]]).encode()


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


def _respelled(move: _Move, source: str, link: str, end: str, *, is_wiki: bool) -> str:
    """A target of the same form that leads to `end` after the move; "" for none."""
    folder = posixpath.dirname(move.place_of(source))
    full = end if link.lower().endswith(".md") else id_from_path(end)
    if is_wiki:
        options = [full] if "/" in link else [posixpath.basename(full), full]
    elif link.startswith("/"):
        options = [f"/{full}"]
    else:
        options = [posixpath.relpath(full, folder or "."), full]
        if posixpath.normpath(link) == move.before.find(link, source)[0]:  # written from the root
            options.reverse()
    found = next((option for option in options if move.leads_to(option, source, end, is_wiki=is_wiki)), "")
    return found if is_wiki else _UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", found)


_WIKI = re.compile(r"!?\[\[\s*([^\[\]|#\n]*?)\s*(?=\\?\||#|\]\])")
_DESTINATION = r"\s*<?((?<=<)[^<>\n#?]*|[^\s<>#?]*?(?=[\s#?]|\)?\Z))"
_INLINE = re.compile(rf"\]\({_DESTINATION}")
_DEFINED = re.compile(r"^ {0,3}\[[^\]\n]+\]:\s*<?((?<=<)[^<>\n#?]*|[^\s<>#?]*)", re.MULTILINE)
_UNSAFE = re.compile(r"[\s()<>%#?\\]")
