"""Rule: the result of a search does not depend on anything that the session may not read.

What a session may not read, or is not shown, has no effect on a score, an order, a limit or a count. Scores come from
notes that every session may read; an index of private words is read for one channel at a time.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pymongo
import pytest

from notebook_sync import Notebook, Session
from notebook_sync.errors import BackendDown
from notebook_sync.search.searching import MODES
from tests.surfaces.http_clients import Served, served
from tests.surfaces.private_world import plain_calls, plain_requests
from tests.together import together

OWNER, PILOT, HERALD = Session.owner(), Session.task("pilot"), Session.external("herald")
WITHHELD = '[[prompt.files]]\npath = "pages/till.md"\nsessions = ["owner"]\n'
_NOON = 1_767_700_000
QUERIES = ("rope", "ferry rope", "rope orders", "nowhere", "the plan chart knot hides rope")


def build(root: Path, *, hidden: bool, settings: str = "") -> Path:
    """Public notes about a ferry and, with `hidden`, the same words where the sessions above may not see them."""
    Notebook.init(root)
    (root / "notebook.toml").write_text(f"{settings}{WITHHELD}")
    files = {f"pages/p{n}.md": f"# Pier {n}\n\nferry {'rope' if n < 3 else 'lamp'}\n" for n in range(20)}
    files["pages/till.md"] = "# Till\n\nNothing.\n"
    files["pages/p1.md"] += "\n[[p2]] [[p3|rope]]\n"
    files["pages/p2.md"] += "\n[[p1]] #rope\n"
    files["memories/decision/rope.md"] = (
        "---\nid: k3v9x1q8m2ab\nagent: scribe\n---\n# Rope\n\n## Context\n\nferry rope\n"
    )
    files["facts/notes.md"] = "# Facts\n\n## Key Topics\n\n- Rope is dear\n"
    files["runtime/standing-orders.md"] = "# Standing Orders\n\n- Pay for the ferry\n\n- Sail\n"
    if hidden:
        files["pages/till.md"] = "# Rope\n\nrope rope, hidden\n"
        files["runtime/standing-orders.md"] = (
            "# Standing Orders\n\n- Pay for the ferry<!-- rope, hidden -->\n\n- Sail\n"
        )
        private = "---\ntags: [rope]\n---\n# Rope {n}\n\nferry rope [[p1]] [[p2]] #rope\n"
        files |= {f"channels/scribe/global/{n}.md": private.format(n=n) for n in range(12)}
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    for number, note in enumerate(sorted(root.rglob("*.md"), key=lambda note: ("channels" in note.parts, note))):
        os.utime(note, (_NOON + number, _NOON + number))
    with Notebook.open(root) as notebook:
        notebook.sync()
    return root


@pytest.fixture
def both(tmp_path: Path) -> Iterator[tuple[Notebook, Notebook]]:
    with (
        Notebook.open(build(tmp_path / "with", hidden=True)) as one,
        Notebook.open(build(tmp_path / "without", hidden=False)) as other,
    ):
        yield one, other


def found(notebook: Notebook, query: str, session: Session, mode: str = "keyword") -> list[tuple[str, float]]:
    return [(row["path"], row["score"]) for row in notebook.search(query, 50, session, mode=mode)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("session", [PILOT, HERALD], ids=lambda one: one.kind)
def test_no_score_depends_on_what_the_session_may_not_read(
    both: tuple[Notebook, Notebook], session: Session, mode: str
) -> None:
    with together() as check:
        for query in QUERIES:
            with check(query):
                assert found(both[0], query, session, mode) == found(both[1], query, session, mode)


def test_the_owner_finds_what_is_withheld_from_others(both: tuple[Notebook, Notebook]) -> None:
    paths = {path for path, _ in found(both[0], "hidden", OWNER)}
    assert paths == {"pages/till.md", "runtime/standing-orders.md"}
    assert found(both[0], "hidden", PILOT) == []


def test_a_file_of_the_prompt_is_found_by_what_the_session_is_shown_of_it(both: tuple[Notebook, Notebook]) -> None:
    for session in (OWNER, PILOT, HERALD):
        assert "runtime/standing-orders.md" in {path for path, _ in found(both[0], "orders pay", session)}


def test_a_page_that_the_settings_no_longer_withhold_is_found_by_all(tmp_path: Path) -> None:
    root = build(tmp_path / "harbour", hidden=True)
    (root / "notebook.toml").write_text("")
    with Notebook.open(root) as notebook:
        assert [path for path, _ in found(notebook, "hidden", HERALD)] == ["pages/till.md"]
    (root / "notebook.toml").write_text(WITHHELD)
    with Notebook.open(root) as notebook:
        assert found(notebook, "hidden", HERALD) == []


def test_a_search_reads_no_index_of_a_channel_that_the_session_may_not(tmp_path: Path) -> None:
    root = build(tmp_path / "harbour", hidden=True)
    with Notebook.open(root) as notebook:
        notebook.channels.write("A rope of my own", PILOT)
        with closing(sqlite3.connect(root / ".notebook" / "mirror.db")) as file:
            (number,) = file.execute("SELECT n FROM room WHERE room = 'channels/scribe/global'").fetchone()
            file.execute(f"DROP TABLE words_{number}")
        assert len(found(notebook, "rope", PILOT)) == 6
        with pytest.raises(BackendDown):
            notebook.search("rope", mode="keyword")


def test_no_tool_tells_of_what_is_withheld(tmp_path: Path) -> None:
    assert_alike(build(tmp_path / "with", hidden=True), build(tmp_path / "without", hidden=False))


def test_on_servers_no_tool_tells_of_what_is_withheld(
    tmp_path: Path, mongodb_url: str, redis_url: str, mongo_database: str, redis_prefix: str
) -> None:
    def settings(name: str) -> str:
        return (
            f'[mirror]\nurl = "{mongodb_url}"\ndatabase = "{mongo_database[:40]}{name}"\n'
            f'[refs]\nurl = "{redis_url}"\nprefix = "{redis_prefix}{name}"\n'
        )

    try:
        one = build(tmp_path / "with", hidden=True, settings=settings("a"))
        other = build(tmp_path / "without", hidden=False, settings=settings("b"))
        assert_alike(one, other)
    finally:
        with pymongo.MongoClient[Any](mongodb_url) as client:
            for name in "ab":
                client.drop_database(f"{mongo_database[:40]}{name}")


def assert_alike(one: Path, other: Path) -> None:
    """Byte by byte, but for the time of day, random ids, and the path of the notebook."""
    with served(one) as server, served(other) as without, together() as check:
        for session in (PILOT, HERALD):
            for name, arguments in plain_calls():
                with check((session.kind, name, arguments)):
                    asked = {"json": arguments}
                    assert said(server, session, "POST", f"tools/{name}", asked) == said(
                        without, session, "POST", f"tools/{name}", asked
                    )
            for request in (*plain_requests(), *OTHERS):
                with check((session.kind, request)):
                    assert said(server, session, *request) == said(without, session, *request)


def said(server: Served, session: Session, method: str, route: str, more: dict[str, Any]) -> str:
    answer = server.ask(method, f"/{route}", session, **more)
    text = f"{answer.status_code} {answer.headers.get('etag')} {answer.text}".replace(str(server.root), "ROOT")
    return _PASSING.sub("X", text)


_PASSING = re.compile(
    r"\d{4}-\d\d-\d\dT[\d:.]+(Z|\+00:00)|\b\d\d:\d\d\b"
    r'|"(id|checkpoint|rev|commit)": ?"[0-9a-f-]{12,40}"|"(seconds|p50_ms|p95_ms|max_ms)": ?[\d.e-]+'
    r'|external-text id=."[0-9a-f]+|"tokens":\d+,"revision"|<path .*'
)
PATHS = ("pages/p1.md", "pages/till.md", "runtime/standing-orders.md", "facts/core.md", "channels/scribe/global/1.md")
# What `plain_requests` leaves out: the texts of notes, what links to them, and where a text is.
OTHERS = (
    *(("GET", f"{what}/{path}", {}) for what in ("notes", "history") for path in PATHS),
    *(("POST", "tools/notebook_edit", {"json": {"file": path, "action": "read"}}) for path in PATHS),
    *(("GET", "search", {"params": {"query": query, "snippet": True, "explain": True}}) for query in QUERIES),
    *(("POST", "explain", {"json": {"text": text}}) for text in ("hidden", "ferry rope", "Pay for the ferry")),
)


@pytest.mark.parametrize("session", [PILOT, HERALD], ids=lambda one: one.kind)
def test_no_link_tells_of_what_is_withheld(both: tuple[Notebook, Notebook], session: Session) -> None:
    links = ["rope", "till", "Rope 3", "channels/scribe/global/3", "p2"]
    one, other = (
        (nb.linking_to("pages/p1.md", session), nb.broken_links("pages/p1.md", links, session)) for nb in both
    )
    assert one == other
