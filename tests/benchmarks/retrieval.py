"""How well notes are found: READMEs of installed npm packages are the notes, what the packages say of themselves the
queries, and the right answer to each is its own package. Nobody here wrote any of them.

    python -m tests.benchmarks.retrieval node_modules

The texts are searched as they are, and without the sentences that say nearly what the query says. What the product
leaves to be chosen by trying was chosen on one half of the queries, which is always the same for the same packages.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

MODES = {"words": "keyword", "meaning": "semantic", "both": "hybrid"}
TEXTS = ("as they are", "reworded")
HALVES = ("chosen on", "held out")
_FOUND = 100
_SHORTEST_README, _SHORTEST_QUERY = 200, 4
_NEARLY_ALL = 0.6
_SPLIT = 7
_WORD = re.compile(r"\w+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")


@dataclass(frozen=True, slots=True)
class Package:
    """`description` is "" where it is too short for a query."""

    name: str
    readme: str
    description: str

    @property
    def reworded(self) -> str:
        """The README without the sentences that have most of the description's words."""
        asked = _words(self.description)
        if not asked:
            return self.readme
        lines = (_SENTENCE.split(line) for line in self.readme.split("\n"))
        return "\n".join(" ".join(one for one in line if not _nearly_all(asked, _words(one))) for line in lines)


@dataclass(frozen=True, slots=True)
class Score:
    """How often the right note was the first, among the first ten, and the mean of 1 / its rank."""

    texts: str
    half: str
    by: str
    queries: int
    recall_1: float
    recall_10: float
    mrr: float


def packages_in(folder: Path) -> list[Package]:
    """Every package below a node_modules folder that has a README of its own."""
    found: dict[str, Package] = {}
    for manifest in sorted([*folder.glob("*/package.json"), *folder.glob("@*/*/package.json")]):
        readmes = [path for path in manifest.parent.iterdir() if path.name.lower() in ("readme.md", "readme.markdown")]
        if not readmes:
            continue
        text = min(readmes).read_text(encoding="utf-8", errors="replace")
        try:
            description = str(json.loads(manifest.read_text(encoding="utf-8")).get("description") or "").strip()
        except (ValueError, AttributeError):
            continue
        if len(text) >= _SHORTEST_README:
            query = description if len(description.split()) >= _SHORTEST_QUERY else ""
            found.setdefault(text, Package(manifest.parent.relative_to(folder).as_posix(), text, query))
    return list(found.values())


def scores(packages: Sequence[Package]) -> Iterator[Score]:
    """Of each kind of texts, each half of the queries, and each mode."""
    asked = {one.name: one.description for one in packages if one.description}
    order = sorted(asked)
    Random(_SPLIT).shuffle(order)
    halves = (order[: len(order) // 2], order[len(order) // 2 :])
    for texts in TEXTS:
        ranks = _ranks({one.name: one.readme if texts == TEXTS[0] else one.reworded for one in packages}, asked)
        for half, names in zip(HALVES, halves, strict=True):
            for by, of_mode in ranks.items():
                yield _score(texts, half, by, [of_mode[name] for name in names])


def table(found: Sequence[Score]) -> str:
    """As Markdown."""
    lines = ["| texts | queries | by | recall@1 | recall@10 | MRR |", "|---|---|---|--:|--:|--:|"]
    for one in found:
        figures = " | ".join(f"{figure:.3f}" for figure in (one.recall_1, one.recall_10, one.mrr))
        lines.append(f"| {one.texts} | {one.queries} {one.half} | {one.by} | {figures} |")
    return "\n".join(lines)


def _ranks(texts: Mapping[str, str], asked: Mapping[str, str]) -> dict[str, dict[str, int]]:
    """By mode and right note, at which place the query for it found it; 0 for not at all."""
    from notebook_sync import Notebook

    with tempfile.TemporaryDirectory(prefix="notebook-retrieval-") as folder:
        pages = Path(folder) / "pages"
        pages.mkdir()
        (Path(folder) / "notebook.toml").touch()
        places = {name: f"pages/{number:06}" for number, name in enumerate(texts)}
        for name, text in texts.items():
            (Path(folder) / f"{places[name]}.md").write_text(text, encoding="utf-8", errors="replace")
        notebook = Notebook.open(folder)
        try:
            notebook.sync()
            if behind := notebook.admin.embed().behind:
                raise RuntimeError(f"{behind} notes have no vectors")
            return {
                by: {
                    name: _rank(notebook.search(query, _FOUND, mode=mode), places[name])
                    for name, query in asked.items()
                }
                for by, mode in MODES.items()
            }
        finally:
            notebook.close()


def _rank(rows: Sequence[Mapping[str, object]], note_id: str) -> int:
    return next((place for place, row in enumerate(rows, start=1) if row["id"] == note_id), 0)


def _score(texts: str, half: str, by: str, ranks: Sequence[int]) -> Score:
    def mean(amounts: Iterator[float]) -> float:
        return sum(amounts) / max(len(ranks), 1)

    found = [rank for rank in ranks if rank]
    return Score(
        texts,
        half,
        by,
        len(ranks),
        mean(1.0 for rank in found if rank == 1),
        mean(1.0 for rank in found if rank <= 10),
        mean(1 / rank for rank in found),
    )


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


def _nearly_all(asked: set[str], said: set[str]) -> bool:
    return len(asked & said) / len(asked) >= _NEARLY_ALL


if __name__ == "__main__":
    print(table(list(scores(packages_in(Path(sys.argv[1]))))))
