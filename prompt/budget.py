"""Real token counts, and the sharing of a total.

Never an estimate, and never the network: a vocabulary is on this machine or is refused.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from prompt.errors import VocabularyMissing

if TYPE_CHECKING:
    from tiktoken import Encoding

# Characters. A few times as many are too many.
_LONGEST_SPACE = 100_000
_SPACE = re.compile(rf"(?<!\s)\s{{{_LONGEST_SPACE},}}")

# What counts the tokens of a text.
Count = Callable[[str], int]

DEFAULT_ENCODING = "cl100k_base"

_loading = threading.Lock()


def count_tokens(text: str, encoding: str = DEFAULT_ENCODING) -> int:
    """How many tokens `text` is. Special tokens in it are plain text. Raises VocabularyMissing."""
    return _count(encoding_named(encoding), text)


def count_many(texts: Sequence[str], encoding: str = DEFAULT_ENCODING) -> list[int]:
    """`count_tokens` of each text. One after the other: tiktoken's own batches start threads, which cost more."""
    return [count_tokens(text, encoding) for text in texts]


def _count(tokenizer: Encoding, text: str) -> int:
    """Of white space without end, in stretches: tiktoken looks ahead in it until its stack is full, and panics."""
    if len(text) > _LONGEST_SPACE and _SPACE.search(text):
        pieces = [text[start:stop] for start, stop in pairwise((0, *_stretches(text), len(text)))]
        return sum(len(tokenizer.encode_ordinary(piece)) for piece in pieces)
    return len(tokenizer.encode_ordinary(text))


def _stretches(text: str) -> Iterator[int]:
    for space in _SPACE.finditer(text):
        yield from range(space.start() + _LONGEST_SPACE, space.end() + 1, _LONGEST_SPACE)


@cache
def encoding_named(name: str) -> Encoding:
    """The encoding of that name: an installed `NAME_offline` where there is one, else from its cache folder."""
    # Imported when first counted: tiktoken and a vocabulary cost 200 ms and 40 MB, which a warm count cache saves.
    import tiktoken

    offline = f"{name}_offline"
    known = tiktoken.list_encoding_names()
    if offline in known:
        return tiktoken.get_encoding(offline)
    if name not in known:
        raise VocabularyMissing(name, "tiktoken knows no encoding of this name")
    try:
        with _without_network():
            return tiktoken.get_encoding(name)
    except _WouldDownload as error:
        raise VocabularyMissing(name, f"{error} is not in tiktoken's cache folder") from None


@dataclass(frozen=True, slots=True)
class Claim:
    """What one part of the prompt would use, in tokens, and how dear it is: a higher priority is served first.

    `floor` is what it needs to say even that it is cut, `reserve` what it is granted before priorities count.
    """

    need: int
    priority: int = 0
    reserve: int = 0
    floor: int = 0


def share(total: int, claims: Sequence[Claim]) -> list[int]:
    """How many tokens each claim gets: at most its need, together at most `total`; never less of a larger total.

    First come the floors, then the reserves, each to all alike where there is not enough. What is left goes to the
    highest priority until its need is met, then to the next; equals share alike.
    """
    granted = [0] * len(claims)

    def grant(up_to: Callable[[Claim], int], among: Sequence[int]) -> None:
        wanted = [max(min(claims[index].need, up_to(claims[index])) - granted[index], 0) for index in among]
        for index, more in zip(among, _level(max(total, 0) - sum(granted), wanted), strict=True):
            granted[index] += more

    everyone = range(len(claims))
    grant(lambda claim: claim.floor, everyone)
    grant(lambda claim: claim.reserve, everyone)
    for priority in sorted({claim.priority for claim in claims}, reverse=True):
        grant(lambda claim: claim.need, [index for index in everyone if claims[index].priority == priority])
    return granted


def _level(total: int, needs: Sequence[int]) -> list[int]:
    """Fill all needs to one level, as water fills vessels; a need below the level is met whole."""
    filled = [0] * len(needs)
    smallest_first = sorted(range(len(needs)), key=needs.__getitem__)
    for place, index in enumerate(smallest_first):
        filled[index] = min(needs[index], total // (len(needs) - place))
        total -= filled[index]
    return filled


class _WouldDownload(Exception):
    """tiktoken asked the network for the file of this name."""


@contextmanager
def _without_network() -> Iterator[None]:
    """While tiktoken loads in this thread, what is not in its cache folder is refused rather than fetched.

    tiktoken has no offline switch, and its download has no timeout; other threads' loads go on as they were.
    """
    import tiktoken.load

    fetch, here = tiktoken.load.read_file, threading.get_ident()

    def refuse(blobpath: str) -> bytes:
        if threading.get_ident() == here and "://" in blobpath:
            raise _WouldDownload(blobpath.rpartition("/")[2])
        return fetch(blobpath)

    with _loading:
        tiktoken.load.read_file = refuse
        try:
            yield
        finally:
            tiktoken.load.read_file = fetch
