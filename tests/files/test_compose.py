"""What the program writes reads back as it was given, whatever it looks like."""

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import frontmatter
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notebook_sync.errors import UsageError
from notebook_sync.files.compose import new_id, note_text, slug
from notebook_sync.files.frontmatter import read_frontmatter, typed

DOUBTFUL = [
    "true", "No", "NULL", "y", "~", "on", "1.5", "1e3", ".inf", "nan", "0x1", "a ", "a: b", "x #y", "-", "=", "<<",
    "2026-01-01", "12e4", "01234", "", "'", '"', "\\", "a\nb", "\x85\u2028\x7f", "é", "😀", "{{x}}", "[a]", "*a", "&a",
]  # fmt: skip
texts = st.one_of(
    st.text(max_size=12), st.text(alphabet="aZ09 ./@+-_:#", max_size=10), st.sampled_from(DOUBTFUL)
).filter(lambda text: "\0" not in text)
leaves = st.one_of(
    texts, st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(-1e12, 1e12).map(lambda x: x + 0.0), st.dates()
)
values = st.recursive(
    leaves,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)
names = st.one_of(st.text(alphabet="abcxyz_-", min_size=1, max_size=6), st.sampled_from(DOUBTFUL))


def read(raw: bytes) -> dict[str, Any]:
    return dict(typed(read_frontmatter(raw.decode()).values, UTC))


@settings(max_examples=150)
@given(st.dictionaries(names, values, min_size=1, max_size=4))
def test_fields_read_back_as_they_were_given_or_are_refused(fields: dict[str, Any]) -> None:
    try:
        raw = note_text(fields, "The ferry leaves at nine.\n")
    except UsageError:
        return
    assert read(raw) == fields
    assert raw.endswith(b"---\nThe ferry leaves at nine.\n")


@pytest.mark.parametrize("text", [text for text in DOUBTFUL if text])
def test_a_text_that_looks_like_something_else_stays_a_text_for_every_reader(text: str) -> None:
    fields = {"note": text, "deep": [text, {"a": text}]}
    raw = note_text(fields, "body")
    assert read(raw) == frontmatter.loads(raw.decode()).metadata == fields


def test_fields_are_lines_a_person_would_write() -> None:
    fields = {
        "id": "gate",
        "title": "Coins at the gate",
        "tags": ["ferry", "coins"],
        "created_at": datetime(2026, 2, 16, 10, 30, tzinfo=timezone(timedelta(hours=1))),
        "day": date(2026, 2, 16),
        "priority": 7,
        "confidence": 0.5,
        "needs_review": True,
        "summary": None,
        "note": "yes: no",
        "older": {"ts": "one"},
        "relations": [{"type": "similar", "to": "buoy"}],
    }
    assert note_text(fields, "", collection="memories").decode().splitlines() == [
        "---",
        "id: gate",
        "title: Coins at the gate",
        "tags: [ferry, coins]",
        "created_at: 2026-02-16T09:30:00.000Z",
        "day: 2026-02-16",
        "priority: 7",
        "confidence: 0.5",
        "needs_review: true",
        'note: "yes: no"',
        "older: {ts: one}",
        "relations: [{type: similar, to: buoy}]",
        "---",
    ]


deep: Any = "x"
for _ in range(40):
    deep = [deep]


@pytest.mark.parametrize(
    ("fields", "body", "reason"),
    [
        ({"a": object()}, "", "'a' cannot be written"),
        ({"a": float("nan")}, "", "'a' cannot be written"),
        ({"a": 2**63}, "", "read back"),
        ({"a": {1: "x"}}, "", "read back"),
        ({"a": deep}, "", "deeper than 32"),
        ({"a": "x" * 70_000}, "", "larger than 64 KiB"),
        ({"a": "\ud800"}, "", "cannot be written"),
        ({"a": "b"}, "half \ud800", "line 4 holds half a character"),
        ({"id": "x" * 600}, "", "line 2: id: must have 1 to 512"),
        ({"created_at": "soon"}, "", "created_at: must be a date"),
        ({"title": "Plan"}, "---\nstatus: draft\n---\ntext", "opens frontmatter of its own.*give status"),
        ({"title": "Plan"}, "---\ntitle: Plan: two\n---\ntext", "opens frontmatter of its own"),
    ],
)
def test_what_would_be_lost_or_doubled_is_refused(fields: dict[str, Any], body: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        note_text(fields, body)


def test_without_fields_the_text_stays_text() -> None:
    assert note_text({"title": None}, "body") == b"body"
    assert note_text({}, "---\na: 1\n---\nbody") == b"---\n---\n---\na: 1\n---\nbody"


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Coins at the Gate!", "coins-at-the-gate"),
        ("Straße №5 – ＦＵＬＬ", "strasse-no5-full"),
        ("潮汐表", "潮汐表"),
        ("ไทย", "ไทย"),
        ("…", "note"),
        ("CON", "note"),
        ("a\u200bb", "a-b"),
        ("word " * 40, "-".join(["word"] * 16)),
        ("x" * 200, "x" * 80),
        ("é" * 100, "é" * 40),
        ("../../etc/passwd", "etc-passwd"),
    ],
)
def test_a_slug_is_a_name_that_every_system_takes(title: str, name: str) -> None:
    assert slug(title) == name


def test_ids_are_text_and_differ() -> None:
    ids = {new_id() for _ in range(500)}
    assert len(ids) == 500
    assert all(len(each) == 12 and each[0].isalpha() and not set("01ilo") & set(each) for each in ids)
