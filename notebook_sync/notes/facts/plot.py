"""A picture of how facts gain importance and fade: one SVG without a script, for light and dark pages. Pure.

What facts say is text in it and never markup, whatever they say.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from xml.sax.saxutils import escape

from notebook_sync.errors import UsageError
from notebook_sync.mirror.facts import Fact
from notebook_sync.notes.fact_life import effective, is_kept_by_pin
from notebook_sync.notes.facts.curves import Curve, Point, crossing, curve_of
from notebook_sync.notes.picture_text import short
from notebook_sync.settings import MemorySettings

MOST_DAYS = 3650
MOST_FACTS = 24

_WIDTH = 800
_LEFT, _RIGHT, _TOP, _HEIGHT = 52, 764, 88, 320
_BOTTOM = _TOP + _HEIGHT
_LEGEND_TOP, _ROW = _BOTTOM + 66, 22
_NOW_COLUMN = 640
_TEXT_UNITS = 74
_LABEL_GAP, _LABEL_WIDTH = 12, 15
_STEPS = (1, 2, 5, 7, 14, 30, 60, 90, 180, 365, 730, 1825)
_MOST_TICKS = 7
# Of the past, at least so much of the picture: a fact made today has a place to stand.
_LEAST_PAST = 0.08
# A light and a dark page's shade of each hue, tellable apart also for those who see few colours.
_HUES = (
    ("#1f6fb2", "#63b3ed"),
    ("#c2410c", "#fb923c"),
    ("#15803d", "#4ade80"),
    ("#a21caf", "#e879f9"),
    ("#8a6d00", "#facc15"),
    ("#0f766e", "#2dd4bf"),
    ("#b91c1c", "#f87171"),
    ("#4338ca", "#a5b4fc"),
    ("#9d174d", "#f9a8d4"),
    ("#3f6212", "#a3e635"),
    ("#7c4a1e", "#d6a77a"),
    ("#475569", "#cbd5e1"),
)


def plot(facts: Sequence[Fact], now: datetime, settings: MemorySettings, *, days: int = 90, limit: int = 12) -> str:
    """An SVG of the `limit` facts that count for most, `days` back and ahead: a solid line for what each counted for,
    a dashed one for how it will fade if nobody uses it. Raises UsageError for days and limits that make no picture."""
    if not 1 <= days <= MOST_DAYS:
        raise UsageError(f"a picture shows 1 to {MOST_DAYS:,} days, not {days:,}")
    if not 1 <= limit <= MOST_FACTS:
        raise UsageError(f"a picture shows 1 to {MOST_FACTS} facts, not {limit:,}")
    shown = sorted(facts, key=lambda fact: (-effective(fact, now), fact.note_id))[:limit]
    span = timedelta(days=days)
    eldest = min((fact.created_at for fact in shown), default=now)
    frame = _Frame(min(max(eldest, now - span), now - span * _LEAST_PAST), now, now + span)
    curves = [curve_of(fact, frame.since, now, frame.until) for fact in shown]
    return "\n".join([*_picture(curves, frame, settings, len(facts))]) + "\n"


@dataclass(frozen=True, slots=True)
class _Frame:
    since: datetime
    now: datetime
    until: datetime

    def x(self, at: datetime) -> float:
        return _LEFT + (_RIGHT - _LEFT) * ((at - self.since) / (self.until - self.since))

    def path(self, points: Sequence[Point]) -> str:
        """A path's data, without the points that lie on the line between others."""
        spots = [(f"{self.x(at):.1f}", f"{_y(value):.1f}") for at, value in points]
        kept = [
            spot for number, spot in enumerate(spots) if number in (0, len(spots) - 1) or not _is_between(spots, number)
        ]
        return f"M{' L'.join(f'{x},{y}' for x, y in kept)}"


def _picture(curves: Sequence[Curve], frame: _Frame, settings: MemorySettings, known: int) -> Iterator[str]:
    height = _LEGEND_TOP + (len(curves) + 1) * _ROW if curves else _BOTTOM + 40
    when = f"{frame.since.date()} to {frame.until.date()}"
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        'role="img" aria-labelledby="title desc" font-family="system-ui, -apple-system, \'Segoe UI\', sans-serif">'
    )
    yield '<title id="title">Importance of facts over time</title>'
    yield f'<desc id="desc">{escape(_described(curves, frame, when))}</desc>'
    yield f"<style>{_STYLE}</style>"
    yield f'<rect class="page" width="{_WIDTH}" height="{height}"/>'
    yield f'<text class="head" x="{_LEFT}" y="31" font-size="18" font-weight="600">Importance of facts</text>'
    yield f'<text class="soft" x="{_LEFT}" y="52" font-size="12.5">{escape(_subtitle(curves, when, known))}</text>'
    yield from _axes(frame)
    yield from _drawn(curves, frame)
    yield from _thresholds(settings)
    yield from _numbered(curves, frame)
    yield from _legend(curves, frame, settings)
    yield "</svg>"


def _described(curves: Sequence[Curve], frame: _Frame, when: str) -> str:
    """The picture for those who do not see it."""
    if not curves:
        return "There are no facts yet."
    told = "; ".join(
        f"{number}. {short(curve.fact.content, _TEXT_UNITS)}: {curve.now:.2f} now, "
        f"{curve.at_the_end:.2f} on {frame.until.date()}"
        for number, curve in enumerate(curves, 1)
    )
    return f"Effective importance from 0 to 1, {when}; today is {frame.now.date()}. {told}."


def _subtitle(curves: Sequence[Curve], when: str, known: int) -> str:
    if not curves:
        return "There are no facts yet. Add one with: notebook-sync fact add TEXT"
    which = f" · the {len(curves)} of {known:,} that count for most" if known > len(curves) else ""
    return f"{when}{which} · dashed: as they fade if nobody uses them"


def _axes(frame: _Frame) -> Iterator[str]:
    for tenths in range(0, 11, 2):
        y = _y(tenths / 10)
        kind = "grid" if tenths else "axis"
        yield f'<line class="{kind}" x1="{_LEFT}" y1="{y:.1f}" x2="{_RIGHT}" y2="{y:.1f}"/>'
        yield f'<text class="soft num" x="{_LEFT - 9}" y="{y + 4:.1f}" text-anchor="end">{tenths / 10:.1f}</text>'
    for day in _ticks(frame):
        x = frame.x(datetime.combine(day, datetime.min.time(), frame.now.tzinfo))
        yield f'<line class="axis" x1="{x:.1f}" y1="{_BOTTOM}" x2="{x:.1f}" y2="{_BOTTOM + 5}"/>'
        yield f'<text class="soft num" x="{x:.1f}" y="{_BOTTOM + 20}" text-anchor="middle">{day}</text>'
    x = frame.x(frame.now)
    yield f'<line class="today" x1="{x:.1f}" y1="{_TOP - 4}" x2="{x:.1f}" y2="{_BOTTOM}"/>'
    yield f'<text class="head num halo" x="{x:.1f}" y="{_TOP - 9}" text-anchor="middle">today</text>'


def _ticks(frame: _Frame) -> list[date]:
    """Days at even distances, today among them, that have room for their labels."""
    whole = (frame.until - frame.since) / timedelta(days=1)
    step = next((days for days in _STEPS if whole / days <= _MOST_TICKS), _STEPS[-1])
    today = frame.now.date()
    before = (today - frame.since.date()).days // step
    after = (frame.until.date() - today).days // step
    days = (today + timedelta(days=step * number) for number in range(-before, after + 1))
    begins = datetime.min.time()
    return [day for day in days if _LEFT <= frame.x(datetime.combine(day, begins, frame.now.tzinfo)) <= _RIGHT]


def _thresholds(settings: MemorySettings) -> Iterator[str]:
    verb = "moves to core.md" if settings.promote == "auto" else "is proposed for core.md"
    used = f"{settings.promote_accesses} uses and more"
    for level, kind, words in (
        (settings.promote_above, "up", f"above {settings.promote_above:g}: with {used}, {verb}"),
        (settings.archive_below, "down", f"below {settings.archive_below:g}: moves to archive.md"),
    ):
        y = _y(level)
        yield f'<line class="{kind}" x1="{_LEFT}" y1="{y:.1f}" x2="{_RIGHT}" y2="{y:.1f}"/>'
        yield (
            f'<text class="{kind}t halo" x="{_RIGHT - 4}" y="{y - 6:.1f}" font-size="11" text-anchor="end">'
            f"{escape(words)}</text>"
        )


def _drawn(curves: Sequence[Curve], frame: _Frame) -> Iterator[str]:
    for number, curve in reversed([*enumerate(curves, 1)]):
        yield f'<g class="{_hue(number)}"><title>{escape(short(curve.fact.content, _TEXT_UNITS))}</title>'
        yield f'<path class="line" d="{frame.path(curve.past)}"/>'
        yield f'<path class="line ahead" d="{frame.path(curve.ahead)}"/></g>'


def _numbered(curves: Sequence[Curve], frame: _Frame) -> Iterator[str]:
    """Each curve's number, where all of them are: today. Those of curves that are at one height stand side by side."""
    x = frame.x(frame.now)
    spots = _beside([_y(curve.now) for curve in curves])
    for number, (curve, (before, height)) in enumerate(zip(curves, spots, strict=True), 1):
        yield f'<g class="{_hue(number)}"><circle class="dot" cx="{x:.1f}" cy="{_y(curve.now):.1f}" r="3.4"/>'
        yield (
            f'<text class="mark num halo" x="{x + 8 + before * _LABEL_WIDTH:.1f}" y="{height + 4:.1f}">{number}'
            "</text></g>"
        )


def _legend(curves: Sequence[Curve], frame: _Frame, settings: MemorySettings) -> Iterator[str]:
    if curves:
        y = _LEGEND_TOP - _ROW + 4
        yield f'<text class="soft num" x="{_NOW_COLUMN}" y="{y}" text-anchor="end">today</text>'
        yield f'<text class="soft num" x="{_RIGHT}" y="{y}" text-anchor="end">{frame.until.date()}</text>'
    for number, curve in enumerate(curves, 1):
        y = _LEGEND_TOP + (number - 1) * _ROW
        ends = _ends(curve, settings)
        yield f'<g class="{_hue(number)}">'
        yield f'<text class="mark num" x="{_LEFT - 8}" y="{y + 4}" text-anchor="end">{number}</text>'
        yield f'<line class="line" x1="{_LEFT}" y1="{y}" x2="{_LEFT + 18}" y2="{y}"/></g>'
        says = escape(short(curve.fact.content, _TEXT_UNITS))
        yield f'<text class="head" x="{_LEFT + 28}" y="{y + 4}" font-size="12.5">{says}</text>'
        yield f'<text class="head num" x="{_NOW_COLUMN}" y="{y + 4}" text-anchor="end">{curve.now:.2f}</text>'
        yield f'<text class="soft num" x="{_RIGHT}" y="{y + 4}" text-anchor="end">{ends}</text>'


def _ends(curve: Curve, settings: MemorySettings) -> str:
    stays = curve.fact.is_core or is_kept_by_pin(curve.fact, settings)
    if curve.now < settings.archive_below and not stays:
        return "due for the archive"
    spent = None if stays else crossing(curve.ahead, settings.archive_below)
    return f"archived {spent.date()}" if spent else f"{curve.at_the_end:.2f}"


def _hue(number: int) -> str:
    return f"h{(number - 1) % len(_HUES)}"


def _y(value: float) -> float:
    return _BOTTOM - _HEIGHT * value


def _is_between(spots: Sequence[tuple[str, str]], number: int) -> bool:
    return spots[number - 1][1] == spots[number][1] == spots[number + 1][1]


def _beside(heights: Sequence[float]) -> list[tuple[int, float]]:
    """For the labels of what has these heights, how many stand before each in its row, and the row's height: less than
    a label's from that of what it names."""
    spots = [(0, 0.0)] * len(heights)
    row, before = -math.inf, 0
    for number in sorted(range(len(heights)), key=heights.__getitem__):
        before += 1
        if heights[number] - row >= _LABEL_GAP:
            row, before = heights[number], 0
        spots[number] = before, row
    return spots


def _rules(dark: bool) -> str:
    page, head, soft, grid = (
        ("#14181f", "#e6e9ee", "#9aa4b2", "#262d38") if dark else ("#fff", "#1c2430", "#5c6675", "#e9edf2")
    )
    up, down = ("#34d399", "#f59e0b") if dark else ("#047857", "#b45309")
    hues = "".join(
        f".h{number} .line{{stroke:{hue[dark]}}}.h{number} .dot,.h{number} .mark{{fill:{hue[dark]}}}"
        for number, hue in enumerate(_HUES)
    )
    return (
        f".page{{fill:{page}}}.halo{{stroke:{page}}}.dot{{stroke:{page}}}.head{{fill:{head}}}.soft{{fill:{soft}}}"
        f".grid{{stroke:{grid}}}.axis,.today{{stroke:{soft}}}.up{{stroke:{up}}}.upt{{fill:{up}}}"
        f".down{{stroke:{down}}}.downt{{fill:{down}}}{hues}"
    )


_STYLE = (
    ".num{font-size:11px;font-variant-numeric:tabular-nums}.mark{font-weight:600}"
    ".line{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}.ahead{stroke-dasharray:5 5;opacity:.85}"
    ".dot{stroke-width:1.5}.halo{stroke-width:4;paint-order:stroke;stroke-linejoin:round}"
    ".grid,.axis{stroke-width:1}.today{stroke-width:1;stroke-dasharray:2 3}"
    ".up,.down{stroke-width:1.2;stroke-dasharray:8 4}"
    f"{_rules(dark=False)}@media (prefers-color-scheme:dark){{{_rules(dark=True)}}}"
)
