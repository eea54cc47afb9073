"""The operations of a notebook, in groups. Each is a typed method with a docstring.

The modules that do the work are attributes of this package, such as `services.memory_care`, and are loaded when they
are first used: a command that asks for nothing of them starts without the time that they take.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

    from notebook_sync.services import (
        admin,
        archive,
        assembling,
        channels,
        check,
        checkpoints,
        conversations,
        documents,
        extract,
        fact_keeping,
        fact_rows,
        fact_upkeep,
        facts,
        finding,
        importers,
        importing,
        memories,
        memory_care,
        memory_links,
        notes,
        originals,
        prompts,
        purge,
        recall,
        remembering,
        reminders,
        results,
        rules,
        status,
        stream,
        tokens,
        trust,
        upkeep,
        versions,
        view,
        watching,
        writing,
    )

__all__ = [
    "admin",
    "archive",
    "assembling",
    "channels",
    "check",
    "checkpoints",
    "conversations",
    "documents",
    "extract",
    "fact_keeping",
    "fact_rows",
    "fact_upkeep",
    "facts",
    "finding",
    "importers",
    "importing",
    "memories",
    "memory_care",
    "memory_links",
    "notes",
    "originals",
    "prompts",
    "purge",
    "recall",
    "remembering",
    "reminders",
    "results",
    "rules",
    "status",
    "stream",
    "tokens",
    "trust",
    "upkeep",
    "versions",
    "view",
    "watching",
    "writing",
]


def __getattr__(name: str) -> ModuleType:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{name}")
