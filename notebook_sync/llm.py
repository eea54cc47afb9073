"""One language model, on any server that speaks as OpenAI's does: asked for an object of a given shape, or for a text.

An object is checked before anybody sees it, and the model's own words never get into an error.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from notebook_sync.errors import BackendDown, ConfigError, LlmDown, LlmNonsense, LlmNotConfigured
from notebook_sync.openai_server import OpenAiServer
from notebook_sync.settings import LlmSettings

Shape = TypeVar("Shape", bound=BaseModel)
Message = Mapping[str, str]  # role, content

_NAME = "The language model"
_COMPLETIONS = "/chat/completions"
# How a server is told what to answer, the strictest first; many take only some of them.
_FORMATS = ("json_schema", "json_object", "")
_NOTHING = "it gave no answer at all"
_CUT_OFF = "its answer was cut off at the length it may have"
_MOST_CANDIDATES = 20
_MOST_FAULTS = 5
_MOST_REPEATED = 2000
_FENCE = re.compile(r"^```[\w-]*[ \t]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_THOUGHTS = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)


class Llm:
    """The model of the settings. Any number of threads; it loads and asks nothing before its first use.

    `name` is for people, without secrets.
    """

    def __init__(self, settings: LlmSettings, environ: Mapping[str, str] = os.environ) -> None:
        self._model = settings.model.strip()
        self._timeout = settings.timeout_seconds
        self._server = OpenAiServer(
            _NAME,
            "llm",
            base_url=settings.base_url,
            api_key_env=settings.api_key_env,
            timeout_seconds=settings.timeout_seconds,
            environ=environ,
        )
        self._format = 0
        self.name = self._server.name

    def require(self) -> None:
        """Raises LlmNotConfigured, with what to set, where there is no model to ask. Asks nobody."""
        if not self._model:
            raise LlmNotConfigured(
                "no language model is configured: below [llm] in notebook.toml, set model, and base_url to its server "
                "(any that speaks as OpenAI's does, as http://127.0.0.1:8080/v1; OpenAI's own where it is empty)"
            )
        try:
            self._server.require()
        except ConfigError as error:
            raise LlmNotConfigured(str(error)) from None

    def answer(self, messages: Sequence[Message], shape: type[Shape]) -> Shape:
        """What the model answers, as a `shape`. One that will not do is told to the model, once, with what is wrong.

        All of it takes no longer than `timeout_seconds`. Fields that the shape does not know are let go. Raises
        LlmNotConfigured, LlmDown, LlmNonsense.
        """
        self.require()
        until = time.monotonic() + self._timeout
        asked = _with_shape(messages, shape)
        with _as_ours():
            first = self._asked(asked, shape, until)
            if isinstance(first.read, shape):
                return first.read
            again = self._asked([*asked, *_told_off(first)], shape, until) if first.is_worth_a_retry else first
            if isinstance(again.read, shape):
                return again.read
        raise LlmNonsense(self.name, str(again.read))

    def say(self, messages: Sequence[Message], *, seconds: float | None = None) -> str:
        """What the model answers as a text, without its thoughts; within `seconds`, those of the settings unless said.
        Raises as `answer`; LlmNonsense where it says nothing, or not all."""
        self.require()
        with _as_ours():
            reply = self._server.post(
                _COMPLETIONS, {"model": self._model, "messages": list(messages)}, seconds=seconds or self._timeout
            )
            if reply.declined:
                raise self._declining(reply.declined)
            heard = self._heard(reply.body)
        said = _THOUGHTS.sub("", heard.content).strip()
        if fault := heard.fault or (_CUT_OFF if heard.is_cut_off else "" if said else _NOTHING):
            raise LlmNonsense(self.name, fault)
        return said

    def close(self) -> None:
        """Let connections go. Twice is allowed."""
        self._server.close()

    def _asked(self, messages: Sequence[Message], shape: type[Shape], until: float) -> _Answer:
        """What the model says in the strictest format that its server takes, which is remembered."""
        declined = ""
        for number in range(self._format, len(_FORMATS)):
            body = {"model": self._model, "messages": list(messages), **_format(_FORMATS[number], shape)}
            reply = self._server.post(_COMPLETIONS, body, seconds=until - time.monotonic())
            if not reply.declined:
                self._format = number
                return self._said(reply.body, shape)
            declined = reply.declined
        raise self._declining(declined)

    def _said(self, body: bytes, shape: type[Shape]) -> _Answer:
        heard = self._heard(body)
        if heard.fault:
            return _Answer("", heard.fault, is_worth_a_retry=heard.fault == _NOTHING)
        read = read_answer(heard.content, shape)
        if isinstance(read, str) and heard.is_cut_off:
            return _Answer("", _CUT_OFF, is_worth_a_retry=False)
        return _Answer(heard.content, read)

    def _declining(self, said: str) -> BackendDown:
        return BackendDown(self.name, f"it takes no such question ({said}); is {self._model!r} a model for chats?")

    def _heard(self, body: bytes) -> _Heard:
        try:
            completion = _Completion.model_validate_json(body)
        except ValidationError:
            reason = "it answers, but not as OpenAI's API does; check base_url, which often ends in /v1"
            raise BackendDown(self.name, f"{reason}, below [llm] in notebook.toml") from None
        if not completion.choices:
            return _Heard(fault=_NOTHING)
        choice = completion.choices[0]
        if choice.message.refusal or choice.finish_reason == "content_filter":
            return _Heard(fault="it refused to answer")
        return _Heard(choice.message.content or "", is_cut_off=choice.finish_reason == "length")


def read_answer(content: str, shape: type[Shape]) -> Shape | str:
    """The first object in `content` that fits; else what is wrong with the first that there is.

    Around it may stand a model's thoughts, prose, or a code fence. No number in it may be endless, or none at all.
    """
    fault = "it holds no JSON object"
    for number, value in enumerate(_objects(_THOUGHTS.sub("", content))):
        try:
            json.dumps(value, ensure_ascii=False).encode()
            return shape.model_validate(value)
        except ValidationError as error:
            found = _faults(error)
        except (UnicodeEncodeError, RecursionError):
            found = "it holds characters that no text can"
        fault = fault if number else found
    return fault


@dataclass(frozen=True, slots=True)
class _Heard:
    """What a server says that a model said; or why it said nothing."""

    content: str = ""
    fault: str = ""
    is_cut_off: bool = False


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a model said, and what it was read as: a shape, or what is wrong with it."""

    content: str
    read: BaseModel | str
    is_worth_a_retry: bool = True


class _Said(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    message: _Said
    finish_reason: str | None = None


class _Completion(BaseModel):
    choices: list[_Choice]


@contextmanager
def _as_ours() -> Iterator[None]:
    try:
        yield
    except BackendDown as down:
        raise LlmDown(down.backend, down.reason) from None


def _with_shape(messages: Sequence[Message], shape: type[BaseModel]) -> list[Message]:
    """The messages, the last with what to answer: some servers take a schema and do not look at it."""
    *earlier, last = messages
    schema = json.dumps(_strict(shape.model_json_schema()), ensure_ascii=False)
    wish = f"Answer with one JSON object and nothing else. It must fit this JSON schema:\n{schema}"
    return [*earlier, {"role": last["role"], "content": f"{last['content']}\n\n{wish}"}]


def _told_off(answer: _Answer) -> list[Message]:
    said = answer.content[:_MOST_REPEATED] or "(nothing)"
    wrong = (
        f"That will not do: {answer.read}. Answer again, with one JSON object that fits the schema, and nothing else."
    )
    return [{"role": "assistant", "content": said}, {"role": "user", "content": wrong}]


def _format(kind: str, shape: type[BaseModel]) -> dict[str, Any]:
    if kind == "json_schema":
        schema = {"name": shape.__name__.strip("_"), "strict": True, "schema": _strict(shape.model_json_schema())}
        return {"response_format": {"type": kind, "json_schema": schema}}
    return {"response_format": {"type": kind}} if kind else {}


def _strict(schema: Any) -> Any:
    """The schema as strict servers want it: every field is asked for, and no other. What the program's own texts say of
    its classes is no part of it: small models answer with that."""
    if isinstance(schema, list):
        return [_strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    fields = schema.get("properties")
    if not isinstance(fields, dict):
        return {key: _strict(value) for key, value in schema.items() if key not in ("default", "title")}
    kept = {key: _strict(value) for key, value in schema.items() if key not in ("title", "description", "properties")}
    asked = {name: _strict(value) for name, value in fields.items()}
    return {**kept, "properties": asked, "required": list(fields), "additionalProperties": False}


def _objects(text: str) -> Iterator[Any]:
    """Objects in the text, the likeliest first."""
    for whole in (text, *(fenced[1] for fenced in _FENCE.finditer(text))):
        try:
            value = _DECODER.decode(whole.strip())
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield value
    at, left = text.find("{"), _MOST_CANDIDATES
    while at >= 0 and left:
        left -= 1
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            yield value
        at = text.find("{", end)


def _no_number(text: str) -> Any:
    raise ValueError(text)


def _finite(text: str) -> float:
    number = float(text)
    return number if abs(number) < float("inf") else _no_number(text)


_DECODER = json.JSONDecoder(parse_constant=_no_number, parse_float=_finite)


def _faults(error: ValidationError) -> str:
    """What is wrong and where, without the values, which are the model's own words."""
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    told = [
        f"{'.'.join(str(step) for step in fault['loc']) or 'it'}: {fault['msg']}" for fault in faults[:_MOST_FAULTS]
    ]
    return "; ".join(told)
