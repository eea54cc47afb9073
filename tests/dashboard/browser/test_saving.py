"""What is typed is not lost: not with the server, not with the login, not by going away."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Locator, expect

from notebook_sync.folder import FOLDER
from notebook_sync.tokens import Tokens
from tests.dashboard.browser.serving import Address, serving
from tests.dashboard.browser.tab import Tab

Opening = Callable[[Address], Tab]
KEYS = "pages/office/keys.md"
# Who leaves a page with something unsaved is asked, and says yes.
LEAVING = "addEventListener('beforeunload', (event) => event.stopImmediatePropagation(), true)"
MINE = "# Keys\n\nOdile has seven.\n"


def offered(tab: Tab) -> Locator:
    return tab.page.get_by_role("region", name="What was not saved")


def test_a_save_that_nothing_answers_stays_and_is_sent_again(open_tab: Opening, root: Path) -> None:
    with contextlib.ExitStack() as stack:
        address = stack.enter_context(serving(root))
        tab = open_tab(address)
        tab.log_in(f"/edit/{KEYS}")
        box = tab.page.get_by_label("Text", exact=True)
        box.fill(MINE)
        stack.close()
        box.press("Control+s")
        said = tab.page.locator("#edit-state")
        expect(said).to_contain_text("Not saved: the server does not answer")
        expect(said).to_contain_text("press “Save” again")
        with tab.page.expect_event("requestfailed", lambda asked: asked.url.endswith("/preview")):
            tab.page.get_by_role("button", name="Preview").click()  # which fails, too, and has less to say
        expect(said).to_contain_text("press “Save” again")
        expect(box).to_have_value(MINE)
        stack.enter_context(serving(root, port=address.port))
        tab.page.get_by_role("button", name="Save").click()
        tab.page.wait_for_url("**/notes/**")
        assert (root / KEYS).read_text(encoding="utf-8").endswith(MINE)
        tab.open(f"/edit/{KEYS}")
        expect(box).to_have_value(MINE)
        expect(offered(tab)).to_be_hidden()


def test_a_save_after_the_login_ended_stays_and_leads_to_a_new_one(tab: Tab) -> None:
    tab.open(f"/edit/{KEYS}")
    box = tab.page.get_by_label("Text", exact=True)
    tab.end_login()
    box.fill(MINE)
    tab.page.get_by_role("button", name="Save").click()
    said = tab.page.locator("#edit-state")
    expect(said).to_contain_text("Not saved: your login ended")
    expect(box).to_have_value(MINE)
    with tab.page.context.expect_page() as opened:
        said.get_by_role("link", name="log in in another tab").click()
    opened.value.get_by_label("Owner's token").fill(Tokens(tab.address.root / FOLDER).owner())
    opened.value.keyboard.press("Enter")
    opened.value.wait_for_url(f"{tab.address.url}/")
    tab.page.get_by_role("button", name="Save").click()
    tab.page.wait_for_url("**/notes/**")
    assert (tab.address.root / KEYS).read_text(encoding="utf-8").endswith(MINE)


def test_what_was_not_saved_is_offered_to_who_comes_back(tab: Tab) -> None:
    tab.page.add_init_script(LEAVING)
    file = tab.address.root / KEYS
    before = file.read_text(encoding="utf-8")
    tab.open(f"/edit/{KEYS}")
    box = tab.page.get_by_label("Text", exact=True)
    box.fill(MINE)
    tab.open("/notes")
    file.write_text(f"{before}\nBen has none.\n", encoding="utf-8")
    tab.open(f"/edit/{KEYS}")
    expect(box).to_have_value(re.compile("Ben has none"))
    expect(offered(tab)).to_contain_text("The note was changed since")
    tab.page.get_by_role("button", name="Put it in").click()
    expect(box).to_have_value(MINE)
    tab.page.get_by_role("button", name="Save").click()
    expect(tab.page.get_by_role("heading", level=1, name="was changed while you wrote")).to_be_visible()
    assert "Ben has none." in file.read_text(encoding="utf-8")
    tab.open(f"/edit/{KEYS}")
    tab.page.get_by_role("button", name="Throw it away").click()
    tab.page.reload()
    expect(box).to_be_visible()
    expect(offered(tab)).to_be_hidden()
