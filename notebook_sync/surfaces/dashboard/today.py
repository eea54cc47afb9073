"""Today, the first page: what needs attention, reminders, rules that end, what agents did, room, and health.

It reads counters and findings that are kept, never the notes. Each line leads to where it is dealt with.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from starlette.responses import Response

from notebook_sync.errors import NotebookError
from notebook_sync.services.admin import Status
from notebook_sync.services.trust import FOR_TRUST
from notebook_sync.surfaces.dashboard.markdown import note_href
from notebook_sync.surfaces.dashboard.past import ACTIVITY
from notebook_sync.surfaces.dashboard.runtime import WEEK, days_left, groups_of, rows_of
from notebook_sync.surfaces.dashboard.shell import Ask, Shell, route

_OF_A_FILE = re.compile(r"([\w./ -]+\.md)(?::\d+)?: ")


# One line of what needs attention, where it is dealt with, and the first few of what it is about.
Concern = tuple[str, str, Sequence[tuple[str, str]]]
# One part of the system's health: its name, its level (good, warn or bad), and a text.
Sign = tuple[str, str, str]


@route("/", link=("Notebook", "Today"))
def show(shell: Shell, ask: Ask) -> Response:
    """Today as it is now."""
    now = datetime.now(shell.notebook.settings.timezone)
    status: Status = shell.call("status")
    found, no_reminders = shell.tried("reminders")
    groups = groups_of(rows_of(shell, found.results), now) if found else {}
    standing, no_rules = shell.tried("rules")
    concerns = [*_faults(no_reminders), *_concerns(shell, status), *_faults(no_rules)]
    ending = [(each, days_left(each.until, now)) for each in (standing.results if standing else ())]
    signs = _signs(shell, status)
    levels = [*(level for _, level, _ in signs), *("warn" for _ in concerns)]
    return shell.page(
        ask,
        "today.html",
        now=now,
        concerns=concerns,
        reminders=[*groups.get("Overdue", ()), *groups.get("Today", ())],
        ending=[(rule, left) for rule, left in ending if left is not None and left <= WEEK],
        agents=status.agents,
        busiest=max((count for each in status.agents for count in each["days"]), default=0) or 1,
        rooms=status.prompt,
        signs=signs,
        activity=ACTIVITY,
        level=next((each for each in ("bad", "warn") if each in levels), "good"),
    )


def _faults(error: NotebookError | None) -> list[Concern]:
    """What is said of an operation that could not answer."""
    return [(error.message, "/doctor", ())] if error else []


def _concerns(shell: Shell, status: Status) -> list[Concern]:
    """What somebody should look at, the most urgent first."""
    stale = [(f"{each['path']}: {each['error']}", note_href(each["path"])) for each in status.stale]
    copies = [(path, note_href(path)) for path in status.conflicts]
    is_waiting = any(FOR_TRUST in each for each in status.attention)
    waiting, trouble = shell.tried("trust", {"dry_run": "true"}) if is_waiting else (None, None)
    lines = [(f"{each.path}, changed lines: {each.lines}", "/prompt") for each in (waiting.results if waiting else ())]
    refused = [(f"{each['agent']}: {each['refused']}", "") for each in status.agents if each["refused"]]
    counted = [
        (stale, "file with faults", "files with faults", stale[0][1] if stale else ""),
        (copies, "conflict copy", "conflict copies", copies[0][1] if copies else ""),
        (lines, "file with lines that wait for trust", "files with lines that wait for trust", "/prompt"),
        (
            refused,
            "agent was refused something in 24 hours",
            "agents were refused something in 24 hours",
            f"{ACTIVITY}?kind=refused",
        ),
        (
            [(each.partition("; run: ")[0], "") for each in status.proposals],
            "proposal for facts",
            "proposals for facts",
            "/review/facts",
        ),
    ]
    said = {text for text, _ in stale}
    others = [each for each in status.attention if each not in said and FOR_TRUST not in each]
    found = [
        (f"{len(about)} {one if len(about) == 1 else many}", href, about[:5])
        for about, one, many, href in counted
        if about
    ]
    return [
        *_faults(trouble),
        *found,
        *((each, "/prompt" if _OF_A_FILE.match(each) else "/doctor", ()) for each in others),
    ]


def _signs(shell: Shell, status: Status) -> list[Sign]:
    """The health of each part."""
    follower = status.follower
    is_followed = follower is not None and not follower.get("trouble")
    faults = f", {len(status.stale)} with faults" if status.stale else ""
    said = follower["trouble"] if follower and follower.get("trouble") else "nothing follows the files"
    signs: list[Sign] = [
        ("Index", "bad" if status.stale else "good", f"{sum(status.notes.values()):,} notes{faults}"),
        ("Files", "good" if is_followed else "warn", "followed" if is_followed else said),
        *(_server(shell, each) for each in status.targets),
    ]
    for model in status.search:
        behind, trouble = model["behind"], model["trouble"]
        text = trouble or (f"{behind:,} texts without a vector" if behind else "up to date")
        title = "Search by meaning" if model["setting"] == "embeddings" else "Second stage of search"
        signs.append((title, "bad" if trouble else "warn" if behind else "good", text))
    dumped = status.dumped_at and datetime.fromisoformat(status.dumped_at)
    is_old = not dumped or shell.notebook.core.now() - dumped > timedelta(days=2)
    signs.append(("Nightly dump", "warn" if is_old else "good", f"{dumped:%Y-%m-%d}" if dumped else "never"))
    return signs


def _server(shell: Shell, target: dict[str, Any]) -> Sign:
    """A server; one that does not answer is shown as it was when it last did."""
    name, now = target["name"], shell.notebook.core.now()
    if target["trouble"]:
        at, lacking = shell.answered.get(name, (None, target["behind"]))
        when = f"at {at:%H:%M} UTC" if at else "as last known"
        return (name, "bad", f"{target['trouble']} ({when}, {lacking:,} changes to publish)")
    shell.answered[name] = now, target["behind"]
    if target["refused"]:
        return (name, "bad", f"refuses {target['refused']:,} rows")
    lacking = target["behind"]
    return (name, "warn" if lacking else "good", f"{lacking:,} changes to publish" if lacking else "up to date")
