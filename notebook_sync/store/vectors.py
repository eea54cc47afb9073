"""Which rows are nearest to a query by meaning: the vectors of one collection and model, in memory as 8-bit codes."""

from __future__ import annotations

import threading
from collections.abc import Collection as AnyCollection
from collections.abc import Iterator
from itertools import accumulate, islice, takewhile
from typing import Any

from notebook_sync.errors import missing_extra
from notebook_sync.store.index import Index
from notebook_sync.store.rows import All, Is

_AT_ONCE = 512


class VectorIndex:
    """All vectors of one collection and model. May be used by several threads; it follows the index by itself.

    Methods raise MissingExtra where numpy or simsimd is not installed.
    """

    def __init__(self, index: Index, collection: str, model: str) -> None:
        self._index = index
        self._rows = index.vectors
        self._prefix = f"{collection}:"
        self._wanted = All((Is("model", "=", model), Is("id", ">=", self._prefix), Is("id", "<", f"{collection};")))
        self._lock = threading.Lock()
        self._version = -1
        # By id of each row in `vectors`: its rev, and where its passages begin and end among all.
        self._held: dict[str, tuple[int, int, int]] = {}
        self._passages: Any = None  # codes, scales
        self._ids: list[str] = []  # of the rows with passages
        self._starts: Any = ()  # where their passages begin

    def nearest(self, query: Any, count: int, among: AnyCollection[str] | None = None) -> list[tuple[str, float]]:
        """At most `count` ids, of those in `among`, each with the cosine of its nearest passage, nearest first.

        `query` is a unit vector (float32). The cosines differ from exact ones by less than 0.01. A row whose cosine is
        not positive is left out.
        """
        with missing_extra("search by meaning", "search"):
            import numpy as np  # to import them takes longer than most commands
            import simsimd
        with self._lock:
            self._refresh(np, len(query))
            ids, starts, (codes, scales) = self._ids, self._starts, self._passages
        if not ids:
            return []
        step = np.abs(query).max() / 127 or 1
        asked = np.rint(query / step).astype(np.int8).reshape(1, -1)
        products = np.asarray(simsimd.cdist(asked, codes, "dot"))[0] * step
        best = np.maximum.reduceat(products * scales, starts)
        order = (int(at) for at in np.argsort(-best, kind="stable"))
        found = (
            (ids[at].removeprefix(self._prefix), float(best[at])) for at in takewhile(lambda at: best[at] > 0, order)
        )
        return list(islice((each for each in found if among is None or each[0] in among), count))

    def cosines(self, query: Any, ids: AnyCollection[str]) -> dict[str, float]:
        """The exact cosine of the nearest passage of each row, less those without passages."""
        of_rows = self.passages_of(query, ids)
        return {row_id: float((codes @ query * scales).max()) for row_id, codes, scales in of_rows}

    def directions(self, query: Any, ids: AnyCollection[str]) -> dict[str, Any]:
        """The sum of each row's passages as a vector of length 1, less rows without passages."""
        import numpy as np  # there, since `query` is an array

        totals = {row_id: scales @ codes for row_id, codes, scales in self.passages_of(query, ids)}
        return {row_id: total / (np.linalg.norm(total) or 1) for row_id, total in totals.items()}

    def passages_of(self, query: Any, ids: AnyCollection[str]) -> Iterator[tuple[str, Any, Any]]:
        """The codes and scales of each of these rows that has passages."""
        import numpy as np  # as in `directions`

        with self._lock:
            self._refresh(np, len(query))
            held, (codes, scales) = self._held, self._passages
        for row_id in ids:
            _, start, end = held.get(self._prefix + row_id, (0, 0, 0))
            if start < end:
                yield row_id, codes[start:end], scales[start:end]

    def _refresh(self, np: Any, dimensions: int) -> None:
        """Load the rows that changed since the last look, and drop what they had."""
        version = self._index.vectors_version()
        if version == self._version:
            return
        if self._passages is None:
            self._passages = np.zeros((0, dimensions), np.int8), np.zeros(0, np.float32)
        there = dict(self._rows.tuples(["id", "rev"], self._wanted))
        sizes = {key: end - start for key, (rev, start, end) in self._held.items() if there.get(key) == rev}
        keep = np.repeat(
            np.array([key in sizes for key in self._held], bool),
            np.array([end - start for _, start, end in self._held.values()], np.int64),
        )
        codes, scales = (bytearray(each[keep]) for each in self._passages)
        changed = [key for key in there if key not in sizes]
        for at in range(0, len(changed), _AT_ONCE):
            for key, more_codes, more_scales in self._rows.tuples(
                ["id", "codes", "scales"], Is("id", "in", changed[at : at + _AT_ONCE])
            ):
                if len(more_codes) * 4 == len(more_scales) * dimensions:
                    codes += more_codes
                    scales += more_scales
                    sizes[key] = len(more_scales) // 4
        self._passages = np.frombuffer(codes, np.int8).reshape(-1, dimensions), np.frombuffer(scales, np.float32)
        places = zip(sizes.items(), accumulate(sizes.values()), strict=True)
        self._held = {key: (there[key], end - size, end) for (key, size), end in places}
        self._ids = [key for key, size in sizes.items() if size]
        self._starts = np.array([start for _, start, end in self._held.values() if start < end], np.int64)
        self._version = version
