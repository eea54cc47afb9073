"""Editing a note in the dashboard: what is typed is written, to the byte, and never lost."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from unittest.mock import patch

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notebook_sync.surfaces.dashboard.editing import edit_base
from notebook_sync.surfaces.dashboard.editing.edit_text import shown, with_ends_of
from tests.dashboard.browsing import Browsing, text_of

PLAN = "pages/plan.md"
HIDDEN = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)">')
INPUT = re.compile(r'<input id="field-\w+" name="(\w+)" value="([^"]*)"')
CHOICE = re.compile(r'<select id="field-\w+" name="(\w+)">.*?<option value="([^"]*)" selected>', re.DOTALL)
BOX = re.compile(r'<textarea[^>]* id="text"[^>]*>\n(.*?)</textarea>', re.DOTALL)


def form_in(answer: httpx2.Response) -> dict[str, str]:
    """The fields of the form that a page has, as a browser would send them back untouched."""
    start = answer.text.index('id="edit"')
    markup = answer.text[start : answer.text.index("</form>", start)]
    found = [*HIDDEN.findall(markup), *INPUT.findall(markup), *CHOICE.findall(markup)]
    (box,) = BOX.findall(markup)
    fields = {name: unescape(value) for name, value in found}
    return {**fields, "text": re.sub(r"\r\n?", "\n", unescape(box))}


def opened(browser: Browsing, path: str = PLAN, query: str = "") -> dict[str, str]:
    answer = browser.get(f"/edit/{path}{query}")
    assert answer.status_code == 200, text_of(answer.text)
    return form_in(answer)


def written(browser: Browsing, raw: bytes, path: str = PLAN) -> Path:
    file = browser.root / path
    file.write_bytes(raw)
    return file


def test_what_is_typed_is_written_and_shown(browser: Browsing) -> None:
    form = opened(browser)
    answer = browser.post(f"/edit/{PLAN}", {**form, "text": form["text"].replace("small", "at the harbour")})
    assert answer.headers["Location"] == f"/notes/{PLAN}?done=saved"
    assert (browser.root / PLAN).read_text() == "# Plan\n\nStart at the harbour.\n\n## Budget\n\n100\n"
    assert "Saved. What changed, and undo" in text_of(browser.follow(answer).text)


# What editors, systems and people leave in a file.
FILES = [
    b"# Ferry\r\n\r\nIt leaves.\r\n",
    b"# Ferry\r\nIt\nleaves\r\nat\n\nnoon\r\n",
    b"one\rtwo\r\rthree",
    b"\xef\xbb\xbf# Ferry\n\nIt leaves.\n",
    b"\xef\xbb\xbf---\r\ntitle: Ferry\r\n---\r\n\r\nIt leaves.\r\n",
    b"no line end",
    b"\n\n\n# Ferry\n\n\n",
    b"trailing  \n\ttabs\t\nform\x0cfeed\x1b\n \n",
    b"</textarea><script>alert(1)</script>\n&amp; &lt; \"quotes\" 'and' {{ 7 * 7 }}\n",
    b"---\n# what Odile wrote\ntitle:   'Ferry'   # spaces\nodd: {a: [1, 2]}\ntags: [x,y]\n---\ntext\n",
    b"---\ntitle: Ferry\n---",
    b"",
    "Gr\u00fc\u00dfe \U0001f6a2 \u2028 \u0085 \ufeff \ufffd\n".encode(),
]


@pytest.mark.parametrize("query", ["", "?whole=true"])
def test_a_form_that_is_sent_as_it_came_changes_no_byte(browser: Browsing, query: str) -> None:
    for raw in FILES:
        file = written(browser, raw)
        answer = browser.post(f"/edit/{PLAN}", opened(browser, query=query))
        assert answer.headers["Location"] == f"/notes/{PLAN}?done=unchanged"
        assert file.read_bytes() == raw


# What is there, what is put in place of what, and what is then to be there.
CHANGES = [
    (b"a\r\nb\r\nc\r\n", "b\n", "b\nB\n", b"a\r\nb\r\nB\r\nc\r\n"),
    (b"a\r\nb\nc\r\nd\n", "b\n", "B\n", b"a\r\nB\nc\r\nd\n"),
    (b"a\r\nb\nc\rd", "d", "D\nE", b"a\r\nb\nc\rD\rE"),
    (b"a\rb\r", "b\n", "b\nc\n", b"a\rb\rc\r"),
    (b"a\nb", "b", "B", b"a\nB"),
    (b"a\nb\n", "b\n", "b", b"a\nb"),
    (b"\xef\xbb\xbfa\r\n", "a", "A", b"\xef\xbb\xbfA\r\n"),
    (b"\na\n", "\na", "\n\nA", b"\n\nA\n"),
    (b"a  \t\nb\x0c\n", "a", "A", b"A  \t\nb\x0c\n"),
    (b"---\nodd: 1 # kept\n---\nx\n", "x", "y", b"---\nodd: 1 # kept\n---\ny\n"),
    (b"---\r\ntitle: T\r\n---", "", "x\n", b"---\r\ntitle: T\r\n---\r\nx\r\n"),
]


def test_only_what_was_changed_is_changed(browser: Browsing) -> None:
    for raw, old, new, expected in CHANGES:
        file = written(browser, raw)
        form = opened(browser)
        assert old in form["text"]
        text = form["text"].replace(old, new) if old else new
        assert browser.post(f"/edit/{PLAN}", {**form, "text": text}).status_code == 303, raw
        assert file.read_bytes() == expected


LINES = st.lists(st.tuples(st.sampled_from(["", "a", "b"]), st.sampled_from(["\n", "\r\n", "\r"])), max_size=8)


@given(LINES, st.lists(st.sampled_from(["", "a", "b", "Odile"]), max_size=8).map("\n".join))
@settings(max_examples=60)
def test_what_is_typed_reads_as_it_was_typed_however_the_lines_of_the_file_end(
    lines: list[tuple[str, str]], typed: str
) -> None:
    base = "".join(said + end for said, end in lines)
    assert shown(with_ends_of(base, typed, "\n")) == typed
    assert with_ends_of(base, shown(base), "\n") == base


@given(LINES, LINES)
@settings(max_examples=50)
def test_lines_above_and_below_of_what_was_put_in_keep_their_ends(
    above: list[tuple[str, str]], below: list[tuple[str, str]]
) -> None:
    first, last = ("".join(f"x{said}{end}" for said, end in lines) for lines in (above, below))
    after = with_ends_of(first + last, shown(first) + "Odile\n" + shown(last), "\n")
    assert after.startswith(f"{first}Odile")
    assert after.endswith(last)


@pytest.mark.timeout(60)
def test_lines_that_repeat_too_often_to_be_compared_end_as_those_that_stood_there() -> None:
    ends = ["\n" if n % 2 else "\r\n" for n in range(40_000)]
    base = "first\r\n" + "".join(f"{n % 400}{end}" for n, end in enumerate(ends))
    typed = [f"{n * n % 397}" for n in range(40_000)]
    made = with_ends_of(base, "first\n" + "".join(f"{said}\n" for said in typed), "\n")
    assert made == "first\r\n" + "".join(said + end for said, end in zip(typed, ends, strict=True))


def test_a_field_changes_its_own_bytes_and_no_other(browser: Browsing) -> None:
    raw = "---\n# Odile's\nodd: {a: [1,2]}   # kept\ntitle:  'Ferry'\ntags: [x,y]\nstatus: draft # why\n---\nText\n"
    file = written(browser, raw.encode())
    form = opened(browser)
    assert (form["title"], form["tags"], form["status"]) == ("Ferry", "x, y", "draft")
    assert browser.post(f"/edit/{PLAN}", {**form, "status": "complete"}).status_code == 303
    assert file.read_text() == raw.replace("status: draft", "status: complete")
    form = opened(browser)
    fields = {"title": 'Ferry: "north" #1', "tags": "harbour, ferry", "summary": "Leaves at noon"}
    assert browser.post(f"/edit/{PLAN}", {**form, **fields, "status": ""}).status_code == 303
    again = opened(browser)
    assert {name: again[name] for name in fields} == fields
    assert "odd: {a: [1,2]}   # kept\n" in file.read_text()
    assert "status:" not in file.read_text()


def test_a_field_that_cannot_be_is_told_above_what_was_typed(browser: Browsing) -> None:
    before = (browser.root / PLAN).read_bytes()
    form = {**opened(browser), "text": "all of it typed"}
    for field, value, said in (
        ("status", "lost", "no status 'lost'"),
        ("title", "a\x07b", "title cannot be written"),
        ("title", "\u200b", "word that can be seen"),
    ):
        answer = browser.post(f"/edit/{PLAN}", {**form, field: value})
        assert answer.status_code == 422
        assert said in text_of(answer.text)
        assert form_in(answer)["text"] == "all of it typed"
        assert (browser.root / PLAN).read_bytes() == before


def test_one_of_two_sections_of_the_same_name_is_edited_alone(browser: Browsing) -> None:
    file = written(browser, b"# Log\r\n\r\n## Day\r\n\r\nrain\r\n\r\n## Day\r\n\r\nsun\r\n\r\n## End\r\n\r\nx\r\n")
    form = opened(browser, query="?section=day-1")
    assert form["text"] == "## Day\n\nsun\n\n"
    assert browser.post(f"/edit/{PLAN}", {**form, "text": "## Day\n\nwind"}).status_code == 303
    assert file.read_bytes() == b"# Log\r\n\r\n## Day\r\n\r\nrain\r\n\r\n## Day\r\n\r\nwind\r\n## End\r\n\r\nx\r\n"


def test_a_section_that_is_not_there_is_said_to_be_so(browser: Browsing) -> None:
    answer = browser.get(f"/edit/{PLAN}?section=nowhere")
    assert answer.status_code == 404
    assert "no section #nowhere" in text_of(answer.text)


@pytest.mark.parametrize(("raw", "said"), [(b"caf\xe9\n", "not UTF-8"), (b"a\nb\0c\n", "NUL character in line 2")])
def test_what_no_browser_gives_back_as_it_was_is_not_edited_here(browser: Browsing, raw: bytes, said: str) -> None:
    file = written(browser, raw)
    answer = browser.get(f"/edit/{PLAN}")
    assert answer.status_code == 422
    assert said in text_of(answer.text)
    assert "<textarea" not in answer.text
    assert file.read_bytes() == raw


def test_broken_frontmatter_can_be_mended_as_text(browser: Browsing) -> None:
    file = written(browser, b"---\ntitle: [open\n---\nText\n")
    form = opened(browser)
    assert "title" not in form
    assert form["text"].startswith("---\ntitle: [open")
    assert browser.post(f"/edit/{PLAN}", {**form, "text": "---\ntitle: Mended\n---\nText\n"}).status_code == 303
    assert file.read_text() == "---\ntitle: Mended\n---\nText\n"


def test_a_long_note_is_edited(browser: Browsing) -> None:
    text = "".join(f"The ferry {number} leaves from quay {number % 7}.\n" for number in range(6_000))
    file = written(browser, text.encode())
    form = opened(browser)
    assert browser.post(f"/edit/{PLAN}", {**form, "text": form["text"] + "Last.\n"}).status_code == 303
    assert file.read_text() == f"{text}Last.\n"


def test_a_note_that_fits_no_form_is_edited_by_sections(browser: Browsing) -> None:
    first = "# A\n\n" + "\u00e4" * 300 + "\n\n"
    file = written(browser, f"{first}# B\n\nshort\n".encode())
    with patch.object(edit_base, "MOST_OF_A_FORM", 1_000):
        answer = browser.get(f"/edit/{PLAN}")
        assert answer.status_code == 413
        assert "Choose a section" in text_of(answer.text)
        form = opened(browser, query="?section=b")
        assert browser.post(f"/edit/{PLAN}", {**form, "text": "# B\n\nshorter\n"}).status_code == 303
    assert file.read_text() == f"{first}# B\n\nshorter\n"


def test_the_second_of_two_browsers_is_shown_both_texts_and_nothing_is_lost(browser: Browsing) -> None:
    first, second = opened(browser), opened(browser)
    assert browser.post(f"/edit/{PLAN}", {**first, "text": first["text"].replace("100", "200")}).status_code == 303
    answer = browser.post(f"/edit/{PLAN}", {**second, "text": second["text"].replace("small", "at noon")})
    assert answer.status_code == 409
    assert "Both changes fit together" in text_of(answer.text)
    assert (browser.root / PLAN).read_text() == "# Plan\n\nStart small.\n\n## Budget\n\n200\n"
    together = form_in(answer)
    assert together["text"] == "# Plan\n\nStart at noon.\n\n## Budget\n\n200\n"
    assert browser.post(f"/edit/{PLAN}", together).status_code == 303
    assert (browser.root / PLAN).read_text() == "# Plan\n\nStart at noon.\n\n## Budget\n\n200\n"


def test_where_both_changed_a_line_the_owner_chooses(browser: Browsing) -> None:
    form = opened(browser)
    (browser.root / PLAN).write_text("# Plan\r\n\r\nStart large.\r\n\r\n## Budget\r\n\r\n100\r\n", newline="")
    answer = browser.post(f"/edit/{PLAN}", {**form, "text": form["text"].replace("small", "never")})
    chosen = form_in(answer)
    assert "1 place below was changed by both" in text_of(answer.text)
    assert all(text in chosen["text"] for text in ("Start large.", "Start small.", "Start never."))
    refused = browser.post(f"/edit/{PLAN}", chosen)
    assert refused.status_code == 422
    assert "still mark" in text_of(refused.text)
    for said in ("What changed in the file meanwhile", "What you changed", "The texts by themselves"):
        assert said in text_of(refused.text)
    assert "<mark>large</mark>" in refused.text
    assert "<mark>never</mark>" in refused.text
    assert form_in(refused)["text"] == chosen["text"]
    text = re.sub(r"<<<<<<<.*>>>>>>>[^\n]*", "Start never.", chosen["text"], flags=re.DOTALL)
    assert browser.post(f"/edit/{PLAN}", {**form_in(refused), "text": text}).status_code == 303
    assert (browser.root / PLAN).read_bytes() == b"# Plan\r\n\r\nStart never.\r\n\r\n## Budget\r\n\r\n100\r\n"


def test_a_note_that_was_deleted_meanwhile_can_be_made_again_as_it_was_and_as_it_is_now(browser: Browsing) -> None:
    file = written(browser, b"\xef\xbb\xbf# Plan\r\n\r\nSmall.\r\n")
    form = opened(browser)
    file.unlink()
    answer = browser.post(f"/edit/{PLAN}", {**form, "text": form["text"].replace("Small", "Large")})
    assert answer.status_code == 409
    assert "was deleted while you wrote" in text_of(answer.text)
    assert not file.exists()
    assert browser.post(f"/edit/{PLAN}", form_in(answer)).status_code == 303
    assert file.read_bytes() == b"\xef\xbb\xbf# Plan\r\n\r\nLarge.\r\n"


def test_a_file_that_became_unreadable_meanwhile_is_left_and_the_text_is_kept(browser: Browsing) -> None:
    form = opened(browser)
    file = written(browser, b"caf\xe9\n")
    answer = browser.post(f"/edit/{PLAN}", {**form, "text": "Odile waits at the quay.\n"})
    assert answer.status_code == 409
    assert "Odile waits at the quay." in text_of(answer.text)
    assert 'id="edit"' not in answer.text
    assert file.read_bytes() == b"caf\xe9\n"


def test_texts_that_fit_no_form_together_are_shown_by_themselves(browser: Browsing) -> None:
    form = opened(browser)
    written(browser, b"# Plan\n\nAnother.\n")
    with patch.object(edit_base, "MOST_OF_A_FORM", 200):
        answer = browser.post(f"/edit/{PLAN}", {**form, "text": "Odile waits. " * 20})
    assert answer.status_code == 409
    assert "too long for one form" in text_of(answer.text)
    assert "Odile waits. " * 20 in answer.text
    assert 'id="edit"' not in answer.text


def test_a_form_that_is_sent_twice_is_written_once(browser: Browsing) -> None:
    form = {**opened(browser), "text": "Written once.\n"}
    assert browser.post(f"/edit/{PLAN}", form).headers["Location"].endswith("done=saved")
    assert browser.post(f"/edit/{PLAN}", form).headers["Location"].endswith("done=saved")
    assert (browser.root / PLAN).read_text() == "Written once.\n"


def test_a_form_without_what_it_was_made_from_writes_nothing(browser: Browsing) -> None:
    before = (browser.root / PLAN).read_bytes()
    form = {**opened(browser), "text": "forged"}
    for field in ("base", "digest"):
        assert browser.post(f"/edit/{PLAN}", {**form, field: "0" * 64}).status_code == 422
        assert (browser.root / PLAN).read_bytes() == before


def test_a_file_of_the_prompt_over_its_cap_is_saved_only_when_that_is_chosen(browser: Browsing) -> None:
    path = "runtime/standing-orders.md"
    file = browser.root / path
    before = file.read_bytes()
    form = opened(browser, path)
    text = form["text"] + "\n## Ferries\n\n" + "- The ferry to the north leaves at noon\n" * 250
    answer = browser.post(f"/edit/{path}", {**form, "text": text})
    assert answer.status_code == 422
    assert "the prompt shows 2,000" in text_of(answer.text)
    assert 'name="allow_over_cap"' in answer.text
    assert file.read_bytes() == before
    saved = browser.post(f"/edit/{path}", {**form_in(answer), "allow_over_cap": "yes"})
    assert "parts are left out of it" in text_of(saved.text)
    assert file.read_text() == text


def test_the_preview_tells_what_the_sections_and_the_prompt_become(browser: Browsing) -> None:
    path = "runtime/standing-orders.md"
    before = (browser.root / path).read_bytes()
    form = opened(browser, path)
    text = (
        form["text"]
        + "\n## Ferries\n\n<script>alert(1)</script>\n\n"
        + "- The ferry to the north leaves at noon\n" * 250
    )
    answer = browser.post("/preview", {**form, "text": text})
    said = text_of(answer.text)
    assert "of 2,000 tokens" in said
    assert "The prompt leaves out" in said
    assert "Ferries" in said
    assert "<script" not in answer.text
    page = browser.post(f"/edit/{path}", {**form, "text": text, "preview": "yes"})
    assert "of 2,000 tokens" in text_of(page.text)
    assert form_in(page)["text"] == text
    assert (browser.root / path).read_bytes() == before


def test_the_preview_says_that_the_file_changed_meanwhile(browser: Browsing) -> None:
    form = opened(browser)
    written(browser, b"another\n")
    assert "changed meanwhile" in text_of(browser.post("/preview", form).text)
