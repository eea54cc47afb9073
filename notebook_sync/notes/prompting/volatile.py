"""What a prompt shows on request behind its files: recent notes, facts, an agent's own notes, a task.

The mirror only tells which notes are recent; what they say is read from their files. Nothing of another agent's
channel gets in, and what the owner did not write stands in a fence.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Literal, get_args

from notebook_sync.errors import BackendDown, UnreadableFile, UsageError
from notebook_sync.files.note import Note
from notebook_sync.files.provenance import is_external
from notebook_sync.files.vault import Vault
from notebook_sync.notes.prompting.sources import PromptFiles
from notebook_sync.sessions import Session
from prompt import Volatile, fence_external, quote, trim
from prompt.counts import Counter
from prompt.hidden import visible

if TYPE_CHECKING:
    from notebook_sync.notes.prompting.fact_choice import Weigh

Include = Literal["refs", "facts", "notes"]
INCLUDES: tuple[Include, ...] = get_args(Include)
FACTS = "facts/notes.md"
LIMIT_OF_REFS = 12

_NOTES = 5
_NOTE_TOKENS = 400
_ID, _TITLE, _SUMMARY = 512, 120, 200
# Of a section of the volatile part beside its pieces: its heading and blank lines. Of a piece: the seam to the next.
_SECTION_TOKENS = 16
_SEAM_TOKENS = 2
# Less shows nothing of a text but that it is cut.
_LEAST_TOKENS = 60


@dataclass(frozen=True, slots=True)
class Wish:
    """What a prompt is to have behind its files. `recent` gives paths of notes, the newest first, or BackendDown;
    `weigh` what facts count for, or BackendDown."""

    include: tuple[str, ...] = ()
    task: str = ""
    recent: Callable[[], Sequence[str]] = tuple
    weigh: Weigh | None = None

    def checked(self, session: Session) -> Wish:
        """The wish with each name once. Raises UsageError for a name that is not known, and for notes of nobody."""
        for name in self.include:
            if name not in INCLUDES:
                raise UsageError(f"there is no part {name!r} to include; use {', '.join(INCLUDES)}")
        if "notes" in self.include and not session.agent:
            raise UsageError("notes are those of one agent; name it, as in: --include notes --agent scribe")
        return replace(self, include=tuple(dict.fromkeys(self.include)), task=self.task.strip())


@dataclass(frozen=True, slots=True)
class Gathered:
    """The texts for a prompt, and what was left out of them, and why, for people."""

    volatile: Volatile
    problems: tuple[str, ...]


class Gathering:
    """Gathers texts for one prompt, in at most `room` tokens: of several, the first that fit.

    `elsewhere` are paths of which the prompt's settings say who sees them, so that they are never shown here.
    """

    def __init__(
        self,
        vault: Vault,
        files: PromptFiles,
        elsewhere: Collection[str],
        now: datetime,
        count: Counter,
        room: int,
    ) -> None:
        self._vault = vault
        self._files = files
        self._elsewhere = elsewhere
        self._now = now
        self._counter = count
        self._room = room
        self._problems: list[str] = []

    def _count(self, text: str) -> int:
        """The tokens of a text as the prompt shows it."""
        return self._counter(quote(text))

    def gather(self, wish: Wish, session: Session, cap: int) -> Gathered:
        """What `wish` asks for, as far as the session may see it, the most valuable first. `cap` is that of a file."""
        brief = self._task(wish.task, session) if wish.task else ""
        facts = self._facts(cap, wish.weigh) if "facts" in wish.include else ""
        notes = self._notes(session) if "notes" in wish.include else ""
        refs = self._refs(wish.recent) if "refs" in wish.include else ""
        return Gathered(Volatile(refs=refs, facts=facts, notes=notes, brief=brief), tuple(self._problems))

    def _task(self, task: str, session: Session) -> str:
        """The task as it is: what of it does not fit is the prompt's to cut."""
        text = fence_external(task, "the task of an external session") if session.kind == "external" else task
        self._room -= self._count(text) + _SECTION_TOKENS
        return text

    def _facts(self, cap: int, weigh: Weigh | None) -> str:
        if FACTS in self._elsewhere:
            return ""
        source = self._files.read(FACTS)
        if source.problem:
            self._problems.append(f"{FACTS}: {source.problem}")
        raw = source.content or b""
        room = min(cap, self._room - 2 * _SECTION_TOKENS)
        if weigh is not None and self._count(self._visible(raw)) > room:
            raw = self._most_important(raw, room, weigh)
        text = self._shown(FACTS, raw, room)
        return "".join(self._that_fit("facts", [_fenced(text, FACTS, source.content or b"")]))

    def _most_important(self, raw: bytes, room: int, weigh: Weigh) -> bytes:
        """The file with the facts that count for most; as it is where nobody knows which."""
        from notebook_sync.notes.prompting.fact_choice import chosen  # a file that fits needs none of it

        def tokens_of(text: str) -> int:
            return self._count(self._visible(text.encode()))

        try:
            return chosen(raw.decode(errors="replace"), FACTS, room, tokens_of, weigh).encode()
        except BackendDown as error:
            self._problems.append(f"facts: not the most important ones, for {error}")
            return raw

    def _notes(self, session: Session) -> str:
        if session.kind == "external":
            self._problems.append("notes: left out, for an external session reads no channel")
            return ""
        stamps = self._vault.scan([f"channels/{session.agent}"]).seen
        newest = sorted(stamps, key=lambda path: (-stamps[path].mtime_ns, path))
        shown = ((path, raw, self._shown(path, raw, _NOTE_TOKENS)) for path, raw in self._readable(newest))
        told = (_note(path, raw, text) for path, raw, text in shown if text)
        return "\n\n".join(self._that_fit("notes", islice(told, _NOTES)))

    def _refs(self, recent: Callable[[], Sequence[str]]) -> str:
        from notebook_sync.files.parse import parse  # no other part of a prompt needs YAML

        try:
            paths = recent()
        except BackendDown as error:
            self._problems.append(f"refs: left out, for {error}")
            return ""
        refs = ((path, raw, parse(path, raw, encoding=self._counter.encoding)) for path, raw in self._readable(paths))
        told = (_fenced(_ref(note), path, raw) for path, raw, note in refs)
        return "\n".join(self._that_fit("refs", told))

    def _readable(self, paths: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Files that are there, and of which nothing else decides who sees them."""
        for path in paths:
            if path not in self._elsewhere:
                with suppress(FileNotFoundError, UnreadableFile):
                    yield path, self._vault.read(path)[0]

    def _shown(self, path: str, raw: bytes, cap: int) -> str:
        """What a model is shown of a file, cut to `cap` tokens."""
        return trim(self._visible(raw), max(cap, _LEAST_TOKENS), self._count, path=path).text

    def _visible(self, raw: bytes) -> str:
        return visible(raw.decode(errors="replace"), now=self._now).text.strip()

    def _that_fit(self, kind: Include, texts: Iterable[str]) -> Iterator[str]:
        room = self._room - _SECTION_TOKENS
        for text in texts:
            if not text:
                continue
            tokens = self._count(text) + _SEAM_TOKENS
            if tokens > room:
                self._problems.append(f"{kind}: not all of them fit in the prompt; raise its max_tokens")
                return
            room -= tokens
            self._room = room
            yield text


def _fenced(text: str, path: str, raw: bytes) -> str:
    """The text, in a fence where the file at `path` holds what the owner did not write."""
    return fence_external(text, path) if text and is_external(raw) else text


def _note(path: str, raw: bytes, text: str) -> str:
    """A note under its path. It is quoted, so that nothing in it looks like the path of another note."""
    return fence_external(text, path) if is_external(raw) else f"`{path}`\n\n{quote(text)}"


def _ref(note: Note) -> str:
    """A note on one line: enough to know that it exists and what it is about."""
    told = f"- {_bounded(note.title, _TITLE)} (`{_bounded(note.wants, _ID)}`, {note.status})"
    summary = _bounded(note.summary, _SUMMARY)
    return f"{told}: {summary}" if summary else told


def _bounded(text: str, length: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"
