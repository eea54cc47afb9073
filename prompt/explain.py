"""Did this text reach the model, and if not, what took it out? Answers from the prompt's own account, no guess."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from prompt.anchors import heading_text
from prompt.blocks import Lines, parse_blocks
from prompt.comments import end_of_frontmatter
from prompt.values import Part, Prompt, Source


@dataclass(frozen=True, slots=True)
class Found:
    """One place where the text stands: its 1-based line, and the heading above it ("" before the first).

    `reason` is "" when it is in the prompt, else `cap`, `comment`, `expired`, `frontmatter`, `session filter`,
    or `not a prompt file`.
    """

    path: str
    line: int
    section: str
    in_prompt: bool
    reason: str = ""


def explain(text: str, prompt: Prompt, sources: Sequence[Source]) -> list[Found]:
    """Every place in `sources` where `text` stands, and whether `prompt`, assembled from them, shows it.

    Case and the kind of white space do not matter, and the text may run over several lines. It counts as shown when
    all of it is.
    """
    parts = {part.path: part for part in prompt.parts}
    found = []
    for source in sources:
        content = (source.content or b"").decode(errors="replace")
        places = list(_places(text, content))
        lines, headings = Lines(content), _headings(content) if places else []
        for start, end in places:
            reason = _reason(source.path, start, end, parts.get(source.path), prompt)
            section = next((heading for at, heading in reversed(headings) if at <= start), "")
            found.append(Found(source.path, lines.at(start) + 1, section, not reason, reason))
    return found


def _reason(path: str, start: int, end: int, part: Part | None, prompt: Prompt) -> str:
    if path in prompt.filtered:
        return "session filter"
    if part is None:
        return "not a prompt file"
    return next((gap.reason for gap in part.gaps if gap.start < end and start < gap.end), "")


def _places(wanted: str, content: str) -> Iterator[tuple[int, int]]:
    """Where `wanted` stands in `content`, as characters of it; each place once, none inside another."""
    needle = " ".join(wanted.casefold().split())
    if not needle:
        return
    folded, origin = _folded(content)
    at = folded.find(needle)
    while at >= 0:
        yield origin[at], origin[at + len(needle) - 1] + 1
        at = folded.find(needle, at + len(needle))


def _folded(content: str) -> tuple[str, list[int]]:
    """`content` with case folded and white space made single spaces, and where each of its characters comes from."""
    pieces: list[str] = []
    origin: list[int] = []
    in_space = False
    for position, character in enumerate(content):
        if character.isspace():
            if not in_space:
                pieces.append(" ")
                origin.append(position)
            in_space = True
        else:
            fold = character.casefold()
            pieces.append(fold)
            origin.extend([position] * len(fold))
            in_space = False
    return "".join(pieces), origin


def _headings(content: str) -> list[tuple[int, str]]:
    """Where each section begins, and its heading."""
    begin = end_of_frontmatter(content)
    body = content[begin:]
    lines = Lines(body)
    nodes = [node for node in parse_blocks(body).children if node.type == "heading"]
    return [(begin + lines.span_of(node)[0], heading_text(body[slice(*lines.span_of(node))])) for node in nodes]
