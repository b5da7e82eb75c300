"""Live on Spark: files as they arrive become notifications, each once, whatever dies on the way.

    files ─▶ readers reduce and pack ─▶ shuffle by shard ─▶ states step ─▶ sink ─▶ ledger

Spark keeps offsets and states; a batch that was not committed is done again from the same files and
the same states, and says the same again, which the sink recognises by the batch's number.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ....errors import HoldfastError, InputError, UsageError
from ....files.reading import Reading, TimeUnit, parse_zone
from ....lang.app import App
from ....lang.check import check, require_final
from ....lang.condition import Checked, Condition, Guarded
from ....lang.parse import as_app
from ....model.batch import from_ipc
from ....model.event import Notification
from ....model.instant import BEGINNING
from ....model.qos import Correct
from ...table import schema_of
from ..pack import REPORT, TOLD
from ..plan import Work
from ..reading import Report, reported
from ..session import said_to, session
from .checkpoint import FIRST, Checkpoint, Plan, planned, require_told_apart
from .damage import Done, done, require_whole
from .feed import FORMAT, Feed, FeedSource
from .generation import HandOver, handed_over, moved, sweep
from .ledger import Change, Counts, Known, Ledger, Record, added, standing
from .log import FileLog, Folder
from .log import folders as folders_in
from .sink import (
    CallbackSink,
    JsonLinesSink,
    ParquetSink,
    Sink,
    append,
    as_said,
    json_lines,
    lines,
    open_sink,
    require_ours,
)
from .state import STORE, stated

SETTINGS = {
    **STORE,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.minBatchesToRetain": "10",
}
"""What a live query sets in its session."""


@dataclass(frozen=True)
class Live:
    """What to run, and how."""

    checked: Checked
    reading: Reading
    folders: tuple[Folder, ...]
    checkpoint: Path
    sink: str | Callable[[Notification], Any] = "console"
    late: Path | None = None
    """Where late events go; by default ``late.jsonl`` in the checkpoint."""
    rejects: Path | None = None
    shards: int | None = None
    stages: int | None = None
    """How many there are at least, one after the other, though the definition needs fewer."""
    every: float | None = 1.0
    """Seconds between batches; ``None`` reads what is there now and ends."""
    finish: bool = False
    """At the end let time run out: what ordered conditions hold back is processed."""
    settle: float = 2.0
    batch_bytes: int = 256 << 20
    quarantine: bool = False
    strict: bool = False
    idle: float | None = None
    """How many seconds event time stays behind the clock at most, though nothing comes; by default only
    readings tell the time."""

    def __post_init__(self) -> None:
        ordered: list[Condition | Guarded] = [*self.checked.conditions, *self.checked.guarded]
        for one in ordered:
            if isinstance(one.delivery.late, Correct):
                raise UsageError(
                    f"'{one.name}' corrects what it has told ('late correct'): a live query on Spark cannot "
                    "take anything back"
                )


def live(
    app: App | str,
    *folders: str | Path,
    checkpoint: str | Path,
    map: Mapping[str, str] | None = None,
    topic: str | None = None,
    zone: str = "UTC",
    time_format: str | None = None,
    time_unit: TimeUnit | None = None,
    wide: bool = False,
    lets: Mapping[str, float | int | str | bool] | None = None,
    **how: Any,
) -> Live:
    """A live query over folders (``PATH`` or ``Topic=PATH``), for ``run`` or ``started``.

    ``how`` are the further fields of ``Live``; ``sink`` may be a function that is called with each
    notification.
    """
    known = as_app(app)
    require_final(known, "a live query on Spark")
    checked = check(known, lets=lets)
    reading = Reading(checked.topics, map or {}, parse_zone(zone), time_format, time_unit, topic, wide)
    found = folders_in([f"dir:{folder}" for folder in folders], [t.name for t in checked.topics])
    return Live(checked, reading, found, Path(checkpoint), **how)


Progress = Callable[[int, Record, int], None]
"""Told of each batch: its number, the record, and how many files wait to be read."""


def _silently(*_: object) -> None:
    """Tell nobody."""


class Query:
    """A live query that runs."""

    def __init__(
        self, start: Callable[[], StreamingQuery], batches: _Batches, checkpoint: Checkpoint
    ) -> None:
        self._start, self._batches, self._checkpoint = start, batches, checkpoint
        self._running: StreamingQuery | None = self._started()
        self._restarts, self._done, self._pause = 0, batches.done, 0.0

    def wait(self, seconds: float) -> bool:
        """Wait so long, or until the query has ended; whether it has.  What ended it is raised.

        What Spark has ended because its own processes were too slow or got lost is started again after a
        pause, unless that happens again and again and no batch is done.
        """
        if self._running is None:
            time.sleep(min(seconds, max(0.0, self._pause - time.monotonic())))
            if time.monotonic() >= self._pause:
                self._running = self._started()
            return False
        try:
            return bool(self._running.awaitTermination(seconds))  # type: ignore[arg-type]
        except (PySparkException, Py4JError, OSError) as error:
            fault = self._batches.fault or _explained(error)
            if self._batches.done > self._done:
                self._restarts, self._done = 0, self._batches.done
            is_stopping = self._checkpoint.stop.exists()
            if self._batches.fault or is_stopping or not is_passing(error) or self._restarts == RESTARTS:
                raise fault from error
            self._batches.ledger.note_restart(time.time(), str(fault))
            self._running, self._pause = None, time.monotonic() + 2**self._restarts
            self._restarts += 1
            return False

    def _started(self) -> StreamingQuery:
        try:
            return self._start()
        except (PySparkException, Py4JError, OSError) as error:
            raise _explained(error) from error

    def end(self) -> None:
        """End it where it is, if it still is."""
        if self._running is not None:
            _quietly(self._running.stop)

    def stop(self, patience: float = 60.0) -> None:
        """Finish the batch at work and stop; after so many seconds stop in the middle of it."""
        self._checkpoint.stop.touch()
        until = time.monotonic() + patience
        while self._running is not None and time.monotonic() < until and not self.wait(0.2):
            if not self._running.status["isTriggerActive"]:
                break
        if self._running is not None:
            self._running.stop()

    @property
    def record(self) -> Record:
        """What has been done so far."""
        return self._batches.ledger.before(_LAST)


_LAST = 2**62  # later than every batch

RESTARTS = 8
"""How often a query is started again without a batch that is done between, after 1, 2, 4 … seconds:
about four minutes in all."""

_PASSING = re.compile(
    r"timed out|TimeoutException|failed to connect back|worker exited unexpectedly|EOFException"
    r"|Connection (reset|refused)|Broken pipe|ExecutorLostFailure",
    re.IGNORECASE,
)


def is_passing(error: Exception) -> bool:
    """Whether Spark ended a query because of its own processes, which may do better the next time."""
    return isinstance(error, PySparkException) and _PASSING.search(str(error)) is not None


@contextmanager
def started(
    live: Live,
    spark: SparkSession | None = None,
    *,
    master: str | None = None,
    progress: Progress = _silently,
) -> Iterator[Query]:
    """Start a live query, or go on with one; it is stopped at the end of the context.

    Without a session of yours one is started, and what Spark says goes to ``spark.log`` in the
    checkpoint.
    """
    checkpoint = Checkpoint(Path(os.path.abspath(live.checkpoint)))
    with checkpoint.locked():
        began = old.generation if (old := checkpoint.load()) else FIRST
        require_whole(replace(checkpoint, generation=began.number), began)
        checkpoint.stop.unlink(missing_ok=True)

        @cache
        def ours() -> SparkSession:
            if spark is not None:
                return spark
            with said_to(checkpoint.folder / "spark.log"):
                return session(master)

        plan, batches = prepared(live, checkpoint, progress, partial(handed_over, ours))
        feed = feed_of(live, checkpoint, plan, readers=ours().sparkContext.defaultParallelism)
        start = partial(_start, ours(), feed, plan.stages, live.every, batches)
        query = Query(start, batches, checkpoint)
        try:
            yield query
        finally:
            query.end()


def prepared(
    live: Live,
    checkpoint: Checkpoint,
    progress: Progress,
    hand_over: HandOver,
    last: Callable[[Path], Done | None] = done,
) -> tuple[Plan, _Batches]:
    """Everything but Spark: what cannot go on is refused, and what goes on is written down.  Where it needs
    more stages than it had, what the shards keep is handed over to another generation; ``last`` says what has
    been done in one."""
    ledger = Ledger(checkpoint.ledger)
    record = ledger.before(_LAST)
    if record.finished and not live.finish:
        raise UsageError(f"{checkpoint.folder}: --finish has ended this stream; start a new checkpoint")
    old = checkpoint.load()
    began = FIRST if old is None else old.generation
    came = last(replace(checkpoint, generation=began.number).spark)
    following = began.batch + (0 if came is None else came.batch + 1)
    record = ledger.before(following)  # that one is perhaps done again
    files = record.files + record.quarantined
    if old is not None and not old.quotes:
        held = standing(checkpoint.ledger).holding
        require_told_apart(live.checked, ((name, scope) for name, scope, _ in held))
    plan = planned(old, live.checked, _read_as(live), live.shards, record.reached, files, stages=live.stages)
    batches = _Batches(live, plan, ledger, checkpoint, progress)
    if old is not None and plan.stages > old.stages:
        try:
            plan = moved(checkpoint, old, plan, came, hand_over)
        except (PySparkException, Py4JError) as error:
            raise _explained(error) from error
        batches.first = plan.generation.batch
    checkpoint.save(plan)
    now = replace(checkpoint, generation=plan.generation.number)
    sweep(now, last(now.spark))
    batches.claim(plan.id)
    ledger.keep_only(plan.meanings)
    return plan, batches


def feed_of(live: Live, checkpoint: Checkpoint, plan: Plan, readers: int) -> Feed:
    """What the readers of a live query need."""
    return Feed(
        replace(checkpoint, generation=plan.generation.number),
        plan.work(live.checked),
        plan.shards,
        live.reading,
        live.folders,
        live.settle,
        live.batch_bytes,
        readers,
        quarantine=live.quarantine,
        strict=live.strict,
        finish=live.finish,
        idle=live.idle,
        generation=plan.generation,
    )


def run(
    live: Live,
    spark: SparkSession | None = None,
    *,
    master: str | None = None,
    progress: Progress = _silently,
    is_enough: Callable[[], bool] = lambda: False,
) -> Record:
    """Run a live query to its end, or until it is enough."""
    with started(live, spark, master=master, progress=progress) as query:
        while not query.wait(0.5):
            if is_enough():
                query.stop()
                break
        return query.record


def _start(
    spark: SparkSession, feed: Feed, stages: int, every: float | None, batches: _Batches
) -> StreamingQuery:
    own = spark.newSession()
    for name, value in SETTINGS.items():
        own.conf.set(name, value)
    own.conf.set("spark.sql.shuffle.partitions", min(feed.shards, feed.readers))
    own.dataSource.register(FeedSource)
    rows = own.readStream.format(FORMAT).option("feed", feed.to_text()).load()
    said = stated(rows, feed.work, stages, feed.shards)
    writer = said.writeStream.foreachBatch(batches.write).option(
        "checkpointLocation", str(feed.checkpoint.spark)
    )
    trigger = {"availableNow": True} if every is None else {"processingTime": f"{every} seconds"}
    return writer.trigger(**trigger).start()


class _Batches:
    """The driver's side: each batch into the sink, then into the ledger."""

    def __init__(
        self, live: Live, plan: Plan, ledger: Ledger, checkpoint: Checkpoint, progress: Progress
    ) -> None:
        self.ledger, self._progress = ledger, progress
        self.first = plan.generation.batch
        """The batch that Spark's first one is."""
        self.fault: HoldfastError | None = None
        self.done = 0
        """How many batches have been written since it began."""
        self._topics = live.checked.published
        self._sources = _sources(plan.work(live.checked))
        ours = ledger.claims()
        self._sink: Sink = (
            open_sink(live.sink, self._topics, plan.id, ours)
            if isinstance(live.sink, str)
            else CallbackSink(live.sink, self._topics)
        )
        self._log = FileLog(checkpoint.log)
        self._late = Path(os.path.abspath(live.late or checkpoint.folder / "late.jsonl"))
        self._rejects = Path(os.path.abspath(live.rejects or checkpoint.folder / "rejects.jsonl"))
        self._quarantine = checkpoint.folder / "quarantine.jsonl"
        require_ours(self._late, ours, f"--late {live.late}")
        require_ours(self._rejects, ours, f"--rejects {live.rejects}")
        written = [self._late, self._rejects, checkpoint.folder]
        if isinstance(self._sink, (ParquetSink, JsonLinesSink)):
            written.append(self._sink.path)
        _require_apart(written, live.folders)
        for path in filter(checkpoint.has_generations_at, written):
            raise UsageError(f"{path} lies where the checkpoint removes what is over; name another place")

    def claim(self, query: str) -> None:
        """Say whose the files are before anything is written to them."""
        files = [self._late, self._rejects, self._quarantine]
        match self._sink:
            case ParquetSink():
                self._sink.claim(query)
            case JsonLinesSink(path):
                files.append(path)
        self.ledger.claim(files)

    def write(self, frame: DataFrame, number: int) -> None:
        """Take what a batch says; doing it again for the same batch has no further effect."""
        batch = self.first + number
        try:
            self._write(batch, time.time(), frame.toArrow())
        except HoldfastError as error:
            self.fault = error
            raise
        except OSError as error:
            self.fault = InputError(
                f"cannot write what batch {batch} says: {os.strerror(error.errno or 0)}; nothing of it is "
                "lost: run the same command again when there is room"
            )
            raise

    def _write(self, batch: int, started: float, rows: pa.Table) -> None:
        reads = [reported(raw) for raw in _packed(rows, REPORT)]
        for read in reads:
            read.require_success()
        tables = [pa.Table.from_batches([from_ipc(raw)]) for raw in _packed(rows, TOLD)]
        said = as_said(tables or [schema_of(self._topics).empty_table()])
        is_late = pc.equal(said.column("status"), "late")
        late, told = said.filter(is_late), said.filter(pc.invert(is_late))
        record = self.ledger.before(batch)
        self._sink.write(batch, told, record.lengths)
        append(self._late, lines(self._topics, late), record.lengths)
        rejects = [
            {"file": file, "row": row, "reason": why, "data": msgspec.Raw(data.encode())}
            for read in reads
            for file, row, why, data in read.rejects
        ]
        append(self._rejects, json_lines(rejects), record.lengths)
        bad = [
            {"batch": batch, "file": file, "reason": why} for read in reads for file, why in read.bad_files
        ]
        append(self._quarantine, json_lines(bad), record.lengths)
        self._add(record, reads, told, late)
        record.started, record.written = started, time.time()
        self.ledger.commit(batch, record, _changes(told), _known(told))
        self.done += 1
        self._log.refresh()
        self._progress(batch, record, len(self._log.entries) - record.files - record.quarantined)

    def _add(self, record: Record, reads: list[Report], told: pa.Table, late: pa.Table) -> None:
        record.last_rows = 0
        for read in reads:
            record.files += read.files
            record.bytes += read.bytes
            record.rows += read.rows
            record.last_rows += read.rows
            record.quarantined += len(read.bad_files)
            record.finished |= read.end
            for topic, at in read.reached.items():
                record.reached[topic] = max(at, record.reached.get(topic, BEGINNING))
            for name in ("rejected", "other_topics", "outside", "events"):
                setattr(record, name, added(getattr(record, name), getattr(read, name)))
        for name, (number, topics) in self._sources.items():
            counts = record.subscriptions.setdefault(name, Counts())
            counts.read += sum(read.events.get(topic, 0) for read in reads for topic in topics)
            counts.passed += sum(read.passed.get(number, 0) for read in reads)
        for table, what in ((told, "transitions"), (late, "late")):
            for found in table.column("subscription").value_counts().to_pylist():
                counts = record.subscriptions[found["values"]]
                setattr(counts, what, getattr(counts, what) + found["counts"])


def _sources(work: Work) -> dict[str, tuple[int, tuple[str, ...]]]:
    """For each subscription its operator, and the topics of readings that it hears."""
    return {
        name: (number, topics)
        for number, operator in work.operators.items()
        for name, topics in operator.listening().items()
    }


def _packed(rows: pa.Table, kind: int) -> list[bytes]:
    return rows.filter(pc.equal(rows.column("machine"), kind)).column("events").to_pylist()


def _changes(told: pa.Table) -> list[Change]:
    """What the batch leaves behind for each scope: since when it holds, or that it does not."""
    times = (told.column(name).cast(pa.int64()).to_pylist() for name in ("time", "since"))
    last = {
        scope: time if status == "ingress" else None if status == "egress" else since
        for (scope, status), time, since in zip(_statuses(told), *times, strict=True)
        if status != "atomic"
    }
    return [(*scope, since) for scope, since in last.items()]


def _known(told: pa.Table) -> list[Known]:
    """Of which scopes the batch says that it is known what holds there, or that it is not."""
    last = {scope: status != "unknown" for scope, status in _statuses(told) if status != "atomic"}
    return [(*scope, known) for scope, known in last.items()]


def _statuses(told: pa.Table) -> Iterator[tuple[tuple[str, str | None], str]]:
    columns = (told.column(name).to_pylist() for name in ("subscription", "scope", "status"))
    return (((subscription, scope), status) for subscription, scope, status in zip(*columns, strict=True))


def _require_apart(written: Iterable[Path], folders: Iterable[Folder]) -> None:
    """Nothing that the query writes may lie where it would read it."""
    for folder in folders:
        for path in written:
            if Path(os.path.realpath(path)).is_relative_to(folder.path):
                raise UsageError(f"{path} lies in the source {folder.path}, where it would be read; move it")


def _read_as(live: Live) -> dict[str, str]:
    """What must stay as it is as long as the checkpoint is used, by the options that say it."""
    reading = live.reading
    folders = (f"{f'{folder.topic}=' if folder.topic else ''}{folder.path}" for folder in live.folders)
    return {
        "--source": ", ".join(folders),
        "--map": ",".join(f"{ours}={theirs}" for ours, theirs in sorted(reading.rename.items())),
        "--topic": reading.topic or "",
        "--zone": str(reading.zone),
        "--time-format": reading.time_format or "",
        "--time-unit": reading.time_unit or "",
        **({"--wide": "yes"} if reading.wide else {}),
    }


def _quietly(action: Callable[[], Any]) -> None:
    """Do it where there is still somebody to do it."""
    with suppress(PySparkException, Py4JError, OSError):
        action()


def _explained(error: Exception) -> HoldfastError:
    """What Spark says, without its stacks: how it begins, and what lies at the bottom of it."""
    if isinstance(error, PySparkException):
        lines = [line.strip() for line in str(error).splitlines()]
        causes = [line for line in lines[1:] if re.match(r"(Caused by: )?[\w.]*(Error|Exception)\b", line)]
        return InputError("\n  ".join(["Spark ended the query:", lines[0][:500], *causes[-1:]]))
    if isinstance(error, Py4JJavaError):
        return InputError(f"Spark cannot run the query:\n  {str(error.java_exception).splitlines()[0][:500]}")
    return InputError(
        "Spark has gone away (its Java process ended); run the same command again to go on where it was"
    )
