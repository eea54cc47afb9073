"""What the program writes into frontmatter: it reads back as it was given, whatever it looks like."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notebook_sync.errors import UsageError
from notebook_sync.files.frontmatter import read_frontmatter
from notebook_sync.files.new_note import note_text

DOUBTFUL = [
    "true",
    "No",
    "NULL",
    "y",
    "~",
    "on",
    "1.5",
    "1e3",
    ".inf",
    "nan",
    "0x1",
    "a ",
    "a: b",
    "x #y",
    "-",
    "=",
    "<<",
]
texts = st.one_of(st.text(max_size=12), st.text(alphabet="aZ09 ./@+-_:#", max_size=10), st.sampled_from(DOUBTFUL))
plain_names = st.text(alphabet="abcxyz_-", min_size=1, max_size=6)
values = st.one_of(
    texts, st.lists(texts, max_size=3), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(-1e12, 1e12)
)


@settings(max_examples=80)
@given(st.dictionaries(st.one_of(plain_names, st.sampled_from(DOUBTFUL)), values, max_size=4))
def test_fields_read_back_as_they_were_given_or_are_refused(fields: dict[str, Any]) -> None:
    try:
        written = note_text(fields, "The ferry leaves at nine.\n")
    except UsageError:
        return
    read = read_frontmatter(written)
    assert read.metadata == fields
    assert read.content == "The ferry leaves at nine.\n"


@pytest.mark.parametrize("text", DOUBTFUL)
def test_a_text_that_looks_like_something_else_stays_a_text(text: str) -> None:
    written = note_text({"title": text, "tags": [text, "gate"]}, "")
    assert read_frontmatter(written).metadata == {"title": text, "tags": [text, "gate"]}


def test_fields_are_lines_a_person_would_write() -> None:
    fields = {
        "id": "gate",
        "title": "Coins at the gate",
        "tags": ["ferry", "coins"],
        "created_at": datetime(2026, 2, 16, 9, 30, tzinfo=UTC),
        "priority": 7,
        "confidence": 0.5,
        "needs_review": True,
        "note": "yes: no",
        "older": {"ts": "one"},
    }
    assert note_text(fields, "").splitlines() == [
        "---",
        "id: gate",
        "title: Coins at the gate",
        "tags: [ferry, coins]",
        "created_at: 2026-02-16T09:30:00.000Z",
        "priority: 7",
        "confidence: 0.5",
        "needs_review: true",
        'note: "yes: no"',
        "older: {ts: one}",
        "---",
    ]
