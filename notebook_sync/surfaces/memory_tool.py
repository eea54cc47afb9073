"""The backend of Anthropic's memory tool: `/memories` is the notebook, for one session.

Answers and errors are worded as that tool publishes them. Every path goes to the notebook's use cases as it is meant,
however it is spelled, and they decide; nothing here opens a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from notebook_sync.errors import Conflict, NoSuchNote, NotebookError
from notebook_sync.files.edits import Edit
from notebook_sync.files.frontmatter import read_frontmatter
from notebook_sync.files.note import COLLECTIONS
from notebook_sync.notebook import Notebook
from notebook_sync.notes.editing.filing import TOOL, File
from notebook_sync.sessions import Session
from notebook_sync.surfaces.memory_text import (
    NOT_LISTED,
    MemoryToolError,
    bounds_in,
    line_at,
    lines_of,
    listing,
    numbered,
    the_one_place,
    with_lines,
)
from notebook_sync.surfaces.tools.schemas.notes import complaints
from prompt import fence_external
from prompt.errors import PromptError

ROOT = "/memories"
MOST_LINES = 999_999
_AROUND = 2


class MemoryTool:
    """The six commands as methods, which raise MemoryToolError, and as `call`, which answers in any case.

    >>> import tempfile
    >>> from notebook_sync import Notebook, Session
    >>> with Notebook.open(tempfile.mkdtemp()) as notebook:
    ...     memory = MemoryTool(notebook, Session.task("scribe"))
    ...     print(memory.call({"command": "create", "path": "/memories/tides.md", "file_text": "High at nine.\\n"}))
    ...     print(memory.call({"command": "view", "path": "/memories/tide.md"}))
    File created successfully at: /memories/tides.md
    The path /memories/tide.md does not exist. Please provide a valid path.
    """

    def __init__(self, notebook: Notebook, session: Session) -> None:
        self._notebook = notebook
        self._session = session

    def call(self, command: Mapping[str, Any]) -> str:
        """Do a command, as the API sends it in `input`, and say what came of it."""
        return str(self.tool_result("", command)["content"])

    def tool_result(self, tool_use_id: str, command: Mapping[str, Any]) -> dict[str, Any]:
        """The `tool_result` block that answers the `tool_use` block with this id."""
        block = {"type": "tool_result", "tool_use_id": tool_use_id}
        try:
            return {**block, "content": self._done(command)}
        except MemoryToolError as error:
            return {**block, "content": str(error), "is_error": True}

    def view(self, path: str, view_range: Sequence[int] | None = None) -> str:
        """A folder, two levels deep, or the lines of a note: all, or from the first to the last, -1 for its end."""
        place = _place(path)
        with _worded(f"The path {path} does not exist. Please provide a valid path."):
            below = self._files(place)
            if place not in below and (below or place in ("", *COLLECTIONS)):
                return listing(path.rstrip("/"), place, below)
            file = self._notebook.file(place, self._session)
        lines = lines_of(file.shown)
        if len(lines) > MOST_LINES:
            raise MemoryToolError(f"File {path} exceeds maximum line limit of 999,999 lines.")
        shown = numbered(lines, *bounds_in(view_range, len(lines)))
        return f"Here's the content of {path} with line numbers:\n{_fenced(shown, file)}"

    def create(self, path: str, file_text: str) -> str:
        """A new note. One that is there is left as it is."""
        with _worded(f"Error: The path {path} is no note's: a note is Markdown, and its name ends in .md"):
            try:
                self._write(_place(path), file_text, base="")
            except Conflict:
                raise MemoryToolError(f"Error: File {path} already exists") from None
        return f"File created successfully at: {path}"

    def str_replace(self, path: str, old_str: str, new_str: str = "") -> str:
        """The one place where a note says `old_str` says `new_str` instead."""
        place = _place(path)
        with _worded(f"Error: The path {path} does not exist. Please provide a valid path."):
            file = self._file_to_change(place)
            at, old, new = the_one_place(file.text, old_str, new_str, path)
            text = file.text[:at] + new + file.text[at + len(old) :]
            self._write(place, text, base=file.digest)
        first, last = line_at(text, at), line_at(text, at + len(new))
        lines = lines_of(text)
        snippet = numbered(lines, max(first - _AROUND, 1), min(last + _AROUND, len(lines)))
        return f"{_EDITED}\n{_fenced(snippet, file)}"

    def insert(self, path: str, insert_line: int, insert_text: str) -> str:
        """New lines below line `insert_line`; 0 is above the first of the text, below the frontmatter."""
        place = _place(path)
        with _worded(f"Error: The path {path} does not exist"):
            file = self._file_to_change(place)
            count = len(lines_of(file.text))
            if not 0 <= insert_line <= count:
                raise MemoryToolError(
                    f"Error: Invalid `insert_line` parameter: {insert_line}. "
                    f"It should be within the range of lines of the file: [0, {count}]"
                )
            # Above its frontmatter, a text would be all that the note says.
            line = insert_line or len(lines_of(read_frontmatter(file.text).head))
            self._write(place, with_lines(file.text, line, insert_text), base=file.digest)
        return f"The file {path} has been edited."

    def delete(self, path: str) -> str:
        """A note, or all notes of a folder."""
        place = _place(path)
        if not place:
            raise MemoryToolError(f"Error: Cannot delete the {ROOT} directory itself")
        with _worded(f"Error: The path {path} does not exist"):
            self._notebook.delete(place, self._session)
        return f"Successfully deleted {path}"

    def rename(self, old_path: str, new_path: str) -> str:
        """A note, or a folder with its notes, gets another path. What is there already is never replaced."""
        old, new = _place(old_path), _place(new_path)
        if not old:
            raise MemoryToolError(f"Error: Cannot rename the {ROOT} directory itself")
        with _worded(f"Error: The path {old_path} does not exist"):
            try:
                self._notebook.rename(old, new, self._session)
            except Conflict as error:
                if error.base:  # it is the note to be moved that changed
                    raise
                raise MemoryToolError(f"Error: The destination {new_path} already exists") from None
        return f"Successfully renamed {old_path} to {new_path}"

    def _done(self, command: Mapping[str, Any]) -> str:
        try:
            wanted = _COMMANDS.validate_python(dict(command))
        except ValidationError as error:
            raise MemoryToolError(f"Error: Invalid command: {complaints(error)}") from None
        arguments = wanted.model_dump(exclude={"command"})
        return str(getattr(self, wanted.command)(**arguments))

    def _files(self, place: str) -> dict[str, int]:
        found = self._notebook.files(self._session, place)
        return {path: size for path, size in found.items() if NOT_LISTED not in path.split("/")}

    def _file_to_change(self, place: str) -> File:
        """Refused before it is looked at: whether a text stands in it tells of what the session is not shown."""
        self._notebook.guard.require_change(self._session, place, TOOL)
        return self._notebook.file(place, self._session)

    def _write(self, place: str, text: str, base: str) -> None:
        self._notebook.edit(place, Edit("write", content=text), self._session, expected_digest=base)


class _Command(BaseModel):
    # What this tool's commands may get in time is not an error now.
    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


class _View(_Command):
    command: Literal["view"]
    path: str
    view_range: list[int] | None = None


class _Create(_Command):
    command: Literal["create"]
    path: str
    file_text: str


class _StrReplace(_Command):
    command: Literal["str_replace"]
    path: str
    old_str: str
    new_str: str = ""


class _Insert(_Command):
    command: Literal["insert"]
    path: str
    insert_line: int
    insert_text: str


class _Delete(_Command):
    command: Literal["delete"]
    path: str


class _Rename(_Command):
    command: Literal["rename"]
    old_path: str
    new_path: str


_Known = _View | _Create | _StrReplace | _Insert | _Delete | _Rename
_COMMANDS: TypeAdapter[_Known] = TypeAdapter(Annotated[_Known, Field(discriminator="command")])

_EDITED = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"
_ENCODED = re.compile(r"%(2e|2f|5c)", re.IGNORECASE)


def _place(path: str) -> str:
    """The path in the notebook; "" for its root. A dot or a slash is one, also where it is spelled in hexadecimal:
    whether it leads where it may is for the notebook to say."""
    plain = _ENCODED.sub(lambda match: chr(int(match[1], 16)), path)
    if plain != ROOT and not plain.startswith(f"{ROOT}/"):
        raise MemoryToolError(f"Error: Path must start with {ROOT}, got: {path}")
    parts = [part for part in plain[len(ROOT) :].split("/") if part not in ("", ".")]
    return "/".join(parts)


def _fenced(shown: str, file: File) -> str:
    return fence_external(shown, "external") if file.external else shown


@contextmanager
def _worded(missing: str) -> Iterator[None]:
    """Errors of the notebook as what the model is told; `missing` where there is no such note."""
    try:
        yield
    except NoSuchNote:
        raise MemoryToolError(missing) from None
    except (NotebookError, PromptError) as error:
        raise MemoryToolError(f"Error: {error}") from error
