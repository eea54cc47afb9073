"""Texts that others wrote, for the properties: where the environment names them, else the tests that need them skip.

NOTEBOOK_TEST_COMMONMARK and NOTEBOOK_TEST_BLNS are JSON files, NOTEBOOK_TEST_READMES is a folder with READMEs in it:
one of each shape is taken, and all with NOTEBOOK_TEST_EXPLORE=1.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from tests.servers import unavailable

FEWEST_READMES = 100
# What a README may have in it: two that have the same of these are cut much alike.
_PARTS = [
    re.compile(pattern, re.MULTILINE)
    for pattern in (r"\r", r"^```", r"^ {4}\S", r"^\|", r"^<\w", r"<!--", r"^> ", r"^\[.+\]: ", r"^===+$", r"^\s+[-*] ")
]


@cache
def commonmark() -> list[str]:
    """The examples of the CommonMark specification, each by itself."""
    examples = json.loads(_named("NOTEBOOK_TEST_COMMONMARK").read_text(encoding="utf-8"))
    texts = [each["markdown"].replace("→", "\t") for each in examples]
    assert len(texts) >= 652
    return texts


@cache
def naughty() -> list[str]:
    """The strings that break programs, each by itself."""
    texts: list[str] = json.loads(_named("NOTEBOOK_TEST_BLNS").read_text(encoding="utf-8"))
    assert len(texts) > 400
    return texts


@cache
def readmes() -> dict[str, str]:
    """READMEs of published packages, by the path below their folder."""
    folder = _named("NOTEBOOK_TEST_READMES")
    paths = sorted(path for path in folder.rglob("*") if path.name.lower() == "readme.md" and path.is_file())
    by_text = {path.read_bytes().decode(errors="replace"): path.relative_to(folder).as_posix() for path in paths}
    assert len(by_text) >= FEWEST_READMES
    chosen = by_text if os.environ.get("NOTEBOOK_TEST_EXPLORE") else _one_of_each_shape(by_text)
    return {by_text[text]: text for text in chosen}


def _one_of_each_shape(texts: Iterable[str]) -> Iterator[str]:
    """Now a short one, now a long one."""
    by_size = sorted(texts, key=len)
    for number, shape in enumerate(sorted({_shape_of(text) for text in by_size})):
        alike = [text for text in by_size if _shape_of(text) == shape]
        yield alike[number % len(alike)]


@cache
def _shape_of(text: str) -> tuple[bool, ...]:
    return tuple(bool(part.search(text)) for part in _PARTS)


def texts(corpus: str) -> list[str]:
    """The texts of the corpus of that name, small ones also together: as a file holds them, in several places."""
    if corpus == "readmes":
        return list(readmes().values())
    if corpus == "commonmark":
        return [*commonmark(), *("\n\n".join(dozen) for dozen in _by(12, commonmark()))]
    return [*naughty(), *(text for some in _by(40, naughty()) for text in _in_their_places(some))]


def _by(count: int, strings: Sequence[str]) -> Iterator[Sequence[str]]:
    return (strings[start : start + count] for start in range(0, len(strings), count))


def _in_their_places(strings: Sequence[str]) -> Iterator[str]:
    yield "\n\n".join(strings)
    yield "\n".join(f"- {string}" for string in strings)
    yield "\n".join(f"## {string}\n\n{string}\n" for string in strings)
    yield "```text\n" + "\n".join(strings) + "\n```\n"
    yield "| a | b |\n|---|---|\n" + "\n".join(f"| {string} | x |" for string in strings)
    yield "\n".join(f"> {string}" for string in strings)


def _named(variable: str) -> Path:
    place = os.environ.get(variable)
    if not place:
        unavailable(f"{variable} names no file or folder")
    return Path(place)
