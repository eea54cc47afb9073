"""Looking after the notebook in words, for people at a terminal. Pure; control characters are shown, not sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from notebook_sync.errors import BackendDown
from notebook_sync.surfaces.cli.text.archive import of_export
from notebook_sync.surfaces.cli.text.notebook import counts, of_report, of_settings, of_status, of_verdict, safe
from notebook_sync.surfaces.cli.text.rendering import Rendering, Told
from notebook_sync.surfaces.cli.text.rows import aligned

_DOWN = BackendDown.exit_code


def _event(event: Told) -> str:
    """When, what, who, and the fields of its kind."""
    who = f"{event.get('session', '')}{':' + event['agent'] if event.get('agent') else ''}"
    told = " ".join(f"{name}={_quoted(value)}" for name, value in event.items() if name not in _OWN and value)
    return safe(f"{event.get('at', '')}  {event.get('kind', ''):<12}  {who}  {told}".rstrip())


_OWN = ("id", "at", "kind", "session", "agent", "digest")


def _quoted(value: object) -> str:
    return repr(str(value)) if " " in str(value) else str(value)


def _not_synced(report: Told) -> Iterator[str]:
    if report.get("refs_trouble"):
        yield f"the mirror is up to date, the refs are not: {report['refs_trouble']}"
    if report.get("facts_trouble"):
        yield f"the mirror is up to date, what is known of facts is not: {report['facts_trouble']}"
    embedded = report.get("embedded", {"trouble": "", "failed": 0})
    if embedded["trouble"]:
        yield f"embeddings are missing, and notes are found by their words: {embedded['trouble']}"
    if embedded["failed"]:
        yield f"no embeddings can be made of {counts(embedded['failed'], 'note')}"


_SYNC = Rendering(
    lambda told, _: of_report(told),
    _not_synced,
    lambda told: _DOWN if told.get("refs_trouble") or told.get("facts_trouble") else bool(told["failed"]),
)
# A token or a link is alone on its line, so that a script can take it.
_TOKEN = Rendering(lambda told, _: str(told["token"]))

ADMIN: Mapping[str, Rendering] = {
    "sync": _SYNC,
    "rebuild": _SYNC,
    "verify": Rendering(
        lambda told, shown: of_verdict(told, shown.program), exit_code=lambda told: not told["consistent"]
    ),
    "status": Rendering(
        lambda told, shown: of_status(told, shown.program),
        exit_code=lambda told: 0 if told["mirror"]["ok"] and told["refs"]["ok"] else _DOWN,
    ),
    "config": Rendering(lambda told, _: of_settings(told)),
    "export": Rendering(lambda told, _: of_export(told)),
    "events": Rendering(
        lambda told, _: "\n".join(map(_event, told["results"])), lambda told: filter(None, [told["degraded"]])
    ),
    "token list": Rendering(
        lambda told, shown: aligned(
            [(one["name"], one["session"], one["created_at"]) for one in told["results"]], shown.width
        )
    ),
    "token add": _TOKEN,
    "token show": _TOKEN,
    "token link": Rendering(lambda told, _: str(told["link"])),
    "token revoke": Rendering(lambda told, _: f"the token of {told['name']} is revoked"),
}
