"""Pages of notes as a browser without JavaScript has them: the list, a note, the editor, history, activity, links."""

import html
import re
from typing import Any

import pytest
from starlette.testclient import TestClient

from notebook_sync import Notebook
from notebook_sync.surfaces.dashboard.editor import packed, unpacked, why_not_here
from notebook_sync.surfaces.dashboard.past import difference_of
from tests.surfaces.dashboard.conftest import shown, texts_of
from tests.surfaces.dashboard.test_pages import fields_of, undo_of
from tests.surfaces.serving import SCRIBE


def write(notebook: Notebook, path: str, text: str | bytes) -> None:
    """A file as somebody's own editor saves it."""
    place = notebook.root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(text if isinstance(text, bytes) else text.encode())
    notebook.sync()


def form_in(text: str) -> dict[str, str]:
    """The hidden fields of the editor's form, and its text."""
    form = text.partition('id="edit"')[2].partition("</form>")[0]
    typed = re.search(r"<textarea[^>]*>\n(.*?)</textarea>", form, re.DOTALL)
    assert typed
    return fields_of(f"<form {form}") | {"text": html.unescape(typed[1])}


def found_in(text: str) -> list[str]:
    """The titles of a list of notes."""
    return [html.unescape(each) for each in re.findall(r'<h2><a href="[^"]+">([^<]*)</a></h2>', text)]


def test_notes_are_listed_by_folder_tag_and_words(notebook: Notebook, pages: TestClient) -> None:
    for name, tag in (("one", "sea"), ("deep/two", "sea"), ("deep/three", "land")):
        write(notebook, f"pages/{name}.md", f"---\ntitle: Note {name}\ntags: [{tag}]\n---\nAbout <b>winches</b>.\n")
    assert set(found_in(pages.get("/notes?folder=pages/deep").text)) == {"Note deep/two", "Note deep/three"}
    assert set(found_in(pages.get("/notes?tag=sea").text)) == {"Note one", "Note deep/two"}
    assert found_in(pages.get("/notes?tag=sea&folder=pages/deep").text) == ["Note deep/two"]
    assert found_in(pages.get("/notes?query=winches&tag=land").text) == ["Note deep/three"]
    folder = 'href="/notes?folder=pages">pages</a> <span class="dim">6</span>'
    assert "<b>" not in shown(pages.get("/notes?query=winches"), "<mark>winches</mark>", folder)
    shown(pages.get("/notes?folder=../..&query=zeppelin"), "No note fits")
    shown(pages.get("/notes?after=wrong"), status=400)


def test_long_lists_of_notes_have_pages(notebook: Notebook, pages: TestClient) -> None:
    for number in range(110):
        (notebook.root / f"pages/n{number}.md").write_text(f"# Note {number}\n")
    notebook.sync()
    texts = "".join(texts_of(pages, "/notes?folder=pages", "Older"))
    seen = re.findall(r'<h2><a href="([^"]+)">', texts)
    assert len(seen) == len(set(seen)) == 113


def test_a_note_shows_fields_backlinks_and_problems(notebook: Notebook, pages: TestClient) -> None:
    write(notebook, "pages/one.md", "---\ntitle: One\nharbour: Quay\n---\n# One\n\n## Part\n\nSee [[plan]].\n")
    text = pages.get("/note/pages/plan").text
    assert 'href="/note/pages/one.md">pages/one.md</a>' in text.partition("Linked from")[2]
    shown(pages.get("/note/pages/one"), "Quay", 'href="/edit/pages/one.md?section=part"')
    write(notebook, "pages/one.md", "---\ntitle: [One\n---\nText\n")
    shown(pages.get("/note/pages/one"), "The file cannot be read now")


def test_a_text_is_saved_as_its_file_has_it(notebook: Notebook, pages: TestClient) -> None:
    write(notebook, "pages/dos.md", "\ufeff# Dos\r\n\r\nOne & <two>\r\n")
    form = form_in(pages.get("/edit/pages/dos").text)
    assert form["text"] == "# Dos\n\nOne & <two>\n"
    form["text"] = form["text"].replace("One", "Zero").replace("\n", "\r\n")  # as browsers send it
    saved = shown(pages.post("/edit/pages/dos.md", data=form), "Done: saved the note")
    assert (notebook.root / "pages/dos.md").read_bytes() == "\ufeff# Dos\r\n\r\nZero & <two>\r\n".encode()
    shown(pages.post("/edit/pages/dos.md", data=form), "Done: saved")  # sent twice
    action, undo = undo_of(saved)
    shown(pages.post(action, data=undo))
    assert (notebook.root / "pages/dos.md").read_bytes() == "\ufeff# Dos\r\n\r\nOne & <two>\r\n".encode()


def test_a_section_is_edited_by_itself(notebook: Notebook, pages: TestClient) -> None:
    before = "---\ntitle: Parts\n---\nTop\n\n## One\n\nFirst\n\n### Child\n\nSmall\n\n## Two\n\nSecond\n"
    write(notebook, "pages/parts.md", before)
    form = form_in(pages.get("/edit/pages/parts?section=one").text)
    assert form["text"] == "## One\n\nFirst\n\n### Child\n\nSmall\n\n"
    pages.post("/edit/pages/parts.md", data=form | {"text": "## One\n\nChanged"})
    after = before.replace("First\n\n### Child\n\nSmall\n\n", "Changed\n")
    assert (notebook.root / "pages/parts.md").read_text() == after
    assert notebook.core.events.read()[-1]["section"] == "one"
    shown(pages.get("/edit/pages/parts?section=none"), status=404)
    write(notebook, "pages/parts.md", before + "x" * 400_000)
    shown(pages.get("/edit/pages/parts"), "edit one of its sections", status=422)
    shown(pages.get("/edit/pages/parts?section=one"))


def test_the_preview_is_what_the_page_will_show(notebook: Notebook, pages: TestClient) -> None:
    text = "# Plan\n\n**Bold** [[hostile]] <b>tag</b>\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    form = form_in(pages.get("/edit/pages/plan").text) | {"text": text}
    part, whole = (
        pages.post("/edit/pages/plan.md", data=form | {"preview": "yes"}, headers=headers)
        for headers in ({"Accept": "text/fragment"}, {})
    )
    pages.post("/edit/pages/plan.md", data=form)
    article = re.search(r'class="prose">(.*?)</article>', pages.get("/note/pages/plan").text, re.DOTALL)
    assert article
    shown(part, article[1].strip())
    assert form_in(shown(whole, article[1].strip()))["text"] == text


def test_changes_of_other_lines_fit_together(notebook: Notebook, pages: TestClient) -> None:
    write(notebook, "pages/long.md", "# Long\r\n\r\nOne\r\n\r\nTwo\r\n\r\nThree\r\n")
    form = form_in(pages.get("/edit/pages/long").text)
    form["text"] = form["text"].replace("Three", "Four")
    write(notebook, "pages/long.md", "# Long\r\n\r\nZero\r\n\r\nTwo\r\n\r\nThree\r\n")
    merged = shown(pages.post("/edit/pages/long.md", data=form), "Both changes fit together", status=409)
    pages.post("/edit/pages/long.md", data=form_in(merged))
    assert (notebook.root / "pages/long.md").read_bytes() == b"# Long\r\n\r\nZero\r\n\r\nTwo\r\n\r\nFour\r\n"


def test_without_git_both_texts_are_shown_whole(
    notebook: Notebook, pages: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    form = form_in(pages.get("/edit/pages/plan").text) | {"text": "# Plan\n\nStart big.\n"}
    write(notebook, "pages/plan.md", "# Plan\n\nStart tiny.\n")
    monkeypatch.setenv("PATH", "")
    text = form_in(pages.post("/edit/pages/plan.md", data=form).text)["text"]
    assert "Start big." in text.partition("|||||||")[0]
    assert "Start tiny." in text.partition("=======")[2]


def test_a_note_that_is_gone_keeps_what_was_typed(notebook: Notebook, pages: TestClient) -> None:
    form = form_in(pages.get("/edit/pages/plan").text) | {"text": "# Plan\n\nTyped\n"}
    asked = pages.post("/delete/pages/plan.md", data={"confirmed": ""})
    assert (notebook.root / "pages/plan.md").exists()
    shown(pages.post("/delete/pages/plan.md", data=fields_of(asked.text)), "Done: deleted pages/plan.md")
    shown(pages.get("/history/pages/plan.md"), "The note is gone")
    kept = form_in(shown(pages.post("/edit/pages/plan.md", data=form), status=404))
    assert kept["text"] == "# Plan\n\nTyped\n"
    pages.post("/note-undo", data={"id": "pages/plan.md"})
    pages.post("/edit/pages/plan.md", data=kept)
    assert (notebook.root / "pages/plan.md").read_text() == "# Plan\n\nTyped\n"


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"a\r\nb\r\n", ""),
        (b"a\nb", ""),
        (b"\xff\xfe", "not UTF-8"),
        (b"a\x00b", "NUL"),
        (b"a\r\nb\n", "in different ways"),
        (b"a\rb\n", "in different ways"),
    ],
)
def test_a_text_that_a_browser_would_change_is_not_edited(
    notebook: Notebook, pages: TestClient, raw: bytes, reason: str
) -> None:
    assert reason in why_not_here(raw)
    write(notebook, "pages/odd.md", raw)
    shown(pages.get("/edit/pages/odd.md"), reason, status=422 if reason else 200)


def test_a_prompt_file_beyond_its_cap_is_saved_only_on_purpose(notebook: Notebook, pages: TestClient) -> None:
    form = form_in(pages.get("/edit/runtime/reminders").text)
    form["text"] += "".join(f"- [ ] Call number {number} of the many mills by the river\n" for number in range(900))
    refused = shown(pages.post("/edit/runtime/reminders.md", data=form), 'name="allow_over_cap"', status=409)
    assert form_in(refused)["text"] == form["text"]
    shown(pages.post("/edit/runtime/reminders.md", data=form | {"allow_over_cap": "true"}), "Done: saved")


def test_a_form_without_its_base_saves_nothing(notebook: Notebook, pages: TestClient) -> None:
    form = form_in(pages.get("/edit/pages/plan").text) | {"text": "Gone"}
    for base in ("", "x", packed("another text")):
        shown(pages.post("/edit/pages/plan.md", data=form | {"base": base}), status=400)
    shown(pages.post("/edit/pages/plan.md", data=form | {"keep": "mine", "mine": "x"}), status=400)
    assert unpacked(packed("ä\r\n")) == "ä\r\n"
    assert (notebook.root / "pages/plan.md").read_text() == "# Plan\n\nStart small.\n"


@pytest.mark.parametrize(
    ("address", "form"),
    [
        ("/note-check", {"id": "pages/list.md", "entry_match": "Buy rope"}),
        ("/rename/pages/plan.md", {"to": "pages/list.md", "confirmed": "pages/list.md"}),
        ("/reminders/add", {"section": "Today", "text": "Buy rope"}),
    ],
)
def test_undo_takes_back_nothing_that_was_written_since(
    notebook: Notebook, pages: TestClient, address: str, form: dict[str, str]
) -> None:
    path = "runtime/reminders.md" if "section" in form else "pages/list.md"
    if "id" in form:
        write(notebook, path, "# List\n\n- [ ] Buy rope\n")
    _, undo = undo_of(pages.post(address, data=form).text)
    write(notebook, path, (notebook.root / path).read_text() + "\nMuch work.\n")
    shown(pages.post("/note-undo", data=undo), status=409)
    assert "Much work." in (notebook.root / path).read_text()


def test_a_note_is_renamed_with_its_links_after_a_dry_run(notebook: Notebook, pages: TestClient) -> None:
    write(notebook, "pages/one.md", "# One\n\nSee [[pages/plan]].\n")
    asked = pages.post("/rename/pages/plan.md", data={"to": "pages/scheme", "links": "true"})
    confirmed = fields_of(shown(asked, "Nothing has been changed yet", "<ins>"))
    assert (notebook.root / "pages/plan.md").exists()
    done = pages.post("/rename/pages/plan.md", data=confirmed)
    assert str(done.url).partition("?")[0].endswith("/note/pages/scheme.md")
    assert "scheme" in (notebook.root / "pages/one.md").read_text()
    pages.post("/note-undo", data={"id": "pages/scheme.md"})
    assert "[[pages/plan]]" in (notebook.root / "pages/one.md").read_text()
    shown(pages.post("/rename/pages/plan.md", data={"to": "pages/one"}), "already exists", status=400)


def test_history_shows_who_changed_which_words_and_restores(notebook: Notebook, pages: TestClient) -> None:
    write(notebook, "pages/times.md", "# Times\n\nThe ferry leaves at nine today.\n")
    for hour in ("ten", "noon"):
        content = f"The ferry leaves at {hour} today."
        notebook.notes.update("pages/times", SCRIBE, content=content, reason="<i>fog</i>")
    last = ("<del>ten</del><ins>noon</ins>", "agent:scribe", "&lt;i&gt;fog&lt;/i&gt;")
    first = re.findall(r'name="rev" value="([0-9a-f]+)"', shown(pages.get("/history/pages/times"), *last))[-1]
    shown(pages.get(f"/history/pages/times?since={first}"), "<del>nine</del><ins>noon</ins>")
    shown(pages.get(f"/history/pages/times?rev={first}"), "Times")
    here = {"Referer": f"{pages.base_url}/history/pages/times.md"}
    digest = notebook.read("pages/times").digest
    given = {"id": "pages/times.md", "rev": first, "expected_digest": digest}
    answer = pages.post("/note-undo", data=given, headers=here)
    assert "nine" in notebook.read("pages/times").text
    assert "/history/pages/times.md" in str(answer.url)
    shown(pages.post("/note-undo", data=given, headers=here), status=409)  # changed since
    shown(pages.get("/history/pages/times?rev=ffff"), status=404)


def test_activity_shows_edits_and_refusals_by_agent_kind_and_day(notebook: Notebook, pages: TestClient) -> None:
    notebook.notes.update("pages/plan", SCRIBE, content="Start tiny.")
    with pytest.raises(Exception, match="owner"):
        notebook.notes.edit("runtime/reminders", "write", SCRIBE, content="x")
    notebook.notes.update("pages/hostile", content="By the owner")
    every: dict[str, tuple[bool, bool, bool]] = {
        "": (True, True, True),
        "?agent=scribe": (True, True, False),
        "?agent=owner": (False, False, True),
        "?kind=refused": (False, True, False),
        "?kind=edit&agent=scribe": (True, False, False),
        "?day=2001-02-03": (False, False, False),
        "?day=nonsense": (True, True, True),
    }
    for query, wanted in every.items():
        text = pages.get(f"/activity{query}").text.partition('id="events"')[2]
        found = "/note/pages/plan.md" in text, ">refused<" in text, "/note/pages/hostile.md" in text
        assert found == wanted, query
    event = next(each for each in reversed(notebook.core.events.read()) if each["path"] == "pages/plan.md")
    opened = shown(pages.get(f"/activity?open={event['id']}"), "<del>small.</del><ins>tiny.</ins>")
    given = fields_of(opened.partition(f"event-{event['id']}")[2].partition("</form>")[0])
    answer = pages.post("/note-undo", data=given, headers={"Referer": f"{pages.base_url}/activity?agent=scribe"})
    assert "/activity?agent=scribe" in str(answer.url)
    assert "small" in notebook.read("pages/plan").text


def test_the_links_of_a_note_are_a_picture_and_a_list(notebook: Notebook, pages: TestClient) -> None:
    write(notebook, "pages/one.md", "---\ntitle: One <b>\n---\nSee [[plan]].\n")
    write(notebook, "pages/two.md", "# Two\n\nSee [[one]] and [[one]] and [[nowhere]].\n")
    near = shown(pages.get("/graph/pages/plan"), "One &lt;b&gt;")
    far = shown(pages.get("/graph/pages/plan?hops=2"), 'href="/note/pages/two.md">Two</a>')
    assert ("Two" in near.partition("<svg")[2], far.count('class="tip')) == (False, 2)
    (notebook.root / "pages/new.md").write_text("# New\n")  # the index does not have it yet
    for note in ("facts/core", "pages/new.md"):
        shown(pages.get(f"/graph/{note}"), "no links")


@pytest.mark.parametrize("text", ["", "one\r\ntwo", "- ~\n- @@\n+ x\n\x1eq", "ä " * 3000, "\n".join("ab" * 900)])
def test_differences_are_bounded_and_say_what_they_say(text: str) -> None:
    from notebook_sync.files.edits import unified_diff

    found = difference_of(unified_diff(text, f"new words\n{text}", "a.md"))
    assert len(found.lines) <= 400
    added: Any = [piece for line in found.lines for piece in line.pieces if piece[0] == "ins"]
    assert "new words" in "".join(words for _, words in added)
    assert difference_of("").lines == ()


def test_a_change_far_within_a_line_is_not_shown_as_none() -> None:
    words = "ab " * 4000
    found = difference_of(f"--- a.md\n+++ a.md\n@@ -1 +1 @@\n-{words}old\n+{words}new\n")
    assert found.is_cut
    assert [line.kind for line in found.lines if not line.is_place] == ["del", "ins"]
