"""What a note said and where it was: its versions, the difference to now, going back by a new edit, and renaming.

Git knows the texts, and the events know which notes one call changed together.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC
from functools import partial
from typing import Literal, NamedTuple
from urllib.parse import unquote

from msgspec.structs import replace

from notebook_sync.errors import EditFailed, NoSuchNote, NotebookError, NotFound, UsageError
from notebook_sync.files.beneath import digest_of
from notebook_sync.files.edits import unified_diff
from notebook_sync.files.fields import read_fields
from notebook_sync.files.frontmatter import EXTERNAL, is_external, read_frontmatter
from notebook_sync.files.history import Version, summary_of
from notebook_sync.files.names import is_note_name
from notebook_sync.files.parse import parse
from notebook_sync.model import Note, id_from_path
from notebook_sync.permissions import channel_of, guarded_names
from notebook_sync.registry import Results
from notebook_sync.services.core import Core
from notebook_sync.services.documents import may_change, note_to_change, require_change, written
from notebook_sync.services.results import Difference, Written
from notebook_sync.services.view import (
    BY_NAME,
    BY_PATH,
    Names,
    NoteName,
    View,
    file_names,
    linked_where,
    named,
    note_names,
    resolve,
    split_name,
)
from notebook_sync.services.writing import Change, change_notes, require_base
from notebook_sync.sessions import Session
from notebook_sync.store.rows import Is, both
from notebook_sync.sync.apply import changed_by
from notebook_sync.sync.project import name_keys
from prompt.outline import Outline

# How far back an earlier text is looked for: many commits may leave a note as it is.
_FARTHEST = 200
# So many broken links are named.
_MOST_SHOWN = 10
_UNDO, _HISTORY, _RENAME = "notebook_undo", "notebook_history", "notebook_rename"
_OWN_ONLY = "An agent goes back over its own changes only"


def list_versions(core: Core, session: Session, name: str, limit: int) -> Results[Version]:
    """The versions of a note, the newest first. Raises GitFailed where git is missing or fails."""
    view, path = _past_path(core, session, name, _HISTORY)
    provenance = EXTERNAL if is_external(_bytes_at(core, path) or b"") else ""
    versions = core.history.versions(path, limit=limit, may=partial(view.may, "read"))
    return Results([replace(each, provenance=provenance) for each in versions])


def compare_versions(core: Core, session: Session, name: str, since: str, until: str) -> Difference:
    """What changed from one version of a note to another. Raises NotFound for a `rev` that the note does not have."""
    view, path = _past_path(core, session, name, _HISTORY)
    now = _at_rev(core, view, path, until)[1] if until else _bytes_at(core, path)
    past = iter([_at_rev(core, view, path, since)]) if since else _past(core, view, path)
    found = next((each for each in past if since or each[1] not in (None, now)), None)
    before, rev = (found[1], found[0].rev) if found else (now, "")
    raws = [raw or b"" for raw in (before, now)]
    old, new = (raw.decode(errors="replace") for raw in raws)
    provenance = EXTERNAL if any(map(is_external, raws)) else ""
    return Difference(path=path, since=rev, until=until, diff=unified_diff(old, new, path), provenance=provenance)


def undo_change(core: Core, session: Session, name: str, *, rev: str, expected_digest: str, dry_run: bool) -> Written:
    """Go back to the last text that differs, or to `rev`, by a new edit; never deletes.

    Raises EditFailed where there is nothing to go back to, NotFound for an unknown `rev`, NotPermitted, Conflict.
    """
    view, path = _past_path(core, session, name, _UNDO)

    def plan() -> list[Change]:
        require_change(core, view, path, _UNDO)
        require_base(view, path, _bytes_at(core, path) or b"", expected_digest)
        together = [] if rev else _batch_back(core, view, path)
        return together or [_back(core, view, path, path, rev)]

    saved = change_notes(core, session, "undo", plan, dry_run=dry_run)
    end = next(each.path for each in saved.changes if path in (each.path, each.moved_from))
    return written(core, saved, end, "updated")


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


# ---- going back


def _back(core: Core, view: View, path: str, to: str, rev: str = "") -> Change:
    """The change of a note, which is to be at `to`, to the last text that differs from now, or to that of `rev`."""
    session, now = view.session, _bytes_at(core, path)
    passed: list[tuple[Version, bytes | None]] = []
    wanted = _version(core, view, path, rev).rev if rev else ""
    for version, raw in _past(core, view, path):
        if version.rev == wanted if rev else raw not in (None, now):
            break
        passed.append((version, raw))
    else:
        raise EditFailed(path, "no earlier text is known", next="see: notebook-sync history")
    if raw is None:
        raise NotFound("version with a text", rev, next="see: notebook-sync history")
    if channel_of(version.path) not in (None, channel_of(to)):
        raise EditFailed(path, f"what it said at {version.path} is not for all who may read it here")
    if session.kind != "owner":
        own = (session.kind, session.changed_by)
        makers = {(version.session, version.changed_by) for version, _ in passed}
        if makers != {own} or all(text != now for _, text in passed):
            raise view.refuse(path, _UNDO, _OWN_ONLY)
        if not is_external(raw) and any(is_external(text) for _, text in passed if text):
            raise view.refuse(path, _UNDO, "An agent does not go back to a text without `provenance: external`")
    return Change(to, now, raw, "undo", is_known=True)


def _batch_back(core: Core, view: View, path: str) -> list[Change]:
    """The changes that take back the last call that wrote the note, where it changed several notes or moved this one,
    and none of them was changed since; else none. What the call created stays."""
    events, session = core.index.events, view.session
    last = events.find(both(Is("kind", "=", "edit"), Is("path", "=", path)), order=("-id",), limit=1)
    batch = last[0]["key"].partition(":")[0] if last else ""
    rows = events.find(both(Is("key", ">=", f"{batch}:"), Is("key", "<", f"{batch};")), order=("key",))
    moved = {row["path"]: row["fields"]["moved_from"] for row in rows if row["fields"]["moved_from"]}
    ends = {row["path"]: row["fields"]["digest"] for row in rows}
    is_one = len(rows) < 2 and not moved
    if is_one or any(digest_of(_bytes_at(core, each)) != digest for each, digest in ends.items()):
        return []
    if session.kind != "owner" and {(row["session"], row["agent"]) for row in rows} != {(session.kind, session.agent)}:
        raise view.refuse(path, _UNDO, _OWN_ONLY)
    back: list[Change] = []
    for each in ends:
        require_change(core, view, each, _UNDO)
    for each, old in moved.items():
        view.require("add", old, _UNDO)
        now = _bytes_at(core, each)
        back.append(Change(old, now, now, "undo", moved_from=each))
    changed = [row["path"] for row in rows if row["fields"]["base"] not in ("", row["fields"]["digest"])]
    return back + [_back(core, view, each, moved.get(each, each)) for each in changed]


# ---- the past of one note


def _past_path(core: Core, session: Session, name: str, operation: str) -> tuple[View, str]:
    """The session's view, and the path of a note that is there or was: named as any note, or by the path or the id that
    it had.

    Raises NotPermitted where the session sees only a part of the note, NoSuchNote.
    """
    view = View(core, session)
    try:
        path, _ = resolve(core, view, name, operation=operation)
    except NoSuchNote:
        place = core.tree.place(split_name(name)[0])
        ended = core.index.documents.ended(Is("id", "in", [split_name(name)[0], id_from_path(place)]))
        paths = (place, f"{place}.md", *(row["path"] or "" for row in ended))
        found = next((each for each in paths if _is_gone(core, view, each)), None)
        if found is None:
            raise
        path = found
    if view.sees_in_part(path):
        raise view.refuse(
            path,
            operation,
            f"This conversation sees a part of {path}, and what the file said before is only for its owner",
            "read the note as it is now, or ask the owner to look at its history",
        )
    return view, path


def _is_gone(core: Core, view: View, path: str) -> bool:
    """Whether a note that the session may read was at this path, where none is now."""
    if not is_note_name(path.rpartition("/")[2]) or not view.may("read", path) or core.tree.stat(path) is not None:
        return False
    return next(_past(core, view, path), None) is not None


def _bytes_at(core: Core, path: str) -> bytes | None:
    try:
        return core.tree.read(path).raw
    except NoSuchNote:
        return None


def _past(core: Core, view: View, path: str) -> Iterator[tuple[Version, bytes | None]]:
    """The versions of a note and their texts, the newest first; those that wait for their commit included."""
    for row in core.index.intents.find(Is("path", "=", path), order=("-at",), heavy=True):
        waiting = Version(
            rev="",
            at=row["at"],
            changed_by=changed_by(row),
            session=row["session"],
            reason=row["reason"],
            path=path,
            summary=summary_of(row["action"], row["section"]),
        )
        yield waiting, row["new"]
        if row["old"] is not None:
            yield replace(waiting, changed_by="owner", session="", reason="", summary=""), row["old"]
    for version in core.history.versions(path, limit=_FARTHEST, may=partial(view.may, "read")):
        yield version, core.history.text(version.rev, version.path)


def _at_rev(core: Core, view: View, path: str, rev: str) -> tuple[Version, bytes | None]:
    """The version whose `rev` begins so, and its text. Raises NotFound for none or several."""
    version = _version(core, view, path, rev)
    return version, core.history.text(version.rev, version.path)


def _version(core: Core, view: View, path: str, rev: str) -> Version:
    versions = core.history.versions(path, limit=_FARTHEST, may=partial(view.may, "read"))
    found = [version for version in versions if rev and version.rev.startswith(rev)]
    if len(found) != 1:
        what, revs = "single version" if found else "version", tuple(version.rev for version in found)
        raise NotFound(what, rev, candidates=revs, next="see: notebook-sync history")
    return found[0]


# ---- links to a note that is renamed, and in it

# `field`: the name of a note in `superseded_by` or `supersedes`.
_Form = Literal["wiki", "markdown", "field"]
_REPLACEMENTS = ("superseded_by", "supersedes")
# What no link of a form can say; in Markdown it is escaped.
_UNSAYABLE: Mapping[_Form, re.Pattern[str]] = {
    "wiki": re.compile(r"[\[\]|#^]"),
    "markdown": re.compile("\n"),
    "field": re.compile(r"[^\w ./+()-]"),
}
_WIKI = re.compile(r"!?\[\[\s*([^\[\]|#\n]*?)\s*(?=\\?\||#|\]\])")
_DESTINATION = r"\s*<?((?<=<)[^<>\n#?]*|[^\s<>#?]*?(?=[\s#?]|\)?\Z))"
_INLINE = re.compile(rf"\]\({_DESTINATION}")
_DEFINED = re.compile(r"^ {0,3}\[[^\]\n]+\]:\s*<?((?<=<)[^<>\n#?]*|[^\s<>#?]*)", re.MULTILINE)
_ESCAPED = re.compile(r"[\s()<>%#?\\]")


class _Move(NamedTuple):
    """What links mean before and after a note gets another path."""

    path: str
    target: str
    before: Names
    after: Names

    def place_of(self, source: str) -> str:
        """Where a note is after the move."""
        return self.target if source == self.path else source

    def respelled(self, link: str, source: str, form: _Form) -> str:
        """The target of a link in the note that was at `source`, so that it leads where it did: as it is if it still
        does, else another of its form, "" for none. It has to be as good a name as before: other programs follow no
        titles, and in Markdown's links no names of files."""
        was = self.before.ranked(link, source) if link else []
        if not was:
            return link
        place, end = self.place_of(source), self.place_of(was[0][1])
        full = end if link.lower().endswith(".md") else id_from_path(end)
        near = full if "/" in link else posixpath.basename(full)
        if form == "markdown":
            near = posixpath.relpath(full, posixpath.dirname(place) or ".")
        options = [f"/{full}"] if link.startswith("/") else [near, full]
        worst = max(was[0][0], BY_PATH if form == "markdown" else BY_NAME)
        for option in (link, *(each for each in options if not _UNSAYABLE[form].search(each))):
            now = self.after.ranked(option, place)
            if now and now[0][1] == end and now[0][0] <= worst:
                return option
        return ""


def _with_links(core: Core, view: View, moved: Change, *, links: bool) -> tuple[list[Change], list[str]]:
    """The changes of links that the move would break, where `links` asks for them; and what to say of the others."""
    path, target, raw = moved.moved_from, moved.path, moved.before or b""
    old, new = (parse(each, raw, timezone=core.settings.timezone) for each in (path, target))
    keys = name_keys((path, old.title, old.wanted_id, *old.aliases))
    linking = core.index.documents.tuples(("path",), linked_where(view, path, keys))
    sources = {path: raw}
    for source in sorted(each for (each,) in linking):
        with suppress(NotebookError):
            sources[source] = core.tree.read(source).raw
    move = _Move(path, target, *_names_around(core, view, (old, new), sources.values()))
    changes, broken = list[Change](), list[tuple[str, int]]()
    for source, before in sources.items():
        place, text = move.place_of(source), before.decode(errors="replace")
        may_rewrite = links and text.encode() == before and may_change(core, view, source)
        for start, end, spelled in reversed([*_broken(move, source, text)]):
            if spelled and may_rewrite:
                text = text[:start] + spelled + text[end:]
            else:
                broken.append((place, text.count("\n", 0, start) + 1))
        if may_rewrite and text.encode() != before:
            changes.append(Change(place, before, text.encode(), "rename", reason=moved.reason))
    shown = ", ".join(f"{place}:{line}" for place, line in sorted(broken)[:_MOST_SHOWN])
    more = f" and {len(broken) - _MOST_SHOWN} more" if len(broken) > _MOST_SHOWN else ""
    said = (
        f"links that lead nowhere after renaming {path} to {target}: {shown}{more}; rename with links to rewrite those "
        "in notes that you may change"
    )
    return changes, [said] if broken else []


def _names_around(core: Core, view: View, moved: Sequence[Note], raws: Iterable[bytes]) -> list[Names]:
    """What names mean with each form of a note that is moved: the names of links in some texts, and those that the
    notes which they lead to have as files."""
    paths, texts = {note.path for note in moved}, (raw.decode(errors="replace") for raw in raws)
    links = {spelled for text in texts for _, spelled, _ in _sites(text)}
    names = paths | links | set(map(unquote, links))
    names |= {each.path for each in note_names(core, view, named(names))}
    known = [each for each in note_names(core, view, named(names)) if each.path not in paths]
    files, guarded = file_names(core, view), guarded_names(core.settings.prompt)
    own = (NoteName(note.wanted_id, note.path, note.title, note.aliases) for note in moved)
    return [Names([*known, each], files, guarded) for each in own]


def _broken(move: _Move, source: str, text: str) -> Iterator[tuple[int, int, str]]:
    """Where the targets of links in the note at `source` are that the move breaks, in order, and how they are to be
    spelled; "" where nothing leads there. Labels and fragments stay."""
    done = 0
    for start, spelled, form in _sites(text):
        link = unquote(spelled) if form == "markdown" else spelled
        new = move.respelled(link, source, form)
        if new != link and start >= done:
            done = start + len(spelled)
            escaped = _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", new)
            yield start, done, escaped if form == "markdown" else new


def _sites(text: str) -> list[tuple[int, str, _Form]]:
    """Where the targets of links and images are in a note, as they are spelled, in order."""
    front, sites = read_frontmatter(text), list[tuple[int, str, _Form]]()
    said, above = read_fields(front, "pages", UTC)[0], text.find(front.source)
    for name in _REPLACEMENTS:
        if name in said:
            place = front.places[front.key_of(name) or name]
            at, end = above + place.value.start_mark.index, above + place.end.index
            for each in [said[name]] if isinstance(said[name], str) else said[name]:
                target = each.partition("#")[0].strip()
                at = text.find(target, at, end)
                if target and at >= 0:
                    sites.append((at, target, "field"))
                    at += len(target)
    outline, start = Outline(text[front.body_start :]), front.body_start
    for span in outline.links:
        at = outline.text.rfind("](", span.start, span.end)
        if wiki := _WIKI.match(outline.text, span.start):
            sites.append((start + wiki.start(1), wiki[1], "wiki"))
        elif at >= 0 and (inline := _INLINE.match(outline.text, at, span.end)):
            sites.append((start + inline.start(1), inline[1], "markdown"))
    for block in outline.root.children:
        if block.type == "definition":
            defined = _DEFINED.finditer(outline.text, block.start, block.end)
            sites += [(start + match.start(1), match[1], "markdown") for match in defined]
    return sorted(sites)
