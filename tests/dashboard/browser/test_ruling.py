"""A person rules: reminders, rules, facts, and whether a line gets through to a model."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from notebook_sync import Notebook
from tests.dashboard.browser.tab import Tab
from tests.dashboard.ferry_office import FACT, REMINDER


def named(action: str, what: str) -> re.Pattern[str]:
    """A button's name as it is read out: what it does, and to what."""
    return re.compile(rf"^{action}\s?: {re.escape(what)}$")


def said_in(tab: Tab, path: str) -> str:
    return (tab.address.root / path).read_text(encoding="utf-8")


def test_a_reminder_is_ticked_in_the_editor_that_its_page_leads_to(tab: Tab) -> None:
    before = said_in(tab, "runtime/reminders.md")
    ticked = before.replace(f"\n- [ ] {REMINDER}", f"\n- [x] {REMINDER}")
    tab.open("/reminders")
    done = tab.page.get_by_role("region", name="Done").get_by_text(REMINDER)
    expect(done).to_have_count(0)
    tab.page.get_by_role("link", name="Edit", exact=True).click()
    text = tab.page.get_by_label("Text", exact=True)
    text.fill(text.input_value().replace(f"\n- [ ] {REMINDER}", f"\n- [x] {REMINDER}"))
    tab.page.get_by_role("button", name="Save").click()
    tab.page.wait_for_url("**/notes/runtime/reminders.md*")
    assert said_in(tab, "runtime/reminders.md") == ticked
    tab.open("/reminders")
    expect(done).to_be_visible()


def test_a_rule_that_is_written_in_the_editor_holds_and_reaches_the_prompt(tab: Tab) -> None:
    rule = "- **Ines Holt** (ines@ferry.example): draft only\n"
    tab.open("/rules")
    tab.page.keyboard.press("e")
    tab.page.wait_for_url("**/edit/runtime/external-communications.md")
    text = tab.page.get_by_label("Text", exact=True)
    text.fill(text.input_value().replace("## Permanent Rules\n\n", f"## Permanent Rules\n\n{rule}"))
    tab.page.get_by_role("button", name="Save").click()
    tab.page.wait_for_url("**/notes/runtime/external-communications.md*")
    assert said_in(tab, "runtime/external-communications.md").count(rule) == 1
    tab.open("/rules")
    tab.page.locator("#identity").fill("ines@ferry.example")
    tab.page.get_by_role("button", name="Look").click()
    expect(tab.page.locator("#standing")).to_contain_text("draft only")
    tab.open("/prompt?session=external")
    tab.page.locator("#line").fill("ines@ferry.example")
    tab.page.keyboard.press("Enter")
    expect(tab.page.locator("#found")).to_contain_text("gets through")
    assert tab.page.url.endswith("/prompt?session=external")


def test_a_rule_that_is_not_read_is_named_in_the_preview_before_it_is_saved(tab: Tab) -> None:
    tab.open("/edit/runtime/external-communications.md")
    text = tab.page.get_by_label("Text", exact=True)
    text.fill(text.input_value().replace("## Permanent Rules\n\n", "## Permanent Rules\n\n- Mira is away\n"))
    expect(tab.page.locator("#preview")).to_contain_text("is not a rule")


def test_a_line_that_expired_is_told_not_to_get_through(tab: Tab) -> None:
    tab.open("/prompt")
    tab.page.locator("#line").fill("tours@ferry.example")
    tab.page.keyboard.press("Enter")
    expect(tab.page.locator("#found")).to_contain_text("does not")
    expect(tab.page.locator("#found")).to_contain_text("Next:")


def test_a_fact_goes_to_the_archive_and_comes_back(tab: Tab) -> None:
    tab.open("/memory")
    tab.page.locator("#facts").get_by_role("button", name=named("Archive", FACT)).dblclick()  # sent once
    expect(tab.page.locator("#facts").get_by_role("button", name=named("Archive", FACT))).to_have_count(0)
    assert said_in(tab, "facts/archive.md").count(FACT) == 1
    tab.open("/memory?scope=archive")
    tab.page.locator("#facts").get_by_role("button", name=named("Bring back", FACT)).click()
    expect(tab.page.locator("#facts").get_by_role("button", name=named("Bring back", FACT))).to_have_count(0)
    assert FACT in said_in(tab, "facts/notes.md")
    assert FACT not in said_in(tab, "facts/archive.md")


def test_going_back_to_a_checkpoint_is_asked_first_done_and_undone(tab: Tab) -> None:
    keys = tab.address.root / "pages/office/keys.md"
    before = keys.read_bytes()
    keys.write_bytes(before + b"\nBen lost his.\n")
    with Notebook.open(tab.address.root) as notebook:
        notebook.sync()
    tab.open("/memory/checkpoints")
    tab.page.get_by_role("link", name="to before the winter timetable").click()
    expect(tab.page.get_by_role("heading", level=1, name="Go back to")).to_be_visible()
    tab.page.get_by_role("link", name="With the notes").click()
    tab.page.get_by_role("button", name="Go back, with the notes").click()
    tab.page.wait_for_url("**/memory/checkpoints*")
    assert keys.read_bytes() == before
    tab.page.get_by_role("button", name="Undo: go to what was before").click()
    tab.page.wait_for_load_state()
    assert keys.read_bytes() == before + b"\nBen lost his.\n"
