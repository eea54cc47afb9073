"""A note as a page, its checkboxes, and the pictures of the notebook."""

from __future__ import annotations

from starlette.responses import Response
from starlette.routing import BaseRoute

from notebook_sync.errors import LONGEST_NAME, NotFound
from notebook_sync.files.frontmatter import read_frontmatter
from notebook_sync.surfaces.dashboard.markdown import PICTURES, note_href, render
from notebook_sync.surfaces.dashboard.shell import Ask, Shell, Undo

_UNDO = "/note-undo"
# A picture runs nothing and loads nothing, opened by itself too.
_PICTURE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "private, no-cache",
}


def routes(shell: Shell) -> list[BaseRoute]:
    """The pages of single notes."""
    pages = NotePages(shell)
    return [
        shell.route("/note/{name:path}", pages.show, "GET"),
        shell.route("/note-check", pages.check, "POST"),
        shell.route(_UNDO, pages.undo, "POST"),
        shell.route("/file/{path:path}", pages.picture, "GET"),
    ]


class NotePages:
    """The pages of single notes."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    def show(self, ask: Ask) -> Response:
        """A note as it looks, with what is known of it."""
        note = self._shell.call("read", {"id": ask.path["name"]})
        body = note.text[read_frontmatter(note.text).body_start :]
        markup = render(body, note.path, boxes=True, title=note.title)
        return self._shell.page(ask, "note.html", note=note, markup=markup)

    def check(self, ask: Ask) -> Response:
        """Tick or untick a box."""
        form, id = ask.form, ask.form.get("id", "")
        given = {"id": id, "action": "toggle_checkbox", "entry_match": form.get("entry_match", "")}
        self._shell.call("edit", given | {"expected_digest": form.get("expected_digest", "")})
        return self._shell.done(ask, _back(ask, id), "Done: changed the checkbox", undo=Undo(_UNDO, {"id": id}))

    def undo(self, ask: Ask) -> Response:
        """Go back to the text before the last change of a note."""
        id = ask.form.get("id", "")
        done = self._shell.call("undo", {"id": id})
        return self._shell.done(
            ask,
            _back(ask, id),
            "Done: went back to the text before",
            warnings=done.warnings,
            undo=Undo(_UNDO, {"id": id}),
        )

    def picture(self, ask: Ask) -> Response:
        """A picture that a note shows."""
        path = ask.path["path"]
        kind = PICTURES.get(path.rpartition(".")[2].lower())
        if kind is None:
            raise NotFound("picture", path[-LONGEST_NAME:])
        tree = self._shell.notebook.core.tree
        found = tree.read(tree.place(path))
        return Response(found.raw, headers=_PICTURE_HEADERS, media_type=kind)


def _back(ask: Ask, id: str) -> str:
    """The note by the address that it was shown at."""
    return ask.here if ask.here.startswith(note_href("")) else note_href(id)
