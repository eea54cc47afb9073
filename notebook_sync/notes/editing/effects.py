"""What an edit does to the prompt and to the room that its notes have there: told after it, and before it is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from notebook_sync.errors import OverCap
from notebook_sync.files.edits import entries_of
from notebook_sync.files.provenance import EXTERNAL, is_external
from notebook_sync.notes.editing.difference import difference
from notebook_sync.notes.editing.door import Entered, Text, digest_of, trusted_after
from notebook_sync.notes.prompting.system_prompt import SystemPrompt, prompt_settings
from notebook_sync.notes.runtime.grammar import check_edit
from notebook_sync.sessions import Session
from notebook_sync.settings import Settings
from prompt import Change, Omission, compare, count_tokens
from prompt.hidden import visible


@dataclass(frozen=True, slots=True)
class Edited:
    """A note after its edit, or as it would be after it.

    `digest` is "" for a note that is gone, `version` None where the mirror could not be told. `tokens` is what counts
    against the note's cap: for a file of the prompt, without comments and what is expired; `cap` is None for a note
    that no prompt shows. `omitted` is what the session's prompt leaves out of it. `change` is what all edits of the
    call did to that prompt; None where none of them is of a file that it shows. `diff` is unified. `external` says
    that somebody else's words may stand in it, and `with_others` that the edit changed other notes as one with this.
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
    with_others: bool = False

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


@dataclass(frozen=True, slots=True)
class Effect:
    """What an edit does to the prompt. `tokens` are those of each note before and after, by path."""

    tokens: Mapping[str, tuple[int, int]]
    change: Change | None = None
    omitted: Mapping[str, tuple[Omission, ...]] = field(default_factory=dict)


class Effects:
    """Of edits in one notebook."""

    def __init__(self, settings: Settings, prompt: SystemPrompt) -> None:
        self._settings = settings
        self._prompt = prompt
        shown = prompt_settings(settings.prompt).shown_files
        self._caps = {file.path: file.max_tokens or settings.prompt.max_tokens_per_file for file in shown}

    def must_fit(self, texts: Sequence[Text]) -> None:
        """Raises OverCap where an edit makes a file of the prompt too large. One that makes it no larger may leave it
        over its cap: so it is made smaller step by step."""
        for text in texts:
            cap = self._caps.get(text.path)
            if cap is None or text.after is None or not text.changes:
                continue
            tokens = self._tokens(text.path, text.after)
            if tokens > cap and tokens > self._tokens(text.path, text.before or b""):
                raise OverCap(text.path, tokens, cap, tuple(entry.text for entry in entries_of(text.after)))

    def of(self, texts: Sequence[Text], session: Session, kind: str) -> Effect:
        """What the texts would do, counted before anything is written: where tokens cannot be counted, nothing is."""
        tokens = {text.path: self._tokens_of(text) for text in texts}
        trust = self._prompt.trust
        shown = {
            text.path: trusted_after(trust, text, session, kind) if trust else text.after
            for text in texts
            if text.path in self._caps
        }
        if not shown:
            return Effect(tokens)
        before, after = self._prompt.assemble(session), self._prompt.assemble_with(session, shown)
        return Effect(tokens, compare(before, after), {part.path: part.omitted for part in after.parts})

    def edited(self, text: Text, effect: Effect, entered: Entered, *, preview: bool) -> Edited:
        """The note after its edit, once it has been entered, or as it would be."""
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

    def _tokens(self, path: str, raw: bytes) -> int:
        text = raw.decode(errors="replace")
        if path in self._caps:
            text = visible(text, now=self._settings.local_now()).text
        return count_tokens(text, self._settings.prompt.encoding)

    def _tokens_of(self, text: Text) -> tuple[int, int]:
        return self._tokens(text.path, text.before or b""), self._tokens(text.path, text.after or b"")

    def _amiss(self, text: Text) -> tuple[str, ...]:
        """What the edit wrote into a file of the prompt that does not do what it says."""
        if text.path not in self._caps:
            return ()
        return check_edit(text.path, text.before, text.after, self._settings.local_now())
