"""An MCP server over stdio with the tool `ask_question`, such as a bridge to another service's notebook.

Each question starts a process of its own, which gets none of this program's secrets, may say so much, and is ended
afterwards. What it says of a failure is only classified: none of its words get into an error or a log.
"""

from __future__ import annotations

import codecs
import json
import logging
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from encodings import utf_8
from pathlib import Path
from typing import Any, NamedTuple

from notebook_sync.errors import BackendDown, ConfigError
from notebook_sync.settings import Tier2Table

TOOL = "ask_question"
LIMIT = "its own limit is reached; ask again later"
LOGIN = "it is not logged in to its service; log in as its documentation describes"
UNKNOWN_NOTEBOOK = "it does not know the notebook; check tier2.notebook_id"
LATE = "its service did not answer in time; ask again later"
FAILED = "it reports a failure; try it in a program that shows what it says"
BROKEN = f"its reply is not one of {TOOL}; check tier2.command"
EMPTY = "its answer is empty; ask again later"
MOST_PRINTED, _BOUNDED = 4 << 20, "notebook_sync_bounded_utf_8"
FLOOD = f"it printed more than {MOST_PRINTED:,} bytes; check tier2.command"

# The first of these that a complaint mentions; services complain in their user's language.
_ABOUT = {
    LIMIT: r"(?:rate|daily|query|request|usage|raten).?limit|limit (?:(?:is|was|has been) )?(?:reached|exceeded)|quota"
    r"|too many requests",
    LOGIN: r"authenticat|not logged|\blog.?in\b|\bsign.?in\b|credential|cookies?\b",
    UNKNOWN_NOTEBOOK: r"notebook not found|no (?:active )?notebook|unknown notebook",
    LATE: r"time(?:d)?.?out",
}
_BAD_STATUS = re.compile(r"error|fail|limit|timeout|denied|refus", re.IGNORECASE)
_HEADING = re.compile(r"^ {0,3}#{1,6} ", re.MULTILINE)
_MARKER = re.compile(r"\A\s*\[AI-GENERATED[^\]\n]*\]\s*")
_NAG = re.compile(r"(?:extremely important:\s*)?\bis that all you need to know\?", re.IGNORECASE)
_LONGEST_COMPLAINT, _LONGEST_NAG = 600, 800


class Reply(NamedTuple):
    """An answer, or why there is none."""

    answer: str = ""
    trouble: str = ""


# Ends the question that is asked.
_cancel: ContextVar[Callable[[], None]] = ContextVar("cancel")


class _Decoder(utf_8.IncrementalDecoder):
    """UTF-8, of which a process may print `MOST_PRINTED` bytes. The SDK keeps each line until it ends, however long;
    what it reads, it decodes by the codec that is named in its parameters."""

    read = 0

    def decode(self, input: Any, final: bool = False) -> str:  # noqa: A002 - as codecs name it
        """The text of the next bytes; none of those that are too many."""
        self.read += len(input)
        if self.read > MOST_PRINTED:
            _cancel.get()()
            return ""
        return super().decode(input, final)


def _codec(name: str) -> codecs.CodecInfo | None:
    return codecs.CodecInfo(utf_8.encode, utf_8.decode, incrementaldecoder=_Decoder) if name == _BOUNDED else None


codecs.register(_codec)


class Bridge:
    """The server that `tier2.command` starts. May be used by several threads."""

    def __init__(self, settings: Tier2Table) -> None:
        self._settings = settings
        self.name = f"the bridge {Path(settings.command[0]).name}"

    def ask(self, instructions: str, question: str) -> str:
        """The answer to both texts, which together have at most `question_characters`; within `timeout_seconds` and
        the few that the process has to end. Raises BackendDown, ConfigError."""
        program = self.program()
        from anyio.from_thread import start_blocking_portal  # of the extra [mcp], and slow to load

        # The SDK logs each line of output that is no message, with its text.
        logging.getLogger("mcp.client").setLevel(logging.CRITICAL + 1)
        asked = f"{instructions}\n\n{question}".encode(errors="replace").decode()
        with start_blocking_portal() as portal:  # an interrupted caller ends the process before it goes on
            reply: Reply = portal.call(self._asked, program, asked)
        if reply.trouble:
            raise BackendDown(self.name, reply.trouble)
        return reply.answer

    def program(self) -> str:
        """The absolute path of the program. The current folder, which may be a notebook, is never searched. Raises
        ConfigError."""
        named = self._settings.command[0]
        path = os.path.expanduser(named)  # noqa: PTH111 - that of Path raises for an unknown user
        found = shutil.which(path) if path.startswith("/") or "/" not in path else None
        if found is None or not found.startswith("/"):
            advice = "begin it with a program's name or absolute path, and install the program"
            raise ConfigError(f"tier2.command: there is no program {named!r}", next=advice)
        return found

    async def _asked(self, program: str, question: str) -> Reply:
        """A reply that has come is used, whatever the process does afterwards."""
        import anyio
        from mcp.client import Client
        from mcp.client.stdio import StdioServerParameters, stdio_client

        args, home = list(self._settings.command[1:]), _home()
        server = StdioServerParameters(command=program, args=args, cwd=home, encoding=_BOUNDED)
        seconds, reply = self._settings.timeout_seconds, None
        with anyio.move_on_after(seconds) as scope, Path(os.devnull).open("w") as nowhere:
            _cancel.set(scope.cancel)
            try:
                async with Client(stdio_client(server, errlog=nowhere)) as client:
                    reply = await self._conversation(client, question)
            except Exception as error:  # in groups, and of any kind that a server can cause in the SDK
                cause: BaseException = error
                while isinstance(cause, BaseExceptionGroup):
                    cause = cause.exceptions[0]
                said = f"it did not start, ended, or refused the question ({type(cause).__name__}); check tier2.command"
                reply = reply or Reply(trouble=said)
        is_late = anyio.current_time() >= scope.deadline
        late = f"no answer within tier2.timeout_seconds ({seconds:g})"
        return reply or Reply(trouble=late if is_late else FLOOD)

    async def _conversation(self, client: Any, question: str) -> Reply:
        tools = (await client.list_tools()).tools
        schema = next((tool.input_schema for tool in tools if tool.name == TOOL), None)
        if schema is None:
            return Reply(trouble=f"it has no tool {TOOL}; check tier2.command")
        given = arguments(schema, question, self._settings.notebook_id, self._settings.timeout_seconds)
        if given is None:
            return Reply(trouble=f"its tool {TOOL} takes no notebook; set tier2.notebook_id to nothing")
        result = await client.call_tool(TOOL, given)
        texts = [block.text for block in result.content if block.type == "text"]
        return read_reply(texts or [json.dumps(result.structured_content)], is_error=bool(result.is_error))


def arguments(schema: Mapping[str, Any], question: str, notebook: str, seconds: float) -> dict[str, Any] | None:
    """The arguments for a tool with this JSON schema, which gets only what it declares; None where it cannot be asked
    about a notebook.

    A bridge that types into a page is asked to enter the question at once: typed as a person types, a long one would
    take longer than anybody waits.
    """
    given: dict[str, Any] = {"question": question}
    if notebook:
        name = "notebook_url" if notebook.startswith(("https://", "http://")) else "notebook_id"
        if not _declares(schema, name):
            return None
        given[name] = notebook
    options: dict[str, Any] = {}
    if _declares(schema, "browser_options", "answer_timeout_ms"):
        options["answer_timeout_ms"] = int(seconds * 1000)
    if _declares(schema, "browser_options", "stealth", "human_typing"):
        options["stealth"] = {"human_typing": False}
    return {**given, "browser_options": options} if options else given


def read_reply(texts: Sequence[str], *, is_error: bool = False) -> Reply:
    """The answer in a reply: an object with `success` and `data`, whose `answer` it is; or, of simpler bridges, the
    texts themselves. Success is only what is said inside."""
    first = texts[0] if texts else ""
    if is_error:
        return Reply(trouble=_classified("\n".join(texts)))
    if not first.lstrip().startswith("{"):
        return _answered("\n\n".join(texts))
    try:
        said = json.loads(first)
        data = said.get("data", said)
        status, error, answer = (data.get(name) for name in ("status", "error", "answer"))
    except (ValueError, RecursionError, AttributeError):
        return Reply(trouble=BROKEN)
    if said.get("success", True) is not True or error or _BAD_STATUS.search(str(status)):
        return Reply(trouble=_classified(said.get("error") or error or status))
    return _answered(answer) if isinstance(answer, str) else Reply(trouble=BROKEN)


def _declares(schema: Mapping[str, Any], *names: str) -> bool:
    """Whether the schema has a property at the end of these names."""
    for name in names:
        properties = schema.get("properties")
        inner = properties.get(name) if isinstance(properties, Mapping) else None
        if not isinstance(inner, Mapping):
            return False
        schema = inner
    return True


def _answered(text: str) -> Reply:
    """An answer without what the bridge adds to each. A short one about a limit is none: a service may put its notice
    where its answers are."""
    text = _MARKER.sub("", text, count=1)
    for nag in _NAG.finditer(text, max(0, len(text) - _LONGEST_NAG)):
        if not _HEADING.search(text, nag.end()):  # the same words before a heading belong to the answer
            text = text[: nag.start()]
            break
    answer = text.strip()
    is_notice = len(answer) <= _LONGEST_COMPLAINT and not _HEADING.search(answer) and _classified(answer) == LIMIT
    return Reply(trouble=EMPTY) if not answer else Reply(trouble=LIMIT) if is_notice else Reply(answer)


def _classified(complaint: object) -> str:
    words = complaint[:_LONGEST_COMPLAINT] if isinstance(complaint, str) else ""
    return next((kind for kind, about in _ABOUT.items() if re.search(about, words, re.IGNORECASE)), FAILED)


def _home() -> Path:
    """Where a process starts: the home folder, or "/" where there is none, as for some services' users."""
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - that of Path raises for an unknown user
    return home if home.is_absolute() and home.is_dir() and os.access(home, os.X_OK) else Path("/")
