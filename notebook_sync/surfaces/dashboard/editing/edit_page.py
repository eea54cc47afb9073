"""Editing a note: all of its text or a section, and its frontmatter as a form. What is typed is never lost: whatever
speaks against saving it is said above the form that still holds it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Path, Query
from fastapi.responses import HTMLResponse, RedirectResponse
from markupsafe import Markup
from starlette.responses import Response

from notebook_sync.errors import Conflict, EditFailed, NoSuchNote, NotebookError, OverCap
from notebook_sync.files.edits import Edit, edited
from notebook_sync.files.frontmatter import read_frontmatter
from notebook_sync.files.note import collection_of
from notebook_sync.notebook import Notebook
from notebook_sync.notes.editing.door import digest_of
from notebook_sync.notes.editing.filing import File
from notebook_sync.sessions import Session
from notebook_sync.surfaces.dashboard.asking import Asking, Form, Served, pages_router
from notebook_sync.surfaces.dashboard.editing.conflict import marks_in
from notebook_sync.surfaces.dashboard.editing.conflict_page import Sides, conflict_page, unchosen_page
from notebook_sync.surfaces.dashboard.editing.edit_base import fits_a_form, packed, reason_against, unpacked
from notebook_sync.surfaces.dashboard.editing.edit_text import BODY, WHOLE, Box, box_of
from notebook_sync.surfaces.dashboard.editing.edit_view import LONGEST_PREVIEW, effect_of, name_of, outline_of
from notebook_sync.surfaces.dashboard.editing.note_form import Field, changes_in, fields_of, others_of
from notebook_sync.surfaces.dashboard.pages import fragment, page
from notebook_sync.surfaces.dashboard.rendering import rendered
from notebook_sync.surfaces.errors import kind_of

pages = pages_router()
Name = Annotated[str, Path(max_length=4096)]
_REASON = "from the dashboard"


@dataclass(frozen=True, slots=True)
class Draft:
    """What a form was sent with. `base` is the file that it was made from, `digest` that of it, "" for none; `expected`
    is that of the file to be written on, which is the same unless that is gone."""

    path: str
    part: str
    base: str
    digest: str
    expected: str
    typed: str
    form: Mapping[str, str]

    @property
    def box(self) -> Box:
        """Where what was typed goes. Raises NoSuchNote."""
        return box_of(self.base, self.part, self.path)

    @property
    def fields(self) -> tuple[Field, ...]:
        """The inputs beside the text, as they were before."""
        return fields_of(self.base, self.path) if self.part == BODY else ()

    def file(self) -> str:
        """The file as it is to be. Raises UsageError, EditFailed, NoSuchNote."""
        file = self.box.file_with(self.typed)
        changes = changes_in(self.form, self.fields)
        if not changes:
            return file
        return edited(file.encode(), Edit("set_frontmatter", content=changes), self.path).decode()


def draft_of(path: str, form: Mapping[str, str]) -> Draft:
    """Raises UsageError for a form without what it was made from."""
    digest = form.get("digest", "")
    base = unpacked(form.get("base", ""), digest)
    return Draft(path, form.get("part", BODY), base, digest, form.get("expected", digest), form.get("text", ""), form)


@pages.get("/edit/{note:path}")
def edit_page(
    notebook: Served,
    asking: Asking,
    note: Name,
    section: Annotated[str, Query(max_length=1024)] = "",
    whole: bool = False,
) -> Response:
    """The form, for the whole note, for its file, or for one section."""
    file = notebook.file(note, asking)
    part = f"#{section}" if section else WHOLE if whole else BODY
    if reason := reason_against(file):
        return page("edit_refused.html", here="notes", path=file.path, reason=reason, status=422)
    draft = Draft(file.path, part, file.text, file.digest, file.digest, box_of(file.text, part, file.path).shown, {})
    return _form_page(notebook, draft, file=file)


@pages.post("/edit/{note:path}")
def save(notebook: Served, asking: Asking, note: Name, form: Form) -> Response:
    """Write what was typed, on what it was made from, or show what speaks against that."""
    draft = draft_of(note, form)
    if form.get("preview"):
        return _form_page(notebook, draft, preview=_preview(notebook, asking, draft))
    after = ""
    sides = Sides.unpacked(form.get("sides", ""), form.get("sides_digest", ""))
    try:
        after = draft.file()
        if sides and (left := _marks_left(draft)):
            return unchosen_page(note, sides, draft.base, draft.expected, draft.typed, _unchosen(left))
        _must_be_chosen(draft)
        written = notebook.edit(
            note,
            Edit("write", content=after, reason=_REASON),
            asking,
            expected_digest=draft.expected,
            allow_over_cap=bool(form.get("allow_over_cap")),
        )
    except Conflict as conflict:
        if conflict.current == digest_of(after.encode()):  # sent twice: it is written
            return _shown(note, "saved")
        if conflict.current == conflict.base:  # it is only being written to
            return _form_page(notebook, draft, error=conflict)
        return conflict_page(note, draft.base, after, draft.typed, conflict)
    except NotebookError as error:
        return _form_page(notebook, draft, error=error)
    if written.warnings:
        return page("saved.html", here="notes", path=note, warnings=written.warnings)
    return _shown(note, "saved" if written.changed else "unchanged")


@pages.post("/preview")
def preview(notebook: Served, asking: Asking, form: Form) -> HTMLResponse:
    """What a form that is being filled in would do, as a part of its page."""
    return HTMLResponse(_preview(notebook, asking, draft_of(form.get("path", ""), form)))


def _shown(path: str, done: str) -> RedirectResponse:
    return RedirectResponse(f"/notes/{quote(path)}?done={done}", 303)


def _must_be_chosen(draft: Draft) -> None:
    """What was to be chosen between is not written by oversight; a note may hold such lines on purpose."""
    if left := _marks_left(draft):
        raise EditFailed(draft.path, _unchosen(left))


def _unchosen(left: int) -> str:
    return f"{left} lines still mark what is to be chosen between; choose, and take the marks out"


def _marks_left(draft: Draft) -> int:
    return max(0, marks_in(draft.typed) - marks_in(draft.box.shown))


def _form_page(
    notebook: Notebook,
    draft: Draft,
    *,
    file: File | None = None,
    error: NotebookError | None = None,
    preview: Markup | str = "",
) -> Response:
    base = packed(draft.base)
    outline = outline_of(draft.path, draft.base, notebook.settings.prompt.encoding)
    is_sendable = error is not None or fits_a_form(draft.typed, base)
    return page(
        "edit.html",
        here="notes",
        status=kind_of(error).status if error else 200 if is_sendable else 413,
        path=draft.path,
        part=draft.part,
        section=name_of(draft.base, draft.part, draft.path),
        is_whole=draft.part == WHOLE,
        is_external=file is not None and file.external,
        is_runtime=collection_of(draft.path) == "runtime",
        is_sendable=is_sendable,
        typed=draft.typed,
        base=base,
        digest=draft.digest,
        expected=draft.expected,
        has_fields=bool(fields_of(draft.base, draft.path)),
        fields=[each.with_value(draft.form.get(each.name, each.value)) for each in draft.fields],
        others=others_of(draft.base, draft.path) if draft.part == BODY else (),
        outline=outline,
        wrong=_wording(error),
        candidates=_candidates(error),
        is_over_cap=isinstance(error, OverCap),
        preview=preview,
    )


def _wording(error: NotebookError | None) -> str:
    match error:
        case None:
            return ""
        case EditFailed():
            return error.reason
        case OverCap():
            return (
                f"{error.path} would have {error.tokens:,} tokens and the prompt shows {error.cap:,}; shorten it, or "
                "choose below to save it all the same"
            )
        case NoSuchNote():
            return f"{error}; what you wrote is below"
    return str(error)


def _candidates(error: NotebookError | None) -> tuple[str, ...]:
    return error.candidates if isinstance(error, EditFailed) else ()


def _preview(notebook: Notebook, asking: Session, draft: Draft) -> Markup:
    values: dict[str, Any] = {
        "wrong": "",
        "is_stale": False,
        "outline": None,
        "effect": None,
        "choices": 0,
        "markup": "",
        "is_cut": False,
    }
    try:
        after = draft.file()
        values["outline"] = outline_of(draft.path, after, notebook.settings.prompt.encoding)
        values["choices"] = _marks_left(draft)
        text = read_frontmatter(draft.typed).content if draft.part == WHOLE else draft.typed
        values["markup"] = rendered(text[:LONGEST_PREVIEW])
        values["is_cut"] = len(text) > LONGEST_PREVIEW
        order = Edit("write", content=after)
        values["effect"] = effect_of(
            notebook.edit(draft.path, order, asking, expected_digest=draft.expected, preview=True)
        )
    except Conflict:
        values["is_stale"] = True
    except NotebookError as error:
        values["wrong"] = _wording(error)
    return Markup(fragment("edit_preview.html", **values))  # noqa: S704 - a template of ours, which escapes
