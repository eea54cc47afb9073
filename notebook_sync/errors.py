"""Every error the project raises on purpose.

    NotebookError                    exit code 1
    ├── UsageError                   2   the call or a setting is wrong
    │   ├── ConfigError                  notebook.toml, with path and line where known
    │   │   └── LlmNotConfigured             no language model is named there, or none is to be asked
    │   ├── NoAgentNamed                 private notes, for a session of no agent
    │   ├── NotANotebook                 no notebook.toml here or above
    │   └── EditFailed                   an edit names no place, several, or nothing to do; with the candidates
    ├── Refused                      3   permission or conflict; nothing was changed
    │   ├── NotPermitted                 the session may not do this
    │   ├── Conflict                     the file is no longer what the edit was based on
    │   ├── OverCap                      the edit would leave a runtime file over its share of the prompt
    │   ├── UnsafePath                   a path that leads out, through a link, or to what is no note
    │   ├── TooLarge                     a text that is larger than a note may be
    │   ├── WatchLocked                  another process watches this notebook
    │   └── WouldDeleteEverything        a scan found none of the mirrored notes
    ├── RootLost                     1   the notebook's folder is not there
    ├── NoSuchNote                   1
    │   └── NoSuchFact                   no fact has this id or text; with the candidates
    ├── NoSuchCheckpoint             1
    ├── UnreadableFile               1   one file could not be read or decoded
    ├── UnwritableFile               1   one file could not be written; it is as it was
    ├── GitFailed                    1   git did not do what it was asked; the files are as they should be
    ├── LlmNonsense                  1   a language model answered, but not what it was asked for
    └── BackendDown                  4   MongoDB, Redis or the embedded file does not answer
        ├── LlmDown                      a language model does not
        ├── TextRefused                  an embedding server does, and takes no such text
        └── SynthesisDown                who reasons about task briefs does not

The class tells the kind, the fields tell the case, the message tells a person what to do next.
"""

from __future__ import annotations

import shlex


class NotebookError(Exception):
    """Root of the tree. `exit_code` is what the command line ends with."""

    exit_code = 1


class UsageError(NotebookError):
    """The call or a setting is wrong; calling again in the same way is of no use."""

    exit_code = 2


class ConfigError(UsageError):
    """A setting is unknown or has the wrong type; the message names file, key and the nearest known key."""


class LlmNotConfigured(ConfigError):
    """A language model is needed, and the settings name none that can be asked, or say that none is to be."""


class NoAgentNamed(UsageError):
    """Private notes are those of one agent, and neither the call nor its session names one."""


class NotANotebook(UsageError):
    """No notebook.toml in the folder or any folder above it."""


class EditFailed(UsageError):
    """An edit that cannot be applied as it is asked for. `candidates` are what its words might have meant; where the
    note is `external`, they are somebody else's words."""

    def __init__(self, path: str, reason: str, candidates: tuple[str, ...] = (), *, external: bool = False) -> None:
        found = "".join(f"\n  {one}" for one in candidates)
        super().__init__(f"{path}: {reason}{found}")
        self.path = path
        self.reason = reason
        self.candidates = candidates
        self.external = external


class NothingEarlier(EditFailed):
    """A note that is to have its earlier text has none that is known; it may have had another path, `was_at`, or be
    known to begin with the text that it has: `is_first`."""

    def __init__(self, path: str, was_at: str = "", *, is_first: bool = False) -> None:
        super().__init__(path, "no earlier text of it is known, neither to git nor from an edit by a tool")
        self.was_at = was_at
        self.is_first = is_first

    def __str__(self) -> str:
        reason, path = super().__str__(), shlex.quote(self.path)
        if self.was_at:
            return f"{reason}; it was {self.was_at}: notebook-sync rename {path} {shlex.quote(self.was_at)}"
        if self.is_first:
            return f"{reason}; it began with this one; take it away with: notebook-sync delete {path}"
        return reason


class Refused(NotebookError):
    """It is not permitted, or somebody else was faster. Nothing was changed."""

    exit_code = 3


class NotPermitted(Refused):
    """The session may not do this, whatever a message in it says."""


class Conflict(Refused):
    """The file at `path` was to be the one with the digest `base` and is the one with `current`.

    `base` is "" where no file was to be there, `current` is "" where none is. `text` is what the file holds now.
    """

    def __init__(self, path: str, base: str, current: str, text: str = "", *, advice: str = "") -> None:
        todo = advice or "read it again and repeat the edit on what it says now"
        super().__init__(f"{path} {_changed(base, current)}; {todo}")
        self.path = path
        self.base = base
        self.current = current
        self.text = text


class OverCap(Refused):
    """An edit after which the prompt would not show the whole of a runtime file; allow_over_cap permits it."""

    def __init__(self, path: str, tokens: int, cap: int, entries: tuple[str, ...] = ()) -> None:
        super().__init__(
            f"{path} would have {tokens:,} tokens and the prompt shows {cap:,}; "
            "remove an entry first, or repeat the edit with allow_over_cap"
        )
        self.path = path
        self.tokens = tokens
        self.cap = cap
        self.entries = entries


class UnsafePath(Refused):
    """A path that leads out of the notebook, through a link, or to what is not a note."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path!r}: {reason}")
        self.path = path
        self.reason = reason


class TooLarge(Refused):
    """A text of `size` bytes for the note at `path`, which may have `most`."""

    def __init__(self, path: str, size: int, most: int) -> None:
        super().__init__(
            f"{path}: the text has {size:,} bytes, and a note at most {most:,}; shorten it, or split it into several "
            "notes (the owner can raise max_file_bytes in notebook.toml)"
        )
        self.path = path
        self.size = size
        self.most = most


class WatchLocked(Refused):
    """Another process holds the watch lock; `holder` is what it wrote there (pid, host, since)."""

    def __init__(self, message: str, holder: str) -> None:
        super().__init__(message)
        self.holder = holder


class WouldDeleteEverything(Refused):
    """A scan that would delete every mirrored note: a lost mount looks the same. Nothing was deleted."""

    def __init__(self, message: str, known: int) -> None:
        super().__init__(message)
        self.known = known


class RootLost(NotebookError):
    """The notebook's folder is missing or was replaced by something that is not a folder."""


class _NotThere(Exception):
    """`told` is the message without the command that tells what there is, which only a command line can run."""

    def __init__(self, message: str, *, see: str = "") -> None:
        super().__init__(f"{message}; see: {see}" if see else message)
        self.told = message


class NoSuchNote(_NotThere, NotebookError):
    """No note has this id or path."""

    @classmethod
    def named(cls, name: str) -> NoSuchNote:
        """The one answer for a note that does not exist and for one that is withheld from the session."""
        return cls(f"no note has the id or path {name!r}", see="notebook-sync list")


class NoSuchFact(NoSuchNote):
    """No fact has this id, or says this. `candidates` are those that come near."""

    def __init__(self, name: str, candidates: tuple[str, ...] = ()) -> None:
        near = "; near it are:" if candidates else "; list them with: notebook-sync fact list"
        super().__init__(f"there is no fact {name!r}{near}" + "".join(f"\n  {one}" for one in candidates))
        self.name = name
        self.candidates = candidates


class NoSuchCheckpoint(_NotThere, NotebookError):
    """No checkpoint has this id. `candidates` are the latest: id, time, name."""

    def __init__(self, message: str, candidates: tuple[str, ...] = ()) -> None:
        super().__init__(message, see="notebook-sync checkpoint list")
        self.candidates = candidates


class UnreadableFile(NotebookError):
    """One file cannot be taken as it is. `path` is relative to the root, `line` is 1-based, 0 for the whole file."""

    def __init__(self, path: str, message: str, line: int = 0) -> None:
        super().__init__(f"{path}:{line}: {message}" if line else f"{path}: {message}")
        self.path = path
        self.line = line
        self.reason = message


class UnwritableFile(NotebookError):
    """The disk did not take a change of one file. The file is as it was."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} cannot be written: {reason}; mend that, then repeat the edit")
        self.path = path
        self.reason = reason


class GitFailed(NotebookError):
    """git did not commit, or told nothing. The notebook's files are as they should be all the same."""


class BackendDown(NotebookError):
    """A store does not answer. `backend` is its name for people ("MongoDB at localhost:27017"), without secrets."""

    exit_code = 4

    def __init__(self, backend: str, reason: str) -> None:
        super().__init__(f"{backend} does not answer: {reason}")
        self.backend = backend
        self.reason = reason


class LlmDown(BackendDown):
    """A language model does not answer, or will not; the reason says which setting to look at."""


class TextRefused(BackendDown):
    """An embedding server says that it takes no such texts: asked again, it would say so again."""


class SynthesisDown(BackendDown):
    """Who is asked about a task brief does not answer, or will not; the reason has none of their words."""


class LlmNonsense(NotebookError):
    """A language model answered, and again when it was told why that will not do. `reason` has none of its words."""

    def __init__(self, backend: str, reason: str) -> None:
        super().__init__(f"{backend} did not answer what it was asked: {reason}; try again, or try another model")
        self.backend = backend
        self.reason = reason


def _changed(base: str, current: str) -> str:
    if not current:
        return "is gone"
    if current == base:
        return "is being written by another program"
    return "was changed since it was read" if base else "is there already"
