"""Facts that say the same: which pairs are found, and what becomes of them, their usage and their text."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from notebook_sync import Notebook, Session
from notebook_sync.errors import BackendDown, NotPermitted
from notebook_sync.files.facts import id_of
from notebook_sync.notes.facts.dedupe import pairs_of
from notebook_sync.operations.facts import Deduped

OWNER, TASK = Session.owner(), Session.task("scribe")
NOTES, CORE, ARCHIVE = "facts/notes.md", "facts/core.md", "facts/archive.md"
SHORT, LONG = "Bosun sleeps in the office", "Bosun the dog sleeps in the office"
NOTHING = Deduped([], 0)
FERRY = "The ferry leaves at nine"
TEXT = f"## Animals\n\n- {SHORT}\n- {LONG}\n\n## Times\n\n- {FERRY}\n"


def found(*texts: str) -> list[tuple[str, str, str]]:
    return [(texts[pair.one], texts[pair.other], pair.how) for pair in pairs_of(texts, [None] * len(texts), 0.85)]


def test_pairs_share_most_of_their_words_or_one_is_part_of_the_other() -> None:
    lamp = "The lamp by the harbour stairs is lit with whale oil"
    assert found("The lamp burns whale oil", "The harbour lamp burns whale oil", "Ropes hang in the shed") == [
        ("The lamp burns whale oil", "The harbour lamp burns whale oil", "words")
    ]
    assert found("the lamp is lit", lamp) == [("the lamp is lit", lamp, "contained")]
    assert found("lamp", lamp) == []
    assert found("", "", "…") == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (FERRY, "The ferry leaves at ten"),
        (FERRY, "The ferry does not leave at nine"),
        ("Odile reports to Ines", "Ines reports to Odile"),
        ("The north quay is closed", "The south quay is closed"),
        ("The key hangs in the shed", "The key hangs in Odile's shed"),
        ("Odile lives in Fira", "Odile's boss lives in Fira"),
        ("Odile lives in Fira", "Odile\u2019s boss lives in Fira"),
        ("Odile lives in Fira", "The boss of Odile lives in Fira"),
        ("The ferry leaves the pier at nine", "The ferry crew leaves the pier at nine"),
    ],
)
def test_what_says_something_else_is_no_pair_however_many_words_it_shares(one: str, other: str) -> None:
    assert found(one, other) == []


def test_pairs_by_meaning_have_vectors_that_are_near_and_of_one_size() -> None:
    import numpy as np

    texts = [
        "The clock is wound",
        "The timepiece is set",
        "The bell is rung",
        "The boat is rowed",
        "The rope is coiled",
    ]
    vectors = [np.array(one, np.float32) for one in ([2.0, 0.1], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [1.0])]
    (pair,) = pairs_of(texts, vectors, 0.85)
    assert (pair.one, pair.other, pair.how) == (0, 1, "meaning")
    assert pair.similarity == pytest.approx(0.9988, abs=1e-3)


def test_thousands_of_facts_are_compared_without_comparing_each_with_each() -> None:
    texts = [f"Berth {number} of the {_word(number)} quay belongs to {_word(number * 7)}" for number in range(3_000)]
    texts += ["the warden keeps bees by the tower", "the harbour warden keeps bees by that tower"]
    (pair,) = pairs_of(texts, [None] * len(texts), 0.85)
    assert (pair.one, pair.other) == (3_000, 3_001)


def _word(number: int) -> str:
    return "".join(chr(ord("a") + int(digit)) for digit in str(number % 997))


def test_a_dry_look_tells_what_would_stay_and_changes_nothing(harbour: Notebook) -> None:
    told = harbour.facts.dedupe(TASK, dry_run=True)
    (pair,) = told.pairs
    assert (pair.keep.content, pair.drop.content, told.merged) == (LONG, SHORT, 0)
    assert 0.6 <= pair.similarity <= 1
    assert (harbour.root / NOTES).read_text() == TEXT


def test_a_merge_keeps_usage_and_puts_the_other_text_into_the_archive(harbour: Notebook) -> None:
    harbour.facts.list(OWNER)
    early = datetime.now(UTC).replace(microsecond=0) - timedelta(days=10)
    for content, created, accesses in ((SHORT, early, 2), (LONG, early + timedelta(days=5), 3)):
        known = harbour.fact_rows.get_note(id_of(content))
        assert known is not None
        used = replace(known, created_at=created, last_accessed=created, access_count=accesses, importance=0.5)
        harbour.fact_rows.upsert_note(used)
    assert harbour.facts.dedupe(TASK).merged == 1
    kept = harbour.fact_rows.get_note(id_of(LONG))
    assert kept is not None
    assert (kept.access_count, kept.created_at, round(kept.importance, 2)) == (5, early, 0.55)
    assert any(event["action"] == "merged" and event["was"] == id_of(SHORT) for event in kept.source_history)
    assert (harbour.root / NOTES).read_text() == TEXT.replace(f"- {SHORT}\n", "")
    archived = (harbour.root / ARCHIVE).read_text()
    assert archived.startswith(f"## Animals\n\n- {SHORT} <!-- archived: ")
    assert f"reason: merged into {id_of(LONG)}; from: {NOTES} -->" in archived
    assert harbour.facts.dedupe(TASK) == NOTHING
    assert harbour.facts.restore(SHORT, OWNER).path == NOTES


def test_the_more_important_text_stays_and_core_always_does(harbour: Notebook) -> None:
    harbour.facts.reinforce(SHORT, TASK)
    assert harbour.facts.dedupe(TASK, dry_run=True).pairs[0].keep.content == SHORT
    (harbour.root / CORE).write_text(f"- {LONG}\n")
    (harbour.root / NOTES).write_text(f"- {SHORT}\n")
    assert harbour.facts.dedupe(OWNER).merged == 1
    assert (harbour.root / CORE).read_text() == f"- {LONG}\n"


def test_of_several_alike_one_stays_and_none_is_dropped_for_one_that_goes(harbour: Notebook) -> None:
    alike = [SHORT, LONG, "Bosun, the dog, sleeps in that office", "Bosun the ship's dog sleeps in the office"]
    (harbour.root / NOTES).write_text("".join(f"- {one}\n" for one in alike))
    merged = 0
    while done := harbour.facts.dedupe(OWNER).merged:
        merged += done
    assert merged == 3
    assert len(harbour.facts.list(OWNER).results) == 1
    assert len(harbour.facts.list(OWNER, scope="archive").results) == 3


def test_what_an_agent_may_not_change_is_not_proposed_to_it(harbour: Notebook) -> None:
    (harbour.root / CORE).write_text(f"- {SHORT}\n- {LONG}\n")
    (harbour.root / NOTES).write_text("")
    assert harbour.facts.dedupe(TASK) == NOTHING
    with pytest.raises(NotPermitted):
        harbour.facts.dedupe(Session.external())


def test_no_word_of_what_stays_is_told_to_who_reads_the_archive(harbour: Notebook) -> None:
    (harbour.root / CORE).write_text("- The safe's key hangs below the kitchen mat\n")
    (harbour.root / NOTES).write_text("- The safe's key hangs below the mat\n")
    assert harbour.facts.dedupe(TASK).merged == 1
    assert "kitchen" not in harbour.read(ARCHIVE, Session.external())["content"]


def test_what_a_person_pinned_is_never_dropped(harbour: Notebook) -> None:
    (harbour.root / NOTES).write_text(f"- {SHORT} <!-- importance: 0.3 -->\n- {LONG}\n")
    (pair,) = harbour.facts.dedupe(TASK, dry_run=True).pairs
    assert pair.keep.content == SHORT
    both = f"- {SHORT} <!-- importance: 0.3 -->\n- {LONG} <!-- importance: 0.4 -->\n"
    (harbour.root / NOTES).write_text(both)
    assert harbour.facts.dedupe(OWNER) == NOTHING
    assert (harbour.root / NOTES).read_text() == both


def test_somebody_elses_words_are_merged_with_nothing(harbour: Notebook) -> None:
    (harbour.root / NOTES).write_text(f"- {SHORT}\n")
    (harbour.root / "facts/web.md").write_text(f"---\nprovenance: external\n---\n- {LONG}\n")
    assert harbour.facts.dedupe(OWNER) == NOTHING


def test_a_copy_that_an_agent_may_not_change_keeps_no_other_pair_from_being_merged(harbour: Notebook) -> None:
    (harbour.root / "notebook.toml").write_text('[[prompt.files]]\npath = "facts/team.md"\n')
    red, slow = "The red boat leaves the pier daily", "The red boat leaves the pier daily and slowly"
    (harbour.root / NOTES).write_text(f"{TEXT}- {red}\n- {slow}\n")
    (harbour.root / "facts/team.md").write_text(f"- {red}\n")
    with Notebook.open(harbour.root) as opened:
        assert opened.facts.dedupe(TASK).merged == 1
    assert contents_of(harbour, ARCHIVE) == [SHORT]
    assert {red, slow} <= set(contents_of(harbour, NOTES))


def test_a_store_that_falls_silent_behind_a_merge_is_told(harbour: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object, **__: object) -> None:
        raise BackendDown("the mirror", "no answer")

    harbour.facts.list(OWNER)
    monkeypatch.setattr(harbour.fact_rows, "merge_notes", away)
    told = harbour.facts.dedupe(TASK)
    assert (told.merged, contents_of(harbour, ARCHIVE)) == (1, [SHORT])
    (warning,) = told.warnings
    assert "no answer" in warning


def contents_of(notebook: Notebook, path: str) -> list[str]:
    return [fact.content for fact in notebook.facts.list(OWNER, scope="all").results if fact.path == path]
