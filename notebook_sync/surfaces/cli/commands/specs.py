"""The spec of a task, as a command names it: a file, a note, or standard input."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from notebook_sync.errors import NoSuchNote, UsageError
from notebook_sync.files.provenance import is_external
from notebook_sync.notebook import Notebook
from notebook_sync.sessions import Session
from notebook_sync.surfaces.cli.answers import text_given

_INPUT = "-"


def spec_of(notebook: Notebook, name: str, session: Session) -> str:
    """What the spec says: of standard input, of a file, else of a note; none that the session may not read.

    Raises UsageError for what is none of these, and for what somebody else wrote: a brief would tell it as the task."""
    if name == _INPUT:
        return text_given(name, None, "SPEC.md") or ""
    place = None
    if "\0" not in name and (file := Path(name).expanduser()).is_file():
        # Wherever we stand, a file of the notebook is read as the session may read it; the owner's is every file.
        place = _place_in(notebook.root, file) if session.kind != "owner" else None
        if place is None:
            spec = text_given(None, name, "SPEC.md") or ""
            return _ours(name, spec, is_external(spec.encode(errors="replace")))
    try:
        note = notebook.file(place or notebook.read(name, session)["path"], session)
    except NoSuchNote as missing:
        what = "note" if place else "file"
        how = f"a text is given on standard input, with {_INPUT} for its name"
        raise UsageError(f"no {what} is at {name!r}, and {missing}; {how}") from None
    return _ours(name, note.shown, note.external)


def _ours(name: str, spec: str, external: bool) -> str:
    if external:
        raise UsageError(f"{name}: somebody else wrote it; write what holds of it into a spec of your own")
    return spec


def _place_in(root: Path, file: Path) -> str | None:
    """The path in the notebook of a file that stands there, whatever links it is named by; None for any other."""
    with suppress(ValueError):
        return file.resolve().relative_to(root.resolve()).as_posix()
    return None
