"""Export and import of archives: all of a notebook comes back, a hostile archive is refused before anything is written,
and an import that was interrupted completes."""

import io
import json
import os
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from notebook_sync import Notebook
from notebook_sync.errors import NotebookError, NotPermitted, Refused, UsageError
from notebook_sync.services import archive
from notebook_sync.services.importing import Exported, Imported
from notebook_sync.store.rows import Is
from notebook_sync.surfaces.cli.main import run
from tests.conftest import Copies
from tests.servers import MongoClient
from tests.services.conftest import (
    FILES,
    OWNER,
    SCRIBE,
    assert_raises,
    git,
    make_repository,
    on_mongodb,
    on_redis,
    sync_files,
    synced,
    write_files,
)

MORE = {
    "pages/می\u200cروم, 10.30\u202fAM.md": "# A name with a joiner\n",
    ".gitignore": "cache/\n",
    "cache/made.md": "# Made\n",
    "pages/map.svg": "<svg/>\n",
    "channels/scribe/global/channel.toml": '[members]\npilot = ["read"]\n',
}
INFO = json.dumps({"format": archive.FORMAT, "id": "a1"}).encode()
# What a row has that belongs to one index, or to one moment of it.
_OF_INDEX = ("rev", "stamp", "seal", "held")


def make_home(root: Path) -> None:
    """A notebook with a past: commits, edits, use, a stream, a checkpoint."""
    make_repository(write_files(root, FILES, MORE))
    with synced(root) as notebook:
        notebook.notes.update("pages/ferry.md", SCRIBE, content="# Ferry\n\nTwo coils of rope.\n")
        notebook.channels.write("The buoy drifts", SCRIBE)
        notebook.memories.add("[INSIGHT] Fog\nCONTEXT: May.\nREASONING: The sea is cold.", OWNER)
        notebook.memories.search("fog", OWNER)
        notebook.facts.reinforce("The harbour is called Quay", OWNER)
        notebook.stream.log("Odile moved the ferry", SCRIBE)
        notebook.stream.log("The harbour closes at ten", SCRIBE, keep=True)
        notebook.stream.checkpoint("before the regatta", OWNER)


@pytest.fixture
def home(copies: Copies, root: Path) -> Iterator[Notebook]:
    with Notebook.open(copies.put(make_home, root)) as notebook:
        yield notebook


def bring_in(file: Path, to: Path, **options: Any) -> Imported:
    to.mkdir(exist_ok=True)
    with Notebook.open(to) as notebook:
        done = notebook.transfer.import_(str(file), **options)
    assert done.read == done.added + done.already + done.failed
    return done


def copied(root: Path, tmp_path: Path) -> Exported:
    """Export the notebook at `root`, and import it at `there`."""
    with Notebook.open(root) as notebook:
        made = notebook.transfer.export(str(tmp_path / "all.tar"))
    assert bring_in(tmp_path / "all.tar", tmp_path / "there").failed == 0
    return made


def state_of(notebook: Notebook) -> dict[str, list[dict[str, Any]]]:
    """All that an index says, but for what belongs to one index."""
    found = {}
    for name in ("documents", "history", "facts", "fact_places", "stream", "longterm", "checkpoints", "events"):
        rows = notebook.core.index.collections[name].find(heavy=True)
        found[name] = [{key: value for key, value in row.items() if key not in _OF_INDEX} for row in rows]
    return found


def files_in(root: Path) -> dict[str, tuple[bytes, int]]:
    paths = [path for path in root.rglob("*") if path.is_file() and not {".git", ".notebook"} & set(path.parts)]
    return {str(path.relative_to(root)): (path.read_bytes(), path.stat().st_mtime_ns // 1_000) for path in paths}


def test_an_archive_brings_back_the_whole_notebook(home: Notebook, tmp_path: Path) -> None:
    made = home.transfer.export(str(tmp_path / "all.tar"))
    assert (made.left_out, made.warnings, Path(made.path).stat().st_mode & 0o777) == ([], [], 0o600)
    before, versions = state_of(home), home.notes.history("pages/ferry.md")
    there = tmp_path / "there"
    done = bring_in(tmp_path / "all.tar", there)
    assert (done.read, done.added, done.failures) == (made.files + made.rows, made.files + made.rows, [])
    expected = files_in(home.root)
    assert expected.pop("cache/made.md")
    assert files_in(there) == expected
    for asked in (["log", "--format=%H %s"], ["status", "--porcelain"]):
        assert git(there, *asked) == git(home.root, *asked)
    with Notebook.open(there) as copy:
        assert state_of(copy) == before
        here, back = home.core.place, copy.core.place
        assert (back.notebook_id == here.notebook_id, back.replica == here.replica) == (True, False)
        assert (copy.notes.history("pages/ferry.md"), copy.notes.undo("pages/ferry.md").changed) == (versions, True)
        checkpoint = copy.stream.checkpoints().results[0]
        assert "pages/ferry.md" in {each.path for each in copy.stream.rollback(checkpoint.id, files=True).files}
        assert copy.admin.verify().consistent


def test_what_a_broken_file_said_before_comes_back(home: Notebook, tmp_path: Path) -> None:
    sync_files(home, {"pages/broken.md": "# Odile\n\nThe good text.\n", "facts/crew.md": "- Odile steers\n"})
    for path in ("pages/broken.md", "facts/crew.md"):
        (home.root / path).write_bytes(b"# Odile\n\0\0\0")
    home.sync()
    home.transfer.export(str(tmp_path / "all.tar"))
    assert len(bring_in(tmp_path / "all.tar", tmp_path / "there").warnings) >= 2
    with Notebook.open(tmp_path / "there") as copy:
        assert state_of(copy) == state_of(home)
        assert "pages/broken.md" in {each.path for each in copy.search("good text").results}


def test_a_compressed_archive_is_named_as_one(notebook: Notebook, tmp_path: Path) -> None:
    tarfile.open(tmp_path / "all.tar.gz", "w:gz").close()
    assert_raises(UsageError, notebook.transfer.import_, str(tmp_path / "all.tar.gz"), match="is compressed")


def test_a_pipe_is_refused_before_it_is_read(notebook: Notebook) -> None:
    reader, writer = os.pipe()
    with os.fdopen(reader), os.fdopen(writer, "w"), pytest.raises(UsageError, match="is a pipe"):
        notebook.transfer.import_(f"/dev/fd/{reader}")


def test_an_interrupted_import_completes_and_a_second_one_is_refused(
    home: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, there = tmp_path / "all.tar", tmp_path / "there"
    home.transfer.export(str(file))
    assert (bring_in(file, there, dry_run=True).added > 0, list(there.iterdir())) == (True, [])
    moved, real = [], Path.rename

    def interrupted(path: Path, target: Path) -> Path:
        moved.append(target)
        if len(moved) == 4:
            raise KeyboardInterrupt
        return real(path, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", interrupted)
        assert_raises(KeyboardInterrupt, bring_in, file, there)
    home.transfer.export(str(tmp_path / "other.tar"))
    assert_raises(Refused, bring_in, tmp_path / "other.tar", there, match="another archive")
    assert bring_in(file, there).failed == 0
    assert_raises(Refused, bring_in, file, there, match="empty folder")
    assert files_in(there).keys() == files_in(home.root).keys() - {"cache/made.md"}
    with Notebook.open(there) as copy:
        assert len(copy.channels.recent().results) == len(home.channels.recent().results)


def test_what_cannot_be_in_an_archive_is_named(home: Notebook, tmp_path: Path) -> None:
    (home.root / "pages/back\\slash.md").write_text("# Odd\n")
    (home.root / "pages/link.md").symlink_to("ferry.md")
    home.sync()
    made = home.transfer.export(str(tmp_path / "all.tar"))
    assert {each.place for each in made.left_out} == {"pages/back\\slash.md", "pages/link.md"}
    for place in (tmp_path / "all.tar", home.root / "x.tar", tmp_path / "no" / "x.tar"):
        assert_raises(UsageError, home.transfer.export, str(place))
    assert_raises(UsageError, home.transfer.export, "-", match="standard output")
    assert_raises(NotPermitted, home.transfer.export, str(tmp_path / "x.tar"), SCRIBE)


def test_an_export_never_replaces_a_file(home: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, begin = tmp_path / "all.tar", archive.Repository.around

    def created_meanwhile(root: Path) -> Any:
        file.write_text("theirs")
        return begin(root)

    monkeypatch.setattr(archive.Repository, "around", created_meanwhile)
    assert_raises(NotebookError, home.transfer.export, str(file), match="cannot be written")
    assert file.read_text() == "theirs"


def member(name: str, raw: bytes = b"", **fields: Any) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(raw)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, raw


def tar_of(file: Path, *members: tuple[tarfile.TarInfo, bytes], info: bytes = INFO) -> Path:
    with tarfile.open(file, "w", format=tarfile.PAX_FORMAT) as tar:
        for each, raw in (member("archive.json", info), *members, member("end")):
            tar.addfile(each, io.BytesIO(raw))
    return file


NOTE = member("files/pages/a.md", b"# A\n")
HOSTILE: Mapping[str, list[tuple[tarfile.TarInfo, bytes]]] = {
    "a way out": [member("files/../a.md")],
    "an absolute path": [member("/etc/a.md")],
    "a way out in the middle": [member("files/pages/../../a.md")],
    "an unknown member": [member("a.md")],
    "git's own folder": [member("files/.GIT/config")],
    "git's own folder with what nobody sees": [member("files/.g\u200cit/config")],
    "the program's own folder": [member("files/.notebook/id")],
    "a name that some systems shorten": [member("files/.git./config")],
    "a symbolic link": [member("files/a.md", type=tarfile.SYMTYPE, linkname="/etc/passwd")],
    "a hard link": [NOTE, member("files/b.md", type=tarfile.LNKTYPE, linkname="files/pages/a.md")],
    "a device": [member("files/a.md", type=tarfile.CHRTYPE)],
    "a fifo": [member("files/a.md", type=tarfile.FIFOTYPE)],
    "a folder": [member("files/a", type=tarfile.DIRTYPE)],
    "a sparse file": [
        member("files/a.md", b"0\n" * 256, pax_headers={"GNU.sparse.major": "1", "GNU.sparse.minor": "0"})
    ],
    "one file twice": [NOTE, NOTE],
    "twins": [NOTE, member("files/pages/A.md")],
    "twins of folders": [NOTE, member("files/Pages/b.md")],
    "a file where a folder is": [NOTE, member("files/pages")],
    "a control character": [member("files/pages/a\n.md")],
    "a long name": [member(f"files/{'a' * 300}.md")],
    "a header that is too large": [member("files/a.md", pax_headers={"comment": "x" * 3_000_000})],
    "a repository": [member(f"files/bare/{name}") for name in ("HEAD", "objects/a", "refs/b")],
    "a driver": [member("files/.gitattributes", b"*.md filter=evil\n")],
    "a submodule's command": [member("files/.gitmodules", b'[submodule "a"]\nupdate = "!evil"\n')],
    "another program's settings": [member("files/.claude/settings.json", b"{}")],
    "a broken settings file": [member("files/notebook.toml", b"[notebook\n")],
    "a broken history": [member("history.bundle", b"no bundle")],
    "no format": [],
    "a time that is none": [member("files/a.md", pax_headers={"mtime": "inf"})],
}
REACHING = {
    "mirror.url": '[mirror]\nurl = "mongodb://elsewhere"\n',
    "refs.url": '[refs]\nurl = "redis://elsewhere"\n',
    "tier2.command": '[tier2]\ncommand = ["evil"]\n',
    "llm.base_url": '[llm]\nbase_url = "https://elsewhere"\n',
    "server.host": '[server]\nhost = "0.0.0.0"\n',
    "search.embeddings": '[search]\nembeddings = "openai:m"\n',
}
SETTINGS = {key: [NOTE, member("files/notebook.toml", text.encode())] for key, text in REACHING.items()}


HALVES = {f"{size} bytes": size for size in (100, 600, 1024, 1500, 2048, 2500)}


@pytest.mark.parametrize("name", [*HOSTILE, *SETTINGS, *HALVES])
def test_a_hostile_archive_is_refused_before_anything_is_written(tmp_path: Path, state_dir: Path, name: str) -> None:
    info = b"{}" if name == "no format" else INFO
    file = tar_of(tmp_path / "evil.tar", *(HOSTILE | SETTINGS).get(name, [NOTE]), info=info)
    file.write_bytes(file.read_bytes()[: HALVES.get(name)])
    before = sorted(path for path in tmp_path.rglob("*") if path != state_dir)
    refused = assert_raises(Refused, bring_in, file, tmp_path / "there", match="nothing was written")
    assert name not in SETTINGS or (f"sets {name}" in refused.message and "trust" in refused.next)
    assert sorted(path for path in tmp_path.rglob("*") if path != state_dir) == [*before, tmp_path / "there"]


def test_an_archive_holds_so_many_files_and_folders_and_no_more(
    home: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "_MOST", 50)
    folders = member(f"files/{'a/' * 60}x.md"), member("files/b.md")
    assert_raises(Refused, bring_in, tar_of(tmp_path / "evil.tar", *folders), tmp_path / "there", match="one too many")
    write_files(home.root, {f"pages/{number}.md": "# X\n" for number in range(60)})
    done = home.transfer.export(str(tmp_path / "all.tar"))
    assert {each.reason.partition(":")[0] for each in done.left_out} >= {"is one too many"}
    assert bring_in(tmp_path / "all.tar", tmp_path / "there").failed == 0


def test_the_owner_may_trust_the_settings_of_an_archive(tmp_path: Path) -> None:
    trusted = [member("files/notebook.toml", b"[server]\nport = 8000\nallowed_hosts = ['a.example']\n"), NOTE]
    hidden = [member("files/.obsidian/app.json", b"{}")]
    done = bring_in(tar_of(tmp_path / "own.tar", *trusted, *hidden), tmp_path / "there", trust_settings=True)
    assert done.added == 3
    assert (tmp_path / "there/.obsidian/app.json").read_bytes() == b"{}"


def test_rows_of_an_archive_are_only_those_of_collections_that_may_be_loaded(tmp_path: Path) -> None:
    intent = {"in": "intents", "row": {"id": "x", "path": "../evil", "new": "", "applied": 1}}
    line = {"id": "s1", "day": "2026-01-01", "at": "2026-01-01T00:00:00+00:00", "content": "Fog", "tags": []}
    rows = [intent, {"in": "targets", "row": {"id": "mongodb"}}, {"in": "stream", "row": line}, [1]]
    raw = b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
    done = bring_in(tar_of(tmp_path / "rows.tar", NOTE, member("index.jsonl", raw)), tmp_path / "there")
    assert (done.read, done.added, done.failed) == (5, 2, 3)
    with Notebook.open(tmp_path / "there") as notebook:
        index = notebook.core.index
        assert (index.stream.count(Is("id", "=", "s1")), index.intents.count(), index.targets.count()) == (1, 0, 0)


def test_a_folder_that_holds_something_else_is_left_alone(home: Notebook, tmp_path: Path) -> None:
    home.transfer.export(str(tmp_path / "all.tar"))
    there = write_files(tmp_path / "there", {"pages/ferry.md": "# Mine\n"})
    assert_raises(Refused, bring_in, tmp_path / "all.tar", there, match="holds pages")
    assert (there / "pages/ferry.md").read_text() == "# Mine\n"


def test_export_and_import_on_the_command_line(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, there = str(tmp_path / "all.tar"), tmp_path / "there"
    there.mkdir()
    assert run(["-C", str(root), "export", file]) == 0
    assert run(["-C", str(there), "import", file, "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["failed"] == 0
    assert (there / "pages/ferry.md").read_text() == FILES["pages/ferry.md"]
    assert run(["-C", str(root), "export", file]) == 2
    assert run(["-C", str(there), "import", str(tmp_path / "none.tar")]) == 2


def test_a_private_history_travels_where_no_repository_is(root: Path, tmp_path: Path) -> None:
    with synced(root) as notebook:
        notebook.notes.update("pages/ferry.md", OWNER, content="# Ferry\n\nNew.\n")
    copied(root, tmp_path)
    with Notebook.open(tmp_path / "there") as copy:
        assert copy.notes.undo("pages/ferry.md").changed
        assert (copy.root / "pages/ferry.md").read_text() == FILES["pages/ferry.md"]


@pytest.mark.parametrize(
    ("options", "head"),
    [
        (["--object-format=sha256"], []),
        ([], ["checkout", "--quiet", "--detach"]),
        ([], ["symbolic-ref", "HEAD", "refs/heads/unborn"]),
    ],
)
def test_a_repository_travels_whatever_is_checked_out(
    root: Path, tmp_path: Path, options: list[str], head: list[str]
) -> None:
    git(root, "init", "--quiet", *options)
    make_repository(root)
    git(root, *(head or ["status"]))
    copied(root, tmp_path)
    for asked in (["log", "--all", "--format=%H %D"], ["status", "--porcelain", "--branch"]):
        assert git(tmp_path / "there", *asked).split("\n")[0] == git(root, *asked).split("\n")[0]


def test_a_part_of_a_repository_travels_without_its_history(root: Path, tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    assert "is not in the archive" in copied(root, tmp_path).warnings[0]


def test_a_change_of_server_is_a_change_of_url_and_two_notebooks_on_one_never_meet(
    root: Path,
    tmp_path: Path,
    mongodb_url: str,
    mongo_database: str,
    new_mongo_database: str,
    redis_url: str,
    redis_prefix: str,
    plain_redis_url: str,
) -> None:
    def settings(database: str, redis: str, prefix: str) -> str:
        return FILES["notebook.toml"] + on_mongodb(mongodb_url, database) + on_redis(redis, prefix)

    (root / "notebook.toml").write_text(settings(mongo_database, redis_url, redis_prefix))
    other = write_files(tmp_path / "other", {"pages/x.md": "# X\n"})
    (other / "notebook.toml").write_text(settings(new_mongo_database, redis_url, f"{redis_prefix}:other"))
    with synced(root) as first, Notebook.open(other) as second, MongoClient(mongodb_url) as client:
        second.sync()
        assert all(each.admin.verify().consistent for each in (first, second))
        assert client[new_mongo_database].pages.count_documents({}) == 1
        (root / "notebook.toml").write_text(settings(new_mongo_database, redis_url, redis_prefix))
        assert "other" in str(first.sync().targets)
        assert client[new_mongo_database].pages.count_documents({}) == 1
        (root / "notebook.toml").write_text(settings(mongo_database, plain_redis_url, redis_prefix))
        assert not any(each["trouble"] for each in first.sync().targets)
        verdicts = [each.admin.verify() for each in (first, second)]
        assert [(each.consistent, each.differences) for each in verdicts] == [(True, [])] * 2
