"""The prompt as each kind of session gets it: what every part costs, what changed since yesterday, what waits for
trust, and whether a line is in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from starlette.responses import Response
from starlette.routing import BaseRoute

from notebook_sync.errors import NoSuchNote, NotebookError
from notebook_sync.registry import OPERATIONS, call
from notebook_sync.services.trust import FOR_TRUST, Trusted, TrustedFile, compared, waiting_files
from notebook_sync.sessions import KINDS, Session
from notebook_sync.surfaces.dashboard.past import Difference, difference_of
from notebook_sync.surfaces.dashboard.shell import Ask, Shell

_PAGE = "/prompt"
_MOST_FOUND = 50


def routes(shell: Shell) -> list[BaseRoute]:
    """The page, and the form that accepts waiting lines."""
    page = PromptPage(shell)
    shell.add_link("Notebook", _PAGE, "Prompt")
    return [
        shell.route(_PAGE, page.show, "GET"),
        shell.route(f"{_PAGE}/changes", page.changes, "GET"),
        shell.route(f"{_PAGE}/trust", page.accept, "POST"),
    ]


class PromptPage:
    """The page of one notebook's prompt."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    def show(self, ask: Ask) -> Response:
        """The prompt of a kind of session."""
        kind = ask.query.get("session", KINDS[0])
        session = Session.named(kind if kind in KINDS else KINDS[0])
        prompt, problems = self._as(session, "prompt"), list[str]()
        waiting, found = list[Any](), None
        try:
            waiting = self._waiting()
        except NotebookError as error:  # git does not answer; the rest is shown
            problems.append(error.message)
        text = ask.query.get("text", "").strip()
        try:
            found = self._as(session, "explain", text=text).results[:_MOST_FOUND] if text else None
        except NotebookError as error:
            problems.append(error.message)
        return self._shell.page(
            ask,
            "prompt.html",
            kinds=KINDS,
            session=session.kind,
            prompt=prompt,
            most=max(prompt.tokens, 1),
            max_tokens=self._shell.notebook.settings.prompt.max_tokens,
            waiting=waiting,
            text=text,
            found=found,
            problems=[*(each for each in prompt.problems if FOR_TRUST not in each), *problems],
        )

    def changes(self, ask: Ask) -> Response:
        """What changed since yesterday, which git takes a while to say: the page asks for it when it is shown."""
        paths = [part["path"] for part in self._as(Session.owner(), "prompt").parts if part["path"]]
        return self._shell.page(
            ask, "prompt_changes.html", changes=list(self._changes(paths)), is_inner=ask.is_fragment
        )

    def accept(self, ask: Ask) -> Response:
        """Trust a file as it was shown. Raises Conflict where it has changed since."""
        path = ask.form.get("file", "")
        seen = Trusted([TrustedFile(path, ask.form.get("digest", ""), 0, accepted=False)], "")
        self._shell.call("trust", {"file": path}, seen=seen)
        return self._shell.done(ask, ask.back_to(_PAGE), f"Done: trusted {path}")

    def _as(self, session: Session, words: str, **given: str) -> Any:
        return call(self._shell.notebook, OPERATIONS[words], given, session, from_text=True)

    def _waiting(self) -> list[tuple[TrustedFile, Difference]]:
        """Each file with changes that wait, and the difference from its trusted version."""
        found = (compared(*each) for each in waiting_files(self._shell.notebook.core))
        return [(file, difference_of(diff)) for file, diff in found]

    def _changes(self, paths: list[str]) -> Iterator[tuple[str, Difference]]:
        """What changed in each file since yesterday at this time."""
        before = self._shell.notebook.core.now() - timedelta(days=1)
        for path in paths:
            with suppress(NoSuchNote):  # a file that is gone, and that git never had
                if diff := self._change_of(path, before):
                    yield path, difference_of(diff)

    def _change_of(self, path: str, before: datetime) -> str:
        with suppress(NoSuchNote):
            if self._shell.call("read", {"id": path}).updated_at <= before:
                return ""
        versions = self._shell.call("history", {"id": path}).results
        then = next((each.rev for each in versions if each.at <= before and each.rev), "")
        return str(self._shell.call("diff", {"id": path, "since": then}).diff) if then else ""
