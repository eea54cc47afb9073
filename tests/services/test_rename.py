"""Renaming: a note keeps its past and its row, and the links to it and in it are counted, or rewritten in one step."""

import pytest

from notebook_sync import Notebook
from notebook_sync.errors import Conflict, NoSuchNote, NotPermitted, UnsafePath, UsageError
from notebook_sync.services.view import Names, View, file_names, note_names
from tests.services.conftest import OWNER, PILOT, SCRIBE, add_files, assert_raises, text_of, write_files

IDEA = "pages/idea.md"


def texts(notebook: Notebook) -> dict[str, str]:
    """The notes, by path."""
    return {path: (notebook.root / path).read_text(errors="replace") for path in notebook.core.tree.scan().seen}


def test_a_renamed_note_is_the_note_that_it_was(notebook: Notebook) -> None:
    notebook.notes.update(IDEA, SCRIBE, content="Better.\n")
    done = notebook.notes.rename("idea", "thoughts/big idea", SCRIBE, reason="clearer")
    assert (done.status, done.path, done.version) == ("renamed", "thoughts/big idea.md", 2)
    assert [each.path for each in notebook.notes.history(done.path).results] == [done.path, IDEA, IDEA]
    assert done.warnings == [
        "links that lead nowhere after renaming pages/idea.md to thoughts/big idea.md: pages/index.md:1, "
        "pages/index.md:1, pages/index.md:1; rename with links to rewrite those in notes that you may change"
    ]
    assert notebook.notes.rename(done.path, "pages/sub/", SCRIBE).path == "pages/sub/big idea.md"
    assert notebook.notes.rename("big idea", "pages/sub/Big Idea.md", SCRIBE).path == "pages/sub/Big Idea.md"


def test_a_path_that_is_taken_or_no_notes_is_refused(notebook: Notebook) -> None:
    before = texts(notebook)
    errors = {
        "pages/ferry": UnsafePath,
        "pages/FERRY.md": UnsafePath,
        "pages/CON.md": UnsafePath,
        "../out.md": UnsafePath,
        "pages/idea": UsageError,
        "runtime/x.md": NotPermitted,
        "channels/pilot/global/x.md": NotPermitted,
        "channels/pilot/global/berth.md": NotPermitted,
    }
    for to, error in errors.items():
        assert_raises(error, notebook.notes.rename, "idea", to, SCRIBE)
    assert_raises(Conflict, notebook.notes.rename, "idea", "pages/new", SCRIBE, expected_digest="0" * 64)
    assert texts(notebook) == before


def test_a_name_of_a_withheld_file_is_refused_as_a_taken_one(notebook: Notebook) -> None:
    gift = '[[prompt.files]]\npath = "pages/gift.md"\nsessions = ["owner"]\n'
    write_files(notebook.root, {"notebook.toml": gift, "pages/gift.md": "A boat.\n"})
    said = []
    for to in ("thoughts/gift.md", "pages/gift.md", "pages/ferry.md", "thoughts/reminders.md"):
        for dry_run in (True, False):
            refused = assert_raises(UnsafePath, notebook.notes.rename, "idea", to, SCRIBE, dry_run=dry_run)
        said.append(refused.reason)
        (notebook.root / "pages/gift.md").unlink(missing_ok=True)  # the answer is the same without a file
    assert said == [*["already exists"] * 3, "is a name that one of the owner's files answers to"]
    assert [event["path"] for event in notebook.core.events.read()] == ["pages/gift.md"] * 2


LINKS = """[[idea]] [[idea|label]] [[idea#Part|x]] ![[idea]] [[pages/idea]] [[idea.md]] `[[idea]]`
[x](idea.md#part) [y](./idea.md "title") [z](<idea.md>) ![p](idea.md) [w](/pages/idea.md) [ref]

| a | b |
|---|---|
| [[idea\\|cell]] | x |

[[The Thought]] [[Brainwave]] [[idea-id]] [[ferry]] [far](https://idea.md) %% [[idea]] %%

[ref]: idea.md "Title"
"""


def test_links_are_rewritten_in_their_own_form(notebook: Notebook) -> None:
    head = "---\nid: idea-id\ntitle: The Thought\naliases: [Brainwave]\n---\n# Part\n"
    add_files(notebook, {IDEA: head, "pages/links.md": LINKS, "notes/far.md": "[[idea]] [x](../pages/idea.md)\n"})
    before = texts(notebook)
    tried = notebook.notes.rename("idea", "deep/big (idea).md", SCRIBE, links=True, dry_run=True)
    assert texts(notebook) == before
    done = notebook.notes.rename("idea", "deep/big (idea).md", SCRIBE, links=True)
    assert (done.diff, done.warnings) == (tried.diff, tried.warnings)
    assert done.warnings == []
    assert all(path in done.diff for path in ("notes/far.md", "pages/index.md", "pages/links.md"))
    assert texts(notebook)["pages/links.md"] == (
        """[[big (idea)]] [[big (idea)|label]] [[big (idea)#Part|x]] ![[big (idea)]] [[deep/big (idea)]] """
        """[[big (idea).md]] `[[idea]]`
[x](../deep/big%20%28idea%29.md#part) [y](../deep/big%20%28idea%29.md "title") [z](<../deep/big%20%28idea%29.md>) """
        """![p](../deep/big%20%28idea%29.md) [w](/deep/big%20%28idea%29.md) [ref]

| a | b |
|---|---|
| [[big (idea)\\|cell]] | x |

[[The Thought]] [[Brainwave]] [[idea-id]] [[ferry]] [far](https://idea.md) %% [[big (idea)]] %%

[ref]: ../deep/big%20%28idea%29.md "Title"
"""
    )
    assert texts(notebook)["notes/far.md"] == "[[big (idea)]] [x](../deep/big%20%28idea%29.md)\n"
    after = texts(notebook)
    assert (notebook.notes.undo("deep/big (idea)", SCRIBE).path, texts(notebook)) == (IDEA, before)
    notebook.notes.undo("idea", SCRIBE)
    assert texts(notebook) == after
    notebook.notes.undo("deep/big (idea)", SCRIBE)
    assert texts(notebook) == before
    assert not notebook.core.engine.verify().differences


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("superseded_by: pages/idea  # since May", "superseded_by: deep/thought  # since May"),
        ("Superseded_By: '[[idea#Part|the new one]]'", "Superseded_By: '[[thought#Part|the new one]]'"),
        ("superseded_by: [[idea]]\r", "superseded_by: [[thought]]\r"),
        ("supersedes: [pages/idea2, pages/idea]", "supersedes: [pages/idea2, deep/thought]"),
        ("supersedes:\n- ferry\n- idea", "supersedes:\n- ferry\n- thought"),
        ('superseded_by: "pages\\x2fidea"', 'superseded_by: "pages\\x2fidea"'),  # an escape is left as it is
    ],
)
def test_what_replaces_a_note_is_renamed_like_a_link(notebook: Notebook, before: str, after: str) -> None:
    text = "---\n{}\n---\n[[idea]] is better.\n"
    add_files(notebook, {"pages/old.md": text.format(before), "pages/idea2.md": "x\n"})
    for to, links in (("deep/thought", False), ("deep/a, b", True)):  # a comma would make two names of it
        said = notebook.notes.rename("idea", to, SCRIBE, links=links, dry_run=True).warnings
        assert str(said).count("pages/old.md:") == ("\\" not in before) + (not links)
    notebook.notes.rename("idea", "deep/thought", SCRIBE, links=True)
    assert text_of(notebook, "pages/old.md") == text.replace("[[idea]]", "[[thought]]").format(after)
    notebook.notes.undo("thought", SCRIBE)
    assert text_of(notebook, "pages/old.md") == text.format(before)


def test_links_in_the_moved_note_go_on_leading_where_they_did(notebook: Notebook) -> None:
    text = "[a](ferry.md) [b](../research_notes/ice.md) [[ferry]] [c](pages/ferry.md) ![d](tide.png)\n"
    add_files(notebook, {"pages/moves.md": text, "pages/tide.png": "x"})
    assert "pages/moves.md" not in str(notebook.notes.rename("moves", "pages/moves2.md", OWNER).warnings)
    done = notebook.notes.rename("moves2", "far/away/moves", SCRIBE, links=True)
    assert texts(notebook)["far/away/moves.md"] == (
        "[a](../../pages/ferry.md) [b](../../research_notes/ice.md) [[ferry]] [c](pages/ferry.md) "
        "![d](../../pages/tide.png)\n"
    )
    assert (done.changed, done.version) == (True, 2)


def test_a_link_that_cannot_be_rewritten_alone_is_reported(notebook: Notebook) -> None:
    orders = "runtime/standing-orders.md"
    write_files(notebook.root, {orders: "# Orders\n\nSee [[idea]].\n", "pages/latin.md": "x"})
    (notebook.root / "pages/latin.md").write_bytes(b"[[idea]] caf\xe9\n")
    notebook.core.engine.sync()
    done = notebook.notes.rename("idea", "pages/thought", SCRIBE, links=True)
    assert "thought.md: pages/latin.md:1;" in done.warnings[0]  # the owner's file is not the agent's to see whole
    notebook.notes.undo("thought", OWNER)
    done = notebook.notes.rename("idea", "pages/thought", OWNER, links=True)
    assert "See [[thought]]" in texts(notebook)[orders]


def test_a_rename_tells_nothing_of_links_in_other_channels(notebook: Notebook) -> None:
    add_files(notebook, {"channels/pilot/global/berth.md": "[[idea]]\n"})
    for session, count in ((SCRIBE, 3), (PILOT, 4), (OWNER, 4)):
        assert notebook.notes.rename("idea", "pages/new", session, dry_run=True).warnings[0].count(".md:1") == count
    notebook.notes.rename("idea", "pages/new", SCRIBE, links=True)
    assert texts(notebook)["channels/pilot/global/berth.md"] == "[[idea]]\n"


def test_a_note_leaves_its_channel_by_its_agent_alone(notebook: Notebook) -> None:
    plan = "channels/scribe/global/plan.md"
    assert_raises(NotPermitted, notebook.notes.rename, plan, "pages/plan", PILOT)
    notebook.notes.rename(plan, "pages/plan", SCRIBE)
    assert notebook.notes.read("pages/plan", PILOT).text.endswith("Buy rope.\n")
    notebook.notes.undo("pages/plan", SCRIBE)
    assert_raises(NoSuchNote, notebook.notes.read, "plan", PILOT)


def test_names_of_other_files_are_known_as_far_as_their_folders_are(notebook: Notebook) -> None:
    add_files(notebook, {"channels/scribe/global/safe.png": "x", "pages/map.png": "x"})
    for session, known in ((SCRIBE, True), (PILOT, False)):
        view = View(notebook.core, session)
        names = Names(note_names(notebook.core, view), file_names(notebook.core, view))
        assert names.find("map.png") == ["pages/map.png"]
        assert bool(names.find("safe.png")) == known
