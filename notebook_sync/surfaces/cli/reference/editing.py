"""The commands that change notes and tell of their past: their rows of the table."""

from __future__ import annotations

from dataclasses import dataclass

from notebook_sync.surfaces.cli.table import AGENT, JSON, SESSION, Argument, Command


@dataclass(frozen=True, slots=True)
class EditAction:
    """One action of `edit`. `takes` names the arguments that mean something to it, `needs` those it must have."""

    name: str
    does: str
    takes: tuple[str, ...]
    needs: tuple[str, ...]
    example: str


EDIT_ACTIONS = (
    EditAction(
        "append_to_section",
        "add the content behind the section's last own entry, above its child headings",
        ("section", "content"),
        ("content",),
        "notebook-sync edit reminders.md append_to_section --section 'This Week' --content '- [ ] Grease the winch'",
    ),
    EditAction(
        "replace_section",
        "put the content in place of the section's own text; '' empties it; child headings stay",
        ("section", "content"),
        ("content",),
        "notebook-sync edit standing-orders.md replace_section --section Preferences --content '- Tea, please'",
    ),
    EditAction(
        "remove_entry",
        "take out the one list item that has these words, with what is indented below it",
        ("entry_match", "section"),
        ("entry_match",),
        "notebook-sync edit reminders.md remove_entry --entry-match winch",
    ),
    EditAction(
        "toggle_checkbox",
        "tick the box of that item, or take the tick away",
        ("entry_match", "section"),
        ("entry_match",),
        "notebook-sync edit reminders.md toggle_checkbox --entry-match winch",
    ),
    EditAction(
        "add_section",
        "add a heading with the content below it: behind the section --to, else at the end",
        ("section", "content", "to"),
        ("section",),
        "notebook-sync edit pages/plan.md add_section --section Crew --content '- Ines' --to Budget",
    ),
    EditAction(
        "move_entry",
        "move that item to the end of the section --to",
        ("entry_match", "section", "to"),
        ("entry_match", "to"),
        "notebook-sync edit reminders.md move_entry --entry-match winch --to Today",
    ),
    EditAction(
        "set_frontmatter",
        "set the fields in the content, a YAML mapping; null takes one away",
        ("content",),
        ("content",),
        "notebook-sync edit pages/plan.md set_frontmatter --content 'status: complete'",
    ),
    EditAction(
        "write",
        "make the content the whole file, to the byte; the file may be a new one",
        ("content",),
        ("content",),
        "notebook-sync edit pages/tides.md write --content-file tides.md",
    ),
)

_ID = Argument("id", "id, path, or the bare name of a runtime file", {"metavar": "ID"})
_ACTIONS = "".join(f"  {action.name:<18} {action.does}\n" for action in EDIT_ACTIONS)

EDITING = (
    Command(
        "edit",
        "change one place in a note, and show the effect on the prompt",
        "FILE is a path, an id or the bare name of a runtime file; without an ACTION, each is shown with an example.\n"
        "\n"
        f"{_ACTIONS}"
        "\n"
        "A section is named by its heading or its anchor, an entry by words that only it has, in any case. What could\n"
        "mean several places changes nothing and lists them. No byte outside the edit changes. An edit that would\n"
        "leave a file over its share of the prompt is refused and lists its entries; --allow-over-cap permits it.\n"
        "\n"
        "The answer tells the difference, the tokens before and after, what the prompt of this session leaves out,\n"
        "whether its stable part, and so a provider's cache, changes, and the commit. --preview tells the same and\n"
        "writes nothing. The edit is made once the file is saved: where the mirror or git does not follow, that is a\n"
        "warning, and the exit code is 0. Refusals end with 3 and leave an event; `undo` takes an edit back.\n"
        "\n"
        "The runtime files may be edited in an owner's session alone. In a script, an owner says so with --session\n"
        "owner: this gate protects tools, not the shell.",
        (
            *(action.example for action in EDIT_ACTIONS),
            "notebook-sync edit reminders.md append_to_section --section Today --content - --session owner",
        ),
        """\
{"success": true, "path": "runtime/reminders.md", "digest": "9f86d0…", "version": 4,
 "tokens_before": 134, "tokens": 140, "cap": 2000,
 "omitted": [{"anchor": "this-week", "heading": "This Week", "tokens": 20}], "changed": true,
 "change": {"tokens_before": 806, "tokens_after": 812, "fell_out": […as for watch…], "came_back": [],
            "stable_changes": true, "kept_prefix_tokens": 402},
 "diff": "--- a/runtime/reminders.md\\n…", "commit": "4f2a91…", "warnings": []}""",
        (
            Argument("file", "id, path, or the bare name of a runtime file", {"metavar": "FILE", "nargs": "?"}),
            Argument("action", "what to do, one of those above", {"metavar": "ACTION", "nargs": "?"}),
            Argument("--section", "the section's heading or anchor", {"metavar": "S"}),
            Argument("--content", "the text; - reads it from standard input", {"metavar": "T"}),
            Argument("--content-file", "a file that has the text", {"metavar": "F"}),
            Argument("--entry-match", "words that one list item alone has", {"metavar": "M"}),
            Argument("--to", "the section to move to, or to add behind", {"metavar": "S"}),
            Argument("--expected-digest", "only if the file is still the one with this SHA-256", {"metavar": "D"}),
            Argument("--reason", "why, for the commit and the event log", {"metavar": "R", "default": ""}),
            Argument("--preview", "only tell what would happen", {"action": "store_true"}),
            Argument(
                "--allow-over-cap", "though the prompt will not show the whole file then", {"action": "store_true"}
            ),
            SESSION,
            AGENT,
            JSON,
        ),
    ),
    Command(
        "delete",
        "delete a note; `undo` restores it",
        "The file goes, and its row and ref with it. What it said is kept by git, and as a copy in .notebook/past. "
        "Where neither has it, as on a full disk, the file stays.",
        ("notebook-sync delete pages/plan",),
        '{"success": true, "path": "pages/plan.md", "commit": "4f2a91…", "warnings": []}',
        (_ID, SESSION, AGENT, JSON),
    ),
    Command(
        "rename",
        "move a note to a free path",
        "A note that carries an id stays the same note, with its version and history. Links to it are not rewritten;\n"
        "see `check`.",
        ("notebook-sync rename pages/plan pages/winter-plan.md",),
        '{"success": true, "path": "pages/winter-plan.md", "renamed_from": "pages/plan.md", "commit": "4f2a91…",\n'
        ' "warnings": []}',
        (_ID, Argument("to", "the new path, relative to the notebook", {"metavar": "PATH"}), SESSION, AGENT, JSON),
    ),
    Command(
        "history",
        "list the versions of a note, the latest first",
        "Those that git has, whoever made them, and the copies that edits by tools left since its last commit. What\n"
        "stands in front names a version for `diff`. Times are those of the notebook's timezone. A note that is gone\n"
        "is named by its path, or by the id that it had.",
        ("notebook-sync history reminders.md", "notebook-sync history pages/plan --limit 5"),
        """\
[{"rev": "4f2a91…", "timestamp": "2026-03-01T09:00:00+00:00", "changed_by": "agent:scribe",
  "summary": "Append to section in Today: runtime/reminders.md"}]""",
        (_ID, Argument("--limit", "at most so many (50)", {"metavar": "N", "type": "count", "default": 50}), JSON),
    ),
    Command(
        "diff",
        "show what changed in a note since a version",
        "From REV, else from the text before the one it has now, to what the file says now: unified, as `git apply`\n"
        "takes it. On a terminal it is coloured, and what would steer the terminal is shown instead.",
        ("notebook-sync diff reminders.md", "notebook-sync diff pages/plan 4f2a91"),
        '{"id": "reminders.md", "rev": null, "diff": "--- a/runtime/reminders.md\\n…"}',
        (
            _ID,
            Argument(
                "rev", "a version, as `history` names it; its beginning is enough", {"metavar": "REV", "nargs": "?"}
            ),
            JSON,
        ),
    ),
    Command(
        "undo",
        "restore the earlier text of a note, as a new edit",
        "Of edits by tools and by hand, as far as git or a copy has what was there. Nothing is lost: a second `undo`\n"
        "takes back the first. Also brings back a note that was deleted, named by its path or the id that it had.\n"
        "What a note said in a channel, before it was moved to where others read it, is not put there.",
        ("notebook-sync undo reminders.md",),
        '{"success": true, "path": "runtime/reminders.md", …as for edit…}',
        (_ID, SESSION, AGENT, JSON),
    ),
)
