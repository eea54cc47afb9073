"""What operations on memories return. Every field is always present; words of others are neutral for a model."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from notebook_sync.registry import Result
from notebook_sync.services.results import NoteRow, Snippet, Written, fenced, neutral_name


class Memory(NoteRow, frozen=True, kw_only=True):
    """A memory without its text. `score` is what it counts for, 0 to 1; `similarity`, 0 to 1, is to what was searched
    for. `relations` are its links to memories that the session may read; `accesses` counts its uses."""

    kind: str
    domain: str
    agent: str
    priority: int
    created_at: datetime
    needs_review: bool
    relations: list[dict[str, Any]]
    accesses: int
    score: float
    similarity: float | None
    snippet: Snippet | None

    def _neutral(self) -> dict[str, Any]:
        snippet = self.snippet and replace(self.snippet, text=fenced(self.snippet.text), section="")
        return NoteRow._neutral(self) | {"domain": "", "agent": "", "relations": [], "snippet": snippet}


class AddedMemory(Written, frozen=True, kw_only=True):
    """A new memory. `structured` says where its structure comes from: given in the text, made by a model, or partly or
    not there, and then it `needs_review`."""

    kind: str
    domain: str
    tags: list[str]
    agent: str
    priority: int
    needs_review: bool
    structured: str


class Link(Result, frozen=True, kw_only=True):
    """How one memory bears on another. `action`: added, updated or kept."""

    from_id: str = msgspec.field(name="from")
    to: str
    type: str
    confidence: float
    reasoning: str
    source: str
    synthesis_id: str
    action: str
    provenance: str
    warnings: list[str]

    def for_model(self) -> Link:
        """Without words of others: of their ids, too."""
        hidden = {"from_id": neutral_name(self.from_id), "to": neutral_name(self.to), "reasoning": "", "source": ""}
        return replace(self, **hidden) if self.provenance else self


class DroppedLink(Result, frozen=True):
    """A link that was not saved, as it was given, and why."""

    link: Any
    reason: str


class IngestedLinks(Result, frozen=True, kw_only=True):
    """What became of suggested links. Those `kept` were there before."""

    ingested: list[Link]
    kept: list[Link]
    dropped: list[DroppedLink]
    warnings: list[str]


class InferredLinks(IngestedLinks, frozen=True, kw_only=True):
    """The model was asked about `pairs` of memories; `trouble` says why not about more, "" for nothing."""

    pairs: int
    trouble: str


class Scored(Result, frozen=True, kw_only=True):
    """The scores of the memories that the session may read; `changed` counts those that moved."""

    scored: int
    changed: int
    mean: float | None
    sigma: float | None
    at: datetime


class Finding(Result, frozen=True, kw_only=True):
    """What one memory lacks: `field` is created_at, agent, kind, parts, needs_review, relations, or another field."""

    path: str
    line: int
    field: str
    what: str
    fix: str
    provenance: str

    def for_model(self) -> Finding:
        """Without words of others."""
        return replace(self, path=neutral_name(self.path), what="") if self.provenance else self


class Audit(Result, frozen=True, kw_only=True):
    """What memories lack, counted. Means, deviations and shares are None of nothing. `similar_share` is the share of
    links of the type similar, `saturated` that of the most frequent priority."""

    memories: int
    timestamps: dict[str, int]
    agents: dict[str, int]
    unstructured: int
    needs_review: int
    importance: dict[str, float | None]
    links: int
    links_broken: int
    similar_share: float | None
    tags: dict[str, float | None]
    score: dict[str, float | None]
    findings: list[Finding]
    findings_left_out: int


class Repair(Result, frozen=True, kw_only=True):
    """One field of one memory, before (None for nothing) and after, and what proves the new value."""

    path: str
    field: str
    before: Any
    after: Any
    because: str
    provenance: str

    def for_model(self) -> Repair:
        """Without words of others."""
        return replace(self, path=neutral_name(self.path), before=None) if self.provenance else self


class Repaired(Result, frozen=True, kw_only=True):
    """`left` are findings that nothing proves; `left_out` counts repairs and findings that are too many to list."""

    repairs: list[Repair]
    applied: bool
    left: list[Finding]
    left_out: int
    warnings: list[str]


class Picture(Result, frozen=True, kw_only=True):
    """Memories and their links as SVG, or as text for Mermaid."""

    format: str
    text: str
    memories: int
    links: int
