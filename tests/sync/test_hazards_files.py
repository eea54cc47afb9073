"""Files as nobody should write them: each is indexed, or refused with a reason, and stops no other (laws 1, 2, 9)."""

import os
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from notebook_sync.errors import RootLost, WouldDeleteEverything
from notebook_sync.files import beneath
from notebook_sync.model import UNSETTLED
from notebook_sync.store.rows import EVERYTHING, Is
from notebook_sync.sync import losses, sweep
from tests.files.notebooks import write
from tests.sync.world import Report, World


def synced(world: World, files: Mapping[str, bytes | str | None] = MappingProxyType({})) -> Report:
    """Save and sync; the good note is there, and a second sync writes nothing and fails in the same way."""
    report = world.save(files, allow_empty=False)
    again = world.sync(allow_empty=False)
    assert not again.paths
    assert again.faults == report.faults
    assert "good.md" in world.rows()
    return report


def agrees(world: World) -> bool:
    return world.engine.verify().differences == []


# Links.


def test_links_are_refused_and_never_followed(world: World, tmp_path: Path) -> None:
    write(tmp_path, {"outside/secret.md": "secret"})
    links = {"file.md": "../outside/secret.md", "in.md": "good.md", "d.md": "no.md", "f": "../outside"}
    for path, to in links.items():
        world.link(path, to)
    report = synced(world)
    assert (world.texts(), report.faults.keys()) == ({"good.md": "good"}, links.keys())
    assert all("link" in reason for reason in report.faults.values())


def test_a_note_that_becomes_a_link_keeps_its_last_good_row(world: World) -> None:
    synced(world, {"a.md": "a"})
    world.rename("a.md", "a.txt")
    world.link("a.md", "a.txt")
    assert "link" in synced(world).faults["a.md"]
    assert world.texts()["a.md"] == "a"
    world.delete("a.md")
    world.rename("a.txt", "a.md")
    assert synced(world).faults == {}
    assert agrees(world)


def test_a_folder_that_becomes_a_link_takes_its_notes_away(world: World) -> None:
    synced(world, {"d/a.md": "a"})
    world.rename("d", "e")
    world.link("d", "e")
    synced(world)
    assert world.rows().keys() == {"good.md", "e/a.md"}


# Names.


def test_names_and_texts_that_are_only_strange_are_indexed(world: World) -> None:
    names = [
        *("CON.md", "NUL.md", "two\nlines.md", "tab\t.md", " space .md", "dot..md", "-rf.md", "$(x).md", "'\".md"),
        *("{% raw %} ${HOME} $(id) <script>alert(1).md", "'; DROP TABLE documents; --.md"),
        *("a" * 252 + ".md", "💥.md", "A.md", "a.md", "{{7*7}}.md", "%s.md", "\\.md", "*.md", "a;b.md", "UP.MD"),
        *(unicodedata.normalize(form, "ä.md") for form in ("NFC", "NFD")),
    ]
    texts = {name: f"this is {name}" for name in names}
    assert (synced(world, texts).faults, world.texts()) == ({}, {"good.md": "good", **texts})
    assert agrees(world)
    assert world.save(dict.fromkeys(names)).deleted == len(names)


def test_what_editors_leave_is_no_note_but_may_be_linked_to(world: World) -> None:
    left = ("good.md~", ".good.md.swp", "4913", ".#good.md", ".hidden.md", "x.txt", ".obsidian/a.md")
    assert (synced(world, dict.fromkeys(left, "not a note")).faults, world.texts()) == ({}, {"good.md": "good"})
    assert {row["id"] for row in world.index.attachments.find()} == {"good.md~", "4913", "x.txt"}
    world.delete("x.txt")
    world.engine.look(["x.txt"])
    assert "x.txt" not in {row["id"] for row in world.index.attachments.find()}


def test_a_fifo_a_folder_with_a_notes_name_and_a_name_that_is_not_utf8(world: World) -> None:
    os.mkfifo(world.root / "fifo.md")
    faults = synced(world, {"folder.md/a.md": "a", os.fsdecode(b"caf\xe9.md"): "latin"}).faults
    assert (faults.keys(), "not UTF-8" in faults["caf\\xe9.md"]) == ({"fifo.md", "caf\\xe9.md"}, True)
    assert world.rows().keys() == {"good.md", "folder.md/a.md"}


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
    "a key twice": "a: 1\na: 2",
    "too much": "a: " + "x" * (65 << 10),
    "a list as id": "id: [1, 2]",
    "a title that is none": "title: {a: b}\ntags: 7\nstatus: [x]\ncreated_at: soon",
    "a template": "title: {{ title }}",
}


# Contents.


@pytest.mark.parametrize("yaml", POISON.values(), ids=POISON.keys())
def test_poison_is_indexed_with_its_text_or_reported(world: World, yaml: str) -> None:
    synced(world, {"poison.md": f"---\n{yaml}\n---\nthe text\n".encode(errors="surrogatepass")})
    assert world.texts()["poison.md"].endswith("the text\n")
    assert agrees(world)


def test_bytes_that_are_no_text_are_indexed_and_reported(world: World) -> None:
    assert synced(world, {"image.md": bytes(range(256)) * 100, "nul.md": b"text\0\0\0"}).faults.keys() == {
        "image.md",
        "nul.md",
    }
    assert world.texts()["nul.md"].startswith("text")


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (b"---\nid: [\n---\nx", "line 3: frontmatter is not read"),
        (b"new \xff\xfe", "not UTF-8"),
        (b"new \0", "a NUL byte"),
        ("new".encode("utf-16"), "UTF-16"),
        (b"x" * (3 << 20), "max_file_bytes"),
    ],
    ids=["frontmatter", "not UTF-8", "NUL", "UTF-16", "too large"],
)
def test_damage_leaves_the_last_good_row_which_is_marked(world: World, damage: bytes, reason: str) -> None:
    """What a crash or a full disk leaves never replaces what a person wrote."""
    synced(world, {"a.md": "old"})
    for report in (synced(world, {"a.md": damage}), world.engine.sync(force=True, allow_empty=True)):
        assert reason in report.faults["a.md"]
    assert (world.texts()["a.md"], bool(world.rows()["a.md"]["stale"])) == ("old", True)
    assert synced(world, {"a.md": "new"}).faults == {}
    assert (world.texts()["a.md"], world.rows()["a.md"]["stale"]) == ("new", "")


@pytest.mark.parametrize(
    ("path", "is_kept"), [("runtime/reminders.md", True), ("facts/core.md", True), ("a.md", False)]
)
def test_an_emptied_file_of_rules_or_facts_keeps_its_row(world: World, path: str, is_kept: bool) -> None:
    synced(world, {path: "## Today\n\n- Pay the dues\n"})
    facts = world.facts().keys()
    assert (path in synced(world, {path: "\n"}).faults, bool(world.texts()[path].strip())) == (is_kept, is_kept)
    assert world.facts().keys() == facts
    assert (path in synced(world, {path: ""}).faults) == is_kept


def test_a_file_is_never_written(world: World) -> None:
    """Law 2."""
    raw = b"\xef\xbb\xbf---\r\ntitle: T\r\n---\r\n# H\r\n\r\ntext\r\nno end"
    world.write("dos.md", raw)
    before = (world.root / "dos.md").stat()
    synced(world)
    world.engine.sync(force=True, allow_empty=True)
    assert world.texts()["dos.md"] == "# H\r\n\r\ntext\r\nno end"
    assert (world.root / "dos.md").read_bytes() == raw
    assert (world.root / "dos.md").stat().st_ctime_ns == before.st_ctime_ns


def test_a_note_that_the_index_cannot_hold_fails_alone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    put = type(world.index.documents).put

    def refuse(collection: object, rows: list[dict[str, object]]) -> None:
        if any(row.get("path") == "poison.md" for row in rows):
            raise OverflowError("too much")
        put(collection, rows)  # type: ignore[arg-type]

    monkeypatch.setattr(type(world.index.documents), "put", refuse)
    report = world.save({**dict.fromkeys((f"{number}.md" for number in range(5)), "x"), "poison.md": "x"})
    assert (report.faults, len(world.rows())) == ({"poison.md": "cannot be stored: OverflowError: too much"}, 6)


def test_a_fault_of_the_parser_costs_one_file(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("notebook_sync.sync.project.project", lambda *_, **__: 1 / 0)
    assert "ZeroDivisionError" in world.sync().faults["good.md"]


# Stamps.


def test_same_size_and_same_mtime(world: World) -> None:
    synced(world)
    before = (world.root / "good.md").stat()
    world.write("good.md", "GOOD")
    os.utime(world.root / "good.md", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (world.sync().updated, world.texts()) == (1, {"good.md": "GOOD"})


def test_a_save_without_a_change_is_none(world: World) -> None:
    synced(world)
    for second in (0, 1, 2**31, 2**33):
        world.write("good.md", "good")
        world.touch("good.md", second * 10**9)
        assert (world.sync().updated, world.rows()["good.md"]["updated_at"].timestamp()) == (0, second)
    assert world.rows()["good.md"]["version"] == 1


def test_a_save_is_published_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second look at a file that was read right after its save only settles the stamp."""
    written = (world.root / "good.md").stat().st_ctime_ns
    with monkeypatch.context() as right_then:
        right_then.setattr(beneath.time, "time_ns", lambda: written)
        world.engine.look(["good.md"])
    rev = world.index.rev()
    world.sync()
    assert (world.index.rev(), world.rows()["good.md"]["stamp"] == list(UNSETTLED)) == (rev + 1, False)


def test_a_full_hash_finds_what_no_stamp_shows(world: World) -> None:
    synced(world)
    stamp = world.rows()["good.md"]["stamp"]
    world.save({"good.md": "GOOD"})
    world.write("good.md", "food")
    found = (world.root / "good.md").stat()
    forged = [found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino]
    world.index.documents.update(EVERYTHING, set={"stamp": forged})
    assert stamp != forged
    assert (world.engine.look(None).updated, world.engine.look(None, rehash=True).updated) == (0, 1)


@pytest.mark.parametrize("year", [1830, 1969, 2262, 2440])
def test_a_file_of_any_year_is_indexed(world: World, year: int) -> None:
    world.write("old.md", "of its time")
    world.touch("old.md", int((year - 1970) * 31_556_952 * 1e9))
    assert (synced(world).faults, world.texts()["old.md"]) == ({}, "of its time")


# Loss. Law 8: deletes come last and need proof.


def test_a_missing_root_deletes_nothing(world: World, tmp_path: Path) -> None:
    synced(world)
    world.root.rename(tmp_path / "away")
    with pytest.raises(RootLost):
        world.sync()
    (tmp_path / "away").rename(world.root)
    assert synced(world).deleted == 0


def test_an_emptied_root_deletes_nothing_until_it_is_allowed(world: World) -> None:
    synced(world, {f"{number}.md": f"{number}" for number in range(3)})
    for path in world.rows():
        world.delete(path)
    world.write("new.md", "a new note on an otherwise empty disk proves nothing")
    for _ in range(2):
        with pytest.raises(WouldDeleteEverything, match="none of the 4"):
            world.sync(allow_empty=False)
    with pytest.raises(WouldDeleteEverything):
        world.engine.look(["new.md"])
    assert len(world.rows()) == 4
    assert world.sync(allow_empty=True).deleted == 4


def test_a_note_that_is_in_the_cloud_only_is_kept(world: World) -> None:
    synced(world, {"a.md": "a"})
    report = synced(world, {"a.md": None, ".a.md.icloud": "x"})
    assert (report.deleted, "cloud" in report.faults["a.md"], world.texts()["a.md"]) == (0, True, "a")


def test_the_last_note_is_deleted_by_a_tool_only(world: World) -> None:
    synced(world)
    world.delete("good.md")
    with pytest.raises(WouldDeleteEverything):
        world.sync(allow_empty=False)
    intent = {"id": "1", "path": "good.md", "digest": "", "session": "task", "agent": "scribe"}
    world.index.intents.put([intent])
    assert world.engine.look(["good.md"]).deleted == 1


def test_a_folder_whose_notes_were_all_renamed_is_the_same_notebook(world: World) -> None:
    world.save({"good.md": None, **{f"old/{number}.md": f"# {number}\n" for number in range(3)}})
    world.rename("old", "new")
    report = world.save({"new/2.md": None, "new/more.md": "# More\n"}, allow_empty=False)
    assert (report.moved, report.added, report.deleted) == (2, 1, 1)


def test_a_great_loss_needs_a_second_look(world: World) -> None:
    """A quarter of a top folder, at least 20 notes."""
    world.save({f"{top}/{number}.md": f"{top} {number}" for number in range(40) for top in ("pages", "other")})
    lost = [f"pages/{number}.md" for number in range(20)] + [f"other/{number}.md" for number in range(19)]
    first = world.save(dict.fromkeys(lost), allow_empty=False)
    assert (first.deleted, len(first.warnings)) == (19, 1)
    assert "20 notes are missing in pages" in first.warnings[0]
    second = world.sync(allow_empty=False)
    assert (second.deleted, second.warnings) == (20, [])


def test_a_great_loss_that_ends_is_forgotten(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.save({f"pages/{number}.md": f"{number}" for number in range(25)})
    for _ in range(2):
        world.rename("pages", ".away")
        world.engine.look(None)
        assert len(world.engine.look(None).warnings) == 1  # who follows looks again after a minute
        world.rename(".away", "pages")
        assert world.sync(allow_empty=False).deleted == 0
    world.rename("pages", ".away")
    world.engine.look(None)
    monkeypatch.setattr(losses, "SECOND_LOOK_MS", 0)
    assert world.engine.look(None).deleted == 25


def test_a_file_that_comes_back_before_its_row_is_deleted_is_kept(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last look at a vanished file is right before its row ends."""
    synced(world, {"a.md": "a"})
    world.delete("a.md")
    world.write("b.md", "b")
    scan, scans = world.engine.tree.scan, []

    def scan_early(places: object) -> object:
        scans.append(scan(places))  # type: ignore[arg-type]
        if len(scans) == 2:  # the look that finds it gone for the second time
            world.write("a.md", "a")
        return scans[-1]

    monkeypatch.setattr(world.engine.tree, "scan", scan_early, raising=False)
    assert (world.sync().deleted, world.texts().keys()) == (0, {"good.md", "a.md", "b.md"})


def test_a_file_that_comes_back_while_it_is_deleted_is_looked_at_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced(world, {"a.md": "a"})
    apply = world.engine._applier.apply

    def apply_late(changes: list[object], **more: object) -> None:
        if any(isinstance(change, sweep.Delete) for change in changes):
            world.write("a.md", "back")
        apply(changes, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(world.engine._applier, "apply", apply_late)
    world.save({"a.md": None})
    assert world.texts() == {"good.md": "good", "a.md": "back"}


def test_a_note_that_returns_has_its_version_and_use(world: World) -> None:
    world.save({"a.md": "one"})
    world.save({"a.md": "two"})
    world.index.documents.update(Is("id", "=", "a"), inc={"access_count": 7})
    assert world.save({"a.md": None}).deleted == 1
    assert world.save({"b.md": "two"}).moved == 1
    row = world.rows()["b.md"]
    assert (row["version"], row["access_count"]) == (2, 7)
