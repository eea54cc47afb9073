"""The prompt as each kind of session gets it: what every part costs, what changed since yesterday, what waits for
trust, and whether a line is in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from starlette.responses import Response

from notebook_sync.errors import NoSuchNote, NotebookError
from notebook_sync.services.trust import FOR_TRUST, Trusted, TrustedFile, compared, waiting_files
from notebook_sync.sessions import KINDS, Session
from notebook_sync.surfaces.dashboard.past import Difference, difference_of
from notebook_sync.surfaces.dashboard.shell import Ask, Shell, route

_PAGE = "/prompt"
_MOST_FOUND = 50


@route(_PAGE, link=("Notebook", "Prompt"))
def show(shell: Shell, ask: Ask) -> Response:
    """The prompt of a kind of session."""
    kind = ask.query.get("session", KINDS[0])
    session = Session.named(kind if kind in KINDS else KINDS[0])
    prompt, problems = shell.call("prompt", session=session), list[str]()
    waiting = list[Any]()
    try:
        waiting = _waiting(shell)
    except NotebookError as error:  # git does not answer; the rest is shown
        problems.append(error.message)
    text = ask.query.get("text", "").strip()
    found, trouble = shell.tried("explain", {"text": text}, session) if text else (None, None)
    return shell.page(
        ask,
        "prompt.html",
        kinds=KINDS,
        session=session.kind,
        prompt=prompt,
        most=max(prompt.tokens, 1),
        max_tokens=shell.notebook.settings.prompt.max_tokens,
        waiting=waiting,
        text=text,
        found=found and found.results[:_MOST_FOUND],
        problems=[
            *(each for each in prompt.problems if FOR_TRUST not in each),
            *problems,
            *([trouble.message] if trouble else []),
        ],
    )


@route(f"{_PAGE}/changes")
def show_changes(shell: Shell, ask: Ask) -> Response:
    """What changed since yesterday, which git takes a while to say: the page asks for it when it is shown."""
    paths = [part["path"] for part in shell.call("prompt").parts if part["path"]]
    return shell.page(ask, "prompt_changes.html", changes=list(_changes(shell, paths)), is_inner=ask.is_fragment)


@route(f"{_PAGE}/trust", "POST")
def accept(shell: Shell, ask: Ask) -> Response:
    """Trust a file as it was shown. Raises Conflict where it has changed since."""
    path = ask.form.get("file", "")
    seen = Trusted([TrustedFile(path, ask.form.get("digest", ""), 0, accepted=False)], "")
    shell.call("trust", {"file": path}, seen=seen)
    return shell.done(ask.back_to(_PAGE), f"Done: trusted {path}")


def _waiting(shell: Shell) -> list[tuple[TrustedFile, Difference]]:
    """Each file with changes that wait, and the difference from its trusted version."""
    found = (compared(*each) for each in waiting_files(shell.notebook.core))
    return [(file, difference_of(diff)) for file, diff in found]


def _changes(shell: Shell, paths: list[str]) -> Iterator[tuple[str, Difference]]:
    """What changed in each file since yesterday at this time."""
    before = shell.notebook.core.now() - timedelta(days=1)
    for path in paths:
        with suppress(NoSuchNote):  # a file that is gone, and that git never had
            if diff := _change_of(shell, path, before):
                yield path, difference_of(diff)


def _change_of(shell: Shell, path: str, before: datetime) -> str:
    with suppress(NoSuchNote):
        if shell.call("read", {"id": path}).updated_at <= before:
            return ""
    versions = shell.call("history", {"id": path}).results
    then = next((each.rev for each in versions if each.at <= before and each.rev), "")
    return str(shell.call("diff", {"id": path, "since": then}).diff) if then else ""
