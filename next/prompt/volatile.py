"""What may differ at each call, in the room that the stable part leaves. Never touches the stable part."""

from __future__ import annotations

from collections.abc import Sequence

from prompt.budget import Count
from prompt.ends import omission_line
from prompt.fence import fence_external, quote
from prompt.layout import volatile_text
from prompt.trim import trim
from prompt.values import Entry, Volatile

# What a heading and the lines around it usually cost.
FRAME = 8


def fitted(volatile: Volatile, stable: str, limit: int, count: Count) -> tuple[str, tuple[str, ...]]:
    """The volatile part after `stable`, together at most `limit` tokens, and what found no room: headings, or "Today".

    The day comes first, then sections by their priority. A section takes its entries by their rank as long as they fit,
    cuts the first that does not (passing over those that cannot be cut), and shows them in the given order, with one
    line for the rest.
    """
    shown: dict[int, str] = {}
    entries = [[entry for entry in section.entries if entry.text.strip()] for section in volatile.sections]

    def laid_out(today: str, bodies: dict[int, str]) -> str:
        texts = [(section.heading, bodies[n]) for n, section in enumerate(volatile.sections) if n in bodies]
        return volatile_text(today, texts, after=stable)

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
