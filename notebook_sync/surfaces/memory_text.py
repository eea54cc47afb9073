"""What the memory tool's commands do to texts, and how they show them: the published form, to the letter. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

LONGEST_VIEW = 16_000  # characters: that tool tells its model that a longer view is cut here
NOT_LISTED = "node_modules"
_DEPTH = 2
_MOST_PLACES = 20


class MemoryToolError(Exception):
    """A command that was not done; the message is what the model is told."""


def listing(path: str, place: str, sizes: Mapping[str, int]) -> str:
    """The notes of the folder at `place`, called `path`, two levels deep; a folder has the size of its notes."""
    prefix = f"{place}/" if place else ""
    totals: dict[str, int] = {}
    for note, size in sizes.items():
        *folders, name = note.removeprefix(prefix).split("/")
        for depth in range(1, min(len(folders), _DEPTH) + 1):
            folder = "/".join(folders[:depth]) + "/"
            totals[folder] = totals.get(folder, 0) + size
        if len(folders) < _DEPTH:
            totals["/".join((*folders, name))] = size
    rows = [f"{_size(sum(sizes.values()))}\t{path}"]
    rows += [f"{_size(totals[name])}\t{path}/{name}" for name in sorted(totals, key=lambda name: name.split("/"))]
    header = f"Here're the files and directories up to {_DEPTH} levels deep in {path}"
    return "\n".join((f"{header}, excluding hidden items and {NOT_LISTED}:", *rows))


def _size(count: float) -> str:
    units = list("MKB")
    while count >= 1024 and len(units) > 1:
        count /= 1024
        units.pop()
    return f"{count:.1f}".removesuffix(".0") + units[-1]


def lines_of(text: str) -> list[str]:
    """The lines as a model is shown them: without their ends, and without a byte order mark."""
    lines = text.removeprefix("\ufeff").split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def bounds_in(view_range: Sequence[int] | None, count: int) -> tuple[int, int]:
    """The first and the last line to show of `count`. Raises MemoryToolError for what is no range."""
    if view_range is None:
        return 1, count
    if len(view_range) == 2:
        first, last = max(view_range[0], 1), count if view_range[1] == -1 else min(view_range[1], count)
        if first <= max(last, 1):
            return first, last
    raise MemoryToolError(
        f"Error: Invalid `view_range` parameter: {list(view_range)}. "
        f"It should be within the range of lines of the file: [1, {count}]"
    )


def numbered(lines: Sequence[str], first: int, last: int) -> str:
    """Lines with their numbers, as many of them as one view may have."""
    rows: list[str] = []
    length = 0
    for number in range(first, last + 1):
        row = f"{number:6}\t{lines[number - 1]}"
        length += len(row) + 1
        if length > LONGEST_VIEW:
            if not rows:
                rows.append(f"{row[:LONGEST_VIEW]}…")
                number += 1
            if number <= last:
                rows.append(f"[… truncated: view the rest with view_range [{number}, {last}]]")
            break
        rows.append(row)
    return "\n".join(rows)


def line_at(text: str, at: int) -> int:
    """The number of the line that a character stands in."""
    return text.count("\n", 0, at) + 1


def the_one_place(text: str, old: str, new: str, path: str) -> tuple[int, str, str]:
    """Where `old` stands in the file at `path`, and both texts with the line ends that the file has.

    Raises MemoryToolError where it stands nowhere or more than once.
    """
    if "\r\n" in text and "\r\n" not in old + new:
        old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
    first = text.find(old) if old else -1
    if first < 0:
        raise MemoryToolError(f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}.")
    places = [first]
    while len(places) <= _MOST_PLACES and (following := text.find(old, places[-1] + 1)) >= 0:
        places.append(following)
    if len(places) > 1:
        numbers = ", ".join(str(line_at(text, place)) for place in places[:_MOST_PLACES])
        numbers += ", …" if len(places) > _MOST_PLACES else ""
        raise MemoryToolError(
            f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {numbers}. "
            "Please ensure it is unique"
        )
    return first, old, new


def with_lines(text: str, below: int, more: str) -> str:
    """`text` with the lines of `more` below one of its lines, ended as its own are."""
    newline = "\r\n" if "\r\n" in text else "\n"
    if newline == "\r\n" and newline not in more:
        more = more.replace("\n", newline)
    if not more.endswith("\n"):
        more += newline
    lines = text.split("\n")
    before = "\n".join(lines[:below]) + "\n" if below else ""
    if below == len(lines) and lines[-1]:  # the last line has no end
        return text + newline + more.removesuffix(newline)
    if not below and text.startswith("\ufeff"):
        return "\ufeff" + more + text[1:]
    return before + more + text[len(before) :]
