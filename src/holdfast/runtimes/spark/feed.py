"""The live half of the data source: files are read once each, in the order of the log, and reduced.

What leaves a reader is packed by shard.  For a timely condition the order of arrival is the order
of processing, so that whatever one reader reads is a closed part.  For an ordered one nothing is
closed yet, and every shard is told how far event time has come; so it is for components.
"""

from __future__ import annotations

import base64
import pickle
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxBytes,
    SupportsTriggerAvailableNow,
)

from ...compilers.gathering import whole
from ...compilers.machine import Coverage, decisive
from ...compilers.stages import Operator, needed
from ...errors import HoldfastError, InputError
from ...files.find import InputFile
from ...files.plan import latest_in
from ...files.read import read
from ...files.reading import Reading
from ...files.rest import Decisive, completed
from ...files.tally import Tally
from ...lang.condition import Checked
from ...machines.filter import Filters
from ...machines.ordered import Ordered
from ...model.batch import concatenate, times
from ...model.instant import BEGINNING, NEVER, Duration, Instant
from .checkpoint import Checkpoint, Query, Runner
from .log import Entry, FileLog, Folder, Waiting
from .pack import PROGRESS, REPORT, SPARK_SCHEMA, gathered, inmost, packed, row, time_in
from .source import KeptRejects, Mask, Rejected, joined, raise_again
from .stepping import Machines, machines_of

FORMAT = "holdfast-feed"

_END = "end"


@dataclass(frozen=True)
class Feed:
    """A live query as its readers need it: plain values, which travel."""

    checkpoint: Checkpoint
    query: Query
    checked: Checked
    reading: Reading
    folders: tuple[Folder, ...]
    settle: float
    batch_bytes: int
    readers: int
    quarantine: bool = False
    strict: bool = False
    finish: bool = False
    """When all has been read, let time run out: nothing more will come."""
    whole: bool = False
    """Whether components are given columns that they do not need, too."""

    @cached_property
    def decisive(self) -> Decisive:
        """The columns that are read first; the rest only of rows that are kept."""
        checked = self.checked
        return joined(
            decisive(checked.conditions),
            needed(checked.components, checked.topics, whole=self.whole),
            whole(checked.correlations),
        )

    def to_text(self) -> str:
        return base64.b64encode(pickle.dumps(self)).decode()

    @staticmethod
    def from_text(text: str) -> Feed:
        feed: Feed = pickle.loads(base64.b64decode(text))
        return feed


class Read(msgspec.Struct):
    """What a reader says of its part of a batch."""

    files: int = 0
    bytes: int = 0
    rows: int = 0
    events: dict[str, int] = {}
    """How many events each topic had."""
    outside: dict[str, int] = {}
    reached: dict[str, Instant] = {}
    """The latest time of each topic."""
    passed: dict[int, int] = {}
    """How many events each machine was sent."""
    rejected: dict[str, int] = {}
    other_topics: dict[str, int] = {}
    rejects: list[Rejected] = []
    bad_files: list[tuple[str, str]] = []
    """Files that could not be read, with the reason."""
    end: bool = False
    """Whether this is the end of the stream."""
    failed: tuple[int, str] | None = None
    """Exit status and message of an error that ends the query."""

    def require_success(self) -> None:
        """Raise what went wrong, if something did."""
        raise_again(self.failed)


class FeedSource(DataSource):
    """The source of our own live queries: packed rows."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return SPARK_SCHEMA

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802
        return FeedReader(self.options["feed"])


class _Part(InputPartition):
    """Files that one reader reads, in the order of arrival; or, of a feed that ends, the end."""

    def __init__(self, number: int, first: int, entries: Sequence[Entry], latest: Instant) -> None:
        super().__init__(number)
        self.number, self.first, self.entries, self.latest = number, first, tuple(entries), latest


class FeedReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets count the entries of the log: ``{"files": 12}``; the last one says ``"end": 1`` too."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._target: int | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_text": self._text, "_target": None}

    @cached_property
    def _feed(self) -> Feed:
        return Feed.from_text(self._text)

    @cached_property
    def _log(self) -> FileLog:
        log = FileLog(self._feed.checkpoint.log)
        log.refresh()
        return log

    # --- on the driver ---

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"files": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxBytes(self._feed.batch_bytes)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        if self._discover().incomplete:
            time.sleep(self._feed.settle)
            self._discover()
        self._target = len(self._log.entries)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        feed, first = self._feed, start["files"]
        if feed.checkpoint.stop.exists():
            return start
        if self._target is None:
            self._discover()
        if _END in start:
            return start
        available = len(self._log.entries) if self._target is None else max(self._target, first)
        if first < available:
            most = limit.max_bytes if isinstance(limit, ReadMaxBytes) else NEVER
            return {"files": first + _admitted(self._log.entries[first:available], most)}
        return {"files": first, _END: 1} if feed.finish else start

    def _discover(self) -> Waiting:
        feed = self._feed
        waiting = self._log.discover(feed.folders, feed.settle, self._latest_in)
        feed.checkpoint.note_waiting(waiting.incomplete, waiting.unknown)
        return waiting

    def _latest_in(self, entry: Entry, number: int) -> Instant | None:
        try:
            return latest_in(entry.input_file(number), self._feed.reading)
        except (HoldfastError, OSError):  # whoever reads it will say what is wrong
            return None

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        self._log.refresh()
        entries, first, last = self._log.entries, start["files"], end["files"]
        assert last <= len(entries), "the log of files is shorter than what was read of it"
        if _END in end and _END not in start:
            return [_Part(0, first, (), NEVER)]
        known = [entry.latest for entry in entries[:first]]
        latest = max((NEVER if at is None else at for at in known), default=BEGINNING)
        runs = _runs([entry.size for entry in entries[first:last]], self._feed.readers)
        return [
            _Part(i, first + run.start, entries[first + run.start : first + run.stop], latest)
            for i, run in enumerate(runs)
        ]

    # --- in an executor ---

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Part)
        return read_part(self._feed, partition)


def _admitted(entries: Sequence[Entry], most: int) -> int:
    """How many of the files make one batch: at least one, and no more bytes than so many."""
    size = 0
    for i, entry in enumerate(entries):
        size += entry.size
        if i and size > most:
            return i
    return len(entries)


def _runs(sizes: Sequence[int], readers: int) -> list[range]:
    """Neighbours shared out among readers, about as many bytes to each."""
    share = max(1, -(-sum(sizes) // readers))
    runs, begin, size = [], 0, 0
    for i, more in enumerate(sizes):
        size += more
        if size >= share or i == len(sizes) - 1:
            runs.append(range(begin, i + 1))
            begin, size = i + 1, 0
    return runs


# --- reading -----------------------------------------------------------------------------------------


class _File:
    """What one file adds to a part; a file that cannot be read to its end adds nothing."""

    def __init__(self) -> None:
        self.tally, self.coverage = Tally(), Coverage()
        self.kept: dict[int, list[pa.RecordBatch]] = {}
        """Of each filter's machine."""
        self.looked_at: dict[tuple[int, str], list[pa.RecordBatch]] = {}
        """Of each operator and topic."""
        self.reached: dict[str, Instant] = {}
        self.rejects: list[Rejected] = []


def read_part(feed: Feed, part: _Part) -> Iterator[pa.RecordBatch]:
    """Read files: what can matter, packed; how far time has come; and what is to be said of it."""
    machines = machines_of(feed.query, feed.checked)
    said, files = Read(end=not part.entries), []
    for i, entry in enumerate(part.entries):
        try:
            files.append(_read_file(feed, machines, entry.input_file(part.first + i), part.latest))
            said.bytes += entry.size
        except (HoldfastError, OSError) as error:
            fault = _fault(entry, error)
            if feed.strict or not feed.quarantine:
                said = Read(failed=(fault.exit_status, str(fault)))
                yield row(REPORT, part.number % feed.query.shards, msgspec.msgpack.encode(said), part.number)
                return
            said.bad_files.append((entry.path, str(fault)))
    said.files = len(files)
    for runner in machines.runners:
        batches = [batch for file in files for batch in file.kept.get(runner.number, ())]
        if batches:
            yield from _packed(feed, part, runner, batches, said)
    for number, operator in machines.operators.items():
        for topic in operator.topics:
            batches = [batch for file in files for batch in file.looked_at.get((number, topic), ())]
            if batches:
                whole = concatenate(batches)
                said.passed[number] = said.passed.get(number, 0) + len(whole)
                yield from gathered(number, operator, topic, whole, feed.query.shards, part.number)
    _add_up(said, files)
    yield from _progress(feed, part, machines.waiting, said.reached)
    yield row(REPORT, part.number % feed.query.shards, msgspec.msgpack.encode(said), part.number)


def _read_file(feed: Feed, machines: Machines, file: InputFile, latest: Instant) -> _File:
    found, rejects = _File(), KeptRejects(feed.strict)
    for topic, batch in read(file, feed.reading, found.tally, rejects, decisive=feed.decisive):
        mine = [runner for runner in machines.runners if runner.group.topic == topic]
        listening = [(i, one) for i, one in machines.operators.items() if topic.name in one.topics]
        if not len(batch) or not (mine or listening):
            continue
        found.coverage.count(topic.name, batch, [runner.group for runner in mine])
        found.reached[topic.name] = max(found.reached.get(topic.name, BEGINNING), time_in(batch))
        for runner in mine:
            kept = _reduced(runner, batch, latest)
            if len(kept):
                found.kept.setdefault(runner.number, []).append(kept)
        for number, operator in listening:
            found.coverage.outside.update(operator.outside(topic.name, batch))
            thin = batch if feed.whole else operator.needed(topic.name, batch)
            kept = thin.filter(pa.array(_looked_at(operator, topic.name, batch, latest)))
            if len(kept):
                found.looked_at.setdefault((number, topic.name), []).append(kept)
    for runner in machines.runners:
        if runner.number in found.kept:
            whole = concatenate(found.kept[runner.number])
            found.kept[runner.number] = [
                completed(whole, runner.group.topic, [file], feed.reading, feed.decisive)
            ]
    found.rejects = rejects.rows
    return found


def _looked_at(operator: Operator, topic: str, batch: pa.RecordBatch, latest: Instant) -> Mask:
    """What components look at, and what may be late where that is to be told."""
    matters = operator.machine.matters(topic, batch)
    if operator.strictest is None:
        return matters
    return matters | (times(batch) < _safe(latest, operator.strictest))


def _safe(latest: Instant, wait: Duration) -> Instant:
    """Nothing at or after it can be late, given that no earlier batch had an event after ``latest``."""
    return latest - wait if BEGINNING < latest < NEVER else latest


def _reduced(runner: Runner, batch: pa.RecordBatch, latest: Instant) -> pa.RecordBatch:
    """What of a batch can matter, given that no earlier batch had an event after ``latest``."""
    machine, wait = runner.group.machine, runner.group.wait
    if not isinstance(machine, Ordered):
        return machine.reduce(batch)
    return machine.reduce(batch, safe=_safe(latest, wait or 0))


def _packed(
    feed: Feed, part: _Part, runner: Runner, batches: Sequence[pa.RecordBatch], said: Read
) -> Iterator[pa.RecordBatch]:
    machine = runner.group.machine
    whole = concatenate(batches)
    if isinstance(machine, Filters) and len(batches) > 1:
        whole = machine.reduce(whole)
    said.passed[runner.number] = len(whole)
    yield from packed(runner.number, inmost(machine), whole, feed.query.shards, part.number)


def _progress(
    feed: Feed, part: _Part, waiting: frozenset[str], at: dict[str, Instant]
) -> Iterator[pa.RecordBatch]:
    """Tell every shard how far event time has come, where a machine waits for it."""
    told = {t: at[t] for t in waiting & at.keys()} if part.entries else dict.fromkeys(waiting, NEVER)
    if told:
        raw = msgspec.msgpack.encode(told)
        for shard in range(feed.query.shards):
            yield row(PROGRESS, shard, raw, part.number)


def _add_up(said: Read, files: Sequence[_File]) -> None:
    tally, coverage = Tally(), Coverage()
    for file in files:
        tally.add(file.tally)
        coverage.events.update(file.coverage.events)
        coverage.outside.update(file.coverage.outside)
        said.rejects += file.rejects
    said.rows = tally.rows
    said.rejected, said.other_topics = dict(tally.rejected), dict(tally.other_topics)
    said.events, said.outside = dict(coverage.events), dict(coverage.outside)
    said.reached = {topic: max(f.reached.get(topic, BEGINNING) for f in files) for topic in said.events}


def _fault(entry: Entry, error: HoldfastError | OSError) -> HoldfastError:
    if isinstance(error, HoldfastError):
        return error
    if isinstance(error, FileNotFoundError):
        return InputError(f"{entry.path}: removed before it could be read; put it back")
    return InputError(f"{entry.path}: {error.strerror or error}")
