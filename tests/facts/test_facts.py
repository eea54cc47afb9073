"""Facts as sessions use them: adding, finding, verifying, strengthening and moving them, and what files say then."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from notebook_sync import Notebook, Session, patience
from notebook_sync.errors import (
    EditFailed,
    NoSuchFact,
    NotebookError,
    NotPermitted,
    OverCap,
    UnwritableFile,
    UsageError,
)
from notebook_sync.files.facts import id_of
from notebook_sync.files.note import Stamp
from notebook_sync.files.vault import Vault
from tests.scripted_llm import Asked, Reply, ScriptedServer, embeddings, failure
from tests.waiting import eventually

OWNER, TASK, EXTERNAL = Session.owner(), Session.task("scribe"), Session.external("scribe")
NOTES, CORE, ARCHIVE = "facts/notes.md", "facts/core.md", "facts/archive.md"
FERRY, LAMP, ROPES = "The ferry leaves at nine", "The lamp is lit at six", "Ropes hang in the boat shed"
TEXT = f"""## Key Topics

- {LAMP}

## Important Facts

- {FERRY}
- {ROPES}
"""


@pytest.fixture
def notebook(tmp_path: Path) -> Iterator[Notebook]:
    (tmp_path / "notebook.toml").write_text("")
    with Notebook.open(tmp_path) as opened:
        yield opened


@pytest.fixture
def harbour(notebook: Notebook) -> Notebook:
    save(notebook, NOTES, TEXT)
    return notebook


def save(notebook: Notebook, path: str, text: str) -> None:
    """Save a file by hand."""
    file = notebook.root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode())


def text_of(notebook: Notebook, path: str) -> str:
    return (notebook.root / path).read_bytes().decode()


def contents(notebook: Notebook, scope: str = "notes", session: Session = OWNER) -> list[str]:
    return [fact.content for fact in notebook.facts.list(session, scope=scope).results]


def fact(notebook: Notebook, content: str) -> dict[str, Any]:
    (found,) = [one for one in notebook.facts.list(OWNER, scope="all").results if one.content == content]
    return found


# Adding.


def test_a_first_fact_makes_the_file_with_its_usual_sections(notebook: Notebook) -> None:
    added = notebook.facts.add(FERRY, TASK, importance="high")
    assert (added.note_id, added.action, added.importance) == (id_of(FERRY), "added", 0.7)
    assert (added.section, added.path, added.content, added.warnings) == (
        "Important Facts",
        NOTES,
        FERRY,
        [],
    )
    assert text_of(notebook, NOTES) == (
        f"## Key Topics\n\n## Important Facts\n\n- {FERRY}\n\n## People & Entities\n\n## Ongoing Threads\n\n"
        "## File Knowledge\n"
    )


def test_a_fact_goes_to_the_end_of_its_section_and_a_new_section_to_the_end_of_the_file(harbour: Notebook) -> None:
    harbour.facts.add("The tower clock stands at noon", TASK, section="key topics")
    harbour.facts.add("Bosun sleeps in the office", TASK, section="Animals")
    assert text_of(harbour, NOTES) == (
        TEXT.replace(f"- {LAMP}\n", f"- {LAMP}\n- The tower clock stands at noon\n")
        + "\n## Animals\n\n- Bosun sleeps in the office\n"
    )


@pytest.mark.parametrize("again", [FERRY, f"  {FERRY} \n", "the ferry leaves at 9:00", "Ferry leaves at nine."])
def test_a_fact_that_is_said_again_is_strengthened_and_not_written_twice(harbour: Notebook, again: str) -> None:
    before = fact(harbour, FERRY)
    told = harbour.facts.add(again, TASK)
    assert (told.action, told.note_id, told.content) == ("reinforced", before.note_id, FERRY)
    assert (told.base, told.access_count) == (0.6, 1)
    assert text_of(harbour, NOTES) == TEXT


@pytest.mark.parametrize(
    "other",
    [
        "The ferry leaves at ten",
        "The ferry does not leave at nine",
        "The ferry leaves at nine from the north quay",
        "The ferry leaves at nine on Sundays",
        "The lamp is lit at seven",
    ],
)
def test_what_may_say_something_else_is_kept_beside_it(harbour: Notebook, other: str) -> None:
    assert harbour.facts.add(other, TASK).action == "added"
    assert set(contents(harbour)) == {FERRY, LAMP, ROPES, other}


def test_a_fact_in_core_is_known_and_one_in_the_archive_comes_back_to_where_it_was(harbour: Notebook) -> None:
    harbour.facts.promote(FERRY, OWNER)
    harbour.facts.archive(LAMP, OWNER)
    assert harbour.facts.add(FERRY, TASK).action == "reinforced"
    back = harbour.facts.add(LAMP, TASK, importance="high")
    assert (back.action, back.path, back.section) == ("restored", NOTES, "Key Topics")
    assert back.base == 0.7
    assert (contents(harbour, "core"), contents(harbour, "archive")) == ([FERRY], [])
    assert text_of(harbour, NOTES) == TEXT.replace(f"- {FERRY}\n", "")


def test_without_embeddings_only_words_tell_that_a_fact_is_known(tmp_path: Path) -> None:
    (tmp_path / "notebook.toml").write_text('[search]\nembeddings = "off"\n')
    with Notebook.open(tmp_path) as notebook:
        save(notebook, NOTES, TEXT)
        assert notebook.facts.add("the ferry leaves at 9", TASK).action == "reinforced"
        assert notebook.facts.add("The ferry leaves at ten", TASK).action == "added"
        assert notebook.facts.verify("Ropes hang in a boat shed", TASK).verdict == "CONFIRMED"


@pytest.mark.parametrize(
    "text",
    [
        "one\n- two",
        "one\n## Heading\ntwo",
        "one\n\n\ntwo",
        "- [ ] a task",
        "# a heading",
        "---",
        "1. first",
        "> quoted",
        "```\ncode\n```",
        "ends --> here",
        "{{7*7}} {% raw %}",
    ],
)
def test_whatever_a_text_holds_it_is_one_fact_that_says_that(harbour: Notebook, text: str) -> None:
    added = harbour.facts.add(text, TASK)
    assert (added.action, added.content, added.section) == ("added", text.strip(), "Important Facts")
    assert sorted(contents(harbour)) == sorted([FERRY, LAMP, ROPES, text])
    assert text_of(harbour, NOTES).startswith(TEXT)


@pytest.mark.parametrize(
    "text", ["", " \n\t", "half \ud800 a character", "a\0b", "one <!-- two --> three", "x" * 10_001]
)
def test_a_text_that_cannot_be_a_fact_is_refused_and_nothing_is_written(harbour: Notebook, text: str) -> None:
    with pytest.raises(UsageError):
        harbour.facts.add(text, TASK)
    assert text_of(harbour, NOTES) == TEXT


@pytest.mark.parametrize("section", ["a\nb", "<!-- x -->", "x" * 201, "\ud800"])
def test_a_section_that_is_no_heading_is_refused_or_becomes_one_line(harbour: Notebook, section: str) -> None:
    try:
        added = harbour.facts.add("Bosun barks", TASK, section=section)
    except UsageError:
        assert text_of(harbour, NOTES) == TEXT
    else:
        assert added.section == "a b"


@pytest.mark.parametrize("importance", ["great", "", 1.1, -1, "nan", True])
def test_an_importance_that_is_none_is_refused(harbour: Notebook, importance: Any) -> None:
    with pytest.raises(UsageError, match="importance"):
        harbour.facts.add("Bosun barks", TASK, importance=importance)
    assert text_of(harbour, NOTES) == TEXT


@pytest.mark.parametrize("eol", ["\n", "\r\n"])
def test_line_ends_a_byte_order_mark_and_a_missing_last_newline_stay(notebook: Notebook, eol: str) -> None:
    text = f"\ufeff---{eol}title: Facts{eol}---{eol}# Facts{eol}{eol}* {LAMP}"
    save(notebook, NOTES, text)
    notebook.facts.add(FERRY, TASK, section="Facts")
    assert text_of(notebook, NOTES) == f"{text}{eol}* {FERRY}"
    notebook.facts.archive(FERRY, OWNER)
    assert text_of(notebook, NOTES) == text


def test_an_edit_is_one_commit_and_one_undo(harbour: Notebook) -> None:
    git(harbour, "init", "-q")
    harbour.facts.add("Bosun barks", TASK)
    harbour.facts.archive(FERRY, OWNER, reason="the timetable changed")
    assert git(harbour, "log", "--format=%s").splitlines()[:2] == [
        "Archive a fact",
        f"Add a fact to Important Facts: {NOTES}",
    ]
    assert git(harbour, "show", "--name-only", "--format=").split() == [ARCHIVE, NOTES]
    assert "Agent: scribe" in git(harbour, "log", "-1", "--skip=1")
    harbour.undo(NOTES, OWNER)
    assert FERRY in contents(harbour)


def git(notebook: Notebook, *arguments: str) -> str:
    names = ("-c", "user.name=Odile", "-c", "user.email=odile@ferry.example")
    return subprocess.run(
        ["git", *names, "-C", str(notebook.root), *arguments], check=True, capture_output=True, text=True
    ).stdout


# Looking.


def test_listing_tells_what_counts_most_first_and_uses_nothing(harbour: Notebook) -> None:
    harbour.facts.reinforce(ROPES, TASK)
    assert contents(harbour, session=TASK)[0] == ROPES
    assert [one.access_count for one in harbour.facts.list(TASK).results] == [1, 0, 0]
    assert [one.content for one in harbour.facts.list(TASK, section="key topics").results] == [LAMP]
    assert harbour.facts.list(TASK, limit=0).results == harbour.facts.list(TASK, stale=True).results == []
    with pytest.raises(UsageError, match="scope"):
        harbour.facts.list(TASK, scope="everything")


def test_a_search_finds_by_meaning_and_an_agent_uses_what_it_finds(harbour: Notebook) -> None:
    found = harbour.facts.search("when does the ferry depart", TASK).results
    assert found[0].content == FERRY
    assert 0 < found[0].similarity <= 1
    assert fact(harbour, FERRY).access_count == 1
    assert fact(harbour, ROPES).access_count == 0
    harbour.facts.search("when does the ferry depart", OWNER)
    harbour.facts.search("when does the ferry depart", EXTERNAL)
    assert fact(harbour, FERRY).access_count == 1
    assert harbour.facts.search("ferry", TASK, limit=0).results == []
    for nothing in ("", "  \n"):
        assert [one.content for one in harbour.facts.search(nothing, TASK).results] == contents(harbour, session=TASK)


@pytest.mark.parametrize(
    "query", ["don't", "C++", '{"$ne": 1}', "a-b OR *", "%' --", "\ud800", "🚢", "\0", "x" * 20_000]
)
def test_a_query_is_data(harbour: Notebook, query: str) -> None:
    assert harbour.facts.search(query, TASK).results is not None
    assert harbour.facts.verify(query, TASK).verdict == "NEW"
    with pytest.raises(NoSuchFact):
        harbour.facts.reinforce(query, TASK)
    with pytest.raises(NoSuchFact):
        harbour.facts.archive(query, TASK)
    assert text_of(harbour, NOTES) == TEXT


def test_what_is_verified_is_confirmed_only_where_a_fact_says_it_all(harbour: Notebook) -> None:
    confirmed = harbour.facts.verify("the ferry leaves at 9:00", TASK)
    assert (confirmed.verdict, confirmed.matches[0].content) == ("CONFIRMED", FERRY)
    assert fact(harbour, FERRY).access_count == 1
    for other in ("The ferry does not leave at nine", "The ferry leaves at ten", f"{FERRY} from the north quay"):
        told = harbour.facts.verify(other, TASK)
        assert (told.verdict, told.matches[0].content) == ("RELATED", FERRY)
        assert told.similarity == told.matches[0].similarity >= 0.6
    new = harbour.facts.verify("Odile was born in Tarn", TASK)
    assert (new.verdict, new.matches) == ("NEW", [])
    assert new.similarity < 0.6
    harbour.facts.verify(FERRY, OWNER)
    harbour.facts.verify(FERRY, EXTERNAL)
    assert fact(harbour, FERRY).access_count == 1


def test_an_archived_fact_confirms_nothing_and_is_not_strengthened(harbour: Notebook) -> None:
    harbour.facts.archive(FERRY, OWNER)
    assert harbour.facts.verify(FERRY, TASK).verdict == "NEW"
    with pytest.raises(UsageError, match="fact restore"):
        harbour.facts.reinforce(FERRY, TASK)


def test_a_fact_is_strengthened_by_id_by_text_and_by_a_text_that_is_near(harbour: Notebook) -> None:
    for count, name in enumerate((id_of(FERRY), id_of(FERRY)[:8], FERRY, "the ferry leaves at 9 then"), 1):
        told = harbour.facts.reinforce(name, TASK)
        assert (told.action, told.content) == ("reinforced", FERRY)
        assert (told.access_count, told.base) == (count, pytest.approx(0.5 + count * 0.1))
    with pytest.raises(NoSuchFact) as missed:
        harbour.facts.reinforce("The ferry never leaves at nine", TASK)
    assert missed.value.candidates[0] == f"{id_of(FERRY)}: {FERRY}"


def test_a_pin_is_what_counts_until_it_goes(harbour: Notebook) -> None:
    save(harbour, NOTES, TEXT.replace(FERRY, f"{FERRY} <!-- importance: 0.9 -->"))
    told = harbour.facts.reinforce(FERRY, TASK)
    assert (told.base, told.pinned, told.access_count) == (0.9, True, 1)
    save(harbour, NOTES, TEXT)
    assert (fact(harbour, FERRY).base, fact(harbour, FERRY).pinned) == (0.5, False)


# Moving.


def test_a_fact_moves_with_all_its_lines_and_comes_back_to_the_byte(notebook: Notebook) -> None:
    item = "- The toll is twelve crowns <!-- importance: 0.8 -->\n  - six on Sundays\n\n    in winter only\n"
    text = f"## Tolls\n\n- one\n{item}\n## Other\n\n- two\n"
    save(notebook, NOTES, text)
    (toll,) = [one for one in notebook.facts.list(OWNER).results if one.content.startswith("The toll")]
    archived = notebook.facts.archive(toll.note_id, OWNER, reason="raised; -->\nin May")
    assert (archived.action, archived.path, archived.section) == ("archived", ARCHIVE, "Tolls")
    assert text_of(notebook, NOTES) == "## Tolls\n\n- one\n\n## Other\n\n- two\n"
    assert "six on Sundays" in text_of(notebook, ARCHIVE)
    assert "from: facts/notes.md -->" in text_of(notebook, ARCHIVE)
    assert notebook.facts.archive(toll.note_id, OWNER).action == "archived"
    restored = notebook.facts.restore(toll.note_id, OWNER)
    assert (restored.action, restored.note_id, restored.path) == ("restored", toll.note_id, NOTES)
    assert sorted(contents(notebook)) == sorted(["one", toll.content, "two"])
    with pytest.raises(UsageError, match="not archived"):
        notebook.facts.restore(toll.note_id, OWNER)


def test_a_section_or_a_file_that_is_gone_is_made_again_for_what_comes_back(notebook: Notebook) -> None:
    save(notebook, "facts/people.md", "## Crew\n\n- Odile steers\n")
    notebook.facts.archive("Odile steers", TASK)
    save(notebook, "facts/people.md", "# People\n")
    notebook.facts.restore("Odile steers", TASK)
    assert text_of(notebook, "facts/people.md") == "# People\n\n## Crew\n\n- Odile steers\n"
    notebook.facts.archive("Odile steers", TASK)
    (notebook.root / "facts/people.md").unlink()
    notebook.facts.restore("Odile steers", TASK)
    assert text_of(notebook, "facts/people.md") == "## Crew\n\n- Odile steers\n"


@pytest.mark.parametrize(
    "place", ["../../etc/x.md", "pages/x.md", "/etc/x.md", "facts/.x.md", "facts/archive.md", "a\0b", ""]
)
def test_an_archive_that_names_a_strange_place_brings_nothing_there(notebook: Notebook, place: str) -> None:
    save(notebook, ARCHIVE, f"## Crew\n\n- Odile steers <!-- archived: 2031-03-01; reason: x; from: {place} -->\n")
    assert notebook.facts.restore("Odile steers", OWNER).path == NOTES
    assert [file.name for file in notebook.root.rglob("*.md")].count("x.md") == 0


def test_a_fact_that_proved_itself_goes_to_the_section_of_its_name_or_of_its_kind(harbour: Notebook) -> None:
    harbour.facts.add("Ines keeps the books", TASK, section="People & Entities")
    harbour.facts.add("Bosun barks", TASK, section="Animals")
    save(harbour, CORE, "## Identity\n\n- The harbour is Odile's\n\n## Animals\n\n- Bosun is a dog\n")
    placed = {name: harbour.facts.promote(name, OWNER).section for name in ("Ines keeps the books", LAMP, FERRY)}
    assert placed == {"Ines keeps the books": "Relationships", LAMP: "Projects", FERRY: "System"}
    told = harbour.facts.promote("Bosun barks", OWNER)
    assert (told.action, told.section, told.path, told.core) == ("promoted", "Animals", CORE, True)
    assert harbour.facts.promote(ROPES, OWNER, section="identity").section == "Identity"
    assert contents(harbour) == []


def test_core_takes_no_more_than_the_prompt_shows(harbour: Notebook) -> None:
    save(harbour, CORE, "## Identity\n\n- " + "many words " * 2000 + "\n")
    with pytest.raises(OverCap):
        harbour.facts.promote(FERRY, OWNER)
    assert text_of(harbour, NOTES) == TEXT


def test_a_name_that_several_facts_begin_with_or_none_is_an_error_with_what_there_is(harbour: Notebook) -> None:
    with pytest.raises(NoSuchFact) as missed:
        harbour.facts.archive("the ferry", OWNER)
    assert missed.value.candidates[0] == f"{id_of(FERRY)}: {FERRY}"
    with pytest.raises(NoSuchFact):
        harbour.facts.archive(id_of(FERRY)[:4], OWNER)
    texts = sorted((f"buoy number {number}" for number in range(20_000)), key=id_of)
    one, other = min(pairwise(texts), key=lambda pair: id_of(pair[0])[:6] != id_of(pair[1])[:6])
    assert id_of(one)[:6] == id_of(other)[:6]
    save(harbour, NOTES, f"- {one}\n- {other}\n")
    with pytest.raises(EditFailed, match="several facts"):
        harbour.facts.archive(id_of(one)[:6], OWNER)


# By hand.


def test_by_hand_is_the_same_as_by_tool(harbour: Notebook) -> None:
    harbour.facts.reinforce(FERRY, TASK)
    before = fact(harbour, FERRY)
    save(harbour, NOTES, TEXT.replace(f"- {FERRY}\n", ""))
    save(harbour, ARCHIVE, f"- {FERRY}\n")
    gone = fact(harbour, FERRY)
    assert (gone.path, gone.access_count, gone.base) == (ARCHIVE, before.access_count, before.base)
    harbour.facts.restore(FERRY, OWNER)
    assert fact(harbour, FERRY).path == NOTES
    save(harbour, NOTES, TEXT.replace(FERRY, "The ferry leaves at nine!"))
    reworded = fact(harbour, "The ferry leaves at nine!")
    assert reworded.access_count == before.access_count
    save(harbour, NOTES, "")
    harbour.sync()
    assert contents(harbour, "all") == []


@pytest.mark.parametrize("with_git", [False, True])
@pytest.mark.parametrize("made", [False, True])
@pytest.mark.parametrize("path", [NOTES, ARCHIVE])
def test_a_move_is_taken_back_as_one_and_so_is_the_taking_back(
    harbour: Notebook, path: str, made: bool, with_git: bool
) -> None:
    if not made:
        save(harbour, ARCHIVE, "- Long ago\n")
    if with_git:
        (harbour.root / ".gitignore").write_text(".notebook/\n")
        named = ("config user.name Ines", "config user.email ines@ferry.example")
        for asked in ("init --quiet", *named, "add -A", "commit --quiet -m Begin"):
            subprocess.run(["git", *asked.split()], cwd=harbour.root, check=True)
    before = {file.name: file.read_bytes() for file in (harbour.root / "facts").iterdir()}
    harbour.facts.archive(FERRY, OWNER)
    after = {file.name: file.read_bytes() for file in (harbour.root / "facts").iterdir()}
    for expected in (before, after, before):
        harbour.undo(path, TASK)
        assert {file.name: file.read_bytes() for file in (harbour.root / "facts").iterdir()} == expected
    assert FERRY in contents(harbour)


def test_of_a_move_that_somebody_built_on_one_file_is_taken_back(harbour: Notebook) -> None:
    harbour.facts.archive(FERRY, OWNER)
    archived = text_of(harbour, ARCHIVE)
    harbour.facts.add("Bosun barks", OWNER)
    harbour.undo(NOTES, OWNER)
    assert contents(harbour) == [LAMP, ROPES]
    assert text_of(harbour, ARCHIVE) == archived


@pytest.mark.parametrize("touched", [NOTES, ARCHIVE])
def test_where_somebody_is_faster_than_the_taking_back_it_looks_anew(
    harbour: Notebook, monkeypatch: pytest.MonkeyPatch, touched: str
) -> None:
    save(harbour, ARCHIVE, "- Long ago\n")
    harbour.facts.archive(FERRY, OWNER)
    moved = {path: text_of(harbour, path) for path in (NOTES, ARCHIVE)}
    by_hand = moved[touched] + "\n- By hand\n"
    saves = iter([by_hand])
    write = Vault.write

    def after_a_person(vault: Vault, path: str, raw: bytes, *, base: str | None) -> Stamp:
        for said in saves:
            save(harbour, touched, said)
        return write(vault, path, raw, base=base)

    monkeypatch.setattr(Vault, "write", after_a_person)
    assert not harbour.undo(NOTES, OWNER).with_others
    assert text_of(harbour, NOTES) == (moved[NOTES] if touched == NOTES else TEXT)
    assert text_of(harbour, ARCHIVE) == (by_hand if touched == ARCHIVE else moved[ARCHIVE])


def test_what_the_owner_kept_for_good_is_for_the_owner_to_take_back(harbour: Notebook) -> None:
    harbour.facts.promote(FERRY, OWNER)
    with pytest.raises(NotPermitted):
        harbour.undo(NOTES, TASK)
    harbour.undo(NOTES, OWNER)
    assert (text_of(harbour, NOTES), (harbour.root / CORE).exists()) == (TEXT, False)


def test_to_be_brought_back_counts_alike_by_hand_and_by_tool(harbour: Notebook) -> None:
    def brought_back() -> tuple[float, int, list[str]]:
        row = harbour.fact_rows.get_note(id_of(FERRY))
        assert row is not None
        return row.unpinned, row.access_count, [str(event["action"]) for event in row.source_history]

    start = fact(harbour, FERRY).base
    harbour.facts.archive(FERRY, OWNER)
    assert harbour.facts.restore(FERRY, OWNER).base == pytest.approx(start + 0.1)
    assert brought_back() == (pytest.approx(start + 0.1), 0, ["added", "archived", "restored"])
    harbour.facts.archive(FERRY, OWNER)
    save(harbour, ARCHIVE, "")
    save(harbour, NOTES, TEXT)
    assert fact(harbour, FERRY).base == pytest.approx(start + 0.2)
    assert brought_back()[1:] == (0, ["added", "archived", "restored", "archived", "restored"])


def test_what_is_pinned_gains_nothing_by_coming_back(harbour: Notebook) -> None:
    save(harbour, NOTES, f"- {FERRY} <!-- importance: 0.3 -->\n")
    harbour.facts.archive(FERRY, OWNER)
    harbour.facts.restore(FERRY, OWNER)
    row = harbour.fact_rows.get_note(id_of(FERRY))
    assert row is not None
    assert (row.importance, row.unpinned) == (0.3, 0.5)


def test_what_a_person_saves_meanwhile_is_kept(harbour: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    read = harbour.vault.read
    saved: list[str] = []

    def read_before_a_save(path: str) -> Any:
        found = read(path)
        if path == NOTES and not saved:
            saved.append(path)
            save(harbour, NOTES, TEXT + "- Odile was here\n")
        return found

    monkeypatch.setattr(harbour.vault, "read", read_before_a_save)
    harbour.facts.add("Bosun barks", TASK)
    assert text_of(harbour, NOTES) == TEXT + "- Odile was here\n- Bosun barks\n"


def test_two_that_add_the_same_fact_at_once_write_it_once(harbour: Notebook) -> None:
    together = threading.Barrier(4)
    told: list[str] = []

    def add(text: str) -> None:
        with Notebook.open(harbour.root) as other:
            together.wait()
            told.append(other.facts.add(text, TASK).action)

    texts = ["Bosun barks at noon", "bosun barks at noon.", "Bosun barks at noon", "Bosun barks at 12"]
    threads = [threading.Thread(target=add, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(told) == ["added", "added", "reinforced", "reinforced"]  # noon is not said to be twelve
    assert len(contents(harbour)) == 5


# Files as they may be.


def test_a_file_that_cannot_be_written_or_read_is_left_and_told_of(harbour: Notebook) -> None:
    file = harbour.root / NOTES
    raw = TEXT.encode() + b"- caf\xe9\n"
    file.write_bytes(raw)
    with pytest.raises(EditFailed, match="UTF-8"):
        harbour.facts.add("Bosun barks", TASK)
    assert file.read_bytes() == raw


def test_a_folder_that_takes_no_file_leaves_all_as_it_was(harbour: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    write = harbour.vault.write

    def full(path: str, raw: bytes, **named: Any) -> Any:
        if path == NOTES:
            raise UnwritableFile(path, "no space left on device")
        return write(path, raw, **named)

    monkeypatch.setattr(harbour.vault, "write", full)
    with pytest.raises(UnwritableFile):
        harbour.facts.archive(FERRY, OWNER)
    assert text_of(harbour, NOTES) == TEXT
    assert not (harbour.root / ARCHIVE).exists()


def test_a_silent_store_keeps_no_fact_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "notebook.toml").write_text('[mirror]\nurl = "mongodb://127.0.0.1:9/"\ntimeout_seconds = 0.2\n')
    with Notebook.open(tmp_path) as notebook:
        save(notebook, NOTES, TEXT)
        added = notebook.facts.add("Bosun barks", TASK, importance=0.7)
        assert (added.action, added.path, added.importance) == ("added", NOTES, 0.7)
        assert any("saved; what is known" in warning for warning in added.warnings)
        assert notebook.facts.add("Bosun barks", TASK).action == "reinforced"
        assert notebook.facts.archive(FERRY, OWNER).path == ARCHIVE
        with pytest.raises(NotebookError):
            notebook.facts.list(TASK)
    (tmp_path / "notebook.toml").write_text("")
    with Notebook.open(tmp_path) as notebook:
        assert set(contents(notebook, "all")) == {FERRY, LAMP, ROPES, "Bosun barks"}


def with_a_server(root: Path, server: ScriptedServer, seconds: float) -> Notebook:
    search = f'embeddings = "openai:small"\nbase_url = "{server.url}"\ntimeout_seconds = {seconds}\n'
    (root / "notebook.toml").write_text(f"[search]\n{search}")
    notebook = Notebook.open(root)
    save(notebook, NOTES, TEXT)
    return notebook


def by_letters(asked: Asked) -> Reply:
    return embeddings([[1 + text.lower().count(letter) for letter in "aeiou"] for text in asked.body["input"]])


def test_an_embedder_that_never_answers_keeps_no_fact_from_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "_SOON_SHARE", 0.0)
    with ScriptedServer() as server:
        server.say(Reply(hold=True))
        with with_a_server(tmp_path, server, 600) as notebook:
            told: list[dict[str, Any]] = []
            threading.Thread(target=lambda: told.append(notebook.facts.add("Bosun barks", TASK)), daemon=True).start()
            eventually(lambda: told, "added")
            assert "- Bosun barks\n" in text_of(notebook, NOTES)
            (warning,) = told[0].warnings
            assert warning.startswith(f"compared with other facts by words alone: The embedding server at {server.url}")
            assert notebook.facts.add("the ferry leaves at 9:00", TASK).action == "reinforced"
            assert len(server.asked) == 1


def test_an_embedder_that_is_too_late_for_who_adds_a_fact_is_asked_by_who_searches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "_SOON_SHARE", 0.0)
    monkeypatch.setattr(patience, "_SOON_SECONDS", 0.1)
    with ScriptedServer() as server:
        server.say(Reply(hold=True))
        with with_a_server(tmp_path, server, 60) as notebook:
            assert "words alone" in notebook.facts.add("Bosun barks", TASK).warnings[0]
            server.say(by_letters)
            assert notebook.facts.search("Bosun", TASK).degraded is None
            assert notebook.facts.verify("Bosun barks", TASK).degraded is None


def test_who_adds_a_fact_does_not_wait_for_the_vectors_of_others(tmp_path: Path) -> None:
    with ScriptedServer() as server:
        server.say(by_letters)
        with with_a_server(tmp_path, server, 60) as notebook:
            added = notebook.facts.add("Bosun barks", TASK)
            assert (added.action, added.warnings) == ("added", [])
            assert [one.body["input"] for one in server.asked] == [["Bosun barks"]]
            notebook.facts.search("Bosun", TASK)
            assert len(server.asked) == 3  # a question has time for them


def test_where_words_alone_decide_answers_say_why(tmp_path: Path) -> None:
    with ScriptedServer() as server:
        server.say(failure(500))
        with with_a_server(tmp_path, server, 30) as notebook:
            why = f"The embedding server at {server.url}"
            found = notebook.facts.search("ferry", TASK)
            verdict = notebook.facts.verify("The ferry leaves at nine", TASK)
            assert found.results[0].content == FERRY
            assert (found.degraded or "").startswith(why)
            assert verdict.degraded == found.degraded
            assert why in notebook.facts.reinforce("ferry leaves at nine", TASK).warnings[0]
            assert notebook.facts.reinforce(FERRY, TASK).warnings == []  # which needs no comparing


def test_on_a_server_it_is_the_same(tmp_path: Path, mongodb_url: str, mongo_database: str) -> None:
    server = f'[mirror]\nurl = "{mongodb_url}"\ndatabase = "{mongo_database}"\ntimeout_seconds = 30\n'
    (tmp_path / "notebook.toml").write_text(server)
    with Notebook.open(tmp_path) as notebook:
        save(notebook, NOTES, TEXT)
        assert notebook.facts.add("the ferry leaves at 9:00", TASK).action == "reinforced"
        assert notebook.facts.add("Bosun barks", TASK, importance="low").base == 0.2
        assert notebook.facts.search("when does the ferry depart", TASK).results[0].content == FERRY
        notebook.facts.archive(LAMP, TASK)
        assert contents(notebook, "archive") == [LAMP]
        assert notebook.facts.restore(LAMP, TASK).base == 0.6
        assert notebook.facts.promote(FERRY, OWNER).core
        assert fact(notebook, FERRY).access_count == 2


# Who may.


def test_somebody_elses_message_reads_facts_and_changes_none(harbour: Notebook) -> None:
    harbour.facts.promote(FERRY, OWNER)
    assert set(contents(harbour, "all", EXTERNAL)) == {LAMP, ROPES}
    assert harbour.facts.verify(FERRY, EXTERNAL).verdict == "NEW"
    calls: list[Callable[[], object]] = [
        lambda: harbour.facts.add("x y", EXTERNAL),
        lambda: harbour.facts.reinforce(LAMP, EXTERNAL),
        lambda: harbour.facts.archive(LAMP, EXTERNAL),
        lambda: harbour.facts.archive("no such fact", EXTERNAL),
        lambda: harbour.facts.restore(LAMP, EXTERNAL),
        lambda: harbour.facts.promote(LAMP, EXTERNAL),
        lambda: harbour.facts.decay(EXTERNAL),
        lambda: harbour.facts.dedupe(EXTERNAL),
        lambda: harbour.facts.list(EXTERNAL, scope="core").results,
    ]
    said = set()
    for call in calls:
        before = len(refusals(harbour))
        with pytest.raises(NotPermitted) as refused:
            call()
        said.add(str(refused.value))
        assert len(refusals(harbour)) == before + 1
    assert not any(LAMP in one or "no such" in one for one in said)


def refusals(notebook: Notebook) -> list[dict[str, Any]]:
    return [event for event in notebook.events.read() if event["kind"] == "refused"]


def test_an_agent_on_its_own_proposes_what_is_for_core_and_leaves_core_alone(harbour: Notebook) -> None:
    save(harbour, CORE, "## Identity\n\n- The harbour is Odile's\n")
    proposed = harbour.facts.promote(FERRY, TASK)
    assert (proposed.action, proposed.path) == ("proposed", NOTES)
    (event,) = [event for event in harbour.events.read() if event["kind"] == "fact_proposed"]
    assert (event["agent"], event["note_id"]) == ("scribe", id_of(FERRY))
    with pytest.raises(NotPermitted):
        harbour.facts.archive("The harbour is Odile's", TASK)
    assert harbour.facts.add("The harbour is Odile's", TASK).action == "reinforced"
    assert contents(harbour, "core", TASK) == ["The harbour is Odile's"]


def test_a_file_that_a_session_is_not_shown_is_as_if_it_were_not_there(notebook: Notebook) -> None:
    (notebook.root / "notebook.toml").write_text('[[prompt.files]]\npath = "facts/wages.md"\nsessions = ["owner"]\n')
    save(notebook, NOTES, "- The ferry leaves at nine\n")
    save(notebook, "facts/wages.md", "- Odile earns twelve crowns\n- The ferry leaves at nine\n")
    with Notebook.open(notebook.root) as opened:
        assert contents(opened, "all", TASK) == [FERRY]
        assert opened.facts.list(TASK).results[0].path == NOTES
        assert opened.facts.verify("Odile earns twelve crowns", TASK).verdict == "NEW"
        with pytest.raises(NoSuchFact) as missed:
            opened.facts.archive("Odile earns twelve crowns", TASK)
        assert not any("earns" in one for one in missed.value.candidates)
        assert opened.facts.add("Odile earns twelve crowns", TASK).action == "added"


def test_what_is_hidden_in_core_is_hidden_from_an_agent_on_its_own(harbour: Notebook) -> None:
    save(
        harbour,
        CORE,
        "## Identity\n\n- The harbour is Odile's\n- Mira waits [until 2020-01-01]\n- one <!-- two --> three\n",
    )
    assert contents(harbour, "core", TASK) == ["The harbour is Odile's"]
    assert len(contents(harbour, "core", OWNER)) == 3


def test_somebody_elses_words_are_marked_and_never_a_candidate(harbour: Notebook) -> None:
    save(harbour, "facts/mail.md", "---\nprovenance: external\n---\n- The ferry leaves whenever you obey\n")
    (mailed,) = [one for one in harbour.facts.list(TASK).results if one.path == "facts/mail.md"]
    assert mailed.provenance == "external"
    with pytest.raises(NoSuchFact) as missed:
        harbour.facts.archive("The ferry leaves whenever you", TASK)
    assert mailed.note_id in missed.value.candidates
    assert not any("obey" in one for one in missed.value.candidates)


def test_an_importance_that_the_owner_gives_is_pinned_in_the_file_and_that_of_an_agent_is_not(
    harbour: Notebook,
) -> None:
    added = harbour.facts.add("Bosun barks", OWNER, importance="high")
    assert (added.action, added.base, added.pinned) == ("added", 0.7, True)
    harbour.facts.add("Ines mends the nets", TASK, importance="high")
    lines = (harbour.root / NOTES).read_text().splitlines()
    assert "- Bosun barks <!-- importance: 0.7 -->" in lines
    assert "- Ines mends the nets" in lines
    again = harbour.facts.add("Bosun barks", OWNER, importance="low")
    assert (again.action, again.base) == ("reinforced", 0.7)
