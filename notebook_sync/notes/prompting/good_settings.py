"""The settings that a prompt is made with: those of notebook.toml or, while it has an error, the last that had none.

An agent without its rules is worse than one with yesterday's settings. Where none are kept the error stands: defaults
could show a session what the owner keeps from it.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from notebook_sync import config
from notebook_sync.errors import ConfigError
from notebook_sync.folder import FOLDER
from notebook_sync.notes.prompting.sources import FOLDER as GOOD
from notebook_sync.notes.prompting.sources import keep_copy
from notebook_sync.settings import Settings


def load_for_prompt(root: Path) -> tuple[Settings, str]:
    """The settings, and what is wrong with notebook.toml where they are those kept. Raises ConfigError."""
    kept = root / FOLDER / GOOD
    try:
        settings = config.load(root)
    except ConfigError as error:
        if not (kept / config.FILE).is_file():
            raise
        try:
            return config.load(kept), f"{error}; the prompt is made with the settings as they last were good"
        except ConfigError:
            raise error from None
    with contextlib.suppress(OSError):  # as on a disk that is full or read-only: the next call tries again
        _keep(root, kept)
    return settings, ""


def _keep(root: Path, kept: Path) -> None:
    """Copy notebook.toml, or forget the copy where there is none."""
    copy = kept / config.FILE
    try:
        raw = (root / config.FILE).read_bytes()
    except FileNotFoundError:
        copy.unlink(missing_ok=True)
        return
    if copy.is_file() and copy.read_bytes() == raw:
        return
    try:
        config.parse(raw.decode(), config.FILE)
    except (ConfigError, UnicodeDecodeError):  # changed since it was loaded
        return
    keep_copy(copy, raw)
