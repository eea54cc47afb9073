"""Values as SQLite stores them. Pure: text that SQLite can compare, numbers in range, times as milliseconds."""

from __future__ import annotations

import math
import zlib
from base64 import b64decode
from collections.abc import Callable, Sequence
from datetime import date, datetime
from functools import lru_cache
from typing import Any, Final

import msgspec

from notebook_sync.store.rows import ColumnType, from_milliseconds, to_milliseconds

Cell = str | int | float | bytes | None
Encode = Callable[[Any], Cell]
Decode = Callable[[Any], Any]

_LARGEST = 2**63 - 1
_DEEPEST = 100
_SMALL = 200  # bytes

from_json: Final[Callable[[str | bytes], Any]] = msgspec.json.decode


def clean(text: str) -> str:
    """Text of the same length without NULs and lone surrogates."""
    if not text.isascii():
        text = text.encode(errors="replace").decode()
    return text.replace("\0", "\ufffd")


def as_json(value: Any) -> str:
    """JSON of any value that YAML or a program may give."""
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, OverflowError, RecursionError):
        return msgspec.json.encode(_plain(value)).decode()


def as_list(values: Any) -> str:
    """JSON of a many field: texts, each once."""
    return as_json(list(dict.fromkeys(map(clean, values))))


def pack(value: str | bytes) -> bytes:
    """Compressed where that gains anything; the first byte says how, and whether it was text."""
    raw, kind = (value, b"b") if isinstance(value, bytes) else (clean(value).encode(), b"t")
    return kind.upper() + zlib.compress(raw, 1) if len(raw) > _SMALL else kind + raw


def unpack(cell: bytes) -> str | bytes:
    """What was packed."""
    kind, raw = cell[:1], cell[1:]
    if kind.isupper():
        raw = zlib.decompress(raw)
    return raw.decode() if kind in b"tT" else raw


def pack_terms(terms: Sequence[str], like: str | bytes) -> bytes:
    """The terms of a row's fields as a cell. `like` is the row's `terms`, which has much the same words: with it as the
    dictionary, little is left."""
    compressor = zlib.compressobj(1, zdict=clean(str(like)).encode())
    return compressor.compress("\n".join(terms).encode()) + compressor.flush()


def terms_of(cell: bytes, like: Cell, at: int) -> str:
    """The terms of one field of what was packed."""
    return _unpacked(cell, like)[at]


@lru_cache(maxsize=1)  # FTS5 asks for one field after the other
def _unpacked(cell: bytes, like: Cell) -> list[str]:
    return zlib.decompressobj(zdict=_dictionary(like)).decompress(cell).decode().split("\n")


def _dictionary(like: Cell) -> bytes:
    return str(unpack(like)).encode() if isinstance(like, bytes) else b""


def _plain(value: Any, depth: int = 0) -> Any:
    """The same without what msgspec refuses: odd keys, lone surrogates, other types, endless nesting."""
    if value is None or isinstance(value, int | float | bytes | date):
        return value
    if isinstance(value, dict) and depth < _DEEPEST:
        return {clean(str(key)): _plain(each, depth + 1) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset) and depth < _DEEPEST:
        return [_plain(each, depth + 1) for each in value]
    return clean(str(value)) if isinstance(value, str) or depth < _DEEPEST else "…"


def _as_milliseconds(value: datetime | str) -> int:
    return to_milliseconds(datetime.fromisoformat(value) if isinstance(value, str) else value)


# How a value of each type is stored, and read where the cell is not the value.
CODECS: Final[dict[ColumnType, tuple[Encode, Decode | None]]] = {
    "text": (lambda value: clean(str(value)), None),
    "int": (lambda value: max(-_LARGEST - 1, min(_LARGEST, int(value))), None),
    "real": (lambda value: float(value) if math.isfinite(value) else None, None),
    "time": (_as_milliseconds, from_milliseconds),
    "json": (as_json, from_json),
    "list": (as_list, from_json),
    "blob": (bytes, None),
    "packed": (pack, unpack),
    # Of a dump, as base64.
    "packed_bytes": (lambda value: pack(b64decode(value) if isinstance(value, str) else value), unpack),
    "packed_json": (lambda value: pack(as_json(value)), lambda cell: from_json(unpack(cell))),
}
