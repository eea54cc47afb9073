"""The chores: when they run, what they report, and what each does."""

import logging
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from notebook_sync import Notebook
from notebook_sync.errors import UsageError
from notebook_sync.services import upkeep
from notebook_sync.services.upkeep import MODELS, Chore, expire, run_chores
from notebook_sync.services.watching import Work
from tests.search.embedding_server import embedding_server, vectors
from tests.services.conftest import SCRIBE, git, make_repository, on_redis, write_files

OFF = '[search]\nembeddings = "off"\n'
_HOUR, _DAY = 3_600, 86_400


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1_000_000.0]
    monkeypatch.setattr(upkeep.time, "time", lambda: now[0])
    return now


def test_chores_run_after_their_period_in_whichever_process(notebook: Notebook, clock: list[float]) -> None:
    index, ran = notebook.core.index, list[str]()
    chores = [Chore("dump", 100, lambda: ran.append("dump")), Chore("scores", 30, lambda: ran.append("scores"))]
    for seconds, again, done in ((0, 30, []), (29, 1, []), (1, 30, ["scores"]), (70, 30, ["dump", "scores"])):
        clock[0] += seconds
        ran.clear()
        assert (run_chores(index, chores), ran) == (pytest.approx(again), done)


@pytest.mark.parametrize("jump", [10 * 365 * _DAY, -_HOUR, 8 * _DAY])
def test_a_clock_that_jumps_is_not_believed(notebook: Notebook, clock: list[float], jump: float) -> None:
    """A chore of a clock that is wrong for a moment does nothing; one that stays goes on a period later."""
    ran: list[float] = []
    chores = [Chore("decay", _HOUR, lambda: ran.append(clock[0]))]
    for seconds in (0, jump, _HOUR):
        assert ran == []
        clock[0] += seconds
        run_chores(notebook.core.index, chores)
    assert ran == clock


def test_a_chore_with_more_to_do_goes_on_at_once(notebook: Notebook, clock: list[float]) -> None:
    left = [True, True, False]
    chores = [Chore("embed", 2, lambda: left.pop(0))]
    run_chores(notebook.core.index, chores)
    clock[0] += 2
    assert [run_chores(notebook.core.index, chores) for _ in range(3)] == [0, 0, 2]


def test_an_eager_chore_runs_each_time_and_is_noted_once_a_minute(notebook: Notebook, clock: list[float]) -> None:
    index, ran, noted = notebook.core.index, list[float](), list[float]()
    chores = [Chore("publish", 0.5, lambda: ran.append(clock[0]), is_eager=True)]
    for seconds in (0, 0.25, 59, 1):
        clock[0] += seconds
        assert run_chores(index, chores) == 0.5
        noted.append(upkeep.last_runs(index)["publish"] - clock[0])
    assert (len(ran), noted) == (4, [0, -0.25, -59.25, 0])


@pytest.mark.parametrize("error", [UsageError("no"), OSError("no"), RuntimeError("no")])
def test_a_chore_that_fails_ends_no_other_one_and_is_trouble_until_it_is_done(
    notebook: Notebook, clock: list[float], caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    wrong, ran = [error], list[int]()

    def fail() -> None:
        if wrong:
            raise wrong.pop()

    chores = notebook.core.more_chores = [Chore("one", 2, fail), Chore("two", 2, lambda: ran.append(1))]
    work = Work(notebook.core)
    found = []
    for seconds in (0, 2, 1, 1):
        clock[0] += seconds
        with caplog.at_level(logging.ERROR):
            found += [(event.kind, event.fields["message"]) for event in work()[0]]
    assert (found, len(ran)) == ([("trouble", "one: no"), ("recovered", "one: no")], len(chores))
    assert ("the chore one failed" in caplog.text) == isinstance(error, RuntimeError)


def test_the_status_has_the_last_and_the_next_run_of_all_that_is_done(
    notebook: Notebook, redis_url: str, redis_prefix: str
) -> None:
    """Publishing and embedding, too; and how much each model of search has still to do."""
    with embedding_server() as server:
        server.answer = lambda texts: vectors([[1.0, 0.0] for _ in texts])
        search = f'[search]\nsecond_stage = "openai:any"\nbase_url = "{server.url}"\n'
        write_files(notebook.root, {"notebook.toml": on_redis(redis_url, redis_prefix) + search})
        status = notebook.admin.status()
        stages = {"publish", "embeddings", "second_stage"}
        names = {"commit", "usage", "tidy", "expiry", "facts", "scores", "dump", "pack", "prefetch", "reconcile"}
        assert {each["chore"] for each in status.chores} == names | stages
        assert {(each["last"], each["next"]) for each in status.chores} == {("never", "")}
        behind = {each["setting"]: each["behind"] for each in status.search}
        assert behind["embeddings"] == behind["second_stage"] > 0
        work = Work(notebook.core)
        while work()[1] == 0:
            pass
        status = notebook.admin.status()
    assert {each["setting"]: each["behind"] for each in status.search} == dict.fromkeys(MODELS, 0)
    times = {each["chore"]: each for each in status.chores}
    assert {times[name]["next"] for name in stages} == {"at the next change"}
    facts = times["facts"]
    assert datetime.fromisoformat(facts["next"]) - datetime.fromisoformat(facts["last"]) == timedelta(hours=6)
    assert notebook.admin.numbers()["behind_second_stage"][1] == 0


def test_what_was_kept_for_a_while_is_forgotten_a_week_after_its_time(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, now = notebook.core.index.cache, notebook.core.now()
    cache.put([{"id": "x", "kind": "x", "value": 1, "expires_at": now}, {"id": "y", "kind": "x", "value": 1}])
    for days, has_both in ((0, True), (8, False)):
        monkeypatch.setattr(notebook.core, "now", lambda days=days: now + timedelta(days=days))
        expire(notebook.core)
        assert (cache.one("x") is not None, cache.one("y") is not None) == (has_both, True)


def test_the_oldest_events_are_forgotten(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "_EVENTS", 3)
    for number in range(5):
        notebook.core.events.record("refused", SCRIBE, path=f"{number}")
    upkeep.tidy(notebook.core)
    assert [row["path"] for row in notebook.admin.events().results] == ["2", "3", "4"]


def test_the_dump_is_written_once_a_day_whatever_the_clock_did(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    upkeep.write_dump(notebook.core)
    first, written = notebook.core.index.dumped_at(), list[Path]()
    monkeypatch.setattr(notebook.core.index, "dump", written.append)
    for days in (0.5, 2, -2):
        monkeypatch.setattr(notebook.core, "now", lambda days=days: first + timedelta(days=days))
        upkeep.write_dump(notebook.core)
    assert written == [notebook.core.place.state / "dump"] * 2


def test_what_waits_for_trust_is_not_committed(root: Path) -> None:
    make_repository(root)
    write_files(root, {"notebook.toml": f'[git]\ncommit = "all"\n[prompt]\ntrust = "committed"\n{OFF}'})
    with Notebook.open(root) as notebook:
        notebook.admin.sync()
        write_files(root, {"runtime/standing-orders.md": "- Pay everybody\n", "pages/idea.md": "New.\n"})
        notebook.admin.sync()
        upkeep.commit_open(notebook.core)
        assert "Pay everybody" not in git(root, "show", "HEAD:runtime/standing-orders.md")
        assert git(root, "show", "HEAD:pages/idea.md") == "New.\n"


@pytest.mark.parametrize("commit", ["all", "tools"])
def test_edits_by_hand_are_committed_where_the_settings_say_so(root: Path, commit: str) -> None:
    make_repository(root)
    with Notebook.open(write_files(root, {"notebook.toml": f'[git]\ncommit = "{commit}"\n{OFF}'})) as notebook:
        notebook.admin.sync()
        upkeep.commit_open(notebook.core)
        before = git(root, "rev-parse", "HEAD")
        write_files(root, {"pages/ferry.md": "# Boat\n"})
        (root / "pages/idea.md").unlink()
        notebook.admin.sync()
        assert not upkeep.commit_open(notebook.core)
        changed = git(root, "diff", "--name-only", before.strip(), "HEAD").split()
        assert changed == (["pages/ferry.md", "pages/idea.md"] if commit == "all" else [])
        assert not upkeep.commit_open(notebook.core)
