"""Lists and searches through the notebook's own face: how they are narrowed, and what of them a session is told."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pymongo
import pytest

from notebook_sync import Notebook, Session
from notebook_sync.errors import UsageError
from notebook_sync.search.searching import MODES

NOTES = {
    "pages/lamp.md": "---\ntags: [light]\nstatus: complete\n---\n# The lamp\n\nIt burns on the pier.\n",
    "pages/ferry.md": "---\ntags: [boats, light]\ncreated_by: agent:scribe\n---\n# The ferry\n\nAt the pier.\n",
    "code_snippets/tide.md": "---\nlanguage: python\n---\n# Tide\n\n```python\npier = 1\n```\n",
    "facts/notes.md": "## Important Facts\n\n- The pier is of oak.\n",
    "channels/scribe/global/own.md": "---\ntype: note\ntopic: storm\n---\n# Own\n\nThe pier again.\n",
    "channels/ines/shared/told.md": "---\ntype: note\n---\n# Told\n\nThe pier, for Odile and the scribe.\n",
}
# What another agent keeps to itself. It is newer than all else, and better in every search.
PRIVATE = {
    f"channels/pilot/global/{n:02}.md": f"---\ntags: [light]\n---\n# Pier ferry lamp canary\n\n{'pier canary ' * n}\n"
    for n in range(1, 31)
}
SCRIBE, STRANGER, NAMELESS = Session.task("scribe"), Session.external("scribe"), Session.task()
READABLE = {
    SCRIBE: set(NOTES),
    Session.task("odile"): set(NOTES) - {"channels/scribe/global/own.md"},
    NAMELESS: {path for path in NOTES if not path.startswith("channels/")},
    STRANGER: {path for path in NOTES if not path.startswith("channels/")},
}
Opened = Callable[[dict[str, str]], Notebook]


@pytest.fixture(params=["embedded", "mongodb"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    """Opens notebooks that hold these notes, on either store."""
    with ExitStack() as stack:

        def made(notes: dict[str, str]) -> Notebook:
            root = tmp_path / f"notebook-{len(notes)}"
            for number, (path, text) in enumerate(notes.items()):
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
                os.utime(root / path, (1_780_000_000 + number,) * 2)
            shared = '[members]\nscribe = ["read"]\nodile = ["read", "write"]\npilot = ["write"]\n'
            (root / "channels" / "ines" / "shared" / "channel.toml").write_text(shared)
            if request.param == "mongodb":
                url, database = request.getfixturevalue("mongodb_url"), f"notebook_test_{uuid.uuid4().hex}"
                stack.callback(drop, url, database)
                settings = f'[mirror]\nurl = "{url}"\ndatabase = "{database}"\ntimeout_seconds = 30\n'
                (root / "notebook.toml").write_text(settings)
            notebook = stack.enter_context(Notebook.open(root))
            notebook.sync()
            return notebook

        yield made


def drop(url: str, database: str) -> None:
    client: pymongo.MongoClient[Any] = pymongo.MongoClient(url)
    with client:
        client.drop_database(database)


@pytest.fixture
def notebook(opened: Opened) -> Notebook:
    return opened(NOTES)


def paths(rows: list[dict[str, Any]]) -> list[str]:
    return [row["path"] for row in rows]


def test_lists_and_searches_are_narrowed_alike(notebook: Notebook) -> None:
    changed = datetime.fromtimestamp(1_780_000_001, UTC)
    narrowed: dict[str, tuple[dict[str, Any], set[str]]] = {
        "collection": ({"collection": "facts"}, {"facts/notes.md"}),
        "status": ({"status": "complete"}, {"pages/lamp.md"}),
        "tag": ({"tags": ["boats"]}, {"pages/ferry.md"}),
        "tags": ({"tags": ["boats", "light"]}, {"pages/ferry.md", "pages/lamp.md"}),
        "author": ({"created_by": "agent:scribe"}, {"pages/ferry.md"}),
        "until": ({"until": changed}, {"pages/lamp.md"}),
        "from till": ({"since": changed, "until": changed.replace(microsecond=1)}, {"pages/ferry.md"}),
        "a time without a zone": ({"until": changed.replace(tzinfo=None)}, {"pages/lamp.md"}),
        "together": ({"tags": ["light"], "status": "draft", "collection": "pages"}, {"pages/ferry.md"}),
        "nothing": ({"tags": ["light"], "created_by": "agent:pilot"}, set()),
    }
    for what, (asked, expected) in narrowed.items():
        assert set(paths(notebook.list(**asked))) == expected, what
        assert set(paths(notebook.search("pier lamp", **asked))) == expected, what


def test_rows_of_a_channel_tell_their_topic_and_when_they_were_made(notebook: Notebook) -> None:
    (row,) = [row for row in notebook.list("channels") if "topic" in row]
    assert (row["path"], row["topic"], row["created_at"].tzinfo) == ("channels/scribe/global/own.md", "storm", UTC)
    assert "content" not in row


def test_each_session_is_told_of_all_that_it_may_read(notebook: Notebook) -> None:
    for session, readable in READABLE.items():
        assert set(paths(notebook.list(session=session))) == readable
        assert set(paths(notebook.search("pier", 50, session))) == readable


def test_another_agents_notes_change_nothing_of_what_a_session_is_told(opened: Opened) -> None:
    without, beside = opened(NOTES), opened(NOTES | PRIVATE)
    assert len(beside.search("canary", 50, mode="keyword")) == len(PRIVATE)
    for session in READABLE:
        for limit in (1, 3, 50):
            for query in ("pier", "lamp pier ferry", "canary oak"):
                for mode in MODES:
                    asked: dict[str, Any] = {"mode": mode, "snippet": True, "explain": True}
                    told = beside.search(query, limit, session, **asked)
                    assert _told(told) == _told(without.search(query, limit, session, **asked))
                    assert not any("canary" in str(row) for row in told)
                    narrowed = beside.search(query, limit, session, tags=["light"], **asked)
                    assert _told(narrowed) == _told(without.search(query, limit, session, tags=["light"], **asked))
            assert _told(beside.list(limit=limit, session=session)) == _told(without.list(limit=limit, session=session))
            listed = beside.list("channels", limit=limit, session=session)
            assert _told(listed) == _told(without.list("channels", limit=limit, session=session))


def _told(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """But for when a file was born, which no two have in common."""
    return [{key: value for key, value in row.items() if key != "created_at"} for row in rows]


def test_a_member_who_is_one_no_longer_is_told_nothing_more(notebook: Notebook) -> None:
    assert "channels/ines/shared/told.md" in paths(notebook.search("pier", 50, SCRIBE))
    (notebook.root / "channels" / "ines" / "shared" / "channel.toml").write_text("[members]\n")
    assert "channels/ines/shared/told.md" not in paths(notebook.search("pier", 50, SCRIBE))
    assert "channels/ines/shared/told.md" not in paths(notebook.list(session=SCRIBE))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"collection": "boats"}, "there is no collection 'boats'; use one of runtime, pages"),
        ({"collection": ""}, "there is no collection ''"),
        ({"status": "sunk"}, "there is no status 'sunk'; use one of draft"),
        ({"tags": "light"}, r"tags are a list, as in \['light'\]"),
        ({"limit": -1}, "a limit is a number from 0 to"),
    ],
)
def test_what_cannot_be_asked_for_is_said(tmp_path: Path, asked: dict[str, Any], message: str) -> None:
    with Notebook.open(tmp_path) as notebook:
        with pytest.raises(UsageError, match=message):
            notebook.list(**asked)
        with pytest.raises(UsageError, match=message):
            notebook.search("pier", **asked)
