"""The pages as a browser without JavaScript has them: lists, forms, dry runs, errors."""

import html
import re
from typing import Any

import pytest
from starlette.testclient import TestClient

from notebook_sync import Notebook
from notebook_sync.notebook import load_operations
from notebook_sync.registry import OPERATIONS
from notebook_sync.services.finding import list_notes
from notebook_sync.surfaces.dashboard import browse
from notebook_sync.surfaces.dashboard.forms import NOT_ASKED
from notebook_sync.surfaces.dashboard.shell import state_of
from notebook_sync.surfaces.dashboard.tables import PAGES, address_of
from tests.surfaces.dashboard.conftest import shown, texts_of
from tests.surfaces.serving import bytes_of

load_operations()
FORMS = sorted({(address_of(page, words), words) for page in PAGES for words in page.operations})
LISTS = sorted({page.path for page in PAGES if page.listing})
FRAGMENT = {"Accept": "text/fragment"}


def fields_of(text: str) -> dict[str, str]:
    """The hidden fields of the last form of a page."""
    form = text.rpartition("<form")[2]
    found = re.findall(r'type="hidden" name="([^"]*)" value="([^"]*)"', form)
    return {html.unescape(name): html.unescape(value) for name, value in found}


def undo_of(text: str) -> tuple[str, dict[str, str]]:
    """Where the form of a message is sent, and its fields."""
    form = text.partition("data-toast")[2].partition("</form>")[0]
    action = re.search(r'action="([^"]+)"', form)
    assert action, text
    return action[1], fields_of(form)


def test_a_list_is_a_page_and_a_fragment(pages: TestClient) -> None:
    for path in (*LISTS, "/statistics"):
        current = () if path == "/private/notes" else ('aria-current="page"',)
        shown(pages.get(path), "<nav", *current)
        assert "<nav" not in shown(pages.get(path, headers=FRAGMENT), "<h1>")


def test_a_form_asks_for_every_argument_of_its_operation(pages: TestClient) -> None:
    for address, words in FORMS:
        text = shown(pages.get(address))
        asked = set(re.findall(r'name="(\w+)"', text.partition("<main")[2])) - {"back"}
        assert asked == {name for name in OPERATIONS[words].hints if name not in NOT_ASKED}
        for name in asked:
            assert f'for="{name}"' in text or f'name="{name}" value="true"' in text


def test_an_empty_form_is_answered_by_a_page(pages: TestClient) -> None:
    for address, _ in FORMS:
        needs_more = "(required)" in pages.get(address).text
        answer = pages.post(address, data={"back": "/"})
        assert answer.status_code < 500, address
        assert "<h1>" in answer.text
        assert not needs_more or (answer.status_code in (400, 422) and 'role="alert"' in answer.text), address


@pytest.mark.parametrize("group", ["facts", "memories", "stream", "channels"])
def test_every_operation_of_a_service_has_a_page(group: str) -> None:
    on_pages = {words for page in PAGES for words in (page.listing, page.search, *page.operations)}
    assert {name for name, each in OPERATIONS.items() if each.service == group} <= on_pages


def test_a_form_is_done_and_the_next_page_says_so_once(notebook: Notebook, pages: TestClient) -> None:
    before = f"{pages.base_url}/facts?scope=all"
    given = {"content": "Oil is sold by the quay", "importance": "high"}
    answer = pages.post("/facts/fact-add", data=given, headers={"Referer": before}, follow_redirects=False)
    assert answer.status_code == 303
    to = answer.headers["location"]
    assert to.startswith("/facts?scope=all&done=")
    shown(pages.get(to), "Done: add a fact", "Oil is sold by the quay")
    assert "Done:" not in pages.get(to).text
    assert any("Oil is sold" in each.content for each in notebook.facts.list().results)


def test_asking_only_for_the_head_of_a_form_does_nothing(notebook: Notebook, pages: TestClient) -> None:
    for address, _ in FORMS:
        assert pages.head(address).status_code == 200, address
    assert "roll back" not in pages.get("/checkpoints").text.casefold()  # none was made


def test_a_row_action_is_taken_back_by_its_undo(notebook: Notebook, pages: TestClient) -> None:
    fact = next(each for each in notebook.facts.list().results if "ferry" in each.content)
    text = pages.post("/facts/fact-archive", data={"fact": fact.id}).text
    assert "ferry" not in text.partition('id="rows"')[2]
    action, undo = undo_of(text)
    assert action == "/facts/fact-restore"
    assert "ferry" in pages.post(action, data=undo).text.partition('id="rows"')[2]


def test_a_wrong_value_comes_back_with_the_error_and_what_was_typed(pages: TestClient) -> None:
    answer = pages.post("/facts/fact-add", data={"content": "A <b> fact", "importance": "great"})
    shown(answer, 'role="alert"', "A &lt;b&gt; fact", 'value="great"', status=400)


def test_what_can_be_tried_is_shown_first_and_done_when_confirmed(notebook: Notebook, pages: TestClient) -> None:
    notebook.facts.add("The ferry leaves at nine o'clock")
    first = fields_of(shown(pages.post("/facts/fact-decay", data={"back": "/facts"}), "Nothing has been changed yet"))
    shown(pages.post("/facts/fact-decay", data=first, follow_redirects=False), status=303)
    wrong = pages.post("/facts/fact-decay", data=first | {"confirmed": "other"})
    assert "no longer what was shown" in wrong.text


def test_each_dry_run_is_the_same_when_it_is_confirmed(notebook: Notebook, pages: TestClient) -> None:
    for address, words in FORMS:
        operation = OPERATIONS[words]
        if "dry_run" in operation.hints and "(required)" not in pages.get(address).text:
            tried = pages.post(address, data={"back": "/"})
            if tried.status_code == 200:  # what needs a model is refused
                assert "no longer" not in pages.post(address, data=fields_of(tried.text)).text, address


def test_a_checkpoint_is_rolled_back_after_its_dry_run(notebook: Notebook, pages: TestClient) -> None:
    pages.post("/checkpoints/checkpoint-create", data={"name": "before"})
    notebook.stream.log("A line that goes")
    id = notebook.stream.checkpoints().results[0].id
    asked = shown(pages.post("/checkpoints/rollback", data={"id": id}))
    assert any(each.content == "A line that goes" for each in notebook.stream.show().results)
    shown(pages.post("/checkpoints/rollback", data=fields_of(asked), follow_redirects=False), status=303)
    assert not any(each.content == "A line that goes" for each in notebook.stream.show().results)


def test_a_token_is_shown_once_and_revoked_after_a_question(notebook: Notebook, pages: TestClient) -> None:
    made = pages.post("/tokens/token-add", data={"name": "scribe", "kind": "task"})
    token = re.search(r'class="shown">([^<]+)<', made.text)
    assert token
    assert notebook.admin.session_of_token(token[1])
    assert token[1] not in pages.get("/tokens").text
    asked = pages.post("/tokens/token-revoke", data={"name": "scribe"})
    assert notebook.admin.session_of_token(token[1])
    shown(pages.post("/tokens/token-revoke", data=fields_of(asked.text)))
    assert not notebook.admin.session_of_token(token[1])


def test_a_new_note_leads_to_the_editor(pages: TestClient) -> None:
    answer = pages.post("/new/create", data={"title": "Lamp & oil", "content": "It burns *oil*.\r\nTwice."})
    assert str(answer.url).partition("?")[0].endswith("/edit/pages/lamp-oil.md")
    shown(answer, "It burns *oil*.\nTwice.")
    shown(pages.get("/note/pages/lamp-oil"), "<h1>Lamp &amp; oil</h1>", "<em>oil</em>")


def test_a_box_is_ticked_and_unticked(notebook: Notebook, pages: TestClient) -> None:
    text = pages.get("/note/pages/hostile").text
    digest = re.search(r'name="expected_digest" value="([^"]+)"', text)
    assert digest
    given = {"id": "pages/hostile.md", "expected_digest": digest[1], "entry_match": "Buy rope"}
    shown(pages.post("/note-check", data=given), 'aria-checked="true" aria-label="Buy rope"')
    assert "- [x] Buy rope" in notebook.read("pages/hostile").text
    shown(pages.post("/note-check", data=given), status=409)  # the text has changed
    pages.post("/note-undo", data={"id": "pages/hostile.md"})
    assert "- [ ] Buy rope" in notebook.read("pages/hostile").text


def test_long_lists_have_pages(notebook: Notebook, pages: TestClient) -> None:
    for number in range(120):
        notebook.stream.log(f"Line {number} of many")
    seen = re.findall(r"Line \d+ of many", "".join(texts_of(pages, "/stream", "Next page")))
    assert len(seen) == len(set(seen)) == 120


def test_an_error_is_a_page_that_says_what_to_do(pages: TestClient) -> None:
    missing = ("/nowhere", "/note/none", "/note/../../etc/passwd", "/file/notebook.toml", "/file/none.png")
    for path, status in {**dict.fromkeys(missing, 404), "/facts?scope=none": 400, "/logout": 405}.items():
        shown(pages.get(path), "<html", 'role="alert"', status=status)


def test_a_fault_is_a_page_that_says_nothing_of_it(pages: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("secret words")

    monkeypatch.setattr("notebook_sync.surfaces.dashboard.shell.call", fail)
    assert "secret words" not in shown(pages.get("/facts"), "<html", status=500)


def test_pictures_are_shown_as_pictures_only(notebook: Notebook, pages: TestClient) -> None:
    picture = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
    (notebook.root / "pages/a b.svg").write_text(picture)
    answer = pages.get("/file/pages/a b.svg")
    assert answer.text == picture
    assert answer.headers["content-type"] == "image/svg+xml"
    assert "sandbox" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    (notebook.root / "pages/photograph.png").write_bytes(bytes(3_000_000))  # more than a note may have
    assert len(pages.get("/file/pages/photograph.png").content) == 3_000_000


def test_the_palette_finds_what_there_is(pages: TestClient) -> None:
    wanted = {
        "plan": ("note", "Plan"),
        "rope chain": ("memory", "Rope over chain"),
        "ferry": ("fact", "The ferry leaves at nine"),
        "odile": ("rule", "Odile: draft only"),
        "tokens": ("command", "Tokens"),
        "merge facts": ("command", "Merge facts that say the same, in these or other words"),
    }
    for query, entry in wanted.items():
        results = pages.get("/palette", params={"q": query}).json()["results"]
        assert entry in {(each["kind"], each["title"]) for each in results}


def test_looking_writes_nothing(notebook: Notebook, pages: TestClient) -> None:
    def state() -> Any:
        uses = [each.access_count for each in notebook.facts.list().results]
        return bytes_of(notebook.root), notebook.core.events.read(limit=1000), uses

    before = state()
    for path in (
        *LISTS,
        "/statistics",
        *("/note/pages/plan", "/edit/pages/plan", "/history/pages/plan", "/graph/pages/plan", "/activity"),
        *("/notes", "/notes?query=plan"),
        "/palette?q=ferry",
        "/palette?q=rope",
        "/memories?query=rope",
    ):
        pages.get(path)
    assert state() == before


def test_a_page_names_the_state_that_it_was_made_from(
    notebook: Notebook, pages: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def list_and_change(*args: Any, **kwargs: Any) -> Any:
        found = list_notes(*args, **kwargs)
        (notebook.root / "pages/late.md").write_text("# Late\n")
        notebook.sync()
        return found

    monkeypatch.setattr(browse, "list_notes", list_and_change)
    text = pages.get("/notes").text
    assert "late.md" not in text
    assert f'data-state="{state_of(notebook.core)}"' not in text  # so the page is fetched again
