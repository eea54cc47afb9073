"""A change of one note as it may be written: it reads back, its id is free, and it says where the note comes from."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from notebook_sync.errors import EditFailed, GitFailed, NotPermitted
from notebook_sync.files.edits import Edit, apply_edits
from notebook_sync.files.frontmatter import EXTERNAL, is_external, read_frontmatter, says_external
from notebook_sync.files.parse import parse
from notebook_sync.model import Note
from notebook_sync.permissions import guarded_key, guarded_names, is_private
from notebook_sync.services.core import Core
from notebook_sync.sessions import Session
from notebook_sync.store.rows import Is

# What says who made a note and whose words it holds: only the owner sets or changes it.
_ORIGIN = ("id", "created_by", "created_at", "provenance")
KEEPS_MARK = "An agent does not go back to a text without `provenance: external`"
# How a model is shown a picture that is written as a data: address.
_SHORTENED = "](…)".encode()


@dataclass(frozen=True, slots=True)
class Change:
    """What the note at `path` is to hold instead of `before`; None for a note that is not there, or is not to be.

    `action`, `section` and `reason` go into the commit and the event. `moved_from`: only the path changes, from this
    one; another change of the same call may then change the text. `is_whole`: the caller wrote the whole text, and may
    have left out the fields that say where the note comes from. `is_new`: the program wrote these fields, for a new
    note. `is_known`: the note had this text before, and gets it back as it was. `edits` are what was done to the text,
    where that is known.
    """

    path: str
    before: bytes | None
    after: bytes | None
    action: str
    section: str = ""
    reason: str = ""
    moved_from: str = ""
    is_whole: bool = False
    is_new: bool = False
    is_known: bool = False
    edits: tuple[Edit, ...] = ()


def checked(core: Core, changes: Sequence[Change], session: Session) -> list[Change]:
    """The changes as they may be written, with the fields that notes must keep. Raises EditFailed and NotPermitted."""
    return [_checked(core, each, changes, session) for each in changes]


def _checked(core: Core, change: Change, changes: Sequence[Change], session: Session) -> Change:
    path, after, zone = change.path, change.after, core.settings.timezone
    if after is None or change.moved_from:
        return change
    if session.kind != "owner":
        try:
            after = _with_origin(core, change, after)
        except NotPermitted:
            core.events.record("refused", session, path=path, operation=change.action)
            raise
    was = parse(path, change.before, timezone=zone) if change.before is not None else None
    note = parse(path, after, timezone=zone)
    known = {problem.message for problem in was.problems} if was else set()
    if change.before is not None and not change.is_known and _loses_data(change.before, after):
        reason = "`(…)` stands for a picture, whose data would be lost; change other sections, and leave its own"
        raise EditFailed(path, reason)
    for problem in note.problems:
        if problem.severe and problem.message not in known and not change.is_known:
            raise EditFailed(path, f"the new text would not be read: {problem.message}", line=problem.line)
    if note.has_own_id and (was is None or was.wanted_id != note.wanted_id):
        _require_free_id(core, note, {path for each in changes for path in (each.path, each.moved_from)})
    return replace(change, after=after)


def _loses_data(before: bytes, after: bytes) -> bool:
    """Whether a text that a model was shown without data: addresses is written back that way."""
    return after.count(_SHORTENED) > before.count(_SHORTENED) and after.count(b"data:") < before.count(b"data:")


def _require_free_id(core: Core, note: Note, paths: set[str]) -> None:
    guarded = guarded_names(core.settings.prompt).get(guarded_key(note.wanted_id), note.path)
    rows = core.index.documents.tuples(("path",), Is("id", "=", note.wanted_id))
    holders = [path for (path,) in rows if path and path not in paths and core.tree.stat(path) is not None]
    for other in ([guarded] if guarded != note.path else []) + holders:
        raise EditFailed(note.path, f"the id {note.wanted_id!r} is a name of {other}; give the note another one")


def _with_origin(core: Core, change: Change, after: bytes) -> bytes:
    """The new text with what says where the note comes from, as it was; an earlier text only keeps the mark of others.
    Raises NotPermitted where it says otherwise."""
    if change.is_known:
        if is_external(change.before or b"") and not is_external(after):
            raise NotPermitted(KEEPS_MARK)
        return after
    path, text = change.path, after.decode(errors="replace")
    now = read_frontmatter(text)
    was = now if change.is_new else read_frontmatter((change.before or b"").decode(errors="replace"))
    if was.problems:
        if (was.mark, was.source) != (now.mark, now.source) or not now.problems:
            raise NotPermitted(f"The frontmatter of {path} cannot be read; only the owner may repair it")
        return after
    has_type = is_private(path) or was.key_of("provenance") is not None
    lost = {}
    for name in (*_ORIGIN, "type") if has_type else _ORIGIN:
        old, new = (front.values.get(front.key_of(name) or name) for front in (was, now))
        if old == new or (name == "provenance" and old is None and says_external(text, now)):
            continue
        if new is not None or not change.is_whole:
            raise NotPermitted(f"{name} says where a note comes from, and only the owner changes it; leave it out")
        lost[was.key_of(name) or name] = old
    if change.before is None and not says_external(text, now) and _was_external(core, path):
        lost["provenance"] = EXTERNAL
    return apply_edits(path, after, [Edit("set_frontmatter", fields=lost)]) if lost else after


def _was_external(core: Core, path: str) -> bool:
    """Whether the last text that was at this path, where none is now, was of others."""
    with suppress(GitFailed):
        texts = (core.history.text(version.rev, path) for version in core.history.versions(path, limit=2))
        return any(raw is not None and is_external(raw) for raw in texts)
    return False
