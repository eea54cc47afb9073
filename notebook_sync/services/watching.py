"""What `watch`, `serve` and `mcp` do while they follow a notebook: looks, chores, and what becomes of the prompt and of
the reminders."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator
from functools import partial

import msgspec

from notebook_sync.errors import NotebookError
from notebook_sync.files.locks import FollowLock
from notebook_sync.services.assembling import REMINDERS, assemble, files_of
from notebook_sync.services.core import FAULTS, Core
from notebook_sync.services.reminders import announce_due
from notebook_sync.services.upkeep import POLL_SECONDS, chores_of, note_faults, run_chores
from notebook_sync.sessions import OWNER
from notebook_sync.sync.engine import Engine
from notebook_sync.sync.watch import Hook, Watcher, WatchEvent
from prompt import Prompt, compare

# After trouble it is tried again so soon, and else so late.
_RETRY_SECONDS, _IDLE_SECONDS = 5.0, 60.0
_Answer = tuple[Iterable[WatchEvent], float]


def watch_notebook(core: Core, stop: threading.Event | None = None) -> Iterator[WatchEvent]:
    """Follow the files until the iterator is closed or `stop` is set. Raises FollowLocked, ConfigError."""
    files_of(core)  # the last good settings, while notebook.toml has an error

    def stop_if_asked(_: Collection[str]) -> _Answer:
        if stop is not None and stop.is_set():
            watcher.stop()
        return (), POLL_SECONDS if stop is not None else _IDLE_SECONDS

    hooks: list[Hook] = [PromptHook(core), partial(_report_due, core), stop_if_asked]
    watcher = Watcher(lambda: _engine_of(core), FollowLock(core.place), hooks=hooks, work=Work(core))
    for event in watcher.events():
        if event.kind == "batch":
            failed = event.fields["failed"]
            gone = {*event.fields["paths"], *(each["path"] for each in failed)}
            note_faults(core, [*(each for each in core.noted(FAULTS) if each["path"] not in gone), *failed])
        yield event


class PromptHook:
    """Reports what saves of the prompt's files, and the clock, do to the owner's prompt."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._last = self._prompt()

    def __call__(self, _: Collection[str]) -> _Answer:
        before, self._last = self._last, self._prompt()
        if before is None or self._last is None or before.stable == self._last.stable:
            return (), _IDLE_SECONDS
        change = compare(before, self._last).as_json()
        shown = {name: change[name] for name in ("tokens_before", "fell_out", "came_back", "stable_changes")}
        fields = {"revision": self._last.revision, "tokens": change["tokens_after"], **shown}
        return [WatchEvent("prompt", {**fields, "problems": list(self._last.problems)})], _IDLE_SECONDS

    def _prompt(self) -> Prompt | None:
        """None where it cannot be assembled, which `doctor` explains; following the files goes on."""
        try:
            return assemble(self._core, OWNER)
        except NotebookError:
            return None


def _report_due(core: Core, paths: Collection[str]) -> _Answer:
    """Report each reminder once when it falls due."""
    if paths and REMINDERS not in paths:
        return (), 0.0  # its own time has to be asked for again
    try:
        due, seconds = announce_due(core)
    except NotebookError:
        return (), _RETRY_SECONDS
    return [WatchEvent("reminder_due", msgspec.to_builtins(one)) for one in due], max(seconds, POLL_SECONDS)


class Work:
    """Does the chores in the background. Trouble is reported once, and so is its end."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._events: list[WatchEvent] = []
        self._troubles: dict[str, str] = {}

    def __call__(self) -> _Answer:
        core, self._events, seconds, trouble = self._core, [], _RETRY_SECONDS, ""
        try:
            seconds = run_chores(core.index, chores_of(core), self._report)
        except (NotebookError, OSError) as error:
            trouble = str(error)
        self._note("upkeep", trouble)
        self._note("settings", core.settings_problem)
        return self._events, seconds

    def _report(self, name: str, done: object) -> None:
        """Report what a chore did: publishing says it for each server."""
        servers = done if isinstance(done, dict) else {}
        if published := {kind: each.published for kind, each in servers.items() if each.published}:
            self._events.append(WatchEvent("published", published))
        for kind, each in servers.items():
            self._note(kind, f"{kind}: {each.trouble}" if each.trouble else "")
        self._note(name, f"{name}: {done}" if isinstance(done, Exception) else "")

    def _note(self, what: str, trouble: str) -> None:
        before, self._troubles[what] = self._troubles.get(what, ""), trouble
        if before != trouble:
            self._events.append(WatchEvent("trouble" if trouble else "recovered", {"message": trouble or before}))


def _engine_of(core: Core) -> Engine:
    """The engine for the settings as they are now."""
    core.settings  # noqa: B018 - a changed notebook.toml makes the parts again
    return core.engine
