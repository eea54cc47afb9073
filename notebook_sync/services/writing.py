"""The one way by which tools change notes: checks, intent, files, index, commit, event, in this order.

All files of a call are written, or none. What fails after the files are written is a warning: nothing takes them back.
"""

from __future__ import annotations

import os
import posixpath
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import groupby

from notebook_sync import services
from notebook_sync.errors import Conflict, EditFailed, GitFailed, NotebookError, Refused, UnsafePath
from notebook_sync.files.beneath import digest_of
from notebook_sync.files.edits import Edit, apply_edits
from notebook_sync.files.frontmatter import EXTERNAL, is_external, read_frontmatter, says_external
from notebook_sync.files.git import NO_GIT, has_git
from notebook_sync.files.history import Kept
from notebook_sync.files.locks import write_lock
from notebook_sync.files.names import twin, why_not
from notebook_sync.files.parse import parse
from notebook_sync.model import Note, collection_of
from notebook_sync.permissions import guarded_key, guarded_names, guarded_paths
from notebook_sync.services.core import Core, publish_now
from notebook_sync.services.view import View
from notebook_sync.sessions import OWNER, PROGRAM, Session
from notebook_sync.store.rows import Is, Row

# What anybody may create, as far as the session allows it.
PAGES = ("pages", "code_snippets", "research_notes")
NOT_OWN = "This conversation may change only the pages that its agent created"
_ATTEMPTS = 5
_NO_HISTORY = f"{NO_GIT}: earlier texts are not kept, and nothing can be undone"
# What says who made a note and whose words it holds: only the owner sets or changes it.
_ORIGIN = ("id", "created_by", "created_at", "provenance")
# How a model is shown a picture that is written as a data: address.
_SHORTENED = "](…)".encode()


@dataclass(frozen=True, slots=True)
class Change:
    """What the note at `path` is to hold instead of `before`; None for a note that is not there, or is not to be.

    `action`, `section` and `reason` go into the commit and the event. `moved_from`: only the path changes, from this
    one; another change of the same call may then change the text. `is_whole`: the caller wrote the whole text, and may
    have left out the fields that say where the note comes from. `is_new`: the program wrote these fields, for a new
    note. `is_known`: the note had this text before, and gets it back as it was. `edits` are what was done to the text,
    where that is known. `warnings`, set by `checked`, say what the new text has that is not read as it seems.
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
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Saved:
    """What became of a call's changes, each as it was checked."""

    changes: tuple[Change, ...]
    commit: str = ""
    warnings: tuple[str, ...] = ()
    dry_run: bool = False


def change_notes(
    core: Core, session: Session, operation: str, plan: Callable[[], Sequence[Change]], *, dry_run: bool = False
) -> Saved:
    """Plan changes under the write lock and save them; with `dry_run`, only plan and check them.

    Where an editor saves one of the notes meanwhile, they are planned again, a few times. Raises what `plan` and `save`
    do.
    """
    if dry_run:
        return Saved(checked(core, plan(), session), dry_run=True)
    with writing(core, operation):
        for _ in range(_ATTEMPTS - 1):
            with suppress(Conflict):
                return save(core, plan(), session)
        return save(core, plan(), session)


@contextmanager
def writing(core: Core, operation: str) -> Iterator[None]:
    """Hold the notebook's write lock from the first read to the commit. After it is released, publish for at most a
    second, unless another process follows the notebook; that fails no write. Raises Busy."""
    with write_lock(core.place, operation):
        yield
    publish_now(core)


def save(core: Core, changes: Sequence[Change], session: Session) -> Saved:
    """Write what changes, all or nothing. The caller holds the write lock and has checked the session's permission.

    Raises Conflict where a file no longer holds its `before`, EditFailed for a text that would not read back,
    NotPermitted for a change of provenance by anybody but the owner, and what `Saver` raises.
    """
    planned = checked(core, changes, session)
    wanted = [each for each in planned if each.before != each.after or each.moved_from]
    if not wanted:
        return Saved(planned)
    if any(each.after is None for each in wanted) and not has_git():
        raise Refused(f"nothing is deleted, since {_NO_HISTORY}", next="install git")
    batch, intents = record_intents(core, wanted, session)
    warnings = _exchange(core, wanted, intents)
    warnings += _trust(core, wanted, session)
    commits, trouble = finish_writes(core)
    return Saved(planned, commits.get(batch, ""), (*warnings, *trouble))


def finish_writes(core: Core) -> tuple[dict[str, str], list[str]]:
    """Record and commit every write that is not committed yet, in order; the commits by batch, and warnings.

    What git cannot commit now is committed by the next call. The caller holds the write lock. A write that a killed
    process had not made is forgotten.
    """
    intents = core.index.intents
    rows = intents.find(order=("at", "id"), heavy=True)
    commits: dict[str, str] = {}
    warnings: list[str] = []
    for batch, group in groupby(rows, key=lambda row: row["batch"]):
        of_batch, trouble = list(group), ""
        made = [row for row in of_batch if _was_made(core, row, rows)]
        try:
            commits[batch] = _commit(core, made) if made else ""
        except (GitFailed, OSError) as error:
            trouble = str(error)
        for row in made:
            _announce(core, row, commits.get(batch, ""))
        if trouble not in ("", NO_GIT):
            return commits, [f"saved; the commit follows later: {trouble}"]
        intents.delete([row["id"] for row in of_batch])
        warnings = [_NO_HISTORY] if trouble else []
    return commits, warnings


# ---- checks


def checked(core: Core, changes: Sequence[Change], session: Session) -> tuple[Change, ...]:
    """The changes as they may be written, with the fields that notes must keep.

    Raises EditFailed for a text that would not be read back, NotPermitted for one that says that it comes from
    elsewhere, UnsafePath for a new path that is taken or cannot be a note's.
    """
    view = View(core, session)
    return tuple(_checked(core, view, each, changes) for each in changes)


def why_not_free(core: Core, view: View, path: str, besides: str = "") -> str:
    """Why a session may not give a note this new path; "" if it may. Names that a guarded file answers to are the
    owner's, and a withheld path counts as taken. `besides` is the path that the note has now."""
    if reason := why_not(path) or core.tree.why_left_out(path):
        return reason
    guarded = guarded_names(core.settings.prompt).get(guarded_key(path))
    if view.session.kind != "owner" and guarded:
        return "is a name that one of the owner's files answers to" if view.may("read", guarded) else "already exists"
    folder, name = posixpath.split(path)
    there = os.listdir(core.root / folder) if (core.root / folder).is_dir() else []  # noqa: PTH208 - names alone
    others = {each for each in there if posixpath.join(folder, each) != besides}
    if name in others or not (view.may("read", path) or view.may("add", path)):
        return "already exists"
    other = twin(name, others)
    return f"differs from {other} only in a way that some systems ignore" if other else ""


def require_base(view: View, path: str, raw: bytes, expected_digest: str) -> None:
    """Raises Conflict where the note no longer has the digest that the caller saw: with its text, unless the session
    sees only a part of it, or others wrote it."""
    if expected_digest and expected_digest != digest_of(raw):
        text = "" if view.sees_in_part(path) or is_external(raw) else raw.decode(errors="replace")
        raise Conflict(path, expected_digest, digest_of(raw), text)


def owns(core: Core, session: Session, path: str, raw: bytes) -> bool:
    """Whether a session may change this text of a note as far as it matters who made it: with `permissions.pages =
    "own"`, an agent changes only the pages that it created."""
    if session.kind == "owner" or core.settings.permissions.pages == "shared" or collection_of(path) not in PAGES:
        return True
    return parse(path, raw, timezone=core.settings.timezone).created_by == session.changed_by


def _checked(core: Core, view: View, change: Change, changes: Sequence[Change]) -> Change:
    path, before, after, zone = change.path, change.before, change.after, core.settings.timezone
    if before is not None and not owns(core, view.session, change.moved_from or path, before):
        raise view.refuse(path, change.action, NOT_OWN)
    if after is None:
        return change
    is_placed = change.moved_from or (before is None and not change.is_new)
    if is_placed and (reason := why_not_free(core, view, path, change.moved_from)):
        raise UnsafePath(path, reason)
    if change.moved_from:
        return change
    if view.session.kind != "owner" and not change.is_known:
        after = _with_origin(core, view, change, after)
    was, note = (parse(path, raw or b"", timezone=zone) for raw in (before, after))
    known = {problem.message for problem in was.problems}
    problems = [problem for problem in note.problems if problem.message not in known]
    severe = next((problem for problem in problems if problem.severe), None)
    if severe and not change.is_known:
        raise EditFailed(path, f"the new text would not be read: {severe.message}", line=severe.line)
    is_in_force = note.collection in ("runtime", "facts") or path in guarded_paths(core.settings.prompt)
    is_emptied = bool(before) and not after.decode(errors="replace").strip("\ufeff \t\r\n")
    if is_in_force and is_emptied and not change.is_known:
        raise EditFailed(
            path,
            "an empty file is taken for a damaged one: what it says now would stay",
            next="leave a heading in it, or delete the file",
        )
    if before and not change.is_known and _loses_data(before, after):
        raise EditFailed(
            path, "`(…)` is short for a picture, whose data would be lost; change other sections, and leave its own"
        )
    if note.has_own_id and was.wanted_id != note.wanted_id:
        _require_free_id(core, note, {path for each in changes for path in (each.path, each.moved_from)})
    return replace(change, after=after, warnings=tuple(f"{path}: {problem}" for problem in problems))


def _loses_data(before: bytes, after: bytes) -> bool:
    """Whether a text that a model was shown without data: addresses is written back that way."""
    return after.count(_SHORTENED) > before.count(_SHORTENED) and after.count(b"data:") < before.count(b"data:")


def _require_free_id(core: Core, note: Note, paths: set[str]) -> None:
    guarded = guarded_names(core.settings.prompt).get(guarded_key(note.wanted_id), note.path)
    rows = core.index.documents.tuples(("path",), Is("id", "=", note.wanted_id))
    holders = [path for (path,) in rows if path and path not in paths and core.tree.stat(path) is not None]
    for other in ([guarded] if guarded != note.path else []) + holders:
        raise EditFailed(note.path, f"the id {note.wanted_id!r} is a name of {other}; give the note another one")


def _with_origin(core: Core, view: View, change: Change, after: bytes) -> bytes:
    """The new text with what says where the note comes from, as it was. Raises NotPermitted where it says otherwise."""
    path, text = change.path, after.decode(errors="replace")
    now = read_frontmatter(text)
    before = text if change.is_new else (change.before or b"").decode(errors="replace")
    was = read_frontmatter(before)
    if was.problems:
        is_kept = now.problems and before[: was.body_start] == text[: now.body_start]
        if not is_kept or (says_external(before, was) and not says_external(text, now)):
            raise view.refuse(
                path, change.action, f"The frontmatter of {path} cannot be read; only the owner may repair it"
            )
    lost = {}
    for name in _ORIGIN:
        old, new = (front.values.get(front.key_of(name) or name) for front in (was, now))
        if old == new or (name == "provenance" and old is None and says_external(text, now)):
            continue
        if new is not None or not change.is_whole:
            raise view.refuse(
                path,
                change.action,
                f"{name} says where a note comes from, and only the owner changes it; leave it out",
            )
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


# ---- intent, files, index


def record_intents(core: Core, changes: Sequence[Change], session: Session) -> tuple[str, list[str]]:
    """Record what is going to be written; the batch and the ids of its rows. What is purged is not kept."""
    batch, now = secrets.token_hex(8), core.now()
    rows: list[Row] = [
        {
            "id": f"{batch}:{number:05}",
            "path": change.path,
            "batch": batch,
            "base": digest_of(change.before),
            "digest": digest_of(change.after),
            "moved_from": change.moved_from,
            "session": session.kind,
            "agent": session.agent,
            "action": change.action,
            "section": change.section,
            "reason": change.reason,
            "at": now,
            "new": change.after,
            "old": None if change.action == "purge" else change.before,
        }
        for number, change in enumerate(changes)
    ]
    with core.index.write(durable=True):
        core.index.intents.put(rows)
    return batch, [row["id"] for row in rows]


def _exchange(core: Core, changes: Sequence[Change], intents: Sequence[str]) -> list[str]:
    """Write all files, or put back those that were written and forget the intents; warnings of the index.

    The index follows a move before the text changes: it knows a moved note by its bytes.
    """
    done: list[Change] = []
    warnings: list[str] = []
    moves = [each for each in changes if each.moved_from]
    for part in filter(None, (moves, [each for each in changes if not each.moved_from])):
        try:
            for change in part:
                write_one(core, change)
                done.append(change)
        except BaseException as error:
            for change in reversed(done):
                _put_back(core, change)
            core.index.intents.delete(intents)
            _look(core, done)
            if isinstance(error, Conflict):
                # The text may not be the session's to read: `require_base` decides that.
                error.fields = {**error.fields, "text": ""}
            raise
        warnings += _look(core, part)
    return warnings


def write_one(core: Core, change: Change) -> None:
    """Write the file of a change. Raises what `Saver` does."""
    saver, base = core.saver, digest_of(change.before)
    if change.moved_from:
        saver.rename(change.moved_from, change.path, base)
    elif change.after is None:
        saver.delete(change.path, base)
    elif change.before is None:
        saver.create(change.path, change.after)
    else:
        saver.replace(change.path, change.after, base)


def _put_back(core: Core, change: Change) -> None:
    """Undo one write; what somebody has built on it meanwhile stays, and an event says so."""
    left = change.path if change.moved_from else ""
    try:
        write_one(core, Change(change.moved_from or change.path, change.after, change.before, "", moved_from=left))
    except NotebookError as error:
        core.events.record("trouble", OWNER, path=change.path, reason=f"could not be put back: {error}")


def _look(core: Core, changes: Iterable[Change]) -> list[str]:
    paths = {path for change in changes for path in (change.path, change.moved_from) if path}
    try:
        report = core.writer.look(paths)
    except NotebookError as error:
        return [f"saved; the index follows with the next sync: {error}"]
    return [*(f"{each['path']}: {each['error']}" for each in report.failed), *report.warnings]


# ---- trust, commit, event


def _trust(core: Core, changes: Sequence[Change], session: Session) -> list[str]:
    """Trust what the owner wrote, where the prompt shows only trusted text; going back and renaming trust nothing."""
    if session.kind != "owner" or core.settings.prompt.trust == "files":
        return []
    try:
        for each in changes:
            if each.action not in ("undo", "rename", "rollback"):
                services.trust.trust_edit(core, session, each.path, each.before, each.after, each.edits)
    except GitFailed as error:
        return [f"saved; it waits for trust, since git failed: {error.message}"]
    return []


def kept_text(
    core: Core, path: str, raw: bytes | None, action: str = "", section: str = "", reason: str = "", old: str = ""
) -> Kept:
    """What git is to keep, apart where it waits for the owner's trust: the user's repository must not have it yet."""
    asks = core.settings.prompt.trust == "committed"
    return Kept(path, raw, action, section, reason, old, apart=asks and not services.trust.is_trusted(core, path, raw))


def _was_made(core: Core, row: Row, rows: Sequence[Row]) -> bool:
    """Whether the files had what the intent says: the index, the file or a later write knows it."""
    if row["applied"] or any(other["path"] == row["path"] and other["base"] == row["digest"] != "" for other in rows):
        return True
    try:
        return digest_of(core.tree.read(row["path"]).raw) == str(row["digest"])
    except NotebookError:
        return not row["digest"] and core.tree.stat(row["path"]) is None


def _commit(core: Core, rows: Sequence[Row]) -> str:
    """Commit what the files held before, where the last commit does not have it, then what the rows wrote."""
    begun = {row["path"] for row in rows if row["moved_from"]}
    found = [
        kept_text(core, row["moved_from"] or row["path"], row["old"])
        for row in rows
        if row["old"] is not None and (row["moved_from"] or row["path"] not in begun)
    ]
    fields = ("action", "section", "reason", "moved_from")
    kept = [kept_text(core, row["path"], row["new"], *(row[name] for name in fields)) for row in rows]
    return core.history.keep(kept, _session_of(rows[0]), found=found) or ""


def _session_of(row: Row) -> Session:
    return PROGRAM if row["agent"] == PROGRAM.agent else Session.named(row["session"], row["agent"])


def _announce(core: Core, row: Row, commit: str) -> None:
    """Record the event of a write, once."""
    fields = {name: row[name] for name in ("action", "section", "reason", "base", "digest", "moved_from")}
    core.events.record("edit", _session_of(row), path=row["path"], key=row["id"], commit=commit, **fields)
