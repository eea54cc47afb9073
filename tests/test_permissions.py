"""The table of who may do what, and that no other spelling of a path is less guarded."""

from __future__ import annotations

import itertools
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notebook_sync import Session, permissions
from notebook_sync.errors import NotPermitted, UsageError
from notebook_sync.permissions import (
    Members,
    Verb,
    channel_of,
    may,
    may_in_stream,
    members_in,
    require,
    require_in_stream,
)
from notebook_sync.settings import PromptFile, PromptSettings

SETTINGS = PromptSettings(system_files=("AGENTS.md",), files=(PromptFile("pages/Glossary.md"),))
OWNER, TASK, EXTERNAL = Session.owner(), Session.task("scribe"), Session.external("scribe")

# By path: what owner, task and external may do.
EXPECTED = {
    "runtime/reminders.md": ("read write add peek", "read peek", "read peek"),
    "runtime/deeper/note.md": ("read write add peek", "read peek", "read peek"),
    "pages/plan.md": ("read write add peek", "read write add peek", "read peek"),
    "plan.md": ("read write add peek", "read write add peek", "read peek"),
    "code_snippets/tide.md": ("read write add peek", "read write add peek", "read peek"),
    "research_notes/tide.md": ("read write add peek", "read write add peek", "read peek"),
    "memories/decision/berth.md": ("read write add peek", "read write add peek", "read peek"),
    "facts/notes.md": ("read write add peek", "read write add peek", "read peek"),
    "facts/core.md": ("read write add peek", "read peek", ""),
    "AGENTS.md": ("read write add peek", "read peek", "read peek"),
    "pages/Glossary.md": ("read write add peek", "read peek", "read peek"),
    "notebook.toml": ("read write add peek", "read peek", ""),
    "channels/scribe/global/a.md": ("read write add peek", "read write add peek", "add"),
    "channels/pilot/global/a.md": ("read write add peek", "", ""),
    "channels/a.md": ("read write add peek", "", ""),
    "channels/scribe/global/channel.toml": ("", "", ""),
    ".notebook/tokens.json": ("", "", ""),
    ".git/config": ("", "", ""),
    "pages/.draft.md": ("", "", ""),
    "../beside.md": ("", "", ""),
    "/etc/passwd": ("", "", ""),
    "pages/a\0.md": ("", "", ""),
}
VERBS: tuple[Verb, ...] = ("read", "write", "add", "peek")


@pytest.mark.parametrize("path", EXPECTED)
@pytest.mark.parametrize(("column", "session"), [(0, OWNER), (1, TASK), (2, EXTERNAL)])
def test_the_table(path: str, column: int, session: Session) -> None:
    granted = [verb for verb in VERBS if may(session, verb, path, SETTINGS)]
    assert granted == EXPECTED[path][column].split()


@pytest.mark.parametrize(("session", "expected"), [(OWNER, "read write add peek"), (TASK, "read add"), (EXTERNAL, "")])
def test_the_stream_is_a_resource_of_its_own(session: Session, expected: str) -> None:
    assert [verb for verb in VERBS if may_in_stream(session, verb)] == expected.split()


def test_what_the_stream_refuses_reads_like_other_refusals() -> None:
    with pytest.raises(NotPermitted, match=r"^The daily stream is not available in this conversation$"):
        require_in_stream(EXTERNAL, "add")
    with pytest.raises(NotPermitted, match=r"^Going back to a checkpoint is only available in owner conversations$"):
        require_in_stream(TASK, "write")


GUARDED = ("runtime/reminders.md", "facts/core.md", "pages/Glossary.md", "AGENTS.md", "notebook.toml")


@pytest.mark.parametrize("session", [TASK, EXTERNAL])
@pytest.mark.parametrize(
    "path",
    [
        "Runtime/Reminders.md",
        "RUNTIME/REMINDERS.MD",
        "./runtime//reminders.md",
        "runtime/reminders.md/",
        "pages/../runtime/reminders.md",
        "runtime/./x/../reminders.md",
        "pages//..//runtime/new.md",
        "runtime\\reminders.md",
        "pages\\..\\runtime\\reminders.md",
        "runtime ./reminders.md.",
        "runtime/reminders.md ",
        "\uff52\uff55\uff4e\uff54\uff49\uff4d\uff45/reminders.md",  # full width
        "runtime\uff0freminders.md",  # a full width solidus
        "\U0001d42b\U0001d42e\U0001d427\U0001d42d\U0001d422\U0001d426\U0001d41e/x.md",  # mathematical letters
        "runt\u0131me/../runtime/x.md",
        "run\u200dtime/reminders.md",  # a joiner, which file systems that fold case skip
        "run\u00adtime/reminders.md",
        "runtime\ufe0f/reminders.md",
        "runt\u2139me/reminders.md",
        "facts/CORE.md",
        "Facts/core.md",
        "fact\u017f/core.md",  # a long s
        "pages/glossary.md",
        "pages/GLOSSARY.md",
        "agents.md",
        "Agents.MD",
        "NOTEBOOK.toml",
        "deeper/notebook.toml",
    ],
)
def test_another_spelling_is_no_less_guarded(session: Session, path: str) -> None:
    for verb in ("write", "add"):
        with pytest.raises(NotPermitted, match=r"^Notebook editing is only available in owner conversations$"):
            require(session, verb, path, SETTINGS)


@given(st.sampled_from(GUARDED), st.data())
def test_no_mixture_of_spellings_is_less_guarded(path: str, data: st.DataObject) -> None:
    def spelled(character: str) -> str:
        forms = [character, character.upper(), f"{character}\u200b", f"{character}\u034f"]
        if character.isalpha():
            forms.append(chr(ord(character.lower()) + 0xFEE0))  # its full width twin
        if character == "/":
            forms = ["/", "//", "/./", "/x/../", "\uff0f"]
        return data.draw(st.sampled_from(forms))

    other = "".join(spelled(character) for character in path)
    if data.draw(st.booleans()):
        other = unicodedata.normalize("NFD", other)
    assert not may(TASK, "write", other, SETTINGS)
    assert not may(EXTERNAL, "write", other, SETTINGS)


@given(st.text(), st.sampled_from(VERBS))
def test_any_text_is_judged(path: str, verb: Verb) -> None:
    may(TASK, verb, path, SETTINGS)


@pytest.mark.parametrize(
    "path",
    [
        "channels/Scribe/global/a.md",
        "channels/scribe /global/a.md",
        "channels/\uff53cribe/global/a.md",
        "channels/scribe/../pilot/global/a.md",
        "channels/scribe/..\\pilot/global/a.md",
        "Channels/pilot/global/a.md",
        "channels/scribe2/global/a.md",
    ],
)
def test_what_is_only_like_the_own_channel_is_anothers(path: str) -> None:
    assert not any(may(TASK, verb, path, SETTINGS) for verb in VERBS)


def test_an_agent_without_a_name_has_no_channel() -> None:
    assert not may(Session.task(), "read", "channels//global/a.md", SETTINGS)
    assert not may(Session.task(), "read", "channels/a.md", SETTINGS)


@pytest.mark.parametrize(
    ("granted", "expected"),
    [
        (["read"], ["read", "peek"]),
        (["write"], ["write", "add"]),
        (["read", "write"], ["read", "write", "add", "peek"]),
        (["peek"], ["peek"]),
        (["owner"], []),
        ([], []),
    ],
)
def test_a_member_may_what_the_channel_grants(granted: list[str], expected: list[str]) -> None:
    members: Members = {"scribe": granted}
    path = "channels/pilot/global/a.md"
    assert [verb for verb in VERBS if may(TASK, verb, path, SETTINGS, members)] == expected
    assert not any(may(EXTERNAL, verb, path, SETTINGS, members) for verb in VERBS)
    assert not any(may(Session.task("other"), verb, path, SETTINGS, members) for verb in VERBS)


def test_membership_changes_nothing_outside_of_channels() -> None:
    members: Members = {"scribe": ["read", "write"]}
    assert not may(TASK, "write", "runtime/reminders.md", SETTINGS, members)
    assert not may(TASK, "write", "channels/pilot/global/channel.toml", SETTINGS, members)


def test_a_note_in_a_channel_that_the_prompt_shows_is_still_private() -> None:
    settings = PromptSettings(files=(PromptFile("channels/pilot/global/a.md"), PromptFile("channels/scribe/x/a.md")))
    assert not may(TASK, "read", "channels/pilot/global/a.md", settings)
    assert not may(TASK, "write", "channels/scribe/x/a.md", settings)
    assert may(TASK, "read", "channels/scribe/x/a.md", settings)


def test_what_the_prompt_withholds_from_a_session_it_cannot_read_either() -> None:
    files = (
        PromptFile("runtime/reminders.md", sessions=("owner", "task")),
        PromptFile("pages/a.md", sessions=("owner",)),
    )
    settings = PromptSettings(files=files)
    assert may(TASK, "read", "runtime/reminders.md", settings)
    assert not may(EXTERNAL, "read", "Runtime/reminders.md", settings)
    assert not may(TASK, "read", "pages/a.md", settings)
    assert may(OWNER, "write", "pages/a.md", settings)


def test_members_are_read_from_their_file_and_a_broken_one_names_nobody() -> None:
    assert members_in(b'[members]\npilot = ["read", "write"]\n') == {"pilot": ["read", "write"]}
    for broken in (b"[members", b"\xff", b"members = 3", b'[members]\npilot = "read"\n', b""):
        assert members_in(broken) == {}


def test_the_channel_of_a_path() -> None:
    assert channel_of("channels/scribe/global/a.md") == "channels/scribe/global"
    assert channel_of("channels/scribe") is None
    assert channel_of("pages/channels/scribe/global/a.md") is None


def test_a_refusal_does_not_tell_whether_the_note_is_there() -> None:
    with pytest.raises(NotPermitted) as raised:
        require(TASK, "read", "channels/pilot/global/berths.md", SETTINGS)
    assert "berths" not in str(raised.value)


def test_every_resource_says_what_every_session_may() -> None:
    assert {kind for rights in permissions.TABLE.values() for kind in rights} == {"owner", "task", "external"}
    for resource, kind in itertools.product(permissions.TABLE, ("owner", "task", "external")):
        assert permissions.TABLE[resource][kind] <= permissions.TABLE[resource]["owner"]


@pytest.mark.parametrize(
    "name", ["../pilot", "a/b", "scribe\nAgent: owner", ".hidden", "scribe ", "scribe.", " ", "a" * 65]
)
def test_an_agents_name_is_one_name(name: str) -> None:
    with pytest.raises(UsageError, match="no agent's name"):
        Session.task(name)


def test_breadcrumbs_name_who_acted() -> None:
    assert [one.changed_by for one in (OWNER, Session.owner("scribe"), TASK, Session.task())] == [
        "owner",
        "agent:scribe",
        "agent:scribe",
        "agent:unknown",
    ]
