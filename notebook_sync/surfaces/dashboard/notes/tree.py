"""The folders of the notebook as a tree that is open along one path: no more is looked at than is shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from notebook_sync.notes.shelf import Shelf
from notebook_sync.surfaces.dashboard.addresses import NOTES, address
from notebook_sync.surfaces.dashboard.notes.note_view import Link, address_of


@dataclass(frozen=True, slots=True)
class Branch:
    """One folder. What is in it is known where it `is_open`; `is_here` for the one that the tree is open at. `more`
    is where the next of its notes are, of `count` in all."""

    name: str
    href: str
    is_open: bool = False
    is_here: bool = False
    branches: Sequence[Branch] = ()
    notes: Sequence[Link] = ()
    more: str = ""
    count: int = 0


def tree_of(path: str, shelf: Callable[[str, str], Shelf], after: str = "") -> Branch:
    """The tree that is open from the notebook itself to the folder `path`, whose notes are shown that come `after` a
    name. `shelf` tells what lies in a folder, after a name, and raises as `shelf_of`."""
    names = path.split("/") if path else []
    here = shelf(path, after)
    branch = Branch(
        name=_name(path),
        href=folder_address(path),
        is_open=True,
        is_here=True,
        branches=[_closed(folder) for folder in here.folders],
        notes=[Link(_name(note), address_of(note)) for note in here.notes],
        more=folder_address(path, after=here.following) if here.following else "",
        count=here.count,
    )
    for depth in range(len(names) - 1, -1, -1):
        above = "/".join(names[:depth])
        within = "/".join(names[: depth + 1])
        folders = shelf(above, "").folders
        beside = [branch if folder == within else _closed(folder) for folder in folders]
        if within not in folders:  # one that the tree does not tell of, and that was asked for by its name
            beside.append(branch)
        branch = Branch(_name(above), folder_address(above), is_open=True, branches=beside)
    return branch


def folder_address(path: str, *, after: str = "") -> str:
    """The page of a folder, and of its notes that come after a name."""
    return address(NOTES, {"folder": path, "name": after})


def _closed(path: str) -> Branch:
    return Branch(_name(path), folder_address(path))


def _name(path: str) -> str:
    return path.rpartition("/")[2] or "All notes"
