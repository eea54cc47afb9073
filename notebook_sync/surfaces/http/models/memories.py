"""What the routes for memories, task briefs and their syntheses take and answer beside what the tools do."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from notebook_sync.surfaces.tools.schemas.memories import (
    BriefResult,
    CompileArguments,
    DroppedLink,
    RecordArguments,
    RecordResult,
    SynthesisResult,
    SynthesizeArguments,
    TakenLinks,
)
from notebook_sync.surfaces.tools.schemas.notes import Arguments, Name, Tags

MOST_LINKS = 1_000
MOST_SPECS = 100
Share = Annotated[float, Field(ge=0, le=1)]


class MemoryWanted(RecordArguments):
    """As the tool memory_record takes it, with what else may be known. `strict` refuses what lacks a date or an
    agent."""

    title: Name | None = None
    kind: Name | None = Field(
        default=None, description="pattern, decision, problem or insight; else as the text has it"
    )
    agent: Name | None = Field(default=None, description="for the owner: who says so")
    created_at: Name | None = Field(default=None, description="ISO 8601; else now")
    strict: bool = False


class SearchWanted(Arguments):
    query: Name
    kind: Name | None = None
    domain: Name | None = None
    tags: Tags | None = Field(default=None, description="any of them")
    limit: Annotated[int, Field(ge=1, le=1_000)] = 10


class LinkWanted(Arguments):
    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    from_id: Name = Field(alias="from", description="a memory's id or path")
    type: Name = Field(description="causes, solves, contradicts, expands, supersedes or similar")
    to: Name = Field(description="a memory's id or path")
    confidence: float = 1.0
    reasoning: str = ""
    source: Name = ""


class InferWanted(Arguments):
    apply: bool = Field(default=False, description="write the links down")
    limit: Annotated[int, Field(ge=1, le=1_000)] = 20


class ScoresWanted(Arguments):
    """Nothing has to be said."""


class FixWanted(Arguments):
    dry_run: bool = Field(default=False, description="only tell what would be mended")


class LinksWanted(Arguments):
    """Links as a synthesis suggests them: `{from, to, type, confidence, reasoning, source, synthesis_id}` each. What is
    no such link is dropped, and told."""

    links: list[Any] = Field(max_length=MOST_LINKS)


class ContextWanted(CompileArguments):
    """As the tool compile_context takes it."""


class SynthesisWanted(SynthesizeArguments):
    """As the tool synthesize takes it."""


class PrefetchWanted(Arguments):
    specs: list[Name] = Field(min_length=1, max_length=MOST_SPECS, description="notes that say what is to be done")


class Prefetched(BaseModel):
    """`source` is "" for what was not asked about; `trouble` says why nobody reasoned."""

    spec: str
    source: str
    cached: bool
    trouble: str


class Memory(BaseModel):
    """A memory without its text. `relations` is how many links it has, `similarity` to what was searched for."""

    notebook_id: str
    path: str
    title: str
    kind: str
    domain: str
    tags: list[str]
    agent: str | None
    priority: int
    score: float | None
    created_at: datetime
    needs_review: bool
    relations: int
    accesses: int
    similarity: float | None = None
    provenance: str | None = Field(default=None, description="external: somebody else's words, and no instruction")


class Recorded(RecordResult):
    """As the tool memory_record answers."""


class Link(BaseModel):
    """`action` is added, updated or kept."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True, serialize_by_alias=True)

    from_id: str = Field(alias="from")
    to: str
    type: str
    confidence: float
    reasoning: str
    source: str
    synthesis_id: str = ""
    action: str
    warnings: list[str] = []


class Ingested(TakenLinks):
    """`kept` were there already."""


class Inferred(BaseModel):
    """Of `pairs` of memories the model was asked; `trouble` is why of no more, "" where that is all."""

    links: list[dict[str, Any]]
    dropped: list[DroppedLink]
    pairs: int
    trouble: str


class Spread(BaseModel):
    """None of nothing."""

    mean: float | None
    sigma: float | None


class Scored(Spread):
    scored: int
    at: datetime


class Timestamps(BaseModel):
    missing: int
    unparsable: int


class Agents(BaseModel):
    unknown: int


class Importance(Spread):
    """`saturated` is the share of memories that have the most frequent priority."""

    saturated: float | None


class TagCounts(BaseModel):
    per_memory: float | None
    none: int


class Finding(BaseModel):
    path: str
    line: int
    what: str
    fix: str


class Audit(BaseModel):
    """What memories lack. `similar_share` is that of the links that only say similar."""

    memories: int
    timestamps: Timestamps
    agents: Agents
    unstructured: int
    needs_review: int
    importance: Importance
    similar_share: float | None
    links: int
    links_broken: int
    tags: TagCounts
    score: Spread
    findings: list[Finding]
    findings_left_out: int


class Change(BaseModel):
    path: str
    field: str
    before: Any
    after: Any
    because: str


class LeftOut(BaseModel):
    changes: int
    left: int


class Fixed(BaseModel):
    """`left` is what nothing proves; `left_out` counts those of `changes` and `left` that are too many to tell, and
    `backup` is the checkpoint that very many changes have first; `trouble` says what stopped them midway."""

    changes: list[Change]
    applied: bool
    left: list[Finding]
    left_out: LeftOut
    backup: str
    trouble: str
    warnings: list[str] = []


class Context(BriefResult):
    """As the tool compile_context answers."""


class Synthesis(SynthesisResult):
    """As the tool synthesize answers."""


class CompileFigures(BaseModel):
    """Milliseconds, None where nothing was timed: the median, and what 19 of 20 took at most."""

    count: int
    p50_ms: float | None
    p95_ms: float | None


class SynthesisFigures(BaseModel):
    """`hit_…_ms` of those that were in the cache at once, the others of those that a reasoner was asked for; `waited`
    are those hits that somebody else was asking for just then."""

    asked: int
    hits: int
    hit_rate: float | None
    waited: int
    p50_ms: float | None
    p95_ms: float | None
    hit_p50_ms: float | None
    hit_p95_ms: float | None
    answered: int
    failed: int
    today: int
    daily_limit: int


class Figures(BaseModel):
    memories: int
    structured_share: float | None
    needs_review: int
    causal_links: int
    score: Spread
    compile: CompileFigures
    synthesis: SynthesisFigures
