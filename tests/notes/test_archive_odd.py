"""Whatever a notebook is like, what `export` writes `import` takes, and it comes back the same."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notebook_sync import Notebook, Session
from notebook_sync.errors import ConfigError
from notebook_sync.notes.archive.archive import Exported
from notebook_sync.notes.archive.lines import CHECKS, line_of
from notebook_sync.refs.entry import new_entry
from tests.notes.whole_notebooks import files_of, git_of, told_by
from tests.servers import drop_keys

OWNER, SCRIBE, VISITOR = Session.owner(), Session.task("scribe"), Session.named("external", "visitor")


def write(root: Path, path: str, text: str | bytes) -> None:
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(text if isinstance(text, bytes) else text.encode())


def export(root: Path, to: Path) -> Exported:
    with Notebook.open(root) as notebook:
        return notebook.admin.export(to / "odd.tar.gz")


def comes_back(root: Path, to: Path) -> Exported:
    """Export it, import that, and compare the two."""
    exported = export(root, to)
    assert exported.warnings == ()
    Notebook.import_archive(exported.path, to / "copy")
    assert files_of(to / "copy") == files_of(root)
    if (root / ".git").exists():
        assert git_of(to / "copy") == git_of(root)
    with Notebook.open(root) as before, Notebook.open(to / "copy") as after:
        assert told_by(after) == told_by(before)
        assert after.admin.verify() == before.admin.verify()
    return exported


def never_synced(root: Path) -> None:
    Notebook.init(root)


def checkpoint_of_notes_that_were_never_synced(root: Path) -> None:
    Notebook.init(root)
    with Notebook.open(root) as notebook:
        notebook.create("pages", "The night ferry", "It leaves at ten.", SCRIBE)
        notebook.stream.checkpoint("unseen", SCRIBE)


def checkpoint_of_unsynced_pages(root: Path) -> None:
    Notebook.init(root)
    with Notebook.open(root) as notebook:
        notebook.sync()
        write(root, "pages/Ångström 🧭/új\n.md", "---\nid: ű\n---\n# Új\n")
        write(root, "pages/broken.md", "---\nid: [a\ntags: {\n---\n# Broken\n")
        write(root, "pages/latin.md", b"caf\xe9\n")
        write(root, "pages/huge.md", "x" * (3 << 20))
        write(root, "pages/escaped.md", '---\nid: "\\ud800"\ntitle: "\\ud800\\0"\n---\nHalf a character\n')
        notebook.stream.checkpoint("unseen\u2003🧭", OWNER)


def checkpoints_around_what_is_gone(root: Path) -> None:
    Notebook.init(root)
    write(root, "pages/ferry.md", "# The ferry\n")
    with Notebook.open(root) as notebook:
        notebook.stream.checkpoint()
        notebook.sync()
        notebook.delete("pages/ferry.md", OWNER)
        write(root, "pages/ferry.md", "# Another\n")
        notebook.sync()
        (root / "pages/ferry.md").unlink()
        then = notebook.stream.checkpoint()
        notebook.stream.rollback(then.id, OWNER, files=True)


def no_stream_and_no_git(root: Path) -> None:
    root.mkdir()


def nothing_but_a_checkpoint(root: Path) -> None:
    root.mkdir()
    with Notebook.open(root) as notebook:
        notebook.stream.checkpoint()


def external_words(root: Path) -> None:
    Notebook.init(root)
    with Notebook.open(root) as notebook:
        notebook.channels.write("A stranger's words", VISITOR)
        write(root, "pages/theirs.md", "---\nprovenance: external\nsource: web\n---\n# Theirs\n")
        notebook.stream.checkpoint()
        notebook.stream.log("Odd \u2028 \x00 words", OWNER, keep=True)
        notebook.read("pages/theirs", SCRIBE)


def frontmatter_of_all_kinds(root: Path) -> None:
    Notebook.init(root)
    for number, fields in enumerate(
        (
            "created_at: 0001-01-01T00:00:00+14:00",
            "created_at: 9999-12-31T23:59:59-14:00",
            "created_at: 2026-02-30",
            "version: 99999999999999999999",
            "version: -1",
            f"id: {'x' * 5000}",
            "id: 7",
            "id: null",
            "id: [1, 2]",
            "history: [{version: 0}]",
            "created_by: {a: 1}",
            "tags: [1, null, {a: b}]",
            "score: .nan",
        )
    ):
        write(root, f"pages/{number}.md", f"---\n{fields}\n---\n# Note {number}\n")
    with Notebook.open(root) as notebook:
        notebook.stream.checkpoint()
        notebook.sync()
        notebook.stream.checkpoint()


def times_that_are_odd(root: Path) -> None:
    Notebook.init(root)
    for number, time_ns in enumerate((0, -1, -(10**18) - 7, 2**33 * 10**9 + 1)):
        write(root, f"pages/{number}.md", "x")
        os.utime(root / f"pages/{number}.md", ns=(time_ns, time_ns))


ODD: tuple[Callable[[Path], None], ...] = (
    never_synced,
    checkpoint_of_notes_that_were_never_synced,
    checkpoint_of_unsynced_pages,
    checkpoints_around_what_is_gone,
    no_stream_and_no_git,
    nothing_but_a_checkpoint,
    external_words,
    frontmatter_of_all_kinds,
    times_that_are_odd,
)


@pytest.mark.parametrize("made", ODD, ids=lambda made: made.__name__)
def test_what_is_exported_can_be_imported(tmp_path: Path, made: Callable[[Path], None]) -> None:
    made(tmp_path / "office")
    comes_back(tmp_path / "office", tmp_path)


@pytest.mark.parametrize("made", ODD[2:4], ids=lambda made: made.__name__)
def test_on_servers_too(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mongodb_url: str,
    mongo_database: str,
    redis_stack_url: str,
    redis_prefix: str,
    made: Callable[[Path], None],
) -> None:
    made(tmp_path / "office")
    told = f"[mirror]\ndatabase = '{mongo_database}'\n[refs]\nprefix = '{redis_prefix}'\n"
    write(tmp_path / "office", "notebook.toml", told)
    exported = export(tmp_path / "office", tmp_path)
    with Notebook.open(tmp_path / "office") as notebook:
        before = told_by(notebook)
    monkeypatch.setenv("MONGODB_URL", mongodb_url)
    monkeypatch.setenv("REDIS_URL", redis_stack_url)
    Notebook.import_archive(exported.path, tmp_path / "copy")
    with Notebook.open(tmp_path / "copy") as notebook:
        assert told_by(notebook) == before
        back = notebook.admin.export(tmp_path / "back.tar.gz")
    monkeypatch.delenv("MONGODB_URL")
    monkeypatch.delenv("REDIS_URL")
    Notebook.import_archive(back.path, tmp_path / "home")
    with Notebook.open(tmp_path / "home") as notebook:
        assert told_by(notebook) == before
    drop_keys(redis_stack_url, redis_prefix)


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=12)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=60)
VALUES = TEXTS | st.sampled_from(["[", "{a: 1}", "2026-02-18", "1e999", "~", "'", '"\\ud800"', "!!binary x", "&a *a"])
NOTES = st.dictionaries(
    NAMES.map(lambda name: f"pages/{ord(name[0])} {name}.md"),  # two names that are one to some systems are no archive
    st.tuples(
        st.dictionaries(st.sampled_from(["id", "title", "tags", "version", "created_at", "status", "x"]), VALUES), TEXTS
    ),
    max_size=4,
)


@settings(max_examples=8, derandomize=True)
@given(first=NOTES, second=NOTES, log=TEXTS, synced=st.booleans(), kept=st.booleans())
def test_any_notebook_comes_back(
    first: dict[str, tuple[dict[str, str], str]],
    second: dict[str, tuple[dict[str, str], str]],
    log: str,
    synced: bool,
    kept: bool,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve() / "office"
        Notebook.init(root)
        with Notebook.open(root) as notebook:
            for notes in (first, second):
                for path, (fields, body) in notes.items():
                    frontmatter = "".join(f"{name}: {value}\n" for name, value in fields.items())
                    write(root, path, f"---\n{frontmatter}---\n{body}")
                if synced:
                    notebook.sync()
                if log.strip():
                    notebook.stream.log(log, SCRIBE, keep=kept)
                notebook.stream.checkpoint()
            for path in first.keys() - second.keys():
                (root / path).unlink()
        comes_back(root, root.parent)


def test_what_no_import_would_take_is_left_out_and_told(tmp_path: Path) -> None:
    """Other programs write into the same memory."""
    root = tmp_path / "office"
    Notebook.init(root)
    with Notebook.open(root) as notebook:
        notebook.sync()
        good = new_entry("good", "Low water", now=datetime.now(UTC))
        notebook.refs.keep(good)
        notebook.refs.keep({**good, "id": "odd", "score": float("inf")})
    exported = export(root, tmp_path)
    (warning,) = exported.warnings
    assert "longterm.jsonl lacks 1 that no import would take; the first is 'odd'" in warning
    assert Notebook.import_archive(exported.path, tmp_path / "copy").longterm == 1


def test_a_line_that_is_not_as_written_names_the_field() -> None:
    version = {"id": "a", "name": "", "commit": "", "at": "2026-02-18T10:30:00+00:00", "days": {}, "longterm": []}
    for told, reason in (
        ({**version, "notebook": [{"id": "a", "version": -1}]}, "its 'notebook.version' is not a whole number from 0"),
        ({**version, "notebook": [{"version": 1}]}, "it has no 'id'"),
        ({**version, "notebook": [{"id": 7, "version": 1}]}, "its 'notebook.id' is not text"),
        ({**version, "notebook": [], "at": "2026-02-18"}, "its 'at' is not a time with its zone"),
        ({**version, "notebook": [], "days": {"monday": []}}, "its 'days' is not a day"),
    ):
        with pytest.raises(ValueError, match=reason):
            line_of(told, CHECKS["checkpoints.jsonl"])


@pytest.mark.parametrize("raw", [b"[mirror]\ndatabse = 1\n", b"\xff"])
def test_settings_that_no_import_would_take_are_told_at_the_export(tmp_path: Path, raw: bytes) -> None:
    Notebook.init(tmp_path / "office")
    with Notebook.open(tmp_path / "office") as notebook:
        write(tmp_path / "office", "notebook.toml", raw)
        with pytest.raises(ConfigError):
            notebook.admin.export(tmp_path / "odd.tar.gz")
    assert not (tmp_path / "odd.tar.gz").exists()


def test_a_file_from_later_than_an_archive_can_tell_is_taken_all_the_same(tmp_path: Path) -> None:
    write(tmp_path / "office", "pages/late.txt", "x")
    os.utime(tmp_path / "office" / "pages" / "late.txt", ns=(10**19, 10**19))
    Notebook.import_archive(export(tmp_path / "office", tmp_path).path, tmp_path / "copy")
    assert (tmp_path / "copy" / "pages" / "late.txt").read_text() == "x"
