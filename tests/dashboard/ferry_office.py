"""The invented notebook that browsers look at: a ferry office with something of everything the dashboard shows."""

from __future__ import annotations

import shutil
from datetime import date, timedelta
from pathlib import Path

from notebook_sync import Notebook, Session

_SCRIBE = Session.task("scribe")
PLAN = "pages/winter-timetable.md"
REMINDER = "Return the borrowed sextant to Odile"
FACT = "The toll is twelve crowns, six on Sundays"


def make(root: Path, today: date | None = None, *, git: bool = False) -> None:
    """Make it at `root`, in step with its mirror. Whatever is due is so around `today`."""
    day = today or date.today()  # noqa: DTZ011 - a day of this machine is near enough
    Notebook.init(root, git=git)
    explained, _, _ = (root / "runtime/reminders.md").read_text(encoding="utf-8").partition("\n\n##")
    for name in ("runtime/external-communications.md", "runtime/reminders.md", "runtime/standing-orders.md"):
        (root / name).unlink()
    for path, text in files(day).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    reminders = root / "runtime/reminders.md"
    reminders.write_text(f"{explained}\n\n{reminders.read_text(encoding='utf-8')}", encoding="utf-8")
    with Notebook.open(root) as notebook:
        notebook.sync()
        _live_in(notebook)
        notebook.sync()


def copy(made: Path, root: Path) -> Path:
    """A notebook of its own for a test that changes it."""
    shutil.copytree(made, root, symlinks=True)
    return root


def files(today: date) -> dict[str, str]:
    """What a person wrote, by path."""

    def day(days: int) -> str:
        return (today + timedelta(days)).isoformat()

    return {
        "runtime/external-communications.md": f"""\
## Permanent Rules

- **Odile Marchetti** (odile@ferry.example): always respond, within the hour
- **Harbour office** (+00 555 0142): draft only
- **Newsletters** (news@tours.example): never respond

## Temporary Instructions

- **Mira Holt** (mira@lighthouse.example): observe only [until {day(20)}]
- **Tidewater Tours** (tours@ferry.example): block [until {day(-12)}]

## Channel-Specific

### deck-crew

- **Everyone** (deck-crew): observe only
""",
        "runtime/reminders.md": f"""\
## Today

- [ ] Order lamp oil [due: {day(0)} 23:30]
- [x] Count the coins of the late crossing

## This Week

- [ ] {REMINDER} [due: {day(-2)} 17:30]
- [ ] Paint the gate of pier two [due: {day(3)}]

## Recurring

- Every Thursday at 09:00: Wind the tower clock

## Waiting For

- Answer of the glazier about the lantern room [expected: {day(9)}]
""",
        "runtime/standing-orders.md": """\
## Communication Style

- Write dates the way the tide table does: 6 May, 17:30
- Answer in the language of the question

## Boundaries
<!-- pin -->

- Never promise a berth before the harbour office has confirmed it
- Never name a passenger to another passenger

## Preferences

| crossing | leaves | coins |
|----------|--------|-------|
| early    | 06:40  | 4     |
| noon     | 12:00  | 4     |
| late     | 17:30  | 5     |
""",
        PLAN: """\
---
title: Winter timetable
tags: [timetable, ferry]
status: in_progress
summary: Three crossings a day from November on.
berth: 2
---
# Winter timetable

Three crossings a day from November on. See [[harbour-map]] and [the tide rules](tides.md#low-water).

## Crossings

1. Early, at 06:40
2. Noon, at 12:00
3. Late, at 17:30

## Open questions

- Does *Ines* agree with the noon crossing?
- Who has the keys of pier two?

```python
leaves = ["06:40", "12:00", "17:30"]
```
""",
        "pages/harbour-map.md": "# Harbour map\n\nPier one is for the ferry, pier two for visitors. #harbour\n",
        "pages/tides.md": "# Tides\n\n## Low water\n\nTen minutes more. #harbour\n\n## High water\n\nNone.\n",
        "pages/office/keys.md": "---\ntags: [office]\n---\n# Keys\n\nOdile has two, Ines has one.\n",
        "pages/office/lost-and-found.md": "# Lost and found\n\nOne umbrella, two gloves of different hands.\n",
        "code_snippets/crossings.md": "# Next crossing\n\n```python\ndef following(times, now):\n"
        "    return next((time for time in times if time > now), None)\n```\n",
        "research_notes/slip.md": "---\nsource_url: https://tides.example/slips\nconfidence: 0.7\n---\n# Slips\n\n"
        "## Key findings\n\n- A longer slip saves ten minutes at low water\n",
        "facts/core.md": "## Identity\n\n- The ferry is called Marguerite\n\n## Relationships\n\n"
        "- Odile runs the office, Ines steers\n",
        "facts/notes.md": f"""\
## Important Facts

- The ferry leaves at 06:40 <!-- importance: 0.9 -->
- {FACT}
- The pier was painted in May

## People & Entities

- Ines prefers tea to coffee <!-- importance: 0.3 -->
- Ben is on watch this week
""",
        "facts/archive.md": f"## Important Facts\n\n- The old crane is out of use "
        f"<!-- archived: {day(-30)}; reason: faded; from: facts/notes.md -->\n",
        **_memories(),
    }


def _memories() -> dict[str, str]:
    told = {
        "decision/2026-02-16-cards": ("Take cards at the gate", "coins", "solves", ["coins", "office"]),
        "problem/2026-02-10-coins": ("Nobody has the right coins at the gate", "queue", "causes", ["coins"]),
        "problem/2026-02-09-queue": ("Passengers queue twice on market days", "", "", ["market"]),
        "insight/2026-02-20-slack": ("Ten minutes of slack at noon are enough", "queue", "solves", ["timetable"]),
        "pattern/2026-02-22-market": ("Market days double the passengers", "queue", "causes", ["market"]),
    }
    made = {}
    for name, (title, to, relation, tags) in told.items():
        own = name.rpartition("-")[2]
        links = f"relations:\n  - {{type: {relation}, to: {to}, confidence: 0.9}}\n" if to else ""
        made[f"memories/{name}.md"] = (
            f"---\nid: {own}\ntitle: {title}\nkind: {name.partition('/')[0]}\ndomain: tickets\nagent: scribe\n"
            f"tags: [{', '.join(tags)}]\n{links}---\n# {title}\n\n## Context\n\nThe gate, on market days.\n\n"
            "## Reasoning\n\nCounted by Odile for a week.\n\n## Outcome\n\nThe noon crossing leaves in time.\n"
        )
    return made


def _live_in(notebook: Notebook) -> None:
    """What agents left there, and the owner."""
    owner = Session.owner()
    notebook.channels.write("Asked Odile for the spring timetable; she answers on Friday.", _SCRIBE, topic="timetable")
    notebook.channels.write("The visitors' pier has no ring at its end.", _SCRIBE, topic="harbour", tags=["pier"])
    notebook.stream.log("Read the tide tables for March", _SCRIBE, tags=["tides"])
    notebook.stream.log("The noon crossing left in time", owner, tags=["crossing"], score=0.9)
    notebook.stream.checkpoint("before the winter timetable", owner)
