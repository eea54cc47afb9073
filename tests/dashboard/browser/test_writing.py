"""A person writes: with a preview, against somebody who writes at once, and back again. Nothing typed is lost."""

from __future__ import annotations

from playwright.sync_api import Locator, expect

from tests.dashboard.browser.axe import found_in
from tests.dashboard.browser.tab import Tab
from tests.dashboard.ferry_office import PLAN

KEYS = "pages/office/keys.md"


def text_box(tab: Tab) -> Locator:
    return tab.page.get_by_label("Text", exact=True)


def type_into(box: Locator, text: str) -> None:
    box.fill(box.input_value() + text)


def test_what_is_typed_is_shown_as_it_becomes_and_saved_by_the_keyboard(tab: Tab) -> None:
    tab.open("/edit/runtime/standing-orders.md")
    type_into(text_box(tab), "\n## Letters\n\n- Sign as *the office*\n")
    preview = tab.page.locator("#preview")
    expect(preview.get_by_role("heading", name="Letters")).to_be_visible()
    expect(preview.locator("em", has_text="the office")).to_be_visible()
    expect(preview).to_contain_text("of 2,000 tokens")
    text_box(tab).press("Control+s")
    tab.page.wait_for_url("**/notes/runtime/standing-orders.md*")
    expect(tab.page.get_by_role("heading", name="Letters")).to_be_visible()
    saved = (tab.address.root / "runtime/standing-orders.md").read_text(encoding="utf-8")
    assert saved.endswith("\n## Letters\n\n- Sign as *the office*\n")
    assert "<!-- pin -->" in saved
    tab.open("/prompt")
    expect(tab.page.locator("#stable")).to_contain_text("Sign as *the office*")


def test_an_edit_is_seen_in_the_history_and_taken_back(tab: Tab) -> None:
    file = tab.address.root / KEYS
    before = file.read_bytes()
    tab.open(f"/edit/{KEYS}")
    type_into(text_box(tab), "\nBen has none.\n")
    tab.page.get_by_role("button", name="Save").click()
    tab.page.wait_for_url("**/notes/**")
    assert file.read_bytes() != before
    tab.open(f"/history/{KEYS}")
    expect(tab.page.locator("ins", has_text="Ben has none.").first).to_be_visible()
    tab.page.get_by_role("button", name="Undo the last change").click()
    expect(tab.page.get_by_role("status").filter(has_text="ndone").first).to_be_visible()
    assert file.read_bytes() == before


def test_two_edits_at_once_become_one_where_they_fit(tab: Tab) -> None:
    file = tab.address.root / PLAN
    tab.open(f"/edit/{PLAN}")
    box = text_box(tab)
    box.fill(box.input_value().replace("Late, at 17:30", "Late, at 17:45"))
    meanwhile = file.read_text(encoding="utf-8").replace("Who has the keys of pier two?", "Who paints pier two?")
    file.write_text(meanwhile, encoding="utf-8")
    tab.page.get_by_role("button", name="Save").click()
    expect(tab.page.get_by_role("heading", level=1, name="was changed while you wrote")).to_be_visible()
    assert file.read_text(encoding="utf-8") == meanwhile
    assert found_in(tab.page) == []
    both = tab.page.get_by_label("Both together")
    assert all(said in both.input_value() for said in ("Late, at 17:45", "Who paints pier two?"))
    tab.page.get_by_role("button", name="Save this").click()
    tab.page.wait_for_url("**/notes/**")
    assert file.read_text(encoding="utf-8") == meanwhile.replace("Late, at 17:30", "Late, at 17:45")


def test_two_edits_of_one_line_are_chosen_between_and_both_are_there(tab: Tab) -> None:
    file = tab.address.root / KEYS
    tab.open(f"/edit/{KEYS}")
    box = text_box(tab)
    box.fill(box.input_value().replace("Odile has two", "Odile has three"))
    file.write_text(file.read_text(encoding="utf-8").replace("Odile has two", "Odile has four"), encoding="utf-8")
    tab.page.get_by_role("button", name="Save").click()
    both = tab.page.get_by_label("Both together")
    assert all(said in both.input_value() for said in ("Odile has three", "Odile has four"))
    tab.page.get_by_role("button", name="Save this").click()
    expect(tab.page.get_by_role("alert").filter(has_text="lines still mark")).to_be_visible()
    expect(tab.page.get_by_role("heading", name="What changed in the file meanwhile")).to_be_visible()
    assert found_in(tab.page) == []
    assert "four" in file.read_text(encoding="utf-8")
    tab.page.locator("#text").fill("# Keys\n\nOdile has five, Ines has one.\n")
    tab.page.locator("#edit").get_by_role("button", name="Save").click()
    tab.page.wait_for_url("**/notes/**")
    assert "Odile has five" in file.read_text(encoding="utf-8")


def test_a_field_is_changed_in_a_form_and_every_other_byte_stays(tab: Tab) -> None:
    file = tab.address.root / PLAN
    before = file.read_bytes()
    tab.open(f"/edit/{PLAN}")
    tab.page.get_by_label("Status").select_option("complete")
    tab.page.get_by_role("button", name="Save").click()
    tab.page.wait_for_url("**/notes/**")
    assert file.read_bytes() == before.replace(b"status: in_progress", b"status: complete")


def test_a_page_is_made_found_deleted_and_brought_back(tab: Tab) -> None:
    tab.open("/new")
    tab.page.get_by_label("Title").fill("Spring timetable")
    text_box(tab).fill("Five crossings a day from April on.\n")
    tab.page.get_by_role("button", name="Make it").click()
    expect(tab.page.get_by_role("heading", name="Spring timetable").first).to_be_visible()
    (made,) = tab.address.root.glob("pages/*spring*")
    path = made.relative_to(tab.address.root).as_posix()
    tab.page.get_by_label("Search the notes").fill("April")
    tab.page.keyboard.press("Enter")
    tab.page.get_by_role("main").get_by_role("link", name="Spring timetable").first.click()
    tab.page.wait_for_url(f"**/notes/{path}*")
    tab.open(f"/delete/{path}")
    assert made.exists()
    tab.page.get_by_role("button", name="Delete it").click()
    tab.page.wait_for_load_state()
    assert not made.exists()
    tab.open(f"/history/{path}")
    tab.page.get_by_role("button", name="Bring it back").click()
    tab.page.wait_for_load_state()
    assert "Five crossings" in made.read_text(encoding="utf-8")
