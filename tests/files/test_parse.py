"""Bytes → Note, field by field as the notebook's format describes them, and whatever the bytes."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from hashlib import sha256
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notebook_sync.files.excerpt import shorten
from notebook_sync.files.note import Note
from notebook_sync.files.parse import parse
from notebook_sync.files.unfinished import looks_unfinished
from prompt.budget import count_tokens
from tests.prompt.markdown_texts import DOCUMENTS, ODD_DOCUMENTS


def note(text: str, path: str = "pages/plan.md") -> Note:
    return parse(path, text.encode())


def body(text: str) -> Note:
    return note(f"---\nsummary: s\n---\n{text}")


def test_a_whole_note() -> None:
    raw = (
        b"---\r\nid: plan-7\r\ntitle: The plan\r\ntags: [alpha, '#beta', 1.10]\r\nstatus: in_progress\r\n"
        b"created_by: agent:scribe\r\ncreated_at: 2026-02-18T10:30:00Z\r\npriority: 3\r\n---\r\n"
        b"# Heading\r\n\r\nFirst *paragraph*\r\nof prose.\r\n\r\n## Part\r\n\r\nSee [[Other#part|it]] #gamma #alpha\r\n"
    )
    read = parse("pages/plan.md", raw)
    assert read.content.encode() == raw.partition(b"---\r\n")[2].partition(b"---\r\n")[2]
    assert read.sections[1].line == 15
    expected: dict[str, Any] = {
        "path": "pages/plan.md",
        "collection": "pages",
        "wants": "plan-7",
        "has_own_id": True,
        "digest": sha256(raw).hexdigest(),
        "title": "The plan",
        "summary": "First paragraph of prose.",
        "created_by": "agent:scribe",
        "created_at": datetime(2026, 2, 18, 10, 30, tzinfo=UTC),
        "tags": ("alpha", "beta", "1.10", "gamma"),
        "status": "in_progress",
        "word_count": 12,
        "token_count": count_tokens(read.content),
        "links": ("Other",),
        "extra": {"priority": 3},
        "code": None,
        "fields": {},
        "problems": (),
    }
    assert {name: getattr(read, name) for name in expected} == expected


def test_defaults() -> None:
    read = note("", "notes/2026 plan.md")
    assert (read.wants, read.has_own_id, read.title, read.summary) == ("notes/2026 plan", False, "2026 plan", "")
    assert (read.created_by, read.created_at, read.status, read.tags) == ("owner", None, "draft", ())
    assert (read.word_count, read.token_count, read.sections, read.collection) == (0, 0, (), "pages")


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("---\ntitle: 1984\n---\n# H", "1984"),
        ("---\ntitle: 2026-02-18\n---\n", "2026-02-18"),
        ("---\ntitle:\n---\n# H", "H"),
        ("---\ntitle: |\n  two\n  lines\n---\n", "two lines"),
        ("# is-map [![Version Badge][1]][2]\n\n[1]: v.svg\n[2]: there.md\n", "is-map"),
        ('# Pseudo [<img src="b.svg" width="90">][css]\n\n[css]: there.md\n', "Pseudo"),
        ("# [![Logo][1]][2]\n\n[1]: l.svg\n[2]: there.md\n", "Logo"),
        ("# Plan [*two*][2]\n\n[2]: there.md\n", "Plan two"),
        ("## Two\n\n# *One*\n", "One"),
        ("# \n\nOne\n===\n", "One"),
        ("\ufeff# One\n", "One"),
        ("## Two\n", "plan"),
    ],
)
def test_title(text: str, title: str) -> None:
    assert note(text).title == title


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("---\nsummary: Given\n---\ntext", "Given"),
        ("[![npm][a]][b] [![x](y)](z)\n![p][a]\n\nWhat it is.\n\n[a]: a.svg\n[b]: there.md\n", "What it is."),
        ("[not a link] and ![not a picture]\n", "[not a link] and ![not a picture]"),
        (
            "# H\n- list\n\n> quote\n\n```\ncode\n```\n<div>html</div>\n\n| a |\n|---|\n\n---\nProse\nhere.\n\nMore",
            "Prose here.",
        ),
        ("![logo](x.png)\n\n[![CI](b.svg)](https://ci)\n[![v](v.svg)](v)\n\nProse", "Prose"),
        (
            "**Bold** [link](x.md), [[Wiki|shown]], `a*b`, <b>tag</b>, snake_case &amp; \\*",
            "Bold link, shown, a*b, tag, snake_case & *",
        ),
        ("Intro:\n- one\n- two", "Intro:"),
        ("- list only", ""),
        ("    code\n\n<!-- comment -->\n", ""),
        ("[label]: target.md\n\n[Text][label] stays", "Text stays"),
    ],
)  # fmt: skip
def test_summary(text: str, summary: str) -> None:
    assert note(text).summary == summary


def test_a_long_summary_is_cut_at_a_word() -> None:
    summary = note("word " * 100).summary
    assert summary == "word " * 39 + "word…"
    assert shorten("x" * 300) == "x" * 199 + "…"
    assert shorten("x" * 200) == "x" * 200
    assert shorten("ab cd, efgh", 8) == "ab cd…"
    assert shorten("ab cd efgh", 6) == "ab cd…"


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("#one (#two), #three/sub #four- *#five* #sechs-ß #日本", "one two three/sub four five sechs-ß 日本"),
        ("#1 #123 #1st # no ##no a#no &#39; \\#no", "1st"),
        ("http://x.y/#no [a](#no) [b](c.md#no) [[N#no]] [[N #no]] [[#no]] <a href=#no>", ""),
        ("`#no` ``#no ` #no`` \\`#no` `#no", ""),
        ("`open\n\n#yes` `", "yes"),
        ("```\n#no\n```\n\n    #no\n\n- item\n\n      #no\n\n- ~~~\n  #no\n  ~~~\n", ""),
        ("#yes <!-- #no --> #too <!-- open #also\n\n<!-- #no --> #nor\n\n<!--\n#no\n", "yes too also"),
        ("<div>\n#no\n</div>\n\n[see #no](x.md) ![#no](y.png)", ""),
        ("# Heading #yes\n#yes\n#other", "yes other"),
    ],
)
def test_inline_tags(text: str, tags: str) -> None:
    assert " ".join(body(text).tags) == tags


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("[[A]] [[B|b]] [[C#part]] ![[D]] [[#own]] [[A]]", ["A", "B", "C", "D"]),
        ("[a](x.md) [b](../y%20z.md#p) [c](<q r.md>) [d](s(1).md 'title') [e](/root.md?x=1)",
         ["x.md", "../y z.md", "q r.md", "s(1).md", "/root.md"]),
        ("[a](http://x) [b](mailto:a@b) [c](#part) [d](//host/x) <http://x> [e](obsidian://x)", []),
        ("![image](x.png) [![badge](b.svg)](page.md) [text ![i](j.png) more](k.md)", ["page.md", "k.md"]),
        ("`[[no]]` `[no](no.md)` \\[no](no.md)\n\n```\n[[no]]\n```\n<!-- [[no]] -->", []),
        ("[text][label]\n\n[label]: there.md 'title'\n[^1]: note\n[web]: https://x.y\n", ["there.md"]),
        ("|a|b|\n|-|-|\n| [[A\\|b]] | x |\n\n[^1] and [1]\n\n[^1]: note\n[1]: n.md\n", ["A", "n.md"]),
        ("[`code`](x.md) [a\nb](y.md) [unclosed](no.md", ["x.md", "y.md"]),
    ],
)  # fmt: skip
def test_links(text: str, links: list[str]) -> None:
    assert list(body(text).links) == links


@pytest.mark.parametrize(
    ("line", "name", "told"),
    [
        ("status: 7", "status", "'7' is not one of draft"),
        ("status: done", "status", "'done' is not one of"),
        ("status: [draft]", "status", "None is not one of"),
        ("tags: {a: b}", "tags", "list"),
        ("tags: [a, [b]]", "tags", "list"),
        ("title: [a]", "title", "text"),
        ("id: 42", "id", "quotes"),
        ("id: ' '", "id", "1 to 512"),
        (f"id: {'x' * 513}", "id", "1 to 512"),
        ('id: "a\\nb"', "id", "control"),
        ("created_at: yesterday", "created_at", "date"),
        ("created_at: 2026-02-30", "created_at", "date"),
        ("created_at: 7", "created_at", "date"),
    ],
)
def test_a_wrong_field_is_a_problem_with_its_line(line: str, name: str, told: str) -> None:
    read = note(f"---\nother: 1\n{line}\n---\ntext\n")
    (problem,) = read.problems
    assert problem.line == 3
    assert problem.message.startswith(f"{name}: ")
    assert told in problem.message
    assert set(read.extra) == {"other", name}
    default = note("---\nother: 1\n---\ntext\n")
    unlike = {"digest", "problems", "extra"}
    assert {k: v for k, v in asdict(read).items() if k not in unlike} == {
        k: v for k, v in asdict(default).items() if k not in unlike
    }


@pytest.mark.parametrize("tags", ["a, b,,#c a", "[a, b, '#c a', ~, a]", "\n- a\n- b\n- c  a"])
def test_tags_as_list_or_words(tags: str) -> None:
    assert note(f"---\ntags: {tags}\n---\n").tags == ("a", "b", "c a")


def test_created_at_may_be_quoted_and_without_seconds() -> None:
    assert note("---\ncreated_at: '2026-02-18 10:30'\n---\n").created_at == datetime(2026, 2, 18, 10, 30, tzinfo=UTC)


def test_code_snippets() -> None:
    text = "# H\n\n```py title=x\r\nprint(1)\n\n```\n~~~sh\nno\n~~~\n"
    read = note(text, "code_snippets/a.md")
    assert read.code == "print(1)\n\n"
    assert read.fields == {"language": "py", "description": None, "related_page": None}
    text = "---\nlanguage: Python\ndescription: Says 1\nrelated_page: pages/x\n---\n- ~~~\n  a\n  ~~~\n"
    read = note(text, "code_snippets/a.md")
    assert read.code == "a\n"
    assert read.fields == {"language": "Python", "description": "Says 1", "related_page": "pages/x"}
    assert read.summary == "Says 1"
    assert note("no code", "code_snippets/a.md").code is None
    assert note("# H\n\n```py\ndef load():\n    pass\n```\n", "code_snippets/a.md").summary == "def load(): pass"
    assert note("It loads.\n\n```py\n1\n```\n", "code_snippets/a.md").summary == "It loads."
    assert len(note(f"```py\n{'load ' * 99}\n```\n", "code_snippets/a.md").summary) <= 200
    assert note("```py\n1\n```\n").code is None
    assert note("---\nlanguage: de\n---\n").extra == {"language": "de"}


def test_research_notes() -> None:
    text = (
        "---\nsource_url: https://x.y\nkey_findings: [one, 2.50]\nconfidence: 1\nrelated_pages: pages/x\n---\n"
        "## Key findings\n- no\n"
    )
    assert note(text, "research_notes/a.md").fields == {
        "source_url": "https://x.y",
        "key_findings": ["one", "2.50"],
        "confidence": 1.0,
        "related_pages": ["pages/x"],
    }
    text = (
        "- no\n\n## KEY Findings\n\nIntro\n\n- **one**\n  goes on\n\n  - nested\n\n  second paragraph\n* [two](x)\n"
        "\n## Else\n\n- no\n"
    )
    assert note(text, "research_notes/a.md").fields["key_findings"] == ["one goes on", "two"]


@pytest.mark.parametrize("line", ["confidence: high", "confidence: 1.5", "confidence: true", "key_findings: [a: b]"])
def test_a_wrong_field_of_a_collection_is_a_problem(line: str) -> None:
    read = note(f"---\n{line}\n---\n", "research_notes/a.md")
    name = line.partition(":")[0]
    assert [problem.line for problem in read.problems] == [2]
    assert read.fields[name] in (None, [])
    assert name in read.extra


def test_broken_frontmatter_does_not_hide_the_text() -> None:
    read = note("---\ntitle: [\n---\n# Still here\n")
    assert (read.title, read.content) == ("Still here", "# Still here\n")
    assert [problem.line for problem in read.problems] == [3]
    assert read.sections[0].line == 4
    read = note("---\ntitle: x\n\n# Still here\n")
    assert read.content == "---\ntitle: x\n\n# Still here\n"
    assert read.title == "Still here"


def test_invalid_utf_8_is_kept_with_replacement_characters() -> None:
    read = parse("pages/a.md", b"# A\n\nok\nbad \xff here\n\n## B \xc3\n")
    assert read.content == "# A\n\nok\nbad \ufffd here\n\n## B \ufffd\n"
    assert [problem.line for problem in read.problems] == [4]


def test_words_are_counted_in_every_script() -> None:
    assert note("Don't count 3 words – über 東京 twice").word_count == 9


def test_tokens_of_the_sections_are_their_own() -> None:
    text = "---\na: 1\n---\nbefore\n\n# A\n\ntext <|endoftext|>\n\n## B\n\n  more \n\n\n# C  \r\n\r\nüber 東京\n"
    read = note(text)
    assert read.token_count == count_tokens(read.content)
    for section in read.sections:
        assert section.token_count == count_tokens(read.content[section.start : section.end])


@given(st.lists(st.sampled_from(["# h", "text 12", "", "  ", "\t", "===", "- a", "é東", "…!", "\x0b", "\r", "   # i"])))
def test_sums_of_tokens_are_exact(lines: list[str]) -> None:
    read = note("\n".join(lines))
    assert read.token_count == count_tokens(read.content)


@given(DOCUMENTS | ODD_DOCUMENTS)
def test_sections_nest(text: str) -> None:
    read = note(text)
    for before, section in pairwise(read.sections):
        assert before.start < section.start
        assert before.line < section.line
        if section.level > before.level:
            assert section.end <= before.end
        else:
            assert before.end <= section.start
    assert all(section.end <= len(read.content) for section in read.sections)
    assert len({section.anchor for section in read.sections}) == len(read.sections)


@given(
    st.binary(max_size=200) | st.text(max_size=200).map(str.encode),
    st.sampled_from(["pages", "research_notes", "code_snippets", ""]),
)
def test_no_bytes_make_it_raise(raw: bytes, collection: str) -> None:
    for whole in (raw, b"---\n" + raw + b"\n---\n# h\n"):
        read = parse(f"{collection}/a.md".lstrip("/"), whole)
        assert read == parse(read.path, whole)
        json.dumps(asdict(read), default=datetime.isoformat, allow_nan=False).encode()


# Each of these makes some reader of Markdown or YAML quadratic, recurse, or worse; here they are just read.
HOSTILE = {
    "open links": "[[" * 100_000,
    "brackets": "[" * 200_000,
    "half links": "[a](" * 50_000,
    "half titles": '[a](b "' * 30_000,
    "images": "![" * 100_000,
    "definitions": "[a]: <" * 30_000,
    "backticks": "`" * 200_000,
    "growing backticks": " ".join("`" * n for n in range(600)),
    "tags": "<" * 200_000,
    "html lines": "<a\n" * 30_000,
    "comments": "<!--" * 50_000,
    "comment lines": "<!-- x -->\n" * 20_000,
    "stars": "*" * 200_000,
    "emphasis": "*a **a " * 30_000,
    "underscores": "_" * 200_000,
    "heading of stars": "# " + "*a" * 100_000,
    "headings": "# a\n" * 15_000,
    "hashes": "#" * 200_000,
    "setext": "a\n---\n" * 10_000,
    "fences": "```\n" * 25_000,
    "open fences": "".join(f"{'`' * (n % 50 + 3)}\n" for n in range(25_000)),
    "quotes": ">" * 50_000,
    "quoted lines": "> a\n" * 30_000,
    "deep list": "\n".join("  " * n + "- a" for n in range(500)),
    "list of lists": "- " * 5_000 + "x",
    "spaces": " " * 500_000,
    "space lines": (" " * 400 + "\n") * 1000,
    "one line": "word " * 100_000,
    "rules": "- " * 100_000,
    "rules, broken": "- " * 100_000 + "\nx",
    "numbers": "1" * 200_000,
    "pipes": "|" * 100_000 + "\n" + "|-" * 50_000,
    "entities": "&a" * 100_000,
    "escapes": "\\" * 200_000 + "`",
    "tag marks": "#a" * 100_000,
    "returns": "\r" * 100_000,
    "nul": "\0" * 100_000,
    "dashes": "---\n" * 25_000,
    "yaml brackets": "---\na: " + "[" * 60_000 + "\n---\n",
    "yaml keys": "---\n" + "".join(f"k{n}: {n}\n" for n in range(6000)) + "---\n",
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_read(name: str) -> None:
    text = HOSTILE[name]
    for path in ("pages/a.md", "research_notes/a.md"):
        read = note(text, path)
        assert text.endswith(read.content)
        assert len(read.summary) <= 200


@pytest.mark.parametrize(
    "raw",
    [b"", b"---", b"---\n", b"---\ntitle: x\n", b"---\r\na: 1\r\n--", b"\xef\xbb\xbf---\na: 1", b"text \xc3",
     b"\xe2\x82", b"\xf0\x9f\x98", b"\xef\xbb"],
)  # fmt: skip
def test_a_file_that_is_still_being_written_looks_so(raw: bytes) -> None:
    assert looks_unfinished(raw)


@pytest.mark.parametrize(
    "raw",
    [b"\n", b"text", b"---\n---", b"---\na: 1\n---\n", b"---\r\na: 1\r\n---\r\n", "é".encode(), "€😀".encode(), b"\xff",
     b"a\x80", b"----\n", b"text\n---\n", b"\x80\x80\x80"],
)  # fmt: skip
def test_a_finished_file_does_not(raw: bytes) -> None:
    assert not looks_unfinished(raw)


@pytest.mark.parametrize(
    ("text", "provenance"),
    [
        ("# The ferry\n\nprovenance: external\n", None),
        ("---\nprovenance: owner\n---\nMine.\n", None),
        ("---\nprovenance: external\n---\nHers.\n", "external"),
        ("---\nprovenance: ' External, by mail'\n---\nHers.\n", "external"),
        ("---\nprovenance: [\n---\nWho knows.\n", "external"),
        ("---\ntitle: [\n---\nMine.\n", None),
    ],
)
def test_a_note_says_whether_it_holds_what_somebody_else_said(text: str, provenance: str | None) -> None:
    assert note(text).provenance == provenance
