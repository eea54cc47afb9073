"""Who made a note, when, and whose words stand in it: agents cannot say otherwise, by whatever tool."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from notebook_sync import Edit, MemoryTool, Notebook, Session, call
from notebook_sync.errors import EditFailed, NotPermitted, UsageError

OWNER, SCRIBE, PILOT = Session.owner(), Session.task("scribe"), Session.task("pilot")
STRANGER = Session.external("pilot")
PAGE = "pages/lamps.md"
MADE = (
    '---\nid: lamps\ntitle: Lamps\ncreated_by: "agent:scribe"\ncreated_at: 2026-02-18T10:30:00Z\n'
    "provenance: task\ntype: page\n---\nLit at dusk.\n"
)
MINE = "channels/pilot/global/mine.md"
NOTE = MADE.replace("scribe", "pilot").replace("type: page", "type: note").replace("id: lamps", "id: mine")


@pytest.fixture
def notebook(tmp_path: Path) -> Iterator[Notebook]:
    for path, text in {PAGE: MADE, MINE: NOTE, "pages/plain.md": "# Plain\n"}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    (tmp_path / "notebook.toml").write_text("[git]\ncommit = 'off'\n")
    with Notebook.open(tmp_path) as notebook:
        notebook.sync()
        yield notebook


def text_of(notebook: Notebook, path: str) -> str:
    return (notebook.root / path).read_text()


def origin_of(notebook: Notebook, path: str) -> tuple[str, str]:
    told = notebook.read(path, OWNER)["metadata"]
    return told["created_by"], str(told["created_at"])[:10]


FORGED = {
    "author": "created_by: owner",
    "author of another type": "created_by: [owner]",
    "author taken away": "created_by: null",
    "author in quotes": "\"created_by\": 'agent:pilot '",
    "time": "created_at: 1999-01-01",
    "time taken away": "created_at: null",
    "id": "id: another",
    "id taken away": "id: null",
    "provenance": "provenance: owner",
    "provenance taken away": "provenance: ~",
}


@pytest.mark.parametrize("field", FORGED.values(), ids=FORGED)
@pytest.mark.parametrize("path", [PAGE, MINE])
def test_no_field_of_where_a_note_comes_from_is_set_to_another_value(notebook: Notebook, path: str, field: str) -> None:
    before = text_of(notebook, path)
    wanted = {"file": path, "action": "set_frontmatter", "content": field}
    error = call(notebook, "notebook_edit", wanted, PILOT)["error"]
    assert error["type"] == "not_permitted"
    assert "leave it as it is, or out" in error["message"]
    assert text_of(notebook, path) == before
    assert [(event["kind"], event["path"]) for event in notebook.events.read()] == [("refused", path)]


@pytest.mark.parametrize("field", [one for one in FORGED.values() if not one.endswith(("null", "~"))])
@pytest.mark.parametrize("path", [PAGE, MINE, "pages/plain.md", "pages/new.md", "channels/pilot/global/new.md"])
def test_no_text_that_is_written_says_that_a_note_comes_from_elsewhere(
    notebook: Notebook, path: str, field: str
) -> None:
    before = {one: one.read_bytes() for one in notebook.root.rglob("*.md")}
    forged = f"---\n{field}\n---\nForged.\n"
    with pytest.raises(NotPermitted, match="leave it as it is, or out"):
        notebook.edit(path, Edit("write", content=forged), PILOT)
    memory = MemoryTool(notebook, PILOT)
    created = memory.tool_result("", {"command": "create", "path": f"/memories/{path}", "file_text": forged})
    assert created["is_error"]
    assert {one: one.read_bytes() for one in notebook.root.rglob("*.md")} == before


def test_in_a_channel_the_kind_of_a_note_is_not_set_either(notebook: Notebook) -> None:
    with pytest.raises(NotPermitted, match="type is the notebook's own"):
        notebook.edit(MINE, Edit("set_frontmatter", content="type: page"), PILOT)
    notebook.edit("pages/plain.md", Edit("set_frontmatter", content="type: list"), PILOT)
    assert "type: list" in text_of(notebook, "pages/plain.md")


def test_a_field_is_not_replaced_by_the_memory_tool_and_not_by_a_second_edit(notebook: Notebook) -> None:
    memory = MemoryTool(notebook, PILOT)
    asked = {"path": f"/memories/{PAGE}", "old_str": "agent:scribe", "new_str": "owner"}
    assert memory.tool_result("", {"command": "str_replace", **asked})["is_error"]
    twice = [Edit("write", content="Mine.\n"), Edit("set_frontmatter", content="created_by: owner")]
    with pytest.raises(NotPermitted):
        notebook.edit("pages/new.md", twice, PILOT)
    with pytest.raises(NotPermitted):
        notebook.edit(PAGE, Edit("set_frontmatter", content="created_by: owner"), PILOT, preview=True)
    assert text_of(notebook, PAGE) == MADE
    assert not (notebook.root / "pages/new.md").exists()


@pytest.mark.parametrize("path", [PAGE, MINE])
@pytest.mark.parametrize("text", ["Out by day.\n", "", "---\ntitle: Lanterns\n---\nOut by day.\n", "\ufeffOut.\r\n"])
def test_a_text_that_leaves_it_out_keeps_it(notebook: Notebook, path: str, text: str) -> None:
    notebook.edit(path, Edit("write", content=text), PILOT)
    document = notebook.read(path, OWNER)
    author = "agent:scribe" if path == PAGE else "agent:pilot"
    assert (document["id"], *origin_of(notebook, path)) == (Path(path).stem, author, "2026-02-18")
    for line in ("provenance: task", "type: "):
        assert line in text_of(notebook, path)
    notebook.edit(path, Edit("write", content=text), OWNER)
    assert text_of(notebook, path).encode() == text.encode().replace(b"\r\n", b"\n")
    assert origin_of(notebook, path)[0] == "owner"


def test_what_is_read_can_be_written_back(notebook: Notebook) -> None:
    notebook.edit(PAGE, Edit("write", content=MADE.replace("dusk", "dawn")), PILOT)
    assert text_of(notebook, PAGE) == MADE.replace("dusk", "dawn")
    notebook.edit("pages/plain.md", Edit("write", content="# Plainer\n"), PILOT)
    assert text_of(notebook, "pages/plain.md") == "# Plainer\n"


@pytest.mark.parametrize("path", ["pages/new.md", "channels/pilot/global/new.md", "new.md"])
def test_what_an_agent_makes_bears_its_name(notebook: Notebook, path: str) -> None:
    notebook.edit(path, Edit("write", content="---\ntitle: New\n---\nText.\n"), PILOT)
    assert text_of(notebook, path) == '---\ntitle: New\ncreated_by: "agent:pilot"\n---\nText.\n'
    assert origin_of(notebook, path)[0] == "agent:pilot"
    found = call(notebook, "notebook_list", {"author": "agent:pilot"}, PILOT)["results"]
    assert path in [row["path"] for row in found]


def test_what_the_memory_tool_makes_bears_the_name_too_and_lines_go_below_it(notebook: Notebook) -> None:
    memory = MemoryTool(notebook, PILOT)
    memory.create("/memories/pages/new.md", "Lit.\n")
    memory.insert("/memories/pages/new.md", 0, "Lamps.")
    assert text_of(notebook, "pages/new.md") == '---\ncreated_by: "agent:pilot"\n---\nLamps.\nLit.\n'
    memory.rename("/memories/pages/new.md", "/memories/facts/lamps.md")
    assert origin_of(notebook, "facts/lamps.md")[0] == "agent:pilot"
    assert memory.tool_result("", {"command": "create", "path": "/memories/pages/new.md", "file_text": "x"})
    assert origin_of(notebook, "pages/new.md")[0] == "agent:pilot"


def test_the_way_round_by_another_place_is_closed(notebook: Notebook) -> None:
    notebook.rename(MINE, "pages/mine.md", PILOT)
    for field in ("type: page", "provenance: owner", "created_by: owner"):
        with pytest.raises(NotPermitted):
            notebook.edit("pages/mine.md", Edit("set_frontmatter", content=field), PILOT)
    notebook.rename("pages/mine.md", MINE, PILOT)
    assert text_of(notebook, MINE) == NOTE


@pytest.mark.parametrize("broken", ["---\ntitle: [\n---\nText.\n", "---\nnever closed\n"])
def test_frontmatter_is_not_broken_to_be_mended_otherwise(notebook: Notebook, broken: str) -> None:
    for path in (PAGE, "pages/new.md"):
        with pytest.raises(EditFailed, match="its frontmatter cannot take"):
            notebook.edit(path, Edit("write", content=broken), PILOT)
    (notebook.root / PAGE).write_text(MADE.replace("title: Lamps", "title: [Lamps"))
    with pytest.raises(NotPermitted, match="the owner has to repair it"):
        notebook.edit(PAGE, Edit("write", content=MADE.replace("agent:scribe", "owner")), PILOT)
    (notebook.root / "pages/plain.md").write_text("---\ntitle: [Plain\n---\nText.\n")
    notebook.edit("pages/plain.md", Edit("write", content="# Mended\n"), PILOT)
    assert text_of(notebook, "pages/plain.md") == "# Mended\n"


def test_somebody_elses_message_is_marked_signed_and_cannot_say_otherwise(notebook: Notebook) -> None:
    text = text_of(notebook, notebook.channels.write("Said.\n", STRANGER).path)
    assert 'created_by: "agent:pilot"\n' in text
    assert "provenance: external\n" in text
    for field in ("provenance", "created_by", "type"):
        with pytest.raises(UsageError, match=field):
            notebook.channels.write("Said.\n", STRANGER, metadata={field: "owner"})


def test_the_owner_says_what_he_likes(notebook: Notebook) -> None:
    wanted: Any = "created_by: Odile\ncreated_at: 1999-01-01\nid: new\nprovenance: null\ntype: list"
    notebook.edit(PAGE, Edit("set_frontmatter", content=wanted), OWNER)
    assert origin_of(notebook, PAGE) == ("Odile", "1999-01-01")


def test_taking_an_edit_back_goes_back_to_what_stood_there(notebook: Notebook) -> None:
    notebook.edit(PAGE, Edit("write", content="Out by day.\n"), PILOT)
    notebook.undo(PAGE, PILOT)
    assert text_of(notebook, PAGE) == MADE
