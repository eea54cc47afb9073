"""The stable part within its limit: as much of each file as there is room for, by priority, down to one line a file.

Never over the limit, and never silent: each step down is told in `problems`, with the limit that would be needed.
A larger limit shows at least as much of every file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from prompt.budget import Claim, Count, share
from prompt.layout import NOTICE, stable_text, tag_for
from prompt.open_end import closing_line
from prompt.parts import View, line_of
from prompt.values import Omission, Part, PromptFile, PromptSettings, Session

# What each file is granted, if it needs it, before priorities count: its markers and its newest entry.
RESERVE = 120
# This part of the total, an eighth, is kept for what is volatile, whether or not a call brings any.
VOLATILE_SHARE = 8
# What a text may cost more beside its neighbours than alone, for each file.
SEAM = 3


@dataclass(frozen=True, slots=True)
class Page:
    """The stable part, and what could not be shown in it, in words."""

    text: str
    tokens: int
    parts: tuple[Part, ...]
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pager:
    """Lays out the stable part for one session. `part` makes the part of the view at an index within a cap."""

    settings: PromptSettings
    session: Session
    files: Sequence[PromptFile]
    views: Sequence[View]
    part: Callable[[int, int], Part]
    count: Count

    def page(self) -> Page:
        """The whole of each file within its cap, if that fits; else shares of the room; else one line a file."""
        caps = [file.max_tokens or self.settings.max_tokens_per_file for file in self.files]
        parts = [self.part(index, cap) for index, cap in enumerate(caps)]
        problems = tuple(
            f"{view.path}: a cap of {cap} tokens cannot say what it leaves out; at least {enough} are needed"
            for view, cap in zip(self.views, caps, strict=True)
            if (enough := min(view.tokens, view.line_tokens)) > cap
        )
        page = self._laid_out(parts, problems)
        if page.tokens <= self._limit:
            return page
        return self._shared(page) or self._lines(page)

    def _shared(self, full: Page) -> Page | None:
        """As `full`, with the files cut to what they are granted; None where they cannot all say that they are cut."""
        frame = self._tokens_of_frame(full.parts)
        claims = self._claims(full.parts)
        room = self._limit - frame
        if room < _floors(claims):
            return None
        problems = full.problems
        reserves = sum(min(claim.need, max(claim.reserve, claim.floor)) for claim in claims)
        if room < reserves:
            enough = _total_for(min(frame + reserves, full.tokens))
            problems = (
                *problems,
                f"prompt.max_tokens = {self.settings.max_tokens} shows of some files hardly more than what is left "
                f"out; at least {enough} are needed",
            )
        while room >= _floors(claims):
            granted = share(room, claims)
            parts = [
                part if have >= part.tokens else self.part(index, have)
                for index, (part, have) in enumerate(zip(full.parts, granted, strict=True))
            ]
            page = self._laid_out(parts, problems)
            if page.tokens <= self._limit:
                return page
            room -= page.tokens - self._limit
        return None

    def _lines(self, full: Page) -> Page:
        """Only what is left out, one line a file, the dearest first; where there is no room for any, that it is so.

        The directive stands above them where all of that fits.
        """
        total = self.settings.max_tokens
        by_priority = sorted(range(len(self.files)), key=lambda index: -self.files[index].priority)
        with_line = [index for index in by_priority if self.views[index].line]
        order = [index for index in with_line if self.views[index].line_tokens <= full.parts[index].cap]
        for_all = _total_for(min(self._tokens_of_frame(full.parts) + _floors(self._claims(full.parts)), full.tokens))
        for_lines = _total_for(self.count(self._joined(order)))
        shown, text = len(order), self._joined(order)
        while shown and self.count(text) > self._limit:
            shown -= 1
            text = self._joined(order[:shown])
        if not shown and with_line and self.count(NOTICE + "\n") <= self._limit:
            text = NOTICE + "\n"
        opening = stable_text((), self.settings.directive, (), self.session)
        with_opening = "\n".join(filter(None, (opening, text)))
        if shown == len(order) and self.count(with_opening) <= self._limit:
            text = with_opening
        named = set(order[:shown])
        problems = (
            *full.problems,
            f"prompt.max_tokens = {total} shows none of the rules; at least {for_all} are needed",
            *(
                f"{self.views[index].path}: prompt.max_tokens = {total} does not even name it; "
                f"at least {for_lines if index in order else for_all} are needed"
                for index in with_line
                if index not in named
            ),
        )
        parts = tuple(line_of(view, fits=index in named) for index, view in enumerate(self.views))
        return Page(text, self.count(text), parts, problems)

    @property
    def _limit(self) -> int:
        return _room_of(self.settings.max_tokens)

    def _laid_out(self, parts: Sequence[Part], problems: tuple[str, ...]) -> Page:
        text = self._text(parts)
        return Page(text, self.count(text), tuple(parts), problems)

    def _text(self, parts: Sequence[Part]) -> str:
        system = [part for part in parts if part.path in self.settings.system_files]
        files = [part for part in parts if part.path not in self.settings.system_files]
        tag = tag_for([text for view in self.views for text in (view.path, view.text)])
        return stable_text(system, self.settings.directive, files, self.session, tag)

    def _tokens_of_frame(self, parts: Sequence[Part]) -> int:
        """What stands around the files' texts, at most."""
        empty = [
            replace(part, text="", closing=closing_line(view.text), omitted=(Omission("", "", 0, 0),))
            for part, view in zip(parts, self.views, strict=True)
        ]
        return self.count(self._text(empty)) + SEAM * len(parts)

    def _claims(self, parts: Sequence[Part]) -> list[Claim]:
        return [
            Claim(part.tokens, file.priority, RESERVE, floor=view.line_tokens)
            for part, file, view in zip(parts, self.files, self.views, strict=True)
        ]

    def _joined(self, order: Sequence[int]) -> str:
        return "".join(f"{self.views[index].line}\n" for index in order)


def _floors(claims: Sequence[Claim]) -> int:
    return sum(min(claim.need, claim.floor) for claim in claims)


def _room_of(total: int) -> int:
    """What the stable part may have of a total."""
    return total - total // VOLATILE_SHARE


def _total_for(room: int) -> int:
    """The smallest total of which the stable part may have so much."""
    total = room
    while _room_of(total) < room:
        total += 1
    return total
