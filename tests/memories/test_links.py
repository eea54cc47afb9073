"""Links between memories: what becomes of the file, and of what is no link."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from notebook_sync import Notebook, Session
from notebook_sync.errors import EditFailed, NoSuchNote, NotPermitted, UsageError
from notebook_sync.mirror.memories import RELATIONS, Link
from notebook_sync.notes.memories.relations import merged, with_link
from notebook_sync.notes.memories.suggestions import LONGEST_REASONING, MOST_LINKS, UNSURE, suggested_in
from notebook_sync.operations.memories import IngestedLinks
from notebook_sync.operations.registry import plain

OWNER, TASK, EXTERNAL = Session.owner(), Session.task("scribe"), Session.external("scribe")
PATH = "memories/decision/lamps.md"
LINK = Link("solves", "aground", 0.9, "because: [dark], # 灯", "odile")
SPELT = 'solves, to: aground, confidence: 0.9, reasoning: "because: [dark], # 灯", source: odile}'
# What a file says, and what it says with the link in it.
FILES = {
    "no frontmatter": ("# Lamps\n", f"---\nrelations:\n- {{type: {SPELT}\n---\n# Lamps\n"),
    "no relations": (
        "---\ntitle: Lamps # so\n---\nText\n",
        f"---\ntitle: Lamps # so\nrelations:\n- {{type: {SPELT}\n---\nText\n",
    ),
    "none yet": (
        "---\nrelations: []\nid: a\n---\n",
        f"---\nrelations:\n- {{type: {SPELT}\nid: a\n---\n",
    ),
    "null": ("---\nrelations:\nid: a\n---\n", f"---\nrelations:\n- {{type: {SPELT}\nid: a\n---\n"),
    "in blocks, with comments": (
        "---\nrelations:\n  # first\n  - type: causes # why\n    to: b\n\n  # after\nid: a # mine\n---\nText",
        "---\nrelations:\n  # first\n  - type: causes # why\n    to: b\n"
        f"  - {{type: {SPELT}\n\n  # after\nid: a # mine\n---\nText",
    ),
    "in one line": (
        "---\nrelations: [{type: causes, to: b}] # all\n---\n",
        f"---\nrelations: [{{type: causes, to: b}}, {{type: {SPELT}] # all\n---\n",
    ),
    "with CRLF, a mark and umlauts": (
        "\ufeff---\r\ntitle: Lämpchen 🏮\r\nrelations:\r\n- {type: causes, to: b}\r\nid: ä\r\n---\r\nText\r\n",
        "\ufeff---\r\ntitle: Lämpchen 🏮\r\nrelations:\r\n- {type: causes, to: b}\r\n"
        f"- {{type: {SPELT}\r\nid: ä\r\n---\r\nText\r\n",
    ),
    "with what is malformed": (
        "---\nrelations:\n- junk\n- {type: rumour, to: b}\n- 5\n---\n",
        f"---\nrelations:\n- junk\n- {{type: rumour, to: b}}\n- 5\n- {{type: {SPELT}\n---\n",
    ),
    "said otherwise": (
        "---\nrelations:\n- {type: solves, to: aground} # mine\n- {type: causes, to: b}\n---\n",
        f"---\nrelations:\n- {{type: {SPELT} # mine\n- {{type: causes, to: b}}\n---\n",
    ),
    "said otherwise in a block": (
        "---\nrelations:\n- type: Solves\n  to: aground\n  reasoning: |\n    old\n    # old\n# next\n"
        "- {type: causes, to: b}\n---\n",
        f"---\nrelations:\n- {{type: {SPELT}\n# next\n- {{type: causes, to: b}}\n---\n",
    ),
    "said otherwise, with more": (
        "---\nrelations:\n- {to: aground, type: solves, seen: [1, 2]}\n---\n",
        f"---\nrelations:\n- {{type: {SPELT[:-1]}, seen: [1, 2]}}\n---\n",
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_link_changes_no_byte_of_the_rest(name: str) -> None:
    before, after = FILES[name]
    raw, action, link = with_link(PATH, before.encode(), LINK, merged)
    assert raw.decode() == after
    assert (action, link) == ("updated" if "otherwise" in name else "added", LINK)
    assert with_link(PATH, raw, LINK, merged) == (raw, "kept", LINK)


@pytest.mark.parametrize(
    "text",
    [
        "---\nrelations: {type: solves, to: b}\n---\n",
        "---\nrelations: yes\n---\n",
        "---\nrelations: [\n---\n",
        "---\nopen",
    ],
)
def test_frontmatter_that_cannot_take_a_link_is_left_as_it_is(text: str) -> None:
    with pytest.raises(EditFailed, match="mend"):
        with_link(PATH, text.encode(), LINK, merged)


def test_what_is_not_said_anew_stays_known() -> None:
    assert merged(LINK, Link("solves", "aground", 0.4)) == Link("solves", "aground", 0.4, LINK.reasoning, "odile")


# In a notebook.


def opened(root: Path, more: str = "") -> Notebook:
    (root / "notebook.toml").write_text(f'[search]\nembeddings = "off"\n{more}')
    for name, kind in (("lamps", "decision"), ("aground", "problem"), ("tides", "pattern")):
        file = root / f"memories/{kind}/{name}.md"
        file.parent.mkdir(parents=True)
        file.write_text(f"---\nid: {name}\n---\nOf {name}.\n")
    notebook = Notebook.open(root)
    notebook.sync()
    return notebook


@pytest.fixture
def notebook(tmp_path: Path) -> Iterator[Notebook]:
    with opened(tmp_path) as notebook:
        yield notebook


def text_of(notebook: Notebook, path: str = PATH) -> str:
    return (notebook.root / path).read_text()


def reasons(told: IngestedLinks) -> list[str]:
    return [one.reason for one in told.dropped]


def test_a_link_is_written_into_the_file_it_starts_from(notebook: Notebook) -> None:
    told = notebook.memories.link(
        "lamps", "Solves", "memories/problem/aground.md", TASK, confidence=0.8, reasoning="Light"
    )
    assert plain(told) == {
        "from": "lamps",
        "to": "aground",
        "type": "solves",
        "confidence": 0.8,
        "reasoning": "Light",
        "source": "",
        "action": "added",
    }
    line = "- {type: solves, to: aground, confidence: 0.8, reasoning: Light}"
    assert text_of(notebook) == f"---\nid: lamps\nrelations:\n{line}\n---\nOf lamps.\n"
    assert [row.relations for row in notebook.memories.list(OWNER).results] == [0, 1, 0]
    assert notebook.memories.link("lamps", "solves", "aground", TASK, confidence=0.8).action == "kept"
    again = notebook.memories.link("lamps", "solves", "aground", TASK, source="odile")
    assert (again.action, again.confidence, again.reasoning) == ("updated", 1.0, "Light")


def test_confidence_is_from_0_to_1(notebook: Notebook) -> None:
    for given, taken in ((-1.0, 0.0), (7.0, 1.0), (float("inf"), 1.0), (10**400, 1.0), (0.33333333, 0.3333)):
        assert notebook.memories.link("lamps", "causes", "tides", OWNER, confidence=given).confidence == taken
    with pytest.raises(UsageError, match="number from 0 to 1"):
        notebook.memories.link("lamps", "causes", "tides", OWNER, confidence=float("nan"))


def test_what_cannot_be_linked_is_refused_and_nothing_changes(notebook: Notebook) -> None:
    (notebook.root / "pages").mkdir()
    (notebook.root / "pages/pier.md").write_text("The pier.\n")
    before = text_of(notebook)
    with pytest.raises(UsageError, match=", ".join(RELATIONS)):
        notebook.memories.link("lamps", "likes", "tides", OWNER)
    with pytest.raises(UsageError, match="itself"):
        notebook.memories.link("lamps", "similar", PATH, OWNER)
    for end in ("nowhere", "", "\ud800", "memories/decision/none.md"):
        with pytest.raises(NoSuchNote):
            notebook.memories.link("lamps", "similar", end, OWNER)
    with pytest.raises(NoSuchNote, match="no memory"):
        notebook.memories.link("lamps", "similar", "pages/pier.md", OWNER)
    with pytest.raises(NotPermitted):
        notebook.memories.link("lamps", "similar", "tides", EXTERNAL)
    with pytest.raises(NotPermitted):
        notebook.memories.ingest([], EXTERNAL)
    assert text_of(notebook) == before


def test_a_memory_that_a_session_may_not_read_is_not_there_for_it(tmp_path: Path) -> None:
    withheld = '[[prompt.files]]\npath = "memories/problem/aground.md"\nsessions = ["owner"]\n'
    with opened(tmp_path, withheld) as notebook:
        for start, end in (("lamps", "aground"), ("aground", "lamps")):
            with pytest.raises(NoSuchNote) as there:
                notebook.memories.link(start, "similar", end, TASK)
            with pytest.raises(NoSuchNote) as nowhere:
                notebook.memories.link(
                    start.replace("aground", "nowhere"), "similar", end.replace("aground", "nowhere"), TASK
                )
            assert str(there.value).replace("aground", "nowhere") == str(nowhere.value)
        told = notebook.memories.ingest(
            [{"from": "lamps", "to": end, "type": "similar"} for end in ("aground", "nowhere")], TASK
        )
        assert reasons(told) == ["there is no memory 'aground'", "there is no memory 'nowhere'"]
        assert notebook.memories.link("lamps", "similar", "aground", OWNER).action == "added"


def test_links_of_one_file_are_one_commit(tmp_path: Path) -> None:
    git = ["git", "-C", str(tmp_path)]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "config", "user.email", "ines@harbour.example"], check=True)
    subprocess.run([*git, "config", "user.name", "Ines"], check=True)
    with opened(tmp_path) as notebook:
        links = [
            {"from": "lamps", "to": "aground", "type": "solves", "confidence": 0.9, "synthesis_id": "s1"},
            {"from": "tides", "to": "aground", "type": "causes", "confidence": 0.7, "reasoning": "Low\nwater"},
            {"from": "lamps", "to": "tides", "type": "expands"},
        ]
        told = notebook.memories.ingest(links, TASK)
        assert [(one["from"], one["to"], one["action"]) for one in told.ingested] == [
            ("lamps", "aground", "added"),
            ("lamps", "tides", "added"),
            ("tides", "aground", "added"),
        ]
        assert (told.kept, told.dropped, told.warnings) == ([], [], [])
        log = subprocess.run([*git, "log", "--format=%s"], check=True, capture_output=True, text=True)
        assert sorted(log.stdout.splitlines()) == [
            "Link to 2 memories: memories/decision/lamps.md",
            "Link to aground: memories/pattern/tides.md",
        ]
        assert 'confidence: 0.7, reasoning: "Low water"}' in text_of(notebook, "memories/pattern/tides.md")
        assert f"confidence: {UNSURE}}}" in text_of(notebook)
        again = notebook.memories.ingest(links, TASK)
        assert (again.ingested, len(again.kept)) == ([], 3)


def test_what_a_person_said_is_not_said_over(notebook: Notebook) -> None:
    notebook.memories.link("lamps", "solves", "aground", OWNER, reasoning="Odile saw it")
    suggestion = {"from": "lamps", "to": "aground", "type": "solves", "confidence": 0.2, "source": "synthesis"}
    told = notebook.memories.ingest([suggestion], TASK)
    assert (told.ingested, told.kept[0]["reasoning"], told.kept[0]["confidence"]) == ([], "Odile saw it", 1.0)
    notebook.memories.ingest([{**suggestion, "type": "causes"}], TASK)
    better = notebook.memories.ingest([{**suggestion, "type": "causes", "confidence": 0.6}], TASK)
    assert (better.ingested[0]["action"], better.ingested[0]["confidence"]) == ("updated", 0.6)


def test_who_rewrites_the_link_of_a_synthesis_makes_it_their_own(notebook: Notebook) -> None:
    suggestion = {"from": "lamps", "to": "aground", "type": "solves", "source": "bridge", "confidence": 0.4}
    notebook.memories.ingest([{**suggestion, "synthesis_id": "s1", "reasoning": "Light"}], TASK)
    before = text_of(notebook)
    same = notebook.memories.ingest([{**suggestion, "synthesis_id": "s2"}], TASK)
    assert (same.ingested, same.kept[0]["synthesis_id"]) == ([], "s1")
    assert notebook.memories.link("lamps", "solves", "aground", OWNER, confidence=0.4).action == "kept"
    assert text_of(notebook) == before
    own = notebook.memories.link("lamps", "solves", "aground", OWNER, confidence=0.9)
    assert (own.action, own.source, own.synthesis_id, own.reasoning) == ("updated", "", "", "Light")
    assert "s1" not in text_of(notebook)
    after = notebook.memories.ingest([{**suggestion, "synthesis_id": "s3"}], TASK)
    assert (after.ingested, after.kept[0]["confidence"]) == ([], 0.9)


GOOD: dict[str, Any] = {"from": "lamps", "to": "aground", "type": "solves"}


@pytest.mark.parametrize(
    "one",
    [
        5,
        None,
        "lamps solves aground",
        [],
        {},
        {**GOOD, "from": 5},
        {**GOOD, "to": ""},
        {**GOOD, "type": "rumour"},
        {**GOOD, "type": ["solves"]},
        {**GOOD, "confidence": "high"},
        {**GOOD, "confidence": True},
        {**GOOD, "confidence": float("nan")},
        {**GOOD, "confidence": None, "type": None},
        {**GOOD, "to": "lamps"},
        10**5_000,
        {**GOOD, "type": 10**5_000},
        {**GOOD, "type": [10**5_000], "to": 10**5_000},
        {"x" * 10_000: "y" * 10_000, **{str(number): [] for number in range(1000)}},
    ],
    ids=range(18),
)
def test_what_is_no_link_is_told_and_stops_no_other(one: object) -> None:
    dropped: list[dict[str, Any]] = []
    assert suggested_in([one, GOOD], dropped) == [("lamps", Link("solves", "aground", UNSURE))]
    assert len(dropped) == 1
    assert len(str(dropped)) < 5_000
    assert dropped[0]["reason"]


@pytest.mark.parametrize("value", ["links", 5, None, 0.5, b"x"])
def test_what_holds_no_links_is_told(value: object) -> None:
    dropped: list[dict[str, Any]] = []
    assert suggested_in(value, dropped) == []
    assert len(dropped) == 1


def test_texts_of_a_link_are_a_line_each_of_a_length_that_fits() -> None:
    long = {**GOOD, "reasoning": "灯\n\0\ud800" * 5_000, "source": 5, "synthesis_id": "s\u20281"}
    ((_, link),) = suggested_in([long], [])
    assert len(link.reasoning) == LONGEST_REASONING
    assert (link.reasoning.isprintable(), link.source, link.synthesis_id) == (True, "", "s 1")


def test_of_links_twice_and_too_many_the_first_are_taken() -> None:
    dropped: list[dict[str, Any]] = []
    many = [GOOD, {**GOOD, "confidence": 1}, *({**GOOD, "to": f"m{number}"} for number in range(MOST_LINKS))]
    assert len(suggested_in(many, dropped)) == MOST_LINKS - 1
    assert [one["reason"] for one in dropped] == [
        "it is said twice",
        *["no more than 1,000 links are taken in at once"] * 2,
    ]


def test_a_file_that_cannot_take_a_link_stops_no_other(notebook: Notebook) -> None:
    lamps = notebook.root / PATH
    lamps.write_text("---\nid: lamps\nrelations: none\n---\nOf lamps.\n")
    (notebook.root / "memories/pattern/tides.md").rename(notebook.root / "memories/pattern/moved.md")
    told = notebook.memories.ingest([GOOD, {**GOOD, "from": "tides"}, {**GOOD, "from": "aground", "to": "lamps"}], TASK)
    assert reasons(told) == ["its relations are no list of links; mend that first", "memories/pattern/tides.md is gone"]
    assert [one["from"] for one in told.ingested] == ["aground"]
    assert lamps.read_text() == "---\nid: lamps\nrelations: none\n---\nOf lamps.\n"
