"""The first page: whether everything is in step, and if not, what to do next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal
from urllib.parse import quote

from fastapi import Request
from fastapi.responses import HTMLResponse

from notebook_sync.errors import NotebookError
from notebook_sync.files.edit_places import Part, page_of
from notebook_sync.notebook import Notebook
from notebook_sync.notes.finding import Finding, Severity
from notebook_sync.sessions import Session
from notebook_sync.surfaces.dashboard.asking import Asking, Served, pages_router
from notebook_sync.surfaces.dashboard.look import PATIENCE_SECONDS, Look
from notebook_sync.surfaces.dashboard.pages import page
from notebook_sync.surfaces.dashboard.rendering import AT
from notebook_sync.surfaces.dashboard.runtime.prompt_view import shown_of
from prompt import count_tokens

pages = pages_router()
MOST_FINDINGS: Final = 50
Tone = Literal["good", "warn", "bad"]
_SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "info")


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that is looked after. `next_step` is what to do where it is not well."""

    name: str
    tone: Tone
    said: str
    next_step: str = ""


@pages.get("/")
def home(request: Request, notebook: Served, asking: Asking) -> HTMLResponse:
    """How the notebook is, right now. What its files say is there at once, whatever becomes of the databases."""
    look: Look = request.app.state.look
    check: Look = request.app.state.check
    checked = check.begin()
    seen = look.seen()
    found = checked(0.0 if seen.is_awaited else PATIENCE_SECONDS)
    lines = lines_of(seen.status) if seen.status else []
    prompt = notebook.prompt(asking)
    count = partial(count_tokens, encoding=prompt.encoding)
    findings = found.status["findings"] if found.status else []
    pressing = most_pressing_first(findings, {part.path for part in prompt.parts})
    return page(
        "home.html",
        here="home",
        name=notebook.settings.notebook.name or notebook.root.name,
        root=notebook.root,
        lines=lines,
        verdict=verdict_of(lines) if lines else LOOKING,
        is_awaited=seen.is_awaited,
        is_read_through=found.is_awaited,
        files=[shown_of(part, None, count) for part in prompt.parts],
        stale=seen.status["stale"] if seen.status else [],
        findings=_with_addresses(notebook, asking, pressing[:MOST_FINDINGS]),
        found=len(findings),
        most=MOST_FINDINGS,
    )


def most_pressing_first(findings: Sequence[Finding], shown: Set[str]) -> list[Finding]:
    """By severity, then those of the files that the prompt shows, else as they come: many a broken link somewhere would
    leave no room for a rule that is not read. Pure."""
    return sorted(findings, key=lambda one: (_SEVERITIES.index(one.severity), one.path not in shown))


def _with_addresses(notebook: Notebook, asking: Session, findings: Sequence[Finding]) -> list[tuple[Finding, str]]:
    """Each finding with the address of its section in the note's page. Each file is read once."""
    parts: dict[str, Sequence[Part]] = {}
    found = []
    for one in findings:
        path = one.path
        if path not in parts:
            try:
                parts[path] = page_of(notebook.file(path, asking).text, path).parts
            except NotebookError:
                parts[path] = ()
        anchor = next((part.anchor for part in reversed(parts[path]) if part.line <= one.line), "")
        found.append((one, f"/notes/{quote(path)}" + (f"#{AT}{quote(anchor)}" if anchor else "")))
    return found


def verdict_of(lines: list[Line]) -> Line:
    """All lines in one."""
    worst = next((line for tone in ("bad", "warn") for line in lines if line.tone == tone), None)
    if worst is None:
        return Line("Everything is in step", "good", "Files, mirror and refs say the same.")
    return Line(
        "Something needs you" if worst.tone == "bad" else "Not quite in step",
        worst.tone,
        worst.said,
        worst.next_step,
    )


def lines_of(status: Mapping[str, Any]) -> list[Line]:
    """What a status says, a line for each part. Pure."""
    return [
        _mirror(status["mirror"]),
        _refs(status["refs"]),
        _files(status),
        _watcher(status),
        *_search(status["search"]),
    ]


def _mirror(mirror: Mapping[str, Any]) -> Line:
    if not mirror["ok"]:
        return Line("Mirror", "bad", f"{mirror['name']} does not answer: {mirror['error']}", _START.format(**mirror))
    return Line("Mirror", "good", f"{mirror['notes']:,} notes in {mirror['name']}")


def _refs(refs: Mapping[str, Any]) -> Line:
    if not refs["ok"]:
        return Line("Refs", "bad", f"{refs['name']} does not answer: {refs['error']}", _START.format(**refs))
    if refs["pending"]:
        return Line("Refs", "warn", f"{refs['pending']:,} changes wait to be told", _SYNC)
    return Line("Refs", "good", f"{refs['name']} has been told everything")


def _files(status: Mapping[str, Any]) -> Line:
    if status["behind"] is None:
        return Line("Files", "warn", "How far the mirror is behind cannot be said while it is away", _MIRROR)
    if behind := status["behind"]:
        said = f"{'1 file differs' if behind == 1 else f'{behind:,} files differ'} from the mirror"
        said = f"{said}, for {status['lag_seconds']:,.0f} s at most"
        taking = _SYNC if status["watcher"] is None else _WAIT
        return Line("Files", "warn", said, f"{taking}; {_REFUSED}")
    return Line("Files", "good", "The mirror is what the files say")


def _watcher(status: Mapping[str, Any]) -> Line:
    watcher = status["watcher"]
    if watcher is None:
        return Line(
            "Watch", "warn", "Nobody follows the files", "run `notebook-sync watch`, or `serve` without --no-watch"
        )
    if watcher["trouble"]:
        return Line("Watch", "bad", watcher["trouble"], _TRYING)
    return Line("Watch", "good", "Edits arrive as they are saved")


def _search(search: Mapping[str, Any] | None) -> list[Line]:
    if search is None:
        return []
    if search["trouble"]:
        return [Line("Meaning", "warn", search["trouble"], "run `notebook-sync doctor`")]
    if search["behind"]:
        return [Line("Meaning", "warn", f"{search['behind']:,} notes have no vectors yet", "run `notebook-sync sync`")]
    return [Line("Meaning", "good", f"{search['embedded'] or 0:,} notes are found by what they mean")]


LOOKING = Line("Looking", "warn", "A database takes its time to answer. What the files say stands below meanwhile.")
_START = "start {name}, or see that its address in notebook.toml is right; the files are safe meanwhile"
_SYNC = "run `notebook-sync sync`"
_MIRROR = "do what is said of the mirror"
_WAIT = "wait a moment, for the watch takes what changed"
_REFUSED = "what stays behind is refused, and stands below, under “To mend in the files”"
_TRYING = "it goes on trying; if it stays so, run `notebook-sync doctor`"
