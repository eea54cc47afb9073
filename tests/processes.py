"""Processes that share a store with a test, forked from one that has imported what they import and opened nothing."""

from __future__ import annotations

import multiprocessing

_IMPORTED = ("facts", "memories", "mirror", "search")

# Not forked from the test's own process, which has threads and connections; nor spawned, which takes a second each.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload([f"tests.{folder}.contract" for folder in _IMPORTED])
