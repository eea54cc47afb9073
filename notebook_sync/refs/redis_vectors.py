"""Vectors in the hashes of refs and entries: `vector_{dimensions}`, four bytes a number, and `embedded`, which model's.

Whoever writes what a hash says empties `embedded`. No hash that may have a vector is read as text alone: what stands in
it is none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from redis.exceptions import ResponseError

from notebook_sync.refs.base import Model
from notebook_sync.refs.redis_connection import Connection

if TYPE_CHECKING:
    from notebook_sync.refs.base import Embed, Matrix, Vector

EMBEDDED = "embedded"
PIECE = 500
_VECTOR = "vector_"
# A vector of what the hash said is none of what it says by now. Those of other dimensions go.
_PUT = """
local told = redis.call('HGETALL', KEYS[1])
local said = ''
for n = 1, #told, 2 do if told[n] == 'content' then said = told[n + 1] end end
if #told == 0 or said ~= ARGV[1] then return 0 end
for n = 1, #told, 2 do
  if string.sub(told[n], 1, 7) == 'vector_' and told[n] ~= ARGV[2] then redis.call('HDEL', KEYS[1], told[n]) end
end
redis.call('HSET', KEYS[1], ARGV[2], ARGV[3], 'embedded', ARGV[4])
return 1
"""


def field_of(model: Model) -> str:
    """Its name says how long the vectors in it are: an index of them leaves out a hash with another."""
    return f"{_VECTOR}{model.dimensions}"


def kind_of(model: Model) -> str:
    """The model as `embedded` names it."""
    return hashlib.sha256(str(model).encode()).hexdigest()[:16]


def vectors_at(connection: Connection, model: Model, keys: Sequence[str]) -> dict[str, Vector]:
    """The vectors in these hashes, by key; of those that have one of this model."""
    found: dict[str, Vector] = {}
    for start in range(0, len(keys), PIECE):
        piece = keys[start : start + PIECE]
        with connection.pipeline() as pipeline:
            for key in piece:
                pipeline.execute_command("HMGET", key, EMBEDDED, field_of(model), NEVER_DECODE=True)
            hashes = pipeline.execute()
        for key, (embedded, packed) in zip(piece, hashes, strict=True):
            if (vector := vector_in({EMBEDDED: embedded or b"", field_of(model): packed or b""}, model)) is not None:
                found[key] = vector
    return found


def embed_at(
    connection: Connection, model: Model, embed: Embed, said: Mapping[str, tuple[bytes, str]]
) -> tuple[Matrix, int]:
    """Make vectors, and keep them in their hashes; how many could be kept. said: by key, what `content` the hash was
    read with, and the text that is embedded."""
    vectors = embed([text for _, text in said.values()])
    with connection.pipeline() as pipeline:
        for (key, (content, _)), vector in zip(said.items(), vectors, strict=True):
            pipeline.eval(_PUT, 1, key, content, field_of(model), vector.astype("<f4").tobytes(), kind_of(model))
        try:
            return vectors, sum(pipeline.execute())
        except ResponseError:  # the server is full, or does not let the user write
            return vectors, 0


def vector_in(fields: Mapping[str, bytes], model: Model) -> Vector | None:
    """The vector of this model in a hash."""
    packed = fields.get(field_of(model), b"")
    if fields.get(EMBEDDED) != kind_of(model).encode() or len(packed) != 4 * model.dimensions:
        return None
    import numpy as np

    return np.frombuffer(packed, "<f4").astype(np.float32)


def raw_hits_of(reply: Any) -> list[tuple[str, dict[str, bytes]]]:
    """Key and fields of each hit, of a reply that was not taken for text."""
    if isinstance(reply, dict):
        return [(text_in(hit[b"id"]), _named(hit[b"extra_attributes"].items())) for hit in reply[b"results"]]
    hits = zip(reply[1::2], reply[2::2], strict=True)
    return [(text_in(key), _named(zip(fields[::2], fields[1::2], strict=True))) for key, fields in hits]


def total_of(reply: Any) -> int:
    """How many hits there are in all."""
    return int(reply[b"total_results"] if isinstance(reply, dict) else reply[0])


def texts_in(fields: Mapping[str, bytes]) -> dict[str, str]:
    """The fields of a hash that are texts."""
    return {name: text_in(value) for name, value in fields.items() if not name.startswith(_VECTOR)}


def text_in(value: bytes) -> str:
    """What a field says; other programs may have written it."""
    try:
        return value.decode(errors="surrogatepass")
    except UnicodeDecodeError:
        return value.decode(errors="replace")


def _named(fields: Any) -> dict[str, bytes]:
    return {text_in(name): value for name, value in fields}
