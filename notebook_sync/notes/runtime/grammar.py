"""What in the runtime files breaks their grammar, is expired or never reaches a prompt: for `check` and edits. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime

from notebook_sync.files.note import RUNTIME_FILES
from notebook_sync.notes.finding import Finding
from notebook_sync.notes.runtime import reminders, rules
from notebook_sync.notes.runtime.entries import Contents, Entry, Malformed, contents_of, read_entries
from notebook_sync.notes.runtime.reminders import Reminder
from notebook_sync.notes.runtime.rules import Rule
from notebook_sync.settings import PromptSettings
from prompt.dates import suggested_moment
from prompt.hidden import visible

_SECTIONS = {rules.PATH: rules.SECTIONS, reminders.PATH: reminders.SECTIONS}
_READERS: Mapping[str, Callable[[Entry, date], Rule | Reminder | Malformed | None]] = {
    rules.PATH: rules.read_rule,
    reminders.PATH: reminders.read_reminder,
}
_PATHS = frozenset(f"runtime/{name}" for name in RUNTIME_FILES)


def checked_as_runtime(settings: PromptSettings) -> frozenset[str]:
    """The paths of files that the prompt shows."""
    return _PATHS | {file.path for file in settings.files}


def check_runtime(path: str, text: str, now: datetime) -> Iterator[Finding]:
    """Findings in one file that the prompt shows."""
    contents = contents_of(text)
    if contents.unclosed:
        message = "this comment is never closed; write --> where it ends"
        yield Finding(path, contents.unclosed, "error", message)
    if contents.unclosed_code:
        message = "this code block is never closed, so everything below it is code; close it with a line like its first"
        yield Finding(path, contents.unclosed_code, "error", message)
    for hidden in contents.hidden:
        if _looks_live(path, hidden, now.date()):
            message = f"is in a comment, so no agent sees it; delete it, or end the comment above it: {hidden.text}"
            yield Finding(path, hidden.line, "info", message)
    shown = visible(text, now=now)
    for expired in shown.expired:
        message = f"expired on {expired.until}, is not in the prompt, and is ready to remove"
        yield Finding(path, expired.line, "info", message)
    if path in _SECTIONS:
        yield from _unknown_sections(path, contents)
    for malformed in _malformed(path, contents, now.date()):
        yield Finding(path, malformed.line, "warning", malformed.message)


def check_edit(path: str, before: bytes | None, after: bytes | None, now: datetime) -> tuple[str, ...]:
    """A sentence with the next step for each entry of a file in the prompt that is malformed or past, and was not
    before the edit."""
    known = Counter((one.reason, one.text) for one in _problems(path, before, now))
    found = []
    for one in _problems(path, after, now):
        key = (one.reason, one.text)
        if known[key] > 0:
            known[key] -= 1
        else:
            found.append((one.line, f"{path}:{one.line}: {one.message}"))
    return tuple(message for _, message in sorted(found))


def _problems(path: str, raw: bytes | None, now: datetime) -> list[Malformed]:
    text = (raw or b"").decode(errors="replace")
    later = f"[until {suggested_moment('', now.date())}]"
    expired = (
        Malformed(one.line, f"[until {one.until}] is past, so the prompt does not show it", later, one.text)
        for one in visible(text, now=now).expired
    )
    return [*_malformed(path, contents_of(text), now.date()), *expired]


def _malformed(path: str, contents: Contents, today: date) -> Sequence[Malformed]:
    return read_entries(contents, today, _READERS.get(path, lambda entry, today: None))[1]


def _looks_live(path: str, hidden: Entry, today: date) -> bool:
    """Whether it would be an entry outside of its comment. In a file without a grammar, each list item would."""
    return path not in _READERS or isinstance(_READERS[path](hidden, today), Rule | Reminder)


def _unknown_sections(path: str, contents: Contents) -> Iterator[Finding]:
    known = _SECTIONS[path]
    folded = {name.casefold() for name in known}
    for line, level, title in contents.headings:
        if level == 2 and title.casefold() not in folded:
            places = " or ".join(known)
            message = f"unknown section `{title}`: its entries reach the prompt unread; move them under {places}"
            yield Finding(path, line, "warning", message)
