"""Rule: the parsed frontmatter decides whether a note is external, and only the owner can remove the mark.

A note with `provenance: external` is external however the key is spelled. Every write passes one check: the mark stays,
whichever tool writes, and no older version without the mark is restored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from notebook_sync import Edit, MemoryTool, Notebook, Session, call
from notebook_sync.errors import EditFailed, NotebookError, NotPermitted
from notebook_sync.files.provenance import is_external

OWNER, SCRIBE, STRANGER = Session.owner(), Session.task("scribe"), Session.external("scribe")
PAGE = "pages/letter.md"
TEXT = "# Letter\n\nPromise every berth.\n"
SPELLINGS = {
    "plain": "provenance: external",
    "escape": '"pro\\x76enance": external',
    "unicode escape": '"\\u0070rovenance": external',
    "escaped line break": '? "proven\\\n  ance"\n: external',
    "escape in the value": 'provenance: "\\x65xternal"',
    "tag": "!!str provenance: !!str external",
    "flow": "{provenance: external}",
    "list": "provenance: [external]",
    "mapping": "provenance: {by: external}",
    "broken": '"pro\\x76enance": external\ntitle: [',
}


def marked(spelling: str) -> str:
    return f"---\n{spelling}\n---\n{TEXT}"


@pytest.fixture
def notebook(tmp_path: Path) -> Iterator[Notebook]:
    (tmp_path / "pages").mkdir()
    (tmp_path / PAGE).write_text(TEXT)
    with Notebook.open(tmp_path) as opened:
        opened.sync()
        yield opened


def mark(notebook: Notebook, spelling: str = SPELLINGS["plain"]) -> None:
    notebook.edit(PAGE, Edit("write", content=marked(spelling)), OWNER, allow_over_cap=True)


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
def test_the_mark_counts_however_it_is_spelled(notebook: Notebook, spelling: str) -> None:
    assert is_external(marked(spelling).encode())
    (notebook.root / PAGE).write_text(marked(spelling))
    notebook.sync()
    shown = call(notebook, "notebook_read", {"id": PAGE}, SCRIBE)
    assert shown["text"].startswith("<external-text id=")
    assert "\nPromise" not in shown["text"]


@pytest.mark.parametrize("text", [TEXT, "---\ntitle: provenance\n---\nprovenance: external\n", "---\n\nA rule above\n"])
def test_words_below_the_frontmatter_are_no_mark(text: str) -> None:
    assert not is_external(text.encode())


LOWERING: dict[str, Callable[[Notebook], object]] = {
    "edit": lambda nb: nb.edit(PAGE, Edit("set_frontmatter", content="provenance: null"), SCRIBE),
    "escape": lambda nb: nb.edit(PAGE, Edit("set_frontmatter", content='"pro\\x76enance": task'), SCRIBE),
    "write": lambda nb: nb.edit(PAGE, Edit("write", content=TEXT), SCRIBE),
    "other provenance": lambda nb: nb.edit(PAGE, Edit("write", content=marked("provenance: owner")), SCRIBE),
    "update": lambda nb: nb.update(PAGE, SCRIBE, content=TEXT, fields={"provenance": "task"}),
    "undo": lambda nb: nb.undo(PAGE, SCRIBE),
    "undo to a version": lambda nb: nb.undo(PAGE, SCRIBE, rev=nb.history(PAGE, OWNER)[-1].rev),
    "undo of a deletion": lambda nb: (
        nb.delete(PAGE, SCRIBE),
        nb.undo(PAGE, SCRIBE, rev=nb.history(PAGE, OWNER)[-1].rev),
    ),
    "undo after an edit": lambda nb: (
        nb.edit(PAGE, Edit("append_to_section", section="Letter", content="- more"), SCRIBE),
        nb.undo(PAGE, SCRIBE),
        nb.undo(PAGE, SCRIBE, rev=nb.history(PAGE, OWNER)[-1].rev),
    ),
    "rename": lambda nb: (
        nb.rename(PAGE, "pages/other.md", SCRIBE),
        nb.undo("pages/other.md", SCRIBE, rev=nb.history("pages/other.md", OWNER)[-1].rev),
    ),
    "memory tool": lambda nb: MemoryTool(nb, SCRIBE).tool_result(
        "", {"command": "str_replace", "path": f"/memories/{PAGE}", "old_str": "external", "new_str": "task"}
    ),
    "rollback": lambda nb: nb.stream.rollback(nb.stream.checkpoint().id, SCRIBE, files=True),
}


@pytest.mark.parametrize("lower", LOWERING.values(), ids=LOWERING)
@pytest.mark.parametrize("spelling", ["plain", "escape", "list"])
def test_no_write_by_an_agent_takes_the_mark_away(
    notebook: Notebook, lower: Callable[[Notebook], object], spelling: str
) -> None:
    mark(notebook, SPELLINGS[spelling])
    with suppress(NotebookError):
        lower(notebook)
    left = [path for path in (notebook.root / "pages").glob("*.md") if "berth" in path.read_text()]
    assert all(is_external(path.read_bytes()) for path in left)


def test_taking_back_the_owners_mark_is_refused_and_says_why(notebook: Notebook) -> None:
    mark(notebook)
    with pytest.raises(NotPermitted, match="provenance"):
        notebook.undo(PAGE, SCRIBE)
    notebook.undo(PAGE, OWNER)
    assert (notebook.root / PAGE).read_text() == TEXT


def test_broken_frontmatter_that_may_spell_the_mark_stays_as_it_is(notebook: Notebook) -> None:
    (notebook.root / PAGE).write_text(marked(SPELLINGS["broken"]))
    with pytest.raises((NotPermitted, EditFailed)):
        notebook.edit(PAGE, Edit("write", content=TEXT), SCRIBE)


def test_what_somebody_elses_message_adds_is_marked(notebook: Notebook) -> None:
    written = notebook.channels.write("Said.", STRANGER)
    assert is_external((notebook.root / written.path).read_bytes())
