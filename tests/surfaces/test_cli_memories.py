"""The commands of memories: what they take, the shapes of their JSON, exit codes, what people read."""

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
ROW = {
    *("notebook_id", "path", "title", "kind", "domain", "tags", "agent", "priority", "score", "created_at"),
    *("needs_review", "relations", "accesses"),
}
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


def titles(rows: list[dict[str, Any]]) -> list[str]:
    return [row["title"] for row in rows]


@pytest.mark.parametrize(
    ("call", "keys"),
    [
        (
            ["add", DECISION, *SCRIBE],
            {
                *("notebook_id", "path", "title", "kind", "domain", "tags", "agent", "priority", "version", "status"),
                *("needs_review", "structured", "warnings"),
            },
        ),
        (["list"], ROW),
        (["search", "timetable"], ROW | {"similarity"}),
        (["score"], {"scored", "mean", "sigma", "at"}),
        (
            ["audit"],
            {
                *("memories", "timestamps", "agents", "unstructured", "needs_review", "importance", "similar_share"),
                *("links", "links_broken", "tags", "score", "findings", "findings_left_out"),
            },
        ),
        (["audit", "--fix", "--dry-run"], {"changes", "applied", "left", "left_out", "backup", "trouble", "warnings"}),
        (["graph", "memories.svg"], {"path", "bytes"}),
        (
            ["figures"],
            {"memories", "structured_share", "needs_review", "causal_links", "score", "compile", "synthesis"},
        ),
    ],
    ids=lambda value: "-".join(value[:1]) if isinstance(value, list) else "",
)
@pytest.mark.usefixtures("two")
def test_the_shapes_of_json(
    answer: Answer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: list[str], keys: set[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    told = answer(*call)
    assert all(row.keys() == keys for row in (told if isinstance(told, list) else [told]))


def test_memories_are_narrowed(answer: Answer, told: Told, two: tuple[str, str]) -> None:
    for options, found in ((["--tags", "cache,nothing"], 1), (["--domain", "timetable"], 2), (["--limit", "1"], 1)):
        assert len(answer("list", *options)) == found
    empty = "notebook-sync: no memories with this --domain and --needs-review\n"
    assert told("list", "--domain", "pier", "--needs-review") == (0, "", empty)


def test_an_audit_names_what_to_write_once_and_a_fix_what_is_left(answer: Answer, told: Told, root: Path) -> None:
    for name in ("fog", "ice"):
        (root / f"memories/{name}.md").write_text(
            f"---\nagent: pilot\ntags: [problem]\ncreated_at: sometime\n---\n# {name}\n"
        )
    assert told("audit")[1].count("write kind: ") == 1
    (change, _) = answer("audit", "--fix", "--dry-run")["changes"]
    assert change.keys() == {"path", "field", "before", "after", "because"}
    assert "none of them made: --dry-run" in told("audit", "--fix", "--dry-run")[1]
    assert "  memories/fog.md:4  created_at" in told("audit", "--fix")[1]


def test_a_memory_comes_from_an_argument_a_file_or_standard_input(
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


def test_what_nobody_says_is_an_error_where_that_is_asked_for(told: Told, answer: Answer, root: Path) -> None:
    for lacking, said in ((("--session", "task"), "nobody is named"), (("--created-at", "May", *SCRIBE), "'May'")):
        code, printed, complaint = told("add", DECISION, "--strict", *lacking)
        assert (code, printed) == (2, "")
        assert said in complaint
    assert not list((root / "memories").rglob("*.md"))
    named = ("--created-at", "2026-03-01T09:00:00+01:00", *SCRIBE)
    assert answer("add", DECISION, "--strict", *named)["agent"] == "scribe"
    assert answer("add", DECISION, "--strict", "--lenient")["kind"] == "decision"


def test_a_notebook_without_memories_says_how_one_is_made(told: Told, root: Path) -> None:
    how = f"no memories; one is written with: notebook-sync -C {root} memory add TEXT"
    assert told("list") == (0, "", f"notebook-sync: {how}\n")
    code, printed, complaint = told("search", "ferry")
    assert (code, printed) == (0, "")
    assert "no memory comes near" in complaint


def test_a_link_is_added_and_updated(answer: Answer, told: Told, two: tuple[str, str]) -> None:
    decision, problem = two
    link = answer("link", decision, "solves", problem, "--confidence", "0.9", "--reasoning", "Nobody waits")
    assert (link["confidence"], link["reasoning"]) == (0.9, "Nobody waits")
    updated = told("link", decision, "solves", problem, "--confidence", "0.9", "--reasoning", "It is quick")[1]
    assert updated.startswith(f"updated: {decision} solves {problem} (90%)")


def test_links_are_inferred_by_a_language_model(answer: Answer, told: Told, model: ScriptedServer) -> None:
    for kind in ("DECISION", "PROBLEM"):
        answer("add", DECISION.replace("DECISION", kind), *SCRIBE)
    link = {"pair": 1, "type": "solves", "reverse": False, "confidence": 0.8, "reasoning": "It does"}
    model.say(chat(json.dumps({"links": [link, {**link, "type": "adores"}]})))
    assert answer("infer").keys() >= {"links", "dropped", "pairs"}
    code, printed, complaint = told("infer")
    assert (code, complaint) == (0, "notebook-sync: nothing is changed; --apply writes them down\n")
    assert " solves " in printed
    assert "dropped" in printed
    assert told("infer", "--apply")[0] == 0
    assert sorted(row["relations"] for row in answer("list")) == [0, 1]


def test_an_import_reads_mapped_columns(answer: Answer, told: Told, tmp_path: Path) -> None:
    export = tmp_path / "old.jsonl"
    export.write_text('{"nr": 7, "body": "The buoy fails in frost"}\n')
    for wrong in ("body", "=content", "body="):
        assert told("import", str(export), "--map", wrong, *OWNER)[0] == 2
    shown = answer("import", str(export), "--map", "body=content", "--map", "nr=id", *OWNER)
    assert (shown["added"], shown["columns"], shown["not_taken"]) == (1, {"id": "id", "text": "content"}, [])


def test_an_import_tells_what_became_of_each_record(answer: Answer, told: Told, tmp_path: Path) -> None:
    export = tmp_path / "old.jsonl"
    records = [
        {"id": "m1", "content": PROBLEM, "created_at": "2025-11-02T08:00:00Z", "agent": "pilot"},
        {"id": "m2", "content": "The buoy fails in frost", "created_at": None, "tags": "agent:pilot,buoy", "mood": 5},
    ]
    export.write_text("".join(f"{json.dumps(one)}\n" for one in records))
    shown = answer("import", str(export), "--dry-run", *OWNER)
    counted = {"read", "added", "already", "needs_review", "failed"}
    assert shown.keys() >= {*counted, "columns", "not_taken", "backup", "lossless"}
    assert (shown["read"], shown["added"], shown["lossless"]) == (2, 2, True)
    assert answer("list") == []
    assert told("import", str(export), *OWNER)[1].startswith(
        "2 records read: 2 added, 0 here already, 0 failed\n"
        "columns   id from `id`, text from `content`, time from `created_at`, agent from `agent`, tags from `tags`; "
        "not taken: mood\n"
    )
    assert len(answer("list")) == 2
    again = answer("import", str(export), *OWNER)
    assert (again["added"], again["already"]) == (0, 2)
    with export.open("a") as more:
        more.write("no JSON\n")
    code, printed, _ = told("import", str(export), *OWNER)
    assert code == 1
    assert "3: " in printed
    export.write_text("\n")
    code, printed, _ = told("import", str(export), *OWNER)
    assert code == 1
    assert "warning  old.jsonl has no records; give memories as JSON lines, " in printed


@pytest.mark.parametrize("session", ["owner", "task", "external"])
@pytest.mark.parametrize(
    "place",
    ["runtime/standing-orders.md", "runtime/new.mmd", "facts/core.md", ".notebook/new.mmd", "facts/../Runtime/new.md"],
)
def test_a_graph_never_becomes_a_part_of_the_prompt_or_of_the_program(
    told: Told, root: Path, place: str, session: str
) -> None:
    before = {path: path.read_bytes() for path in root.rglob("*.m*")}
    code, _, complaint = told("graph", str(root / place), "--mermaid", "--session", session)
    assert (code, "name another file" in complaint) == (3, True)
    assert {path: path.read_bytes() for path in root.rglob("*.m*")} == before


def test_a_graph_takes_the_place_of_a_graph_alone(told: Told, two: tuple[str, str], root: Path, tmp_path: Path) -> None:
    for note in (root / "pages/plan.md", tmp_path / "diary.md"):
        note.write_text("flowchart TD\n    %% by hand\n")
        code, _, complaint = told("graph", str(note), "--mermaid", *OWNER)
        assert (code, "name another file" in complaint) == (2, True)
        assert note.read_text() == "flowchart TD\n    %% by hand\n"
    for graph in (root / "pages/graph.md", tmp_path / "graph.md"):
        assert [told("graph", str(graph), "--mermaid", "--limit", limit)[0] for limit in ("2", "1")] == [0, 0]
        assert "of 2 memories" in graph.read_text()
        changed = f"{graph.read_text()}Odile drew a line below it.\n"
        graph.write_text(changed)
        assert told("graph", str(graph), "--mermaid")[0] == 2
        assert graph.read_text() == changed


def test_no_picture_goes_where_a_session_may_not_write(told: Told, root: Path, tmp_path: Path) -> None:
    (tmp_path / "way.svg").symlink_to(root / "pages/way.svg")
    for place in (root / "pages/graph.svg", tmp_path / "way.svg", root / "channels/pilot/global/graph.svg"):
        code, _, complaint = told("graph", str(place), "--session", "external")
        assert (code, "name another file" in complaint) == (3, True)
        assert not place.exists()
    assert told("graph", str(root / "channels/pilot/global/graph.svg"), *SCRIBE)[0] == 3
    assert told("graph", str(tmp_path / "way.svg"), *SCRIBE)[0] == 0
    assert (root / "pages/way.svg").exists()


def test_suggested_links_are_taken_in_from_a_file_or_standard_input(
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
    assert told("ingest", str(file))[0] == 2


@pytest.mark.parametrize(
    ("asked", "code", "said"),
    [
        (["add"], 2, "say what is to be remembered"),
        (["add", "x", "--content-file", "y"], 2, "give the memory once"),
        (["add", ""], 2, ""),
        (
            ["add", "--content-file", "nowhere.txt"],
            2,
            "nowhere.txt cannot be read as text: no such file or directory; ",
        ),
        (["add", "--content-file", "a\0b"], 2, "no file can be called that; name a file of text"),
        (["add", "x", "--kind", "rumour"], 2, "rumour"),
        (["add", "x", "--session", "external"], 3, ""),
        (["search", " "], 2, "say what to look for"),
        (["list", "--tags", ","], 2, "name the tags"),
        (["link", "k3v9x1q8m2ab", "solves", "p7c2w5z4n1de"], 1, "k3v9x1q8m2ab"),
        (["link", "a", "solves", "b", "--confidence", "2"], 2, "is not a number from 0 to 1"),
        (["infer"], 2, "no language model is configured"),
        (["audit", "--dry-run"], 2, "an audit changes nothing"),
        (["audit", "--fix", "--session", "external"], 3, ""),
        (["import", ""], 2, "name a file"),
        (["import", "nowhere.jsonl", *OWNER], 2, "nowhere.jsonl"),
        (["import", "nowhere.jsonl"], 3, "only available in owner conversations"),
        (["graph", "memories.png"], 2, "name a file that ends in .svg"),
        (["graph", "memories.svg", "--mermaid"], 2, "name a file that ends in .mmd or .md"),
        (["graph", "nowhere/memories.svg"], 1, "cannot be written"),
        (["score", "--session", "external"], 3, ""),
        (["serach", "x"], 2, "did you mean 'memory search'?"),
    ],
)
def test_what_cannot_be_done_says_what_to_do_instead(told: Told, asked: list[str], code: int, said: str) -> None:
    found, _, complaint = told(*asked)
    assert found == code
    assert complaint.startswith("notebook-sync: ")
    assert said in complaint


def test_a_line_fits_the_terminal_and_steers_nothing() -> None:
    row = {
        "notebook_id": "k3v9x1q8m2ab",
        "kind": "",
        "domain": "",
        "score": None,
        "needs_review": False,
        "title": "Boats \x1b[31m" + "船" * 60,
    }
    (line,) = of_memories([row], 60).splitlines()
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
        "left": [{"path": "\x1b", "line": 1, "what": "\x1b", "fix": "\x1b"}],
        "left_out": {"changes": 0, "left": 0},
        "backup": "\x1b",
        "trouble": "\x1b",
    }
    inferred = {"links": [], "dropped": [{"link": {"from": "\x1b" * 99}, "reason": "\x1b"}, {"link": 7, "reason": ""}]}
    for text in (of_adding(added, str), of_fix(fixed, dry_run=True), of_inferring(inferred)):
        assert not any(mark in text for mark in "\x1b\x07\u202e")
