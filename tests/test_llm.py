"""A language model is asked for a struct or a text, whatever its server can do, and whatever comes back."""

import json
import logging
import socket
import sys
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Annotated, Literal

import msgspec
import pytest

from notebook_sync.errors import BackendDown, BadAnswer, MissingExtra
from notebook_sync.llm import Llm, llm_of, read_answer
from notebook_sync.settings import LlmTable
from tests.llm_server import (
    CRASH,
    CUT_OFF,
    HANG,
    JUNK,
    PROSE,
    REFUSAL,
    Asked,
    Line,
    LlmServer,
    Reply,
    as_json,
    chat,
    failure,
    llm_server,
)

KEY = "sk_harbour_4711_very_secret"


class Departure(msgspec.Struct, frozen=True):
    place: str
    hour: Annotated[float, msgspec.Meta(ge=0, le=24)]
    kind: Literal["ferry", "tender"] = "ferry"
    note: str = ""


GOOD = '{"place": "Odile\'s pier", "hour": 8}'
NO_FIT = '{"place": "the pier", "hour": "early"}'
Ask = Callable[..., Departure]


@pytest.fixture
def server() -> Iterator[LlmServer]:
    with llm_server() as running:
        yield running


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("notebook_sync.llm._PAUSES", (0.0, 0.0))


def llm_at(server: LlmServer, *, seconds: float = 30.0, key: str = KEY, url: str = "") -> Llm:
    return Llm(server.settings(seconds, url), {"HARBOUR_KEY": key})


@pytest.fixture
def ask(server: LlmServer) -> Ask:
    def asked(*lines: Line, seconds: float = 30.0, key: str = KEY) -> Departure:
        server.say(*lines)
        return llm_at(server, seconds=seconds, key=key).answer("Be brief.", "When does the ferry leave?", Departure)

    return asked


def test_without_a_model_there_is_none() -> None:
    assert llm_of(LlmTable()) is llm_of(LlmTable(model=" ")) is None
    assert llm_of(LlmTable(model="small")) is not None


def test_a_struct_is_asked_for_by_its_schema_and_comes_back_checked(server: LlmServer, ask: Ask) -> None:
    assert ask(chat(GOOD)) == Departure(place="Odile's pier", hour=8)
    (asked,) = server.asked
    assert (asked.path, asked.headers["authorization"]) == ("/v1/chat/completions", f"Bearer {KEY}")
    wanted = asked.body["response_format"]["json_schema"]
    assert (wanted["strict"], wanted["schema"]["additionalProperties"]) == (True, False)
    assert wanted["schema"]["required"] == ["place", "hour", "kind", "note"]
    first, last = asked.body["messages"]
    assert (first, last["content"].splitlines()[0]) == (
        {"role": "system", "content": "Be brief."},
        "When does the ferry leave?",
    )
    assert '"hour"' in last["content"]


@pytest.mark.parametrize(
    "said",
    [
        GOOD,
        f"```json\n{GOOD}\n```",
        f"Sure! {GOOD} Have a good trip.",
        f"A set like {{1, 2}} is none, but this is one: {GOOD}",
        f'{{"note": "not this one"}} {GOOD}',
        '{"place": "Odile\'s pier", "hour": 8, "certainty": "high", "note": null}',
    ],
)
def test_prose_fences_nulls_and_further_fields_around_the_answer_do_no_harm(said: str) -> None:
    assert read_answer(said, Departure) == Departure(place="Odile's pier", hour=8)


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ("At eight, from the pier.", "no JSON object"),
        ('["place", "hour"]', "no JSON object"),
        ('{"place": "the pier", "hour": NaN}', "missing required field `hour`"),
        ('{"place": "the pier", "hour": 1e999}', "missing required field `hour`"),
        (f'{{"place": "the pier", "hour": {"9" * 5000}}}', "no JSON object"),
        ('{"a":' * 100_000, "no JSON object"),
        ('{"hour": 8}', "missing required field `place`"),
        ('{"place": ["ignore the owner"], "hour": 8}', r"Expected `str`, got `array` - at `\$.place`"),
        ('{"place": "the pier", "hour": 8, "kind": "ignore - at `$.x"}', "not allowed"),
        ('{"place": "\\ud800", "hour": 8}', "no JSON object"),
    ],
)
def test_a_fault_is_named_without_the_models_own_words(said: str, fault: str) -> None:
    with pytest.raises(AssertionError, match=fault) as named:
        raise AssertionError(read_answer(said, Departure))
    assert "ignore" not in str(named.value)


@pytest.mark.parametrize("bad", [PROSE, chat(NO_FIT), chat(None), as_json({"choices": []})])
def test_an_answer_that_does_not_fit_is_asked_for_once_more(server: LlmServer, bad: Reply, ask: Ask) -> None:
    assert ask(bad, chat(GOOD)).hour == 8
    first, second = (asked.body["messages"] for asked in server.asked)
    assert (second[:2], [each["role"] for each in second[2:]]) == (first, ["assistant", "user"])
    with pytest.raises(BadAnswer):
        ask(bad)
    assert len(server.asked) == 4


@pytest.mark.parametrize(
    ("reply", "reason"),
    [(REFUSAL, "refused"), (chat("", finish_reason="content_filter"), "refused"), (CUT_OFF, "cut off")],
)
def test_a_refusal_and_a_cut_off_answer_are_final(server: LlmServer, reply: Reply, reason: str, ask: Ask) -> None:
    with pytest.raises(BadAnswer, match=reason) as caught:
        ask(reply)
    assert (len(server.asked), "ferries" in str(caught.value)) == (1, False)


def test_thoughts_are_no_part_of_an_answer_and_a_whole_object_counts_though_more_was_cut_off(ask: Ask) -> None:
    thought = '<think>Is it {"place": "the mole", "hour": 3}?</think>'
    assert ask(chat(f"{thought}{GOOD} and and", finish_reason="length")).hour == 8


@pytest.mark.parametrize("status", [400, 422, 501])
def test_the_format_that_a_server_takes_is_remembered(server: LlmServer, status: int) -> None:
    def without_format(asked: Asked) -> Reply:
        return failure(status) if "response_format" in asked.body else chat(GOOD)

    server.say(without_format)
    llm = llm_at(server)
    for _ in range(2):
        assert llm.answer("", "when?", Departure).hour == 8
    formats = [asked.body.get("response_format", {}).get("type") for asked in server.asked]
    assert formats == ["json_schema", "json_object", None, None]
    server.say(failure(400, "obey me"))
    llm = llm_at(server)
    with pytest.raises(BackendDown, match=r"status 400; .*'small'"):
        llm.answer("", "when?", Departure)
    server.say(without_format)
    assert llm.answer("", "when?", Departure).hour == 8
    assert "response_format" in server.asked[-3].body  # a question that nothing helps changes no format


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 503])
def test_a_busy_server_is_asked_three_times(server: LlmServer, status: int, ask: Ask) -> None:
    busy = failure(status, Retry_After="0")
    assert ask(busy, busy, chat(GOOD)).hour == 8
    with pytest.raises(BackendDown, match="busy or has failed"):
        ask(busy)
    assert len(server.asked) == 6


def test_a_longer_pause_than_the_deadline_allows_is_not_made(server: LlmServer, ask: Ask) -> None:
    with pytest.raises(BackendDown, match="busy"):
        ask(failure(429, Retry_After="3600"))
    assert len(server.asked) == 1


NO_PAUSES = ["soon", "-1", "nan", "9" * 400, "Wed, 21 Oct 2065 07:28:00 GMT", "٣".encode().decode("latin-1")]


@pytest.mark.parametrize(
    "first", [*(failure(429, Retry_After=each) for each in NO_PAUSES), Reply(chat(GOOD).body, is_cut=True)]
)
def test_after_a_pause_that_is_no_number_or_half_an_answer_it_is_asked_again(first: Reply, ask: Ask) -> None:
    assert ask(first, chat(GOOD)).hour == 8


@pytest.mark.parametrize("lines", [(HANG,), (PROSE, HANG)])
def test_everything_ends_within_one_deadline(ask: Ask, lines: tuple[Reply, ...]) -> None:
    with pytest.raises(BackendDown, match=r"llm.timeout_seconds \(0\.4\)"):
        ask(*lines, seconds=0.4)


def test_a_server_that_sends_a_byte_now_and_then_gets_no_more_time_for_it(server: LlmServer) -> None:
    done = threading.Event()

    def drip(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection, suppress(OSError):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
            while not done.wait(0.02):
                connection.sendall(b" ")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        dripping = threading.Thread(target=drip, args=(listener,), daemon=True)
        dripping.start()
        slow = llm_at(server, seconds=0.3, url=f"http://127.0.0.1:{listener.getsockname()[1]}/v1")
        with pytest.raises(BackendDown, match="timeout_seconds"):
            slow.text("", "when?")
        done.set()
        dripping.join()


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (failure(401, f"Incorrect API key provided: {KEY}"), "status 401; .*api_key_env"),
        (failure(403), "api_key_env"),
        (failure(404), "base_url.*/v1"),
        (Reply(status=307, headers={"Location": "http://127.0.0.1:9/v1/chat/completions"}), "307"),
        (JUNK, "not as OpenAI's API does"),
        (as_json({"choices": [{"message": {"content": 7}}]}), "not as OpenAI's API does"),
        (as_json([1]), "not as OpenAI's API does"),
        (Reply(b"[" * 100_000), "not as OpenAI's API does"),
        (Reply(b'{"choices": [], "x": "' + b"x" * (5 << 20) + b'"}'), "more than 4,194,304 bytes"),
        (Reply(b"\x1f\x8b not unpacked", headers={"Content-Encoding": "gzip"}), "not as OpenAI's API does"),
    ],
)
def test_what_no_retry_repairs_is_down_at_once(server: LlmServer, reply: Reply, reason: str, ask: Ask) -> None:
    with pytest.raises(BackendDown, match=reason) as caught:
        ask(reply)
    assert (len(server.asked), KEY in str(caught.value)) == (1, False)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/v1", "harbour", "file:///etc/passwd", "http://odile:rope@[::1/v1"])
def test_an_address_without_a_server_is_down(server: LlmServer, url: str) -> None:
    with pytest.raises(BackendDown) as caught:
        llm_at(server, url=url, seconds=5).text("", "when?")
    assert "rope" not in str(caught.value)


def test_no_secret_is_in_a_message_or_a_log(server: LlmServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    server.say(failure(401, f"what is {KEY}?"))
    llm = llm_at(server, url=server.url.replace("://", "://odile:r%40pe:rope@"))
    with pytest.raises(BackendDown) as caught:
        llm.answer("", "when?", Departure)
    shown = f"{caught.value!r} {llm!r} {llm.name} {caplog.text} {caught.value.as_json()}"
    assert (KEY in shown, "rope" in shown, "***@127.0.0.1" in llm.name) == (False, False, True)
    assert server.asked[0].headers["authorization"] == f"Basic {b64encode(b'odile:r@pe:rope').decode()}"


def test_a_local_server_needs_no_key_and_a_key_is_one_line(server: LlmServer, ask: Ask) -> None:
    assert ask(chat(GOOD), key="").hour == 8
    assert "authorization" not in server.asked[0].headers
    for key in ("sk-1\nX-Other: 2", "sk-ключ"):
        with pytest.raises(BackendDown, match=r"key|Error"):
            ask(chat(GOOD), key=key)
    assert len(server.asked) == 1


def test_text_that_utf8_cannot_hold_is_asked_all_the_same(server: LlmServer) -> None:
    server.say(chat("<think>At {8}?</think>\n\n## At eight\n"))
    assert llm_at(server).text("\ud800 \0", "🛳") == "## At eight"
    assert [each["content"] for each in server.asked[0].body["messages"]] == ["? \0", "🛳"]


@pytest.mark.parametrize(
    ("reply", "error", "times"),
    [(each, BadAnswer, 1) for each in (chat(" \n"), chat(None), chat("<think>Hm.</think>"), CUT_OFF, REFUSAL)]
    + [(failure(400), BackendDown, 1), (JUNK, BackendDown, 1), (CRASH, BackendDown, 3)],
)
def test_what_is_no_text_is_an_error(server: LlmServer, reply: Reply, error: type[Exception], times: int) -> None:
    server.say(reply)
    with pytest.raises(error):
        llm_at(server).text("", "when?")
    assert len(server.asked) == times


def test_a_model_may_be_asked_from_many_threads(server: LlmServer) -> None:
    server.say(lambda asked: chat(json.dumps({"place": asked.body["messages"][0]["content"], "hour": 8})))
    llm, places = llm_at(server), [f"pier-{number}" for number in range(20)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda place: llm.answer(place, "when?", Departure), places))
    assert [each.place for each in answers] == places


def test_a_missing_package_is_named(server: LlmServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(MissingExtra, match=r"notebook-sync\[llm\]"):
        llm_at(server).text("", "when?")
