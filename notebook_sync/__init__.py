"""A file-first Markdown notebook for AI agents, with a sync engine."""

__version__ = "0.1.0"
