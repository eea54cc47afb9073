"""What holds for every edit of every file: nothing but the edit changes, and it can be taken back."""

import re
from collections import Counter
from datetime import UTC
from itertools import pairwise

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from notebook_sync.errors import EditFailed
from notebook_sync.files.edits import Edit, apply_edits, entries_of
from notebook_sync.files.page import Item
from notebook_sync.files.parse import parse
from notebook_sync.model import Action

LINES = (
    "# Harbour", "## Today", "## Today", "### Evening ###", "###### deep", "####### no heading", "#tag", "  ## inset",
    "Setext", "======", "------", "---", "***", "- [ ] one", "- [x] two", "- [X] three", "- one", "* star", "+ plus",
    "1. first", "2) second", "10. tenth", "-", "- ", "  - child", "    - grandchild", "\t- tabbed", "- - twice",
    "  continued", "lazy", "    code", "- [ ]", "- []", "- [ ]x", "- a <!-- b -->", "- a <!-- open", "-   wide",
    "> quote", "> - quoted", ">", "```", "```py", "~~~", "  ```", "- ```", "<!-- pin -->", "<!-- open", "-->",
    "<!-- a --> text", "  <!-- inset -->", "<div>", "</div>", "<pre>", "<b>x</b>", "| a | b |", "|---|---|",
    "[x]: /u", "[[Link]]", "text", "text with `code`", "trailing  ", "back\\", "&amp;", "\ufeff", "\x0b", "\u00a0",
    "é 漢字 👩‍🚀", "", "", "", "", "", " ", "\t", "key: value",
)  # fmt: skip
LIST_LINES = ("## Today", "### Evening", *("- [ ] one", "- [x] two", "- three", "  - [ ] four", "1. five", "") * 3)
heads = st.sampled_from(["", "", "", "\ufeff", "---\ntitle: a # b\n---\n", "---\r\ntags: [a]\r\n---\r\n"])
ends = st.one_of(
    st.just(["\n"] * 14),
    st.just(["\r\n"] * 14),
    st.lists(st.sampled_from(["\n", "\n", "\r\n", "\r"]), min_size=14, max_size=14),
)


def joined(head: str, lines: list[str], ends: list[str], last: str) -> bytes:
    return (head + "".join(line + end for line, end in zip(lines, ends, strict=False)) + last).encode()


documents = st.builds(joined, heads, st.lists(st.sampled_from(LINES), max_size=14), ends, st.sampled_from(["", "last"]))
list_lines = st.lists(st.sampled_from(LINES + LIST_LINES * 3), min_size=5, max_size=14)
lists = st.builds(joined, heads, list_lines, ends, st.just("- [ ] last"))
ENTRY = "- [ ] Call Odile about the ropes"


def edited(raw: bytes, action: Action, section: str = "", content: str = "", **more: str) -> bytes:
    return apply_edits("pages/a.md", raw, [Edit(action, section, content, **more)])  # type: ignore[arg-type]


def tried(raw: bytes, action: Action, section: str = "", content: str = "", **more: str) -> bytes:
    """The file after the edit; what fails is of no interest here."""
    try:
        return edited(raw, action, section, content, **more)
    except EditFailed:
        assume(False)
        raise


def parts_of(raw: bytes) -> list[str]:
    """What is above the first heading, and below each up to the next one, headings included."""
    note = parse("pages/a.md", raw, timezone=UTC)
    starts = [0, *(section.start for section in note.sections), len(note.content)]
    return [note.content[start:end] for start, end in pairwise(starts)]


def anchors_of(raw: bytes) -> list[str]:
    return [section.anchor for section in parse("pages/a.md", raw, timezone=UTC).sections]


def pick_section(data: st.DataObject, raw: bytes) -> str:
    """An anchor of the file; "" where it has none, which names all of it."""
    return data.draw(st.sampled_from(anchors_of(raw) or [""]))


def pick_item(data: st.DataObject, raw: bytes) -> Item:
    items = entries_of(raw)
    texts = Counter((item.part.anchor, item.text) for item in items)
    named = [item for item in items if item.text and texts[item.part.anchor, item.text] == 1]
    assume(named)
    return data.draw(st.sampled_from(named))


def common_beginning(one: bytes, other: bytes) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def is_inserted(before: bytes, after: bytes) -> bool:
    """Whether `after` is `before` with one stretch of bytes added."""
    return after.endswith(before[common_beginning(before, after) :])


def is_taken_out(before: bytes, after: bytes) -> bool:
    """Whether `after` is `before` without one stretch of bytes; an empty line may separate what was around it."""
    rest = after[common_beginning(before, after) :]
    return any(before.endswith(rest[line_end:]) and not rest[:line_end].strip() for line_end in (0, 1, 2))


def items_by_section(raw: bytes) -> Counter[tuple[str, str, str]]:
    return Counter((item.part.anchor, item.text, item.box) for item in entries_of(raw))


def number_of(raw: bytes, section: str) -> int:
    """Which of `parts_of` the own text of a section is in."""
    return anchors_of(raw).index(section) + 1 if section else 0


def assert_others_stay(before: bytes, after: bytes, number: int) -> None:
    old, new = parts_of(before), parts_of(after)
    assert (len(old), [*old[:number], *old[number + 1 :]]) == (len(new), [*new[:number], *new[number + 1 :]])


@given(documents, st.data())
def test_an_appended_entry_is_one_entry_more_and_all_else_stays(raw: bytes, data: st.DataObject) -> None:
    section = pick_section(data, raw)
    after = tried(raw, "append_to_section", section, ENTRY)
    assert is_inserted(raw, after)
    assert_others_stay(raw, after, number_of(raw, section))
    assert items_by_section(after) == items_by_section(raw) + Counter([(section, ENTRY[6:], "[ ]")])


_EMPTY_TOP = re.compile(rb"\A(?:[ \t]*(?:\r\n|\n|\r))+")


@given(documents, st.data())
@example(b"## A", "a")
@example(b"## A\n## B\n", "a")
@example(b"## A\n- a\n\n- b\n## B\n", "a")
@example(b"## A\n \n\t\n\n## B\n", "a")
@example(b"## A\r\n\r\n- a", "a")
@example(b"## A\n\nTitle\n---\n", "a")
@example(b"\n \n***\n", "")
def test_an_appended_entry_that_is_removed_was_never_there(raw: bytes, data: st.DataObject | str) -> None:
    section = data if isinstance(data, str) else pick_section(data, raw)
    back = edited(tried(raw, "append_to_section", section, ENTRY), "remove_entry", match=ENTRY)
    # Where it was put at the top of the file, the empty lines below it go along with it.
    if back not in (raw, _EMPTY_TOP.sub(b"", raw)):
        # The entry had to be kept apart from the line below, which could go on with it; a blank line comes or goes.
        assert any(line in raw for line in (b"===", b"---", b"[x]: "))
        assert is_inserted(raw, back) or is_taken_out(raw, back)
        assert sorted(back.replace(b"\r", b"\n").split()) == sorted(raw.replace(b"\r", b"\n").split())
        assert abs(len(back) - len(raw)) <= 2


@given(documents, st.data())
def test_prose_is_inserted_and_all_else_stays(raw: bytes, data: st.DataObject) -> None:
    section = pick_section(data, raw)
    after = tried(raw, "append_to_section", section, "Prose\n\n> and *more*\n")
    assert is_inserted(raw, after)
    assert_others_stay(raw, after, number_of(raw, section))
    assert items_by_section(after) == items_by_section(raw)


@given(documents, st.data(), st.sampled_from(["", "- new", "Prose.", "```\ncode\n```\n"]))
def test_a_replaced_text_leaves_the_other_sections(raw: bytes, data: st.DataObject, content: str) -> None:
    section = pick_section(data, raw)
    after = tried(raw, "replace_section", section, content)
    assert_others_stay(raw, after, number_of(raw, section))
    here = [item.text for item in entries_of(after) if item.part.anchor == section]
    assert here == (["new"] if "- " in content else [])
    assert tried(after, "replace_section", section, content) == after


@given(lists, st.data())
def test_a_removed_entry_is_one_stretch_less_and_all_else_stays(raw: bytes, data: st.DataObject) -> None:
    item = pick_item(data, raw)
    after = tried(raw, "remove_entry", item.part.anchor, match=item.text)
    assert is_taken_out(raw, after)
    gone = items_by_section(raw) - items_by_section(after)
    assert not items_by_section(after) - items_by_section(raw)
    (section,) = {anchor for anchor, _, _ in gone}
    assert_others_stay(raw, after, number_of(raw, section))


@given(lists, st.data())
def test_a_box_ticked_twice_is_as_it_was(raw: bytes, data: st.DataObject) -> None:
    item = pick_item(data, raw)
    after = tried(raw, "toggle_checkbox", item.part.anchor, match=item.text)
    assert [old != new for old, new in zip(raw, after, strict=True)].count(True) == 1
    assert len(items_by_section(after) - items_by_section(raw)) == 1
    again = edited(after, "toggle_checkbox", item.part.anchor, match=item.text)
    assert again.replace(b"[X]", b"[x]") == raw.replace(b"[X]", b"[x]")


@given(lists, st.data())
def test_a_moved_entry_is_elsewhere_with_its_children(raw: bytes, data: st.DataObject) -> None:
    assume(anchors_of(raw))
    item = pick_item(data, raw)
    to = pick_section(data, raw)
    after = tried(raw, "move_entry", item.part.anchor, match=item.text, to=to)
    old, new = items_by_section(raw), items_by_section(after)
    assert Counter(one[1:] for one in (old - new).elements()) == Counter(one[1:] for one in (new - old).elements())
    assert {anchor for anchor, _, _ in new - old} == {to}
    touched = {number_of(raw, anchor) for anchor, _, _ in (old - new) + (new - old)}
    others = [
        (one, two) for n, (one, two) in enumerate(zip(parts_of(raw), parts_of(after), strict=True)) if n not in touched
    ]
    assert all(one == two for one, two in others)


@given(documents, st.data())
def test_an_added_section_is_one_more_and_all_else_stays(raw: bytes, data: st.DataObject) -> None:
    to = data.draw(st.sampled_from(["", *anchors_of(raw)]))
    after = tried(raw, "add_section", "Glazier", ENTRY, to=to)
    assert is_inserted(raw, after)
    assert [anchor for anchor in anchors_of(after) if anchor != "glazier"] == anchors_of(raw)
    assert items_by_section(after) == items_by_section(raw) + Counter([("glazier", ENTRY[6:], "[ ]")])
    levels = {section.anchor: section.level for section in parse("pages/a.md", after, timezone=UTC).sections}
    assert levels["glazier"] == levels.get(to, 2)


FIELDS = (
    "status: draft", "tags: [a, 'b']", "tags:\n  - a\n  # c\n  - b", "title: 'x'  # mine", "# alone", "", "empty:",
    "n: |\n  t\n\n  # t", '"quoted": 1.10', "é: 漢字 # 👩‍🚀", "deep: {a: [1, 2]}", "deep:\n  a:\n    b: c",
    "folded: >-\n  x\n  y", "w: a\n  b",
)  # fmt: skip


@given(
    st.lists(st.sampled_from(FIELDS), max_size=6, unique=True),
    st.lists(st.sampled_from(FIELDS), min_size=1, max_size=3, unique=True),
    st.sampled_from(["\n", "\r\n"]),
)
def test_a_set_field_leaves_the_others_and_the_text(old: list[str], new: list[str], newline: str) -> None:
    raw = "\n".join(["---", *old, "---", "# Ferry", ""]).replace("\n", newline).encode()
    content = "\n".join(new)
    after = tried(raw, "set_frontmatter", content=content)
    assert after[after.rindex(b"---") :] == raw[raw.rindex(b"---") :]
    names = {line.partition(":")[0] for line in new}
    kept = [line for line in old if line.partition(":")[0] not in names and line]
    assert all(line.replace("\n", newline).encode() in after for line in kept)
    assert after.count(b"# mine") == max(raw.count(b"# mine"), "title: 'x'  # mine" in new and b"title" not in raw)
    assert "empty:" in new or edited(after, "set_frontmatter", content=content) == after


@given(documents, st.sampled_from(["remove_entry", "toggle_checkbox", "append_to_section"]))
def test_what_fails_names_what_there_is(raw: bytes, action: Action) -> None:
    with pytest.raises(EditFailed) as failed:
        edited(raw, action, "" if action != "append_to_section" else "no such", ENTRY, match="no such")
    sections = parse("pages/a.md", raw, timezone=UTC).sections
    lines = {each.line for each in (entries_of(raw) if action != "append_to_section" else sections)}
    assert {f"(line {line})" for line in lines} == {
        f"(line {text.partition('(line ')[2].partition(')')[0]})" for text in failed.value.candidates
    }


HOSTILE = {
    "brackets": "[[" * 20_000,
    "a line of list marks": "- " * 5_000 + "x",
    "a deep list": "\n".join("  " * depth + "- x" for depth in range(400)),
    "a comment without end": "<!-- " + "words of the tide table\n" * 20_000,
    "a fence without end": "```\n" + "words of the tide table\n" * 20_000,
    "a long line": "- [ ] " + "x" * 500_000,
    "a long line of marks": "- " + "*a " * 100_000,
    "a long line of backticks": "- " + "`a" * 100_000,
    "a long heading": "## " + "x" * 500_000,
    "blank lines": "- x\n" + "\n" * 50_000,
    "comments": "- " + "<!-- a -->" * 50_000,
    "open comments": "- a <!-- b\n" * 5_000,
    "sections": "## Today\n\n- one\n\n" * 2_000,
}  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.usefixtures("cpu_limit")
def test_a_hostile_file_is_edited_or_refused(text: str) -> None:
    raw = f"## Harbour\n\n{text}\n".encode()
    for edit in (
        Edit("append_to_section", "Harbour", ENTRY),
        Edit("append_to_section", "Harbour", text),
        Edit("add_section", "Glazier", ENTRY),
        Edit("remove_entry", match="x"),
        Edit("remove_entry", match=text),
    ):
        try:
            after = apply_edits("pages/a.md", raw, [edit])
        except EditFailed as failed:
            after = str(failed).encode()
        assert is_inserted(raw, after) or is_inserted(after, raw) or len(after) < 10_000
