"""Real repositories, made commit by commit, and what their log tells of the files."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from notebook_sync.errors import NotebookError
from notebook_sync.files import history as module
from notebook_sync.files.git import environment
from notebook_sync.files.history import committed, git_history, init_repository, is_tracked_by_git

pytestmark = pytest.mark.usefixtures("no_git_settings")

NOON = datetime(2026, 2, 18, 12, tzinfo=UTC)


class Repository:
    """A repository whose clock moves one hour with each commit."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.clock = NOON
        root.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str, stdin: bytes | None = None) -> str:
        when = f"{int(self.clock.timestamp())} +0300"
        answer = subprocess.run(
            ["git", "-C", self.root, *arguments],
            env={
                **os.environ,
                **{f"GIT_{who}_NAME": "Ann" for who in ("AUTHOR", "COMMITTER")},
                **{f"GIT_{who}_EMAIL": "ann@example.org" for who in ("AUTHOR", "COMMITTER")},
                **{f"GIT_{who}_DATE": when for who in ("AUTHOR", "COMMITTER")},
            },
            input=stdin,
            check=True,
            capture_output=True,
        )
        return answer.stdout.decode()

    def commit(self, message: str, files: Mapping[str, str | None] | None = None) -> None:
        """Write `files` (None deletes one), stage everything, commit, and let an hour pass."""
        for path, text in (files or {}).items():
            place = self.root / path
            if text is None:
                place.unlink()
            else:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", message)
        self.clock += timedelta(hours=1)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "notebook")


def subjects(root: Path, path: str) -> list[str]:
    seed = git_history(root).seed_of(path)
    return [crumb["summary"] for crumb in seed.history] if seed else []


def test_each_change_of_content_is_a_version(repository: Repository) -> None:
    repository.commit("Begin a plan", {"pages/plan.md": "one"})
    repository.commit("Something else", {"pages/other.md": "x"})
    repository.commit("Think again\n\nA body.\n\nAgent: scribe\n", {"pages/plan.md": "two"})

    seed = git_history(repository.root).seed_of("pages/plan.md")

    assert seed is not None
    assert seed.version == 2
    assert seed.created_at == NOON
    assert seed.created_at.utcoffset() == timedelta()
    assert seed.history == (
        {"version": 1, "timestamp": NOON, "summary": "Begin a plan", "changed_by": "owner"},
        {
            "version": 2,
            "timestamp": NOON + timedelta(hours=2),
            "summary": "Think again",
            "changed_by": "agent:scribe",
        },
    )


def test_a_change_of_mode_is_not_a_version(repository: Repository) -> None:
    repository.commit("First", {"a.md": "a"})
    (repository.root / "a.md").chmod(0o755)
    repository.commit("Executable, for some reason")

    assert subjects(repository.root, "a.md") == ["First"]


def test_only_the_last_fifty_changes_are_told(repository: Repository) -> None:
    for number in range(53):
        repository.commit(f"Change {number}", {"a.md": str(number)})

    seed = git_history(repository.root).seed_of("a.md")

    assert seed is not None
    assert seed.version == 53
    assert seed.created_at == NOON
    assert [crumb["version"] for crumb in seed.history] == list(range(4, 54))
    assert seed.history[-1]["summary"] == "Change 52"


def test_a_renamed_file_takes_its_past_along(repository: Repository) -> None:
    text = "---\nid: the-plan\n---\n" + "".join(f"line {number}\n" for number in range(40))
    repository.commit("Begin", {"draft.md": text})
    repository.commit("Move", {"draft.md": None, "pages/plan.md": text})
    repository.commit("Move and edit", {"pages/plan.md": None, "pages/final.md": text + "end\n"})

    history = git_history(repository.root)
    seed = history.seed_of("pages/final.md")

    assert seed is not None
    assert seed.created_at == NOON
    assert [crumb["summary"] for crumb in seed.history] == ["Begin", "Move and edit"]
    assert history.seed_of("draft.md") is None


LIKE = "".join(f"line {number}\n" for number in range(40))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (LIKE, LIKE + "end\n"),
        (f"---\nid: a\n---\n{LIKE}", f"---\nid: b\n---\n{LIKE}"),
        (f"---\nid: a\n---\n{LIKE}", LIKE),
        ("", ""),
    ],
)
def test_what_is_merely_like_a_note_that_went_in_the_same_commit_starts_anew(
    repository: Repository, old: str, new: str
) -> None:
    repository.commit("Begin", {"old.md": old})
    repository.commit("Another", {"old.md": None, "new.md": new})

    assert subjects(repository.root, "new.md") == ["Another"]


def test_which_of_two_equal_notes_moved_where_is_what_a_tool_says_of_it_or_nobodys_guess(
    repository: Repository,
) -> None:
    repository.commit("First", {"a/x.md": LIKE})
    repository.commit("Second", {"a/y.md": LIKE})
    moved = {"a/x.md": None, "a/y.md": None, "b/x.md": LIKE, "b/y.md": LIKE}
    repository.commit("By hand", moved)
    assert subjects(repository.root, "b/x.md") == ["By hand"]

    told = "Path: b/x.md\nAction: rename\nReason: from a/y.md\nPath: a/y.md\nReason: to b/x.md\n"
    repository.git("reset", "--quiet", "--soft", "HEAD^")
    repository.git("commit", "--quiet", "-m", "Edit them", "-m", told)
    assert subjects(repository.root, "b/x.md") == ["Second"]
    assert subjects(repository.root, "b/y.md") == ["First"]


def test_a_note_that_left_a_channel_starts_anew_and_names_nothing_of_it(repository: Repository) -> None:
    told = "Edit pages/b.md, channels/pilot/global/a.md\n\nPath: pages/b.md\nAction: rename\n"
    repository.commit("A secret", {"channels/pilot/global/a.md": LIKE})
    repository.commit(
        f"{told}Reason: from channels/pilot/global/a.md\nPath: channels/pilot/global/a.md\nReason: to pages/b.md\n",
        {"channels/pilot/global/a.md": None, "pages/b.md": LIKE},
    )

    assert subjects(repository.root, "pages/b.md") == ["Edit pages/b.md"]


def test_another_note_where_one_was_deleted_starts_anew(repository: Repository) -> None:
    repository.commit("Begin", {"a.md": "---\nid: one\n---\n"})
    repository.commit("Drop", {"a.md": None})
    repository.commit("Another", {"a.md": "---\nid: two\n---\n"})

    assert subjects(repository.root, "a.md") == ["Another"]


def test_a_new_file_under_an_old_name_starts_anew(repository: Repository) -> None:
    repository.commit("Begin", {"plan.md": "a long enough text to be recognised\n"})
    repository.git("mv", "plan.md", "old-plan.md")
    repository.commit("Move")
    repository.commit("Second plan", {"plan.md": "another"})

    assert subjects(repository.root, "plan.md") == ["Second plan"]
    assert subjects(repository.root, "old-plan.md") == ["Begin"]


def test_two_files_that_swap_names_swap_their_pasts(repository: Repository) -> None:
    repository.commit("One", {"a.md": "the text of the first\n"})
    repository.commit("Two", {"b.md": "quite other words here\n"})
    repository.commit("Away", {"a.md": None, "c.md": "the text of the first\n"})
    repository.commit("Over", {"b.md": None, "a.md": "quite other words here\n"})
    repository.commit("Back", {"c.md": None, "b.md": "the text of the first\n"})

    assert subjects(repository.root, "a.md") == ["Two"]
    assert subjects(repository.root, "b.md") == ["One"]


def test_a_file_made_again_goes_on_where_it_stopped(repository: Repository) -> None:
    repository.commit("Begin", {"a.md": "one"})
    repository.commit("Drop", {"a.md": None})
    repository.commit("Regret", {"a.md": "two"})

    assert subjects(repository.root, "a.md") == ["Begin", "Regret"]


def test_an_edit_on_a_branch_follows_a_rename_on_the_other(repository: Repository) -> None:
    text = "".join(f"line {number}\n" for number in range(40))
    repository.commit("Begin", {"a.md": text})
    repository.git("checkout", "--quiet", "-b", "side")
    repository.commit("Edit", {"a.md": text + "more\n"})
    repository.git("checkout", "--quiet", "main")
    repository.git("mv", "a.md", "b.md")
    repository.commit("Move")
    repository.git("merge", "--quiet", "--no-edit", "side")

    assert (repository.root / "b.md").read_text() == text + "more\n"
    assert sorted(subjects(repository.root, "b.md")) == ["Begin", "Edit"]


def test_paths_are_relative_to_a_notebook_below_the_repository(repository: Repository) -> None:
    repository.commit("Code", {"src/main.py": "pass", "README.md": "read me"})
    repository.commit("Note", {"notes/pages/plan.md": "plan"})

    history = git_history(repository.root / "notes")

    assert len(history) == 1
    assert history.seed_of("pages/plan.md") is not None


@pytest.mark.parametrize("name", ["ü ñ.md", 'quote".md', "tab\tnew\nline.md", ":100644 a b M.md", "commit"])
def test_odd_names_are_names(repository: Repository, name: str) -> None:
    repository.commit("Odd", {name: "x", "plain.md": "y"})
    repository.git("mv", name, f"moved {name}")
    repository.commit(":100644 100644 a b M")

    history = git_history(repository.root)

    assert history.seed_of(f"moved {name}") is not None
    assert history.seed_of("plain.md") is not None
    assert len(history) == 2


def test_a_name_that_is_not_utf8_is_left_out(repository: Repository) -> None:
    (repository.root / os.fsdecode(b"caf\xe9.md")).write_text("latin")
    repository.commit("Latin", {"plain.md": "y"})
    repository.git("mv", os.fsdecode(b"caf\xe9.md"), "café.md")
    repository.commit("UTF-8")

    history = git_history(repository.root)

    assert len(history) == 2
    assert subjects(repository.root, "café.md") == ["UTF-8"]


def test_a_symbolic_link_has_no_past(repository: Repository) -> None:
    (repository.root / "link.md").symlink_to("plain.md")
    repository.commit("Link", {"plain.md": "y"})

    assert git_history(repository.root).seed_of("link.md") is None


def test_a_message_is_cut_and_an_absurd_time_is_kept_within_bounds(repository: Repository) -> None:
    repository.commit("x" * 5000, {"a.md": "a"})
    tree = repository.git("rev-parse", "HEAD^{tree}").strip()
    made = f"tree {tree}\nauthor A <a> 99999999999999 +0000\ncommitter A <a> 1 +0000\n\nOdd"
    commit = repository.git("hash-object", "-t", "commit", "-w", "--literally", "--stdin", stdin=made.encode())
    repository.git("branch", "odd", commit.strip())

    assert subjects(repository.root, "a.md") == ["x" * 200]
    repository.git("checkout", "--quiet", "odd")
    seed = git_history(repository.root).seed_of("a.md")
    assert seed is not None
    assert seed.created_at.year in (1970, 9999)


def test_the_first_agent_of_several_is_named(repository: Repository) -> None:
    repository.commit("Pair\n\nAgent: scribe\nAgent: critic\n", {"a.md": "a"})
    repository.commit("Not a trailer\n\nAgent: scribe was here\nand left\n\nBye.\n", {"b.md": "b"})

    history = git_history(repository.root)

    assert [history.seed_of(path).history[0]["changed_by"] for path in ("a.md", "b.md")] == [  # type: ignore[union-attr]
        "agent:scribe",
        "owner",
    ]


def test_a_folder_without_repository_has_no_past(tmp_path: Path) -> None:
    history = git_history(tmp_path)

    assert len(history) == 0
    assert history.reason == ""
    assert not is_tracked_by_git(tmp_path)


def test_a_repository_without_commits_has_no_past(repository: Repository) -> None:
    (repository.root / "a.md").write_text("a")

    history = git_history(repository.root)

    assert history.seed_of("a.md") is None
    assert history.reason == ""
    assert is_tracked_by_git(repository.root)


def test_a_machine_without_git_has_no_past(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    repository.commit("First", {"a.md": "a"})
    monkeypatch.setenv("PATH", str(repository.root))

    assert len(git_history(repository.root)) == 0
    assert git_history(repository.root).reason == ""
    assert not is_tracked_by_git(repository.root)
    assert not init_repository(repository.root)


def test_a_detached_head_tells_its_own_past(repository: Repository) -> None:
    repository.commit("First", {"a.md": "a"})
    repository.commit("Second", {"a.md": "b"})
    repository.git("checkout", "--quiet", "--detach", "HEAD^")

    assert subjects(repository.root, "a.md") == ["First"]


def test_a_shallow_clone_tells_what_it_has(repository: Repository, tmp_path: Path) -> None:
    repository.commit("First", {"a.md": "a", "b.md": "b"})
    repository.commit("Second", {"a.md": "c"})
    clone = tmp_path / "clone"
    repository.git("clone", "--quiet", "--depth=1", f"file://{repository.root}", str(clone))

    assert subjects(clone, "a.md") == ["Second"]
    assert subjects(clone, "b.md") == ["Second"]


def test_a_submodule_tells_its_own_past(repository: Repository, tmp_path: Path) -> None:
    inner = Repository(tmp_path / "inner")
    inner.commit("Inner", {"a.md": "a"})
    repository.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.root), "notes")
    repository.commit("Outer", {"b.md": "b"})

    assert subjects(repository.root / "notes", "a.md") == ["Inner"]
    assert git_history(repository.root).seed_of("notes") is None


def test_nothing_a_repository_names_is_run(repository: Repository, tmp_path: Path) -> None:
    text = "---\nid: the-plan\n---\n" + "".join(f"line {number}\n" for number in range(40))
    repository.commit("First", {"a.md": text})
    repository.commit("Move\n\nAgent: scribe\n", {"a.md": None, "b.md": text + "more\n"})
    signed = repository.git("cat-file", "commit", "HEAD").replace("\n\n", "\ngpgsig none\n\n", 1)
    repository.git("reset", "-q", repository.git("hash-object", "-wt", "commit", "--stdin", stdin=signed.encode())[:-1])
    ran = tmp_path / "ran"
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\necho $0 >> {ran}\n")
    script.chmod(0o755)
    for key in (
        "core.fsmonitor", "core.pager", "pager.log", "diff.external", "diff.bad.textconv", "diff.bad.command",
        "filter.bad.smudge", "filter.bad.clean", "gpg.program", "core.sshCommand", "trailer.agent.command",
        "trailer.agent.cmd", "core.askPass", "core.editor", "credential.helper",
    ):  # fmt: skip
        repository.git("config", key, str(script))
    for setting in (
        "log.showSignature=true", "log.showRoot=false", "log.follow=true", "diff.orderFile=/nowhere",
        "log.diffMerges=separate",
        "diff.renames=false", "diff.relative=false", "diff.renameLimit=1", "color.ui=always",
        "format.pretty=fuller", "diff.noprefix=true", "i18n.logOutputEncoding=UTF-16", "core.quotePath=true",
    ):  # fmt: skip
        repository.git("config", *setting.split("="))
    (repository.root / ".git/info/attributes").write_text("*.md diff=bad filter=bad\n")
    hooks = repository.root / ".git/hooks"
    for hook in ("post-index-change", "pre-auto-gc", "reference-transaction", "post-checkout"):
        (hooks / hook).symlink_to(script)

    seed = git_history(repository.root).seed_of("b.md")
    is_tracked_by_git(repository.root)

    assert not ran.exists()
    assert seed is not None
    assert seed.created_at == NOON
    assert [crumb["changed_by"] for crumb in seed.history] == ["owner", "agent:scribe"]


def test_what_a_partial_clone_lacks_is_not_fetched(repository: Repository, tmp_path: Path) -> None:
    repository.commit("First", {"a.md": "the first of several lines\n" * 9})
    repository.commit("Second", {"a.md": None, "b.md": "the first of several lines\n" * 8})
    repository.git("config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "clone"
    repository.git("clone", "--quiet", "--filter=blob:none", "--no-checkout", f"file://{repository.root}", str(clone))
    ran = tmp_path / "ran"
    subprocess.run(["git", "-C", clone, "config", "remote.origin.url", f"ext::touch {ran}"], check=True)
    subprocess.run(["git", "-C", clone, "config", "protocol.ext.allow", "always"], check=True)

    history = git_history(clone)

    assert not ran.exists()
    assert history.reason == ""
    assert history.seed_of("b.md") is not None


def test_the_repository_around_a_hook_is_not_mistaken_for_the_notebooks(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit("Mine", {"a.md": "a"})
    other = Repository(tmp_path / "other")
    other.commit("Theirs", {"a.md": "b"})
    monkeypatch.setenv("GIT_DIR", str(other.root / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.root))

    assert subjects(repository.root, "a.md") == ["Mine"]


def test_a_repository_that_git_does_not_trust_says_how_to_trust_it(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit("First", {"notes/a.md": "a"})
    told = {**environment(), "GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"}
    monkeypatch.setattr(module, "environment", lambda: told)

    history = git_history(repository.root / "notes")

    assert len(history) == 0
    assert history.reason.endswith(f"git config --global --add safe.directory {repository.root}")


def test_a_broken_log_tells_nothing_rather_than_half(repository: Repository) -> None:
    repository.commit("First", {"a.md": "a"})
    broken = repository.git("rev-parse", "HEAD:").strip()
    repository.commit("Second", {"a.md": "b"})
    (repository.root / ".git/objects" / broken[:2] / broken[2:]).unlink()

    history = git_history(repository.root)

    assert history.seed_of("a.md") is None
    assert history.reason.startswith("git does not answer: ")


def test_a_missing_folder_has_no_past(tmp_path: Path) -> None:
    history = git_history(tmp_path / "gone")

    assert len(history) == 0
    assert "gone" in history.reason


def test_many_files_and_commits_are_read_in_one_pass(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    stream = [b"blob\nmark :1\ndata 1\na\n", b"blob\nmark :2\ndata 1\nb\n"]
    for number in range(300):
        stream.append(b"commit refs/heads/main\ncommitter A <a> %d +0000\ndata 3\nnth\n" % (1000 + number))
        files = range(2000) if number == 0 else range(number, 2000, 300)
        stream += [b"M 100644 :%d f%d/n%d.md\n" % (1 + number % 2, file % 7, file) for file in files]
    repository.git("fast-import", "--quiet", stdin=b"".join(stream))

    history = git_history(tmp_path)

    assert len(history) == 2000
    seeds = [history.seed_of(f"f{file % 7}/n{file}.md") for file in range(2000)]
    assert sum(seed.version for seed in seeds if seed) == 2000 + sum(
        len(range(number, 2000, 300)) for number in range(1, 300, 2)
    )


def test_a_repository_is_made_without_a_commit(tmp_path: Path) -> None:
    assert init_repository(tmp_path)

    assert is_tracked_by_git(tmp_path)
    assert len(git_history(tmp_path)) == 0


def test_a_refusal_to_make_a_repository_is_told(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("not a repository")

    with pytest.raises(NotebookError, match="git made no repository in"):
        init_repository(tmp_path)


def test_what_the_last_commit_holds_is_told_to_the_byte(tmp_path: Path) -> None:
    root = tmp_path / "vault"
    repository = Repository(root)
    files = {"nb/a b.md": "one\n\ntwo", "nb/empty.md": "", "nb/folder/x.md": "x\n", "nb/5": "number"}
    repository.commit("Begin", files)
    (root / "nb/a b.md").write_text("edited")
    (root / "nb/new.md").write_text("new")
    asked = ["a b.md", "nowhere blob 5", "folder", "new.md", "two\nlines.md", "empty.md", "../outside.md", "5"]
    held = committed(root / "nb", asked)
    assert held == {"a b.md": b"one\n\ntwo", "empty.md": b"", "5": b"number"}


def test_without_a_commit_nothing_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert committed(tmp_path, ["a.md"]) is None
    Repository(tmp_path)
    assert committed(tmp_path, ["a.md"]) is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert committed(tmp_path, ["a.md"]) is None
