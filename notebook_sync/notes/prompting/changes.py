"""What saves do to the prompt, told one after the other. Reads files alone, and only after a save of one of them."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Any

from notebook_sync.notes.prompting.system_prompt import SystemPrompt
from notebook_sync.sessions import Session
from prompt import Change, Prompt, PromptError, compare


@dataclass(frozen=True, slots=True)
class PromptChanged:
    """The owner's prompt is now the one with this revision."""

    revision: str
    change: Change

    def as_dict(self) -> dict[str, Any]:
        """The shape that `watch --json` prints."""
        change = self.change.as_json()
        kept = {key: change[key] for key in ("tokens_before", "fell_out", "came_back", "stable_changes")}
        return {"event": "prompt", "revision": self.revision, "tokens": change["tokens_after"], **kept}


class PromptChanges:
    """Remembers the owner's prompt from one save to the next."""

    def __init__(self, prompt: SystemPrompt) -> None:
        self._prompt = prompt
        self._last = self._now()

    def after(self, paths: Set[str]) -> PromptChanged | None:
        """What saves of these paths changed; None for nothing."""
        if paths.isdisjoint(self._prompt.paths):
            return None
        before, self._last = self._last, self._now()
        if before is None or self._last is None or before.stable == self._last.stable:
            return None
        return PromptChanged(self._last.revision, compare(before, self._last))

    def _now(self) -> Prompt | None:
        """None where tokens cannot be counted, of which `doctor` tells; following the files goes on."""
        try:
            return self._prompt.assemble(Session.owner())
        except PromptError:
            return None
