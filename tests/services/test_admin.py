"""Looking after a notebook: sync and what goes with it, status, verify, doctor, events, and following the files."""

import itertools
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from unittest.mock import Mock

import pytest

from notebook_sync import Notebook, Session
from notebook_sync.errors import FollowLocked, NotPermitted, WouldDeleteEverything
from notebook_sync.files import git
from notebook_sync.files.git import run_git
from notebook_sync.files.locks import FollowLock
from notebook_sync.registry import OPERATIONS, as_json
from notebook_sync.services.admin import Check
from notebook_sync.services.core import Core
from notebook_sync.sync.watch import WatchEvent
from tests.services.conftest import FILES, OWNER, SCRIBE, add_settings, assert_raises, on_redis, write_files
from tests.waiting import eventually

OFF = '[search]\nembeddings = "off"\n'


def exit_of(words: str, result: object) -> int:
    return OPERATIONS[words].exit_code(result)


@pytest.fixture
def unsynced(root: Path) -> Iterator[Notebook]:
    with Notebook.open(root) as notebook:
        yield notebook


def test_the_first_sync_counts_reports_and_dumps(unsynced: Notebook) -> None:
    assert "the notes are not indexed yet; run: notebook-sync sync" in unsynced.admin.status().attention
    write_files(unsynced.root, {"pages/broken.md": "---\ntitle: [\n---\nx\n"})
    (unsynced.root / "pages/big.md").write_bytes(b"x" * (3 << 20))
    report = unsynced.admin.sync()
    assert (report.added, report.hints) == (len(FILES), [])
    assert {each["path"] for each in report.failed} == {"pages/big.md", "pages/broken.md"}
    assert exit_of("sync", report) == 1
    again = as_json(unsynced.admin.sync())
    assert again["failed"] == report.failed
    assert (again["added"], again["unchanged"] > 0, again["targets"]) == (0, True, [])
    assert (unsynced.core.place.state / "dump/index.jsonl").exists()


def test_a_bare_folder_is_synced_with_a_hint_and_embedded(folder: Path) -> None:
    write_files(folder, {"Idea.md": "# Idea\n\nA ferry.\n"})
    with Notebook.find(folder, adopt=True) as notebook:
        report = notebook.admin.sync()
        assert (report.embedded, len(report.hints)) == (1, 2)
        assert report.hints[1].endswith(f"notebook-sync init {folder}")
        assert sorted(path.name for path in folder.iterdir()) == [".notebook", "Idea.md"]
        assert notebook.admin.sync().hints == []
        assert notebook.admin.status().search == [
            {"name": "wordllama", "setting": "embeddings", "behind": 0, "trouble": ""}
        ]


def test_a_lost_folder_deletes_nothing_unless_it_is_meant(notebook: Notebook) -> None:
    for path in [*notebook.root.rglob("*.md")]:
        path.unlink()
    assert_raises(WouldDeleteEverything, notebook.admin.sync)
    assert notebook.admin.sync(allow_empty=True).deleted == len(FILES) - 1


def test_verify_rebuild_and_repair(notebook: Notebook) -> None:
    assert exit_of("verify", notebook.admin.verify()) == 0
    (notebook.root / "pages/ferry.md").write_text("# Boat\n")
    found = notebook.admin.verify()
    assert (found.consistent, [each["path"] for each in found.differences]) == (False, ["pages/ferry.md"])
    assert exit_of("verify", found) == 1
    assert notebook.admin.verify(repair=True).consistent
    assert (notebook.admin.rebuild().failed, notebook.admin.verify().consistent) == ([], True)


def test_status_shows_what_matters(notebook: Notebook) -> None:
    write_files(notebook.root, {"runtime/reminders.md": "## Today\n- Call\n", "pages/broken.md": "---\nid: [\n---\n"})
    notebook.admin.sync()
    status = notebook.admin.status()
    assert status.notes == {"pages": 4, "research_notes": 1, "facts": 1, "runtime": 3, "channels": 2}
    assert (status.facts, status.root, status.read_only) == (1, str(notebook.root), False)
    assert status.state == str(notebook.core.place.state)
    assert status.only_in_index["stream"] >= 1
    assert status.dumped_at is not None
    assert status.prompt["external"]["tokens"] < status.prompt["task"]["tokens"] < status.prompt["owner"]["tokens"]
    assert [each["path"] for each in status.stale] == ["pages/broken.md"]
    assert any(line.startswith("runtime/reminders.md:2: has no checkbox") for line in status.attention)
    assert any(line.startswith("pages/broken.md: ") for line in status.attention)
    assert (status.follower, exit_of("status", status)) == (None, 0)
    numbers = notebook.admin.numbers()
    assert numbers["notes"] == ("Notes in the index", 11)
    assert all(isinstance(float(value), float) for _, value in numbers.values())


def test_status_counts_what_agents_did_and_names_conflict_copies(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(notebook.root, {"pages/a (conflicted copy 2026-01-01).md": "# Copy\n", "facts/core 2.md": "- A copy\n"})
    notebook.admin.sync()
    notebook.stream.log("The pilot came aboard", SCRIBE)
    assert_raises(NotPermitted, notebook.admin.events, SCRIBE)
    assert_raises(NotPermitted, notebook.stream.log, "A guest", Session.external())
    found = {each["agent"]: each for each in notebook.admin.status().agents}
    assert (found["scribe"]["refused"], found["scribe"]["days"][:6]) == (1, [0] * 6)
    assert (found["unknown"]["refused"], found["unknown"]["days"][6]) == (1, 1)
    assert {"owner", "notebook-sync", ""}.isdisjoint(found)
    assert notebook.admin.status().conflicts == ["facts/core 2.md", "pages/a (conflicted copy 2026-01-01).md"]
    now = notebook.core.now()
    monkeypatch.setattr(Core, "now", lambda _: now + timedelta(days=3))
    (later,) = [each for each in notebook.admin.status().agents if each["agent"] == "unknown"]
    assert (later["days"], later["refused"]) == ([0, 0, 0, 1, 0, 0, 0], 0)


@pytest.fixture
def nobody() -> str:
    """Where no server listens."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        return f"127.0.0.1:{closed.getsockname()[1]}"


def test_a_server_that_does_not_answer_costs_an_exit_code_and_nothing_else(notebook: Notebook, nobody: str) -> None:
    write_files(notebook.root, {"notebook.toml": f'[refs]\nurl = "redis://{nobody}"\n{OFF}', "pages/n.md": "x\n"})
    report = notebook.admin.sync()
    assert (report.added, exit_of("sync", report)) == (1, 4)
    assert (nobody in report.targets[0]["trouble"], report.warnings) == (True, [])
    status = notebook.admin.status()
    assert (exit_of("status", status), status.targets[0]["kind"]) == (4, "redis")
    assert notebook.admin.numbers()["up_redis"][1] == 0


def test_sync_publishes_and_verify_compares(notebook: Notebook, redis_url: str, redis_prefix: str) -> None:
    add_settings(notebook.root, on_redis(redis_url, redis_prefix))
    report = notebook.admin.sync()
    assert (report.warnings, report.targets[0]["behind"], exit_of("sync", report)) == ([], 0, 0)
    verdict = notebook.admin.verify()
    assert (verdict.consistent, verdict.redis, verdict.mongodb) == (True, len(FILES) - 4, None)
    assert notebook.admin.verify(repair=True).consistent


def test_config_masks_secrets_and_names_sources(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MONGODB_URL", "mongodb://u:secret@h/db")
    with Notebook.open(notebook.root) as opened:
        rows = {row["key"]: row for row in opened.admin.config().results}
    assert rows["mirror.url"] == {"key": "mirror.url", "value": "mongodb://***@h/db", "source": "MONGODB_URL"}
    assert (rows["notebook.timezone"]["source"], rows["prompt.trust"]["source"]) == ("notebook.toml", "default")


def test_events_are_listed_and_followed_as_any_process_records_them(notebook: Notebook) -> None:
    following, seen = notebook.admin.follow_events(), list[dict[str, object]]()
    thread = threading.Thread(target=lambda: seen.append(next(following)))
    thread.start()
    with Notebook.open(notebook.root) as other:
        eventually(lambda: other.core.events.record("refused", SCRIBE, path="a") or seen, "an event is followed")
    thread.join()
    events = notebook.core.events.read()
    assert notebook.core.index.events.one(events[0]["id"])
    assert [event["id"] for event in notebook.core.events.read(events[0]["id"])] == [each["id"] for each in events[1:]]
    assert next(notebook.admin.follow_events(since="0"))["path"] == "a"
    rows = notebook.admin.events(limit=1)
    assert (rows.results[0]["kind"], rows.results[0]["agent"], rows.degraded) == ("refused", "scribe", None)
    assert "may be missing" in str(notebook.admin.events(since="nothing").degraded)


def test_events_are_followed_after_the_clock_was_set_back(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    for path, now in (("a", 2 << 60), ("b", 1 << 60), ("c", 1 << 60)):
        monkeypatch.setattr(time, "time_ns", lambda now=now: now)
        notebook.core.events.record("refused", SCRIBE, path=path)
    assert [event["path"] for event in itertools.islice(notebook.admin.follow_events(since="0"), 3)] == ["a", "b", "c"]


def test_following_skips_no_event_however_many_are_new(notebook: Notebook) -> None:
    notebook.core.events.record("refused", SCRIBE, path="first")
    following = notebook.core.events.follow(threading.Event(), since="0")
    assert next(following)["path"] == "first"
    rows = [{"id": f"f{number:05}", "key": f"{number}", "at": notebook.core.now()} for number in range(1_500)]
    notebook.core.index.events.put(rows)
    assert [event["id"] for event in itertools.islice(following, 1_500)] == [row["id"] for row in rows]


def test_the_programs_files_are_closed_to_other_users(notebook: Notebook) -> None:
    token = notebook.admin.show_token().token
    tokens, copies = notebook.core.place.state / "tokens.json", notebook.root / ".notebook"
    tokens.chmod(0o644)
    copies.chmod(0o755)
    assert [line.partition(" was open")[0] for line in notebook.admin.sync().warnings] == [str(copies), str(tokens)]
    assert (notebook.admin.session_of_token(token), notebook.admin.sync().warnings) == (OWNER, [])


# ---- doctor


def wrong(notebook: Notebook) -> dict[str, Check]:
    return {each.check: each for each in notebook.admin.doctor().results if not each.ok}


def test_a_sound_notebook_is_right_and_left_as_it_was(notebook: Notebook) -> None:
    before = sorted(path.name for path in notebook.root.iterdir())
    found = notebook.admin.doctor()
    assert [each for each in found.results if not each.ok] == []
    names = {"settings", "python", "git", "folder", "state", "editors", "servers"}
    assert names <= {each.check for each in found.results}
    assert (sorted(path.name for path in notebook.root.iterdir()), exit_of("doctor", found)) == (before, 0)


def test_settings_in_error_are_named_and_the_rest_is_still_checked(folder: Path) -> None:
    with Notebook.open(write_files(folder, {"notebook.toml": "[prompt\n", "a.md": "x"})) as notebook:
        found = wrong(notebook)
        assert "notebook.toml:1" in found["settings"].message
        assert found["settings"].next == f"edit {folder / 'notebook.toml'}"
        assert exit_of("doctor", notebook.admin.doctor()) == 1


def test_a_full_disk_is_named(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _: Mock(f_flag=0, f_bavail=8, f_frsize=4096))
    assert {name: "full" in each.message for name, each in wrong(notebook).items()} == {"folder": True, "state": True}


def test_what_editors_and_sync_clients_left_behind(notebook: Notebook) -> None:
    names = ("pages/.ferry.md.swp", "pages/.idea.md.icloud", "facts/core.sync-conflict-20261120-093012-ABCD123.md")
    write_files(notebook.root, dict.fromkeys(names, ""))
    found = [each for each in notebook.admin.doctor().results if each.check == "editors"]
    assert [(name in each.message, bool(each.next)) for name, each in zip(sorted(names), found, strict=True)]
    assert {each.next.split(",")[0] for each in found} >= {"download them in the sync client", "recover it"}


def test_a_repository_that_git_does_not_trust(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_git(root, "init")
    monkeypatch.setitem(git._OWN_VARIABLES, "GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    with Notebook.open(root) as notebook:
        assert f"git config --global --add safe.directory {root}" in wrong(notebook)["git"].message


@pytest.mark.parametrize(
    ("is_own", "flags", "helps"),
    [(True, 0, "chmod u+w"), (False, 0, "as root: chown -R"), (False, os.ST_RDONLY, "mount it for writing")],
)
def test_a_folder_that_cannot_be_written(
    root: Path, monkeypatch: pytest.MonkeyPatch, is_own: bool, flags: int, helps: str
) -> None:
    (root / ".notebook").mkdir()
    owner, allowed = root.stat().st_uid, os.access
    monkeypatch.setattr(os, "geteuid", lambda: owner if is_own else owner + 1)
    monkeypatch.setattr(os, "statvfs", lambda _: Mock(f_flag=flags, f_bavail=1 << 20, f_frsize=4096))
    # Tests may run as root, who may do everything.
    monkeypatch.setattr(os, "access", lambda path, mode: path != root / ".notebook" and allowed(path, mode))
    with Notebook.open(root) as notebook:
        assert wrong(notebook)["folder"].next.startswith(helps)


def test_a_server_that_does_not_answer_is_a_kind_of_its_own(notebook: Notebook, nobody: str) -> None:
    write_files(notebook.root, {"notebook.toml": f'[refs]\nurl = "redis://u:secret@{nobody}"\n{OFF}'})
    found = notebook.admin.doctor()
    (server,) = (each for each in found.results if not each.ok)
    assert (server.check, "secret" in str(found), exit_of("doctor", found)) == ("servers", False, 4)


def test_a_state_folder_that_cannot_be_made(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTEBOOK_STATE_DIR", "/dev/null/state")
    with Notebook.open(root) as notebook:
        assert "NOTEBOOK_STATE_DIR" in wrong(notebook)["state"].next


# ---- following


class Following:
    """The events of `watch`, in a thread."""

    def __init__(self, notebook: Notebook) -> None:
        self.stop, self.events = threading.Event(), list[WatchEvent]()
        events = notebook.admin.watch(stop=self.stop)
        self._thread = threading.Thread(target=lambda: self.events.extend(events))
        self._thread.start()
        self.wait_for("ready")

    def wait_for(self, kind: str, count: int = 1) -> WatchEvent:
        def found() -> list[WatchEvent]:
            return [event for event in self.events if event.kind == kind][count - 1 :]

        return eventually(found, f"{kind} is reported")[0]

    def close(self) -> None:
        self.stop.set()
        self._thread.join(20)
        assert not self._thread.is_alive()


@pytest.fixture
def following(notebook: Notebook) -> Iterator[Following]:
    with closing(Following(notebook)) as made:
        yield made
    # A watcher that gave up waiting for the lock may hold it for a moment.
    eventually(lambda: FollowLock(notebook.core.place).holder() is None, "the lock is free again")


def test_following_reports_saves_the_prompt_reminders_and_trouble(notebook: Notebook, following: Following) -> None:
    write_files(notebook.root, {"pages/new.md": "# New\n"})
    assert following.wait_for("batch").fields["paths"] == ["pages/new.md"]
    write_files(notebook.root, {"runtime/reminders.md": "## Today\n\n- [ ] Pay [due: 2026-01-01]\n"})
    changed = following.wait_for("prompt").fields
    assert (changed["stable_changes"], changed["tokens"] != changed["tokens_before"]) == (True, True)
    due = following.wait_for("reminder_due").fields
    assert (due["text"], due["state"], due["when"]) == ("Pay", "overdue", "2026-01-01")
    write_files(notebook.root, {"pages/broken.md": "---\nid: [\n---\n"})
    stale = eventually(lambda: notebook.admin.status().stale, "the broken note is stale")
    assert [each["path"] for each in stale] == ["pages/broken.md"]
    assert notebook.admin.status().follower is not None
    assert_raises(FollowLocked, list, itertools.islice(notebook.admin.watch(), 1))


def test_following_goes_on_with_the_last_good_settings(notebook: Notebook, following: Following) -> None:
    good = (notebook.root / "notebook.toml").read_text()
    write_files(notebook.root, {"notebook.toml": "[prompt\n", "pages/new.md": "# New\n"})
    assert "notebook.toml:1" in following.wait_for("trouble").fields["message"]
    following.wait_for("batch")
    write_files(notebook.root, {"notebook.toml": good, "pages/other.md": "# Other\n"})
    following.wait_for("recovered")


def test_following_publishes_what_is_new(notebook: Notebook, redis_url: str, redis_prefix: str) -> None:
    add_settings(notebook.root, on_redis(redis_url, redis_prefix))
    with closing(Following(notebook)) as following:
        following.wait_for("published")
        write_files(notebook.root, {"pages/new.md": "# New\n"})
        following.wait_for("published", 2)
        report = notebook.admin.sync()  # waits for the follower instead of publishing itself
        assert (report.warnings, report.targets[0]["behind"]) == ([], 0)
