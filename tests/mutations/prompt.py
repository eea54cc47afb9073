"""The guarantees of the prompt, each as the lines that give it, what is left when they are gone, and who must notice.

The tests named are the ones that are there for the guarantee; a text that changed is to be changed here as well.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutation:
    """`old` stands once in `file` and becomes `new`; then one of `tests`, which pytest is given, must fail."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


_TRIM = "tests/prompt/test_trim.py::"
_ASSEMBLE = "tests/prompt/test_assemble.py::"
_COMMENTS = "tests/prompt/test_prompt_comments.py::"
_BUDGET = "tests/prompt/test_prompt_budget.py::"
_FILES = "tests/prompt/test_prompt_of_files.py::"

MUTATIONS = (
    Mutation(
        "no page is over the cap",
        "prompt/trim.py",
        "return next(page for page in self._pages(cap) if page.tokens <= cap)",
        "return next(page for page in self._pages(cap) if page.tokens <= cap + 8)",
        (_TRIM + "test_no_text_exceeds_its_cap", _TRIM + "test_golden"),
    ),
    Mutation(
        "the omission lines count",
        "prompt/trim.py",
        "return Trimmed(text, self.count(text), tuple(page.omitted), tuple(page.cut))",
        "import re\n        bare = re.sub(r'(?m)^\\[… .*$', '', text)\n"
        "        return Trimmed(text, self.count(bare), tuple(page.omitted), tuple(page.cut))",
        (_TRIM + "test_golden",),
    ),
    Mutation(
        "no grapheme is broken",
        "prompt/ending.py",
        'regex.finditer(r"\\X", text, pos=start)',
        'regex.finditer(r"(?s).", text, pos=start)',
        (_TRIM + "test_a_grapheme_is_never_broken",),
    ),
    Mutation(
        "a fence that is cut is closed",
        "prompt/divide.py",
        "yield End(end, newline + closing)\n",
        'yield End(end, "")\n',
        (
            _TRIM + "test_golden",
            _TRIM + "test_what_is_a_fence_or_a_table_in_the_result_was_one_and_every_fence_is_closed",
        ),
    ),
    Mutation(
        "a fence that a file leaves open is closed below it",
        "prompt/parts.py",
        'return replace(part, closing=closing_line(view.text) if view.is_text else "")',
        "return part",
        ("tests/prompt/test_prompt_layout.py::test_what_a_file_leaves_open_is_closed_below_it",),
    ),
    Mutation(
        "a table keeps its head",
        "prompt/tree.py",
        'return Block("entry", start, end, rows, head=lines.span(node.first, node.first + 2), entries=len(rows))',
        'return Block("entry", start, end, rows, entries=len(rows))',
        (_TRIM + "test_golden",),
    ),
    Mutation(
        "what is left out is told",
        "prompt/shown.py",
        "self.pieces.append(omission_line(entries, tokens, self.path, _place_of(waiting).anchor))",
        "pass",
        (_TRIM + "test_golden",),
    ),
    Mutation(
        "the call names a section that the notebook has",
        "prompt/anchors.py",
        'parser.inline.ruler.before("link", "wikilink", _wikilink)',
        "pass",
        (_TRIM + "test_the_anchors_in_the_markers_are_those_of_the_notebook",),
    ),
    Mutation(
        "no link is broken",
        "prompt/ending.py",
        "sorted([*inline_spans(text), *links(text)], key=lambda span: span.start)",
        "sorted(inline_spans(text), key=lambda span: span.start)",
        ("tests/prompt/test_prompt_properties.py::test_no_tag_no_link_and_no_entity_is_broken_at_any_cap",),
    ),
    Mutation(
        "open emphasis is closed",
        "prompt/ending.py",
        "closing = text[span.start : span.start + span.width] + closing",
        'closing = ""',
        (_TRIM + "test_open_emphasis_is_closed_and_a_code_span_too",),
    ),
    Mutation(
        "what is pinned leaves last",
        "prompt/order.py",
        "for pinned in (False, True):",
        "for pinned in (True, False):",
        (_TRIM + "test_golden",),
    ),
    Mutation(
        "a larger cap shows no less",
        "prompt/trim.py",
        "if 0 < gone < len(self.order) and tokens <= cap + SLACK:",
        "if 0 < gone < len(self.order) and tokens <= cap + SLACK and (gone + cap) % 2:",
        ("tests/prompt/test_prompt_properties.py::test_each_cap_shows_all_that_the_one_below_it_does",),
    ),
    Mutation(
        "only the owner sees the opening comment",
        "prompt/parts.py",
        'keep_grammar=session == "owner"',
        "keep_grammar=True",
        (_ASSEMBLE + "test_the_grammar_is_for_the_owner_and_other_comments_are_for_nobody",),
    ),
    Mutation(
        "what one session may see is not what another was shown",
        "prompt/assemble.py",
        'digests[file.path], session == "owner", day,',
        "digests[file.path], day,",
        (_FILES + "test_what_a_warm_assembler_showed_the_owner_is_not_what_it_shows_the_next_session",),
    ),
    Mutation(
        "what another day showed is not shown today",
        "prompt/assemble.py",
        'day = today if b"[until" in source.content.lower() else None',
        "day = None",
        (_ASSEMBLE + "test_an_expired_rule_leaves_on_its_day_even_from_a_warm_assembler",),
    ),
    Mutation(
        "an edit shows at once",
        "prompt/assemble.py",
        "digests = {source.path: _digest(source.content) for source in sources}",
        "digests = {source.path: str(len(source.content or b'')) for source in sources}",
        (_ASSEMBLE + "test_an_edit_shows_at_once_in_a_warm_assembler",),
    ),
    Mutation(
        "comments never get in",
        "prompt/comments.py",
        'gaps.append(Gap(begin + start, begin + end, "comment"))',
        "pass",
        (_COMMENTS + "test_a_comment_is_gone_and_nothing_else",),
    ),
    Mutation(
        "what a fence holds is code",
        "prompt/comments.py",
        'if node.type not in ("html_block", "paragraph", "heading", "tr"):',
        'if node.type not in ("html_block", "paragraph", "heading", "tr", "fence"):',
        (_COMMENTS + "test_code_and_what_only_looks_like_a_comment_stays",),
    ),
    Mutation(
        "comments in code stay",
        "prompt/comments.py",
        'found = ((span.start, span.end) for span in spans if span.kind == "comment")',
        "found = comments_in_html(text)",
        (_COMMENTS + "test_code_and_what_only_looks_like_a_comment_stays",),
    ),
    Mutation(
        "an expired rule leaves",
        "prompt/comments.py",
        "return date.fromisoformat(day) < today",
        "return False",
        (_COMMENTS + "test_a_rule_holds_through_its_until_day",),
    ),
    Mutation(
        "a rule holds through its last day",
        "prompt/comments.py",
        "return date.fromisoformat(day) < today",
        "return date.fromisoformat(day) <= today",
        (_COMMENTS + "test_a_rule_holds_through_its_until_day",),
    ),
    Mutation(
        "the day is that of the notebook's timezone",
        "notebook_sync/notes/prompting/system_prompt.py",
        "datetime.now(self._timezone).date()",
        "datetime.now().astimezone().date()",
        (_FILES + "test_a_rule_leaves_on_its_day_where_the_notebook_is",),
    ),
    Mutation(
        "a file is only for its sessions",
        "prompt/assemble.py",
        "seen = [file for file in files if session in file.sessions]",
        "seen = files",
        (_ASSEMBLE + "test_a_file_is_only_for_its_sessions",),
    ),
    Mutation(
        "the last good version stands in for a file that is being written",
        "notebook_sync/notes/prompting/sources.py",
        "return FileText(path, good, _UNDER_WAY, external=is_external(good))",
        "return FileText(path, None)",
        ("tests/notes/test_sources.py::test_a_file_that_an_editor_is_about_to_replace_shows_its_last_good_version",),
    ),
    Mutation(
        "an undefined name in the layout is an error",
        "prompt/layout.py",
        "undefined=StrictUndefined,",
        "",
        (_FILES + "test_a_name_that_the_layout_does_not_know_is_an_error_and_no_hole",),
    ),
    Mutation(
        "a note is no template",
        "prompt/layout.py",
        'return text.rstrip("\\n") + "\\n" if text.strip() else ""',
        "return _environment().from_string(text).render()",
        (_ASSEMBLE + "test_text_is_data",),
    ),
    Mutation(
        "external text cannot close its fence",
        "prompt/fence.py",
        "inside = _neutralised(text, fence_id)",
        "inside = text",
        (_ASSEMBLE + "test_external_text_cannot_close_its_fence",),
    ),
    Mutation(
        "external text is never stable",
        "prompt/parts.py",
        "if source.external:",
        "if False:",
        ("tests/prompt/test_prompt_layout.py::test_what_the_owner_did_not_write_is_never_in_the_stable_part",),
    ),
    Mutation(
        "the stable part leaves room that does not depend on what is volatile",
        "prompt/page.py",
        "return total - total // VOLATILE_SHARE",
        "return total",
        ("tests/prompt/test_prompt_totals.py::test_the_stable_part_leaves_an_eighth_to_what_is_volatile",),
    ),
    Mutation(
        "the total holds",
        "prompt/page.py",
        "if page.tokens <= self._limit:\n            return page\n        return self._shared(page)",
        "if page.tokens:\n            return page\n        return self._shared(page)",
        (_ASSEMBLE + "test_the_total_is_never_exceeded",),
    ),
    Mutation(
        "a text with the tag of the files changes the tag",
        "prompt/layout.py",
        'if "" not in taken:',
        "if True:",
        ("tests/prompt/test_prompt_layout.py::test_a_text_that_has_the_tag_changes_the_tag_not_the_text",),
    ),
    Mutation(
        "a vocabulary that is not here is refused, not fetched",
        "prompt/budget.py",
        'if threading.get_ident() == here and "://" in blobpath:',
        "if False:",
        (_BUDGET + "test_a_vocabulary_that_is_not_here_is_refused_without_a_connection",),
    ),
)
