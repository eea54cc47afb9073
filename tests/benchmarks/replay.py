"""A day of agents that ask for syntheses of the tasks they work on, while specs and memories change under them.

What it measures is how many of them need no reasoner, and how soon they are answered.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from . import product
from .compiling import specs, write_memories
from .corpus import SEED
from .measure import Bar, Result, alone, percentile
from .vectors import embed

if TYPE_CHECKING:
    from notebook_sync import Notebook
    from notebook_sync.context.reasoner import Kind

    from .rows import Bench

MEMORIES = 1_161
# Eight specs, of which three at a time are worked on. Each session of an agent begins with its task's synthesis; a
# session takes some minutes, and there are several agents.
SPECS, CURRENT = 8, 3
SESSIONS = 160
# What else happens between two sessions, as shares of them: somebody saves a spec that is worked on, an agent writes a
# memory of what it found, or somebody edits a memory, every other time one that a current brief rests on.
SPEC_SAVED, MEMORY_WRITTEN, MEMORY_EDITED = 0.06, 0.10, 0.08
# After so many sessions the work goes on to other specs, and after so many the scores are computed.
SHIFT, SCORED = 20, 80
HIT_RATE, HIT_MILLISECONDS = 0.6, 10.0
_HEADINGS = ("Executive Summary", "Guardrails", "Historical Context and Lessons", "Risks and Open Questions")
_PATH = re.compile(r"^`(memories/[^`\n]+)`", re.MULTILINE)

Event = Literal["session", "spec saved", "memory written", "memory edited", "memory in use edited", "scored"]


@dataclass(frozen=True)
class Lived:
    """A session: how long its synthesis took, whether no reasoner was needed, and whether any note was changed since
    somebody asked for the same."""

    milliseconds: float
    is_hit: bool
    is_quiet: bool


def hit_rate(day: list[Lived]) -> float:
    """The share of sessions that needed no reasoner."""
    return sum(session.is_hit for session in day) / len(day)


def replay(bench: Bench) -> Iterator[Result]:
    root = bench.folder / "replay"
    write_memories(root, MEMORIES, bench.seed)
    settings = root / "notebook.toml"
    settings.write_text(f"{settings.read_text()}[tier2]\nenabled = true\ndaily_limit = 1000\n")
    alone(product.cold_sync, root)
    alone(embed, root)
    day = alone(lived, root, events(SESSIONS, bench.seed), specs(SPECS, bench.seed), bench.seed)
    bar = Bar(HIT_RATE, is_floor=True)
    work = f"{SESSIONS} sessions, {MEMORIES:,} memories: share that needs no reasoner"
    yield Result("replay", work, "", hit_rate(day), bars=(bar,), runs=len(day))
    for name, is_quiet in (("", True), (" and compiled anew, for other notes changed", False)):
        kept = [session.milliseconds for session in day if session.is_hit and session.is_quiet == is_quiet]
        for percent in (50, 95):
            bars = (Bar(HIT_MILLISECONDS),) if is_quiet and percent == 50 else ()
            work = f"a synthesis that is kept{name}, p{percent}"
            yield Result("replay", work, "ms", percentile(kept, percent), bars=bars, runs=len(kept))


def events(sessions: int, seed: int = SEED) -> list[tuple[Event, int]]:
    """What happens in a day, in order; with each the number of a spec."""
    rng = random.Random(f"day {seed}")
    found: list[tuple[Event, int]] = []
    for number in range(sessions):
        first = number // SHIFT
        of = (first + rng.randrange(CURRENT)) % SPECS
        if rng.random() < SPEC_SAVED:
            found.append(("spec saved", of))
        if rng.random() < MEMORY_WRITTEN:
            found.append(("memory written", of))
        if rng.random() < MEMORY_EDITED:
            found.append((rng.choice(("memory edited", "memory in use edited")), of))
        if number and number % SCORED == 0:
            found.append(("scored", of))
        found.append(("session", of))
    return found


def lived(root: Path, happening: list[tuple[Event, int]], tasks: list[str], seed: int = SEED) -> list[Lived]:
    """Do all of it, in a process that stays, as a server of agents does."""
    from notebook_sync import Notebook, Session

    rng, tasks = random.Random(f"words {seed}"), list(tasks)
    notebook = Notebook.open(root)
    vars(notebook.context)["_reasoner"] = Reasoner()
    session = Session.task("scribe")
    day: list[Lived] = []
    used: dict[int, list[str]] = {}
    quiet: set[int] = set()
    for number, (event, of) in enumerate(happening):
        if event == "spec saved":
            tasks[of] += f"\n- And {number} more of what is asked for.\n"
            quiet.discard(of)
            continue
        if event == "session":
            begun = time.perf_counter()
            told = notebook.context.synthesize(tasks[of], session)
            milliseconds = (time.perf_counter() - begun) * 1000
            if told.trouble:
                raise RuntimeError(told.trouble)
            day.append(Lived(milliseconds, told.cached, of in quiet))
            used[of] = [one.path for one in told.memories_used]
            if told.links.ingested and not told.cached:
                quiet.clear()
            quiet.add(of)
            continue
        if event == "memory written":
            notebook.memories.add(_found(tasks[of], number), session)
        elif event == "memory edited":
            _edit(notebook, rng.choice(sorted((root / "memories").rglob("*.md"))), number)
        elif event == "memory in use edited" and used.get(of):
            _edit(notebook, root / rng.choice(used[of]), number)
        elif event == "scored":
            notebook.memories.score(session)
        quiet.clear()
    notebook.close()
    return day


class Reasoner:
    """Answers at once, and links the first three memories of each brief."""

    name = "The replay"
    kind: Kind = "bridge"
    question_characters = 10_000

    def require(self) -> None:
        """It can always be asked."""

    def ask(self, question: str) -> str:
        told = [*dict.fromkeys(_PATH.findall(question))]
        links = [{"from": told[0], "type": "expands", "to": other, "confidence": 0.7} for other in told[1:3]]
        parts = "\n\n".join(f"## {heading}\n\nAs the brief says." for heading in _HEADINGS)
        return f"{parts}\n\n## Suggested Causal Links\n\n{json.dumps(links)}\n"


def _found(task: str, number: int) -> str:
    """A memory of a task: it says some of its words."""
    words = [word for word in re.findall(r"[a-z]{4,}", task.lower()) if word not in ("domain", "tags")]
    some = random.Random(number).sample(words, 12)
    return (
        f"[INSIGHT] {' '.join(some[:4]).capitalize()} {number}\nCONTEXT: {' '.join(some)}.\n"
        f"REASONING: It was tried.\nOUTCOME: {' '.join(some[4:8])}.\nTAGS: {some[0]}, {some[1]}\n"
    )


def _edit(notebook: Notebook, file: Path, number: int) -> None:
    """By hand; a watch would bring it in step."""
    file.write_text(f"{file.read_text()}\nSeen again, {number}.\n")
    notebook.sync()
