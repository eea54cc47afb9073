"""The frame of every text of the prompt, and how the texts that may differ at each call fit behind the others.

Each file is between `<file>` and `</file>`, below a heading of the layout; a file without a heading has its path in the
tag. If a text has such a tag itself, all tags of that prompt are `file-2`, or the next free number. What follows the
files is quoted: no line of it begins with a tag or a heading. What somebody else wrote is also in a fence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256
from itertools import count as numbers

from prompt.budget import Count
from prompt.ends import omission_line
from prompt.trim import trim
from prompt.values import Entry, Part, Volatile

# What a heading and the lines around it usually cost.
FRAME = 8
_LOOK_ALIKE = re.compile(r"<(?=[\s/\\]*external[\W_]*text)", re.IGNORECASE)
_NOT_IN_ORIGIN = re.compile(r"[^\w@.:+/ -]")
# A tag with other spaces or capitals could still be mistaken for one.
_TAG = re.compile(r"<\s*+/?\s*+file(?:-(\d+))?(?![\w-])", re.IGNORECASE)

_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})


def stable_text(parts: Sequence[Part], directive: str, system: frozenset[str], tag: str = "file") -> str:
    """The part of the prompt that depends on files and session alone. System files come before the directive."""
    files = [_file(part, tag, named=part.name != part.path and part.path not in system) for part in parts]
    before = sum(part.path in system for part in parts)
    blocks = [*files[:before], f"{directive.strip()}\n" if directive.strip() else "", *files[before:]]
    return "\n".join(filter(None, blocks))


def _file(part: Part, tag: str, *, named: bool) -> str:
    heading, opening = (f"## {part.name}\n\n", tag) if named else ("", f'{tag} path="{part.path.translate(_ESCAPES)}"')
    lines = [text if text.endswith("\n") else f"{text}\n" for text in (part.text, part.closing) if text]
    # The empty line ends the block of HTML that the tag begins: a code fence on the first line must be one.
    return f"{heading}<{opening}>\n\n{''.join(lines)}</{tag}>\n"


def tag_for(texts: Sequence[str]) -> str:
    """The name of the tags around files: `file`, or the first of `file-2`, `file-3`, … that none of `texts` has."""
    taken = {match[1] or "" for text in texts if "<" in text for match in _TAG.finditer(text)}
    return "file" if "" not in taken else next(f"file-{number}" for number in numbers(2) if str(number) not in taken)


def quote(text: str) -> str:
    """`text` as a Markdown quote: `>` before each line, whatever ends lines in it.

    So no line of it begins with a tag or a heading of the frame, and what it leaves open ends with the quote.
    """
    return "".join(f"> {line}" if line.strip() else f">{line}" for line in text.splitlines(keepends=True))


def fence_external(text: str, source: str) -> str:
    """`text`, quoted, between tags that name its source and carry an id.

    The id is made of what is fenced, so that no text can contain its own.
    """
    fence_id = sha256(f"{source}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
    origin = _NOT_IN_ORIGIN.sub("?", source)
    inside = quote(_LOOK_ALIKE.sub("?", text)).removesuffix("\n")
    return f'<external-text id="{fence_id}" from="{origin}">\n\n{inside}\n</external-text id="{fence_id}">'


def fitted(volatile: Volatile, stable: str, limit: int, count: Count) -> tuple[str, tuple[str, ...]]:
    """The volatile part after `stable`, together at most `limit` tokens, and what found no room: headings, or "Today".

    The day comes first, then sections by their priority. A section takes its entries by their rank as long as they fit,
    cuts the first that does not (passing over those that cannot be cut), and shows them in the given order, with one
    line for the rest.
    """
    shown: dict[int, str] = {}
    entries = [[entry for entry in section.entries if entry.text.strip()] for section in volatile.sections]

    def laid_out(today: str, bodies: dict[int, str]) -> str:
        headings = (section.heading for section in volatile.sections)
        blocks = [f"## {heading}\n\n{quote(bodies[n])}\n" for n, heading in enumerate(headings) if n in bodies]
        blocks[:0] = [f"Today is {today}.\n"] if today else []
        return ("\n" if stable and blocks else "") + "\n".join(blocks)

    whole = {n: _joined([_shown(one) for one in own]) for n, own in enumerate(entries) if own}
    text = laid_out(volatile.today, whole)
    if not text or count(stable + text) <= limit:
        return text, ()
    today = volatile.today if count(stable + laid_out(volatile.today, {})) <= limit else ""
    for number in sorted(whole, key=lambda number: -volatile.sections[number].priority):
        room = limit - count(stable + laid_out(today, shown)) - FRAME
        for body in _bodies(entries[number], room, count):
            if count(stable + laid_out(today, {**shown, number: body})) <= limit:
                shown[number] = body
                break
    lost = [volatile.sections[number].heading for number in whole if number not in shown]
    return laid_out(today, shown), (*(["Today"] if today != volatile.today else []), *lost)


def _bodies(entries: Sequence[Entry], room: int, count: Count) -> list[str]:
    """What a section may show in about `room` tokens, then ever less of it."""
    by_rank = sorted(range(len(entries)), key=lambda number: entries[number].rank)
    taken: list[tuple[int, str]] = []
    line = count(f"{quote(omission_line(len(entries)))}\n>\n")
    for place, number in enumerate(by_rank):
        text = _shown(entries[number])
        tokens = count(f"{quote(text)}\n>\n")
        is_all = len(taken) == place and place + 1 == len(entries)
        if tokens <= room - (0 if is_all else line):
            taken.append((number, text))
            room -= tokens
        elif cut := _cut(entries[number], room - line, count):
            taken.append((number, cut))
            break
    return [_body(taken[:size], len(entries)) for size in range(len(taken), 0, -1)]


def _cut(entry: Entry, room: int, count: Count) -> str:
    """The entry in about `room` tokens, inside its fence; "" if that leaves nothing of it."""
    depth = 2 if entry.source else 1
    fence = count(_shown(entry._replace(text=""))) if entry.source else 0

    def quoted(text: str) -> int:
        for _ in range(depth):
            text = quote(text)
        return count(text)

    cut = trim(entry.text, room - fence - FRAME, quoted)
    return "" if cut.cut[:1] == ((0, len(entry.text)),) else _shown(entry._replace(text=cut.text))


def _body(taken: Sequence[tuple[int, str]], entries: int) -> str:
    texts = [text for _, text in sorted(taken)]
    left = entries - len(texts)
    return _joined([*texts, omission_line(left)] if left else texts)


def _shown(entry: Entry) -> str:
    text = entry.text.strip("\r\n")
    return fence_external(text, entry.source) if entry.source else text


def _joined(texts: Sequence[str]) -> str:
    """Items of a list stay one list; other texts are separated by a blank line."""
    is_list = all(text.startswith("- ") and "\n" not in text for text in texts)
    return ("\n" if is_list else "\n\n").join(texts)
