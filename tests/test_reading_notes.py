"""Reading one note: what it says is the file as it is now, or it says that it is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from notebook_sync import Notebook, Session
from notebook_sync.errors import NoSuchNote, UnreadableFile
from notebook_sync.files.edits import Edit
from notebook_sync.files.stamped import Reading
from notebook_sync.files.vault import Vault


@pytest.fixture
def notebook(tmp_path: Path) -> Iterator[Notebook]:
    (tmp_path / "notebook.toml").write_text("[sync]\nsettle_ms = 60000\n")
    (tmp_path / "plan.md").write_text("# Plan\n\nStart small.\n")
    with Notebook.open(tmp_path) as opened:
        opened.read("plan")
        yield opened


def test_a_file_that_cannot_be_read_now_gives_the_last_good_note_and_why(notebook: Notebook) -> None:
    (notebook.root / "plan.md").write_bytes(b"# Plan \xff\n")
    document = notebook.read("plan")
    assert document["content"] == "# Plan\n\nStart small.\n"
    assert "UTF-8" in document["stale"]


def test_a_file_that_never_could_be_read_gives_why(notebook: Notebook) -> None:
    (notebook.root / "huge.md").write_bytes(b"x" * (2 << 20) + b"x")
    with pytest.raises(UnreadableFile, match="max_file_bytes"):
        notebook.read("huge")


def test_a_file_that_is_being_written_gives_the_last_good_note_and_says_so(notebook: Notebook) -> None:
    (notebook.root / "plan.md").write_text("")
    document = notebook.read("plan")
    assert document["content"] == "# Plan\n\nStart small.\n"
    assert "written" in document["stale"]


def test_a_write_that_hides_behind_the_stamp_of_the_one_before_is_read(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    (notebook.root / "plan.md").write_text("# Two\n")
    readings: list[Reading] = []
    read = Vault.read_closely

    def first_too_early(vault: Vault, path: str) -> Reading:
        reading = read(vault, path)
        readings.append(reading)
        return reading if len(readings) > 1 else Reading(b"# One\n", reading.stamp, racy=True)

    monkeypatch.setattr(Vault, "read_closely", first_too_early)
    assert notebook.read("plan")["title"] == "Two"


@pytest.mark.parametrize("reads", [True, False])
def test_a_write_that_hides_behind_the_stamp_of_an_edit_is_mirrored_by_the_next_read_or_at_the_end(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch, reads: bool
) -> None:
    read = Vault.read_closely
    seen: list[Reading] = []

    def first_too_early(vault: Vault, path: str) -> Reading:
        reading = read(vault, path)
        if reading.raw != b"# Two\n":
            return reading
        seen.append(reading)
        return reading if len(seen) > 1 else Reading(b"# One\n", reading.stamp, racy=True)

    monkeypatch.setattr(Vault, "read_closely", first_too_early)
    notebook.edit("plan.md", Edit("write", content="# Two\n"), Session.owner())
    if reads:
        assert notebook.read("plan")["title"] == "Two"
    notebook.close()
    with Notebook.open(notebook.root) as later:
        assert [row["title"] for row in later.list()] == ["Two"]


def test_a_note_is_found_by_its_file_name_alone_where_no_other_has_it(notebook: Notebook) -> None:
    for path in ("pages/piers/north.md", "pages/Tides.md", "pages/old/tides.md", "channels/pilot/global/berth.md"):
        (notebook.root / path).parent.mkdir(parents=True, exist_ok=True)
        (notebook.root / path).write_text("# A note\n")
    notebook.sync()
    assert notebook.find_path("North") == "pages/piers/north.md"
    assert notebook.find_path("north.md") == "pages/piers/north.md"
    with pytest.raises(NoSuchNote, match=r"pages/Tides\.md, pages/old/tides\.md"):
        notebook.find_path("tides")
    with pytest.raises(NoSuchNote, match="no note has"):
        notebook.find_path("berth", Session.task("scribe"))
    (notebook.root / "pages/old/tides.md").unlink()
    assert notebook.find_path("tides") == "pages/Tides.md"


RULES = """---
folio: seven
---
<!-- grammar: one bullet, one rule -->
## Permanent Rules

- **Odile** (odile@harbour.example): always respond <!-- she owns the ferry -->
- **Ines** (ines@harbour.example): block [until 2020-01-01]

## Temporary Instructions

`<!-- stays -->`
"""


@pytest.fixture
def rules(notebook: Notebook) -> Notebook:
    (notebook.root / "runtime").mkdir()
    (notebook.root / "runtime" / "external-communications.md").write_text(RULES)
    return notebook


@pytest.mark.parametrize("session", [Session.task("scribe"), Session.external("scribe")])
def test_who_may_not_change_a_file_of_the_prompt_reads_what_the_prompt_shows(rules: Notebook, session: Session) -> None:
    document = rules.read("external-communications.md", session=session)
    shown = str({key: document[key] for key in ("content", "sections", "metadata", "title", "summary")})
    for hidden in ("grammar", "she owns", "Ines", "seven"):
        assert hidden not in shown
    for visible in ("always respond", "<!-- stays -->"):
        assert visible in document["content"]
    for section in document["sections"]:
        assert document["content"][section["start"] : section["end"]] == section["content"]
    assert {section["anchor"]: section["line"] for section in document["sections"]} == {
        "permanent-rules": 5,
        "temporary-instructions": 10,
    }


def test_who_may_change_a_file_of_the_prompt_reads_all_of_it(rules: Notebook) -> None:
    document = rules.read("external-communications.md", session=Session.owner("scribe"))
    assert document["content"] == RULES.split("---\n", 2)[2]
    assert document["metadata"]["extra"] == {"folio": "seven"}


def test_a_comment_in_any_other_note_is_read_by_whoever_may_read_it(notebook: Notebook) -> None:
    (notebook.root / "plan.md").write_text("# Plan\n\n<!-- by Odile -->\n")
    assert "by Odile" in notebook.read("plan", session=Session.task())["content"]
