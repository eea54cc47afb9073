"""The template of a memory, `[DECISION] title` with CONTEXT, REASONING, OUTCOME and TAGS: what a text tells. Pure.

Nothing a text says is lost on the way: what stands in no part goes with the first, and what stands in code is no label.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from notebook_sync.errors import UsageError
from notebook_sync.files.excerpt import plain
from notebook_sync.files.fields import plain_tags
from notebook_sync.files.memories import KINDS, PARTS, kind_said
from prompt.outline import Outline

_TAGS = "tags"
_ALL = (*PARTS, _TAGS)

_NAMES = "|".join(_ALL)
# CONTEXT: …   **Context:** …   - Context: …   ## Context   ## CONTEXT: …
_LABEL = re.compile(
    rf"[ ]{{0,3}}(?:(?P<heading>\#{{1,6}})[ \t]+|[-*+][ \t]+)?[*_]{{0,3}}(?P<name>{_NAMES})[*_]{{0,3}}"
    r"[ \t]*(?P<colon>[:\uff1a])?[*_]{0,3}[ \t]*(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_KIND = re.compile(
    rf"[ ]{{0,3}}(?:\#{{1,6}}[ \t]+)?(?P<marks>[*_]{{0,3}})\[[ \t]*(?P<kind>{'|'.join(KINDS)})[ \t]*\][*_]{{0,3}}"
    r"[ \t]*[:\uff1a-]?[ \t]*(?P<title>.*)",
    re.IGNORECASE | re.DOTALL,
)
_PARTED = re.compile(r"[,;\n]")
_HEADING_MARK = re.compile(r"#{1,6}(?=\s|\Z)")
_LIST_MARK = re.compile(r"[ ]{0,3}[-*+][ \t]+")
# What is longer, or more, is prose in the wrong place.
LONGEST_TITLE, LONGEST_TAG, MOST_TAGS = 200, 100, 50
_AFTER = "after"


@dataclass(frozen=True, slots=True)
class Told:
    """What a memory says by the template, "" and () where a text leaves it out. `title` is one line; `kind` is one of
    KINDS; the parts are Markdown without blank lines around it. `opening` are the lines that gave kind and title, as
    they were written, "" where the parts hold them; `repeated` are labels that stand there more than once, of
    which all but the first are text."""

    kind: str = ""
    title: str = ""
    context: str = ""
    reasoning: str = ""
    outcome: str = ""
    tags: tuple[str, ...] = ()
    opening: str = field(default="", compare=False)
    repeated: tuple[str, ...] = field(default=(), compare=False)

    @property
    def missing(self) -> tuple[str, ...]:
        """What the template asks for and this leaves out; the title can be taken from the rest."""
        said = {"kind": self.kind, **self.parts, _TAGS: self.tags}
        return tuple(name for name, value in said.items() if not value)

    @property
    def parts(self) -> dict[str, str]:
        """The parts by name, in order."""
        return {"context": self.context, "reasoning": self.reasoning, "outcome": self.outcome}

    def named(self, title: str, kind: str) -> Told:
        """Of another title or kind, "" for the same; what it was called itself goes with its context, if it has one."""
        called = replace(self, title=title or self.title, kind=kind or self.kind)
        is_the_same = self.title in ("", called.title) and self.kind in ("", called.kind)
        return called if is_the_same else called.with_opening()

    def with_opening(self) -> Told:
        """With its opening in its context; a context that it lacks, that cannot make up for."""
        if not self.opening or not self.context:
            return self
        return replace(self, context=_joined(self.opening, self.context), opening="")


def read_memory(text: str) -> Told:
    """What `text` tells. Labels stand at the beginning of a line, in any case and order, also as headings; of one that
    stands there twice, the second is text of the part that it stands in."""
    kind = title = part = written = ""
    is_plain = True
    lines: dict[str, list[str]] = {"": []}
    repeated: dict[str, None] = {}
    for line, is_hidden in _lines(text.removeprefix("\ufeff").replace("\r\n", "\n")):
        label = None if is_hidden else _label(line)
        if label is not None and label[0] in lines:
            repeated[label[0]] = None
            label = None
        opening = None if is_hidden or kind or part else _opening(line)
        if label is not None:
            part, rest = label
            lines[part] = [rest]
        elif opening is not None:
            kind, title, rest, written, is_plain = opening
            lines[part] += [rest] if rest else []
        else:
            if part == _TAGS and not _goes_on_with_tags(lines[_TAGS], line):
                part = _AFTER
            lines.setdefault(part, []).append(line)
    heading, preamble, source = _parted(lines[""], has_title=bool(title))
    said = {name: "\n".join(found).strip("\n").rstrip() for name, found in lines.items()}
    tags = tags_in(said.get(_TAGS, ""))
    outcome = said.get("outcome", "")
    no_tags = f"TAGS: {said[_TAGS]}" if outcome and not tags and said.get(_TAGS, "").strip() else ""
    told = Told(
        kind,
        title or heading,
        _joined(preamble, said.get("context", "")),
        said.get("reasoning", ""),
        _joined(outcome, no_tags, said.get(_AFTER, "")),
        tags,
        _joined(source, written),
        tuple(repeated),
    )
    return told if is_plain and _is_plain(heading, source) else told.with_opening()


def kind_named(kind: str) -> str:
    """The kind that a caller names, "" for none. Raises UsageError for one there is not."""
    found = kind_said(kind)
    if found is None and kind.strip(" []"):
        raise UsageError(f"there is no kind {kind!r} of memory; use one of {', '.join(KINDS)}")
    return found or ""


def tags_in(text: str) -> tuple[str, ...]:
    """The tags of a line or a list of them: parted by commas or lines, else by spaces where each has its #. None of
    what is too long or too much for tags."""
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    pieces = [_LIST_MARK.sub("", piece).strip(" \t\"'`") for piece in _PARTED.split(text)]
    if len(pieces) == 1 and pieces[0].count("#") > 1:
        pieces = pieces[0].split()
    tags = plain_tags(pieces)
    return tags if len(tags) <= MOST_TAGS and all(len(tag) <= LONGEST_TAG for tag in tags) else ()


def _lines(text: str) -> Iterable[tuple[str, bool]]:
    """Each line, and whether it stands in code or in a comment."""
    outline = Outline(text)
    hidden = (
        (outline.lines.start(block.first), block.end)
        for block in outline.root.walk()
        if block.type in ("fence", "code_block") or (block.type == "html_block" and block.content.startswith("<!--"))
    )
    start, end = next(hidden, (len(text), len(text)))
    at = 0
    for line in text.split("\n"):
        while at >= end and start < len(text):
            start, end = next(hidden, (len(text), len(text)))
        yield line, start <= at < end
        at += len(line) + 1


def _opening(line: str) -> tuple[str, str, str, str, bool] | None:
    """The kind and the title that a line gives, what it says that is too long for a title, the rest as it is
    written, and whether the title is all that it says."""
    found = _KIND.fullmatch(line)
    if found is None:
        return None
    said = found["title"].rstrip().removesuffix(found["marks"])
    kind, title = found["kind"].casefold(), _plain_title(said)
    if len(title) > LONGEST_TITLE:
        return kind, "", said, f"[{found['kind']}]", True
    return kind, title, "", line[found.start("marks") :].strip(), _is_plain(title, said)


def _label(line: str) -> tuple[str, str] | None:
    """The part that a line begins, and what it says of it."""
    found = _LABEL.fullmatch(line)
    if found is None:
        return None
    rest = _without_closing_marks(found["rest"]) if found["heading"] else found["rest"]
    if not found["colon"] and (rest or not found["heading"]):
        return None
    return found["name"].casefold(), rest


def _goes_on_with_tags(tags: Sequence[str], line: str) -> bool:
    """Whether a line below the label is one more of its tags, or parts them from their label."""
    is_first = not any(one.strip() for one in tags)
    return not line.strip() or is_first or _LIST_MARK.match(line) is not None


def _parted(preamble: Sequence[str], *, has_title: bool) -> tuple[str, str, str]:
    """The title that a heading above all parts gives, what else stands there, and the heading as it is written."""
    text = "\n".join(preamble).strip("\n")
    first = next(iter(Outline(text).sections), None)
    title = "" if first is None or first.level != 1 else first.title
    if first is None or has_title or not 0 < len(title) <= LONGEST_TITLE:
        return "", text.strip(), ""
    source = text[first.start : first.body].strip()
    mark = _HEADING_MARK.match(source)
    said = source[mark.end() :].strip() if mark else source.rpartition("\n")[0]
    return title, _joined(text[: first.start].strip(), text[first.body :].strip()), said


def _joined(*texts: str) -> str:
    return "\n\n".join(filter(None, texts))


def _plain_title(text: str) -> str:
    """One line, without marks."""
    return plain(_without_closing_marks(text))


def _is_plain(title: str, source: str) -> bool:
    """Whether a title leaves out nothing of what is written."""
    return title == " ".join(_without_closing_marks(source).split())


def _without_closing_marks(text: str) -> str:
    text = text.rstrip(" \t")
    less = text.rstrip("#")
    return less.rstrip(" \t") if not less or less[-1] in " \t" else text
