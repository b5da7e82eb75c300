"""Jams that come and go on many roads: what the benchmarks of components read."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.model.batch import TIME
from holdfast.model.instant import SECOND

ROADS = 1_000
SENSORS = 4
PERIOD = 10 * SECOND
BATCH = 1 << 17
TOPICS = ("InductiveLoop", "CarSpeed")

CONGESTION = """
topic InductiveLoop (value float)
topic CarSpeed (value float mph)

state TrafficCongestion
  A = avg InductiveLoop over 30 s each location
  B = avg CarSpeed over 60 s each location
  enter A.value > 2.5 && B.value < 7 mph     set level = B.value
  exit  B.value > 15 mph                     set level = B.value
"""


def traffic(events: int, roads: int) -> Iterator[dict[str, pa.RecordBatch]]:
    """Readings of both topics in order of time, some of each at a time.

    Every road has some sensors of each topic, which take turns; jams come and go in waves.
    """
    for first in range(0, events // 2, BATCH):
        rows = np.arange(first, min(first + BATCH, events // 2))
        yield {topic: _readings(topic, rows, roads) for topic in TOPICS}


def _readings(topic: str, rows: NDArray[np.int64], roads: int) -> pa.RecordBatch:
    sensors = roads * SENSORS
    sensor = rows % sensors
    road = sensor % roads
    at = rows * PERIOD // sensors + TOPICS.index(topic)
    jam = np.sin(at / SECOND / 900 + road)
    noise = np.random.default_rng([TOPICS.index(topic), int(rows[0])]).normal(0, 1, len(rows))
    value = {"InductiveLoop": 2.5 + 2 * jam + 0.3 * noise, "CarSpeed": 11 - 9 * jam + noise}[topic]
    names = pa.array([f"{topic}-{i:05d}" for i in range(sensors)])
    places = pa.array([f"road-{i:04d}" for i in range(roads)])
    return pa.RecordBatch.from_pydict(
        {
            "time": pa.array(at).cast(TIME),
            "source": pa.DictionaryArray.from_arrays(pa.array(sensor.astype(np.int32)), names),
            "sequence": pa.array(rows),
            "place": pa.DictionaryArray.from_arrays(pa.array(road.astype(np.int32)), places),
            "value": value,
        }
    )
