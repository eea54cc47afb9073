"""The backend of Anthropic's memory tool: `/memories` is the notebook, for one session.

Answers and errors are worded as that tool publishes them. What a session may do is decided where every other tool
asks; a path is judged as it is meant, however it is spelled.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

from notebook_sync.errors import Conflict, NoSuchNote, NotebookError
from notebook_sync.files.edits import Edit, apply_edits
from notebook_sync.files.frontmatter import is_external, read_frontmatter
from notebook_sync.model import COLLECTIONS
from notebook_sync.notebook import Notebook
from notebook_sync.permissions import Verb
from notebook_sync.registry import Operation
from notebook_sync.services.documents import require_change, rewrite
from notebook_sync.services.results import fenced
from notebook_sync.services.view import View
from notebook_sync.services.writing import Change, save, why_not_free, writing
from notebook_sync.sessions import Session
from prompt import PromptError

ROOT = "/memories"
MOST_LINES = 999_999
LONGEST_VIEW = 16_000  # characters: the tool tells its model that a longer view is cut here
_TOOL = "memory"
_NOT_LISTED = "node_modules"
_DEPTH = 2
_MOST_PLACES = 20
_AROUND = 2
_ENCODED = re.compile(r"%(2e|2f|5c)", re.IGNORECASE)
_NO_FILE = "The path {} does not exist. Please provide a valid path."
_NO_PATH = "Error: The path {} does not exist"
_EDITED = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"


_Method = TypeVar("_Method", bound=Callable[..., Any])


class MemoryToolError(Exception):
    """A command that was not done; the message is for the model."""


def _worded(missing: str) -> Callable[[_Method], _Method]:
    """Errors of the notebook in the tool's words: `missing` where there is no such note."""

    def decorate(method: Any) -> Any:
        @functools.wraps(method)
        def run(*args: Any, **given: Any) -> Any:
            path = args[1] if len(args) > 1 else given.get("path", given.get("old_path"))
            try:
                return method(*args, **given)
            except NoSuchNote:
                raise MemoryToolError(missing.format(path)) from None
            except (NotebookError, PromptError, UnicodeError) as error:
                raise MemoryToolError(f"Error: {error}") from error

        return run

    return decorate


class MemoryTool:
    """The six commands as methods, which raise MemoryToolError, and as `call`, which answers in any case."""

    def __init__(self, notebook: Notebook, session: Session) -> None:
        self._core = notebook.core
        self._session = session

    def call(self, command: Mapping[str, Any]) -> str:
        """Do a command, as the API sends it in `input`, and say what came of it."""
        return str(self.tool_result("", command)["content"])

    def tool_result(self, tool_use_id: str, command: Mapping[str, Any]) -> dict[str, Any]:
        """The `tool_result` block that answers the `tool_use` block with this id."""
        block = {"type": "tool_result", "tool_use_id": tool_use_id}
        try:
            return {**block, "content": self._done(str(command.get("command")), command)}
        except MemoryToolError as error:
            return {**block, "content": str(error), "is_error": True}

    @_worded("")
    def _done(self, name: str, command: Mapping[str, Any]) -> str:
        if name not in _COMMANDS:
            raise MemoryToolError(f"Error: Invalid command; use one of {', '.join(_COMMANDS)}")
        operation = _COMMANDS[name]
        # Arguments of later versions of the tool are no error.
        known = command.keys() & {*operation.arguments.__struct_fields__}
        return str(operation.run(self, **operation.checked({each: command[each] for each in known})))

    @_worded(_NO_FILE)
    def view(self, path: str, view_range: list[int] | None = None) -> str:
        """A folder, two levels deep, or the lines of a note: all, or from the first to the last, -1 for its end."""
        place = self._place(path)
        sizes = self._sizes(place)
        if place not in sizes and (sizes or place in ("", *COLLECTIONS)):
            return _listing(path.rstrip("/"), place, sizes)
        view = self._allowed(place, "read")
        if place not in sizes:
            raise NoSuchNote(place)
        raw = self._core.tree.read(place).raw
        lines = _lines_of(_without_ends(view.shown(place, raw.decode(errors="replace")))[0])
        if len(lines) > MOST_LINES:
            raise MemoryToolError(f"File {path} exceeds maximum line limit of 999,999 lines.")
        shown = _numbered(lines, *_bounds_in(view_range, len(lines)))
        return f"Here's the content of {path} with line numbers:\n{fenced(shown) if is_external(raw) else shown}"

    @_worded(_NO_FILE)
    def create(self, path: str, file_text: str) -> str:
        """A new note. One that exists is left as it is."""
        place, taken = self._place(path), f"Error: File {path} already exists"
        raw, view = file_text.encode(), self._allowed(place, "add")
        if self._session.kind != "owner":
            made_by = {"created_by": self._session.changed_by}
            raw = apply_edits(place, raw, [Edit("set_frontmatter", fields=made_by)])
        with writing(self._core, _TOOL):
            self._require_free(view, place, taken)
            try:
                save(self._core, [Change(place, None, raw, "create", is_new=True)], self._session)
            except Conflict:
                raise MemoryToolError(taken) from None
        return f"File created successfully at: {path}"

    @_worded(_NO_FILE)
    def str_replace(self, path: str, old_str: str, new_str: str = "") -> str:
        """The one place where a note says `old_str` says `new_str` instead."""
        place, spans = self._place(path), []

        def change(text: str) -> str:
            at = _the_one_place(text, old_str, path)
            spans.append((at, at + len(new_str)))
            return text[:at] + new_str + text[at + len(old_str) :]

        raw = self._rewrite(place, "str_replace", change)
        text = _without_ends(raw.decode())[0]
        first, last = (text.count("\n", 0, at) + 1 for at in spans[-1])
        lines = _lines_of(text)
        snippet = _numbered(lines, max(first - _AROUND, 1), min(last + _AROUND, len(lines)))
        return f"{_EDITED}\n{fenced(snippet) if is_external(raw) else snippet}"

    @_worded(_NO_PATH)
    def insert(self, path: str, insert_line: int, insert_text: str) -> str:
        """New lines below line `insert_line`; 0 is above the first of the text, below the frontmatter."""
        place = self._place(path)

        def change(text: str) -> str:
            lines = _lines_of(text)
            if not 0 <= insert_line <= len(lines):
                raise MemoryToolError(
                    f"Error: Invalid `insert_line` parameter: {insert_line}. "
                    f"It should be within the range of lines of the file: [0, {len(lines)}]"
                )
            # Above its frontmatter, a text would be all that the note says.
            line = insert_line or len(_lines_of(text[: read_frontmatter(text).body_start]))
            changed = [*lines[:line], insert_text.removesuffix("\n"), *lines[line:]]
            return "\n".join(changed) + ("\n" if text.endswith("\n") or not text else "")

        self._rewrite(place, "insert", change)
        return f"The file {path} has been edited."

    @_worded(_NO_PATH)
    def delete(self, path: str) -> str:
        """A note, or all notes of a folder."""
        place = self._place(path)
        if not place:
            raise MemoryToolError(f"Error: Cannot delete the {ROOT} directory itself")
        view = self._allowed(place, "write")
        with writing(self._core, _TOOL):
            texts = self._texts_to_change(view, place)
            save(self._core, [Change(each, raw, None, "delete") for each, raw in texts.items()], self._session)
        return f"Successfully deleted {path}"

    @_worded(_NO_PATH)
    def rename(self, old_path: str, new_path: str) -> str:
        """A note, or a folder with its notes, gets another path. What is there already is never replaced."""
        old, new = self._place(old_path), self._place(new_path)
        if not old:
            raise MemoryToolError(f"Error: Cannot rename the {ROOT} directory itself")
        view, changes = self._allowed(old, "write"), []
        with writing(self._core, _TOOL):
            for each, raw in self._texts_to_change(view, old).items():
                target = new + each.removeprefix(old)
                view.require("add", target, _TOOL)
                self._require_free(view, target, f"Error: The destination {new_path} already exists", each)
                changes.append(Change(target, raw, raw, "rename", moved_from=each))
            save(self._core, changes, self._session)
        return f"Successfully renamed {old_path} to {new_path}"

    def _place(self, path: str) -> str:
        """The path in the notebook; "" for its root."""
        plain = _ENCODED.sub(lambda match: chr(int(match[1], 16)), path)
        if plain != ROOT and not plain.startswith(f"{ROOT}/"):
            raise MemoryToolError(f"Error: Path must start with {ROOT}, got: {path}")
        parts = [part for part in plain[len(ROOT) :].split("/") if part not in ("", ".")]
        return self._core.tree.place("/".join(parts)) if parts else ""

    def _sizes(self, place: str) -> dict[str, int]:
        """The notes at or below a place that the session may read, each with the size of what it is shown."""
        view, sizes = View(self._core, self._session), {}
        for path, stamp in self._core.tree.scan([place] if place else None).seen.items():
            if _NOT_LISTED in path.split("/") or not view.may("read", path):
                continue
            sizes[path] = stamp.size
            if view.sees_in_part(path):
                text = self._core.tree.read(path).raw.decode(errors="replace")
                sizes[path] = len(view.shown(path, text).encode())
        return sizes

    def _allowed(self, place: str, verb: Verb) -> View:
        """The session's view, if it may do this to the place at all, whether or not anything is there."""
        view = View(self._core, self._session)
        view.require(verb, place, _TOOL)
        if verb != "read" and self._session.kind == "external":
            raise view.refuse(place, _TOOL, "This conversation may not change the notebook")
        return view

    def _texts_to_change(self, view: View, place: str) -> dict[str, bytes]:
        paths = sorted(self._sizes(place))
        if not paths:
            raise NoSuchNote(place)
        for each in paths:
            require_change(self._core, view, each, _TOOL)
        return {each: self._core.tree.read(each).raw for each in paths}

    def _require_free(self, view: View, place: str, taken: str, besides: str = "") -> None:
        if reason := why_not_free(self._core, view, place, besides):
            is_taken = reason == "already exists" or (self._core.root / place).exists()
            raise MemoryToolError(taken if is_taken else f"Error: {place}: {reason}")

    def _rewrite(self, place: str, action: str, change: Callable[[str], str]) -> bytes:
        """The note after a change of its text as the tool shows it. Refused before the note is looked at: an answer
        about its words would say what they are."""
        view = self._allowed(place, "write")
        if place not in self._sizes(place):
            raise NoSuchNote(place)
        require_change(self._core, view, place, _TOOL)

        def change_raw(raw: bytes) -> bytes:
            text, mark, end = _without_ends(raw.decode())
            changed = change(text)
            return (mark + (changed if end == "\n" else re.sub(r"\r?\n", end, changed))).encode()

        return rewrite(self._core, self._session, place, change_raw, action=action)[1]


_COMMANDS = {
    name: Operation(run=getattr(MemoryTool, name), tool=f"memory_{name}")
    for name in ("view", "create", "str_replace", "insert", "delete", "rename")
}


def _without_ends(text: str) -> tuple[str, str, str]:
    """A text as a model is shown it, its lines ending in \\n; its byte order mark, and the end that its lines have.

    Where only some lines end in \\r\\n, the text stays as it is: an edit changes no other line.
    """
    mark = text[: text.startswith("\ufeff")]
    end = "\r\n" if "\r\n" in text and text.count("\r\n") == text.count("\n") else "\n"
    return text[len(mark) :].replace(end, "\n"), mark, end


def _lines_of(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _listing(path: str, place: str, sizes: Mapping[str, int]) -> str:
    """The notes of the folder at `place`, called `path`, two levels deep; a folder has the size of its notes."""
    prefix = f"{place}/" if place else ""
    totals: Counter[str] = Counter()
    for note, size in sizes.items():
        parts = note.removeprefix(prefix).split("/")
        for depth in range(1, min(len(parts), _DEPTH) + 1):
            totals["/".join(parts[:depth]) + ("/" if depth < len(parts) else "")] += size
    names = sorted(totals, key=lambda name: name.split("/"))
    rows = [f"{_size(sum(sizes.values()))}\t{path}", *(f"{_size(totals[name])}\t{path}/{name}" for name in names)]
    header = f"Here're the files and directories up to {_DEPTH} levels deep in {path}"
    return "\n".join((f"{header}, excluding hidden items and {_NOT_LISTED}:", *rows))


def _size(count: float) -> str:
    units = list("MKB")
    while count >= 1024 and len(units) > 1:
        count /= 1024
        units.pop()
    return f"{count:.1f}".removesuffix(".0") + units[-1]


def _bounds_in(view_range: Sequence[int] | None, count: int) -> tuple[int, int]:
    """The first and the last line to show of `count`."""
    if view_range is None:
        return 1, count
    if len(view_range) == 2:
        first, last = max(view_range[0], 1), count if view_range[1] == -1 else min(view_range[1], count)
        if first <= max(last, 1):
            return first, last
    raise MemoryToolError(
        f"Error: Invalid `view_range` parameter: {list(view_range)}. "
        f"It should be within the range of lines of the file: [1, {count}]"
    )


def _numbered(lines: Sequence[str], first: int, last: int) -> str:
    """Lines with their numbers, as many of them as one view may have."""
    rows: list[str] = []
    room = LONGEST_VIEW
    for number in range(first, last + 1):
        row = f"{number:6}\t{lines[number - 1]}".removesuffix("\r")
        room -= len(row) + 1
        if room < 0 and rows:
            return "\n".join([*rows, f"[… truncated: view the rest with view_range [{number}, {last}]]"])
        rows.append(row if room >= 0 else f"{row[:LONGEST_VIEW]}…")
    return "\n".join(rows)


def _the_one_place(text: str, old: str, path: str) -> int:
    """Where `old` is in the text of the note at `path`. Raises MemoryToolError where it is not there exactly once."""
    found = re.finditer(f"(?={re.escape(old)})", text) if old else ()
    places = [each.start() for each in islice(found, _MOST_PLACES + 1)]
    if not places:
        raise MemoryToolError(f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}.")
    if len(places) > 1:
        numbers = [str(text.count("\n", 0, place) + 1) for place in places[:_MOST_PLACES]]
        more = ", …" if len(places) > _MOST_PLACES else ""
        raise MemoryToolError(
            f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: "
            f"{', '.join(numbers)}{more}. Please ensure it is unique"
        )
    return places[0]
