"""Checkpoints, and going back to one: what the stream and long-term memory held, and what the notes said.

Before anything is restored, the present state is saved in the same way, so that another rollback takes this one back.
What was logged since then stays. A checkpoint lists no private note, since it is published.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from notebook_sync.errors import GitFailed, NoSuchNote, NotebookError, NotFound, UsageError
from notebook_sync.files.snapshots import Snapshot, unseen_notes
from notebook_sync.services.core import Core
from notebook_sync.services.lines import hear, is_announced
from notebook_sync.services.stream import Checkpoint, NoteChange, Rollback
from notebook_sync.services.view import View
from notebook_sync.services.writing import Change, save, why_not_free, writing
from notebook_sync.sessions import Session
from notebook_sync.store.others import UNHEARD, Heard, id_of, raw_of
from notebook_sync.store.redis import line_of, row_of_line
from notebook_sync.store.rows import Is, Row, from_milliseconds, to_milliseconds

DAYS, MOST = 7, 50
_SHORTEST, _MOST_NAMED, _LONGEST_NAME = 4, 5, 200
_BEFORE = "before rollback to "
_FARTHEST = timedelta(days=400)  # lines before that stay
# A checkpoint may wait longer for Redis than a question.
_HEAR_SECONDS = 2.0

# Day and what the line says, by the line's id.
_Lines = dict[str, tuple[str, Any]]


class _Note(msgspec.Struct, frozen=True):
    id: str
    collection: str
    path: str
    version: int
    digest: str


class _Body(msgspec.Struct, frozen=True):
    """What a checkpoint holds of databases, as it is published: lines by day, those of other programs behind ours;
    long-term memory; the notes. `theirs` are the ids of what is of other programs, None where Redis was not heard."""

    daily: dict[str, list[Any]]
    longterm: list[dict[str, Any]]
    notebook: list[_Note]
    theirs: list[str] | None = None

    @property
    def first_day(self) -> str:
        """The first day that it has lines of; "" for none."""
        return min(self.daily, default="")


_NOTHING = _Body({}, [], [])


class _Exchange(NamedTuple):
    """What comes back and what goes."""

    back: _Lines
    gone: _Lines


def take_checkpoint(core: Core, session: Session, name: str) -> Checkpoint:
    """Save the present state. Raises UsageError for a name of more than one line."""
    name = " ".join(name.split())
    if len(name) > _LONGEST_NAME or not name.isprintable():
        raise UsageError(f"a checkpoint's name is one line of at most {_LONGEST_NAME} characters")
    row, _, warnings = _take(core, session, name)
    core.events.record("checkpoint", session, checkpoint=row["id"])
    return _checkpoint(session, row, warnings)


def list_checkpoints(core: Core, session: Session) -> list[Checkpoint]:
    """The checkpoints, the latest first."""
    return [_checkpoint(session, row) for row in core.index.checkpoints.find(order=("-at",))]


def _take(core: Core, session: Session, name: str, target: Row | None = None) -> tuple[Row, Heard, list[str]]:
    """Save the present state, with all days since the first of `target`, which is kept too; what Redis had, and
    warnings."""
    checkpoints, id = core.index.checkpoints, str(uuid.uuid4())
    now = from_milliseconds(to_milliseconds(core.now()))  # as the index has it
    heard, body = _state(core, now, _body_of(target).first_day if target else "")
    commit, warnings = "", [UNHEARD] if heard.trouble else []
    try:
        commit = _keep_files(core, id, name)
    except GitFailed as error:
        warnings.append(f"the files are not saved: {error}")
    latest = checkpoints.find(order=("-at",), limit=1)
    row: Row = {
        "id": id,
        "name": name,
        # The last that is made is the last in every list, also where the clock went back.
        "at": max([now, *(each["at"] + timedelta(milliseconds=1) for each in latest)]),
        "created_by": "owner" if session.kind == "owner" else session.changed_by,
        "commit": commit,
        "body": msgspec.to_builtins(body),
    }
    with core.index.write(durable=True):
        checkpoints.put([row])
        surplus = _surplus(checkpoints.find(order=("-at",)), {id, *([target["id"]] if target else [])})
        checkpoints.delete(surplus)
    try:
        core.snapshots.drop(surplus)
    except GitFailed as error:
        warnings.append(f"the files of older checkpoints are kept: {error}")
    if core.has_targets:
        core.publisher.publish_inline(1.0)
    return row, heard, warnings


def _surplus(rows: Sequence[Row], spared: set[str]) -> list[str]:
    """The ids of those that are too many, of rows from the latest on. Agents have the places that the owner's leave
    free, and one in any case."""
    of_agents = [row["id"] for row in rows if (row["created_by"] or "").startswith("agent:")]
    of_owner = [row["id"] for row in rows if row["id"] not in of_agents]
    too_many = [*of_owner[MOST:], *of_agents[max(1, MOST - len(of_owner)) :]]
    return [id for id in too_many if id not in spared]


def _state(core: Core, now: datetime, since: str) -> tuple[Heard, _Body]:
    """What is now, with all days from `since` on."""
    index, today = core.index, now.astimezone(core.settings.timezone).date()
    first = min(str(today - timedelta(days=DAYS - 1)), max(since, str(today - _FARTHEST)) if since else "9")
    count = (today - date.fromisoformat(first)).days + 1
    daily: dict[str, list[Any]] = {str(today - timedelta(days=age)): [] for age in reversed(range(count))}
    heard = hear(core, list(daily), with_longterm=True, seconds=_HEAR_SECONDS)
    for row in index.stream.find(Is("day", "in", list(daily)), order=("at",)):
        if row["id"] not in heard.cut:
            daily[row["day"]].append(line_of(row))
    for line in heard.lines:
        daily[line.day].append(line.value)
    kept = {key.partition(":")[2]: fields for key, fields in heard.hashes.items()}
    longterm = [line_of(row) for row in index.longterm.find(order=("at",))]
    longterm += [{**fields, "id": id} for id, fields in kept.items()]
    theirs = [*(line.id for line in heard.lines), *kept] if heard.is_heard else None
    return heard, _Body(daily, longterm, _notes(core), theirs)


def _body_of(row: Row) -> _Body:
    """What a checkpoint holds; of one that another program wrote in a shape of its own, nothing."""
    try:
        body = msgspec.convert(row["body"] or {}, _Body)
        return body if all(str(date.fromisoformat(day)) == day for day in body.daily) else _NOTHING
    except ValueError:  # msgspec's, too
        return _NOTHING


def _notes(core: Core) -> list[_Note]:
    """Every note that no session is denied, as the index has it."""
    fields = ("audience", *_Note.__struct_fields__)
    rows = core.index.documents.tuples(fields, Is("path", "!=", None))
    notes = [(audience, _Note(*values)) for audience, *values in rows]
    return [note for audience, note in notes if not audience or is_announced(core, note.path)]


def _keep_files(core: Core, id: str, name: str) -> str:
    """Keep what all notes say, and return the commit. Raises GitFailed."""
    scan = core.tree.scan()
    texts, left_out = dict[str, bytes](), scan.blind | scan.refused.keys() | unseen_notes(core.root, scan.seen)
    for path in scan.seen:
        try:
            texts[path] = core.tree.read(path).raw
        except NotebookError as error:
            left_out |= set() if isinstance(error, NoSuchNote) else {path}
    return core.snapshots.take(id, texts, left_out, f"Checkpoint {name or id}")


def _checkpoint(session: Session, row: Row, warnings: Sequence[str] = ()) -> Checkpoint:
    """A checkpoint without what it holds. The name of a commit depends on private notes, too."""
    said = {name: row[name] or "" for name in ("id", "name", "created_by")}
    commit = (row["commit"] or "") if session.kind == "owner" else ""
    return Checkpoint(**said, at=row["at"], commit=commit, warnings=list(warnings))


# ---- going back


def roll_back(core: Core, session: Session, id: str, *, files: bool, dry_run: bool) -> Rollback:
    """Restore what a checkpoint holds, with `files` the notes too, all of them or none.

    Raises NotFound; UsageError where it has no files; what `save` raises: nothing was restored then.
    """
    target = _find(core, id)
    then, snapshot = _body_of(target), _snapshot_of(core, target) if files else None
    if not then.daily:
        raise UsageError(f"the checkpoint {target['id']} was made by another program", next="choose another one")
    name = target["id"] if not target["name"] or target["name"].startswith(_BEFORE) else target["name"]
    before, changes, left, commit = "", list[Change](), list[str](), ""
    if dry_run:
        heard, now = _state(core, core.now(), then.first_day)
        warnings = [UNHEARD] if heard.trouble else []
    else:
        row, heard, warnings = _take(core, session, f"{_BEFORE}{name}"[:_LONGEST_NAME], target)
        before, now = row["id"], _body_of(row)
        if snapshot and not row["commit"]:
            raise GitFailed(f"nothing was restored, since the present files could not be saved: {warnings[-1]}")
    ours, theirs, kept = _differences(then, now)
    if dry_run and snapshot:
        changes, left = _plan_files(core, session, snapshot, name)
    elif not dry_run:
        with writing(core, "rollback"):
            if snapshot:
                changes, left = _plan_files(core, session, snapshot, name)
                saved = save(core, changes, session)
                commit, warnings = saved.commit, [*warnings, *saved.warnings]
            _restore(core, ours, kept)
        warnings += _restore_others(core, theirs, heard)
        core.events.record("rollback", session, checkpoint=target["id"], before=before, commit=commit)
    return Rollback(
        status="dry_run" if dry_run else "restored",
        id=target["id"],
        name=target["name"],
        before=before,
        restored=len(ours.back) + len(theirs.back),
        removed=len(ours.gone) + len(theirs.gone),
        longterm_restored=len(kept.back),
        longterm_removed=len(kept.gone),
        changed=_changed(then.notebook, now.notebook),
        files=[NoteChange(path=each.path, change=_kind_of(each.before, each.after)) for each in changes],
        commit=commit,
        warnings=[*warnings, *left],
    )


def _find(core: Core, id: str) -> Row:
    """The checkpoint whose id begins so. Raises NotFound with the latest ones, for none or several."""
    asked, rows = id.strip().lower(), core.index.checkpoints.find(order=("-at",))
    found = [row["id"] for row in rows if len(asked) >= _SHORTEST and row["id"].startswith(asked)]
    row = core.index.checkpoints.one(found[0]) if len(found) == 1 else None
    if row is None:
        what, near = "single checkpoint" if found else "checkpoint", found or [row["id"] for row in rows]
        raise NotFound(what, id, candidates=tuple(near[:_MOST_NAMED]), next="see: notebook-sync checkpoint list")
    return row


def _snapshot_of(core: Core, target: Row) -> Snapshot:
    found = core.snapshots.read(target["id"]) if target["commit"] else None
    if found is None:
        raise UsageError(
            f"this notebook does not have the files of the checkpoint {target['id']}", next="roll back without files"
        )
    return found


def _plan_files(core: Core, session: Session, snapshot: Snapshot, name: str) -> tuple[list[Change], list[str]]:
    """What is to be written so that the notes say what they said; and which are left as they are, and why."""
    seen, view = core.tree.scan().seen, View(core, session)
    now, left = dict[str, bytes | None](), list[str]()
    for path in sorted({*seen, *snapshot.blobs}):
        if path not in snapshot.blobs and snapshot.is_silent_about(path):
            left.append(f"{path} is left as it is: it could not be read then")
            continue
        try:
            now[path] = core.tree.read(path).raw if path in seen else None
        except NotebookError as error:
            left.append(f"{path} is left as it is: {error}")
            continue
        if now[path] is None and (why := why_not_free(core, view, path)):
            left.append(f"{path} is not restored: {why}")
            del now[path]
    then, reason = core.snapshots.differing(snapshot, now), f"to the checkpoint {name}"
    changes = [
        Change(path, now[path], raw, "rollback", reason=reason, is_known=True) for path, raw in sorted(then.items())
    ]
    return changes, left


def _differences(then: _Body, now: _Body) -> tuple[_Exchange, _Exchange, _Exchange]:
    """What becomes of our lines since the first day of a checkpoint, of those of other programs, and of our long-term
    memory. Lines of others stay where they are not known of both moments, and their long-term memory always."""
    others = {*(then.theirs or ()), *(now.theirs or ())}
    lines = [
        {id_of(value): (day, value) for day, values in each.daily.items() if day >= then.first_day for value in values}
        for each in (then, now)
    ]
    kept = [{id_of(value): ("", value) for value in each.longterm} for each in (then, now)]
    ours, memory = (
        _compare(*({id: each for id, each in side.items() if id not in others} for side in sides))
        for sides in (lines, kept)
    )
    if then.theirs is None or now.theirs is None:
        return ours, _Exchange({}, {}), memory
    return ours, _compare(*({id: each for id, each in side.items() if id in others} for side in lines)), memory


def _compare(then: _Lines, now: _Lines) -> _Exchange:
    back = {id: each for id, each in then.items() if id not in now}
    return _Exchange(back, {id: each for id, each in now.items() if id not in then})


def _restore(core: Core, lines: _Exchange, kept: _Exchange) -> None:
    """Restore our lines and our long-term memory, in one transaction. A line that another program has cut from its
    list is pushed again."""
    with core.index.write(durable=True):
        for rows, found in ((core.index.stream, lines), (core.index.longterm, kept)):
            rows.delete(list(found.gone))
            rows.put([row for day, value in found.back.values() if (row := _row_of_ours(value, day))])
            rows.update(Is("id", "in", list(found.back)), stamp=True)


def _row_of_ours(value: Any, day: str) -> Row | None:
    """The row of a line; None for what is none of ours."""
    with suppress(KeyError, TypeError, ValueError):
        return row_of_line(json.dumps(value).encode(), day or value["timestamp"][:10])
    return None


def _restore_others(core: Core, found: _Exchange, heard: Heard) -> list[str]:
    """Restore the lines of other programs in Redis; warnings."""
    raws = {line.id: line.raw for line in heard.lines}
    gone = [(day, raws[id]) for id, (day, _) in found.gone.items()]
    back = [(day, raw_of(value)) for day, value in found.back.values()]
    if not gone and not back:
        return []

    def work(target: Any) -> bool:
        target.exchange_lines(gone, back)
        return True

    done, trouble = core.publisher.ask("redis", work, core.settings.refs.timeout_seconds)
    return [] if done else [f"the lines of other programs are not restored: {trouble}"]


def _changed(then: Sequence[_Note], now: Sequence[_Note]) -> list[NoteChange]:
    """What became of the notes that a checkpoint lists, by path."""
    before, after = ({each.id: (each.path, each.digest) for each in side} for side in (then, now))
    found = [
        ((after.get(id) or before[id])[0], _kind_of(before.get(id), after.get(id)))
        for id in {**before, **after}
        if before.get(id) != after.get(id)
    ]
    return [NoteChange(path=path, change=change) for path, change in sorted(found)]


def _kind_of(before: object, after: object) -> str:
    return "created" if before is None else "deleted" if after is None else "updated"
