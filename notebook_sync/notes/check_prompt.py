"""The prompt as `check` sees it: files that it cannot show, what it leaves out for lack of room, lost pins."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from notebook_sync import config
from notebook_sync.errors import UnreadableFile
from notebook_sync.files.parse import parse
from notebook_sync.files.provenance import is_external
from notebook_sync.files.vault import Scan, Vault
from notebook_sync.notes.finding import Finding
from notebook_sync.notes.prompting.system_prompt import PRIVATE, private_paths, prompt_settings
from notebook_sync.settings import PromptSettings as PromptTable
from prompt import Assembler, FileText, Part, PromptSettings, assemble
from prompt.gaps import Positions
from prompt.hidden import Visible, visible
from prompt.page import VOLATILE_SHARE
from prompt.values import SESSIONS

WHAT_STAYS = (
    "pinned sections stay longest, then open tasks and rules before ticked ones, then each section's first entries "
    "before the later ones, in a dated log the newest first (docs/prompt.md#what-stays)"
)
_MOST_NAMED = 5


def check_prompt(vault: Vault, scan: Scan, settings: PromptTable, now: datetime) -> Iterator[Finding]:
    """Findings about the prompt's files as a whole. What `scan` refused is told by whoever made it."""
    asked = prompt_settings(settings)
    optional = {file.path for file in asked.shown_files if file.optional} - {file.path for file in settings.files}
    yield from (Finding(path, 0, "error", PRIVATE) for path in private_paths(settings))
    sources = []
    for file in asked.shown_files:
        try:
            raw, _ = vault.read(file.path)
        except FileNotFoundError:
            if file.path not in optional:
                sources.append(FileText(file.path, None))
                yield from _missing(vault, file.path)
        except UnreadableFile as error:
            if file.path not in scan.seen and file.path not in scan.refused:
                message = f"cannot be shown in the prompt: {error.reason}; put the file into the notebook's folder"
                yield Finding(file.path, 0, "error", message)
        else:
            sources.append(FileText(file.path, raw, external=is_external(raw)))
            cap = file.max_tokens or settings.max_tokens_per_file
            shown = visible(raw.decode(errors="replace"), now=now)
            for line in shown.lost_pins:
                message = "this pin pins nothing: write it on a line of its own directly above or below a heading"
                yield Finding(file.path, line, "warning", message)
            yield from _pinned(file.path, shown, cap, settings.encoding)
            if is_external(raw):
                message = "is not the owner's, says its provenance, so the prompt does not show it; take it out of it"
                yield Finding(file.path, 0, "error", message)
    yield from _over_caps(sources, asked, now)
    yield from _over_all(sources, asked, now)


def _missing(vault: Vault, path: str) -> Iterator[Finding]:
    if path not in vault.runtime_names().values():
        message = f"is missing, and {config.FILE} wants it in the prompt; make it, or take its path out"
        yield Finding(path, 0, "error", message)
    elif (vault.root / config.FILE).exists():  # a folder that was never made a notebook has no rules, as is meant
        message = f"is missing, and the prompt says so; make it with: notebook-sync init {vault.root}"
        yield Finding(path, 0, "warning", message)


def _pinned(path: str, shown: Visible, cap: int, encoding: str) -> Iterator[Finding]:
    """What is pinned leaves last, but a cap holds for it too."""
    if not shown.pinned:
        return
    tokens, end = 0, 0
    for section in parse(path, shown.text.encode(errors="replace"), encoding=encoding).sections:
        if section.start in shown.pinned and section.start >= end:  # one inside another is counted with it
            tokens += section.token_count
            end = section.end
    if tokens > cap:
        message = f"its pinned sections alone have {tokens:,} tokens, over its {cap:,}, so even they are cut"
        yield Finding(path, 0, "error", f"{message}; shorten or unpin one, or set its max_tokens to {tokens}")


def _over_caps(sources: list[FileText], settings: PromptSettings, now: datetime) -> Iterator[Finding]:
    """What is left out of each file now, in the first session that sees it."""
    assembler = Assembler(settings)
    parts: dict[str, Part] = {}
    for session in SESSIONS:
        parts = {part.path: part for part in assembler.assemble(sources, session, now=now).parts} | parts
    for source in sources:
        part = parts.get(source.path)
        if part is not None and part.cut:
            lines = _cut_lines(part, (source.content or b"").decode(errors="replace"))
            entries = sum(one.entries for one in part.omitted)
            named = ", ".join(map(str, lines[:_MOST_NAMED])) + ", …" * (len(lines) > _MOST_NAMED)
            message = f"{part.tokens_whole:,} tokens, over its {part.cap:,}: {entries or 'all'} entries are left out, "
            message += f"beginning in lines {named}; {WHAT_STAYS}; shorten it, or raise its cap"
            yield Finding(source.path, lines[0], "warning", message)


def _cut_lines(part: Part, text: str) -> list[int]:
    """The 1-based lines of the file at which what is left out begins."""
    before = Positions([gap for gap in part.gaps if gap.reason != "cap"]).before
    starts = [start + len(cut) - len(cut.lstrip()) for start, end in part.cut if (cut := part.whole[start:end]).strip()]
    return sorted({text.count("\n", 0, before(start)) + 1 for start in starts})


def _over_all(sources: list[FileText], settings: PromptSettings, now: datetime) -> Iterator[Finding]:
    """The owner's prompt, which shows most."""
    whole = assemble(sources, "owner", replace(settings, max_tokens=sys.maxsize), now=now)
    shown = assemble(sources, "owner", settings, now=now)
    if shown.text != whole.text:
        needed = -(-whole.tokens * VOLATILE_SHARE // (VOLATILE_SHARE - 1))
        message = (
            f"the files have {whole.tokens:,} tokens together, more than prompt.max_tokens = {settings.max_tokens} "
        )
        message += f"leaves them, so more of them is left out; set it to {needed}, or shorten a file"
        yield Finding(config.FILE, 0, "warning", message)
