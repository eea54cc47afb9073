"""Facts drawn from a conversation by a language model: its answer is checked, then added and archived in one change.

No fact is removed that nobody in the conversation speaks of, none in core.md, none that a person pinned, and no file
but those of facts is touched, whatever the conversation or the model says.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rapidfuzz import fuzz

from notebook_sync.errors import LlmNonsense, UsageError
from notebook_sync.files.fact_comment import HINTS
from notebook_sync.files.facts import as_bullet
from notebook_sync.mirror.facts import Fact
from notebook_sync.notes.facts.alike import contradiction, difference, words_of
from notebook_sync.notes.facts.batch import Addition, FactBatch
from notebook_sync.notes.facts.book import NOTES, SECTIONS, USUAL
from notebook_sync.notes.facts.prompt import (
    LONGEST_SECTION,
    MOST_ADDITIONS,
    MOST_REMOVALS,
    Extraction,
    Said,
    conversation_of,
    is_named,
    question,
)
from notebook_sync.notes.guard import Guard
from notebook_sync.sessions import Session
from prompt import count_tokens

if TYPE_CHECKING:
    from notebook_sync.llm import Llm

TOOL = "fact_extract"
LONGEST_ITEM = 500
LEAST_WORDS = 2
# What nobody but a person, or use, makes more important.
MOST_IMPORTANCE = HINTS["high"]
SAME = 90.0
_LONGEST_SUMMARY = 300
_LONGEST_REASON = 80
_SECTION = re.compile(r"\w[\w &,.'()/+-]*")
_ID = re.compile(r"\W{0,3}([0-9a-f]{16})\b")

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Plan:
    """What of an answer is to be done, and what is not: `{what, text, reason}` each."""

    additions: Sequence[Addition] = ()
    removals: Sequence[Fact] = ()
    skipped: Sequence[Row] = ()


@dataclass(frozen=True, slots=True)
class Extracted:
    """What came of a conversation. `error` is why nothing did, "" where the model answered; `applied` whether it was
    done, or only would be."""

    additions: Sequence[Row] = ()
    removals: Sequence[Row] = ()
    skipped: Sequence[Row] = ()
    summary: str = ""
    error: str = ""
    applied: bool = False
    warnings: Sequence[str] = field(default=())

    def as_dict(self) -> Row:
        """The shape that `--json` prints."""
        return {
            "additions": list(self.additions),
            "removals": list(self.removals),
            "skipped": list(self.skipped),
            "summary": self.summary,
            "error": self.error,
            "applied": self.applied,
            "warnings": list(self.warnings),
        }


class Extracting:
    """Draws facts from conversations, for one notebook. `encoding` is what tokens are counted by."""

    def __init__(self, guard: Guard, llm: Llm, batch: FactBatch, encoding: str) -> None:
        self._guard = guard
        self._llm = llm
        self._batch = batch
        self._encoding = encoding

    def extract(self, messages: object, session: Session, *, dry_run: bool) -> Extracted:
        """Ask the model what the last messages add to the facts and make untrue, and do it, or only tell it.

        An answer that will not do, twice, is told in `error`. Raises NotPermitted, UsageError, LlmNotConfigured,
        LlmDown, BackendDown, and as an edit.
        """
        self._guard.require_change(session, NOTES, TOOL)
        self._llm.require()
        conversation = conversation_of(messages)
        known = self._batch.known(session)
        sections = sections_of(known)
        asked = question(
            conversation, nearest(conversation, known), sections, lambda text: count_tokens(text, self._encoding)
        )
        try:
            answer = self._llm.answer(asked, Extraction)
        except LlmNonsense as nonsense:
            return Extracted(error=str(nonsense))
        # Facts change while a model thinks: nothing is decided on what they were.
        known = [fact for fact in self._batch.known(session) if self._guard.may(session, "write", fact.path)]
        plan = planned(answer, conversation, known, sections)
        summary = _line(answer.summary, _LONGEST_SUMMARY)
        reason = f"extracted: {_line(summary, _LONGEST_REASON)}" if summary else "extracted"
        taken = self._batch.take_in(plan.additions, plan.removals, session, tool=TOOL, reason=reason, dry_run=dry_run)
        return Extracted(
            taken.added,
            taken.removed,
            plan.skipped,
            summary,
            applied=bool(taken.added or taken.removed) and not dry_run,
            warnings=taken.warnings,
        )


def planned(answer: Extraction, conversation: Sequence[Said], known: Sequence[Fact], sections: Sequence[str]) -> Plan:
    """What of an answer is to be done. Pure.

    known: the facts that are not archived, those of core.md too. A removal counts where it is the id, the text, or
    nearly the text of one of them, and a person in the conversation speaks of that fact.
    """
    skipped: list[Row] = []
    additions: list[Addition] = []
    removals: list[Fact] = []
    for added in answer.additions:
        if reason := _unfit(added.item, additions) or _echo(added.item, conversation, known):
            skipped.append(_skipped("addition", added.item, reason))
            continue
        importance = min(max(added.importance, 0.0), MOST_IMPORTANCE)
        additions.append(Addition(added.item.strip(), section_for(added.section, sections), importance))
    for wanted in answer.removals:
        found = meant(wanted, known)
        reason = found if isinstance(found, str) else _protected(found, conversation, additions, removals)
        if reason:
            skipped.append(_skipped("removal", wanted, reason))
        elif isinstance(found, Fact):
            removals.append(found)
    return Plan(additions, removals, skipped)


def meant(text: str, known: Sequence[Fact]) -> Fact | str:
    """The one fact that a removal names, by its id, its text, or a text that is nearly the same; else why there is
    none. A part of its text names no fact."""
    if not text.strip():
        return "it names no fact"
    by_id = {fact.note_id: fact for fact in known}
    if (found := _ID.match(text)) and found[1] in by_id:
        return by_id[found[1]]
    plain = _plain(text)
    same = [fact for fact in known if _plain(fact.content) == plain]
    if not same:
        same = [fact for fact in known if _is_nearly(text, fact)]
    if len(same) > 1:
        return "it is as near to several facts; name one by its id"
    return same[0] if same else "no fact that is kept says this"


def nearest(conversation: Sequence[Said], known: Sequence[Fact]) -> list[Fact]:
    """The facts that may change, those first of whose words the conversation has the largest part."""
    said = frozenset[str]().union(*(words_of(one.text) for one in conversation))

    def share(fact: Fact) -> float:
        words = words_of(fact.content)
        return len(words & said) / len(words) if words else 0.0

    return sorted((fact for fact in known if not fact.is_core), key=lambda fact: (-share(fact), -fact.importance))


def sections_of(known: Sequence[Fact]) -> list[str]:
    """The usual sections, then others that there are outside core.md."""
    others = {fact.section for fact in known if fact.section and not fact.is_core}
    return [*SECTIONS, *sorted(others - set(SECTIONS))]


def section_for(name: str, sections: Sequence[str]) -> str:
    """The section of this name as it is written there; a new one where the name is a plain, short heading."""
    plain = " ".join(name.strip("# \t\n").split())
    for section in sections:
        if section.casefold() == plain.casefold():
            return section
    return plain if len(plain) <= LONGEST_SECTION and _SECTION.fullmatch(plain) else USUAL


def _unfit(item: str, additions: Sequence[Addition]) -> str:
    if len(additions) == MOST_ADDITIONS:
        return f"more than {MOST_ADDITIONS} facts are not added at once"
    if len(words_of(item)) < LEAST_WORDS:
        return "it says too little to be a fact"
    if any(not difference(other.text, item) for other in additions):
        return "it is said twice"
    if len(item) > LONGEST_ITEM:
        return f"a fact from a conversation has at most {LONGEST_ITEM} characters"
    try:
        as_bullet(item)
    except UsageError as error:
        return str(error)
    return ""


def _echo(item: str, conversation: Sequence[Said], known: Sequence[Fact]) -> str:
    """A model that recites what it was shown lets nothing count for more."""
    for fact in known:
        if not difference(fact.content, item) and not is_named(fact, conversation):
            return "it is known already, and nobody in the conversation speaks of it"
    return ""


def _protected(
    fact: Fact, conversation: Sequence[Said], additions: Sequence[Addition], removals: Sequence[Fact]
) -> str:
    """Why this fact stays; "" where it goes."""
    if fact in removals:
        return "it is removed already"
    if fact.is_core:
        return "facts in core.md are the owner's to remove"
    if fact.pinned:
        return "a person pinned its importance"
    if not is_named(fact, conversation):
        return "nobody in the conversation speaks of it"
    if any(_is_nearly(one.text, fact) for one in additions):
        return "what is added says it again"
    if len(removals) == MOST_REMOVALS:
        return f"more than {MOST_REMOVALS} facts are not removed at once"
    return ""


def _is_nearly(text: str, fact: Fact) -> bool:
    """Whether letters alone tell the two apart, and none that decides anything."""
    alike = fuzz.ratio(_plain(text), _plain(fact.content), score_cutoff=SAME)
    return alike >= SAME and not contradiction(text, fact.content)


def _plain(text: str) -> str:
    return " ".join(text.split()).removeprefix("- ").casefold()


def _skipped(what: str, text: str, reason: str) -> Row:
    return {"what": what, "text": _line(text, LONGEST_ITEM), "reason": reason}


def _line(text: str, length: int) -> str:
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return line if len(line) <= length else f"{line[: length - 1].rstrip()}…"
