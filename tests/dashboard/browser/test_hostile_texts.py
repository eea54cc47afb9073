"""Nothing that a note says runs, is taken for markup, or makes the browser ask elsewhere: on any page, of any kind of
note, wherever the text stands."""

from __future__ import annotations

import os
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, expect

from tests.dashboard.browser import hostile
from tests.dashboard.browser.serving import Address, serving
from tests.dashboard.browser.tab import WIDE, Tab
from tests.prompt.corpora import naughty

# What must be in no page: what somebody planted, what runs, what leads to a script, what loads from elsewhere.
_FOUND = """(mark) => {
  const never = `#${mark}, iframe, object, embed, base, style, [style], script:not([src])`;
  const found = new Set(document.querySelectorAll(never));
  for (const each of document.querySelectorAll('*')) {
    const isEvent = [...each.attributes].some(({name}) => name.startsWith('on'));
    const leads = each.href?.baseVal ?? each.href ?? each.action ?? '';
    const isForeign = each.src && new URL(each.src).origin !== location.origin;
    if (isEvent || isForeign || /^(javascript|vbscript|data|file|blob):/i.test(leads)) found.add(each);
  }
  return Array.from(found, (each) => each.outerHTML);
}"""
_PLANT = f"""document.querySelector('main').innerHTML =
  '<img id={hostile.MARK} src=/x onerror=alert(1)><img src=https://{hostile.ELSEWHERE}/a.png>'"""
_NAMED = [quote(f"pages/{name}.md") for name in hostile.NAMES]
_EVERY = [
    "pages/said.md",
    "pages/linked.md",
    "pages/code.md",
    "pages/headed-1.md",
    "code_snippets/said.md",
    "research_notes/said.md",
    "facts/notes.md",
    "runtime/standing-orders.md",
    "memories/decision/2026-02-11-said.md",
    *_NAMED,
]
_QUERY = quote(f'"><img id={hostile.MARK} src=x onerror=alert(1)>')
_PATHS = [
    "/",
    "/prompt",
    f"/prompt?session=owner&agent={_QUERY}&task={_QUERY}&include=notes",
    f"/prompt/line?session=owner&line={_QUERY}",
    *(f"/notes/{each}" for each in _EVERY),
    f"/notes/{quote(hostile.NAMES[0])}-unreadable.md",
    f"/notes/{_QUERY}",
    "/notes",
    "/notes?folder=pages",
    f"/notes?query=alert+{_QUERY}",
    *(f"/{what}/pages/said.md" for what in ("edit", "history", "rename", "delete")),
    f"/edit/pages/{quote(hostile.NAMES[0])}.md",
    "/edit/runtime/standing-orders.md",
    f"/new?collection=pages&title={_QUERY}",
    f"/rules?identity={_QUERY}&channel={_QUERY}",
    "/rules/orders",
    "/reminders",
    "/memory?scope=all",
    f"/memory?query=alert+{_QUERY}&verify={_QUERY}",
    "/memory/facts/fading",
    "/memory/facts/alike",
    "/memory/memories",
    "/memory/graph",
    "/memory/review",
    "/memory/figures",
    "/memory/channels?agent=herald",
    "/memory/stream",
    f"/memory/recall?query=alert+{_QUERY}",
    "/memory/checkpoints",
    f"/login?next={_QUERY}",
    f"/{_QUERY}",
]


@pytest.fixture(scope="module")
def hostile_notebook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    root = tmp_path_factory.mktemp("hostile") / "notebook"
    hostile.make(root, naughty() if os.environ.get("NOTEBOOK_TEST_BLNS") else ())
    with serving(root) as address:
        yield address


@pytest.fixture(scope="module")
def unguarded(chromium: Browser, hostile_notebook: Address) -> Iterator[Tab]:
    """A browser that runs and loads whatever a page has in it, whatever the page's policy says."""
    found = Tab.of(chromium.new_context(viewport=WIDE, bypass_csp=True), hostile_notebook)
    found.log_in()
    yield found
    found.page.context.close()


@pytest.mark.parametrize("path", _PATHS, ids=range(len(_PATHS)))
def test_texts_are_shown_and_do_nothing(unguarded: Tab, path: str) -> None:
    unguarded.open(path)
    expect(unguarded.page.locator("h1").first).to_be_visible()
    expect(unguarded.page.locator("[aria-busy=true]")).to_have_count(0)
    assert unguarded.page.evaluate(_FOUND, hostile.MARK) == []
    unguarded.assert_calm()


def test_what_a_page_would_let_through_is_noticed(unguarded: Tab) -> None:
    unguarded.open("/")
    with unguarded.page.expect_event("dialog"):
        unguarded.page.evaluate(_PLANT)
    assert len(unguarded.page.evaluate(_FOUND, hostile.MARK)) == 2
    assert unguarded.outside == [f"https://{hostile.ELSEWHERE}/a.png"]
    unguarded.outside.clear()
    unguarded.dialogs.clear()
    unguarded.complaints.clear()


def test_what_a_page_would_let_through_neither_runs_nor_loads(chromium: Browser, hostile_notebook: Address) -> None:
    with chromium.new_context() as context:
        reached: list[str] = []
        context.route(f"https://{hostile.ELSEWHERE}/**", lambda route: reached.append(route.request.url))
        guarded = Tab.of(context, hostile_notebook)
        guarded.log_in()
        with guarded.page.expect_event("console", lambda said: "Content Security Policy" in said.text):
            guarded.page.evaluate(_PLANT)
        assert (reached, guarded.dialogs) == ([], [])
