"""The package by itself: it stands alone, its example runs, and it is light to start."""

from __future__ import annotations

import doctest
import subprocess
import sys
from pathlib import Path

import prompt

ROOT = Path(prompt.__file__).parent.parent


def test_the_example_runs() -> None:
    assert doctest.testmod(prompt).failed == 0
    assert doctest.testmod(prompt).attempted > 0


def test_every_public_name_is_there_and_says_what_it_is() -> None:
    for name in prompt.__all__:
        value = getattr(prompt, name)
        assert value.__doc__ or name == "Session", name


def run(code: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_importing_it_loads_neither_the_notebook_nor_anything_heavy() -> None:
    heavy = ("notebook_sync", "tiktoken", "jinja2", "markdown_it", "regex")
    assert run(f"import sys, prompt; print([name for name in {heavy} if name in sys.modules])") == "[]"


def test_an_unchanged_notebook_needs_no_vocabulary(tmp_path: Path) -> None:
    code = """
import sys
from datetime import datetime
from pathlib import Path
from notebook_sync.notes.prompting.count_file import CountFile
from prompt import FileText, PromptSettings, assemble
counts = CountFile(Path(sys.argv[1]))
rules = FileText("runtime/reminders.md", b"<!-- grammar -->\\n\\n## Today\\n\\n" + b"- [ ] wind the clock\\n" * 900)
assemble([rules], "owner", PromptSettings(), now=datetime(2026, 3, 1), counts=counts)
counts.save()
print("tiktoken" in sys.modules)
"""
    path = str(tmp_path / "counts.json")
    assert [run(code, path), run(code, path)] == ["True", "False"]
