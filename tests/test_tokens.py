"""Tokens: made on demand, readable to nobody else, worth a session each, and worthless once revoked."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from notebook_sync import Notebook, Session
from notebook_sync.errors import NotebookError, Refused, UsageError
from notebook_sync.tokens import FILE, Tokens


def test_the_owners_token_is_made_once(tmp_path: Path) -> None:
    token = Tokens(tmp_path / ".notebook").owner()
    assert Tokens(tmp_path / ".notebook").owner() == token
    assert len(token) >= 43
    assert Tokens(tmp_path / ".notebook").session_of(token) == Session.owner()


def test_the_folder_is_hidden_from_git_before_a_token_is_in_it(tmp_path: Path) -> None:
    Tokens(tmp_path / ".notebook").owner()
    assert (tmp_path / ".notebook" / ".gitignore").read_text() == "*\n"


@pytest.mark.parametrize("kind", ["task", "external"])
def test_an_agents_token_is_worth_its_session(tmp_path: Path, kind: str) -> None:
    tokens = Tokens(tmp_path)
    owner = tokens.owner()
    token = tokens.add("scribe", kind)
    assert tokens.session_of(token) == Session.named(kind, "scribe")
    assert tokens.session_of(owner) == Session.owner()


@pytest.mark.parametrize("token", ["", "x", "é", "\udcff", "a" * 10_000])
def test_what_is_no_token_is_nobodys(tmp_path: Path, token: str) -> None:
    tokens = Tokens(tmp_path)
    assert tokens.session_of(token) is None
    assert tokens.session_of(tokens.owner()[:-1]) is None
    assert tokens.session_of(token) is None


def test_a_revoked_token_is_worth_nothing_at_once(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path)
    token = tokens.add("scribe", "task")
    assert Tokens(tmp_path).revoke("scribe")
    assert tokens.session_of(token) is None
    assert not tokens.revoke("scribe")
    assert tokens.add("scribe", "task") != token


def test_the_owners_token_can_be_made_anew(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path)
    old = tokens.owner()
    tokens.revoke("owner")
    assert tokens.session_of(old) is None
    assert tokens.owner() != old


def test_a_list_never_holds_a_token(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path)
    secrets = [tokens.owner(), tokens.add("scribe", "task"), tokens.add("desk", "external")]
    listed = tokens.list()
    assert [(one.name, one.kind) for one in listed] == [("desk", "external"), ("owner", "owner"), ("scribe", "task")]
    assert not any(secret in repr(listed) for secret in secrets)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("scribe", "owner"), ("scribe", "boss"), ("owner", "task"), ("Owner", "task"), ("", "task"), ("../a", "task")],
)
def test_no_token_raises_a_session(tmp_path: Path, name: str, kind: str) -> None:
    with pytest.raises(UsageError):
        Tokens(tmp_path).add(name, kind)
    assert Tokens(tmp_path).list() == []


def test_a_name_has_one_token(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path)
    tokens.add("scribe", "external")
    with pytest.raises(UsageError, match="revoke it first"):
        tokens.add("Scribe", "task")


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620, 0o601])
def test_a_file_that_others_can_open_is_refused(tmp_path: Path, mode: int) -> None:
    tokens = Tokens(tmp_path)
    token = tokens.owner()
    (tmp_path / FILE).chmod(mode)
    for use in (tokens.owner, tokens.list, lambda: tokens.session_of(token), lambda: tokens.add("scribe", "task")):
        with pytest.raises(Refused, match="chmod 600"):
            use()


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    token = Tokens(elsewhere).owner()
    (tmp_path / FILE).symlink_to(elsewhere / FILE)
    with pytest.raises(NotebookError):
        Tokens(tmp_path).session_of(token)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"tokens": [{"name": "scribe"}]}',
        '{"tokens": [{"name": "scribe", "kind": "owner", "secret": "x", "created_at": ""}]}',
        '{"tokens": [{"name": "owner", "kind": "task", "secret": "x", "created_at": ""}]}',
        '{"tokens": [{"name": "scribe", "kind": "task", "secret": "", "created_at": ""}]}',
    ],
)
def test_a_file_that_cannot_be_read_grants_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).touch(mode=0o600)
    (tmp_path / FILE).write_text(text)
    for secret in ("x", ""):
        with pytest.raises(NotebookError, match=r"tokens\.json"):
            Tokens(tmp_path).session_of(secret)


def test_tokens_added_at_once_are_all_kept(tmp_path: Path) -> None:
    made: dict[str, str] = {}

    def add(name: str) -> None:
        made[name] = Tokens(tmp_path).add(name, "task")

    threads = [threading.Thread(target=add, args=(f"agent{n}",)) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {name: Tokens(tmp_path).session_of(token) for name, token in made.items()} == {
        name: Session.task(name) for name in made
    }
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("tmp")] == []


def test_nothing_else_of_a_notebook_is_kept_in_their_file(tmp_path: Path) -> None:
    (tmp_path / "runtime").mkdir()
    (tmp_path / "runtime/reminders.md").write_text("## Today\n\n- [ ] Check the ropes\n")
    with Notebook.open(tmp_path) as notebook:
        tokens = Tokens(notebook.folder)
        owner, scribe = tokens.owner(), tokens.add("scribe", "task")
        notebook.sync()
        notebook.prompt(Session.owner())
        notebook.admin.status()
    assert tokens.session_of(owner) == Session.owner()
    assert tokens.session_of(scribe) == Session.task("scribe")


def test_a_folder_that_cannot_be_written_to_is_told_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "tokens.lock").mkdir()
    with pytest.raises(NotebookError, match=f"tokens are kept there, so make {tmp_path} writable"):
        Tokens(tmp_path).owner()
