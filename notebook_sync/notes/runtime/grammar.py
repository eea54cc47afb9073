"""The runtime files as `check` sees them: what breaks their grammar, is over, or never reaches a prompt. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date

from notebook_sync.files.note import RUNTIME_FILES
from notebook_sync.notes.finding import Finding
from notebook_sync.notes.runtime import reminders, rules
from notebook_sync.notes.runtime.entries import Contents, Entry, Hidden, contents_of
from notebook_sync.notes.runtime.reminders import Reminder, read_reminder, read_reminders
from notebook_sync.notes.runtime.rules import Malformed, Rule, read_rule, read_rules
from notebook_sync.settings import PromptSettings
from prompt.budget import count_tokens
from prompt.comments import without_hidden
from prompt.values import Expired

_SECTIONS = {rules.PATH: rules.SECTIONS, reminders.PATH: reminders.SECTIONS}
_PATHS = frozenset(f"runtime/{name}" for name in RUNTIME_FILES)


def checked_as_runtime(settings: PromptSettings) -> frozenset[str]:
    """The paths of files that the prompt shows."""
    return _PATHS | {file.path for file in settings.files}


def check_runtime(path: str, text: str, settings: PromptSettings, today: date) -> Iterator[Finding]:
    """Findings in one file that the prompt shows."""
    caps = {file.path: file.max_tokens or settings.max_tokens_per_file for file in settings.files}
    yield from _over_budget(path, text, caps.get(path, settings.max_tokens_per_file), settings.encoding, today)
    contents = contents_of(text)
    if contents.unclosed:
        message = "this comment is never closed; write --> where it ends"
        yield Finding(path, contents.unclosed, "error", message)
    if contents.unclosed_code:
        message = "this block of code is never closed, so all below it is code; close it with a line like its first"
        yield Finding(path, contents.unclosed_code, "error", message)
    for hidden in contents.hidden:
        if _looks_live(path, hidden, today):
            message = f"stands in a comment, so no agent sees it; delete it, or end the comment above it: {hidden.text}"
            yield Finding(path, hidden.line, "info", message)
    expired = {one.line: one.until for one in expired_in(text, today)}
    for line, until in expired.items():
        yield Finding(path, line, "info", f"expired on {until}, is not in the prompt, and is ready to remove")
    if path in _SECTIONS:
        yield from _unknown_sections(path, contents)
        for malformed in _malformed(path, contents, today):
            yield Finding(path, malformed.line, "warning", malformed.message_on(today))


def expired_in(text: str, today: date) -> Sequence[Expired]:
    """The entries of a file that no prompt shows, for their day is past."""
    return without_hidden(text, keep_grammar=True, today=today).expired


def malformed_in(path: str, text: str, today: date) -> Sequence[Malformed]:
    """The entries of a file that do not read as its grammar says; none for a file without a grammar."""
    return _malformed(path, contents_of(text), today) if path in _SECTIONS else ()


def _malformed(path: str, contents: Contents, today: date) -> list[Malformed]:
    return read_rules(contents)[1] if path == rules.PATH else read_reminders(contents, today)[1]


def _looks_live(path: str, hidden: Hidden, today: date) -> bool:
    """Whether it would be an entry outside of its comment. In a file without a grammar, each list item would."""
    entry = Entry(hidden.line, hidden.headings, hidden.text)
    if path == rules.PATH:
        return isinstance(read_rule(entry), Rule)
    if path == reminders.PATH:
        kind = reminders.KINDS.get(hidden.headings[0].casefold())
        return kind is not None and isinstance(read_reminder(entry, kind, today), Reminder)
    return True


def _over_budget(path: str, text: str, cap: int, encoding: str, today: date) -> Iterator[Finding]:
    """Comments and expired entries take no room, so they are not counted."""
    tokens = count_tokens(without_hidden(text, keep_grammar=False, today=today).text, encoding)
    if tokens > cap:
        message = f"{tokens:,} tokens, over its {cap:,}: parts are left out of the prompt; shorten it, or raise its cap"
        yield Finding(path, 0, "warning", message)


def _unknown_sections(path: str, contents: Contents) -> Iterator[Finding]:
    known = _SECTIONS[path]
    folded = {name.casefold() for name in known}
    for line, level, title in contents.headings:
        if level == 2 and title.casefold() not in folded:
            places = " or ".join(known)
            message = f"unknown section `{title}`: its entries reach the prompt unread; move them under {places}"
            yield Finding(path, line, "warning", message)
