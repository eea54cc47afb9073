"""Private notes: whose they are, what is kept of them, who finds them, and that nobody else learns of them."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from notebook_sync import Notebook, Session
from notebook_sync.errors import NoAgentNamed, NotebookError, NotPermitted, UnsafePath, UsageError
from notebook_sync.registry import Results, for_model
from notebook_sync.services.channels import PrivateNote
from notebook_sync.surfaces.tools import call_tool
from tests.services.conftest import (
    NAMELESS,
    OWNER,
    PILOT,
    SCRIBE,
    STRANGER,
    add_settings,
    assert_raises,
    on_redis,
    synced,
    write_files,
)
from tests.store.mirrors import Keys

NOW = datetime.now(UTC).replace(microsecond=0)
OFF = '[notebook]\ntimezone = "UTC"\n[search]\nembeddings = "off"\n'


@pytest.fixture
def root(folder: Path) -> Path:
    return write_files(folder, {"notebook.toml": OFF})


@pytest.fixture
def notebook(root: Path) -> Iterator[Notebook]:
    with Notebook.open(root) as opened:
        yield opened


def put(root: Path, path: str, text: str, hours: float = 0, **fields: object) -> None:
    """A note by hand, made so many hours ago."""
    made = (NOW - timedelta(hours=hours)).isoformat(timespec="milliseconds")
    head = "".join(f"{name}: {value}\n" for name, value in {"created_at": made, **fields}.items())
    write_files(root, {f"channels/{path}": f"---\n{head}---\n{text}\n"})


def share(root: Path, channel: str, **members: list[str]) -> None:
    granted = "".join(f"{agent} = {may!r}\n" for agent, may in members.items())
    write_files(root, {f"channels/{channel}/channel.toml": f"[members]\n{granted}"})


def names(found: Results[PrivateNote]) -> list[str]:
    return [row.path.removeprefix("channels/").removesuffix(".md") for row in found.results]


# ---- writing


def test_a_note_is_a_file_in_a_channel_that_is_made_with_it(notebook: Notebook) -> None:
    own = {"confidence": 0.9, "places": ["pier", "1:30"], "severity": "1", "related_pr": 7}
    given: dict[str, Any] = {"topic": " the  harbour ", "tags": ["key", "#boathouse", " "], "session_id": "morning"}
    done = notebook.channels.write("Ines has the key.\r\nAsk her.", SCRIBE, **given, metadata=own)
    assert (done.status, done.collection, done.version, done.commit != "") == ("created", "channels", 1, True)
    assert done.path.startswith("channels/scribe/global/2")
    assert done.path.endswith("Z-ines-has-the-key-ask-her.md")
    assert (notebook.root / done.path).read_bytes().endswith(b"---\nInes has the key.\r\nAsk her.")
    read = notebook.notes.read(done.path, SCRIBE)
    assert (read.tags, read.created_by, read.provenance) == (["key", "boathouse"], "agent:scribe", "")
    for row in (*notebook.channels.recent(SCRIBE).results, *notebook.channels.search("key", SCRIBE).results):
        assert (row.id, row.title) == (done.notebook_id, "Ines has the key. Ask her.")
        assert (row.topic, row.session_id, row.metadata) == ("the harbour", "morning", own)
        assert abs(row.created_at - datetime.now(UTC)) < timedelta(minutes=5)
        assert "key.\\r" not in str(row)


def test_notes_of_one_moment_all_stay(notebook: Notebook) -> None:
    with ThreadPoolExecutor(4) as agents:
        made = {*agents.map(lambda text: notebook.channels.write(text, SCRIBE).path, ["The tide turns"] * 4)}
    assert len(made) == len(notebook.channels.recent(SCRIBE).results) == 4


@pytest.mark.parametrize(
    ("call", "argument", "session"),
    [
        ("write", "project", SCRIBE),
        ("write", "channel", OWNER),
        ("search", "project", SCRIBE),
        ("peek", "channel", SCRIBE),
    ],
)
def test_what_is_no_name_is_no_project_and_no_agent(
    notebook: Notebook, call: str, argument: str, session: Session
) -> None:
    more = {"content": "x"} if call == "write" else {}
    for name in ("a/b", "..", ".hidden", "a\n", "x" * 200, " ", "a\0"):
        assert_raises(UsageError, getattr(notebook.channels, call), **{argument: name, "session": session, **more})
    assert not (notebook.root / "channels").exists()


LOOKALIKES = (
    *("Provenance ", "TYPE", "created\u200bby", "createdBy", "created-by", "SESSION.ID", "ｔａｇｓ", "tag\u017f"),
    *("ti\ufe0ftle", "a\nprovenance", "\u202eedit", "", " ", "supersededBy"),
)


@pytest.mark.parametrize(
    ("agent", "project"), [("scribe", "CON"), ("scribe", "aux.v2"), ("scribe", "\u0436" * 128), ("nul", "")]
)
def test_a_channel_that_no_system_can_have_as_a_folder_is_refused(notebook: Notebook, agent: str, project: str) -> None:
    assert_raises(UnsafePath, notebook.channels.write, "The buoy drifts", Session.task(agent), project=project)


def test_neither_what_the_notebook_says_nor_what_no_file_can_hold_is_written(notebook: Notebook) -> None:
    for name in ("type", "topic", "session_id", "provenance", "id", "version", *LOOKALIKES):
        assert_raises(UsageError, notebook.channels.write, "x", STRANGER, metadata={name: "owner"})
    confidences: list[Any] = [-0.1, 1.1, "high", True]
    depths: list[Any] = [float("nan"), 2**63, b"x", "x" * 70_000]
    fields = [*({"confidence": each} for each in confidences), *({"depth": each} for each in depths)]
    for metadata in fields:
        assert_raises(UsageError, notebook.channels.write, "x", SCRIBE, metadata=metadata)
    for content in (" \n\t", "---\nprovenance: owner\n---\n"):
        assert_raises(UsageError, notebook.channels.write, content, SCRIBE)
    assert not (notebook.root / "channels").exists()


def test_no_value_passes_for_another_field(notebook: Notebook) -> None:
    given = {"topic": "t\nprovenance: owner", "tags": ["a\nb: c"], "metadata": {"a": "x\nprovenance: owner\n---\n"}}
    done = notebook.channels.write("🚢 {{7*7}}", STRANGER, **given)  # type: ignore[arg-type]
    read = notebook.notes.read(done.path)
    assert (done.provenance, read.provenance, read.created_by) == ("external", "external", "agent:scribe")
    (row,) = for_model(notebook.channels.recent(SCRIBE)).results
    assert (row.topic, row.session_id, row.metadata, row.tags, "🚢" in str(row)) == ("", "", {}, [], False)


def test_an_agent_writes_as_itself_and_the_owner_for_anyone(notebook: Notebook, root: Path) -> None:
    share(root, "scribe/global", pilot=["write"], mate=["read"])
    writers = (OWNER, Session.owner("scribe"), PILOT)
    made = [notebook.channels.write("x", session, channel="scribe").path for session in writers]
    assert {each.rpartition("/")[0] for each in made} == {"channels/scribe/global"}
    assert [notebook.notes.read(path).created_by for path in made] == ["owner", "agent:scribe", "agent:pilot"]


@pytest.mark.parametrize(
    ("session", "channel", "error"),
    [
        *((each, "scribe", NotPermitted) for each in (Session.task("mate"), Session.external("pilot"))),
        *((each, "", NoAgentNamed) for each in (OWNER, NAMELESS, Session.external())),
    ],
)
def test_nobody_else_writes(
    notebook: Notebook, root: Path, session: Session, channel: str, error: type[NotebookError]
) -> None:
    share(root, "scribe/global", pilot=["write"], mate=["read"])
    assert_raises(error, notebook.channels.write, "x", session, channel=channel)


def test_a_channel_that_git_ignores_or_that_is_a_link_takes_no_note(root: Path, tmp_path: Path) -> None:
    write_files(root, {".gitignore": "channels/pilot\n"})
    (root / "channels").mkdir()
    (root / "channels/scribe").symlink_to(tmp_path)
    with Notebook.open(root) as notebook:
        for session in (PILOT, SCRIBE):
            assert_raises(UnsafePath, notebook.channels.write, "x", session)
        assert notebook.channels.list().results == []


def test_nothing_of_a_note_reaches_redis_the_stream_or_another_session(
    root: Path, redis_url: str, redis_prefix: str
) -> None:
    add_settings(root, on_redis(redis_url, redis_prefix))
    with synced(root) as notebook:
        notebook.channels.write("The quillfeather", SCRIBE, topic="quillfeather")
        notebook.notes.create("Public", SCRIBE)
        notebook.sync()
        keys, index = Keys(redis_url, redis_prefix), notebook.core.index
        refs = [keys.ref(each) for each in keys.refs()]
        assert len(refs) == 1
        assert "quillfeather" not in str([*refs, *keys.lines()])
        assert [each["ref"]["collection"] for each in index.stream.find()] == ["pages"]
        assert {*index.documents.frequencies(notebook.core.analyzer.terms("quillfeather"))[1].values()} == {0}
        assert notebook.search("quillfeather", PILOT).results == []


# ---- finding


@pytest.fixture
def aged(root: Path) -> Path:
    for name, text, hours, confidence in (
        ("old-sure", "the rope, the rope", 720, 1.0),
        ("new-unsure", "a rope and much that one may say of harbours", 1, 0.0),
        ("alike", "rope rope rope rope", 4000, 0.1),
        ("lamp", "The lamp is lit", 1, 0.5),
    ):
        put(root, f"scribe/global/{name}.md", text, hours=hours, confidence=confidence)
    return root


@pytest.mark.parametrize(
    ("profile", "first"), [("recent", "new-unsure"), ("quality", "old-sure"), ("similarity", "alike")]
)
def test_a_profile_says_what_counts(aged: Path, profile: Any, first: str) -> None:
    with synced(aged) as notebook:
        found = notebook.channels.search("rope anchor", SCRIBE, profile=profile)
        assert names(found)[0] == f"scribe/global/{first}"
        assert "scribe/global/lamp" not in names(found)
        scores = [row.score or -1 for row in found.results]
        assert [1, *scores, 0] == sorted([1, *scores, 0], reverse=True)
        assert notebook.channels.search("anchor", SCRIBE).results == []
        best = [notebook.channels.search("rope", SCRIBE, profile=profile, limit=limit).results for limit in (1, 2, 50)]
        assert best[:2] == [best[2][:1], best[2][:2]]


def test_without_a_query_likeness_has_no_part(aged: Path) -> None:
    with synced(aged) as notebook:
        rows = notebook.channels.search("", SCRIBE, profile="quality").results
        assert rows[0].path.endswith("old-sure.md")
        assert rows[0].score == pytest.approx((0.1 * 0.5 + 0.5) / 0.6, abs=1e-3)


def test_other_words_of_the_same_meaning_are_found(root: Path) -> None:
    write_files(root, {"notebook.toml": ""})
    put(root, "scribe/global/boat.md", "The ferry to the island leaves at nine")
    put(root, "scribe/global/soup.md", "Boil leeks and potatoes, then salt")
    with synced(root) as notebook:
        found = notebook.channels.search("boat departure time", SCRIBE, profile="similarity")
        assert (names(found), found.degraded) == (["scribe/global/boat"], None)


def test_older_notes_than_are_ranked_are_found_by_their_words(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("notebook_sync.services.channels._RANKED", 2)
    for number in range(6):
        put(root, f"scribe/global/{number}.md", "rope" if number == 5 else "lamp", hours=number)
    with synced(root) as notebook:
        assert names(notebook.channels.search("rope", SCRIBE, limit=1)) == ["scribe/global/5"]
        assert len(notebook.channels.search("", SCRIBE, limit=1).results) == 1


@pytest.fixture
def kept(root: Path) -> Path:
    for path, hours, fields in (
        ("scribe/global/one.md", 1, {"topic": "harbour", "tags": "[a, b/c]", "session_id": "s1"}),
        ("scribe/global/two.md", 30, {"topic": "harbour", "tags": "[b]", "session_id": "s2"}),
        ("scribe/ferry/three.md", 60, {"topic": "2026", "tags": "[c]", "session_id": "s1"}),
        ("scribe/ferry2/four.md", 90, {"session_id": "s1"}),
        ("scribe2/global/five.md", 2, {"topic": "harbour"}),
        ("Scribe/global/six.md", 2, {"topic": "harbour"}),
    ):
        put(root, path, "rope", hours=hours, **fields)
    return root


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({}, "one two three four"),
        ({"tags": ["a", "C"]}, "one three"),
        ({"tags": ["b"]}, "one two"),
        ({"topic": " harbour "}, "one two"),
        ({"topic": "2026"}, "three"),
        ({"session_id": "s1"}, "one three four"),
        ({"session_id": "s1", "project": "ferry"}, "one three"),
        ({"project": "global"}, "one two"),
        ({"project": "nowhere"}, "one two"),
        ({"since": "40h"}, "one two"),
        ({"until": "40h"}, "three four"),
        ({"session_id": "s1", "limit": 2}, "one three"),
    ],
)
def test_what_is_not_wanted_is_left_out_before_the_limit(kept: Path, wanted: dict[str, Any], expected: str) -> None:
    with synced(kept) as notebook:
        lists = [notebook.channels.search(query, SCRIBE, profile="recent", **wanted) for query in ("", "rope")]
        lists += [] if wanted.keys() & {"since", "until", "tags"} else [notebook.channels.recent(SCRIBE, **wanted)]
        assert [[name.rpartition("/")[2] for name in names(each)] for each in lists] == [expected.split()] * len(lists)


def test_the_owner_sees_all_channels_or_those_of_one_agent(kept: Path) -> None:
    with synced(kept) as notebook:
        channels = notebook.channels
        counts = [
            len(found.results)
            for found in (
                channels.search("rope"),
                channels.recent(),
                channels.recent(project="ferry"),
                channels.recent(channel="scribe2"),
                channels.recent(Session.owner("scribe")),
                channels.peek("scribe"),
            )
        ]
        assert counts == [6, 6, 5, 1, 4, 4]


def test_the_original_calls_of_private_notes(notebook: Notebook) -> None:
    who = {"agent_name": "scribe", "agent_project_id": "ferry"}
    note = {"content": "The race is in auth", "topic": "auth", "tags": ["race"], "session_id": "s1"}
    made = call_tool(notebook, "write_note", {**who, **note, "metadata": {"related_pr": 42}}, SCRIBE)
    assert made["path"].startswith("channels/scribe/ferry/")
    for tool, more in (("search_agent_notes", {"query": "race"}), ("get_recent_notes", {}), ("peek_agent_notes", {})):
        (row,) = call_tool(notebook, tool, {**who, **more}, SCRIBE)["results"]
        assert (row["id"], row["metadata"]) == (made["notebook_id"], {"related_pr": 42})
    assert call_tool(notebook, "search_agent_notes", who, PILOT)["error"]["type"] == "not_permitted"


@pytest.mark.parametrize("query", ["which harbour has the blue crane?", "crane"])
def test_turns_of_a_conversation_raise_their_neighbours(root: Path, query: str) -> None:
    turns = ["Hello there", "Which harbour was it?", "It has the crane", "Fine", "A crane", "Good night", "Soup"]
    for number, text in enumerate(turns):
        put(root, f"scribe/talk/{number + 8}.md", text, hours=1, title="A talk")
        put(root, f"scribe/alone-{number + 8}/{number + 8}.md", text, hours=1, title="A talk")
    with synced(root) as notebook:
        rows = notebook.channels.search(query, SCRIBE, profile="similarity").results
        score = {row.path.removeprefix("channels/scribe/"): row.score or 0.0 for row in rows}
        assert all(1 >= score[f"talk/{turn}.md"] > score[f"alone-{turn}/{turn}.md"] > 0 for turn in (10, 12))
        assert "talk/14.md" not in score


# ---- keeping apart

ASKED: list[Callable[[Notebook, Session], object]] = [
    lambda notebook, session: notebook.channels.search("rope", session, channel="scribe"),
    lambda notebook, session: notebook.channels.search("", session, channel="scribe", project="ferry"),
    lambda notebook, session: notebook.channels.recent(session, channel="scribe", session_id="s1"),
    lambda notebook, session: notebook.channels.peek("scribe", session),
    lambda notebook, session: notebook.channels.peek("scribe", session, query="rope", project="ferry"),
    lambda notebook, session: notebook.channels.write("x", session, channel="scribe"),
    lambda notebook, session: notebook.channels.write("x", session, channel="scribe", project="ferry"),
    lambda notebook, session: notebook.channels.recent(session, channel="scribe", project="a/b"),
]


def test_the_answer_is_the_same_whether_a_channel_is_there_or_not(root: Path, tmp_path: Path) -> None:
    for scope in ("global", "ferry"):
        put(root, f"scribe/{scope}/one.md", "rope", session_id="s1")
        share(root, f"scribe/{scope}", mate=["read"])
    with synced(root) as there, synced(tmp_path / "empty", {"notebook.toml": OFF}) as empty:
        for session, ask in product((PILOT, NAMELESS, Session.external("pilot"), Session.external()), ASKED):
            refused, other = (assert_raises(NotebookError, ask, notebook, session) for notebook in (there, empty))
            assert (type(refused), str(refused)) == (type(other), str(other))


def test_an_external_session_adds_to_its_channel_and_reads_none(notebook: Notebook) -> None:
    paths = [notebook.channels.write("rope", STRANGER).path for _ in range(2)]
    assert len(set(paths)) == 2
    for ask in (
        lambda: notebook.channels.search("rope", STRANGER),
        lambda: notebook.channels.recent(STRANGER),
        lambda: notebook.channels.peek("scribe", STRANGER),
        lambda: notebook.notes.read(paths[0], STRANGER),
    ):
        assert_raises(NotPermitted, ask)
        assert notebook.core.events.read()[-1]["kind"] == "refused"
    assert notebook.channels.list(STRANGER).results == []


def test_the_notes_of_others_have_no_part_in_scores_order_or_limit(root: Path) -> None:
    put(root, "scribe/global/one.md", "rope and lamp", hours=1)
    put(root, "scribe/global/two.md", "lamp and lamp and sail", hours=2)
    with synced(root) as notebook:
        alone = notebook.channels.search("rope lamp", SCRIBE, profile="similarity", limit=1)
        for number in range(30):
            put(root, f"pilot/global/{number}.md", "rope rope rope")
        notebook.sync()
        assert notebook.channels.search("rope lamp", SCRIBE, profile="similarity", limit=1) == alone
        assert len(notebook.channels.search("rope", SCRIBE).results) == 1


@pytest.fixture
def shared(root: Path) -> Path:
    put(root, "scribe/global/secret.md", "rope")
    put(root, "scribe/ferry/plan.md", "rope")
    share(root, "scribe/ferry", pilot=["read"], mate=["peek"], cook=["write"])
    share(root, "scribe/empty", cook=["read"])
    return root


def test_a_member_reads_what_is_shared_and_nothing_else(shared: Path) -> None:
    with synced(shared) as notebook:
        mate, cook, channels = Session.task("mate"), Session.task("cook"), notebook.channels
        found = [
            channels.search("rope", PILOT, channel="scribe"),
            channels.search("rope", PILOT, channel="scribe", project="ferry"),
            channels.recent(PILOT, channel="scribe"),
            channels.peek("scribe", PILOT, query="rope"),
            channels.peek("scribe", mate),
        ]
        assert [names(rows) for rows in found] == [["scribe/ferry/plan"]] * 5
        assert channels.search("rope", PILOT).results == channels.recent(cook, channel="scribe").results == []
        for session, project in ((mate, ""), (cook, "ferry")):
            assert_raises(NotPermitted, channels.search, "rope", session, channel="scribe", project=project)
        (shared / "channels/scribe/ferry/channel.toml").unlink()
        assert_raises(NotPermitted, channels.recent, PILOT, channel="scribe")


def test_channels_are_listed_to_who_may_use_them(shared: Path) -> None:
    members = {"pilot": ["read"], "mate": ["peek"], "cook": ["write"]}
    with synced(shared) as notebook:

        def listed(session: Session) -> list[tuple[str, str, str, int | None, dict[str, list[str]]]]:
            rows = notebook.channels.list(session).results
            return [(each.id, each.agent, each.scope, each.notes, each.members) for each in rows]

        every = [
            ("notes:scribe:empty", "scribe", "empty", 0, {"cook": ["read"]}),
            ("notes:scribe:ferry", "scribe", "ferry", 1, members),
            ("notes:scribe:global", "scribe", "global", 1, {}),
        ]
        ferry = every[1][:3]
        expected = {
            OWNER: every,
            SCRIBE: every,
            PILOT: [(*ferry, 1, {"pilot": ["read"]})],
            Session.task("cook"): [every[0], (*ferry, None, {"cook": ["write"]})],
            Session.task("nobody"): [],
            NAMELESS: [],
        }
        assert {session: listed(session) for session in expected} == expected
