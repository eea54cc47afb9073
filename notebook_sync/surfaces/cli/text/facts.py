"""Facts in words, for people at a terminal. Pure: values in, text out; control characters are shown, not sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from notebook_sync.files.provenance import EXTERNAL
from notebook_sync.surfaces.cli.text.editing import undoing
from notebook_sync.surfaces.cli.text.notebook import counts, safe
from notebook_sync.surfaces.cli.text.rows import aligned

Told = Mapping[str, Any]
_LENGTH_OF_ID = 8
_BAR = 5


def of_facts(facts: Sequence[Told], width: int | None = None) -> str:
    """A line for each: how much it matters, the beginning of its id, its section, its text."""
    return aligned([(_weight(one["importance"]), _id(one), one["section"] or "-", _said(one)) for one in facts], width)


def of_found(facts: Sequence[Told], width: int | None = None) -> str:
    """As `of_facts`, with the likeness in front."""
    rows = [(f"{one['similarity']:.0%}", _id(one), one["section"] or "-", _said(one)) for one in facts]
    return aligned(rows, width)


def of_adding(added: Told, undo: Callable[[str], str]) -> str:
    """Where a new fact stands; or which one says this already, and was strengthened or brought back."""
    return of_change(added, undo if added["action"] != "reinforced" else None)


def of_verdict(verdict: Told, width: int | None = None) -> str:
    """The verdict, and what is known that comes near."""
    nearest = f", {verdict['similarity']:.0%} alike" if verdict["matches"] else ""
    return "\n".join([f"{verdict['verdict']}{nearest}", *of_found(verdict["matches"], width).splitlines()])


def of_change(changed: Told, undo: Callable[[str], str] | None = None) -> str:
    """What became of one fact, and where it stands; `undo` where it moved."""
    back = undoing(changed, undo, "undo        ") if undo else ()
    return "\n".join([*map(safe, (_changed(changed), *_about(changed))), *back])


def of_decay(decayed: Told, *, dry_run: bool, width: int | None = None) -> str:
    """What was, or would be, put aside and moved to core.md; what the owner is asked to move there."""
    rows = [
        (label if not dry_run else f"would be {label}", _id(one), _said(one))
        for label, kind in (("archived", "archived"), ("promoted", "promoted"))
        for one in decayed[kind]
    ]
    rows += [("worth core.md", _id(one), _said(one)) for one in decayed["proposed"]]
    return aligned(rows, width) if rows else "nothing has faded, nothing has proved itself: all stays as it is"


def of_pairs(found: Told, width: int | None = None) -> str:
    """Two lines for each pair, the one that stays first; how many were merged."""
    rows = [
        row
        for pair in found["pairs"]
        for row in (
            ("keep", _id(pair["keep"]), f"{pair['similarity']:.0%}", pair["how"], _said(pair["keep"])),
            ("drop", _id(pair["drop"]), "", "", _said(pair["drop"])),
        )
    ]
    lines = aligned(rows, width).splitlines()
    merged = [f"{counts(found['merged'], 'fact')} merged"] if found["merged"] else []
    return "\n".join([*lines, *merged, *(safe(f"warning  {warning}") for warning in found["warnings"])])


def of_extraction(extracted: Told, width: int | None = None) -> str:
    """What was, or would be, added and put aside, and what was passed over, with the reason."""
    return "\n".join(_extracted(extracted, width))


def _extracted(extracted: Told, width: int | None) -> Iterator[str]:
    if extracted["summary"]:
        yield safe(_line(extracted["summary"]))
    rows = [(one["action"], one["section"] or "-", _said(one)) for one in extracted["additions"]]
    rows += [("archived", one["section"] or "-", _said(one)) for one in extracted["removals"]]
    rows += [("skipped", "-", f"{_line(one['text'])} ({one['reason']})") for one in extracted["skipped"]]
    yield from aligned(rows, width).splitlines()
    yield from (safe(f"warning  {warning}") for warning in extracted["warnings"])


def _weight(importance: float) -> str:
    """A number from 0 to 1, and a picture of it."""
    full = int(importance * _BAR + 0.5)
    return f"{importance:.2f} {'▮' * full}{'▯' * (_BAR - full)}"


def _id(fact: Told) -> str:
    return str(fact["note_id"])[:_LENGTH_OF_ID]


def _changed(fact: Told) -> str:
    place = f"{fact['path']}, {_line(fact['section'])}" if fact["section"] else fact["path"]
    return f"{_DONE.get(fact['action'], fact['action'])} {place}"


_DONE = {
    "added": "added to",
    "reinforced": "strengthened, in",
    "archived": "put aside, into",
    "restored": "brought back to",
    "promoted": "moved to",
    "proposed": "proposed to the owner for core.md; it stays in",
}


def _about(fact: Told) -> Iterator[str]:
    yield f"fact        {_said(fact)}"
    yield f"id          {fact['note_id']}"
    yield f"importance  {_weight(fact['importance'])}"
    yield from (f"warning     {warning}" for warning in fact.get("warnings", ()))


def _said(fact: Told) -> str:
    return f"{'(external) ' if fact.get('provenance') == EXTERNAL else ''}{_line(fact['content'])}"


def _line(text: str) -> str:
    return " ".join(text.split())
