"""What the HTTP API answers: each route's use case, conflicts with what to do, and errors as at every door."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import anyio
import pytest

from notebook_sync import Notebook, Session
from notebook_sync.events import Events
from notebook_sync.surfaces.http.events import Streams
from notebook_sync.surfaces.http.metrics import Metrics
from tests.surfaces.http_clients import Served, served

OWNER, TASK, EXTERNAL = Session.owner(), Session.task("scribe"), Session.external("herald")
REMINDERS = "# Reminders\n\n<!-- - [ ] Task -->\n\n## Today\n\n- [ ] Check the ropes\n"
RULES = "## Permanent Rules\n\n- **Odile** (odile@ferry.example): answer at once\n"


@pytest.fixture
def server(root: Path) -> Iterator[Served]:
    (root / "runtime/reminders.md").write_text(REMINDERS)
    (root / "runtime/external-communications.md").write_text(RULES)
    (root / "channels/pilot").mkdir(parents=True)
    (root / "channels/pilot/berth.md").write_text("# Berth\n\nThe secret berth.\n")
    with served(root) as found:
        assert found.ask("POST", "/sync", OWNER, json={}).status_code == 200
        yield found


def test_a_note_and_its_section_with_the_digest_as_etag(server: Served) -> None:
    answer = server.ask("GET", "/notes/pages/plan", OWNER)
    note = answer.json()
    assert (note["path"], note["title"], note["section"]) == ("pages/plan.md", "Plan", None)
    assert note["text"] == (server.root / "pages/plan.md").read_text()
    assert answer.headers["etag"] == f'"{note["digest"]}"'
    assert [one["anchor"] for one in note["sections"]] == ["plan", "budget"]
    part = server.ask("GET", "/notes/pages/plan.md", OWNER, params={"section": "Budget"}).json()
    assert (part["section"], part["text"], part["digest"]) == ("budget", "## Budget\n\n100\n", note["digest"])
    missing = server.ask("GET", "/notes/pages/plan.md", OWNER, params={"section": "x"})
    assert (missing.status_code, missing.json()["error"]["type"]) == (404, "no_such_note")


def test_an_agent_is_shown_no_others_prompt(server: Served) -> None:
    (server.root / "channels/scribe").mkdir()
    (server.root / "channels/scribe/own.md").write_text("Kept by scribe.\n")
    wanted = {"as": "task:scribe", "include": "notes"}
    for session in (OWNER, TASK):
        assert "Kept by scribe." in server.ask("GET", "/prompt", session, params=wanted).json()["text"]
    refused = server.ask("GET", "/prompt", Session.task("pilot"), params=wanted)
    assert (refused.status_code, refused.json()["error"]["type"]) == (403, "not_permitted")


def test_a_conflict_says_what_the_file_says_now(server: Served) -> None:
    digest = server.ask("GET", "/notes/reminders.md", OWNER).json()["digest"]
    edit = {"file": "reminders.md", "action": "append_to_section", "section": "Today", "content": "- [ ] Oil the winch"}
    by_hand = REMINDERS + "- [ ] Paint the quay\n"
    (server.root / "runtime/reminders.md").write_text(by_hand)
    for stale in ({"expected_digest": digest}, {}):
        headers = {} if stale else {"If-Match": f'"{digest}"'}
        answer = server.ask("POST", "/edit", OWNER, json={**edit, **stale}, headers=headers)
        error = answer.json()["error"]
        assert (answer.status_code, error["type"], error["path"]) == (409, "conflict", "runtime/reminders.md")
        assert error["current_text"] == by_hand
        assert (server.root / "runtime/reminders.md").read_text() == by_hand
    done = server.ask("POST", "/edit", OWNER, json=edit, headers={"If-Match": error["current_digest"]})
    assert done.status_code == 200
    assert (server.root / "runtime/reminders.md").read_text() == by_hand + "- [ ] Oil the winch\n"
    assert server.ask("GET", "/notes/reminders.md", OWNER).json()["digest"] == done.json()["digest"]


def test_if_match_and_expected_digest_must_not_differ(server: Served) -> None:
    edit = {"file": "reminders.md", "action": "remove_entry", "entry_match": "ropes", "expected_digest": "aa"}
    assert server.ask("POST", "/edit", OWNER, json=edit, headers={"If-Match": '"bb"'}).status_code == 422


@pytest.mark.parametrize("session", [TASK, EXTERNAL], ids=lambda one: one.kind)
def test_an_agent_changes_nothing_of_the_owners(server: Served, session: Session) -> None:
    edit = {"file": "reminders.md", "action": "remove_entry", "entry_match": "ropes"}
    for path, body in (("/edit", edit), ("/undo", {"file": "reminders.md"}), ("/tools/notebook_edit", edit)):
        answer = server.ask("POST", path, session, json=body)
        assert (answer.status_code, answer.json()["error"]["type"]) == (403, "not_permitted"), path
    assert (server.root / "runtime/reminders.md").read_text() == REMINDERS


def test_a_note_that_never_said_anything_else_is_not_undone_but_deleted(server: Served) -> None:
    edit = {"file": "pages/new.md", "action": "write", "content": "New."}
    assert server.ask("POST", "/edit", OWNER, json=edit).status_code == 200
    refused = server.ask("POST", "/undo", OWNER, json={"file": "pages/new.md"})
    assert (refused.status_code, refused.json()["error"]["type"]) == (422, "edit_failed")
    assert "another way back" in refused.json()["error"]["next"]
    assert "notebook-sync" not in refused.text


def test_undo_history_and_diff(server: Served) -> None:
    edit = {"file": "reminders.md", "action": "toggle_checkbox", "entry_match": "ropes", "reason": "done by Ines"}
    assert server.ask("POST", "/edit", OWNER, json=edit).status_code == 200
    latest, *_ = server.ask("GET", "/history/reminders.md", OWNER).json()
    assert latest["changed_by"] == "owner"
    diff = server.ask("GET", "/diff/reminders.md", OWNER).json()["diff"]
    assert "-- [ ] Check the ropes" in diff
    assert "+- [x] Check the ropes" in diff
    undone = server.ask("POST", "/undo", OWNER, json={"file": "reminders.md"})
    assert undone.json()["changed"]
    assert (server.root / "runtime/reminders.md").read_text() == REMINDERS
    assert server.ask("GET", "/diff/reminders.md", OWNER, params={"rev": "no such"}).status_code == 404


def test_rules_that_are_withheld_are_withheld_here_too(root: Path) -> None:
    (root / "notebook.toml").write_text(
        '[[prompt.files]]\npath = "runtime/external-communications.md"\nsessions = ["owner"]\n'
        '[[prompt.files]]\npath = "runtime/reminders.md"\nsessions = ["owner"]\n'
    )
    with served(root) as server:
        for path in ("/rules?identity=x", "/reminders"):
            assert server.ask("GET", path, OWNER).status_code == 200
            assert server.ask("GET", path, TASK).json()["error"]["type"] == "no_such_note"


def test_tools_are_those_of_the_session(server: Served) -> None:
    assert len(server.ask("GET", "/tools", OWNER).json()) > len(server.ask("GET", "/tools", EXTERNAL).json())
    answer = server.ask("POST", "/tools/notebook_read", EXTERNAL, json={"id": "reminders.md#today"})
    assert answer.json()["section"] == "today"
    unknown = server.ask("POST", "/tools/notebook_burn", OWNER, json={})
    assert (unknown.status_code, unknown.json()["error"]["type"]) == (404, "no_such_tool")


def test_metrics_are_prometheus_text_without_a_name(server: Served) -> None:
    server.ask("GET", "/notes/channels/pilot/berth.md", OWNER)
    answer = server.ask("GET", "/metrics", OWNER)
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = answer.text.splitlines()
    assert 'notebook_http_requests_total{method="GET",route="/api/v1/notes/{note:path}",status="200"} 1.0' in lines
    assert "notebook_mirror_up 1.0" in lines
    assert "notebook_behind_files 0.0" in lines
    assert "berth" not in answer.text
    assert "scribe" not in answer.text


def test_a_store_that_is_away_is_503_and_the_prompt_is_not(root: Path) -> None:
    (root / "notebook.toml").write_text('[mirror]\nurl = "mongodb://127.0.0.1:1/"\ntimeout_seconds = 0.2\n')
    with served(root) as server:
        answer = server.ask("GET", "/notes", OWNER)
        assert (answer.status_code, answer.json()["error"]["type"]) == (503, "backend_down")
        assert answer.headers["retry-after"].isdecimal()
        assert server.ask("GET", "/prompt", OWNER).status_code == 200
        status = server.ask("GET", "/status", OWNER)
        assert (status.status_code, status.json()["mirror"]["ok"]) == (200, False)
        metrics = server.ask("GET", "/metrics", OWNER).text
        assert "notebook_mirror_up 0.0" in metrics
        assert "notebook_notes " not in metrics


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b'"x"', b"\xff\xfe{", b'{"text": 1}', b'{"text": "\\ud800"}', b'{"\\ud800": 1}',
     b"[" * 100_000, b'{"text": "x", "more": NaN}', b'{"text": ""}', b'{"text": "  "}'],
    ids=lambda body: repr(body[:20]),
)  # fmt: skip
def test_a_body_that_is_wrong_is_told_so(server: Served, body: bytes) -> None:
    answer = server.ask("POST", "/explain", OWNER, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in {400, 422}
    assert answer.json()["error"]["type"] in {"bad_request", "invalid_arguments"}


def test_what_was_wrong_is_named_and_not_repeated(server: Served) -> None:
    long = "x" * 100_000
    answer = server.ask("POST", "/explain", OWNER, json={"text": long, "rope": long})
    message = answer.json()["error"]["message"]
    assert "'rope'" in message
    assert len(message) < 300
    answer = server.ask("POST", "/explain", OWNER, json={long: long})
    assert len(answer.json()["error"]["message"]) < 300


@pytest.mark.parametrize("path", ["/notes?session=owner", "/search?query=x&agent=pilot", "/tools?agent=pilot"])
def test_a_parameter_that_means_nothing_is_refused(server: Served, path: str) -> None:
    answer = server.ask("GET", path, TASK)
    assert answer.status_code == 422
    assert "there is no parameter" in answer.json()["error"]["message"]


def test_who_comes_again_is_told_of_all_that_the_log_has(tmp_path: Path) -> None:
    events = Events(tmp_path)
    ids = [str((events.record("edit", OWNER, path="pages/plan.md") or {})["id"]) for _ in range(1_500)]

    async def told() -> list[str]:
        found = []
        async for event in Streams(events, Metrics(dict, dict)).follow(ids[0], None):
            found.append(event["id"] if event else "")
            if len(found) == len(ids) - 1:
                return found
        raise AssertionError("the stream ended")

    assert anyio.run(told) == ids[1:]


def test_many_at_once_all_keep_what_they_wrote(server: Served) -> None:
    """Edits of one file from many requests at once, beside reads, searches and syncs of the same notebook."""
    numbers = range(24)
    server.token(OWNER)

    def work(number: int) -> int:
        entry = {"action": "append_to_section", "section": "Today", "content": f"- [ ] rope number {number}."}
        answer = server.ask("POST", "/edit", OWNER, json={"file": "reminders.md", **entry})
        for path in ("/notes/reminders.md", "/search?query=rope", "/prompt"):
            assert server.ask("GET", path, OWNER).status_code == 200
        if number % 8 == 0:
            assert server.ask("POST", "/sync", OWNER, json={}).status_code == 200
        return answer.status_code

    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(work, numbers))
    text = (server.root / "runtime/reminders.md").read_text()
    assert set(statuses) <= {200, 409}
    written = [number for number, status in zip(numbers, statuses, strict=True) if status == 200]
    assert written
    for number in numbers:
        assert text.count(f"rope number {number}.") == (number in written)
    with Notebook.open(server.root) as notebook:
        assert notebook.admin.verify().consistent
        assert json.dumps(notebook.read("reminders.md")["content"]) == json.dumps(text)
