"""What the index keeps of a note's text for finding, ranking and quoting it: passages, each short enough to say one
thing, and their terms. Pure.

No passage holds what a model is never shown: comments, and data written into the text (pictures, payloads).

`terms` is text: a line for the title's terms, a line for the summary's, then a line for each passage; a heading's line
begins with `#` and comes before its passages. Each term has a space before and behind it. Ranking reads this instead of
the content.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from notebook_sync.search.words import WordAnalyzer

HEADING = "#"
NO_TERMS = " \n "
# Characters of a passage, except in a long note, and of its heading; passages of a note that get vectors; characters of
# a quotation, and of what it shows before the first word of the query.
LONGEST = 400
MOST_EMBEDDED = 400
LONGEST_SNIPPET = 300
_BEFORE = 60
_ELLIPSIS = "…"

# `model.Section`s, or lists of their values.
Sections = Sequence[Sequence[Any]]
_ABOVE_ALL = ("", 0, "", 1, 0, 0)


class Passage(NamedTuple):
    """`text` is what is shown of the content from `start` on, below the section `anchor` ("" before the first heading)
    with this heading.

    `line` is the 1-based line of the file. `opens` is the heading as written, for the first passage below it, else "".
    """

    anchor: str
    heading: str
    line: int
    start: int
    text: str
    opens: str


class Snippet(NamedTuple):
    """`text` on one line, from the 1-based `line` of the file on, below the section with this anchor ("" above the
    first heading)."""

    text: str
    section: str
    line: int


def search_columns(
    analyzer: WordAnalyzer,
    content: str,
    *,
    title: str = "",
    summary: str = "",
    code: str = "",
    sections: Sections = (),
) -> dict[str, Any]:
    """What search needs in the row of a note, or of a fact by its content alone: `words` by field of the collection,
    and the columns `terms` and `words_digest`. `code` is text that `content` holds too."""
    joined = analyzer.joined
    words = {"title": joined(title), "summary": joined(shown(summary)), "code": joined(shown(code))}
    lines = [_line(words["title"]), _line(words["summary"])]
    body: list[str] = []
    for passage in passages_of(content, sections):
        if passage.opens:
            body.append(joined(passage.opens))
            lines.append(HEADING + _line(body[-1]))
        body.append(joined(passage.text))
        lines.append(_line(body[-1]))
    words["content"] = " ".join(filter(None, body))
    digest = hashlib.sha256("\0".join((title, summary, content)).encode("utf-8", "surrogatepass")).hexdigest()
    return {"words": words, "terms": "\n".join(lines), "words_digest": digest}


def _line(words: str) -> str:
    return f" {words} " if words else " "


def passages_of(content: str, sections: Sections) -> Iterator[Passage]:
    """The passages of a note in order, without overlap. A section without text has an empty one at its heading.

    Without sections, the lines are those of `content`.
    """
    text = shown(content)
    size = len(text) if text is content else sum(map(len, text.split()))
    longest = max(LONGEST, 2 * size // MOST_EMBEDDED)
    line = sections[0][3] - content.count("\n", 0, sections[0][4]) if sections else 1
    ends = [*(section[4] for section in sections), len(content)]
    counted = 0
    for (heading, _, anchor, _, start, whole), end in zip([_ABOVE_ALL, *sections], ends, strict=True):
        body = _below_heading(text, start, whole)
        opens = text[start:body]
        pieces = [*_cut(text, body, end, longest)] or [(start, "")] * bool(whole)
        for first, piece in pieces:
            line += content.count("\n", counted, first)
            counted = first
            yield Passage(anchor, heading, line, first, piece, opens)
            opens = ""


def texts_to_embed(title: str, content: str, sections: Sections) -> list[tuple[Passage, str]]:
    """The passages that get vectors, at most 400, each with what a model is given: the title on the first line, then
    heading and words. Passages without words are left out; where all are, there is one of the title alone."""
    title = _short(title)

    def texts() -> Iterator[tuple[Passage, str]]:
        for passage in passages_of(content, sections):
            if words := plain(passage.text):
                heading = _short(passage.heading)
                yield passage, f"{title}\n{heading}. {words}" if heading not in ("", title) else f"{title}\n{words}"

    return list(islice(texts(), MOST_EMBEDDED)) or [(Passage("", "", 1, 0, "", ""), title)] * bool(title)


def best_passage(passages: Sequence[tuple[Passage, int]], near: int | None) -> Passage | None:
    """The passage to quote: that with most words of the query; of equal ones the one that begins at `near`, else the
    first. Each comes with how many different words it has."""
    ranked = sorted(passages, key=lambda each: (-each[1], each[0].start != near or not each[0].text))
    return ranked[0][0] if ranked else None


def snippet_of(passage: Passage, first_place: Callable[[str], int]) -> Snippet:
    """A passage on one line; of a long one, the part around where the first word is that is asked for."""
    text, start, end = passage.text, 0, len(passage.text)
    if end > LONGEST_SNIPPET:
        start = max(0, min(first_place(text) - _BEFORE, end - LONGEST_SNIPPET))
        if start:
            start = text.find(" ", start, start + _BEFORE) + 1 or start
        end = min(end, start + LONGEST_SNIPPET - len(f"{_ELLIPSIS} {_ELLIPSIS} "))
        if end < len(text) and (space := text.rfind(" ", end - _BEFORE, end)) > start:
            end = space
    quoted = " ".join(text[start:end].split()) or _short(passage.heading)
    before = f"{_ELLIPSIS} " if start else ""
    behind = f" {_ELLIPSIS}" if end < len(text) else ""
    return Snippet(f"{before}{quoted}{behind}", passage.anchor, passage.line + text.count("\n", 0, start))


def plain(text: str) -> str:
    """Text as its reader hears it, on one line: without images, tags, targets of links and marks of Markdown."""
    if _MAY_BE_SILENT.search(text):
        text = re.sub(_SILENT, " ", text)
    return " ".join(text.translate(_MARKS).split())


def _short(heading: str) -> str:
    return plain(heading)[:LONGEST]


def shown(text: str) -> str:
    """The text with spaces for comments and data: everything else is where it was."""
    if any(mark in text for mark in _MAY_HIDE):
        from prompt.hidden import visible, without  # half of what a search by words would import

        # Content has no frontmatter: what looks like it is text.
        gaps = [gap for gap in visible(text, now=None).gaps if gap.reason != "frontmatter"]
        text = without(text, [gap._replace(shown=_NOT_SPACE.sub(" ", text[gap.start : gap.end])) for gap in gaps])
        text = _PICTURE.sub(lambda picture: f"  {picture[1]}".ljust(len(picture[0])), text)
    if "data:" in text or _has_long_word(text):
        text = _DATA.sub(lambda data: " " * len(data[0]), text)
    return text


_MAY_BE_SILENT = re.compile(r"[<\]&]|://|www\.|```|~~~")
# Long patterns are texts, which `re` compiles for the first text that needs them. Each looks no further than the next
# mark, so that the whole is linear in the text.
_SILENT = (
    r"</?[A-Za-z][^<>]{0,2000}>"
    r"|!\[[^\[\]\n]*\](?:\([^()\n]*\)|\[[^\[\]\n]*\])"
    r"|\](?:\([^()\n]*\)|\[[^\[\]\n]*\])"
    r"|\]:[^\n]*"
    r"|(?:```|~~~)[^\n]*"
    r"|\b(?:[a-z]{2,10}://|www\.)[^\s)>\]]+"
    r"|&(?:[a-z]{2,8}|#[0-9]{1,7});"
)
_MARKS = str.maketrans(dict.fromkeys("`*#>|[]~\0", " "))
# Of a picture whose data is gone, its name stays.
_PICTURE = re.compile(r"!\[([^\[\]\n]*)\]\(<? {24,}[^()\n]*\)?")
# Data in code, which its readers see, and compressed or encoded data of any kind.
_DATA = re.compile(r"\bdata:[\w.+/-]*[;,][^\s)>\"'`]{24,}|(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/=_-]{160,}", re.IGNORECASE)
_LONG_WORD = 160
_MAY_HIDE = ("<!--", "%%", "data:", "compressed-json")
_NOT_SPACE = re.compile(r"\S")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*\r?(?:\n|\Z)")


def _has_long_word(text: str) -> bool:
    """Whether a word has the length of data. A text is split only where a stretch of half that length has no space,
    since wherever a long word begins, it has all of one such stretch."""
    step = _LONG_WORD // 2
    stretches = range(0, len(text) - step + 1, step)
    may_have = any(text.find(" ", at, at + step) < 0 for at in stretches)
    return may_have and any(len(word) >= _LONG_WORD for word in text.split())


def _below_heading(text: str, start: int, end: int) -> int:
    """Where the line below a heading, and below its underline, begins."""
    body = text.find("\n", start, end) + 1 or end
    underline = _UNDERLINE.match(text, body, end)
    return underline.end() if underline else body


def _cut(text: str, start: int, end: int, longest: int) -> Iterator[tuple[int, str]]:
    """Where each piece begins, and the piece: at most `longest` characters, split where the text splits."""
    while start < end:
        stop = end if end - start <= longest else _last_break(text, start, start + longest)
        piece = text[start:stop]
        if words := piece.strip():
            yield stop - len(piece.lstrip()), words
        start = stop


def _last_break(text: str, start: int, end: int) -> int:
    """The last end of a paragraph in the latter half, else of a line, a sentence, a word; else the end."""
    for mark in ("\n\n", "\n", ". ", "。", " "):
        at = text.rfind(mark, start + (end - start) // 2, end)
        if at >= 0:
            return at + len(mark)
    return end
