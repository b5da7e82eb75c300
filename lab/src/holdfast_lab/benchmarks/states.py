"""Smoke beside an open door: correlated as states, and as the raw readings of the same sensors; and a storm
over a city, folded and told one by one.

Both hear the same readings, moment after moment, in one process; seconds are of the processor.  What
is remembered is the snapshot of the whole engine, at its largest.  What the states tell is compared with all
pairs of stretches, found by brute force.  ``HOLDFAST_BENCH_SCALE`` makes the day shorter.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.model.batch import TIME
from holdfast.model.instant import SECOND
from holdfast.runtimes.local.engine import Engine

from . import Row, times

SCALE = float(os.environ.get("HOLDFAST_BENCH_SCALE") or 1)
ROOMS, APART = 200, 20
"""Rooms in a row, so many metres apart, each with a detector and a door."""
HOURS, EVERY = 4.0, 5
"""How long, and how many seconds between readings of a sensor."""
ON, OFF = 120, 1_800
"""For how many seconds a sensor is above and below its limit, on average."""
WITHIN, NEAR = 120, 30

TOPICS = "topic Air (value float)\ntopic Door (value float)\n"
JOBS = {
    "states": f"""{TOPICS}state Smoke on Air [value > 5; value < 2] per source
state Open on Door [value > 5; value < 2] per source
correlate Danger = Smoke, Open overlapping within {WITHIN} s, {NEAR} m
""",
    "raw readings": f"{TOPICS}correlate Danger within {WITHIN} s, {NEAR} m  Air > 5  Door > 5\n",
}


class Readings(NamedTuple):
    """Seconds, and of each topic one column for each room, with what it measured then."""

    seconds: NDArray[np.int64]
    values: dict[str, NDArray[np.float64]]


def readings(hours: float, seed: int = 1) -> Readings:
    """Sensors that are above and below their limits by turns, and inside the band for a while."""
    random = np.random.default_rng(seed)
    seconds = np.arange(0, int(hours * 3600), EVERY)
    found = {}
    for topic in ("Air", "Door"):
        turns = random.random((len(seconds), ROOMS))
        on = np.zeros(ROOMS, bool)
        values = np.empty((len(seconds), ROOMS))
        for i, turn in enumerate(turns):
            on = np.where(on, turn > EVERY / ON, turn < EVERY / OFF)
            values[i] = np.where(on, 6.0, 1.0)
        inside = random.random(values.shape) < 0.3
        found[topic] = np.where(inside, 3.0, values)
    return Readings(seconds, found)


def pieces(some: Readings) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The readings by time, a batch of each topic for each moment."""
    names = {topic: pa.array([f"{topic}{room:03d}" for room in range(ROOMS)]) for topic in some.values}
    room = np.arange(ROOMS)
    for i, second in enumerate(some.seconds.tolist()):
        for topic, values in some.values.items():
            columns = {
                "time": pa.array(np.full(ROOMS, second * SECOND)).cast(TIME),
                "source": names[topic],
                "sequence": pa.array(i * ROOMS + room),
                "x": pa.array(room * float(APART)),
                "value": pa.array(values[i]),
            }
            yield topic, pa.RecordBatch.from_pydict(columns)


class StateRun(NamedTuple):
    """Seconds of the processor, bytes at most, how many notifications of each status of the correlation, and
    of those that lasted the seconds."""

    seconds: float
    remembered: int
    counts: dict[str, int]
    lasting: int


def job(text: str, some: Readings) -> StateRun:
    """Hear all pieces."""
    engine, spent, most, lasting = Engine(text), 0.0, 0, 0
    counts: dict[str, int] = {}
    for i, (topic, batch) in enumerate([*pieces(some), ("", None)]):
        start = time.process_time()
        notifications = engine.finish() if batch is None else engine.push_batch(topic, batch)
        spent += time.process_time() - start
        for one in notifications:
            if one.subscription == "Danger":
                counts[one.status] = counts.get(one.status, 0) + 1
                lasting += (one.event.time - one.since) // SECOND if one.since is not None else 0
        if i % 100 == 0:
            most = max(most, len(engine.snapshot()))
    return StateRun(spent, most, counts, lasting)


def by_force(some: Readings) -> tuple[dict[str, int], int]:
    """What the states tell, of all pairs of stretches."""
    smoke, door = (_intervals(some, topic) for topic in ("Air", "Door"))
    starts = ends = lasting = 0
    for a, b in product(smoke, door):
        is_near = abs(a[0] - b[0]) * APART < NEAR and abs(a[1] - b[1]) < WITHIN
        start, end = max(a[1], b[1]), min(a[2], b[2])
        if is_near and start < end:
            starts += 1
            ends += end < np.inf
            lasting += int(end - start) if end < np.inf else 0
    return {"ingress": starts, "egress": ends}, lasting


def _intervals(some: Readings, topic: str) -> list[tuple[int, float, float]]:
    """Of each room from when to when a state holds, one reading after the other."""
    found = []
    for room in range(ROOMS):
        start = None
        for second, value in zip(some.seconds.tolist(), some.values[topic][:, room].tolist(), strict=True):
            if start is None and value > 5:
                start = second
            elif start is not None and value < 2:
                found.append((room, start, second))
                start = None
        if start is not None:
            found.append((room, start, np.inf))
    return found


def run(progress: Callable[[str], None]) -> list[Row]:
    """Both ways, and brute force; then the storm."""
    return [*_rows(progress), *storm(progress)]


SIDE = 64
"""So many roofs stand in a row, and so many rows there are."""


def storm(progress: Callable[[str], None]) -> Iterator[Row]:
    """A storm that grows over a city and shrinks again, ring by ring."""
    progress(f"a storm over {SIDE * SIDE:,} roofs")
    side = np.arange(SIDE) + 0.5
    x, y = (axis.reshape(-1) for axis in np.meshgrid(side, side))
    ring = np.maximum(abs(x - SIDE / 3), abs(y - SIDE / 3)).astype(np.int64)
    names = [f"roof{i}" for i in range(len(x))]
    city = pa.RecordBatch.from_pydict({"source": pa.array(names), "x": pa.array(x), "y": pa.array(y)})
    text = "topic T (value float)\nstate Wet on T [value > 5; value < 2] per source\n"
    engine = Engine(f"{text}fold Storm = Wet cells 1 m within {SIDE} m beyond 2 until fewer than 2\n")
    counts, spent, most = {"Wet": 0, "Storm": 0}, 0.0, {"Wet": 0, "Storm": 0}
    engine.push_batch("T", _roofs(city, np.arange(1), -1, 1.0))  # kernels are compiled
    for step in range(2 * (ring.max() + 1)):
        grows = step <= ring.max()
        mine = np.flatnonzero(ring == (step if grows else 2 * ring.max() + 1 - step))
        batch = _roofs(city, mine, step, 6.0 if grows else 1.0)
        start = time.process_time()
        notifications = engine.push_batch("T", batch)
        spent += time.process_time() - start
        for one in notifications:
            counts[one.subscription] += 1
        held = [one.subscription for one in engine.holding()]
        most = {name: max(count, held.count(name)) for name, count in most.items()}
    assert not engine.holding(), "the storm is over"
    yield Row("a storm: most that hold at once", most["Wet"], "roofs", detail={"told_at_once": most["Storm"]})
    yield times("… of what is told at once, folded", most["Wet"] / most["Storm"], least=10)
    yield times("… messages in all, of those folded", counts["Wet"] / counts["Storm"], least=1)
    yield Row("… time for each start or end of a roof", spent / counts["Wet"] * 1e6, "µs")


def _roofs(city: pa.RecordBatch, mine: NDArray[np.intp], step: int, value: float) -> pa.RecordBatch:
    """What some roofs of a city say at a moment."""
    columns = {
        "time": pa.array(np.full(len(mine), step * SECOND)).cast(TIME),
        "sequence": pa.array((step + 1) * len(city) + np.arange(len(mine))),
        "value": pa.array(np.full(len(mine), value)),
    }
    taken = city.take(pa.array(mine))
    return pa.RecordBatch.from_pydict({name: taken.column(name) for name in city.schema.names} | columns)


def _rows(progress: Callable[[str], None]) -> Iterator[Row]:
    some = readings(HOURS * SCALE)
    count = sum(values.size for values in some.values.values())
    found = {}
    for name, text in JOBS.items():
        progress(f"{name}: {count:,} readings of {2 * ROOMS} sensors")
        it = found[name] = job(text, some)
        detail = {"told": it.counts, "readings_per_s": count / it.seconds}
        yield Row(f"{name}: {count:,} readings, seconds of the processor", it.seconds, "s", detail=detail)
        yield Row(f"{name}: remembered at most", it.remembered / 1e3, "kB")
    states, raw = (found[name] for name in JOBS)
    yield times("raw readings, of the time of states", raw.seconds / states.seconds, least=1)
    yield times("raw readings, of what states remember", raw.remembered / states.remembered, least=1)
    progress("all pairs of stretches, by brute force")
    assert (states.counts, states.lasting) == by_force(some), (states, by_force(some))
    yield Row("starts, ends and lengths that differ from brute force", 0, "", "0", True)
