"""The embedded content store."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from notebook_sync.mirror.base import Filter, Mirror, Remove
from notebook_sync.mirror.sqlite import SqliteMirror
from tests.mirror.contract import Opener, WholeMirrorContract, note, put


class TestSqlite(WholeMirrorContract):
    @pytest.fixture
    def open_mirror(self, tmp_path: Path) -> Opener:
        return partial(SqliteMirror, tmp_path / ".notebook" / "mirror.db")

    def test_a_file_that_an_earlier_version_made_gets_the_columns_it_lacks(
        self, open_mirror: Opener, mirror: Mirror, tmp_path: Path
    ) -> None:
        mirror.apply([put(note())])
        mirror.close()
        with closing(sqlite3.connect(tmp_path / ".notebook" / "mirror.db")) as earlier:
            earlier.execute("ALTER TABLE note DROP COLUMN provenance")
        with closing(open_mirror()) as later:
            later.apply([put(note(provenance="external"), note().digest)])
            assert [(row["id"], row.get("provenance")) for row in later.light()] == [("pages/plan", "external")]
            assert [version.version for version in later.known()] == [1]

    def test_a_file_that_an_earlier_version_made_tells_and_finds_what_is_in_channels(
        self, open_mirror: Opener, mirror: Mirror, tmp_path: Path
    ) -> None:
        told = {"topic": "storm", "session_id": 42, "confidence": 2, "mood": "calm"}
        public, private = (
            put(note(content="numbat", tags=("old", "older"))),
            put(note("channels/scribe/global/a.md", "numbat", extra=told)),
        )
        snippet = put(note("code_snippets/b.md", "numbat", fields={"language": "python"}))
        odd = put(note("channels/scribe/global/c.md", "numbat", extra={"topic": ["storm"], "session_id": ""}))
        source = put(note("research_notes/d.md", "numbat", fields={"source_url": "https://example.org"}))
        mirror.apply([public, private, snippet, odd, source])
        rows, found, tagged = mirror.light(), mirror.search("numbat"), mirror.light(Filter(tags=("old",)))
        mirror.close()
        with closing(sqlite3.connect(tmp_path / ".notebook" / "mirror.db")) as earlier:
            for trigger in ("note_tags_new", "note_tags_other", "note_tags_gone"):
                earlier.execute(f"DROP TRIGGER {trigger}")
            earlier.execute("DROP TABLE note_tag")
            for (index,) in earlier.execute("SELECT 'words_' || n FROM room").fetchall():
                earlier.execute(f"DROP TABLE {index}")
            for table in ("open_words", "room"):
                earlier.execute(f"DROP TABLE {table}")
            for index in ("note_changed_in_room", "note_made_in_room"):
                earlier.execute(f"DROP INDEX {index}")
            earlier.execute("DELETE FROM meta WHERE name = 'rooms'")
            for column in ("beside", "room"):
                earlier.execute(f"ALTER TABLE note DROP COLUMN {column}")
            earlier.commit()
        with closing(open_mirror()) as later:
            assert later.light() == rows
            assert later.search("numbat") == found
            assert later.light(Filter(tags=("old",))) == tagged != []
            later.apply([Remove(private.id, private.note.digest), Remove(public.id, public.note.digest)])
            assert {row["id"] for row in later.search("numbat")} == {snippet.id, odd.id, source.id}

    def test_its_id_can_be_told_while_another_process_writes(self, mirror: Mirror, tmp_path: Path) -> None:
        told = mirror.store_id()
        with closing(sqlite3.connect(tmp_path / ".notebook" / "mirror.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            assert mirror.store_id() == told
