"""Who owns a server's data: the mark that a notebook leaves there, and what it may do given the mark it finds. Pure.

A *replica* is one index; a *generation* is one life of it: a rebuilt or restored index, and one that claims a server,
begin a new one. The cursor
lives in the mark, with the data that it describes, so that a restored or emptied server is noticed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated
from urllib.parse import unquote, urlsplit

import msgspec

from notebook_sync.errors import ForeignTarget
from notebook_sync.store.rows import EPOCH

FOREIGN = ("foreign", "another program wrote it or changed it")
# By collection, then by id: the rev of the row that a server has.
Revs = dict[str, dict[str, int]]
# By "COLLECTION:ID": code and reason.
Refusals = dict[str, tuple[str, str]]

# What pymongo appends to the first cause: all that it knows of every server.
_APPENDIX = re.compile(r"( \(configured timeouts:|, Timeout: |, full error: ).*", re.DOTALL)
_CLAIM = "to take it over, run: notebook-sync sync --claim"


@dataclass(frozen=True, slots=True)
class Mark:
    """What a notebook writes on a server. `cursor` is the last rev there; `published_through` the last rev of a stream
    line there; `pending_from` the first rev of refs written while MongoDB did not answer, 0 for none.
    """

    notebook: str = ""
    name: str = ""
    replica: str = ""
    generation: str = ""
    host: str = ""
    root: str = ""
    cursor: int = 0
    published_through: int = 0
    pending_from: int = 0
    at: Annotated[datetime, msgspec.Meta(tz=True)] = EPOCH

    @classmethod
    def read(cls, found: object) -> Mark:
        """The mark in a document or in JSON; what is none is a mark of nobody, which no notebook owns."""
        try:
            return msgspec.json.decode(found, type=cls) if isinstance(found, bytes) else msgspec.convert(found, cls)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return cls()

    @property
    def owner(self) -> str:
        """The owner in words."""
        if not self.notebook:
            return "another program"
        return f"the notebook {self.name or self.notebook!r} ({self.root} on {self.host})"


def is_continued(
    mark: Mark, own: Mark, generations: Sequence[str], *, target: str, last_cursor: int, claim: bool = False
) -> bool:
    """Whether this index goes on from the cursor of the mark on a server. Where it does not, it writes everything
    again, after it took over what only the server has. Raises ForeignTarget, saying what resolves it.

    `own` is the mark of this index, `generations` are those that its state folder began. `last_cursor` is the cursor
    that this index recorded last, before it wrote it to the server: a greater one there was written by a later state of
    an index that is restored.
    """
    if mark.notebook != own.notebook:
        raise ForeignTarget(target, mark.owner, next="set another mirror.database, or another refs.prefix")
    if mark.generation not in generations and not claim:
        copy = "a copy of this state folder" if mark.replica == own.replica else "another copy of this notebook"
        raise ForeignTarget(target, f"{copy} ({mark.root} on {mark.host})", next=_CLAIM)
    return mark.generation == own.generation and mark.cursor <= last_cursor


def name_of(url: str, kind: str) -> str:
    """A server's name for people, without secrets: `MongoDB at localhost:27017`."""
    try:
        place = urlsplit(url).netloc.rpartition("@")[2]
    except ValueError:
        place = ""
    return f"{kind} at {place or 'an address that cannot be read'}"


def without_secrets(text: str, url: str) -> str:
    """The first cause that a driver's message names, without the password and user of the address."""
    secrets = set(re.split(r"[:@]", url.partition("://")[2].rpartition("@")[0]))
    query = dict(re.findall(r"([^?&=]+)=([^&]+)", url.partition("?")[2]))
    secrets |= {value for name, value in query.items() if re.search(r"pass|secret|token|propert", name, re.IGNORECASE)}
    secrets |= {unquote(secret) for secret in secrets}
    text = _APPENDIX.sub("", text)
    for secret in sorted(secrets - {""}, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text
