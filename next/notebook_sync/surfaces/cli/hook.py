"""`context hook`: what an agent program runs at each message. It must never hold a message up, nor fail it: it answers
within its time, or not at all."""

from __future__ import annotations

import sys
from threading import Thread

from notebook_sync.errors import NotebookError
from notebook_sync.notebook import Notebook, load_operations
from notebook_sync.registry import OPERATIONS, call
from notebook_sync.services.recall_hook import HookEvent, answer_of, event_of, recall
from notebook_sync.sessions import Session
from notebook_sync.surfaces.cli.index import PROGRAM

# Nobody waits for a message at a compaction, and a checkpoint reads what other programs wrote.
LIMIT_SECONDS, COMPACTION_SECONDS = 1.0, 10.0


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


def _answer(folder: str | None, session: Session, event: HookEvent, answers: list[str]) -> None:
    try:
        with Notebook.find(folder or ".") as notebook:
            answers.append(answer_of(event, recall(notebook.core, session, event)))
            if event.is_compaction:
                _take_checkpoint(notebook, session)
    except NotebookError as error:
        sys.stderr.write(f"{PROGRAM}: no pointers this time: {error}\n")


def _take_checkpoint(notebook: Notebook, session: Session) -> None:
    load_operations()
    checkpoint = OPERATIONS.get("checkpoint create")
    if checkpoint and checkpoint.is_listed_for(session, notebook.settings):
        call(notebook, checkpoint, {"name": "before compaction"}, session)
