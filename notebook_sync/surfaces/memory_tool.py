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

from notebook_sync.errors import NoSuchNote, NotebookError, UsageError
from notebook_sync.files.edits import Edit, apply_edits
from notebook_sync.files.frontmatter import is_external, read_frontmatter
from notebook_sync.model import COLLECTIONS
from notebook_sync.notebook import Notebook
from notebook_sync.permissions import Verb
from notebook_sync.registry import Operation
from notebook_sync.services.documents import require_change, rewrite
from notebook_sync.services.results import fenced
from notebook_sync.services.view import View
from notebook_sync.services.writing import Change, change_notes, why_not_free
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
_COMMANDS: dict[str, Operation] = {}
_Method = TypeVar("_Method", bound=Callable[..., Any])


class MemoryToolError(Exception):
    """A command that was not done; the message is for the model."""


def _command(missing: str) -> Callable[[_Method], _Method]:
    """A command, with errors of the notebook in the tool's words: `missing` where there is no such note."""

    def declare(method: Any) -> Any:
        @functools.wraps(method)
        def run(*args: Any, **given: Any) -> Any:
            path = args[1] if len(args) > 1 else given.get("path", given.get("old_path"))
            try:
                return method(*args, **given)
            except NoSuchNote:
                raise MemoryToolError(missing.format(path)) from None
            except (NotebookError, PromptError, UnicodeError) as error:
                raise MemoryToolError(f"Error: {error}") from error

        _COMMANDS[method.__name__] = Operation(run=run, tool=f"memory_{method.__name__}")
        return run

    return declare


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
        operation = _COMMANDS.get(str(command.get("command")))
        if operation is None:
            return {**block, "content": f"Error: Invalid command; use one of {', '.join(_COMMANDS)}", "is_error": True}
        # Arguments of later versions of the tool are no error.
        known = {name: value for name, value in command.items() if name in operation.arguments.__struct_fields__}
        try:
            return {**block, "content": operation.run(self, **operation.checked(known))}
        except (MemoryToolError, UsageError) as error:
            said = f"Error: {error}" if isinstance(error, UsageError) else str(error)
            return {**block, "content": said, "is_error": True}

    @_command(_NO_FILE)
    def view(self, path: str, view_range: list[int] | None = None) -> str:
        """A folder, two levels deep, or the lines of a note: all, or from the first to the last, -1 for its end."""
        place = self._place(path)
        sizes = self._sizes(place)
        if place not in sizes and (sizes or place in ("", *COLLECTIONS)):
            return _listing(path.rstrip("/"), place, sizes)
        view = self._allowed(place, "read")
        if place not in sizes:
            raise NoSuchNote(place)
        raw, text = self._shown(view, place)
        lines = _lines_of(text)
        if len(lines) > MOST_LINES:
            raise MemoryToolError(f"File {path} exceeds maximum line limit of 999,999 lines.")
        shown = _numbered(lines, *_bounds_in(view_range, len(lines)))
        return f"Here's the content of {path} with line numbers:\n{fenced(shown) if is_external(raw) else shown}"

    @_command(_NO_FILE)
    def create(self, path: str, file_text: str) -> str:
        """A new note. One that exists is left as it is."""
        place, raw = self._place(path), file_text.encode()
        view = self._allowed(place, "add")
        if self._session.kind != "owner":
            made_by = {"created_by": self._session.changed_by}
            raw = apply_edits(place, raw, [Edit("set_frontmatter", fields=made_by)])

        def plan() -> list[Change]:
            self._require_free(view, place, f"Error: File {path} already exists")
            return [Change(place, None, raw, "create", is_new=True)]

        change_notes(self._core, self._session, _TOOL, plan)
        return f"File created successfully at: {path}"

    @_command(_NO_FILE)
    def str_replace(self, path: str, old_str: str, new_str: str = "") -> str:
        """The one place where a note says `old_str` says `new_str` instead."""
        place, spans = self._place(path), []

        def change(text: str) -> str:
            start, end = _the_one_place(text, old_str, path)
            new = _with_ends_of(text, new_str)
            spans.append((start, start + len(new)))
            return text[:start] + new + text[end:]

        raw = self._rewrite(place, "str_replace", change)
        text = raw.decode()
        first, last = (text.count("\n", 0, at) + 1 for at in spans[-1])
        lines = _lines_of(text)
        snippet = _numbered(lines, max(first - _AROUND, 1), min(last + _AROUND, len(lines)))
        return f"{_EDITED}\n{fenced(snippet) if is_external(raw) else snippet}"

    @_command(_NO_PATH)
    def insert(self, path: str, insert_line: int, insert_text: str) -> str:
        """New lines below line `insert_line`; 0 is above the first of the text, below the frontmatter."""
        place = self._place(path)

        def change(text: str) -> str:
            # Above its frontmatter, a text would be all that the note says.
            ends = [read_frontmatter(text).body_start, *(each.end() for each in re.finditer("\n", text))]
            ends += [] if text.endswith("\n") or not text else [len(text)]
            if not 0 <= insert_line < len(ends):
                raise MemoryToolError(
                    f"Error: Invalid `insert_line` parameter: {insert_line}. "
                    f"It should be within the range of lines of the file: [0, {len(ends) - 1}]"
                )
            before, after, new = text[: ends[insert_line]], text[ends[insert_line] :], insert_text.removesuffix("\n")
            is_below = before.endswith("\n") or not before.strip("\ufeff")
            return before + _with_ends_of(text, f"{new}\n" if is_below else f"\n{new}") + after

        self._rewrite(place, "insert", change)
        return f"The file {path} has been edited."

    @_command(_NO_PATH)
    def delete(self, path: str) -> str:
        """A note, or all notes of a folder."""
        place = self._place(path)
        if not place:
            raise MemoryToolError(f"Error: Cannot delete the {ROOT} directory itself")
        view = self._allowed(place, "write")

        def plan() -> list[Change]:
            return [Change(each, raw, None, "delete") for each, raw in self._texts_to_change(view, place)]

        change_notes(self._core, self._session, _TOOL, plan)
        return f"Successfully deleted {path}"

    @_command(_NO_PATH)
    def rename(self, old_path: str, new_path: str) -> str:
        """A note, or a folder with its notes, gets another path. What is there already is never replaced."""
        old, new = self._place(old_path), self._place(new_path)
        if not old:
            raise MemoryToolError(f"Error: Cannot rename the {ROOT} directory itself")
        view = self._allowed(old, "write")

        def plan() -> list[Change]:
            texts = [(new + each.removeprefix(old), each, raw) for each, raw in self._texts_to_change(view, old)]
            for target, each, _ in texts:
                self._require_free(view, target, f"Error: The destination {new_path} already exists", each)
            return [Change(target, raw, raw, "rename", moved_from=each) for target, each, raw in texts]

        change_notes(self._core, self._session, _TOOL, plan)
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
        view, found = View(self._core, self._session), self._core.tree.scan([place] if place else None).seen
        seen = [path for path in found if _NOT_LISTED not in path.split("/") and view.may("read", path)]
        in_part = {path: len(self._shown(view, path)[1].encode()) for path in seen if view.sees_in_part(path)}
        return {path: found[path].size for path in seen} | in_part

    def _shown(self, view: View, place: str) -> tuple[bytes, str]:
        """A note, and what the session sees of it."""
        raw = self._core.tree.read(place).raw
        return raw, view.shown(place, raw.decode(errors="replace"))

    def _allowed(self, place: str, verb: Verb) -> View:
        """The session's view, if it may do this to the place at all, whether or not anything is there."""
        view = View(self._core, self._session)
        view.require(verb, place, _TOOL)
        if verb != "read" and self._session.kind == "external":
            raise view.refuse(place, _TOOL, "This conversation may not change the notebook")
        return view

    def _texts_to_change(self, view: View, place: str) -> list[tuple[str, bytes]]:
        paths = sorted(self._sizes(place))
        if not paths:
            raise NoSuchNote(place)
        for each in paths:
            require_change(self._core, view, each, _TOOL)
        return [(each, self._core.tree.read(each).raw) for each in paths]

    def _require_free(self, view: View, place: str, taken: str, besides: str = "") -> None:
        view.require("add", place, _TOOL)
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
            return change(raw.decode()).encode()

        return rewrite(self._core, self._session, place, change_raw, action=action)[1]


def _with_ends_of(text: str, added: str) -> str:
    """What a model adds, or names, with the line ends of a note, which it is not shown.

    Where only some lines end in \\r\\n, the others are the rule: an edit changes no other line.
    """
    end = "\r\n" if "\r\n" in text and text.count("\r\n") == text.count("\n") else "\n"
    return re.sub(r"\r?\n", end, added)


def _lines_of(text: str) -> list[str]:
    return text.removeprefix("\ufeff").removesuffix("\n").split("\n") if text else []


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


def _the_one_place(text: str, old: str, path: str) -> tuple[int, int]:
    """Where `old` is in the text of the note at `path`. Raises MemoryToolError where it is not there exactly once."""
    wanted = _with_ends_of(text, old)
    found = re.finditer(f"(?={re.escape(wanted)})", text) if old else ()
    starts = [each.start() for each in islice(found, _MOST_PLACES + 1)]
    if not starts:
        raise MemoryToolError(f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}.")
    if len(starts) > 1:
        numbers = [str(text.count("\n", 0, start) + 1) for start in starts[:_MOST_PLACES]]
        more = ", …" if len(starts) > _MOST_PLACES else ""
        raise MemoryToolError(
            f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: "
            f"{', '.join(numbers)}{more}. Please ensure it is unique"
        )
    return starts[0], starts[0] + len(wanted)
