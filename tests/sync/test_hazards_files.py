"""Files as nobody should write them: each is mirrored, or refused with a reason, and stops no other."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

from notebook_sync import Notebook
from notebook_sync.errors import RootLost, UnreadableFile, WouldDeleteEverything
from notebook_sync.files.vault import Vault
from notebook_sync.operations.admin import SyncReport


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "notebook"
    folder.mkdir()
    (folder / "notebook.toml").write_text("[sync]\nsettle_ms = 1\n")
    (folder / "good.md").write_text("good")
    return folder


@pytest.fixture
def notebook(root: Path) -> Iterator[Notebook]:
    with Notebook.open(root) as opened:
        yield opened


def synced(notebook: Notebook) -> SyncReport:
    """Sync; the good note is there, and a second pass writes nothing and fails in the same way."""
    report = notebook.sync()
    again = notebook.sync()
    assert (again.added, again.updated, again.moved, again.deleted) == (0, 0, 0, 0)
    assert again.failed == report.failed
    assert "good.md" in paths(notebook)
    return report


def failed(notebook: Notebook) -> dict[str, str]:
    return {each.path: each.error for each in synced(notebook).failed}


def paths(notebook: Notebook) -> set[str]:
    return {row.path for row in notebook.mirror.known()}


def content(notebook: Notebook, path: str) -> str:
    return str(next(document["content"] for document in notebook.mirror.documents() if document["path"] == path))


class TestLinks:
    def test_links_are_refused_and_never_followed(self, root: Path, notebook: Notebook, tmp_path: Path) -> None:
        (tmp_path / "outside").mkdir()
        (tmp_path / "outside" / "secret.md").write_text("secret")
        (root / "file.md").symlink_to(tmp_path / "outside" / "secret.md")
        (root / "inside.md").symlink_to("good.md")
        (root / "dangling.md").symlink_to("nowhere.md")
        (root / "itself.md").symlink_to("itself.md")
        (root / "folder").symlink_to(tmp_path / "outside")
        (root / "round").symlink_to(".")
        (root / "own").symlink_to("own")
        refused = failed(notebook)
        assert paths(notebook) == {"good.md"}
        assert refused.keys() == {"file.md", "inside.md", "dangling.md", "itself.md", "folder", "round"}
        assert all("link" in reason for reason in refused.values())

    def test_a_note_below_a_linked_folder_cannot_be_read(self, root: Path, tmp_path: Path) -> None:
        (tmp_path / "outside").mkdir()
        (tmp_path / "outside" / "secret.md").write_text("secret")
        (root / "folder").symlink_to(tmp_path / "outside")
        with pytest.raises(UnreadableFile, match="symbolic link"):
            Vault(root).read("folder/secret.md")
        for path in ("../outside/secret.md", "/etc/passwd", "d/../../outside/secret.md"):
            with pytest.raises(UnreadableFile):
                Vault(root).read(path)

    def test_a_note_that_becomes_a_link_keeps_its_last_good_row(self, root: Path, notebook: Notebook) -> None:
        (root / "a.md").write_text("a")
        synced(notebook)
        (root / "a.md").rename(root / "a.txt")
        (root / "a.md").symlink_to("a.txt")
        assert "link" in failed(notebook)["a.md"]
        assert content(notebook, "a.md") == "a"
        (root / "a.md").unlink()
        (root / "a.txt").rename(root / "a.md")
        assert failed(notebook) == {}
        assert notebook.admin.verify().consistent

    def test_a_folder_that_becomes_a_link_takes_its_notes_away(self, root: Path, notebook: Notebook) -> None:
        (root / "d").mkdir()
        (root / "d" / "a.md").write_text("a")
        synced(notebook)
        (root / "d").rename(root / "e")
        (root / "d").symlink_to("e")
        synced(notebook)
        assert paths(notebook) == {"good.md", "e/a.md"}

    def test_hard_links_are_two_notes(self, root: Path, notebook: Notebook) -> None:
        (root / "twin.md").hardlink_to(root / "good.md")
        synced(notebook)
        (root / "twin.md").write_text("both")
        synced(notebook)
        assert (content(notebook, "good.md"), content(notebook, "twin.md")) == ("both", "both")

    def test_swapping_links_between_check_and_use_gets_nothing_out(self, root: Path, tmp_path: Path) -> None:
        reads = int(os.environ.get("NOTEBOOK_TEST_READS", "1500"))
        (tmp_path / "outside").mkdir()
        (tmp_path / "outside" / "a.md").write_text("secret")
        (tmp_path / "outside" / "only-outside.md").write_text("secret")
        (root / "d").mkdir()
        (root / "d" / "a.md").write_text("good")
        (root / "link").symlink_to(tmp_path / "outside")
        (root / "link.md").symlink_to(tmp_path / "outside" / "a.md")
        done = threading.Event()

        def swap() -> None:
            while not done.is_set():
                for real, link in (("d", "link"), ("d/a.md", "link.md")):
                    (root / real).rename(root / "between")
                    (root / link).rename(root / real)
                    (root / real).rename(root / link)
                    (root / "between").rename(root / real)

        swapping = threading.Thread(target=swap)
        swapping.start()
        vault = Vault(root)
        got: set[bytes] = set()
        seen: set[str] = set()
        try:
            for _ in range(reads):
                seen |= vault.scan().seen.keys()
                with contextlib.suppress(FileNotFoundError, UnreadableFile):
                    got.add(vault.read("d/a.md")[0])
        finally:
            done.set()
            swapping.join()
        assert got == {b"good"}
        assert "d/only-outside.md" not in seen


class TestNames:
    def test_names_that_are_only_strange_are_mirrored(self, root: Path, notebook: Notebook) -> None:
        names = [
            *("CON.md", "NUL.md", "two\nlines.md", "tab\t.md", " space .md", "dot..md", "-rf.md", "$(x).md", "'\".md"),
            *("a" * 252 + ".md", "💥.md", "A.md", "a.md", "{{7*7}}.md", "%s.md", "\\.md", "*.md", "a;b.md", "UP.MD"),
            *(unicodedata.normalize(form, "ä.md") for form in ("NFC", "NFD")),
        ]
        for name in names:
            (root / name).write_text(f"this is {name}")
        assert failed(notebook) == {}
        assert paths(notebook) == {"good.md", *names}
        assert all(content(notebook, name) == f"this is {name}" for name in names)
        assert notebook.admin.verify().consistent
        for name in names:
            (root / name).unlink()
        assert synced(notebook).deleted == len(names)

    def test_a_name_that_is_not_utf8_is_reported(self, root: Path, notebook: Notebook) -> None:
        Path(os.fsdecode(os.fsencode(root) + b"/caf\xe9.md")).write_text("latin")
        assert failed(notebook) == {"caf\\xe9.md": "its name is not UTF-8; rename it"}

    def test_what_editors_leave_beside_a_note_is_no_note(self, root: Path, notebook: Notebook) -> None:
        left = ("good.md~", ".good.md.swp", "4913", "good.md.tmp", ".#good.md", "#good.md#", ".hidden.md", "x.txt")
        for name in left:
            (root / name).write_text("not a note")
        (root / ".obsidian").mkdir()
        (root / ".obsidian" / "a.md").write_text("not a note")
        assert failed(notebook) == {}
        assert paths(notebook) == {"good.md"}

    def test_a_path_deeper_than_the_system_takes_at_once(self, root: Path, notebook: Notebook) -> None:
        folder = os.open(root, os.O_RDONLY)
        for _ in range(20):
            os.mkdir("d" * 250, dir_fd=folder)
            below = os.open("d" * 250, os.O_RDONLY, dir_fd=folder)
            os.close(folder)
            folder = below
        os.close(os.open("a.md", os.O_WRONLY | os.O_CREAT, dir_fd=folder))
        os.close(folder)
        assert any("too long" in reason for reason in failed(notebook).values())


class TestKinds:
    def test_a_fifo_and_a_folder_with_a_notes_name(self, root: Path, notebook: Notebook) -> None:
        os.mkfifo(root / "fifo.md")
        (root / "folder.md").mkdir()
        (root / "folder.md" / "a.md").write_text("a")
        assert failed(notebook) == {"fifo.md": "not a regular file; add it to `exclude`"}
        assert paths(notebook) == {"good.md", "folder.md/a.md"}

    def test_a_file_over_the_limit_is_refused_and_its_last_good_row_stays(self, root: Path, notebook: Notebook) -> None:
        (root / "big.md").write_text("small")
        synced(notebook)
        (root / "big.md").write_bytes(b"x" * (3 << 20))
        assert "max_file_bytes" in failed(notebook)["big.md"]
        assert content(notebook, "big.md") == "small"
        (root / "big.md").write_text("small again")
        assert failed(notebook) == {}
        assert content(notebook, "big.md") == "small again"

    def test_a_binary_file_is_mirrored_and_reported(self, root: Path, notebook: Notebook) -> None:
        (root / "image.md").write_bytes(bytes(range(256)) * 100)
        assert "not UTF-8" in failed(notebook)["image.md"]
        assert "image.md" in paths(notebook)

    def test_byte_order_marks_and_line_endings_are_kept(self, root: Path, notebook: Notebook) -> None:
        raw = b"\xef\xbb\xbf---\r\ntitle: T\r\n---\r\n# H\r\n\r\ntext\r\nno end"
        (root / "dos.md").write_bytes(raw)
        assert failed(notebook) == {}
        assert content(notebook, "dos.md") == "# H\r\n\r\ntext\r\nno end"
        assert (root / "dos.md").read_bytes() == raw

    @pytest.mark.skipif(os.geteuid() == 0, reason="root reads what nobody may")
    def test_a_file_and_a_folder_nobody_may_read(self, root: Path, notebook: Notebook) -> None:
        (root / "d").mkdir()
        (root / "d" / "a.md").write_text("a")
        (root / "b.md").write_text("b")
        synced(notebook)
        (root / "d").chmod(0)
        (root / "b.md").chmod(0)
        try:
            assert failed(notebook).keys() == {"b.md", "d"}
            assert paths(notebook) == {"good.md", "d/a.md", "b.md"}
        finally:
            (root / "d").chmod(0o700)

    @pytest.mark.parametrize("year", [1830, 1969, 2262, 2300, 2440])
    def test_a_file_of_any_year_is_mirrored(self, root: Path, notebook: Notebook, year: int) -> None:
        (root / "old.md").write_text("of its time")
        when = int((year - 1970) * 31_556_952 * 1e9)
        os.utime(root / "old.md", ns=(when, when))
        assert failed(notebook) == {}
        assert content(notebook, "old.md") == "of its time"

    def test_text_is_data(self, root: Path, notebook: Notebook) -> None:
        text = "{{7*7}} {% raw %} ${HOME} $(id) <script>alert(1)</script> '; DROP TABLE note; --"
        (root / "text.md").write_text(text)
        synced(notebook)
        assert content(notebook, "text.md") == text

    @pytest.mark.parametrize(
        "query", ["don't", "C++", "a-b", '"', "*", "NEAR(", "title:x", "AND", "a OR", "(", ")", "^", "\0", "", "\ud800"]
    )
    def test_queries_are_data(self, root: Path, notebook: Notebook, query: str) -> None:
        (root / "words.md").write_text("don't use C++ in a-b x NEAR AND a OR")
        synced(notebook)
        assert isinstance(notebook.search(query), list)


POISON = {
    "a date": "when: 2026-02-18",
    "an impossible date": "when: 2026-02-31",
    "2^63": "number: 9223372036854775808",
    "not a number": "number: .nan",
    "integer keys": "1: one\n2: two",
    "a set": "things: !!set {a, b}",
    "an object": "thing: !!python/object/apply:os.system [id]",
    "a key with NUL": '"a\\0b": c',
    "a lone surrogate": '"\\ud800": "\\udfff"',
    "a dollar key": "$where: 1\na.b: 2",
    "depth 900": "deep: " + "[" * 900 + "]" * 900,
    "an alias bomb": "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]",
    "merge keys": "a: &a {b: c}\nd: {<<: *a}",
    "a key twice": "a: 1\na: 2",
    "too much": "a: " + "x" * (65 << 10),
    "a list as id": "id: [1, 2]",
    "a title that is none": "title: {a: b}\ntags: 7\nstatus: [x]\ncreated_at: soon",
}


@pytest.mark.parametrize("yaml", POISON.values(), ids=POISON.keys())
def test_poison_is_mirrored_with_its_text_or_reported(root: Path, notebook: Notebook, yaml: str) -> None:
    (root / "poison.md").write_text(f"---\n{yaml}\n---\nthe text\n", errors="surrogatepass")
    synced(notebook)
    assert paths(notebook) == {"good.md", "poison.md"}
    assert content(notebook, "poison.md").endswith("the text\n")
    assert notebook.admin.verify().consistent


@pytest.mark.parametrize("name", ["an object", "depth 900", "an alias bomb", "merge keys", "a key twice", "too much"])
def test_poison_that_is_refused_is_reported(root: Path, notebook: Notebook, name: str) -> None:
    (root / "poison.md").write_text(f"---\n{POISON[name]}\n---\nthe text\n")
    assert failed(notebook).keys() == {"poison.md"}


class TestStamps:
    def test_same_size_and_same_mtime(self, root: Path, notebook: Notebook) -> None:
        synced(notebook)
        before = (root / "good.md").stat()
        (root / "good.md").write_text("GOOD")
        os.utime(root / "good.md", ns=(before.st_atime_ns, before.st_mtime_ns))
        assert synced(notebook).updated == 1
        assert content(notebook, "good.md") == "GOOD"

    def test_a_save_without_a_change_is_none(self, root: Path, notebook: Notebook) -> None:
        synced(notebook)
        for second in (0, 1, 2**31, 2**33):
            (root / "good.md").write_text("good")
            os.utime(root / "good.md", (second, second))
            assert synced(notebook).updated == 0
        assert [row.version for row in notebook.mirror.known()] == [1]

    def test_a_touched_file_is_touched_in_hot_memory_too(self, root: Path, notebook: Notebook) -> None:
        synced(notebook)
        os.utime(root / "good.md", (1000, 1000))
        synced(notebook)
        ref = notebook.refs.get("good")
        assert ref is not None
        assert ref["updated_at"].startswith("1970-01-01T00:16:40")


class TestRoot:
    def test_a_missing_root_deletes_nothing(self, root: Path, notebook: Notebook, tmp_path: Path) -> None:
        synced(notebook)
        root.rename(tmp_path / "away")
        with pytest.raises(RootLost, match="deletions wait"):
            Vault(root).scan()
        root.write_text("not a folder")
        with pytest.raises(RootLost, match="not a folder"):
            Vault(root).scan()
        root.unlink()
        (tmp_path / "away").rename(root)
        assert synced(notebook).deleted == 0

    def test_an_emptied_root_deletes_nothing_until_it_is_allowed(self, root: Path, notebook: Notebook) -> None:
        for number in range(3):
            (root / f"{number}.md").write_text("x")
        synced(notebook)
        for path in root.glob("*.md"):
            path.unlink()
        for _ in range(2):
            with pytest.raises(WouldDeleteEverything):
                notebook.sync()
        assert len(paths(notebook)) == 4
        assert notebook.sync(allow_empty=True).deleted == 4

    def test_everything_ignored_is_everything_gone(self, root: Path, notebook: Notebook) -> None:
        synced(notebook)
        (root / ".gitignore").write_text("*.md\n")
        with pytest.raises(WouldDeleteEverything):
            notebook.sync()
        (root / ".gitignore").unlink()
        assert failed(notebook) == {}

    def test_a_folder_emptied_below_the_root_is_simply_gone(self, root: Path, notebook: Notebook) -> None:
        (root / "d").mkdir()
        (root / "d" / "a.md").write_text("a")
        synced(notebook)
        shutil.rmtree(root / "d")
        assert synced(notebook).deleted == 1


class TestIgnoring:
    def test_what_gitignore_and_exclude_name_is_no_note(self, root: Path) -> None:
        for path in ("build/a.md", "d/build/a.md", "d/keep.md", "d/drop.md", "drafts/a.md"):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(path)
        (root / ".gitignore").write_text("build/\n")
        (root / "d" / ".gitignore").write_text("*.md\n!keep.md\n")
        (root / "notebook.toml").write_text('[notebook]\nexclude = ["drafts/"]\n[sync]\nsettle_ms = 1\n')
        with Notebook.open(root) as notebook:
            synced(notebook)
            assert paths(notebook) == {"good.md", "d/keep.md"}

    def test_a_note_that_begins_to_be_ignored_leaves_the_mirror(self, root: Path, notebook: Notebook) -> None:
        (root / "a.md").write_text("a")
        synced(notebook)
        (root / ".gitignore").write_text("a.md\n")
        assert synced(notebook).deleted == 1
        assert paths(notebook) == {"good.md"}
        (root / ".gitignore").unlink()
        assert synced(notebook).added == 1
