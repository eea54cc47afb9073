"""The notebook's system prompt: its settings, its files, and what a caller adds.

It is read from files at each call. The index is asked only for what `include` names: which notes are recent, and which
facts count for most. Laying out and cutting is the work of the package `prompt`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import cache, lru_cache
from hashlib import sha256
from itertools import islice
from pathlib import Path

import msgspec

import runtime_templates
from notebook_sync import services
from notebook_sync.errors import (
    ConfigError,
    NoAgentNamed,
    NoSuchNote,
    NotebookError,
    UnreadableFile,
    UnsafePath,
    UsageError,
)
from notebook_sync.files.private import read_private
from notebook_sync.files.state import Place
from notebook_sync.model import CORE_FACTS, RUNTIME_FILES, SETTINGS_FILE
from notebook_sync.permissions import is_private, may
from notebook_sync.services.core import Core
from notebook_sync.services.trust import FOLDER, ShownFiles, as_source, keep_copy
from notebook_sync.sessions import Session
from notebook_sync.settings import PromptTable, load_settings
from prompt import (
    Assembler,
    Count,
    Entry,
    FileText,
    Prompt,
    PromptFile,
    PromptSettings,
    PromptTooSmall,
    VocabularyMissing,
    Volatile,
    VolatileSection,
    quote,
    trim,
    visible,
)
from prompt.values import Session as Kind

RULES, REMINDERS, _ = RUNTIME_FILES
PRIVATE = "belongs to an agent's channel, which no prompt shows as a file; remove its path from notebook.toml"
NO_CONTENTS: Mapping[str, bytes | None] = {}
INCLUDES = ("refs", "facts", "notes")
FACTS = "facts/notes.md"
# Read by their paths: `importlib.resources` would load readers of archives at every start.
_TEMPLATES = Path(runtime_templates.__file__).parent
_MOST_COUNTS = 4096
_REFS, _NOTES, _NOTE_TOKENS = 12, 5, 400
_ID, _TITLE, _SUMMARY = 512, 120, 200
# The importance of a fact that the index does not know.
_START = 0.5


class CountFile:
    """A `prompt.CountCache` in one JSON file, so that an unchanged prompt needs no vocabulary in the next process; and,
    by path, what could not be read of a file, so that it needs no grammar either.

    A file that is missing, broken or not writable costs time, never an error; the last process to save wins.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kept: dict[str, int | list[str]] = {}
        with suppress(OSError, ValueError, RecursionError):
            self._kept = msgspec.json.decode(read_private(path) or b"{}", type=dict[str, int | list[str]])
        self._is_new = False

    def get(self, key: str) -> int | None:
        """The count of a key, None where it is not known."""
        tokens = self._kept.get(key)
        return tokens if isinstance(tokens, int) else None

    def unread(self, path: str, digest: str) -> list[str] | None:
        """The problems of a file with this digest, None where the last that were remembered are of another."""
        known = self._kept.get(path)
        return known[1:] if isinstance(known, list) and known[:1] == [digest] else None

    def put(self, key: str, value: int | list[str]) -> None:
        """Remember a count; or, by a file's path, its digest and its problems."""
        self._kept[key] = value
        self._is_new = True

    def save(self) -> None:
        """Write what is new, and forget what is oldest."""
        if self._is_new:
            self._is_new = False
            if len(self._kept) > _MOST_COUNTS:
                self._kept = dict(list(self._kept.items())[-_MOST_COUNTS:])
            with suppress(OSError):
                self._path.unlink()  # where a file is exchanged for another, ext4 waits for the disk
            keep_copy(self._path, msgspec.json.encode(self._kept))


class PromptFiles:
    """What prompts of one notebook are made of: `Core.prompt_files` keeps it while the settings stay the same."""

    def __init__(self, core: Core) -> None:
        settings, place = core.settings, _place_of(core)
        self.shown = ShownFiles(core.tree, place, settings)
        self.counts = CountFile(place.lock_folder / "counts.json")
        self.assembler = Assembler(prompt_settings(settings.prompt), self.counts)
        shown = self.assembler.settings.shown_files
        # By path: the most tokens that a prompt shows of the file.
        self.caps = {file.path: file.max_tokens or settings.prompt.max_tokens_per_file for file in shown}
        self.paths = tuple(self.caps)
        self.settings = settings
        self.private = [f"{path}: {PRIVATE}" for path in private_paths(settings.prompt)]
        self._optional = {file.path for file in shown if file.optional}
        if not core.settings_problem:
            with suppress(OSError):  # for as long as notebook.toml has an error
                file = core.root / SETTINGS_FILE
                keep_copy(place.lock_folder / FOLDER / SETTINGS_FILE, file.read_bytes() if file.exists() else b"")

    def sources(self, contents: Mapping[str, bytes | None] = NO_CONTENTS) -> list[FileText]:
        """The files as a prompt shows them; those of `contents` as if they had these bytes (None: no file)."""
        found = [as_source(path, contents[path]) if path in contents else self.shown.read(path) for path in self.paths]
        return [each for each in found if each.content is not None or each.path not in self._optional]


def assemble(
    core: Core,
    session: Session,
    *,
    max_tokens: int | None = None,
    include: Sequence[str] = (),
    task: str = "",
    contents: Mapping[str, bytes | None] = NO_CONTENTS,
) -> Prompt:
    """The prompt of a session, assembled from the files as they are now.

    `max_tokens`: another total than prompt.max_tokens. `include`: refs, facts, notes. `task`: shown last. `contents`:
    bytes that files are taken to have (None: no file). A session that is not the owner's learns nothing of what the
    prompt hides. Raises ConfigError, UsageError and NoAgentNamed; a total that is too small gives what fits, and a
    problem.
    """
    sources = files_of(core).sources(contents)
    prompt = assemble_from(core, session, sources, max_tokens=max_tokens, include=include, task=task)
    if session.kind == "owner":
        return prompt
    parts = (part._replace(digest="", tokens_raw=part.tokens_whole, expired=(), gaps=()) for part in prompt.parts)
    return prompt._replace(parts=tuple(parts))


def assemble_from(
    core: Core,
    session: Session,
    sources: Sequence[FileText],
    *,
    max_tokens: int | None = None,
    include: Sequence[str] = (),
    task: str = "",
) -> Prompt:
    """As `assemble`, from sources, and with all that is known of them."""
    files = core.prompt_files
    now = datetime.now(files.settings.timezone)
    assembler = files.assembler if max_tokens is None else files.assembler.limited_to(max_tokens)
    problems = [*files.private, *([core.settings_problem] if core.settings_problem else [])]
    for source in sources:
        if source.path in (RULES, REMINDERS) and source.content and not source.external:
            problems += _unread_in(source, now.replace(hour=0, minute=0, second=0, microsecond=0), files.counts)
    sections = _sections(core, session, include, task, assembler.count, problems) if include or task.strip() else ()
    volatile = Volatile(sections, today=f"{now:%A, %Y-%m-%d}")
    try:
        prompt = assembler.assemble(sources, session.kind, now=now.replace(tzinfo=None), volatile=volatile)
    except PromptTooSmall as error:
        revision, tokens = sha256(error.fits.encode()).hexdigest(), assembler.count(error.fits)
        prompt = Prompt(error.fits, error.fits, tokens, revision, session.kind, (), problems=(str(error),))
    except VocabularyMissing as error:
        raise ConfigError(str(error), path=SETTINGS_FILE) from None
    files.counts.save()
    return prompt._replace(problems=(*prompt.problems, *problems))


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


def read_runtime(core: Core, session: Session, path: str, operation: str) -> tuple[str, datetime, list[str]]:
    """A runtime file as it counts now: its text, "" for one that is not the owner's; now, in the notebook's time zone;
    and what is wrong.

    Raises NotPermitted or NoSuchNote where the session may not read it; an event says so.
    """
    source, now = files_of(core).shown.read(path), datetime.now(core.settings.timezone)
    services.view.View(core, session).require("read", path, operation)
    problems = [f"{path}: {source.problem}"] if source.problem else []
    if source.external:
        return "", now, [*problems, f"{path} was not written by the owner, so nothing in it counts"]
    return source.text, now, problems


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
        # No setting shows core facts to a session that acts on someone else's message.
        core_facts=PromptFile(CORE_FACTS, "Core Facts", sessions=("owner", "task"), optional=True),
    )
    known = {file.path: file for file in asked.shown_files}
    files = []
    for file in (each for each in table.files if each.path not in private):
        usual = known.get(file.path, PromptFile(file.path, priority=0))
        sessions = tuple(kind for kind in file.sessions if kind in usual.sessions)
        priority = file.priority or usual.priority
        files.append(PromptFile(file.path, file.heading, file.max_tokens, priority, sessions))
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


@lru_cache(maxsize=32)
def _unread_in(source: FileText, day: datetime, counts: CountFile) -> list[str]:
    """The rules or reminders of a file that cannot be read, as of this day. They are remembered with the counts."""
    content = source.content or b""
    digest = sha256(f"{day:%Y-%m-%d}\0".encode() + content).hexdigest()[:32]
    if (known := counts.unread(source.path, digest)) is not None:
        return known
    grammar = services.rules.GRAMMAR if source.path == RULES else services.reminders.GRAMMAR
    malformed = grammar.contents(content.decode(errors="replace"), day).malformed
    problems = [f"{source.path}:{one.line}: {one.message}" for one in malformed]
    counts.put(source.path, [digest, *problems])
    return problems


def _place_of(core: Core) -> Place:
    """The notebook's place; as far as it is known where no state can be kept."""
    try:
        return core.place
    except NotebookError:
        return Place.find(core.root)


# ---- what a caller adds


def _sections(
    core: Core, session: Session, include: Sequence[str], task: str, count: Count, problems: list[str]
) -> tuple[VolatileSection, ...]:
    """The sections that a caller asks for, as far as the session may see them. What is left out, and why, is added to
    `problems`. Raises UsageError for an unknown part, NoAgentNamed for the notes of nobody."""
    if unknown := set(include) - set(INCLUDES):
        raise UsageError(f"there is no part {min(unknown)!r} to include", next=f"use {', '.join(INCLUDES)}")
    if "notes" in include and not session.agent:
        raise NoAgentNamed("notes are those of one agent, and none is named", next="name it with --agent NAME")
    found: list[VolatileSection] = []
    if "refs" in include:
        try:
            found.append(VolatileSection("Notebook", tuple(_refs(core, session)), 0))
            problems += [f"refs: {reason}"] if (reason := core.behind()) else []
        except NotebookError as error:
            problems.append(f"refs: left out: {error}")
    if "facts" in include and FACTS not in core.prompt_files.paths:  # of those, the settings say who sees them
        found.append(VolatileSection("Facts", tuple(_facts(core, problems)), 2))
    if "notes" in include and session.kind == "external":
        problems.append("notes: left out, since an external session reads no channel")
    elif "notes" in include:
        found.append(VolatileSection("Recent Notes", tuple(islice(_notes(core, session, count, problems), _NOTES)), 1))
    if task.strip():
        source = "the task of an external session" if session.kind == "external" else ""
        found.append(VolatileSection("Task Brief", (Entry(task, source),), 3))
    return tuple(found)


def _refs(core: Core, session: Session) -> Iterator[Entry]:
    """The notes that were changed last, one line each: enough to know that they exist and what they are about."""
    from notebook_sync.store.rows import Is, Not, both

    apart = Is("path", "in", core.prompt_files.paths), Is("path", "under", "channels"), Is("path", "=", None)
    where = both(services.view.View(core, session).whole, *map(Not, apart))
    for row in core.index.documents.find(where, order=("-updated_at", "path"), limit=_REFS):
        line = f"- {_bounded(row['title'], _TITLE)} (`{_bounded(row['id'], _ID)}`, {row['status']})"
        line += f": {_bounded(row['summary'], _SUMMARY)}" if row["summary"] else ""
        yield Entry(line, "external" if row["provenance"] else "")


def _facts(core: Core, problems: list[str]) -> Iterator[Entry]:
    """The facts of facts/notes.md, those that count for most before the others."""
    from notebook_sync.files.parse import parse  # YAML, which no other part of a prompt needs

    source, known = core.prompt_files.shown.read(FACTS), dict[str, float]()
    problems += [f"{FACTS}: {source.problem}"] if source.problem else []
    text = visible(source.text, now=core.settings.local_now()).text
    facts = {
        fact.id: fact for fact in parse(FACTS, text.encode(errors="replace"), timezone=core.settings.timezone).facts
    }
    try:
        rows = core.index.facts.get(list(facts), heavy=False)
        known = {id: row["base"] if row["pin"] is None else row["pin"] for id, row in rows.items()}
    except NotebookError as error:
        problems.append(f"facts: in the order of their file: {error}")
    for id, fact in facts.items():
        rank = -known.get(id, _START)
        yield Entry(f"- {' '.join(fact.text.split())}", "external" if source.external else "", rank)


def _notes(core: Core, session: Session, count: Count, problems: list[str]) -> Iterator[Entry]:
    """The agent's private notes that the session may read, the newest first, each under its path."""
    stamps = core.tree.scan([f"channels/{session.agent}"]).seen
    readable = [path for path in stamps if may(session, "read", path, core.settings.prompt)]
    for path in sorted(readable, key=lambda path: (-stamps[path].mtime_ns, path)):
        try:
            source = as_source(path, core.tree.read(path).raw)
        except NoSuchNote:
            continue
        except (UnreadableFile, UnsafePath) as error:
            problems.append(f"notes: left out: {error}")
        else:
            text = visible(source.text, now=core.settings.local_now()).text.strip()
            shown = trim(text, _NOTE_TOKENS, lambda each: count(quote(each)), path=path).text
            if shown and source.external:
                yield Entry(shown, path)
            elif shown:  # quoted, so that nothing in it looks like the path of another note
                yield Entry(f"`{path}`\n\n{quote(shown)}")


def _bounded(text: str, length: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"
