"""Each error as what a client is answered: a stable name, an HTTP status, and a body that says what to do next.

The one mapping for every door that answers in JSON. An error that nobody foresaw has no place here: it is a fault of
the program, and its traceback is what helps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from notebook_sync import errors
from notebook_sync.files.provenance import is_external
from prompt.errors import PromptError

# A conflict tells the text of a file up to here; a longer one is to be read, a section at a time.
LONGEST_TEXT = 16_000
_MOST_CANDIDATES = 20


class NoSuchTool(errors.UsageError):
    """There is no tool of this name for anybody. `candidates` are those with a name like it that this session has."""

    def __init__(self, name: str, candidates: tuple[str, ...]) -> None:
        super().__init__(f"there is no tool {name!r}")
        self.candidates = candidates


class InvalidArguments(errors.UsageError):
    """Arguments that are not what the tool's schema asks for."""


class TooManyRequests(errors.NotebookError):
    """The session has as much under way as it may."""


@dataclass(frozen=True, slots=True)
class Kind:
    """How errors of one class are answered. `fields` are what the body has beside `type`, `message` and `next`, or in
    place of them."""

    error: type[Exception]
    type: str
    status: int
    next: str
    fields: Callable[[Any], dict[str, Any]] = lambda _: {}


def error_body(error: Exception) -> dict[str, Any]:
    """`{"error": {"type", "message", "next", …}}`. Raises TypeError for an error that nobody foresaw."""
    kind = kind_of(error)
    return {"error": {"type": kind.type, "message": str(error), "next": kind.next, **kind.fields(error)}}


def kind_of(error: Exception) -> Kind:
    """The row for an error: that of its class, or of the nearest class above it. Raises as `error_body`."""
    for kind in KINDS:
        if isinstance(error, kind.error):
            return kind
    raise TypeError(f"{type(error).__name__} is no error that this project raises on purpose") from error


def _path(error: Any) -> dict[str, Any]:
    return {"path": error.path}


def _candidates(error: Any) -> dict[str, Any]:
    return {"candidates": list(error.candidates[:_MOST_CANDIDATES])} if error.candidates else {}


def _not_there(error: errors.NoSuchNote) -> dict[str, Any]:
    return {"message": error.told}


def _no_such_checkpoint(error: errors.NoSuchCheckpoint) -> dict[str, Any]:
    return {"message": error.told, **_candidates(error)}


def _no_such_fact(error: errors.NoSuchFact) -> dict[str, Any]:
    return {"message": f"there is no fact {error.name!r}", **_candidates(error)}


def _edit_failed(error: errors.EditFailed) -> dict[str, Any]:
    # The candidates stand apart, so the message needs not list them once more.
    # What somebody else wrote is told by notebook_read alone, within its fence.
    candidates = {} if error.external else _candidates(error)
    return {"path": error.path, "message": f"{error.path}: {error.reason}", **candidates}


def _conflict(error: errors.Conflict) -> dict[str, Any]:
    is_told = error.text and len(error.text) <= LONGEST_TEXT and not is_external(error.text.encode(errors="replace"))
    return {"path": error.path, "current_digest": error.current, **({"current_text": error.text} if is_told else {})}


def _over_cap(error: errors.OverCap) -> dict[str, Any]:
    entries = list(error.entries[:_MOST_CANDIDATES])
    return {"path": error.path, "tokens": error.tokens, "cap": error.cap, "candidates": entries}


_CORRECT = "correct the arguments and call again"
_LATER = "the files are unharmed; retry in a few seconds, and report it to the owner if it persists"
_MODEL = "nothing was changed; retry once, and report it to the owner if it persists"
_NAMING = "do not retry; ask the owner to name the agent where this session is set up"
_OWNER = "do not retry; report this to the owner"

# The first row that fits counts, so a class stands above the class it is derived from.
KINDS: tuple[Kind, ...] = (
    Kind(NoSuchTool, "no_such_tool", 404, "use a tool that is in your list, as one of the candidates", _candidates),
    Kind(InvalidArguments, "invalid_arguments", 422, _CORRECT),
    Kind(errors.LlmNotConfigured, "llm_not_configured", 422, _OWNER),
    Kind(errors.NoAgentNamed, "no_agent", 422, _NAMING),
    Kind(errors.ConfigError, "configuration", 500, _OWNER),
    Kind(errors.NotANotebook, "not_a_notebook", 500, _OWNER),
    Kind(
        errors.NothingEarlier,
        "edit_failed",
        422,
        "there is nothing to go back to; where the message names another way back, take that",
        _edit_failed,
    ),
    Kind(
        errors.EditFailed,
        "edit_failed",
        422,
        "name the place exactly, as one of the candidates or as the file has it; notebook_read shows it",
        _edit_failed,
    ),
    Kind(errors.UsageError, "invalid_arguments", 422, _CORRECT),
    Kind(
        errors.NotPermitted,
        "not_permitted",
        403,
        "do not try another way; say that this is for the owner to do",
    ),
    Kind(
        errors.Conflict,
        "conflict",
        409,
        "somebody else changed the file: apply the edit to what it says now, with current_digest as expected_digest",
        _conflict,
    ),
    Kind(
        errors.OverCap,
        "over_cap",
        422,
        "remove an entry that is no longer needed, or ask the owner and repeat with allow_over_cap",
        _over_cap,
    ),
    Kind(
        errors.UnsafePath,
        "unsafe_path",
        403,
        "use a plain path below the notebook, like pages/plan.md",
        _path,
    ),
    Kind(
        errors.TooLarge,
        "too_large",
        422,
        "shorten the text, or split it into several notes",
        lambda error: {"path": error.path, "bytes": error.size, "most": error.most},
    ),
    Kind(errors.Refused, "refused", 409, _OWNER),
    Kind(errors.NoSuchFact, "no_such_fact", 404, "name it by its id, or by its exact text", _no_such_fact),
    Kind(
        errors.NoSuchNote,
        "no_such_note",
        404,
        "find its path with notebook_search or notebook_list",
        _not_there,
    ),
    Kind(
        errors.NoSuchCheckpoint,
        "no_such_checkpoint",
        404,
        "name one of the candidates, the latest checkpoints, by its id; without candidates there is none",
        _no_such_checkpoint,
    ),
    Kind(errors.UnreadableFile, "unreadable_file", 422, _OWNER, _path),
    Kind(errors.UnwritableFile, "unwritable_file", 503, _OWNER, _path),
    Kind(errors.GitFailed, "git_failed", 500, _OWNER),
    Kind(errors.RootLost, "root_lost", 503, _LATER),
    Kind(errors.LlmNonsense, "llm_nonsense", 502, _MODEL),
    Kind(errors.LlmDown, "llm_down", 503, _MODEL, lambda error: {"backend": error.backend}),
    Kind(errors.BackendDown, "backend_down", 503, _LATER, lambda error: {"backend": error.backend}),
    Kind(TooManyRequests, "too_many_requests", 429, "wait for an answer, then ask again"),
    Kind(errors.NotebookError, "failed", 500, _OWNER),
    Kind(PromptError, "prompt_failed", 500, _OWNER),
)
