"""What in a folder of files makes git run a program: a repository among them, whose settings git obeys, and attributes
or submodules that name a program. `import` refuses these in an archive, and `doctor` looks for them in a notebook."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from notebook_sync.folder import FOLDER
from notebook_sync.permissions import plain_parts

_OWN = {FOLDER, ".git"}
_ATTRIBUTES, _MODULES = ".gitattributes", ".gitmodules"
_DRIVER = re.compile(r"(?<!\S)(?:filter|diff|merge)=(\S+)")
# They are git's own, and no program runs unless the user's own settings say so.
_BUILT_IN = re.compile(
    "ada|bash|bibtex|binary|cpp|csharp|css|dts|elixir|fortran|fountain|golang|html|java|kotlin|markdown|matlab|objc|"
    "pascal|perl|php|python|ruby|rust|scheme|tex|text|union"
)
_COMMAND = re.compile(r"update\s*=\s*!|::")
_QUOTING = re.compile(r'["\\]|\\\r?\n')


def traps_among(root: Path, paths: Sequence[str]) -> list[str]:
    """Each of them in words; `paths` are files and folders below `root`."""
    found = [f"{place} is a git repository" for place in repositories_among(paths)]
    for path in paths:
        kind = (plain_parts(path) or ("",))[-1]
        if kind in {_ATTRIBUTES, _MODULES} and (named := _named_in(root / path, kind)):
            found.append(f"{path} names {', '.join(named)}")
    return found


def repositories_among(paths: Iterable[str]) -> list[str]:
    """The folders that git would take for a repository if these files and folders were there. Pure."""
    children: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for path in paths:
        parts = plain_parts(path) or ()
        for depth, name in enumerate(parts):
            children[parts[:depth]].add(name)
    return [
        "/".join(folder) or "."
        for folder, names in sorted(children.items())
        if "head" in names and ("commondir" in names or {"objects", "refs"} <= names)
    ]


def paths_below(root: Path) -> Iterator[str]:
    """All files and folders but those in `.git` and `.notebook`."""
    for place, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in _OWN]
        above = os.path.relpath(place, root)
        yield from (os.path.normpath(f"{above}/{name}") for name in (*folders, *files))


def _named_in(file: Path, kind: str) -> list[str]:
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    if kind == _ATTRIBUTES:
        return sorted({match[0] for match in _DRIVER.finditer(text) if not _BUILT_IN.fullmatch(match[1])})
    return ["a command"] if _COMMAND.search(_QUOTING.sub("", text)) else []
