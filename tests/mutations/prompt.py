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
_FRAME = "tests/security/test_prompt_frame.py::"
_ASSEMBLE = "tests/prompt/test_assemble.py::"
_HIDDEN = "tests/prompt/test_hidden.py::"
_BUDGET = "tests/prompt/test_prompt_budget.py::"
_FILES = "tests/prompt/test_prompt_of_files.py::"

MUTATIONS = (
    Mutation(
        "no page is over the cap",
        "prompt/trim.py",
        "            if tokens <= cap:\n                return Trimmed(page.text",
        "            if tokens <= cap + 8:\n                return Trimmed(page.text",
        (_TRIM + "test_golden",),
    ),
    Mutation(
        "the omission lines count",
        "prompt/trim.py",
        "tokens = self._count(page.text)\n",
        "tokens = self._count(re.sub(r'(?m)^\\[… .*$', '', page.text))\n",
        (_TRIM + "test_golden",),
    ),
    Mutation(
        "no grapheme is broken",
        "prompt/ends.py",
        'regex.finditer(r"\\X", window)',
        'regex.finditer(r"(?s).", window)',
        (_TRIM + "test_a_grapheme_is_never_broken",),
    ),
    Mutation(
        "a fence that is cut is closed",
        "prompt/ends.py",
        '    if block.type == "fence":\n        return _fence_end(outline, block)\n    if block.type == "code_block"',
        '    if block.type == "fence":\n        return ""\n    if block.type == "code_block"',
        (_TRIM + "test_golden",),
    ),
    Mutation(
        "a fence that a file leaves open is closed below it",
        "prompt/parts.py",
        "return replace(part, closing=closing_line(part.text))",
        "return part",
        ("tests/prompt/test_prompt_layout.py::test_what_a_file_leaves_open_is_closed_below_it",),
    ),
    Mutation(
        "a table keeps its head",
        "prompt/pieces.py",
        "self._entries(block.children[1:], head, -1, True)",
        "self._entries(block.children[1:], frame, -1, True)",
        (_TRIM + "test_golden",),
    ),
    Mutation(
        "what is left out is announced",
        "prompt/excerpt.py",
        'self._parts += [self._newline * 2 if self._parts else "", line]',
        "pass",
        (_TRIM + "test_golden",),
    ),
    Mutation(
        "the call names a section that the notebook has",
        "prompt/outline.py",
        '_NOT_IN_ANCHOR.sub("", title.lower())',
        "title.lower()",
        ("tests/prompt/test_outline.py",),
    ),
    Mutation(
        "no link is broken",
        "prompt/ends.py",
        '        if span.kind not in ("emphasis", "strong", "strike", "code"):\n            return None\n',
        '        if span.kind not in ("emphasis", "strong", "strike", "code"):\n            continue\n',
        ("tests/prompt/test_prompt_properties.py::test_a_link_longer_than_a_stretch_is_shown_whole_or_not_at_all",),
    ),
    Mutation(
        "open emphasis is closed",
        "prompt/ends.py",
        "closing = text[span.start : span.start + span.width] + closing",
        'closing = ""',
        (_TRIM + "test_open_emphasis_is_closed_and_a_code_span_too",),
    ),
    Mutation(
        "what is pinned stays longest",
        "prompt/order.py",
        "product((True, False), (False, True), (False, True), (0, 1, 2))",
        "product((False, True), (False, True), (False, True), (0, 1, 2))",
        (_TRIM + "test_golden",),
    ),
    Mutation(
        "a lead-in stays with what it introduces",
        "prompt/pieces.py",
        "around = self._frame(block, block.end, around)",
        "self._frame(block, block.end, around)",
        (_TRIM + "test_golden",),
    ),
    Mutation(
        "done tasks leave before open ones",
        "prompt/order.py",
        "setdefault((piece.done, piece.late, wave), [])",
        "setdefault((False, piece.late, wave), [])",
        (_TRIM + "test_golden",),
    ),
    Mutation(
        "of a log the newest stay",
        "prompt/order.py",
        "keys.append((-day.toordinal(),",
        "keys.append((day.toordinal(),",
        (_TRIM + "test_golden",),
    ),
    Mutation(
        "each section keeps its first entries before any keeps more",
        "prompt/order.py",
        "wave = 2 if position >= FAIR_SHARE else 1 if position or chapter.is_dated else 0",
        "wave = 0",
        (_TRIM + "test_golden",),
    ),
    Mutation(
        "a larger cap shows no less",
        "prompt/trim.py",
        "if self._estimates[number][0] <= cap + SLACK and",
        "if self._estimates[number][0] <= cap + SLACK and (number + cap) % 2 and",
        ("tests/prompt/test_prompt_properties.py::test_each_cap_shows_all_that_the_one_below_it_does",),
    ),
    Mutation(
        "what another day showed is not shown today",
        "prompt/assemble.py",
        'views.append(view(file, source, _moment(source.content or b"", now)))',
        "views.append(view(file, source, _ALWAYS))",
        (_ASSEMBLE + "test_an_expired_rule_leaves_on_its_day_even_from_a_warm_assembler",),
    ),
    Mutation(
        "an edit shows at once",
        "prompt/values.py",
        "content: bytes | None\n",
        "content: bytes | None = field(compare=False)\n",
        (_ASSEMBLE + "test_an_edit_shows_at_once_in_a_warm_assembler",),
    ),
    Mutation(
        "the prompt names the day",
        "prompt/templates/volatile.md.j2",
        "{% if today %}",
        "{% if false %}",
        (_ASSEMBLE + "test_the_day_comes_first_after_the_stable_part_and_never_in_it",),
    ),
    Mutation(
        "only an owner session is told how to edit",
        "runtime_templates/directive.md",
        '{%- if session == "owner" %}',
        "{%- if true %}",
        ("tests/prompt/test_runtime_templates.py",),
    ),
    Mutation(
        "comments never get in",
        "prompt/hidden.py",
        'gaps += [Gap(begin + start, begin + end, "comment") for start, end in _with_their_space(lines, comments)]',
        "pass",
        (_HIDDEN + "test_a_comment_is_gone_and_nothing_else",),
    ),
    Mutation(
        "comments in code stay",
        "prompt/hidden.py",
        'if span.kind == "html" and span.value.startswith("<!--"):',
        'if "<!--" in span.value:',
        (_HIDDEN + "test_code_and_what_only_looks_like_a_comment_stays",),
    ),
    Mutation(
        "an expired rule leaves",
        "prompt/dates.py",
        "return self.ends is not None and self.ends <= now",
        "return False",
        (_HIDDEN + "test_a_rule_is_shown_while_it_holds",),
    ),
    Mutation(
        "a rule holds through its last day",
        "prompt/dates.py",
        "ends + timedelta(1)",
        "ends",
        (
            _HIDDEN + "test_a_rule_is_shown_while_it_holds",
            "tests/prompt/test_dates.py",
        ),
    ),
    Mutation(
        "the day is that of the notebook's timezone",
        "notebook_sync/notes/prompting/system_prompt.py",
        "datetime.now(self._timezone).replace(tzinfo=None)",
        "datetime.now()",
        (_FILES + "test_the_day_is_that_of_the_notebook_for_rules_and_in_words",),
    ),
    Mutation(
        "a file is only for its sessions",
        "prompt/assemble.py",
        "seen = [file for file in files if session in file.sessions]",
        "seen = files",
        (_ASSEMBLE + "test_a_file_is_only_for_its_sessions",),
    ),
    Mutation(
        "a file that is being written is shown in its last good version",
        "notebook_sync/notes/prompting/sources.py",
        'return as_source(path, good, "" if good is None else _UNDER_WAY)',
        "return FileText(path, None)",
        ("tests/notes/test_sources.py::test_a_file_that_an_editor_is_about_to_replace_shows_its_last_good_version",),
    ),
    Mutation(
        "no binary file and no merge mark replaces the last good version",
        "notebook_sync/notes/prompting/sources.py",
        "if raw != self._kept.get(path) and (reason := why_unusable(raw)):",
        "if (reason := '') and why_unusable(raw):",
        ("tests/notes/test_sources.py::test_bytes_that_are_no_good_text_never_replace_the_last_good_copy",),
    ),
    Mutation(
        "text that nobody vouches for is held back",
        "notebook_sync/notes/prompting/trust.py",
        "return committed if accepted is None else accepted",
        "return found",
        ("tests/notes/test_trust.py::test_a_line_that_nobody_vouches_for_is_held_back",),
    ),
    Mutation(
        "an owner's edit does not vouch for lines that wait",
        "notebook_sync/notes/prompting/trust.py",
        "if self.same(waiting.trusted, before):",
        "if edits:",
        ("tests/notes/test_trust.py::test_an_owners_edit_does_not_vouch_for_lines_that_wait",),
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
        (_FILES + "test_nothing_in_a_text_is_a_template",),
    ),
    Mutation(
        "external text cannot close its fence",
        "prompt/fence.py",
        "inside = quote(_neutralised(text, fence_id))",
        "inside = quote(text)",
        ("tests/prompt/test_prompt_fence.py::test_no_text_leaves_its_fence",),
    ),
    Mutation(
        "what follows the files is quoted",
        "prompt/layout.py",
        'quote(text.rstrip("\\r\\n"))',
        'text.rstrip("\\r\\n")',
        (_FRAME + "test_the_frame_of_a_prompt_is_the_layouts_whatever_the_texts_say",),
    ),
    Mutation(
        "what a fence holds is quoted",
        "prompt/fence.py",
        "inside = quote(_neutralised(text, fence_id))",
        "inside = _neutralised(text, fence_id)",
        (_FRAME + "test_a_fence_has_no_tag_or_heading_of_the_frame",),
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
        "self._limit = settings.max_tokens - settings.max_tokens // VOLATILE_SHARE",
        "self._limit = settings.max_tokens",
        ("tests/prompt/test_prompt_totals.py::test_the_stable_part_leaves_an_eighth_to_what_is_volatile",),
    ),
    Mutation(
        "the total holds",
        "prompt/page.py",
        "return page if page.tokens <= self._limit else self._shared(page)",
        "return page",
        ("tests/prompt/test_prompt_totals.py::test_no_text_and_no_total_gives_a_prompt_above_it",),
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
