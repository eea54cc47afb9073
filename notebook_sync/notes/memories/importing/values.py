"""Single values of another program's memories, as a memory has them. Pure; None, or nothing, for what cannot be so."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from notebook_sync.errors import UsageError
from notebook_sync.files.fields import plain_tags
from notebook_sync.files.memories import HIGHEST_PRIORITY, RELATIONS
from notebook_sync.mirror.memories import Link
from notebook_sync.notes.channels.older_export import moment_in
from notebook_sync.notes.memories.suggestions import UNSURE, short
from notebook_sync.notes.memories.template import LONGEST_TAG

# Fewer seconds since the epoch are a number that counts something else.
_EARLIEST = 1e8
_LAST_YEAR = 2200
_DAY = re.compile(r"[0-9]{8}")
# As Go prints a time: "2026-01-02 15:04:05.999 +0000 UTC m=+0.01".
_GO_TIME = re.compile(r"(\S+ \S+) ([+-]\d{4}) \w+(?: m=\S+)?")

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
    """ISO 8601, a day of eight digits, SQLite's form, Go's, or since the epoch in seconds or finer."""
    text = str(value).strip() if isinstance(value, str | int) else ""
    if _DAY.fullmatch(text):
        value = text = f"{text[:4]}-{text[4:6]}-{text[6:]}"
    if found := _GO_TIME.fullmatch(text):
        value = text = f"{found[1]}{found[2]}"
    number = as_number(value)
    if (number is None and not text) or (number is not None and number < _EARLIEST):
        return None
    moment = moment_in(value)
    return moment if moment is not None and moment.year <= _LAST_YEAR else None


def as_tags(value: Any) -> tuple[str, ...] | None:
    """Of a list, of the JSON of one, or of comma-separated words."""
    found = decoded(value)
    if isinstance(found, str):
        found = found.split(",")
    if not isinstance(found, list):
        return None
    if not all(isinstance(one, str | int | float) and not isinstance(one, bool) for one in found):
        return None
    tags = plain_tags(str(one) for one in found)
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


def as_priority(value: Any) -> int | None:
    """From 1 to 10; a number beyond becomes the nearest."""
    number = as_number(value)
    return None if number is None else round(min(max(number, 1), HIGHEST_PRIORITY))


def as_links(value: Any, leads_on: Callable[[str], bool]) -> tuple[list[Link], list[Dropped]]:
    """The links of a list to what is there; and what else it says."""
    found = decoded(value)
    if not isinstance(found, list):
        return [], [(found, "these are no links")]
    links: dict[tuple[str, str], Link] = {}
    dropped: list[Dropped] = []
    for entry in found:
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
    to, kind = entry.get("to", entry.get("to_memory_id")), entry.get("type", entry.get("relationship_type"))
    relation = kind.strip().casefold() if isinstance(kind, str) else ""
    if relation not in RELATIONS:
        raise UsageError(f"there is no relation {short(kind)!r}")
    if not isinstance(to, str | int) or isinstance(to, bool) or not str(to).strip():
        raise UsageError("it names no memory")
    said = entry.get("confidence")
    sure = UNSURE if said is None else as_number(said)
    if sure is None:
        raise UsageError("its confidence is no number")
    return Link(
        relation,
        str(to).strip(),
        min(max(sure, 0.0), 1.0),
        _text(entry.get("reasoning")),
        _text(entry.get("source")),
        _text(entry.get("synthesis_id")),
    )


def _text(value: Any) -> str:
    return " ".join(str(value).split()) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
