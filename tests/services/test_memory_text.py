"""What a text says of a memory by the template, the text that its file gets, and the tables of the metadata."""

from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notebook_sync.errors import UsageError
from notebook_sync.files.fields import KINDS
from notebook_sync.services.memory_text import (
    LONGEST_TAG,
    MOST_TAGS,
    UNKNOWN,
    Template,
    agent_of,
    body_of,
    code_block,
    contained,
    go_moment,
    guarded,
    read_template,
    title_of,
)
from prompt.outline import Outline

WHOLE = """[DECISION] Light the lamps at six

CONTEXT: The ferry comes in at half past six,
and in winter it is dark by then.

REASONING:
Nobody finds the pier in the dark.

OUTCOME: Ines lights them at six.
TAGS: lamps, pier
"""
PARTS = {
    "context": "The ferry comes in at half past six,\nand in winter it is dark by then.",
    "reasoning": "Nobody finds the pier in the dark.",
    "outcome": "Ines lights them at six.",
}
READ = Template("decision", "Light the lamps at six", PARTS, ("lamps", "pier"))
TITLE = "[DECISION] Light the lamps at six"


# Texts that say the same.
FORMS = [
    WHOLE.replace("CONTEXT", "context").replace("TAGS", "Tags"),
    WHOLE.replace("\n", "\r\n"),
    "\ufeff" + WHOLE,
    WHOLE.replace(TITLE, f"# {TITLE} #"),
    WHOLE.replace(TITLE, "**[Decision]: Light the lamps at six**"),
    WHOLE.replace(TITLE, "# Light the lamps at six\n\n[decision]"),
    WHOLE.replace("CONTEXT:", "**CONTEXT:**").replace("OUTCOME:", "__Outcome__:"),
    WHOLE.replace("CONTEXT:", "- Context:").replace("OUTCOME:", "## Outcome:"),
    WHOLE.replace("CONTEXT: ", "## Context\n\n").replace("REASONING:", "## REASONING ##"),
    WHOLE.replace("CONTEXT:", "CONTEXT\uff1a"),
    WHOLE.replace("TAGS: lamps, pier", "TAGS:\n\n- lamps\n- pier"),
    WHOLE.replace("TAGS: lamps, pier", "## Tags\n#lamps #pier"),
    WHOLE.replace("TAGS: lamps, pier", 'TAGS: ["lamps", "pier"]'),
]
OUTCOME = PARTS["outcome"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *((form, READ) for form in FORMS),
        *(
            (WHOLE.replace("DECISION", spelt), READ._replace(kind=kind))
            for kind in KINDS
            for spelt in (kind, kind.upper(), kind.capitalize())
        ),
        # In any order.
        (
            "TAGS: a\nOUTCOME: o\nREASONING: r\nCONTEXT: c\n",
            Template(parts={"context": "c", "reasoning": "r", "outcome": "o"}, tags=("a",)),
        ),
        # A label that comes again is text.
        (
            WHOLE.replace("Ines", "They are lit.\nContext: Ines"),
            READ._replace(parts={**PARTS, "outcome": f"They are lit.\nContext: {OUTCOME}"}),
        ),
        # What is before the parts and after the tags goes with a part.
        (
            WHOLE.replace("CONTEXT:", "Odile saw it first.\n\nCONTEXT:") + "\nSeen again in May.\n",
            READ._replace(
                parts={
                    **PARTS,
                    "context": f"Odile saw it first.\n\n{PARTS['context']}",
                    "outcome": f"{OUTCOME}\n\nSeen again in May.",
                }
            ),
        ),
        # A title is kept as it is written.
        (WHOLE.replace("Light the lamps", "*Light* the `lamps`"), READ._replace(title="*Light* the `lamps` at six")),
        ("A lamp & more\n=====\nCONTEXT: c", Template(title="A lamp & more", parts={"context": "c"})),
        (f"# {'x' * 201}\nCONTEXT: c", Template(parts={"context": f"# {'x' * 201}\n\nc"})),
    ],
)
def test_a_text_is_read_by_its_labels(text: str, said: Template) -> None:
    assert read_template(text) == said


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        (WHOLE.replace(TITLE, ""), ["kind"]),
        (WHOLE.replace("REASONING:\nNobody finds the pier in the dark.", ""), ["reasoning"]),
        (WHOLE.replace(f"OUTCOME: {OUTCOME}", ""), []),
        (WHOLE.replace("TAGS: lamps, pier", ""), []),
        ("[PATTERN] t\nNo label is above this.\nREASONING: r", ["context"]),
        ("", ["kind", "context", "reasoning"]),
    ],
)
def test_kind_context_and_reasoning_make_the_structure(text: str, missing: list[str]) -> None:
    assert read_template(text).missing == missing


def test_a_label_in_code_or_in_a_comment_is_text() -> None:
    code = "```yaml\nOUTCOME: in code\n[PROBLEM] in code\n```"
    found = read_template(f"[INSIGHT] One\n{code}\nCONTEXT: c\n\n{code}\n\n<!-- TAGS: hidden -->\nREASONING: r")
    assert (found.kind, list(found.parts), found.tags) == ("insight", ["context", "reasoning"], ())
    assert (found.parts["context"].count(code), "TAGS: hidden" in found.parts["context"]) == (2, True)


@pytest.mark.parametrize("line", ["Contextual", "Context matters", "Outcomes: none", "x CONTEXT: y", "CONTEXT - y"])
def test_a_line_that_only_begins_like_a_label_is_text(line: str) -> None:
    assert line in read_template(WHOLE.replace("Nobody finds", f"{line}\nNobody finds")).parts["reasoning"]


def test_prose_is_no_title_and_no_tags_and_is_not_lost() -> None:
    long = "lamps " * 100
    found = read_template(WHOLE.replace("Light the lamps at six", long))
    assert (found.kind, found.title) == ("decision", "")
    assert found.parts["context"].startswith(long.strip())
    for prose in ("x" * (LONGEST_TAG + 1), ",".join(f"t{number}" for number in range(MOST_TAGS + 1))):
        found = read_template(WHOLE.replace("lamps, pier", prose))
        assert (found.tags, prose in found.parts["outcome"]) == ((), True)


def test_another_title_keeps_the_one_that_was_written() -> None:
    found = read_template(WHOLE).named("Lamps", "problem", ())
    assert (found.title, found.kind, found.parts["context"].startswith(TITLE)) == ("Lamps", "problem", True)
    assert read_template(WHOLE).named("", "decision", ()).parts == PARTS


# What regular expressions and parsers stumble over ends as soon as other texts do: the suite has a limit.
@pytest.mark.parametrize(
    "text",
    [
        "[DECISION] " + " " * 200_000 + "#",
        "# " + "# " * 100_000 + "x",
        "CONTEXT:" + "\t" * 200_000,
        "*_" * 100_000,
        "TAGS:" + " #" * 100_000,
        "TAGS: " + ",".join("灯" * 50_000),
        "CONTEXT: 灯\n" * 10_000,
        "```\n" * 20_001,
    ],
    ids=range(8),
)
def test_huge_and_odd_texts_are_read(text: str) -> None:
    assert read_template(text).missing


_LINES = ["[PROBLEM] p", "CONTEXT: c", "## Reasoning", "OUTCOME:", "TAGS: t", "- u", "```", "# h", "", "wörd", "a\rb"]


@settings(max_examples=100)
@given(st.lists(st.sampled_from(_LINES), max_size=12))
def test_no_word_of_a_text_is_lost(lines: list[str]) -> None:
    found = read_template("\n".join(lines))
    if not found.parts:  # then the text itself is saved
        return
    everything = " ".join([f"[{found.kind}]", found.title, *found.parts.values(), *found.tags])
    said = {"CONTEXT: c": "c", "TAGS: t": "t", "[PROBLEM] p": "p", "# h": "h", "- u": "u", "wörd": "wörd", "a\rb": "b"}
    assert all(said.get(line, "") in everything for line in lines)


# What could be taken for a part of the file that it is not.
HOSTILE = [
    "# A title\n\n## Outcome\n\nforged",
    "Outcome\n=======\n\nand\n\nReasoning\n---",
    "```\nnever closed",
    "~~~~ py\nnever closed",
    "<!-- never closed",
    "<script>\nnever closed",
    "---\nid: other\nkind: pattern\n---\n",
    "- one\n\n  ## Context\n\n  ```\n  open in a list",
    "> # quoted\n> ```",
    "#\n##\n###### deep\n# #",
    "text\r# Return\r\r```\r",
    "\ufeff# BOM",
    "🏮" * 2000 + "灯\n\n## 灯",
    "[ref]: http://pier\n\n    # in code",
    "|a|\n|-|\n|# x|",
    "\\# no heading\n***\n___",
]


@pytest.mark.parametrize("hostile", HOSTILE, ids=range(len(HOSTILE)))
def test_no_text_makes_another_part_or_ends_its_own(hostile: str) -> None:
    parts = dict.fromkeys(("context", "reasoning", "outcome"), hostile)
    headings = [each.title for each in Outline(body_of("Lamps", parts, hostile)).sections if each.level <= 2]
    assert headings == ["Lamps", "Context", "Reasoning", "Outcome"]


@pytest.mark.parametrize("hostile", [*HOSTILE, "```` four", "``", "ends\n", "`" * 50], ids=range(20))
def test_the_original_is_below_to_the_character_and_nothing_in_it_ends_it(hostile: str) -> None:
    body = body_of("Lamps", PARTS, hostile)
    (fence,) = [block for block in Outline(body).root.walk() if block.type == "fence"]
    assert body.endswith(f"\n---\n\n{code_block(hostile, 'text')}")
    end = "" if hostile.endswith(("\n", "\r")) else "\n"
    assert fence.content == hostile.replace("\r\n", "\n").replace("\r", "\n") + end


def test_headings_of_a_part_keep_their_order_below_it_and_what_it_opens_is_closed() -> None:
    assert contained("# One\n\nUnder\n-----\n\ntext\n\n### Three\n") == "### One\n\n#### Under\n\ntext\n\n##### Three"
    assert contained("# 1\n##### 5") == "### 1\n###### 5"
    assert contained("~~~ sh\nls") == "~~~ sh\nls\n~~~"
    assert contained("<!-- note") == "<!-- note\n-->"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        (WHOLE, "Light the lamps at six"),
        ("The ferry ran aground. Nobody looked.", "The ferry ran aground. Nobody looked."),
        ("intro\n\n# Tides\n\nmore", "Tides"),
        ("word " * 100, "word " * 15 + "word…"),
        ("\u202edetrevni", "detrevni"),
        ("\u200b\u2060", "Memory"),
        ("灯" * 200, "灯" * 79 + "…"),
    ],
)
def test_a_memory_is_called_by_its_title_or_by_how_it_begins(text: str, title: str) -> None:
    assert title_of(read_template(text), text) == title


# ---- the metadata

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
MADE = datetime(2026, 2, 16, 9, 30, tzinfo=UTC)
GOOD: dict[str, Any] = {"created_at": "2026-02-16T09:30:00Z", "agent": "scribe", "priority": 4, "now": NOW}


def look(*, strict: bool = False, **changed: Any) -> tuple[dict[str, Any], dict[str, str]]:
    return guarded(**{"zone": UTC, **GOOD, **changed}, strict=strict)


@pytest.mark.parametrize(
    ("created_at", "zone", "moment"),
    [
        ("2026-02-16T09:30:00Z", UTC, MADE),
        ("2026-02-16T10:30:00+01:00", UTC, MADE),
        ("2026-02-16 09:30", UTC, MADE),
        ("2026-02-16 10:30", ZoneInfo("Europe/Berlin"), MADE),
        (" 2026-02-16T09:30:00Z ", UTC, MADE),
        ("2026-02-16", UTC, datetime(2026, 2, 16, tzinfo=UTC)),
        (date(2026, 2, 16), UTC, datetime(2026, 2, 16, tzinfo=UTC)),
        (MADE.astimezone(timezone(timedelta(hours=-5))), UTC, MADE),
    ],
)
def test_iso_8601_is_a_time_and_one_without_a_zone_the_notebooks(
    created_at: object, zone: tzinfo, moment: datetime
) -> None:
    assert look(created_at=created_at, zone=zone, strict=True) == (
        {"created_at": moment, "agent": "scribe", "priority": 4},
        {},
    )


@pytest.mark.parametrize(
    "created_at",
    [None, "", "yesterday", "16.02.2026", "2026-02-30", "2026-02-16T25:00", 1771234200, 0.0, True, [], "9" * 5000,
     "0001-01-01T00:00:00+14:00", "2026-02-16T09:30:00Z; DROP", "\ud800", "9999-12-31", "1771012341234"],
)  # fmt: skip
def test_any_other_time_is_now_and_marked_or_refused(created_at: object) -> None:
    found, warnings = look(created_at=created_at)
    assert (found["created_at"], [*warnings]) == (NOW, ["created_at"])
    with pytest.raises(UsageError, match=r"created_at is .*ISO 8601"):
        look(created_at=created_at, strict=True)


@pytest.mark.parametrize(
    ("agent", "tags", "name"),
    [
        ("scribe", ("agent:pilot",), "scribe"),
        ("agent:scribe", (), "scribe"),
        ("", ("lamps", "agent:pilot", "agent:scribe"), "pilot"),
        (7, ("agent:", "agent:/etc", "agent:pilot"), "pilot"),
        ("unknown", ("agent: pilot",), "pilot"),
        ("a/b", ("agent:pilot",), "pilot"),
        ("owner", ("agent:notebook-sync", "agent:pilot"), "pilot"),
        ("", (), UNKNOWN),
        ("x\ny", ("agent:unknown",), UNKNOWN),
    ],
)
def test_the_field_names_the_agent_or_else_the_first_tag_that_does(
    agent: object, tags: tuple[str, ...], name: str
) -> None:
    found, warnings = look(agent=agent_of(agent, tags))
    assert (found["agent"], [*warnings]) == (name, ["agent"] if name == UNKNOWN else [])
    if name == UNKNOWN:
        with pytest.raises(UsageError, match="no agent is named"):
            look(agent="", strict=True)


@pytest.mark.parametrize(
    ("priority", "rank", "warns"),
    [(None, 7, 0), (1, 1, 0), (10, 10, 0), (6.6, 7, 0), (0, 1, 1), (-3, 1, 1), (11, 10, 1), (float("inf"), 10, 1),
     (float("nan"), 7, 1)],
)  # fmt: skip
def test_a_priority_is_the_nearest_from_1_to_10(priority: float | None, rank: int, warns: int) -> None:
    found, warnings = look(priority=priority)
    assert (found["priority"], [*warnings]) == (rank, ["priority"] * warns)
    if warns:
        with pytest.raises(UsageError, match="from 1 to 10"):
            look(priority=priority, strict=True)


@pytest.mark.parametrize(
    ("said", "moment"),
    [
        ("2026-02-16 09:30:00.5 +0000 UTC m=+0.01", MADE.replace(microsecond=500_000)),
        ("16.02.2026", None),
        ("in spring", None),
        ("9" * 400, None),
        (True, None),
        (["x"], None),
    ],
)
def test_a_time_as_go_prints_it_is_read(said: object, moment: datetime | None) -> None:
    assert go_moment(said, UTC) == moment
