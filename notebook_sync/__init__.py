"""A file-first Markdown notebook for AI agents, with a sync engine.

>>> from notebook_sync import Notebook, Session

Files are the truth, databases are mirrors, the prompt is a view.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from notebook_sync.version import __version__

if TYPE_CHECKING:
    from notebook_sync.async_notebook import AsyncNotebook
    from notebook_sync.errors import NotebookError
    from notebook_sync.files.edits import Edit
    from notebook_sync.notebook import Notebook
    from notebook_sync.sessions import Session
    from notebook_sync.surfaces.memory_tool import MemoryTool
    from notebook_sync.surfaces.tools.calling import call, tool_definitions

__all__ = [
    "AsyncNotebook",
    "Edit",
    "MemoryTool",
    "Notebook",
    "NotebookError",
    "Session",
    "__version__",
    "call",
    "tool_definitions",
]

_HOMES = {
    "AsyncNotebook": "async_notebook",
    "Edit": "files.edits",
    "MemoryTool": "surfaces.memory_tool",
    "Notebook": "notebook",
    "NotebookError": "errors",
    "Session": "sessions",
    "call": "surfaces.tools.calling",
    "tool_definitions": "surfaces.tools.calling",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for: `notebook-sync --version` must not wait for all the rest."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
