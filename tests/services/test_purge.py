"""Purging a text: afterwards none of its words is in any file of the notebook or its state, nor on a server."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest
import redis

from notebook_sync import Notebook
from notebook_sync.errors import NoSuchNote, NotPermitted, UsageError
from notebook_sync.services import purge
from notebook_sync.store.rows import Is
from notebook_sync.surfaces.cli.main import run
from tests.servers import MongoClient, Server
from tests.services.conftest import (
    FILES,
    OWNER,
    SCRIBE,
    assert_raises,
    git,
    make_repository,
    on_mongodb,
    on_redis,
    sync_files,
    synced,
    write_files,
)

# In the note alone, in any form that the program may store: whole, folded, or as a term.
CANARY = "quillfeather"
TEXT = (
    f"---\nsummary: A {CANARY}\ntags: [{CANARY}-tag]\n---\n"
    f"# The {CANARY}\n\nThe {CANARY} of the pier.\n\n## {CANARY} part\n"
)
NOTE = "pages/secret.md"


@pytest.fixture
def filled(root: Path, mongodb_url: str, mongo_database: str, redis_url: str, redis_prefix: str) -> Iterator[Notebook]:
    """A notebook on real servers, in which the note left traces wherever a note can."""
    servers = on_mongodb(mongodb_url, mongo_database) + on_redis(redis_url, redis_prefix)
    settings = FILES["notebook.toml"].replace("off", "wordllama") + servers
    write_files(root, {"notebook.toml": settings, "pages/first.md": TEXT, "facts/notes.md": "- Rope is dear\n"})
    with synced(root) as notebook:
        notebook.notes.update("pages/first.md", SCRIBE, title=f"Another {CANARY}", summary=f"The {CANARY} again")
        notebook.notes.rename("pages/first.md", NOTE)
        notebook.notes.update(NOTE, SCRIBE, content=f"# The {CANARY}\n\nNew {CANARY} words.\n", reason=f"a {CANARY}")
        notebook.notes.read(NOTE, SCRIBE)
        notebook.stream.checkpoint("before", OWNER)
        notebook.context.brief(f"the {CANARY} of the pier", OWNER)
        notebook.prompt()
        notebook.sync()
        notebook.core.index.dump(notebook.core.place.state / "dump")
        yield notebook


def traces_in(notebook: Notebook, *more: Path) -> list[str]:
    """Where the word is in the bytes of any file, in the texts of the private history, and on the servers."""
    core, word = notebook.core, CANARY.encode()
    found = []
    for folder in (core.root, core.place.state, *more):
        for path in folder.rglob("*"):
            if path.is_file() and word in path.read_bytes().lower():
                found.append(str(path))
    private = core.place.state / "history.git"
    if private.exists():
        listed = git(private, "--git-dir=.", "cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
        asked = subprocess.run(
            ["git", "--git-dir=.", "cat-file", "--batch"],
            cwd=private,
            input=listed.encode(),
            capture_output=True,
            check=True,
        )
        found += ["history.git"] if word in asked.stdout else []
    settings = notebook.settings
    if settings.mirror.url:
        with MongoClient(settings.mirror.url) as client:
            database = client[settings.mirror.database]
            texts = [str(each) for name in database.list_collection_names() for each in database[name].find()]
            found += ["MongoDB"] if any(CANARY in text.lower() for text in texts) else []
        with redis.Redis.from_url(settings.refs.url) as server:
            found += traces_on(server, settings.refs.prefix)
    for name, rows in core.index.collections.items():  # large cells are compressed
        found += [name for row in (*rows.find(heavy=True), *rows.ended()) if CANARY in str(row).lower()]
    return found


def traces_on(server: redis.Redis, prefix: str) -> list[str]:
    """The keys that have the word, in their name or value."""
    lists = {"list": lambda key: server.lrange(key, 0, -1), "zset": lambda key: server.zrange(key, 0, -1)}
    reads = {"string": server.get, "hash": server.hgetall, **lists}
    values = {key.decode(): str(reads[server.type(key).decode()](key)) for key in server.scan_iter(f"{prefix}:*")}
    return [key for key, value in values.items() if CANARY in (key + value).lower()]


def test_no_byte_of_a_purged_note_is_left(filled: Notebook) -> None:
    assert len(traces_in(filled)) > 5
    dry = filled.transfer.purge(NOTE, dry_run=True)
    assert (filled.root / NOTE).exists()
    done = filled.transfer.purge(NOTE)
    assert (done.removed, done.path) == (dry.removed, NOTE)
    assert all(done.removed.values()), done.removed
    assert traces_in(filled) == []
    assert not any("MongoDB" in each or "Redis at" in each for each in done.left)
    assert filled.admin.verify().consistent
    assert_raises(NoSuchNote, filled.transfer.purge, NOTE)


def test_what_an_interrupted_purge_left_is_removed(filled: Notebook) -> None:
    private = filled.core.place.state / "history.git"
    left = shutil.copytree(private, private.with_name("history.new"))
    assert not any("private history" in each for each in filled.transfer.purge(NOTE).left)
    assert not left.exists()


def test_a_purge_that_is_interrupted_loses_no_history(filled: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    filled.notes.update("pages/ferry.md", OWNER, content="# Ferry\n\nTwo coils.\n")
    before = filled.notes.history("pages/ferry.md").results
    monkeypatch.setattr(purge, "exchange", Mock(side_effect=KeyboardInterrupt))
    assert_raises(KeyboardInterrupt, filled.transfer.purge, NOTE)
    assert filled.notes.history("pages/ferry.md").results == before != []


def test_what_is_not_purged_stays(filled: Notebook) -> None:
    filled.notes.update("pages/ferry.md", OWNER, content="# Ferry\n\nTwo coils.\n")
    versions = [each.summary for each in filled.notes.history("pages/ferry.md").results]
    filled.stream.log("Odile moved the ferry", OWNER)
    checkpoint = filled.stream.checkpoint("later", OWNER)
    filled.transfer.purge(NOTE)
    assert [each.summary for each in filled.notes.history("pages/ferry.md").results] == versions
    assert filled.notes.undo("pages/ferry.md").changed
    rolled = [dict(each) for each in filled.stream.rollback(checkpoint.id, files=True).files]
    assert {"path": "pages/ferry.md", "change": "updated"} in rolled
    assert "Odile moved the ferry" in {each.content for each in filled.stream.show().results}
    assert (traces_in(filled), (filled.root / NOTE).exists()) == ([], False)


def test_a_note_that_was_deleted_can_be_purged(filled: Notebook) -> None:
    (row,) = filled.core.index.documents.find(Is("path", "=", NOTE))
    filled.notes.delete(NOTE)
    filled.transfer.purge(row["id"])
    assert traces_in(filled) == []


def test_a_note_in_the_place_of_a_deleted_one_stays(notebook: Notebook) -> None:
    first = notebook.notes.create(CANARY, content="Old.").notebook_id
    path = notebook.notes.read(first).path
    notebook.notes.delete(first)
    second = notebook.notes.create(CANARY, content="New.").notebook_id
    assert notebook.notes.read(second).path == path
    assert any(path in each for each in notebook.transfer.purge(first).left)
    assert "New." in notebook.notes.read(second).text


def test_a_server_that_does_not_answer_is_named_and_follows_later(
    root: Path, own_redis: Server, redis_prefix: str
) -> None:
    patient = FILES["notebook.toml"] + on_redis(own_redis.url, redis_prefix)
    files = {"notebook.toml": patient, NOTE: TEXT}
    with synced(root, files) as notebook, redis.Redis.from_url(own_redis.url) as server:
        notebook.notes.update(NOTE, SCRIBE, summary=f"Another {CANARY}")
        notebook.stream.checkpoint("before", OWNER)
        write_files(root, {"notebook.toml": patient.replace("= 60", "= 0.5")})
        own_redis.pause()
        left = notebook.transfer.purge(NOTE).left
        own_redis.resume()
        assert any(each.startswith("Redis at") for each in left)
        assert traces_on(server, redis_prefix)
        write_files(root, {"notebook.toml": patient})
        notebook.core.forget()
        assert not any(each["trouble"] for each in notebook.sync().targets)
        assert traces_on(server, redis_prefix) == []


def test_a_line_of_the_stream_can_be_purged(notebook: Notebook) -> None:
    lines = [notebook.stream.log(f"The {CANARY} {keep}", SCRIBE, keep=keep) for keep in (False, True)]
    notebook.stream.checkpoint("before", OWNER)
    notebook.core.index.dump(notebook.core.place.state / "dump")
    for line in lines:
        assert sum(notebook.transfer.purge(line.id).removed.values()) == 2  # itself, and one checkpoint
    assert traces_in(notebook) == []


def test_a_single_fact_can_be_purged_from_every_file_that_states_it(notebook: Notebook) -> None:
    sync_files(notebook, {"facts/old.md": f"- The {CANARY}\n", "facts/notes.md": f"- Rope is dear\n- The {CANARY}\n"})
    (fact,) = notebook.core.index.facts.find(Is("content", "=", f"The {CANARY}"))
    syntheses = {"one": fact["id"], "other": "m1"}
    notebook.core.index.cache.put(
        [{"id": id, "kind": "synthesis", "value": {"notes": [name]}} for id, name in syntheses.items()]
    )
    notebook.core.index.dump(notebook.core.place.state / "dump")
    assert notebook.transfer.purge(fact["id"]).removed["cache"] == 1
    assert (traces_in(notebook), (notebook.root / "facts/notes.md").read_text()) == ([], "- Rope is dear\n")
    assert notebook.core.index.cache.one("other") is not None
    assert_raises(NoSuchNote, notebook.transfer.purge, "0123456789abcdef")


def test_facts_of_a_purged_file_go_and_those_of_other_files_stay(notebook: Notebook) -> None:
    sync_files(notebook, {"facts/old.md": f"- The {CANARY}\n- Rope is dear\n", "facts/notes.md": "- Rope is dear\n"})
    notebook.facts.reinforce("Rope is dear")
    notebook.transfer.purge("facts/old.md")
    (fact,) = notebook.core.index.facts.find(Is("content", "=", "Rope is dear"))
    assert (traces_in(notebook), fact["access_count"]) == ([], 1)


def test_the_history_of_the_owner_is_named_and_left_alone(root: Path) -> None:
    make_repository(write_files(root, {NOTE: TEXT}))
    with synced(root) as notebook:
        commit = git(root, "rev-parse", "HEAD")
        assert any("git filter-repo" in each and NOTE in each for each in notebook.transfer.purge(NOTE).left)
        assert git(root, "merge-base", "--is-ancestor", commit.strip(), "HEAD") == ""
        assert traces_in(notebook) == []


def test_a_prompt_file_loses_its_copies(root: Path) -> None:
    with synced(root, {"runtime/reminders.md": f"# Reminders\n\n- [ ] The {CANARY}\n"}) as notebook:
        notebook.prompt()
        assert len(traces_in(notebook)) > 1
        notebook.transfer.purge("reminders")
        assert traces_in(notebook) == []


def test_only_the_owner_purges_and_is_asked(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with synced(root) as notebook:
        assert_raises(NotPermitted, notebook.transfer.purge, "pages/ferry", SCRIBE)
    assert run(["-C", str(root), "purge", "pages/ferry"]) == UsageError.exit_code
    assert (root / "pages/ferry.md").exists()
    assert run(["-C", str(root), "purge", "pages/ferry", "--yes"]) == 0
    assert "pages/ferry.md" in capsys.readouterr().out
    assert not (root / "pages/ferry.md").exists()
