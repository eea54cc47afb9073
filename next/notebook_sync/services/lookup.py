"""The one resolver of names: whatever names a note, in a call or in a link, is resolved here.

A name is a path (with or without `.md`), an id, a `[[link]]`, a file name, a title or an alias; a bare name of a
guarded file means that file. What the session may not read does not exist for it.
"""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from notebook_sync.errors import NoSuchNote, NotebookError
from notebook_sync.files.names import is_note_name
from notebook_sync.model import collection_of, id_from_path
from notebook_sync.permissions import fold_name, guarded_key, guarded_names, is_private
from notebook_sync.services.core import Core
from notebook_sync.services.results import neutral_name
from notebook_sync.services.view import View
from notebook_sync.store.rows import EVERYTHING, Has, Is, Where, both
from notebook_sync.sync.project import name_keys

_MOST_CANDIDATES = 5
# How good a name is: a note's path, its file's name, its title, id or alias, and the name of a file that is no note.
BY_PATH, BY_NAME, _BY_FILE = 0, 1, 5


class NoteName(NamedTuple):
    """What a note answers to; a title "" and no aliases where these are not to be known."""

    id: str
    path: str
    title: str = ""
    aliases: Sequence[str] = ()


class Names:
    """Every name that leads to a note or another file, for many links at once.

    `files` are the paths of files that are no notes; `guarded` are the owner's files by `guarded_key`.
    """

    def __init__(
        self, notes: Iterable[NoteName], files: Iterable[str] = (), guarded: Mapping[str, str] | None = None
    ) -> None:
        self._guarded = guarded or {}
        # By folded name: how good a name it is of each path, the less the better.
        self._named: defaultdict[str, set[tuple[int, str]]] = defaultdict(set)
        for note in notes:
            stem = id_from_path(note.path)
            names = (note.path, stem), (posixpath.basename(note.path), posixpath.basename(stem)), (note.title,)
            for rank, group in enumerate((*names, (note.id,), note.aliases)):
                for name in group:
                    self._named[fold_name(name)].add((rank, note.path))
        for path in files:
            self._named[fold_name(path)].add((BY_PATH, path))
            self._named[fold_name(posixpath.basename(path))].add((_BY_FILE, path))

    def find(self, target: str, source: str = "") -> list[str]:
        """The paths that a link's target may mean from the note at `source`, the nearest first; none for no note.

        In this order: a path from the folder of `source`, a path from the root, the end of a path, a file name, a
        title, an id, an alias.
        """
        return [path for _, path in self.ranked(target, source)]

    def ranked(self, target: str, source: str = "") -> list[tuple[int, str]]:
        """As `find`, each with what the target is of the note: BY_PATH, BY_NAME, or more for a title, id or alias."""
        plain = target.strip()
        if not plain:
            return [(BY_PATH, source)] if source else []
        if "/" not in plain and (path := self._guarded.get(guarded_key(plain))):
            return [(BY_NAME, path)] if (BY_PATH, path) in self._named.get(fold_name(path), ()) else []
        folder = posixpath.dirname(source)
        spelled = [plain.lstrip("/")] if plain.startswith("/") else [posixpath.join(folder, plain), plain]
        places = [posixpath.normpath(each) for each in spelled]
        for place in places:
            if exact := [path for rank, path in self._named.get(fold_name(place), ()) if rank == BY_PATH]:
                as_written = (each for each in (place, f"{place}.md") if each in exact)
                return [(BY_PATH, next(as_written, min(exact)))]
        found = self._named.get(fold_name(plain), ()) if "/" not in plain else self._ending_in(places[-1])
        best = min((rank for rank, _ in found), default=0)
        paths = sorted((path for rank, path in found if rank == best), key=lambda path: _distance(path, folder))
        return [(best, path) for path in paths]

    def _ending_in(self, place: str) -> list[tuple[int, str]]:
        """Paths that end in this one, and what has the whole of it as title, id or alias."""
        folded = fold_name(place)
        alike = self._named.get(fold_name(posixpath.basename(place)), ())
        ends = [path for _, path in alike if fold_name(f"/{id_from_path(path)}\n/{path}\n").find(f"/{folded}\n") >= 0]
        return [(BY_PATH, path) for path in ends] or list(self._named.get(folded, ()))


def linking(core: Core, view: View, note: NoteName) -> Iterator[str]:
    """The paths of the other notes with a link to this one that the session may read whole, the latest change first."""
    keys = tuple(name_keys((note.path, note.title, note.id, *note.aliases)))
    where = both(view.whole, Has("linked", keys), Is("path", "!=", None), Is("path", "!=", note.path))
    rows = core.index.documents.find(where, order=("-updated_at", "path"), fields=("path", "links"))
    if rows:  # another note may have the same name, and be nearer
        names = Names(note_names(core, view, Has("names", keys)), (), guarded_names(core.settings.prompt))
        for row in rows:
            if any(names.find(link, row["path"])[:1] == [note.path] for link in row["links"]):
                yield row["path"]


def note_names(core: Core, view: View, among: Where = EVERYTHING) -> list[NoteName]:
    """The notes that a session may read; one that it sees in part answers to its path alone. A note that others wrote
    answers to its neutral name, too."""
    documents = core.index.documents
    rows = list(documents.tuples(("id", "path", "title", "aliases", "provenance"), both(view.whole, among)))
    rows += [
        (id_from_path(path), path, "", [], provenance)
        for path, provenance in documents.tuples(("path", "provenance"), both(view.in_part, among))
    ]
    return [
        NoteName(id, path, title, [*aliases, neutral_name(id)] if provenance else aliases)
        for id, path, title, aliases, provenance in rows
        if path
    ]


def file_names(core: Core, view: View) -> list[str]:
    """The paths of files that are no notes, without those in channels that the session may not read."""
    paths = (path for (path,) in core.index.attachments.tuples(("id",)))
    return [path for path in paths if not is_private(path) or view.may("read", path)]


def split_name(name: str) -> tuple[str, str]:
    """A name as somebody writes it, as (target, fragment): brackets and a label are understood."""
    plain = name.strip()
    if plain.startswith(("[[", "![[")) and plain.endswith("]]"):
        plain = plain.removeprefix("!").removeprefix("[[").removesuffix("]]").replace("\\|", "|").partition("|")[0]
    target, _, fragment = plain.partition("#")
    return target.strip(), fragment.strip()


def resolve(
    core: Core, view: View, name: str, *, collection: str = "", operation: str = "notebook_read"
) -> tuple[str, str]:
    """The path of the note that `name` means to a session, and the section or block behind `#`. `collection` must be
    the note's, where it is given.

    Raises NoSuchNote, with at most five candidates where it means several; NotPermitted for a path that the session
    may not read, whether a note is there or not; UnsafePath for a path that cannot be a note's.
    """
    target, fragment = split_name(name)
    if "#" in name and (path := _at_path(core, view, name.strip(), name, operation)):
        fragment = ""
    else:
        path = _at_path(core, view, target, name, operation) or _in_index(core, view, target, name)
    if collection and collection_of(path) != collection:
        raise NoSuchNote(name, candidates=(path,))
    return path, fragment


def _at_path(core: Core, view: View, target: str, name: str, operation: str) -> str:
    """The path of a file that exists, given as it is or without `.md`; no index is needed."""
    if not target:
        return ""
    place = core.tree.place(target)
    for spelled in (place, f"{place}.md"):
        if is_note_name(posixpath.basename(spelled)):
            try:
                view.require("read", spelled, operation)
            except NoSuchNote:
                raise NoSuchNote(name) from None
            if core.tree.stat(spelled) is not None and not core.tree.why_left_out(spelled):
                return spelled
    if place in guarded_names(core.settings.prompt).values():
        raise NoSuchNote(name)  # nothing else answers to the name of a guarded file
    return ""


def _in_index(core: Core, view: View, target: str, name: str) -> str:
    try:
        documents = core.index.documents
    except NotebookError:  # no state folder: only paths are known
        raise NoSuchNote(name) from None
    for (path,) in documents.tuples(("path",), both(view.whole, Is("id", "=", target))):
        if path:
            return str(path)
    wanted = fold_name(posixpath.basename(target))
    names = note_names(core, view)
    alike = [each for each in names if each.aliases or wanted in fold_name(f"{each.path}\n{each.title}\n{each.id}")]
    found = Names(alike).find(target)
    if len(found) != 1:
        raise NoSuchNote(name, candidates=tuple(shown_names(core, found[:_MOST_CANDIDATES])))
    return str(found[0])


def shown_names(core: Core, paths: Sequence[str]) -> list[str]:
    """The paths; a neutral name for a note whose file may be named in somebody else's words."""
    rows = core.index.documents.tuples(("path", "id", "provenance"), Is("path", "in", tuple(paths)))
    neutral = {path: neutral_name(id) for path, id, provenance in rows if provenance}
    return [neutral.get(path, path) for path in paths]


def _distance(path: str, folder: str) -> tuple[int, int, str]:
    """How far a path is from a folder: steps up and down, then its length."""
    steps = posixpath.relpath(posixpath.dirname(path) or ".", folder or ".")
    return (0 if steps == "." else len(steps.split("/")), len(path), path)
