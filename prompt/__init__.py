r"""The prompt assembler: Markdown files in, one system prompt out, exact to the token.

It reads no file and no clock, and knows notes only as `FileText`: a path and the bytes its caller read.

    >>> from datetime import datetime
    >>> from prompt import FileText, PromptSettings, assemble, compare, explain
    >>> orders = FileText("runtime/standing-orders.md", b"## Preferences\n\n- Tea, never coffee\n<!-- ask Ines -->\n")
    >>> prompt = assemble([orders], "task", PromptSettings(), now=datetime(2026, 3, 1))
    >>> [(part.name, part.tokens) for part in prompt.parts if part.digest]
    [('Standing Orders', 9)]
    >>> explain("ask Ines", prompt, [orders])[0].reason
    'comment'

What a change of the files or of the limits would do to it, before it is made:

    >>> smaller = assemble([orders], "task", PromptSettings(max_tokens_per_file=4), now=datetime(2026, 3, 1))
    >>> [(lost.heading, lost.tokens) for lost in compare(prompt, smaller).fell_out]
    [('Preferences', 8)]
    >>> smaller.problems[-1]
    'runtime/standing-orders.md: a cap of 4 tokens cannot say what it leaves out; at least 9 are needed'

Texts that differ from call to call come last, as `Volatile`, so that a provider's cache keeps all before them; what the
owner did not write goes there in a `fence_external`. `Assembler` is the same for a process that stays: it remembers
what did not change.
"""

from prompt.assemble import Assembler, assemble
from prompt.budget import count_many, count_tokens, encoding_named, share
from prompt.compare import Change, Passage, compare
from prompt.counts import CountCache
from prompt.errors import PromptError, VocabularyMissing
from prompt.explain import Found, explain
from prompt.fence import fence_external, quote
from prompt.trim import Trimmed, trim
from prompt.values import (
    RUNTIME_FILES,
    SESSIONS,
    Expired,
    FileText,
    Omission,
    Part,
    Prompt,
    PromptFile,
    PromptSettings,
    Session,
    Volatile,
)

__all__ = [
    "RUNTIME_FILES",
    "SESSIONS",
    "Assembler",
    "Change",
    "CountCache",
    "Expired",
    "FileText",
    "Found",
    "Omission",
    "Part",
    "Passage",
    "Prompt",
    "PromptError",
    "PromptFile",
    "PromptSettings",
    "Session",
    "Trimmed",
    "VocabularyMissing",
    "Volatile",
    "assemble",
    "compare",
    "count_many",
    "count_tokens",
    "encoding_named",
    "explain",
    "fence_external",
    "quote",
    "share",
    "trim",
]
