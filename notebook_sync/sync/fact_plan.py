"""What happened to facts between what is known of their files and what these say now. Pure.

A text is the same fact wherever it stands. One that was reworded is another text, and is told by being nearly the old
one, in the same section of the same file, while the old one stands nowhere any more, and did a short while ago.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time

from notebook_sync.files.fact_comment import HINTS
from notebook_sync.files.facts import ARCHIVE, CORE, Bullet, order_of
from notebook_sync.mirror.facts import START, Action, Change, Fact, Place
from notebook_sync.sync.fact_wording import Worded, reworded


@dataclass(frozen=True, slots=True)
class Planned:
    """The places in each file that was read, by path, and the changes of facts that follow from them."""

    places: Mapping[str, tuple[Place, ...]]
    changes: tuple[Change, ...]


def touched(known: Iterable[Place], read: Mapping[str, Sequence[Bullet]], doubted: Collection[str]) -> set[str]:
    """The facts whose rows may have to change, by id: those that do not stand where they stood, but for the line; and
    all that stand in files whose rows are in doubt."""
    before = {_standing(place) for place in known if place.path in read}
    after = {_standing(place) for path, bullets in read.items() for place in _places(path, bullets)}
    in_doubt = {note_id for note_id, path, *_ in before | after if path in doubted}
    return in_doubt | {note_id for note_id, *_ in before ^ after}


def plan(
    known: Iterable[Place],
    read: Mapping[str, Sequence[Bullet]],
    among: Collection[str],
    rows: Mapping[str, Fact],
    now: datetime,
    lately: Iterable[Fact] = (),
) -> Planned:
    """What changed. `known` are all places; `read` is what the files that differ say now, nothing where one is gone;
    `among` are the facts that were `touched`, and `rows` those there are of them. `lately` are rows of facts that went
    before, a short while ago: a wording that was cut and saved, then pasted and reworded, goes on with the one it had.

    known           read                            change
    nowhere         somewhere, without a row        added, or reworded from one that is gone
    nowhere         somewhere, with a row           returned
    anywhere        nowhere                         gone, unless it was reworded
    in archive.md   elsewhere                       restored
    elsewhere       in archive.md                   archived
    elsewhere       in core.md                      promoted
    in core.md      elsewhere                       demoted
    at a place      in another file or section      moved
    at a place      there, with another pin         pinned, unpinned
    """
    places = {path: _places(path, bullets) for path, bullets in read.items()}
    said = {bullet.note_id: bullet for bullets in read.values() for bullet in bullets}
    concerned = [place for place in known if place.note_id in among]
    others = [place for place in concerned if place.path not in read]
    now_there = [place for of_path in places.values() for place in of_path if place.note_id in among]
    before, after = _counting(concerned), _counting([*others, *now_there])

    gone = [before[note_id] for note_id in before.keys() - after.keys() if note_id in rows]
    fresh = [after[note_id] for note_id in after.keys() - before.keys() - rows.keys()]
    new_ones = [Worded(place, said[place.note_id].content) for place in fresh]
    was = reworded([Worded(place, rows[place.note_id].content) for place in gone], new_ones)
    went = [Worded(_last_place(fact), fact.content) for fact in lately if fact.note_id not in among]
    was |= reworded(went, [one for one in new_ones if one.place.note_id not in was])
    ended = set(was.values())
    changes = []
    for note_id in among:
        old, new = before.get(note_id), after.get(note_id)
        if new is None:
            if note_id in rows and note_id not in ended:
                changes.append(Change("gone", note_id, rows[note_id].content, before[note_id], now))
        elif note_id in was:
            changes.append(Change("reworded", note_id, said[note_id].content, new, now, was[note_id]))
        elif action := "added" if note_id not in rows else "returned" if old is None else _moved(old, new):
            content = rows[note_id].content if note_id in rows else said[note_id].content
            made = _made(said.get(note_id), now)
            changes.append(Change(action, note_id, content, new, now, "", _start(new), made))
    return Planned(places, tuple(sorted(changes, key=lambda change: _order(change.place))))


def _places(path: str, bullets: Sequence[Bullet]) -> tuple[Place, ...]:
    """Each fact once: where it is said first."""
    places: dict[str, Place] = {}
    for bullet in bullets:
        places.setdefault(bullet.note_id, Place(bullet.note_id, path, bullet.section, bullet.line, bullet.importance))
    return tuple(places.values())


def _last_place(fact: Fact) -> Place:
    return Place(fact.note_id, fact.path, fact.section, fact.line)


def _standing(place: Place) -> tuple[str, str, str, float | None]:
    return place.note_id, place.path, place.section, place.pin


def _counting(places: Iterable[Place]) -> dict[str, Place]:
    """By fact, the place that counts."""
    found: dict[str, Place] = {}
    for place in sorted(places, key=_order):
        found.setdefault(place.note_id, place)
    return found


def _order(place: Place) -> tuple[tuple[int, str], int, str]:
    return order_of(place.path), place.line, place.note_id


def _moved(old: Place, new: Place) -> Action | None:
    """What a fact that stood and stands did; None where only its line is another."""
    if (old.path == ARCHIVE) != (new.path == ARCHIVE):
        return "archived" if new.path == ARCHIVE else "restored"
    if (old.path == CORE) != (new.path == CORE):
        return "promoted" if new.path == CORE else "demoted"
    if (old.path, old.section) != (new.path, new.section):
        return "moved"
    if old.pin != new.pin:
        return "unpinned" if new.pin is None else "pinned"
    return None


def _start(place: Place) -> float:
    return HINTS["core"] if place.path == CORE else START


def _made(bullet: Bullet | None, now: datetime) -> datetime:
    """When a fact that is new here was made, as far as anything tells: now, or before it was archived."""
    if bullet is None or bullet.archived is None:
        return now
    return min(now, datetime.combine(bullet.archived.at, time(), UTC))
