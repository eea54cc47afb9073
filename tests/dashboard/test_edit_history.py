"""What a note said before, taking a change back, and giving notes another path or none."""

from __future__ import annotations

import re
from collections import Counter
from html import unescape
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notebook_sync.surfaces.dashboard.editing.conflict import Merged, marks_in, merged
from notebook_sync.surfaces.dashboard.editing.diff_view import LONGEST_LINE, MOST_LINES, difference_in
from tests.dashboard.browsing import Browsing, text_of
from tests.dashboard.test_editing import PLAN, form_in, opened

DIGEST = re.compile(r'name="digest" value="(\w*)"')


def saved(browser: Browsing, text: str, path: str = PLAN) -> None:
    assert browser.post(f"/edit/{path}", {**opened(browser, path), "text": text}).status_code == 303


def digest_in(browser: Browsing, address: str) -> str:
    (digest,) = DIGEST.findall(browser.get(address).text)
    return str(digest)


def test_the_history_shows_the_words_that_changed_and_undo_takes_them_back(browser: Browsing) -> None:
    before = (browser.root / PLAN).read_text()
    saved(browser, before.replace("Start small", "Start large"))
    page = browser.get(f"/history/{PLAN}")
    assert "<mark>small</mark>" in page.text
    assert "<mark>large</mark>" in page.text
    digest = digest_in(browser, f"/history/{PLAN}")
    answer = browser.post(f"/undo/{PLAN}", {"digest": digest})
    assert answer.headers["Location"] == f"/history/{PLAN}?done=undone"
    assert (browser.root / PLAN).read_text() == before
    assert "Undone" in text_of(browser.follow(answer).text)


def test_an_undo_that_is_sent_twice_is_done_once(browser: Browsing) -> None:
    before = (browser.root / PLAN).read_text()
    saved(browser, "Another.\n")
    digest = digest_in(browser, f"/history/{PLAN}")
    assert browser.post(f"/undo/{PLAN}", {"digest": digest}).status_code == 303
    again = browser.post(f"/undo/{PLAN}", {"digest": digest})
    assert (again.status_code, "Nothing was undone" in text_of(again.text)) == (409, True)
    assert (browser.root / PLAN).read_text() == before


def test_an_undo_without_the_state_it_was_meant_for_does_nothing(browser: Browsing) -> None:
    saved(browser, "Another.\n")
    assert browser.post(f"/undo/{PLAN}").status_code == 409
    assert (browser.root / PLAN).read_text() == "Another.\n"


def test_what_changed_since_an_earlier_version(browser: Browsing) -> None:
    for number in range(3):
        saved(browser, f"Version {number}.\n")
    page = browser.get(f"/history/{PLAN}")
    links = re.findall(r'href="(/history/[^"]*since=[^"]*)"', page.text)
    assert len(links) >= 3
    oldest = text_of(browser.get(unescape(links[-1])).text)
    assert "Changed since version" in oldest
    assert "Start small." in oldest
    assert browser.get(f"/history/{PLAN}?since=nothing").status_code == 404


def test_a_note_without_a_past_says_so(browser: Browsing) -> None:
    said = text_of(browser.get(f"/history/{PLAN}").text)
    assert "no earlier text of it is known" in said
    assert browser.get("/history/pages/nowhere.md").status_code == 404
    answer = browser.post(f"/undo/{PLAN}", {"digest": digest_in(browser, f"/history/{PLAN}")})
    assert (answer.status_code, "no earlier text" in text_of(answer.text)) == (422, True)


def test_a_note_is_deleted_after_asking_and_brought_back(browser: Browsing) -> None:
    before = (browser.root / PLAN).read_bytes()
    asked = browser.get(f"/delete/{PLAN}")
    assert "Start small." in text_of(asked.text)
    assert (browser.root / PLAN).exists()
    answer = browser.post(f"/delete/{PLAN}", {"digest": digest_in(browser, f"/delete/{PLAN}")})
    assert not (browser.root / PLAN).exists()
    gone = browser.follow(answer)
    assert "Bring it back" in text_of(gone.text)
    at_its_address = browser.get(f"/notes/{PLAN}")
    assert at_its_address.status_code == 404
    assert "This note was deleted" in text_of(at_its_address.text)
    assert "notebook-sync list" not in at_its_address.text
    assert f'href="/history/{PLAN}"' in at_its_address.text
    assert digest_in(browser, f"/notes/{PLAN}") == ""
    assert f'action="/undo/{PLAN}"' in at_its_address.text
    back = browser.post(f"/undo/{PLAN}", {"digest": ""})
    assert (browser.root / PLAN).read_bytes() == before
    assert "Brought back" in text_of(browser.follow(back).text)


def test_a_deleted_note_is_not_taken_for_another_of_its_name(browser: Browsing) -> None:
    (browser.root / "pages/office").mkdir()
    saved(browser, "Another.\n")
    (browser.root / "pages/office/plan.md").write_text("The office's plan.\n")
    browser.post(f"/delete/{PLAN}", {"digest": digest_in(browser, f"/delete/{PLAN}")})
    assert "This note was deleted" in text_of(browser.get(f"/notes/{PLAN}").text)


def test_a_version_is_shown_as_it_was_and_put_back(browser: Browsing) -> None:
    raw = b"# Plan\r\n\r\nThe *old* plan.\r\n"
    (browser.root / PLAN).write_bytes(raw)
    for number in range(2):
        saved(browser, f"Version {number}.\n")
    links = [unescape(each) for each in re.findall(r'href="(/version/[^"]*)"', browser.get(f"/history/{PLAN}").text)]
    (old,) = [each for each in links if "<em>old</em>" in browser.get(each).text]
    page = browser.get(old)
    assert "This is not what the note says now." in text_of(page.text)
    form = dict(re.findall(r'name="(rev|digest)" value="([^"]*)"', page.text))
    saved(browser, "Ines wrote this meanwhile.\n")
    stale = browser.post(f"/version/{PLAN}", form)
    assert (stale.status_code, "Nothing was put back" in text_of(stale.text)) == (409, True)
    form = dict(re.findall(r'name="(rev|digest)" value="([^"]*)"', stale.text))
    answer = browser.post(f"/version/{PLAN}", form)
    assert (browser.root / PLAN).read_bytes() == raw
    assert "Put back" in text_of(browser.follow(answer).text)
    assert "says now, too" in text_of(browser.get(old).text)
    assert "no text of that version" in text_of(browser.get(f"/version/{PLAN}?rev=nothing").text)
    assert browser.post(f"/version/{PLAN}").status_code == 303


def test_a_note_that_changed_since_it_was_asked_about_is_not_deleted(browser: Browsing) -> None:
    digest = digest_in(browser, f"/delete/{PLAN}")
    saved(browser, "Ines wrote this meanwhile.\n")
    answer = browser.post(f"/delete/{PLAN}", {"digest": digest})
    assert answer.status_code == 409
    assert "Ines wrote this meanwhile." in text_of(answer.text)
    assert browser.post(f"/delete/{PLAN}").status_code == 409
    assert (browser.root / PLAN).exists()


def test_a_note_is_given_another_path_to_the_byte(browser: Browsing) -> None:
    raw = b"\xef\xbb\xbfA\r\nB\n"
    (browser.root / PLAN).write_bytes(raw)
    answer = browser.post(f"/rename/{PLAN}", {"to": " pages/north quay/f\u00e4hre #1?.md "})
    assert answer.headers["Location"] == "/notes/pages/north%20quay/f%C3%A4hre%20%231%3F.md?done=renamed"
    assert (browser.root / "pages/north quay/f\u00e4hre #1?.md").read_bytes() == raw
    assert not (browser.root / PLAN).exists()


def test_a_path_that_cannot_be_is_told_beside_what_was_typed(browser: Browsing) -> None:
    (browser.root / "pages/taken.md").write_text("taken\n")
    for to, status, said in (
        ("pages/taken.md", 409, "There is a note at pages/taken.md already"),
        ("../outside.md", 403, "leads out of the notebook"),
        ("pages/plan.txt", 403, "must end in .md"),
        ("", 403, "plain path"),
        ("pages/.hidden.md", 403, "is hidden"),
    ):
        answer = browser.post(f"/rename/{PLAN}", {"to": to})
        assert (to, answer.status_code, said in text_of(answer.text)) == (to, status, True)
        assert f'id="to" name="to" value="{to}"' in answer.text
        assert (browser.root / PLAN).exists()


NEW = [
    ("pages", {"tags": "ferry, quay", "status": "complete"}, ["tags: [ferry, quay]", "status: complete"]),
    ("code_snippets", {"language": "python"}, ["language: python", "```python"]),
    ("research_notes", {"key_findings": "One\nTwo", "confidence": "0.5"}, ["key_findings: [One, Two]", "0.5"]),
    ("memories", {"kind": "decision", "priority": "9"}, ["kind: decision", "priority: 9"]),
]


def test_a_new_note_of_each_kind(browser: Browsing) -> None:
    for collection, fields, expected in NEW:
        form = {"collection": collection, "title": "Ferry to the north", "text": "It leaves at noon.\n", **fields}
        answer = browser.post("/new", form)
        assert answer.status_code == 303, text_of(answer.text)
        path = answer.headers["Location"].removeprefix("/notes/").partition("?")[0]
        assert path.startswith(f"{collection}/")
        text = (browser.root / path).read_text()
        assert all(part in text for part in [*expected, "Ferry to the north", "It leaves at noon."]), text


def test_a_new_note_is_shown_before_it_is_made(browser: Browsing) -> None:
    form = {"collection": "pages", "title": "", "text": "## Ropes\n\nThey are *wet*.\n"}
    for address, sent in (("/new/preview", form), ("/new", {**form, "preview": "yes"})):
        shown = browser.post(address, sent)
        assert (shown.status_code, "<em>wet</em>" in shown.text) == (200, True)
    code = browser.post("/new/preview", {"collection": "code_snippets", "text": "x = 1\n", "language": "python"})
    assert '<code class="language-python">x = 1' in code.text
    assert "<em>wet</em>" in browser.post("/new/preview", {**form, "collection": "memories"}).text
    assert "confidence" in text_of(
        browser.post("/new/preview", {"collection": "research_notes", "confidence": "9"}).text
    )


def test_a_new_note_that_cannot_be_keeps_what_was_typed(browser: Browsing) -> None:
    for fields in ({"title": ""}, {"title": "T", "status": "lost"}, {"title": "T", "collection": "channels"}):
        answer = browser.post("/new", {"collection": "pages", "text": "Odile's </textarea> text\n", **fields})
        assert answer.status_code == 422
        assert "Odile&#39;s &lt;/textarea&gt; text" in answer.text
        assert 'role="alert"' in answer.text
    for collection in ("pages", "code_snippets", "research_notes", "memories"):
        assert browser.get(f"/new?collection={collection}").status_code == 200


def test_the_pages_of_what_is_not_there_say_so(browser: Browsing) -> None:
    for address in ("/edit/pages/no.md", "/delete/pages/no.md", "/rename/pages/no.md"):
        assert browser.get(address).status_code == 404
    for address in ("/edit/..%2f..%2fetc/passwd.md", "/edit/notebook.toml", "/delete/.notebook/x.md"):
        assert browser.get(address).status_code in {403, 404}


def test_a_name_that_an_address_has_to_spell_otherwise_is_that_of_its_note(browser: Browsing) -> None:
    for name in ("a #1?.md", "q\"uo'te<b>.md", "100%.md", "f\u00e4hre \U0001f6a2.md", "a&b=c+d.md"):
        path = f"pages/{name}"
        (browser.root / path).write_text("one\n")
        at = quote(path)
        page = browser.get(f"/edit/{at}")
        assert f'action="/edit/{at}"' in unescape(page.text)
        assert browser.post(f"/edit/{at}", {**form_in(page), "text": "two\n"}).status_code == 303
        assert (browser.root / path).read_text() == "two\n"
        for kind in ("history", "delete", "rename"):
            assert browser.get(f"/{kind}/{at}").status_code == 200


def test_a_form_without_its_fields_is_answered_as_one_that_is_wrong(browser: Browsing) -> None:
    for address in (f"/edit/{PLAN}", "/new", f"/rename/{PLAN}", f"/delete/{PLAN}", f"/undo/{PLAN}"):
        assert browser.post(address).status_code in {403, 409, 422}, address
    assert browser.post("/preview").status_code == 200
    assert browser.post("/preview", {"digest": "x", "base": "\u00e4"}).status_code in {200, 422}
    assert (browser.root / PLAN).exists()


# What is made of three texts, and how a difference is shown.


@pytest.mark.parametrize(
    ("base", "now", "mine", "expected", "choices"),
    [
        ("a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n", "A\nb\nC\n", 0),
        ("a\nb\nc\n", "A\nb\nc\n", "A\nb\nc\n", "A\nb\nc\n", 0),
        ("a\nb\nc\n", "a\nc\n", "a\nb\nc\nd\n", "a\nc\nd\n", 0),
        ("a\nb\nc", "A\nb\nc", "a\nb\nc", "A\nb\nc", 0),
        ("", "a\n", "", "a\n", 0),
    ],
)
def test_changes_that_can_both_stand_do(base: str, now: str, mine: str, expected: str, choices: int) -> None:
    found = merged(base, now, mine)
    assert (found.text, found.choices) == (expected, choices)


@given(*[st.lists(st.sampled_from(["a\n", "b\n", "\n", "c\n"]), max_size=9).map("".join)] * 3)
def test_whoever_changed_nothing_has_no_say_and_nothing_written_is_lost(base: str, now: str, mine: str) -> None:
    assert merged(base, now, base) == merged(base, now, now) == Merged(now, 0)
    assert merged(base, base, mine) == Merged(mine, 0)
    found = Counter(merged(base, now, mine).text.split("\n"))
    new = (Counter(mine.split("\n")) - Counter(base.split("\n"))).items()
    assert all(found[line] >= count for line, count in new)


def test_texts_of_many_like_lines_are_made_one_at_once() -> None:
    lines = ["\n" if n % 2 else f"{n}\n" for n in range(20_000)]
    now, mine = [*lines], [*lines]
    now[3], now[-3], mine[9] = "x\n", "y\n", "z\n"
    assert merged("".join(lines), "".join(now), "".join(mine)).choices == 0


def test_of_changes_that_cannot_both_stand_each_is_there_between_marks() -> None:
    found = merged("a\nb\nc", "a\nB", "a\nmine\nc\nd")
    assert found.choices == 1
    assert marks_in(found.text) == 4
    assert re.fullmatch(
        r"a\n<<<<<<< [^\n]*\nB\n\|\|\|\|\|\|\| [^\n]*\nb\nc\n======= [^\n]*\nmine\nc\nd\n>>>>>>> [^\n]*\n", found.text
    )


def test_a_difference_marks_words_and_is_cut_where_it_is_long() -> None:
    found = difference_in(
        "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-The ferry leaves at noon\r\n+The ferry leaves late\r\n x\r\n"
    )
    assert [line.kind for line in found.lines] == ["place", "del", "ins", "same"]
    assert [piece.text for piece in found.lines[1].pieces if piece.is_changed] == ["at noon"]
    assert [piece.text for piece in found.lines[2].pieces if piece.is_changed] == ["late"]
    assert found.lines[3].text == "x"
    wide = difference_in(f"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-{'a' * 9_999}\n+{'a' * 9_998}b\n")
    assert {len(line.text) for line in wide.lines[1:]} == {LONGEST_LINE + 1}
    long = difference_in("--- a/x\n+++ b/x\n@@ -0,0 +1,999 @@\n" + "+line\n" * 999)
    assert (len(long.lines), long.count, long.added, long.removed) == (MOST_LINES, 1_000, 999, 0)


def test_a_difference_of_line_ends_alone_can_be_seen() -> None:
    found = difference_in("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-same\r\n+same\n")
    assert [line.text for line in found.lines if line.kind != "place"] == ["same\u240d", "same"]
    assert difference_in("") == difference_in("\n")


@pytest.mark.timeout(60)
def test_words_are_marked_in_as_many_lines_as_a_page_has_time_for() -> None:
    pairs = [(f"Odile said {'x,' * 900} at {n} noon", f"Odile said {'x.' * 900} at {n} ten") for n in range(90)]
    removed, added = ("".join(f"{sign}{pair[side]}\n" for pair in pairs) for side, sign in ((0, "-"), (1, "+")))
    found = difference_in(f"--- a/x\n+++ b/x\n@@ -1,90 +1,90 @@\n{removed}{added}")
    assert [line.text for line in found.lines[1:]] == [old for old, _ in pairs] + [new for _, new in pairs]
    assert sum(len(line.pieces) for line in found.lines) < 10_000
    dots = difference_in(f"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-{'.' * 1_990}\n+{'.' * 1_980}!\n")
    assert [len(piece.text) for line in dots.lines[1:] for piece in line.pieces] == [1_980, 10, 1_980, 1]


@pytest.mark.timeout(60)
def test_texts_of_lines_that_repeat_are_one_choice() -> None:
    lines = [f"{n % 400}\n" for n in range(40_000)]
    now = [f"{n * n % 397}\n" for n in range(40_000)]
    mine = [f"{n * n % 389}\n" for n in range(40_000)]
    found = merged(
        "first\n" + "".join(lines) + "last\n", f"first\n{''.join(now)}last\n", f"first\n{''.join(mine)}last\n"
    )
    assert found.choices == 1
    assert found.text.startswith("first\n0\n1\n<<<<<<< ")
    assert found.text.endswith("take these marks out\nlast\n")
