"""A person rules: reminders, rules, facts, and whether a line gets through to a model."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from notebook_sync import Notebook
from tests.dashboard.browser.axe import found_in
from tests.dashboard.browser.tab import Tab
from tests.dashboard.ferry_office import FACT, REMINDER


def named(action: str, what: str) -> re.Pattern[str]:
    """A button's name as it is read out: what it does, and to what."""
    return re.compile(rf"^{action}\s?: {re.escape(what)}$")


def said_in(tab: Tab, path: str) -> str:
    return (tab.address.root / path).read_text(encoding="utf-8")


def test_a_reminder_is_done_by_one_button_and_by_another_it_is_not(tab: Tab) -> None:
    before = said_in(tab, "runtime/reminders.md")
    tab.open("/reminders")
    tab.page.get_by_role("button", name=named("Done", REMINDER)).click()
    expect(tab.page.get_by_role("status").get_by_role("button", name="Undo")).to_be_visible()
    assert said_in(tab, "runtime/reminders.md") == before.replace(f"\n- [ ] {REMINDER}", f"\n- [x] {REMINDER}")
    tab.page.get_by_role("status").get_by_role("button", name="Undo").click()
    expect(tab.page.get_by_role("button", name=named("Done", REMINDER))).to_be_visible()
    assert said_in(tab, "runtime/reminders.md") == before


def test_a_rule_that_is_added_holds_and_reaches_the_prompt(tab: Tab) -> None:
    tab.open("/rules")
    tab.page.get_by_text("Add a rule").click()
    form = tab.page.locator("form[action='/rules/add']")
    form.get_by_label("Name").fill("Ines Holt")
    form.get_by_label("e-mail or channel").fill("ines@ferry.example")
    form.get_by_label("What is to be done").fill("draft only")
    form.get_by_role("button", name="Add the rule").dblclick()  # by somebody who does so everywhere
    said = tab.page.get_by_role("status").filter(has_text="Rule for Ines Holt added to Permanent Rules.")
    expect(said).to_be_focused()
    tab.page.keyboard.press("Tab")
    expect(said.get_by_role("button", name="Undo")).to_be_focused()
    rule = "- **Ines Holt** (ines@ferry.example): draft only\n"
    assert said_in(tab, "runtime/external-communications.md").count(rule) == 1
    tab.page.locator("#identity").fill("ines@ferry.example")
    tab.page.get_by_role("button", name="Look").click()
    expect(tab.page.locator("#standing")).to_contain_text("draft only")
    tab.open("/prompt?session=external")
    tab.page.locator("#line").fill("ines@ferry.example")
    tab.page.keyboard.press("Enter")
    expect(tab.page.locator("#found")).to_contain_text("gets through")
    assert tab.page.url.endswith("/prompt?session=external")


def test_a_rule_that_is_changed_shows_what_was_typed_when_it_is_refused(tab: Tab) -> None:
    tab.open("/rules")
    tab.page.get_by_role("link", name="Change Mira Holt").click()
    expect(tab.page.get_by_role("heading", level=1, name="Rule for Mira Holt")).to_be_visible()
    tab.page.get_by_text("The line, as it stands in the file").click()
    tab.page.locator("#raw").fill("- Mira is away")
    tab.page.get_by_role("button", name="Save").click()
    expect(tab.page.get_by_role("alert")).to_be_focused()
    expect(tab.page.locator("#raw")).to_have_value("- Mira is away")
    assert found_in(tab.page) == []
    tab.page.get_by_label("as a line that is no rule").check()
    tab.page.get_by_role("button", name="Save").click()
    expect(tab.page.get_by_role("status").filter(has_text="changed")).to_be_focused()
    assert "- Mira is away\n" in said_in(tab, "runtime/external-communications.md")


def test_a_line_that_expired_is_told_not_to_get_through(tab: Tab) -> None:
    tab.open("/prompt")
    tab.page.locator("#line").fill("tours@ferry.example")
    tab.page.keyboard.press("Enter")
    expect(tab.page.locator("#found")).to_contain_text("does not")
    expect(tab.page.locator("#found")).to_contain_text("Next:")


def test_a_fact_goes_to_the_archive_and_comes_back(tab: Tab) -> None:
    tab.open("/memory")
    tab.page.locator("#facts").get_by_role("button", name=named("Archive", FACT)).click()
    expect(tab.page.locator("#facts").get_by_role("button", name=named("Archive", FACT))).to_have_count(0)
    assert FACT in said_in(tab, "facts/archive.md")
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
