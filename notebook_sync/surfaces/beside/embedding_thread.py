"""Embedding beside a server, in a thread of it: a server searches, and has in memory anyway what that takes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from notebook_sync.notebook import Notebook

if TYPE_CHECKING:
    from notebook_sync.search.embedding import Following

# A server that is asked one thing and ended, as agent programs do when they look what there is, embeds nothing.
_LATER_SECONDS = 5.0


@contextmanager
def embedding_beside(notebook: Notebook) -> Iterator[Callable[[], None]]:
    """Embed what is behind meanwhile, from a little later on; gives what to call when notes have changed."""
    following: list[Following] = []
    closed = threading.Lock()

    def begin() -> None:
        with closed:
            if not is_over and (begun := notebook.admin.embed_meanwhile()) is not None:
                following.append(begun)

    def changed() -> None:
        for each in following:
            each.wake()

    is_over = False
    timer = threading.Timer(_LATER_SECONDS, begin)
    timer.daemon = True
    timer.start()
    try:
        yield changed
    finally:
        timer.cancel()
        with closed:
            is_over = True
        for each in following:
            each.close()
