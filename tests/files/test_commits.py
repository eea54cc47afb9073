"""A commit holds exactly what was written, in whatever state the repository is, and takes nothing else along."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from notebook_sync.errors import GitFailed
from notebook_sync.files import commits as module
from notebook_sync.files.commits import NOBODY, commit
from notebook_sync.files.revisions import content_at, revisions

pytestmark = pytest.mark.usefixtures("no_git_settings")

ODILE = {"user.name": "Odile", "user.email": "odile@example.org"}


class Repository:
    """A real one; `git` answers with what it prints."""

    def __init__(self, root: Path, *options: str, settings: Mapping[str, str] = ODILE) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main", *options)
        for name, value in settings.items():
            self.git("config", name, value)

    def git(self, *arguments: str, check: bool = True) -> str:
        command = ["git", "-C", str(self.root), *arguments]
        answer = subprocess.run(command, check=False, capture_output=True, text=True)
        assert answer.returncode == 0 or not check, answer.stderr
        return answer.stdout.rstrip("\n")

    def write(self, files: Mapping[str, str]) -> None:
        for path, text in files.items():
            place = self.root / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)

    def begin(self, files: Mapping[str, str]) -> str:
        self.write(files)
        self.git("add", "--all")
        self.git("commit", "--quiet", "-m", "Begin")
        return self.git("rev-parse", "HEAD")

    def edit(self, path: str, text: str, message: str = "Edit") -> str | None:
        """What a tool does: the file, then its commit."""
        self.write({path: text})
        return commit(self.root, {path: text.encode()}, message)

    def tree(self, revision: str = "HEAD") -> dict[str, str]:
        names = self.git("ls-tree", "-r", "-z", "--name-only", "--full-tree", revision).split("\0")
        return {name: self.git("cat-file", "blob", f"{revision}:{name}") for name in names if name}

    def status(self) -> list[str]:
        return self.git("status", "--porcelain", "--untracked-files=all").splitlines()


@pytest.fixture(params=["sha1", "sha256"])
def repository(request: pytest.FixtureRequest, tmp_path: Path) -> Repository:
    return Repository(tmp_path / "notebook", f"--object-format={request.param}")


def test_a_commit_of_many_texts_holds_each_to_the_byte(repository: Repository) -> None:
    repository.begin({"a.md": "a"})
    texts = {f"new/{number}.md": f"data 3\nblob {number}\0\r\ndone\n" for number in range(150)}
    repository.write(texts)

    made = commit(repository.root, {path: text.encode() for path, text in texts.items()}, "Import")

    held = repository.git("ls-tree", "-r", "--format=%(path) %(objectname)", str(made)).splitlines()
    files = [path.rpartition(" ")[0] for path in held if path.startswith("new/")]
    assert len(files) == len(texts)
    assert repository.git("rev-parse", f"{made}:new/7.md") == repository.git("hash-object", "--no-filters", "new/7.md")
    assert repository.status() == []
    repository.git("fsck", "--strict")


def test_a_commit_holds_the_changes_on_top_of_what_was_there(repository: Repository) -> None:
    first = repository.begin({"a.md": "a", "b.md": "b", "deep/c.md": "c"})
    repository.write({"a.md": "A", "new/d.md": "d"})
    (repository.root / "b.md").unlink()

    made = commit(repository.root, {"a.md": b"A", "new/d.md": b"d", "b.md": None}, "Tidy\n\nAgent: scribe\n")

    assert made == repository.git("rev-parse", "main")
    assert repository.git("rev-parse", "HEAD^") == first
    assert repository.tree() == {"a.md": "A", "deep/c.md": "c", "new/d.md": "d"}
    told = repository.git("log", "-1", "--format=%an <%ae>|%cn|%s|%(trailers:key=Agent,valueonly,separator=%x20)")
    assert told == "Odile <odile@example.org>|Odile|Tidy|scribe"
    assert repository.status() == []


def test_the_bytes_are_the_ones_that_were_written(repository: Repository) -> None:
    repository.git("config", "core.autocrlf", "true")
    repository.begin({".gitattributes": "*.md text eol=lf working-tree-encoding=UTF-16\n"})
    raw = b"\xef\xbb\xbfone\r\ntwo\r\n\xff\x00 no end"
    made = commit(repository.root, {"a.md": raw}, "Edit")
    assert made
    assert content_at(repository.root, made, "a.md") == raw


def test_bytes_that_the_last_commit_holds_make_no_commit(repository: Repository) -> None:
    first = repository.begin({"a.md": "a"})
    assert commit(repository.root, {"a.md": b"a", "gone.md": None}, "Nothing") is None
    assert repository.git("rev-parse", "HEAD") == first


def test_a_branch_without_a_commit_gets_its_first(repository: Repository) -> None:
    assert repository.edit("a.md", "a") == repository.git("rev-parse", "main")
    assert repository.tree() == {"a.md": "a"}
    assert repository.status() == []


def test_what_a_person_has_changed_staged_or_deleted_is_not_taken_along_and_not_lost(repository: Repository) -> None:
    files = {name: name for name in ("edited.md", "staged.md", "both.md", "removed.md", "mine.md", "other.md")}
    repository.begin(files)
    repository.write({"edited.md": "worktree", "staged.md": "index", "both.md": "index", "untracked.md": "x"})
    repository.git("add", "staged.md", "both.md")
    repository.write({"both.md": "worktree", "new.md": "staged"})
    repository.git("add", "new.md")
    repository.git("rm", "--quiet", "removed.md")
    before = repository.status()
    staged = {path: repository.git("show", f":{path}") for path in ("staged.md", "both.md", "new.md")}

    assert repository.edit("mine.md", "by the agent")

    assert repository.tree() == files | {"mine.md": "by the agent"}
    assert repository.status() == before
    assert {path: repository.git("show", f":{path}") for path in staged} == staged


def test_what_a_person_has_staged_of_the_very_note_stays_staged(repository: Repository) -> None:
    repository.begin({"a.md": "old"})
    repository.write({"a.md": "staged by Odile"})
    repository.git("add", "a.md")
    assert repository.edit("a.md", "by the agent")
    assert repository.tree() == {"a.md": "by the agent"}
    assert repository.git("show", ":a.md") == "staged by Odile"


def test_an_executable_note_stays_one(repository: Repository) -> None:
    repository.write({"a.md": "a"})
    (repository.root / "a.md").chmod(0o755)
    repository.begin({})
    assert repository.edit("a.md", "b")
    assert repository.git("ls-tree", "HEAD", "a.md").startswith("100755 ")
    assert repository.status() == []


def test_what_a_person_only_means_to_add_is_in_the_index_once_it_is_committed(repository: Repository) -> None:
    repository.begin({"a.md": "a"})
    repository.write({"meant.md": "by hand", "empty.md": "", "other.txt": "x"})
    repository.git("add", "--intent-to-add", "meant.md")
    repository.git("add", "empty.md")
    assert repository.edit("meant.md", "by the agent")
    assert repository.edit("empty.md", "by the agent, too")
    assert repository.git("show", ":empty.md") == ""
    repository.git("add", "other.txt")
    repository.git("commit", "--quiet", "-m", "Other")
    assert repository.tree() == {"a.md": "a", "meant.md": "by the agent", "empty.md": "", "other.txt": "x"}


def test_on_no_branch_nothing_is_committed(repository: Repository) -> None:
    first = repository.begin({"a.md": "a"})
    repository.git("checkout", "--quiet", "--detach")
    with pytest.raises(GitFailed, match="no branch is checked out"):
        repository.edit("new.md", "b")
    assert repository.git("rev-parse", "HEAD") == first
    repository.git("checkout", "--quiet", "main")
    assert (repository.root / "new.md").read_text() == "b"


@pytest.mark.parametrize("way", ["merge", "rebase", "cherry-pick"])
def test_what_stands_open_is_not_committed_into(repository: Repository, way: str) -> None:
    repository.begin({"a.md": "a\n", "b.md": "b\n"})
    repository.git("checkout", "--quiet", "-b", "side")
    repository.begin({"a.md": "side\n"})
    repository.git("checkout", "--quiet", "main")
    head = repository.begin({"a.md": "main\n"})
    repository.git(way, "side", check=False)
    open_at = repository.git("rev-parse", "HEAD")
    for path in ("a.md", "new.md"):
        with pytest.raises(GitFailed, match=f"a {way} stands open"):
            repository.edit(path, "by the agent\n")
    assert repository.git("rev-parse", "HEAD") == open_at

    repository.git(way, "--abort")

    assert repository.git("rev-parse", "main") == repository.git("rev-parse", "HEAD") == head
    assert (repository.root / "new.md").read_text() == "by the agent\n"
    assert repository.edit("new.md", "again\n")


def test_no_hook_and_no_program_of_the_repository_runs(repository: Repository) -> None:
    repository.begin({"a.md": "a", ".gitattributes": "*.md filter=evil diff=evil\n"})
    for hook in ("pre-commit", "commit-msg", "post-commit", "reference-transaction", "post-index-change"):
        path = repository.root / ".git" / "hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\ntouch ran\nexit 1\n")
        path.chmod(0o755)
    evil = f"touch {repository.root / 'ran'}; cat"
    for setting in ("filter.evil.clean", "filter.evil.smudge", "core.fsmonitor", "gpg.program", "core.editor"):
        repository.git("config", setting, evil)
    repository.git("config", "commit.gpgSign", "true")
    assert repository.edit("a.md", "b")
    assert not (repository.root / "ran").exists()


def test_a_notebook_in_a_subfolder_commits_its_own_notes(repository: Repository) -> None:
    repository.begin({"code.py": "x", "notebook/a.md": "a"})
    notebook = repository.root / "notebook"
    (notebook / "b.md").write_text("b")
    assert commit(notebook, {"b.md": b"b", "a.md": None}, "Edit")
    assert repository.tree() == {"code.py": "x", "notebook/b.md": "b"}


def test_a_linked_work_tree_commits_to_its_own_branch(repository: Repository, tmp_path: Path) -> None:
    first = repository.begin({"a.md": "a"})
    repository.git("worktree", "add", "--quiet", "-b", "side", str(tmp_path / "side"))
    (tmp_path / "side" / "a.md").write_text("b")
    made = commit(tmp_path / "side", {"a.md": b"b"}, "Edit")
    assert (repository.git("rev-parse", "side"), repository.git("rev-parse", "main")) == (made, first)
    answer = subprocess.run(
        ["git", "-C", tmp_path / "side", "status", "--porcelain"], check=True, capture_output=True, text=True
    )
    assert answer.stdout == ""


def test_notes_in_a_repository_of_their_own_are_left_to_it(repository: Repository) -> None:
    first = repository.begin({"a.md": "a"})
    Repository(repository.root / "inner").begin({"b.md": "b"})
    assert commit(repository.root, {"inner/b.md": b"new"}, "Edit") is None
    assert repository.git("rev-parse", "HEAD") == first
    assert commit(repository.root, {"inner/b.md": b"new", "a.md": b"new"}, "Edit")
    assert repository.tree() == {"a.md": "new"}


def test_a_submodule_that_is_not_checked_out_is_not_replaced(repository: Repository) -> None:
    first = repository.begin({"a.md": "a"})
    repository.git("update-index", "--add", "--cacheinfo", f"160000,{first},inner")
    repository.git("commit", "--quiet", "-m", "A submodule")
    with pytest.raises(GitFailed):
        commit(repository.root, {"inner/b.md": b"b"}, "Edit")
    assert repository.git("ls-tree", "HEAD", "inner").startswith("160000")


def test_a_note_that_git_is_to_ignore_is_not_committed(repository: Repository) -> None:
    first = repository.begin({"a.md": "a", "tracked.md": "t"})
    (repository.root / ".git" / "info").mkdir(exist_ok=True)
    (repository.root / ".git" / "info" / "exclude").write_text("private.md\ntracked.md\n")
    assert commit(repository.root, {"private.md": b"x"}, "Edit") is None
    assert repository.git("rev-parse", "HEAD") == first
    assert commit(repository.root, {"private.md": b"x", "tracked.md": b"u"}, "Edit")
    assert repository.tree() == {"a.md": "a", "tracked.md": "u"}


def test_without_a_repository_or_without_git_there_is_no_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert commit(tmp_path, {"a.md": b"a"}, "Edit") is None
    repository = Repository(tmp_path / "notebook")
    assert commit(repository.root / ".git", {"a.md": b"a"}, "Edit") is None
    monkeypatch.setenv("PATH", "")
    assert commit(repository.root, {"a.md": b"a"}, "Edit") is None


@pytest.mark.parametrize(
    ("settings", "author", "expected"),
    [
        (ODILE, None, "Odile <odile@example.org>|Odile <odile@example.org>"),
        (ODILE, "Ines <ines@example.org>", "Ines <ines@example.org>|Odile <odile@example.org>"),
        ({}, None, f"{NOBODY}|{NOBODY}"),
        ({}, "Ines <ines@example.org>", "Ines <ines@example.org>|Ines <ines@example.org>"),
        ({}, "Ines", "Ines <>|Ines <>"),
        (ODILE, "In\0es\nX <i@example.org>\n", "InesX <i@example.org>|Odile <odile@example.org>"),
    ],
)
def test_a_commit_has_an_author_whatever_git_knows(
    tmp_path: Path, settings: Mapping[str, str], author: str | None, expected: str
) -> None:
    repository = Repository(tmp_path / "notebook", settings=settings)
    assert commit(repository.root, {"a.md": b"a"}, "Edit", author=author)
    assert repository.git("log", "-1", "--format=%an <%ae>|%cn <%ce>") == expected


@pytest.mark.parametrize(
    ("message", "body"),
    [
        ("-m evil --amend", "-m evil --amend"),
        ("# no comment", "# no comment"),
        ("one\0two", "one\N{REPLACEMENT CHARACTER}two"),
        ("$(touch ran) `touch ran` %s {0}", "$(touch ran) `touch ran` %s {0}"),
        ("\udcff", "?"),
        ("", ""),
        ("Überfahrt\n\n  kept  ", "Überfahrt\n\n  kept  "),
    ],
)
def test_a_message_is_text(repository: Repository, message: str, body: str) -> None:
    assert repository.edit("a.md", "a", message)
    assert repository.git("log", "-1", "--format=%B").rstrip("\n") == body


@pytest.mark.parametrize(
    "path", ["-m.md", "--all.md", "a b.md", 'quo"te.md', "*.md", ":(top)a.md", "日本.md", "[a].md"]
)
def test_a_path_is_a_path(repository: Repository, path: str) -> None:
    repository.begin({"a.md": "a"})
    assert repository.edit(path, "x")
    assert repository.tree() == {"a.md": "a", path: "x"}
    assert repository.status() == []
    assert [one.path for one in revisions(repository.root, path, 5, anything)] == [path]


def test_a_locked_index_stays_and_the_commit_stands(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_INDEX_SECONDS", 0.0)
    repository.begin({"a.md": "a"})
    index = (repository.root / ".git" / "index").read_bytes()
    lock = repository.root / ".git" / "index.lock"
    lock.touch()
    assert repository.edit("a.md", "b") == repository.git("rev-parse", "HEAD")
    assert repository.tree() == {"a.md": "b"}
    assert (repository.root / ".git" / "index").read_bytes() == index
    assert lock.exists()


def test_a_branch_that_stays_locked_is_told_as_a_failure(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_TRIES", 2)
    first = repository.begin({"a.md": "a"})
    lock = repository.root / ".git" / "refs" / "heads" / "main.lock"
    lock.touch()
    with pytest.raises(GitFailed):
        repository.edit("a.md", "b")
    assert repository.git("rev-parse", "HEAD") == first
    assert (repository.root / "a.md").read_text() == "b"


def test_a_git_that_hangs_is_stopped(repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_DEADLINE_SECONDS", 0.3)
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text("#!/bin/sh\nexec sleep 600\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow.parent}:{os.environ['PATH']}")
    with pytest.raises(GitFailed, match="too long"):
        commit(repository.root, {"a.md": b"a"}, "Edit")


def test_a_broken_repository_is_told_as_a_failure(repository: Repository) -> None:
    first = repository.begin({"a.md": "a"})
    (repository.root / ".git" / "objects" / first[:2] / first[2:]).unlink()
    with pytest.raises(GitFailed):
        repository.edit("a.md", "b")


def test_no_commit_is_lost_between_a_person_and_agents_who_commit_at_once(repository: Repository) -> None:
    repository.begin({"a.md": "a"})
    made: list[str | None] = []

    def agent(name: str) -> None:
        made.extend(repository.edit(f"{name}-{number}.md", name) for number in range(6))

    agents = [threading.Thread(target=agent, args=(name,)) for name in ("scribe", "pilot")]
    for one in agents:
        one.start()
    for number in range(6):
        repository.git("commit", "--quiet", "--allow-empty", "-m", f"Odile {number}", check=False)
    for one in agents:
        one.join()
    assert None not in made
    assert set(made) <= set(repository.git("rev-list", "HEAD").split())
    assert set(repository.tree()) == {"a.md"} | {f"{who}-{n}.md" for who in ("scribe", "pilot") for n in range(6)}


# Reading.


def anything(_: str) -> bool:
    return True


def test_the_revisions_of_a_note_follow_its_renames(repository: Repository) -> None:
    text = "".join(f"line {number}\n" for number in range(30))
    repository.begin({"other.md": "x"})
    repository.edit("a.md", text, "One\n\nA body.\n\nAgent: scribe\n")
    repository.git("mv", "a.md", "b.md")
    repository.git("commit", "--quiet", "-m", "Moved")
    repository.edit("b.md", text + "more\n", "Two")
    repository.edit("other.md", "y", "Not this one")

    found = revisions(repository.root, "b.md", 10, anything)

    assert [(one.summary, one.path, one.changed_by, one.author) for one in found] == [
        ("Two", "b.md", "owner", "Odile"),
        ("Moved", "b.md", "owner", "Odile"),
        ("One", "a.md", "agent:scribe", "Odile"),
    ]
    assert found[-1].message == "One\n\nA body.\n\nAgent: scribe"
    assert content_at(repository.root, found[-1].commit, found[-1].path) == text.encode()
    assert revisions(repository.root, "b.md", 1, anything) == found[:1]
    assert revisions(repository.root, "b.md", 0, anything) == []


def test_a_notebook_in_a_subfolder_reads_its_own_notes(repository: Repository) -> None:
    repository.begin({"a.md": "outside", "notebook/a.md": "inside"})
    (found,) = revisions(repository.root / "notebook", "a.md", 5, anything)
    assert found.path == "a.md"
    assert content_at(repository.root / "notebook", found.commit, "a.md") == b"inside"


@pytest.mark.parametrize("revision", ["HEAD", "--help", "-p", "main", "0" * 40, ""])
def test_only_an_id_names_a_commit(repository: Repository, revision: str) -> None:
    repository.begin({"a.md": "a"})
    assert content_at(repository.root, revision, "a.md") is None


def test_a_folder_without_git_has_no_revisions(tmp_path: Path) -> None:
    assert revisions(tmp_path, "a.md", 5, anything) == []
    assert content_at(tmp_path, "0" * 40, "a.md") is None


def test_more_notes_than_a_command_line_holds_go_back_in_one_commit(repository: Repository) -> None:
    many = {f"notes/{number}.md": f"note {number}\n" for number in range(600)}
    begun = repository.begin(many)
    repository.write(dict.fromkeys(many, "other\n"))
    repository.git("commit", "--quiet", "--all", "-m", "Change all")
    repository.write(many)
    made = commit(repository.root, {path: text.encode() for path, text in many.items()}, "Go back")
    assert made is not None
    assert repository.git("rev-parse", f"{made}^{{tree}}") == repository.git("rev-parse", f"{begun}^{{tree}}")
    assert repository.status() == []
