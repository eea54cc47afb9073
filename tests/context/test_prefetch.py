"""Syntheses made ahead: which specs are asked about, when, and how often at most."""

import os
import re
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from threading import enumerate as enumerate_threads

import pytest

from notebook_sync import Notebook, Session
from notebook_sync.context.prefetch import Prefetched, Prefetcher, specs_in, specs_of_branch
from notebook_sync.errors import NotPermitted, UsageError
from notebook_sync.services.upkeep import chores_of
from tests.context.harbour import OTHER, SPEC, Answers, answer, write_notebook
from tests.services.conftest import assert_raises, synced
from tests.waiting import eventually

TASK, STRANGER = Session.task("scribe"), Session.external("scribe")


@pytest.fixture
def root(folder: Path) -> Path:
    write_notebook(folder)
    for name, text in {"berth": SPEC, "paint": OTHER, "tide": f"{SPEC} In spring?"}.items():
        save(folder, f"specs/{name}.md", text)
    return folder


@pytest.fixture
def answers(root: Path, tmp_path: Path) -> Answers:
    answers = Answers(root, tmp_path)
    answers.set(specs=["specs/"])
    return answers


@pytest.fixture
def notebook(root: Path, answers: Answers) -> Iterator[Notebook]:
    with synced(root) as notebook:
        yield notebook


def save(root: Path, path: str, text: str, seconds_ago: float = 60.0) -> None:
    """What an editor did so many seconds ago."""
    file = root / path
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    at = datetime.now(UTC).timestamp() - seconds_ago
    os.utime(file, (at, at))


def look(prefetcher: Prefetcher) -> bool:
    """Whether a look of the chore asked about something, to its end."""
    thread = prefetcher.look()
    if isinstance(thread, Thread):
        thread.join()
    return thread is not None


# ---- by hand


def test_each_note_is_asked_about_once_and_cached_without_being_used(notebook: Notebook, answers: Answers) -> None:
    found = notebook.context.prefetch(["specs/berth.md", "specs/paint", "specs/berth.md"]).results
    assert found == [Prefetched("specs/berth.md", "bridge"), Prefetched("specs/paint", "bridge")]
    assert notebook.context.synthesize(SPEC).cached
    assert [row.cached for row in notebook.context.prefetch(["specs/paint.md"]).results] == [True]
    assert len(answers.asked) == 2


def test_what_is_no_spec_is_a_row_with_the_reason(notebook: Notebook, root: Path, answers: Answers) -> None:
    save(root, "mail.md", f"---\nprovenance: external\n---\n{SPEC}")
    names = ["nowhere", "mail.md", "memories/decision/berth.md", "specs/berth.md"]
    rows = notebook.context.prefetch(names).results
    assert [row.source for row in rows] == ["", "", "", "bridge"]
    assert "no note has the name 'nowhere'" in (rows[0].trouble or "")
    assert "are no specs" in (rows[1].trouble or "")
    assert len(answers.asked) == 1


def test_after_two_failures_no_more_are_asked(notebook: Notebook, answers: Answers) -> None:
    answers.set("crash")
    rows = notebook.context.prefetch(["specs/berth.md", "specs/paint.md", "specs/tide.md"]).results
    assert [row.source for row in rows] == ["local", "local", ""]
    assert "after 2 failures" in (rows[2].trouble or "")
    assert len(answers.asked) == 2


def test_a_quarter_of_the_day_is_left_for_questions_by_hand(notebook: Notebook, answers: Answers) -> None:
    answers.set(daily_limit=2)
    rows = notebook.context.prefetch(["specs/berth.md", "specs/paint.md"]).results
    assert [row.source for row in rows] == ["bridge", "local"]
    assert "of which 1 may be asked ahead" in (rows[1].trouble or "")
    assert notebook.context.synthesize(OTHER).source == "bridge"


def test_wrong_settings_and_sessions_are_refused_before_names_are_looked_up(
    notebook: Notebook, root: Path, answers: Answers
) -> None:
    assert_raises(NotPermitted, notebook.context.prefetch, ["nowhere"], STRANGER)
    answers.set(enabled=False)
    assert_raises(UsageError, notebook.context.prefetch, ["nowhere"], match="syntheses are off")


# ---- by itself


@pytest.fixture
def prefetcher(notebook: Notebook) -> Prefetcher:
    prefetcher = Prefetcher(notebook.core, notebook.context.synthesizer)
    assert not look(prefetcher)  # what was there before is nobody's news
    return prefetcher


def test_a_saved_spec_is_asked_about_after_a_pause(
    prefetcher: Prefetcher,
    notebook: Notebook,
    root: Path,
    answers: Answers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = datetime.now(UTC)
    monkeypatch.setattr(type(notebook.core), "now", lambda _: now)
    save(root, "soup.md", "# Soup")
    save(root, "specs/berth.md", f"{SPEC} Now?", seconds_ago=1)
    notebook.sync()
    assert not look(prefetcher)
    save(root, "specs/berth.md", f"{SPEC} Now?")
    notebook.sync()
    assert look(prefetcher)
    assert not look(prefetcher)
    assert len(answers.asked) == 1
    assert notebook.context.synthesize(f"{SPEC} Now?", TASK).cached


def test_of_many_the_five_newest_are_asked_about(
    prefetcher: Prefetcher, notebook: Notebook, root: Path, answers: Answers
) -> None:
    for number in range(8):
        save(root, f"specs/s{number}.md", f"{SPEC} Number {number}?", seconds_ago=100 - number)
    notebook.sync()
    assert look(prefetcher)
    assert [re.findall(r"Number (\d)\?", question)[0] for question in answers.asked] == ["7", "6", "5", "4", "3"]


def test_a_new_branch_is_about_the_specs_that_it_names(notebook: Notebook, root: Path, answers: Answers) -> None:
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main"], cwd=root, check=True)
    with synced(root) as notebook:
        prefetcher = Prefetcher(notebook.core, notebook.context.synthesizer)
        assert not look(prefetcher)
        subprocess.run(["git", "symbolic-ref", "HEAD", "refs/heads/fix/the-paint"], cwd=root, check=True)
        assert look(prefetcher)
        assert notebook.context.synthesize(OTHER).cached
        assert not look(prefetcher)
    assert len(answers.asked) == 1


def test_a_model_that_is_away_is_asked_again_later_and_not_for_ever(
    prefetcher: Prefetcher,
    notebook: Notebook,
    root: Path,
    answers: Answers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers.set("crash", specs=["specs/"])
    save(root, "specs/berth.md", f"{SPEC} Now?")
    notebook.sync()
    now = datetime.now(UTC).timestamp()
    looked = []
    for seconds in (0, 59, 61, 300, 362, 1_000):
        at = datetime.fromtimestamp(now + seconds, UTC)
        monkeypatch.setattr(type(notebook.core), "now", lambda _, at=at: at)
        looked.append(look(prefetcher))
    assert looked == [True, False, True, False, True, False]
    assert len(answers.asked) == 3


def test_the_process_that_follows_the_notebook_does_it_without_waiting(
    notebook: Notebook, root: Path, answers: Answers
) -> None:
    (chore,) = [each for each in chores_of(notebook.core) if each.name == "prefetch"]
    answers.set("hang", specs=["specs/"])
    chore.run()
    save(root, "specs/berth.md", f"{SPEC} Now?")
    notebook.sync()
    chore.run()
    eventually(lambda: answers.asked, "the model is asked")
    answers.kill()
    eventually(lambda: not [each for each in enumerate_threads() if each.name == "prefetch"], "it has ended")
    answers.set()
    save(root, "specs/berth.md", f"{SPEC} Then?")
    notebook.sync()
    chore.run()
    assert len(answers.asked) == 1


# ---- in the prompt, and which specs


def test_a_prompt_with_a_task_shows_the_cached_synthesis_and_waits_for_nobody(
    notebook: Notebook, root: Path, answers: Answers
) -> None:
    assert "Use berth 4." not in notebook.prompt(TASK, task=SPEC).text
    assert answers.asked == []
    answers.say(answer(text="Use berth 4."))
    notebook.context.synthesize(SPEC)
    with synced(root) as other, other.core.index.write():
        assert "Use berth 4." in notebook.prompt(TASK, task=SPEC).text
    assert "Use berth 4." not in notebook.prompt(STRANGER, task=SPEC).text
    assert len(answers.asked) == 1


PATHS = ["specs/pier.md", "specs/2026/pier.md", "pages/pier.md", "specs/draft-pier.md", "memories/pier.md"]


@pytest.mark.parametrize(
    ("patterns", "specs"),
    [
        (["specs/"], [PATHS[0], PATHS[1], PATHS[3]]),
        (["specs/*.md", "!specs/draft-*"], [PATHS[0]]),
        (["*"], PATHS[:4]),
        ([], []),
    ],
)
def test_patterns_are_as_in_a_gitignore(patterns: list[str], specs: list[str]) -> None:
    assert specs_in(PATHS, patterns) == specs


@pytest.mark.parametrize(
    ("branch", "specs"),
    [
        ("feature/Pier_lights", ["specs/pier.md"]),
        ("new-ferry-at-the-pier", ["specs/pier.md", "specs/ferry.md"]),
        ("rapier", ["specs/crew.md"]),
        ("", ["specs/crew.md"]),
    ],
)
def test_a_branch_is_about_the_specs_in_its_name_else_about_the_newest(branch: str, specs: list[str]) -> None:
    assert specs_of_branch(branch, ["specs/crew.md", "specs/pier.md", "specs/ferry.md"]) == specs
