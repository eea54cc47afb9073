"""The prompt of each kind of session, as a model sees it, beside the files it is made of; and whether a line of theirs
gets through. It changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlencode

from fastapi import Query
from fastapi.responses import HTMLResponse

from notebook_sync.errors import NotebookError, UsageError
from notebook_sync.notebook import Notebook
from notebook_sync.notes.check_prompt import WHAT_STAYS
from notebook_sync.operations.prompts import Place
from notebook_sync.operations.registry import plain
from notebook_sync.sessions import Session
from notebook_sync.surfaces.dashboard.asking import Asking, Served, pages_router
from notebook_sync.surfaces.dashboard.pages import page
from notebook_sync.surfaces.dashboard.rendering import AT
from notebook_sync.surfaces.dashboard.runtime.prompt_view import view_of
from notebook_sync.surfaces.remedies import remedy_of
from prompt import Prompt, count_tokens

pages = pages_router()
MOST_PLACES: Final = 100
# Such that whatever it is written in, the address that has it is short enough.
_LONGEST: Final = 800
Kind = Literal["owner", "task", "external"]
Part = Literal["refs", "facts", "notes"]
# What a person calls each kind of session, and who that is.
SESSIONS: Mapping[Kind, tuple[str, str]] = {
    "owner": ("Owner", "a conversation with you"),
    "task": ("Task", "an agent on its own"),
    "external": ("External", "an agent that acts on someone else's message"),
}
_PARTS: Mapping[Part, str] = {
    "refs": "Recent notes, a line each",
    "facts": "Facts",
    "notes": "The agent's own notes",
}
_NOBODYS: Final = "Notes are those of one agent. Next: give its name below, in the field “Agent”."
Agent = Annotated[str, Query(max_length=64)]


@pages.get("/prompt")
def prompt_page(
    notebook: Served,
    asking: Asking,
    session: Kind = "owner",
    agent: Agent = "",
    include: Annotated[list[Part] | None, Query()] = None,
    task: Annotated[str, Query(max_length=_LONGEST)] = "",
) -> HTMLResponse:
    """One session's prompt, now."""
    wanted = list(dict.fromkeys(include or ()))
    is_nobodys, wrong = "notes" in wanted and not agent.strip(), ""
    try:
        found = notebook.prompt(Session.named(session, agent.strip()), include=wanted, task=task)
    except UsageError as error:
        found, wrong = notebook.prompt(Session.named(session)), _NOBODYS if is_nobodys else str(error)
    count = partial(count_tokens, encoding=found.encoding)
    waiting = notebook.prompts.waiting_for_trust()
    return page(
        "prompt.html",
        status=422 if wrong else 200,
        here="prompt",
        view=view_of(found, notebook.settings.prompt.max_tokens, _texts(notebook, asking, found), count),
        tabs=[(kind, name, _address(kind, agent, wanted, task)) for kind, (name, _) in SESSIONS.items()],
        kind=session,
        who=SESSIONS[session][1],
        agent=agent,
        choices=_PARTS.items(),
        include=wanted,
        task=task,
        wrong=wrong,
        line="",
        waiting={part.path: [line for line in waiting if line.path == part.path] for part in found.parts},
        what_stays=WHAT_STAYS,
    )


@pages.get("/prompt/line")
def line_page(
    notebook: Served,
    asking: Asking,
    session: Kind = "owner",
    line: Annotated[str, Query(max_length=_LONGEST)] = "",
) -> HTMLResponse:
    """Whether a line of a file is in that session's prompt, and if not, why."""
    found = notebook.prompts.explain(line, asking, as_=session).found if line.strip() else []
    return page(
        "prompt_line.html",
        here="prompt",
        kind=session,
        who=SESSIONS[session][1],
        line=line,
        at=AT,
        places=[_place(one) for one in found[:MOST_PLACES]],
        count=len(found),
    )


def _texts(notebook: Notebook, asking: Session, prompt: Prompt) -> Mapping[str, str]:
    """The prompt's files as they are, but those that changed since, or that nobody can read: of those, what the prompt
    was made of is shown."""
    texts = {}
    for part in prompt.parts:
        try:
            file = notebook.file(part.path, asking)
        except NotebookError:
            continue
        if file.digest == part.digest:
            texts[part.path] = file.text
    return texts


def _address(kind: Kind, agent: str, include: Sequence[Part], task: str) -> str:
    """The same wish for another kind of session."""
    wish = [("session", kind), ("agent", agent), *(("include", part) for part in include), ("task", task)]
    return "/prompt?" + urlencode([(name, value) for name, value in wish if value])


def _place(one: Place) -> Mapping[str, Any]:
    told = plain(one)
    return {**told, "remedy": "" if one.in_prompt else remedy_of(told)}
