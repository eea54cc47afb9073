"""The tools for what an agent keeps to itself, and for what it remembers: their rows of the table."""

from __future__ import annotations

from notebook_sync.sessions import KINDS, Kind
from notebook_sync.surfaces.tools.runs import agents as runs
from notebook_sync.surfaces.tools.schemas import agents as schemas
from notebook_sync.surfaces.tools.tool import NOT_FOR_STRANGERS, Tool

# An owner that names no agent asks for the notes of all.
UNLESS_OWNER: frozenset[Kind] = frozenset(("task", "external"))
PRIVATE = "Private notes are not available in this conversation"
STREAM = "The daily stream is not available in this conversation"
ROLLBACK = "Going back to a checkpoint is only available in owner conversations"

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
MEMORY: tuple[Tool, ...] = (
    Tool(
        name="recall",
        description=(
            "Remember by words and meaning what was logged, done or kept: the daily stream, long-term memory and which "
            "notes there are. Before you start, and when asked about earlier work."
        ),
        arguments=schemas.RecallArguments,
        results=(schemas.RecallResult,),
        run=runs.recall,
        sessions=NOT_FOR_STRANGERS,
        refusal=STREAM,
        read_only=True,
    ),
    Tool(
        name="today",
        description="What was logged or done on a day, by default today, oldest first.",
        arguments=schemas.TodayArguments,
        results=(schemas.TodayResult,),
        run=runs.today,
        sessions=NOT_FOR_STRANGERS,
        refusal=STREAM,
        read_only=True,
    ),
    Tool(
        name="log",
        description="Log one line to today's stream, which every agent can recall: a decision, a result, an event.",
        arguments=schemas.LogArguments,
        results=(schemas.LogResult,),
        run=runs.log,
        sessions=NOT_FOR_STRANGERS,
        refusal=STREAM,
    ),
    Tool(
        name="checkpoint",
        description="Save the notebook's state before sweeping changes; the owner can go back to it.",
        arguments=schemas.CheckpointArguments,
        results=(schemas.CheckpointResult,),
        run=runs.checkpoint,
        sessions=NOT_FOR_STRANGERS,
        refusal=STREAM,
    ),
    Tool(
        name="rollback",
        description="Restore the stream and long-term memory of a checkpoint, if asked; without an id, list them.",
        arguments=schemas.RollbackArguments,
        results=(schemas.RolledBackResult, schemas.CheckpointsResult),
        run=runs.rollback,
        sessions=frozenset(("owner",)),
        refusal=ROLLBACK,
        destructive=True,
    ),
)
