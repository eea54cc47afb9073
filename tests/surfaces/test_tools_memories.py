"""The tools for memories, task briefs and their syntheses: what they answer, and who may do what through every door."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from notebook_sync import Notebook, Session, tool_definitions
from notebook_sync.context.brief import LEAST_TOKENS
from notebook_sync.context.compiler import LEAST_FENCED_TOKENS
from tests.context.advisers import SPEC as TASK_SPEC
from tests.context.advisers import Adviser, opened, write_notebook
from tests.surfaces.test_cli_memories import DECISION, PROBLEM
from tests.surfaces.test_http_memories import SPEC
from tests.surfaces.test_tools_agents import done, refused
from tests.surfaces.test_tools_permissions import bytes_of

OWNER, SCRIBE, HERALD = Session.owner(), Session.task("scribe"), Session.external("herald")


def test_a_decision_is_recorded_and_compiled_into_a_brief(notebook: Notebook, root: Path) -> None:
    wanted = {"text": DECISION, "domain": "timetable", "tags": ["ferry"], "priority": 9}
    added = done(notebook, "memory_record", wanted)
    assert (added["kind"], added["structured"], added["agent"], added["priority"]) == ("decision", "given", "scribe", 9)
    assert "## Reasoning" in (root / added["path"]).read_text()
    brief = done(notebook, "compile_context", {"task_spec": SPEC, "max_tokens": 1500})
    assert [(one["id"], one["contribution"]) for one in brief["memories_used"]] == [(added["notebook_id"], "primary")]
    assert "A timetable of this morning is better than none." in brief["task_brief_md"]
    assert brief["token_count"] <= 1500
    assert done(notebook, "compile_context", {"task_spec": SPEC, "max_tokens": 1500}) == brief
    narrowed = {"task_spec": SPEC, "include_domains": ["pier"]}
    assert done(notebook, "compile_context", narrowed)["memories_used"] == []


def test_a_brief_is_of_as_many_memories_as_is_said_and_explains_itself_where_that_is(notebook: Notebook) -> None:
    for text in (DECISION, PROBLEM):
        done(notebook, "memory_record", {"text": text})
    brief = done(notebook, "compile_context", {"task_spec": SPEC, "top_k": 1, "explain": True})
    assert len(brief["memories_used"]) == 1
    assert brief["explain"].keys() >= {"intent", "mmr", "cut"}
    whole = done(notebook, "compile_context", {"task_spec": SPEC})
    assert (len(whole["memories_used"]), "explain" in whole) == (2, False)


@pytest.mark.parametrize(
    ("name", "arguments", "kind"),
    [
        ("memory_record", {"text": " "}, "invalid_arguments"),
        ("memory_record", {"text": DECISION, "priority": 11}, "invalid_arguments"),
        ("memory_record", {"text": DECISION, "tags": "cache"}, "invalid_arguments"),
        ("compile_context", {}, "invalid_arguments"),
        ("compile_context", {"task_spec": " "}, "invalid_arguments"),
        ("compile_context", {"task_spec": SPEC, "max_tokens": LEAST_TOKENS - 1}, "invalid_arguments"),
        ("compile_context", {"task_spec": SPEC, "top_k": 0}, "invalid_arguments"),
        ("synthesize", {"task_spec": SPEC, "explain": True}, "invalid_arguments"),
        ("synthesize", {"task_spec": SPEC}, "llm_not_configured"),
    ],
)
def test_what_cannot_be_done_says_why_and_changes_nothing(
    notebook: Notebook, root: Path, name: str, arguments: dict[str, Any], kind: str
) -> None:
    before = bytes_of(root)
    error = refused(notebook, name, arguments)
    assert error["type"] == kind
    assert error["next"]
    assert bytes_of(root) == before


def test_a_synthesis_takes_what_selects_and_is_asked_for_anew(tmp_path: Path) -> None:
    adviser = Adviser()
    write_notebook(tmp_path)
    selects = {
        "task_spec": TASK_SPEC,
        "max_tokens": 900,
        "top_k": 2,
        "include_domains": ["pier"],
        "exclude_tags": ["x"],
    }
    with opened(tmp_path, adviser) as notebook:
        given = [done(notebook, "synthesize", {**selects, "refresh": refresh}) for refresh in (False, False, True)]
        assert [one["cached"] for one in given] == [False, True, False]
        assert [one["memories_used"] for one in given] == [[]] * 3
        assert len(adviser.questions) == 2
        assert done(notebook, "synthesize", {"task_spec": TASK_SPEC, "top_k": 1})["memories_used"]


def test_the_least_that_the_schema_allows_is_the_least_that_a_brief_has(notebook: Notebook) -> None:
    (tool,) = [one for one in tool_definitions(OWNER, "anthropic") if one["name"] == "compile_context"]
    told = tool["input_schema"]["properties"]["max_tokens"]
    least = told["minimum"]
    assert done(notebook, "compile_context", {"task_spec": SPEC, "max_tokens": least})["token_count"] <= least
    assert refused(notebook, "compile_context", {"task_spec": SPEC, "max_tokens": least - 1})
    assert f"{LEAST_FENCED_TOKENS} or more" in told["description"]
