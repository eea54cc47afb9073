"""Names: whatever names a note leads to the same note, and what a session may not read does not exist for it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from notebook_sync import Notebook, Session
from notebook_sync.errors import NoSuchNote, NotebookError, NotPermitted, UnsafePath
from notebook_sync.services.view import Names, NoteName
from tests.services.conftest import (
    OWNER,
    PILOT,
    SCRIBE,
    STRANGER,
    add_files,
    add_settings,
    assert_raises,
    synced,
    write_files,
)

RULES = "runtime/standing-orders.md"
SPELLINGS = (
    *("standing-orders.md", "standing-orders", "./standing-orders.md", ".//standing-orders.md", "standing orders"),
    *("runtime/../standing-orders.md", "pages/../standing-orders.md", "STANDING-ORDERS.MD", "Standing_Orders.md"),
    *("standing-orders.md.", "standing-orders.md ", "standing\u200b-orders.md", "ｓtanding-orders.md"),
    *("standing-orders.md/", "[[standing-orders]]", "runtime\\standing-orders.md"),
)


def path_of(notebook: Notebook, name: str, session: Session = OWNER) -> str:
    return notebook.notes.read(name, session).path


def test_a_note_has_many_names(notebook: Notebook) -> None:
    add_files(notebook, {"pages/tides.md": "---\nid: the-plan\ntitle: The Plan\naliases: [Scheme]\n---\n# Part\n"})
    names = (
        *("pages/tides.md", "pages/tides", "./pages//tides.md", f"{notebook.root}/pages/tides.md"),
        *("tides", "tides.md", "TIDES", "the-plan", "The Plan", "the plan", "Scheme"),
        *("[[tides]]", "[[tides|label]]", "![[pages/tides#Part]]", "tides#part"),
    )
    assert {name: path_of(notebook, name) for name in names} == dict.fromkeys(names, "pages/tides.md")


def test_several_meanings_are_named(notebook: Notebook) -> None:
    external = "---\nid: said\nprovenance: external\n---\nx\n"
    add_files(notebook, {"pages/a/x.md": "1\n", "pages/b/x.md": "2\n", "pages/c/x.md": external})
    several = assert_raises(NoSuchNote, path_of, notebook, "x", PILOT)
    assert several.candidates[:2] == ("pages/a/x.md", "pages/b/x.md")
    assert path_of(notebook, several.candidates[2], PILOT) == "pages/c/x.md"
    assert "c/x" not in several.candidates[2]


def test_the_collection_is_checked(notebook: Notebook) -> None:
    assert notebook.notes.read("ferry", collection="pages").path == "pages/ferry.md"
    wrong = assert_raises(NoSuchNote, notebook.notes.read, "ferry", collection="research_notes")
    assert (wrong.candidates, "note of research_notes" in wrong.message) == (("pages/ferry.md",), True)


def test_the_name_of_a_guarded_file_means_that_file(notebook: Notebook) -> None:
    rival = {"standing-orders.md": "# Pay everybody\n", "pages/standing-orders.md": "# Pay everybody\n"}
    add_files(notebook, {**rival, "pages/other.md": "---\nid: standing-orders\n---\n# Pay everybody\n"})
    assert {name: path_of(notebook, name) for name in SPELLINGS} == dict.fromkeys(SPELLINGS, RULES)
    (notebook.root / RULES).unlink()
    for name in SPELLINGS:
        assert_raises(NotebookError, path_of, notebook, name)


@pytest.mark.parametrize("session", [SCRIBE, STRANGER], ids=lambda one: one.kind)
def test_only_the_owner_writes_to_a_name_that_a_guarded_file_answers_to(notebook: Notebook, session: Session) -> None:
    (notebook.root / RULES).unlink()
    files = sorted(notebook.root.rglob("*.md"))
    for name in (*(name for name in SPELLINGS if name[-1] not in "/]"), "pages/Standing-Orders.Md"):
        assert_raises(NotebookError, notebook.notes.rename, "pages/ferry", name, session)
    made = notebook.notes.create("Standing  ORDERS", SCRIBE).path
    assert made == "pages/standing-orders-2.md"
    assert sorted(notebook.root.rglob("*.md")) == sorted([*files, notebook.root / made])


def test_neither_a_way_out_nor_a_hidden_file_is_a_name(notebook: Notebook) -> None:
    for name in ("../x.md", "/etc/passwd.md", "pages/../../x.md", "pages/\0.md"):
        assert_raises(UnsafePath, path_of, notebook, name)
    write_files(notebook.root, {".git/x.md": "x", "pages/.hidden.md": "x"})
    for name in (".git/x.md", ".notebook/id", "pages/.hidden.md"):
        assert_raises((NotPermitted, NoSuchNote), path_of, notebook, name)


def test_what_is_excluded_is_no_note(root: Path) -> None:
    write_files(root, {".gitignore": "pages/safe/\n", "pages/safe/codes.md": "1234\n"})
    with Notebook.open(root) as notebook, pytest.raises(NoSuchNote):
        path_of(notebook, "pages/safe/codes", PILOT)


# ---- absent and withheld


@pytest.fixture
def board(root: Path) -> Iterator[Notebook]:
    """`pages/board.md` is for the owner's prompt alone; `pages/core.md` has the name of another file of the prompt."""
    add_settings(
        root,
        '[[prompt.files]]\npath = "pages/board.md"\nsessions = ["owner"]\n[[prompt.files]]\npath = "pages/core.md"\n',
    )
    write_files(root, {"pages/board.md": "---\nid: salaries\n---\n# Wages\n", "facts/core (1).md": "# Core\n\n- x\n"})
    with synced(root) as notebook:
        yield notebook


@pytest.mark.parametrize("use", ["read", "history", "diff", "undo", "update", "delete", "rename"])
def test_a_withheld_note_is_absent(board: Notebook, use: str) -> None:
    more = {"update": {"title": "x"}, "rename": {"to": "pages/new.md"}}.get(use, {})

    def said(name: str) -> str:
        try:
            return str(getattr(board.notes, use)(name, session=SCRIBE, **more))
        except NoSuchNote as missing:
            return str(missing)

    for spelled in ("pages/{}.md", "pages/{}", "{}", "./pages/{}.md", "runtime/../pages/{}.md"):
        assert said(spelled.format("board")).replace("board", "nobod") == said(spelled.format("nobod"))
        assert board.core.events.read()[-1]["path"] == "pages/board.md"


def test_a_withheld_note_has_no_id_no_title_and_no_place_in_a_list(board: Notebook) -> None:
    for name in ("salaries", "Wages", "[[Wages]]"):
        assert path_of(board, name) == "pages/board.md"
        assert_raises(NoSuchNote, path_of, board, name, SCRIBE)
    assert "pages/board.md" not in [row.path for row in board.notes.list(SCRIBE, limit=50).results]
    (board.root / "notebook.toml").write_text("")
    assert path_of(board, "pages/board.md", SCRIBE) == "pages/board.md"
    (board.root / "notebook.toml").write_text('[[prompt.files]]\npath = "pages/ferry.md"\nsessions = ["owner"]\n')
    assert "pages/ferry.md" not in [row.path for row in board.notes.list(SCRIBE, limit=50).results]
    assert board.notes.search("ferry", SCRIBE, mode="keyword").results == []


def test_a_conflict_copy_is_as_private_as_its_original(board: Notebook) -> None:
    for session, readable in ((SCRIBE, True), (STRANGER, False)):
        paths = [row.path for row in board.notes.list(session, limit=50).results]
        assert ("facts/core (1).md" in paths) == ("facts/core.md" in paths) == readable
    assert_raises(NotPermitted, board.notes.read, "facts/core (1).md", STRANGER)
    assert_raises(NotPermitted, board.notes.update, "facts/core (1).md", SCRIBE, content="x")


@pytest.mark.parametrize("session", [PILOT, STRANGER], ids=lambda one: one.kind)
def test_the_paths_of_another_channel_are_refused_alike(notebook: Notebook, session: Session) -> None:
    said = set()
    for name in ("plan", "guessed"):
        said.add(str(assert_raises(NotPermitted, path_of, notebook, f"channels/scribe/global/{name}", session)))
        assert_raises(NoSuchNote, path_of, notebook, name, session)
    assert len(said) == 1


# ---- what a prompt file shows


HIDING = (
    "---\nid: secret-id\ntitle: Secret\nstatus: complete\ntags: [hush]\n---\n"
    "# Orders\n\n## Pay\n\n- Pay<!-- the safe -->\n"
    "- Old rule [until 2020-01-01]\n%% note %%\n"
)


def test_a_prompt_file_is_read_as_far_as_the_prompt_shows_it(notebook: Notebook) -> None:
    add_files(notebook, {RULES: HIDING})
    seen = notebook.notes.read("standing-orders", SCRIBE, history=True)
    assert seen.text == "# Orders\n\n## Pay\n\n- Pay\n"
    assert (seen.id, seen.title, seen.status, seen.tags, seen.digest, seen.extra) == (
        RULES[:-3],
        "Orders",
        "draft",
        [],
        "",
        {},
    )
    assert notebook.notes.read("standing-orders").text == HIDING
    row = next(row for row in notebook.notes.list(SCRIBE, limit=50).results if row.path == RULES)
    assert (row.id, row.title, row.status, row.tags) == (RULES[:-3], "Orders", "draft", [])
    assert [row.path for row in notebook.notes.search("orders pay", SCRIBE).results] == [RULES]
    assert [row.path for row in notebook.notes.search("pay", SCRIBE, section="pay").results] == [RULES]
    for query in ("safe", "secret", "note", "old rule"):
        assert RULES not in [row.path for row in notebook.notes.search(query, SCRIBE).results]
    for filters in ({"status": "complete"}, {"tags": ["hush"]}):
        assert notebook.notes.list(SCRIBE, **filters).results == []
        assert [row.path for row in notebook.notes.list(**filters).results] == [RULES]
    for name in ("secret-id", "Secret"):
        assert_raises(NoSuchNote, path_of, notebook, name, SCRIBE)
    for use in (notebook.notes.history, notebook.notes.diff):
        with pytest.raises(
            NotPermitted, match=f"sees a part of {RULES}.*; read the note as it is now, or ask the owner"
        ):
            use(RULES, SCRIBE)


# ---- links


def test_links_lead_to_the_nearest_note_of_the_best_kind_of_name() -> None:
    notes = [
        NoteName("plan-id", "a/plan.md", "Scheme", ("Old plan",)),
        NoteName("b/plan", "b/plan.md", "plan"),
        NoteName("c/other", "c/other.md", "plan"),
        NoteName("runtime/reminders", "runtime/reminders.md", "Reminders"),
        NoteName("a/reminders", "a/reminders.md", "Reminders"),
    ]
    names = Names(notes, ["a/tide.png", "map.png"], {"reminders": "runtime/reminders.md"})
    expected = {
        ("plan", "a/x.md"): ["a/plan.md"],  # in the same folder
        ("plan", "c/x.md"): ["a/plan.md", "b/plan.md"],  # two files of this name; a title is no rival
        ("a/plan", "c/x.md"): ["a/plan.md"],
        ("../b/plan.md", "c/x.md"): ["b/plan.md"],
        ("/b/plan", "a/x.md"): ["b/plan.md"],
        ("SCHEME", "b/x.md"): ["a/plan.md"],
        ("old plan", "b/x.md"): ["a/plan.md"],
        ("plan-id", "b/x.md"): ["a/plan.md"],
        ("reminders", "a/x.md"): ["runtime/reminders.md"],
        ("tide.png", "b/x.md"): ["a/tide.png"],
        ("map.png", "b/x.md"): ["map.png"],
        ("", "b/x.md"): ["b/x.md"],
        ("nowhere", "b/x.md"): [],
        ("../../out", "b/x.md"): [],
    }
    assert {key: names.find(*key) for key in expected} == expected
    assert Names([NoteName("x", "vault/sub/deep/plan.md")]).find("deep/plan", "a.md") == ["vault/sub/deep/plan.md"]
