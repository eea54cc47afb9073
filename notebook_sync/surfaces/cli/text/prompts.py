"""The prompt and its rules in words, for people at a terminal. Pure: values in, text out; control characters are shown,
not sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from notebook_sync.surfaces.cli.text.editing import of_diff
from notebook_sync.surfaces.cli.text.notebook import moment_of, safe
from notebook_sync.surfaces.cli.text.rendering import Rendering, Shown
from notebook_sync.surfaces.remedies import remedy_of

Told = Mapping[str, Any]
_RULES = "runtime/external-communications.md"


def of_findings(found: Told, _: Shown | None = None) -> str:
    """A line for each finding."""
    return (
        "\n".join(
            safe(f"{one['path']}{':' + str(one['line']) if one['line'] else ''}: {one['severity']}: {one['message']}")
            for one in found["results"]
        )
        or "nothing to point at"
    )


def of_explanation(explanation: Told, _: Shown | None = None) -> str:
    """A line for each place and one for what to do about it."""
    if not explanation["found"]:
        return "nowhere in the notebook: look for fewer words, as they stand in the file"
    lines = [_place(one) for one in explanation["found"]]
    lines += [f"{one['reason']}: {remedy_of(one)}" for one in explanation["found"] if one["reason"]]
    return "\n".join(map(safe, dict.fromkeys(lines)))


def _place(one: Told) -> str:
    reach = "in the prompt" if one["in_prompt"] else "not in the prompt"
    reason = f": {one['reason']}" if one["reason"] else ""
    section = f" (section {one['section']})" if one["section"] else ""
    version = "; an earlier version is shown, for the file is not used as it is now" if one["last_good"] else ""
    return f"{one['path']}:{one['line']}: {reach}{reason}{section}{version}"


def of_reminders(found: Told, shown: Shown) -> str:
    """A line for each reminder, and one for the lines that cannot be read."""
    if found["degraded"]:
        return safe(found["degraded"])
    lines = [safe(f"{one['state']:<8}  {_when(one):<16}  {one['text']}{_every(one)}") for one in found["results"]]
    lines.append(f"{'' if lines else 'no reminders; '}times are those of {shown.zone}")
    if unread := found["unread"]:
        what = "line is not read as a reminder" if len(unread) == 1 else "lines are not read as reminders"
        lines.append(safe(f"{len(unread):,} {what}: {', '.join(map(str, unread))}; see: {shown.program} check"))
    return "\n".join(lines)


def _when(one: Told) -> str:
    return moment_of(one["when"]) if one["when"] else "-"


def _every(one: Told) -> str:
    return f"  (every {one['every']})" if one["every"] else ""


def of_standing(standing: Told, _: Shown | None = None) -> str:
    """The rule that applies and why; then each that does not, and why not. Without an identity, all rules in force."""
    rule = standing["rule"]
    lines = [_rule(rule), f"  holds: {standing['reason']}"] if rule else [standing["reason"]]
    if rule and standing["unread"]:  # the doubt comes first, and the reason begins with it
        lines = [standing["reason"], _rule(rule)]
    for other in standing["others"]:
        lines += [_rule(other), f"  does not: {other['reason']}"]
    return "\n".join(map(safe, [*lines, *map(_rule, standing.get("results", ()))]))


def _rule(rule: Told) -> str:
    until = f" [until {rule['until']}]" if rule["until"] else ""
    identity = f" ({rule['identity']})" if rule["identity"] else ""
    return f"{_RULES}:{rule['line']}: {rule['name']}{identity}: {rule['action']}{until}"


def _waiting(found: Told, shown: Shown) -> str:
    return "\n".join(of_diff(one["diff"], colour=shown.colour) for one in found["results"])


def _trust(found: Told, _: Shown) -> str:
    lines = (f"{'trusted' if one['accepted'] else 'waiting'}  {one['path']}" for one in found["results"])
    return "\n".join(map(safe, lines)) or "nothing waits for trust"


PROMPTS: Mapping[str, Rendering] = {
    "prompt": Rendering(lambda found, _: found["text"].rstrip("\n"), is_quoted=True),
    "explain": Rendering(of_explanation, exit_code=lambda answer: not answer["found"]),
    "check": Rendering(of_findings, exit_code=lambda answer: any(i["severity"] == "error" for i in answer["results"])),
    "rules": Rendering(of_standing),
    "reminders": Rendering(of_reminders, lambda _: ()),
    "trust": Rendering(_trust, preview=_waiting, question="Trust these lines?"),
}
