"""The command `mcp`: serve one agent program over standard input and output.

Who asks is what the one who starts it says, and nothing that the program or a terminal says; else it is a stranger.
"""

from __future__ import annotations

from collections.abc import Mapping

from notebook_sync.notebook import Notebook
from notebook_sync.sessions import Session


def session_of(named: str | None, agent: str, environ: Mapping[str, str]) -> Session:
    """The session as named, else NOTEBOOK_SESSION, else external. Raises UsageError for a kind there is not."""
    return Session.named(named or environ.get("NOTEBOOK_SESSION") or "external", agent)


def serve(notebook: Notebook, session: Session) -> int:
    """Serve until the client is done; the exit code is returned."""
    from notebook_sync.surfaces.mcp.stdio import serve_stdio  # after the arguments were found right: it takes a second

    serve_stdio(notebook, session)
    return 0
