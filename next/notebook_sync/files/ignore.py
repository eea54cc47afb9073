"""The rules of `.gitignore` files and of `notebook.exclude`: which files and folders are left out.

Rules are relative to the notebook, so that one below `.venv` or `node_modules` is seen like any other.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

GITIGNORE = ".gitignore"


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of the folder `base` ("" for the root). `broken` are lines that are no pattern and match nothing.

    `any_pattern` is all patterns in one, so that most names need one look.
    """

    base: str
    patterns: tuple[tuple[re.Pattern[str], bool], ...]
    any_pattern: re.Pattern[str]
    broken: tuple[str, ...]

    def verdict(self, path: str, *, is_dir: bool) -> bool | None:
        """True: left out; False: explicitly kept; None: no rule matches."""
        relative = path.removeprefix(f"{self.base}/") + ("/" if is_dir else "")
        if not self.any_pattern.search(relative):
            return None
        return next((leaves_out for pattern, leaves_out in reversed(self.patterns) if _names(pattern, relative)), None)


@lru_cache  # a look at many files asks for the same rules again and again
def read_rules(base: str, lines: tuple[str, ...]) -> tuple[Rules, ...]:
    """The rules in these lines, as git reads them, or nothing. Those that name only hidden files are dropped, since
    hidden files are no notes anyway."""
    compiled = {line: _compiled(line) for line in lines if line.strip() and not line.startswith(("#", ".", "/."))}
    patterns = tuple(pattern for pattern in compiled.values() if pattern)
    alternatives = (re.sub(r"\(\?P<\w+>", "(?:", each.pattern) for each, _ in patterns)
    any_pattern = re.compile("|".join(alternatives) or "(?!)")  # without one, nothing
    broken = tuple(line for line, pattern in compiled.items() if pattern is None)
    return (Rules(base, patterns, any_pattern, broken),) if compiled else ()


def is_ignored(rules: Sequence[Rules], path: str, *, is_dir: bool) -> bool:
    """Whether rules leave out `path`; `rules` are sorted from the root inwards, and the innermost that match decide.

    What is in a folder that is left out is left out too; that is the caller's to know.
    """
    verdicts = (each.verdict(path, is_dir=is_dir) for each in reversed(rules))
    return next((verdict for verdict in verdicts if verdict is not None), False)


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
# The group with which pathspec says where a folder's name ends.
_FOLDER = "ps_d"
_CLASS = re.compile(r"\[:(\w+):\]")


def _compiled(line: str) -> tuple[re.Pattern[str], bool] | None:
    """The pattern of a line and whether it leaves out what it matches; None for a broken line, which, as in git,
    matches nothing."""
    # Most notebooks have no rule, and starting pathspec takes longer than a small scan.
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    try:
        spelled = _CLASS.sub(lambda found: _CLASSES[found[1]], line)
        with warnings.catch_warnings():
            warnings.simplefilter("error", FutureWarning)  # a bracket that git and `re` read differently
            pattern = GitIgnoreSpecPattern(spelled)
    except (ValueError, KeyError, re.error, FutureWarning):
        return None
    return (pattern.regex, pattern.include) if pattern.regex and pattern.include is not None else None


def _names(pattern: re.Pattern[str], path: str) -> bool:
    """Whether a pattern is about `path` itself, which ends in `/` for a folder, not about a folder that it is in."""
    for found in pattern.finditer(path):
        ends_folder = found.groupdict().get(_FOLDER) is not None
        if ends_folder == (path[-1] == "/" and found.end() == len(path)):
            return True
    return False
