"""What a task spec is about, read from the spec alone: what it names, and the words that matter most in it. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from itertools import pairwise

from notebook_sync.files.page import plain, shorten
from notebook_sync.files.parse import parse
from notebook_sync.model import Note
from notebook_sync.search.words import WordAnalyzer
from notebook_sync.sync.project import fold_label
from prompt import visible

# Names that a spec gives, and their characters; words that count, and those of them that may be a label.
_MOST_NAMED, _LONGEST_NAME, _LONGEST_TITLE = 50, 120, 80
_MOST_KEYWORDS, _AS_LABELS = 32, 4
# A word of the title counts as four of the text, one of another heading or of a name as two.
_IN_TITLE, _IN_HEADING, _IN_TEXT = 4.0, 2.0, 1.0
# The path by which a spec is read; it gives the spec a title where it has none.
_PATH, _UNTITLED = "task.md", "task"
_PUNCTUATION = "#*_`~.,;:!?()[]{}<>\"'“”„‘’…–—-/"


@dataclass(frozen=True, slots=True)
class Intent:
    """What a spec says of itself. `content` is what a reader sees below its frontmatter; `related` are paths, ids or
    links of notes; `labels` are the domains, components and tags that it names, folded.

    `keywords` are the weights, 0 to 1, of the search terms that matter most, the greatest first; `words` are the same
    as the spec spells them.
    """

    title: str
    content: str
    labels: frozenset[str]
    related: tuple[str, ...]
    keywords: Mapping[str, float]
    words: tuple[str, ...]

    @property
    def hints(self) -> frozenset[str]:
        """What may be the domain or a tag of a memory that helps: also words of the title, and two with a hyphen."""
        title = _words_of(self.title)
        joined = (f"{one}-{two}" for one, two in pairwise(title))
        return self.labels.union(title, joined, self.words[:_AS_LABELS])


def intent_of(spec: str, analyzer: WordAnalyzer, known_domains: Sequence[str]) -> Intent:
    """The intent of a spec. `known_domains` are those of the settings: a spec that speaks of one is of it."""
    note = parse(_PATH, spec.encode(errors="replace"), timezone=UTC)
    content = visible(note.content, now=None).text.strip()
    title = note.title if note.title != _UNTITLED else content.partition("\n")[0].lstrip("#>*- ")
    title = shorten(plain(title), _LONGEST_TITLE)
    named = (*note.tags, *_listed(note, "tags", "component", "components", "domain", "domains"))
    spoken = f" {' '.join(map(fold_label, (title, *named, *_words_of(content))))} "
    labels = _once((*named, *(domain for domain in known_domains if f" {fold_label(domain)} " in spoken)))
    headings = " ".join(section.heading for section in note.sections)
    counts: defaultdict[str, float] = defaultdict(float)
    spelled: dict[str, str] = {}
    parts = ((title, _IN_TITLE), (headings, _IN_HEADING), (" ".join(labels), _IN_HEADING), (content, _IN_TEXT))
    for text, weight in parts:
        for word in _words_of(text):
            for term in analyzer.content_terms(word):
                counts[term] += weight
                spelled.setdefault(term, word)
    best = sorted(counts, key=lambda term: (-counts[term], term))[:_MOST_KEYWORDS]
    return Intent(
        title,
        content,
        frozenset(map(fold_label, labels)),
        _once((*_listed(note, "related"), *(link.target for link in note.links))),
        {term: (counts[term] / counts[best[0]]) ** 0.5 for term in best},
        tuple(spelled[term] for term in best),
    )


def _once(names: Iterable[str]) -> tuple[str, ...]:
    """The first names, each once and on one line, without those that are too long to be one."""
    on_one_line = (" ".join(name.split()) for name in names)
    return tuple(dict.fromkeys(name for name in on_one_line if 0 < len(name) <= _LONGEST_NAME))[:_MOST_NAMED]


def _listed(note: Note, *keys: str) -> list[str]:
    """What frontmatter lists under these keys, or names in one text, separated by commas."""
    values = (note.extra.get(key) for key in keys)
    lists = (value.split(",") if isinstance(value, str) else value for value in values)
    return [str(each) for entries in lists if isinstance(entries, list) for each in entries]


def _words_of(text: str) -> list[str]:
    return [word for part in text.casefold().split() if (word := part.strip(_PUNCTUATION))]
