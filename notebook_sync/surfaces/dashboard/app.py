"""All pages of the dashboard, and what an error is among them."""

from __future__ import annotations

from collections.abc import Iterable

from fastapi import APIRouter

from notebook_sync.surfaces.dashboard import home, live, login, pictures
from notebook_sync.surfaces.dashboard.editing import edit_page, filing_page, history_page, new_page, version_page
from notebook_sync.surfaces.dashboard.memory import (
    channels_page,
    checkpoints_page,
    facts_page,
    facts_upkeep_page,
    figures_page,
    graph_page,
    memories_page,
    memory_review_page,
    stream_page,
)
from notebook_sync.surfaces.dashboard.notes import note_page, notes_page
from notebook_sync.surfaces.dashboard.runtime import prompt_page, rules_page

ROUTERS: Iterable[APIRouter] = (
    login.open_pages,
    login.pages,
    live.pages,
    home.pages,
    prompt_page.pages,
    rules_page.pages,
    note_page.pages,
    notes_page.pages,
    edit_page.pages,
    history_page.pages,
    version_page.pages,
    filing_page.pages,
    new_page.pages,
    facts_page.pages,
    facts_upkeep_page.pages,
    figures_page.pages,
    graph_page.pages,
    memories_page.pages,
    memory_review_page.pages,
    pictures.pages,
    stream_page.pages,
    checkpoints_page.pages,
    channels_page.pages,
)
