"""The routes for what agents do: each use case's answer, conflicts with what to do, and who is answered at all."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from notebook_sync import Session
from tests.scripted_llm import ScriptedServer
from tests.surfaces.http_clients import Served, answered, served

OWNER, SCRIBE, PILOT = Session.owner(), Session.task("scribe"), Session.task("pilot")
HERALD = Session.external("herald")
FERRY = {"collection": "pages", "title": "A second ferry", "content": "Ask Odile.\n", "tags": ["ferry"]}


@pytest.fixture
def server(root: Path) -> Iterator[Served]:
    with served(root) as found:
        assert found.ask("POST", "/sync", OWNER, json={}).status_code == 200
        yield found


def test_a_page_is_made_changed_by_its_digest_and_taken_away(server: Served) -> None:
    made = answered(server, "POST", "/notes", SCRIBE, 201, json=FERRY)
    assert (made["path"], made["version"], made["provenance"]) == ("pages/a-second-ferry.md", 1, None)
    page = f"/notes/{made['notebook_id']}"
    etag = server.ask("GET", page, PILOT).headers["etag"]
    assert etag == f'"{made["digest"]}"'
    change = {"status": "complete", "summary": ""}
    answer = server.ask("PATCH", page, PILOT, json=change, headers={"If-Match": etag})
    changed = answer.json()
    assert (answer.status_code, changed["status"], changed["version"]) == (200, "complete", 2)
    assert answer.headers["etag"] == f'"{changed["digest"]}"' != etag
    for method, more in (("PATCH", {"json": {"title": "x"}}), ("DELETE", {})):
        error = answered(server, method, page, SCRIBE, 409, headers={"If-Match": etag}, **more)["error"]
        assert (error["type"], error["current_digest"]) == ("conflict", changed["digest"])
        assert "Ask Odile." in error["current_text"]
    answered(server, "PATCH", "/notes/pages/plan", SCRIBE, headers={"If-Match": "*"}, json={"title": "Plans"})
    gone = answered(server, "DELETE", page, SCRIBE, headers={"If-Match": f'W/"{changed["digest"]}"'})
    assert (gone["path"], gone["deleted"]) == (made["path"], True)
    assert not (server.root / made["path"]).exists()
    assert answered(server, "DELETE", page, SCRIBE, 404)["error"]["type"] == "no_such_note"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {**FERRY, "collection": "channels"},
        {**FERRY, "colour": "blue"},
        {**FERRY, "tags": "ferry"},
        {**FERRY, "language": "python"},
        {**FERRY, "title": " "},
        {**FERRY, "status": "lost"},
    ],
    ids=str,
)
def test_what_is_wrong_with_a_page_is_named(server: Served, body: dict[str, Any]) -> None:
    assert answered(server, "POST", "/notes", SCRIBE, 422, json=body)["error"]["type"] == "invalid_arguments"


def test_where_only_words_were_compared_the_list_says_why(server: Served) -> None:
    answered(server, "POST", "/channels/scribe/notes", SCRIBE, 201, json={"content": "The ferry waits."})
    (server.root / "channels/scribe/global/channel.toml").write_text('[members]\npilot = ["peek"]\n')
    asked = (("/channels/scribe/notes", SCRIBE), ("/channels/scribe/peek", PILOT), ("/search", SCRIBE))
    for path, session in asked:
        assert answered(server, "GET", path, session, params={"query": "ferry"})["degraded"] is None
    with ScriptedServer() as dead:
        (server.root / "notebook.toml").write_text(f'[search]\nembeddings = "openai:small"\nbase_url = "{dead.url}"\n')
        with served(server.root) as anew:
            for path, session in asked:
                answer = answered(anew, "GET", path, session, params={"query": "ferry"})
                assert answer["results"], path
                assert answer["degraded"].startswith(f"The embedding server at {dead.url}"), path
            assert answered(anew, "GET", "/channels/scribe/notes", SCRIBE)["degraded"] is None


def test_the_list_of_checkpoints_says_where_older_ones_are_lost(server: Served) -> None:
    made = answered(server, "POST", "/checkpoints", SCRIBE, 201, json={"name": "ebb"})
    assert answered(server, "GET", "/checkpoints", SCRIBE)["degraded"] is None
    server.app.state.notebook.refs.note_loss(datetime.now(UTC))
    answer = answered(server, "GET", "/checkpoints", SCRIBE)
    assert [one["id"] for one in answer["results"]] == [made["id"]]
    assert answer["degraded"].endswith("are gone: hot memory was emptied")


def test_lists_and_searches_are_narrowed(server: Served) -> None:
    answered(server, "POST", "/notes", SCRIBE, 201, json=FERRY)
    for params, found in (
        ({"tags": ["ferry", "x"]}, ["pages/a-second-ferry.md"]),
        ({"author": "agent:scribe", "since": "1h", "collection": "pages"}, ["pages/a-second-ferry.md"]),
        ({"tags": "ferry", "until": "1h"}, []),
        ({"tags": "ferry", "status": "complete"}, []),
    ):
        assert [row["path"] for row in answered(server, "GET", "/notes", PILOT, params=params)["results"]] == found
        asked = {"query": "Odile", "mode": "keyword", **params}
        rows = answered(server, "GET", "/search", PILOT, params=asked)["results"]
        assert [row["path"] for row in rows] == found
        assert not any({"text", "content"} & row.keys() for row in rows)
    error = answered(server, "GET", "/notes", PILOT, 422, params={"since": "soon"})["error"]
    assert "write a day as" in error["message"]


def test_the_stream_of_a_day_is_logged_shown_and_recalled(server: Served) -> None:
    line = {"content": "Odile moved the ferry", "tags": ["ferry"], "source": "harbour radio", "score": 0.9}
    logged = answered(server, "POST", "/log", SCRIBE, 201, json=line)
    kept = answered(server, "POST", "/log", OWNER, 201, json={"content": "The ferry is Odile's", "keep": True})
    day = answered(server, "GET", "/today", PILOT)
    assert logged in day["entries"]
    assert kept not in day["entries"]
    assert answered(server, "GET", "/today", PILOT, params={"day": "2001-01-01"})["entries"] == []
    last = answered(server, "GET", "/today", PILOT, params={"limit": 1})
    assert (last["entries"], last["earlier"]) == (day["entries"][-1:], len(day["entries"]) - 1)
    answered(server, "GET", "/today", PILOT, 422, params={"day": "soon"})
    answered(server, "GET", "/today", PILOT, 422, params={"limit": 0})
    asked = {"query": "ferry", "tags": "ferry", "since": "1d"}
    found = answered(server, "GET", "/recall", PILOT, params=asked)
    assert [(each["id"], each["source"]) for each in found["results"]] == [(logged["id"], "harbour radio")]
    assert found["partial"] == ""
    ids = {each["id"] for each in answered(server, "GET", "/recall", PILOT, params={"query": "ferry"})["results"]}
    assert ids >= {logged["id"], kept["id"]}
    answered(server, "POST", "/log", SCRIBE, 422, json={"content": "x" * 10_000})
    answered(server, "POST", "/log", SCRIBE, 422, json={"content": "x", "source": "owner"})


def test_the_owner_goes_back_to_what_an_agent_kept(server: Served) -> None:
    made = answered(server, "POST", "/checkpoints", SCRIBE, 201, json={"name": "before"})
    assert [each["id"] for each in answered(server, "GET", "/checkpoints", SCRIBE)["results"]] == [made["id"]]
    answered(server, "POST", "/log", SCRIBE, 201, json={"content": "Too much"})
    answered(server, "POST", "/notes", SCRIBE, 201, json=FERRY)
    answered(server, "POST", "/rollback", SCRIBE, 403, json={"id": made["id"]})
    rolled = answered(server, "POST", "/rollback", OWNER, json={"id": made["id"]})
    assert rolled["id"] == made["id"]
    assert {(each["path"], each["change"]) for each in rolled["changed"]} == {("pages/a-second-ferry.md", "created")}
    assert "Too much" not in str(answered(server, "GET", "/today", OWNER)["entries"])
    error = answered(server, "POST", "/rollback", OWNER, 404, json={"id": "nowhere"})["error"]
    assert error["type"] == "no_such_checkpoint"


def test_hot_memory_that_is_away_is_503_and_pages_are_not(root: Path) -> None:
    (root / "notebook.toml").write_text('[refs]\nurl = "redis://127.0.0.1:1"\ntimeout_seconds = 0.2\n')
    with served(root) as server:
        for method, path, more in (
            ("POST", "/log", {"json": {"content": "x"}}),
            ("GET", "/today", {}),
            ("GET", "/recall", {"params": {"query": "x"}}),
            ("POST", "/checkpoints", {"json": {}}),
        ):
            answer = server.ask(method, path, SCRIBE, **more)
            assert (answer.status_code, answer.json()["error"]["type"]) == (503, "backend_down"), path
            assert answer.headers["retry-after"].isdecimal()
        assert answered(server, "POST", "/notes", SCRIBE, 201, json=FERRY)["warnings"]
        answered(server, "POST", "/channels/scribe/notes", SCRIBE, 201, json={"content": "x"})
