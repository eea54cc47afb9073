"""A renamed file is one note that moved, however its two events arrive."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.sync.following import following
from tests.waiting import eventually


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "notebook"
    root.mkdir()
    for name in ("plan", "other"):
        (root / f"{name}.md").write_text(f"# {name}\n")
    return root


def test_a_renamed_note_keeps_its_past(root: Path) -> None:
    with following(root) as watch:
        (root / "plan.md").write_text("# plan\n\nSecond.\n")
        watch.becomes({"plan.md": "# plan\n\nSecond.\n", "other.md": "# other\n"})
        (root / "plan.md").rename(root / "scheme.md")
        watch.becomes({"scheme.md": "# plan\n\nSecond.\n", "other.md": "# other\n"})
        (moved,) = (document for document in watch.notebook.mirror.documents() if document["path"] == "scheme.md")
    assert moved["metadata"]["version"] == 2


def test_a_renamed_note_that_is_touched_while_it_settles_keeps_its_past(root: Path) -> None:
    with following(root) as watch:
        (root / "plan.md").rename(root / "scheme.md")
        for mode in (0o600, 0o644) * 5:  # as programs do that copy a file's rights and times after it
            (root / "scheme.md").chmod(mode)
        watch.becomes({"scheme.md": "# plan\n", "other.md": "# other\n"})
        today = datetime.now(UTC).date().isoformat()
        eventually(lambda: watch.notebook.refs.day(today)[2:], "hot memory follows the mirror")
        entries = watch.notebook.refs.day(today)
    assert [(entry["action"], entry["ref"]["path"]) for entry in entries[2:]] == [("moved", "scheme.md")]
