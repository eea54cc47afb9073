"""What a person may want to mend in the files: a list of rules over all notes. Reads files alone, changes nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date

from notebook_sync.config import PromptSettings
from notebook_sync.errors import UnreadableFile
from notebook_sync.files.note import Note
from notebook_sync.files.parse import parse
from notebook_sync.files.vault import Vault
from notebook_sync.notes.check_prompt import check_prompt
from notebook_sync.notes.finding import Finding
from notebook_sync.notes.links import Names, folded, line_of
from notebook_sync.notes.runtime import check_runtime


def check(vault: Vault, settings: PromptSettings, today: date) -> list[Finding]:
    """Every finding, by path and line. `today` is the notebook's day, which decides what is expired."""
    scan = vault.scan()
    findings = [Finding(path, 0, "error", why) for path, why in scan.refused.items()]
    findings += _twins(scan.seen)
    notes: list[_Named] = []
    for path in scan.seen:
        try:
            raw, _ = vault.read(path)
        except FileNotFoundError:
            continue  # gone meanwhile
        except UnreadableFile as error:
            findings.append(Finding(path, error.line, "error", error.reason))
            continue
        note = parse(path, raw, encoding=settings.encoding)
        notes.append(_Named(path, note.title, note.wants, note.links))
        findings += _problems(note)
        findings += check_runtime(path, raw.decode(errors="replace"), settings, today)
    findings += check_prompt(vault, scan, settings, today)
    findings += _contended_ids(notes)
    findings += _broken_links(vault, notes)
    return sorted(findings)


@dataclass(frozen=True, slots=True)
class _Named:
    """What of a note is compared with other notes; its text would fill the memory with the whole notebook."""

    path: str
    title: str
    wants: str
    links: tuple[str, ...]


def _problems(note: Note) -> Iterator[Finding]:
    for problem in note.problems:
        yield Finding(note.path, problem.line, "error" if problem.severe else "warning", problem.message)


def _contended_ids(notes: Iterable[_Named]) -> Iterator[Finding]:
    """As the sync engine decides where nothing is known yet: the shortest path has the id, then the first."""
    holders: dict[str, str] = {}
    for note in sorted(notes, key=lambda note: (len(note.path), note.path)):
        holder = holders.setdefault(note.wants, note.path)
        if holder != note.path:
            message = f"id `{note.wants}` is also wanted by {holder}; give one of them another id"
            yield Finding(note.path, 0, "error", message)


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


def _broken_links(vault: Vault, notes: list[_Named]) -> Iterator[Finding]:
    names = Names(notes, lambda path: os.path.lexists(vault.root / path))
    texts: dict[str, str] = {}
    for note in notes:
        for link in note.links:
            reason = names.leads_nowhere(link, note.path)
            if reason:
                text = texts.get(note.path) or texts.setdefault(note.path, _text(vault, note.path))
                yield Finding(note.path, line_of(link, text), "warning", f"broken link to `{link}`: {reason}")


def _text(vault: Vault, path: str) -> str:
    """The whole file, whose lines people count."""
    try:
        return vault.read(path)[0].decode(errors="replace")
    except (FileNotFoundError, UnreadableFile):
        return ""
