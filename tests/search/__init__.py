"""Tests of finding: words, passages, ranking, vectors, search."""
