"""The tools for what an agent remembers: their rows of the table."""

from __future__ import annotations

from notebook_sync.surfaces.tools.runs import agents as runs
from notebook_sync.surfaces.tools.schemas import agents as schemas
from notebook_sync.surfaces.tools.tool import NOT_FOR_STRANGERS, Tool

STREAM = "The daily stream is not available in this conversation"
ROLLBACK = "Going back to a checkpoint is only available in owner conversations"

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
