"""A language model is asked for an object, whatever its server can do, and whatever comes back."""

from __future__ import annotations

import contextlib
import json
import logging
import socket
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from pydantic import BaseModel, Field

from notebook_sync.errors import BackendDown, LlmDown, LlmNonsense, LlmNotConfigured
from notebook_sync.llm import Llm, read_answer
from notebook_sync.settings import LlmSettings
from tests.scripted_llm import Line, Reply, ScriptedServer, as_json, chat, failure

KEY = "sk_harbour_4711_very_secret"  # looks like a code of an error, too
QUESTION = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "When does the ferry leave?"}]


MakeLlm = Callable[..., Llm]


class Departure(BaseModel):
    place: str
    hour: float = Field(ge=0, le=24)


GOOD = '{"place": "Odile\'s pier", "hour": 8}'
NO_FIT = '{"place": "the pier", "hour": "early"}'


Ask = Callable[..., Departure]


@pytest.fixture
def llm_at(server: ScriptedServer) -> Iterator[MakeLlm]:
    with contextlib.ExitStack() as made:

        def make(url: str = "", seconds: float = 30.0, key: str = KEY) -> Llm:
            settings = LlmSettings(url or server.url, "small", "HARBOUR_KEY", seconds)
            return made.enter_context(contextlib.closing(Llm(settings, {"HARBOUR_KEY": key} if key else {})))

        yield make


@pytest.fixture
def ask(server: ScriptedServer, llm_at: MakeLlm) -> Ask:
    def asked(*lines: Line, seconds: float = 30.0) -> Departure:
        server.say(*lines)
        return llm_at(seconds=seconds).answer(QUESTION, Departure)

    return asked


def test_an_object_is_asked_for_by_its_schema_and_comes_back_checked(server: ScriptedServer, ask: Ask) -> None:
    assert ask(chat(GOOD)) == Departure(place="Odile's pier", hour=8)
    (asked,) = server.asked
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body["model"] == "small"
    wanted = asked.body["response_format"]["json_schema"]
    assert (wanted["strict"], wanted["schema"]["required"]) == (True, ["place", "hour"])
    assert wanted["schema"]["additionalProperties"] is False
    first, last = asked.body["messages"]
    assert first == QUESTION[0]
    assert last["content"].startswith(QUESTION[1]["content"])
    assert '"hour"' in last["content"]


@pytest.mark.parametrize(
    "content",
    [
        GOOD,
        f"\n {GOOD}\n\n",
        f"```json\n{GOOD}\n```",
        f"Here you are:\n\n```\n{GOOD}\n```\nAnything else?",
        f"Sure! {GOOD} Have a good trip.",
        f"A set like {{1, 2}} is none, but this is: {GOOD}",
        f'{{"note": "not this one"}} {GOOD}',
        f'<think>Is it {{"place": "the mole", "hour": 3}}?</think>{GOOD}',
        '{"place": "Odile\'s pier", "hour": 8, "certainty": "high"}',
    ],
)
def test_prose_fences_thoughts_and_further_fields_around_the_answer_do_no_harm(content: str) -> None:
    assert read_answer(content, Departure) == Departure(place="Odile's pier", hour=8)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("", "no JSON object"),
        ("At eight, from the pier.", "no JSON object"),
        ('["place", "hour"]', "no JSON object"),
        ('{"place": "the pier", "hour": NaN}', "no JSON object"),
        ('{"place": "the pier", "hour": 1e999}', "no JSON object"),
        (f'{{"place": "the pier", "hour": {"9" * 5000}}}', "no JSON object"),
        ('{"place": "the pier", "hour": 8', "no JSON object"),
        ("[" * 100_000, "no JSON object"),
        ('{"a":' * 100_000, "no JSON object"),
        ('{"hour": 8}', "place: Field required"),
        ('{"place": ["ignore the owner"], "hour": 8}', "place: Input should be a valid string"),
        ('{"place": "the pier", "hour": 25}', "hour: Input should be less than or equal to 24"),
        ('{"place": "\\ud800", "hour": 8}', "characters that no text can"),
    ],
)
def test_what_does_not_fit_is_told_without_the_models_own_words(content: str, fault: str) -> None:
    read = read_answer(content, Departure)
    assert isinstance(read, str)
    assert fault in read
    assert "ignore" not in read


@pytest.mark.parametrize("bad", ["At eight.", NO_FIT, "", None])
def test_an_answer_that_will_not_do_is_told_to_the_model_once(
    server: ScriptedServer, bad: str | None, ask: Ask
) -> None:
    assert ask(chat(bad), chat(GOOD)).hour == 8
    first, second = (asked.body["messages"] for asked in server.asked)
    assert second[: len(first)] == first
    assert [one["role"] for one in second[len(first) :]] == ["assistant", "user"]
    assert "will not do" in second[-1]["content"]


def test_no_choices_are_asked_for_again_and_then_an_error(server: ScriptedServer, ask: Ask) -> None:
    with pytest.raises(LlmNonsense, match="no answer at all"):
        ask(as_json({"choices": []}))
    assert len(server.asked) == 2


def test_a_second_answer_that_will_not_do_is_an_error_without_its_words(server: ScriptedServer, ask: Ask) -> None:
    with pytest.raises(LlmNonsense, match="hour: Input should be a valid number") as caught:
        ask(chat("obey me"), chat(NO_FIT))
    assert len(server.asked) == 2
    assert "early" not in str(caught.value)
    assert caught.value.exit_code == 1


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (chat(None, refusal="I will not say anything about ferries."), "refused"),
        (chat("", finish_reason="content_filter"), "refused"),
        (chat('{"place": "the pi', finish_reason="length"), "cut off"),
    ],
)
def test_a_refusal_and_a_cut_answer_are_not_asked_for_again(
    server: ScriptedServer, reply: Reply, reason: str, ask: Ask
) -> None:
    with pytest.raises(LlmNonsense, match=reason) as caught:
        ask(reply)
    assert len(server.asked) == 1
    assert "ferries" not in str(caught.value)


def test_a_whole_object_counts_though_the_model_went_on_until_it_was_cut(ask: Ask) -> None:
    assert ask(chat(f"{GOOD} and and and", finish_reason="length")).hour == 8


@pytest.mark.parametrize("status", [400, 422, 501])
def test_a_server_without_schemas_is_asked_in_the_way_it_takes_from_then_on(
    server: ScriptedServer, status: int, llm_at: MakeLlm
) -> None:
    def plain_alone(asked: object) -> Reply:
        return failure(status) if "response_format" in getattr(asked, "body", {}) else chat(GOOD)

    server.say(plain_alone)
    llm = llm_at()
    assert llm.answer(QUESTION, Departure).hour == llm.answer(QUESTION, Departure).hour == 8
    formats = [asked.body.get("response_format", {}).get("type", "") for asked in server.asked]
    assert formats == ["json_schema", "json_object", "", ""]


def test_a_question_that_no_format_helps_is_down_with_the_status(server: ScriptedServer, ask: Ask) -> None:
    with pytest.raises(LlmDown, match=r"400 context_length_exceeded.*'small'"):
        ask(failure(400, "the prompt says: obey me", "context_length_exceeded"))
    assert len(server.asked) == 3


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_a_server_that_is_busy_is_asked_again(status: int, ask: Ask) -> None:
    busy = failure(status, Retry_After="0")
    assert ask(busy, busy, chat(GOOD)).hour == 8


def test_a_server_that_stays_busy_is_asked_three_times(server: ScriptedServer, ask: Ask) -> None:
    with pytest.raises(LlmDown, match="busy or has failed"):
        ask(failure(500, Retry_After="0"))
    assert len(server.asked) == 3


def test_a_server_that_wants_more_time_than_there_is_left_is_told_of_at_once(server: ScriptedServer, ask: Ask) -> None:
    with pytest.raises(LlmDown, match="left alone for 3600 seconds"):
        ask(failure(429, code="rate_limit_exceeded", Retry_After="3600"))
    assert len(server.asked) == 1


@pytest.mark.parametrize("said", ["soon", "-1", "nan", "9" * 400, "Wed, 21 Oct 2065 07:28:00 GMT", "٣"])
def test_a_wait_that_is_no_number_is_not_waited_for(said: str, ask: Ask) -> None:
    header = said.encode().decode("latin-1")
    assert ask(failure(429, Retry_After=header), chat(GOOD)).hour == 8


def test_a_connection_that_ends_amid_the_answer_is_made_again(ask: Ask) -> None:
    cut = Reply(chat(GOOD).body, cut=True)
    assert ask(cut, chat(GOOD)).hour == 8


def test_a_server_that_does_not_answer_in_time_is_down(ask: Ask) -> None:
    with pytest.raises(LlmDown, match=r"timeout_seconds \(0\.2\) below \[llm\]") as caught:
        ask(Reply(hold=True), seconds=0.2)
    assert caught.value.exit_code == 4


def test_a_server_that_sends_a_byte_now_and_then_gets_no_more_time_for_it(llm_at: MakeLlm) -> None:
    done = threading.Event()

    def drip(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection, contextlib.suppress(OSError):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
            while not done.wait(0.02):
                connection.sendall(b" ")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        dripping = threading.Thread(target=drip, args=(listener,), daemon=True)
        dripping.start()
        try:
            with pytest.raises(LlmDown, match="timeout_seconds"):
                llm_at(f"http://127.0.0.1:{listener.getsockname()[1]}", seconds=0.3).answer(QUESTION, Departure)
        finally:
            done.set()
            dripping.join()


def test_no_server_at_all_is_down_and_says_where_it_was_looked_for(llm_at: MakeLlm) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(LlmDown, match=rf"127\.0\.0\.1:{port}.*is it running"):
        llm_at(f"http://127.0.0.1:{port}/v1").answer(QUESTION, Departure)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (failure(401, f"Incorrect API key provided: {KEY}"), "refuses the key in HARBOUR_KEY"),
        (failure(403), "refuses the key"),
        (failure(404, code="model_not_found"), r"404 model_not_found; check base_url.*/v1"),
        (Reply(status=307, headers={"Location": "http://127.0.0.1:9/v1/chat/completions"}), "307"),
        (Reply(b"<html>Harbour office</html>"), "not as OpenAI's API does"),
        (as_json({"choices": [{"message": {"content": 7}}]}), "not as OpenAI's API does"),
        (as_json([1]), "not as OpenAI's API does"),
        (Reply(b'{"choices": [], "x": "' + b"x" * (5 << 20) + b'"}'), "more than 4,194,304 bytes"),
        (Reply(b"x" * (5 << 20), status=400), "more than 4,194,304 bytes"),
        (Reply(b"\x1f\x8b not unpacked", headers={"Content-Encoding": "gzip"}), "not as OpenAI's API does"),
    ],
)
def test_what_no_retry_mends_is_down_at_once_and_says_what_to_look_at(
    server: ScriptedServer, reply: Reply, reason: str, ask: Ask
) -> None:
    with pytest.raises(LlmDown, match=reason) as caught:
        ask(reply)
    assert len(server.asked) == 1
    assert isinstance(caught.value, BackendDown)


def test_the_key_is_in_no_message_no_log_and_no_traceback(
    server: ScriptedServer, caplog: pytest.LogCaptureFixture, llm_at: MakeLlm
) -> None:
    caplog.set_level(logging.DEBUG)
    server.say(failure(401, f"what is {KEY}?", KEY))
    llm = llm_at(server.url.replace("://", "://odile:r%40pe:rope@"))
    with pytest.raises(LlmDown) as caught:
        llm.answer(QUESTION, Departure)
    told = [str(caught.value), repr(caught.value), repr(llm), llm.name, caplog.text, repr(vars(caught.value))]
    assert caught.value.__suppress_context__
    assert not [one for one in told if KEY in one or "rope" in one]
    assert server.asked[0].headers["authorization"] == f"Basic {b64encode(b'odile:r@pe:rope').decode()}"
    assert "***@127.0.0.1" in llm.name


def test_a_local_server_needs_no_key(server: ScriptedServer, llm_at: MakeLlm) -> None:
    server.say(chat(GOOD))
    assert llm_at(key="").answer(QUESTION, Departure).hour == 8
    server.say(failure(401))
    with pytest.raises(LlmDown, match="without a key"):
        llm_at(key="").answer(QUESTION, Departure)


def test_text_that_utf8_cannot_hold_is_asked_all_the_same(server: ScriptedServer, llm_at: MakeLlm) -> None:
    server.say(chat(GOOD))
    assert llm_at().answer([{"role": "user", "content": "\ud800 \0 🛳"}], Departure).hour == 8
    assert server.asked[0].body["messages"][0]["content"].startswith("? \0 🛳")


@pytest.mark.parametrize(
    ("settings", "environ", "told"),
    [
        (LlmSettings(), {}, r"below \[llm\] in notebook.toml, set model, and base_url"),
        (LlmSettings(model=" "), {}, "set model"),
        (LlmSettings(model="small"), {}, "the variable OPENAI_API_KEY is not set"),
        (LlmSettings(model="small", api_key_env=""), {}, "OPENAI_API_KEY"),
        (LlmSettings("harbour", "small"), {}, "no address of a server"),
        (LlmSettings("file:///etc/passwd", "small"), {}, "no address of a server"),
        (LlmSettings("http://", "small"), {}, "no address of a server"),
        (LlmSettings("http://harbour:port/v1", "small"), {}, "no address of a server"),
        (LlmSettings("http://[::1/v1", "small"), {}, "no address of a server"),
        (LlmSettings("http://odile:rope@harbour:port/v1", "small"), {}, "no address of a server"),
        (LlmSettings("http://harbour/v1?key=rope", "small"), {}, "no address of a server"),
        (LlmSettings(model="small"), {"OPENAI_API_KEY": "sk-1\nX-Other: 2"}, "holds no key"),
        (LlmSettings(model="small"), {"OPENAI_API_KEY": "sk-ключ"}, "holds no key"),
    ],
)
def test_settings_that_lead_to_no_model_are_told_before_anything_is_sent(
    settings: LlmSettings, environ: dict[str, str], told: str
) -> None:
    with pytest.raises(LlmNotConfigured, match=told) as caught:
        Llm(settings, environ).answer(QUESTION, Departure)
    assert caught.value.exit_code == 2
    assert "rope" not in str(caught.value)


def test_a_model_may_be_asked_from_many_threads(server: ScriptedServer, llm_at: MakeLlm) -> None:
    server.say(lambda asked: chat(json.dumps({"place": asked.body["messages"][0]["content"].split()[0], "hour": 8})))
    llm = llm_at()
    places = [f"pier-{number}" for number in range(20)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda place: llm.answer([{"role": "user", "content": place}], Departure), places))
    assert [one.place for one in answers] == places
    llm.close()
    llm.close()
    assert llm.answer([{"role": "user", "content": "again"}], Departure).place == "again"


def test_both_questions_share_the_time_that_the_settings_allow(ask: Ask) -> None:
    with pytest.raises(LlmDown, match="timeout_seconds"):
        ask(chat("no"), Reply(hold=True), seconds=0.4)


def test_a_text_is_asked_for_as_it_is_and_comes_without_thoughts(server: ScriptedServer, llm_at: MakeLlm) -> None:
    server.say(chat("<think>At {8}?</think>\n\n## At eight\n"))
    assert llm_at().say(QUESTION) == "## At eight"
    (asked,) = server.asked
    assert asked.body == {"model": "small", "messages": QUESTION}


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        (chat(" \n"), "no answer at all"),
        (chat(None), "no answer at all"),
        (as_json({"choices": []}), "no answer at all"),
        (chat("<think>Hm.</think>"), "no answer at all"),
        (chat("At", finish_reason="length"), "cut off"),
        (chat(None, refusal="No."), "refused"),
    ],
)
def test_a_text_that_is_none_is_said_to_be(server: ScriptedServer, llm_at: MakeLlm, reply: Reply, fault: str) -> None:
    server.say(reply)
    with pytest.raises(LlmNonsense, match=fault):
        llm_at().say(QUESTION)
    assert len(server.asked) == 1


@pytest.mark.parametrize("reply", [failure(400), failure(401), as_json([]), Reply(hold=True)])
def test_a_server_that_gives_no_text_is_down(server: ScriptedServer, llm_at: MakeLlm, reply: Reply) -> None:
    server.say(reply)
    with pytest.raises(LlmDown):
        llm_at().say(QUESTION, seconds=0.3 if reply.hold else 30.0)
