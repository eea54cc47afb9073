"""Editing notes under guard: who asks, what the file says now, what the edit makes of it, what that does to the prompt.

All of it is decided before anything is written. What is written goes through the one door.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from notebook_sync.config import Settings
from notebook_sync.errors import Conflict, EditFailed, NotPermitted, OverCap, UnsafePath
from notebook_sync.files.edits import Edit, edited_by_all, entries_of
from notebook_sync.files.ignore import is_note_name
from notebook_sync.files.parse import wanted_id
from notebook_sync.files.provenance import EXTERNAL, is_external
from notebook_sync.files.vault import Vault
from notebook_sync.notes.check_edit import check_edit
from notebook_sync.notes.difference import difference
from notebook_sync.notes.door import Door, Entered, Text, digest_of
from notebook_sync.notes.guard import Guard
from notebook_sync.notes.origin import with_origin
from notebook_sync.notes.system_prompt import SystemPrompt, prompt_settings
from notebook_sync.permissions import Verb
from notebook_sync.sessions import Session
from prompt import Change, Omission, compare, count_tokens
from prompt.comments import without_hidden

TOOL = "notebook_edit"
_TRIES = 5


@dataclass(frozen=True, slots=True)
class FileEdits:
    """What is asked of one note: `file` is its path, its id, or a runtime file's bare name; one edit follows another.

    With `expected_digest` they are made on that very text or not at all; "" means that no note may be there.
    """

    file: str
    edits: tuple[Edit, ...]
    expected_digest: str | None = None


@dataclass(frozen=True, slots=True)
class Edited:
    """A note after its edit, or as it would be after it.

    `digest` is "" for a note that is gone, `version` None where the mirror could not be told. `tokens` is what counts
    against the note's cap: for a file of the prompt, without comments and what is expired; `cap` is None for a note
    that no prompt shows. `omitted` is what the session's prompt leaves out of it. `change` is what all edits of the
    call did to that prompt; None where none of them is of a file that it shows. `diff` is unified. `external` says
    that somebody else's words may stand in it.
    """

    path: str
    digest: str
    version: int | None
    tokens_before: int
    tokens: int
    cap: int | None
    omitted: tuple[Omission, ...]
    changed: bool
    change: Change | None
    diff: str
    commit: str | None
    warnings: tuple[str, ...] = ()
    external: bool = False

    def as_dict(self) -> dict[str, Any]:
        """The shape that `--json` prints."""
        return {
            "success": True,
            "path": self.path,
            "digest": self.digest,
            "version": self.version,
            "tokens_before": self.tokens_before,
            "tokens": self.tokens,
            "cap": self.cap,
            "omitted": [{"anchor": o.anchor, "heading": o.heading, "tokens": o.tokens} for o in self.omitted],
            "changed": self.changed,
            "change": self.change.as_json() if self.change else None,
            "diff": self.diff,
            "commit": self.commit,
            "warnings": list(self.warnings),
            **({"provenance": EXTERNAL} if self.external else {}),
        }


class Editing:
    """Edits for one notebook. `find` gives the path of a note that is there, and raises NoSuchNote; `holder` that of
    another note than the one at a path that has an id, "" for none."""

    def __init__(
        self,
        vault: Vault,
        settings: Settings,
        guard: Guard,
        door: Door,
        prompt: SystemPrompt,
        find: Callable[[str, Session], str],
        holder: Callable[[str, str], str],
    ) -> None:
        self._vault = vault
        self._settings = settings
        self._guard = guard
        self._door = door
        self._prompt = prompt
        self._find = find
        self._holder = holder
        shown = prompt_settings(settings.prompt).shown_files
        self._caps = {file.path: file.max_tokens or settings.prompt.max_tokens_per_file for file in shown}

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

        with self._guard.telling(session, TOOL):
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

        def draft(_: Sequence[str]) -> list[Text]:
            before = self._read(path)
            _must_be_expected(path, expected_digest, before)
            return [make(before)]

        with self._guard.telling(session, TOOL):
            return self._carried_out(lambda: [path], draft, session, kind, allow_over_cap, preview=False)[0]

    def _carried_out(
        self,
        find: Callable[[], list[str]],
        draft: Callable[[Sequence[str]], list[Text]],
        session: Session,
        kind: str,
        allow_over_cap: bool,
        preview: bool,
    ) -> list[Edited]:
        for is_last in [False] * (_TRIES - 1) + [True]:
            try:
                paths = find()
                with self._door.turn(() if preview else paths):
                    texts = draft(paths)
                    if not (allow_over_cap or preview):
                        self._must_fit(texts)
                    effect = self._effect(texts, session)
                    entered = Entered() if preview else self._door.enter(texts, session, kind)
            except _Expected as stale:
                raise self._permitted(stale.conflict, session) from None
            except Conflict as conflict:
                if is_last:
                    raise self._permitted(conflict, session) from None
            else:
                return [self._edited(text, effect, entered, preview) for text in texts]
        raise AssertionError("the last try returns or raises")

    def _drafts(self, batch: Sequence[tuple[str, FileEdits]], session: Session) -> list[Text]:
        """Every note's text after its edits; a note that is named twice is edited once, by all of them."""
        drafts: dict[str, Text] = {}
        for path, order in batch:
            known = drafts.get(path)
            before = known.before if known else self._read(path)
            verb: Verb = "add" if before is None and session.kind == "external" else "write"
            self._guard.require(session, verb, path, TOOL)
            if before is not None or order.expected_digest:
                self._guard.require_change(session, path, TOOL)
            _must_be_expected(path, order.expected_digest, before)
            after = _after((known.after if known else before) or b"", order, path)
            after = self._of_its_origin(path, before, after, order.edits, session)
            told = _told(path, before, after, order.edits)
            drafts[path] = replace(told, action=_joined(known.action, told.action)) if known else told
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
        """Where the note is, or is to be. What the name alone forbids is refused before anything is looked up."""
        place = self._vault.relative(order.file)
        self._guard.require(session, "add", order.file if place is None else place, TOOL)
        creates = any(edit.action == "write" for edit in order.edits[:1])
        if place and creates and is_note_name(place.rpartition("/")[2]) and not self._names_runtime(order.file):
            if reason := self._vault.reason_against(place):
                raise UnsafePath(order.file, reason)
            return place
        self._guard.require_change(session, order.file if place is None else place, TOOL)
        return self._find(order.file, session)

    def _names_runtime(self, name: str) -> bool:
        """Whether it is the bare name of a file that stands in runtime/ and not beside it."""
        return "/" not in name and not self._vault.stamp(name) and self._vault.stamp(f"runtime/{name}") is not None

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

    def _must_fit(self, texts: Sequence[Text]) -> None:
        """An edit that makes a file no larger may leave it over its cap: so it is made smaller step by step."""
        for text in texts:
            cap = self._caps.get(text.path)
            if cap is None or text.after is None or not text.changes:
                continue
            tokens = self._tokens(text.path, text.after)
            if tokens > cap and tokens > self._tokens(text.path, text.before or b""):
                raise OverCap(text.path, tokens, cap, tuple(entry.text for entry in entries_of(text.after)))

    def _tokens(self, path: str, raw: bytes) -> int:
        text = raw.decode(errors="replace")
        if path in self._caps:
            today = datetime.now(self._settings.timezone).date()
            text = without_hidden(text, keep_grammar=False, today=today).text
        return count_tokens(text, self._settings.prompt.encoding)

    def _tokens_of(self, text: Text) -> tuple[int, int]:
        return self._tokens(text.path, text.before or b""), self._tokens(text.path, text.after or b"")

    def _effect(self, texts: Sequence[Text], session: Session) -> _Effect:
        tokens = {text.path: self._tokens_of(text) for text in texts}
        shown = {text.path: text.after for text in texts if text.path in self._caps}
        if not shown:
            return _Effect(tokens)
        before, after = self._prompt.assemble(session), self._prompt.assemble_with(session, shown)
        return _Effect(tokens, compare(before, after), {part.path: part.omitted for part in after.parts})

    def _edited(self, text: Text, effect: _Effect, entered: Entered, preview: bool) -> Edited:
        tokens_before, tokens = effect.tokens[text.path]
        cap = self._caps.get(text.path)
        over: tuple[str, ...] = ()
        if cap is not None and tokens > cap:
            over = (f"{text.path} has {tokens:,} tokens and the prompt shows {cap:,}: parts are left out of it",)
        return Edited(
            path=text.path,
            digest=digest_of(text.after),
            version=entered.versions.get(text.path),
            tokens_before=tokens_before,
            tokens=tokens,
            cap=cap,
            omitted=effect.omitted.get(text.path, ()),
            changed=text.changes,
            change=effect.change if cap is not None else None,
            diff=difference(text.path, text.before, text.after),
            commit=entered.commit if text.changes and not preview else None,
            warnings=(*entered.warnings, *over, *self._amiss(text)),
            external=any(is_external(raw) for raw in (text.before, text.after) if raw is not None),
        )

    def _amiss(self, text: Text) -> tuple[str, ...]:
        """What the edit wrote into a file of the prompt that does not do what it says."""
        if text.path not in self._caps:
            return ()
        return check_edit(text.path, text.before, text.after, datetime.now(self._settings.timezone).date())


@dataclass(frozen=True, slots=True)
class _Effect:
    """What is counted before anything is written: where tokens cannot be counted, nothing is. `tokens` are those of
    each note before and after, by path."""

    tokens: Mapping[str, tuple[int, int]]
    change: Change | None = None
    omitted: Mapping[str, tuple[Omission, ...]] = field(default_factory=dict)


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
    )


def _joined(*values: str) -> str:
    return ", ".join(dict.fromkeys(value for value in values if value))
