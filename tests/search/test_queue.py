"""Which rows lack vectors, and how they get them."""

from collections.abc import Sequence

import pytest

from notebook_sync.errors import BackendDown
from notebook_sync.search.meaning import Embedded, Meaning
from notebook_sync.store.index import Index
from notebook_sync.store.rows import Is
from tests.search.conftest import FakeEmbedder, add, document, fact

NOTES = {f"pages/{number}.md": f"# Berth {number}\n\nFree.\n\n## Fees\n\nTwelve.\n" for number in range(5)}


@pytest.fixture
def embedder() -> FakeEmbedder:
    return FakeEmbedder(is_local=False)


@pytest.fixture
def queue(index: Index, embedder: FakeEmbedder) -> Meaning:
    """Of five notes and a fact."""
    add(index, NOTES)
    index.facts.put([fact("f1", "The ferry leaves at nine")])
    return Meaning(index, embedder)


def test_new_and_changed_rows_are_behind_until_they_are_embedded(
    index: Index, queue: Meaning, embedder: FakeEmbedder
) -> None:
    assert queue.behind() == 6
    assert queue.embed(2) == Embedded(2, 0, 4)
    assert queue.embed(100) == Embedded(4, 0, 0)
    add(index, {"pages/1.md": "# Berth 1\n\nTaken.\n"})
    assert Meaning(index, embedder).behind() == queue.behind() == 1
    assert queue.embed(100) == Embedded(1, 0, 0)
    embedder.asked.clear()
    index.documents.update(Is("id", "=", "pages/2"), inc={"access_count": 1}, stamp=True)
    assert (queue.behind(), queue.embed(100), embedder.asked) == (0, Embedded(0, 0, 0), [])


def test_a_row_for_another_audience_gets_its_vectors_again(index: Index, queue: Meaning) -> None:
    queue.embed(100)
    index.documents.put([document("pages/1.md", NOTES["pages/1.md"], audience="apart")])
    assert queue.embed(100) == Embedded(1, 0, 0)
    assert dict(index.vectors.tuples(("id", "audience")))["documents:pages/1"] == "apart"


def test_what_is_stored_are_the_passages_with_their_places(index: Index, queue: Meaning) -> None:
    add(index, {"pages/a.md": "# Pier\n\nRope.\n\n## Fees\n\nTwelve.\n", "pages/b.md": ""})
    queue.embed(100)
    rows = index.vectors.get(["documents:pages/a", "documents:pages/b"])
    row = rows["documents:pages/a"]
    assert (row["model"], row["places"], rows["documents:pages/b"]["places"]) == ("fake", [[8, 13], [24, 31]], [[0, 0]])
    assert (row["size"], row["codes"]) == (64, b"".join(FakeEmbedder().embed(["Pier\nRope.", "Pier\nFees. Twelve."])))


def test_another_model_begins_with_all_rows(index: Index, queue: Meaning, embedder: FakeEmbedder) -> None:
    queue.embed(100)
    embedder.model = "large"
    assert Meaning(index, embedder).embed(100) == Embedded(6, 0, 0)
    assert index.vectors.distinct("model") == {"large": 6}


def test_ends_and_moves_take_their_vectors_along(index: Index, queue: Meaning) -> None:
    queue.embed(3)
    index.documents.delete(["pages/0", "pages/4"])
    index.documents.rename({"pages/1": "pages/one"})
    assert queue.embed(100).behind == 0
    keys = sorted(key for (key,) in index.vectors.tuples(("id",)))
    assert keys == ["documents:pages/2", "documents:pages/3", "documents:pages/one", "facts:f1"]


def test_a_text_that_the_embedder_refuses_keeps_no_other_from_its_vectors(
    index: Index, queue: Meaning, embedder: FakeEmbedder
) -> None:
    embedder.refused = "lamp"
    add(index, {"pages/x.md": "# A lamp\n\nDark.\n"})
    assert queue.embed(100) == Embedded(6, 1, 0)
    add(index, {"pages/x.md": "# A light\n\nDark.\n"})
    assert queue.embed(100) == Embedded(1, 0, 0)


@pytest.mark.parametrize("refused", ["", "\0"])
def test_an_embedder_that_takes_nothing_is_down_and_all_stays_behind(
    index: Index, queue: Meaning, embedder: FakeEmbedder, refused: str
) -> None:
    def fail(_texts: Sequence[str]) -> None:
        if refused:
            raise BackendDown("a server", "status 503")

    embedder.before, embedder.refused = fail, refused
    with pytest.raises(BackendDown):
        queue.embed(100)
    assert (queue.behind(), index.vectors.count()) == (6, 0)


def test_a_row_that_changes_while_it_is_embedded_is_behind_again(
    index: Index, queue: Meaning, embedder: FakeEmbedder
) -> None:
    def change(_texts: Sequence[str]) -> None:
        embedder.before = lambda _texts: None
        add(index, {"pages/1.md": "# Pier\n\nChain.\n"})

    embedder.before = change
    assert queue.embed(100) == Embedded(6, 0, 1)
    assert queue.embed(100) == Embedded(1, 0, 0)
    assert embedder.asked[-1] == "Pier\nChain."


def test_two_queues_do_not_undo_each_other(index: Index, queue: Meaning, embedder: FakeEmbedder) -> None:
    other = Meaning(index, embedder)
    assert (queue.behind(), other.behind()) == (6, 6)
    assert (queue.embed(100).behind, other.embed(100).behind, index.vectors.count()) == (0, 0, 6)
