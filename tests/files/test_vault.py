"""The notebook's folder: broken ignore rules break nothing else, and a name means one file or none."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from notebook_sync.errors import ConfigError
from notebook_sync.files.stamped import RACY_SECONDS
from notebook_sync.files.vault import Vault
from notebook_sync.sync.reading import look_at
from tests.waiting import eventually


def seen(root: Path) -> set[str]:
    return set(Vault(root).scan().seen)


@pytest.mark.parametrize("broken", ["!", "\\", "a\\", "[z-a]", "[[:foo:]]", "[[a]"])
def test_a_broken_ignore_rule_is_skipped_and_the_others_hold(tmp_path: Path, broken: str) -> None:
    for name in ("kept.md", "secret.md"):
        (tmp_path / name).write_text("x")
    (tmp_path / ".gitignore").write_text(f"{broken}\nsecret.md\n")
    assert seen(tmp_path) == {"kept.md"}


def test_a_named_class_of_characters_means_what_it_means_to_git(tmp_path: Path) -> None:
    for name in ("7.md", "x.md"):
        (tmp_path / name).write_text("x")
    (tmp_path / ".gitignore").write_text("[[:digit:]].md\n")
    assert seen(tmp_path) == {"x.md"}


def test_an_exclude_that_is_no_pattern_is_a_mistake_in_the_settings(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"\[z-a\]"):
        Vault(tmp_path, exclude=["drafts/", "[z-a]"])


@pytest.mark.parametrize("name", ["./d/a.md", "d//a.md", "d/../d/a.md", "d/./a.md", "{root}/d/a.md", "/{root}//d/a.md"])
def test_every_spelling_of_a_path_means_the_one_file(tmp_path: Path, name: str) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a.md").write_text("x")
    vault = Vault(tmp_path)
    spelled = name.format(root=tmp_path)
    assert vault.relative(spelled) == "d/a.md"
    assert vault.scan([spelled]).seen == {"d/a.md": vault.stamp(spelled)} == {"d/a.md": vault.stamp("d/a.md")}


@pytest.mark.parametrize("name", ["../other.md", "d/../../other.md", "/etc/hosts", "{root}-other.md"])
def test_a_path_out_of_the_notebook_means_nothing(tmp_path: Path, name: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    for other in (tmp_path / "other.md", tmp_path / "root-other.md"):
        other.write_text("x")
    vault = Vault(root)
    spelled = name.format(root=root)
    assert vault.relative(spelled) is None
    assert vault.stamp(spelled) is None
    assert vault.scan([spelled]).seen == {}


def test_a_file_that_was_being_read_for_long_is_racy_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.md").write_text("x")
    read = os.read

    def slowly(fd: int, size: int) -> bytes:
        got = read(fd, size)
        written = os.fstat(fd).st_ctime_ns
        eventually(lambda: time.time_ns() - written > 2e9 * RACY_SECONDS, "the clock has gone on")
        return got

    monkeypatch.setattr(os, "read", slowly)
    look = look_at(Vault(tmp_path), "a.md", "", "cl100k_base")
    assert look.racy


def test_a_file_that_was_left_alone_for_a_while_is_not_racy(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("x")
    vault = Vault(tmp_path)
    eventually(lambda: not look_at(vault, "a.md", "", "cl100k_base").racy, "its stamp vouches for it")
