"""What a person may want to mend in the files: a list of rules over all notes. Reads files alone, changes nothing."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from notebook_sync.errors import UnreadableFile
from notebook_sync.files.note import Note, Stamp
from notebook_sync.files.parse import parse
from notebook_sync.files.vault import Vault
from notebook_sync.notes.check_prompt import check_prompt
from notebook_sync.notes.conflict_marks import conflict_marks
from notebook_sync.notes.finding import Finding
from notebook_sync.notes.links import Names, folded, line_of
from notebook_sync.notes.runtime.grammar import check_runtime, checked_as_runtime
from notebook_sync.permissions import plain_parts
from notebook_sync.settings import PromptSettings


class Checks:
    """The same list again and again: what a file says by itself is kept while the file is as it was. For any number of
    threads."""

    def __init__(self, vault: Vault, settings: PromptSettings) -> None:
        self._vault = vault
        self._settings = settings
        self._lock = threading.Lock()
        self._said: dict[str, _Said] = {}
        self._names: Names | None = None
        self._between: list[Finding] = []

    def findings(self, now: datetime) -> list[Finding]:
        """Every finding, by path and line. `now` is local to the notebook and decides what is expired."""
        with self._lock:
            scan = self._vault.scan()
            said = {path: each for path, stamp in scan.seen.items() if (each := self._of(path, stamp))}
            if said != self._said or self._names is None:
                notes = [each.named for each in said.values() if each.named]
                self._said, self._names = said, Names(notes, lambda path: os.path.lexists(self._vault.root / path))
                self._between = [*_twins(said), *_contended_ids(notes), *_shadowing(notes, self._vault)]
            findings = [Finding(path, 0, "error", why) for path, why in scan.refused.items()]
            findings += self._between
            for each in said.values():
                findings += each.findings
            findings += self._of_the_prompts_files(now)
            findings += check_prompt(self._vault, scan, self._settings, now)
            findings += self._broken_links(self._names)
        return sorted(findings)

    def _of(self, path: str, stamp: Stamp) -> _Said | None:
        """What a file says; None where it is gone meanwhile."""
        known = self._said.get(path)
        if known and known.stamp == stamp:
            return known
        try:
            reading = self._vault.read_closely(path)
        except FileNotFoundError:
            return None
        except UnreadableFile as error:
            return _Said(None, None, (Finding(path, error.line, "error", error.reason),))
        note = parse(path, reading.raw, encoding=self._settings.encoding)
        named = _Named(path, note.title, note.wants, note.links)
        findings = (*_problems(note), *_unusable(path, reading.raw))
        return _Said(None if reading.racy else reading.stamp, named, findings)

    def _of_the_prompts_files(self, now: datetime) -> Iterator[Finding]:
        for path in sorted(checked_as_runtime(self._settings) & self._said.keys()):
            text = _text(self._vault, path)
            yield from check_runtime(path, text, now)

    def _broken_links(self, names: Names) -> Iterator[Finding]:
        for path, said in self._said.items():
            for link in said.named.links if said.named else ():
                if reason := names.leads_nowhere(link, path):
                    if link not in said.lines:
                        said.lines[link] = line_of(link, _text(self._vault, path))
                    yield Finding(path, said.lines[link], "warning", f"broken link to `{link}`: {reason}")


@dataclass(frozen=True, slots=True)
class _Named:
    """What of a note is compared with other notes; its text would fill the memory with the whole notebook."""

    path: str
    title: str
    wants: str
    links: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Said:
    """What a file says by itself, with the `stamp` that vouches for it, if one does. `lines` are those on which links
    stand, once they were looked for."""

    stamp: Stamp | None
    named: _Named | None
    findings: tuple[Finding, ...]
    lines: dict[str, int] = field(default_factory=dict, compare=False)


def _problems(note: Note) -> Iterator[Finding]:
    for problem in note.problems:
        yield Finding(note.path, problem.line, "error" if problem.severe else "warning", problem.message)


def _unusable(path: str, raw: bytes) -> Iterator[Finding]:
    """What the parser has no problem with, and keeps a file out of the prompt."""
    if b"\0" in raw:
        message = "a NUL byte, as in binary files and UTF-16; save it as UTF-8 text"
        yield Finding(path, raw.count(b"\n", 0, raw.index(0)) + 1, "error", message)
    message = "a mark of a merge conflict: keep of the two sides what is right, and delete the marks"
    for line in conflict_marks(raw.decode(errors="replace")):
        yield Finding(path, line, "error", message)


def _contended_ids(notes: Iterable[_Named]) -> Iterator[Finding]:
    """As the sync engine decides where nothing is known yet: the shortest path has the id, then the first."""
    holders: dict[str, str] = {}
    for note in sorted(notes, key=lambda note: (len(note.path), note.path)):
        holder = holders.setdefault(note.wants, note.path)
        if holder != note.path:
            message = f"id `{note.wants}` is also wanted by {holder}; give one of them another id"
            yield Finding(note.path, 0, "error", message)


def _shadowing(notes: Iterable[_Named], vault: Vault) -> Iterator[Finding]:
    """Notes with the bare name of a file that exists in `runtime/`, as their path or their id."""
    existing = {bare: path for bare, path in vault.runtime_names().items() if os.path.lexists(vault.root / path)}
    for note in notes:
        names = ("/".join(plain_parts(name) or ()) for name in (note.path, f"{note.wants}.md"))
        runtime = next((existing[name] for name in names if name in existing), note.path)
        if runtime != note.path:
            message = f"has the name of {runtime}: commands that use the name reach that file, never this one"
            yield Finding(note.path, 0, "warning", f"{message}; rename it in its folder, or change its id")


def _twins(paths: Iterable[str]) -> Iterator[Finding]:
    """Names in one folder that are one name on systems without case, or with another Unicode form."""
    first: dict[tuple[str, str], str] = {}
    told: set[str] = set()
    for path in sorted(paths):
        parts = path.split("/")
        for depth, name in enumerate(parts, start=1):
            place = "/".join(parts[:depth])
            twin = first.setdefault(("/".join(parts[: depth - 1]), folded(name)), place)
            if twin != place and place not in told:
                told.add(place)
                yield Finding(place, 0, "warning", f"macOS and Windows take this for {twin}; rename one of them")


def _text(vault: Vault, path: str) -> str:
    """The whole file, whose lines people count."""
    try:
        return vault.read(path)[0].decode(errors="replace")
    except (FileNotFoundError, UnreadableFile):
        return ""
