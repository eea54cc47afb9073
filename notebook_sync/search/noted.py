"""Why notes could not be embedded the last time, kept where every process sees it: who embeds is seldom who is asked.

It can be lost at any time: the next run tells it anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from notebook_sync.errors import BackendDown
from notebook_sync.folder import replace_private
from notebook_sync.search.embedded import Embedded
from notebook_sync.search.embedding import Backlog

if TYPE_CHECKING:
    from notebook_sync.mirror.base import Mirror
    from notebook_sync.search.base import Embedder, Vectors

FILE = "embedding.json"


class NotedBacklog(Backlog):
    """A backlog whose trouble is noted in `folder`, the notebook's `.notebook`."""

    def __init__(self, mirror: Mirror, vectors: Vectors, embedder: Embedder, folder: Path) -> None:
        super().__init__(mirror, vectors, embedder)
        self._model = embedder.model
        self._folder = folder

    def catch_up(
        self,
        progress: Callable[[int, int], None] | None = None,
        limit: int | None = None,
        *,
        rest: Callable[[float], bool] = lambda _: False,
    ) -> Embedded:
        """As `Backlog.catch_up`."""
        try:
            done = super().catch_up(progress, limit, rest=rest)
        except Exception as error:
            self._note(str(error) if isinstance(error, BackendDown) else f"embedding failed: {error!r}")
            raise
        self._note(f"of {done.failed:,} notes no vectors can be made" if done.failed else "")
        return done

    def _note(self, trouble: str) -> None:
        if trouble != noted(self._folder, self._model):
            with suppress(OSError):
                replace_private(self._folder / FILE, json.dumps({"model": self._model, "trouble": trouble}).encode())


def noted(folder: Path, model: str) -> str:
    """The trouble of the last run with this model, "" for none."""
    try:
        told: Any = json.loads((folder / FILE).read_text("utf-8"))
    except (OSError, ValueError):
        return ""
    is_told = isinstance(told, dict) and told.get("model") == model
    return str(told.get("trouble", "")) if is_told else ""
