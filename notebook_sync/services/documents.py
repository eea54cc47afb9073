"""Creating, updating, editing and deleting notes. A kind of note is a declaration; one code serves them all."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC
from itertools import count
from typing import Any

import msgspec

from notebook_sync import services
from notebook_sync.errors import EditFailed, NoSuchNote, OverCap, UnsafePath, UsageError
from notebook_sync.files.beneath import digest_of
from notebook_sync.files.compose import code_block, new_id, note_text, slug
from notebook_sync.files.edits import Edit, apply_edits, entries_of, unified_diff
from notebook_sync.files.fields import FIELDS
from notebook_sync.files.frontmatter import EXTERNAL, Plain, is_external, read_frontmatter
from notebook_sync.files.names import folded, why_not
from notebook_sync.files.parse import parse
from notebook_sync.model import collection_of, id_from_path
from notebook_sync.permissions import channel_of, guarded_paths
from notebook_sync.services.core import Core
from notebook_sync.services.results import Edited, Missing, Written
from notebook_sync.services.view import View, resolve
from notebook_sync.services.writing import (
    NOT_OWN,
    Change,
    Saved,
    change_notes,
    owns,
    require_base,
    why_not_free,
)
from notebook_sync.sessions import Session
from notebook_sync.store.rows import Is
from prompt import compare, count_tokens

# Here, content without a fence is code.
_CODE = "code_snippets"
_HEADING = re.compile(r"( {0,3}#[ \t]+)[^\r\n]*")
# What notes of every collection have.
_COMMON = ("title", "tags", "summary", "status", "valid_until")
# Without content, these would empty a section or a file: that has to be asked for.
_EMPTYING = ("replace_section", "write")


def create_note(
    core: Core, session: Session, collection: str, title: str, content: str, fields: Mapping[str, Any]
) -> Written:
    """A new note in the folder of its collection; fields that are None are not given.

    Raises UsageError for what a note cannot say.
    """
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
    return create_file(View(core, session), f"{collection}/{slug(title, collection.removesuffix('s'))}", head, body)


def create_file(view: View, stem: str, head: Mapping[str, Any], body: str) -> Written:
    """A new note at the path `stem`, numbered where that is taken, with these fields above its body: the way of every
    kind of note. The caller has checked that the session may add one there.

    Raises UsageError for what a note cannot say, UnsafePath where no file would be a note.
    """
    raw = note_text(head, body, collection=collection_of(f"{stem}.md"))
    saved = change_notes(view.core, view.session, "create", lambda: [new_note(view, stem, raw, "create")])
    return written(view.core, saved, saved.changes[0].path, "created")


def new_note(view: View, stem: str, raw: bytes, action: str, taken: Collection[str] = ()) -> Change:
    """A new note at the path `stem`, numbered where that is taken; `taken` are paths of the same call, folded. Raises
    UnsafePath where no file would be a note."""
    # What is against its folder is against every number of it.
    if reason := view.core.tree.why_left_out(f"{stem}.md") or why_not(f"{stem}-2.md"):
        raise UnsafePath(f"{stem}.md", reason)
    paths = (f"{stem}{f'-{number}' if number > 1 else ''}.md" for number in count(1))
    free = (each for each in paths if folded(each) not in taken and not why_not_free(view.core, view, each))
    return Change(next(free), None, raw, action, is_new=True)


def update_note(
    core: Core,
    session: Session,
    name: str,
    content: str | None,
    fields: Mapping[str, Any],
    *,
    section: str,
    append: bool,
    supersedes: str,
    collection: str,
    expected_digest: str,
    reason: str,
) -> Written | Missing:
    """Change what is given and no other byte. Raises NotPermitted, Conflict, EditFailed, OverCap."""
    try:
        _, path, fragment = note_to_change(core, session, name, "notebook_update", collection)
    except NoSuchNote as error:
        return Missing(notebook_id=name, status="not_found", error=str(error))
    section, collection = section or fragment, collection_of(path)
    given, is_code = _given(collection, fields), collection == _CODE and not section
    # A field that would not read back is refused, as in a new note.
    note_text({name: value for name, value in given.items() if value}, "", collection=collection)
    replaced = _replaced(core, session, path, supersedes) if supersedes else ""
    if content is None and not given and not replaced:
        raise UsageError("there is nothing to change", next="give content, title, tags, summary, status or a field")

    def change(before: bytes) -> bytes:
        after = before
        if content is not None:
            language = parse(path, before, timezone=UTC).fields.get("language")
            text = _as_code(content, language) if is_code else content
            after = _with_content(path, before, text, section, append=append)
        successor, _ = _replacing(core, path, replaced) if replaced else ({}, {})
        return _with_fields(path, after, given | successor, in_heading=content is None)

    def also() -> list[Change]:
        before, (_, fields) = core.tree.read(replaced).raw, _replacing(core, path, replaced)
        after = _with_fields(replaced, before, fields, in_heading=False)
        return [Change(replaced, before, after, "update", reason=reason)]

    return rewrite(
        core,
        session,
        path,
        change,
        action="update",
        section=section,
        reason=reason,
        expected_digest=expected_digest,
        is_whole=content is not None,
        also=also if replaced else tuple,
    )[0]


def edit_note(
    core: Core,
    session: Session,
    name: str,
    steps: Sequence[services.notes.Step],
    *,
    dry_run: bool,
    expected_digest: str,
    reason: str,
    allow_over_cap: bool,
) -> Edited:
    """Apply all steps to one note, or none. Raises EditFailed, Conflict, OverCap, NotPermitted."""
    _, path, fragment = note_to_change(core, session, name, "notebook_edit")
    edits = [_edit(step, fragment) for step in steps]
    cap = services.assembling.files_of(core).caps.get(path)
    prompt_before = None if cap is None else services.assembling.assemble(core, session)
    done, after = rewrite(
        core,
        session,
        path,
        lambda before: apply_edits(path, before, edits),
        action=steps[0].action if len(steps) == 1 else "edit",
        section=edits[0].section,
        reason=reason,
        expected_digest=expected_digest,
        is_whole=any(edit.action == "write" for edit in edits),
        edits=edits,
        allow_over_cap=allow_over_cap,
        dry_run=dry_run,
    )
    prompt = services.assembling.assemble(core, session, contents={path: after}) if prompt_before else None
    parts = [part for part in prompt.parts if part.path == path] if prompt else []
    known = prompt_before.problems if prompt_before else ()
    # A rule or a reminder that cannot be read does not do what it says.
    unread = [each for each in (prompt.problems if prompt else ()) if each.startswith(f"{path}:") and each not in known]
    return Edited(
        **{**msgspec.structs.asdict(done), "warnings": [*done.warnings, *unread]},
        tokens=_tokens_of(core, path, after),
        cap=cap,
        omitted=[each._asdict() for part in parts for each in part.omitted],
        prompt_change=compare(prompt_before, prompt).as_json() if prompt_before and prompt else None,
    )


def delete_note(
    core: Core, session: Session, name: str, *, expected_digest: str, reason: str, collection: str
) -> Written | Missing:
    """Delete a note; history keeps its text. Raises NotPermitted, Conflict, Refused where no history can be kept."""
    try:
        view, path, _ = note_to_change(core, session, name, "notebook_delete", collection)
    except NoSuchNote as error:
        return Missing(notebook_id=name, status="not_found", error=str(error))

    def plan() -> list[Change]:
        before = core.tree.read(path).raw
        require_base(view, path, before, expected_digest)
        return [Change(path, before, None, "delete", reason=reason)]

    return written(core, change_notes(core, session, "delete", plan), path, "deleted")


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
    also: Callable[[], Sequence[Change]] = tuple,
    allow_over_cap: bool = False,
    dry_run: bool = False,
) -> tuple[Written, bytes]:
    """Apply a pure change to one note, and plan `also` those of others, as `change_notes` does; the answer and the new
    text. Raises OverCap, too."""
    view = View(core, session)

    def plan() -> list[Change]:
        before = core.tree.read(path).raw
        require_base(view, path, before, expected_digest)
        after = changed(core, path, before, change, allow_over_cap=allow_over_cap)
        return [Change(path, before, after, action, section, reason, is_whole=is_whole, edits=tuple(edits)), *also()]

    saved = change_notes(core, session, action, plan, dry_run=dry_run)
    return written(core, saved, path, "updated"), saved.changes[0].after or b""


def changed(core: Core, path: str, before: bytes, change: Callable[[bytes], bytes], *, allow_over_cap: bool) -> bytes:
    """The note after a pure change. Raises OverCap where a prompt file grows beyond its cap: one that shrinks may stay
    over. An error about the text of others quotes nothing of it."""
    try:
        after = change(before)
    except UnicodeDecodeError as error:
        line = before.count(b"\n", 0, error.start) + 1
        raise EditFailed(path, "it is not UTF-8; correct that first", line=line) from None
    except EditFailed as failed:
        if not is_external(before):
            raise
        raise EditFailed(path, failed.reason.partition("\n")[0], line=failed.line) from None
    if not allow_over_cap and path in guarded_paths(core.settings.prompt):
        cap = services.assembling.files_of(core).caps.get(path)
        old, new = (_tokens_of(core, path, raw) for raw in (before, after))
        if cap is not None and old < new > cap:
            raise OverCap(path, new, cap, tuple(entry.text for entry in entries_of(after)))
    return after


def _tokens_of(core: Core, path: str, raw: bytes) -> int:
    """The tokens of a note; of a prompt file, those of what the prompt can show."""
    text = View(core, Session.task()).shown(path, raw.decode(errors="replace"))
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
    if not _is_own(core, view, path):
        raise view.refuse(path, operation, NOT_OWN)


def may_change(core: Core, view: View, path: str) -> bool:
    """Whether the session may read and change the note; with `permissions.pages = "own"`, an agent changes only the
    pages that it created."""
    return view.may("read", path) and view.may("write", path) and _is_own(core, view, path)


def _is_own(core: Core, view: View, path: str) -> bool:
    return core.tree.stat(path) is None or owns(core, view.session, path, core.tree.read(path).raw)


def written(core: Core, saved: Saved, path: str, status: str) -> Written:
    """The answer to a write of the note that is at `path` now, or was."""
    own = [each for each in saved.changes if each.path == path]
    before, after = own[0].before, own[-1].after
    note = parse(path, after if after is not None else before or b"", timezone=core.settings.timezone)
    # A copy of a note has its own id until it is given another one.
    rows = core.index.documents.tuples(("id", "version"), Is("path", "=", path))
    id, version = next(iter(rows), (note.wanted_id, None))
    raws = [(each.path, each.before or b"", each.after or b"") for each in saved.changes]
    texts = [(old.decode(errors="replace"), new.decode(errors="replace"), each) for each, old, new in raws]
    return Written(
        status="dry_run" if saved.dry_run else status,
        notebook_id=id,
        path=path,
        title=note.title,
        collection=note.collection,
        digest=digest_of(after),
        version=version,
        changed=any(each.moved_from or each.before != each.after for each in saved.changes),
        diff="" if before is None else "".join(unified_diff(*each) for each in texts),
        commit=saved.commit,
        warnings=list(dict.fromkeys((*saved.warnings, *(said for each in saved.changes for said in each.warnings)))),
        provenance=EXTERNAL if any(is_external(old) or is_external(new) for _, old, new in raws) else "",
    )


def _given(collection: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that are given. Raises UsageError for one that notes of this collection do not have."""
    given, known = (
        {name: value for name, value in fields.items() if value is not None},
        (*_COMMON, *FIELDS.get(collection, ())),
    )
    for name in given.keys() - known:
        raise UsageError(f"a note in {collection} has no field {name!r}", next=f"it may have {', '.join(known)}")
    if "title" in given:
        given["title"] = " ".join(given["title"].split())
    if "valid_until" in given:
        given["valid_until"] = Plain(given["valid_until"])  # without quotes, so that every program reads a date
    return given


def _replaced(core: Core, session: Session, path: str, name: str) -> str:
    """The path of the note that the one at `path` is to replace. Raises as `note_to_change`, UsageError."""
    _, replaced, _ = note_to_change(core, session, name, "notebook_update")
    if replaced == path:
        raise UsageError(f"{path} cannot replace itself", next="name the older note")
    if channel_of(replaced) != channel_of(path):  # each of the two names the other
        raise UsageError("a private note is replaced within its channel only", next="name a note of the same channel")
    return replaced


def _replacing(core: Core, path: str, replaced: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fields of a note that replaces another one, and is no longer replaced by that one; and the other's."""
    new, old = (parse(each, core.tree.read(each).raw, timezone=UTC) for each in (path, replaced))
    fields = {"supersedes": list(dict.fromkeys((*new.fields.get("supersedes", ()), old.wanted_id)))}
    is_back = new.fields.get("superseded_by") in (old.wanted_id, replaced, id_from_path(replaced))
    return fields | ({"superseded_by": ""} if is_back else {}), {"superseded_by": new.wanted_id}


def _as_code(content: str, language: Any) -> str:
    """Code as a fenced block, unless there is one in it."""
    if re.search(r"^ {0,3}(```|~~~)", content, re.MULTILINE):
        return content
    return code_block(content, language or "")


def _with_content(path: str, raw: bytes, content: str, section: str, *, append: bool) -> bytes:
    if section:
        edit = Edit("append_to_section" if append else "replace_section", section=section, content=content)
        return apply_edits(path, raw, [edit])
    text = raw.decode()
    start = read_frontmatter(text).body_start
    head, body = text[:start], text[start:]
    eol = "\r\n" if "\r\n" in body else "\n"
    if append and body.strip():
        content = body.rstrip("\r\n") + eol * 2 + content
    if content and body.endswith("\n") and not content.endswith("\n"):
        content += eol  # as the file had it: what a person appends is to begin a line of its own
    opens = not append and read_frontmatter(content).body_start > 1
    if opens or read_frontmatter(head + content).body_start != start:
        raise EditFailed(
            path,
            "the content opens frontmatter of its own",
            line=1,
            next="give title, tags and other fields as arguments, and the content without frontmatter",
        )
    return apply_edits(path, raw, [Edit("write", content=head + content)])


def _with_fields(path: str, raw: bytes, given: Mapping[str, Any], *, in_heading: bool) -> bytes:
    """The note with these fields, where it does not say them already; "" and [] remove one. `in_heading`: a title is
    changed in the first heading, where that gives it."""
    text, note = raw.decode(), parse(path, raw, timezone=UTC)
    front = read_frontmatter(text)
    setting: dict[str, Any] = {}
    for name, value in given.items():
        has = note.fields.get(name, getattr(note, name, None))
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


def _edit(step: services.notes.Step, fragment: str) -> Edit:
    """A step as an edit. Raises UsageError for one that would empty something without saying so."""
    if step.content is None and step.action in _EMPTYING:
        raise UsageError(f"{step.action} needs content", next="give it, or an empty text to empty the place")
    return Edit(step.action, step.section or fragment, step.content or "", step.entry_match or "", step.to or "")
