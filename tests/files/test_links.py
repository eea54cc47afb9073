"""Links and #tags: what counts, what does not, and on which line."""

import pytest

from notebook_sync.files.parse import links_of, tags_of
from prompt.hidden import visible
from prompt.outline import Outline


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
        ("#yes %% #no %% #too\n\n%%\n#no\n%%\n", "yes too"),
        ("<div>\n#no\n</div>\n\n[see #no](x.md) ![#no](y.png)", ""),
        ("# Heading #yes\n#yes\n#other", "yes other"),
    ],
)
def test_tags(text: str, tags: str) -> None:
    assert " ".join(tags_of(Outline(text), visible(text, now=None).gaps)) == tags


def links(text: str) -> list[tuple[str, str, int, str]]:
    return [tuple(link) for link in links_of(Outline(text), visible(text, now=None).gaps, 10)]  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        ("[[A]] [[B|b]] [[C#part]] ![[D.png]] [[#own]] [[A]]", ["A", "B", "C#part", "D.png", "#own", "A"]),
        ("[a](x.md) [b](../y%20z.md#p%20q) [c](<q r.md>) [d](s(1).md 'title') [e](/root.md?x=1)",
         ["x.md", "../y z.md#p q", "q r.md", "s(1).md", "/root.md"]),
        ("[a](http://x) [b](mailto:a@b) [d](//host/x) <http://x> [e](obsidian://x) [1]()", []),
        ("[a](#part) [[idea#^b1]]", ["#part", "idea#^b1"]),
        ("![image](x.png) [![badge](b.svg)](page.md) [text ![i](j.png) more](k.md)", ["page.md", "k.md"]),
        ("![x](data:image/png;base64,AAAA) [x](data:text/plain,no)", []),
        ("`[[no]]` `[no](no.md)` \\[no](no.md)\n\n```\n[[no]]\n```\n<!-- [[no]] -->", []),
        ("%% [[no]] %% [[yes]]\n\n%%\n[no](no.md)\n%%\n\n[[too]] 100%% sure [[three]]", ["yes", "too", "three"]),
        ("[text][label]\n\n[label]: there.md 'title'\n[^1]: note\n[web]: https://x.y\n", ["there.md"]),
        ("|a|b|\n|-|-|\n| [[A#p\\|b]] | x |\n\n[^1] and [1]\n\n[^1]: note\n[1]: n.md\n", ["A#p", "n.md"]),
        ("[`code`](x.md) [a\nb](y.md) [unclosed](no.md", ["x.md", "y.md"]),
    ],
)  # fmt: skip
def test_links(text: str, targets: list[str]) -> None:
    assert [target + ("#" + fragment if fragment else "") for target, fragment, _, _ in links(text)] == targets


def test_a_link_knows_its_line_and_kind() -> None:
    assert links("See [[Planning notes]] first.\r\n\r\nThen\n\n![[Plan]] and [x](y.md#z)") == [
        ("Planning notes", "", 11, "wiki"),
        ("Plan", "", 15, "embed"),
        ("y.md", "z", 15, "markdown"),
    ]
