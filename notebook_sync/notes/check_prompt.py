"""The prompt as `check` sees it: files that it should show and cannot, and caps that even what is pinned is over."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import date

from notebook_sync import config
from notebook_sync.errors import UnreadableFile
from notebook_sync.files.note import RUNTIME_FILES
from notebook_sync.files.parse import parse
from notebook_sync.files.provenance import is_external
from notebook_sync.files.vault import Scan, Vault
from notebook_sync.notes.finding import Finding
from notebook_sync.notes.prompting.system_prompt import PRIVATE, private_paths, prompt_settings
from notebook_sync.settings import PromptSettings as PromptTable
from prompt import FileText, PromptSettings, assemble
from prompt.comments import without_hidden
from prompt.page import VOLATILE_SHARE

_RUNTIME = frozenset(f"runtime/{name}" for name in RUNTIME_FILES)


def check_prompt(vault: Vault, scan: Scan, settings: PromptTable, today: date) -> Iterator[Finding]:
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
            yield from _pinned(file.path, raw, cap, settings.encoding, today)
            if is_external(raw):
                message = "is not the owner's, says its provenance, so the prompt does not show it; take it out of it"
                yield Finding(file.path, 0, "error", message)
    yield from _over_all(sources, asked, today)


def _missing(vault: Vault, path: str) -> Iterator[Finding]:
    if path not in _RUNTIME:
        message = f"is missing, and {config.FILE} wants it in the prompt; make it, or take its path out"
        yield Finding(path, 0, "error", message)
    elif (vault.root / config.FILE).exists():  # a folder that was never made a notebook has no rules, as is meant
        message = f"is missing, and the prompt says so; make it with: notebook-sync init {vault.root}"
        yield Finding(path, 0, "warning", message)


def _pinned(path: str, raw: bytes, cap: int, encoding: str, today: date) -> Iterator[Finding]:
    """What is pinned leaves last, but a cap holds for it too."""
    shown = without_hidden(raw.decode(errors="replace"), keep_grammar=False, today=today)
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


def _over_all(sources: list[FileText], settings: PromptSettings, today: date) -> Iterator[Finding]:
    """The owner's prompt, which shows most."""
    whole = assemble(sources, "owner", replace(settings, max_tokens=sys.maxsize), today=today)
    shown = assemble(sources, "owner", settings, today=today)
    if shown.text != whole.text:
        needed = -(-whole.tokens * VOLATILE_SHARE // (VOLATILE_SHARE - 1))
        message = (
            f"the files have {whole.tokens:,} tokens together, more than prompt.max_tokens = {settings.max_tokens} "
        )
        message += f"leaves them, so more of them is left out; set it to {needed}, or shorten a file"
        yield Finding(config.FILE, 0, "warning", message)
