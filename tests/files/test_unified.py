"""Differences that `patch` applies, in bounded time."""

import random
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notebook_sync.files.edits import unified_diff

LINES = st.lists(
    st.sampled_from(["a\n", "b\n", "\n", "# c\n", "-- x\n", "@@ -1 +1 @@\n", "\x0c\x85z\n", "w\r\n"]), max_size=30
)
TEXTS = st.builds(lambda lines, end: "".join(lines) + end, LINES, st.sampled_from(["", "no end"]))


@given(before=TEXTS, after=TEXTS)
def test_a_diff_turns_one_text_into_the_other(
    tmp_path_factory: pytest.TempPathFactory, before: str, after: str
) -> None:
    file = Path(tmp_path_factory.getbasetemp()) / "patched"
    file.write_bytes(before.encode())
    diff = unified_diff(before, after, "patched")
    assert (diff == "") == (before == after)
    if diff:
        subprocess.run(["git", "apply", "--unidiff-zero", "-p0", "-"], input=diff.encode(), cwd=file.parent, check=True)
    assert file.exists() or after == ""
    assert not file.exists() or file.read_bytes() == after.encode()


def test_a_small_change_in_a_long_text_is_small() -> None:
    old = [f"line {number}\n" for number in range(40_000)]
    new = [*old[:20_000], "new\n", *old[20_001:]]
    diff = unified_diff("".join(old), "".join(new), "a.md").splitlines()
    assert (diff[2], len(diff)) == ("@@ -19998,7 +19998,7 @@", 3 + 8)


@pytest.mark.usefixtures("cpu_limit")
def test_texts_that_repeat_themselves_are_one_change(rng: random.Random) -> None:
    """Each line is there almost so often that `difflib` would leave it out, which is where it takes longest."""
    old, new = ("".join(f"{rng.randrange(110)}\n" for _ in range(80_000)) for _ in range(2))
    assert unified_diff(old, new, "a.md").count("\n@@ ") == 1
