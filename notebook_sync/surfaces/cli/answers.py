"""What commands share: the notebook they are about, who asks, texts that are given to them, and how they answer."""

from __future__ import annotations

import codecs
import io
import json
import os
import shutil
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from notebook_sync.errors import NotANotebook, UsageError
from notebook_sync.moments import moment
from notebook_sync.notebook import Notebook, find_root
from notebook_sync.sessions import OWNER, Session
from notebook_sync.surfaces.cli.addressed import PROGRAM


def opened(arguments: Namespace) -> Notebook:
    """The notebook that -C names, else the nearest. Raises as `Notebook.open` and `Notebook.find`."""
    return Notebook.open(arguments.folder) if arguments.folder is not None else Notebook.find(Path.cwd())


def opened_for_prompt(arguments: Namespace) -> Notebook:
    """As `opened`; while notebook.toml has an error, with the settings that last had none, and that is said."""
    from notebook_sync.notes.prompting.good_settings import load_for_prompt  # it brings the parser along

    root = root_of(arguments)
    if root is None or not root.is_dir():
        return opened(arguments)  # which says what is wrong
    settings, trouble = load_for_prompt(root)
    if trouble:
        complain(trouble)
    return Notebook(root, settings)


def root_of(arguments: Namespace) -> Path | None:
    """Where that notebook would be; None where there is none."""
    if arguments.folder is not None:
        return Path(arguments.folder).expanduser().resolve()
    try:
        return find_root(Path.cwd())
    except NotANotebook:
        return None


def session_of(arguments: Namespace) -> Session:
    """Who asks in this process. Raises UsageError."""
    at_terminal = sys.stdin is not None and sys.stdin.isatty()
    return asking(arguments.session, arguments.agent, os.environ, at_terminal=at_terminal)


def shown_to(arguments: Namespace) -> Session:
    """Who is shown what the files say: the owner, who has them anyway, unless a session or an agent is named, be it by
    NOTEBOOK_SESSION."""
    is_named = arguments.session or arguments.agent or os.environ.get("NOTEBOOK_SESSION")
    return session_of(arguments) if is_named else OWNER


def asking(named: str | None, agent: str, environ: Mapping[str, str], *, at_terminal: bool) -> Session:
    """The session a command runs for: as named, else NOTEBOOK_SESSION, else by whether a person seems to be there."""
    kind = named or environ.get("NOTEBOOK_SESSION") or ("owner" if at_terminal else "task")
    return Session.named(kind, agent)


def text_given(text: str | None, file: str | None, flag: str) -> str | None:
    """What `flag` or `flag`-file says, to the character; `-` is standard input. None for neither, UsageError for both
    and for what cannot be read."""
    if text is not None and file is not None:
        raise UsageError(f"give it once: with {flag} or with {flag}-file")
    if text is not None and text != "-":
        return text
    if text is None and file is None:
        return None
    from_input = file in (None, "-")
    try:
        return _standard_input() if from_input else Path(file or "").expanduser().read_bytes().decode()
    except (OSError, ValueError) as error:
        source = "standard input" if from_input else f"{flag}-file {file}"
        raise UsageError(f"{source} cannot be read as text: {_reason(error)}") from None


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"it is not UTF-8 at byte {error.start:,}; save it as UTF-8"
    if isinstance(error, OSError):
        return f"{(error.strerror or 'it failed').lower()}; name a file of text, or - for standard input"
    return "no file can be called that; name a file of text, or - for standard input"


def listed(text: str) -> tuple[str, ...]:
    """What stands between commas."""
    return tuple(one.strip() for one in text.split(",") if one.strip())


def tags_wanted(arguments: Namespace) -> tuple[str, ...]:
    """Those of --tags. Raises UsageError for none where it is given: no tag would look as if any would do."""
    tags = listed(arguments.tags or "")
    if arguments.tags is not None and not tags:
        raise UsageError("name the tags, parted by commas, as in: --tags ferry,winter")
    return tags


def moment_given(text: str | None, notebook: Notebook) -> datetime | None:
    """A day or a moment, in the notebook's timezone. Raises UsageError."""
    return None if text is None else moment(text, notebook.settings.timezone, datetime.now(UTC))


def _standard_input() -> str:
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8", errors="strict", newline="")  # else every \r\n would become \n
    return "" if sys.stdin is None else sys.stdin.read()


def terminal_width() -> int | None:
    """How many columns a line may have where a person reads it; None where it goes into a file or a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def in_colour() -> bool:
    """Whether standard output is a terminal that shows colours."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def show(arguments: Namespace, value: Any, worded: Callable[[Any], str]) -> None:
    """Print the answer, as JSON or in words."""
    shown = as_json(value) if arguments.json else worded(value)
    if shown:
        print(shown, end="" if shown.endswith("\n") else "\n")


def shown_as_it_is(said: str) -> str:
    """What others wrote, to the letter for a file or a pipe; on a terminal nothing of it steers that."""
    if not sys.stdout.isatty():
        return said
    from notebook_sync.surfaces.cli.text.notebook import on_terminal

    return on_terminal(said)


def as_json(value: Any) -> str:
    """In plain ASCII where the output is not UTF-8: `\\xe9`, which it would show for é, is no JSON."""
    encoding = codecs.lookup(getattr(sys.stdout, "encoding", None) or "utf-8").name
    return json.dumps(value, ensure_ascii=encoding != "utf-8", default=_plain)


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def complain(message: str) -> None:
    """Say it on standard error, behind what was printed so far."""
    sys.stdout.flush()
    print(f"{PROGRAM}: {message}", file=sys.stderr)
