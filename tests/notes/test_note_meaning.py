"""Private notes found by what they mean, and by whom."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from notebook_sync import Notebook, Session
from notebook_sync.operations.channels import PrivateNote
from notebook_sync.operations.registry import Results
from notebook_sync.surfaces.cli.main import run
from tests.scripted_llm import Asked, Reply, ScriptedServer, embeddings
from tests.servers import free_port
from tests.surfaces.test_tools_agents import done

OWNER, SCRIBE, PILOT = Session.owner(), Session.task("scribe"), Session.task("pilot")
MADE = datetime(2026, 2, 18, 10, 30, tzinfo=UTC).isoformat()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "notebook.toml").write_text("[git]\ncommit = 'off'\n")
    return tmp_path


def put(root: Path, path: str, text: str, **fields: object) -> None:
    head = "".join(f"{name}: {value}\n" for name, value in {"created_at": MADE, **fields}.items())
    (root / "channels" / path).parent.mkdir(parents=True, exist_ok=True)
    (root / "channels" / path).write_text(f"---\n{head}---\n{text}\n")


def search_by(root: Path, url: str) -> None:
    settings = f'[search]\nembeddings = "openai:small"\nbase_url = "{url}"\nmeaning = 0.4\n'
    (root / "notebook.toml").write_text(f"[git]\ncommit = 'off'\n{settings}")


def by_topic(asked: Asked) -> Reply:
    """Vectors of three dimensions: boats, light, and a little of everything."""
    topics = (("ferry", "vessel"), ("lamp", "lantern"))
    texts = asked.body["input"]
    return embeddings(
        [[*(float(any(word in text.lower() for word in topic)) for topic in topics), 0.1] for text in texts]
    )


def names(found: Results[PrivateNote]) -> list[str]:
    return [row.path.removeprefix("channels/").removesuffix(".md") for row in found.results]


def test_a_note_is_found_by_other_words_than_it_has_as_soon_as_it_is_written(root: Path) -> None:
    with Notebook.open(root) as notebook:
        payroll = notebook.channels.write("Odile settles the payroll on Friday", SCRIBE)
        notebook.channels.write("The lamp at the pier is lit at dusk", SCRIBE)
        name = payroll.path[9:-3]
        assert names(notebook.channels.search("salaries and wages", SCRIBE)) == [name]
        assert names(notebook.channels.search("salaries", SCRIBE, limit=1, profile="recent")) == [name]


def test_likeness_is_that_of_words_and_of_meaning_in_the_shares_of_a_search(root: Path, server: ScriptedServer) -> None:
    server.say(by_topic)
    search_by(root, server.url)
    for name, text in {
        "meaning": "Here the vessel waits",
        "both": "Here the ferry waits",
        "none": "Here we wait",
    }.items():
        put(root, f"scribe/global/{name}.md", text)
    with Notebook.open(root) as notebook:
        notebook.sync()
        (by_words,) = notebook.channels.search("ferry", SCRIBE, profile="similarity").results
        assert by_words.score
        notebook.admin.embed()
        found = notebook.channels.search("ferry", SCRIBE, profile="similarity").results
        assert {row.path: row.score for row in found} == {
            "channels/scribe/global/both.md": pytest.approx(0.6 * by_words.score + 0.4, abs=0.1),
            "channels/scribe/global/meaning.md": pytest.approx(0.4),
        }
        assert len(notebook.channels.search("", SCRIBE).results) == 3


def test_without_an_embedder_words_answer(root: Path) -> None:
    search_by(root, f"http://127.0.0.1:{free_port()}/v1")
    put(root, "scribe/global/lamp.md", "The lamp is lit")
    with Notebook.open(root) as notebook:
        notebook.sync()
        for _ in range(2):
            assert names(notebook.channels.search("lamp", SCRIBE)) == ["scribe/global/lamp"]


def test_filters_hold_for_what_is_near(root: Path) -> None:
    put(
        root,
        "scribe/global/wages.md",
        "The payroll is late",
        title="Pay day",
        topic="money",
        tags="[a]",
        session_id="s-1",
    )
    put(root, "scribe/ferry/fares.md", "The salaries are paid", title="Pay day", topic="other", tags="[b]")
    with Notebook.open(root) as notebook:
        notebook.sync()
        for wanted, count in (
            ({}, 2), ({"topic": "money"}, 1), ({"tags": ["b"]}, 1), ({"session_id": "s-1"}, 1),
            ({"project": "global"}, 1), ({"project": "ferry"}, 2), ({"since": datetime(2026, 3, 1, tzinfo=UTC)}, 0),
        ):  # fmt: skip
            assert len(notebook.channels.search("wages", SCRIBE, **wanted).results) == count, wanted


def test_notes_of_others_have_no_part_in_what_is_near(root: Path) -> None:
    put(root, "scribe/global/wages.md", "Odile settles the payroll")
    put(root, "scribe/global/lamp.md", "The lamp is lit at dusk")
    asked = ("salaries", "payroll of Odile", "light in the evening", "herons")

    def answers(session: Session) -> list[list[tuple[str, float | None]]]:
        with Notebook.open(root) as notebook:
            notebook.sync()
            found = [notebook.channels.search(query, session, profile="similarity") for query in asked]
        return [[(row.id, row.score) for row in each.results] for each in found]

    alone = answers(SCRIBE)
    assert [rows[0][0] for rows in alone[:3]] == [f"channels/scribe/global/{one}" for one in ("wages", "wages", "lamp")]
    for n in range(250):
        put(root, f"pilot/global/{n}.md", "Salaries and wages of Odile, the payroll, the lantern, a heron")
    assert answers(SCRIBE) == alone
    assert len(answers(PILOT)[0]) == 50
    with Notebook.open(root) as notebook:
        found = notebook.channels.search("salaries", OWNER, limit=300).results
        assert {row.path.split("/")[1] for row in found} == {"scribe", "pilot"}


def test_where_words_alone_decide_the_answer_says_why(
    root: Path, server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    put(root, "scribe/global/boat.md", "The ferry waits")
    search_by(root, server.url)
    why = f"The embedding server at {server.url}"
    with Notebook.open(root) as notebook:
        notebook.sync()
        found = notebook.channels.search("ferry", SCRIBE)
        assert (names(found), (found.degraded or "")[: len(why)]) == (["scribe/global/boat"], why)
        told = done(notebook, "search_my_notes", {"query": "ferry"})
        assert told["degraded"].startswith(why)
        assert notebook.channels.search("", SCRIBE).degraded is None
    assert run(["-C", str(root), "note", "search", "ferry", "--agent", "scribe"]) == 0
    assert f"found by words alone: {why}" in capsys.readouterr().err
