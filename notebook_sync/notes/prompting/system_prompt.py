"""The notebook's system prompt: which files it shows, read at each call. No database is asked.

How files are laid out and cut is the business of the package `prompt`; here is where its input comes from.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import runtime_templates
from notebook_sync import config
from notebook_sync.errors import UnreadableFile, UsageError
from notebook_sync.files.vault import Vault
from notebook_sync.notes.prompting.count_file import CountFile
from notebook_sync.notes.prompting.sources import PromptFiles, as_source
from notebook_sync.notes.prompting.volatile import FACTS, Gathered, Gathering, Wish
from notebook_sync.permissions import channel_of, plain_parts
from notebook_sync.sessions import Session
from notebook_sync.settings import PromptSettings as PromptTable
from notebook_sync.settings import Settings
from prompt import Assembler, FileText, Found, Prompt, PromptFile, PromptSettings, Volatile, explain

if TYPE_CHECKING:
    from notebook_sync.notes.prompting.trust import Trust, Untrusted

COUNTS = "counts.json"
NOTHING = Wish()
WAITING = "waiting for trust"
PRIVATE = f"is private to its channel's agent, so no prompt shows it as a file; take its path out of {config.FILE}"
# No setting shows them to a session that acts on someone else's message.
_KNOW_CORE_FACTS = ("owner", "task")
NO_TEXTS = Volatile()
NO_FILES: Mapping[str, FileText] = MappingProxyType({})
# By its path: `importlib.resources` would bring readers of archives along, at every start.
_DIRECTIVE = Path(runtime_templates.__file__).parent / "directive.md"


class SystemPrompt:
    """Assembles prompts for one notebook. `folder` is its `.notebook`."""

    def __init__(self, vault: Vault, folder: Path, settings: Settings) -> None:
        self._vault = vault
        self._timezone = settings.timezone
        self._files = PromptFiles(vault, folder, settings.sync.settle_ms / 1000)
        self._counts = CountFile(folder / COUNTS)
        self._assembler = Assembler(prompt_settings(settings.prompt), self._counts)
        self._private = tuple(f"{path}: {PRIVATE}" for path in private_paths(settings.prompt))
        self.trust: Trust | None = None
        if settings.prompt.trust == "committed":
            from notebook_sync.notes.prompting.trust import Trust

            self.trust = Trust(vault.root, folder, self.paths)

    def assemble(self, session: Session, *, max_tokens: int | None = None, wish: Wish = NOTHING) -> Prompt:
        """The prompt that `session` gets: the files, today's date in the notebook's timezone, and what `wish` asks for.

        The extras get the room that the files leave, so that the stable part is the same with and without them.
        Raises UsageError for an invalid wish, and VocabularyMissing.
        """
        wish = wish.checked(session)
        assembler = self._assembler
        if max_tokens is not None:
            assembler = Assembler(replace(assembler.settings, max_tokens=max_tokens), self._counts)
        sources, now = self._sources(), self._now()
        prompt = assembler.assemble(sources, session.kind, now=now, volatile=_dated(now))
        if wish.task or wish.include:
            gathered = self._gathered(wish, prompt, assembler, session, now)
            volatile = _dated(now, gathered.volatile)
            prompt = assembler.assemble(sources, session.kind, now=now, volatile=volatile)
            prompt = replace(prompt, problems=(*prompt.problems, *gathered.problems))
        if self._private:
            prompt = replace(prompt, problems=(*prompt.problems, *self._private))
        self._counts.save()
        return prompt

    def assemble_with(self, session: Session, contents: Mapping[str, bytes | None]) -> Prompt:
        """The prompt that `session` would get if these files had these contents, None for one that were not there."""
        files = [file for file in self._assembler.settings.shown_files if file.path in contents]
        given = {file.path: as_source(file.path, contents[file.path]) for file in files}
        now = self._now()
        prompt = self._assembler.assemble(self._sources(given), session.kind, now=now, volatile=_dated(now))
        self._counts.save()
        return prompt

    def read(self, path: str) -> FileText:
        """The file at `path` as a prompt shows it, before any cut."""
        return self._read([path])[0]

    def untrusted(self) -> list[Untrusted]:
        """The prompt's files of which something waits for trust. Raises GitFailed."""
        if self.trust is None:
            return []
        each = (self.trust.untrusted(self._files.read(path)) for path in self.paths)
        return [one for one in each if one is not None]

    @property
    def paths(self) -> tuple[str, ...]:
        """The files of the stable part, in the order in which they stand there."""
        return tuple(file.path for file in self._assembler.settings.shown_files)

    def explain(self, text: str, session: Session, readable: Callable[[Iterable[str]], Iterable[str]]) -> list[Found]:
        """Where `text` stands, in the prompt's files and then in those notes that are `readable`, and whether the
        session's prompt has it. No folder of a channel is looked into whose notes are not.

        Raises UsageError for a text of white space alone.
        """
        if not text.strip():
            raise UsageError("name a text to look for, as in: notebook-sync explain 'never share my calendar'")
        sources = self._sources()
        prompt = self._assembler.assemble(sources, session.kind, now=self._now())
        self._counts.save()
        shown = {source.path for source in sources}
        scan = self._vault.scan(enters=lambda folder: not channel_of(f"{folder}/*") or any(readable([f"{folder}/*"])))
        rest = sorted(path for path in readable(scan.seen) if path not in shown)
        found = dict.fromkeys(explain(text, prompt, [*sources, *self._holding(text, rest)]))
        waiting = {one.path for one in self.untrusted()}
        return [
            replace(one, reason=WAITING) if one.reason == "not yet parsed" and one.path in waiting else one
            for one in found
        ]

    def _gathered(self, wish: Wish, plain: Prompt, assembler: Assembler, session: Session, now: datetime) -> Gathered:
        """What `wish` asks for, in the room that `plain` leaves."""
        settings = assembler.settings
        elsewhere = {file.path for file in settings.shown_files}
        room = settings.max_tokens - plain.tokens
        gathering = Gathering(self._vault, self._files, elsewhere, now, assembler.count, room)
        return gathering.gather(wish, session, settings.max_tokens_per_file)

    def _now(self) -> datetime:
        return datetime.now(self._timezone).replace(tzinfo=None)

    def _holding(self, text: str, paths: Sequence[str]) -> Iterator[FileText]:
        """Of the notes at `paths`, those that may hold `text`: its first word tells most of them apart quickly."""
        word = next(iter(text.casefold().split()), "")
        for path in paths:
            with contextlib.suppress(FileNotFoundError, UnreadableFile):
                source = self._files.read(path) if path == FACTS else as_source(path, self._vault.read(path)[0])
                if any(
                    word in (raw or b"").decode(errors="replace").casefold() for raw in (source.content, source.found)
                ):
                    yield source

    def _sources(self, given: Mapping[str, FileText] = NO_FILES) -> Sequence[FileText]:
        """The files as they are now, but those that are given as they are given."""
        shown = self._assembler.settings.shown_files
        read = {source.path: source for source in self._read([file.path for file in shown if file.path not in given])}
        sources = [(file, given.get(file.path) or read[file.path]) for file in shown]
        return [source for file, source in sources if source.content is not None or not file.optional]

    def _read(self, paths: Sequence[str]) -> list[FileText]:
        """The files as they are shown; a line in place of one that has no good version."""
        sources = [self._files.read(path) for path in paths]
        return [
            replace(source, content=f"[{source.path} cannot be read and is not shown]\n".encode())
            if source.content is None and source.problem
            else source
            for source in (self.trust.shown(sources) if self.trust else sources)
        ]


def _dated(now: datetime, volatile: Volatile = NO_TEXTS) -> Volatile:
    return replace(volatile, today=f"{now:%A, %Y-%m-%d}")


def prompt_settings(settings: PromptTable) -> PromptSettings:
    """The layout and limits that notebook.toml asks for."""
    private = private_paths(settings)
    asked = PromptSettings(
        system_files=tuple(path for path in settings.system_files if path not in private),
        directive=_DIRECTIVE.read_text(encoding="utf-8"),
        max_tokens_per_file=settings.max_tokens_per_file,
        max_tokens=settings.max_tokens,
        order=settings.order,
        encoding=settings.encoding,
    )
    asked = replace(asked, core_facts=replace(asked.core_facts, sessions=_KNOW_CORE_FACTS))
    known = {file.path: file for file in asked.shown_files}
    files = tuple(
        PromptFile(
            file.path,
            file.heading,
            file.max_tokens,
            file.priority or (known[file.path].priority if file.path in known else 0),
            tuple(kind for kind in file.sessions if file.path not in known or kind in known[file.path].sessions),
        )
        for file in settings.files
        if file.path not in private
    )
    return replace(asked, files=files)


def private_paths(settings: PromptTable) -> Sequence[str]:
    """What the settings name and no prompt shows: notes of channels, in any spelling that a file system takes."""
    named = (*settings.system_files, *(file.path for file in settings.files))
    return [path for path in dict.fromkeys(named) if (plain_parts(path) or ())[:1] == ("channels",)]
