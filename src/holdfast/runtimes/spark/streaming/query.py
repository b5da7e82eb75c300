"""Streaming queries: files that arrive become notifications, each exactly once, even after a crash.

    files ─▶ readers compact and pack ─▶ shuffle by shard ─▶ shards run operators ─▶ sink ─▶ ledger

Spark stores offsets and states. A batch that was not committed is repeated with the same files and the same
states. It has the same output, which the sink recognizes by the number of the batch.
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
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ....definition.app import App
from ....definition.check import check, require_final
from ....definition.parse import as_app
from ....errors import HoldfastError, InputError, UsageError
from ....files.reading import Reading, TimeUnit, parse_zone
from ....lang.condition import Checked
from ....model.batch import from_ipc
from ....model.event import Notification
from ....model.instant import BEGINNING
from ....model.qos import Correct
from ...table import schema_of
from ..classic import SPARK_ERRORS, core_count, untranslated_message
from ..job import Job
from ..pack import PacketKind
from ..reading import Report, decode_report
from ..session import redirect_stderr, session
from .checkpoint import FIRST, Checkpoint, Plan, plan_query
from .damage import Commit, last_commit, require_whole
from .feed import FORMAT, FeedSource, StreamSettings
from .generation import HandOver, hand_over_states, move_to_next_generation, remove_old_generations
from .ledger import ActiveChange, Counts, KnownChange, Ledger, Record, add_counts
from .log import FileLog, Folder
from .log import folders as folders_in
from .output import (
    BatchOutput,
    CallbackOutput,
    JsonLinesOutput,
    ParquetOutput,
    append,
    in_emission_order,
    json_lines,
    lines,
    open_output,
    require_own_file,
)
from .processor import STORE_SETTINGS, run_stages

SETTINGS = {
    **STORE_SETTINGS,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.minBatchesToRetain": "10",
}
"""The settings that a query makes in its session."""


@dataclass(frozen=True)
class Live:
    """A streaming query that is not started yet. The fields are the options of `holdfast run`."""

    checked: Checked
    reading: Reading
    folders: tuple[Folder, ...]
    checkpoint: Path
    sink: str | Callable[[Notification], Any] = "console"
    late: Path | None = None
    """The file of late events; by default `late.jsonl` in the checkpoint."""
    rejects: Path | None = None
    shards: int | None = None
    stages: int | None = None
    """The least number of stages, even if the definition needs fewer."""
    every: float | None = 1.0
    """Seconds between batches; `None` processes the existing files and ends."""
    finish: bool = False
    """Whether to end event time after the last file, so that events that ordered conditions hold back are
    processed."""
    settle: float = 2.0
    batch_bytes: int = 256 << 20
    quarantine: bool = False
    strict: bool = False
    idle: float | None = None
    """How many seconds event time stays behind the wall clock at most if no files arrive; by default only
    readings advance it."""

    def __post_init__(self) -> None:
        for condition in self.checked.conditions:
            if isinstance(condition.delivery.late, Correct):
                raise UsageError(
                    f"'{condition.name}' corrects earlier notifications ('late correct'): "
                    "a live query on Spark cannot take anything back"
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
    """Return a streaming query over folders (`PATH` or `Topic=PATH`). Pass it to `run` or `started`.

    `how` has further fields of `Live`. `sink` may be a function that is called with each notification.
    """
    known = as_app(app)
    require_final(known, "a live query on Spark")
    checked = check(known, lets=lets)
    reading = Reading(checked.topics, map or {}, parse_zone(zone), time_format, time_unit, topic, wide)
    found = folders_in([f"dir:{folder}" for folder in folders], [t.name for t in checked.topics])
    return Live(checked, reading, found, Path(checkpoint), **how)


Progress = Callable[[int, Record, int], None]
"""Called after each batch with its number, the record, and how many files wait to be read."""


def _show_nothing(*_: object) -> None:
    """Ignore progress. This is the default callback for it."""


class Query:
    """A running query. It restarts by itself after faults of Spark's own processes."""

    def __init__(
        self, start: Callable[[], StreamingQuery], batches: _Batches, checkpoint: Checkpoint
    ) -> None:
        self._start, self._batches, self._checkpoint = start, batches, checkpoint
        self._running: StreamingQuery | None = self._start_query()
        self._restarts, self._done, self._pause = 0, batches.written, 0.0

    def wait(self, seconds: float) -> bool:
        """Wait until the query ends, at most for `seconds`. Return whether it has ended, and raise its error.

        If Spark ended the query because its own processes were too slow or got lost, the query restarts after
        a pause, at most `RESTARTS` times without a completed batch.
        """
        if self._running is None:
            time.sleep(min(seconds, max(0.0, self._pause - time.monotonic())))
            if time.monotonic() >= self._pause:
                self._running = self._start_query()
            return False
        try:
            return bool(self._running.awaitTermination(seconds))  # type: ignore[arg-type]
        except (*SPARK_ERRORS, OSError) as error:
            fault = self._batches.fault or _explain(error)
            if self._batches.written > self._done:
                self._restarts, self._done = 0, self._batches.written
            is_stopping = self._checkpoint.stop.exists()
            if self._batches.fault or is_stopping or not is_passing(error) or self._restarts == RESTARTS:
                raise fault from error
            self._batches.ledger.record_restart(time.time(), str(fault))
            self._running, self._pause = None, time.monotonic() + 2**self._restarts
            self._restarts += 1
            return False

    def _start_query(self) -> StreamingQuery:
        try:
            return self._start()
        except (*SPARK_ERRORS, OSError) as error:
            raise _explain(error) from error

    def end(self) -> None:
        """Stop the query at once, even inside a batch."""
        if self._running is not None:
            _ignore_spark_errors(self._running.stop)

    def stop(self, patience: float = 60.0) -> None:
        """Stop the query after the current batch, or inside the batch after `patience` seconds."""
        self._checkpoint.stop.touch()
        until = time.monotonic() + patience
        while self._running is not None and time.monotonic() < until and not self.wait(0.2):
            if not self._running.status["isTriggerActive"]:
                break
        if self._running is not None:
            self._running.stop()

    @property
    def record(self) -> Record:
        """The record of all completed batches, read from the ledger."""
        return self._batches.ledger.before(_LAST)


_LAST = 2**62  # later than every batch

RESTARTS = 8
"""How many times a query restarts without a completed batch, after 1, 2, 4 … seconds: about four minutes
in all."""

_PASSING = re.compile(
    r"timed out|TimeoutException|failed to connect back|worker exited unexpectedly|EOFException"
    r"|Connection (reset|refused)|Broken pipe|ExecutorLostFailure",
    re.IGNORECASE,
)


def is_passing(error: Exception) -> bool:
    """Whether Spark ended a query because of a fault of its own processes, so that a restart may help."""
    return isinstance(error, PySparkException) and _PASSING.search(str(error)) is not None


@contextmanager
def started(
    live: Live,
    spark: SparkSession | None = None,
    *,
    master: str | None = None,
    progress: Progress = _show_nothing,
) -> Iterator[Query]:
    """Start or continue a query, and stop it at the end of the context.

    Without a session of yours a new session starts, and Spark's own messages go to `spark.log` in the
    checkpoint.
    """
    checkpoint = Checkpoint(Path(os.path.abspath(live.checkpoint)))
    with checkpoint.lock():
        began = old.generation if (old := checkpoint.load()) else FIRST
        require_whole(replace(checkpoint, generation=began.number), began)
        checkpoint.stop.unlink(missing_ok=True)

        @cache
        def own_session() -> SparkSession:
            if spark is not None:
                return spark
            with redirect_stderr(checkpoint.folder / "spark.log"):
                return session(master)

        plan, batches = prepare(live, checkpoint, progress, partial(hand_over_states, own_session))
        feed = feed_of(live, checkpoint, plan, readers=core_count(own_session()))
        start = partial(_start, own_session(), feed, plan.stages, live.every, batches)
        query = Query(start, batches, checkpoint)
        try:
            yield query
        finally:
            query.end()


def prepare(
    live: Live,
    checkpoint: Checkpoint,
    progress: Progress,
    hand_over: HandOver,
    last: Callable[[Path], Commit | None] = last_commit,
) -> tuple[Plan, _Batches]:
    """Plan a query and save the plan, without Spark. Raises an error if the query cannot continue.

    If the definition needs more stages, `hand_over` moves the states of the shards to a new generation.
    `last` returns the last commit of a Spark checkpoint.
    """
    ledger = Ledger(checkpoint.ledger)
    record = ledger.before(_LAST)
    if record.finished and not live.finish:
        raise UsageError(f"{checkpoint.folder}: --finish has ended this stream; start a new checkpoint")
    old = checkpoint.load()
    began = FIRST if old is None else old.generation
    commit = last(replace(checkpoint, generation=began.number).spark)
    following = began.batch + (0 if commit is None else commit.batch + 1)
    record = ledger.before(following)  # that one is perhaps done again
    files = record.files + record.quarantined
    plan = plan_query(
        old, live.checked, _reading_options(live), live.shards, record.watermarks, files, stages=live.stages
    )
    batches = _Batches(live, plan, ledger, checkpoint, progress)
    if old is not None and plan.stages > old.stages:
        try:
            plan = move_to_next_generation(checkpoint, old, plan, commit, hand_over)
        except SPARK_ERRORS as error:
            raise _explain(error) from error
        batches.first = plan.generation.batch
    checkpoint.save(plan)
    now = replace(checkpoint, generation=plan.generation.number)
    remove_old_generations(now, last(now.spark))
    batches.claim(plan.id)
    ledger.remove_others(plan.meanings)
    return plan, batches


def feed_of(live: Live, checkpoint: Checkpoint, plan: Plan, readers: int) -> StreamSettings:
    """Return the settings that the readers of a query need."""
    return StreamSettings(
        replace(checkpoint, generation=plan.generation.number),
        plan.job(live.checked),
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
    progress: Progress = _show_nothing,
    is_enough: Callable[[], bool] = lambda: False,
) -> Record:
    """Run a query until it ends or `is_enough` returns true. Return the record of its batches."""
    with started(live, spark, master=master, progress=progress) as query:
        while not query.wait(0.5):
            if is_enough():
                query.stop()
                break
        return query.record


def _start(
    spark: SparkSession, feed: StreamSettings, stages: int, every: float | None, batches: _Batches
) -> StreamingQuery:
    own = spark.newSession()
    for name, value in SETTINGS.items():
        own.conf.set(name, value)
    own.conf.set("spark.sql.shuffle.partitions", min(feed.shards, feed.readers))
    own.dataSource.register(FeedSource)
    rows = own.readStream.format(FORMAT).option("feed", feed.to_text()).load()
    notifications = run_stages(rows, feed.job, stages, feed.shards)
    writer = notifications.writeStream.foreachBatch(batches.write).option(
        "checkpointLocation", str(feed.checkpoint.spark)
    )
    trigger = {"availableNow": True} if every is None else {"processingTime": f"{every} seconds"}
    return writer.trigger(**trigger).start()


class _Batches:
    """The driver's part of a query.

    It writes the output of each batch to the sink, then the record of the batch to the ledger.
    """

    def __init__(
        self, live: Live, plan: Plan, ledger: Ledger, checkpoint: Checkpoint, progress: Progress
    ) -> None:
        self.ledger, self._progress = ledger, progress
        self.first = plan.generation.batch
        """The batch that Spark's first one is."""
        self.fault: HoldfastError | None = None
        self.written = 0
        """How many batches have been written since it began."""
        self._topics = live.checked.output_topics
        self._sources = _sources(plan.job(live.checked))
        own_session = ledger.claims()
        self._sink: BatchOutput = (
            open_output(live.sink, self._topics, plan.id, own_session)
            if isinstance(live.sink, str)
            else CallbackOutput(live.sink, self._topics)
        )
        self._log = FileLog(checkpoint.log)
        self._late = Path(os.path.abspath(live.late or checkpoint.folder / "late.jsonl"))
        self._rejects = Path(os.path.abspath(live.rejects or checkpoint.folder / "rejects.jsonl"))
        self._quarantine = checkpoint.folder / "quarantine.jsonl"
        require_own_file(self._late, own_session, f"--late {live.late}")
        require_own_file(self._rejects, own_session, f"--rejects {live.rejects}")
        written = [self._late, self._rejects, checkpoint.folder]
        if isinstance(self._sink, (ParquetOutput, JsonLinesOutput)):
            written.append(self._sink.path)
        _require_apart(written, live.folders)
        for path in filter(checkpoint.has_generations_at, written):
            raise UsageError(f"{path} lies where the checkpoint removes what is over; name another place")

    def claim(self, query: str) -> None:
        """Record that the output files belong to this query, before anything is written to them."""
        files = [self._late, self._rejects, self._quarantine]
        match self._sink:
            case ParquetOutput():
                self._sink.claim(query)
            case JsonLinesOutput(path):
                files.append(path)
        self.ledger.claim(files)

    def write(self, frame: DataFrame, number: int) -> None:
        """Write the output of a batch. A second call with the same batch has no further effect."""
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
        reads = [decode_report(raw) for raw in _payloads(rows, PacketKind.REPORT)]
        for read in reads:
            read.require_success()
        tables = [pa.Table.from_batches([from_ipc(raw)]) for raw in _payloads(rows, PacketKind.NOTIFICATIONS)]
        notifications = in_emission_order(tables or [schema_of(self._topics).empty_table()])
        is_late = pc.equal(notifications.column("status"), "late")
        late, timely = notifications.filter(is_late), notifications.filter(pc.invert(is_late))
        record = self.ledger.before(batch)
        self._sink.write(batch, timely, record.lengths)
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
        self._add(record, reads, timely, late)
        record.started, record.written = started, time.time()
        self.ledger.commit(batch, record, _active_changes(timely), _known_changes(timely))
        self.written += 1
        self._log.refresh()
        self._progress(batch, record, len(self._log.entries) - record.files - record.quarantined)

    def _add(self, record: Record, reads: list[Report], timely: pa.Table, late: pa.Table) -> None:
        record.last_rows = 0
        for read in reads:
            record.files += read.files
            record.bytes += read.bytes
            record.rows += read.rows
            record.last_rows += read.rows
            record.quarantined += len(read.bad_files)
            record.finished |= read.end
            for topic, at in read.watermarks.items():
                record.watermarks[topic] = max(at, record.watermarks.get(topic, BEGINNING))
            for name in ("rejected", "other_topics", "outside", "events"):
                setattr(record, name, add_counts(getattr(record, name), getattr(read, name)))
        for name, (number, topics) in self._sources.items():
            counts = record.subscriptions.setdefault(name, Counts())
            counts.read += sum(read.events.get(topic, 0) for read in reads for topic in topics)
            counts.passed += sum(read.passed.get(number, 0) for read in reads)
        for table, what in ((timely, "transitions"), (late, "late")):
            for found in table.column("subscription").value_counts().to_pylist():
                counts = record.subscriptions[found["values"]]
                setattr(counts, what, getattr(counts, what) + found["counts"])


def _sources(job: Job) -> dict[str, tuple[int, tuple[str, ...]]]:
    """Return the operator of each subscription and the input topics that it consumes."""
    return {
        name: (number, topics)
        for number, operator in job.operators.items()
        for name, topics in operator.topics_by_name().items()
    }


def _payloads(rows: pa.Table, kind: PacketKind) -> list[bytes]:
    return rows.filter(pc.equal(rows.column("kind"), int(kind))).column("payload").to_pylist()


def _active_changes(timely: pa.Table) -> list[ActiveChange]:
    """Return the changes of a batch to active scopes.

    A change is the start of an active scope, or `None` for a scope that has ended.
    """
    times = (timely.column(name).cast(pa.int64()).to_pylist() for name in ("time", "since"))
    last = {
        scope: time if status == "ingress" else None if status == "egress" else since
        for (scope, status), time, since in zip(_statuses(timely), *times, strict=True)
        if status != "atomic"
    }
    return [(*scope, since) for scope, since in last.items()]


def _known_changes(timely: pa.Table) -> list[KnownChange]:
    """Return the scopes that became known (`True`) or unknown (`False`) in a batch."""
    last = {scope: status != "unknown" for scope, status in _statuses(timely) if status != "atomic"}
    return [(*scope, known) for scope, known in last.items()]


def _statuses(timely: pa.Table) -> Iterator[tuple[tuple[str, str | None], str]]:
    columns = (timely.column(name).to_pylist() for name in ("subscription", "scope", "status"))
    return (((subscription, scope), status) for subscription, scope, status in zip(*columns, strict=True))


def _require_apart(written: Iterable[Path], folders: Iterable[Folder]) -> None:
    """Refuse output files in a folder that the query reads, because the query would read them."""
    for folder in folders:
        for path in written:
            if Path(os.path.realpath(path)).is_relative_to(folder.path):
                raise UsageError(f"{path} lies in the source {folder.path}, where it would be read; move it")


def _reading_options(live: Live) -> dict[str, str]:
    """Return the options that must not change while the checkpoint is used, by name."""
    reading = live.reading
    folders = (f"{f'{folder.topic}=' if folder.topic else ''}{folder.path}" for folder in live.folders)
    return {
        "--source": ", ".join(folders),
        "--map": ",".join(
            f"{own_session}={theirs}" for own_session, theirs in sorted(reading.rename.items())
        ),
        "--topic": reading.topic or "",
        "--zone": str(reading.zone),
        "--time-format": reading.time_format or "",
        "--time-unit": reading.time_unit or "",
        **({"--wide": "yes"} if reading.wide else {}),
    }


def _ignore_spark_errors(action: Callable[[], Any]) -> None:
    """Call a function, and ignore its errors if Spark's process no longer runs."""
    with suppress(*SPARK_ERRORS, OSError):
        action()


def _explain(error: Exception) -> HoldfastError:
    """Return an error of Holdfast for an error of Spark.

    It has the first line and the root cause, without stack traces.
    """
    if isinstance(error, PySparkException):
        lines = [line.strip() for line in str(error).splitlines()]
        causes = [line for line in lines[1:] if re.match(r"(Caused by: )?[\w.]*(Error|Exception)\b", line)]
        return InputError("\n  ".join(["Spark ended the query:", lines[0][:500], *causes[-1:]]))
    if (message := untranslated_message(error)) is not None:
        return InputError(f"Spark cannot run the query:\n  {message.splitlines()[0][:500]}")
    return InputError(
        "Spark has gone away (its Java process ended); run the same command again to go on where it was"
    )
