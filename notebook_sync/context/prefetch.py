"""Syntheses made ahead of whoever asks for them, and which specs that is worth it for.

It makes no more calls than `synthesize` would, which counts them, and never the last ones of a day.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, Protocol

from notebook_sync.errors import BackendDown, ConfigError, NotebookError, UsageError
from notebook_sync.files.ignore import Rules
from notebook_sync.notes.editing.filing import File
from notebook_sync.permissions import Verb
from notebook_sync.sessions import Session

Row = dict[str, Any]

# A reasoner that fails so often in a row is away, and each further question would cost a call, and minutes.
_MOST_FAILURES = 2
# A checkout brings as many specs at once as there are, and who starts on a branch works on few.
_MOST_AT_ONCE = 5
# Of the day's calls, those that are for who asks and waits: a quarter is a dozen of the fifty that are usual.
_LEFT_TO_PEOPLE = 0.25
_WORD = re.compile(r"[^\W_]+")
# A synthesis writes links into memories, and channels are nobody's task.
_NEVER = ("memories/", "channels/")


class Synthesize(Protocol):
    """The use case of that name."""

    def __call__(self, task_spec: str, session: Session) -> Row: ...


class Prefetch:
    """Of one notebook. `require` raises where there are no syntheses, or none for a session; `find` gives the path of
    the note with a name, and `file` its file, as the session may read them; `spent_today` tells how many of the
    `daily_limit` calls were made."""

    def __init__(
        self,
        require: Callable[[Session], None],
        find: Callable[[str, Session, Verb], str],
        file: Callable[[str, Session], File],
        synthesize: Synthesize,
        spent_today: Callable[[], int],
        daily_limit: int,
    ) -> None:
        self._require = require
        self._find = find
        self._file = file
        self._synthesize = synthesize
        self._spent_today = spent_today
        self._daily_limit = daily_limit

    def prefetch(self, specs: Sequence[str], session: Session) -> list[Row]:
        """`{spec, source, cached, trouble}` of each note that is named. Raises as `require`, ConfigError,
        BackendDown."""
        self._require(session)
        rows: list[Row] = []
        failures, trouble = 0, ""
        for name in dict.fromkeys(specs):
            if failures == _MOST_FAILURES:
                rows.append(_row(name, trouble=f"not asked about, after {_MOST_FAILURES} failures: {trouble}"))
                continue
            if self._spent_today() >= self._most:
                rows.append(_row(name, trouble=self._no_more))
                continue
            try:
                made = self._synthesize(self._task(name, session), session)
            except (ConfigError, BackendDown):
                raise
            except NotebookError as error:
                rows.append(_row(name, trouble=str(error)))
                continue
            trouble = made["trouble"]
            failures = failures + 1 if trouble else 0
            rows.append(_row(name, made["source"], cached=made["cached"], trouble=trouble))
        return rows

    @property
    def _most(self) -> int:
        return self._daily_limit - ceil(self._daily_limit * _LEFT_TO_PEOPLE)

    @property
    def _no_more(self) -> str:
        return (
            f"not asked about: of {self._daily_limit:,} questions a day, {self._most:,} may be asked ahead, and the "
            "others are for who waits for an answer; ask with synthesize, or raise daily_limit (tier2)"
        )

    def _task(self, name: str, session: Session) -> str:
        """What the note says, as the session is shown it."""
        file = self._file(self._find(name, session, "read"), session)
        if file.external:
            raise UsageError(f"{file.path}: somebody else wrote it; write what holds of it into a spec of your own")
        return file.shown


@dataclass(frozen=True, slots=True)
class Specs:
    """Which notes are specs, by `patterns` as in .gitignore."""

    rules: Rules

    @classmethod
    def of(cls, patterns: Sequence[str]) -> Specs:
        """Raises ConfigError."""
        rules = Rules.read("", patterns)
        if rules.broken:
            raise ConfigError(f"tier2.specs = {rules.broken[0]!r} is no pattern; write it as in a .gitignore")
        return cls(rules)

    def __contains__(self, path: str) -> bool:
        matching = self.rules.every  # of the whole path: rules ask about its folders on the way down to it
        return matching is not None and not path.startswith(_NEVER) and matching.match_file(path)

    def for_branch(self, branch: str, changed: Mapping[str, int]) -> list[str]:
        """The specs that a new branch is about: those whose name stands in its own, else the one changed last.
        `changed` tells when each note was."""
        latest = sorted((path for path in changed if path in self), key=_newest_first(changed))
        words = _words(branch)
        named = [path for path in latest if _words(_name(path)) in words]
        return named[:_MOST_AT_ONCE] or latest[:1]


def latest_of(changed: Mapping[str, int]) -> list[str]:
    """Those of many specs that are asked about, the newest first. `changed` tells when each was."""
    return sorted(changed, key=_newest_first(changed))[:_MOST_AT_ONCE]


def _newest_first(changed: Mapping[str, int]) -> Callable[[str], tuple[int, str]]:
    return lambda path: (-changed[path], path)


def _row(spec: str, source: str = "", *, cached: bool = False, trouble: str = "") -> Row:
    return {"spec": spec, "source": source, "cached": cached, "trouble": trouble}


def _name(path: str) -> str:
    return path.rpartition("/")[2].rpartition(".")[0]


def _words(name: str) -> str:
    """Whole words, in which whole words are looked for: `pier` is not in `rapier`."""
    return f"-{'-'.join(_WORD.findall(name.casefold()))}-"
