"""Whether the time of an answer tells of what the session may not read: the same call to a notebook with private notes
and to one without, in pairs, and what a two-sample test says of the times. No test: a busy machine decides nothing.

    python -m tests.benchmarks.privacy_timing [PAIRS]

`z` is that of Mann and Whitney's test and beyond 2.6 where the times differ (p < 0.01); `D` is Kolmogorov and
Smirnov's, beyond 1.63 x sqrt(2 / PAIRS).
"""

from __future__ import annotations

import math
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from notebook_sync import Notebook, Session

PILOT = Session.task("pilot")
CALLS: dict[str, Callable[[Notebook], object]] = {
    "search, nothing found": lambda notebook: notebook.search("quillfeather", 10, PILOT, mode="keyword"),
    "search, found": lambda notebook: notebook.search("ferry", 10, PILOT, mode="keyword"),
    "search by both": lambda notebook: notebook.search("quillfeather ferry", 10, PILOT),
    "list": lambda notebook: notebook.list(limit=10, session=PILOT),
    "search of own notes": lambda notebook: notebook.channels.search("quillfeather", PILOT),
    "recent own notes": lambda notebook: notebook.channels.recent(PILOT),
    "list by tag": lambda notebook: notebook.list(limit=10, session=PILOT, tags=["rope"]),
    "list by author": lambda notebook: notebook.list(limit=10, session=PILOT, created_by="agent:scribe"),
    "search by tag": lambda notebook: notebook.search("ferry", 10, PILOT, mode="keyword", tags=["rope"]),
    "read": lambda notebook: notebook.read("pages/7.md", PILOT),
    "recall": lambda notebook: notebook.stream.recall("quillfeather ferry", PILOT),
    "prompt": lambda notebook: notebook.prompt(PILOT),
    "explain": lambda notebook: notebook.prompts.explain("quillfeather", PILOT),
    "compile_context": lambda notebook: notebook.context.compile("Mend the ferry", session=PILOT),
}


def build(root: Path, *, private: int) -> None:
    Notebook.init(root)
    texts = {
        f"pages/{n}.md": f"---\ntags: [{'pier' if n % 50 else 'rope'}]\n---\n# Pier\n\nThe ferry lies at pier {n}.\n"
        for n in range(200)
    }
    texts["channels/pilot/global/own.md"] = "# Own\n\nferry\n"
    texts |= {
        f"channels/scribe/global/{n}.md": "---\ntags: [rope]\ncreated_by: agent:scribe\n---\nquillfeather ferry\n"
        for n in range(private)
    }
    # Which channels there are is read from folders, for each call asks who is a member: what is in them is not.
    (root / "channels/scribe/global").mkdir(parents=True)
    for path, text in texts.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    with Notebook.open(root) as notebook:
        notebook.sync()
        notebook.admin.embed()


def times(one: Notebook, other: Notebook, call: Callable[[Notebook], object], pairs: int) -> tuple[list[float], ...]:
    """Seconds of each call, in the order of `one` and `other`; which of a pair comes first is left to chance."""
    found: tuple[list[float], ...] = ([], [])
    rng = Random(1)
    for _ in range(pairs):
        for at in rng.sample((0, 1), 2):
            start = time.perf_counter()
            call((one, other)[at])
            found[at].append(time.perf_counter() - start)
    return found


def statistics(one: list[float], other: list[float]) -> tuple[float, float]:
    """`z` and `D`."""
    n = len(one)
    ranked = sorted([(value, 0) for value in one] + [(value, 1) for value in other])
    ranks, below, distance = 0, [0, 0], 0.0
    for rank, (_, which) in enumerate(ranked, start=1):
        ranks += rank if which == 0 else 0
        below[which] += 1
        distance = max(distance, abs(below[0] - below[1]) / n)
    u = ranks - n * (n + 1) / 2
    return (u - n * n / 2) / math.sqrt(n * n * (2 * n + 1) / 12), distance


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    print(f"{pairs:,} pairs; alike where |z| < 2.6 and D < {1.63 * math.sqrt(2 / pairs):.4f}")
    with tempfile.TemporaryDirectory() as folder:
        one, other = Path(folder, "one"), Path(folder, "two")  # names of one length: paths are compared
        build(one, private=100)
        build(other, private=0)
        with Notebook.open(one) as with_notes, Notebook.open(other) as without:
            for name, call in CALLS.items():
                with_times, without_times = times(with_notes, without, call, pairs)
                z, distance = statistics(with_times, without_times)
                medians = (sorted(each)[pairs // 2] * 1000 for each in (with_times, without_times))
                print(
                    f"{name:24} z {z:+7.2f}  D {distance:.4f}  medians {' and '.join(f'{m:.3f}' for m in medians)} ms"
                )


if __name__ == "__main__":
    main()
