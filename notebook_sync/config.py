"""notebook.toml as values: every key has a default, an unknown key is an error that names the nearest known one.

Plain dataclasses and a small checker, because every command reads the settings before it does anything else.
"""

from __future__ import annotations

import dataclasses
import difflib
import os
import posixpath
import re
import tomllib
import types
import typing
from collections.abc import Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfoNotFoundError

from notebook_sync.address import Address
from notebook_sync.errors import ConfigError
from notebook_sync.sessions import KINDS
from notebook_sync.settings import Fraction, PromptSettings, Settings

FILE = "notebook.toml"
COMMITS = ("tools", "all", "off")
TRUSTED = ("files", "committed")
EMBEDDINGS = ("wordllama", "off", "openai:MODEL")
PROMOTIONS = ("propose", "auto")
# What a file needs in the prompt for one entry and the line that tells what is left out, and all files for the layout.
SMALLEST_FILE = 40
SMALLEST_PROMPT = 500
_USUAL_FILES = (
    "runtime/external-communications.md",
    "runtime/reminders.md",
    "runtime/standing-orders.md",
    "facts/core.md",
)


def load(root: Path, environ: Mapping[str, str] = os.environ) -> Settings:
    """The settings of the notebook at `root`; MONGODB_URL and REDIS_URL win over the file. Raises ConfigError."""
    path = root / FILE
    try:
        settings = parse(path.read_text(encoding="utf-8"), str(path)) if path.exists() else Settings()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text (byte {error.start + 1}); save it as UTF-8") from None
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    return dataclasses.replace(
        settings,
        mirror=dataclasses.replace(settings.mirror, url=environ.get("MONGODB_URL") or settings.mirror.url),
        refs=dataclasses.replace(settings.refs, url=environ.get("REDIS_URL") or settings.refs.url),
    )


def parse(text: str, source: str) -> Settings:
    """The settings in `text`. Raises ConfigError naming `source`, the key and what would be right."""
    try:
        found = tomllib.loads(text)
    except ValueError as error:  # TOMLDecodeError, or a number of thousands of digits
        raise ConfigError(f"{source}: {error}") from None
    settings: Settings = _build(Settings, found, source, "")
    try:
        settings.timezone  # noqa: B018 - looked up once here, so that no later use can fail
    except (ZoneInfoNotFoundError, ValueError):
        raise ConfigError(
            f"{source}: notebook.timezone = {settings.notebook.timezone!r} is not known; write it like Europe/Berlin"
        ) from None
    if settings.sync.batch < 1:
        raise ConfigError(f"{source}: sync.batch must be at least 1")
    if settings.git.commit not in COMMITS:
        raise ConfigError(f"{source}: git.commit knows {', '.join(COMMITS)}, not {settings.git.commit!r}")
    if settings.prompt.trust not in TRUSTED:
        raise ConfigError(f"{source}: prompt.trust knows {', '.join(TRUSTED)}, not {settings.prompt.trust!r}")
    if settings.git.author and not _AUTHOR.fullmatch(settings.git.author):
        raise ConfigError(f"{source}: git.author = {settings.git.author!r}; write it like Ines <ines@ferry.example>")
    embeddings = settings.search.embeddings
    if embeddings not in EMBEDDINGS[:2] and not _OF_OPENAI.fullmatch(embeddings):
        raise ConfigError(f"{source}: search.embeddings knows {', '.join(EMBEDDINGS)}, not {embeddings!r}")
    if settings.memory.promote not in PROMOTIONS:
        raise ConfigError(f"{source}: memory.promote knows {', '.join(PROMOTIONS)}, not {settings.memory.promote!r}")
    if settings.server.port > _LARGEST_PORT:
        raise ConfigError(f"{source}: server.port must be at most {_LARGEST_PORT:,}")
    return dataclasses.replace(settings, prompt=_checked(settings.prompt, source), source=source)


# What of the settings starts a program, goes to another machine with a secret of this one, or lets others in.
_REACHING: tuple[str, ...] = ("mirror.url", "refs.url", "server.host", "server.allowed_hosts", "tier2.command")
_REACHING += ("llm.model",)
_REACHING += tuple(f"{table}.{key}" for table in ("search", "llm") for key in ("base_url", "api_key_env"))


def reaching_out(settings: Settings) -> list[str]:
    """The keys, of those that are set, by which a notebook starts programs or reaches beyond its folder."""
    usual = Settings()
    keys = [key for key in _REACHING if attrgetter(key)(settings) != attrgetter(key)(usual)]
    return [*(["search.embeddings"] if settings.search.embeddings not in EMBEDDINGS[:2] else []), *keys]


def _checked(prompt: PromptSettings, source: str) -> PromptSettings:
    """The settings with one spelling for each path, which are fit for a prompt."""
    files = tuple(dataclasses.replace(file, path=_inside(file.path, source)) for file in prompt.files)
    paths = [file.path for file in files]
    for file in files:
        if paths.count(file.path) > 1:
            raise ConfigError(f"{source}: [[prompt.files]] has {file.path!r} more than once; make one block of them")
        for kind in file.sessions:
            if kind not in KINDS:
                raise ConfigError(f"{source}: prompt.files.sessions knows {', '.join(KINDS)}, not {kind!r}")
        if file.max_tokens:
            _must_suffice(file.max_tokens, SMALLEST_FILE, f"prompt.files.max_tokens of {file.path!r}", source)
    _must_suffice(prompt.max_tokens_per_file, SMALLEST_FILE, "prompt.max_tokens_per_file", source)
    _must_suffice(prompt.max_tokens, SMALLEST_PROMPT, "prompt.max_tokens", source)
    system_files = tuple(dict.fromkeys(posixpath.normpath(path) for path in prompt.system_files))
    order = tuple(dict.fromkeys(_inside(path, source) for path in prompt.order))
    known = [path for path in (*_USUAL_FILES, *paths) if path not in system_files]
    for path in order:
        if path not in known:
            raise ConfigError(f"{source}: prompt.order knows {', '.join(dict.fromkeys(known))}, not {path!r}")
    return dataclasses.replace(prompt, files=files, system_files=system_files, order=order)


def _inside(path: str, source: str) -> str:
    """The one spelling of a path below the notebook."""
    plain = posixpath.normpath(path)
    if plain.startswith("/") or plain.split("/")[0] in ("..", "."):
        raise ConfigError(
            f"{source}: [prompt] names {path!r}, which is not in the notebook; write a path from the notebook's "
            "folder, as pages/plan.md"
        )
    return plain


def _must_suffice(tokens: int, needed: int, what: str, source: str) -> None:
    # An agent without its rules is found out late, so this is not left to `check`.
    if tokens < needed:
        raise ConfigError(f"{source}: {what} = {tokens} is too small to show anything; it must be at least {needed}")


def shown(settings: Settings) -> dict[str, Any]:
    """The resolved settings for people, the addresses of servers without what is secret in them."""
    values = dataclasses.asdict(settings)
    for table, key in (("mirror", "url"), ("refs", "url"), ("search", "base_url"), ("llm", "base_url")):
        values[table][key] = Address.of(values[table][key]).shown()
    return values


def origins(settings: Settings, environ: Mapping[str, str] = os.environ) -> list[dict[str, Any]]:
    """Each setting as `{key, value, source}`; the source is notebook.toml, a variable's name, or `default`."""
    try:
        written = tomllib.loads(Path(settings.source).read_text(encoding="utf-8")) if settings.source else {}
    except (OSError, ValueError):  # changed since it was loaded
        written = {}
    overrides = {key: name for key, name in _OVERRIDES.items() if environ.get(name)}
    return [
        {
            "key": f"{table}.{key}",
            "value": value,
            "source": overrides.get(f"{table}.{key}") or (FILE if key in written.get(table, {}) else "default"),
        }
        for table, values in shown(settings).items()
        if isinstance(values, dict)
        for key, value in values.items()
    ]


_LARGEST = 10**9
_LARGEST_PORT = 65_535
_OF_OPENAI = re.compile(r"openai:\S+")
_AUTHOR = re.compile(r"[^<>\n\0]*[^<>\s][^<>\n\0]* <[^<>\s\0]+>")
# Drivers count milliseconds, and take none for waiting for ever.
_SHORTEST = 0.001
_OVERRIDES = {"mirror.url": "MONGODB_URL", "refs.url": "REDIS_URL"}


def _build(kind: type[Any], found: Any, source: str, where: str) -> Any:
    """A value of the dataclass `kind` from a TOML table."""
    if not isinstance(found, dict):
        raise ConfigError(f"{source}: [{where}] must be a table")
    hints = typing.get_type_hints(kind)
    known = [f.name for f in dataclasses.fields(kind) if not (kind is Settings and f.name == "source")]
    for key in found:
        if key not in known:
            raise ConfigError(f"{source}: unknown key {_dotted(where, key)!r}; {_meant(key, known, where)}")
    for one in dataclasses.fields(kind):
        has_default = one.default is not dataclasses.MISSING or one.default_factory is not dataclasses.MISSING
        if not has_default and one.name not in found:
            raise ConfigError(f"{source}: {_dotted(where, one.name)!r} is missing")
    return kind(**{key: _coerced(hints[key], value, source, _dotted(where, key)) for key, value in found.items()})


def _meant(key: str, known: list[str], where: str) -> str:
    tables = typing.get_type_hints(Settings)
    homes = [name for name, table in tables.items() if key in getattr(table, "__dataclass_fields__", ())]
    near = difflib.get_close_matches(key, known, n=1)
    if homes and not near:
        return f"it belongs below {' or '.join(f'[{home}]' for home in homes)}"
    near = near or difflib.get_close_matches(key, known, n=1, cutoff=0.0)
    return f"did you mean {_dotted(where, near[0])!r}?"


def _coerced(wanted: Any, value: Any, source: str, where: str) -> Any:
    """`value` as the annotated type; an int is a fine float, a bool is no int."""
    if dataclasses.is_dataclass(wanted):
        return _build(typing.cast("type[Any]", wanted), value, source, where)
    if isinstance(wanted, types.GenericAlias):
        (item, _) = typing.get_args(wanted)
        if isinstance(value, list):
            return tuple(_coerced(item, one, source, where) for one in value)
        raise ConfigError(f"{source}: {where} must be a list")
    kind = float if wanted is Fraction else wanted
    if type(value) is not kind and not (kind is float and type(value) is int):
        raise ConfigError(f"{source}: {where} must be {_named(kind)}, not {_named(type(value))}")
    if wanted is int and not 0 <= value <= _LARGEST:
        raise ConfigError(f"{source}: {where} must {'not be negative' if value < 0 else f'be at most {_LARGEST:,}'}")
    if wanted is Fraction:
        if not 0 <= value <= 1:
            raise ConfigError(f"{source}: {where} must be from 0 to 1")
        return float(value)
    if wanted is float:  # a time
        if not _SHORTEST <= value <= _LARGEST:  # what is not a number is not between two either
            raise ConfigError(f"{source}: {where} must be from {_SHORTEST} to {_LARGEST:,}")
        return float(value)
    return value


_TYPES = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "a table",
}


def _named(kind: type[Any]) -> str:
    return _TYPES.get(kind, "a date or a time")  # all else that TOML knows


def _dotted(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key
