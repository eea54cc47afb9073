"""Checkpoints, and going back to one: what the stream and long-term memory held, and what the notes said.

Before anything is restored, the present state is saved in the same way, so that another rollback takes this one back.
What was logged since then stays. A checkpoint lists no private note, since it is published.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any

import msgspec

from notebook_sync.errors import GitFailed, NotebookError, NotFound, UsageError
from notebook_sync.files.history import Snapshot, unseen_notes
from notebook_sync.files.names import is_announced
from notebook_sync.registry import Result, Results
from notebook_sync.services.core import Core, publish_now
from notebook_sync.services.stream import hear
from notebook_sync.services.view import View
from notebook_sync.services.writing import Change, Saved, change_notes, why_not_free
from notebook_sync.sessions import Session
from notebook_sync.store.others import Heard, id_of, raw_of
from notebook_sync.store.redis import RedisTarget, line_of, row_of_line
from notebook_sync.store.rows import Is, Row, from_milliseconds, to_milliseconds

DAYS, MOST = 7, 50
_SHORTEST, _MOST_NAMED, _LONGEST_NAME = 4, 5, 200
_FARTHEST = timedelta(days=400)  # lines before that stay
# A checkpoint may wait longer for Redis than a question.
_HEAR_SECONDS = 2.0
_OF_NOTE = ("path", "id", "collection", "version", "digest")

# What lines say, by day and id; the day of long-term memory is "".
_Lines = dict[tuple[str, str], Any]


class Checkpoint(Result, frozen=True, kw_only=True):
    """A saved state. `commit` has the files, in the private history; "" where they are not saved, and for agents.
    `warnings` say what could not be saved."""

    id: str
    name: str
    at: datetime
    created_by: str
    commit: str
    warnings: list[str]


class FileChange(Result, frozen=True, kw_only=True):
    """What a rollback does to a file: created, updated or deleted."""

    path: str
    change: str


class Rollback(Result, frozen=True, kw_only=True):
    """What a rollback did, or would do (`status` "dry_run").

    `before` is the checkpoint of the state before: roll back to it to undo this. Entries of the stream and of long-term
    memory came back (`restored`) or went (`removed`), those of other programs in Redis included. `files` are the notes
    written or deleted in `commit`.
    """

    status: str
    id: str
    before: str
    restored: int
    removed: int
    files: list[FileChange]
    commit: str
    warnings: list[str]


class _Body(msgspec.Struct, frozen=True):
    """What a checkpoint holds of databases, as it is published: lines by day, those of other programs behind ours;
    long-term memory; the notes. `theirs` are the ids of what is of other programs, None where Redis was not heard."""

    daily: dict[str, list[Any]]
    longterm: list[dict[str, Any]]
    notebook: list[dict[str, Any]]
    theirs: list[str] | None = None


def take_checkpoint(core: Core, session: Session, name: str) -> Checkpoint:
    """Save the present state. Raises UsageError for a name of more than one line."""
    name = " ".join(name.split())
    if len(name) > _LONGEST_NAME or not name.isprintable():
        raise UsageError(f"a checkpoint's name is one line of at most {_LONGEST_NAME} characters")
    heard, body = _state(core)
    row, warnings = _keep(core, session, name, body)
    publish_now(core)
    core.events.record("checkpoint", session, checkpoint=row["id"])
    return _checkpoint(session, row, [heard.trouble, *warnings])


def list_checkpoints(core: Core, session: Session) -> Results[Checkpoint]:
    """The checkpoints, the latest first."""
    return Results([_checkpoint(session, row) for row in core.index.checkpoints.find(order=("-at",))])


def roll_back(core: Core, session: Session, id: str, *, files: bool, dry_run: bool) -> Rollback:
    """Restore what a checkpoint holds, with `files` the notes too, all of them or none.

    Raises NotFound; UsageError where it has no files; what `save` raises: nothing was restored then.
    """
    target = _find(core, id)
    then, id, name = _body_of(target), target["id"], target["name"] or target["id"]
    if not then.daily:
        raise UsageError(f"the checkpoint {id} was made by another program", next="choose another one")
    snapshot = core.snapshots.read(id) if files and target["commit"] else None
    if files and snapshot is None:
        raise UsageError(
            f"this notebook does not have the files of the checkpoint {id}", next="roll back without files"
        )
    heard, now = _state(core, min(then.daily))
    before, saved, left, warnings = "", Saved(()), dict[str, str](), [heard.trouble]
    if not dry_run:
        row, troubles = _keep(core, session, f"before rollback to {name}"[:_LONGEST_NAME], now, spared=id)
        before, warnings = row["id"], [*warnings, *troubles]
        if snapshot and not row["commit"]:
            raise GitFailed(f"nothing was restored, since the present files could not be saved: {troubles[-1]}")
    if snapshot:
        plan = partial(_plan_files, core, session, snapshot, name, left)
        saved = change_notes(core, session, "rollback", plan, dry_run=dry_run)
    back, gone, others = _differences(then, now)
    if not dry_run:
        warnings += [*saved.warnings, *_restore(core, back, gone, others, heard)]
        publish_now(core)
        core.events.record("rollback", session, checkpoint=id, before=before, commit=saved.commit)
    return Rollback(
        status="dry_run" if dry_run else "restored",
        id=id,
        before=before,
        restored=len(back),
        removed=len(gone),
        files=[FileChange(path=each.path, change=_kind_of(each)) for each in saved.changes],
        commit=saved.commit,
        warnings=[*filter(None, warnings), *(f"{path} {why}" for path, why in sorted(left.items()))],
    )


# ---- saving


def _state(core: Core, since: str = "") -> tuple[Heard, _Body]:
    """What is now: the lines of the last days, and of all days from `since` on; and what Redis has."""
    index, today = core.index, core.now().astimezone(core.settings.timezone).date()
    farthest = max(date.fromisoformat(since or str(today)), today - _FARTHEST)
    first = min(today - timedelta(days=DAYS - 1), farthest)
    daily: dict[str, list[Any]] = {str(first + timedelta(days=age)): [] for age in range((today - first).days + 1)}
    heard = hear(core, list(daily), with_longterm=True, seconds=_HEAR_SECONDS)
    for row in index.stream.find(Is("day", "in", list(daily)), order=("at",)):
        if row["id"] not in heard.cut:
            daily[row["day"]].append(line_of(row))
    for line in heard.lines:
        daily[line.day].append(line.value)
    kept = {key.partition(":")[2]: fields for key, fields in heard.hashes.items()}
    longterm = [line_of(row) for row in index.longterm.find(order=("at",))]
    longterm += [{**fields, "id": id} for id, fields in kept.items()]
    rows = index.documents.tuples(("audience", *_OF_NOTE), Is("path", "!=", None))
    listed = [said for audience, *said in rows if not audience or is_announced(said[0], core.settings.prompt)]
    notes = [dict(zip(_OF_NOTE, said, strict=True)) for said in listed]
    theirs = [*(line.id for line in heard.lines), *kept] if heard.is_heard else None
    return heard, _Body(daily, longterm, notes, theirs)


def _keep(core: Core, session: Session, name: str, body: _Body, spared: str = "") -> tuple[Row, list[str]]:
    """Keep a state and the files as they are; the row and warnings. Of those that are too many, the oldest go, those of
    agents before the owner's, but neither this one nor `spared`."""
    checkpoints, now = core.index.checkpoints, from_milliseconds(to_milliseconds(core.now()))  # as the index has it
    rows, warnings = checkpoints.find(order=("-at",)), list[str]()
    row: Row = {
        "id": str(uuid.uuid4()),
        "name": name,
        # The last that is made is the last in every list, also where the clock went back.
        "at": max([now, *(each["at"] + timedelta(milliseconds=1) for each in rows)]),
        "created_by": "owner" if session.kind == "owner" else session.changed_by,
        "commit": "",
        "body": msgspec.to_builtins(body),
    }
    ranked = sorted([row, *rows], key=lambda each: (each["created_by"] or "").startswith("agent:"))
    surplus = [each["id"] for each in ranked[MOST:] if each["id"] not in (row["id"], spared)]
    try:
        row["commit"] = _keep_files(core, row["id"], name)
        core.snapshots.drop(surplus)
    except GitFailed as error:
        kept = "the files of older checkpoints are kept" if row["commit"] else "the files are not saved"
        warnings.append(f"{kept}: {error}")
    with core.index.write(durable=True):
        checkpoints.put([row])
        checkpoints.delete(surplus)
    return row, warnings


def _keep_files(core: Core, id: str, name: str) -> str:
    """Keep what all notes say, and return the commit. Raises GitFailed."""
    scan = core.tree.scan()
    texts, unread = _read(core, scan.seen)
    left_out = unread.keys() | scan.blind | scan.refused.keys() | unseen_notes(core.root, scan.seen)
    return core.snapshots.take(id, texts, left_out, f"Checkpoint {name or id}")


def _read(core: Core, paths: Collection[str]) -> tuple[dict[str, bytes], dict[str, str]]:
    """What notes say, by path; and why others cannot be read."""
    texts, unread = dict[str, bytes](), dict[str, str]()
    for path in paths:
        try:
            texts[path] = core.tree.read(path).raw
        except NotebookError as error:
            unread[path] = f"is left as it is: {error}"
    return texts, unread


def _body_of(row: Row) -> _Body:
    """What a checkpoint holds; of one that another program wrote in a shape of its own, nothing."""
    with suppress(ValueError):  # msgspec's, too
        body = msgspec.convert(row["body"] or {}, _Body)
        if all(str(date.fromisoformat(day)) == day for day in body.daily):
            return body
    return _Body({}, [], [])


def _checkpoint(session: Session, row: Row, warnings: Sequence[str] = ()) -> Checkpoint:
    """A checkpoint without what it holds. The name of a commit depends on private notes, too."""
    said = {name: row[name] or "" for name in ("id", "name", "created_by")}
    commit = (row["commit"] or "") if session.kind == "owner" else ""
    return Checkpoint(**said, at=row["at"], commit=commit, warnings=[*filter(None, warnings)])


# ---- going back


def _find(core: Core, id: str) -> Row:
    """The checkpoint whose id begins so. Raises NotFound with the latest ones, for none or several."""
    asked, ids = id.strip().lower(), [row["id"] for row in core.index.checkpoints.find(order=("-at",))]
    found = [each for each in ids if len(asked) >= _SHORTEST and each.startswith(asked)]
    if len(found) != 1:
        what, near = "single checkpoint" if found else "checkpoint", found or ids
        raise NotFound(what, id, candidates=tuple(near[:_MOST_NAMED]), next="see: notebook-sync checkpoint list")
    return core.index.checkpoints.get(found)[found[0]]


def _plan_files(core: Core, session: Session, snapshot: Snapshot, name: str, left: dict[str, str]) -> list[Change]:
    """What is to be written so that the notes say what they said; and in `left`, why others stay as they are."""
    left.clear()
    view, blobs, reason = View(core, session), snapshot.blobs, f"to the checkpoint {name}"
    texts, unread = _read(core, core.tree.scan().seen)
    left |= unread
    for path in texts.keys() - blobs.keys():
        if snapshot.is_silent_about(path):
            left[path] = "is left as it is: it could not be read then"
    for path in blobs.keys() - texts.keys() - unread.keys():
        if why := why_not_free(core, view, path):
            left[path] = f"is not restored: {why}"
    now = {path: texts.get(path) for path in {*texts, *blobs} - left.keys()}
    then = core.snapshots.differing(snapshot, now)
    return [
        Change(path, now[path], raw, "rollback", reason=reason, is_known=True) for path, raw in sorted(then.items())
    ]


def _kind_of(change: Change) -> str:
    return "created" if change.before is None else "deleted" if change.after is None else "updated"


def _differences(then: _Body, now: _Body) -> tuple[_Lines, _Lines, set[str]]:
    """What comes back and what goes, of the lines since the first day of a checkpoint and of long-term memory; and the
    ids of what is of other programs. Their lines stay where they are not known of both moments, and their long-term
    memory always."""
    others, is_known = {*(then.theirs or ()), *(now.theirs or ())}, None not in (then.theirs, now.theirs)
    was, has = (_lines(each, min(then.daily)) for each in (then, now))
    fixed = {key for key in {**was, **has} if key[1] in others and not (key[0] and is_known)}
    back = {key: value for key, value in was.items() if key not in has and key not in fixed}
    gone = {key: value for key, value in has.items() if key not in was and key not in fixed}
    return back, gone, others


def _lines(body: _Body, since: str) -> _Lines:
    days = {day: values for day, values in body.daily.items() if day >= since} | {"": body.longterm}
    return {(day, id_of(value)): value for day, values in days.items() for value in values}


def _restore(core: Core, back: _Lines, gone: _Lines, others: Collection[str], heard: Heard) -> list[str]:
    """Restore our lines and our long-term memory, in one transaction, then the lines of other programs in Redis;
    warnings. A line of ours that another program has cut from its list is pushed again."""
    ours = [(day, value) for (day, id), value in back.items() if id not in others]
    lines, kept = ([_row_of(value, day) for day, value in ours if bool(day) == in_day] for in_day in (True, False))
    with core.index.write(durable=True):
        for rows, restored in ((core.index.stream, lines), (core.index.longterm, kept)):
            rows.delete([id for _, id in gone])
            rows.put([row for row in restored if row])
            rows.update(Is("id", "in", [id for _, id in back]), stamp=True)
    raws = {line.id: line.raw for line in heard.lines}
    removed = [(day, raws[id]) for day, id in gone if id in raws]
    appended = [(day, raw_of(value)) for (day, id), value in back.items() if id in others]
    if not removed and not appended:
        return []
    work = partial(RedisTarget.exchange_lines, gone=removed, back=appended)
    _, trouble = core.publisher.ask("redis", work, core.settings.refs.timeout_seconds)
    return [f"the lines of other programs are not restored: {trouble}"] if trouble else []


def _row_of(value: Any, day: str) -> Row | None:
    """The row of a line; None for what is none of ours."""
    with suppress(KeyError, TypeError, ValueError):
        return row_of_line(json.dumps(value).encode(), day or value["timestamp"][:10])
    return None
