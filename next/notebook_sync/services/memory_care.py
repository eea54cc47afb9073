"""Looking after memories: what each counts for, what they lack, and repairs that git and tags can prove.

    usage     min(1, ln(1 + uses) / 5)
    recency   2 ** (-days since the last use / 7), since it was made where it was never used
    age       1 - 2 ** (-days since it was made / 30)
    score     .30 usage + .35 recency + .25 priority / 10 - .10 age, within 0 to 1

Weights and half-lives are settings. A new memory counts for a tenth of its priority.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta, tzinfo
from math import log1p
from statistics import fmean, pstdev
from typing import Any

from notebook_sync.errors import GitFailed, NotebookError
from notebook_sync.files.edits import Edit, apply_edits
from notebook_sync.files.fields import HIGHEST_PRIORITY, KINDS, read_fields
from notebook_sync.files.frontmatter import Frontmatter, read_frontmatter, typed
from notebook_sync.services.core import Core
from notebook_sync.services.memory_metadata import UNKNOWN, agent_of, odd_moment
from notebook_sync.services.memory_results import Audit, Finding, Repair, Repaired, Scored
from notebook_sync.services.memory_text import NEEDED
from notebook_sync.services.remembering import FOLDER, memories_where, score_of_row
from notebook_sync.services.view import View
from notebook_sync.services.writing import Change, change_notes
from notebook_sync.sessions import PROGRAM, Session
from notebook_sync.settings import MemoryTable
from notebook_sync.store.rows import Is, Row

_MANY_USES = 5.0  # the logarithm at which usage counts in full: 147 uses
_MOVED = 0.01
_DAY = timedelta(days=1)
_MOST_LISTED, _BATCH = 1_000, 1_000
# A time that could not be read is kept under this name where the time of the first commit replaces it.
_BEFORE = "created_at_before"
# Frontmatter of what was imported: its first commit is the import's.
_IMPORTED = ("imported", "older")
_KIND_TAG = re.compile(rf"(?:kind:|type:)?({'|'.join(KINDS)})", re.IGNORECASE)
_COLUMNS = ("id", "path", "kind", "tags", "fields", "needs_review", "provenance", "stale", "score")
_SCORED = ("id", "fields", "score", "access_count", "last_accessed", "created_at")


# ---- scores


def score_of(
    uses: int, used: datetime | None, made: datetime, priority: float, now: datetime, by: MemoryTable
) -> float:
    """What a memory counts for at `now`, 0 to 1. A time to come counts as now."""
    usage = min(1.0, log1p(max(uses, 0)) / _MANY_USES)
    recency = _halved(now - (used or made), by.recency_half_life_days)
    age = 1.0 - _halved(now - made, by.age_half_life_days)
    score = by.usage * usage + by.recency * recency + by.priority * priority / HIGHEST_PRIORITY - by.age * age
    return min(max(score, 0.0), 1.0)


def score_memories(core: Core, session: Session = PROGRAM) -> Scored:
    """Compute all scores, write those that moved, and describe those of the memories that the session may read."""
    now, settings, documents = core.now(), core.settings.memory, core.index.documents
    scores: dict[str, float] = {}
    moved: defaultdict[float, list[str]] = defaultdict(list)
    for row in documents.find(Is("collection", "=", FOLDER), fields=_SCORED):
        priority, made = (row["fields"] or {}).get("priority") or 0, row["created_at"] or now
        score = round(score_of(row["access_count"] or 0, row["last_accessed"], made, priority, now, settings), 3)
        is_moved = row["score"] is None or abs(row["score"] - score) >= _MOVED
        scores[row["id"]] = score if is_moved else row["score"]
        if is_moved:
            moved[score].append(row["id"])
    with core.index.write():
        for score, ids in moved.items():
            documents.update(Is("id", "in", ids), set={"score": score}, stamp=True)
    mine = {id for (id,) in documents.tuples(("id",), memories_where(core, View(core, session)))}
    found = [score for id, score in scores.items() if id in mine]
    changed = sum(id in mine for ids in moved.values() for id in ids)
    return Scored(scored=len(found), changed=changed, **_spread(found), at=now.replace(microsecond=0))


# ---- audit


def audit_memories(core: Core, session: Session) -> Audit:
    """Count what the memories that the session may read lack; the first findings by path."""
    rows, ids = _memories(core, session)
    findings = [finding for row in rows for finding in _findings(core, row, ids)]
    about = Counter(finding.field for finding in findings)
    unreadable = sum(finding.field == "created_at" and finding.what != _NO_TIME for finding in findings)
    said = [row["fields"] or {} for row in rows]
    priorities, tags = [each.get("priority") or 0 for each in said], [len(row["tags"]) for row in rows]
    types = [link["type"] for each in said for link in each.get("relations") or ()]
    return Audit(
        memories=len(rows),
        timestamps={"missing": about["created_at"] - unreadable, "unparsable": unreadable},
        agents={"unknown": about["agent"]},
        unstructured=sum(bool(_lacking(row)) for row in rows),
        needs_review=about["needs_review"],
        importance={
            **_spread(priorities),
            "saturated": _share(max(Counter(priorities).values(), default=0), len(priorities)),
        },
        links=len(types),
        links_broken=about["relations"],
        similar_share=_share(types.count("similar"), len(types)),
        tags={"per_memory": _spread(tags)["mean"], "none": float(tags.count(0))},
        score=_spread([score_of_row(row) for row in rows]),
        findings=findings[:_MOST_LISTED],
        findings_left_out=max(len(findings) - _MOST_LISTED, 0),
    )


_NO_TIME = "it does not say when it was made"


def _memories(core: Core, session: Session) -> tuple[list[Row], set[str]]:
    where = memories_where(core, View(core, session))
    rows = core.index.documents.find(where, order=("path",), fields=_COLUMNS)
    return rows, {row["id"] for row in rows}


def _front_of(raw: bytes) -> Frontmatter:
    return read_frontmatter(raw.decode(errors="replace"))


def _findings(core: Core, row: Row, ids: Collection[str]) -> list[Finding]:
    """What one memory lacks, by line."""
    try:
        front = _front_of(core.tree.read(row["path"]).raw)
        found = sorted(_lacks(row, front, ids, core.settings.timezone))
    except NotebookError as error:
        found = [(1, "file", str(error), "correct the file; until then its last good text counts")]
    common = {"path": row["path"], "provenance": row["provenance"] or ""}
    return [Finding(line=line, field=field, what=what[:200], fix=fix, **common) for line, field, what, fix in found]


def _lacks(row: Row, front: Frontmatter, ids: Collection[str], zone: tzinfo) -> Iterator[tuple[int, str, str, str]]:
    """Line, field, what is wrong, and what to do."""
    known, _, problems = read_fields(front, FOLDER, zone)
    said = {key.casefold(): front.line_of(key) for key, value in front.values.items() if value is not None}
    for problem in (*front.problems, *problems):
        yield problem.line, problem.message.partition(":")[0].casefold(), problem.message, "correct that line"
    if "created_at" not in said:
        yield 1, "created_at", _NO_TIME, "write an ISO 8601 date or time; `memory fix` takes that of the first commit"
    if (row["fields"] or {}).get("agent") in (None, "", UNKNOWN):
        advice = "write agent: NAME, or a tag agent:NAME"
        yield said.get("agent", 1), "agent", "nobody is known to have said it", advice
    if not row["kind"] and "kind" not in said:
        yield 1, "kind", "it is of no kind", f"write kind: {', '.join(KINDS)}"
    if parts := [name for name in _lacking(row) if name != "kind"]:
        yield 1, "parts", f"it has no {' and no '.join(parts)}", "write each below a heading, like ## Context"
    if row["needs_review"]:
        yield said.get("needs_review", 1), "needs_review", "it is marked for review", "check it, then remove the mark"
    for link in known.get("relations") or ():
        if link["to"] not in ids:
            what = f"it {link['type']} {link['to']!r}, which is no memory"
            yield said["relations"], "relations", what, "name the id of a memory, or remove the link"


def _lacking(row: Row) -> list[str]:
    missing = (row["fields"] or {}).get("missing") or ()
    return [*([] if row["kind"] else ["kind"]), *(name for name in NEEDED if name in missing)]


def _spread(values: Sequence[float]) -> dict[str, float | None]:
    return {
        "mean": round(fmean(values), 4) if values else None,
        "sigma": round(pstdev(values), 4) if values else None,
    }


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def _halved(span: timedelta, half_life_days: float) -> float:
    """1 now, 1/2 after a half-life."""
    return float(2.0 ** (-max(span / _DAY, 0.0) / half_life_days))


# ---- repairs


def fix_memories(core: Core, session: Session, *, dry_run: bool) -> Repaired:
    """Write what is proved into the memories, a thousand in a batch; nothing is made up. Raises as an edit does."""
    rows, ids = _memories(core, session)
    first, warnings, repairs = dict[str, datetime](), list[str](), list[Repair]()
    try:
        first = core.history.created_at([row["path"] for row in rows])
    except GitFailed as error:
        warnings.append(f"git could not be asked: {error}")
    for start in range(0, len(rows), _BATCH):
        done, trouble = _repair(core, session, rows[start : start + _BATCH], first, dry_run=dry_run)
        repairs += done
        warnings += trouble
    changed = {(each.path, each.field) for each in repairs}
    left = [each for row in rows for each in _findings(core, row, ids) if (each.path, each.field) not in changed]
    return Repaired(
        repairs=repairs[:_MOST_LISTED],
        applied=bool(repairs) and not dry_run,
        left=left[:_MOST_LISTED],
        left_out=len(repairs[_MOST_LISTED:]) + len(left[_MOST_LISTED:]),
        warnings=warnings,
    )


def _repair(
    core: Core, session: Session, rows: Sequence[Row], first: Mapping[str, datetime], *, dry_run: bool
) -> tuple[list[Repair], list[str]]:
    """Repair some memories in one batch; what was written, and what could not be."""
    repairs: list[Repair] = []
    trouble: list[str] = []

    def plan() -> list[Change]:
        repairs.clear()
        trouble.clear()
        changes = []
        for row in rows:
            path, provenance, zone = row["path"], row["provenance"] or "", core.settings.timezone
            try:
                before = core.tree.read(path).raw
                proved = list(_proved(row, _front_of(before), zone, first.get(path)))
                if not proved:
                    continue
                fields = {field: after for field, _, after, _ in proved}
                after = apply_edits(path, before, [Edit("set_frontmatter", fields=fields)])
            except NotebookError as error:
                trouble.append(str(error))
                continue
            for field, was, now, because in proved:
                said = {"field": field, "before": typed(was, zone), "after": typed(now, zone), "because": because}
                repairs.append(Repair(path=path, **said, provenance=provenance))
            changes.append(Change(path, before, after, "repair", reason=", ".join(fields)))
        return changes

    saved = change_notes(core, session, "memory fix", plan, dry_run=dry_run)
    return repairs, [*trouble, *saved.warnings]


def _proved(row: Row, front: Frontmatter, zone: tzinfo, first: datetime | None) -> Iterator[tuple[str, Any, Any, str]]:
    """A field, what the memory says there, what is proved, and how."""
    tags = (row["fields"] or {}).get("tags") or row["tags"]
    key = front.key_of("created_at") or "created_at"
    said = front.values.get(key)
    if not front.problems and read_fields(front, FOLDER, zone)[0].get("created_at") is None:
        is_imported = any(front.key_of(name) for name in _IMPORTED)
        if said is not None and (own := odd_moment(said, zone)):
            yield key, said, own, "that is what it says, in another form"
        elif first is not None and not is_imported and (said is None or not front.key_of(_BEFORE)):
            yield key, said, first, "it is the time of its first commit"
            if said is not None:
                yield _BEFORE, None, said, f"nothing else says what {key} said"
    if (row["fields"] or {}).get("agent") in (None, "", UNKNOWN) and (name := agent_of("", tags)):
        key = front.key_of("agent") or "agent"
        yield key, front.values.get(key), name, f"it is tagged agent:{name}"
    kinds = {found[1].casefold() for tag in tags if (found := _KIND_TAG.fullmatch(tag))}
    if not row["kind"] and len(kinds) == 1:
        key, kind = front.key_of("kind") or "kind", kinds.pop()
        yield key, front.values.get(key), kind, f"it is tagged {kind}"
