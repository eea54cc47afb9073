"""Words: found by any term, in the table that the audience decides; statistics of what everybody may read."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notebook_sync.store import words
from notebook_sync.store.index import Index
from notebook_sync.store.rows import EVERYTHING, NOTHING, All, Either, Has, Is, Not, Where
from tests.store.rows_for_tests import document, open_index, private

PILOT = Either((Is("audience", "=", ""), Is("audience", "under", "channels/pilot")))


def ids(index: Index, query: str, where: Where = EVERYTHING, *, limit: int = 100, hidden: bool = False) -> list[str]:
    hits = index.documents.search(query.split(), where, limit=limit, private=hidden)
    assert list(hits.values()) == sorted(hits.values(), reverse=True)
    return [id.removeprefix("pages/") for id in hits]


def test_any_term_finds_and_titles_count_most(index: Index) -> None:
    index.documents.put(
        [
            document("rope", "nothing much"),
            document("a", "a rope and a sail and more"),
            document("b", "a sail", summary="rope"),
            document("c", "mast", code="rope"),
            document("d", "mast"),
        ]
    )
    assert (ids(index, "rope")[:2], set(ids(index, "rope sail"))) == (["rope", "b"], {"rope", "a", "b", "c"})
    assert ids(index, "rope", limit=2) == ids(index, "rope")[:2]
    assert ids(index, "") == ids(index, "absent") == ids(index, "rope", NOTHING) == []


@pytest.mark.parametrize("where", [Is("status", "=", "done"), Has("tags", ("t",)), Not(Is("status", "!=", "done"))])
def test_conditions_hold_before_the_limit(index: Index, where: Where) -> None:
    index.documents.put([document(f"rope{n}", "rope " * (9 - n)) for n in range(9)])
    index.documents.put([document("low", "much else and then a rope", status="done", tags=["t"])])
    assert ids(index, "rope", where, limit=1) == ["low"]
    assert ids(index, "rope", All((where, Is("id", "=", "pages/rope1")))) == []


def test_words_follow_the_row(index: Index) -> None:
    index.documents.put([document("a", "old words"), private("p", "old secret")])
    index.documents.put([document("a", "new words")])
    assert (ids(index, "old"), ids(index, "new")) == ([], ["a"])
    index.documents.put([document("a", "new words", audience="apart")])
    assert (ids(index, "new"), ids(index, "new", hidden=True)) == ([], ["a"])
    assert index.documents.frequencies(["new", "old"]) == (0, {"new": 0, "old": 0})
    index.documents.put([document("a", "new words")])
    index.documents.delete(["pages/a"])
    assert ids(index, "new words old", hidden=True) == ["channels/scribe/global/p"]
    index.documents.put([document("a", "x"), {**document("b", "ignored"), "words": {"content": "given\nterms"}}])
    assert (ids(index, "ignored"), ids(index, "terms")) == ([], ["b"])


@given(st.lists(st.sampled_from("ab\"'()*:^-+~.,;{}[]|&!?#$%/\\@_=<>`é漢 \0\ud800"), max_size=12).map("".join))
def test_no_term_is_syntax(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    index = open_index(tmp_path_factory.mktemp("words"))
    index.documents.put([document("x1", text), private("x2", text), document("x3", "AND OR NOT NEAR")])
    assert index.documents.frequencies(text.split())[0] == 2
    for term in [*text.split(), "AND", "NEAR", "*", '"']:
        index.documents.search([term], private=True)
    index.documents.put([document("x1", "other"), private("x2", "other")])
    assert ids(index, "a b é 漢", hidden=True) == []
    index.close()


def test_statistics_and_scores_depend_on_nothing_hidden(tmp_path: Path) -> None:
    """Two indexes that differ in what a session may not read answer it alike, also where few are asked for."""
    public = [document(f"p{n}", f"ferry {'rope' if n % 3 else 'lamp'} {'x ' * n}") for n in range(30)]
    own = [private(f"own{n}", f"rope {'ferry' if n % 2 else ''}", "pilot") for n in range(12)]
    hidden = [private(f"h{n}", "rope rope ferry lamp anchor") for n in range(40)]
    hidden += [document("till", "rope rope", audience="apart", title="rope")]
    answers = []
    for name, rows in (("with", hidden + public + own), ("without", public + own)):
        (tmp_path / name).mkdir()
        index = open_index(tmp_path / name)
        index.documents.put(rows)
        answers.append(
            [
                list(index.documents.search(query.split(), PILOT, limit=limit, private=True).items())
                for query in ("rope", "ferry rope", "lamp anchor", "nowhere")
                for limit in (3, 100)
            ]
            + [index.documents.frequencies(["rope", "ferry", "anchor"])]
        )
        assert "anchor" in {term for term, count in answers[-1][-1][1].items() if not count}
        index.close()
    assert answers[0] == answers[1]
    assert any(id.startswith("channels/pilot") for id, _ in answers[0][1])


@pytest.mark.parametrize("most", [1, 5, 10_000])
def test_frequent_words_are_found_though_not_all_rows_are_scored(
    index: Index, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(words, "_ENOUGH", most)
    monkeypatch.setattr(words, "_MOST", most)
    rng = random.Random(1)
    index.documents.put(
        [
            document(f"n{n}", " ".join(rng.choices(["sea", "sun", "sand", "rare"], (50, 50, 50, 1), k=9)))
            for n in range(60)
        ]
    )
    index.documents.put([document("sea", "nothing else"), document("newest", "sea")])
    assert {"sea", "newest"} <= set(ids(index, "sea"))
    rare = {row["id"] for row in index.documents.find(fields=("id", "content")) if "rare" in row["content"]}
    assert rare <= {f"pages/{name}" for name in ids(index, "sea sun rare")}
    index.documents.search([f"t{n}" for n in range(500)], private=True)


@pytest.mark.parametrize("table", ["documents_words", "documents_private"])
@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM TABLE_data",
        "DELETE FROM TABLE_docsize",
        "UPDATE TABLE_data SET block = x'ff' WHERE id = 1",
        "UPDATE TABLE_data SET block = x'ffffffffffffffff' WHERE id > 10",
    ],
)
def test_a_damaged_word_table_is_filled_again_and_nothing_else_is_lost(index: Index, table: str, damage: str) -> None:
    rows = [document(f"n{n}", f"sea {n}") for n in range(20)] + [private(f"p{n}", f"sea {n}") for n in range(20)]
    index.documents.put([{**row, "access_count": 5} for row in rows])
    uses: list[Callable[[], object]] = [
        lambda: index.documents.search(["sea"], private=True),
        lambda: index.documents.put([document("n1", "sea changed"), private("p1", "sea changed")]),
        lambda: index.documents.delete(["pages/n2", "channels/scribe/global/p2"]),
    ]
    for use, left in zip(uses, (40, 40, 38), strict=True):
        with index.write() as db:
            db.execute(damage.replace("TABLE", table))
        use()
        assert len(ids(index, "sea", hidden=True)) == left
    assert sorted(ids(index, "changed", hidden=True)) == ["channels/scribe/global/p1", "n1"]
    assert {count for (count,) in index.documents.tuples(("access_count",))} == {5}
