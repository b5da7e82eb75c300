"""The activity of sources: when each published last, to find sources that may be broken.

A source is suspicious if it is silent for longer than usual.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ..model.batch import times
from ..model.instant import SECOND, Instant

MOST = 200_000
"""How many sources are remembered; of more, the first."""
_LONG = 5
"""A source is silent after this many of its usual intervals."""
_LEAST = 10 * SECOND

Key = tuple[str, str]


Activity = tuple[Instant, Instant, int]


def _extend(known: Activity | None, first: Instant, last: Instant, count: int) -> Activity:
    return (first, last, count) if known is None else (known[0], max(known[1], last), known[2] + count)


class SourceActivity:
    """The activity of each source since the service started.

    It has the times of the first and the last reading, and the number of readings.
    """

    def __init__(self) -> None:
        self._activity: dict[Key, Activity] = {}

    def add(self, topic: str, batch: pa.RecordBatch) -> None:
        """Count the readings of a batch for their sources."""
        column, at = batch.column("source"), times(batch)
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        codes, names = column.indices.to_numpy(), column.dictionary.to_pylist()
        first = np.full(len(names), np.iinfo(np.int64).max)
        last = np.full(len(names), np.iinfo(np.int64).min)
        np.minimum.at(first, codes, at)
        np.maximum.at(last, codes, at)
        counts = np.bincount(codes, minlength=len(names)).tolist()
        for name, *now in zip(names, first.tolist(), last.tolist(), counts, strict=True):
            known = self._activity.get((topic, name))
            if now[2] and (known is not None or len(self._activity) < MOST):
                self._activity[topic, name] = _extend(known, *now)

    def quiet(self, now: Instant, find: str = "", most: int = 200) -> dict[str, Any]:
        """Return sources with the time since their last reading, longest silent first.

        ``find`` selects sources by a part of their names; at most ``most`` are returned.
        """
        found = [
            (topic, source, *activity)
            for (topic, source), activity in self._activity.items()
            if find.lower() in source.lower()
        ]
        rows = [
            {
                "topic": topic, "source": source, "last": last, "readings": count,
                "pause": (pause := (last - first) // (count - 1) if count > 1 else None),
                "silent": pause is not None and now - last > max(_LEAST, _LONG * pause),
            }
            for topic, source, first, last, count in found
        ]  # fmt: skip
        rows.sort(key=lambda row: (not row["silent"], row["last"]))
        return {"total": len(rows), "silent": sum(row["silent"] for row in rows), "sources": rows[:most]}
