"""The commands that make and change pages, code snippets and research notes: their rows of the table."""

from __future__ import annotations

from notebook_sync.surfaces.cli.table import AGENT, JSON, SESSION, STATUSES, TAGGED, Argument, Command

_GIVEN = (
    Argument("--title", "the title", {"metavar": "T"}),
    Argument("--content", "the text; - reads it from standard input", {"metavar": "T"}),
    Argument("--content-file", "a file that has the text; - is standard input", {"metavar": "F"}),
    TAGGED,
    Argument("--summary", "what it is about, in place of its first words", {"metavar": "S"}),
    Argument("--status", STATUSES, {"metavar": "STATUS"}),
    Argument("--language", "of a code snippet: the language", {"metavar": "L"}),
    Argument("--description", "of a code snippet: what it does", {"metavar": "D"}),
    Argument("--related-page", "of a code snippet: the page that it belongs to", {"metavar": "ID"}),
    Argument("--source-url", "of a research note: where it was found", {"metavar": "URL"}),
    Argument(
        "--key-finding",
        "of a research note: one finding; give it once for each",
        {"metavar": "TEXT", "action": "append"},
    ),
    Argument("--confidence", "of a research note: how sure it is, from 0 to 1", {"metavar": "N", "type": "share"}),
    Argument("--related-pages", "of a research note: pages, parted by commas", {"metavar": "ID,ID"}),
)
_WHO = (SESSION, AGENT, JSON)

MAKING = (
    Command(
        "create",
        "create a page, a code snippet or a research note",
        "COLLECTION is pages, code_snippets or research_notes. The note is a Markdown file in the folder of that\n"
        "name, with an id of its own; the answer tells both, and either names the note from then on. Its text is kept\n"
        "byte for byte; that of a code snippet is code, and is put into a fenced block unless it has one. Where no\n"
        "--summary is given, the first words are shown in its place. `version` is null while the mirror is away;\n"
        "`provenance` is there where somebody else's words stand in the note.",
        (
            "notebook-sync create pages --title 'Winter timetable' --content 'The last ferry leaves at nine.'",
            "notebook-sync create code_snippets --title 'Tide table' --language python --content-file tides.py",
            "notebook-sync create research_notes --title Ice --content - --key-finding 'It is early' --confidence 0.8",
        ),
        """\
{"notebook_id": "k3v9x0m2q7ra", "path": "pages/winter-timetable.md", "title": "Winter timetable",
 "collection": "pages", "version": 1, "status": "draft", "digest": "9f86d0…", "changed": ["title", "content"],
 "commit": "4f2a91…", "warnings": []}""",
        (Argument("collection", "pages, code_snippets or research_notes", {"metavar": "COLLECTION"}), *_GIVEN, *_WHO),
    ),
    Command(
        "update",
        "change a page, a code snippet or a research note",
        "Only what is given changes; --content is all of the text, so see `edit` for a change at one place. An empty\n"
        "text or list, as --tags '', takes away what was there. An update that changes nothing writes nothing. With\n"
        "--expected-digest it is made only if the file is still the one that was read: `read --json` and the answers\n"
        "of `create` and `update` tell its digest. `undo` takes an update back, `history` tells of it.",
        (
            "notebook-sync update k3v9x0m2q7ra --status complete --tags ferry,winter",
            "notebook-sync update pages/winter-timetable --content-file timetable.md",
        ),
        """\
{"notebook_id": "k3v9x0m2q7ra", …as for create…, "version": 2, "status": "complete", "changed": ["status"]}""",
        (
            Argument("id", "id or path", {"metavar": "ID"}),
            *_GIVEN,
            Argument("--expected-digest", "only if the file is still the one with this SHA-256", {"metavar": "D"}),
            *_WHO,
        ),
    ),
)
