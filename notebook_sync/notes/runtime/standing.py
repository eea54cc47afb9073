"""Which rule of runtime/external-communications.md holds for somebody today, and why that one. Pure.

A rule that names the identity comes before one for everyone; a temporary one before a permanent one; one of the channel
asked about before one for all channels; of what is left, the last in the file. A rule past its day never holds; one
whose day cannot be read never ends, for the prompt shows it on.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from notebook_sync.errors import UsageError
from notebook_sync.notes.runtime.rules import PATH, Malformed, Rule

_EVERYONE = frozenset({"*", "everyone", "everybody", "anyone", "anybody", "all"})
_TEMPORARY, _IN_CHANNEL = "temporary instructions", "channel-specific"
_SCHEME = re.compile(r"(?:mailto|tel|sms):", re.IGNORECASE)
_PHONE = re.compile(r"(?:\+|00)?[\d\s().\-/]*\d[\d\s().\-/]*")
_NUMBER = re.compile(r"[+\d][\d\s().\-/]*")
_FEWEST_DIGITS = 5


@dataclass(frozen=True, slots=True)
class Standing:
    """The rule that holds, None for none, and a sentence on why. `others` are about the same identity and do not hold
    here today: those that hold behind it, then those of other channels, then those that ended.

    `unread` are lines that name the identity and cannot be read as rules, and marks of a merge conflict: what was meant
    may stand there.
    """

    identity: str
    channel: str
    rule: Rule | None
    reason: str
    others: tuple[Other, ...] = ()
    unread: tuple[int, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The shape that `--json` prints."""
        return {
            "identity": self.identity,
            "channel": self.channel or None,
            "rule": _rule_dict(self.rule) if self.rule else None,
            "reason": self.reason,
            "others": [{**_rule_dict(other.rule), "reason": other.reason} for other in self.others],
            "unread": list(self.unread),
        }


@dataclass(frozen=True, slots=True)
class Other:
    """A rule that is not the one, and why not."""

    rule: Rule
    reason: str


def standing_of(
    identity: str,
    rules: Sequence[Rule],
    today: date,
    *,
    channel: str = "",
    malformed: Sequence[Malformed] = (),
    conflicts: Sequence[int] = (),
) -> Standing:
    """The rule for `identity`: a phone number, an e-mail address or a channel's id. `channel` is where it is asked;
    `conflicts` are the lines of the file with marks of a merge conflict.

    Raises UsageError where the identity is blank.
    """
    wanted, place = plain_identity(identity), plain_identity(channel)
    if not wanted:
        raise UsageError("say whose rule: a phone number, an e-mail address or a channel's id")
    unread = tuple(one.line for one in malformed if one.rule is None and _mentions(one.text, wanted))
    rules = [*rules, *(one.rule for one in malformed if one.rule is not None)]
    about = [rule for rule in rules if _concerns(rule, wanted, place)]
    holding = [rule for rule in about if rule.until is None or rule.until >= today]
    ordered = sorted(holding, key=lambda rule: (_rank(rule, wanted), rule.line), reverse=True)
    rule = ordered[0] if ordered else None
    past = [one for one in about if one not in holding]
    elsewhere = [one for one in rules if _is_for_channel(one) and one not in about and wanted in _identities(one)]
    others = (
        *(Other(one, _outranked(one, rule, wanted)) for one in ordered[1:] if rule),
        *(Other(one, f"it is for {one.channel} alone") for one in elsewhere),
        *(Other(one, f"it ended on {one.until}") for one in past),
    )
    named = [one for one in rules if plain_identity(one.name) == wanted and not (one.until and one.until < today)]
    meant = "" if rule and wanted in _identities(rule) else _meant(named)
    told = (_conflict(conflicts), _doubt(unread), _reason(rule, ordered[1:], past, wanted), meant)
    return Standing(identity, channel, rule, "; ".join(filter(None, told)), others, (*conflicts, *unread))


def plain_identity(text: str) -> str:
    """An identity as it is compared: an e-mail address without case, a phone number without what is between its
    digits and with `+` for `00`."""
    plain = _SCHEME.sub("", unicodedata.normalize("NFKC", text).strip().strip("<>"), count=1).strip()
    digits = re.sub(r"\D", "", plain)
    if len(digits) >= _FEWEST_DIGITS and _PHONE.fullmatch(plain):
        if plain.startswith("+"):
            return f"+{digits}"
        return f"+{digits[2:]}" if digits.startswith("00") else digits
    return " ".join(plain.casefold().split())


def _mentions(text: str, wanted: str) -> bool:
    """Whether a line that is no rule names this identity, as it is compared."""
    plain = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    if re.search(rf"(?<![\w.+-]){re.escape(wanted)}(?![\w-]|\.\w)", plain):
        return True
    return any(plain_identity(number[0]) == wanted for number in _NUMBER.finditer(plain))


def _doubt(unread: Sequence[int]) -> str:
    if not unread:
        return ""
    lines, seem = ("line", "seems") if len(unread) == 1 else ("lines", "seem")
    told = f"{lines} {', '.join(map(str, unread))} {seem} to be about this identity, but cannot be read as a rule"
    return f"{told}; mend that first, check says how"


def _conflict(lines: Sequence[int]) -> str:
    if not lines:
        return ""
    named = f"line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))}"
    return f"{PATH} has marks of a merge conflict in {named}, so no rule is sure; mend that first"


def _meant(named: Sequence[Rule]) -> str:
    """For a name that was asked for in place of an identity, what to ask for."""
    identities = " or ".join(dict.fromkeys(rule.identity for rule in named))
    return f"{named[0].name} is a name; ask for {identities}" if named else ""


def _concerns(rule: Rule, wanted: str, channel: str) -> bool:
    """Whether the rule speaks of this identity here, on whatever day."""
    if _is_for_channel(rule) and plain_identity(rule.channel) != channel:
        return False
    return wanted in _identities(rule) or _is_for_everyone(rule, channel)


def _is_for_everyone(rule: Rule, channel: str) -> bool:
    identities = set(_identities(rule))
    return bool(identities & _EVERYONE) or bool(channel and channel in identities)


def _is_for_channel(rule: Rule) -> bool:
    return rule.section.casefold() == _IN_CHANNEL


def _identities(rule: Rule) -> Iterator[str]:
    return (plain_identity(one) for one in re.split(r"[,;]", rule.identity))


def _is_temporary(rule: Rule) -> bool:
    return rule.until is not None or bool(rule.unread_until) or rule.section.casefold() == _TEMPORARY


def _rank(rule: Rule, wanted: str) -> tuple[bool, bool, bool]:
    return wanted in _identities(rule), _is_temporary(rule), _is_for_channel(rule)


def _outranked(one: Rule, by: Rule, wanted: str) -> str:
    """Why a rule that holds as well comes behind another."""
    line = f"line {by.line}"
    ranks = zip(_rank(one, wanted), _rank(by, wanted), strict=True)
    is_as_specific, is_as_temporary, is_as_local = (own == other for own, other in ranks)
    if not is_as_specific:
        return f"it is for everyone, and {line} names this identity"
    if not is_as_temporary:
        return f"it is permanent, and {line} is temporary"
    return f"it stands above {line}" if is_as_local else f"it is for every channel, and {line} for this one"


def _reason(rule: Rule | None, others: Sequence[Rule], past: Sequence[Rule], wanted: str) -> str:
    if rule is None:
        ended = f"; the rule in line {past[-1].line} ended on {past[-1].until}" if past else ""
        return f"no rule in {PATH} is about this identity{ended}"
    whom = "names this identity" if wanted in _identities(rule) else "is for everyone"
    kind = "temporary" if _is_temporary(rule) else "permanent"
    where = f" for {rule.channel}" if _is_for_channel(rule) else ""
    until = f" until {rule.until}" if rule.until else ""
    if rule.unread_until:
        until = f" but without end, for [until {rule.unread_until}] is no day"
    before = f"; it comes before line {', '.join(str(one.line) for one in others)}" if others else ""
    return f"line {rule.line} of {PATH} {whom}, {kind}{where}{until}{before}"


def _rule_dict(rule: Rule) -> dict[str, Any]:
    return {
        "line": rule.line,
        "section": rule.section,
        "channel": rule.channel or None,
        "name": rule.name,
        "identity": rule.identity,
        "action": rule.action,
        "until": rule.until.isoformat() if rule.until else None,
    }
