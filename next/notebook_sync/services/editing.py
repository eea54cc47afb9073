"""`notebook_edit`: edits of one note at one place, with a preview of what they do to the prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from notebook_sync.errors import UsageError
from notebook_sync.files.edits import Edit, apply_edits
from notebook_sync.services.assembling import assemble, cap_of
from notebook_sync.services.changes import Change, checked
from notebook_sync.services.core import Core
from notebook_sync.services.documents import changed, note_to_change, require_base, rewrite, tokens_of, written
from notebook_sync.services.results import Edited
from notebook_sync.services.writing import Saved
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
    view, path, fragment = note_to_change(core, session, name, "notebook_edit")
    edits = [_edit(step, fragment) for step in steps]
    action = steps[0].action if len(steps) == 1 else "edit"
    is_whole = any(edit.action == "write" for edit in edits)
    cap = cap_of(core, path)
    prompt_before = None if cap is None else assemble(core, session)

    def change(before: bytes) -> bytes:
        return apply_edits(path, before, edits)

    if dry_run:
        before = core.tree.read(path).raw
        require_base(core, view, path, before, expected_digest)
        edited = changed(core, path, before, change, allow_over_cap=allow_over_cap)
        (one,) = checked(core, [Change(path, before, edited, action, is_whole=is_whole)], session)
        after, done = one.after or b"", written(core, path, before, one.after, Saved(), "dry_run")
    else:
        done, after = rewrite(
            core,
            session,
            path,
            change,
            action=action,
            section=edits[0].section,
            reason=reason,
            expected_digest=expected_digest,
            is_whole=is_whole,
            edits=edits,
            allow_over_cap=allow_over_cap,
        )
    prompt = assemble(core, session, contents={path: after}) if prompt_before else None
    parts = [part for part in prompt.parts if part.path == path] if prompt else []
    return Edited(
        **asdict(done),
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
