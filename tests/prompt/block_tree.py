"""The tree of blocks that a Markdown reader sees, and whether one text's tree is what a cut may leave of another's.

The reader is markdown-it-py with its own rules, read here again: nothing of the package under test is used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markdown_it.tree import SyntaxTreeNode

# Link definitions are read as paragraphs: a reader of the source sees them, so a cut must account for them.
_PARSER = MarkdownIt("commonmark", {"maxNesting": 1_000_000}).enable(["table", "strikethrough"]).disable("reference")
OMISSION = re.compile(r"\[…(?: (?:(\d+) )?more(?:: notebook_read ([^\s\]#]+)(?:#([^\s\]]+))?)?)?\]")
# Link definitions right above a heading that is underlined; without `reference` they are read as lines of it.
_DEFINITIONS = re.compile(r"\A(?:\[[^\]]*\]:.*\n)+(?=.)")
# What ends a block of prose that goes on in the source.
MORE = "…"


@dataclass(frozen=True, slots=True)
class Node:
    """A block: what it is, what it says, and what it holds. A heading holds what it heads."""

    kind: str
    text: str = ""
    children: tuple[Node, ...] = ()


def tree_of(text: str) -> Node:
    """The blocks of `text`, below their headings."""
    # One line end more changes no block; without it markdown-it-py may read past the end of an open comment.
    tree = SyntaxTreeNode(_PARSER.parse(text if text.endswith(("\n", "\r")) else text + "\n"))
    root = _Section(0, "root", "")
    path = [root]
    for each in tree.children:
        if each.type == "heading":
            level = int(each.tag[1])
            while path[-1].level >= level:
                path.pop()
            title = _DEFINITIONS.sub("", _content(each))
            path[-1].children.append(section := _Section(level, each.tag, title))
            path.append(section)
        else:
            path[-1].children.append(_node(each))
    return root.as_node()


@dataclass(slots=True)
class _Section:
    level: int
    kind: str
    text: str
    children: list[Node | _Section] = field(default_factory=list)

    def as_node(self) -> Node:
        held = (child if isinstance(child, Node) else child.as_node() for child in self.children)
        return Node(self.kind, self.text, tuple(held))


def without_omissions(node: Node) -> Node:
    """`node` less the lines that say what was left out, if they are by themselves outside of every container."""
    kept = (child for child in node.children if not (child.kind == "paragraph" and OMISSION.fullmatch(child.text)))
    inside = (without_omissions(child) if _heads(child) else child for child in kept)
    return Node(node.kind, node.text, tuple(inside))


def omissions_in(node: Node) -> list[str]:
    """The lines that `without_omissions` takes."""
    found = []
    for child in node.children:
        if child.kind == "paragraph" and OMISSION.fullmatch(child.text):
            found.append(child.text)
        elif _heads(child):
            found += omissions_in(child)
    return found


def is_left_of(shown: Node, source: Node) -> bool:
    """Whether `shown` is `source` less some blocks, and some others being a beginning of themselves.

    Each block that stays is of the same kind, inside the same one and after the same ones. A list may have
    become two, one above and one below an omission line.
    """
    if shown == source:
        return True
    may_lose = shown.kind not in ("thead", "tr") and (shown.kind, shown.text) == (source.kind, source.text)
    return (may_lose and _end_in(source.children, shown.children) is not None) or _is_beginning(shown, source)


def _end_in(source: Sequence[Node], shown: Sequence[Node], at: tuple[int, int] = (0, 0)) -> tuple[int, int] | None:
    """Where what follows on the last of `shown` begins in `source`, as early as can be: a child, and one of its items.

    None if they are not all there from `at` on, in order.
    """
    for each in shown:
        end = _place(each, source, at)
        if end is None:
            return None
        at = end
    return at


def _place(shown: Node, source: Sequence[Node], at: tuple[int, int]) -> tuple[int, int] | None:
    first, done = at
    for index in range(first, len(source)):
        whole = source[index]
        if whole.kind == shown.kind and whole.kind.split()[0] in ("bullet_list", "ordered_list"):
            end = _end_in(whole.children, shown.children, (done, 0))
            if end is not None:
                return index, end[0]
        elif not done and is_left_of(shown, whole):
            return index + 1, 0
        done = 0
    return None


def _is_beginning(shown: Node, source: Node) -> bool:
    is_prose = not shown.children and shown.kind in ("paragraph", "h1", "h2", "h3", "h4", "h5", "h6")
    return is_prose and shown.kind == source.kind and _reads_as_beginning(shown.text, source.text)


def _reads_as_beginning(shown: str, source: str) -> bool:
    """Whether a reader of `shown` reads a beginning of what a reader of `source` does, with the same marks, and `…`."""
    begun, whole = list(_read(shown)), list(_read(source))
    if not begun or begun.pop()[0] != MORE:
        return False
    return begun == whole[: len(begun)]


def _read(text: str) -> Iterator[tuple[str, frozenset[str]]]:
    """The characters a reader sees, each with the marks around it."""
    marks: list[str] = []
    for token in _PARSER.parseInline(text)[0].children or []:
        if token.nesting == 1:
            marks.append(_mark(token))
        elif token.nesting == -1:
            marks.pop()
        elif token.type in ("softbreak", "hardbreak"):
            yield "\n", frozenset(marks)
        else:
            own = () if token.type == "text" else (_mark(token),)
            for character in token.content:
                yield character, frozenset((*marks, *own))


def _mark(token: Token) -> str:
    return f"{token.type} {token.attrs or ''}"


def _heads(node: Node) -> bool:
    return node.kind[0] == "h" and node.kind[1:].isdigit()


def _node(node: SyntaxTreeNode) -> Node:
    if node.type in ("fence", "code_block", "html_block", "hr"):
        kind = f"fence {node.markup} {node.info}" if node.type == "fence" else node.type
        return Node(kind, node.content.rstrip())
    if node.type in ("paragraph", "th", "td", "heading"):
        return Node(node.type if node.type != "heading" else node.tag, _content(node))
    kind = f"{node.type} {node.markup}" if node.type.endswith("_list") else node.type
    head = repr(_node(node.children[0])) if node.type == "table" else ""
    return Node(kind, head, tuple(_node(child) for child in node.children))


def _content(node: SyntaxTreeNode) -> str:
    return "".join(child.content for child in node.children)
