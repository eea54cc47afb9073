"""What a text shows once so many atoms have left it: the pieces, one below the other, and a line for each gap.

Never shows a byte of the source that it does not account for, and never puts two pieces so that they read as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

from prompt.ending import End
from prompt.tree import Block, stretches_left
from prompt.values import Omission

# An anchor longer than this costs more than it helps; the call then names the file.
LONGEST_ANCHOR = 80


@dataclass(frozen=True, slots=True)
class Beginning:
    """Of the last leaf to leave: where it ends, and how many tokens are shown of it."""

    leaf: Block
    end: End
    tokens: int


@dataclass(frozen=True, slots=True)
class Missing:
    """A block that is left out, whole or its end, the sections around it, and what is left out of it."""

    block: Block
    around: tuple[Block, ...]
    entries: int
    tokens: int


@dataclass(slots=True)
class Page:
    """The text with `gone` atoms less, and the account of what is not in it.

    waiting: what was left out since the last piece, not yet told. around: the root and the sections being laid.
    written: where in the source the last piece ended; -1 when the next one does not follow on it.
    """

    source: str
    path: str
    gone: int
    beginning: Beginning | None = None
    pieces: list[str] = field(default_factory=list)
    omitted: list[Omission] = field(default_factory=list)
    cut: list[tuple[int, int]] = field(default_factory=list)
    waiting: list[Missing] = field(default_factory=list)
    around: tuple[Block, ...] = ()
    written: int = -1
    newline: str = "\n"

    def lay(self, root: Block) -> str:
        """The page's text, with the line end the source has, and with a fence closed that runs to the source's end."""
        self.newline = "\r\n" if "\r\n" in self.source else "\n"
        if self._has_left(root):
            self._leave_out(root)
        else:
            self._lay_section(root)
        self._tell()
        leaf = root
        while leaf.children:
            leaf = leaf.children[-1]
        if leaf.unclosed and self._is_whole(leaf):
            self._add_line(leaf.unclosed)
        ending = self.newline if self.pieces and self.source.endswith(("\n", "\r")) else ""
        return "".join(self.pieces) + ending

    def _lay_section(self, section: Block) -> None:
        outside, self.around = self.around, (*self.around, section)
        if section.head:
            self._add(*section.head)
        for child in section.children:
            if self._has_left(child):
                self._leave_out(child)
            elif self._is_whole(child):
                self._add(child.start, child.end)
            elif child.kind == "section" and child.children:
                self._lay_section(child)
            else:
                self._lay_entry(child)
        self.around = outside

    def _lay_entry(self, entry: Block) -> None:
        """Show what is left of an entry; what is missing is told above it, but below where its end is missing."""
        missing: list[Missing] = []
        if self._find_missing(entry, missing):
            self._tell()
            self._lay(entry)
            self.waiting += missing
        else:
            self.waiting += missing
            self._tell()
            self._lay(entry)

    def _leave_out(self, block: Block) -> None:
        self.cut.append((block.start, block.end))
        self.waiting.append(Missing(block, self.around, block.entries, block.tokens))
        self.written = -1

    def _find_missing(self, block: Block, missing: list[Missing]) -> bool:
        """Collect and account for what is gone of a block; whether a leaf of it ends early."""
        if self._has_left(block):
            self.cut.append((block.start, block.end))
            missing.append(Missing(block, self.around, block.entries, block.tokens))
            return False
        if self._is_whole(block):
            return False
        if block.children:
            ends_early = [self._find_missing(child, missing) for child in block.children]
            return any(ends_early)
        end, shown = self._end_of(block)
        self.cut.append((block.start + end.at, block.end))
        missing.append(Missing(block, self.around, max(block.entries, 1), max(block.tokens - shown, 0)))
        return True

    def _lay(self, block: Block, above: Block | None = None) -> None:
        if self._has_left(block):
            self.written = -1
        elif self._is_whole(block):
            self._add(block.start, block.end, tight=_may_be_tight(block, above))
        elif block.children:
            if block.head:
                self._add(*block.head)
            last = None
            for child in block.children:
                self._lay(child, last or above)
                if not self._has_left(child):
                    last = child
        else:
            end, _ = self._end_of(block)
            self._separate(block.start, tight=_may_be_tight(block, above))
            self.pieces += [self.source[block.start : block.start + end.at], end.closing]
            self.written = -1

    def _end_of(self, leaf: Block) -> tuple[End, int]:
        """Where a leaf that is not whole ends, and how many tokens that shows of it."""
        if self.beginning and self.beginning.leaf is leaf:
            return self.beginning.end, self.beginning.tokens
        left = stretches_left(leaf, self.gone)
        return leaf.ends[left - 1], sum(leaf.shares[:left])

    def _tell(self) -> None:
        """Say in one line what was left out since the last piece, and account for it by section."""
        if not self.waiting:
            return
        waiting, self.waiting = self.waiting, []
        self.written = -1
        self._separate(-1)
        entries = sum(missing.entries for missing in waiting)
        tokens = sum(missing.tokens for missing in waiting)
        self.pieces.append(omission_line(entries, tokens, self.path, _place_of(waiting).anchor))
        for section, together in groupby(waiting, key=_section_of):
            same = list(together)
            self._account(section, sum(each.entries for each in same), sum(each.tokens for each in same))

    def _account(self, block: Block, entries: int, tokens: int) -> None:
        if block.kind == "root" and self._has_left(block):
            # The file as a whole: its sections tell more than one sum does.
            own = [child for child in block.children if child.kind == "entry"]
            if own or not block.children:
                total = sum(child.entries for child in own)
                self.omitted.append(Omission("", "", total, sum(child.tokens for child in own)))
            for child in block.children:
                if child.kind == "section":
                    self.omitted.append(Omission(child.anchor, child.heading, child.entries, child.tokens))
        else:
            self.omitted.append(Omission(block.anchor, block.heading, entries, tokens))

    def _add(self, start: int, end: int, *, tight: bool = False) -> None:
        self._tell()
        self._separate(start, tight=tight)
        self.pieces.append(self.source[start:end])
        self.written = end

    def _add_line(self, line: str) -> None:
        self.pieces.append(self.newline + line)
        self.written = -1

    def _separate(self, start: int, *, tight: bool = False) -> None:
        """What stands between two pieces: as in the source where they are neighbours there, else an empty line."""
        if self.written >= 0:
            self.pieces.append(self.source[self.written : start])
        elif self.pieces:
            self.pieces.append(self.newline if tight else self.newline * 2)

    def _has_left(self, block: Block) -> bool:
        return block.last < self.gone

    def _is_whole(self, block: Block) -> bool:
        return block.first >= self.gone and not (self.beginning and self.beginning.leaf is block)


def omission_line(entries: int, tokens: int, path: str = "", anchor: str = "") -> str:
    """The line that stands where something was left out; with a path, a call that reads it follows the colon."""
    amount = f"{tokens} token{'s' * (tokens != 1)} omitted"
    if entries:
        amount = f"{entries} {'entry' if entries == 1 else 'entries'}, {amount}"
    if not path:
        return f"[… {amount}]"
    place = f"{path}#{anchor}" if anchor and len(anchor) <= LONGEST_ANCHOR else path
    return f"[… {amount}: notebook_read {place}]"


def _place_of(waiting: Sequence[Missing]) -> Block:
    """The smallest section that holds all of it."""
    if len(waiting) == 1:
        return _section_of(waiting[0])
    place, *_ = around = waiting[0].around
    for step, section in enumerate(around):
        if any(len(missing.around) <= step or missing.around[step] is not section for missing in waiting):
            break
        place = section
    return place


def _section_of(missing: Missing) -> Block:
    """A section that is left out as a whole, else the one in which something is."""
    return missing.around[-1] if missing.block.kind == "entry" else missing.block


def _may_be_tight(block: Block, above: Block | None) -> bool:
    """Whether a piece may stand directly below another one: a row always, a nested bullet below a line of prose."""
    return block.is_row or (block.tight and above is not None and above.prose)
