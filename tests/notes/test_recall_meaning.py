"""Recall by meaning, through the notebook's own face: what it finds, to whom it is told, what answers without it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from notebook_sync import Notebook, Session
from notebook_sync.operations.stream import Entry
from notebook_sync.own_process import own_environment
from tests.notes.test_note_meaning import by_topic
from tests.scripted_llm import Asked, Reply, ScriptedServer
from tests.servers import free_port

OWNER, TASK = Session.owner(), Session.task("scribe")
WITHHELD = '[[prompt.files]]\npath = "pages/withheld.md"\nsessions = ["owner"]\n'
OFF = '[search]\nembeddings = "off"\n'


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        server.say(by_topic)
        yield server


def opened(root: Path, settings: str = "") -> Notebook:
    (root / "notebook.toml").write_text(settings)
    notebook = Notebook.open(root)
    notebook.sync()
    return notebook


def remote(url: str) -> str:
    return f'[search]\nembeddings = "openai:small"\nbase_url = "{url}"\n'


def recalled(notebook: Notebook, query: str, session: Session = TASK, **options: Any) -> list[str]:
    return [entry.content for entry in notebook.stream.recall(query, session, **options).results]


def test_what_was_said_in_other_words_is_recalled(harbour: Path, hot: str) -> None:
    with opened(harbour, hot) as notebook:
        notebook.stream.log("The boat's departure was delayed by fog", TASK)
        notebook.stream.log("Repaired the engine of the tug", TASK, keep=True)
        assert recalled(notebook, "late ships")[0] == "The boat's departure was delayed by fog"
        assert recalled(notebook, "broken motors") == ["Repaired the engine of the tug"]
        assert recalled(notebook, "payroll") == ["[Salaries] Odile pays the heron keeper."]
    with opened(harbour, hot + OFF) as notebook:
        answer = notebook.stream.recall("late ships", TASK)
        assert answer.results == []
        assert "by words alone" not in str(answer.degraded)


def test_nothing_is_asked_of_a_server_while_somebody_logs_and_of_entries_while_somebody_recalls(
    harbour: Path, server: ScriptedServer
) -> None:
    with opened(harbour, remote(server.url)) as notebook:
        notebook.stream.log("The vessel is here", TASK)
        assert server.asked == []
        answer = notebook.stream.recall("ferry", TASK)
        assert [asked.body["input"] for asked in server.asked] == [["ferry"]]
        assert [one.content for one in answer.results] == ["[Ferry] It leaves at nine."]
        assert "have no vectors yet and are found by their words alone: notebook-sync sync" in str(answer.degraded)
        notebook.admin.embed()
        answer = notebook.stream.recall("ferry", TASK, limit=2)
        assert sorted(one.content for one in answer.results) == [
            "The vessel is here",
            "[Ferry] It leaves at nine.",
        ]
        assert answer.degraded is None


def test_a_text_that_a_server_refuses_holds_up_no_other(harbour: Path, server: ScriptedServer) -> None:
    def choosy(asked: Asked) -> Reply:
        return Reply(status=400) if any("bomb" in text for text in asked.body["input"]) else by_topic(asked)

    server.say(choosy)
    with opened(harbour, remote(server.url)) as notebook:
        for content in ("A vessel", "a bomb of a party", "A lantern"):
            notebook.stream.log(content, TASK)
        notebook.admin.embed()
        assert recalled(notebook, "lamp")[0] == "A lantern"
        assert "A vessel" in recalled(notebook, "ferry")
        assert notebook.stream.recall("ferry", TASK).degraded is None


def test_a_text_at_which_a_server_fails_once_gets_its_vector_later(harbour: Path, server: ScriptedServer) -> None:
    def choosy(asked: Asked) -> Reply:
        return Reply(status=404) if any("port" in text for text in asked.body["input"]) else by_topic(asked)

    server.say(choosy)
    with opened(harbour, remote(server.url)) as notebook:
        for content in ("A vessel", "the port of a vessel", "A lantern"):
            notebook.stream.log(content, TASK)
        notebook.admin.embed()
        assert "have no vectors yet" in str(notebook.stream.recall("ferry", TASK).degraded)
        assert "A vessel" in recalled(notebook, "ferry")
        server.say(by_topic)
        notebook.admin.embed()
        assert notebook.stream.recall("ferry", TASK).degraded is None
        assert {"A vessel", "the port of a vessel"} <= set(recalled(notebook, "ferry"))
        assert recalled(notebook, "lamp")[0] == "A lantern"


def test_without_an_embedder_words_answer_and_the_answer_says_so(harbour: Path) -> None:
    with opened(harbour, remote(f"http://127.0.0.1:{free_port()}/v1")) as notebook:
        notebook.stream.log("The ferry is here", TASK)
        answer = notebook.stream.recall("ferry", TASK)
        assert sorted(one.content for one in answer.results) == [
            "The ferry is here",
            "[Ferry] It leaves at nine.",
        ]
        assert str(answer.degraded).startswith("found by words alone: The embedding server")
        assert notebook.stream.recall("", TASK).degraded is None


def test_a_query_of_which_the_model_knows_no_word_is_answered_by_words(harbour: Path) -> None:
    with opened(harbour) as notebook:
        notebook.stream.log("\ua66e", TASK)
        answer = notebook.stream.recall("\ua66e", TASK)
        assert len(answer.results) == 1
        assert str(answer.degraded) == "found by words alone: the model of embeddings knows no word of this query"


def test_a_note_that_may_not_be_read_changes_nothing_in_an_answer(harbour: Path) -> None:
    def answers(notebook: Notebook) -> list[list[Entry]]:
        asked = ("heron", "wages of the keeper", "who is paid", "Odile")
        return [[one for one in notebook.stream.recall(query, TASK).results if one.ref] for query in asked]

    with opened(harbour, WITHHELD) as notebook:
        assert "[Salaries] Odile pays the heron keeper." in recalled(notebook, "wages", OWNER)
        with_it = answers(notebook)
        (harbour / "pages/withheld.md").unlink()
        notebook.sync()
        assert answers(notebook) == [
            [replace(one, relevance=pytest.approx(one.relevance, rel=1e-4)) for one in answer] for answer in with_it
        ]


def test_what_is_hidden_of_a_file_is_not_found_by_what_it_means(harbour: Path) -> None:
    path = "runtime/reminders.md"
    (harbour / path).write_text("---\ntitle: The motor\nsummary: it is repaired\n---\n## Today\n\n- [ ] Ropes\n")
    with opened(harbour) as notebook:
        assert recalled(notebook, "engine", OWNER) == ["[The motor] it is repaired"]
        for query in ("engine", "motor", "mending an engine"):
            found = notebook.stream.recall(query, TASK).results
            assert path not in [one.path for one in found]


def test_a_process_that_only_logs_loads_no_arrays_and_no_model(harbour: Path) -> None:
    with opened(harbour) as notebook:
        assert recalled(notebook, "boat") is not None
    code = (
        "import sys; from notebook_sync import Notebook\n"
        "with Notebook.open(sys.argv[1]) as notebook:\n"
        "    notebook.stream.log('High water'); notebook.stream.log('Fog', keep=True)\n"
        "    notebook.stream.show()\n"
        "print({'numpy', 'tokenizers', 'safetensors', 'openai'} & sys.modules.keys())"
    )
    command = [sys.executable, "-P", "-c", code, str(harbour)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env=own_environment())
    assert ran.stdout == "set()\n"
