"""Private notes: whose they are, what is kept of them, who finds them, and that nobody else learns of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from notebook_sync import Notebook, Session
from notebook_sync.errors import NotPermitted, TooLarge, UnsafePath, UsageError
from notebook_sync.mirror.base import Document, Filter, Order
from notebook_sync.mirror.sqlite import SqliteMirror
from notebook_sync.notes.channels import search as note_search
from notebook_sync.operations.channels import AgentChannel, PrivateNote
from notebook_sync.operations.registry import Results

OWNER = Session.owner()
SCRIBE, PILOT = Session.task("scribe"), Session.task("pilot")
STRANGER = Session.external("scribe")
NOW = datetime.now(UTC).replace(microsecond=0)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "notebook.toml").write_text("[git]\ncommit = 'off'\n")
    return tmp_path


@pytest.fixture
def notebook(root: Path) -> Iterator[Notebook]:
    with Notebook.open(root) as notebook:
        yield notebook


def put(root: Path, path: str, text: str, hours: float = 0, **fields: object) -> None:
    """A note by hand, made so many hours ago."""
    made = (NOW - timedelta(hours=hours)).isoformat(timespec="milliseconds")
    head = "".join(f"{name}: {value}\n" for name, value in {"created_at": made, **fields}.items())
    (root / "channels" / path).parent.mkdir(parents=True, exist_ok=True)
    (root / "channels" / path).write_text(f"---\n{head}---\n{text}\n")


def share(root: Path, channel: str, **members: list[str]) -> None:
    granted = "".join(f"{agent} = {may!r}\n" for agent, may in members.items())
    (root / "channels" / channel).mkdir(parents=True, exist_ok=True)
    (root / "channels" / channel / "channel.toml").write_text(f"[members]\n{granted}")


def names(found: Results[PrivateNote]) -> list[str]:
    return [row.path.removeprefix("channels/").removesuffix(".md") for row in found.results]


# Writing.


def test_a_note_is_a_file_in_a_channel_that_is_made_with_it(notebook: Notebook, root: Path) -> None:
    written = notebook.channels.write(
        "Ines has the key.\r\nAsk her.",
        SCRIBE,
        topic=" the  harbour ",
        tags=["key", "#boathouse", "key", " "],
        session_id="morning",
        metadata={"confidence": 0.9, "places": ["pier", "1:30"], "when": date(2026, 2, 18), "no": "no"},
    )
    assert written.collection == "channels"
    assert written.path.startswith("channels/scribe/global/")
    assert written.path.endswith("Z-ines-has-the-key-ask-her.md")
    raw = (root / written.path).read_bytes()
    assert raw.endswith(b"---\nInes has the key.\r\nAsk her.")
    document = notebook.read(written.path, SCRIBE)
    metadata = document["metadata"]
    assert metadata["tags"] == ["key", "boathouse"]
    assert metadata["created_by"] == "agent:scribe"
    assert abs(metadata["created_at"] - datetime.now(UTC)) < timedelta(minutes=5)
    assert metadata["extra"] == {
        "type": "note",
        "topic": "the harbour",
        "session_id": "morning",
        "provenance": "task",
        "confidence": 0.9,
        "places": ["pier", "1:30"],
        "when": datetime(2026, 2, 18, tzinfo=UTC),
        "no": "no",
    }
    assert msgspec.to_builtins(written) == {
        "notebook_id": written.path.removesuffix(".md"),
        "path": written.path,
        "title": "Ines has the key. Ask her.",
        "collection": "channels",
        "version": 1,
        "status": "draft",
        "digest": document["source"]["digest"],
        "changed": ["content", "topic", "tags", "session_id", "confidence", "places", "when", "no"],
        "commit": None,
        "warnings": [],
    }


def test_notes_of_one_moment_all_stay(notebook: Notebook) -> None:
    written = [notebook.channels.write("The tide turns", SCRIBE).path for _ in range(5)]
    assert len(set(written)) == 5
    assert names(notebook.channels.recent(SCRIBE)) == [p[9:-3] for p in reversed(written)]


def test_notes_that_several_write_at_once_all_stay(notebook: Notebook) -> None:
    paths: list[str] = []
    agents = [
        threading.Thread(target=lambda: paths.append(notebook.channels.write("The tide turns", SCRIBE).path))
        for _ in range(6)
    ]
    for each in agents:
        each.start()
    for each in agents:
        each.join()
    assert len(set(paths)) == 6
    assert len(notebook.channels.recent(SCRIBE).results) == 6


def test_the_whole_id_of_a_project_names_its_folder(notebook: Notebook) -> None:
    project = "7f3b0a52-2f0e-4f0f-9a58-3c1f5a3a9d11"
    assert f"channels/scribe/{project}/" in notebook.channels.write("Berths", SCRIBE, project=project).path


@pytest.mark.parametrize("name", ["a/b", "..", ".hidden", "a\n", "x" * 200, " ", "\ud800", "a\0"])
def test_what_is_no_name_is_no_project_and_no_agent(notebook: Notebook, root: Path, name: str) -> None:
    for call in (
        lambda: notebook.channels.write("x", SCRIBE, project=name),
        lambda: notebook.channels.write("x", OWNER, channel=name),
        lambda: notebook.channels.search("", SCRIBE, project=name),
        lambda: notebook.channels.peek(name, SCRIBE),
    ):
        with pytest.raises(UsageError):
            call()
    assert not (root / "channels").exists()


RESERVED = ["type", "topic", "tags", "session_id", "provenance", "id", "created_by", "created_at", "title", "summary"]


LOOKALIKES = ["created\u200bby", "created\u200b_by", "created\u00ad_by", "\ufeffprovenance", "createdBy", "created-by"]
LOOKALIKES += ["Created By", "SESSION.ID", "word__count", "ｔａｇｓ", "tag\u017f", "ti\ufe0ftle", "ti\U000e0100tle"]


@pytest.mark.parametrize("key", [*RESERVED, "status", "version", "path", " Provenance ", "TYPE", *LOOKALIKES, "", " "])
def test_metadata_cannot_say_what_the_notebook_says(notebook: Notebook, root: Path, key: str) -> None:
    with pytest.raises(UsageError):
        notebook.channels.write("x", STRANGER, metadata={key: "owner"})
    assert not (root / "channels").exists()


@pytest.mark.parametrize(
    "metadata",
    [
        {"a": "x\nprovenance: owner\n---\n"},
        {"a: 1 provenance": "owner"},
        {"a": {"provenance": "owner"}},
        {"---": "---"},
    ],
)
def test_no_value_and_no_key_passes_for_another_field(notebook: Notebook, metadata: dict[str, Any]) -> None:
    written = notebook.channels.write("x", STRANGER, topic="t\nprovenance: owner", tags=["a\nb: c"], metadata=metadata)
    assert written.provenance == "external"
    document = notebook.read(written.path, OWNER)
    assert document["external"]
    assert document["metadata"]["extra"]["provenance"] == "external"
    assert document["metadata"]["created_by"] == "agent:scribe"


@pytest.mark.parametrize(
    "value", [2**63, float("nan"), float("inf"), {1: "x"}, {"x": {1, 2}}, b"x", object(), "x" * 70_000]
)
def test_a_value_that_no_file_can_hold_is_refused_by_its_name(notebook: Notebook, root: Path, value: Any) -> None:
    with pytest.raises(UsageError):
        notebook.channels.write("x", SCRIBE, metadata={"depth": value})
    assert not (root / "channels").exists()


@pytest.mark.parametrize(
    "name", ["a\nprovenance", "a\0", "\x1b[31m", "tide\u200btable", "\u202eedit", "a\u2028b", "\ud800"]
)
def test_a_name_with_what_nobody_sees_is_refused(notebook: Notebook, root: Path, name: str) -> None:
    with pytest.raises(UsageError, match="nobody sees"):
        notebook.channels.write("x", SCRIBE, metadata={name: "owner"})
    assert not (root / "channels").exists()


@pytest.mark.parametrize("metadata", ["x", [1], [("depth", 2)]])
def test_metadata_is_values_by_their_names(notebook: Notebook, root: Path, metadata: Any) -> None:
    with pytest.raises(UsageError, match="by their names"):
        notebook.channels.write("x", SCRIBE, metadata=metadata)
    assert not (root / "channels").exists()


@pytest.mark.parametrize("tags", [[7], 7, {"keys": 1}])
def test_tags_are_texts(notebook: Notebook, root: Path, tags: Any) -> None:
    with pytest.raises(UsageError, match="list of texts"):
        notebook.channels.write("x", SCRIBE, tags=tags)
    assert not (root / "channels").exists()


@pytest.mark.parametrize("tags", [["#keys", "# pier", "##  pier"], "#keys, pier"])
def test_tags_are_read_alike_in_private_notes_and_pages(notebook: Notebook, tags: list[str] | str) -> None:
    kept = notebook.channels.write("The key hangs at the pier", SCRIBE, tags=tags)
    page = notebook.create("pages", "Keys", "At the pier.", SCRIBE, tags=tags)
    for path in (kept.path, page.path):
        assert notebook.read(path, SCRIBE)["metadata"]["tags"] == ["keys", "pier"]


def test_a_value_without_an_end_is_refused(notebook: Notebook) -> None:
    endless: dict[str, Any] = {}
    endless["again"] = endless
    with pytest.raises(UsageError, match="depth"):
        notebook.channels.write("x", SCRIBE, metadata={"depth": endless})


@pytest.mark.parametrize("confidence", [-0.1, 1.1, "high", True])
def test_confidence_is_a_share(notebook: Notebook, confidence: Any) -> None:
    with pytest.raises(UsageError, match="confidence"):
        notebook.channels.write("x", SCRIBE, metadata={"confidence": confidence})


@pytest.mark.parametrize("content", ["", " \n\t"])
def test_an_empty_note_is_refused(notebook: Notebook, content: str) -> None:
    with pytest.raises(UsageError, match="empty"):
        notebook.channels.write(content, SCRIBE)


@pytest.mark.parametrize("content", ["\ud800 x", "a\0b", "🚢" * 50, "---\nprovenance: owner\n---\n", "!!", "{{7*7}}"])
def test_any_text_can_be_kept(notebook: Notebook, content: str) -> None:
    written = notebook.channels.write(content, STRANGER)
    assert notebook.read(written.path, OWNER)["content"] == content.replace("\ud800", "\ufffd")
    assert written.provenance == "external"


def test_a_note_beyond_the_limit_is_refused(root: Path) -> None:
    (root / "notebook.toml").write_text("[notebook]\nmax_file_bytes = 2000\n")
    with Notebook.open(root) as notebook, pytest.raises(TooLarge):
        notebook.channels.write("x" * 3000, SCRIBE)


def test_nobody_writes_into_a_channel_of_nobody(notebook: Notebook) -> None:
    for session in (OWNER, Session.task(), Session.external()):
        with pytest.raises(UsageError, match="name it"):
            notebook.channels.write("x", session)


def test_the_owner_writes_for_an_agent_and_as_one(notebook: Notebook) -> None:
    by_owner = notebook.channels.write("x", OWNER, channel="scribe")
    by_agent = notebook.channels.write("x", Session.owner("scribe"))
    assert {Path(each.path).parent.as_posix() for each in (by_owner, by_agent)} == {"channels/scribe/global"}
    authors = [notebook.read(each.path, OWNER)["metadata"]["created_by"] for each in (by_owner, by_agent)]
    assert authors == ["owner", "agent:scribe"]


def test_a_member_that_may_write_writes_under_its_own_name(notebook: Notebook, root: Path) -> None:
    share(root, "scribe/global", pilot=["write"], mate=["read"])
    written = notebook.channels.write("x", PILOT, channel="scribe")
    assert notebook.read(written.path, OWNER)["metadata"]["created_by"] == "agent:pilot"
    for session in (Session.task("mate"), Session.external("pilot")):
        with pytest.raises(NotPermitted):
            notebook.channels.write("x", session, channel="scribe")


# Finding.


def test_a_row_has_light_fields_and_never_the_text(notebook: Notebook) -> None:
    written = notebook.channels.write(
        f"The rope.\n\n{'Long ago. ' * 40} CANARY", SCRIBE, topic="harbour", session_id="s1", tags=["rope"]
    )
    (row,) = notebook.channels.search("rope", SCRIBE).results
    assert msgspec.to_builtins(row).keys() == {
        *("id", "path", "collection", "title", "summary", "tags", "updated_at", "status", "created_by", "word_count"),
        *("version", "topic", "session_id", "created_at", "score"),
    }
    assert (row.path, row.topic, row.session_id, row.title) == (written.path, "harbour", "s1", "The rope.")
    assert "CANARY" not in str(row)
    (recent,) = notebook.channels.recent(SCRIBE).results
    assert recent == msgspec.structs.replace(row, score=None)


def test_rows_tell_what_somebody_else_said(notebook: Notebook) -> None:
    notebook.channels.write("The rope", STRANGER)
    assert [row.provenance for row in notebook.channels.recent(SCRIBE).results] == ["external"]


def test_by_words_alone_a_query_leaves_out_notes_without_a_word_of_it(root: Path) -> None:
    (root / "notebook.toml").write_text('[git]\ncommit = "off"\n[search]\nembeddings = "off"\n')
    with Notebook.open(root) as notebook:
        rope = notebook.channels.write("The ropes are worn", SCRIBE)
        notebook.channels.write("The lamp is lit", SCRIBE)
        assert names(notebook.channels.search("rope anchor", SCRIBE)) == [rope.path[9:-3]]
        assert notebook.channels.search("anchor", SCRIBE).results == []


@pytest.mark.parametrize(
    "query", ['"', "rope AND", "-rope", "NEAR(rope", "*", "col:rope", "'; --", "🚢", "\0", "\ud800"]
)
def test_no_mark_in_a_query_is_an_operator(notebook: Notebook, query: str) -> None:
    notebook.channels.write("The rope", SCRIBE)
    assert len(notebook.channels.search(query, SCRIBE).results) == ("rope" in query)


@pytest.fixture
def aged(root: Path) -> Path:
    put(root, "scribe/global/old-sure.md", "the rope, the rope", hours=720, confidence=1.0)
    put(
        root,
        "scribe/global/new-unsure.md",
        "a rope and much else that one may say of harbours",
        hours=1,
        confidence=0.0,
    )
    put(root, "scribe/global/alike.md", "rope rope rope rope", hours=4000, confidence=0.1)
    return root


@pytest.mark.parametrize(
    ("profile", "first"),
    [("recent", "new-unsure"), ("quality", "old-sure"), ("similarity", "alike")],
)
def test_a_profile_says_what_counts(aged: Path, profile: str, first: str) -> None:
    with Notebook.open(aged) as notebook:
        notebook.sync()
        found = notebook.channels.search("rope", SCRIBE, profile=profile)
    assert names(found)[0] == f"scribe/global/{first}"
    scores = [row.score or -1 for row in found.results]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


def test_without_a_query_likeness_has_no_part(aged: Path) -> None:
    with Notebook.open(aged) as notebook:
        notebook.sync()
        rows = notebook.channels.search("", SCRIBE, profile="quality")
    assert names(rows)[0] == "scribe/global/old-sure"
    assert rows.results[0].score == pytest.approx((0.1 * 0.5 + 0.5) / 0.6, abs=1e-3)


def test_both_stores_answer_alike(aged: Path, mongodb_url: str, mongo_database: str) -> None:
    put(aged, "scribe/ferry/tagged.md", "The lamps, and ropes", tags="[a]", topic="2026", session_id="s1")
    put(aged, "pilot/global/rope.md", "rope rope")
    share(aged, "pilot/global", scribe=["read"])

    def answers() -> list[Any]:
        with Notebook.open(aged) as notebook:
            notebook.sync()
            found = [
                notebook.channels.search("rope", SCRIBE, profile="similarity"),
                notebook.channels.search("lamp rope", SCRIBE, profile="similarity", topic="2026", tags=["a", "b"]),
                notebook.channels.recent(SCRIBE, session_id="s1"),
                notebook.channels.recent(SCRIBE, channel="pilot"),
            ]
            rows = [[(row.path, row.score) for row in each.results] for each in found]
            return [*rows, notebook.channels.list(SCRIBE)]

    embedded = answers()
    (aged / "notebook.toml").write_text(f"[mirror]\nurl = '{mongodb_url}'\ndatabase = '{mongo_database}'\n")
    assert answers() == embedded


@pytest.mark.parametrize("limit", [2, 3])
def test_of_many_notes_no_more_are_read_than_are_asked_for(
    root: Path, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    (root / "notebook.toml").write_text(
        '[git]\ncommit = "off"\n[[prompt.files]]\npath = "channels/scribe/global/7.md"\nsessions = ["owner"]\n'
    )
    for number in range(10):
        put(root, f"scribe/global/{number}.md", "rope", hours=9 - number)
    counts = []

    def counted(mirror: SqliteMirror, filter: Filter, limit: int, by: Order) -> list[Document]:
        counts.append(limit)
        return light(mirror, filter, limit, by)

    light = SqliteMirror.light
    with Notebook.open(root) as notebook:
        notebook.sync()
        monkeypatch.setattr(SqliteMirror, "light", counted)
        assert names(notebook.channels.recent(SCRIBE, limit=limit)) == [
            f"scribe/global/{number}" for number in (9, 8, 6)[:limit]
        ]
    assert counts == [limit]


def test_of_more_notes_than_are_ranked_the_best_and_the_newest_are(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(note_search, "_RANKED", 3)
    for number in range(9):
        put(root, f"scribe/global/{number}.md", "rope and more", hours=9 - number, title="Sail")
    for number in (0, 1, 2):
        put(root, f"scribe/global/{number}.md", "rope", hours=9 - number, title="Rope")
    put(root, "scribe/global/newest.md", "lamp", title="Lamp")
    with Notebook.open(root) as notebook:
        notebook.sync()
        everyone = {f"scribe/global/{number}" for number in (0, 1, 2, 7, 8)}
        assert set(names(notebook.channels.search("rope", SCRIBE, limit=3, profile="recent"))) < everyone
        assert names(notebook.channels.search("rope", SCRIBE, limit=1, profile="recent")) == ["scribe/global/8"]
        assert len(notebook.channels.search("rope", SCRIBE, limit=9).results) == 9
        assert names(notebook.channels.search("lamp", SCRIBE)) == ["scribe/global/newest"]
        assert len(notebook.channels.search("", SCRIBE, limit=2).results) == 2


def test_an_unknown_profile_and_a_wrong_limit_are_told(notebook: Notebook) -> None:
    with pytest.raises(UsageError, match="recent, quality, balanced, similarity"):
        notebook.channels.search("x", SCRIBE, profile="best")
    for limit in (-1, 2**31):
        with pytest.raises(UsageError, match="limit"):
            notebook.channels.recent(SCRIBE, limit=limit)
    assert notebook.channels.recent(SCRIBE, limit=0).results == []


@pytest.fixture
def kept(root: Path) -> Path:
    put(root, "scribe/global/one.md", "rope", hours=1, topic="harbour", tags="[a, b]", session_id="s1")
    put(root, "scribe/global/two.md", "rope", hours=30, topic="harbour", tags="[b]", session_id="s2")
    put(root, "scribe/ferry/three.md", "rope", hours=60, topic="2026", tags="[c]", session_id="s1")
    put(root, "scribe/ferry2/four.md", "rope", hours=90, session_id="s1")
    return root


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({}, "one two three four"),
        ({"tags": ["a", "c"]}, "one three"),
        ({"tags": ["nothing"]}, ""),
        ({"topic": "harbour"}, "one two"),
        ({"topic": " harbour "}, "one two"),
        ({"topic": "2026"}, "three"),
        ({"session_id": "s1"}, "one three four"),
        ({"session_id": "s1", "project": "ferry"}, "one three"),
        ({"project": "global"}, "one two"),
        ({"project": "ferry"}, "one two three"),
        ({"project": "nowhere"}, "one two"),
        ({"since": NOW - timedelta(hours=40)}, "one two"),
        ({"until": NOW - timedelta(hours=40)}, "three four"),
        ({"since": NOW - timedelta(hours=60), "until": NOW - timedelta(hours=30)}, "three"),
        ({"since": date(2000, 1, 1), "until": date(2000, 1, 2)}, ""),
        ({"session_id": "s1", "limit": 2}, "one three"),
        ({"limit": 1}, "one"),
    ],
)
def test_what_is_not_wanted_is_left_out_before_the_limit_is(kept: Path, wanted: dict[str, Any], expected: str) -> None:
    with Notebook.open(kept) as notebook:
        notebook.sync()
        for query in ("", "rope"):
            rows = notebook.channels.search(query, SCRIBE, profile="recent", **wanted)
            assert [name.rpartition("/")[2] for name in names(rows)] == expected.split()
        if not wanted.keys() & {"since", "until", "tags"}:
            rows = notebook.channels.recent(SCRIBE, **wanted)
            assert [name.rpartition("/")[2] for name in names(rows)] == expected.split()


def test_the_owner_sees_all_channels_or_those_of_one_agent(notebook: Notebook) -> None:
    notebook.channels.write("rope one", SCRIBE, project="ferry")
    notebook.channels.write("rope two", PILOT)
    assert len(notebook.channels.search("rope", OWNER).results) == 2
    assert len(notebook.channels.recent(OWNER).results) == 2
    assert len(notebook.channels.recent(OWNER, project="ferry").results) == 2
    assert len(notebook.channels.recent(OWNER, project="global").results) == 1
    assert len(notebook.channels.recent(OWNER, channel="pilot").results) == 1
    assert len(notebook.channels.recent(Session.owner("scribe")).results) == 1
    assert len(notebook.channels.peek("pilot", OWNER).results) == 1


def test_the_owner_asks_for_a_project_of_many_agents(root: Path) -> None:
    for number in range(60):
        put(root, f"agent{number}/ferry/one.md", "rope", hours=number)
        put(root, f"agent{number}/other/one.md", "rope")
    with Notebook.open(root) as notebook:
        notebook.sync()
        assert len(notebook.channels.search("rope", OWNER, project="ferry", limit=1000).results) == 60
        for limit in (7, 55):
            assert len(notebook.channels.search("rope", OWNER, project="ferry", limit=limit).results) == limit
            recent = notebook.channels.recent(OWNER, project="ferry", limit=limit)
            assert names(recent) == [f"agent{number}/ferry/one" for number in range(limit)]


# Keeping apart.

ASKED: list[Callable[[Notebook, Session], Any]] = [
    lambda notebook, session: notebook.channels.search("rope", session, channel="scribe"),
    lambda notebook, session: notebook.channels.search("", session, channel="scribe", project="ferry"),
    lambda notebook, session: notebook.channels.search("", session, channel="scribe", topic="harbour", tags=["a"]),
    lambda notebook, session: notebook.channels.recent(session, channel="scribe"),
    lambda notebook, session: notebook.channels.recent(session, channel="scribe", session_id="s1", limit=0),
    lambda notebook, session: notebook.channels.peek("scribe", session),
    lambda notebook, session: notebook.channels.peek("scribe", session, query="rope", project="ferry"),
    lambda notebook, session: notebook.channels.write("x", session, channel="scribe"),
    lambda notebook, session: notebook.channels.write("x", session, channel="scribe", project="ferry"),
    lambda notebook, session: notebook.channels.search("", session, channel="scribe", profile="best"),
    lambda notebook, session: notebook.channels.recent(session, channel="scribe", project="a/b"),
]


def answer(root: Path, ask: Callable[[Notebook, Session], Any], session: Session) -> tuple[str, str]:
    with Notebook.open(root) as notebook:
        notebook.sync()
        with pytest.raises((NotPermitted, UsageError)) as raised:
            ask(notebook, session)
        return type(raised.value).__name__, str(raised.value)


@pytest.mark.parametrize("session", [PILOT, Session.task(), Session.external("pilot"), Session.external()])
@pytest.mark.parametrize("ask", ASKED)
def test_the_answer_is_the_same_whether_a_channel_is_there_or_not(
    root: Path, tmp_path_factory: pytest.TempPathFactory, ask: Callable[[Notebook, Session], Any], session: Session
) -> None:
    empty = tmp_path_factory.mktemp("empty")
    (empty / "notebook.toml").write_text("")
    for scope in ("global", "ferry"):
        put(root, f"scribe/{scope}/one.md", "rope", topic="harbour", tags="[a]", session_id="s1")
        share(root, f"scribe/{scope}", mate=["read"])
    assert answer(root, ask, session) == answer(empty, ask, session)


def test_somebody_elses_message_reads_no_channel_also_not_its_own(notebook: Notebook) -> None:
    notebook.channels.write("rope", STRANGER)
    for ask in (
        lambda: notebook.channels.search("rope", STRANGER),
        lambda: notebook.channels.recent(STRANGER),
        lambda: notebook.channels.peek("scribe", STRANGER),
    ):
        with pytest.raises(NotPermitted):
            ask()
    assert notebook.channels.list(STRANGER).results == []


def test_what_is_refused_leaves_an_event(notebook: Notebook) -> None:
    with pytest.raises(NotPermitted):
        notebook.channels.peek("scribe", PILOT)
    last = notebook.events.read()[-1]
    assert (last["kind"], last["agent"], last["tool"]) == ("refused", "pilot", "peek_agent_notes")


def test_anothers_notes_have_no_part_in_scores_order_or_limit(root: Path) -> None:
    put(root, "scribe/global/one.md", "rope and lamp", hours=1)
    put(root, "scribe/global/two.md", "lamp and lamp and sail", hours=2)
    with Notebook.open(root) as notebook:
        notebook.sync()
        alone = notebook.channels.search("rope lamp", SCRIBE, profile="similarity", limit=1)
        for number in range(30):
            put(root, f"pilot/global/{number}.md", "rope rope rope")
        notebook.sync()
        assert notebook.channels.search("rope lamp", SCRIBE, profile="similarity", limit=1) == alone
        assert len(notebook.channels.search("rope", SCRIBE, limit=50).results) == 1


def test_an_agent_whose_name_begins_alike_is_another(root: Path) -> None:
    put(root, "scribe2/global/one.md", "rope")
    put(root, "Scribe/global/two.md", "rope")
    with Notebook.open(root) as notebook:
        notebook.sync()
        assert notebook.channels.search("rope", SCRIBE).results == []


def test_a_note_that_the_prompt_withholds_is_withheld_here(root: Path) -> None:
    (root / "notebook.toml").write_text(
        '[[prompt.files]]\npath = "channels/scribe/global/two.md"\nsessions = ["owner"]\n'
    )
    put(root, "scribe/global/one.md", "rope")
    put(root, "scribe/global/two.md", "rope")
    with Notebook.open(root) as notebook:
        notebook.sync()
        assert names(notebook.channels.search("rope", SCRIBE)) == ["scribe/global/one"]


# Sharing.


@pytest.fixture
def shared(root: Path) -> Path:
    put(root, "scribe/global/secret.md", "rope")
    put(root, "scribe/ferry/plan.md", "rope")
    share(root, "scribe/ferry", pilot=["read"], mate=["peek"], cook=["write"])
    return root


def test_a_member_reads_what_is_shared_and_nothing_beside_it(shared: Path) -> None:
    with Notebook.open(shared) as notebook:
        notebook.sync()
        for rows in (
            notebook.channels.search("rope", PILOT, channel="scribe"),
            notebook.channels.search("rope", PILOT, channel="scribe", project="ferry"),
            notebook.channels.recent(PILOT, channel="scribe"),
            notebook.channels.peek("scribe", PILOT, query="rope"),
            notebook.channels.peek("scribe", Session.task("mate")),
        ):
            assert names(rows) == ["scribe/ferry/plan"]
        assert notebook.channels.search("rope", PILOT).results == []
        for session in (Session.task("mate"), Session.task("cook")):
            with pytest.raises(NotPermitted):
                notebook.channels.search("rope", session, channel="scribe")


def test_what_is_withdrawn_holds_at_once(shared: Path) -> None:
    with Notebook.open(shared) as notebook:
        notebook.sync()
        assert notebook.channels.recent(PILOT, channel="scribe").results
        (shared / "channels/scribe/ferry/channel.toml").unlink()
        with pytest.raises(NotPermitted):
            notebook.channels.recent(PILOT, channel="scribe")


def test_channels_are_listed_to_who_may_use_them(shared: Path) -> None:
    with Notebook.open(shared) as notebook:
        notebook.sync()
        members = {"pilot": ["read"], "mate": ["peek"], "cook": ["write"]}
        secret = ("notes:scribe:global", "notes-scribe", "scribe", "global")
        plan = ("notes:scribe:ferry", "notes-scribe", "scribe", "ferry")
        both = [AgentChannel(*plan, 1, members), AgentChannel(*secret, 1, {})]
        assert notebook.channels.list(OWNER).results == both
        assert notebook.channels.list(SCRIBE).results == both
        assert notebook.channels.list(PILOT).results == [AgentChannel(*plan, 1, {"pilot": ["read"]})]
        assert notebook.channels.list(Session.task("cook")).results == [AgentChannel(*plan, None, {"cook": ["write"]})]
        assert notebook.channels.list(Session.task("nobody")).results == []
        assert notebook.channels.list(Session.task()).results == []


def test_a_channel_through_a_link_is_none(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "global").mkdir()
    (root / "channels").mkdir()
    (root / "channels/scribe").symlink_to(elsewhere)
    with Notebook.open(root) as notebook:
        assert notebook.channels.list(OWNER).results == []
        with pytest.raises(UnsafePath):
            notebook.channels.write("x", SCRIBE)
    assert list((elsewhere / "global").iterdir()) == []
