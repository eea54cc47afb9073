"""Every error that the project raises on purpose.

    NotebookError                    exit 1, HTTP 500
    ├── UsageError                   2, 400   the call or a setting is wrong
    │   ├── ConfigError                       notebook.toml, with path and line where known
    │   ├── MissingExtra                      an optional package is not installed
    │   ├── NotANotebook                      no notebook here or above
    │   ├── NoAgentNamed                      an operation on private notes in a session without an agent
    │   └── EditFailed                422     an edit matches no place, or several; with the candidates
    ├── Refused                      3, 409   permission or conflict; nothing was changed
    │   ├── NotPermitted              403     the session may not do this
    │   ├── Unauthorized              401     no token, or a wrong one
    │   ├── Conflict                          the file is no longer what the edit was based on
    │   ├── OverCap                           the edit would grow a prompt file beyond its cap
    │   ├── UnsafePath                400     a path that leaves the notebook, passes a link, or is no note
    │   ├── TooLarge                  413     a text larger than a note may be
    │   ├── ReadOnly                          the folder cannot be written
    │   ├── Busy                      503     another process holds the write lock
    │   ├── TooManyRequests           429     a quota of the HTTP server
    │   ├── FollowLocked                      another process follows this notebook
    │   ├── ForeignTarget                     a server holds another notebook's data
    │   └── WouldDeleteEverything             a scan found none of the indexed notes
    ├── NotFound                     1, 404   no note, checkpoint … has this name
    │   └── NoSuchNote
    ├── RootLost                     1        the notebook's folder is missing
    ├── UnreadableFile               1, 422   one file could not be read or decoded
    ├── UnwritableFile               1        one file could not be written; it is as it was
    ├── GitFailed                    1        git failed; the files are as they should be
    ├── IndexOutdated                1        a newer version of the program changed the index
    ├── IndexDamaged                 1        the index file is damaged; it can be built again from the notes
    ├── BadAnswer                    1, 502   a language model answered, with nothing that can be used
    └── BackendDown                  4, 503   MongoDB, Redis or another server does not answer

The class gives the kind, the fields give the case, the message says what happened and where, `next` what to do.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

# Of a name that somebody gave, an error shows so many characters.
LONGEST_NAME = 64


class NotebookError(Exception):
    """Root of the tree. `message` is one sentence without a full stop; `next` is what the reader can do about it.

    `exit_code` is the command line's, `status` is HTTP's. `fields` say more about the case (`path`, `line` …); they are
    in the JSON shape, and attributes too. `reason` is what happened, without where.
    """

    exit_code: ClassVar[int] = 1
    status: ClassVar[int] = 500
    fields: Mapping[str, Any] = {}

    def __init__(self, message: str, *, next: str = "", reason: str = "", **fields: Any) -> None:
        super().__init__(message)
        self.message = message
        self.next = next
        self.reason = reason
        self.fields = fields

    def __getattr__(self, name: str) -> Any:
        if name not in self.fields:
            raise AttributeError(f"{type(self).__name__} has no field {name!r}")
        return self.fields[name]

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (type(self), self.args, vars(self))

    def __str__(self) -> str:
        return f"{self.message}; {self.next}" if self.next else self.message

    @property
    def type(self) -> str:
        """The class name in snake case, as clients see it: `conflict`, `not_permitted`."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", type(self).__name__).lower()

    def as_json(self) -> dict[str, Any]:
        """The one error shape: `{"error": {"type", "message", "next", …}}`."""
        return {"error": {"type": self.type, "message": self.message, "next": self.next, **self.fields}}


def _unpickled(kind: type[NotebookError], args: tuple[str], fields: Mapping[str, Any]) -> NotebookError:
    """An error as another process raised it."""
    error = kind.__new__(kind, *args)
    vars(error).update(fields)
    return error


def did_you_mean(name: str, known: Collection[str], otherwise: str) -> str:
    """Advice for a name that does not exist: the nearest one that does, else `otherwise`."""
    import difflib  # only for a wrong call

    near = difflib.get_close_matches(name[:LONGEST_NAME], known, n=1)
    return f"did you mean {near[0]}?" if near else otherwise


class UsageError(NotebookError):
    """The call or a setting is wrong; repeating the same call fails again."""

    exit_code = 2
    status = 400


class ConfigError(UsageError):
    """A setting is unknown or has a wrong value. `line` is 1-based, 0 where it is not known."""

    def __init__(self, message: str, *, path: str = "", line: int = 0, next: str = "") -> None:
        place = f"{path}:{line}: " if line else f"{path}: " if path else ""
        super().__init__(f"{place}{message}", next=next, path=path, line=line)


class MissingExtra(UsageError):
    """A feature needs the optional packages of an extra."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs optional packages", next=f"pip install 'notebook-sync[{extra}]'")


@contextmanager
def missing_extra(feature: str, extra: str) -> Iterator[None]:
    """Imports whose absence is an error with the line that installs them. Raises MissingExtra."""
    try:
        yield
    except ImportError as error:
        if (error.name or "").partition(".")[0] == "notebook_sync":
            raise
        raise MissingExtra(feature, extra) from error


class NotANotebook(UsageError):
    """Neither the folder nor one above it is a notebook."""


class NoAgentNamed(UsageError):
    """Private notes belong to one agent, and the session names none."""


class EditFailed(UsageError):
    """An edit that cannot be applied as asked. `candidates` are places that its words may have meant, with lines."""

    status = 422

    def __init__(
        self,
        path: str,
        reason: str,
        *,
        line: int = 0,
        candidates: tuple[str, ...] = (),
        next: str = "",
    ) -> None:
        near = "".join(f"\n  {each}" for each in candidates)
        place = f"{path}:{line}" if line else path
        super().__init__(
            f"{place}: {reason}{near}", next=next, reason=reason, path=path, line=line, candidates=candidates
        )


class Refused(NotebookError):
    """Not permitted, or something else changed first. Nothing was written."""

    exit_code = 3
    status = 409


class NotPermitted(Refused):
    """The session may not do this, whatever a message says."""

    status = 403


class Unauthorized(Refused):
    """An HTTP request without a valid token."""

    status = 401


class Conflict(Refused):
    """The file was expected to have the digest `base` and has `current_digest` ("" for no file).

    `text` is what it holds now, "" where the session may not read it.
    """

    def __init__(self, path: str, base: str, current_digest: str, text: str = "") -> None:
        what = "was changed since it was read" if base else "already exists"
        if not current_digest or current_digest == base:
            what = "is being written by another program" if current_digest else "is gone"
        advice = "read it again and repeat the edit on the current text"
        super().__init__(f"{path} {what}", next=advice, path=path, base=base, current_digest=current_digest, text=text)


class OverCap(Refused):
    """An edit that grows a prompt file beyond its cap: `tokens` of `cap`. `entries` would be cut first."""

    def __init__(self, path: str, tokens: int, cap: int, entries: tuple[str, ...] = ()) -> None:
        super().__init__(
            f"{path} would have {tokens:,} tokens, and the prompt shows at most {cap:,}",
            next="remove an entry first, or repeat the edit with allow_over_cap",
            path=path,
            tokens=tokens,
            cap=cap,
            entries=entries,
        )


class UnsafePath(Refused):
    """A path that leaves the notebook, passes through a link, or cannot be a note."""

    status = 400

    def __init__(self, path: str, reason: str, *, next: str = "") -> None:
        super().__init__(f"{path!r}: {reason}", next=next, reason=reason, path=path)


class TooLarge(Refused):
    """A text of `size` bytes where at most `limit` are allowed."""

    status = 413

    def __init__(self, path: str, size: int, limit: int) -> None:
        super().__init__(
            f"{path}: the text has {size:,} bytes, and a note may have {limit:,}",
            next="split it into several notes, or raise notebook.max_file_bytes in notebook.toml",
            path=path,
            size=size,
            limit=limit,
        )


class ReadOnly(Refused):
    """The notebook's folder, or the state folder, cannot be written."""

    def __init__(self, path: str, reason: str, *, next: str = "") -> None:
        super().__init__(
            f"{path} cannot be written: {reason}", next=next or "see what helps with: notebook-sync doctor", path=path
        )


class Busy(Refused):
    """Another process holds the write lock: `holder` gives its pid, its operation and since when."""

    status = 503

    def __init__(self, holder: str) -> None:
        super().__init__(
            f"another write is in progress ({holder})",
            next="try again in a few seconds",
            holder=holder,
            retry_after=5,
        )


class TooManyRequests(Refused):
    """A quota is used up for `retry_after` seconds."""

    status = 429

    def __init__(self, message: str, retry_after: int = 5) -> None:
        super().__init__(message, next=f"try again in {retry_after} s", retry_after=retry_after)


class FollowLocked(Refused):
    """Another process already follows this notebook: `holder` gives its pid, host and since when."""

    def __init__(self, holder: str) -> None:
        super().__init__(
            f"another process already follows this notebook ({holder})",
            next="use that one, or stop it",
            holder=holder,
        )


class ForeignTarget(Refused):
    """A server holds the data of another notebook, or of another copy of this one. Nothing was written there."""

    def __init__(self, target: str, owner: str, *, next: str) -> None:
        super().__init__(f"{target} belongs to {owner}", next=next, target=target, owner=owner)


class WouldDeleteEverything(Refused):
    """A scan found none of the `known` indexed notes: a lost mount looks the same. Nothing was deleted."""

    def __init__(self, message: str, known: int) -> None:
        super().__init__(
            message,
            next="if the notes were really deleted, run: notebook-sync sync --allow-empty",
            known=known,
        )


class NotFound(NotebookError):
    """Nothing has this name. The answer for what is withheld from the session is the same."""

    status = 404

    def __init__(self, what: str, name: str, *, candidates: tuple[str, ...] = (), next: str = "") -> None:
        super().__init__(f"no {what} has the name {name!r}", next=next, name=name, candidates=candidates)


class NoSuchNote(NotFound):
    """No note has this id, path or title. `candidates` are several that it may mean, at most five."""

    def __init__(self, name: str, *, collection: str = "", candidates: tuple[str, ...] = ()) -> None:
        advice = f"use one of: {', '.join(candidates)}" if candidates else "find it with: notebook-sync search WORDS"
        super().__init__(f"note of {collection}" if collection else "note", name, candidates=candidates, next=advice)


class RootLost(NotebookError):
    """The notebook's folder is missing, or no longer a folder."""


class UnreadableFile(NotebookError):
    """One file cannot be read. `path` is relative to the root; `line` is 1-based, 0 for the whole file."""

    status = 422

    def __init__(self, path: str, reason: str, line: int = 0) -> None:
        place = f"{path}:{line}" if line else path
        super().__init__(f"{place}: {reason}", reason=reason, path=path, line=line)


class UnwritableFile(NotebookError):
    """The disk refused a change of one file. The file is as it was."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} cannot be written: {reason}", next="fix the cause, then repeat the edit", path=path)


class GitFailed(NotebookError):
    """git did not do what it was asked. The notebook's files are as they should be."""


class IndexOutdated(NotebookError):
    """A newer version of the program has changed the index file while this process was running."""


class IndexDamaged(NotebookError):
    """SQLite found the index file damaged. Nothing that a person wrote is only in it."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} is damaged: {reason}", next="build it again with: notebook-sync rebuild", path=path)


class BadAnswer(NotebookError):
    """A language model answered with nothing that can be used. The model's own words are in no message."""

    status = 502

    def __init__(self, backend: str, reason: str) -> None:
        super().__init__(
            f"{backend} gave no usable answer: {reason}",
            next="try again, or name another model in llm.model",
            reason=reason,
            backend=backend,
        )


class BackendDown(NotebookError):
    """A server does not answer. `backend` is its name without secrets ("MongoDB at localhost:27017")."""

    exit_code = 4
    status = 503

    def __init__(self, backend: str, reason: str) -> None:
        super().__init__(
            f"{backend} does not answer: {reason}",
            next="check the server, then try again",
            reason=reason,
            backend=backend,
            retry_after=5,
        )
