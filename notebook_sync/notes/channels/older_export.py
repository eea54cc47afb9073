"""What an older program's export holds: agents' notes, as messages in channels. Pure.

A message that cannot be taken costs no other: where it stands and what is wrong with it is told instead.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

from notebook_sync.errors import UsageError
from notebook_sync.files.frontmatter import moment_from
from notebook_sync.files.provenance import EXTERNAL
from notebook_sync.notes.channels.private_note import Draft, is_share, reason_against
from notebook_sync.sessions import is_agent_name

# Where what has no place of its own in a note is kept in its frontmatter.
OLDER = "older"
_GLOBAL, _PROJECT, _NOTES = "global:agent-notes:", "proj_", ":agent-notes:"
_CHANNEL_NAMES = ("channel_id", "channel", "channelId")
_TIME_NAMES = ("timestamp", "created_at", "ts")
_DEEPEST = 12
_SURROGATE = re.compile("[\ud800-\udfff]")
_FINER = re.compile(r"[.,][0-9]{3}[0-9]*[1-9]")
_LARGEST = 2**63
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Found:
    """One message of the export: the note to make of it in the channel of `agent`, for `project` or for all ("").
    Where it cannot be taken, there is no `draft` and `error` says why; `where` is its place in the file. One that
    `has_id` is the same message wherever it stands."""

    where: str
    agent: str = ""
    project: str = ""
    draft: Draft | None = None
    error: str = ""
    has_id: bool = False


def messages_in(text: str) -> list[Found]:
    """All messages of an export: JSON with channels or messages, or either of them a line. Raises UsageError for what
    is no such thing at all."""
    return list(_each_by_itself(_all_in(text)))


def _each_by_itself(found: Iterable[Found]) -> Iterator[Found]:
    """Of messages without an id that say the same in all, each is a note of its own: by how many there were before."""
    known: Counter[str] = Counter()
    for one in found:
        if one.draft is None or one.has_id:
            yield one
            continue
        earlier = known[one.draft.id]
        known[one.draft.id] += 1
        yield replace(one, draft=replace(one.draft, id=_digest([one.draft.id, earlier]))) if earlier else one


def _all_in(text: str) -> list[Found]:
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError) as error:
        lines = list(_lines_of(text))
        if all(isinstance(value, str) for _, value in lines):
            raise UsageError(f"the file is no export: {_reason(error)}; give JSON, or JSON lines") from None
        return [found for where, value in lines for found in _messages_at(where, value)]
    if not isinstance(whole, dict | list):
        raise UsageError("the file is no export: it holds no channels and no messages")
    return _messages_at("", whole)


def channel_in(name: str) -> tuple[str, str] | None:
    """Agent and project ("" for none) of a channel's id there, None where it holds no agent's notes.

    `global:agent-notes:AGENT`, else `proj_PROJECT:agent-notes:AGENT`: the project ends where `:agent-notes:` first
    stands, and all behind it is the agent, colons included.
    """
    if name.startswith(_GLOBAL):
        return name.removeprefix(_GLOBAL), ""
    project, between, agent = name.partition(_NOTES)
    if not between or not project.startswith(_PROJECT):
        return None
    return agent, project.removeprefix(_PROJECT)


def _lines_of(text: str) -> Iterator[tuple[str, Any]]:
    """By place, what each line says; a text where it is no JSON object: why."""
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            value = f"is no JSON: {_reason(error)}"
        else:
            value = value if isinstance(value, dict | list) else "is neither a channel nor a message"
        yield f"line {number}", value


def _messages_at(where: str, value: Any) -> list[Found]:
    if isinstance(value, str):
        return [Found(where, error=value)]
    try:
        return list(_messages(value, where, ""))
    except RecursionError:
        return [Found(where or "the file", error="it nests too deep")]


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at line {error.lineno}, column {error.colno}"
    return "it nests too deep" if isinstance(error, RecursionError) else str(error)


def _messages(value: Any, where: str, channel: str) -> Iterator[Found]:
    """The messages of a file, a channel, or a list of either; `channel` is the id of the one they stand in."""
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield from _messages(each, f"{where}[{index}]", channel)
    elif not isinstance(value, dict):
        yield Found(where or "the file", error="is neither a channel nor a message")
    elif held := [name for name in ("channels", "messages") if isinstance(value.get(name), dict | list)]:
        own = _id_in(value, channel)
        for name in held:
            yield from _held(value[name], f"{where}.{name}".lstrip("."), own if name == "messages" else "")
    elif ids := [name for name in value if channel_in(name) is not None]:
        yield from _held({name: value[name] for name in ids}, where, "")
    else:
        yield _message(value, where or "the file", channel)


def _held(value: Any, where: str, channel: str) -> Iterator[Found]:
    """What stands under `channels` or `messages`: a list; or by id, where an id may be that of a channel."""
    if isinstance(value, list):
        yield from _messages(value, where, channel)
        return
    for name, each in value.items():
        place = f"{where}[{name!r}]"
        if channel_in(name) is not None or not channel:
            yield from _messages(each, place, name)
        else:
            yield from _messages({"id": name, **each} if isinstance(each, dict) else each, place, channel)


def _id_in(channel: Mapping[str, Any], known: str) -> str:
    """The channel's id: what of its names reads as one, and is not merely a key of the program's own."""
    names = [text for name in (*_CHANNEL_NAMES, "id", "name") if isinstance(text := channel.get(name), str) and text]
    return next((name for name in (*names, known) if channel_in(name) is not None), (names or [known])[0])


def _message(message: Mapping[str, Any], where: str, channel: str) -> Found:
    named = (text for name in _CHANNEL_NAMES if isinstance(text := message.get(name), str))
    channel = next((name for name in (*named, channel) if channel_in(name) is not None), channel)
    owner = channel_in(channel)
    if owner is None:
        told = f"the channel {channel!r} holds no agent's notes" if channel else "no channel is named"
        return Found(where, error=f"{told}; they are in global:agent-notes:AGENT and proj_ID:agent-notes:AGENT")
    agent, project = owner
    if not is_agent_name(agent):
        return Found(where, error=f"{agent!r} is no agent's name here; use letters, digits, and .-_@+: between them")
    try:
        return Found(where, agent, project, _draft(message, agent, channel), has_id=_has_id(message))
    except (ValueError, RecursionError) as error:
        return Found(where, error=_reason(error))


def _draft(message: Mapping[str, Any], agent: str, channel: str) -> Draft:
    """The note of a message; what has no place in it stays under `older`. Raises ValueError for what is amiss."""
    rest = {name: value for name, value in message.items() if name not in _CHANNEL_NAMES}
    content = rest.pop("content", None)
    if not isinstance(content, str) or not content.strip():
        raise ValueError("it has no text in `content`")
    if _SURROGATE.search(json.dumps(message, ensure_ascii=False)):
        raise ValueError("it has characters that are no UTF-8, which no note can hold")
    created_at, shortened = _moment(rest)
    inner = rest.pop("metadata", None)
    own = dict(inner) if isinstance(inner, dict) else {}
    if inner is not None and not isinstance(inner, dict):
        rest["metadata"] = inner
    topic, session_id = _taken(("topic",), rest, own), _taken(("session_id", "session"), rest, own)
    tags = _tags(rest, own)
    is_external = str(rest.get("provenance", own.get("provenance", ""))).strip().casefold().startswith(EXTERNAL)
    metadata, older = _sorted_out(own, rest)
    older |= {name: value for name, value in shortened.items() if name not in older}
    identity: list[Any] = [channel, message.get("id"), created_at.isoformat(), content]
    if not _has_id(message):  # then all that it says tells it from others
        identity += [sorted(tags), session_id, topic, metadata, older]
    return Draft(
        content,
        topic=topic,
        tags=tuple(tags),
        session_id=session_id,
        provenance=EXTERNAL if is_external else "task",
        created_by=f"agent:{agent}",
        created_at=created_at,
        metadata=metadata | ({OLDER: older} if older else {}),
        id=_digest(identity),
    )


def _has_id(message: Mapping[str, Any]) -> bool:
    return message.get("id") not in (None, "")


def _digest(identity: Sequence[Any]) -> str:
    told = json.dumps(identity, default=str, sort_keys=True)
    return sha256(told.encode(errors="replace")).hexdigest()[:16]


def _sorted_out(own: Mapping[str, Any], rest: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The metadata under its own names as far as a note may have them; and all else that the message said."""
    metadata, older = {}, {}
    for name, value in [*own.items(), *rest.items()]:
        is_free = name not in metadata and name != OLDER and not reason_against(name)
        if is_free and (name != "confidence" or is_share(value)):
            metadata[name] = holdable(value)
        else:
            older[name if name not in older else f"{name} (message)"] = holdable(value)
    return metadata, older


def _taken(names: Iterable[str], *places: dict[str, Any]) -> str:
    """The first of these that is there, taken out of where it stands; what differs from it stays."""
    found = ""
    for place in places:
        for name in names:
            value = place.get(name)
            if isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip():
                found = found or str(value)
                if str(value) == found:
                    del place[name]
    return found


def _tags(*places: dict[str, Any]) -> list[str]:
    tags: list[str] = []
    for place in places:
        value = place.get("tags")
        if isinstance(value, str):
            tags += value.split(",")
        elif isinstance(value, list) and all(isinstance(each, str | int | float) for each in value):
            tags += [str(each) for each in value]
        else:
            continue
        del place["tags"]
    return tags


def _moment(rest: dict[str, Any]) -> tuple[datetime, dict[str, Any]]:
    """When the message was written, taken out of it: ISO, or since the epoch in seconds or finer; and by its name what
    it said, where that is finer than the milliseconds of a note."""
    for name in _TIME_NAMES:
        value = rest.get(name)
        moment = moment_in(value)
        if moment is not None:
            del rest[name]
            is_finer = moment.microsecond % 1000 or _FINER.search(str(value))
            return moment, {name: value} if is_finer else {}
    raise ValueError(f"it has no time that can be read in {', '.join(_TIME_NAMES)}; give ISO 8601 or epoch seconds")


def moment_in(value: Any) -> datetime | None:
    """The time that a value of an export tells: ISO, or since the epoch in seconds or finer; None for no time."""
    if isinstance(value, str):
        text = value.strip()
        try:
            return _since_epoch(float(text))
        except ValueError:
            pass
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            return moment_from(text)
        try:
            return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
        except OverflowError:
            return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return _since_epoch(float(value)) if is_number and abs(value) < _LARGEST else None


def _since_epoch(number: float) -> datetime | None:
    """Seconds, or what has so many digits that it counts milli-, micro- or nanoseconds."""
    for _ in range(3):
        if abs(number) < 1e11:
            break
        number /= 1000
    try:
        return _EPOCH + timedelta(seconds=number)
    except (OverflowError, ValueError):
        return None


def holdable(value: Any, depth: int = 0) -> Any:
    """Of a value of an export, what frontmatter can hold; what it cannot, as the text that it was in the file."""
    is_too_large = isinstance(value, int) and not -_LARGEST <= value < _LARGEST
    if is_too_large or (isinstance(value, float) and not math.isfinite(value)):
        return str(value)
    if isinstance(value, dict | list) and depth >= _DEEPEST:
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        return {name: holdable(each, depth + 1) for name, each in value.items()}
    if isinstance(value, list):
        return [holdable(each, depth + 1) for each in value]
    return value
