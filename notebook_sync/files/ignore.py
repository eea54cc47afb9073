"""Which names are notes: hidden ones never, `.gitignore` and `exclude` may say no, everything else with .md is one.

The rules are relative to the notebook, so a notebook below `.venv` or `node_modules` is seen like any other.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

GITIGNORE = ".gitignore"


def is_hidden(name: str) -> bool:
    """Dot files and folders: `.git`, `.notebook`, `.obsidian`, and what editors leave beside a file they write."""
    return name.startswith(".")


def is_note_name(name: str) -> bool:
    """`.md` in any case decides; backup and temporary names (`x.md~`, `4913`, `x.md.tmp`, `#x.md#`) do not end so."""
    return name[-3:].lower() == ".md" and not is_hidden(name)


@dataclass(frozen=True, slots=True)
class Rules:
    """The ignore rules of one folder, `base` ("" for the root), split so that most names need no look-up.

    `broken` are lines that are no pattern; like git, nothing is matched by them.
    """

    base: str
    every: GitIgnoreSpec | None
    asks_about_files: bool
    broken: tuple[str, ...] = ()

    @classmethod
    def read(cls, base: str, lines: Iterable[str]) -> Rules:
        """Rules as git reads them. A rule that can only name hidden things is dropped: those are never notes."""
        kept = [line for line in map(str.rstrip, lines) if line and not line.startswith(("#", ".", "/."))]
        if not kept:
            return cls(base, None, False)
        # Imported late: most notebooks have no such rule, and a prompt should not pay for pathspec's start.
        from pathspec import GitIgnoreSpec

        compiled = {line: _compiled(line) for line in kept}
        every = GitIgnoreSpec([pattern for line in kept for pattern in compiled[line] or ()])
        broken = tuple(line for line in kept if compiled[line] is None)
        return cls(base, every, any(not line.endswith("/") for line in kept), broken)

    def verdict(self, path: str, *, is_dir: bool) -> bool | None:
        """True: ignored; False: expressly kept; None: these rules say nothing."""
        if self.every is None or not (is_dir or self.asks_about_files):
            return None
        relative = path[len(self.base) + 1 :] if self.base else path
        return self.every.check_file(relative + "/" if is_dir else relative).include


# What git knows and pathspec does not.
_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": " \t",
    "digit": "0-9",
    "lower": "a-z",
    "space": " \t\r\n\v\f",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}
_CLASS = re.compile(r"\[:(\w+):\]")


def _compiled(line: str) -> list[GitIgnoreSpecPattern] | None:
    """The pattern of one line, none for a line without one; None for a line that is broken."""
    from pathspec import GitIgnoreSpec

    try:
        spelled = _CLASS.sub(lambda found: _CLASSES[found[1]], line)
        with warnings.catch_warnings():
            warnings.simplefilter("error", FutureWarning)  # a bracket that git and `re` may read in two ways
            return list(GitIgnoreSpec.from_lines([spelled]).patterns)
    except (ValueError, KeyError, re.error, FutureWarning):
        return None


def is_ignored(rules: Iterable[Rules], path: str, *, is_dir: bool) -> bool:
    """Whether the innermost folder's rules that speak of `path` ignore it. `rules` stand outermost first."""
    ignored = False
    for one in rules:
        said = one.verdict(path, is_dir=is_dir)
        if said is not None:
            ignored = said
    return ignored
