"""`python -m tests.prompt_picture` draws docs/pictures/prompt-cut.svg: one prompt, cut in two ways.

Every line in it is computed from the files below, which are invented; nothing is retouched. The same code gives the
same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from pathlib import Path

from markdown_it import MarkdownIt

from prompt import FileText, PromptSettings, assemble, count_tokens

PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "prompt-cut.svg"
CAP = 100
# What many programs take a token to be.
CHARACTERS_OF_A_TOKEN = 4

FILES = {
    "runtime/external-communications.md": """\
## Permanent Rules

- **Odile Marchetti** (odile@ferry.example): always respond, within the morning
- **Harbour office** (+00 555 0142): draft only
- **Pilots' guild** (pilots@ferry.example): draft only
- **Newsletters** (news@tours.example): never respond

## Channel-Specific

### deck-crew

- **Everyone** (deck-crew): observe only
- **Ines Holt** (ines@ferry.example): send her the passenger list only when Odile has signed it

## Temporary Instructions

- **Tidewater Tours** (tours@ferry.example): block
""",
    "runtime/reminders.md": """\
## Today

- [ ] Order lamp oil
""",
    "runtime/standing-orders.md": """\
## Crossings

| crossing | leaves | coins |
|----------|--------|-------|
| early    | 06:40  | 4     |
| noon     | 12:00  | 4     |
| late     | 17:30  | 5     |
| night    | 23:10  | 9     |

- Offer the early crossing first
- Answer in the language of the question

## Cancelled crossings

When one is cancelled, send this and no more:

```text
This crossing is cancelled. Your ticket is good for the
next one.
```

## Boundaries
<!-- pin -->

- Never promise a refund
- Never name a passenger to another passenger
""",
    "facts/core.md": """\
- The ferry is called Marguerite
""",
}

COLUMNS, ROW, GLYPH = 58, 17, 7.4
MARGIN, GAP, HEAD, FOOT = 16, 20, 62, 16
PANEL = round(COLUMNS * GLYPH) + 2 * 12
WIDTH = 2 * PANEL + GAP + 2 * MARGIN


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a prompt as it is drawn. `mark` is how: text, code, cut or omitted."""

    text: str
    mark: str = "text"


def cut_anywhere() -> str:
    """The prompt with each file cut at a number of characters."""
    names = {file.path: file.heading for file in PromptSettings().shown_files}
    shown = {path: text[: CAP * CHARACTERS_OF_A_TOKEN].rstrip("\n") for path, text in FILES.items()}
    return "\n\n".join(f"## {names[path]}\n\n{text}" for path, text in shown.items()) + "\n"


def cut_by_structure() -> str:
    """The prompt as the package `prompt` makes it, of the same files, with the same cap."""
    sources = [FileText(path, text.encode()) for path, text in FILES.items()]
    return assemble(sources, "task", PromptSettings(max_tokens_per_file=CAP), now=datetime(2026, 3, 1)).text


def largest(prompt_text: str) -> int:
    """The most real tokens that a file has in it. Files begin below the headings that the layout gives them."""
    names = [f"## {file.heading}\n" for file in PromptSettings().shown_files]
    starts = sorted(prompt_text.index(name) for name in names)
    return max(
        count_tokens(_file_in(prompt_text[start:end]))
        for start, end in zip(starts, [*starts[1:], len(prompt_text)], strict=True)
    )


def drawn() -> str:
    """The picture."""
    left, right = cut_anywhere(), cut_by_structure()
    panels = [
        (
            f"cut at {CAP} × {CHARACTERS_OF_A_TOKEN} characters a file",
            f"largest file: {largest(left)} real tokens",
            left,
        ),
        (f"cut by notebook-sync to {CAP} tokens a file", f"largest file: {largest(right)} real tokens", right),
    ]
    folded = [(title, note, list(_folded(_marked(text)))) for title, note, text in panels]
    height = HEAD + max(len(lines) for _, _, lines in folded) * ROW + FOOT + MARGIN
    return "".join((_opening(height), *(_panel(at, height, *panel) for at, panel in enumerate(folded)), "</svg>\n"))


def _file_in(section: str) -> str:
    """A file's own text in its section of the prompt: between its tags, where it has any."""
    body = section.partition("\n\n")[2]
    inside = body.partition(">\n\n")[2].partition("\n</file")[0] if body.startswith("<file") else body
    return inside.strip("\n") + "\n"


def _marked(text: str) -> Iterator[Line]:
    """Lines of code, lines that a cut ends in the middle, omission lines, by a Markdown parser."""
    blocks = MarkdownIt().enable("table").parse(text)
    code = {number for block in blocks if block.type == "fence" and block.map for number in range(*block.map)}
    whole = {line for source in FILES.values() for line in source.splitlines()}
    ends = {file[: CAP * CHARACTERS_OF_A_TOKEN].splitlines()[-1] for file in FILES.values()} - whole
    for number, line in enumerate(text.splitlines()):
        if line in ends:
            yield Line(line, "cut")
        elif line.startswith("[…"):
            yield Line(line, "omitted")
        else:
            yield Line(line, "code" if number in code else "text")


def _folded(lines: Sequence[Line] | Iterator[Line]) -> Iterator[Line]:
    """Lines as wide as a panel; what goes on is indented."""
    for line in lines:
        rest, indent = line.text, ""
        while len(indent + rest) > COLUMNS:
            at = (indent + rest).rfind(" ", len(indent) + 1, COLUMNS + 1)
            at = at - len(indent) if at > len(indent) else COLUMNS - len(indent)
            yield Line(indent + rest[:at], line.mark)
            rest, indent = rest[at:].lstrip(), "    "
        yield Line(indent + rest, line.mark)


def _opening(height: int) -> str:
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"
  aria-labelledby="t d" font-size="12.3">
  <title id="t">One prompt, cut in two ways</title>
  <desc id="d">Left, each file is cut at a number of characters: a rule loses its second half and a code block swallows
  what follows. Right, notebook-sync leaves out whole entries and says so.</desc>
  <style>
    text {{ font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #1f2430 }}
    .title {{ font-weight: 600; font-size: 14px }} .note {{ fill: #4c566a }}
    .panel {{ fill: #ffffff; stroke: #c4cad6 }} .code {{ fill: #e9edf4 }} .cut {{ fill: #ffd9d6 }}
    .omitted {{ fill: #dff3df }}
  </style>
  <rect width="{WIDTH}" height="{height}" rx="8" fill="#f6f7fa"/>
"""


def _panel(at: int, height: int, title: str, note: str, lines: Sequence[Line]) -> str:
    left = MARGIN + at * (PANEL + GAP)
    panel = f'x="{left}" y="{HEAD - 6}" width="{PANEL}" height="{height - HEAD - MARGIN + 6}"'
    drawing = [
        f'  <text class="title" x="{left}" y="28">{escape(title)}</text>\n',
        f'  <text class="note" x="{left}" y="46">{escape(note)}</text>\n',
        f'  <rect class="panel" {panel} rx="6"/>\n',
    ]
    for number, line in enumerate(lines):
        top = HEAD + number * ROW
        if line.mark != "text":
            drawing.append(
                f'  <rect class="{line.mark}" x="{left + 6}" y="{top}" width="{PANEL - 12}" height="{ROW}"/>\n'
            )
        if line.text:
            place = f'x="{left + 12}" y="{top + 13}" textLength="{len(line.text) * GLYPH:.1f}"'
            drawing.append(
                f'  <text xml:space="preserve" {place} lengthAdjust="spacingAndGlyphs">{escape(line.text)}</text>\n'
            )
    return "".join(drawing)


if __name__ == "__main__":
    PICTURE.write_text(drawn(), encoding="utf-8")
