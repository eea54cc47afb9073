"""The operations on notes: find, read, create, change, and go back. Other modules do the work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec import Meta

from notebook_sync import services
from notebook_sync.model import Action
from notebook_sync.registry import NOT_EXTERNAL, OWNER_ONLY, Arg, DryRun, Limit, Results, When, found_any, operation
from notebook_sync.services.core import NotebookService
from notebook_sync.services.results import Difference, Edited, FoundNote, Missing, NoteRow, NoteText, Written
from notebook_sync.sessions import OWNER, Session
from notebook_sync.settings import Settings

if TYPE_CHECKING:
    from notebook_sync.files.history import Version

_LONGEST_NAME = 4_096
_NAMES = {"notebook_id": "id", "file": "id", "path": "id"}
_NO_WRITING = "This conversation may not change the notebook"

Id = Annotated[
    str,
    Meta(max_length=_LONGEST_NAME, description="path, id or [[link]], with #section"),
    Arg("NOTE", positional=True),
]
Name = Annotated[str, Meta(max_length=_LONGEST_NAME)]
Text = Annotated[str, Meta(max_length=10_000_000), Arg("TEXT", from_file=True)]
Title = Annotated[str, Meta(max_length=1_000)]
Summary = Annotated[str, Meta(max_length=2_000)]
Confidence = Annotated[Annotated[float, Meta(ge=0, le=1)] | None, Arg("0..1")]
Tags = Annotated[list[Name], Meta(max_length=100, description="any of them"), Arg("TAGS")]
NewTags = Annotated[list[Name], Meta(max_length=100), Arg("TAGS")]
# `list` is a method of the service, so these types are named outside it.
Texts = Annotated[list[str] | None, Arg("TEXTS")]
Steps = Annotated[list["Step"], Meta(max_length=50, description="more edits of it, all or none")]
Collection = Annotated[
    Literal["pages", "code_snippets", "research_notes", "runtime", "channels", "facts", "memories"] | None, Arg("NAME")
]
Status = Annotated[Literal["draft", "in_progress", "complete", "archived"] | None, Arg("STATUS")]
Until = Annotated[Annotated[str, Meta(max_length=64)] | None, Arg("WHEN")]
Author = Annotated[str, Meta(max_length=128, description="owner, or agent:NAME"), Arg("WHO")]
Section = Annotated[str, Meta(max_length=_LONGEST_NAME, description="heading or anchor"), Arg("HEADING")]
Digest = Annotated[
    str, Meta(max_length=64, description="digest of the text that the change is based on"), Arg("DIGEST")
]
Reason = Annotated[str, Meta(max_length=1_000, description="why, for the history"), Arg("TEXT")]


class Step(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """One more edit of the same note."""

    action: Action
    section: Name | None = None
    content: str | None = None
    entry_match: Name | None = None
    to: Name | None = None


def _notes_are_open(settings: Settings, session: Session) -> bool:
    return session.kind == "task" and settings.permissions.notebook_edit == "notes"


def _exit_of_change(done: Written | Missing) -> int:
    return int(isinstance(done, Missing))


class NoteService(NotebookService):
    """Find, read and change notes."""

    name = "notes"

    # ---- finding

    @operation(
        "search",
        tool="notebook_search",
        route="GET /search",
        aliases={"q": "query"},
        unlisted=("status", "author", "until", "mode", "explain", "section"),
        columns=("score", "path", "title"),
        nothing_found="nothing found",
        exit_code=found_any,
        hint="Search before you create a page or ask the owner.",
        examples=('notebook-sync search "race condition"', "notebook-sync search ferry --tags timetable --json"),
    )
    def search(
        self,
        query: Annotated[str, Meta(max_length=4_096), Arg("QUERY", positional=True)] = "",
        session: Session = OWNER,
        *,
        mode: Annotated[Literal["hybrid", "keyword", "semantic"], Arg("MODE")] = "hybrid",
        collection: Collection = None,
        tags: Tags | None = None,
        status: Status = None,
        author: Author = "",
        since: When = "",
        until: When = "",
        section: Section = "",
        limit: Limit = 10,
        explain: Annotated[bool, Meta(description="show how each score came about")] = False,
    ) -> Results[FoundNote]:
        """Search notes by words and meaning.

        Results come best first, each with a snippet. Results that score less than half of the best are left out. An
        empty query with a filter lists the latest notes. The exit code is 1 if nothing is found.
        """
        return services.finding.search_notes(
            self.core,
            session,
            query,
            mode=mode,
            limit=limit,
            explain=explain,
            section=section,
            collection=collection,
            tags=tags,
            status=status,
            author=author,
            since=since,
            until=until,
        )

    @operation(
        "list",
        tool="notebook_list",
        route="GET /notes",
        unlisted=("author", "since", "until", "linked_to", "after"),
        columns=("updated_at", "path", "title", "status"),
        nothing_found="no notes",
        examples=(
            "notebook-sync list --collection pages --status draft",
            "notebook-sync list --since 7d",
            "notebook-sync list --linked-to pages/plan",
        ),
    )
    def list(
        self,
        session: Session = OWNER,
        *,
        collection: Collection = None,
        tags: Tags | None = None,
        status: Status = None,
        author: Author = "",
        since: When = "",
        until: When = "",
        linked_to: Annotated[str, Meta(max_length=_LONGEST_NAME, description="with a link to it"), Arg("NOTE")] = "",
        limit: Limit = 10,
        after: Annotated[
            str, Meta(max_length=_LONGEST_NAME, description="`next` of the last page"), Arg("CURSOR")
        ] = "",
    ) -> Results[NoteRow]:
        """List notes, the latest change first."""
        return services.finding.list_notes(
            self.core,
            session,
            limit=limit,
            after=after,
            collection=collection,
            tags=tags,
            status=status,
            author=author,
            since=since,
            until=until,
            linked_to=linked_to,
        )

    @operation(
        "read",
        tool="notebook_read",
        route="GET /notes/{id}",
        aliases=_NAMES,
        unlisted=("history", "collection"),
        for_models={"max_tokens": 4_000},
        shows="text",
        examples=("notebook-sync read pages/plan", "notebook-sync read reminders#today --json"),
    )
    def read(
        self,
        id: Id,
        session: Session = OWNER,
        *,
        section: Section = "",
        collection: Collection = None,
        history: Annotated[bool, Meta(description="with the last changes")] = False,
        max_tokens: Annotated[int, Meta(ge=0, description="at most this many tokens"), Arg("N")] = 0,
        offset: Annotated[int, Meta(ge=0, description="`next` of the last page"), Arg("N")] = 0,
    ) -> NoteText:
        """Read a note, or one section of it, as its file is now."""
        found = services.finding.read_note(
            self.core,
            session,
            id,
            section=section,
            collection=collection or "",
            history=history,
            max_tokens=max_tokens,
            offset=offset,
        )
        if session.agent:
            services.stream.note_opened(self.core, session, found.path)
        return found

    # ---- creating and changing

    @operation(
        "create",
        tool="notebook_create",
        route="POST /notes",
        creates=True,
        sessions=NOT_EXTERNAL,
        refusal=_NO_WRITING,
        effect="write",
        asks="caller",
        unlisted=(
            "description",
            "related_page",
            "related_pages",
            "key_findings",
            "confidence",
            "status",
            "valid_until",
        ),
        hint="A page for a document, code_snippets for code, research_notes for findings with a source.",
        examples=("notebook-sync create 'Winter timetable' --content-file draft.md --tags ferry",),
    )
    def create(
        self,
        title: Annotated[Title, Arg("TITLE", positional=True)],
        session: Session = OWNER,
        *,
        content: Text = "",
        collection: Annotated[Literal["pages", "code_snippets", "research_notes"], Arg("NAME")] = "pages",
        tags: NewTags | None = None,
        summary: Annotated[Summary, Arg("TEXT")] = "",
        status: Status = None,
        valid_until: Until = None,
        language: Annotated[Name | None, Meta(description="of a code snippet"), Arg("NAME")] = None,
        description: Annotated[Name | None, Meta(description="of a code snippet"), Arg("TEXT")] = None,
        related_page: Annotated[Name | None, Arg("NOTE")] = None,
        source_url: Annotated[Name | None, Meta(description="of a research note"), Arg("URL")] = None,
        key_findings: Texts = None,
        confidence: Confidence = None,
        related_pages: Texts = None,
    ) -> Written:
        """Create a page, a code snippet or a research note.

        The new file is read back before it is saved. A title that is taken gets a numbered file name.
        """
        return services.documents.create_note(
            self.core,
            session,
            collection,
            title,
            content,
            {
                "tags": tags or None,
                "summary": summary or None,
                "status": status,
                "valid_until": valid_until or None,
                "language": language,
                "description": description,
                "related_page": related_page,
                "source_url": source_url,
                "key_findings": key_findings,
                "confidence": confidence,
                "related_pages": related_pages,
            },
        )

    @operation(
        "update",
        tool="notebook_update",
        route="PATCH /notes/{id}",
        sessions=NOT_EXTERNAL,
        refusal=_NO_WRITING,
        effect="write",
        asks="caller",
        aliases=_NAMES,
        unlisted=("collection", "description", "related_page", "related_pages", "key_findings", "confidence", "reason"),
        exit_code=_exit_of_change,
        examples=(
            "notebook-sync update pages/plan --status complete",
            "notebook-sync update pages/plan --section Risks --append --content '- Fog in May'",
            "notebook-sync update pages/plan --supersedes pages/idea",
        ),
    )
    def update(
        self,
        id: Id,
        session: Session = OWNER,
        *,
        content: Text | None = None,
        section: Annotated[
            str, Meta(max_length=_LONGEST_NAME, description="only below this heading"), Arg("HEADING")
        ] = "",
        append: Annotated[bool, Meta(description="add content at the end")] = False,
        title: Annotated[Title | None, Arg("TITLE")] = None,
        tags: NewTags | None = None,
        summary: Annotated[Summary | None, Arg("TEXT")] = None,
        status: Status = None,
        valid_until: Until = None,
        language: Annotated[Name | None, Arg("NAME")] = None,
        description: Annotated[Name | None, Arg("TEXT")] = None,
        related_page: Annotated[Name | None, Arg("NOTE")] = None,
        source_url: Annotated[Name | None, Arg("URL")] = None,
        key_findings: Texts = None,
        confidence: Confidence = None,
        related_pages: Texts = None,
        supersedes: Annotated[str, Meta(max_length=_LONGEST_NAME, description="note it replaces"), Arg("NOTE")] = "",
        expected_digest: Digest = "",
        reason: Reason = "",
        collection: Collection = None,
    ) -> Written | Missing:
        """Change content or fields of a note; every other byte stays as it is.

        Content replaces the text, or the own text of `section`; `append` adds it at the end instead. `supersedes` marks
        another note as replaced by this one, in both; one `undo` takes it all back.
        """
        return services.documents.update_note(
            self.core,
            session,
            id,
            content,
            {
                "title": title,
                "tags": tags,
                "summary": summary,
                "status": status,
                "valid_until": valid_until,
                "language": language,
                "description": description,
                "related_page": related_page,
                "source_url": source_url,
                "key_findings": key_findings,
                "confidence": confidence,
                "related_pages": related_pages,
            },
            section=section,
            append=append,
            supersedes=supersedes,
            collection=collection or "",
            expected_digest=expected_digest,
            reason=reason,
        )

    @operation(
        "delete",
        tool="notebook_delete",
        route="DELETE /notes/{id}",
        sessions=NOT_EXTERNAL,
        refusal=_NO_WRITING,
        effect="destructive",
        asks="caller",
        aliases=_NAMES,
        unlisted=("collection", "reason"),
        exit_code=_exit_of_change,
        examples=("notebook-sync delete pages/plan",),
    )
    def delete(
        self,
        id: Id,
        session: Session = OWNER,
        *,
        expected_digest: Digest = "",
        reason: Reason = "",
        collection: Collection = None,
    ) -> Written | Missing:
        """Delete a note; its text stays in the history, and `undo` brings it back."""
        return services.documents.delete_note(
            self.core, session, id, expected_digest=expected_digest, reason=reason, collection=collection or ""
        )

    @operation(
        "edit",
        tool="notebook_edit",
        route="POST /edit",
        sessions=OWNER_ONLY,
        widened=_notes_are_open,
        refusal="Notebook editing is only available in owner conversations",
        effect="write",
        asks="caller",
        aliases=_NAMES,
        unlisted=("allow_over_cap",),
        examples=(
            "notebook-sync edit reminders append_to_section --section Today --content '- [ ] Call the mill'",
            "notebook-sync edit standing-orders remove_entry --entry-match tea --dry-run",
        ),
    )
    def edit(
        self,
        id: Id,
        action: Annotated[Action, Arg("ACTION", positional=True)],
        session: Session = OWNER,
        *,
        section: Section = "",
        content: Text | None = None,
        entry_match: Annotated[str, Meta(description="words that only this entry has"), Arg("WORDS")] = "",
        to: Annotated[
            str, Meta(description="section that move_entry moves to, add_section follows"), Arg("HEADING")
        ] = "",
        more: Steps | None = None,
        expected_digest: Digest = "",
        reason: Reason = "",
        allow_over_cap: bool = False,
        dry_run: DryRun = False,
    ) -> Edited:
        """Edit a note at one place, byte for byte as it is elsewhere.

        The actions: append_to_section, replace_section, remove_entry, toggle_checkbox, add_section, move_entry,
        set_frontmatter (content is YAML), write (the whole file). A place that is not found, or found twice, is an
        error with candidates. An edit that grows a prompt file beyond its cap is refused. With dry_run, the answer
        shows the diff, the tokens, and what the prompt would leave out.
        """
        first = Step(
            action=action, section=section or None, content=content, entry_match=entry_match or None, to=to or None
        )
        return services.documents.edit_note(
            self.core,
            session,
            id,
            [first, *(more or ())],
            expected_digest=expected_digest,
            reason=reason,
            allow_over_cap=allow_over_cap,
            dry_run=dry_run,
        )

    @operation(
        "rename",
        route="POST /rename",
        sessions=NOT_EXTERNAL,
        refusal=_NO_WRITING,
        effect="write",
        asks="caller",
        aliases=_NAMES,
        examples=("notebook-sync rename pages/plan pages/winter-plan --links",),
    )
    def rename(
        self,
        id: Id,
        to: Annotated[str, Meta(max_length=_LONGEST_NAME, description="the new path"), Arg("PATH", positional=True)],
        session: Session = OWNER,
        *,
        links: Annotated[bool, Meta(description="rewrite the links to it")] = False,
        expected_digest: Digest = "",
        reason: Reason = "",
        dry_run: DryRun = False,
    ) -> Written:
        """Rename a note, or move it to another folder.

        The answer warns of links that lead to the old name; `links` rewrites them in the notes that the session may
        change, all in one step that `undo` takes back.
        """
        return services.versions.rename_note(
            self.core, session, id, to, links=links, expected_digest=expected_digest, reason=reason, dry_run=dry_run
        )

    # ---- versions

    @operation(
        "history",
        tool="notebook_history",
        toolset="notes",
        route="GET /history/{id}",
        aliases=_NAMES,
        columns=("rev", "at", "changed_by", "summary"),
        result_in="notebook_sync.files.history",
        nothing_found="no earlier versions",
        examples=("notebook-sync history pages/plan",),
    )
    def history(self, id: Id, session: Session = OWNER, *, limit: Limit = 20) -> Results[Version]:
        """List the versions of a note, the newest first."""
        return services.versions.list_versions(self.core, session, id, limit)

    @operation(
        "diff",
        route="GET /diff/{id}",
        aliases=_NAMES,
        shows="diff",
        examples=("notebook-sync diff pages/plan", "notebook-sync diff pages/plan --since 1a2b3c4d"),
    )
    def diff(
        self,
        id: Id,
        session: Session = OWNER,
        *,
        since: Annotated[str, Meta(max_length=64, description="a `rev` of history"), Arg("REV")] = "",
        until: Annotated[str, Meta(max_length=64, description="a `rev`; default the file"), Arg("REV")] = "",
    ) -> Difference:
        """Compare a note with an earlier version, by default the last one that differs."""
        return services.versions.compare_versions(self.core, session, id, since, until)

    @operation(
        "undo",
        tool="notebook_undo",
        toolset="notes",
        route="POST /undo",
        sessions=NOT_EXTERNAL,
        refusal=_NO_WRITING,
        effect="write",
        asks="caller",
        aliases=_NAMES,
        examples=("notebook-sync undo pages/plan", "notebook-sync undo reminders --rev 1a2b3c4d"),
    )
    def undo(
        self,
        id: Id,
        session: Session = OWNER,
        *,
        rev: Annotated[str, Meta(max_length=64, description="a `rev` of history"), Arg("REV")] = "",
        expected_digest: Digest = "",
        dry_run: DryRun = False,
    ) -> Written:
        """Go back to the last text that differs, or to `rev`; a second undo takes back the first.

        Notes that one call changed together go back together, if none of them was changed since. An agent goes back
        over its own changes only.
        """
        return services.versions.undo_change(
            self.core, session, id, rev=rev, expected_digest=expected_digest, dry_run=dry_run
        )
