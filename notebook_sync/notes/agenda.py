"""What the runtime files ask for now: the rule for somebody, the reminders that are due. Asks files and the clock."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from notebook_sync.notes.conflict_marks import conflict_marks
from notebook_sync.notes.prompting.system_prompt import SystemPrompt
from notebook_sync.notes.runtime import reminders, rules
from notebook_sync.notes.runtime.due import Due, standing_at
from notebook_sync.notes.runtime.entries import Contents, contents_of
from notebook_sync.notes.runtime.standing import Standing, standing_of
from notebook_sync.notes.showing import sees_all
from notebook_sync.sessions import Session
from notebook_sync.settings import Settings
from prompt.comments import without_hidden


class Agenda:
    """Reads the files as the prompt does: one that is being written counts as it last was.

    A session that may not change a file is told nothing of an entry that the prompt does not show.
    """

    def __init__(self, prompt: SystemPrompt, settings: Settings) -> None:
        self._prompt = prompt
        self._settings = settings.prompt
        self.timezone = settings.timezone

    def rules_for(self, identity: str, session: Session, channel: str = "") -> Standing:
        """The rule for `identity` today. Raises UsageError where it is blank."""
        found, malformed = rules.read_rules(self._contents(rules.PATH, session))
        marks = conflict_marks(self._text(rules.PATH))
        today = self._now().date()
        return standing_of(identity, found, today, channel=channel, malformed=malformed, conflicts=marks)

    def reminders(self, session: Session, *, due: bool = False) -> list[Due]:
        """All of them, or those that are due or overdue, the most pressing first."""
        now = self._now()
        found, _ = reminders.read_reminders(self._contents(reminders.PATH, session), now.date())
        return [one for one in standing_at(now, found, self.timezone) if one.is_due or not due]

    def unread_reminders(self, session: Session) -> list[int]:
        """The lines that stand where reminders do and cannot be read as ones: nobody is told when they are due."""
        _, malformed = reminders.read_reminders(self._contents(reminders.PATH, session), self._now().date())
        return [one.line for one in malformed]

    def _contents(self, path: str, session: Session) -> Contents:
        text = self._text(path)
        contents = contents_of(text)
        if sees_all(session, path, self._settings):
            return contents
        expired = {one.line for one in without_hidden(text, keep_grammar=False, today=self._now().date()).expired}
        return replace(contents, entries=tuple(one for one in contents.entries if one.line not in expired))

    def _text(self, path: str) -> str:
        return (self._prompt.content_of(path) or b"").decode(errors="replace")

    def _now(self) -> datetime:
        return datetime.now(self.timezone)
