"""Agents in several processes change one note at the same time, while a watch mirrors it too."""

from __future__ import annotations

import json

import pytest

from notebook_sync import Notebook, Session
from notebook_sync.files.note import HISTORY_LIMIT
from tests.integration.world import World

WRITERS = 8
AGENTS = [f"pilot-{number}" for number in range(WRITERS)]
TIMES = 15
OFTEN = 500


@pytest.fixture(params=["embedded", "servers"])
def harbour(request: pytest.FixtureRequest, embedded: World) -> World:
    """A notebook without git, embedded and on MongoDB and Redis."""
    settings = embedded.root / "notebook.toml"
    patient = settings.read_text().replace("timeout_seconds = 1\n", "timeout_seconds = 60\n")
    settings.write_text(patient + '[git]\ncommit = "off"\n')
    if request.param == "embedded":
        return embedded
    return embedded.on(request.getfixturevalue("mongodb_url"), request.getfixturevalue("redis_url"))


def write_at_once(harbour: World, times: int) -> dict[str, list[int]]:
    """Every agent gives one note new texts, in a process of its own: by agent, the versions that it was told."""
    with harbour.notebook() as notebook:
        note_id = notebook.create("pages", "Log", "# Log\n", Session.owner()).notebook_id
    with harbour.watching():
        writers = [harbour.live("update", note_id, agent, str(times)) for agent in AGENTS]
        told = [writer.communicate(timeout=3000)[1] for writer in writers]
        assert "".join(told) == ""
        assert [writer.returncode for writer in writers] == [0] * WRITERS
    return {agent: json.loads((harbour.root.parent / f"{agent}.json").read_text()) for agent in AGENTS}


def assert_exact(harbour: World, versions: dict[str, list[int]]) -> None:
    """Each write is one version, told to who made it; the history has the last of them in order, and whose they are."""
    last = 1 + sum(map(len, versions.values()))
    authors = {version: agent for agent, own in versions.items() for version in own}
    assert sorted(authors) == list(range(2, last + 1))
    assert all(own == sorted(own) for own in versions.values())
    (document,) = (one for one in harbour.whole().values() if one["path"] == "pages/log.md")
    history = document["history"]
    assert document["metadata"]["version"] == last
    assert [crumb["version"] for crumb in history] == list(range(last - HISTORY_LIMIT + 1, last + 1))
    told = [crumb["changed_by"] for crumb in history]
    assert told == [f"agent:{authors[crumb['version']]}" for crumb in history]
    assert [crumb["timestamp"] for crumb in history] == sorted(crumb["timestamp"] for crumb in history)
    harbour.converges()


def test_every_update_of_eight_processes_is_a_version_of_its_own(harbour: World) -> None:
    assert_exact(harbour, write_at_once(harbour, TIMES))


def test_each_update_is_a_version_of_its_own_where_each_is_a_commit_too(embedded: World) -> None:
    settings = embedded.root / "notebook.toml"
    settings.write_text(settings.read_text().replace("timeout_seconds = 1\n", "timeout_seconds = 60\n"))
    Notebook.init(embedded.root)
    versions = write_at_once(embedded, 7)
    assert_exact(embedded, versions)
    updates = embedded.git("log", "--format=%s", "--", "pages/log.md").splitlines()
    assert len(updates) == 1 + sum(map(len, versions.values()))


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_every_one_of_four_thousand_updates_is_a_version_of_its_own(harbour: World) -> None:
    assert_exact(harbour, write_at_once(harbour, OFTEN))
