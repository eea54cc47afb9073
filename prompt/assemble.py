"""Files, a session and settings in; one system prompt out, exact to the token. Never reads a file, a clock or chance.

sources ─▶ without_hidden ─▶ trim to each file's cap ─▶ layout ─▶ over the total? share, trim again ─▶ Prompt
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from datetime import date
from hashlib import sha256
from sys import maxsize
from typing import Generic, TypeVar

from prompt.budget import Claim, share
from prompt.comments import before_gaps, without_hidden
from prompt.counts import CountCache, Counter
from prompt.layout import NOTICE, stable_text, volatile_text
from prompt.trim import trim
from prompt.values import Gap, Omission, Part, Prompt, PromptFile, PromptSettings, Session, Source, Volatile

T = TypeVar("T")

NOTHING_VOLATILE = Volatile()

# What each part is granted, if it needs it, before priorities count: its markers and its newest entry.
RESERVE = 120
VOLATILE_PRIORITY = 1


def assemble(
    sources: Sequence[Source],
    session: Session,
    settings: PromptSettings,
    *,
    today: date,
    volatile: Volatile = NOTHING_VOLATILE,
    counts: CountCache | None = None,
) -> Prompt:
    """The system prompt that `session` gets. `today` is the day in the notebook's timezone, for `[until DATE]`.

    A configured file that no source brings is missing. Raises VocabularyMissing, and nothing else for any text.
    """
    return Assembler(settings, counts).assemble(sources, session, today=today, volatile=volatile)


class Assembler:
    """Assembles prompts and remembers what did not change, by digest. May be used from several threads."""

    def __init__(self, settings: PromptSettings, counts: CountCache | None = None) -> None:
        self.settings = settings
        self.count = Counter(settings.encoding, counts)
        self._prompts: _Recent[Prompt] = _Recent(32)
        self._parts: _Recent[Part] = _Recent(256)

    def assemble(
        self, sources: Sequence[Source], session: Session, *, today: date, volatile: Volatile = NOTHING_VOLATILE
    ) -> Prompt:
        """As the function `assemble`; with nothing changed, the same object as the last time."""
        digests = {source.path: _digest(source.content) for source in sources}
        known = tuple((source.path, digests[source.path], source.problem) for source in sources)
        return self._prompts.get(
            (known, session, today, volatile), lambda: self._assemble(sources, digests, session, today, volatile)
        )

    def _assemble(
        self, sources: Sequence[Source], digests: dict[str, str], session: Session, today: date, volatile: Volatile
    ) -> Prompt:
        by_path = {source.path: source for source in sources}
        rules = [rule for rule in self.settings.shown_files if not rule.optional or rule.path in by_path]
        seen = [rule for rule in rules if session in rule.sessions]

        def part(rule: PromptFile, cap: int) -> Part:
            source = by_path.get(rule.path)
            content = source.content if source else None
            key = (rule.path, rule.heading, digests.get(rule.path), cap, session == "owner", _day(content, today))
            made = self._parts.get(key, lambda: self._part(rule, content, cap, session, today))
            return replace(made, problem=source.problem) if source and source.problem else made

        caps = [rule.max_tokens or self.settings.max_tokens_per_file for rule in seen]
        parts = [part(rule, cap) for rule, cap in zip(seen, caps, strict=True)]
        stable, text = self._laid_out(parts, volatile)
        tokens = self.count(text)
        limit, spare = self.settings.max_tokens, 0
        wanted = [part.tokens for part in parts]
        loose = [self.count(each) for each in (volatile.refs, volatile.facts, volatile.notes, volatile.brief)]
        while tokens > limit and spare <= limit:
            # What is neither file nor volatile text is the layout; `spare` grows by what the last try was over.
            spare += max(tokens - limit, 1) if spare else max(tokens - sum(wanted) - sum(loose), 0) + 1
            claims = [Claim(need, rule.priority, RESERVE) for need, rule in zip(wanted, seen, strict=True)]
            claims += [Claim(need, VOLATILE_PRIORITY, RESERVE) for need in loose]
            granted = share(limit - spare, claims)
            parts = [
                part(rule, cap if have >= need else have)
                for rule, cap, need, have in zip(seen, caps, wanted, granted, strict=False)
            ]
            refs, facts, notes, brief = granted[len(seen) :]
            cut = Volatile(
                trim(volatile.refs, refs, self.count).text,
                trim(volatile.facts, facts, self.count).text,
                trim(volatile.notes, notes, self.count).text,
                trim(volatile.brief, brief, self.count).text,
            )
            stable, text = self._laid_out(parts, cut)
            tokens = self.count(text)
        if tokens > limit:
            # Not even the layout fits. One line still tells that something is missing, where that fits.
            stable = text = NOTICE if self.count(NOTICE) <= limit else ""
            tokens = self.count(text)
            parts = [_nothing_of(part) for part in parts]
        return Prompt(
            text=text,
            stable=stable,
            tokens=tokens,
            revision=sha256(stable.encode("utf-8", "surrogatepass")).hexdigest(),
            session=session,
            parts=tuple(parts),
            filtered=tuple(rule.path for rule in rules if session not in rule.sessions),
            problems=tuple(f"{part.path}: {part.problem}" for part in parts if part.problem),
            encoding=self.settings.encoding,
        )

    def _laid_out(self, parts: Sequence[Part], volatile: Volatile) -> tuple[str, str]:
        system = [part for part in parts if part.path in self.settings.system_files]
        files = [part for part in parts if part.path not in self.settings.system_files]
        stable = stable_text(system, self.settings.directive, files)
        return stable, stable + volatile_text(volatile)

    def _part(self, rule: PromptFile, content: bytes | None, cap: int, session: Session, today: date) -> Part:
        name = rule.heading or rule.path
        if content is None:
            text = f"[{rule.path} is missing]"
            return Part(name, rule.path, "", 0, self.count(text), cap, text)
        problem = ""
        try:
            source = content.decode()
        except UnicodeDecodeError as error:
            source = content.decode(errors="replace")
            problem = f"not UTF-8 at byte {error.start}; what could not be read is shown as \ufffd"
        shown = without_hidden(source, keep_grammar=session == "owner", today=today)
        cut = trim(shown.text, cap, self.count, path=rule.path, pinned=shown.pinned)
        gaps = [
            Gap(before_gaps(start, shown.gaps), before_gaps(end - 1, shown.gaps) + 1, "cap") for start, end in cut.cut
        ]
        return Part(
            name=name,
            path=rule.path,
            digest=_digest(content),
            tokens_raw=self.count(source),
            tokens=cut.tokens,
            cap=cap,
            text=cut.text,
            omitted=cut.omitted,
            expired=shown.expired,
            gaps=(*shown.gaps, *gaps),
            problem=problem,
            tokens_whole=self.count(shown.text),
            whole=shown.text,
            cut=cut.cut,
        )


def _digest(content: bytes | None) -> str:
    return "" if content is None else sha256(content).hexdigest()


def _day(content: bytes | None, today: date) -> date | None:
    """What the day decides about this file: nothing, where no rule in it ends."""
    return today if content and b"[until" in content.lower() else None


def _nothing_of(part: Part) -> Part:
    omitted = (Omission("", part.name, 0, part.tokens_raw),)
    return replace(part, text="", tokens=0, cap=0, omitted=omitted, gaps=(Gap(0, maxsize, "cap"),))


class _Recent(Generic[T]):
    """The values made last, at most `limit`."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._values: OrderedDict[Hashable, T] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        value = make()
        with self._lock:
            self._values[key] = value
            while len(self._values) > self._limit:
                self._values.popitem(last=False)
        return value
