"""Which rule of runtime/external-communications.md holds for somebody now, and why that one. Pure.

A rule that names the identity comes before one for everyone; a temporary one before a permanent one, and one with a
date before one without; one of the requested channel before one for all channels; then the last in the file. A rule
without an identity is for the name, and for each identity that another rule gives this name. A rule that is past or has
not begun never holds; one whose date cannot be read never ends, as in the prompt.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence, Set
from datetime import datetime

from notebook_sync.errors import UsageError
from notebook_sync.notes.runtime.answers import OtherRule, RuleEntry, Standing
from notebook_sync.notes.runtime.entries import Malformed
from notebook_sync.notes.runtime.rules import PATH, Rule
from prompt.dates import suggested_moment

_EVERYONE = frozenset({"*", "everyone", "everybody", "anyone", "anybody", "all"})
_TEMPORARY, _IN_CHANNEL = "temporary instructions", "channel-specific"
_SCHEME = re.compile(r"(?:mailto|tel|sms):", re.IGNORECASE)
_PHONE = re.compile(r"(?:\+|00)?[\d\s().\-/]*\d[\d\s().\-/]*")
_NUMBER = re.compile(r"[+\d][\d\s().\-/]*")
_FEWEST_DIGITS = 5


def standing_of(
    identity: str,
    rules: Sequence[Rule],
    now: datetime,
    *,
    channel: str = "",
    malformed: Sequence[Malformed] = (),
    conflicts: Sequence[int] = (),
) -> Standing:
    """The rule for `identity`: a phone number, an e-mail address, a channel's id or a name. `channel` is where the
    message came in; `now` is local to the notebook; `conflicts` are the lines with marks of a merge conflict.

    Raises UsageError where the identity is blank.
    """
    asked, place = plain_identity(identity), plain_identity(channel)
    if not asked:
        raise UsageError("say whose rule: a phone number, an e-mail address, a channel's id or a name")
    wanted = _aliases(asked, rules)
    readable = {rule.line for rule in rules}
    unread = tuple(one.line for one in malformed if one.line not in readable and _mentions(one.text, asked))
    about = [rule for rule in rules if _concerns(rule, wanted, place)]
    holding = [rule for rule in about if rule.validity is None or rule.validity.holds_at(now)]
    ordered = sorted(holding, key=lambda rule: (_rank(rule, wanted), rule.line), reverse=True)
    rule = ordered[0] if ordered else None
    elsewhere = [one for one in rules if _is_for_channel(one) and one not in about and wanted & _identities(one)]
    others = (
        *((one, _outranked(one, rule, wanted)) for one in ordered[1:] if rule),
        *((one, f"it is for {one.channel} only") for one in elsewhere),
        *((one, f"it {_limit(one, now)}") for one in about if one not in holding),
    )
    named = [
        one for one in rules if plain_identity(one.name) == asked and not (one.validity and one.validity.is_past(now))
    ]
    meant = "" if rule and wanted & _identities(rule) else _meant(named)
    reasons = (_conflict(conflicts), _doubt(unread), _reason(rule, ordered[1:], about, wanted, now), meant)
    return Standing(
        identity,
        channel or None,
        RuleEntry(*_entry(rule)) if rule else None,
        "; ".join(filter(None, reasons)),
        [OtherRule(*_entry(other), reason) for other, reason in others],
        [*conflicts, *unread],
    )


def in_force(
    identity: str,
    rules: Sequence[Rule],
    now: datetime,
    *,
    channel: str = "",
    malformed: Sequence[Malformed] = (),
    conflicts: Sequence[int] = (),
) -> Standing:
    """All rules that hold now, in the order of the file; with a `channel`, without those of other channels."""
    place = plain_identity(channel)
    holding = [
        RuleEntry(*_entry(rule))
        for rule in rules
        if (rule.validity is None or rule.validity.holds_at(now))
        and not (place and _is_for_channel(rule) and plain_identity(rule.channel) != place)
    ]
    reason = f"{len(holding)} rule{'' if len(holding) == 1 else 's'} of {PATH} in force"
    unread = sorted({one.line for one in malformed} - {rule.line for rule in rules})
    reason = "; ".join(filter(None, (_conflict(conflicts), reason)))
    return Standing(identity, channel or None, None, reason, [], [*conflicts, *unread], holding)


def _aliases(asked: str, rules: Sequence[Rule]) -> set[str]:
    """All that a rule may call this person by: the names that go with the identity, or the identities that go with the
    name, where a rule has the name alone."""
    with_identity = [rule for rule in rules if rule.identity]
    wanted = {asked, *(plain_identity(one.name) for one in with_identity if asked in _identities(one))}
    if any(not rule.identity and plain_identity(rule.name) == asked for rule in rules):
        for one in with_identity:
            wanted |= _identities(one) if plain_identity(one.name) == asked else set()
    return wanted


def plain_identity(text: str) -> str:
    """An identity as it is compared: an e-mail address in lower case, a phone number as digits, with `+` for `00`."""
    plain = _SCHEME.sub("", unicodedata.normalize("NFKC", text).strip().strip("<>"), count=1).strip()
    digits = re.sub(r"\D", "", plain)
    if len(digits) >= _FEWEST_DIGITS and _PHONE.fullmatch(plain):
        if plain.startswith("+"):
            return f"+{digits}"
        return f"+{digits[2:]}" if digits.startswith("00") else digits
    return " ".join(plain.casefold().split())


def _mentions(text: str, wanted: str) -> bool:
    """Whether a line that is not a rule names this identity, as it is compared."""
    plain = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    if re.search(rf"(?<![\w.+-]){re.escape(wanted)}(?![\w-]|\.\w)", plain):
        return True
    return any(plain_identity(number[0]) == wanted for number in _NUMBER.finditer(plain))


def _doubt(unread: Sequence[int]) -> str:
    if not unread:
        return ""
    seem = "seems" if len(unread) == 1 else "seem"
    return f"{_lines(unread)} {seem} to be about this identity, but cannot be read as a rule; fix that first, see check"


def _conflict(lines: Sequence[int]) -> str:
    return (
        f"{PATH} has marks of a merge conflict in {_lines(lines)}, so no rule is certain; fix that first"
        if lines
        else ""
    )


def _lines(numbers: Sequence[int]) -> str:
    return f"line{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def _meant(named: Sequence[Rule]) -> str:
    """For a name that was given instead of an identity, the identity to ask for."""
    identities = " or ".join(dict.fromkeys(rule.identity for rule in named if rule.identity))
    return f"{named[0].name} is a name; ask for {identities}" if identities else ""


def _concerns(rule: Rule, wanted: Set[str], channel: str) -> bool:
    """Whether the rule is about this person here, at any time."""
    if _is_for_channel(rule) and plain_identity(rule.channel) != channel:
        return False
    identities = _identities(rule)
    return bool(identities & wanted or identities & _EVERYONE or (channel and channel in identities))


def _is_for_channel(rule: Rule) -> bool:
    return rule.section.casefold() == _IN_CHANNEL


def _identities(rule: Rule) -> set[str]:
    return (
        {plain_identity(one) for one in re.split(r"[,;]", rule.identity)}
        if rule.identity
        else {plain_identity(rule.name)}
    )


def _is_temporary(rule: Rule) -> bool:
    return rule.validity is not None or rule.section.casefold() == _TEMPORARY


def _rank(rule: Rule, wanted: Set[str]) -> tuple[bool, bool, bool, bool]:
    names_identity = bool(wanted & _identities(rule))
    return names_identity, _is_temporary(rule), rule.validity is not None, _is_for_channel(rule)


def _outranked(one: Rule, by: Rule, wanted: Set[str]) -> str:
    """Why a rule that holds as well ranks lower than another."""
    line = f"line {by.line}"
    ranks = zip(_rank(one, wanted), _rank(by, wanted), strict=True)
    is_as_specific, is_as_temporary, is_as_dated, is_as_local = (own == other for own, other in ranks)
    if not is_as_specific:
        return f"it is for everyone, and {line} names this identity"
    if not is_as_temporary:
        return f"it is permanent, and {line} is temporary"
    if not is_as_dated:
        return f"it has no date, and {line} has one"
    return f"it is above {line}" if is_as_local else f"it is for every channel, and {line} for this one"


def _limit(rule: Rule, now: datetime) -> str:
    """When a rule that does not hold did, or will."""
    if rule.validity and rule.validity.is_upcoming(now):
        return f"begins on {suggested_moment(rule.validity.since, now.date())}"
    return f"ended on {rule.until}"


def _reason(rule: Rule | None, others: Sequence[Rule], about: Sequence[Rule], wanted: Set[str], now: datetime) -> str:
    if rule is None:
        limit = f"; the rule in line {about[-1].line} {_limit(about[-1], now)}" if about else ""
        return f"no rule in {PATH} is about this identity{limit}"
    whom = "names this identity" if wanted & _identities(rule) else "is for everyone"
    kind = "temporary" if _is_temporary(rule) else "permanent"
    where = f" for {rule.channel}" if _is_for_channel(rule) else ""
    until = f" until {rule.until}" if rule.until else ""
    if rule.validity and rule.validity.problem:
        until = f" without end: {rule.validity.problem}"
    before = f"; it comes before {_lines([one.line for one in others])}" if others else ""
    return f"line {rule.line} of {PATH} {whom}, {kind}{where}{until}{before}"


def _entry(rule: Rule) -> tuple[int, str, str | None, str, str, str, str | None]:
    return rule.line, rule.section, rule.channel or None, rule.name, rule.identity, rule.action, rule.until or None
