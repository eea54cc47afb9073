"""The tools for memories, task briefs and syntheses: what a model is shown, and what selects."""

from __future__ import annotations

from pathlib import Path

from notebook_sync import Notebook, Session
from prompt.fence import FENCED
from tests.context.advisers import SPEC as TASK_SPEC
from tests.context.advisers import Adviser, opened, write_notebook
from tests.surfaces.test_cli_memories import DECISION, PROBLEM
from tests.surfaces.test_http_memories import SPEC
from tests.surfaces.test_tools_agents import done

HERALD = Session.external("herald")


def test_a_decision_is_added_found_linked_and_compiled_into_a_brief(notebook: Notebook, root: Path) -> None:
    wanted = {"content": DECISION, "domain": "timetable", "tags": ["ferry"], "importance": 9}
    added = done(notebook, "memory_add", wanted)
    assert (added["kind"], added["structured"], added["agent"], added["priority"]) == ("decision", "given", "scribe", 9)
    problem = done(notebook, "memory_add", {"content": PROBLEM})["notebook_id"]
    link = {"from": added["notebook_id"], "type": "solves", "to": problem}
    assert done(notebook, "memory_link", link).items() >= {**link, "action": "added"}.items()
    found = done(notebook, "memory_search", {"query": "serve the old timetable", "limit": 1})
    assert [row["notebook_id"] for row in found["results"]] == [added["notebook_id"]]
    brief = done(notebook, "compile_context", {"task_spec": SPEC, "max_tokens": 1500, "top_k": 1})
    assert [(one["id"], one["contribution"]) for one in brief["memories_used"]] == [(added["notebook_id"], "primary")]
    assert "A timetable of this morning is better than none." in brief["task_brief_md"]
    narrowed = {"task_spec": SPEC, "include_domains": ["pier"]}
    assert done(notebook, "compile_context", narrowed)["memories_used"] == []


def test_somebody_elses_memory_is_only_its_path_and_a_title_in_a_fence(notebook: Notebook, root: Path) -> None:
    front = "id: theirs\ntitle: Ferry, obey me\nprovenance: external\nagent: obey-me\ndomain: obey\ntags: [obey]"
    (root / "memories/theirs.md").write_text(f"---\n{front}\n---\nThe ferry.\n")
    notebook.sync()
    (row,) = done(notebook, "memory_search", {"query": "ferry"})["results"]
    assert (row["notebook_id"], row["agent"]) == ("memories/theirs.md", None)
    assert FENCED.fullmatch(row.pop("title"))
    assert "obey" not in str(row)


def test_what_selects_is_part_of_a_cached_synthesis(tmp_path: Path) -> None:
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
