"""Making a note: a page, a code snippet, what was found out, or a memory."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, Literal
from urllib.parse import quote

from fastapi.responses import HTMLResponse, RedirectResponse
from markupsafe import Markup
from starlette.responses import Response

from notebook_sync.errors import NotebookError
from notebook_sync.files.frontmatter import read_frontmatter
from notebook_sync.notebook import Notebook
from notebook_sync.notes.page_text import Wanted
from notebook_sync.notes.page_text import new_page as note_page
from notebook_sync.sessions import Session
from notebook_sync.surfaces.dashboard.asking import Asking, Form, Served, pages_router
from notebook_sync.surfaces.dashboard.editing.edit_view import LONGEST_PREVIEW, outline_of
from notebook_sync.surfaces.dashboard.editing.note_form import empty_fields, values_in
from notebook_sync.surfaces.dashboard.pages import fragment, page
from notebook_sync.surfaces.dashboard.rendering import rendered
from notebook_sync.surfaces.errors import kind_of

pages = pages_router()
Collection = Literal["pages", "code_snippets", "research_notes", "memories"]
# What a person calls each, and what goes into its text.
KINDS: Mapping[Collection, tuple[str, str]] = {
    "pages": ("Page", "Markdown: a plan, a report, a proposal."),
    "code_snippets": ("Code snippet", "Code alone gets a fence around it; with a fence in it, it is kept as it is."),
    "research_notes": ("Research", "What was found out, and what follows from it."),
    "memories": ("Memory", "Context, reasoning and outcome, each below its word and a colon, are told apart."),
}
_COMMON: Final = ("title", "tags", "status", "summary")
_UNNAMED: Final = "Untitled"


@pages.get("/new")
def new_page(collection: Collection = "pages") -> Response:
    """The form for one kind of note."""
    return _form_page(collection, {})


@pages.post("/new")
def make(notebook: Served, asking: Asking, form: Form) -> Response:
    """Make it; where that cannot be, the form again with what was typed."""
    collection = next((each for each in KINDS if each == form.get("collection")), None)
    if collection is None:
        return _form_page("pages", form, wrong="Choose what kind of note it is to be; nothing was made", status=422)
    if form.get("preview"):
        return _form_page(collection, form, preview=_preview(notebook, collection, form))
    try:
        path = _made(notebook, asking, collection, form)
    except NotebookError as error:
        return _form_page(collection, form, wrong=str(error), status=kind_of(error).status)
    return RedirectResponse(f"/notes/{quote(path)}?done=made", 303)


@pages.post("/new/preview")
def preview(notebook: Served, form: Form) -> HTMLResponse:
    """What the note would be, as a part of the page."""
    collection: Collection = next((each for each in KINDS if each == form.get("collection")), "pages")
    return HTMLResponse(_preview(notebook, collection, form))


def _preview(notebook: Notebook, collection: Collection, form: Mapping[str, str]) -> Markup:
    content, wrong = form.get("text", ""), ""
    if collection != "memories":
        try:
            wanted = Wanted(content=content, **_asked(collection, {**form, "title": form.get("title") or _UNNAMED}))
            made = note_page(collection, wanted, note_id="new", created_by="owner", created_at=datetime.now(UTC))
            content = read_frontmatter(made.decode()).content
        except NotebookError as error:
            wrong = str(error)
    values = {
        "wrong": wrong,
        "is_stale": False,
        "outline": outline_of(f"{collection}/new.md", content, notebook.settings.prompt.encoding),
        "effect": None,
        "choices": 0,
        "markup": rendered(content[:LONGEST_PREVIEW]),
        "is_cut": len(content) > LONGEST_PREVIEW,
    }
    return Markup(fragment("edit_preview.html", **values))  # noqa: S704 - a template of ours, which escapes


def _made(notebook: Notebook, asking: Session, collection: Collection, form: Mapping[str, str]) -> str:
    text = form.get("text", "")
    if collection == "memories":
        return notebook.memories.add(text, asking, **_values(collection, form)).path
    asked = _asked(collection, form)
    return notebook.create(collection, asked.pop("title", ""), text, asking, **asked).path


def _asked(collection: Collection, form: Mapping[str, str]) -> dict[str, Any]:
    """What all notes have, by name, and as `fields` what those of the collection have."""
    values = _values(collection, form)
    return {**{name: values.pop(name) for name in _COMMON if name in values}, "fields": values}


def _values(collection: Collection, form: Mapping[str, str]) -> dict[str, Any]:
    return {name: value for name, value in values_in(form, _fields(collection)).items() if value is not None}


def _fields(collection: Collection) -> tuple[Any, ...]:
    left_out = ("status", "summary") if collection == "memories" else ()
    return tuple(field for field in empty_fields(collection) if field.name not in left_out)


def _form_page(
    collection: Collection,
    form: Mapping[str, str],
    *,
    wrong: str = "",
    status: int = 200,
    preview: Markup | str = "",
) -> Response:
    return page(
        "new.html",
        here="notes",
        status=status,
        collection=collection,
        kinds=[(name, label) for name, (label, _) in KINDS.items()],
        hint=KINDS[collection][1],
        kind=KINDS[collection][0],
        fields=[field.with_value(form.get(field.name, "")) for field in _fields(collection)],
        typed=form.get("text", ""),
        wrong=wrong,
        preview=preview,
    )
