"""A text with only some of its pieces: one below the other, with a line or a mark where a section lacks something.

Never shows a byte of the source that it does not account for, and never puts two pieces so that they read as one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from prompt.budget import Count
from prompt.ends import MORE, closing_at, omission_line, open_end
from prompt.outline import Block, Outline
from prompt.pieces import Chapter, Piece, all_chapters
from prompt.values import Omission

# Makes the line that says how many entries a chapter lacks.
Line = Callable[[int, Chapter], str]


class Excerpt:
    """`shown` of the pieces below `root`. `cut` are the stretches `[start, end)` that are not in `text`, in order.

    With `one_call`, a section that lacks entries of its own ends in a mark, and the text in the one line with a call.
    `is_valid` is False where a block would end at a place where none can.
    """

    def __init__(
        self, outline: Outline, root: Chapter, shown: set[Piece], line: Line, *, one_call: bool = False
    ) -> None:
        self._outline, self._source = outline, outline.text
        self._shown, self._line, self._one_call = shown, line, one_call
        self._newline = "\r\n" if "\r\n" in outline.text else "\n"
        self._parts: list[str] = []
        self._last: Piece | None = None
        self._end = 0
        self._has_gap = False
        self._moved_lists: set[Block | None] = set()
        # The chapters that lack something, how many entries, and the text that they lack.
        self._lacking: list[tuple[Chapter, int, str]] = []
        self.cut: list[tuple[int, int]] = []
        self.is_valid = True
        self._lay(root)
        if one_call:
            self._add_line(self._line(sum(entries for _, entries, _ in self._lacking), root))
        self._close()
        if self._has_gap:
            self.cut.append((self._end, len(self._source)))
        ending = self._newline if self._parts and self._source.endswith(("\n", "\r")) else ""
        self.text = "".join(self._parts) + ending

    def omissions(self, count: Count) -> Iterator[Omission]:
        """What each section lacks, in the text's order; one that is not shown at all has its own."""
        for chapter, entries, text in self._lacking:
            yield Omission(chapter.section.anchor, chapter.section.title, entries, count(text))

    def _lay(self, chapter: Chapter) -> None:
        own = [piece for piece in chapter.all_pieces if not self._add(piece)]
        hidden = [each for below in hidden_below(chapter, self._shown) for each in all_chapters(below)]
        lacking, below = sum(piece.entries for piece in own), sum(each.entries for each in hidden)
        if own:
            text = "\n".join(self._source[piece.start : piece.end] for piece in own)
            self._lacking.append((chapter, lacking, text))
            self._add_line(omission_line(lacking) if self._one_call else self._line(lacking + below, chapter))
        for one in chapter.chapters:
            if is_visible(one, self._shown):
                self._lay(one)
            else:
                self._lacking += [(each, each.entries, each.text) for each in all_chapters(one)]
                self._has_gap = True
        if hidden and not own and not self._one_call:
            self._add_line(self._line(below, chapter))

    def _add(self, piece: Piece) -> bool:
        """Show a piece if it is one of those to be shown; whether it is."""
        if piece not in self._shown:
            self._has_gap = True
            return False
        if self._has_gap:
            self.cut.append((self._end, piece.line))
        if self._has_gap or not self._last:
            self._close()
            self._parts.append(self._space_above(piece) if self._parts else "")
        else:
            self._parts.append(self._source[self._end : piece.line])
        items = piece.item.parent if piece.item else None
        if self._has_gap and piece.line < piece.start:
            self._moved_lists.add(items)
        self._parts.append(self._source[piece.start if items in self._moved_lists else piece.line : piece.end])
        self._last, self._end, self._has_gap = piece, piece.end, False
        return True

    def _add_line(self, line: str) -> None:
        self._close()
        if self._last and self._last.end == self._last.block.end:
            self._parts.append(open_end(self._outline, self._last.block).replace("\n", self._newline))
        self._parts += [self._newline * 2 if self._parts else "", line]
        self._last = None

    def _close(self) -> None:
        """Close what the last piece leaves open, where the rest of its block is not shown."""
        if self._last and self._last.more:
            closing = closing_at(self._outline, self._last.block, self._end)
            self.is_valid = self.is_valid and closing is not None
            self._parts.append((closing or "").replace("\n", self._newline))

    def _space_above(self, piece: Piece) -> str:
        """What separates a piece from the last one, which it does not follow in the source."""
        if piece.block.type == "code_block" and self._last:  # its margin could make it part of the list or code above
            return f"{self._newline}{self._newline}[{MORE}]{self._newline}{self._newline}"
        if self._last and self._is_tight(self._last, piece):
            return self._newline
        return self._newline + (self._quote_marks(self._last, piece) if self._last else "") + self._newline

    def _is_tight(self, last: Piece, following: Piece) -> bool:
        """Whether a piece stands right below another, as rows do, and items of one list without blank lines."""
        if following.block.type == "row":
            return True
        item = following.item
        if item is None or item.parent is None:
            return False
        if item.parent.start <= last.block.start:  # of the same list
            return not self._outline.lines.is_blank(item.first - 1)
        # A list that begins with another number would go on with the paragraph above it.
        may_follow = last is following.frame and (not item.markup[0].isdigit() or item.markup[:-1] == "1")
        return may_follow and not self._outline.lines.is_blank(item.parent.first - 1)

    def _quote_marks(self, last: Piece, following: Piece) -> str:
        """The marks of the quote in which both pieces stand; "" outside of quotes."""
        depth = 0
        block = following.block.parent
        while block:
            depth += block.type == "blockquote" and block.start <= last.block.start
            block = block.parent
        line = self._outline.lines.line(following.block.first)
        marks = re.match(rf"(?:[ \t]*>){{{depth}}}", line) if depth else None
        return marks[0] if marks else ""


def is_visible(chapter: Chapter, shown: set[Piece]) -> bool:
    return chapter.heading is None or chapter.heading in shown


def hidden_below(chapter: Chapter, shown: set[Piece]) -> list[Chapter]:
    """The chapters right below `chapter` of which nothing is shown."""
    return [below for below in chapter.chapters if not is_visible(below, shown)]
