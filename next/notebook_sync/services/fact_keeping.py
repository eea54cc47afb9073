"""Facts kept: added, reinforced, archived, restored, promoted. What is known already is not written twice."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from msgspec.structs import asdict, replace

from notebook_sync.errors import EditFailed, NotFound, UsageError
from notebook_sync.files.fact_text import ARCHIVE, HINTS, as_bullet, fact_id, fact_text
from notebook_sync.model import CORE_FACTS, HISTORY_LIMIT
from notebook_sync.services.core import Core
from notebook_sync.services.documents import require_change
from notebook_sync.services.fact_changes import (
    IMPORTANT,
    NOTES,
    Addition,
    Done,
    Draft,
    Move,
    change_facts,
    one_line,
)
from notebook_sync.services.fact_finding import (
    Likeness,
    asked,
    likeness_of,
    named,
    no_such_fact,
    similarities,
)
from notebook_sync.services.fact_rows import ChangedFact, FactRow, clamp, facts_of
from notebook_sync.services.sameness import contradicts, difference
from notebook_sync.services.view import View
from notebook_sync.services.writing import Saved, publish_now
from notebook_sync.sessions import Session
from notebook_sync.store.rows import EVERYTHING, Is, both
from notebook_sync.sync.project import BASE

# The event of a fact that a session wants in core.md and may not move there.
PROPOSED = "fact_proposed"
# What a fact gains by being confirmed, or said again.
_REINFORCED = 0.1


class _Step(NamedTuple):
    """What is done with which fact. `path`: the file that it goes to, "" where it stays."""

    action: str
    fact: FactRow
    path: str = ""
    section: str = ""


def add_fact(
    core: Core, session: Session, content: str, *, section: str, importance: str | float | None
) -> ChangedFact:
    """Add a fact to notes.md, or reinforce the one that says the same, which is restored if it was archived.

    What the owner says of its importance is written in its place, what an agent says is only kept in its row.
    """
    view = View(core, session)
    require_change(core, view, NOTES, "fact_add")
    weight = None if importance is None else importance_of(importance)
    addition = Addition(
        fact_text(content),
        one_line("section", section) or IMPORTANT,
        pin=weight if session.kind == "owner" else None,
    )
    as_bullet(addition.content, pin=addition.pin)  # a text that is no fact is refused before anything is asked
    likeness = likeness_of(core, addition.content)

    def decide(draft: Draft) -> _Step:
        known = _known(core, view, likeness)
        if known is not None and not known.archived:
            return _Step("reinforced", known)
        home = Move(known.id, *draft.home_of(known.id)) if known is not None else None
        if known is not None and home is not None and not draft.move(home):
            return _Step("restored", known, home.path, home.section)
        draft.add(addition)
        return _Step("added", _not_indexed(core, addition), NOTES, addition.section)

    done = change_facts(core, session, "fact_add", decide)
    step, warnings = done.decided, []
    if likeness.degraded:
        warnings.append(f"compared with other facts by words alone: {likeness.degraded}")
    if step.action == "reinforced":
        strengthen(core, session, step.fact.id, weight or 0.0)
    elif weight is not None:
        more = Is("base", "<", weight) if step.action == "restored" else EVERYTHING
        core.index.facts.update(both(Is("id", "=", step.fact.id), more), set={"base": weight}, stamp=True)
    publish_now(core)
    return _answer(core, view, done, warnings)


def reinforce_fact(core: Core, session: Session, name: str) -> ChangedFact:
    """Count a use of one fact, and let it count for more: named by id, text, or a text that is near enough."""
    view = View(core, session)
    require_change(core, view, NOTES, "fact_reinforce")
    fact, warnings = _meant(core, view, asked(name, "name a fact"))
    if fact.archived:
        raise UsageError("this fact is archived", next=f"restore it with: notebook-sync fact restore {fact.id}")
    strengthen(core, session, fact.id)
    publish_now(core)
    return _answer(core, view, Done(_Step("reinforced", fact), Saved(()), frozenset()), warnings)


def archive_fact(core: Core, session: Session, name: str, *, reason: str) -> ChangedFact:
    """Move a fact to archive.md. One that is there stays as it is."""
    view = View(core, session)

    def decide(draft: Draft) -> _Step:
        fact = named(name, facts_of(core, view))
        if not fact.archived:
            _move(core, view, draft, fact, Move(fact.id, ARCHIVE), "fact archive")
        return _Step("archived", fact, "" if fact.archived else ARCHIVE, fact.section)

    why = one_line("reason", reason) or f"archived by {session.changed_by}"
    return _answer(core, view, change_facts(core, session, "fact_archive", decide, reason=why))


def restore_fact(core: Core, session: Session, name: str) -> ChangedFact:
    """Move a fact from archive.md to where it came from."""
    view = View(core, session)

    def decide(draft: Draft) -> _Step:
        fact = named(name, facts_of(core, view))
        if not fact.archived:
            raise UsageError(f"this fact is not archived: it is in {fact.path}, line {fact.line}")
        path, section = draft.home_of(fact.id)
        _move(core, view, draft, fact, Move(fact.id, path, section), "fact restore")
        return _Step("restored", fact, path, section)

    return _answer(core, view, change_facts(core, session, "fact_restore", decide))


def promote_fact(core: Core, session: Session, name: str, *, section: str) -> ChangedFact:
    """Move a fact to core.md. A session that may not write there proposes it: an event tells the owner."""
    view, heading = View(core, session), one_line("section", section)
    require_change(core, view, NOTES, "fact promote")

    def decide(draft: Draft) -> _Step:
        fact = named(name, facts_of(core, view))
        target = heading or draft.section_in_core(fact.section)
        if fact.core:
            return _Step("promoted", fact)
        if view.may("write", CORE_FACTS):
            _move(core, view, draft, fact, Move(fact.id, CORE_FACTS, target), "fact promote")
            return _Step("promoted", fact, CORE_FACTS, target)
        if why := draft.why_fixed(fact.id, draft.places(fact.id), CORE_FACTS):
            raise _stays(fact, why)
        return _Step("proposed", fact)

    done = change_facts(core, session, "fact_promote", decide)
    if done.decided.action == "proposed":
        core.events.record(PROPOSED, session, path=done.decided.fact.path, fact=done.decided.fact.id)
    return _answer(core, view, done)


def importance_of(hint: str | float) -> float:
    """The importance that a hint names (core, high, medium, low), or that a number is. Raises UsageError."""
    try:
        known = HINTS.get(str(hint).strip().casefold())
        value = float(hint) if known is None else known
    except ValueError:
        value = math.nan
    if isinstance(hint, bool) or not 0 <= value <= 1:
        raise UsageError(f"importance is {', '.join(HINTS)} or a number from 0 to 1, not {hint!r}")
    return value


def strengthen(core: Core, session: Session, id: str, least: float = 0.0) -> None:
    """Count a use of a fact, and let it count for more, and for `least` at least; the importance of one that is pinned,
    or in core.md, stays."""
    actor = "owner" if session.kind == "owner" else session.changed_by
    facts, now = core.index.facts, core.now()
    with core.index.write():
        row = facts.one(id, heavy=False)
        if row is None:
            return
        is_fixed = row["pin"] is not None or row["path"] == CORE_FACTS
        base = row["base"] if is_fixed else clamp(max(row["base"] + _REINFORCED, least))
        event = {"at": now.isoformat(), "action": "reinforced", "importance": base, "actor": actor}
        event |= {"path": row["path"], "section": row["section"]}
        history = [*(row["source_history"] or ()), event][-HISTORY_LIMIT:]
        changes = {"base": base, "last_accessed": now, "source_history": history}
        facts.update(Is("id", "=", id), set=changes, inc={"access_count": 1}, stamp=True)


def _known(core: Core, view: View, likeness: Likeness) -> FactRow | None:
    """The fact that says this: the same text, archived or not, else the nearest one that says the same."""
    facts = facts_of(core, view)
    own = fact_id(likeness.text)
    alike = similarities(core, likeness, [fact for fact in facts if fact.id == own or not fact.archived])
    near = [fact for fact in facts if alike.get(fact.id, 0.0) >= core.settings.memory.duplicate]
    near.sort(key=lambda fact: (fact.id != own, -alike[fact.id], fact.id))
    return next((fact for fact in near if fact.id == own or not difference(fact.content, likeness.text)), None)


def _meant(core: Core, view: View, name: str) -> tuple[FactRow, list[str]]:
    """The fact that a name means, or that is like the text and does not deny it; warnings. Raises NotFound."""
    facts = facts_of(core, view)
    with suppress(NotFound):
        return named(name, facts), []
    facts = [fact for fact in facts if not fact.archived]
    likeness = likeness_of(core, name)
    alike = similarities(core, likeness, facts)
    near = sorted(facts, key=lambda fact: (-alike[fact.id], fact.id))
    for fact in near:
        if alike[fact.id] >= core.settings.memory.reinforced and not contradicts(fact.content, name):
            warned = likeness.degraded
            return fact, [f"compared with other facts by words alone: {warned}"] if warned else []
    raise no_such_fact(name, near)


def _move(core: Core, view: View, draft: Draft, fact: FactRow, move: Move, operation: str) -> None:
    """Move one fact. Raises NotPermitted, and EditFailed for one that no tool moves."""
    for path in (fact.path, move.path):
        require_change(core, view, path, operation)
    if why := draft.move(move):
        raise _stays(fact, why)


def _stays(fact: FactRow, why: str) -> EditFailed:
    return EditFailed(fact.path, f"the fact {fact.id} stays where it is: {why}", line=fact.line)


def _answer(core: Core, view: View, done: Done[_Step], warnings: Sequence[str] = ()) -> ChangedFact:
    """The fact as the index has it now; where the index does not follow, as it will be."""
    step = done.decided
    placed = replace(step.fact, path=step.path, section=step.section) if step.path else step.fact
    fact = next(iter(facts_of(core, view, ids=[step.fact.id])), placed)
    return ChangedFact(
        **asdict(fact),
        action=step.action,
        moved=bool(step.path),
        created=step.path in done.created,
        warnings=[*done.saved.warnings, *(said for each in done.saved.changes for said in each.warnings), *warnings],
    )


def _not_indexed(core: Core, addition: Addition) -> FactRow:
    weight = BASE if addition.pin is None else addition.pin
    return FactRow(
        id=fact_id(addition.content),
        content=addition.content,
        section=addition.section,
        path=addition.path,
        line=0,
        importance=weight,
        base=weight,
        pin=addition.pin,
        access_count=0,
        created_at=core.now(),
        last_accessed=None,
        provenance="",
        core=False,
        archived=False,
    )
