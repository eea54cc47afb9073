"""A note as a page, what is done to it there (tick a box, rename, delete, undo), and the pictures of the notebook."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace
from starlette.responses import Response

from notebook_sync.errors import LONGEST_NAME, NotFound
from notebook_sync.files.frontmatter import read_frontmatter
from notebook_sync.files.tree import Tree
from notebook_sync.services.results import NoteText, Written
from notebook_sync.store.rows import Is
from notebook_sync.surfaces.dashboard.markdown import PICTURES, note_href, render
from notebook_sync.surfaces.dashboard.past import difference_of
from notebook_sync.surfaces.dashboard.shell import Ask, Shell, Undo, route

_UNDO: Final = "/note-undo"
# Pages that stay where they are after something was undone.
_PLACES = ("/history/", "/activity", "/review/")
# A photograph is larger than a note may be.
_LARGEST_PICTURE: Final = 32 << 20
# A picture runs nothing and loads nothing, opened by itself too.
_PICTURE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "private, no-cache",
}


@route("/note/{name:path}")
def show(shell: Shell, ask: Ask) -> Response:
    """A note as it looks, with what is known of it."""
    note: NoteText = shell.call("read", {"id": ask.path["name"]})
    body = note.text[read_frontmatter(note.text).body_start :]
    markup = render(body, note.path, boxes=True, title=note.title)
    rows = shell.notebook.core.index.documents.find(Is("path", "=", note.path), fields=("problems",))
    problems = [problem for row in rows for problem in row["problems"] or ()]
    fields = {**note.fields, **note.extra}
    return shell.page(ask, "note.html", note=note, markup=markup, problems=problems, fields=fields)


@route("/note-check", "POST")
def tick(shell: Shell, ask: Ask) -> Response:
    """Tick or untick a box."""
    form, id = ask.form, ask.form.get("id", "")
    given = {"id": id, "action": "toggle_checkbox", "entry_match": form.get("entry_match", "")}
    done = shell.call("edit", given | {"expected_digest": form.get("expected_digest", "")})
    return shell.done(_back(ask, id), "Done: changed the checkbox", undo=undo_of(done))


@route("/rename/{name:path}", "GET", "POST")
def rename(shell: Shell, ask: Ask) -> Response:
    """Give a note another path. What would change is shown first."""
    note: NoteText = shell.call("read", {"id": ask.path["name"]})
    form, trial, error = ask.form, None, None
    to, links = form.get("to", note.path), form.get("links", "") if form else "true"
    given = {"id": note.path, "to": to, "links": links or "false"}
    if form.get("confirmed") == to:
        done, error = shell.tried("rename", given | {"expected_digest": form.get("expected_digest", "")})
        if done:
            said, to = f"Done: renamed the note to {done.path}", note_href(done.path)
            return shell.done(to, said, warnings=done.warnings, undo=undo_of(done))
    elif form:
        trial, error = shell.tried("rename", given | {"dry_run": "true"})
    return shell.page(
        ask,
        "rename.html",
        status=error.status if error else 200,
        note=note,
        to=to,
        links=links,
        trial=trial,
        difference=difference_of(trial.diff) if trial else None,
        error=error,
    )


@route("/delete/{name:path}", "GET", "POST")
def delete(shell: Shell, ask: Ask) -> Response:
    """Delete a note, after a page that says what links to it."""
    note: NoteText = shell.call("read", {"id": ask.path["name"]})
    if not ask.form.get("confirmed"):
        return shell.page(ask, "delete.html", note=note)
    given = {"id": note.path, "expected_digest": ask.form.get("expected_digest", "")}
    done = shell.call("delete", given)
    return shell.done("/notes", f"Done: deleted {note.path}", warnings=done.warnings, undo=undo_of(done))


@route(_UNDO, "POST")
def undo(shell: Shell, ask: Ask) -> Response:
    """Go back to the text before the last change of a note, or to the version `rev`."""
    done = shell.call("undo", {name: ask.form.get(name, "") for name in ("id", "rev", "expected_digest")})
    return shell.done(
        _back(ask, done.path),
        "Done: went back to the text before",
        warnings=done.warnings,
        undo=undo_of(done),
    )


@route("/file/{path:path}")
def send_picture(shell: Shell, ask: Ask) -> Response:
    """A picture that a note shows."""
    path = ask.path["path"]
    kind = PICTURES.get(path.rpartition(".")[2].lower())
    if kind is None:
        raise NotFound("picture", path[-LONGEST_NAME:])
    core = shell.notebook.core
    tree = Tree(core.root, replace(core.settings.notebook, max_file_bytes=_LARGEST_PICTURE))
    return Response(tree.read(tree.place(path)).raw, headers=_PICTURE_HEADERS, media_type=kind)


def undo_of(done: Written | NoteText) -> Undo:
    """The form that takes back what was just written, as long as nothing else is written."""
    return Undo(_UNDO, {"id": done.path, "expected_digest": done.digest})


def _back(ask: Ask, path: str) -> str:
    """Where the form was sent from, else the note: a note that got another path is no longer where it was shown."""
    return ask.here if ask.here.startswith(_PLACES) else ask.back_to(note_href(path), note_href(path[:-3]))
