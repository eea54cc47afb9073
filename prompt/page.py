"""The stable part within its limit: as much of each file as there is room for, by priority, down to one line a file.

Never over the limit, and never silent: each step down is reported in `problems`, with the limit that would be needed.
A larger limit shows at least as much of every file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from prompt.budget import Claim, Count, share
from prompt.layout import directive_text, stable_text, tag_for
from prompt.parts import View, line_of
from prompt.values import Part, PromptFile, PromptSettings, Session

# What each file is granted, if it needs it, before priorities count: its markers and its newest entry.
RESERVE = 120
# This part of the total, an eighth, is kept for what is volatile, whether or not a call has any.
VOLATILE_SHARE = 8
# The most that a text may cost more among its neighbours than alone, for each file.
SEAM = 3


@dataclass(frozen=True, slots=True)
class Page:
    """The stable part, and what it does not show, in words."""

    text: str
    tokens: int
    parts: tuple[Part, ...]
    problems: tuple[str, ...]


class Pager:
    """Lays out the stable part for one session. `part` gives what a view shows within a cap."""

    def __init__(
        self,
        settings: PromptSettings,
        session: Session,
        files: Sequence[PromptFile],
        views: Sequence[View],
        part: Callable[[View, int], Part],
        count: Count,
    ) -> None:
        self._settings = settings
        self._files = files
        self._views = views
        self._part = part
        self._count = count
        self._limit = settings.max_tokens - settings.max_tokens // VOLATILE_SHARE
        self._system = frozenset(settings.system_files)
        parts = [view.whole for view in views]
        unnamed = [part.path for part in parts if part.name != part.path and part.path not in self._system]
        self._directive = directive_text(settings.directive, session, unnamed)
        self._tag = tag_for([text for part in parts for text in (part.path, part.text)])

    def page(self) -> Page:
        """The whole of each file within its cap, if that fits; else shares of the room; else one line a file."""
        caps = [file.max_tokens or self._settings.max_tokens_per_file for file in self._files]
        parts = [self._part(view, cap) for view, cap in zip(self._views, caps, strict=True)]
        problems = tuple(
            f"{part.path}: a cap of {part.cap} tokens cannot say what it leaves out; at least {enough} are needed"
            for part, view in zip(parts, self._views, strict=True)
            if (enough := min(view.whole.tokens, view.line_tokens)) > part.cap
        )
        page = self._laid_out(parts, problems)
        return page if page.tokens <= self._limit else self._shared(page)

    def _shared(self, full: Page) -> Page:
        """As `full`, with the files cut to what they are granted; one line a file where not all can say that much."""
        empty = [replace(view.whole, text="") for view in self._views]
        frame = self._count(self._text(empty)) + SEAM * len(empty)
        claims = [
            Claim(part.tokens, file.priority, RESERVE, floor=view.line_tokens)
            for part, file, view in zip(full.parts, self._files, self._views, strict=True)
        ]
        floors = sum(min(claim.need, claim.floor) for claim in claims)
        reserves = sum(min(claim.need, max(claim.reserve, claim.floor)) for claim in claims)
        total, problems = self._settings.max_tokens, full.problems
        room = self._limit - frame
        if room < reserves:
            enough = _total_for(min(frame + reserves, full.tokens))
            few = f"prompt.max_tokens = {total} shows of some files hardly more than what is left out"
            problems = (*problems, f"{few}; at least {enough} are needed")
        while room >= floors:
            granted = share(room, claims)
            parts = [
                part if have >= part.tokens else self._part(view, have)
                for part, view, have in zip(full.parts, self._views, granted, strict=True)
            ]
            page = self._laid_out(parts, problems)
            if page.tokens <= self._limit:
                return page
            room -= page.tokens - self._limit
        return self._lines(full, _total_for(min(frame + floors, full.tokens)))

    def _lines(self, full: Page, enough: int) -> Page:
        """One line a file, below the directive where all that fits; else the lines that fit, highest priority first."""
        by_priority = sorted(range(len(self._files)), key=lambda index: -self._files[index].priority)
        order = [index for index in by_priority if 0 < self._views[index].line_tokens <= full.parts[index].cap]
        shown, opening = len(order), self._directive
        while self._count(text := self._joined(opening, order[:shown])) > self._limit and (opening or shown):
            shown, opening = shown if opening else shown - 1, ""
        total = self._settings.max_tokens
        parts = tuple(line_of(view, fits=index in order[:shown]) for index, view in enumerate(self._views))
        problems = (
            *full.problems,
            f"prompt.max_tokens = {total} shows none of the rules; at least {enough} are needed",
            *(
                f"{part.path}: prompt.max_tokens = {total} does not even name it; at least {enough} are needed"
                for part, view in zip(parts, self._views, strict=True)
                if view.line and not part.text
            ),
        )
        return Page(text, self._count(text), parts, problems)

    def _joined(self, opening: str, indexes: Sequence[int]) -> str:
        lines = "".join(f"{self._views[index].line}\n" for index in indexes)
        return "\n".join(filter(None, (stable_text((), opening, ()), lines)))

    def _laid_out(self, parts: Sequence[Part], problems: tuple[str, ...]) -> Page:
        text = self._text(parts)
        return Page(text, self._count(text), tuple(parts), problems)

    def _text(self, parts: Sequence[Part]) -> str:
        system = [part for part in parts if part.path in self._system]
        files = [part for part in parts if part.path not in self._system]
        return stable_text(system, self._directive, files, self._tag)


def _total_for(room: int) -> int:
    """The smallest total of which the stable part may have `room` tokens."""
    return room + max(room - 1, 0) // (VOLATILE_SHARE - 1)
