"""What names mean: notes, system folders, copies, and names that no new note gets."""

import pytest

from notebook_sync.files.names import copy_of, is_note_name, is_system_folder, twin, why_not

LONG = "x" * 253 + ".md"


@pytest.mark.parametrize(
    "path",
    [
        "",
        ".",
        "a",
        "a.txt",
        "a.md/",
        "/a.md",
        "../a.md",
        "a/../b.md",
        "./a.md",
        "a//b.md",
        "a\0.md",
        "a\n.md",
        "a\x7f.md",
        "a\x1b[2J.md",
        "a\x85.md",
        "a\u2028.md",
        "dm.\u202egpj.md",
        "a\udcff.md",
        "a\\b.md",
        "..\\a.md",
        ".a.md",
        ".md",
        ".git/a.md",
        ".GIT/a.md",
        "b/.notebook/a.md",
        "@eaDir/a.md",
        "$RECYCLE.BIN/a.md",
        "CON.md",
        "Aux.notes.md",
        "nul .md",
        "COM¹.md",
        "prn/a.md",
        "b./a.md",
        "b /a.md",
        " a.md",
        "a.md ",
        "a.md.",
        LONG,
        "é" * 127 + ".md",
        "/".join(["folder"] * 700) + "/a.md",
    ],
)
def test_no_new_note_gets_a_name_that_some_system_takes_otherwise(path: str) -> None:
    assert why_not(path)


@pytest.mark.parametrize(
    "path", ["a.md", "deep/er/a.MD", "x" * 252 + ".md", "what? #1: yes.md", "comet.md", "日本/港.md"]
)
def test_any_other_name_is_fine(path: str) -> None:
    assert why_not(path) == ""


@pytest.mark.parametrize(
    ("name", "names", "expected"),
    [
        ("Ferry.md", ["boat.md", "fERRY.md"], "fERRY.md"),
        ("cafe\u0301.md", ["CAFÉ.md"], "CAFÉ.md"),
        ("strasse.md", ["straße.md"], "straße.md"),
        ("a.md", ["a.md", "b.md"], ""),
    ],
)
def test_twins_differ_in_case_or_unicode_form_alone(name: str, names: list[str], expected: str) -> None:
    assert twin(name, names) == expected


@pytest.mark.parametrize("name", ["x.md~", "4913", "x.md.tmp", "#x.md#", ".#x.md", "x.mdx", ".md"])
def test_backups_and_temporary_files_are_no_notes(name: str) -> None:
    assert not is_note_name(name)


@pytest.mark.parametrize(
    "name",
    [".obsidian", ".trash", ".git", ".stversions", "@eaDir", "#recycle", "$RECYCLE.BIN", "System Volume Information"],
)
def test_system_folders_are_known(name: str) -> None:
    assert is_system_folder(name)
    assert not is_system_folder("trash")


@pytest.mark.parametrize(
    "copy",
    [
        "core.sync-conflict-20261120-093012-ABCD123",
        "core (conflicted copy 2026-11-20 093012)",
        "core (Odile's conflicted copy 2026-11-20)",
        "core (Konfliktkopie von Odile 2026-11-20)",
        "core (copie en conflit de Odile 2026-11-20)",
        "core (SFConflict odile@ferry.example 2026-11-20-09-30-12)",
        "core (Case Conflict 1)",
        "core_conflict-20261120-093012",
        "core [Conflict]",
        "core.Conflict",
        "core-DESKTOP-8H3K2L1",
        "core_LOCAL_1234",
        "core.bak",
        "core~",
        "core (conflicted copy 2026-11-20 093012).sync-conflict-20261121-010203-XYZ",
    ],
)
@pytest.mark.parametrize("folder", ["facts", "pages/deep"])
def test_conflict_copies_and_backups_are_known_by_their_names(copy: str, folder: str) -> None:
    path = f"{folder}/{copy}.md"
    assert copy_of(path) == f"{folder}/core.md"


@pytest.mark.parametrize(
    "suffix", [" 2", " (1)", "(1)", " copy", " copy 2", " - Copy (2)", " - Kopie", "-ODILE-PC", "_old"]
)
def test_what_may_be_a_copy_is_one_only_of_a_guarded_file(suffix: str) -> None:
    originals = [copy_of(f"{path}{suffix}.md").lower() for path in ("facts/core", "runtime/Reminders", "pages/plan")]
    assert originals == ["facts/core.md", "runtime/reminders.md", ""]
    assert copy_of(f"pages/plan{suffix}.md", guarded=["pages/plan.md"]) == "pages/plan.md"


@pytest.mark.parametrize(
    "path",
    [
        "facts/core.md",
        "plan (conflict of interest).md",
        "plan-desktop-layout.md",
        "core-values.md",
        "facts/core-team.md",
        "plan (2026-11-20).md",
        "a.md",
        "~.md",
        "plan.sync-conflict.md",
        "notes.txt",
        "facts/core (1).txt",
    ],
)
def test_other_notes_are_no_copies(path: str) -> None:
    assert copy_of(path) == ""
