"""Merging of batches of several topics to one history; each topic must be in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

import numpy as np
import pyarrow as pa

from ..model.batch import times
from ..model.instant import BEGINNING, NEVER, Instant

Topic = TypeVar("Topic")


def merge_by_time(
    streams: Mapping[Topic, Iterator[pa.RecordBatch]],
) -> Iterator[tuple[Topic, pa.RecordBatch, Instant]]:
    """Yield the batches of all topics by time, each with its topic and the watermark after it."""
    first = {topic: next(stream, None) for topic, stream in streams.items()}
    heads = {topic: batch for topic, batch in first.items() if batch is not None}
    last = BEGINNING
    while heads:
        topic = min(heads, key=lambda name: int(times(heads[name])[-1]))
        batch = heads.pop(topic)
        if (following := next(streams[topic], None)) is not None:
            heads[topic] = following
        last = max(last, int(times(batch)[-1]))
        yield topic, batch, min((int(times(head)[0]) for head in heads.values()), default=last)


def interleave(
    streams: Mapping[Topic, Iterator[pa.RecordBatch]],
) -> Iterator[tuple[Topic, pa.RecordBatch]]:
    """Yield the batches of all topics by time.

    Batches are divided such that no row comes before an earlier row of another topic.
    """
    heads = {topic: batch for topic, stream in streams.items() if (batch := next(stream, None)) is not None}
    while heads:
        topic = min(heads, key=lambda name: int(times(heads[name])[0]))
        batch = heads.pop(topic)
        limit = min((int(times(head)[0]) for head in heads.values()), default=NEVER)
        count = int(np.searchsorted(times(batch), limit, side="right"))
        yield topic, batch.slice(0, count)
        following = batch.slice(count) if count < len(batch) else next(streams[topic], None)
        if following is not None:
            heads[topic] = following
