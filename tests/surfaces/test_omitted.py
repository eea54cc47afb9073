"""What the prompt leaves out comes back by the call that its omission lines name, at every door."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from notebook_sync import Notebook, Session, call
from notebook_sync.errors import NoSuchNote, UsageError
from notebook_sync.surfaces.cli.main import run
from prompt import Part, count_tokens
from tests.surfaces.doors import DOORS
from tests.surfaces.http_clients import served

OWNER, TASK, EXTERNAL = Session.owner(), Session.task("scribe"), Session.external("herald")
PATH = "runtime/reminders.md"
TEXT = (
    "---\ntitle: hidden\n---\n<!-- a comment -->\nLook at the tide table first.\n\n## Today\n\n"
    + "".join(
        f"- [{'x' if number % 3 else ' '}] Oil winch {number} <!-- secret -->\n  - with the thick oil {number}\n"
        for number in range(60)
    )
    + "- [ ] Long gone [until 2020-01-01]\n\n### Tools\n\nNever lend any of these:\n\n"
    + "".join(f"- hammer {number}\n" for number in range(30))
    + "\n## Tide [table](x.md)\n\n| day | tide |\n|---|---|\n"
    + "".join(f"| {number} | {number} feet |\n" for number in range(40))
    + "\n```sh\n"
    + "".join(f"echo {number}\n" for number in range(90))
    + "```\n\n## Boundaries\n\n<!-- pin -->\n\n- Promise no berth\n"
)


@pytest.fixture
def cut(root: Path) -> Path:
    (root / PATH).write_text(TEXT)
    (root / "notebook.toml").write_text("[prompt]\nmax_tokens_per_file = 900\n")
    return root


def part_of(root: Path, session: Session) -> Part:
    with Notebook.open(root) as notebook:
        return next(part for part in notebook.prompt(session).parts if part.path == PATH)


def pages_of(tool: Callable[[dict[str, Any]], dict[str, Any]], place: str) -> str:
    """All pages of what is left out at `place`, read as each page says."""
    pages, arguments = [], {"id": place, "omitted": True, "max_tokens": 100}
    while True:
        page = tool(arguments)
        assert 0 < count_tokens(page["text"]) <= 100
        pages.append(page["text"])
        if not page["truncated"]:
            return "".join(pages)
        arguments["offset"] = int(re.findall(r"offset (\d+)", page["next"])[0])


def by_tool(door: str) -> Callable[[Path, str, Session], str]:
    def read(root: Path, place: str, session: Session) -> str:
        with DOORS[door](root) as opened:
            return pages_of(lambda arguments: opened.call(session, "notebook_read", arguments), place)

    return read


def by_route(root: Path, place: str, session: Session) -> str:
    path, _, section = place.partition("#")
    with served(root) as server:
        answer = server.ask("GET", f"/notes/{path}", session, params={"section": section, "omitted": True})
    assert answer.headers["etag"] == f'"{answer.json()["digest"]}"'
    return str(answer.json()["text"])


def by_python(root: Path, place: str, session: Session) -> str:
    with Notebook.open(root) as notebook:
        return notebook.prompts.omitted(place, session).text


WAYS = {**{name: by_tool(name) for name in DOORS}, "route": by_route, "python": by_python}


def lines_of(text: str) -> set[str]:
    return {line.strip() for line in text.splitlines() if line.strip()}


def assert_complete(part: Part, read: Callable[[str], str]) -> None:
    """What is shown and what is left out are all that the session may see, and have no line in common."""
    places = re.findall(r"^\[… (?:\d+ )?more: notebook_read (\S+)\]$", part.text, re.MULTILINE)
    assert len(places) == 2
    left = set().union(*(lines_of(read(place)) for place in places))
    shown = {line for line in lines_of(part.text) if not line.startswith("[…")}
    assert shown | left == lines_of(part.whole)
    assert shown & left <= {"```"}


@pytest.mark.parametrize("session", [OWNER, TASK, EXTERNAL], ids=lambda session: session.kind)
@pytest.mark.parametrize("way", WAYS)
def test_an_omission_line_called_as_it_stands_returns_what_is_missing(cut: Path, way: str, session: Session) -> None:
    assert_complete(part_of(cut, session), lambda place: WAYS[way](cut, place, session))


def test_so_does_the_command(cut: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def read(place: str) -> str:
        assert run(["-C", str(cut), "read", place, "--omitted", "--session", "task"]) == 0
        return capsys.readouterr().out

    assert_complete(part_of(cut, TASK), read)
    assert run(["-C", str(cut), "read", PATH, "--omitted", "--session", "task", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["text"].strip() == by_python(cut, PATH, TASK)


def test_a_page_ends_below_an_entry(cut: Path) -> None:
    with Notebook.open(cut) as notebook:
        page = call(notebook, "notebook_read", {"id": f"{PATH}#today", "omitted": True, "max_tokens": 120}, TASK)
    assert re.fullmatch(r"(- \[.\] Oil winch \d+ ?\n  - with the thick oil \d+\n+)+", page["text"])


def test_an_entry_longer_than_a_page_is_divided(root: Path) -> None:
    (root / PATH).write_text("## Today\n\n- " + "🦭 seal " * 500 + "\n\n```\n" + "x" * 9000 + "\n```\n")
    (root / "notebook.toml").write_text("[prompt]\nmax_tokens_per_file = 60\n")
    with Notebook.open(root) as notebook:
        whole = notebook.prompts.omitted(PATH, TASK).text
        assert pages_of(lambda arguments: call(notebook, "notebook_read", arguments, TASK), PATH) == whole


def test_a_prompt_that_shows_all_of_it_says_so(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Notebook.open(root) as notebook:
        page = call(notebook, "notebook_read", {"id": PATH, "omitted": True}, TASK)
    assert (page["text"], page["truncated"]) == ("", False)
    assert page["next"].startswith("nothing is left out")
    assert run(["-C", str(root), "read", "reminders", "--omitted"]) == 0
    assert capsys.readouterr().out.startswith("nothing is left out")


def test_what_is_not_in_the_prompt_has_a_clear_error(cut: Path) -> None:
    (cut / "runtime/standing-orders.md").write_text("---\nprovenance: external\n---\nObey.\n")
    with Notebook.open(cut) as notebook:
        for place in ("pages/plan.md#budget", "pages/nowhere.md", "runtime/standing-orders.md"):
            with pytest.raises(NoSuchNote, match="is not in the prompt of this session"):
                notebook.prompts.omitted(place, TASK)
        with pytest.raises(NoSuchNote, match="no section named 'nowhere' in the prompt; anchors: today, tools, tide"):
            notebook.prompts.omitted(f"{PATH}#nowhere", TASK)
        with pytest.raises(UsageError, match="offset is a number from 0 to"):
            notebook.prompts.omitted(PATH, TASK, offset=10**9)


def test_databases_that_are_down_do_not_matter(cut: Path) -> None:
    with (cut / "notebook.toml").open("a") as settings:
        settings.write('[mirror]\nurl = "mongodb://127.0.0.1:1"\ntimeout_seconds = 0.1\n')
    assert_complete(part_of(cut, TASK), lambda place: by_python(cut, place, TASK))
