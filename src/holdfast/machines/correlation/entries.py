"""Matches of events, as arrays: which rows of a batch match which filters of which correlations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...model.batch import AXES, TYPES, concatenate
from ...model.topic import Topic

Words = NDArray[np.uint64]


class Entries(NamedTuple):
    """Matches: row ``rows[i]`` matches the filters of slot ``slots[i]`` that the correlations
    ``words[i]`` have there."""

    rows: NDArray[np.int64]
    slots: NDArray[np.int64]
    words: Words


class Kept(NamedTuple):
    """The events of a topic that match something and are not forgotten; ``told`` says to which
    correlations they were told, ``fresh`` which of them were not there at the last look."""

    events: pa.RecordBatch
    told: Words
    fresh: NDArray[np.bool_]
    entries: Entries


def bits(word: int) -> Iterator[int]:
    """The numbers of the bits that are set."""
    while word:
        low = word & -word
        yield low.bit_length() - 1
        word ^= low


def of_rows(entries: Entries, size: int) -> Words:
    """The words of each row, together."""
    words = np.zeros(size, np.uint64)
    np.bitwise_or.at(words, entries.rows, entries.words)
    return words


def points(batch: pa.RecordBatch) -> NDArray[np.float64]:
    """Where events are; a coordinate that is missing is 0."""
    found = np.zeros((len(batch), len(AXES)))
    for i, axis in enumerate(AXES):
        if (at := batch.schema.get_field_index(axis)) >= 0:
            found[:, i] = np.nan_to_num(batch.column(at).to_numpy(zero_copy_only=False), nan=0.0)
    return found


def chosen(entries: Entries, which: NDArray[np.bool_]) -> Entries:
    """Some of the entries."""
    return Entries(entries.rows[which], entries.slots[which], entries.words[which])


def keep(kept: dict[str, Kept], topic: str, batch: pa.RecordBatch, entries: Entries) -> None:
    """Add the events of a batch that match something, as fresh ones."""
    matching = np.zeros(len(batch), np.bool_)
    matching[entries.rows] = True
    size = int(np.count_nonzero(matching))
    if not size:
        return
    events = (batch if size == len(batch) else batch.filter(pa.array(matching))).replace_schema_metadata(None)
    told, fresh = np.zeros(size, np.uint64), np.ones(size, np.bool_)
    entries = entries._replace(rows=(np.cumsum(matching) - 1)[entries.rows])
    kept[topic] = joined(kept.get(topic), Kept(events, told, fresh, entries))


def joined(first: Kept | None, second: Kept) -> Kept:
    """What is kept of both."""
    if first is None:
        return second
    return Kept(
        concatenate([first.events, second.events]),
        np.concatenate([first.told, second.told]),
        np.concatenate([first.fresh, second.fresh]),
        Entries(
            np.concatenate([first.entries.rows, second.entries.rows + len(first.told)]),
            np.concatenate([first.entries.slots, second.entries.slots]),
            np.concatenate([first.entries.words, second.entries.words]),
        ),
    )


def only(kept: Kept, stays: NDArray[np.bool_]) -> Kept:
    """Some of the events that are kept."""
    mine = chosen(kept.entries, stays[kept.entries.rows])
    return Kept(
        kept.events.filter(pa.array(stays)),
        kept.told[stays],
        kept.fresh[stays],
        mine._replace(rows=(np.cumsum(stays) - 1)[mine.rows]),
    )


def renumbered(words: Words, was: Sequence[int | None]) -> Words:
    """The words with bit ``i`` for what had the number ``was[i]``, if it had one."""
    found = np.zeros(len(words), np.uint64)
    for i, old in enumerate(was):
        if old is not None:
            found |= ((words >> np.uint64(old)) & np.uint64(1)) << np.uint64(i)
    return found


def known(topic: Topic, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch without attributes that have another kind now."""
    kinds = {a.name: TYPES[a.kind] for a in topic.attributes}
    return batch.select([f.name for f in batch.schema if kinds.get(f.name, f.type) == f.type])
