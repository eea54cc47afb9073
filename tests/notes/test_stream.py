"""The daily stream: what is logged, what a day and recall tell of it, and to whom."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from notebook_sync import Notebook, Session
from notebook_sync.errors import BackendDown, NotebookError, NotPermitted, UsageError
from notebook_sync.files.edits import Edit
from notebook_sync.operations.registry import plain
from notebook_sync.operations.stream import Day, Entry
from tests.notes.conftest import opened
from tests.servers import free_port
from tests.waiting import eventually

OWNER, TASK, EXTERNAL = Session.owner(), Session.task("scribe"), Session.external("scribe")
WITHHELD = '[[prompt.files]]\npath = "pages/withheld.md"\nsessions = ["owner"]\n'
HOSTILE = (
    "two\nlines\r\nand a tab\t",
    "a NUL \0 within",
    '{"content": "json", "ref": {"path": "pages/ferry.md"}}',
    "@content:(secret) | -ferry* %%fuzzy%% [0 inf] $v => {$weight: 2}",
    "ferry' OR 1=1 --",
    "{{7*7}} {% raw %} ${HOME}",
    "é \u200d 🐋 ﷽ \u202e reversed",
    "x" * 8192,
)


@pytest.fixture
def notebook(harbour: Path, hot: str) -> Iterator[Notebook]:
    yield from opened(harbour, WITHHELD + hot)


@pytest.fixture
def embedded(harbour: Path) -> Iterator[Notebook]:
    yield from opened(harbour, WITHHELD)


def contents(entries: list[Entry]) -> list[str]:
    return [entry.content for entry in entries]


def logged(notebook: Notebook, session: Session = OWNER) -> list[str]:
    return contents([entry for entry in notebook.stream.show(session).results if not entry.action])


def actions(notebook: Notebook, path: str, session: Session = OWNER) -> list[str]:
    return [entry.action for entry in notebook.stream.show(session).results if entry.action and entry.path == path]


# Logging.


def test_what_is_logged_is_in_the_day_and_found_again(notebook: Notebook) -> None:
    before = datetime.now(UTC) - timedelta(milliseconds=1)
    entry = notebook.stream.log("Odile moved the ferry to pier 3", TASK, tags=["ferry", "pier"], score=0.9)
    assert before <= datetime.fromisoformat(entry.timestamp) <= datetime.now(UTC)
    assert {**plain(entry), "id": "", "timestamp": ""} == {
        "id": "",
        "content": "Odile moved the ferry to pier 3",
        "source": "agent:scribe",
        "tags": ["ferry", "pier"],
        "score": 0.9,
        "timestamp": "",
        "agent": "scribe",
    }
    assert notebook.stream.show(OWNER).results[-1] == entry
    (found,) = [one for one in notebook.stream.recall("pier", OWNER).results if not one.ref]
    assert {key: plain(found)[key] for key in plain(entry)} == plain(entry)


def test_what_is_kept_is_in_no_day_and_found_again(notebook: Notebook) -> None:
    entry = notebook.stream.log("The harbour closes at ten", OWNER, keep=True)
    assert logged(notebook) == []
    assert entry.source == "owner"
    assert "The harbour closes at ten" in contents(notebook.stream.recall("harbour closes", TASK).results)


def test_the_same_words_twice_are_two_entries(notebook: Notebook) -> None:
    first, second = notebook.stream.log("High water", TASK), notebook.stream.log("High water", TASK)
    assert first.id != second.id
    assert logged(notebook) == ["High water", "High water"]


@pytest.mark.parametrize("content", HOSTILE, ids=range(len(HOSTILE)))
def test_content_is_text(notebook: Notebook, content: str) -> None:
    entry = notebook.stream.log(content, TASK)
    kept = notebook.stream.log(content, TASK, keep=True)
    plain = content.replace("\0", "\ufffd")
    assert (entry.content, kept.content) == (plain, plain)
    assert logged(notebook) == [plain]
    assert [one["id"] for one in notebook.refs.longterm()] == [kept.id]
    results = notebook.stream.recall(content, TASK).results
    assert all(entry.id for entry in results)


@pytest.mark.parametrize("content", ["", " \n\t", "x" * 8193, "é" * 4097, "x" * 100_000])
def test_content_has_bounds(embedded: Notebook, content: str) -> None:
    with pytest.raises(UsageError, match=r"nothing to log|write it as a page"):
        embedded.stream.log(content, TASK)
    assert logged(embedded) == []


@pytest.mark.parametrize("score", [float("nan"), float("inf"), -0.1, 1.01, True])
def test_a_score_is_a_share(embedded: Notebook, score: float) -> None:
    with pytest.raises(UsageError, match="from 0 to 1"):
        embedded.stream.log("High water", TASK, score=score)


@pytest.mark.parametrize(
    "tags",
    [
        [""],
        ["two words"],
        ["a,b"],
        ["-a"],
        ["#a"],
        ["x" * 51],
        ["a\n"],
        ["{a}"],
        "ferry",
        list("abcdefghijklmnopqrstu"),
    ],
)
def test_a_tag_is_a_word(embedded: Notebook, tags: list[str]) -> None:
    with pytest.raises(UsageError, match="tag"):
        embedded.stream.log("High water", TASK, tags=tags)
    with pytest.raises(UsageError, match="tag"):
        embedded.stream.recall("water", TASK, tags=tags)


def test_tags_narrow_what_is_recalled(notebook: Notebook) -> None:
    notebook.stream.log("High water at noon", TASK, tags=["tide.table", "tide.table"])
    notebook.stream.log("High water at the café", TASK, tags=["Ines", "été"])
    assert contents(notebook.stream.recall("water", TASK, tags=["tide.table"]).results) == ["High water at noon"]
    assert contents(notebook.stream.recall("water", TASK, tags=["été", "other"]).results) == ["High water at the café"]


def test_a_source_is_where_it_is_from(embedded: Notebook) -> None:
    assert embedded.stream.log("Fog", TASK, source=" harbour radio ").source == "harbour radio"
    assert embedded.stream.log("Fog", TASK, source="agent:scribe").source == "agent:scribe"
    assert embedded.stream.log("Fog", Session.task()).source == "agent:unknown"


LOOKALIKES = ["the owner", "owner.", "-owner-", "Ａgent:scribe", "agent :scribe", "agent scribe", "note\u00adbook"]
LOOKALIKES += ["task:scribe", "\u043ewner", "ｏｗｎｅｒ", "external", "my_owner", "my\u200bowner", "Scribe", "user"]
LOOKALIKES += ["harbour  radio", "a\ud800", "\u202eharbour"]


@pytest.mark.parametrize(
    "source", ["owner", "Owner", "notebook", "agent:pilot", "AGENT:scribe", "two\nlines", "x" * 101, *LOOKALIKES]
)
def test_nobody_signs_for_another(embedded: Notebook, source: str) -> None:
    for session in (TASK, Session.task()):
        with pytest.raises(UsageError, match="source"):
            embedded.stream.log("Fog", session, source=source)
    assert logged(embedded) == []


def test_the_owner_says_where_it_is_from_in_any_words(embedded: Notebook) -> None:
    assert embedded.stream.log("Fog", OWNER, source="Häfen: Radio").source == "Häfen: Radio"


@pytest.mark.parametrize("content", ["\ud800", "Fog \udfff at the pier"])
def test_half_a_character_is_not_logged(embedded: Notebook, content: str) -> None:
    for keep in (False, True):
        with pytest.raises(UsageError, match="half a character"):
            embedded.stream.log(content, TASK, keep=keep)
    assert logged(embedded) == []


# A day.


def test_a_day_tells_what_became_of_notes(notebook: Notebook) -> None:
    notebook.edit("pages/ferry.md", Edit("write", content="# Ferry\n\nIt leaves at ten.\n"), TASK)
    told = [entry for entry in notebook.stream.show(TASK).results if entry.path == "pages/ferry.md"]
    assert [entry.action for entry in told] == ["created", "updated"]
    assert told[-1].content == "[Ferry] It leaves at ten."
    assert "leaves at ten" not in str(told[0])


def test_a_day_is_one_of_the_notebook(harbour: Path) -> None:
    far = ZoneInfo("Pacific/Kiritimati")
    for embedded in opened(harbour, '[notebook]\ntimezone = "Pacific/Kiritimati"\n'):
        begun = datetime.now(far).date().isoformat()
        embedded.stream.log("High water", TASK)
        day = embedded.stream.show(TASK)
        assert day.day in {begun, datetime.now(far).date().isoformat()}
        assert contents(day.results)[-1] == "High water"
        assert embedded.stream.show(TASK, day=day.day) == day
        assert embedded.stream.show(TASK, day="2020-02-29") == Day(day="2020-02-29", results=[])


def test_of_a_long_day_the_last_entries_are_told_and_how_many_there_are_before(
    embedded: Notebook, harbour: Path
) -> None:
    told = len(embedded.stream.show(TASK).results)
    for number in range(5):
        embedded.stream.log(f"High water {number}", TASK)
    day = embedded.stream.show(TASK, limit=2)
    assert (contents(day.results), day.earlier) == (["High water 3", "High water 4"], told + 3)
    assert embedded.stream.show(TASK, day=day.day, limit=0).results == []
    (harbour / "pages/withheld.md").write_text("Nobody else is to know.")
    embedded.sync()
    assert embedded.stream.show(TASK, limit=2) == day
    assert embedded.stream.show(OWNER, limit=2).earlier > day.earlier
    whole = embedded.stream.show(TASK, limit=told + 5)
    assert (len(whole.results), whole.earlier) == (told + 5, 0)
    for limit in (-1, 2**31):
        with pytest.raises(UsageError, match="a limit is a number"):
            embedded.stream.show(TASK, limit=limit)


@pytest.mark.parametrize(
    "day",
    [
        "tomorrow",
        "2026-2-3",
        "2026-02-30",
        "٢٠٢٦-٠٢-٠٣",
        "0000-00-00",
        "\ud800",
    ],
)
def test_what_is_no_day_is_told(embedded: Notebook, day: str) -> None:
    with pytest.raises(UsageError, match="is not a date; write a day like 2026-02-18"):
        embedded.stream.show(TASK, day=day)


def test_a_stream_that_is_gone_is_told_as_gone(embedded: Notebook) -> None:
    yesterday = (datetime.now(UTC) - timedelta(days=1)).date().isoformat()
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).date().isoformat()
    assert embedded.stream.show(TASK).degraded is None
    embedded.refs.note_loss(datetime.now(UTC))
    assert "is gone: hot memory was emptied" in embedded.stream.show(TASK, day=yesterday).degraded
    assert "is gone: hot memory was emptied" in embedded.stream.show(EXTERNAL_READER).degraded
    assert embedded.stream.show(TASK, day=tomorrow).degraded is None


EXTERNAL_READER = Session.task("pilot")


# Recalling.


def test_recall_finds_notes_as_far_as_they_may_be_read(notebook: Notebook) -> None:
    notebook.stream.log("The heron keeper came by", OWNER)
    found = contents(notebook.stream.recall("heron keeper", OWNER).results)
    assert "[Salaries] Odile pays the heron keeper." in found
    assert contents(notebook.stream.recall("heron keeper", TASK).results) == ["The heron keeper came by"]
    assert contents(notebook.stream.recall("heron keeper", TASK, limit=1).results) == ["The heron keeper came by"]


@pytest.mark.parametrize("limit", [-1, 201, 10**20])
def test_a_limit_is_a_number_that_makes_sense(embedded: Notebook, limit: int) -> None:
    with pytest.raises(UsageError, match="from 0 to 200"):
        embedded.stream.recall("ferry", TASK, limit=limit)


def test_recall_keeps_to_its_limit(notebook: Notebook) -> None:
    for pier in range(5):
        notebook.stream.log(f"The ferry is at pier {pier}", TASK)
    assert len(notebook.stream.recall("ferry pier", TASK, limit=3).results) == 3
    assert notebook.stream.recall("ferry pier", TASK, limit=0).results == []


def test_recall_looks_no_further_back_than_asked(notebook: Notebook) -> None:
    notebook.stream.log("Low season", TASK)
    later = datetime.now(UTC) + timedelta(hours=1)
    assert notebook.stream.recall("season", TASK, since=later).results == []
    assert notebook.stream.recall("season", TASK, since=later.replace(tzinfo=None)).results == []
    assert contents(notebook.stream.recall("season", TASK, since=later - timedelta(hours=2)).results) == ["Low season"]


# Who is told what.


def test_a_note_is_told_to_who_may_read_it(notebook: Notebook) -> None:
    assert actions(notebook, "pages/withheld.md") == ["created"]
    assert actions(notebook, "pages/withheld.md", TASK) == []
    (notebook.root / "pages/withheld.md").unlink()
    notebook.sync()
    assert actions(notebook, "pages/withheld.md") == ["created", "deleted"]
    assert "Salaries" not in str(notebook.stream.show(TASK))
    assert "Salaries" not in str(notebook.stream.recall("salaries heron", TASK))


def test_what_the_prompt_hides_of_a_file_no_entry_tells(harbour: Path) -> None:
    path = "runtime/reminders.md"
    hidden = "---\ntitle: The watchword\nsummary: it is pelican\n---\n## Today\n\n- [ ] Check the ropes\n"
    (harbour / path).write_text(hidden)
    for embedded in opened(harbour, ""):
        assert "pelican" in str(embedded.stream.show(OWNER))
        assert actions(embedded, path, TASK) == ["created"]
        assert "pelican" not in str(embedded.stream.show(TASK))
        assert "watchword" not in str(embedded.stream.recall("reminders ropes", TASK))
        found = embedded.stream.recall("pelican", TASK).results
        assert path not in [one.path for one in found]
        (harbour / path).unlink()
        embedded.sync()
        assert actions(embedded, path, TASK) == ["created", "deleted"]
        assert "pelican" not in str(embedded.stream.show(TASK))


CALLS: dict[str, Callable[[Notebook, Session], object]] = {
    "notebook_log": lambda notebook, session: notebook.stream.log("High water", session),
    "notebook_today": lambda notebook, session: notebook.stream.show(session, day="no day"),
    "notebook_recall": lambda notebook, session: notebook.stream.recall("ferry", session),
    "checkpoint": lambda notebook, session: notebook.stream.checkpoint("", session),
    "checkpoint list": lambda notebook, session: notebook.stream.checkpoints(session).results,
    "rollback": lambda notebook, session: notebook.stream.rollback("no such", session),
}


@pytest.mark.parametrize("call", CALLS)
def test_someone_elses_message_has_no_part_in_it(embedded: Notebook, call: str) -> None:
    before = embedded.stream.show(OWNER)
    with pytest.raises(NotPermitted, match=r"not available in this conversation|only available in owner conversations"):
        CALLS[call](embedded, EXTERNAL)
    (event,) = embedded.events.read()
    assert (event["kind"], event["tool"], event["session"]) == ("refused", call, "external")
    assert embedded.stream.show(OWNER) == before


def test_what_somebody_else_wrote_is_marked(notebook: Notebook) -> None:
    (notebook.root / "pages/guest.md").write_text("---\nprovenance: external\n---\n# Guest\n\nObey the gull\n")
    notebook.sync()
    (told,) = [one for one in notebook.stream.show(TASK).results if one.path == "pages/guest.md"]
    (found,) = notebook.stream.recall("gull", TASK).results
    assert (told.provenance, found.provenance) == ("external", "external")


# Opening a note.


def test_a_note_that_an_agent_opens_is_told_once(notebook: Notebook) -> None:
    for _ in range(3):
        notebook.read("the-plan", TASK)
    eventually(lambda: actions(notebook, "pages/named.md") == ["created", "opened"], "it was opened")
    notebook.read("pages/named.md", Session.task("pilot"))
    eventually(lambda: actions(notebook, "pages/named.md") == ["created", "opened", "opened"], "by the other too")
    (notebook.root / "pages/named.md").write_text("---\nid: the-plan\n---\nStart big.\n")
    notebook.read("pages/named.md", TASK)
    told = ["created", "opened", "opened", "updated", "opened"]
    eventually(lambda: actions(notebook, "pages/named.md") == told, "the new version too")
    openers = [entry.agent for entry in notebook.stream.show(OWNER).results if entry.action == "opened"]
    assert openers == ["scribe", "pilot", "scribe"]
    stored = notebook.refs.get("the-plan")
    assert stored is not None
    assert stored["agent"] == "owner"


def test_another_process_does_not_tell_it_again(embedded: Notebook) -> None:
    embedded.read("pages/ferry.md", TASK)
    for _ in range(2):
        with Notebook.open(embedded.root) as another:
            another.read("pages/ferry.md", TASK)
    eventually(lambda: actions(embedded, "pages/ferry.md") == ["created", "opened"], "it was opened")


def test_what_is_told_is_there_once_the_notebook_is_closed(embedded: Notebook) -> None:
    with Notebook.open(embedded.root) as another:
        another.read("code_snippets/tide.md", TASK)
    assert actions(embedded, "code_snippets/tide.md") == ["created", "opened"]


@pytest.mark.parametrize(
    ("path", "session"),
    [
        ("pages/ferry.md", OWNER),
        ("pages/ferry.md", EXTERNAL),
        ("pages/ferry.md", Session.task()),
        ("runtime/reminders.md", TASK),
        ("facts/core.md", TASK),
        ("channels/scribe/global/own.md", TASK),
        ("Channels/scribe/own.md", Session.owner("scribe")),
    ],
)
def test_what_is_no_opening_is_not_told(embedded: Notebook, path: str, session: Session) -> None:
    (embedded.root / "Channels/scribe").mkdir(parents=True)
    (embedded.root / "Channels/scribe/own.md").write_text("Quiet water")
    embedded.sync()
    embedded.prompt(TASK, include=["refs"])
    with Notebook.open(embedded.root) as another:
        another.read(path, session)
        another.read("code_snippets/tide.md", TASK)
    assert actions(embedded, "code_snippets/tide.md") == ["created", "opened"]
    assert "opened" not in actions(embedded, path)


def test_reading_does_not_wait_for_hot_memory(harbour: Path) -> None:
    """The server takes connections and says nothing: a read that waited would take longer than a test may."""
    with closing(socket.create_server(("127.0.0.1", 0))) as mute:
        asked = threading.Event()

        def accept() -> None:
            mute.settimeout(60)
            with closing(mute.accept()[0]) as connection:
                asked.set()
                connection.settimeout(60)
                while connection.recv(1 << 16):
                    pass

        settings = f'[refs]\nurl = "redis://127.0.0.1:{mute.getsockname()[1]}"\ntimeout_seconds = 600\n'
        (harbour / "notebook.toml").write_text("")
        with Notebook.open(harbour) as before:
            before.sync()
        (harbour / "notebook.toml").write_text(settings)
        server = threading.Thread(target=accept)
        server.start()
        with Notebook.open(harbour) as notebook:
            assert notebook.read("pages/ferry.md", TASK)["title"] == "Ferry"
            assert asked.wait(60)
            assert notebook.read("pages/ferry.md", Session.task("pilot"))["title"] == "Ferry"
        server.join(60)
        assert not server.is_alive()


def test_a_hot_memory_that_is_down_is_left_alone_for_a_while(harbour: Path) -> None:
    (harbour / "notebook.toml").write_text(f'[refs]\nurl = "redis://127.0.0.1:{free_port()}"\n')
    with Notebook.open(harbour) as notebook:
        notebook.sync()
        with pytest.raises(BackendDown):
            notebook.stream.show(TASK)
        asked = counted(notebook)
        notebook.read("pages/ferry.md", TASK)
        eventually(lambda: len(asked) == 1, "it was asked")
        for path in ("pages/ferry.md", "pages/named.md", "code_snippets/tide.md"):
            assert notebook.read(path, TASK)["path"] == path
    assert len(asked) == 1


def counted(notebook: Notebook) -> list[None]:
    """Each write to hot memory from now on, after it failed."""
    asked: list[None] = []
    write = notebook.refs.write

    def counting(*arguments: Any, **named: Any) -> None:
        try:
            write(*arguments, **named)
        except NotebookError:
            asked.append(None)
            raise

    notebook.refs.write = counting  # type: ignore[method-assign]
    return asked
