"""What comes into a notebook from elsewhere and leaves it: the operations, and the way in for every kind of record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from notebook_sync import services
from notebook_sync.errors import NotebookError, TooLarge, UsageError
from notebook_sync.files.compose import note_text
from notebook_sync.files.names import folded
from notebook_sync.files.state import expanded
from notebook_sync.model import collection_of
from notebook_sync.registry import OWNER_ONLY, Arg, DryRun, Result, operation
from notebook_sync.services.checkpoints import take_checkpoint
from notebook_sync.services.core import Core, NotebookService, publish_now
from notebook_sync.services.documents import new_note
from notebook_sync.services.fact_changes import IMPORTANT, Draft, change_facts, one_line
from notebook_sync.services.view import View
from notebook_sync.services.writing import Change, change_notes
from notebook_sync.sessions import OWNER, Session
from notebook_sync.store.rows import Row
from notebook_sync.store.tables import as_json

_BATCH = 100
File = Annotated[str, Meta(max_length=4_096), Arg("FILE", positional=True)]


class Failure(Result, frozen=True):
    """What was left out: where it is (a path, or FILE:LINE), and why."""

    place: str
    reason: str


class Exported(Result, frozen=True, kw_only=True):
    """An archive: how many files and rows it has, and its size. `left_out` are files that it does not have."""

    path: str
    files: int
    rows: int
    bytes: int
    left_out: list[Failure]
    warnings: list[str]


class Imported(Result, frozen=True, kw_only=True):
    """What became of all that was read: `read` = `added` + `already` + `failed`. `failures` says where and why."""

    read: int
    added: int
    already: int = 0
    failed: int = 0
    failures: list[Failure] = msgspec.field(default_factory=list)
    warnings: list[str] = msgspec.field(default_factory=list)
    dry_run: bool = False


class Purged(Result, frozen=True, kw_only=True):
    """A text that was purged, or would be. `removed` counts what was made of it. `left` names what is not reached."""

    id: str
    path: str
    removed: dict[str, int]
    left: list[str]
    dry_run: bool = False


class TransferService(NotebookService):
    """Export a notebook, import into it, purge a text from it."""

    name = "transfer"

    @operation(
        "export",
        sessions=OWNER_ONLY,
        examples=("notebook-sync export ../notebook.tar",),
    )
    def export(self, file: File, session: Session = OWNER) -> Exported:
        """Write the whole notebook to one plain tar.

        It holds the files, the git history as a bundle, and what only the index knows as JSON lines. Ignored files,
        tokens and the addresses of git remotes are not in it. FILE must not exist, and is readable by its owner alone.
        """
        return services.archive.export_notebook(self.core, file)

    @operation(
        "import",
        sessions=OWNER_ONLY,
        effect="write",
        adopts=True,
        exit_code=lambda done: int(done.failed > 0),
        examples=(
            "notebook-sync import memories.jsonl --dry-run",
            "notebook-sync import --v2 notes.json --dry-run",
        ),
    )
    def import_(
        self,
        file: File = "",
        session: Session = OWNER,
        *,
        mongo: Annotated[str, Meta(description="the database of the original"), Arg("URL")] = "",
        redis: Annotated[str, Meta(description="the Redis of the original"), Arg("URL")] = "",
        sqlite: Annotated[str, Meta(description="memories, or channels with messages"), Arg("FILE")] = "",
        v2: Annotated[str, Meta(description="older private notes, as JSON"), Arg("FILE")] = "",
        conversations: Annotated[str, Meta(description="a file or folder of conversations"), Arg("PATH")] = "",
        trust_settings: Annotated[
            bool, Meta(description="accept settings that start programs or name servers, and hidden files")
        ] = False,
        dry_run: DryRun = False,
    ) -> Imported:
        """Bring in an archive, or what other programs kept.

        An archive is imported into an empty folder, named with -C: nothing is written unless all of it is sound. Every
        other source is only read, and what is here already is left as it is, so an import may be repeated. FILE may
        also hold memories, as JSON, one a line. --mongo and --redis read notes, facts, the stream, long-term memory and
        checkpoints; --sqlite knows tables by their columns.

        --conversations reads those of Claude Code and Codex, and the exports of ChatGPT and Claude. Each becomes a
        research note of external provenance, without what looks like a password or a key; with the model of [llm], it
        begins with the facts that the model proposes. The exit code is 1 if something could not be imported.
        """
        if bool(file) == any((mongo, redis, sqlite, v2, conversations)):
            raise UsageError(
                "there is not one thing to import",
                next="name a file, or --mongo URL, --redis URL, --sqlite FILE, --v2 FILE or --conversations PATH",
            )
        if file and services.archive.is_archive(file):
            return services.archive.import_archive(self.core, expanded(file), trust=trust_settings, dry_run=dry_run)
        read_conversations = partial(services.conversations.conversations_in, session=session, dry_run=dry_run)
        sources: tuple[tuple[str, Callable[[Core, str], Iterator[Item]]], ...] = (
            (file, services.importers.memories_in),
            (mongo, services.originals.mongo_items),
            (redis, services.originals.redis_items),
            (sqlite, services.importers.sqlite_items),
            (v2, services.importers.private_notes_in),
            (conversations, read_conversations),
        )
        items = chain.from_iterable(read(self.core, value) for value, read in sources if value)
        return bring_in(self.core, session, items, dry_run=dry_run)

    @operation(
        "purge",
        sessions=OWNER_ONLY,
        effect="destructive",
        examples=("notebook-sync purge pages/plan --dry-run",),
    )
    def purge(
        self,
        id: Annotated[
            str, Meta(max_length=4_096, description="a note, a fact, or a line of the stream"), Arg("ID", True)
        ],
        session: Session = OWNER,
        *,
        dry_run: DryRun = False,
        seen: Purged | None = None,
    ) -> Purged:
        """Remove a text for good, its file included.

        A fact is taken out of every file that states it. The text leaves the index, its words and vectors, the stream,
        checkpoints, events, cached syntheses, copies, the private history, the dump, and MongoDB and Redis. `left` says
        what it cannot reach: a git repository of yours, remotes, backups. It cannot be undone; a note may be deleted
        already.
        """
        return services.purge.purge_text(self.core, session, id, dry_run=dry_run)


# ---- every record but those of an archive


class NewNote(NamedTuple):
    """A record that becomes a note. `stem` is its path without ending; `kept` are columns that only the index has, and
    `crumbs` rows of its history."""

    place: str
    id: str
    stem: str
    head: Mapping[str, Any]
    body: str
    kept: Mapping[str, Any] = {}
    crumbs: Sequence[Row] = ()


class NewRow(NamedTuple):
    """A record that becomes a row of the stream, long-term memory or checkpoints, or a fact of facts/notes.md."""

    place: str
    collection: str
    row: Row


# A text is what the owner should know of a source.
Item = NewNote | NewRow | Failure | str


def bring_in(core: Core, session: Session, items: Iterator[Item], *, dry_run: bool) -> Imported:
    """Add what is not there yet. A checkpoint is taken before the first write; what fails stops nothing else."""
    core.engine.sync()  # what the files have is known by the index
    run = _Run(core, session, dry_run=dry_run)
    while batch := list(islice(items, _BATCH)):
        run.take(batch)
    if run.added and not dry_run:
        publish_now(core)
    counts = {"added": run.added, "already": run.already, "failed": len(run.failures)}
    return Imported(read=sum(counts.values()), **counts, failures=run.failures, warnings=run.warnings, dry_run=dry_run)


class _Run:
    """One import, batch by batch."""

    def __init__(self, core: Core, session: Session, *, dry_run: bool) -> None:
        self.added = self.already = 0
        self.failures: list[Failure] = []
        self.warnings: list[str] = []
        self._core = core
        self._session = session
        self._dry_run = dry_run
        self._seen = set[tuple[str, str]]()
        self._is_saved = dry_run

    def take(self, batch: Sequence[Item]) -> None:
        """Bring in a batch."""
        new = defaultdict[str, list[Any]](list)
        for each in batch:
            if isinstance(each, Failure):
                self.failures.append(each)
            elif isinstance(each, str):
                self.warnings.append(each)
            elif self._is_new(each):
                new["documents" if isinstance(each, NewNote) else each.collection].append(each)
        add: dict[str, Callable[[Sequence[Any]], None]] = {"documents": self._add_notes, "facts": self._add_facts}
        for collection, items in new.items():
            self._add(items, add.get(collection, self._add_rows))

    def _is_new(self, item: NewNote | NewRow) -> bool:
        key = ("documents", item.id) if isinstance(item, NewNote) else (item.collection, item.row["id"])
        is_known = key in self._seen or self._core.index.collections[key[0]].one(key[1], heavy=False) is not None
        self._seen.add(key)
        self.already += is_known
        return not is_known

    def _add(self, items: Sequence[Any], add: Callable[[Sequence[Any]], None]) -> None:
        """Add all of them at once, else each half by itself: one that cannot be added holds up no other."""
        try:
            if not self._is_saved:
                take_checkpoint(self._core, self._session, "before an import")
                self._is_saved = True
            add(items)
            self.added += len(items)
        except (NotebookError, RecursionError, ValueError) as error:
            if len(items) == 1:
                self.failures.append(Failure(items[0].place, str(error)))
                return
            middle = len(items) // 2
            for half in (items[:middle], items[middle:]):
                self._add(half, add)

    def _add_notes(self, items: Sequence[NewNote]) -> None:
        view, limit = View(self._core, self._session), self._core.tree.max_file_bytes
        raws = [note_text(each.head, each.body, collection=collection_of(f"{each.stem}.md")) for each in items]

        def plan() -> list[Change]:
            planned: dict[str, Change] = {}
            for each, raw in zip(items, raws, strict=True):
                change = new_note(view, each.stem, raw, "import", planned)
                if len(raw) > limit:
                    raise TooLarge(change.path, len(raw), limit)
                planned[folded(change.path)] = change
            return list(planned.values())

        for each in items:
            # Writing the note makes the version that it has there.
            kept = {**each.kept, "version": each.kept.get("version", 1) - 1}
            self._keep("documents", [{"id": each.id, "created_at": each.head.get("created_at"), **kept}])
            self._keep("history", each.crumbs)
        change_notes(self._core, self._session, "import", plan, dry_run=self._dry_run)

    def _add_facts(self, items: Sequence[NewRow]) -> None:
        def decide(draft: Draft) -> None:
            for each in items:
                draft.add(each.row["content"], one_line("section", each.row["section"]) or IMPORTANT)

        if self._dry_run:
            decide(Draft(self._core, self._session))
            return
        self._keep("facts", [each.row for each in items])
        change_facts(self._core, self._session, "import", decide)

    def _add_rows(self, items: Sequence[NewRow]) -> None:
        with self._core.index.write(durable=True):
            for each in () if self._dry_run else items:
                self._core.index.collections[each.collection].put([each.row])

    def _keep(self, collection: str, rows: Sequence[Row]) -> None:
        """Let what only the index holds wait for its note or fact: a process that is killed now loses nothing."""
        if not self._dry_run:
            now = self._core.now()
            filled = ({**row, **{name: row.get(name) or now for name in ("created_at", "updated_at")}} for row in rows)
            self._core.index.load(as_json({"in": collection, "row": row}) for row in filled)
