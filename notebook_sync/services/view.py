"""What one session may see: rows, the text of files that are shown in part, and the notes that names lead to.

What a session may not see is not looked up, counted, ranked or named in an error; absent and withheld give one answer.
Whatever names a note, in a call or in a link, is resolved here: a path (with or without `.md`), an id, a `[[link]]`, a
file name, a title or an alias; a bare name of a guarded file means that file.
"""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from notebook_sync.errors import NoSuchNote, NotebookError, NotPermitted
from notebook_sync.files.names import audience, is_note_name, judged_paths
from notebook_sync.model import collection_of, id_from_path
from notebook_sync.permissions import (
    Members,
    Verb,
    channel_of,
    fold_name,
    guarded_key,
    guarded_names,
    guarded_paths,
    is_private,
    may,
    require,
)
from notebook_sync.services.core import Core
from notebook_sync.services.results import neutral_name
from notebook_sync.sessions import Session
from notebook_sync.store.rows import EVERYTHING, NOTHING, Either, Few, Has, Is, Not, Row, Where, both
from notebook_sync.sync.project import name_keys

LATEST_FIRST = ("-updated_at", "path")
_MOST_CANDIDATES, _FEW = 5, 50
# How good a name is: a note's path, its file's name, its title, id or alias, and the name of a file that is no note.
BY_PATH, BY_NAME, _BY_FILE = 0, 1, 5


class View:
    """What `session` may read and change, now. Made for each call; it keeps nothing."""

    def __init__(self, core: Core, session: Session) -> None:
        self.core = core
        self.session = session
        self._prompt = core.settings.prompt

    @cached_property
    def where(self) -> Where:
        """The rows that the session may read."""
        return Either((self.whole, self.in_part)) if self.in_part != NOTHING else self.whole

    @cached_property
    def whole(self) -> Where:
        """The rows that the session may read as they are: what they say may be searched and filtered by."""
        if self.session.kind == "owner":
            return EVERYTHING
        # Guarded paths are excluded by name: the column follows a change of notebook.toml with the next look.
        return Either((both(Is("audience", "=", ""), Not(self._guarded)), *self._channels))

    @cached_property
    def in_part(self) -> Where:
        """The rows of prompt files that the session may read through `shown` only."""
        if self.session.kind == "owner":
            return NOTHING
        paths, _ = self._restricted
        return Is("path", "in", tuple(path for path in paths if self.may("read", path)))

    def may(self, verb: Verb, path: str) -> bool:
        """Whether the session may do this to the note at `path`."""
        return all(may(self.session, verb, each, self._prompt, self._members(each)) for each in self._judged(path))

    def require(self, verb: Verb, path: str, operation: str) -> None:
        """Raises NotPermitted where `may` is False, NoSuchNote or UnsafePath where the session must not know that there
        is a note; an event says so."""
        try:
            for each in self._judged(path):
                require(self.session, verb, each, self._prompt, self._members(each))
        except NotebookError:
            self.core.events.record("refused", self.session, path=path, operation=operation)
            raise

    def refuse(self, path: str, operation: str, message: str, advice: str = "") -> NotPermitted:
        """The refusal of what the table permits and another rule does not, recorded as an event."""
        self.core.events.record("refused", self.session, path=path, operation=operation)
        return NotPermitted(message, next=advice)

    def sees_in_part(self, path: str) -> bool:
        """Whether the session sees only a part of the note: what the prompt hides is hidden from it."""
        return self.session.kind != "owner" and audience(path, self._prompt) == "apart"

    def shown(self, path: str, text: str) -> str:
        """The text of a note as the session sees it."""
        if not self.sees_in_part(path):
            return text
        from prompt import visible  # loads the prompt's parts, which most questions do without

        return visible(text, now=self.core.settings.local_now()).text

    @property
    def channels(self) -> set[str]:
        """The audiences of all private notes there are: which of them the session may know, `may` says."""
        return self._restricted[1]

    @property
    def _restricted(self) -> tuple[list[str], set[str]]:
        """The paths of files that are withheld or shown in part, and the audiences of private notes. What the index
        says of them is kept until it changes."""
        core, key = self.core, (self.core.index.rev(), self._prompt)
        if core.restricted is None or core.restricted[0] != key:
            rows = core.index.documents.tuples(("path", "audience"), Few((Is("audience", ">", ""), self._guarded)))
            private = {audience for _, audience in rows if audience and audience.startswith("channels/")}
            core.restricted = key, ([path for path, audience in rows if path and audience not in private], private)
        return core.restricted[1]

    @property
    def _guarded(self) -> Where:
        return Few((Is("path", "in", guarded_paths(self._prompt)), Is("path", "under", "runtime")))

    @property
    def _channels(self) -> tuple[Where, ...]:
        """Private notes: the session's own, and those of channels that it is a member of."""
        session = self.session
        if session.kind != "task" or not session.agent:
            return ()
        own = f"channels/{session.agent}"
        _, audiences = self._restricted
        shared = [each for each in audiences if not each.startswith(f"{own}/") and self.may("read", f"{each}/note.md")]
        return (Is("audience", "under", own), Is("audience", "in", tuple(shared)))

    def _judged(self, path: str) -> tuple[str, ...]:
        return (path,) if self.session.kind == "owner" else judged_paths(path, self._prompt)

    def _members(self, path: str) -> Members:
        channel = channel_of(path) if self.session.kind == "task" else None
        return self.core.tree.members(channel) if channel else {}


# ---- names


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


def linking(core: Core, view: View, path: str) -> Iterator[str]:
    """The paths of the other notes with a link to this one that the session may read whole, the latest change first."""
    for note in note_names(core, view, Is("path", "=", path)):
        keys = name_keys((path, note.title, note.id, *note.aliases))
        # Another note may have the same name, and be nearer.
        names = Names(note_names(core, view, Has("names", tuple(keys))), (), guarded_names(core.settings.prompt))
        for row in _few_first(core, linked_where(view, path, keys)):
            if any(names.find(link, row["path"])[:1] == [path] for link in row["links"]):
                yield row["path"]


def _few_first(core: Core, where: Where) -> Iterator[Row]:
    """Notes with their links, the latest change first: a few, and the others only for who is not served by these."""
    fields = ("updated_at", "path", "links")
    few = core.index.documents.find(where, order=LATEST_FIRST, limit=_FEW, fields=fields)
    yield from few
    if len(few) == _FEW:
        after = (few[-1]["updated_at"], few[-1]["path"])
        yield from core.index.documents.find(where, order=LATEST_FIRST, after=after, fields=fields)


def linked_where(view: View, path: str, keys: Iterable[str]) -> Where:
    """The other notes, of those that the session may read whole, with a link by the name keys of the one at `path`."""
    return both(view.whole, Has("linked", tuple(keys)), Is("path", "!=", None), Is("path", "!=", path))


def named(names: Iterable[str]) -> Where:
    """The notes that one of these may name. No column has the neutral names of notes that others wrote."""
    return Few((Has("names", tuple(name_keys(names))), Is("provenance", ">", "")))


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
        raise NoSuchNote(name, collection=collection, candidates=(path,))
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
    if place in guarded_paths(core.settings.prompt):
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
    found = Names(note_names(core, view, named([target]))).find(target)
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
