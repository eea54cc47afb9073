"""Conversations with models, as other programs keep them: Claude Code, Codex, and the exports of ChatGPT and Claude.

What looks like a password or a key is removed before anything else happens to a text. Its words are those of others:
each note says so, and nothing in it becomes a fact unless the owner adds it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from notebook_sync.errors import BackendDown, MissingExtra, UsageError
from notebook_sync.files.frontmatter import EXTERNAL, storable
from notebook_sync.files.new_note import slug
from notebook_sync.files.page import plain, shorten
from notebook_sync.llm import llm_of
from notebook_sync.services.core import Core
from notebook_sync.services.extract import extract_facts
from notebook_sync.services.importers import any_moment
from notebook_sync.services.importing import Failure, Item, NewNote, Warned
from notebook_sync.sessions import Session

_LARGEST, _LONGEST_TITLE = 256 << 20, 80
_PERSONS = {"user": "user", "human": "user", "assistant": "assistant"}
_REMOVED = "[removed]"
_SECRETS = [
    (re.compile(pattern, re.DOTALL), replacement)
    for pattern, replacement in (
        (r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", _REMOVED),
        (r"\b(?:sk|pk|rk)[-_][\w-]{16,}", _REMOVED),
        (r"\b(?:gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|hf_\w{20,}|npm_\w{20,})", _REMOVED),
        (r"\bxox[a-z]-[\w-]{10,}", _REMOVED),
        (r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b", _REMOVED),
        (r"\bAIza[\w-]{30,}", _REMOVED),
        (r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*", _REMOVED),
        (r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{12,}", rf"\1 {_REMOVED}"),
        (r"(://[^\s/:@]*:)[^\s/@]+@", rf"\1{_REMOVED}@"),
        (
            r"(?i)([\w-]*(?:passw(?:or)?d|passphrase|secret|api[_-]?key|access[_-]?key|token)[\w-]*[\"']?\s*[:=]\s*[\"']?)"
            r"[^\s\"',;]{4,}",
            rf"\1{_REMOVED}",
        ),
    )
]


class Said(NamedTuple):
    """One message of a person or a model."""

    role: str
    text: str


class Conversation(NamedTuple):
    """A conversation: the program, its id there, its title ("" for none), when it began, and what was said."""

    source: str
    session: str
    title: str
    at: datetime | None
    said: Sequence[Said]


def redacted(text: str) -> str:
    """A text without what looks like a password or a key."""
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


def conversations_in(core: Core, session: Session, path: str, *, dry_run: bool) -> Iterator[Item]:
    """A research note for each conversation in a file, or in the files of a folder. With a model, it begins with the
    facts that the model proposes."""
    start = Path(path).expanduser()
    if not start.exists():
        raise UsageError(f"{path} is not there", next="name a file or a folder")
    files = (
        sorted(each for each in start.rglob("*") if each.suffix in (".json", ".jsonl")) if start.is_dir() else [start]
    )
    for file in files:
        place = str(file.relative_to(start)) if start.is_dir() else file.name
        if file.stat().st_size > _LARGEST:
            yield Failure(place, f"it is larger than {_LARGEST:,} bytes")
            continue
        try:
            found = list(_read(file.read_text(encoding="utf-8-sig"), file.stem))
        except (OSError, ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
            yield Failure(place, f"it cannot be read: {error}")
            continue
        if not found:
            yield Failure(place, "it has no conversation of a known form")
        for number, each in enumerate(found, 1):
            where = place if len(found) == 1 else f"{place}, conversation {number}"
            yield from _note(core, session, where, each, dry_run=dry_run)


def _note(core: Core, session: Session, place: str, found: Conversation, *, dry_run: bool) -> Iterator[Item]:
    said = [Said(each.role, storable(redacted(each.text))) for each in found.said if each.text.strip()]
    if not said:
        yield Failure(place, "nobody says anything in it")
        return
    id = f"c{sha256(f'{found.source} {found.session}'.encode()).hexdigest()[:16]}"
    title = plain(redacted(found.title)) or plain(said[0].text[:1_000]) or found.source
    title, at = shorten(" ".join(storable(title).split()), _LONGEST_TITLE), found.at or core.now()
    body = [f"# {title}"]
    is_known = core.index.documents.one(id, heavy=False) is not None
    if llm_of(core.settings.llm) is not None and not is_known and not dry_run:
        try:
            body += _proposals(core, session, said)
        except (BackendDown, MissingExtra) as error:
            yield Warned(f"{place}: no facts are proposed: {error}")
    body += [f"## {each.role.title()}\n\n{_quoted(each.text)}" for each in said]
    head = {
        "id": id,
        "title": title,
        "tags": ["conversation"],
        "created_at": at,
        "created_by": session.changed_by,
        "provenance": EXTERNAL,
        "conversation": {"source": found.source, "session": storable(redacted(found.session))},
    }
    stem = f"research_notes/{at:%Y-%m-%d}-{slug(title, 'conversation')}"
    yield NewNote(place, id, stem, head, "\n\n".join(body) + "\n")


def _proposals(core: Core, session: Session, said: Sequence[Said]) -> list[str]:
    """What a model proposes, as Markdown. Nothing of it is done."""
    found = extract_facts(core, session, [{"role": each.role, "content": each.text} for each in said], dry_run=True)
    lines = [f"- {plain(redacted(each.content))} ({plain(each.section)})" for each in found.additions]
    about = [_quoted(redacted(found.summary))] if found.summary else []
    return [*about, *(["## Proposed facts\n\n" + "\n".join(lines)] if lines else [])]


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.strip().splitlines())


# ---- formats


def _read(text: str, name: str) -> Iterator[Conversation]:
    """The conversations in a text, in whichever form; none for another text."""
    try:
        whole = json.loads(text)
    except ValueError:
        whole = None
    if whole is None or (isinstance(whole, dict) and "type" in whole):
        lines = [value for line in text.split("\n") if isinstance(value := _json(line), dict)]
        yield from (
            _of_claude_code(lines, name) if any("sessionId" in each for each in lines) else _of_codex(lines, name)
        )
        return
    for each in whole if isinstance(whole, list) else [whole]:
        if isinstance(each, dict) and "mapping" in each:
            yield from _of_chatgpt(each)
        elif isinstance(each, dict) and "chat_messages" in each:
            yield from _of_claude(each)


def _json(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None  # the last line of a program that still writes


def _of_claude_code(lines: Sequence[Mapping[str, Any]], name: str) -> Iterator[Conversation]:
    """One file is one session: a line for each message, of which tools' and side chains' are left out."""
    said = [
        Said(_PERSONS[each["type"]], _text_of((each.get("message") or {}).get("content")))
        for each in lines
        if each.get("type") in _PERSONS and not each.get("isMeta") and not each.get("isSidechain")
    ]
    session = next((str(each["sessionId"]) for each in lines if each.get("sessionId")), name)
    title = next((str(each["summary"]) for each in lines if each.get("type") == "summary"), "")
    yield Conversation("claude-code", session, title, _began(lines, "timestamp"), said)


def _of_codex(lines: Sequence[Mapping[str, Any]], name: str) -> Iterator[Conversation]:
    """One file is one session: its first line describes it; messages are items, in newer files within a payload."""
    items = [each["payload"] if isinstance(each.get("payload"), dict) else each for each in lines]
    about = next((each for each in items if each.get("id") and each.get("type") != "message"), {})
    messages = [each for each in items if each.get("type") == "message" and each.get("role") in _PERSONS]
    said = [Said(_PERSONS[each["role"]], _text_of(each.get("content"))) for each in messages]
    if said:
        yield Conversation("codex", str(about.get("id") or name), "", _began(lines, "timestamp"), said)


def _of_chatgpt(found: Mapping[str, Any]) -> Iterator[Conversation]:
    """Messages are nodes of a tree; the conversation is the path to the current one."""
    nodes, at = found["mapping"], found.get("current_node")
    path: list[Mapping[str, Any]] = []
    while at in nodes and len(path) < len(nodes):
        path.append(nodes[at])
        at = nodes[at].get("parent")
    messages = [each["message"] for each in reversed(path) if isinstance(each.get("message"), dict)]
    said = [(each["author"]["role"], _text_of((each.get("content") or {}).get("parts"))) for each in messages]
    session = str(found.get("conversation_id") or found.get("id") or found.get("create_time"))
    spoken = [Said(_PERSONS[role], text) for role, text in said if role in _PERSONS]
    yield Conversation("chatgpt", session, str(found.get("title") or ""), _began([found], "create_time"), spoken)


def _of_claude(found: Mapping[str, Any]) -> Iterator[Conversation]:
    """Messages are a list; their text is also in blocks."""
    said = [
        Said(_PERSONS[each["sender"]], _text_of(each.get("content")) or str(each.get("text") or ""))
        for each in found["chat_messages"]
        if each.get("sender") in _PERSONS
    ]
    title, session = str(found.get("name") or ""), str(found.get("uuid"))
    yield Conversation("claude", session, title, _began([found], "created_at"), said)


def _text_of(content: Any) -> str:
    """The text of a message: a text, or blocks, of which only those of text count."""
    blocks = content if isinstance(content, list) else [content]
    texts = [each.get("text") if isinstance(each, dict) else each for each in blocks]
    return "\n\n".join(each for each in texts if isinstance(each, str) and each.strip())


def _began(records: Sequence[Mapping[str, Any]], name: str) -> datetime | None:
    """The first time that a record has."""
    for value in (each.get(name) for each in records):
        if moment := any_moment(value):
            return moment
    return None
