"""The files a new notebook starts with: complete, empty of rules, and true to what reads them."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from datetime import date
from pathlib import Path

import pytest

import runtime_templates
from notebook_sync import config
from notebook_sync.settings import PromptFile, Settings
from prompt import FileText, PromptSettings, assemble
from prompt.comments import end_of_grammar, without_hidden

FOLDER = Path(runtime_templates.__file__).parent
SECTIONS = {
    "external-communications.md": ["Permanent Rules", "Temporary Instructions", "Channel-Specific"],
    "reminders.md": ["Today", "This Week", "Recurring", "Waiting For"],
    "standing-orders.md": ["Communication Style", "Boundaries", "Preferences"],
}


@pytest.mark.parametrize("name", SECTIONS)
def test_a_runtime_file_opens_with_its_grammar_and_has_its_sections_empty(name: str) -> None:
    text = (FOLDER / name).read_text(encoding="utf-8")
    assert end_of_grammar(text) > 200
    body = without_hidden(text, keep_grammar=False, today=date(2026, 3, 1)).text
    assert body == "\n\n".join(f"## {section}" for section in SECTIONS[name]) + "\n"


def test_the_owner_sees_every_grammar_within_the_default_cap() -> None:
    sources = [FileText(f"runtime/{name}", (FOLDER / name).read_bytes()) for name in SECTIONS]
    prompt = assemble(sources, "owner", PromptSettings(), today=date(2026, 3, 1))
    assert prompt.text.count("<!--") == 3
    assert "<!--" not in assemble(sources, "external", PromptSettings(), today=date(2026, 3, 1)).text
    assert not any(part.omitted for part in prompt.parts)


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


def test_the_directive_names_every_runtime_file_and_the_tool() -> None:
    text = (FOLDER / "directive.md").read_text(encoding="utf-8")
    assert text.startswith("## Your Notebook\n")
    assert all(f"runtime/{name}" in text for name in SECTIONS)
    assert "notebook_edit" in text


def test_git_ignores_what_can_be_made_again() -> None:
    assert ".notebook/" in (FOLDER / "gitignore").read_text(encoding="utf-8").splitlines()
