"""The editor: a note's file, or one section of it, as text, with a preview, and what to do about a change on disk.

What is typed is never lost: whatever speaks against saving it is shown above the form that still has it.
"""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass
from datetime import UTC
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from markupsafe import Markup
from starlette.responses import Response

from notebook_sync.errors import Conflict, EditFailed, GitFailed, NotebookError, NotFound, OverCap, UsageError
from notebook_sync.files.beneath import digest_of
from notebook_sync.files.frontmatter import read_frontmatter
from notebook_sync.files.git import run_git
from notebook_sync.files.parse import parse
from notebook_sync.model import Note
from notebook_sync.surfaces.dashboard.markdown import note_href, render
from notebook_sync.surfaces.dashboard.notes import undo_of
from notebook_sync.surfaces.dashboard.shell import Ask, Shell, route

_BOM: Final = "\ufeff"
# In a form, a character may take nine bytes, and the text that was there comes with it.
_LONGEST: Final = 300_000
_LARGEST: Final = 64 << 20
_MINE, _BEFORE, _THEIRS = "what you wrote", "what it said before", "what the file says now"
_MARKS: Final = frozenset((f"<<<<<<< {_MINE}", f"||||||| {_BEFORE}", f">>>>>>> {_THEIRS}"))
# git's exit code is the number of places that both changed.
_CONFLICTS: Final = range(128)


@dataclass(frozen=True)
class Draft:
    """What a form holds: the file that it was made from, the anchor of the section that is edited ("" for the whole
    file), and the text as a browser has it. `mine` is the file as somebody had wanted it before it was merged."""

    path: str
    base: str
    section: str = ""
    typed: str = ""
    mine: str = ""

    @classmethod
    def sent(cls, path: str, ask: Ask) -> Draft:
        """What a form was sent with. Raises UsageError."""
        form = ask.form
        base, mine = unpacked(form.get("base", "")), unpacked(form.get("mine", ""))
        is_lost = form.get("keep") == "mine" and not mine
        if is_lost or digest_of(base.encode()) != form.get("digest"):
            raise UsageError("the form has lost a text that it was made from", next="copy what you wrote, and reload")
        return cls(path, base, form.get("section", ""), form.get("text", ""), mine)

    @cached_property
    def note(self) -> Note:
        """The file that the form was made from."""
        return _parsed(self.path, self.base)

    @property
    def place(self) -> tuple[int, int]:
        """Where in the file the text belongs. Raises NotFound."""
        if not self.section:
            return len(self.base) - len(self.base.removeprefix(_BOM)), len(self.base)
        found = next((each for each in self.note.sections if each.anchor == self.section), None)
        if found is None:
            raise NotFound("section", self.section, next="edit the whole note")
        start = len(self.base) - len(self.note.content)
        return start + found.start, start + found.end

    @property
    def before(self) -> str:
        """The text as the form showed it first."""
        start, end = self.place
        return self.base[start:end].replace("\r\n", "\n")

    def file(self) -> str:
        """The file with what was typed in its place, and its own line ends. Raises NotFound, EditFailed."""
        texts = self.typed.split("\n"), self.base.splitlines()
        left, before = (sum(line in _MARKS for line in lines) for lines in texts)
        if left > before:
            raise EditFailed(
                self.path, f"{left - before} lines still mark what both changed; choose there, and remove them"
            )
        start, end = self.place
        follows = self.base[end:]
        typed = self.typed if self.typed.endswith("\n") or not (follows and self.typed) else f"{self.typed}\n"
        return self.base[:start] + (typed.replace("\n", "\r\n") if "\r\n" in self.base else typed) + follows


@route("/edit/{name:path}")
def show(shell: Shell, ask: Ask) -> Response:
    """The form, for the whole file or for one section."""
    note = shell.call("read", {"id": ask.path["name"]})
    raw = shell.notebook.core.tree.read(note.path).raw
    reason = why_not_here(raw)
    if reason:
        raise EditFailed(note.path, f"it cannot be edited in a browser: {reason}")
    draft = Draft(note.path, raw.decode(), ask.query.get("section", ""))
    typed = draft.before
    if len(typed) > _LONGEST:
        raise EditFailed(note.path, "it is too long for a browser's form", next="edit one of its sections")
    return _form(shell, ask, draft, typed=typed)


@route("/edit/{name:path}", "POST")
def save(shell: Shell, ask: Ask) -> Response:
    """Write what was typed, show what it looks like, or say what speaks against it."""
    path, is_mine = ask.path["name"], ask.form.get("keep") == "mine"
    draft = Draft.sent(path, ask)
    if ask.form.get("preview"):
        markup = preview(draft)
        if ask.is_fragment:
            return shell.page(ask, "preview.html", markup=markup)
        return _form(shell, ask, draft, preview=markup)
    try:
        after = draft.mine if is_mine else draft.file()
        given = {"id": path, "action": "write", "content": after, "section": draft.section}
        given |= {"expected_digest": digest_of(draft.base.encode()), "reason": "edited in the dashboard"}
        done = shell.call("edit", given | {"allow_over_cap": ask.form.get("allow_over_cap", "false")})
    except Conflict as conflict:
        if conflict.current_digest == digest_of(after.encode()):  # sent twice
            return shell.done(note_href(path), "Done: saved the note")
        return _merge(shell, ask, draft, after, conflict)
    except NotebookError as error:
        return _form(shell, ask, draft, error=error)
    said = "Done: saved the note" if done.changed else "Nothing was changed"
    undo = undo_of(done) if done.changed else None
    return shell.done(note_href(path), said, warnings=done.warnings, undo=undo)


def _merge(shell: Shell, ask: Ask, draft: Draft, mine: str, conflict: Conflict) -> Response:
    """The file as it is now and what was typed, in one text. Nothing is written."""
    try:
        raw = shell.notebook.core.tree.read(draft.path).raw
    except NotebookError:  # it is gone: the history brings it back
        return _form(shell, ask, draft, error=conflict)
    reason = why_not_here(raw)
    if reason or raw == draft.base.encode():
        return _form(shell, ask, draft, error=EditFailed(draft.path, reason) if reason else conflict)
    text = merged(draft.base, mine, raw.decode()).removeprefix(_BOM).replace("\r\n", "\n")
    return _form(shell, ask, Draft(draft.path, raw.decode(), "", text, mine), status=409)


def _form(
    shell: Shell, ask: Ask, draft: Draft, *, typed: str | None = None, error: NotebookError | None = None, **values: Any
) -> Response:
    values = {"status": error.status if error else 200, "preview": "", **values}
    typed = draft.typed if typed is None else typed
    return shell.page(
        ask,
        "edit.html",
        draft=draft,
        typed=typed,
        places=sum(line == f"<<<<<<< {_MINE}" for line in typed.split("\n")),
        base=packed(draft.base),
        mine=packed(draft.mine) if draft.mine else "",
        digest=digest_of(draft.base.encode()),
        sections=draft.note.sections[:100],
        error=error,
        is_over_cap=isinstance(error, OverCap),
        **values,
    )


def preview(draft: Draft) -> Markup:
    """What was typed, by the renderer of the note's page."""
    if draft.section:
        return render(draft.typed, draft.path)
    title = _parsed(draft.path, draft.typed).title
    return render(draft.typed[read_frontmatter(draft.typed).body_start :], draft.path, title=title)


def merged(base: str, mine: str, theirs: str) -> str:
    """Both changes of a text in one, with marks around what both changed; around everything where git cannot help."""
    texts = {_MINE: mine, _BEFORE: base, _THEIRS: theirs}
    try:
        with TemporaryDirectory(prefix="notebook-sync-") as folder:
            for name, text in texts.items():
                (Path(folder) / name).write_text(text, newline="")
            labels = [part for label in texts for part in ("-L", label)]
            asked = ("merge-file", "-p", "--diff3", *labels, *texts)
            return run_git(Path(folder), *asked, fine=_CONFLICTS).decode()
    except GitFailed:
        return f"<<<<<<< {_MINE}\n{mine}\n||||||| {_BEFORE}\n{base}\n=======\n{theirs}\n>>>>>>> {_THEIRS}\n"


def why_not_here(raw: bytes) -> str:
    """Why a browser would not give a text back as it is; "" where it does."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return "it is not UTF-8"
    rest = text.replace("\r\n", "")
    if "\0" in text:
        return "it holds a NUL character"
    is_mixed = "\r" in rest or ("\n" in rest and rest != text)
    return "its lines end in different ways, which a browser would make the same" if is_mixed else ""


def packed(text: str) -> str:
    """A text for a hidden field."""
    return base64.b64encode(zlib.compress(text.encode())).decode()


def unpacked(value: str) -> str:
    """The text of a hidden field; "" for one that is damaged."""
    try:
        return zlib.decompressobj().decompress(base64.b64decode(value), _LARGEST).decode() if value else ""
    except (ValueError, zlib.error):
        return ""


def _parsed(path: str, text: str) -> Note:
    return parse(path, text.encode(), timezone=UTC)
