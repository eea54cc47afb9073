"""Single values of another program's memories, as a memory has them. Pure; None, or nothing, for what cannot be so."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from notebook_sync.errors import UsageError
from notebook_sync.files.fields import plain_tags
from notebook_sync.files.memories import HIGHEST_PRIORITY, RELATIONS
from notebook_sync.mirror.memories import Link
from notebook_sync.notes.channels.older_export import moment_in
from notebook_sync.notes.memories.suggestions import UNSURE, short
from notebook_sync.notes.memories.template import LONGEST_TAG

SHARES, RANKS, HUNDREDTHS = 1, HIGHEST_PRIORITY, 100
SCALES = {SHARES: "0 to 1", RANKS: "1 to 10", HUNDREDTHS: "0 to 100"}
"""By where each ends, the scales on which it is told how much something matters."""
# Fewer seconds since the epoch are a number that counts something else.
_EARLIEST = 1e8
_DAY_DIGITS = 8
_LAST_YEAR = 2200
_TARGETS = ("to", "target", "target_id", "to_id", "id", "memory_id")
_TYPES = ("type", "relation", "relation_type", "relationship", "kind")
_SURE = ("confidence", "weight", "strength", "score")
_WHY = ("reasoning", "reason", "rationale", "description")

# What is no link, and why.
Dropped = tuple[Any, str]


def decoded(value: Any) -> Any:
    """A list or an object that stands in a text; anything else as it is, also an object that names something twice: of
    two, one would be lost."""
    if isinstance(value, str) and value.strip()[:1] in ("[", "{"):
        try:
            return json.loads(value, object_pairs_hook=_named_once)
        except (ValueError, RecursionError):
            return value
    return value


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("something is named twice")
    return found


def as_time(value: Any) -> datetime | None:
    """ISO 8601, a day of eight digits, or since the epoch in seconds or finer."""
    text = value.strip() if isinstance(value, str) else ""
    if isinstance(value, int) and _EARLIEST / 10 <= value < _EARLIEST:  # so many digits count no seconds here
        text = str(value)
    if len(text) == _DAY_DIGITS and text.isdigit():
        try:
            return datetime.strptime(text, "%Y%m%d").replace(tzinfo=UTC)
        except ValueError:
            return None
    number = as_number(value)
    if (number is None and not text) or (number is not None and number < _EARLIEST):
        return None
    found = moment_in(value)
    return found if found is not None and found.year <= _LAST_YEAR else None


def as_tags(value: Any) -> tuple[str, ...] | None:
    """Of a list, of the JSON of one, or of words parted by commas."""
    found = decoded(value)
    if isinstance(found, str):
        found = found.split(",")
    if not isinstance(found, list):
        return None
    texts = [one.get("name", one.get("tag")) if isinstance(one, dict) else one for one in found]
    if not all(isinstance(one, str | int | float) and not isinstance(one, bool) for one in texts):
        return None
    tags = plain_tags(str(one) for one in texts)
    return tags if all(len(tag) <= LONGEST_TAG for tag in tags) else None


def as_number(value: Any) -> float | None:
    """A finite number, also one that stands in a text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def as_priority(value: Any, scale: int) -> int | None:
    """From 1 to 10, of a number on a scale that ends at `scale`, one of SCALES; of what is beyond, the nearest."""
    number = as_number(value)
    if number is None:
        return None
    return round(min(max(number * HIGHEST_PRIORITY / scale, 1), HIGHEST_PRIORITY))


def is_beyond(value: Any, scale: int) -> bool:
    """Whether it is a number that a scale does not have."""
    number = as_number(value)
    return number is not None and not (1 if scale == HIGHEST_PRIORITY else 0) <= number <= scale


def as_links(value: Any, leads_on: Callable[[str], bool]) -> tuple[list[Link], list[Dropped]]:
    """The links of a list, or of lists by type, to what is there; and what else it says."""
    found = decoded(value)
    links: dict[tuple[str, str], Link] = {}
    dropped: list[Dropped] = [] if isinstance(found, list | dict) else [(found, "these are no links")]
    for entry in _entries(found):
        try:
            link = as_link(entry)
        except UsageError as error:
            dropped.append((entry, str(error)))
            continue
        if not leads_on(link.to):
            dropped.append((entry, f"there is no memory {short(link.to)!r}"))
        elif links.setdefault((link.type, link.to), link) != link:
            dropped.append((entry, "it is said twice"))
    return list(links.values()), dropped


def as_link(entry: Any) -> Link:
    """One link. Raises UsageError for what names no memory, no type that there is, or a confidence that is none."""
    if not isinstance(entry, Mapping):
        raise UsageError("it names no memory and no type")
    to, kind = _first(entry, _TARGETS), _first(entry, _TYPES)
    relation = kind.strip().casefold() if isinstance(kind, str) else ""
    if relation not in RELATIONS:
        raise UsageError(f"there is no relation {short(kind)!r}")
    if not isinstance(to, str | int) or isinstance(to, bool) or not str(to).strip():
        raise UsageError("it names no memory")
    said = _first(entry, _SURE)
    sure = UNSURE if said is None else as_number(said)
    if sure is None:
        raise UsageError("its confidence is no number")
    return Link(
        relation,
        str(to).strip(),
        min(max(sure, 0.0), 1.0),
        _text(_first(entry, _WHY)),
        _text(entry.get("source")),
        _text(entry.get("synthesis_id")),
    )


def _entries(found: Any) -> Iterator[Any]:
    if isinstance(found, list):
        yield from found
    elif isinstance(found, dict):
        for kind, targets in found.items():
            for to in targets if isinstance(targets, list) else [targets]:
                yield {"type": kind, **to} if isinstance(to, dict) else {"type": kind, "to": to}


def _first(entry: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((entry[name] for name in names if entry.get(name) is not None), None)


def _text(value: Any) -> str:
    return " ".join(str(value).split()) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
