"""What a task spec is about, read from the spec alone: what it names, and the words that it leans on. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

from notebook_sync.context.wording import is_small, stem, words_in
from notebook_sync.files.excerpt import shorten
from notebook_sync.files.fields import plain_tags
from notebook_sync.files.note import Note
from notebook_sync.files.parse import parse
from prompt import encoding_named

# Of what a spec names, so much is looked for.
MOST_NAMED = 20
MOST_KEYWORDS = 32
LONGEST_NAME = 120
# So many words are looked for among all notes: the rarest of so many that the spec leans on.
_MOST_RARE, _AMONG = 4, 16
# A word of the title counts as if it stood there so often, one of another heading or a tag half as often.
_OF_TITLE, _OF_HEADING = 4.0, 2.0
_LONGEST_TITLE = 80
# How much more a rare word is worth.
_STEEPNESS = 4
# As what a spec is read, which gives it a name where it has none.
_PATH = "task.md"


@dataclass(frozen=True, slots=True)
class Intent:
    """What a spec is about. `title` is "" where it has none; `content` is the spec without its frontmatter.

    domains, components, tags, related: what it names; `related` are ids, paths or links of notes. keywords: by stem,
    how much the spec leans on a word, 0 to 1, the most first; `words` are the same as the spec spells them; `rare` are
    those to look for among all notes. source: who read it.
    """

    title: str
    content: str
    domains: tuple[str, ...] = ()
    components: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    related: tuple[str, ...] = ()
    keywords: Mapping[str, float] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    rare: tuple[str, ...] = ()
    source: Literal["heuristics", "model"] = "heuristics"

    def as_dict(self) -> dict[str, Any]:
        """The shape that `explain` tells."""
        return {
            "title": self.title,
            "domains": list(self.domains),
            "components": list(self.components),
            "tags": list(self.tags),
            "related": list(self.related),
            "keywords": {word: round(self.keywords[stem(word)], 4) for word in self.words},
            "source": self.source,
        }

    def terms(self) -> frozenset[str]:
        """What a memory may have as a tag: what the spec names, the words that it leans on most, and two of its title
        that stand together, joined as tags are."""
        joined = (f"{one}-{two}" for one, two in pairwise(words_in(self.title)))
        return frozenset([*self._named(), *self.words[:_AMONG], *joined])

    def possible_domains(self) -> frozenset[str]:
        """What a memory may have as its domain: what the spec names, and the words of its title."""
        return frozenset([*self._named(), *words_in(self.title)])

    def naming(self) -> Callable[[str, Sequence[str]], bool]:
        """What tells of a domain and tags whether it names the domain, or one of the tags."""
        named = self._named()
        return lambda domain, tags: not named.isdisjoint(name.casefold() for name in (domain, *tags))

    def _named(self) -> frozenset[str]:
        return frozenset(name.casefold() for name in (*self.domains, *self.components, *self.tags))


def intent_of(spec: str, known_domains: Sequence[str], *, encoding: str) -> Intent:
    """The intent by heuristics: headings, frontmatter, tags, links, and the words that stand there most.

    `known_domains` are those of the settings: one that the spec speaks of is its domain.
    """
    note = parse(_PATH, spec.encode(errors="replace"), encoding=encoding)
    title = _title_of(note)
    tags = plain_tags([*note.tags, *_named(note, "tags")])[:MOST_NAMED]
    components = _named(note, "components", "component")
    domains = _named(note, "domain", "domains")
    headings = [section.heading for section in note.sections]
    body = words_in(note.content)
    spoken = " ".join(["", *body, *words_in(" ".join([title, *tags, *components])), ""])
    domains = once([*domains, *(name for name in known_domains if _is_spoken_of(name, spoken))])
    keywords = keywords_of(
        {title: _OF_TITLE, " ".join(headings): _OF_HEADING, " ".join([*tags, *components, *domains]): _OF_HEADING}, body
    )
    weights: dict[str, float] = {}
    for word, weight in keywords:
        weights.setdefault(stem(word), weight)
    related = once([*_named(note, "related"), *note.links])
    words = tuple(word for word, _ in keywords)
    rare = rarest(words, weights, encoding)
    return Intent(title, note.content, domains, components, tags, related, weights, words, rare)


def keywords_of(leaning: Mapping[str, float], body: Sequence[str]) -> list[tuple[str, float]]:
    """The words that a text leans on, each once by its stem, the most first; of even ones, the first in the alphabet.

    `leaning` are texts whose words count as often as is said; a word that stands there again adds less and less, as the
    square root does.
    """
    counts: Counter[str] = Counter()
    spelled: dict[str, str] = {}
    for text, often in [*leaning.items(), (" ".join(body), 1.0)]:
        for word in words_in(text):
            if is_small(word):
                continue
            spelled.setdefault(stem(word), word)
            counts[stem(word)] += often  # type: ignore[assignment]
    most = max(counts.values(), default=1.0)
    ordered = sorted(counts, key=lambda one: (-counts[one], one))[:MOST_KEYWORDS]
    return [(spelled[one], (counts[one] / most) ** 0.5) for one in ordered]


def rarest(words: Sequence[str], keywords: Mapping[str, float], encoding: str) -> tuple[str, ...]:
    """The words to look for among all notes, where a frequent one finds too many and tells too little.

    How rare a word is in a language, its place in the vocabulary tells, which is in the order of frequency: the
    logarithm of its token; a word of several is rare.
    """
    vocabulary = encoding_named(encoding)
    highest = math.log(vocabulary.max_token_value)

    def worth(word: str) -> float:
        tokens = vocabulary.encode_ordinary(f" {word}")
        rarity = math.log1p(tokens[0]) / highest if len(tokens) == 1 else 1.0
        return keywords[stem(word)] * rarity**_STEEPNESS

    return tuple(sorted(words[:_AMONG], key=lambda word: (-worth(word), word))[:_MOST_RARE])


def _title_of(note: Note) -> str:
    """The spec's own title, else what its text begins with."""
    if note.title != _PATH.removesuffix(".md"):
        return shorten(note.title, _LONGEST_TITLE)
    first = next((line for line in note.content.splitlines() if line.strip()), "")
    return shorten(" ".join(first.lstrip("#>*- ").split()), _LONGEST_TITLE)


def _named(note: Note, *keys: str) -> tuple[str, ...]:
    """What frontmatter lists below these keys, or names with commas between."""
    found: list[str] = []
    for key in keys:
        value = note.extra.get(key)
        if isinstance(value, str):
            found += value.split(",")
        elif isinstance(value, list):
            found += [str(one) for one in value if isinstance(one, str | int | float) and not isinstance(one, bool)]
    return once(found)


def once(names: Iterable[str]) -> tuple[str, ...]:
    """As many of these names as are looked for, each once, without those that are too long to be one."""
    plain = (" ".join(name.split()) for name in names)
    return tuple(dict.fromkeys(name for name in plain if 0 < len(name) <= LONGEST_NAME))[:MOST_NAMED]


def _is_spoken_of(domain: str, spoken: str) -> bool:
    words = " ".join(words_in(domain))
    return bool(words) and f" {words} " in spoken
