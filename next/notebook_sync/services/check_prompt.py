"""The prompt's files as `check` sees them: what cannot be shown or read, and what is left out for lack of room."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from notebook_sync.files.parse import parse
from notebook_sync.files.tree import Scan
from notebook_sync.model import RUNTIME_FILES, SETTINGS_FILE
from notebook_sync.services import reminders, rules
from notebook_sync.services.assembling import PRIVATE, REMINDERS, RULES, files_of, private_paths
from notebook_sync.services.core import Core
from notebook_sync.services.grammar import Entry, Malformed, hidden_entries, read_entries
from notebook_sync.services.prompts import Finding
from prompt import Assembler, FileText, Part, PromptSettings, PromptTooSmall, count_tokens, end_of_frontmatter, visible
from prompt.assemble import VOLATILE_SHARE
from prompt.gaps import Positions
from prompt.outline import Lines, Outline
from prompt.values import SESSIONS

_MOST_NAMED = 5


def problems_of_prompt(core: Core, scan: Scan) -> Iterator[Finding]:
    """Every finding about the prompt's files. `scan` has refused some of them, which is reported elsewhere."""
    files, now = files_of(core), core.settings.local_now()
    settings, sources = files.assembler.settings, files.sources()
    for path in private_paths(core.settings.prompt):
        yield Finding(path, 0, "error", PRIVATE)
    for source in sources:
        path, text = source.path, (source.content or b"").decode(errors="replace")
        if source.content is None and path not in RUNTIME_FILES:
            yield Finding(path, 0, "error", f"is missing, and {SETTINGS_FILE} names it; make it, or remove its path")
        elif source.content is None and (core.root / SETTINGS_FILE).exists():  # else no rules are meant to be here
            yield Finding(path, 0, "warning", f"is missing; make it with: notebook-sync init {core.root}")
        if source.problem and path not in scan.refused:
            yield Finding(path, 0, "error", f"is not shown as it is: {source.problem}")
        if source.external:
            yield Finding(path, 0, "error", "has external provenance, so the prompt does not show it; take it out")
        else:
            yield from _hidden(path, text, now)
            yield from _unread(path, text, now)
            yield from _pins(path, text, files.caps[path], now, settings.encoding)
    yield from _over_caps(sources, settings, now)
    yield from _over_all(sources, settings, now)


def _hidden(path: str, text: str, now: datetime) -> Iterator[Finding]:
    """What reaches nobody though it looks as if it did: in comments and code that are never closed, or expired."""
    start = end_of_frontmatter(text)
    for block in Outline(text[start:]).root.walk():
        line = text.count("\n", 0, start) + block.first + 1
        if block.type == "html_block" and block.content.startswith("<!--") and "-->" not in block.content:
            yield Finding(path, line, "error", "this comment is never closed; write --> where it ends")
        if block.type == "fence" and not block.closed:
            message = "this code block is never closed, so all below it is code; close it with a line like its first"
            yield Finding(path, line, "error", message)
    for entry in hidden_entries(text, _sections_of(path)):
        if isinstance(_read(path, entry, now), rules.Rule | reminders.Reminder | str):
            message = f"is in a comment, so no agent sees it; delete it, or end the comment above it: {entry.text}"
            yield Finding(path, entry.line, "info", message)
    for expired in visible(text, now=now).expired:
        message = f"expired on {expired.until} and is not in the prompt; it can be removed"
        yield Finding(path, expired.line, "info", message)


def _unread(path: str, text: str, now: datetime) -> Iterator[Finding]:
    """Entries that cannot be read, each with what would be right."""
    for one in read_entries(text, _sections_of(path), now, lambda entry, _: _read(path, entry, now))[1]:
        yield Finding(path, one.line, "warning", one.message)


def _sections_of(path: str) -> tuple[str, ...]:
    return rules.SECTIONS if path == RULES else reminders.SECTIONS if path == REMINDERS else ()


def _read(path: str, entry: Entry, now: datetime) -> rules.Rule | reminders.Reminder | Malformed | str | None:
    """What an entry is; its text in a file without a grammar."""
    if path == RULES:
        return rules.read_rule(entry, now.date())
    return reminders.read_reminder(entry, now.date()) if path == REMINDERS else entry.text


def _pins(path: str, text: str, cap: int, now: datetime, encoding: str) -> Iterator[Finding]:
    """Pins that pin nothing, and pinned sections that are too long together: a cap holds for them too."""
    shown = visible(text, now=now)
    for line in shown.lost_pins:
        message = "this pin pins nothing; write it alone on the line below or above a heading"
        yield Finding(path, line, "warning", message)
    tokens, end = 0, 0
    for section in parse(path, shown.text.encode(errors="replace"), timezone=UTC).sections if shown.pinned else ():
        if section.start in shown.pinned and section.start >= end:  # one inside another is counted with it
            tokens += count_tokens(shown.text[section.start : section.end], encoding)
            end = section.end
    if tokens > cap:
        message = f"its pinned sections have {tokens:,} tokens, more than its cap of {cap:,}, so even they are cut"
        yield Finding(path, 0, "error", f"{message}; shorten or unpin one, or set its max_tokens to {tokens}")


def _over_caps(sources: Sequence[FileText], settings: PromptSettings, now: datetime) -> Iterator[Finding]:
    """What the cap of each file leaves out, in the first session that sees the file."""
    assembler = Assembler(replace(settings, max_tokens=sys.maxsize))
    parts: dict[str, Part] = {}
    for session in SESSIONS:
        parts = {part.path: part for part in assembler.assemble(sources, session, now=now).parts} | parts
    for source in sources:
        part = parts.get(source.path)
        if part is not None and part.cut:
            lines = _cut_lines(part, (source.content or b"").decode(errors="replace"))
            entries = sum(one.entries for one in part.omitted) or "all"
            named = ", ".join(map(str, lines[:_MOST_NAMED])) + ", …" * (len(lines) > _MOST_NAMED)
            message = (
                f"has {part.tokens_whole:,} tokens, more than its cap of {part.cap:,}: {entries} entries are left out, "
                f"from line {named}; shorten it, pin what must stay, or raise its max_tokens"
            )
            yield Finding(source.path, lines[0] if lines else 0, "warning", message)


def _cut_lines(part: Part, text: str) -> list[int]:
    """The 1-based lines of the file at which what is left out begins."""
    before = Positions([gap for gap in part.gaps if gap.reason != "cap"]).before
    starts = [start + len(cut) - len(cut.lstrip()) for start, end in part.cut if (cut := part.whole[start:end]).strip()]
    lines = Lines(text)
    return sorted({lines.at(before(start)) + 1 for start in starts})


def _over_all(sources: Sequence[FileText], settings: PromptSettings, now: datetime) -> Iterator[Finding]:
    """The owner's prompt, which shows most, is larger than its limit."""
    whole = Assembler(replace(settings, max_tokens=sys.maxsize)).assemble(sources, "owner", now=now)
    try:
        shown = Assembler(settings).assemble(sources, "owner", now=now)
    except PromptTooSmall as error:
        yield Finding(SETTINGS_FILE, 0, "error", str(error))
        return
    if shown.text != whole.text:
        enough = -(-whole.tokens * VOLATILE_SHARE // (VOLATILE_SHARE - 1))
        message = (
            f"the prompt's files have {whole.tokens:,} tokens together, more than prompt.max_tokens leaves for them"
        )
        yield Finding(SETTINGS_FILE, 0, "warning", f"{message}; set it to {enough}, or shorten a file")
