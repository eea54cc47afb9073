"""What a text leaves open at its end, and what closes it: one file's fence must not swallow the next file."""

from __future__ import annotations

import re

from prompt.blocks import Lines, parse_blocks

# Without one of these nothing stays open; with one, the parser tells.
_OPENS = re.compile(r"```|~~~|<[!?]|<(?:script|pre|style|textarea)", re.IGNORECASE)
# CommonMark's blocks of HTML that a blank line does not end: how they begin, what ends them, what closes them.
_HTML = (
    (
        re.compile(r"<(script|pre|style|textarea)(?=[\s>]|\Z)", re.IGNORECASE),
        re.compile(r"</(?:script|pre|style|textarea)>", re.I),
        "",
    ),
    (re.compile(r"<!--"), re.compile(r"-->"), "-->"),
    (re.compile(r"<\?"), re.compile(r"\?>"), "?>"),
    (re.compile(r"<!\[CDATA\["), re.compile(r"\]\]>"), "]]>"),
    (re.compile(r"<![A-Za-z]"), re.compile(r">"), ">"),
)


def closing_line(text: str) -> str:
    """The line that closes the fence or the HTML block in which `text` ends; "" where nothing is open.

    What is open inside a list or a quote ends with it.
    """
    if not _OPENS.search(text):
        return ""
    blocks = parse_blocks(text).children
    if not blocks:
        return ""
    last = blocks[-1]
    if last.type == "fence":
        return "" if last.closed else last.markup
    if last.type != "html_block":
        return ""
    start, end = Lines(text).span_of(last)
    source = text[start:end]
    for begins, ends, closing in _HTML:
        if begun := begins.match(source.lstrip(" ")):
            return "" if ends.search(source) else closing or f"</{begun[1].lower()}>"
    return ""
