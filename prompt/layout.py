"""The layout of the prompt: the order and the frame of every text. Notes are values of the templates, never templates.

Each file is between `<file>` and `</file>`, below a heading of the layout; a file without a heading has its path in the
tag. The owner's own headings, of whatever level, stay as they are: the tags, not the levels, mark where a file begins
and ends. Where a file's text has such a tag itself, all tags of that prompt are `file-2`, or the next free number.
What follows the files is quoted: no line of it begins with a tag or a heading.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from prompt.fence import quote
from prompt.values import Part, Session

if TYPE_CHECKING:
    from jinja2 import Environment, Template

# A tag that is spaced or cased in another way could still be taken for one.
_TAG = re.compile(r"<\s*/?\s*file(?:-(\d+))?(?![\w-])", re.IGNORECASE)


def directive_text(template: str, session: Session, paths: Sequence[str]) -> str:
    """The directive for one session. `template` is a Jinja template, `paths` are the files that no tag names."""
    return _compiled(template).render(session=session, paths=paths).strip()


def stable_text(system: Sequence[Part], directive: str, files: Sequence[Part], tag: str = "file") -> str:
    """The part of the prompt that depends on the files and the session alone."""
    layout = _environment().get_template("stable.md.j2")
    text = layout.render(system=system, directive=directive, files=files, tag=tag)
    return text.rstrip("\n") + "\n" if text.strip() else ""


def tag_for(texts: Sequence[str]) -> str:
    """The name of the tags around files: `file`, or the first `file-2`, `file-3`, … that none of `texts` has."""
    taken = {match[1] or "" for text in texts if "<" in text for match in _TAG.finditer(text)}
    if "" not in taken:
        return "file"
    return next(f"file-{number}" for number in count(2) if str(number) not in taken)


def volatile_text(today: str, sections: Sequence[tuple[str, str]], after: str = "") -> str:
    """The day, then texts under their headings, quoted; "" for nothing. `after` is the text before them."""
    shown = [(heading, quote(text.rstrip("\r\n"))) for heading, text in sections]
    text = _environment().get_template("volatile.md.j2").render(today=today, sections=shown)
    return ("\n" if after else "") + text.rstrip("\n") + "\n" if text else ""


@lru_cache(8)
def _compiled(template: str) -> Template:
    return _environment().from_string(template)


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
