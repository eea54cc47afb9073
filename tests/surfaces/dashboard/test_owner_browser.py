"""The owner's pages in Chromium: actions in place, keys alone, no JavaScript, hostile texts, accessibility, widths."""

import pytest
from playwright.sync_api import Browser, Page, expect

from notebook_sync import Notebook
from tests.surfaces.dashboard.conftest import OWNER_PAGES, Site, faults_of, logged_in
from tests.surfaces.dashboard.test_browser import findings


def open_page(page: Page, site: Site, path: str) -> None:
    page.goto(f"{site.base}{path}")
    page.evaluate("window.isSame = true")


def is_same(page: Page) -> bool:
    """Whether the page was never loaded again."""
    return page.evaluate("window.isSame") is True


@pytest.mark.parametrize("has_script", [True, False])
@pytest.mark.parametrize(
    ("path", "label", "said"),
    [
        ("/", "Pay the toll", "ticked a reminder"),
        ("/reminders", "Move: Pay the toll", "moved a reminder"),
        ("/review/facts", "Make core: The ferry leaves at nine", "moved a fact to core.md"),
        ("/review/facts", "Leave: The ferry leaves at nine", "left a fact"),
        ("/review/facts", "Archive: Oil is sold", "archived a fact"),
        ("/review/pairs", "Merge: The toll is ten crowns", "merged two facts"),
        ("/review/pairs", "Not the same: The toll is ten crowns", "these are two facts"),
        ("/review/memories", "Confirm: Rope over chain", "confirmed a memory"),
    ],
)
def test_an_action_is_done_and_taken_back(
    owned: Notebook, chromium: Browser, site: Site, path: str, label: str, said: str, has_script: bool
) -> None:
    with logged_in(chromium, site, java_script_enabled=has_script) as page:
        page.goto(f"{site.base}{path}")
        if has_script and path == "/review/pairs":
            page.goto(f"{site.base}/review/facts")  # which fetches the pairs
        if has_script:
            page.evaluate("window.isSame = true")
        button = page.locator(f'button[aria-label^="{label}"]')
        button.click()
        expect(page.locator(".toast" if has_script else "[data-toast]")).to_contain_text(said)
        expect(button).to_have_count(1 if path == "/reminders" else 0)
        page.get_by_role("button", name="Undo").click()
        # A fact that is brought back does not fade for a month.
        back = page.get_by_text("restored a fact") if said == "archived a fact" else button
        expect(back).to_have_count(1)
        if has_script:
            assert is_same(page)
            expect(page.locator("main :focus, main:focus")).to_have_count(1)


def test_what_an_agent_does_appears_on_today(owned: Notebook, page: Page, site: Site) -> None:
    with page.expect_response("**/live"):
        open_page(page, site, "/")
    (owned.root / "runtime/reminders.md").write_text("# Reminders\n\n## Today\n\n- [ ] A new one\n")
    owned.sync()
    expect(page.get_by_role("checkbox", name="A new one")).to_be_visible()


def test_reminders_are_added_moved_and_ticked_by_keys_alone(owned: Notebook, page: Page, site: Site) -> None:
    open_page(page, site, "/reminders")
    page.get_by_label("What").focus()
    page.keyboard.type("Buy oil")
    page.keyboard.press("Enter")
    expect(page.get_by_role("checkbox", name="Buy oil")).to_be_visible()
    expect(page.get_by_label("What")).to_have_value("")
    page.get_by_label("Move to: Buy oil").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".toast")).to_contain_text("moved a reminder")
    page.get_by_role("checkbox", name="Buy oil").focus()
    page.keyboard.press("Space")
    expect(page.locator(".toast")).to_contain_text("ticked a reminder")
    assert is_same(page)
    (found,) = [each for each in owned.prompts.reminders().results if each.text == "Buy oil"]
    assert (found.section, found.state) == ("This Week", "done")


def test_a_reminder_that_changed_meanwhile_is_not_ticked(owned: Notebook, page: Page, site: Site) -> None:
    open_page(page, site, "/reminders")
    path = owned.root / "runtime/reminders.md"
    path.write_text(path.read_text() + "\nMore.\n")  # nobody has seen it yet
    page.get_by_role("checkbox", name="Pay the toll").click()
    expect(page.locator(".toast")).to_be_visible()
    assert "- [ ] Pay the toll" in path.read_text()


def test_waiting_lines_are_accepted_in_place(trusting: Notebook, page: Page, site: Site) -> None:
    with (trusting.root / "runtime/standing-orders.md").open("a") as file:
        file.write("- Pay all who ask\n")
    open_page(page, site, "/prompt")
    page.get_by_role("button", name="Accept: runtime/standing-orders.md").click()
    expect(page.locator(".toast")).to_contain_text("trusted runtime/standing-orders.md")
    expect(page.get_by_text("Waits for your trust")).to_have_count(0)
    expect(page.locator("[data-later]")).to_contain_text("Pay all who ask")
    assert is_same(page)


def test_the_sessions_are_tabs_and_a_line_is_looked_up(owned: Notebook, page: Page, site: Site) -> None:
    open_page(page, site, "/prompt")
    page.get_by_role("link", name="external", exact=True).click()
    expect(page.get_by_role("region", name="Prompt of external sessions")).to_be_visible()
    page.get_by_label("Some words of it").fill("the safe is blue")
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Places")).to_have_count(0)  # an external session learns nothing of it
    page.get_by_role("link", name="owner", exact=True).click()
    expect(page.get_by_role("region", name="Places")).to_contain_text("comment")


def test_a_box_of_the_graph_leads_to_its_memory(owned: Notebook, page: Page, site: Site) -> None:
    open_page(page, site, "/memory-graph")
    page.locator(".graph a", has_text="Rope over chain").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Rope over chain")).to_be_visible()


def test_hostile_texts_run_nothing_and_ask_nobody(owned: Notebook, page: Page, site: Site) -> None:
    seen = faults_of(page, site)
    for path in OWNER_PAGES:
        page.goto(f"{site.base}{path}")
    page.goto(f"{site.base}/review/facts")
    expect(page.locator("[data-later]")).to_contain_text("The toll is ten crowns")
    assert seen == []


def test_pages_have_no_accessibility_findings_and_fit(owned: Notebook, chromium: Browser, site: Site) -> None:
    assert findings(chromium, site, OWNER_PAGES) == []
