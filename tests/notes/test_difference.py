"""Differences as `patch` takes them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from notebook_sync.notes.editing.difference import difference


def test_a_changed_line_is_shown_with_what_stands_around_it() -> None:
    before = b"".join(b"line %d\n" % n for n in range(1, 21))
    after = before.replace(b"line 10\n", b"line ten\n")
    assert difference("pages/plan.md", before, after) == (
        "--- a/pages/plan.md\n+++ b/pages/plan.md\n@@ -7,7 +7,7 @@\n"
        " line 7\n line 8\n line 9\n-line 10\n+line ten\n line 11\n line 12\n line 13\n"
    )


def test_a_note_that_is_new_or_gone() -> None:
    assert difference("a.md", None, b"x\n") == "--- /dev/null\n+++ b/a.md\n@@ -0,0 +1 @@\n+x\n"
    assert difference("a.md", b"x", None) == (
        "--- a/a.md\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\\ No newline at end of file\n"
    )
    assert difference("a.md", b"x", b"x") == ""
    assert difference("a.md", None, None) == ""


def test_a_line_that_looks_like_a_hunk_is_a_line() -> None:
    before = b"a\nb\nc\nd\n@@ -1,2 +3,4 @@\ne\n"
    told = difference("a.md", before, before.replace(b"e\n", b"f\n"))
    assert "\n @@ -1,2 +3,4 @@\n" in told


def test_two_long_notes_that_differ_in_a_line_are_compared_there_alone() -> None:
    before = b"ebb\nflood\n" * 100_000
    assert difference("a.md", before, before + b"slack\n").startswith(
        "--- a/a.md\n+++ b/a.md\n@@ -199998,3 +199998,4 @@\n"
    )


@pytest.mark.timeout(60)
def test_lines_that_repeat_too_often_to_be_compared_are_changed_from_the_first_that_differs_to_the_last() -> None:
    before, after = (b"".join(b"%d\n" % (n * n % most) for n in range(40_000)) for most in (397, 389))
    told = difference("a.md", b"ebb\n" + before + b"flood\n", b"ebb\n" + after + b"flood\n")
    assert told.count("\n@@ ") == 1
    assert told.count("\n-") + told.count("\n+") > 79_000


LINES = st.lists(st.sampled_from(["ebb\n", "flood\n", "@@ -1 +1 @@\n", "- slack\r\n", "\n"]), max_size=30).map("".join)
TEXTS = st.builds(lambda lines, rest: (lines + rest).encode(), LINES, st.sampled_from(["", "rest", "\u2028x"]))


@pytest.mark.skipif(shutil.which("git") is None, reason="git applies the difference")
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=TEXTS, after=TEXTS)
@example(before=b"ebb\n" * 5, after=b"flood\n" + b"ebb\n" * 4)
def test_git_makes_the_one_of_the_other_by_it(tmp_path: Path, before: bytes, after: bytes) -> None:
    (tmp_path / "a.md").write_bytes(before)
    told = difference("a.md", before, after)
    if told:
        subprocess.run(
            ["git", "apply", "--whitespace=nowarn", "-"],
            cwd=tmp_path,
            input=told.encode(),
            check=True,
            env={"GIT_CEILING_DIRECTORIES": str(tmp_path.parent), "PATH": "/usr/bin:/bin", "GIT_DIR": "/nonexistent"},
        )
    assert (tmp_path / "a.md").read_bytes() == after
