"""What the index keeps of a note's text for finding and ranking it, made in one pass over the text.

`terms` is text: a line for the title's terms, a line for the summary's, then a line for each passage; a heading's line
begins with `#` and comes before its passages. Each term has a space before and behind it. Ranking reads this instead of
the content.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from notebook_sync.search.passages import Sections, passages_of, without_hidden
from notebook_sync.search.words import WordAnalyzer

HEADING = "#"
NO_TERMS = " \n "


class SearchColumns(NamedTuple):
    """`words` by field of the collection, `terms` and `words_digest` as the row's columns hold them."""

    words: dict[str, str]
    terms: str
    words_digest: str


def search_columns(
    analyzer: WordAnalyzer,
    content: str,
    *,
    title: str = "",
    summary: str = "",
    code: str = "",
    sections: Sections = (),
) -> SearchColumns:
    """The columns of a note; of a fact or an entry by its content alone. `code` is text that `content` holds too.

    What is hidden from models (comments, data) has no terms.
    """
    joined = analyzer.joined
    words = {"title": joined(title), "summary": joined(without_hidden(summary)), "code": joined(without_hidden(code))}
    lines = [_line(words["title"]), _line(words["summary"])]
    body: list[str] = []
    for passage in passages_of(content, sections):
        if passage.opens:
            body.append(joined(passage.opens))
            lines.append(HEADING + _line(body[-1]))
        body.append(joined(content[passage.start : passage.end]))
        lines.append(_line(body[-1]))
    words["content"] = " ".join(filter(None, body))
    digest = hashlib.sha256("\0".join((title, summary, content)).encode("utf-8", "surrogatepass")).hexdigest()
    return SearchColumns(words, "\n".join(lines), digest)


def _line(words: str) -> str:
    return f" {words} " if words else " "
