"""Looking after the notebook in words, for people at a terminal. Pure; control characters are shown, not sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from notebook_sync.errors import BackendDown
from notebook_sync.surfaces.cli.text.archive import of_export
from notebook_sync.surfaces.cli.text.notebook import of_report, of_settings, of_status, of_verdict, safe
from notebook_sync.surfaces.cli.text.rendering import Rendering, Told, by_width
from notebook_sync.surfaces.cli.text.rows import aligned

_FAILED = 1
_DOWN = BackendDown.exit_code


def of_events(events: Told) -> str:
    """A line for each event."""
    return "\n".join(map(_event, events["results"]))


def _event(event: Told) -> str:
    """When, what, who, and the fields of its kind."""
    who = f"{event.get('session', '')}{':' + event['agent'] if event.get('agent') else ''}"
    told = " ".join(f"{name}={_value(value)}" for name, value in event.items() if name not in _OWN and value)
    return safe(f"{event.get('at', '')}  {event.get('kind', ''):<12}  {who}  {told}".rstrip())


_OWN = ("id", "at", "kind", "session", "agent", "digest")


def _value(value: object) -> str:
    text = str(value)
    return f"{text!r}" if " " in text else text


def _events_lost(events: Told) -> Iterator[str]:
    if events["degraded"]:
        yield events["degraded"]


def _not_synced(report: Told) -> Iterator[str]:
    if report.get("refs_trouble"):
        yield f"the mirror is up to date, the refs are not: {report['refs_trouble']}"
    if report.get("facts_trouble"):
        yield f"the mirror is up to date, what is known of facts is not: {report['facts_trouble']}"
    if trouble := report.get("embedded", {}).get("trouble"):
        yield f"embeddings are missing, and notes are found by their words: {trouble}"


def _code_of_sync(report: Told) -> int:
    return _DOWN if report.get("refs_trouble") or report.get("facts_trouble") else _FAILED * bool(report["failed"])


def _code_of_status(status: Told) -> int:
    return 0 if status["mirror"]["ok"] and status["refs"]["ok"] else _DOWN


def _tokens(tokens: Told, width: int | None) -> str:
    return aligned([(one["name"], one["session"], one["created_at"]) for one in tokens["results"]], width)


def _field(name: str) -> Rendering:
    """A token or a link is alone on its line, so that a script can take it."""
    return Rendering(lambda told, _: str(told[name]))


_SYNC = Rendering(lambda told, _: of_report(told), _not_synced, _code_of_sync)

ADMIN: Mapping[str, Rendering] = {
    "sync": _SYNC,
    "rebuild": _SYNC,
    "verify": Rendering(
        lambda told, shown: of_verdict(told, shown.program), exit_code=lambda told: _FAILED * (not told["consistent"])
    ),
    "status": Rendering(lambda told, shown: of_status(told, shown.program), exit_code=_code_of_status),
    "config": Rendering(lambda told, _: of_settings(told)),
    "export": Rendering(lambda told, _: of_export(told)),
    "events": Rendering(lambda told, _: of_events(told), _events_lost),
    "token list": by_width(_tokens),
    "token add": _field("token"),
    "token show": _field("token"),
    "token link": _field("link"),
    "token revoke": Rendering(lambda told, _: f"the token of {told['name']} is revoked"),
}
