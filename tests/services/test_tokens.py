"""Tokens: made on demand, readable by nobody else, worth a session each, and worthless once revoked."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from notebook_sync import Notebook, Session
from notebook_sync.errors import NotebookError, NotPermitted, Refused, UsageError
from notebook_sync.services.tokens import FILE, TokenFile
from tests.services.conftest import OWNER, SCRIBE, assert_raises


@pytest.fixture
def tokens(tmp_path: Path) -> TokenFile:
    return TokenFile(tmp_path)


def test_the_owners_token_is_made_once_and_can_be_made_again(tokens: TokenFile, tmp_path: Path) -> None:
    token = tokens.owner()
    assert (tokens.owner(), tokens.check(token), len(token) >= 43) == (token, OWNER, True)
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600
    tokens.revoke("owner")
    assert (tokens.check(token), tokens.owner() == token) == (None, False)


@pytest.mark.parametrize("kind", ["task", "external"])
def test_an_agents_token_is_worth_its_session_until_it_is_revoked(tokens: TokenFile, kind: str) -> None:
    token = tokens.add("scribe", kind)
    assert tokens.check(token) == Session.named(kind, "scribe")
    assert (tokens.revoke("scribe"), tokens.check(token), tokens.revoke("scribe")) == (True, None, False)


@pytest.mark.parametrize("token", ["", "x", "é", "\udcff", "a" * 10_000])
def test_what_is_no_token_is_nobodys(tokens: TokenFile, token: str) -> None:
    owner = tokens.owner()
    assert (tokens.check(token), tokens.check(owner[:-1])) == (None, None)


def test_a_row_with_a_field_of_a_later_version_is_read(tokens: TokenFile, tmp_path: Path) -> None:
    row = {"name": "owner", "kind": "owner", "created_at": datetime.now(UTC), "secret": "good", "new_field": 1}
    (tmp_path / FILE).touch(mode=0o600)
    (tmp_path / FILE).write_bytes(msgspec.json.encode([row]))
    assert (tokens.check("good"), tokens.owner()) == (OWNER, "good")


@pytest.mark.parametrize("name", ["owner", "Owner", "", "../a"])
@pytest.mark.parametrize("kind", ["task", "owner", "boss"])
def test_no_token_raises_a_session(tokens: TokenFile, name: str, kind: str) -> None:
    assert_raises(UsageError, tokens.add, name, kind)
    assert tokens.rows() == []


def test_a_name_has_one_token(tokens: TokenFile) -> None:
    tokens.add("scribe", "external")
    assert_raises(UsageError, tokens.add, "Scribe", "task", match="token revoke")


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620, 0o601])
def test_a_file_that_others_can_open_is_refused(tokens: TokenFile, tmp_path: Path, mode: int) -> None:
    token = tokens.owner()
    (tmp_path / FILE).chmod(mode)
    for use in (tokens.owner, tokens.rows, lambda: tokens.check(token), lambda: tokens.add("scribe", "task")):
        assert_raises(Refused, use, match="chmod 600")


@pytest.mark.parametrize(
    "text",
    [
        *("", "{}", "[1]", '[{"name": "scribe"}]', '[{"name": "\udcff"}]'),
        '[{"name": "scribe", "kind": "owner", "secret": "x", "created_at": "2026-01-01T00:00:00Z"}]',
        '[{"name": "owner", "kind": "task", "secret": "x", "created_at": "2026-01-01T00:00:00Z"}]',
        '[{"name": "scribe", "kind": "task", "secret": "", "created_at": "2026-01-01T00:00:00Z"}]',
    ],
)
def test_a_file_that_cannot_be_read_grants_nothing(tokens: TokenFile, tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).touch(mode=0o600)
    (tmp_path / FILE).write_text(text, errors="surrogateescape")
    for secret in ("x", ""):
        assert_raises(NotebookError, tokens.check, secret, match=r"tokens\.json")


def test_a_link_is_not_followed(tokens: TokenFile, tmp_path: Path) -> None:
    token = TokenFile(tmp_path / "elsewhere").owner()
    (tmp_path / FILE).symlink_to(tmp_path / "elsewhere" / FILE)
    assert_raises(NotebookError, tokens.check, token)


def test_tokens_added_at_once_are_all_kept(tokens: TokenFile, tmp_path: Path) -> None:
    names = [f"agent{number}" for number in range(12)]
    with ThreadPoolExecutor(len(names)) as pool:
        made = [*pool.map(lambda name: TokenFile(tmp_path).add(name, "task"), names)]
    assert [tokens.check(token) for token in made] == [Session.task(name) for name in names]


def test_the_operations(notebook: Notebook) -> None:
    admin = notebook.admin
    owner, scribe = admin.show_token().token, admin.add_token("scribe", kind="task").token
    assert (admin.session_of_token(owner), admin.session_of_token(scribe)) == (OWNER, SCRIBE)
    assert admin.session_of_token("") is None
    listed = admin.list_tokens().results
    assert [(row.name, row.kind, row.token) for row in listed] == [("owner", "owner", ""), ("scribe", "task", "")]
    assert [row.name for row in admin.revoke_token("scribe").results] == ["owner"]
    assert_raises(UsageError, admin.revoke_token, "scribe")
    for call in (admin.show_token, admin.list_tokens, admin.sync, admin.status, admin.events, admin.follow_events):
        assert_raises(NotPermitted, call, SCRIBE)
