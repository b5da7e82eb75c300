"""Holdfast as a data source of Spark: the relevant events of files, as rows of a frame or a stream.

    spark.dataSource.register(hf.spark.HoldfastSource)
    spark.read.format("holdfast").option("definition", "warm.hf").load("readings/")

Files are read with Arrow inside the executors, and irrelevant events are dropped there. A batch read drops
all events that cannot change the output; a stream drops those that satisfy no predicate.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from ....definition.check import check
from ....definition.parse import load, parse
from ....errors import UsageError, did_you_mean
from ....files.find import find
from ....files.reading import Reading, parse_rename, parse_zone
from ....lang.condition import Checked
from ....model.batch import AXES, TIME, TYPES, plain
from ....model.topic import Topic
from ..batch.reader import ReadJob, select_events
from ..batch.replay import plan_tasks
from ..job import Job
from ..pack import OperatorEvents
from ..streaming.checkpoint import Checkpoint
from ..streaming.feed import FeedReader, StreamSettings, read_entries
from ..streaming.log import folders

_OPTIONS = ("definition", "path", "map", "topic", "zone", "time_format", "time_unit", "bad", "readers")
_LIVE = ("log", "settle", "batch_mb")


class HoldfastSource(DataSource):
    """The data source `holdfast`, for `spark.read` and `spark.readStream`.

    Options as for `holdfast replay` are `definition` (a file or its text), `map`, `topic`, `zone`,
    `time_format` and `time_unit`. The option `bad` is `fail` or `drop` for rejected rows, and `readers` is
    the number of parallel readers. A stream also needs `log`, a folder for the list of files that have
    arrived, and may have `settle` (seconds) and `batch_mb`.
    """

    @classmethod
    def name(cls) -> str:
        return "holdfast"

    def schema(self) -> StructType:
        return from_arrow_schema(_SourceOptions.of(self.options).schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        return _HistoryReader(_SourceOptions.of(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        return _ArrivalReader(_SourceOptions.of(self.options))


class _SourceOptions(NamedTuple):
    """The options of the data source, parsed and checked."""

    checked: Checked
    reading: Reading
    path: str
    fails: bool
    readers: int
    live: dict[str, str]

    @classmethod
    def of(cls, options: Mapping[str, str]) -> _SourceOptions:
        """Parse and check the options of the data source.

        Raises ``UsageError`` for unknown and missing ones.
        """
        for name in options:
            if name.lower() not in (*_OPTIONS, *_LIVE):
                hint = did_you_mean(name, [*_OPTIONS, *_LIVE]) or f"There is {', '.join(_OPTIONS)}."
                raise UsageError(f"the source 'holdfast' has no option '{name}'. {hint}")
        for name in ("definition", "path"):
            if name not in options:
                raise UsageError(f"the source 'holdfast' needs the option '{name}'")
        definition = options["definition"]
        app = load(definition) if definition.strip().endswith(".hf") else parse(definition)
        checked = check(app)
        reading = Reading(
            checked.topics,
            parse_rename(options.get("map", "")),
            parse_zone(options.get("zone", "UTC")),
            options.get("time_format"),
            options.get("time_unit"),  # type: ignore[arg-type]
            options.get("topic"),
        )
        bad = options.get("bad", "fail")
        if bad not in ("fail", "drop"):
            raise UsageError(f"bad={bad}: rows that cannot be used 'fail', or one can 'drop' them")
        live = {name: options[name] for name in _LIVE if name in options}
        return cls(checked, reading, options["path"], bad == "fail", int(options.get("readers", "8")), live)

    @property
    def job(self) -> Job:
        """The job that selects the events, with all columns."""
        return Job.on_history(self.checked, all_columns=True)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the selected events, for all topics together."""
        kinds: dict[str, str] = {}
        for topic in self.checked.topics:
            for a in topic.attributes:
                if kinds.setdefault(a.name, a.kind) != a.kind:
                    raise UsageError(f"'{a.name}' has two kinds; read its topics one by one, with 'topic'")
        fixed = {"topic": pa.string(), "time": TIME, "source": pa.string(), "sequence": pa.int64()}
        fixed |= {"place": pa.string(), **dict.fromkeys(AXES, pa.float64())}
        return pa.schema([*fixed.items(), *((name, TYPES[kind]) for name, kind in kinds.items())])

    def rows(self, found: Iterable[OperatorEvents]) -> Iterator[pa.RecordBatch]:
        """Return the selected events as rows.

        Each event is returned once, even if several operators select it.
        """
        seen: dict[str, dict[int, list[pa.RecordBatch]]] = {}
        for number, operator, topic, events in found:
            rows = _to_schema(events, operator.topics[topic], self.schema)
            seen.setdefault(topic, {}).setdefault(number, []).append(rows)
        for wanted in seen.values():
            table = pa.Table.from_batches([batch for batches in wanted.values() for batch in batches])
            yield from (_distinct(table) if len(wanted) > 1 else table).to_batches()


def _to_schema(batch: pa.RecordBatch, topic: Topic, schema: pa.Schema) -> pa.RecordBatch:
    columns = {name: plain(batch.column(name)) for name in batch.schema.names}
    columns["topic"] = pa.repeat(topic.name, len(batch))
    own = {"topic", "time", "source", "sequence", "place", *AXES, *(a.name for a in topic.attributes)}
    arrays = [
        columns[f.name].cast(f.type) if f.name in columns and f.name in own else pa.nulls(len(batch), f.type)
        for f in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _distinct(table: pa.Table) -> pa.Table:
    """Return each event of a table once. Time, source and sequence identify an event."""
    keys = table.select(["time", "source", "sequence"]).append_column("@at", pa.array(range(len(table))))
    return table.take(keys.group_by(keys.column_names[:3]).aggregate([("@at", "min")]).column("@at_min"))


# --- history -----------------------------------------------------------------------------------------


class _Numbered(InputPartition):
    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class _HistoryReader(DataSourceReader):
    def __init__(self, options: _SourceOptions) -> None:
        self._options = options
        files = find(_paths(options.path), [t.name for t in options.checked.topics])
        parts = tuple(plan_tasks(files, options.reading, max(1, options.readers // 4)))
        self._read_job = ReadJob(options.job, options.reading, parts, shards=1, strict=options.fails)

    def partitions(self) -> Sequence[InputPartition]:
        return [_Numbered(i) for i in range(len(self._read_job.tasks))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Numbered)
        task = self._read_job.tasks[partition.number]
        return self._options.rows(select_events(self._read_job, task, self._read_job.reader()))


def _paths(path: str) -> list[str]:
    """Decode the option `path`: one path, or the JSON list that `load([...])` passes."""
    return json.loads(path) if path.startswith("[") else [path]


# --- arrivals ----------------------------------------------------------------------------------------


class _ArrivalReader(FeedReader):
    """Reads files like a streaming query, but returns plain rows and does not assume any order."""

    def __init__(self, options: _SourceOptions) -> None:
        if "log" not in options.live:
            raise UsageError("a stream from the source 'holdfast' needs the option 'log', its own folder")
        checkpoint = Checkpoint(Path(options.live["log"]))
        checkpoint.folder.mkdir(parents=True, exist_ok=True)
        feed = StreamSettings(
            checkpoint,
            options.job,
            1,
            options.reading,
            folders(
                [f"dir:{path}" for path in _paths(options.path)], [t.name for t in options.checked.topics]
            ),
            settle=float(options.live.get("settle", "2")),
            batch_bytes=int(options.live.get("batch_mb", "256")) << 20,
            readers=options.readers,
            strict=options.fails,
        )
        super().__init__(feed.to_text())
        self._options = options

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_options": self._options}

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        report, found = read_entries(self._feed, partition, closed=False)
        report.require_success()
        return self._options.rows(found)
