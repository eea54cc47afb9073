"""The one way by which tools change notes: intent, files, index, commit, event, in this order.

All files of a call are written, or none. What fails after the files are written is a warning: nothing takes them back.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import groupby

from notebook_sync.errors import Conflict, GitFailed, NotebookError, Refused
from notebook_sync.files.frontmatter import is_external
from notebook_sync.files.git import NO_GIT
from notebook_sync.files.history import Kept
from notebook_sync.files.locks import write_lock
from notebook_sync.services.changes import Change, checked
from notebook_sync.services.core import Core
from notebook_sync.services.view import View
from notebook_sync.sessions import OWNER, PROGRAM, Session
from notebook_sync.store.rows import Is, Row

_PUBLISH_SECONDS = 1.0
_NO_HISTORY = f"{NO_GIT}: earlier texts are not kept, and nothing can be undone"


@dataclass(frozen=True, slots=True)
class Saved:
    """What became of a call's changes: by path, what is written now, and the version as the index counts it."""

    commit: str = ""
    texts: Mapping[str, bytes | None] = field(default_factory=dict)
    versions: Mapping[str, int | None] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@contextmanager
def writing(core: Core, operation: str) -> Iterator[None]:
    """Hold the notebook's write lock from the first read to the commit. After it is released, publish for at most a
    second, unless another process follows the notebook; that fails no write. Raises Busy."""
    with write_lock(core.place, operation):
        yield
    if core.settings.mirror.url or core.settings.refs.url:
        core.publisher.publish_inline(_PUBLISH_SECONDS)


def digest_of(raw: bytes | None) -> str:
    """SHA-256 of the bytes in hex, "" for no file."""
    return "" if raw is None else sha256(raw).hexdigest()


def save(core: Core, changes: Sequence[Change], session: Session) -> Saved:
    """Write what changes, all or nothing. The caller holds the write lock and has checked the session's permission.

    Raises Conflict where a file no longer holds its `before`, EditFailed for a text that would not read back,
    NotPermitted for a change of provenance by anybody but the owner, and what `Saver` raises.
    """
    wanted = [each for each in checked(core, changes, session) if each.before != each.after or each.moved_from]
    if not wanted:
        return Saved()
    if any(each.after is None for each in wanted) and core.history.can_commit() == NO_GIT:
        raise Refused(f"nothing is deleted, since {_NO_HISTORY}", next="install git")
    batch, intents = _record(core, wanted, session)
    warnings = _exchange(core, wanted, session, intents)
    warnings += _trust(core, wanted, session)
    commits, trouble = finish_writes(core)
    paths = tuple(each.path for each in wanted)
    versions = dict(core.index.documents.tuples(("path", "version"), Is("path", "in", paths)))
    texts = {each.path: each.after for each in wanted}
    return Saved(commits.get(batch, ""), texts, versions, (*warnings, *trouble))


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


# ---- intent, files, index


def without_hidden(core: Core, session: Session, error: BaseException) -> BaseException:
    """The error, without the text of a note that the session may not read whole, or that others wrote."""
    if isinstance(error, Conflict) and error.text:
        view = View(core, session)
        is_seen = view.may("read", error.path) and not view.sees_in_part(error.path)
        if not is_seen or is_external(error.text.encode()):
            return Conflict(error.path, error.base, error.current_digest)
    return error


def _record(core: Core, changes: Sequence[Change], session: Session) -> tuple[str, list[str]]:
    """Record what is going to be written; the batch and the ids of its rows."""
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
            "old": change.before,
        }
        for number, change in enumerate(changes)
    ]
    with core.index.write(durable=True):
        core.index.intents.put(rows)
    return batch, [row["id"] for row in rows]


def _exchange(core: Core, changes: Sequence[Change], session: Session, intents: Sequence[str]) -> list[str]:
    """Write all files, or put back those that were written and forget the intents; warnings of the index.

    The index follows a move before the text changes: it knows a moved note by its bytes.
    """
    done: list[Change] = []
    warnings: list[str] = []
    moves = [each for each in changes if each.moved_from]
    for part in filter(None, (moves, [each for each in changes if not each.moved_from])):
        first = len(done)
        try:
            for change in part:
                _write_one(core, change)
                done.append(change)
        except BaseException as error:
            for change in reversed(done):
                _put_back(core, change)
            core.index.intents.delete(intents)
            _look(core, done)
            raise without_hidden(core, session, error) from None
        warnings += _look(core, done[first:])
    return warnings


def _write_one(core: Core, change: Change) -> None:
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
        _write_one(core, Change(change.moved_from or change.path, change.after, change.before, "", moved_from=left))
    except NotebookError as error:
        core.events.record("trouble", OWNER, path=change.path, reason=f"could not be put back: {error}")


def _look(core: Core, changes: Iterable[Change]) -> list[str]:
    paths = {path for change in changes for path in (change.path, change.moved_from) if path}
    if not paths:
        return []
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
    from notebook_sync.services.trust import trust_edit  # loads the prompt's parts, which few notebooks need here

    try:
        for each in changes:
            if each.action not in ("undo", "rename"):
                trust_edit(core, session, each.path, each.before, each.after, each.edits)
    except GitFailed as error:
        return [f"saved; it waits for trust, since git failed: {error.message}"]
    return []


def _kept(core: Core, kept: Kept) -> Kept:
    """What git is to keep, apart where it waits for the owner's trust: the user's repository must not have it yet."""
    if core.settings.prompt.trust == "files":
        return kept
    from notebook_sync.services.trust import is_trusted

    return replace(kept, apart=not is_trusted(core, kept.path, kept.raw))


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
        _kept(core, Kept(row["moved_from"] or row["path"], row["old"]))
        for row in rows
        if row["old"] is not None and (row["moved_from"] or row["path"] not in begun)
    ]
    fields = ("action", "section", "reason", "moved_from")
    kept = [_kept(core, Kept(row["path"], row["new"], *(row[name] for name in fields))) for row in rows]
    return core.history.keep(kept, _session_of(rows[0]), found=found) or ""


def _session_of(row: Row) -> Session:
    return PROGRAM if row["agent"] == PROGRAM.agent else Session.named(row["session"], row["agent"])


def _announce(core: Core, row: Row, commit: str) -> None:
    """Record the event of a write, once; one more at the path that a note left."""
    session = _session_of(row)
    names = ("action", "section", "reason", "base", "digest", "moved_from")
    fields = {name: row[name] for name in names}
    core.events.record("edit", session, path=row["path"], key=row["id"], commit=commit, **fields)
    if row["moved_from"]:
        left = {"action": row["action"], "moved_to": row["path"], "commit": commit}
        core.events.record("edit", session, path=row["moved_from"], key=f"{row['id']}:left", **left)
