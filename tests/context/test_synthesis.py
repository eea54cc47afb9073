"""Syntheses: what they cost, how long they are cached, and what replaces one where nobody answers."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from notebook_sync import Notebook, Session
from notebook_sync.context import synthesis as module
from notebook_sync.context.synthesis import MARK, Synthesis, Synthesizer
from notebook_sync.errors import Busy, NotFound, NotPermitted, UsageError
from notebook_sync.services.core import Core
from tests.context.bridge_server import PRIVATE
from tests.context.harbour import (
    BERTH,
    OTHER,
    SILT,
    SPEC,
    Answers,
    answer,
    edit,
    ids,
    link,
    write_notebook,
)
from tests.llm_server import CRASH, CUT_OFF, JUNK, REFUSAL, LlmServer, chat, llm_server
from tests.processes import start_command
from tests.services.conftest import assert_raises, synced
from tests.waiting import eventually

OWNER, TASK, STRANGER = Session.owner(), Session.task("scribe"), Session.external("scribe")


@pytest.fixture
def root(folder: Path) -> Path:
    return write_notebook(folder)


@pytest.fixture
def answers(root: Path, tmp_path: Path) -> Answers:
    return Answers(root, tmp_path)


@pytest.fixture
def notebook(root: Path, answers: Answers) -> Iterator[Notebook]:
    with synced(root) as notebook:
        yield notebook


def ask(notebook: Notebook, spec: str = SPEC, session: Session = OWNER, **given: Any) -> Synthesis:
    return notebook.context.synthesize(spec, session, **given)


def later(monkeypatch: pytest.MonkeyPatch, **time: float) -> None:
    now = datetime.now(UTC) + timedelta(**time)
    monkeypatch.setattr(Core, "now", lambda _: now)


# ---- an answer


def test_it_is_shown_with_what_it_rests_on(notebook: Notebook, answers: Answers) -> None:
    found = ask(notebook)
    assert found.synthesis_md.startswith("## Executive Summary\n\n> Use berth 4.\n\n## Guardrails")
    assert (found.source, found.cached, found.trouble, found.warnings) == ("bridge", False, None, [])
    assert (found.calls_today, found.daily_limit, len(found.synthesis_id)) == (1, 50, 12)
    assert {used.id for used in found.memories_used} >= {"berth", "tide", "silt"}
    (question,) = answers.asked
    assert "Which berth is deep enough" in question
    assert f"`{BERTH}`" in question


def test_asked_again_it_is_the_same_and_costs_nothing(notebook: Notebook, answers: Answers) -> None:
    answers.say(answer(link(), link("berth", "tide", "solves"), link("ghost")))
    first = ask(notebook)
    assert ids(first.links.ingested) == [("silt", "causes", "tide"), ("berth", "solves", "tide")]
    again = [ask(notebook) for _ in range(2)]
    for found in again:
        assert (found.cached, found.calls_today) == (True, 1)
        assert (found.synthesis_md, found.synthesis_id) == (first.synthesis_md, first.synthesis_id)
        assert (ids(found.links.kept), found.links.dropped) == (ids(first.links.ingested), first.links.dropped)
    assert len(answers.asked) == 1


def test_the_same_brief_has_the_same_answer_and_another_brief_another(notebook: Notebook, answers: Answers) -> None:
    ask(notebook)
    for count, other in enumerate(({"spec": OTHER}, {"top_k": 1}), start=2):
        assert not ask(notebook, **other).cached
        assert len(answers.asked) == count
        assert all(ask(notebook, **same).cached for same in ({}, {"exclude_tags": ["x"]}, {"session": TASK}))


def test_it_outlives_the_process_and_a_rebuild(notebook: Notebook, root: Path, answers: Answers) -> None:
    ask(notebook)
    notebook.admin.rebuild()
    notebook.close()
    with synced(root) as other:
        assert ask(other).cached
    assert len(answers.asked) == 1


def test_refresh_asks_again(notebook: Notebook, answers: Answers) -> None:
    ask(notebook)
    answers.say(answer(text="Use berth 3."))
    found = [ask(notebook, refresh=True), ask(notebook)]
    assert [(each.cached, "berth 3" in each.synthesis_md) for each in found] == [(False, True), (True, True)]


def test_an_answer_in_prose_is_kept_and_nothing_in_it_believed(notebook: Notebook, answers: Answers) -> None:
    answers.say(f"Use berth 4, says <!-- hidden --> Odile.\n\n{json.dumps([link()])}")
    found = ask(notebook)
    assert (found.source, found.links.ingested) == ("bridge", [])
    assert "> Use berth 4, says" in found.synthesis_md
    assert "hidden" not in found.synthesis_md
    assert "nothing below Executive Summary" in found.warnings[0]
    assert (ask(notebook).cached, ask(notebook).warnings) == (True, found.warnings)


def test_its_links_are_saved_in_the_memories_without_outdating_it(
    notebook: Notebook, root: Path, answers: Answers
) -> None:
    answers.say(answer(link(confidence=7), link("berth", "tide", "solves")))
    found = ask(notebook)
    assert [(each.source, each.confidence) for each in found.links.ingested] == [("bridge", 1.0), ("bridge", 0.8)]
    assert found.synthesis_id in (root / SILT).read_text()
    assert "solves" in notebook.context.brief(SPEC).task_brief_md
    assert ask(notebook, refresh=True).links.ingested[0].action == "updated"
    assert ask(notebook).cached


def test_one_whose_links_cannot_be_saved_is_not_lost(
    notebook: Notebook, answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: object) -> None:
        raise Busy("a test")

    answers.say(answer(link()))
    monkeypatch.setattr(module, "ingest_links", busy)
    found = ask(notebook)
    assert (found.source, len(found.links.dropped)) == ("bridge", 1)
    assert "no link was saved: another write is in progress" in found.warnings[0]
    assert ask(notebook).cached


def test_lies_about_links_are_dropped(notebook: Notebook, answers: Answers) -> None:
    answers.say(answer(link("ghost"), link(relation="dislikes"), link("tide", "tide"), link(), link()))
    found = ask(notebook)
    assert ids(found.links.ingested) == [("silt", "causes", "tide")]
    assert len(found.links.dropped) == 4


def test_nobody_is_asked_about_private_notes_or_text_of_others(
    notebook: Notebook, root: Path, answers: Answers
) -> None:
    memory = (root / BERTH).read_text().replace("id: berth", "id: mail\nprovenance: external")
    for path, text in {"channels/scribe/global/berth.md": SPEC, "memories/decision/mail.md": memory}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(f"{text}\n\nThe berth at low tide: {PRIVATE}.\n")
    notebook.sync()
    for session in (OWNER, TASK):
        assert ask(notebook, session=session, refresh=True).source == "bridge"
    assert_raises(NotPermitted, ask, notebook, session=STRANGER, match="not available in this conversation")
    assert len(answers.asked) == 2
    assert PRIVATE not in "".join(answers.asked)


# ---- what a synthesis rests on


def test_an_edit_counts_at_once_without_a_sync(notebook: Notebook, root: Path, answers: Answers) -> None:
    ask(notebook)
    edit(root, BERTH)
    assert not ask(notebook).cached
    assert "The pilot agrees." in answers.asked[1]
    assert ask(notebook).cached


def test_a_memory_that_is_gone_or_new_counts(notebook: Notebook, root: Path, answers: Answers) -> None:
    ask(notebook)
    (root / "memories/insight/depth.md").write_text((root / SILT).read_text().replace("silt", "depth"))
    notebook.sync()
    assert not ask(notebook).cached
    (root / SILT).unlink()
    found = ask(notebook)
    assert not found.cached
    assert "silt" not in {used.id for used in found.memories_used}


def test_what_has_nothing_to_do_with_it_does_not_count(notebook: Notebook, root: Path) -> None:
    ask(notebook, top_k=3)
    edit(root, "memories/pattern/paint.md", "And white inside.")
    (root / "soup.md").write_text("# Soup\n\nLeek and potato.\n")
    notebook.sync()
    assert ask(notebook, top_k=3).cached


def test_a_session_that_may_no_longer_read_one_of_them_does_not_get_it(
    notebook: Notebook, root: Path, answers: Answers
) -> None:
    ask(notebook, session=TASK)
    settings = root / "notebook.toml"
    settings.write_text(f'{settings.read_text()}[[prompt.files]]\npath = "{BERTH}"\nsessions = ["owner"]\n')
    assert not ask(notebook, session=TASK).cached
    assert "Berth 4 is for the ferry" not in answers.asked[1]


def test_an_edit_while_the_model_thinks_is_not_covered_by_its_answer(
    notebook: Notebook, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_now = module.reasoner_of

    def edited(settings: Any) -> Any:
        reasoner = asked_now(settings)

        def answered(instructions: str, question: str) -> str:
            edit(root, BERTH)
            return reasoner.ask(instructions, question)

        return reasoner._replace(ask=answered)

    monkeypatch.setattr(module, "reasoner_of", edited)
    found = ask(notebook)
    assert found.source == "bridge"
    assert "not cached" in found.warnings[-1]
    monkeypatch.setattr(module, "reasoner_of", asked_now)
    assert not ask(notebook).cached
    assert ask(notebook).cached


def test_it_is_cached_for_a_day(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    ask(notebook)
    later(monkeypatch, hours=23)
    assert ask(notebook).cached
    later(monkeypatch, hours=25)
    assert not ask(notebook).cached


def test_those_used_longest_ago_are_dropped(notebook: Notebook, answers: Answers) -> None:
    answers.set(cache_entries=2)
    for spec in (SPEC, OTHER, SPEC, f"{SPEC} In spring?"):
        ask(notebook, spec)
    assert ask(notebook, SPEC).cached
    assert not ask(notebook, OTHER).cached


# ---- failures


@pytest.mark.parametrize("misbehaviour", ["crash", "junk", "login", "refuses", "wrong_tool"])
def test_the_brief_takes_its_place_marked_and_uncached(
    notebook: Notebook, answers: Answers, misbehaviour: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers.set(misbehaviour)
    found = ask(notebook)
    assert (found.source, found.cached, found.synthesis_id, found.calls_today) == ("local", False, "", 1)
    assert found.synthesis_md.startswith(f"> {MARK} ")
    assert "Berth 4 is for the ferry" in found.synthesis_md
    assert PRIVATE not in f"{found}{notebook.core.events.read()}"
    assert "failed less than a minute ago" in (ask(notebook).trouble or "")
    answers.set()
    assert ask(notebook, refresh=True).source == "bridge"
    later(monkeypatch, seconds=61)
    assert ask(notebook).cached


def test_an_empty_or_repeated_question_is_no_answer(notebook: Notebook, answers: Answers) -> None:
    ask(notebook)
    answers.say(answers.asked[0])
    assert ask(notebook, refresh=True).trouble == "the answer is empty"
    assert ask(notebook).cached  # the answer that came before still holds


def test_nobody_can_spend_more_than_the_daily_limit(
    notebook: Notebook, root: Path, answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers.set("crash", daily_limit=3)
    with synced(root) as other, ThreadPoolExecutor(6) as threads:
        jobs = [
            threads.submit(ask, each, f"{SPEC} {number}", refresh=True)
            for number, each in enumerate([notebook, other] * 5)
        ]
        found = [job.result() for job in jobs]
    while ask(notebook, f"{SPEC} {len(answers.asked)}").calls_today < 3:
        pass
    assert {one.source for one in found} == {"local"}
    refused = ask(notebook, OTHER)
    assert "tier2.daily_limit is 3" in (refused.trouble or "")
    assert len(answers.asked) == refused.calls_today == 3
    later(monkeypatch, days=1)
    assert ask(notebook, OTHER).calls_today == 1


def test_who_waits_behind_a_question_gets_its_answer_or_its_failure(
    notebook: Notebook, root: Path, answers: Answers
) -> None:
    for behaviour, source in (("crash", "local"), ("chatty", "bridge")):
        answers.set(behaviour)
        barrier, before = Barrier(3), len(answers.asked)

        def waited(each: Notebook, spec: str, barrier: Barrier = barrier) -> Synthesis:
            barrier.wait()
            return ask(each, spec)

        with synced(root) as other, ThreadPoolExecutor(3) as threads:
            jobs = [threads.submit(waited, each, f"{SPEC} {behaviour}?") for each in (notebook, other, other)]
            found = [job.result() for job in jobs]
        assert [one.source for one in found] == [source] * 3
        assert len(answers.asked) == before + 1


def test_another_process_waits_as_well(notebook: Notebook, root: Path, answers: Answers, tmp_path: Path) -> None:
    (tmp_path / "spec.md").write_text(SPEC)
    asked = ("context", "synthesize", tmp_path / "spec.md", "--session", "owner", "--json")
    running = [start_command("-C", root, *asked) for _ in range(2)]
    assert [json.loads(process.communicate()[0])["source"] for process in running] == ["bridge"] * 2
    assert len(answers.asked) == 1


def test_files_are_written_and_read_while_a_bridge_hangs(notebook: Notebook, answers: Answers) -> None:
    answers.set("hang")
    with ThreadPoolExecutor(1) as threads:
        job = threads.submit(ask, notebook)
        eventually(lambda: answers.asked, "the bridge is asked")
        assert notebook.notes.create("Ferry", content="It leaves at nine.").status == "created"
        assert notebook.prompt(TASK).text
        assert not job.done()
        answers.kill()
        assert "ended" in (job.result().trouble or "")


def test_of_a_process_few_threads_ask_or_wait(notebook: Notebook) -> None:
    with ExitStack() as held:
        for _ in range(module.MOST_WAITING):
            held.enter_context(Synthesizer._places)
        assert "others ask or wait in this process" in (ask(notebook).trouble or "")
    assert ask(notebook).source == "bridge"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"enabled": False}, "syntheses are off"),
        ({"command": []}, "no model is set"),
        ({"command": ["no-such-bridge"]}, "there is no program 'no-such-bridge'"),
        ({"question_characters": 100}, "is too small for a question"),
    ],
)
def test_wrong_settings_are_errors_that_cost_no_call(
    notebook: Notebook, root: Path, answers: Answers, settings: dict[str, Any], message: str
) -> None:
    command = {} if "command" in settings else {"command": ["false"]}
    write_notebook(root, **{**command, **settings})
    assert_raises(UsageError, ask, notebook, match=message)
    assert notebook.context.synthesizer.cache.spent_today() == 0


# ---- the cache


def test_the_cache_is_listed_and_cleared(notebook: Notebook, root: Path, answers: Answers) -> None:
    first, second = ask(notebook), ask(notebook, OTHER)
    found = notebook.context.cached().results
    assert [(each.synthesis_id, each.holds, each.source) for each in found] == [
        (second.synthesis_id, True, "bridge"),
        (first.synthesis_id, True, "bridge"),
    ]
    assert "berth" in found[1].rests_on
    edit(root, BERTH)
    notebook.sync()
    assert not notebook.context.cached(first.synthesis_id).results[0].holds
    dropped = notebook.context.cached(first.synthesis_id, clear=True).results
    assert [each.synthesis_id for each in dropped] == [first.synthesis_id]
    assert_raises(NotFound, notebook.context.cached, first.synthesis_id)
    assert ask(notebook, OTHER).cached
    assert len(notebook.context.cached(clear=True).results) == 1
    assert not ask(notebook, OTHER).cached


def test_syntheses_that_a_note_is_in_can_be_forgotten(notebook: Notebook, root: Path) -> None:
    (root / "pier.md").write_text("# Pier\n\nHow deep each berth is at low tide.\n")
    (root / "task.md").write_text(OTHER)
    notebook.sync()
    ask(notebook, top_k=3), ask(notebook, OTHER, top_k=1)
    assert [notebook.context.forget(ids) for ids in (["ghost"], ["pier"], ["pier"])] == [0, 1, 0]
    assert (ask(notebook, OTHER, top_k=1).cached, ask(notebook, top_k=3).cached) == (True, False)
    assert [notebook.context.forget([id]) for id in ("paint", "silt")] == [1, 1]
    ask(notebook, OTHER, top_k=1)
    assert [notebook.context.forget(["task"]) for _ in range(2)] == [1, 0]


def test_clearing_the_cache_lets_a_failed_question_be_asked_again(notebook: Notebook, answers: Answers) -> None:
    answers.set("crash")
    ask(notebook)
    answers.set()
    assert ask(notebook).source == "local"
    notebook.context.cached(clear=True)
    assert ask(notebook).source == "bridge"


def test_each_call_leaves_an_event_with_its_time_and_no_words(notebook: Notebook, answers: Answers) -> None:
    ask(notebook)
    ask(notebook)
    answers.set("crash")
    found = ask(notebook, OTHER)
    events = [each for each in notebook.core.events.read() if each["kind"] == "synthesis"]
    assert [each["outcome"] for each in events] == ["answered", "cached", "failed"]
    assert events[-1]["latency_ms"] == found.latency_ms > 0
    assert "winter" not in str(events)
    figures = notebook.context.figures()
    assert {name: times.count for name, times in figures.synthesis.items()} == dict.fromkeys(
        ("answered", "cached", "failed"), 1
    )
    assert (figures.calls_today, figures.daily_limit) == (2, 50)
    notebook.context.feedback(found.context_hash, used=["paint"])
    assert notebook.context.figures().precision == 1.0


# ---- a language model


@pytest.fixture
def server(root: Path, notebook: Notebook) -> Iterator[LlmServer]:
    with llm_server() as server:
        settings = write_notebook(root) / "notebook.toml"
        settings.write_text(f'{settings.read_text()}[llm]\nmodel = "quay"\nbase_url = "{server.url}"\n')
        yield server


def test_a_model_is_asked_where_there_is_no_bridge(notebook: Notebook, server: LlmServer) -> None:
    server.say(chat(f"<think>Hm.</think>{answer(link())}"))
    found = ask(notebook)
    assert (found.source, ids(found.links.ingested)) == ("llm", [("silt", "causes", "tide")])
    assert ask(notebook).cached
    (asked,) = server.asked
    instructions, question = (message["content"] for message in asked.body["messages"])
    assert ("five headings" in instructions, "Berth 4 is for the ferry" in question) == (True, True)


@pytest.mark.parametrize("reply", [JUNK, REFUSAL, CRASH, CUT_OFF], ids=["junk", "refusal", "crash", "cut off"])
def test_a_model_that_fails_leaves_the_brief(notebook: Notebook, server: LlmServer, reply: Any) -> None:
    server.say(reply)
    found = ask(notebook)
    assert (found.source, found.calls_today) == ("local", 1)
    assert "Berth 4 is for the ferry" in found.synthesis_md
    assert "ferries" not in (found.trouble or "")
