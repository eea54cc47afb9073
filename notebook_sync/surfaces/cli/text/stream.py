"""The stream, checkpoints and rollbacks in words, for people at a terminal. Pure; control characters are shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo
from typing import Any

from notebook_sync.files.provenance import EXTERNAL
from notebook_sync.surfaces.cli.text.editing import short
from notebook_sync.surfaces.cli.text.notebook import counts, safe
from notebook_sync.surfaces.cli.text.rendering import Rendering, Shown
from notebook_sync.surfaces.cli.text.rows import aligned, local

_LENGTH_OF_DAY = 10
_LENGTH_OF_ID = 8
Told = Mapping[str, Any]


def of_entry(entry: Told, shown: Shown) -> str:
    """What was logged, and where it went."""
    day = local(entry["timestamp"], shown.zone)[:_LENGTH_OF_DAY]
    return safe(f"{'kept for long' if entry.get('kept') else f'in the stream of {day}'}: {_said(entry)}")


def of_day(day: Told, shown: Shown) -> str:
    """A line for each entry: when, who or what, and what it says."""
    rows = (
        (local(one["timestamp"], shown.zone)[_LENGTH_OF_DAY + 1 :], _from(one), _said(one)) for one in day["results"]
    )
    return aligned(list(rows), shown.width)


def of_entries(entries: Sequence[Told], zone: tzinfo, width: int | None = None) -> str:
    """As `of_day`, of any day."""
    return aligned([(local(one["timestamp"], zone), _from(one), _said(one)) for one in entries], width)


def _from(entry: Told) -> str:
    """Of a note, what became of it; else who logged it, and from where."""
    if told := entry.get("action") or ("note" if entry["source"] == "notebook" else ""):
        return str(told)
    agent = f"agent:{entry['agent']}" if entry.get("agent") else ""
    return str(entry["source"]) if agent in ("", entry["source"]) else f"{agent}, {entry['source']}"


def _said(entry: Told) -> str:
    mark = "(external) " if entry.get("provenance") == EXTERNAL else ""
    ref = entry.get("ref")
    if ref:
        return f"{ref['path']}: {mark}{ref['title']}"
    tags = "".join(f" #{tag}" for tag in entry["tags"]) if entry["source"] != "notebook" else ""
    return f"{mark}{' '.join(entry['content'].split())}{tags}"


def _lacking(answer: Told) -> Iterator[str]:
    """Why an answer is less than asked for."""
    if answer["degraded"]:
        yield answer["degraded"]
    if answer.get("earlier"):
        yield f"{answer['earlier']:,} earlier entries are not shown; show more with: --limit N"


def of_checkpoint(checkpoint: Told, shown: Shown) -> str:
    """What a new checkpoint has in it, and how to go back to it."""
    name = f": {checkpoint['name']}" if checkpoint["name"] else ""
    files = f"with the files, as {short(checkpoint['commit'])}" if checkpoint["commit"] else "without the files"
    lines = [
        f"checkpoint {checkpoint['id']}{name}",
        f"has      {_counted(checkpoint)}, {files}",
        *(f"warning  {warning}" for warning in checkpoint["warnings"]),
        f"back     {shown.command('rollback', checkpoint['id'][:_LENGTH_OF_ID])}",
    ]
    return "\n".join(map(safe, lines))


def of_checkpoints(listed: Told, shown: Shown) -> str:
    """A line for each: the start of its id, which names it, when, how much is in it, and its name."""
    rows = [
        (one["id"][:_LENGTH_OF_ID], local(one["at"], shown.zone), _counted(one), one["name"])
        for one in listed["results"]
    ]
    return aligned(rows, shown.width)


def _counted(checkpoint: Told) -> str:
    entries = counts(checkpoint["entries"], "entry", "entries")
    return f"{counts(checkpoint['notes'], 'note')}, {entries}, {checkpoint['longterm']:,} kept for long"


def of_rollback(rolled: Told, shown: Shown) -> str:
    """What was or would be restored, what became of notes since, and how to undo or to do it."""
    return "\n".join(map(safe, _rolled(rolled, shown)))


def _rolled(rolled: Told, shown: Shown) -> Iterator[str]:
    checkpoint, plan = rolled["id"][:_LENGTH_OF_ID], rolled.get("plan", {})
    files = ["--files"] if rolled["restored"] else []
    entries = counts(rolled["entries"], "entry", "entries")
    yield f"{'to' if plan else 'back at'} {checkpoint}: {entries} of the stream, {rolled['longterm']:,} kept for long"
    for label, name in (("stream", "stream"), ("kept", "longterm")) if plan else ():
        back, gone, stay = len(plan[name]["back"]), len(plan[name]["gone"]), plan[name]["stay"]
        yield f"{label:<8} {back:,} come back, {gone:,} go, {stay:,} stay"
    yield from (f"{one['change']:<8} since then: {one['path']}" for one in rolled["changed"])
    yield from (f"as then  {path}" for path in rolled["restored"])
    if rolled["restored"] and not plan:
        yield f"commit   {shown.kept(rolled['commit'], *rolled['restored'])}"
    elif rolled["changed"] and not rolled["restored"]:
        yield "files    are left as they are; --files brings back what they said"
    yield from (f"warning  {warning}" for warning in rolled["warnings"])
    label, name = ("do it", checkpoint) if plan else ("undo", rolled["before"][:_LENGTH_OF_ID])
    yield f"{label:<8} {shown.command('rollback', name, *files)}"


STREAM: Mapping[str, Rendering] = {
    "stream log": Rendering(of_entry),
    "stream show": Rendering(of_day, _lacking),
    "stream recall": Rendering(lambda told, at: of_entries(told["results"], at.zone, at.width), _lacking),
    "checkpoint create": Rendering(of_checkpoint),
    "checkpoint list": Rendering(of_checkpoints, _lacking),
    "rollback": Rendering(of_rollback),
}
