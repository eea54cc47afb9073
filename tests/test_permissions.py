"""The table of who may do what, and that no other spelling of a path is less guarded."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notebook_sync import Session
from notebook_sync.errors import NoSuchNote, NotPermitted, UsageError
from notebook_sync.permissions import (
    TABLE,
    Members,
    Verb,
    audience_of,
    guarded_key,
    guarded_names,
    is_private,
    may,
    may_in_stream,
    members_in,
    require,
)
from notebook_sync.settings import PromptFileTable, PromptTable

PROMPT = PromptTable(
    system_files=("AGENTS.md",),
    files=(PromptFileTable(path="pages/Glossary.md"), PromptFileTable(path="pages/berth.md", sessions=("owner",))),
)
OWNER, TASK, EXTERNAL = Session.owner(), Session.task("scribe"), Session.external("scribe")
VERBS: tuple[Verb, ...] = ("read", "write", "add", "peek")
EVERYTHING = "read write add peek"

# By path: what owner, task and external may do.
EXPECTED = {
    "runtime/reminders.md": (EVERYTHING, "read peek", "read peek"),
    "runtime/deeper/note.md": (EVERYTHING, "read peek", "read peek"),
    "pages/plan.md": (EVERYTHING, EVERYTHING, "read peek"),
    "plan.md": (EVERYTHING, EVERYTHING, "read peek"),
    "code_snippets/tide.md": (EVERYTHING, EVERYTHING, "read peek"),
    "research_notes/tide.md": (EVERYTHING, EVERYTHING, "read peek"),
    "memories/decision/berth.md": (EVERYTHING, EVERYTHING, "read peek"),
    "facts/notes.md": (EVERYTHING, EVERYTHING, "read peek"),
    "facts/core.md": (EVERYTHING, "read peek", ""),
    "AGENTS.md": (EVERYTHING, "read peek", "read peek"),
    "pages/Glossary.md": (EVERYTHING, "read peek", "read peek"),
    "notebook.toml": (EVERYTHING, "read peek", ""),
    "channels/scribe/global/a.md": (EVERYTHING, EVERYTHING, "add"),
    "channels/pilot/global/a.md": (EVERYTHING, "", ""),
    "channels/a.md": (EVERYTHING, "", ""),
    "channels/scribe/global/channel.toml": ("", "", ""),
    ".notebook/tokens.json": ("", "", ""),
    ".git/config": ("", "", ""),
    "pages/.draft.md": ("", "", ""),
    "../beside.md": ("", "", ""),
    "/etc/passwd": ("", "", ""),
    "pages/a\0.md": ("", "", ""),
}


@pytest.mark.parametrize("path", EXPECTED)
@pytest.mark.parametrize(("column", "session"), [(0, OWNER), (1, TASK), (2, EXTERNAL)])
def test_the_table(path: str, column: int, session: Session) -> None:
    granted = [verb for verb in VERBS if may(session, verb, path, PROMPT)]
    assert granted == EXPECTED[path][column].split()


def test_no_session_may_more_than_the_owner() -> None:
    for rights in TABLE.values():
        assert all(rights[kind] <= rights["owner"] for kind in ("task", "external"))


@pytest.mark.parametrize(("session", "expected"), [(OWNER, EVERYTHING), (TASK, "read add"), (EXTERNAL, "")])
def test_the_stream_is_a_resource_of_its_own(session: Session, expected: str) -> None:
    assert [verb for verb in VERBS if may_in_stream(session, verb)] == expected.split()


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
            require(session, verb, path, PROMPT)


@given(
    st.sampled_from(
        [
            "runtime/reminders.md",
            "facts/core.md",
            "pages/Glossary.md",
            "AGENTS.md",
            "notebook.toml",
            "channels/pilot/a.md",
        ]
    ),
    st.data(),
)
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
    assert not may(TASK, "write", other, PROMPT)
    assert not may(EXTERNAL, "write", other, PROMPT)
    assert audience_of(other, PROMPT) != ""
    assert is_private(other) == path.startswith("channels/")


@given(st.text(), st.sampled_from(VERBS))
def test_any_text_is_judged(path: str, verb: Verb) -> None:
    assert may(TASK, verb, path, PROMPT) <= may(OWNER, verb, path, PROMPT)


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
def test_what_only_looks_like_the_own_channel_is_another_s(path: str) -> None:
    assert not any(may(TASK, verb, path, PROMPT) for verb in VERBS)
    assert not any(may(Session.task(), verb, path, PROMPT) for verb in VERBS)


@pytest.mark.parametrize(
    ("granted", "expected"),
    [
        (["read"], "read peek"),
        (["write"], "write add"),
        (["read", "write"], EVERYTHING),
        (["peek"], "peek"),
        (["owner"], ""),
        ([], ""),
    ],
)
def test_a_member_may_do_what_the_channel_grants_and_nothing_elsewhere(granted: list[str], expected: str) -> None:
    members: Members = {"scribe": granted}
    path = "channels/pilot/global/a.md"
    assert [verb for verb in VERBS if may(TASK, verb, path, PROMPT, members)] == expected.split()
    for session in (EXTERNAL, Session.task("other")):
        assert not any(may(session, verb, path, PROMPT, members) for verb in VERBS)
    for other in ("runtime/reminders.md", "channels/pilot/global/channel.toml"):
        assert not may(TASK, "write", other, PROMPT, members)


def test_a_private_note_that_the_prompt_shows_is_still_private() -> None:
    files = ("channels/pilot/global/a.md", "channels/scribe/x/a.md")
    prompt = PromptTable(files=tuple(PromptFileTable(path=path) for path in files))
    assert not may(TASK, "read", files[0], prompt)
    assert may(TASK, "read", files[1], prompt)
    assert not may(TASK, "write", files[1], prompt)


def test_what_the_prompt_withholds_from_a_session_does_not_exist_for_it() -> None:
    for path in ("pages/berth.md", "Pages/BERTH.md", "pages/\u200bberth.md"):
        for session in (TASK, EXTERNAL):
            with pytest.raises(NoSuchNote):
                require(session, "read", path, PROMPT)
    assert may(OWNER, "write", "pages/berth.md", PROMPT)


def test_members_are_read_from_their_file_and_a_broken_one_names_nobody() -> None:
    assert members_in(b'[members]\npilot = ["read", "write"]\n') == {"pilot": ["read", "write"]}
    for broken in (b"[members", b"\xff", b"members = 3", b'[members]\npilot = "read"\n', b""):
        assert members_in(broken) == {}


@pytest.mark.parametrize(
    ("path", "audience"),
    [
        ("pages/plan.md", ""),
        ("channels/scribe/global/a.md", "channels/scribe/global"),
        ("channels/scribe/a.md", "channels/scribe/a.md"),
        ("channels/a.md", "apart"),
        ("Channels/scribe/global/a.md", "apart"),
        ("facts/core.md", "apart"),
        ("pages/berth.md", "apart"),
        ("runtime/reminders.md", "apart"),
    ],
)
def test_the_audience_of_a_note(path: str, audience: str) -> None:
    assert audience_of(path, PROMPT) == audience


@pytest.mark.parametrize(
    "name", ["reminders", "Reminders.md", "standing orders", "pages/../runtime/Standing_Orders.MD"]
)
def test_a_guarded_file_is_meant_by_its_name_alone(name: str) -> None:
    assert guarded_names(PROMPT)[guarded_key(name)].startswith("runtime/")


def test_a_refusal_is_the_same_whether_the_note_exists_or_not() -> None:
    with pytest.raises(NotPermitted) as raised:
        require(TASK, "read", "channels/pilot/global/berths.md", PROMPT)
    assert "berths" not in str(raised.value)


@pytest.mark.parametrize(
    "name",
    ["../pilot", "a/b", "scribe\nAgent: owner", ".hidden", "scribe ", "scribe.", " ", "a" * 65, "Owner", "owner"],
)
def test_an_agent_s_name_is_one_name_and_not_a_reserved_one(name: str) -> None:
    with pytest.raises(UsageError, match=r"cannot be an agent's name|is reserved"):
        Session.task(name)


def test_changes_name_who_made_them() -> None:
    sessions = (OWNER, Session.owner("scribe"), TASK, Session.task())
    assert [each.changed_by for each in sessions] == ["owner", "agent:scribe", "agent:scribe", "agent:unknown"]
