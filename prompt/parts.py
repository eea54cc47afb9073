"""One file as it stands in the prompt: what its session may see of it, in at most so many tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date
from hashlib import sha256
from sys import maxsize

from prompt.budget import Count
from prompt.comments import without_hidden
from prompt.gaps import Positions
from prompt.open_end import closing_line
from prompt.shown import omission_line
from prompt.trim import Cutting, Trimmed
from prompt.values import Expired, Gap, Omission, Part, PromptFile, Session, Source


@dataclass(frozen=True, slots=True)
class View:
    """All that one session may see of a file, uncut. `digest` is "" for a file that is missing.

    `line` stands for the file where there is no room for more; "" for an empty file, which needs none.
    """

    name: str
    path: str
    digest: str
    tokens_raw: int
    text: str
    tokens: int
    line: str
    line_tokens: int
    gaps: tuple[Gap, ...] = ()
    expired: tuple[Expired, ...] = ()
    pinned: frozenset[int] = frozenset()
    problem: str = ""
    is_text: bool = True


def view_of(rule: PromptFile, source: Source | None, session: Session, today: date, count: Count) -> View:
    """What `session` may see of the file that `rule` asks for; a line that says so where it is not to be had."""
    name = rule.heading or rule.path
    if source is None or source.content is None:
        return _said(name, rule.path, f"[{rule.path} is missing]", count, problem=source.problem if source else "")
    digest = sha256(source.content).hexdigest()
    text, problem = _decoded(source.content)
    raw = count(text)
    if source.external:
        line = f"[{rule.path} was not written by the owner and is not shown here: notebook_read {rule.path}]"
        problem = "what the owner did not write never stands among the rules"
        view = _said(name, rule.path, line, count, problem=source.problem or problem)
        return replace(view, digest=digest, tokens_raw=raw, gaps=(Gap(0, len(text), "quarantined"),))
    shown = without_hidden(text, keep_grammar=session == "owner", today=today)
    tokens = raw if shown.text == text else count(shown.text)
    line = omission_line(0, tokens, rule.path) if tokens else ""
    return View(
        name=name,
        path=rule.path,
        digest=digest,
        tokens_raw=raw,
        text=shown.text,
        tokens=tokens,
        line=line,
        line_tokens=count(line),
        gaps=shown.gaps,
        expired=shown.expired,
        pinned=shown.pinned,
        problem=source.problem or problem,
    )


def cutting_of(view: View, count: Count) -> Cutting:
    """`view`, ready to be cut to one cap after another."""
    return Cutting(view.text, view.tokens, count, path=view.path, pinned=view.pinned)


def part_of(view: View, cap: int, cut_to: Callable[[int], Trimmed]) -> Part:
    """What `view` shows within `cap` tokens, of which `cut_to` is asked where it shows less than all.

    Its closing line, if it needs one, is the layout's to count.
    """
    part = _uncut(view, cap)
    if view.tokens <= cap:
        return replace(part, closing=closing_line(view.text) if view.is_text else "")
    if not view.is_text:
        return replace(part, text="", tokens=0)
    cut = cut_to(cap)
    before = Positions(view.gaps).before
    gaps = [Gap(before(start), before(end - 1) + 1, "cap") for start, end in cut.cut if start < end]
    return replace(
        part,
        text=cut.text,
        tokens=cut.tokens,
        omitted=cut.omitted,
        gaps=(*view.gaps, *gaps),
        cut=cut.cut,
        closing=closing_line(cut.text),
    )


def line_of(view: View, *, fits: bool) -> Part:
    """Nothing of `view` but the line that says so, and not even that unless it `fits`."""
    part = replace(
        _uncut(view, view.line_tokens if fits else 0),
        text=view.line if fits else "",
        tokens=view.line_tokens if fits else 0,
    )
    if not view.is_text or not view.tokens:
        return part
    return replace(
        part,
        omitted=(Omission("", view.name, 0, view.tokens),),
        gaps=(*view.gaps, Gap(0, maxsize, "cap")),
        cut=((0, len(view.text)),),
    )


def _uncut(view: View, cap: int) -> Part:
    return Part(
        name=view.name,
        path=view.path,
        digest=view.digest,
        tokens_raw=view.tokens_raw,
        tokens=view.tokens,
        cap=cap,
        text=view.text,
        expired=view.expired,
        gaps=view.gaps,
        problem=view.problem,
        tokens_whole=view.tokens if view.is_text else 0,
        whole=view.text if view.is_text else "",
    )


def _said(name: str, path: str, line: str, count: Count, problem: str) -> View:
    """A view that is nothing but a line of the assembler's own."""
    tokens = count(line)
    return View(name, path, "", 0, line, tokens, line, tokens, problem=problem, is_text=False)


def _decoded(content: bytes) -> tuple[str, str]:
    try:
        return content.decode(), ""
    except UnicodeDecodeError as error:
        problem = f"not UTF-8 at byte {error.start}; what could not be read is shown as \ufffd"
        return content.decode(errors="replace"), problem
