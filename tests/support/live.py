"""A live query without Spark: its parts, called in the order in which Spark calls them.

State is stored as Spark stores it: a batch is planned on disk before it is read, and its end and the
states of the shards are on disk when it is committed. Rows reach the shards in any order. The rest (log,
reader, states, sink, ledger) is the code that runs live.
"""

from __future__ import annotations

import os
import pickle
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from random import Random
from types import SimpleNamespace

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from holdfast import App, Event, Notification, check
from holdfast.files.reading import Reading
from holdfast.model.batch import from_events
from holdfast.model.topic import Topic
from holdfast.runtimes.spark.pack import SCHEMA
from holdfast.runtimes.spark.streaming.checkpoint import Checkpoint
from holdfast.runtimes.spark.streaming.damage import Commit
from holdfast.runtimes.spark.streaming.feed import FeedReader
from holdfast.runtimes.spark.streaming.ledger import Record
from holdfast.runtimes.spark.streaming.log import Folder
from holdfast.runtimes.spark.streaming.processor import ShardProcessor
from holdfast.runtimes.spark.streaming.query import _LAST, Live, feed_of, prepare
from holdfast.runtimes.spark.streaming.store import StoredShard
from support.runtimes import in_order, output

CRASHES = ("planned", "read", "sunk", "recorded")
"""Where a query can die: after the batch was planned, read, written to the sink, written to the ledger."""


class Crash(Exception):
    """The query died."""


class Planned(msgspec.Struct):
    """The plan that Spark writes before a batch."""

    batch: int
    start: dict[str, int]
    end: dict[str, int]


class Committed(msgspec.Struct):
    """The commit of a batch as Spark has it: its number, its end offset, the states of the shards."""

    batch: int = -1
    end: dict[str, int] = {}
    states: dict[str, list[bytes]] = {}


@dataclass
class Stream:
    """A live query that runs a batch on request. A new one on the same folders is a restart."""

    live: Live
    readers: int = 1
    chance: Random = field(default_factory=lambda: Random(0))

    def __post_init__(self) -> None:
        live, self.checkpoint = self.live, Checkpoint(self.live.checkpoint)
        self.checkpoint.folder.mkdir(parents=True, exist_ok=True)
        plan, self._batches = prepare(live, self.checkpoint, lambda *_: None, hand_over, done)
        self.checkpoint = replace(self.checkpoint, generation=plan.generation.number)
        self.ledger = self._batches.ledger
        self.checkpoint.spark.mkdir(exist_ok=True)
        self._plan, self._job = plan, plan.job(live.checked)
        feed = feed_of(live, self.checkpoint, plan, self.readers)
        self._source = FeedReader(feed.to_text())
        self.read: list[list[str]] = []
        """The names of the files of each batch that this stream has begun."""

    @property
    def record(self) -> Record:
        return self.ledger.before(_LAST)

    def run(self, crash: str | None = None) -> None:
        """Read what is there now; with ``finish``, let time run out."""
        self._source.prepareForTriggerAvailableNow()
        while self.step(crash):
            pass

    def step(self, crash: str | None = None) -> bool:
        """Do the next batch, or again the one that was planned and not committed, if there is one."""
        committed = read_stored(self.checkpoint.spark, "committed", Committed)
        committed = committed or Committed(end=self._source.initialOffset())
        plan = read_stored(self.checkpoint.spark, "planned", Planned)
        if plan is None or plan.batch <= committed.batch:
            end = self._source.latestOffset(committed.end, self._source.getDefaultReadLimit())
            if end == committed.end:
                return False
            plan = Planned(committed.batch + 1, committed.end, end)
            self._keep("planned", plan)
        self._die(crash, "planned")
        output, states = self._step(self._rows(plan), committed.states)
        self._die(crash, "read")
        self._record(plan.batch, output, crash)
        self._die(crash, "recorded")
        self._keep("committed", Committed(plan.batch, plan.end, states))
        return True

    def _rows(self, plan: Planned) -> list[SimpleNamespace]:
        parts = pickle.loads(pickle.dumps(self._source.partitions(plan.start, plan.end)))
        self.read.append([Path(entry.path).name for part in parts for entry in part.entries])
        executor = pickle.loads(pickle.dumps(self._source))
        batches = [batch for part in parts for batch in executor.read(part)]
        rows = [SimpleNamespace(**row) for batch in batches for row in batch.to_pylist()]
        self.chance.shuffle(rows)
        return rows

    def _step(
        self, rows: Iterable[SimpleNamespace], states: dict[str, list[bytes]]
    ) -> tuple[pa.Table, dict[str, list[bytes]]]:
        after = dict(states)
        stages, shards = self._plan.stages, self._plan.shards
        for stage in range(stages):
            job = pickle.loads(pickle.dumps(self._job))
            processor = ShardProcessor(job, stage, shards)
            rows = self._stage(processor, stage, rows, after)
        columns = {field.name: [row[field.name] for row in rows] for field in SCHEMA}
        return pa.table(columns, SCHEMA), after

    def _stage(
        self, processor: ShardProcessor, stage: int, rows: Iterable, states: dict[str, list[bytes]]
    ) -> list:
        by_shard: dict[int, list] = {}
        for row in rows:
            by_shard.setdefault(row.shard, []).append(row)
        output = []
        for shard, mine in by_shard.items():
            state = StoredState(states.get(f"{stage} {shard}", [b"", b""]))
            processor.init(state)
            output += processor.handleInputRows((shard,), iter(mine), None)
            states[f"{stage} {shard}"] = state.stored
        return output

    def _record(self, batch: int, output: pa.Table, crash: str | None) -> None:
        if crash == "sunk":
            self.ledger.commit = partial(self._die, crash, "sunk")
        self._batches.write(SimpleNamespace(toArrow=lambda: output), batch)

    @staticmethod
    def _die(crash: str | None, here: str, *_: object) -> None:
        if crash == here:
            raise Crash(here)

    def _keep(self, name: str, what: Planned | Committed) -> None:
        (self.checkpoint.spark / name).write_bytes(msgspec.msgpack.encode(what))


def read_stored(spark: Path, name: str, type: type):
    """The state of the stream, from the file where Spark would store it."""
    path = spark / name
    return msgspec.msgpack.decode(path.read_bytes(), type=type) if path.exists() else None


def hand_over(checkpoint: Checkpoint, _stages: int, _batch: int, to: Path) -> dict[str, int]:
    """Write the state of the shards, as the hand-over reads it from Spark."""
    sums = {}
    for place, (whole, head, *changes) in read_stored(
        checkpoint.spark, "committed", Committed
    ).states.items():
        raw = msgspec.msgpack.encode(StoredShard(whole, head, dict(enumerate(changes))))
        name = place.replace(" ", "-")
        (to / name).write_bytes(raw)
        sums[name] = zlib.crc32(raw)
    return sums


def done(spark: Path) -> Commit | None:
    """The last committed batch, as Spark reports it."""
    found = read_stored(spark, "committed", Committed)
    return None if found is None else Commit(found.batch, found.end)


class StoredState:
    """The state of a shard in Spark, two values and changes by number, in the form that a processor
    receives."""

    def __init__(self, read_stored: Sequence[bytes] = (b"", b"")) -> None:
        self.value, self.head, *self.list = read_stored
        self.read: list[str] = []
        """What has been asked for, by name."""

    @property
    def stored(self) -> list[bytes]:
        return [self.value, self.head, *self.list]

    def getValueState(self, name: str, *_: object) -> SimpleNamespace:  # noqa: N802
        field = {"shard": "value", "head": "head"}[name]

        def get() -> tuple[bytes] | None:
            self.read.append(name)
            return (found,) if (found := getattr(self, field)) else None

        return SimpleNamespace(get=get, update=lambda value: setattr(self, field, value[0]))

    def getMapState(self, name: str, *_: object) -> SimpleNamespace:  # noqa: N802
        def value(key: tuple[int]) -> tuple[bytes] | None:
            self.read.append("change")
            return (self.list[key[0]],) if key[0] < len(self.list) else None

        def pairs() -> Iterator[tuple[tuple[int], tuple[bytes]]]:
            self.read.append(name)
            return reversed([((number,), (raw,)) for number, raw in enumerate(self.list)])

        def update(key: tuple[int], value: tuple[bytes]) -> None:
            assert key == (len(self.list),)
            self.list.extend(value)

        return SimpleNamespace(getValue=value, iterator=pairs, updateValue=update, clear=self.list.clear)


# --- the place and the files -------------------------------------------------------------------------


@dataclass(frozen=True)
class Site:
    """A folder in which files arrive, and beside it the checkpoint and the output of a query."""

    folder: Path

    @property
    def inbox(self) -> Path:
        return self.folder / "inbox"

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    def live(self, app: App, **settings) -> Live:
        """How to run an app here: what is there now, at once."""
        checked = check(app)
        folders = (Folder(str(self.inbox)),)
        how = {"checkpoint": self.checkpoint, "settle": 0.0, "every": None, **settings}
        return Live(checked, Reading(checked.topics), folders, **how)

    def put(self, name: str, topic: Topic, events: Sequence[Event], **how) -> None:
        """Let a Parquet file arrive."""
        table = pa.Table.from_batches([from_events(topic, events)])
        table = table.append_column("topic", pa.array([topic.name] * len(table), pa.string()))
        part = self.inbox / f".{name}"
        pq.write_table(table, part, **how)
        part.rename(self.inbox / name)


_MEMORY = "/dev/shm"


@contextmanager
def site() -> Iterator[Site]:
    """A site of its own, in memory where there is such a place: disks are slow to settle."""
    with tempfile.TemporaryDirectory(dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None) as folder:
        (Path(folder) / "inbox").mkdir()
        yield Site(Path(folder))


def live(app: App, events: Sequence[Event]) -> list[Notification]:
    """A replay as a live query: files that arrive in order, some together, and then the end."""
    received: list[Notification] = []
    with site() as here:
        stream = Stream(
            here.live(app, sink=received.append, shards=3, finish=True, batch_bytes=8000), readers=2
        )
        topics = {topic.name: topic for topic in stream.live.checked.topics}
        history = in_order(events)
        for i in range(0, len(history), 4):
            for name, topic in topics.items():
                here.put(f"{i:04d}-{name}.parquet", topic, [e for e in history[i : i + 4] if e.topic == name])
        stream.run()
    return output(received)


def in_parts(app: App, parts: Sequence[Sequence[Event]], run: Callable[..., None]) -> list[Notification]:
    """The notifications of events that arrive in files, a part at a time: ``run(site, app, sink=…,
    finish=…)`` is a query that reads the available files and ends. It is restarted for each part."""
    received: dict[str, Notification] = {}
    with site() as here:
        for number, events in enumerate(parts, 1):
            for topic in check(app).topics:
                mine = [event for event in events if event.topic == topic.name]
                here.put(f"{number}-{topic.name}.parquet", topic, mine)
            run(here, app, sink=lambda n: received.setdefault(n.id, n), finish=number == len(parts))
    return output(list(received.values()))
