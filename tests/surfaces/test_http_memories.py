"""The routes for memories, task briefs and their syntheses: each use case's answer, and who is answered at all."""

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
    added = answered(server, "POST", "/memories", SCRIBE, 201, json={"text": text, "domain": "timetable", **more})
    return str(added["notebook_id"])


def test_memories_are_recorded_listed_and_searched(server: Served) -> None:
    wanted = {"text": DECISION, "domain": "timetable", "tags": ["ferry"], "priority": 9}
    added = answered(server, "POST", "/memories", SCRIBE, 201, json=wanted)
    assert (added["kind"], added["structured"], added["agent"]) == ("decision", "given", "scribe")
    assert (added["priority"], added["path"][:18]) == (9, "memories/decision/")
    recorded(server, "The ferry waits", kind="insight")
    for params, found in (
        ({"kind": "decision"}, ["Serve the old timetable"]),
        ({"tags": ["ferry", "nothing"]}, ["Serve the old timetable"]),
        ({"needs_review": True}, ["The ferry waits"]),
        ({"domain": "pier"}, []),
    ):
        rows = answered(server, "GET", "/memories", HERALD, params=params)
        assert [row["title"] for row in rows] == found, params
    (row,) = answered(server, "POST", "/memories/search", SCRIBE, json={"query": "serve the old timetable", "limit": 1})
    assert (row["notebook_id"], row["similarity"] > 0) == (added["notebook_id"], True)
    for params in ({"kind": "rumour"}, {"limit": 0}, {"colour": "blue"}):
        error = answered(server, "GET", "/memories", SCRIBE, 422, params=params)["error"]
        assert error["type"] == "invalid_arguments"


def test_links_are_made_and_taken_in(server: Served) -> None:
    decision, problem = recorded(server, DECISION), recorded(server, PROBLEM)
    wanted = {"from": decision, "type": "solves", "to": problem, "confidence": 0.9, "reasoning": "Nobody waits"}
    link = answered(server, "POST", "/memories/link", SCRIBE, json=wanted)
    assert {name: link[name] for name in wanted} == wanted
    assert link["action"] == "added"
    links = [
        {"from": problem, "to": decision, "type": "causes", "confidence": 7},
        {"from": problem, "to": decision, "type": "adores"},
        {"from": problem, "to": "nowhere", "type": "causes"},
        "no link",
        None,
    ]
    taken = answered(server, "POST", "/relationships/ingest_synthesis", SCRIBE, json={"links": links})
    assert [(one["type"], one["confidence"]) for one in taken["ingested"]] == [("causes", 1)]
    assert len([one for one in taken["dropped"] if one["reason"]]) == 4
    error = answered(server, "POST", "/memories/infer", SCRIBE, 422, json={})["error"]
    assert error["type"] == "llm_not_configured"
    assert_a_graph_can_do_nothing_but_be_seen(server, decision)


def assert_a_graph_can_do_nothing_but_be_seen(server: Served, decision: str) -> None:
    answer = server.ask("GET", "/memories/graph", SCRIBE)
    assert answer.headers["content-type"] == "image/svg+xml"
    assert "sandbox" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.text.startswith("<svg ")
    text = server.ask("GET", "/memories/graph", SCRIBE, params={"format": "mermaid", "around": decision})
    assert (text.headers["content-type"], "solves" in text.text) == ("text/plain; charset=utf-8", True)
    answered(server, "GET", "/memories/graph", SCRIBE, 422, params={"format": "png"})


def test_what_is_lacking_is_told_and_mended(server: Served) -> None:
    fog = server.root / "memories/fog.md"
    fog.write_text("---\nagent: pilot\ncreated_at: sometime in May\ntags: [problem]\n---\n# Fog at the pier\n")
    audit = answered(server, "GET", "/memories/audit", SCRIBE)
    assert (audit["memories"], audit["timestamps"]) == (1, {"missing": 0, "unparsable": 1})
    shown = answered(server, "POST", "/memories/fix", SCRIBE, json={"dry_run": True})
    assert ([one["field"] for one in shown["changes"]], shown["applied"]) == (["kind"], False)
    assert answered(server, "POST", "/memories/fix", SCRIBE, json={})["changes"] == shown["changes"]
    scored = answered(server, "POST", "/memories/score", SCRIBE, json={})
    assert scored["scored"] == 1


def test_a_brief_has_one_hash_and_explains_itself(server: Served) -> None:
    decision = recorded(server, DECISION)
    wanted = {"task_spec": SPEC, "max_tokens": 1500, "explain": True}
    brief = answered(server, "POST", "/compile_context", SCRIBE, json=wanted)
    assert [one["id"] for one in brief["memories_used"]] == [decision]
    assert "A timetable of this morning" in brief["task_brief_md"]
    assert brief["token_count"] <= 1500
    assert brief["explain"].keys() >= {"intent", "prefilter", "search", "combined", "mmr", "cut"}
    again = answered(server, "POST", "/compile_context", HERALD, json={"task_spec": SPEC, "max_tokens": 1500})
    assert again["context_hash"] == brief["context_hash"]
    assert "explain" not in again or again["explain"] is None
    none = answered(server, "POST", "/compile_context", SCRIBE, json={**wanted, "exclude_tags": ["cache"]})
    assert none["memories_used"] == []
    answered(server, "POST", "/compile_context", SCRIBE, 422, json={"task_spec": SPEC, "max_tokens": 0})
    error = answered(server, "POST", "/synthesize", SCRIBE, 422, json={"task_spec": SPEC})["error"]
    assert "tier2" in error["message"]
    error = answered(server, "POST", "/prefetch", SCRIBE, 422, json={"specs": ["specs/pier.md"]})["error"]
    assert "tier2" in error["message"]
    assert_how_it_does_is_told_to_prometheus_too(server)


def assert_how_it_does_is_told_to_prometheus_too(server: Served) -> None:
    figures = answered(server, "GET", "/memories/figures", SCRIBE)
    assert (figures["memories"], figures["structured_share"], figures["compile"]["count"]) == (1, 1.0, 3)
    assert figures["synthesis"]["hit_rate"] is None
    lines = server.ask("GET", "/metrics", OWNER).text.splitlines()
    assert {"notebook_memories 1.0", "notebook_briefs 3.0", "notebook_synthesis_daily_limit 50.0"} <= set(lines)
    assert any(line.startswith("notebook_brief_seconds_p95 ") for line in lines)
    assert not any(line.startswith("notebook_synthesis_seconds_p95 ") for line in lines)


def test_syntheses_are_made_ahead(root: Path) -> None:
    command = json.dumps([sys.executable, "-c", ""])  # it goes without a word
    (root / "notebook.toml").write_text(f"[tier2]\nenabled = true\ncommand = {command}\n")
    (root / "pier.md").write_text(SPEC)
    with served(root) as server:
        rows = answered(server, "POST", "/prefetch", SCRIBE, json={"specs": ["pier.md", "gone.md", "pier.md"]})
        assert [(row["spec"], row["cached"]) for row in rows] == [("pier.md", False), ("gone.md", False)]
        assert all(row["trouble"] for row in rows)
        answered(server, "POST", "/prefetch", SCRIBE, 422, json={"specs": []})
