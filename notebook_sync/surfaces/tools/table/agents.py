"""The tools for what an agent keeps to itself: their rows of the table."""

from __future__ import annotations

from notebook_sync.sessions import KINDS, Kind
from notebook_sync.surfaces.tools.runs import agents as runs
from notebook_sync.surfaces.tools.schemas import agents as schemas
from notebook_sync.surfaces.tools.tool import NOT_FOR_STRANGERS, Tool

# An owner that names no agent asks for the notes of all.
UNLESS_OWNER: frozenset[Kind] = frozenset(("task", "external"))
PRIVATE = "Private notes are not available in this conversation"

PRIVATE_NOTES: tuple[Tool, ...] = (
    Tool(
        name="write_note",
        description=(
            "Keep a private note for your later self: a hunch, an observation, what to try next. For others to go on "
            "with: notebook_create."
        ),
        arguments=schemas.WriteNoteArguments,
        results=(schemas.WrittenResult,),
        run=runs.write_note,
        of_an_agent=frozenset(KINDS),
    ),
    Tool(
        name="search_my_notes",
        description="Find your private notes, best first, without their text: then notebook_read.",
        arguments=schemas.SearchNotesArguments,
        results=(schemas.NoteRows,),
        run=runs.search_my_notes,
        sessions=NOT_FOR_STRANGERS,
        of_an_agent=UNLESS_OWNER,
        refusal=PRIVATE,
        read_only=True,
    ),
    Tool(
        name="get_recent_notes",
        description="Your latest private notes, without their text.",
        arguments=schemas.RecentNotesArguments,
        results=(schemas.NoteRows,),
        run=runs.get_recent_notes,
        sessions=NOT_FOR_STRANGERS,
        of_an_agent=UNLESS_OWNER,
        refusal=PRIVATE,
        read_only=True,
    ),
    Tool(
        name="peek_agent_notes",
        description="Private notes of another agent that shares them with you, without their text.",
        arguments=schemas.PeekArguments,
        results=(schemas.NoteRows,),
        run=runs.peek_agent_notes,
        sessions=NOT_FOR_STRANGERS,
        of_an_agent=UNLESS_OWNER,
        refusal=PRIVATE,
        read_only=True,
    ),
)
