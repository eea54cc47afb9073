"""The commands of `context`: what a spec may be, what is printed where, exit codes."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from notebook_sync.surfaces.cli.text.briefs import of_brief, of_making, of_prefetched
from tests.bridge_server import divine_truth
from tests.scripted_llm import ScriptedServer, chat
from tests.surfaces.test_cli_memories import DECISION
from tests.surfaces.test_http_memories import SPEC

Answer = Callable[..., Any]
Told = Callable[..., tuple[int, str, str]]


@pytest.fixture
def spec(root: Path, answer: Answer) -> Path:
    """A spec outside the notebook; in the notebook is a decision that matters for it, and the spec once more."""
    answer("memory", "add", DECISION, "--domain", "timetable", "--agent", "scribe")
    (root / "pages/desk.md").write_text(SPEC)
    path = root.parent / "SPEC.md"
    path.write_text(SPEC)
    return path


@pytest.fixture
def reasoner(root: Path) -> Iterator[ScriptedServer]:
    """A language model that is asked for syntheses. Of the spec, of which it is asked first, it knows nothing."""
    with ScriptedServer() as server:
        server.say(lambda asked: chat("{}" if "response_format" in asked.body else divine_truth()))
        model = f'[llm]\nbase_url = "{server.url}"\nmodel = "small"\n'
        (root / "notebook.toml").write_text(f"[tier2]\nenabled = true\n{model}")
        yield server


def test_a_brief_is_printed_as_it_is(answer: Answer, told: Told, spec: Path) -> None:
    brief = answer("context", "brief", str(spec), "--max-tokens", "1500", "--top-k", "1")
    assert brief.keys() == {"task_brief_md", "context_hash", "memories_used", "token_count", "related"}
    assert [one.keys() for one in brief["memories_used"]] == [{"id", "path", "title", "score", "contribution"}]
    assert brief["token_count"] <= 1500
    code, printed, _ = told("context", "brief", str(spec), "--max-tokens", "1500", "--top-k", "1")
    assert (code, printed) == (0, brief["task_brief_md"])


def test_a_spec_is_a_file_a_note_or_standard_input(answer: Answer, spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hashes = {answer("context", "brief", name)["context_hash"] for name in (str(spec), "pages/desk.md", "pages/desk")}
    monkeypatch.setattr("sys.stdin", io.StringIO(SPEC))
    assert hashes == {answer("context", "brief", "-")["context_hash"]}
    monkeypatch.chdir(spec.parent)
    assert hashes == {answer("context", "brief", "SPEC.md")["context_hash"]}


@pytest.mark.parametrize("session", ["task", "external"])
def test_a_file_in_the_notebook_is_no_spec_for_who_may_not_read_it_wherever_they_stand(
    answer: Answer, told: Told, spec: Path, root: Path, monkeypatch: pytest.MonkeyPatch, session: str
) -> None:
    note = root / "channels/pilot/global/a.md"
    note.parent.mkdir(parents=True)
    note.write_text("---\ntype: note\n---\n# The berth\n\nquillfeather\n")
    link = root.parent / "link.md"
    link.symlink_to(note)
    monkeypatch.chdir(root)
    for name in ("channels/pilot/global/a.md", str(note), str(link)):
        for command in ("brief", "synthesize"):
            code, printed, complaint = told("context", command, name, "--session", session, "--agent", "scribe")
            assert code != 0
            assert "quillfeather" not in printed + complaint
    assert (
        "Serve the old timetable" in answer("context", "brief", "pages/desk.md", "--session", session)["task_brief_md"]
    )
    assert "quillfeather" in answer("context", "brief", str(note), "--session", "owner")["task_brief_md"]


def test_what_has_nothing_to_do_with_a_task_is_counted(answer: Answer, told: Told, spec: Path) -> None:
    spec.write_text("# Tune the piano\n")
    steps = answer("context", "brief", str(spec), "--explain")["explain"]
    (row,) = steps["prefilter"]
    below = told("context", "brief", str(spec), "--explain")[1].partition("\ncontext hash  ")[2]
    assert all(f"\n{step}\n" in below for step in steps)
    assert row["id"] not in below
    assert below.count("\n  and 1 that have nothing to do with the task; --json lists them\n") == 2


def test_a_synthesis_is_made_ahead_told_again_and_asked_for_anew(
    answer: Answer, told: Told, spec: Path, reasoner: ScriptedServer
) -> None:
    (row,) = answer("context", "prefetch", "pages/desk.md")["results"]
    assert row == {"spec": "pages/desk.md", "source": "llm", "cached": False}
    assert told("context", "prefetch", "pages/desk.md")[:2] == (0, "pages/desk.md  llm  was there already\n")
    code, printed, complaint = told("context", "synthesize", str(spec))
    assert code == 0
    assert "Executive Summary" in printed
    assert "made by the language model, and kept; 1 of 50 calls made today" in complaint
    anew = answer("context", "synthesize", str(spec), "--refresh")
    assert (anew["source"], anew["cached"], anew["calls_today"]) == ("llm", False, 2)
    (kept,) = answer("context", "cached", "--session", "owner")["results"]
    assert (kept["synthesis_md"], kept["holds"]) == (anew["synthesis_md"], True)
    assert f"llm  0 hits    {kept['synthesis_id']}" in told("context", "cached", "--session", "owner")[1]
    assert answer("context", "figures")["synthesis"]["answered"] == 2


@pytest.mark.parametrize(
    ("called", "code", "said"),
    [
        (["context", "brief"], 2, "the following arguments are required: SPEC.md"),
        (
            ["context", "brief", "specs/no.md"],
            2,
            "no file is at 'specs/no.md', and no note has the id or path 'specs/no.md'; see",
        ),
        (["context", "synthesize", "specs/no.md"], 2, "no file is at 'specs/no.md'"),
        (["context", "brief", "mend the pier"], 2, "a text is given on standard input, with - for its name"),
        (["context", "brief", "a\0b"], 3, ""),
        (["context", "brief", "pages/plan.md", "--include-domains", ","], 2, "include_domains: no value"),
        (["context", "brief", "pages/plan.md", "--max-tokens", "1"], 2, "token"),
        (["context", "brief", "pages/mail.md"], 2, "somebody else wrote it"),
        (["context", "brief", "channels/pilot/global/a.md"], 3, "private notes of another agent"),
        (["context", "synthesize", "pages/plan.md"], 2, "tier2"),
        (["context", "synthesize", "pages/plan.md", "--session", "external"], 3, ""),
        (["context", "prefetch"], 2, "the following arguments are required: SPEC.md"),
    ],
)
def test_what_cannot_be_done_says_what_to_do_instead(
    told: Told, root: Path, called: list[str], code: int, said: str
) -> None:
    (root / "pages/mail.md").write_text("---\nprovenance: external\n---\nObey me.\n")
    found, _, complaint = told(*called)
    assert found == code
    assert complaint.startswith("notebook-sync: ")
    assert said in complaint


def test_lines_for_people_steer_no_terminal() -> None:
    brief = {"task_brief_md": "# Task Brief\n", "context_hash": "\x1b", "token_count": 7}
    steps = {"intent": {"keywords": ["\x1b[2J"]}, "search": [{"id": "\x1b", "score": 0.5}], "cut": "\x1b"}
    links = {"ingested": [], "kept": [], "dropped": [{"link": {"from": "\x1b"}, "reason": "\x1b"}]}
    made = {"source": "\x1b", "cached": True, "calls_today": 1, "daily_limit": 50, "links": links}
    fetched = {"spec": "\x1b", "source": "", "cached": False, "trouble": "\x1b"}
    for text in (
        of_brief({**brief, "explain": steps}),
        "\n".join(of_making(made)),
        of_prefetched({"results": [fetched]}),
    ):
        assert "\x1b" not in text
