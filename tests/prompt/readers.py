"""The blocks of a text as the outline reads them, and as two other parsers do: markdown-it-py, and micromark in node.

A block is `[type, first line, last line, blocks in it]`, lines from 1 and without the blank ones below it. Link
definitions are left out: markdown-it has no block for them.
"""

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from prompt.outline import Block, Lines, Outline

Tree = list[Any]

_MARKDOWN_IT = MarkdownIt("commonmark", {"maxNesting": 1_000_000}).enable("table")
_MDAST = {
    "code": "code",
    "html": "html_block",
    "thematicBreak": "hr",
    "list": "bullet_list",
    "orderedList": "ordered_list",
    "listItem": "list_item",
    "tableRow": "row",
}


def outline_tree(text: str) -> Tree:
    outline = Outline(text)
    return _of_outline(outline.root.children, outline.lines)


def markdown_it_tree(text: str) -> Tree:
    # One more line end changes no block; without it markdown-it-py may read past the end of an open comment.
    source = text if text.endswith(("\n", "\r")) else text + "\n"
    return _of_markdown_it(SyntaxTreeNode(_MARKDOWN_IT.parse(source)).children, Lines(text))


class Micromark:
    """One node process that reads any number of texts."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def tree(self, text: str) -> Tree:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(text) + "\n")
        self._process.stdin.flush()
        return _of_mdast(json.loads(self._process.stdout.readline()), Lines(text), len(text))


@contextmanager
def micromark() -> Iterator[Micromark | None]:
    """The reader, or None unless NOTEBOOK_TEST_NODE_MODULES names a folder with mdast-util-from-markdown in it."""
    if not (Path(os.environ.get("NOTEBOOK_TEST_NODE_MODULES", "")) / "mdast-util-from-markdown").is_dir():
        yield None
        return
    script = Path(__file__).with_name("micromark_trees.mjs")
    with subprocess.Popen(["node", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Micromark(process)
        assert process.stdin is not None
        process.stdin.close()


def block_set(tree: Tree, depth: int = 0) -> set[tuple[int, str, int, int]]:
    """Every block of a tree, by its depth, its type and its lines."""
    blocks = set()
    for kind, first, last, below in tree:
        blocks |= {(depth, kind, first, last), *block_set(below, depth + 1)}
    return blocks


def _of_outline(blocks: Sequence[Block], lines: Lines) -> Tree:
    tree: Tree = []
    for block in blocks:
        if block.type != "definition":
            kind = "code" if block.type in ("fence", "code_block") else block.type
            below = [] if kind == "row" else _of_outline(block.children, lines)
            # A table without rows ends with the line that makes it one.
            last = block.first + 2 if kind == "table" and not block.children[1:] else block.last
            tree.append([kind, block.first + 1, _filled(lines, block.first + 1, last), below])
    return tree


def _of_markdown_it(nodes: Sequence[SyntaxTreeNode], lines: Lines) -> Tree:
    tree: Tree = []
    for node in nodes:
        if node.type in ("thead", "tbody"):
            tree += _of_markdown_it(node.children, lines)
        elif node.type not in ("inline", "th", "td") and node.map:
            first, last = node.map
            kind = {"fence": "code", "code_block": "code", "tr": "row"}.get(node.type, node.type)
            below = [] if kind == "row" else _of_markdown_it(node.children, lines)
            tree.append([kind, first + 1, _filled(lines, first + 1, last), below])
    return tree


def _of_mdast(nodes: Tree, lines: Lines, limit: int) -> Tree:
    tree: Tree = []
    for number, (kind, first, last, below) in enumerate(nodes):
        # Code that nothing closes ends on the line of what follows it.
        after = nodes[number + 1][1] - 1 if number + 1 < len(nodes) else limit
        last = max(first, min(last, limit, after))
        if kind != "definition":
            tree.append([_MDAST.get(kind, kind), first, _filled(lines, first, last), _of_mdast(below, lines, last)])
    return tree


def _filled(lines: Lines, first: int, last: int) -> int:
    while last > first and not lines.line(last - 1).strip(" \t\r\n>"):
        last -= 1
    return last
