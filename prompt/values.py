"""What goes into a prompt and what comes out, as values, and what can go wrong. Nothing here decides or reads anything.

Most are named tuples, which a program that starts makes eight times faster than dataclasses.

The text of a file is never a reason for an error: any text gives a prompt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

Session = Literal["owner", "task", "external"]
SESSIONS: tuple[Session, ...] = ("owner", "task", "external")
# System files are an agent's own instructions: they are cut after the notebook's files.
SYSTEM_PRIORITY = 9
Reason = Literal["cap", "comment", "expired", "frontmatter", "payload", "quarantined", "upcoming"]


class FileText(NamedTuple):
    """All that this package knows of a file: its path and the bytes its caller read, None for a missing file.

    `problem` is set when the file cannot be shown as it is now and `content` is its last good version; it is passed on
    in the prompt's `problems`. `found` are then the bytes that are there now, if they could be read: only `explain`
    looks at them. `external` marks text that the owner did not write: the stable part never shows it.
    """

    path: str
    content: bytes | None
    problem: str = ""
    found: bytes | None = None
    external: bool = False

    @property
    def text(self) -> str:
        """The content as text, "" for a missing file."""
        return (self.content or b"").decode(errors="replace")


class PromptFile(NamedTuple):
    """One file that the prompt shows. Without a heading, its tag names its path; a higher priority is cut later.

    `max_tokens` 0 means `PromptSettings.max_tokens_per_file`. An `optional` file that is missing leaves no trace.
    """

    path: str
    heading: str = ""
    max_tokens: int = 0
    priority: int = 5
    sessions: tuple[str, ...] = SESSIONS
    optional: bool = False


RUNTIME_FILES = (
    PromptFile("runtime/external-communications.md", "External Communications Rules"),
    PromptFile("runtime/reminders.md", "Reminders"),
    PromptFile("runtime/standing-orders.md", "Standing Orders"),
)
CORE_FACTS = PromptFile("facts/core.md", "Core Facts", optional=True)


@dataclass(frozen=True, slots=True)
class PromptSettings:
    """The layout of the prompt and its limits, in tokens of `encoding`.

    The order is `system_files`, `directive`, `runtime_files`, `files`, `core_facts`; paths in `order` come before the
    other files, after the directive. `directive` is a text, or a function of the session and of the paths of the files
    whose tags do not name them. An entry of `files` for a file that is shown anyway does not show it twice: it sets the
    file's heading (if it has one), cap, priority and sessions. Raises ValueError if `files` names a path twice.

    `max_tokens` is for the whole prompt. An eighth of it is kept for the volatile part even if there is none, so that
    the stable part never depends on it; the volatile part may use all that the stable part leaves.
    """

    system_files: tuple[str, ...] = ()
    directive: str | Callable[[Session, Sequence[str]], str] = ""
    runtime_files: tuple[PromptFile, ...] = RUNTIME_FILES
    files: tuple[PromptFile, ...] = ()
    core_facts: PromptFile = CORE_FACTS
    order: tuple[str, ...] = ()
    max_tokens_per_file: int = 2000
    max_tokens: int = 16_000
    encoding: str = "cl100k_base"

    def __post_init__(self) -> None:
        twice = [path for path, times in Counter(file.path for file in self.files).items() if times > 1]
        if twice:
            raise ValueError(f"PromptSettings.files names {twice[0]} more than once; keep one entry for each file")

    @property
    def shown_files(self) -> tuple[PromptFile, ...]:
        """Every file of the stable part, each once, in the order in which they are shown."""
        system = [PromptFile(path, priority=SYSTEM_PRIORITY) for path in self.system_files]
        usual = {file.path: file for file in (self.core_facts, *self.runtime_files, *system)}
        own = {file.path: file for file in self.files}
        added = [file for file in self.files if file.path not in usual]
        place = {path: number for number, path in enumerate(self.order)}
        rest = sorted((*self.runtime_files, *added, self.core_facts), key=lambda file: place.get(file.path, len(place)))
        shown = {file.path: usual.get(file.path, file) for file in (*system, *rest)}
        files = ((own.get(path, file), file) for path, file in shown.items())
        return tuple(
            file._replace(heading=file.heading or usual.heading, optional=usual.optional) for file, usual in files
        )


class Entry(NamedTuple):
    """One text of a volatile section. `source` says who wrote it if the owner did not: the text is then fenced.

    Entries with a lower `rank` are given room first; equal ones in the order of the section.
    """

    text: str
    source: str = ""
    rank: float = 0


class VolatileSection(NamedTuple):
    """A heading and its entries, shown in this order. Sections with a higher `priority` are given room first."""

    heading: str
    entries: tuple[Entry, ...]
    priority: int = 0


class Volatile(NamedTuple):
    """The part of the prompt that may differ at each call, shown after the stable part in this order.

    `today` is the day in words, such as "Tuesday, 2026-03-03"; it comes first and is left out if it is empty.
    """

    sections: tuple[VolatileSection, ...] = ()
    today: str = ""


class Gap(NamedTuple):
    """A range `[start, end)` of a text, in characters, that is left out or shown as `shown`, and the reason."""

    start: int
    end: int
    reason: Reason
    shown: str = ""


class Omission(NamedTuple):
    """What the cap took from one section (anchor "" for the text above the first heading): its size."""

    anchor: str
    heading: str
    entries: int
    tokens: int


class Expired(NamedTuple):
    """A list item whose `until` date is past: its 1-based line in the file, its first line, and the date."""

    line: int
    text: str
    until: str


class Part(NamedTuple):
    """One file of the prompt. `tokens_raw` counts the file as it is, `tokens` the `text` that is shown of it.

    `whole` is what the session would see without a cap, in `tokens_whole` tokens, and `cut` are the ranges
    `[start, end)` of it that the cap took. `digest` is the SHA-256 of the bytes, "" for a missing file. `gaps` are in
    characters of the decoded file. `closing` is the line below the text that closes a fence or HTML block left open.
    """

    name: str
    path: str
    digest: str
    tokens_raw: int
    tokens: int
    cap: int
    text: str
    omitted: tuple[Omission, ...] = ()
    expired: tuple[Expired, ...] = ()
    gaps: tuple[Gap, ...] = ()
    problem: str = ""
    tokens_whole: int = 0
    whole: str = ""
    cut: tuple[tuple[int, int], ...] = ()
    closing: str = ""

    def as_json(self) -> dict[str, Any]:
        """The stable JSON shape of a part."""
        return {
            "name": self.name,
            "path": self.path,
            "digest": self.digest,
            "tokens_raw": self.tokens_raw,
            "tokens": self.tokens,
            "cap": self.cap,
            "omitted": [{"anchor": o.anchor, "heading": o.heading, "tokens": o.tokens} for o in self.omitted],
            "expired": [{"line": e.line, "text": e.text, "until": e.until} for e in self.expired],
        }


class Prompt(NamedTuple):
    """An assembled prompt. `text` begins with `stable`, and `revision` is the SHA-256 of `stable`, in hex.

    `filtered` are the paths that this session does not see; `problems` are for people, never for the model. `tokens`
    counts `text` in `encoding`.
    """

    text: str
    stable: str
    tokens: int
    revision: str
    session: Session
    parts: tuple[Part, ...]
    filtered: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    encoding: str = "cl100k_base"

    def as_json(self) -> dict[str, Any]:
        """The stable JSON shape of the command `prompt`."""
        return {
            "text": self.text,
            "tokens": self.tokens,
            "revision": self.revision,
            "session": self.session,
            "parts": [part.as_json() for part in self.parts],
            "problems": list(self.problems),
        }


class PromptError(Exception):
    """Root of the package's errors."""


class PromptTooSmall(PromptError):
    """`max_tokens` has no room for one line of each file; a total of `enough` has.

    `fits` is a text within `max_tokens`: one line for each file that it has room for, those of high priority first.
    """

    def __init__(self, max_tokens: int, enough: int, fits: str) -> None:
        super().__init__(
            f"prompt.max_tokens = {max_tokens} is too small for the files of the prompt; set it to {enough} or more"
        )
        self.max_tokens = max_tokens
        self.enough = enough
        self.fits = fits


class VocabularyMissing(PromptError):
    """The vocabulary of `encoding` is not on this machine; counting would need the network or a guess."""

    def __init__(self, encoding: str, reason: str) -> None:
        super().__init__(
            f"the vocabulary of the encoding {encoding!r} is not available offline ({reason}); "
            'set prompt.encoding = "cl100k_base", which is built in, '
            "or put the vocabulary into the folder that TIKTOKEN_CACHE_DIR names"
        )
        self.encoding = encoding
        self.reason = reason
