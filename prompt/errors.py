"""What can go wrong while a prompt is assembled. A note's text is never a reason: any text gives a prompt."""

from __future__ import annotations


class PromptError(Exception):
    """Root of the package's errors."""


class VocabularyMissing(PromptError):
    """The vocabulary of `encoding` is not on this machine; counting would need the network or a guess."""

    def __init__(self, encoding: str, reason: str) -> None:
        super().__init__(
            f"the vocabulary of the encoding {encoding!r} cannot be had offline ({reason}); "
            'set prompt.encoding = "cl100k_base", which is built in, '
            "or put the vocabulary where TIKTOKEN_CACHE_DIR points"
        )
        self.encoding = encoding
        self.reason = reason
