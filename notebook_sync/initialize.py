"""Making a notebook: folders, settings and runtime files from the templates. Never overwrites and never deletes.

Git keeps no empty folders, and none is needed: whoever writes a note into `pages/` makes it again.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import tempfile
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from notebook_sync.config import FILE
from notebook_sync.errors import GitFailed, NotebookError, Refused, UsageError
from notebook_sync.files.commits import commit
from notebook_sync.files.history import init_repository, is_tracked_by_git
from notebook_sync.files.note import RUNTIME_FILES
from notebook_sync.folder import FOLDER, make_folder
from notebook_sync.tokens import FILE as TOKENS
from notebook_sync.tokens import Tokens

Git = Literal["made", "kept", "missing", "off"]
Change = Literal["added", "refreshed", "unchanged"]

BEGIN = b"<!-- notebook-sync:begin -->"
END = b"<!-- notebook-sync:end -->"

_FOLDERS = ("pages", "code_snippets", "research_notes", "facts", "memories")
# The wheel has the template without its dot, so that no tool takes it for a rule about the package itself.
_TEMPLATES = {FILE: FILE, ".gitignore": "gitignore", **{f"runtime/{name}": name for name in RUNTIME_FILES}}


@dataclass(frozen=True, slots=True)
class Initialized:
    """What was made. `created` and `kept` are relative to `root`, folders with a `/` at their end.

    git: a repository was made, was there (`kept`), could not be made (`missing`: no git), or was not wanted (`off`).
    """

    root: Path
    created: tuple[str, ...]
    kept: tuple[str, ...]
    git: Git
    brain: Path | None = None
    brain_change: Change | None = None

    def as_dict(self) -> dict[str, Any]:
        """The shape that `--json` prints."""
        brain = {"path": str(self.brain), "change": self.brain_change} if self.brain else None
        return {
            "root": str(self.root),
            "created": list(self.created),
            "kept": list(self.kept),
            "git": self.git,
            "brain": brain,
        }


def initialize(root: Path, *, git: bool = True, brain: Path | None = None) -> Initialized:
    """Make what a notebook at `root` lacks. Raises UsageError, and Refused for a `brain` without a pair of markers."""
    if root.exists() and not root.is_dir():
        raise UsageError(f"{root} is not a folder; name one, or a place where one can be made")
    try:
        directed = _plan(brain, _directive(brain, root)) if brain is not None else None
        created, kept = _fill(root)
        repository = _repository(root, created) if git else "off"
        if brain is None or directed is None:
            return Initialized(root, created, kept, repository)
        return Initialized(root, created, kept, repository, brain, _carry_out(brain, *directed))
    except OSError as error:
        raise NotebookError(f"{error.filename or root}: {error.strerror or error}; nothing was overwritten") from None


def template(name: str) -> str:
    """The text of a template, from wherever the package is installed."""
    return files("runtime_templates").joinpath(name).read_text(encoding="utf-8")


def _directive(brain: Path, root: Path) -> str:
    """What an instruction file says of the notebook: not the rules, which change, but where they are to be had."""
    place, told = str(root), f"`{root}`"
    if brain.parent in (root, *root.parents) or root in brain.parents:  # they move together
        place = os.path.relpath(root, brain.parent)
        told = f"`{place}`, from this file's folder"
    return template("brain.md").replace("`NOTEBOOK`", told).replace("NOTEBOOK", shlex.quote(place))


def with_directive(raw: bytes, directive: str) -> bytes:
    """`raw` with `directive` between the markers; every byte outside of them as it was.

    Without markers, the block is added at the end, after a blank line. Line ends follow the file. Raises Refused.
    """
    begins, ends = raw.count(BEGIN), raw.count(END)
    if begins != ends or begins > 1 or raw.find(BEGIN) > raw.find(END):
        raise Refused(f"{begins} × {BEGIN.decode()} and {ends} × {END.decode()}; leave one pair in this order, or none")
    # A block that is there has its own line ends; a file may have both kinds.
    newline = b"\r\n" if (BEGIN if begins else b"") + b"\r\n" in raw else b"\n"
    lines = [BEGIN, *directive.strip().encode().splitlines(), END]
    block = newline.join(lines)
    if begins:
        return raw[: raw.find(BEGIN)] + block + raw[raw.find(END) + len(END) :]
    if not raw:
        return block + newline
    gap = newline if raw.endswith(b"\n") else newline * 2
    return raw + gap + block + newline


def _fill(root: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    created, kept = [], []
    root.mkdir(parents=True, exist_ok=True)
    for path, name in _TEMPLATES.items():
        target = root / path
        target.parent.mkdir(exist_ok=True)
        try:
            with target.open("x", encoding="utf-8", newline="") as file:
                file.write(template(name))
            created.append(path)
        except FileExistsError:
            kept.append(path)
    for name in _FOLDERS:
        if (root / name).is_dir():
            kept.append(f"{name}/")
        else:
            (root / name).mkdir()
            created.append(f"{name}/")
    secrets = f"{FOLDER}/{TOKENS}"
    (kept if (root / secrets).exists() else created).append(secrets)
    make_folder(root / FOLDER)
    Tokens(root / FOLDER).owner()
    return tuple(created), tuple(kept)


def _repository(root: Path, created: tuple[str, ...]) -> Git:
    """A new repository begins with what was made here; notes that were there before are their owner's to commit."""
    if is_tracked_by_git(root):
        return "kept"
    if not init_repository(root):
        return "missing"
    with contextlib.suppress(GitFailed):  # a repository without a commit is one all the same
        commit(root, {path: (root / path).read_bytes() for path in created if path in _TEMPLATES}, "Begin the notebook")
    return "made"


def _plan(brain: Path, directive: str) -> tuple[bytes | None, bytes]:
    """What the file holds, None where there is none, and what it is to hold."""
    raw = _held(brain)
    try:
        return raw, with_directive(raw or b"", directive)
    except Refused as error:
        raise Refused(f"{brain} has {error}") from None


def _held(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None


def _carry_out(brain: Path, before: bytes | None, after: bytes) -> Change:
    if before == after:
        return "unchanged"
    target = brain.resolve()  # a link to the real file stays a link
    target.parent.mkdir(parents=True, exist_ok=True)
    fd, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(after)
            file.flush()
            os.fsync(file.fileno())
        if before is None:
            Path(temporary).chmod(0o644)
        else:
            shutil.copymode(target, temporary)
        _must_still_hold(target, before)
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    _keep(target.parent)
    return "refreshed" if before is not None and BEGIN in before else "added"


def _must_still_hold(file: Path, before: bytes | None) -> None:
    if _held(file) != before:
        raise Refused(f"{file} was changed by someone else just now and is left as it is; run the command again")


def _keep(folder: Path) -> None:
    """Make what was renamed in `folder` outlast a power cut."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
