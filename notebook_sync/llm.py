"""One language model at any server that speaks as OpenAI's chat completions do: a question in, a struct or a text out.

What a model answers is data: it is bounded, and checked against what was asked, and its words get into no error. Never
call it while the write lock is held. Nothing is sent anywhere but to `base_url`.
"""

from __future__ import annotations

import json
import math
import os
import re
import threading
import time
from collections.abc import Iterator, Mapping
from functools import partial
from importlib.util import find_spec
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit

import msgspec

from notebook_sync.errors import BackendDown, BadAnswer, MissingExtra
from notebook_sync.schema import schema_of
from notebook_sync.settings import LlmTable, mask_secrets

T = TypeVar("T", bound=msgspec.Struct)
Message = Mapping[str, str]  # role, content

_OPENAI = "https://api.openai.com/v1"
_LARGEST_ANSWER = 4 << 20
_DECLINED, _BUSY = (400, 413, 415, 422, 501), (408, 409, 425, 429)
# Before the second and the third try, where the server names no time itself.
_PAUSES = (0.25, 1.0)
_WHOLE = re.compile(r"[0-9]{1,9}")
# Places where an object may begin that are looked at.
_MOST_TRIES = 200
_LONGEST_REPEATED = 2_000
_THOUGHTS = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
# msgspec repeats the wrong value of an enum, which is the model's own text.
_WRONG_CHOICE = re.compile(r"\AInvalid enum value .*(?= - at `\$)|\AInvalid enum value .*\Z", re.DOTALL)


def llm_of(settings: LlmTable, environ: Mapping[str, str] = os.environ) -> Llm | None:
    """The model of the settings, None where none is named. Nothing is loaded, and nobody asked, before it is used."""
    return Llm(settings, environ) if settings.model.strip() else None


class Llm:
    """May be used by several threads. `name` is for people, and holds no secret.

    Each call ends within `timeout_seconds`, retries included. Raises BackendDown where the server gives no answer,
    BadAnswer where the model gives none that can be used, MissingExtra where the package `httpx2` is missing.
    """

    def __init__(self, settings: LlmTable, environ: Mapping[str, str] = os.environ) -> None:
        self.model = settings.model.strip()
        self._url = settings.base_url.strip().rstrip("/") or _OPENAI
        self._key = environ.get(settings.api_key_env, "").strip()
        self._seconds = settings.timeout_seconds
        self._format = 0
        self.name = f"the language model at {mask_secrets(self._url)}"

    def answer(self, instructions: str, question: str, shape: type[T]) -> T:
        """What the model answers as a `shape`: the first object in its answer that fits. One that does not fit is asked
        for once more, naming the fault.

        Fields that the shape does not have are ignored. A field that may be null must have a default.
        """
        until = time.monotonic() + self._seconds
        schema = json.dumps(schema_of(shape, strict=True), ensure_ascii=False)
        wish = f"{question}\n\nAnswer with one JSON object and nothing else. It must fit this JSON schema:\n{schema}"
        messages = _messages(instructions, wish)
        found, said = self._object(messages, shape, until)
        if isinstance(found, str):
            wrong = f"That does not fit: {found}. Answer again, with one JSON object that fits the schema and no more."
            repeated = {"role": "assistant", "content": said[:_LONGEST_REPEATED] or "(nothing)"}
            found, _ = self._object([*messages, repeated, {"role": "user", "content": wrong}], shape, until)
        if isinstance(found, str):
            raise BadAnswer(self.name, found)
        return found

    def text(self, instructions: str, question: str) -> str:
        """What the model answers, without its thoughts."""
        until = time.monotonic() + self._seconds
        body = self._post(_messages(instructions, question), {}, until) or b""
        said, is_cut = self._said(body)
        if is_cut or not said:
            raise BadAnswer(self.name, "it was cut off at its greatest length" if is_cut else "it said nothing")
        return said

    def _object(self, messages: list[Message], shape: type[T], until: float) -> tuple[T | str, str]:
        """The struct, or what is wrong; and what the model said. Asks in the strictest format that the server takes,
        which is remembered."""
        body, number = None, self._format
        while body is None:
            body = self._post(messages, _formats(shape)[number], until)
            number += body is None
        self._format = number
        said, is_cut = self._said(body)
        found = read_answer(said, shape)
        if is_cut and isinstance(found, str):
            raise BadAnswer(self.name, "it was cut off at its greatest length")
        return found, said

    def _said(self, body: bytes) -> tuple[str, bool]:
        """What the model said without its thoughts, and whether it was cut off. A refusal is final."""
        try:
            choices = msgspec.json.decode(body, type=_Completion).choices
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise BackendDown(
                self.name, "it answers, but not as OpenAI's API does; does llm.base_url end in /v1?"
            ) from None
        if not choices:
            return "", False
        if choices[0].message.refusal or choices[0].finish_reason == "content_filter":
            raise BadAnswer(self.name, "it refused to answer")
        said = _THOUGHTS.sub("", choices[0].message.content or "").strip()
        return said, choices[0].finish_reason == "length"

    def _post(self, messages: list[Message], wanted: dict[str, Any], until: float) -> bytes | None:
        """What the server answers; None where it declines the format `wanted`. A busy server is asked three times in
        all, if the deadline allows."""
        if find_spec("httpx2") is None:
            raise MissingExtra("a language model", "llm")
        body = {"model": self.model, "messages": messages, **wanted}
        content = json.dumps(body, ensure_ascii=False).encode(errors="replace")
        for pause in (*_PAUSES, math.inf):
            reply = self._reply(content, until)
            if reply.status == 200 and not reply.fault:
                return reply.body
            if reply.status in _DECLINED and wanted:
                return None
            is_busy = reply.status in _BUSY or reply.status >= 500 or not reply.status
            wait = float(reply.wait) if _WHOLE.fullmatch(reply.wait) else pause
            if not is_busy or pause == math.inf or wait > until - time.monotonic():
                raise BackendDown(self.name, reply.fault or f"status {reply.status}; {self._advice(reply.status)}")
            time.sleep(wait)
        raise AssertionError("the last pause is endless")

    def _reply(self, content: bytes, until: float) -> _Reply:
        """What the server answers in time. A client's timeout bounds each read, but not the lookup of a name, nor a
        server that sends a byte now and then. A late thread ends by itself, so late that the two clocks never race."""
        seconds, replies = max(until - time.monotonic(), 0.0), SimpleQueue[_Reply]()
        send = partial(_sent, self._url, self._key, content, seconds + 60.0)
        threading.Thread(target=lambda: replies.put(send()), daemon=True).start()
        try:
            return replies.get(timeout=seconds)
        except Empty:
            return _Reply(200, fault=f"it took longer than llm.timeout_seconds ({self._seconds:g})")

    def _advice(self, status: int) -> str:
        if status in (401, 403):
            return "is the variable that llm.api_key_env names set to a valid key?"
        if status in _BUSY or status >= 500:
            return "it is busy or has failed"
        return f"are llm.base_url, which often ends in /v1, and the model {self.model!r} right?"


def read_answer(said: str, shape: type[T]) -> T | str:
    """The first JSON object in the text that fits the shape, else what is wrong with the first one."""
    fault = ""
    for value in objects_in(said):
        try:
            return msgspec.convert(_without_nulls(value), shape)
        except msgspec.ValidationError as error:
            fault = fault or _WRONG_CHOICE.sub("a value that is not allowed", str(error))
    return fault or "it holds no JSON object"


def objects_in(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in a text, whatever is around them. Numbers that JSON does not have are null; an object with
    half a character in it, which no file can hold, is none."""
    end = 0
    for _ in range(_MOST_TRIES):
        start = text.find("{", end)
        if start < 0:
            return
        end = start + 1
        try:
            value, behind = _DECODER.raw_decode(text, start)
            json.dumps(value, ensure_ascii=False).encode()
        except (ValueError, RecursionError):
            continue
        yield value
        end = behind


def _finite(number: str) -> float | None:
    return float(number) if math.isfinite(float(number)) else None


_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_finite)


def _without_nulls(value: Any) -> Any:
    """The value without the fields that are null: where servers are strict, a model cannot leave a field out."""
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


class _Said(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct):
    message: _Said
    finish_reason: str | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice]


def _messages(instructions: str, question: str) -> list[Message]:
    return [{"role": "system", "content": instructions}, {"role": "user", "content": question}]


def _formats(shape: type[msgspec.Struct]) -> list[dict[str, Any]]:
    """How a server is asked for JSON, the strictest first. Many take only some of them."""
    schema = {"name": shape.__name__.strip("_"), "strict": True, "schema": schema_of(shape, strict=True)}
    strict = {"type": "json_schema", "json_schema": schema}
    return [{"response_format": strict}, {"response_format": {"type": "json_object"}}, {}]


class _Reply(NamedTuple):
    """`fault` says why there is no answer that can be used, "" where there is one; `status` 0: it may be there on the
    next try. `wait` is the header Retry-After."""

    status: int
    wait: str = ""
    body: bytes = b""
    fault: str = ""


def _sent(url: str, key: str, content: bytes, seconds: float) -> _Reply:
    """One request, and what comes back, at most `_LARGEST_ANSWER` bytes of it."""
    import httpx2  # takes a tenth of a second, and most commands ask no model

    # A compressed answer has no bound.
    headers = {"Accept-Encoding": "identity", "Content-Type": "application/json"}
    headers |= {"Authorization": f"Bearer {key}"} if key else {}
    body = bytearray()
    try:
        address, login = _without_login(f"{url}/chat/completions")
        verify = not address.startswith("http:")  # certificates take a tenth of a second to load
        with httpx2.stream(
            "POST", address, content=content, headers=headers, auth=login, timeout=seconds, verify=verify
        ) as response:
            for piece in response.iter_raw():
                body += piece
                if len(body) > _LARGEST_ANSWER:
                    return _Reply(200, fault=f"its answer has more than {_LARGEST_ANSWER:,} bytes")
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        return _Reply(0, fault=f"{type(error).__name__}; is it running, and is llm.base_url its address?")
    return _Reply(response.status_code, response.headers.get("Retry-After", "").strip(), bytes(body))


def _without_login(url: str) -> tuple[str, tuple[str, str] | None]:
    """An address and its name and password apart: libraries log addresses."""
    parts = urlsplit(url)
    login, at, host = parts.netloc.rpartition("@")
    name, _, password = login.partition(":")
    return parts._replace(netloc=host).geturl(), (unquote(name), unquote(password)) if at else None
