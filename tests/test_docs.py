"""The documentation against the tree: commands, options, links, packages and modules that it names exist."""

import importlib
import os
import pkgutil
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import notebook_sync
from notebook_sync.registry import OPERATIONS
from notebook_sync.surfaces.cli.index import ALIASES, NAMES
from notebook_sync.surfaces.cli.main import arranged, run
from tests import reference
from tests.page_reader import Reader
from tests.processes import quick_command
from tests.servers import drop_keys

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# The README's commands install the package; CI runs them in an environment of their own.
FOLLOWED = [page for page in PAGES[1:] if re.search(r"^```(sh|console|python)", page.read_text(), re.MULTILINE)]
MOST_WORDS = 28_000
ARCHITECTURE = ROOT / "docs/explanation/architecture.md"
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
IS_CI = os.environ.get("NOTEBOOK_TEST_REQUIRE_SERVERS") == "1"
# Comments, code in blocks, lines and spans, and targets of links.
_NOT_PROSE = re.compile(
    r"<!--.*?-->|^ *```.*?^ *```|^ {4}[^\n]*|`[^`\n]*`|(?<=\])\([^)\n]*\)", re.DOTALL | re.MULTILINE
)
_CODE = re.compile(r"^ *```(?:sh|bash|console)\n(.*?)^ *```|(?<!`)`([^`\n]+)`(?!`)", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"(?:^|[/\s])notebook-sync( [^|;&<>\n]*)")


def commands_in(page: Path) -> Iterator[list[str]]:
    """The arguments of each call of notebook-sync in code."""
    for block, span in _CODE.findall(page.read_text(encoding="utf-8")):
        for found in _COMMAND.finditer((block or span).replace("\\\n", " ")):
            words = found[1].partition(" #")[0]
            if words.count("'") % 2:  # a text that goes on in the next line
                words = words.rpartition("'")[0]
            yield arranged(shlex.split(words))[1]


@each_page
def test_every_command_and_option_exists(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in commands_in(page):
        named = [each for each in words if each not in ("help", "--version", "--help") and each.islower()]
        if not named:
            continue
        assert named[0] in {*NAMES, *ALIASES}, words
        is_group = any(each.startswith(f"{named[0]} ") for each in OPERATIONS)
        assert run([*named[: 1 + (is_group and len(named) > 1)], "--help"]) == 0
        shown = capsys.readouterr().out
        assert [each for each in words if each.startswith("--") and each.partition("=")[0] not in shown] == []


@pytest.mark.parametrize("page", FOLLOWED, ids=lambda page: page.relative_to(ROOT / "docs").as_posix())
def test_a_page_does_what_it_shows(page: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Its commands and programs, in order, in an empty home. The first page starts the command as its reader does."""
    home, shown, text = tmp_path / "home", {}, page.read_text(encoding="utf-8")
    home.mkdir()
    if "localhost:27017" in text:
        shown["mongodb://localhost:27017"] = request.getfixturevalue("mongodb_url")
        shown["aether_notebook"] = request.getfixturevalue("new_mongo_database")
    if "localhost:6379" in text:
        shown["redis://localhost:6379"] = request.getfixturevalue("redis_url")
    started = [sys.executable, "-P", "-m", "notebook_sync"] if page.name == "first-notebook.md" else quick_command()
    with Reader(home, shown, started) as reader:
        reader.follow(page)
    if "localhost:6379" in text:
        drop_keys(request.getfixturevalue("redis_url"), "aether")
    assert len(reader.skipped) <= 3, "what cannot run is the exception"


@pytest.mark.parametrize("name", sorted(reference.pages()))
def test_the_reference_is_what_the_code_declares(name: str) -> None:
    advice = "run: python -m tests.reference"
    assert (reference.REFERENCE / name).read_text(encoding="utf-8") == reference.pages()[name], advice


def test_the_documentation_can_be_read_in_two_hours() -> None:
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in PAGES) <= MOST_WORDS


@pytest.mark.skipif(not shutil.which("hunspell") and not IS_CI, reason="hunspell is not installed")
def test_every_word_is_spelled_as_dictionary_or_word_list_have_it() -> None:
    prose = "\n".join(_NOT_PROSE.sub(" ", page.read_text(encoding="utf-8")) for page in PAGES)
    command = ["hunspell", "-l", "-d", "en_GB", "-p", str(ROOT / "tests/fixtures/words.txt")]
    done = subprocess.run(command, input=prose, capture_output=True, text=True, check=True)
    assert sorted(set(done.stdout.split())) == []


def test_the_index_names_every_page() -> None:
    index = ROOT / "docs/README.md"
    linked = {
        (index.parent / each).resolve() for each in re.findall(r"\]\(([^)#\s]+)", index.read_text(encoding="utf-8"))
    }
    assert [page for page in PAGES[1:] if page != index and page not in linked] == []


@each_page
def test_every_link_leads_to_a_file(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", page.read_text(encoding="utf-8"))
    assert [each for each in targets if not (page.parent / each).exists()] == []


def test_the_table_of_tools_is_that_of_the_operations() -> None:
    rows = re.findall(r"^\| (\w+) \| (`.*`.*) \|$", (reference.REFERENCE / "tools.md").read_text(), re.MULTILINE)
    assert {tool: name for name, named in rows for tool in re.findall(r"`(\w+)`", named)} == {
        each.tool: each.toolset for each in OPERATIONS.values() if each.tool
    }


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
