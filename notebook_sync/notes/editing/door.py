"""The one door by which tools change notes: files first, all or none of them; then mirror, git and the event log.

Once the files are written nothing that fails behind them takes them back: it is told as a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from threading import Lock, Timer
from typing import TYPE_CHECKING, Generic, TypeVar

from notebook_sync.errors import GitFailed, NotebookError, NotPermitted, UnwritableFile
from notebook_sync.events import Events
from notebook_sync.files.branch import branch_of
from notebook_sync.files.commits import commit
from notebook_sync.files.note import Stamp
from notebook_sync.files.provenance import is_external
from notebook_sync.files.vault import Vault
from notebook_sync.notes.editing.authors import Authors
from notebook_sync.notes.editing.locks import NoteLocks
from notebook_sync.notes.editing.past import NOT_KEPT, Past, Together
from notebook_sync.sessions import PROGRAM, Session
from notebook_sync.settings import GitSettings

if TYPE_CHECKING:
    from notebook_sync.files.edits import Edit
    from notebook_sync.notes.prompting.trust import Trust

KEEPS_PROVENANCE = (
    "Only the owner takes the mark `provenance: external` from a note, or brings back a version without it"
)
_MOST_NAMED = 3

_Made = TypeVar("_Made")
# By path, the version of each note as it is mirrored, None for one that is gone; and why some are not in step, "" when
# all are. Empty where the mirror does not answer.
Mirrored = tuple[Mapping[str, int | None], str]
# By path, the stamp of what was written there, None for what was taken away.
Stamps = Mapping[str, Stamp | None]
Mirror = Callable[[Stamps, Mapping[tuple[str, str], str]], Mirrored]


@dataclass(frozen=True, slots=True)
class Text:
    """What the note at `path` is to say instead of what it says; None where it is not there, or is not to be.
    Of one change, the texts that are each `as_one` are taken back as one, too.

    `action`, `section` and `reason` are for the commit and the event; `told` is one line on what was done, where action
    and section say too little. `moved_from` is the path at which the very note stands: its file is given this one, and
    the text beside this that takes the old path away says so to the commit and the event alone. `edits` are those that
    made it of `before`, where it was made so.
    """

    path: str
    before: bytes | None
    after: bytes | None
    action: str
    section: str = ""
    reason: str = ""
    told: str = ""
    moved_from: str = ""
    as_one: bool = False
    edits: tuple[Edit, ...] = ()

    @property
    def changes(self) -> bool:
        """Whether there is anything to write."""
        return self.before != self.after


@dataclass(frozen=True, slots=True)
class Entered:
    """What became of texts whose files are written. `versions` by path, as the mirror counts them."""

    versions: Mapping[str, int | None] = field(default_factory=dict)
    commit: str | None = None
    warnings: tuple[str, ...] = ()


class Door:
    """Writes for one notebook; `folder` is its `.notebook`.

    `mirror(stamps, authors)` brings the rows of notes that were written in step, and raises nothing; `authors` are who
    wrote them, by path and digest. Where it takes longer than `patience` seconds, the notes are unlocked meanwhile.
    With `trust`, what an owner session writes is trusted, and no commit holds what waits for trust.
    """

    def __init__(
        self,
        vault: Vault,
        folder: Path,
        events: Events,
        git: GitSettings,
        authors: Authors,
        mirror: Mirror,
        patience: float,
        trust: Trust | None = None,
    ) -> None:
        self._vault = vault
        self._past = Past(folder)
        self._locks = NoteLocks(folder)
        self._events = events
        self._git = git
        self._authors = authors
        self._mirror = mirror
        self._patience = patience
        self._trust = trust
        self._late: set[object] = set()  # writers whom the mirror keeps waiting for longer than that

    def lock(self, paths: Collection[str]) -> AbstractContextManager[None]:
        """Keep other tools from these notes while they are read, changed and entered: so each write is made on what
        the last one left, and is a version of its own. Raises Refused where another tool holds one for too long."""
        return self._locks.hold(paths)

    def enter(self, texts: Sequence[Text], session: Session, kind: str = "edit") -> Entered:
        """Write what changes, or nothing at all. `kind` is that of the events.

        Raises Refused as `lock`, Conflict where a note no longer says what its text's `before` does, NotPermitted where
        anybody but the owner would lower a note's provenance, UnwritableFile where what a note says would be nowhere
        any more, and otherwise as `Vault.write`.
        """
        changing = [text for text in texts if text.changes]
        if not changing:
            return Entered()
        for one in changing:
            if session.kind != "owner" and lowers_provenance(one.before, one.after):
                self._events.record("refused", session, tool=one.action, path=one.path, reason=KEEPS_PROVENANCE)
                raise NotPermitted(KEEPS_PROVENANCE)
        with self.lock([one.path for one in changing]):
            return self._enter(changing, session, kind)

    def _enter(self, changing: Sequence[Text], session: Session, kind: str) -> Entered:
        trusted = {
            one.path: trusted_after(self._trust, one, session, kind)
            for one in changing
            if self._trust and one.path in self._trust.paths
        }
        warnings = self._keep_before(changing)
        stamps = self._write(changing, session)
        waiting, untrusted = self._accept([one for one in changing if one.path in trusted], trusted, session, kind)
        warnings += untrusted
        together = {one.path: (digest_of(one.before), digest_of(one.after)) for one in changing if one.as_one}
        for one in changing:
            with_others = together if one.as_one and len(together) > 1 else {}
            self._keep(one.path, one.after, session.changed_by, _told(one), one, with_others)
        wrote = {(one.path, digest_of(one.after)): session.changed_by for one in changing}
        committing = _Once(lambda: self._commit([one for one in changing if one.path not in waiting], session))
        with self._locked_while_prompt(committing):
            versions, trouble = self._bring_in_step(stamps, wrote)
        if trouble:
            warnings.append(f"saved; the mirror follows when it can: {trouble}")
        revision, trouble = committing()
        if trouble:
            warnings.append(trouble)
        for one in changing:
            self._events.record(
                kind,
                session,
                path=one.path,
                action=one.action,
                section=one.section,
                reason=one.reason,
                digest=digest_of(one.after),
                version=versions.get(one.path),
                commit=revision,
            )
        return Entered(versions, revision, tuple(warnings))

    @contextmanager
    def _locked_while_prompt(self, finish: Callable[[], object]) -> Iterator[None]:
        """Keep the notes locked meanwhile, but not for as long as a silent mirror takes to fail: then `finish` is
        called and the notes are unlocked before the end."""
        release, writer = self._locks.releaser(), object()

        def be_late() -> None:
            self._late.add(writer)
            try:
                finish()
            finally:
                release()

        timer = Timer(0 if self._late else self._patience, be_late)
        timer.daemon = True
        with suppress(RuntimeError):  # a program that ends starts no more threads; what is written is written
            timer.start()
        try:
            yield
        finally:
            timer.cancel()
            if timer.ident is not None:
                timer.join()
            self._late.discard(writer)

    def _commit(self, texts: Sequence[Text], session: Session) -> tuple[str | None, str]:
        """The commit, None for none; why there is none, "" where there is nothing to tell."""
        if self._git.commit == "off" or not texts:
            return None, ""
        try:
            changes = {one.path: one.after for one in texts}
            return commit(self._vault.root, changes, message_for(texts, session), author=self._git.author or None), ""
        except GitFailed as failure:
            return None, f"saved, but not committed: {failure}"

    def _accept(
        self, texts: Sequence[Text], trusted: Mapping[str, bytes | None], session: Session, kind: str
    ) -> tuple[Collection[str], list[str]]:
        """Keep what is trusted of what the owner wrote; the paths of which something waits, and warnings of that."""
        waiting: set[str] = set()
        warnings: list[str] = []
        for one in texts:
            version = trusted[one.path]
            try:
                if self._trust and is_owners(one, session, kind) and (version is not None or one.after is None):
                    self._trust.accept(one.path, version)
            except (OSError, GitFailed) as error:
                waiting.add(one.path)
                warnings.append(f"{one.path} is saved and waits for trust: {error}")
            if self._trust and not self._trust.same(version, one.after):
                waiting.add(one.path)
                warnings.append(f"lines of {one.path} wait for trust: notebook-sync trust {one.path}")
        return waiting, warnings

    def _write(self, texts: Sequence[Text], session: Session) -> Stamps:
        stamps: dict[str, Stamp | None] = {}
        written: list[Text] = []
        left = {text.moved_from for text in texts}
        try:
            for text in texts:
                if text.path in left:
                    continue
                if text.moved_from:
                    stamps |= self._move(text.moved_from, text.path, digest_of(text.after), session)
                else:
                    stamps[text.path] = self._write_one(text.path, text.before, text.after, session)
                written.append(text)
        except BaseException:
            self._put_back(written, session)
            raise
        return stamps

    def _write_one(self, path: str, before: bytes | None, after: bytes | None, session: Session) -> Stamp | None:
        if after is None and before is None:
            return None
        self._authors.announce(path, digest_of(after), session.changed_by)
        try:
            if after is None:
                self._vault.delete(path, base=digest_of(before))
                return None
            return self._vault.write(path, after, base=None if before is None else digest_of(before))
        except BaseException:
            self._authors.forget(path, digest_of(after))
            raise

    def _move(self, old: str, new: str, digest: str, session: Session) -> Stamps:
        """Give the note's file its other path in one step, so that nobody sees it at both, or at none."""
        for path, there in ((new, digest), (old, "")):
            self._authors.announce(path, there, session.changed_by)
        try:
            return {new: self._vault.rename(old, new, base=digest), old: None}
        except BaseException:
            for path, there in ((new, digest), (old, "")):
                self._authors.forget(path, there)
            raise

    def _put_back(self, written: Sequence[Text], session: Session) -> None:
        """What somebody has built on meanwhile stays, as theirs, and an event tells of it."""
        stamps: dict[str, Stamp | None] = {}
        wrote = {}
        for text in reversed(written):
            try:
                if text.moved_from:
                    stamps |= self._move(text.path, text.moved_from, digest_of(text.after), session)
                    wrote[text.moved_from, digest_of(text.after)] = session.changed_by
                else:
                    stamps[text.path] = self._write_one(text.path, text.after, text.before, session)
                wrote[text.path, digest_of(text.before)] = session.changed_by
            except NotebookError as error:
                self._events.record("batch", session, path=text.path, reason=f"could not be put back: {error}")
            self._authors.forget(text.path, digest_of(text.after))
        if stamps:
            self._bring_in_step(stamps, wrote)

    def _bring_in_step(self, stamps: Stamps, wrote: Mapping[tuple[str, str], str]) -> Mirrored:
        """Mirror what was written. Who wrote it need then be told to nobody else."""
        versions, trouble = self._mirror(stamps, wrote)
        for path, digest in wrote:
            if path in versions and (versions[path] is None) == (digest == ""):
                self._authors.forget(path, digest)
        return versions, trouble

    def _keep_before(self, changing: Sequence[Text]) -> list[str]:
        """Keep what the notes say; what is to be told where neither that can be done nor the last commit has it. Raises
        UnwritableFile where a note goes of which nothing would be left."""
        failed = [(one, why) for one in changing if (why := self._keep(one.path, one.before, "owner", ""))]
        if not failed:
            return []
        uncommitted = self._uncommitted({one.path: one.before for one, _ in failed})
        staying = {one.after for one in changing}  # a note that is renamed says it at its other path
        lost = [(one, why) for one, why in failed if one.path in uncommitted]
        for one, why in lost:
            if one.after is None and one.before not in staying:
                reason = f"no commit has what it says, and no copy of that can be kept ({why})"
                raise UnwritableFile(one.path, reason)
        return list(dict.fromkeys(f"{NOT_KEPT}: {why}" for _, why in lost))

    def _uncommitted(self, texts: Mapping[str, bytes | None]) -> Collection[str]:
        try:
            branch = branch_of(self._vault.root)
            return texts.keys() if branch is None else branch.uncommitted(texts).keys()
        except GitFailed:
            return texts.keys()

    def _keep(
        self,
        path: str,
        raw: bytes | None,
        changed_by: str,
        summary: str,
        by: Text | None = None,
        together: Together | None = None,
    ) -> str:
        """Keep a copy of what was found, or left `by` an edit; why that failed, "" when it did not."""
        if raw is None:
            return ""
        old = by.moved_from if by is not None else ""
        begins = by is not None and by.before is None and not old
        try:
            self._past.keep(path, raw, changed_by, summary, begins=begins, together=together, moved_from=old)
        except OSError as error:
            return error.strerror or str(error)
        return ""


class _Once(Generic[_Made]):
    """What is made by whichever thread asks first, and once."""

    def __init__(self, make: Callable[[], _Made]) -> None:
        self._make = make
        self._made: list[_Made] = []
        self._making = Lock()

    def __call__(self) -> _Made:
        with self._making:
            if not self._made:
                self._made.append(self._make())
            return self._made[0]


def lowers_provenance(before: bytes | None, after: bytes | None) -> bool:
    """Whether somebody else's words would no longer be marked as such."""
    return before is not None and after is not None and is_external(before) and not is_external(after)


def is_owners(text: Text, session: Session, kind: str) -> bool:
    """Whether the owner vouches for what is written: it is neither an older version nor another note, brought there."""
    return session.kind == "owner" and session != PROGRAM and kind == "edit" and not text.moved_from


def trusted_after(trust: Trust, text: Text, session: Session, kind: str) -> bytes | None:
    """As `Trust.after`, once the session has written this."""
    return trust.after(text.path, text.before, text.after, text.edits, is_owners=is_owners(text, session, kind))


def digest_of(raw: bytes | None) -> str:
    """As everywhere: the SHA-256 of the bytes, "" where there is no note."""
    return "" if raw is None else sha256(raw).hexdigest()


def message_for(texts: Sequence[Text], session: Session) -> str:
    """The commit's message: what was done as its subject, and as trailers for each note, who and why.

    Each value is one line, so that none can pass for another's trailer.
    """
    subject = _subject(texts)
    trailers: dict[str, None] = {}
    for text in texts:
        values = {"Path": text.path, "Action": text.action, "Section": text.section, "Reason": text.reason}
        trailers |= dict.fromkeys(f"{name}: {_line(value)}" for name, value in values.items() if _line(value))
    agent = session.changed_by.removeprefix("agent:") if session.changed_by != "owner" else ""
    trailers |= dict.fromkeys([f"Session: {session.kind}", *([f"Agent: {agent}"] if agent else [])])
    return "\n".join([_line(subject), "", *trailers]) + "\n"


def _subject(texts: Sequence[Text]) -> str:
    if len(texts) == 1:
        return f"{_told(texts[0])}: {texts[0].path}"
    together = {text.told for text in texts}
    return together.pop() if len(together) == 1 and "" not in together else f"Edit {_named([t.path for t in texts])}"


def message_by_hand(paths: Sequence[str]) -> str:
    """The message of a commit of what a person changed without a tool."""
    trailers = [*(f"Path: {_line(path)}" for path in paths), "Changed-By: hand"]
    return "\n".join([f"Change {_line(_named(paths))} by hand", "", *trailers]) + "\n"


def _named(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else ""
    return f"{', '.join(paths[:_MOST_NAMED])}{more}"


def _told(text: Text) -> str:
    if text.told:
        return text.told
    where = f" in {_line(text.section)}" if text.section else ""
    return f"{text.action.replace('_', ' ').capitalize()}{where}"


def _line(value: str) -> str:
    return " ".join("".join(each if each.isprintable() else " " for each in value).split())
