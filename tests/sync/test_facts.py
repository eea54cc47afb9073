"""Rows of facts follow what files state: use goes along with a fact that is moved, reworded, archived or comes back."""

from datetime import timedelta

import pytest

from notebook_sync.store.rows import Is
from notebook_sync.sync.facts import reworded
from tests.sync.world import World

NOTES, CORE, ARCHIVE = "facts/notes.md", "facts/core.md", "facts/archive.md"
FERRY, KEY = "The ferry leaves at eight in the morning", "Omar has the key"


def facts(*bullets: str, section: str = "Important Facts") -> str:
    return f"## {section}\n\n" + "".join(f"- {bullet}\n" for bullet in bullets)


def actions(world: World, content: str) -> list[str]:
    return [event["action"] for event in world.facts()[content]["source_history"]]


@pytest.fixture
def notebook(world: World) -> World:
    world.save({NOTES: facts(FERRY, KEY)})
    world.index.facts.update(Is("id", "=", world.facts()[FERRY]["id"]), inc={"access_count": 7})
    return world


def test_a_fact_has_the_columns_of_its_first_place(notebook: World) -> None:
    row = notebook.facts()[FERRY]
    assert (row["section"], row["path"], row["audience"], row["pin"]) == ("Important Facts", NOTES, "", None)
    assert (row["base"], row["decay_rate"], row["source_history"][0]["action"]) == (0.5, 0.01, "added")
    places = notebook.index.fact_places.find(order=("line",))
    assert [(place["id"], place["fact"] == row["id"]) for place in places] == [
        (f"{NOTES}:3", True),
        (f"{NOTES}:4", False),
    ]


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        (NOTES, facts(KEY, FERRY), []),
        (NOTES, facts(KEY) + facts(FERRY, section="Other"), ["moved"]),
        (NOTES, facts(f"{FERRY} <!-- importance: 0.9 -->", KEY), ["pinned"]),
        (CORE, facts(FERRY), ["promoted"]),
        (ARCHIVE, facts(FERRY), ["archived"]),
    ],
)
def test_a_fact_that_is_moved_keeps_its_use(notebook: World, path: str, text: str, expected: list[str]) -> None:
    """Cut from one file and pasted into another, in one look or in two."""
    if path != NOTES:
        notebook.write(NOTES, facts(KEY))
    notebook.save({path: text})
    row = notebook.facts()[FERRY]
    assert (row["access_count"], actions(notebook, FERRY)[1:], row["path"]) == (7, expected, path)
    assert notebook.engine.verify().differences == []


def test_a_fact_that_was_cut_and_saved_before_it_is_pasted(notebook: World) -> None:
    notebook.save({NOTES: facts(KEY)})
    assert FERRY not in notebook.facts()
    notebook.save({CORE: facts(FERRY)})
    assert (notebook.facts()[FERRY]["access_count"], actions(notebook, FERRY)) == (7, ["added", "gone", "promoted"])
    notebook.save({CORE: facts("Another")})
    notebook.save({CORE: facts("Another", FERRY)})
    assert actions(notebook, FERRY)[-2:] == ["gone", "returned"]


def test_a_restored_fact_gains_and_a_pinned_one_does_not(notebook: World) -> None:
    for pin, base in (("", 0.6), (" <!-- importance: low -->", 0.6)):
        notebook.save({ARCHIVE: facts(FERRY), NOTES: facts(KEY)})
        notebook.save({ARCHIVE: facts("nothing"), NOTES: facts(FERRY + pin, KEY)})
        assert (actions(notebook, FERRY)[-1], notebook.facts()[FERRY]["base"]) == ("restored", pytest.approx(base))


@pytest.mark.parametrize("in_between", [False, True])
def test_a_reworded_fact_keeps_its_use(notebook: World, in_between: bool) -> None:
    new = FERRY.replace("eight", "nine")
    if in_between:
        notebook.save({NOTES: facts(KEY)})
    notebook.save({NOTES: facts(new, KEY)})
    row = notebook.facts()[new]
    assert (row["access_count"], actions(notebook, new)[-1]) == (7, "reworded")
    assert row["source_history"][-1]["was"] == FERRY
    assert FERRY not in notebook.facts()


def test_a_new_fact_decays_as_the_settings_say(world: World) -> None:
    world.configure("[memory]\ndecay_rate = 0.5\n")
    world.save({NOTES: facts(KEY)})
    assert world.facts()[KEY]["decay_rate"] == 0.5


def test_another_text_or_section_is_another_fact(notebook: World) -> None:
    notebook.save(
        {NOTES: facts("The toll is ten crowns", KEY) + facts(FERRY.replace("eight", "nine"), section="Other")}
    )
    assert {content: row["access_count"] for content, row in notebook.facts().items()} == dict.fromkeys(
        ("The toll is ten crowns", KEY, FERRY.replace("eight", "nine")), 0
    )


def test_a_fact_in_two_files_is_one_with_the_most_open_audience(notebook: World) -> None:
    notebook.save({CORE: facts(FERRY)})
    row = notebook.facts()[FERRY]
    assert (row["path"], row["audience"], row["access_count"]) == (CORE, "", 7)
    notebook.save({NOTES: facts(KEY)})
    assert notebook.facts()[FERRY]["audience"] == "apart"
    notebook.save({CORE: None})
    assert FERRY not in notebook.facts()


def test_a_withheld_file_hides_no_fact_of_an_open_one(world: World) -> None:
    world.configure('[[prompt.files]]\npath = "facts/z.md"\nsessions = ["owner"]\n')
    world.save({"facts/a.md": facts(FERRY), "facts/z.md": facts(FERRY, KEY)})
    assert {content: row["audience"] for content, row in world.facts().items()} == {FERRY: "", KEY: "apart"}


def test_provenance_is_that_of_the_first_place(notebook: World) -> None:
    notebook.save({"facts/a.md": "---\nprovenance: external\n---\n" + facts(FERRY, "Wire the money")})
    assert {content: row["provenance"] for content, row in notebook.facts().items()} == {
        FERRY: "external",
        "Wire the money": "external",
        KEY: "",
    }
    notebook.save({"facts/a.md": None})
    assert notebook.facts()[FERRY]["provenance"] == ""


def test_the_facts_of_a_renamed_file_and_of_a_conflict_copy(notebook: World) -> None:
    notebook.rename(NOTES, "facts/other.md")
    notebook.save({"facts/other.sync-conflict-20261120-093012-ABCD123.md": facts("The toll is twelve crowns")})
    assert {content: row["path"] for content, row in notebook.facts().items()} == {
        FERRY: "facts/other.md",
        KEY: "facts/other.md",
    }
    assert notebook.facts()[FERRY]["access_count"] == 7


def test_a_rebuild_keeps_use_and_adds_no_event(notebook: World) -> None:
    before = notebook.facts()
    notebook.engine.sync(force=True, allow_empty=True)
    assert {content: {**row, "rev": 0} for content, row in notebook.facts().items()} == {
        content: {**row, "rev": 0} for content, row in before.items()
    }


def test_history_keeps_fifty_events(notebook: World) -> None:
    for number in range(60):
        notebook.write(NOTES, facts(KEY) + facts(FERRY, section=f"S{number % 2}"))
        notebook.engine.look([NOTES])
    assert len(actions(notebook, FERRY)) == 50


def test_rewording_matches_the_best_then_the_nearest_and_gives_up_on_very_many() -> None:
    def row(id: str, content: str, line: int = 0) -> dict[str, object]:
        return {"id": id, "content": content, "path": "facts/a.md", "section": "", "line": line}

    old = [row("a", "Room 101 is free on Monday"), row("b", "Room 102 is free on Monday")]
    new = [row("c", "room  102 is free on Mondays", 5), row("d", "[x] Room 101 is free on Monday", 6)]
    was = reworded(old, new, {"a": 6, "b": 5})
    assert {key: past["id"] for key, past in was.items()} == {"c": "b", "d": "a"}
    many = [row(str(number), f"text {number}") for number in range(60)]
    assert reworded(many, many, {}) == {}


def test_ended_facts_are_compared_for_a_day(notebook: World, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook.save({NOTES: facts(KEY)})
    monkeypatch.setattr("notebook_sync.sync.facts._REMEMBERED", timedelta(hours=-1))
    notebook.save({NOTES: facts(FERRY.replace("eight", "nine"), KEY)})
    assert actions(notebook, FERRY.replace("eight", "nine")) == ["added"]
