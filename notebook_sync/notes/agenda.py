"""What the runtime files ask for now: the rule for somebody, the reminders that are due. Reads files and the clock."""

from __future__ import annotations

from datetime import datetime

from notebook_sync.notes.conflict_marks import conflict_marks
from notebook_sync.notes.prompting.system_prompt import SystemPrompt
from notebook_sync.notes.runtime import reminders, rules
from notebook_sync.notes.runtime.answers import Standing
from notebook_sync.notes.runtime.due import Due, standing_at
from notebook_sync.notes.runtime.entries import Contents, contents_of
from notebook_sync.notes.runtime.standing import in_force, standing_of
from notebook_sync.notes.showing import sees_all
from notebook_sync.sessions import Session
from notebook_sync.settings import Settings


class Agenda:
    """Reads the files as the prompt does: a file that is being written counts as it last was.

    Reminders that are past or have not begun are left out for every session; such rules are left out for sessions that
    may not change the file. A file with `provenance: external` has no rules and no reminders, as no prompt shows it.
    """

    def __init__(self, prompt: SystemPrompt, settings: Settings) -> None:
        self._prompt = prompt
        self._settings = settings.prompt
        self.timezone = settings.timezone

    def rules_for(self, identity: str, session: Session, channel: str = "") -> Standing:
        """The rule for `identity` now; for "" all rules in force. Raises UsageError for other blank text."""
        now = self._now().replace(tzinfo=None)
        text = self._text(rules.PATH)
        contents = contents_of(text)
        if not sees_all(session, rules.PATH, self._settings):
            contents = contents.holding_at(now)
        marks = conflict_marks((self._prompt.read(rules.PATH).found or b"").decode(errors="replace"))
        found, malformed = rules.read_rules(contents, now.date())
        ask = standing_of if identity else in_force
        return ask(identity, found, now, channel=channel, malformed=malformed, conflicts=marks)

    def reminders(self, *, due: bool = False) -> list[Due]:
        """All of them, or those that are due or overdue, the most pressing first."""
        now = self._now()
        found, _ = reminders.read_reminders(self._reminders(now), now.date())
        return [one for one in standing_at(now, found, self.timezone) if one.is_due or not due]

    def unread_reminders(self) -> list[int]:
        """The lines under the headings of reminders that cannot be read as ones: they never fall due."""
        now = self._now()
        found, malformed = reminders.read_reminders(self._reminders(now), now.date())
        return sorted({one.line for one in malformed} - {one.line for one in found})

    def _reminders(self, now: datetime) -> Contents:
        return contents_of(self._text(reminders.PATH)).holding_at(now.replace(tzinfo=None))

    def _text(self, path: str) -> str:
        source = self._prompt.read(path)
        return "" if source.external else (source.content or b"").decode(errors="replace")

    def _now(self) -> datetime:
        return datetime.now(self.timezone)
