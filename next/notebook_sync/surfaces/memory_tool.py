"""The backend of Anthropic's memory tool: `/memories` is the notebook, for one session.

Answers and errors are worded as that tool publishes them. What a session may do is decided where every other tool
asks; a path is judged as it is meant, however it is spelled.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import msgspec

from notebook_sync.errors import Conflict, NoSuchNote, NotebookError
from notebook_sync.files.edits import Edit, apply_edits
from notebook_sync.files.frontmatter import is_external, read_frontmatter
from notebook_sync.model import COLLECTIONS
from notebook_sync.notebook import Notebook
from notebook_sync.permissions import Verb
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
_KILO = 1024
_ENCODED = re.compile(r"%(2e|2f|5c)", re.IGNORECASE)
_NO_FILE = "The path {} does not exist. Please provide a valid path."
_EDITED = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"
_Name = Literal["view", "create", "str_replace", "insert", "delete", "rename"]
_ARGUMENTS: Mapping[_Name, Sequence[Any]] = {
    "view": [("path", str), ("view_range", list[int] | None, None)],
    "create": [("path", str), ("file_text", str)],
    "str_replace": [("path", str), ("old_str", str), ("new_str", str, "")],
    "insert": [("path", str), ("insert_line", int), ("insert_text", str)],
    "delete": [("path", str)],
    "rename": [("old_path", str), ("new_path", str)],
}
# What the commands may be given in later versions of the tool is no error.
_COMMANDS = {name: msgspec.defstruct(name, fields) for name, fields in _ARGUMENTS.items()}


class MemoryToolError(Exception):
    """A command that was not done; the message is for the model."""


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
            name = msgspec.convert(command.get("command"), _Name)
            given = msgspec.structs.asdict(msgspec.convert(dict(command), _COMMANDS[name]))
            return {**block, "content": getattr(self, name)(**given)}
        except msgspec.ValidationError as error:
            return {**block, "content": f"Error: Invalid command: {error}", "is_error": True}
        except MemoryToolError as error:
            return {**block, "content": str(error), "is_error": True}

    def view(self, path: str, view_range: Sequence[int] | None = None) -> str:
        """A folder, two levels deep, or the lines of a note: all, or from the first to the last, -1 for its end."""
        place = self._place(path)
        with _worded(_NO_FILE.format(path)):
            sizes = self._sizes(place)
            if place not in sizes and (sizes or place in ("", *COLLECTIONS)):
                return _listing(path.rstrip("/"), place, sizes)
            view = self._allowed(place, "read")
            if place not in sizes:
                raise NoSuchNote(place)
            raw = self._core.tree.read(place).raw
            lines = _lines_of(view.shown(place, raw.decode(errors="replace")))
        if len(lines) > MOST_LINES:
            raise MemoryToolError(f"File {path} exceeds maximum line limit of 999,999 lines.")
        shown = _numbered(lines, *_bounds_in(view_range, len(lines)))
        return f"Here's the content of {path} with line numbers:\n{fenced(shown) if is_external(raw) else shown}"

    def create(self, path: str, file_text: str) -> str:
        """A new note. One that exists is left as it is."""
        place = self._place(path)
        raw, taken = _plain(file_text).encode(), f"Error: File {path} already exists"
        with self._changing(place, "add", _NO_FILE.format(path)) as view:
            self._require_free(view, place, taken)
            if self._session.kind != "owner":
                made_by = {"created_by": self._session.changed_by}
                raw = apply_edits(place, raw, [Edit("set_frontmatter", fields=made_by)])
            try:
                save(self._core, [Change(place, None, raw, "create", is_new=True)], self._session)
            except Conflict:
                raise MemoryToolError(taken) from None
        return f"File created successfully at: {path}"

    def str_replace(self, path: str, old_str: str, new_str: str = "") -> str:
        """The one place where a note says `old_str` says `new_str` instead."""
        place, spans = self._place(path), []

        def change(text: str) -> str:
            at, old, new = _the_one_place(text, _plain(old_str), _plain(new_str), path)
            spans.append((at, at + len(new)))
            return text[:at] + new + text[at + len(old) :]

        with _worded(_NO_FILE.format(path)):
            text = self._rewrite(place, "str_replace", change)
        first, last = (text.count("\n", 0, at) + 1 for at in spans[-1])
        lines = _lines_of(text)
        snippet = _numbered(lines, max(first - _AROUND, 1), min(last + _AROUND, len(lines)))
        return f"{_EDITED}\n{fenced(snippet) if is_external(text.encode()) else snippet}"

    def insert(self, path: str, insert_line: int, insert_text: str) -> str:
        """New lines below line `insert_line`; 0 is above the first of the text, below the frontmatter."""
        place = self._place(path)

        def change(text: str) -> str:
            count = len(_lines_of(text))
            if not 0 <= insert_line <= count:
                raise MemoryToolError(
                    f"Error: Invalid `insert_line` parameter: {insert_line}. "
                    f"It should be within the range of lines of the file: [0, {count}]"
                )
            # Above its frontmatter, a text would be all that the note says.
            line = insert_line or len(_lines_of(text[: read_frontmatter(text).body_start]))
            return _with_lines(text, line, _plain(insert_text))

        with _worded(f"Error: The path {path} does not exist"):
            self._rewrite(place, "insert", change)
        return f"The file {path} has been edited."

    def delete(self, path: str) -> str:
        """A note, or all notes of a folder."""
        place = self._place(path)
        if not place:
            raise MemoryToolError(f"Error: Cannot delete the {ROOT} directory itself")
        with self._changing(place, "write", f"Error: The path {path} does not exist") as view:
            texts = self._texts_to_change(view, place)
            save(self._core, [Change(each, raw, None, "delete") for each, raw in texts.items()], self._session)
        return f"Successfully deleted {path}"

    def rename(self, old_path: str, new_path: str) -> str:
        """A note, or a folder with its notes, gets another path. What is there already is never replaced."""
        old, new = self._place(old_path), self._place(new_path)
        if not old:
            raise MemoryToolError(f"Error: Cannot rename the {ROOT} directory itself")
        taken = f"Error: The destination {new_path} already exists"
        with self._changing(old, "write", f"Error: The path {old_path} does not exist") as view:
            changes = []
            for each, raw in self._texts_to_change(view, old).items():
                target = new + each.removeprefix(old)
                view.require("add", target, _TOOL)
                self._require_free(view, target, taken, each)
                changes.append(Change(target, raw, raw, "rename", moved_from=each))
            save(self._core, changes, self._session)
        return f"Successfully renamed {old_path} to {new_path}"

    def _place(self, path: str) -> str:
        """The path in the notebook; "" for its root."""
        plain = _ENCODED.sub(lambda match: chr(int(match[1], 16)), _plain(path))
        if plain != ROOT and not plain.startswith(f"{ROOT}/"):
            raise MemoryToolError(f"Error: Path must start with {ROOT}, got: {path}")
        parts = [part for part in plain[len(ROOT) :].split("/") if part not in ("", ".")]
        with _worded(_NO_FILE.format(path)):
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

    @contextmanager
    def _changing(self, place: str, verb: Verb, missing: str) -> Iterator[View]:
        """Hold the write lock, once it is known that the session may do this."""
        with _worded(missing):
            view = self._allowed(place, verb)
            with writing(self._core, _TOOL):
                yield view

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

    def _rewrite(self, place: str, action: str, change: Callable[[str], str]) -> str:
        """The new text. Refused before the note is looked at: an answer about its words would say what they are."""
        view = self._allowed(place, "write")
        if place not in self._sizes(place):
            raise NoSuchNote(place)
        require_change(self._core, view, place, _TOOL)

        def change_raw(raw: bytes) -> bytes:
            return change(raw.decode()).encode()

        return rewrite(self._core, self._session, place, change_raw, action=action)[1].decode()


def _plain(text: str) -> str:
    """Without lone surrogates, which no file can hold."""
    return text.encode(errors="replace").decode()


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
    while count >= _KILO and len(units) > 1:
        count /= _KILO
        units.pop()
    return f"{count:.1f}".removesuffix(".0") + units[-1]


def _lines_of(text: str) -> list[str]:
    """The lines as a model is shown them: without their ends, and without a byte order mark."""
    lines = text.removeprefix("\ufeff").removesuffix("\n").split("\n")
    return [line.removesuffix("\r") for line in lines] if text.removeprefix("\ufeff") else []


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
        row = f"{number:6}\t{lines[number - 1]}"
        room -= len(row) + 1
        if room < 0 and rows:
            return "\n".join([*rows, f"[… truncated: view the rest with view_range [{number}, {last}]]"])
        rows.append(row if room >= 0 else f"{row[:LONGEST_VIEW]}…")
    return "\n".join(rows)


def _the_one_place(text: str, old: str, new: str, path: str) -> tuple[int, str, str]:
    """Where `old` is in the file at `path`, and both texts with the line ends that the file has."""
    if "\r\n" in text and "\r\n" not in old + new:
        old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
    places = [at] if old and (at := text.find(old)) >= 0 else []
    while places and len(places) <= _MOST_PLACES and (following := text.find(old, places[-1] + 1)) >= 0:
        places.append(following)
    if len(places) == 1:
        return places[0], old, new
    if not places:
        raise MemoryToolError(f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}.")
    numbers = ", ".join(str(text.count("\n", 0, place) + 1) for place in places[:_MOST_PLACES])
    numbers += ", …" if len(places) > _MOST_PLACES else ""
    raise MemoryToolError(
        f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {numbers}. "
        "Please ensure it is unique"
    )


def _with_lines(text: str, below: int, more: str) -> str:
    """`text` with the lines of `more` below one of its lines, ended as its own are."""
    mark, newline = text[: text.startswith("\ufeff")], "\r\n" if "\r\n" in text else "\n"
    more = more if newline in more else more.replace("\n", newline)
    lines = re.findall(r"[^\n]*\n|[^\n]+", text[len(mark) :])
    if below == len(lines) and lines and not lines[-1].endswith("\n"):
        return text + newline + more.removesuffix(newline)
    return mark + "".join([*lines[:below], more.removesuffix(newline) + newline, *lines[below:]])


@contextmanager
def _worded(missing: str) -> Iterator[None]:
    """Errors of the notebook in the tool's words; `missing` where there is no such note."""
    try:
        yield
    except NoSuchNote:
        raise MemoryToolError(missing) from None
    except (NotebookError, PromptError) as error:
        raise MemoryToolError(f"Error: {error}") from error
