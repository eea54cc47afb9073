"""The history of a note, and what agents did to all notes: versions and events, with what each changed, word
by word, and a way back."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from starlette.responses import Response

from notebook_sync.errors import GitFailed, NotebookError, NotFound
from notebook_sync.files.edits import unified_diff
from notebook_sync.files.git import run_git
from notebook_sync.files.history import Version
from notebook_sync.sessions import maker_of
from notebook_sync.store.rows import EVERYTHING, Is, Row, Where, both
from notebook_sync.surfaces.dashboard.shell import Ask, Shell, address_with, route

ACTIVITY: Final = "/activity"
_PER_PAGE, _MOST_VERSIONS = 50, 200
_FILTERS = ("agent", "kind", "day")
# What is shown unless a kind is asked for.
_MAIN_KINDS: Final = ("edit", "refused")
# What an event may say, and the page shows.
_NO_FIELDS: Final = dict.fromkeys(("action", "operation", "section", "reason", "moved_from", "commit", "digest"), "")
_RECENT = timedelta(days=60)
# Of a difference: what a reader looks at, and how long git may take.
_MOST_LINES: Final = 400
_LONGEST_LINE: Final = 4_000
_SECONDS: Final = 3.0
# Both texts that git compares have such a line where the diff leaves lines out, and no note begins a line so.
_GAP: Final = "\x1e"
_HUNK = re.compile(r"@@ -\S+ \+(\d+)")
_SIGNS: Final = {" ": "", "-": "del", "+": "ins"}


@route("/history/{name:path}")
def show_history(shell: Shell, ask: Ask) -> Response:
    """The versions of a note that is there or was, and what one of them changed, or what changed since."""
    name = ask.path["name"]
    versions: Sequence[Version] = shell.call("history", {"id": name, "limit": str(_MOST_VERSIONS)}).results
    note, _ = shell.tried("read", {"id": name})  # a note that is gone still has its history
    path = note.path if note else versions[0].path if versions else name
    rev, since = ask.query.get("rev", ""), ask.query.get("since", "")
    difference: Difference | None = None
    if since:
        difference = difference_of(shell.call("diff", {"id": path, "since": since}).diff)
    elif versions:
        difference = _change(shell, versions, rev or versions[0].rev)
    return shell.page(
        ask,
        "history.html",
        path=path,
        digest=note.digest if note else "",
        versions=versions,
        rev=rev or (versions[0].rev if versions and not since else ""),
        since=since,
        difference=difference,
        is_all=len(versions) < _MOST_VERSIONS,
    )


@route(ACTIVITY, link=("Notebook", "Activity"))
def show_activity(shell: Shell, ask: Ask) -> Response:
    """Edits and refusals, the latest first; of the one that is `open`, what it changed."""
    asked, core = ask.asked(*_FILTERS), shell.notebook.core
    events = core.index.events
    where, after = _chosen(asked, core.settings.timezone), ask.query.get("after", "")
    page = both(where, Is("id", "<", after)) if after else where
    rows = events.find(page, order=("-id",), limit=_PER_PAGE + 1)
    agents = events.tuples(("agent", "session"), Is("at", ">", datetime.now(UTC) - _RECENT))
    more = address_with(ACTIVITY, asked, after=rows[_PER_PAGE - 1]["id"]) if len(rows) > _PER_PAGE else ""
    shown, opened = rows[:_PER_PAGE], ask.query.get("open", "")
    return shell.page(
        ask,
        "activity.html",
        asked=asked,
        days=_by_day(shell, shown, asked | ({"after": after} if after else {}), opened),
        agents=sorted({agent or session for agent, session in agents} | ({asked["agent"]} - {""})),
        kinds=sorted(events.distinct("kind").keys() | ({asked["kind"]} - {""})),
        more=more,
    )


def _by_day(
    shell: Shell, rows: Sequence[Row], asked: Mapping[str, str], opened: str
) -> dict[str, list[dict[str, Any]]]:
    core, paths = shell.notebook.core, {row["path"] for row in rows}
    digests = dict(core.index.documents.tuples(("path", "digest"), Is("path", "in", paths)))
    days: dict[str, list[dict[str, Any]]] = {}
    zone = core.settings.timezone
    for row in rows:
        fields, is_open = {**_NO_FIELDS, **(row["fields"] or {})}, row["id"] == opened
        is_edit = row["kind"] == "edit"
        shown = {
            "event": row,
            "fields": fields,
            "who": maker_of(row["agent"]) if row["agent"] or row["session"] == "owner" else "an agent",
            "what": str(fields["action"] or fields["operation"]).replace("_", " "),
            "is_last": is_edit and digests.get(row["path"], "") == fields["digest"],
            "is_open": is_open,
            "toggle": address_with(ACTIVITY, asked, **({} if is_open else {"open": row["id"]})) + f"#event-{row['id']}",
            "difference": _change_by(shell, row["path"], fields["commit"]) if is_open and is_edit else None,
        }
        days.setdefault(f"{row['at'].astimezone(zone):%Y-%m-%d}", []).append(shown)
    return days


def _change_by(shell: Shell, path: str, rev: str) -> Difference | None:
    """What a commit changed in a note; None where that is not known any more."""
    try:
        versions = shell.call("history", {"id": path, "limit": str(_MOST_VERSIONS)}).results
        return _change(shell, versions, rev)
    except NotebookError:
        return None


def _change(shell: Shell, versions: Sequence[Version], rev: str) -> Difference:
    """What a version changed. Raises NotFound."""
    at = next((at for at, each in enumerate(versions) if rev and each.rev.startswith(rev)), None)
    if at is None:
        raise NotFound("version", rev, next="see the history of the note")
    new = _text(shell, versions[at])
    old = _text(shell, versions[at + 1]) if at + 1 < len(versions) else ""
    return difference_of(unified_diff(old, new, versions[at].path))


def _text(shell: Shell, version: Version) -> str:
    return (shell.notebook.core.history.text(version.rev, version.path) or b"").decode(errors="replace")


def _chosen(asked: Mapping[str, str], zone: tzinfo) -> Where:
    """The events that are asked for; an agent is one by name, or the sessions of agents that gave none."""
    kind, agent = asked["kind"], asked["agent"]
    conditions: list[Where] = [EVERYTHING if kind == "any" else Is("kind", "in", (kind,) if kind else _MAIN_KINDS)]
    if agent in ("owner", "task", "external"):
        conditions += [Is("session", "=", agent), Is("agent", "=", "")]
    elif agent:
        conditions.append(Is("agent", "=", agent))
    try:
        start = datetime.combine(date.fromisoformat(asked["day"]), time(), zone)
        conditions += [Is("at", ">=", start), Is("at", "<", start + timedelta(days=1))]
    except (ValueError, OverflowError):  # no day: every day
        pass
    return both(*conditions)


Piece = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a difference in pieces, each "del", "ins" or "" and its words; a place has the words alone."""

    pieces: tuple[Piece, ...]
    is_place: bool = False

    @property
    def kind(self) -> str:
        """ "del" or "ins" for a line that is wholly so, "both" for one that is so in part, else ""."""
        kinds = {kind for kind, text in self.pieces if text.strip()}
        return next(iter(kinds)) if len(kinds) == 1 else "both" if kinds else ""


@dataclass(frozen=True, slots=True)
class Difference:
    """The first lines of a difference; `is_cut` where lines, or ends of long ones, are left out."""

    lines: tuple[Line, ...]
    is_cut: bool


def difference_of(unified: str) -> Difference:
    """What a unified diff says, with the words that changed within a line."""
    given = [line.rstrip("\r") for line in unified.split("\n") if line and line[0] != "\\"]
    shown = [line[:_LONGEST_LINE] for line in given[:_MOST_LINES]]
    lines = list(_placed(shown))
    found: tuple[Line, ...] = ()
    with suppress(GitFailed):
        found = tuple(_by_words(lines)) if lines else ()
    # What git finds alike may differ in what was cut off.
    found = found or tuple(map(_line, lines))
    return Difference(found, shown != given)


def _placed(lines: list[str]) -> Iterator[str]:
    """The lines of a unified diff, with a gap for what each heading says: which of several files, or where in it."""
    files = {
        at: old[4:]
        for at, (old, new) in enumerate(pairwise(lines))
        if old.startswith("--- ") and new == f"+++ {old[4:]}"
    }
    for at, line in enumerate(lines):
        hunk = _HUNK.match(line)
        if at in files and len(files) > 1:
            yield f"{_GAP}{files[at]}"
        elif at not in files and at - 1 not in files:
            yield f"{_GAP}line {hunk[1]}" if hunk else line


def _line(line: str) -> Line:
    return Line(((_SIGNS.get(line[0], ""), line[1:]),), is_place=line.startswith(_GAP))


def _by_words(lines: list[str]) -> Iterator[Line]:
    """Raises GitFailed."""
    old, new = ("".join(f"{_own(line)}\n" for line in lines if line[0] != other) for other in "+-")
    with TemporaryDirectory(prefix="notebook-sync-") as folder:
        for name, text in (("old", old), ("new", new)):
            (Path(folder) / name).write_text(text, newline="")
        asked = ("diff", "--no-index", "--text", f"-U{len(lines)}", "--word-diff=porcelain", "--", "old", "new")
        said = run_git(Path(folder), *asked, fine=(0, 1), seconds=_SECONDS).decode(errors="replace")
    pieces: list[Piece] = []
    for each in said.partition("\n@@")[2].partition("\n")[2].split("\n"):
        if each == "~":
            is_place = bool(pieces) and pieces[0][1].startswith(_GAP)
            yield Line(tuple((kind, text.lstrip(_GAP)) for kind, text in pieces) or (("", ""),), is_place)
            pieces = []
        elif each:
            pieces.append((_SIGNS.get(each[0], ""), each[1:]))


def _own(line: str) -> str:
    return line if line.startswith(_GAP) else line[1:]
