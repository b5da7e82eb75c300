"""Who has spoken, and when last: a source that is silent longer than it used to be may be dead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ..compilers.columns import keyed
from ..model.batch import times
from ..model.instant import SECOND, Instant

MOST = 200_000
"""Sources that are remembered; of more, the first to have spoken."""
_LONG = 5
"""A source is silent when this many of its usual pauses have passed."""
_LEAST = 10 * SECOND

Key = tuple[str, str]


class Sources:
    """The first and the last time of each source, and how often it spoke."""

    def __init__(self) -> None:
        self._heard: dict[Key, tuple[Instant, Instant, int]] = {}

    def hear(self, topic: str, batch: pa.RecordBatch) -> None:
        """Readings have come."""
        codes, names = keyed(batch.column("source"), len(batch))
        at = times(batch)
        spoke = codes >= 0
        count = np.bincount(codes[spoke], minlength=len(names))
        last = np.full(len(names), np.iinfo(np.int64).min)
        np.maximum.at(last, codes[spoke], at[spoke])
        texts = names.to_pylist()
        for code in np.flatnonzero(count):
            key, latest = (topic, texts[code]), int(last[code])
            known = self._heard.get(key)
            if known is not None:
                self._heard[key] = known[0], max(known[1], latest), known[2] + int(count[code])
            elif len(self._heard) < MOST:
                self._heard[key] = int(at[spoke][codes[spoke] == code].min()), latest, int(count[code])

    def quiet(self, now: Instant, find: str = "", most: int = 200) -> dict[str, Any]:
        """Sources with how long they have said nothing; those that are silent first."""
        found = [
            (topic, source, *heard)
            for (topic, source), heard in self._heard.items()
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
