"""A program of the original design works on the same servers, before, during and after our first publication."""

import json
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pymongo import ReturnDocument

from notebook_sync import Notebook
from tests.services.conftest import FILES, SCRIBE, write_files
from tests.store.mirrors import TODAY, Database, Keys, World, line
from tests.store.rows_for_tests import document


class AgentHost:
    """The original's connection and tool, in this test's words."""

    def __init__(self, url: str, database: str, redis_url: str, prefix: str) -> None:
        self.mongo, self.keys = Database(url, database), Keys(redis_url, prefix)
        self.db, self.redis, self.prefix = self.mongo.db, self.keys.client, prefix

    def close(self) -> None:
        self.mongo.client.close()
        self.redis.close()

    def connect(self) -> None:
        """Make the indexes, as at every start."""
        for name in ("pages", "code_snippets", "research_notes"):
            for field in ("metadata.created_by", "metadata.tags"):
                self.db[name].create_index(field)
            self.db[name].create_index([("metadata.updated_at", -1)])
        self.db.pages.create_index([("title", "text"), ("content", "text")])
        self.db.code_snippets.create_index("metadata.language")
        self.db.research_notes.create_index("metadata.source_url")

    def start(self) -> None:
        """Start with one page."""
        self.connect()
        self.create("theirs", "Their lighthouse", "a lamp on a rock")

    def create(self, id: str, title: str, content: str) -> None:
        now = datetime.now(UTC)
        metadata = {"created_by": "agent:host", "created_at": now, "updated_at": now, "version": 1, "tags": ["theirs"]}
        page = {"_id": id, "title": title, "content": content, "summary": "", "sections": [], "history": []}
        self.db.pages.insert_one({**page, "metadata": metadata})
        self.announce(id, title, "CREATED")

    def update(self, id: str, content: str) -> Any:
        changes = {"$set": {"content": content}, "$inc": {"metadata.version": 1}}
        return self.db.pages.find_one_and_update({"_id": id}, changes, return_document=ReturnDocument.AFTER)

    def search(self, words: str) -> list[str]:
        return [each["_id"] for each in self.db.pages.find({"$text": {"$search": words}})]

    def announce(self, id: str, title: str, action: str) -> None:
        ref = {"type": "notebook_ref", "notebook_id": id, "title": title, "action": action}
        self.redis.rpush(f"{self.prefix}:daily:{TODAY}", json.dumps(ref))
        content = {"content": f"[Notebook {action}] {title}: ", "source": "notebook", "tags": "theirs", "score": "0.8"}
        self.redis.hset(f"{self.prefix}:notebook:ref:{id}", mapping=content)

    def recall(self, words: str) -> set[str]:
        found = self.redis.execute_command("FT.SEARCH", f"{self.prefix}:memory:idx", words, "NOCONTENT")
        ids = found[1:] if isinstance(found, list) else [each["id"] for each in found["results"]]
        return {each.removeprefix(f"{self.prefix}:notebook:ref:") for each in ids}


@pytest.fixture
def host(servers: dict[str, str]) -> Iterator[AgentHost]:
    with closing(AgentHost(servers["mongodb"], servers["database"], servers["redis"], servers["prefix"])) as host:
        yield host


@pytest.fixture
def root(folder: Path) -> Path:
    return write_files(folder, FILES)


@pytest.fixture
def servers(mongodb_url: str, new_mongo_database: str, redis_url: str, redis_prefix: str) -> dict[str, str]:
    return {"mongodb": mongodb_url, "database": new_mongo_database, "redis": redis_url, "prefix": redis_prefix}


@pytest.mark.parametrize("starts", ["before", "after"])
def test_nothing_of_an_agent_host_fails_vanishes_or_becomes_unfindable(
    starts: str, world: World, host: AgentHost, mongo: Database, keys: Keys
) -> None:
    if starts == "before":
        host.start()
    world.put(document("ours", "our harbour at dawn"), document("shared", "first words"))
    world.publish_well(lines=[line("line", "a line of ours")])
    if starts == "after":
        host.start()
    host.connect()
    assert (host.search("lamp"), host.search("harbour")) == (["theirs"], ["pages/ours"])
    assert host.recall("lighthouse") == {"theirs"}
    assert host.recall("ours") >= {"pages/ours"}

    assert host.update("pages/shared", "the host's words")["metadata"]["version"] == 2
    host.create("during", "Written meanwhile", "a gull")
    world.publish_well(document("shared", "words of the file"), document("ours", "our harbour at noon"))
    world.publisher.reconcile_all()
    assert mongo.texts("pages") == {
        "theirs": "a lamp on a rock",
        "during": "a gull",
        "pages/shared": "the host's words",
        "pages/ours": "our harbour at noon",
    }
    assert keys.refs() == {"theirs", "during", "pages/ours", "pages/shared"}
    lines = {(each.get("id", ""), each.get("notebook_id")) for each in keys.lines()}
    assert (lines, world.state("mongodb")["refused"]) == ({("", "theirs"), ("", "during"), ("line", None)}, 1)

    world.publish_well(claim=True)
    texts = mongo.texts("pages")
    assert (texts["pages/shared"], texts["theirs"]) == ("words of the file", "a lamp on a rock")
    assert world.state("mongodb")["refused"] == 0


def test_recall_checkpoint_and_rollback_include_what_an_agent_host_writes(
    root: Path, servers: dict[str, str], host: AgentHost, keys: Keys
) -> None:
    host.connect()
    settings = f'[mirror]\nurl = "{servers["mongodb"]}"\ndatabase = "{servers["database"]}"\n'
    settings += f'[refs]\nurl = "{servers["redis"]}"\nprefix = "{servers["prefix"]}"\ntimeout_seconds = 5.0\n'
    write_files(root, {"notebook.toml": FILES["notebook.toml"] + settings})
    with Notebook.open(root) as notebook:
        notebook.sync()
        host.create("early", "A heron at dawn", "theirs")
        notebook.stream.log("a heron of ours", SCRIBE)
        found = [each.content for each in notebook.stream.recall("heron", SCRIBE).results]
        assert sorted(found) == ["[Notebook CREATED] A heron at dawn: ", "a heron of ours"]
        made = notebook.stream.checkpoint("by hand")
        host.create("late", "A heron at dusk", "theirs")
        host.keys.client.rpush(f"{keys.prefix}:daily:{TODAY}", '{"content": "logged by the host"}')
        notebook.stream.log("late heron of ours", SCRIBE)
        assert "logged by the host" in [each.content for each in notebook.stream.show(SCRIBE).results]
        notebook.stream.rollback(made.id)
        notebook.sync()
        assert [each.get("content") or each.get("title") for each in keys.lines()][1:] == [
            "A heron at dawn",
            "a heron of ours",
        ]
        blob = json.loads(keys.client.get(f"{keys.prefix}:checkpoint:{made.id}"))
        assert [each["title"] for each in blob["daily"][TODAY] if "title" in each] == ["A heron at dawn"]
    assert (host.search("dusk"), host.search("dawn")) == (["late"], ["early"])
    assert {page["_id"] for page in host.db.pages.find({"content": "theirs"})} == {"early", "late"}
    assert host.recall("heron") >= {"early", "late"}


def test_a_page_of_theirs_that_has_an_id_of_ours_is_theirs_until_it_is_claimed(
    world: World, mongo: Database, keys: Keys
) -> None:
    mongo.db.pages.insert_one({"_id": "pages/plan", "content": "seed text", "metadata": {"version": 3}})
    keys.client.hset(f"{keys.prefix}:notebook:ref:pages/plan", mapping={"content": "theirs", "score": "0.8"})
    world.publish_well(document("plan", "ours"), document("other"))
    assert mongo.texts("pages") == {"pages/plan": "seed text", "pages/other": "first text"}
    assert keys.ref("pages/plan") == {"content": "theirs", "score": "0.8"}
    assert (world.state("mongodb")["refused"], world.state("redis")["refused"]) == (1, 1)
    world.index.documents.delete(["pages/plan"])
    world.publish_well()
    theirs = (mongo.texts("pages")["pages/plan"], keys.ref("pages/plan"))
    assert theirs == ("seed text", {"content": "theirs", "score": "0.8"})
    assert (world.state("mongodb")["refused"], world.state("redis")["refused"]) == (0, 0)


def test_hashes_lines_and_documents_have_the_original_fields(world: World, mongo: Database, keys: Keys) -> None:
    note = {"note": "pages/plan", "path": "pages/plan.md", "action": "created"}
    ref = {"title": "plan", "summary": "", "collection": "pages", "status": "draft", "version": 1, "updated_at": "t"}
    world.put(
        document(
            "plan",
            "# Plan\n\n## Risks\n\nnone\n",
            status="draft",
            created_by="agent:scribe",
            tags=["a", "a/b"],
            summary="s" * 300,
            sections=[["Plan", 1, "plan", 1, 0, 24], ["Risks", 2, "risks", 3, 8, 24]],
            fields={"tags": ["A/b"], "confidence": 0.5},
        ),
        document(
            "code", "text", collection="code_snippets", language="python", fields={"language": "python"}, code="x = 1"
        ),
    )
    world.publish_well(lines=[line("line", "[Notebook CREATED] plan", ref=ref, score=0.8, **note)])
    page = mongo.db.pages.find_one({"_id": "pages/plan"})
    assert page["sections"][1] == {"heading": "Risks", "content": "## Risks\n\nnone\n"}
    assert (page["metadata"]["tags"], page["confidence"], page["metadata"]["confidence"]) == (["A/b"], 0.5, 0.5)
    assert (page["collection"], page["collection_type"], page["published"]) == ("pages", "pages", 1)
    assert "language" not in page
    code = mongo.db.code_snippets.find_one()
    assert (code["language"], code["metadata"]["language"], code["code"]) == ("python", "python", "x = 1")
    whole = {"content": f"[Notebook CREATED] plan: {'s' * 200}", "source": "notebook", "tags": "a,a/b", "score": "0.8"}
    assert keys.ref("pages/plan").items() >= {**whole, "agent": "scribe"}.items()
    (found,) = keys.lines()
    assert found | ref | {"type": "notebook_ref", "notebook_id": "pages/plan", "action": "created"} == found
    assert keys.client.hgetall(f"{keys.prefix}:daily:{TODAY}:line")["content"] == "[Notebook CREATED] plan"
    assert keys.client.zscore(f"{keys.prefix}:notebook:recent", "pages/plan") > 0
