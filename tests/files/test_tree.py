"""Looking at the notebook's folder, and reading one file of it."""

import fcntl
import itertools
import os
import signal
from pathlib import Path

import pytest

from notebook_sync.errors import ConfigError, NoSuchNote, RootLost, UnreadableFile, UnsafePath
from notebook_sync.files import beneath
from notebook_sync.files import tree as tree_module
from notebook_sync.files.tree import Scan, Tree
from notebook_sync.model import UNSETTLED
from notebook_sync.permissions import NO_MEMBERS
from notebook_sync.settings import NotebookTable
from tests.files.notebooks import fail_with, tree_of, write


def scanned(folder: Path, files: dict[str, bytes | str], **settings: object) -> Scan:
    write(folder, files)
    return tree_of(folder, **settings).scan()


def test_every_markdown_file_that_is_not_hidden_is_a_note(folder: Path) -> None:
    names = ["a.md", "deep/er/b.MD", "x.md/c.md", "日本.md"]
    scan = scanned(folder, dict.fromkeys(names, "x"))
    assert scan.seen == {name: tree_of(folder).stat(name) for name in names}
    assert (scan.refused, scan.blind) == ({}, set())


def test_hidden_and_system_folders_backups_and_settings_are_left_out(folder: Path) -> None:
    names = [".obsidian/a.md", ".trash/a.md", ".stversions/a.md", "@eaDir/a.md", "#recycle/a.md", "$RECYCLE.BIN/a.md"]
    scan = scanned(folder, dict.fromkeys([*names, ".a.md", "notebook.toml", "channels/a/channel.toml"], ""))
    assert scan == Scan()


def test_other_files_are_attachments_with_size_and_time(folder: Path) -> None:
    scan = scanned(folder, {"img/a.png": b"12345", "a.md~": "x"})
    times = [(folder / name).stat().st_mtime_ns for name in ("img/a.png", "a.md~")]
    assert scan.attachments == {"img/a.png": (5, times[0]), "a.md~": (1, times[1])}


def test_ignore_rules_hold_as_in_git(folder: Path) -> None:
    files = dict.fromkeys(
        [
            "a.log.md",
            "b/keep.md",
            "b/c.md",
            "out/a.md",
            "b/out/x.md",
            "d/e/secret.md",
            "d/secret.md",
            "f[1].md",
            "up.md",
            "list/a.txt",
            "list/a.md",
            "list/sub/b.md",
        ],
        "x",
    )
    rules = {
        ".gitignore": "*.log.md\nout/\nb/*\n!b/keep.md\n[[:bad\n f x\nup.m[[:alpha:]]\n",
        "d/.gitignore": "/secret.md\n",
        "list/.gitignore": "*\n!*/\n!*.md\n",
    }
    scan = scanned(folder, files | rules, exclude=("f\\[1\\].md",))
    assert {*scan.seen, *scan.attachments} == {"b/keep.md", "d/e/secret.md", "list/a.md", "list/sub/b.md"}
    with pytest.raises(ConfigError, match="exclude"):
        tree_of(folder, exclude=("a[[:bad:]]",))


@pytest.mark.parametrize(
    "place", ["out/x.md", "out", "kept/a.md", "kept", "gone.md", "gone/a.md", "link/a.md", "a.md/x"]
)
def test_a_look_at_a_place_finds_what_a_whole_look_finds_there(folder: Path, place: str) -> None:
    write(folder, {"out/x.md": "x", "kept/a.md": "x", "kept/b.md": "x", "a.md": "x", ".gitignore": "out/\nb.md\n"})
    (folder / "link").symlink_to("kept")
    tree = tree_of(folder)
    whole, part = tree.scan(), tree.scan([place])
    assert part.seen == {path: each for path, each in whole.seen.items() if tree_module.is_at_or_below(path, [place])}
    assert part.blind == set()


def test_rules_that_git_ignores_are_still_rules(folder: Path) -> None:
    write(
        folder,
        {".gitignore": "runtime/\nfacts/core.md\nprompt.md\n", "runtime/reminders.md": "- [ ] x", "prompt.md": ""},
    )
    write(folder, {"runtime/other.md": "x", "facts/core.md": "x", "facts/notes.md": "x"})
    tree = tree_of(folder, exclude=("runtime/reminders.md",))
    assert set(tree.scan().seen) == {"runtime/reminders.md", "facts/core.md", "facts/notes.md"}
    assert set(tree.scan(["runtime", "facts/core.md"]).seen) == {"runtime/reminders.md", "facts/core.md"}
    why = [bool(tree.why_left_out(path)) for path in ("runtime/reminders.md", "runtime/other.md")]
    assert why == [False, True]


def test_what_cannot_be_a_note_is_reported_and_stops_nothing(folder: Path) -> None:
    os.mkfifo(folder / "pipe.md")
    for link, to in {"to-file.md": "fine.md", "to-folder": ".", "dangling.txt": "nowhere"}.items():
        (folder / link).symlink_to(to)
    files = {"fine.md": b"x" * 100, "large.md": b"x" * 101, os.fsdecode(b"caf\xe9.md"): "x"}
    scan = scanned(folder, files, max_file_bytes=100)
    assert set(scan.seen) == {"fine.md"}
    assert set(scan.refused) == {"pipe.md", "to-file.md", "to-folder", "caf\\xe9.md", "large.md"}


def test_a_missing_root_is_lost_and_not_empty(folder: Path) -> None:
    for tree in (tree_of(folder / "gone"), tree_of(Path(os.devnull))):
        with pytest.raises(RootLost):
            tree.scan()
        with pytest.raises(RootLost):
            tree.read("a.md")


# Vanished is not deleted.


def test_a_folder_that_cannot_be_listed_is_blind(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder, {"a/x.md": "x", "b/x.md": "x"})
    real = os.scandir
    hidden = (folder / "a").stat().st_ino

    def scandir(fd: int) -> object:
        return real(fd) if os.fstat(fd).st_ino != hidden else fail_with(PermissionError(13, "Permission denied"))()

    monkeypatch.setattr(os, "scandir", scandir)
    scan = tree_of(folder).scan()
    assert set(scan.seen) == {"b/x.md"}
    assert [scan.is_blind_to(path) for path in ("a/x.md", "ab.md")] == [True, False]
    assert "permission denied" in scan.refused["a"]


def test_a_note_that_a_cloud_client_took_away_is_not_gone(folder: Path) -> None:
    scan = scanned(folder, {"pages/.plan.md.icloud": "x", ".photo.png.icloud": "x", "pages/b.md": "x"})
    assert scan.blind == {"pages/plan.md"}
    assert "cloud" in scan.refused["pages/plan.md"]


def test_a_folder_whose_file_system_is_gone_is_blind_until_it_is_filled(folder: Path) -> None:
    (folder / "disk").mkdir()
    tree = Tree(folder, NotebookTable(), mounts=["disk", "gone"])
    for places in (None, ["disk/a.md"]):
        scan = tree.scan(places)
        assert [scan.is_blind_to(path) for path in ("disk/a.md", "gone/a.md")] == [True, False]
    write(folder, {"disk/a.md": "x"})
    assert tree.scan().blind == set()


def test_a_folder_on_another_file_system_is_remembered(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder, {"disk/deep/a.md": "x", "b.md": "x"})
    root = folder.stat().st_ino
    real = os.fstat

    def fstat(fd: int) -> os.stat_result:
        found = real(fd)
        return os.stat_result([*found[:2], found.st_dev + (found.st_ino != root), *found[3:]])

    tree = tree_of(folder)
    monkeypatch.setattr(os, "fstat", fstat)
    tree.scan()
    assert tree.mounts == {"disk"}


# Paths.


def test_a_path_has_one_spelling_and_a_bare_name_means_the_guarded_file(folder: Path) -> None:
    write(folder, {"reminders.md": "x"})
    tree = tree_of(folder)
    for name in (
        "reminders.md",
        "Reminders",
        "./reminders.md",
        "runtime//reminders.md",
        f"{folder}/runtime/reminders.md",
    ):
        assert tree.place(name) == "runtime/reminders.md"
    assert (tree.place("pages/../a.md"), tree.place("pages/reminders.md")) == ("a.md", "pages/reminders.md")
    for name in ("", ".", "..", "../a.md", "/etc/passwd", "a/../../b.md", "a\0.md"):
        with pytest.raises(UnsafePath):
            tree.place(name)


# Reading.


def test_a_read_has_bytes_stamp_and_time(folder: Path) -> None:
    write(folder, {"a.md": b"\xff\r\nx"})
    os.utime(folder / "a.md", ns=(10**9, 10**9))
    tree = tree_of(folder)
    assert tree.read("a.md").raw == b"\xff\r\nx"
    assert tree.read("a.md").mtime.isoformat() == tree.modified_at("a.md").isoformat() == "1970-01-01T00:00:01+00:00"


def test_a_read_right_after_a_write_vouches_for_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder, {"a.md": "x"})
    tree = tree_of(folder)
    changed = (folder / "a.md").stat().st_ctime_ns
    for later_ns, stamp in ((0, UNSETTLED), (10**9, tree.stat("a.md"))):
        monkeypatch.setattr(beneath.time, "time_ns", lambda ns=later_ns: changed + ns)
        assert (tree.read("a.md").stamp, tree.read("a.md").settled) == (stamp, stamp != UNSETTLED)


def test_times_that_no_database_can_count_are_clamped(folder: Path) -> None:
    write(folder, {"a.md": "x"})
    os.utime(folder / "a.md", (2**35, 2**35))
    assert tree_of(folder).scan().seen["a.md"].mtime_ns <= 2**63 - 1
    assert tree_of(folder).read("a.md").mtime.year >= 2262


def test_what_is_no_readable_note_is_refused(folder: Path) -> None:
    write(folder, {"a.md": "x" * 100, "large.md": "x" * 101, ".hidden.md": "x", ".git/config": "secret", "b/c.md": "x"})
    os.mkfifo(folder / "pipe.md")
    (folder / "link").symlink_to("b")
    (folder / "link.md").symlink_to("a.md")
    os.link(folder / ".git/config", folder / "config.md")
    (folder / "b/link.md").symlink_to("c.md")
    tree, opened = tree_of(folder, max_file_bytes=100), len([*Path("/proc/self/fd").iterdir()])
    for refusal, paths in (
        (NoSuchNote, ["gone.md", "a.md/b.md", "gone/a.md"]),
        (UnsafePath, ["link.md", "link/c.md", "b/link.md", ".hidden.md", ".git/config"]),
        (UnsafePath, ["..", "../a.md", "b/../../a.md", "/etc/passwd", "a\0.md", "b/a\0.md"]),
        (UnreadableFile, ["large.md", "pipe.md", "config.md", "b"]),
    ):
        for path in paths:
            with pytest.raises(refusal):
                tree.read(path)
    assert tree.read("a.md").raw == b"x" * 100
    assert len([*Path("/proc/self/fd").iterdir()]) == opened


def test_a_read_is_never_torn(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is written again after each of the first parts that are read."""
    write(folder, {"a.md": b"0" * 300})
    digits, pread = iter(b"1234"), os.pread

    def written_to_meanwhile(fd: int, size: int, at: int) -> bytes:
        read = pread(fd, size, at)
        for digit in itertools.islice(digits, 1):
            write(folder, {"a.md": bytes([digit]) * 300})
        return read

    monkeypatch.setattr(beneath, "_CHUNK", 100)
    monkeypatch.setattr(beneath.os, "pread", written_to_meanwhile)
    assert tree_of(folder).read("a.md").raw == b"4" * 300


def test_a_file_under_a_lease_keeps_nobody_waiting(folder: Path) -> None:
    write(folder, {"a.md": "x"})
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)  # how the holder is asked to give it back
    fd = os.open(folder / "a.md", os.O_RDWR)
    try:
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        with pytest.raises(UnreadableFile):
            tree_of(folder).read("a.md")
    finally:
        os.close(fd)
        signal.signal(signal.SIGIO, before)
    assert tree_of(folder).read("a.md").raw == b"x"


def test_members_of_a_channel_are_read_at_each_call(folder: Path) -> None:
    channel, tree = "channels/scribe/global", tree_of(folder)
    seen = [tree.members(channel)]
    for toml in ('[members]\npilot = ["read"]\n', "broken"):
        write(folder, {f"{channel}/channel.toml": toml})
        seen.append(tree.members(channel))
    assert seen == [NO_MEMBERS, {"pilot": ["read"]}, NO_MEMBERS]
