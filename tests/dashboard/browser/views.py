"""Every view of the dashboard of the invented notebook: where it is, and a heading that is seen there."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from tests.dashboard.ferry_office import PLAN


class View(NamedTuple):
    """`name` is that of its picture, too."""

    name: str
    path: str
    heading: str | re.Pattern[str]


FIRST: Final = (
    View("home", "/", re.compile("step|needs you")),
    View("prompt", "/prompt", "The prompt"),
    View("prompt-external", "/prompt?session=external&include=refs", "The prompt"),
    View("prompt-line", "/prompt/line?session=owner&line=Never+promise", "Does this line get through?"),
)
# Logged out, and what goes wrong.
OUTSIDE: Final = (
    View("login", "/login", "Log in"),
    View("login-used", "/login?code=used", "Log in"),
    View("nowhere", "/nowhere", "there is nothing at this path"),
)
NOTES: Final = (
    View("notes", "/notes", "Notes"),
    View("notes-folder", "/notes?folder=pages", "pages"),
    View("notes-found", "/notes?query=crossing+slip", "What fits"),
    View("notes-none", "/notes?query=zebra&mode=keyword", "What fits"),
    View("note", f"/notes/{PLAN}", "Winter timetable"),
    View("note-missing", "/notes/pages/nowhere.md", "No note is called"),
    View("edit", f"/edit/{PLAN}", "Edit"),
    View("edit-section", f"/edit/{PLAN}?section=crossings", "Edit"),
    View("edit-rules", "/edit/runtime/standing-orders.md", "Edit"),
    View("edit-comment", "/edit/runtime/reminders.md", "Edit"),
    View("history", f"/history/{PLAN}", "History"),
    View("new", "/new", "New"),
    View("rename", f"/rename/{PLAN}", "Rename"),
    View("delete", f"/delete/{PLAN}", "Delete"),
)
RULES: Final = (
    View("rules", "/rules", "Who may be answered"),
    View("rules-holds", "/rules?identity=odile%40ferry.example", "Who may be answered"),
    View("orders", "/rules/orders", "Standing orders"),
    View("reminders", "/reminders", "Reminders"),
)
MEMORY: Final = (
    View("facts", "/memory", "Facts"),
    View("facts-archive", "/memory?scope=archive", "Facts"),
    View("facts-fading", "/memory/facts/fading", "What fades next"),
    View("facts-alike", "/memory/facts/alike", "Said twice"),
    View("memories", "/memory/memories", "Memories"),
    View("memory", "/notes/memories/decision/2026-02-16-cards.md", "Take cards at the gate"),
    View("graph", "/memory/graph", "How memories are linked"),
    View("review", "/memory/review", "Review"),
    View("mend", "/memory/review/mend", "What can be mended"),
    View("figures", "/memory/figures", "Figures"),
)
STREAM: Final = (
    View("channels", "/memory/channels", "Channels"),
    View("channels-of", "/memory/channels?agent=scribe", "Channels"),
    View("stream", "/memory/stream", "Today"),
    View("stream-before", "/memory/stream?day=2020-01-01", "2020-01-01"),
    View("recall", "/memory/recall?query=tide", "What is remembered"),
    View("checkpoints", "/memory/checkpoints", "Checkpoints"),
)
ALL: Final = (*FIRST, *OUTSIDE, *NOTES, *RULES, *MEMORY, *STREAM)
