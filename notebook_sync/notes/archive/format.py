"""What an archive of a notebook holds, and what none may hold. Pure: it reads and writes nothing.

manifest.json      what follows, in this order, each with its size and digest
files/PATH         each file of the notebook
mirror.jsonl       of each note what its file does not say: version, history, since when there is it
stream.jsonl       the daily stream, one entry a line, with its day
longterm.jsonl     long-term memory, one entry a line
checkpoints.jsonl  one checkpoint a line
facts.jsonl        of each fact what its file does not say: usage, importance, history, since when there is it
use.jsonl          of each memory how it was used, and its score
history.bundle     what git knows, where the notebook is the top of a repository that has a commit
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from notebook_sync.files.bundle import History
from notebook_sync.files.names import folded
from notebook_sync.folder import FOLDER
from notebook_sync.permissions import plain_parts

FORMAT = 1
MANIFEST = "manifest.json"
FILES = "files/"
MIRROR, STREAM, LONGTERM, CHECKPOINTS = "mirror.jsonl", "stream.jsonl", "longterm.jsonl", "checkpoints.jsonl"
FACTS, USE = "facts.jsonl", "use.jsonl"
BUNDLE = "history.bundle"
BESIDE = (MIRROR, STREAM, LONGTERM, CHECKPOINTS, FACTS, USE, BUNDLE)
# The first archives had no others.
_NEEDED = (MIRROR, STREAM, LONGTERM, CHECKPOINTS)

MOST_MEMBERS = 200_000
LARGEST_MANIFEST = 64 << 20
LARGEST_FILE = 1 << 30
LARGEST_BESIDE = 16 << 30
LARGEST_IN_ALL = 64 << 30
_LONGEST_NAME = 255
_LONGEST_PATH = 4000
_DIGEST = re.compile(r"[0-9a-f]{64}")
# What git and this program keep for themselves, whatever a file system takes for the same name.
_OWN = frozenset({FOLDER, ".git"})


@dataclass(frozen=True, slots=True)
class Member:
    """One member: its name in the archive, its size in bytes, the SHA-256 of its bytes."""

    name: str
    size: int
    sha256: str

    @property
    def path(self) -> str:
        """The path in the notebook, "" for what is no file of it."""
        return self.name[len(FILES) :] if self.name.startswith(FILES) else ""


@dataclass(frozen=True, slots=True)
class Counts:
    """How much there is. `bytes` are those of the files."""

    notes: int
    files: int
    bytes: int
    entries: int
    longterm: int
    checkpoints: int
    commits: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """The first member. `git` is what was checked out, None where there was no repository; `lost` is when hot memory
    was found emptied, None for never."""

    program: str
    counts: Counts
    members: tuple[Member, ...] = field(repr=False)
    git: History | None = None
    lost: datetime | None = None

    def as_json(self) -> bytes:
        """The manifest as it is written: the same for the same values."""
        whole = {
            "format": FORMAT,
            "program": self.program,
            "counts": asdict(self.counts),
            "git": self.git.as_dict() if self.git else None,
            "lost": self.lost.isoformat() if self.lost else None,
            "members": [asdict(member) for member in self.members],
        }
        return json.dumps(whole, ensure_ascii=False, indent=1).encode() + b"\n"


def manifest_from(raw: bytes) -> Manifest:
    """The manifest that was written so. Raises ValueError with the reason where it was not."""
    try:
        told = json.loads(raw)
    except (ValueError, RecursionError):
        raise ValueError("its manifest is not JSON") from None
    if not isinstance(told, dict) or type(told.get("format")) is not int:
        raise ValueError("its manifest names no format")
    if told["format"] > FORMAT:
        raise ValueError(f"it is in format {told['format']}; this notebook-sync knows {FORMAT}: install a later one")
    try:
        if reason := _reason_against_so_many(len(told["members"])):
            raise ValueError(reason)
        members = tuple(_member(each) for each in told["members"])
        git = History(**told["git"]) if told["git"] is not None else None
        lost = _aware(told["lost"]) if told["lost"] is not None else None
        manifest = Manifest(str(told["program"]), _counts(told["counts"]), members, git, lost)
    except (TypeError, KeyError, AttributeError):
        raise ValueError("its manifest lacks something, or has something else in its place") from None
    if reason := reason_against(members):
        raise ValueError(reason)
    if any(member.name == BUNDLE for member in members) != bool(git and git.commits):
        raise ValueError(f"it has {BUNDLE} and tells of no commits, or the other way about")
    return manifest


def reason_against(members: Sequence[Member]) -> str:
    """Why there can be no archive of these members; "" where there can."""
    if reason := _reason_against_so_many(len(members)):
        return reason
    if sum(member.size for member in members) > LARGEST_IN_ALL:
        return f"it is larger than {LARGEST_IN_ALL:,} bytes in all"
    for member in members:
        if reason := reason_against_name(member.name):
            return f"{member.name!r} {reason}"
        if member.size > (LARGEST_FILE if member.path else LARGEST_BESIDE):
            return f"{member.name!r} is too large, with {member.size:,} bytes"
    names = Counter(member.name for member in members)
    if twice := [name for name, count in names.items() if count > 1]:
        return f"{twice[0]!r} is in it twice"
    if missing := [name for name in _NEEDED if name not in names]:
        return f"{missing[0]} is missing"
    if twins := twins_among(name for name in names if name.startswith(FILES)):
        return "{!r} and {!r} are one name to some systems".format(*twins)
    return ""


def reason_against_name(name: str) -> str:
    """Why no member can have this name; "" where one can."""
    if name in BESIDE:
        return ""
    if name.startswith("/") or ".." in name.split("/"):
        return "leads out of the notebook"
    if not name.startswith(FILES):
        return "is nothing that an archive of a notebook holds"
    parts = name[len(FILES) :].split("/")
    if "\0" in name or any(part in {"", "."} for part in parts):
        return "is no path in a notebook"
    try:
        raw = [part.encode() for part in parts]
    except UnicodeEncodeError:
        return "is not UTF-8"
    if any(len(part) > _LONGEST_NAME for part in raw) or sum(map(len, raw)) + len(raw) > _LONGEST_PATH:
        return "is too long"
    if not _OWN.isdisjoint(part for one in parts for part in plain_parts(one) or ()):
        return "belongs to git or to this program, and is never in an archive"
    return ""


def twins_among(paths: Iterable[str]) -> tuple[str, str] | None:
    """Two of the paths, or folders on their way, that a system which does not tell cases apart takes for one."""
    known: dict[str, str] = {}
    for path in paths:
        place = ""
        for part in path.split("/"):
            place = f"{place}/{part}" if place else part
            if known.setdefault(folded(place), place) != place:
                return known[folded(place)], place
    return None


def _reason_against_so_many(members: int) -> str:
    return f"it has {members:,} members, more than {MOST_MEMBERS:,}" if members > MOST_MEMBERS else ""


def _member(told: Mapping[str, Any]) -> Member:
    member = Member(told["name"], told["size"], told["sha256"])
    if not isinstance(member.name, str) or type(member.size) is not int or member.size < 0:
        raise ValueError("its manifest has a member without a name or a size")
    if not isinstance(member.sha256, str) or not _DIGEST.fullmatch(member.sha256):
        raise ValueError(f"its manifest has no digest of {member.name!r}")
    return member


def _counts(told: Mapping[str, Any]) -> Counts:
    counts = Counts(**told)
    if any(type(count) is not int or count < 0 for count in asdict(counts).values()):
        raise ValueError("its manifest does not count")
    return counts


def _aware(text: str) -> datetime:
    when = datetime.fromisoformat(text)
    if when.tzinfo is None:
        raise ValueError("its manifest has a time without a zone")
    return when
