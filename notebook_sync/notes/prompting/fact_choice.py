"""Which facts of a file a prompt shows where not all of them fit: those that count for most now, in the file's order.

What they say is the file's alone; only which of them is asked of what is known of facts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from notebook_sync.errors import EditFailed
from notebook_sync.files.edit_facts import without_facts
from notebook_sync.files.facts import Bullet, facts_in
from notebook_sync.mirror.facts import START
from notebook_sync.notes.fact_life import effective
from notebook_sync.patience import answer_within
from prompt.ends import omission_line

if TYPE_CHECKING:
    from notebook_sync.mirror.facts import FactRows

# What each of these facts counts for, by id; those of which nothing is known are left out.
Weigh = Callable[[Sequence[Bullet]], Mapping[str, float]]
_TRIES = 8
# Of the room that is left by a first guess, so much is taken by the next.
_CAUTION = 0.95


def weights(rows: Callable[[], FactRows], facts: Sequence[Bullet], timeout_seconds: float) -> dict[str, float]:
    """What these facts count for now. Raises BackendDown, also when `rows()` does."""
    known = answer_within(timeout_seconds, lambda: rows().get_many([fact.note_id for fact in facts]))
    now = datetime.now(UTC)
    return {note_id: effective(fact, now) for note_id, fact in known.items()}


def chosen(text: str, path: str, room: int, tokens_of: Callable[[str], int], weigh: Weigh) -> str:
    """A file's text with as many of its facts as fit in `room` tokens, as `tokens_of` counts what is shown of it, and a
    line for those that are left out; the text itself where it cannot be divided so. Raises as `weigh`."""
    facts = {fact.note_id: fact for fact in reversed(facts_in(path, text))}
    if not facts:
        return text
    known = weigh(list(facts.values()))

    def counts_for(fact: Bullet) -> float:
        return fact.importance if fact.importance is not None else known.get(fact.note_id, START)

    # Of those that count for the same, what was written last is the newest.
    ranked = sorted(facts.values(), key=lambda fact: (-counts_for(fact), -fact.start))
    whole = tokens_of(text)
    share = room / whole
    for _ in range(_TRIES):
        kept = _within(ranked, share * len(text))
        shown = _without(text, path, ranked[kept:])
        if shown is None or not kept:
            return text
        line = omission_line(len(ranked) - kept, path)
        shown = f"{shown.rstrip()}\n\n{line}\n"
        taken = tokens_of(shown)
        if taken <= room:
            return shown
        share *= _CAUTION * room / taken
    return text


def _within(ranked: Sequence[Bullet], room: float) -> int:
    """How many of the first are no longer than this together, in characters."""
    for number, fact in enumerate(ranked):
        room -= fact.end - fact.start
        if room < 0:
            return number
    return len(ranked)


def _without(text: str, path: str, facts: Sequence[Bullet]) -> str | None:
    """None where what stays would read otherwise."""
    try:
        return without_facts(text, facts, path)
    except EditFailed:
        return None
