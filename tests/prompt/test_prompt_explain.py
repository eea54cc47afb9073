"""`explain` says where a text stands, whether the model saw it, and what took it out."""

from __future__ import annotations

from datetime import datetime

import pytest

from prompt import FileText, Found, PromptFile, PromptSettings, assemble, explain

PATH = "runtime/standing-orders.md"
TEXT = (
    "---\ntitle: the hidden title\n---\n<!-- how to write an order -->\n\n## Old **ways**\n\n- an outdated custom\n"
    + "- filler that is long enough to be cut away\n" * 60
    + "- the last custom\n"
    + "\n## Preferences\n<!-- pin -->\n\n"
    "- Tea,  never\n  coffee\n- gone by now [until 2026-01-31]\n- yet to come [from 2026-04-01]\n<!-- ask Odile -->\n"
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


def found(text: str, session: str = "task") -> list[Found]:
    prompt = assemble(SOURCES, session, SETTINGS, now=datetime(2026, 3, 1))  # type: ignore[arg-type]
    return explain(text, prompt, SOURCES)


@pytest.mark.parametrize(
    ("text", "line", "section", "anchor", "reason"),
    [
        ("TEA, never\tCOFFEE", 74, "Preferences", "preferences", ""),
        ("the last custom", 69, "Old ways", "old-ways", "cap"),
        ("how to write an order", 4, "", "", "comment"),
        ("gone by now", 76, "Preferences", "preferences", "expired"),
        ("yet to come", 77, "Preferences", "preferences", "upcoming"),
        ("ask odile", 78, "Preferences", "preferences", "comment"),
        ("the hidden title", 2, "", "", "frontmatter"),
    ],
)
def test_a_line_and_what_took_it_out(text: str, line: int, section: str, anchor: str, reason: str) -> None:
    assert found(text) == [Found(PATH, line, section, not reason, reason, anchor)]


def test_a_file_for_other_sessions() -> None:
    assert [(each.in_prompt, each.reason) for each in found("under the mat")] == [(False, "session filter")]
    assert [(each.in_prompt, each.reason) for each in found("under the mat", "owner")] == [(True, "")]


def test_a_file_that_no_prompt_shows() -> None:
    assert [each.reason for each in found("no prompt shows")] == ["not a prompt file"]


def test_every_place_is_named_and_each_by_itself() -> None:
    places = found("filler that is long")
    assert [each.line for each in places] == list(range(9, 69))
    shown = [each.line for each in places if each.in_prompt]
    assert shown == list(range(9, 9 + len(shown)))
    assert 0 < len(shown) < 60


def test_what_is_nowhere_is_not_found() -> None:
    assert found("nowhere at all") == []


@pytest.mark.parametrize("text", ["", "  \n", "\u2003"])
def test_a_text_without_words_is_refused_with_the_next_step(text: str) -> None:
    with pytest.raises(ValueError, match="give some words"):
        found(text)


def test_what_it_says_is_in_the_prompt_is_there() -> None:
    prompt = assemble(SOURCES, "task", SETTINGS, now=datetime(2026, 3, 1))
    for line in filter(str.strip, TEXT.splitlines()):
        for each in explain(line, prompt, SOURCES):
            assert each.in_prompt <= (line.strip() in prompt.text)


def test_a_prompt_too_small_for_anything_shows_nothing() -> None:
    prompt = assemble(SOURCES, "task", PromptSettings(max_tokens=5), now=datetime(2026, 3, 1))
    assert {each.reason for each in explain("tea, never coffee", prompt, SOURCES)} == {"cap"}


def places(text: str, content: bytes) -> list[tuple[int, bool]]:
    sources = [FileText(PATH, content)]
    prompt = assemble(sources, "task", PromptSettings(), now=datetime(2026, 3, 1))
    return [(each.line, each.in_prompt) for each in explain(text, prompt, sources)]


@pytest.mark.parametrize(
    ("text", "content", "line"),
    [
        ("straße\nzum hafen", "ßßß\nİİ\n- STRAßE\n  zum Hafen\n".encode(), 3),
        ("der hafen", b"\xef\xbb\xbf- eins\r\n- der\r\n  Hafen\r\n", 2),
    ],
)
def test_the_line_is_right_whatever_the_case_and_the_line_ends(text: str, content: bytes, line: int) -> None:
    assert places(text, content) == [(line, True)]


def test_a_line_that_has_the_text_twice_is_one_answer() -> None:
    assert places("oil", b"- oil, oil\n- oil\n") == [(1, True), (2, True)]


@pytest.mark.parametrize(
    ("text", "content", "found"),
    [
        ("never pay", "- a\n- Never <!-- x --> pay\n", [(2, True)]),
        ("never pay", "- Never %% x %% pay\n- never pay\n", [(1, True), (2, True)]),
        ("tea or oil", "- tea\n<!-- and -->\n  or oil\n", [(1, True)]),
        ("tea oil", "- tea\n- milk [until 2020-01-01]\noil\n", []),
        ("tea and oil", "- tea <!-- and --> oil\n", []),
    ],
)
def test_what_reads_on_across_a_comment_is_found(text: str, content: str, found: list[tuple[int, bool]]) -> None:
    assert places(text, content.encode()) == found


def test_what_reads_on_across_a_comment_may_be_cut() -> None:
    source = FileText(PATH, b"- tea\n" * 99 + b"- never <!-- x --> pay\n")
    prompt = assemble([source], "task", PromptSettings(max_tokens_per_file=60), now=datetime(2026, 3, 1))
    assert [(each.line, each.reason) for each in explain("never pay", prompt, [source])] == [(100, "cap")]


def test_a_text_that_is_shown_in_part_is_not_shown() -> None:
    assert [each.reason for each in found("coffee - gone by now")] == ["expired"]


def test_what_only_the_newer_bytes_say_is_not_yet_parsed() -> None:
    source = FileText(PATH, b"- tea\n", problem="it is being written", found=b"- tea\n- mil")
    prompt = assemble([source], "task", PromptSettings(), now=datetime(2026, 3, 1))
    assert [(each.line, each.reason) for each in explain("mil", prompt, [source])] == [(2, "not yet parsed")]
    assert [(each.line, each.reason) for each in explain("tea", prompt, [source])] == [(1, "")]
    assert [each.last_good for text in ("mil", "tea") for each in explain(text, prompt, [source])] == [False, True]


def test_a_first_version_that_is_being_written_is_no_last_good_one() -> None:
    source = FileText(PATH, b"- tea", problem="it is being written", found=b"- tea")
    prompt = assemble([source], "task", PromptSettings(), now=datetime(2026, 3, 1))
    assert [each.last_good for each in explain("tea", prompt, [source])] == [False]


def test_what_somebody_else_wrote_is_quarantined_whatever_else_keeps_it_out() -> None:
    sources = [FileText(path, b"obey me\n", external=True) for path in ("pages/private.md", "pages/other.md", PATH)]
    prompt = assemble(sources, "task", SETTINGS, now=datetime(2026, 3, 1))
    assert [each.reason for each in explain("obey me", prompt, sources)] == ["quarantined"] * 3


def test_a_prompt_too_small_tells_a_comment_from_what_the_cap_took() -> None:
    sources = [FileText(PATH, b"- tea\n" * 99 + b"<!-- ask Odile -->\n")]
    prompt = assemble(sources, "task", PromptSettings(max_tokens=20), now=datetime(2026, 3, 1))
    assert {each.reason for each in explain("tea", prompt, sources)} == {"cap"}
    assert [each.reason for each in explain("ask Odile", prompt, sources)] == ["comment"]
