"""Problems in the files, and where a text is: a list of rules, each a generator of findings. Reads files alone and
changes nothing."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal, NamedTuple

from notebook_sync.errors import NoSuchNote, NotebookError, UnreadableFile, UnsafePath, UsageError
from notebook_sync.files.beneath import MERGE_CONFLICT, conflict_marks, why_unusable
from notebook_sync.files.names import copy_of, folded, why_not
from notebook_sync.files.parse import parse
from notebook_sync.files.tree import Scan
from notebook_sync.model import RUNTIME_FILES, SETTINGS_FILE, Link
from notebook_sync.permissions import guarded_key, guarded_names, guarded_paths
from notebook_sync.services import reminders, rules
from notebook_sync.services.assembling import PRIVATE, REMINDERS, RULES, assemble_from, files_of, private_paths
from notebook_sync.services.core import Core
from notebook_sync.services.fact_upkeep import proposals_of
from notebook_sync.services.grammar import PLAIN
from notebook_sync.services.trust import lines_added, waiting_files
from notebook_sync.services.view import Names, NoteName, View
from notebook_sync.sessions import Session
from prompt import (
    SESSIONS,
    FileText,
    Found,
    Lines,
    Outline,
    Part,
    PromptTooSmall,
    end_of_frontmatter,
    explain,
    visible,
)
from prompt.assemble import VOLATILE_SHARE
from prompt.hidden import Positions

_GRAMMARS = {RULES: rules.GRAMMAR, REMINDERS: reminders.GRAMMAR}
_MOST_NAMED = 5
_BLOCK_ID = re.compile(r"(?<=[ \n])(\^[\w-]+)[ \t]*$", re.MULTILINE)
# What template programs put in place of a name.
_PLACEHOLDER = re.compile(r"\{\{|<%|\$\{")
# The reasons that a session learns which does not see what the prompt hides.
_SHOWN = ("", "cap", "not a prompt file")


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One problem: `line` is 1-based, 0 for the whole file; `place` is path and line as editors open them.

    error: a file or a rule does not do what it says. warning: it probably does not do what was meant. info: it can be
    removed, or nobody sees it.
    """

    path: str
    line: int
    severity: Literal["error", "warning", "info"]
    message: str
    place: str = ""


class _Note(NamedTuple):
    """What of a note is compared with other notes; all texts together would fill the memory. `places` are the headings,
    anchors and block ids that links may name."""

    name: NoteName
    links: tuple[Link, ...]
    places: frozenset[str]


@dataclass(slots=True)
class _Files:
    """All files, read once, and what each says of itself that cannot be read as it is meant."""

    core: Core
    scan: Scan
    notes: dict[str, _Note] = field(default_factory=dict)
    found: list[Finding] = field(default_factory=list)


def find_problems(core: Core) -> list[Finding]:
    """Every finding, by path and line. Raises ConfigError where there are no good settings."""
    files_of(core)
    files = _Files(core, core.tree.scan())
    for path in files.scan.seen:
        _read(files, path)
    found = sorted({each for rule in FINDINGS for each in rule(files)})
    return [replace(each, place=f"{each.path}:{each.line}" if each.line else each.path) for each in found]


def explain_text(core: Core, session: Session, text: str) -> list[Found]:
    """Every line where the text begins: in the prompt's files first, then in other notes that the session may read.

    A session learns only of what it may see. Raises UsageError for a text without words.
    """
    if not text.strip():
        raise UsageError("there is nothing to look for", next="give some words of the line that you want explained")
    files = files_of(core)
    sources, view = files.sources(), View(core, session)
    seen = [source for source in sources if view.may("read", source.path)]
    found = explain(text, assemble_from(core, session, sources), [*seen, *_others(core, view, text)])
    if session.kind != "owner":
        return [each for each in found if each.reason in _SHOWN]
    usable = {each.path for each in sources if each.found is not None and not why_unusable(each.found)}
    waits = usable if files.shown.needs_trust else set()
    return [
        replace(each, reason="waiting for trust") if each.reason == "not yet parsed" and each.path in waits else each
        for each in found
    ]


def _others(core: Core, view: View, text: str) -> Iterator[FileText]:
    """The other notes that may hold the text: its first word tells most of them apart quickly."""
    word = text.casefold().split()[0]
    for path in sorted(core.tree.scan().seen.keys() - set(core.prompt_files.paths)):
        with suppress(NoSuchNote, UnreadableFile, UnsafePath):
            raw = core.tree.read(path).raw if view.may("read", path) else b""
            shown = view.shown(path, raw.decode(errors="replace"))
            if word in shown.casefold():
                yield FileText(path, shown.encode(errors="replace"))


def _read(files: _Files, path: str) -> None:
    try:
        raw = files.core.tree.read(path).raw
    except NoSuchNote:  # it is gone meanwhile
        return
    except (UnreadableFile, UnsafePath) as error:
        files.found.append(Finding(path, 0, "error", error.reason))
        return
    note = parse(path, raw, timezone=files.core.settings.timezone)
    for problem in note.problems:
        if problem.message != MERGE_CONFLICT:  # each of them is named below
            files.found.append(Finding(path, problem.line, "error" if problem.severe else "warning", problem.message))
    marks = conflict_marks(raw.decode(errors="replace"))
    files.found += [Finding(path, line, "error", MERGE_CONFLICT) for line in marks]
    headings = (name for each in note.sections for name in (each.anchor, _plain(each.heading)))
    blocks = _BLOCK_ID.findall(note.content.casefold()) if "^" in note.content else ()
    name = NoteName(note.wanted_id, path, note.title, note.aliases)
    files.notes[path] = _Note(name, note.links, frozenset((*headings, *blocks)))


# ---- the rules


def doubtful_files(files: _Files) -> Iterator[Finding]:
    """Settings in error, files with a note's name that are none, folders that cannot be entered, faults of notes."""
    if files.core.settings_problem:
        yield Finding(SETTINGS_FILE, 0, "error", files.core.settings_problem)
    for path, reason in files.scan.refused.items():
        yield Finding(path, 0, "error", reason)
    yield from files.found


def misleading_names(files: _Files) -> Iterator[Finding]:
    """Ids of two notes, copies that sync clients, editors and git leave, bare names of the owner's files, and names
    that other systems refuse or take for one. As in the index, the shortest path has an id, then the first."""
    guarded = guarded_names(files.core.settings.prompt)
    holders, known = dict[str, str](), dict[str, str]()
    for path, note in sorted(files.notes.items(), key=lambda item: (len(item[0]), item[0])):
        holder, twin = holders.setdefault(note.name.id, path), known.setdefault(folded(path), path)
        original = copy_of(path, guarded_paths(files.core.settings.prompt))
        meant = next((guarded[key] for key in map(guarded_key, (path, note.name.id)) if key in guarded), path)
        if holder != path:
            yield Finding(
                path, 0, "error", f"the id `{note.name.id}` is also that of {holder}; give one of them another id"
            )
        if original:
            is_there = original in files.notes
            step = f"; merge what it says into {original}, then delete it" if is_there else ", which is gone; rename it"
            yield Finding(path, 0, "warning", f"is a conflict copy of {original}{step}")
        elif meant != path and meant in files.notes:
            yield Finding(path, 0, "warning", f"has the name of {meant}, which is what the bare name means; rename it")
        if reason := why_not(path):
            yield Finding(path, 0, "warning", f"{reason}; rename it")
        if twin != path:
            yield Finding(
                path, 0, "warning", f"differs from {twin} only in a way that some systems ignore; rename one of them"
            )


def broken_links(files: _Files) -> Iterator[Finding]:
    """Links to notes, headings and blocks that do not exist."""
    guarded = guarded_names(files.core.settings.prompt)
    names = Names((note.name for note in files.notes.values()), files.scan.attachments, guarded)
    for path, note in files.notes.items():
        for link in note.links:
            if reason := _why_broken(files, names, path, link):
                yield Finding(path, link.line, "warning", f"broken link to `{_written(link)}`: {reason}")


def waiting_lines(files: _Files) -> Iterator[Finding]:
    """Lines that wait for trust."""
    for path, trusted, found in waiting_files(files.core):
        for line, text in lines_added(trusted, found) or [(0, "the removal of lines")]:
            yield Finding(path, line, "warning", f"`{text.strip()}` waits for trust; run: notebook-sync trust {path}")


def prompt_files(files: _Files) -> Iterator[Finding]:
    """Files of the prompt that cannot be shown as they are, and what in them cannot be read or reaches nobody."""
    core, now = files.core, datetime.now(files.core.settings.timezone)
    for path in private_paths(core.settings.prompt):
        yield Finding(path, 0, "error", PRIVATE)
    for source in core.prompt_files.sources():
        path, text = source.path, source.text
        if source.content is None and path not in RUNTIME_FILES:
            yield Finding(path, 0, "error", f"is missing, and {SETTINGS_FILE} names it; make it, or remove its path")
        elif source.content is None and (core.root / SETTINGS_FILE).exists():  # else no rules are meant to be here
            yield Finding(path, 0, "warning", f"is missing; make it with: notebook-sync init {core.root}")
        if source.problem and path not in files.scan.refused:  # that is named already
            yield Finding(path, 0, "error", f"is not shown as it is: {source.problem}")
        if source.external:
            yield Finding(path, 0, "error", "has external provenance, so the prompt does not show it; take it out")
            continue
        grammar = _GRAMMARS.get(path, PLAIN)
        for one in grammar.contents(text, now).malformed:
            yield Finding(path, one.line, "warning", one.message)
        for entry in grammar.hidden(text, now):
            yield Finding(
                path,
                entry.line,
                "info",
                f"is in a comment, so no agent sees it; delete it, or end the comment above it: {entry.text}",
            )
        yield from _never_closed(path, text)
        yield from _dates_and_pins(core, path, text, now.replace(tzinfo=None))


def _never_closed(path: str, text: str) -> Iterator[Finding]:
    """Comments and code blocks without an end."""
    start = end_of_frontmatter(text)
    above = text.count("\n", 0, start) + 1
    for block in Outline(text[start:]).root.walk() if "<!--" in text or "```" in text or "~~~" in text else ():
        if block.type == "html_block" and block.content.startswith("<!--") and "-->" not in block.content:
            yield Finding(path, above + block.first, "error", "this comment is never closed; write --> where it ends")
        if block.type == "fence" and not block.closed:
            yield Finding(
                path,
                above + block.first,
                "error",
                "this code block is never closed, so all below it is code; close it with a line like its first",
            )


def _dates_and_pins(core: Core, path: str, text: str, now: datetime) -> Iterator[Finding]:
    """Expired entries, pins that pin nothing, and pinned sections that are too long together: a cap holds for them."""
    shown, files = visible(text, now=now), core.prompt_files
    for expired in shown.expired:
        yield Finding(
            path, expired.line, "info", f"expired on {expired.until} and is not in the prompt; it can be removed"
        )
    for line in shown.lost_pins:
        yield Finding(
            path, line, "warning", "this pin pins nothing; write it alone on the line below or above a heading"
        )
    sections, tokens, end = Outline(shown.text).sections if shown.pinned else [], 0, 0
    for number, section in enumerate(sections):
        if section.start in shown.pinned and section.start >= end:  # one inside another is counted with it
            later = (each.start for each in sections[number + 1 :] if each.level <= section.level)
            end = next(later, len(shown.text))
            tokens += files.assembler.count(shown.text[section.start : end])
    if tokens > (cap := files.caps[path]):
        message = f"its pinned sections have {tokens:,} tokens, more than its cap of {cap:,}, so even they are cut"
        yield Finding(path, 0, "error", f"{message}; shorten or unpin one, or set its max_tokens to {tokens}")


def too_large(files: _Files) -> Iterator[Finding]:
    """What the cap of each file leaves out, in the first session that sees it, and a total that is too small for the
    owner's prompt, which shows most."""
    core, now = files.core, files.core.settings.local_now()
    sources, assembler = core.prompt_files.sources(), core.prompt_files.assembler
    whole = [assembler.limited_to(sys.maxsize).assemble(sources, session, now=now) for session in SESSIONS]
    parts = {part.path: part for prompt in reversed(whole) for part in prompt.parts}
    for source in sources:
        part = parts.get(source.path)
        if part is not None and part.cut:
            lines = _cut_lines(part, source.text)
            entries = sum(one.entries for one in part.omitted) or "all"
            named = ", ".join(map(str, lines[:_MOST_NAMED])) + ", …" * (len(lines) > _MOST_NAMED)
            yield Finding(
                source.path,
                lines[0] if lines else 0,
                "warning",
                f"has {part.tokens_whole:,} tokens, more than its cap of {part.cap:,}: {entries} entries are left out, "
                f"from line {named}; shorten it, pin what must stay, or raise its max_tokens",
            )
    try:
        is_cut = assembler.assemble(sources, SESSIONS[0], now=now).text != whole[0].text
    except PromptTooSmall as error:
        yield Finding(SETTINGS_FILE, 0, "error", str(error))
        return
    if is_cut:
        tokens = whole[0].tokens
        enough = -(-tokens * VOLATILE_SHARE // (VOLATILE_SHARE - 1))
        message = f"the prompt's files have {tokens:,} tokens together, more than prompt.max_tokens leaves for them"
        yield Finding(SETTINGS_FILE, 0, "warning", f"{message}; set it to {enough}, or shorten a file")


def _cut_lines(part: Part, text: str) -> list[int]:
    """The 1-based lines of the file at which what is left out begins."""
    before = Positions([gap for gap in part.gaps if gap.reason != "cap"]).before
    starts = [start + len(cut) - len(cut.lstrip()) for start, end in part.cut if (cut := part.whole[start:end]).strip()]
    lines = Lines(text)
    return sorted({lines.at(before(start)) + 1 for start in starts})


def proposed_facts(files: _Files) -> Iterator[Finding]:
    """Facts that the owner may keep for good, or merge; none where there is no index."""
    with suppress(NotebookError):
        for path, line, message in proposals_of(files.core):
            yield Finding(path, line, "info", message)


FINDINGS: tuple[Callable[[_Files], Iterator[Finding]], ...] = (
    doubtful_files,
    misleading_names,
    broken_links,
    prompt_files,
    too_large,
    waiting_lines,
    proposed_facts,
)


def _why_broken(files: _Files, names: Names, path: str, link: Link) -> str:
    """What a link names that does not exist; "" for nothing."""
    if _PLACEHOLDER.search(_written(link)):
        return ""
    targets = names.find(link.target, path)
    if not targets:  # a file or folder may be no part of the notebook, such as one that git ignores
        folder = os.path.dirname(path)  # noqa: PTH120 - text, which may hold what no path has
        places = (os.path.normpath(f"{files.core.root}/{each}/{link.target}") for each in (folder, ""))
        is_there = "\0" not in link.target and any(map(os.path.lexists, places))
        return "" if is_there else "there is no note or file of this name"
    notes = [files.notes[each] for each in targets if each in files.notes]
    wanted = link.fragment.rpartition("#")[2].strip()  # a heading below another one is named by both
    kind, plain = ("block", wanted.casefold()) if wanted.startswith("^") else ("heading", _plain(wanted))
    if not notes or not wanted or any(wanted in note.places or plain in note.places for note in notes):
        return ""
    return f"{notes[0].name.path} has no such {kind}"


def _plain(heading: str) -> str:
    """A heading as links name it: without the marks that a link cannot have."""
    return " ".join(re.sub(r"[#^|\[\]:\\]", " ", heading.casefold()).split())


def _written(link: Link) -> str:
    return f"{link.target}#{link.fragment}" if link.fragment else link.target
