"""What a page tells of one note: made from what its file says, and from what the mirror knows of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal
from urllib.parse import quote

from markupsafe import Markup

from notebook_sync.files.frontmatter import read_frontmatter
from notebook_sync.files.note import Note, Section
from notebook_sync.permissions import is_private
from notebook_sync.surfaces.dashboard.rendering import AT, LONGEST, NONE_BROKEN, href_of, rendered
from prompt import Part

NOTES: Final = "/notes/"
_DEEPEST_FIELD: Final = 3
_MOST_LINKS: Final = 200
_MOST_SECTIONS: Final = 400


@dataclass(frozen=True, slots=True)
class Mark:
    """Something to know of a note before it is read."""

    tone: Literal["", "good", "warn", "bad"]
    said: str
    more: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """Somewhere to go. `depth` is how far it is set in, from 0; `broken` is why nothing is there."""

    said: str
    href: str
    depth: int = 0
    broken: str = ""


@dataclass(frozen=True, slots=True)
class InPrompt:
    """How much of a file the owner's prompt shows; `problem` says why that is not what the file says now."""

    tokens: int
    cap: int
    omitted: int
    problem: str


@dataclass(frozen=True, slots=True)
class NoteView:
    """A note as its page shows it. Moments are None where the mirror, which knows them, does not answer."""

    path: str
    title: str
    text: Markup
    is_source: bool
    marks: Sequence[Mark]
    problems: Sequence[str]
    outline: Sequence[Link]
    fields: Sequence[tuple[str, str]]
    links: Sequence[Link]
    words: int
    tokens: int
    version: int | None
    updated_at: datetime | None
    created_at: datetime | None
    created_by: str


def view_of(
    note: Note,
    text: str,
    document: Mapping[str, Any] | None,
    refused: str = "",
    broken: Mapping[str, str] = NONE_BROKEN,
) -> NoteView:
    """The note that a file's `text` is, and its document where the mirror has one; else, if it is so, why it takes no
    such file. `broken` are those of its links that lead nowhere, each with the reason."""
    known = document["metadata"] if document else {}
    is_behind = bool(document and document["stale"])
    found = list(dict.fromkeys([*([refused] if refused else []), *map(str, note.problems)]))
    if document and not is_behind:  # it knows also of bytes that are no text
        found = [_problem(one) for one in document["problems"]]
    return NoteView(
        path=note.path,
        title=note.title,
        text=rendered(note.content, note.path, title=note.title, broken=broken),
        is_source=len(note.content) > LONGEST,
        marks=marks_of(note, document),
        problems=found,
        outline=outline_of(note.sections, note.title),
        fields=[(name, shown(value)) for name, value in read_frontmatter(text).metadata.items()],
        links=links_of(note, broken),
        words=note.word_count,
        tokens=note.token_count,
        version=known.get("version"),
        updated_at=known.get("updated_at"),
        created_at=known.get("created_at"),
        created_by=known.get("created_by", note.created_by),
    )


def marks_of(note: Note, document: Mapping[str, Any] | None) -> list[Mark]:
    """What is to be known first: whose words these are, who may read them, and whether the mirror has them."""
    marks = []
    if note.provenance:
        marks.append(Mark("warn", "from outside", "Somebody else wrote this: do not take it for the notebook's word."))
    if is_private(note.path):
        marks.append(
            Mark("", "private", "Only the agent whose channel it is, and whom its channel.toml names, read it.")
        )
    if document and document["stale"]:
        marks.append(Mark("bad", "not taken", f"The mirror keeps the last good text: {document['stale']}"))
    if note.status != "draft":
        marks.append(Mark("", note.status.replace("_", " ")))
    return marks


def outline_of(sections: Sequence[Section], title: str) -> list[Link]:
    """A link for each section, set in by its level; without a first one that is the title."""
    shown = sections[1:] if sections and sections[0].level == 1 and sections[0].heading == title else sections
    top = min((section.level for section in shown), default=1)
    return [
        Link(section.heading or "(no words)", f"#{AT}{quote(section.anchor)}", section.level - top)
        for section in shown[:_MOST_SECTIONS]
    ]


def asked_links(note: Note) -> Sequence[str]:
    """Those of its links that its page shows."""
    return note.links[:_MOST_LINKS] if len(note.content) > LONGEST else note.links


def links_of(note: Note, broken: Mapping[str, str] = NONE_BROKEN) -> list[Link]:
    """The notes that it leads to, each once, also those that are not there. A name without an ending is found wherever
    the note lies."""
    links = {}
    for link in note.links[:_MOST_LINKS]:
        is_path = link.lower().endswith(".md") or link.startswith((".", "/"))
        href, why = href_of(quote(link), note.path if is_path else ""), broken.get(link, "")
        if href or why:
            links[href or link, why] = Link(link, href, broken=why)
    return list(links.values())


def in_prompt_of(parts: Sequence[Part], path: str) -> InPrompt | None:
    """What the parts of a prompt tell of a file; None where it is none of them."""
    part = next((part for part in parts if part.path == path), None)
    if part is None:
        return None
    return InPrompt(part.tokens, part.cap, sum(one.tokens for one in part.omitted), part.problem)


def shown(value: Any, depth: int = 0) -> str:
    """A value of frontmatter for people."""
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="minutes")
    if isinstance(value, str) or value is None:
        return value or "–"
    if depth >= _DEEPEST_FIELD:
        return "…"
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {shown(each, depth + 1)}" for name, each in value.items()) or "–"
    if isinstance(value, Sequence):
        return ", ".join(shown(each, depth + 1) for each in value) or "–"
    return str(value).lower() if isinstance(value, bool) else str(value)


def address_of(path: str) -> str:
    """The page of the note at `path`."""
    return NOTES + quote(path, errors="replace")


def _problem(problem: Mapping[str, Any]) -> str:
    return f"line {problem['line']}: {problem['message']}" if problem["line"] else str(problem["message"])
