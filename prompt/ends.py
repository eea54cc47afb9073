"""Where a long paragraph may end early, and what has to be written so that nothing stays open."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from prompt.outline import Block, Outline

MORE = "…"
LONGEST_ANCHOR = 80
# In bytes: the usual distance between two places where a paragraph may end.
STRETCH = 160
# In characters: what is looked at of one paragraph.
_READ = 256 * 1024
_SENTENCE = re.compile(r"""[.!?…:;]["'”’)\]*_]*(?=\s)|[。！？；]|(?=\r?\n)""")
_SPACE = re.compile(r"\s+")
_ENTITY = re.compile(r"&[#\w]*\Z")
_FORMULA = re.compile(r"\$\$.+?\$\$", re.DOTALL)
# A line that opens a fence once its end is gone.
_OPENS_FENCE = re.compile(r"[ \t>]*(?:(?:[-+*]|\d{1,9}[.)])[ \t]+)*`{3}")
_MARKS = frozenset("\\`*_~<!&[$")
_HTML_ENDS = (("<!--", "-->"), ("<?", "?>"), ("<![CDATA[", "]]>"), ("<!", ">"))
_HTML_TAG = re.compile(r"<(script|pre|style|textarea)(?=[\s>]|\Z)", re.IGNORECASE)
_NOT_QUOTE = re.compile(r"[^>\s]")


def size_of(text: str) -> int:
    """In bytes: closer to the number of tokens, in every script, than the number of characters."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def stretches_of(outline: Outline, block: Block) -> list[int]:
    """Where a long paragraph may end early: never inside a link, emphasis, code, a tag, a formula or an entity."""
    text, last = outline.text, min(block.end, block.start + _READ)
    spans = ((span.start, span.end) for span in block.first_spans(last) if span.kind not in ("text", "break"))
    formulas = (match.span() for match in _FORMULA.finditer(text, block.start, last))
    marked = sorted(chain(spans, formulas))
    ended = {end for _, end in marked}
    found, inside, number = [], 0, 0
    for at in _stretches(text, block.start, last):
        while number < len(marked) and marked[number][0] < at:
            inside = max(inside, marked[number][1])
            number += 1
        line = max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1
        if at < inside or at >= block.end or (text[at - 1] in _MARKS and at not in ended):
            continue
        if not _OPENS_FENCE.match(text, line, at) and not _ENTITY.search(text, max(at - 40, block.start), at):
            found.append(at)
    return found


def _stretches(text: str, start: int, last: int) -> Iterator[int]:
    step = max(STRETCH // 4, STRETCH * (last - start) // max(size_of(text[start:last]), 1))
    while last - start > step:
        window = text[start + step // 2 : start + step]
        ends = [match.end() for match in _SENTENCE.finditer(window) if match.end()] or [
            match.start() for match in _SPACE.finditer(window) if match.start()
        ]
        if ends:
            start += step // 2 + ends[-1]
        else:
            import regex  # 20 ms, and rarely needed

            # In windows: in a long run of flags each would be searched for from the beginning of the run.
            whole = [match.end() for match in regex.finditer(r"\X", text[start : start + 2 * step])][:-1]
            if not whole:
                return
            start += next((at for at in whole if at >= step), whole[-1])
        yield start


def open_end(outline: Outline, block: Block) -> str:
    """The line that closes a fence or a block of HTML that the text leaves open; "" if none is open."""
    if block.type == "fence" and not block.closed:
        margin = outline.text[outline.lines.start(block.first) : block.start]
        return "\n" + _NOT_QUOTE.sub(" ", margin) + block.markup
    if block.type == "html_block":
        source = outline.text[block.start : block.end]
        tag = _HTML_TAG.match(source)
        ends = [f"</{tag[1].lower()}>"] if tag else [end for begin, end in _HTML_ENDS if source.startswith(begin)]
        if ends and ends[0] not in source.lower():
            return f"\n{ends[0]}"
    return ""


def closing_line(text: str) -> str:
    """The line that closes the fence or the HTML block in which `text` ends; "" if none is open."""
    if "```" not in text and "~~~" not in text and "<" not in text:
        return ""
    outline = Outline(text)
    return open_end(outline, outline.root.children[-1]).strip() if outline.root.children else ""


def omission_line(entries: int, path: str = "", anchor: str = "") -> str:
    """The line that says that something is left out; with a path, it names the call that reads it."""
    amount = f"{entries} more" if entries else "more"
    if not path:
        return f"[{MORE} {amount}]"
    place = f"{path}#{anchor}" if anchor and len(anchor) <= LONGEST_ANCHOR else path
    return f"[{MORE} {amount}: notebook_read {place}]"
