"""What the page of a day's stream shows: its entries by the hour, how they lie in the day, what narrows them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from itertools import groupby
from typing import Final, Literal
from urllib.parse import quote

from notebook_sync.errors import UsageError
from notebook_sync.files.provenance import EXTERNAL
from notebook_sync.moments import moment
from notebook_sync.operations.stream import Entry
from notebook_sync.surfaces.dashboard.addresses import address
from notebook_sync.surfaces.dashboard.notes.note_view import address_of

STREAM: Final = "/memory/stream"
PAGE: Final = 200
QUARTERS: Final = 96
USUAL: Final = 0.5
_TALLEST: Final = 20.0
_MOST_TAGS: Final = 12
_ONE_DAY: Final = timedelta(days=1)
Kind = Literal["logged", "notes"]
KINDS: Final[tuple[Kind, ...]] = ("logged", "notes")


@dataclass(frozen=True, slots=True)
class EntryRow:
    """One entry. Of a note, `title` and where its page is; of what was logged, neither."""

    id: str
    at: datetime
    kind: Kind
    what: str
    said: str
    title: str = ""
    path: str = ""
    href: str = ""
    tags: Sequence[str] = ()
    score: float = USUAL
    is_external: bool = False

    @property
    def is_weighed(self) -> bool:
        """Whether somebody said how much it matters."""
        return self.score != USUAL


@dataclass(frozen=True, slots=True)
class Hour:
    """The entries of one hour that are on this page, the latest first."""

    name: str
    rows: Sequence[EntryRow]


@dataclass(frozen=True, slots=True)
class Bar:
    """How much was told in a quarter of an hour: a bar of the axis, in its units, standing on what is below it."""

    kind: Kind
    x: int
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Chip:
    """What narrows the page, or goes to a place of it, and how many entries are there."""

    name: str
    href: str
    count: int
    is_on: bool = False


@dataclass(frozen=True, slots=True)
class DayView:
    """A day of the stream. `before` and `after` are the days beside it, "" where there is none; `earlier` and `later`
    are the pages beside this one."""

    day: str
    is_today: bool
    count: int
    hours: Sequence[Hour]
    bars: Sequence[Bar]
    now: float | None
    said: str
    before: str
    after: str
    earlier: str
    later: str
    by_hour: Sequence[Chip]
    by_kind: Sequence[Chip]
    by_tag: Sequence[Chip]
    is_narrowed: bool
    lost: str


def day_view(
    day: str,
    entries: Sequence[Entry],
    now: datetime,
    zone: tzinfo,
    *,
    kind: str = "",
    tag: str = "",
    until: int | None = None,
    lost: str = "",
) -> DayView:
    """A day with its entries, oldest first, narrowed to a kind and a tag; of more than a page, those before `until`."""
    told = sorted((_told(entry, zone) for entry in entries), key=lambda one: one.at)
    wanted = [one for one in told if kind in ("", one.kind) and (not tag or tag in one.entry.tags)]
    end = len(wanted) if until is None else min(max(until, 0), len(wanted))
    start = max(0, end - PAGE)
    today = now.astimezone(zone)
    asked = {"day": day, "kind": kind, "tag": tag}
    last = {one.at.hour: place for place, one in enumerate(wanted)}
    counts = Counter(one.at.hour for one in wanted)
    tags = Counter(name for one in told for name in one.entry.tags)
    return DayView(
        day=day,
        is_today=day == today.date().isoformat(),
        count=len(wanted),
        hours=_hours([row_of(one.entry, zone) for one in wanted[start:end]]),
        bars=_bars(wanted),
        now=_quarter(today, exact=True) if day == today.date().isoformat() else None,
        said=_said(counts),
        before=_beside(day, -_ONE_DAY),
        after=_beside(day, _ONE_DAY) if day < today.date().isoformat() else "",
        earlier=address(STREAM, asked, until=str(start)) if start else "",
        later=address(STREAM, asked, until=str(end + PAGE)) if end < len(wanted) else "",
        by_hour=[
            Chip(f"{hour:02}:00", f"{_page_with(last[hour], asked, start, end, len(wanted))}#h{hour:02}", counts[hour])
            for hour in sorted(counts)
        ],
        by_kind=[
            Chip(each, address(STREAM, asked, kind="" if each == kind else each), count, each == kind)
            for each in KINDS
            if (count := sum(one.kind == each for one in told))
        ],
        by_tag=[
            Chip(name, address(STREAM, asked, tag="" if name == tag else name), count, name == tag)
            for name, count in sorted(tags.items(), key=lambda one: (one[0] != tag, -one[1], one[0]))[:_MOST_TAGS]
        ],
        is_narrowed=bool(kind or tag),
        lost=lost,
    )


def row_of(entry: Entry, zone: tzinfo) -> EntryRow:
    """One entry, as the page shows it."""
    path = entry.path
    title = (entry.ref and entry.ref.title) or path or "a note" if path is not None else ""
    action = entry.action or "note"
    agent = f"agent:{entry.agent}" if entry.agent else ""
    who = [agent] if path is not None else dict.fromkeys([agent, entry.source])
    return EntryRow(
        id=entry.id,
        at=_local(entry.timestamp, zone),
        kind="logged" if path is None else "notes",
        what=", ".join(filter(None, [*([action] if path is not None else []), *who])),
        said=entry.content.removeprefix(f"[{title}]").strip() if path is not None else entry.content,
        title=title,
        path=path or "",
        href=(f"/history/{quote(path, errors='replace')}" if action == "deleted" else address_of(path)) if path else "",
        tags=entry.tags,
        score=entry.score,
        is_external=entry.provenance == EXTERNAL,
    )


def checked_day(text: str, now: datetime, zone: tzinfo) -> str:
    """The day that is named, today for "". Raises UsageError, also for one that is to come."""
    today = now.astimezone(zone).date()
    found = moment(text, zone, now).astimezone(zone).date() if text else today
    if found > today:
        raise UsageError(f"{found.isoformat()} is still to come; today is {today.isoformat()}")
    return found.isoformat()


@dataclass(frozen=True, slots=True)
class _Told:
    """What counts of an entry, shown or not: a day may have a hundred thousand of them, of which a page shows few."""

    at: datetime
    kind: Kind
    entry: Entry


def _told(entry: Entry, zone: tzinfo) -> _Told:
    return _Told(_local(entry.timestamp, zone), "logged" if entry.path is None else "notes", entry)


def _hours(rows: Sequence[EntryRow]) -> list[Hour]:
    latest = reversed(rows)
    return [Hour(name, list(group)) for name, group in groupby(latest, key=lambda row: f"{row.at:%H}:00")]


def _bars(told: Iterable[_Told]) -> list[Bar]:
    counts = Counter((_quarter(one.at), one.kind) for one in told)
    totals = Counter[float]()
    for (quarter, _), count in counts.items():
        totals[quarter] += count
    unit = _TALLEST / max(totals.values(), default=1)
    bars = []
    for quarter in sorted(totals):
        foot = _TALLEST
        for kind in KINDS:
            if count := counts[quarter, kind]:
                foot -= count * unit
                bars.append(Bar(kind, int(quarter), round(foot, 2), round(count * unit, 2)))
    return bars


def _quarter(moment: datetime, *, exact: bool = False) -> float:
    minutes = moment.hour * 60 + moment.minute
    return round(minutes / 15, 2) if exact else minutes // 15


def _said(counts: Mapping[int, int]) -> str:
    """The axis in words."""
    return "Entries by the hour: " + (", ".join(f"{hour:02}:00 {counts[hour]}" for hour in sorted(counts)) or "none")


def _page_with(place: int, asked: Mapping[str, str], start: int, end: int, count: int) -> str:
    """The page that has the entry at this place: this one, if it can be."""
    until = end if start <= place < end else place + 1
    return address(STREAM, asked, until="" if until == count else str(until))


def _beside(day: str, step: timedelta) -> str:
    try:
        return (date.fromisoformat(day) + step).isoformat()
    except OverflowError:
        return ""


def _local(timestamp: str, zone: tzinfo) -> datetime:
    moment = datetime.fromisoformat(timestamp)
    try:
        return moment.astimezone(zone)
    except OverflowError:  # other programs write there too: the last moment of all is later here
        return moment.astimezone(UTC)
