"""Purging a text: out of the files, the index and everything made of it, the private history, copies, dump and servers.

What cannot be reached is named: a repository of the user's, remotes, backups, and what others wrote about it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Mapping, Sized
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from notebook_sync.errors import GitFailed, NoSuchNote, Refused
from notebook_sync.files.beneath import digest_of
from notebook_sync.files.git import LONG_SECONDS, Repository, has_git, run_git
from notebook_sync.files.history import PRIVATE
from notebook_sync.files.save import exchange, tail_of
from notebook_sync.services.core import Core
from notebook_sync.services.fact_changes import Draft
from notebook_sync.services.importing import Purged
from notebook_sync.services.upkeep import publish_changes
from notebook_sync.services.view import View, resolve
from notebook_sync.services.writing import Change, finish_writes, record_intents, write_one, writing
from notebook_sync.sessions import Session
from notebook_sync.store.rows import Either, Is, Not, Row, Where, both
from notebook_sync.store.tables import as_json

_MOST_VERSIONS = 1_000_000


class _Text(NamedTuple):
    """What is purged. `path` is a note's own, "" for a fact, a line, and a note in whose place another one is; `paths`
    are all that it ever had, or of the files that state a fact; `facts` are those of a note's file; `names` is what
    other rows call it by, the digest of its text included."""

    id: str
    path: str = ""
    paths: Collection[str] = ()
    facts: Collection[str] = ()
    names: Collection[str] = ()


def purge_text(core: Core, session: Session, name: str, *, dry_run: bool) -> Purged:
    """Remove a note, which may be deleted already, a fact, or a line of the stream or of long-term memory.

    Raises NoSuchNote, and Refused for a fact that no tool may take from its file.
    """
    text = _text(core, session, name)
    found: dict[str, Sized] = {**_rows(core, text), "checkpoints": _checkpoints_without(core, text)}
    removed = {name: len(rows) for name, rows in found.items() if rows}
    done = Purged(id=text.id, path=text.path, removed=removed, left=_left(core, text), dry_run=dry_run)
    if dry_run:
        return done
    with writing(core, "purge"):
        finish_writes(core)
        for change in _changes(core, session, text):
            record_intents(core, [change], session)
            write_one(core, change)
            core.writer.look({change.path})
            finish_writes(core)
        with core.index.write(durable=True):
            core.index.checkpoints.put(_checkpoints_without(core, text))
            for collection, rows in _rows(core, text).items():
                core.index.collections[collection].delete(rows)
        done.left.extend(_remove_copies(core, text))
    done.left.extend(f"{each['name']}: {each['trouble']}" for each in publish_changes(core) if each["trouble"])
    core.index.documents.forget([text.id])
    core.index.facts.forget([text.id, *text.facts])
    core.index.dump(core.place.state / "dump")
    core.index.optimize()
    core.events.record("purge", session, path=text.path)
    return done


def _text(core: Core, session: Session, name: str) -> _Text:
    """What a name means: a line, a fact, or a note, as every tool understands it. Raises NoSuchNote."""
    index = core.index
    lines = (index.stream, index.longterm, index.facts)
    if any(each.one(name) or each.ended(Is("id", "=", name)) for each in lines):
        places = index.fact_places.find(Is("fact", "=", name))
        return _Text(name, paths={row["path"] for row in places}, names={name})
    try:
        path, _ = resolve(core, View(core, session), name, operation="purge")
        rows = index.documents.find(Is("path", "=", path)) or [{"id": path, "digest": ""}]
    except NoSuchNote:
        rows = [row for row in index.documents.ended() if name in (row["id"], row["path"])]
        if not rows:
            raise
        path = rows[0]["path"] or ""
    paths, id = {path} - {""}, rows[0]["id"]
    with suppress(GitFailed):
        paths |= {each.path for each in core.history.versions(path, limit=_MOST_VERSIONS)} if path else set()
    if index.documents.count(both(Is("path", "=", path), Not(Is("id", "=", id)))):
        return _Text(id, paths=paths, names={id})  # another note is there now
    facts = {place["fact"] for place in index.fact_places.find(Is("path", "=", path))}
    return _Text(id, path, paths, facts, {id, rows[0]["digest"] or id, *paths})


def _changes(core: Core, session: Session, text: _Text) -> list[Change]:
    """What becomes of files. Raises Refused."""
    if text.path:
        is_there = core.tree.stat(text.path) is not None
        return [Change(text.path, core.tree.read(text.path).raw, None, "purge")] if is_there else []
    draft = Draft(core, session)
    if draft.places(text.id) and (reason := draft.move(text.id, "")):
        raise Refused(reason, next="take the fact out of its file by hand, then purge it")
    return draft.changes("purge")


# ---- rows


def _rows(core: Core, text: _Text) -> dict[str, list[str]]:
    """By collection, the ids of the rows that are the text, were made of it, or name it."""
    index, is_it, is_of_it = core.index, Is("id", "=", text.id), Is("note", "=", text.id)
    line = Either((is_it, is_of_it, Is("path", "in", list(text.paths) if text.path else [])))
    wheres: dict[str, Where] = {
        "documents": is_it,
        "facts": is_it,
        "history": is_of_it,
        "stream": line,
        "longterm": line,
    }
    found = {name: [id for (id,) in index.collections[name].tuples(("id",), each)] for name, each in wheres.items()}
    # Events may quote a reason or a heading; a synthesis rests on notes and facts.
    quoted = {"events": text.names, "cache": {*text.names, *text.facts}}
    for name, names in quoted.items():
        rows = index.collections[name].find(heavy=True)
        found[name] = [row["id"] for row in rows if any(as_json(each) in as_json(row) for each in names)]
    return found


def _checkpoints_without(core: Core, text: _Text) -> list[Row]:
    """The checkpoints that name the text, without it."""
    rows = core.index.checkpoints.find(heavy=True)
    new = [{**row, "body": _without(row["body"], {text.id, *(text.paths if text.path else ())})} for row in rows]
    return [after for before, after in zip(rows, new, strict=True) if after != before]


def _without(value: Any, names: Collection[str]) -> Any:
    """A value of JSON without the objects that name the text."""
    if isinstance(value, Mapping):
        is_named = any(str(value.get(key)) in names for key in ("id", "notebook_id", "path"))
        return None if is_named else {key: _without(each, names) for key, each in value.items()}
    if isinstance(value, list):
        cut = [_without(each, names) for each in value]
        return [after for before, after in zip(value, cut, strict=True) if after is not None or before is None]
    return value


# ---- copies


def _remove_copies(core: Core, text: _Text) -> list[str]:
    """Copies in `.notebook` and the state folder, and a note's private history; what could not be removed."""
    state = core.place.state
    tails = tuple(f"-{tail_of(path)}" for path in text.paths)
    digests = tuple(digest_of(os.fsencode(path)) for path in text.paths)
    named = {f"{digest[:16]}.md" for digest in digests}
    of_prompts = (core.place.lock_folder / "good", state / "trusted")
    for folder in (core.place.private / "replaced", state / "recovered", state / "accepted", *of_prompts):
        for file in folder.iterdir() if folder.is_dir() else ():
            if file.name.endswith(tails) or file.name.startswith(digests) or file.name in named:
                file.unlink()
    try:
        if text.path and (state / PRIVATE / "HEAD").exists():
            _rewrite_history(core, state / PRIVATE, text.paths)
    except (GitFailed, OSError) as error:
        return [f"the private history in {state / PRIVATE}: {error}"]
    return []


def _rewrite_history(core: Core, folder: Path, paths: Collection[str]) -> None:
    """Make the private repository again without these paths; snapshots keep their names."""
    new = folder.with_name("history.new")
    shutil.rmtree(new, ignore_errors=True)  # left by a purge that was interrupted
    Repository.private(new)
    others = [".", *(f":(exclude,literal){path}" for path in paths)]
    stream = run_git(folder, "--git-dir=.", "fast-export", "--all", "--", *others, seconds=LONG_SECONDS)
    run_git(new, "--git-dir=.", "fast-import", "--quiet", "--force", given=stream, seconds=LONG_SECONDS)
    exchange(new, folder)  # there is a history at every moment
    shutil.rmtree(new)
    for row in core.index.checkpoints.find(heavy=True):
        if row["commit"] and (snapshot := core.snapshots.read(row["id"])):
            core.index.checkpoints.put([{**row, "commit": snapshot.commit}])


def _left(core: Core, text: _Text) -> list[str]:
    """What a purge does not reach."""
    state = core.place.state
    left = [f"{file}: delete it" for file in sorted(state.glob("index.db.damaged-*"))]
    if text.paths and not text.path and (state / PRIVATE).exists():
        files = ", ".join(sorted(text.paths))
        left.append(f"earlier texts of {files} in {state / PRIVATE}; purging a file removes its own")
    repository = Repository.around(core.root) if text.paths and has_git() else None
    if repository is not None:
        places = {repository.prefix + path for path in text.paths}
        asked = ("log", "--all", "--max-count=1", "--format=%H", "--", *(f":(top,literal){each}" for each in places))
        if run_git(repository.folder, *asked, seconds=LONG_SECONDS):
            how = (
                f"--invert-paths {' '.join(f'--path {each}' for each in places)}"
                if text.path
                else "--replace-text FILE"
            )
            advice = f"rewrite it with: git filter-repo {how}"
            left.append(f"the git history in {repository.folder}, and its remotes and clones; {advice}")
    return [*left, "backups, archives, and what other notes and programs say of it"]
