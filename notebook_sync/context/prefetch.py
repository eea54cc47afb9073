"""Syntheses made before they are asked for: of specs that were saved, and of those that a new branch is about.

They never use the last quarter of a day's questions, and never wait on the thread that follows the files.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Iterable, Sequence
from math import ceil

from notebook_sync.context.synthesis import LOCAL, Synthesizer, reasoner_of, require_tier2
from notebook_sync.errors import NotebookError, UsageError
from notebook_sync.files.frontmatter import is_external
from notebook_sync.registry import Result
from notebook_sync.services.core import Core
from notebook_sync.services.view import View, resolve
from notebook_sync.sessions import OWNER, Session
from notebook_sync.store.rows import Is, Row, both

_QUIET_SECONDS = 10.0
# A checkout brings many specs at once, and who starts on a branch works on few.
_MOST_AT_ONCE = 5
# A model that fails so often in a row is away: each further question would cost a call, and minutes.
_MOST_FAILURES = 2
_RETRY_SECONDS = (60.0, 300.0)
# A synthesis writes links into memories; and no private note is a task, nor is what rules the agent.
_NEVER = ("memories/", "channels/", "runtime/", "facts/")
_STATE, _FIELDS = "prefetch", ("path", "updated_at", "rev")
_WORD = re.compile(r"[^\W_]+")
_log = logging.getLogger(__name__)


class Prefetched(Result, frozen=True):
    """`source` is "" for a spec that no model was asked about; `trouble` says why."""

    spec: str
    source: str = ""
    cached: bool = False
    trouble: str | None = None


def prefetch(core: Core, synthesizer: Synthesizer, specs: Sequence[str], session: Session) -> list[Prefetched]:
    """Make the syntheses of these notes, at most until three quarters of the day's questions are asked. Raises
    UsageError where nobody is set to be asked."""
    require_tier2(core.settings)
    reasoner_of(core.settings)
    limit = core.settings.tier2.daily_limit
    done, failures = list[Prefetched](), 0
    for name in dict.fromkeys(specs):
        if failures == _MOST_FAILURES:
            done.append(Prefetched(name, trouble=f"not asked about, after {failures} failures"))
            continue
        try:
            text = _task(core, name, session)
            made = synthesizer.ask(text, session, most=limit - ceil(limit / 4), counts_use=False)
        except NotebookError as error:
            done.append(Prefetched(name, trouble=str(error)))
            continue
        failures = failures + 1 if made.source == LOCAL else 0
        done.append(Prefetched(name, made.source, made.cached, made.trouble))
    return done


class Prefetcher:
    """Looks for specs that were saved and for a new branch, as a chore of whichever process follows the notebook."""

    def __init__(self, core: Core, synthesizer: Synthesizer) -> None:
        self._core = core
        self._synthesizer = synthesizer
        self._thread: threading.Thread | None = None

    def look(self) -> threading.Thread | None:
        """Begin with what is due, in a thread of its own, unless the last one is still at work."""
        if self._thread and self._thread.is_alive():
            return None
        held, now = self._core.index.cache.one(_STATE), self._now()
        state = held["value"] if held else now  # what was there before the first look is nobody's news
        due = self._due(state, now)
        if due:
            self._thread = threading.Thread(target=self._run, args=(due, state, now), name="prefetch", daemon=True)
            self._thread.start()
            return self._thread
        if due is not None and (held is None or state != now):
            self._remember(now)
        return None

    def _now(self) -> Row:
        """How far the index is, and the branch that is checked out, "" for none."""
        stamp = self._core.history.head_stamp()
        head = os.fsdecode(stamp[0]) if isinstance(stamp, tuple) else ""
        branch = head.removeprefix("ref: refs/heads/").strip() if head.startswith("ref: ") else ""
        return {"rev": self._core.index.rev(), "branch": branch, "tries": 0, "after": 0.0}

    def _due(self, state: Row, now: Row) -> list[str] | None:
        """The specs to ask about, the newest first; None while somebody is saving, or after a failure."""
        where = both(Is("rev", ">", state["rev"] if now["branch"] == state["branch"] else 0), Is("provenance", "=", ""))
        notes = {path: (at, rev) for path, at, rev in self._core.index.documents.tuples(_FIELDS, where)}
        newest = sorted(specs_in(notes, self._core.settings.tier2.specs), key=lambda path: notes[path], reverse=True)
        saved = [path for path in newest if notes[path][1] > state["rev"]]
        moment = self._core.now()
        is_busy = bool(saved) and 0 <= (moment - notes[saved[0]][0]).total_seconds() < _QUIET_SECONDS
        if is_busy or moment.timestamp() < state["after"]:
            return None
        about = specs_of_branch(now["branch"], newest) if now["branch"] != state["branch"] else []
        return list(dict.fromkeys([*about, *saved]))[:_MOST_AT_ONCE]

    def _run(self, due: Sequence[str], state: Row, now: Row) -> None:
        """Ask about these specs. Where the model is away they are due again, twice."""
        try:
            failed = sum(each.source == LOCAL for each in prefetch(self._core, self._synthesizer, due, OWNER))
        except NotebookError as error:
            _log.info("no syntheses are made ahead: %s", error)
            failed = len(due)
        tries = state["tries"]
        if failed >= min(_MOST_FAILURES, len(due)) and tries < len(_RETRY_SECONDS):
            after = self._core.now().timestamp() + _RETRY_SECONDS[tries]
            now = {**state, "tries": tries + 1, "after": after}
        self._remember(now)

    def _remember(self, state: Row) -> None:
        row = {"id": _STATE, "kind": _STATE, "value": state, "made_at": self._core.now()}
        self._core.index.cache.put([row])


def specs_in(paths: Iterable[str], patterns: Sequence[str]) -> list[str]:
    """The notes that are specs, by patterns as in .gitignore."""
    from pathspec import GitIgnoreSpec  # takes a while, and few notebooks have specs

    found = GitIgnoreSpec.from_lines(patterns).match_files(paths)
    return [path for path in found if not path.startswith(_NEVER)]


def specs_of_branch(branch: str, specs: Sequence[str]) -> list[str]:
    """The specs, the newest first, that a branch is about: those whose name is in its own, else the newest."""
    words = _words(branch)
    named = [path for path in specs if _words(path.rpartition("/")[2].removesuffix(".md")) in words]
    return named or list(specs[:1])


def _words(name: str) -> str:
    """Whole words, to look for whole words in: `pier` is not in `rapier`."""
    return f"-{'-'.join(_WORD.findall(name.casefold()))}-"


def _task(core: Core, name: str, session: Session) -> str:
    """What a spec says, as the session sees it."""
    view = View(core, session)
    path, _ = resolve(core, view, name, operation="context prefetch")
    raw = core.tree.read(path).raw
    if path.startswith(_NEVER) or is_external(raw):
        raise UsageError(f"{path}: memories, private notes and text of others are no specs", next="write a page of it")
    return view.shown(path, raw.decode(errors="replace"))
