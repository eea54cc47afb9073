"""A notebook whose tasks somebody reasons about, and who says what a test wants."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from notebook_sync import Notebook
from notebook_sync.context.reasoner import Kind
from notebook_sync.context.truth import HEADINGS
from notebook_sync.errors import SynthesisDown
from notebook_sync.operations.context import Brief, Synthesis

BERTH, TIDE, SILT = "memories/decision/berth.md", "memories/problem/tide.md", "memories/insight/silt.md"
SPEC = "# Move the ferry\n\nWhich berth is deep enough for the ferry at low tide?\n"
OTHER = "# Paint the lighthouse\n\nWhich colour is the lighthouse door?\n"
DOWN = SynthesisDown("The adviser", "gone fishing")

Line = str | SynthesisDown | Callable[[], str]


def memory(title: str, kind: str, text: str, *, front: str = "", tags: str = "ferry, berth, tide") -> str:
    return (
        f"---\nid: {title.split()[0].lower()}\nkind: {kind}\ntags: [{tags}]\n{front}---\n\n# {title}\n\n"
        f"## Context\n\n{text}\n\n## Reasoning\n\nOdile measured it.\n\n## Outcome\n\nWritten down.\n"
    )


def write_notebook(root: Path, **tier2: Any) -> None:
    """Three memories and a lighthouse; `tier2` are further settings of that table."""
    more = "".join(f"{name} = {json.dumps(value)}\n" for name, value in ({"enabled": True} | tier2).items())
    for path, text in {
        BERTH: memory("Berth 4 is for the ferry", "decision", "Berth 5 is too shallow for the ferry at low tide."),
        TIDE: memory("Tide takes three metres", "problem", "At low tide the ferry touches ground at berth 5."),
        SILT: memory("Silt fills berth 5", "insight", "The ferry needs a deep berth, and silt fills berth 5."),
        "memories/pattern/paint.md": memory("Paint dries in May", "pattern", "The door is red.", tags="lighthouse"),
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    settings = f'[search]\nembeddings = "off"\n[git]\ncommit = "off"\n[tier2]\n{more}'
    (root / "notebook.toml").write_text(settings)


class Adviser:
    """A `Reasoner` that says, one after the other, what a test wants, the last to all that follow."""

    name = "The adviser"
    kind: Kind = "bridge"
    question_characters = 10_000

    def __init__(self) -> None:
        self._lines: list[Line] = [truth()]
        self.questions: list[str] = []

    def says(self, *lines: Line) -> None:
        self._lines = list(lines)

    def require(self) -> None:
        """It can always be asked."""

    def ask(self, question: str) -> str:
        self.questions.append(question)
        line = self._lines.pop(0) if len(self._lines) > 1 else self._lines[0]
        if isinstance(line, SynthesisDown):
            raise line
        return line if isinstance(line, str) else line()


def truth(*links: Any, summary: str = "Use berth 4.") -> str:
    """An answer as it was asked for."""
    parts = [summary, "- Never berth 5.", "Odile measured it.", "None.", json.dumps(list(links))]
    return "\n\n".join(f"## {heading}\n\n{part}" for heading, part in zip(HEADINGS, parts, strict=True))


def link(start: str = "silt", end: str = "tide", relation: str = "causes", **more: Any) -> dict[str, Any]:
    return {"from": start, "type": relation, "to": end, "confidence": 0.8, "reasoning": "Less water.", **more}


def used(told: Brief | Synthesis) -> set[str]:
    return {one.id for one in told.memories_used}


def ids(rows: Sequence[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [(row["from"], row["type"], row["to"]) for row in rows]


def opened(root: Path, adviser: Adviser | None = None, *, sync: bool = True) -> Notebook:
    """The notebook there, whose tasks the adviser reasons about, or who its settings name."""
    notebook = Notebook.open(root)
    if adviser is not None:
        vars(notebook.context)["_reasoner"] = adviser  # where the part is, once it is made
    if sync:
        notebook.sync()
    return notebook
