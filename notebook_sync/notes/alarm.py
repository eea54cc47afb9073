"""Tells of reminders as they fall due, and says how long nothing more can: whoever waits need not ask meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from notebook_sync.notes.agenda import Agenda
from notebook_sync.notes.runtime.due import Due, seconds_until_next
from notebook_sync.notes.runtime.reminders import PATH
from notebook_sync.notes.runtime.telling import Telling

# A clock may be set and a machine may sleep, and no timer tells of either.
_LONGEST_SECONDS = 60.0


class Alarm:
    """The alarm of one notebook. `path` is the file it goes by: after a save of it, it is to be rung at once."""

    path = PATH

    def __init__(self, agenda: Agenda, telling: Telling) -> None:
        self._agenda = agenda
        self._telling = telling

    def ring(self) -> tuple[Sequence[Due], float]:
        """Record an event for each reminder that has fallen due and was not told of, by whatever process: which those
        are, and in how many seconds to ring again."""
        reminders = self._agenda.reminders()
        told = self._telling.tell(reminders)
        # Against what was found above: what has fallen due since then is due in no time, and not missed.
        seconds = seconds_until_next(datetime.now(UTC), reminders, self._agenda.timezone)
        return told, min(seconds, _LONGEST_SECONDS)
