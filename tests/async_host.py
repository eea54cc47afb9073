"""An asyncio host as a process of its own: `python -m tests.async_host ROOT NAME LINES`. Prints what it was told."""

from __future__ import annotations

import asyncio
import json
import sys

from notebook_sync import AsyncNotebook, Edit, Session
from notebook_sync.errors import Conflict

NOTE = "pages/ferry.md"


async def host(root: str, name: str, lines: int) -> dict[str, list[int]]:
    """Add lines to a note that others add to as well, all at once, and ask for each of them."""
    async with AsyncNotebook.opened(root) as notebook:
        versions = await asyncio.gather(*(add(notebook, f"{name} says {number}") for number in range(lines)))
        found = await asyncio.gather(*(notebook.search(f"{name} {number}") for number in range(lines)))
    return {"versions": list(versions), "found": [len(rows) for rows in found]}


async def add(notebook: AsyncNotebook, line: str) -> int:
    """The version in which the line stands. Who is told that another was faster tries again."""
    while True:
        try:
            edit = Edit("append_to_section", section="Log", content=f"- {line}")
            return (await notebook.edit(NOTE, edit, Session.owner())).version or 0
        except Conflict:
            continue


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(host(sys.argv[1], sys.argv[2], int(sys.argv[3])))))
