"""Every way to run a definition over a history: the same notifications from each.

A runtime is a function from an app and events (numbered, in order of arrival) to notifications in
the order of an output.  The history is a replay: events are taken by (time, source, sequence).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby, islice, pairwise, product
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from holdfast import App, Engine, Event, Notification, Replay, check
from holdfast.files.find import InputFile, find
from holdfast.files.reading import Reading
from holdfast.lang.condition import Checked
from holdfast.model.batch import from_events

Runtime = Callable[[App, Sequence[Event]], list[Notification]]


def in_order(events: Sequence[Event]) -> list[Event]:
    return sorted(events, key=lambda event: event.order)


def output(notifications: Sequence[Notification]) -> list[Notification]:
    return sorted(notifications, key=lambda n: n.order)


def engine(app: App, events: Sequence[Event]) -> list[Notification]:
    """The notifications of an engine for single events."""
    return output(list(Engine(app).run(in_order(events))))


def engine_in_batches(app: App, events: Sequence[Event]) -> list[Notification]:
    """Batches of at most three, each of one topic, in order."""
    running, out = Engine(app), []
    topics = {topic.name: topic for topic in check(app).topics}
    for name, mine in groupby(in_order(events), key=lambda event: event.topic):
        for part in in_batches_of(mine, 3):
            out += running.push_batch(name, from_events(topics[name], part))
    return output(out + running.finish())


def in_batches_of(events: Iterable[Event], size: int) -> Iterator[list[Event]]:
    left = iter(events)
    while part := list(islice(left, size)):
        yield part


def replay(app: App, events: Sequence[Event]) -> list[Notification]:
    """Files, with little memory to sort in."""
    checked = check(app)
    with parquet_files(checked, events) as files:
        return list(Replay(checked, files, Reading(checked.topics), memory=4096))


@contextmanager
def parquet_files(checked: Checked, events: Sequence[Event]) -> Iterator[list[InputFile]]:
    """The events as Parquet files: some overlap, some follow one another."""
    times = sorted(event.time for event in events) or [0]
    bounds = [times[0] - 1, times[len(times) // 2], times[-1]]
    with tempfile.TemporaryDirectory() as folder:
        for topic, (half, (low, high)) in product(checked.topics, enumerate(pairwise(bounds))):
            mine = [event for event in events if event.topic == topic.name and low < event.time <= high]
            for i in range(2):
                table = pa.Table.from_batches([from_events(topic, mine[i::2])])
                table = table.append_column("topic", pa.array([topic.name] * len(table), pa.string()))
                pq.write_table(table, Path(folder) / f"{topic.name}-{half}{i}.parquet", row_group_size=4)
        yield find([folder], [topic.name for topic in checked.topics])


def spark(app: App, events: Sequence[Event]) -> list[Notification]:
    """The notifications of Spark for the same files."""
    from holdfast.runtimes.spark.batch.replay import Replay as SparkReplay

    checked = check(app)
    with parquet_files(checked, events) as files:
        return list(SparkReplay(checked, files, Reading(checked.topics), spark=session()))


def session():
    """The Spark session of all tests."""
    from holdfast.errors import Unsupported
    from holdfast.runtimes.spark.session import session

    try:
        with patch.dict(os.environ, JAVA_TOOL_OPTIONS="-XX:+UseSerialGC"):  # it starts with less ado
            return session("local[2]", name="holdfast tests", is_brief=True)
    except Unsupported as missing:
        pytest.skip(str(missing))


RUNTIMES: dict[str, Runtime] = {
    "engine": engine,
    "engine in batches": engine_in_batches,
    "replay": replay,
    "spark": spark,
}
