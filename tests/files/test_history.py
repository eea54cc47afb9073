"""The versions of a note: who changed it when, through renames that are certain, and never another note's."""

import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from notebook_sync.errors import GitFailed
from notebook_sync.files.history import Kept
from tests.files.notebooks import write
from tests.files.repositories import OWNER, SCRIBE, Repository, history_of

LIKE = "# Harbour\n\nboth are made after one template\n"


@pytest.fixture
def repository(folder: Path) -> Repository:
    return Repository(folder)


def subjects(root: Path, path: str, **options: object) -> list[str]:
    return [version.summary for version in history_of(root).versions(path, **options)]


@pytest.mark.parametrize("where", ["user", "private"])
def test_a_version_says_who_changed_what_and_why(folder: Path, where: str) -> None:
    if where == "user":
        Repository(folder)
    history = history_of(folder)
    changes = [Kept("a.md", b"two", "write", "Budget", "ask\nthe pilot\nAgent: evil"), Kept("b.md", b"b", "create")]
    rev = history.keep(changes, SCRIBE, found=[Kept("a.md", b"one")])
    latest, first = history.versions("a.md")
    assert (latest.rev, latest.changed_by, latest.session) == (rev, "agent:scribe", "task")
    assert (latest.summary, latest.reason) == ("write Budget", "ask the pilot Agent: evil")
    assert (latest.path, latest.at.tzinfo) == ("a.md", UTC)
    assert (first.changed_by, first.summary) == ("owner", "Keep what was edited by hand")
    assert [history.text(each.rev, "a.md") for each in (latest, first)] == [b"two", b"one"]
    assert history.versions("b.md")[0].summary == "create"
    assert history.text(latest.rev, "gone.md") is history.text("HEAD", "a.md") is history.text("-p", "a.md") is None
    assert history.versions("gone.md") == []


def test_commits_by_hand_and_their_trailers_are_read(repository: Repository) -> None:
    repository.commit("Pair\n\nAgent: scribe\nAgent: critic\n", {"a.md": "a"})
    repository.commit("Not a trailer\n\nAgent: scribe was here\nand left\n\nBye.\n", {"a.md": "b"})
    repository.commit("x" * 5000, {"a.md": "c"})
    versions = history_of(repository.root).versions("a.md")
    assert [version.changed_by for version in versions] == ["owner", "owner", "agent:scribe"]
    assert [versions[0].summary] == subjects(repository.root, "a.md", limit=1) == ["x" * 200]


@pytest.mark.parametrize("waits", ["found", "new"])
def test_what_was_found_is_earlier_than_what_replaced_it_in_another_repository(
    repository: Repository, waits: str
) -> None:
    repository.commit("Begin", {"a.md": "one"})
    history = history_of(repository.root)
    found = [Kept("a.md", b"two", apart=waits == "found")]
    history.keep([Kept("a.md", b"three", apart=waits == "new")], OWNER, found=found)
    texts = [history.text(version.rev, "a.md") for version in history.versions("a.md")]
    assert texts == [b"three", b"two", b"one"]


def test_a_merge_shows_the_edits_of_both_sides_and_what_it_made_of_them(repository: Repository) -> None:
    repository.commit("Begin", {"a.md": "1\n2\n3\n4\n5\n"})
    repository.git("checkout", "--quiet", "-b", "side")
    repository.commit("Side", {"a.md": "0\n2\n3\n4\n5\n"})
    repository.git("checkout", "--quiet", "main")
    repository.commit("Main", {"a.md": "1\n2\n3\n4\n6\n"})
    repository.git("merge", "--quiet", "--no-edit", "side")
    found = history_of(repository.root).versions("a.md")
    assert {version.summary for version in found[1:]} == {"Begin", "Side", "Main"}
    assert history_of(repository.root).text(found[0].rev, "a.md") == b"0\n2\n3\n4\n6\n"


@pytest.mark.parametrize("is_dropped", [True, False])
def test_a_merge_shows_no_note_that_it_takes_from_one_side(repository: Repository, is_dropped: bool) -> None:
    repository.commit("Begin", {"a.md": "1", "b.md": "1"})
    repository.git("checkout", "--quiet", "-b", "side")
    repository.commit("Side", {"a.md": "2"})
    repository.git("checkout", "--quiet", "main")
    repository.commit("Main", {"a.md": "3"})
    repository.git("merge", "--quiet", "--no-edit", "--strategy=ours", "side")
    if is_dropped:
        repository.git("rm", "--quiet", "a.md", "b.md")
        repository.git("commit", "--quiet", "--amend", "--no-edit")
    found = subjects(repository.root, "a.md")
    assert ({"Side", "Main", "Begin"} - set(found), len(found)) == (set(), 4 if is_dropped else 3)


# Renames.


def test_a_rename_by_a_tool_is_followed_although_the_text_changed(repository: Repository) -> None:
    repository.commit("Begin", {"a.md": "old", "other.md": "new"})
    for path in ("a.md", "other.md"):
        (repository.root / path).unlink()
    history = history_of(repository.root)
    history.keep([Kept("b.md", b"new", "rename", moved_from="a.md"), Kept("other.md", None, "delete")], OWNER)
    repository.edit("b.md", "newer")
    versions = history.versions("b.md")
    assert [(version.path, version.summary) for version in versions][1:] == [
        ("b.md", "rename"),
        ("a.md", "Begin"),
    ]
    assert history.text(versions[-1].rev, versions[-1].path) == b"old"


WITH_ID = "---\nid: x1\n---\n"
# By what is shown: commits by hand, and the subjects of each note's versions.
PASTS: dict[str, tuple[dict[str, dict[str, str | None]], dict[str, list[str]]]] = {
    "the same text": (
        {"Begin": {"a.md": LIKE}, "Move": {"a.md": None, "b.md": LIKE}},
        {"b.md": ["Move", "Begin"]},
    ),
    "a text that is only alike": (
        {"Begin": {"a.md": LIKE}, "Move": {"a.md": None, "b.md": LIKE + "more\n"}},
        {"b.md": ["Move"]},
    ),
    "the same id": (
        {"Begin": {"a.md": WITH_ID + "old"}, "Move": {"a.md": None, "b.md": WITH_ID + "new"}},
        {"b.md": ["Move"]},
    ),
    "two that were the same": (
        {"Begin": {"a.md": LIKE, "c.md": LIKE}, "Move": {"a.md": None, "c.md": None, "b.md": LIKE}},
        {"b.md": ["Move"]},
    ),
    "two that are the same": (
        {"Begin": {"a.md": LIKE}, "Move": {"a.md": None, "b.md": LIKE, "c.md": LIKE}},
        {"b.md": ["Move"]},
    ),
    "a chain of names, and swapped names": (
        {
            "One": {"a.md": "the first\n"},
            "Two": {"b.md": "the second\n"},
            "Away": {"a.md": None, "c.md": "the first\n"},
            "Over": {"b.md": None, "a.md": "the second\n"},
            "Back": {"c.md": None, "b.md": "the first\n"},
        },
        {"a.md": ["Over", "Two"], "b.md": ["Back", "Away", "One"]},
    ),
    "another note at a path begins again, and the same goes on": (
        {
            "Begin": {"a.md": "one", "b.md": "same"},
            "Drop": {"a.md": None, "b.md": None},
            "Again": {"a.md": "two", "b.md": "same"},
        },
        {"a.md": ["Again"], "b.md": ["Again", "Drop", "Begin"]},
    ),
}


@pytest.mark.parametrize(("commits", "expected"), PASTS.values(), ids=PASTS)
def test_a_rename_by_hand_is_followed_only_where_it_is_certain(
    repository: Repository, commits: dict[str, dict[str, str | None]], expected: dict[str, list[str]]
) -> None:
    for message, files in commits.items():
        repository.commit(message, files)
    assert {path: subjects(repository.root, path) for path in expected} == expected


def test_names_that_may_not_be_known_are_as_if_they_were_not_there(repository: Repository) -> None:
    repository.commit("A secret", {"channels/pilot/global/a.md": LIKE})
    write(repository.root, {"pages/b.md": LIKE})
    (repository.root / "channels/pilot/global/a.md").unlink()
    moved = Kept("pages/b.md", LIKE.encode(), "rename", moved_from="channels/pilot/global/a.md")
    history_of(repository.root).keep([moved], OWNER)
    assert len(subjects(repository.root, "pages/b.md")) == 2
    assert subjects(repository.root, "pages/b.md", may=lambda path: path.startswith("pages/")) == ["rename"]


@pytest.mark.parametrize(
    "name", ["ü ñ.md", 'quote".md', "tab\tnew\nline.md", ":100644 a b M.md", "commit", "caf\udce9.md"]
)
def test_odd_names_are_names(repository: Repository, name: str) -> None:
    repository.commit("Odd", {name: "x", "plain.md": "y"})
    repository.git("mv", "--", name, f"moved {name}")
    repository.commit(":100644 100644 a b M")
    assert subjects(repository.root, f"moved {name}") == [":100644 100644 a b M", "Odd"]
    assert set(history_of(repository.root).created_at([f"moved {name}", "plain.md"])) == {f"moved {name}", "plain.md"}


def test_a_symbolic_link_and_a_folder_have_no_versions(repository: Repository) -> None:
    (repository.root / "link.md").symlink_to("a.md")
    repository.commit("Link", {"folder.md/a.md": "y"})
    assert subjects(repository.root, "link.md") == subjects(repository.root, "folder.md") == []


# What a new index learns.


def test_a_note_is_as_old_as_the_first_commit_of_its_path(repository: Repository) -> None:
    repository.commit("Begin", {"a.md": LIKE, "c.md": "c", "gone.md": "x"})
    history_of(repository.root).pack()
    repository.commit("Move", {"a.md": None, "b.md": LIKE, "c.md": "d"})
    created = history_of(repository.root).created_at(["b.md", "c.md", "never.md"])
    begun = 1_600_000_060
    assert created == {path: datetime.fromtimestamp(begun + age, UTC) for path, age in (("b.md", 60), ("c.md", 0))}


def test_an_absurd_time_is_kept_within_bounds(repository: Repository) -> None:
    repository.commit("Begin", {"a.md": "a"})
    tree = repository.git("rev-parse", "HEAD^{tree}")
    raw = f"tree {tree}\nauthor A <a> 99999999999999 +0000\ncommitter A <a> 1 +0000\n\nOdd".encode()
    made = repository.git("hash-object", "-t", "commit", "-w", "--literally", "--stdin", given=raw)
    repository.git("reset", "--quiet", "--soft", made)
    assert history_of(repository.root).created_at(["a.md"])["a.md"].year in (1970, 9999)


def test_a_broken_log_says_so_rather_than_half(repository: Repository) -> None:
    repository.commit("First", {"a.md": "a"})
    broken = repository.git("rev-parse", "HEAD:")
    repository.commit("Second", {"a.md": "b"})
    (repository.root / ".git/objects" / broken[:2] / broken[2:]).unlink()
    with pytest.raises(GitFailed):
        history_of(repository.root).created_at(["a.md"])


def test_a_folder_without_repository_and_one_without_commits_have_no_past(folder: Path) -> None:
    for _ in range(2):
        history = history_of(folder)
        assert (history.created_at(["a.md"]), history.versions("a.md"), history.head_text("a.md")) == ({}, [], None)
        assert history.text("0000", "a.md") is None
        Repository(folder)


def test_a_long_history_is_read_in_one_pass(folder: Path) -> None:
    stream = b"".join(
        b"commit refs/heads/main\ncommitter A <a> %d +0000\ndata 1\nx\n" % (1000 + number)
        + b"".join(b"M 100644 inline n%d.md\ndata 3\n%03d\n" % (file, number) for file in range(number, 2000, 300))
        for number in range(300)
    )
    Repository(folder)
    subprocess.run(["git", "-C", folder, "fast-import", "--quiet"], input=stream, check=True)
    assert len(history_of(folder).created_at([f"n{file}.md" for file in range(2000)])) == 2000


# What the owner trusts.


def test_an_accepted_text_holds_until_the_last_commit_holds_another(repository: Repository) -> None:
    repository.commit("Begin", {"runtime/reminders.md": "one", "b.md": "b"})
    history = history_of(repository.root)
    assert history.accepted("runtime/reminders.md") is None
    history.accept("runtime/reminders.md", b"mine")
    repository.commit("Another", {"b.md": "c"})
    assert (history.accepted("runtime/reminders.md"), history.accepted("b.md")) == (b"mine", None)
    repository.commit("Pulled", {"runtime/reminders.md": "two"})
    assert (history.accepted("runtime/reminders.md"), history.head_text("runtime/reminders.md")) == (None, b"two")


def test_the_head_stamp_changes_with_what_is_checked_out(repository: Repository, folder: Path) -> None:
    repository.commit("Begin", {"a.md": "a"})
    history, seen = history_of(folder), []
    for command in (("commit", "--allow-empty", "-qm", "x"), ("checkout", "-q", "-b", "side"), ("pack-refs", "--all")):
        seen.append(history.head_stamp())
        assert history.head_stamp() == seen[-1]
        repository.git(*command)
    assert len({*seen, history.head_stamp()}) == 4
    assert history_of(folder.parent / "none").head_stamp() is None
