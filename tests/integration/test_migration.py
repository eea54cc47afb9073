"""From the embedded store to servers and back: two URLs and one command are the whole migration."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pymongo
import pytest
import redis

from notebook_sync.files.note import COLLECTIONS
from tests.integration.world import World

NOTES = {
    "pages/plan.md": "---\ntitle: The plan\ntags: [auth, été]\nstatus: in_progress\n---\n# Plan\n\nSmall.\n\n## Cost\n",
    "pages/über/Ωmega.md": "# Omega\n\nText with `code`, [[plan]] and ünïcode 🧭.\n",
    "code_snippets/sort.md": "---\nlanguage: python\nrelated_page: plan\n---\n# Sort\n\n```python\nsorted([])\n```\n",
    "research_notes/paper.md": "---\nsource_url: https://a.example\nkey_findings: [one]\nscore: 5\n---\n# Paper\n",
    "runtime/standing-orders.md": "# Standing Orders\n\n- Be kind.\n",
    "facts/core.md": "# Core\n\n- Water is wet.\n",
    "pages/empty.md": "",
    "pages/twin.md": "---\nid: plan-id\ncustom: {when: 2026-01-02, deep: [1, {x: y}]}\n---\n# Twin\n",
}
INDEXED = {"metadata.created_by", "metadata.tags", "metadata.updated_at"}


@pytest.fixture
def filled(embedded: World) -> World:
    """A notebook of every kind of note, in step on the embedded store."""
    for path, text in NOTES.items():
        embedded.write(path, text)
    assert embedded.run("sync").code == 0
    return embedded


@pytest.fixture
def world(filled: World, mongodb_url: str, redis_url: str) -> World:
    """The same notebook, brought to servers."""
    world = filled.on(mongodb_url, redis_url)
    assert world.run("rebuild").code == 0
    return world


def test_a_rebuild_fills_the_servers_with_the_same_documents(filled: World, world: World) -> None:
    assert world.documents() == filled.documents()
    assert set(world.documents()) == set(NOTES)
    assert world.is_consistent()


def test_the_indexes_are_there(world: World, mongo_database: str) -> None:
    with pymongo.MongoClient(world.mongodb_url) as client:
        for collection in COLLECTIONS:
            found = client[mongo_database][collection].index_information()
            first_keys = {index["key"][0][0]: index for index in found.values()}
            assert first_keys.keys() >= INDEXED
            assert first_keys["path"]["unique"]
            assert set(found["words"]["weights"]) == {"title", "summary", "content", "code", "words"}
        assert "language_1" in client[mongo_database]["code_snippets"].index_information()
        assert "source_url_1" in client[mongo_database]["research_notes"].index_information()


def test_a_ref_is_a_hash_that_recall_can_use_and_never_holds_content(world: World, redis_prefix: str) -> None:
    with redis.Redis.from_url(world.redis_url, decode_responses=True) as client:
        ref = client.hgetall(f"{redis_prefix}:notebook:ref:pages/plan")
    document = world.whole()["pages/plan.md"]
    updated_at = document["metadata"]["updated_at"]
    assert ref == {
        "type": "notebook_ref",
        "notebook_id": "pages/plan",
        "title": "The plan",
        "summary": document["summary"],
        "collection": "pages",
        "updated_at": updated_at.isoformat(),
        "status": "in_progress",
        "version": "1",
        "digest": document["source"]["digest"],
        "agent": document["metadata"]["created_by"],
        "path": "pages/plan.md",
        "provenance": "",
        "content": f"[The plan] {document['summary']}",
        "source": "notebook",
        "tags": "pages",
        "score": "0.5",
        "timestamp": f"{updated_at.timestamp():.3f}",
        "words": "",
        "embedded": "",
    }


def test_a_rebuild_is_no_news_and_a_later_edit_is(world: World, redis_prefix: str) -> None:
    day = f"{redis_prefix}:daily:{datetime.now(UTC).date().isoformat()}"
    with redis.Redis.from_url(world.redis_url, decode_responses=True) as client:
        assert client.lrange(day, 0, -1) == []
        world.write("pages/plan.md", "# The plan\n\nGrown.\n")
        assert world.run("sync").code == 0
        (raw,) = client.lrange(day, 0, -1)
    entry = json.loads(raw)
    assert datetime.fromisoformat(entry.pop("timestamp")).date() == datetime.now(UTC).date()
    assert len(entry.pop("id")) == 16
    assert entry == {
        "content": "[The plan] Grown.",
        "source": "notebook",
        "tags": ["pages"],
        "score": 0.5,
        "action": "updated",
        "ref": {
            "notebook_id": "pages/plan",
            "title": "The plan",
            "collection": "pages",
            "status": "draft",
            "version": "2",
            "path": "pages/plan.md",
        },
    }


def test_without_the_urls_it_is_embedded_again_and_in_step_after_a_sync(filled: World, world: World) -> None:
    world.write("pages/plan.md", "# The plan\n\nEdited while on servers.\n")
    (world.root / "pages/empty.md").unlink()
    assert world.run("sync").code == 0
    assert not filled.is_consistent()
    assert filled.run("sync").code == 0
    assert filled.is_consistent()
    assert filled.documents() == world.documents()


@pytest.mark.parametrize("served", ["mongodb", "redis"])
def test_one_server_alone_works_and_the_other_may_come_and_go(
    filled: World, mongodb_url: str, redis_url: str, served: str
) -> None:
    alone = filled.on(mongodb_url) if served == "mongodb" else filled.on("", redis_url)
    both = filled.on(mongodb_url, redis_url)
    for n, stores in enumerate((alone, both, alone, filled, both)):
        stores.write("pages/plan.md", f"# The plan\n\nTurn {n}.\n")
        assert stores.run("sync").code == 0
        assert stores.is_consistent()
        assert stores.refs()["pages/plan"]["summary"] == f"Turn {n}."
    with both.notebook() as notebook:
        assert [note["path"] for note in notebook.search("Turn", mode="keyword")] == ["pages/plan.md"]


def test_versions_come_from_git_where_the_new_mirror_has_none(
    embedded: World, mongodb_url: str, redis_url: str
) -> None:
    for n in range(3):
        embedded.write("pages/plan.md", f"# Plan\n\nText {n}.\n")
        embedded.commit_all(f"Step {n}")
    assert embedded.run("sync").code == 0
    served = embedded.on(mongodb_url, redis_url)
    assert served.run("rebuild").code == 0
    document = served.whole()["pages/plan.md"]
    assert document["metadata"]["version"] == 3
    assert [crumb["summary"] for crumb in document["history"]] == ["Step 0", "Step 1", "Step 2"]
    assert served.refs()["pages/plan"]["version"] == "3"
