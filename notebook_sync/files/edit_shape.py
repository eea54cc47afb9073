"""What Markdown means, in a form that two texts can be compared by: an edit is written only when the file would read
back as the file that was meant. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import NamedTuple

from notebook_sync.files.excerpt import shorten
from prompt.outline import Block, Outline


class Form(NamedTuple):
    """What a block is: how many blocks hold it, lists included, what marks it, what it says."""

    depth: int
    type: str
    markup: str
    info: str
    source: str


# The form of each block, before those that it holds. Lists are left out, so that an item is the same in a list of its
# own and in the list above. So are link definitions.
Shape = tuple[Form, ...]


_LEFT_OUT = frozenset(("bullet_list", "ordered_list", "definition"))
_HOLD_BLOCKS = frozenset(("blockquote", "list_item", "table"))


def blocks_with_depth(outline: Outline) -> Iterator[tuple[Block, int]]:
    """The blocks that a shape is made of, in its order, and how many blocks hold each, lists included."""
    waiting = [(block, 0) for block in reversed(outline.root.children)]
    while waiting:
        block, depth = waiting.pop()
        if block.type not in _LEFT_OUT:
            yield block, depth
        waiting += [(child, depth + 1) for child in reversed(block.children)]


def shape_of(outline: Outline) -> Shape:
    """The shape of a text."""
    return tuple(
        Form(depth, block.type, block.markup, block.info, "" if block.type in _HOLD_BLOCKS else block.content)
        for block, depth in blocks_with_depth(outline)
    )


def moved_out(shape: Shape, levels: int) -> Shape:
    """The shape, so many levels further out."""
    return tuple(form._replace(depth=form.depth - levels) for form in shape)


class Unit(NamedTuple):
    """A block at top level, or an item of a list there: its name, and its source without the blank lines below it, or
    the shape that it is meant to have.

    Two units of the same source have the same shape, so most need not be looked into.
    """

    name: str
    source: str
    meant: Shape | None = None

    @property
    def shape(self) -> Shape:
        if self.meant is not None:
            return self.meant
        alone = Outline(f"{self.source}\n")
        # Right below a link definition, `2. x` is a paragraph.
        reads_alone = [name for name, _ in alone.units] == [self.name]
        return shape_of(alone) if reads_alone else (Form(0, self.name, "", "", self.source),)


def units_of(text: str, places: Iterable[tuple[str, int]], end: int) -> list[Unit]:
    """The units of a text that begin at these places, the last of which goes up to `end`."""
    return [
        Unit(name, _ANY_EOL.sub("\n", text[start:after]).rstrip(" \t\n"))
        for (name, start), (_, after) in pairwise([*places, ("", end)])
    ]


def shape_of_units(units: Sequence[Unit]) -> Shape:
    """The shape of them, one after the other."""
    return tuple(chain.from_iterable(unit.shape for unit in units))


def read_the_same(units: Sequence[Unit], others: Sequence[Unit]) -> bool:
    """Whether the two have the same shape. Only those units that differ are looked into."""
    shorter = min(len(units), len(others))
    first = next((at for at in range(shorter) if units[at] != others[at]), shorter)
    last = next((at for at in range(shorter - first) if units[-1 - at] != others[-1 - at]), shorter - first)
    mine, theirs = (each[first : len(each) - last] for each in (units, others))
    return shape_of_units(mine) == shape_of_units(theirs)


@dataclass(frozen=True, slots=True)
class Content:
    """Markdown to be put somewhere: no blank lines around it, \\n at its line ends. `kind` is its first block's."""

    text: str
    units: Sequence[Unit] = ()
    kind: str = ""


_ANY_EOL = re.compile(r"\r\n?")
_NO_TEXT = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_BLANK_START = re.compile(r"\A(?:[ \t]*\n)+")
_END_WORD = "end"
# Below a text, this reads as a paragraph of its own unless the text leaves something open.
END = f"\n\n{_END_WORD}"


def is_closed(outline: Outline) -> bool:
    """Whether what stands above END, at the end of a text, leaves nothing open."""
    last = outline.root.children[-1]
    return last.type == "paragraph" and last.content == _END_WORD


def characters_refused(text: str, there: str = "") -> str:
    """Why `text` cannot stand in a Markdown file, or ""; what is `there` already can."""
    known = set(there.replace("\r\n", "\n"))
    found = next((each for each in _NO_TEXT.finditer(text.replace("\r\n", "\n")) if each[0] not in known), None)
    if found is None:
        return ""
    what = "half a character" if found[0] >= "\ud800" else "a control character"
    return f"it holds {what} (U+{ord(found[0]):04X}) at position {found.start()}"


def content_of(text: str, level: int) -> Content | str:
    """`text` as content of a section of `level`, or why it cannot be that."""
    text = text.replace("\r\n", "\n")
    lines = _BLANK_START.sub("", text).split("\n")
    while lines and not lines[-1].strip(" \t"):
        lines.pop()
    text = "\n".join(lines)
    if not text:
        return Content("")
    outline = Outline(text + END)
    if not is_closed(outline):
        return "it opens a code fence, a comment or HTML that it does not close"
    for heading in outline.headings:
        if heading.level <= level:
            return (
                f"its heading {shorten(heading.content)!r} would begin another section; "
                "use add_section, or a heading of a lower level"
            )
    if "<!--" in text and any(_leaves_a_comment_open(block) for block in outline.root.walk()):
        return "it opens a comment that it does not close"
    return Content(text, units_of(text, outline.units[:-1], len(text)), outline.root.children[0].type)


def _leaves_a_comment_open(block: Block) -> bool:
    if block.type == "html_block":
        return block.content.rfind("<!--") > block.content.rfind("-->")
    return block.type not in _CODE and any("<!--" in span.value for span in block.spans if span.kind == "text")


_CODE = frozenset(("fence", "code_block"))
