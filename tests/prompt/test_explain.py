"""`explain` says where a text is and what took it out of the prompt; `compare` what a change does to the prompt."""

import doctest
import json
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest

import prompt as package
from prompt import (
    FileText,
    Found,
    Passage,
    Prompt,
    PromptFile,
    PromptSettings,
    Session,
    assemble,
    compare,
    count_tokens,
    explain,
)

PATH = "runtime/standing-orders.md"
NOW = datetime(2026, 3, 1)
TEXT = (
    "---\ntitle: the hidden title\n---\n<!-- how to write an order -->\n\n## Old **ways**\n\n- an outdated custom\n"
    + "- filler that is long enough to be cut away\n" * 60
    + "- the last custom <!-- hidden between --> of old\n"
    + "\n## Preferences\n<!-- pin -->\n\n"
    "- Tea,  never\n  coffee\n- gone by now [until 2026-01-31]\n- yet to come [from 2026-04-01]\n<!-- ask Odile -->\n"
    f"![a map](data:image/png;base64,{'iVBO' * 40})\n"
)
SETTINGS = PromptSettings(
    max_tokens_per_file=120, files=(PromptFile("pages/private.md", "Private", sessions=("owner",)),)
)
SOURCES = [
    FileText(PATH, TEXT.encode()),
    FileText("pages/private.md", b"the key is under the mat\n"),
    FileText("pages/other.md", b"a page that no prompt shows\n"),
    FileText("runtime/reminders.md", None),
]


def found(text: str, session: Session = "task") -> list[Found]:
    return explain(text, assemble(SOURCES, session, SETTINGS, now=NOW), SOURCES)


@pytest.mark.parametrize(
    ("text", "line", "section", "reason"),
    [
        ("TEA, never\tCOFFEE", 74, "Preferences", ""),
        ("the last custom", 69, "Old ways", "cap"),
        ("how to write an order", 4, "", "comment"),
        ("gone by now", 76, "Preferences", "expired"),
        ("coffee - gone by now", 75, "Preferences", "expired"),
        ("yet to come", 77, "Preferences", "upcoming"),
        ("ask odile", 78, "Preferences", "comment"),
        ("png;base64", 79, "Preferences", "payload"),
        ("the hidden title", 2, "", "frontmatter"),
        ("hidden between", 69, "Old ways", "comment"),
    ],
)
def test_a_line_and_what_took_it_out(text: str, line: int, section: str, reason: str) -> None:
    assert found(text) == [Found(PATH, line, section, not reason, reason, section.lower().replace(" ", "-"))]


@pytest.mark.parametrize(
    ("text", "session", "reason"),
    [
        ("under the mat", "task", "session filter"),
        ("under the mat", "owner", ""),
        ("no prompt shows", "owner", "not a prompt file"),
    ],
)
def test_a_file_that_this_prompt_does_not_show(text: str, session: Session, reason: str) -> None:
    assert [(each.in_prompt, each.reason) for each in found(text, session)] == [(not reason, reason)]


def test_every_place_is_named_and_each_by_itself() -> None:
    places = found("filler that is long")
    shown = sum(each.in_prompt for each in places)
    assert [(each.line, each.in_prompt) for each in places] == [(line, line < 9 + shown) for line in range(9, 69)]
    assert 0 < shown < 60
    assert found("nowhere at all") == []


@pytest.mark.parametrize("text", ["", "  \n", "\u2003"])
def test_a_text_without_words_is_refused_with_the_next_step(text: str) -> None:
    with pytest.raises(ValueError, match="give some words"):
        found(text)


def test_what_it_says_is_in_the_prompt_is_there() -> None:
    prompt = assemble(SOURCES, "task", SETTINGS, now=NOW)
    for line in filter(str.strip, TEXT.splitlines()):
        for each in explain(line, prompt, SOURCES):
            assert each.in_prompt <= (line.strip() in prompt.text)


@pytest.mark.parametrize(
    ("text", "content", "lines"),
    [
        ("straße\nzum hafen", "ßßß\nİİ\n- STRAßE\n  zum Hafen\n", [3]),
        ("der hafen", "\ufeff- eins\r\n- der\r\n  Hafen\r\n", [2]),
        ("oil", "- oil, oil\n- oil\n", [1, 2]),
        ("a.*", "- abc\n- a.*\n", [2]),
    ],
)
def test_the_line_is_right_whatever_the_case_and_the_line_ends(text: str, content: str, lines: list[int]) -> None:
    sources = [FileText(PATH, content.encode())]
    answers = explain(text, assemble(sources, "task", PromptSettings(), now=NOW), sources)
    assert [(each.line, each.in_prompt) for each in answers] == [(line, True) for line in lines]


def test_a_last_good_version_is_kept_apart_from_the_bytes_that_are_there_now() -> None:
    source = FileText(PATH, b"- tea\n", problem="it is being written", found=b"- tea\n- mil")
    prompt = assemble([source], "task", PromptSettings(), now=NOW)
    answers = [explain(text, prompt, [source])[0] for text in ("mil", "tea")]
    assert [(one.line, one.reason, one.last_good) for one in answers] == [(2, "not yet parsed", False), (1, "", True)]
    assert not explain("tea", prompt, [source._replace(content=source.found)])[0].last_good


def test_what_somebody_else_wrote_is_quarantined_whatever_else_keeps_it_out() -> None:
    sources = [FileText(path, b"obey me\n", external=True) for path in ("pages/private.md", "pages/other.md", PATH)]
    prompt = assemble(sources, "task", SETTINGS, now=NOW)
    assert [each.reason for each in explain("obey me", prompt, sources)] == ["quarantined"] * 3


def harbour(extra: int) -> str:
    early = "".join(f"- the ferry of day {number}\n" for number in range(12))
    late = "".join(f"- a lamp for berth {number}\n" for number in range(extra))
    return f"## Early *days*\n\n{early}\n## Late\n<!-- pin -->\n\n{late}"


def made(text: str, cap: int = 150) -> Prompt:
    settings = PromptSettings(max_tokens_per_file=cap)
    return assemble([FileText(PATH, text.encode())], "task", settings, now=NOW)


def test_an_edit_that_pushes_a_section_out_names_it_and_the_way_back_brings_it_back() -> None:
    before, after = made(harbour(2)), made(harbour(11))
    change = compare(before, after)
    assert [(each.path, each.anchor, each.heading) for each in change.fell_out] == [(PATH, "early-days", "Early days")]
    shown, still = before.text.splitlines(), after.text.splitlines()
    gone = [line for line in harbour(2).splitlines() if line in shown and line not in still and line.strip()]
    assert change.fell_out[0].tokens == count_tokens("\n".join(gone)) > 0
    assert (change.came_back, change.stable_changes) == ((), True)
    assert (change.tokens_before, change.tokens_after) == (before.tokens, after.tokens)
    back = compare(after, before)
    assert (back.came_back, back.fell_out) == (change.fell_out, ())
    assert compare(made(harbour(4)), made(harbour(2))).fell_out == ()
    assert [each.anchor for each in compare(after, made(harbour(11), cap=900)).came_back] == ["early-days"]


@pytest.mark.parametrize(
    ("before", "after"), [(harbour(11), harbour(11)), ("- tea\n<!-- one -->\n", "- tea\n<!-- two -->\n")]
)
def test_what_the_prompt_does_not_show_is_no_change_and_the_whole_prefix_is_kept(before: str, after: str) -> None:
    change = compare(made(before), made(after))
    assert (change.stable_changes, change.fell_out, change.came_back) == (False, (), ())
    assert change.kept_prefix_tokens == made(before).tokens


def test_the_kept_prefix_ends_at_the_first_change() -> None:
    early = compare(made("- tea\n" + "- oil\n" * 20), made("- milk\n" + "- oil\n" * 20)).kept_prefix_tokens
    late = compare(made("- oil\n" * 20 + "- tea\n"), made("- oil\n" * 20 + "- milk\n")).kept_prefix_tokens
    assert 0 < early < late - 30


def test_a_change_has_its_documented_json_shape() -> None:
    answer = json.loads(json.dumps(compare(made(harbour(2)), made(harbour(11))).as_json()))
    assert set(answer) == {
        "tokens_before", "tokens_after", "fell_out", "came_back", "stable_changes", "kept_prefix_tokens",
    }  # fmt: skip
    assert set(answer["fell_out"][0]) == set(Passage._fields)


def test_the_package_has_a_running_example_and_says_what_each_public_name_is() -> None:
    result = doctest.testmod(package)
    assert (result.failed, result.attempted > 0) == (0, True)
    assert [name for name in package.__all__ if not getattr(package, name).__doc__] == ["Count", "Session"]


def test_importing_the_package_loads_neither_the_notebook_nor_anything_heavy() -> None:
    heavy = ("notebook_sync", "tiktoken", "jinja2", "markdown_it", "regex", "msgspec")
    code = f"import sys, prompt; print([name for name in {heavy} if name in sys.modules])"
    root = Path(package.__file__).parent.parent
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
