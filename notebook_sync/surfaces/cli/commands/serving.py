"""The commands `serve` and `token`."""

from __future__ import annotations

import gc
import logging
from argparse import Namespace
from typing import Any

from notebook_sync.errors import UsageError
from notebook_sync.folder import FOLDER
from notebook_sync.settings import ServerSettings
from notebook_sync.surfaces.cli.answers import opened, show
from notebook_sync.surfaces.dashboard.logins import LARGEST_PORT, LINK_SECONDS, Logins
from notebook_sync.tokens import Tokens

ACTIONS = ("list", "add", "revoke", "show", "link")


def serve(arguments: Namespace) -> int:
    """Serve until asked to end; the exit code is returned."""
    gc.disable()  # to look for garbage among what an import makes takes an eighth of the time, and there is hardly any
    from notebook_sync.surfaces.serving import serve as serving  # it takes a second, and no other command needs it

    gc.enable()
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("notebook_sync").setLevel(logging.INFO)
    with opened(arguments) as notebook:
        settings = notebook.settings.server
        serving.serve(
            notebook,
            host=arguments.host or settings.host,
            port=settings.port if arguments.port is None else arguments.port,
            watch=not arguments.no_watch,
            say=lambda line: print(line, flush=True),
        )
    serving.leave()
    return 0


def token(arguments: Namespace) -> int:
    """Do what is asked for with the tokens."""
    with opened(arguments) as notebook:
        told = _done(Tokens(notebook.root / FOLDER), notebook.settings.server, arguments)
    show(arguments, told, of_token)
    return 0


def _done(tokens: Tokens, server: ServerSettings, arguments: Namespace) -> Any:
    """What `--json` prints. Raises UsageError."""
    action, name = arguments.action, arguments.name
    if action not in ACTIONS:
        raise UsageError(f"there is no action {action!r}; use one of {', '.join(ACTIONS)}")
    if (name is None) != (action in ("list", "show", "link")):
        raise UsageError(f"token {action} takes {'no name' if name else 'the name of an agent'}")
    if action == "list":
        return [{"name": one.name, "session": one.kind, "created_at": one.created_at} for one in tokens.list()]
    if action == "show":
        return {"name": "owner", "session": "owner", "token": tokens.owner()}
    if action == "link":
        port = server.port if arguments.port is None else arguments.port
        if not 0 < port <= LARGEST_PORT:
            raise UsageError(f"there is no address with port {port}; say with --port at which one `serve` listens")
        return {"link": Logins(tokens).link(arguments.host or server.host, port), "seconds": LINK_SECONDS}
    if action == "add":
        if arguments.session is None:
            raise UsageError("say what the agent's conversations are: --session task, or --session external")
        return {"name": name, "session": arguments.session, "token": tokens.add(name, arguments.session)}
    if not tokens.revoke(name):
        raise UsageError(f"there is no token of {name!r}; see: notebook-sync token list")
    return {"name": name, "revoked": True}


def of_token(told: Any) -> str:
    """In words: a token or a link stands alone on its line, so that a script can take it."""
    if isinstance(told, list):
        return "\n".join(f"{one['name']}  {one['session']}  {one['created_at']}" for one in told)
    if "token" in told:
        return str(told["token"])
    if "link" in told:
        return str(told["link"])
    return f"the token of {told['name']} is worth nothing any more"
