"""Queries and collections as data: what every part of the project says to the index.

Glossary. A *row* is a dict with `id` and `rev`. A *projected* column comes from a file and is set by `put`. A *kept*
column belongs to the database: `put` sets it only when it inserts, `update` changes it, and it survives a rebuild, a
move, and a year without the file. A *heavy* column is read only when it is named. A *many* field is a list of texts
that `Has` finds. `audience` says who may read the row: see `notebook_sync.permissions.audience_of`.

The classes are msgspec's: each takes a tenth of a dataclass's time to make, at every start of a command.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Literal, Protocol

import msgspec

Row = dict[str, Any]

# text: str · int: signed 64 bits, bool too · real: finite float · time: aware UTC datetime, whole milliseconds
# json: anything msgspec encodes · bytes: of a text · blob: of numbers, which do not compress · list: a many field
ColumnType = Literal["text", "int", "real", "time", "json", "bytes", "blob", "list"]


class Column(msgspec.Struct, frozen=True):
    """One column of a collection. `default` is used for a missing value when a row is inserted.

    `observed`: a projected column that says how the file was last seen, not what is in it; `update` may set it too.
    """

    name: str
    type: ColumnType = "text"
    kept: bool = False
    heavy: bool = False
    indexed: bool = False
    default: Any = None
    observed: bool = False


class CollectionSpec(msgspec.Struct, frozen=True):
    """One collection of rows.

    `unique` is a column that no two rows share (NULL excepted). A note that is put takes its path over from another
    row; with `first_wins`, a row is not put where another has its value. `text` names the fields whose words are
    searched, with their weights; a row that is put carries `words`: those fields' terms, joined by spaces, as the
    analyzer cuts them. `versioned_by` is the column whose change raises `version` by one, in the same statement.
    `feed`: its changes are numbered by `rev` and published. `dumped`: its kept columns (or whole rows, where it has no
    projected ones) are what only the database holds. `indexes` are those of several columns or some rows, as SQL.
    """

    name: str
    columns: tuple[Column, ...]
    many: tuple[str, ...] = ()
    text: tuple[tuple[str, float], ...] = ()
    unique: str = ""
    versioned_by: str = ""
    feed: bool = False
    dumped: bool = False
    first_wins: bool = False
    indexes: tuple[str, ...] = ()


# ---- conditions


class Is(msgspec.Struct, frozen=True):
    """`field` compared with `value`. `under`: the path `field` is below the folder `value`. NULL equals None."""

    field: str
    op: Literal["=", "!=", "<", "<=", ">", ">=", "in", "under"]
    value: Any


class Has(msgspec.Struct, frozen=True):
    """The many field `field` contains any of `values`."""

    field: str
    values: tuple[str, ...]


class All(msgspec.Struct, frozen=True):
    """Every one of `conditions`; no conditions are true."""

    conditions: tuple[Where, ...] = ()


class Either(msgspec.Struct, frozen=True):
    """At least one of `conditions`; no conditions are false."""

    conditions: tuple[Where, ...] = ()


class Few(msgspec.Struct, frozen=True):
    """At least one of `conditions`, for each of which an index finds few rows; for `Either`, SQLite reads every row."""

    conditions: tuple[Where, ...]


class Not(msgspec.Struct, frozen=True):
    """The opposite of `condition`; unknown (a NULL compared) counts as false, so its opposite is true."""

    condition: Where


Where = Is | Has | All | Either | Few | Not
EVERYTHING = All()
NOTHING = Either()


def both(*conditions: Where) -> Where:
    """All of these, without needless nesting."""
    kept = tuple(each for each in conditions if each != EVERYTHING)
    return kept[0] if len(kept) == 1 else All(kept)


# ---- search


class Analyzer(Protocol):
    """Cuts text into the terms that are indexed and asked for. One for the whole product.

    `version` changes when equal text would give other terms: the word tables are then rebuilt.
    """

    version: int

    def terms(self, text: str) -> list[str]:
        """The terms of a text in order, with repeats: folded, stemmed, bigrams for scripts without spaces."""


# ---- the change feed


class Change(msgspec.Struct, frozen=True):
    """One entry of the feed: the row at `rev`, or its end (`row` None). Revision order is commit order."""

    collection: str
    id: str
    rev: int
    row: Row | None

    @property
    def key(self) -> str:
        """How the row is named among all that a target has."""
        return f"{self.collection}:{self.id}"


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_milliseconds(moment: datetime) -> int:
    """Milliseconds since 1970 of an aware datetime."""
    return (moment - EPOCH) // timedelta(milliseconds=1)


def from_milliseconds(milliseconds: int) -> datetime:
    """The aware UTC datetime of milliseconds since 1970."""
    return EPOCH + timedelta(milliseconds=milliseconds)
