"""What a notebook is read by: one method for each way to find a note and to see what it says.

Nothing is decided here: each method asks the part that does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from notebook_sync.agent_notebook import AgentNotebook
from notebook_sync.lookup import READ
from notebook_sync.sessions import OWNER, Session

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from notebook_sync.mirror.base import Document
    from notebook_sync.notes.shelf import Shelf
    from notebook_sync.permissions import Verb
    from notebook_sync.search.searching import Searched

# `list` names a method here, so the type needs a name of its own.
Documents = list[dict[str, Any]]


class FindingNotebook(AgentNotebook):
    """The use cases of reading and searching. A `Notebook` has them all."""

    def find_path(self, name: str, session: Session = OWNER, verb: Verb | None = None, tool: str = READ) -> str:
        """The path of a note that the session may read, given its path, its id, or a runtime file's bare name; with a
        `verb`, of one to which it may do that. Raises NoSuchNote, UnsafePath, and NotPermitted, which leaves an event
        that names the `tool`."""
        return self._lookup.find_path(name, session, verb, tool)

    def read(self, name: str, session: Session = OWNER) -> Document:
        """The document of a note, given its id, its path or a runtime file's bare name: as the file is now.

        Where that cannot be had the document is the last good one, and its `stale` says why. `external` says whether
        somebody else wrote it: a model is to be shown title, summary and text of such a note only in a fence. Of a
        file of the prompt, `content` and `sections` hold what the session is shown there: who may not change it, no
        comments and no expired rules; a surface need not look again. That an agent opened a page, a snippet or a
        finding the daily stream is told, behind the answer. Raises NotPermitted, NoSuchNote, UnsafePath,
        UnreadableFile.
        """
        document = self._lookup.read(name, session)
        self._opened.tell(document, session)
        return document

    def section(self, document: Document, name: str) -> dict[str, Any]:
        """The section of a document with this anchor or heading. Raises NoSuchNote naming the anchors there are."""
        from notebook_sync.lookup import section_of

        return section_of(document, name)

    def linking_to(self, name: str, session: Session = OWNER) -> Documents:
        """Light fields of the notes that lead to a note, of those that say its name most. Raises as `read`."""
        return self._listing.linking_to(self._lookup.read(name, session), session)

    def broken_links(self, path: str, links: Sequence[str], session: Session = OWNER) -> Mapping[str, str]:
        """Why those of `links` that lead nowhere from the note at `path` do so, by link, as `Notebook.check` tells it;
        what the session may not read is not there. Among more than `listing.MOST_NAMED` notes none is told.
        Raises BackendDown."""
        return self._listing.broken_links(path, links, session)

    def list(
        self,
        collection: str | None = None,
        status: str | None = None,
        limit: int = 50,
        session: Session = OWNER,
        *,
        tags: Sequence[str] = (),
        created_by: str = "",
        since: datetime | None = None,
        until: datetime | None = None,
        below: str = "",
        after: tuple[datetime, str] | None = None,
    ) -> Documents:
        """Light fields of notes, the latest change first; never content. Raises UsageError for what is unknown.

        tags: notes that have any of them. created_by: `owner`, or `agent:NAME`. since, until: changed at `since` or
        later, and before `until`; a time without a zone is UTC. below: a folder. after: `updated_at` and id of the last
        row of a list, for the rows that follow it.
        """
        from notebook_sync.listing import wanted_notes

        wanted = wanted_notes(collection, status, tags, created_by, since, until, below, after)
        return self._listing.list(wanted, limit, session)

    def search(
        self,
        query: str,
        limit: int = 10,
        session: Session = OWNER,
        *,
        mode: str = "",
        section: str = "",
        snippet: bool = False,
        explain: bool = False,
        collection: str | None = None,
        status: str | None = None,
        tags: Sequence[str] = (),
        created_by: str = "",
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Documents:
        """The rows of `search_report`."""
        return self.search_report(
            query,
            limit,
            session,
            mode=mode,
            section=section,
            snippet=snippet,
            explain=explain,
            collection=collection,
            status=status,
            tags=tags,
            created_by=created_by,
            since=since,
            until=until,
        ).results

    def search_report(
        self,
        query: str,
        limit: int = 10,
        session: Session = OWNER,
        *,
        mode: str = "",
        section: str = "",
        snippet: bool = False,
        explain: bool = False,
        collection: str | None = None,
        status: str | None = None,
        tags: Sequence[str] = (),
        created_by: str = "",
        since: datetime | None = None,
        until: datetime | None = None,
        below: str = "",
    ) -> Searched:
        """Notes that fit `query`, best first, never content; in which mode, why in no better one, and how many notes
        are still behind. Narrowed, and raises, as `list`.

        mode: "keyword", "semantic" or "hybrid"; "" is hybrid where there are embeddings, else keyword. section: an
        anchor or a heading. snippet: `snippet`, `{text, section, line}` or None, beside each row; where the row has a
        `provenance`, somebody else's words. explain: `explain`, `{words, meaning, share, score, passage}`.
        """
        from notebook_sync.listing import wanted_notes
        from notebook_sync.search.searching import Asked

        asked = Asked(query, mode, section, snippet, explain)
        wanted = wanted_notes(collection, status, tags, created_by, since, until, below)
        return self._listing.search(asked, wanted, limit, session)

    def shelf(self, place: str = "", session: Session = OWNER, *, after: str = "") -> Shelf:
        """The folders and notes right in a folder, by name, as the files are now; of many notes those that come `after`
        a name. Raises NoSuchNote, UnsafePath."""
        from notebook_sync.notes.shelf import shelf_of

        return shelf_of(self.vault, self.guard, place, session, after)
