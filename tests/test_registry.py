"""Declaring operations: arguments as people and models send them, refusals, and the schemas that clients are sent."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from types import SimpleNamespace
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta

from notebook_sync import Session, registry
from notebook_sync.errors import BackendDown, Conflict, NotebookError, NotPermitted, UsageError
from notebook_sync.registry import (
    NOT_EXTERNAL,
    OWNER_ONLY,
    Arg,
    Limit,
    Results,
    Service,
    annotation_of,
    as_json,
    call,
    for_model,
    operation,
)
from notebook_sync.schema import schema_of
from notebook_sync.sessions import OWNER
from notebook_sync.settings import PermissionsTable, Settings
from notebook_sync.surfaces.tools import argument_schema

TASK, EXTERNAL = Session.task("scribe"), Session.external()


@dataclass(frozen=True, slots=True)
class Berth:
    """Where a boat lies."""

    boat: str
    given: dict[str, Any]
    at: datetime | None = None

    def for_model(self) -> Berth:
        return replace(self, boat="a boat")


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A notebook of one service, `harbour`, whose operations `moor` and `clear` no other test sees."""
    monkeypatch.setattr(registry, "OPERATIONS", {})

    class HarbourService(Service):
        """Berths and boats."""

        name = "harbour"

        def __init__(self) -> None:
            self.refusals = list[tuple[str, str]]()

        @property
        def settings(self) -> Settings:
            return Settings()

        def refused(self, session: Session, operation: str, id: str) -> None:
            self.refusals.append((operation, id))

        @operation(
            "moor",
            tool="harbour_moor",
            sessions=NOT_EXTERNAL,
            refusal="Not in this conversation",
            effect="write",
            aliases={"boat": "id"},
            unlisted=("reason",),
            needs_agent=frozenset({"task"}),
            examples=("notebook-sync moor kestrel",),
        )
        def moor(
            self,
            id: Annotated[str, Meta(max_length=20, description="the boat"), Arg("BOAT", positional=True)],
            session: Session = OWNER,
            *,
            limit: Limit = 5,
            share: float = 0.5,
            deep: bool = False,
            tags: Annotated[list[str] | None, Meta(description="words")] = None,
            as_: Literal["guest", "resident"] = "guest",
            day: date | None = None,
            marks: dict[str, str] | None = None,
            reason: str = "",
        ) -> Berth:
            """Moor a boat.

            It lies there until it is fetched.
            """
            given = {"limit": limit, "share": share, "deep": deep, "tags": tags, "as": as_, "day": day, "marks": marks}
            return Berth(id, {name: value for name, value in given.items() if value is not None})

        @operation(
            "clear",
            tool="harbour_clear",
            sessions=OWNER_ONLY,
            widened=lambda settings, session: settings.permissions.pages == "own" and session.kind == "task",
        )
        def clear(self, session: Session = OWNER, *, dry_run: bool = False, seen: object = None) -> Results[Berth]:
            """Clear the harbour"""
            return Results([Berth("kestrel", {}, datetime(2026, 3, 1, tzinfo=UTC))])

    return SimpleNamespace(harbour=HarbourService(), **registry.OPERATIONS)


def test_an_operation_is_what_its_method_says(notebook: SimpleNamespace) -> None:
    moor, clear = notebook.moor, notebook.clear
    assert (moor.service, moor.summary, moor.about) == ("harbour", "Moor a boat", "It lies there until it is fetched.")
    assert moor.hints.keys() >= {"id", "as", "return"}
    assert not {"session", "as_"} & moor.hints.keys()
    assert annotation_of(moor.hints["id"], Arg) == Arg("BOAT", positional=True)
    assert (clear.is_confirmed, moor.is_confirmed) == (True, False)
    assert clear.arguments.__struct_fields__ == ("dry_run",)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"id": "kestrel"}, {}),
        ({"boat": "kestrel", "limit": None, "tags": None}, {}),
        ({"boat": "kestrel", "id": "kestrel", "limit": 5.0}, {}),
        ({"id": "kestrel", "limit": "7", "share": "0.25", "deep": "true"}, {"limit": 7, "share": 0.25, "deep": True}),
        ({"id": "kestrel", "tags": '["a", "b"]'}, {"tags": ["a", "b"]}),
        ({"id": "kestrel", "tags": "a, b,"}, {"tags": ["a", "b"]}),
        ({"id": "kestrel", "marks": '{"a": "b"}'}, {"marks": {"a": "b"}}),
        ({"id": "kestrel", "as": "resident", "day": "2026-03-01"}, {"as": "resident", "day": date(2026, 3, 1)}),
    ],
)
def test_arguments_are_taken_where_they_have_one_meaning(
    notebook: SimpleNamespace, given: dict[str, Any], expected: dict[str, Any]
) -> None:
    answer = call(notebook, notebook.moor, given, TASK)
    assert answer == Berth("kestrel", {"limit": 5, "share": 0.5, "deep": False, "as": "guest", **expected})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "the argument id is missing"),
        ({"id": "kestrel", "limits": 3}, "there is no argument 'limits'; did you mean limit?"),
        ({"id": "kestrel", "session": "owner"}, "there is no argument 'session'"),
        ({"id": "kestrel", "as_": "guest"}, "there is no argument 'as_'"),
        ({"id": "kestrel", "x" * 10_000: 1}, "the arguments are: id, limit"),
        ({"id": "kestrel", "boat": "heron"}, "boat: given twice, with different values"),
        ({"id": "kestrel", "limit": 0}, "limit: Expected int >= 1"),
        ({"id": "kestrel", "limit": True}, "limit: Expected int, got bool"),
        ({"id": "kestrel", "limit": "1" * 5000}, "limit: "),
        ({"id": "kestrel", "deep": 1}, "deep: Expected bool, got int"),
        ({"id": "kestrel", "tags": {"$ne": 1}}, "tags: "),
        ({"id": ["kestrel"]}, "id: Expected str, got array"),
        ({"id": "k" * 21}, "id: Expected str of length <= 20"),
        ({"id": "kestrel", "as": "pilot"}, "as: Invalid enum value 'pilot'; use one of guest, resident"),
    ],
    ids=lambda each: str(each)[:40],
)
def test_a_wrong_argument_is_named(notebook: SimpleNamespace, given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as raised:
        call(notebook, notebook.moor, given, TASK)
    assert said in str(raised.value)
    assert len(str(raised.value)) < 300


def test_a_refused_session_never_reaches_the_method(notebook: SimpleNamespace) -> None:
    with pytest.raises(NotPermitted, match=r"^Not in this conversation$"):
        call(notebook, notebook.moor, {"id": "kestrel"}, EXTERNAL)
    with pytest.raises(NotPermitted, match=r"^This is only available in owner conversations$"):
        notebook.clear.run(notebook.harbour, TASK)
    for wrong in ({"boat": "heron", "limit": "many"}, {"nonsense": 1}, {"id": ["heron"]}):
        with pytest.raises(NotPermitted, match=r"^Not in this conversation$"):
            call(notebook, notebook.moor, wrong, EXTERNAL)
    wrong_calls = [("harbour_moor", "heron"), ("harbour_moor", ""), ("harbour_moor", "")]
    assert notebook.harbour.refusals == [("harbour_moor", "kestrel"), ("harbour_clear", ""), *wrong_calls]


def test_an_operation_is_listed_for_those_who_may_call_it(notebook: SimpleNamespace) -> None:
    moor, clear = notebook.moor, notebook.clear
    wide = Settings(permissions=PermissionsTable(pages="own"))
    sessions = (OWNER, TASK, Session.task(), EXTERNAL)
    assert [moor.is_listed_for(each, Settings()) for each in sessions] == [True, True, False, False]
    assert [clear.is_listed_for(each, Settings()) for each in sessions] == [True, False, False, False]
    assert [clear.is_listed_for(each, wide) for each in sessions] == [True, True, True, False]


def test_a_result_is_plain_json_and_may_differ_for_a_model(notebook: SimpleNamespace) -> None:
    found = call(notebook, notebook.clear, {}, OWNER)
    row = {"boat": "kestrel", "given": {}, "at": "2026-03-01T00:00:00Z"}
    assert as_json(found) == {"results": [row], "degraded": None, "next": None}
    assert as_json(for_model(found))["results"] == [{**row, "boat": "a boat"}]
    assert as_json(for_model({"one": [found]}))["one"][0]["results"][0]["boat"] == "a boat"


def test_schemas_are_small_and_a_strict_one_requires_everything(notebook: SimpleNamespace) -> None:
    moor = notebook.moor
    assert argument_schema(moor) == {
        "type": "object",
        "additionalProperties": False,
        "required": ["id"],
        "properties": {
            "id": {"type": "string", "description": "the boat"},
            "limit": {"type": "integer", "minimum": 1, "maximum": 10_000},
            "share": {"type": "number"},
            "deep": {"type": "boolean"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "as": {"type": "string", "enum": ["guest", "resident"]},
            "day": {"type": "string", "format": "date"},
            "marks": {"type": "object", "additionalProperties": {"type": "string"}},
        },
    }
    strict = schema_of(moor.arguments, strict=True)
    assert strict["required"] == list(strict["properties"])
    assert strict["properties"]["as"] == {"type": ["string", "null"], "enum": ["guest", "resident", None]}
    assert strict["properties"]["id"]["type"] == "string"
    assert "additionalProperties" not in schema_of(list[moor.arguments])["items"]  # type: ignore[name-defined]
    assert schema_of(list[moor.arguments], strict=True)["items"]["additionalProperties"] is False  # type: ignore[name-defined]


@pytest.mark.parametrize("error", [Conflict("pages/a.md", "1", "2", "Now"), BackendDown("Redis", "silent")])
def test_an_error_comes_whole_from_another_process(error: NotebookError) -> None:
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    assert (type(again), again.as_json(), str(again)) == (type(error), error.as_json(), str(error))
