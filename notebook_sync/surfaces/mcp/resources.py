"""What MCP clients may read of a notebook by URI: the session's prompt, a runtime file, any note.

What is shown is what `notebook_read` shows, whole. Nothing here is written, and asking whether something changed leaves
no event.
"""

from __future__ import annotations

import posixpath
from hashlib import sha256
from typing import Any
from urllib.parse import quote, unquote

import mcp_types as types

from notebook_sync.errors import NoSuchNote, NotebookError
from notebook_sync.lookup import READ
from notebook_sync.notebook import Notebook
from notebook_sync.sessions import Session
from notebook_sync.surfaces.tools.runs.notes import read
from notebook_sync.surfaces.tools.schemas.notes import ReadArguments
from prompt.errors import PromptError

MARKDOWN = "text/markdown"
PROMPT = "notebook://prompt"
RUNTIME = "notebook://runtime/"
NOTE = "notebook://note/"
_FOLDER = "runtime/"
# More tokens than a file of any permitted size has.
_ALL = 1 << 40

TEMPLATES = (
    types.ResourceTemplate(
        name="note",
        title="Note",
        uri_template="notebook://note/{id}",
        description="A note by its id or path, as pages/plan or pages%2Fplan",
        mime_type=MARKDOWN,
    ),
    types.ResourceTemplate(
        name="runtime",
        title="Runtime file",
        uri_template="notebook://runtime/{file}",
        description="One of the files that the prompt is made of, as reminders.md",
        mime_type=MARKDOWN,
    ),
)


def listed(notebook: Notebook, session: Session) -> list[types.Resource]:
    """The prompt and the runtime files. Other notes are found with the tools: there may be very many."""
    prompt = types.Resource(
        name="prompt",
        title="Prompt",
        uri=PROMPT,
        description="The owner's rules, reminders and standing orders, as they are now",
        mime_type=MARKDOWN,
    )
    return [prompt, *(_runtime(path) for path in notebook.files(session, _FOLDER))]


def text_of(notebook: Notebook, uri: str, session: Session) -> str:
    """What a resource says to the session. Raises NotPermitted, NoSuchNote, UnreadableFile, PromptError."""
    if uri == PROMPT:
        return notebook.prompt(session).text
    shown: Any = read(notebook, ReadArguments.model_construct(id=_name_in(uri), max_tokens=_ALL), session)
    return str(shown.text)


def require(notebook: Notebook, uri: str, session: Session) -> None:
    """Raises as `text_of` where the session cannot read the resource now. Who asks for that has not opened it."""
    if uri != PROMPT:
        notebook.find_path(_name_in(uri), session, "read", READ)


def state_of(notebook: Notebook, uri: str, session: Session) -> str | None:
    """A digest that differs when what the resource says to the session may differ; None when that cannot be told."""
    try:
        if uri == PROMPT:
            return sha256(notebook.prompt(session).text.encode()).hexdigest()
        return notebook.vault.digest(notebook.find_path(_name_in(uri), session)) or ""
    except NoSuchNote:
        return ""
    except (NotebookError, PromptError, OSError):
        return None


def _runtime(path: str) -> types.Resource:
    name = path.removeprefix(_FOLDER)
    title = posixpath.basename(name).removesuffix(".md").replace("-", " ").capitalize()
    return types.Resource(name=name, title=title, uri=RUNTIME + quote(name, safe=""), mime_type=MARKDOWN)


def _name_in(uri: str) -> str:
    """The path or id that a URI names. Raises NoSuchNote for a URI of no resource."""
    for start, folder in ((RUNTIME, _FOLDER), (NOTE, "")):
        name = unquote(uri.removeprefix(start))
        if uri.startswith(start) and name:
            return folder + name
    raise NoSuchNote(f"there is no resource {uri!r}; there are {PROMPT}, {RUNTIME}{{file}} and {NOTE}{{id}}")
