"""The routes for what agents do: each use case's answer, conflicts with what to do, and who is answered at all."""

from __future__ import annotations

from collections.abc import Iterator
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
    assert "write a day like" in error["message"]


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
