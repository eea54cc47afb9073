"""Logging in and out, as a person does it."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import expect

from notebook_sync.folder import FOLDER
from notebook_sync.tokens import Tokens
from tests.dashboard.browser.serving import Address
from tests.dashboard.browser.tab import Tab

Opening = Callable[[Address], Tab]


def test_the_link_lets_in_once_and_logging_out_shuts_the_door(open_tab: Opening, served: Address) -> None:
    tab = open_tab(served)
    link = served.link("/")
    tab.page.goto(link)
    expect(tab.page.get_by_role("navigation", name="Parts of the dashboard")).to_be_visible()
    assert "code=" not in tab.page.url
    (cookie,) = tab.page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert tab.page.evaluate("document.cookie") == ""
    tab.page.get_by_role("button", name="Log out").click()
    expect(tab.page.get_by_label("Owner's token")).to_be_focused()
    tab.page.goto(link)
    expect(tab.page.get_by_role("alert")).to_contain_text("used already")


def test_the_owners_token_leads_to_the_page_that_was_wanted(open_tab: Opening, served: Address) -> None:
    tab = open_tab(served)
    tab.open("/?one=two")
    tab.page.get_by_label("Owner's token").fill("no such token")
    tab.page.keyboard.press("Enter")
    expect(tab.page.get_by_role("alert")).to_contain_text("not the owner's token")
    tab.page.get_by_label("Owner's token").fill(Tokens(served.root / FOLDER).owner())
    tab.page.get_by_role("button", name="Log in").click()
    tab.page.wait_for_url("**/?one=two")


def test_revoking_the_owners_token_ends_what_an_open_page_may_do(tab: Tab) -> None:
    Tokens(tab.address.root / FOLDER).revoke("owner")
    tab.page.get_by_role("link", name="Home").click()
    expect(tab.page.get_by_role("main")).to_contain_text("notebook-sync token link")
