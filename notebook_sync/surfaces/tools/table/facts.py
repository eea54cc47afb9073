"""The tools for facts: their rows of the table."""

from __future__ import annotations

from notebook_sync.surfaces.tools.runs import facts as runs
from notebook_sync.surfaces.tools.schemas import facts as schemas
from notebook_sync.surfaces.tools.tool import NOT_FOR_STRANGERS, Tool

REMEMBERING = "Facts are not changed in this conversation"

FACTS: tuple[Tool, ...] = (
    Tool(
        name="memory_add",
        description=(
            "Remember one lasting fact in a short sentence: a name, a date, a preference, how something works. If "
            "known, it is strengthened."
        ),
        arguments=schemas.AddArguments,
        results=(schemas.ChangedResult,),
        run=runs.memory_add,
        sessions=NOT_FOR_STRANGERS,
        refusal=REMEMBERING,
    ),
    Tool(
        name="memory_query",
        description="What is known: facts by meaning and words, best first.",
        arguments=schemas.QueryArguments,
        results=(schemas.FactRows,),
        run=runs.memory_query,
        read_only=True,
    ),
    Tool(
        name="memory_verify",
        description=(
            "Whether a statement is known, before you rely on it: CONFIRMED, RELATED (look at matches: they may say "
            "otherwise) or NEW."
        ),
        arguments=schemas.VerifyArguments,
        results=(schemas.VerdictResult,),
        run=runs.memory_verify,
        read_only=True,
    ),
    Tool(
        name="memory_reinforce",
        description="Strengthen a fact that proved right, so that it does not fade.",
        arguments=schemas.ReinforceArguments,
        results=(schemas.ChangedResult,),
        run=runs.memory_reinforce,
        sessions=NOT_FOR_STRANGERS,
        refusal=REMEMBERING,
    ),
    Tool(
        name="fact_extract",
        description=(
            "Draw lasting facts from the end of a conversation: new ones are added, those named as no longer true "
            "archived."
        ),
        arguments=schemas.ExtractArguments,
        results=(schemas.ExtractResult,),
        run=runs.fact_extract,
        sessions=NOT_FOR_STRANGERS,
        refusal=REMEMBERING,
        destructive=True,
        open_world=True,
    ),
)
