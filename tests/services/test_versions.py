"""The past of a note: its versions, the difference to now, and going back, with a repository and without."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from notebook_sync import Notebook, Session
from notebook_sync.errors import Conflict, EditFailed, NoSuchNote, NotFound, NotPermitted
from notebook_sync.services.writing import Change, save, writing
from tests.conftest import Copies
from tests.services.conftest import (
    FILES,
    NAMELESS,
    OWNER,
    PILOT,
    SCRIBE,
    STRANGER,
    add_settings,
    assert_raises,
    git,
    make_repository,
    synced,
    text_of,
    write_files,
)

FERRY, IDEA = "pages/ferry.md", "pages/idea.md"


# For rules that hold wherever texts are kept.
some_stores = pytest.mark.parametrize("kept", ["git", "commits off"], indirect=True)


def make_kept(root: Path, where: str) -> None:
    """A notebook whose texts are kept in the user's repository, or in the private one."""
    write_files(root, FILES)
    if where == "commits off":
        add_settings(root, '[git]\ncommit = "off"\n')
    if where != "no git":
        make_repository(root)
    with Notebook.open(root) as notebook:
        notebook.core.engine.sync()


@pytest.fixture(params=["git", "commits off", "no git"])
def kept(request: pytest.FixtureRequest, copies: Copies, root: Path) -> Iterator[Notebook]:
    with Notebook.open(copies.put(make_kept, root, request.param)) as notebook:
        yield notebook
    if request.param == "commits off":
        assert git(root, "rev-list", "--count", "HEAD").strip() == "1"


def put(notebook: Notebook, text: str, session: Session = SCRIBE, path: str = FERRY) -> None:
    notebook.notes.update(path, session, content=text)


def test_an_edit_is_taken_back_and_the_taking_back_too(kept: Notebook) -> None:
    first = text_of(kept, FERRY)
    put(kept, "second")
    undone = kept.notes.undo("ferry", SCRIBE)
    assert (undone.changed, undone.status, text_of(kept, FERRY)) == (True, "updated", first)
    assert "-second" in undone.diff
    kept.notes.undo(FERRY, SCRIBE)
    assert text_of(kept, FERRY) == "second\n"
    for number in ("third", "fourth"):
        put(kept, number)
    kept.notes.undo(FERRY, SCRIBE)
    assert text_of(kept, FERRY) == "third\n"
    assert kept.notes.read(FERRY).version == 7


def test_what_a_person_wrote_between_edits_is_kept_and_comes_back(kept: Notebook) -> None:
    put(kept, "second")
    write_files(kept.root, {FERRY: "by hand\n"})
    put(kept, "third")
    kept.notes.undo(FERRY, SCRIBE)
    assert text_of(kept, FERRY) == "by hand\n"
    write_files(kept.root, {FERRY: "by hand again\n"})
    assert_raises(NotPermitted, kept.notes.undo, FERRY, SCRIBE, match="own changes only")
    kept.notes.undo(FERRY, OWNER)
    assert text_of(kept, FERRY) == "by hand\n"
    kept.notes.undo(FERRY, OWNER)
    assert text_of(kept, FERRY) == "by hand again\n"


@some_stores
def test_an_agent_goes_back_over_its_own_changes_only(kept: Notebook) -> None:
    put(kept, "second", OWNER)
    put(kept, "third")
    rev = kept.notes.history(FERRY).results[-1].rev
    for session, name in ((PILOT, ""), (NAMELESS, ""), (Session.task("owner-to-be"), ""), (SCRIBE, rev)):
        assert_raises(NotPermitted, kept.notes.undo, FERRY, session, rev=name, match="own changes only")
    kept.notes.undo(FERRY, SCRIBE)
    assert_raises(NotPermitted, kept.notes.undo, FERRY, STRANGER)
    kept.notes.undo(FERRY, SCRIBE)
    assert text_of(kept, FERRY) == "third\n"
    assert kept.core.events.read()[-1]["action"] == "undo"


def test_an_agent_takes_no_mark_of_others_words_away_by_going_back(root: Path) -> None:
    add_settings(root, '[permissions]\nnotebook_edit = "notes"\n')
    with synced(root) as notebook:
        notebook.notes.edit(FERRY, "set_frontmatter", SCRIBE, content="provenance: external")
        for rev in ("", notebook.notes.history(FERRY).results[-1].rev):
            assert_raises(NotPermitted, notebook.notes.undo, FERRY, SCRIBE, rev=rev, match="without `provenance")
        assert "provenance: external" in text_of(notebook, FERRY)
        notebook.notes.undo(FERRY, OWNER)
        assert "provenance" not in text_of(notebook, FERRY)


def test_a_version_that_is_named_comes_back_to_the_byte(kept: Notebook) -> None:
    (kept.root / FERRY).write_bytes(b"\xef\xbb\xbfodd\r\n\xff")
    kept.notes.rename(FERRY, "pages/boat", OWNER)
    kept.notes.rename("pages/boat", FERRY, OWNER)
    for text in ("two", "three"):
        write_files(kept.root, {FERRY: text})
        put(kept, f"{text}!", OWNER)
    versions = kept.notes.history(FERRY).results
    odd = next(
        each for each in reversed(versions) if kept.core.history.text(each.rev, each.path) == b"\xef\xbb\xbfodd\r\n\xff"
    )
    before = kept.notes.undo(FERRY, rev=odd.rev[:12], dry_run=True)
    assert (before.status, text_of(kept, FERRY)) == ("dry_run", "three!")
    kept.notes.undo(FERRY, rev=odd.rev[:12])
    assert (kept.root / FERRY).read_bytes() == b"\xef\xbb\xbfodd\r\n\xff"
    for rev in ("0" * 40, "x", "zz"):
        assert_raises(NotFound, kept.notes.undo, FERRY, rev=rev)


def test_the_history_names_who_what_and_why(kept: Notebook) -> None:
    kept.notes.update(FERRY, SCRIBE, content="x", section="Fares", reason="cheaper")
    kept.notes.update(FERRY, NAMELESS, content="y")
    last, first, *_ = kept.notes.history(FERRY, PILOT).results
    assert (last.changed_by, last.session, last.summary) == ("agent:unknown", "task", "update")
    assert (first.changed_by, first.summary, first.reason) == ("agent:scribe", "update Fares", "cheaper")
    assert [each.rev for each in kept.notes.history(FERRY, limit=1).results] == [last.rev]


def test_the_difference_is_to_the_version_before_or_between_two(kept: Notebook) -> None:
    for text in ("one\n", "two\n", "three\n"):
        put(kept, text)
    three, two, one = kept.notes.history(FERRY).results[:3]
    assert kept.notes.diff(FERRY).diff.splitlines()[3:] == ["-two", "+three"]
    between = kept.notes.diff(FERRY, PILOT, since=one.rev, until=two.rev)
    assert (between.diff.splitlines()[3:], between.since, between.until) == (["-one", "+two"], one.rev, two.rev)
    assert kept.notes.diff(FERRY, since=three.rev).diff == ""


def test_calls_within_one_second_are_in_order_whichever_repository_keeps_them(committed: Notebook) -> None:
    for number in range(6):
        write_files(committed.root, {"notebook.toml": f'[git]\ncommit = "{("tools", "off")[number % 2]}"\n'})
        put(committed, f"{number}\n")
    versions = committed.notes.history(FERRY).results
    texts = [committed.core.history.text(each.rev, FERRY) for each in versions if each.changed_by != "owner"]
    assert texts == [f"{number}\n".encode() for number in reversed(range(6))]


def test_a_note_that_is_gone_comes_back_by_its_path_or_id(kept: Notebook) -> None:
    page = kept.notes.create("Winter", SCRIBE, content="Snow.\n")
    text = text_of(kept, page.path)
    for name in (page.path, "pages/winter", page.notebook_id):
        kept.notes.delete(page.path, SCRIBE)
        assert kept.notes.undo(name, SCRIBE).path == page.path
        assert text_of(kept, page.path) == text
    (kept.root / page.path).unlink()
    kept.core.engine.sync()
    assert [each.rev for each in kept.notes.history(page.notebook_id).results]
    kept.notes.undo(page.notebook_id, OWNER)
    assert kept.notes.read(page.notebook_id).created_by == "agent:scribe"
    assert_raises(NoSuchNote, kept.notes.undo, "pages/nowhere", OWNER)


def test_the_first_text_of_a_note_stays(kept: Notebook) -> None:
    page = kept.notes.create("Winter", SCRIBE).path
    assert_raises(EditFailed, kept.notes.undo, page, SCRIBE, match="no earlier text")
    assert (kept.root / page).exists()
    assert kept.notes.diff(page).diff == ""


def test_notes_that_were_changed_together_go_back_together(kept: Notebook) -> None:
    texts = {path: (kept.root / path).read_bytes() for path in (FERRY, IDEA)}
    changes = [Change(path, raw, raw + b"more\n", "tidy") for path, raw in texts.items()]
    for last in (b"", b"by hand\n"):
        with writing(kept.core, "tidy"):
            save(kept.core, changes, SCRIBE)
        (kept.root / IDEA).write_bytes((kept.root / IDEA).read_bytes() + last)
        undone = kept.notes.undo(FERRY, SCRIBE)
        assert (kept.root / FERRY).read_bytes() == texts[FERRY]
        assert ((kept.root / IDEA).read_bytes() == texts[IDEA]) == (not last)
        assert (IDEA in undone.diff) == (not last)
    write_files(kept.root, {IDEA: texts[IDEA].decode()})


@some_stores
def test_a_batch_is_its_makers_to_take_back(kept: Notebook) -> None:
    kept.notes.rename(IDEA, "pages/thought", SCRIBE, links=True)
    assert_raises(NotPermitted, kept.notes.undo, "pages/thought", PILOT, match="own changes only")
    kept.notes.undo("pages/thought", OWNER)
    assert (kept.root / IDEA).exists()


@some_stores
def test_a_digest_says_what_is_taken_back(kept: Notebook) -> None:
    seen = kept.notes.read(FERRY).digest
    put(kept, "second")
    for expected in (seen, "0" * 64):
        assert_raises(Conflict, kept.notes.undo, FERRY, SCRIBE, expected_digest=expected)
    kept.notes.undo(FERRY, SCRIBE, expected_digest=kept.notes.read(FERRY).digest)
    assert kept.notes.read(FERRY).digest == seen


PRIVATE = "channels/scribe/global/plan.md"


@some_stores
def test_what_a_note_said_in_a_channel_stays_there(kept: Notebook) -> None:
    put(kept, "# Plan\n\n## Hush\n\nsecret\n", path=PRIVATE)
    put(kept, "# Plan\n\nopen\n", path=PRIVATE)
    kept.notes.rename(PRIVATE, "pages/plan", SCRIBE)
    put(kept, "# Plan\n\nopen to all\n", path="pages/plan")
    for session in (PILOT, OWNER):
        assert ("channels" in str(kept.notes.history("pages/plan", session).results)) == (session == OWNER)
    assert "Hush" not in str(kept.notes.read("pages/plan", PILOT, history=True))
    kept.notes.undo("pages/plan", SCRIBE)
    assert text_of(kept, "pages/plan.md").endswith("open\n")
    rev = kept.notes.history("pages/plan", SCRIBE).results[-1].rev
    for session in (SCRIBE, OWNER):
        with pytest.raises(EditFailed, match="not for all who may read it here"):
            kept.notes.undo("pages/plan", session, rev=rev)
    assert_raises(NotFound, kept.notes.diff, "pages/plan", PILOT, since=rev)


@some_stores
def test_a_private_note_that_is_gone_is_no_note_to_others(kept: Notebook) -> None:
    kept.notes.delete(PRIVATE, SCRIBE)
    uses = product((kept.notes.undo, kept.notes.history, kept.notes.diff), (PRIVATE, "channels/scribe/global/none.md"))
    said = {str(assert_raises(NotPermitted, use, name, PILOT)) for use, name in uses}
    assert len(said) == 1
    assert_raises(NoSuchNote, kept.notes.history, PRIVATE.removesuffix(".md").rpartition("/")[2], PILOT)
    assert kept.notes.undo(PRIVATE, SCRIBE).path == PRIVATE


def test_another_note_where_one_was_has_a_past_of_its_own(notebook: Notebook) -> None:
    notebook.notes.delete(FERRY, OWNER)
    write_files(notebook.root, {FERRY: "---\nid: other\n---\nAnother.\n"})
    notebook.notes.update(FERRY, OWNER, content="Changed.\n")
    assert len(notebook.notes.history(FERRY).results) == 2
    notebook.notes.undo(FERRY, OWNER)
    assert text_of(notebook, FERRY).endswith("Another.\n")
