"""What says who made a note, when, and whose words stand in it: no session but the owner's sets or changes it. Pure."""

from __future__ import annotations

import re
from typing import Any

from notebook_sync.errors import EditFailed, NotPermitted
from notebook_sync.files.edits import Edit, edited
from notebook_sync.files.frontmatter import Frontmatter, read_frontmatter
from notebook_sync.files.new_note import as_yaml
from notebook_sync.files.provenance import EXTERNAL
from notebook_sync.permissions import is_private
from notebook_sync.sessions import Session

_ALWAYS = ("id", "created_by", "created_at", "provenance")
_OF_PRIVATE_NOTES = ("type",)


def with_origin(path: str, before: bytes | None, after: bytes, session: Session, *, is_whole: bool) -> bytes:
    """`after` with what `before` says of its origin, None for a note that is new; `is_whole` where the caller wrote all
    of it, and may have left that out.

    Raises NotPermitted for another origin than it has, EditFailed for a text that cannot say which it has.
    """
    if session.kind == "owner":
        return after
    text = (before or b"").decode(errors="replace")
    was, now = read_frontmatter(text), read_frontmatter(after.decode(errors="replace"))
    names = (*_ALWAYS, *(_OF_PRIVATE_NOTES if is_private(path) or "provenance" in was.metadata else ()))
    if was.problem is not None and _may_say(text, names):
        _must_stay_broken(was, now)
        return after
    has = _made_by(session) if before is None else {name: was.metadata.get(name) for name in names}
    lost = {}
    for name in names:
        value, said = has.get(name), now.metadata.get(name)
        if said == value:
            continue
        if said is not None or not (is_whole or before is None):
            raise NotPermitted(
                f"{name} is the notebook's own record of where a note comes from, and no tool's to set; leave it as it "
                "is, or out"
            )
        lost[name] = value
    return _with(path, after, lost) if lost else after


def _made_by(session: Session) -> dict[str, Any]:
    mark = {"provenance": EXTERNAL} if session.kind == "external" else {}
    return {"created_by": session.changed_by, **mark}


def _may_say(text: str, names: tuple[str, ...]) -> bool:
    return "\\" in text or re.search(rf"\b(?:{'|'.join(names)})\b['\"]?\s*:", text) is not None


def _must_stay_broken(was: Frontmatter, now: Frontmatter) -> None:
    """Repaired by anybody but the owner, it could say anything."""
    if (was.head, was.problem) != (now.head, now.problem):
        raise NotPermitted(
            "The frontmatter of this note cannot be read, and may say where it comes from: the owner has to repair it"
        )


def _with(path: str, after: bytes, fields: dict[str, Any]) -> bytes:
    try:
        return edited(after, Edit("set_frontmatter", content=as_yaml(fields)), path)
    except EditFailed as failed:
        reason = f"its frontmatter cannot take {' and '.join(fields)}: {failed.reason}"
        raise EditFailed(path, reason, failed.candidates) from None
