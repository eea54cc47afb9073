"""The blocks of a Markdown text and the inline constructs in them, as ranges of its characters."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, takewhile
from typing import NamedTuple
from weakref import ref

# What a line may begin and end with without being a character of it: a no-break space is a character.
BLANK = " \t\r\n"
CODE = frozenset(("fence", "code_block"))
LISTS = frozenset(("bullet_list", "ordered_list"))
LINE_END = re.compile(r"\r\n?|\n")
# Where `str.splitlines` splits and CommonMark does not.
_NO_LINE_ENDS = "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
_CONTINUATION = bytes(range(0x80, 0xC0))
_CLOSING_MARKS = re.compile(r"(?:^|(?<=[ \t]))#+[ \t]*$")
_FENCE = re.compile(r"`{3,}|~{3,}")
_LIST_MARK = re.compile(r"[-+*]|\d{1,9}[.)]")
# The parser's names: the kind of a span, and the length of the mark on either side of it.
_SPANS = {
    "Emphasis": ("emphasis", 1),
    "Strong": ("strong", 2),
    "Strikethrough": ("strike", 2),
    "Link": ("link", 0),
    "Image": ("image", 0),
    "TableCell": ("break", 0),
    "Text": ("text", 0),
    "Code": ("code", 1),
    "InlineHtml": ("html", 0),
    "SoftBreak": ("break", 0),
    "HardBreak": ("break", 0),
}
# An inline event of the parser: its name, its text or destination, and its place in bytes.
Event = tuple[str, str | None, int, int]


class Span(NamedTuple):
    """An inline construct `[start, end)` of the text.

    kind: text, code, html, break, emphasis, strong, strike, link or image. value: what it shows (text, code), its
    source (html), or its destination (link, image). width: the length of the mark on either side of emphasis or code.
    """

    kind: str
    start: int
    end: int
    value: str = ""
    width: int = 0


class Lines:
    """A text and where its lines start. CommonMark ends lines at LF, CR and CRLF; `str.splitlines` at more."""

    __slots__ = ("starts", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        if any(each in text for each in _NO_LINE_ENDS):
            self.starts = [0, *(match.end() for match in LINE_END.finditer(text))]
            if self.starts[-1] < len(text):
                self.starts.append(len(text))
        else:  # twice as fast
            self.starts = [0, *accumulate(map(len, text.splitlines(keepends=True)))]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def start(self, line: int) -> int:
        """Where a line starts; the end of the text for one below the last."""
        return self.starts[min(line, len(self.starts) - 1)]

    def at(self, position: int) -> int:
        """The 0-based line that holds the character at `position`."""
        return bisect_right(self.starts, position) - 1

    def line(self, number: int) -> str:
        """A line with its line end; "" outside of the text."""
        return self.text[self.starts[number] : self.starts[number + 1]] if 0 <= number < len(self) else ""

    def is_blank(self, number: int) -> bool:
        """Lines outside of the text are blank."""
        return not self.line(number).strip()

    def span(self, first: int, last: int) -> tuple[int, int]:
        """The lines `[first, last)` as characters, without the white space they end with."""
        start, end = self.start(first), self.start(last)
        return start, start + len(self.text[start:end].rstrip())


class Source:
    """The text that blocks are ranges of. It holds no block, so that a tree is freed as soon as nobody uses it."""

    __slots__ = ("_lines", "char", "text")

    def __init__(self, text: str, parsed: str) -> None:
        """`parsed` is `text` as the parser gets it; `char` turns byte offsets in it into characters."""
        self.text = text
        self.char: Callable[[int], int] = int if parsed.isascii() else _char_offsets(parsed)
        self._lines: Lines | None = None

    @property
    def lines(self) -> Lines:
        if self._lines is None:
            self._lines = Lines(self.text)
        return self._lines

    def span(self, event: Event) -> Span:
        """The inline construct that an event begins or is."""
        name, value, start, end = event[0], event[1], self.char(event[2]), self.char(event[3])
        kind, width = _SPANS[name]
        if kind == "code":
            source = self.text[start:end]
            width = len(source) - len(source.lstrip("`"))
        return Span(kind, start, end, value or "", width)


def _char_offsets(text: str) -> Callable[[int], int]:
    raw = text.encode()
    sizes = (len(raw[at : at + 256].translate(None, _CONTINUATION)) for at in range(0, len(raw), 256))
    counts = [0, *accumulate(sizes)]
    return lambda at: counts[at >> 8] + len(raw[at & ~255 : at].translate(None, _CONTINUATION))


class Block:
    """A block `[start, end)` of the text, without what it is nested in to the left and the blank lines below it.

    type: root, paragraph, heading, fence, code_block, html_block, hr, blockquote, bullet_list, ordered_list, list_item,
    table, row, definition (of links), or math (a formula that `prompt.pieces` keeps whole). level: of a heading, 1 to
    6. info: what follows the opening marks of a fence. quotes: how many block quotes hold it.
    """

    __slots__ = (
        "__weakref__",
        "_parent",
        "_source",
        "_spans",
        "children",
        "end",
        "events",
        "info",
        "level",
        "quotes",
        "start",
        "type",
    )

    def __init__(self, kind: str, start: int, end: int, parent: Block | None, source: Source) -> None:
        self.type, self.start, self.end = kind, start, end
        self.level, self.info, self.quotes = 0, "", 0
        # Weak: a tree without cycles is freed at once, and a sync reads thousands of them.
        self._parent = None
        if parent is not None:
            self._parent = ref(parent)
            self.quotes = parent.quotes + (parent.type == "blockquote")
        self._source = source
        self.children: list[Block] = []
        self.events: list[Event] = []
        self._spans: list[Span] | None = None

    @property
    def parent(self) -> Block | None:
        """The block that holds it; None for the root. It lives as long as the outline does."""
        return self._parent() if self._parent else None

    @property
    def spans(self) -> list[Span]:
        """What is in the lines of a paragraph, heading, row or code, parents before what they hold."""
        events = self.events
        if self._spans is None:
            self._spans = [self._source.span(event) for event in events]
            self.events = []  # last, since another thread may read here
        return self._spans

    def first_spans(self, before: int) -> Iterator[Span]:
        """Those of `spans` that start before a position: of a very long block, the others are not even made."""
        spans = map(self._source.span, self.events) if self._spans is None else iter(self._spans)
        return takewhile(lambda span: span.start < before, spans)

    @property
    def first(self) -> int:
        """The 0-based line on which it starts."""
        return self._source.lines.at(self.start)

    @property
    def last(self) -> int:
        """The line below its last line."""
        return max(self._source.lines.at(self.end - 1), self.first) + 1

    @property
    def markup(self) -> str:
        """`##` of a heading, the opening marks of a fence, the mark of a list or an item (`-`, `1.`)."""
        if self.type == "heading":
            return "#" * self.level
        if self.type != "fence" and not self.type.endswith(("_list", "_item")):
            return ""
        mark = (_FENCE if self.type == "fence" else _LIST_MARK).match(self._source.text, self.start)
        return mark[0] if mark else ""

    @property
    def closed(self) -> bool:
        """False for a fence that nothing closes before what holds it ends."""
        if self.type != "fence":
            return True
        code_end = self.spans[-1].end if self.spans else self._source.lines.start(self.first + 1)
        return self._source.text[code_end : self.end].lstrip(" \t>").startswith(self.markup)

    @property
    def entries(self) -> int:
        """How many list items and rows are in it, at any depth; table heads do not count."""
        blocks = [*self.walk()] if self.children else []
        heads = sum(block.type == "table" for block in (self, *blocks))
        return sum(block.type in ("list_item", "row") for block in blocks) - heads

    @property
    def shown(self) -> str:
        """What a reader sees of a paragraph, heading or row, on one line: no marks, links as their text."""
        events = self.events
        if len(events) == 1 and events[0][0] == "Text":  # most headings: no span need be made
            return " ".join((events[0][1] or "").split())
        return shown_text(self.spans)

    @property
    def content(self) -> str:
        r"""The source of a block that holds no others, without what it is nested in and without the marks of a heading.

        Code is exact, with \n at its line ends; other lines lose the white space around them.
        """
        if self.type in CODE:
            return LINE_END.sub("\n", "".join(span.value for span in self.spans))
        lines = [line.strip(" \t") for line in LINE_END.split(self._source.text[self.start : self.end])]
        marks = re.compile(rf"(?:[ \t]*>){{0,{self.quotes}}}[ \t]*")
        lines[1:] = [marks.sub("", line, count=1) for line in lines[1:]]
        if self.type == "heading" and len(lines) > 1:
            lines.pop()  # the underline
        elif self.type == "heading":
            lines[0] = _CLOSING_MARKS.sub("", lines[0][self.level :]).strip(" \t")
        return "\n".join(lines)

    def through(self, last: Block) -> Block:
        """One block of type math from where this one starts to where `last`, a sibling below it, ends."""
        return Block("math", self.start, last.end, self.parent, self._source)

    def walk(self) -> Iterator[Block]:
        """Every block below this one, parents first, in the text's order."""
        waiting = self.children[::-1]
        while waiting:
            block = waiting.pop()
            yield block
            waiting.extend(reversed(block.children))


def shown_text(spans: Sequence[Span], *, alt: bool = True) -> str:
    """What a reader sees of `spans`, on one line; the alternative text of images only if there is nothing else."""
    pieces: list[str] = []
    images: list[str] = []
    image_end = 0
    for span in spans:
        if span.kind == "image":
            image_end = max(image_end, span.end)
        elif span.kind in ("text", "code"):
            (images if span.start < image_end else pieces).append(span.value)
        elif span.kind == "break":
            pieces.append(" ")
    return " ".join("".join(pieces).split()) or (" ".join("".join(images).split()) if alt else "")
