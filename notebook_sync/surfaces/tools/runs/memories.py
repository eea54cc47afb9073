"""What the tools for memories, task briefs and their syntheses do: one use case each."""

from __future__ import annotations

from notebook_sync.notebook import Notebook
from notebook_sync.sessions import Session
from notebook_sync.surfaces.tools.schemas import memories as schemas


def memory_record(notebook: Notebook, wanted: schemas.RecordArguments, session: Session) -> schemas.RecordResult:
    """One more memory."""
    added = notebook.memory_add(
        wanted.text, session, domain=wanted.domain or "", tags=wanted.tags or (), priority=wanted.priority
    )
    return schemas.RecordResult.model_validate(added)


def compile_context(notebook: Notebook, wanted: schemas.CompileArguments, session: Session) -> schemas.BriefResult:
    """What matters for a task."""
    brief = notebook.compile_context(
        wanted.task_spec,
        session,
        max_tokens=wanted.max_tokens,
        top_k=wanted.top_k,
        include_domains=wanted.include_domains or (),
        exclude_tags=wanted.exclude_tags or (),
        explain=bool(wanted.explain),
    )
    return schemas.BriefResult.model_validate({**brief, "partial": brief["partial"] or None})


def synthesize(notebook: Notebook, wanted: schemas.SynthesizeArguments, session: Session) -> schemas.SynthesisResult:
    """What a reasoner makes of that."""
    made = notebook.synthesize(
        wanted.task_spec,
        session,
        refresh=bool(wanted.refresh),
        max_tokens=wanted.max_tokens,
        top_k=wanted.top_k,
        include_domains=wanted.include_domains or (),
        exclude_tags=wanted.exclude_tags or (),
    )
    return schemas.SynthesisResult.model_validate({**made, "trouble": made["trouble"] or None})
