"""Who asks: `--session` on the command line decides what every command shows, including `explain`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from notebook_sync import Notebook
from notebook_sync.surfaces.cli.main import run


@pytest.mark.parametrize(("who", "count"), [("owner", 2), ("task", 1), ("external", 1)])
def test_explain_names_no_place_that_the_session_may_not_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], who: str, count: int
) -> None:
    root = tmp_path / "notebook"
    Notebook.init(root)
    for path in ("channels/pilot/global/berth.md", "pages/berth.md"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("# Berth\n\nquillfeather berth\n")
    run(["-C", str(root), "explain", "quillfeather", "--session", who, "--agent", "scribe", "--json"])
    found = json.loads(capsys.readouterr().out)["found"]
    assert len(found) == count
    assert ("channels/pilot/global/berth.md" in {one["path"] for one in found}) == (who == "owner")
