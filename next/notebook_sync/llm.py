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
from collections.abc import Mapping
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
# How a server is asked for JSON, the strictest first. Many take only some of them.
_FORMATS = ("json_schema", "json_object", "none")
_DECLINED, _BUSY = (400, 413, 415, 422, 501), (408, 409, 425, 429)
# Before the second and the third try, where the server names no time itself.
_PAUSES = (0.25, 1.0)
_WHOLE = re.compile(r"[0-9]{1,9}")
_MOST_OBJECTS = 20
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
            body = self._post(messages, _format(_FORMATS[number], shape), until)
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
            raise self._down("it answers, but not as OpenAI's API does; does llm.base_url end in /v1?") from None
        if not choices:
            return "", False
        if choices[0].message.refusal or choices[0].finish_reason == "content_filter":
            raise BadAnswer(self.name, "it refused to answer")
        said = _THOUGHTS.sub("", choices[0].message.content or "").strip()
        return said, choices[0].finish_reason == "length"

    def _post(self, messages: list[Message], wanted: dict[str, Any], until: float) -> bytes | None:
        """What the server answers; None where it declines the format `wanted`. A busy server is asked three times in
        all, if the deadline allows."""
        try:
            import httpx2  # noqa: F401 - takes a tenth of a second, which is not the server's, and most commands ask no model
        except ImportError:
            raise MissingExtra("a language model", "llm") from None
        body = {"model": self.model, "messages": messages, **wanted}
        content = json.dumps(body, ensure_ascii=False).encode(errors="replace")
        for pause in (*_PAUSES, math.inf):
            reply = _within(until - time.monotonic(), self._url, self._key, content)
            if reply is None:
                raise self._down(f"it took longer than llm.timeout_seconds ({self._seconds:g})")
            if reply.status == 200 and not reply.fault:
                return reply.body
            if reply.status in _DECLINED and wanted:
                return None
            is_busy = reply.status in _BUSY or reply.status >= 500 or not reply.status
            wait = float(reply.wait) if _WHOLE.fullmatch(reply.wait) else pause
            if not is_busy or pause == math.inf or wait > until - time.monotonic():
                raise self._down(reply.fault or f"status {reply.status}; {self._advice(reply.status)}")
            time.sleep(wait)
        raise AssertionError("the last pause is endless")

    def _advice(self, status: int) -> str:
        if status in (401, 403):
            return "is the variable that llm.api_key_env names set to a valid key?"
        if status in _BUSY or status >= 500:
            return "it is busy or has failed"
        return f"are llm.base_url, which often ends in /v1, and the model {self.model!r} right?"

    def _down(self, reason: str) -> BackendDown:
        return BackendDown(self.name, reason)


def read_answer(said: str, shape: type[T]) -> T | str:
    """The first JSON object in the text that fits the shape, else what is wrong with the first one."""
    fault, at, end = "", said.find("{"), 0
    for _ in range(_MOST_OBJECTS):
        if at < 0:
            break
        try:
            _, end = _DECODER.raw_decode(said, at)
            # Strict, unlike json: no NaN, no endless number, no half of a character.
            return msgspec.convert(_without_nulls(msgspec.json.decode(said[at:end].encode())), shape)
        except msgspec.ValidationError as error:
            fault = fault or _WRONG_CHOICE.sub("a value that is not allowed", str(error))
        except (ValueError, RecursionError):
            end = at + 1
        at = said.find("{", end)
    return fault or "it holds no JSON object"


_DECODER = json.JSONDecoder()


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


def _format(kind: str, shape: type[msgspec.Struct]) -> dict[str, Any]:
    if kind == "none":
        return {}
    if kind == "json_object":
        return {"response_format": {"type": kind}}
    schema = {"name": shape.__name__.strip("_"), "strict": True, "schema": schema_of(shape, strict=True)}
    return {"response_format": {"type": kind, "json_schema": schema}}


class _Reply(NamedTuple):
    """`status` 0: there is no whole answer, for the reason in `fault`. `wait` is the header Retry-After."""

    status: int
    wait: str = ""
    body: bytes = b""
    fault: str = ""


def _sent(url: str, key: str, content: bytes, seconds: float) -> _Reply:
    """One request, and what comes back, at most `_LARGEST_ANSWER` bytes of it."""
    import httpx2

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


def _within(seconds: float, url: str, key: str, content: bytes) -> _Reply | None:
    """What `_sent` returns within `seconds`, else None. A client's timeout bounds each read, but not the lookup of a
    name, nor a server that sends a byte now and then. A late thread ends by itself."""
    replies: SimpleQueue[_Reply] = SimpleQueue()
    threading.Thread(target=lambda: replies.put(_sent(url, key, content, seconds)), daemon=True).start()
    try:
        return replies.get(timeout=max(seconds, 0.0))
    except Empty:
        return None


def _without_login(url: str) -> tuple[str, tuple[str, str] | None]:
    """An address and its name and password apart: libraries log addresses."""
    parts = urlsplit(url)
    login, at, host = parts.netloc.rpartition("@")
    name, _, password = login.partition(":")
    return parts._replace(netloc=host).geturl(), (unquote(name), unquote(password)) if at else None
