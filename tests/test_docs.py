"""What the documentation says is so: its commands run, its links lead somewhere, its names and defaults exist."""

from __future__ import annotations

import ast
import dataclasses
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from fastapi.routing import iter_route_contexts
from markdown_it import MarkdownIt
from markdown_it.token import Token

from notebook_sync import MemoryTool, config
from notebook_sync.files.note import COLLECTIONS
from notebook_sync.files.parse import parse
from notebook_sync.mirror.mongo_schema import USE, indexes_of
from notebook_sync.settings import PromptFile, Settings
from notebook_sync.surfaces.cli.reference.commands import COMMANDS
from notebook_sync.surfaces.cli.table import each
from notebook_sync.surfaces.http.asking import API
from notebook_sync.surfaces.http.from_operations import operation_routes
from notebook_sync.surfaces.http.routes.agents import agent_routes
from notebook_sync.surfaces.http.routes.notes import routes
from notebook_sync.surfaces.tools.calling import TOOLS
from tests.docs_shell import REPOSITORY, Block, Reader, blocks_of, section_of
from tests.servers import drop_keys

DOCS = REPOSITORY / "docs"
PAGES = [REPOSITORY / "README.md", *sorted(DOCS.glob("*.md"))]
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def test_the_tutorial(home: Path, request: pytest.FixtureRequest, mongo_name: str, redis_prefix: str) -> None:
    """Every step in order. Where there are no servers, all but the last chapter, and then it counts as skipped."""
    before, heading, moving = (DOCS / "tutorial.md").read_text(encoding="utf-8").partition("## Move to MongoDB")
    assert heading
    shown = {"ferry_office": mongo_name, '"ferry"': f'"{redis_prefix}"'}
    with Reader(home, shown) as reader:
        for block in blocks_of(before):
            reader.follow(block)
        for server, url in (("mongodb://localhost:27017", "mongodb_url"), ("redis://localhost:6379", "redis_url")):
            reader.shows(server, request.getfixturevalue(url))
        for block in blocks_of(moving):
            reader.follow(block)
    drop_keys(request.getfixturevalue("redis_url"), redis_prefix)
    assert reader.saved
    for path, text in reader.saved.items():
        found = home / path
        assert not found.exists() or found.read_bytes().startswith(text), f"{path} is not as it was saved"


def test_the_readme(home: Path) -> None:
    """Its commands but the installation, which is tried where the wheel is built, and its Python."""
    ran = 0
    with Reader(home, is_real=True) as reader:
        for block in blocks_of(_text(REPOSITORY / "README.md")):
            if block.language == "sh" and "pip install" not in block.text:
                for command in block.text.splitlines():
                    ran += 1
                    reader.follow(Block(block.line, "console", "", f"$ {command.partition(' #')[0].rstrip()}\n…\n"))
            elif block.language == "python":
                ran += 1
                reader.follow(block)
    assert ran >= 4


def test_the_tools_page(home: Path) -> None:
    """Its programs, each with the output below it."""
    blocks = blocks_of(_text(DOCS / "tools.md"))
    assert [block.language for block in blocks].count("text") >= 3
    with Reader(home) as reader:
        for block in blocks:
            reader.follow(block)


@pytest.mark.parametrize(
    "page",
    [
        "proposal",
        "agent-notebook",
        "private-notes",
        "dashboard",
        "facts",
        "memories",
        "llm",
        "search",
        "memory",
        "context",
        "synthesis",
    ],
    ids=str,
)
def test_the_page_does_what_it_says(home: Path, page: str) -> None:
    """Its commands and its programs, in order."""
    with Reader(home) as reader:
        for block in blocks_of(_text(DOCS / f"{page}.md")):
            if block.language != "toml" or page != "llm":
                reader.follow(block)


def test_the_page_of_the_http_api(home: Path) -> None:
    """Its conversation, with a server of its own."""
    consoles = [block for block in blocks_of(_text(DOCS / "http.md")) if block.language == "console"]
    assert len(consoles) >= 4
    with Reader(home) as reader:
        for block in consoles:
            reader.follow(block)


def test_the_page_of_the_http_api_has_every_route() -> None:
    page = _text(DOCS / "http.md")
    for context in iter_route_contexts([*routes.routes, *agent_routes.routes, *operation_routes()]):
        for method in context.methods or ():
            path = context.path.removeprefix(f"{API}/").replace("{note:path}", "{id}")
            assert f"| `{method} {path}` |" in page


def test_operations_shows_what_a_command_prints(home: Path) -> None:
    consoles = [block for block in blocks_of(_text(DOCS / "operations.md")) if block.language == "console"]
    assert consoles
    with Reader(home) as reader:
        reader.run("notebook-sync init ferry-office && cd ferry-office && notebook-sync sync")
        for block in consoles:
            reader.follow(block)


@each_page
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in _links(page):
        place = urlsplit(target)
        if place.scheme:
            continue
        found = (page.parent / place.path).resolve() if place.path else page
        assert found.exists(), f"{page.name}: {target}"
        if place.fragment:
            assert place.fragment in _anchors(found), f"{page.name}: {target}"


def test_the_readme_links_every_page() -> None:
    linked = {target.partition("#")[0] for target in _links(REPOSITORY / "README.md")}
    assert {f"docs/{page.name}" for page in DOCS.glob("*.md")} <= linked


def test_every_page_that_help_names_exists() -> None:
    named = {page for command in COMMANDS for page in re.findall(r"docs/[\w./-]+\.md", command.about)}
    assert named
    assert all((REPOSITORY / page).exists() for page in named), named


def test_the_changelog_names_every_command_and_tool() -> None:
    log = _text(DOCS / "changelog.md")
    for name in [*(command.name for command in COMMANDS), *(tool.name for tool in TOOLS), MemoryTool.__name__]:
        assert f"`{name}`" in log, name


@each_page
def test_every_command_that_is_named_exists(page: Path) -> None:
    options = {name: {a.name for a in command.arguments} | {"--help"} for name, command in each(COMMANDS)}
    for call in _calls(page):
        name, *words = call.removeprefix("help ").split()
        if name in ("COMMAND", "help") or (name in _GROUPS and words[:1] == ["COMMAND"]):
            continue
        if name in _GROUPS and words and not words[0].startswith("-"):
            name = f"{name} {words.pop(0)}"
        assert name in options, f"{page.name}: notebook-sync {call}"
        for word in words:
            if word.startswith("--"):
                assert word in options[name], f"{page.name}: notebook-sync {call}"


_GROUPS = [command.name for command in COMMANDS if command.commands]


@each_page
def test_every_file_of_the_repository_that_is_named_exists(page: Path) -> None:
    for code in _inline_code(page):
        if re.fullmatch(r"(notebook_sync|prompt|runtime_templates|tests|docs)/[\w./]*", code):
            assert (REPOSITORY / code).exists(), f"{page.name}: {code}"


@each_page
def test_settings_that_are_shown_are_settings(page: Path) -> None:
    for block in blocks_of(_text(page)):
        if block.language == "toml" and Path(block.file or config.FILE).name == config.FILE:
            config.parse(block.text, f"{page.name}:{block.line}")


def test_every_setting_is_documented_with_its_default() -> None:
    page = _text(DOCS / "notebook-format.md")
    tables, one_file = (block.text for block in blocks_of(page) if block.language == "toml")
    written = tomllib.loads(tables)
    for table in dataclasses.fields(Settings):
        if table.name != "source":
            defaults = _as_toml(getattr(Settings(), table.name))
            defaults.pop("files", None)
            assert written.pop(table.name) == defaults
    assert not written
    (file,) = tomllib.loads(one_file)["prompt"]["files"]
    assert file == _as_toml(PromptFile(file["path"]))


def test_every_index_is_documented() -> None:
    made = {index.document["name"] for collection in (*COLLECTIONS, USE) for index in indexes_of(collection)}
    table = section_of(DOCS / "operations.md", "MongoDB")
    named = {name for row in _rows(table) for name in re.findall(r"`([^`]+)`", row[0])}
    assert named == made | {"path_unique"}


def test_every_message_that_is_explained_is_one_that_is_told() -> None:
    told = list(_texts_in_the_source())
    rows = _rows(section_of(DOCS / "operations.md", "Troubleshooting"))
    assert rows
    for message, *_ in rows:
        for piece in _constant_parts(message):
            assert any(piece in text for text in told), f"nothing says {piece!r}"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    return home


@pytest.fixture
def mongo_name(request: pytest.FixtureRequest) -> str:
    """A database of its own, dropped after the test; any name where there is no server to drop it on."""
    try:
        return str(request.getfixturevalue("mongo_database"))
    except pytest.skip.Exception:
        return "no_server"


@cache
def _anchors(page: Path) -> set[str]:
    return {section.anchor for section in parse(page.name, page.read_bytes()).sections}


def _text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def _tokens(page: Path) -> Iterator[Token]:
    for token in MarkdownIt("commonmark").enable("table").parse(_text(page)):
        yield token
        yield from token.children or ()


def _links(page: Path) -> list[str]:
    targets = [token.attrGet("href") or token.attrGet("src") for token in _tokens(page)]
    return [str(target) for target in targets if target]


def _inline_code(page: Path) -> list[str]:
    return [token.content for token in _tokens(page) if token.type == "code_inline"]


_CALL = re.compile(r"(?:^|[\s/])notebook-sync(?: -C \S+)?((?: [\w./<>-]+)+)", re.MULTILINE)


def _calls(page: Path) -> Iterator[str]:
    """What stands behind `notebook-sync` in code, up to the first word that is neither plain nor an option."""
    for token in _tokens(page):
        if token.type in ("code_inline", "code_block") or (token.type == "fence" and token.info != "text"):
            yield from (call.strip() for call in _CALL.findall(token.content) if not call.startswith(" --"))


def _rows(markdown: str) -> list[list[str]]:
    """The cells of every table row that has code in its first cell."""
    rows = [line.strip("|").split("|") for line in markdown.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in row] for row in rows]


def _constant_parts(message: str) -> list[str]:
    parts = re.split(rf"…|{re.escape(config.FILE)}", message.strip("`"))
    return [part for one in parts if (part := one.strip(" :"))]


def _texts_in_the_source() -> Iterator[str]:
    """Every text in the program's source; of one with values in it, the parts between them."""
    for folder in ("notebook_sync", "prompt"):
        for path in (REPOSITORY / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield node.value


def _as_toml(value: object) -> dict[str, object]:
    assert dataclasses.is_dataclass(value)
    assert not isinstance(value, type)
    return {key: list(one) if isinstance(one, tuple) else one for key, one in dataclasses.asdict(value).items()}
