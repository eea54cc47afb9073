"""From a broken export of memories to a brief that knows what a synthesis found out: by the command line, by HTTP and
by MCP, each from the beginning.

Models get no tool that audits, mends or imports: by MCP, the owner does that on a command line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from notebook_sync import Notebook, Session
from notebook_sync.surfaces.cli.main import run
from tests.bridge_server import asked, bridge_command, divine_truth
from tests.surfaces.doors import DOORS, Door
from tests.surfaces.http_clients import Served, served

OWNER = Session.owner()
SPEC = """---
domain: timetable
tags: [cache, harbour]
---
# Serve the timetable to the ticket desk

The desk asks for the timetable each minute, over a slow line to the mainland.
"""
DECISION = (
    "[DECISION] Serve the old timetable\nCONTEXT: The desk asks for the timetable each minute.\n"
    "REASONING: A timetable of this morning is better than none.\nOUTCOME: Nobody waits.\nTAGS: cache, harbour"
)
PROBLEM = (
    "[PROBLEM] The line to the mainland is full\nCONTEXT: The desk asks for the timetable each minute.\n"
    "REASONING: It keeps no copy.\nOUTCOME: Open.\nTAGS: harbour"
)
# As a program leaves it that was used for years: no times, nobody's name, no form, a link to nowhere, half a line.
EXPORT = (
    {"id": "m1", "content": DECISION, "created_at": None, "tags": ["agent:scribe", "cache"], "domain": "timetable"},
    {
        "id": "m2",
        "content": PROBLEM,
        "created_at": "last May",
        "agent": "unknown",
        "domain": "timetable",
        "relations": [{"type": "similar", "to": "nowhere"}],
    },
    {
        "id": "m3",
        "content": "the buoy fails in frost",
        "created_at": "2025-11-02T08:00:00Z",
        "agent": "pilot",
        "tags": ["insight"],
    },
    {"id": "m4", "created_at": "2025-11-02T08:00:00Z"},
)
UNSOLVED, SOLVED = "No memory tells what solves", "is solved by “Serve the old timetable”"


class Face(Protocol):
    """A way in, as far as it is one."""

    def audit(self) -> dict[str, Any]: ...
    def fix(self, *, dry_run: bool) -> dict[str, Any]: ...
    def memories(self) -> list[dict[str, Any]]: ...
    def brief(self) -> dict[str, Any]: ...
    def synthesize(self) -> dict[str, Any]: ...


class Cli:
    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._root = root
        self._capsys = capsys

    def run(self, *arguments: str, code: int = 0) -> Any:
        found = run(["-C", str(self._root), *arguments, "--session", "owner", "--json"])
        printed = self._capsys.readouterr()
        assert found == code, printed.err
        return json.loads(printed.out)

    def audit(self) -> dict[str, Any]:
        return dict(self.run("memory", "audit"))

    def fix(self, *, dry_run: bool) -> dict[str, Any]:
        return dict(self.run("memory", "fix", *(["--dry-run"] if dry_run else [])))

    def memories(self) -> list[dict[str, Any]]:
        return list(self.run("memory", "list")["results"])

    def brief(self) -> dict[str, Any]:
        return dict(self.run("context", "brief", "specs/desk.md"))

    def synthesize(self) -> dict[str, Any]:
        return dict(self.run("context", "synthesize", "specs/desk.md"))


class Http:
    def __init__(self, server: Served) -> None:
        self._server = server

    def _asked(self, method: str, path: str, **more: Any) -> Any:
        answer = self._server.ask(method, path, OWNER, **more)
        assert answer.is_success, answer.text
        return answer.json()

    def audit(self) -> dict[str, Any]:
        return dict(self._asked("GET", "/memories/audit"))

    def fix(self, *, dry_run: bool) -> dict[str, Any]:
        return dict(self._asked("POST", "/memories/fix", json={"dry_run": dry_run}))

    def memories(self) -> list[dict[str, Any]]:
        return list(self._asked("GET", "/memories")["results"])

    def brief(self) -> dict[str, Any]:
        return dict(self._asked("POST", "/compile_context", json={"task_spec": SPEC}))

    def synthesize(self) -> dict[str, Any]:
        return dict(self._asked("POST", "/synthesize", json={"task_spec": SPEC}))


class Mcp(Cli):
    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str], door: Door) -> None:
        super().__init__(root, capsys)
        self._door = door

    def brief(self) -> dict[str, Any]:
        return self._called("compile_context")

    def synthesize(self) -> dict[str, Any]:
        return self._called("synthesize")

    def _called(self, tool: str) -> dict[str, Any]:
        answer = self._door.call(OWNER, tool, {"task_spec": SPEC})
        assert "error" not in answer, answer
        return answer


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A notebook that asks a bridge, which says what stands beside it."""
    for name in ("MONGODB_URL", "REDIS_URL", "NOTEBOOK_SESSION"):
        monkeypatch.delenv(name, raising=False)
    root = tmp_path / "harbour"
    Notebook.init(root)
    command = [*bridge_command("nag", answer=tmp_path / "answer.md", log=tmp_path / "asked.jsonl")]
    (root / "notebook.toml").write_text(f"[tier2]\nenabled = true\ncommand = {json.dumps(command)}\n")
    (root / "specs").mkdir()
    (root / "specs/desk.md").write_text(SPEC)
    (tmp_path / "old.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in EXPORT) + '{"id": "m5", "cont\n')
    return root


@pytest.fixture(params=["command line", "http", "mcp"])
def face(request: pytest.FixtureRequest, root: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Face]:
    imported = Cli(root, capsys).run("memory", "import", str(root.parent / "old.jsonl"), code=1)
    assert (imported["read"], imported["added"], imported["already"], len(imported["failed"])) == (5, 3, 0, 2)
    assert [(one["link"]["to"], imported["lossless"]) for one in imported["links_dropped"]] == [("nowhere", True)]
    if request.param == "command line":
        yield Cli(root, capsys)
    elif request.param == "http":
        with served(root) as server:
            yield Http(server)
    else:
        with DOORS["mcp"](root) as door:
            yield Mcp(root, capsys, door)


def test_a_broken_import_becomes_a_brief_that_knows_what_a_synthesis_found_out(face: Face, root: Path) -> None:
    before = face.audit()
    assert (before["memories"], before["links_broken"]) == (3, 0)
    assert before["needs_review"] >= 1
    shown = face.fix(dry_run=True)
    fixed = face.fix(dry_run=False)
    assert (fixed["changes"], fixed["applied"]) == (shown["changes"], True)
    after = face.audit()
    assert len(after["findings"]) < len(before["findings"])

    ids = {row["title"]: row["notebook_id"] for row in face.memories()}
    decision, problem = ids["Serve the old timetable"], ids["The line to the mainland is full"]
    first = face.brief()
    assert {decision, problem} <= {one["id"] for one in first["memories_used"]}
    assert UNSOLVED in first["task_brief_md"]
    assert face.brief()["context_hash"] == first["context_hash"]

    link = {"from": decision, "to": problem, "type": "solves", "confidence": 0.9, "reasoning": "Nobody asks twice"}
    unknown = {**link, "to": "nowhere00000"}
    (root.parent / "answer.md").write_text(divine_truth([link, unknown, {**link, "type": "adores"}]))
    made = face.synthesize()
    assert (made["source"], made["cached"]) == ("bridge", False)
    assert "Guardrails" in made["synthesis_md"]
    assert "ALL you need to know" not in made["synthesis_md"]
    assert [(one["from"], one["type"], one["to"]) for one in made["links"]["ingested"]] == [
        (decision, "solves", problem)
    ]
    assert len(made["links"]["dropped"]) == 2
    (file,) = (root / "memories/decision").glob("*.md")
    assert problem in file.read_text().partition("relations:")[2]

    second = face.brief()
    assert second["context_hash"] != first["context_hash"]
    assert SOLVED in second["task_brief_md"]
    assert UNSOLVED not in second["task_brief_md"]
    again = face.synthesize()
    assert (again["cached"], again["synthesis_id"]) == (True, made["synthesis_id"])
    assert again["context_hash"] == made["context_hash"] == second["context_hash"]
    assert len(asked(root.parent / "asked.jsonl")) == 1
