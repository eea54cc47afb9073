"""What frontmatter says about a note, checked field by field.

A wrong value becomes a problem with its line and is kept in `extra`, so that nothing a person wrote is lost.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import date, datetime, tzinfo
from typing import Annotated, Any, Literal, get_args

import msgspec

from notebook_sync.files.frontmatter import Frontmatter, as_utc, read_time, typed
from notebook_sync.model import COLLECTIONS, CORE_FACTS, RUNTIME_FILES, STATUSES, Problem, id_from_path

Kind = Literal["pattern", "decision", "problem", "insight"]
KINDS: tuple[Kind, ...] = get_args(Kind)
RelationType = Literal["causes", "solves", "contradicts", "expands", "supersedes", "similar"]
DEFAULT_PRIORITY = 7
HIGHEST_PRIORITY = 10
LONGEST_ID = 512
# Programs find the owner's files on the servers by them.
_OWNERS_IDS = frozenset(map(id_from_path, (*RUNTIME_FILES, CORE_FACTS)))
AGENT = "agent:"


class Relation(msgspec.Struct):
    """A link of one memory to another."""

    type: RelationType
    to: Annotated[str, msgspec.Meta(min_length=1)]
    confidence: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1.0
    reasoning: str = ""
    source: str = ""
    synthesis_id: str = ""


def read_fields(
    front: Frontmatter, collection: str, zone: tzinfo
) -> tuple[dict[str, Any], dict[str, Any], tuple[Problem, ...]]:
    """The fields of a note of `collection`: the known ones, the others, and what is wrong.

    Known are those of every note and of the collection, without those that the file leaves out; the others have values
    that BSON and JSON can hold. Times without a zone are in `zone`.
    A key in other capitals, `tag` and `alias` are known fields too, unless the field itself is there.
    """
    readers = _READERS[collection]
    known: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    problems: list[Problem] = []
    holders = {key: key for key in front.values if key in readers}
    for key, value in front.values.items():
        name = key if key in readers else _SINGULAR.get(key.casefold(), key.casefold())
        if name not in readers or holders.setdefault(name, key) != key:
            extra[key] = typed(value, zone)
        elif value is not None:
            try:
                known[name] = readers[name](value, zone)
            except ValueError as error:
                extra[key] = typed(value, zone)
                if str(error):  # else another program may mean something by it
                    problems.append(Problem(front.line_of(key), f"{key}: {error}"))
    if "relations" in known:
        key = holders["relations"]
        known["relations"], malformed = _relations_from(known["relations"])
        for number, entry, reason in malformed:
            extra.setdefault(key, []).append(typed(entry, zone))
            problems.append(Problem(front.line_of(key), f"{key}: entry {number}: {reason}"))
    return known, extra, tuple(problems)


def _relations_from(entries: Iterable[Any]) -> tuple[list[dict[str, Any]], list[tuple[int, Any, str]]]:
    """The links to other memories among `entries`, and the number (from 1), the entry and the fault of the others."""
    links: dict[tuple[str, str], dict[str, Any]] = {}
    malformed = []
    for number, entry in enumerate(entries, 1):
        try:
            given = {name: str(each).strip() for name, each in entry.items() if each is not None}
            link = msgspec.convert(given | {"type": given.get("type", "").casefold()}, Relation, strict=False)
        except (AttributeError, msgspec.ValidationError) as error:
            reason = "it must name its type and to" if isinstance(error, AttributeError) else str(error)
            malformed.append((number, entry, reason))
            continue
        if (link.type, link.to) in links:
            malformed.append((number, entry, f"{link.type} {link.to!r} is there twice"))
        else:
            links[link.type, link.to] = msgspec.to_builtins(link)
    return [*links.values()], malformed


def _priority(value: Any, _: object = None) -> int:
    """From 1 to 10; what is beyond becomes the nearest of them. Raises ValueError."""
    number = _number(value, -1e9, 1e9, f"must be a number from 1 to {HIGHEST_PRIORITY}")
    return round(min(max(number, 1), HIGHEST_PRIORITY))


def _number(value: Any, least: float, most: float, reason: str) -> float:
    number = math.nan
    with suppress(TypeError, ValueError):
        number = math.nan if isinstance(value, bool) else float(value)
    if not least <= number <= most:
        raise ValueError(reason)
    return number


def _share(value: Any, _: object = None) -> float:
    return _number(value, 0, 1, "must be a number from 0 to 1")


def _converted(value: Any, kind: Any, reason: str) -> Any:
    try:
        return msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError:
        raise ValueError(reason) from None


def _text(value: Any, _: object = None) -> str:
    return str(value if isinstance(value, str) else _converted(value, str, "must be text")).strip()


def _line(value: Any, _: object = None) -> str:
    return " ".join(_text(value).split())


def _id(value: Any, _: tzinfo) -> str:
    text = _text(value)
    if not 0 < len(text) <= LONGEST_ID or not text.isprintable() or text.casefold().endswith(".md"):
        raise ValueError(f"must have 1 to {LONGEST_ID} characters that can be seen, and not end in .md")
    if text in _OWNERS_IDS:
        raise ValueError("must not be that of one of the owner's files")
    return text


def _status(value: Any, _: tzinfo) -> str:
    """One of STATUSES however it is written, else the text: other programs have statuses of their own."""
    text = " ".join(_converted(value, str, "").split())
    known = text.casefold().replace(" ", "_").replace("-", "_")
    return known if known in STATUSES else text


def _until(value: Any, zone: tzinfo) -> date:
    """A day, or a moment in UTC."""
    moment = read_time(_text(value), zone) if isinstance(value, str) else None
    if moment is None or as_utc(moment, zone) is None:
        raise ValueError("must be a date or time like 2026-02-18 or 2026-02-18T10:30:00Z")
    return moment


def _moment(value: Any, zone: tzinfo) -> datetime | None:
    return as_utc(_until(value, zone), zone)


def _note(value: Any, _: tzinfo) -> str:
    """The name of a note. Without quotes, YAML reads a `[[link]]` as a list in a list."""
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    return _line(value).removeprefix("[[").removesuffix("]]").partition("|")[0].strip()


def _notes(value: Any, zone: tzinfo) -> list[str]:
    return [_note(each, zone) for each in (value if isinstance(value, list) else [value])]


def _texts(value: Any, separator: str | None) -> list[str]:
    """The entries of a list, or of a text, without empty ones."""
    entries = value.split(separator) if isinstance(value, str) else value
    texts = _converted(entries, _TEXTS, "must be a list of texts; put a text with a colon in quotes")
    return [" ".join(text.split()) for text in texts if text and text.strip()]


def _list(value: Any, _: tzinfo) -> list[str]:
    return _texts([value] if isinstance(value, str) else value, None)


def _tags(value: Any, _: tzinfo) -> tuple[str, ...]:
    """A list, or words with commas or else spaces between them; without the # that some write before them."""
    tags = (text.lstrip("# ") for text in _texts(value, "," if "," in value else None))
    return tuple(dict.fromkeys(filter(None, tags)))


def _aliases(value: Any, _: tzinfo) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_texts(value, ",")))


def _agent(value: Any, _: tzinfo) -> str:
    """`agent:scribe` and `scribe` are the same agent."""
    return _line(value).removeprefix(AGENT).strip()


_Reader = Callable[[Any, tzinfo], Any]
_TEXTS = list[str | None]  # made once: the library remembers what it learnt about a type
_SINGULAR = {"tag": "tags", "alias": "aliases"}
_COMMON: dict[str, _Reader] = {
    "id": _id,
    "title": _line,
    "summary": _line,
    "created_by": _line,
    "created_at": _moment,
    "tags": _tags,
    "aliases": _aliases,
    "status": _status,
    "superseded_by": _note,
    "supersedes": _notes,
    "valid_until": _until,
}
# What says whether a note still holds.
CURRENCY = ("superseded_by", "supersedes", "valid_until")
# By collection, the fields that only its notes have.
FIELDS: dict[str, dict[str, _Reader]] = {
    "code_snippets": {"language": _line, "description": _text, "related_page": _line},
    "research_notes": {
        "source_url": _line,
        "key_findings": _list,
        "confidence": _share,
        "related_pages": _list,
    },
    "channels": {"topic": _line, "session_id": _line, "confidence": _share},
    "memories": {
        "kind": lambda value, _: _converted(_text(value).casefold(), Kind, f"must be one of {', '.join(KINDS)}"),
        "domain": _line,
        "agent": _agent,
        "priority": _priority,
        "relations": lambda value, _: _converted(value, list, "must be a list of links, each with a type and to"),
        "needs_review": lambda value, _: _converted(value, bool, "must be true or false"),
    },
}
_READERS = {name: _COMMON | FIELDS.get(name, {}) for name in COLLECTIONS}
