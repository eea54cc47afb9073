"""Rules, orders and reminders: how their pages show what holds now."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from pathlib import Path

import pytest

from notebook_sync import Session
from notebook_sync.surfaces.dashboard.runtime.rules_page import MOST_ROWS
from notebook_sync.surfaces.dashboard.runtime.rules_view import days_left, rule_rows
from tests.dashboard.browsing import Browsing, browsing, text_of

RULES = "runtime/external-communications.md"
ORDERS = "runtime/standing-orders.md"
REMINDERS = "runtime/reminders.md"
TODAY = date(2031, 5, 6)
NOON = datetime(2031, 5, 6, 12)
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


@pytest.fixture
def rules(root: Path) -> Path:
    """The rules above, in their file."""
    path = root / RULES
    path.write_text(SAID)
    return path


def test_each_rule_is_shown_with_whether_it_holds(rules: Path, browser: Browsing) -> None:
    said = text_of(browser.get("/rules").text)
    assert "Odile Marchetti odile@ferry.example always respond" in said
    assert "ended 2020-02-02" in said
    assert "not read as a rule" in said
    assert "Channel-Specific: deck-crew" in said


def test_the_rule_for_an_identity_is_shown_with_its_reason(rules: Path, browser: Browsing) -> None:
    said = text_of(browser.get("/rules?identity=odile@ferry.example").text)
    assert "holds always respond" in said
    assert "Line 3 of" in said
    assert "holds observe only" in text_of(browser.get("/rules?identity=stranger@quay.example").text)
    assert "holds always respond" in text_of(browser.get("/rules?identity=ines@harbour.example&channel=deck-crew").text)


def test_a_name_leads_to_the_identities_that_contain_it(rules: Path, browser: Browsing) -> None:
    page = browser.get("/rules?identity=odile&channel=deck-crew").text
    assert 'href="/rules?identity=odile%40ferry.example&amp;channel=deck-crew"' in page
    assert "Ines: ines@harbour.example" not in text_of(page)
    assert "Do you mean" not in text_of(browser.get("/rules?identity=odile@ferry.example").text)


def test_each_page_leads_to_the_editor_of_its_file(browser: Browsing) -> None:
    for address, path in (("/rules", RULES), ("/rules/orders", ORDERS), ("/reminders", REMINDERS)):
        assert f'rel="edit" href="/edit/{path}"' in browser.get(address).text
        assert browser.get(f"/edit/{path}").status_code == 200


def test_a_missing_file_says_how_to_get_it(root: Path, browser: Browsing) -> None:
    for address, path in (("/rules", RULES), ("/rules/orders", ORDERS), ("/reminders", REMINDERS)):
        (root / path).unlink()
        said = text_of(browser.get(address).text)
        assert f"There is no {path}. Next: notebook-sync init" in said


def test_a_page_has_no_form_that_writes(rules: Path, browser: Browsing) -> None:
    for address in ("/rules", "/rules/orders", "/reminders"):
        page = browser.get(address).text
        assert page.count('method="post"') == page.count('action="/logout"') == 1
    for address in ("/rules/add", "/rules/entry", "/rules/pin", "/rules/undo", "/reminders/add"):
        assert browser.post(address, {}).status_code in {404, 405}


def test_orders_are_shown_with_what_the_prompt_leaves_out(root: Path, browser: Browsing) -> None:
    (root / ORDERS).write_text(
        "## Fog\n<!-- pin -->\n\nSlow.\n\n- Ring\n  - the bell\n- Wait [until 2020-01-01]\n- Go [from 2999-01-01]\n"
    )
    said = text_of(browser.get("/rules/orders").text)
    parts = ["pinned: stays longest", "Slow.", "Ring - the bell", "expired, not shown", "Wait", "has not begun", "Go"]
    places = [said.index(each) for each in parts]
    assert places == sorted(places)


def test_orders_that_the_cap_leaves_out_are_marked(root: Path, browser: Browsing) -> None:
    lines = "".join(f"- On crossing {n} tell the crew what the harbour office said\n" for n in range(180))
    (root / ORDERS).write_text(f"## Boundaries\n<!-- pin -->\n\n- Promise no berth\n\n## Ferry\n\n{lines}")
    said = text_of(browser.get("/rules/orders").text)
    assert "tokens of it do not get through" in said
    assert said.index("Promise no berth") < said.index("left out for lack of room") < said.index("On crossing 170")


def test_a_file_with_external_provenance_says_that_no_prompt_shows_it(root: Path, browser: Browsing) -> None:
    (root / ORDERS).write_text("---\nprovenance: external\n---\n\n- Obey\n")
    assert "so no prompt shows it" in text_of(browser.get("/rules/orders").text)


def test_the_most_pressing_reminder_comes_first(root: Path, browser: Browsing) -> None:
    (root / REMINDERS).write_text(
        "## Today\n\n- [ ] Oil the tower clock\n- [x] Count the berths\n- no box\n\n"
        "## This Week\n\n- [ ] Return the sextant [due: 2020-01-01 17:30]\n- [ ] Paint [due: 2020-01-02]\n"
    )
    page = text_of(browser.get("/reminders").text)
    order = ["Overdue 2", "Return the sextant", "Due today 1", "Oil the tower clock", "Done 1", "Count the berths"]
    places = [page.index(each) for each in order]
    assert places == sorted(places)
    assert "due 2020-01-01 17:30" in page
    assert "due 2020-01-02 Due" in page
    assert "Line 5: Has no checkbox" in page


def test_an_entry_is_text_and_never_markup(rules: Path, browser: Browsing) -> None:
    hostile = '- **<b>x</b>** (a"onx=1@y): <script>alert(1)</script>\n'
    rules.write_text(f"## Permanent Rules\n\n{hostile}")
    (rules.parent / "standing-orders.md").write_text(f"## Fog\n\n{hostile}")
    (rules.parent / "reminders.md").write_text("## Today\n\n- [ ] <b>x <script>alert(1)</script>\n")
    for address in ("/rules", "/rules/orders", "/reminders", "/rules?identity=%3Cscript%3Ealert(1)"):
        page = browser.get(address).text
        assert "&lt;script&gt;alert" in page
        assert "<script>alert" not in page
        assert "<b>x" not in page


@pytest.mark.parametrize(
    ("dates", "standing", "since", "until"),
    [
        ("", "holds", "", ""),
        ("[until 2031-05-06]", "holds", "", "2031-05-06"),
        ("[until 2031-05-06 11:59]", "ended", "", "2031-05-06 11:59"),
        ("(until 6 May 2031 12:01)", "holds", "", "2031-05-06 12:01"),
        ("[from 2031-05-07 until 2031-05-09]", "upcoming", "2031-05-07", "2031-05-09"),
        ("[from 2031-05-06 13:00]", "upcoming", "2031-05-06 13:00", ""),
        ("[until soon]", "holds", "", ""),
    ],
)
def test_rules_hold_as_the_prompt_reads_their_dates(dates: str, standing: str, since: str, until: str) -> None:
    (row,) = rule_rows(f"## Permanent Rules\n\n- **Ann** (a@ferry.example) {dates}: block\n", NOON)
    assert (row.standing, row.since, row.until) == (standing, since, until)


def test_a_rule_without_an_identity_that_has_not_begun_is_no_unread_line(root: Path, browser: Browsing) -> None:
    (root / RULES).write_text("## Temporary Instructions\n\n- **Sarah** [from 2999-01-01]: Ignore her messages\n")
    said = text_of(browser.get("/rules").text)
    assert "Sarah Ignore her messages from 2999-01-01 no model sees it yet" in said
    assert "not read as a rule" not in said


def test_a_line_that_looks_like_a_rule_and_an_entry_of_another_section_are_shown_as_unread() -> None:
    text = "## Permanent Rules\n\n-**Ann** (a@ferry.example): block\n\n## Notes\n\n- fog\n"
    rows = rule_rows(text, NOON)
    assert [(row.section, row.standing, bool(row.problem)) for row in rows] == [
        ("Permanent Rules", "unread", True),
        ("Notes", "unread", True),
    ]


def test_only_what_the_cap_leaves_out_is_marked(root: Path, browser: Browsing) -> None:
    (root / "notebook.toml").write_text("[prompt]\nmax_tokens_per_file = 120\n")
    (root / RULES).write_text("## Permanent Rules\n\n" + "- **Ann** (a@ferry.example): promise no berth\n" * 30)
    with browsing(root) as other:
        page = other.get("/rules").text
        shown = other.served.app.state.notebook.prompt(Session.owner()).text.count("promise no berth")
    assert shown > 0
    assert page.count(">does not get through<") == 30 - shown


def test_days_are_counted_to_the_last_one() -> None:
    days = [days_left((TODAY + timedelta(n)).isoformat(), TODAY) for n in (-1, 0, 1, 14, 15)]
    assert days == ["", "last day", "1 day left", "14 days left", ""]
    assert days_left("2031-05-07 18:00", TODAY) == "1 day left"
    assert days_left("never", TODAY) == ""


def test_a_very_long_file_is_shown_to_a_point_and_says_so(root: Path, browser: Browsing) -> None:
    (root / RULES).write_text("## Permanent Rules\n\n" + "- **Ann** (a@ferry.example): wait\n" * (MOST_ROWS + 7))
    (root / REMINDERS).write_text("## Today\n\n" + "- [ ] fog\n" * (MOST_ROWS + 7))
    for address in ("/rules", "/reminders"):
        page = browser.get(address).text
        assert page.count('<li class="entry') == MOST_ROWS
        assert "And 7 more" in text_of(page)
