"""``spark.read.format("holdfast")`` and ``spark.readStream``: events that can matter, as rows.

    spark.dataSource.register(hf.spark.HoldfastSource)
    spark.read.format("holdfast").option("definition", "warm.hf").load("readings/")

Files are read with Arrow inside the executors, and what cannot matter to the definition is dropped
there: of history all that can start or end nothing, of a stream what satisfies no predicate.
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

from ....errors import UsageError, did_you_mean
from ....files.find import find
from ....files.reading import Reading, parse_rename, parse_zone
from ....lang.check import check
from ....lang.condition import Checked
from ....lang.parse import load, parse
from ....model.batch import AXES, TIME, TYPES, plain
from ....model.topic import Topic
from ..history.reader import Job, chosen
from ..history.replay import tasks
from ..live.checkpoint import Checkpoint
from ..live.feed import Feed, FeedReader, taken
from ..live.log import folders
from ..pack import Mine
from ..plan import Work

_OPTIONS = ("definition", "path", "map", "topic", "zone", "time_format", "time_unit", "bad", "readers")
_LIVE = ("log", "settle", "batch_mb")


class HoldfastSource(DataSource):
    """Options: ``definition`` (a file or its text), ``map``, ``topic``, ``zone``, ``time_format`` and
    ``time_unit`` as for ``holdfast replay``; ``bad`` is ``fail`` or ``drop`` for rows that cannot be
    used; ``readers`` is how many read at once.  A stream needs ``log`` too, a folder in which it
    keeps which files have arrived, and may have ``settle`` (seconds) and ``batch_mb``.
    """

    @classmethod
    def name(cls) -> str:
        return "holdfast"

    def schema(self) -> StructType:
        return from_arrow_schema(_Asked.of(self.options).schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        return _HistoryReader(_Asked.of(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        return _ArrivalReader(_Asked.of(self.options))


class _Asked(NamedTuple):
    """What the options ask for."""

    checked: Checked
    reading: Reading
    path: str
    fails: bool
    readers: int
    live: dict[str, str]

    @classmethod
    def of(cls, options: Mapping[str, str]) -> _Asked:
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
    def work(self) -> Work:
        """Who wants which events, all of them whole."""
        return Work.on_history(self.checked, whole=True)

    @property
    def schema(self) -> pa.Schema:
        """The columns of events of every topic."""
        kinds: dict[str, str] = {}
        for topic in self.checked.topics:
            for a in topic.attributes:
                if kinds.setdefault(a.name, a.kind) != a.kind:
                    raise UsageError(f"'{a.name}' has two kinds; read its topics one by one, with 'topic'")
        fixed = {"topic": pa.string(), "time": TIME, "source": pa.string(), "sequence": pa.int64()}
        fixed |= {"place": pa.string(), **dict.fromkeys(AXES, pa.float64())}
        return pa.schema([*fixed.items(), *((name, TYPES[kind]) for name, kind in kinds.items())])

    def rows(self, found: Iterable[Mine]) -> Iterator[pa.RecordBatch]:
        """The events that operators want, each once, though several may want it."""
        seen: dict[str, dict[int, list[pa.RecordBatch]]] = {}
        for number, operator, topic, events in found:
            shaped = _shaped(events, operator.topics[topic], self.schema)
            seen.setdefault(topic, {}).setdefault(number, []).append(shaped)
        for wanted in seen.values():
            table = pa.Table.from_batches([batch for batches in wanted.values() for batch in batches])
            yield from (_distinct(table) if len(wanted) > 1 else table).to_batches()


def _shaped(batch: pa.RecordBatch, topic: Topic, schema: pa.Schema) -> pa.RecordBatch:
    columns = {name: plain(batch.column(name)) for name in batch.schema.names}
    columns["topic"] = pa.repeat(topic.name, len(batch))
    own = {"topic", "time", "source", "sequence", "place", *AXES, *(a.name for a in topic.attributes)}
    arrays = [
        columns[f.name].cast(f.type) if f.name in columns and f.name in own else pa.nulls(len(batch), f.type)
        for f in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _distinct(table: pa.Table) -> pa.Table:
    """Each event once: it is known by its time, source and sequence."""
    keys = table.select(["time", "source", "sequence"]).append_column("@at", pa.array(range(len(table))))
    return table.take(keys.group_by(keys.column_names[:3]).aggregate([("@at", "min")]).column("@at_min"))


# --- history -----------------------------------------------------------------------------------------


class _Numbered(InputPartition):
    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class _HistoryReader(DataSourceReader):
    def __init__(self, asked: _Asked) -> None:
        self._asked = asked
        files = find(_paths(asked.path), [t.name for t in asked.checked.topics])
        parts = tuple(tasks(files, asked.reading, max(1, asked.readers // 4)))
        self._job = Job(asked.work, asked.reading, parts, shards=1, strict=asked.fails)

    def partitions(self) -> Sequence[InputPartition]:
        return [_Numbered(i) for i in range(len(self._job.tasks))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Numbered)
        task = self._job.tasks[partition.number]
        return self._asked.rows(chosen(self._job, task, self._job.reader()))


def _paths(path: str) -> list[str]:
    """One path, or the list of them that ``load([...])`` leaves as JSON."""
    return json.loads(path) if path.startswith("[") else [path]


# --- arrivals ----------------------------------------------------------------------------------------


class _ArrivalReader(FeedReader):
    """As a live query reads, but the rows are plain, and nothing is known of their order later."""

    def __init__(self, asked: _Asked) -> None:
        if "log" not in asked.live:
            raise UsageError("a stream from the source 'holdfast' needs the option 'log', its own folder")
        checkpoint = Checkpoint(Path(asked.live["log"]))
        checkpoint.folder.mkdir(parents=True, exist_ok=True)
        feed = Feed(
            checkpoint,
            asked.work,
            1,
            asked.reading,
            folders([f"dir:{path}" for path in _paths(asked.path)], [t.name for t in asked.checked.topics]),
            settle=float(asked.live.get("settle", "2")),
            batch_bytes=int(asked.live.get("batch_mb", "256")) << 20,
            readers=asked.readers,
            strict=asked.fails,
        )
        super().__init__(feed.to_text())
        self._asked = asked

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_asked": self._asked}

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        report, found = taken(self._feed, partition, closed=False)
        report.require_success()
        return self._asked.rows(found)
