"""One runtime file for its page, how full its share of the prompt is, and the answer once it was changed.

Every change is an edit like any other, and can be taken back while nobody has changed the file again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from importlib import resources
from typing import Any, Final
from urllib.parse import urlencode

from fastapi.responses import RedirectResponse

from notebook_sync.errors import Conflict, EditFailed, NoSuchNote, OverCap, UsageError
from notebook_sync.files.edits import Edit
from notebook_sync.notebook import Notebook
from notebook_sync.notes.editing.door import digest_of
from notebook_sync.notes.runtime import reminders, rules
from notebook_sync.sessions import OWNER, Session
from notebook_sync.surfaces.dashboard.runtime.prompt_view import Shown, shown_of
from notebook_sync.surfaces.dashboard.runtime.runtime_entries import sections_of
from notebook_sync.surfaces.dashboard.runtime.runtime_lines import Line, edits_for
from notebook_sync.surfaces.dashboard.runtime.runtime_words import DONE, new_line, said_of
from prompt import Part, PromptError, count_tokens


@dataclass(frozen=True, slots=True)
class RuntimeFile:
    """`key` names it in forms, `address` is where its page is."""

    key: str
    path: str
    address: str
    name: str


FILES: Final[Mapping[str, RuntimeFile]] = {
    file.key: file
    for file in (
        RuntimeFile("rules", rules.PATH, "/rules", "Who may be answered"),
        RuntimeFile("orders", "runtime/standing-orders.md", "/rules/orders", "Standing orders"),
        RuntimeFile("reminders", reminders.PATH, "/reminders", "Reminders"),
    )
}
# What can be mended in the form that a person filled in.
MENDABLE = (UsageError, OverCap, Conflict)


@dataclass(frozen=True, slots=True)
class Did:
    """What the address of a page says was done, and to the entry on which line of the file with which digest."""

    done: str = ""
    digest: str = ""
    line: int = 0
    today: date = date.min


@dataclass(frozen=True, slots=True)
class Opened:
    """A runtime file as it is. `use` is None where the prompt cannot be told; `unseen` are the lines of which the cap
    takes all or some. `is_external`: somebody else wrote it."""

    file: RuntimeFile
    text: str
    digest: str
    use: Shown | None
    unseen: frozenset[int]
    is_external: bool = False

    @property
    def is_missing(self) -> bool:
        """Whether there is no such file."""
        return not self.digest


def file_named(key: str) -> RuntimeFile:
    """The file that a form names. Raises UsageError."""
    if key not in FILES:
        raise UsageError(f"there is no runtime file {key!r}; use one of {', '.join(FILES)}")
    return FILES[key]


def opened(notebook: Notebook, asking: Session, file: RuntimeFile) -> Opened:
    """The file now. Raises UnreadableFile, UnsafePath."""
    try:
        note = notebook.file(file.path, asking)
    except NoSuchNote:
        return Opened(file, "", "", None, frozenset())
    part = _part_of(notebook, file)
    if part is None:
        return Opened(file, note.text, note.digest, None, frozenset(), note.external)
    count = partial(count_tokens, encoding=notebook.settings.prompt.encoding)
    unseen = _unseen(note.text, part) if part.digest == note.digest else frozenset[int]()
    return Opened(file, note.text, note.digest, shown_of(part, None, count), unseen, note.external)


def values_of(found: Opened, did: Did | None = None) -> dict[str, Any]:
    """What every page of a runtime file shows: which it is, its use, what was done, and whether it can be undone."""
    did = did or Did()
    is_last = did.digest == found.digest
    return {
        "here": "rules",
        "files": FILES.values(),
        "file": found.file,
        "found": found,
        "done": said_of(found.file.key, did.done, found.text, did.line if is_last else 0, did.today),
        "undo": found.digest if did.done in DONE and did.done != "same" and is_last else "",
    }


def added(
    notebook: Notebook, asking: Session, file: RuntimeFile, line: Line, *, allow_over_cap: bool
) -> RedirectResponse:
    """Add an entry; a file that is not there is made from its template. Raises as `Notebook.edit`."""
    found = opened(notebook, asking, file)
    text = found.text
    begin: list[Edit] = []
    if found.is_missing:
        text = resources.files("runtime_templates").joinpath(file.path.rpartition("/")[2]).read_text(encoding="utf-8")
        begin = [Edit("write", content=text)]
    edits = [*begin, *edits_for(line, text)]
    expected = "" if found.is_missing else None
    return changed(notebook, asking, file, edits, "added", expected=expected, allow_over_cap=allow_over_cap)


def changed(
    notebook: Notebook,
    asking: Session,
    file: RuntimeFile,
    edits: Sequence[Edit],
    done: str,
    *,
    expected: str | None = None,
    allow_over_cap: bool = False,
) -> RedirectResponse:
    """Edit the file, and lead to its page. Raises as `Notebook.edit`."""
    before = _text_of(notebook, asking, file)
    made = notebook.edit(file.path, edits, asking, expected_digest=expected, allow_over_cap=allow_over_cap)
    line = new_line(before, _text_of(notebook, asking, file)) if made.changed else 0
    return led_to(file, done if made.changed else "same", made.digest, line)


def written(
    notebook: Notebook,
    asking: Session,
    found: Opened,
    text: str,
    done: str,
    *,
    then: Sequence[Edit] = (),
    allow_over_cap: bool = False,
) -> RedirectResponse:
    """Give the file that was opened another text, and `then` edit that. Raises as
    `changed`, and EditFailed for one that is not UTF-8: its
    other bytes could not stay."""
    if digest_of(found.text.encode()) != found.digest:
        raise EditFailed(found.file.path, "it is not UTF-8; mend that first, in an editor")
    edits = [Edit("write", content=text, reason="an entry, in the dashboard"), *then]
    return changed(notebook, asking, found.file, edits, done, expected=found.digest, allow_over_cap=allow_over_cap)


def led_to(file: RuntimeFile, done: str, digest: str, line: int = 0) -> RedirectResponse:
    """The file's page, which says what was done, and to the entry on which line."""
    return RedirectResponse(f"{file.address}?{urlencode({'done': done, 'digest': digest, 'line': line})}", 303)


def section_names(found: Opened) -> list[tuple[str, str]]:
    """The anchors and titles of the sections that entries can go to."""
    return [(section.anchor, section.title) for section in sections_of(found.text) if section.level]


def _text_of(notebook: Notebook, asking: Session, file: RuntimeFile) -> str:
    try:
        return notebook.file(file.path, asking).text
    except NoSuchNote:
        return ""


def _part_of(notebook: Notebook, file: RuntimeFile) -> Part | None:
    try:
        parts = notebook.prompt(OWNER).parts
    except PromptError:
        return None
    return next((part for part in parts if part.path == file.path), None)


def _unseen(text: str, part: Part) -> frozenset[int]:
    lines: set[int] = set()
    for gap in part.gaps:
        if gap.reason == "cap":
            first = text.count("\n", 0, gap.start) + 1
            lines.update(range(first, first + text[gap.start : gap.end].rstrip().count("\n") + 1))
    return frozenset(lines)
