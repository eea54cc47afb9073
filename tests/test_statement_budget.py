"""The statement budget, on trees of a few statements."""

from pathlib import Path

import pytest

from tests.statement_budget import count_rooms, main


@pytest.fixture
def tree(folder: Path) -> Path:
    files = {
        "prompt/trim.py": '"""Cut."""\nx = 1\n',
        "notebook_sync/model.py": "def f():\n    'A docstring.'\n    return 1\n",
        "notebook_sync/files/git/log.py": "a = 1\nb = 2\n",
        "tests/test_trim.py": "assert True\n",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_counts_statements_by_room_without_docstrings(tree: Path) -> None:
    assert count_rooms(tree) == {"prompt": 1, "root": 2, "files": 2, "whole": 5, "tests": 1}


@pytest.mark.parametrize(
    ("figures", "exit_code"),
    [
        ("prompt = 1\nroot = 2\nfiles = 2\nwhole = 5\ntests = 1", 0),
        ("prompt = 0\nroot = 2\nfiles = 2\nwhole = 5\ntests = 1", 1),
        ("prompt = 1\nroot = 2\nfiles = 2\nwhole = 4\ntests = 1", 1),
        ("prompt = 1\nroot = 2\nwhole = 5\ntests = 1", 1),
    ],
    ids=["within", "a room is over", "the whole is over", "a room has no figure"],
)
def test_fails_where_a_count_is_over(
    tree: Path, figures: str, exit_code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    (tree / "pyproject.toml").write_text(f"[tool.notebook-sync.budget]\n{figures}\n")
    assert main(tree) == exit_code
    assert ("OVER" in capsys.readouterr().out) == bool(exit_code)


def test_a_room_may_exceed_its_figure_by_15_percent(tree: Path) -> None:
    (tree / "notebook_sync/model.py").write_text("x = 1\n" * 115)
    (tree / "pyproject.toml").write_text(
        "[tool.notebook-sync.budget]\nprompt = 1\nroot = 100\nfiles = 2\nwhole = 200\ntests = 1\n"
    )
    assert main(tree) == 0


def test_a_room_that_is_not_there_yet_has_a_limit_of_its_own(tree: Path) -> None:
    figures = "prompt = 1\nroot = 2\nfiles = 2\nwhole = 3\ntests = 1\n"
    (tree / "pyproject.toml").write_text(
        f"[tool.notebook-sync.budget]\n{figures}[tool.notebook-sync.over]\nwhole = 5\n"
    )
    assert main(tree) == 0
    (tree / "prompt/more.py").write_text("x = 1\n")
    assert main(tree) == 1
