"""What can go wrong while a prompt is assembled. The text of a file is never a reason: any text gives a prompt.

PromptError
├── PromptTooSmall       the total has no room for one line of each file
└── VocabularyMissing    the encoding's vocabulary is not on this machine
"""

from __future__ import annotations


class PromptError(Exception):
    """Root of the package's errors."""


class PromptTooSmall(PromptError):
    """`max_tokens` has no room for one line of each file; a total of `enough` has.

    `fits` is a text within `max_tokens`: one line for each file that it has room for, those of high priority first.
    """

    def __init__(self, max_tokens: int, enough: int, fits: str) -> None:
        super().__init__(
            f"prompt.max_tokens = {max_tokens} is too small for the files of the prompt; set it to {enough} or more"
        )
        self.max_tokens = max_tokens
        self.enough = enough
        self.fits = fits


class VocabularyMissing(PromptError):
    """The vocabulary of `encoding` is not on this machine; counting would need the network or a guess."""

    def __init__(self, encoding: str, reason: str) -> None:
        super().__init__(
            f"the vocabulary of the encoding {encoding!r} is not available offline ({reason}); "
            'set prompt.encoding = "cl100k_base", which is built in, '
            "or put the vocabulary into the folder that TIKTOKEN_CACHE_DIR names"
        )
        self.encoding = encoding
        self.reason = reason
