"""The commands of memories: what they read, the text that they print, and the pictures that they write."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from notebook_sync.surfaces.cli.text.memories import of_adding, of_fix, of_inferring, of_memories
from notebook_sync.surfaces.cli.text.rows import columns
from tests.scripted_llm import ScriptedServer, chat

Answer = Callable[..., Any]
Told = Callable[..., tuple[int, str, str]]

DECISION = """[DECISION] Serve the old timetable
CONTEXT: The office asks for the timetable each minute.
REASONING: A timetable of this morning is better than none.
OUTCOME: Nobody waits.
TAGS: cache, harbour
"""
PROBLEM = """[PROBLEM] The office asks for the timetable each minute
CONTEXT: The line to the mainland is full.
REASONING: The desk has no copy of its own.
OUTCOME: Open.
TAGS: harbour
"""
SCRIBE, OWNER = ("--agent", "scribe"), ("--session", "owner")


@pytest.fixture
def told(told: Told) -> Told:
    """Runs a command of the group."""
    return partial(told, "memory")


@pytest.fixture
def two(answer: Answer) -> tuple[str, str]:
    """The ids of a decision and of a problem."""
    decision = answer("add", DECISION, "--domain", "timetable", *SCRIBE)
    problem = answer("add", PROBLEM, "--domain", "timetable", "--priority", "9", *SCRIBE)
    return decision["notebook_id"], problem["notebook_id"]


def test_an_added_memory_is_shown_with_the_command_that_takes_it_back(told: Told, root: Path) -> None:
    code, printed, _ = told("add", DECISION, "--domain", "timetable", *OWNER)
    assert code == 0
    path = printed.partition(" is written\n")[0]
    assert (root / path).is_file()
    assert "kind        decision\ndomain      timetable\nagent       owner\ntags        cache, harbour\n" in printed
    assert printed.endswith(f"undo        notebook-sync -C {root} delete {path} --session owner\n")


def test_a_memory_is_read_from_a_file_or_standard_input(
    answer: Answer, told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "decision.txt").write_text(DECISION)
    assert answer("add", "--content-file", str(tmp_path / "decision.txt"))["kind"] == "decision"
    (tmp_path / "odd.txt").write_bytes(b"ab\xff")
    code, _, complaint = told("add", "--content-file", str(tmp_path / "odd.txt"))
    assert code == 2
    assert complaint.endswith("cannot be read as text: it is not UTF-8 at byte 2; save it as UTF-8\n")
    monkeypatch.setattr("sys.stdin", io.StringIO(PROBLEM))
    assert answer("add", "-")["kind"] == "problem"


def test_a_list_without_matches_says_what_to_do_and_a_search_fails(told: Told, root: Path) -> None:
    how = "no memories match; add one with: notebook-sync memory add TEXT"
    assert told("list", "--domain", "pier") == (0, "", f"notebook-sync: {how}\n")
    how = "no memory matches; list all with: notebook-sync memory list"
    assert told("search", "ferry") == (1, "", f"notebook-sync: {how}\n")


def test_a_search_shows_the_similarity_and_a_list_the_score(told: Told, two: tuple[str, str]) -> None:
    decision, _ = two
    found = told("search", "serve the old timetable", "--tags", "cache,nothing")[1]
    assert found == f"100%  {decision}  decision  timetable  Serve the old timetable\n"
    assert told("list", "--tags", "cache")[1] == f"0.50  {decision}  decision  timetable  Serve the old timetable\n"


def test_an_audit_shows_each_advice_once_and_a_fix_what_is_left(told: Told, root: Path) -> None:
    for name in ("fog", "ice"):
        (root / f"memories/{name}.md").write_text(
            f"---\nagent: pilot\ntags: [problem]\ncreated_at: sometime\n---\n# {name}\n"
        )
    assert told("audit")[1].count("write kind: ") == 1
    assert "none of them made: --dry-run" in told("fix", "--dry-run")[1]
    assert "  memories/fog.md:4  created_at" in told("fix")[1]


def test_an_updated_link_is_shown(answer: Answer, told: Told, two: tuple[str, str]) -> None:
    decision, problem = two
    answer("link", decision, "solves", problem, "--confidence", "0.9", "--reasoning", "Nobody waits")
    updated = told("link", decision, "solves", problem, "--confidence", "0.9", "--reasoning", "It is quick")[1]
    assert updated == f"updated: {decision} solves {problem} (90%): It is quick\n"


def test_a_dry_run_shows_the_links_that_would_be_added(answer: Answer, told: Told, model: ScriptedServer) -> None:
    for kind in ("DECISION", "PROBLEM"):
        answer("add", DECISION.replace("DECISION", kind), *SCRIBE)
    link = {"pair": 1, "type": "solves", "reverse": False, "confidence": 0.8, "reasoning": "It does"}
    model.say(chat(json.dumps({"links": [link, {**link, "type": "adores"}]})))
    code, printed, _ = told("infer", "--dry-run")
    would, dropped = printed.splitlines()
    assert (code, would.startswith("would be added  "), dropped.startswith("dropped  ")) == (0, True, True)
    assert told("infer")[1].startswith("added    ")
    assert sorted(row["relations"] for row in answer("list")["results"]) == [0, 1]


def test_an_import_reads_mapped_columns(answer: Answer, told: Told, tmp_path: Path) -> None:
    export = tmp_path / "old.jsonl"
    export.write_text('{"nr": 7, "body": "The buoy fails in frost"}\n')
    for wrong in ("body", "=content", "body="):
        assert told("import", str(export), "--map", wrong, *OWNER)[0] == 2
    shown = answer("import", str(export), "--map", "body=content", "--map", "nr=id", *OWNER)
    assert (shown["added"], shown["columns"], shown["not_taken"]) == (1, {"id": "id", "text": "content"}, [])


def test_an_import_shows_what_became_of_the_records(told: Told, tmp_path: Path) -> None:
    export = tmp_path / "old.jsonl"
    records = [
        {"id": "m1", "content": PROBLEM, "created_at": "2025-11-02T08:00:00Z", "agent": "pilot"},
        {"id": "m2", "content": "The buoy fails in frost", "created_at": None, "tags": "agent:pilot,buoy", "mood": 5},
    ]
    export.write_text("".join(f"{json.dumps(one)}\n" for one in records))
    assert told("import", str(export), "--dry-run", *OWNER)[1].startswith("2 records read: 2 would be added, ")
    assert told("import", str(export), *OWNER)[1].startswith(
        "2 records read: 2 added, 0 here already, 0 failed\n"
        "columns   id from `id`, text from `content`, time from `created_at`, agent from `agent`, tags from `tags`; "
        "not taken: mood\n"
    )
    with export.open("a") as more:
        more.write("no JSON\n")
    code, printed, _ = told("import", str(export), *OWNER)
    assert code == 1
    assert "3: " in printed
    export.write_text("\n")
    code, printed, _ = told("import", str(export), *OWNER)
    assert code == 1
    assert "warning  old.jsonl has no records; give memories as JSON lines, " in printed


MERMAID = ("--format", "mermaid")


@pytest.mark.parametrize("session", ["owner", "task", "external"])
@pytest.mark.parametrize(
    "place",
    ["runtime/standing-orders.md", "runtime/new.mmd", "facts/core.md", ".notebook/new.mmd", "facts/../Runtime/new.md"],
)
def test_a_graph_never_becomes_a_part_of_the_prompt_or_of_the_program(
    told: Told, root: Path, place: str, session: str
) -> None:
    before = {path: path.read_bytes() for path in root.rglob("*.m*")}
    code, _, complaint = told("graph", str(root / place), *MERMAID, "--session", session)
    assert (code, "name another file" in complaint) == (3, True)
    assert {path: path.read_bytes() for path in root.rglob("*.m*")} == before


def test_a_graph_only_replaces_an_unchanged_graph(told: Told, two: tuple[str, str], root: Path, tmp_path: Path) -> None:
    for note in (root / "pages/plan.md", tmp_path / "diary.md"):
        note.write_text("flowchart TD\n    %% by hand\n")
        code, _, complaint = told("graph", str(note), *MERMAID, *OWNER)
        assert (code, "name another file" in complaint) == (2, True)
        assert note.read_text() == "flowchart TD\n    %% by hand\n"
    for graph in (root / "pages/graph.md", tmp_path / "graph.md"):
        assert [told("graph", str(graph), *MERMAID, "--limit", limit)[0] for limit in ("2", "1")] == [0, 0]
        assert "of 2 memories" in graph.read_text()
        changed = f"{graph.read_text()}Odile drew a line below it.\n"
        graph.write_text(changed)
        assert told("graph", str(graph), *MERMAID)[0] == 2
        assert graph.read_text() == changed


def test_no_picture_goes_where_a_session_may_not_write(told: Told, root: Path, tmp_path: Path) -> None:
    (tmp_path / "way.svg").symlink_to(root / "pages/way.svg")
    for place in (root / "pages/graph.svg", tmp_path / "way.svg", root / "channels/pilot/global/graph.svg"):
        code, _, complaint = told("graph", str(place), "--session", "external")
        assert (code, "name another file" in complaint) == (3, True)
        assert not place.exists()
    assert told("graph", str(root / "channels/pilot/global/graph.svg"), *SCRIBE)[0] == 3
    code, printed, _ = told("graph", str(tmp_path / "way.svg"), *SCRIBE)
    assert (code, printed.endswith(" bytes\n")) == (0, True)
    assert (root / "pages/way.svg").exists()


def test_suggested_links_are_read_from_a_file_or_standard_input(
    answer: Answer, told: Told, two: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decision, problem = two
    link = {"from": decision, "type": "solves", "to": problem, "reasoning": "Nobody waits"}
    file = tmp_path / "links.json"
    file.write_text(json.dumps([link]))
    taken = answer("ingest", str(file), *SCRIBE)
    assert [(one["action"], one["confidence"]) for one in taken["ingested"]] == [("added", 0.5)]
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps({"links": [link, {**link, "to": "gone"}]})))
    code, printed, _ = told("ingest", "-", *SCRIBE)
    assert code == 1
    assert printed.splitlines() == [
        f"kept     {decision} solves {problem} (50%): Nobody waits",
        f"dropped  {decision} solves gone: there is no memory 'gone'",
    ]
    file.write_text("[{")
    code, _, complaint = told("ingest", str(file))
    assert (code, "links.json is not JSON" in complaint) == (2, True)


@pytest.mark.parametrize(
    ("asked", "code", "said"),
    [
        (["add"], 2, "give the content, as in: notebook-sync "),
        (["add", "x", "--content-file", "y"], 2, "give it once"),
        (["add", "--content-file", "nowhere.txt"], 2, "nowhere.txt cannot be read as text: no such file or directory"),
        (["add", "--content-file", "a\0b"], 2, "no file can be called that; name a file of text"),
        (["list", "--tags", ","], 2, "--tags ferry,winter"),
        (["link", "a", "solves", "b", "--confidence", "2"], 2, "confidence"),
        (["import", "", *OWNER], 2, "name a file"),
        (["import", "nowhere.jsonl", *OWNER], 2, "nowhere.jsonl"),
        (["graph", "memories.png"], 2, "name a file that ends in .svg"),
        (["graph", "memories.svg", *MERMAID], 2, "name a file that ends in .mmd or .md"),
        (["graph", "-", "--json"], 2, "- prints the picture itself"),
        (["graph", "nowhere/memories.svg"], 1, "cannot be written"),
        (["serach", "x"], 2, "did you mean 'memory search'?"),
    ],
)
def test_what_cannot_be_done_says_what_to_do_instead(told: Told, asked: list[str], code: int, said: str) -> None:
    found, printed, complaint = told(*asked)
    assert found == code
    assert said in (complaint.removeprefix("notebook-sync: ") or json.loads(printed)["error"]["message"])


def test_a_line_fits_the_terminal_and_has_no_control_characters() -> None:
    row = {
        "notebook_id": "k3v9x1q8m2ab",
        "kind": "",
        "domain": "",
        "score": None,
        "needs_review": False,
        "title": "Boats \x1b[31m" + "船" * 60,
    }
    (line,) = of_memories({"results": [row]}, 60).splitlines()
    assert columns(line) <= 60
    assert "\x1b" not in line
    added = {
        **dict.fromkeys(("path", "title", "notebook_id", "kind", "domain", "agent"), "\x1b]0;x"),
        "tags": ["\u202e"],
        "priority": 7,
        "structured": "given",
        "warnings": ["\x07"],
    }
    fixed = {
        "changes": [{"path": "\x1b", "field": "\x1b", "before": None, "after": "\x1b", "because": "\x1b"}],
        "applied": False,
        "left": [{"path": "\x1b", "line": 1, "what": "\x1b", "fix": "\x1b"}],
        "left_out": {"changes": 0, "left": 0},
        "backup": "\x1b",
        "trouble": "\x1b",
    }
    inferred = {"links": [], "dropped": [{"link": {"from": "\x1b" * 99}, "reason": "\x1b"}, {"link": 7, "reason": ""}]}
    for text in (of_adding(added), of_fix(fixed), of_inferring(inferred)):
        assert not any(mark in text for mark in "\x1b\x07\u202e")
