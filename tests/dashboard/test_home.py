"""The first page: what is in step, what is not and what to do about it, and that it waits for no database."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from notebook_sync.surfaces.dashboard.home import MOST_FINDINGS, lines_of, verdict_of
from notebook_sync.surfaces.dashboard.look import Look, Seen
from tests.dashboard.browsing import Browsing, browsing, text_of
from tests.waiting import eventually

AWAY = "mongodb://127.0.0.1:1"


def status(**parts: Any) -> dict[str, Any]:
    """A notebook that is well, but for these parts."""
    well = {
        "mirror": {"name": "SQLite", "ok": True, "error": "", "notes": 3},
        "refs": {"name": "SQLite", "ok": True, "error": "", "pending": 0},
        "behind": 0,
        "lag_seconds": 0,
        "watcher": {"trouble": ""},
        "search": {"trouble": "", "behind": 0, "embedded": 3},
    }
    return {**well, **parts}


def test_what_is_well_says_so() -> None:
    lines = lines_of(status())
    assert {line.tone for line in lines} == {"good"}
    assert verdict_of(lines).name == "Everything is in step"


@pytest.mark.parametrize(
    ("parts", "verdict", "next_step"),
    [
        ({"mirror": {"name": "MongoDB", "ok": False, "error": "refused"}, "behind": None}, "bad", "start MongoDB"),
        ({"refs": {"name": "Redis", "ok": False, "error": "refused", "pending": None}}, "bad", "start Redis"),
        ({"refs": {"name": "Redis", "ok": True, "error": "", "pending": 4}}, "warn", "notebook-sync sync"),
        ({"watcher": None}, "warn", "notebook-sync watch"),
        ({"watcher": None, "behind": 2, "lag_seconds": 5}, "warn", "notebook-sync sync"),
        ({"behind": 1, "lag_seconds": 33}, "warn", "To mend in the files"),
        ({"behind": None}, "warn", "of the mirror"),
        ({"watcher": {"trouble": "the disk is full"}}, "bad", "notebook-sync doctor"),
        ({"search": {"trouble": "no such model", "behind": 0, "embedded": None}}, "warn", "notebook-sync doctor"),
        ({"search": {"trouble": "", "behind": 7, "embedded": 1}}, "warn", "notebook-sync sync"),
    ],
    ids=[
        "mirror away",
        "refs away",
        "refs untold",
        "no watch",
        "files behind",
        "refused",
        "unknown",
        "watch in trouble",
        "no vectors",
        "vectors behind",
    ],
)
def test_what_is_not_well_says_what_to_do(parts: dict[str, Any], verdict: str, next_step: str) -> None:
    lines = lines_of(status(**parts))
    assert verdict_of(lines).tone == verdict
    assert any(next_step in line.next_step for line in lines if line.tone == verdict)


def test_a_file_over_the_size_limit_is_told_as_one_with_what_to_do_about_it(root: Path) -> None:
    (root / "notebook.toml").write_text("[notebook]\nmax_file_bytes = 9000\n")
    (root / "pages/log.md").write_text("# Log\n" + "Start small.\n" * 900)
    with browsing(root) as browser:
        browser.served.app.state.notebook.sync()
        said = text_of(browser.get("/").text)
    assert "1 file differs from the mirror" in said
    assert "stands below, under “To mend in the files”" in said.partition("Room in")[0]
    assert "pages/log.md" in said.partition("Room in")[2].partition("To mend in the files ")[2]


def test_the_room_in_the_prompt_is_told_for_each_file_with_what_is_left_out(root: Path) -> None:
    (root / "notebook.toml").write_text("[prompt]\nmax_tokens_per_file = 60\n")
    orders = "".join(f"## Order {number}\n\n- Answer on day {number} of the month\n\n" for number in range(9))
    (root / "runtime/standing-orders.md").write_text(orders)
    with browsing(root) as browser:
        said = text_of(browser.get("/").text)
    assert "of 60 tokens" in said
    assert "left out" in said.partition("Standing Orders")[2]


def test_a_database_that_is_away_costs_its_own_part_alone(root: Path) -> None:
    (root / "notebook.toml").write_text(f'[mirror]\nurl = "{AWAY}"\ntimeout_seconds = 0.2\n')
    with browsing(root) as browser:

        def said() -> str:
            return text_of(browser.get("/").text)

        assert "Room in the prompt" in said()
        eventually(lambda: "does not answer" in said(), "the mirror is told to be away")
        assert "start MongoDB" in said()
        assert "Refs well" in said()


def test_a_look_that_hangs_is_joined_and_what_was_known_stands_meanwhile() -> None:
    may_answer, asked = threading.Event(), []

    def ask() -> dict[str, Any]:
        asked.append(None)
        if len(asked) > 1:
            assert may_answer.wait(30)
        return {"answer": len(asked)}

    look = Look(ask)
    assert look.seen(30) == Seen({"answer": 1}, is_awaited=False)
    for _ in range(3):
        assert look.seen(0) == Seen({"answer": 1}, is_awaited=True)
    assert len(asked) == 2
    may_answer.set()
    eventually(lambda: not look.seen(0.01).is_awaited, "an answer of now")


def test_while_the_files_are_read_through_the_page_is_there_and_says_so(root: Path) -> None:
    (root / "pages/plan.md").write_text("[gone](gone.md)\n", encoding="utf-8")
    may_answer = threading.Event()
    with browsing(root) as browser:
        state = browser.served.app.state

        def check() -> dict[str, Any]:
            assert may_answer.wait(30)
            return {"findings": state.notebook.prompts.check().results}

        state.check = Look(check)
        meanwhile = browser.get("/").text
        assert "Room in the prompt" in text_of(meanwhile)
        assert "being read through" in meanwhile
        assert 'data-look="2"' in meanwhile
        may_answer.set()
        eventually(lambda: "broken link to" in browser.get("/").text.lower(), "what is to mend is told")
        assert "being read through" not in browser.get("/").text


def test_what_cannot_be_looked_at_is_an_error_for_whoever_asks() -> None:
    def ask() -> dict[str, Any]:
        raise OSError("no such folder")

    with pytest.raises(OSError, match="no such folder"):
        Look(ask).seen(30)


def test_a_name_of_a_file_is_text_and_no_markup(root: Path) -> None:
    (root / "pages/<b>bold<").mkdir()
    (root / "pages/<b>bold<" / "<img src=x onerror=alert(1)>.md").write_bytes(b"\xff")
    with browsing(root) as browser:
        browser.served.app.state.notebook.sync()
        answer = browser.get("/")
    assert "&lt;img src=x" in answer.text
    assert "<img" not in answer.text


def test_a_finding_leads_to_its_section_in_the_note(root: Path, browser: Browsing) -> None:
    rules = root / "runtime/external-communications.md"
    rules.write_text("## Permanent Rules\n\n- **Glazier** answer\n")
    (root / "pages/plan.md").write_text("# Plan\n\n## Pier two\n\n[gone](gone.md)\n")
    page = browser.get("/").text
    note = "/notes/runtime/external-communications.md#at-permanent-rules"
    assert f'<a href="{note}">runtime/external-communications.md:3</a>' in page
    assert '<a href="/notes/pages/plan.md#at-pier-two">pages/plan.md:5</a>' in page
    assert browser.get(note).status_code == 200


def test_the_page_is_the_notebooks(browser: Browsing) -> None:
    assert "notebook at" in text_of(browser.get("/").text)


def test_a_rule_that_is_not_read_is_not_buried_below_broken_links(root: Path, browser: Browsing) -> None:
    links = "".join(f"[gone](gone-{number}.md)\n\n" for number in range(MOST_FINDINGS + 1))
    (root / "pages/a.md").write_text(f"# A\n\n{links}")
    with (root / "runtime/reminders.md").open("a") as reminders:
        reminders.write("\n## Today\n\n- [ ] Pay the bay [due: 25:00]\n")
    eventually(lambda: "notebook-sync check</code> tells the rest" in browser.get("/").text, "what is to mend is told")
    assert "[due: 25:00] is not a date" in browser.get("/").text
