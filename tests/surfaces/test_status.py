"""`status` and `doctor`: an answer always, and the right one."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pymongo
import pytest
import redis

from notebook_sync import doctor
from notebook_sync.errors import BackendDown
from notebook_sync.mirror.sqlite import SqliteMirror
from notebook_sync.notebook import Notebook
from notebook_sync.operations.registry import plain
from notebook_sync.sessions import Session
from notebook_sync.surfaces.cli.main import run
from tests.servers import Server, start_mongod


def status(root: Path) -> dict[str, Any]:
    with Notebook.open(root) as notebook:
        told: dict[str, Any] = plain(notebook.admin.status())
        return told


def sync(root: Path) -> None:
    with Notebook.open(root) as notebook:
        notebook.sync()


def test_it_counts_what_the_mirror_has_not_seen(root: Path) -> None:
    assert status(root)["behind"] == 4
    sync(root)
    after = status(root)
    assert (after["behind"], after["lag_seconds"], after["refs"]["pending"]) == (0, 0, 0)
    assert after["mirror"]["notes"] == 4
    (root / "pages/new.md").write_text("New.\n")
    (root / "pages/plan.md").write_text("Changed.\n")
    (root / "runtime/reminders.md").unlink()
    late = status(root)
    assert late["behind"] == 3
    assert late["lag_seconds"] > 0


def test_a_file_from_the_future_has_no_negative_age(root: Path) -> None:
    sync(root)
    os.utime(root / "pages/plan.md", (2**33, 2**33))
    assert status(root)["behind"] == 1
    assert status(root)["lag_seconds"] == 0


def test_a_refused_file_is_stale_and_not_behind(root: Path) -> None:
    sync(root)
    (root / "pages/plan.md").write_text("---\ntitle: [\n---\nBroken.\n")
    sync(root)
    told = status(root)
    assert [one["path"] for one in told["stale"]] == ["pages/plan.md"]
    assert told["behind"] == 0


def test_token_use_is_that_of_the_prompt(root: Path) -> None:
    (root / "runtime/standing-orders.md").write_text(
        "".join(f"## Part {number}\n\n{'Be brief. ' * 60}\n\n" for number in range(40))
    )
    use = status(root)["prompt"]["runtime/standing-orders.md"]
    assert use["cap"] == 2000
    assert 0 < use["tokens"] <= 2000
    assert use["omitted"] > 0


def test_emptied_hot_memory_has_everything_pending(root: Path, redis_url: str, redis_prefix: str) -> None:
    settings = f'[refs]\nurl = "{redis_url}"\nprefix = "{redis_prefix}"\n'
    sync(root)
    (root / "notebook.toml").write_text(settings)
    assert status(root)["refs"]["pending"] == 4
    sync(root)
    assert status(root)["refs"]["pending"] == 0


def test_servers_that_hang_cost_their_own_line_only(root: Path, redis_to_break: Server) -> None:
    (root / "notebook.toml").write_text(
        f'[mirror]\nurl = "mongodb://me:s3cret@127.0.0.1:1/"\ntimeout_seconds = 0.2\n'
        f'[refs]\nurl = "redis://:s3cret@127.0.0.1:{redis_to_break.port}"\ntimeout_seconds = 0.2\n'
    )
    redis_to_break.pause()
    try:
        told = status(root)
        checks = {check.check: check for check in doctor.examine(root)}
    finally:
        redis_to_break.resume()
    assert not told["mirror"]["ok"]
    assert not told["refs"]["ok"]
    assert (told["behind"], told["refs"]["pending"]) == (None, None)
    assert told["prompt"]
    assert not checks["mirror"].ok
    assert not checks["refs"].ok
    assert "s3cret" not in f"{told} {checks}"


def test_a_mirror_that_goes_down_between_two_answers_is_down(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def down(_: object) -> str:
        raise BackendDown("SQLite (embedded)", "database is locked")

    monkeypatch.setattr(SqliteMirror, "store_id", down)
    told = status(root)
    assert told["mirror"] == {"name": "SQLite (embedded)", "ok": False, "error": "database is locked"}
    assert (told["behind"], told["refs"]["ok"], told["refs"]["pending"]) == (None, True, None)


def test_a_broken_embedded_file_is_told(root: Path) -> None:
    (root / ".notebook").mkdir(exist_ok=True)
    (root / ".notebook/mirror.db").write_bytes(b"not a database" * 1000)
    told = status(root)
    assert not told["mirror"]["ok"]
    assert ".notebook/ may be deleted" in told["mirror"]["error"]
    checks = {check.check: check for check in doctor.examine(root)}
    assert checks["mirror"].next.startswith("rm ")


def test_doctor_names_real_servers(
    root: Path, mongodb_url: str, mongo_database: str, redis_url: str, redis_prefix: str
) -> None:
    (root / "notebook.toml").write_text(
        f'[mirror]\nurl = "{mongodb_url}"\ndatabase = "{mongo_database}"\n'
        f'[refs]\nurl = "{redis_url}"\nprefix = "{redis_prefix}"\n'
    )
    told = {check.check: check for check in doctor.examine(root)}
    assert told["mirror"].ok
    assert "version 6" in told["mirror"].message
    assert told["refs"].ok
    assert "without the search module" in told["refs"].message


def test_doctor_knows_a_cluster(root: Path, redis_cluster_url: str, redis_prefix: str) -> None:
    (root / "notebook.toml").write_text(f'[refs]\nurl = "{redis_cluster_url}"\nprefix = "{redis_prefix}"\n')
    told = {check.check: check for check in doctor.examine(root)}
    assert told["refs"].ok
    assert told["refs"].message.endswith("a cluster, which is not searched")


def test_doctor_finds_nothing_wrong_with_a_new_notebook(tmp_path: Path) -> None:
    Notebook.init(tmp_path / "nb")
    checks = [check.as_dict() for check in doctor.examine(tmp_path / "nb")]
    assert all(check.keys() == {"check", "ok", "message", "next"} for check in checks)
    assert [check["check"] for check in checks if not check["ok"] or check["next"]] == []
    names = {check["check"] for check in checks}
    assert {"python", "sqlite", "git", "vocabulary", "settings", "folder", "clock", "events", "mirror", "refs"} <= names


def test_doctor_leaves_nothing_behind(root: Path) -> None:
    before = sorted(root.rglob("*"))
    checks = {check.check: check for check in doctor.examine(root)}
    assert checks["mirror"].ok
    assert "not made yet" in checks["mirror"].message
    assert checks["folder"].ok
    assert sorted(root.rglob("*")) == before


def test_a_locked_embedded_file_is_not_to_be_deleted(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sync(root)
    monkeypatch.setattr("notebook_sync.embedded._BUSY_SECONDS", 0.05)
    with closing(sqlite3.connect(root / ".notebook/mirror.db", isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        other.execute("DELETE FROM ref")
        told = status(root)["mirror"]
        checks = {check.check: check for check in doctor.examine(root)}
        other.rollback()
    assert told == {"name": "SQLite (embedded)", "ok": False, "error": "database is locked"}
    assert "no other program holds" in checks["mirror"].next


@pytest.mark.parametrize("url", ["localhost:27017", "mongodb://host:port/"])
def test_doctor_takes_for_an_address_what_sync_takes(root: Path, url: str) -> None:
    (root / "notebook.toml").write_text(f'[mirror]\nurl = "{url}"\n')
    checks = {check.check: check for check in doctor.examine(root)}
    assert not checks["mirror"].ok
    assert checks["mirror"].message.startswith("[mirror] url ")


def test_doctor_finds_a_user_who_may_only_look(root: Path) -> None:
    server = start_mongod()
    try:
        client: pymongo.MongoClient[Any]
        with pymongo.MongoClient(server.url) as client:
            for user, role in (("ann", "readAnyDatabase"), ("bob", "readWriteAnyDatabase")):
                client.admin.command(
                    {"createUser": user, "pwd": "s3cret", "roles": [role], "writeConcern": {"j": True}}
                )
        server.demand_login()
        for user, is_fit in (("", False), ("ann:s3cret@", False), ("bob:s3cret@", True)):
            url = f"mongodb://{user}127.0.0.1:{server.port}/"
            (root / "notebook.toml").write_text(f'[mirror]\nurl = "{url}"\n')
            (mirror,) = (check for check in doctor.examine(root) if check.check == "mirror")
            assert mirror.ok == is_fit, mirror
            assert "s3cret" not in str(mirror)
            assert is_fit or "requires authentication" in mirror.message or "not authorized" in mirror.message
        with pymongo.MongoClient(f"mongodb://bob:s3cret@127.0.0.1:{server.port}/") as client:
            assert "aether_notebook" not in client.list_database_names()
    finally:
        server.stop()


def test_doctor_is_content_with_a_redis_user_who_may_use_the_keys_alone(
    root: Path, redis_to_break: Server, redis_prefix: str
) -> None:
    with redis.Redis.from_url(redis_to_break.url) as client:
        client.execute_command("ACL", "SETUSER", "ann", "on", ">s3cret", "~*", "+@all", "-info")
    (root / "notebook.toml").write_text(
        f'[refs]\nurl = "redis://ann:s3cret@127.0.0.1:{redis_to_break.port}"\nprefix = "{redis_prefix}"\n'
    )
    (refs,) = (check for check in doctor.examine(root) if check.check == "refs")
    assert refs.ok
    assert "a version it does not tell" in refs.message


def test_doctor_says_what_to_do(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "notebook.toml").write_text('[prompt]\nencoding = "none_such"\n')
    checks = {check.check: check for check in doctor.examine(root)}
    assert not checks["vocabulary"].ok
    assert "cl100k_base" in checks["vocabulary"].next
    assert checks["git"].next == f"git -C {root} init"
    monkeypatch.setenv("PATH", str(root))
    assert "install git" in {check.check: check for check in doctor.examine(root)}["git"].next
    (root / "notebook.toml").write_text("[prompt\n")
    assert not doctor.examine(root)[-1].ok
    assert doctor.examine(root)[-1].check == "settings"
    assert doctor.examine(None)[-1].check == "notebook"


def test_doctor_counts_folders_against_the_limit(root: Path, tmp_path: Path) -> None:
    limits = tmp_path / "inotify"
    limits.mkdir()
    (limits / "max_user_watches").write_text("3\n")
    (check,) = doctor._watches(root, limits)
    assert not check.ok
    assert check.next == "sudo sysctl fs.inotify.max_user_watches=524288"


def commit(root: Path) -> None:
    for command in (
        ["init", "--quiet"],
        ["add", "--all"],
        ["-c", "user.name=Ines", "-c", "user.email=ines@ferry.example", "commit", "--quiet", "--message", "Begin"],
    ):
        subprocess.run(["git", "-C", str(root), *command], check=True)


def orders(sections: int) -> str:
    return "".join(f"## Part {number}\n\n{f'Rule {number} is brief. ' * 30}\n\n" for number in range(sections))


def test_it_tells_the_size_of_each_sessions_prompt(root: Path) -> None:
    (root / "notebook.toml").write_text("[prompt]\nmax_tokens = 9000\n")
    told = status(root)["sessions"]
    assert told.keys() == {"owner", "task", "external"}
    with Notebook.open(root) as notebook:
        for kind, use in told.items():
            prompt = notebook.prompt(Session.named(kind))
            assert (use["tokens"], use["revision"]) == (prompt.tokens, prompt.revision)
            assert use["max_tokens"] == 9000
            assert use["since_commit"] is None


def test_an_edit_by_hand_is_told_before_it_is_committed(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = root / "runtime/standing-orders.md"
    path.write_text(orders(8))
    commit(root)
    unchanged = status(root)["sessions"]["task"]["since_commit"]
    assert (unchanged["stable_changes"], unchanged["fell_out"]) == (False, [])
    path.write_text(orders(8) + f"## Last\n<!-- pin -->\n\n{'Be kind. ' * 400}\n")
    told = status(root)
    change = told["sessions"]["task"]["since_commit"]
    assert change["tokens_before"] < change["tokens_after"] == told["sessions"]["task"]["tokens"]
    assert change["stable_changes"]
    first = change["fell_out"][0]
    assert first["path"] == "runtime/standing-orders.md"
    assert first["anchor"] in told["prompt"]["runtime/standing-orders.md"]["left_out"]
    assert run(["-C", str(root), "status"]) == 0
    words = capsys.readouterr().out
    assert (
        f"edits    task: {change['tokens_before']:,} → {change['tokens_after']:,} tokens since the last commit" in words
    )
    assert f"edits    task: runtime/standing-orders.md#{first['anchor']} fell out: {first['tokens']} tokens" in words


def test_an_edit_of_the_settings_is_told_too(root: Path) -> None:
    (root / "runtime/standing-orders.md").write_text(orders(5))
    commit(root)
    (root / "notebook.toml").write_text("[prompt]\nmax_tokens_per_file = 100\n")
    change = status(root)["sessions"]["owner"]["since_commit"]
    assert change["tokens_after"] < change["tokens_before"]
    assert change["fell_out"]


@pytest.mark.parametrize("toml", ["[prompt\n", "[prompt]\nmax_tokens = 1\n"])
def test_settings_that_were_committed_broken_are_no_trouble(root: Path, toml: str) -> None:
    settings = (root / "notebook.toml").read_text()
    (root / "notebook.toml").write_text(toml)
    commit(root)
    (root / "notebook.toml").write_text(settings)
    assert status(root)["sessions"]["owner"]["since_commit"]["stable_changes"] is False
