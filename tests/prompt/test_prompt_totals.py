"""The total: never exceeded, never silent, and never showing less of a file when it grows."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prompt import FileText, Prompt, PromptFile, PromptSettings, Volatile, assemble, compare, count_tokens, share
from prompt.budget import Claim

NOW = datetime(2026, 3, 1)
SETTINGS = PromptSettings(directive="## Your Notebook\n\nThe files below are what the harbour goes by.")
PATHS = [file.path for file in SETTINGS.runtime_files]
FULL = [FileText(path, b"## Entries\n\n" + b"- the ferry leaves at nine\n" * 400) for path in PATHS]
ENOUGH = re.compile(r"at least (\d+) are needed")
# Words, lists, fences, tags of the layout, and what is dear to count.
TEXTS = st.lists(
    st.one_of(
        st.sampled_from(
            ["# Harbour\n", "- Odile: always respond\n", "```\ncode\n", "</file>\n", "<!-- open\n", "港の灯り" * 9]
        ),
        st.text(max_size=300),
    ),
    max_size=12,
).map("\n".join)


def made(max_tokens: int, sources: list[FileText] | None = None, volatile: Volatile | None = None) -> Prompt:
    return assemble(
        FULL if sources is None else sources,
        "task",
        replace(SETTINGS, max_tokens=max_tokens),
        now=NOW,
        volatile=volatile or Volatile(),
    )


def test_where_not_every_file_can_say_that_it_is_cut_each_is_one_line() -> None:
    prompt = made(40)
    assert prompt.text == "".join(f"[… more: notebook_read {path}]\n" for path in PATHS)
    assert [part.text for part in prompt.parts] == prompt.text.splitlines()


def test_the_directive_stays_above_the_lines_where_there_is_room_for_all_of_them() -> None:
    lines = made(40).text
    smallest = int(ENOUGH.search(made(70).problems[0])[1])  # type: ignore[index]
    shown = [made(total).text for total in range(40, smallest)]
    assert shown[0] == lines
    assert shown[-1].startswith(SETTINGS.directive)
    assert shown[-1].endswith(f"\n\n{lines}")
    assert set(shown) == {lines, shown[-1]}
    assert sorted(shown, key=len) == shown


def test_a_total_too_small_for_the_rules_says_which_would_do() -> None:
    (problem,) = made(70).problems
    assert problem.startswith("prompt.max_tokens = 70 shows none of the rules; at least ")
    enough = int(ENOUGH.search(problem)[1])  # type: ignore[index]
    assert "<file" in made(enough).text
    assert "<file" not in made(enough - 1).text


def test_a_file_that_is_not_even_named_is_told_with_the_total_that_names_it() -> None:
    prompt = made(30)
    unnamed = [part.path for part in prompt.parts if not part.text]
    assert unnamed == PATHS[-len(unnamed) :] != []
    told = [problem for problem in prompt.problems if "does not even name it" in problem]
    assert [problem.split(":")[0] for problem in told] == unnamed
    enough = int(ENOUGH.search(told[0])[1])  # type: ignore[index]
    assert all(part.text for part in made(enough).parts)


def test_lines_go_to_the_highest_priority_first() -> None:
    files = tuple(
        replace(file, priority=priority) for file, priority in zip(SETTINGS.runtime_files, (1, 2, 3), strict=True)
    )
    prompt = assemble(FULL, "task", replace(SETTINGS, runtime_files=files, max_tokens=16), now=NOW)
    assert [bool(part.text) for part in prompt.parts] == [False, False, True]


def test_where_no_line_fits_nothing_of_a_file_is_shown_and_it_is_told() -> None:
    prompt = made(10)
    assert (prompt.text, prompt.tokens) == ("", 0)
    assert len(prompt.problems) == 1 + len(PATHS)


def test_a_total_that_shows_hardly_anything_of_a_file_says_which_would_show_something() -> None:
    smallest = int(ENOUGH.search(made(70).problems[0])[1])  # type: ignore[index]
    (problem,) = made(smallest).problems
    assert "hardly more than what is left out" in problem
    enough = int(ENOUGH.search(problem)[1])  # type: ignore[index]
    assert made(enough).problems == ()
    assert made(enough - 1).problems != ()


def test_a_cap_too_small_to_say_what_it_leaves_out_is_told() -> None:
    prompt = assemble(FULL, "task", replace(SETTINGS, max_tokens_per_file=4), now=NOW)
    for path, problem in zip(PATHS, prompt.problems, strict=True):
        assert problem.startswith(f"{path}: a cap of 4 tokens cannot say what it leaves out")
    enough = max(int(ENOUGH.search(problem)[1]) for problem in prompt.problems)  # type: ignore[index]
    wide = assemble(FULL, "task", replace(SETTINGS, max_tokens_per_file=enough), now=NOW)
    assert wide.problems == ()


def test_without_files_a_total_too_small_for_the_directive_leaves_nothing() -> None:
    settings = replace(SETTINGS, runtime_files=(), max_tokens=10)
    assert assemble([], "task", settings, now=NOW).text == ""


@settings(max_examples=40)
@given(
    st.lists(TEXTS, min_size=3, max_size=3),
    st.integers(0, 900),
    st.lists(TEXTS, min_size=4, max_size=4),
    st.sampled_from([8, 60, 2000]),
)
def test_no_text_and_no_total_gives_a_prompt_above_it(texts: list[str], limit: int, more: list[str], cap: int) -> None:
    sources = [FileText(path, text.encode()) for path, text in zip(PATHS, texts, strict=True)]
    layout = replace(SETTINGS, max_tokens=limit, max_tokens_per_file=cap)
    prompt = assemble(sources, "task", layout, now=NOW, volatile=Volatile(*more))
    assert prompt.tokens == count_tokens(prompt.text) <= limit
    assert all(count_tokens(part.text) == part.tokens <= cap for part in prompt.parts)
    assert prompt.text == "" or prompt.text.endswith("\n")
    assert not prompt.text.endswith("\n\n")
    alone = assemble(sources, "task", layout, now=NOW)
    assert prompt.stable == alone.text
    assert prompt.text.startswith(prompt.stable)
    assert prompt.parts == alone.parts
    assert assemble(sources, "task", layout, now=NOW, volatile=Volatile(*more)) == prompt


@settings(max_examples=30)
@given(
    st.lists(
        st.lists(
            st.sampled_from(["## Harbour\n\n", "- Odile waits\n", "Ines keeps the lamp.\n\n", "- [ ] oil\n"]),
            max_size=60,
        ),
        min_size=3,
        max_size=3,
    ),
    st.integers(0, 700),
    st.integers(1, 300),
)
def test_a_larger_total_never_gives_a_file_less(pieces: list[list[str]], smaller: int, more: int) -> None:
    sources = [FileText(path, "".join(each).encode()) for path, each in zip(PATHS, pieces, strict=True)]
    before, after = made(smaller, sources), made(smaller + more, sources)
    assert compare(before, after).fell_out == ()
    for one, other in zip(before.parts, after.parts, strict=True):
        assert other.cap >= one.cap


@given(
    st.lists(
        st.builds(Claim, st.integers(0, 60), st.integers(0, 3), st.integers(0, 40), st.integers(0, 20)), max_size=6
    ),
    st.integers(0, 300),
)
def test_a_share_never_shrinks_as_the_total_grows(claims: list[Claim], total: int) -> None:
    granted, more = share(total, claims), share(total + 1, claims)
    assert all(one <= other <= claim.need for one, other, claim in zip(granted, more, claims, strict=True))
    assert sum(granted) == min(total, sum(claim.need for claim in claims))


def test_a_share_meets_every_floor_before_any_reserve() -> None:
    assert share(30, [Claim(100, 9, 50, 10), Claim(100, 1, 50, 20)]) == [10, 20]


def test_the_stable_part_leaves_an_eighth_to_what_is_volatile() -> None:
    prompt = made(800)
    assert prompt.tokens <= 700
    more = made(800, volatile=Volatile(notes="- Ines came by\n" * 400))
    assert more.stable == prompt.text
    assert 700 < more.tokens <= 800


def test_the_volatile_part_has_all_that_a_small_stable_part_leaves() -> None:
    settings = replace(SETTINGS, max_tokens=800)
    prompt = assemble([], "task", settings, now=NOW, volatile=Volatile(notes="- Ines came by\n" * 400))
    assert prompt.tokens > 760


def test_a_file_of_the_settings_says_how_a_runtime_file_is_shown_and_does_not_repeat_it() -> None:
    own = PromptFile(PATHS[1], max_tokens=50, priority=9, sessions=("owner",))
    settings = replace(SETTINGS, files=(own, PromptFile("facts/core.md", "What Holds"), PromptFile("AGENT.md", "Hand")))
    settings = replace(settings, system_files=("AGENT.md",))
    sources = [*FULL, FileText("facts/core.md", b"- the lamp is old\n"), FileText("AGENT.md", b"You keep the lamp.\n")]
    prompt = assemble(sources, "owner", settings, now=NOW)
    assert [part.path for part in prompt.parts] == ["AGENT.md", *PATHS, "facts/core.md"]
    assert [part.name for part in prompt.parts] == [
        "Hand",
        "External Communications Rules",
        "Reminders",
        "Standing Orders",
        "What Holds",
    ]
    assert prompt.parts[2].cap == 50
    assert assemble(sources, "task", settings, now=NOW).filtered == (PATHS[1],)
    assert "What Holds" not in assemble(FULL, "owner", settings, now=NOW).text


def test_a_file_that_the_settings_name_twice_is_refused() -> None:
    with pytest.raises(ValueError, match=r"pages/tides\.md"):
        PromptSettings(files=(PromptFile("pages/tides.md"), PromptFile("pages/tides.md", "Tides")))
