"""How well notes are found, on texts that nobody here wrote. Nothing is tuned on the half that is measured, which is
always the same for the same texts.

    python -m tests.benchmarks.retrieval FOLDER_OR_FILE [--queries N] [--second-stage onnx:DIR]

A `node_modules` folder: READMEs of installed npm packages are the notes, what the packages say of themselves in one
sentence the queries, and the right answer to each is its own package. "Reworded" leaves out the sentences of a README
that have most of the query's words.

A file of conversations, as the LoCoMo data set has them: each turn is a note, each conversation a notebook, and the
right answers to a question are the turns that it names as evidence. "Answered" are questions with one of these turns
among the first.

With a second stage, `hybrid` alone is measured, and of the READMEs only the reworded ones: its vectors take minutes.
"""

import argparse
import json
import math
import re
import tempfile
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from random import Random
from typing import NamedTuple, get_args

from notebook_sync.files.parse import parse
from notebook_sync.model import UNSETTLED
from notebook_sync.search.embed import Embedder, StaticEmbedder, second_stage_of
from notebook_sync.search.query import Mode, Searcher
from notebook_sync.search.words import WordAnalyzer
from notebook_sync.settings import SearchTable, Settings
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


def searcher_of(
    notes: Mapping[str, str], index: Index, analyzer: WordAnalyzer, second: Embedder | None = None
) -> Searcher:
    """Of these notes by path, indexed as sync does it, with vectors."""
    settings, now = Settings(), datetime(2026, 1, 1, tzinfo=UTC)
    rows = []
    for path, text in notes.items():
        note = parse(path, text.encode(errors="replace"), timezone=settings.timezone)
        rows.append(project(note, UNSETTLED, now, settings.prompt, analyzer).document | {"id": path})
    index.documents.put(rows)
    searcher = Searcher(index, analyzer, StaticEmbedder(), second)
    for meaning in filter(None, (searcher.meaning, searcher.second)):
        while meaning.embed(500).behind:
            pass
    return searcher


@contextmanager
def notebook_of(notes: Mapping[str, str], second: Embedder | None = None) -> Iterator[Searcher]:
    """A search over these notes, in an index that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="notebook-retrieval-") as state:
        analyzer = WordAnalyzer()
        index = Index(Path(state) / "index.db", analyzer)
        yield searcher_of(notes, index, analyzer, second)
        index.close()


def ranks(searcher: Searcher, query: str, right: Collection[str], mode: Mode) -> list[int]:
    """At which places the right notes are found, from 1 on; those that are not found are left out."""
    hits = [hit.id for hit in searcher.search(query, mode=mode, limit=100).hits]
    return [place for place, id in enumerate(hits, 1) if id in right]


# ---- READMEs


def measure_readmes(folder: Path, queries: int | None, second: Embedder | None) -> None:
    packages = packages_in(folder)
    asked = held_out(packages)[:queries]
    print("| texts | by | queries | recall@1 | recall@10 | MRR |\n|---|---|--:|--:|--:|--:|")
    for texts, text_of in {"as they are": lambda package: package.readme, "reworded": reworded}.items():
        if second and text_of is not reworded:
            continue
        with notebook_of({f"pages/{package.name}.md": text_of(package) for package in packages}, second) as searcher:
            for mode in _modes(second):
                found = [ranks(searcher, each.description, [f"pages/{each.name}.md"], mode) for each in asked]
                first = [places[0] if places else math.inf for places in found]
                figures = [sum(place <= most for place in first) / len(first) for most in (1, 10)]
                figures.append(sum(1 / place for place in first) / len(first))
                print(f"| {texts} | {mode} | {len(asked)} | {_row(figures)} |", flush=True)


# ---- conversations


class Talk(NamedTuple):
    """`turns` are notes by path, `questions` each with the paths of the turns that answer it."""

    turns: dict[str, str]
    questions: list[tuple[str, set[str]]]


def talks_in(file: Path) -> list[Talk]:
    """The conversations of a file."""
    found = []
    for number, talk in enumerate(json.loads(file.read_text(encoding="utf-8"))):
        said = talk["conversation"]
        title = f"{said['speaker_a']} and {said['speaker_b']}"
        turns = {
            f"pages/{number}/{turn['dia_id'].lstrip('D').replace(':', '-')}.md": (
                f"# {title}\n\n{turn['speaker']}: {turn['text']}\n"
            )
            for turns in said.values()
            if isinstance(turns, list)
            for turn in turns
        }
        asked = [
            (each["question"], {f"pages/{number}/{at.lstrip('D').replace(':', '-')}.md" for at in each["evidence"]})
            for each in talk["qa"]
        ]
        found.append(Talk(turns, [(question, right) for question, right in asked if right and right <= turns.keys()]))
    return found


def measure_conversations(file: Path, queries: int | None, second: Embedder | None) -> None:
    talks = talks_in(file)
    Random(_SPLIT).shuffle(talks)
    print("| by | questions | answered in 5 | in 10 | turns in 5 | in 10 |\n|---|--:|--:|--:|--:|--:|")
    found = defaultdict(list)
    for talk in talks[len(talks) // 2 :]:
        with notebook_of(talk.turns, second) as searcher:
            for mode, (question, right) in product(_modes(second), talk.questions[:queries]):
                places = ranks(searcher, question, right, mode)
                among = [sum(place <= most for place in places) for most in (5, 10)]
                found[mode].append([*(float(count > 0) for count in among), *(count / len(right) for count in among)])
    for mode, shares in found.items():
        figures = [sum(share) / len(shares) for share in zip(*shares, strict=True)]
        print(f"| {mode} | {len(shares)} | {_row(figures)} |")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.retrieval")
    parser.add_argument("corpus", type=Path, help="a node_modules folder, or a file of conversations")
    parser.add_argument("--queries", type=int, help="so many queries, of each conversation")
    parser.add_argument("--second-stage", default="", help="as search.second_stage in notebook.toml")
    asked = parser.parse_args()
    second = second_stage_of(SearchTable(second_stage=asked.second_stage), Path.cwd())
    measure = measure_readmes if asked.corpus.is_dir() else measure_conversations
    measure(asked.corpus, asked.queries, second)


def _modes(second: Embedder | None) -> tuple[Mode, ...]:
    return ("hybrid",) if second else get_args(Mode)


def _row(figures: Sequence[float]) -> str:
    return " | ".join(f"{figure:.3f}" for figure in figures)


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


if __name__ == "__main__":
    main()
