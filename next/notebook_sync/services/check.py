"""Problems in the files: a list of rules, each a generator of findings. Reads files alone and changes nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from notebook_sync.errors import NoSuchNote, UnreadableFile, UnsafePath
from notebook_sync.files.names import copy_of, folded, why_not
from notebook_sync.files.parse import parse
from notebook_sync.files.tree import Scan
from notebook_sync.files.usable import MERGE_CONFLICT, conflict_marks
from notebook_sync.model import SETTINGS_FILE, Link
from notebook_sync.permissions import guarded_key, guarded_names
from notebook_sync.services.assembling import files_of
from notebook_sync.services.check_prompt import problems_of_prompt
from notebook_sync.services.core import Core
from notebook_sync.services.lookup import Names, NoteName
from notebook_sync.services.prompts import Finding
from notebook_sync.services.trust import waiting_files

_BLOCK_ID = re.compile(r"(?<=[ \n])(\^[\w-]+)[ \t]*$", re.MULTILINE)
# What template programs put in place of a name.
_PLACEHOLDER = re.compile(r"\{\{|<%|\$\{")


class _Note(NamedTuple):
    """What of a note is compared with other notes; all texts together would fill the memory. `places` are the headings,
    anchors and block ids that links may name."""

    name: NoteName
    links: tuple[Link, ...]
    places: frozenset[str]


@dataclass(slots=True)
class _Files:
    """All files, read once, and what each says of itself that cannot be read as it is meant."""

    core: Core
    scan: Scan
    notes: dict[str, _Note] = field(default_factory=dict)
    found: list[Finding] = field(default_factory=list)


def find_problems(core: Core) -> list[Finding]:
    """Every finding, by path and line. Raises ConfigError where there are no good settings."""
    files_of(core)
    files = _Files(core, core.tree.scan())
    for path in files.scan.seen:
        _read(files, path)
    found = sorted({each for rule in FINDINGS for each in rule(files)})
    return [replace(each, place=f"{each.path}:{each.line}" if each.line else each.path) for each in found]


def _read(files: _Files, path: str) -> None:
    try:
        raw = files.core.tree.read(path).raw
    except NoSuchNote:  # it is gone meanwhile
        return
    except (UnreadableFile, UnsafePath) as error:
        files.found.append(Finding(path, 0, "error", error.reason))
        return
    note = parse(path, raw, timezone=files.core.settings.timezone)
    for problem in note.problems:
        if problem.message != MERGE_CONFLICT:  # each of them is named below
            files.found.append(Finding(path, problem.line, "error" if problem.severe else "warning", problem.message))
    files.found += [
        Finding(path, line, "error", MERGE_CONFLICT) for line in conflict_marks(raw.decode(errors="replace"))
    ]
    headings = (name for each in note.sections for name in (each.anchor, _plain(each.heading)))
    blocks = _BLOCK_ID.findall(note.content.casefold()) if "^" in note.content else ()
    name = NoteName(note.wanted_id, path, note.title, note.aliases)
    files.notes[path] = _Note(name, note.links, frozenset((*headings, *blocks)))


# ---- the rules


def doubtful_files(files: _Files) -> Iterator[Finding]:
    """Settings in error, files with a note's name that are none, folders that cannot be entered, faults of notes."""
    if files.core.settings_problem:
        yield Finding(SETTINGS_FILE, 0, "error", files.core.settings_problem)
    for path, reason in files.scan.refused.items():
        yield Finding(path, 0, "error", reason)
    yield from files.found


def shared_ids(files: _Files) -> Iterator[Finding]:
    """Two notes want one id. As in the index, the shortest path has it, then the first."""
    holders: dict[str, str] = {}
    for path, note in sorted(files.notes.items(), key=lambda item: (len(item[0]), item[0])):
        holder = holders.setdefault(note.name.id, path)
        if holder != path:
            message = f"the id `{note.name.id}` is also that of {holder}; give one of them another id"
            yield Finding(path, 0, "error", message)


def misleading_names(files: _Files) -> Iterator[Finding]:
    """Copies that sync clients, editors and git leave, and notes with the bare name of one of the owner's files."""
    guarded = guarded_names(files.core.settings.prompt)
    for path, note in files.notes.items():
        original = copy_of(path, tuple(guarded.values()))
        meant = next((guarded[key] for key in map(guarded_key, (path, note.name.id)) if key in guarded), path)
        if original in files.notes:
            yield Finding(path, 0, "warning", f"is a conflict copy; merge what it says into {original}, then delete it")
        elif original:
            yield Finding(path, 0, "warning", f"is a conflict copy of {original}, which is gone; rename it")
        elif meant != path and meant in files.notes:
            yield Finding(path, 0, "warning", f"has the name of {meant}, which is what the bare name means; rename it")


def unportable_names(files: _Files) -> Iterator[Finding]:
    """Names that other systems refuse or change, and names that they take for one."""
    known: dict[str, str] = {}
    for path in files.notes:
        if reason := why_not(path):
            yield Finding(path, 0, "warning", f"{reason}; rename it")
        other = known.setdefault(folded(path), path)
        if other != path:
            message = f"differs from {other} only in a way that some systems ignore; rename one of them"
            yield Finding(path, 0, "warning", message)


def broken_links(files: _Files) -> Iterator[Finding]:
    """Links to notes, headings and blocks that do not exist."""
    guarded = guarded_names(files.core.settings.prompt)
    names = Names((note.name for note in files.notes.values()), files.scan.attachments, guarded)
    for path, note in files.notes.items():
        for link in note.links:
            if reason := _why_broken(files, names, path, link):
                yield Finding(path, link.line, "warning", f"broken link to `{_written(link)}`: {reason}")


def waiting_lines(files: _Files) -> Iterator[Finding]:
    """Lines that wait for trust."""
    for waiting in waiting_files(files.core):
        for line, text in waiting.added() or [(0, "the removal of lines")]:
            message = f"`{text.strip()}` waits for trust; run: notebook-sync trust {waiting.path}"
            yield Finding(waiting.path, line, "warning", message)


FINDINGS: tuple[Callable[[_Files], Iterator[Finding]], ...] = (
    doubtful_files,
    shared_ids,
    misleading_names,
    unportable_names,
    broken_links,
    lambda files: problems_of_prompt(files.core, files.scan),
    waiting_lines,
)


def _why_broken(files: _Files, names: Names, path: str, link: Link) -> str:
    """What a link names that does not exist; "" for nothing."""
    if _PLACEHOLDER.search(_written(link)):
        return ""
    targets = names.find(link.target, path)
    if not targets:  # a file or folder may be no part of the notebook, such as one that git ignores
        folder = os.path.dirname(path)  # noqa: PTH120 - text, which may hold what no path has
        places = (os.path.normpath(f"{files.core.root}/{each}/{link.target}") for each in (folder, ""))
        is_there = "\0" not in link.target and any(map(os.path.lexists, places))
        return "" if is_there else "there is no note or file of this name"
    notes = [files.notes[each] for each in targets if each in files.notes]
    wanted = link.fragment.rpartition("#")[2].strip()  # a heading below another one is named by both
    kind, plain = ("block", wanted.casefold()) if wanted.startswith("^") else ("heading", _plain(wanted))
    if not notes or not wanted or any(wanted in note.places or plain in note.places for note in notes):
        return ""
    return f"{notes[0].name.path} has no such {kind}"


def _plain(heading: str) -> str:
    """A heading as links name it: without the marks that a link cannot have."""
    return " ".join(re.sub(r"[#^|\[\]:\\]", " ", heading.casefold()).split())


def _written(link: Link) -> str:
    return f"{link.target}#{link.fragment}" if link.fragment else link.target
