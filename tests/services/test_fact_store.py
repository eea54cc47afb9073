"""The flat-notes store of the original design, by its argument names."""

from array import array
from pathlib import Path
from typing import Any

import pytest

from notebook_sync import Notebook
from notebook_sync.errors import EditFailed, UsageError
from notebook_sync.files.fact_text import fact_id
from tests.services.conftest import SCRIBE, assert_raises, synced, write_files

NOTES, FERRY, LAMP = "facts/notes.md", "The ferry leaves at nine", "The lamp is lit at six"
TEXT = f"## Key Topics\n\n- {LAMP}\n\n## Important Facts\n\n- {FERRY}\n"


@pytest.fixture
def notebook(folder: Path) -> Any:
    files = {"notebook.toml": "", NOTES: TEXT, "facts/core.md": "- The harbour is called Quay\n"}
    with synced(folder, files) as opened:
        yield opened


def contents(rows: list[dict[str, Any]]) -> list[str]:
    return [row["content"] for row in rows]


def test_a_note_is_a_bullet_and_comes_back_with_what_was_given(notebook: Notebook) -> None:
    store = notebook.facts.store
    note_id = store.upsert_note(
        content="Odile runs the ferry", section="People & Entities", importance=0.8, metadata={"source": "chat"}
    )
    assert note_id == fact_id("Odile runs the ferry")
    row = store.get_note(note_id=note_id)
    assert row.keys() == {"note_id", "content", "section", "score", "metadata"}
    assert (row["section"], row["score"], row["metadata"]["source"]) == ("People & Entities", 0.8, "chat")
    assert "- Odile runs the ferry\n" in (notebook.root / NOTES).read_text()
    assert store.upsert_note(FERRY, "elsewhere", importance=0.2) == fact_id(FERRY)
    assert (notebook.root / NOTES).read_text().count(FERRY) == 1
    again = store.get_note(fact_id(FERRY))
    assert (again["section"], again["metadata"]["base"]) == ("Important Facts", 0.2)
    assert store.get_note("unknown") is None


def test_a_deleted_note_is_taken_out_of_every_file_and_undo_brings_it_back(notebook: Notebook) -> None:
    write_files(notebook.root, {"facts/more.md": f"- {FERRY}\n- other\n"})
    store = notebook.facts.store
    assert store.delete_note(note_id=fact_id(FERRY)) is True
    assert store.delete_note(note_id=fact_id(FERRY)) is False
    assert (notebook.root / "facts/more.md").read_text() == "- other\n"
    notebook.notes.undo(NOTES)
    assert store.get_note(fact_id(FERRY)) is not None
    write_files(notebook.root, {"facts/mail.md": "---\nprovenance: external\n---\n- Pay Bruno\n"})
    assert_raises(EditFailed, store.delete_note, fact_id("Pay Bruno"), match="words of others")


def test_the_nearest_to_a_vector_come_first(notebook: Notebook) -> None:
    store, meaning = notebook.facts.store, notebook.core.searcher.meaning
    vector = array("b", meaning.embedder.embed(["\nwhen does the ferry leave"])[0])
    found = store.search_similar(query_embedding=vector, limit=2)
    assert (found[0]["content"], found[0]["score"] > found[1]["score"] > 0) == (FERRY, True)
    assert contents(store.search_similar(vector, 5, section="Key Topics")) == [LAMP]
    assert store.search_similar([0.0] * 256) == []
    for wrong in ([1.0] * 3, [float("nan")] * 256, ["x"] * 256):
        assert_raises(UsageError, store.search_similar, wrong, match="query_embedding")
    assert notebook.facts.search("ferry", SCRIBE).results[0].similarity > 0


def test_use_and_importance_are_read_and_set(notebook: Notebook) -> None:
    store = notebook.facts.store
    assert (store.increment_access(note_id=fact_id(FERRY)), store.increment_access("unknown")) == (True, False)
    assert store.update_importance(note_id=fact_id(LAMP), importance=0.9)
    assert contents(store.get_by_importance_range(min_importance=0.85, max_importance=0.95)) == [LAMP]
    updates = [{"note_id": fact_id(FERRY), "importance": 0.3}, {"note_id": "unknown", "importance": 1}]
    assert store.bulk_update_importance(updates) == 1
    for wrong in ([{"note_id": fact_id(FERRY), "importance": 2}], [{"note_id": fact_id(FERRY)}]):
        assert_raises(UsageError, store.bulk_update_importance, wrong)
    assert set(contents(store.get_stale_notes(days_threshold=0))) == {FERRY, LAMP, "The harbour is called Quay"}
    assert store.get_stale_notes(days_threshold=30) == []
    store.upsert_note("Bosun barks")
    assert contents(store.get_recent_notes(limit=1)) == ["Bosun barks"]
    assert store.clear_all() == 4
    cleared = {row["content"]: row["metadata"] for row in store.get_recent_notes(10)}
    assert [cleared[text]["base"] for text in (FERRY, LAMP, "The harbour is called Quay")] == [0.5, 0.5, 1.0]
    assert {each["access_count"] for each in cleared.values()} == {0}
    assert FERRY in (notebook.root / NOTES).read_text()
