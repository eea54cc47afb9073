"""Answers of the commands that edit, in words. Pure: values in, text out; control characters are shown, not sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from notebook_sync.surfaces.cli.text.notebook import counts, safe
from notebook_sync.surfaces.cli.text.rows import local

if TYPE_CHECKING:
    from notebook_sync.surfaces.cli.reference.editing import EditAction

Told = Mapping[str, Any]
Undo = Callable[[str], str]

_SHORT = 10
_RED, _GREEN, _CYAN, _BOLD, _PLAIN = "\x1b[31m", "\x1b[32m", "\x1b[36m", "\x1b[1m", "\x1b[0m"


def of_actions(actions: Iterable[EditAction]) -> str:
    """Each action of `edit`: what it does, and a call."""
    return "\n".join(
        line for action in actions for line in (f"  {action.name}: {action.does}", f"    {action.example}")
    )


def of_edit(edited: Told, kept: str, *, undo: Undo, colour: bool) -> str:
    """What an edit changed, in the file and in the prompt, from `Edited.as_dict`; and how to take it back.

    `kept` is the commit in words, or why there is none.
    """
    if not edited["changed"]:
        return safe(f"{edited['path']} says so already: nothing is changed")
    return _edited(f"{edited['path']} is changed", edited, kept, undo, colour)


def of_undo(edited: Told, kept: str, *, undo: Undo, colour: bool) -> str:
    """What is as it was before, as `of_edit`."""
    if not edited["changed"]:
        return safe(f"{edited['path']} is as it was before: nothing is changed")
    is_back = edited["diff"].startswith("--- /dev/null\n")
    how = "is back, with the text that it had before it went" if is_back else "is as it was before its last change"
    return _edited(f"{edited['path']} {how}", edited, kept, undo, colour)


def of_preview(edited: Told, *, colour: bool) -> str:
    """What an edit would change. Nothing was written, so there is nothing to take back."""
    if not edited["changed"]:
        return safe(f"preview: nothing is written, and nothing would change in {edited['path']}")
    over = edited["cap"] is not None and edited["tokens"] > max(edited["cap"], edited["tokens_before"])
    lines = [
        "preview: nothing is written",
        *_diff_lines(edited["diff"], colour),
        *_effect(edited),
        "next     repeat it without --preview" + (", and with --allow-over-cap" if over else ""),
    ]
    return "\n".join(lines)


def _edited(heading: str, edited: Told, kept: str, undo: Undo, colour: bool) -> str:
    lines = [
        safe(heading),
        *_diff_lines(edited["diff"], colour),
        *_effect(edited),
        *_kept(edited, kept),
        *undoing(edited, undo),
    ]
    return "\n".join(lines)


def undoing(told: Told, undo: Undo, label: str = "undo     ") -> Iterator[str]:
    """How to take it back; nothing where that is not possible, as a warning tells."""
    from notebook_sync.notes.editing.past import (
        NOT_KEPT,  # what it is read with is loaded by then, for an edit was made
    )

    if not any(warning.startswith(NOT_KEPT) for warning in told["warnings"]):
        yield f"{label}{safe(undo(told['path']))}"


def _effect(edited: Told) -> Iterator[str]:
    cap = f" of {edited['cap']:,}" if edited["cap"] is not None else ""
    yield f"tokens   {edited['tokens_before']:,} → {edited['tokens']:,}{cap}"
    change = edited["change"]
    if change is None:
        yield "prompt   does not show this file"
        return
    for one in edited["omitted"]:
        yield safe(f"omitted  {_place(edited['path'], one)}: {counts(one['tokens'], 'token')}")
    if not change["stable_changes"]:
        yield "prompt   stays as it is"
        return
    kept = f"its stable part changes after {counts(change['kept_prefix_tokens'], 'token')}, which a cache keeps"
    yield f"prompt   {change['tokens_before']:,} → {change['tokens_after']:,} tokens; {kept}"
    for key, what in (("fell_out", "falls out"), ("came_back", "comes back")):
        for one in change[key]:
            yield safe(f"prompt   {what}: {_place(one['path'], one)}, {counts(one['tokens'], 'token')}")


def _place(path: str, one: Told) -> str:
    return f"{path}#{one['anchor']}" if one["anchor"] else path


def short(commit: str) -> str:
    """A commit by its beginning."""
    return commit[:_SHORT]


def _kept(told: Told, kept: str) -> Iterator[str]:
    yield f"commit   {kept}"
    yield from (safe(f"warning  {warning}") for warning in told["warnings"])


def of_diff(diff: str, *, colour: bool) -> str:
    """A unified diff for a terminal."""
    return "\n".join(_diff_lines(diff, colour))


def _diff_lines(diff: str, colour: bool) -> Iterator[str]:
    for line in diff.removesuffix("\n").split("\n") if diff else ():
        shown = "\t".join(map(safe, line.split("\t")))
        paint = _paint(line) if colour else ""
        yield f"{paint}{shown}{_PLAIN}" if paint else shown


def _paint(line: str) -> str:
    if line.startswith(("--- ", "+++ ")):
        return _BOLD
    return {"-": _RED, "+": _GREEN, "@": _CYAN}.get(line[:1], "")


def of_deletion(told: Told, kept: str, *, undo: Undo) -> str:
    """What went, and how to bring it back."""
    return "\n".join([safe(f"{told['path']} is deleted"), *_kept(told, kept), *undoing(told, undo)])


def of_renaming(told: Told, kept: str, *, back: Callable[[str, str], str]) -> str:
    """Where a note is now, and how to move it back."""
    now, was = told["path"], told["renamed_from"]
    return "\n".join([safe(f"{was} is now {now}"), *_kept(told, kept), f"undo     {safe(back(now, was))}"])


def of_history(revisions: Sequence[Told], timezone: ZoneInfo) -> str:
    """A line for each version, from `Revision.as_dict`."""
    return (
        "\n".join(
            safe(f"{_rev(one['rev'])}  {local(one['timestamp'], timezone)}  {one['changed_by']}  {one['summary']}")
            for one in revisions
        )
        or "no earlier text is known"
    )


def _rev(rev: str) -> str:
    """A commit by its beginning; what names a copy begins as its neighbours do."""
    return rev if "-" in rev else rev[:_SHORT]
