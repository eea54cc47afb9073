"""The structure of a Markdown text: its blocks with their places, and what stands inside their lines.

The only Markdown reader of the project. pulldown-cmark (through `pyromark`) decides what is what; this module turns
its events into blocks with character offsets. Any depth of nesting is read, in time linear in the text.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple
from weakref import ref

import pyromark

Type = Literal[
    "root",
    "tight",  # a paragraph that the parser gives no event for, while it is read
    "paragraph",
    "heading",
    "fence",
    "code_block",
    "html_block",
    "hr",
    "blockquote",
    "bullet_list",
    "ordered_list",
    "list_item",
    "table",
    "row",
    "definition",
]
SpanKind = Literal["text", "code", "html", "break", "emphasis", "strong", "strike", "link", "image"]

_OPTIONS = pyromark.Options.ENABLE_TABLES | pyromark.Options.ENABLE_STRIKETHROUGH | pyromark.Options.ENABLE_WIKILINKS
# What CommonMark takes for the end of a line; `str.splitlines` takes more.
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
# What a line may begin and end with without being a character of it: no-break spaces are characters.
_BLANK = " \t\r\n"
_SPACE = re.compile(f"[{_BLANK}]*")
_NOT_IN_ANCHOR = re.compile(r"[^\w\- ]")
# Of so many events of a text it is kept at once what stands in its blocks: of all but very long ones, everything.
_MOST_KEPT = 20_000
_LONE_RETURN = re.compile(r"\r(?!\n)")
_SURROGATE = re.compile("[\ud800-\udfff]")


# The name of what the parser gives, its value (text, level, address), and its place in bytes. Flat, as the garbage
# collector need not look into a tuple of strings and numbers.
_Event = tuple[str, Any, int, int]
# A block at top level: as an event, from where to where in the list of events what it holds stands (`sys.maxsize` where
# not all of that is kept), and how many list items and rows it has.
_Top = tuple[str, Any, int, int, int, int, int]


class Span(NamedTuple):
    """An inline construct `[start, end)` of the text. `value` is what it shows (text, code), its source (html) or
    where it leads (link, image). `width` is the length of the mark on either side of emphasis or code."""

    kind: SpanKind
    start: int
    end: int
    value: str = ""
    width: int = 0


class Block:
    """A block: on the lines `[first, last)`, 0-based, without the blank lines below it; `end` is where its last line
    ends, without its line end. `start` is where its mark or its text begins, to the right of what it is nested in.

    markup: `##` of a heading, the opening marks of a fence, the mark of a list or an item (`-`, `1.`).
    info: what follows the opening marks of a fence.
    entries: of a block at top level, how many list items and rows it has, at any depth; table heads do not count.
    closed: False for a fence that nothing closes before what holds it ends.
    spans: what stands in the lines of a paragraph, a heading, a row or code, parents before what they hold.
    """

    __slots__ = (
        "__weakref__",
        "_events",
        "_from",
        "_number",
        "_parent",
        "_source",
        "_to",
        "_value",
        "children",
        "closed",
        "end",
        "entries",
        "first",
        "last",
        "markup",
        "spans",
        "start",
        "type",
    )
    children: list[Block]
    start: int
    end: int
    first: int
    last: int
    markup: str
    closed: bool
    entries: int

    def __init__(self, event: _Event, parent: Block | None, source: _Source, number: int = -1) -> None:
        name, self._value, self._from, self._to = event
        self.type = _BLOCKS.get(name, "tight")
        if self._value is not None:
            self.type = _WITH_VALUE.get(self.type, self.type)
        # Weak, as a tree without cycles is freed at once: a sync reads thousands of texts.
        self._parent = None if parent is None else ref(parent)
        self._source = source
        # Which of the blocks at top level it is.
        self._number = number

    @property
    def parent(self) -> Block | None:
        """The block that holds it; None for the root. It lives as long as the outline does."""
        return self._parent() if self._parent else None

    def __getattr__(self, name: str) -> Any:
        """Where a block is and what it holds, found out when somebody asks first."""
        if name == "_events":
            self._events = self._source.inside(self._number)
        elif name == "spans":
            events = self._events if self.type in _TEXT_HOLDERS else ()
            self.spans = [self._source.span(event) for event in events]
        elif name == "children":
            self.children = []
            if self.type in _CONTAINERS:
                _fill(self)
        elif name == "entries":
            self.entries = self._source.kept[0][self._number][6] if self._number >= 0 else 0
        elif name in _LOCATED:
            self._source.locate(self)
        else:
            raise AttributeError(name)
        return getattr(self, name)

    @property
    def info(self) -> str:
        return self._value.strip() if self.type == "fence" else ""

    @property
    def level(self) -> int:
        """The level of a heading, 1 to 6."""
        return len(self.markup)

    @property
    def shown(self) -> str:
        """What a reader sees of a paragraph, a heading or a row, on one line: no marks, links as their text."""
        return shown_text(self.spans)

    def first_spans(self, most: int) -> list[Span]:
        """As `spans`, of a paragraph at top level; no more than `most` of them."""
        return [self._source.span(event) for event in self._source.inside(self._number, most)]

    @property
    def content(self) -> str:
        """The source of a block that holds no others, without what it is nested in and without the marks of a heading.

        Code is to the character, with \\n at its line ends; of any other line the white space around it is left out.
        """
        if self.type in ("fence", "code_block"):
            return _LINE_END.sub("\n", "".join(span.value for span in self.spans))
        lines = [line.strip(" \t") for line in _LINE_END.split(self._source.text[self.start : self.end])]
        if len(lines) > 1:
            quotes = self.quotes
            lines[1:] = [_without_quotes(line, quotes) for line in lines[1:]]
        if self.type == "heading":
            if len(lines) > 1:
                lines.pop()  # the underline
            else:
                lines[0] = _CLOSING_MARKS.sub("", lines[0][self.level :]).strip(" \t")
        return "\n".join(lines)

    @property
    def quotes(self) -> int:
        """How many quotes hold it."""
        count, block = 0, self.parent
        while block is not None:
            count += block.type == "blockquote"
            block = block.parent
        return count

    def walk(self) -> Iterator[Block]:
        """Every block below this one, parents first, in the text's order."""
        waiting = self.children[::-1]
        while waiting:
            block = waiting.pop()
            yield block
            waiting.extend(reversed(block.children))


@dataclass(frozen=True, slots=True)
class Section:
    """What a heading begins. `title` is the heading as a reader sees it, `anchor` what a link names it by.

    `start` is where the first line of the heading begins, `body` where the line below the heading does.
    """

    heading: Block | None
    title: str
    anchor: str
    start: int = 0
    body: int = 0

    @property
    def level(self) -> int:
        """The level of the heading; 0 without one."""
        return self.heading.level if self.heading else 0


def anchors_of(titles: Sequence[str]) -> list[str]:
    """One anchor for each title, as GitHub makes them: lower case, no punctuation, `-` for spaces, `-1`, `-2` for
    repeats."""
    taken: dict[str, int] = {}
    anchors = []
    for title in titles:
        wanted = anchor = _NOT_IN_ANCHOR.sub("", title.lower()).replace(" ", "-") or "section"
        while anchor in taken:
            taken[wanted] += 1
            anchor = f"{wanted}-{taken[wanted]}"
        taken[anchor] = 0
        anchors.append(anchor)
    return anchors


class Lines:
    """A text and where its lines start."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = [match.start() for match in _LINE.finditer(text)]
        self.starts.append(len(text))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def start(self, line: int) -> int:
        return self.starts[min(line, len(self.starts) - 1)]

    def at(self, position: int) -> int:
        """The line that holds the character at `position`."""
        return bisect_right(self.starts, position) - 1

    def line(self, number: int) -> str:
        """A line with its line end; "" for one outside of the text."""
        return self.text[self.starts[number] : self.starts[number + 1]] if 0 <= number < len(self) else ""

    def is_blank(self, number: int) -> bool:
        """Lines outside of the text are blank."""
        return not self.line(number).strip()

    def span(self, first: int, last: int) -> tuple[int, int]:
        """The lines `[first, last)` as characters, without the white space they end with."""
        start, end = self.start(first), self.start(last)
        return start, start + len(self.text[start:end].rstrip())


class _Source:
    """The text that blocks are places of, what the parser finds in it, and its offsets as characters of the text."""

    def __init__(self, text: str) -> None:
        self.text = text
        # The parser reads UTF-8, and does not end indented code at a lone \r.
        self.parsed = text if text.isascii() else _SURROGATE.sub("\ufffd", text)
        if "\r" in text:
            self.parsed = _LONE_RETURN.sub("\n", self.parsed)
        self.char = _char_offsets(self.parsed)
        self.read(_MOST_KEPT)

    def read(self, most: int) -> None:
        """Find the blocks at top level. What stands in them is kept of headings, and of others up to `most` events:
        for most blocks nobody asks for it."""
        tops: list[_Top] = []
        events: list[_Event] = []
        units: list[tuple[str, int]] = []
        links: list[_Event] = []
        hashes: list[_Event] = []
        depth = links_open = begin = entries = last = 0
        keep = in_code = False
        pairs: Any = pyromark.events_with_range(self.parsed, options=_OPTIONS, merge_text=True)
        for given, place in pairs:
            value: Any = None
            name, value = (given, None) if type(given) is str else given.popitem()
            if name == "Start":
                name, value = (value, None) if type(value) is str else value.popitem()
                if name in _BLOCKS:
                    value = _VALUES[name](value) if name in _VALUES else value
                    in_code = name == "CodeBlock"
                    depth += 1
                    if (depth == 1 and name != "List") or (depth == 2 and name == "Item"):
                        units.append((name, place["start"]))
                    if depth == 1:
                        top, value_of_top, begin, entries = name, value, len(events), 0
                        keep = begin < most or name == "Heading"
                        continue
                    entries += name == "Item" or name == "TableRow"
                elif name == "Link" or name == "Image":
                    value = value["dest_url"]
                    links_open += 1
                    links.append((name, value, place["start"], place["end"]))
            elif name == "End":
                name = value if type(value) is str else next(iter(value))
                links_open -= name == "Link" or name == "Image"
                if name not in _BLOCKS:
                    continue
                in_code = False
                depth -= 1
                if not depth:
                    # The place of a list may take in the definitions below it; that of its last item does not.
                    end = last if top == "List" else place["end"]
                    stop = len(events) if keep else sys.maxsize
                    tops.append((top, value_of_top, place["start"], end, begin, stop, entries))
                    continue
                name, last = "End", place["end"]
            elif name == "Text":
                if "#" in value and not links_open and not in_code:
                    hashes.append((name, value, place["start"], place["end"]))
            elif name == "Rule" and not depth:
                units.append((name, place["start"]))
                tops.append((name, None, place["start"], place["end"], 0, 0, 0))
                continue
            if keep:
                events.append((name, value, place["start"], place["end"]))
                keep = len(events) < most or top == "Heading"
        # At once, as another thread may read from here.
        self.kept, self.units, self.links, self.hashes = (tops, events), units, links, hashes

    def inside(self, number: int, most: int = sys.maxsize) -> list[_Event]:
        """What stands in a block at top level; of more than `most` events, those."""
        tops, events = self.kept
        begin, stop = tops[number][4:6]
        if stop < sys.maxsize or begin + most <= len(events):
            return events[begin : min(stop, begin + most)]
        self.read(sys.maxsize)
        return self.inside(number, most)

    @cached_property
    def lines(self) -> Lines:
        return Lines(self.text)

    def span(self, event: _Event) -> Span:
        """The inline construct that an event of the parser begins or is."""
        name, value, *place = event
        start, end = map(self.char, place)
        if name in _INLINE:
            kind, width = _INLINE[name]
            return Span(kind, start, end, value or "", width)
        if name == "Code":
            source = self.text[start:end]
            return Span("code", start, end, value, len(source) - len(source.lstrip("`")))
        return Span(_TEXTS.get(name, "break"), start, end, value or "")

    def locate(self, block: Block) -> None:
        """Set where the block begins and ends, and what marks it."""
        text = self.parsed
        start, end = self.char(block._from), self.char(block._to)
        if text[start : start + 1] in _BLANK:  # a tab that is only half of the indentation moves the start up
            start = _matched(_SPACE, text, start).end()
        block.start = start
        block.end = _stripped(text, start, end)
        while text[block.end - 1] == ">":  # the mark of a quote on a blank line
            line = self.lines.start(self.lines.at(block.end - 1))
            if line <= start or text[line : block.end].strip(" \t>"):
                break
            block.end = _stripped(text, start, line)
        block.first = self.lines.at(start)
        block.last = max(self.lines.at(block.end - 1), block.first) + 1
        block.markup, block.closed = "", True
        if block.type == "heading":
            block.markup = "#" * block._value
        elif block.type in _LISTS:
            block.markup = _matched(_LIST_MARK, text, start)[0]
        elif block.type == "fence":
            block.markup = _matched(_FENCE_MARK, text, start)[0]
            code_end = block.spans[-1].end if block.spans else self.lines.start(block.first + 1)
            block.closed = text[code_end:end].lstrip(" \t>").startswith(block.markup)


class Outline:
    """The blocks of a text. `root` holds the top-level ones; link definitions are blocks, so that no line is lost."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._source = _Source(text)

    @cached_property
    def root(self) -> Block:
        root = Block(("Root", None, 0, 0), None, self._source)
        root.children = [Block(top[:4], root, self._source, number) for number, top in enumerate(self._source.kept[0])]
        if "]:" in self.text:
            self._add_definitions(root)
        return root

    @property
    def lines(self) -> Lines:
        return self._source.lines

    @cached_property
    def headings(self) -> list[Block]:
        """The headings that begin a section: those at top level."""
        return [block for block in self.root.children if block.type == "heading"]

    @cached_property
    def sections(self) -> list[Section]:
        """What each of `headings` begins, in order."""
        titles = [heading.shown for heading in self.headings]
        start_of = self.lines.start
        return [
            Section(heading, title, anchor, start_of(heading.first), start_of(heading.last))
            for heading, title, anchor in zip(self.headings, titles, anchors_of(titles), strict=True)
        ]

    @cached_property
    def units(self) -> list[tuple[str, int]]:
        """The blocks at top level but link definitions, with the items of a list in its place: the parser's name of
        each, and where its first line begins. One that is not right below a definition reads the same alone."""
        text, lines, char = self.text, self.lines, self._source.char
        units = ((name, char(at)) for name, at in self._source.units)
        return [(name, at if text[at - 1] in "\r\n" else lines.start(lines.at(at))) for name, at in units]

    def first_unit(self, position: int) -> int:
        """The number of the first unit that begins at `position` or below it."""
        return bisect_left(self.units, position, key=lambda unit: unit[1])

    @property
    def links(self) -> list[Span]:
        """All links and images, in order."""
        return [self._source.span(event) for event in self._source.links]

    @property
    def hashes(self) -> list[Span]:
        """The texts outside of links that have a `#`, in order."""
        return [self._source.span(event) for event in self._source.hashes]

    def section_at(self, position: int) -> Section:
        """The section that holds the character at `position`; one without title and anchor above all headings."""
        index = bisect_right(self.sections, position, key=lambda section: section.start)
        return self.sections[index - 1] if index else Section(None, "", "")

    def _add_definitions(self, root: Block) -> None:
        """Link definitions give no event: they are what stands between the blocks at top level."""
        found: list[Block] = []
        text = self._source.parsed
        source = text if text.isascii() else text.encode()
        at = 0
        for block in (*root.children, None):
            start = block._from if block else len(source)
            if source[at:start].strip():
                found.append(Block(("Definition", None, at, start), root, self._source))
            if block:
                found.append(block)
                at = block._to
        root.children = found


def _fill(top: Block) -> None:
    """Make all blocks below one at top level."""
    block = top
    path: list[Block] = []
    for event in top._events:
        name = event[0]
        if name in _BLOCKS or name == "End":
            if block.type == "tight":
                block.type = "paragraph"
                block._to = max(one[3] for one in block._events)
                block = path.pop()
            if name == "End":
                if block.type in _LISTS and block.children and block.children[-1].type == "list_item":
                    block._to = block.children[-1]._to
                block = path.pop()
            elif name == "Rule":
                _begun(event, block)
            else:
                path.append(block)
                block = _begun(event, block)
            continue
        if block.type == "list_item":
            # The text of an item in a tight list has no paragraph of its own.
            path.append(block)
            block = _begun(event, block)
        block._events.append(event)


def _begun(event: _Event, parent: Block) -> Block:
    block = Block(event, parent, parent._source)
    if block.type in _CONTAINERS or block.type == "list_item":
        block.children = []
    else:
        block._events = []
    parent.children.append(block)
    return block


def shown_text(spans: Sequence[Span], *, alt: bool = True) -> str:
    """What a reader sees of `spans`, on one line. With `alt`, a text that is only images is their alternative text."""
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


def plain_text(source: str) -> str:
    """`source`, one paragraph or heading, as a reader sees it: without marks, links as their text, on one line."""
    return next((shown for block in Outline(source).root.walk() if (shown := block.shown)), "")


# Of the parser's events, and of two of our own: which begin a block. And which are inline marks of what width.
_BLOCKS: dict[str, Type] = {
    "Root": "root",
    "Definition": "definition",
    "Paragraph": "paragraph",
    "Item": "list_item",
    "TableHead": "row",
    "TableRow": "row",
    "HtmlBlock": "html_block",
    "Heading": "heading",
    "BlockQuote": "blockquote",
    "CodeBlock": "code_block",
    "List": "bullet_list",
    "Table": "table",
    "Rule": "hr",
}
_INLINE: dict[str, tuple[SpanKind, int]] = {
    "Emphasis": ("emphasis", 1),
    "Strong": ("strong", 2),
    "Strikethrough": ("strike", 2),
    "Link": ("link", 0),
    "Image": ("image", 0),
    "TableCell": ("break", 0),
}
# What of a block's details is kept: a fence is a block of code with a value, a numbered list a list with one.
_VALUES: dict[str, Callable[[Any], Any]] = {
    "Heading": lambda details: int(details["level"][1]),
    "CodeBlock": lambda details: None if details == "Indented" else details["Fenced"],
    "Table": lambda details: None,
}
_WITH_VALUE: dict[Type, Type] = {"code_block": "fence", "bullet_list": "ordered_list"}
_TEXTS: dict[str, SpanKind] = {"Text": "text", "Code": "code", "InlineHtml": "html"}
_TEXT_HOLDERS = frozenset(("tight", "paragraph", "heading", "row", "fence", "code_block"))
_LOCATED = frozenset(("start", "end", "first", "last", "markup", "closed"))
_LISTS = frozenset(("bullet_list", "ordered_list", "list_item"))
_CONTAINERS = frozenset(("bullet_list", "ordered_list", "blockquote", "table"))
_LINE_END = re.compile(r"\r\n?|\n")
_CLOSING_MARKS = re.compile(r"(?:^|(?<=[ \t]))#+[ \t]*$")
_QUOTE_MARK = re.compile(r"[ \t]*>?")
_FENCE_MARK = re.compile(r"`{3,}|~{3,}")
_LIST_MARK = re.compile(r"[-+*]|\d{1,9}[.)]")


def _without_quotes(line: str, quotes: int) -> str:
    """A line of a block that so many quotes hold; one that goes on with a paragraph may have fewer marks."""
    at = 0
    for _ in range(quotes):
        at = _matched(_QUOTE_MARK, line, at).end()
    return line[at:].strip(" \t")


def _matched(pattern: re.Pattern[str], text: str, at: int) -> re.Match[str]:
    match = pattern.match(text, at)
    assert match is not None  # noqa: S101 - the parser says that it is there
    return match


def _stripped(text: str, start: int, end: int) -> int:
    """`end` without the white space before it, but not before `start`."""
    step = 64
    while end > start:
        middle = max(start, end - step)
        if kept := text[middle:end].rstrip(_BLANK):
            return middle + len(kept)
        end, step = middle, step * 4
    return start


def _char_offsets(text: str) -> Callable[[int], int]:
    """What turns the parser's byte offsets into character offsets. It walks from place to place, as readers do."""
    if text.isascii():
        return lambda at: at
    raw = text.encode()
    last_byte = last_char = 0

    def char(at: int) -> int:
        nonlocal last_byte, last_char
        if at >= last_byte:
            last_char += len(raw[last_byte:at].decode())
        elif at > last_byte // 2:
            last_char -= len(raw[at:last_byte].decode())
        else:
            last_char = len(raw[:at].decode())
        last_byte = at
        return last_char

    return char
