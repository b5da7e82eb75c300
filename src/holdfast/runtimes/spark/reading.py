"""What a reader keeps of the batches that it reads, whatever they come from, and what it says of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from ...compilers.operator import Coverage, until
from ...errors import InputError, UsageError
from ...files.find import InputFile
from ...files.read import read
from ...files.reading import Reading
from ...files.rest import completed
from ...files.tally import Rejects, Tally, shortened
from ...machines.keys import Keys
from ...machines.machine import Mask, may_be_late
from ...model.batch import times
from ...model.instant import BEGINNING, NEVER, Instant
from .pack import Mine, reaching, spread
from .plan import Work

Rejected = tuple[str, int, str, str]
"""A file, a row, why it cannot be used, and what it says, as JSON."""


class Report(msgspec.Struct):
    """What a reader says of its reading."""

    rows: int = 0
    kept: int = 0
    """How many events mattered to somebody."""
    events: dict[str, int] = {}
    """How many events each topic had."""
    outside: dict[str, int] = {}
    reached: dict[str, Instant] = {}
    """The latest time of each topic."""
    rejected: dict[str, int] = {}
    other_topics: dict[str, int] = {}
    twice: int = 0
    never: int = 0
    rejects: list[Rejected] = []
    first: str | None = None
    packed: int = 0
    """How many bytes of events were sent on."""
    passed: dict[int, int] = {}
    """How many events each operator was sent."""
    files: int = 0
    bytes: int = 0
    """Of files that were read to their end."""
    bad_files: list[tuple[str, str]] = []
    """Files that could not be read, with the reason."""
    end: bool = False
    """Whether this is the end of the stream."""
    failed: tuple[int, str] | None = None
    """Exit status and message of an error."""

    def require_success(self) -> None:
        """Raise what went wrong, if something did."""
        if self.failed is not None:
            status, message = self.failed
            raise (UsageError if status == UsageError.exit_status else InputError)(message)


def reported(raw: bytes) -> Report:
    """What a row says that reports."""
    return msgspec.msgpack.decode(raw, type=Report)


class KeptRejects(Rejects):
    """Rejected rows, kept to be reported: the first of them, as long as they say no more than ``most`` bytes
    together."""

    def __init__(self, strict: bool, most: int | None) -> None:
        super().__init__(strict=strict)
        self.rows: list[Rejected] = []
        self._left = math.inf if most is None else most

    def write(self, file: InputFile, row: int, reason: str, data: Any) -> None:
        super().write(file, row, reason, data)
        if self._left > 0:
            said = msgspec.json.encode(shortened(data), enc_hook=str).decode()
            self._left -= len(said) + len(reason) + len(file.path)
            if self._left >= 0:
                self.rows.append((file.path, row, reason, said))

    def drain(self) -> list[Rejected]:
        """The rows that were kept; forgets them."""
        found, self.rows = self.rows, []
        return found


@dataclass
class Reader:
    """Takes batches of readings for operators, and counts them."""

    work: Work
    closed: bool = False
    """Whether what it reads is a closed part, of which more may be dropped than what does not matter."""
    latest: Instant = NEVER
    """No event that was read before was later."""
    strict: bool = False
    rejects_kept: int | None = None
    """How many bytes rejected rows may have that are reported, and not only counted."""

    def __post_init__(self) -> None:
        self._sources = Keys()
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self.tally, self.coverage, self.kept = Tally(), Coverage(), 0
        self.rejects = KeptRejects(self.strict, self.rejects_kept)
        self.reached: dict[str, Instant] = {}

    def read(self, file: InputFile, reading: Reading, **how: Any) -> Iterator[tuple[str, pa.RecordBatch]]:
        """The events of a file to which somebody listens, at first with the columns that decide."""
        how = {"decisive": self.work.looks_at, "encode": self._sources.coded, **how}
        for topic, batch in read(file, reading, self.tally, self.rejects, **how):
            if topic.name in self.work.listening and len(batch):
                yield topic.name, batch

    def look(self, topic: str, batch: pa.RecordBatch) -> list[Mask]:
        """Count a batch; for each operator that listens, which events can matter to it."""
        listening = [operator for _, operator in self.work.listening[topic]]
        masks = self.coverage.survey(topic, batch, listening, closed=self.closed)
        self.kept += int(np.count_nonzero(np.logical_or.reduce(masks)))
        self.reached[topic] = max(self.reached.get(topic, BEGINNING), int(times(batch).max()))
        return masks

    def take(self, topic: str, batch: pa.RecordBatch) -> Iterator[Mine]:
        """What of a batch of events can matter, for each operator that listens."""
        listening = self.work.listening[topic]
        for (number, operator), matters in zip(listening, self.look(topic, batch), strict=True):
            stays = matters | may_be_late(operator.machine, batch, self.latest)
            if len(mine := _only(operator.needed(topic, batch), stays)):
                yield Mine(number, operator, topic, mine)

    def complete(self, mine: Mine, files: Iterable[InputFile], reading: Reading) -> Mine:
        """Events of some files with the columns that were not read at first, where they are needed."""
        _, operator, topic, events = mine
        if operator.needs is not None:
            return mine
        known = operator.topics[topic]
        return mine._replace(events=completed(events, known, files, reading, self.work.looks_at))

    def spread(self, found: Iterable[Mine], shards: int) -> Iterator[pa.RecordBatch]:
        """What was found in history, packed, and then for those who mind how far time has come."""
        for mine in found:
            yield from spread(mine, shards)
        for number, operator in self.work.timed.items():
            if operator.machine.margin is None:
                at = until(self.reached, operator.clock, BEGINNING)
                yield from reaching(number, operator, at, shards)

    def add(self, other: Reader) -> None:
        """Count what another has counted."""
        self.tally.add(other.tally)
        self.coverage.add(other.coverage)
        self.kept += other.kept
        self.rejects.rows += other.rejects.rows
        for topic, at in other.reached.items():
            self.reached[topic] = max(at, self.reached.get(topic, BEGINNING))

    def report(self, **more: Any) -> Report:
        """What is to be said of it, and what else is known."""
        return Report(
            self.tally.rows,
            self.kept,
            dict(self.coverage.events),
            dict(self.coverage.outside),
            self.reached,
            dict(self.tally.rejected),
            dict(self.tally.other_topics),
            self.tally.twice,
            self.tally.never,
            self.rejects.rows,
            self.rejects.first,
            **more,
        )


def _only(batch: pa.RecordBatch, stays: Mask) -> pa.RecordBatch:
    """Some of the events."""
    rows = np.flatnonzero(stays)
    if len(rows) == len(batch):
        return batch
    few = len(rows) < len(batch) // 16  # and then indices are cheaper than a mask
    return batch.take(pa.array(rows)) if few else batch.filter(pa.array(stays))
