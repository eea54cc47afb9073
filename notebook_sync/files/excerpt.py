"""Excerpts of a note's text: its summary, a text cut to one line, a text without its comments. Pure."""

from __future__ import annotations

from prompt.outline import Outline, plain_text, shown_text

SUMMARY_LENGTH = 200
# Of the words, marks and links that a paragraph is made of: its summary is in the first ones.
_MOST_READ = 2_000


def summary_of(outline: Outline) -> str:
    """The first top-level paragraph with text (not only images), as a reader sees it; "" where there is none."""
    paragraphs = (block for block in outline.root.children if block.type == "paragraph")
    return next(
        (shorten(words) for block in paragraphs if (words := shown_text(block.first_spans(_MOST_READ), alt=False))), ""
    )


def shorten(words: str, limit: int = SUMMARY_LENGTH) -> str:
    """`words` within `limit` characters: a longer text is cut after a word and ends with `…`."""
    if len(words) <= limit:
        return words
    cut = words[: limit - 1]
    if words[limit - 1] != " ":
        cut = cut[: cut.rfind(" ")] if " " in cut else cut
    return cut.rstrip(" ,;:–—-") + "…"


def plain(text: str) -> str:
    """Words of a title or a heading as a reader sees them: on one line, without marks, links as their text."""
    return plain_text(f"# {' '.join(text.split())} #")  # the last mark closes the heading: any before it is text


def without_comments(text: str) -> str:
    """`text` with a space in place of each closed comment."""
    pieces = []
    end = 0
    # No regular expression: it would search to the end of the text from every comment that is not closed.
    while (start := text.find("<!--", end)) >= 0 and (stop := text.find("-->", start)) >= 0:
        pieces.append(text[end:start])
        end = stop + 3
    pieces.append(text[end:])
    return " ".join(pieces)
