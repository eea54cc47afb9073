"""The notebook's folder: broken ignore rules break nothing else, and a name means one file or none."""

from __future__ import annotations

from pathlib import Path

import pytest

from notebook_sync.errors import ConfigError
from notebook_sync.files.vault import Vault


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
