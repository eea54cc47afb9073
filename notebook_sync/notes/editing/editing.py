"""Editing notes under guard: who asks, what the file says now, what the edit makes of it, what that does to the prompt.

All of it is decided before anything is written. What is written goes through the one door.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from notebook_sync.errors import Conflict, EditFailed, NotPermitted
from notebook_sync.files.edits import Edit, edited_by_all
from notebook_sync.files.ignore import is_note_name
from notebook_sync.files.parse import wanted_id
from notebook_sync.files.provenance import is_external
from notebook_sync.files.vault import Vault
from notebook_sync.notes.editing.door import Door, Entered, Text, digest_of
from notebook_sync.notes.editing.effects import Edited, Effect, Effects
from notebook_sync.notes.editing.origin import with_origin
from notebook_sync.notes.guard import Guard
from notebook_sync.permissions import Verb
from notebook_sync.sessions import Session

TOOL = "notebook_edit"
_TRIES = 5

_Done = TypeVar("_Done")


@dataclass(frozen=True, slots=True)
class FileEdits:
    """What is asked of one note: `file` is its path, its id, or a runtime file's bare name; one edit follows another.

    With `expected_digest` they are made on that very text or not at all; "" means that no note may be there.
    """

    file: str
    edits: tuple[Edit, ...]
    expected_digest: str | None = None


class Editing:
    """Edits for one notebook. `find` is `Lookup.find_path`; `holder` gives the path of another note than the one at a
    path that has an id, "" for none."""

    def __init__(
        self,
        vault: Vault,
        guard: Guard,
        door: Door,
        effects: Effects,
        find: Callable[[str, Session, Verb, str], str],
        holder: Callable[[str, str], str],
    ) -> None:
        self._vault = vault
        self._guard = guard
        self._door = door
        self._effects = effects
        self._find = find
        self._holder = holder

    def edit(
        self, batch: Sequence[FileEdits], session: Session, *, allow_over_cap: bool = False, preview: bool = False
    ) -> list[Edited]:
        """Make all of these edits, or none of them; with `preview`, only tell what they would do.

        Without an expected digest, an edit that somebody was faster than is made once more, on what they wrote.
        Raises NotPermitted, NoSuchNote, EditFailed, Conflict, OverCap, UnsafePath, prompt.VocabularyMissing, and as
        `Vault.write`.
        """

        def find() -> list[str]:
            return [self._path_of(order, session) for order in batch]

        def draft(paths: Sequence[str]) -> list[Text]:
            return self._drafts(list(zip(paths, batch, strict=True)), session)

        return self._carried_out(find, draft, session, "edit", allow_over_cap, preview)

    def put(
        self,
        path: str,
        make: Callable[[bytes | None], Text],
        session: Session,
        kind: str = "edit",
        *,
        expected_digest: str | None = None,
        allow_over_cap: bool = False,
    ) -> Edited:
        """Give the note at `path` the text that `make` makes of the one it has; through the same door. Permission is
        asked for before."""

        return self.put_together(
            lambda: [path],
            lambda raws: [make(raws[path])],
            session,
            kind,
            expected_digest=expected_digest,
            allow_over_cap=allow_over_cap,
        )[0]

    def put_together(
        self,
        find: Callable[[], list[str]],
        make: Callable[[Mapping[str, bytes | None]], Sequence[Text]],
        session: Session,
        kind: str = "edit",
        *,
        expected_digest: str | None = None,
        allow_over_cap: bool = False,
    ) -> list[Edited]:
        """As `put`, for several notes, all or none, at the paths that `find` gives; the digest is that of the first.
        Both are asked again where somebody was faster."""

        def draft(paths: Sequence[str]) -> list[Text]:
            raws = {path: self._read(path) for path in paths}
            _must_be_expected(paths[0], expected_digest, raws[paths[0]])
            return list(make(raws))

        return self._carried_out(find, draft, session, kind, allow_over_cap, preview=False)

    def put_all(
        self,
        find: Callable[[], Collection[str]],
        make: Callable[[Mapping[str, bytes | None]], Sequence[Text]],
        session: Session,
        kind: str = "edit",
    ) -> Entered:
        """As `put`, for several notes, all or none: `make` is given what the notes at the paths that `find` gives say,
        None for what is not there. Both are asked again where somebody was faster."""

        def act(paths: Sequence[str]) -> Entered:
            texts = make({path: self._read(path) for path in paths})
            self._effects.must_fit(texts)
            return self._door.enter(texts, session, kind)

        return self._tried(lambda: list(find()), act, session)

    def _carried_out(
        self,
        find: Callable[[], list[str]],
        draft: Callable[[Sequence[str]], list[Text]],
        session: Session,
        kind: str,
        allow_over_cap: bool,
        preview: bool,
    ) -> list[Edited]:
        def act(paths: Sequence[str]) -> tuple[list[Text], Effect, Entered]:
            texts = draft(paths)
            if not (allow_over_cap or preview):
                self._effects.must_fit(texts)
            effect = self._effects.of(texts, session, kind)
            return texts, effect, Entered() if preview else self._door.enter(texts, session, kind)

        texts, effect, entered = self._tried(find, act, session, locked=not preview)
        return [self._effects.edited(text, effect, entered, preview=preview) for text in texts]

    def _tried(
        self,
        find: Callable[[], list[str]],
        act: Callable[[Sequence[str]], _Done],
        session: Session,
        *,
        locked: bool = True,
    ) -> _Done:
        for is_last in [False] * (_TRIES - 1) + [True]:
            try:
                paths = find()
                with self._guard.telling(session, TOOL), self._door.lock(paths if locked else ()):
                    return act(paths)
            except _Expected as stale:
                raise self._permitted(stale.conflict, session) from None
            except Conflict as conflict:
                if is_last:
                    raise self._permitted(conflict, session) from None
        raise AssertionError("the last try returns or raises")

    def _drafts(self, batch: Sequence[tuple[str, FileEdits]], session: Session) -> list[Text]:
        """Every note's text after its edits; a note that is named twice is edited once, by all of them."""
        drafts: dict[str, Text] = {}
        for path, order in batch:
            known = drafts.get(path)
            before = known.before if known else self._read(path)
            verb: Verb = "add" if before is None and session.kind == "external" else "write"
            self._guard.require(session, verb, path, TOOL)
            _must_be_expected(path, order.expected_digest, before)
            after = _after((known.after if known else before) or b"", order, path)
            after = self._of_its_origin(path, before, after, order.edits, session)
            told = _told(path, before, after, order.edits)
            if known:
                told = replace(told, action=_joined(known.action, told.action), edits=(*known.edits, *told.edits))
            drafts[path] = told
        self._must_keep_ids_apart(drafts, session)
        return list(drafts.values())

    def _of_its_origin(
        self, path: str, before: bytes | None, after: bytes, edits: Sequence[Edit], session: Session
    ) -> bytes:
        is_whole = any(edit.action == "write" for edit in edits)
        try:
            return with_origin(path, before, after, session, is_whole=is_whole)
        except NotPermitted as refusal:
            self._guard.refuse(session, TOOL, str(refusal), path)

    def _must_keep_ids_apart(self, drafts: Mapping[str, Text], session: Session) -> None:
        """No edit takes an id that another note has: the mirror can give it to one of them alone."""
        wanted = {path: wanted_id(path, text.after or b"") for path, text in drafts.items()}
        for path, text in drafts.items():
            if text.before is not None and wanted_id(path, text.before) == wanted[path]:
                continue
            others = [other for other in drafts if other != path and wanted[other] == wanted[path]]
            holder = others[0] if others else self._holder(wanted[path], path)
            is_held = holder and wanted.get(holder, wanted[path]) == wanted[path]
            if is_held and self._guard.may(session, "read", holder):
                raise EditFailed(path, f"the id {wanted[path]!r} is that of {holder}; give it one of its own")

    def _path_of(self, order: FileEdits, session: Session) -> str:
        """Where the note is, or is to be. A session that may not read a place makes no note there by its path: it would
        learn which paths are taken."""
        creates = any(edit.action == "write" for edit in order.edits[:1])
        place = self._vault.place(order.file) if creates else None
        if place and is_note_name(place.rpartition("/")[2]):
            return self._guard.place(session, place, "add", TOOL)
        return self._find(order.file, session, "write", TOOL)

    def _read(self, path: str) -> bytes | None:
        try:
            return self._vault.read(path)[0]
        except FileNotFoundError:
            return None

    def _permitted(self, conflict: Conflict, session: Session) -> Conflict:
        """The conflict, without the text where the session may not read it."""
        if self._guard.may(session, "read", conflict.path):
            return conflict
        return Conflict(conflict.path, conflict.base, conflict.current)


class _Expected(Exception):
    """The caller named another text than the one that is there; trying again is of no use."""

    def __init__(self, conflict: Conflict) -> None:
        self.conflict = conflict


def _after(before: bytes, order: FileEdits, path: str) -> bytes:
    try:
        return edited_by_all(before, order.edits, path)
    except EditFailed as failed:
        raise EditFailed(path, failed.reason, failed.candidates, external=is_external(before)) from None


def _must_be_expected(path: str, expected: str | None, found: bytes | None) -> None:
    if expected not in (None, digest_of(found)):
        raise _Expected(Conflict(path, expected or "", digest_of(found), (found or b"").decode(errors="replace")))


def _told(path: str, before: bytes | None, after: bytes, edits: Sequence[Edit]) -> Text:
    return Text(
        path,
        before,
        after,
        action=_joined(*(edit.action for edit in edits)),
        section=_joined(*(edit.section or "" for edit in edits)),
        reason=_joined(*(edit.reason or "" for edit in edits)),
        edits=tuple(edits),
    )


def _joined(*values: str) -> str:
    return ", ".join(dict.fromkeys(value for value in values if value))
