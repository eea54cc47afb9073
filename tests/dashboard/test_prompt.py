"""The prompt's page: what each kind of session is given, what of its files does not get through, and why."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notebook_sync import Session
from notebook_sync.surfaces.dashboard.runtime.prompt_view import LONGEST_HIDDEN, shown_of
from prompt.values import Gap, Part
from tests.dashboard.browsing import Browsing, browsing, text_of

ORDERS = "runtime/standing-orders.md"
RULES = "runtime/external-communications.md"
FERRY = "- On crossing {} look at the tide table first and then tell the crew of the Marigold what the harbour said\n"


def code_of(page: str, name: str) -> str:
    """What a block of the page says, to the character."""
    found = re.search(rf'<code id="{name}"[^>]*>(.*?)</code>', page, re.DOTALL)
    assert found, name
    return unescape(re.sub(r"<[^>]*>", "", found[1]))


@pytest.fixture
def rules(root: Path) -> Path:
    """Rules of which one has ended, and one is in a comment."""
    path = root / RULES
    path.write_text(
        "## Permanent Rules\n\n- **Odile** (odile@ferry.example): always respond\n"
        "- **Ines** (ines@harbour.example): draft only [until 2020-02-02]\n"
        "- **Max** (max@ferry.example): never pay [from 2999-01-01]\n<!-- ask the glazier -->\n"
    )
    return path


def test_each_kind_of_session_has_its_prompt_to_the_character(browser: Browsing) -> None:
    for kind in ("owner", "task", "external"):
        page = browser.get(f"/prompt?session={kind}")
        wanted = browser.served.app.state.notebook.prompt(Session.named(kind))
        assert code_of(page.text, "stable") + code_of(page.text, "volatile") == wanted.text
        assert f"{wanted.tokens:,} of 16,000 tokens" in text_of(page.text)


def test_what_the_cap_takes_is_dimmed_in_its_place_with_its_cost(root: Path, browser: Browsing) -> None:
    lines = "".join(FERRY.format(number) for number in range(200))
    (root / ORDERS).write_text(f"## Boundaries\n<!-- pin -->\n\n- Promise no berth\n\n## Ferry\n\n{lines}")
    page = browser.get("/prompt").text
    assert "pinned: stays longest" in page
    told = re.search(r'<span class="hidden cap"><span class="why">([\d,]+) tokens, left out for lack of room', page)
    left = re.search(r">Ferry</a>: ([\d,]+) entries, ([\d,]+) tokens left out", page)
    assert told is not None
    assert left is not None
    one, other = (int(found.replace(",", "")) for found in (told[1], left[2]))
    assert one == pytest.approx(other, abs=5)  # the white space around the entries
    assert f"[… {left[1]} more: notebook_read {ORDERS}#ferry]" in code_of(page, "stable")
    assert "Pinned sections stay longest, then open tasks" in text_of(page)
    assert "parts are left out" in text_of(page)
    assert "<mark>[… " in page


def test_each_section_that_lacks_something_is_listed(root: Path, browser: Browsing) -> None:
    notes = [f"## Week {week}\n\n{''.join(FERRY.format(day) for day in range(50))}\n" for week in (1, 2, 3)]
    (root / ORDERS).write_text(f"{notes[0]}{notes[1]}<!-- ask the glazier -->\n\n{notes[2]}")
    page = browser.get("/prompt").text
    listed = re.findall(r">Week (\d)</a>: (\d+) entries, [\d,]+ tokens left out", page)
    assert [week for week, _ in listed] == ["2", "3"]
    lines = re.findall(r"\[… (\d+) more: notebook_read \S+#week-(\d)\]", code_of(page, "stable"))
    assert listed == [(week, entries) for entries, week in lines]


def test_a_pin_that_pins_nothing_is_not_told_as_one(root: Path, browser: Browsing) -> None:
    (root / ORDERS).write_text("## Boundaries\n\n- Promise no berth\n\n<!-- pin -->\n\n- Name nobody\n")
    page = browser.get("/prompt").text
    assert "pins nothing" in page
    assert "pinned: stays longest" not in page


def test_what_no_model_sees_is_marked_where_it_stands(rules: Path, browser: Browsing) -> None:
    page = browser.get("/prompt").text
    says = code_of(page, "says-1")
    assert "ask the glazier" in says
    assert says.index("expired, not shown") < says.index("Ines") < says.index("comment, not shown")
    assert "1 expired" in text_of(page)
    assert "Line 4 ended on 2020-02-02" in text_of(page)
    assert "Ines" not in code_of(page, "stable")


def test_what_is_asked_for_stands_behind_the_same_stable_part(browser: Browsing) -> None:
    plain = browser.get("/prompt").text
    more = browser.get("/prompt?include=refs&include=facts&task=Write+to+Odile+%3Cb%3E").text
    assert code_of(plain, "stable") == code_of(more, "stable")
    assert re.fullmatch(r"\nToday is \w+day, [\d-]{10}\.\n", code_of(plain, "volatile"))
    assert "Write to Odile <b>" in code_of(more, "volatile")
    assert "Plan" in code_of(more, "volatile")
    assert "<b>" not in more
    assert '<a href="/prompt?session=task&amp;include=refs&amp;include=facts&amp;task=Write' in more


def test_notes_of_no_agent_are_refused_above_what_was_asked_for(browser: Browsing) -> None:
    page = browser.get("/prompt?include=notes&task=Write+to+Odile")
    assert page.status_code == 422
    assert re.search(r'role="alert"[^>]*>Notes are those of one agent\. Next: .* the field “Agent”', page.text)
    assert "--agent" not in page.text
    assert ">Write to Odile</textarea>" in page.text


def test_what_cannot_be_asked_for_has_a_page_that_says_so(browser: Browsing) -> None:
    for query in ("session=guest", "include=secrets", "agent=" + "x" * 65, "agent=%2F", "task=" + "x" * 801):
        page = browser.get(f"/prompt?{query}")
        assert (page.status_code, 'role="alert"' in page.text) == (422, True), query


def test_a_missing_file_and_one_that_cannot_be_read_say_what_to_do(root: Path, browser: Browsing) -> None:
    (root / RULES).write_bytes(b"## Permanent Rules\n\n- caf\xe9\n")
    (root / ORDERS).unlink()
    said = text_of(browser.get("/prompt").text)
    assert "line 3: not UTF-8" in said
    assert f"Next: write {ORDERS} with any editor" in said


def test_a_file_from_outside_is_told_as_that(root: Path, browser: Browsing) -> None:
    (root / ORDERS).write_text("---\nprovenance: external\n---\n\n- Obey <script>alert(1)</script>\n")
    page = browser.get("/prompt").text
    assert "from outside, not shown" in page
    assert "<script>alert" not in page
    assert "Obey" not in code_of(page, "stable")


def test_a_dead_mirror_costs_the_refs_and_nothing_else(root: Path) -> None:
    settings = root / "notebook.toml"
    settings.write_text('[mirror]\nurl = "mongodb://127.0.0.1:1"\ntimeout_seconds = 0.1\n')
    with browsing(root) as browser:
        page = browser.get("/prompt?include=refs&include=facts")
    assert page.status_code == 200
    assert "refs: left out, for" in text_of(page.text)
    assert "Your Notebook" in code_of(page.text, "stable")


def test_a_line_is_told_whether_it_gets_through_and_what_to_do(rules: Path, browser: Browsing) -> None:
    asked = (
        ("always RESPOND", "task", "gets through"),
        ("ask the glazier", "owner", "does not: comment"),
        ("never pay", "task", "does not: upcoming"),
        ("draft only", "external", "does not: expired"),
        ("Start small.", "owner", "does not: not a prompt file"),
    )
    for line, session, said in asked:
        page = text_of(browser.get(f"/prompt/line?session={session}&line={line}").text)
        assert said in page, line
        assert ("Next:" in page) == (said != "gets through")


def test_a_place_is_a_link_to_its_heading(rules: Path, browser: Browsing) -> None:
    page = browser.get("/prompt/line?line=always+respond").text
    (heading,) = re.findall(rf'href="/notes/{RULES}#([^"]*)"', page)
    assert f'id="{heading}"' in browser.get(f"/notes/{RULES}").text


def test_any_line_may_be_asked_about(browser: Browsing) -> None:
    for line in ("", "%20", "<script>x</script>", "%00", "%ED%A0%80", "🦭 seal", "* ? [a-z] {$ne:1}"):
        page = browser.get(f"/prompt/line?line={line}")
        assert page.status_code == 200, line
        assert "<script>x" not in page.text
        assert re.search("stands nowhere|Give some words", text_of(page.text)), line


def test_a_line_of_many_places_is_told_of_a_hundred(root: Path, browser: Browsing) -> None:
    (root / "pages/log.md").write_text("- fog\n" * 150)
    page = browser.get("/prompt/line?line=fog").text
    assert "The first 100 of 150 places" in text_of(page)
    assert page.count("pages/log.md, line") == 100


def part_with(text: str, gaps: tuple[Gap, ...]) -> Part:
    """A file of the prompt from which these were taken."""
    return Part("Orders", ORDERS, "d", 9, 9, 10, text, gaps=gaps)


@settings(max_examples=40)
@given(
    st.text("ab\n", max_size=40), st.lists(st.tuples(st.integers(0, 45), st.integers(0, 9), st.booleans()), max_size=5)
)
def test_every_character_of_a_file_is_in_one_stretch(text: str, drawn: list[tuple[int, int, bool]]) -> None:
    hidden: list[Gap] = []
    cut: list[Gap] = []
    taken = 0
    for start, length, is_cut in sorted(drawn):
        begin = max(start, taken)
        (cut if is_cut else hidden).append(Gap(begin, begin + length, "cap" if is_cut else "expired"))
        taken = begin + length
    shown = shown_of(part_with(text, (*hidden, *cut)), text, len)
    assert "".join(stretch.text for stretch in shown.stretches) == text
    for gap in (*hidden, *cut):
        said = text[gap.start : gap.end]
        assert not said or any(said in stretch.text and stretch.kind == gap.reason for stretch in shown.stretches)


def test_what_hides_a_line_is_told_before_what_cuts_it() -> None:
    gaps = (Gap(2, 4, "comment"), Gap(0, 10**9, "cap"))
    shown = shown_of(part_with("abCDef", gaps), "abCDef", len)
    assert [(one.text, one.kind) for one in shown.stretches] == [("ab", "cap"), ("CD", "comment"), ("ef", "cap")]


def test_a_long_stretch_that_no_model_sees_is_shortened_and_says_so() -> None:
    text = "x" * (LONGEST_HIDDEN + 5)
    (stretch,) = shown_of(part_with(text, (Gap(0, len(text), "expired"),)), text, len).stretches
    assert (len(stretch.text), stretch.more) == (LONGEST_HIDDEN, 5)


def test_one_token_is_one() -> None:
    (stretch,) = shown_of(part_with("a", (Gap(0, 1, "cap"),)), "a", len).stretches
    assert stretch.label == "1 token, left out for lack of room"
