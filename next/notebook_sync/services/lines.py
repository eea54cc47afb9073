"""Lines of the stream and of long-term memory: logging, showing a day, and recall.

What other programs wrote in Redis is read when somebody asks, for a moment only, and never stored. A line that names a
note is shown to those who may read the note now; of a file that is shown in part, without what it said.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from notebook_sync.dates import moment
from notebook_sync.errors import NotebookError, UsageError
from notebook_sync.permissions import is_private, may_in_stream
from notebook_sync.registry import Results
from notebook_sync.search.ranking import decay, diversified, shares_of
from notebook_sync.services.core import Core
from notebook_sync.services.stream import Day, Entry, NoteRef
from notebook_sync.services.view import View
from notebook_sync.sessions import KINDS, Session
from notebook_sync.store import others
from notebook_sync.store.collection import Collection as Rows
from notebook_sync.store.others import Heard
from notebook_sync.store.rows import EVERYTHING, Has, Is, Not, Row, Where, both, from_milliseconds, to_milliseconds
from notebook_sync.sync.apply import stream_entry

NOTEBOOK = "notebook"
# So long a read waits for the index to take the line that says so.
_PATIENCE = 0.1
_LONGEST, _MOST_TAGS = 8 << 10, 20
_TAG = re.compile(r"\w[\w.-]{0,49}")
# An agent names a source in plain words, none of which names who speaks.
_PLAIN = re.compile(r"[a-z0-9._-]+(?: [a-z0-9._-]+)*")
_SPEAKERS = frozenset({*KINDS, NOTEBOOK, "agent", "user", "human", "person", "system", "assistant"})
# Recall: what words and meaning count, how far an entry may be from the query, and the candidates: by words and the
# newest, of the stream, of long-term memory and of notes; of all, those that get vectors.
_WORDS, _MEANING, _FAR = 0.3, 0.7, 0.5
_HALF_LIFE = timedelta(days=30)
_SOURCE = 0.5
_BY_WORDS, _NEWEST, _NEWEST_OF_OTHERS, _EMBEDDED = 100, 500, 100, 700
_MOST_WORDS = 50
_LOGGED = both(Is("note", "=", ""), Is("source", "!=", NOTEBOOK))
_OF_NOTE = (
    *("id", "path", "title", "summary", "collection", "status", "version"),
    *("updated_at", "tags", "provenance", "audience", "digest"),
)
_NOTE_SCORE = 0.8


# ---- writing


def log_line(
    core: Core, session: Session, content: str, *, tags: Sequence[str], score: float, source: str, keep: bool
) -> Entry:
    """Log a line, or keep it in long-term memory. Raises UsageError for what no line can be."""
    size = len(content.encode(errors="replace"))
    if not content.strip():
        raise UsageError("there is nothing to log", next="say in a sentence what happened")
    if size > _LONGEST:
        raise UsageError(
            f"the text has {size:,} bytes, and a line at most {_LONGEST:,}", next="write a page, and log where it is"
        )
    if not 0 <= score <= 1:
        raise UsageError(f"score: {score!r} is not a number from 0 to 1")
    now = from_milliseconds(to_milliseconds(core.now()))  # as the index has it
    row: Row = {
        **dict.fromkeys(("action", "note", "path", "provenance"), ""),
        "id": uuid.uuid4().hex,
        "day": now.astimezone(core.settings.timezone).date().isoformat(),
        "at": now,
        "content": content,
        "source": _checked_source(source, session),
        "score": float(score),
        "agent": session.agent,
        "ref": None,
        "tags": _checked_tags(tags),
    }
    with core.index.write(durable=True):
        (core.index.longterm if keep else core.index.stream).put([row])
    if core.has_targets:
        core.publisher.publish_inline(1.0)
    return entry_of({**row, "kept": keep})


def note_opened(core: Core, session: Session, path: str) -> None:
    """Record, once a day for each version, that an agent opened a note that every session may read. No reader waits for
    that, and none fails by it."""
    if not session.agent or not may_in_stream(session, "add") or not is_announced(core, path):
        return
    with suppress(NotebookError):
        (note,) = core.index.documents.find(Is("path", "=", path), fields=_OF_NOTE, limit=1) or (None,)
        if note is None:
            return
        line = stream_entry(note, "opened", core.now(), core.settings.timezone, session.agent)
        once = "\n".join(map(str, ("opened", note["id"], note["version"], session.agent, line["day"])))
        line["id"] = sha256(once.encode()).hexdigest()[:16]
        if not core.index.stream.known([line["id"]]):
            with core.index.write(patience=_PATIENCE):
                core.index.stream.put([line])


def is_announced(core: Core, path: str) -> bool:
    """Whether the stream tells of the note at `path`: not of private notes, nor of what some session is denied."""
    everyone = (View(core, Session.task()), View(core, Session.external()))
    return not is_private(path) and all(view.may("read", path) for view in everyone)


def _checked_tags(tags: Sequence[str]) -> list[str]:
    for tag in tags:
        if not _TAG.fullmatch(tag):
            raise UsageError(f"{tag[:60]!r} is no tag", next="use a word of at most 50 letters, digits and _.-")
    if len(set(tags)) > _MOST_TAGS:
        raise UsageError(f"{len(set(tags))} tags are more than the {_MOST_TAGS} of a line")
    return list(dict.fromkeys(tags))


def _checked_source(source: str, session: Session) -> str:
    """Where a line is from; nobody signs with another's name, and `agent` says who logged it in any case."""
    source, advice = source.strip(), "say where it is from, as in: harbour radio"
    if source in ("", session.changed_by):
        return session.changed_by
    folded = source.casefold()
    is_reserved = folded in (NOTEBOOK, "owner") or folded.startswith("agent:")
    if is_reserved or not source.isprintable():
        raise UsageError(f"{source!r} cannot be a source", next=advice)
    if session.kind != "owner" and (not _PLAIN.fullmatch(source) or _SPEAKERS & set(re.split(r"[ ._-]+", source))):
        raise UsageError(f"{source!r} cannot be a source: plain words that name no speaker can", next=advice)
    return source


# ---- showing


def hear(core: Core, days: Sequence[str], **options: Any) -> Heard:
    """What other programs wrote in Redis; see `store.others.hear`."""
    return others.hear(core.publisher, core.index, core.place.notebook_id, days, **options)


def show_day(core: Core, session: Session, day: str, limit: int) -> Day:
    """The last entries of a day of the notebook's timezone. Raises UsageError for what is no day."""
    now, zone = core.now(), core.settings.timezone
    try:
        asked = (moment(day, zone, now) if day else now).astimezone(zone).date().isoformat()
    except OverflowError:
        raise UsageError(f"{day!r} is not a date", next="write a day like 2026-02-18") from None
    heard = hear(core, [asked])
    ours = [row for row in core.index.stream.find(Is("day", "=", asked)) if row["id"] not in heard.cut]
    rows = shown(View(core, session), sorted([*ours, *heard.rows(now, zone)], key=_time_of))
    earlier = max(0, len(rows) - limit)
    return Day(day=asked, results=[*map(entry_of, rows[earlier:])], earlier=earlier, degraded=heard.trouble or None)


def shown(view: View, rows: Sequence[Row]) -> list[Row]:
    """The rows that the session may see, each as it may see it. A line of another program that names a note which this
    notebook never had is shown."""
    documents, ids = view.core.index.documents, sorted({row["note"] for row in rows if row["note"]})
    is_named = Is("id", "in", ids)
    whole = dict(documents.tuples(("id", "provenance"), both(view.whole, is_named)))
    if view.session.kind == "owner":
        return [{**row, "provenance": row["provenance"] or whole.get(row["note"])} for row in rows]
    in_part, known = dict(documents.tuples(("id", "path"), both(view.in_part, is_named))), documents.known(ids)
    found: list[Row] = []
    for row in rows:
        note = row["note"]
        if note in whole:
            found.append({**row, "provenance": row["provenance"] or whole[note]})
        elif note in in_part:
            path = in_part[note]
            ref = {**(row["ref"] or {}), "title": path, "summary": ""}
            found.append({**row, "content": f"[Notebook {row['action'].upper()}] {path}", "ref": ref, "path": path})
        elif (note and row.get("is_foreign") and note not in known) or (not note and row["source"] != NOTEBOOK):
            found.append(row)
    return found


def entry_of(row: Row) -> Entry:
    """A row as an entry."""
    ref = None
    if row["note"]:
        said = {name: str((row["ref"] or {}).get(name) or "") for name in NoteRef.__struct_fields__}
        ref = NoteRef(**{**said, "notebook_id": row["note"], "path": row["path"] or ""})
    texts = {name: row[name] or "" for name in ("id", "content", "source", "agent", "action", "provenance")}
    return Entry(
        **texts,
        tags=row["tags"],
        score=row["score"] or 0.0,
        timestamp=row["at"],
        ref=ref,
        kept=bool(row.get("kept")),
        relevance=row.get("relevance"),
    )


def _time_of(row: Row) -> datetime:
    at: datetime = row["at"]
    return at


# ---- recall


def recall(core: Core, session: Session, query: str, *, tags: Sequence[str], since: str, limit: int) -> Results[Entry]:
    """The entries that fit a query best: logged lines, long-term memory, and notes by their titles."""
    now, zone, view = core.now(), core.settings.timezone, View(core, session)
    floor = moment(since, zone, now) if since else None
    terms = core.analyzer.query_terms(query)[:_MOST_WORDS]
    today = now.astimezone(zone).date()
    # Redis takes no word that is in nearly every text.
    words = [word for word in re.findall(r"[^\W_]+", query) if not set(terms).isdisjoint(core.analyzer.terms(word))]
    heard = hear(core, [str(today + timedelta(days=days)) for days in (-1, 0, 1)], words=words[:_MOST_WORDS])
    wanted = _folded(tags)
    rows = [
        row
        for row in shown(view, heard.rows(now, zone))
        if (floor is None or row["at"] >= floor) and (not wanted or wanted & _folded(row["tags"]))
    ]
    rows = _candidates(core, view, terms, floor, wanted) + rows
    unique = {row["note"] or row["id"]: row for row in reversed(rows) if row["id"] not in heard.cut}
    rows = sorted(unique.values(), key=_time_of, reverse=True)
    ranked, degraded = _ranked(core, query, terms, rows, now)
    found = [entry_of({**row, "relevance": round(score, 4)}) for row, score in ranked[:limit]]
    return Results(found, "; ".join(filter(None, (heard.trouble, degraded))) or None)


def _candidates(
    core: Core, view: View, terms: Sequence[str], floor: datetime | None, tags: Collection[str]
) -> list[Row]:
    """Rows by words, and the newest; every condition comes before a limit."""
    index, found = core.index, list[Row]()
    lately = Is("at", ">=", floor) if floor else EVERYTHING
    for rows, where, newest in (
        (index.stream, both(_LOGGED, lately), _NEWEST),
        (index.longterm, lately, _NEWEST_OF_OTHERS),
    ):
        picked = _picked(rows, _tagged(rows, where, tags), terms, "-at", newest)
        found += [{**row, "kept": rows is index.longterm} for row in picked]
    is_note = both(view.whole, Is("path", "!=", None), Not(Is("collection", "=", "channels")))
    notes = both(is_note, Is("updated_at", ">=", floor)) if floor else is_note
    notes = _tagged(index.documents, notes, tags)
    found += map(_entry_of_note, _picked(index.documents, notes, terms, "-updated_at", _NEWEST_OF_OTHERS, _OF_NOTE))
    return found


def _picked(
    rows: Rows, where: Where, terms: Sequence[str], order: str, newest: int, fields: Sequence[str] | None = None
) -> list[Row]:
    ids = [hit.id for hit in rows.search(terms, where, limit=_BY_WORDS, private=True)] if terms else []
    found = rows.find(both(where, Is("id", "in", ids)), fields=fields) if ids else []
    return [*found, *rows.find(where, order=(order,), limit=newest, fields=fields)]


def _tagged(rows: Rows, where: Where, tags: Collection[str]) -> Where:
    """With the condition that a row has one of the tags, however that is written."""
    if not tags:
        return where
    return both(
        where, Has("tags", tuple(tag for tag in rows.distinct("tags", where) if not _folded([tag]).isdisjoint(tags)))
    )


def _entry_of_note(note: Row) -> Row:
    """A note as recall shows it, and compares it: by its title and summary."""
    text = f"{note['title']}: {note['summary']}" if note["summary"] else note["title"]
    action = "created" if note["version"] == 1 else "updated"
    return {
        **{name: note[name] for name in ("id", "path", "tags", "provenance")},
        "note": note["id"],
        "at": note["updated_at"],
        "content": f"[Notebook {action.upper()}] {text}",
        "text": text,
        "source": NOTEBOOK,
        "score": _NOTE_SCORE,
        "agent": "",
        "action": "",
        "ref": note,
    }


def _ranked(
    core: Core, query: str, terms: Sequence[str], rows: Sequence[Row], now: datetime
) -> tuple[list[tuple[Row, float]], str]:
    """The rows that answer, best first, each with its relevance; and why meaning does not count. The newest come first
    of equal ones. Without words in the query, what matters most."""
    fresh = [decay(now - row["at"], _HALF_LIFE) for row in rows]
    if not terms:
        worth = {str(at): (row["score"] or 0.0) * fresh[at] for at, row in enumerate(rows)}
        return [(rows[int(key)], score) for key, score in sorted(worth.items(), key=_best_first)], ""
    texts = [row.get("text") or row["content"] for row in rows]
    said = [core.analyzer.terms(text) for text in texts]
    weights = [
        dict.fromkeys(() if row["note"] else core.analyzer.terms(row["source"]), _SOURCE) | dict.fromkeys(own, 1.0)
        for row, own in zip(rows, said, strict=True)
    ]
    shares = shares_of(terms, weights)
    vectors = core.searcher.vectors_of(query, texts[:_EMBEDDED]) if rows else ""
    cosines, between = _likeness(vectors, said)
    unrelated = core.searcher.meaning.embedder.unrelated if core.searcher.meaning else 0.0
    far = max([unrelated, *(_FAR * cosine for cosine in cosines.values())])
    worth = {}
    for at, share in enumerate(shares):
        cosine = cosines.get(at)
        if share or (cosine is not None and cosine > far):
            value = share if cosine is None else _WORDS * share + _MEANING * max(cosine, 0.0)
            worth[str(at)] = value * fresh[at]
    ranked = diversified(sorted(worth.items(), key=_best_first), between)
    return [(rows[int(key)], score) for key, score in ranked], vectors if isinstance(vectors, str) else ""


def _likeness(vectors: Any, said: Sequence[Collection[str]]) -> tuple[dict[int, float], Callable[[str, str], float]]:
    """The cosine of each text that has a vector to the query; and how much two texts say the same, by their vectors
    where both have one, else by the words that they share."""
    cosines: dict[int, float] = {}
    words = [frozenset(each) for each in said]
    if not isinstance(vectors, str):
        query, matrix = vectors
        known = matrix.any(axis=1)
        cosines = {at: float(cosine) for at, cosine in enumerate(matrix @ query) if known[at]}

    def between(one: str, other: str) -> float:
        a, b = int(one), int(other)
        if a in cosines and b in cosines:
            return max(0.0, float(vectors[1][a] @ vectors[1][b]))
        return len(words[a] & words[b]) / (len(words[a] | words[b]) or 1)

    return cosines, between


def _best_first(item: tuple[str, float]) -> tuple[float, int]:
    return -item[1], int(item[0])


def _folded(tags: Iterable[str]) -> set[str]:
    """Tags as recall compares them; a comma separates two."""
    return {tag.strip().casefold() for each in tags for tag in each.split(",") if tag.strip()}
