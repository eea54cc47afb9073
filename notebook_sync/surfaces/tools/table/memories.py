"""The tools for memories, task briefs and their syntheses: their rows of the table."""

from __future__ import annotations

from notebook_sync.surfaces.tools.runs import memories as runs
from notebook_sync.surfaces.tools.schemas import memories as schemas
from notebook_sync.surfaces.tools.tool import NOT_FOR_STRANGERS, Tool

RECORDING = "Memories are not changed in this conversation"
REASONING = "Syntheses are not made in this conversation"

# A language model that the settings name restructures what is recorded and reads specs.
MEMORIES: tuple[Tool, ...] = (
    Tool(
        name="memory_record",
        description=(
            "Keep a decision, a problem, a pattern or an insight with its reasons, for later tasks:\n"
            "[DECISION] Title\nCONTEXT: …\nREASONING: …\nOUTCOME: …\nTAGS: a, b\n"
            "(or [PROBLEM], [PATTERN], [INSIGHT]). One lasting fact is for memory_add."
        ),
        arguments=schemas.RecordArguments,
        results=(schemas.RecordResult,),
        run=runs.memory_record,
        sessions=NOT_FOR_STRANGERS,
        refusal=RECORDING,
        open_world=True,
    ),
    Tool(
        name="compile_context",
        description="Before a task: what the notebook knows that matters: decisions, problems, patterns, risks.",
        arguments=schemas.CompileArguments,
        results=(schemas.BriefResult,),
        run=runs.compile_context,
        read_only=True,
        open_world=True,
    ),
    Tool(
        name="synthesize",
        description="compile_context, thought through by a reasoner: slow and counted.",
        arguments=schemas.SynthesizeArguments,
        results=(schemas.SynthesisResult,),
        run=runs.synthesize,
        sessions=NOT_FOR_STRANGERS,
        refusal=REASONING,
        open_world=True,
    ),
)
