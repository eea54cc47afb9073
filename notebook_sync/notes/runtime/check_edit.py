"""What an edit wrote into a runtime file that does not do what it says, as `check` would point at it. Pure.

Tells only of lines that the edit made so: what stood there before is for `check`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import date

from notebook_sync.notes.runtime.grammar import expired_in, malformed_in
from notebook_sync.notes.runtime.rules import SOON
from prompt.values import Expired


def check_edit(path: str, before: bytes | None, after: bytes | None, today: date) -> tuple[str, ...]:
    """A sentence with the next step for each entry that is now malformed, or past its day, and was not before."""
    told = Counter(entry for _, entry, _ in _told(path, before, today))
    found = []
    for line, entry, message in _told(path, after, today):
        if told[entry] > 0:
            told[entry] -= 1
        else:
            found.append((line, f"{path}:{line}: {message}"))
    return tuple(message for _, message in sorted(found))


# The line, what tells the entry from others, and what is to be said of it.
_Told = tuple[int, tuple[str, str], str]


def _told(path: str, raw: bytes | None, today: date) -> Iterator[_Told]:
    text = (raw or b"").decode(errors="replace")
    for malformed in malformed_in(path, text, today):
        yield malformed.line, (malformed.reason, malformed.text), malformed.message_on(today)
    for expired in expired_in(text, today):
        yield expired.line, ("expired", expired.text), _past(expired, today)


def _past(expired: Expired, today: date) -> str:
    later = f"write [until {today + SOON}] or another day to come, or remove it"
    return f"[until {expired.until}] is past, so the prompt does not show it; {later}"
