"""Real token counts, and the sharing of a total. Never an estimate, and never the network."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Protocol

from prompt.values import VocabularyMissing

if TYPE_CHECKING:
    from tiktoken import Encoding

DEFAULT_ENCODING = "cl100k_base"
# What counts the tokens of a text.
Count = Callable[[str], int]
# Characters. tiktoken looks ahead in white space until its stack is full, and panics at a few times as many.
_LONGEST_SPACE = 100_000
_SPACE = re.compile(rf"(?<!\s)\s{{{_LONGEST_SPACE},}}")
_loading = threading.Lock()


def count_tokens(text: str, encoding: str = DEFAULT_ENCODING) -> int:
    """How many tokens `text` has. Special tokens in it are plain text. Raises VocabularyMissing."""
    ends = [0, len(text)]
    if len(text) > _LONGEST_SPACE:
        for space in _SPACE.finditer(text):
            ends += range(space.start() + _LONGEST_SPACE, space.end() + 1, _LONGEST_SPACE)
    tokenizer = encoding_named(encoding)
    return sum(len(tokenizer.encode_ordinary(text[start:end])) for start, end in pairwise(sorted(ends)))


@cache
def encoding_named(name: str) -> Encoding:
    """The encoding of that name: an installed `NAME_offline`, else one in tiktoken's cache folder."""
    # Imported when first counted: tiktoken and a vocabulary cost 200 ms and 40 MB, which a warm count cache saves.
    import tiktoken

    known = tiktoken.list_encoding_names()
    if f"{name}_offline" in known:
        return tiktoken.get_encoding(f"{name}_offline")
    if name not in known:
        raise VocabularyMissing(name, "tiktoken knows no encoding of this name")
    try:
        with _without_network():
            return tiktoken.get_encoding(name)
    except _WouldDownload as error:
        raise VocabularyMissing(name, f"{error} is not in tiktoken's cache folder") from None


class _WouldDownload(Exception):
    """tiktoken asked the network for the file of this name."""


@contextmanager
def _without_network() -> Iterator[None]:
    """While tiktoken loads in this thread, a file that is not in its cache folder is refused instead of fetched.

    tiktoken has no offline switch, and its download has no timeout. Loads of other threads are not affected.
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


class CountCache(Protocol):
    """Where counts are kept between calls, by a key of 32 hex digits."""

    def get(self, key: str) -> int | None: ...

    def put(self, key: str, tokens: int, /) -> None: ...


class Counter:
    """Counts tokens in one encoding; asks `kept` before the vocabulary, which need not even be loaded then."""

    def __init__(self, encoding: str, kept: CountCache | None = None) -> None:
        self.encoding = encoding
        self._kept = kept

    def __call__(self, text: str) -> int:
        if self._kept is None:
            return count_tokens(text, self.encoding)
        # 128 bits tell texts apart, and keep the file small.
        key = sha256(f"{self.encoding}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()[:32]
        tokens = self._kept.get(key)
        if tokens is None:
            tokens = count_tokens(text, self.encoding)
            self._kept.put(key, tokens)
        return tokens


class Claim(NamedTuple):
    """What one part of the prompt would use, in tokens; a higher priority is served first.

    `floor` is what it needs to say even that it is cut, `reserve` what it is granted before priorities count.
    """

    need: int
    priority: int = 0
    reserve: int = 0
    floor: int = 0


def share(total: int, claims: Sequence[Claim]) -> list[int]:
    """How many tokens each claim gets: at most its need, together at most `total`; never less of a larger total.

    First come the floors, then the reserves, each to all alike if there is not enough. What is left goes to the highest
    priority until its need is met, then to the next; equals share alike.
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
