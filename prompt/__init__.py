r"""The prompt assembler: Markdown files in, one system prompt out, exact to the token.

It reads no file and no clock, and knows notes only as `FileText`: a path and the bytes that its caller read.

    >>> from datetime import datetime
    >>> from prompt import FileText, PromptSettings, assemble, compare, explain
    >>> orders = FileText("runtime/standing-orders.md", b"## Preferences\n\n- Tea, never coffee\n<!-- ask Ines -->\n")
    >>> prompt = assemble([orders], "task", PromptSettings(), now=datetime(2026, 3, 1))
    >>> [(part.name, part.tokens) for part in prompt.parts if part.digest]
    [('Standing Orders', 9)]
    >>> explain("ask Ines", prompt, [orders])[0].reason
    'comment'

What a change of the files or of the limits would do, before it is made:

    >>> smaller = assemble([orders], "task", PromptSettings(max_tokens_per_file=4), now=datetime(2026, 3, 1))
    >>> [(lost.heading, lost.tokens) for lost in compare(prompt, smaller).fell_out]
    [('', 9)]
    >>> smaller.problems[-1]
    'runtime/standing-orders.md: a cap of 4 tokens is too small; at least 9 are needed'

Texts that differ from call to call come last, as `Volatile`, so that a provider's cache keeps all before them.
`Assembler` does the same for a process that stays: it remembers what did not change.

Useful by themselves: `Outline` (the tree of a Markdown text), `visible` (what a model may see of it), `trim` and
`Cutting` (a text within so many tokens), `quote` and `fence_external` (text that the owner did not write),
`count_tokens`, `share`, and `prompt.dates` (dates in rules and reminders).
"""

from prompt.assemble import Assembler, assemble
from prompt.budget import Claim, Count, CountCache, Counter, count_tokens, encoding_named, share
from prompt.ends import closing_line, omission_line
from prompt.explain import Change, Found, Passage, compare, explain
from prompt.hidden import Visible, end_of_frontmatter, visible
from prompt.layout import fence_external, quote
from prompt.outline import Block, Lines, Outline, Section, Span, anchors_of, plain_text, shown_text
from prompt.trim import Cutting, Trimmed, trim
from prompt.values import (
    RUNTIME_FILES,
    SESSIONS,
    Entry,
    Expired,
    FileText,
    Gap,
    Omission,
    Part,
    Prompt,
    PromptError,
    PromptFile,
    PromptSettings,
    PromptTooSmall,
    Session,
    VocabularyMissing,
    Volatile,
    VolatileSection,
)

__all__ = [
    "RUNTIME_FILES",
    "SESSIONS",
    "Assembler",
    "Block",
    "Change",
    "Claim",
    "Count",
    "CountCache",
    "Counter",
    "Cutting",
    "Entry",
    "Expired",
    "FileText",
    "Found",
    "Gap",
    "Lines",
    "Omission",
    "Outline",
    "Part",
    "Passage",
    "Prompt",
    "PromptError",
    "PromptFile",
    "PromptSettings",
    "PromptTooSmall",
    "Section",
    "Session",
    "Span",
    "Trimmed",
    "Visible",
    "VocabularyMissing",
    "Volatile",
    "VolatileSection",
    "anchors_of",
    "assemble",
    "closing_line",
    "compare",
    "count_tokens",
    "encoding_named",
    "end_of_frontmatter",
    "explain",
    "fence_external",
    "omission_line",
    "plain_text",
    "quote",
    "share",
    "shown_text",
    "trim",
    "visible",
]
