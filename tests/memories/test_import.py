"""Bringing in another program's memories: each once, whatever its export looks like, and none of them lost."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notebook_sync import Notebook, Session
from notebook_sync.errors import BackendDown, NotebookError, NotPermitted, Refused, RootLost, UsageError
from notebook_sync.files.frontmatter import read_frontmatter
from notebook_sync.notes.memories.importing import importing as memory_import
from notebook_sync.notes.memories.importing.columns import flat
from notebook_sync.notes.memories.importing.record import Drafting
from notebook_sync.notes.memories.importing.values import as_links, as_priority, as_tags, as_time
from notebook_sync.operations.memories import DroppedImportLink, FailedRecord, Imported
from notebook_sync.operations.registry import plain
from notebook_sync.sync.engine import Engine
from notebook_sync.sync.sweep import Task

OWNER = Session.owner()
TEMPLATE = """[DECISION] Take cards at the gate
CONTEXT: Nobody has the right coins.
REASONING: Cards need none.
OUTCOME: The queue is shorter.
TAGS: gate, coins"""


@pytest.fixture
def notebook(tmp_path: Path) -> Iterator[Notebook]:
    root = tmp_path / "harbour"
    root.mkdir()
    (root / "notebook.toml").write_text('[search]\nembeddings = "off"\n[sync]\nsettle_ms = 0\n')
    with Notebook.open(root) as opened:
        yield opened


@pytest.fixture
def export(tmp_path: Path) -> Path:
    return tmp_path / "memories.jsonl"


def lines(file: Path, *records: object) -> Path:
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    return file


def written(file: Path, *records: object) -> str:
    return str(lines(file, *records))


def database(file: Path, *statements: str, rows: Mapping[str, Sequence[Sequence[Any]]] | None = None) -> Path:
    with closing(sqlite3.connect(file)) as db, db:
        for statement in statements:
            db.execute(statement)
        for table, values in (rows or {}).items():
            db.executemany(f"INSERT INTO {table} VALUES ({','.join('?' * len(values[0]))})", values)  # noqa: S608 - the test's own table
    return file


def raises(error: Exception) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


def fields(notebook: Notebook) -> dict[str, dict[str, Any]]:
    """By id, what the frontmatter of each memory says."""
    read = (read_frontmatter(path.read_text()).metadata for path in notebook.root.glob("memories/**/*.md"))
    return {found["id"]: dict(found) for found in read}


def only(notebook: Notebook) -> tuple[dict[str, Any], str, str]:
    """The fields, the text and the path of the one memory there is."""
    (path,) = notebook.root.glob("memories/**/*.md")
    read = read_frontmatter(path.read_bytes().decode())
    return dict(read.metadata), read.content, path.relative_to(notebook.root).as_posix()


def counts(told: Imported) -> tuple[int, int, int, int]:
    assert told.read == told.added + told.already + told.deleted + len(told.failed)
    return told.read, told.added, told.already, len(told.failed)


def test_a_record_that_follows_the_template_becomes_a_memory_with_its_parts(notebook: Notebook, export: Path) -> None:
    record: dict[str, Any] = {
        "id": "gate-1",
        "content": TEMPLATE,
        "created_at": "2026-02-16T09:30:00Z",
        "agent": "scribe",
    }
    record |= {"tags": ["ferry"], "priority": 9, "domain": "tickets", "colour": "red", "access_count": 3}
    told = notebook.memories.import_file(written(export, record), OWNER)
    assert counts(told) == (1, 1, 0, 0)
    assert (told.needs_review, told.lossless, told.left_in) == (0, True, "")
    said, text, path = only(notebook)
    assert path == "memories/decision/2026-02-16-take-cards-at-the-gate.md"
    assert said["created_at"].isoformat() == "2026-02-16T09:30:00+00:00"
    assert {
        "id": "gate-1",
        "kind": "decision",
        "agent": "scribe",
        "priority": 9,
        "colour": "red",
    }.items() <= said.items()
    assert {"domain": "tickets", "tags": ["ferry", "gate", "coins"]}.items() <= said.items()
    assert "## Reasoning\n\nCards need none.\n" in text
    (memory,) = notebook.memory_rows.all()
    assert (memory.id, memory.accesses, memory.created_from) == ("gate-1", 3, "frontmatter")


def test_a_text_without_the_template_is_kept_to_the_character_for_review(notebook: Notebook, export: Path) -> None:
    text = "  Ines said:\r\n\r\n# Not so loud\n```\nCONTEXT: code\n--> 港 🛳 {{7*7}}"
    told = notebook.memories.import_file(
        written(export, {"id": 7, "content": text, "created_at": 1771234567, "agent": "scribe"}), OWNER
    )
    assert told.needs_review == 1
    said, content, path = only(notebook)
    assert content == text
    assert said["id"] == "7"
    assert said["needs_review"] is True
    assert path.startswith("memories/unstructured/2026-02-16-")


def test_columns_of_their_own_make_the_parts_and_the_text_stands_below(notebook: Notebook, export: Path) -> None:
    record = {"content": "We take cards.", "kind": "DECISION", "tags": "gate, coins", "context": "No coins."}
    record |= {"reasoning": "Cards need none.", "outcome": "Shorter.", "created_at": "2026-02-16", "agent": "scribe"}
    assert notebook.memories.import_file(written(export, record), OWNER).needs_review == 0
    said, content, _ = only(notebook)
    assert (said["kind"], said["tags"]) == ("decision", ["gate", "coins"])
    assert "## Context\n\nNo coins.\n" in content
    assert content.endswith("---\n\n```text\nWe take cards.\n```\n")


def test_what_is_wrong_with_times_and_agents_stays_to_be_seen(notebook: Notebook, export: Path) -> None:
    records = [
        {"id": "none", "content": "Ropes", "created_at": None, "agent": None},
        {"id": "words", "content": "Ropes", "created_at": "soon", "agent": "unknown"},
        {"id": "zero", "content": "Ropes", "created_at": 0, "agent": "??"},
        {"id": "huge", "content": "Ropes", "created_at": 10**40, "agent": 5},
        {"id": "tag", "content": "Ropes", "created_at": "2026-02-16", "tags": ["agent:scribe"]},
    ]
    assert counts(notebook.memories.import_file(written(export, *records), OWNER)) == (5, 5, 0, 0)
    said = fields(notebook)
    assert "created_at" not in said["none"]
    assert said["words"]["created_at"] == "soon"
    assert said["zero"]["older"] == {"created_at": 0, "agent": "??"}
    assert said["huge"]["older"] == {"created_at": str(10**40), "agent": 5}
    assert said["tag"]["agent"] == "scribe"
    assert all("agent" not in said[one] for one in ("none", "words", "zero", "huge"))
    assert all(one["needs_review"] for one in said.values())


@pytest.mark.parametrize(
    ("value", "priority"), [(1, 1), (7, 7), ("9", 9), (6.6, 7), (-3, 1), (0.4, 1), (11, 10), ("1e3", 10)]
)
def test_a_priority_beyond_its_scale_becomes_the_nearest(value: object, priority: int) -> None:
    assert as_priority(value) == priority


def test_priorities_beyond_the_scale_are_counted_and_kept(notebook: Notebook, export: Path) -> None:
    records = [{"id": f"n{n}", "content": f"Rope {n}", "priority": value} for n, value in enumerate((7, 11, 0.5))]
    dry = notebook.memories.import_file(written(export, *records), OWNER, dry_run=True)
    told = notebook.memories.import_file(str(export), OWNER)
    said = fields(notebook)
    assert [said[f"n{n}"]["priority"] for n in range(3)] == [7, 10, 1]
    assert [said[f"n{n}"].get("older", {}).get("priority") for n in range(3)] == [None, 11, 0.5]
    (warning,) = told.warnings
    assert "became the nearest: 2;" in warning
    assert dry.warnings == told.warnings


@pytest.mark.parametrize("value", [None, True, "high", [], float("nan"), float("inf"), "nan", {}])
def test_what_is_no_number_is_no_priority(value: object) -> None:
    assert as_priority(value) is None


@pytest.mark.parametrize(
    ("value", "day"),
    [
        ("2026-02-16T09:30:00+02:00", "2026-02-16"),
        ("2026-02-16", "2026-02-16"),
        ("20260216", "2026-02-16"),
        (20260216, "2026-02-16"),
        ("20261399", None),
        ("2026-02-16 09:30:00", "2026-02-16"),
        ("2026-01-02 15:04:05.999 +0000 UTC m=+0.01", "2026-01-02"),
        ("2026-01-02 15:04:05.123456789 +0000 UTC", "2026-01-02"),
        ("2026-01-02 23:04:05 -0500 EST", "2026-01-03"),
        (1771234567, "2026-02-16"),
        (1771234567000, "2026-02-16"),
        ("1771234567.25", "2026-02-16"),
        *((None, None), (0, None), (17, None), ("2026", None), ("soon", None), (True, None)),
        *(
            (float("nan"), None),
            ("nan", None),
            ("inf", None),
            (10**400, None),
            ([], None),
            ("99999999999999999999", None),
        ),
    ],
)
def test_times_are_read_however_they_are_written(value: object, day: str | None) -> None:
    found = as_time(value)
    assert (found.date().isoformat() if found else None) == day


def test_tags_are_read_from_lists_their_json_and_words_with_commas() -> None:
    for value in (["a", "#b"], '["a", "b"]', "a, b"):
        assert as_tags(value) == ("a", "b")
    for other in (5, {"a": 1}, [["a"]], [{"name": "a"}], [None], ["x" * 500]):
        assert as_tags(other) is None


def test_links_are_read_in_the_shapes_that_there_are_and_others_stay_in_the_file(
    notebook: Notebook, export: Path
) -> None:
    records: list[dict[str, Any]] = [
        {
            "id": "a",
            "content": "Ropes",
            "relations": [{"type": "CAUSES", "to": "b", "confidence": 3, "reasoning": "so"}],
        },
        {
            "id": "b",
            "content": "Gates",
            "relations": json.dumps(
                [
                    {"relationship_type": "solves", "to_memory_id": "a"},
                    {"relationship_type": "solves", "to_memory_id": "c"},
                ]
            ),
        },
        {"id": "c", "content": "Tides", "relations": [{"type": "likes", "to": "a"}, {"type": "similar", "to": "a"}]},
    ]
    told = notebook.memories.import_file(written(export, *records), OWNER)
    said = fields(notebook)
    assert said["a"]["relations"] == [{"type": "causes", "to": "b", "confidence": 1.0, "reasoning": "so"}]
    assert [(one["to"], one["confidence"]) for one in said["b"]["relations"]] == [("a", 0.5), ("c", 0.5)]
    assert said["c"]["relations"] == [{"type": "similar", "to": "a", "confidence": 0.5}]
    assert said["c"]["older"] == {"relations": records[2]["relations"]}
    dropped = DroppedImportLink(3, {"type": "likes", "to": "a"}, "there is no relation 'likes'")
    assert told.links_dropped == [dropped]
    assert as_links("none", lambda _: True) == ([], [("none", "these are no links")])


def test_a_link_that_leads_nowhere_or_says_nothing_is_told_and_stays_in_the_file(
    notebook: Notebook, export: Path
) -> None:
    known = notebook.memories.add("The pier is closed", OWNER, agent="pilot").notebook_id
    (notebook.root / "pages").mkdir()
    (notebook.root / "pages" / "plan.md").write_text("---\nid: plan\n---\nNo memory\n")
    links = [
        {"to": "zzz", "type": "causes"},
        {"to": "plan", "type": "causes"},
        {"to": "b", "type": "befriends"},
        {"to": "b", "type": "causes", "confidence": "abc"},
        "b",
        {"to": "b", "type": "solves", "confidence": "0.9"},
        {"to": "b", "type": "solves", "confidence": 0.2},
        {"to": known, "type": "expands"},
    ]
    lines(export, {"id": "a", "content": "Ropes", "relations": links}, {"id": "b", "content": "Gates"})
    dry = notebook.memories.import_file(str(export), OWNER, dry_run=True)
    told = notebook.memories.import_file(str(export), OWNER)
    said = fields(notebook)["a"]
    assert [(one["type"], one["to"], one["confidence"]) for one in said["relations"]] == [
        ("solves", "b", 0.9),
        ("expands", known, 0.5),
    ]
    assert said["older"] == {"relations": links}
    assert [one.reason for one in told.links_dropped] == [
        "there is no memory 'zzz'",
        "there is no memory 'plan'",
        "there is no relation 'befriends'",
        "its confidence is no number",
        "it names no memory and no type",
        "it is said twice",
    ]
    assert [one.partition(":")[0] for one in told.warnings] == ["left out"]
    assert (dry.links_dropped, dry.warnings) == (told.links_dropped, told.warnings)
    assert notebook.memories.audit(OWNER).links_broken == 0
    assert notebook.memories.import_file(str(export), OWNER).links_dropped == []


def test_a_link_to_a_record_that_becomes_no_memory_is_told_and_stays_in_the_file(
    notebook: Notebook, export: Path
) -> None:
    gates = {"id": "gates", "content": "Gates"}
    notebook.memories.import_file(written(export, gates, {"content": "What stays"}), OWNER)
    next(notebook.root.glob("memories/**/*gates.md")).unlink()
    links = [{"to": to, "type": "causes"} for to in ("gates", "empty", "bell", "tides")]
    others = [gates, {"id": "empty"}, {"id": "bell", "content": "\a"}, {"id": "tides", "outcome": "High"}]
    lines(export, {"id": "ropes", "content": "Ropes", "relations": links}, *others)
    dry = notebook.memories.import_file(str(export), OWNER, dry_run=True)
    told = notebook.memories.import_file(str(export), OWNER)
    assert [one["to"] for one in fields(notebook)["ropes"]["relations"]] == ["tides"]
    assert [one.link for one in told.links_dropped] == links[:3]
    assert dry.links_dropped == told.links_dropped
    lines(export, {"id": "piers", "content": "Piers", "relations": links[:1]}, gates)
    assert notebook.memories.import_file(str(export), OWNER, again=True).links_dropped == []
    assert notebook.memories.audit(OWNER).links_broken == 0


def test_read_again_every_record_is_here_already_also_one_that_was_edited_or_moved(
    notebook: Notebook, export: Path
) -> None:
    lines(export, {"id": "a", "content": "Ropes"}, {"content": "Gates"}, {"content": "Gates"})
    assert counts(notebook.memories.import_file(str(export), OWNER)) == (3, 2, 1, 0)
    (first,) = notebook.root.glob("memories/unstructured/*ropes.md")
    first.write_text(first.read_text().replace("Ropes", "Old ropes"))
    (notebook.root / "pages").mkdir()
    first.rename(notebook.root / "pages" / "ropes.md")
    notebook.sync()
    assert counts(notebook.memories.import_file(str(export), OWNER)) == (3, 0, 3, 0)


def test_an_id_that_another_note_has_is_given_up_and_links_follow(notebook: Notebook, export: Path) -> None:
    (notebook.root / "pages").mkdir()
    (notebook.root / "pages" / "plan.md").write_text("---\nid: '1'\n---\nThe owner's own\n")
    relations = [{"type": "causes", "to": "1"}]
    lines(export, {"id": 1, "content": "Ropes"}, {"id": 2, "content": "Gates", "relations": relations})
    assert counts(notebook.memories.import_file(str(export), OWNER)) == (2, 2, 0, 0)
    said = fields(notebook)
    (new,) = said.keys() - {"2"}
    assert said[new]["imported_id"] == "1"
    assert said["2"]["relations"][0]["to"] == new
    assert counts(notebook.memories.import_file(str(export), OWNER)) == (2, 0, 2, 0)


def test_two_records_of_one_id_that_say_different_things_are_both_kept(notebook: Notebook, export: Path) -> None:
    lines(export, {"id": "a", "content": "Ropes"}, {"id": "a", "content": "Gates"})
    assert counts(notebook.memories.import_file(str(export), OWNER)) == (2, 2, 0, 0)
    assert sorted(one.get("imported_id", "") for one in fields(notebook).values()) == ["", "a"]
    assert counts(notebook.memories.import_file(str(export), OWNER)) == (2, 0, 2, 0)


BROKEN = [
    b'{"id": "x", "content": ',
    b"5",
    b'"content"',
    b'{"id": "x"}',
    b'{"id": "x", "content": ""}',
    b'{"id": "x", "content": " \\u200b "}',
    b'{"id": "x", "content": ["a list"]}',
    b'{"content": "half \\ud800"}',
    b'{"content": "nul \\u0000"}',
    b'{"content": "Ropes", "content": "Gates"}',
    b'{"content": "\xff"}',
    b'{"content": "Deep", "deep": ' + b"[" * 40 + b"]" * 40 + b"}",
    b"[" * 100_000,
    b'{"content": "Ropes", "note": "' + b"x" * 70_000 + b'"}',
    b'{"content": "' + b"x" * (3 << 20) + b'"}',
]


def test_what_cannot_become_a_memory_is_told_and_stands_beside_as_it_was(notebook: Notebook, export: Path) -> None:
    good = b'{"content": "Ropes"}'
    export.write_bytes(b"\xef\xbb\xbf" + good + b"\n\n" + b"\r\n".join(BROKEN))
    told = notebook.memories.import_file(str(export), OWNER)
    assert counts(told) == (len(BROKEN) + 1, 2, 0, len(BROKEN) - 1)
    assert told.lossless is True
    assert all(one.reason for one in told.failed)
    assert [one.line for one in told.failed] == [number for number in range(3, 18) if number != 14]
    left = Path(told.left_in).read_bytes().splitlines()
    assert left == [line for line in BROKEN if b'"deep"' not in line]
    assert notebook.memories.import_file(str(export), OWNER).left_in == f"{export}.left-2.jsonl"


def test_a_record_of_an_odd_time_or_with_what_nobody_thought_of_costs_no_other(
    tmp_path: Path, export: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "quay"
    root.mkdir()
    (root / "notebook.toml").write_text('[notebook]\ntimezone = "America/New_York"\n[search]\nembeddings = "off"\n')
    draft = Drafting.draft

    def odd(drafting: Drafting, record: Mapping[str, Any]) -> Any:
        return draft(drafting, record) if record["id"] != "odd" else 10**400 / 1.0

    monkeypatch.setattr(Drafting, "draft", odd)
    lines(
        export,
        {"id": "early", "content": "Ropes", "created_at": "0001-01-01"},
        {"id": "odd", "content": "Gates"},
        {"id": "late", "content": "Tides", "created_at": "2026-02-16"},
    )
    with Notebook.open(root) as notebook:
        told = notebook.memories.import_file(str(export), OWNER)
    assert counts(told) == (3, 2, 0, 1)
    assert told.failed == [FailedRecord(2, "nothing can be made of it: int too large to convert to float")]
    assert [path.name for path in sorted(root.glob("memories/**/*.md"))] == [
        "0001-01-01-ropes.md",
        "2026-02-15-tides.md",
    ]


def test_what_cannot_be_kept_beside_is_not_called_lossless(
    notebook: Notebook, export: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines(export, {"content": "Ropes"}, {"id": "empty"})

    def refuse(*_: object) -> Path:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.with_name", refuse)
    told = notebook.memories.import_file(str(export), OWNER)
    assert counts(told) == (2, 1, 0, 1)
    assert told.lossless is False
    assert any("keep the export" in warning for warning in told.warnings)


def test_a_dry_run_tells_the_same_and_changes_nothing(notebook: Notebook, export: Path) -> None:
    lines(export, {"content": TEMPLATE}, {"content": "Ropes"}, {"content": "Ropes"}, {"id": 5})
    before = sorted(notebook.root.rglob("*.md")), sorted(export.parent.iterdir())
    dry = notebook.memories.import_file(str(export), OWNER, dry_run=True)
    assert (sorted(notebook.root.rglob("*.md")), sorted(export.parent.iterdir())) == before
    assert (dry.backup, dry.left_in) == ("", "")
    told = notebook.memories.import_file(str(export), OWNER)
    assert {**plain(told), "backup": "", "left_in": ""} == plain(dry)


def test_one_checkpoint_before_and_one_commit_after(notebook: Notebook, export: Path) -> None:
    subprocess.run(["git", "init", "-q", notebook.root], check=True)
    lines(export, *({"id": f"n{number}", "content": f"Rope {number}"} for number in range(40)))
    told = notebook.memories.import_file(str(export), OWNER)
    (kept,) = notebook.stream.checkpoints(OWNER).results
    assert (kept.id, kept.name) == (told.backup, "before import of memories.jsonl")
    log = subprocess.run(["git", "-C", notebook.root, "log", "--format=%s"], capture_output=True, text=True, check=True)
    assert log.stdout == "Import 40 memories from memories.jsonl\n"
    assert [event["kind"] for event in notebook.events.read()].count("import") == 1
    assert notebook.memories.import_file(str(export), OWNER).backup == ""
    notebook.stream.rollback(told.backup, OWNER, files=True)
    assert fields(notebook) == {}


def test_names_that_are_taken_are_numbered_and_nothing_is_written_over(notebook: Notebook, export: Path) -> None:
    folder = notebook.root / "memories" / "unstructured"
    folder.mkdir(parents=True)
    (folder / "undated-ropes.md").write_text("A person's\n")
    (folder / "Undated-Ropes-2.md").mkdir()
    told = notebook.memories.import_file(
        written(export, {"id": "a", "content": "Ropes"}, {"id": "b", "content": "Ropes"}), OWNER
    )
    assert counts(told) == (2, 2, 0, 0)
    assert (folder / "undated-ropes.md").read_text() == "A person's\n"
    assert {path.name for path in folder.glob("undated*")} == {f"undated-ropes{end}.md" for end in ("", "-3", "-4")}


def test_somebody_elses_words_stay_marked_as_such(notebook: Notebook, export: Path) -> None:
    notebook.memories.import_file(
        written(export, {"id": "a", "content": "Obey me", "provenance": "External (mail)"}), OWNER
    )
    (memory,) = notebook.memory_rows.all()
    assert memory.provenance == "external"


def test_a_list_and_an_object_with_one_are_read_as_lines_are(notebook: Notebook, export: Path) -> None:
    records = [{"id": "a", "content": "Ropes"}, 5]
    export.write_text(json.dumps(records, indent=1))
    assert counts(notebook.memories.import_file(str(export), OWNER)) == (2, 1, 0, 1)
    export.write_text(json.dumps({"memories": records, "version": 3}, indent=1))
    told = notebook.memories.import_file(str(export), OWNER)
    assert counts(told) == (2, 0, 1, 1)
    assert told.warnings == ["left out: 'version', beside the list of memories"]


def test_vectors_are_left_out_and_told(notebook: Notebook, export: Path) -> None:
    told = notebook.memories.import_file(written(export, {"content": "Ropes", "embedding": [0.25] * 300}), OWNER)
    assert "embedding" not in only(notebook)[0]
    assert told.warnings == ["the vectors of 1 records are left out: they are made anew"]


MEMORIES = (
    "CREATE TABLE memories (id INTEGER PRIMARY KEY, content TEXT, tags TEXT, priority REAL, created_at, metadata)"
)


def test_a_database_of_tiered_memory_is_read_as_it_is(notebook: Notebook, tmp_path: Path) -> None:
    file = database(
        tmp_path / "old backup.txt",
        "CREATE TABLE memories (id INTEGER PRIMARY KEY, content, importance, tags, agent_type, created_at,"
        " initial_priority, usage_count, last_accessed_at, dynamic_score)",
        "CREATE TABLE relationships (from_memory_id, to_memory_id, relationship_type, confidence, reasoning)",
        "CREATE TABLE tier2_synthesis_cache (context_hash, answer)",
        "CREATE VIRTUAL TABLE memories_fts USING fts5(content)",
        rows={
            "memories": [
                (1, "Ropes", 8, '["a"]', "scribe", "2026-02-16 09:30:00", 5, 3, "2026-02-17 09:30:00", 0.5),
                (2, "Gates", 8, '["agent:pilot"]', "unknown", "2026-01-02 15:04:05.9 +0000 UTC m=+0.01", 8, 0, None, 1),
            ],
            "relationships": [
                (1, 2, "causes", 0.7, "so"),
                (1, 2, "likes", 1.0, ""),
                (2, 9, "causes", 1.0, ""),
                (7, 1, "causes", 1.0, ""),
            ],
            "tier2_synthesis_cache": [("h", "…")],
        },
    )
    told = notebook.memories.import_file(str(file), OWNER)
    assert counts(told) == (2, 2, 0, 0)
    assert told.warnings[:2] == [
        "left out: 2 rows of the table 'relationships'",
        "left out: 1 row of the table 'tier2_synthesis_cache'",
    ]
    assert [one.reason for one in told.links_dropped] == ["there is no memory '9'"]
    said = fields(notebook)
    assert {"agent": "scribe", "tags": ["a"], "priority": 5, "importance": 8}.items() <= said["1"].items()
    assert said["1"]["relations"] == [{"type": "causes", "to": "2", "confidence": 0.7, "reasoning": "so"}]
    assert (said["2"]["agent"], said["2"]["created_at"].isoformat()) == ("pilot", "2026-01-02T15:04:05.900000+00:00")
    used = {memory.id: memory.accesses for memory in notebook.memory_rows.all()}
    assert used == {"1": 3, "2": 0}
    assert counts(notebook.memories.import_file(str(file), OWNER)) == (2, 0, 2, 0)


def test_columns_and_tables_of_any_names_are_read_when_they_are_mapped(notebook: Notebook, tmp_path: Path) -> None:
    file = database(
        tmp_path / "old.db",
        "CREATE TABLE notes (nr INTEGER, body TEXT, ts TEXT, who TEXT, prio INTEGER, mood TEXT, embedding BLOB)",
        "CREATE TABLE edges (src, dst, relation)",
        rows={
            "notes": [
                (1, "Ropes", "2026-02-16", "scribe", 9, "calm", b"x"),
                (2, "Gates", None, None, None, None, None),
            ],
            "edges": [(1, 2, "causes")],
        },
    )
    with pytest.raises(UsageError, match="no table with a column `content`; it has: edges, notes; name the column"):
        notebook.memories.import_file(str(file), OWNER)
    names = {"nr": "id", "body": "content", "ts": "created_at", "who": "agent", "prio": "priority"}
    names |= {"src": "from_memory_id", "dst": "to_memory_id", "relation": "relationship_type"}
    dry = notebook.memories.import_file(str(file), OWNER, dry_run=True, map=names)
    assert dry.columns == {
        "id": "id",
        "text": "content",
        "created_at": "created_at",
        "agent": "agent",
        "priority": "priority",
    }
    assert dry.not_taken == ["mood"]
    told = notebook.memories.import_file(str(file), OWNER, map=names)
    assert (told.columns, told.not_taken) == (dry.columns, dry.not_taken)
    said = fields(notebook)
    assert {"agent": "scribe", "priority": 9, "mood": "calm"}.items() <= said["1"].items()
    assert [(one["type"], one["to"]) for one in said["1"]["relations"]] == [("causes", "2")]


def test_two_columns_mapped_to_one_name_cost_their_record_alone(notebook: Notebook, export: Path) -> None:
    lines(export, {"content": "Ropes", "body": "Gates"}, {"body": "Tides"})
    told = notebook.memories.import_file(str(export), OWNER, map={"body": "content"})
    assert counts(told) == (2, 1, 0, 1)
    reason = "two of its columns would be called 'content'; map one of them to another name"
    assert told.failed == [FailedRecord(1, reason)]
    assert json.loads(Path(told.left_in).read_text()) == {"content": "Ropes", "body": "Gates"}
    told = notebook.memories.import_file(str(export), OWNER, map={"body": "content", "content": "short"})
    assert counts(told) == (2, 1, 1, 0)


def test_all_tables_with_texts_are_read_where_none_is_called_memories(notebook: Notebook, tmp_path: Path) -> None:
    file = database(
        tmp_path / "old.db",
        *(f"CREATE TABLE {name} (id TEXT, content TEXT)" for name in ("decisions", "insights")),
        "CREATE TABLE users (id TEXT, note TEXT)",
        rows={"decisions": [("a", "Ropes")], "insights": [("b", "Gates"), ("c", "Coins")], "users": [("d", "Odile")]},
    )
    told = notebook.memories.import_file(str(file), OWNER)
    assert counts(told) == (3, 3, 0, 0)
    assert told.warnings == ["left out: 1 row of the table 'users'"]


def test_metadata_stands_beside_the_rest_and_never_over_it() -> None:
    record = {"content": "Ropes", "tags": None, "metadata": '{"content": "Gates", "tags": ["a"], "agent": "scribe"}'}
    assert flat(record) == {"content": "Ropes", "tags": ["a"], "agent": "scribe", "content (metadata)": "Gates"}


def test_bytes_and_broken_text_in_a_database_cost_no_other_row(notebook: Notebook, tmp_path: Path) -> None:
    file = database(tmp_path / "old.db", MEMORIES, rows={"memories": [(1, "Ropes", b"\xff\x00", 2**62, b"x", "{")]})
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("INSERT INTO memories (id, content) VALUES (2, CAST(x'ff41' AS TEXT)), (3, x'41')")
    told = notebook.memories.import_file(str(file), OWNER)
    assert counts(told) == (3, 1, 0, 2)
    assert only(notebook)[0]["metadata"] if "metadata" in only(notebook)[0] else only(notebook)[0]["older"]


def test_files_that_are_no_export_are_refused_with_the_next_step(notebook: Notebook, tmp_path: Path) -> None:
    page, empty, other = tmp_path / "page.md", tmp_path / "empty", tmp_path / "other.db"
    page.write_text("# Ropes\n\nThey hang.\n")
    empty.write_bytes(b"")
    database(other, "CREATE TABLE users (name)", rows={"users": [("Odile",)]})
    (tmp_path / "cut.db").write_bytes(other.read_bytes()[:150])
    for file, why in (
        (page, "no export of memories"),
        (other, "no table with a column"),
        (tmp_path / "cut.db", "cannot be read"),
        (tmp_path / "none.jsonl", "cannot be read"),
        (tmp_path, "is no file"),
    ):
        with pytest.raises(UsageError, match=why):
            notebook.memories.import_file(str(file), OWNER)
    told = notebook.memories.import_file(str(empty), OWNER)
    assert (counts(told), told.warnings) == (
        (0, 0, 0, 0),
        ["empty has no records; give memories as JSON lines, as a JSON list, or as SQLite"],
    )


def test_an_export_of_virtual_tables_alone_is_refused_with_what_makes_a_plain_one(
    notebook: Notebook, tmp_path: Path
) -> None:
    file = tmp_path / "words.db"
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("CREATE VIRTUAL TABLE memories USING fts5(id, content)")
        db.execute("INSERT INTO memories VALUES ('m1', 'The pier is slippery in frost')")
    with pytest.raises(UsageError, match="virtual tables, which are not read: memories; ") as refused:
        notebook.memories.import_file(str(file), OWNER)
    with closing(sqlite3.connect(file)) as db, db:
        db.execute(str(refused.value).rpartition(": ")[2])
    assert counts(notebook.memories.import_file(str(file), OWNER)) == (1, 1, 0, 0)


@pytest.mark.parametrize("has_git", [True, False])
def test_what_was_deleted_since_it_was_imported_stays_away_until_it_is_wanted_again(
    notebook: Notebook, export: Path, has_git: bool
) -> None:
    if has_git:
        subprocess.run(["git", "init", "-q", notebook.root], check=True)
    lines(export, {"id": "m1", "content": "Ropes"}, {"id": "m2", "content": "Gates"})
    assert counts(notebook.memories.import_file(str(export), OWNER)) == (2, 2, 0, 0)
    paths = sorted((notebook.root / "memories").rglob("*.md"))
    paths[0].unlink()
    for dry_run in (True, False):
        told = notebook.memories.import_file(str(export), OWNER, dry_run=dry_run)
        assert (counts(told), told.deleted, told.lossless) == ((2, 0, 1, 0), 1, True)
    assert not paths[0].exists()
    told = notebook.memories.import_file(str(export), OWNER, again=True)
    assert (counts(told), told.deleted) == ((2, 1, 1, 0), 0)
    assert paths[0].exists()
    assert counts(notebook.memories.import_file(str(export), OWNER)) == (2, 0, 2, 0)


def test_what_a_dry_run_told_and_what_failed_is_no_deleted_memory(notebook: Notebook, export: Path) -> None:
    lines(export, {"id": "m1", "content": "Ropes"}, {"id": "m2"})
    assert counts(notebook.memories.import_file(str(export), OWNER, dry_run=True)) == (2, 1, 0, 1)
    told = notebook.memories.import_file(str(export), OWNER)
    assert (counts(told), told.deleted) == ((2, 1, 0, 1), 0)
    lines(export, {"id": "m1", "content": "Ropes"}, {"id": "m2", "content": "Gates"})
    assert counts(notebook.memories.import_file(str(export), OWNER)) == (2, 1, 1, 0)


def test_what_was_imported_is_noted_in_a_file_of_the_notebook_alone(notebook: Notebook, export: Path) -> None:
    lines(export, {"id": "m1", "content": "Ropes"})
    log = notebook.root / ".notebook" / "imported"
    log.parent.mkdir(exist_ok=True)
    log.symlink_to("elsewhere")
    with pytest.raises(NotebookError, match="it tells what was imported before"):
        notebook.memories.import_file(str(export), OWNER)
    log.unlink()
    assert counts(notebook.memories.import_file(str(export), OWNER)) == (1, 1, 0, 0)
    assert log.read_text().split() == [fields(notebook)["m1"]["imported"].partition("-")[0]]


def test_a_large_import_is_several_commits(notebook: Notebook, export: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_import, "_BATCH", 2)
    monkeypatch.setattr(memory_import, "COMMITTED_AT_ONCE", 2)
    lines(export, *({"id": f"m{at}", "content": f"Rope {at}"} for at in range(5)))
    subprocess.run(["git", "init", "-q", notebook.root], check=True)
    assert counts(notebook.memories.import_file(str(export), OWNER)) == (5, 5, 0, 0)
    command = ["git", "-C", str(notebook.root), "log", "--format=%s"]
    log = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [one for one in log if one.startswith("Import")] == [
        f"Import {count} memories from {export.name}" for count in (1, 2, 2)
    ]
    status = ["git", "-C", str(notebook.root), "status", "--porcelain", "memories"]
    assert subprocess.run(status, capture_output=True, text=True, check=True).stdout == ""


def test_metadata_that_name_something_twice_are_kept_as_they_are(notebook: Notebook, export: Path) -> None:
    metadata = '{"agent": "pilot", "agent": "scribe"}'
    told = notebook.memories.import_file(written(export, {"content": "Ropes", "metadata": metadata}), OWNER)
    assert counts(told) == (1, 1, 0, 0)
    assert metadata in str(fields(notebook))


@pytest.mark.parametrize("session", [Session.task("scribe"), Session.external("scribe")])
def test_only_the_owner_imports(notebook: Notebook, export: Path, session: Session) -> None:
    with pytest.raises(NotPermitted, match="only imported in owner conversations"):
        notebook.memories.import_file(written(export, {"content": "Ropes"}), session)
    assert fields(notebook) == {}


def test_progress_counts_up_to_all_records(notebook: Notebook, export: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_import, "_BATCH", 2)
    lines(export, *({"content": f"Rope {number}"} for number in range(4)))
    told: list[tuple[int, int]] = []
    notebook.memories.import_file(str(export), OWNER, dry_run=True, progress=lambda *at: told.append(at))
    assert told == [(2, 4), (4, 4)]
    told.clear()
    notebook.memories.import_file(str(export), OWNER, progress=lambda *at: told.append(at))
    assert (told[:2], told[-1], sorted(told)) == ([(1, 4), (2, 4)], (4, 4), told)


LAMP = "The lamp burns oil from the north store."


def test_of_two_records_of_one_text_what_else_the_second_says_is_a_memory_of_its_own(
    notebook: Notebook, export: Path
) -> None:
    more = {"tags": ["x"], "importance": 0.9, "decided": "against"}
    lines(export, {"id": "k", "content": LAMP}, {"id": "k", "content": LAMP, **more}, {"content": LAMP, "agent": "eve"})
    assert counts(notebook.memories.import_file(str(export), OWNER)) == (3, 3, 0, 0)
    (second,) = (one for one in fields(notebook).values() if one.get("decided") == "against")
    assert second["imported_id"] == "k"
    assert counts(notebook.memories.import_file(str(export), OWNER)) == (3, 0, 3, 0)
    export.write_text("".join(reversed(export.read_text().splitlines(keepends=True))))
    assert counts(notebook.memories.import_file(str(export), OWNER)) == (3, 0, 3, 0)


def test_an_export_that_grew_by_records_and_columns_brings_in_what_is_new_alone(
    notebook: Notebook, export: Path
) -> None:
    old: list[dict[str, Any]] = [
        *({"id": f"r{n}", "content": f"{LAMP} {n}"} for n in range(3)),
        {"content": LAMP, "score": 0.5},
    ]
    notebook.memories.import_file(written(export, *old), OWNER)
    old[3]["score"] = 0.75
    grown = [*old, {"id": "r9", "content": "The pier", "title": "Pier", "created_at": "2026-01-01"}]
    assert counts(notebook.memories.import_file(written(export, *grown), OWNER)) == (5, 1, 4, 0)


def test_a_record_here_with_the_same_text_is_told_and_kept_where_it_says_other_things(
    notebook: Notebook, export: Path
) -> None:
    notebook.memories.import_file(written(export, {"id": "k", "content": LAMP}), OWNER)
    told = notebook.memories.import_file(written(export, {"id": "k", "content": LAMP, "tags": ["new"]}), OWNER)
    assert (counts(told), told.lossless) == ((1, 0, 1, 0), True)
    assert json.loads(Path(told.left_in).read_text())["tags"] == ["new"]
    assert any("kept beside the export" in warning for warning in told.warnings)


def test_usage_that_could_not_be_restored_is_told_and_restored_by_the_next_import(
    notebook: Notebook, export: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines(export, {"id": "k", "content": LAMP, "access_count": 40})
    with monkeypatch.context() as down:
        down.setattr(notebook.memory_rows, "restore_usage", raises(BackendDown("SQLite", "it is away")))
        told = notebook.memories.import_file(str(export), OWNER)
    assert counts(told) == (1, 1, 0, 0)
    assert any("importing the file again" in warning for warning in told.warnings)
    assert counts(notebook.memories.import_file(str(export), OWNER)) == (1, 0, 1, 0)
    assert [memory.accesses for memory in notebook.memory_rows.all()] == [40]


@pytest.mark.parametrize("error", [BackendDown("SQLite", "it is away"), RootLost("the folder is gone")])
def test_what_was_written_is_counted_whatever_comes_after(
    notebook: Notebook, export: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    look = Engine.look

    def fail(engine: Engine, task: Task, *more: Any) -> Any:
        return raises(error)() if task.settled else look(engine, task, *more)

    monkeypatch.setattr(Engine, "look", fail)
    told = notebook.memories.import_file(written(export, {"id": "k", "content": LAMP}), OWNER)
    assert counts(told) == (1, 1, 0, 0)
    assert any("the mirror follows when it can" in warning for warning in told.warnings)


def test_an_import_that_is_stopped_half_way_tells_what_it_made_and_goes_on_when_read_again(
    notebook: Notebook, export: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_import, "_BATCH", 1)
    lines(export, {"id": "a", "content": TEMPLATE}, {"id": "b", "content": LAMP})
    scan = notebook.vault.scan
    with monkeypatch.context() as lost:
        gone = raises(RootLost("the folder is gone"))
        lost.setattr(notebook.vault, "scan", lambda *at: gone() if at == (["memories/unstructured"],) else scan(*at))
        told = notebook.memories.import_file(str(export), OWNER)
    assert (told.added, told.lossless) == (1, False)
    assert any("stopped after 1 memories: the folder is gone" in warning for warning in told.warnings)
    assert counts(notebook.memories.import_file(str(export), OWNER)) == (2, 1, 1, 0)


def test_of_two_imports_at_once_the_second_is_refused(notebook: Notebook, export: Path) -> None:
    lines(export, {"content": LAMP})

    def again(*_: int) -> None:
        with Notebook.open(notebook.root) as other, pytest.raises(Refused, match="being imported"):
            other.memories.import_file(str(export), OWNER)

    assert counts(notebook.memories.import_file(str(export), OWNER, progress=again)) == (1, 1, 0, 0)
    assert len(fields(notebook)) == 1


@pytest.mark.parametrize("indent", [None, 1])
def test_one_record_of_a_list_that_names_something_twice_costs_no_other(
    notebook: Notebook, export: Path, indent: int | None
) -> None:
    written = json.dumps([{"id": "a", "content": LAMP}, {"id": "b", "content": LAMP}], indent=indent)
    export.write_text(written.replace('"id": "b"', '"id": "b", "id": "c"'))
    told = notebook.memories.import_file(str(export), OWNER)
    assert counts(told) == (2, 1, 0, 1)
    assert told.failed == [FailedRecord(2, "it names 'id' twice")]
    assert Path(told.left_in).read_text() == f'{{"id": "b", "id": "c", "content": "{LAMP}"}}\n'


def test_a_memory_whose_frontmatter_was_broken_by_hand_is_here_already(notebook: Notebook, export: Path) -> None:
    notebook.memories.import_file(written(export, {"id": "k", "content": LAMP}), OWNER)
    (path,) = notebook.root.glob("memories/**/*.md")
    path.write_text(path.read_text().replace("priority: 7", "priority: [7"))
    assert counts(notebook.memories.import_file(str(export), OWNER)) == (1, 0, 1, 0)
    notebook.admin.rebuild()
    assert counts(notebook.memories.import_file(str(export), OWNER)) == (1, 0, 1, 0)


def test_what_a_text_calls_itself_stays_in_it_where_a_column_calls_it_otherwise(
    notebook: Notebook, export: Path
) -> None:
    said = (
        "[DECISION] Keep the lamps at six\nCONTEXT: Ships ask.\nREASONING: It is dark.\nOUTCOME: They see.\nTAGS: lamp"
    )
    notebook.memories.import_file(written(export, {"content": said, "title": "Lamps"}), OWNER)
    found, text, _ = only(notebook)
    assert (found["title"], found["kind"]) == ("Lamps", "decision")
    assert "[DECISION] Keep the lamps at six" in text


def test_a_single_record_with_a_list_in_one_of_its_fields_is_one_record(notebook: Notebook, export: Path) -> None:
    told = notebook.memories.import_file(
        written(export, {"created_at": [None, {}], "tags": [{"of": "the pier"}]}), OWNER
    )
    assert (told.read, len(told.failed)) == (1, 1)


def test_a_link_from_a_memory_to_itself_is_left_out_and_told(notebook: Notebook, export: Path) -> None:
    links = [{"type": "causes", "to": "k"}, {"type": "causes", "to": "other"}]
    told = notebook.memories.import_file(
        written(export, {"id": "k", "content": LAMP, "relations": links}, {"id": "other", "content": "Fog"}), OWNER
    )
    assert [one["to"] for one in fields(notebook)["k"]["relations"]] == ["other"]
    assert told.warnings == ["left out: 1 links from a memory to itself"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
NAMES = ("id", "content", "text", "created_at", "agent", "tags", "priority", "relations", "metadata", "title", "status")


@settings(max_examples=12)
@given(st.lists(st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=8), json_values, max_size=7), max_size=8))
def test_whatever_an_export_holds_every_record_is_counted_once(
    tmp_path_factory: pytest.TempPathFactory, records: list[dict[str, Any]]
) -> None:
    root = tmp_path_factory.mktemp("any")
    (root / "notebook.toml").write_text('[search]\nembeddings = "off"\n')
    file = lines(root.parent / f"{root.name}.jsonl", *records)
    with Notebook.open(root) as notebook:
        try:
            told = notebook.memories.import_file(str(file), OWNER)
        except UsageError:
            assert not any(isinstance(record, dict) for record in records)
            return
        read, added, already, _ = counts(told)
        assert read == len(records)
        assert told.lossless is True
        assert len(fields(notebook)) == added
        again = notebook.memories.import_file(str(file), OWNER, dry_run=True)
        assert counts(again)[1:3] == (0, added + already)
