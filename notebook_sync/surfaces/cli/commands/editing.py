"""The commands that change notes and tell of their past: one use case each."""

from __future__ import annotations

import difflib
import shlex
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, cast

from notebook_sync.errors import UsageError
from notebook_sync.surfaces.cli.answers import in_colour, opened, session_of, show, text_given
from notebook_sync.surfaces.cli.next_steps import keeping, next_steps, rename_back_of, undo_of
from notebook_sync.surfaces.cli.reference.editing import EDIT_ACTIONS, EditAction
from notebook_sync.surfaces.cli.text import editing as text

if TYPE_CHECKING:
    from notebook_sync.files.edits import Action
    from notebook_sync.notes.editing.door import Entered
    from notebook_sync.notes.editing.effects import Edited


def _edit(arguments: Namespace) -> int:
    from notebook_sync.files.edits import Edit  # it brings the parser along

    action = _action(arguments)
    content = text_given(arguments.content, arguments.content_file, "--content")
    _check_arguments(action, arguments, content)
    edit = Edit(
        cast("Action", action.name),
        section=arguments.section or "",
        content=content or "",
        entry_match=arguments.entry_match or "",
        to=arguments.to or "",
        reason=arguments.reason,
    )
    with next_steps(arguments), opened(arguments) as notebook:
        edited = notebook.edit(
            arguments.file,
            edit,
            session_of(arguments),
            expected_digest=arguments.expected_digest,
            allow_over_cap=arguments.allow_over_cap,
            preview=arguments.preview,
        )
        kept = keeping(notebook, edited.commit, edited.path)
    undo = undo_of(arguments, made=_is_made(edited))
    if arguments.preview:
        show(arguments, edited.as_dict(), lambda told: text.of_preview(told, colour=in_colour()))
    else:
        show(arguments, edited.as_dict(), lambda told: text.of_edit(told, kept, undo=undo, colour=in_colour()))
    return 0


def _action(arguments: Namespace) -> EditAction:
    """The action that is asked for. Raises UsageError, which teaches."""
    known = {action.name: action for action in EDIT_ACTIONS}
    if arguments.action is None:
        raise UsageError(f"name a file and what to do in it:\n{text.of_actions(EDIT_ACTIONS)}")
    if arguments.action in known:
        return known[arguments.action]
    if arguments.action == "read":
        raise UsageError(f"`edit` changes files; read this one with: notebook-sync read {shlex.quote(arguments.file)}")
    near = difflib.get_close_matches(arguments.action, known, n=1, cutoff=0.4)
    meant = f"did you mean {near[0]!r}? the actions are" if near else "use one of"
    raise UsageError(f"there is no action {arguments.action!r}; {meant} {', '.join(known)}")


def _check_arguments(action: EditAction, arguments: Namespace, content: str | None) -> None:
    """Raises UsageError for one that is missing, or that would mean nothing: it was meant to."""
    given = {name for name in ("section", "entry_match", "to") if getattr(arguments, name) is not None}
    given |= {"content"} if content is not None else set()
    for name in action.needs:
        if name not in given:
            raise UsageError(f"{action.name} needs {_flag(name)}, as in: {action.example}")
    for name in sorted(given - set(action.takes)):
        raise UsageError(f"{action.name} takes no {_flag(name)}; see: notebook-sync edit --help")


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _undo(arguments: Namespace) -> int:
    with next_steps(arguments), opened(arguments) as notebook:
        edited = notebook.undo(arguments.id, session_of(arguments))
        kept = keeping(notebook, edited.commit, edited.path)
    undo = undo_of(arguments, made=_is_made(edited))
    show(arguments, edited.as_dict(), lambda told: text.of_undo(told, kept, undo=undo, colour=in_colour()))
    return 0


def _is_made(edited: Edited) -> bool:
    """Whether there was no note before, and that is all that the edit changed."""
    return edited.diff.startswith("--- /dev/null\n") and not edited.with_others


def _delete(arguments: Namespace) -> int:
    with next_steps(arguments), opened(arguments) as notebook:
        session = session_of(arguments)
        path = notebook.find_path(arguments.id, session, "write", "file")
        entered = notebook.delete(path, session)
        kept = keeping(notebook, entered.commit, path)
    show(arguments, _filed(path, entered), lambda told: text.of_deletion(told, kept, undo=undo_of(arguments)))
    return 0


def _rename(arguments: Namespace) -> int:
    with next_steps(arguments), opened(arguments) as notebook:
        session = session_of(arguments)
        path = notebook.find_path(arguments.id, session, "write", "file")
        entered = notebook.rename(path, arguments.to, session)
        renamed = notebook.find_path(arguments.to, session)
        kept = keeping(notebook, entered.commit, path, renamed)
    back = rename_back_of(arguments)
    told = {**_filed(renamed, entered), "renamed_from": path}
    show(arguments, told, lambda told: text.of_renaming(told, kept, back=back))
    return 0


def _filed(path: str, entered: Entered) -> dict[str, object]:
    return {"success": True, "path": path, "commit": entered.commit, "warnings": list(entered.warnings)}


def _history(arguments: Namespace) -> int:
    with opened(arguments) as notebook:
        revisions = notebook.history(arguments.id, limit=arguments.limit)
        timezone = notebook.settings.timezone
    show(arguments, [revision.as_dict() for revision in revisions], lambda told: text.of_history(told, timezone))
    return 0


def _diff(arguments: Namespace) -> int:
    with opened(arguments) as notebook:
        diff = notebook.diff(arguments.id, arguments.rev or "")
    told = {"id": arguments.id, "rev": arguments.rev, "diff": diff}
    # Into a file or a pipe it goes as it is, so that it can be applied.
    show(arguments, told, lambda _: text.of_diff(diff, colour=in_colour()) if sys.stdout.isatty() else diff)
    return 0


EDITING: Mapping[str, Callable[[Namespace], int]] = {
    "edit": _edit,
    "delete": _delete,
    "rename": _rename,
    "history": _history,
    "diff": _diff,
    "undo": _undo,
}
