"""What holds for every prompt, whatever its files say: nothing hidden gets in, nothing else is lost, and each file
stands whole between its tags, within the total, the same each time.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jinja2 import UndefinedError
from markdown_it import MarkdownIt
from markdown_it.token import Token

from notebook_sync import Notebook, Session
from prompt import (
    RUNTIME_FILES,
    SESSIONS,
    Assembler,
    FileText,
    Prompt,
    PromptFile,
    PromptSettings,
    Volatile,
    assemble,
    count_tokens,
)
from prompt.layout import _environment as layout_environment
from tests.prompt import corpora
from tests.prompt.markdown_texts import DOCUMENTS, ODD_DOCUMENTS, WORDS

NOW = datetime(2026, 3, 1)
PATHS = [rule.path for rule in RUNTIME_FILES]
ROOMY = PromptSettings(directive="## Your Notebook", max_tokens=10**6, max_tokens_per_file=10**6)
COMMENT = re.compile(r"<!--(?:-?>|.*?-->)", re.DOTALL)
CORPORA = pytest.mark.parametrize("corpus", ["commonmark", "naughty", "readmes"])
THREE_DOCUMENTS = st.lists(st.one_of(DOCUMENTS, ODD_DOCUMENTS), min_size=3, max_size=3)


def made(texts: list[str], session: str = "task", settings: PromptSettings = ROOMY, **more: object) -> Prompt:
    sources = [FileText(path, text.encode("utf-8", "replace")) for path, text in zip(PATHS, texts, strict=False)]
    return assemble(sources, session, settings, **{"now": NOW, **more})  # type: ignore[arg-type]


def shown(text: str) -> str:
    return made([text]).parts[0].text


def comments_and_code(text: str) -> tuple[list[str], list[str]]:
    """What a Markdown reader takes for comments, and what it takes for code."""
    comments: list[str] = []
    code: list[str] = []

    def look_at(tokens: list[Token]) -> None:
        for token in tokens:
            if token.type in ("html_block", "html_inline"):
                comments.extend(COMMENT.findall(token.content))
            elif token.type in ("fence", "code_block", "code_inline"):
                code.append(token.content.rstrip())
            look_at(token.children or [])

    look_at(MarkdownIt("commonmark").enable("table").parse(text + "\n"))
    return comments, code


def nothing_hidden_is_shown_and_nothing_else_is_lost(text: str) -> None:
    text = text.encode("utf-8", "replace").decode()
    part = made([text]).parts[0]
    assert {gap.reason for gap in part.gaps} <= {"comment", "expired", "upcoming", "frontmatter"}
    kept, position = [], 0
    for gap in part.gaps:
        kept.append(text[position : gap.start])
        position = gap.end
    assert part.text == "".join(kept) + text[position:]
    assert comments_and_code(part.text)[0] == []
    if not part.expired and not text.startswith(("\ufeff", "---")):
        words = {word for code in comments_and_code(text)[1] for word in code.split()}
        in_a_table = {word: word.replace("|", r"\|") for word in words}
        assert all(word in part.text or in_a_table[word] in part.text for word in words)
    if not re.search(r"<!--|%%|[\[(]\s*(until|from)", text, re.IGNORECASE) and not text.startswith(("\ufeff", "---")):
        assert part.text == text


@CORPORA
def test_of_what_others_wrote_only_comments_are_missing(corpus: str) -> None:
    for text in corpora.texts(corpus):
        try:
            nothing_hidden_is_shown_and_nothing_else_is_lost(text)
        except AssertionError as error:
            error.add_note(f"text {text[:2000]!r}")
            raise


@settings(max_examples=40)
@given(st.one_of(DOCUMENTS, ODD_DOCUMENTS))
def test_of_any_document_only_comments_are_missing(text: str) -> None:
    nothing_hidden_is_shown_and_nothing_else_is_lost(text)


@settings(max_examples=30)
@given(
    DOCUMENTS, DOCUMENTS, st.sampled_from(["comment", "fence", "indented", "span"]), st.sampled_from(["", "- ", "> "])
)
def test_a_comment_is_gone_wherever_it_stands_and_stays_where_it_is_code(
    above: str, below: str, place: str, inside: str
) -> None:
    comment = "<!-- the key is under the third stone -->"
    written = {
        "comment": comment,
        "fence": f"```\n{comment}\n```",
        "indented": f"words\n\n    {comment}",
        "span": f"words `{comment}` words",
    }[place]
    behind = " " * len(inside) if inside == "- " else inside
    text = f"{above}\n\n# Here\n\n{inside}{written.replace(chr(10), chr(10) + behind)}\n\n{below}"
    _, code = comments_and_code(text)
    assert (comment in shown(text)) == any(comment in each for each in code)


@settings(max_examples=40)
@given(
    THREE_DOCUMENTS,
    st.sampled_from(SESSIONS),
    st.sampled_from([0, 40, 150, 400, 900, 4000]),
    st.sampled_from([30, 200, 2000]),
)
def test_no_prompt_is_larger_than_its_total_and_every_file_keeps_its_tags(
    texts: list[str], session: str, total: int, cap: int
) -> None:
    prompt = made(texts, session, replace(ROOMY, max_tokens=total, max_tokens_per_file=cap))
    assert count_tokens(prompt.text) == prompt.tokens <= total
    if re.search(r"^<file", prompt.text, re.MULTILINE):
        assert_each_file_stands_between_its_tags(prompt)
    else:  # there was only room for a line on each
        assert all(not part.text or part.text in prompt.text.splitlines() for part in prompt.parts)


@CORPORA
def test_files_that_others_wrote_keep_their_tags_side_by_side(corpus: str) -> None:
    texts = corpora.texts(corpus)
    for start in range(0, len(texts) - 2, 3):
        for settings_ in (ROOMY, replace(ROOMY, max_tokens=1500, max_tokens_per_file=600)):
            prompt = made(texts[start : start + 3], settings=settings_)
            assert prompt.tokens <= settings_.max_tokens
            assert_each_file_stands_between_its_tags(prompt)


def assert_each_file_stands_between_its_tags(prompt: Prompt) -> None:
    """Nothing else in the prompt looks like a tag of its files, and a Markdown reader sees each of them as one."""
    name = re.search(r"^<(file[-\d]*)>", prompt.text, re.MULTILINE)
    assert name, prompt.text
    opening, closing = f"<{name[1]}>", f"</{name[1]}>"
    assert prompt.text.count(opening) == prompt.text.count(closing) == len(prompt.parts)
    position = 0
    for part in prompt.parts:
        tag = f"## {part.name}\n\n{opening}\n"
        inside = prompt.text.index(tag, position) + len(tag)
        position = prompt.text.index(closing, inside)
        above, text, below = prompt.text[inside:position].partition(part.text) if part.text else ("", "", "")
        assert (above.strip(), text) == ("", part.text)
        assert len(below.split()) <= 1, "one line at most closes what the file left open"
    seen = [
        line.strip()
        for token in MarkdownIt("commonmark").parse(prompt.text)
        if token.type in ("inline", "html_block")
        for line in token.content.split("\n")
    ]
    assert seen.count(closing) == len(prompt.parts), "a fence or an open comment swallows the end of its file"


@settings(max_examples=30)
@given(THREE_DOCUMENTS, st.lists(DOCUMENTS, min_size=3, max_size=3), st.sampled_from([0, 60, 300, 900, 4000]))
def test_the_stable_part_is_the_same_whatever_comes_after_it(texts: list[str], after: list[str], total: int) -> None:
    layout = replace(ROOMY, max_tokens=total)
    alone, followed = made(texts, settings=layout), made(texts, settings=layout, volatile=Volatile(*after))
    assert followed.stable == alone.stable
    assert followed.revision == alone.revision
    assert followed.text.startswith(followed.stable)
    assert count_tokens(followed.text) == followed.tokens <= total


@settings(max_examples=20)
@given(THREE_DOCUMENTS, st.sampled_from([150, 900, 4000]))
def test_a_warm_assembler_and_a_new_one_make_the_same_prompt(texts: list[str], total: int) -> None:
    layout = replace(ROOMY, max_tokens=total)
    warm = Assembler(layout)
    for order in (texts, texts[::-1], texts):
        sources = [FileText(path, text.encode("utf-8", "replace")) for path, text in zip(PATHS, order, strict=True)]
        for session in SESSIONS:
            assert warm.assemble(sources, session, now=NOW) == made(order, session, layout)


def test_what_a_warm_assembler_showed_the_owner_is_not_what_it_shows_the_next_session() -> None:
    only_for_owners = PromptFile(PATHS[0], sessions=("owner",))
    warm = Assembler(replace(ROOMY, files=(only_for_owners,), directive="{{ session }}"))
    rules = [FileText(PATHS[0], b"- **Ines** (ines@harbour.example): draft only\n")]
    for session in (*SESSIONS, *SESSIONS):
        prompt = warm.assemble(rules, session, now=NOW)
        assert prompt.text.startswith(f"{session}\n")
        assert ("Ines" in prompt.text) == (session == "owner")


def test_every_process_makes_the_same_prompt(tmp_path: Path) -> None:
    texts = [
        "".join(f"## {place} {day}\n\n- a line on it\n- another\n- the last\n\n" for day in range(60))
        for place in PATHS
    ]
    file = tmp_path / "texts.json"
    file.write_text(json.dumps(texts))
    code = """
import json, sys
from pathlib import Path
from tests.prompt.test_prompt_of_files import ROOMY, made, replace
texts = json.loads(Path(sys.argv[1]).read_text())
print(json.dumps(made(texts, settings=replace(ROOMY, max_tokens=1200)).as_json()))
"""
    answers = {
        subprocess.run(
            [sys.executable, "-c", code, str(file)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "random")
    }
    assert len(answers) == 1
    [answer] = answers
    assert json.loads(answer)["tokens"] > 900


TEMPLATES = st.lists(
    st.one_of(
        WORDS, st.sampled_from(["{{7*7}}", "{%", "%}", "{{ undefined }}", "{#", "#}", "{% raw %}", "$HOME", "\\n"])
    ),
    max_size=12,
).map(" ".join)


@settings(max_examples=30)
@given(TEMPLATES)
def test_nothing_in_a_text_is_a_template(text: str) -> None:
    prompt = made([text], volatile=Volatile(brief=text))
    assert prompt.parts[0].text == text
    assert prompt.text.count(text.strip()) >= (2 if text.strip() else 0)


def test_a_name_that_the_layout_does_not_know_is_an_error_and_no_hole() -> None:
    with pytest.raises(UndefinedError):
        layout_environment().from_string("{{ nobody }}").render()


def test_the_day_is_that_of_the_notebook_for_rules_and_in_words(tmp_path: Path) -> None:
    """Two places on Earth whose days are never the same: the rule holds where its last day is still going on."""
    zones = ("Pacific/Pago_Pago", "Pacific/Kiritimati")

    def days() -> list[date]:
        return [datetime.now(ZoneInfo(zone)).date() for zone in zones]

    def prompts(until: date) -> Iterator[str]:
        for number, zone in enumerate(zones):
            root = tmp_path / f"{until}-{number}"
            (root / "runtime").mkdir(parents=True)
            (root / "notebook.toml").write_text(f'[notebook]\ntimezone = "{zone}"\n')
            rule = f"- **Ines** (ines@harbour.example): draft only [until {until}]\n"
            (root / "runtime" / "external-communications.md").write_text(rule)
            with Notebook.open(root) as notebook:
                yield notebook.prompt(Session.task()).text

    while True:
        before = days()
        texts = list(prompts(before[0]))
        if days() == before:  # else midnight passed meanwhile
            break
    assert ["Ines" in text for text in texts] == [True, False]
    assert [f"Today is {day:%A, %Y-%m-%d}." in text for day, text in zip(before, texts, strict=True)] == [True, True]
