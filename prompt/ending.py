"""The longest beginning of a text that fits a number of tokens, cut where a reader sees no character broken."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from prompt.inline import Span, inline_spans

# The longest tokens of the known vocabularies are runs of 128 spaces.
LONGEST_TOKEN = 128
# A last line that, cut short, could open a fence, underline a heading or become a rule.
_COULD_BE_STRUCTURE = re.compile(r"[ \t>]*(?:(?:[-+*]|\d+[.)])[ \t]+)*(?:`{3}|~{3}|[-=*_ \t]+\Z)")


def longest_beginning(text: str, room: int, count: Callable[[str], int], *, prose: bool) -> tuple[int, str]:
    """How many characters of `text` fit in `room` tokens, and they themselves; (0, "") where none does.

    The end is a grapheme boundary. In `prose`, emphasis and code that are open there are closed again.
    """
    spans = inline_spans(text) if prose else []
    fits, too_long = 0, min(len(text), room * LONGEST_TOKEN) + 1
    while too_long - fits > 1:
        middle = (fits + too_long) // 2
        if count(_closed(text, middle, spans)[1]) <= room:
            fits = middle
        else:
            too_long = middle
    end = fits
    while end > 0:
        end, beginning = _at_boundary(text, end, spans, prose)
        if end and count(beginning) <= room:
            return end, beginning
        end -= 1
    return 0, ""


def _at_boundary(text: str, end: int, spans: Sequence[Span], prose: bool) -> tuple[int, str]:
    """The beginning of at most `end` characters that ends between graphemes and outside of marks."""
    while end > 0:
        at = _grapheme_boundary(text, end)
        end, beginning = _closed(text, at, spans)
        if prose and end:
            line = max(text.rfind("\n", 0, end), text.rfind("\r", 0, end)) + 1
            if _COULD_BE_STRUCTURE.match(text[line:end]):
                end = line and line - 1
                continue
        if end == at or end == _grapheme_boundary(text, end):
            return end, beginning
    return 0, ""


def _closed(text: str, end: int, spans: Sequence[Span]) -> tuple[int, str]:
    """`text[:end]` less what it cannot end with, and with the marks that are open there closed, innermost first."""
    while True:
        end = len(text[:end].rstrip())
        around = [span for span in spans if span.start < end < span.end]
        early = [span.start for span in around if span.kind == "comment" or end <= span.start + span.width]
        if early:
            end = min(early)
            continue
        late = [span.end - span.width for span in around if end > span.end - span.width]
        if late:
            end = min(late)
            continue
        if around and text[end - 1] == "\\" and all(span.kind == "emphasis" for span in around):
            end -= 1
            continue
        around.sort(key=lambda span: -span.start)
        return end, text[:end] + "".join(text[span.start : span.start + span.width] for span in around)


def _grapheme_boundary(text: str, end: int) -> int:
    """The last place at or before `end` where no grapheme is broken."""
    # Imported when a text must be cut inside a paragraph, which is rare: it costs 20 ms.
    import regex

    if end >= len(text):
        return len(text)
    start = end
    while start and not (text[start - 1 : start + 1].isascii() and text[start - 1 : start + 1].isalnum()):
        start -= 1
    for match in regex.finditer(r"\X", text, pos=start):
        if match.end() > end:
            return int(match.start())
        if match.end() == end:
            return end
    return len(text)
