"""Syntheses of a notebook whose store is a real MongoDB: kept, counted, and out of date with a memory's file."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from notebook_sync import Session
from tests.context.advisers import BERTH, SPEC, Adviser, ids, link, opened, truth, write_notebook


def test_an_answer_is_kept_until_a_memory_that_it_rests_on_is_edited(
    tmp_path: Path, mongodb_url: str, mongo_database: str
) -> None:
    write_notebook(tmp_path)
    settings = tmp_path / "notebook.toml"
    mirror = f'[mirror]\nurl = "{mongodb_url}"\ndatabase = "{mongo_database}"\n'
    settings.write_text(mirror + settings.read_text())
    adviser = Adviser()
    adviser.says(truth(link()), truth())
    with opened(tmp_path, adviser) as notebook:
        told = notebook.context.synthesize(SPEC)
        assert ids(told.links.ingested) == [("silt", "causes", "tide")]
        kept = notebook.context.synthesize(SPEC)
        assert kept == replace(told, cached=True, links=kept.links)
        assert ids(kept.links.kept) == [("silt", "causes", "tide")]
        assert notebook.context.synthesize(SPEC, Session.task("scribe")).cached
        berth = tmp_path / BERTH
        berth.write_text(f"{berth.read_text()}\nThe pilot agrees.\n")
        assert not notebook.context.synthesize(SPEC).cached
        figures = notebook.context.figures()
    assert (figures.causal_links, figures.synthesis.hits, figures.synthesis.today) == (1, 2, 2)
