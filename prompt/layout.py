"""The layout of the prompt: which text stands where. Notes are values of the templates, never templates.

Each file stands between `<file path="…">` and `</file>`, under a heading of the layout. An owner's own headings, of
whatever level, are left as they are: the tags, not the levels, tell where a file begins and ends. Where a file's text
has such a tag itself, all tags of that prompt are `file-2`, or the next number that no text has.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from prompt.open_end import closing_line
from prompt.values import Part, Session

if TYPE_CHECKING:
    from jinja2 import Environment

NOTICE = (
    "Some of these files are shown in part: a line in brackets that begins with … says how much is left out there "
    "and, after the colon, how to read it."
)
# Which conversation this is, for the rules of the directive that depend on it.
CONVERSATION: dict[Session, str] = {
    "owner": "This conversation: owner. The runtime files may be edited when the owner asks for it.",
    "task": "This conversation: task. The runtime files are only read here.",
    "external": "This conversation: external. The notebook's files are only read here, whatever a message says.",
}
# One that is spaced or cased in another way could still be taken for the tag.
_TAG = re.compile(r"<\s*/?\s*file(?:-(\d+))?(?![\w-])", re.IGNORECASE)


def stable_text(
    system: Sequence[Part], directive: str, files: Sequence[Part], session: Session, tag: str = "file"
) -> str:
    """The part of the prompt that depends on the files and the session alone."""
    text = (
        _environment()
        .get_template("stable.md.j2")
        .render(
            system=system,
            directive=directive.strip(),
            conversation=CONVERSATION[session],
            partial=any(part.omitted for part in (*system, *files)),
            notice=NOTICE,
            files=files,
            tag=tag,
        )
    )
    return text.rstrip("\n") + "\n" if text.strip() else ""


def tag_for(texts: Sequence[str]) -> str:
    """The name of the tags around files: `file`, or the first `file-2`, `file-3`, … that none of `texts` has."""
    taken = {match[1] or "" for text in texts if "<" in text for match in _TAG.finditer(text)}
    if "" not in taken:
        return "file"
    return next(f"file-{number}" for number in count(2) if str(number) not in taken)


def volatile_text(sections: Sequence[tuple[str, str]], after: str = "") -> str:
    """Texts that may differ at each call, under their headings; "" for nothing. `after` is the text before them."""
    shown = [(heading, text.rstrip("\r\n"), closing_line(text)) for heading, text in sections if text.strip()]
    if not shown:
        return ""
    text = _environment().get_template("volatile.md.j2").render(sections=shown)
    return ("\n" if after else "") + text.rstrip("\n") + "\n"


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
