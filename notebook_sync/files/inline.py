"""What stands inside a line: plain text, links, tags. Pure, and linear in the text whatever it is."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from itertools import chain
from urllib.parse import unquote

from notebook_sync.files.commonmark import WIKILINK, rendered

# Beyond this a heading or a first paragraph is not for people; its marks are left as they are.
LONGEST = 2_000

_ANY_MARK = re.compile(r"[`*_\[\]<&\\~]")
# Markup that can only mean one thing, and, last, what may mean several: then markdown-it reads it. Each alternative
# begins with a letter of its own, which lets `re` skip from mark to mark.
_MARK = re.compile(
    r"!\["
    r"|`([^`\n]+)`(?!`)"
    r"|\[\[([^\[\]|\n*_`<>&\\]+)(?:\|([^\[\]|\n*_`<>&\\]+))?\]\]"
    r"|\[([^\[\]()*_`<>&\\!~]+)\]\([^\s()<>\\&]*\)"
    r"|\*\*(\w(?:[^*_`\[\]<>&\\~!]*\w)?)\*\*(?!\*)"
    r"|\*(\w(?:[^*_`\[\]<>&\\~!]*\w)?)\*(?!\*)"
    r"|(_(?<=[^\W_]_)_*+(?=[^\W_])|\*(?<!\S\*)(?!\S)|&(?=\s)|<(?=[\s\d=-])|~(?!~))"
    r"|`|\*|_|\[|\]|<|&|\\|~"
)


def plain(source: str) -> str:
    """`source` as a reader sees it: marks removed, links as their text, images left out, one line."""
    source = source.strip().replace("\0", "\ufffd")
    if len(source) > LONGEST:
        return " ".join(source.split())
    if not _ANY_MARK.search(source):
        return " ".join(source.split())
    pieces = []
    end = 0
    for mark in _MARK.finditer(source):
        kind = mark.lastindex
        if kind is None:
            return rendered(source)
        pieces.append(source[end : mark.start()])
        pieces.append(mark[kind])
        end = mark.end()
    pieces.append(source[end:])
    return " ".join("".join(pieces).split())


def heading_text(source: str) -> str:
    """As `plain`, but a heading that is only an image is read by the image's alternative text."""
    return plain(source) or (rendered(source, images=True) if 0 < len(source) <= LONGEST else "")


def links_and_tags(text: str, hidden: Iterable[tuple[int, int]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The links and the #tags of `text`, each once, in order, outside code, comments and the `hidden` ranges.

    A link is the target of a [[wikilink]] without its heading, or the path of a relative Markdown link.
    """
    shown = without_comments(_without_code(text, hidden))
    links: dict[str, None] = {}
    if "[" in shown:
        shown = _without_links(shown, links)
    return tuple(links), tuple(dict.fromkeys(_tags(shown)))


# A run of backticks, or the start of a line that surely begins another block: no code span crosses that.
_RUN_OR_BREAK = re.compile(r"`+|\n[ \t\r]*+(?:\n|[-+>|]|\*[ \t]|#{1,6}[ \t]|[0-9]{1,9}[.)][ \t])")


def _without_code(text: str, hidden: Iterable[tuple[int, int]]) -> str:
    pieces = []
    end = 0
    for start, stop in chain(hidden, ((len(text), len(text)),)):
        if start > end:
            pieces.append(_without_spans(text[end:start]))
        end = max(end, stop)
    return "\n\n".join(pieces)


def _without_spans(text: str) -> str:
    if "`" not in text:
        return text
    pieces = []
    end = 0
    runs: list[tuple[int, int]] = []
    for match in chain(_RUN_OR_BREAK.finditer(text), (None,)):
        if match is not None and text.startswith("`", match.start()):
            runs.append(match.span())
            continue
        for start, stop in _spans(text, runs):
            pieces.append(text[end:start])
            end = stop
        runs = []
    pieces.append(text[end:])
    return "`".join(pieces)


def _spans(text: str, runs: list[tuple[int, int]]) -> Iterable[tuple[int, int]]:
    """Code spans among the backtick runs of one block: each run closes the nearest open one of its length."""
    by_length: dict[int, list[int]] = {}
    for index, (start, stop) in enumerate(runs):
        by_length.setdefault(stop - start, []).append(index)
    index = 0
    while index < len(runs):
        start, stop = runs[index]
        if _is_escaped(text, start):
            start += 1
        closers = by_length.get(stop - start, [])
        place = bisect_right(closers, index)
        if start < stop and place < len(closers):
            index = closers[place]
            yield start, runs[index][1]
        index += 1


def _is_escaped(text: str, at: int) -> bool:
    first = at
    while first and text[first - 1] == "\\":
        first -= 1
    return (at - first) % 2 == 1


def without_comments(text: str) -> str:
    """`text` with a space in place of each closed comment."""
    pieces = []
    end = 0
    while (start := text.find("<!--", end)) >= 0 and (stop := text.find("-->", start)) >= 0:
        pieces.append(text[end:start])
        end = stop + 3
    pieces.append(text[end:])
    return " ".join(pieces)


_DESTINATION = r"<[^<>\n]*>|(?:[^\s()<>\\]|\\.|\([^\s()]*\))(?:[^\s()\\]|\\.|\([^\s()]*\))*+"
_LINK = re.compile(
    r"\\."
    rf"|{WIKILINK.pattern}"
    rf"|\]\([ \t]*+({_DESTINATION})(?=\)|[ \t]+[\"'()])"
    r"|!\[(?!\[)|\[|\]"
)
_DEFINITION = re.compile(r"(?m)^ {0,3}\[(?!\^)[^\[\]\n]+\]:[ \t]*+(<[^<>\n]*>|[^\s<>]++)[ \t]*+(?:[\"'(][^\n]*)?$")
_HAS_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")


def _without_links(text: str, links: dict[str, None]) -> str:
    """`text` without the targets of its links, which are added to `links` (a dict, to be each once and in order)."""
    pieces = []
    end = 0
    open_brackets: list[str] = []
    for match in _LINK.finditer(text):
        mark = match[0]
        if mark in ("[", "!["):
            open_brackets.append(mark)
        elif mark == "]":
            if open_brackets:
                open_brackets.pop()
        elif mark[0] != "\\":
            wiki, _, destination = match.groups()
            target = ""
            if wiki is not None:
                target = wiki.partition("#")[0].strip()
            elif open_brackets and open_brackets.pop() == "[":
                target = _path_in(destination)
            if target:
                links[target] = None
            pieces.append(text[end : match.start()])
            end = match.end()
    if "]:" in text:
        for match in _DEFINITION.finditer(text):
            if target := _path_in(match[1]):
                links[target] = None
    pieces.append(text[end:])
    return " ".join(pieces)


def _path_in(destination: str) -> str:
    """The file a destination names, or "" for an address elsewhere and for a place in the same file."""
    if destination.startswith("<"):
        destination = destination[1:-1]
    if _HAS_SCHEME.match(destination):
        return ""
    path = destination.partition("#")[0].partition("?")[0]
    return unquote(_ESCAPE.sub(r"\1", path)).strip()


_TAG = re.compile(r"#(\w[\w/-]*)")
_BEFORE_A_TAG = frozenset("([{,;:|*_~>（「『【、。，；：")


def _tags(text: str) -> Iterable[str]:
    for match in _TAG.finditer(text):
        start = match.start()
        if start and not (text[start - 1].isspace() or text[start - 1] in _BEFORE_A_TAG):
            continue
        if text[max(start - 2, 0) : start] in ("](", "[["):
            continue
        tag = match[1].rstrip("/-")
        if not tag.isdecimal():
            yield tag
