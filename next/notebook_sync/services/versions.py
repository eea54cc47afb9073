"""What a note said before: its versions, the difference to now, and going back by a new edit.

Git knows the texts, and the events know which notes one call changed together.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from notebook_sync.errors import EditFailed, NoSuchNote, NotFound
from notebook_sync.files.frontmatter import EXTERNAL, is_external
from notebook_sync.files.history import Version as Commit
from notebook_sync.files.names import is_note_name
from notebook_sync.files.unified import unified_diff
from notebook_sync.model import id_from_path
from notebook_sync.permissions import channel_of
from notebook_sync.registry import Results
from notebook_sync.services.core import Core
from notebook_sync.services.documents import require_change, written
from notebook_sync.services.lookup import resolve, split_name
from notebook_sync.services.results import Difference, Version, Written
from notebook_sync.services.view import View
from notebook_sync.services.writing import Change, change_notes, digest_of, require_base
from notebook_sync.sessions import Session, maker_of
from notebook_sync.store.rows import Is, both

# How far back an earlier text is looked for: many commits may leave a note as it is.
_FARTHEST = 200
_UNDO, _HISTORY = "notebook_undo", "notebook_history"
_OWN_ONLY = "An agent goes back over its own changes only"
_KEEPS_MARK = "An agent does not go back to a text without `provenance: external`"
_NO_PAST = "The history of this file is only available in owner conversations"

_Past = Iterator[tuple[Commit, bytes | None]]


def list_versions(core: Core, session: Session, name: str, limit: int) -> Results[Version]:
    """The versions of a note, the newest first. Raises GitFailed where git is missing or fails."""
    view = View(core, session)
    path = _past_path(core, view, name, _HISTORY)
    provenance = EXTERNAL if is_external(_bytes_at(core, path) or b"") else ""
    commits = core.history.versions(path, limit=limit, may=partial(view.may, "read"))
    return Results([_version(commit, provenance) for commit in commits])


def compare_versions(core: Core, session: Session, name: str, since: str, until: str) -> Difference:
    """What changed from one version of a note to another. Raises NotFound for a `rev` that the note does not have."""
    view = View(core, session)
    path = _past_path(core, view, name, _HISTORY)
    now = _at_rev(core, view, path, until)[1] if until else _bytes_at(core, path)
    past = iter([_at_rev(core, view, path, since)]) if since else _past(core, view, path)
    found = next((each for each in past if since or each[1] not in (None, now)), None)
    before, rev = (found[1], found[0].rev) if found else (now, "")
    raws = [raw or b"" for raw in (before, now)]
    old, new = (raw.decode(errors="replace") for raw in raws)
    provenance = EXTERNAL if any(map(is_external, raws)) else ""
    return Difference(path=path, since=rev, until=until, diff=unified_diff(old, new, path), provenance=provenance)


def undo_change(core: Core, session: Session, name: str, *, rev: str, expected_digest: str, dry_run: bool) -> Written:
    """Go back to the last text that differs, or to `rev`, by a new edit; never deletes.

    Raises EditFailed where there is nothing to go back to, NotFound for an unknown `rev`, NotPermitted, Conflict.
    """
    view = View(core, session)
    path = _past_path(core, view, name, _UNDO)

    def plan() -> list[Change]:
        require_change(core, view, path, _UNDO)
        require_base(view, path, _bytes_at(core, path) or b"", expected_digest)
        together = [] if rev else _batch_back(core, view, path)
        return together or [_back(core, view, path, path, rev)]

    saved = change_notes(core, session, "undo", plan, dry_run=dry_run)
    end = next(each.path for each in saved.changes if path in (each.path, each.moved_from))
    return written(core, saved, end, "updated")


def _back(core: Core, view: View, path: str, to: str, rev: str = "") -> Change:
    """The change of a note, which is to be at `to`, to the last text that differs from now, or to that of `rev`."""
    session, now = view.session, _bytes_at(core, path)
    passed: list[tuple[Commit, bytes | None]] = []
    wanted = _at_rev(core, view, path, rev)[0].rev if rev else ""
    for commit, raw in _past(core, view, path):
        if commit.rev == wanted if rev else raw not in (None, now):
            break
        passed.append((commit, raw))
    else:
        raise EditFailed(path, "no earlier text is known", next="see: notebook-sync history")
    if raw is None:
        raise NotFound("version with a text", rev, next="see: notebook-sync history")
    if channel_of(commit.path) not in (None, channel_of(to)):
        raise EditFailed(path, f"what it said at {commit.path} is not for all who may read it here")
    if session.kind != "owner":
        own = (session.kind, session.changed_by)
        if not any(text == now for _, text in passed) or any((each.session, _maker(each)) != own for each, _ in passed):
            raise view.refuse(path, _UNDO, _OWN_ONLY)
        if not is_external(raw) and any(is_external(text) for _, text in passed if text):
            raise view.refuse(path, _UNDO, _KEEPS_MARK)
    return Change(to, now, raw, "undo", is_known=True)


def _batch_back(core: Core, view: View, path: str) -> list[Change]:
    """The changes that take back the last call that wrote the note, where it changed several notes or moved this one,
    and none of them was changed since; else none. What the call created stays."""
    events, session = core.index.events, view.session
    last = events.find(both(Is("kind", "=", "edit"), Is("path", "=", path)), order=("-id",), limit=1)
    batch = last[0]["key"].partition(":")[0] if last else ""
    rows = events.find(both(Is("key", ">=", f"{batch}:"), Is("key", "<", f"{batch};")), order=("key",))
    moved = {row["path"]: row["fields"]["moved_from"] for row in rows if row["fields"]["moved_from"]}
    ends = {row["path"]: row["fields"]["digest"] for row in rows}
    is_one = len(rows) < 2 and not moved
    if is_one or any(digest_of(_bytes_at(core, each)) != digest for each, digest in ends.items()):
        return []
    if session.kind != "owner" and {(row["session"], row["agent"]) for row in rows} != {(session.kind, session.agent)}:
        raise view.refuse(path, _UNDO, _OWN_ONLY)
    back: list[Change] = []
    for each in ends:
        require_change(core, view, each, _UNDO)
    for each, old in moved.items():
        view.require("add", old, _UNDO)
        now = _bytes_at(core, each)
        back.append(Change(old, now, now, "undo", moved_from=each))
    changed = [row["path"] for row in rows if row["fields"]["base"] not in ("", row["fields"]["digest"])]
    return back + [_back(core, view, each, moved.get(each, each)) for each in changed]


# ---- the past of one note


def _past_path(core: Core, view: View, name: str, operation: str) -> str:
    """The path of a note that is there or was: named as any note, or by the path or the id that it had.

    Raises NotPermitted where the session sees only a part of the note, NoSuchNote.
    """
    try:
        path, _ = resolve(core, view, name, operation=operation)
    except NoSuchNote:
        place = core.tree.place(split_name(name)[0])
        ended = core.index.gone(ids=[split_name(name)[0], id_from_path(place)])
        paths = (place, f"{place}.md", *(row["path"] or "" for row in ended))
        found = next((each for each in paths if _is_gone(core, view, each)), None)
        if found is None:
            raise
        path = found
    if view.sees_in_part(path):
        raise view.refuse(path, operation, _NO_PAST)
    return path


def _is_gone(core: Core, view: View, path: str) -> bool:
    """Whether a note that the session may read was at this path, where none is now."""
    if not is_note_name(path.rpartition("/")[2]) or not view.may("read", path) or core.tree.stat(path) is not None:
        return False
    return next(_past(core, view, path), None) is not None


def _bytes_at(core: Core, path: str) -> bytes | None:
    try:
        return core.tree.read(path).raw
    except NoSuchNote:
        return None


def _past(core: Core, view: View, path: str) -> _Past:
    """The versions of a note and their texts, the newest first; those that wait for their commit included."""
    for row in core.index.intents.find(Is("path", "=", path), order=("-at",), heavy=True):
        made = ("", row["at"], maker_of(row["agent"]))
        yield Commit(*made, row["session"], row["action"], row["section"], row["reason"], path, ""), row["new"]
        if row["old"] is not None:
            yield Commit(*made[:2], "owner", "", "", "", "", path, ""), row["old"]
    for commit in core.history.versions(path, limit=_FARTHEST, may=partial(view.may, "read")):
        yield commit, core.history.text(commit.rev, commit.path)


def _at_rev(core: Core, view: View, path: str, rev: str) -> tuple[Commit, bytes | None]:
    """The version whose `rev` begins so, and its text. Raises NotFound for none or several."""
    commits = core.history.versions(path, limit=_FARTHEST, may=partial(view.may, "read"))
    found = [commit for commit in commits if rev and commit.rev.startswith(rev)]
    if len(found) != 1:
        what, revs = "single version" if found else "version", tuple(commit.rev for commit in found)
        raise NotFound(what, rev, candidates=revs, next="see: notebook-sync history")
    return found[0], core.history.text(found[0].rev, found[0].path)


def _version(commit: Commit, provenance: str) -> Version:
    what = " ".join(filter(None, (commit.action.replace("_", " "), commit.section)))
    return Version(
        rev=commit.rev,
        at=commit.at,
        changed_by=_maker(commit),
        summary=what or commit.summary,
        path=commit.path,
        session=commit.session,
        reason=commit.reason,
        provenance=provenance,
    )


def _maker(commit: Commit) -> str:
    """Who made a version; an agent that gave no name has no trailer."""
    return "agent:unknown" if commit.session not in ("", "owner") and commit.author == "owner" else commit.author
