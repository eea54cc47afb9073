"""Which notes lead to a note, as far as who asks may know of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from notebook_sync import Notebook, Session, listing

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


def test_links_that_lead_nowhere_are_told_with_the_reason_as_check_does(notebook: Notebook, tmp_path: Path) -> None:
    (tmp_path / "notebook/pages/deck.png").write_bytes(b"")
    good = ["quay", "The OLD quay", "harbour/quay.md", "/pages/words.md", "deck.png", "harbour", "pages/words"]
    broken = ["pier", "quay/pier.md", "../harbour/quay.md", "../../plan.md"]
    (tmp_path / "notebook/pages/all.md").write_text("".join(f"[[{link}]]\n" for link in [*good, *broken]))
    notebook.sync()
    found = notebook.broken_links("pages/all.md", [*good, *broken])
    told = [one.message for one in notebook.prompts.check().results if one.path == "pages/all.md"]
    assert sorted(told) == sorted(f"broken link to `{link}`: {why}" for link, why in found.items())
    assert list(found) == broken


def test_all_links_of_a_note_are_one_question_and_those_to_files_none(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    names = notebook.mirror.names
    monkeypatch.setattr(notebook.mirror, "names", lambda: asked.append(1) or names())
    assert notebook.broken_links("pages/words.md", ["by-name.md", "harbour/quay.md"]) == {}
    assert asked == []
    assert notebook.broken_links("pages/words.md", ["quay", "pier", "The old quay"]).keys() == {"pier"}
    assert asked == [1]


def test_among_very_many_notes_not_every_name_is_read_for_one_page(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "MOST_NAMED", notebook.mirror.note_count() - 1)
    monkeypatch.setattr(notebook.mirror, "names", lambda: pytest.fail("every name is read"))
    assert notebook.broken_links("pages/words.md", ["quay", "pier", "by-name.md"]) == {}


def test_a_link_to_a_note_that_a_session_may_not_read_is_as_one_to_none(notebook: Notebook) -> None:
    private = "channels/scribe/global/private.md"
    for link in ("private", private, private.removesuffix(".md"), f"../{private}", "channels/scribe", "pier"):
        is_told = notebook.broken_links("pages/words.md", [link], Session.task("pilot"))
        assert is_told == {link: "no note and no file has this name; mend the link, or write the page"}
    assert notebook.broken_links("pages/words.md", ["private", private], Session.task("scribe")) == {}


def test_what_a_session_is_not_shown_of_a_file_is_no_name_to_it(notebook: Notebook, tmp_path: Path) -> None:
    reminders = "runtime/reminders.md"
    (tmp_path / "notebook" / reminders).write_text("---\ntitle: The storm\nid: storm\n---\n## Today\n")
    notebook.sync()
    links = ["the storm", "storm", "reminders", f"/{reminders}"]
    assert notebook.broken_links("pages/words.md", links) == {}
    assert list(notebook.broken_links("pages/words.md", links, Session.external("herald"))) == links[:2]
