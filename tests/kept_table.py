"""`python -m tests.kept_table` writes the table of what a cap keeps of twelve files into docs/prompt.md.

The files are invented, in tests/prompt/fixtures/kept; every cell but the first is computed from them.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import count
from pathlib import Path

from prompt import FileText, Omission, Part, PromptFile, PromptSettings, assemble

PAGE = Path(__file__).parents[1] / "docs" / "prompt.md"
FOLDER = Path(__file__).parent / "prompt" / "fixtures" / "kept"
BEGIN, END = "<!-- kept: python -m tests.kept_table -->\n", "<!-- end of kept -->\n"
NOW = datetime(2031, 3, 3, 9, 0)
# In characters: what is shown of an entry that was left out.
SAMPLE = 32

FILES = {
    "standing-orders.md": ("a list below *You must NEVER*", 250),
    "rules.md": ("one section pinned", 250),
    "reminders.md": ("half of the tasks done", 250),
    "log-oldest-first.md": ("a log, newest last", 200),
    "diary-newest-first.md": ("a log, newest on top, below an undated section", 250),
    "meeting.md": ("a long meeting", 350),
    "booking-service.md": ("code and tables", 300),
    "nested.md": ("bullets ten deep", 250),
    "chinese.md": ("orders and a log", 300),
    "procedure.md": ("steps with sub-steps", 200),
    "quotes.md": ("quotes with attributions", 180),
    "giant-paragraph.md": ("one paragraph", 200),
}


def part_of(name: str, cap: int) -> Part:
    """The file as a task session's prompt shows it in at most `cap` tokens."""
    settings = PromptSettings(
        runtime_files=(PromptFile(name, max_tokens=cap),), core_facts=PromptFile("none.md", optional=True)
    )
    prompt = assemble([FileText(name, (FOLDER / name).read_bytes())], "task", settings, now=NOW)
    return next(part for part in prompt.parts if part.path == name)


def table() -> str:
    """The table, in Markdown."""
    rows = (_row(name, about, part_of(name, cap)) for name, (about, cap) in FILES.items())
    return "".join(
        ("| file | tokens | cap | shown | kept, of each section | left out |\n|---|--:|--:|--:|---|---|\n", *rows)
    )


def written() -> str:
    """The page with the table as it is now."""
    text = PAGE.read_text(encoding="utf-8")
    above, _, rest = text.partition(BEGIN)
    _, _, below = rest.partition(END)
    return f"{above}{BEGIN}\n{table()}\n{END}{below}"


def _row(name: str, about: str, part: Part) -> str:
    kept = " · ".join(_kept(part)) or "its beginning"
    cells = (f"`{name}`: {about}", part.tokens_whole, part.cap, part.tokens, kept, _left(part))
    return f"| {' | '.join(map(str, cells))} |\n"


def _kept(part: Part) -> Iterator[str]:
    """Of each section that is shown, how many of its entries are."""
    left = {omission.anchor: omission.entries for omission in part.omitted}
    for omission in _all_entries(part.path):
        shown = omission.entries - left.get(omission.anchor, 0)
        if shown:
            yield f"{omission.heading} {shown}/{omission.entries}"


def _all_entries(name: str) -> Iterator[Omission]:
    """The sections and their entries: what the smallest cap that still names them leaves out."""
    omitted = next(omitted for cap in count(1) if len(omitted := part_of(name, cap).omitted) > 1 or cap > 40)
    yield from (omission for omission in omitted if omission.anchor)


def _left(part: Part) -> str:
    """How many entries are not shown, and how the first of them begins."""
    entries = sum(omission.entries for omission in part.omitted)
    lines = (line for start, end in part.cut for line in part.whole[start:end].splitlines())
    first = next(line for line in lines if line.strip() and not line.lstrip().startswith("#"))
    return f"{entries or 'the rest'}, first “{_sample(first)}”"


def _sample(line: str) -> str:
    text = line.strip().lstrip("->| ").replace("|", "\\|")
    return text if len(text) <= SAMPLE else text[:SAMPLE].rpartition(" ")[0] + " …"


if __name__ == "__main__":
    PAGE.write_text(written(), encoding="utf-8")
