"""Rows of facts from the places where files state them. Runs inside the write transaction of the files' own rows.

A text is one fact wherever it is stated. Its projected columns are those of its first place; what the database keeps of
it (use, importance, history) goes along when it is moved or reworded, and survives for a year without a place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from operator import itemgetter
from typing import Any

from notebook_sync.files.fact_text import ARCHIVE, order_of
from notebook_sync.model import CORE_FACTS, HISTORY_LIMIT
from notebook_sync.search.words import WordAnalyzer
from notebook_sync.store.index import Index
from notebook_sync.store.rows import Is, Row
from notebook_sync.sync.diff import Projection
from notebook_sync.sync.project import with_words

# What a restored fact gains, of 1.
_RESTORED = 0.1
# How alike two wordings of one fact are at least, of 100; where there are more pairs, none is compared.
_ALIKE = 90.0
_MOST_PAIRS = 2_500
# A wording that was cut and saved may be pasted and reworded this much later.
_REMEMBERED = timedelta(hours=24)
_BOX = re.compile(r"\[[ xX]\]\s+")


def apply_facts(
    index: Index,
    files: Mapping[str, Projection | None],
    analyzer: WordAnalyzer,
    now: datetime,
    actors: Mapping[str, str],
    decay_rate: float,
) -> None:
    """Bring the rows in step with what the files state now; None for a file that is gone. `actors`: by path, who
    changed it. `decay_rate`: that of new facts, a day.

    All files of a batch come together, so that a fact which was cut from one and pasted into another is moved.
    """
    facts = index.facts
    old = {row["id"]: row for row in index.fact_places.find(Is("path", "in", list(files)))}
    new = {place["id"]: place for found in files.values() if found for place in found.places}
    index.fact_places.delete(list(old.keys() - new.keys()))
    index.fact_places.put(list(new.values()))
    stated = {row["id"]: row for found in files.values() if found for row in found.facts}
    known = {id for (id,) in facts.tuples(("id",), Is("id", "in", list(stated)))}
    moved = {each[0] for each in _meaning(old.values()) ^ _meaning(new.values())}
    touched = sorted(moved | (stated.keys() - known))
    if not touched:
        return
    rows = facts.get(touched)
    after = {key: places for key, places in places_of(index, touched).items() if key in stated or key in rows}
    pasts = {row["id"]: _as_it_was(row) for row in facts.ended(Is("id", "in", touched))} | rows
    fresh = [after[key][0] | stated[key] for key in touched if key in after and key not in pasts]
    lost = [rows[key] for key in touched if key in rows and key not in after]
    lately = facts.ended(Is("ended_at", ">=", now - _REMEMBERED)) if fresh else []
    lines = {place["fact"]: place["line"] for place in old.values()}
    was = reworded([*lost, *map(_as_it_was, lately)], fresh, lines)
    paths = [each[0]["path"] for each in after.values()]
    provenance = dict(index.documents.tuples(("path", "provenance"), Is("path", "in", paths)))
    puts, kept = [], {}
    for key, places in after.items():
        place, past = places[0], was.get(key) or pasts.get(key)
        source = stated.get(key) or rows[key]
        action = "reworded" if key in was else _action(past, place, is_back=key not in rows)
        if action:
            kept[key] = _kept(past, action, place, now, actors.get(place["path"], ""), source)
            if past is None:
                kept[key]["decay_rate"] = decay_rate
        first = {name: place[name] for name in ("section", "path", "pin")}
        row = {**source, **first, "audience": most_open(places), "provenance": provenance.get(place["path"], "")}
        puts.append({**with_words(row, analyzer), **kept.get(key, {})})
    renamed = {past["id"]: key for key, past in was.items()}
    ended = {past["id"]: past for past in lost if past["id"] not in renamed}
    for key, past in ended.items():
        kept[key] = _kept(past, "gone", past, now, actors.get(past["path"], ""), past)
    facts.rename(renamed)
    facts.put(puts)
    for key in kept.keys() & (pasts.keys() | was.keys()):
        facts.update(Is("id", "=", key), set=kept[key])
    facts.delete(ended)


def places_of(index: Index, facts: Sequence[str]) -> dict[str, list[Row]]:
    """The places of each fact, the one that counts first."""
    rows = index.fact_places.find(Is("fact", "in", facts))
    rows.sort(key=lambda place: (place["fact"], order_of(place["path"]), place["line"]))
    return {fact: list(places) for fact, places in groupby(rows, itemgetter("fact"))}


def with_event(
    past: Row | None, place: Mapping[str, Any], now: datetime, action: str, base: float, actor: str, **said: str
) -> Row:
    """What is set of a fact that counts for `base` from now on, with the event that says why. `place`: where it is."""
    event = {"at": now.isoformat(), "action": action, "importance": base, "actor": actor}
    event |= {"path": place["path"], "section": place["section"], **said}
    return {"base": base, "source_history": [*((past or {}).get("source_history") or ()), event][-HISTORY_LIMIT:]}


def most_open(places: Iterable[Row]) -> str:
    """The audience of a fact that is stated at these places."""
    return min((str(place["audience"]) for place in places), key=lambda audience: (audience != "", audience))


def reworded(old: Sequence[Row], new: Sequence[Row], lines: Mapping[str, int]) -> dict[str, Row]:
    """By the id of a new wording, the fact that it continues: nearly the same text, in the same section of the same
    file. The best match comes first, then the nearest line. `lines` are those of the old ones, by id."""
    if not old or not new or len(old) * len(new) > _MOST_PAIRS:
        return {}
    from rapidfuzz import fuzz  # only where facts were reworded

    pairs = [
        (score, -abs(lines.get(past["id"], 0) - row["line"]), row["id"], at)
        for row in new
        for at, past in enumerate(old)
        if (past["path"], past["section"]) == (row["path"], row["section"])
        and (score := fuzz.ratio(_plain(past["content"]), _plain(row["content"]), score_cutoff=_ALIKE))
    ]
    was: dict[str, Row] = {}
    for _, _, key, at in sorted(pairs, reverse=True):
        if key not in was and old[at] not in was.values():
            was[key] = old[at]
    return was


def _plain(content: str) -> str:
    """What counts of a wording: a task that is ticked is the same task."""
    return " ".join(_BOX.sub("", content, count=1).casefold().split())


def _as_it_was(ended: Row) -> Row:
    """The row of a fact before it ended; its last event holds what ended rows lose."""
    last = (ended["source_history"] or [{}])[-1]
    lost = {"path": last.get("path"), "section": last.get("section"), "content": last.get("was", ""), "pin": None}
    return {**ended, **lost}


def _meaning(places: Iterable[Row]) -> set[tuple[Any, ...]]:
    """What facts depend on: all but the line."""
    return {tuple(place[name] for name in ("fact", "path", "section", "pin", "audience")) for place in places}


def _action(past: Row | None, place: Row, *, is_back: bool) -> str:
    """What happened to a fact whose first place is `place` now; "" where only its line is another."""
    if past is None:
        return "added"
    for path, entered, left in ((ARCHIVE, "archived", "restored"), (CORE_FACTS, "promoted", "demoted")):
        if (past["path"] == path) != (place["path"] == path):
            return entered if place["path"] == path else left
    if (past["path"], past["section"]) != (place["path"], place["section"]):
        return "moved"
    if is_back:
        return "returned"
    return "" if past["pin"] == place["pin"] else "unpinned" if place["pin"] is None else "pinned"


def _kept(past: Row | None, action: str, place: Mapping[str, Any], now: datetime, actor: str, stated: Row) -> Row:
    """The kept columns that an event sets."""
    base = (past or stated)["base"]
    if action == "restored" and place["pin"] is None and place["path"] != CORE_FACTS:
        base = min(1.0, base + _RESTORED)
    said = {"was": (past or stated)["content"]} if action in ("gone", "reworded") else {}
    changed = {**with_event(past, place, now, action, base, actor, **said), "updated_at": now}
    return changed if past else {**changed, "created_at": now}
