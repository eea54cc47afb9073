"""What a text says of a memory by the template, and the text that a memory's file gets. Pure.

The template is `[DECISION] title` with CONTEXT, REASONING, OUTCOME and TAGS. Nothing that a text says is lost: what is
in no part goes with one, a label in code is text, and no text can look like another part of the file, or end its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from notebook_sync.files.fields import KINDS
from notebook_sync.files.frontmatter import storable
from notebook_sync.files.page import plain, shorten
from notebook_sync.files.parse import PARTS
from notebook_sync.permissions import is_ignorable
from prompt.ends import closing_line
from prompt.outline import Outline, plain_text

# What a memory cannot do without to be structured, besides its kind.
NEEDED = ("context", "reasoning")
# What is longer, or more, is prose in the wrong place.
LONGEST_TITLE, LONGEST_TAG, MOST_TAGS = 200, 100, 50
_SHORT_TITLE = 80
_LEVEL, _DEEPEST = 2, 6  # of the headings of parts
_TAGS, _AFTER = "tags", "after"
# CONTEXT: …   **Context:** …   - Context: …   ## Context   ## CONTEXT: …
_LABEL = re.compile(
    rf"[ ]{{0,3}}(?:(?P<heading>\#{{1,6}})[ \t]+|[-*+][ \t]+)?[*_]{{0,3}}(?P<name>{'|'.join((*PARTS, _TAGS))})"
    r"[*_]{0,3}[ \t]*(?P<colon>[:\uff1a])?[*_]{0,3}[ \t]*(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_KIND = re.compile(
    rf"[ ]{{0,3}}(?:\#{{1,6}}[ \t]+)?(?P<marks>[*_]{{0,3}})\[[ \t]*(?P<kind>{'|'.join(KINDS)})[ \t]*\][*_]{{0,3}}"
    r"[ \t]*[:\uff1a-]?[ \t]*(?P<title>.*)",
    re.IGNORECASE | re.DOTALL,
)
_HEADING_MARK = re.compile(r"#{1,6}(?=\s|\Z)")
_LIST_MARK = re.compile(r"[ ]{0,3}[-*+][ \t]+")
_ATX = re.compile(r"( {0,3})#{1,6}")
_MARK = re.compile(r"([\\`*_\[\]<>#!&~])")


class Template(NamedTuple):
    """What a text says by the template, "" and () for what it leaves out. `parts` has those of PARTS that say
    something, as Markdown. `opening` are the lines of kind and title as they were written, "" where nothing of them is
    left out; `repeated` are labels that come again, and are text then."""

    kind: str = ""
    title: str = ""
    parts: Mapping[str, str] = {}
    tags: tuple[str, ...] = ()
    opening: str = ""
    repeated: tuple[str, ...] = ()

    @property
    def missing(self) -> list[str]:
        """What the text needs to be structured, and does not say."""
        return [*(["kind"] if not self.kind else []), *(name for name in NEEDED if name not in self.parts)]

    def named(self, title: str, kind: str) -> Template:
        """With another title or kind, "" for the same; what it was called itself goes with its first part."""
        called = self._replace(title=title or self.title, kind=kind or self.kind)
        is_same = self.title in ("", called.title) and self.kind in ("", called.kind)
        return called if is_same else called.with_opening()

    def with_opening(self) -> Template:
        """With its opening in its first part."""
        return self._replace(parts=_joined_to(self.parts, self.opening, at=0), opening="")


def read_template(text: str) -> Template:
    """What `text` says. Labels are at the beginning of a line, in any case and order, also as headings."""
    kind = title = part = written = ""
    is_plain = True
    lines: dict[str, list[str]] = {"": []}
    repeated: dict[str, None] = {}
    for line, is_hidden in _lines(text.removeprefix("\ufeff").replace("\r\n", "\n")):
        label = None if is_hidden else _label(line)
        if label and label[0] in lines:
            repeated[label[0]] = None
            label = None
        opening = None if is_hidden or kind or part else _KIND.fullmatch(line)
        if label:
            part, rest = label
            lines[part] = [rest]
        elif opening:
            said = opening["title"].rstrip().removesuffix(opening["marks"])
            kind, title = opening["kind"].casefold(), plain(_without_closing_marks(said))
            written, is_plain = line[opening.start("marks") :].strip(), _is_plain(title, said)
            if len(title) > LONGEST_TITLE:
                title, written, is_plain = "", f"[{opening['kind']}]", True
                lines[part].append(said)
        else:
            if part == _TAGS and not _continues_tags(lines[_TAGS], line):
                part = _AFTER
            lines.setdefault(part, []).append(line)
    heading, preamble, source = _split_heading(lines[""], has_title=bool(title))
    said_by = {name: "\n".join(found).strip("\n").rstrip() for name, found in lines.items()}
    tags = tags_in(said_by.get(_TAGS, ""))
    parts = _joined_to({name: said_by[name] for name in PARTS if said_by.get(name)}, preamble, at=0)
    no_tags = f"TAGS: {said_by[_TAGS]}" if said_by.get(_TAGS) and not tags else ""
    parts = _joined_to(parts, _joined(no_tags, said_by.get(_AFTER, "")), at=-1)
    read = Template(kind, title or heading, parts, tags, _joined(source, written), tuple(repeated))
    return read if is_plain and _is_plain(heading, source) else read.with_opening()


def tags_in(text: str) -> tuple[str, ...]:
    """The tags of a line or a list, between commas or lines, or spaces where each has its #. None of what is too long
    or too much for tags."""
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    pieces = [_LIST_MARK.sub("", piece).strip(" \t\"'`") for piece in re.split(r"[,;\n]", text)]
    if len(pieces) == 1 and pieces[0].count("#") > 1:
        pieces = pieces[0].split()
    tags = plain_tags(pieces)
    return tags if len(tags) <= MOST_TAGS and all(len(tag) <= LONGEST_TAG for tag in tags) else ()


def plain_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Tags, each once, without their # and on one line."""
    return tuple(dict.fromkeys(filter(None, (" ".join(storable(tag).lstrip("# ").split()) for tag in tags))))


# ---- the file


def body_of(title: str, parts: Mapping[str, str], original: str = "") -> str:
    """The Markdown of a memory with its parts; below a rule, in a fence, the text that they were made of."""
    sections = "".join(f"\n## {name.capitalize()}\n\n{contained(text)}\n" for name, text in parts.items())
    below = f"\n---\n\n{fenced(original)}" if original else ""
    heading = title if plain_text(f"# {title}") == title else _MARK.sub(r"\\\1", title)
    return f"# {heading}\n{sections}{below}"


def reads_as_meant(title: str, parts: Mapping[str, str], original: str = "") -> bool:
    """Whether the Markdown of a memory has its parts where they are meant, and no more of them."""
    headings = [each.title for each in Outline(body_of(title, parts, original)).sections if each.level <= _LEVEL]
    return headings[1:] == [name.capitalize() for name in parts]


def contained(text: str) -> str:
    """A part's text so that nothing in it ends the part: its headings are below the part's own, what it opens is
    closed."""
    text = storable(text).replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    sections = Outline(text).sections
    deeper = max(_LEVEL + 1 - min((each.level for each in sections), default=_DEEPEST), 0)
    pieces, done = [], 0
    for each in sections:
        pieces += [text[done : each.start], _heading(text[each.start : each.body], min(each.level + deeper, _DEEPEST))]
        done = each.body
    text = "".join(pieces) + text[done:]
    closing = closing_line(text)
    return f"{text}\n{closing}" if closing else text


def fenced(text: str) -> str:
    """The text to the character in a code block that nothing in it ends, on lines of its own."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}{'' if text.endswith(chr(10)) else chr(10)}{fence}\n"


def title_of(read: Template, text: str) -> str:
    """The title of a memory: its own, else its first heading, else the beginning of what it says."""
    heading = next((each.title for each in Outline(text).sections if each.level == 1 and each.title), "")
    said = read.title or heading or plain_text(next(iter(read.parts.values()), text)) or " ".join(text.split())
    limit = LONGEST_TITLE if read.title else _SHORT_TITLE
    return plain_title(shorten(said[: limit * 4], limit)) or "Memory"


def plain_title(text: str) -> str:
    """One line of what can be seen, in the order it is written; "" where there is nothing."""
    seen = (each for each in text if each.isspace() or (each.isprintable() and not is_ignorable(each)))
    return storable(" ".join("".join(seen).split()))


# ---- helpers


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it is in code or in a comment."""
    outline = Outline(text)
    hidden = [
        (outline.lines.start(block.first), block.end)
        for block in outline.root.walk()
        if block.type in ("fence", "code_block") or (block.type == "html_block" and block.content.startswith("<!--"))
    ]
    hidden.reverse()
    at = 0
    for line in text.split("\n"):
        while hidden and at >= hidden[-1][1]:
            hidden.pop()
        yield line, bool(hidden) and hidden[-1][0] <= at
        at += len(line) + 1


def _label(line: str) -> tuple[str, str] | None:
    """The part that a line begins, and what it says of it."""
    found = _LABEL.fullmatch(line)
    if found is None:
        return None
    rest = _without_closing_marks(found["rest"]) if found["heading"] else found["rest"]
    is_label = found["colon"] or (found["heading"] and not rest)
    return (found["name"].casefold(), rest) if is_label else None


def _continues_tags(tags: Sequence[str], line: str) -> bool:
    """Whether a line below the label is one more of its tags, or separates them from their label."""
    return not line.strip() or not any(each.strip() for each in tags) or _LIST_MARK.match(line) is not None


def _split_heading(preamble: Sequence[str], *, has_title: bool) -> tuple[str, str, str]:
    """The title that a heading above all parts gives, what else is there, and the heading as it is written."""
    text = "\n".join(preamble).strip("\n")
    first = next(iter(Outline(text).sections), None)
    if first is None or has_title or first.level != 1 or not 0 < len(first.title) <= LONGEST_TITLE:
        return "", text.strip(), ""
    source = text[first.start : first.body].strip()
    mark = _HEADING_MARK.match(source)
    said = source[mark.end() :].strip() if mark else source.rpartition("\n")[0]
    return first.title, _joined(text[: first.start].strip(), text[first.body :].strip()), said


def _joined(*texts: str) -> str:
    return "\n\n".join(filter(None, texts))


def _joined_to(parts: Mapping[str, str], text: str, *, at: int) -> Mapping[str, str]:
    """The parts with more text above the first (`at` 0) or below the last (-1)."""
    if not parts or not text:
        return parts
    name = list(parts)[at]
    return {**parts, name: _joined(parts[name], text) if at else _joined(text, parts[name])}


def _is_plain(title: str, source: str) -> bool:
    """Whether a title leaves out nothing of what is written."""
    return title == " ".join(_without_closing_marks(source).split())


def _without_closing_marks(text: str) -> str:
    text = text.rstrip(" \t")
    less = text.rstrip("#")
    return less.rstrip(" \t") if not less or less[-1] in " \t" else text


def _heading(source: str, level: int) -> str:
    """A heading of another level; one that is underlined becomes one with marks."""
    atx = _ATX.match(source)
    if atx:
        return f"{atx[1]}{'#' * level}{source[atx.end() :]}"
    end = "\n" if source.endswith("\n") else ""
    return f"{'#' * level} {' '.join(source.rstrip().split(chr(10))[:-1])}{end}"
