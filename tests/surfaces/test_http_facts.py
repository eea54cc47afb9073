"""The routes for facts: each use case's answer, who is answered at all, and a picture that can do nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from notebook_sync import Session
from tests.scripted_llm import ScriptedServer, chat
from tests.surfaces.http_clients import Served, answered, served

OWNER, SCRIBE, HERALD = Session.owner(), Session.task("scribe"), Session.external("herald")
EIGHT, MAY = "The ferry leaves at eight", "The pier was painted in May"


@pytest.fixture
def server(root: Path) -> Iterator[Served]:
    (root / "facts").mkdir(exist_ok=True)
    (root / "facts/notes.md").write_text(f"## Important Facts\n\n- {EIGHT}\n- {MAY} <!-- importance: 0.9 -->\n")
    with served(root) as found:
        yield found


def texts(rows: list[dict[str, Any]]) -> list[str]:
    return [row["content"] for row in rows]


def test_facts_are_listed_and_searched(server: Served) -> None:
    assert texts(answered(server, "GET", "/facts", SCRIBE)) == [MAY, EIGHT]
    for params, found in (
        ({"limit": 1}, [MAY]),
        ({"section": "Key Topics"}, []),
        ({"stale": True}, []),
        ({"scope": "archive"}, []),
        ({"query": "when does the ferry leave", "limit": 1}, [EIGHT]),
    ):
        assert texts(answered(server, "GET", "/facts", HERALD, params=params)) == found, params
    for params in ({"scope": "attic"}, {"query": "ferry", "section": "Key Topics"}, {"limit": 0}, {"colour": "blue"}):
        error = answered(server, "GET", "/facts", SCRIBE, 422, params=params)["error"]
        assert error["type"] == "invalid_arguments"


def test_a_fact_is_added_verified_strengthened_and_moved(server: Served) -> None:
    wanted = {"content": "Ines keeps the key", "section": "People & Entities", "importance": 0.6}
    added = answered(server, "POST", "/facts", SCRIBE, 201, json=wanted)
    assert (added["action"], added["importance"], added["path"]) == ("added", 0.6, "facts/notes.md")
    verdict = answered(server, "POST", "/facts/verify", HERALD, json={"content": "Ines keeps the key"})
    assert (verdict["verdict"], verdict["matches"][0]["note_id"]) == ("CONFIRMED", added["note_id"])
    named = {"fact": added["note_id"]}
    for path, body, action, place in (
        ("reinforce", named, "reinforced", "facts/notes.md"),
        ("archive", {**named, "reason": "it was lent"}, "archived", "facts/archive.md"),
        ("restore", named, "restored", "facts/notes.md"),
        ("promote", named, "proposed", "facts/notes.md"),
    ):
        moved = answered(server, "POST", f"/facts/{path}", SCRIBE, json=body)
        assert (moved["action"], moved["path"], moved["content"]) == (action, place, "Ines keeps the key")
    moved = answered(server, "POST", "/facts/promote", OWNER, json={**named, "section": "Identity"})
    assert (moved["action"], moved["path"], moved["section"]) == ("promoted", "facts/core.md", "Identity")
    for path in ("reinforce", "archive", "restore", "promote"):
        error = answered(server, "POST", f"/facts/{path}", OWNER, 404, json={"fact": "f" * 16})["error"]
        assert error["type"] == "no_such_fact"


def test_what_is_spent_and_what_is_said_twice(server: Served) -> None:
    with (server.root / "facts/notes.md").open("a") as notes:
        notes.write(f"- {EIGHT.lower()}.\n- The buoy was red once <!-- importance: 0.01 -->\n")
    assert texts(answered(server, "POST", "/facts/decay", OWNER, json={"dry_run": True})["archived"]) == [
        "The buoy was red once"
    ]
    assert len(answered(server, "POST", "/facts/decay", OWNER, json={})["archived"]) == 1
    found = answered(server, "POST", "/facts/dedupe", OWNER, json={})
    assert (len(found["pairs"]), found["merged"]) == (1, 0)
    assert answered(server, "POST", "/facts/dedupe", OWNER, json={"apply": True})["merged"] == 1


def test_facts_are_drawn_from_a_conversation(server: Served) -> None:
    body = {"messages": [{"role": "user", "content": "Ines keeps the key now."}]}
    error = answered(server, "POST", "/facts/extract", SCRIBE, 422, json=body)["error"]
    assert error["type"] == "llm_not_configured"
    with ScriptedServer() as model:
        model.say(
            chat(
                json.dumps(
                    {
                        "additions": [{"section": "Key Topics", "item": "Ines keeps the key", "importance": 0.5}],
                        "removals": [],
                        "summary": "The key.",
                    }
                )
            )
        )
        (server.root / "notebook.toml").write_text(f'[llm]\nbase_url = "{model.url}"\nmodel = "small"\n')
        with served(server.root) as anew:
            found = answered(anew, "POST", "/facts/extract", SCRIBE, json=body)
    assert (found["applied"], found["error"], found["summary"]) == (True, "", "The key.")
    assert [each["content"] for each in found["additions"]] == ["Ines keeps the key"]


def test_a_picture_can_do_nothing_but_be_seen(server: Served) -> None:
    answer = server.ask("GET", "/facts/plot", SCRIBE, params={"days": 7, "limit": 1})
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("image/svg+xml")
    policy = {rule.strip() for rule in answer.headers["content-security-policy"].split(";")}
    assert {"default-src 'none'", "sandbox", "frame-ancestors 'none'"} <= policy
    assert not any("script" in rule for rule in policy)
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.text.startswith("<svg ")
    assert "<script" not in answer.text
    answered(server, "GET", "/facts/plot", SCRIBE, 422, params={"days": 0})
