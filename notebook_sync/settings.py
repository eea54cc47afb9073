"""Every setting of a notebook as a value, with its default. `config` reads them from notebook.toml."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import NewType
from zoneinfo import ZoneInfo

# From 0 to 1; every other float is a time.
Fraction = NewType("Fraction", float)


@dataclass(frozen=True, slots=True)
class NotebookSettings:
    """[notebook]: `exclude` are patterns as in .gitignore; a larger file than `max_file_bytes` is refused."""

    name: str = ""
    timezone: str = "UTC"
    max_file_bytes: int = 2 << 20
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MirrorSettings:
    """[mirror], the content store: MongoDB at `url`, the embedded file where there is none."""

    url: str = ""
    database: str = "aether_notebook"
    timeout_seconds: float = 5.0


@dataclass(frozen=True, slots=True)
class RefsSettings:
    """[refs], hot memory: Redis at `url`, keys below `prefix`; the embedded file where there is none."""

    url: str = ""
    prefix: str = "aether"
    timeout_seconds: float = 2.0


@dataclass(frozen=True, slots=True)
class SyncSettings:
    """[sync]: a file is read once it rests for `settle_ms`; `batch` is how many are written at a time."""

    settle_ms: int = 300
    reconcile_seconds: float = 60.0
    full_hash_hours: float = 24.0
    batch: int = 500


@dataclass(frozen=True, slots=True)
class PromptFile:
    """[[prompt.files]]: one more file of the prompt, or other settings for one that is in it anyway.

    `heading` "", `max_tokens` 0 and `priority` 0 are what holds without them.
    """

    path: str
    heading: str = ""
    max_tokens: int = 0
    priority: int = 0
    sessions: tuple[str, ...] = ("owner", "task", "external")


@dataclass(frozen=True, slots=True)
class PromptSettings:
    """[prompt]: what the prompt is made of, and how many tokens of `encoding` it may have.

    `order` is a list of paths that come before the other files; `system_files` come before both. `trust` says which
    text of the files reaches the prompt: "files" is all of it, "committed" what is committed, or an owner session
    wrote or accepted.
    """

    max_tokens_per_file: int = 2000
    max_tokens: int = 16000
    encoding: str = "cl100k_base"
    trust: str = "files"
    system_files: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    files: tuple[PromptFile, ...] = ()


@dataclass(frozen=True, slots=True)
class GitSettings:
    """[git]: which edits are committed, and by whom ("Name <mail>"; "" is whom git itself names)."""

    commit: str = "tools"
    author: str = ""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """[server]: where `serve` listens, and which further Host names it answers to."""

    host: str = "127.0.0.1"
    port: int = 8765
    allowed_hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """[search]: what gives texts their vectors: "wordllama", here and offline; "openai:MODEL" of the server at
    `base_url`, with the key that stands in the variable `api_key_env`; or "off".

    meaning: its share in the score of a search by words and meaning.
    """

    embeddings: str = "wordllama"
    base_url: str = ""
    api_key_env: str = "OPENAI_API_KEY"
    timeout_seconds: float = 10.0
    meaning: Fraction = Fraction(0.4)


@dataclass(frozen=True, slots=True)
class LlmSettings:
    """[llm], a language model on any server that speaks as OpenAI's does; none where `model` is ""."""

    base_url: str = ""
    model: str = ""
    api_key_env: str = "OPENAI_API_KEY"
    timeout_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class MemorySettings:
    """[memory]: how facts fade, and when they are archived, proposed for core.md, and taken for one another; and what
    memories count for.

    decay_rate: importance lost a day. archive_below, promote_above: effective importance. duplicate: the cosine from
    which two texts are one fact; confirmed, related, reinforced: that of the tools of those names. usage, recency,
    priority, age: the weights of a memory's score, the last of which is taken off; the half-lives are of recency and
    age. infer_above: the cosine from which a language model is asked how two memories are linked.
    """

    decay_rate: Fraction = Fraction(0.01)
    archive_below: Fraction = Fraction(0.05)
    promote_above: Fraction = Fraction(0.8)
    promote_accesses: int = 3
    promote: str = "propose"
    stale_days: int = 30
    recalculate_hours: float = 6.0
    duplicate: Fraction = Fraction(0.85)
    confirmed: Fraction = Fraction(0.85)
    related: Fraction = Fraction(0.6)
    reinforced: Fraction = Fraction(0.75)
    usage: Fraction = Fraction(0.30)
    recency: Fraction = Fraction(0.35)
    priority: Fraction = Fraction(0.25)
    age: Fraction = Fraction(0.10)
    recency_half_life_days: float = 7.0
    age_half_life_days: float = 30.0
    infer_above: Fraction = Fraction(0.7)


@dataclass(frozen=True, slots=True)
class ContextSettings:
    """[context]: how a task brief is compiled: how many tokens it may have, how many memories it rests on, out of how
    many candidates.

    domains: those that memories and specs are about, where the notebook names them. similarity: its share in how
    memories are ranked, the rest is their score's. diversity: 1 ranks by that alone; the less, the more a memory that
    says what another does is put back.
    """

    max_tokens: int = 8000
    top_k: int = 15
    prefilter: int = 150
    domains: tuple[str, ...] = ()
    similarity: Fraction = Fraction(0.6)
    diversity: Fraction = Fraction(0.7)


@dataclass(frozen=True, slots=True)
class Tier2Settings:
    """[tier2]: who reasons about a task brief: an MCP server over stdio that `command` starts, asked about its notebook
    `notebook_id`; where there is no command, the model of [llm].

    question_characters: what fits into what the server asks with. specs: files whose saving has a synthesis made ahead,
    as patterns of paths in the notebook.
    """

    enabled: bool = False
    command: tuple[str, ...] = ()
    notebook_id: str = ""
    daily_limit: int = 50
    cache_ttl_hours: float = 24.0
    cache_entries: int = 100
    timeout_seconds: float = 180.0
    question_characters: int = 10_000
    specs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings. `source` is the file they came from, or "" for defaults alone."""

    notebook: NotebookSettings = field(default_factory=NotebookSettings)
    mirror: MirrorSettings = field(default_factory=MirrorSettings)
    refs: RefsSettings = field(default_factory=RefsSettings)
    sync: SyncSettings = field(default_factory=SyncSettings)
    prompt: PromptSettings = field(default_factory=PromptSettings)
    git: GitSettings = field(default_factory=GitSettings)
    search: SearchSettings = field(default_factory=SearchSettings)
    llm: LlmSettings = field(default_factory=LlmSettings)
    memory: MemorySettings = field(default_factory=MemorySettings)
    context: ContextSettings = field(default_factory=ContextSettings)
    tier2: Tier2Settings = field(default_factory=Tier2Settings)
    server: ServerSettings = field(default_factory=ServerSettings)
    source: str = ""

    @property
    def timezone(self) -> ZoneInfo:
        """The timezone of day keys and of dates in the runtime files."""
        return ZoneInfo(self.notebook.timezone)

    def local_now(self) -> datetime:
        """What the notebook's clock shows, without a timezone: what dates in its files are compared with."""
        return datetime.now(self.timezone).replace(tzinfo=None)
