"""What an edit that is not made yet would do, as a page shows it: the sections, the tokens, the prompt. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from notebook_sync.files.edit_places import page_of
from notebook_sync.files.parse import parse
from notebook_sync.notes.editing.effects import Edited

MOST_SECTIONS = 200
LONGEST_PREVIEW = 200_000


@dataclass(frozen=True, slots=True)
class Heading:
    """A section that can be edited by itself. `level` is 1 to 6."""

    text: str
    level: int
    anchor: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Outline:
    """The first sections of `count`, and what is wrong with the note."""

    headings: tuple[Heading, ...]
    count: int
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Effect:
    """What is lost and won. `share` is the tokens' part of the cap in percent, `cap` None where no prompt shows it."""

    tokens_before: int
    tokens: int
    cap: int | None
    share: int
    omitted: tuple[str, ...]
    fell_out: tuple[str, ...]
    came_back: tuple[str, ...]
    warnings: tuple[str, ...]


def outline_of(path: str, file: str, encoding: str) -> Outline:
    """What the note at `path` is made of, if this is its file."""
    note = parse(path, file.encode(), encoding=encoding)
    headings = tuple(
        Heading(section.heading or "(no words)", section.level, section.anchor, section.token_count)
        for section in note.sections[:MOST_SECTIONS]
    )
    return Outline(headings, len(note.sections), tuple(map(str, note.problems)))


def effect_of(edited: Edited) -> Effect:
    """What a preview says."""
    change = edited.change
    return Effect(
        tokens_before=edited.tokens_before,
        tokens=edited.tokens,
        cap=edited.cap,
        share=min(100, edited.tokens * 100 // edited.cap) if edited.cap else 0,
        omitted=tuple(f"{lost.heading or 'its beginning'}, {lost.tokens:,} tokens" for lost in edited.omitted),
        fell_out=_told([passage.heading or passage.path for passage in change.fell_out]) if change else (),
        came_back=_told([passage.heading or passage.path for passage in change.came_back]) if change else (),
        warnings=edited.warnings,
    )


def _told(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def name_of(file: str, part: str, path: str) -> str:
    """What the section that is edited is headed, "" for the whole note."""
    if not part.startswith("#"):
        return ""
    return next((each.title for each in page_of(file, path).parts if each.section and each.anchor == part[1:]), "")
