"""Facts that fade, prove themselves, or say the same: what becomes of them by command and by the clock."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from notebook_sync import Notebook, Session
from notebook_sync.errors import NotPermitted, UsageError
from notebook_sync.files.fact_text import fact_id
from notebook_sync.services.core import Core
from notebook_sync.services.fact_upkeep import is_vouched_for, pairs_of, proposals_of, tend_facts, word_diff
from notebook_sync.services.upkeep import chores_of, run_chores
from notebook_sync.store.rows import Is
from tests.conftest import Copies
from tests.services.conftest import (
    FILES,
    OWNER,
    PILOT,
    SCRIBE,
    STRANGER,
    assert_raises,
    copied,
    git,
    make_repository,
    sync_files,
    write_files,
)

TOLL, BOAT, LAMP = "The toll is ten crowns", "The spare boat leaks at the bow", "Ines keeps the lamp"
NOTES = f"## Important Facts\n\n- {TOLL}\n- {BOAT}\n- {LAMP} <!-- importance: 0.9 -->\n"
NOW = datetime.now(UTC).replace(microsecond=0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[datetime]:
    now = [NOW]
    monkeypatch.setattr(Core, "now", lambda _: now[0])
    return now


@pytest.fixture
def notebook(copies: Copies, folder: Path, clock: list[datetime]) -> Iterator[Notebook]:
    with copied(copies, folder, FILES | {"facts/notes.md": NOTES}) as opened:
        yield opened


def row(notebook: Notebook, text: str) -> dict[str, Any]:
    return notebook.core.index.facts.one(fact_id(text), heavy=False)


def set_row(notebook: Notebook, text: str, **columns: Any) -> None:
    assert notebook.core.index.facts.update(Is("id", "=", fact_id(text)), set=columns) == 1


def reread(notebook: Notebook, notes: str) -> None:
    sync_files(notebook, {"facts/notes.md": notes})


def texts(rows: Any) -> list[str]:
    return [each.content for each in rows]


# ---- decay


def test_a_faded_fact_moves_to_the_archive_in_one_edit_that_undo_reverts(
    notebook: Notebook, clock: list[datetime]
) -> None:
    set_row(notebook, TOLL, base=1.0)
    clock[0] += timedelta(days=80)
    assert texts(notebook.facts.decay(dry_run=True).archived) == [BOAT]
    assert (notebook.root / "facts/notes.md").read_text() == NOTES
    assert texts(notebook.facts.decay().archived) == [BOAT]
    archive = (notebook.root / "facts/archive.md").read_text()
    assert f"- {BOAT} <!-- archived: " in archive
    assert "; reason: faded; from: facts/notes.md -->" in archive
    assert notebook.facts.decay() == notebook.facts.decay(dry_run=True)
    notebook.notes.undo("facts/notes.md")
    assert (notebook.root / "facts/notes.md").read_text() == NOTES


def test_what_a_person_pinned_and_what_others_wrote_does_not_fade(notebook: Notebook, clock: list[datetime]) -> None:
    sync_files(notebook, {"facts/web.md": "---\nprovenance: external\n---\n- The mole is closed\n"})
    clock[0] += timedelta(days=2_000)
    assert sorted(texts(notebook.facts.decay().archived)) == sorted([TOLL, BOAT])
    assert LAMP in (notebook.root / "facts/notes.md").read_text()
    assert (notebook.root / "facts/web.md").exists()


def test_what_an_editor_has_just_pinned_or_taken_out_is_judged_as_it_is_now(
    notebook: Notebook, clock: list[datetime]
) -> None:
    clock[0] += timedelta(days=80)
    notes = f"## Important Facts\n\n- {BOAT} <!-- importance: 0.4 -->\n"
    write_files(notebook.root, {"facts/notes.md": notes})
    assert notebook.facts.decay().archived == []
    assert (notebook.root / "facts/notes.md").read_text() == notes


def test_one_fact_that_cannot_be_moved_holds_up_no_other(notebook: Notebook, clock: list[datetime]) -> None:
    cap = '[[prompt.files]]\npath = "facts/core.md"\nmax_tokens = 40\n[memory]\npromote = "auto"\n'
    long = "The harbour master keeps " + ", ".join(f"key {number}" for number in range(40))
    write_files(notebook.root, {"notebook.toml": FILES["notebook.toml"] + cap})
    reread(notebook, f"- {long}\n- {TOLL}\n")
    for text in (long, TOLL):
        set_row(notebook, text, base=0.9, access_count=9)
        for session in (OWNER, SCRIBE, PILOT):
            notebook.facts.reinforce(fact_id(text), session)
    done = notebook.facts.decay()
    assert (texts(done.promoted), texts(done.proposed)) == ([TOLL], [long])


def test_a_fact_that_was_brought_back_is_left_alone_for_a_month(notebook: Notebook, clock: list[datetime]) -> None:
    notebook.facts.archive(BOAT)
    notebook.facts.restore(BOAT)
    set_row(notebook, BOAT, base=0.1)
    clock[0] += timedelta(days=20)
    assert BOAT not in texts([*notebook.facts.decay().archived, *notebook.facts.list(fading=5).results])
    clock[0] += timedelta(days=11)
    assert BOAT in texts(notebook.facts.decay().archived)


def test_one_run_archives_ten_facts_at_most_the_least_important_first(
    notebook: Notebook, clock: list[datetime]
) -> None:
    facts = [f"Berth {number} has a ring" for number in range(30)]
    reread(notebook, "".join(f"- {each}\n" for each in facts))
    for number, each in enumerate(facts):
        set_row(notebook, each, base=0.2 + number / 1_000)
    clock[0] += timedelta(days=20)
    assert sorted(texts(notebook.facts.decay().archived)) == sorted(facts[:10])
    assert len(notebook.facts.decay().archived) == 10


def test_by_the_clock_a_fact_is_archived_when_a_second_look_finds_it_faded_too(
    notebook: Notebook, clock: list[datetime]
) -> None:
    make_repository(notebook.root)
    set_row(notebook, TOLL, base=1.0)
    clock[0] += timedelta(days=5_000)  # the machine's clock is wrong for a moment
    tend_facts(notebook.core)
    clock[0] = NOW
    tend_facts(notebook.core)
    tend_facts(notebook.core)
    assert (notebook.root / "facts/notes.md").read_text() == NOTES
    clock[0] += timedelta(days=80)
    tend_facts(notebook.core)
    assert (notebook.root / "facts/notes.md").read_text() == NOTES
    tend_facts(notebook.core)
    assert BOAT in (notebook.root / "facts/archive.md").read_text()
    assert git(notebook.root, "log", "-1", "--format=%an %ae").strip() != ""


def test_an_external_session_changes_nothing(notebook: Notebook) -> None:
    for call in (notebook.facts.decay, notebook.facts.dedupe):
        assert_raises(NotPermitted, call, STRANGER)


def test_what_fades_soon_is_listed_before_it_does(notebook: Notebook, clock: list[datetime]) -> None:
    set_row(notebook, TOLL, base=1.0)
    clock[0] += timedelta(days=40)
    assert texts(notebook.facts.list(fading=1).results) == []
    assert texts(notebook.facts.list(fading=30).results) == [BOAT]


# ---- promotion


def make_proven(notebook: Notebook, *sessions: Any) -> None:
    set_row(notebook, TOLL, base=0.9, access_count=4)
    for session in sessions:
        notebook.facts.reinforce(TOLL, session)


def test_a_proven_fact_is_proposed_in_status_check_and_one_event(notebook: Notebook) -> None:
    make_proven(notebook)
    tend_facts(notebook.core)
    tend_facts(notebook.core)
    events = [each for each in notebook.admin.events().results if each["kind"] == "fact_proposed"]
    assert [(each["fact"], each["path"]) for each in events] == [(fact_id(TOLL), "facts/notes.md")]
    step = f"run: notebook-sync fact promote {fact_id(TOLL)}"
    (line,) = notebook.admin.status().proposals
    assert (line.startswith("facts/notes.md:3: "), step in line) == (True, True)
    (found,) = [each for each in notebook.prompts.check().results if "core.md" in each.message and step in each.message]
    assert (found.place, found.severity) == ("facts/notes.md:3", "info")
    notebook.facts.promote(TOLL)
    assert notebook.admin.status().proposals == []


def test_what_an_agent_proposes_is_in_status_before_any_look_by_the_clock(notebook: Notebook) -> None:
    notebook.facts.promote(BOAT, SCRIBE)
    (line,) = notebook.admin.status().proposals
    assert line.endswith(f"this fact is proposed for facts/core.md; run: notebook-sync fact promote {fact_id(BOAT)}")


def test_a_declined_proposal_is_made_no_more_until_that_is_taken_back(notebook: Notebook) -> None:
    make_proven(notebook)
    tend_facts(notebook.core)
    notebook.facts.promote(BOAT, SCRIBE)
    assert texts(notebook.facts.list(proposed=True).results) == [TOLL, BOAT]
    assert notebook.facts.promote(TOLL, leave=True).action == "left"
    notebook.facts.store.upsert_note(TOLL, metadata={"source": "chat"})
    tend_facts(notebook.core)
    assert texts(notebook.facts.list(proposed=True).results) == [BOAT]
    assert (notebook.facts.decay(dry_run=True).proposed, len(notebook.admin.status().proposals)) == ([], 1)
    assert notebook.facts.promote(TOLL, leave=False).action == "proposed"
    assert texts(notebook.facts.list(proposed=True).results) == [TOLL, BOAT]
    assert notebook.facts.list(SCRIBE, proposed=True).results == []
    assert_raises(NotPermitted, notebook.facts.promote, TOLL, SCRIBE, leave=True)


def test_what_only_agents_vouch_for_is_proposed_and_never_promoted(notebook: Notebook) -> None:
    write_files(notebook.root, {"notebook.toml": FILES["notebook.toml"] + '[memory]\npromote = "auto"\n'})
    make_proven(notebook, SCRIBE, PILOT, Session.task("cook"))
    assert (texts(notebook.facts.decay().proposed), notebook.facts.decay().promoted) == ([TOLL], [])
    notebook.facts.reinforce(TOLL, OWNER)
    assert texts(notebook.facts.decay().promoted) == [TOLL]
    assert f"## System\n\n- {TOLL}\n" in (notebook.root / "facts/core.md").read_text()


def test_reinforcements_count_once_a_day_and_not_those_of_an_older_wording() -> None:
    def event(action: str, actor: str, day: int) -> dict[str, str]:
        return {"action": action, "actor": actor, "at": f"2026-03-{day:02}T08:00:00+00:00"}

    days = [event("reinforced", "owner", day) for day in (1, 2, 3)]
    assert is_vouched_for(days)
    assert not is_vouched_for([days[0]] * 3)
    assert not is_vouched_for([*days, event("reworded", "owner", 4)])
    assert not is_vouched_for([event("reinforced", "agent:scribe", day) for day in (1, 2, 3)])


# ---- duplicates


TWIN = "The toll is 10 crowns"


def test_two_facts_that_say_the_same_become_one_with_the_uses_of_both(
    notebook: Notebook, clock: list[datetime]
) -> None:
    clock[0] += timedelta(days=3)
    reread(notebook, f"{NOTES}- {TWIN}\n")
    set_row(notebook, TOLL, base=0.6, access_count=2, metadata={"who": "odile"})
    set_row(notebook, TWIN, base=0.5, access_count=5, metadata={"who": "ines", "why": "fares"})
    made_at = row(notebook, TOLL)["created_at"]
    (pair,) = notebook.facts.dedupe(dry_run=True).pairs
    assert (pair.keep.content, pair.drop.content, pair.similarity) == (TWIN, TOLL, 1.0)
    assert pair.diff == "The toll is [-ten-]{+10+} crowns"
    assert notebook.facts.dedupe().merged == 1
    kept = row(notebook, TWIN)
    assert (kept["access_count"], round(kept["base"], 4), kept["created_at"]) == (7, 0.65, made_at)
    assert (kept["metadata"], kept["source_history"][-1]["action"]) == ({"who": "ines", "why": "fares"}, "merged")
    archive = (notebook.root / "facts/archive.md").read_text()
    assert f"- {TOLL} <!-- archived: " in archive
    assert f"reason: merged into {fact_id(TWIN)}; " in archive
    assert notebook.facts.dedupe().pairs == []


def test_by_the_clock_duplicates_are_proposed_and_not_merged(notebook: Notebook) -> None:
    notes = f"{NOTES}- {TWIN}\n"
    reread(notebook, notes)
    tend_facts(notebook.core)
    assert (notebook.root / "facts/notes.md").read_text() == notes
    ((path, _, message),) = proposals_of(notebook.core)
    assert (path, "says the same as line" in message) == ("facts/notes.md", True)
    assert [each["kind"] for each in notebook.admin.events().results].count("fact_proposed") == 1


def test_two_facts_that_are_not_the_same_are_not_shown_again_until_that_is_taken_back(notebook: Notebook) -> None:
    reread(notebook, f"{NOTES}- {TWIN}\n")
    tend_facts(notebook.core)
    assert len(notebook.facts.dedupe(not_same=[TOLL, fact_id(TWIN)[:8]]).pairs) == 0
    assert (notebook.facts.dedupe().merged, proposals_of(notebook.core)) == (0, [])
    notebook.core.index.dump(notebook.core.place.state / "dump")
    assert f'"not_same":["{fact_id(TWIN)}"]' in (notebook.core.place.state / "dump/index.jsonl").read_text()
    assert_raises(UsageError, notebook.facts.dedupe, not_same=[TOLL])
    assert_raises(UsageError, notebook.facts.dedupe, forget=True)
    assert len(notebook.facts.dedupe(not_same=[TOLL, TWIN], forget=True).pairs) == 1


def test_two_named_facts_are_merged_and_no_others(notebook: Notebook) -> None:
    reread(notebook, f"{NOTES}- {TWIN}\n- {BOAT}!\n")
    assert len(notebook.facts.dedupe(dry_run=True).pairs) == 2
    assert notebook.facts.dedupe(merge=[TOLL, TWIN]).merged == 1
    (pair,) = notebook.facts.dedupe(dry_run=True).pairs
    assert BOAT in pair.keep.content
    assert notebook.facts.dedupe(merge=[TOLL, LAMP]).merged == 0


def test_facts_in_core_and_pinned_ones_stay_and_words_of_others_are_never_merged(notebook: Notebook) -> None:
    core = FILES["facts/core.md"] + f"- {LAMP}, always\n- The toll is 10 crowns!\n"
    web = "---\nprovenance: external\n---\n- The spare boat leaks at its bow\n"
    sync_files(notebook, {"facts/core.md": core, "facts/web.md": web})
    found = notebook.facts.dedupe()
    assert [(each.keep.path, each.drop.content) for each in found.pairs] == [("facts/core.md", TOLL)]
    assert (found.merged, (notebook.root / "facts/core.md").read_text()) == (1, core)
    assert LAMP in (notebook.root / "facts/notes.md").read_text()


def test_of_three_that_say_the_same_one_stays_and_ten_are_merged_at_once_at_most(notebook: Notebook) -> None:
    lines = [
        f"- Berth {number} has a ring\n- berth {number} has a ring\n- Berth {number} has the ring\n"
        for number in range(8)
    ]
    reread(notebook, "".join(lines))
    assert notebook.facts.dedupe().merged <= 10
    while notebook.facts.dedupe().merged:
        pass
    kept = (notebook.root / "facts/notes.md").read_text().casefold()
    assert [kept.count(f"berth {number} has") for number in range(8)] == [1] * 8


def test_pairs_are_found_among_many_facts_without_comparing_all() -> None:
    many = {str(number): f"Boat {number} belongs to berth {number} of the harbour" for number in range(3_000)}
    assert pairs_of(many | {"twin": "boat 17 belongs to the berth 17 of the harbour"}) == [("17", "twin")]


def test_facts_of_one_template_are_each_compared_with_a_few_others(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = list[str]()
    monkeypatch.setattr("notebook_sync.services.fact_upkeep.says_same", lambda one, _: compared.append(one))
    names = ["".join(letters) for letters in product("BDFGKLMNPR", "aeiou")]
    texts = [f"The crane {one} was painted by the yard of {other} last summer" for one, other in product(names, names)]
    assert pairs_of({str(number): text for number, text in enumerate(texts)}) == []
    assert len(texts) < len(compared) < 50 * len(texts)


def test_a_word_diff_marks_what_each_text_has() -> None:
    assert word_diff("The lamp is lit", "The lamp is lit by Ines") == "The lamp is lit{+ by Ines+}"
    assert word_diff("a b", "a b") == "a b"


# ---- chores


def test_facts_of_a_notebook_that_is_followed_are_tended_by_the_clock(
    notebook: Notebook, clock: list[datetime], monkeypatch: pytest.MonkeyPatch
) -> None:
    reread(notebook, f"{NOTES}- {TWIN}\n")
    start = time.time()
    for hours in (0, 6, 12):  # noted, first look, second look
        clock[0] = NOW + timedelta(days=80, hours=hours)
        monkeypatch.setattr("time.time", lambda hours=hours: start + hours * 3_600)
        run_chores(notebook.core.index, chores_of(notebook.core))
    notes, archive = ((notebook.root / f"facts/{name}.md").read_text() for name in ("notes", "archive"))
    assert (BOAT in notes, BOAT in archive, LAMP in notes) == (False, True, True)


@pytest.mark.parametrize("text", ["- x <!-- importance: 0.9", "# - - -", "- [ ] \\", "-\n\n```\n- a", "- \u202e\x0b a"])
def test_no_text_stops_the_upkeep_and_no_fact_is_lost(notebook: Notebook, clock: list[datetime], text: str) -> None:
    reread(notebook, f"- {TOLL}\n{text}\n")
    before = {each.id for each in notebook.facts.list(scope="all").results}
    clock[0] += timedelta(days=80)
    for _ in range(2):
        tend_facts(notebook.core)
    assert {each.id for each in notebook.facts.list(scope="all").results} == before
    assert TOLL in (notebook.root / "facts/archive.md").read_text()
