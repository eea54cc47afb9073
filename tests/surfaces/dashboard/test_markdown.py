"""Notes as markup: what is kept, what is text, and how long any bytes take."""

import re
from random import Random

import pytest

from notebook_sync.surfaces.dashboard.markdown import LONGEST, href_of, render

_TAGS = re.compile(
    r"<(?!/?(?:p|h[1-6]|ul|ol|li|a|em|strong|s|code|pre|blockquote|br|hr|table|thead|tbody|tr|th|td|div|img|span|button)\b)"
)


@pytest.mark.parametrize(
    ("text", "markup"),
    [
        ("a *b* `c` ~~d~~", "<p>a <em>b</em> <code>c</code> <s>d</s></p>"),
        ("# One", '<h2 id="at-one">One</h2>'),
        ("[x](plan.md#part)", '<p><a href="/note/pages/plan.md#at-part">x</a></p>'),
        ("[x](../facts/core.md)", '<p><a href="/note/facts/core.md">x</a></p>'),
        ("[x](../../etc/passwd)", "<p><a>x</a></p>"),
        (
            "[[Plan|the plan]] [[#Part One]]",
            '<p><a href="/note/Plan">the plan</a> <a href="#at-part-one">#Part One</a></p>',
        ),
        ("[x](https://a.example/)", '<p><a href="https://a.example/" rel="noopener noreferrer">x</a></p>'),
        ("[x](javascript:alert(1))", "<p>[x](javascript:alert(1))</p>"),
        ("[x](JaVaScRiPt&#58;alert(1))", None),
        ("![a](b.png)", '<p><img src="/file/pages/b.png" alt="a" loading="lazy"></p>'),
        ("![a](https://x.example/b.png)", None),
        ("<b onclick=x>hi</b>", "<p>&lt;b onclick=x&gt;hi&lt;/b&gt;</p>"),
        ("- [ ] a", None),
    ],
)
def test_a_text_becomes(text: str, markup: str | None) -> None:
    found = str(render(text, "pages/one.md")).strip()
    assert markup is None or found == markup
    assert "javascript" not in " ".join(re.findall(r"<[^>]*>", found)).lower()
    assert 'src="http' not in found


@pytest.mark.parametrize("link", ["javascript:x", "data:text/html,x", "//evil.example", "\\\\evil", "file:///etc", ""])
def test_a_link_that_leads_outside_is_not_followed(link: str) -> None:
    assert href_of(link, "pages/one.md") == ""


def test_a_box_carries_the_words_of_its_line() -> None:
    found = str(render('- [ ] Buy "rope" & oil\r\n- [x] Done', "pages/one.md", boxes=True))
    assert 'name="entry_match" value="Buy &#34;rope&#34; &amp; oil" role="checkbox" aria-checked="false"' in found
    assert 'value="Done" role="checkbox" aria-checked="true"' in found


def _paragraphs(word: str) -> str:
    return ((word * 9_900)[:9_900] + "\n\n") * 20


_WORDS = [
    "[",
    "![",
    "*a **b ",
    "*_",
    "**_*a_ ",
    "`a``b",
    "~~a",
    "[a](",
    "[[a",
    "<a",
    "&amp;",
    "> ",
    "- ",
    "|a",
    "a\n",
    "1. ",
]


@pytest.mark.parametrize(
    "text",
    [
        *map(_paragraphs, _WORDS),
        *(word * 200_000 for word in _WORDS),
        ">" * 40_000,
        "".join(" " * 2 * depth + "- a\n" for depth in range(400)),
        ("|a" * 1500 + "|\n" + "|-" * 1500 + "|\n" + "|\n" * 40 + "\n") * 20,
        "[a]: /" + "x" * 90_000 + "\n\n" + "[a] " * 20_000,
        "x" * (LONGEST + 1),
    ],
    ids=lambda text: repr(text[:12]),
)
@pytest.mark.usefixtures("cpu_limit")
def test_no_text_takes_long(text: str) -> None:
    assert not _TAGS.search(str(render(text, "pages/one.md", boxes=True)))


def test_random_marks_yield_no_foreign_markup(rng: Random) -> None:
    parts = [
        "[a]",
        "(b)",
        "*",
        "`",
        "> ",
        "- ",
        "\n",
        "|",
        "[[",
        "]]",
        "<x>",
        "<script>",
        '"',
        "'",
        "&",
        "\x00",
        "é ",
        "[ ] ",
    ]
    for _ in range(100):
        found = str(render("".join(rng.choices(parts, k=300)), "pages/one.md", boxes=True))
        assert not _TAGS.search(found)
        assert not re.search(r"<[^>]*\son\w+=", found)
