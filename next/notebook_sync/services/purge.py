"""Purging a text: out of the files, the index and everything made of it, the private history, copies, dump and servers.

What cannot be reached is named: a repository of the user's, remotes, backups, and what others wrote about it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

from notebook_sync.errors import GitFailed, NoSuchNote
from notebook_sync.files.git import LONG_SECONDS, Repository, has_git, run_git
from notebook_sync.files.history import PRIVATE
from notebook_sync.services.core import Core
from notebook_sync.services.importing import Purged
from notebook_sync.services.upkeep import publish_changes
from notebook_sync.services.view import View, resolve
from notebook_sync.services.writing import digest_of, finish_writes, writing
from notebook_sync.sessions import Session
from notebook_sync.store.rows import Either, Is, Row
from notebook_sync.store.tables import as_json

_TAIL = 100  # characters of a path in the name of a copy
_MOST_VERSIONS = 1_000_000


def purge_text(core: Core, session: Session, name: str, *, dry_run: bool) -> Purged:
    """Remove a note, which may be deleted already, or a line of the stream or of long-term memory.

    Raises NoSuchNote.
    """
    lines = {each: core.index.collections[each].one(name) for each in ("stream", "longterm")}
    named = next((each for each, row in lines.items() if row is not None), "")
    path, ids = ("", {name}) if named else _note(core, session, name)
    paths = _paths(core, path)
    counts = _counted(core, ids, paths, named)
    if dry_run:
        return Purged(id=min(ids), path=path, removed=counts, left=_left(core, paths), dry_run=True)
    left: list[str] = []
    with writing(core, "purge"):
        finish_writes(core)
        facts = {place["fact"] for place in core.index.fact_places.find(Is("path", "=", path))} if path else set()
        if path and core.tree.stat(path) is not None:
            _delete(core, session, path)
        _remove_rows(core, ids, paths, named)
        left += _remove_copies(core, paths)
    left += [f"{each['name']}: {each['trouble']}" for each in publish_changes(core) if each["trouble"]]
    core.index.documents.forget(ids)
    core.index.facts.forget(facts)
    core.index.dump(core.place.state / "dump")
    core.index.optimize()
    core.events.record("purge", session, path=path)
    return Purged(id=min(ids), path=path, removed=counts, left=[*_left(core, paths), *left])


def _delete(core: Core, session: Session, path: str) -> None:
    """Delete a note as every tool does, but for its text, which is not kept."""
    base = digest_of(core.tree.read(path).raw)
    texts = {"path": path, "base": base, "digest": "", "moved_from": "", "action": "purge", "section": "", "reason": ""}
    who = {"session": session.kind, "agent": session.agent, "at": core.now()}
    with core.index.write(durable=True):
        core.index.intents.put([{"id": f"purge:{base}", "batch": f"purge:{base}", **texts, **who}])
    core.saver.delete(path, base)
    core.writer.look({path})
    finish_writes(core)


def _note(core: Core, session: Session, name: str) -> tuple[str, set[str]]:
    """The path and the ids of a note. Raises NoSuchNote."""
    try:
        path, _ = resolve(core, View(core, session), name, operation="purge")
    except NoSuchNote:
        rows = [row for row in core.index.gone() if name in (row["id"], row["path"])]
        if not rows:
            raise
        return rows[0]["path"] or "", {row["id"] for row in rows}
    return path, {id for (id,) in core.index.documents.tuples(("id",), Is("path", "=", path))} or {name}


def _paths(core: Core, path: str) -> set[str]:
    """Every path that the note had, as far as git knows."""
    found = {path} - {""}
    with suppress(GitFailed):
        found |= {each.path for each in core.history.versions(path, limit=_MOST_VERSIONS)} if path else set()
    return found


def _lines_of(ids: Collection[str], paths: Collection[str]) -> Either:
    return Either((Is("note", "in", list(ids)), Is("path", "in", list(paths)), Is("id", "in", list(ids))))


def _counted(core: Core, ids: Collection[str], paths: Collection[str], named: str) -> dict[str, int]:
    index, where = core.index, _lines_of(ids, paths)
    return {
        "notes": 0 if named else index.documents.count(Is("id", "in", list(ids))),
        "versions": index.history.count(Is("note", "in", list(ids))),
        "lines": index.stream.count(where) + index.longterm.count(where),
        "checkpoints": len(_changed_checkpoints(core, ids, paths)),
        "events": len(_events_of(core, ids, paths)),
    }


def _remove_rows(core: Core, ids: Collection[str], paths: Collection[str], named: str) -> None:
    """Everything in the index that was made of the text. What is cached is made again when it is asked for."""
    index = core.index
    with index.write(durable=True):
        if not named:
            index.documents.delete(ids)
        for collection in (index.stream, index.longterm):
            collection.delete([row["id"] for row in collection.find(_lines_of(ids, paths), fields=("id",))])
        crumbs = index.history.find(Is("note", "in", list(ids)), fields=("id",))
        index.history.delete([row["id"] for row in crumbs])
        index.checkpoints.put(_changed_checkpoints(core, ids, paths))
        index.events.delete(_events_of(core, ids, paths))
        index.cache.delete([id for (id,) in index.cache.tuples(("id",))])


def _events_of(core: Core, ids: Collection[str], paths: Collection[str]) -> list[str]:
    """The events that name the note, which may quote a reason or a heading."""
    names = {as_json(name) for name in (*ids, *paths)}
    rows = core.index.events.find(fields=("id", "path", "fields"))
    return [row["id"] for row in rows if any(name in as_json([row["path"], row["fields"]]) for name in names)]


def _changed_checkpoints(core: Core, ids: Collection[str], paths: Collection[str]) -> list[Row]:
    """Checkpoints without the lines and notes that are purged."""
    changed = []
    for row in core.index.checkpoints.find(heavy=True):
        body = _without(row["body"] or {}, {*ids, *paths})
        if body != row["body"]:
            changed.append({**row, "body": body})
    return changed


def _without(value: Any, names: Collection[str]) -> Any:
    """A value of JSON without the objects that name the note."""
    if isinstance(value, Mapping):
        return {key: _without(each, names) for key, each in value.items()}
    if isinstance(value, list):
        return [_without(each, names) for each in value if not _names(each, names)]
    return value


def _names(value: Any, names: Collection[str]) -> bool:
    keys = ("id", "notebook_id", "path")
    return isinstance(value, Mapping) and any(str(value.get(key)) in names for key in keys)


# ---- copies


def _remove_copies(core: Core, paths: Collection[str]) -> list[str]:
    """Copies in `.notebook` and the state folder, and the private history; what could not be removed."""
    state = core.place.state
    tails = tuple(f"-{quote(path, safe='')[-_TAIL:]}" for path in paths)
    digests = tuple(sha256(os.fsencode(path)).hexdigest() for path in paths)
    named = {f"{digest[:16]}.md" for digest in digests}
    of_prompts = (core.place.lock_folder / "good", state / "trusted")
    for folder in (core.place.private / "replaced", state / "recovered", state / "accepted", *of_prompts):
        for file in folder.iterdir() if folder.is_dir() else ():
            if file.name.endswith(tails) or file.name.startswith(digests) or file.name in named:
                file.unlink()
    try:
        _rewrite_history(core, state / PRIVATE, paths)
    except (GitFailed, OSError) as error:
        return [f"the private history in {state / PRIVATE}: {error}"]
    return []


def _rewrite_history(core: Core, folder: Path, paths: Collection[str]) -> None:
    """Make the private repository again without these paths; snapshots keep their names."""
    if not (folder / "HEAD").exists() or not paths:
        return
    new, old = folder.with_name("history.new"), folder.with_name("history.old")
    shutil.rmtree(new, ignore_errors=True)
    Repository.private(new)
    others = [".", *(f":(exclude,literal){path}" for path in paths)]
    stream = run_git(folder, "--git-dir=.", "fast-export", "--all", "--", *others, seconds=LONG_SECONDS)
    run_git(new, "--git-dir=.", "fast-import", "--quiet", "--force", given=stream, seconds=LONG_SECONDS)
    folder.rename(old)
    new.rename(folder)
    shutil.rmtree(old)
    rows = core.index.checkpoints.find(heavy=True)
    found = {row["id"]: core.snapshots.read(row["id"]) for row in rows if row["commit"]}
    core.index.checkpoints.put(
        [{**row, "commit": snapshot.commit} for row in rows if (snapshot := found.get(row["id"])) is not None]
    )


def _left(core: Core, paths: Collection[str]) -> list[str]:
    """What a purge does not reach."""
    left = [f"{file}: delete it" for file in sorted(core.place.state.glob("index.db.damaged-*"))]
    repository = Repository.around(core.root) if has_git() else None
    for path in sorted(paths):
        if repository is None:
            break
        asked = ("log", "--all", "--max-count=1", "--format=%H", "--", f":(top,literal){repository.prefix}{path}")
        if run_git(repository.folder, *asked, seconds=LONG_SECONDS):
            advice = f"git filter-repo --invert-paths --path {repository.prefix}{path}"
            left.append(
                f"the git history in {repository.folder}, and its remotes and clones; rewrite it with: {advice}"
            )
    return [*left, "backups, archives, and what other notes and programs say of it"]
