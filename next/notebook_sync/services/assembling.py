"""The notebook's system prompt: its settings, its files, and what a caller adds.

It is read from files at each call; the index is asked only for what `include` names. Laying out and cutting is the work
of the package `prompt`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import runtime_templates
from notebook_sync.errors import ConfigError, NoSuchNote, NotebookError, NotPermitted
from notebook_sync.files.private import read_private
from notebook_sync.files.state import Place
from notebook_sync.model import RUNTIME_FILES, SETTINGS_FILE
from notebook_sync.permissions import is_private, require
from notebook_sync.services.shown_files import FOLDER, CountFile, ShownFiles, as_source, keep_copy
from notebook_sync.sessions import Session
from notebook_sync.settings import PromptTable, load_settings, parse_settings
from prompt import (
    Assembler,
    FileText,
    Prompt,
    PromptFile,
    PromptSettings,
    PromptTooSmall,
    VocabularyMissing,
    Volatile,
)
from prompt.recent import Recent
from prompt.values import Session as Kind

if TYPE_CHECKING:
    from notebook_sync.services.core import Core

RULES, REMINDERS, _ = RUNTIME_FILES
COUNTS = "counts.json"
PRIVATE = "belongs to an agent's channel, which no prompt shows as a file; remove its path from notebook.toml"
NO_CONTENTS: Mapping[str, bytes | None] = {}
# No setting shows core facts to a session that acts on someone else's message.
_KNOW_CORE_FACTS = ("owner", "task")
# Read by their paths: `importlib.resources` would load readers of archives at every start.
_TEMPLATES = Path(runtime_templates.__file__).parent


class Options(TypedDict, total=False):
    """What a caller may ask of a prompt: another total than prompt.max_tokens; refs, facts, notes to include; the task;
    bytes that files are taken to have (None: no file)."""

    max_tokens: int | None
    include: Sequence[str]
    task: str
    contents: Mapping[str, bytes | None]


class PromptFiles:
    """What prompts of one notebook are made of: `Core.prompt_files` keeps it while the settings stay the same."""

    def __init__(self, core: Core) -> None:
        settings, place = core.settings, _place_of(core)
        self.shown = ShownFiles(core.tree, place, settings)
        self.counts = CountFile(place.lock_folder / COUNTS)
        self.assembler = Assembler(prompt_settings(settings.prompt), self.counts)
        shown = self.assembler.settings.shown_files
        # By path: the most tokens that a prompt shows of the file.
        self.caps = {file.path: file.max_tokens or settings.prompt.max_tokens_per_file for file in shown}
        self.paths = tuple(self.caps)
        self._optional = {file.path for file in shown if file.optional}
        self._private = [f"{path}: {PRIVATE}" for path in private_paths(settings.prompt)]
        self._unread: Recent[list[str]] = Recent(32)
        if not core.settings_problem:
            _keep_settings(core.root, place.lock_folder / FOLDER)

    def sources(self, contents: Mapping[str, bytes | None] = NO_CONTENTS) -> list[FileText]:
        """The files as a prompt shows them; those of `contents` as if they had these bytes (None: no file)."""
        found = [as_source(path, contents[path]) if path in contents else self.shown.read(path) for path in self.paths]
        return [each for each in found if each.content is not None or each.path not in self._optional]

    def problems_in(self, sources: Sequence[FileText], now: datetime) -> list[str]:
        """What a person should correct: paths that no prompt shows, and rules and reminders that cannot be read."""
        found = list(self._private)
        for source in sources:
            if source.path in (RULES, REMINDERS) and source.content and not source.external:
                found += self._unread.get((source, now.date()), partial(_unread_in, source, now))
        return found


def assemble(core: Core, session: Session, **options: Unpack[Options]) -> Prompt:
    """The prompt of a session, assembled from the files as they are now.

    A session that is not the owner's learns nothing of what the prompt hides. Raises ConfigError, UsageError and
    NoAgentNamed; a total that is too small gives what fits, and a problem.
    """
    prompt, _ = assemble_whole(core, session, **options)
    if session.kind == "owner":
        return prompt
    parts = (replace(part, digest="", tokens_raw=part.tokens_whole, expired=(), gaps=()) for part in prompt.parts)
    return replace(prompt, parts=tuple(parts))


def assemble_whole(core: Core, session: Session, **options: Unpack[Options]) -> tuple[Prompt, list[FileText]]:
    """As `assemble`, with all that is known of the files, and these files."""
    files, now = files_of(core), core.settings.local_now()
    assembler, sources = files.assembler, files.sources(options.get("contents", NO_CONTENTS))
    if (max_tokens := options.get("max_tokens")) is not None:
        assembler = Assembler(replace(assembler.settings, max_tokens=max_tokens), files.counts)
    problems = [core.settings_problem] if core.settings_problem else []
    problems += files.problems_in(sources, now)
    volatile = Volatile(today=f"{now:%A, %Y-%m-%d}")
    try:
        if options.get("include") or options.get("task", "").strip():
            from notebook_sync.services.extras import sections_of  # few prompts have any

            include, task = options.get("include", ()), options.get("task", "")
            volatile = replace(volatile, sections=sections_of(core, session, include, task, assembler.count, problems))
        prompt = assembler.assemble(sources, session.kind, now=now, volatile=volatile)
    except PromptTooSmall as error:
        revision, tokens = sha256(error.fits.encode()).hexdigest(), assembler.count(error.fits)
        prompt = Prompt(error.fits, error.fits, tokens, revision, session.kind, (), problems=(str(error),))
    except VocabularyMissing as error:
        raise ConfigError(str(error), path=SETTINGS_FILE) from None
    files.counts.save()
    return replace(prompt, problems=(*prompt.problems, *problems)), sources


def files_of(core: Core) -> PromptFiles:
    """The parts of the notebook's prompt. While notebook.toml has an error, the settings that were good last are used:
    an agent without its rules is worse. Raises ConfigError where none are kept; defaults could show too much."""
    try:
        core.settings  # noqa: B018 - loaded, or raised
    except ConfigError as error:
        kept = _place_of(core).lock_folder / FOLDER
        try:
            if read_private(kept / SETTINGS_FILE) is None:
                raise error from None
            core.last_good = load_settings(kept)
        except (OSError, ConfigError):
            raise error from None
    return core.prompt_files


def read_runtime(core: Core, path: str) -> tuple[FileText, str, list[str]]:
    """A runtime file as it counts now: its source, its text, "" for one that is not the owner's, and what is wrong."""
    source = files_of(core).shown.read(path)
    problems = [f"{path}: {source.problem}"] if source.problem else []
    if source.external:
        return source, "", [*problems, f"{path} was not written by the owner, so nothing in it counts"]
    return source, (source.content or b"").decode(errors="replace"), problems


def require_runtime(core: Core, session: Session, path: str, operation: str) -> None:
    """Raises NotPermitted or NoSuchNote where the session may not read a runtime file; an event says so."""
    files_of(core)  # the settings that say so
    try:
        require(session, "read", path, core.settings.prompt)
    except (NoSuchNote, NotPermitted):
        core.events.record("refused", session, path=path, operation=operation)
        raise


def prompt_settings(table: PromptTable) -> PromptSettings:
    """The layout and limits that notebook.toml asks for."""
    private = private_paths(table)
    asked = PromptSettings(
        system_files=tuple(path for path in table.system_files if path not in private),
        directive=directive_for,
        max_tokens_per_file=table.max_tokens_per_file,
        max_tokens=table.max_tokens,
        order=table.order,
        encoding=table.encoding,
    )
    asked = replace(asked, core_facts=replace(asked.core_facts, sessions=_KNOW_CORE_FACTS))
    known = {file.path: file for file in asked.shown_files}
    files = []
    for file in table.files:
        if file.path not in private:
            usual = known.get(file.path, PromptFile(file.path, priority=0))
            sessions = tuple(kind for kind in file.sessions if kind in usual.sessions)
            files.append(
                PromptFile(file.path, file.heading, file.max_tokens, file.priority or usual.priority, sessions)
            )
    return replace(asked, files=tuple(files))


def directive_for(session: Kind, paths: Sequence[str]) -> str:
    """What the prompt says of the notebook itself to a session that is shown these files."""
    owners = f" {_template('directive-owner.md').strip()}" if session == "owner" else ""
    return _template("directive.md").replace("{{ paths }}", ", ".join(paths)).replace(" {{ owner }}", owners)


def private_paths(table: PromptTable) -> list[str]:
    """What the settings name and no prompt shows: notes of channels, in any spelling that a file system takes."""
    named = (*table.system_files, *(file.path for file in table.files))
    return [path for path in dict.fromkeys(named) if is_private(path)]


@cache
def _template(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _unread_in(source: FileText, now: datetime) -> list[str]:
    from notebook_sync.services import reminders, rules  # not for a file that is as it was

    text = (source.content or b"").decode(errors="replace")
    malformed = (rules.read_rules if source.path == RULES else reminders.read_reminders)(text, now)[1]
    return [f"{source.path}:{one.line}: {one.message}" for one in malformed]


def _place_of(core: Core) -> Place:
    """The notebook's place; as far as it is known where no state can be kept."""
    try:
        return core.place
    except NotebookError:
        return Place.find(core.root)


def _keep_settings(root: Path, folder: Path) -> None:
    """Copy notebook.toml, which is good now, or forget the copy where there is none."""
    with suppress(OSError, ConfigError, UnicodeDecodeError):  # it may have changed since it was loaded
        if not (root / SETTINGS_FILE).exists():
            (folder / SETTINGS_FILE).unlink(missing_ok=True)
            return
        raw = (root / SETTINGS_FILE).read_bytes()
        parse_settings(raw.decode())
        keep_copy(folder / SETTINGS_FILE, raw)
