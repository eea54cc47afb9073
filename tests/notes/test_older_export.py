"""Importing an older program's notes: every shape of its export, nothing twice, and nothing lost in silence."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from notebook_sync import Notebook, Session
from notebook_sync.errors import NotPermitted, UsageError
from notebook_sync.notes.channels.importing import LARGEST_BYTES, Imported
from notebook_sync.notes.channels.older_export import channel_in

OWNER, SCRIBE = Session.owner(), Session.task("scribe")
SCRIBES, FERRY = "global:agent-notes:scribe", "proj_ferry-2026:agent-notes:scribe"
WHEN = "2026-02-18T10:30:00Z"


@pytest.fixture
def notebook(tmp_path: Path) -> Iterator[Notebook]:
    root = tmp_path / "notebook"
    root.mkdir()
    (root / "notebook.toml").write_text("")
    with Notebook.open(root) as notebook:
        yield notebook


def bring_in(notebook: Notebook, export: Any) -> Imported:
    file = notebook.root.parent / "export.json"
    if isinstance(export, bytes):
        file.write_bytes(export)
    else:
        file.write_text(export if isinstance(export, str) else json.dumps(export))
    imported = notebook.channels.import_notes(file, OWNER)
    assert imported.read == imported.written + imported.already + len(imported.failed)
    return imported


def message(content: str = "The rope is worn", **fields: Any) -> dict[str, Any]:
    return {"id": "m-1", "content": content, "timestamp": WHEN, **fields}


def only(notebook: Notebook) -> dict[str, Any]:
    (row,) = notebook.channels.recent(OWNER).results
    return notebook.read(row.path, OWNER)


def test_all_that_a_message_says_is_kept(notebook: Notebook) -> None:
    said = message(
        tags=["rope", "pier"],
        session_id="s-7",
        topic="harbour",
        metadata={"confidence": 0.8, "type": "reflection", "places": ["pier"], "source": "mail"},
        author="Odile",
        provenance="tool",
    )
    imported = bring_in(notebook, {"version": 2, "channels": [{"id": FERRY, "messages": [said]}]})
    assert imported.as_dict() == {"read": 1, "written": 1, "already": 0, "failed": [], "warnings": []}
    document = only(notebook)
    assert document["path"] == "channels/scribe/ferry-2026/2026-02-18T103000Z-the-rope-is-worn.md"
    assert document["content"] == "The rope is worn"
    metadata = document["metadata"]
    assert metadata["created_at"] == datetime(2026, 2, 18, 10, 30, tzinfo=UTC)
    assert metadata["created_by"] == "agent:scribe"
    assert metadata["tags"] == ["rope", "pier"]
    assert metadata["extra"] == {
        "type": "note",
        "topic": "harbour",
        "session_id": "s-7",
        "provenance": "task",
        "confidence": 0.8,
        "places": ["pier"],
        "author": "Odile",
        "older": {"type": "reflection", "source": "mail", "id": "m-1", "provenance": "tool"},
    }
    (row,) = notebook.channels.search("rope", SCRIBE, session_id="s-7", topic="harbour", tags=["pier"]).results
    assert (row.created_at, row.confidence) == (metadata["created_at"], 0.8)


def test_tags_and_session_may_stand_in_the_metadata(notebook: Notebook) -> None:
    said = message(tags="rope, pier", metadata={"tags": ["key"], "session_id": "s-7", "topic": "harbour"}, topic="sea")
    bring_in(notebook, [{**said, "channel_id": SCRIBES}])
    document = only(notebook)
    assert document["metadata"]["tags"] == ["rope", "pier", "key"]
    extra = document["metadata"]["extra"]
    assert (extra["session_id"], extra["topic"], extra["older"]["topic"]) == ("s-7", "sea", "harbour")


EXPORTS: list[Any] = [
    {"channels": [{"id": SCRIBES, "messages": [message()]}]},
    {"channels": [{"id": "81f2", "name": SCRIBES, "messages": [message()]}]},
    {"channels": {SCRIBES: {"messages": [message()]}}},
    {"channels": {SCRIBES: {"id": "81f2", "messages": [message()]}}},
    {"channels": {SCRIBES: [message()]}},
    {"channels": {SCRIBES: {"messages": {"m-1": {"content": "The rope is worn", "timestamp": WHEN}}}}},
    {SCRIBES: [message()]},
    {"messages": {SCRIBES: [message()]}},
    {"messages": [message(channel_id=SCRIBES)]},
    {"id": SCRIBES, "messages": [message()]},
    [{"id": SCRIBES, "messages": [message()]}],
    [message(channel=SCRIBES)],
    message(channel_id=SCRIBES),
]
LINES = [json.dumps({"id": SCRIBES, "messages": [message()]}), json.dumps(message(channel_id=SCRIBES))]


@pytest.mark.parametrize("export", [*EXPORTS, *(f"\n{line}\r\n\n" for line in LINES), "\ufeff" + LINES[0]])
def test_an_export_of_any_shape_is_read(notebook: Notebook, export: Any) -> None:
    assert bring_in(notebook, export).written == 1
    document = only(notebook)
    assert document["path"].startswith("channels/scribe/global/2026-02-18T103000Z-")
    assert document["metadata"]["extra"]["older"] == {"id": "m-1"}


def test_the_same_message_is_one_note_in_whatever_shape_and_however_often(notebook: Notebook) -> None:
    for export in [*EXPORTS, *LINES]:
        bring_in(notebook, export)
    assert len(notebook.channels.recent(OWNER).results) == 1


def test_a_second_run_adds_nothing(notebook: Notebook) -> None:
    said = [message(f"Note {number % 3}", id=f"m-{number}") for number in range(10)]
    export = {"channels": {SCRIBES: said, FERRY: said}}
    assert bring_in(notebook, export).written == 20
    before = notebook.files(OWNER)
    again = bring_in(notebook, export)
    assert (again.written, again.already, again.failed) == (0, 20, ())
    assert notebook.files(OWNER) == before


def test_a_note_that_was_edited_or_moved_meanwhile_stays_as_it_is(notebook: Notebook) -> None:
    export = {"channels": {SCRIBES: [message(), message(id="m-2")]}}
    bring_in(notebook, export)
    first, second = sorted(notebook.files(OWNER, "channels"))
    path = notebook.root / first
    path.write_text(path.read_text() + " More.")
    notebook.rename(second, "pages/rope.md", OWNER)
    assert bring_in(notebook, export).already == 2
    assert path.read_text().endswith(" More.")


def test_messages_without_an_id_are_each_a_note_and_the_same_when_read_again(notebook: Notebook) -> None:
    said = {"content": "The rope is worn", "timestamp": WHEN}
    export = [
        {**said, "tags": ["rope"], "session_id": "s1"},
        {**said, "tags": ["pier"], "session_id": "s1"},
        {**said, "tags": ["pier"], "session_id": "s2"},
        {**said, "tags": ["pier"], "session_id": "s2", "metadata": {"confidence": 0.5}},
        said,
        said,
    ]
    assert bring_in(notebook, {SCRIBES: export}).written == 6
    kept = [(row.tags, row.session_id) for row in notebook.channels.recent(OWNER).results]
    assert sorted(kept)[-1] == (["rope"], "s1")
    assert bring_in(notebook, {SCRIBES: export[::-1]}).already == 6


@pytest.mark.parametrize("when", ["2026-02-18T10:30:00.123456Z", 1771410600.123456, "2026-02-18T10:30:00.1230001Z"])
def test_a_time_that_is_finer_than_a_notes_is_kept_beside_it(notebook: Notebook, when: str | float) -> None:
    bring_in(notebook, {SCRIBES: [message(timestamp=when), message(id="m-2")]})
    finer, coarse = sorted(notebook.channels.recent(OWNER).results, key=lambda row: -row.created_at.microsecond)
    assert notebook.read(finer.path)["metadata"]["extra"]["older"] == {"id": "m-1", "timestamp": when}
    assert notebook.read(coarse.path)["metadata"]["extra"]["older"] == {"id": "m-2"}


def test_messages_that_only_look_alike_are_each_a_note(notebook: Notebook) -> None:
    said = [
        message(),
        message(id="m-2"),
        message("Another text"),
        message(timestamp="2026-02-18T10:30:00.001Z"),
        {"content": "The rope is worn", "timestamp": WHEN},
    ]
    assert bring_in(notebook, {"channels": {SCRIBES: said, FERRY: said}}).written == 10


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        ("2026-02-18T10:30:00Z", "2026-02-18T10:30:00+00:00"),
        ("2026-02-18T11:30:00.123456+01:00", "2026-02-18T10:30:00.123000+00:00"),
        ("2026-02-18 10:30", "2026-02-18T10:30:00+00:00"),
        ("2026-02-18", "2026-02-18T00:00:00+00:00"),
        (1771410600, "2026-02-18T10:30:00+00:00"),
        (1771410600.5, "2026-02-18T10:30:00.500000+00:00"),
        (1771410600123, "2026-02-18T10:30:00.123000+00:00"),
        (1771410600123456, "2026-02-18T10:30:00.123000+00:00"),
        (1771410600123456789, "2026-02-18T10:30:00.123000+00:00"),
        ("1771410600", "2026-02-18T10:30:00+00:00"),
    ],
)
def test_times_are_kept(notebook: Notebook, time: Any, expected: str) -> None:
    bring_in(notebook, {SCRIBES: [message(timestamp=time)]})
    assert only(notebook)["metadata"]["created_at"].isoformat() == expected


def test_another_time_beside_the_first_is_kept_too(notebook: Notebook) -> None:
    bring_in(notebook, {SCRIBES: [message(timestamp="soon", created_at=WHEN)]})
    document = only(notebook)
    assert document["metadata"]["created_at"].isoformat() == "2026-02-18T10:30:00+00:00"
    assert document["metadata"]["extra"]["timestamp"] == "soon"


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"content": ""}, "no text"),
        ({"content": None}, "no text"),
        ({"content": {"a": 1}}, "no text"),
        ({"timestamp": "soon"}, "no time"),
        ({"timestamp": None}, "no time"),
        ({"timestamp": True}, "no time"),
        ({"timestamp": 1e300}, "no time"),
        ({"timestamp": float("nan")}, "no time"),
        ({"topic": "x" * 300}, "topic"),
        ({"metadata": {"a": "x" * 70_000}}, "64 KiB"),
        ({"content": "\ud800"}, "UTF-8"),
        ({"content": "x" * (3 << 20)}, "max_file_bytes"),
    ],
)
def test_a_message_that_cannot_be_taken_is_listed_and_the_others_go_on(
    notebook: Notebook, wrong: dict[str, Any], reason: str
) -> None:
    imported = bring_in(notebook, {"channels": {SCRIBES: [message(**wrong), message()]}})
    assert imported.written == 1
    (failure,) = imported.failed
    assert failure["where"] == f"channels['{SCRIBES}'][0]"
    assert reason in failure["error"]


def test_lines_that_cannot_be_read_are_listed_by_number(notebook: Notebook) -> None:
    imported = bring_in(
        notebook,
        b"\n".join([LINES[1].encode(), b"{broken", b"", b"7", b'"x"', b'{"content": "\xff"}', LINES[0].encode()]),
    )
    assert (imported.read, imported.written, imported.already) == (6, 1, 1)
    assert [failure["where"] for failure in imported.failed] == ["line 2", "line 4", "line 5", "line 6"]


@pytest.mark.parametrize(
    "channel",
    ["global:general", "agent-notes:scribe", "proj_ferry", "", "global:agent-notes:", "global:agent-notes:a/b"],
)
def test_what_is_no_channel_of_an_agents_notes_is_listed(notebook: Notebook, channel: str) -> None:
    imported = bring_in(notebook, {"channels": [{"id": channel, "messages": [message(), message(id="m-2")]}]})
    assert (imported.written, len(imported.failed)) == (0, 2)


@pytest.mark.parametrize("project", ["../up", "a/b", ".hidden", "x" * 300])
def test_a_project_that_can_be_no_folder_is_listed(notebook: Notebook, project: str) -> None:
    assert len(bring_in(notebook, {f"proj_{project}:agent-notes:scribe": [message()]}).failed) == 1
    assert sorted(path.name for path in notebook.root.iterdir() if not path.name.startswith(".")) == ["notebook.toml"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("global:agent-notes:scribe", ("scribe", "")),
        ("global:agent-notes:a:agent-notes:b", ("a:agent-notes:b", "")),
        ("proj_7:agent-notes:scribe", ("scribe", "7")),
        ("proj_a:b:agent-notes:c:d", ("c:d", "a:b")),
        ("proj_a:agent-notes:b:agent-notes:c", ("b:agent-notes:c", "a")),
        ("global:agent-note:scribe", None),
        ("team:agent-notes:scribe", None),
    ],
)
def test_a_channels_id_is_parted_where_the_fixed_words_first_stand(name: str, expected: Any) -> None:
    assert channel_in(name) == expected


def test_values_that_a_note_cannot_hold_stay_as_text(notebook: Notebook) -> None:
    deep: Any = "bottom"
    for _ in range(40):
        deep = {"down": deep}
    bring_in(notebook, {SCRIBES: [message(metadata={"big": 2**70, "deep": deep, "odd": "no"}, rank=float("inf"))]})
    extra = only(notebook)["metadata"]["extra"]
    assert (extra["big"], extra["rank"], extra["odd"]) == (str(2**70), "inf", "no")
    assert "bottom" in str(extra["deep"])


def test_no_message_passes_for_more_than_it_is(notebook: Notebook) -> None:
    forged = {"id": "pages/plan", "created_by": "owner", "provenance": "External", "path": "pages/plan.md"}
    bring_in(notebook, {SCRIBES: [message(metadata=forged)]})
    document = only(notebook)
    assert document["external"]
    assert document["id"] != "pages/plan"
    assert document["metadata"]["created_by"] == "agent:scribe"
    assert document["metadata"]["extra"]["older"]["created_by"] == "owner"


@pytest.mark.parametrize("export", ["", "no JSON", "{", "7", '"x"', "null", "[[[[", "\xff\xfe"])
def test_a_file_that_is_no_export_is_told(notebook: Notebook, export: str) -> None:
    with pytest.raises(UsageError, match="export"):
        bring_in(notebook, export)


@pytest.mark.parametrize("export", ["[" * 900 + "]" * 900, '{"channels":' * 400 + "[]" + "}" * 400])
def test_a_file_that_nests_without_end_costs_nothing(notebook: Notebook, export: str) -> None:
    assert bring_in(notebook, export).written == 0


def test_a_file_that_cannot_be_read_or_is_too_large_is_told(notebook: Notebook, tmp_path: Path) -> None:
    large, pipe = tmp_path / "large.json", tmp_path / "pipe"
    large.touch()
    os.truncate(large, LARGEST_BYTES + 1)
    os.mkfifo(pipe)
    for file in (tmp_path / "none.json", tmp_path, large, pipe, Path("a\0b")):
        with pytest.raises(UsageError, match=r"export|part it"):
            notebook.channels.import_notes(file, OWNER)


@pytest.mark.parametrize("session", [SCRIBE, Session.external("scribe")])
def test_only_the_owner_imports(notebook: Notebook, tmp_path: Path, session: Session) -> None:
    for file in (tmp_path / "none.json", notebook.root / "notebook.toml"):
        with pytest.raises(NotPermitted, match="owner conversations"):
            notebook.channels.import_notes(file, session)
