"""The consent page in Chromium: another site leads to it, and it leads back to the client."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
from playwright.sync_api import BrowserContext, Route
from starlette.types import Receive, Scope, Send

from notebook_sync import Notebook
from notebook_sync.surfaces.http.app import asgi
from tests.surfaces.serving import on_a_port
from tests.surfaces.test_oauth import BACK, asked, register


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
