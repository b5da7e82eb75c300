"""Files that a live query has read before, heard again by conditions that mean something else now."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import pyarrow as pa

from ....compilers.chain import overheard
from ....compilers.edit import with_ground
from ....compilers.families import is_heard_whole, operators, states
from ....compilers.guarded.settle import Settled, heard
from ....compilers.operator import Operator
from ....errors import HoldfastError
from ....files.read import read
from ....files.reading import Reading
from ....files.tally import Rejects, Tally
from ....model.batch import reached
from ....model.event import Event
from ....model.instant import BEGINNING
from ..pack import HEARD_BEFORE, PAST, Mine, packed, row, shards_of
from ..plan import Work
from .log import Entry


class Anew(msgspec.Struct):
    """What an operator knows that has heard all files: its state, and the last event that it told of each
    scope."""

    state: bytes
    told: list[tuple[str | None, Event]]


class Past(msgspec.Struct):
    """What files say of the scopes of states, by the numbers of their operators and their names; all files,
    or the latest.  ``anew`` are operators as they are when they have heard all files, ``redone`` those that
    hear again all that others have said, and ``begun`` those that are to be told who holds."""

    whole: bool
    scopes: dict[int, dict[str, dict[str, Settled]]]
    redone: tuple[int, ...] = ()
    begun: tuple[int, ...] = ()
    anew: dict[int, Anew] = {}

    @staticmethod
    def of(raw: Sequence[bytes]) -> Past | None:
        """What a shard was told, if it was."""
        return msgspec.msgpack.decode(raw[0], type=Past) if raw else None

    def about(self, number: int) -> Mapping[str, Mapping[str, Settled]]:
        return self.scopes.get(number, {})


def recalled(work: Work, reading: Reading, entries: Sequence[Entry], shards: int) -> Iterator[pa.RecordBatch]:
    """For each shard what files say of scopes whose states were defined anew."""
    edits = {number: edit for number, edit in work.revisions.items() if number in work.operators}
    gone = [i for i, entry in enumerate(entries) if not os.path.exists(entry.path)]
    left = entries[gone[-1] + 1 :] if gone else entries
    whole = [i for i, edit in edits.items() if not gone and is_heard_whole(edit.name, work.checked)]
    meant = {
        one.name: (number, one)
        for number, edit in edits.items()
        if number not in whole
        for one in states(edit.name, edit.was, work.checked)
    }
    until = {name: work.reached[number] for name, (number, _) in meant.items()}
    found = heard([one for _, one in meant.values()], _readings(left, reading), until, whole=not gone)
    new = {seat.number for seat in work.seats or () if seat.files >= 0}
    counts = work.recounted
    redone, begun = ((), tuple(counts.keys() & new)) if gone else (tuple(counts), ())
    shares = [Past(not gone, {}, redone, begun) for _ in range(shards)]
    for name, scopes in found.items():
        number = meant[name][0]
        for shard, keys in _shared(work.operators[number], list(scopes), shards).items():
            mine = shares[shard].scopes.setdefault(number, {})
            mine[name] = {key: scopes[key] for key in keys}
    for number in whole:
        for shard, anew in _all_heard(work, number, _readings(left, reading), shards):
            shares[shard].anew[number] = anew
    for shard, share in enumerate(shares):
        yield row(PAST, shard, msgspec.msgpack.encode(share))
    yield from _heard_before(work, _readings(left, reading), redone, shards)


def _shared(operator: Operator, keys: Sequence[str], shards: int) -> dict[int, list[str]]:
    """The keys of scopes by their shards."""
    found: dict[int, list[str]] = {}
    places = shards_of(keys, shards) if operator.key else [0] * len(keys)
    for key, shard in zip(keys, places, strict=True):
        found.setdefault(shard, []).append(key)
    return found


def _all_heard(
    work: Work, number: int, history: Iterator[tuple[str, pa.RecordBatch]], shards: int
) -> Iterator[tuple[int, Anew]]:
    """For each shard what an operator knows of its scopes when it has heard all files."""
    operator = work.operators[number]
    machine: Any = operator.machine
    state, told, latest = machine.initial(), dict[str | None, Event](), BEGINNING
    for topic, batch in (one for one in history if one[0] in operator.topics):
        latest = max(latest, reached(batch) or BEGINNING)
        state, said = machine.step(state, {topic: batch}, latest)
        told |= {one.scope: one.event for one in said.single}
    state, said = machine.step(state, {}, max(latest, work.reached[number]))
    told |= {one.scope: one.event for one in said.single}
    if not operator.key:  # all meet in one place
        yield 0, Anew(machine.to_bytes(state), list(told.items()))
        return
    by_shard = _shared(operator, machine.keys(state), shards)
    for shard in range(shards):
        keys = by_shard.get(shard, [])
        mine = machine.taken_over(machine.initial(), state, (keys,))
        scopes = dict.fromkeys(map(machine.shown, keys))
        yield shard, Anew(machine.to_bytes(mine), [(scope, told[scope]) for scope in scopes if scope in told])


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
