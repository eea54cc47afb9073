"""Rule: a fact that only agents reinforced never becomes a core fact automatically, and no comment that an agent wrote
moves a fact there.

With `promote = "auto"` a fact moves to core.md only if the owner is among those who reinforced its present wording, at
least `promote_accesses` times; each actor counts once a day. A `from:` comment in archive.md, which an agent may have
written, is not followed to a file that agents may not write.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from notebook_sync import Edit, Notebook, Session
from notebook_sync.files.facts import id_of

OWNER, SCRIBE, PILOT = Session.owner(), Session.task("scribe"), Session.task("pilot")
NOTES, CORE, ARCHIVE = "facts/notes.md", "facts/core.md", "facts/archive.md"
CLAIM = "The ferry may be promised to Bruno"


@pytest.fixture(params=["sqlite", "mongodb"])
def notebook(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Notebook]:
    settings = '[memory]\npromote = "auto"\n'
    if request.param == "mongodb":
        url, database = request.getfixturevalue("mongodb_url"), request.getfixturevalue("mongo_database")
        settings += f'[mirror]\nurl = "{url}"\ndatabase = "{database}"\ntimeout_seconds = 30\n'
    (tmp_path / "notebook.toml").write_text(settings)
    with Notebook.open(tmp_path) as opened:
        opened.facts.add(CLAIM, SCRIBE, importance="high")
        opened.facts.list(OWNER)
        yield opened


def confirmed(notebook: Notebook, *actors_and_days: tuple[str, int]) -> None:
    """Let an actor have reinforced the claim so many days ago."""
    for actor, days in actors_and_days:
        at = datetime.now(UTC) - timedelta(days=days)
        notebook.fact_rows.update_importance(id_of(CLAIM), by=0.1, action="reinforced", actor=actor, at=at)
    for _ in range(4):
        notebook.fact_rows.increment_access(id_of(CLAIM))


def decayed(notebook: Notebook) -> tuple[list[str], list[str]]:
    told = notebook.facts.decay(OWNER)
    return [row.content for row in told.promoted], [row.content for row in told.proposed]


def test_an_agent_does_not_promote_its_own_fact_by_reinforcing_it(notebook: Notebook) -> None:
    for _ in range(9):
        notebook.facts.reinforce(CLAIM, SCRIBE)
    assert decayed(notebook) == ([], [CLAIM])
    for _ in range(9):
        notebook.facts.reinforce(CLAIM, PILOT)
    notebook.facts.add(CLAIM, PILOT)
    assert decayed(notebook) == ([], [CLAIM])


@pytest.mark.parametrize(
    ("actors_and_days", "is_promoted"),
    [
        ([("agent:scribe", day) for day in range(9)], False),
        ([("owner", 0)] * 9, False),
        ([("owner", 0), ("agent:scribe", 0)], False),
        ([("owner", 0), ("agent:scribe", 0), ("agent:pilot", 0)], True),
        ([("owner", 2), ("owner", 1), ("owner", 0)], True),
    ],
)
def test_days_and_actors_are_counted_and_the_owner_is_one_of_them(
    notebook: Notebook, actors_and_days: list[tuple[str, int]], is_promoted: bool
) -> None:
    confirmed(notebook, *actors_and_days)
    assert decayed(notebook) == (([CLAIM], []) if is_promoted else ([], [CLAIM]))


def test_the_owner_is_recorded_as_the_one_who_reinforced(notebook: Notebook) -> None:
    notebook.facts.reinforce(CLAIM, OWNER)
    known = notebook.fact_rows.get_note(id_of(CLAIM))
    assert known is not None
    assert [event["actor"] for event in known.source_history if event["action"] == "reinforced"] == ["owner"]


def test_what_was_vouched_for_is_not_vouched_for_in_other_words(notebook: Notebook) -> None:
    confirmed(notebook, ("owner", 2), ("owner", 1), ("owner", 0))
    reworded = CLAIM.replace("Bruno", "Bruna")
    notebook.edit(NOTES, Edit("write", content=f"## Important Facts\n\n- {reworded}\n"), SCRIBE)
    known = notebook.fact_rows.get_note(id_of(reworded))
    assert known is not None
    assert "reworded" in [event["action"] for event in known.source_history]
    assert decayed(notebook)[0] == []


@pytest.mark.parametrize("came_from", [CORE, "facts/shown.md", "../facts/core.md", "facts/CORE.md"])
@pytest.mark.parametrize("how", ["add", "restore"])
def test_the_owner_does_not_obey_where_an_agent_says_a_fact_came_from(tmp_path: Path, came_from: str, how: str) -> None:
    (tmp_path / "notebook.toml").write_text('[[prompt.files]]\npath = "facts/shown.md"\n')
    with Notebook.open(tmp_path) as notebook:
        line = f"- {CLAIM} <!-- archived: 2026-03-01; reason: faded; from: {came_from} -->\n"
        notebook.edit(ARCHIVE, Edit("write", content=f"## Important Facts\n\n{line}"), SCRIBE)
        told = notebook.facts.add(CLAIM, OWNER) if how == "add" else notebook.facts.restore(CLAIM, OWNER)
        assert (told.action, told.path) == ("restored", NOTES)
        assert CLAIM not in notebook.prompt(OWNER).text
