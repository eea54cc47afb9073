"""What a task spec is about, as its own text tells it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notebook_sync.context.intent import MOST_KEYWORDS, MOST_NAMED, Intent, intent_of, keywords_of
from notebook_sync.context.wording import stem, stems_in, words_in

SPEC = """\
---
domain: harbour
tags: [night, "#ferry"]
components: timetable, gangway
related: [d1, memories/problem/clash.md]
---
# Move the night ferry

## Slots at the pier

The ferries must not clash. See [[tide-table]] and #lamps. The pilot station is told.
"""


def read(spec: str, *domains: str) -> Intent:
    return intent_of(spec, domains, encoding="cl100k_base")


def test_frontmatter_headings_tags_and_links_are_read() -> None:
    intent = read(SPEC)
    assert intent.title == "Move the night ferry"
    assert intent.domains == ("harbour",)
    assert intent.tags == ("night", "ferry", "lamps")
    assert intent.components == ("timetable", "gangway")
    assert intent.related == ("d1", "memories/problem/clash.md", "tide-table")
    assert "domain:" not in intent.content
    assert intent.as_dict()["source"] == "heuristics"


def test_a_domain_of_the_settings_is_the_specs_where_it_speaks_of_it() -> None:
    assert read(SPEC, "Pilot Station", "customs", "Lamps").domains == ("harbour", "Pilot Station", "Lamps")


def test_a_word_of_the_title_weighs_most_and_small_words_nothing() -> None:
    intent = read(SPEC)
    assert intent.words[0] in ("ferry", "night", "move")
    assert intent.keywords[stem("ferry")] == 1.0
    assert intent.keywords[stem("pilot")] < intent.keywords[stem("slots")] < 1.0
    assert not intent.keywords.keys() & {"the", "must", "not", "and", "is"}


def test_weights_of_words_are_the_square_roots_of_how_often_they_count() -> None:
    found = dict(keywords_of({"Ferry": 4.0, "slots": 2.0}, ["ferry", "lamp", "lamp", "lamp", "slot", "the"]))
    # ferry 4 + 1 = 5, slots 2 + 1 = 3, lamp 3
    assert found == {"ferry": 1.0, "lamp": (3 / 5) ** 0.5, "slots": (3 / 5) ** 0.5}


def test_the_rarest_words_are_looked_for_among_all_notes() -> None:
    intent = read("# The new system\n\nWork on the time of people; the gangway, the boatswain and the lighthouse too.")
    assert {"gangway", "boatswain", "lighthouse"} <= set(intent.rare)
    assert len(intent.rare) == 4


def test_a_spec_without_a_heading_is_called_by_its_first_line() -> None:
    assert read("\n\n> Mend the *lamp* at pier two\n\nSoon.").title == "Mend the *lamp* at pier two"
    assert read("---\ntitle: Lamps\n---\ntext").title == "Lamps"


def test_what_a_spec_says_may_be_a_tag_or_a_domain() -> None:
    intent = read(SPEC)
    assert {"harbour", "ferry", "timetable", "night-ferry", "pilot"} <= intent.terms()
    assert {"harbour", "timetable", "ferry"} <= intent.possible_domains()
    assert intent.naming()("Harbour", ())
    assert intent.naming()("", ("LAMPS",))
    assert not intent.naming()("customs", ("pilot",))


def test_forms_of_a_word_are_one_word() -> None:
    assert stem("ferries") == stem("ferry") == "ferr"
    assert stem("lamps") == stem("lamp")
    assert stem("es") == "es"
    assert words_in("Überfahrt, naïve CAFÉ snake_case 潮位表") == [
        "uberfahrt", "naive", "cafe", "snake", "case", "潮", "位", "表",
    ]  # fmt: skip
    assert stems_in("The ferry and two ferries") == {"ferr": 2, "two": 1}


@pytest.mark.parametrize(
    "spec",
    [
        "---\nbroken: [\n---\nFerry",
        "---\ndomain: {a: 1}\ntags: 7\ncomponents: [1, true, null, [x]]\nrelated: 2026-01-01\n---\n# Ferry",
        "ferry\0\ud800 \u202e👩‍👩‍👧",
        "# " + "ferry " * 5_000,
        "tag " * 3 + " ".join(f"#tag{n}" for n in range(500)),
        "[[" * 5_000,
        "...!?",
    ],
)
def test_odd_specs_are_read(spec: str) -> None:
    intent = read(spec)
    assert len(intent.words) == len(intent.keywords) <= MOST_KEYWORDS
    assert all(len(one) <= MOST_NAMED for one in (intent.domains, intent.tags, intent.components, intent.related))
    assert all(0 < weight <= 1 for weight in intent.keywords.values())


@settings(max_examples=25)
@given(st.text(max_size=200))
def test_whatever_stands_in_a_spec_it_has_an_intent(spec: str) -> None:
    intent = read(spec)
    assert intent.as_dict()["keywords"].keys() == set(intent.words)
