"""Which notes a commit surely gave another path. Likeness proves nothing: many notes are made after one template, and
whoever takes one note for another's past gives away what that other said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from notebook_sync.errors import GitFailed
from notebook_sync.files.git import blobs_of
from notebook_sync.files.ignore import is_note_name
from notebook_sync.files.parse import wanted_id
from notebook_sync.permissions import channel_of

# Of a commit that took more notes away, those are looked into whose name is the same.
_MOST_READ = 300
_EMPTY = {
    "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
    "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
}

# Object ids by path.
Blobs = Mapping[str, str]
Read = Callable[[Iterable[str]], Mapping[str, bytes]]


def moves(gone: Blobs, new: Blobs, told: str, read: Read) -> dict[str, str]:
    """By its new path, the old one of each note that a commit moved. `gone` is what it took away, `new` what it added.

    One is the other where the commit's trailers, `told`, say that a tool moved it; where their bytes are the same, and
    nobody else's; or where both have the same id of their own. `read` gives bytes by object id, as far as it has them.
    """
    if not gone or not new:
        return {}
    found = {path: old for path, old in _named(told).items() if path in new and old in gone}
    found |= _alike(_without(gone, found.values()), _without(new, found))
    return found | _of_one_id(_without(gone, found.values()), _without(new, found), read)


def opens(old: str, new: str) -> bool:
    """Whether a note that went from one path to the other left a channel: what it said there is its readers' alone."""
    return channel_of(old) not in {None, channel_of(new)}


def paths_told_by(message: str) -> list[str]:
    """The notes that a tool's commit names."""
    return [line.removeprefix("Path: ") for line in message.splitlines() if line.startswith("Path: ")]


def edit_of(path: str) -> str:
    """What is told of a commit that names, besides this note, some that are not everybody's."""
    return f"Edit {path}"


def own_id(raw: bytes) -> str:
    """The id that a note's frontmatter gives it, "" for none."""
    return wanted_id("", raw)


def blobs(root: Path, ids: Iterable[str]) -> dict[str, bytes]:
    """The bytes of those objects that git has, by id. Nothing where it cannot be asked."""
    try:
        return blobs_of(root, ids)
    except (FileNotFoundError, GitFailed):
        return {}


def _named(told: str) -> dict[str, str]:
    """From `Path: NEW`, `Action: rename`, `Reason: from OLD`, as tools sign what they moved and nothing else."""
    fields = [line.partition(": ")[::2] for line in told.splitlines()]
    if {value for name, value in fields if name == "Action"} != {"rename"}:
        return {}
    named, path = {}, ""
    for name, value in fields:
        if name == "Path":
            path = value
        elif name == "Reason" and value.startswith("from "):
            named[path] = value.removeprefix("from ")
    return named


def _without(blobs: Blobs, taken: Iterable[str]) -> dict[str, str]:
    known = set(taken)
    return {path: oid for path, oid in blobs.items() if path not in known}


def _alike(gone: Blobs, new: Blobs) -> dict[str, str]:
    olds, news = Counter(gone.values()), Counter(new.values())
    places = {oid: path for path, oid in gone.items() if olds[oid] == 1 and oid not in _EMPTY}
    return {path: places[oid] for path, oid in new.items() if news[oid] == 1 and oid in places}


def _of_one_id(gone: Blobs, new: Blobs, read: Read) -> dict[str, str]:
    gone, new = _worth_reading(gone, new), _worth_reading(new, gone)
    if not gone or not new:
        return {}
    held = read(dict.fromkeys((*new.values(), *gone.values())))
    ids = {oid: own_id(raw) for oid, raw in held.items()}
    olds, news = _by_id(gone, ids), _by_id(new, ids)
    return {paths[0]: olds[own][0] for own, paths in news.items() if len(paths) == len(olds.get(own, ())) == 1}


def _worth_reading(these: Blobs, others: Blobs) -> dict[str, str]:
    notes = {path: oid for path, oid in these.items() if is_note_name(path.rpartition("/")[2])}
    if len(notes) <= _MOST_READ:
        return notes
    names = {path.rpartition("/")[2] for path in others}
    like = [path for path in notes if path.rpartition("/")[2] in names]
    return {path: notes[path] for path in like[:_MOST_READ]}


def _by_id(blobs: Blobs, ids: Mapping[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path, oid in blobs.items():
        if ids.get(oid):
            found.setdefault(ids[oid], []).append(path)
    return found
