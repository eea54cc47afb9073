"""Whether a file is whole, and fit to be shown."""

import pytest

from notebook_sync.files.beneath import conflict_marks, looks_unfinished, why_unusable


@pytest.mark.parametrize(
    "raw",
    [b"", b"---", b"---\n", b"---\ntitle: x\n", b"---\r\na: 1\r\n--", b"\xef\xbb\xbf---\na: 1", b"text \xc3",
     b"\xe2\x82", b"\xf0\x9f\x98", b"\xef\xbb"],
)  # fmt: skip
def test_a_file_that_is_still_being_written_looks_so(raw: bytes) -> None:
    assert looks_unfinished(raw)


@pytest.mark.parametrize(
    "raw",
    [b"\n", b"text", b"---\n---", b"---\na: 1\n---\n", b"---\r\na: 1\r\n---\r\n", b"---\na: 1\n...\n", "é".encode(),
     "€😀".encode(), b"\xff", b"a\x80", b"----\n", b"text\n---\n", b"\x80\x80\x80"],
)  # fmt: skip
def test_a_finished_file_does_not(raw: bytes) -> None:
    assert not looks_unfinished(raw)


CONFLICT = "## A\n\n<<<<<<< HEAD\n- mine\n=======\n- theirs\n>>>>>>> branch\n"


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "it is empty"),
        (b"\xef\xbb\xbf \n\t\r\n", "it is empty"),
        (b"# A\n\nbad \xff here", "line 3: not UTF-8"),
        (b"# A\n\0\0", "line 2: a NUL byte"),
        ("# A".encode("utf-16"), "line 1: it is UTF-16"),
        (CONFLICT.encode(), "line 3: a mark of a merge conflict"),
        (b"---\na: 1\n---\n" + CONFLICT.encode(), "line 6: a mark"),
        (b"```\n" + CONFLICT.encode() + b"```\n", ""),
        (b"# A\n=======\n\n<<<<<<<\n", ""),
        ("ß".encode(), ""),
    ],
)
def test_why_it_must_not_be_shown(raw: bytes, reason: str) -> None:
    assert why_unusable(raw).startswith(reason)
    assert bool(why_unusable(raw)) == bool(reason)


def test_the_lines_of_merge_marks_outside_of_code() -> None:
    text = f"---\na: 1\n---\n```\n{CONFLICT}```\n{CONFLICT}"
    assert (conflict_marks(text), len(conflict_marks("<<<<<<< x\n" * 50_000))) == ((15, 19), 50_000)
