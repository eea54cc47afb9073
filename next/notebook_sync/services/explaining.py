"""Where a text is, and whether it reaches a session's prompt. A session learns only of what it may see."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from notebook_sync.errors import NoSuchNote, UnreadableFile, UnsafePath, UsageError
from notebook_sync.files.usable import why_unusable
from notebook_sync.services.assembling import assemble_whole
from notebook_sync.services.core import Core
from notebook_sync.services.view import View
from notebook_sync.sessions import Session
from prompt import FileText, Found, explain

# The reasons that a session learns which does not see what the prompt hides.
_SHOWN = ("", "cap", "not a prompt file")


def explain_text(core: Core, session: Session, text: str) -> list[Found]:
    """Every line where the text begins: in the prompt's files first, then in other notes that the session may read.

    Raises UsageError for a text without words.
    """
    if not text.strip():
        raise UsageError("there is nothing to look for", next="give some words of the line that you want explained")
    prompt, sources = assemble_whole(core, session)
    view = View(core, session)
    seen = [source for source in sources if view.may("read", source.path)]
    found = explain(text, prompt, [*seen, *_others(core, view, text)])
    if session.kind != "owner":
        return [each for each in found if each.reason in _SHOWN]
    usable = {each.path for each in sources if each.found is not None and not why_unusable(each.found)}
    waits = usable if core.prompt_files.shown.needs_trust else set()
    return [
        replace(each, reason="waiting for trust") if each.reason == "not yet parsed" and each.path in waits else each
        for each in found
    ]


def _others(core: Core, view: View, text: str) -> Iterator[FileText]:
    """The other notes that may hold the text: its first word tells most of them apart quickly."""
    word = text.casefold().split()[0]
    for path in sorted(core.tree.scan().seen.keys() - set(core.prompt_files.paths)):
        with suppress(NoSuchNote, UnreadableFile, UnsafePath):
            shown = (
                view.shown(path, core.tree.read(path).raw.decode(errors="replace")) if view.may("read", path) else ""
            )
            if word in shown.casefold():
                yield FileText(path, shown.encode(errors="replace"))
