"""Slices of a history, for machines whose output depends only on events nearby in time.

Each slice also has the events within a margin (the lookaround of the machine) on both sides. Slices can
therefore run as independent tasks. Each task emits the output of the slice's own events.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from ..model.batch import times
from ..model.instant import HOUR, Duration
from .machine import Emission

MARGINS = 64
"""The length of a slice in margins, unless that is less than an hour. With this length, few events are in two
slices."""


def length(margin: Duration) -> Duration:
    """Return the length of a slice, in microseconds."""
    return max(MARGINS * margin, HOUR)


def slices_of(margin: Duration, batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the number of each slice and its events; events near a border are in two slices."""
    moments, long = times(batch), length(margin)
    own = moments // long
    before = np.flatnonzero(moments - own * long < margin)
    after = np.flatnonzero((own + 1) * long - moments < margin)
    rows = np.concatenate([np.arange(len(batch)), before, after])
    slices = np.concatenate([own, own[before] - 1, own[after] + 1])
    order = np.argsort(slices, kind="stable")
    found, starts = np.unique(slices[order], return_index=True)
    ends = [*starts[1:].tolist(), len(rows)]
    for number, start, end in zip(found.tolist(), starts.tolist(), ends, strict=False):
        yield number, batch.take(pa.array(rows[order[start:end]]))


def own_part(emission: Emission, number: int, lookaround: Duration) -> Emission:
    """Return the part of an emission whose events are in slice `number` itself, not in its margins."""
    long = length(lookaround)
    rows = {
        topic: some.filter(pa.array(times(some) // long == number)) for topic, some in emission.rows.items()
    }
    single = [one for one in emission.single if one.event.time // long == number]
    return emission._replace(rows=rows, single=single)
