"""What of a note's file stands in the text box of a form, and what the file is with another text in it. Pure.

A browser shows all line ends as one and sends them back as one: a line that is as it was keeps its own, to the byte.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from notebook_sync.errors import NoSuchNote
from notebook_sync.files.comparing import Steps, opcodes
from notebook_sync.files.edit_lines import lines_of
from notebook_sync.files.edit_places import page_of
from notebook_sync.files.frontmatter import read_frontmatter

BODY: Final = ""
WHOLE: Final = "whole"
_BOM = "\ufeff"
_ENDS = ("\n", "\r")
_ANY_END = re.compile(r"\r\n?|\n")


@dataclass(frozen=True, slots=True)
class Box:
    """The part `text` of a file, between what stands before and after it. `eol` is how the file ends its lines."""

    before: str
    text: str
    after: str
    eol: str

    @property
    def shown(self) -> str:
        """As a browser shows it."""
        return shown(self.text)

    def file_with(self, typed: str) -> str:
        """The file with what was typed in place of the text, which no line above or below is joined to."""
        text = with_ends_of(self.text, typed, self.eol)
        if text and self.before.strip(_BOM) and not self.before.endswith(_ENDS):
            text = self.eol + text
        if text and self.after and not text.endswith(_ENDS):
            text += self.eol
        return _joined((self.before, text, self.after))


def box_of(file: str, part: str, path: str = "") -> Box:
    """`part` is BODY for what stands below the frontmatter, WHOLE for all but a byte order mark, or # and the anchor of
    a section. Where the frontmatter cannot be read, there is no body but the whole. Raises NoSuchNote for a section
    that is not there."""
    found = _ANY_END.search(file)
    eol = found[0] if found else "\n"
    if part.startswith("#"):
        start, end = _section(file, part[1:], path)
    else:
        front = read_frontmatter(file)
        is_body = part == BODY and front.problem is None
        start, end = len(front.head) if is_body else len(file) - len(file.removeprefix(_BOM)), len(file)
    return Box(file[:start], file[start:end], file[end:], eol)


def _section(file: str, anchor: str, path: str) -> tuple[int, int]:
    found = page_of(file, path)
    for number, part in enumerate(found.parts):
        if part.section and part.anchor == anchor:
            last = found.parts[found.section(number)[-1]]
            return len(found.head) + part.start, len(found.head) + last.end
    raise NoSuchNote(f"{path} has no section #{anchor}; edit the whole note, or choose one of its sections")


def shown(text: str) -> str:
    """With line ends as a browser has them."""
    return _ANY_END.sub("\n", text)


def with_ends_of(base: str, typed: str, eol: str) -> str:
    """`typed`, whose lines end as a browser has it, with the line ends of `base`: a line that stands there has its own
    end, another that of the line it stands for, or of the one above. `eol` where none tells."""
    old, new = lines_of(base), lines_of(typed)
    if len({_end_of(line) for line in old} - {""}) <= 1:  # as in nearly every file
        return typed.replace("\n", next((_end_of(line) for line in old if _end_of(line)), eol))
    pieces: list[str] = []
    for tag, start, end, new_start, new_end in opcodes([shown(line) for line in old], new, Steps()):
        if tag == "equal":
            pieces += old[start:end]
            continue
        for offset, line in enumerate(new[new_start:new_end]):
            beside = min(start + offset, end - 1) if end > start else max(start - 1, 0)
            pieces.append(line.replace("\n", _end_of(old[beside]) or _end_of(old[max(beside - 1, 0)]) or eol))
    return _joined(pieces)


def _joined(pieces: Iterable[str]) -> str:
    """A carriage return and a line feed that come together by this would end one line instead of two."""
    text: list[str] = []
    for piece in pieces:
        if piece.startswith("\n") and text and text[-1].endswith("\r"):
            text[-1] += "\n"
        if piece:
            text.append(piece)
    return "".join(text)


def _end_of(line: str) -> str:
    return line[len(line.rstrip("\r\n")) :]
