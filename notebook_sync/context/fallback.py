"""What stands in for a synthesis where nobody can be asked: the brief itself, in the same five parts, marked. Pure.

It says nothing that the brief does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from notebook_sync.context.brief import CONTEXT, DECISIONS, NOTHING, PATTERNS, PROBLEMS, TASK
from notebook_sync.context.brief import RISKS as BRIEF_RISKS
from notebook_sync.context.compiler import Compiled
from notebook_sync.context.quoting import one_line
from notebook_sync.context.truth import GUARDRAILS, HISTORY, LINKS, RISKS, SUMMARY, links_as_text

MARK = "**Not a synthesis.**"
_LONGEST_TROUBLE = 400
# What of a brief stands below which heading.
_PARTS = {GUARDRAILS: (DECISIONS, PATTERNS), HISTORY: (CONTEXT, PROBLEMS), RISKS: (BRIEF_RISKS,)}


def fallback(compiled: Compiled, trouble: str) -> str:
    """The brief as a synthesis has its parts; `trouble` is why it is none."""
    texts = {section.heading: section.text.strip() for section in compiled.sections}
    task = texts.get(TASK, "")
    count = len(compiled.used)
    rests = f"It rests on {count} {'memory' if count == 1 else 'memories'} of the notebook." if count else ""
    told = [
        f"> {MARK} Nobody reasoned about this task: {one_line(trouble, _LONGEST_TROUBLE)}. What follows is what the "
        "notebook itself knows.",
        f"## {SUMMARY}\n\n{_joined([task, rests or 'The notebook knows nothing that bears on it.'])}",
        *(f"## {heading}\n\n{_joined(_said(texts, of)) or NOTHING}" for heading, of in _PARTS.items()),
        f"## {LINKS}\n\n{links_as_text([])}",
    ]
    return "\n\n".join(told) + "\n"


def _said(texts: Mapping[str, str], headings: Iterable[str]) -> list[str]:
    return [text for heading in headings if (text := texts.get(heading, "")) not in ("", NOTHING)]


def _joined(texts: Iterable[str]) -> str:
    return "\n\n".join(text for text in texts if text)
