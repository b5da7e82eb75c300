"""Files that a live query has read before, heard again by conditions that mean something else now."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

import msgspec
import pyarrow as pa

from ....compilers.chain import overheard
from ....compilers.edit import with_ground
from ....compilers.families import conditions, operators
from ....compilers.guarded.revise import as_guarded
from ....compilers.guarded.settle import Settled, heard
from ....errors import HoldfastError
from ....files.read import read
from ....files.reading import Reading
from ....files.tally import Rejects, Tally
from ..pack import HEARD_BEFORE, PAST, Mine, packed, row, shards_of
from ..plan import Work
from .log import Entry


class Past(msgspec.Struct):
    """What files say of the scopes of states, by the numbers of their operators; all files, or the latest.
    ``redone`` are the operators that hear again all that others have said, and ``begun`` those that are to be
    told who holds."""

    whole: bool
    scopes: dict[int, dict[str, Settled]]
    redone: tuple[int, ...] = ()
    begun: tuple[int, ...] = ()

    @staticmethod
    def of(raw: Sequence[bytes]) -> Past | None:
        """What a shard was told, if it was."""
        return msgspec.msgpack.decode(raw[0], type=Past) if raw else None

    def about(self, number: int) -> Mapping[str, Settled]:
        return self.scopes.get(number, {})


def recalled(work: Work, reading: Reading, entries: Sequence[Entry], shards: int) -> Iterator[pa.RecordBatch]:
    """For each shard what files say of scopes whose states were defined anew."""
    edits = {edit.name: number for number, edit in work.revisions.items() if number in work.operators}
    told = conditions(work.checked)
    gone = [i for i, entry in enumerate(entries) if not os.path.exists(entry.path)]
    left = entries[gone[-1] + 1 :] if gone else entries
    states = [as_guarded(told[name]) for name in edits]
    until = {name: work.reached[number] for name, number in edits.items()}
    found = heard(states, _readings(left, reading), until, whole=not gone)
    new = {seat.number for seat in work.seats or () if seat.revises is None and seat.files >= 0}
    counts = work.recounted
    redone, begun = ((), tuple(counts.keys() & new)) if gone else (tuple(counts), ())
    shares = [Past(not gone, {}, redone, begun) for _ in range(shards)]
    for name, scopes in found.items():
        number, keys = edits[name], list(scopes)
        places = shards_of(keys, shards) if work.operators[number].key else [0] * len(keys)
        for key, shard in zip(keys, places, strict=True):
            shares[shard].scopes.setdefault(number, {})[key] = scopes[key]
    for shard, share in enumerate(shares):
        yield row(PAST, shard, msgspec.msgpack.encode(share))
    yield from _heard_before(work, _readings(left, reading), redone, shards)


def _heard_before(
    work: Work, history: Iterator[tuple[str, pa.RecordBatch]], numbers: Sequence[int], shards: int
) -> Iterator[pa.RecordBatch]:
    """What operators would have heard of others in a history, by their shards."""
    if not numbers:
        return
    ground = with_ground(work.checked, work.recounted.values())
    come = max(work.reached[number] for number in work.reached)
    said = overheard(operators(ground), history, {topic.name: come for topic in ground.topics})
    for number in numbers:
        operator = work.operators[number]
        for topic in operator.heard & said.keys():
            yield from packed(Mine(HEARD_BEFORE - number, operator, topic, said[topic]), shards)


def _readings(entries: Sequence[Entry], reading: Reading) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The readings of files, as they arrived; one that was put aside when it did is so again."""
    for number, entry in enumerate(entries):
        with suppress(HoldfastError):
            found = [*read(entry.input_file(number), reading, Tally(), Rejects())]
            yield from ((topic.name, batch) for topic, batch in found if len(batch))
