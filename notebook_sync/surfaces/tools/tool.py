"""What a tool is: a name and a sentence for a model, what it takes and answers, and for whom it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from pydantic import ValidationError

from notebook_sync.notebook import Notebook
from notebook_sync.operations.registry import Operation, call, for_model
from notebook_sync.operations.schema import outline_of
from notebook_sync.operations.schema import schema_of as schema_of_type
from notebook_sync.sessions import KINDS, Kind, Session
from notebook_sync.surfaces.errors import InvalidArguments
from notebook_sync.surfaces.tools.schemas import notes as schemas

# Arguments whose descriptions are not sent, to keep the list of tools short.
_SELF_EXPLANATORY = frozenset({"limit", "name", "tags"})


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. `run(notebook, arguments, session)` gives one of `results`; the claims at the end are MCP's hints.

    `refusal` is what a session that is not among `sessions` is told.
    """

    name: str
    description: str
    arguments: type[schemas.Arguments]
    results: tuple[type[schemas.Result], ...]
    run: Callable[[Notebook, Any, Session], schemas.Result]
    sessions: frozenset[Kind] = frozenset(KINDS)
    refusal: str = ""
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    open_world: bool = False

    def is_for(self, session: Session) -> bool:
        """Whether any call of it could do something for `session`."""
        return session.kind in self.sessions

    def schema(self, *, strict: bool = False) -> dict[str, Any]:
        """The JSON schema of its arguments."""
        return schemas.schema_of(self.arguments, strict=strict)

    def outline(self) -> dict[str, Any]:
        """The start of the JSON schema of its results."""
        return outline_of(*map(schemas.schema_of, self.results))

    def answer(self, notebook: Notebook, arguments: Mapping[str, Any], session: Session) -> dict[str, Any]:
        """Run it. Raises InvalidArguments, which names each argument that is wrong, and as the use case."""
        try:
            checked = self.arguments.model_validate(arguments)
        except ValidationError as error:
            raise InvalidArguments(f"{self.name}: {schemas.complaints(error)}") from None
        return self.run(notebook, checked, session).model_dump(mode="json", exclude_none=True)


class OperationTool:
    """The tool that an operation is."""

    def __init__(self, operation: Operation) -> None:
        self.name = operation.tool
        self.description = " ".join(filter(None, (f"{operation.summary}.", operation.hint)))
        self.sessions = operation.sessions
        self.refusal = operation.refusal
        self.read_only = operation.effect == "read"
        self.destructive = operation.effect == "destructive"
        self.open_world = operation.open_world
        self.idempotent = operation.idempotent
        self._operation = operation

    def is_for(self, session: Session) -> bool:
        """As `Tool.is_for`."""
        operation = self._operation
        return session.kind in operation.sessions and bool(session.agent or session.kind not in operation.needs_agent)

    def schema(self, *, strict: bool = False) -> dict[str, Any]:
        """As `Tool.schema`."""
        schema = schema_of_type(self._operation.arguments, strict=strict)
        for name in self._operation.unlisted:
            del schema["properties"][name]
            if strict:
                schema["required"].remove(name)
        for name in _SELF_EXPLANATORY & schema["properties"].keys():
            schema["properties"][name].pop("description", None)
        return schema

    def outline(self) -> dict[str, Any]:
        """As `Tool.outline`."""
        return outline_of(schema_of_type(self._operation.hints["return"]))

    def answer(self, notebook: Notebook, arguments: Mapping[str, Any], session: Session) -> dict[str, Any]:
        """As `Tool.answer`, with words of others fenced."""
        given = {name: value for name, value in arguments.items() if value is not None}
        result = for_model(call(notebook, self._operation, {**self._operation.for_models, **given}, session))
        answer: dict[str, Any] = msgspec.to_builtins(result)
        return answer


NOT_FOR_STRANGERS: frozenset[Kind] = frozenset(("owner", "task"))
