"""What a task spec is about, read from the spec alone: what it names, and the words that matter most in it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from itertools import pairwise

from notebook_sync.files.page import plain, shorten
from notebook_sync.files.parse import parse
from notebook_sync.model import Note
from notebook_sync.search.words import WordAnalyzer
from prompt import visible

# Names that a spec gives, of each sort, and their characters; words that count.
MOST_NAMED, LONGEST_NAME, MOST_KEYWORDS = 20, 120, 32
LONGEST_TITLE = 80
# A word of the title counts as four of the text, one of another heading or of a name as two.
_IN_TITLE, _IN_HEADING, _IN_TEXT = 4.0, 2.0, 1.0
# The words of the text that may be a memory's tag.
_AS_TAGS = 4
# The path by which a spec is read; it gives the spec a title where it has none.
_PATH, _UNTITLED = "task.md", "task"
_PUNCTUATION = "#*_`~.,;:!?()[]{}<>\"'“”„‘’…–—-/"


@dataclass(frozen=True, slots=True)
class Intent:
    """`content` is what a reader sees of the spec below its frontmatter. `related` are paths, ids or links of notes.

    `keywords` are the weights, 0 to 1, of the search terms that matter most, the greatest first; `words` are the same
    as the spec spells them.
    """

    title: str
    content: str
    domains: tuple[str, ...]
    components: tuple[str, ...]
    tags: tuple[str, ...]
    related: tuple[str, ...]
    keywords: Mapping[str, float]
    words: tuple[str, ...]

    @property
    def labels(self) -> frozenset[str]:
        """The domains, components and tags that it names, folded."""
        return frozenset(map(fold, (*self.domains, *self.components, *self.tags)))

    @property
    def possible_domains(self) -> frozenset[str]:
        """What may be the domain of a memory that helps, folded: its labels, and the words of its title."""
        return self.labels.union(_words_of(self.title))

    @property
    def possible_tags(self) -> frozenset[str]:
        """What may be its tag: a domain, a word that matters, two words of the title with a hyphen."""
        joined = (f"{one}-{two}" for one, two in pairwise(_words_of(self.title)))
        return self.possible_domains.union(self.words[:_AS_TAGS], joined)


def intent_of(spec: str, analyzer: WordAnalyzer, known_domains: Sequence[str]) -> Intent:
    """The intent of a spec. `known_domains` are those of the settings: one that the spec speaks of is its domain."""
    note = parse(_PATH, spec.encode(errors="replace"), timezone=UTC)
    content = visible(note.content, now=None).text.strip()
    title = _title_of(note, content)
    tags, components = once((*note.tags, *_listed(note, "tags"))), _listed(note, "components", "component")
    spoken = f" {' '.join(map(fold, (title, *tags, *components, *_words_of(content))))} "
    known = (domain for domain in known_domains if f" {fold(domain)} " in spoken)
    domains = once((*_listed(note, "domain", "domains"), *known))
    counts: Counter[str] = Counter()
    spelled: dict[str, str] = {}
    headings = " ".join(section.heading for section in note.sections)
    names = " ".join((*tags, *components, *domains))
    for text, weight in ((title, _IN_TITLE), (headings, _IN_HEADING), (names, _IN_HEADING), (content, _IN_TEXT)):
        for word in _words_of(text):
            for term in analyzer.content_terms(word):
                counts[term] += weight  # type: ignore[assignment]
                spelled.setdefault(term, word)
    best = sorted(counts, key=lambda term: (-counts[term], term))[:MOST_KEYWORDS]
    return Intent(
        title,
        content,
        domains,
        components,
        tags,
        once((*_listed(note, "related"), *(link.target for link in note.links))),
        {term: (counts[term] / counts[best[0]]) ** 0.5 for term in best},
        tuple(spelled[term] for term in best),
    )


def fold(name: str) -> str:
    """A domain or a tag as it is compared."""
    return " ".join(name.split()).casefold()


def once(names: Iterable[str]) -> tuple[str, ...]:
    """The first names, each once and on one line, without those that are too long to be one."""
    plain_names = (" ".join(name.split()) for name in names)
    return tuple(dict.fromkeys(name for name in plain_names if 0 < len(name) <= LONGEST_NAME))[:MOST_NAMED]


def _title_of(note: Note, content: str) -> str:
    """The spec's own title, else the first line of its text."""
    title = note.title if note.title != _UNTITLED else content.partition("\n")[0].lstrip("#>*- ")
    return shorten(plain(title), LONGEST_TITLE)


def _listed(note: Note, *keys: str) -> tuple[str, ...]:
    """What frontmatter lists under these keys, or names in one text, separated by commas."""
    values = (note.extra.get(key) for key in keys)
    lists = (value.split(",") if isinstance(value, str) else value for value in values)
    return once(str(each) for entries in lists if isinstance(entries, list) for each in entries)


def _words_of(text: str) -> list[str]:
    return [word for part in text.casefold().split() if (word := part.strip(_PUNCTUATION))]
