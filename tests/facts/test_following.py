"""Rows of facts stay in step with files, whatever a person, several processes and a crash do."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from notebook_sync import Notebook
from notebook_sync.errors import BackendDown, TextRefused, UnreadableFile
from notebook_sync.files.edits import Edit
from notebook_sync.files.facts import ARCHIVE, CORE, Bullet, facts_in, id_of
from notebook_sync.mirror.facts import Fact, FactRows
from notebook_sync.mirror.facts_mongo import MongoFacts
from notebook_sync.mirror.facts_sqlite import SqliteFacts
from notebook_sync.sessions import OWNER
from notebook_sync.sync.facts import FactSync, embed_facts
from notebook_sync.sync.watch import Batch, Event, Ready, Recovered, Trouble
from tests.facts.hashing import Hashing
from tests.waiting import eventually

NOTES = "facts/notes.md"
FERRY, BERTH, PIER = "Odile runs the ferry on Sundays in winter", "Ines keeps the berths", "The old pier is closed"
T0 = datetime(2026, 3, 1, 9, tzinfo=UTC)


class World:
    """A notebook with facts, its rows, and a clock."""

    def __init__(self, root: Path, rows: FactRows) -> None:
        self.root = root
        self.write_text("pages/plan.md", "What else there is.\n")
        self.notebook = Notebook.open(root)
        self.rows = rows
        self.now = T0
        self.sync = self.following(rows)

    def following(self, rows: FactRows) -> FactSync:
        return FactSync(self.notebook.vault, lambda: self.notebook.mirror, lambda: rows, lambda: self.now)

    def write(self, path: str, *contents: str, section: str = "Key Topics") -> None:
        text = f"# Facts\n\n## {section}\n\n" + "".join(f"- {content}\n" for content in contents)
        self.write_text(path, text)

    def write_text(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(exist_ok=True)
        (self.root / path).write_text(text, encoding="utf-8")

    def follow(self) -> dict[str, int]:
        return {str(action): count for action, count in self.sync.follow().counts.items()}

    def known(self) -> list[str]:
        return [fact.content for fact in self.rows.all("all")]

    def fact(self, content: str) -> Fact:
        found = self.rows.get_note(id_of(content))
        assert found is not None, content
        return found

    def on_disk(self) -> set[str]:
        files = (self.root / "facts").glob("*.md") if (self.root / "facts").exists() else ()
        return {fact.content for file in files for fact in facts_in(f"facts/{file.name}", file.read_text("utf-8"))}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path, SqliteFacts(tmp_path / ".notebook" / "mirror.db"))
    yield world
    world.rows.close()
    world.notebook.close()


# Edits by hand.


def test_usage_follows_a_bullet_wherever_it_is_moved(world: World) -> None:
    world.write(NOTES, FERRY, BERTH)
    world.follow()
    world.rows.increment_access(id_of(FERRY), at=T0)
    for path in (CORE, ARCHIVE, "facts/people.md", NOTES):
        for other in (NOTES, CORE, ARCHIVE, "facts/people.md"):
            (world.root / other).unlink(missing_ok=True)
        world.write(path, FERRY)
        world.notebook.sync()
        world.follow()
        assert (world.fact(FERRY).path, world.fact(FERRY).access_count) == (path, 1)
    assert [event["action"] for event in world.fact(FERRY).source_history] == [
        *("added", "promoted", "archived", "restored", "moved")
    ]


def test_usage_follows_one_small_rewording_after_the_other(world: World) -> None:
    world.write(NOTES, FERRY)
    world.follow()
    world.rows.increment_access(id_of(FERRY), at=T0)
    wordings = [FERRY, FERRY + "s", FERRY.replace("on Sundays", "on all Sundays") + "s", FERRY + " and"]
    for wording in wordings[1:]:
        world.write(NOTES, BERTH, wording)
        world.follow()
    assert world.fact(wordings[-1]).access_count == 1
    assert [e["was"] for e in world.fact(wordings[-1]).source_history if e["action"] == "reworded"] == [
        id_of(wording) for wording in wordings[:-1]
    ]
    assert world.known() == [BERTH, wordings[-1]]


def test_usage_follows_a_rewording_that_comes_in_two_saves(world: World) -> None:
    world.write(NOTES, FERRY, BERTH)
    world.follow()
    world.rows.increment_access(id_of(FERRY), at=T0)
    world.write(NOTES, BERTH)
    assert world.follow() == {"gone": 1}
    world.now = T0 + timedelta(hours=1)
    world.write(NOTES, BERTH, f"{FERRY}!")
    assert world.follow() == {"reworded": 1}
    assert world.fact(f"{FERRY}!").access_count == 1
    assert world.rows.get_note(id_of(FERRY)) is None
    world.write(NOTES, BERTH)
    world.follow()
    world.now += timedelta(days=2)
    world.write(NOTES, BERTH, FERRY)
    assert world.follow() == {"added": 1}


def test_another_fact_in_its_place_begins_anew(world: World) -> None:
    world.write(NOTES, FERRY)
    world.follow()
    world.rows.increment_access(id_of(FERRY))
    world.write(NOTES, BERTH)
    assert world.sync.out_of_step() == [NOTES]
    assert world.follow() == {"added": 1, "gone": 1}
    assert world.fact(BERTH).access_count == 0


def test_a_fact_that_is_gone_comes_back_with_its_usage_for_a_year(world: World) -> None:
    world.write(NOTES, FERRY, BERTH)
    world.follow()
    world.rows.increment_access(id_of(FERRY), id_of(BERTH), at=T0)
    world.write(NOTES, PIER)
    world.follow()
    world.now = T0 + timedelta(days=364)
    world.write(NOTES, PIER, FERRY)
    assert world.follow() == {"returned": 1}
    assert world.fact(FERRY).access_count == 1
    world.now = T0 + timedelta(days=366)
    world.write(NOTES, FERRY)
    world.follow()
    world.write(NOTES, FERRY, BERTH)
    assert world.follow() == {"added": 1}
    assert world.fact(BERTH).access_count == 0


def test_a_file_that_is_away_or_empty_for_a_moment_takes_no_fact_with_it(world: World) -> None:
    world.write(NOTES, FERRY)
    world.notebook.sync()
    world.follow()
    world.write_text(NOTES, "")
    assert world.follow() == {}
    (world.root / NOTES).unlink()
    assert world.follow() == {}
    assert world.known() == [FERRY]
    world.notebook.sync()
    assert world.known() == []
    assert world.rows.sources() == {}


def test_of_a_file_that_cannot_be_read_the_last_good_text_is_known(world: World) -> None:
    world.write(NOTES, FERRY)
    world.write(CORE, BERTH)
    world.follow()
    (world.root / NOTES).write_bytes(b"- half a \xff character\n")
    world.write(CORE, BERTH, PIER)
    followed = world.sync.follow()
    assert (dict(followed.counts), list(followed.failed)) == ({"added": 1}, [NOTES])
    assert sorted(world.known()) == sorted([FERRY, BERTH, PIER])


def test_what_was_never_text_is_known_as_far_as_it_can_be_read(world: World) -> None:
    (world.root / "facts").mkdir()
    (world.root / NOTES).write_bytes(b"- half a \xff character\n")
    assert world.follow() == {"added": 1}
    assert world.known() == ["half a \ufffd character"]


def test_facts_in_folders_are_facts_and_other_notes_are_none(world: World) -> None:
    (world.root / "facts" / "people").mkdir(parents=True)
    world.write("facts/people/ines.md", BERTH)
    world.write("pages/plan.md", FERRY)
    assert world.follow() == {"added": 1}
    assert world.known() == [BERTH]


def test_a_lost_database_begins_anew_and_invents_no_usage(world: World) -> None:
    world.write(NOTES, FERRY)
    world.write(ARCHIVE, f"{PIER} <!-- archived: 2026-01-05; reason: faded -->")
    world.follow()
    world.rows.increment_access(id_of(FERRY))
    for file in (world.root / ".notebook").iterdir():
        file.unlink()
    world.now = T0 + timedelta(days=3)
    assert world.follow() == {"added": 2}
    ferry, pier = world.fact(FERRY), world.fact(PIER)
    assert (ferry.access_count, ferry.last_accessed, ferry.created_at) == (0, None, world.now)
    assert pier.created_at == datetime(2026, 1, 5, tzinfo=UTC)


# What brings rows in step.


def test_a_sync_follows_facts(world: World) -> None:
    world.write(NOTES, FERRY)
    world.notebook.sync()
    assert world.known() == [FERRY]
    world.rows.increment_access(id_of(FERRY), at=T0)
    world.write(NOTES, FERRY + "s")
    world.notebook.sync()
    assert world.fact(FERRY + "s").access_count == 1
    (world.root / NOTES).unlink()
    world.notebook.sync()
    assert world.known() == []


def test_an_edit_by_a_tool_follows_facts(world: World) -> None:
    world.write(NOTES, FERRY)
    world.notebook.sync()
    world.notebook.edit(NOTES, Edit("append_to_section", section="Key Topics", content=f"- {BERTH}"), OWNER)
    eventually(lambda: world.known() == [FERRY, BERTH], "the new fact is known")


def test_a_watch_follows_facts_with_each_batch(world: World) -> None:
    world.write(NOTES, FERRY)
    watch = world.notebook.watch()
    for event in watch.events():
        if isinstance(event, Ready):
            assert world.known() == [FERRY]
            world.write(NOTES, FERRY + "s")
        elif isinstance(event, Batch) and NOTES in event.report.paths and event.report.updated:
            assert world.known() == [FERRY + "s"]
            watch.stop()


def test_a_file_whose_facts_cannot_be_read_keeps_no_other_from_being_followed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of_some(path: str, text: str) -> list[Bullet]:
        if path == CORE:
            raise RecursionError("too deep")
        return facts_in(path, text)

    monkeypatch.setattr("notebook_sync.sync.facts.facts_in", of_some)
    world.write(CORE, PIER)
    world.write(NOTES, FERRY)
    report = world.notebook.sync()
    assert (world.known(), [each.path for each in report.failed]) == ([FERRY], [CORE])
    assert "too deep" in report.failed[0].error
    monkeypatch.undo()
    assert not world.notebook.sync().failed
    assert world.known() == [PIER, FERRY]


def test_a_sync_whose_facts_cannot_be_written_says_so_and_has_mirrored_the_files(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SqliteFacts, "apply", away)
    world.write(NOTES, FERRY)
    report = world.notebook.sync()
    assert (report.added, report.failed) == (2, [])
    assert "it is away" in str(report.facts_trouble)
    assert world.notebook.read(NOTES, OWNER)["path"] == NOTES
    monkeypatch.undo()
    assert world.notebook.sync().facts_trouble is None
    assert world.known() == [FERRY]


def test_a_watch_tells_once_that_facts_cannot_be_written_and_follows_them_when_they_can(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SqliteFacts, "apply", away)
    world.write(NOTES, FERRY)
    watch = world.notebook.watch()
    told: list[Event] = []
    for event in watch.events():
        told += [event] if isinstance(event, Trouble | Recovered) else []
        if isinstance(event, Ready):
            world.write_text("pages/new.md", "New.\n")
        elif isinstance(event, Batch) and "pages/new.md" in event.report.paths:
            monkeypatch.undo()
        elif isinstance(event, Recovered):
            assert world.known() == [FERRY]
            watch.stop()
    assert [type(event) for event in told] == [Trouble, Recovered]


@pytest.mark.parametrize("is_stuck", [True, False])
def test_facts_that_cannot_fade_keep_no_save_from_being_mirrored(
    world: World, monkeypatch: pytest.MonkeyPatch, is_stuck: bool
) -> None:
    begun, over = threading.Event(), threading.Event()

    def fade(notebook: Notebook) -> float:
        begun.set()
        if is_stuck:
            over.wait()
            return 600.0
        raise RuntimeError("a defect")

    monkeypatch.setattr(Notebook, "do_chores", fade)
    watch = world.notebook.watch()
    mirrored = False
    for event in watch.events():
        if isinstance(event, Ready):
            world.write_text("pages/new.md", "New.\n")
        elif isinstance(event, Batch) and "pages/new.md" in event.report.paths:
            assert begun.wait(30)
            mirrored = True
            over.set()
            watch.stop()
    assert mirrored


def test_a_rebuild_makes_rows_anew_and_keeps_usage(world: World) -> None:
    world.write(NOTES, FERRY, BERTH)
    world.notebook.sync()
    world.rows.increment_access(id_of(FERRY), at=T0)
    world.rows.delete_note(id_of(BERTH))
    world.notebook.admin.rebuild()
    assert {fact.content: fact.access_count for fact in world.rows.all()} == {FERRY: 1, BERTH: 0}


def test_verify_tells_of_facts_that_are_not_in_step_and_repairs_them(world: World) -> None:
    world.write(NOTES, FERRY)
    world.notebook.sync()
    world.rows.clear_all()
    verdict = world.notebook.admin.verify()
    assert [(difference.path, difference.what) for difference in verdict.differences] == [(NOTES, "old facts")]
    assert world.notebook.admin.verify(repair=True).consistent
    assert world.known() == [FERRY]


# Several at once, and who is stopped.


def random_step(random_: random.Random, world: World) -> None:
    """What a person might do to the files of facts."""
    path = random_.choice([NOTES, CORE, ARCHIVE, "facts/people.md"])
    contents = random_.sample([FERRY, FERRY + "s", BERTH, BERTH + ".", PIER, PIER + " now"], random_.randint(0, 4))
    if random_.random() < 0.15:
        (world.root / path).unlink(missing_ok=True)
    else:
        world.write(path, *contents, section=random_.choice(["Key Topics", "People & Entities"]))


def away(*arguments: object) -> bool:
    raise BackendDown("the store", "it is away")


class Stopping:
    """Rows whose Nth request is the last one of this process."""

    def __init__(self, rows: FactRows, left: int) -> None:
        self._rows, self._left = rows, left

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._rows, name)
        if not callable(found):
            return found

        def ask(*arguments: Any, **named: Any) -> Any:
            self._left -= 1
            if self._left < 0:
                raise BackendDown("the store", "stopped here")
            return found(*arguments, **named)

        return ask


def test_a_walk_of_edits_ends_with_what_is_on_disk(world: World) -> None:
    random_ = random.Random(7)
    for step in range(25):
        random_step(random_, world)
        if random_.random() < 0.5:
            world.notebook.sync()
        if random_.random() < 0.3:
            stopping = world.following(Stopping(world.rows, random_.randint(0, 4)))  # type: ignore[arg-type]
            with suppress(BackendDown):
                stopping.follow()
        if random_.random() < 0.6:
            world.notebook.sync()
            world.follow()
            assert set(world.known()) == world.on_disk(), step
            assert world.follow() == {}


def stores(tmp_path: Path, url: str, database: str, kind: str) -> Callable[[], FactRows]:
    if kind == "SQLite":
        return lambda: SqliteFacts(tmp_path / ".notebook" / "mirror.db")
    return lambda: MongoFacts(url, database, timeout_seconds=30.0)


@pytest.mark.parametrize("kind", ["SQLite", "MongoDB"])
def test_several_that_follow_at_once_end_with_what_is_on_disk(
    tmp_path: Path, mongodb_url: str, mongo_database: str, kind: str
) -> None:
    opened = stores(tmp_path, mongodb_url, mongo_database, kind)
    world = World(tmp_path, opened())
    all_rows = [opened() for _ in range(3)]
    done = threading.Event()

    def keep_following(rows: FactRows) -> None:
        sync = world.following(rows)
        while not done.is_set():
            sync.follow()

    random_ = random.Random(11)
    with ThreadPoolExecutor(3) as pool:
        following = [pool.submit(keep_following, rows) for rows in all_rows]
        for _ in range(8):
            for _ in range(4):
                random_step(random_, world)
            world.notebook.sync()
        done.set()
    for each in following:
        each.result()
    world.follow()
    assert set(world.known()) == world.on_disk()
    assert world.follow() == {}
    for rows in (*all_rows, world.rows):
        rows.close()
    world.notebook.close()


class _TooMuch:
    """Rows that can hold no file of more than one fact."""

    def __init__(self, rows: FactRows) -> None:
        self._rows = rows

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rows, name)

    def apply(self, sources: Any, changes: Any) -> bool:
        for source in sources:
            if len(source.places) > 1:
                raise UnreadableFile(source.path, "too many facts")
        return self._rows.apply(sources, changes)


def test_a_file_that_the_store_cannot_hold_keeps_no_other_back(world: World) -> None:
    world.write(NOTES, FERRY, BERTH)
    world.write(CORE, PIER)
    followed = world.following(_TooMuch(world.rows)).follow()  # type: ignore[arg-type]
    assert (dict(followed.counts), dict(followed.failed)) == ({"added": 1}, {NOTES: "too many facts"})
    assert world.known() == [PIER]


# Vectors.


def test_facts_get_the_vectors_that_they_lack(world: World) -> None:
    embedder = Hashing()
    world.write(NOTES, *(f"{FERRY} {n}" for n in range(300)))
    world.follow()
    assert embed_facts(world.rows, embedder, limit=10) == 10
    assert embed_facts(world.rows, embedder) == 290
    assert max(embedder.asked) <= 256
    assert embed_facts(world.rows, embedder) == 0
    world.write(NOTES, *(f"{FERRY} {n}" for n in range(299)), BERTH)
    world.follow()
    assert embed_facts(world.rows, embedder) == 1
    assert embed_facts(world.rows, Hashing(16)) == 300
    assert list(world.rows.vectors(embedder.model)) == [id_of(f"{FERRY} 299")]  # of a fact that is gone


def test_an_embedder_that_dies_leaves_what_was_made(world: World) -> None:
    world.write(NOTES, FERRY)
    world.follow()
    with pytest.raises(BackendDown):
        embed_facts(world.rows, Hashing(dead=True))
    assert embed_facts(world.rows, Hashing()) == 1


def test_a_fact_that_the_embedder_refuses_keeps_no_other_from_its_vector(world: World) -> None:
    world.write(NOTES, *(f"{FERRY} {n}" for n in range(300)))
    world.follow()
    refused = {id_of(f"{FERRY} {n}") for n in (7, 200)}
    embedder = _Choosy(f"{FERRY} 7", f"{FERRY} 200")
    assert embed_facts(world.rows, embedder) == 298
    assert {note_id for note_id, vector in world.rows.vectors(embedder.model).items() if not vector.any()} == refused
    assert world.rows.lacking(embedder.model) == (0, 2)
    asked = len(embedder.asked)
    assert (embed_facts(world.rows, embedder), len(embedder.asked)) == (0, asked)
    world.write(NOTES, BERTH)
    world.follow()
    embedder.refused |= {BERTH, "note"}  # so does a server that has no such model
    with pytest.raises(TextRefused):
        embed_facts(world.rows, embedder)


class _Choosy(Hashing):
    """Takes nothing that holds a text which is refused."""

    def __init__(self, *refused: str) -> None:
        super().__init__()
        self.refused = set(refused)

    def embed(self, texts: Sequence[str], *, seconds: float | None = None) -> NDArray[np.float32]:
        if any(text in self.refused for text in texts):
            raise TextRefused("the embedder", "it takes no such texts")
        return super().embed(texts, seconds=seconds)


def test_an_embedder_that_does_not_know_yet_how_long_its_vectors_are_makes_each_once(world: World) -> None:
    world.write(NOTES, FERRY, BERTH)
    world.follow()
    assert embed_facts(world.rows, Hashing()) == 2
    fresh = Hashing()
    fresh.dimensions = 0
    assert embed_facts(world.rows, fresh) == 0
