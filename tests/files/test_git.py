"""A commit holds exactly what was written, in whatever state the repository is, and takes nothing else along."""

import os
import time
from pathlib import Path

import pytest

from notebook_sync.errors import GitFailed
from notebook_sync.files import git as module
from notebook_sync.files.git import NOBODY, run_git
from notebook_sync.files.history import Kept
from tests.files.notebooks import write
from tests.files.repositories import OWNER, SCRIBE, Repository, history_of


@pytest.fixture(params=["sha1", "sha256"])
def repository(request: pytest.FixtureRequest, folder: Path) -> Repository:
    return Repository(folder, f"--object-format={request.param}")


@pytest.fixture
def plain(folder: Path) -> Repository:
    return Repository(folder)


def keep(repository: Repository, texts: dict[str, bytes | None], message: str = "") -> str | None:
    return history_of(repository.root).keep([Kept(path, raw) for path, raw in texts.items()], OWNER, message=message)


def test_a_commit_holds_the_changes_on_top_of_what_was_there(repository: Repository) -> None:
    first = repository.commit("Begin", {"a.md": "a", "b.md": "b", "deep/c.md": "c"})
    write(repository.root, {"a.md": "A", "new/d.md": "d"})
    (repository.root / "b.md").unlink()
    made = keep(repository, {"a.md": b"A", "new/d.md": b"d", "b.md": None}, "Tidy")
    assert repository.git("rev-parse", "main", "HEAD^") == f"{made}\n{first}"
    assert (repository.tree(), repository.status()) == ({"a.md": "A", "deep/c.md": "c", "new/d.md": "d"}, [])
    assert repository.git("log", "-1", "--format=%an <%ae>|%cn|%s") == "Test <test@example.org>|Test|Tidy"
    repository.git("fsck", "--strict")


def test_a_branch_without_a_commit_gets_its_first(repository: Repository) -> None:
    assert repository.edit("a.md", "a") == repository.git("rev-parse", "main")
    assert (repository.edit("a.md", "a"), repository.tree(), repository.status()) == (None, {"a.md": "a"}, [])


def test_the_bytes_are_the_ones_that_were_written(plain: Repository) -> None:
    plain.git("config", "core.autocrlf", "true")
    plain.commit("Begin", {".gitattributes": "*.md text eol=lf working-tree-encoding=UTF-16\n"})
    raw = b"\xef\xbb\xbfone\r\ntwo\r\n\xff\x00 no end\ndone\n"
    made = keep(plain, {"a.md": raw})
    assert history_of(plain.root).text(made or "", "a.md") == raw


def test_many_texts_are_one_commit(plain: Repository) -> None:
    texts = {f"new/{number}.md": b"data 3\nblob %d\0\r\ndone\n" % number for number in range(600)}
    write(plain.root, texts)
    keep(plain, texts)
    assert (plain.git("rev-list", "--count", "HEAD"), plain.status()) == ("1", [])


@pytest.mark.parametrize("path", ["-m.md", "a b.md", 'quo"te.md', "*.md", ":(top)a.md", "日本.md", "[a].md", "b\\s.md"])
def test_a_path_is_a_path(plain: Repository, path: str) -> None:
    plain.commit("Begin", {"a.md": "a", "new\nline.md": "n"})
    assert plain.edit(path, "x")
    assert plain.edit("new\nline.md", "y")
    assert (plain.tree(), plain.status()) == ({"a.md": "a", path: "x", "new\nline.md": "y"}, [])
    assert [version.path for version in history_of(plain.root).versions(path)] == [path]


@pytest.mark.parametrize(
    ("message", "subject"),
    [
        ("-m evil --amend", None),
        ("# none", None),
        ("one\0two", "one�two"),
        ("$(touch ran) {0} %s", None),
        ("\udcff", "?"),
        ("x\n\nAgent: evil\n", "x Agent: evil"),
        ("y" * 300, "y" * 200),
    ],
)
def test_a_message_is_one_line_of_text(plain: Repository, message: str, subject: str | None) -> None:
    keep(plain, {"a.md": b"a"}, message)
    assert plain.git("log", "-1", "--format=%s") == (subject or message)
    assert history_of(plain.root).versions("a.md")[0].changed_by == "owner"


def forget_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("GIT_AUTHOR", "GIT_COMMITTER"))]:
        monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("known", "author", "expected"),
    [
        (True, "", "Test <test@example.org>|Test <test@example.org>"),
        (True, "Ines <ines@example.org>", "Ines <ines@example.org>|Test <test@example.org>"),
        (False, "", f"{NOBODY}|{NOBODY}"),
        (False, "Ines <ines@example.org>", "Ines <ines@example.org>|Ines <ines@example.org>"),
    ],
)
def test_a_commit_has_an_author_whatever_git_knows(
    plain: Repository, known: bool, author: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not known:
        forget_identity(monkeypatch)
    plain.edit("a.md", "a", author=author)
    assert plain.git("log", "-1", "--format=%an <%ae>|%cn <%ce>") == expected


def test_a_changed_identity_holds_for_the_next_commit(plain: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    forget_identity(monkeypatch)
    for name in ("Ines", "Odile"):
        plain.git("config", "user.name", name)
        plain.git("config", "user.email", f"{name}@example.org")
        plain.edit("a.md", name)
        assert plain.git("log", "-1", "--format=%an|%cn") == f"{name}|{name}"


# What a person does with git meanwhile.


def test_what_a_person_has_changed_staged_or_deleted_is_neither_taken_along_nor_lost(repository: Repository) -> None:
    files = {name: name for name in ("edited.md", "staged.md", "both.md", "removed.md", "mine.md", "partly.md")}
    repository.commit("Begin", files)
    write(repository.root, {"edited.md": "tree", "staged.md": "index", "both.md": "index", "partly.md": "index"})
    repository.git("add", "staged.md", "both.md", "partly.md")
    write(repository.root, {"both.md": "tree", "new.md": "staged", "untracked.md": "x"})
    repository.git("add", "new.md")
    repository.git("rm", "--quiet", "removed.md")
    before = [line for line in repository.status() if "partly.md" not in line]
    for path in ("mine.md", "partly.md"):
        assert repository.edit(path, "by the agent")
    assert repository.tree() == files | {"mine.md": "by the agent", "partly.md": "by the agent"}
    assert [line for line in repository.status() if "partly.md" not in line] == before
    staged = {"staged.md": "index", "both.md": "index", "new.md": "staged", "partly.md": "index"}
    assert {path: repository.git("show", f":{path}") for path in staged} == staged


def test_a_commit_by_hand_right_after_an_edit_does_not_revert_it(plain: Repository) -> None:
    plain.commit("Begin", {"a.md": "a", "b.md": "b"})
    write(plain.root, {"meant.md": "by hand", "b.md": "B"})
    plain.git("add", "--intent-to-add", "meant.md")
    plain.git("add", "b.md")
    for path in ("a.md", "meant.md"):
        plain.edit(path, "by the agent")
    plain.git("commit", "--quiet", "-m", "By hand")
    assert (plain.tree(), plain.status()) == ({"a.md": "by the agent", "meant.md": "by the agent", "b.md": "B"}, [])


def test_an_executable_note_stays_one(plain: Repository) -> None:
    write(plain.root, {"a.md": "a"})
    (plain.root / "a.md").chmod(0o755)
    plain.commit("Begin")
    plain.edit("a.md", "b")
    assert (plain.git("ls-tree", "HEAD", "a.md")[:7], plain.status()) == ("100755 ", [])


def test_a_link_and_a_folder_that_became_notes_are_files(plain: Repository) -> None:
    (plain.root / "link.md").symlink_to("a.md")
    plain.commit("Begin", {"a.md": "a", "folder.md/b.md": "b"})
    (plain.root / "link.md").unlink()
    (plain.root / "folder.md/b.md").unlink()
    (plain.root / "folder.md").rmdir()
    write(plain.root, {"link.md": "x", "folder.md": "y"})
    assert keep(plain, {"folder.md/b.md": None})
    assert keep(plain, {"link.md": b"x", "folder.md": b"y"})
    assert (plain.tree(), plain.status()) == ({"a.md": "a", "link.md": "x", "folder.md": "y"}, [])
    assert plain.git("ls-tree", "HEAD", "link.md").startswith("100644 ")


@pytest.mark.parametrize("way", ["merge", "rebase", "cherry-pick", "revert"])
def test_a_commit_waits_for_what_is_open(plain: Repository, way: str) -> None:
    plain.commit("Begin", {"a.md": "a\n"})
    plain.git("checkout", "--quiet", "-b", "side")
    plain.commit("Side", {"a.md": "side\n"})
    plain.git("checkout", "--quiet", "main")
    head = plain.commit("Main", {"a.md": "main\n"})
    plain.git(way, "side" if way != "revert" else "HEAD~1", check=False)
    with pytest.raises(GitFailed, match=way):
        plain.edit("new.md", "x")
    plain.git(way, "--abort")
    assert plain.git("rev-parse", "HEAD") == head
    assert plain.edit("new.md", "x")


def test_a_commit_waits_for_another_git_command(plain: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    plain.commit("Begin", {"a.md": "a"})
    (plain.root / ".git/index.lock").touch()
    with pytest.raises(GitFailed, match=r"index\.lock"):
        plain.edit("a.md", "b")
    (plain.root / ".git/index.lock").unlink()
    with monkeypatch.context() as patch:
        patch.setenv("GIT_INDEX_FILE", "/nowhere")
        with pytest.raises(GitFailed, match="started by a git command"):
            plain.edit("a.md", "b")
    assert plain.tree() == {"a.md": "a"}
    assert plain.edit("a.md", "b")


def test_a_lock_that_appears_before_the_index_follows_stops_the_commit(
    plain: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = plain.commit("Begin", {"a.md": "a"})
    (plain.root / ".git/index.lock").touch()
    monkeypatch.setattr(module.Repository, "why_wait", lambda _: "")
    with pytest.raises(GitFailed):
        plain.edit("a.md", "b")
    assert plain.git("rev-parse", "HEAD") == head


def test_a_commit_waits_for_a_message_that_is_being_written_but_not_for_ever(plain: Repository) -> None:
    plain.commit("Begin", {"a.md": "a"})
    assert plain.edit("a.md", "b")
    os.utime(plain.root / ".git/logs/HEAD", (1, 1))
    os.utime(plain.root / ".git/COMMIT_EDITMSG", (time.time() + 5, time.time() + 5))
    with pytest.raises(GitFailed, match="message"):
        plain.edit("a.md", "c")
    os.utime(plain.root / ".git/COMMIT_EDITMSG", (time.time() - 3601, time.time() - 3601))
    assert plain.edit("a.md", "c")


def test_a_branch_that_moves_meanwhile_stops_the_commit(plain: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    plain.commit("Begin", {"a.md": "a"})
    stage = module.Repository._stage

    def commit_meanwhile(*arguments: object) -> None:
        stage(*arguments)  # type: ignore[arg-type]
        plain.git("commit", "--quiet", "--allow-empty", "-m", "Meanwhile")

    with monkeypatch.context() as patch:
        patch.setattr(module.Repository, "_stage", commit_meanwhile)
        with pytest.raises(GitFailed, match="cannot lock ref"):
            plain.edit("a.md", "b")
    assert plain.edit("a.md", "b") is None  # the commit by hand took it along
    assert (plain.tree(), plain.status()) == ({"a.md": "b"}, [])
    assert plain.edit("c.md", "c")
    assert plain.git("for-each-ref", "--format=%(refname)") == "refs/heads/main"


@pytest.mark.parametrize(
    "command",
    [
        ("pack-refs", "--all"),
        ("checkout", "--quiet", "--detach"),
        ("symbolic-ref", "HEAD", "refs/heads/unborn"),
        ("symbolic-ref", "refs/heads/main", "refs/heads/other"),
        ("update-ref", "HEAD", "HEAD"),
    ],
)
def test_what_is_checked_out_is_what_git_says(repository: Repository, command: tuple[str, ...]) -> None:
    repository.commit("Begin", {"a.md": "a"})
    repository.git("branch", "other")
    repository.git(*command)
    read = module.Repository.around(repository.root) or pytest.fail("no repository")
    assert read.head() == repository.git("rev-parse", "--verify", "--quiet", "HEAD", check=False)
    assert bool(read.branch()) == bool(repository.git("symbolic-ref", "--quiet", "HEAD", check=False))


# Where a commit may not be made, the private repository has it.


def private_log(repository: Repository) -> list[str]:
    folder = history_of(repository.root)._state / "history.git"
    return run_git(folder, "--git-dir=.", "log", "--format=%s").decode().splitlines() if folder.exists() else []


def test_what_git_ignores_and_nested_repositories_go_to_the_private_one(plain: Repository) -> None:
    plain.commit("Begin", {"a.md": "a", "tracked.md": "t"})
    first = plain.commit("Rules", {".gitignore": "private.md\ntracked.md\nruntime/\n/.notebook/\n"})
    Repository(plain.root / "inner").commit("Inner", {"b.md": "b"})
    plain.git("config", "core.excludesFile", "/dev/null")
    for path in ("private.md", "runtime/reminders.md", "inner/b.md"):
        assert plain.edit(path, "x")
    log = ["Edit inner/b.md", "Edit runtime/reminders.md", "Edit private.md"]
    assert (plain.git("rev-parse", "HEAD"), private_log(plain)) == (first, log)
    assert plain.edit("tracked.md", "u") == plain.git("rev-parse", "HEAD")
    assert keep(plain, {"private.md": b"y", "a.md": b"y"}) == plain.git("rev-parse", "HEAD")
    assert plain.git("show", "HEAD:a.md") == "y"
    assert history_of(plain.root).text(history_of(plain.root).versions("private.md")[0].rev, "private.md") == b"y"


@pytest.mark.parametrize("case", ["off", "detached", "no repository", "apart"])
def test_other_commits_that_may_not_be_made_go_to_the_private_one(folder: Path, case: str) -> None:
    if case == "no repository":
        write(folder, {"a.md": "b"})
        assert history_of(folder).keep([Kept("a.md", b"b")], OWNER)
        assert history_of(folder).text("HEAD", "a.md") is None
    else:
        repository = Repository(folder)
        head = repository.commit("Begin", {"a.md": "a"})
        if case == "detached":
            repository.git("checkout", "--quiet", "--detach")
        history = history_of(folder, commit="off" if case == "off" else "tools")
        assert history.keep([Kept("a.md", b"b", apart=case == "apart")], SCRIBE)
        assert repository.git("rev-parse", "HEAD") == head
    assert history_of(folder).versions("a.md")[0].summary == "Edit a.md"


def test_a_submodule_is_never_replaced_by_a_folder(plain: Repository) -> None:
    first = plain.commit("Begin", {"a.md": "a"})
    plain.git("update-index", "--add", "--cacheinfo", f"160000,{first},inner")
    plain.git("commit", "--quiet", "-m", "A submodule")
    with pytest.raises(GitFailed):
        plain.edit("inner/b.md", "b")
    plain.git("rm", "--quiet", "--cached", "inner")
    with pytest.raises(GitFailed, match="submodule"):
        plain.edit("inner/b.md", "b")
    assert plain.git("ls-tree", "HEAD", "inner").startswith("160000")


def test_a_notebook_below_a_repository_and_a_linked_work_tree_commit_to_their_branch(folder: Path) -> None:
    repository = Repository(folder / "code")
    repository.commit("Begin", {"main.py": "x", "notes/a.md": "a"})
    side = folder / "side"
    repository.git("worktree", "add", "--quiet", "-b", "side", str(side))
    for root, branch in ((repository.root / "notes", "main"), (side / "notes", "side")):
        assert history_of(root).keep([Kept("b.md", b"b"), Kept("a.md", None)], OWNER)
        assert repository.tree(branch) == {"main.py": "x", "notes/b.md": "b"}
        assert history_of(root).head_text("b.md") == b"b"


def test_found_text_is_committed_before_it_is_replaced(plain: Repository) -> None:
    plain.commit("Begin", {"a.md": "a", "b.md": "b"})
    write(plain.root, {"a.md": "by hand"})
    plain.git("add", "a.md")
    history = history_of(plain.root)
    write(plain.root, {"a.md": "by the agent"})
    found = [Kept("a.md", b"by hand"), Kept("b.md", b"b")]
    made = history.keep([Kept("a.md", b"by the agent", "write")], SCRIBE, found=found)
    assert history.text(f"{made}"[:40], "a.md") == b"by the agent"
    assert history.keep([Kept("b.md", b"b")], SCRIBE, found=[Kept("a.md", b"by the agent")]) is None
    authors = [(version.changed_by, version.summary) for version in history.versions("a.md")]
    assert authors[:2] == [("agent:scribe", "write"), ("owner", "Keep what was edited by hand")]
    assert plain.status() == []


# Nothing that a repository names is run, and nothing waits for ever.

PROGRAMS = [
    "core.fsmonitor", "core.pager", "pager.log", "diff.external", "diff.bad.textconv", "diff.bad.command",
    "filter.bad.smudge", "filter.bad.clean", "filter.bad.process", "gpg.program", "core.sshCommand",
    "trailer.agent.command", "core.askPass", "core.editor", "credential.helper", "core.alternateRefsCommand",
]  # fmt: skip
ODD = [
    "log.showSignature=true", "log.showRoot=false", "log.follow=true", "diff.orderFile=/nowhere", "commit.gpgSign=true",
    "log.diffMerges=separate", "diff.renames=false", "diff.relative=false", "color.ui=always", "format.pretty=fuller",
    "diff.noprefix=true", "i18n.logOutputEncoding=UTF-16", "core.quotePath=true", "core.splitIndex=true",
]  # fmt: skip
HOOKS = ["pre-commit", "post-commit", "reference-transaction", "post-index-change", "pre-auto-gc", "post-checkout"]


def test_nothing_that_a_repository_names_is_run(plain: Repository, tmp_path: Path) -> None:
    plain.commit("Begin", {"a.md": "a", ".gitattributes": "*.md diff=bad filter=bad\n"})
    signed = plain.git("cat-file", "commit", "HEAD").replace("\n\n", "\ngpgsig none\n\n", 1)
    plain.git("reset", "--quiet", plain.git("hash-object", "-wt", "commit", "--stdin", given=f"{signed}\n".encode()))
    ran, script = tmp_path / "ran", tmp_path / "script"
    script.write_text(f"#!/bin/sh\necho $0 >> {ran}\n")
    script.chmod(0o755)
    (plain.root / ".git/hooks").mkdir(exist_ok=True)
    for hook in HOOKS:
        (plain.root / f".git/hooks/{hook}").symlink_to(script)
    for setting in (*(f"{key}={script}" for key in PROGRAMS), *ODD):
        plain.git("config", *setting.split("=", 1))
    history = history_of(plain.root)
    write(plain.root, {"a.md": "b"})
    assert history.keep([Kept("a.md", b"b", "write")], SCRIBE)
    assert [version.changed_by for version in history.versions("a.md")] == ["agent:scribe", "owner"]
    assert (history.created_at(["a.md"]).keys(), history.head_text("a.md")) == ({"a.md"}, b"b")
    history.pack()
    assert not ran.exists()


def test_what_a_partial_clone_lacks_is_not_fetched(plain: Repository, tmp_path: Path) -> None:
    plain.commit("First", {"a.md": "first"})
    plain.commit("Second", {"a.md": None, "b.md": "second"})
    plain.git("config", "uploadpack.allowFilter", "true")
    clone, ran = tmp_path / "clone", tmp_path / "ran"
    plain.git("clone", "--quiet", "--filter=blob:none", "--no-checkout", f"file://{plain.root}", str(clone))
    run_git(clone, "config", "remote.origin.url", f"ext::touch {ran}")
    run_git(clone, "config", "protocol.ext.allow", "always")
    history = history_of(clone)
    with pytest.raises(GitFailed):
        history.text(history.versions("b.md")[-1].rev, "b.md")
    assert history.created_at(["b.md"])
    assert not ran.exists()


def test_the_repository_of_a_hook_is_not_mistaken_for_the_notebooks(
    plain: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain.commit("Mine", {"a.md": "a"})
    Repository(tmp_path / "other").commit("Theirs", {"a.md": "b"})
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other/.git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "other"))
    assert [version.summary for version in history_of(plain.root).versions("a.md")] == ["Mine"]


def test_a_git_that_hangs_is_stopped(plain: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain.commit("Begin", {"a.md": "a"})
    slow = tmp_path / "bin/git"
    write(tmp_path, {"bin/git": "#!/bin/sh\nexec sleep 600\n"})
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(module, "ANSWER_SECONDS", 0.1)
    with pytest.raises(GitFailed, match=r"took longer than 0\.1 s"):
        history_of(plain.root).head_text("a.md")


def test_without_git_there_is_a_reason_and_no_undo(plain: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    plain.commit("Begin", {"a.md": "a"})
    for history in (history_of(plain.root), history_of(plain.root.parent / "none")):
        with monkeypatch.context() as patch:
            patch.setenv("PATH", "/nowhere")
            assert not module.has_git()
            with pytest.raises(GitFailed, match="git is not installed"):
                history.keep([Kept("a.md", b"b")], OWNER)


def test_a_repository_that_git_does_not_trust_says_how_to_trust_it(
    plain: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain.commit("First", {"a.md": "a"})
    monkeypatch.setitem(module._OWN_VARIABLES, "GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    with pytest.raises(GitFailed, match=f"git config --global --add safe.directory {plain.root}"):
        history_of(plain.root).head_text("a.md")
