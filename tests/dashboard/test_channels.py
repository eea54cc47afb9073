"""The channels of agents in a browser: whose there are, and the private notes in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from unittest.mock import patch

import pytest

from notebook_sync import Notebook, Session
from notebook_sync.errors import BackendDown
from notebook_sync.operations.channels import AgentChannel
from notebook_sync.operations.registry import Results
from notebook_sync.surfaces.dashboard.memory import channels_page
from tests.dashboard.browsing import Browsing, browsing, text_of

SCRIBE, PILOT = Session.task("scribe"), Session.task("pilot")
CHANNELS = "/memory/channels"
DOWN = BackendDown("MongoDB at localhost:27017", "connection refused")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A notebook with channels, which no test changes."""
    root = tmp_path_factory.mktemp("channels") / "notebook"
    Notebook.init(root, git=False)
    with Notebook.open(root) as notebook:
        notebook.channels.write("Odile answers on Friday", SCRIBE, topic="<i>times</i>", tags=["office"])
        notebook.channels.write("The pier has no ring", SCRIBE, project="pier-3", session_id="c-7")
        notebook.channels.write("Fog until noon", PILOT, topic="weather")
        (root / "channels/pilot/global/channel.toml").write_text('[members]\nscribe = ["read"]\n')
        outside = root / "channels/pilot/global/2026-02-18T103000Z-oars.md"
        outside.write_text("---\ntype: note\ntopic: oars\nprovenance: external\ntitle: oars\n---\nThe oars are wet.\n")
        notebook.sync()
    return root


@pytest.fixture(scope="module")
def shared(kept: Path) -> Iterator[Browsing]:
    with browsing(kept) as found:
        yield found


def titles_in(page: str) -> list[str]:
    return [unescape(title) for title in re.findall(r"<strong>(.*?)</strong>", page)]


def test_channels_are_told_with_their_notes_and_members(shared: Browsing) -> None:
    said = text_of(shared.get(CHANNELS).text)
    assert "pilot , everything everything 2 scribe (read)" in said
    assert "scribe , everything everything 1 nobody" in said
    assert "scribe , pier-3 pier-3 1 nobody" in said


def test_the_latest_notes_of_all_agents_are_shown(shared: Browsing) -> None:
    page = shared.get(CHANNELS).text
    assert titles_in(page) == ["oars", "Fog until noon", "The pier has no ring", "Odile answers on Friday"]
    assert 'href="/notes/channels/pilot/global/2026-02-18T103000Z-oars.md"' in page
    assert "pilot oars from outside" in text_of(page)
    assert "scribe for pier-3" in text_of(page)
    assert "conversation c-7" in text_of(page)
    assert "scribe <i>times</i>" in text_of(page)
    assert "<i>" not in page
    assert "style=" not in page


@pytest.mark.parametrize(
    ("asked", "titles"),
    [
        ("agent=pilot", ["Fog until noon", "oars"]),
        ("agent=scribe&project=global", ["Odile answers on Friday"]),
        ("topic=weather", ["Fog until noon"]),
        ("session_id=c-7", ["The pier has no ring"]),
        ("tags=%23office,coins", ["Odile answers on Friday"]),
        ("query=ring&profile=similarity&agent=scribe&project=pier-3", ["The pier has no ring"]),
        ("profile=recent&topic=oars", ["oars"]),
        ("agent=nobody", []),
        ("query=%F0%9F%9A%A2&tags=none", []),
    ],
)
def test_notes_are_narrowed(shared: Browsing, asked: str, titles: list[str]) -> None:
    page = shared.get(f"{CHANNELS}?{asked}")
    assert page.status_code == 200
    assert sorted(titles_in(page.text)) == titles
    assert "Show all" in text_of(page.text) or "No note fits" in text_of(page.text)


def test_a_channel_leads_to_its_notes(shared: Browsing) -> None:
    addresses = re.findall(r'<th scope="row"><a href="([^"]+)"', shared.get(f"{CHANNELS}?agent=scribe").text)
    found = [titles_in(shared.get(unescape(address)).text) for address in addresses]
    assert [sorted(each)[-1] for each in found] == ["Odile answers on Friday", "The pier has no ring"]


def test_more_notes_are_shown_by_a_link_up_to_a_limit(shared: Browsing) -> None:
    page = shared.get(f"{CHANNELS}?count=2").text
    more = re.search(r'rel="next" href="([^"]+)"', page)
    assert more
    assert len(titles_in(page)) == 2
    assert len(titles_in(shared.get(unescape(more[1])).text)) == 4
    assert shared.get(f"{CHANNELS}?count={channels_page.MOST + 1}").status_code == 422


@pytest.mark.parametrize("asked", ["agent=../x", "project=a/b", "profile=loud", "agent=%00"])
def test_what_names_nothing_is_said_beside_the_channels(shared: Browsing, asked: str) -> None:
    page = shared.get(f"{CHANNELS}?{asked}")
    assert page.status_code == 422
    assert 'role="alert"' in page.text
    assert 'name="agent"' in page.text


def test_a_mirror_that_goes_away_costs_its_part_of_the_page(shared: Browsing) -> None:
    notebook = shared.served.app.state.notebook
    with patch.object(notebook.channels, "recent", side_effect=DOWN):
        page = shared.get(CHANNELS)
        assert page.status_code == 200
        assert "MongoDB at localhost:27017 does not answer" in text_of(page.text)
        assert "pier-3" in text_of(page.text)


def test_a_mirror_that_is_away_is_waited_for_once(shared: Browsing) -> None:
    notebook = shared.served.app.state.notebook
    with (
        patch.object(notebook.channels, "list", side_effect=DOWN) as channels,
        patch.object(notebook.channels, "recent", side_effect=DOWN) as notes,
    ):
        page = shared.get(CHANNELS)
    assert page.status_code == 200
    assert text_of(page.text).count("MongoDB at localhost:27017 does not answer") == 2
    assert channels.call_count + notes.call_count == 1


def test_more_channels_than_fit_are_counted(shared: Browsing) -> None:
    notebook = shared.served.app.state.notebook
    found = Results(results=[AgentChannel("notes:scribe:global", "notes-scribe", "scribe", "global", 1, {})])
    found.results *= channels_page.MOST + 5
    with patch.object(notebook.channels, "list", return_value=found):
        page = shared.get(CHANNELS).text
    assert f"{channels_page.MOST} of {channels_page.MOST + 5} channels" in text_of(page)


def test_without_channels_the_page_says_how_one_begins(browser: Browsing) -> None:
    said = text_of(browser.get(CHANNELS).text)
    assert "No agent keeps notes yet" in said
    assert "notebook-sync note write --agent scribe" in said
