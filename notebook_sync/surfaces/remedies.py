"""What brings a line into a prompt that does not have it: a sentence for each reason that `explain` gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from notebook_sync.permissions import CORE_FACTS


def remedy_of(place: Mapping[str, Any]) -> str:
    """What to do about a place that is not in the prompt, from its `path`, `anchor` and `reason`."""
    path, folders = place["path"], place["path"].split("/")
    if place["reason"] == "session filter" and path == CORE_FACTS:
        return _CORE_FACTS
    if place["reason"] == "not a prompt file" and folders[0] == "channels" and len(folders) > 2:
        return _CHANNEL.format(agent=folders[1])
    where = f"{path}#{place['anchor']}" if place["anchor"] else path
    return _REMEDIES[place["reason"]].format(path=path, place=where)


_CORE_FACTS = (
    "an external session is never shown facts/core.md, whatever notebook.toml says; a task session is, where "
    "`sessions` of it there names task"
)
_CHANNEL = (
    "a channel is private to its agent: its notes are in no prompt but that agent's own, with --include notes "
    "--agent {agent}"
)


# What brings a text into the prompt that is not in it.
_REMEDIES = {
    "cap": "raise max_tokens for {path} in notebook.toml, pin its section with <!-- pin --> below the heading, or "
    "shorten the file; an agent reads it with: notebook_read {place}, omitted: true",
    "comment": "take it out of the comment; agents are shown no comments",
    "expired": "give it a later day in [until …]; past its day it holds no more",
    "upcoming": "it is shown from the date in its [from …] on; give it an earlier one to show it now",
    "frontmatter": "write it below the frontmatter, which agents are not shown",
    "session filter": "add the session to `sessions` of {path} in notebook.toml",
    "not a prompt file": "name {path} in [[prompt.files]] of notebook.toml; an agent reads it with: "
    "notebook_read {place}",
    "not yet parsed": "finish writing {path}; until then its last good version is shown",
    "waiting for trust": "read it and accept it with: notebook-sync trust {path}; until then the trusted version is "
    "shown",
    "quarantined": "it is never shown as a prompt file: somebody else wrote {path}, says its `provenance`; `--include` "
    "shows such notes within a fence",
}
