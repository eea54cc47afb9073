"""The notebook's system prompt: which files it shows, read at each call. No database is asked.

How files are laid out and cut is the business of the package `prompt`; here is where its input comes from.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime
from importlib import resources
from pathlib import Path

from notebook_sync import config
from notebook_sync.errors import UnreadableFile
from notebook_sync.files.vault import Vault
from notebook_sync.notes.sources import PromptFiles
from notebook_sync.sessions import Session
from prompt import Assembler, CountFile, FileText, Found, Prompt, PromptFile, PromptSettings, explain

COUNTS = "tokens.json"


class SystemPrompt:
    """Assembles prompts for one notebook. `folder` is its `.notebook`."""

    def __init__(self, vault: Vault, folder: Path, settings: config.Settings) -> None:
        self._vault = vault
        self._timezone = settings.timezone
        self._files = PromptFiles(vault, folder, settings.sync.settle_ms / 1000)
        self._counts = CountFile(folder / COUNTS)
        self._assembler = Assembler(prompt_settings(settings.prompt), self._counts)

    def assemble(self, session: Session, *, max_tokens: int | None = None, today: date | None = None) -> Prompt:
        """The prompt that `session` gets today (in the notebook's timezone). Raises VocabularyMissing."""
        return self._assemble(self._sources(), session, max_tokens, today)

    def explain(self, text: str, session: Session) -> list[Found]:
        """Where `text` stands, in the prompt's files and then in any note, and whether the session's prompt has it."""
        sources = self._sources()
        prompt = self._assemble(sources, session)
        shown = {source.path for source in sources}
        rest = sorted(path for path in self._vault.scan().seen if path not in shown)
        return explain(text, prompt, [*sources, *self._holding(text, rest)])

    def _assemble(
        self, sources: Sequence[FileText], session: Session, max_tokens: int | None = None, today: date | None = None
    ) -> Prompt:
        assembler = self._assembler
        if max_tokens is not None:
            assembler = Assembler(replace(assembler.settings, max_tokens=max_tokens), self._counts)
        day = today or datetime.now(self._timezone).date()
        prompt = assembler.assemble(sources, session.kind, today=day)
        self._counts.save()
        return prompt

    def _holding(self, text: str, paths: Sequence[str]) -> Iterator[FileText]:
        """Of the notes at `paths`, those that may hold `text`: its first word tells most of them apart quickly."""
        word = next(iter(text.casefold().split()), "")
        for path in paths:
            with contextlib.suppress(FileNotFoundError, UnreadableFile):
                raw, _ = self._vault.read(path)
                if word in raw.decode(errors="replace").casefold():
                    yield FileText(path, raw)

    def _sources(self) -> Sequence[FileText]:
        settings = self._assembler.settings
        files = (*settings.runtime_files, *settings.files)
        sources = [self._files.read(path) for path in (*settings.system_files, *(file.path for file in files))]
        core = self._files.read(settings.core_facts.path)
        return sources if core.content is None else [*sources, core]


def prompt_settings(settings: config.PromptSettings) -> PromptSettings:
    """The layout and limits that notebook.toml asks for."""
    return PromptSettings(
        system_files=settings.system_files,
        directive=resources.files("runtime_templates").joinpath("directive.md").read_text(encoding="utf-8"),
        files=tuple(
            PromptFile(
                file.path,
                file.heading,
                file.max_tokens,
                file.priority,
                tuple(Session.named(kind).kind for kind in file.sessions),
            )
            for file in settings.files
        ),
        max_tokens_per_file=settings.max_tokens_per_file,
        max_tokens=settings.max_tokens,
        encoding=settings.encoding,
    )
