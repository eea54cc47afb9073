"""One task has one brief, whichever store holds the notes."""

from __future__ import annotations

from pathlib import Path

from notebook_sync import Notebook, Session
from tests.context.test_compiler import MEMORIES, PAGE, SETTINGS, SPEC, memory, save


def test_a_brief_is_the_same_on_mongodb_and_in_the_embedded_file(
    tmp_path: Path, mongodb_url: str, mongo_database: str
) -> None:
    embedded, mongo = tmp_path / "embedded", tmp_path / "mongo"
    newer = memory("slot3", "Night ferries take slot three", "It is wider.", links=[("supersedes", "slot")])
    for root in (embedded, mongo):
        root.mkdir()
        (root / "notebook.toml").write_text(SETTINGS.format("wordllama"))
        for path, text in [*MEMORIES.items(), PAGE, newer]:
            save(root, path, text)
    with (mongo / "notebook.toml").open("a") as settings:
        settings.write(f'\n[mirror]\nurl = "{mongodb_url}"\ndatabase = "{mongo_database}"\n')
    briefs = []
    for root in (embedded, mongo):
        with Notebook.open(root) as notebook:
            notebook.sync()
            briefs.append(notebook.context.compile(SPEC, Session.task("scribe"), explain=True))
            save(root, *memory("fog", "Fog hides the ferry", "The night ferry waits in its slot.", "problem"))
            briefs.append(notebook.context.compile(SPEC, Session.task("scribe")))
    assert briefs[0] == briefs[2]
    assert briefs[1] == briefs[3]
    assert "waits in its slot" in briefs[1].task_brief_md
