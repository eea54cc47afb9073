"""The port of whoever reasons about a task brief, and the language model as one.

What a reasoner answers is data: nobody runs it, and nothing of it is kept before it was checked.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal, Protocol

from notebook_sync.errors import LlmDown, LlmNonsense, SynthesisDown

if TYPE_CHECKING:
    from notebook_sync.llm import Llm

Kind = Literal["bridge", "llm"]


class Reasoner(Protocol):
    """Asked one question at a time, by any thread."""

    name: str
    """For people, without secrets."""

    kind: Kind

    question_characters: int
    """So many characters a question may have."""

    def require(self) -> None:
        """Raises ConfigError, with what to set, where the settings cannot lead to an answer. Asks nobody."""

    def ask(self, question: str) -> str:
        """The answer, without what the one asked adds to every answer. Raises SynthesisDown, also for an answer that
        says inside that it is none, or that is late."""


class LlmReasoner:
    """The model of [llm], given so many seconds. It answers from the question alone."""

    kind: Kind = "llm"
    # Of the largest brief that is compiled; models that take less say so.
    question_characters = 100_000

    def __init__(self, llm: Llm, seconds: float) -> None:
        self._llm = llm
        self._seconds = seconds
        self.name = llm.name

    def require(self) -> None:
        """Raises LlmNotConfigured."""
        self._llm.require()

    def ask(self, question: str) -> str:
        """Raises SynthesisDown, LlmNotConfigured."""
        until = time.monotonic() + self._seconds
        try:
            return self._llm.say([{"role": "user", "content": question}], seconds=self._seconds)
        except (LlmDown, LlmNonsense) as error:
            reason = error.reason
            if time.monotonic() >= until:
                reason = (
                    f"no answer within {self._seconds:g} seconds; use a faster model, or raise timeout_seconds below "
                    "[tier2] in notebook.toml"
                )
            raise SynthesisDown(self.name, reason) from None
