"""A file-first Markdown notebook for AI agents, with a sync engine."""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` takes longer to load than the rest of `notebook-sync --version`
if TYPE_CHECKING:
    from typing import Any

    from notebook_sync.aio import AsyncNotebook
    from notebook_sync.errors import NotebookError
    from notebook_sync.notebook import Notebook
    from notebook_sync.sessions import Session
    from notebook_sync.surfaces.http.app import asgi

__version__ = "1.0.0"
__all__ = ["AsyncNotebook", "Notebook", "NotebookError", "Session", "__version__", "asgi"]

# Looked up when they are first used, so that `notebook-sync --version` starts as fast as Python does.
_HOMES = {
    "AsyncNotebook": "aio",
    "Notebook": "notebook",
    "NotebookError": "errors",
    "Session": "sessions",
    "asgi": "surfaces.http.app",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'notebook_sync' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"notebook_sync.{_HOMES[name]}"), name)
