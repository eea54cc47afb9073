"""The link that logs a browser in: what `serve` says on a terminal, and what `token link` prints."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from notebook_sync.surfaces.cli.main import run
from tests.dashboard.browser.serving import serving

OWN_HOST = "notebook-[0-9a-f]{32}.localhost"


def followed(link: str, client: httpx2.Client) -> httpx2.Response:
    """The answer to a link. Browsers know that *.localhost is this machine; not every system does."""
    host, colon, rest = link.removeprefix("http://").partition(":")
    assert re.fullmatch(OWN_HOST, host)
    return client.get(f"http://127.0.0.1:{rest}", headers={"Host": host + colon + rest.partition("/")[0]})


def test_on_a_terminal_the_second_line_of_serve_is_a_link_that_lets_in_once(root: Path) -> None:
    command = [sys.executable, "-m", "notebook_sync", "-C", str(root), "serve", "--port", "0", "--no-watch"]
    ours, theirs = pty.openpty()
    with (
        os.fdopen(ours, encoding="utf-8") as terminal,
        subprocess.Popen(command, stdout=theirs, stderr=subprocess.DEVNULL) as process,
    ):
        try:
            os.close(theirs)
            assert terminal.readline().startswith("serving on http://127.0.0.1:")
            said = re.fullmatch(r"dashboard: (\S+) \(good once, for ten minutes\)\n", terminal.readline())
            assert said is not None
            with httpx2.Client(trust_env=False, timeout=60) as client:
                assert [followed(said[1], client).status_code for _ in range(2)] == [303, 403]
        finally:
            process.kill()


def test_a_link_by_command_lets_in_while_the_server_runs(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(root) as address, httpx2.Client(trust_env=False, timeout=60) as client:
        assert run(["-C", str(root), "token", "link", "--port", str(address.port)]) == 0
        link = capsys.readouterr().out.strip()
        assert link.startswith(f"{address.url}/login?code=")
        assert followed(link, client).headers["Location"] == "/"


@pytest.mark.parametrize(
    ("settings", "arguments", "address"),
    [
        ("", [], f"http://{OWN_HOST}:8765/"),
        ('[server]\nhost = "::1"\nport = 9000\n', [], f"http://{OWN_HOST}:9000/"),
        ('[server]\nhost = "0.0.0.0"\nport = 0\n', ["--port", "9001"], f"http://{OWN_HOST}:9001/"),
        ("", ["--host", "ferry.example"], "http://ferry.example:8765/"),
    ],
)
def test_a_link_is_for_the_address_of_the_settings_or_the_one_that_is_named(
    root: Path, settings: str, arguments: list[str], address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "notebook.toml").write_text(settings)
    assert run(["-C", str(root), "token", "link", *arguments, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert re.match(f"{address}login[?]code=", told["link"])
    assert told["seconds"] == 600


@pytest.mark.parametrize("arguments", [["scribe"], ["--port", "0"], ["--port", "70000"]], ids=" ".join)
def test_a_link_to_nowhere_is_refused(root: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["-C", str(root), "token", "link", *arguments]) == 2
    assert capsys.readouterr().err.startswith("notebook-sync: ")
