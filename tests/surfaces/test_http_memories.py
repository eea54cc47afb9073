"""The routes of memories and task briefs: the bodies of the original design, queries, pictures and metrics."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from notebook_sync import Session
from tests.surfaces.http_clients import Served, answered, served
from tests.surfaces.test_cli_memories import DECISION, PROBLEM

OWNER, SCRIBE, HERALD = Session.owner(), Session.task("scribe"), Session.external("herald")
SPEC = "---\ndomain: timetable\n---\n# Let the office serve the timetable\n\nWithout asking the mainland each minute.\n"


@pytest.fixture
def server(root: Path) -> Iterator[Served]:
    with served(root) as found:
        yield found


def recorded(server: Served, text: str, **more: Any) -> str:
    wanted = {"content": text, "domain": "timetable", **more}
    return str(answered(server, "POST", "/memories", SCRIBE, 201, json=wanted)["notebook_id"])


def test_a_memory_is_added_as_the_original_design_has_it(server: Served) -> None:
    wanted = {"content": DECISION, "importance": 9, "tags": ["ferry"], "agent_type": "pilot", "domain": "timetable"}
    added = answered(server, "POST", "/memories", OWNER, 201, json={**wanted, "created_at": "2026-02-16T09:30:00Z"})
    assert (added["priority"], added["agent"], added["domain"]) == (9, "pilot", "timetable")
    assert added["path"] == "memories/decision/2026-02-16-serve-the-old-timetable.md"


def test_links_of_a_synthesis_are_saved_as_the_original_design_has_them(server: Served) -> None:
    decision, problem = recorded(server, DECISION), recorded(server, PROBLEM)
    link = {"from_memory_id": decision, "to_memory_id": problem, "relationship_type": "solves", "confidence": 0.9}
    wanted = {
        "source": "bridge",
        "synthesis_id": "s1",
        "relationships": [
            {**link, "reasoning": "Nobody waits"},
            {**link, "relationship_type": "causes", "confidence": 7, "source": "llm"},
            {**link, "relationship_type": "adores"},
            {**link, "to_memory_id": "nowhere"},
            "no link",
            None,
        ],
    }
    taken = answered(server, "POST", "/relationships/ingest_synthesis", SCRIBE, json=wanted)
    names = ("from", "type", "to", "confidence", "source", "synthesis_id", "action")
    assert [[one[name] for name in names] for one in taken["ingested"]] == [
        [decision, "solves", problem, 0.9, "bridge", "s1", "added"],
        [decision, "causes", problem, 1, "llm", "s1", "added"],
    ]
    assert len([one for one in taken["dropped"] if one["reason"]]) == 4
    again = answered(server, "POST", "/relationships/ingest_synthesis", SCRIBE, json={"links": taken["ingested"]})
    assert (again["ingested"], len(again["kept"])) == ([], 2)


def test_a_list_is_narrowed_in_the_query(server: Served) -> None:
    recorded(server, DECISION, tags=["ferry"])
    recorded(server, "The ferry waits", kind="insight")
    for params, found in (
        ({"tags": ["ferry", "nothing"]}, ["Serve the old timetable"]),
        ({"needs_review": True}, ["The ferry waits"]),
        ({"domain": "pier"}, []),
    ):
        listed = answered(server, "GET", "/memories", HERALD, params=params)
        assert [row["title"] for row in listed["results"]] == found, params
    for params in ({"kind": "rumour"}, {"limit": 0}, {"kind": ["insight", "problem"]}, {"colour": "blue"}):
        error = answered(server, "GET", "/memories", SCRIBE, 422, params=params)["error"]
        assert error["type"] == "invalid_arguments"


def test_a_graph_can_do_nothing_but_be_seen(server: Served) -> None:
    decision, problem = recorded(server, DECISION), recorded(server, PROBLEM)
    link = {"from": decision, "type": "solves", "to": problem}
    assert link.items() <= answered(server, "POST", "/memories/link", SCRIBE, json=link).items()
    answer = server.ask("GET", "/memories/graph", SCRIBE)
    assert answer.headers["content-type"] == "image/svg+xml"
    assert "sandbox" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.text.startswith("<svg ")
    text = server.ask("GET", "/memories/graph", SCRIBE, params={"format": "mermaid", "around": decision})
    assert (text.headers["content-type"], "solves" in text.text) == ("text/plain; charset=utf-8", True)
    answered(server, "GET", "/memories/graph", SCRIBE, 422, params={"format": "png"})


def test_a_brief_has_one_hash_and_is_counted_for_prometheus(server: Served) -> None:
    decision = recorded(server, DECISION)
    wanted = {"task_spec": SPEC, "max_tokens": 1500}
    brief = answered(server, "POST", "/compile_context", SCRIBE, json={**wanted, "explain": True})
    assert [one["id"] for one in brief["memories_used"]] == [decision]
    assert brief["explain"].keys() >= {"intent", "prefilter", "search", "combined", "mmr", "cut"}
    again = answered(server, "POST", "/compile_context", HERALD, json=wanted)
    assert (again["context_hash"], again.get("explain")) == (brief["context_hash"], None)
    assert brief["context_hash"].startswith("sha256:")
    for path, more in (("/synthesize", {"task_spec": SPEC}), ("/prefetch", {"specs": ["specs/pier.md"]})):
        assert "tier2" in answered(server, "POST", path, SCRIBE, 422, json=more)["error"]["message"]
    assert answered(server, "GET", "/memories/figures", SCRIBE)["compile"]["count"] == 2
    lines = server.ask("GET", "/metrics", OWNER).text.splitlines()
    assert {"notebook_memories 1.0", "notebook_briefs 2.0", "notebook_synthesis_daily_limit 50.0"} <= set(lines)
    assert any(line.startswith("notebook_brief_seconds_p95 ") for line in lines)
    assert not any(line.startswith("notebook_synthesis_seconds_p95 ") for line in lines)


def test_specs_that_the_model_cannot_be_asked_about_are_listed(root: Path) -> None:
    command = json.dumps([sys.executable, "-c", ""])  # it exits without an answer
    (root / "notebook.toml").write_text(f"[tier2]\nenabled = true\ncommand = {command}\n")
    (root / "pier.md").write_text(SPEC)
    with served(root) as server:
        rows = answered(server, "POST", "/prefetch", SCRIBE, json={"specs": ["pier.md", "gone.md", "pier.md"]})
        assert [(row["spec"], row["cached"]) for row in rows["results"]] == [("pier.md", False), ("gone.md", False)]
        assert all(row["trouble"] for row in rows["results"])
        answered(server, "POST", "/prefetch", SCRIBE, 422, json={"specs": []})
