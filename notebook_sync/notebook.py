"""A notebook as Python programs use it: services with the operations, and five everyday calls.

with Notebook.open("~/notebook") as nb:
    nb.sync()
    nb.prompt(Session.task()).text
    nb.search("race condition", limit=5).results
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from notebook_sync import services
from notebook_sync.errors import NotANotebook
from notebook_sync.files.state import expanded, find_root
from notebook_sync.services.core import Core
from notebook_sync.sessions import OWNER, Session

if TYPE_CHECKING:
    from notebook_sync.context.service import ContextService
    from notebook_sync.registry import Results
    from notebook_sync.settings import Settings
    from notebook_sync.sync.watch import WatchEvent
    from prompt import Prompt

# The modules whose import declares the operations, and the services with tools, in one order.
OPERATION_MODULES = (
    *("notes", "prompts", "facts", "memories", "stream", "channels", "admin", "importing"),
    "notebook_sync.context.service",
)
SERVICES = tuple(name.split(".")[-2] if "." in name else name for name in OPERATION_MODULES)

# So often it is looked for saved specs and a new branch.
_PREFETCH_SECONDS = 30.0


def load_operations() -> None:
    """Import every service, so that `registry.OPERATIONS` is complete."""
    for name in OPERATION_MODULES:
        importlib.import_module(name if "." in name else f"notebook_sync.services.{name}")


class Notebook:
    """One notebook. Its parts are made when they are first used; `close` it, or use it in a `with` block.

    It may be used from several threads. Python callers act as the owner unless they pass a session.
    """

    def __init__(self, core: Core) -> None:
        self.core = core

    @classmethod
    def open(cls, path: str | Path = ".", *, last_good: Settings | None = None) -> Notebook:
        """The notebook at `path`, any folder of Markdown. Raises NotANotebook; wrong settings raise when they are used.

        `last_good`: the settings to use while notebook.toml has an error.
        """
        root = expanded(path).resolve()
        if not root.is_dir():
            raise NotANotebook(f"{root} is not a folder", next=f"make one with: notebook-sync init {root}")
        return cls(Core(root, last_good=last_good))

    @classmethod
    def find(cls, start: str | Path = ".", *, adopt: bool = False) -> Notebook:
        """The notebook that `start` is in. `adopt`: a folder of Markdown becomes one. Raises NotANotebook."""
        return cls(Core(find_root(Path(start), adopt=adopt)))

    @property
    def root(self) -> Path:
        """The notebook's folder."""
        return self.core.root

    @property
    def settings(self) -> Settings:
        """The settings as notebook.toml states them now. Raises ConfigError."""
        return self.core.settings

    @cached_property
    def notes(self) -> services.notes.NoteService:
        """Finding, reading and changing notes."""
        return services.notes.NoteService(self.core)

    @cached_property
    def prompts(self) -> services.prompts.PromptService:
        """The prompt, and the rules and reminders that are in it."""
        return services.prompts.PromptService(self.core, self._brief_of)

    @cached_property
    def context(self) -> ContextService:
        """What the notebook knows about a task."""
        from notebook_sync.context.service import ContextService

        return ContextService(self.core)

    @cached_property
    def stream(self) -> services.stream.StreamService:
        """The daily stream and long-term memory: log, recall, checkpoints, rollback."""
        return services.stream.StreamService(self.core)

    @cached_property
    def channels(self) -> services.channels.ChannelService:
        """Private notes of agents."""
        return services.channels.ChannelService(self.core)

    @cached_property
    def facts(self) -> services.facts.FactService:
        """Short facts: adding, finding, verifying and moving them."""
        return services.facts.FactService(self.core)

    @cached_property
    def memories(self) -> services.memories.MemoryService:
        """Decisions, problems, patterns and insights, with links between them."""
        return services.memories.MemoryService(self.core)

    @cached_property
    def admin(self) -> services.admin.AdminService:
        """Looking after the notebook: sync, verify, status, tokens, events."""

        self.core.more_chores.append(
            services.upkeep.Chore("prefetch", _PREFETCH_SECONDS, lambda: self.context.look_for_specs())
        )
        return services.admin.AdminService(self.core)

    @cached_property
    def transfer(self) -> services.importing.TransferService:
        """Exporting the notebook, importing into it, purging a text from it."""
        return services.importing.TransferService(self.core)

    def sync(self, *, allow_empty: bool = False) -> services.admin.SyncReport:
        """Bring the index to what the files say, and publish it. Raises WouldDeleteEverything."""
        return self.admin.sync(allow_empty=allow_empty)

    def watch(self) -> Iterator[WatchEvent]:
        """Follow the files until the iterator is closed. Raises FollowLocked."""
        return self.admin.watch()

    def prompt(
        self, session: Session = OWNER, *, max_tokens: int | None = None, include: Sequence[str] = (), task: str = ""
    ) -> Prompt:
        """The system prompt, assembled from the files as they are now."""
        return self.prompts.assemble(session, max_tokens=max_tokens, include=include, task=task)

    def search(self, query: str, session: Session = OWNER, **filters: Any) -> Results[services.results.FoundNote]:
        """Notes by words and meaning, the best first. `filters` are those of `notes.search`."""
        return self.notes.search(query, session, **filters)

    def read(self, id: str, session: Session = OWNER, *, section: str = "") -> services.results.NoteText:
        """A note, or one section of it. Raises NoSuchNote."""
        return self.notes.read(id, session, section=section)

    def _brief_of(self, task: str, session: Session, max_tokens: int) -> str:
        return self.context.text_for_prompt(task, session, max_tokens)

    def close(self) -> None:
        """Close files and connections."""
        self.core.close()

    def __enter__(self) -> Notebook:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
