"""Answers in words, for people at a terminal. Pure: values in, text out.

What a note says may come from anyone, so control characters are shown, not sent to the terminal; a note that is read
as a whole is printed as it is.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, assert_never

if TYPE_CHECKING:
    from notebook_sync.sync.watch import Event

_NAMED = 20
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def safe(line: str) -> str:
    """The text on one line, with what would steer a terminal shown as `\\xNN`."""
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), line)


def counts(number: int, singular: str, plural: str = "") -> str:
    """The number with its noun, in the plural for all but one."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def of_init(made: Mapping[str, Any]) -> str:
    """What was made, and what to do next, from `Initialized.as_dict`."""
    lines = [f"notebook in {made['root']}"]
    lines += [f"  created  {path}" for path in made["created"]]
    lines += [f"  kept     {path}" for path in made["kept"]]
    lines.append(f"  git      {_GIT[made['git']]}")
    if made["brain"] is not None:
        lines.append(f"  brain    {made['brain']['path']}: {made['brain']['change']}")
    lines.append(f"next: notebook-sync -C {shlex.quote(made['root'])} sync")
    return "\n".join(map(safe, lines))


_GIT = {
    "made": "repository made",
    "kept": "already in a repository",
    "missing": "git is not installed: no repository was made",
    "off": "no repository, as asked",
}


def of_report(report: Mapping[str, Any]) -> str:
    """The changes on one line, and the first of the files that failed, from a `SyncReport`."""
    told = _changes(report) or "nothing to do"
    lines = [f"{told}; {counts(report['unchanged'], 'note')} unchanged ({report['seconds']:.1f} s)"]
    failed = [f"{_at(one['path'], one['error'])}" for one in report["failed"]]
    return "\n".join([*lines, *first_of(failed, "failed")])


def _changes(report: Mapping[str, Any]) -> str:
    named = [f"{report[what]:,} {what}" for what in ("added", "updated", "moved", "deleted") if report[what]]
    if report["failed"]:
        named.append(f"{len(report['failed']):,} failed")
    return ", ".join(named)


_LINE = re.compile(r"line (\d+): ")


def _at(path: str, reason: str) -> str:
    """`path:line: reason`, which editors and terminals can open."""
    found = _LINE.match(reason)
    return safe(f"{path}:{found[1]}: {reason[found.end() :]}" if found else f"{path}: {reason}")


def first_of(lines: Sequence[str], what: str) -> Iterable[str]:
    """The first of many lines, and how many more there are."""
    yield from (f"  {line}" for line in lines[:_NAMED])
    if len(lines) > _NAMED:
        yield f"  … and {len(lines) - _NAMED:,} more {what}; --json lists all"


def event_as_dict(event: Event) -> dict[str, Any]:
    """The JSON object that `watch --json` prints for an event."""
    from notebook_sync.sync.watch import Batch, Ready, Recovered, ReminderDue, Trouble  # it brings watchfiles along

    match event:
        case Ready(events):
            return {"event": "ready", "file_events": events}
        case Batch(report):
            return {"event": "batch", **report.as_dict(), "paths": sorted(report.paths)}
        case Trouble(message):
            return {"event": "trouble", "message": message}
        case Recovered(message):
            return {"event": "recovered", "message": message}
        case ReminderDue(reminder):
            return {"event": "reminder_due", **reminder}
        case _:
            assert_never(event)


def of_event(event: Mapping[str, Any]) -> str:
    """One line for an event, as `event_as_dict` gives it."""
    kind = event["event"]
    if kind == "ready":
        return "ready" if event["file_events"] else "ready (no file events arrive here: changes are found by the timer)"
    if kind == "batch":
        failed = {one["path"]: f"{one['path']} ({one['error']})" for one in event["failed"]}
        named = [*(path for path in event["paths"] if path not in failed), *failed.values()]
        more = f" and {len(named) - _NAMED:,} more" if len(named) > _NAMED else ""
        return f"{_changes(event)}: {', '.join(map(safe, named[:_NAMED]))}{more}"
    if kind == "prompt":
        counted = f"prompt: {event['tokens_before']:,} → {event['tokens']:,} tokens"
        return "\n".join([counted, *(f"  {safe(line)}" for line in _passages(event))])
    if kind == "reminder_due":
        return safe(f"{event['state']}: {event['text']} ({moment_of(event['when'])})")
    return f"{kind}: {safe(event['message'])}"


def moment_of(timestamp: str) -> str:
    """A moment of ISO 8601 to the minute, in the timezone that it is given in."""
    return timestamp[:16].replace("T", " ")


def of_status(status: Mapping[str, Any], program: str) -> str:
    """A line for each part, from a `Status`. This notebook's commands begin with `program`."""
    mirror, refs, watcher = status["mirror"], status["refs"], status["watcher"]
    lines = [f"{status['name']} in {status['root']}"]
    if mirror["ok"]:
        kinds = [f"{number:,} {key.partition(':')[2]}" for key, number in mirror.items() if ":" in key and number]
        of_kinds = f" ({', '.join(kinds)})" if kinds else ""
        lines.append(f"mirror   {mirror['name']}: {counts(mirror['notes'], 'note')}{of_kinds}")
        lag = f", the oldest change {status['lag_seconds']:.0f} s ago" if status["lag_seconds"] else ""
        lines.append(f"behind   {counts(status['behind'], 'file')}{lag}")
    else:
        lines.append(f"mirror   {mirror['name']} is down: {mirror['error']}")
    if refs["ok"]:
        pending = "unknown" if refs["pending"] is None else f"{refs['pending']:,}"
        lines.append(f"refs     {refs['name']}: {pending} pending")
    else:
        lines.append(f"refs     {refs['name']} is down: {refs['error']}")
    lines += _of_meaning(status["search"])
    if watcher is None:
        lines.append(f"watcher  none; start one with: {program} watch")
    else:
        trouble = f"; trouble: {watcher['trouble']}" if watcher["trouble"] else ""
        lines.append(f"watcher  process {watcher['pid']} on {watcher['host']} since {watcher['since']}{trouble}")
    lines += [f"stale    {_at(one['path'], one['error'])}" for one in status["stale"][:_NAMED]]
    if len(status["stale"]) > _NAMED:
        lines.append(f"stale    … and {len(status['stale']) - _NAMED:,} more; --json lists all")
    for path, use in status["prompt"].items():
        cut = f", {counts(use['omitted'], 'part')} left out{_anchors(use['left_out'])}" if use["omitted"] else ""
        lines.append(f"prompt   {path}: {use['tokens']:,} of {use['cap']:,} tokens{cut}")
        lines += [f"problem  {path}: {use['problem']}"] * bool(use["problem"])
    lines += [f"waiting  {one['path']}:{one['line']}: {_changed(one)}" for one in status["waiting"]]
    for kind, use in status["sessions"].items():
        lines.append(f"prompt   {kind}: {use['tokens']:,} of {use['max_tokens']:,} tokens")
        lines += [f"edits    {kind}: {line}" for line in _since_commit(use["since_commit"])]
    return "\n".join(map(safe, lines))


def _changed(line: Mapping[str, Any]) -> str:
    return f"{'-' if line['removed'] else '+'} {line['text']}"


def _of_meaning(search: Mapping[str, Any] | None) -> Iterator[str]:
    if search is None:
        yield "meaning  off: notes are found by their words alone"
    elif search["behind"] is None:
        yield f"meaning  {search['model']}: {search['trouble']}"
    else:
        trouble = f"; trouble: {search['trouble']}" if search["trouble"] else ""
        facts = f", {counts(search['facts_behind'], 'fact')} behind" if search["facts_behind"] else ""
        if search["facts_refused"]:
            facts += f", {counts(search['facts_refused'], 'fact')} refused and found by words alone"
        told = f"{counts(search['embedded'], 'note')}, {search['behind']:,} behind{facts}{trouble}"
        yield f"meaning  {search['model']}: {told}"


def _anchors(anchors: Sequence[str]) -> str:
    named = list(dict.fromkeys(f"#{anchor}" for anchor in anchors if anchor))
    more = ", …" if len(named) > _NAMED else ""
    return f": {', '.join(named[:_NAMED])}{more}" if named else ""


def _since_commit(change: Mapping[str, Any] | None) -> Iterator[str]:
    if change is None or not change["stable_changes"]:
        return
    counted = f"{change['tokens_before']:,} → {change['tokens_after']:,} tokens since the last commit"
    yield f"{counted}; a prompt cache keeps the first {change['kept_prefix_tokens']:,}"
    yield from _passages(change)


def _passages(change: Mapping[str, Any]) -> Iterator[str]:
    """A line for each passage that the prompt no longer shows, or shows again, though its file has it as before."""
    for key, what in (("fell_out", "fell out"), ("came_back", "came back")):
        for one in change[key]:
            anchor = f"#{one['anchor']}" if one["anchor"] else ""
            yield f"{one['path']}{anchor} {what}: {counts(one['tokens'], 'token')}"


def of_verdict(verdict: Mapping[str, Any], program: str) -> str:
    """Whether all is in step, and the first of what is not, from a `Verdict`. This notebook's commands begin with
    `program`."""
    found = f"{counts(verdict['files'], 'file')}, {counts(verdict['mirror'], 'row')}, {counts(verdict['refs'], 'ref')}"
    if verdict["consistent"]:
        return f"consistent: {found}"
    differences = [
        safe(": ".join(filter(None, (one["path"], one["what"], one["detail"])))) for one in verdict["differences"]
    ]
    lines = first_of(differences, "differences")
    return "\n".join([f"not consistent: {found}", *lines, safe(f"repair it with: {program} verify --repair")])


def on_terminal(said: str) -> str:
    """A text of many lines, as `safe`; tabs stay, and a line may end as on Windows."""
    return "\n".join("\t".join(map(safe, line.split("\t"))) for line in said.replace("\r\n", "\n").split("\n"))


def of_checks(checks: Sequence[Mapping[str, Any]]) -> str:
    """A line for each check, and one more where there is a next step."""
    lines = []
    for check in checks:
        lines.append(safe(f"{'ok  ' if check['ok'] else 'FAIL'}  {check['check']}: {check['message']}"))
        if check["next"]:
            lines.append(f"      next: {safe(check['next'])}")
    return "\n".join(lines)


def of_settings(resolved: Mapping[str, Any]) -> str:
    """Lines as in notebook.toml, with where each comes from, from `admin.config`."""
    lines = [f"{one['key']} = {_toml(one['value'])}  # {one['source']}" for one in resolved["settings"]]
    return "\n".join([f"# {resolved['file'] or 'no notebook.toml: defaults'}", *map(safe, lines)])


def _toml(value: Any) -> str:
    """A setting as it is written in notebook.toml."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{key} = {_toml(one)}' for key, one in value.items())} }}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False)
