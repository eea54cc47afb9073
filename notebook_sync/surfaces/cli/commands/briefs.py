"""The commands that make of a spec what a task has to know."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from notebook_sync.errors import NoSuchNote, UsageError
from notebook_sync.files.provenance import is_external
from notebook_sync.notebook import Notebook
from notebook_sync.sessions import Session
from notebook_sync.surfaces.cli.answers import (
    complain,
    listed,
    opened,
    session_of,
    show,
    shown_as_it_is,
    terminal_width,
    text_given,
)
from notebook_sync.surfaces.cli.next_steps import next_steps
from notebook_sync.surfaces.cli.text import briefs as text

_FAILED = 1
_INPUT = "-"


def _brief(arguments: Namespace) -> int:
    with next_steps(arguments), opened(arguments) as notebook:
        session = session_of(arguments)
        spec = _spec(notebook, arguments.spec, session)
        brief = notebook.compile_context(spec, session, explain=arguments.explain, **_wanted(arguments))
    show(arguments, brief, lambda told: shown_as_it_is(text.of_brief(told)))
    if brief["partial"]:
        complain(brief["partial"])
    return 0


def _synthesize(arguments: Namespace) -> int:
    with next_steps(arguments), opened(arguments) as notebook:
        session = session_of(arguments)
        spec = _spec(notebook, arguments.spec, session)
        synthesis = notebook.synthesize(spec, session, refresh=arguments.refresh, **_wanted(arguments))
    show(arguments, synthesis, lambda told: told["synthesis_md"])
    if not arguments.json:
        for line in text.of_making(synthesis):
            complain(line)
    for trouble in (synthesis["trouble"], *synthesis["warnings"]):
        if trouble:
            complain(trouble)
    return 0


def _prefetch(arguments: Namespace) -> int:
    with next_steps(arguments), opened(arguments) as notebook:
        fetched = notebook.prefetch(arguments.specs, session_of(arguments))
    show(arguments, fetched, lambda rows: text.of_prefetched(rows, terminal_width()))
    return _FAILED if any(one["trouble"] for one in fetched) else 0


def _wanted(arguments: Namespace) -> dict[str, Any]:
    """What selects. Raises UsageError."""
    return {
        "max_tokens": arguments.max_tokens,
        "top_k": arguments.top_k,
        "include_domains": _named(arguments.domains, "--domains"),
        "exclude_tags": _named(arguments.exclude_tags, "--exclude-tags"),
    }


def _named(given: str | None, flag: str) -> tuple[str, ...]:
    """Raises UsageError for none where the flag is given: no domain would look as if any would do."""
    names = listed(given or "")
    if given is not None and not names:
        raise UsageError(f"name them, parted by commas, as in: {flag} timetable,ferry")
    return names


def _spec(notebook: Notebook, name: str, session: Session) -> str:
    """What the spec says: of standard input, of a file, else of a note; none that the session may not read.

    Raises UsageError for what is none of these, and for what somebody else wrote: a brief would tell it as the task."""
    if name == _INPUT:
        return text_given(name, None, "SPEC.md") or ""
    place = None
    if "\0" not in name and (file := Path(name).expanduser()).is_file():
        # Wherever we stand, a file of the notebook is read as the session may read it; the owner's is every file.
        place = _place_in(notebook.root, file) if session.kind != "owner" else None
        if place is None:
            spec = text_given(None, name, "SPEC.md") or ""
            return _ours(name, spec, is_external(spec.encode(errors="replace")))
    try:
        note = notebook.file(place or notebook.read(name, session)["path"], session)
    except NoSuchNote as missing:
        what = "note" if place else "file"
        how = f"a text is given on standard input, with {_INPUT} for its name"
        raise UsageError(f"no {what} is at {name!r}, and {missing}; {how}") from None
    return _ours(name, note.shown, note.external)


def _ours(name: str, spec: str, external: bool) -> str:
    if external:
        raise UsageError(f"{name}: somebody else wrote it; write what holds of it into a spec of your own")
    return spec


def _place_in(root: Path, file: Path) -> str | None:
    """The path in the notebook of a file that stands there, whatever links it is named by; None for any other."""
    with suppress(ValueError):
        return file.resolve().relative_to(root.resolve()).as_posix()
    return None


REASONING: Mapping[str, Callable[[Namespace], int]] = {
    "brief": _brief,
    "synthesize": _synthesize,
    "prefetch": _prefetch,
}
