"""Vectors of texts: from the table in the package, and from a server that may answer anything."""

import json
import math
import sys
from array import array
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from subprocess import run

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from notebook_sync.errors import BackendDown
from notebook_sync.search import embed
from notebook_sync.search.embed import Embedder, Rarity, StaticEmbedder, TextRefused, embedder_of
from notebook_sync.search.embed_static import SPACE, WORD, lower
from notebook_sync.search.vectors import Vector, cosines_of, pack_vector
from notebook_sync.settings import SearchTable
from tests.search.embedding_server import EmbeddingServer, Reply, vectors
from tests.search.word_table import STATIC, package, tables

KEY = "sk_harbour_4711"
WORDS = StaticEmbedder()


def remote(url: str, name: str = "openai:small", *, key: str = KEY, seconds: float = 30.0) -> Embedder:
    settings = SearchTable(embeddings=name, base_url=url, api_key_env="HARBOUR_KEY", timeout_seconds=seconds)
    return embedder_of(settings, {"HARBOUR_KEY": key}) or pytest.fail("off")


def alike(one: str, other: str, rarity: Rarity = lambda _word: 1.0) -> float:
    return cosines_of(WORDS.embed_query(one, rarity), WORDS.embed([other])[0])[0]


def of_length_one(vector: Vector) -> list[float]:
    numbers = array("b", vector)
    return [number / math.hypot(*numbers) for number in numbers]


def test_the_settings_name_the_embedder() -> None:
    assert embedder_of(SearchTable(embeddings="off"), {}) is None
    assert isinstance(embedder_of(SearchTable(), {}), StaticEmbedder)


@pytest.mark.parametrize(
    ("query", "near", "far"),
    [
        ("when does the boat sail in the morning", "The ferry departs at dawn.", "Taxes on income are due in spring."),
        ("when does the boat sail in the morning", "The ferry departs at dawn.", "def parse(x): return loads(x)"),
        ("渡船到港口", "港口的船", "税法"),
    ],
)
def test_texts_that_mean_much_the_same_are_nearer_than_others(query: str, near: str, far: str) -> None:
    assert alike(query, near) > alike(query, far) + 0.1


def test_neither_case_nor_marks_nor_spelling_of_accents_matters() -> None:
    assert alike("THE FERRY, at Café Ines!", "\n**the** ferry -- at `cafe\u0301` ines") == pytest.approx(1, abs=1e-3)


def test_the_title_counts_half_as_much_as_the_rest() -> None:
    title, body = "Harbour fees", "Berths are paid by the metre and by the night. " * 5
    both, first, rest = WORDS.embed([f"{title}\n{body}", title, f"\n{body}"])
    halves = zip(of_length_one(first), of_length_one(rest), strict=True)
    expected = pack_vector([0.5 * one + other for one, other in halves])
    assert cosines_of(both, expected) == pytest.approx([1], abs=1e-3)


def test_a_rare_word_of_a_query_counts_more() -> None:
    weights = {"ferry": 10.0, "taxes": 0.1}
    assert alike("ferry taxes", "ferry", weights.__getitem__) > alike("ferry taxes", "ferry") + 0.1


def test_a_text_of_any_length_and_kind_has_a_vector_of_length_one_or_zero() -> None:
    texts = ["", " \n", "!?…", "🙂🛥️", "\ud800", "\0", "ferry \ud800\0 harbour", "ferry " * 7_000, "f" * 40_000]
    found = WORDS.embed(texts)
    assert [(len(vector), any(vector)) for vector in found] == [*[(256, False)] * 6, *[(256, True)] * 3]
    assert alike("ferry", texts[7]) == pytest.approx(1, abs=1e-3)
    assert WORDS.embed([]) == []


def test_words_are_cut_as_the_tokenizer_of_the_model_cuts_them() -> None:
    tokenizer = Tokenizer.from_file(str(package() / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    texts = sorted(text.strip("\u2581") for text in tokenizer.get_vocab())
    joined = (lower("".join(Random(seed).choices(texts, k=1 + seed % 4))) for seed in range(5_000))
    words = [word for text in joined for word in WORD.findall(text)]
    cut = [token for each in tokenizer.encode_batch(words, add_special_tokens=False) for token in each.tokens]
    parts = (STATIC / "words.txt").read_text(encoding="utf-8").split()
    assert [parts[token] for token in WORDS._table()._tokens(words)] == [
        token for token in cut if not token.startswith("<0x") and token != SPACE
    ]


def test_the_table_is_made_of_the_package_that_it_is_named_after() -> None:
    words, vectors_of_words = tables()
    assert (STATIC / "words.txt").read_text(encoding="utf-8") == words
    assert (STATIC / "vectors.bin").read_bytes() == vectors_of_words


@settings(max_examples=50)
@given(st.lists(st.text(), max_size=4), st.text())
@example(["\r", "\x85a"], "\u2028")
def test_a_text_has_its_vector_whatever_is_embedded_with_it(others: list[str], text: str) -> None:
    assert WORDS.embed([text])[0] == WORDS.embed([*others, text])[-1]


def test_threads_get_the_vectors_that_one_gets() -> None:
    texts = [f"berth {number} harbour{number} ferry" for number in range(500)]
    StaticEmbedder._table.cache_clear()
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(StaticEmbedder().embed, [texts] * 4))
    assert found == [WORDS.embed(texts)] * 4


NOTHING_EARLY = """
import sys
from notebook_sync.search.query import Searcher
from notebook_sync.search.embed import StaticEmbedder
assert any(StaticEmbedder().embed(["ferry"])[0])
assert not {"numpy", "wordllama", "tokenizers", "httpx2"} & set(sys.modules)
"""


def test_the_default_needs_no_package_of_models() -> None:
    run([sys.executable, "-c", NOTHING_EARLY], check=True)


def test_a_damaged_table_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    StaticEmbedder._table.cache_clear()
    monkeypatch.setattr(embed, "TABLE", tmp_path)
    for words, codes in ((None, b""), ("ferry\n", b"torn")):
        if words:
            (tmp_path / "words.txt").write_text(words)
            (tmp_path / "vectors.bin").write_bytes(codes)
        with pytest.raises(BackendDown, match="word vectors"):
            StaticEmbedder().embed(["ferry"])


def test_a_server_is_asked_in_batches_and_may_answer_in_any_order(server: EmbeddingServer) -> None:
    def reversed_rows(texts: list[str]) -> Reply:
        data = [{"index": at, "embedding": [len(text), 1]} for at, text in enumerate(texts)]
        return 200, json.dumps({"data": data[::-1]}).encode()

    server.answer = reversed_rows
    found = remote(server.url).embed([*("a" * (number + 1) for number in range(70)), "", "b" * 9_000, "\ud800\0 pier"])
    sizes = [*range(1, 71), 0, 8_000, len("?\0 pier")]
    assert found == [pack_vector([size, 1]) if size else bytes(2) for size in sizes]
    assert all(len(body["input"]) <= 32 and "" not in body["input"] for body, _ in server.asked)
    assert {(body["model"], headers["authorization"]) for body, headers in server.asked} == {("small", f"Bearer {KEY}")}


def test_a_server_is_never_asked_for_nothing_and_gets_no_key_that_is_not_set(server: EmbeddingServer) -> None:
    assert [remote(server.url).embed(texts) for texts in (["", " "], [])] == [[bytes(1)] * 2, []]
    assert server.asked == []
    server.answer = lambda texts: vectors([[len(text), 1] for text in texts])
    remote(server.url, key="").embed_query("ferry", lambda _word: 1.0)
    assert "authorization" not in server.asked[0][1]


def test_another_model_or_server_is_another_model() -> None:
    urls = ["http://127.0.0.1:9/v1", "http://ines:harbour@127.0.0.1:9/v2", "http://["]
    models = {remote(url, name).model for url in urls for name in ("openai:small", "openai:large")}
    assert len(models) == 6
    assert "harbour" not in "".join(models)


WRONG = {
    "too few": vectors([[1, 2]]),
    "too many": vectors([[1, 2]] * 3),
    "one twice": (200, json.dumps({"data": [{"index": 0, "embedding": [1, 2]}] * 2}).encode()),
    "no index": (200, b'{"data": [{"embedding": [1]}, {"embedding": [1]}]}'),
    "not a number": vectors([[1, 2], [float("nan"), 1]]),
    "endless": vectors([[1, 2], [float("inf"), 1]]),
    "huge": vectors([[1, 2], [1e300, 1]]),
    "null": vectors([[1, 2], [None, 1]]),
    "texts": vectors([["one", "two"]] * 2),
    "zeros": vectors([[1, 2], [0, 0]]),
    "empty": vectors([[], []]),
    "ragged": vectors([[1, 2], [1, 2, 3]]),
    "nested": vectors([[[1], [2]]] * 2),
    "no rows": (200, b'{"data": "none"}'),
    "a list": (200, b"[1, 2]"),
    "no JSON": (200, b"<html>busy</html>"),
    "deep": (200, b"[" * 100_000),
    "too much": (200, b" " * (33 << 20)),
    "a key": (401, f"bad key {KEY}".encode()),
    "no such model": (404, b"read this aloud"),
    "quota": (429, b"read this aloud"),
    "trace": (500, b"read this aloud"),
    "refused": (400, b"read this aloud"),
    "too long": (413, b"read this aloud"),
}


@pytest.mark.parametrize("answer", WRONG.values(), ids=WRONG)
def test_what_is_no_vector_for_each_text_is_an_error_that_repeats_nothing(
    server: EmbeddingServer, answer: Reply
) -> None:
    server.answer = answer
    with pytest.raises(BackendDown) as caught:
        remote(server.url).embed(["ferry", "pier"])
    assert (server.url in str(caught.value), isinstance(caught.value, TextRefused)) == (True, answer[0] in (400, 413))
    assert not any(word in str(caught.value) for word in (KEY, "aloud"))


def test_vectors_of_several_sizes_are_an_error(server: EmbeddingServer) -> None:
    server.answer = lambda texts: vectors([[1.0] * len(texts)] * len(texts))
    with pytest.raises(BackendDown):
        remote(server.url).embed(["ferry"] * 40)


@pytest.mark.parametrize(
    "url", ["http://ines:harbour@127.0.0.1:9/v1", "harbour", "ftp://127.0.0.1", "http://[", "http://\0", "//"]
)
def test_a_server_that_is_not_there_is_down(url: str) -> None:
    with pytest.raises(BackendDown) as caught:
        remote(url).embed(["ferry"])
    assert "ines:harbour" not in str(caught.value)


def test_a_server_that_hangs_is_down_in_time_and_so_is_one_whose_key_is_none(server: EmbeddingServer) -> None:
    server.hold.clear()
    for embedder in (remote(server.url, seconds=0.1), remote(server.url, key="schlüssel\n")):
        with pytest.raises(BackendDown):
            embedder.embed(["ferry"])
