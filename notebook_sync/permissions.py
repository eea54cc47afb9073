"""Who may do what: the table of sessions, resources and verbs, and which resource a path is.

Decides from names alone and reads no file. A path is judged by what any file system might take it for, so that no
other spelling of a guarded file is less guarded.
"""

from __future__ import annotations

import posixpath
import tomllib
import unicodedata
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Literal

from notebook_sync.errors import NoSuchNote, NotPermitted, UnsafePath
from notebook_sync.model import CORE_FACTS, RUNTIME_FILES, SETTINGS_FILE
from notebook_sync.sessions import KINDS, Kind, Session
from notebook_sync.settings import PromptTable

# add: create a note that does not exist. peek: search an agent's private notes by the tool for it.
Verb = Literal["read", "write", "add", "peek"]
Resource = Literal[
    "runtime",
    "in the prompt",
    "withheld",
    "core facts",
    "settings",
    "notes",
    "own channel",
    "another's channel",
    "hidden",
    "outside",
    "stream",
]
Members = Mapping[str, Collection[str]]

CHANNEL_FILE = "channel.toml"

_ALL = frozenset[Verb](("read", "write", "add", "peek"))
_READ = frozenset[Verb](("read", "peek"))
_NOTHING = frozenset[Verb]()

# A file of the prompt is judged twice: as what it is, and as a part of the prompt.
TABLE: Mapping[Resource, Mapping[Kind, frozenset[Verb]]] = {
    "runtime": {"owner": _ALL, "task": _READ, "external": _READ},
    "in the prompt": {"owner": _ALL, "task": _READ, "external": _READ},
    # [[prompt.files]] shows it to other sessions only.
    "withheld": {"owner": _ALL, "task": _NOTHING, "external": _NOTHING},
    "core facts": {"owner": _ALL, "task": _READ, "external": _NOTHING},
    "settings": {"owner": _ALL, "task": _READ, "external": _NOTHING},
    "notes": {"owner": _ALL, "task": _ALL, "external": _READ},
    # An external session may add a note, marked as external, and changes none that exists.
    "own channel": {"owner": _ALL, "task": _ALL, "external": frozenset[Verb](("add",))},
    "another's channel": {"owner": _ALL, "task": _NOTHING, "external": _NOTHING},  # task: what its membership grants
    # Tokens, git's files, members of a channel: changed by commands and by hand, never by a tool.
    "hidden": {"owner": _NOTHING, "task": _NOTHING, "external": _NOTHING},
    "outside": {"owner": _NOTHING, "task": _NOTHING, "external": _NOTHING},
    # The daily stream, long-term memory and checkpoints, which have no path. write: roll back to a checkpoint.
    "stream": {"owner": _ALL, "task": frozenset[Verb](("read", "add")), "external": _NOTHING},
}
_MEMBERSHIP: Mapping[str, frozenset[Verb]] = {
    "read": _READ,
    "write": frozenset[Verb](("write", "add")),
    "peek": frozenset[Verb](("peek",)),
}
# The first that fits, by resource and verb.
_REFUSALS: tuple[tuple[Collection[Resource], frozenset[Verb], str], ...] = (
    ({"outside", "hidden"}, _ALL, "Only notes in the notebook are available to tools"),
    ({"another's channel"}, _ALL, "The private notes of another agent are not available in this conversation"),
    (TABLE, _READ, "This part of the notebook is not available in this conversation"),
    (TABLE, _ALL, "Notebook editing is only available in owner conversations"),
)
NO_MEMBERS: Members = {}
_STRANGER = Session.external()


def may(session: Session, verb: Verb, path: str, prompt: PromptTable, members: Members = NO_MEMBERS) -> bool:
    """Whether `session` may do this to the note at `path`. `members` are those of its channel."""
    return all(verb in _rights(session, each, members) for each in resources_of(path, session, prompt))


def require(session: Session, verb: Verb, path: str, prompt: PromptTable, members: Members = NO_MEMBERS) -> None:
    """Raises NotPermitted where `may` is False. Of what the settings withhold from the session it must not learn more
    than that the name is taken: NoSuchNote for reading it, UnsafePath for adding it."""
    resources = resources_of(path, session, prompt)
    refusing = {each for each in resources if verb not in _rights(session, each, members)}
    if refusing == {"withheld"} and verb == "read":
        raise NoSuchNote(path)
    if "withheld" in refusing and verb == "add":
        raise UnsafePath(path, "already exists")
    if refusing:
        # What a person or a model reads is the same whether the note exists or not.
        refusals = (message for what, verbs, message in _REFUSALS if verb in verbs and resources.intersection(what))
        raise NotPermitted(next(refusals))


def may_in_stream(session: Session, verb: Verb) -> bool:
    """Whether `session` may read, add to or roll back the daily stream."""
    return verb in TABLE["stream"][session.kind]


def resources_of(path: str, session: Session, prompt: PromptTable) -> frozenset[Resource]:
    """What the path is to the session; one that is several things grants only what all of them do."""
    parts = plain_parts(path)
    if parts is None:
        return frozenset({"outside"})
    found: set[Resource] = {_resource_of(parts, path, session.agent)}
    shown_to = _prompt_files(prompt).get(parts)
    if shown_to is not None:
        found.add("in the prompt")
        if session.kind not in shown_to:
            found.add("withheld")
    return frozenset(found)


def plain_parts(path: str) -> tuple[str, ...] | None:
    """The names on the way to `path` as the most forgiving file system compares them; None for a way out.

    Linux has folders that fold case and Unicode forms and skip what has no glyph, shares drop dots and spaces at the
    end of a name, and other systems read `\\` as `/`.
    """
    plain = fold_name(path).replace("\\", "/")
    parts = [part.rstrip(". ") if part.strip(".") else part for part in plain.split("/")]
    if not {"", ".", ".."}.isdisjoint(parts):
        parts = posixpath.normpath("/".join(parts)).split("/")
    if plain.startswith("/") or "\0" in path or parts[0] == "..":
        return None
    return () if parts == ["."] else tuple(parts)


def guarded_paths(prompt: PromptTable) -> tuple[str, ...]:
    """The paths of the owner's files: the runtime files, and all others that the prompt shows."""
    return (*RUNTIME_FILES, *prompt_paths(prompt))


def guarded_names(prompt: PromptTable) -> Mapping[str, str]:
    """By its folded file name without `.md`, spaces written as hyphens: the path of each guarded file.

    `reminders`, `Reminders.md` and `standing orders` name a guarded file from anywhere. Of several files of one name
    only the last is here; `guarded_paths` has all.
    """
    return {guarded_key(path): path for path in guarded_paths(prompt)}


def guarded_key(name: str) -> str:
    """The key of `guarded_names` for a path or name as somebody may write it."""
    last = (plain_parts(name) or ("",))[-1]
    return "-".join(last.removesuffix(".md").replace("_", " ").replace("-", " ").split())


def is_ignorable(character: str) -> bool:
    """Whether file systems skip this character when they compare names: format characters, selectors, fillers."""
    is_selector = "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef"
    return is_selector or character in _FILLERS or unicodedata.category(character) == "Cf"


def is_private(path: str) -> bool:
    """Whether the path is below channels/, by any file system's way to compare names."""
    if path.startswith("pages/") and path.isascii():  # nearly all are, and each of 100,000 is asked
        return False
    return (plain_parts(path) or ("",))[0] == "channels"


def prompt_paths(prompt: PromptTable) -> tuple[str, ...]:
    """The paths of the files that the prompt shows besides the runtime files, core facts included."""
    return (*prompt.system_files, CORE_FACTS, *(file.path for file in prompt.files))


def audience_of(path: str, prompt: PromptTable) -> str:
    """Who may read a note: "" for every session, whole; `channels/AGENT/SCOPE` for a private note, its own path for one
    that is directly in `channels/AGENT`; "apart" for one that some session may not read, or sees in part."""
    resources = resources_of(path, _STRANGER, prompt)
    if resources == {"another's channel"}:
        audience = channel_of(path) or posixpath.dirname(path)
        return audience if audience.startswith("channels/") else "apart"
    return "" if resources == {"notes"} else "apart"


def channel_of(path: str) -> str | None:
    """`channels/scribe/global` for any path in it; None where `path` is in no channel."""
    parts = posixpath.normpath(path).split("/")
    return "/".join(parts[:_SCOPE]) if len(parts) >= _SCOPE and parts[0] == "channels" else None


def members_in(raw: bytes) -> Members:
    """Members by agent, as a channel.toml names them: `[members]` with `pilot = ["read", "write", "peek"]`.

    One that cannot be read names nobody.
    """
    try:
        members = tomllib.loads(raw.decode("utf-8-sig")).get("members", {}).items()
    except (ValueError, AttributeError):
        return NO_MEMBERS
    return {agent: [str(one) for one in granted] for agent, granted in members if isinstance(granted, list)}


def fold_name(name: str) -> str:
    """A name as the most forgiving file system compares it: NFKC, case folded, ignorable characters removed."""
    if name.isascii():
        return name.casefold()
    # Folding may leave text to compose, and composing may leave text to fold.
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold()).casefold()
    return "".join(each for each in folded if not is_ignorable(each))


_SCOPE = 3
_FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u3164\uffa0")


def _resource_of(parts: tuple[str, ...], path: str, agent: str) -> Resource:
    name = parts[-1] if parts else ""
    if any(part.startswith(".") for part in parts) or name == CHANNEL_FILE:
        return "hidden"
    if name == SETTINGS_FILE:
        return "settings"
    if parts[:1] == ("runtime",):
        return "runtime"
    if parts[:1] == ("channels",):
        return "own channel" if _is_own(parts, path, agent) else "another's channel"
    return "core facts" if "/".join(parts) == CORE_FACTS else "notes"


def _is_own(parts: tuple[str, ...], path: str, agent: str) -> bool:
    """By the exact name and by the folded one: a name that is only similar is another's."""
    exact = posixpath.normpath(path).split("/")
    return bool(agent) and exact[:2] == ["channels", agent] and parts[1:2] == plain_parts(agent)


@lru_cache(maxsize=8)
def _prompt_files(prompt: PromptTable) -> Mapping[tuple[str, ...], tuple[str, ...]]:
    """By folded path, which sessions are shown each file of the prompt."""
    shown: dict[str, tuple[str, ...]] = dict.fromkeys((*prompt.system_files, CORE_FACTS), KINDS)
    shown |= {file.path: file.sessions for file in prompt.files}
    return {parts: sessions for path, sessions in shown.items() if (parts := plain_parts(path)) is not None}


def _rights(session: Session, resource: Resource, members: Members) -> frozenset[Verb]:
    rights = TABLE[resource][session.kind]
    if resource == "another's channel" and session.kind == "task" and session.agent:
        granted = (_MEMBERSHIP.get(one, _NOTHING) for one in members.get(session.agent, ()))
        return rights.union(*granted)
    return rights
