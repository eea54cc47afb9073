"""A page that is open follows the notebook, says when the server is away, and goes on when it is back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Self
from unittest.mock import patch

from playwright.sync_api import expect

from notebook_sync import Notebook, Session
from notebook_sync.surfaces.dashboard.runtime import rules_page
from tests.dashboard.browser.serving import Address, serving
from tests.dashboard.browser.tab import NARROW, WIDE, Tab

Opening = Callable[[Address], Tab]


def expired(root: Path) -> None:
    """Put a rule into a file by hand that `check` reports."""
    rules = root / "runtime/external-communications.md"
    line = "- **Ben Roe** (ben@ferry.example): block [until 2020-05-09]\n"
    rules.write_text(rules.read_text(encoding="utf-8") + line, encoding="utf-8")


def test_an_edit_by_hand_is_seen_without_a_reload(open_tab: Opening, root: Path) -> None:
    with serving(root, watch=True) as address:
        tab = open_tab(address)
        tab.log_in()
        expect(tab.page.get_by_role("heading", name="Watch")).to_be_visible()
        tab.page.evaluate("window.isTheSame = true")
        expired(root)
        expect(tab.page.get_by_text("expired on 2020-05-09")).to_be_visible()
        assert tab.page.evaluate("window.isTheSame")


def test_a_prompt_follows_a_file_that_goes_and_comes_back(open_tab: Opening, root: Path) -> None:
    orders = root / "runtime/standing-orders.md"
    said = orders.read_text(encoding="utf-8")
    with serving(root, watch=True) as address:
        tab = open_tab(address)
        tab.log_in("/prompt")
        revision, text = tab.page.locator("#stable-said .badge"), tab.page.get_by_role("region", name=orders.name)
        before = revision.inner_text()
        expect(text).to_contain_text("Never promise a berth")
        orders.unlink()
        expect(text).to_have_count(0)
        expect(revision).not_to_have_text(before)
        orders.write_text(said, encoding="utf-8")
        expect(text).to_contain_text("Never promise a berth")
        expect(revision).to_have_text(before)


def test_a_history_follows_its_note_and_undoes_what_it_shows(open_tab: Opening, root: Path) -> None:
    file = root / "pages/tides.md"
    before = file.read_text(encoding="utf-8")
    with serving(root, watch=True) as address:
        tab = open_tab(address)
        tab.log_in("/history/pages/tides.md")
        expect(tab.page.get_by_role("heading", name="Versions")).to_be_visible()
        with Notebook.open(root) as notebook:
            notebook.update("pages/tides.md", Session.owner(), content="# Tides\n\nNeap tides are weak.\n")
        expect(tab.page.get_by_role("region", name="What changed")).to_contain_text("Neap tides are weak")
        tab.page.get_by_role("button", name="Undo the last change").click()
        expect(tab.page.get_by_role("status").filter(has_text="Undone")).to_be_visible()
        assert file.read_text(encoding="utf-8") == before


def test_a_reminder_whose_time_is_over_is_overdue_in_an_open_page(open_tab: Opening, root: Path) -> None:
    now = datetime(2026, 5, 6, 17, 30, 30, tzinfo=UTC)

    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return cls.fromtimestamp(now.timestamp(), tz)

    file = root / "runtime/reminders.md"
    file.write_text("## Today\n\n- [ ] Light the lamp [due: 2026-05-06 17:30]\n", encoding="utf-8")
    (root / "notebook.toml").write_text('[notebook]\ntimezone = "UTC"\n', encoding="utf-8")
    with serving(root) as address, patch.object(rules_page, "datetime", Clock):
        tab = open_tab(address)
        tab.page.clock.install()
        tab.log_in("/reminders")
        expect(tab.page.get_by_role("heading", name="Due today")).to_be_visible()
        now = datetime(2026, 5, 6, 17, 31, tzinfo=UTC)
        tab.page.clock.run_for(16_000)
        expect(tab.page.get_by_role("heading", name="Overdue")).to_be_visible()


def test_what_has_the_focus_stays_as_it_is_until_it_is_left(open_tab: Opening, root: Path) -> None:
    with serving(root, watch=True) as address:
        tab = open_tab(address)
        tab.log_in()
        tab.page.locator("#state").get_by_role("link", name="Reminders").focus()
        with tab.page.expect_response(lambda answer: answer.url == f"{address.url}/"):
            expired(root)
        expect(tab.page.get_by_text("expired on 2020-05-09")).to_have_count(0)
        tab.page.locator("#find").focus()
        expect(tab.page.get_by_text("expired on 2020-05-09")).to_be_visible()


def test_a_restart_of_the_server_is_told_and_survived(open_tab: Opening, root: Path) -> None:
    banner = "The server does not answer"
    with serving(root) as address:
        tab = open_tab(address)
        tab.log_in()
        expect(tab.page.get_by_role("heading", name="Watch")).to_be_visible()
    expect(tab.page.get_by_role("status").filter(has_text=banner)).to_be_visible()
    expired(root)
    with serving(root, port=address.port):
        expect(tab.page.get_by_text("expired on 2020-05-09")).to_be_visible()
        expect(tab.page.get_by_text(banner)).to_have_count(0)


def test_who_is_logged_out_meanwhile_is_told_wherever_in_the_page_and_keeps_what_was_typed(tab: Tab) -> None:
    tab.open("/edit/pages/tides.md")
    tab.page.set_viewport_size({"width": 1200, "height": 300})
    text = tab.page.locator("textarea.text")
    text.fill("what I wrote")
    tab.page.evaluate("scrollTo(0, document.body.scrollHeight)")
    tab.end_login()
    banner = tab.page.get_by_role("status").filter(has_text="not logged in any more")
    expect(banner.get_by_role("link", name="log in in another tab")).to_be_in_viewport(ratio=1)
    expect(text).to_have_value("what I wrote")
    with tab.page.context.expect_page() as opened:
        banner.get_by_role("link").click()
    expect(opened.value.get_by_label("Owner's token")).to_be_visible()


def test_a_page_that_nobody_sees_holds_no_connection(tab: Tab) -> None:
    # A stream is such an entry once it has ended.
    ended = "performance.getEntriesByType('resource').filter((each) => each.name.endsWith('/live')).length"
    hide = "Object.defineProperty(document, 'hidden', {configurable: true, value: %s})"
    assert tab.page.evaluate(ended) == 0
    tab.page.evaluate(hide % "true")
    tab.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    tab.page.wait_for_function(f"{ended} === 1")
    tab.page.evaluate(hide % "false")
    with tab.page.expect_request("**/live"):
        tab.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


def test_the_keyboard_reaches_the_search_and_each_part(tab: Tab) -> None:
    tab.page.keyboard.press("Tab")
    expect(tab.page.get_by_role("link", name="Skip to the page")).to_be_focused()
    tab.page.keyboard.press("Enter")
    expect(tab.page.locator("#main")).to_be_focused()
    tab.page.keyboard.press("/")
    expect(tab.page.get_by_label("Search the notes")).to_be_focused()
    tab.page.keyboard.type("g p")
    expect(tab.page.get_by_label("Search the notes")).to_have_value("g p")
    tab.page.locator("#main").focus()
    tab.page.keyboard.press("g")
    tab.page.keyboard.press("p")
    tab.page.wait_for_url("**/prompt")
    keys = tab.page.get_by_role("dialog", name="Keys")
    tab.page.keyboard.press("?")
    expect(keys).to_be_visible()
    tab.page.keyboard.press("n")
    tab.page.keyboard.press("Escape")
    expect(keys).to_be_hidden()
    tab.page.keyboard.press("e")  # which no note is shown for
    tab.page.keyboard.press("n")
    tab.page.wait_for_url("**/new")
    tab.open("/notes/pages/tides.md")
    tab.page.keyboard.press("e")
    tab.page.wait_for_url("**/edit/pages/tides.md")


def test_what_was_just_done_has_the_focus_and_is_made_anew_all_the_same(open_tab: Opening, root: Path) -> None:
    with serving(root, watch=True) as address:
        tab = open_tab(address)
        with tab.page.expect_response("**/live"):
            tab.log_in("/notes/pages/tides.md?done=saved")
        said = tab.page.get_by_role("status").filter(has_text="Saved.")
        expect(said).to_be_focused()
        (root / "pages/tides.md").write_text("# Spring tides\n", encoding="utf-8")
        expect(tab.page.get_by_role("heading", name="Spring tides")).to_be_visible()
        expect(said).to_be_focused()


def test_on_a_phone_the_head_is_small_and_the_folders_are_shut(tab: Tab) -> None:
    tab.page.set_viewport_size(NARROW)
    tab.open("/notes")
    expect(tab.page.locator("#tree")).to_be_hidden()
    assert tab.page.locator("header").bounding_box()["height"] < 100
    tab.page.set_viewport_size(WIDE)
    tab.open("/notes")
    expect(tab.page.locator("#tree")).to_be_visible()


def test_what_stands_beside_each_other_stands_at_one_height(tab: Tab) -> None:
    tab.open("/notes")
    tab.page.get_by_text("Narrow it").click()
    tops = [tab.page.locator(f"#{name}").bounding_box() for name in ("status", "tags")]
    assert tops[0]["y"] == tops[1]["y"]
    assert tops[0]["height"] == tops[1]["height"]
