"""A page in a real browser, and everything about it that must never be: requests to elsewhere, dialogs, complaints."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, ConsoleMessage, Dialog, Error, Page, Request, Response, ViewportSize

from notebook_sync.folder import FOLDER
from notebook_sync.logins import Logins
from notebook_sync.tokens import Tokens
from tests.dashboard.browser.serving import Address

WIDE: Final = ViewportSize(width=1200, height=800)
NARROW: Final = ViewportSize(width=375, height=740)
PATIENCE_MS: Final = 20_000
# What Chromium writes to its console of an answer with such a status, though a page is shown.
_OF_AN_ANSWER: Final = "Failed to load resource: the server responded with a status of "
# And of no answer: a server that is away is what some tests are about, and what each ends with.
_OF_NO_ANSWER: Final = "Failed to load resource: net::ERR_"


@dataclass
class Tab:
    """The one page of a context. `outside` are requests to anywhere but the server, which are not let through;
    `complaints` what the browser's console says, what a script threw, and pages that the server could not make."""

    page: Page
    address: Address
    outside: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, context: BrowserContext, address: Address) -> Tab:
        """A new one, which is watched from its first request on."""
        context.set_default_timeout(PATIENCE_MS)
        tab = cls(context.new_page(), address)
        tab.page.on("request", tab._look_at)
        tab.page.on("dialog", tab._dismiss)
        tab.page.on("console", tab._listen)
        tab.page.on("pageerror", tab._thrown)
        tab.page.on("response", tab._answered)
        return tab

    def log_in(self, then: str = "/") -> None:
        """By the link that `serve` prints."""
        self.page.goto(self.address.link(then))

    def end_login(self) -> None:
        """Revoke the cookie, as a log-out in another tab does."""
        (cookie,) = self.page.context.cookies()
        host = urlsplit(self.address.url).hostname
        Logins(Tokens(self.address.root / FOLDER)).end(f"{host} {cookie['value']}")

    def open(self, path: str) -> None:
        """Go to a page of the dashboard."""
        self.page.goto(self.address.url + path)

    def assert_calm(self) -> None:
        """Nothing happened that must never, since this was asked last."""
        found = {"outside": [*self.outside], "dialogs": [*self.dialogs], "complaints": [*self.complaints]}
        for each in (self.outside, self.dialogs, self.complaints):
            each.clear()
        assert not any(found.values()), found

    def _look_at(self, request: Request) -> None:
        place = urlsplit(request.url)
        if f"{place.scheme}://{place.netloc}" != self.address.url:
            self.outside.append(request.url)

    def _dismiss(self, dialog: Dialog) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def _listen(self, message: ConsoleMessage) -> None:
        is_of_ours = message.location["url"].startswith(self.address.url)
        is_known = message.text.startswith((_OF_AN_ANSWER, _OF_NO_ANSWER)) and is_of_ours
        if message.type in {"error", "warning"} and not is_known:
            self.complaints.append(f"{self.page.url}: {message.text}")

    def _thrown(self, error: Error) -> None:
        self.complaints.append(f"{self.page.url}: {error}")

    def _answered(self, response: Response) -> None:
        if response.status >= 500:
            self.complaints.append(f"{response.url}: status {response.status}")
