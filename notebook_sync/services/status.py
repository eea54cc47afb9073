"""How a notebook is, from the index and the prompt's files; and whether its environment is fit, with what helps if not.

A status scans no folder; what is counted is kept until the index changes.
"""

from __future__ import annotations

import os
import re
import sqlite3
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from notebook_sync import services
from notebook_sync.errors import ConfigError, NotebookError
from notebook_sync.files.locks import FollowLock
from notebook_sync.files.names import copy_of
from notebook_sync.files.private import printable
from notebook_sync.files.state import file_system, why_not_writable
from notebook_sync.model import SETTINGS_FILE
from notebook_sync.services.admin import Check, Status
from notebook_sync.services.assembling import assemble, files_of
from notebook_sync.services.core import FAULTS, PROPOSALS, PROPOSED, Core
from notebook_sync.services.upkeep import MODELS, chore_times, model_of, queue_of
from notebook_sync.sessions import KINDS, PROGRAM, Session
from notebook_sync.store.collections import COLLECTIONS
from notebook_sync.store.rows import Is, Where, both
from prompt import Prompt

# What no file holds; kept columns belong to rows of files.
_DUMPED = [spec.name for spec in COLLECTIONS if spec.dumped and not any(each.kept for each in spec.columns)]
_FOLLOWER = ("pid", "host", "since", "trouble", "last_reconcile")
_MOST_STALE, _MOST_NAMED = 100, 3
_DAY, _DAYS = timedelta(days=1), 7
# What editors and sync clients leave next to a file, and what helps.
_LEFT_BEHIND = (
    (
        re.compile(r"\..+\.sw[a-p]|#.+#|\.~lock\..+#"),
        "text that an editor has not saved, or has open",
        "recover it, as in: vim -r FILE; then delete it",
    ),
    (re.compile(r"\..+\.icloud"), "notes that are in the cloud only", "download them in the sync client"),
)


def status_of(core: Core) -> Status:
    """The status of a notebook. Raises errors of the index, and ConfigError where there are no good settings."""
    files_of(core)
    place, holder, dumped_at = core.place, FollowLock(core.place).holder(), core.index.dumped_at()
    prompts = {kind: assemble(core, Session.named(kind)) for kind in KINDS}
    targets = core.publisher.state() if core.has_targets else []
    counts = _counts(core)
    models = [_model_state(core, setting) for setting in MODELS if model_of(core, setting)]
    attention = [*prompts["owner"].problems, *_troubles(core, holder, [*targets, *models])]
    attention += [f"{each['path']}: {each['error']}" for each in counts["stale"]]
    return Status(
        name=core.settings.notebook.name or core.root.name,
        root=printable(core.root),
        state=printable(place.state),
        notebook_id=place.notebook_id,
        read_only=place.read_only,
        follower=None if holder is None else {name: holder.get(name, "") for name in _FOLLOWER},
        targets=targets,
        search=models,
        dumped_at=dumped_at.isoformat() if dumped_at else None,
        prompt={kind: _room(prompt, core.settings.prompt.max_tokens) for kind, prompt in prompts.items()},
        proposals=_proposals(core),
        agents=_agents(core),
        chores=chore_times(core),
        attention=attention,
        **counts,
    )


def _counts(core: Core) -> dict[str, Any]:
    version = core.index.version()
    known: tuple[object, dict[str, Any]] | None = core.parts.get("counts")
    if known is None or known[0] != version:
        copies = core.index.documents.tuples(("path",), Is("copy_of", ">", ""))
        counts = {
            "conflicts": sorted(path for (path,) in copies if path)[:_MOST_STALE],
            "notes": core.index.documents.distinct("collection"),
            "facts": core.index.facts.count(),
            "only_in_index": {name: core.index.collections[name].count() for name in _DUMPED},
            "stale": core.noted(FAULTS)[:_MOST_STALE],
        }
        known = core.parts["counts"] = version, counts
    return known[1]


def _proposals(core: Core) -> list[str]:
    if core.index.cache.one(PROPOSALS) is None and not core.index.events.count(Is("kind", "=", PROPOSED)):
        return []
    return [f"{path}:{line}: {message}" for path, line, message in services.fact_upkeep.proposals_of(core)]


def _agents(core: Core) -> list[dict[str, Any]]:
    """What each agent did of late, the busiest first."""
    now = core.now()
    moments = [now - _DAY * each for each in range(_DAYS, -1, -1)]
    days = [_by_agent(core, Is("at", ">", start), Is("at", "<=", end)) for start, end in pairwise(moments)]
    refused = _by_agent(core, Is("at", ">", moments[-2]), Is("kind", "=", "refused"))
    names = {name for day in days for name in day}
    found = [
        {"agent": name, "days": [day.get(name, 0) for day in days], "refused": refused.get(name, 0)} for name in names
    ]
    return sorted(found, key=lambda each: (-each["days"][-1], -sum(each["days"]), each["agent"]))


def _by_agent(core: Core, *where: Where) -> dict[str, int]:
    """How many events agents caused, by name; not the owner, and not the program."""
    named = core.index.events.distinct("agent", both(*where, Is("agent", "!=", "")))
    unnamed = core.index.events.count(both(*where, Is("agent", "=", ""), Is("session", "!=", "owner")))
    found = {**named, "unknown": unnamed}
    return {name: count for name, count in found.items() if count and name != PROGRAM.agent}


def numbers_of(core: Core) -> dict[str, tuple[str, float]]:
    """The numbers of a status by name, each with a line of help."""
    status = status_of(core)
    numbers: dict[str, tuple[str, float]] = {
        "notes": ("Notes in the index", sum(status.notes.values())),
        "facts": ("Facts in the index", status.facts),
        "stale_notes": ("Notes whose file the index does not have as it is", len(status.stale)),
        "attention": ("Findings that somebody should look at", len(status.attention)),
        "followed": ("Whether a process follows the files", status.follower is not None),
    }
    for kind, room in status.prompt.items():
        numbers[f"prompt_tokens_{kind}"] = (f"Tokens of the prompt of {kind} sessions", room["tokens"])
    lagging = {each["setting"]: each for each in status.search} | {each["kind"]: each for each in status.targets}
    for name, each in lagging.items():
        numbers[f"behind_{name}"] = (f"Changes that {name} does not have yet", each["behind"])
        numbers[f"up_{name}"] = (f"Whether {name} answers", not each["trouble"])
    return numbers


def _room(prompt: Prompt, max_tokens: int) -> dict[str, int]:
    left_out = sum(part.tokens_whole - part.tokens for part in prompt.parts if part.cut)
    return {"tokens": prompt.tokens, "max_tokens": max_tokens, "left_out": left_out}


def _troubles(core: Core, holder: dict[str, Any] | None, lagging: Sequence[dict[str, Any]]) -> list[str]:
    """What does not work; `lagging` are the servers and the models of search."""
    named = [
        ("following the files", (holder or {}).get("trouble")),
        *((each["name"], each["trouble"]) for each in lagging),
    ]
    refused = [f"{each['name']} refuses {each['refused']:,} rows" for each in lagging if each.get("refused")]
    said = [core.behind(), why_not_writable(core.place.state)]
    return [*filter(None, said), *(f"{name}: {trouble}" for name, trouble in named if trouble), *refused]


def _model_state(core: Core, setting: str) -> dict[str, Any]:
    """How far the vectors of a model are. It is loaded only where some may be missing."""
    behind, trouble = 0, ""
    try:
        queue = queue_of(core, setting)
        behind = queue.behind() if queue else 0
    except NotebookError as error:
        trouble = str(error)
    return {"name": model_of(core, setting), "setting": setting, "behind": behind, "trouble": trouble}


# ---- doctor

_Looked = list[tuple[str, str]]


def examine(core: Core) -> list[Check]:
    """Every check of the machine and of a notebook. A look returns messages, each with the step that helps, "" where
    nothing is wrong."""
    checks = []
    for look in _LOOKS:
        name = look.__name__.strip("_")
        try:
            checks += [Check(name, not step, said, step) for said, step in look(core)]
        except ConfigError as error:
            checks.append(Check(name, False, str(error), f"edit {core.root / SETTINGS_FILE}"))
            break  # the looks below need them
        except NotebookError as error:
            checks.append(Check(name, False, error.message, error.next))
    return checks


def _python(_: Core) -> _Looked:
    running = f"Python {sys.version.split()[0]}, SQLite {sqlite3.sqlite_version}"
    with closing(sqlite3.connect(":memory:")) as db:
        (is_fit,) = db.execute("SELECT count(*) FROM pragma_module_list WHERE name = 'fts5'").fetchone()
    return [(running, "") if is_fit else (f"{running} without FTS5", "use a Python whose SQLite has FTS5")]


def _git(core: Core) -> _Looked:
    from shutil import which  # `status` does without both

    from notebook_sync.files.git import Repository

    found = which("git")
    if found is None:
        return [("git is not on PATH, so notes have no history", "install git, as in: apt install git")]
    Repository.around(core.root)  # which fails where git does not trust it
    return [(found, "")]


def _folder(core: Core) -> _Looked:
    root, user = core.root, os.geteuid()
    shown = f"{root} {file_system(root)}".rstrip()
    if not core.place.read_only:
        return _written_in(root, f"{shown} can be written")
    refused = core.place.private if core.place.private.is_dir() else root
    step = f"chmod u+w {refused}" if refused.stat().st_uid == user else f"as root: chown -R {user} {root}"
    if os.statvfs(root).f_flag & os.ST_RDONLY:
        step = "mount it for writing, if notes are to be changed"
    return [(f"{shown} cannot be written; notes can be read and indexed", step)]


def _state(core: Core) -> _Looked:
    return _written_in(core.place.state, f"{core.place.state} can be written")


def _written_in(folder: Path, sound: str) -> _Looked:
    trouble = why_not_writable(folder)
    return [(trouble or sound, trouble and "make room on its disk, or give it to your user")]


def _editors(core: Core) -> _Looked:
    """What editors and sync clients left next to notes."""
    seen: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    copies = ("conflict copies", "notebook-sync check names the file that each belongs to")
    for folder, folders, names in os.walk(core.root):
        folders[:] = [name for name in folders if not name.startswith(".")]
        above = f"{os.path.relpath(folder, core.root)}/".removeprefix("./")
        for name in names:
            found = [(what, step) for pattern, what, step in _LEFT_BEHIND if pattern.fullmatch(name)]
            for each in found or ([copies] if copy_of(above + name) else []):
                seen[each].append(above + name)
    shown = {
        each: ", ".join(places[:_MOST_NAMED]) + ", …" * (len(places) > _MOST_NAMED) for each, places in seen.items()
    }
    found = [(f"{what}: {places}", step) for (what, step), places in shown.items()]
    return found or [("no editor or sync client left anything behind", "")]


def _settings(core: Core) -> _Looked:
    file = core.root / SETTINGS_FILE
    core.settings  # noqa: B018 - read, or in error
    return [(core.settings_problem or str(file), f"edit {file}" if core.settings_problem else "")]


def _servers(core: Core) -> _Looked:
    step = f"start the server, or correct its url in {SETTINGS_FILE}"
    states = core.publisher.state() if core.has_targets else []
    found = [(f"{each['name']}: {each['trouble']}", step) if each["trouble"] else (each["name"], "") for each in states]
    return found or [("none is set, and none is needed", "")]


_LOOKS: tuple[Callable[[Core], _Looked], ...] = (_python, _git, _folder, _state, _editors, _settings, _servers)
