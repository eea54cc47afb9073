"""Why a part of a page cannot be shown, or what was typed is not taken; and what the owner does about an error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from notebook_sync import errors
from notebook_sync.errors import NotebookError, UsageError
from notebook_sync.surfaces.errors import kind_of

_MESSAGE: Final = "do what the message says, then load this page again"
_LATER: Final = "try again in a few seconds; if it stays so, see what notebook-sync status says of the store"
# The first that fits counts; any other error has the same advice for all.
_ADVICE: Final[tuple[tuple[type[Exception], str], ...]] = (
    (errors.LlmNotConfigured, "change notebook.toml, start notebook-sync serve again, and ask once more"),
    (errors.ConfigError, "change notebook.toml, and start notebook-sync serve again"),
    (errors.NotANotebook, "start notebook-sync serve in the folder of a notebook"),
    (errors.EditFailed, "load the page again, and choose the place anew"),
    (errors.NotPermitted, "this is not for a browser to do; use the command line"),
    (errors.Conflict, "load the page again, and repeat it on what the file says now"),
    (errors.OverCap, "take out an entry that is no longer needed, and try it again"),
    (errors.NoSuchFact, "go back to the facts, and look for it there; it may have been reworded"),
    (errors.NoSuchCheckpoint, "go back to the checkpoints: those that are kept are listed there"),
    (errors.NoSuchNote, "look for it among the notes; it may have been renamed or deleted"),
    (errors.LlmNonsense, "nothing was changed; ask once more, or name another model in notebook.toml"),
    (errors.LlmDown, "nothing was changed; see that the model's server runs, and ask once more"),
    (errors.RootLost, "see that the notebook's folder is there; the files are not touched meanwhile"),
    (errors.BackendDown, _LATER),
    (UsageError, "correct what was typed, and try it again"),
    (errors.UnsafePath, "use a plain path below the notebook, like pages/plan.md"),
    (errors.TooLarge, "shorten the text, or split it into several notes"),
    (errors.UnreadableFile, "see to the file with an editor, then load this page again"),
    (errors.UnwritableFile, "see that the file may be written and the disk has room, and try it again"),
    (errors.GitFailed, "see what git says in the notebook's folder, and try it again"),
    (errors.Refused, _MESSAGE),
)


@dataclass(frozen=True, slots=True)
class Trouble:
    """`status` is that of the page: 200 where only a part of it is missing."""

    said: str
    next_step: str
    status: int = 200


def advice_for_owner(error: Exception) -> str:
    """What the one who looks at a page does next. `kind_of` has what a program is told."""
    return next((advice for kind, advice in _ADVICE if isinstance(error, kind)), _MESSAGE)


def trouble_of(error: NotebookError) -> Trouble:
    """A store that is away costs its part of a page; what was asked wrongly is the answer."""
    kind = kind_of(error)
    # A call that is wrong says itself how it would be right; what programs are told besides helps nobody who reads.
    next_step = "" if type(error) is UsageError else advice_for_owner(error)
    return Trouble(str(error), next_step, kind.status if isinstance(error, UsageError) else 200)
