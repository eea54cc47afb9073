"""The notebook's own face: notes found by any of their names and read as they are now; a prompt without a store."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from notebook_sync import Notebook, Session
from notebook_sync.errors import NoSuchNote, NotANotebook, UsageError


@pytest.fixture
def notebook(tmp_path: Path) -> Iterator[Notebook]:
    (tmp_path / "runtime").mkdir()
    (tmp_path / "runtime" / "reminders.md").write_text("## Today\n\n- [ ] Oil the lamp\n\n## This Week\n\n## Today\n")
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "plan.md").write_text("---\nid: the-plan\n---\n# Plan\n\nStart small.\n\n## Budget\n\n100\n")
    with Notebook.open(tmp_path) as opened:
        opened.sync()
        yield opened


@pytest.mark.parametrize("name", ["pages/plan.md", "pages/plan", "the-plan"])
def test_a_note_is_found_by_path_and_by_id(notebook: Notebook, name: str) -> None:
    assert notebook.read(name)["title"] == "Plan"


@pytest.mark.parametrize(
    "name", ["./pages/plan.md", "pages//plan.md", "pages/../pages/plan.md", "{root}/pages/plan.md"]
)
def test_another_spelling_of_a_path_is_the_same_note(notebook: Notebook, name: str) -> None:
    assert notebook.read(name.format(root=notebook.root))["id"] == "the-plan"
    assert len(notebook.list()) == 2


def test_what_the_notebook_leaves_out_is_no_note(notebook: Notebook) -> None:
    (notebook.root / ".gitignore").write_text("ignored.md\n")
    (notebook.root / "ignored.md").write_text("x")
    with pytest.raises(NoSuchNote, match="no note has the id or path"):
        notebook.read("ignored.md")


def test_a_runtime_file_is_found_by_its_bare_name(notebook: Notebook) -> None:
    assert notebook.read("reminders.md")["path"] == "runtime/reminders.md"


def test_what_is_no_note_is_said_with_the_next_step(notebook: Notebook) -> None:
    with pytest.raises(NoSuchNote, match="notebook-sync list"):
        notebook.read("pages/plan-b")


def test_reading_sees_an_edit_that_no_sync_has_seen(notebook: Notebook) -> None:
    (notebook.root / "pages" / "plan.md").write_text("---\nid: the-plan\n---\n# Plan B\n")
    document = notebook.read("the-plan")
    assert (document["title"], document["metadata"]["version"]) == ("Plan B", 2)


def test_reading_a_new_file_mirrors_it(notebook: Notebook) -> None:
    (notebook.root / "pages" / "new.md").write_text("# New\n")
    assert notebook.read("pages/new")["metadata"]["version"] == 1
    assert [note["title"] for note in notebook.list(limit=1)] == ["New"]


def test_a_section_is_found_by_anchor_and_by_heading(notebook: Notebook) -> None:
    document = notebook.read("the-plan")
    assert notebook.section(document, "budget")["content"] == "## Budget\n\n100\n"
    assert notebook.section(document, "BUDGET") == notebook.section(document, "#budget")


def test_a_heading_that_stands_twice_is_ambiguous_and_its_anchors_are_named(notebook: Notebook) -> None:
    document = notebook.read("reminders.md")
    assert notebook.section(document, "today-1")["line"] == 7
    with pytest.raises(NoSuchNote, match="no section named 'tomorrow'; anchors: today, this-week, today-1"):
        notebook.section(document, "tomorrow")


def test_the_prompt_needs_no_store(tmp_path: Path) -> None:
    (tmp_path / "notebook.toml").write_text(
        '[mirror]\nurl = "mongodb://127.0.0.1:1/"\n[refs]\nurl = "redis://127.0.0.1:1/"\n'
    )
    (tmp_path / "runtime").mkdir()
    (tmp_path / "runtime" / "standing-orders.md").write_text("## Boundaries\n\n- {{7*7}} stays as it is\n")
    with Notebook.open(tmp_path) as notebook:
        assert "{{7*7}} stays as it is" in notebook.prompt(Session.task()).text


def test_a_runtime_file_that_is_being_written_shows_its_last_good_version(notebook: Notebook) -> None:
    good = notebook.prompt(Session.task())
    (notebook.root / "runtime" / "reminders.md").write_text("")
    half_way = notebook.prompt(Session.task())
    assert half_way.text == good.text
    assert half_way.problems == ("runtime/reminders.md: it is being written",)


def test_the_last_good_version_outlives_the_process(notebook: Notebook) -> None:
    good = notebook.prompt(Session.task())
    path = notebook.root / "runtime" / "reminders.md"
    path.unlink()
    path.mkdir()
    with Notebook.open(notebook.root) as later:
        assert later.prompt(Session.task()).text == good.text


def test_explain_finds_a_line_in_any_note_and_says_that_it_is_not_in_the_prompt(notebook: Notebook) -> None:
    found = notebook.prompts.explain("start  SMALL").found
    assert [(place.path, place.line, place.in_prompt, place.reason) for place in found] == [
        ("pages/plan.md", 6, False, "not a prompt file")
    ]


def test_a_folder_that_is_not_there_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(NotANotebook, match="notebook-sync init"):
        Notebook.open(tmp_path / "nowhere")
    with pytest.raises(NotANotebook, match="notebook-sync init"):
        Notebook.find(tmp_path)


@pytest.mark.parametrize("limit", [-1, 2**63, 10**30])
def test_a_limit_that_no_store_can_count_to_is_a_wrong_call(notebook: Notebook, limit: int) -> None:
    with pytest.raises(UsageError, match="a limit is a number"):
        notebook.list(limit=limit)
    with pytest.raises(UsageError, match="a limit is a number"):
        notebook.search("plan", limit)


def test_with_both_stores_on_servers_no_folder_is_made(tmp_path: Path) -> None:
    (tmp_path / "notebook.toml").write_text(
        '[mirror]\nurl = "mongodb://127.0.0.1:1/"\n[refs]\nurl = "redis://127.0.0.1:1/"\n'
    )
    with Notebook.open(tmp_path) as notebook:
        assert (notebook.mirror.name, notebook.refs.name) == (
            "MongoDB at 127.0.0.1:1/aether_notebook",
            "Redis at 127.0.0.1:1",
        )
    assert not (tmp_path / ".notebook").exists()


def test_a_repair_tells_how_far_it_is_as_a_comparison_does(notebook: Notebook) -> None:
    compared: list[tuple[int, int]] = []
    notebook.admin.verify(progress=lambda done, total: compared.append((done, total)))
    repaired: list[tuple[int, int]] = []
    assert notebook.admin.verify(repair=True, progress=lambda done, total: repaired.append((done, total))).consistent
    assert repaired[-len(compared) :] == compared
    assert (2, 2) in repaired[: -len(compared)]


def test_the_embedded_folder_is_hidden_from_git(notebook: Notebook) -> None:
    assert (notebook.root / ".notebook" / ".gitignore").read_text() == "*\n"


def test_a_sync_after_an_upgrade_marks_what_somebody_else_wrote(notebook: Notebook) -> None:
    (notebook.root / "pages" / "mail.md").write_text("---\nprovenance: external\n---\nObey.\n")
    notebook.sync()
    with closing(sqlite3.connect(notebook.folder / "mirror.db", isolation_level=None)) as earlier:
        earlier.execute("UPDATE note SET revision = revision - 1, provenance = ''")
    notebook.sync()
    assert {row["path"]: row.get("provenance") for row in notebook.list("pages")} == {
        "pages/mail.md": "external",
        "pages/plan.md": None,
    }
    assert [row.get("provenance") for row in notebook.search("obey", mode="keyword")] == ["external"]
    assert notebook.read("pages/mail.md")["metadata"]["version"] == 1
