"""Notebooks to measure with: on one version of Python, a seed gives the same notes, however many are written."""

import random
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import accumulate
from pathlib import Path
from pydoc_data.topics import topics

SEED = 20260218
NOTES_IN_A_FOLDER = 100
VOCABULARY = 6000
WORDS_TAKEN = 600
_NESTED_LIST = """\
- the watch of pier {0}
  - from dusk to midnight
    1. trim the lamp
    2. write down the wind
       - in knots, not in words
  - [ ] hand over the log of night {0}

"""
_CODE = """\
```sh
harbour light --pier {0} --until dawn
harbour log --night {0} > night-{0}.txt
```

"""
_TABLE = """\
| boat | leaves | pier |
|------|-------:|------|
| *Marguerite* | 06:40 | {0} |
| `second` | 17:30 | {0} |

"""
KINDS = ("decision", "problem", "pattern", "insight")
STATUSES = ("draft", "in_progress", "complete", "archived")

NOTEBOOK = """\
[notebook]
name = "benchmark"

[search]
embeddings = "{0}"
"""
RUNTIME = {
    "external-communications.md": """\
<!-- - **Name** (identity): action [until YYYY-MM-DD] -->
# External communications

## Permanent Rules

- **Ann** (ann@example.org): always respond within the day
- **Newsletters** (news@example.org): never respond
- **Board** (+1 555 0100): draft only

## Temporary Instructions

- **Bob** (bob@example.org): observe only [until 2099-02-25]

## Channel-Specific

### support

- Quote the ticket's number.
""",
    "reminders.md": """\
<!-- - [ ] Task [due: YYYY-MM-DD HH:MM] -->
# Reminders

## Today

- [ ] Renew the certificate [due: 2099-03-01 09:00]
- [x] Answer Ann

## This Week

- [ ] Review the plan for the spring

## Recurring

- Every Monday: Weekly status

## Waiting For

- Parts from the workshop [expected: 2099-02-28]
""",
    "standing-orders.md": """\
# Standing orders

## Communication Style

Short sentences. The answer first, its reason second.

## Boundaries

- Nothing is bought without asking.

## Preferences

- Metric units, ISO dates.
""",
}


def write_corpus(root: Path, count: int, embeddings: str = "off") -> int:
    """Write a notebook of `count` notes of about 2.7 KB each; returns their bytes, runtime files included."""
    texts = {"runtime/" + name: text for name, text in RUNTIME.items()}
    size = 0
    root.mkdir(parents=True, exist_ok=True)
    (root / "notebook.toml").write_text(NOTEBOOK.format(embeddings))
    for path, text in (*texts.items(), *_notes(count)):
        place = root / path
        if not place.parent.is_dir():
            place.parent.mkdir(parents=True)
        size += place.write_bytes(text.encode())
    return size


def write_memories(root: Path, count: int) -> int:
    """Write a notebook of `count` memories, searched by words and meaning; returns how many there are."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "notebook.toml").write_text(NOTEBOOK.format("wordllama"))
    (root / "memories").mkdir()
    for number, (_, text) in enumerate(_notes(count)):
        kind, other = KINDS[number % len(KINDS)], f"memories/{number * 7 % count:06}"
        fields = f"kind: {kind}\ndomain: area-{number % 12}\nrelations: [{{type: expands, to: {other}}}]\n"
        (root / f"memories/{number:06}.md").write_text(text.replace("---\n", f"---\n{fields}", 1))
    return count


def specs(count: int) -> list[str]:
    """Tasks of about 150 words."""
    words, weights = vocabulary()
    rng = random.Random(f"specs {SEED}")
    taken = (rng.choices(words, cum_weights=weights, k=150) for _ in range(count))
    return [f"# {' '.join(each[:5])}\n\n{' '.join(each[5:])}\n" for each in taken]


def standing_orders(size: int, *, nested: bool = False) -> bytes:
    """A runtime file of about `size` bytes: sections of a paragraph and bullets; nested lists, code and tables too."""
    section = (
        "## Evening {0}\n\nWhen the *last* ferry is in, the lamp of pier {0} is lit and the log is closed.\n\n"
        "- **Odile** has the key of store {0}\n- coal for {0} nights, from the yard behind the chandler's\n"
        "- [the tide table](tides-{0}.md) hangs at the door\n\n"
    )
    section += _NESTED_LIST + _CODE + _TABLE if nested else ""
    count = size // len(section.format(1000))
    return "".join(section.format(number) for number in range(count)).encode()


def note_paths(count: int) -> list[str]:
    """The paths of the notes that `write_corpus` writes, in its order."""
    return [_path(number) for number in range(count)]


def queries(count: int) -> list[str]:
    """Searches of one to three words, from rare words to frequent ones."""
    words, _ = vocabulary()
    rng = random.Random(f"queries {SEED}")
    return [" ".join(rng.sample(words[40:], rng.choice((1, 1, 2, 2, 3)))) for _ in range(count)]


def _notes(count: int) -> Iterator[tuple[str, str]]:
    words, weights = vocabulary()
    for number in range(count):
        rng = random.Random(f"{SEED} {number}")
        yield _path(number), _note(number, rng, rng.choices(words, cum_weights=weights, k=WORDS_TAKEN))


def _path(number: int) -> str:
    folder = number // NOTES_IN_A_FOLDER
    return f"pages/area-{folder // 20:02}/topic-{folder % 20:02}/note-{number:06}.md"


def _note(number: int, rng: random.Random, words: list[str]) -> str:
    taken = iter(words)

    def text(count: int) -> str:
        return " ".join(next(taken) for _ in range(count))

    def prose(sentences: int) -> str:
        return " ".join(f"{text(9).capitalize()}." for _ in range(sentences))

    def link() -> str:
        other = rng.randrange(max(1, number))
        return f"[[{_path(other)[:-3]}]]"

    neighbour = rng.randint(number - number % NOTES_IN_A_FOLDER, number)
    title = text(4).capitalize()
    day = f"2026-{1 + number % 12:02}-{1 + number % 28:02}"
    tags = ", ".join(sorted({next(taken) for _ in range(3)}))
    parts = [
        f"---\ntitle: {title} {number}\nstatus: {STATUSES[number % 4]}\ntags: [{tags}]\n"
        f"created_at: {day}T10:30:00Z\nproject: project-{number % 40}\nreviewed: {str(number % 3 == 0).lower()}\n---\n",
        f"# {title} {number}\n\n{prose(6)} See {link()}.\n",
        f"## {text(3).capitalize()}\n\n{prose(11)}\n",
        f"## {text(2).capitalize()}\n\n" + "".join(f"- {text(7)}\n" for _ in range(6)),
        f"## {text(3).capitalize()}\n\n{prose(6)}\n\n"
        f"```python\n# {text(5)}\ndef {next(taken)}({next(taken)}: int) -> int:\n"
        f"    return {number} # not a heading\n```\n",
        f"## {text(2).capitalize()}\n\n" + "".join(f"{step}. {text(8)}, as in {link()}\n" for step in (1, 2, 3)),
        f"## {text(3).capitalize()}\n\n> {text(10)}\n\n{prose(9)} [Another](note-{neighbour:06}.md)\n",
    ]
    return "\n".join(parts)


@cache
def vocabulary() -> tuple[list[str], list[int]]:
    """The words of Python's own manual, most frequent first, with running counts: real words, as often as people use
    them, because tokens and indexes cost what words cost. Another Python may bring another manual."""
    text = " ".join(topics.values()).lower()
    counted = Counter(re.findall(r"\b[a-z]{1,16}\b", text))
    ordered = sorted(counted, key=lambda word: (-counted[word], word))[:VOCABULARY]
    return ordered, list(accumulate(counted[word] for word in ordered))
