"""What MCP clients read by URI: the session's prompt, a runtime file, any note. Shown as `read` shows it, whole."""

from __future__ import annotations

from hashlib import sha256
from typing import Any
from urllib.parse import quote, unquote

import mcp_types as types
from mcp.server.context import ServerRequestContext

from notebook_sync.errors import NotFound
from notebook_sync.model import RUNTIME_FILES
from notebook_sync.notebook import Notebook
from notebook_sync.registry import for_model
from notebook_sync.sessions import Session

Context = ServerRequestContext[Any, Any]
MARKDOWN = "text/markdown"
PROMPT = "notebook://prompt"
RUNTIME = "notebook://runtime/"
NOTE = "notebook://note/"
_FOLDER = "runtime/"

TEMPLATES = [
    types.ResourceTemplate(
        name="note",
        title="Note",
        uri_template="notebook://note/{id}",
        description="A note by its id or path, like pages/plan or pages%2Fplan",
        mime_type=MARKDOWN,
    ),
    types.ResourceTemplate(
        name="runtime",
        title="Runtime file",
        uri_template="notebook://runtime/{file}",
        description="A file of the owner's rules, like reminders.md",
        mime_type=MARKDOWN,
    ),
]


def listed(notebook: Notebook) -> list[types.Resource]:
    """The prompt and the runtime files that exist. Other notes are found with the tools: there may be very many."""
    prompt = types.Resource(
        name="prompt",
        title="Prompt",
        uri=PROMPT,
        description="The owner's rules, reminders and standing orders, as they are now",
        mime_type=MARKDOWN,
    )
    paths = [path for path in RUNTIME_FILES if notebook.core.tree.stat(path) is not None]
    return [prompt, *(_runtime(path) for path in paths)]


def text_of(notebook: Notebook, uri: str, session: Session) -> str:
    """What a resource says to the session. Raises NotFound, NotPermitted, UnreadableFile, PromptError."""
    if uri == PROMPT:
        return notebook.prompt(session).text
    return str(for_model(notebook.notes.read(_name_in(uri), session)).text)


def state_of(notebook: Notebook, uri: str, session: Session) -> str:
    """A digest that differs when the resource says something else to the session. Raises as `text_of`."""
    return sha256(text_of(notebook, uri, session).encode(errors="replace")).hexdigest()


def _runtime(path: str) -> types.Resource:
    name = path.removeprefix(_FOLDER)
    title = name.removesuffix(".md").replace("-", " ").capitalize()
    return types.Resource(name=name, title=title, uri=RUNTIME + quote(name, safe=""), mime_type=MARKDOWN)


def _name_in(uri: str) -> str:
    """The path or id that a URI names. Raises NotFound for a URI of no resource."""
    for start, folder in ((RUNTIME, _FOLDER), (NOTE, "")):
        name = unquote(uri.removeprefix(start))
        if uri.startswith(start) and name:
            return folder + name
    raise NotFound("resource", uri, next=f"use {PROMPT}, {RUNTIME}FILE or {NOTE}ID")
