"""Texts for the properties: the fixtures, and texts that others wrote, if the environment names them.

NOTEBOOK_TEST_COMMONMARK and NOTEBOOK_TEST_BLNS are JSON files; NOTEBOOK_TEST_READMES is a folder with READMEs in it, of
which every eighth is taken, by size.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

FIXTURES = Path(__file__).parent / "fixtures"
_FOREIGN = {
    "commonmark": "NOTEBOOK_TEST_COMMONMARK",
    "naughty": "NOTEBOOK_TEST_BLNS",
    "readmes": "NOTEBOOK_TEST_READMES",
}


def names() -> list[str]:
    """The corpora that are there."""
    return ["own", *(name for name, variable in _FOREIGN.items() if variable in os.environ)]


@cache
def texts(corpus: str) -> list[str]:
    """The texts of a corpus; small ones also together, as a file holds them, and in several places."""
    if corpus == "own":
        return [path.read_bytes().decode() for path in sorted(FIXTURES.rglob("*.md"))]
    place = Path(os.environ[_FOREIGN[corpus]])
    if corpus == "readmes":
        found = {path.read_bytes().decode(errors="replace") for path in place.rglob("*") if _is_readme(path)}
        return sorted(found, key=lambda text: (len(text), text))[::8]
    strings = json.loads(place.read_text(encoding="utf-8"))
    if corpus == "commonmark":
        examples = [each["markdown"].replace("→", "\t") for each in strings]
        return [*examples, *("\n\n".join(dozen) for dozen in _by(12, examples))]
    return [*strings, *(text for some in _by(40, strings) for text in _in_their_places(some))]


def _is_readme(path: Path) -> bool:
    return path.name.lower() == "readme.md" and path.is_file()


def _by(count: int, strings: Sequence[str]) -> Iterator[Sequence[str]]:
    return (strings[start : start + count] for start in range(0, len(strings), count))


def _in_their_places(strings: Sequence[str]) -> Iterator[str]:
    yield "\n\n".join(strings)
    yield "\n".join(f"- {string}" for string in strings)
    yield "\n".join(f"## {string}\n\n{string}\n" for string in strings)
    yield "```text\n" + "\n".join(strings) + "\n```\n"
    yield "| a | b |\n|---|---|\n" + "\n".join(f"| {string} | x |" for string in strings)
    yield "\n".join(f"> {string}" for string in strings)
