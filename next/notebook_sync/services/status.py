"""How a notebook is, from the index and the prompt's files. Scans no folder; what is counted is kept until the index
changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from notebook_sync.errors import NotebookError
from notebook_sync.files.locks import FollowLock
from notebook_sync.files.private import printable
from notebook_sync.services.admin import Status
from notebook_sync.services.assembling import assemble, files_of
from notebook_sync.services.core import Core
from notebook_sync.sessions import KINDS, Session
from notebook_sync.store.rows import Is
from prompt import Prompt

# What no file holds.
_DUMPED = ("history", "stream", "longterm", "checkpoints", "events", "intents")
_FOLLOWER = ("pid", "host", "since", "trouble", "last_reconcile")
_MOST_STALE = 100


def status_of(core: Core) -> Status:
    """The status of a notebook. Raises errors of the index, and ConfigError where there are no good settings."""
    files_of(core)
    place, holder, dumped_at = core.place, FollowLock(core.place).holder(), core.index.dumped_at()
    prompts = {kind: assemble(core, Session.named(kind)) for kind in KINDS}
    targets = core.publisher.state() if core.has_targets else []
    counts = _counts(core)
    attention = [*prompts["owner"].problems, *_troubles(core, holder, targets)]
    attention += [f"{each['path']}: {each['error']}" for each in counts["stale"]]
    return Status(
        name=core.settings.notebook.name or core.root.name,
        root=printable(core.root),
        state=printable(place.state),
        notebook_id=place.notebook_id,
        read_only=place.read_only,
        notes=counts["notes"],
        facts=counts["facts"],
        follower=None if holder is None else {name: holder.get(name, "") for name in _FOLLOWER},
        targets=targets,
        search=_search_state(core),
        only_in_index=counts["only_in_index"],
        dumped_at=dumped_at.isoformat() if dumped_at else None,
        prompt={kind: _room(prompt, core.settings.prompt.max_tokens) for kind, prompt in prompts.items()},
        stale=counts["stale"],
        attention=attention,
    )


def numbers_of(core: Core) -> dict[str, tuple[str, float]]:
    """The numbers of a status by name, each with a line of help."""
    status = status_of(core)
    numbers: dict[str, tuple[str, float]] = {
        "notes": ("Notes in the index", sum(status.notes.values())),
        "facts": ("Facts in the index", status.facts),
        "stale_notes": ("Notes whose file the index does not have as it is", len(status.stale)),
        "attention": ("Findings that somebody should look at", len(status.attention)),
        "followed": ("Whether a process follows the files", status.follower is not None),
        "vectors_behind": ("Rows without a vector of their present words", (status.search or {}).get("behind", 0)),
    }
    for kind, room in status.prompt.items():
        numbers[f"prompt_tokens_{kind}"] = (f"Tokens of the prompt of {kind} sessions", room["tokens"])
    for target in status.targets:
        numbers[f"behind_{target['kind']}"] = (f"Changes that {target['kind']} does not have yet", target["behind"])
        numbers[f"up_{target['kind']}"] = (f"Whether {target['kind']} answers", not target["trouble"])
    return numbers


def _counts(core: Core) -> dict[str, Any]:
    """What is counted in the index, kept until the index changes."""
    version, documents = core.index.version(), core.index.documents
    known: dict[str, Any] = core.parts.get("counts") or {}
    if known.get("version") != version:
        known = core.parts["counts"] = {
            "version": version,
            "notes": documents.distinct("collection", Is("path", "!=", None)),
            "facts": core.index.facts.count(),
            "only_in_index": {name: core.index.collections[name].count() for name in _DUMPED},
            "stale": core.known_faults()[:_MOST_STALE],
        }
    return known


def _room(prompt: Prompt, max_tokens: int) -> dict[str, int]:
    left_out = sum(part.tokens_whole - part.tokens for part in prompt.parts if part.cut)
    return {"tokens": prompt.tokens, "max_tokens": max_tokens, "left_out": left_out}


def _troubles(core: Core, holder: dict[str, Any] | None, targets: Sequence[dict[str, Any]]) -> list[str]:
    found = [core.behind(), f"following the files: {holder['trouble']}" if holder and holder.get("trouble") else ""]
    for each in targets:
        found.append(f"{each['name']}: {each['trouble']}" if each["trouble"] else "")
        found.append(f"{each['name']} refuses {each['refused']:,} rows" if each["refused"] else "")
    return [trouble for trouble in found if trouble]


def _search_state(core: Core) -> dict[str, Any] | None:
    """How far search by meaning is, None where it is off."""
    if core.settings.search.embeddings == "off":
        return None
    meaning = core.searcher.meaning
    assert meaning is not None  # noqa: S101 - an embedder is set
    try:
        return {"model": meaning.embedder.model, "behind": meaning.queue.behind(), "trouble": ""}
    except NotebookError as error:
        return {"model": meaning.embedder.model, "behind": 0, "trouble": str(error)}
