"""The structure-exact cut: Markdown in, Markdown of at most so many tokens out. Never breaks a fence, a table, a list
or a character, and never leaves out a thing without saying so.

A cap too small even for the line that says what is left out gives the empty text.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from operator import neg

from prompt.comments import end_of_grammar
from prompt.ending import longest_beginning
from prompt.tree import Block, leaving_order, tree_of
from prompt.values import Omission

Count = Callable[[str], int]

# A block that would fill more than this share of the cap is divided rather than left out whole.
LARGE = 8
# After so many pages laid by reckoning, the search for the border goes on by halving.
RECKONED_TRIES = 5
# An anchor longer than this costs more than it helps; the call then names the file.
LONGEST_ANCHOR = 80


@dataclass(frozen=True, slots=True)
class Trimmed:
    """What is left of a text. `cut` are the stretches `[start, end)` of it that are not shown, in order and apart."""

    text: str
    tokens: int
    omitted: tuple[Omission, ...] = ()
    cut: tuple[tuple[int, int], ...] = ()


def trim(text: str, cap: int, count: Count, *, path: str = "", pinned: frozenset[int] = frozenset()) -> Trimmed:
    """`text` in at most `cap` tokens as `count` counts them; the text itself where it fits.

    What leaves, in this order: the comment the text opens with; whole sections, those not pinned first and earlier
    ones before later ones; then list items, paragraphs and rows of the section at the border; and of a large paragraph
    there, its end, at a grapheme boundary. Each stretch left out leaves one line that names the call to read it in
    `path`. `pinned` are the characters at which pinned headings begin.
    """
    tokens = count(text)
    if tokens <= cap:
        return Trimmed(text, tokens)
    if grammar := end_of_grammar(text):
        rest = trim(text[grammar:], cap, count, path=path, pinned=frozenset(at - grammar for at in pinned))
        cut = ((start + grammar, end + grammar) for start, end in rest.cut)
        return Trimmed(rest.text, rest.tokens, rest.omitted, ((0, grammar), *cut))
    return _Cut(text, cap, count, path, pinned).best()


class _Cut:
    """One text on its way under one cap. `gone` is how many leaves have left, in leaving order."""

    def __init__(self, text: str, cap: int, count: Count, path: str, pinned: frozenset[int]) -> None:
        self.text, self.cap, self.count, self.path = text, cap, count, path
        self.root = tree_of(text, pinned, self._is_large)
        self.order = leaving_order(self.root)
        self._count_tokens(self.root)

    def best(self) -> Trimmed:
        gone = self._fewest_gone()
        shown = self._shown(gone)
        if gone:
            shown = self._with_beginning(gone, shown)
        return shown if shown.tokens <= self.cap else Trimmed("", 0, shown.omitted, ((0, len(self.text)),))

    def _is_large(self, start: int, end: int) -> bool:
        # A token is at least a byte, and a character at most four: what is short needs no count.
        share = self.cap // LARGE
        return (end - start) * 4 > share and self.count(self.text[start:end]) > share

    def _count_tokens(self, block: Block) -> int:
        if not block.children:
            block.tokens = self.count(self.text[block.start : block.end])
        else:
            head = self.count(self.text[slice(*block.head)]) if block.head else 0
            block.tokens = head + sum(self._count_tokens(child) for child in block.children)
        return block.tokens

    def _fewest_gone(self) -> int:
        """How many leaves must go for the rest to fit; all of them where not even that is enough.

        The sum of the leaves that stay is near the count of the page: frames and markers cost, neighbours share
        tokens. Each page laid tells by how much, so two or three are enough; halving bounds the odd case.
        """
        left = list(accumulate((-leaf.tokens for leaf in self.order), initial=self.root.tokens))
        too_few, enough = -1, len(self.order)
        frame = tries = 0
        while enough - too_few > 1:
            guess = bisect_left(left, frame - self.cap, key=neg) if tries < RECKONED_TRIES else (too_few + enough) // 2
            guess = min(max(guess, too_few + 1), enough - 1)
            tokens = self._shown(guess).tokens
            if tokens <= self.cap:
                enough = guess
            else:
                too_few = guess
            frame, tries = tokens - left[guess], tries + 1
        return enough

    def _with_beginning(self, gone: int, shown: Trimmed) -> Trimmed:
        """As `shown`, with the beginning of the leaf that left last, where it can be cut and there is room for it."""
        leaf, share = self.order[gone - 1], self.cap // LARGE
        nothing_else = gone == len(self.order)
        if leaf.ends == "never" or not (nothing_else or (leaf.tokens > share and self.cap - shown.tokens > share)):
            return shown
        whole = self.text[leaf.start : leaf.end]
        room = self.cap - self._shown(gone, (0, "", 0)).tokens
        while room > 0:
            length, beginning = longest_beginning(whole, room, self.count, prose=leaf.ends == "prose")
            if not length:
                break
            more = self._shown(gone, (length, beginning, self.count(beginning)))
            if more.tokens <= self.cap:
                return more
            room -= more.tokens - self.cap
        return shown

    def _shown(self, gone: int, beginning: tuple[int, str, int] | None = None) -> Trimmed:
        page = _Page(self.text, self.path, gone, beginning)
        page.lay_section(self.root)
        text = page.ended(self.root)
        return Trimmed(text, self.count(text), tuple(page.omitted), tuple(page.cut))


@dataclass(slots=True)
class _Page:
    """The pieces that are shown, one below the other, and the account of what is not.

    beginning: of the leaf that left last, what is shown all the same: characters of the source, text, and tokens.
    waiting: what was left out since the last piece of the same section, not yet told: blocks and tokens.
    written: where in the source the last piece ended; -1 when the next one does not follow on it.
    """

    source: str
    path: str
    gone: int
    beginning: tuple[int, str, int] | None
    pieces: list[str] = field(default_factory=list)
    omitted: list[Omission] = field(default_factory=list)
    cut: list[tuple[int, int]] = field(default_factory=list)
    waiting: list[tuple[Block, int]] = field(default_factory=list)
    written: int = -1

    def lay_section(self, section: Block) -> None:
        """Show what is left of a section, or of the whole text."""
        if section.head:
            self._add(*section.head)
        for child in section.children:
            if child.kind != "section" or not child.children or self._has_left(child):
                self._lay_entry(child, section)
            else:
                self._tell(section)
                if self._is_whole(child):
                    self._add(child.start, child.end)
                else:
                    self.lay_section(child)
        self._tell(section)

    def ended(self, root: Block) -> str:
        """The text, with the line end the source has, and with a fence closed that runs to the source's end."""
        block = root
        while block.children and block.kind != "entry":
            block = block.children[-1]
        if block.unclosed and self._is_whole(block):
            self._add_line(block.tail)
        ending = self._newline if self.pieces and self.source.endswith(("\n", "\r")) else ""
        return "".join(self.pieces) + ending

    def _lay_entry(self, entry: Block, section: Block) -> None:
        missing = list(self._missing(entry))
        if self._has_left(entry):
            self.waiting += missing
            self.written = -1
        elif entry.latest_first or not entry.children:
            # It is the end that is missing, so the line that says so stands below.
            self._tell(section)
            self._lay(entry)
            self.waiting += missing
        else:
            self.waiting += missing
            self._tell(section)
            self._lay(entry)

    def _missing(self, block: Block) -> Iterator[tuple[Block, int]]:
        if self._has_left(block):
            self.cut.append((block.start, block.end))
            yield block, block.tokens
        elif block.children:
            for child in block.children:
                yield from self._missing(child)
        elif not self._is_whole(block) and self.beginning:
            length, _, tokens = self.beginning
            self.cut.append((block.start + length, block.end))
            yield block, max(block.tokens - tokens, 0)

    def _lay(self, block: Block, tight: bool = False) -> None:
        if self._has_left(block):
            self.written = -1
        elif self._is_whole(block):
            self._add(block.start, block.end, tight)
        elif block.children:
            if block.head:
                self._add(*block.head, tight)
            for child in block.children:
                self._lay(child, tight=child.tight or block.head is not None)
            if block.tail:
                self._add_line(block.tail)
        elif self.beginning:
            self._separate(block.start, tight)
            self.pieces.append(self.beginning[1])
            self.written = -1

    def _tell(self, section: Block) -> None:
        """Say in one line what was left out since the last piece, and account for it."""
        if not self.waiting:
            return
        place = section
        if len(self.waiting) == 1 and self.waiting[0][0].kind == "section":
            place = self.waiting[0][0]
        entries = sum(block.entries for block, _ in self.waiting)
        tokens = sum(tokens for _, tokens in self.waiting)
        self.written = -1
        self._separate(-1)
        self.pieces.append(marker(entries, tokens, self.path, place.anchor))
        own = [(block, tokens) for block, tokens in self.waiting if block.kind != "section"]
        if own:
            count = sum(block.entries for block, _ in own)
            self.omitted.append(Omission(section.anchor, section.heading, count, sum(tokens for _, tokens in own)))
        for block, tokens in self.waiting:
            if block.kind == "section":
                self.omitted.append(Omission(block.anchor, block.heading, block.entries, tokens))
        self.waiting = []

    def _add(self, start: int, end: int, tight: bool = False) -> None:
        self._separate(start, tight)
        self.pieces.append(self.source[start:end])
        self.written = end

    def _add_line(self, line: str) -> None:
        self.pieces.append(self._newline + line)
        self.written = -1

    def _separate(self, start: int, tight: bool = False) -> None:
        """What stands between two pieces: as in the source where they are neighbours there, else an empty line."""
        if self.written >= 0:
            self.pieces.append(self.source[self.written : start])
        elif self.pieces:
            self.pieces.append(self._newline if tight else self._newline * 2)

    @property
    def _newline(self) -> str:
        return "\r\n" if "\r\n" in self.source else "\n"

    def _has_left(self, block: Block) -> bool:
        return block.last < self.gone - (self.beginning is not None)

    def _is_whole(self, block: Block) -> bool:
        return block.first >= self.gone


def marker(entries: int, tokens: int, path: str, anchor: str) -> str:
    """The line that stands where something was left out; after the colon, a call that reads it."""
    amount = f"{tokens} token{'s' * (tokens != 1)} omitted"
    if entries:
        amount = f"{entries} {'entry' if entries == 1 else 'entries'}, {amount}"
    if not path:
        return f"[… {amount}]"
    place = f"{path}#{anchor}" if anchor and len(anchor) <= LONGEST_ANCHOR else path
    return f"[… {amount}: notebook_read {place}]"
