"""The history of a note, and what agents did to all notes: versions and events, with what each changed and a way
back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any, Final

from starlette.responses import Response
from starlette.routing import BaseRoute

from notebook_sync.errors import NotebookError, NotFound
from notebook_sync.files.history import Version
from notebook_sync.files.unified import unified_diff
from notebook_sync.sessions import maker_of
from notebook_sync.store.rows import EVERYTHING, Is, Row, Where, both
from notebook_sync.surfaces.dashboard.diffs import Difference, difference_of
from notebook_sync.surfaces.dashboard.shell import Ask, Shell, address_with

ACTIVITY: Final = "/activity"
_PER_PAGE, _MOST_VERSIONS = 50, 200
_FILTERS = ("agent", "kind", "day")
# What is shown unless a kind is asked for.
_MAIN_KINDS: Final = ("edit", "refused")
# What an event may say, and the page shows.
_NO_FIELDS: Final = dict.fromkeys(("action", "operation", "section", "reason", "moved_from", "commit", "digest"), "")
_RECENT = timedelta(days=60)


def routes(shell: Shell) -> list[BaseRoute]:
    """The page of each note's history, and the one of all activity."""
    shell.add_link("Notebook", ACTIVITY, "Activity")
    past = Past(shell)
    return [
        shell.route("/history/{name:path}", past.history, "GET"),
        shell.route(ACTIVITY, past.activity, "GET"),
    ]


class Past:
    """What was done to the notes."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._core = shell.notebook.core

    def history(self, ask: Ask) -> Response:
        """The versions of a note that is there or was, and what one of them changed, or what changed since."""
        name = ask.path["name"]
        versions: Sequence[Version] = self._shell.call("history", {"id": name, "limit": str(_MOST_VERSIONS)}).results
        try:
            note = self._shell.call("read", {"id": name})
            path, digest = note.path, note.digest
        except NotebookError:  # a note that is gone still has its history
            path, digest = versions[0].path if versions else name, ""
        rev, since = ask.query.get("rev", ""), ask.query.get("since", "")
        difference: Difference | None = None
        if since:
            difference = difference_of(self._shell.call("diff", {"id": path, "since": since}).diff)
        elif versions:
            difference = self._change(versions, rev or versions[0].rev)
        return self._shell.page(
            ask,
            "history.html",
            path=path,
            digest=digest,
            versions=versions,
            rev=rev or (versions[0].rev if versions and not since else ""),
            since=since,
            difference=difference,
            is_all=len(versions) < _MOST_VERSIONS,
        )

    def activity(self, ask: Ask) -> Response:
        """Edits and refusals, the latest first; of the one that is `open`, what it changed."""
        asked = ask.asked(*_FILTERS)
        events = self._core.index.events
        where, after = _chosen(asked, self._core.settings.timezone), ask.query.get("after", "")
        page = both(where, Is("id", "<", after)) if after else where
        rows = events.find(page, order=("-id",), limit=_PER_PAGE + 1)
        agents = events.tuples(("agent", "session"), Is("at", ">", datetime.now(UTC) - _RECENT))
        more = address_with(ACTIVITY, asked, after=rows[_PER_PAGE - 1]["id"]) if len(rows) > _PER_PAGE else ""
        shown, opened = rows[:_PER_PAGE], ask.query.get("open", "")
        return self._shell.page(
            ask,
            "activity.html",
            asked=asked,
            days=self._by_day(shown, asked | ({"after": after} if after else {}), opened),
            agents=sorted({agent or session for agent, session in agents} | ({asked["agent"]} - {""})),
            kinds=sorted(events.distinct("kind").keys() | ({asked["kind"]} - {""})),
            more=more,
        )

    def _by_day(self, rows: Sequence[Row], asked: Mapping[str, str], opened: str) -> dict[str, list[dict[str, Any]]]:
        paths = {row["path"] for row in rows}
        digests = dict(self._core.index.documents.tuples(("path", "digest"), Is("path", "in", paths)))
        days: dict[str, list[dict[str, Any]]] = {}
        zone = self._core.settings.timezone
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
                "toggle": address_with(ACTIVITY, asked, **({} if is_open else {"open": row["id"]}))
                + f"#event-{row['id']}",
                "difference": self._change_by(row["path"], fields["commit"]) if is_open and is_edit else None,
            }
            days.setdefault(f"{row['at'].astimezone(zone):%Y-%m-%d}", []).append(shown)
        return days

    def _change_by(self, path: str, rev: str) -> Difference | None:
        """What a commit changed in a note; None where that is not known any more."""
        try:
            versions = self._shell.call("history", {"id": path, "limit": str(_MOST_VERSIONS)}).results
            return self._change(versions, rev)
        except NotebookError:
            return None

    def _change(self, versions: Sequence[Version], rev: str) -> Difference:
        """What a version changed. Raises NotFound."""
        at = next((at for at, each in enumerate(versions) if rev and each.rev.startswith(rev)), None)
        if at is None:
            raise NotFound("version", rev, next="see the history of the note")
        new = self._text(versions[at])
        old = self._text(versions[at + 1]) if at + 1 < len(versions) else ""
        return difference_of(unified_diff(old, new, versions[at].path))

    def _text(self, version: Version) -> str:
        return (self._core.history.text(version.rev, version.path) or b"").decode(errors="replace")


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
