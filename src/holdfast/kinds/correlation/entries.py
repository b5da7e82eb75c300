"""Matches of events in columns: which rows of a batch match which filters of which correlations."""

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
    """Matches in columns.

    Row ``rows[i]`` matches the filters on slot ``slots[i]`` of the correlations whose bits are set in
    ``words[i]``.
    """

    rows: NDArray[np.int64]
    slots: NDArray[np.int64]
    words: Words


class StoredEntries(NamedTuple):
    """The stored events of a topic, with their matches.

    ``emitted`` has a bit for each correlation that emitted the event. ``fresh`` is true until the first
    search that includes the event.
    """

    events: pa.RecordBatch
    emitted: Words
    fresh: NDArray[np.bool_]
    entries: Entries


def bits(word: int) -> Iterator[int]:
    """Yield the numbers of the bits that are set in a word, in ascending order."""
    while word:
        low = word & -word
        yield low.bit_length() - 1
        word ^= low


def of_rows(entries: Entries, size: int) -> Words:
    """Return for each row the union of the words of its entries; ``size`` is the number of rows."""
    words = np.zeros(size, np.uint64)
    np.bitwise_or.at(words, entries.rows, entries.words)
    return words


def points(batch: pa.RecordBatch) -> NDArray[np.float64]:
    """Return the coordinates of events. A missing coordinate is 0."""
    found = np.zeros((len(batch), len(AXES)))
    for i, axis in enumerate(AXES):
        if (at := batch.schema.get_field_index(axis)) >= 0:
            found[:, i] = np.nan_to_num(batch.column(at).to_numpy(zero_copy_only=False), nan=0.0)
    return found


def select(entries: Entries, which: NDArray[np.bool_]) -> Entries:
    """Return the entries where a mask is true."""
    return Entries(entries.rows[which], entries.slots[which], entries.words[which])


def keep(stored: dict[str, StoredEntries], topic: str, batch: pa.RecordBatch, entries: Entries) -> None:
    """Add the events of a batch that match a filter to ``stored``, as fresh events."""
    matching = np.zeros(len(batch), np.bool_)
    matching[entries.rows] = True
    size = int(np.count_nonzero(matching))
    if not size:
        return
    events = (batch if size == len(batch) else batch.filter(pa.array(matching))).replace_schema_metadata(None)
    emitted, fresh = np.zeros(size, np.uint64), np.ones(size, np.bool_)
    entries = entries._replace(rows=(np.cumsum(matching) - 1)[entries.rows])
    stored[topic] = join_entries(stored.get(topic), StoredEntries(events, emitted, fresh, entries))


def join_entries(first: StoredEntries | None, second: StoredEntries) -> StoredEntries:
    """Concatenate two stores of one topic."""
    if first is None:
        return second
    return StoredEntries(
        concatenate([first.events, second.events]),
        np.concatenate([first.emitted, second.emitted]),
        np.concatenate([first.fresh, second.fresh]),
        Entries(
            np.concatenate([first.entries.rows, second.entries.rows + len(first.emitted)]),
            np.concatenate([first.entries.slots, second.entries.slots]),
            np.concatenate([first.entries.words, second.entries.words]),
        ),
    )


def only(stored: StoredEntries, stays: NDArray[np.bool_]) -> StoredEntries:
    """Return the stored events where a mask is true."""
    entries = select(stored.entries, stays[stored.entries.rows])
    return StoredEntries(
        stored.events.filter(pa.array(stays)),
        stored.emitted[stays],
        stored.fresh[stays],
        entries._replace(rows=(np.cumsum(stays) - 1)[entries.rows]),
    )


def renumber(words: Words, was: Sequence[int | None]) -> Words:
    """Return words in which bit ``was[i]`` has moved to bit ``i``. Bits without a new number are dropped."""
    found = np.zeros(len(words), np.uint64)
    for i, old in enumerate(was):
        if old is not None:
            found |= ((words >> np.uint64(old)) & np.uint64(1)) << np.uint64(i)
    return found


def known(topic: Topic, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch without attributes whose type has changed since the batch was stored."""
    kinds = {a.name: TYPES[a.kind] for a in topic.attributes}
    return batch.select([f.name for f in batch.schema if kinds.get(f.name, f.type) == f.type])
