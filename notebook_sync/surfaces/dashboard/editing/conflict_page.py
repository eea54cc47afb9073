"""The page of an edit whose file changed while it was written: what it was, what it says now, what was written, and the
three made one. Nothing that was typed is lost, and nothing is written until it is sent again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from starlette.responses import Response

from notebook_sync.errors import Conflict
from notebook_sync.notes.editing.difference import difference
from notebook_sync.notes.editing.door import digest_of
from notebook_sync.surfaces.dashboard.editing.conflict import Merged, marks_in, merged
from notebook_sync.surfaces.dashboard.editing.diff_view import difference_in
from notebook_sync.surfaces.dashboard.editing.edit_base import fits_a_form, packed, unpacked
from notebook_sync.surfaces.dashboard.editing.edit_text import WHOLE, box_of
from notebook_sync.surfaces.dashboard.pages import page

_LONGEST_BESIDE: Final = 100_000
_BETWEEN: Final = "\0"
_TEXTS: Final = 3


def conflict_page(path: str, base: str, mine: str, typed: str, conflict: Conflict) -> Response:
    """`base` is the file that the edit was made from, `mine` what it was to become; `typed` what the box held."""
    now = conflict.text
    is_gone = not conflict.current
    is_readable = is_gone or (digest_of(now.encode(errors="replace")) == conflict.current and "\0" not in now)
    texts = [box_of(text, WHOLE).shown for text in (base, now, mine)]
    together = Merged(texts[2], 0) if is_gone or not is_readable else merged(*texts)
    return _page(path, base, now, mine, typed, together, conflict.current, is_readable=is_readable)


def unchosen_page(path: str, sides: Sides, now: str, expected: str, typed: str, wrong: str) -> Response:
    """The page again, with what was made of the three texts by then, and why it is not saved."""
    return _page(path, sides.base, now, sides.mine, sides.typed, Merged(typed, marks_in(typed)), expected, wrong=wrong)


@dataclass(frozen=True, slots=True)
class Sides:
    """What a conflict page was made from besides what the file says now, as it travels in its form."""

    base: str
    mine: str
    typed: str

    def packed(self) -> str:
        """For a hidden field. None of the texts that a form is given holds a NUL."""
        return packed(_BETWEEN.join((self.base, self.mine, self.typed)))

    @classmethod
    def unpacked(cls, field: str, digest: str) -> Sides | None:
        """None where a form has none. Raises UsageError for another text than the one of this digest."""
        return cls(*texts) if len(texts := unpacked(field, digest).split(_BETWEEN)) == _TEXTS else None

    @property
    def digest(self) -> str:
        return digest_of(_BETWEEN.join((self.base, self.mine, self.typed)).encode())


def _page(
    path: str,
    base: str,
    now: str,
    mine: str,
    typed: str,
    together: Merged,
    expected: str,
    *,
    is_readable: bool = True,
    wrong: str = "",
) -> Response:
    is_gone = not expected
    # Of a note that is gone, what it was tells how its lines end.
    next_base = packed(base if is_gone else now) if is_readable else ""
    texts = [box_of(text, WHOLE).shown for text in (base, now, mine)]
    is_sendable = is_readable and fits_a_form(together.text, next_base)
    sides = Sides(base, mine, typed)
    has_sides = is_sendable and fits_a_form(together.text, next_base + sides.packed())
    return page(
        "conflict.html",
        here="notes",
        status=422 if wrong else 409,
        wrong=wrong,
        sides=sides.packed() if has_sides else "",
        sides_digest=sides.digest if has_sides else "",
        path=path,
        part=WHOLE,
        is_gone=is_gone,
        is_readable=is_readable,
        is_sendable=is_sendable,
        digest=digest_of(base.encode()) if is_gone else expected,
        expected=expected,
        base=next_base,
        together=together,
        theirs=difference_in(difference(path, base.encode(), None if is_gone else now.encode(errors="replace"))),
        mine=difference_in(difference(path, base.encode(), mine.encode())),
        typed=typed,
        texts=[
            (name, label, text)
            for name, label, text in zip(
                ("was", "now", "wrote"),
                ("What it was when you began", "What it says now", "What you wrote"),
                texts,
                strict=True,
            )
            if len(text) <= _LONGEST_BESIDE
        ],
    )
