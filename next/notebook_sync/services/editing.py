"""`notebook_edit`: edits of one note at one place, with a preview of what they do to the prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import msgspec

from notebook_sync.errors import UsageError
from notebook_sync.files.edits import Edit, apply_edits
from notebook_sync.services.assembling import assemble, files_of
from notebook_sync.services.core import Core
from notebook_sync.services.documents import note_to_change, rewrite, tokens_of
from notebook_sync.services.results import Edited
from notebook_sync.sessions import Session
from prompt import compare

if TYPE_CHECKING:
    from notebook_sync.services.notes import Step

# The argument that an action cannot do without, where it needs one.
_NEEDS = {
    **dict.fromkeys(("append_to_section", "replace_section", "set_frontmatter", "write"), "content"),
    **dict.fromkeys(("remove_entry", "toggle_checkbox", "move_entry"), "entry_match"),
    "add_section": "section",
}


def edit_note(
    core: Core,
    session: Session,
    name: str,
    steps: Sequence[Step],
    *,
    dry_run: bool,
    expected_digest: str,
    reason: str,
    allow_over_cap: bool,
) -> Edited:
    """Apply all steps to one note, or none. Raises EditFailed, Conflict, OverCap, NotPermitted."""
    _, path, fragment = note_to_change(core, session, name, "notebook_edit")
    edits = [_edit(step, fragment) for step in steps]
    action = steps[0].action if len(steps) == 1 else "edit"
    is_whole = any(edit.action == "write" for edit in edits)
    cap = files_of(core).caps.get(path)
    prompt_before = None if cap is None else assemble(core, session)
    done, after = rewrite(
        core,
        session,
        path,
        lambda before: apply_edits(path, before, edits),
        action=action,
        section=edits[0].section,
        reason=reason,
        expected_digest=expected_digest,
        is_whole=is_whole,
        edits=edits,
        allow_over_cap=allow_over_cap,
        dry_run=dry_run,
    )
    prompt = assemble(core, session, contents={path: after}) if prompt_before else None
    parts = [part for part in prompt.parts if part.path == path] if prompt else []
    return Edited(
        **msgspec.structs.asdict(done),
        success=True,
        tokens=tokens_of(core, path, after),
        cap=cap,
        omitted=[asdict(each) for part in parts for each in part.omitted],
        prompt_change=compare(prompt_before, prompt).as_json() if prompt_before and prompt else None,
        dry_run=dry_run,
    )


def _edit(step: Step, fragment: str) -> Edit:
    """A step as an edit. Raises UsageError naming the argument that the action needs."""
    section, needed = step.section or fragment, _NEEDS[step.action]
    given = section if needed == "section" else getattr(step, needed)
    if given is None or (given == "" and needed != "content"):
        raise UsageError(f"{step.action} needs {needed}", next="see: notebook-sync edit --help")
    return Edit(step.action, section, step.content or "", step.entry_match or "", step.to or "")
