"""Pages of notes in Chromium: writing while others write, drafts, keys, a page without JavaScript, accessibility."""

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.surfaces.dashboard.conftest import Site, faults_of, logged_in
from tests.surfaces.dashboard.test_browser import findings
from tests.surfaces.serving import SCRIBE

PLAN = "pages/plan.md"


def edit(page: Page, site: Site, text: str = "", path: str = PLAN) -> None:
    """Open the editor, wait until it follows the index, and type."""
    with page.expect_response("**/live"):
        page.goto(f"{site.base}/edit/{path}")
    if text:
        page.locator("#text").fill(text)


def change(site: Site, word: str) -> None:
    """Let an agent change the note."""
    site.notebook.notes.update(PLAN, SCRIBE, content=f"# Plan\n\nStart {word}.")


def text_of(site: Site, path: str = PLAN) -> str:
    """What a file says."""
    return (site.notebook.root / path).read_text()


def test_a_note_is_written_seen_and_saved_by_keys_alone(page: Page, site: Site) -> None:
    edit(page, site)
    page.locator("#text").focus()
    page.keyboard.press("Control+End")
    page.keyboard.type("A **new** word <script>alert(1)</script>")
    expect(page.locator("#preview strong")).to_have_text("new")
    expect(page.locator("#edit-state")).to_have_text("Not saved yet")
    page.keyboard.press("Control+s")
    expect(page.locator(".toast")).to_contain_text("Done: saved the note")
    expect(page.locator("#note .prose strong")).to_have_text("new")
    assert "A **new** word" in text_of(site)
    page.locator(".toast").get_by_role("button", name="Undo").click()
    expect(page.locator("#note .prose")).not_to_contain_text("new")


def test_a_note_that_is_saved_at_once_needs_no_preview(page: Page, site: Site) -> None:
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.clock.install()
    edit(page, site, "# Plan\n\nQuick.\n")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#note .prose")).to_have_text("Quick.")
    page.clock.run_for(1_000)
    assert faults == []


def test_a_change_on_disk_is_announced_and_both_texts_are_kept(page: Page, site: Site) -> None:
    edit(page, site, "# Plan\n\nStart big.\n")
    change(site, "tiny")
    expect(page.locator("#changed")).to_be_visible()
    expect(page.locator("#text")).to_have_value("# Plan\n\nStart big.\n")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("changed by both")
    expect(page.locator("#text")).to_have_value("# Plan\n\n<<<<<<< what you wrote\nStart big.\n||||||| what it said "
        "before\nStart small.\n=======\nStart tiny.\n>>>>>>> what the file says now\n")  # fmt: skip
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert").first).to_contain_text("still mark what both changed")
    expect(page.get_by_role("alert").last).to_contain_text("1 place was changed by both")
    page.get_by_role("button", name="Keep mine").click()
    expect(page.locator(".toast")).to_contain_text("Done: saved")
    assert text_of(site) == "# Plan\n\nStart big.\n"


def test_what_is_on_disk_can_be_kept(page: Page, site: Site) -> None:
    edit(page, site, "# Plan\n\nStart big.\n")
    change(site, "tiny")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("link", name="Keep what is on disk").click()
    expect(page.locator("#note .prose")).to_have_text("Start tiny.")
    edit(page, site)
    expect(page.locator("#draft")).to_be_hidden()


def test_two_tabs_overwrite_nothing(page: Page, context: BrowserContext, site: Site) -> None:
    other = context.new_page()
    for tab in (page, other):
        edit(tab, site)
    for tab, word in ((page, "first"), (other, "second")):
        tab.locator("#text").fill(f"# Plan\n\nThe {word}.\n")
        tab.locator("#text").press("Control+s")
    expect(other.get_by_role("alert")).to_contain_text("changed by both")
    assert "The first." in other.locator("#text").input_value()
    assert "The second." in other.locator("#text").input_value()


def test_a_draft_is_offered_again_and_saved_on_what_it_was_made_from(page: Page, site: Site) -> None:
    edit(page, site, "# Plan\n\nTyped, not saved.\n")
    page.on("dialog", lambda each: each.accept())
    page.goto(f"{site.base}/notes")
    change(site, "tiny")
    edit(page, site)
    expect(page.locator("#draft")).to_contain_text("changed since")
    page.get_by_role("button", name="Put it back").click()
    expect(page.locator("#text")).to_have_value("# Plan\n\nTyped, not saved.\n")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("changed by both")
    page.get_by_role("button", name="Keep mine").click()
    expect(page.locator(".toast")).to_contain_text("Done: saved")
    edit(page, site)
    expect(page.locator("#draft")).to_be_hidden()


def test_a_login_that_ends_takes_nothing_typed(page: Page, context: BrowserContext, site: Site) -> None:
    edit(page, site, "# Plan\n\nTyped.\n")
    context.clear_cookies()
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".toast")).to_contain_text("not logged in")
    expect(page.locator("#text")).to_have_value("# Plan\n\nTyped.\n")
    context.new_page().goto(site.notebook.admin.login_link(int(site.base.rpartition(":")[2])))
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#note .prose")).to_have_text("Typed.")
    assert text_of(site) == "# Plan\n\nTyped.\n"


def test_a_new_note_goes_on_in_the_editor(page: Page, site: Site) -> None:
    page.goto(f"{site.base}/new")
    page.get_by_label("Title (required)").fill("Lamp oil")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="Edit lamp-oil.md")).to_be_visible()
    page.locator("#text").press("Control+End")
    page.keyboard.type("It burns *long*.")
    expect(page.locator("#preview em")).to_have_text("long")
    page.keyboard.press("Control+s")
    expect(page.locator("#note .prose em")).to_have_text("long")


def test_a_note_is_renamed_and_deleted_and_comes_back(page: Page, site: Site) -> None:
    page.goto(f"{site.base}/note/{PLAN}")
    page.get_by_role("link", name="Rename").click()
    page.get_by_label("New path").fill("pages/scheme")
    page.get_by_role("button", name="Show what would change").click()
    page.get_by_role("button", name="Rename the note").click()
    expect(page.locator(".crumbs")).to_contain_text("scheme.md")
    page.get_by_role("link", name="Delete").click()
    page.get_by_role("button", name="Delete the note").click()
    page.locator(".toast").get_by_role("button", name="Undo").click()
    expect(page.get_by_role("heading", name="Plan")).to_be_visible()
    assert text_of(site, "pages/scheme.md") == "# Plan\n\nStart small.\n"


def test_history_compares_and_restores_in_place(page: Page, site: Site) -> None:
    for word in ("tiny", "huge"):
        change(site, word)
    page.goto(f"{site.base}/history/{PLAN}")
    page.evaluate("window.isSame = true")
    page.get_by_role("link", name="What it changed").nth(1).click()
    expect(page.locator(".diff del")).to_have_text("small.")
    page.get_by_role("link", name="Compare with now").last.click()
    expect(page.locator(".diff ins")).to_have_text("huge.")
    page.get_by_role("button", name="Restore").last.click()
    expect(page.get_by_role("listitem").filter(has_text="undo")).to_have_count(1)
    assert "small" in text_of(site)
    page.locator(".toast").get_by_role("button", name="Undo").click()
    expect(page.get_by_role("listitem").filter(has_text="undo")).to_have_count(2)
    assert "huge" in text_of(site)
    assert page.evaluate("window.isSame") is True


def test_activity_shows_a_change_as_it_happens_and_takes_it_back(page: Page, site: Site) -> None:
    with page.expect_response("**/live"):
        page.goto(f"{site.base}/activity?agent=scribe")
    change(site, "tiny")
    page.get_by_role("button", name="What changed").click()
    expect(page.locator(".diff")).to_contain_text("small.tiny.")
    page.get_by_role("button", name="Undo: pages/plan.md").click()
    expect(page.locator(".toast")).to_contain_text("went back")
    expect(page.get_by_role("link", name="History", exact=True)).to_be_visible()
    assert "small" in text_of(site)


def test_the_picture_of_links_leads_on_and_grows(page: Page, site: Site) -> None:
    (site.notebook.root / "pages/one.md").write_text("# One\n\n[[plan]]\n")
    site.notebook.sync()
    page.goto(f"{site.base}/graph/{PLAN}")
    picture = page.locator("svg")
    before = picture.get_attribute("viewBox")
    page.get_by_role("button", name="Larger").click()
    assert picture.get_attribute("viewBox") != before
    page.get_by_role("link", name="Two links").click()
    expect(page).to_have_url(f"{site.base}/graph/{PLAN}?hops=2")
    page.locator("svg a", has_text="One").click()
    expect(page.get_by_role("heading", name="Links of One")).to_be_visible()


def test_writing_works_without_javascript(chromium: Browser, site: Site) -> None:
    with logged_in(chromium, site, java_script_enabled=False) as page:
        page.goto(f"{site.base}/edit/{PLAN}")
        page.locator("#text").fill("# Plan\n\nStart *big*.\n")
        page.get_by_role("button", name="Preview").click()
        expect(page.locator("#preview em")).to_have_text("big")
        change(site, "tiny")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("alert")).to_contain_text("changed by both")
        page.locator("#text").fill("# Plan\n\nBoth.\n")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("status").filter(has_text="Done: saved")).to_be_visible()
        assert text_of(site) == "# Plan\n\nBoth.\n"
        page.get_by_role("link", name="Edit", exact=True).click()
        page.locator("#text").fill("# Plan\n\nLater.\n")
        page.context.clear_cookies()
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("alert")).to_contain_text("what you wrote is still in the page before")
        page.context.new_page().goto(site.notebook.admin.login_link(int(site.base.rpartition(":")[2])))
        page.go_back()
        expect(page.locator("#text")).to_have_value("# Plan\n\nLater.\n")
        page.get_by_role("button", name="Save").click()
        expect(page.locator("#note .prose")).to_have_text("Later.")
        page.get_by_role("link", name="History").click()
        page.get_by_role("button", name="Restore").last.click()
        expect(page.get_by_role("status").filter(has_text="Done:")).to_be_visible()


@pytest.mark.parametrize("name", ["pages/hostile.md", "pages/deep.md"])
def test_hostile_notes_run_nothing_in_any_page(page: Page, site: Site, name: str) -> None:
    faults = faults_of(page, site)
    content = f"{text_of(site, name)}<img src=x onerror=alert(1)>\n"
    site.notebook.notes.edit(name, "write", content=content)
    for path in (f"/edit/{name}", f"/history/{name}", f"/graph/{name}", f"/delete/{name}", "/notes?query=alert"):
        page.goto(f"{site.base}{path}", wait_until="networkidle" if "edit" not in path else "load")
    page.goto(f"{site.base}/edit/{name}")
    expect(page.locator("#preview article")).to_be_visible()
    assert faults == []


def test_pages_of_notes_have_no_accessibility_findings_and_fit(chromium: Browser, site: Site) -> None:
    (site.notebook.root / "pages/one.md").write_text(f"# One\n\n[[plan]] {'long' * 60}\n\n## Two\n\n## Three\n")
    site.notebook.sync()
    for word in ("tiny", "huge"):
        change(site, word)
    event = site.notebook.core.events.read()[-1]["id"]
    of_plan = [f"/{page}/{PLAN}" for page in ("note", "history", "graph", "rename", "delete")]
    others = ["/notes?folder=pages&query=start", "/notes", "/note/pages/one.md", "/edit/pages/one.md"]
    assert findings(chromium, site, [*of_plan, *others, f"/activity?open={event}", f"/graph/{PLAN}?hops=2"]) == []
