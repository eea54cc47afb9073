"""Every setting of a notebook, with its default, and how notebook.toml is read.

An unknown key is an error that names the nearest known one. Secrets are never part of a message.
"""

# Without `from __future__ import annotations`: msgspec would compile each annotation at each start of the program.

import os
import posixpath
import re
import tomllib
from collections.abc import Mapping
from datetime import datetime
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_type_hints
from urllib.parse import urlsplit, urlunsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from notebook_sync.errors import ConfigError
from notebook_sync.model import CORE_FACTS, RUNTIME_FILES, SETTINGS_FILE
from notebook_sync.sessions import KINDS, Kind

Fraction = Annotated[float, msgspec.Meta(ge=0, le=1)]
Seconds = Annotated[float, msgspec.Meta(ge=0.001, le=1e9)]
Whole = Annotated[int, msgspec.Meta(ge=0, le=10**9)]
Positive = Annotated[int, msgspec.Meta(ge=1, le=10**9)]

# What the prompt needs for one entry of a file and the line that names what is left out, and for the whole.
SMALLEST_FILE = 40
SMALLEST_PROMPT = 500


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One table of notebook.toml."""


class NotebookTable(Table, frozen=True):
    """[notebook]: its name, its time zone, and which files are notes."""

    id: str = ""
    name: str = ""
    timezone: str = ""
    max_file_bytes: Positive = 2 << 20
    exclude: tuple[str, ...] = ()


class MirrorTable(Table, frozen=True):
    """[mirror]: MongoDB, if `url` is set."""

    url: str = ""
    database: str = "aether_notebook"
    timeout_seconds: Seconds = 5.0
    private: bool = False


class RefsTable(Table, frozen=True):
    """[refs]: Redis, if `url` is set; keys begin with `prefix`."""

    url: str = ""
    prefix: str = "aether"
    timeout_seconds: Seconds = 2.0


class SyncTable(Table, frozen=True):
    """[sync]: how the files are followed."""

    settle_ms: Whole = 300
    reconcile_seconds: Seconds = 60.0
    full_hash_hours: Seconds = 24.0
    batch: Positive = 500


class PromptFileTable(Table, frozen=True):
    """[[prompt.files]]: one more file of the prompt, or other limits for one that is in it anyway.

    `heading` "", `max_tokens` 0 and `priority` 0 keep what applies without them.
    """

    path: str
    heading: str = ""
    max_tokens: Whole = 0
    priority: Whole = 0
    sessions: tuple[Kind, ...] = KINDS


class PromptTable(Table, frozen=True):
    """[prompt]: the files of the prompt and its limits, in tokens of `encoding`.

    `system_files` come first, then the paths of `order`. `trust`: "files" shows the files as they are, "committed"
    only text that is committed, or that the owner wrote or accepted.
    """

    max_tokens_per_file: Positive = 2000
    max_tokens: Positive = 16_000
    encoding: str = "cl100k_base"
    trust: Literal["files", "committed"] = "files"
    system_files: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    files: tuple[PromptFileTable, ...] = ()


class PermissionsTable(Table, frozen=True):
    """[permissions]: what task sessions may change."""

    notebook_edit: Literal["owner", "notes"] = "owner"
    pages: Literal["shared", "own"] = "shared"


class GitTable(Table, frozen=True):
    """[git]: which edits are committed, and by whom ("Name <mail>"; "" is git's own setting)."""

    commit: Literal["tools", "all", "off"] = "tools"
    author: str = ""


class SearchTable(Table, frozen=True):
    """[search]: what makes vectors, and a second stage that orders the best results again."""

    embeddings: str = "wordllama"
    second_stage: str = ""
    base_url: str = ""
    api_key_env: str = "OPENAI_API_KEY"
    timeout_seconds: Seconds = 10.0


class LlmTable(Table, frozen=True):
    """[llm]: a language model at any OpenAI-compatible server; none if `model` is ""."""

    base_url: str = ""
    model: str = ""
    api_key_env: str = "OPENAI_API_KEY"
    timeout_seconds: Seconds = 60.0


class MemoryTable(Table, frozen=True):
    """[memory]: how facts decay and are promoted, and how a memory's score is computed."""

    decay_rate: Fraction = 0.01
    archive_below: Fraction = 0.05
    promote_above: Fraction = 0.8
    promote_accesses: Whole = 3
    promote: Literal["propose", "auto"] = "propose"
    stale_days: Whole = 30
    recalculate_hours: Seconds = 6.0
    duplicate: Fraction = 0.85
    confirmed: Fraction = 0.85
    related: Fraction = 0.6
    reinforced: Fraction = 0.75
    usage: Fraction = 0.30
    recency: Fraction = 0.35
    priority: Fraction = 0.25
    age: Fraction = 0.10
    recency_half_life_days: Seconds = 7.0
    age_half_life_days: Seconds = 30.0
    infer_above: Fraction = 0.7


class ContextTable(Table, frozen=True):
    """[context]: how a task brief is compiled."""

    max_tokens: Positive = 8000
    top_k: Positive = 15
    prefilter: Positive = 150
    domains: tuple[str, ...] = ()
    include_domains: tuple[str, ...] = ()
    similarity: Fraction = 0.6
    diversity: Fraction = 0.7


class Tier2Table(Table, frozen=True):
    """[tier2]: who answers a task brief: the MCP server that `command` starts, else the model of [llm]."""

    enabled: bool = False
    command: tuple[str, ...] = ()
    notebook_id: str = ""
    daily_limit: Whole = 50
    cache_ttl_hours: Seconds = 24.0
    cache_entries: Positive = 100
    timeout_seconds: Seconds = 180.0
    question_characters: Positive = 10_000
    specs: tuple[str, ...] = ()


class ServerTable(Table, frozen=True):
    """[server]: where `serve` listens, and further host names that it answers to."""

    host: str = "127.0.0.1"
    port: Annotated[int, msgspec.Meta(ge=0, le=65_535)] = 8765
    allowed_hosts: tuple[str, ...] = ()


class Settings(Table, frozen=True):
    """All settings of a notebook."""

    notebook: NotebookTable = NotebookTable()
    mirror: MirrorTable = MirrorTable()
    refs: RefsTable = RefsTable()
    sync: SyncTable = SyncTable()
    prompt: PromptTable = PromptTable()
    permissions: PermissionsTable = PermissionsTable()
    git: GitTable = GitTable()
    search: SearchTable = SearchTable()
    llm: LlmTable = LlmTable()
    memory: MemoryTable = MemoryTable()
    context: ContextTable = ContextTable()
    tier2: Tier2Table = Tier2Table()
    server: ServerTable = ServerTable()

    @property
    def timezone(self) -> ZoneInfo:
        """The time zone of day keys and of dates in the runtime files."""
        return ZoneInfo(self.notebook.timezone) if self.notebook.timezone else machine_timezone()

    def local_now(self) -> datetime:
        """What the notebook's clock shows, without a zone: what dates in its files are compared with."""
        return datetime.now(self.timezone).replace(tzinfo=None)


def machine_timezone() -> ZoneInfo:
    """The machine's time zone: TZ, else the zone that /etc/localtime points to, else UTC."""
    named = os.environ.get("TZ", "").lstrip(":")
    if not named:
        target = os.path.realpath("/etc/localtime")
        named = target.partition("zoneinfo/")[2]
    try:
        return ZoneInfo(named or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return ZoneInfo("UTC")


def load_settings(root: Path, environ: Mapping[str, str] = os.environ) -> Settings:
    """The settings of the notebook at `root`; MONGODB_URL and REDIS_URL win over the file. Raises ConfigError."""
    path = root / SETTINGS_FILE
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        text = ""
    except UnicodeDecodeError as error:
        raise ConfigError(f"not UTF-8 text (byte {error.start + 1})", path=str(path), next="save it as UTF-8") from None
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", path=str(path)) from None
    settings = parse_settings(text, str(path))
    return msgspec.structs.replace(
        settings,
        mirror=msgspec.structs.replace(settings.mirror, url=environ.get("MONGODB_URL") or settings.mirror.url),
        refs=msgspec.structs.replace(settings.refs, url=environ.get("REDIS_URL") or settings.refs.url),
    )


def parse_settings(text: str, source: str = SETTINGS_FILE) -> Settings:
    """The settings in the text of a notebook.toml. Raises ConfigError with path, line and what would be right."""
    try:
        given = tomllib.loads(text.removeprefix("\ufeff"))  # which editors on Windows write
    except ValueError as error:  # TOMLDecodeError, or a number of thousands of digits
        found = re.search(r"at line (\d+)", str(error))
        raise ConfigError(str(error), path=source, line=int(found[1]) if found else 0) from None
    try:
        settings = msgspec.convert(given, Settings)
    except msgspec.ValidationError as error:
        raise _explained(str(error), text, source) from None
    prompt = _with_plain_paths(settings.prompt)
    for key, problem, advice in _faults(settings, prompt):
        raise ConfigError(problem, path=source, line=line_of_key(text, key), next=advice)
    return msgspec.structs.replace(settings, prompt=prompt)


def describe_settings(root: Path, settings: Settings, environ: Mapping[str, str] = os.environ) -> list[dict[str, Any]]:
    """Each setting as `{key, value, source}`, secrets masked. The source is notebook.toml, a variable, or default."""
    try:
        written = tomllib.loads((root / SETTINGS_FILE).read_text(encoding="utf-8-sig"))
    except (OSError, ValueError):
        written = {}
    rows = []
    for table, values in msgspec.to_builtins(settings).items():
        for name, value in values.items():
            key, source = f"{table}.{name}", SETTINGS_FILE if name in written.get(table, {}) else "default"
            if environ.get(_VARIABLES.get(key, "")):
                source = _VARIABLES[key]
            shown = mask_secrets(value) if isinstance(value, str) else value
            rows.append({"key": key, "value": shown, "source": source})
    return rows


def mask_secrets(url: str) -> str:
    """A URL without user name, password and query; any other text as it is."""
    try:
        parts = urlsplit(url)
        if not parts.netloc:
            return url
        host = parts.netloc.rpartition("@")[2]
        user = "***@" if "@" in parts.netloc else ""
        return urlunsplit((parts.scheme, user + host, parts.path, "***" if parts.query else "", ""))
    except ValueError:
        return "***"


def settings_that_reach_out(settings: Settings) -> list[str]:
    """The keys, of those that are set, that start programs or name servers, models, keys or hosts."""
    values = map(attrgetter(*_REACHING), (settings, Settings()))
    keys = [key for key, value, default in zip(_REACHING, *values, strict=True) if value != default]
    return keys if settings.search.embeddings in ("wordllama", "off") else ["search.embeddings", *keys]


_VARIABLES = {"mirror.url": "MONGODB_URL", "refs.url": "REDIS_URL"}
_REACHING = (
    "mirror.url",
    "refs.url",
    "server.host",
    "server.allowed_hosts",
    "tier2.command",
    "llm.model",
    "llm.base_url",
    "llm.api_key_env",
    "search.base_url",
    "search.api_key_env",
    "search.second_stage",
)
# What a text must look like: key, pattern, and what to say where it does not.
_FORMS = (
    (
        "git.author",
        r"|[^<>\n\0]*[^<>\s][^<>\n\0]* <[^<>\s\0]+>",
        "not a name and an address",
        "write it like Ines <ines@ferry.example>",
    ),
    ("search.embeddings", r"wordllama|off|openai:\S+", "unknown value", "use wordllama, off or openai:MODEL"),
    ("search.second_stage", r"|(openai|onnx):\S+", "unknown value", "use onnx:DIR or openai:MODEL"),
)
_TYPES = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "array": "a list",
    "object": "a table",
    "bool": "true or false",
}


def _explained(message: str, text: str, source: str) -> ConfigError:
    """msgspec's message with the key, its line, and the nearest known key."""
    problem, _, place = message.partition(" - at `$.")
    where = re.sub(r"\[\.*\d*\]", "", place.rstrip("`"))
    unknown = re.search(r"unknown field `([^`]*)`", problem)
    if not unknown:
        said, advice = _in_words(problem.replace("`", ""), where)
        return ConfigError(f"{where}: {said}", path=source, line=line_of_key(text, where), next=advice)
    import difflib  # only for a wrong setting

    key, known = unknown[1], _table_named(where).__struct_fields__
    start = f"{where}." if where else ""
    homes = [f"[{name}]" for name in Settings.__struct_fields__ if key in _table_named(name).__struct_fields__]
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.6 if homes else 0.0)
    advice = f"did you mean {start}{near[0]}?" if near else f"it belongs in {' or '.join(homes)}"
    dotted = f"{start}{key}"
    return ConfigError(f"unknown key {dotted!r}", path=source, line=line_of_key(text, dotted), next=advice)


def _in_words(problem: str, key: str) -> tuple[str, str]:
    """msgspec's message about a value as people say it, and the values that are possible where they are few."""
    if not problem.startswith("Invalid enum value"):
        plain = problem.replace("Object missing required field", "missing key").replace("Expected", "expected")
        return re.sub(r"\b(?:int|float|str|array|object|bool)\b", lambda name: _TYPES[name[0]], plain), ""
    table, _, name = key.rpartition(".")
    values = get_args(get_type_hints(_table_named(table))[name])
    choices = [str(each) for each in get_args(values[0]) or values]
    return problem.replace("Invalid enum", "unknown"), f"use {' or '.join(choices)}"


def _table_named(name: str) -> type[Table]:
    """The table of a name in the file; all settings for ""."""
    if name == "prompt.files":
        return PromptFileTable
    return type(getattr(Settings(), name)) if name else Settings


def line_of_key(text: str, dotted: str) -> int:
    """The 1-based line that sets `table.key` (or opens `[table]`), 0 where it is not found."""
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[\[?\s*([^\]]+?)\s*\]", line)
        name = re.match(r"\s*[\"']?([\w.-]+)[\"']?\s*=", line)
        table = header[1] if header else table
        written = f"{table}.{name[1]}".lstrip(".") if name else table if header else ""
        if written and written == dotted:
            return number
    return 0


def _with_plain_paths(prompt: PromptTable) -> PromptTable:
    """The table with one spelling for each path, and each path once."""
    files = tuple(msgspec.structs.replace(file, path=posixpath.normpath(file.path)) for file in prompt.files)
    system, order = (dict.fromkeys(map(posixpath.normpath, paths)) for paths in (prompt.system_files, prompt.order))
    return msgspec.structs.replace(prompt, files=files, system_files=tuple(system), order=tuple(order))


def _faults(settings: Settings, plain: PromptTable) -> list[tuple[str, str, str]]:
    """What is wrong with values of the right type: each the key, the problem, and what would be right. `plain` is the
    table of the prompt with plain paths."""
    prompt, paths = settings.prompt, [file.path for file in plain.files]
    # An agent without its rules is noticed late, so limits too small to show anything are refused at once.
    limits = [
        *(("prompt.files.max_tokens", file.max_tokens, SMALLEST_FILE) for file in prompt.files if file.max_tokens),
        ("prompt.max_tokens_per_file", prompt.max_tokens_per_file, SMALLEST_FILE),
        ("prompt.max_tokens", prompt.max_tokens, SMALLEST_PROMPT),
    ]
    named = [
        *(("prompt.files.path", file.path) for file in prompt.files),
        *(("prompt.system_files", path) for path in prompt.system_files),
    ]
    known = [path for path in dict.fromkeys((*RUNTIME_FILES, CORE_FACTS, *paths)) if path not in plain.system_files]
    faults = [
        *(
            (key, f"{key} = {tokens} is too small to show anything", f"use at least {least}")
            for key, tokens, least in limits
            if tokens < least
        ),
        *(
            (
                key,
                f"{key} names {path!r}, which is not in the notebook",
                "write a path from the notebook's folder, like pages/plan.md",
            )
            for key, path in named
            if posixpath.normpath(path).split("/")[0] in ("", "..", ".")
        ),
        *(
            ("", f"[[prompt.files]] names {path!r} more than once", "keep one block for each file")
            for path in paths
            if paths.count(path) > 1
        ),
        *(
            (
                "prompt.order",
                f"prompt.order names {path!r}, which is not in the prompt",
                f"use some of: {', '.join(known)}",
            )
            for path in plain.order
            if path not in known
        ),
        *(
            (key, f"{key}: {problem}", advice)
            for key, pattern, problem, advice in _FORMS
            if not re.fullmatch(pattern, attrgetter(key)(settings))
        ),
    ]
    try:
        settings.timezone  # noqa: B018 - looked up once here, so that no later use can fail
    except (ZoneInfoNotFoundError, ValueError, OSError):
        faults.append(("notebook.timezone", "notebook.timezone: unknown time zone", "write it like Europe/Berlin"))
    if settings.tier2.specs:
        from pathspec import GitIgnoreSpec  # takes a while, and few notebooks have specs

        try:
            GitIgnoreSpec.from_lines(settings.tier2.specs)
        except (ValueError, re.error) as error:
            faults.append(("tier2.specs", f"tier2.specs: {error}", "write patterns as in a .gitignore"))
    return faults
