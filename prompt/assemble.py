"""Files, a session and settings in; one system prompt out, exact to the token. Never reads a file, a clock or chance.

sources ─▶ what a model may see ─▶ each file within its cap ─▶ over the total? shares ─▶ stable part ─▶ + volatile

The stable part is made before the volatile one is looked at, and depends on nothing in it.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Hashable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from hashlib import sha256
from typing import Generic, TypeVar

from prompt.budget import Claim, CountCache, Counter, share
from prompt.ends import closing_line, omission_line
from prompt.hidden import Positions, visible
from prompt.layout import fitted, stable_text, tag_for
from prompt.trim import Cutting
from prompt.values import FileText, Gap, Part, Prompt, PromptFile, PromptSettings, PromptTooSmall, Session, Volatile

# What each file is granted, if it needs it, before priorities count: its marks and its newest entry.
RESERVE = 120
# This part of the total, an eighth, is kept for what is volatile, whether or not a call has any.
VOLATILE_SHARE = 8
# The most that a text may cost more among its neighbours than alone, for each file.
SEAM = 3
_DATED = re.compile(rb"[\[(]\s*+(?:until|from)\b[^\])]{0,80}", re.IGNORECASE)
_CLOCK = re.compile(rb"\d:\d|\d ?[ap]\.?m", re.IGNORECASE)
_ALWAYS = datetime.combine(date.min, time())
_NOTHING_VOLATILE = Volatile()
Value = TypeVar("Value")


def assemble(
    sources: Sequence[FileText],
    session: Session,
    settings: PromptSettings,
    *,
    now: datetime,
    volatile: Volatile = _NOTHING_VOLATILE,
    counts: CountCache | None = None,
) -> Prompt:
    """The system prompt of `session`. `now` is local to the notebook. Raises PromptTooSmall, VocabularyMissing."""
    return Assembler(settings, counts).assemble(sources, session, now=now, volatile=volatile)


@dataclass(frozen=True, slots=True, eq=False)  # compared by identity, so that it is a cheap key
class _View:
    """All that a model may see of a file, uncut. `line_tokens` is what the line costs that says that it is cut."""

    whole: Part
    line_tokens: int
    pinned: frozenset[int] = frozenset()


class Assembler:
    """Assembles prompts and remembers what did not change. May be used from several threads."""

    def __init__(self, settings: PromptSettings, counts: CountCache | None = None) -> None:
        self.settings = settings
        self.count = Counter(settings.encoding, counts)
        self._dependences: Recent[tuple[bool, bool]] = Recent(256)
        self._views: Recent[_View] = Recent(64)
        self._cuttings: Recent[Cutting] = Recent(16)  # fewer: each holds a tree ten times its text
        self._parts: Recent[Part] = Recent(128)
        self._prompts: Recent[Prompt] = Recent(32)

    def assemble(
        self, sources: Sequence[FileText], session: Session, *, now: datetime, volatile: Volatile = _NOTHING_VOLATILE
    ) -> Prompt:
        """As the function `assemble`; with nothing changed, the same object as last time."""
        given = tuple(sources)
        moments = tuple(self._moment(source, now) for source in given)
        key = (given, session, moments)
        stable = self._prompts.get(key, lambda: self._stable(given, session, moments))
        if volatile == _NOTHING_VOLATILE:
            return stable
        return self._prompts.get((*key, volatile), lambda: self._with_volatile(stable, volatile))

    def limited_to(self, max_tokens: int) -> Assembler:
        """An assembler with another total, which shares what this one remembers of each file."""
        other = copy(self)
        other.settings = replace(self.settings, max_tokens=max_tokens)
        other._prompts = Recent(32)
        return other

    def _moment(self, source: FileText, now: datetime) -> datetime:
        """`now` as exactly as a file depends on it: to the day, or to the minute if it names a time."""
        content = source.content or b""
        is_dated, has_clock = self._dependences.get(content, lambda: _dependence(content))
        if not is_dated:
            return _ALWAYS
        return now.replace(second=0, microsecond=0) if has_clock else datetime.combine(now, time())

    def _with_volatile(self, prompt: Prompt, volatile: Volatile) -> Prompt:
        limit = self.settings.max_tokens
        more, left_out = fitted(volatile, prompt.stable, limit, self.count)
        problems = (f'prompt.max_tokens = {limit} leaves no room for "{heading}"' for heading in left_out)
        text = prompt.stable + more
        return prompt._replace(text=text, tokens=self.count(text), problems=(*prompt.problems, *problems))

    def _stable(self, sources: tuple[FileText, ...], session: Session, moments: tuple[datetime, ...]) -> Prompt:
        known = {source.path: (source, moment) for source, moment in zip(sources, moments, strict=True)}
        files = [file for file in self.settings.shown_files if not file.optional or file.path in known]
        seen = [file for file in files if session in file.sessions]
        views = [self._view(file, *known.get(file.path, (FileText(file.path, None), _ALWAYS))) for file in seen]
        text, tokens, parts, problems = self._page(session, seen, views)
        return Prompt(
            text=text,
            stable=text,
            tokens=tokens,
            revision=sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
            session=session,
            parts=tuple(parts),
            filtered=tuple(file.path for file in files if session not in file.sessions),
            problems=(*(f"{part.path}: {part.problem}" for part in parts if part.problem), *problems),
            encoding=self.settings.encoding,
        )

    def _page(
        self, session: Session, files: Sequence[PromptFile], views: Sequence[_View]
    ) -> tuple[str, int, list[Part], list[str]]:
        """The text, its tokens, parts and problems: each file within its cap if that fits, else in its share."""
        settings, count, problems = self.settings, self.count, []
        limit = settings.max_tokens - settings.max_tokens // VOLATILE_SHARE
        system = frozenset(settings.system_files)
        tag = tag_for([text for view in views for text in (view.whole.path, view.whole.text)])
        named = [view.whole.path for view in views if view.whole.name != view.whole.path]
        directive = settings.directive
        directive = directive if isinstance(directive, str) else directive(session, named)

        def laid_out(parts: Sequence[Part]) -> str:
            return stable_text(parts, directive, system, tag)

        parts = []
        for file, view in zip(files, views, strict=True):
            part = self._part(view, file.max_tokens or settings.max_tokens_per_file)
            enough = min(view.whole.tokens, view.line_tokens)
            if enough > part.cap:
                problems.append(f"{part.path}: a cap of {part.cap} tokens is too small; at least {enough} are needed")
            parts.append(part)
        if (tokens := count(text := laid_out(parts))) <= limit:
            return text, tokens, parts, problems
        claims = [
            Claim(part.tokens, file.priority, RESERVE, view.line_tokens)
            for part, file, view in zip(parts, files, views, strict=True)
        ]
        frame = count(laid_out([part._replace(text="") for part in parts])) + SEAM * len(parts)
        room, floors = limit - frame, sum(min(claim.need, claim.floor) for claim in claims)
        while room >= floors:
            granted = zip(parts, views, share(room, claims), strict=True)
            cut = [part if have >= part.tokens else self._part(view, have) for part, view, have in granted]
            if (tokens := count(text := laid_out(cut))) <= limit:
                return text, tokens, cut, problems
            room -= tokens - limit
        enough = (frame + floors) * VOLATILE_SHARE // (VOLATILE_SHARE - 1) + 1
        raise PromptTooSmall(settings.max_tokens, enough, self._lines(files, settings.max_tokens))

    def _lines(self, files: Sequence[PromptFile], limit: int) -> str:
        """One line for each file that there is room for, those of high priority first."""
        lines: list[str] = []
        for file in sorted(files, key=lambda file: -file.priority):
            if self.count("".join([*lines, line := f"{omission_line(0, file.path)}\n"])) <= limit:
                lines.append(line)
        return "".join(lines)

    def _view(self, file: PromptFile, source: FileText, now: datetime) -> _View:
        return self._views.get((file, source, now), lambda: self._seen(file, source, now))

    def _seen(self, file: PromptFile, source: FileText, now: datetime) -> _View:
        """All that a model may see of a file; a line that says so for one that it may not see."""
        content = source.content or b""
        text = content.decode(errors="replace")
        digest = "" if source.content is None else sha256(content).hexdigest()
        part = Part(file.heading or file.path, file.path, digest, self.count(text), 0, 0, "", problem=source.problem)
        if source.content is None or source.external:
            line = f"[{file.path} is missing]"
            if source.external:
                line = f"[{file.path} was not written by the owner and is not shown here: notebook_read {file.path}]"
                problem = source.problem or "not written by the owner, so it is not shown among the rules"
                part = part._replace(gaps=(Gap(0, len(text), "quarantined"),), problem=problem)
            return _View(part._replace(text=line, tokens=self.count(line)), self.count(line))
        shown = visible(text, now=now)
        tokens = self.count(shown.text) if shown.gaps else part.tokens_raw
        is_utf8 = text.isascii() or content == text.encode()
        part = part._replace(
            text=shown.text,
            tokens=tokens,
            whole=shown.text,
            tokens_whole=tokens,
            gaps=shown.gaps,
            expired=shown.expired,
            problem=part.problem or ("" if is_utf8 else "not UTF-8; what could not be read is shown as \ufffd"),
        )
        return _View(part, self.count(omission_line(0, file.path)) if tokens else 0, shown.pinned)

    def _part(self, view: _View, cap: int) -> Part:
        return self._parts.get((view, cap), lambda: self._cut(view, cap))

    def _cut(self, view: _View, cap: int) -> Part:
        """What `view` shows within `cap` tokens."""
        part = view.whole._replace(cap=cap)
        if part.tokens <= cap:
            return part._replace(closing=closing_line(part.text))
        if not part.whole:  # a line about the file, which cannot be cut
            return part._replace(text="", tokens=0)
        # For each quarter that is added to a tree, all of it would be searched for cycles.
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            cut = self._cuttings.get(
                view, lambda: Cutting(part.whole, part.tokens_whole, self.count, path=part.path, pinned=view.pinned)
            ).at(cap)
        finally:
            if was_enabled:
                gc.enable()
        before = Positions(part.gaps).before
        gaps = [Gap(before(start), before(end - 1) + 1, "cap") for start, end in cut.cut if start < end]
        return part._replace(
            text=cut.text,
            tokens=cut.tokens,
            omitted=cut.omitted,
            gaps=(*part.gaps, *gaps),
            cut=cut.cut,
            closing=closing_line(cut.text),
        )


def _dependence(content: bytes) -> tuple[bool, bool]:
    """Whether what is shown of a file depends on the day, and whether on the time."""
    dated = [match[0] for match in _DATED.finditer(content)]
    return bool(dated), any(_CLOCK.search(one) for one in dated)


class Recent(Generic[Value]):
    """What was made last, by key: at most `size` values, and with one more, all before it are dropped. May be used from
    several threads; two that miss at once may both make the value.

    It holds no function, unlike `lru_cache` on a bound method, so that its owner is freed as soon as nobody uses it.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: dict[Hashable, Value] = {}

    def knows(self, key: Hashable) -> bool:
        """Whether the value of `key` is there."""
        return key in self._values

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of `key`, made if it is not known."""
        value = self._values.get(key)
        if value is None:
            value = make()
            if len(self._values) >= self._size:
                self._values.clear()
            self._values[key] = value
        return value
