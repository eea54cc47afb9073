"""Each action, in Markdown: fixtures are in tests/fixtures/edits.md. And what a file that is edited may be."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from notebook_sync.errors import EditFailed
from notebook_sync.files.edits import ACTIONS, Edit, Entry, edited, edited_by_all, entries_of

FIXTURES = Path(__file__).parent.parent / "fixtures" / "edits.md"
PATH = "runtime/reminders.md"


def fixtures() -> list[tuple[str, str, str, str]]:
    parts = re.split(r"(?m)^\.\n", FIXTURES.read_text())
    titles = [part.strip().splitlines()[-1] for part in parts[:-1:4]]
    return list(zip(titles, parts[1::4], parts[2::4], parts[3::4], strict=True))


def told(raw: bytes, edit: Edit) -> bytes:
    """The file after the edit, or the message of its failure."""
    try:
        return edited(raw, edit, PATH)
    except EditFailed as failed:
        return f"{failed}\n".encode()


def bytes_of(text: str, newline: str) -> bytes:
    return text.replace("→", "\t").replace("·", " ").replace("¬\n", "").replace("\n", newline).encode()


@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize(("text", "edit", "expected"), [f[1:] for f in fixtures()], ids=[f[0] for f in fixtures()])
def test_fixture(text: str, edit: str, expected: str, newline: str) -> None:
    raw = bytes_of(text, newline)
    if expected.startswith(PATH) or b"\n" not in raw:
        newline = "\n"
    assert told(raw, Edit(**yaml.safe_load(edit))).decode() == bytes_of(expected, newline).decode()


def test_every_action_has_a_fixture() -> None:
    assert {yaml.safe_load(edit)["action"] for _, _, edit, _ in fixtures()} == set(ACTIONS)


def test_the_byte_order_mark_stays() -> None:
    raw = "\ufeff---\ntitle: a\n---\n## Today\n".encode()
    assert edited(raw, Edit("append_to_section", "Today", "- one")) == raw + b"\n- one\n"
    assert edited(raw, Edit("set_frontmatter", content="title: b")) == raw.replace(b"title: a", b"title: b")
    assert edited("\ufeff# A\n".encode(), Edit("set_frontmatter", content="id: b")) == (
        "\ufeff---\nid: b\n---\n# A\n".encode()
    )


def test_in_a_file_of_mixed_line_ends_those_of_the_place_count() -> None:
    raw = b"## Today\n\n- one\n\n## This Week\r\n\r\n- two\r\n"
    assert edited(raw, Edit("append_to_section", "Today", "- a\r\n- b")) == raw.replace(b"one\n", b"one\n- a\n- b\n")
    assert edited(raw, Edit("append_to_section", "This Week", "- a\n- b")) == raw + b"- a\r\n- b\r\n"
    assert edited(raw, Edit("move_entry", entry_match="two", to="Today")) == (
        b"## Today\n\n- one\n- two\n\n## This Week\r\n"
    )


def test_a_lone_return_and_the_line_end_below_stay_two() -> None:
    assert edited(b"# A\r\n\n", Edit("replace_section", "A", "one")) == b"# A\r\n\r\none\r\n\n"
    assert edited(b"# A\r- one\r\r", Edit("append_to_section", "A", "- two")) == b"# A\r- one\r- two\r\r"
    assert edited(b"# A\r- one\n\n", Edit("replace_section", "A", "- two")) == b"# A\r- two\n\n"


def test_a_file_of_frontmatter_alone_is_ended_before_it_goes_on() -> None:
    raw = b"---\ntitle: a\n---"
    assert edited(raw, Edit("add_section", "Today", "- one")) == raw + b"\n## Today\n\n- one\n"
    assert edited(raw, Edit("set_frontmatter", content="title: b")) == b"---\ntitle: b\n---"


def test_write_takes_the_text_as_it_is() -> None:
    edit = Edit("write", content="\ufeff# B\r\n\n")
    assert edited(b"\xff\r\n", edit) == "\ufeff# B\r\n\n".encode()


@pytest.mark.parametrize("content", ["a\0b", "a\x1b[2Jb", "a\rb", "a\ud800b", "a\x85b", "a\x7fb"])
@pytest.mark.parametrize("action", ["append_to_section", "replace_section", "add_section", "set_frontmatter", "write"])
def test_no_control_character_is_written(action: str, content: str) -> None:
    section = "Later" if action == "add_section" else "Today"
    with pytest.raises(EditFailed, match=r"U\+.* at position 1"):
        edited(b"## Today\n", Edit(action, section, content))  # type: ignore[arg-type]


def test_a_file_that_is_not_utf_8_is_not_edited() -> None:
    with pytest.raises(EditFailed, match="not UTF-8 at byte 9"):
        edited(b"## Today\n\xff\n", Edit("append_to_section", "Today", "- one"))


def test_an_unknown_action_names_those_there_are() -> None:
    with pytest.raises(EditFailed, match="append_to_section"):
        edited(b"", Edit("append"))  # type: ignore[arg-type]


def test_content_at_the_top_of_a_file_does_not_become_frontmatter() -> None:
    with pytest.raises(EditFailed, match="would not read as meant"):
        edited(b"", Edit("append_to_section", content="---\ntitle: a\n\n---"))


def test_content_does_not_close_frontmatter_that_was_left_open() -> None:
    with pytest.raises(EditFailed, match="would not read as meant"):
        edited(b"---\ntitle: a\n\n## Today\n", Edit("append_to_section", "Today", "Prose.\n\n---\n\nMore."))


def test_a_batch_is_applied_in_order() -> None:
    edits = [
        Edit("add_section", "Later"),
        Edit("append_to_section", "Later", "- [ ] one"),
        Edit("toggle_checkbox", entry_match="one"),
    ]
    assert edited_by_all(b"# A\n", edits) == b"# A\n\n## Later\n\n- [x] one\n"


def test_a_batch_fails_as_a_whole_and_names_the_edit() -> None:
    edits = [Edit("add_section", "Later"), Edit("append_to_section", "Soon", "- one"), Edit("write")]
    with pytest.raises(EditFailed, match=r"edit 2 \(append_to_section\): no section is called 'Soon'") as failed:
        edited_by_all(b"# A\n", edits, PATH)
    assert failed.value.path == PATH
    assert set(failed.value.candidates) == {"#a (line 1): A", "#later (line 3): Later"}


def test_a_long_list_of_candidates_is_cut() -> None:
    raw = "".join(f"- entry {number}\n" for number in range(100)).encode()
    with pytest.raises(EditFailed) as failed:
        edited(raw, Edit("remove_entry", entry_match="entry"))
    assert failed.value.candidates[-1] == "… and 80 more"


def test_the_entries_of_a_file() -> None:
    raw = (
        b"---\ntitle: a\n---\n- above\n\n## Today\n\n- [ ] one <!-- x -->\n  more\n\n  and more\n  1. [x] two\n"
        b"\n## Notes\n\n## Notes\n\n* three\n> - four\n"
    )
    assert entries_of(raw) == (
        Entry("", "", 4, "above", None),
        Entry("today", "Today", 8, "one more and more", False),
        Entry("today", "Today", 12, "two", True),
        Entry("notes-1", "Notes", 18, "three", None),
    )


@pytest.mark.parametrize("depth", [1, 10, 60, 300])
def test_an_entry_below_and_inside_nested_bullets_is_found(depth: int) -> None:
    nested = "".join(f"{'  ' * level}- [ ] level {level}\n" for level in range(depth))
    text = f"## Today\n\n{nested}- [ ] last\n\n## Later\n\n- rope\n"
    deepest = f"level {depth - 1}"
    removed = edited(text.encode(), Edit("remove_entry", entry_match="last")).decode()
    assert removed == text.replace("- [ ] last\n", "")
    moved = edited(text.encode(), Edit("move_entry", entry_match="last", to="Later")).decode()
    assert moved == text.replace("- [ ] last\n", "") + "- [ ] last\n"
    ticked = edited(text.encode(), Edit("toggle_checkbox", entry_match=deepest, section="Today")).decode()
    assert ticked == text.replace(f"- [ ] {deepest}\n", f"- [x] {deepest}\n")
    assert len(entries_of(text.encode())) == depth + 2
