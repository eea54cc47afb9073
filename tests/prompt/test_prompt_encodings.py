"""The caps hold in every encoding that tiktoken can make: bytes alone, words, and tokens that span lines and signs."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import tiktoken
import tiktoken.registry
from hypothesis import given, settings
from hypothesis import strategies as st
from tiktoken._educational import bpe_train

from prompt import RUNTIME_FILES, FileText, PromptSettings, Volatile, assemble, encoding_named, trim
from tests.prompt import corpora
from tests.prompt.markdown_texts import DOCUMENTS, ODD_DOCUMENTS
from tests.prompt.test_prompt_properties import shown_places

PATH = "runtime/log.md"
GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
BYTES = {bytes([byte]): byte for byte in range(256)}
SAMPLE = (Path(__file__).parent / "fixtures" / "trim.md").read_text(encoding="utf-8")


def bytes_alone() -> dict[str, Any]:
    """The dearest there can be: one token for each byte, eleven for a family of emoji."""
    return {"pat_str": r"[\s\S]", "mergeable_ranks": BYTES}


def few_words() -> dict[str, Any]:
    """GPT-2's way to cut a text into words, and a small vocabulary learnt from Markdown."""
    return {"pat_str": GPT2, "mergeable_ranks": learnt(GPT2)}


def across_lines() -> dict[str, Any]:
    """A text is one word, so that a token may span the seam of any two pieces: a sum of counts is never the count."""
    return {"pat_str": r"[\s\S]{1,400}", "mergeable_ranks": learnt(r"[\s\S]{1,400}")}


@cache
def learnt(pattern: str) -> dict[bytes, int]:
    with contextlib.redirect_stdout(io.StringIO()):
        return bpe_train(data=SAMPLE, vocab_size=420, pat_str=pattern, visualise=None)


CONSTRUCTORS: dict[str, Callable[[], dict[str, Any]]] = {
    f"harbour_{make.__name__}": lambda make=make: {"name": make.__name__, "special_tokens": {}, **make()}  # type: ignore[misc]
    for make in (bytes_alone, few_words, across_lines)
}
in_each_encoding = pytest.mark.parametrize("name", CONSTRUCTORS)


@cache
def counting(name: str) -> Callable[[str], int]:
    encoding = tiktoken.Encoding(**CONSTRUCTORS[name]())
    return lambda text: len(encoding.encode_ordinary(text))


def the_cut_holds(text: str, cap: int, count: Callable[[str], int]) -> None:
    result = trim(text, cap, count, path=PATH)
    assert count(result.text) == result.tokens <= cap
    assert trim(result.text, cap, count, path=PATH).text == result.text
    shown = shown_places(text, result)
    for larger in (cap + 1, cap + 20, 2 * cap):
        assert shown <= shown_places(text, trim(text, larger, count, path=PATH)), f"at {cap}, not at {larger}"


@in_each_encoding
@settings(max_examples=20)
@given(text=st.one_of(DOCUMENTS, ODD_DOCUMENTS), cap=st.integers(0, 700))
def test_of_any_text_no_more_than_the_cap_is_shown_and_never_less_of_a_larger_one(
    text: str, cap: int, name: str
) -> None:
    the_cut_holds(text, cap, counting(name))


@in_each_encoding
@pytest.mark.parametrize("corpus", ["commonmark", "naughty"])
def test_of_what_others_wrote_no_more_than_the_cap_is_shown(corpus: str, name: str) -> None:
    for text in corpora.texts(corpus):
        the_cut_holds(text, 60, counting(name))


@in_each_encoding
@settings(max_examples=15)
@given(texts=st.lists(DOCUMENTS, min_size=3, max_size=3), total=st.integers(0, 3000), brief=DOCUMENTS)
def test_no_prompt_is_larger_than_its_total(texts: list[str], total: int, brief: str, name: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        encoding_named.cache_clear()
        tiktoken.registry._find_constructors()
        patch.setitem(tiktoken.registry.ENCODING_CONSTRUCTORS, name, CONSTRUCTORS[name])
        sources = [FileText(rule.path, text.encode()) for rule, text in zip(RUNTIME_FILES, texts, strict=True)]
        layout = PromptSettings(max_tokens=total, max_tokens_per_file=700, encoding=name)
        prompt = assemble(sources, "task", layout, now=datetime(2026, 3, 1), volatile=Volatile(brief=brief))
    assert counting(name)(prompt.text) == prompt.tokens <= total
