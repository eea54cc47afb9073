"""Importing what other programs kept: all that a record says is kept, nothing is added twice, nothing is altered there,
and what fails is named and stops nothing."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import bson
import pytest
import redis
from bson import ObjectId
from bson.datetime_ms import DatetimeMS
from bson.raw_bson import RawBSONDocument

from notebook_sync import Notebook
from notebook_sync.errors import BackendDown, NotPermitted, UsageError
from notebook_sync.services import importing
from notebook_sync.services.conversations import redacted
from notebook_sync.services.importing import Imported
from notebook_sync.store.rows import Is
from tests.llm_server import llm_server, says
from tests.servers import MongoClient
from tests.services.conftest import (
    FILES,
    OWNER,
    SCRIBE,
    add_settings,
    assert_raises,
    on_mongodb,
    on_redis,
    row_of,
    sync_files,
    synced,
    write_files,
)

WHEN = "2026-02-18T10:30:00Z"
MOMENT = datetime(2026, 2, 18, 10, 30, tzinfo=UTC)
WHOLE = "[DECISION] Lamps on the pier\nCONTEXT: It is dark.\nREASONING: Boats come at night.\n"
SCRIBES, FERRY = "global:agent-notes:scribe", "proj_ferry-2026:agent-notes:scribe"


def bring_in(notebook: Notebook, **source: Any) -> Imported:
    """Import twice, after a dry run: the second time, nothing is added."""
    before = sorted(notebook.root.rglob("*.md"))
    dry = notebook.transfer.import_(**source, dry_run=True)
    assert sorted(notebook.root.rglob("*.md")) == before
    done, again = notebook.transfer.import_(**source), notebook.transfer.import_(**source)
    for each in (dry, done, again):
        assert (each.read, each.failed) == (each.added + each.already + len(each.failures), len(each.failures))
    assert (dry.added, dry.failed) == (done.added, done.failed)
    assert (again.added, again.already) == (0, done.added + done.already)
    assert notebook.admin.verify().consistent
    return done


def lines_of(tmp_path: Path, *records: Any) -> str:
    file = tmp_path / "older.jsonl"
    file.write_text("".join(f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in records))
    return str(file)


# ---- memories


def test_memories_keep_all_that_a_record_says(notebook: Notebook, tmp_path: Path) -> None:
    record = {
        "id": "mem-0001",
        "content": WHOLE,
        "importance": 12,
        "tags": "agent:scribe, pier",
        "agent_type": "unknown",
        "created_at": "2026-01-02 15:04:05.999 +0000 UTC m=+0.01",
        "usage_count": 3,
        "last_accessed_at": WHEN,
        "embedding": [0.1],
        "weather": {"wind": "north", "at": None},
        "title": "",
        "path": "x",
        "status": "odd",
        "provenance": "tool",
    }
    assert bring_in(notebook, file=lines_of(tmp_path, record)).added == 1
    older = {"path": "x", "status": "odd", "provenance": "tool"}
    (found,) = notebook.memories.list().results
    assert (found.id, found.kind, found.agent, found.priority) == ("mem-0001", "decision", "scribe", 10)
    assert (found.title, found.accesses, found.needs_review) == ("Lamps on the pier", 3, False)
    assert found.created_at == datetime(2026, 1, 2, 15, 4, 5, 999_000, tzinfo=UTC)
    extra = {"weather": {"wind": "north", "at": None}, "importance": 12, "older": older}
    assert {"last_accessed": MOMENT, "extra": extra}.items() <= row_of(notebook, "mem-0001").items()
    audit = notebook.memories.audit()
    assert (sum(audit.timestamps.values()), sum(audit.agents.values()), audit.unstructured) == (0, 0, 0), audit


def test_what_a_record_lacks_is_marked_and_what_cannot_be_read_is_named(notebook: Notebook, tmp_path: Path) -> None:
    records = [
        {"content": "Fog comes in May"},
        {"content": " "},
        "[broken",
        "7",
        {"context": "Ice", "reasoning": "Cold"},
    ]
    done = bring_in(notebook, file=lines_of(tmp_path, *records))
    assert (done.added, done.failed) == (2, 3)
    assert {each.place.rpartition(":")[2] for each in done.failures} == {"2", "3", "4"}
    assert {each.needs_review for each in notebook.memories.list().results} == {True}
    for bad in ("no.json", str(notebook.root)):
        assert_raises(UsageError, notebook.transfer.import_, bad)


def test_one_that_cannot_be_written_holds_up_no_other(notebook: Notebook, tmp_path: Path) -> None:
    records = [{"id": f"mem-{number:04}", "content": f"Fog {number}"} for number in range(9)]
    records[4]["content"] = "---\nid: x\n---\nFog"
    records[6]["content"] = "x" * 3_000_000
    done = bring_in(notebook, file=lines_of(tmp_path, *records))
    assert (done.added, [each.place for each in done.failures]) == (7, ["older.jsonl:5", "older.jsonl:7"])


def test_an_import_that_was_interrupted_completes(
    notebook: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = [{"id": f"mem-{number:04}", "content": f"Fog {number}", "usage_count": 2} for number in range(150)]
    file, real, steps = lines_of(tmp_path, *records), importing.change_notes, iter(["write", "before", "after"])

    def killed(*args: Any, **options: Any) -> Any:
        step = next(steps)
        done = None if step == "before" else real(*args, **options)
        if step != "write":
            raise KeyboardInterrupt
        return done

    with monkeypatch.context() as patched:
        patched.setattr(importing, "change_notes", killed)
        for _ in range(2):
            assert_raises(KeyboardInterrupt, notebook.transfer.import_, file)
    done = notebook.transfer.import_(file)
    assert (done.read, done.added, done.already) == (150, 0, 150)
    assert {each.accesses for each in notebook.memories.list(limit=1_000).results} == {2}
    assert notebook.core.index.documents.distinct("version", Is("collection", "=", "memories")).keys() == {1}


# ---- SQLite


def database(file: Path, tables: dict[str, str], **rows: list[tuple[Any, ...]]) -> str:
    """A file with these tables, by name with their columns, and rows."""
    with closing(sqlite3.connect(file)) as db:
        for name, columns in tables.items():
            db.execute(f"CREATE TABLE {name} ({columns})")
            for row in rows.get(name, ()):
                db.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608
        db.execute("CREATE VIRTUAL TABLE memories_fts USING fts5(content)")
        db.commit()
    return str(file)


def test_memories_in_sqlite_with_their_links(notebook: Notebook, tmp_path: Path) -> None:
    file = database(
        tmp_path / "old.db",
        {
            "memories": "id INTEGER, content, importance, tags, agent_type, created_at",
            "memory_links": "from_memory_id, to_memory_id, relationship_type, confidence, reasoning",
            "tier2_synthesis_cache": "id, content",
        },
        memories=[
            (1, WHOLE, 8, '["pier"]', "scribe", "2026-01-02 15:04:05"),
            (2, "The pier was dark", 5, "[]", "agent:pilot", "20260103"),
        ],
        memory_links=[(1, 2, "SOLVES", 0.9, "they are lit"), (1, 7, "solves", 1, ""), (1, 2, "x", 1, "")],
    )
    before = Path(file).read_bytes()
    done = bring_in(notebook, sqlite=file)
    assert (done.added, done.failed, len(done.warnings)) == (2, 0, 1)
    assert "2 links" in done.warnings[0]
    found = {each.title: each for each in notebook.memories.list().results}
    (link,) = found["Lamps on the pier"].relations
    assert (link["type"], link["to"]) == ("solves", found["The pier was dark"].id)
    assert found["The pier was dark"].agent == "pilot"
    assert Path(file).read_bytes() == before


def test_channels_in_sqlite(notebook: Notebook, tmp_path: Path) -> None:
    metadata = json.dumps({"type": "note", "tags": ["rope"], "session_id": "s-7", "related_pr": 7, "source": "mail"})
    file = database(
        tmp_path / "channels.db",
        {
            "channels": "id, channel_type, scope, name",
            "channel_members": "channel_id, agent_name, role, can_send",
            "messages": "id, channel_id, topic_name, sender_id, content, metadata, timestamp",
        },
        channel_members=[("notes:scribe:global", "scribe", "owner", 1), ("notes:scribe:global", "pilot", "member", 0)],
        messages=[
            (1, "notes:scribe:global", "harbour", "scribe", "The rope", metadata, WHEN),
            (2, FERRY, "x", "scribe", "Berth 3", "{}", "1771410600"),
            (3, "chat:all", "x", "scribe", "Hello", "{}", WHEN),
            (4, "notes:scribe:global", "x", "scribe", "No time", "{}", ""),
        ],
    )
    done = bring_in(notebook, sqlite=file)
    assert (done.added, done.failed) == (2, 2)
    assert "pilot is a member" in done.warnings[0]
    (note,) = notebook.channels.search("rope", SCRIBE, session_id="s-7", topic="harbour", tags=["rope"]).results
    assert note.path == "channels/scribe/global/2026-02-18T103000Z-the-rope.md"
    metadata = {"related_pr": 7, "sender_id": "scribe", "older": {"source": "mail"}}
    assert (note.created_at, note.created_by, note.metadata) == (MOMENT, "agent:scribe", metadata)
    assert len(notebook.channels.recent(SCRIBE, project="ferry-2026", session_id="").results) >= 1
    for bad in (database(tmp_path / "other.db", {"t": "a"}), str(tmp_path / "none.db")):
        assert_raises(UsageError, notebook.transfer.import_, sqlite=bad)


# ---- older private notes


def message(content: str = "The rope is worn", **fields: Any) -> dict[str, Any]:
    return {"id": "m-0001", "content": content, "timestamp": WHEN, **fields}


@pytest.mark.parametrize(
    "export",
    [
        [message(channel_id=SCRIBES)],
        message(channel_id=SCRIBES),
        {"channels": [{"id": SCRIBES, "messages": [message()]}]},
        {"id": SCRIBES, "messages": [message()]},
    ],
)
def test_older_private_notes_in_each_shape(notebook: Notebook, tmp_path: Path, export: Any) -> None:
    write_files(tmp_path, {"v2.json": "\ufeff" + json.dumps(export)})
    assert bring_in(notebook, v2=str(tmp_path / "v2.json")).added == 1
    row = row_of(notebook, "m-0001")
    assert row["path"] == "channels/scribe/global/2026-02-18T103000Z-the-rope-is-worn.md"
    assert (row["audience"], row["content"]) == ("channels/scribe/global", "The rope is worn")


def test_older_private_notes_that_cannot_be_ones_are_named(notebook: Notebook, tmp_path: Path) -> None:
    bad = [
        message(channel_id="general"),
        message(channel_id="notes:../x:global"),
        message(channel_id="notes:scribe:../x"),
        message(" ", channel_id=SCRIBES),
        {"id": SCRIBES, "messages": [7]},
        message(channel_id=SCRIBES, provenance="external: mail"),
    ]
    assert bring_in(notebook, v2=lines_of(tmp_path, *bad)).failed == 5
    assert row_of(notebook, "m-0001")["provenance"] == "external"


# ---- the original's servers


DOCUMENTS: dict[str, list[dict[str, Any]]] = {
    "pages": [
        {
            "_id": "note-fog-1",
            "title": "Fog",
            "content": "Fog comes in May.",
            "summary": "When fog comes",
            "sections": [{"heading": "June", "content": "And in June."}],
            "metadata": {
                "created_by": "agent:scribe",
                "created_at": MOMENT,
                "updated_at": MOMENT,
                "version": 4,
                "tags": ["weather"],
                "word_count": 4,
                "status": "complete",
            },
            "history": [{"version": 2, "timestamp": MOMENT, "summary": "Add June", "changed_by": "agent:pilot"}],
            "mood": "grey",
        },
        {"_id": ObjectId("65f0c0ffee0ddba11ca5cade"), "title": "Ice", "content": "Ice.", "metadata": {}},
        {"_id": "note-bad-1", "title": "Bad", "content": "---\nid: x\n---\n"},
    ],
    "code_snippets": [
        {
            "_id": "snippet-1",
            "title": "Tide",
            "code": "print(1)",
            "description": "Prints",
            "language": "python",
            "metadata": {"related_page": "note-fog-1"},
        }
    ],
    "research_notes": [
        {
            "_id": "research-1",
            "title": "Lamps",
            "content": "Lamps.",
            "metadata": {"source_url": "https://lamps.example", "confidence": 0.7, "related_pages": ["note-fog-1"]},
            "key_findings": ["They burn"],
        }
    ],
    "notes": [
        {
            "_id": ObjectId(),
            "note_id": "x",
            "content": "The pier has nine lamps",
            "section": "Key Topics",
            "embedding": [0.5],
            "importance": 0.8,
            "decay_rate": 0.02,
            "access_count": 5,
            "created_at": MOMENT,
            "last_accessed": MOMENT,
            "metadata": {"by": "Odile"},
        },
        {"_id": "bad-fact", "content": ""},
    ],
}


def test_documents_and_facts_of_the_original_are_read_and_never_altered(
    notebook: Notebook, mongodb_url: str, new_mongo_database: str
) -> None:
    with MongoClient(mongodb_url, tz_aware=True) as client:
        there = client[new_mongo_database]
        for name, documents in DOCUMENTS.items():
            there[name].insert_many([{**each} for each in documents])
        done = bring_in(notebook, mongo=f"{mongodb_url}/{new_mongo_database}")
        assert (done.added, done.failed) == (5, 2)
        assert {name: list(there[name].find()) for name in there.list_collection_names()} == DOCUMENTS
    assert "Fog comes in May.\n\n## June\n\nAnd in June." in notebook.notes.read("note-fog-1").text
    row = row_of(notebook, "note-fog-1")
    assert (row["path"], row["version"], row["created_at"], row["status"]) == ("pages/fog.md", 4, MOMENT, "complete")
    assert row["extra"]["mood"] == "grey"
    crumbs = notebook.core.index.history.find(Is("note", "=", "note-fog-1"))
    assert ("Add June", "agent:pilot") in {(each["summary"], each["changed_by"]) for each in crumbs}
    snippet, fields = row_of(notebook, "snippet-1"), row_of(notebook, "snippet-1")["fields"]
    said = (snippet["code"].strip(), snippet["language"], fields["description"], fields["related_page"])
    assert said == ("print(1)", "python", "Prints", "note-fog-1")
    assert row_of(notebook, "research-1")["fields"]["key_findings"] == ["They burn"]
    assert row_of(notebook, "65f0c0ffee0ddba11ca5cade")["title"] == "Ice"
    (fact,) = notebook.core.index.facts.find(Is("content", "=", "The pier has nine lamps"))
    kept = {"base": 0.8, "decay_rate": 0.02, "access_count": 5, "created_at": MOMENT, "metadata": {"by": "Odile"}}
    assert {"section": "Key Topics", **kept}.items() <= fact.items()
    assert notebook.notes.update("note-fog-1", content="Fog.").version == 5


def test_what_mongodb_can_hold_and_python_can_not_is_imported_too(
    notebook: Notebook, mongodb_url: str, new_mongo_database: str
) -> None:
    with MongoClient(mongodb_url) as client:
        late = bson.encode({"_id": "page-late", "title": "Late", "created_at": DatetimeMS(10**15)})
        garbled = bson.encode({"_id": "page-garbled", "title": "Garbled", "content": "XY"}).replace(b"XY", b"\xff\xfe")
        client[new_mongo_database].pages.insert_many([RawBSONDocument(late), RawBSONDocument(garbled)])
        client[new_mongo_database].notes.insert_many(
            [{"content": "Ropes rot", "metadata": "by Odile"}, {"content": "Ice", "metadata": [1]}]
        )
        assert bring_in(notebook, mongo=f"{mongodb_url}/{new_mongo_database}").added == 4
    (fact,) = notebook.core.index.facts.find(Is("content", "=", "Ropes rot"))
    assert fact["metadata"] == {"metadata": "by Odile"}


def test_what_another_program_changed_in_our_mirror_is_named(root: Path, mongodb_url: str, mongo_database: str) -> None:
    add_settings(root, on_mongodb(mongodb_url, mongo_database))
    with synced(root) as notebook, MongoClient(mongodb_url) as client:
        pages = client[mongo_database].pages
        assert notebook.transfer.import_(mongo=f"{mongodb_url}/{mongo_database}").added == 0
        pages.update_one({"title": "Ferry"}, {"$set": {"content": "Theirs", "metadata.version": 9}})
        done = notebook.transfer.import_(mongo=f"{mongodb_url}/{mongo_database}")
        assert [each.place for each in done.failures] == [f"pages {pages.find_one({'title': 'Ferry'})['_id']}"]


@pytest.fixture
def original(redis_url: str, redis_prefix: str) -> Iterator[Callable[[], dict[str, Any]]]:
    """What the original keeps in Redis; the fixture is what is there now."""
    today = datetime.now(UTC).date()
    day, old = today.isoformat(), (today - timedelta(days=90)).isoformat()
    lines: list[Any] = [
        {
            "content": "The ferry is late",
            "source": "pilot",
            "tags": ["ferry"],
            "score": 0.9,
            "timestamp": f"{day}T00:00:01",
        },
        {"type": "notebook_ref", "notebook_id": "n1", "title": "Fog", "summary": "May", "status": "created"},
        "a line that is no JSON",
    ]
    with redis.Redis.from_url(redis_url) as client:
        for line in lines:
            client.rpush(f"{redis_prefix}:daily:{day}", line if isinstance(line, str) else json.dumps(line))
        client.rpush(f"{redis_prefix}:daily:{old}", json.dumps({"content": "Long ago"}))
        client.rpush(f"{redis_prefix}:daily:someday", "x")
        client.hset(f"{redis_prefix}:daily:{day}:h1", mapping={"content": "A hash", "source": "pilot", "score": "0.5"})
        client.hset(f"{redis_prefix}:longterm:l1", mapping={"content": "The harbour closes at ten", "tags": "harbour"})
        blob = {"uuid": "0b9c7c9e-0000-4000-8000-000000000001", "name": "before", "timestamp": f"{old}T10:00:00"}
        client.set(f"{redis_prefix}:checkpoint:{blob['uuid']}", json.dumps({**blob, "daily": {}, "longterm": []}))
        client.set(f"{redis_prefix}:checkpoint:broken", "{")
        client.hset(f"{redis_prefix}:notebook:ref:n1", mapping={"content": "[Notebook CREATED] Fog: May"})

        def now() -> dict[str, Any]:
            keys = sorted(client.scan_iter(f"{redis_prefix}:*"))
            return {key.decode(): client.dump(key) for key in keys if b":notebook:" not in key and b":idx" not in key}

        yield now


def test_stream_longterm_and_checkpoints_of_the_original(
    root: Path, original: Callable[[], dict[str, Any]], redis_url: str, redis_prefix: str
) -> None:
    add_settings(root, on_redis("", redis_prefix))
    before = original()
    with synced(root) as notebook:
        done = bring_in(notebook, redis=redis_url)
        assert (done.added, done.failed) == (7, 2)
        assert original() == before
        contents = {each.content for each in notebook.stream.show().results}
        assert {"The ferry is late", "[Notebook CREATED] Fog: May", "a line that is no JSON", "A hash"} <= contents
        assert [each.content for each in notebook.stream.recall("harbour closes").results][:1] == [
            "The harbour closes at ten"
        ]
        assert "before" in {each.name for each in notebook.stream.checkpoints().results}
        # From now on it is the notebook's own server: what is there is neither repeated nor changed.
        write_files(root, {"notebook.toml": FILES["notebook.toml"] + on_redis(redis_url, redis_prefix)})
        assert not any(each["trouble"] for each in notebook.sync().targets)
        notebook.stream.log("Our own line", OWNER)
        after = original()
        assert {
            key: value
            for key, value in after.items()
            if key in before and not key.endswith(datetime.now(UTC).date().isoformat())
        } == {key: value for key, value in before.items() if not key.endswith(datetime.now(UTC).date().isoformat())}
        shown = [each.content for each in notebook.stream.show().results]
        assert shown.count("The ferry is late") == shown.count("Our own line") == 1


@pytest.mark.parametrize(
    "source", [{"mongo": "mongodb://u:hidden@127.0.0.1:1/x"}, {"redis": "redis://:hidden@127.0.0.1:1"}]
)
def test_a_server_that_does_not_answer_is_named_without_its_password(
    notebook: Notebook, source: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("notebook_sync.services.originals._SECONDS", 0.2)
    said = str(assert_raises(BackendDown, notebook.transfer.import_, **source))
    assert "hidden" not in said
    assert "Topology" not in said  # pymongo says all that it knows of every server


# ---- conversations


KEY = "sk-proj-abcdefghij0123456789"
BLOCKS = [{"type": "text", "text": "Nine lamps"}, {"type": "tool_use", "input": "never"}]
CLAUDE_CODE = [
    {"type": "summary", "summary": "The pier"},
    {"type": "user", "sessionId": "s1", "timestamp": WHEN, "message": {"role": "user", "content": f"Use {KEY}"}},
    {"type": "assistant", "sessionId": "s1", "message": {"role": "assistant", "content": BLOCKS}},
    {"type": "user", "sessionId": "s1", "isSidechain": True, "message": {"content": "never"}},
    {"type": "user", "sessionId": "s1", "isMeta": True, "message": {"content": "never"}},
]
CODEX = [
    {"timestamp": WHEN, "type": "session_meta", "payload": {"id": "c1"}},
    {"type": "response_item", "payload": {"type": "message", "role": "developer", "content": [{"text": "never"}]}},
    {
        "type": "response_item",
        "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": f"Use {KEY}"}]},
    },
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Nine lamps"}]},
    {"type": "event_msg", "payload": {"type": "user_message", "message": "never"}},
]
CHATGPT = [
    {
        "title": "The pier",
        "create_time": MOMENT.timestamp(),
        "conversation_id": "g1",
        "current_node": "c",
        "mapping": {
            "a": {"parent": None, "message": None},
            "b": {"parent": "a", "message": {"author": {"role": "user"}, "content": {"parts": [f"Use {KEY}"]}}},
            "c": {
                "parent": "b",
                "message": {"author": {"role": "assistant"}, "content": {"parts": ["Nine lamps", {}]}},
            },
            "d": {"parent": "b", "message": {"author": {"role": "assistant"}, "content": {"parts": ["never"]}}},
        },
    }
]
CLAUDE = [
    {
        "uuid": "u1",
        "name": "The pier",
        "created_at": WHEN,
        "chat_messages": [
            {"sender": "human", "text": f"Use {KEY}", "content": []},
            {"sender": "assistant", "text": "Nine lamps", "content": BLOCKS},
        ],
    }
]
FORMATS = {"claude-code": CLAUDE_CODE, "codex": CODEX, "chatgpt": CHATGPT, "claude": CLAUDE}


def conversation(folder: Path, name: str) -> Path:
    folder.mkdir(exist_ok=True)
    is_export = name in ("chatgpt", "claude")
    file = folder / f"{name}.{'json' if is_export else 'jsonl'}"
    lines = "\n".join(map(json.dumps, FORMATS[name])) + '\n{"half'
    file.write_text(json.dumps(FORMATS[name]) if is_export else lines)
    return file


@pytest.mark.parametrize("name", list(FORMATS))
def test_a_conversation_becomes_a_research_note_without_secrets(notebook: Notebook, tmp_path: Path, name: str) -> None:
    assert bring_in(notebook, conversations=str(conversation(tmp_path / "chats", name))).added == 1
    (row,) = notebook.core.index.documents.find(Is("provenance", "=", "external"), heavy=True)
    found = (row["collection"], row["created_at"], row["extra"]["conversation"]["source"])
    assert found == ("research_notes", MOMENT, name)
    assert "## User\n\n> Use [removed]\n\n## Assistant\n\n> Nine lamps" in row["content"]
    assert "never" not in row["content"]
    for path in notebook.root.rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes()
    assert not notebook.core.index.intents.count()


def test_a_folder_of_conversations_and_files_that_are_none(notebook: Notebook, tmp_path: Path) -> None:
    chats = tmp_path / "chats"
    for name in FORMATS:
        conversation(chats, name)
    none = {"a.json": "[1", "b.jsonl": "", "deep/c.json": '{"mapping": 7, "current_node": 1}', "d.txt": "x"}
    write_files(chats, {**none, "e.json": json.dumps([{"uuid": "e", "chat_messages": []}])})
    done = bring_in(notebook, conversations=str(chats))
    assert done.added == 4
    places = [f"{name}, conversation 1" for name in ("a.json", "b.jsonl", "deep/c.json", "e.json")]
    assert sorted(each.place for each in done.failures) == places


def test_a_conversation_that_is_broken_holds_up_no_other(notebook: Notebook, tmp_path: Path) -> None:
    mapping: dict[str, Any] = {"a": {"message": {"author": None}}}
    broken: list[Any] = [{"id": "b", "mapping": mapping, "current_node": "a"}, {"title": "without messages"}, 7]
    texts = {"a.json": json.dumps([*broken, *CHATGPT]), "b.jsonl": json.dumps({**CLAUDE_CODE[1], "sessionId": ""})}
    done = bring_in(notebook, conversations=str(write_files(tmp_path / "chats", texts)))
    assert (done.added, [each.place[-14:] for each in done.failures]) == (2, ["conversation 1", "conversation 2"])


def test_a_model_proposes_facts_and_none_is_added(root: Path, tmp_path: Path) -> None:
    added = [{"item": "The pier has nine lamps", "section": "Key Topics"}]
    with llm_server() as llm, Notebook.open(root) as notebook:
        llm.say(says({"additions": added, "removals": [], "summary": "About lamps"}))
        sync_files(
            notebook, {"notebook.toml": FILES["notebook.toml"] + llm.toml(), "facts/notes.md": "- Rope is dear\n"}
        )
        assert bring_in(notebook, conversations=str(conversation(tmp_path / "chats", "claude"))).added == 1
        (row,) = notebook.core.index.documents.find(Is("provenance", "=", "external"), heavy=True)
        assert "## Proposed facts\n\n- The pier has nine lamps (Key Topics)" in row["content"]
        assert "nine lamps" not in (root / "facts/notes.md").read_text()
        assert len(llm.asked) == 1
        assert KEY not in json.dumps(llm.asked[0].body)


SECRETS = [
    KEY,
    "ghp_abcdefghijklmnopqrstuvwxyz0123",
    "AKIAABCDEFGHIJKLMNOP",
    "xoxb-1234567890-abcdef",
    "eyJhbGciOiJI.eyJzdWIiOiIx.abcdef",
    "-----BEGIN RSA PRIVATE KEY-----\nabc\ndef\n-----END RSA PRIVATE KEY-----",
    "Bearer abcdefghijklmnop",
    "https://odile:hunter22@harbour.example",
    'password = "hunter22!"',
    "DB_PASSWORD=hunter22",
    '{"api_key": "hunter22"}',
    'passphrase: "a rope, hunter22"',
    "password=x;hunter22",
    r"{\"password\": \"a hunter22\"}",
    "-----BEGIN PGP PRIVATE KEY BLOCK-----\nhunter22\n-----END PGP PRIVATE KEY BLOCK-----",
]


@pytest.mark.parametrize("secret", SECRETS)
def test_what_looks_like_a_secret_is_removed(secret: str) -> None:
    text = redacted(f"before {secret} after")
    assert text.startswith("before")
    assert text.endswith("after")
    assert ("[removed]" in text, secret in text, "hunter22" in text) == (True, False, False)


@pytest.mark.parametrize("piece", ["a", "token", "eyJaaaaaaaa-", "-----BEGIN ", "://a:"])
def test_a_long_text_is_searched_for_secrets_in_a_moment(piece: str) -> None:
    assert redacted(piece * 100_000) == piece * 100_000


@pytest.mark.parametrize("text", ["The token ring of the pier", "a secret place", "sk-8 is a ski", "Basic training"])
def test_plain_words_stay(text: str) -> None:
    assert redacted(text) == text


# ---- who, and what


def test_only_the_owner_imports_and_names_one_source(notebook: Notebook, tmp_path: Path) -> None:
    assert_raises(NotPermitted, notebook.transfer.import_, lines_of(tmp_path, {"content": "x"}), SCRIBE)
    for wrong in ({}, {"file": "x.jsonl", "v2": "y.json"}, {"conversations": str(tmp_path / "none")}):
        assert_raises(UsageError, notebook.transfer.import_, **wrong)


def test_a_checkpoint_is_taken_before_the_first_write(notebook: Notebook, tmp_path: Path) -> None:
    notebook.transfer.import_(lines_of(tmp_path, {"content": " "}))
    assert notebook.stream.checkpoints().results == []
    notebook.transfer.import_(lines_of(tmp_path, {"content": "Fog"}))
    assert [each.name for each in notebook.stream.checkpoints().results] == ["before an import"]


# ---- a vault


VAULT = {
    ".obsidian/app.json": "{}",
    ".obsidian/snippets/x.md": "# No note\n",
    ".trash/old.md": "# Old\n",
    "Daily/2026-02-18.md": "---\ntags:\n  - daily\nmood: [calm]\n---\n- [ ] Call [[Odile Marchand]]\n",
    "People/Odile Marchand.md": (
        "---\naliases: [Odile]\n---\n# Odile\n\n![[map.png]] and ![[Ferry#Fares]]\n\n#people/crew\n"
    ),
    "Ferry.md": "# Ferry\n\n## Fares\n\nThree crowns ^fare\n\nSee [[Odile|her]] and [[Ferry#^fare]].\n",
    "assets/map.png": "png",
    "Canvas.canvas": "{}",
}


NOTES_OF_VAULT = {path for path in VAULT if path.endswith(".md") and not path.startswith(".")}


def test_a_vault_opens_by_pointing_at_it(folder: Path) -> None:
    with Notebook.open(write_files(folder, VAULT)) as notebook:
        assert notebook.sync().added == 3
        daily, odile = notebook.notes.read("Daily/2026-02-18.md"), notebook.notes.read("Odile")
        assert odile.path == "People/Odile Marchand.md"
        assert {row["path"] for row in notebook.core.index.documents.find(Is("audience", "=", ""))} == NOTES_OF_VAULT
        (row,) = notebook.core.index.documents.find(Is("path", "=", daily.path), heavy=True)
        assert (row["extra"], row["tags"]) == ({"mood": ["calm"]}, ["daily"])
        for tag, path in (("daily", daily.path), ("people", odile.path)):
            assert [each.path for each in notebook.notes.list(tags=[tag]).results] == [path]
        assert {"Daily/2026-02-18.md", "Ferry.md"} == set(odile.linked_from)
        assert notebook.prompts.check().results == []
    paths = [path for path in folder.rglob("*") if path.is_file() and ".notebook" not in path.parts]
    assert {str(path.relative_to(folder)): path.read_text() for path in paths} == VAULT
