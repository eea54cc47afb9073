"""What becomes of facts that fade, prove themselves, or say the same: by command, and by the clock.

Computed from when a fact was made and used, so that doing it twice changes nothing. Nothing is deleted: what is dropped
goes to the archive. What others wrote, what is in core.md, and what a person pinned is never dropped.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import chain, islice

from notebook_sync.errors import EditFailed, OverCap, UsageError
from notebook_sync.files.fact_text import ARCHIVE, order_of
from notebook_sync.model import CORE_FACTS
from notebook_sync.registry import Result
from notebook_sync.services.core import PROPOSALS, PROPOSED, Core, publish_now
from notebook_sync.services.fact_changes import Draft, change_facts, raised, view_to_change
from notebook_sync.services.fact_rows import (
    FactRow,
    declined,
    facts_of,
    has_faded,
    histories_of,
    named,
    proposed_for_core,
)
from notebook_sync.services.sameness import decided_by, says_same, words_of
from notebook_sync.services.view import View
from notebook_sync.sessions import OWNER, PROGRAM, Session
from notebook_sync.store.rows import Is, Row

# At most so many facts are archived in one run, or this share of them.
_MOST_ARCHIVED, _SHARE_ARCHIVED = 10, 10
# So many reinforcements, on different days or by different actors, the owner's among them, let a fact move to core.md.
_REINFORCEMENTS = 3
# What a fact gains by taking over another.
_MERGED = 0.05
# Texts are compared only if one has such a share of the beginnings of the other's words.
_BEGINNING, _MOST_SHARED = 4, 0.7
# So many facts at most are looked at for each: those that share the rarest of its words.
_MOST_COMPARED = 1_000
# The row of the cache that holds what the last look by the clock found.
_FADING = "facts:fading"
_WORD = re.compile(r"\s+|[^\s]+")


class Decayed(Result, frozen=True):
    """Facts as they were: those archived, those moved to core.md, and those proposed for it."""

    archived: list[FactRow]
    promoted: list[FactRow]
    proposed: list[FactRow]


class Pair(Result, frozen=True):
    """Two facts that say the same, of which `drop` may go. `similarity` is the share of their words that both have.
    `diff` marks what differs: [-only in drop-]{+only in keep+}."""

    keep: FactRow
    drop: FactRow
    similarity: float
    diff: str


class Deduped(Result, frozen=True):
    """`pairs` are all that were found, the most similar first. `merged` counts the facts that were dropped."""

    pairs: list[Pair]
    merged: int
    warnings: list[str]


# ---- decay and promotion


def decay_facts(
    core: Core, session: Session, *, dry_run: bool = False, among: Collection[str] | None = None
) -> Decayed:
    """Archive facts that faded, the least important first, and move proven ones to core.md or propose them. Only those
    `among` these ids are archived."""
    view = view_to_change(core, session, "fact decay")
    archived = _moved(core, view, among, ARCHIVE, dry_run=dry_run)
    promoted = _moved(core, view, None, CORE_FACTS, dry_run=dry_run)
    _, proven, _ = _judge(core, view)
    draft, done = Draft(core, OWNER), {fact.id for fact in promoted}
    proposed = [fact for fact in proven if fact.id not in done and not draft.why_stays(fact.id, CORE_FACTS)]
    for fact in () if dry_run else proposed:
        core.events.record(PROPOSED, session, path=fact.path, key=f"{PROPOSED}:{fact.id}", fact=fact.id)
    return Decayed(archived, promoted, proposed)


def _judge(core: Core, view: View, among: Collection[str] | None = None) -> tuple[list[FactRow], ...]:
    """Of the facts that are neither in core.md nor archived, nor of others, and `among` these ids: those that faded,
    the least important first, as many as one run may archive; those that were used often enough for core.md; and which
    of them may go there unasked."""
    limits, now = core.settings.memory, core.now()
    own = [fact for fact in facts_of(core, view, "notes") if not fact.provenance]
    facts = [fact for fact in own if among is None or fact.id in among]
    histories = histories_of(core, facts)
    faded = [fact for fact in facts if has_faded(fact, histories[fact.id], limits, now)]
    faded.sort(key=lambda fact: (fact.importance, fact.id))
    above = [fact for fact in facts if fact.importance > limits.promote_above]
    left = declined(core, [fact.id for fact in above])
    proven = [fact for fact in above if fact.access_count >= limits.promote_accesses and fact.id not in left]
    sure = [fact for fact in proven if limits.promote == "auto" and is_vouched_for(histories[fact.id])]
    return faded[: _most_at_once(len(own))], proven, sure


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


def _moved(core: Core, view: View, among: Collection[str] | None, to: str, *, dry_run: bool) -> list[FactRow]:
    """The facts that are moved, in one edit; where one of them cannot be moved so, in several. They are judged under
    the write lock: a person may just have pinned one."""
    reason = "faded" if to == ARCHIVE else "proven"

    def decide(draft: Draft) -> list[FactRow]:
        faded, _, sure = _judge(core, view, among)
        if to == ARCHIVE:
            return [fact for fact in faded if not draft.move(fact.id, to)]
        return [fact for fact in sure if not draft.move(fact.id, to, draft.section_in_core(fact.section))]

    planned = decide(Draft(core, view.session, reason))
    if dry_run or not planned:
        return planned
    try:
        return change_facts(core, view.session, "fact_decay", decide, reason=reason)[0]
    except (EditFailed, OverCap):
        ids, middle = [fact.id for fact in planned], len(planned) // 2
        halves = (ids[:middle], ids[middle:]) if middle else ()
        return [fact for half in halves for fact in _moved(core, view, half, to, dry_run=False)]


def _most_at_once(facts: int) -> int:
    return max(_MOST_ARCHIVED, facts // _SHARE_ARCHIVED)


# ---- duplicates


def dedupe_facts(
    core: Core,
    session: Session,
    *,
    dry_run: bool = False,
    not_same: Sequence[str] = (),
    forget: bool = False,
    merge: Sequence[str] = (),
) -> Deduped:
    """Find facts that say the same and merge them, the most similar first. `not_same` names two facts that are not:
    that is remembered, or forgotten, and nothing is merged. `merge` names the only two that are."""
    view = view_to_change(core, session, "fact dedupe")
    if forget and not not_same:
        raise UsageError("forget says nothing without not_same", next="name the two facts with --not-same")
    if not_same:
        _tell_apart(core, view, not_same, is_so=not forget)
    pairs = _find_pairs(core, view)
    if merge:
        wanted = _two(core, view, merge, "merge")
        pairs = [pair for pair in pairs if {pair.keep.id, pair.drop.id} == wanted]
    if dry_run or not_same:
        return Deduped(pairs, 0, [])
    most = _most_at_once(len(facts_of(core, view, "notes")))

    def decide(draft: Draft) -> dict[str, str]:
        """By the fact that is dropped, the one that stays."""
        done = dict[str, str]()
        for keep, drop in ((pair.keep.id, pair.drop.id) for pair in pairs):
            is_alive = next(iter(draft.places(keep)), ARCHIVE) != ARCHIVE
            is_free = is_alive and not {keep, drop} & done.keys() and drop not in done.values()
            is_fixed = any(path == CORE_FACTS or fact.pin is not None for path, fact in draft.places(drop).items())
            if not is_free or is_fixed or len(done) == most:
                continue
            if not draft.move(drop, ARCHIVE, reason=f"merged into {keep}"):
                done[drop] = keep
        return done

    merged, saved = change_facts(core, session, "fact_dedupe", decide, reason="merge facts that say the same")
    for drop, keep in merged.items():
        _merge_rows(core, session, keep, drop)
    publish_now(core)
    return Deduped(pairs, len(merged), list(saved.warnings))


def _find_pairs(core: Core, view: View) -> list[Pair]:
    """The pairs of facts that say the same, the most similar first, but for those that somebody said are two facts."""
    facts = {fact.id: fact for fact in facts_of(core, view) if not fact.archived and not fact.provenance}
    apart = {id: others or () for id, others in core.index.facts.tuples(("id", "not_same"))}
    found = []
    for one, other in pairs_of({id: fact.content for id, fact in facts.items()}):
        drop, keep = sorted((facts[one], facts[other]), key=_weight)
        if one in apart[other] or other in apart[one] or drop.core or drop.pin is not None:
            continue
        here, there = words_of(keep.content), words_of(drop.content)
        found.append(
            Pair(keep, drop, round(len(here & there) / len(here | there), 4), word_diff(drop.content, keep.content))
        )
    return sorted(found, key=lambda pair: (-pair.similarity, pair.keep.id, pair.drop.id))


def pairs_of(texts: Mapping[str, str]) -> list[tuple[str, str]]:
    """The ids of the texts that say the same, two by two. Only texts with the same numbers and as many denials are
    compared, of which one has the beginnings of most words of the other."""
    blocks: defaultdict[object, dict[str, set[str]]] = defaultdict(dict)
    for id, text in texts.items():
        blocks[decided_by(text)][id] = {word[:_BEGINNING] for word in words_of(text)}
    near = chain.from_iterable(_near_pairs(block) for block in blocks.values())
    return [(min(pair), max(pair)) for pair in near if says_same(texts[pair[0]], texts[pair[1]])]


def _near_pairs(begins: Mapping[str, set[str]]) -> Iterator[tuple[str, str]]:
    """Two by two, the ids of which the first has most of its beginnings in common with the second, which is no
    shorter."""
    having: defaultdict[str, list[str]] = defaultdict(list)
    for id, own in begins.items():
        for each in own:
            having[each].append(id)
    for id, own in begins.items():
        # What shares that many has at least two of the rarest that are more than it may lack.
        needed = math.ceil(_MOST_SHARED * len(own))
        rare = sorted(own, key=lambda each: (len(having[each]), each))[: len(own) - needed + 2]
        shared = Counter(islice(chain.from_iterable(having[each] for each in rare), _MOST_COMPARED))
        for other in (other for other, count in shared.items() if count > 1 or len(rare) == 1):
            if (len(begins[other]), other) > (len(own), id) and len(own & begins[other]) >= needed:
                yield id, other


def word_diff(old: str, new: str) -> str:
    """Two texts as one, with [-words that only the old one has-] and {+words that only the new one has+}."""
    before, after = _WORD.findall(old), _WORD.findall(new)
    shown = []
    for what, start, end, begin, stop in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        left, right = "".join(before[start:end]), "".join(after[begin:stop])
        marked = (f"[-{left}-]" if left else "") + (f"{{+{right}+}}" if right else "")
        shown.append(left if what == "equal" else marked)
    return "".join(shown)


def _weight(fact: FactRow) -> tuple[object, ...]:
    """Of two facts, the one that weighs more stays: the one in core.md, the pinned, the more important, the longer, the
    older one."""
    age, place = -fact.created_at.timestamp(), order_of(fact.path)
    return fact.core, fact.pin is not None, round(fact.importance, 2), len(fact.content), age, place, fact.id


def _merge_rows(core: Core, session: Session, id: str, dropped: str) -> None:
    """Give what the database knows of a dropped fact to the one that stays."""
    with core.index.write():
        rows = core.index.facts.get([id, dropped], heavy=False)
        if len(rows) < 2:  # the index follows later, and the uses stay with the dropped one
            return
        keep, drop = rows[id], rows[dropped]
        events = [event for row in (drop, keep) for event in row["source_history"] or ()]
        past = {**keep, "source_history": sorted(events, key=lambda event: event["at"])}
        base = max(keep["base"], drop["base"]) + _MERGED
        changes = raised(core, session, past, "merged", base, was=drop["content"]) | {
            "created_at": min(row["created_at"] or core.now() for row in (keep, drop)),
            "last_accessed": max(filter(None, (keep["last_accessed"], drop["last_accessed"])), default=None),
            "metadata": {**(drop["metadata"] or {}), **(keep["metadata"] or {})} or None,
        }
        uses = {"access_count": drop["access_count"] or 0}
        core.index.facts.update(Is("id", "=", id), set=changes, inc=uses, stamp=True)


def _two(core: Core, view: View, names: Sequence[str], argument: str) -> set[str]:
    """The ids of two facts. Raises UsageError unless there are two, NotFound."""
    facts = facts_of(core, view)
    ids = {named(name, facts).id for name in names}
    if len(ids) != 2:
        raise UsageError(f"{argument} takes two facts", next="give the ids of both, as `fact dedupe` lists them")
    return ids


def _tell_apart(core: Core, view: View, names: Sequence[str], *, is_so: bool) -> None:
    """Remember, or forget, that two facts are not the same."""
    ids = _two(core, view, names, "not_same")
    with core.index.write():
        for id, row in core.index.facts.get(ids, heavy=False).items():
            known = {*(row["not_same"] or ())} - ids | (ids - {id} if is_so else set())
            core.index.facts.update(Is("id", "=", id), set={"not_same": sorted(known)})


# ---- by the clock


def tend_facts(core: Core) -> None:
    """Look at what faded and what is proposed. A fact is archived when a second look, a period later, finds it faded
    too: a clock that was wrong for a moment archives nothing."""
    found = decay_facts(core, PROGRAM, dry_run=True)
    faded = {fact.id for fact in found.archived}
    decay_facts(core, PROGRAM, among=faded.intersection(core.noted(_FADING)))
    pairs = _find_pairs(core, View(core, PROGRAM))
    for pair in pairs:
        key = f"{PROPOSED}:{pair.keep.id}:{pair.drop.id}"
        core.events.record(PROPOSED, PROGRAM, path=pair.drop.path, key=key, fact=pair.drop.id, same_as=pair.keep.id)
    proposed = [[fact.id, ""] for fact in found.proposed] + [[pair.drop.id, pair.keep.id] for pair in pairs]
    rows = {_FADING: sorted(faded), PROPOSALS: proposed}
    core.index.cache.put([{"id": id, "kind": id, "value": value, "made_at": core.now()} for id, value in rows.items()])


def proposals_of(core: Core) -> list[tuple[str, int, str]]:
    """What the last look by the clock proposed and still can be done: path and line of a fact, and what the owner may
    do with it; in order."""
    pairs = [each for each in core.noted(PROPOSALS) if each[1]]
    proposed = [*((id, "") for id in sorted(proposed_for_core(core))), *pairs]
    ids = set(chain.from_iterable(proposed))
    facts = {fact.id: fact for fact in facts_of(core, View(core, PROGRAM), ids=ids) if not fact.archived}
    apart = dict(core.index.facts.tuples(("id", "not_same"), Is("id", "in", ids)))
    found = []
    for id, as_id in proposed:
        fact, same = facts.get(id), facts.get(as_id)
        if fact and not as_id:
            message = f"this fact is proposed for {CORE_FACTS}; run: notebook-sync fact promote {id}"
            found.append((fact.path, fact.line, message))
        if fact and same and as_id not in (apart[id] or ()):
            message = f"this fact says the same as line {same.line} of {same.path}; run: notebook-sync fact dedupe"
            found.append((fact.path, fact.line, message))
    return sorted(found)
