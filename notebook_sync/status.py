"""How a notebook is, right now. Each part is asked by itself: a database that is down or hangs costs its own line."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from notebook_sync.errors import BackendDown
from notebook_sync.files.note import PARSER_REVISION, Stamp
from notebook_sync.files.vault import Vault
from notebook_sync.mirror.base import Known, Mirror
from notebook_sync.notes.prompting.use import PromptUse
from notebook_sync.refs.base import Refs
from notebook_sync.sync.lock import watcher
from prompt.errors import PromptError

if TYPE_CHECKING:
    from notebook_sync.mirror.facts import FactRows
    from notebook_sync.search.base import Embedder, Vectors


def status_of(
    vault: Vault,
    folder: Path,
    name: str,
    open_mirror: Callable[[], Mirror],
    open_refs: Callable[[], Refs],
    look_at_prompt: Callable[[], PromptUse],
    look_at_search: Callable[[], dict[str, Any] | None],
) -> dict[str, Any]:
    """The status, in the shape that `--json` prints. What a database that is down would say is null.

    behind: files that differ from the mirror. lag_seconds: the age of the oldest such change, 0 when there is none; a
    deletion is as old as the last change of its folder. `stale` are the notes whose file, as it now is, was refused.
    """
    scan = vault.scan()
    rows: dict[str, Known] | None = None
    mirror: dict[str, Any]
    refs: dict[str, Any]
    store_id = ""
    try:
        store = open_mirror()
        counts = store.counts()
        known = {row.path: row for row in store.known()}
        store_id = store.store_id()
        mirror = {"name": store.name, "ok": True, "error": "", **counts}
        rows = known  # last: a mirror that goes down between two answers counts as one that gave none
    except BackendDown as down:
        mirror = {"name": down.backend, "ok": False, "error": down.reason}
    try:
        hot = open_refs()
        owner = hot.owner()
        untold = None if rows is None else mirror["pending"] if owner == store_id else mirror["notes"]
        refs = {"name": hot.name, "ok": True, "error": "", "pending": untold}
    except BackendDown as down:
        refs = {"name": down.backend, "ok": False, "error": down.reason, "pending": None}
    told = watcher(folder)
    changes = None if rows is None else late(scan.seen, rows, lambda path: _changed_at(vault.root, path))
    use = _prompt_use(look_at_prompt)
    refused = {**scan.refused, **{path: row.stale for path, row in (rows or {}).items() if row.stale}}
    return {
        "root": str(vault.root),
        "name": name or vault.root.name,
        "mirror": mirror,
        "refs": refs,
        "behind": None if changes is None else len(changes),
        "lag_seconds": None if changes is None else _age(changes),
        "last_reconcile": told.get("last_reconcile") if told else None,
        "watcher": None if told is None else {key: told.get(key, "") for key in ("pid", "host", "since", "trouble")},
        "stale": [{"path": path, "error": error} for path, error in sorted(refused.items())],
        "search": look_at_search(),
        "prompt": use.files,
        "sessions": use.sessions,
    }


def search_state(
    folder: Path, embedder: Embedder | None, open_vectors: Callable[[], Vectors], open_facts: Callable[[], FactRows]
) -> dict[str, Any] | None:
    """How far search by meaning is, of notes and of facts; None where it is off. `trouble`: why notes could not be
    embedded the last time. Facts that the embedder refuses are not behind: words find them."""
    if embedder is None:
        return None
    from notebook_sync.search.noted import noted

    model = embedder.model
    try:
        counts = open_vectors().counts(model)
        facts = open_facts().lacking(model, dimensions=embedder.dimensions or None)
    except BackendDown as down:
        unknown = dict.fromkeys(("embedded", "behind", "facts_behind", "facts_refused"))
        return {"model": model, **unknown, "trouble": str(down)}
    return {
        "model": model,
        "embedded": counts.embedded,
        "behind": counts.behind,
        "facts_behind": facts.behind,
        "facts_refused": facts.refused,
        "trouble": noted(folder, model),
    }


def late(seen: Mapping[str, Stamp], rows: Mapping[str, Known], gone_at: Callable[[str], int]) -> dict[str, int]:
    """Paths whose file is not what the mirror last saw, with when it became so, in ns since the epoch.

    A stale row is not late: its file was looked at and refused. `gone_at` tells when a file that is not there went.
    """
    changed = {
        path: max(stamp.mtime_ns, stamp.ctime_ns)
        for path, stamp in seen.items()
        if path not in rows or (not rows[path].stale and not _is_current(rows[path], stamp))
    }
    return changed | {path: gone_at(path) for path in rows if path not in seen}


def _is_current(row: Known, stamp: Stamp) -> bool:
    return row.stamp == stamp and row.revision == PARSER_REVISION


def _changed_at(root: Path, path: str) -> int:
    """When the nearest folder of `path` that there is was last changed."""
    for folder in (root / path).parents:
        try:
            return os.stat(folder).st_mtime_ns  # noqa: PTH116 - one call for each deleted file
        except OSError:
            continue
    return time.time_ns()


def _age(changes: Mapping[str, int]) -> float:
    """Seconds since the oldest change; a time in the future, which a file may have, is now."""
    now = time.time_ns()
    return round(max(0, now - min(changes.values(), default=now)) / 1e9, 3)


def _prompt_use(look_at_prompt: Callable[[], PromptUse]) -> PromptUse:
    """Empty where tokens cannot be counted, of which `doctor` tells."""
    try:
        return look_at_prompt()
    except PromptError:
        return PromptUse({}, {})
