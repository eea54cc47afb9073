"""A language model as the one who reasons about a brief."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest

from notebook_sync.context.reasoner import LlmReasoner, Reasoner
from notebook_sync.errors import LlmNotConfigured, SynthesisDown
from notebook_sync.llm import Llm
from notebook_sync.settings import LlmSettings
from tests.scripted_llm import Reply, ScriptedServer, chat, failure

Reasoning = Callable[..., Reasoner]


@pytest.fixture
def reasoner(server: ScriptedServer) -> Iterator[Reasoning]:
    with contextlib.ExitStack() as made:

        def make(seconds: float = 30.0, model: str = "small") -> Reasoner:
            llm = Llm(LlmSettings(server.url, model, "", 60.0), {})
            return LlmReasoner(made.enter_context(contextlib.closing(llm)), seconds)

        yield make


def test_it_is_asked_the_question_and_gives_the_answer(server: ScriptedServer, reasoner: Reasoning) -> None:
    server.say(chat("<think>Hm.</think>## Executive Summary\n"))
    assert reasoner().ask("Which berth?") == "## Executive Summary"
    assert server.asked[0].body["messages"] == [{"role": "user", "content": "Which berth?"}]


@pytest.mark.parametrize(
    ("reply", "seconds", "reason"),
    [
        (failure(401), 30.0, "refuses"),
        (chat(""), 30.0, "no answer at all"),
        (chat("## Exec", finish_reason="length"), 30.0, "cut off"),
        (Reply(hold=True), 0.3, r"within 0\.3 seconds; .* timeout_seconds below \[tier2\]"),
    ],
)
def test_a_model_that_does_not_answer_is_away(
    server: ScriptedServer, reasoner: Reasoning, reply: Reply, seconds: float, reason: str
) -> None:
    server.say(reply)
    with pytest.raises(SynthesisDown, match=reason):
        reasoner(seconds).ask("Which berth?")


def test_without_a_model_nobody_can_be_asked(server: ScriptedServer, reasoner: Reasoning) -> None:
    with pytest.raises(LlmNotConfigured):
        reasoner(model="").require()
    assert server.asked == []
