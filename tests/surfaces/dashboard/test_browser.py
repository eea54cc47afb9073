"""The dashboard in Chromium: actions in place, live updates, keys, hostile notes, accessibility; and the consent page,
to which another site leads, and which leads back to the client."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect
from starlette.types import Receive, Scope, Send

from notebook_sync import Notebook
from notebook_sync.surfaces.dashboard.tables import PAGES
from notebook_sync.surfaces.http.app import asgi
from tests.surfaces.dashboard.conftest import Site, faults_of, logged_in
from tests.surfaces.serving import npm_file, on_a_port
from tests.surfaces.test_oauth import BACK, asked, register

WIDTHS = (1280, 768, 360)


def test_an_action_happens_in_place_and_is_taken_back(page: Page, site: Site) -> None:
    page.goto(f"{site.base}/facts")
    page.evaluate("window.isSame = true")
    page.get_by_role("button", name="Archive: The ferry leaves at nine").click()
    toast = page.locator(".toast")
    expect(toast).to_contain_text("Done: move a fact")
    expect(page.locator("#rows")).not_to_contain_text("ferry")
    toast.get_by_role("button", name="Undo").click()
    expect(page.locator("#rows")).to_contain_text("ferry")
    assert page.evaluate("window.isSame") is True
    expect(page.locator("main :focus")).to_have_count(1)


def test_a_form_is_saved_in_place_and_emptied(page: Page, site: Site) -> None:
    page.goto(f"{site.base}/facts")
    page.get_by_text("Add a fact", exact=False).first.click()
    page.get_by_label("Content (required)").fill("Lamps burn paraffin")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#rows")).to_contain_text("Lamps burn paraffin")
    expect(page.get_by_label("Content (required)")).to_have_value("")


def test_an_error_keeps_what_was_typed(page: Page, site: Site) -> None:
    page.goto(f"{site.base}/facts/fact-add")
    page.get_by_label("Content (required)").fill("Lamps burn paraffin")
    page.get_by_label("Importance").fill("great")
    page.get_by_role("button", name="Do it").click()
    expect(page.get_by_role("alert")).to_contain_text("importance")
    expect(page.get_by_label("Content (required)")).to_have_value("Lamps burn paraffin")


def test_what_can_be_tried_is_shown_before_it_is_done(page: Page, site: Site) -> None:
    page.goto(f"{site.base}/tokens")
    site.notebook.admin.add_token("scribe", kind="task")
    page.reload()
    page.get_by_role("button", name="Revoke: scribe").click()
    expect(page.get_by_role("heading", name="Revoke a token")).to_be_visible()
    page.get_by_role("main").get_by_role("button", name="Revoke a token").click()
    expect(page.locator("#rows")).not_to_contain_text("scribe")


def test_a_box_is_ticked_where_it_is(page: Page, site: Site) -> None:
    page.goto(f"{site.base}/note/pages/hostile")
    box = page.get_by_role("checkbox", name="Buy rope")
    expect(box).to_have_attribute("aria-checked", "false")
    box.click()
    expect(box).to_have_attribute("aria-checked", "true")
    expect(box).to_be_focused()


def test_what_happens_elsewhere_is_shown_and_focus_stays(page: Page, site: Site) -> None:
    with page.expect_response("**/live"):
        page.goto(f"{site.base}/facts")
    page.locator("input[name=query]").focus()
    page.keyboard.type("fer")
    site.notebook.facts.add("A new lamp is lit")
    expect(page.locator("#rows")).to_contain_text("A new lamp is lit")
    expect(page.locator("input[name=query]")).to_be_focused()
    expect(page.locator("input[name=query]")).to_have_value("fer")


def test_a_line_of_an_agent_appears_in_the_stream(page: Page, site: Site) -> None:
    with page.expect_response("**/live"):
        page.goto(f"{site.base}/stream")
    site.notebook.stream.log("The pilot came aboard")
    expect(page.locator("#rows")).to_contain_text("The pilot came aboard")


def test_the_palette_is_used_by_keys_alone(page: Page, site: Site) -> None:
    page.goto(f"{site.base}/facts")
    page.keyboard.press("Control+k")
    expect(page.locator("#palette-query")).to_be_focused()
    page.keyboard.type("rope over chain")
    expect(page.locator("#palette-found li[aria-selected=true]")).to_contain_text("Rope over chain")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Rope over chain")).to_be_visible()


def test_the_first_key_skips_to_the_page(page: Page, site: Site) -> None:
    page.goto(f"{site.base}/facts")
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to the page")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()


def test_who_was_logged_out_loses_nothing(page: Page, site: Site, context: BrowserContext) -> None:
    page.goto(f"{site.base}/facts/fact-add")
    page.get_by_label("Content (required)").fill("Lamps burn paraffin")
    context.clear_cookies()
    page.get_by_role("button", name="Do it").click()
    expect(page.locator(".toast")).to_contain_text("not logged in")
    expect(page.get_by_label("Content (required)")).to_have_value("Lamps burn paraffin")


def test_hostile_notes_run_nothing_and_ask_nobody(page: Page, site: Site) -> None:
    faults = faults_of(page, site)
    for path in ("/note/pages/hostile", "/note/pages/deep", "/facts", "/facts?query=script", "/palette?q=script"):
        page.goto(f"{site.base}{path}")
    page.goto(f"{site.base}/facts")
    page.keyboard.press("Control+k")
    page.keyboard.type("script")
    expect(page.locator("#palette-found")).to_contain_text("<script>")
    assert faults == []


def test_pages_have_no_accessibility_findings_and_fit(chromium: Browser, site: Site) -> None:
    paths = [*(each.path for each in PAGES), "/statistics", "/note/pages/hostile", "/facts/fact-decay", "/nowhere"]
    assert findings(chromium, site, paths) == []


def findings(chromium: Browser, site: Site, paths: Sequence[str]) -> list[tuple[str, str, str]]:
    """What axe finds on pages in light and dark, and where a page is wider than a window."""
    axe, found = npm_file("axe-core/axe.min.js").read_text(), []
    with logged_in(chromium, site, bypass_csp=True) as page:  # for axe alone
        for path in paths:
            page.emulate_media(color_scheme="light")
            page.goto(f"{site.base}{path}")
            page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
            page.evaluate(axe)
            violations: list[Any] = page.evaluate("axe.run().then((result) => result.violations)")
            page.emulate_media(color_scheme="dark")
            violations += page.evaluate("axe.run({runOnly: ['color-contrast']}).then((result) => result.violations)")
            found += [(path, each["id"], each["nodes"][0]["html"][:200]) for each in violations]
            for width in WIDTHS:
                page.set_viewport_size({"width": width, "height": 800})
                wide = page.evaluate("document.documentElement.scrollWidth")
                found += [(path, "wider than the window", f"{wide} at {width}")] if wide > width else []
    return found


@pytest.mark.parametrize("path", ["/facts", "/note/pages/hostile"])
def test_pages_work_without_javascript(chromium: Browser, site: Site, path: str) -> None:
    with logged_in(chromium, site, java_script_enabled=False) as page:
        page.goto(f"{site.base}{path}")
        name = "Archive: The ferry" if path == "/facts" else "Buy rope"
        button = page.get_by_role("checkbox", name=name) if "note" in path else page.get_by_role("button", name=name)
        button.click()
        expect(page.get_by_role("status").filter(has_text="Done:")).to_be_visible()
        page.get_by_role("button", name="Undo").click()
        expect(page.get_by_role("status").filter(has_text="Done:")).to_be_visible()


# ---- remote clients


def test_another_site_leads_through_the_login_to_the_consent_and_back(
    notebook: Notebook, context: BrowserContext
) -> None:
    apps: list[Any] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await apps[0](scope, receive, send)

    with on_a_port(app) as (_, port):
        link = notebook.admin.login_link(port)
        public = link.partition("/login")[0]
        apps.append(asgi(notebook, dashboard=True, public_url=public))
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
            request = asked(register(client), resource=f"{public}/mcp")
        page = context.new_page()

        def other_site(route: Route) -> None:
            body = f'<a href="{public}/authorize?{urlencode(request).replace("&", "&amp;")}">Connect</a>'
            route.fulfill(content_type="text/html", body=body)

        page.route("https://client.example/**", other_site)
        page.route(f"{BACK.partition('?')[0]}**", lambda route: route.fulfill(content_type="text/html", body="<p>Done"))
        page.goto("https://client.example/")
        page.get_by_role("link", name="Connect").click()
        page.get_by_label("The owner's token").fill(notebook.admin.show_token().token)
        page.get_by_role("button", name="Log in").click()
        page.get_by_label("Agent name").fill("far")
        page.get_by_role("button", name="Allow").click()
        page.get_by_text("Done").wait_for()
        assert parse_qs(urlsplit(page.url).query)["state"] == [request["state"]]
        # With the cookie, which a request from another site does not carry, no second login.
        page.goto("https://client.example/")
        page.get_by_role("link", name="Connect").click()
        page.get_by_role("button", name="Refuse").click()
        page.get_by_text("Done").wait_for()
        assert parse_qs(urlsplit(page.url).query)["error"] == ["access_denied"]
