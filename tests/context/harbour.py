"""A notebook with memories about berths, whose questions go to a bridge that a test scripts.

answers    what the bridge answers next: `answers.say(text)`, `answers.misbehave("crash")`; `answers.asked` so far
notebook   opened and synced
"""

import json
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from notebook_sync.services.memory_links import Link
from tests.context.bridge_server import asked, bridge_command, good_answer

SPEC = "# Which berth?\n\nWhich berth is deep enough for the new ferry at low tide?"
OTHER = "# Paint\n\nWhich paint keeps the ferry dry in winter?"
BERTH, TIDE, SILT = "memories/decision/berth.md", "memories/problem/tide.md", "memories/insight/silt.md"
_MEMORIES = {
    BERTH: ("decision", "Berth 4", "Berth 4 is for the ferry, since berth 5 is not deep at low tide."),
    TIDE: ("problem", "Low tide", "At low tide the ferry touches the ground at berth 5."),
    SILT: ("insight", "Silt", "The berth silts up, so it is less deep each year at low tide."),
    "memories/pattern/paint.md": ("pattern", "Paint", "Paint the ferry in winter, when it is dry."),
}


def write_notebook(root: Path, **tier2: Any) -> Path:
    """The notebook's files; `tier2` are settings of that table."""
    table = {"enabled": True, **tier2}
    lines = [f"{name} = {json.dumps(value)}" for name, value in table.items()]
    settings = '[notebook]\ntimezone = "UTC"\n[search]\nembeddings = "off"\n[tier2]\n' + "\n".join(lines)
    root.mkdir(exist_ok=True)
    (root / "notebook.toml").write_text(f"{settings}\n")
    for path, (kind, title, text) in _MEMORIES.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists():
            head = f"---\nid: {file.stem}\nkind: {kind}\ndomain: harbour\npriority: 7\n---\n"
            file.write_text(f"{head}# {title}\n\nCONTEXT: {text}\n\nREASONING: {text}\n")
    return root


class Answers:
    """The bridge of one notebook."""

    def __init__(self, root: Path, scratch: Path) -> None:
        self._root = root
        self._file, self._log = scratch / "answer.md", scratch / "asked.jsonl"
        self.say(answer())
        self.set()

    def say(self, text: str) -> None:
        """What it answers from now on."""
        self._file.write_text(text)

    def set(self, *misbehaviours: str, **tier2: Any) -> None:
        """How it behaves from now on, and other settings of [tier2]."""
        write_notebook(self._root, command=bridge_command(*misbehaviours, answer=self._file, log=self._log), **tier2)

    def kill(self) -> None:
        """End the bridge that was asked last."""
        os.kill(asked(self._log)[-1]["pid"], signal.SIGKILL)

    @property
    def asked(self) -> list[str]:
        """The questions so far."""
        return [one["question"] for one in asked(self._log)]


def link(start: str = "silt", end: str = "tide", relation: str = "causes", **more: Any) -> dict[str, Any]:
    """A link that an answer suggests."""
    return {"from": start, "to": end, "type": relation, "confidence": 0.8, "reasoning": "Less water.", **more}


def answer(*links: dict[str, Any], text: str = "Use berth 4.") -> str:
    """An answer in the form that is asked for."""
    return good_answer(links, text)


def edit(root: Path, path: str, text: str = "The pilot agrees.") -> None:
    """What an editor does."""
    file = root / path
    file.write_text(f"{file.read_text()}\n{text}\n")


def ids(links: Sequence[Link]) -> list[tuple[str, str, str]]:
    """Links as (from, type, to)."""
    return [(each.from_id, each.type, each.to) for each in links]
