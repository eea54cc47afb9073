"""Which notes lead to a note, as far as who asks may know of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from notebook_sync import Notebook, Session

LEADING = {
    "pages/by-name.md": "See [[quay]].\n",
    "pages/by-title.md": "See [[The old quay|there]].\n",
    "pages/by-path.md": "See [there](harbour/quay.md#depth).\n",
    "pages/harbour/beside.md": "See [there](./quay.md).\n",
    "channels/scribe/global/private.md": "See [[quay]].\n",
}
OTHERS = {
    "pages/harbour/quay.md": "# The old quay\n\nSee [[quay]].\n",
    "pages/words.md": "The old quay is no link, nor is `[[quay]]`.\n",
    "pages/elsewhere.md": "See [[quay of the north]] and [a quay](https://quay.example/quay.md).\n",
}


@pytest.fixture
def notebook(tmp_path: Path) -> Iterator[Notebook]:
    Notebook.init(tmp_path / "notebook", git=False)
    for path, text in {**LEADING, **OTHERS}.items():
        file = tmp_path / "notebook" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    with Notebook.open(tmp_path / "notebook") as notebook:
        notebook.sync()
        yield notebook


@pytest.mark.parametrize("name", ["pages/harbour/quay.md", "quay"])
def test_the_notes_that_lead_to_a_note_are_found_however_they_spell_it(notebook: Notebook, name: str) -> None:
    assert sorted(row["path"] for row in notebook.linking_to(name)) == sorted(LEADING)


def test_a_private_note_that_leads_to_a_note_is_not_told_of(notebook: Notebook) -> None:
    found = {row["path"] for row in notebook.linking_to("quay", Session.task("pilot"))}
    assert found == LEADING.keys() - {"channels/scribe/global/private.md"}
