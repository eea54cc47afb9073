"""What the runtime files ask for now: the rule for somebody, the reminders that are due. Asks files and the clock."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from notebook_sync.notes import reminders, rules
from notebook_sync.notes.due import Due, standing_at
from notebook_sync.notes.entries import Contents, contents_of
from notebook_sync.notes.standing import Standing, standing_of
from notebook_sync.notes.system_prompt import SystemPrompt


class Agenda:
    """Reads the files as the prompt does: one that is being written counts as it last was."""

    def __init__(self, prompt: SystemPrompt, timezone: ZoneInfo) -> None:
        self._prompt = prompt
        self.timezone = timezone

    def rules_for(self, identity: str, channel: str = "") -> Standing:
        """The rule for `identity` today. Raises UsageError where it is blank."""
        found, malformed = rules.read_rules(self._contents(rules.PATH))
        return standing_of(identity, found, self._now().date(), channel=channel, malformed=malformed)

    def reminders(self, *, due: bool = False) -> list[Due]:
        """All of them, or those that are due or overdue, the most pressing first."""
        now = self._now()
        found, _ = reminders.read_reminders(self._contents(reminders.PATH), now.date())
        return [one for one in standing_at(now, found, self.timezone) if one.is_due or not due]

    def _contents(self, path: str) -> Contents:
        return contents_of((self._prompt.content_of(path) or b"").decode(errors="replace"))

    def _now(self) -> datetime:
        return datetime.now(self.timezone)
