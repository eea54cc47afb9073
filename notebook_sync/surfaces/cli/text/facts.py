"""Facts in words, for people at a terminal. Pure: values in, text out; control characters are shown, not sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from notebook_sync.files.provenance import EXTERNAL
from notebook_sync.surfaces.cli.text.notebook import counts, safe
from notebook_sync.surfaces.cli.text.rendering import Rendering, by_width
from notebook_sync.surfaces.cli.text.rows import aligned

Told = Mapping[str, Any]
_LENGTH_OF_ID = 8
_BAR = 5


def of_facts(listed: Told, width: int | None = None) -> str:
    """A line for each: its importance, the start of its id, its section, its text."""
    rows = [(_weight(one["importance"]), _id(one), one["section"] or "-", _said(one)) for one in listed["results"]]
    return aligned(rows, width)


def of_found(found: Told, width: int | None = None) -> str:
    """As `of_facts`, with the similarity in front where there is one."""
    if not all("similarity" in one for one in found["results"]):
        return of_facts(found, width)
    rows = [(f"{one['similarity']:.0%}", _id(one), one["section"] or "-", _said(one)) for one in found["results"]]
    return aligned(rows, width)


def of_verdict(verdict: Told, width: int | None = None) -> str:
    """The verdict, and the facts that are similar."""
    nearest = f", {verdict['similarity']:.0%} similar" if verdict["matches"] else ""
    matches = of_found({"results": verdict["matches"]}, width)
    return "\n".join([f"{verdict['verdict']}{nearest}", *matches.splitlines()])


def of_change(changed: Told, _: int | None = None) -> str:
    """What was done with a fact, and where it is."""
    return "\n".join(map(safe, (_changed(changed), *_about(changed))))


def of_decay(decayed: Told, width: int | None = None) -> str:
    """The facts that are archived and moved to core.md, and the proposals for the owner."""
    labels = {"archived": "archive", "promoted": "promote", "proposed": "propose for core.md"}
    rows = [(label, _id(one), _said(one)) for kind, label in labels.items() for one in decayed[kind]]
    return aligned(rows, width) if rows else "no fact has faded or proved itself; nothing changes"


def of_pairs(found: Told, width: int | None = None) -> str:
    """Two lines for each pair, the one that stays first; how many were merged."""
    if not found["pairs"]:
        return "no two facts say the same"
    rows = [
        row
        for pair in found["pairs"]
        for row in (
            ("keep", _id(pair["keep"]), f"{pair['similarity']:.0%}", pair["how"], _said(pair["keep"])),
            ("drop", _id(pair["drop"]), "", "", _said(pair["drop"])),
        )
    ]
    merged = [f"{counts(found['merged'], 'fact')} merged"] if found["merged"] else []
    return "\n".join([*aligned(rows, width).splitlines(), *merged, *_warnings(found)])


def of_extraction(extracted: Told, width: int | None = None) -> str:
    """What was, or would be, added and archived, and what was skipped, with the reason."""
    return "\n".join(_extracted(extracted, width))


def _extracted(extracted: Told, width: int | None) -> Iterator[str]:
    if extracted["summary"]:
        yield safe(_line(extracted["summary"]))
    rows = [(one["action"], one["section"] or "-", _said(one)) for one in extracted["additions"]]
    rows += [("archived", one["section"] or "-", _said(one)) for one in extracted["removals"]]
    rows += [("skipped", "-", f"{_line(one['text'])} ({one['reason']})") for one in extracted["skipped"]]
    yield from aligned(rows, width).splitlines()
    yield from _warnings(extracted)


def _warnings(told: Told) -> Iterator[str]:
    return (safe(f"warning  {warning}") for warning in told.get("warnings", ()))


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
    "reinforced": "reinforced in",
    "archived": "archived in",
    "restored": "restored to",
    "promoted": "moved to",
    "proposed": "proposed for core.md; the owner decides; it stays in",
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


FACTS: Mapping[str, Rendering] = {
    "fact list": by_width(of_facts),
    "fact search": by_width(of_found),
    "fact verify": by_width(of_verdict),
    "fact decay": by_width(of_decay),
    "fact dedupe": by_width(of_pairs),
    "fact extract": by_width(of_extraction, lambda answer: bool(answer.get("error"))),
    **{f"fact {verb}": by_width(of_change) for verb in ("add", "reinforce", "archive", "restore", "promote")},
}
