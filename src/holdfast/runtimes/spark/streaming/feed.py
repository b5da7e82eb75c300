"""The data source of a streaming query.

It reads each file once, in the order of the log, and packs events by shard.

A timely condition processes events in the order of arrival, so all events of one reader form a closed part.
An operator that uses watermarks may still wait for earlier events. For it no part is closed, and every shard
receives the watermarks.
"""

from __future__ import annotations

import base64
import pickle
import time
from collections.abc import Iterable, Iterator, Sequence
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

from ....engine.machine import compact_part
from ....errors import HoldfastError, InputError
from ....files.find import InputFile
from ....files.plan import latest_in
from ....files.reading import Reading
from ....model.batch import concatenate
from ....model.instant import BEGINNING, NEVER, SECOND, Instant
from ..job import Job
from ..pack import (
    SPARK_SCHEMA,
    OperatorEvents,
    PacketKind,
    pack,
    pack_watermarks,
    packet_row,
)
from ..reading import Reader, Report
from .checkpoint import FIRST, Checkpoint, Generation
from .log import Entry, FileLog, Folder, Waiting
from .revision import pack_revision

FORMAT = "holdfast-feed"

_END, _CLOCK, _EDITS, _STATES = "end", "clock", "edits", "states"


@dataclass(frozen=True)
class StreamSettings:
    """The settings of a streaming query that its readers need. They are pickled to the executors."""

    checkpoint: Checkpoint
    job: Job
    shards: int
    reading: Reading
    folders: tuple[Folder, ...]
    settle: float
    batch_bytes: int
    readers: int
    quarantine: bool = False
    strict: bool = False
    finish: bool = False
    """Whether event time ends when all files were read."""
    idle: float | None = None
    """How many seconds event time stays behind the wall clock at most if no files arrive; `None` for no
    limit."""
    generation: Generation = FIRST

    def to_text(self) -> str:
        return base64.b64encode(pickle.dumps(self)).decode()

    @staticmethod
    def from_text(text: str) -> StreamSettings:
        feed: StreamSettings = pickle.loads(base64.b64decode(text))
        return feed


class FeedSource(DataSource):
    """The data source of Holdfast's own streaming queries; its rows are packets."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return SPARK_SCHEMA

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802
        return FeedReader(self.options["feed"])


class _FeedPartition(InputPartition):
    """The task of one reader in one batch.

    It has files to read in the order of arrival, or only a watermark (`until`). With `is_history` it has the
    files of earlier batches, to rebuild revised conditions. With `states` it has states of the generation
    before.
    """

    def __init__(
        self,
        number: int,
        first: int,
        entries: Sequence[Entry],
        latest: Instant,
        until: Instant | None = None,
        is_history: bool = False,
        states: Sequence[str] = (),
    ) -> None:
        super().__init__(number)
        self.number, self.first, self.entries, self.latest = number, first, tuple(entries), latest
        self.until, self.is_history, self.states = until, is_history, tuple(states)


class FeedReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans and reads the batches of a streaming query. Spark calls it on the driver and in executors.

    An offset counts the entries of the log, `{"files": 12}`, and may have further keys:
    - `end` after the end of the stream
    - `clock`: the event time to which the wall clock has advanced the watermark
    - `edits`: the last revision that was rebuilt from files
    - `states` before the shards have the states of the generation before
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._target: int | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_text": self._text, "_target": None}

    @cached_property
    def _feed(self) -> StreamSettings:
        return StreamSettings.from_text(self._text)

    @cached_property
    def _log(self) -> FileLog:
        log = FileLog(self._feed.checkpoint.log)
        log.refresh()
        return log

    # --- on the driver ---

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        began = self._feed.generation
        return {**began.offset, _STATES: began.number} if began.states else began.offset

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxBytes(self._feed.batch_bytes)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Append the files that exist now to the log. The query ends after reading them."""
        if self._discover().incomplete:
            time.sleep(self._feed.settle)
            self._discover()
        self._target = len(self._log.entries)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        """Return the offset after the next batch, within the limits for one batch."""
        end = {
            **_without_states(start),
            **self._next_offset(start, limit),
        }  # Spark does a first batch whatever we say
        if end == start:
            return start
        return {**end, _EDITS: self._feed.job.revision_number} if self._is_unsettled(start) else end

    def _next_offset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """Return the parts of the offset that change in the next batch; empty if there is no work."""
        feed, first = self._feed, start["files"]
        if feed.checkpoint.stop.exists():
            return {}
        if self._target is None:
            self._discover()
        if _END in start:
            return {}
        available = len(self._log.entries) if self._target is None else max(self._target, first)
        if first < available:
            most = limit.max_bytes if isinstance(limit, ReadMaxBytes) else NEVER
            first += _admit(self._log.entries[first:available], most)
        elif feed.finish:
            return {_END: 1}
        return {"files": first, **self._clock_offset(start)}

    def _is_unsettled(self, start: dict[str, int]) -> bool:
        """Whether a revision must still be rebuilt from the files that were read before it."""
        job = self._feed.job
        return (
            _END not in start
            and job.is_revised_since(start["files"])
            and start.get(_EDITS, -1) < job.revision_number
        )

    def _clock_offset(self, start: dict[str, int]) -> dict[str, int]:
        """Return the event time to which the wall clock advances the watermark, as a part of the offset.

        Time advances in steps, because each step is a batch. The result is empty if nothing changes.
        """
        feed = self._feed
        if feed.idle is None or self._target is not None or not feed.job.watermark_topics:
            return {}
        step = max(SECOND, round(feed.idle * SECOND / 4))
        until = round((time.time() - feed.idle) * SECOND) // step * step
        return {_CLOCK: until} if until > start.get(_CLOCK, BEGINNING) else {}

    def _discover(self) -> Waiting:
        feed = self._feed
        waiting = self._log.discover(feed.folders, feed.settle, self._latest_in)
        feed.checkpoint.save_waiting(waiting.incomplete, waiting.unknown)
        return waiting

    def _latest_in(self, entry: Entry, number: int) -> Instant | None:
        try:
            return latest_in(entry.input_file(number), self._feed.reading)
        except (HoldfastError, OSError):  # whoever reads it will say what is wrong
            return None

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Return the tasks of the batch between two offsets."""
        self._log.refresh()
        entries, first, last = self._log.entries, start["files"], end["files"]
        assert last <= len(entries), "the log of files is shorter than what was read of it"
        if _END in end and _END not in start:
            return self._add_history([_FeedPartition(0, first, (), NEVER, NEVER)], start)
        known = [entry.latest for entry in entries[:first]]
        latest = max([start.get(_CLOCK, BEGINNING), *(NEVER if at is None else at for at in known)])
        runs = _share_out([entry.size for entry in entries[first:last]], self._feed.readers)
        parts = [
            _FeedPartition(i, first + run.start, entries[first + run.start : first + run.stop], latest)
            for i, run in enumerate(runs)
        ]
        if end.get(_CLOCK) != start.get(_CLOCK):
            parts.append(_FeedPartition(len(parts), last, (), latest, end[_CLOCK]))
        return self._add_history(parts, start)

    def _add_history(self, parts: list[_FeedPartition], start: dict[str, int]) -> list[_FeedPartition]:
        """Return the tasks of a batch with those that come before all others.

        These have the states of the generation before, or files for a revision.
        """
        if self._is_unsettled(start):
            past = self._log.entries[: start["files"]]
            parts = [*parts, _FeedPartition(len(parts), 0, past, BEGINNING, is_history=True)]
        if _STATES in start:
            readers, names = self._feed.readers, sorted(self._feed.generation.states)
            shares = [share for i in range(readers) if (share := names[i::readers])]
            parts = [
                *parts,
                *(_FeedPartition(i, 0, (), BEGINNING, states=s) for i, s in enumerate(shares, len(parts))),
            ]
        return parts

    # --- in an executor ---

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one task and yield its packets. Runs in an executor."""
        assert isinstance(partition, _FeedPartition)
        feed = self._feed
        if partition.states:
            return _read_states(feed, partition.states)
        if partition.is_history:
            return pack_revision(feed.job, feed.reading, partition.entries, feed.shards)
        return read_part(feed, partition)


def _admit(entries: Sequence[Entry], most: int) -> int:
    """Return how many files make one batch: as many as fit into `most` bytes, and at least one."""
    size = 0
    for i, entry in enumerate(entries):
        size += entry.size
        if i and size > most:
            return i
    return len(entries)


def _share_out(sizes: Sequence[int], readers: int) -> list[range]:
    """Divide files among readers. Each reader gets consecutive files, of about the same total size."""
    share = max(1, -(-sum(sizes) // readers))
    runs, begin, size = [], 0, 0
    for i, more in enumerate(sizes):
        size += more
        if size >= share or i == len(sizes) - 1:
            runs.append(range(begin, i + 1))
            begin, size = i + 1, 0
    return runs


# --- reading -----------------------------------------------------------------------------------------


def _without_states(offset: dict[str, int]) -> dict[str, int]:
    """Return an offset without the mark that states must still be handed over."""
    return {name: value for name, value in offset.items() if name != _STATES}


def _read_states(feed: StreamSettings, names: Iterable[str]) -> Iterator[pa.RecordBatch]:
    """Yield the states of the generation before as packets for the shards."""
    for name in names:
        stage, shard = map(int, name.split("-"))
        raw = (feed.checkpoint.states / name).read_bytes()
        yield packet_row(PacketKind.SHARD_STATE, shard, raw, part=stage)


def read_part(feed: StreamSettings, part: _FeedPartition) -> Iterator[pa.RecordBatch]:
    """Read the files of a task. Yield packed events, watermarks and the report."""
    report, found = read_entries(feed, part, closed=True)
    for events in found:
        report.passed[events.number] = report.passed.get(events.number, 0) + len(events.events)
        yield from pack(events, feed.shards, part.number)
    yield from pack_watermarks(_watermarks_after(feed.job, part, report), feed.shards, part.number)
    raw = msgspec.msgpack.encode(report)
    yield packet_row(PacketKind.REPORT, part.number % feed.shards, raw, part=part.number)


def read_entries(
    feed: StreamSettings, part: InputPartition, *, closed: bool
) -> tuple[Report, list[OperatorEvents]]:
    """Read the files of a task.

    Return the report and the relevant events. A file with an error has no events.
    """
    assert isinstance(part, _FeedPartition)
    whole, size, bad = Reader(feed.job), 0, list[tuple[str, str]]()
    found: list[OperatorEvents] = []
    for i, entry in enumerate(part.entries):
        reader = Reader(feed.job, is_closed=closed, latest=part.latest, strict=feed.strict)
        try:
            found += _read_file(feed, entry.input_file(part.first + i), reader)
        except (HoldfastError, OSError) as error:
            fault = _to_holdfast_error(entry, error)
            if feed.strict or not feed.quarantine:
                return Report(failed=(fault.exit_status, str(fault))), []
            bad.append((entry.path, str(fault)))
            continue
        whole.add(reader)
        size += entry.size
    if part.until not in (None, NEVER):
        whole.watermarks = dict.fromkeys(feed.job.watermark_topics, part.until)
    read = len(part.entries) - len(bad)
    report = whole.report(files=read, bytes=size, bad_files=bad, end=part.until == NEVER)
    return report, [_join(some, closed=closed) for some in _group(found)]


def _read_file(feed: StreamSettings, file: InputFile, reader: Reader) -> list[OperatorEvents]:
    """Return the relevant events of a file for each operator and topic."""
    found = (
        events for topic, batch in reader.read(file, feed.reading) for events in reader.select(topic, batch)
    )
    whole = [_join(some, closed=False) for some in _group(found)]
    return [reader.complete(events, [file], feed.reading) for events in whole]


def _group(found: Iterable[OperatorEvents]) -> Iterable[list[OperatorEvents]]:
    """Return events grouped by operator and topic."""
    groups: dict[tuple[int, str], list[OperatorEvents]] = {}
    for events in found:
        groups.setdefault((events.number, events.topic), []).append(events)
    return groups.values()


def _join(some: Sequence[OperatorEvents], *, closed: bool) -> OperatorEvents:
    """Concatenate the events of an operator and topic. If together they are a closed part, compact them."""
    first = some[0]
    whole = concatenate(events.events for events in some)
    if closed and len(some) > 1 and first.operator.compacts:
        whole = compact_part(first.operator.machine, {first.topic: whole})[first.topic]
    return first._replace(events=whole)


def _watermarks_after(job: Job, part: _FeedPartition, report: Report) -> dict[str, Instant]:
    """Return the watermarks that shards need after a task.

    At the end of the stream all watermarks are at the end of time.
    """
    if part.until == NEVER:
        return dict.fromkeys(job.watermark_topics, NEVER)
    return {topic: at for topic, at in report.watermarks.items() if topic in job.watermark_topics}


def _to_holdfast_error(entry: Entry, error: HoldfastError | OSError) -> HoldfastError:
    if isinstance(error, HoldfastError):
        return error
    if isinstance(error, FileNotFoundError):
        return InputError(f"{entry.path}: removed before it could be read; put it back")
    return InputError(f"{entry.path}: {error.strerror or error}")
