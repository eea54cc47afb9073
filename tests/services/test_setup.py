"""`init`: makes what is missing, and never overwrites, renames or deletes anything."""

from pathlib import Path

import pytest

from notebook_sync import Notebook
from notebook_sync.errors import NotANotebook, NotebookError, Refused, UsageError
from notebook_sync.model import RUNTIME_FILES, SETTINGS_FILE
from notebook_sync.services.setup import BEGIN, END, initialize, with_block
from notebook_sync.settings import Settings, load_settings
from tests.services.conftest import assert_raises, git, make_repository, write_files


def test_an_empty_folder_gets_everything_and_a_first_commit(tmp_path: Path) -> None:
    root = tmp_path / "new" / 'nb "x"\\'
    made = initialize(root)
    assert (made.git, made.kept, "pages/" in made.created, "channels/" in made.created) == ("made", [], True, True)
    assert set(git(root, "ls-files").split()) == {".gitignore", SETTINGS_FILE, *RUNTIME_FILES}
    assert git(root, "log", "--format=%s").strip() == "Begin the notebook"
    settings = load_settings(root)
    assert (settings.notebook.name, len(settings.notebook.id)) == ('nb "x"\\', 16)
    with Notebook.open(root) as notebook:
        assert notebook.core.place.notebook_id == settings.notebook.id
        assert notebook.prompts.check().results == []
    again = initialize(root, name="other")
    assert (again.created, again.git, load_settings(root)) == ([], "kept", settings)


def test_the_template_shows_every_setting_with_its_default(tmp_path: Path) -> None:
    initialize(tmp_path / "nb", name="n", git=False)
    text = (tmp_path / "nb" / SETTINGS_FILE).read_text()
    lines = [line.removeprefix("# ") for line in text.splitlines()[2:]]
    (tmp_path / SETTINGS_FILE).write_text("\n".join(line for line in lines if not line.startswith(("in the prompt",))))
    shown = load_settings(tmp_path)
    for table in Settings.__struct_fields__:
        if table not in ("notebook", "prompt"):
            assert getattr(shown, table) == getattr(Settings(), table)
        for key in getattr(Settings(), table).__struct_fields__:
            assert f"{key} = " in text or f"[{table}.{key}]" in text


def test_a_folder_with_notes_gets_settings_and_rules_only(folder: Path) -> None:
    write_files(folder, {"Idea.md": "# Idea\n", "runtime/reminders.md": "## Today\n"})
    made = initialize(folder)
    assert made.created == [SETTINGS_FILE, RUNTIME_FILES[0], RUNTIME_FILES[2]]
    assert (made.kept, made.git) == (["runtime/reminders.md"], "off")
    assert (folder / "runtime/reminders.md").read_text() == "## Today\n"
    assert sorted(path.name for path in folder.iterdir()) == [".notebook", "Idea.md", SETTINGS_FILE, "runtime"]


def test_a_repository_that_is_there_is_left_alone(folder: Path) -> None:
    make_repository(write_files(folder, {"Idea.md": "# Idea\n"}))
    assert initialize(folder).git == "kept"
    assert git(folder, "status", "--short").split()[::2] == ["??", "??"]


def test_a_synced_notebook_keeps_its_id(folder: Path) -> None:
    with Notebook.open(write_files(folder, {"Idea.md": "# Idea\n"})) as notebook:
        notebook.admin.sync()
        initialize(folder)
        assert load_settings(folder).notebook.id == notebook.core.place.notebook_id


def test_what_cannot_become_a_notebook(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder))
    assert_raises(NotANotebook, initialize, folder)
    assert list(folder.iterdir()) == []
    (folder / "file").write_text("")
    assert_raises(UsageError, initialize, folder / "file")
    (folder / "nb").mkdir()
    (folder / "nb/runtime").write_text("in the way")
    assert_raises(NotebookError, initialize, folder / "nb", match="runtime")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "{}\n"),
        ("Be kind.", "Be kind.\n\n{}\n"),
        ("Be kind.\n", "Be kind.\n\n{}\n"),
        ("a\r\nb\r\n", "a\r\nb\r\n\r\n{}\r\n"),
        (f"a\n{BEGIN.decode()}\nold\n{END.decode()}\nb", "a\n{}\nb"),
    ],
)
def test_a_block_in_an_instruction_file(before: str, after: str) -> None:
    eol = "\r\n" if "\r\n" in before else "\n"
    block = eol.join([BEGIN.decode(), "one", "two", END.decode()])
    made = with_block(before.encode(), "one\ntwo\n")
    assert made.decode() == after.format(block)
    assert with_block(made, "one\ntwo\n") == made


def test_an_instruction_file_names_the_notebook_and_unpaired_marks_are_refused_first(tmp_path: Path) -> None:
    brain = tmp_path / "CLAUDE.md"
    (tmp_path / "real.md").write_text("Be kind.\n")
    brain.symlink_to("real.md")
    made = initialize(tmp_path / "nb", brain=brain)
    text = (tmp_path / "real.md").read_text()
    assert (made.brain, brain.is_symlink()) == (str(brain), True)
    assert text.startswith("Be kind.\n\n<!-- notebook-sync:begin -->")
    assert "notebook-sync -C nb prompt" in text
    brain.write_text(f"{END.decode()}\n{BEGIN.decode()}\n")
    assert_raises(Refused, initialize, tmp_path / "other", brain=brain, match="leave one pair")
    assert not (tmp_path / "other").exists()
