"""`compare` tells what a change does to the prompt: what falls out, what comes back, what a cache can keep."""

from __future__ import annotations

import json
from datetime import datetime

from prompt import FileText, Passage, Prompt, PromptSettings, assemble, compare, count_tokens

PATH = "runtime/reminders.md"
NOW = datetime(2026, 3, 1)


def made(text: str, cap: int = 150, session: str = "task") -> Prompt:
    settings = PromptSettings(max_tokens_per_file=cap)
    return assemble([FileText(PATH, text.encode())], session, settings, now=NOW)  # type: ignore[arg-type]


def harbour(extra: int) -> str:
    early = "".join(f"- the ferry of day {number}\n" for number in range(12))
    late = "".join(f"- a lamp for berth {number}\n" for number in range(extra))
    return f"## Early *days*\n\n{early}\n## Late\n<!-- pin -->\n\n{late}"


def test_an_edit_that_pushes_a_section_out_names_it() -> None:
    before, after = made(harbour(2)), made(harbour(11))
    change = compare(before, after)
    assert [(each.path, each.anchor, each.heading) for each in change.fell_out] == [(PATH, "early-days", "Early days")]
    shown, still = before.text.splitlines(), after.text.splitlines()
    gone = [line for line in harbour(2).splitlines() if line in shown and line not in still and line.strip()]
    assert change.fell_out[0].tokens == count_tokens("\n".join(gone)) > 0
    assert change.came_back == ()
    assert (change.tokens_before, change.tokens_after) == (before.tokens, after.tokens)
    assert change.stable_changes


def test_the_way_back_brings_back_what_fell_out() -> None:
    before, after = made(harbour(2)), made(harbour(11))
    assert compare(after, before).fell_out == ()
    back = compare(made(harbour(11)), made(harbour(11), cap=900)).came_back
    assert [each.anchor for each in back] == ["early-days"]
    assert compare(after, before).came_back == compare(before, after).fell_out


def test_what_the_file_itself_lost_has_not_fallen_out() -> None:
    assert compare(made(harbour(4)), made(harbour(2))).fell_out == ()
    assert compare(made(harbour(2)), made(harbour(3), cap=150)).came_back == ()


def test_nothing_changed_is_no_change_and_the_whole_prefix_is_kept() -> None:
    one, other = made(harbour(11)), made(harbour(11))
    change = compare(one, other)
    assert not change.stable_changes
    assert (change.fell_out, change.came_back) == ((), ())
    assert change.kept_prefix_tokens == one.tokens


def test_a_comment_that_changes_is_no_change_of_the_prompt() -> None:
    change = compare(made("- tea\n<!-- one -->\n"), made("- tea\n<!-- two -->\n"))
    assert not change.stable_changes


def test_the_kept_prefix_ends_where_the_first_change_stands() -> None:
    early = compare(made("- tea\n" + "- oil\n" * 20), made("- milk\n" + "- oil\n" * 20)).kept_prefix_tokens
    late = compare(made("- oil\n" * 20 + "- tea\n"), made("- oil\n" * 20 + "- milk\n")).kept_prefix_tokens
    assert 0 < early < late - 30


def test_a_file_that_falls_to_one_line_falls_out() -> None:
    settings = PromptSettings(max_tokens=80)
    sources = [FileText(PATH, harbour(2).encode())]
    change = compare(made(harbour(2)), assemble(sources, "task", settings, now=NOW))
    assert [each.anchor for each in change.fell_out] == ["early-days", "late"]


def test_json_has_its_documented_shape() -> None:
    answer = json.loads(json.dumps(compare(made(harbour(2)), made(harbour(11))).as_json()))
    assert set(answer) == {
        "tokens_before", "tokens_after", "fell_out", "came_back", "stable_changes", "kept_prefix_tokens",
    }  # fmt: skip
    assert set(answer["fell_out"][0]) == set(Passage.__slots__)
