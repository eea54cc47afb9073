"""The whole notebook in one file, and back: the same files, history, versions and memory."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from notebook_sync import Edit, Notebook, Session
from notebook_sync.errors import BackendDown, NotebookError, Refused, UsageError
from notebook_sync.files.facts import id_of
from notebook_sync.notes.archive import format as archive_format
from notebook_sync.notes.archive import packing as archive_packing
from notebook_sync.notes.archive import placing as archive_placing
from tests.docs_shell import REPOSITORY, Reader, blocks_of
from tests.notes.whole_notebooks import files_of, git, git_of, members_of, told_by
from tests.servers import drop_keys

OWNER = Session.owner()
SCRIBE = Session.task("scribe")
MEMORY = "[DECISION] Six o'clock\n\nCONTEXT: The tide.\n\nREASONING: Low at seven.\n\nOUTCOME: It leaves at six."
PICTURE = bytes(range(256)) * 40


@pytest.fixture
def root(lived_in: Path, tmp_path: Path) -> Path:
    return shutil.copytree(lived_in, tmp_path / "office", symlinks=True)


@pytest.fixture(scope="module")
def lived_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A notebook with what is committed and what is not, renamed, edited by tools, logged and remembered."""
    root = tmp_path_factory.mktemp("lived") / "office"
    Notebook.init(root)
    write(root, "pages/ferry.md", "# The ferry\r\n\r\n## Log\r\n\r\n- It leaves at six.\r\n")
    write(root, "pages/Ångström 🧭/tide.md", "---\nid: tide\ntags: [sea]\n---\n# Tide\n\nHigh at nine.\n")
    write(root, "code_snippets/sort.md", "# Sort\n\n```python\nsorted([])\n```\n")
    write(root, "runtime/reminders.md", "## Today\n\n- [ ] Oil the lamp\n")
    write(root, "pages/empty.md", "")
    (root / "pages" / "pier.png").write_bytes(PICTURE)
    write(root, "bin/count.sh", "#!/bin/sh\nls | wc -l\n")
    (root / "bin" / "count.sh").chmod(0o755)
    write(root, "bin/.gitignore", "*.log\n")
    write(root, "bin/last.log", "of no interest\n")
    write(root, ".github/hooks.md", "tracked, though hidden\n")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "-m", "All that was there")
    git(root, "tag", "first")
    git(root, "branch", "winter")
    with Notebook.open(root) as notebook:
        notebook.sync()
        for number in range(3):
            edit = Edit("append_to_section", section="Log", content=f"- Line {number}")
            notebook.edit("pages/ferry.md", edit, Session.task("pilot"))
        notebook.rename("code_snippets/sort.md", "code_snippets/order.md", OWNER)
        notebook.channels.write("The harbour master is ill.", SCRIBE, topic="people")
        notebook.create("pages", "Fares", "A ticket is three crowns.", SCRIBE, tags=["money"])
        for _ in range(2):
            notebook.facts.add("The pier light is green", SCRIBE)
        notebook.facts.add("A dog rides for free", SCRIBE)
        notebook.fact_rows.update_importance(id_of("A dog rides for free"), 0.8)
        kept = notebook.memories.add(MEMORY, SCRIBE, tags=["sea"], strict=True)
        notebook.memory_rows.used([kept.notebook_id], datetime(2026, 3, 1, tzinfo=UTC))
        notebook.memory_rows.put_scores({kept.notebook_id: 0.625}, datetime.now(UTC))
        notebook.stream.log("Odile asked for the fares", SCRIBE, tags=["fares"])
        notebook.stream.log("The lamp is Ines's", OWNER, keep=True)
        notebook.stream.checkpoint("before the storm", OWNER)
        write(root, "pages/ferry.md", (root / "pages/ferry.md").read_text() + "\nNot committed.\n")
        write(root, "pages/new.md", "# New\n\nNot even added.\n")
        (root / "code_snippets" / "order.md").unlink()
        facts = (root / "facts/notes.md").read_text()
        write(root, "facts/notes.md", facts.replace("- A dog rides for free\n", ""))
        notebook.sync()
    os.utime(root / "pages" / "pier.png", ns=(10**18 + 1, 10**18 + 123_456_789))
    return root


def test_it_comes_back_the_same(root: Path, tmp_path: Path) -> None:
    exported = export(root, tmp_path)
    with Notebook.open(root) as notebook:
        before = told_by(notebook)
    done: list[tuple[int, int]] = []
    imported = Notebook.import_archive(exported.path, tmp_path / "deep" / "copy", progress=lambda *at: done.append(at))
    copy = tmp_path / "deep" / "copy"
    assert imported.root == copy
    assert files_of(copy) == files_of(root)
    assert git_of(copy) == git_of(root)
    assert git(copy, "remote") == ""
    with Notebook.open(copy) as notebook:
        assert told_by(notebook) == before
        assert notebook.admin.verify().consistent
        assert notebook.sync().unchanged == exported.notes
        assert before["notes"]["pages/ferry"]["version"] > 4
        assert [(fact.access_count, fact.gone_at is None) for fact in before["facts"]] == [(0, False), (1, True)]
        assert [use[1:] for use in before["use"]] == [(1, datetime(2026, 3, 1, tzinfo=UTC), 0.625)]
    assert done
    assert done[-1][0] == done[-1][1]
    counts = {"files": exported.files, "notes": exported.notes, "commits": exported.commits}
    assert {name: imported.as_dict()[name] for name in counts} == counts
    assert (imported.entries, imported.longterm, imported.checkpoints) == (len(before["stream"]), 1, 1)
    assert sorted(path.name for path in copy.parent.iterdir()) == ["copy"]


def test_it_comes_back_on_servers_the_same(
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mongodb_url: str,
    mongo_database: str,
    redis_stack_url: str,
    redis_prefix: str,
) -> None:
    settings = f"[mirror]\ndatabase = '{mongo_database}'\n[refs]\nprefix = '{redis_prefix}'\n"
    write(root, "notebook.toml", settings)
    exported = export(root, tmp_path)
    with Notebook.open(root) as notebook:
        before = told_by(notebook)
    monkeypatch.setenv("MONGODB_URL", mongodb_url)
    monkeypatch.setenv("REDIS_URL", redis_stack_url)
    Notebook.import_archive(exported.path, tmp_path / "copy")
    with Notebook.open(tmp_path / "copy") as notebook:
        assert notebook.mirror.name.startswith("MongoDB")
        assert told_by(notebook) == before
        assert notebook.admin.verify().consistent
        found = notebook.stream.recall("fares", OWNER).results
        assert "Odile asked for the fares" in [entry.content for entry in found]
    drop_keys(redis_stack_url, redis_prefix)


def test_the_same_notebook_makes_the_same_bytes_and_so_does_its_copy(root: Path, tmp_path: Path) -> None:
    first = export(root, tmp_path)
    again = export(root, tmp_path, "again.tar.gz")
    assert Path(again.path).read_bytes() == Path(first.path).read_bytes()
    Notebook.import_archive(first.path, tmp_path / "copy")
    members, copied = members_of(first.path), members_of(export(tmp_path / "copy", tmp_path, "copy.tar.gz").path)
    for packed in (members, copied):  # git may pack the same commits otherwise
        del packed["manifest.json"], packed["history.bundle"]
    assert copied == members


def test_it_is_a_plain_tar_whose_manifest_comes_first_and_tells_what_follows(root: Path, tmp_path: Path) -> None:
    exported = export(root, tmp_path)
    listed = subprocess.run(["tar", "tzf", str(exported.path)], capture_output=True, text=True, check=True)
    assert listed.stdout.splitlines()[0] == "manifest.json"
    members = members_of(exported.path)
    manifest = json.loads(members.pop("manifest.json"))
    assert manifest["format"] == 1
    assert [(one["name"], one["size"], one["sha256"]) for one in manifest["members"]] == [
        (name, len(raw), hashlib.sha256(raw).hexdigest()) for name, raw in members.items()
    ]
    assert list(members) == [*sorted(name for name in members if "/" in name), *archive_format.BESIDE]


def test_no_token_nothing_ignored_and_nothing_of_this_program_is_in_it(root: Path, tmp_path: Path) -> None:
    token = json.loads((root / ".notebook" / "tokens.json").read_text())["tokens"][0]["secret"]
    members = members_of(export(root, tmp_path).path)
    assert not any(token.encode() in raw for raw in members.values())
    names = [name for name in members if name.startswith("files/")]
    assert not any(".notebook" in name or name.startswith("files/.git/") or name.endswith(".log") for name in names)
    assert {"files/.gitignore", "files/bin/.gitignore", "files/.github/hooks.md", "files/pages/pier.png"} <= {*names}
    Notebook.import_archive(tmp_path / "office.tar.gz", tmp_path / "copy")
    made = tmp_path / "copy" / ".notebook" / "tokens.json"
    assert json.loads(made.read_text())["tokens"][0]["secret"] != token
    assert made.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "office.tar.gz").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ('[tier2]\nenabled = true\ncommand = ["sh", "-c", "id"]\n', "tier2.command"),
        (
            '[search]\nembeddings = "openai:small"\nbase_url = "http://away.example"\n',
            "search.embeddings, search.base_url",
        ),
        ('[search]\napi_key_env = "HARBOUR_TOKEN"\n', "search.api_key_env"),
        ('[llm]\nbase_url = "http://away.example"\napi_key_env = "HARBOUR_TOKEN"\n', "llm.base_url, llm.api_key_env"),
        ('[server]\nhost = "0.0.0.0"\n', "server.host"),
        ('[server]\nallowed_hosts = ["away.example"]\n', "server.allowed_hosts"),
        ('[search]\nembeddings = "openai:small"\n', "search.embeddings"),
        ('[llm]\nmodel = "small"\n', "llm.model"),
    ],
)
def test_settings_that_reach_out_are_taken_from_no_archive_that_is_not_trusted(
    root: Path, tmp_path: Path, settings: str, key: str
) -> None:
    write(root, "notebook.toml", settings)
    archive, folder = tmp_path / "ferry.tar.gz", tmp_path / "new"
    with Notebook.open(root) as notebook:
        notebook.admin.export(archive, Session.owner())
    with pytest.raises(UsageError, match=rf"sets {re.escape(key)}: .*--trust-settings"):
        Notebook.import_archive(archive, folder)
    assert [*tmp_path.glob("new*"), *tmp_path.glob(".new*")] == []
    if key == "search.api_key_env":
        Notebook.import_archive(archive, folder, trust_settings=True)
        assert (folder / "notebook.toml").read_text() == settings


@pytest.mark.parametrize("url", ["mongodb://ines:lamp-oil@db.example/", "mongodb://db.example/?authToken=lamp-oil"])
def test_settings_with_a_password_are_not_exported(root: Path, tmp_path: Path, url: str) -> None:
    write(root, "notebook.toml", f'[mirror]\nurl = "{url}"\n')
    with pytest.raises(UsageError, match=r"mirror\.url.*set MONGODB_URL instead") as refusal:
        export(root, tmp_path)
    assert "lamp-oil" not in str(refusal.value)
    assert not list(tmp_path.glob("*.tar.gz"))


def test_a_password_that_git_remembers_is_told(root: Path, tmp_path: Path) -> None:
    write(root, "notebook.toml", '[refs]\nurl = "redis://:lamp-oil@db.example"\n')
    git(root, "commit", "--quiet", "-am", "Too much")
    commit = git(root, "rev-parse", "HEAD").strip()
    write(root, "notebook.toml", "")
    (warning,) = export(root, tmp_path).warnings
    assert commit[:12] in warning
    assert "lamp-oil" not in warning


def test_what_is_there_already_is_not_overwritten(root: Path, tmp_path: Path) -> None:
    (tmp_path / "office.tar.gz").write_text("mine")
    with pytest.raises(UsageError, match="is there already"):
        export(root, tmp_path)
    assert (tmp_path / "office.tar.gz").read_text() == "mine"


def test_an_archive_is_made_outside_of_the_notebook_in_a_folder_that_is_there(root: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="name a place outside"):
        export(root, root / "pages")
    with pytest.raises(UsageError, match="is not a folder"):
        export(root, tmp_path / "nowhere")


def test_what_cannot_be_taken_along_is_told(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_packing, "LARGEST_FILE", 10_000)
    (root / "pages" / "link.md").symlink_to(root / "pages" / "ferry.md")
    os.mkfifo(root / "pages" / "pipe")
    Path(os.fsdecode(os.fsencode(root) + b"/pages/caf\xe9.txt")).write_text("latin")
    exported = export(root, tmp_path)
    assert {each.path: each.reason.partition(";")[0] for each in exported.left_out} == {
        "pages/link.md": "a symbolic link",
        "pages/pipe": "not a regular file",
        "pages/caf\\xe9.txt": "its name is not UTF-8",
        "pages/pier.png": "10,240 bytes, more than an archive takes: 10,000",
    }


def test_names_that_some_systems_take_for_one_are_not_exported(root: Path, tmp_path: Path) -> None:
    write(root, "Pages/other.md", "# Other\n")
    with pytest.raises(UsageError, match=r"one name to some systems.*export again"):
        export(root, tmp_path)


def test_a_large_file_is_packed_as_it_is(root: Path, tmp_path: Path) -> None:
    large = os.urandom(1 << 20) * 5
    (root / "pages" / "harbour.bin").write_bytes(large)
    Notebook.import_archive(export(root, tmp_path).path, tmp_path / "copy")
    assert (tmp_path / "copy" / "pages" / "harbour.bin").read_bytes() == large


@pytest.mark.parametrize("kind", ["none", "around", "no commit", "detached"])
def test_whatever_git_there_is(tmp_path: Path, kind: str) -> None:
    top = tmp_path / "top"
    root = top / "office" if kind == "around" else top
    root.mkdir(parents=True)
    write(root, "pages/ferry.md", "# The ferry\n")
    if kind != "none":
        git(top, "init", "--quiet", "--initial-branch", "harbour")
    if kind in {"around", "detached"}:
        for number in range(2):
            write(root, "pages/ferry.md", f"# The ferry\n\n{number}\n")
            git(top, "add", "--all")
            git(top, "commit", "--quiet", "-m", f"Step {number}")
    if kind == "detached":
        git(top, "checkout", "--quiet", "--detach")
        write(root, "pages/ferry.md", "# The ferry\n\nElsewhere\n")
        git(top, "commit", "--quiet", "-am", "On no branch")
    exported = export(root, tmp_path)
    assert exported.commits == (3 if kind == "detached" else 0)
    Notebook.import_archive(exported.path, tmp_path / "copy")
    assert files_of(tmp_path / "copy") == files_of(root)
    assert (tmp_path / "copy" / ".git").exists() == (kind in {"no commit", "detached"})
    if kind in {"no commit", "detached"}:
        assert git_of(tmp_path / "copy") == git_of(root)
    with Notebook.open(tmp_path / "copy") as notebook, Notebook.open(root) as before:
        assert told_by(notebook) == told_by(before)


def test_who_had_an_id_that_others_want_has_it_again(tmp_path: Path) -> None:
    root = tmp_path / "office"
    for path in ("pages/a long name.md", "pages/b.md", "pages/c.md"):
        write(root, path, f"---\nid: lamp\n---\n# {path}\n")
        with Notebook.open(root) as notebook:
            notebook.sync()
    exported = export(root, tmp_path)
    Notebook.import_archive(exported.path, tmp_path / "copy")
    with Notebook.open(tmp_path / "copy") as notebook, Notebook.open(root) as before:
        assert before.read("lamp")["path"] == "pages/a long name.md"
        assert told_by(notebook) == told_by(before)


def test_a_folder_that_is_empty_is_filled_and_another_is_left_alone(root: Path, tmp_path: Path) -> None:
    exported = export(root, tmp_path)
    (tmp_path / "empty").mkdir()
    assert Notebook.import_archive(exported.path, tmp_path / "empty").root == tmp_path / "empty"
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for taken in ("full", "file"):
        with pytest.raises(UsageError, match="is left as it is"):
            Notebook.import_archive(exported.path, tmp_path / taken)
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["mine.txt"]


def test_where_a_store_is_away_the_files_are_in_place_and_the_same_import_goes_on(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exported = export(root, tmp_path)
    with Notebook.open(root) as notebook:
        before = told_by(notebook)
    monkeypatch.setenv("REDIS_URL", "redis://127.0.0.1:9")
    with pytest.raises(BackendDown, match=r"the files are in place in .*; once it answers, run: notebook-sync import"):
        Notebook.import_archive(exported.path, tmp_path / "copy")
    assert files_of(tmp_path / "copy") == files_of(root)
    monkeypatch.delenv("REDIS_URL")
    Notebook.import_archive(exported.path, tmp_path / "copy")
    with Notebook.open(tmp_path / "copy") as notebook:
        assert told_by(notebook) == before
    with pytest.raises(UsageError, match="is not an empty folder"):
        Notebook.import_archive(exported.path, tmp_path / "copy")


def test_nothing_is_left_of_an_export_without_its_stores(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDIS_URL", "redis://127.0.0.1:9")
    with pytest.raises(BackendDown):
        export(root, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["office"]


def test_nothing_is_left_of_what_is_interrupted(root: Path, tmp_path: Path) -> None:
    def interrupt(done: int, _: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    with Notebook.open(root) as notebook, pytest.raises(KeyboardInterrupt):
        notebook.admin.export(tmp_path / "office.tar.gz", progress=interrupt)
    assert [path.name for path in tmp_path.iterdir()] == ["office"]
    exported = export(root, tmp_path)
    with pytest.raises(KeyboardInterrupt):
        Notebook.import_archive(exported.path, tmp_path / "deep" / "copy", progress=interrupt)
    assert {path.name for path in tmp_path.iterdir()} == {"office", "office.tar.gz"}


def test_what_a_killed_import_left_goes_and_what_is_like_it_stays(root: Path, tmp_path: Path) -> None:
    exported, like_it, aside = export(root, tmp_path), tmp_path / ".copy.importing-mine", tmp_path / "aside"
    (like_it / "notebook").mkdir(parents=True)

    def interrupt(done: int, _: int) -> None:
        if done == 5:
            (making,) = set(tmp_path.glob(".copy*")) - {like_it}
            shutil.copytree(making, aside / making.name)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Notebook.import_archive(exported.path, tmp_path / "copy", progress=interrupt)
    (left,) = aside.iterdir()
    left.rename(tmp_path / left.name)
    Notebook.import_archive(exported.path, tmp_path / "copy")
    assert files_of(tmp_path / "copy") == files_of(root)
    assert list(tmp_path.glob(".copy*")) == [like_it]


def test_a_folder_that_others_may_write_to_is_never_unpacked_into(root: Path, tmp_path: Path) -> None:
    exported, seen = export(root, tmp_path), []

    def interrupt(done: int, _: int) -> None:
        seen.extend(tmp_path.glob(".copy*"))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Notebook.import_archive(exported.path, tmp_path / "copy", progress=interrupt)
    (staging,) = seen
    staging.mkdir()
    staging.chmod(0o777)
    with pytest.raises(NotebookError, match="open to others; nothing was imported"):
        Notebook.import_archive(exported.path, tmp_path / "copy")
    assert list(staging.iterdir()) == []
    staging.rmdir()
    Notebook.import_archive(exported.path, tmp_path / "copy")
    assert files_of(tmp_path / "copy") == files_of(root)


def test_where_a_file_system_locks_no_folders_an_import_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(*_: Any) -> None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    monkeypatch.setattr(archive_placing, "lock", no_locks)
    with archive_placing.alone_in(tmp_path, tmp_path / "copy") as found:
        assert os.path.samestat(found, tmp_path.stat())


@pytest.mark.parametrize("same", [True, False])
def test_of_two_imports_at_once_one_is_refused_and_the_other_is_whole(root: Path, tmp_path: Path, same: bool) -> None:
    exported, refused = export(root, tmp_path), []
    write(root, "pages/later.md", "# Later\n")
    with Notebook.open(root) as notebook:
        another = exported.path if same else notebook.admin.export(tmp_path / "later.tar.gz", OWNER).path
    (root / "pages/later.md").unlink()

    def another_begins(done: int, total: int) -> None:
        with pytest.raises((Refused, UsageError)) as told:
            Notebook.import_archive(another, tmp_path / "copy")
        refused.append(str(told.value))

    Notebook.import_archive(exported.path, tmp_path / "copy", progress=another_begins)
    under_way = f"another import into {tmp_path / 'copy'} is under way; wait for that to end"
    assert refused[0] == under_way
    assert (refused[-1] == under_way) is same
    assert same or "is not an empty folder" in refused[-1]
    assert files_of(tmp_path / "copy") == files_of(root)
    assert not list(tmp_path.glob(".copy*"))


def test_a_store_that_holds_another_notebook_is_left_alone(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mongodb_url: str, mongo_database: str
) -> None:
    other = tmp_path / "other"
    for each in (root, other):
        write(each, "notebook.toml", f"[mirror]\ndatabase = '{mongo_database}'\n")
    exported = export(root, tmp_path)
    monkeypatch.setenv("MONGODB_URL", mongodb_url)
    write(other, "pages/lighthouse.md", "# The lighthouse\n")
    with Notebook.open(other) as notebook:
        notebook.sync()
        with pytest.raises(Refused, match=r"another notebook, as pages/lighthouse\.md.*name another database"):
            Notebook.import_archive(exported.path, tmp_path / "copy")
        assert notebook.admin.verify().consistent


def test_an_archive_that_was_cut_anywhere_leaves_nothing_behind(root: Path, tmp_path: Path) -> None:
    whole = Path(export(root, tmp_path).path).read_bytes()
    (tmp_path / "cut").mkdir()
    for length in range(0, len(whole), len(whole) // 23):
        (tmp_path / "cut" / "given.tar.gz").write_bytes(whole[:length])
        with pytest.raises(NotebookError):
            Notebook.import_archive(tmp_path / "cut" / "given.tar.gz", tmp_path / "cut" / "copy")
        assert [path.name for path in (tmp_path / "cut").iterdir()] == ["given.tar.gz"]


def test_the_page_on_archives_is_so(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    with Reader(tmp_path / "home") as reader:
        for block in blocks_of((REPOSITORY / "docs" / "archive.md").read_text(encoding="utf-8")):
            reader.follow(block)


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(text.encode())


def export(root: Path, to: Path, name: str = "office.tar.gz") -> Any:
    with Notebook.open(root) as notebook:
        return notebook.admin.export(to / name)
