"""`notebook-sync serve` as a process: it answers, follows the files, and ends when it is asked to."""

import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from notebook_sync import Notebook
from notebook_sync.errors import UsageError
from notebook_sync.files.locks import FollowLock
from notebook_sync.surfaces.http.serve import serve
from tests.processes import run_command, start_command
from tests.surfaces.serving import OWNER, get, token_of
from tests.waiting import eventually


@contextlib.contextmanager
def serving(root: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process, and the address that it prints."""
    process = start_command("-C", root, "serve", "--port", "0", *arguments)
    assert process.stdout is not None
    with process:
        try:
            words = process.stdout.readline().split()
            assert words[:1] == ["serving"], process.stderr.read() if process.stderr else ""
            yield process, words[1]
        finally:
            process.kill()


def owner_token(root: Path) -> str:
    with Notebook.open(root) as notebook:
        return token_of(notebook, OWNER)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_follows_the_files_and_ends_at_a_signal(root: Path, number: signal.Signals) -> None:
    with serving(root) as (process, url):
        token = owner_token(root)
        assert get(f"{url}/health").json()["ok"] is True

        def found(query: str) -> bool:
            return bool(get(f"{url}/search?query={query}&mode=keyword", token).json()["results"])

        eventually(lambda: found("small"), "the notes are indexed")
        (root / "pages/lantern.md").write_text("# Lantern\n\nIt burns paraffin.\n")
        eventually(lambda: found("paraffin"), "a save is followed")
        process.send_signal(number)
        assert process.wait(30) == 0
        out, errors = process.communicate()
        assert "Traceback" not in out + errors


def test_it_ends_although_a_stream_is_open(root: Path) -> None:
    with serving(root, "--no-watch") as (process, url):
        headers = {"Authorization": f"Bearer {owner_token(root)}"}
        with httpx2.stream("GET", f"{url}/events", headers=headers, timeout=60) as answer:
            assert answer.status_code == 200
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        assert "Traceback" not in process.communicate()[1]


def test_without_watching_the_index_is_left_as_it_is(root: Path) -> None:
    with serving(root, "--no-watch") as (_, url), Notebook.open(root) as notebook:
        assert urlsplit(url).hostname == "127.0.0.1"  # on this machine only
        assert get(f"{url}/notes", token_of(notebook, OWNER)).json()["results"] == []
        assert FollowLock(notebook.core.place).holder() is None


def test_a_second_server_waits_to_follow_until_the_first_has_ended(root: Path) -> None:
    with serving(root) as (first, _), Notebook.open(root) as notebook:
        lock = FollowLock(notebook.core.place)
        leading = eventually(lock.holder, "the first follows")["pid"]
        with serving(root) as (_, url):
            assert get(f"{url}/health").json()["ok"] is True
            first.terminate()
            first.wait(30)
            eventually(lambda: (lock.holder() or {}).get("pid", leading) != leading, "the second follows")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--port", "{taken}"], "cannot listen at 127.0.0.1, port {taken}"),
        (["--host", "no.such.host.invalid"], "cannot listen at no.such.host.invalid"),
        (["--port", "70000"], "no port 70000"),
        (["--port", "-1"], "no port -1"),
    ],
)
def test_a_port_that_cannot_be_used_is_a_clear_error(root: Path, arguments: list[str], says: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        taken = listener.getsockname()[1]
        given = [each.format(taken=taken) for each in arguments]
        done = run_command("-C", root, "serve", *given)
    assert done.returncode == 2
    assert says.format(taken=taken) in done.stderr
    assert "Traceback" not in done.stderr


def test_python_callers_get_the_error(root: Path) -> None:
    with Notebook.open(root) as notebook, pytest.raises(UsageError):
        serve(notebook, port=70_000)


def test_without_a_dashboard_there_is_no_login(root: Path) -> None:
    with serving(root, "--no-watch", "--no-dashboard") as (_, url):
        assert get(f"http://{urlsplit(url).netloc}/login").status_code == 404


@pytest.mark.parametrize("is_terminal", [True, False])
def test_it_prints_a_link_to_the_dashboard_on_a_terminal_and_how_to_get_one_in_a_log(
    root: Path, is_terminal: bool
) -> None:
    reader, writer = os.openpty() if is_terminal else os.pipe()
    with (
        os.fdopen(reader) as lines,
        start_command("-C", root, "serve", "--port", "0", "--no-watch", stdout=writer) as process,
    ):
        os.close(writer)
        try:
            server, printed = urlsplit(lines.readline().split()[1]), lines.readline()
            if not is_terminal:
                assert "code=" not in printed
                printed = run_command("-C", root, *printed.split("notebook-sync ")[1].split()).stdout
            link = urlsplit(next(word for word in printed.split() if word.startswith("http")))
            answer = get(f"http://{server.netloc}{link.path}?{link.query}", Host=link.netloc)
        finally:
            process.kill()
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert link.port == server.port
