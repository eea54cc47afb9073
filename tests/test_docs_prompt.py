"""docs/prompt.md: its steps run, its picture and its table are up to date, its hooks work as programs run them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import prompt
from notebook_sync import Notebook
from prompt import order
from tests import kept_table, prompt_picture
from tests.docs_shell import REPOSITORY, Block, Reader, blocks_of, environment, section_of

PAGE = REPOSITORY / "docs" / "prompt.md"
TEXT = PAGE.read_text(encoding="utf-8")
# What Claude Code shows of a hook's output before it shows a preview, and Codex before it cuts.
MOST_CHARACTERS = 10_000
# What programs write to the standard input of a hook when a conversation begins.
EVENT = json.dumps({"session_id": "1", "cwd": "/", "hook_event_name": "SessionStart", "source": "startup"})


def test_every_step(home: Path) -> None:
    with Reader(home) as reader:
        for block in blocks_of(TEXT):
            reader.follow(block)


def test_the_picture_is_what_the_code_gives() -> None:
    written = prompt_picture.PICTURE.read_text(encoding="utf-8")
    assert written == prompt_picture.drawn(), "draw it again: python -m tests.prompt_picture"
    ElementTree.fromstring(written)  # noqa: S314 - our own file


def test_the_picture_shows_what_the_page_says_of_it() -> None:
    left, right = prompt_picture.cut_anywhere(), prompt_picture.cut_by_structure()
    rule = next(line for line in "".join(prompt_picture.FILES.values()).splitlines() if "only when Odile" in line)
    assert rule.partition(" only when")[0] in left.splitlines()
    assert "Boundaries" not in left
    assert left.count("```") == 1
    assert prompt_picture.largest(left) > prompt_picture.CAP >= prompt_picture.largest(right)
    assert "Ines" not in right
    assert right.count("notebook_read") == 2
    assert right.count("```") % 2 == 0
    assert "- Never promise a refund\n" in right


def test_the_table_of_files_is_what_the_code_gives() -> None:
    assert kept_table.written() == TEXT, "write it again: python -m tests.kept_table"
    assert set(kept_table.FILES) == {path.name for path in kept_table.FOLDER.iterdir()}


def test_the_rule_is_the_one_that_the_code_states() -> None:
    rule = re.findall(r"^\d\. .*$", section_of(PAGE, "What stays"), re.MULTILINE)
    assert rule == re.findall(r"^\d\. .*$", order.__doc__ or "", re.MULTILINE)


def test_every_public_name_of_the_package_is_in_its_table() -> None:
    rows = re.findall(r"^\| `.*", section_of(PAGE, "The package prompt by itself"), re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)", row)}
    assert set(prompt.__all__) <= named


def test_the_reasons_are_those_that_explain_gives() -> None:
    _, *reasons = re.findall(r"^\| `([^`]+)` \|", section_of(PAGE, "Ask why"), re.MULTILINE)
    assert len(reasons) == 10
    stated = (prompt.Found.__doc__ or "").replace("\n    ", " ")
    assert all(reason in stated for reason in reasons)


HOOKS = {block.file: block for block in blocks_of(TEXT) if block.file.startswith(".")}


def test_every_program_of_the_table_has_its_hook() -> None:
    programs = {".claude", ".codex", ".gemini", ".config", ".cursor"}
    assert {Path(path).parts[0] for path in HOOKS} == programs


@pytest.mark.parametrize("path", [path for path in HOOKS if not path.endswith(".js")])
def test_a_hook_prints_the_owners_prompt_as_its_program_takes_it(path: str, home: Path) -> None:
    """Started through a shell, in a folder elsewhere, with JSON on standard input and no terminal."""
    _fill_notebook(home)
    done = subprocess.run(
        ["sh", "-c", _command_of(HOOKS[path])],
        cwd=home.parent,
        env=environment(home),
        input=EVENT,
        capture_output=True,
        text=True,
        check=True,
        start_new_session=True,
    )
    _is_the_owners_prompt(_context_of(Path(path).parts[0], done.stdout))


@pytest.mark.skipif(not shutil.which("node"), reason="the plugin is JavaScript")
def test_the_plugin_adds_the_owners_prompt(home: Path) -> None:
    _fill_notebook(home)
    (path,) = (path for path in HOOKS if path.endswith(".js"))
    plugin = home / "notebook.mjs"
    plugin.write_text(HOOKS[path].text, encoding="utf-8")
    code = f"""
        const hooks = await (await import({json.dumps(plugin.as_uri())})).Notebook()
        const output = {{ system: ["first"] }}
        await hooks["experimental.chat.system.transform"]({{}}, output)
        console.log(JSON.stringify(output.system))
    """
    done = subprocess.run(
        ["node", "--input-type=module", "-e", code],
        cwd=home.parent,
        env=environment(home),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    first, added = json.loads(done.stdout)
    assert first == "first"
    _is_the_owners_prompt(added)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    return home


def _fill_notebook(home: Path) -> None:
    """A notebook whose rules are more than a hook can show."""
    Notebook.init(home / "notebook", git=False)
    orders = home / "notebook" / "runtime" / "standing-orders.md"
    rules = "".join(f"- Light the lantern of berth {number} at dusk\n" for number in range(400))
    orders.write_text(orders.read_text(encoding="utf-8") + rules, encoding="utf-8")


def _command_of(block: Block) -> str:
    if block.language == "toml":
        (group,) = tomllib.loads(block.text)["hooks"]["SessionStart"]
    else:
        ((_, (group,)),) = json.loads(block.text)["hooks"].items()
    (hook,) = group.get("hooks", [group])
    return str(hook["command"])


def _context_of(program: str, printed: str) -> str:
    """What the program puts before the model."""
    if program == ".gemini":
        answer: dict[str, Any] = json.loads(printed)["hookSpecificOutput"]
        assert answer["hookEventName"] == "SessionStart"
        return str(answer["additionalContext"])
    if program == ".cursor":
        return str(json.loads(printed)["additional_context"])
    assert len(printed.encode()) < MOST_CHARACTERS
    return printed


def _is_the_owners_prompt(text: str) -> None:
    assert text.startswith("## Your Notebook\n")
    assert "edit them with notebook_edit" in text
    assert "\n- Light the lantern of berth 0 at dusk\n" in text
    assert re.search(r"^\[… \d+ more: notebook_read runtime/standing-orders.md\S*\]$", text, re.MULTILINE)
    assert re.search(r"</file>\n\nToday is \w+day, [\d-]{10}\.\n\Z", text)
