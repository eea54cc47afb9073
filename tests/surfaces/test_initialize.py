"""`init`: never overwrites, and tells an agent of its notebook without touching what the agent's owner wrote."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notebook_sync import config, initialize
from notebook_sync.errors import NotebookError, Refused, UsageError
from notebook_sync.files.note import RUNTIME_FILES
from notebook_sync.initialize import BEGIN, END, template, with_directive
from notebook_sync.notebook import Notebook


def test_it_makes_a_notebook_that_has_nothing_to_complain_about(tmp_path: Path) -> None:
    made = Notebook.init(tmp_path / "a/b")
    assert made.git == "made"
    assert made.kept == ()
    assert all((made.root / path).exists() for path in made.created)
    with Notebook.open(made.root) as notebook:
        assert notebook.prompts.check().results == []
        assert notebook.sync().failed == []
        assert notebook.admin.verify().consistent
    status = subprocess.run(
        ["git", "-C", str(made.root), "status", "--porcelain", "--untracked-files=all"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ".notebook" not in status.stdout


def test_every_setting_that_the_template_shows_is_known() -> None:
    text = template("notebook.toml")
    assert config.parse(text, "the template") == config.parse("", "the template")


def test_it_overwrites_nothing(tmp_path: Path) -> None:
    mine = {"notebook.toml": '[notebook]\nname = "mine"\n', ".gitignore": "", "runtime/reminders.md": "Mine.\r\n"}
    for path, text in mine.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text, newline="")
    (tmp_path / "pages").mkdir()
    made = Notebook.init(tmp_path, git=False)
    assert made.git == "off"
    assert set(made.kept) == {*mine, "pages/"}
    assert {path: (tmp_path / path).read_bytes().decode() for path in mine} == mine
    again = Notebook.init(tmp_path, git=False)
    assert again.created == ()
    assert set(again.kept) == {*made.created, *made.kept}


def test_a_dangling_link_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "nb/runtime").mkdir(parents=True)
    (tmp_path / "nb/runtime/reminders.md").symlink_to(tmp_path / "elsewhere.md")
    made = Notebook.init(tmp_path / "nb", git=False)
    assert "runtime/reminders.md" in made.kept
    assert not (tmp_path / "elsewhere.md").exists()


def test_inside_a_repository_it_makes_none(tmp_path: Path) -> None:
    Notebook.init(tmp_path)
    assert Notebook.init(tmp_path / "nb").git == "kept"
    assert not (tmp_path / "nb/.git").exists()


def test_a_file_is_no_place_for_a_notebook(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="not a folder"):
        Notebook.init(tmp_path / "file")
    with pytest.raises(NotebookError, match="nothing was overwritten"):
        Notebook.init(tmp_path / "file/below")


def test_templates_are_all_in_the_package() -> None:
    for name in (*RUNTIME_FILES, "notebook.toml", "gitignore", "directive.md", "brain.md"):
        assert template(name).strip()


def test_the_brain_is_told_once(tmp_path: Path) -> None:
    brain = tmp_path / "AGENTS.md"
    brain.write_bytes(b"Be kind.\r\n\r\nNo final newline")
    brain.chmod(0o640)
    made = Notebook.init(tmp_path / "nb", git=False, brain=brain)
    told = brain.read_bytes()
    assert made.brain_change == "added"
    assert told.startswith(b"Be kind.\r\n\r\nNo final newline\r\n\r\n" + BEGIN + b"\r\n")
    assert told.endswith(END + b"\r\n")
    assert told.count(b"\n") == told.count(b"\r\n")
    assert brain.stat().st_mode & 0o777 == 0o640
    assert Notebook.init(tmp_path / "nb", git=False, brain=brain).brain_change == "unchanged"
    assert brain.read_bytes() == told
    brain.write_bytes(told.replace(b"notebook", b"n0tebook").replace(b"n0tebook-sync:", b"notebook-sync:"))
    assert Notebook.init(tmp_path / "nb", git=False, brain=brain).brain_change == "refreshed"
    assert brain.read_bytes() == told


def test_the_brain_is_told_where_the_rules_are_and_not_what_they_say(tmp_path: Path) -> None:
    beside, within, far = tmp_path / "AGENTS.md", tmp_path / "the nb/AGENTS.md", tmp_path / "agent/AGENTS.md"
    for brain, place in ((beside, "'the nb'"), (within, "."), (far, f"'{tmp_path}/the nb'")):
        Notebook.init(tmp_path / "the nb", git=False, brain=brain)
        told = brain.read_text()
        assert f"\n    notebook-sync -C {place} prompt\n" in told
        assert "below" not in told.casefold()
        assert "NOTEBOOK" not in told


def test_both_texts_name_only_tools_that_there_are() -> None:
    for name in ("directive.md", "brain.md"):
        tools = set(re.findall(r"notebook_\w+", template(name)))
        assert tools == {"notebook_read", "notebook_edit"}


def test_a_brain_that_is_not_there_is_made_and_a_linked_one_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "CLAUDE.md").symlink_to("AGENTS.md")
    made = Notebook.init(tmp_path / "nb", git=False, brain=tmp_path / "CLAUDE.md")
    assert made.brain_change == "added"
    assert (tmp_path / "CLAUDE.md").is_symlink()
    assert (tmp_path / "AGENTS.md").read_bytes().startswith(BEGIN)


@pytest.mark.parametrize("before", [b"Be kind.\n", None])
def test_what_someone_writes_into_the_brain_meanwhile_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: bytes | None
) -> None:
    brain = tmp_path / "AGENTS.md"
    if before is not None:
        brain.write_bytes(before)

    def saved_meanwhile(_: Path) -> bool:
        brain.write_bytes(b"Be brief.\n")
        return True

    monkeypatch.setattr(initialize, "is_tracked_by_git", saved_meanwhile)
    with pytest.raises(Refused, match="run the command again"):
        Notebook.init(tmp_path / "nb", brain=brain)
    assert brain.read_bytes() == b"Be brief.\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["AGENTS.md", "nb"]


@pytest.mark.parametrize("marks", [BEGIN, END, END + b"\n" + BEGIN, (BEGIN + b"\n" + END + b"\n") * 2])
def test_marks_that_are_no_pair_are_refused_before_anything_is_made(tmp_path: Path, marks: bytes) -> None:
    brain = tmp_path / "AGENTS.md"
    brain.write_bytes(marks)
    with pytest.raises(Refused, match="leave one pair"):
        Notebook.init(tmp_path / "nb", brain=brain)
    assert brain.read_bytes() == marks
    assert not (tmp_path / "nb").exists()


@given(st.binary().filter(lambda raw: b"<!--" not in raw), st.text(max_size=50))
def test_only_the_block_is_ours(raw: bytes, directive: str) -> None:
    once = with_directive(raw, directive)
    assert once.startswith(raw)
    assert with_directive(once, directive) == once
    other = with_directive(once, "Other.")
    assert other[: other.index(BEGIN)] == once[: once.index(BEGIN)]
    assert other[other.index(END) :] == once[once.index(END) :]
