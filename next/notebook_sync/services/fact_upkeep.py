"""What time does to facts: faded ones go to the archive, proven ones and duplicates are proposed to the owner.

Computed from when a fact was made and used, so that doing it twice changes nothing. Nothing is deleted, what others
wrote is left alone, and one run archives at most a tenth of the facts, or ten.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import NamedTuple

from notebook_sync.errors import EditFailed, OverCap
from notebook_sync.files.fact_text import ARCHIVE
from notebook_sync.model import CORE_FACTS
from notebook_sync.registry import Result
from notebook_sync.services.core import PROPOSALS, Core
from notebook_sync.services.documents import require_change
from notebook_sync.services.fact_changes import NOTES, Draft, Move, change_facts
from notebook_sync.services.fact_dedupe import find_pairs, most_at_once
from notebook_sync.services.fact_keeping import PROPOSED
from notebook_sync.services.fact_rows import FactRow, days_since, facts_of
from notebook_sync.services.view import View
from notebook_sync.sessions import PROGRAM, Session
from notebook_sync.settings import MemoryTable
from notebook_sync.store.rows import Row

# So many reinforcements, on different days or by different actors, the owner's among them, let a fact move to core.md.
_REINFORCEMENTS = 3
# The row of the cache that holds what the last look by the clock found.
FADING = "facts:fading"


class Decayed(Result, frozen=True):
    """Facts as they were: those archived, those moved to core.md, and those proposed for it."""

    archived: list[FactRow]
    promoted: list[FactRow]
    proposed: list[FactRow]


# ---- decay and promotion


def decay_facts(
    core: Core, session: Session, *, dry_run: bool = False, among: Collection[str] | None = None
) -> Decayed:
    """Archive facts that faded, the least important first, and move proven ones to core.md or propose them. Only those
    `among` these ids are archived."""
    view = View(core, session)
    require_change(core, view, NOTES, "fact decay")
    faded = [fact for fact in _faded(core, view) if among is None or fact.id in among]
    faded = faded[: most_at_once(len(_movable(core, view)))]
    archived = _moved(core, view, [fact.id for fact in faded], ARCHIVE, _faded, dry_run)
    sure = _vouched_for(core, view)
    promoted = _moved(core, view, [fact.id for fact in sure], CORE_FACTS, _vouched_for, dry_run)
    draft, proven = Draft(core, session), [fact for fact in _proven(core, view) if fact.id not in promoted]
    proposed = [fact for fact in proven if not draft.why_fixed(fact.id, draft.places(fact.id), CORE_FACTS)]
    for fact in () if dry_run else proposed:
        core.events.record(PROPOSED, session, path=fact.path, key=f"{PROPOSED}:{fact.id}", fact=fact.id)
    return Decayed(
        [fact for fact in faded if fact.id in archived], [fact for fact in sure if fact.id in promoted], proposed
    )


def _faded(core: Core, view: View) -> list[FactRow]:
    facts, limits = _movable(core, view), core.settings.memory
    histories, now = _histories(core, facts), core.now()
    found = [fact for fact in facts if is_faded(fact, histories[fact.id], limits, now)]
    return sorted(found, key=lambda fact: (fact.importance, fact.id))


def _proven(core: Core, view: View) -> list[FactRow]:
    limits = core.settings.memory
    found = [fact for fact in _movable(core, view) if fact.importance > limits.promote_above]
    return [fact for fact in found if fact.access_count >= limits.promote_accesses]


def _vouched_for(core: Core, view: View) -> list[FactRow]:
    if core.settings.memory.promote != "auto":
        return []
    proven = _proven(core, view)
    histories = _histories(core, proven)
    return [fact for fact in proven if is_vouched_for(histories[fact.id])]


def _movable(core: Core, view: View) -> list[FactRow]:
    return [fact for fact in facts_of(core, view, "notes") if not fact.provenance]


def is_faded(fact: FactRow, history: Sequence[Row], limits: MemoryTable, now: datetime) -> bool:
    """Whether a fact counts for next to nothing, no person pinned it to more than that, and nobody brought it back
    from the archive lately."""
    if fact.importance >= limits.archive_below or (fact.pin or 0.0) >= limits.archive_below:
        return False
    back = [datetime.fromisoformat(each["at"]) for each in history if each["action"] == "restored"]
    return not back or days_since(max(back), now) >= limits.stale_days


def is_vouched_for(history: Sequence[Row]) -> bool:
    """Whether the owner is among those who reinforced the fact on enough occasions since its text last changed: what
    only agents vouch for is proposed, and no more."""
    said = set[tuple[str, str]]()
    for event in history:
        if event["action"] in ("reworded", "merged"):
            said.clear()
        elif event["action"] == "reinforced":
            said.add((event["actor"], event["at"][:10]))
    return len(said) >= _REINFORCEMENTS and any(actor == "owner" for actor, _ in said)


def _moved(
    core: Core, view: View, ids: Sequence[str], to: str, judge: Callable[[Core, View], list[FactRow]], dry_run: bool
) -> set[str]:
    """The ids of the facts that are moved, in one edit; where one of them cannot be moved so, in several. They are
    judged again under the write lock: a person may just have pinned one."""

    def decide(draft: Draft) -> set[str]:
        done = set[str]()
        for fact in judge(core, view):
            section = draft.section_in_core(fact.section) if to == CORE_FACTS else fact.section
            if fact.id in ids and not draft.move(Move(fact.id, to, section)):
                done.add(fact.id)
        return done

    reason = "faded" if to == ARCHIVE else "proven"
    if dry_run or not ids:
        return decide(Draft(core, view.session, reason))
    try:
        return change_facts(core, view.session, "fact_decay", decide, reason=reason).decided
    except (EditFailed, OverCap):
        if len(ids) == 1:
            return set()
        halves = (ids[: len(ids) // 2], ids[len(ids) // 2 :])
        return set().union(*(_moved(core, view, half, to, judge, dry_run) for half in halves))


def _histories(core: Core, facts: Sequence[FactRow]) -> dict[str, list[Row]]:
    rows = core.index.facts.get([fact.id for fact in facts], heavy=False)
    return {fact.id: (rows.get(fact.id) or {}).get("source_history") or [] for fact in facts}


# ---- by the clock


class Proposal(NamedTuple):
    """What the owner may do with the fact that is at this line."""

    path: str
    line: int
    message: str


def tend_facts(core: Core) -> None:
    """Look at what faded and what is proposed. A fact is archived when a second look, a period later, finds it faded
    too: a clock that was wrong for a moment archives nothing."""
    found = decay_facts(core, PROGRAM, dry_run=True)
    held = core.index.cache.one(FADING)
    faded = {fact.id for fact in found.archived}
    decay_facts(core, PROGRAM, among=faded & set(held["value"] if held else ()))
    pairs = find_pairs(core, View(core, PROGRAM))
    for pair in pairs:
        key = f"{PROPOSED}:{pair.keep.id}:{pair.drop.id}"
        core.events.record(PROPOSED, PROGRAM, path=pair.drop.path, key=key, fact=pair.drop.id, same_as=pair.keep.id)
    proposed = {"core": [fact.id for fact in found.proposed], "same": [[each.keep.id, each.drop.id] for each in pairs]}
    now = core.now()
    rows = [(FADING, sorted(faded)), (PROPOSALS, proposed)]
    core.index.cache.put([{"id": id, "kind": id, "value": value, "made_at": now} for id, value in rows])


def proposals_of(core: Core) -> list[Proposal]:
    """What the last look by the clock proposed and still can be done, by path and line."""
    held = core.index.cache.one(PROPOSALS)
    if held is None:
        return []
    ids = {id for pair in held["value"]["same"] for id in pair} | set(held["value"]["core"])
    facts = {fact.id: fact for fact in facts_of(core, View(core, PROGRAM), ids=ids) if not fact.archived}
    rows = core.index.facts.get(list(facts), heavy=False)
    found = []
    for fact in (facts[id] for id in held["value"]["core"] if id in facts and not facts[id].core):
        step = f"notebook-sync fact promote {fact.id}"
        found.append(Proposal(fact.path, fact.line, f"this fact was used often enough for {CORE_FACTS}; run: {step}"))
    for keep, drop in (
        (facts[keep], facts[drop]) for keep, drop in held["value"]["same"] if {keep, drop} <= facts.keys()
    ):
        if keep.id not in (rows[drop.id]["not_same"] or ()):
            message = f"this fact says the same as line {keep.line} of {keep.path}; run: notebook-sync fact dedupe"
            found.append(Proposal(drop.path, drop.line, message))
    return sorted(found)
