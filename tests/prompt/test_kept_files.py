"""Twelve files as owners write them, at many caps: what survives still says what the owner wrote."""

from __future__ import annotations

import re
from functools import cache

import pytest

from prompt import count_tokens, trim
from prompt.outline import Outline
from tests.kept_table import FILES, FOLDER


def text_of(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


@cache
def cuts_of(name: str) -> list[str]:
    """What is left of a file at every fourth cap, up to one token under the whole."""
    text = text_of(name)
    return [trim(text, cap, count_tokens, path=name).text for cap in range(count_tokens(text) - 1, 0, -4)]


@pytest.mark.parametrize("name", FILES)
def test_the_file_has_the_size_of_a_real_one(name: str) -> None:
    assert 1000 <= len((FOLDER / name).read_bytes()) <= 4000


@pytest.mark.parametrize("name", FILES)
def test_what_is_shown_of_it_is_read_as_the_blocks_of_the_file(name: str) -> None:
    def blocks(text: str) -> set[tuple[str, str]]:
        kinds = ("list_item", "heading", "row", "blockquote")
        return {(one.type, one.shown.split("\n")[0]) for one in Outline(text).root.walk() if one.type in kinds}

    whole = blocks(text_of(name))
    assert all(blocks(cut) <= whole for cut in cuts_of(name))


def test_no_prohibition_is_shown_without_its_lead_in() -> None:
    prohibitions = ("- promise a berth", "- name a passenger", "- refund more", "- sign a contract")
    for cut in cuts_of("standing-orders.md"):
        lead_in = cut.find("You must NEVER do any of these:")
        assert all(lead_in >= 0 and cut.find(one) > lead_in for one in prohibitions if one in cut)


def test_no_ticked_task_is_shown_while_an_open_one_is_missing() -> None:
    whole = text_of("reminders.md").count("[ ]")
    for cut in cuts_of("reminders.md"):
        assert not re.search(r"^ *- \[x\]", cut, re.MULTILINE) or cut.count("[ ]") == whole


@pytest.mark.parametrize("name", ["log-oldest-first.md", "diary-newest-first.md"])
def test_the_newest_days_of_a_log_survive(name: str) -> None:
    days = re.compile(r"^(?:- (\S{10}):|## (\d.*))", re.MULTILINE)
    whole = [match[0] for match in days.finditer(text_of(name))]
    newest_first = whole if name.startswith("diary") else whole[::-1]
    for cut in cuts_of(name):
        shown = {match[0] for match in days.finditer(cut)}
        assert shown == set(newest_first[: len(shown)])


def test_a_quote_is_shown_with_its_own_attribution() -> None:
    pairs = re.findall(r"^((?:> .*\n)+)\n(— .*)$", text_of("quotes.md"), re.MULTILINE)
    assert len(pairs) == 7
    for cut in cuts_of("quotes.md"):
        for quote, attribution in pairs:
            assert (quote in cut) == (f"{quote}\n{attribution}\n" in cut)
