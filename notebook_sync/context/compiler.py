"""Compiles what a notebook knows into a brief for one task: intent, candidates, choice, text.

Scores and times decide what is chosen, never what is hashed. Nothing a memory says is anything but text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from notebook_sync.context.brief import LEAST_TOKENS, Brief, Material, Section, written
from notebook_sync.context.candidates import Candidates, Gathered, Wanted
from notebook_sync.context.choosing import Choice, choose
from notebook_sync.context.entries import Used, entries_of, metadata_of, related_line, risks_of
from notebook_sync.context.explaining import explained
from notebook_sync.context.hashing import digest_of
from notebook_sync.context.intent import Intent
from notebook_sync.context.quoting import body_of
from notebook_sync.context.related import Related, RelatedNotes
from notebook_sync.errors import BackendDown, UsageError
from notebook_sync.mirror.memories import MemoryRows, folded
from notebook_sync.patience import Silence, answer_within, soon
from notebook_sync.sessions import Session
from notebook_sync.settings import Settings
from prompt import count_tokens, fence_external, quote

if TYPE_CHECKING:
    from notebook_sync.context.intent_reading import IntentReading

LARGEST_TOP_K = 150
LEAST_FENCED_TOKENS = 2 * LEAST_TOKENS
"""The fence around the task of an external session takes up to half of them."""
MOST_SPEC_BYTES = 1 << 18
"""Of a task. Whoever has more to say of it takes longer to read than its brief would."""
# So many texts, of no more characters each, are counted once.
_MOST_COUNTED, _LONGEST_COUNTED = 2_000, 4_000


@dataclass(frozen=True, slots=True)
class Compiled:
    """A brief and what it rests on. `stable_brief` is the brief without its metadata; `sections` are all there may be
    but those, with their texts, "" for nothing. partial: why fewer ways than all were searched, and how many
    memories had no room; "" where nothing was left out."""

    spec: str
    brief: str
    stable_brief: str
    context_hash: str
    used: tuple[Used, ...]
    related: tuple[Related, ...]
    token_count: int
    sections: tuple[Section, ...]
    partial: str
    steps: Callable[[], dict[str, Any]]

    def as_dict(self, *, explain: bool = False) -> dict[str, Any]:
        """The shape that `--json` prints."""
        told = {
            "task_brief_md": self.brief,
            "context_hash": self.context_hash,
            "memories_used": [one.as_dict() for one in self.used],
            "token_count": self.token_count,
            "related": [one.as_dict() for one in self.related],
            "partial": self.partial,
        }
        return {**told, "explain": self.steps()} if explain else told


class Compiler:
    """Of one notebook, for any number of threads."""

    def __init__(
        self,
        settings: Settings,
        reading: IntentReading,
        candidates: Candidates,
        related: RelatedNotes,
        rows: Callable[[], MemoryRows],
    ) -> None:
        self._settings = settings
        self._reading = reading
        self._candidates = candidates
        self._related = related
        self._rows = rows
        self._patience, self._silence = soon(settings.mirror.timeout_seconds), Silence()
        # What a memory says is the same in every brief.
        self._counted = lru_cache(maxsize=_MOST_COUNTED)(partial(count_tokens, encoding=settings.prompt.encoding))

    def compile(
        self,
        task_spec: str,
        session: Session,
        *,
        max_tokens: int | None = None,
        top_k: int | None = None,
        include_domains: Sequence[str] = (),
        exclude_tags: Sequence[str] = (),
        counts_use: bool = True,
    ) -> Compiled:
        """The brief for a task; with `counts_use`, a use of what it rests on. Raises UsageError for a task that says
        nothing and for wrong limits; BackendDown."""
        asked = self._asked(task_spec, session, max_tokens, top_k, include_domains, exclude_tags)
        read = self._reading.read(asked.spec, session)
        wanted = Wanted(asked.domains, asked.without_tags, max(self._settings.context.prefilter, asked.top_k))
        gathered = self._candidates.gather(read.intent, session, wanted)
        choice = choose(gathered, read.intent, self._settings, asked.top_k)
        related, behind = self._related.find(read.intent, session, asked.without_tags)
        brief = self._written(asked, read.intent, gathered, choice, related)
        used = _used(brief.kept, choice)
        waiting = f"notes without vectors yet: {behind:,}" if behind else ""
        omitted = _omitted(brief, asked.max_tokens)
        if counts_use and session.kind != "external":
            self._count_use([one.id for one in used if one.contribution == PRIMARY])
        return Compiled(
            asked.spec,
            brief.text,
            brief.stable,
            asked.digest(used),
            used,
            tuple(related[: brief.related]),
            brief.tokens,
            brief.sections,
            "; ".join(dict.fromkeys(one for one in (read.partial, gathered.partial, waiting, omitted) if one)),
            partial(explained, read.intent, gathered, choice, brief),
        )

    def _asked(
        self,
        task_spec: str,
        session: Session,
        max_tokens: int | None,
        top_k: int | None,
        include_domains: Sequence[str],
        exclude_tags: Sequence[str],
    ) -> _Asked:
        context = self._settings.context
        asked = _Asked(
            task_spec.encode(errors="replace").decode(),
            context.max_tokens if max_tokens is None else max_tokens,
            context.top_k if top_k is None else top_k,
            _folded("include_domains", include_domains),
            _folded("exclude_tags", exclude_tags),
            session.kind == "external",
        )
        size, largest = len(asked.spec.encode()), min(MOST_SPEC_BYTES, self._settings.notebook.max_file_bytes)
        if size > largest:
            raise UsageError(f"the task has {size:,} bytes, and may have {largest:,}; name what matters of it")
        if not asked.spec.strip():
            raise UsageError("the task says nothing; tell what is to be done")
        least = LEAST_FENCED_TOKENS if asked.is_external else LEAST_TOKENS
        if asked.max_tokens < least:
            raise UsageError(f"max_tokens is {asked.max_tokens:,}, and no brief has fewer than {least:,}; give more")
        if not 1 <= asked.top_k <= LARGEST_TOP_K:
            raise UsageError(f"top_k is {asked.top_k:,}, and a brief rests on 1 to {LARGEST_TOP_K} memories")
        return asked

    def _written(
        self,
        asked: _Asked,
        intent: Intent,
        gathered: Gathered,
        choice: Choice,
        related: Sequence[Related],
    ) -> Brief:
        documents = self._candidates.documents([gathered.memories[one.note_id] for one in choice.taken])

        def metadata(kept: Sequence[str]) -> list[str]:
            used = _used(kept, choice)
            return metadata_of(asked.digest(used), used)

        material = Material(
            body_of(intent.content),
            entries_of(gathered, choice, documents),
            risks_of(gathered, choice),
            [related_line(one) for one in related],
            metadata,
            asked.wrap,
        )
        return written(material, asked.max_tokens, self._count)

    def _count(self, text: str) -> int:
        if len(text) > _LONGEST_COUNTED:
            return count_tokens(text, self._settings.prompt.encoding)
        return self._counted(text)

    def _count_use(self, ids: Sequence[str]) -> None:
        if ids and not self._silence.trouble:
            try:
                answer_within(self._patience, lambda: self._rows().used(ids, datetime.now(UTC)))
            except BackendDown as down:  # the brief is there all the same
                self._silence.begin(str(down))


PRIMARY, SUPPORTING = "primary", "supporting"


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is asked for, checked. Domains and tags are folded."""

    spec: str
    max_tokens: int
    top_k: int
    domains: frozenset[str]
    without_tags: frozenset[str]
    is_external: bool

    def wrap(self, task: str) -> str:
        """What the brief shows of the task, which an external session's is fenced in. The same fence each time, or no
        two briefs would be alike; the task cannot hold its own digest."""
        if not self.is_external:
            return quote(task)
        return fence_external(task, "the task of an external session", self.digest(())[:16])

    def digest(self, used: Sequence[Used]) -> str:
        """What tells this task, with what selects, resting on these memories as they are, from every other."""
        options = {
            "max_tokens": self.max_tokens,
            "top_k": self.top_k,
            "include_domains": sorted(self.domains),
            "exclude_tags": sorted(self.without_tags),
        }
        return digest_of(self.spec, options, {one.id: one.digest for one in used})


def _used(kept: Sequence[str], choice: Choice) -> tuple[Used, ...]:
    """The memories with these ids, in the order in which they were taken."""
    ids = frozenset(kept)
    memories = [(one.note_id, choice.ranked[one.note_id]) for one in choice.taken if one.note_id in ids]
    return tuple(
        Used(
            note_id,
            ranked.memory.path,
            ranked.memory.title,
            ranked.memory.kind,
            ranked.memory.digest,
            ranked.combined,
            PRIMARY if note_id in choice.primary else SUPPORTING,
        )
        for note_id, ranked in memories
    )


def _omitted(brief: Brief, max_tokens: int) -> str:
    gone = len(brief.cut.keys() - frozenset(brief.kept))
    return f"{gone} of {gone + len(brief.kept)} memories omitted: max_tokens is {max_tokens:,}" if gone else ""


def _folded(name: str, texts: Sequence[str]) -> frozenset[str]:
    if isinstance(texts, str):
        raise UsageError(f"{name} are a list, as in [{texts!r}]")
    return frozenset(found for text in texts if (found := folded(text)))
