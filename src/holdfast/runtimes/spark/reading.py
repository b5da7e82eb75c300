"""Readers: they select the relevant rows of the batches that they read, and report what was read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from ...engine.key_codes import KeyCodes
from ...engine.machine import Mask, Relevance, may_be_late
from ...engine.operator import latest_time
from ...errors import InputError, UsageError
from ...files.find import InputFile
from ...files.read import read
from ...files.reading import Reading
from ...files.rest import read_missing_columns
from ...files.tally import Rejects, Tally, shorten
from ...model.batch import times
from ...model.instant import BEGINNING, NEVER, Instant
from ...plan.pushdown import Coverage
from .job import Job
from .pack import OperatorEvents, pack_history, pack_watermark

Rejected = tuple[str, int, str, str]
"""A rejected row: its file, its number there, the reason, and its content as JSON."""


class Report(msgspec.Struct):
    """The report of a reader to the driver: counts, watermarks, rejected rows, and its error, if any."""

    rows: int = 0
    relevant: int = 0
    """How many events were relevant to at least one operator."""
    events: dict[str, int] = {}
    """How many events each topic had."""
    outside: dict[str, int] = {}
    """For each subscription, how many events were in none of its scopes."""
    watermarks: dict[str, Instant] = {}
    """The latest event time of each topic."""
    rejected: dict[str, int] = {}
    """How many rows were rejected, by reason."""
    other_topics: dict[str, int] = {}
    """How many rows had a topic that is not declared, by topic."""
    twice: int = 0
    never: int = 0
    rejects: list[Rejected] = []
    first: str | None = None
    """The message about the first rejected row."""
    packed: int = 0
    """The size of the packed events in bytes."""
    passed: dict[int, int] = {}
    """How many events each operator was sent."""
    files: int = 0
    bytes: int = 0
    """The size of the files that were read to their end."""
    bad_files: list[tuple[str, str]] = []
    """Files that could not be read, with the reason."""
    end: bool = False
    """Whether this is the end of the stream."""
    failed: tuple[int, str] | None = None
    """The exit status and the message of an error."""

    def require_success(self) -> None:
        """Raise the error of the reader, if there was one."""
        if self.failed is not None:
            status, message = self.failed
            raise (UsageError if status == UsageError.exit_status else InputError)(message)


def decode_report(payload: bytes) -> Report:
    """Decode the payload of a `REPORT` packet."""
    return msgspec.msgpack.decode(payload, type=Report)


class ReportedRejects(Rejects):
    """Collects rejected rows for the report, the first ones up to `most` bytes. `None` means no limit."""

    def __init__(self, strict: bool, most: int | None) -> None:
        super().__init__(strict=strict)
        self.rows: list[Rejected] = []
        self._left = math.inf if most is None else most

    def write(self, file: InputFile, row: int, reason: str, data: Any) -> None:
        """Reject one row, and store it for the report if there is room."""
        super().write(file, row, reason, data)
        if self._left > 0:
            content = msgspec.json.encode(shorten(data), enc_hook=str).decode()
            self._left -= len(content) + len(reason) + len(file.path)
            if self._left >= 0:
                self.rows.append((file.path, row, reason, content))

    def drain(self) -> list[Rejected]:
        """Remove and return the collected rows, so that their memory is free."""
        found, self.rows = self.rows, []
        return found


@dataclass
class Reader:
    """Selects the relevant rows of batches for each operator, and counts rows.

    Call `read` for each file, `select` or `evaluate` for each batch of the file, and `report` at the end.
    """

    job: Job
    is_closed: bool = False
    """Whether its input is a closed part; then rows that do not decide are dropped, too."""
    latest: Instant = NEVER
    """No event that was read before was later; rows that may be late are never dropped."""
    strict: bool = False
    """Whether to raise an error at the first rejected row."""
    rejects_limit: int | None = None
    """The size in bytes up to which rejected rows are reported and not only counted."""

    def __post_init__(self) -> None:
        self._sources = KeyCodes()
        self.reset()

    def reset(self) -> None:
        """Set all counts to zero, to read the same input again."""
        self.tally, self.coverage, self.relevant = Tally(), Coverage(), 0
        self.rejects = ReportedRejects(self.strict, self.rejects_limit)
        self.watermarks: dict[str, Instant] = {}

    def read(self, file: InputFile, reading: Reading, **how: Any) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield the events of a file that some operator consumes.

        At first they have only the columns that predicates need; `complete` adds the others.
        """
        how = {"decisive": self.job.pushdown.decisive_columns, "encode": self._sources.encode, **how}
        for topic, batch in read(file, reading, self.tally, self.rejects, **how):
            if topic.name in self.job.pushdown.consumers and len(batch):
                yield topic.name, batch

    def evaluate(self, topic: str, batch: pa.RecordBatch) -> list[Relevance]:
        """Count a batch. Return its relevance for each operator that consumes the topic."""
        relevances = self.job.pushdown.relevance(topic, batch, self.coverage)
        masks = [relevance.decides if self.is_closed else relevance.satisfies for relevance in relevances]
        self.relevant += int(np.count_nonzero(np.logical_or.reduce(masks)))
        self.watermarks[topic] = max(self.watermarks.get(topic, BEGINNING), int(times(batch).max()))
        return relevances

    def select(self, topic: str, batch: pa.RecordBatch) -> Iterator[OperatorEvents]:
        """Count a batch. Yield its relevant rows for each operator that consumes its topic."""
        consumers = self.job.pushdown.consumers[topic]
        for (number, operator), relevance in zip(consumers, self.evaluate(topic, batch), strict=True):
            rows = relevance.decides if self.is_closed else relevance.satisfies
            mask = rows | may_be_late(operator.machine, batch, self.latest)
            if len(events := _filter(operator.project(topic, batch), mask)):
                yield OperatorEvents(number, operator, topic, events)

    def complete(
        self, selected: OperatorEvents, files: Iterable[InputFile], reading: Reading
    ) -> OperatorEvents:
        """Return the events with the columns that were not read at first, if the operator needs them."""
        _, operator, topic, events = selected
        if operator.needed_columns is not None:
            return selected
        decisive = self.job.pushdown.decisive_columns
        whole = read_missing_columns(events, operator.topics[topic], files, reading, decisive)
        return selected._replace(events=whole)

    def pack_history(self, found: Iterable[OperatorEvents], shards: int) -> Iterator[pa.RecordBatch]:
        """Yield selected events of a complete history as packets, then the watermarks.

        Only operators that use watermarks get them.
        """
        for selected in found:
            yield from pack_history(selected, shards)
        for number, operator in self.job.watermark_operators.items():
            if operator.machine.traits.lookaround is None:
                at = latest_time(self.watermarks, operator.clock, BEGINNING)
                yield from pack_watermark(number, operator, at, shards)

    def add(self, other: Reader) -> None:
        """Add the counts and rejected rows of another reader to this one."""
        self.tally.add(other.tally)
        self.coverage.add(other.coverage)
        self.relevant += other.relevant
        self.rejects.rows += other.rejects.rows
        for topic, at in other.watermarks.items():
            self.watermarks[topic] = max(at, self.watermarks.get(topic, BEGINNING))

    def report(self, **more: Any) -> Report:
        """Return the report of what was read. `more` has further fields of the report."""
        return Report(
            self.tally.rows,
            self.relevant,
            dict(self.coverage.events),
            dict(self.coverage.outside),
            self.watermarks,
            dict(self.tally.rejected),
            dict(self.tally.other_topics),
            self.tally.twice,
            self.tally.never,
            self.rejects.rows,
            self.rejects.first,
            **more,
        )


def _filter(batch: pa.RecordBatch, mask: Mask) -> pa.RecordBatch:
    rows = np.flatnonzero(mask)
    if len(rows) == len(batch):
        return batch
    is_sparse = len(rows) < len(batch) // 16  # then indices are cheaper than a mask
    return batch.take(pa.array(rows)) if is_sparse else batch.filter(pa.array(mask))
