"""How well notes are found: READMEs of installed npm packages are the notes, what the packages say of themselves in one
sentence the queries, and the right answer to each is its own package. Nobody here wrote any of them.

    python -m tests.benchmarks.retrieval node_modules [QUERIES]

"Reworded" leaves out the sentences of a README that have most of the query's words. Half of the queries are held out:
what is tuned is tuned on the other half, which is always the same for the same packages.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import NamedTuple, get_args

from notebook_sync.files.parse import parse
from notebook_sync.model import UNSETTLED
from notebook_sync.search.embed import StaticEmbedder
from notebook_sync.search.query import Mode, Searcher
from notebook_sync.search.words import WordAnalyzer
from notebook_sync.settings import Settings
from notebook_sync.store.index import Index
from notebook_sync.sync.project import project

_SHORTEST_README, _SHORTEST_QUERY = 200, 4
_NEARLY_ALL = 0.6
_SPLIT = 7
_SENTENCE = re.compile(r"(?<=[.!?])\s+")


class Package(NamedTuple):
    """`description` is "" if it is too short for a query."""

    name: str
    readme: str
    description: str


def packages_in(folder: Path) -> list[Package]:
    """Every package below a node_modules folder that has a README of its own."""
    found: dict[str, Package] = {}
    for manifest in sorted([*folder.glob("*/package.json"), *folder.glob("@*/*/package.json")]):
        described = json.loads(manifest.read_text(encoding="utf-8")).get("description")
        query = described if isinstance(described, str) and len(described.split()) >= _SHORTEST_QUERY else ""
        for path in sorted(manifest.parent.glob("[Rr][Ee][Aa][Dd][Mm][Ee].m*"))[:1]:
            text = path.read_text(encoding="utf-8", errors="replace")
            if len(text) >= _SHORTEST_README:
                found.setdefault(text, Package(manifest.parent.relative_to(folder).as_posix(), text, query))
    return list(found.values())


def held_out(packages: Sequence[Package]) -> list[Package]:
    """Those of the half of the queries that nothing was tuned on."""
    asked = sorted(package for package in packages if package.description)
    Random(_SPLIT).shuffle(asked)
    return asked[len(asked) // 2 :]


def reworded(package: Package) -> str:
    """The README without the sentences that have most of the description's words."""
    asked = _words(package.description)
    lines = (_SENTENCE.split(line) for line in package.readme.split("\n"))
    return "\n".join(
        " ".join(each for each in line if not asked or len(asked & _words(each)) < _NEARLY_ALL * len(asked))
        for line in lines
    )


def searcher_of(readmes: Mapping[str, str], index: Index, analyzer: WordAnalyzer) -> Searcher:
    """Of these notes, indexed as sync does it, with vectors."""
    settings, now = Settings(), datetime(2026, 1, 1, tzinfo=UTC)
    for name, text in readmes.items():
        note = parse(f"pages/{name}.md", text.encode(errors="replace"), timezone=settings.timezone)
        index.documents.put([{**project(note, UNSETTLED, now, settings.prompt, analyzer).document, "id": name}])
    searcher = Searcher(index, analyzer, StaticEmbedder())
    while searcher.meaning and searcher.meaning.queue.embed(500).behind:
        pass
    return searcher


def figures(searcher: Searcher, asked: Sequence[Package], mode: Mode) -> Iterator[float]:
    """How often the right note is first, how often among the first ten, and the mean of 1 / its rank."""
    ranks = []
    for package in asked:
        hits = [hit.id for hit in searcher.search(package.description, mode=mode, limit=100).hits]
        ranks += [hits.index(package.name) + 1] if package.name in hits else []
    for points in (lambda rank: rank == 1, lambda rank: rank <= 10, lambda rank: 1 / rank):
        yield sum(map(points, ranks)) / len(asked)


def main(folder: str, queries: str = "1000000") -> None:
    packages = packages_in(Path(folder))
    asked = held_out(packages)[: int(queries)]
    print("| texts | by | queries | recall@1 | recall@10 | MRR |\n|---|---|--:|--:|--:|--:|")
    for texts, text_of in {"as they are": lambda package: package.readme, "reworded": reworded}.items():
        with tempfile.TemporaryDirectory(prefix="notebook-retrieval-") as state:
            analyzer = WordAnalyzer()
            index = Index(Path(state) / "index.db", analyzer)
            searcher = searcher_of({package.name: text_of(package) for package in packages}, index, analyzer)
            for mode in get_args(Mode):
                found = " | ".join(f"{figure:.3f}" for figure in figures(searcher, asked, mode))
                print(f"| {texts} | {mode} | {len(asked)} | {found} |", flush=True)
            index.close()


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


if __name__ == "__main__":
    main(*sys.argv[1:])
