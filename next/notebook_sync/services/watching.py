"""What `watch`, `serve` and `mcp` do while they follow a notebook: looks, publishing, upkeep, and what becomes of the
prompt and the reminders."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator
from functools import partial

import msgspec

from notebook_sync.errors import BackendDown, MissingExtra, NotebookError
from notebook_sync.files.locks import FollowLock
from notebook_sync.services.assembling import REMINDERS, assemble, files_of
from notebook_sync.services.core import Core
from notebook_sync.services.reminders import announce_due
from notebook_sync.services.upkeep import chores_of, embed_missing, embed_second, note_faults
from notebook_sync.sessions import OWNER
from notebook_sync.sync.engine import Engine
from notebook_sync.sync.upkeep import run_chores
from notebook_sync.sync.watch import Hook, Watcher, WatchEvent
from prompt import Prompt, compare

# How long publishing may take at once, and how soon changes of other processes are looked for.
_PUBLISH_SECONDS, _POLL_SECONDS = 10.0, 0.5
_EMBEDDED_AT_ONCE = 64
# A model of sentences takes a hundred times as long.
_FEW_EMBEDDED = 8
# After trouble it is tried again so soon, and else so late.
_RETRY_SECONDS, _IDLE_SECONDS = 5.0, 60.0
_Answer = tuple[Iterable[WatchEvent], float]


def watch_notebook(core: Core, stop: threading.Event | None = None) -> Iterator[WatchEvent]:
    """Follow the files until the iterator is closed or `stop` is set. Raises FollowLocked, ConfigError."""
    files_of(core)  # the last good settings, while notebook.toml has an error

    def stop_if_asked(_: Collection[str]) -> _Answer:
        if stop is not None and stop.is_set():
            watcher.stop()
        return (), _POLL_SECONDS if stop is not None else _IDLE_SECONDS

    hooks: list[Hook] = [PromptHook(core), partial(_report_due, core), stop_if_asked]
    watcher = Watcher(lambda: _engine_of(core), FollowLock(core.place), hooks=hooks, work=Work(core))
    for event in watcher.events():
        if event.kind == "batch":
            note_faults(core, event.fields)
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
    return [WatchEvent("reminder_due", msgspec.to_builtins(one)) for one in due], max(seconds, _POLL_SECONDS)


class Work:
    """What is done in the background: publishing, embedding, chores. Trouble is reported once, and so is its end."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._troubles: dict[str, str] = {}

    def __call__(self) -> _Answer:
        core, events, seconds = self._core, list[WatchEvent](), _IDLE_SECONDS
        troubles = {"settings": core.settings_problem}
        try:
            core.index.checkpoint()
            if core.has_targets:
                done = core.publisher.publish(_PUBLISH_SECONDS)
                troubles |= {kind: f"{kind}: {each.trouble}" if each.trouble else "" for kind, each in done.items()}
                published = {kind: each.published for kind, each in done.items() if each.published}
                events += [WatchEvent("published", published)] if published else []
                seconds = _POLL_SECONDS
            try:
                made = embed_missing(core, _EMBEDDED_AT_ONCE) or embed_second(core, _FEW_EMBEDDED)
                seconds = 0.0 if made else seconds
            except (BackendDown, MissingExtra) as error:
                troubles["embeddings"] = str(error)
            seconds = min(seconds, run_chores(core.index, chores_of(core)))
        except (NotebookError, OSError) as error:
            troubles["upkeep"], seconds = str(error), _RETRY_SECONDS
        for what in troubles.keys() | self._troubles.keys():
            before, now = self._troubles.get(what, ""), troubles.get(what, "")
            if before != now:
                events.append(WatchEvent("trouble" if now else "recovered", {"message": now or before}))
        self._troubles = troubles
        return events, seconds


def _engine_of(core: Core) -> Engine:
    """The engine for the settings as they are now."""
    core.settings  # noqa: B018 - a changed notebook.toml makes the parts again
    return core.engine
