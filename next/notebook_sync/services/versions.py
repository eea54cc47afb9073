"""What a note said before: its versions, the difference to now, and going back by a new edit.

Git knows the texts, and the events know which notes one call changed together.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial

from msgspec.structs import replace

from notebook_sync.errors import Conflict, EditFailed, GitFailed, NoSuchNote, NotFound
from notebook_sync.files.frontmatter import EXTERNAL, is_external
from notebook_sync.files.history import Version as Commit
from notebook_sync.files.names import is_note_name
from notebook_sync.files.unified import unified_diff
from notebook_sync.model import id_from_path
from notebook_sync.permissions import channel_of
from notebook_sync.registry import Results
from notebook_sync.services.changes import KEEPS_MARK, Change
from notebook_sync.services.core import Core
from notebook_sync.services.documents import require_base, require_change, why_not_free, written
from notebook_sync.services.lookup import resolve, split_name
from notebook_sync.services.reading import recorded_changes
from notebook_sync.services.results import Difference, Version, Written
from notebook_sync.services.view import View
from notebook_sync.services.writing import Saved, digest_of, save, writing
from notebook_sync.sessions import Session, maker_of
from notebook_sync.store.rows import Is, both

# How far back an earlier text is looked for: many commits may leave a note as it is.
_FARTHEST = 200
_OWN_ONLY = "An agent goes back over its own changes only"
_NO_PAST = "The history of this file is only available in owner conversations"

_Past = Iterator[tuple[Commit, bytes | None]]


def list_versions(core: Core, session: Session, name: str, limit: int) -> Results[Version]:
    """The versions of a note, the newest first. Without git, the changes that the index recorded, and why."""
    view = View(core, session)
    path = _past_path(core, view, name, "notebook_history")
    provenance = EXTERNAL if is_external(_bytes_at(core, path) or b"") else ""
    try:
        commits = core.history.versions(path, limit=limit, may=partial(view.may, "read"))
    except GitFailed as error:
        return Results(_recorded(core, view, path, limit, provenance), f"{error.message}; texts are not kept")
    return Results([_shown(commit, provenance) for commit in commits])


def compare_versions(core: Core, session: Session, name: str, since: str, until: str) -> Difference:
    """What changed from one version of a note to another. Raises NotFound for a `rev` that the note does not have."""
    view = View(core, session)
    path = _past_path(core, view, name, "notebook_history")
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
    path = _past_path(core, view, name, "notebook_undo")
    with nullcontext() if dry_run else writing(core, "undo"):
        now = _bytes_at(core, path)
        if now is None:
            view.require("write", path, "notebook_undo")
            if expected_digest:
                raise Conflict(path, expected_digest, "")
            if reason := why_not_free(core, view, path):
                raise EditFailed(path, f"it cannot come back: the path {reason}")
        else:
            require_change(core, view, path, "notebook_undo")
            require_base(core, view, path, now, expected_digest)
        changes = [] if rev else _batch_back(core, view, path)
        changes = changes or [_back(core, view, path, now, rev)]
        saved = Saved() if dry_run else save(core, changes, session)
    own = [each for each in changes if path in (each.path, each.moved_from)]
    end = own[-1].path
    others = sorted({each.path for each in changes if each.path != end})
    also = [f"changed back with it: {', '.join(others)}"] if others else []
    done = written(core, end, now, own[-1].after, saved, "dry_run" if dry_run else "updated")
    is_changed = any(each.moved_from or each.before != each.after for each in changes)
    return replace(done, changed=is_changed, warnings=[*done.warnings, *also])


# ---- one note


def _back(core: Core, view: View, path: str, now: bytes | None, rev: str) -> Change:
    """The change to the last text that differs from `now`, or to that of `rev`."""
    session = view.session
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
    if channel_of(commit.path) not in (None, channel_of(path)):
        raise EditFailed(path, f"what it said at {commit.path} is not for all who may read it here")
    if session.kind != "owner":
        own = (session.kind, session.changed_by)
        if not any(text == now for _, text in passed) or any((each.session, _maker(each)) != own for each, _ in passed):
            raise view.refuse(path, "notebook_undo", _OWN_ONLY)
        if not is_external(raw) and any(is_external(text) for _, text in passed if text):
            raise view.refuse(path, "notebook_undo", KEEPS_MARK)
    return Change(path, now, raw, "undo", is_known=True)


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
        revs = tuple(commit.rev for commit in found)
        raise NotFound(
            "version" if not found else "single version", rev, candidates=revs, next="see: notebook-sync history"
        )
    return found[0], core.history.text(found[0].rev, found[0].path)


def _maker(commit: Commit) -> str:
    """Who made a version; an agent that gave no name has no trailer."""
    return "agent:unknown" if commit.session not in ("", "owner") and commit.author == "owner" else commit.author


# ---- notes that one call changed together


def _batch_back(core: Core, view: View, path: str) -> list[Change]:
    """The changes that take back the last call that wrote the note, where it changed several notes or moved this one,
    and none of them was changed since; else none."""
    events = core.index.events
    last = events.find(both(Is("kind", "=", "edit"), Is("path", "=", path)), order=("-id",), limit=1)
    batch = last[0]["key"].partition(":")[0] if last else ""
    rows = events.find(both(Is("key", ">=", f"{batch}:"), Is("key", "<", f"{batch};")), order=("key",)) if batch else []
    rows = [row for row in rows if "moved_to" not in row["fields"]]
    moved = {row["path"]: row["fields"]["moved_from"] for row in rows if row["fields"]["moved_from"]}
    if len(rows) < 2 and not moved:
        return []
    if view.session.kind != "owner" and any(
        (row["session"], row["agent"]) != (view.session.kind, view.session.agent) for row in rows
    ):
        raise view.refuse(path, "notebook_undo", _OWN_ONLY)
    now = {row["path"]: _bytes_at(core, row["path"]) for row in rows}
    ends = {row["path"]: row["fields"]["digest"] for row in rows}
    if any(digest_of(now[each]) != digest for each, digest in ends.items()):
        return []
    back: list[Change] = []
    for each, old in moved.items():
        require_change(core, view, each, "notebook_undo")
        view.require("add", old, "notebook_undo")
        if reason := why_not_free(core, view, old, each):
            raise EditFailed(each, f"it cannot have its old path {old} again: that {reason}")
        back.append(Change(old, now[each], now[each], "undo", moved_from=each))
    for row in rows:
        each, fields = row["path"], row["fields"]
        if fields["base"] == fields["digest"]:
            continue
        was = next((raw for _, raw in _past(core, view, each) if digest_of(raw) == fields["base"]), None)
        if was is None:
            return []
        if now[each] is not None:
            require_change(core, view, each, "notebook_undo")
        back.append(Change(moved.get(each, each), now[each], was, "undo", is_known=True))
    return back


# ---- names, shapes


def _past_path(core: Core, view: View, name: str, operation: str) -> str:
    """The path of a note that is there or was: named as any note, by the path that it left, or by its old id.

    Raises NotPermitted where the session sees only a part of the note, NoSuchNote.
    """
    try:
        path, _ = resolve(core, view, name, operation=operation)
    except NoSuchNote as missing:
        path = _gone_path(core, view, split_name(name)[0])
        if not path:
            raise missing from None
    if view.sees_in_part(path):
        raise view.refuse(path, operation, _NO_PAST)
    return path


def _gone_path(core: Core, view: View, target: str) -> str:
    """Where the note is, or was last, that had this path or id and that the session may read; "" for none."""
    place = core.tree.place(target)
    ended = core.index.gone(ids=[target, id_from_path(place)])
    for path in (place, f"{place}.md", *(row["path"] or "" for row in ended)):
        if not is_note_name(path.rpartition("/")[2]) or not view.may("read", path) or core.tree.stat(path) is not None:
            continue
        left = core.index.events.find(both(Is("kind", "=", "edit"), Is("path", "=", path)), order=("-id",), limit=1)
        to = left[0]["fields"].get("moved_to", "") if left else ""
        if to and view.may("read", to) and core.tree.stat(to) is not None:
            return str(to)
        if next(_past(core, view, path), None) is not None:
            return path
    return ""


def _bytes_at(core: Core, path: str) -> bytes | None:
    try:
        return core.tree.read(path).raw
    except NoSuchNote:
        return None


def _shown(commit: Commit, provenance: str) -> Version:
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


def _recorded(core: Core, view: View, path: str, limit: int, provenance: str) -> list[Version]:
    ids = core.index.documents.tuples(("id",), Is("path", "=", path))
    rows = recorded_changes(core, view, ids[0][0] if ids else id_from_path(path), limit)
    same = {"rev": "", "path": path, "session": "", "reason": "", "provenance": provenance}
    return [Version(at=row["at"], changed_by=row["changed_by"], summary=row["summary"], **same) for row in rows]
