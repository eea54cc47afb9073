"""Structured memories: what was decided, found or learnt, with its reasons."""
