"""Conversations with models, as other programs keep them: Claude Code, Codex, and the exports of ChatGPT and Claude.

What looks like a password or a key is removed before anything else happens to a text. Its words are those of others:
each note says so, and nothing in it becomes a fact unless the owner adds it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import Any, NamedTuple

from notebook_sync.errors import BackendDown, MissingExtra, UsageError
from notebook_sync.files.compose import slug
from notebook_sync.files.frontmatter import EXTERNAL, storable
from notebook_sync.files.page import plain, shorten
from notebook_sync.files.state import expanded
from notebook_sync.llm import llm_of
from notebook_sync.services.core import Core
from notebook_sync.services.extract import extract_facts, texts_in
from notebook_sync.services.importers import any_moment, json_values
from notebook_sync.services.importing import Failure, Item, NewNote
from notebook_sync.sessions import Session

_LONGEST_TITLE = 80
_Object = Mapping[str, Any]
_Said = Sequence[tuple[str, str]]
_PERSONS = {"user": "user", "human": "user", "assistant": "assistant"}
_REMOVED = "[removed]"
# No pattern reads a part of a text more than a few times, however long the text is.
_SECRETS = [
    (re.compile(pattern, re.DOTALL), replacement)
    for pattern, replacement in (
        (r"-----BEGIN [A-Z ]*PRIVATE KEY[A-Z ]*-----.*?(?:-----END [A-Z ]*PRIVATE KEY[A-Z ]*-----|\Z)", _REMOVED),
        (r"\b(?:sk|pk|rk)[-_][\w-]{16,}", _REMOVED),
        (r"\b(?:gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|hf_\w{20,}|npm_\w{20,})", _REMOVED),
        (r"\bxox[a-z]-[\w-]{10,}", _REMOVED),
        (r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b", _REMOVED),
        (r"\bAIza[\w-]{30,}", _REMOVED),
        (r"(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*", _REMOVED),
        (r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{12,}", rf"\1 {_REMOVED}"),
        (r"(://[^\s/:@]*:)[^\s/@]+@", rf"\1{_REMOVED}@"),
        (
            r"(?i)((?:passw(?:or)?d|passphrase|secret|api[_-]?key|access[_-]?key|token)[\w-]{0,40})"
            r"(\\*[\"']?\s*[:=]\s*)(?:\\*\"[^\"\n]{4,}\"|'[^'\n]{4,}'|\\*[\"']?[^\s\"']{4,})",
            rf"\1\2{_REMOVED}",
        ),
    )
]


class Conversation(NamedTuple):
    """A conversation: the program, its id there, its title, when it began, and roles with what they said, each as the
    program has it."""

    source: str
    session: Any
    title: Any
    times: Iterable[Any]
    said: Iterable[tuple[Any, Any]]


def redacted(text: str) -> str:
    """A text without what looks like a password or a key."""
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


def conversations_in(core: Core, path: str, *, session: Session, dry_run: bool) -> Iterator[Item]:
    """A research note for each conversation in a file, or in the files of a folder. With a model, it begins with the
    facts that the model proposes."""
    start = expanded(path)
    if not start.exists():
        raise UsageError(f"{path} is not there", next="name a file or a folder")
    files = [each for each in start.rglob("*") if each.suffix in (".json", ".jsonl") and each.is_file()]
    for file in sorted(files) if start.is_dir() else [start]:
        place = str(file.relative_to(start)) if start.is_dir() else file.name
        try:
            objects = [value for _, value in json_values(file) if isinstance(value, dict)]
        except UsageError as error:
            yield Failure(place, str(error))
            continue
        for number, read in enumerate(_read(objects, file.stem), 1):
            try:
                note, said = _note(core, session, place, read())
            except (ValueError, TypeError, AttributeError, LookupError, RecursionError):
                yield Failure(f"{place}, conversation {number}", "nobody says anything in it, in a form that is known")
                continue
            is_new = core.index.documents.one(note.id, heavy=False) is None
            if llm_of(core.settings.llm) is not None and is_new and not dry_run:
                try:
                    note = note._replace(body=_proposals(core, session, said) + note.body)
                except (BackendDown, MissingExtra) as error:
                    yield f"{place}: no facts are proposed: {error}"
            yield note._replace(body=f"# {note.head['title']}\n\n{note.body}")


def _note(core: Core, session: Session, place: str, found: Conversation) -> tuple[NewNote, _Said]:
    """The note of a conversation and what was said, without secrets. Raises ValueError where nobody says anything, and
    others for what is in no known form."""
    texts = [
        (_PERSONS.get(role, ""), storable(redacted("\n\n".join(texts_in(content))))) for role, content in found.said
    ]
    said = [(role, text) for role, text in texts if role and text.strip()]
    if not said:
        raise ValueError("nobody says anything")
    name = storable(redacted(str(found.session)))
    id = f"c{sha256(f'{found.source} {found.session}'.encode(errors='replace')).hexdigest()[:16]}"
    title = plain(redacted(str(found.title or ""))) or plain(said[0][1][:1_000]) or found.source
    title = shorten(" ".join(storable(title).split()), _LONGEST_TITLE)
    at = next(filter(None, map(any_moment, found.times)), core.now())
    head = {
        "id": id,
        "title": title,
        "tags": ["conversation"],
        "created_at": at,
        "created_by": session.changed_by,
        "provenance": EXTERNAL,
        "conversation": {"source": found.source, "session": name},
    }
    stem = f"research_notes/{at:%Y-%m-%d}-{slug(title, 'conversation')}"
    body = "\n\n".join(f"## {role.title()}\n\n{_quoted(text)}" for role, text in said)
    return NewNote(f"{place}: {name}", id, stem, head, f"{body}\n"), said


def _proposals(core: Core, session: Session, said: _Said) -> str:
    """What a model proposes, as Markdown. Nothing of it is done."""
    found = extract_facts(core, session, [{"role": role, "content": text} for role, text in said], dry_run=True)
    lines = [f"- {plain(redacted(each.content))} ({plain(each.section)})" for each in found.additions]
    facts = ["## Proposed facts", "\n".join(lines)] if lines else []
    return "".join(f"{each}\n\n" for each in filter(None, [_quoted(redacted(found.summary)), *facts]))


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.strip().splitlines())


# ---- formats


def _read(objects: Sequence[_Object], name: str) -> list[Callable[[], Conversation]]:
    """What reads each conversation in the objects of a file: one that is broken holds up no other."""
    if any("sessionId" in each for each in objects):
        return [partial(_of_claude_code, objects, name)]
    if any("mapping" in each for each in objects):
        return [partial(_of_chatgpt, each) for each in objects]
    if any("chat_messages" in each for each in objects):
        return [partial(_of_claude, each) for each in objects]
    return [partial(_of_codex, objects, name)]


def _of_claude_code(lines: Sequence[_Object], name: str) -> Conversation:
    """One file is one session: a line for each message, of which tools' and side chains' are left out."""
    session = next((each["sessionId"] for each in lines if each.get("sessionId")), name)
    title = next((each.get("summary") for each in lines if each.get("type") == "summary"), "")
    spoken = [each for each in lines if not each.get("isMeta") and not each.get("isSidechain")]
    said = [(each.get("type"), (each.get("message") or {}).get("content")) for each in spoken]
    return Conversation("claude-code", session, title, [each.get("timestamp") for each in lines], said)


def _of_codex(lines: Sequence[_Object], name: str) -> Conversation:
    """One file is one session: its first line describes it; messages are items, in newer files within a payload."""
    items = [each["payload"] if isinstance(each.get("payload"), dict) else each for each in lines]
    session = next((each["id"] for each in items if each.get("id") and each.get("type") != "message"), name)
    said = [(each.get("role"), each.get("content")) for each in items if each.get("type") == "message"]
    return Conversation("codex", session, "", [each.get("timestamp") for each in lines], said)


def _of_chatgpt(found: _Object) -> Conversation:
    """Messages are nodes of a tree; the conversation is the path to the current one."""
    nodes, at = found["mapping"], found.get("current_node")
    path: list[_Object] = []
    while at in nodes and len(path) < len(nodes):
        path.append(nodes[at])
        at = nodes[at].get("parent")
    messages = [each["message"] for each in reversed(path) if isinstance(each.get("message"), dict)]
    said = [(each["author"]["role"], (each.get("content") or {}).get("parts")) for each in messages]
    session = found.get("conversation_id") or found.get("id") or found.get("create_time")
    return Conversation("chatgpt", session, found.get("title"), [found.get("create_time")], said)


def _of_claude(found: _Object) -> Conversation:
    """Messages are a list; their text is also in blocks."""
    said = [(each.get("sender"), each.get("content") or each.get("text")) for each in found["chat_messages"]]
    return Conversation("claude", found.get("uuid"), found.get("name"), [found.get("created_at")], said)
