"""Each action, in Markdown: fixtures are in tests/fixtures/edits.md. And what a file that is edited may be."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from notebook_sync.errors import EditFailed
from notebook_sync.files.edits import ACTIONS, Edit, apply_edits, entries_of
from notebook_sync.model import Action
from tests.examples import examples_in

EXAMPLES = examples_in(Path(__file__).parent.parent / "fixtures" / "edits.md", 3)
PATH = "runtime/reminders.md"


def edited(raw: bytes, action: Action, section: str = "", content: str = "", **more: Any) -> bytes:
    return apply_edits(PATH, raw, [Edit(action, section, content, **more)])


def bytes_of(text: str, newline: str) -> bytes:
    return text.replace("→", "\t").replace("·", " ").replace("¬\n", "").replace("\n", newline).encode()


@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize(("text", "edit", "expected"), **EXAMPLES)
def test_fixture(text: str, edit: str, expected: str, newline: str) -> None:
    raw = bytes_of(text, newline)
    if expected.startswith(PATH) or b"\n" not in raw:
        newline = "\n"
    try:
        after = apply_edits(PATH, raw, [Edit(**yaml.safe_load(edit))])
    except EditFailed as failed:
        after = f"{failed}\n".encode()
    assert after.decode() == bytes_of(expected, newline).decode()


def test_every_action_has_a_fixture() -> None:
    assert {yaml.safe_load(edit)["action"] for _, edit, _ in EXAMPLES["argvalues"]} == set(ACTIONS)


@pytest.mark.parametrize(
    ("raw", "edit", "after"),
    [
        # The line ends of the place count; a lone return and the line end below it stay two.
        (
            b"## Today\n\n- one\n\n## This Week\r\n\r\n- two\r\n",
            Edit("append_to_section", "Today", "- a\r\n- b"),
            b"## Today\n\n- one\n- a\n- b\n\n## This Week\r\n\r\n- two\r\n",
        ),
        (
            b"## Today\n\n- one\n\n## This Week\r\n\r\n- two\r\n",
            Edit("append_to_section", "This Week", "- a\n- b"),
            b"## Today\n\n- one\n\n## This Week\r\n\r\n- two\r\n- a\r\n- b\r\n",
        ),
        (
            b"## Today\n\n- one\n\n## This Week\r\n\r\n- two\r\n",
            Edit("move_entry", match="two", to="Today"),
            b"## Today\n\n- one\n- two\n\n## This Week\r\n",
        ),
        (b"# A\r\n\n", Edit("replace_section", "A", "one"), b"# A\r\n\r\none\r\n\n"),
        (b"# A\r- one\r\r", Edit("append_to_section", "A", "- two"), b"# A\r- one\r- two\r\r"),
        (b"# A\r- one\n\n", Edit("replace_section", "A", "- two"), b"# A\r- two\n\n"),
        # Frontmatter that is all of a file gets an end before the file goes on.
        (
            b"---\ntitle: a\n---",
            Edit("add_section", "Today", "- one"),
            b"---\ntitle: a\n---\n## Today\n\n- one\n",
        ),
        (b"---\ntitle: a\n---", Edit("set_frontmatter", content="title: b"), b"---\ntitle: b\n---"),
        # The byte order mark stays first.
        (
            "\ufeff---\ntitle: a\n---\n## Today\n".encode(),
            Edit("append_to_section", "Today", "- one"),
            "\ufeff---\ntitle: a\n---\n## Today\n\n- one\n".encode(),
        ),
        ("\ufeff# A\n".encode(), Edit("set_frontmatter", content="id: b"), "\ufeff---\nid: b\n---\n# A\n".encode()),
        (b"\xff\r\n", Edit("write", content="\ufeff# B\r\n\n"), "\ufeff# B\r\n\n".encode()),
        # A key in other capitals is the same field, `...` ends frontmatter too, and a blank line may be above it.
        (b"---\nTags: [a]\n---\n", Edit("set_frontmatter", content="tags: [b]"), b"---\nTags: [b]\n---\n"),
        (b"---\nTags:\n- a\n...\n", Edit("set_frontmatter", content="tags: [b]"), b"---\nTags: [b]\n...\n"),
        (b"\n---\na: 1\n---\n", Edit("set_frontmatter", fields={"a": None, "b": "x: y"}), b'\n---\nb: "x: y"\n---\n'),
        (
            b"---\na:\nb:   # c\n---\n",
            Edit("set_frontmatter", fields={"a": 1, "b": 2}),
            b"---\na: 1\nb: 2   # c\n---\n",
        ),
        (b"---\na:   1  # c\n---\n", Edit("set_frontmatter", content="a:\n- b"), b"---\na:  # c\n- b\n---\n"),
        (b"---\na:  # c\n- b\n---\n", Edit("set_frontmatter", content="a: 2"), b"---\na: 2  # c\n---\n"),
        (b"---\n---\n# A\n", Edit("set_frontmatter", fields={"a": [1, True]}), b"---\na: [1, true]\n---\n# A\n"),
    ],
)
def test_bytes_outside_the_edit_stay(raw: bytes, edit: Edit, after: bytes) -> None:
    assert apply_edits(PATH, raw, [edit]) == after


@pytest.mark.parametrize("content", ["a\0b", "a\x1b[2Jb", "a\rb", "a\ud800b", "a\x85b", "a\x7fb"])
@pytest.mark.parametrize("action", ["append_to_section", "replace_section", "add_section", "set_frontmatter", "write"])
def test_no_control_character_is_written(action: Action, content: str) -> None:
    with pytest.raises(EditFailed, match=r"U\+.* at position 1"):
        edited(b"## Today\n", action, "Later" if action == "add_section" else "Today", content)


@pytest.mark.parametrize(
    ("raw", "edit", "reason"),
    [
        (b"## Today\n\xff\n", Edit("append_to_section", "Today", "- one"), "reminders.md:2: it is not UTF-8"),
        (b"", Edit("append"), "append_to_section"),  # type: ignore[arg-type]
        (b"", Edit("append_to_section", content="---\ntitle: a\n\n---"), "would not read as meant"),
        (
            b"---\ntitle: a\n\n## Today\n",
            Edit("append_to_section", "Today", "Prose.\n\n---\n\nMore."),
            "would not read as meant",
        ),
        (b"+++\na = 1\n+++\n", Edit("set_frontmatter", content="a: 2"), "must be corrected first"),
        (b"---\n{a: 1}\n---\n", Edit("set_frontmatter", content="a: 2"), "write the whole file"),
        (b"", Edit("set_frontmatter", content="title: Plan: two"), "line 1 of the content: mapping values .* quotes"),
        (
            b"# A\n",
            Edit("write", content="---\ntitle: Plan: phase two\n---\nThe zebra crossing.\n"),
            r"reminders.md:2: .*put the value in quotes",
        ),
    ],
)
def test_what_cannot_be_edited_is_refused_with_the_reason(raw: bytes, edit: Edit, reason: str) -> None:
    with pytest.raises(EditFailed, match=reason):
        apply_edits(PATH, raw, [edit])


@pytest.mark.parametrize(
    ("text", "action", "line", "reason"),
    [
        ("---\ntitle: a\n\n## Today\n", "append_to_section", 5, "would join, or separate"),
        ("## Later\n\n```\n", "add_section", 3, "opens a code fence"),
        ("## Today\n\n## Later\n\n" + "- a\n" * 10_000, "add_section", 5, "too many marks to be read as Markdown"),
        ("## Today\n\n" + "# a\n" * 10_000, "append_to_section", 6_668, "too many marks to be read as Markdown"),
    ],
    ids=["frontmatter", "fence", "dense list", "dense headings"],
)
def test_what_would_not_be_read_back_as_meant_is_refused_with_the_cause(
    text: str, action: Action, line: int, reason: str
) -> None:
    section = "Soon" if action == "add_section" else "Today"
    with pytest.raises(EditFailed, match=reason) as failed:
        edited(text.encode(), action, section, "Prose.\n\n---\n\nMore.")
    assert failed.value.line == line


def test_a_batch_is_applied_in_order() -> None:
    edits = [
        Edit("add_section", "Later"),
        Edit("append_to_section", "Later", "- [ ] one"),
        Edit("toggle_checkbox", match="one"),
    ]
    assert apply_edits(PATH, b"# A\n", edits) == b"# A\n\n## Later\n\n- [x] one\n"
    assert apply_edits(PATH, b"# A\n", []) == b"# A\n"


def test_a_batch_fails_as_a_whole_and_names_the_edit() -> None:
    edits = [Edit("add_section", "Later"), Edit("append_to_section", "Soon", "- one"), Edit("write")]
    with pytest.raises(EditFailed, match=r"edit 2 \(append_to_section\): no section is called 'Soon'") as failed:
        apply_edits(PATH, b"# A\n", edits)
    assert set(failed.value.candidates) == {"#a (line 1): A", "#later (line 3): Later"}


def test_a_long_list_of_candidates_is_cut() -> None:
    raw = "".join(f"- entry {number}\n" for number in range(100)).encode()
    with pytest.raises(EditFailed) as failed:
        edited(raw, "remove_entry", match="entry")
    assert failed.value.candidates[-1] == "… and 80 more"


def test_the_entries_of_a_file() -> None:
    raw = (
        b"---\ntitle: a\n---\n- above\n\n## Today\n\n- [ ] one <!-- x -->\n  more\n\n  and more\n  1. [x] two\n"
        b"\n## Notes\n\n## Notes\n\n* three\n> - four\n"
    )
    assert [(item.part.anchor, item.line, item.box, item.text) for item in entries_of(raw)] == [
        ("", 4, "", "above"),
        ("today", 8, "[ ]", "one more and more"),
        ("today", 12, "[x]", "two"),
        ("notes-1", 18, "", "three"),
    ]


@pytest.mark.parametrize("depth", [1, 10, 60, 200])
def test_an_entry_below_and_inside_nested_bullets_is_found(depth: int) -> None:
    nested = "".join(f"{'  ' * level}- [ ] level {level}\n" for level in range(depth))
    text = f"## Today\n\n{nested}- [ ] last\n\n## Later\n\n- rope\n"
    deepest = f"level {depth - 1}"
    assert edited(text.encode(), "remove_entry", match="last").decode() == text.replace("- [ ] last\n", "")
    moved = edited(text.encode(), "move_entry", match="last", to="Later").decode()
    assert moved == text.replace("- [ ] last\n", "") + "- [ ] last\n"
    ticked = edited(text.encode(), "toggle_checkbox", "Today", match=deepest).decode()
    assert ticked == text.replace(f"- [ ] {deepest}\n", f"- [x] {deepest}\n")
    assert len(entries_of(text.encode())) == depth + 2
