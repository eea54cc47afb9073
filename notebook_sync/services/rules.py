"""The rules of runtime/external-communications.md: how they are written, and which one applies to somebody now.

    ## Permanent Rules
    - **Name** (identity): action [until 2026-02-25]

The same under `## Temporary Instructions`, and under a heading for each channel in `## Channel-Specific`. The date may
also come before the colon; a rule with a date needs no identity.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime

from notebook_sync.errors import UsageError
from notebook_sync.services.assembling import RULES, read_runtime
from notebook_sync.services.core import Core
from notebook_sync.services.grammar import IN_FORCE, Entry, Grammar, Malformed, blank, misplaced, plain_heading
from notebook_sync.sessions import Session
from prompt import Lines, visible
from prompt.dates import suggested_moment

SECTIONS = ("Permanent Rules", "Temporary Instructions", "Channel-Specific")

_KNOWN = tuple(plain_heading(section) for section in SECTIONS)
_EVERYONE = frozenset({"*", "everyone", "everybody", "anyone", "anybody", "all"})
# A name, an identity with at most one level of brackets in it, which a Markdown link has, and an action.
_RULE = re.compile(r"\*\*([^*]+)\*\*\s*(?:\(((?:[^()]|\([^()]*\))+)\)\s*)?:\s*(.+)")
_LINK = re.compile(r"\[([^\[\]]*)\]\([^()]*\)")
_ADDRESS = re.compile(r"<([^<>]+)>")
_SCHEME = re.compile(r"(?:mailto|tel|sms|sips?|xmpp|whatsapp|signal|telegram):(?://)?", re.IGNORECASE)
_PHONE = re.compile(r"(?:\+|00)?[\d\s().\-/]*\d[\d\s().\-/]*")
_NUMBER = re.compile(r"[+\d][\d\s().\-/]*")
_FEWEST_DIGITS = 5
_APPLIES, _LOWER = "applies", "ranked lower"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule. `channel` is "" for all channels, `identity` where the name alone says whose it is. `since` and `until`
    are the first and the last day (or moment) of a temporary one, as written if they are no dates, "" for no limit.

    `state`: in force, ended, not begun; of the rules about one identity: applies, ranked lower, other channel, other
    identity.
    """

    line: int
    section: str
    channel: str
    name: str
    identity: str
    action: str
    since: str
    until: str
    state: str

    def rank(self, wanted: Set[str], channel: str) -> tuple[int, bool, bool, bool, int]:
        """The greatest rank applies. The first number is how exactly it names somebody: 3 by the identity, 2 by a
        pattern such as *@ferry.example, 1 as one of all or of the channel, 0 not at all."""
        own, is_dated = identities_of(self), bool(self.since or self.until)
        patterns = (re.escape(each).replace(r"\*", ".*") for each in own if "*" in each and each != "*")
        if own & wanted:
            closeness = 3
        elif any(re.fullmatch(pattern, each) for pattern in patterns for each in wanted):
            closeness = 2
        else:
            closeness = int(bool(own & _EVERYONE or (channel and plain_identity(channel) in own)))
        is_temporary = is_dated or plain_heading(self.section) == _KNOWN[1]
        return closeness, is_temporary, is_dated, bool(self.channel), self.line


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The rule that applies to an identity, None for none, and why.

    `results` are the rules about the identity, the one that applies first; where no identity was asked for, all rules
    in force. `unread` are lines that name the identity and cannot be read as rules: one of them may be meant.
    """

    rule: Rule | None
    reason: str
    results: list[Rule]
    unread: list[int]
    problems: list[str]


def read_rule(entry: Entry, now: datetime) -> Rule | Malformed | None:
    """One entry as a rule; None for one that is no attempt at a rule."""
    text, dates, section, today = entry.text, entry.validity, plain_heading(entry.section), now.date()
    if dates:
        text = f"{text[: dates.start]} {text[dates.end :]}".strip()
    found = _RULE.fullmatch(text) if entry.in_list else None
    name, identity, action = (" ".join((part or "").split()) for part in found.groups()) if found else ("", "", "")
    name = name.strip(" :")
    if name and action and (identity or dates or name.casefold() in _EVERYONE):
        if section not in _KNOWN:
            return misplaced(entry, "rule", SECTIONS)
        limits = [dates.since, dates.until] if dates else ["", ""]
        if dates and not dates.problem:
            limits = [suggested_moment(each, today) if each else "" for each in limits]
        return Rule(
            line=entry.line,
            section=entry.section,
            channel=entry.channel if section == _KNOWN[2] else "",
            name=name,
            identity=identity,
            action=action,
            since=limits[0],
            until=limits[1],
            state=entry.state,
        )
    if section not in _KNOWN or entry.is_nested:
        return None
    reason = "is not a rule" if entry.in_list else "is not a list item at the start of its line, so it is not a rule"
    example = f"- **Name** (identity): action [until {suggested_moment('', today)}]"
    return Malformed(entry.line, f"{reason}; write: {example}")


GRAMMAR = Grammar(SECTIONS, read_rule)


def rule_for(core: Core, session: Session, identity: str, channel: str) -> Standing:
    """The rule for `identity` now; for "" all rules in force. Raises UsageError for other blank text, NotPermitted."""
    text, now, problems = read_runtime(core, session, RULES, "notebook_rules")
    rules, malformed, lines = GRAMMAR.contents(text, now, is_all=session.kind == "owner")
    if identity:
        unread = lines_naming(identity, text, lines, now)
        problems += [f"{RULES}:{line}: names {identity} and cannot be read as a rule; see check" for line in unread]
    else:
        unread = sorted({one.line for one in malformed})
        problems += [f"{RULES}:{one.line}: {one.message}" for one in malformed]
    return choose_rule(identity, rules, channel, unread=unread, problems=problems)


def choose_rule(
    identity: str, rules: Sequence[Rule], channel: str = "", *, unread: Sequence[int] = (), problems: Sequence[str] = ()
) -> Standing:
    """The rule for an identity, the others about it, and why; for "", all that hold now, with a channel without those
    of other channels. Raises UsageError for a blank identity."""
    if identity:
        rows, reason = _ranked(identity, rules, channel)
    else:
        rows = [each for each in rules if each.state == IN_FORCE and (not channel or _is_for(each, channel))]
        reason = f"{len(rows)} rule{'' if len(rows) == 1 else 's'} of {RULES} in force"
    lines = ", ".join(map(str, unread))
    lack = f", but line {lines} names it and cannot be read as a rule: ask the owner" if unread else ""
    return Standing(
        rule=rows[0] if rows and rows[0].state == _APPLIES else None,
        reason=reason or f"no rule of {RULES} applies to this identity{lack}",
        results=rows,
        unread=list(unread),
        problems=list(problems),
    )


def _ranked(identity: str, rules: Sequence[Rule], channel: str) -> tuple[list[Rule], str]:
    """The rules about an identity, the one that applies first, and why it does; "" for none that applies."""
    asked = plain_identity(identity)
    if not asked:
        raise UsageError("no identity is given", next="give a phone number, an e-mail address, a channel id or a name")
    wanted = _names_of(asked, rules)
    about = [each for each in rules if each.rank(wanted, channel)[0] and _is_for(each, channel)]
    holding = sorted((each for each in about if each.state == IN_FORCE), key=lambda each: each.rank(wanted, channel))
    rows = [replace(each, state=_LOWER if number else _APPLIES) for number, each in enumerate(reversed(holding))]
    rows += [each for each in about if each.state != IN_FORCE]
    for each in rules:
        is_named = bool(wanted & identities_of(each))
        if each not in about and (is_named or plain_identity(each.name) in wanted):
            rows.append(replace(each, state="other channel" if is_named else "other identity"))
    return rows, _why(holding[-1], wanted, channel) if holding else ""


def plain_identity(text: str) -> str:
    """An identity as it is compared: an e-mail address in lower case, a phone number as its digits."""
    plain = _LINK.sub(r"\1", unicodedata.normalize("NFKC", text)).strip()
    if address := _ADDRESS.search(plain):
        plain = address[1].strip()
    plain = _SCHEME.sub("", plain.strip("<>` "), count=1).partition("?")[0].strip()
    digits = re.sub(r"\D", "", plain)
    if len(digits) >= _FEWEST_DIGITS and _PHONE.fullmatch(plain):
        return digits if plain.startswith("+") else digits.removeprefix("00")
    return " ".join(plain.casefold().split())


def identities_of(rule: Rule) -> frozenset[str]:
    """Whom a rule is about, as identities are compared: its name where it has no identity."""
    named = re.split(r"[,;]", _LINK.sub(r"\1", rule.identity)) if rule.identity else [rule.name]
    return frozenset(plain_identity(each) for each in named)


def lines_naming(identity: str, text: str, read: Collection[int], now: datetime) -> list[int]:
    """The 1-based lines of what the prompt can show of a text that name an identity, but for those that are `read`."""
    wanted = plain_identity(identity)
    lines = Lines(blank(text, visible(text, now=now.replace(tzinfo=None)).gaps))
    shown = ((number + 1, lines.line(number)) for number in range(len(lines)) if number + 1 not in read)
    return [number for number, line in shown if not line.lstrip().startswith("#") and _mentions(line, wanted)]


def _mentions(line: str, wanted: str) -> bool:
    plain = " ".join(unicodedata.normalize("NFKC", line).casefold().split())
    if re.search(rf"(?<![\w.+-]){re.escape(wanted)}(?![\w-]|\.\w)", plain):
        return True
    return any(plain_identity(number[0]) == wanted for number in _NUMBER.finditer(plain))


def _names_of(asked: str, rules: Sequence[Rule]) -> frozenset[str]:
    """All that a rule may call this person by: the names that go with the identity, and the identities that go with the
    name where a rule has the name alone."""
    with_identity = [rule for rule in rules if rule.identity]
    wanted = {asked, *(plain_identity(one.name) for one in with_identity if asked in identities_of(one))}
    if any(not rule.identity and plain_identity(rule.name) == asked for rule in rules):
        same_name = (identities_of(one) for one in with_identity if plain_identity(one.name) == asked)
        wanted.update(*same_name)
    return frozenset(wanted)


def _is_for(rule: Rule, channel: str) -> bool:
    """Whether a rule is for all channels or for this one."""
    return not rule.channel or plain_identity(rule.channel) == plain_identity(channel)


def _why(rule: Rule, wanted: Set[str], channel: str) -> str:
    closeness, is_temporary, *_ = rule.rank(wanted, channel)
    whom = "names this identity" if closeness > 1 else "is for everyone"
    where, until = f" for {rule.channel}" if rule.channel else "", f" until {rule.until}" if rule.until else ""
    return f"line {rule.line} of {RULES} {whom}, {'temporary' if is_temporary else 'permanent'}{where}{until}"
