"""Making a notebook: settings, runtime files and folders from the templates. Never overwrites and never deletes."""

from __future__ import annotations

import os
import secrets
import shlex
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from shutil import which
from typing import Literal

import jinja2

import runtime_templates
from notebook_sync.errors import GitFailed, NotebookError, Refused, UsageError
from notebook_sync.files.git import Repository, run_git
from notebook_sync.files.private import printable, read_private, write_private
from notebook_sync.files.state import Place, expanded, find_root
from notebook_sync.model import RUNTIME_FILES, SETTINGS_FILE

Git = Literal["made", "kept", "missing", "off"]

BEGIN, END = b"<!-- notebook-sync:begin -->", b"<!-- notebook-sync:end -->"
_FOLDERS = ("pages", "code_snippets", "research_notes", "facts", "memories", "channels")
# By path: the template. The packaged `gitignore` has no dot, so that no tool takes it for a rule about the package.
_IN_ANY_FOLDER = {SETTINGS_FILE: SETTINGS_FILE, **{path: path.rpartition("/")[2] for path in RUNTIME_FILES}}
_IN_A_NEW_FOLDER = {".gitignore": "gitignore"}
_TEMPLATES = Path(runtime_templates.__file__).parent
_jinja = jinja2.Environment(  # noqa: S701 - no HTML
    loader=jinja2.FileSystemLoader(_TEMPLATES), undefined=jinja2.StrictUndefined, keep_trailing_newline=True
)


@dataclass(frozen=True, slots=True)
class Initialized:
    """What was made. `created` and `kept` are relative to `root`, folders with a `/` at the end.

    git: a repository was made, was there (kept), could not be made (missing: no git), or was not wanted (off). `brain`
    is the instruction file that names the notebook, "" for none.
    """

    root: str
    created: list[str]
    kept: list[str]
    git: Git
    brain: str


def initialize(root: Path, *, name: str = "", git: bool = True, brain: Path | None = None) -> Initialized:
    """Make what a notebook at `root` lacks: in an empty folder all of it, in a folder that holds something only
    notebook.toml and the runtime files. `brain` gets a block that says where the rules are.

    Raises UsageError, NotANotebook for `/` and the home folder, Refused for a `brain` without a pair of markers.
    """
    root = expanded(root).absolute()
    if root.exists() and not root.is_dir():
        raise UsageError(f"{root} is not a folder", next="name a folder, or a place where one can be made")
    brain = brain and expanded(brain)
    try:
        before = read_private(brain.resolve()) if brain else None
        after = with_block(before or b"", _block(brain, root), str(brain)) if brain else b""
        root.mkdir(parents=True, exist_ok=True)
        if not (root / SETTINGS_FILE).is_file():
            find_root(root, adopt=True)  # not every folder may become one
        is_empty = all(each.name.startswith(".") for each in root.iterdir())
        created, kept = _fill(root, name or root.name, is_empty=is_empty)
        Place.open(root)
        repository = _repository(root, created, is_new=is_empty) if git else "off"
        if brain is not None and before != after:
            replace_file(brain, before, after, mode=0o644)
    except OSError as error:
        reason = f"{error.filename or root}: {error.strerror or error}"
        raise NotebookError(reason, next="nothing was overwritten; correct it, and run the command again") from None
    return Initialized(printable(root), created, kept, repository, printable(brain) if brain else "")


def with_block(raw: bytes, text: str, file: str = "the file") -> bytes:
    """`raw` with `text` between the two markers; every byte outside of them as it was.

    Without markers, the block is added at the end, after a blank line. Line ends follow the file. Raises Refused.
    """
    begins, ends = raw.count(BEGIN), raw.count(END)
    if begins != ends or begins > 1 or raw.find(BEGIN) > raw.find(END):
        raise Refused(
            f"{file} has {begins} × {BEGIN.decode()} and {ends} × {END.decode()}",
            next="leave one pair in this order, or none",
        )
    # A block that is there has its own line ends; a file may have both kinds.
    newline = b"\r\n" if (BEGIN if begins else b"") + b"\r\n" in raw else b"\n"
    block = newline.join([BEGIN, *text.strip().encode().splitlines(), END])
    if begins:
        return raw[: raw.find(BEGIN)] + block + raw[raw.find(END) + len(END) :]
    gap = b"" if not raw else newline if raw.endswith(b"\n") else newline * 2
    return raw + gap + block + newline


def replace_file(file: Path, before: bytes | None, after: bytes, *, mode: int) -> None:
    """Give a file that is not the program's own its content in one step: a link to it stays a link, and it keeps its
    mode, which is `mode` for a new one. Raises Refused where it no longer holds `before`, OSError."""
    place = file.resolve()
    if read_private(place) != before:
        raise Refused(f"{file} was changed by another program just now", next="run the command again")
    mode = mode if before is None else place.stat().st_mode
    place.parent.mkdir(parents=True, exist_ok=True)
    write_private(place, after)
    place.chmod(mode)


def _block(brain: Path, root: Path) -> str:
    """What an instruction file says of the notebook: not the rules, which change, but how to get them."""
    folder, place = brain.absolute().parent, str(root)
    if folder in (root, *root.parents) or root in folder.parents:  # they move together
        place = os.path.relpath(root, folder)
    return _jinja.get_template("brain.md").render(root=shlex.quote(place))


def _fill(root: Path, name: str, *, is_empty: bool) -> tuple[list[str], list[str]]:
    """Make the files and folders that are missing; which were made, and which were there."""
    created, kept = list[str](), list[str]()
    values = {"id": Place.find(root).notebook_id or secrets.token_hex(8), "name": _in_quotes(name)}
    for path, source in (_IN_ANY_FOLDER | (_IN_A_NEW_FOLDER if is_empty else {})).items():
        target = root / path
        target.parent.mkdir(exist_ok=True)
        try:
            with target.open("x", encoding="utf-8", newline="") as file:
                file.write(_jinja.get_template(source).render(values))
            created.append(path)
        except FileExistsError:
            kept.append(path)
    folders = _FOLDERS if is_empty else ()
    for folder in folders:
        (root / folder).mkdir()
    return [*created, *(f"{folder}/" for folder in folders)], kept


def _in_quotes(text: str) -> str:
    """A text as TOML has it between quotation marks."""
    escapes = {ord("\\"): "\\\\", ord('"'): '\\"', **{number: f"\\u{number:04x}" for number in (*range(32), 127)}}
    return printable(text).translate(escapes)


def _repository(root: Path, created: list[str], *, is_new: bool) -> Git:
    """A new folder gets a repository that begins with what was made here. Notes that were there are their owner's to
    commit."""
    if which("git") is None:
        return "missing"
    if Repository.around(root) is not None:
        return "kept"
    if not is_new:
        return "off"
    run_git(root, "init", "--quiet", "--template=")
    texts = {path: (root / path).read_bytes() for path in created if not path.endswith("/")}
    if repository := Repository.around(root):
        with suppress(GitFailed):  # a repository without a commit is one, too
            repository.commit(texts, "Begin the notebook\n\n", at=datetime.now(UTC))
    return "made"
