"""Vectors of texts: from the table in the package, and from a server that may answer anything."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from subprocess import run

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from notebook_sync.errors import BackendDown
from notebook_sync.search.base import Embedder
from notebook_sync.search.embedder import open_embedder
from notebook_sync.settings import SearchSettings
from tests.scripted_llm import Asked, Line, Reply, ScriptedServer, as_json, embeddings, failure

KEY = "sk_harbour_4711"
Remote = Callable[..., Embedder]


@pytest.fixture
def words() -> Embedder:
    return opened(SearchSettings())


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        server.say(counted)
        yield server


@pytest.fixture
def remote(server: ScriptedServer) -> Iterator[Remote]:
    with ExitStack() as made:

        def make(*, name: str = "openai:small", url: str = "", key: str = KEY, seconds: float = 30.0) -> Embedder:
            settings = SearchSettings(name, url or server.url, "HARBOUR_KEY", seconds)
            return made.enter_context(closing(opened(settings, {"HARBOUR_KEY": key} if key else {})))

        yield make


def opened(settings: SearchSettings, environ: dict[str, str] | None = None) -> Embedder:
    embedder = open_embedder(settings, environ or {})
    assert embedder is not None
    return embedder


def counted(asked: Asked) -> Reply:
    """Of each text, how long it is and how many spaces it has."""
    return embeddings([[len(text), text.count(" "), 1] for text in asked.body["input"]])


def alike(embedder: Embedder, one: str, other: str) -> float:
    first, second = embedder.embed([one, other])
    return float(first @ second)


def test_there_is_none_where_the_settings_say_off() -> None:
    assert open_embedder(SearchSettings("off"), {}) is None


def test_words_that_mean_much_the_same_are_nearer_than_others(words: Embedder) -> None:
    query = "when does the boat sail in the morning"
    departure = alike(words, query, "The ferry departs at dawn.")

    assert departure > alike(words, query, "Taxes on income are due in spring.") + 0.1
    assert departure > alike(words, query, "def parse(text): return json.loads(text)") + 0.1


def test_neither_case_nor_marks_nor_spelling_of_accents_matters(words: Embedder) -> None:
    assert alike(words, "THE FERRY, at Café Ines!", "**the** ferry -- at `cafe\u0301` ines") == pytest.approx(
        1, abs=1e-5
    )


def test_the_first_of_several_lines_counts_as_much_as_the_others(words: Embedder) -> None:
    title, body = "Harbour fees", "Berths are paid by the metre and by the night. " * 5
    both = words.embed([f"{title}\n{body}"])[0]
    first, rest = words.embed([title, body])

    assert float(both @ first) == pytest.approx(float(both @ rest), abs=1e-5)


def test_scripts_that_part_no_words_are_read_too(words: Embedder) -> None:
    assert alike(words, "渡船到港口", "港口的船") > alike(words, "渡船到港口", "税法") + 0.1


def test_a_text_of_any_length_and_kind_has_a_vector_of_length_one_or_zero(words: Embedder) -> None:
    texts = ["", " \n", "!?…", "🙂🛥️", "\ud800", "\0", "ferry \ud800\0 harbour", "ferry " * 400_000, "f" * 2_000_000]

    vectors = words.embed(texts)

    assert vectors.dtype == np.float32
    assert vectors.shape == (len(texts), words.dimensions)
    assert not vectors[:6].any()
    assert np.linalg.norm(vectors[6:], axis=1) == pytest.approx(1, abs=1e-5)
    assert float(vectors[7] @ words.embed(["ferry"])[0]) == pytest.approx(1, abs=1e-4)
    assert words.embed([]).shape == (0, words.dimensions)


@settings(max_examples=50)
@given(st.lists(st.text(), max_size=4), st.text())
@example(["\r", "\x85a"], "\u2028")
def test_a_text_has_its_vector_whatever_stands_beside_it(others: list[str], text: str) -> None:
    words = opened(SearchSettings())

    alone, among = words.embed([text])[0], words.embed([*others, text])[-1]

    assert np.isfinite(alone).all()
    assert np.array_equal(alone, among)


def test_threads_get_the_vectors_that_one_gets(words: Embedder) -> None:
    texts = [f"berth {number} harbour{number} ferry" for number in range(2_000)]
    expected = words.embed(texts)

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: words.embed(texts), range(8)))

    assert all(np.array_equal(one, expected) for one in found)


def test_the_table_is_read_without_the_package_s_own_code() -> None:
    program = """if True:
        import sys
        from notebook_sync.search.embedder import open_embedder
        from notebook_sync.settings import SearchSettings
        embedder = open_embedder(SearchSettings(), {})
        assert "tokenizers" not in sys.modules
        assert embedder.embed(["ferry"]).any()
        assert not {"wordllama", "openai", "requests"} & set(sys.modules)
    """
    assert run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize("is_there", [False, True])
def test_a_table_that_is_missing_or_broken_says_what_to_do(tmp_path: Path, is_there: bool) -> None:
    if is_there:
        package = tmp_path / "wordllama"
        (package / "weights").mkdir(parents=True)
        (package / "__init__.py").touch()
        (package / "weights" / "l2_supercat_256.safetensors").write_bytes(b"torn")
    program = f"""if True:
        import sys
        from notebook_sync.errors import BackendDown
        from notebook_sync.search.embedder import open_embedder
        from notebook_sync.settings import SearchSettings
        sys.path.insert(0, {str(tmp_path)!r})
        if not {is_there}:
            sys.modules["wordllama"] = None
        try:
            open_embedder(SearchSettings(), {{}}).embed(["ferry"])
        except BackendDown as error:
            print(error)
    """
    told = run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout

    assert "wordllama" in told
    assert 'embeddings = "off"' in told


def test_a_server_is_asked_in_portions_and_answers_in_any_order(server: ScriptedServer, remote: Remote) -> None:
    def reversed_(asked: Asked) -> Reply:
        rows = [{"index": at, "embedding": [len(text), 1]} for at, text in enumerate(asked.body["input"])]
        return as_json({"data": rows[::-1]})

    server.say(reversed_)
    texts = ["a" * (number + 1) for number in range(70)] + ["b" * 9_000] * 6

    vectors = remote().embed(texts)

    assert [round(float(row[0] / row[1])) for row in vectors] == [*range(1, 71), *[8_000] * 6]
    assert all(len(asked.body["input"]) <= 32 for asked in server.asked)
    assert all(sum(map(len, asked.body["input"])) <= 40_000 for asked in server.asked)
    assert {asked.body["model"] for asked in server.asked} == {"small"}
    assert {asked.headers["authorization"] for asked in server.asked} == {f"Bearer {KEY}"}


def test_a_server_is_never_asked_for_nothing_nor_for_what_json_cannot_hold(
    server: ScriptedServer, remote: Remote
) -> None:
    vectors = remote().embed(["", "ferry \ud800\0 pier", " \n"])

    assert [asked.body["input"] for asked in server.asked] == [["ferry ?  pier"]]
    assert vectors.any(axis=1).tolist() == [False, True, False]
    assert np.linalg.norm(vectors[1]) == pytest.approx(1)


def test_a_server_that_wants_no_key_gets_none(server: ScriptedServer, remote: Remote) -> None:
    assert remote(key="").embed(["ferry"]).shape == (1, 3)
    assert KEY not in str(server.asked[0].headers)


def test_dimensions_are_known_after_the_first_answer(remote: Remote) -> None:
    embedder = remote()

    assert (embedder.dimensions, embedder.is_local) == (0, False)
    embedder.embed(["ferry"])
    assert embedder.dimensions == 3


def test_another_model_or_server_is_another_model(remote: Remote) -> None:
    embedders = [
        remote(),
        remote(name="openai:large"),
        remote(url="http://127.0.0.1:9/v1"),
        remote(url="http://odile:harbour@127.0.0.1:9/v2"),
        opened(SearchSettings()),
    ]

    assert len({embedder.model for embedder in embedders}) == 5
    assert not any("harbour" in embedder.model for embedder in embedders)


NOT_SO = {
    "too few": embeddings([[1, 2]]),
    "too many": embeddings([[1, 2]] * 3),
    "one twice": as_json({"data": [{"index": 0, "embedding": [1, 2]}] * 2}),
    "no index": as_json({"data": [{"embedding": [1, 2]}] * 2}),
    "not a number": embeddings([[1, 2], [float("nan"), 1]]),
    "endless": embeddings([[1, 2], [float("inf"), 1]]),
    "huge": embeddings([[1, 2], [1e300, 1]]),
    "nothing": embeddings([[1, 2], [None, 1]]),  # type: ignore[list-item]  # what no server should say
    "texts": embeddings([["one", "two"]] * 2),  # type: ignore[list-item]  # the same
    "zeros": embeddings([[1, 2], [0, 0]]),
    "empty": embeddings([[], []]),
    "ragged": embeddings([[1, 2], [1, 2, 3]]),
    "nested": embeddings([[[1], [2]]] * 2),  # type: ignore[list-item]  # the same
    "no rows": as_json({"data": "none"}),
    "a list": as_json([1, 2]),
    "no JSON": Reply(b"<html>busy</html>", headers={"Content-Type": "text/html"}),
    "deep": Reply(b"[" * 100_000),
    "cut short": Reply(b'{"data": [', cut=True),
    "too much": Reply(b" " * (5 << 20)),
}


@pytest.mark.parametrize("reply", NOT_SO.values(), ids=NOT_SO.keys())
def test_what_is_no_vector_for_each_text_is_not_believed(server: ScriptedServer, remote: Remote, reply: Line) -> None:
    server.say(reply)
    embedder = remote()

    with pytest.raises(BackendDown) as caught:
        embedder.embed(["ferry", "pier"])

    assert server.url.removesuffix("/v1") in str(caught.value)
    assert embedder.dimensions == 0


def test_vectors_of_other_dimensions_than_before_are_not_believed(server: ScriptedServer, remote: Remote) -> None:
    server.say(embeddings([[1, 2, 3]]), embeddings([[1, 2]]))
    embedder = remote()
    embedder.embed(["ferry"])

    with pytest.raises(BackendDown, match="2 dimensions after such of 3"):
        embedder.embed(["ferry"])


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (failure(401, f"bad key {KEY}"), "HARBOUR_KEY"),
        (failure(404, "no such thing"), "base_url"),
        (failure(429, "quota", Retry_After="3600"), "429"),
        (failure(500, "a trace", Retry_After="0"), "500"),
        (failure(400, "read this aloud"), "takes no such texts"),
        (failure(413, "too long"), "takes no such texts"),
    ],
)
def test_a_server_that_refuses_or_fails_is_down_and_its_words_are_not_repeated(
    server: ScriptedServer, remote: Remote, reply: Reply, told: str
) -> None:
    server.say(reply)

    with pytest.raises(BackendDown, match=told) as caught:
        remote().embed(["ferry"])

    for word in (KEY, "aloud", "trace", "such thing"):
        assert word not in str(caught.value)


def test_a_server_that_says_nothing_is_down_when_its_time_is_over(server: ScriptedServer, remote: Remote) -> None:
    server.say(Reply(hold=True))

    with pytest.raises(BackendDown, match="timeout_seconds"):
        remote(seconds=0.2).embed(["ferry"])


def test_a_server_that_is_not_there_is_down(remote: Remote) -> None:
    with pytest.raises(BackendDown, match="base_url below") as caught:
        remote(url="http://odile:harbour@127.0.0.1:9/v1").embed(["ferry"])

    assert "harbour" not in str(caught.value)


def test_settings_that_lead_nowhere_are_told_as_a_server_that_is_down() -> None:
    """Words are searched all the same."""
    with pytest.raises(BackendDown, match="HARBOUR_KEY is not set"):
        opened(SearchSettings("openai:small", "", "HARBOUR_KEY")).embed(["ferry"])
    with pytest.raises(BackendDown, match=r"search\.base_url"):
        opened(SearchSettings("openai:small", "harbour")).embed(["ferry"])
