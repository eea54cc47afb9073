"""The layout of the prompt: which text stands where. Notes are values of the templates, never templates.

Each file stands between `<file path="…">` and `</file>`, under a heading of the layout. An owner's own headings, of
whatever level, are left as they are: the tags, not the levels, tell where a file begins and ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from prompt.values import Part, Volatile

if TYPE_CHECKING:
    from jinja2 import Environment

NOTICE = (
    "Some of these files are shown in part: a line in brackets that begins with … says how much is left out there "
    "and, after the colon, how to read it."
)


def stable_text(system: Sequence[Part], directive: str, files: Sequence[Part]) -> str:
    """The part of the prompt that depends on the files and the session alone."""
    partial = any(part.omitted for part in (*system, *files))
    template = _environment().get_template("stable.md.j2")
    return template.render(system=system, directive=directive.strip(), files=files, partial=partial, notice=NOTICE)


def volatile_text(volatile: Volatile) -> str:
    """What may differ at each call; "" for nothing."""
    sections = (
        ("Notebook", volatile.refs),
        ("Facts", volatile.facts),
        ("Recent Notes", volatile.notes),
        ("Task Brief", volatile.brief),
    )
    if not any(text for _, text in sections):
        return ""
    return _environment().get_template("volatile.md.j2").render(sections=sections)


@cache
def _environment() -> Environment:
    # Imported when a prompt is laid out: it costs 50 ms, which `--version` must not pay.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701 - the text is Markdown for a model; HTML entities would falsify it
        keep_trailing_newline=True,
    )
