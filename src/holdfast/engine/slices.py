"""History cut into slices of time, for machines that need look only so far around an event.

A slice that knows a margin more on both sides can tell all of what it owns; so nothing needs to pass from
one to the next, and they are as many tasks as there are.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from ..model.batch import times
from ..model.instant import HOUR, Duration
from .machine import Emission

MARGINS = 64
"""How many margins a slice is long, or an hour: what lies in two slices is little then."""


def length(margin: Duration) -> Duration:
    """How long a slice is."""
    return max(MARGINS * margin, HOUR)


def slices_of(margin: Duration, batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The events of a batch by slice; those near an end of one are in two."""
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
    """The part of an emission that is about events that the slice owns."""
    long = length(lookaround)
    rows = {
        topic: some.filter(pa.array(times(some) // long == number)) for topic, some in emission.rows.items()
    }
    single = [one for one in emission.single if one.event.time // long == number]
    return emission._replace(rows=rows, single=single)
