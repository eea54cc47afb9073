"""The command `import`."""

from __future__ import annotations

import shlex
from argparse import Namespace
from codecs import BOM_UTF8
from collections.abc import Callable, Mapping
from pathlib import Path

from notebook_sync.errors import UsageError
from notebook_sync.notebook import Notebook
from notebook_sync.surfaces.cli.addressed import program
from notebook_sync.surfaces.cli.answers import opened, session_of, show
from notebook_sync.surfaces.cli.next_steps import next_steps
from notebook_sync.surfaces.cli.progress import progress
from notebook_sync.surfaces.cli.text import archive as text

_FAILED = 1


def _import(arguments: Namespace) -> int:
    file = _path(arguments.file)
    if arguments.v2:
        return _import_notes(arguments, file)
    if _is_older_export(file):
        command = f"{program()} import --v2 {shlex.quote(arguments.file)} --session owner"
        raise UsageError(
            f"{file} is no archive but JSON, as an older program exports private notes; to take them in, run: {command}"
        )
    if arguments.dir is None:
        raise UsageError(
            "name a folder for the notebook, as in: notebook-sync import ferry.tar.gz ~/ferry; "
            "with --v2, FILE is an older export of private notes"
        )
    with progress("import") as told:
        imported = Notebook.import_archive(
            file, _path(arguments.dir), progress=told, trust_settings=arguments.trust_settings
        )
    show(arguments, imported.as_dict(), text.of_import)
    return 0


def _import_notes(arguments: Namespace, file: Path) -> int:
    if arguments.dir is not None:
        raise UsageError("an older export goes into the notebook that -C names, else the nearest; leave DIR out")
    with next_steps(arguments), opened(arguments) as notebook:
        imported = notebook.channels.import_notes(file, session_of(arguments))
    show(arguments, imported.as_dict(), text.of_imported_notes)
    return _FAILED if imported.failed else 0


def _is_older_export(file: Path) -> bool:
    """Whether it begins as JSON does. What cannot be read is none: who unpacks it says why."""
    try:
        if not file.is_file():  # a pipe would wait
            return False
        with file.open("rb") as opened:
            return opened.read(1 << 10).removeprefix(BOM_UTF8).lstrip()[:1] in (b"{", b"[")
    except OSError:
        return False


def _path(given: str) -> Path:
    """Raises UsageError for what is the name of nothing."""
    if not given or "\0" in given:
        raise UsageError("name a file, as in: ferry.tar.gz")
    return Path(given).expanduser()


ARCHIVE: Mapping[str, Callable[[Namespace], int]] = {"import": _import}
