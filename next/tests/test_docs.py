"""The documentation against the tree: commands, options, links, packages and modules that it names exist."""

from __future__ import annotations

import importlib
import pkgutil
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

import notebook_sync
from notebook_sync.surfaces.cli.index import ALIASES, NAMES
from notebook_sync.surfaces.cli.main import arranged, run

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
ARCHITECTURE = ROOT / "docs/explanation/architecture.md"
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
_CODE = re.compile(r"^ *```(?:sh|bash|console)\n(.*?)^ *```|(?<!`)`([^`\n]+)`(?!`)", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"(?:^|[/\s])notebook-sync( [^|;&<>\n]*)")


def commands_in(page: Path) -> Iterator[list[str]]:
    """The arguments of each call of notebook-sync in code."""
    for block, span in _CODE.findall(page.read_text(encoding="utf-8")):
        for found in _COMMAND.finditer((block or span).replace("\\\n", " ")):
            yield arranged(shlex.split(found[1].partition(" #")[0]))[1]


@each_page
def test_every_command_and_option_exists(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in commands_in(page):
        named = [each for each in words if each not in ("help", "--version", "--help") and each.islower()]
        if not named:
            continue
        assert named[0] in {*NAMES, *ALIASES}, words
        assert run([*named[: 1 + (named[0] == "token" and len(named) > 1)], "--help"]) == 0
        shown = capsys.readouterr().out
        assert [each for each in words if each.startswith("--") and each.partition("=")[0] not in shown] == []


@each_page
def test_every_link_leads_to_a_file(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", page.read_text(encoding="utf-8"))
    assert [each for each in targets if not (page.parent / each).exists()] == []


def test_the_table_of_packages_is_that_of_the_tree() -> None:
    rows = dict(re.findall(r"^\| `([\w.]+)` \| (.*) \|$", ARCHITECTURE.read_text(), re.MULTILINE))
    found = list(pkgutil.iter_modules(notebook_sync.__path__))
    packages = {f"notebook_sync.{each.name}" for each in found if each.ispkg}
    assert set(rows) == {"prompt", "runtime_templates", "notebook_sync", *packages}
    modules = {each.name for each in found if not each.ispkg and each.name != "__main__"}
    assert set(re.findall(r"`(\w+)`", rows["notebook_sync"])) == modules


def test_every_module_that_the_architecture_names_exists() -> None:
    names = set(re.findall(r"`((?:files|store|search|sync|services|surfaces)\.[\w.]+)`", ARCHITECTURE.read_text()))
    assert names
    for name in names:
        package, module, *attributes = name.split(".")
        home = importlib.import_module(f"notebook_sync.{package}.{module}")
        for attribute in attributes:
            assert re.search(rf"\b(?:def|class) {attribute}\b", Path(home.__file__ or "").read_text()), name
