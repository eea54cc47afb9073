"""What can be no note, however it is spelled: every use case refuses it, changes nothing and leaves one event."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from notebook_sync import Notebook, Session
from notebook_sync.errors import NotPermitted, UnsafePath
from notebook_sync.files.edits import Edit

OWNER, TASK = Session.owner(), Session.task("scribe")
PLACES = (
    "pages/link.md",
    "pages/./link.md",
    "pages/dangling.md",
    "pages/linked/ferry.md",
    "pages/linked/none.md",
    "outside.md",
    "linked-out/secret.md",
    "pages/pipe.md",
    ".git/config",
    ".git/hooks/ferry.md",
    ".notebook/tokens.json",
    ".notebook/ferry.md",
    "pages/.hidden.md",
    "pages/../.git/config",
    "runtime/../../beside/secret.md",
    "../beside/secret.md",
    "../beside",
    "/etc/hostname",
    "/etc/hostname.md",
)
# What takes no path alone, but any name of a note.
BY_NAME = ("read", "edit", "undo", "history", "diff")
APPEND = Edit("append_to_section", section="Ferry", content="- x")
USES: dict[str, Callable[[Notebook, str, Session], object]] = {
    "read": lambda notebook, place, session: notebook.read(place, session),
    "edit": lambda notebook, place, session: notebook.edit(place, APPEND, session),
    "write": lambda notebook, place, session: notebook.edit(place, Edit("write", content="x\n"), session),
    "file": lambda notebook, place, session: notebook.file(place, session),
    "delete": lambda notebook, place, session: notebook.delete(place, session),
    "rename": lambda notebook, place, session: notebook.rename(place, "pages/new.md", session),
    "rename onto": lambda notebook, place, session: notebook.rename("pages/ferry.md", place, session),
    "undo": lambda notebook, place, session: notebook.undo(place, session),
    "history": lambda notebook, place, session: notebook.history(place, session),
    "diff": lambda notebook, place, session: notebook.diff(place, session=session),
}


@pytest.fixture
def notebook(tmp_path: Path) -> Iterator[Notebook]:
    root, beside = tmp_path / "notebook", tmp_path / "beside"
    for folder in (root / "pages", root / "runtime", root / ".git/hooks", beside):
        folder.mkdir(parents=True)
    (beside / "secret.md").write_text("# The berth\n")
    (root / ".git/config").write_text("[core]\n")
    (root / "pages/ferry.md").write_text("# Ferry\n\n- Nine\n")
    (root / "runtime/reminders.md").write_text("## Today\n")
    (root / "pages/link.md").symlink_to("ferry.md")
    (root / "pages/dangling.md").symlink_to("nowhere.md")
    (root / "pages/linked").symlink_to("../runtime")
    (root / "outside.md").symlink_to("../beside/secret.md")
    (root / "linked-out").symlink_to("../beside")
    os.mkfifo(root / "pages/pipe.md")
    with Notebook.open(root) as opened:
        opened.sync()
        (root / ".notebook/tokens.json").write_text("{}")
        yield opened


def everything(root: Path) -> dict[str, bytes | str]:
    """What stands beside and in the notebook, but for what can be made again."""
    found: dict[str, bytes | str] = {}
    for path in sorted(root.parent.rglob("*")):
        if ".notebook" not in path.parts or path.name == "tokens.json":
            if path.is_symlink():
                found[str(path)] = str(path.readlink())
            elif path.is_file():
                found[str(path)] = path.read_bytes()
    return found


@pytest.mark.parametrize("session", [OWNER, TASK], ids=lambda one: one.kind)
@pytest.mark.parametrize("use", USES)
def test_what_can_be_no_note_is_refused_with_one_event(notebook: Notebook, use: str, session: Session) -> None:
    before = everything(notebook.root)
    for place in (*PLACES, *(["pages/link", "linked-out/secret"] if use in BY_NAME else [])):
        told = len(notebook.events.read())
        with pytest.raises((UnsafePath, NotPermitted)):
            USES[use](notebook, place, session)
        (event,) = notebook.events.read()[told:]
        assert (event["kind"], event["session"]) == ("refused", session.kind), place
        assert event["tool"]
        assert event["reason"]
    assert everything(notebook.root) == before


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("pages/link.md", "symbolic link"),
        ("pages/linked/ferry.md", "symbolic link"),
        ("pages/dangling.md", "symbolic link"),
        ("pages/pipe.md", "not a regular file"),
        (".git/config", "hidden"),
        ("runtime/../../beside/secret.md", "leads out of the notebook"),
    ],
)
def test_a_person_is_told_why(notebook: Notebook, place: str, reason: str) -> None:
    with pytest.raises(UnsafePath, match=reason):
        notebook.read(place)
