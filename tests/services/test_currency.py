"""Whether a note still holds, what replaces it, and which notes link to it; and whose pages an agent may change."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from notebook_sync import Notebook
from notebook_sync.errors import NoSuchNote, NotPermitted, UsageError
from notebook_sync.model import is_current
from notebook_sync.services.writing import Change, save
from notebook_sync.surfaces.memory_tool import MemoryTool, MemoryToolError
from tests.conftest import Copies
from tests.services.conftest import (
    NAMELESS,
    OWNER,
    PILOT,
    SCRIBE,
    STRANGER,
    assert_raises,
    copied,
    sync_files,
    write_files,
)

OFF = '[notebook]\ntimezone = "UTC"\n[search]\nembeddings = "off"\n'
OLD = "# Old timetable\n\nThe ferry leaves at nine.\n"
NEW = "---\nid: winter\n---\n# Winter timetable\n\nThe ferry leaves at ten, as long as there is no ice.\n"


@pytest.fixture
def notebook(copies: Copies, folder: Path) -> Iterator[Notebook]:
    with copied(copies, folder, {"notebook.toml": OFF, "pages/old.md": OLD, "pages/new.md": NEW}) as opened:
        yield opened


def write(notebook: Notebook, **texts: str) -> None:
    sync_files(notebook, {f"{name.replace('__', '/')}.md": text for name, text in texts.items()})


def current(notebook: Notebook) -> dict[str, bool]:
    return {row.path: row.current for row in notebook.notes.list(limit=100).results}


# ---- currency


@pytest.mark.parametrize(
    ("line", "holds"),
    [
        ("superseded_by: pages/new", False),
        ("Superseded_By: '[[new|the new one]]'", False),
        ("superseded_by: [[new]]", False),
        ("superseded_by:", True),
        ("valid_until: {today}", True),  # a day includes its last minute
        ("valid_until: {yesterday}", False),
        ("valid_until: {yesterday}T09:30", False),
        ("valid_until: {later}T09:30:00+01:00", True),
        ("valid_until: 9999-12-31", True),
        ("valid_until: soon", True),
    ],
)
def test_a_note_holds_until_another_replaces_it_or_its_time_is_over(notebook: Notebook, line: str, holds: bool) -> None:
    today = datetime.now(UTC).date()
    days = {"yesterday": today - timedelta(days=1), "today": today, "later": today + timedelta(days=2)}
    write(notebook, pages__old=f"---\n{line.format(**days)}\n---\n{OLD}")
    assert current(notebook)["pages/old.md"] == notebook.notes.read("pages/old").current == holds
    assert (notebook.search("ferry leaves").results[0].path == "pages/old.md") == holds
    (found,) = notebook.search("nine", explain=True).results
    assert ("outdated" not in (found.explain or {})) == holds
    problems = [each.message for each in notebook.prompts.check().results]
    assert any("valid_until: must be a date" in each for each in problems) == ("soon" in line)


def test_an_outdated_note_scores_half(notebook: Notebook) -> None:
    path = notebook.channels.write("The buoy drifts.", SCRIBE).path

    def scores() -> list[float]:
        private = notebook.channels.search("buoy", SCRIBE, profile="similarity").results
        return [notebook.search("nine").results[0].score, *(row.score or 0 for row in private)]

    before = scores()
    for file in (notebook.root / path, notebook.root / "pages/old.md"):
        text = file.read_text()
        head = "" if text.startswith("---\n") else "---\n---\n"
        file.write_text(f"{head}{text}".replace("---\n", "---\nvalid_until: 2020-01-01\n", 1))
    notebook.sync()
    assert scores() == pytest.approx([each / 2 for each in before], abs=0.01)


def test_what_is_said_of_currency_is_kept_as_it_was_written(notebook: Notebook) -> None:
    write(notebook, pages__old=f"---\nvalid_until: 2020-01-31\nsuperseded_by: new\n---\n{OLD}")
    assert notebook.notes.read("pages/old").fields == {"valid_until": "2020-01-31", "superseded_by": "new"}
    end = datetime(2020, 1, 31, 23, 59, 59, 999000, UTC)
    assert [is_current("", end, end + timedelta(milliseconds=each)) for each in (0, 1)] == [True, False]


def test_how_long_a_note_holds_is_said_by_create_and_update(notebook: Notebook) -> None:
    done = notebook.notes.create("Fares", SCRIBE, valid_until="2020-01-31")
    assert "\nvalid_until: 2020-01-31\n" in (notebook.root / done.path).read_text()
    for until, holds in (("2999-12-31T09:30", True), ("2020-02-01", False), ("", True)):
        notebook.notes.update(done.path, SCRIBE, valid_until=until)
        assert notebook.notes.read(done.path).current == holds
        assert (f"\nvalid_until: {until}\n" in (notebook.root / done.path).read_text()) == bool(until)
    for use in (notebook.notes.create, notebook.notes.update):
        wrong = assert_raises(UsageError, use, "pages/fares", session=SCRIBE, valid_until="soon")
        assert "valid_until: must be a date" in str(wrong)


def test_an_update_marks_both_notes_and_one_undo_takes_it_back(notebook: Notebook) -> None:
    texts = [(notebook.root / f"pages/{name}.md").read_bytes() for name in ("new", "old")]
    done = notebook.notes.update("winter", SCRIBE, content="At eleven.", append=True, supersedes="[[old]]")
    assert (done.path, done.diff.count("\n--- "), done.commit != "") == ("pages/new.md", 1, True)
    new, old = (notebook.notes.read(f"pages/{name}") for name in ("new", "old"))
    assert (new.fields["supersedes"], old.fields["superseded_by"]) == (["pages/old"], "winter")
    assert (new.current, old.current, new.linked_from, old.linked_from) == (
        True,
        False,
        ["pages/old.md"],
        ["pages/new.md"],
    )
    again = notebook.notes.update("winter", SCRIBE, supersedes="old")
    assert not again.changed
    assert_raises(NotPermitted, notebook.notes.undo, "old", PILOT, match="its own changes only")
    notebook.notes.undo("old", SCRIBE)
    assert [(notebook.root / f"pages/{name}.md").read_bytes() for name in ("new", "old")] == texts


def test_a_note_that_comes_back_is_replaced_by_nothing(notebook: Notebook) -> None:
    notebook.notes.update("new", supersedes="old")
    notebook.notes.update("old", supersedes="new")
    assert (current(notebook)["pages/old.md"], current(notebook)["pages/new.md"]) == (True, False)
    notebook.notes.update("old", content="Other text.")  # the whole text, without its fields
    assert notebook.notes.read("old").fields["supersedes"] == ["winter"]


def test_what_cannot_be_replaced_is_refused_and_nothing_changes(notebook: Notebook) -> None:
    own = dict.fromkeys(("channels__pilot__global__own", "channels__scribe__global__own"), "Mine.\n")
    write(notebook, runtime__reminders="# Reminders\n", **own)
    before = {path: path.read_bytes() for path in notebook.root.rglob("*.md")}
    for name, session, error in (
        ("new", SCRIBE, UsageError),
        ("nowhere", SCRIBE, NoSuchNote),
        ("reminders", SCRIBE, NotPermitted),
        ("channels/pilot/global/own", SCRIBE, NotPermitted),
        ("channels/scribe/global/own", SCRIBE, UsageError),  # each of the two would name the other
        ("old", STRANGER, NotPermitted),
    ):
        assert_raises(error, notebook.notes.update, "pages/new", session, content="Other", supersedes=name)
    assert {path: path.read_bytes() for path in notebook.root.rglob("*.md")} == before


# ---- backlinks


def test_a_note_knows_what_links_to_it(notebook: Notebook) -> None:
    write(
        notebook,
        pages__by_path="[x](old.md) and [y](../pages/new.md)\n",
        pages__by_name="[[Old]]\n",
        pages__by_title="![[old timetable#ferry|it]]\n",
        pages__code="`[[old]]` <!-- [[old]] -->\n",
        trips__old="# Nearer\n",
        trips__near="[[old]] [z](old.md)\n",
        channels__scribe__global__mine="[[old]]\n",
        channels__pilot__global__other="[[old]]\n",
    )
    public = {f"pages/by_{each}.md" for each in ("path", "name", "title")}
    private = {f"channels/{each}.md" for each in ("scribe/global/mine", "pilot/global/other")}
    for path, session, expected in (
        ("trips/old", SCRIBE, {"trips/near.md"}),
        ("winter", SCRIBE, {"pages/by_path.md"}),
        ("pages/old", SCRIBE, public | {"channels/scribe/global/mine.md"}),
        ("pages/old", NAMELESS, public),
        ("pages/old", OWNER, public | private),
    ):
        listed = notebook.notes.list(session, linked_to=path, limit=50).results
        assert {*notebook.notes.read(path, session).linked_from} == {row.path for row in listed} == expected
    assert_raises(NoSuchNote, notebook.notes.list, linked_to="nowhere")


def test_at_most_ten_links_are_named_and_others_words_are_not(notebook: Notebook) -> None:
    write(notebook, **{f"pages__n{number}": "[[old]]\n" for number in range(54)})
    assert len(notebook.notes.read("pages/old", SCRIBE).linked_from) == 10
    pages = [notebook.notes.list(SCRIBE, linked_to="old", limit=50)]
    pages.append(notebook.notes.list(SCRIBE, linked_to="old", limit=50, after=pages[0].next or ""))
    assert [len(page.results) for page in pages] == [50, 4]
    write(notebook, pages__obey_me="---\nprovenance: external\n---\n[[winter]]\n")
    (name,) = notebook.notes.read("winter", SCRIBE).linked_from
    assert name.startswith("external note ")
    assert notebook.notes.read(name, SCRIBE).path == "pages/obey_me.md"


# ---- whose pages


def test_with_own_pages_every_way_to_write_keeps_to_them(notebook: Notebook) -> None:
    write_files(notebook.root, {"notebook.toml": f'{OFF}[permissions]\npages = "own"\nnotebook_edit = "notes"\n'})
    notes, memory = notebook.notes, MemoryTool(notebook, SCRIBE)
    mine, theirs = (notes.create(f"By {each.agent}", each, content="[[old]]").path for each in (SCRIBE, PILOT))
    raw = (notebook.root / theirs).read_bytes()
    for path in (theirs, "pages/old.md"):
        tries: list[Callable[[], object]] = [
            lambda path=path: notes.update(path, SCRIBE, content="x"),
            lambda path=path: notes.edit(path, "write", SCRIBE, content="x"),
            lambda path=path: notes.update(mine, SCRIBE, supersedes=path),
            lambda path=path: notes.delete(path, SCRIBE),
            lambda path=path: notes.rename(path, "pages/taken", SCRIBE),
            lambda path=path: notes.undo(path, SCRIBE),
            lambda path=path: save(notebook.core, [Change(path, raw, b"x", "update")], SCRIBE),
        ]
        for each in tries:
            assert_raises(NotPermitted, each)
            assert notebook.core.events.read()[-1]["kind"] == "refused"
        assert_raises((NotPermitted, MemoryToolError), memory.insert, f"/memories/{path}", 1, "x")
    assert (notebook.root / theirs).read_bytes() == raw
    notes.update(mine, SCRIBE, content="[[old]] again")
    notes.rename("pages/old.md", "pages/older.md", OWNER)
    assert "[[old]] again" in (notebook.root / mine).read_text()
    assert memory.insert(f"/memories/{mine}", 0, "x")
