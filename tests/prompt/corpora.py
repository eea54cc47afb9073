"""Texts for the properties: the fixtures, texts that others wrote, if the environment names them, and Hypothesis
strategies for Markdown: documents as people write them, nested, and ones that nobody would write.

NOTEBOOK_TEST_COMMONMARK and NOTEBOOK_TEST_BLNS are JSON files; NOTEBOOK_TEST_READMES is a folder with READMEs in it, of
which every eighth is taken, by size.
"""

import json
import os
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from hypothesis import strategies as st

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


WORDS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=30),
    st.sampled_from(
        [
            "the ferry leaves at seven",
            "**bold words** and `code`",
            "*a **b** c*",
            "[the timetable](https://harbour.example/times?day=mon) of the *harbour*",
            "![a map](map.png) and <https://harbour.example>",
            "漢字かな交じり文がつづく",
            "👩‍👩‍👧‍👦🏴‍☠️",
            "e\u0301" * 12,
            "{{7*7}} {% raw %} {# x #}",
            "~~gone~~ <b>html</b> &amp; \\* escaped",
            "ends with a backslash \\",
            "<|endoftext|>",
            "with a note[^1] and $$a_b$$",
        ]
    ),
)
PROSE = st.one_of(
    WORDS, st.lists(WORDS, min_size=2, max_size=30).map(" ".join), st.lists(WORDS, max_size=6).map("\n".join)
)
CODE_LINES = st.lists(st.one_of(WORDS, st.sampled_from(["", "    x = 1", "# no heading", "- no item"])), max_size=20)


def _listed(mark: str, items: list[str]) -> str:
    indent = " " * len(mark)
    return "\n".join(mark + item.replace("\n", "\n" + indent) for item in items)


def _fenced(fence: str, info: str, lines: list[str], end: str) -> str:
    inside = [line for line in lines if not line.lstrip().startswith(("```", "~~~"))]
    return "\n".join([fence + info, *inside, end.replace("F", fence)]).rstrip("\n")


def _table(head: str, rows: list[tuple[str, str]]) -> str:
    cells = [f"| {one} | {two} |".replace("\n", " ") for one, two in rows]
    return "\n".join([f"| {head} | b |".replace("\n", " "), "|---|:-:|", *cells])


LEAVES = st.one_of(
    PROSE,
    st.builds(
        _fenced,
        st.sampled_from(["```", "~~~~", "`````"]),
        st.sampled_from(["", "py"]),
        CODE_LINES,
        st.sampled_from(["F", "F", "F", ""]),
    ),
    st.builds(_table, WORDS, st.lists(st.tuples(WORDS, PROSE), max_size=12)),
    CODE_LINES.map(lambda lines: "\n".join("    " + line for line in lines)),
    st.sampled_from(
        [
            "---",
            "<div>\n*raw*\n</div>",
            "[ref]: https://harbour.example 'a title'",
            "See [ref] and [ref][ref].",
            "Odile\n=====",
            "[^1]: of the *keeper*\n\n    on two blocks",
            "$$\na\n- b\n\n+ c\n$$",
            "![a map](map.png)\n\n*of the harbour*",
        ]
    ),
)
BLOCKS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(
            _listed, st.sampled_from(["- ", "* ", "1. ", "7) ", "- [ ] "]), st.lists(inner, min_size=1, max_size=8)
        ),
        st.lists(inner, min_size=1, max_size=4).map(
            lambda items: "- " + "\n\n  ".join(i.replace("\n", "\n  ") for i in items)
        ),
        st.lists(inner, min_size=1, max_size=4).map(lambda items: "> " + "\n\n".join(items).replace("\n", "\n> ")),
    ),
    max_leaves=12,
)
HEADINGS = st.builds(lambda level, text: "#" * level + " " + text.replace("\n", " "), st.integers(1, 4), WORDS)

# One below the other, with empty lines between them: what most people's files are.
DOCUMENTS = st.lists(st.one_of(BLOCKS, HEADINGS), max_size=14).map("\n\n".join)
# Without the empty lines, with other line ends, and signs at random.
ODD_DOCUMENTS = st.one_of(
    st.lists(st.one_of(BLOCKS, HEADINGS), max_size=14).map("\n".join),
    DOCUMENTS.map(lambda text: text.replace("\n", "\r\n")),
    st.text("#-*`~>| \t\r\n1.[]()<!a_=\\", max_size=400),
    st.text(max_size=800),
)
