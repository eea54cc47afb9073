"""Giving notes their vectors: what one run does, and the thread that follows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from notebook_sync.errors import BackendDown
from notebook_sync.mirror.base import Mirror, Put, Remove
from notebook_sync.mirror.sqlite import SqliteMirror
from notebook_sync.search import embedding
from notebook_sync.search.base import Counts, Matrix, Vectors
from notebook_sync.search.embedding import Backlog, Following
from notebook_sync.search.vectors_sqlite import SqliteVectors
from tests.mirror.contract import note, put
from tests.search.contract import ids
from tests.search.hashing import Hashing
from tests.waiting import eventually


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / ".notebook" / "mirror.db"


@pytest.fixture
def mirror(file: Path) -> Iterator[Mirror]:
    mirror = SqliteMirror(file)
    yield mirror
    mirror.close()


@pytest.fixture
def vectors(file: Path) -> Iterator[Vectors]:
    vectors = SqliteVectors(file)
    yield vectors
    vectors.close()


@pytest.fixture
def embedder() -> Hashing:
    return Hashing()


@pytest.fixture
def backlog(mirror: Mirror, vectors: Vectors, embedder: Hashing) -> Backlog:
    return Backlog(mirror, vectors, embedder)


# Longer than one passage.
WATER = "Water under the pier. " * 18


def page(name: str, text: str, base: str | None = None) -> Put:
    return put(note(f"pages/{name}.md", text, title=name), base)


def pages(count: int) -> list[Put]:
    return [page(f"n{n:03}", f"The ferry number{n} leaves the harbour.\n") for n in range(count)]


class TestBacklog:
    def test_what_is_behind_is_embedded_and_found(
        self, mirror: Mirror, vectors: Vectors, embedder: Hashing, backlog: Backlog
    ) -> None:
        mirror.apply([*pages(150), page("tide", f"High.\n\n{WATER}\n\nOdile lights the lanterns.\n")])
        assert not backlog.is_empty
        done = backlog.catch_up()
        assert (done.model, done.embedded, done.behind, done.failed) == ("hashing", 151, 0, 0)
        assert backlog.is_empty
        near = vectors.nearest("hashing", embedder.embed(["Odile lanterns"])[0], 1)[0]
        assert (near.note_id, near.place.line) == ("pages/tide", 3)
        assert backlog.catch_up().embedded == 0

    def test_no_note_is_asked_of_the_embedder_twice(self, mirror: Mirror, embedder: Hashing, backlog: Backlog) -> None:
        mirror.apply(pages(150))
        backlog.catch_up()
        texts = [text for asked in embedder.asked for text in asked]
        assert len(texts) == len(set(texts)) == 150

    def test_a_limit_is_of_notes_and_the_rest_stays_behind(self, mirror: Mirror, backlog: Backlog) -> None:
        mirror.apply(pages(100))
        told: list[tuple[int, int]] = []
        done = backlog.catch_up(lambda *counts: told.append(counts), 70)
        assert (done.embedded, done.behind) == (70, 30)
        assert told == [(64, 70), (70, 70)]
        assert backlog.catch_up(limit=0).embedded == 0
        assert backlog.catch_up(limit=-1).embedded == 0
        assert backlog.catch_up(limit=1000).embedded == 30

    def test_of_one_note_no_vectors_can_be_made_and_the_others_get_theirs(
        self, mirror: Mirror, vectors: Vectors, embedder: Hashing, backlog: Backlog
    ) -> None:
        bad = page("bad", "Unspeakable.\n")
        mirror.apply([*pages(30), bad])
        embedder.refuses = lambda text: "Unspeakable" in text
        done = backlog.catch_up()
        assert (done.embedded, done.behind, done.failed) == (30, 1, 1)
        assert vectors.behind("hashing", 10) == [bad.id]

    def test_a_note_that_was_refused_is_left_alone_until_it_changes(
        self, mirror: Mirror, embedder: Hashing, backlog: Backlog
    ) -> None:
        bad = page("bad", "Unspeakable.\n")
        mirror.apply([bad])
        embedder.refuses = lambda text: "Unspeakable" in text
        backlog.catch_up()
        asked = len(embedder.asked)
        assert (backlog.catch_up().failed, len(embedder.asked)) == (0, asked)
        mirror.apply([page("bad", "Said well.\n", bad.note.digest)])
        assert backlog.catch_up().embedded == 1

    def test_a_note_that_was_refused_is_tried_again_by_whoever_begins_anew(
        self, mirror: Mirror, vectors: Vectors, embedder: Hashing, backlog: Backlog
    ) -> None:
        mirror.apply([page("bad", "Unspeakable.\n")])
        embedder.refuses = lambda text: "Unspeakable" in text
        backlog.catch_up()
        embedder.refuses = lambda _: False
        assert Backlog(mirror, vectors, embedder).catch_up().embedded == 1

    def test_who_heard_of_a_servers_model_before_it_was_changed_leaves_what_others_made_of_the_new_one(
        self, mirror: Mirror, vectors: Vectors, file: Path
    ) -> None:
        mirror.apply(pages(8))
        old = Backlog(mirror, vectors, Hashing(4))
        assert old.catch_up().behind == 0
        other_vectors = SqliteVectors(file)
        new = Backlog(mirror, other_vectors, Hashing(8))
        assert new.catch_up().embedded == 8
        assert old.is_empty
        assert new.is_empty
        assert vectors.counts("hashing") == Counts(8, 0)
        other_vectors.close()

    def test_a_note_in_which_something_is_wrong_stops_no_other(
        self, mirror: Mirror, backlog: Backlog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        passages_of = embedding.passages_of

        def breaking(document: dict[str, object]) -> object:
            if document["id"] == "pages/n001":
                raise RecursionError("too deep")
            return passages_of(document)

        monkeypatch.setattr(embedding, "passages_of", breaking)
        mirror.apply(pages(3))
        done = backlog.catch_up()
        assert (done.embedded, done.failed, done.behind) == (2, 1, 1)

    def test_an_embedder_that_is_away_ends_the_run_and_what_was_done_stays(
        self, mirror: Mirror, vectors: Vectors, embedder: Hashing, backlog: Backlog
    ) -> None:
        mirror.apply(pages(100))

        def fail(*_: int) -> None:
            embedder.is_away = True

        with pytest.raises(BackendDown, match="away"):
            backlog.catch_up(fail)
        assert vectors.counts("hashing") == Counts(64, 36)
        assert len(embedder.asked) < 8  # nobody asks a dead server for one note after another
        embedder.is_away = False
        assert backlog.catch_up().behind == 0

    def test_a_note_that_is_changed_meanwhile_stays_behind_and_ends_the_run(
        self, mirror: Mirror, backlog: Backlog, embedder: Hashing, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        was = page("pier", "At noon.\n")
        mirror.apply([was])
        embed = embedder.embed

        def slowly(texts: Sequence[str]) -> Matrix:
            (known,) = mirror.known()
            mirror.apply([page("pier", f"{len(embedder.asked)} hours later.\n", known.digest)])
            return embed(texts)

        monkeypatch.setattr(embedder, "embed", slowly)
        done = backlog.catch_up()
        assert (done.embedded, done.behind) == (1, 1)

    def test_a_note_that_is_removed_meanwhile_is_no_failure(
        self, mirror: Mirror, backlog: Backlog, embedder: Hashing, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pier = page("pier", "At noon.\n")
        mirror.apply([pier])
        embed = embedder.embed

        def slowly(texts: Sequence[str]) -> Matrix:
            mirror.apply([Remove(pier.id, pier.note.digest)])
            return embed(texts)

        monkeypatch.setattr(embedder, "embed", slowly)
        done = backlog.catch_up()
        assert (done.behind, done.failed) == (0, 0)

    def test_an_embedder_that_knows_no_word_of_a_note_leaves_it_found_by_nothing(
        self, mirror: Mirror, vectors: Vectors, embedder: Hashing, backlog: Backlog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        mirror.apply(pages(1))
        monkeypatch.setattr(embedder, "embed", lambda texts: np.zeros((len(texts), 512), np.float32))
        assert backlog.catch_up().behind == 0
        assert vectors.nearest("hashing", np.ones(512, np.float32), 10) == []

    def test_two_at_once_leave_nothing_behind(self, mirror: Mirror, file: Path, backlog: Backlog) -> None:
        mirror.apply(pages(200))
        other_vectors = SqliteVectors(file)
        other = threading.Thread(target=Backlog(mirror, other_vectors, Hashing()).catch_up)
        other.start()
        backlog.catch_up()
        other.join()
        other_vectors.close()
        assert backlog.is_empty


class TestFollowing:
    @pytest.fixture
    def following(self, backlog: Backlog) -> Iterator[Following]:
        following = Following(lambda: backlog)
        yield following
        following.close()

    def test_what_comes_to_be_behind_is_embedded_when_it_is_woken(
        self, mirror: Mirror, vectors: Vectors, following: Following, backlog: Backlog
    ) -> None:
        mirror.apply(pages(3))
        following.wake()
        eventually(lambda: backlog.is_empty, "embedded")
        mirror.apply([page("later", "At dusk.\n")])
        following.wake()
        eventually(lambda: backlog.is_empty, "embedded")
        assert len(ids(vectors.nearest("hashing", Hashing().embed(["dusk ferry"])[0], 10))) == 4

    def test_the_vectors_of_notes_that_are_gone_go(self, mirror: Mirror, vectors: Vectors, backlog: Backlog) -> None:
        puts = pages(2)
        mirror.apply(puts)
        backlog.catch_up()
        mirror.apply([Remove(puts[0].id, puts[0].note.digest)])
        following = Following(lambda: backlog)
        mirror.apply([page("later", "At dusk.\n")])
        following.wake()
        eventually(lambda: backlog.is_empty, "embedded")
        following.close()
        assert vectors.tidy() == 0

    def test_an_embedder_that_is_away_is_told_and_tried_again(
        self, mirror: Mirror, embedder: Hashing, backlog: Backlog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(embedding, "_BACKOFF_SECONDS", (0.01, 0.02))
        embedder.is_away = True
        mirror.apply(pages(1))
        following = Following(lambda: backlog)
        eventually(lambda: "away" in following.trouble, "told")
        embedder.is_away = False
        eventually(lambda: backlog.is_empty and not following.trouble, "recovered")
        following.close()

    def test_a_store_that_cannot_be_opened_is_told_and_tried_again(
        self, mirror: Mirror, backlog: Backlog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(embedding, "_BACKOFF_SECONDS", (0.01, 0.02))
        answers: list[Callable[[], Backlog]] = [lambda: backlog]

        def opening() -> Backlog:
            if len(attempts) < 3:
                attempts.append(1)
                raise BackendDown("the mirror", "not there")
            return answers[0]()

        attempts: list[int] = []
        mirror.apply(pages(1))
        following = Following(opening)
        eventually(lambda: backlog.is_empty, "embedded")
        following.close()
        assert len(attempts) == 3

    def test_it_ends_at_once_in_the_middle_of_much_work(
        self, mirror: Mirror, backlog: Backlog, embedder: Hashing
    ) -> None:
        mirror.apply(pages(1_000))
        following = Following(lambda: backlog)
        eventually(lambda: embedder.asked, "begun")
        following.close()
        following.close()
        assert not backlog.is_empty
        assert not any(thread.name == "embedding" for thread in threading.enumerate())

    def test_it_keeps_no_process_alive(self, following: Following) -> None:
        assert all(thread.daemon for thread in threading.enumerate() if thread.name == "embedding")
