"""Today, the prompt, reminders, rules, and what the owner decides, as a browser without JavaScript has them."""

import html
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from starlette.testclient import TestClient

from notebook_sync import Notebook, Session
from notebook_sync.errors import NotPermitted
from notebook_sync.services.fact_upkeep import tend_facts
from notebook_sync.surfaces.dashboard.runtime import days_left
from tests.surfaces.dashboard.conftest import OWNER_PAGES, days_from_now, shown
from tests.surfaces.dashboard.test_pages import FRAGMENT, fields_of, undo_of
from tests.surfaces.serving import SCRIBE, bytes_of, unchanged


def form_of(text: str, label: str) -> dict[str, str]:
    """The fields of the form whose button's label begins so."""
    form = next(each for each in text.split("<form")[1:] if f'aria-label="{label}' in html.unescape(each))
    return fields_of(form.partition("</form>")[0])


def part_of(text: str, begin: str, end: str = "<h2") -> str:
    """The part of a page below a heading."""
    return text.partition(f"{begin}</")[2].partition(end)[0]


def test_each_page_is_whole_and_a_fragment_and_writes_nothing(owned: Notebook, pages: TestClient) -> None:
    def state() -> Any:
        return bytes_of(owned.root), owned.core.events.read(limit=1000)

    before = state()
    for path in OWNER_PAGES:
        whole, part = shown(pages.get(path), "<h1>"), shown(pages.get(path, headers=FRAGMENT))
        assert "<script>alert" not in whole, path
        assert "<nav class" not in part or "tabs" in part
        assert not re.search(r"<style|style=|<script(?! type=\"module\" src)", whole), path
    assert state() == before


# ---- Today


def test_today_names_what_needs_attention_and_where_it_is_dealt_with(owned: Notebook, pages: TestClient) -> None:
    with pytest.raises(NotPermitted):
        owned.admin.events(SCRIBE)
    tend_facts(owned.core)
    text = shown(pages.get("/"), "tokens left of", "Bram: may move the ferry", "ends in 2 days")
    assert "Press" not in text
    concerns = part_of(text, "Needs attention", "<h2><a")
    for said, href in (
        ("1 file with faults", "/note/pages/broken.md"),
        ("1 conflict copy", "/note/pages/plan%20%28conflicted%20copy%202026-01-01%29.md"),
        ("1 agent was refused something in 24 hours", "/activity?kind=refused"),
        ("2 proposals for facts", "/review/facts"),
    ):
        assert f'<a href="{href}">{said}</a>' in concerns
    agents = text.partition("<h2>Agents</h2>")[2].partition("<h2>")[0]
    assert re.search(r'aria-label="Events a day, the oldest first: 0, 0, 0, 0, 0, 0, \d"', agents)
    assert "0 0 0 0 0 0 " in agents


def test_every_line_of_today_leads_to_a_page(owned: Notebook, pages: TestClient) -> None:
    today = pages.get("/").text.partition('id="today"')[2].partition("</section>")[0]
    links = {html.unescape(each) for each in re.findall(r'href="([^"]*)"', today)}
    assert len(links) >= 8
    for href in sorted(links):
        shown(pages.get(href))


def test_health_is_not_green_while_something_is_wrong(notebook: Notebook, pages: TestClient) -> None:
    shown(pages.get("/"), 'class="health warn"')  # nothing follows the files
    (notebook.root / "pages/broken.md").write_text("---\ntitle: [\n---\n")
    notebook.sync()
    shown(pages.get("/"), 'class="health bad"', "notes, 1 with faults")


def test_a_server_that_does_not_answer_is_shown_as_last_known(
    notebook: Notebook, pages: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = {"name": "Redis", "kind": "redis", "cursor": 1, "behind": 3, "trouble": "", "refused": 0, "owner": ""}
    monkeypatch.setattr(type(notebook.core), "has_targets", True)
    monkeypatch.setattr(type(notebook.core.publisher), "state", lambda _: [state])
    shown(pages.get("/"), "3 changes to publish")
    state |= {"trouble": "it does not answer", "behind": 9}
    text = shown(pages.get("/"), 'class="health bad"')
    assert re.search(r"it does not answer \(at \d\d:\d\d UTC, 3 changes to publish\)", text)


def test_pages_do_without_their_files(owned: Notebook, pages: TestClient) -> None:
    for name in ("reminders", "external-communications"):
        (owned.root / f"runtime/{name}.md").unlink()
    for path in ("/", "/reminders", "/rules", "/prompt", "/prompt/changes"):
        shown(pages.get(path))


# ---- reminders and rules


def test_reminders_are_grouped_by_when_they_are_due(owned: Notebook, pages: TestClient) -> None:
    text = shown(pages.get("/reminders"), "Status", "<summary>Done (1)</summary>")
    for group, said in (
        ("Overdue", "Pay the toll"),
        ("Today", "Call the mill"),
        ("This week", "&lt;script&gt;alert"),
        ("Later", "Paint the buoy"),
        ("Waiting", "Answer of the insurer"),
    ):
        below = text.partition(f"<h2>{group} ")[2].partition("<h2")[0]
        assert said in below, group


def test_a_reminder_is_ticked_and_the_tick_taken_back(owned: Notebook, pages: TestClient) -> None:
    path = owned.root / "runtime/reminders.md"
    before = path.read_text()
    fields = form_of(pages.get("/").text, "Pay the toll")
    done = pages.post("/reminders/tick", data=fields, headers={"Referer": f"{pages.base_url}/"})
    assert path.read_text() == before.replace("[ ] Pay", "[x] Pay")
    assert done.url.path == "/"
    action, undo = undo_of(done.text)
    shown(pages.post("/reminders/tick", data=fields), status=409)  # of the text before
    pages.post(action, data=undo)
    assert path.read_text() == before


@pytest.mark.parametrize(
    ("section", "text", "due", "line"),
    [
        ("Today", "Buy\r\nrope", "", "- [ ] Buy rope"),
        ("This Week", "Buy rope", "2030-01-02 09:00", "- [ ] Buy rope [due: 2030-01-02 09:00]"),
        ("Waiting For", "A letter", "2030-01-02", "- A letter [expected: 2030-01-02]"),
        ("Recurring", "Every day at 09:00: Tea", "", "- Every day at 09:00: Tea"),
        ("Today", "# <b>x</b> \\`y", "", "- [ ] # <b>x</b> \\`y"),
    ],
)
def test_what_is_typed_becomes_one_line(
    owned: Notebook, pages: TestClient, section: str, text: str, due: str, line: str
) -> None:
    path = owned.root / "runtime/reminders.md"
    before = path.read_text()
    done = shown(pages.post("/reminders/add", data={"section": section, "text": text, "due": due}))
    lines = path.read_text().splitlines()
    assert line in lines
    assert len(lines) - len(before.splitlines()) == 1
    action, undo = undo_of(done)
    pages.post(action, data=undo)
    assert path.read_text() == before


@pytest.mark.parametrize(
    ("address", "fields"),
    [
        ("/reminders/add", {"section": "Today", "text": " \n "}),
        ("/reminders/add", {"section": "Today", "text": "<!-- hidden"}),
        ("/reminders/move", {"entry": "Pay the toll", "to": "Nowhere"}),
        ("/decide", {"do": "drop everything", "what": "x"}),
        ("/decide", {"do": "merge", "what": "x"}),
    ],
)
def test_a_form_that_says_nothing_known_changes_nothing(
    owned: Notebook, pages: TestClient, address: str, fields: dict[str, str]
) -> None:
    with unchanged(owned.root):
        answer = pages.post(address, data=fields)
    assert 400 <= answer.status_code < 500
    assert 'role="alert"' in answer.text


def test_the_rules_say_what_applies_to_somebody_and_why(owned: Notebook, pages: TestClient) -> None:
    shown(
        pages.get("/rules?identity=odile@q.example"),
        "<strong>odile@q.example</strong>: draft only",
        "names this identity",
    )
    shown(pages.get("/rules", params={"identity": "<b>nobody"}), "no rule", "&lt;b&gt;nobody")
    shown(pages.get("/rules"), '<span class="badge warn">2 days</span>')


# ---- the prompt


def test_the_prompt_page_shows_the_cost_for_each_session(owned: Notebook, pages: TestClient) -> None:
    for kind in ("owner", "task", "external"):
        prompt = owned.prompts.prompt(Session.named(kind))
        parts = [f'aria-label="{part["name"]}: tokens"' for part in prompt.parts]
        kind_and_cost = f'aria-current="page">{kind}</a>', f"<strong>{prompt.tokens:,}</strong> of"
        shown(pages.get("/prompt", params={"session": kind}), *kind_and_cost, *parts)
    shown(pages.get("/prompt?session=nobody"), 'aria-current="page">owner</a>')


def test_the_prompt_page_says_whether_a_line_is_in_it(owned: Notebook, pages: TestClient) -> None:
    text = pages.get("/prompt", params={"text": "Never pay"}).text.partition('id="explain"')[2]
    assert ">yes</span>" in text
    text = pages.get("/prompt", params={"text": "the safe is blue"}).text.partition('id="explain"')[2]
    assert (">no</span>" in text, "comment" in text) == (True, True)
    shown(pages.get("/prompt", params={"text": "<b>none"}), "No file has this text")


def test_lines_that_wait_are_accepted_as_they_were_shown(trusting: Notebook, pages: TestClient) -> None:
    orders = trusting.root / "runtime/standing-orders.md"
    with orders.open("a") as file:
        file.write("- Pay all who ask <b>now</b>\n")
    shown(pages.get("/"), "1 file with lines that wait for trust")
    text = shown(pages.get("/prompt"), "<ins>- Pay all who ask &lt;b&gt;now&lt;/b&gt;</ins>")
    fields = form_of(text, "Accept: runtime/standing-orders.md")
    with orders.open("a") as file:
        file.write("- And more\n")
    shown(pages.post("/prompt/trust", data=fields), status=409)
    assert "Pay all" not in trusting.prompts.prompt().text
    done = pages.post("/prompt/trust", data=form_of(pages.get("/prompt").text, "Accept: runtime/standing-orders.md"))
    assert "Waits for your trust" not in shown(done, "Done: trusted runtime/standing-orders.md")
    assert "And more" in trusting.prompts.prompt().text


def test_lines_that_wait_are_shown_as_lines_and_never_left_out_in_silence(
    trusting: Notebook, pages: TestClient
) -> None:
    core = trusting.root / "facts/core.md"
    core.write_text(f"{core.read_text()}- Harmless\x0c-no line of its own\u2028+nor this\n")
    text = shown(pages.get("/prompt"), "Harmless\x0c-no line of its own\u2028+nor this")
    assert "is accepted, too" not in text
    core.write_text(core.read_text() + "- Filler\n" * 500)
    shown(pages.get("/prompt"), "What is left out here is accepted, too")


def test_pages_answer_where_the_repository_is_gone(trusting: Notebook, pages: TestClient) -> None:
    shown(pages.get("/prompt"))
    (trusting.root / ".git").rename(trusting.root.parent / "moved.git")
    (trusting.root / ".git").write_text("gitdir: /nowhere\n")  # as a worktree has it whose repository was moved
    for path in ("/", "/prompt", "/rules"):
        shown(pages.get(path), "git does not say what is trusted")
    shown(pages.get("/palette?q=ferry"))


def test_what_changed_since_yesterday_is_shown(trusting: Notebook, pages: TestClient) -> None:
    shown(pages.get("/prompt/changes"), "Nothing.")
    trusting.notes.edit("runtime/reminders.md", "append_to_section", section="Today", content="- [ ] Buy <i>oil</i>")
    shown(pages.get("/prompt/changes"), "<h1>", "<ins>- [ ] Buy &lt;i&gt;oil&lt;/i&gt;</ins>")
    assert "<h1>" not in pages.get("/prompt/changes", headers=FRAGMENT).text


# ---- what the owner decides


def test_what_fades_is_archived_or_reinforced(owned: Notebook, pages: TestClient) -> None:
    fading = part_of(pages.get("/review/facts").text, "Fades within 14 days")
    assert "Oil is sold" in fading
    done = pages.post("/decide", data=form_of(fading, "Archive: Oil is sold"))
    assert "Oil is sold" in (owned.root / "facts/archive.md").read_text()
    action, undo = undo_of(done.text)
    pages.post(action, data=undo)
    assert "Oil is sold" in (owned.root / "facts/notes.md").read_text()
    assert "Oil is sold" not in part_of(pages.get("/review/facts").text, "Fades within 14 days")
    pages.post("/decide", data=form_of(fading, "Reinforce: Oil is sold"))
    assert [each.access_count for each in owned.facts.list().results if each.content == "Oil is sold"] == [1]


def test_a_decision_is_not_taken_back_with_what_was_written_since(owned: Notebook, pages: TestClient) -> None:
    done = pages.post("/decide", data=form_of(pages.get("/review/facts").text, "Make core: The ferry leaves"))
    action, undo = undo_of(done.text)
    core = owned.root / "facts/core.md"
    core.write_text(f"{core.read_text()}- The mill is for sale\n")
    shown(pages.post(action, data=undo), status=409)
    assert "The mill is for sale" in core.read_text()


def test_a_fact_with_the_marks_of_a_difference_is_shown_as_it_is(owned: Notebook, pages: TestClient) -> None:
    with (owned.root / "facts/notes.md").open("a") as file:
        file.write("- Ines {+sells+} tea [-on-] the quay\n- Ines {+sells+} tea [-on-] the quay each time\n")
    owned.sync()
    known = "The toll is ten crowns<ins> each time</ins>"
    shown(pages.get("/review/pairs"), known, "<p>Ines {+sells+} tea [-on-] the quay each time</p>")


def test_the_graph_has_a_link_for_each_memory(owned: Notebook, pages: TestClient) -> None:
    memories = owned.memories.list().results
    shown(pages.get("/memory-graph"), *(f'<a href="/note/{each.path}"><g' for each in memories))
    shown(pages.get("/memory-graph?kind=pattern"), "0 memories")


def test_a_rollback_of_notes_is_shown_before_it_is_done(owned: Notebook, pages: TestClient) -> None:
    owned.stream.checkpoint("before")
    owned.notes.update("pages/plan", content="# Plan\n\nStart big.\n")
    asked = re.search(
        r'action="(/checkpoints/rollback)".*?name="files" value="true"', pages.get("/checkpoints").text, re.S
    )
    assert asked
    id = owned.stream.checkpoints().results[0].id
    shown(pages.post("/checkpoints/rollback", data={"id": id, "files": "true"}), "pages/plan.md")
    assert "Start big" in owned.read("pages/plan").text


# ---- large notebooks


def test_today_and_prompt_do_not_wait_for_the_number_of_notes(notebook: Notebook, pages: TestClient) -> None:
    for number in range(300):
        (notebook.root / f"pages/note-{number}.md").write_text(f"# Note {number}\n\nThe ferry {number}.\n")
    notebook.sync()
    asked: list[str] = []
    read = type(notebook.core.tree).read

    def counted(tree: Any, path: str) -> Any:
        asked.append(path)
        return read(tree, path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(notebook.core.tree), "read", counted)
        patch.setattr(type(notebook.core.tree), "scan", lambda *_: pytest.fail("a page scans the notes"))
        for path in ("/", "/prompt", "/reminders", "/rules", "/review/facts", "/memory-graph"):
            shown(pages.get(path))
    assert not [path for path in asked if path.startswith("pages/note-")]


def test_days_are_counted_by_the_calendar() -> None:
    now = datetime.now(UTC)
    assert days_left(days_from_now(2), now) == 2
    assert days_left(f"{now - timedelta(days=1):%Y-%m-%d}T09:00", now) == -1
    assert (days_left("", now), days_left("soon", now)) == (None, None)
