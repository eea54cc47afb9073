"""The pages that list rows and have forms: one declaration each over the operations."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import quote, urlencode

import msgspec
from starlette.responses import Response
from starlette.routing import Route

from notebook_sync.errors import NotebookError, UsageError
from notebook_sync.registry import OPERATIONS, Operation, as_json
from notebook_sync.surfaces.dashboard.forms import given_in, inputs_of, missing_in
from notebook_sync.surfaces.dashboard.markdown import note_href
from notebook_sync.surfaces.dashboard.shell import Ask, Fields, Shell, Undo, own_path, plain

PER_PAGE = 50
_CONFIRMED = "confirmed"
_BACK = "back"
_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True)
class Action:
    """An operation on one row: `argument` gets the row's `id`, `fixed` are further arguments. It is offered for rows
    whose field `only_if[0]` is one of `only_if[1]`. `undo` is the operation that takes it back by the same argument."""

    operation: str
    argument: str = "id"
    label: str = ""
    undo: str = ""
    only_if: tuple[str, tuple[Any, ...]] = ("", (None,))
    fixed: Mapping[str, str] = field(default_factory=dict)

    def fits(self, row: Mapping[str, Any]) -> bool:
        """Whether the row has it."""
        return row.get(self.only_if[0]) in self.only_if[1]


@dataclass(frozen=True, slots=True)
class Page:
    """A page: `listing` gives its rows, `search` those for a `query`; both get the `fixed` arguments. `create` is the
    form above the list, `actions` are those of a row, `tools` are operations with a form of their own. The field `id`
    names a row. `opens` is the address of a row, with fields of it in braces; by default a `path` leads to its note.
    `then` is where a created thing is shown. `bars` are columns of numbers
    from 0 to 1 that are shown as bars, too. `is_newest_last` is how the operation orders its rows; the page shows the
    newest first."""

    path: str
    title: str
    group: str = ""
    listing: str = ""
    search: str = ""
    create: str = ""
    actions: tuple[Action, ...] = ()
    tools: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    id: str = "id"
    fixed: Mapping[str, str] = field(default_factory=dict)
    opens: str = ""
    then: str = ""
    about: str = ""
    bars: tuple[str, ...] = ()
    is_newest_last: bool = False

    @property
    def operations(self) -> Sequence[str]:
        """The operations that a form of this page may ask for."""
        return tuple(filter(None, (self.create, *self.tools, *(each.operation for each in self.actions))))


_FACT_ACTIONS = (
    Action("fact reinforce", "fact", "Reinforce", only_if=("archived", (False,))),
    Action("fact promote", "fact", "Make core", only_if=("core", (False,))),
    Action("fact archive", "fact", "Archive", undo="fact restore", only_if=("archived", (False,))),
    Action("fact restore", "fact", "Restore", undo="fact archive", only_if=("archived", (True,))),
)
PAGES: tuple[Page, ...] = (
    Page("/new", "New note", "Notebook", create="create", then="/edit/{path}"),
    Page(
        *("/facts", "Facts", "Memory", "fact list", "fact search", "fact add", _FACT_ACTIONS),
        columns=("importance", "content", "section", "path", "last_accessed"),
        bars=("importance",),
        tools=("fact verify", "fact decay", "fact dedupe", "fact extract", "conversation end"),
    ),
    Page(
        *("/memories", "Memories", "Memory", "memory list", "memory search", "memory add"),
        columns=("score", "kind", "title", "domain", "tags", "updated_at"),
        bars=("score",),
        fixed={"counts_use": "false"},
        tools=(
            *("memory link", "memory score", "memory audit", "memory fix", "memory infer", "memory ingest"),
            "memory graph",
        ),
    ),
    Page(
        *("/stream", "Stream", "Agents", "stream show", "", "stream log"),
        columns=("timestamp", "source", "content", "tags", "score"),
        is_newest_last=True,
    ),
    Page(
        *("/recall", "Recall", "Agents", "stream recall"),
        columns=("relevance", "timestamp", "source", "content", "tags"),
    ),
    Page(
        *("/private", "Private notes", "Agents", "note channels", "", "note write"),
        columns=("name", "agent", "scope", "notes", "members"),
        opens="/private/notes?channel={agent}",
    ),
    Page(
        *("/private/notes", "Notes of a channel", "", "note recent", "note search"),
        columns=("created_at", "title", "topic", "session_id", "tags"),
        tools=("note peek",),
    ),
    Page(
        *("/checkpoints", "Checkpoints", "Agents", "checkpoint list", "", "checkpoint create"),
        actions=(
            Action("rollback", label="Roll back"),
            Action("rollback", label="Roll back notes, too", fixed={"files": "true"}),
        ),
        columns=("at", "name", "created_by"),
    ),
    Page(
        *("/syntheses", "Syntheses", "System", "context cached"),
        actions=(Action("context cached", "id", "Drop", fixed={"clear": "true"}),),
        columns=("made_at", "source", "hits", "holds", "rests_on"),
        fixed={"clear": "false"},  # a list drops nothing
        id="synthesis_id",
        tools=("context brief", "context synthesize", "context prefetch", "context feedback", "context figures"),
    ),
    Page(
        *("/tokens", "Tokens", "System", "token list", "", "token add"),
        actions=(Action("token revoke", "name", "Revoke", only_if=("kind", ("task", "external"))),),
        columns=("name", "kind", "client", "created_at", "expires_at"),
        id="name",
        tools=("token link",),
    ),
    Page("/settings", "Settings", "System", "config", about="Settings are changed in notebook.toml."),
    Page(
        *("/doctor", "Doctor", "System", "doctor"),
        columns=("ok", "check", "message", "next"),
        tools=("check", "sync", "verify", "rebuild"),
    ),
)


def routes(shell: Shell) -> Iterator[Route]:
    """The routes of every page, which are also named in the navigation."""
    for page in PAGES:
        if page.group:
            shell.navigation[page.group].append((page.path, page.title))
        yield shell.route(page.path, partial(show_table, shell, page))
        for words in dict.fromkeys(page.operations):
            form = Form(shell, page, OPERATIONS[words])
            yield shell.route(form.address, form.answer, "GET", "POST")


def address_of(page: Page, words: str) -> str:
    """Where the form of an operation is, and where it is sent."""
    return f"{page.path}/{words.replace(' ', '-').replace('_', '-')}"


def show_table(shell: Shell, page: Page, ask: Ask) -> Response:
    """The rows, the fields that choose among them, and the forms."""
    operation = _operation(page, ask)
    found, trouble = _rows(shell, page, operation, ask) if operation else ({}, None)
    rows = list(found.get("results") or ())[:: -1 if page.is_newest_last else 1]
    last = _number(ask) * PER_PAGE
    has_cursor = operation is not None and "after" in operation.hints
    shown = rows if has_cursor else rows[last - PER_PAGE : last]
    return shell.page(
        ask,
        "table.html",
        status=trouble.status if isinstance(trouble, UsageError) else 200,
        page=page,
        rows=[_shown(page, row) for row in shown[:PER_PAGE]],
        columns=page.columns or (operation.columns if operation else ()),
        filters=_filters(page, ask),
        create=_create(page, ask),
        tools=[(address_of(page, words), OPERATIONS[words].summary) for words in page.tools],
        more=_more(page, ask, found.get("next") if has_cursor else len(rows) > last),
        notes=[*filter(None, [found.get("degraded")]), *(found.get("problems") or ())],
        trouble=trouble,
        is_filtered=not operation or bool(set(ask.query) - {"query", "page", "done", "after"}),
        is_asked=bool(operation),
        nothing=operation.nothing_found if operation else "",
    )


def _operation(page: Page, ask: Ask) -> Operation | None:
    """What lists the rows; None while an argument that it needs is missing."""
    words = page.search if page.search and ask.query.get("query") else page.listing
    operation = OPERATIONS.get(words)
    return None if operation is None or missing_in(operation, _given(page, operation, ask)) else operation


def _given(page: Page, operation: Operation, ask: Ask) -> dict[str, Any]:
    fixed = {name: each for name, each in page.fixed.items() if name in operation.hints}
    return {**given_in(operation, ask.query), **fixed}


def _rows(shell: Shell, page: Page, operation: Operation, ask: Ask) -> tuple[Mapping[str, Any], NotebookError | None]:
    given = _given(page, operation, ask)
    if "limit" in operation.hints:
        given["limit"] = str(PER_PAGE if "after" in operation.hints else min(_number(ask) * PER_PAGE + 1, 10_000))
    result, trouble = shell.tried(operation.words, given)
    found = plain(result)
    return found if isinstance(found, dict) else {}, trouble


def _filters(page: Page, ask: Ask) -> list[Any]:
    operations = [OPERATIONS[words] for words in (page.search, page.listing) if words]
    inputs = {each["name"]: each for one in operations for each in inputs_of(one, ask.query, without=page.fixed)}
    if page.search:  # without words, all rows are listed
        inputs["query"]["is_required"] = False
    return list(inputs.values())


def _create(page: Page, ask: Ask) -> Mapping[str, Any] | None:
    if not page.create:
        return None
    operation = OPERATIONS[page.create]
    fields = inputs_of(operation, ask.query)
    return {"address": address_of(page, page.create), "title": operation.summary, "fields": fields}


def _shown(page: Page, row: dict[str, Any]) -> dict[str, Any]:
    opens = _filled(page.opens, row) or (note_href(row["path"]) if row.get("path") else "")
    actions = [
        {
            "address": address_of(page, action.operation),
            "label": action.label or OPERATIONS[action.operation].summary,
            "fields": {action.argument: str(row.get(page.id, "")), **action.fixed},
        }
        for action in page.actions
        if action.fits(row)
    ]
    return {"fields": row, "opens": opens, "actions": actions, "name": _name_of(row)}


def _more(page: Page, ask: Ask, after: str | bool | None) -> str:
    """The address of the next page; "" where there is none."""
    turned = {"after": after} if isinstance(after, str) else {"page": str(_number(ask) + 1)}
    return f"{page.path}?{urlencode({**ask.query, **turned})}" if after else ""


class Form:
    """The form of one operation, and what it does.

    What can be tried first is: the answer to the form is the dry run, with a button that does it. It is done only if
    the dry run still says what was shown.
    """

    def __init__(self, shell: Shell, page: Page, operation: Operation) -> None:
        self._shell = shell
        self._page = page
        self._operation = operation
        self.address = address_of(page, operation.words)

    def answer(self, ask: Ask) -> Response:
        """The form, what it would do, or what it did."""
        operation = self._operation
        if ask.request.method != "POST":
            return self._form(ask, ask.query)
        given = given_in(operation, ask.form)
        try:
            if _is_tried_first(operation):
                return self._after_trial(ask, given)
            result = self._shell.call(operation.words, given)
        except NotebookError as error:
            return self._form(ask, ask.form, error)
        return self._did(ask, given, result)

    def _after_trial(self, ask: Ask, given: dict[str, Any]) -> Response:
        operation, confirmed = self._operation, ask.form.get(_CONFIRMED, "")
        given.pop("dry_run", None)
        has_trial = "dry_run" in operation.hints
        operation.checked(given, from_text=True)
        trial = self._shell.call(operation.words, {**given, "dry_run": "true"}) if has_trial else None
        shown = hashlib.sha256(msgspec.json.encode(as_json(_steady(trial)))).hexdigest()
        if confirmed != shown:
            return self._shell.page(
                ask,
                "confirm.html",
                page=self._page,
                operation=operation,
                address=self.address,
                fields=[(name, value) for name, value in ask.form.multi_items() if name not in (_CONFIRMED, _BACK)],
                back=self._back(ask),
                shown=shown,
                is_changed=bool(confirmed),
                result=plain(trial),
            )
        seen: dict[str, Any] = {"seen": trial} if operation.is_confirmed else {}
        return self._did(ask, given, self._shell.call(operation.words, given, **seen))

    def _did(self, ask: Ask, given: Mapping[str, Any], result: Any) -> Response:
        operation, value = self._operation, plain(result)
        if operation.effect == "read" or operation.shows or _is_report(operation):
            values = {"page": self._page, "operation": operation, "result": value, "back": self._back(ask)}
            return self._shell.page(ask, "answer.html", **values)
        fields = value if isinstance(value, dict) else {}
        to = _filled(self._page.then, fields) or self._back(ask)
        name = _name_of(fields)
        text = f"Done: {operation.summary[0].lower()}{operation.summary[1:]}{f' – {name}' if name else ''}"
        return self._shell.done(to, text, warnings=fields.get("warnings") or (), undo=self._undo(given))

    def _undo(self, given: Mapping[str, Any]) -> Undo | None:
        words = self._operation.words
        action = next((each for each in self._page.actions if each.operation == words and each.undo), None)
        named = action and {action.argument: str(given[action.argument])}
        return Undo(address_of(self._page, action.undo), named) if action and named else None

    def _form(self, ask: Ask, given: Fields, error: NotebookError | None = None) -> Response:
        operation = self._operation
        return self._shell.page(
            ask,
            "form.html",
            status=error.status if error else 200,
            page=self._page,
            operation=operation,
            address=self.address,
            fields=inputs_of(operation, given),
            back=self._back(ask),
            error=error,
            is_tried=_is_tried_first(operation),
        )

    def _back(self, ask: Ask) -> str:
        """The list as it was when the form was sent."""
        before = own_path(ask.form.get(_BACK) or ask.query.get(_BACK) or ask.here)
        is_list = before.partition("?")[0] == self._page.path
        return before if is_list else self._page.path


def _is_tried_first(operation: Operation) -> bool:
    return operation.effect == "destructive" or "dry_run" in operation.hints


def _is_report(operation: Operation) -> bool:
    """Whether what it answers is worth a page: more than the thing that it changed."""
    kept = operation.service in ("admin", "context") or operation.words in ("memory fix", "memory score")
    return kept and operation.effect == "write" and operation.words != "context cached"


def _steady(trial: Any) -> Any:
    """A dry run without what differs from run to run."""
    found = as_json(trial)
    return {name: each for name, each in found.items() if name != "at"} if isinstance(found, dict) else found


def _filled(address: str, row: Mapping[str, Any]) -> str:
    """An address with fields of a row in place of their names in braces."""
    return address.format_map({name: quote(str(value)) for name, value in row.items()})


def _number(ask: Ask) -> int:
    given = ask.query.get("page", "1")
    return min(max(int(given), 1), 200) if given.isdecimal() and len(given) < 4 else 1


def _name_of(row: Mapping[str, Any]) -> str:
    """What a row is called in the name of its buttons, and in a message."""
    found = next((str(row[each]) for each in ("title", "content", "name", "path", "id") if row.get(each)), "")
    return found if len(found) <= _LONGEST_NAME else f"{found[:_LONGEST_NAME]}…"
