"""Searches by words, by meaning and by both: what is found, in which order, quoted and explained how, and what answers
where there is no meaning to be had."""

from collections.abc import Sequence
from typing import get_args

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from notebook_sync.errors import BackendDown, MissingExtra
from notebook_sync.search.embed import StaticEmbedder
from notebook_sync.search.query import Found, Mode, Searcher
from notebook_sync.search.terms import Snippet
from notebook_sync.store.index import Index
from notebook_sync.store.rows import EVERYTHING, Either, Is, Where
from tests.search.conftest import ANALYZER, FakeEmbedder, add, document, fact, ids, sections_of

MODES: tuple[Mode, ...] = get_args(Mode)
PUBLIC = Is("audience", "=", "")
PILOTS = Either((PUBLIC, Is("audience", "under", "channels/pilot")))
STATIC = StaticEmbedder()
NOTES = {
    "pages/ferry.md": "# Crossing\n\nThe ferry to the island leaves at nine.\n\n## Winter\n\nOne sailing a day, when "
    "the harbour has no ice.\n\n### Dogs\n\nThey sail for half.\n",
    "pages/lamp.md": "# The lamp\n\nOdile cleans the lens with vinegar.\n\n## Winter\n\nThe keeper lights the lamp at "
    "four.\n",
    "pages/soup.md": "# Soup\n\nBoil leeks and potatoes, then salt.\n",
}


@pytest.fixture
def searcher(index: Index) -> Searcher:
    """Of the three notes, with the table of word vectors."""
    add(index, NOTES)
    return Searcher(index, ANALYZER, STATIC)


@pytest.fixture
def embedder() -> FakeEmbedder:
    return FakeEmbedder()


@pytest.fixture
def fake(index: Index, embedder: FakeEmbedder) -> Searcher:
    """Of no note yet."""
    return Searcher(index, ANALYZER, embedder)


def quotes(found: Found) -> list[str | None]:
    return [hit.snippet.text if hit.snippet else None for hit in found.hits]


# ---- what is found


def test_what_says_the_same_in_other_words_is_found_by_meaning(searcher: Searcher) -> None:
    assert ids(searcher.search("boat departure time", mode="keyword")) == []
    for mode in ("hybrid", "semantic"):
        found = searcher.search("boat departure time", mode=mode)
        assert (ids(found)[0], found.degraded) == ("ferry", None)
    assert [searcher.search("corporate income taxes", mode=mode).hits for mode in MODES] == [[], [], []]


@pytest.mark.parametrize("mode", MODES)
def test_a_smaller_limit_gives_a_prefix(index: Index, fake: Searcher, mode: Mode) -> None:
    words = ["ferry ", "pier ", "tide ", "rope ", "lamp "]
    add(index, {f"pages/{at}.md": "".join(words[: at % 5 + 1]) * (at % 7 + 1) for at in range(60)})
    most = fake.search("ferry tide lamp", mode=mode, limit=100).hits
    assert len(most) > 10
    for limit in (-1, 0, 1, 7, 11):
        assert fake.search("ferry tide lamp", mode=mode, limit=limit).hits == most[: max(limit, 0)]


@pytest.mark.parametrize("mode", MODES)
def test_equal_notes_are_in_order_of_id(index: Index, fake: Searcher, mode: Mode) -> None:
    add(index, {f"{name}/rope.md": "# Rope\n\nThe rope.\n" for name in "cabd"})
    assert ids(fake.search("rope", mode=mode)) == ["a/rope", "b/rope", "c/rope", "d/rope"]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (Is("status", "=", "complete"), {"done"}),
        (Is("path", "in", ["pages/lamp.md", "pages/none.md"]), {"lamp"}),
        (Is("status", "=", "archived"), set()),
    ],
)
def test_conditions_hold_in_every_mode(index: Index, searcher: Searcher, where: Where, expected: set[str]) -> None:
    index.documents.put([document("pages/done.md", "# Ferry lamp\n\nSails.\n", status="complete")])
    assert [set(ids(searcher.search("ferry lamp", mode=mode, where=where))) for mode in MODES] == [expected] * 3


@pytest.mark.parametrize("mode", MODES)
def test_a_section_narrows_by_its_heading_or_its_anchor(searcher: Searcher, mode: Mode) -> None:
    for section in ("Winter", "winter", "#winter"):
        found = searcher.search("the keeper lights the lamp", mode=mode, section=section)
        assert (ids(found)[0], {hit.snippet.section for hit in found.hits if hit.snippet}) == ("lamp", {"winter"})
    assert ids(searcher.search("dogs", mode=mode, section="Winter"))[:1] == ["ferry"]
    assert searcher.search("ferry", mode=mode, section="Summer").hits == []
    assert "lamp" not in ids(searcher.search("vinegar", mode="keyword", section="Winter"))


def test_turns_of_a_conversation_raise_each_other(index: Index) -> None:
    turns = ["Where does the ferry leave?", "At the old pier.", "Bring a rope.", *["Something else."] * 9]
    add(index, {f"talks/{number}.md": f"# Talk\n\n{turn}\n" for number, turn in enumerate(turns, 8)})
    add(index, {"pages/pier.md": "# Pier\n\nThe pier is old.\n", "pages/ferry.md": "# Boat\n\nA ferry, old.\n"})
    found = Searcher(index, ANALYZER, None).search("ferry old pier", explain=True)
    raised = {hit.id: hit.parts["neighbours"] for hit in found.hits if hit.parts}
    assert raised["talks/9"] > 0.02
    assert raised["pages/pier"] == 0


@pytest.mark.parametrize("mode", MODES)
def test_facts_are_found_as_notes_are(index: Index, fake: Searcher, mode: Mode) -> None:
    facts = {"f1": "The ferry leaves at nine", "f2": "The lamp is lit at four", "f3": "Tickets cost twelve crowns"}
    index.facts.put([fact(id, content) for id, content in facts.items()])
    index.facts.put([fact("private", "The ferry is for sale", audience="apart")])
    found = fake.search("when does the ferry leave", collection="facts", mode=mode, where=PUBLIC)
    assert (ids(found)[0], quotes(found)[0], "private" in ids(found)) == ("f1", facts["f1"], False)


@pytest.mark.parametrize("mode", ["keyword", "hybrid"])
def test_a_text_scores_as_it_would_as_a_note(searcher: Searcher, mode: Mode) -> None:
    content = NOTES["pages/ferry.md"]
    hit = searcher.search("ferry in winter", mode=mode).hits[0]
    score, snippet = searcher.score_text("ferry in winter", "Crossing", "", content, sections_of(content), mode=mode)
    assert (score, snippet) == (pytest.approx(hit.score, abs=0.005), hit.snippet)
    assert searcher.score_text("vinegar", "Crossing", "", content, (), mode="keyword") == (0, None)


# ---- who may see what


@pytest.mark.parametrize("mode", MODES)
def test_private_rows_change_nothing_of_what_others_see(index: Index, searcher: Searcher, mode: Mode) -> None:
    def seen(by: Searcher) -> list[Found]:
        return [by.search("ferry lamp winter", mode=mode, where=where, explain=True) for where in (PUBLIC, PILOTS)]

    before = seen(searcher)
    secrets = {f"channels/scribe/{at}.md": "# Lamp\n\n" + "The ferry lamp in winter. " * 9 for at in range(90)}
    add(index, secrets, audience="channels/scribe/global")
    assert seen(searcher) == seen(Searcher(index, ANALYZER, STATIC)) == before


@pytest.mark.parametrize("mode", MODES)
def test_a_private_note_is_found_by_who_may_read_it(index: Index, fake: Searcher, mode: Mode) -> None:
    add(index, NOTES)
    add(index, {"channels/pilot/own.md": "# Ferry\n\nThe ferry is mine.\n"}, audience="channels/pilot/global")
    for where in (PILOTS, Either((PILOTS, Is("audience", "=", "apart"))), EVERYTHING):
        assert ids(fake.search("ferry mine", mode=mode, where=where))[0] == "channels/pilot/own"
    assert "channels/pilot/own" not in ids(fake.search("ferry mine", mode=mode, where=PUBLIC))


def test_a_neighbour_that_may_not_be_seen_raises_nobody(index: Index, fake: Searcher) -> None:
    add(index, {"talks/1.md": "# Talk\n\nferry\n", "talks/2.md": "# Talk\n\nferry pier\n"})
    before = fake.search("ferry pier", where=PUBLIC, explain=True)
    index.documents.put([document("talks/0.md", "# Talk\n\nferry pier\n", audience="apart")])
    assert fake.search("ferry pier", where=PUBLIC, explain=True) == before


@pytest.mark.parametrize("hidden", ["<!-- canary -->", "%%canary%%", f"![x](data:image/png;base64,{'canary' * 99})"])
def test_what_models_are_never_shown_is_neither_found_nor_quoted(
    index: Index, fake: Searcher, embedder: FakeEmbedder, hidden: str
) -> None:
    add(index, {"pages/rope.md": f"# Rope\n\nRope {hidden} is dear.\n", "pages/other.md": "# Canary\n\nA bird.\n"})
    for mode in MODES:
        assert ids(fake.search("canary", mode=mode)) == ["other"]
        assert "canary" not in (quotes(fake.search("rope", mode=mode))[0] or "canary")
    assert not any("canary" in text for text in embedder.asked if text != "canary")


# ---- any query is text


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "query", ["", " ", "\0", "\ud800", "🛥️", "渡し船", "x" * 100_000, "ferry " * 5_000, 'a-b:c* OR "NEAR(']
)
def test_a_query_may_be_anything(searcher: Searcher, query: str, mode: Mode) -> None:
    for section in ("", "\ud800\0"):
        assert len(searcher.search(query, mode=mode, section=section, explain=True).hits) <= 3


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text("\"'*()^:-~{}[]|&!.,;/\\<>=#+%_ \n\t\0", max_size=12))
@example('"*^')
def test_marks_are_never_syntax(searcher: Searcher, marks: str) -> None:
    plain = searcher.search("ferry AND lamp NOT ice", mode="keyword")
    assert searcher.search(f"{marks} ferry {marks} AND {marks} lamp {marks} NOT ice", mode="keyword") == plain


# ---- quotes and explanations


def test_a_hit_quotes_where_the_words_are_or_what_is_nearest(searcher: Searcher) -> None:
    (hit,) = searcher.search("ice", mode="keyword").hits
    assert (hit.snippet, hit.parts) == (Snippet("One sailing a day, when the harbour has no ice.", "winter", 7), None)
    nearest = searcher.search("boat departure time", mode="semantic").hits[0].snippet
    assert nearest == Snippet("The ferry to the island leaves at nine.", "crossing", 3)


def test_a_note_that_changed_since_it_was_embedded_is_quoted_as_it_is_now(
    index: Index, fake: Searcher, embedder: FakeEmbedder
) -> None:
    add(index, {"pages/a.md": "# Vessel\n\nThe vessel.\n"})
    fake.search("vessel")
    embedder.is_local = False
    add(index, {"pages/a.md": "Gone to the yard. Ask Ines.\n"})
    found = fake.search("vessel", mode="semantic")
    assert (quotes(found), found.degraded) == (["Gone to the yard. Ask Ines."], "some notes have no vectors yet")


def test_a_note_without_text_has_nothing_to_quote(index: Index, fake: Searcher) -> None:
    add(index, {"pages/rope.md": ""})
    assert [quotes(fake.search("rope", mode=mode)) for mode in MODES] == [[None]] * 3


@pytest.mark.parametrize("mode", MODES)
def test_the_parts_make_the_score(searcher: Searcher, mode: Mode) -> None:
    for hit in searcher.search("winter lamp", mode=mode, explain=True).hits:
        assert hit.parts
        bm25, cover, pairs, meaning, neighbours = hit.parts.values()
        words = 0.2 * bm25 + 0.1 * cover + 0.15 * pairs
        assert hit.score == pytest.approx(words + 0.55 * meaning + neighbours, abs=1e-3)
        assert (meaning == 0, bm25 == 0) == (mode == "keyword", mode == "semantic")


# ---- without meaning


def test_words_answer_where_embeddings_are_off(index: Index, searcher: Searcher) -> None:
    off = Searcher(index, ANALYZER, None)
    assert (ids(off.search("ferry")), off.search("ferry").degraded) == (["ferry"], None)
    found = off.search("ferry", mode="semantic")
    assert (ids(found), found.degraded) == (["ferry"], "embeddings are off in notebook.toml")
    with_vectors, without = (each.search("winter lamp", explain=True).hits[0].parts or {} for each in (searcher, off))
    assert [with_vectors[name] == without[name] for name in ("bm25", "cover", "pairs", "meaning")] == [True] * 3 + [
        False
    ]


@pytest.mark.parametrize("error", [BackendDown("a server", "status 503"), MissingExtra("search by meaning", "search")])
@pytest.mark.parametrize(("is_local", "calls"), [(False, 1), (True, 2)])
def test_trouble_costs_meaning_and_not_the_answer(
    index: Index, fake: Searcher, embedder: FakeEmbedder, error: Exception, is_local: bool, calls: int
) -> None:
    asked: list[Sequence[str]] = []

    def fail(texts: Sequence[str]) -> None:
        asked.append(texts)
        raise error

    add(index, NOTES)
    fake.search("ferry")
    embedder.before, embedder.is_local = fail, is_local
    for mode in ("hybrid", "semantic"):
        found = fake.search("ferry", mode=mode)
        assert (ids(found), found.degraded) == (["ferry"], str(error))
    assert len(asked) == calls  # a server that failed is left alone for a while


def test_a_query_without_a_known_word_is_by_words(searcher: Searcher) -> None:
    found = searcher.search("!!", mode="semantic")
    assert (found.hits, found.degraded) == ([], "the model of embeddings knows no word of this query")


def test_few_rows_are_embedded_by_the_search_itself_and_many_are_not(
    index: Index, fake: Searcher, embedder: FakeEmbedder
) -> None:
    add(index, {f"pages/{number}.md": f"# Rope {number}\n\nThe ferry leaves.\n" for number in range(201)})
    assert fake.search("ferry", mode="keyword").degraded is None
    found = fake.search("ferry", limit=300)
    assert (found.degraded, len(found.hits), embedder.asked) == ("some notes have no vectors yet", 50, ["ferry"])
    index.documents.delete(["pages/0"])
    assert (fake.search("ferry").degraded, len(embedder.asked)) == (None, 202)


def test_a_search_asks_no_server_for_vectors_of_notes(index: Index, fake: Searcher, embedder: FakeEmbedder) -> None:
    embedder.is_local = False
    add(index, NOTES)
    fake.search("ferry", where=PUBLIC)
    assert embedder.asked == ["ferry"]
