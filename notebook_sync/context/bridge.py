"""The reasoner behind an MCP server, such as a bridge to another service's notebook: its tool `ask_question`.

Each question has a process of its own, which is given none of this program's secrets, so many seconds, and an end.
"""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from os.path import expanduser
from pathlib import Path
from typing import TYPE_CHECKING

from notebook_sync.context.bridge_reply import WHERE, Reply, arguments, read_reply
from notebook_sync.context.reasoner import Kind
from notebook_sync.errors import ConfigError, SynthesisDown, UsageError
from notebook_sync.settings import Tier2Settings
from notebook_sync.version import __version__

if TYPE_CHECKING:
    from mcp.client import Client

    from notebook_sync.context.bridge_process import BridgeProcess

TOOL = "ask_question"
_MOST_PAGES = 20


class Bridge:
    """A `Reasoner`, for any number of threads. Whatever takes time or memory is loaded by the first question."""

    kind: Kind = "bridge"

    def __init__(self, settings: Tier2Settings) -> None:
        self._command = settings.command
        self._notebook = settings.notebook_id
        self._seconds = settings.timeout_seconds
        self.question_characters = settings.question_characters
        self.name = " ".join(("The bridge", *(Path(program).name for program in settings.command[:1])))

    def require(self) -> None:
        """Raises ConfigError where there is nothing to start. Starts nothing."""
        self._program()

    def ask(self, question: str) -> str:
        """Markdown, within `timeout_seconds` and the few that the process has to end. Raises ConfigError,
        SynthesisDown; UsageError for a question that is too long."""
        from anyio.from_thread import start_blocking_portal

        if len(question) > self.question_characters:
            limit = f"a question may have {self.question_characters:,} characters (question_characters {WHERE})"
            raise UsageError(f"{limit}, and this one has {len(question):,}; shorten it")
        program = self._program()
        # Where somebody breaks this off, the process is ended before that goes any further.
        with start_blocking_portal() as portal:
            reply = portal.call(self._asked, program, question.encode(errors="replace").decode())
        if reply.trouble:
            raise SynthesisDown(self.name, reply.trouble)
        return reply.answer

    def _program(self) -> str:
        """The whole path of what is started. Raises ConfigError. Nothing is looked for from the folder that we stand
        in, which may be a notebook."""
        named = self._command[0] if self._command else ""
        path = expanduser(named)  # noqa: PTH111 - that of Path raises for a user that there is not
        if not named or ("/" in named and not path.startswith("/")):
            raise ConfigError(f"command {WHERE} must begin with a program's name or whole path, not with {named!r}")
        found = shutil.which(path)
        if found is None or not found.startswith("/"):
            raise ConfigError(
                f"command {WHERE} begins with {named!r}, which is no program here; install it, or name another"
            )
        return found

    async def _asked(self, program: str, question: str) -> Reply:
        import anyio
        from mcp.client import Client
        from mcp.client.stdio import get_default_environment
        from mcp_types import Implementation

        from notebook_sync.context.bridge_process import BridgeProcess

        process = BridgeProcess([program, *self._command[1:]], get_default_environment(), _folder())
        us = Implementation(name="notebook-sync", version=__version__)
        reply: Reply | None = None
        # What has been replied holds, however long the process then takes to end, and however it does.
        with anyio.move_on_after(self._seconds):
            try:
                async with Client(process.connected(), client_info=us) as client:
                    reply = await self._conversation(client, question)
            except Exception as error:  # in groups, and of any kind that what a server sends can cause in the SDK
                reply = reply or Reply(trouble=_why(error, process))
        longer = f"ask again later, or give it more with timeout_seconds {WHERE}"
        return reply or Reply(trouble=f"it has said nothing within {self._seconds:g} seconds; {longer}")

    async def _conversation(self, client: Client, question: str) -> Reply:
        schema, cursor = None, None
        for _ in range(_MOST_PAGES):
            page = await client.list_tools(cursor=cursor)
            schema = next((tool.input_schema for tool in page.tools if tool.name == TOOL), None)
            cursor = page.next_cursor
            if schema is not None or not cursor:
                break
        if schema is None:
            return Reply(trouble=f"it has no tool {TOOL}; check command {WHERE}")
        asked = arguments(schema, question, self._notebook, self._seconds)
        if asked is None:
            return Reply(trouble=f"its tool {TOOL} cannot be told of a notebook; leave notebook_id empty {WHERE}")
        result = await client.call_tool(TOOL, asked)
        texts = [block.text for block in result.content if block.type == "text"]
        if not texts and result.structured_content is not None:
            texts = [json.dumps(result.structured_content)]
        return read_reply(texts, is_error=bool(result.is_error))


def _folder() -> Path:
    """Where a process stands: at home, or at "/" where that is no folder to stand in, as of some services' users."""
    home = Path(expanduser("~"))  # noqa: PTH111 - that of Path raises for a user that there is not
    with suppress(OSError):
        if home.is_absolute() and home.is_dir() and os.access(home, os.X_OK):
            return home
    return Path("/")


def _why(error: BaseException, process: BridgeProcess) -> str:
    """Why there is no answer. Of what a process says, no more than the line in which it complained of not starting."""
    from mcp.shared.exceptions import MCPError

    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if process.said_too_much:
        return "what it says is far too long to be an answer; ask again later"
    if process.code is not None:
        ended = f"by signal {-process.code}" if process.code < 0 else f"with exit code {process.code}"
        complaint = f", having complained: {process.complaint}" if process.complaint else ""
        return f"it ended {ended} before it answered{complaint}; check command {WHERE}"
    if isinstance(error, OSError):
        return f"it cannot be started ({error.strerror}); check command {WHERE}"
    if isinstance(error, MCPError):
        return f"it refused the question (error {error.code} of MCP); check command {WHERE}"
    return f"it does not speak as an MCP server should; check command {WHERE}"
