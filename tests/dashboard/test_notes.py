"""Reading the notes in a browser: one note, and the way to it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

from notebook_sync import Notebook
from notebook_sync.errors import BackendDown
from notebook_sync.folder import FOLDER
from tests.dashboard.browsing import Browsing, browsing, text_of

QUAY = """\
---
title: The quay
tags: [harbour, ferry]
weather: {wind: 5, rain: no}
---
# The quay

Odile asks for [the plan](plan.md#budget) and [[Tide table]].

## Depth

Four metres.

<!-- measured by Ines -->
"""


def notebook_of(browser: Browsing) -> Notebook:
    found: Notebook = browser.served.app.state.notebook
    return found


def at_the_quay(root: Path) -> None:
    """Put notes about a harbour into a notebook."""
    (root / "pages/plan.md").write_text("# Plan\n\nStart small.\n\n## Budget\n\n100\n")
    (root / "pages/quay.md").write_text(QUAY)
    (root / "pages/Tide table.md").write_text("# Tide table\n\nHigh at six.\n")
    note = root / "channels/scribe/global/2026-02-18T103000Z-oars.md"
    note.parent.mkdir(parents=True)
    note.write_text("---\ntype: note\ntopic: oars\nprovenance: external\n---\nThe oars are wet.\n")
    with Notebook.open(root) as notebook:
        notebook.sync()


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browsing]:
    """A browser of a notebook about a harbour that no test changes."""
    root = tmp_path_factory.mktemp("quay") / "notebook"
    Notebook.init(root, git=False)
    at_the_quay(root)
    with browsing(root) as found:
        yield found


@pytest.fixture
def own(root: Path) -> Iterator[Browsing]:
    """A browser of one that a test may change."""
    at_the_quay(root)
    with browsing(root) as found:
        yield found


def test_a_note_is_shown_with_what_is_known_of_it(notes: Browsing) -> None:
    answer = notes.get("/notes/pages/quay.md")
    said = text_of(answer.text)
    assert answer.status_code == 200
    assert "<h1>The quay</h1>" in answer.text
    assert answer.text.count("The quay</h") == 1
    assert "Depth" in said
    assert "Four metres." in said
    assert "harbour, ferry" in said
    assert "wind: 5; rain: no" in said
    assert "Version 1" in said
    assert 'href="/edit/pages/quay.md"' in answer.text
    assert 'href="/history/pages/quay.md"' in answer.text


def test_a_notes_links_lead_to_the_pages_of_notes(notes: Browsing) -> None:
    said = notes.get("/notes/pages/quay.md").text
    assert 'href="/notes/pages/plan.md#at-budget"' in said
    assert 'href="/notes/Tide%20table"' in said
    assert 'id="at-depth"' in said
    assert 'href="#at-depth"' in said
    led = notes.follow(notes.get("/notes/Tide%20table"))
    assert "High at six." in text_of(led.text)


def test_a_note_tells_which_notes_lead_to_it(notes: Browsing) -> None:
    led = re.search(r"What links here.*?</section>", notes.get("/notes/pages/plan.md").text, re.DOTALL)
    assert led
    assert re.findall(r'href="([^"]+)">([^<]+)', led[0]) == [("/notes/pages/quay.md", "The quay")]
    assert "What links here" not in notes.get("/notes/pages/quay.md").text


def test_links_that_lead_nowhere_are_told_by_words_in_the_text_and_beside_it(own: Browsing) -> None:
    (own.root / "pages/deck.png").write_bytes(b"")
    (own.root / "pages/ways.md").write_text(
        "# Ways\n\n## To [[the pier]]\n\nFrom [[the quay#depth|here]], [there](../lost/quay%20two.md#north), "
        "[a deck](deck.png), [the plan](plan.md), [out](../../plan.md), [elsewhere](https://ferry.example/lost.md).\n"
        "\n`[[the mole]]`\n"
    )
    notebook_of(own).sync()
    said = own.get("/notes/pages/ways.md").text
    mark = '</a> <span class="badge bad" title="no note and no file has this name; mend the link, or write the page">'
    text, _, beside = said.partition("</article>")
    assert f'href="/notes/the%20pier">the pier{mark}broken link</span></h2>' in text
    assert f'href="/notes/lost/quay%20two.md#at-north">there{mark}broken link</span>' in text
    assert "From here , there broken link , a deck , the plan , out broken link , elsewhere ." in text_of(text)
    assert text.count("broken link</span>") == 3
    led = re.search(r"<h2>Leads to.*?</section>", beside, re.DOTALL)
    assert led
    nowhere = "broken link no note and no file has this name; mend the link, or write the page"
    assert text_of(led[0]) == (
        f"Leads to the pier {nowhere} the quay ../lost/quay two.md {nowhere} deck.png plan.md "
        "../../plan.md broken link it leads out of the notebook; mend the link"
    )


def test_a_link_is_no_more_broken_once_its_note_is_there_nor_where_nobody_can_tell(own: Browsing) -> None:
    (own.root / "pages/ways.md").write_text("[[The pier]]\n")
    notebook_of(own).sync()
    assert "broken link" in own.get("/notes/pages/ways.md").text
    with patch.object(notebook_of(own).mirror, "names", side_effect=BackendDown("MongoDB", "refused")):
        assert "broken link" not in own.get("/notes/pages/ways.md").text
    (own.root / "pages/one.md").write_text("# The Pier\n")
    notebook_of(own).sync()
    assert "broken link" not in own.get("/notes/pages/ways.md").text


@pytest.mark.parametrize("name", ["pages/plan", "plan", "reminders", "runtime/reminders"])
def test_a_note_is_found_by_its_other_names(notes: Browsing, name: str) -> None:
    answer = notes.get(f"/notes/{name}")
    assert answer.status_code == 303
    assert answer.headers["Location"].endswith(".md")
    assert notes.follow(answer).status_code == 200


@pytest.mark.parametrize("name", ["The quay", "the QUAY", "pages/pages/quay.md", "pages/harbour/pages/quay"])
def test_a_link_finds_a_note_by_its_title_and_by_its_path_from_the_notebook(notes: Browsing, name: str) -> None:
    assert notes.get(f"/notes/{name}").headers["Location"] == "/notes/pages/quay.md"


def test_a_title_that_two_notes_have_leads_to_neither(own: Browsing) -> None:
    (own.root / "pages/second.md").write_text("# The quay\n")
    assert own.get("/notes/pages/second.md").status_code == 200
    assert own.get("/notes/The%20quay").status_code == 404


def test_somebody_elses_words_and_private_ones_are_marked(notes: Browsing) -> None:
    said = text_of(notes.get("/notes/channels/scribe/global/2026-02-18T103000Z-oars.md").text)
    assert "from outside" in said
    assert "Somebody else wrote this" in said
    assert "private" in said


def test_no_host_that_a_note_leads_to_is_asked_for_before_the_link_is_followed(notes: Browsing) -> None:
    assert notes.get("/notes/pages/quay.md").headers["X-DNS-Prefetch-Control"] == "off"


def test_of_a_file_of_the_prompt_is_told_how_much_gets_through(notes: Browsing) -> None:
    assert "tokens are shown" in text_of(notes.get("/notes/runtime/standing-orders.md").text)
    assert "tokens are shown" not in text_of(notes.get("/notes/pages/quay.md").text)


def test_a_note_that_is_not_there_can_be_searched_for_or_written(notes: Browsing) -> None:
    answer = notes.get("/notes/pages/lighthouse%20%22keeper%22.md")
    assert answer.status_code == 404
    assert 'href="/notes?query=pages/lighthouse%20%22keeper%22.md"' in answer.text
    assert 'href="/new"' in answer.text


def test_a_file_that_cannot_be_read_has_a_page_that_says_why(own: Browsing) -> None:
    (own.root / "pages/away.md").symlink_to("/etc/passwd")
    answer = own.get("/notes/pages/away.md")
    assert answer.status_code in {403, 409, 422}
    assert "It is a symbolic link" in text_of(answer.text)
    assert "root:" not in answer.text


def test_of_a_file_that_grew_too_large_the_last_good_text_is_shown(own: Browsing) -> None:
    own.get("/notes/pages/quay.md")
    (own.root / "pages/quay.md").write_bytes(b"x" * (3 << 20))
    said = text_of(own.get("/notes/pages/quay.md").text)
    assert "max_file_bytes" in said
    assert "Next: see to the file with an editor" in said
    assert "tell the owner" not in said
    assert "Four metres." in said


def test_a_broken_note_is_shown_with_what_to_mend(own: Browsing) -> None:
    (own.root / "pages/wreck.md").write_bytes(b"---\ntitle: [\n---\nStill afloat \xff\n")
    said = text_of(own.get("/notes/pages/wreck.md").text)
    assert "Still afloat" in said
    assert "frontmatter is ignored" in said
    assert "not UTF-8" in said


def test_a_note_is_shown_while_the_mirror_is_away(notes: Browsing) -> None:
    down = BackendDown("MongoDB at harbour.example", "it does not listen")
    with patch.object(Notebook, "read", side_effect=down):
        answer = notes.get("/notes/pages/quay.md")
    assert answer.status_code == 200
    assert "Four metres." in text_of(answer.text)
    assert "MongoDB at harbour.example does not answer" in text_of(answer.text)


def test_reading_a_note_changes_nothing(notes: Browsing) -> None:
    def stamps() -> list[tuple[str, int]]:
        found = (path for path in sorted(notes.root.rglob("*.md")) if FOLDER not in path.parts)
        return [(path.relative_to(notes.root).as_posix(), path.stat().st_mtime_ns) for path in found]

    before = stamps()
    for path, _ in before:
        assert notes.get(f"/notes/{path}").status_code == 200
    assert before == stamps()


def test_the_name_of_a_folder_leads_to_it(notes: Browsing) -> None:
    assert notes.get("/notes/channels/scribe").headers["Location"] == "/notes?folder=channels%2Fscribe"
    assert notes.get("/notes/").headers["Location"] == "/notes"


@pytest.mark.parametrize(
    "name",
    ["%00", "%ED%A0%80", "..%2f..%2fetc%2fpasswd", "%2e%2e", "a" * 5000, "🚢", "'%22%3E%3Cscript%3E", "a%0Ab", "//"],
)
def test_no_name_of_a_note_is_too_odd(notes: Browsing, name: str) -> None:
    answer = notes.get(f"/notes/{name}")
    assert answer.status_code in {303, 403, 404, 409, 422}
    assert "<script>" not in answer.text
    assert "root:" not in answer.text
