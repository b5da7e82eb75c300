"""The live half of the data source: files are read once each, in the order of the log, and reduced.

What leaves a reader is packed by shard.  For a timely condition the order of arrival is the order
of processing, so that whatever one reader reads is a closed part.  Where an operator minds how far time
has come nothing is closed yet, and every shard is told.
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

from ....errors import HoldfastError, InputError
from ....files.find import InputFile
from ....files.plan import latest_in
from ....files.reading import Reading
from ....model.batch import concatenate
from ....model.instant import BEGINNING, NEVER, SECOND, Instant
from ..pack import KEPT, REPORT, SPARK_SCHEMA, Mine, packed, progress, row
from ..plan import Work
from ..reading import Reader, Report
from .checkpoint import FIRST, Checkpoint, Generation
from .log import Entry, FileLog, Folder, Waiting
from .past import recalled

FORMAT = "holdfast-feed"

_END, _CLOCK, _EDITS, _STATES = "end", "clock", "edits", "states"


@dataclass(frozen=True)
class Feed:
    """A live query as its readers need it: plain values, which travel."""

    checkpoint: Checkpoint
    work: Work
    shards: int
    reading: Reading
    folders: tuple[Folder, ...]
    settle: float
    batch_bytes: int
    readers: int
    quarantine: bool = False
    strict: bool = False
    finish: bool = False
    """When all has been read, let time run out: nothing more will come."""
    idle: float | None = None
    """How many seconds event time stays behind the clock at most, though nothing comes."""
    generation: Generation = FIRST

    def to_text(self) -> str:
        return base64.b64encode(pickle.dumps(self)).decode()

    @staticmethod
    def from_text(text: str) -> Feed:
        feed: Feed = pickle.loads(base64.b64decode(text))
        return feed


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
    """Files that one reader reads, in the order of arrival; or how far time has come without any; or files
    that have been read before and settle what an edit leaves open; or what shards of the generation before
    have kept."""

    def __init__(
        self,
        number: int,
        first: int,
        entries: Sequence[Entry],
        latest: Instant,
        until: Instant | None = None,
        is_past: bool = False,
        states: Sequence[str] = (),
    ) -> None:
        super().__init__(number)
        self.number, self.first, self.entries, self.latest = number, first, tuple(entries), latest
        self.until, self.is_past, self.states = until, is_past, tuple(states)


class FeedReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets count the entries of the log: ``{"files": 12}``; the last one says ``"end": 1`` too, where a
    clock helps, how far it has let event time come, and after an edit, that files have settled it; the first
    of a generation, that the shards are to take what those before it have kept."""

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
        began = self._feed.generation
        return {**began.offset, _STATES: began.number} if began.states else began.offset

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxBytes(self._feed.batch_bytes)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        if self._discover().incomplete:
            time.sleep(self._feed.settle)
            self._discover()
        self._target = len(self._log.entries)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        end = {**_taken(start), **self._further(start, limit)}  # Spark does a first batch whatever we say
        if end == start:
            return start
        return {**end, _EDITS: self._feed.work.edits} if self._is_open(start) else end

    def _further(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """How far the next batch goes, if there is something to do."""
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
            first += _admitted(self._log.entries[first:available], most)
        elif feed.finish:
            return {_END: 1}
        return {"files": first, **self._by_the_clock(start)}

    def _is_open(self, start: dict[str, int]) -> bool:
        """Whether an edit is to be settled by what was read before, and has not been yet."""
        work = self._feed.work
        return _END not in start and work.edited(start["files"]) and start.get(_EDITS, -1) < work.edits

    def _by_the_clock(self, start: dict[str, int]) -> dict[str, int]:
        """How far the clock lets event time come, where that is further than it was; not at every look, as
        each time is a batch."""
        feed = self._feed
        if feed.idle is None or self._target is not None or not feed.work.clocks:
            return {}
        step = max(SECOND, round(feed.idle * SECOND / 4))
        until = round((time.time() - feed.idle) * SECOND) // step * step
        return {_CLOCK: until} if until > start.get(_CLOCK, BEGINNING) else {}

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
            return self._with_before([_Part(0, first, (), NEVER, NEVER)], start)
        known = [entry.latest for entry in entries[:first]]
        latest = max([start.get(_CLOCK, BEGINNING), *(NEVER if at is None else at for at in known)])
        runs = _runs([entry.size for entry in entries[first:last]], self._feed.readers)
        parts = [
            _Part(i, first + run.start, entries[first + run.start : first + run.stop], latest)
            for i, run in enumerate(runs)
        ]
        if end.get(_CLOCK) != start.get(_CLOCK):
            parts.append(_Part(len(parts), last, (), latest, end[_CLOCK]))
        return self._with_before(parts, start)

    def _with_before(self, parts: list[_Part], start: dict[str, int]) -> list[_Part]:
        """The same, and after an edit the files that were read before; first in a generation what the shards
        have kept."""
        if self._is_open(start):
            past = self._log.entries[: start["files"]]
            parts = [*parts, _Part(len(parts), 0, past, BEGINNING, is_past=True)]
        if _STATES in start:
            readers, names = self._feed.readers, sorted(self._feed.generation.states)
            shares = [share for i in range(readers) if (share := names[i::readers])]
            parts = [
                *parts,
                *(_Part(i, 0, (), BEGINNING, states=s) for i, s in enumerate(shares, len(parts))),
            ]
        return parts

    # --- in an executor ---

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Part)
        feed = self._feed
        if partition.states:
            return _kept(feed, partition.states)
        if partition.is_past:
            return recalled(feed.work, feed.reading, partition.entries, feed.shards)
        return read_part(feed, partition)


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


def _taken(offset: dict[str, int]) -> dict[str, int]:
    """An offset at which the shards have what was kept."""
    return {name: value for name, value in offset.items() if name != _STATES}


def _kept(feed: Feed, names: Iterable[str]) -> Iterator[pa.RecordBatch]:
    """What shards have kept, for those that go on."""
    for name in names:
        stage, shard = map(int, name.split("-"))
        yield row(KEPT, shard, (feed.checkpoint.states / name).read_bytes(), stage)


def read_part(feed: Feed, part: _Part) -> Iterator[pa.RecordBatch]:
    """Read files: what can matter, packed; how far time has come; and what is to be said of it."""
    report, found = taken(feed, part, closed=True)
    for mine in found:
        report.passed[mine.number] = report.passed.get(mine.number, 0) + len(mine.events)
        yield from packed(mine, feed.shards, part.number)
    yield from progress(_reached(feed.work, part, report), feed.shards, part.number)
    yield row(REPORT, part.number % feed.shards, msgspec.msgpack.encode(report), part.number)


def taken(feed: Feed, part: InputPartition, *, closed: bool) -> tuple[Report, list[Mine]]:
    """What a reader says of files, and what of them can matter; of a file that cannot be read to its end
    nothing does."""
    assert isinstance(part, _Part)
    whole, size, bad = Reader(feed.work), 0, list[tuple[str, str]]()
    found: list[Mine] = []
    for i, entry in enumerate(part.entries):
        reader = Reader(feed.work, closed=closed, latest=part.latest, strict=feed.strict)
        try:
            found += _read_file(feed, entry.input_file(part.first + i), reader)
        except (HoldfastError, OSError) as error:
            fault = _fault(entry, error)
            if feed.strict or not feed.quarantine:
                return Report(failed=(fault.exit_status, str(fault))), []
            bad.append((entry.path, str(fault)))
            continue
        whole.add(reader)
        size += entry.size
    if part.until not in (None, NEVER):
        whole.reached = dict.fromkeys(feed.work.clocks, part.until)
    read = len(part.entries) - len(bad)
    report = whole.report(files=read, bytes=size, bad_files=bad, end=part.until == NEVER)
    return report, [_joined(some, closed=closed) for some in _alike(found)]


def _read_file(feed: Feed, file: InputFile, reader: Reader) -> list[Mine]:
    """What of a file can matter to each operator, of each topic."""
    found = (mine for topic, batch in reader.read(file, feed.reading) for mine in reader.take(topic, batch))
    whole = [_joined(some, closed=False) for some in _alike(found)]
    return [reader.complete(mine, [file], feed.reading) for mine in whole]


def _alike(found: Iterable[Mine]) -> Iterable[list[Mine]]:
    """Those of one operator and topic together."""
    kept: dict[tuple[int, str], list[Mine]] = {}
    for mine in found:
        kept.setdefault((mine.number, mine.topic), []).append(mine)
    return kept.values()


def _joined(some: Sequence[Mine], *, closed: bool) -> Mine:
    """What an operator wants of several batches of a topic; together they may be a closed part."""
    first = some[0]
    whole = concatenate(mine.events for mine in some)
    if closed and len(some) > 1 and first.operator.compacts:
        whole = first.operator.machine.reduce({first.topic: whole})[first.topic]
    return first._replace(events=whole)


def _reached(work: Work, part: _Part, report: Report) -> dict[str, Instant]:
    """How far time has come, where an operator minds; at the end it has run out."""
    if part.until == NEVER:
        return dict.fromkeys(work.clocks, NEVER)
    return {topic: at for topic, at in report.reached.items() if topic in work.clocks}


def _fault(entry: Entry, error: HoldfastError | OSError) -> HoldfastError:
    if isinstance(error, HoldfastError):
        return error
    if isinstance(error, FileNotFoundError):
        return InputError(f"{entry.path}: removed before it could be read; put it back")
    return InputError(f"{entry.path}: {error.strerror or error}")
