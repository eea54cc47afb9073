"""The outline reads the blocks that other parsers read, at any depth, and says where in the text they are."""

import gc
import re
import weakref
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from prompt.outline import Outline, plain_text
from tests.examples import examples_in
from tests.prompt import corpora
from tests.prompt.readers import Micromark, block_set, markdown_it_tree, micromark, outline_tree

# Where the outline differs from markdown-it: a text, and how the outline reads it.
DIFFERENCES = {
    "a table without outer pipes, right below two lines of prose, is more prose": (
        "one\ntwo\na | b\n--|--\n",
        [["paragraph", 1, 4, []]],
    ),
    "a table of one column needs a pipe on its second line": ("|a\n:-:\n", [["paragraph", 1, 2, []]]),
    "an indented line right below a table is a row of it": (
        "|a|b|\n|-|-|\n    c\n",
        [["table", 1, 3, [["row", 1, 1, []], ["row", 3, 3, []]]]],
    ),
    "only </pre> ends <pre>": ("<pre>\n</script>\n\n# text\n</pre>\n", [["html_block", 1, 5, []]]),
    # As in CommonMark: until a line shows otherwise, a definition is a paragraph, which the line below continues.
    "what cannot interrupt a paragraph is text below a link definition": (
        "[a]: /b\n2. x\n",
        [["paragraph", 2, 2, []]],
    ),
}
_INDENTED_BELOW_A_TABLE = re.compile(r"\|[ \t]*\r?\n.* {4}[^ |]")


@pytest.fixture(scope="module")
def foreign() -> Iterator[Micromark | None]:
    with micromark() as reader:
        yield reader


@pytest.mark.parametrize("corpus", [name for name in corpora.names() if name != "naughty"])
def test_the_blocks_are_those_of_other_parsers(corpus: str, foreign: Micromark | None) -> None:
    texts = corpora.texts(corpus)
    assert [text for text in texts if outline_tree(text) != markdown_it_tree(text)] == []
    # micromark lets a heading begin with the definition above it, and knows no list in an item that begins with 10.
    own_ways = ("[foo]: /url\nbar\n===", "- foo\n\n      bar\n\n\n  10.  foo")
    texts = [text for text in texts if foreign and not any(way in text for way in own_ways)]
    assert [text for text in texts if foreign and outline_tree(text) != foreign.tree(text)] == []


# The same texts in every run: a document that differs and is not in DIFFERENCES is a change, not chance.
@settings(derandomize=True)
@given(corpora.DOCUMENTS | corpora.ODD_DOCUMENTS)
@example("\tcode\r- a\r\r\tcode")
@example("> \u00a0\n> \n> text")
def test_it_has_every_block_that_both_parsers_find_and_none_that_neither_does(
    foreign: Micromark | None, text: str
) -> None:
    """On texts that nobody would write, each of the two has mistakes of its own."""
    assume(not _INDENTED_BELOW_A_TABLE.search(text))
    ours, theirs = block_set(outline_tree(text)), block_set(markdown_it_tree(text))
    if foreign:
        others = block_set(foreign.tree(text))
        assert theirs & others <= ours <= theirs | others


@pytest.mark.parametrize(("text", "tree"), DIFFERENCES.values(), ids=DIFFERENCES)
def test_where_it_differs_from_markdown_it(text: str, tree: object) -> None:
    assert outline_tree(text) == tree != markdown_it_tree(text)


@pytest.mark.parametrize("depth", [*range(1, 61, 4), 240, 1_000])
def test_a_nested_list_of_any_depth_hides_nothing_below_it(depth: int) -> None:
    outline = Outline("\n".join("  " * level + f"- item {level}" for level in range(depth)) + "\n\n# Below\n")
    items = [block for block in outline.root.walk() if block.type == "list_item"]
    assert [item.first for item in items] == list(range(min(depth, len(items))))
    assert len(items) >= min(depth, 245)
    assert [section.title for section in outline.sections] == ["Below"]


@pytest.mark.parametrize("mark", ["> ", ">", "- ", "1. ", "> - "])
def test_marks_on_one_line_nest_and_hide_nothing_below_them(mark: str) -> None:
    outline = Outline(mark * 1_500 + "text\n\n# Below\n")
    assert [section.title for section in outline.sections] == ["Below"]
    assert outline.root.children[0].end == len(mark) * 1_500 + len("text")


@pytest.mark.parametrize("part", ["# a\n", "- ", ">", "- a\n", "|\n", "#\r", "1.\n\n"])
def test_of_a_text_that_is_no_text_every_line_is_in_a_block(part: str) -> None:
    text = "# Above\n\n" + part * 60_000 + "\n\n# Below"
    blocks = Outline(text).root.children
    assert (blocks[0].shown, blocks[-1].end) == ("Above", len(text))
    assert all(not text[one.end : two.start].strip() for one, two in pairwise(blocks))


@given(
    corpora.DOCUMENTS | corpora.ODD_DOCUMENTS | st.text(st.sampled_from("aé灯👩\ud800\0\r\n \t#->`*[]|"), max_size=80)
)
def test_a_block_is_where_it_says(text: str) -> None:
    outline = Outline(text)
    for block in outline.root.walk():
        assert 0 <= block.start <= block.end <= len(text)
        assert outline.lines.start(block.first) <= block.start
        assert outline.lines.at(max(block.end - 1, block.start)) == block.last - 1
        for span in block.spans:
            assert outline.lines.start(block.first) <= span.start <= span.end <= len(text)
    assert all(text[section.start :].lstrip(" ").strip() for section in outline.sections)
    for above, section in pairwise(outline.sections):
        assert section.end <= above.end if section.level > above.level else above.end == section.start
    starts = [block.start for block in outline.root.walk()]
    assert starts == sorted(starts)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_offsets_count_characters_and_every_kind_of_line(newline: str) -> None:
    text = "# É\n\n- 灯台 `x`\n\n  👩‍👩‍👧 zwei\n\n```py\nß\n```\n\ud800\0 end".replace("\n", newline)
    outline = Outline(text)
    at = {block.type: text[block.start : block.end] for block in outline.root.walk()}
    assert {kind: at[kind] for kind in ("heading", "list_item", "fence", "paragraph")} == {
        "heading": "# É",
        "list_item": newline.join(["- 灯台 `x`", "", "  👩‍👩‍👧 zwei"]),
        "fence": newline.join(["```py", "ß", "```"]),
        "paragraph": "\ud800\0 end",
    }
    assert [block.first for block in outline.root.children] == [0, 2, 6, 9]


def test_the_content_of_a_block_is_its_source_without_what_holds_it() -> None:
    text = "> - one\n>   *two*\n>   ```sh\n>    a\n>   ```\n>   ## H ##\n> > three\nfour\n"
    contents = [block.content for block in Outline(text).root.walk() if not block.children]
    assert contents == ["one\n*two*", " a\n", "H", "three\nfour"]


def test_links_and_texts_with_a_hash_are_listed_outside_of_code() -> None:
    outline = Outline("[a](b.md) ![c](d.png) [[E|f #g]] `#h [i](j)`\n\n- k #l [m #n](o)\n\n```\n#p\n```\n\n    #q\n")
    assert [(link.kind, link.value) for link in outline.links] == [
        ("link", "b.md"), ("image", "d.png"), ("link", "E"), ("link", "o"),
    ]  # fmt: skip
    assert [span.value for span in outline.hashes] == ["k #l "]


def test_a_tree_is_freed_without_the_collector_and_a_block_keeps_what_it_says() -> None:
    outline = Outline("- one\n")
    paragraph, freed = outline.root.children[0].children[0].children[0], weakref.ref(outline.root)
    gc.disable()
    try:
        del outline
        assert freed() is None
    finally:
        gc.enable()
    assert (paragraph.content, paragraph.first, paragraph.shown, paragraph.parent) == ("one", 0, "one", None)


@pytest.mark.parametrize(
    ("source", "text"),
    [("## *One* [two](x) ##", "One two"), ("[[A|b]] and [[C]]", "b and C"), ("![logo](x.png)", "logo"), ("", "")],
)
def test_plain_text_is_what_a_reader_sees(source: str, text: str) -> None:
    assert plain_text(source) == text


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
@pytest.mark.parametrize(("text", "expected"), **examples_in(corpora.FIXTURES / "outline.md", 2))
def test_fixture(text: str, expected: str, newline: str) -> None:
    outline = Outline(text.replace("→", "\t").replace("\n", newline))
    lines = [
        f"{each.level} {outline.lines.at(each.start) + 1} {each.anchor} | {each.title}\n" for each in outline.sections
    ]
    assert "".join(lines) == expected
