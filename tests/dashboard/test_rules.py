"""Rules, orders and reminders, entry by entry: what a page tells of each, and what its forms make of the file."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from html import unescape
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notebook_sync.errors import EditFailed, UsageError
from notebook_sync.surfaces.dashboard.runtime.rules_view import (
    MOST_ROWS,
    days_left,
    order_groups,
    reminder_groups,
    rule_groups,
)
from notebook_sync.surfaces.dashboard.runtime.runtime_entries import (
    sections_of,
    with_item,
    with_pin,
    with_until,
)
from notebook_sync.surfaces.dashboard.runtime.runtime_lines import edits_for, order_line, reminder_line, rule_line
from tests.dashboard.browsing import Browsing, text_of

RULES = "runtime/external-communications.md"
ORDERS = "runtime/standing-orders.md"
REMINDERS = "runtime/reminders.md"
TODAY = date(2031, 5, 6)
SAID = """\
## Permanent Rules

- **Odile Marchetti** (odile@ferry.example): always respond
- **Everyone** (*): observe only

## Temporary Instructions

- **Ines** (ines@harbour.example): draft only [until 2020-02-02]
- **Glazier** answer when he writes

## Channel-Specific

### deck-crew

- **Ines** (ines@harbour.example): always respond
"""
MARIGOLD = {"name": "Marigold", "identity": "+00 555 0142", "action": "draft only", "section": "Permanent Rules"}


@pytest.fixture
def rules(root: Path) -> Path:
    """The rules above, in their file."""
    path = root / RULES
    path.write_text(SAID)
    return path


def fields_of(page: str, action: str) -> dict[str, str]:
    """What the first form of a page that leads to `action` would send."""
    form = re.search(rf'<form method="post" action="{action}"[^>]*>(.*?)</form>', page, re.DOTALL)
    assert form, action
    found = re.findall(r'<input[^>]*name="(\w+)"[^>]*value="([^"]*)"', form[1])
    found += re.findall(r'<textarea[^>]*name="(\w+)"[^>]*>\n?(.*?)</textarea>', form[1], re.DOTALL)
    return {name: unescape(value) for name, value in found}


def entry_page(browser: Browsing, key: str, line: int) -> str:
    answer = browser.get(f"/rules/entry?file={key}&line={line}")
    assert answer.status_code == 200
    return answer.text


# What the pages tell.


def test_each_rule_is_told_as_it_stands(rules: Path, browser: Browsing) -> None:
    said = text_of(browser.get("/rules").text)
    assert "Odile Marchetti odile@ferry.example always respond" in said
    assert "ended 2020-02-02" in said
    assert "not read as a rule" in said
    assert "Channel-Specific: deck-crew" in said


def test_who_a_rule_holds_for_is_told_with_the_reason(rules: Path, browser: Browsing) -> None:
    said = text_of(browser.get("/rules?identity=odile@ferry.example").text)
    assert "holds always respond" in said
    assert "Line 3 of" in said
    assert "holds observe only" in text_of(browser.get("/rules?identity=stranger@quay.example").text)
    assert "holds always respond" in text_of(browser.get("/rules?identity=ines@harbour.example&channel=deck-crew").text)


def test_a_name_that_is_no_identity_leads_to_the_identities_that_may_be_meant(rules: Path, browser: Browsing) -> None:
    page = browser.get("/rules?identity=odile&channel=deck-crew").text
    assert 'href="/rules?identity=odile%40ferry.example&amp;channel=deck-crew"' in page
    assert "Ines: ines@harbour.example" not in text_of(page)
    assert "Do you mean" not in text_of(browser.get("/rules?identity=odile@ferry.example").text)


def test_a_notebook_without_rules_says_what_to_do_first(root: Path, browser: Browsing) -> None:
    for name in (RULES, ORDERS, REMINDERS):
        (root / name).unlink()
    for address in ("/rules", "/rules/orders", "/reminders"):
        page = browser.get(address)
        assert page.status_code == 200
        assert "Next: add" in text_of(page.text)


def test_an_entry_that_the_cap_takes_is_marked(root: Path, browser: Browsing) -> None:
    lines = "".join(
        f"- On crossing {n} tell the crew of the Marigold what the harbour office said\n" for n in range(180)
    )
    (root / ORDERS).write_text(f"## Boundaries\n<!-- pin -->\n\n- Promise no berth\n\n## Ferry\n\n{lines}")
    page = browser.get("/rules/orders").text
    assert "tokens of it do not get through" in text_of(page)
    assert page.count(">does not get through<") > 20
    kept = re.search(r"Promise no berth.*?</li>", page, re.DOTALL)
    assert kept is not None
    assert "does not get through" not in kept[0]
    assert ">Unpin<" in page


def test_reminders_stand_in_the_order_in_which_they_press(root: Path, browser: Browsing) -> None:
    (root / REMINDERS).write_text(
        "## Today\n\n- [ ] Oil the tower clock\n- [x] Count the berths\n- no box\n\n"
        "## This Week\n\n- [ ] Return the sextant [due: 2020-01-01 17:30]\n"
    )
    page = text_of(browser.get("/reminders").text)
    order = ["Overdue 1", "Return the sextant", "Due today 1", "Oil the tower clock", "Done 1", "Count the berths"]
    places = [page.index(each) for each in order]
    assert places == sorted(places)
    assert "due 2020-01-01 17:30" in page
    assert "Has no box to tick" in page


def test_an_order_is_told_with_what_stands_below_it(root: Path, browser: Browsing) -> None:
    (root / ORDERS).write_text(
        "---\nprovenance: external\n---\n\n## Fog\n\nSlow.\n\n- Ring\n  - the bell\n- Wait [until 2020-01-01]\n"
    )
    page = text_of(browser.get("/rules/orders").text)
    assert "Ring - the bell" in page
    assert "Slow." in page
    assert "ended 2020-01-01" in page
    assert "from outside" in page


# What the forms do.


def test_a_rule_is_added_shown_and_taken_back(rules: Path, browser: Browsing) -> None:
    day = (datetime.now(UTC).date() + timedelta(3)).isoformat()
    answer = browser.post("/rules/add", {**MARIGOLD, "until": day})
    page = browser.follow(answer).text
    assert rules.read_text() == SAID.replace(
        "observe only\n", f"observe only\n- **Marigold** (+00 555 0142): draft only [until {day}]\n", 1
    )
    assert f"Rule for Marigold added to Permanent Rules, until {day}." in page
    assert "3 days left" in page
    undone = browser.follow(browser.post("/rules/undo", fields_of(page, "/rules/undo")))
    assert rules.read_text() == SAID
    assert "The last change is taken back." in undone.text


def test_a_change_that_somebody_made_since_is_not_taken_back(rules: Path, browser: Browsing) -> None:
    page = browser.follow(browser.post("/rules/add", MARIGOLD)).text
    rules.write_text(rules.read_text() + "\nA note of Odile's.\n")
    assert browser.post("/rules/undo", fields_of(page, "/rules/undo")).status_code == 409
    assert "A note of Odile's." in rules.read_text()


MISTAKES: tuple[tuple[dict[str, str], str], ...] = (
    ({"name": " "}, "a rule needs a name"),
    ({"identity": "(odd"}, "would not be read as this rule"),
    ({"name": "a **b**"}, "would not be read as this rule"),
    ({"action": "x [until 2031-01-01]"}, "would not be read as this rule"),
    ({"until": "soon"}, "is no day"),
    ({"until": "2020-01-01"}, "is past"),
    ({"section": "Anywhere"}, "there is no section"),
    ({"section": "Channel-Specific"}, "for which channel"),
    ({"action": "draft \x07"}, "control character"),
)


def test_a_rule_that_would_not_be_read_as_one_is_shown_again(rules: Path, browser: Browsing) -> None:
    for mistake, said in MISTAKES:
        answer = browser.post("/rules/add", {**MARIGOLD, **mistake})
        assert (answer.status_code, said in text_of(answer.text).lower()) == (422, True), mistake
        assert 'role="alert"' in answer.text
        assert 'value="Marigold"' in answer.text or "name" in mistake
    assert rules.read_text() == SAID


def test_a_channel_gets_its_heading_with_its_first_rule(rules: Path, browser: Browsing) -> None:
    for channel in ("galley", "deck-crew"):
        form = {**MARIGOLD, "section": "Channel-Specific", "channel": channel}
        assert browser.post("/rules/add", form).status_code == 303
    groups, _ = rule_groups(rules.read_text(), TODAY)
    told = {group.section.title: [row.rule.name for row in group.rows if row.rule] for group in groups}
    assert told["galley"] == ["Marigold"]
    assert told["deck-crew"] == ["Ines", "Marigold"]


def test_a_file_that_is_not_there_is_made_with_its_first_entry(root: Path, browser: Browsing) -> None:
    (root / REMINDERS).unlink()
    form = {"text": "Wind the clock", "section": "Recurring", "every": "Thursday at 09:00"}
    page = browser.follow(browser.post("/reminders/add", form))
    assert "every Thursday at 09:00" in text_of(page.text)
    assert (root / REMINDERS).read_text().startswith("<!--")


def test_an_entry_that_does_not_fit_is_saved_when_the_owner_insists(root: Path, browser: Browsing) -> None:
    (root / ORDERS).write_text("## Preferences\n\n- Tea\n")
    order = {"section": "Preferences", "text": "\n".join(["fog and tide " * 60] * 16)}
    refused = browser.post("/rules/orders/add", order)
    assert refused.status_code == 422
    assert "fog and tide" in fields_of(refused.text, "/rules/orders/add")["text"]
    assert 'name="allow_over_cap"' in refused.text
    assert browser.post("/rules/orders/add", {**order, "allow_over_cap": "on"}).status_code == 303
    assert "tokens of it do not get through" in text_of(browser.get("/rules/orders").text)


def test_an_entry_that_grows_too_large_is_saved_when_the_owner_insists(root: Path, browser: Browsing) -> None:
    (root / ORDERS).write_text("## Preferences\n\n- Tea\n")
    form = {**fields_of(entry_page(browser, "orders", 3), "/rules/entry"), "raw": "- Tea" + " and fog" * 2500}
    refused = browser.post("/rules/entry", form)
    assert refused.status_code == 422
    assert fields_of(refused.text, "/rules/entry")["raw"] == form["raw"]
    assert 'name="allow_over_cap"' in refused.text
    assert browser.post("/rules/entry", {**form, "allow_over_cap": "on"}).status_code == 303


def test_a_reminder_is_ticked_and_no_more(root: Path, browser: Browsing) -> None:
    path = root / REMINDERS
    path.write_text("## Today\n\n- [ ] Oil the clock\n- [ ] Oil\n")
    page = browser.get("/reminders").text
    done = browser.follow(browser.post("/rules/entry/done", fields_of(page, "/rules/entry/done")))
    assert "Reminder “Oil the clock” is done." in text_of(done.text)
    assert path.read_text() == "## Today\n\n- [x] Oil the clock\n- [ ] Oil\n"
    again = {"file": "reminders", "line": "3", "was": "- [x] Oil the clock"}
    assert "is not done any more." in browser.follow(browser.post("/rules/entry/done", again)).text
    assert path.read_text() == "## Today\n\n- [ ] Oil the clock\n- [ ] Oil\n"


def test_an_entry_is_reworded_dated_moved_and_removed(rules: Path, browser: Browsing) -> None:
    page = entry_page(browser, "rules", 3)
    assert "<h1>Rule for Odile Marchetti</h1>" in page
    form = fields_of(page, "/rules/entry")
    assert form["raw"] == "- **Odile Marchetti** (odile@ferry.example): always respond"
    browser.follow(browser.post("/rules/entry", {**form, "raw": form["raw"] + ", in the hour"}))
    form = fields_of(entry_page(browser, "rules", 3), "/rules/entry")
    assert form["action"] == "always respond, in the hour"
    form |= {"until": "2999-01-31", "name": "Odile", "to": "temporary-instructions"}
    said = text_of(browser.follow(browser.post("/rules/entry", form)).text)
    assert "Rule for Odile changed: it stands in Temporary Instructions, until 2999-01-31." in said
    line = "- **Odile** (odile@ferry.example): always respond, in the hour [until 2999-01-31]\n"
    places = [rules.read_text().index(each) for each in ("## Temporary", line, "deck-crew")]
    assert places == sorted(places)
    place = rules.read_text().splitlines().index(line.rstrip("\n")) + 1
    form = fields_of(entry_page(browser, "rules", place), "/rules/entry")
    unsaved = browser.post("/rules/entry/remove", {**form, "name": "Ottilie"})
    assert (unsaved.status_code, fields_of(unsaved.text, "/rules/entry")["name"]) == (422, "Ottilie")
    assert "Rule removed." in browser.follow(browser.post("/rules/entry/remove", form)).text
    assert "Odile" not in rules.read_text()


def test_a_line_that_would_be_no_rule_any_more_is_saved_when_the_owner_insists(rules: Path, browser: Browsing) -> None:
    form = fields_of(entry_page(browser, "rules", 3), "/rules/entry")
    typed = {**form, "raw": "- Odile gets an answer"}
    refused = browser.post("/rules/entry", typed)
    assert (refused.status_code, rules.read_text()) == (422, SAID)
    assert "would not be read as a rule" in text_of(refused.text)
    assert fields_of(refused.text, "/rules/entry")["raw"] == typed["raw"]
    assert 'name="unread"' in refused.text
    assert browser.post("/rules/entry", {**typed, "unread": "on"}).status_code == 303
    assert "- Odile gets an answer\n" in rules.read_text()


def test_a_rule_is_not_moved_to_where_none_is_read(rules: Path, browser: Browsing) -> None:
    rules.write_text(SAID + "\n## Notes\n\n- fog\n")
    form = {**fields_of(entry_page(browser, "rules", 3), "/rules/entry"), "to": "notes"}
    refused = browser.post("/rules/entry", form)
    assert (refused.status_code, "no rule is read in that section" in text_of(refused.text).lower()) == (422, True)
    assert browser.post("/rules/entry", {**form, "unread": "on"}).status_code == 303
    assert rules.read_text().index("- fog") < rules.read_text().index("Odile Marchetti")


def test_a_reminder_is_changed_by_its_fields_and_keeps_what_stands_below_it(root: Path, browser: Browsing) -> None:
    path = root / REMINDERS
    path.write_text("## Today\n\n* [x] Oil the clock [due: 2031-05-06]\n  - with whale oil\n\n## Recurring\n")
    form = fields_of(entry_page(browser, "reminders", 3), "/rules/entry")
    assert (form["text"], form["day"], form["clock"]) == ("Oil the clock", "2031-05-06", "")
    no_box = browser.post("/rules/entry", {**form, "raw": "* Oil the clock"})
    assert (no_box.status_code, 'name="unread"' in no_box.text) == (422, True)
    both = browser.post("/rules/entry", {**form, "raw": "* [ ] Oil", "text": "Wind it"})
    assert (both.status_code, fields_of(both.text, "/rules/entry")["text"]) == (422, "Wind it")
    assert browser.post("/rules/entry", {**form, "to": "recurring"}).status_code == 422
    saved = browser.post("/rules/entry", {**form, "text": "Oil the tower clock", "clock": "09:00"})
    said = "Reminder “Oil the tower clock” changed: it stands in Today, due 2031-05-06 09:00."
    assert said in text_of(browser.follow(saved).text)
    changed = "* [x] Oil the tower clock [due: 2031-05-06 09:00]\n  - with whale oil\n"
    assert path.read_text() == f"## Today\n\n{changed}\n## Recurring\n"


def test_an_order_is_changed_by_its_fields(root: Path, browser: Browsing) -> None:
    (root / ORDERS).write_text("## Fog\n\n- Ring\n  - the bell\n")
    form = fields_of(entry_page(browser, "orders", 3), "/rules/entry")
    assert form["text"] == "Ring\n- the bell"
    form |= {"text": "Ring loudly\n- the bell", "until": "2999-01-31"}
    page = text_of(browser.follow(browser.post("/rules/entry", form)).text)
    assert "Order “Ring loudly” changed: it stands in Fog, until 2999-01-31." in page
    assert (root / ORDERS).read_text() == "## Fog\n\n- Ring loudly [until 2999-01-31]\n  - the bell\n"


def test_what_was_typed_into_fields_stays_when_the_line_changed_meanwhile(rules: Path, browser: Browsing) -> None:
    form = fields_of(entry_page(browser, "rules", 3), "/rules/entry")
    rules.write_text(SAID.replace("always respond\n", "always respond, by noon\n", 1))
    answer = browser.post("/rules/entry", {**form, "name": "Odile"})
    again = fields_of(answer.text, "/rules/entry")
    assert (answer.status_code, again["name"], again["action"]) == (409, "Odile", "always respond, by noon")
    rules.write_text("## Permanent Rules\n")
    gone = browser.post("/rules/entry", {**again, "name": "Ottilie"})
    assert "Ottilie" in fields_of(gone.text, "/rules/entry/add")["raw"]


def test_a_change_of_a_line_that_changed_meanwhile_loses_nothing(rules: Path, browser: Browsing) -> None:
    form = fields_of(entry_page(browser, "rules", 3), "/rules/entry")
    mine = "- **Odile Marchetti** (odile@ferry.example): draft only"
    theirs = SAID.replace("always respond\n", "always respond, by noon\n", 1)
    rules.write_text(theirs)
    answer = browser.post("/rules/entry", {**form, "raw": mine})
    assert answer.status_code == 409
    assert "was changed since it was read" in text_of(answer.text)
    assert "always respond, by noon" in text_of(answer.text)
    assert rules.read_text() == theirs
    again = fields_of(answer.text, "/rules/entry")
    assert again["raw"] == mine
    assert browser.post("/rules/entry", again).status_code == 303
    assert mine in rules.read_text()


def test_a_change_elsewhere_is_no_conflict(rules: Path, browser: Browsing) -> None:
    form = fields_of(entry_page(browser, "rules", 3), "/rules/entry")
    rules.write_text("A line above.\n\n" + SAID)
    assert browser.post("/rules/entry", {**form, "raw": form["raw"] + ", soon"}).status_code == 303
    assert rules.read_text() == "A line above.\n\n" + SAID.replace("always respond\n", "always respond, soon\n", 1)


def test_what_was_typed_for_an_entry_that_is_gone_can_be_added_again(rules: Path, browser: Browsing) -> None:
    form = fields_of(entry_page(browser, "rules", 15), "/rules/entry")
    rules.write_text("## Permanent Rules\n")
    answer = browser.post("/rules/entry", {**form, "raw": "- **Ines** (ines@harbour.example): block"})
    assert (answer.status_code, "the entry is gone" in text_of(answer.text)) == (409, True)
    again = {**fields_of(answer.text, "/rules/entry/add"), "anchor": "permanent-rules"}
    refused = browser.post("/rules/entry/add", {**again, "raw": "- Ines is away"})
    assert (refused.status_code, fields_of(refused.text, "/rules/entry/add")["raw"]) == (422, "- Ines is away")
    assert browser.post("/rules/entry/add", again).status_code == 303
    assert "block" in rules.read_text()


def test_what_is_not_one_entry_is_shown_again(rules: Path, browser: Browsing) -> None:
    form = fields_of(entry_page(browser, "rules", 3), "/rules/entry")
    for raw in ("", "no mark", "- one\n- two", "- x\n\n## Heading", "- x\n<!-- open"):
        answer = browser.post("/rules/entry", {**form, "raw": raw})
        assert (answer.status_code, fields_of(answer.text, "/rules/entry")["raw"]) == (422, raw)
    assert rules.read_text() == SAID


def test_a_section_is_pinned_and_no_more(rules: Path, browser: Browsing) -> None:
    form = {"file": "rules", "anchor": "permanent-rules"}
    assert "kept whole" in browser.follow(browser.post("/rules/pin", {**form, "pin": "on"})).text
    assert rules.read_text() == SAID.replace("## Permanent Rules\n", "## Permanent Rules\n<!-- pin -->\n")
    browser.follow(browser.post("/rules/pin", {**form, "pin": "off"}))
    assert rules.read_text() == SAID


def test_a_form_that_no_page_sent_is_refused_with_the_next_step(rules: Path, browser: Browsing) -> None:
    forms: tuple[dict[str, str], ...] = (
        {},
        {"file": "../x"},
        {"file": "rules", "line": "٣", "was": "\x00"},
        {"file": "rules", "line": "9" * 40},
    )
    for path in ("entry", "entry/until", "entry/remove", "entry/done", "entry/move", "pin", "undo"):
        for form in forms:
            answer = browser.post(f"/rules/{path}", form)
            assert answer.status_code in {404, 409, 422}, (path, form)
            assert 'role="alert"' in answer.text
    assert rules.read_text() == SAID


def test_an_entry_is_text_and_never_markup(rules: Path, browser: Browsing) -> None:
    rules.write_text('## Permanent Rules\n\n- **<b>x</b>** (a"onx=1@y): <script>alert(1)</script>\n')
    for address in ("/rules", "/rules/entry?file=rules&line=3", "/rules?identity=%3Cscript%3Ealert(1)"):
        page = browser.get(address).text
        assert "<script>alert" not in page
        assert "<b>x" not in page


def test_a_file_that_is_not_utf8_is_not_written(rules: Path, browser: Browsing) -> None:
    rules.write_bytes(b"## Permanent Rules\n\n- caf\xe9\n- tea\n")
    form = fields_of(entry_page(browser, "rules", 4), "/rules/entry")
    answer = browser.post("/rules/entry", {**form, "raw": "- milk", "unread": "on"})
    assert (answer.status_code, "not UTF-8" in text_of(answer.text)) == (422, True)
    assert rules.read_bytes() == b"## Permanent Rules\n\n- caf\xe9\n- tea\n"


# What is pure.

words = st.text("abc [](*)#\n-", min_size=1, max_size=20)


@settings(max_examples=30)
@given(st.sampled_from(["\n", "\r\n", "\r"]), st.booleans(), st.integers(0, 2), words)
def test_only_the_lines_of_an_entry_change(eol: str, ends: bool, which: int, said: str) -> None:
    text = "\ufeff---\na: 1\n---\n# T\n\n- one\n- two\n  more\n\npara\n\n- three".replace("\n", eol) + (
        eol if ends else ""
    )
    items = [item for section in sections_of(text) for item in section.items]
    item = items[which]
    try:
        changed = with_item("x.md", text, item, f"- {said}")
    except EditFailed:
        return
    before, after = text.split(item.raw.replace("\n", eol))
    assert changed.startswith(before)
    assert changed.endswith(after)


def test_an_entry_keeps_the_line_ends_of_its_file() -> None:
    text = "## A\r\n\r\n- one\r\n- two"
    item = sections_of(text)[1].items[1]
    assert with_item("x.md", text, item, "- two\n  more") == "## A\r\n\r\n- one\r\n- two\r\n  more"
    pinned = with_pin("x.md", text, "a", is_pinned=True)
    assert pinned == "## A\r\n<!-- pin -->\r\n\r\n- one\r\n- two"
    assert with_pin("x.md", pinned, "a", is_pinned=False) == text


@pytest.mark.parametrize(
    ("raw", "day", "wanted"),
    [
        ("- a: b", date(2031, 5, 9), "- a: b [until 2031-05-09]"),
        ("- a: b [until 2020-01-01]", date(2031, 5, 9), "- a: b [until 2031-05-09]"),
        ("- a [Until: soon] b", None, "- a b"),
        ("- a\n  b [until 2020-01-01]\n\n  c [until 2020-01-01]", None, "- a\n  b\n\n  c [until 2020-01-01]"),
    ],
)
def test_a_last_day_is_set_and_taken_away(raw: str, day: date | None, wanted: str) -> None:
    assert with_until(raw, day) == wanted


def test_a_reminder_is_written_as_its_section_reads_it() -> None:
    def line(**form: str) -> str:
        return reminder_line({"text": "Wind the clock", **form}, TODAY).text

    assert line(section="Today") == "- [ ] Wind the clock"
    assert line(section="This Week", day="2031-05-09", clock="17:30") == "- [ ] Wind the clock [due: 2031-05-09 17:30]"
    assert line(section="Recurring", every="Thursday") == "- Every Thursday: Wind the clock"
    assert line(section="Waiting For", day="2031-05-09") == "- Wind the clock [expected: 2031-05-09]"


@pytest.mark.parametrize(
    "form",
    [
        {"section": "Recurring"},
        {"section": "Recurring", "every": "now and then"},
        {"section": "Today", "day": "2031-02-30"},
        {"section": "Today", "clock": "09:00"},
        {"section": "Today", "text": "x [due: 2031-01-01]"},
        {"section": "Waiting For", "text": "[x] y"},
        {"section": "Tomorrow"},
        {"section": "Today", "text": "\n"},
        {"section": "Today", "every": "Thursday"},
        {"section": "Recurring", "every": "Thursday", "day": "2031-05-09"},
    ],
)
def test_a_reminder_that_would_not_be_read_back_is_refused(form: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        reminder_line({"text": "Wind the clock", **form}, TODAY)


def test_an_order_may_have_several_lines_and_a_last_day() -> None:
    line = order_line({"text": "Ask first.\nThen go.", "section": "Boundaries", "until": "2031-05-09"}, TODAY)
    assert line.text == "- Ask first. [until 2031-05-09]\n  Then go."
    (edit,) = edits_for(line, "## Boundaries\n")
    assert (edit.action, edit.section) == ("append_to_section", "boundaries")
    assert [edit.action for edit in edits_for(line, "")] == ["add_section", "append_to_section"]


def test_an_entry_goes_to_the_section_that_fits_where_none_is_chosen() -> None:
    rule = {**MARIGOLD, "section": ""}
    filled: tuple[dict[str, str], ...] = ({}, {"until": "2031-05-09"}, {"channel": "galley"})
    told = [rule_line({**rule, **more}, TODAY).section for more in filled]
    assert told == ["Permanent Rules", "Temporary Instructions", "Channel-Specific"]
    days: tuple[dict[str, str], ...] = ({"day": "2031-05-06"}, {"day": "2032-01-01"}, {}, {"every": "Thursday"})
    told = [reminder_line({"text": "Wind the clock", "section": "", **more}, TODAY).section for more in days]
    assert told == ["Today", "This Week", "This Week", "Recurring"]


def test_a_rule_is_read_back_as_it_was_filled_in() -> None:
    line = rule_line({**MARIGOLD, "until": "2031-05-09"}, TODAY)
    (group,) = (group for group in rule_groups(f"## Permanent Rules\n\n{line.text}\n", TODAY)[0] if group.rows)
    assert group.rows[0].rule is not None
    assert (group.rows[0].rule.name, group.rows[0].until, group.rows[0].standing) == ("Marigold", "2031-05-09", "holds")


def test_days_are_counted_to_the_last_one() -> None:
    days = [days_left((TODAY + timedelta(n)).isoformat(), TODAY) for n in (-1, 0, 1, 14, 15)]
    assert days == ["", "last day", "1 day left", "14 days left", ""]
    assert days_left("never", TODAY) == ""


def test_a_very_long_file_is_shown_to_a_point_and_says_so() -> None:
    many = "## Boundaries\n\n" + "- fog\n" * (MOST_ROWS + 7)
    orders = order_groups(many, TODAY)
    assert (sum(len(group.rows) for group in orders), sum(group.more for group in orders)) == (MOST_ROWS, 7)
    reminders, _ = reminder_groups(
        "## Today\n\n" + "- [ ] fog\n" * (MOST_ROWS + 7),
        datetime(2031, 5, 6, 12, tzinfo=ZoneInfo("UTC")),
        ZoneInfo("UTC"),
    )
    assert sum(group.more for group in reminders) == 7
