"""Compiling a brief among so many memories: specs of their own, each compiled twice, in a process that stays."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from . import product
from .corpus import SEED, vocabulary
from .measure import Bar, Result, alone, percentile
from .vectors import embed

if TYPE_CHECKING:
    from .rows import Bench

SPECS = 30
KINDS = ("decision", "problem", "pattern", "insight")
DOMAINS = ("harbour", "ferry", "tides", "lamps", "stores", "crew", "pilots", "customs")
RELATIONS = ("solves", "causes", "expands", "similar", "contradicts", "supersedes")
# The first is how many the bar was set for.
SIZES = (1_161, 100_000)


def compiling(bench: Bench, sizes: tuple[int, ...] = SIZES) -> Iterator[Result]:
    """Embedded, each memory with its vectors; a spec that no other was like, and then the same again."""
    for memories in sizes:
        root = bench.folder / f"memories-{memories}"
        write_memories(root, memories, bench.seed)
        alone(product.cold_sync, root)
        alone(embed, root)
        first, again, tokens = alone(compile_all, root, specs(SPECS, bench.seed))
        bar = Bar(300 if memories >= 100_000 else 50)
        for name, seconds in (("", first), (", the same spec again", again)):
            for percent in (50, 95):
                work = f"{memories:,} memories{name}, p{percent}"
                measured = percentile(seconds, percent) * 1000
                yield Result("compile", work, "ms", measured, bars=(bar,), runs=len(seconds))
        yield Result("compile", f"{memories:,} memories, tokens of a brief", "", percentile(tokens, 50))


def compile_all(root: Path, asked: list[str]) -> tuple[list[float], list[float], list[int]]:
    """Seconds of each spec, of the same again, and the tokens of each brief. The first spec of all warms what a process
    loads once."""
    from notebook_sync import Notebook, Session

    notebook = Notebook.open(root)
    session = Session.task("scribe")
    notebook.context.compile(asked[0], session)
    first, again, tokens = [], [], []
    for spec in asked[1:]:
        for seconds in (first, again):
            begun = time.perf_counter()
            compiled = notebook.context.compile(spec, session)
            seconds.append(time.perf_counter() - begun)
        if not compiled.memories_used or compiled.partial:
            raise RuntimeError(f"this found not all: {compiled.partial}")
        tokens.append(compiled.token_count)
    notebook.close()
    return first, again, tokens


def specs(count: int, seed: int = SEED) -> list[str]:
    """Specs of a page, of words from rare to frequent."""
    return [_spec(random.Random(f"spec {seed} {number}")) for number in range(count)]


def write_memories(root: Path, count: int, seed: int = SEED) -> None:
    """A notebook of so many memories of about 900 bytes; one in five is linked to another."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "notebook.toml").write_text('[context]\ndomains = ["harbour", "ferry"]\n')
    for kind in KINDS:
        (root / "memories" / kind).mkdir(parents=True, exist_ok=True)
    for number in range(count):
        rng = random.Random(f"memory {seed} {number}")
        kind = KINDS[number % len(KINDS)]
        (root / f"memories/{kind}/2026-01-{1 + number % 28:02}-m{number:06}.md").write_text(_memory(number, kind, rng))


def _memory(number: int, kind: str, rng: random.Random) -> str:
    title = _say(rng, 5).capitalize()
    tags = ", ".join(sorted({_say(rng, 1) for _ in range(3)}))
    links = ""
    if number and number % 5 == 0:
        links = (
            f"relations:\n- {{type: {rng.choice(RELATIONS)}, to: m{rng.randrange(number):06}, confidence: 0.8, "
            f"reasoning: {_say(rng, 4)}}}\n"
        )
    front = (
        f"id: m{number:06}\nkind: {kind}\ndomain: {rng.choice(DOMAINS)}\ntags: [{tags}]\n"
        f"created_at: 2026-01-{1 + number % 28:02}T10:30:00Z\nagent: scribe\npriority: {rng.randint(1, 10)}\n{links}"
    )
    parts = "\n".join(f"## {name}\n\n{_prose(rng, 4)}\n" for name in ("Context", "Reasoning", "Outcome"))
    return f"---\n{front}---\n# {title}\n\n{parts}"


def _spec(rng: random.Random) -> str:
    head = f"---\ndomain: {rng.choice(DOMAINS)}\ntags: [{_say(rng, 1)}]\n---\n# {_say(rng, 5).capitalize()}\n\n"
    parts = "\n".join(f"## {_say(rng, 2).capitalize()}\n\n{_prose(rng, 5)}\n" for _ in range(4))
    return f"{head}{parts}\n- {_say(rng, 6)}\n- {_say(rng, 6)}\n"


def _prose(rng: random.Random, sentences: int) -> str:
    return " ".join(f"{_say(rng, 9).capitalize()}." for _ in range(sentences))


def _say(rng: random.Random, count: int) -> str:
    words, weights = vocabulary()
    return " ".join(rng.choices(words, cum_weights=weights, k=count))
