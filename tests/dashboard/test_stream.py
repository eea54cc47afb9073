"""The daily stream in a browser: a day as a timeline, the days beside it, what is recalled, and logging."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from html import unescape
from pathlib import Path
from typing import Any
from unittest.mock import patch
from zoneinfo import ZoneInfo

import pytest
from msgspec.structs import replace

from notebook_sync import Notebook, Session
from notebook_sync.errors import BackendDown
from notebook_sync.operations.stream import Entry, NoteRef
from notebook_sync.refs.entry import new_entry
from notebook_sync.surfaces.dashboard.memory.stream_view import PAGE, DayView, day_view
from tests.dashboard.browsing import Browsing, browsing, text_of

OWNER, SCRIBE = Session.owner(), Session.task("scribe")
DAY = "2026-02-18"
NOW = datetime(2026, 2, 18, 22, 30, tzinfo=UTC)
DOWN = BackendDown("Redis at localhost:6379", "connection refused")


def entry(hour: int, said: str, minute: int = 0, **more: Any) -> Entry:
    return Entry(**new_entry(said, said, now=datetime(2026, 2, 18, hour, minute, tzinfo=UTC), source="owner", **more))


def of_note(hour: int, path: str, action: str = "updated", **more: Any) -> Entry:
    told = new_entry(path, f"[{path}] ebb", now=datetime(2026, 2, 18, hour, tzinfo=UTC), source="notebook", **more)
    return Entry(**told, action=action, ref=NoteRef(path, path, "pages", "draft", "1", path))


def view_of(*entries: Entry, day: str = DAY, **asked: Any) -> DayView:
    return day_view(day, entries, NOW, asked.pop("zone", UTC), **asked)


def said_in(view: DayView) -> list[str]:
    return [row.said for hour in view.hours for row in hour.rows]


def test_a_day_is_told_by_the_hour_the_latest_first() -> None:
    view = view_of(entry(6, "ebb"), entry(9, "coins"), entry(9, "queue", 40))
    assert [(hour.name, [row.said for row in hour.rows]) for hour in view.hours] == [
        ("09:00", ["queue", "coins"]),
        ("06:00", ["ebb"]),
    ]


def test_hours_are_those_of_the_notebooks_timezone() -> None:
    view = view_of(entry(6, "ebb"), zone=ZoneInfo("Asia/Tokyo"))
    assert [hour.name for hour in view.hours] == ["15:00"]
    assert [bar.x for bar in view.bars] == [15 * 4]


def test_entries_that_lie_in_disorder_have_each_hour_once() -> None:
    view = view_of(entry(6, "a"), entry(9, "b"), entry(6, "c", 20))
    assert [hour.name for hour in view.hours] == ["09:00", "06:00"]


def test_the_axis_has_a_bar_for_each_quarter_and_kind_and_the_fullest_fills_it() -> None:
    view = view_of(entry(6, "a", 1), entry(6, "b", 14), of_note(6, "pages/quay.md"), entry(23, "late", 59))
    assert [(bar.x, bar.kind) for bar in view.bars] == [(24, "logged"), (24, "notes"), (95, "logged")]
    assert sum(bar.height for bar in view.bars if bar.x == 24) == pytest.approx(20, abs=0.02)
    assert all(bar.y >= 0 and bar.y + bar.height <= 20.02 for bar in view.bars)


def test_only_today_has_a_present_moment_and_no_day_after() -> None:
    assert (view_of().now, view_of().after, view_of().before) == (90, "", "2026-02-17")
    assert (view_of(day="2026-02-17").now, view_of(day="2026-02-17").after) == (None, DAY)


def test_the_first_day_of_all_has_none_before() -> None:
    view = view_of(day="0001-01-01")
    assert (view.before, view.after) == ("", "0001-01-02")


def test_a_long_day_is_shown_in_pages_that_have_each_entry_once() -> None:
    entries = [entry(number // 60, f"n{number}", number % 60) for number in range(2 * PAGE + 50)]
    found, until = [], None
    while True:
        view = view_of(*entries, until=until)
        assert len(said_in(view)) <= PAGE
        found += said_in(view)
        if not view.earlier:
            break
        until = int(re.search(r"until=(\d+)", view.earlier)[1])  # type: ignore[index]
    assert found == [each.content for each in reversed(entries)]
    assert said_in(view_of(*entries, until=int(view.later.partition("until=")[2])))[-1] == "n50"


def test_an_hour_leads_to_the_page_that_has_it() -> None:
    entries = [entry(6, "early"), *(entry(9, f"n{number}") for number in range(PAGE + 10))]
    chips = {chip.name: chip.href for chip in view_of(*entries).by_hour}
    assert chips == {"06:00": f"/memory/stream?day={DAY}&until=1#h06", "09:00": f"/memory/stream?day={DAY}#h09"}
    assert said_in(view_of(*entries, until=1)) == ["early"]


def test_a_day_is_narrowed_to_a_kind_and_a_tag_and_back() -> None:
    entries = [entry(6, "ebb", tags=["tide"]), entry(7, "coins"), of_note(8, "pages/quay.md", tags=["pages"])]
    assert said_in(view_of(*entries, kind="logged")) == ["coins", "ebb"]
    narrowed = view_of(*entries, kind="logged", tag="tide")
    assert said_in(narrowed) == ["ebb"]
    assert {chip.name: chip.href for chip in narrowed.by_kind if chip.is_on} == {
        "logged": f"/memory/stream?day={DAY}&tag=tide"
    }
    assert {chip.name: chip.href for chip in narrowed.by_tag if chip.is_on} == {
        "tide": f"/memory/stream?day={DAY}&kind=logged"
    }


def test_a_note_leads_to_its_page_and_one_that_is_gone_to_its_history() -> None:
    view = view_of(of_note(6, "pages/a b.md"), of_note(7, "pages/old.md", "deleted"), of_note(8, ""))
    rows = {row.path: row for hour in view.hours for row in hour.rows}
    assert rows["pages/a b.md"].href == "/notes/pages/a%20b.md"
    assert rows["pages/old.md"].href == "/history/pages/old.md"
    assert (rows[""].href, rows[""].title) == ("", "a note")
    assert rows["pages/a b.md"].said == "ebb"


def test_a_moment_that_no_timezone_has_is_shown_as_it_is() -> None:
    late = replace(entry(6, "last"), timestamp="9999-12-31T23:59:59.000+00:00")
    assert said_in(view_of(late, zone=ZoneInfo("Asia/Tokyo"))) == ["last"]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A notebook with a stream, which no test changes."""
    root = tmp_path_factory.mktemp("told") / "notebook"
    Notebook.init(root, git=False)
    (root / "pages/quay.md").write_text("---\nprovenance: external\n---\n# Quay\n\nOdile waits.\n")
    with Notebook.open(root) as notebook:
        notebook.sync()
        notebook.stream.log("Read the <script>alert(1)</script> tables", SCRIBE, tags=["tides"], score=0.9)
        notebook.stream.log("{{7*7}} crossings", OWNER, source="harbour radio")
        notebook.stream.log("The toll is twelve crowns", OWNER, keep=True)
    return root


@pytest.fixture(scope="module")
def shared(told: Path) -> Iterator[Browsing]:
    with browsing(told) as found:
        yield found


def test_the_page_tells_of_today_what_was_logged_and_what_became_of_notes(shared: Browsing) -> None:
    page = shared.get("/memory/stream")
    said = text_of(page.text)
    assert page.status_code == 200
    assert "Today" in said
    assert "agent:scribe matters 0.9 Read the <script>alert(1)</script> tables #tides" in said
    assert "harbour radio {{7*7}} crossings" in said
    assert "Quay created from outside Odile waits. pages/quay.md" in said
    assert "<script>alert" not in page.text
    assert "style=" not in page.text


def test_a_day_of_which_nothing_is_told_says_so_and_leads_on(shared: Browsing) -> None:
    page = shared.get("/memory/stream?day=2020-02-29").text
    assert "Nothing is told of this day" in text_of(page)
    assert 'href="/memory/stream?day=2020-02-28"' in page
    assert 'href="/memory/stream?day=2020-03-01"' in page


@pytest.mark.parametrize("day", ["zz", "2026-02-30", "9999-12-31", "%00", "٢٠٢٦-٠٢-١٨", "x" * 200])
def test_what_is_no_day_that_was_is_said_to_be_none(shared: Browsing, day: str) -> None:
    page = shared.get(f"/memory/stream?day={day}")
    assert page.status_code == 422
    assert 'role="alert"' in page.text
    assert 'name="content"' in page.text


def test_what_is_narrowed_to_nothing_leads_back_to_the_day(shared: Browsing) -> None:
    page = shared.get("/memory/stream?tag=%F0%9F%9A%A2%00&kind=%22%3E&until=0")
    assert page.status_code == 200
    assert "Nothing of this day fits" in text_of(page.text)


def test_something_is_recalled_from_the_stream_long_term_memory_and_notes(shared: Browsing) -> None:
    assert "The toll is twelve crowns" in text_of(shared.get("/memory/recall?query=toll+crowns").text)
    assert "/notes/pages/quay.md" in shared.get("/memory/recall?query=quay").text
    assert "#tides" in text_of(shared.get("/memory/recall?tags=%23tides").text)
    assert "Nothing is remembered" in text_of(shared.get("/memory/recall?query=zeppelin&tags=air").text)
    assert "Say above" in text_of(shared.get("/memory/recall?query=++").text)


def test_more_is_recalled_by_a_link(shared: Browsing) -> None:
    page = shared.get("/memory/recall?query=&since=1d&count=2").text
    more = re.search(r'rel="next" href="([^"]+)"', page)
    assert more
    assert page.count('class="told') == 2
    assert shared.get(unescape(more[1])).text.count('class="told') == 4


@pytest.mark.parametrize("asked", ["since=soon", "tags=a+b!", "query=x&since=%00"])
def test_what_cannot_be_recalled_by_is_said(shared: Browsing, asked: str) -> None:
    page = shared.get(f"/memory/recall?{asked}")
    assert page.status_code == 422
    assert 'role="alert"' in page.text


@pytest.mark.parametrize("query", ["'\"*(){}[]^~-:@|", "🚢", "%00", "OR AND NOT", "a" * 4096])
def test_whatever_is_recalled_is_words(shared: Browsing, query: str) -> None:
    assert shared.get(f"/memory/recall?query={query}").status_code == 200


def test_a_memory_that_is_away_costs_its_part_of_the_page(shared: Browsing) -> None:
    notebook = shared.served.app.state.notebook
    with (
        patch.object(notebook.stream, "show", side_effect=DOWN),
        patch.object(notebook.stream, "recall", side_effect=DOWN),
    ):
        for address in ("/memory/stream", "/memory/recall?query=ebb"):
            page = shared.get(address)
            assert page.status_code == 200
            assert "Redis at localhost:6379 does not answer" in text_of(page.text)
            assert "Next:" in text_of(page.text)
            assert "<form" in page.text


def test_what_is_gone_of_a_day_is_told(shared: Browsing) -> None:
    refs = shared.served.app.state.notebook.refs
    with patch.object(refs, "lost", return_value=datetime.now(UTC) + timedelta(minutes=1)):
        assert "is gone: hot memory was emptied" in text_of(shared.get("/memory/stream").text)


def test_a_form_logs_into_the_stream_of_today(browser: Browsing) -> None:
    fields = {"content": "Odile\nhas the keys", "tags": "#keys, office", "source": "harbour radio", "score": "0.8"}
    answer = browser.post("/memory/stream", fields)
    assert answer.headers["Location"] == "/memory/stream?done=logged"
    assert "Logged: it is in the stream of today" in text_of(browser.follow(answer).text)
    with Notebook.open(browser.root) as notebook:
        (logged,) = [one for one in notebook.stream.show(OWNER).results if not one.action]
    assert logged.content == "Odile\nhas the keys"
    assert (logged.tags, logged.source, logged.score) == (["keys", "office"], "harbour radio", 0.8)


def test_what_is_kept_for_long_is_recalled_and_in_no_day(browser: Browsing) -> None:
    answer = browser.post("/memory/stream", {"content": "The ferry is called Marguerite", "keep": "yes"})
    assert "Kept for long" in text_of(browser.follow(answer).text)
    assert "Marguerite" not in browser.get("/memory/stream").text
    assert "Marguerite" in browser.get("/memory/recall?query=ferry+called").text


@pytest.mark.parametrize(
    "wrong",
    [{"tags": "ebb!"}, {"score": "much"}, {"score": "nan"}, {"score": "2"}, {"source": "notebook"}],
)
def test_what_is_refused_is_shown_again_as_it_was_typed(browser: Browsing, wrong: dict[str, str]) -> None:
    page = browser.post("/memory/stream", {"content": "Odile <waits>", "keep": "yes", **wrong})
    assert page.status_code == 422
    assert 'role="alert"' in page.text
    assert "Odile &lt;waits&gt;</textarea>" in page.text
    assert 'name="keep" value="yes" checked' in page.text
    assert all(f'value="{value}"' in page.text for value in wrong.values())


def test_what_was_typed_is_not_lost_to_a_memory_that_is_away(browser: Browsing) -> None:
    with patch.object(browser.served.app.state.notebook.stream, "log", side_effect=DOWN):
        page = browser.post("/memory/stream", {"content": "Odile waits"})
    assert page.status_code == 503
    assert "Odile waits</textarea>" in page.text
    assert "Redis at localhost:6379 does not answer" in text_of(page.text)


def test_nothing_to_log_is_said(browser: Browsing) -> None:
    assert "there is nothing to log" in text_of(browser.post("/memory/stream", {"content": " \n"}).text)


def test_the_day_before_is_reached_from_today(browser: Browsing) -> None:
    before = date.fromisoformat(re.search(r"Today (\S+)", text_of(browser.get("/memory/stream").text))[1])  # type: ignore[index]
    assert f'rel="prev" href="/memory/stream?day={before - timedelta(1)}"' in browser.get("/memory/stream").text
