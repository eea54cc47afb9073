"""Facts that say the same: which pairs there are, and one of each kept in place of both.

What is dropped is not lost: its text goes to the archive, what is known of its use to the fact that stays. What others
wrote, what is in core.md, and what a person pinned is never dropped.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Literal

from notebook_sync.errors import UsageError
from notebook_sync.files.fact_text import ARCHIVE, order_of
from notebook_sync.model import CORE_FACTS, HISTORY_LIMIT
from notebook_sync.registry import Result
from notebook_sync.services.core import Core
from notebook_sync.services.documents import require_change
from notebook_sync.services.fact_changes import NOTES, Draft, Move, change_facts
from notebook_sync.services.fact_finding import named
from notebook_sync.services.fact_rows import FactRow, clamp, facts_of
from notebook_sync.services.sameness import decided_by, says_same, words_of
from notebook_sync.services.view import View
from notebook_sync.services.writing import publish_now
from notebook_sync.sessions import Session
from notebook_sync.store.rows import Is

# At most so many facts are archived in one run, or this share of them.
_MOST_ARCHIVED, _SHARE_ARCHIVED = 10, 10
_MERGED = 0.05
# Two facts that share less of their words than this are one only because one of them says less.
_SHARED = 0.6
# Texts are compared only if one has such a share of the beginnings of the other's words.
_BEGINNING, _MOST_SHARED = 4, 0.7
# What so many facts have says little: in a large notebook, all of them would be compared with all.
_MOST_WITH_WORD = 300
_WORD = re.compile(r"\s+|[^\s]+")


class Pair(Result, frozen=True):
    """Two facts that say the same, of which `drop` may go. `similarity` is the share of their words that both have.
    `how`: "words" for other words of the same statement, "contained" where one says less. `diff` marks what differs:
    [-only in drop-]{+only in keep+}."""

    keep: FactRow
    drop: FactRow
    similarity: float
    how: Literal["words", "contained"]
    diff: str


class Deduped(Result, frozen=True):
    """`pairs` are all that were found, the most similar first. `merged` counts the facts that were dropped."""

    pairs: list[Pair]
    merged: int
    warnings: list[str]


def most_at_once(facts: int) -> int:
    """How many of so many facts one run may archive: ten, or a tenth."""
    return max(_MOST_ARCHIVED, facts // _SHARE_ARCHIVED)


def dedupe_facts(core: Core, session: Session, *, dry_run: bool = False, not_same: Sequence[str] = ()) -> Deduped:
    """Find facts that say the same and merge them, the most similar first. `not_same` names two facts that are not:
    that is remembered, and nothing is merged."""
    view = View(core, session)
    require_change(core, view, NOTES, "fact dedupe")
    if not_same:
        _tell_apart(core, view, not_same)
    pairs = find_pairs(core, view)
    if dry_run or not_same:
        return Deduped(pairs, 0, [])
    most = most_at_once(len(facts_of(core, view, "notes")))

    def decide(draft: Draft) -> dict[str, str]:
        """By the fact that is dropped, the one that stays."""
        done = dict[str, str]()
        for keep, drop in ((pair.keep.id, pair.drop.id) for pair in pairs):
            is_alive = next(iter(draft.places(keep)), ARCHIVE) != ARCHIVE
            is_free = is_alive and not {keep, drop} & done.keys() and drop not in done.values()
            if not is_free or len(done) == most or _is_fixed(draft, drop):
                continue
            if not draft.move(Move(drop, ARCHIVE, reason=f"merged into {keep}")):
                done[drop] = keep
        return done

    changed = change_facts(core, session, "fact_dedupe", decide, reason="merge facts that say the same")
    for drop, keep in changed.decided.items():
        _merge_rows(core, keep, drop, session)
    publish_now(core)
    return Deduped(pairs, len(changed.decided), list(changed.saved.warnings))


def find_pairs(core: Core, view: View) -> list[Pair]:
    """The pairs of facts that say the same, the most similar first, but for those that somebody said are two facts."""
    facts = {fact.id: fact for fact in facts_of(core, view) if not fact.archived and not fact.provenance}
    rows = core.index.facts.get(list(facts), heavy=False)
    found = []
    for one, other in pairs_of({id: fact.content for id, fact in facts.items()}):
        apart = {*(rows[one]["not_same"] or ()), *(rows[other]["not_same"] or ())}
        drop, keep = sorted((facts[one], facts[other]), key=_weight)
        if {one, other} & apart or drop.core or drop.pin is not None:
            continue
        words = words_of(keep.content), words_of(drop.content)
        similarity = len(words[0] & words[1]) / len(words[0] | words[1])
        diff = word_diff(drop.content, keep.content)
        found.append(Pair(keep, drop, round(similarity, 4), "words" if similarity >= _SHARED else "contained", diff))
    return sorted(found, key=lambda pair: (-pair.similarity, pair.keep.id, pair.drop.id))


def pairs_of(texts: Mapping[str, str]) -> list[tuple[str, str]]:
    """The ids of the texts that say the same, two by two. Only texts with the same numbers and as many denials are
    compared, of which one has the beginnings of most words of the other."""
    blocks: defaultdict[tuple[tuple[str, ...], int], list[str]] = defaultdict(list)
    for id, text in texts.items():
        blocks[decided_by(text)].append(id)
    return [pair for ids in blocks.values() if len(ids) > 1 for pair in _pairs_among({id: texts[id] for id in ids})]


def _pairs_among(texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    begins = {id: {word[:_BEGINNING] for word in words_of(text)} for id, text in texts.items()}
    having: defaultdict[str, list[str]] = defaultdict(list)
    for id, own in begins.items():
        for each in own:
            having[each].append(id)
    for id, own in begins.items():
        # A text that has that share of the words has one of the rarest of them.
        needed = math.ceil(_MOST_SHARED * len(own))
        rare = sorted(own, key=lambda each: (len(having[each]), each))[: len(own) - needed + 1]
        for other in sorted({other for each in rare if len(having[each]) <= _MOST_WITH_WORD for other in having[each]}):
            is_longer = (len(begins[other]), other) > (len(own), id)
            if is_longer and len(own & begins[other]) >= needed and says_same(texts[id], texts[other]):
                yield min(id, other), max(id, other)


def word_diff(old: str, new: str) -> str:
    """Two texts as one, with [-words that only the old one has-] and {+words that only the new one has+}."""
    before, after = _WORD.findall(old), _WORD.findall(new)
    shown = []
    for _, start, end, begin, stop in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        left, right = "".join(before[start:end]), "".join(after[begin:stop])
        marked = (f"[-{left}-]" if left else "") + (f"{{+{right}+}}" if right else "")
        shown.append(left if left == right else marked)
    return "".join(shown)


def _weight(fact: FactRow) -> tuple[bool, bool, float, int, float, tuple[int, str], str]:
    """Of two facts, the one that weighs more stays: the one in core.md, the pinned, the more important, the longer, the
    older one."""
    age = -fact.created_at.timestamp()
    return (
        fact.core,
        fact.pin is not None,
        round(fact.importance, 2),
        len(fact.content),
        age,
        order_of(fact.path),
        fact.id,
    )


def _is_fixed(draft: Draft, id: str) -> bool:
    """Whether a person keeps the fact where it is: it is in core.md, or pinned."""
    return any(path == CORE_FACTS or fact.pin is not None for path, fact in draft.places(id).items())


def _merge_rows(core: Core, id: str, dropped: str, session: Session) -> None:
    """Give what the database knows of a dropped fact to the one that stays."""
    with core.index.write():
        rows = core.index.facts.get([id, dropped], heavy=False)
        if len(rows) < 2:  # the index follows later, and the uses stay with the dropped one
            return
        keep, drop = rows[id], rows[dropped]
        is_fixed = keep["pin"] is not None or keep["path"] == CORE_FACTS
        base = keep["base"] if is_fixed else clamp(max(keep["base"], drop["base"]) + _MERGED)
        event = {"at": core.now().isoformat(), "action": "merged", "importance": base, "actor": session.changed_by}
        event |= {"path": keep["path"], "section": keep["section"], "was": drop["content"]}
        events = sorted([*(drop["source_history"] or ()), *(keep["source_history"] or ())], key=lambda each: each["at"])
        seen = [each["last_accessed"] for each in (keep, drop) if each["last_accessed"]]
        changes = {
            "base": base,
            "created_at": min(each["created_at"] or core.now() for each in (keep, drop)),
            "last_accessed": max(seen, default=None),
            "source_history": [*events, event][-HISTORY_LIMIT:],
            "metadata": {**(drop["metadata"] or {}), **(keep["metadata"] or {})} or None,
        }
        uses = {"access_count": drop["access_count"] or 0}
        core.index.facts.update(Is("id", "=", id), set=changes, inc=uses, stamp=True)


def _tell_apart(core: Core, view: View, names: Sequence[str]) -> None:
    """Remember that two facts are not the same. Raises UsageError unless there are two, NotFound."""
    facts = facts_of(core, view)
    ids = sorted({named(name, facts).id for name in names})
    if len(ids) != 2:
        raise UsageError("not_same takes two facts", next="give the ids of both, as `fact dedupe` lists them")
    with core.index.write():
        rows = core.index.facts.get(ids, heavy=False)
        for id, other in zip(ids, reversed(ids), strict=True):
            known = sorted({*(rows[id]["not_same"] or ()), other})
            core.index.facts.update(Is("id", "=", id), set={"not_same": known})
