"""One server that speaks as OpenAI's does, for whoever asks it something: its address, its key, and its time.

No key gets into a message, and nothing is sent anywhere but to the address that the settings name.
"""

from __future__ import annotations

import json
import re
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit, urlunsplit

from notebook_sync.address import Address
from notebook_sync.errors import BackendDown, ConfigError

if TYPE_CHECKING:
    import httpx2
    from openai import APIStatusError, OpenAI

OPENAI = "https://api.openai.com/v1"
_MOST_BYTES = 4 << 20
_LONGEST_REASON = 200
_CODE = re.compile(r"[a-z][a-z0-9_]{1,59}")
# Before a second and a third try, where the server itself does not say how long.
_WAITS = (0.25, 1.0)
_NOT_NOW = (408, 409, 425, 429)
_NOT_SO = (400, 413, 415, 422, 501)
_HIDDEN = "***"
_NO_KEY = "none"  # the library wants one; servers without keys do not read it


@dataclass(frozen=True, slots=True)
class Reply:
    """`body` as it came. `declined` is why the server takes no such request, "" where it took it."""

    body: bytes
    declined: str = ""


class OpenAiServer:
    """The server of the settings below `table`, which is `what` to people. Any number of threads."""

    def __init__(
        self,
        what: str,
        table: str,
        *,
        base_url: str,
        api_key_env: str,
        timeout_seconds: float,
        environ: Mapping[str, str],
    ) -> None:
        self._table = table
        self._below = f"below [{table}] in notebook.toml"
        self._url = base_url.strip() or OPENAI
        self._key_name = api_key_env.strip()
        self._key = environ.get(self._key_name, "").strip() if self._key_name else ""
        self._address = Address.of(self._url)
        self.timeout_seconds = timeout_seconds
        self.name = f"{what} at {self._address.shown()}"
        self._lock = threading.Lock()
        self._client: OpenAI | None = None

    def require(self) -> None:
        """Raises ConfigError where the settings cannot lead to an answer; asks nobody."""
        try:
            url = urlsplit(self._url)
            is_address = url.scheme in ("http", "https") and bool(url.hostname) and (url.port or 1) > 0
        except ValueError:
            is_address = False
            url = urlsplit("")
        if not is_address or url.query or url.fragment or not self._url.isprintable():
            raise ConfigError(
                f"{self._table}.base_url = {self._address.shown()!r} is no address of a server; write it like "
                "http://127.0.0.1:8080/v1"
            )
        if not self._key and self._url == OPENAI:
            raise ConfigError(
                f"{self.name} wants a key, and the variable {self._key_name or 'OPENAI_API_KEY'} is not set; set it, "
                f"or name another server with base_url {self._below}"
            )
        if not (self._key.isascii() and self._key.isprintable()):
            raise ConfigError(f"the variable {self._key_name} holds no key: a key is one line of plain characters")

    def post(self, path: str, body: Mapping[str, Any], *, seconds: float | None = None) -> Reply:
        """What the server answers, within `seconds`, those of the settings unless said.

        A server that is busy, failed, or hung up is asked at most three times. Raises ConfigError, BackendDown.
        """
        self.require()
        seconds = self.timeout_seconds if seconds is None else seconds
        text = json.dumps(body, ensure_ascii=False)
        self._connected()  # to load the library takes seconds on a busy machine, which are not the server's
        until = time.monotonic() + seconds
        # What bounds a connection's reads bounds no lookup of a name, and no server that sends a byte now and then.
        reply = _within(seconds, lambda: self._persist(path, text, until))
        if reply is None:
            raise self._late()
        return reply

    def close(self) -> None:
        """Let connections go. Twice is allowed."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _persist(self, path: str, text: str, until: float) -> Reply:
        """The library would wait for up to two minutes because a server asks for it, whatever the deadline."""
        for pause in (*_WAITS, None):
            outcome = self._ask(path, text, until)
            if isinstance(outcome, Reply):
                return outcome
            wait = pause if outcome.wait is None else outcome.wait
            if pause is None or wait is None or wait > until - time.monotonic():
                raise self._down(outcome.reason)
            time.sleep(wait)
        raise AssertionError("the last pause is none")

    def _ask(self, path: str, text: str, until: float) -> Reply | _NotNow:
        import httpx2
        import openai  # takes a quarter of a second, and most commands ask no model

        left = until - time.monotonic()
        if left <= 0:
            raise self._late()
        try:
            response = self._connected().post(
                path,
                content=text.encode(errors="replace"),
                cast_to=httpx2.Response,
                options={"timeout": left, "headers": {"Content-Type": "application/json"}},
            )
        except openai.APIStatusError as error:
            return self._refused(error)
        except openai.APITimeoutError:
            raise self._late() from None
        except _TooMuch as error:
            raise self._down(str(error)) from None
        except openai.APIConnectionError as error:
            reason = self._plain(str(error.__cause__ or error))
            return _NotNow(f"{reason}; is it running, and is base_url {self._below} its address?")
        except (openai.OpenAIError, httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
            raise self._down(self._plain(f"{type(error).__name__}: {error}")) from None
        return Reply(response.content)

    def _refused(self, error: APIStatusError) -> Reply | _NotNow:
        status = error.status_code
        # What else the server says may repeat what it was sent, which are somebody else's words.
        code = self._plain(error.code) if error.code and _CODE.fullmatch(error.code) else ""
        said = f"{status} {code}".strip()
        if status in _NOT_SO:
            return Reply(b"", said)
        if status in (401, 403):
            had = f"the key in {self._key_name}" if self._key else "to be asked without a key"
            raise self._down(
                f"it refuses {had} ({said}); see api_key_env {self._below}, and the variable that it names"
            )
        if status in _NOT_NOW or status >= 500:
            wait = _seconds(error.response.headers.get("retry-after", ""))
            asks = f", and asks to be left alone for {wait:g} seconds" if wait else ""
            return _NotNow(f"it is busy or has failed ({said}){asks}; try again later", wait)
        raise self._down(f"{said}; check base_url, which often ends in /v1, and the model's name, {self._below}")

    def _plain(self, text: str) -> str:
        """One short line without secrets."""
        text = self._address.without_secrets(text)
        if self._key:
            text = text.replace(self._key, _HIDDEN)
        line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
        return line if len(line) <= _LONGEST_REASON else f"{line[: _LONGEST_REASON - 1]}…"

    def _late(self) -> BackendDown:
        return self._down(
            "not within the time it has; use a faster model, or raise timeout_seconds "
            f"({self.timeout_seconds:g}) {self._below}"
        )

    def _down(self, reason: str) -> BackendDown:
        return BackendDown(self.name, reason)

    def _connected(self) -> OpenAI:
        from openai import DefaultHttpxClient, OpenAI

        with self._lock:
            if self._client is None:
                # Compressed answers would have no bound, and another address than that of the settings no say.
                web = DefaultHttpxClient(
                    follow_redirects=False,
                    headers={"Accept-Encoding": "identity"},
                    event_hooks={"response": [_bound]},
                )
                address, login = _apart(self._url)
                self._client = OpenAI(
                    api_key=self._key or _NO_KEY,
                    base_url=address,
                    max_retries=0,
                    http_client=web,
                    default_headers=login,
                )
            return self._client


@dataclass(frozen=True, slots=True)
class _NotNow:
    """The server may answer after a while, after `wait` seconds where it says so."""

    reason: str
    wait: float | None = None


class _TooMuch(Exception):
    """An answer that is larger than any that is asked for."""


def _apart(url: str) -> tuple[str, dict[str, str]]:
    """The address, and the header that logs in as the user whom it names: what logs addresses logs them as they are."""
    parts = urlsplit(url)
    login, at, place = parts.netloc.rpartition("@")
    if not at:
        return url, {}
    word = b64encode(unquote(login if ":" in login else f"{login}:").encode()).decode()
    return urlunsplit(parts._replace(netloc=place)), {"Authorization": f"Basic {word}"}


def _bound(response: httpx2.Response) -> None:
    """Let no more of an answer in than is asked for."""
    import httpx2

    inner = response.stream

    class Bounded(httpx2.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            room = _MOST_BYTES
            for chunk in inner:  # type: ignore[union-attr]  # the client of threads has no other
                room -= len(chunk)
                if room < 0:
                    raise _TooMuch(f"its answer has more than {_MOST_BYTES:,} bytes")
                yield chunk

        def close(self) -> None:
            inner.close()  # type: ignore[union-attr]

    response.headers.pop("content-encoding", None)
    response.stream = Bounded()


def _seconds(retry_after: str) -> float | None:
    """As a number; a date, and what is no number at all, count as nothing said."""
    text = retry_after.strip()
    return float(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None


def _within(seconds: float, ask: Callable[[], Reply]) -> Reply | None:
    """What is answered in time, else None: the thread that is late then ends by itself."""
    answers: SimpleQueue[Reply | Exception] = SimpleQueue()

    def wait() -> None:
        try:
            answers.put(ask())
        except Exception as error:
            answers.put(error)

    threading.Thread(target=wait, daemon=True).start()
    try:
        answer = answers.get(timeout=max(seconds, 0.0))
    except Empty:
        return None
    if isinstance(answer, Exception):
        raise answer
    return answer
