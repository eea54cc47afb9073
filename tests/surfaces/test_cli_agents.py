"""The commands of the agent notebook: what they take, the shapes of their JSON, exit codes, what people read."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from notebook_sync.notebook import Notebook
from notebook_sync.surfaces.cli import run
from notebook_sync.surfaces.cli_rows import aligned, columns, cut
from notebook_sync.surfaces.cli_text_notes import of_notes

Answer = Callable[..., Any]
Told = Callable[..., tuple[int, str, str]]


@pytest.fixture
def told(root: Path, capsys: pytest.CaptureFixture[str]) -> Told:
    """Runs a command on the notebook; its exit code, what it printed, and what it complained of."""

    def ask(*arguments: str) -> tuple[int, str, str]:
        code = run(["-C", str(root), *arguments])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return ask


@pytest.fixture
def answer(told: Told) -> Answer:
    """Runs a command with --json; its value, after a look at the exit code."""

    def ask(*arguments: str, code: int = 0) -> Any:
        found, printed, complaint = told(*arguments, "--json")
        assert found == code, complaint
        return json.loads(printed)

    return ask


@pytest.fixture
def pages(root: Path) -> None:
    """Three notes of one harbour, mirrored."""
    (root / "pages/ferry.md").write_text(
        "---\ntags: [ferry, winter]\nstatus: complete\ncreated_by: agent:scribe\n---\n# Ferry\n\nIts halyard is new.\n"
    )
    (root / "pages/pier.md").write_text("---\ntags: [harbour]\n---\n# Pier\n\nA halyard lies here.\n")
    (root / "research_notes/ice.md").write_text("---\ntags: [winter]\n---\n# Ice\n\nThe halyard freezes in January.\n")
    (root / "channels/scribe/global").mkdir(parents=True)
    (root / "channels/scribe/global/key.md").write_text("# Key\n\nInes has the key and the halyard.\n")
    with Notebook.open(root) as notebook:
        notebook.sync()


def titles(rows: list[dict[str, Any]]) -> set[str]:
    return {row["title"] for row in rows}


@pytest.mark.usefixtures("pages")
@pytest.mark.parametrize(
    ("options", "found"),
    [
        (["--tags", "winter"], {"Ferry", "Ice"}),
        (["--tags", " harbour, winter,"], {"Ferry", "Ice", "Pier"}),
        (["--author", "agent:scribe"], {"Ferry"}),
        (["--status", "complete"], {"Ferry"}),
        (["--since", "1d"], {"Ferry", "Ice", "Pier", "Key"}),
        (["--since", "2199-01-01"], set()),
        (["--until", "2001-01-01T10:00Z"], set()),
        (["--session", "task"], {"Ferry", "Ice", "Pier"}),
        (["--session", "task", "--agent", "scribe"], {"Ferry", "Ice", "Pier", "Key"}),
        (["--session", "task", "--agent", "pilot", "--tags", "winter"], {"Ferry", "Ice"}),
        (["--session", "external", "--agent", "scribe"], {"Ferry", "Ice", "Pier"}),
    ],
)
def test_lists_and_searches_are_narrowed_alike(answer: Answer, options: list[str], found: set[str]) -> None:
    assert titles(answer("search", "halyard", *options)) == found
    listed = [row for row in answer("list", *options) if row["collection"] != "runtime"]
    assert titles(listed) - {"Plan"} == found


@pytest.mark.usefixtures("pages")
def test_a_search_of_one_collection(answer: Answer) -> None:
    assert titles(answer("search", "halyard", "--collection", "research_notes")) == {"Ice"}


@pytest.mark.parametrize(
    ("call", "told_what"),
    [
        (["list", "--tags", ""], "name the tags, parted by commas, as in: --tags ferry,winter"),
        (["list", "--since", "last week"], "'last week' is no date; write a day as 2026-02-18"),
        (["search", "ferry", "--until", "7x"], "'7x' is no date"),
        (["search", "ferry", "--collection", "page"], "there is no collection 'page'; use one of "),
        (["search", "ferry", "--status", "done"], "there is no status 'done'; use one of draft"),
    ],
)
def test_an_option_that_means_nothing_teaches(told: Told, call: list[str], told_what: str) -> None:
    code, printed, complaint = told(*call)
    assert (code, printed) == (2, "")
    assert told_what in complaint


@pytest.mark.usefixtures("pages")
def test_nothing_found_says_what_left_nothing(told: Told) -> None:
    assert told("search", "winch") == (
        *(0, ""),
        "notebook-sync: nothing found; a word is found in any note that sync has seen\n",
    )
    code, printed, complaint = told("list", "pages", "--author", "scribe", "--since", "7d")
    assert (code, printed) == (0, "")
    assert "no notes with this collection and --author and --since; an agent is named as agent:scribe" in complaint


def test_rows_stand_in_columns_whatever_is_in_them() -> None:
    rows = [("a", "港の計画", "one"), ("long", "ab", "two"), ("e\u0301", "x\x1b[2J", "three")]
    assert aligned(rows).splitlines() == [
        "a     港の計画  one",
        "long  ab        two",
        "e\u0301     x\\x1b[2J  three",
    ]
    assert aligned([]) == ""


def test_a_cell_that_is_long_leaves_the_other_rows_where_they_are() -> None:
    first, second = aligned([("x" * 60, "one"), ("y", "two")]).splitlines()
    assert first == f"{'x' * 60}  one"
    assert second == f"y{' ' * 39}  two"


def test_a_terminal_is_not_written_past_its_edge() -> None:
    now = datetime(2026, 2, 18, 23, 30, tzinfo=UTC)
    note = {"updated_at": now, "status": "draft", "path": "pages/plan.md", "title": "港" * 60}
    shown = of_notes([note], UTC, 80)
    assert columns(shown) <= 80
    assert shown.startswith("2026-02-18  draft        pages/plan.md  港港")
    assert shown.endswith("港…")
    assert of_notes([note], UTC).endswith("港" * 60)
    assert (cut("abc", 3), cut("abcd", 3), cut("港港", 3)) == ("abc", "ab…", "港…")
