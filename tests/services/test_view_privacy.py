"""What a session may not see has no effect on any answer that it gets."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from notebook_sync import Notebook, Session
from tests.conftest import Copies
from tests.services import private_world as world
from tests.services.private_world import CANARY, NONSENSE, OUTSIDERS


@pytest.fixture
def worlds(copies: Copies, tmp_path: Path) -> Iterator[tuple[Notebook, Notebook]]:
    with world.both(copies, tmp_path) as pair:
        yield pair


@pytest.mark.parametrize("session", OUTSIDERS, ids=lambda one: f"{one.kind}-{one.agent}")
def test_no_answer_depends_on_what_the_session_must_not_see(
    worlds: tuple[Notebook, Notebook], session: Session
) -> None:
    there, _ = worlds
    differing = []
    for asked in world.plain_questions():
        answer, other = (world.answer(notebook, asked, session) for notebook in worlds)
        if CANARY in answer or answer != other:
            differing.append((asked[0].words, asked[1], answer, other))
    for asked in world.guesses():
        found = world.worded(world.answer(there, asked, session), CANARY)
        missed = world.worded(world.answer(there, world.disguised(asked), session), NONSENSE)
        if found != missed:
            differing.append((asked[0].words, asked[1], found, missed))
    assert not differing
