"""Creating, updating and deleting notes by their fields. A kind of note is a declaration; one code serves them all."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from datetime import UTC
from itertools import count
from typing import Any

from notebook_sync.errors import Conflict, EditFailed, NoSuchNote, OverCap, UsageError
from notebook_sync.files.edits import Action, Edit, apply_edits, entries_of
from notebook_sync.files.frontmatter import EXTERNAL, is_external, read_frontmatter
from notebook_sync.files.names import twin, why_not
from notebook_sync.files.new_note import new_id, note_text, slug
from notebook_sync.files.parse import parse
from notebook_sync.files.unified import unified_diff
from notebook_sync.model import Note, collection_of
from notebook_sync.permissions import guarded_key, guarded_names
from notebook_sync.services.changes import Change, checked
from notebook_sync.services.core import Core
from notebook_sync.services.lookup import resolve
from notebook_sync.services.results import Missing, Written
from notebook_sync.services.view import View
from notebook_sync.services.writing import Saved, digest_of, save, without_hidden, writing
from notebook_sync.sessions import Session
from notebook_sync.sync.project import audience
from prompt import count_tokens, visible

_CHANGED_MEANWHILE = 5
# Here, content without a fence is code.
_CODE = "code_snippets"
_HEADING = re.compile(r"( {0,3}#[ \t]+)[^\r\n]*")


# The fields of a note in addition to the common ones, by the folder that is its collection.
FIELDS: Mapping[str, tuple[str, ...]] = {
    "pages": (),
    _CODE: ("language", "description", "related_page"),
    "research_notes": ("source_url", "key_findings", "confidence", "related_pages"),
}
_COMMON = ("title", "tags", "summary", "status")


def create_note(
    core: Core, session: Session, collection: str, title: str, content: str, fields: Mapping[str, Any]
) -> Written:
    """A new note in the folder of its collection; fields that are None are not given.

    Raises NotPermitted, UsageError for what a note cannot say.
    """
    view = View(core, session)
    view.require("add", f"{collection}/note.md", "notebook_create")
    if not title.strip():
        raise UsageError("a note needs a title", next="give it a few words")
    head = {
        "id": new_id(),
        "title": " ".join(title.split()),
        "created_by": session.changed_by,
        "created_at": core.now().replace(microsecond=0),
        "status": "draft",
        **_given(collection, fields),
    }
    body = _as_code(content, head.get("language")) if collection == _CODE else content
    raw = note_text(head, body, collection=collection)
    stem = slug(title, collection.removesuffix("s"))
    with writing(core, "create"):
        paths = (f"{collection}/{stem}{f'-{number}' if number > 1 else ''}.md" for number in count(1))
        path = next(each for each in paths if not why_not_free(core, view, each))
        saved = save(core, [Change(path, None, raw, "create", is_new=True)], session)
    return written(core, path, None, saved.texts[path], saved, "created")


def update_note(
    core: Core,
    session: Session,
    name: str,
    content: str | None,
    fields: Mapping[str, Any],
    *,
    section: str,
    append: bool,
    collection: str,
    expected_digest: str,
    reason: str,
) -> Written | Missing:
    """Change what is given and no other byte. Raises NotPermitted, Conflict, EditFailed, OverCap."""
    try:
        _, path, fragment = note_to_change(core, session, name, "notebook_update", collection)
    except NoSuchNote as error:
        return Missing(notebook_id=name, status="not_found", error=str(error))
    section = section or fragment
    collection, zone = collection_of(path), core.settings.timezone
    is_code, given = collection == _CODE and not section, _given(collection, fields)
    if content is None and not given:
        raise UsageError("there is nothing to change", next="give content, title, tags, summary, status or a field")

    def change(before: bytes) -> bytes:
        note = parse(path, before, timezone=zone)
        if content is None:
            return _with_fields(path, before, note, given, in_heading=True)
        text = _as_code(content, note.fields.get("language")) if is_code else content
        after = _with_content(path, before, text, section, append=append)
        return _with_fields(path, after, parse(path, after, timezone=zone), given, in_heading=False)

    done, _ = rewrite(
        core,
        session,
        path,
        change,
        action="update",
        section=section,
        reason=reason,
        expected_digest=expected_digest,
        is_whole=content is not None,
    )
    return done


def delete_note(
    core: Core, session: Session, name: str, *, expected_digest: str, reason: str, collection: str
) -> Written | Missing:
    """Delete a note; history keeps its text. Raises NotPermitted, Conflict, Refused where no history can be kept."""
    try:
        view, path, _ = note_to_change(core, session, name, "notebook_delete", collection)
    except NoSuchNote as error:
        return Missing(notebook_id=name, status="not_found", error=str(error))
    with writing(core, "delete"):
        before = core.tree.read(path).raw
        require_base(core, view, path, before, expected_digest)
        saved = save(core, [Change(path, before, None, "delete", reason=reason)], session)
        return written(core, path, before, None, saved, "deleted")


def rewrite(
    core: Core,
    session: Session,
    path: str,
    change: Callable[[bytes], bytes],
    *,
    action: str,
    reason: str = "",
    section: str = "",
    expected_digest: str = "",
    is_whole: bool = False,
    edits: Sequence[Edit] = (),
    allow_over_cap: bool = False,
    dry_run: bool = False,
) -> tuple[Written, bytes]:
    """Apply a pure change to one note under the write lock; the answer and the new text. Without a digest, a note that
    an editor saves meanwhile is read again, a few times. Raises Conflict, OverCap, and what `change` and `save` do."""
    view = View(core, session)
    with nullcontext() if dry_run else writing(core, action):
        for attempt in count(1):
            before = core.tree.read(path).raw
            require_base(core, view, path, before, expected_digest)
            after = _changed(core, path, before, change, allow_over_cap=allow_over_cap)
            said = (action, section, reason)
            one = Change(path, before, after, *said, is_whole=is_whole, edits=tuple(edits))
            if dry_run:
                after = checked(core, [one], session)[0].after or b""
                return written(core, path, before, after, Saved(), "dry_run"), after
            try:
                saved = save(core, [one], session)
            except Conflict:
                if expected_digest or attempt == _CHANGED_MEANWHILE:
                    raise
                continue
            after = saved.texts.get(path) or after
            return written(core, path, before, after, saved, "updated"), after
    raise AssertionError("the last attempt raises")


def _changed(core: Core, path: str, before: bytes, change: Callable[[bytes], bytes], *, allow_over_cap: bool) -> bytes:
    """The note after a pure change. Raises OverCap where a prompt file grows beyond its cap: one that shrinks may stay
    over. An error about the text of others quotes nothing of it."""
    try:
        after = change(before)
    except EditFailed as failed:
        if not is_external(before):
            raise
        raise EditFailed(path, failed.reason.partition("\n")[0], line=failed.line) from None
    if not allow_over_cap and path in guarded_names(core.settings.prompt).values():
        from notebook_sync.services.assembling import files_of  # loads the prompt's parts, which few edits need

        cap, (old, new) = files_of(core).caps.get(path), (tokens_of(core, path, raw) for raw in (before, after))
        if cap is not None and old < new > cap:
            raise OverCap(path, new, cap, tuple(entry.text for entry in entries_of(after)))
    return after


def tokens_of(core: Core, path: str, raw: bytes) -> int:
    """The tokens of a note; of a prompt file, those of what the prompt can show."""
    text = raw.decode(errors="replace")
    if audience(path, core.settings.prompt) == "apart":
        text = visible(text, now=core.settings.local_now()).text
    return count_tokens(text, core.settings.prompt.encoding)


def note_to_change(
    core: Core, session: Session, name: str, operation: str, collection: str = ""
) -> tuple[View, str, str]:
    """The session's view, and path and fragment of the note that it names. Raises as `resolve` and `require_change`."""
    view = View(core, session)
    path, fragment = resolve(core, view, name, collection=collection, operation=operation)
    require_change(core, view, path, operation)
    return view, path, fragment


def require_change(core: Core, view: View, path: str, operation: str) -> None:
    """Raises NotPermitted unless `may_change`."""
    view.require("read", path, operation)
    view.require("write", path, operation)
    if not may_change(core, view, path):
        raise view.refuse(path, operation, "This conversation may change only the pages that its agent created")


def may_change(core: Core, view: View, path: str) -> bool:
    """Whether the session may read and change the note; with `permissions.pages = "own"`, an agent changes only the
    pages that it created."""
    session, pages = view.session, core.settings.permissions.pages
    if not view.may("read", path) or not view.may("write", path):
        return False
    if session.kind == "owner" or pages == "shared" or collection_of(path) not in FIELDS:
        return True
    return parse(path, core.tree.read(path).raw, timezone=core.settings.timezone).created_by == session.changed_by


def require_base(core: Core, view: View, path: str, raw: bytes, expected_digest: str) -> None:
    """Raises Conflict where the note no longer has the digest that the caller saw."""
    if expected_digest and expected_digest != digest_of(raw):
        conflict = Conflict(path, expected_digest, digest_of(raw), raw.decode(errors="replace"))
        raise without_hidden(core, view.session, conflict)


def written(core: Core, path: str, before: bytes | None, after: bytes | None, saved: Saved, status: str) -> Written:
    """The answer to a write of one note. What the new text has that will not be read as it seems is a warning."""
    zone, kept = core.settings.timezone, after if after is not None else before or b""
    note = parse(path, kept, timezone=zone)
    known = {problem.message for problem in parse(path, before or b"", timezone=zone).problems}
    new = [f"{path}: {problem}" for problem in note.problems if problem.message not in known]
    old, now = ((raw or b"").decode(errors="replace") for raw in (before, after))
    return Written(
        status=status,
        notebook_id=note.wanted_id,
        path=path,
        title=note.title,
        collection=note.collection,
        digest=digest_of(after),
        version=saved.versions.get(path),
        changed=before != after,
        diff=unified_diff(old, now, path) if before is not None else "",
        commit=saved.commit,
        warnings=list(dict.fromkeys((*saved.warnings, *new))),
        provenance=EXTERNAL if is_external(kept) or is_external(before or b"") else "",
    )


def why_not_free(core: Core, view: View, path: str, besides: str = "") -> str:
    """Why a session may not give a note this new path; "" if it may. Names that a guarded file answers to are the
    owner's, and a withheld path counts as taken. `besides` is the path that the note has now."""
    if reason := why_not(path) or core.tree.why_left_out(path):
        return reason
    if view.session.kind != "owner" and guarded_key(path) in guarded_names(core.settings.prompt):
        return "is a name that one of the owner's files answers to"
    folder, name = posixpath.split(path)
    with suppress(OSError):  # the folder need not exist
        others = {each.name for each in os.scandir(core.root / folder) if posixpath.join(folder, each.name) != besides}
        if name in others or not view.may("read", path):
            return "already exists"
        if other := twin(name, others):
            return f"differs from {other} only in a way that some systems ignore"
    return "" if view.may("read", path) else "already exists"


def _given(collection: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that are given. Raises UsageError for one that notes of this collection do not have."""
    known = FIELDS.get(collection, ())
    given = {name: value for name, value in fields.items() if value is not None}
    for name in given.keys() - {*_COMMON, *known}:
        advice = f"it may have {', '.join((*_COMMON, *known))}"
        raise UsageError(f"a note in {collection} has no field {name!r}", next=advice)
    return given | ({"title": " ".join(given["title"].split())} if "title" in given else {})


def _as_code(content: str, language: Any) -> str:
    """Code as a fenced block, unless there is one in it."""
    if re.search(r"^ {0,3}(```|~~~)", content, re.MULTILINE):
        return content
    longest = max((len(run) for run in re.findall(r"`+", content)), default=0)
    fence = "`" * max(3, longest + 1)
    last = "" if content.endswith("\n") or not content else "\n"
    return f"{fence}{language or ''}\n{content}{last}{fence}\n"


def _with_content(path: str, raw: bytes, content: str, section: str, *, append: bool) -> bytes:
    if section:
        action: Action = "append_to_section" if append else "replace_section"
        return apply_edits(path, raw, [Edit(action, section=section, content=content)])
    text = _decoded(path, raw)
    start = read_frontmatter(text).body_start
    head, body = text[:start], text[start:]
    if append and body.strip():
        eol = "\r\n" if "\r\n" in body else "\n"
        content = body.rstrip("\r\n") + eol * 2 + content
    if read_frontmatter(head + content).body_start != start or (
        not append and read_frontmatter(content).body_start > 1
    ):
        advice = "give title, tags and other fields as arguments, and the content without frontmatter"
        raise EditFailed(path, "the content opens frontmatter of its own", line=1, next=advice)
    return apply_edits(path, raw, [Edit("write", content=head + content)])


def _with_fields(path: str, raw: bytes, note: Note, given: Mapping[str, Any], *, in_heading: bool) -> bytes:
    """The note with these fields, where it does not say them already; "" and [] remove one. `in_heading`: a title is
    changed in the first heading, where that gives it."""
    text = _decoded(path, raw)
    front = read_frontmatter(text)
    setting: dict[str, Any] = {}
    for name, value in given.items():
        has = getattr(note, name) if hasattr(note, name) else note.fields.get(name)
        if value != (list(has) if isinstance(has, tuple) else has) and (value or front.key_of(name)):
            setting[name] = value or None
    first = next((each for each in note.sections if each.level == 1), None)
    if in_heading and setting.get("title") and not front.key_of("title") and first and first.heading == note.title:
        line = _HEADING.match(text, front.body_start + first.start)
        after = (text[: line.end(1)] + setting["title"] + text[line.end() :]).encode() if line else raw
        if parse(path, after, timezone=UTC).title == setting["title"]:
            raw = after
            del setting["title"]
    return apply_edits(path, raw, [Edit("set_frontmatter", fields=setting)]) if setting else raw


def _decoded(path: str, raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise EditFailed(path, "it is not UTF-8; correct that first", line=line) from None
