"""How full the prompt is, for each kind of session, and what the edits since the last commit do to it.

So that whoever edits by hand learns of a rule that falls out before the edit is committed. Asks no database.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from notebook_sync import config
from notebook_sync.errors import ConfigError
from notebook_sync.files.history import committed
from notebook_sync.notes.prompting.system_prompt import SystemPrompt
from notebook_sync.sessions import KINDS, Session
from notebook_sync.settings import Settings
from prompt import Prompt, compare


@dataclass(frozen=True, slots=True)
class PromptUse:
    """`files` is the use of each file in the owner's prompt, `sessions` that of each kind of session as a whole."""

    files: dict[str, Any]
    sessions: dict[str, Any]


def prompt_use(root: Path, settings: Settings, with_settings: Callable[[Settings], SystemPrompt]) -> PromptUse:
    """The use as it is now, and in `since_commit` what changed; None there without a commit. Raises PromptError."""
    now = with_settings(settings)
    prompts = {kind: now.assemble(Session.named(kind)) for kind in KINDS}
    before = _as_committed(root, settings, with_settings)
    sessions: dict[str, Any] = {
        kind: {
            "tokens": prompt.tokens,
            "max_tokens": settings.prompt.max_tokens,
            "revision": prompt.revision,
            "since_commit": compare(before[kind], prompt).as_json() if before else None,
        }
        for kind, prompt in prompts.items()
    }
    return PromptUse(_of_files(prompts["owner"]), sessions)


def _of_files(prompt: Prompt) -> dict[str, Any]:
    return {
        part.path: {
            "tokens": part.tokens,
            "cap": part.cap,
            "omitted": sum(one.entries for one in part.omitted),
            "left_out": [one.anchor for one in part.omitted],
            "problem": part.problem,
        }
        for part in prompt.parts
        if part.path
    }


def _as_committed(
    root: Path, settings: Settings, with_settings: Callable[[Settings], SystemPrompt]
) -> dict[str, Prompt]:
    """Each session's prompt as the last commit has the files and the settings; none where there is no commit."""
    held = committed(root, [config.FILE])
    if held is None:
        return {}
    then = with_settings(_settings_of(held.get(config.FILE), settings))
    files = committed(root, then.paths) or {}
    contents = {path: files.get(path) for path in then.paths}
    return {kind: then.assemble_with(Session.named(kind), contents) for kind in KINDS}


def _settings_of(toml: bytes | None, now: Settings) -> Settings:
    """The settings of a commit; those of now where it has none that can be read."""
    if toml is None:
        return now
    try:
        return config.parse(toml.decode(errors="replace"), now.source)
    except ConfigError:
        return now
