"""The files a new notebook starts with: complete, empty of rules, and true to what reads them."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from datetime import datetime
from pathlib import Path

import pytest

import runtime_templates
from notebook_sync import Notebook, Session, config
from notebook_sync.settings import PromptFile, Settings
from prompt import SESSIONS, PromptSettings, assemble, count_tokens
from prompt.hidden import visible

FOLDER = Path(runtime_templates.__file__).parent
SECTIONS = {
    "external-communications.md": ["Permanent Rules", "Temporary Instructions", "Channel-Specific"],
    "reminders.md": ["Today", "This Week", "Recurring", "Waiting For"],
    "standing-orders.md": ["Communication Style", "Boundaries", "Preferences"],
}


@pytest.mark.parametrize("name", SECTIONS)
def test_a_runtime_file_opens_with_its_grammar_and_has_its_sections_empty(name: str) -> None:
    text = (FOLDER / name).read_text(encoding="utf-8")
    assert text.startswith("<!--\n")
    assert text.index("-->") > 200
    assert (
        visible(text, now=datetime(2026, 3, 1)).text
        == "\n\n".join(f"## {section}" for section in SECTIONS[name]) + "\n"
    )


@pytest.mark.parametrize(
    ("session", "most"), [(Session.task(), 180), (Session.external(), 180), (Session.owner(), 220)]
)
def test_the_prompt_of_an_empty_notebook_is_small(tmp_path: Path, session: Session, most: int) -> None:
    Notebook.init(tmp_path, git=False)
    with Notebook.open(tmp_path) as notebook:
        prompt = notebook.prompt(session)
    assert prompt.problems == ()
    assert re.search(r"\nToday is [A-Z][a-z]+day, \d{4}-\d\d-\d\d\.\n\Z", prompt.text)
    assert prompt.tokens == count_tokens(prompt.text) <= most


def test_notebook_toml_changes_nothing_until_someone_edits_it() -> None:
    text = (FOLDER / "notebook.toml").read_text(encoding="utf-8")
    settings = config.parse(text, "")
    assert settings == Settings()


def test_notebook_toml_shows_the_defaults_that_hold() -> None:
    text = (FOLDER / "notebook.toml").read_text(encoding="utf-8")
    shown = tomllib.loads(re.sub(r"(?m)^# (?=\[|\w+ = )", "", text))
    defaults = dataclasses.asdict(Settings())
    for table in ("notebook", "mirror", "refs", "sync", "prompt"):
        held = {key: list(value) if isinstance(value, tuple) else value for key, value in defaults[table].items()}
        example = shown[table].pop("files", None)
        held.pop("files", None)
        assert shown[table] == held, table
        assert example is None or set(example[0]) == {field.name for field in dataclasses.fields(PromptFile)}


@pytest.mark.parametrize("session", SESSIONS)
def test_the_directive_names_the_files_and_only_the_owner_is_told_how_to_edit(session: str) -> None:
    template = (FOLDER / "directive.md").read_text(encoding="utf-8")
    text = assemble([], session, PromptSettings(directive=template), now=datetime(2026, 3, 1)).text  # type: ignore[arg-type]
    assert text.startswith("## Your Notebook\n")
    assert f"Your owner's files: {', '.join(f'runtime/{name}' for name in SECTIONS)}." in text
    assert ("notebook_edit" in text) == ("expected_digest" in text) == (session == "owner")


def test_a_file_that_a_session_does_not_see_is_not_named_by_its_directive(tmp_path: Path) -> None:
    Notebook.init(tmp_path, git=False)
    hidden = '[[prompt.files]]\npath = "runtime/reminders.md"\nsessions = ["owner"]\n'
    (tmp_path / "notebook.toml").write_text(hidden, encoding="utf-8")
    with Notebook.open(tmp_path) as notebook:
        assert "runtime/reminders.md" not in notebook.prompt(Session.external()).text
        assert "runtime/reminders.md" in notebook.prompt(Session.owner()).text


def test_the_order_of_the_files_is_a_setting(tmp_path: Path) -> None:
    Notebook.init(tmp_path, git=False)
    order = ["runtime/external-communications.md", "runtime/standing-orders.md"]
    (tmp_path / "notebook.toml").write_text(f"[prompt]\norder = {order}\n", encoding="utf-8")
    with Notebook.open(tmp_path) as notebook:
        paths = [part.path for part in notebook.prompt(Session.task()).parts]
    assert paths == [*order, "runtime/reminders.md"]


def test_git_ignores_what_can_be_made_again() -> None:
    assert ".notebook/" in (FOLDER / "gitignore").read_text(encoding="utf-8").splitlines()
