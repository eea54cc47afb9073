"""`context hook`: what an agent program runs at each message. It must never hold a message up, nor fail it: it answers
within its time, or not at all."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from threading import Thread
from typing import Any, NamedTuple

from notebook_sync.errors import NotebookError
from notebook_sync.notebook import Notebook
from notebook_sync.registry import NOT_EXTERNAL
from notebook_sync.services.recall import forget, pointers_for
from notebook_sync.sessions import Session
from notebook_sync.surfaces.cli.index import PROGRAM

# Nobody waits for a message at a compaction, and a checkpoint reads what other programs wrote.
LIMIT_SECONDS, COMPACTION_SECONDS = 1.0, 10.0
_PROMPTS = ("prompt", "user_prompt", "message", "user_message", "text", "content")
_NAMES = ("hook_event_name", "hookEventName", "event", "type")
_CONVERSATIONS = ("session_id", "sessionId", "sessionID", "conversation_id")
_COMPACTIONS = ("compact", "compress")
_MOST_PARTS, _DEEPEST = 20, 3


class HookEvent(NamedTuple):
    """What happens in an agent program. `name` is "" for a program that names none.

    `is_compaction`: the conversation is about to be shortened. `forgets`: what was shown before is no longer in it.
    """

    name: str
    message: str
    conversation: str
    is_compaction: bool
    forgets: bool


def answer_hook(folder: str | None, session: Session) -> None:
    """Read an event from standard input, and print what to add to the conversation."""
    event = event_of(sys.stdin.buffer.read().decode(errors="replace"))
    answers: list[str] = []
    work = Thread(target=_answer, args=(folder, session, event, answers), daemon=True)
    work.start()
    work.join(COMPACTION_SECONDS if event.is_compaction else LIMIT_SECONDS)
    if work.is_alive():
        sys.stderr.write(f"{PROGRAM}: no pointers this time: the notebook did not answer in time\n")
    elif answers and answers[0]:
        print(answers[0])


def event_of(text: str) -> HookEvent:
    """The event that a program describes in JSON, whatever else it says; any other text is a message."""
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        said = text
    said = said if isinstance(said, dict) else {"prompt": said}
    name = _first(said, _NAMES)
    is_compaction = any(each in name.lower() for each in _COMPACTIONS)
    forgets = is_compaction or said.get("source") in ("compact", "clear")
    return HookEvent(name, _first(said, _PROMPTS), _first(said, _CONVERSATIONS), is_compaction, forgets)


def _answer(folder: str | None, session: Session, event: HookEvent, answers: list[str]) -> None:
    try:
        with Notebook.find(folder or ".") as notebook:
            answers.append(answer_of(notebook, session, event))
            if event.is_compaction and session.kind in NOT_EXTERNAL:
                notebook.stream.checkpoint("before compaction", session)
    except NotebookError as error:
        sys.stderr.write(f"{PROGRAM}: no pointers this time: {error}\n")


def answer_of(notebook: Notebook, session: Session, event: HookEvent) -> str:
    """The answer in the form that the program reads: JSON for an event with a name, as Claude Code, Codex and Gemini
    have them."""
    if event.forgets:
        forget(notebook.core, event.conversation)
    text = pointers_for(notebook.core, session, event.message, event.conversation)
    if not text or not event.name:
        return text
    answer = {"hookEventName": event.name, "additionalContext": text}
    return json.dumps({"hookSpecificOutput": answer}, ensure_ascii=False)


def _first(said: Mapping[str, Any], names: Iterable[str]) -> str:
    return next((text for name in names if (text := _text_of(said.get(name)))), "")


def _text_of(value: Any, depth: int = 0) -> str:
    """A text as programs give it: plain, as the content of a message, or in parts."""
    if isinstance(value, dict):
        value = value.get("content") or value.get("text") or value.get("parts")
    if isinstance(value, list) and depth < _DEEPEST:
        value = "\n".join(filter(None, (_text_of(each, depth + 1) for each in value[:_MOST_PARTS])))
    return value if isinstance(value, str) else ""
