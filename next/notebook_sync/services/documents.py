"""Creating, updating, editing and deleting notes. A kind of note is a declaration; one code serves them all."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC
from itertools import count
from typing import TYPE_CHECKING, Any

import msgspec

from notebook_sync.errors import EditFailed, NoSuchNote, OverCap, UnsafePath, UsageError
from notebook_sync.files.edits import Action, Edit, apply_edits, entries_of
from notebook_sync.files.frontmatter import EXTERNAL, is_external, read_frontmatter
from notebook_sync.files.new_note import new_id, note_text, slug
from notebook_sync.files.parse import parse
from notebook_sync.files.unified import unified_diff
from notebook_sync.model import collection_of, id_from_path
from notebook_sync.permissions import channel_of, guarded_names
from notebook_sync.services.core import Core
from notebook_sync.services.lookup import resolve
from notebook_sync.services.results import Edited, Missing, Written
from notebook_sync.services.view import View
from notebook_sync.services.writing import (
    NOT_OWN,
    Change,
    Saved,
    change_notes,
    digest_of,
    owns,
    require_base,
    why_not_free,
)
from notebook_sync.sessions import Session
from prompt import compare, count_tokens

if TYPE_CHECKING:
    from notebook_sync.services.notes import Step

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
# The argument that an action cannot do without, where it needs one.
_NEEDS = {
    **dict.fromkeys(("append_to_section", "replace_section", "set_frontmatter", "write"), "content"),
    **dict.fromkeys(("remove_entry", "toggle_checkbox", "move_entry"), "entry_match"),
    "add_section": "section",
}


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
    return create_file(view, f"{collection}/{slug(title, collection.removesuffix('s'))}", head, body)


def create_file(view: View, stem: str, head: Mapping[str, Any], body: str) -> Written:
    """A new note at the path `stem`, numbered where that is taken, with these fields above its body: the way of every
    kind of note. The caller has checked that the session may add one there.

    Raises UsageError for what a note cannot say, UnsafePath where no file would be a note.
    """
    core, collection = view.core, collection_of(f"{stem}.md")
    raw = note_text(head, body, collection=collection)
    if reason := core.tree.why_left_out(f"{stem}.md"):  # as every number of it would be
        raise UnsafePath(f"{stem}.md", reason)

    def plan() -> list[Change]:
        paths = (f"{stem}{f'-{number}' if number > 1 else ''}.md" for number in count(1))
        path = next(each for each in paths if not why_not_free(core, view, each))
        return [Change(path, None, raw, "create", is_new=True)]

    saved = change_notes(core, view.session, "create", plan)
    return written(core, saved, saved.changes[0].path, "created")


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
    section = section or fragment
    collection, zone = collection_of(path), core.settings.timezone
    is_code, given = collection == _CODE and not section, _given(collection, fields)
    replaced = _replaced(core, session, path, supersedes) if supersedes else ""
    if content is None and not given and not replaced:
        raise UsageError("there is nothing to change", next="give content, title, tags, summary, status or a field")

    def change(before: bytes) -> bytes:
        after = before
        if content is not None:
            language = parse(path, before, timezone=zone).fields.get("language")
            text = _as_code(content, language) if is_code else content
            after = _with_content(path, before, text, section, append=append)
        fields = given | (_as_successor(core, path, before, replaced) if replaced else {})
        return _with_fields(path, after, fields, in_heading=content is None)

    def also() -> list[Change]:
        if not replaced:
            return []
        old, successor = core.tree.read(replaced).raw, parse(path, core.tree.read(path).raw, timezone=zone)
        new = _with_fields(replaced, old, {"superseded_by": successor.wanted_id}, in_heading=False)
        return [Change(replaced, old, new, "update", reason=reason)]

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
        also=also,
    )
    return done


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
    from notebook_sync.services.assembling import assemble, files_of  # loads the prompt's parts, for edits alone

    _, path, fragment = note_to_change(core, session, name, "notebook_edit")
    edits = [_edit(step, fragment) for step in steps]
    cap = files_of(core).caps.get(path)
    prompt_before = None if cap is None else assemble(core, session)
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
    prompt = assemble(core, session, contents={path: after}) if prompt_before else None
    parts = [part for part in prompt.parts if part.path == path] if prompt else []
    return Edited(
        **msgspec.structs.asdict(done),
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
    if not allow_over_cap and path in guarded_names(core.settings.prompt).values():
        from notebook_sync.services.assembling import files_of  # loads the prompt's parts, which few edits need

        cap, (old, new) = files_of(core).caps.get(path), (_tokens_of(core, path, raw) for raw in (before, after))
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
    if not may_change(core, view, path):
        raise view.refuse(path, operation, NOT_OWN)


def may_change(core: Core, view: View, path: str) -> bool:
    """Whether the session may read and change the note; with `permissions.pages = "own"`, an agent changes only the
    pages that it created."""
    if not view.may("read", path) or not view.may("write", path):
        return False
    return core.tree.stat(path) is None or owns(core, view.session, path, core.tree.read(path).raw)


def written(core: Core, saved: Saved, path: str, status: str) -> Written:
    """The answer to a write of the note that is at `path` now, or was."""
    own = [each for each in saved.changes if each.path == path]
    before, after = own[0].before, own[-1].after
    note = parse(path, after if after is not None else before or b"", timezone=core.settings.timezone)
    raws = [(each.path, each.before or b"", each.after or b"") for each in saved.changes]
    texts = [(old.decode(errors="replace"), new.decode(errors="replace"), each) for each, old, new in raws]
    return Written(
        status="dry_run" if saved.dry_run else status,
        notebook_id=note.wanted_id,
        path=path,
        title=note.title,
        collection=note.collection,
        digest=digest_of(after),
        version=saved.versions.get(path),
        changed=any(each.moved_from or each.before != each.after for each in saved.changes),
        diff="" if before is None else "".join(unified_diff(*each) for each in texts),
        commit=saved.commit,
        warnings=list(dict.fromkeys((*saved.warnings, *(said for each in saved.changes for said in each.warnings)))),
        provenance=EXTERNAL if any(is_external(old) or is_external(new) for _, old, new in raws) else "",
    )


def _given(collection: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that are given. Raises UsageError for one that notes of this collection do not have."""
    known = FIELDS.get(collection, ())
    given = {name: value for name, value in fields.items() if value is not None}
    for name in given.keys() - {*_COMMON, *known}:
        advice = f"it may have {', '.join((*_COMMON, *known))}"
        raise UsageError(f"a note in {collection} has no field {name!r}", next=advice)
    return given | ({"title": " ".join(given["title"].split())} if "title" in given else {})


def _replaced(core: Core, session: Session, path: str, name: str) -> str:
    """The path of the note that the one at `path` is to replace. Raises as `note_to_change`, UsageError."""
    _, replaced, _ = note_to_change(core, session, name, "notebook_update")
    if replaced == path:
        raise UsageError(f"{path} cannot replace itself", next="name the older note")
    if channel_of(replaced) != channel_of(path):  # each of the two names the other
        raise UsageError("a private note is replaced within its channel only", next="name a note of the same channel")
    return replaced


def _as_successor(core: Core, path: str, raw: bytes, replaced: str) -> dict[str, Any]:
    """The fields of a note that replaces another one, and is no longer replaced by that one."""
    fields = parse(path, raw, timezone=UTC).fields
    id = parse(replaced, core.tree.read(replaced).raw, timezone=UTC).wanted_id
    is_back = fields.get("superseded_by") in (id, replaced, id_from_path(replaced))
    return {
        "supersedes": list(dict.fromkeys((*fields.get("supersedes", ()), id))),
        **({"superseded_by": ""} if is_back else {}),
    }


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
    text = raw.decode()
    start = read_frontmatter(text).body_start
    head, body = text[:start], text[start:]
    if append and body.strip():
        eol = "\r\n" if "\r\n" in body else "\n"
        content = body.rstrip("\r\n") + eol * 2 + content
    opens = not append and read_frontmatter(content).body_start > 1
    if opens or read_frontmatter(head + content).body_start != start:
        advice = "give title, tags and other fields as arguments, and the content without frontmatter"
        raise EditFailed(path, "the content opens frontmatter of its own", line=1, next=advice)
    return apply_edits(path, raw, [Edit("write", content=head + content)])


def _with_fields(path: str, raw: bytes, given: Mapping[str, Any], *, in_heading: bool) -> bytes:
    """The note with these fields, where it does not say them already; "" and [] remove one. `in_heading`: a title is
    changed in the first heading, where that gives it."""
    text, note = raw.decode(), parse(path, raw, timezone=UTC)
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


def _edit(step: Step, fragment: str) -> Edit:
    """A step as an edit. Raises UsageError naming the argument that the action needs."""
    section, needed = step.section or fragment, _NEEDS[step.action]
    given = section if needed == "section" else getattr(step, needed)
    if given is None or (given == "" and needed != "content"):
        raise UsageError(f"{step.action} needs {needed}", next="see: notebook-sync edit --help")
    return Edit(step.action, section, step.content or "", step.entry_match or "", step.to or "")
