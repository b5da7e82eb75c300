"""Rooms and their air: what motes measure in them, and what a base station knows of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from random import Random

from holdfast.model.instant import MINUTE, SECOND, Instant
from holdfast.network.motes.readings import Sense
from holdfast.network.motes.run import SimulationRun
from holdfast.network.sim.energy import LISTEN, REST, draw
from holdfast.network.sim.frame import NodeId
from holdfast.network.sim.radio import CC2420

from .measure import RESTS, Measured

FILE = "berkeley-sdh-rooms/rooms.parquet"
BEGIN, HOURS = "2013-08-29T16:00", 8
"""A Thursday in Berkeley from nine to five; by its light readings the file is in UTC."""
ROOMS = 12
ENTER, LEAVE = 600.0, 500.0
TOPIC, CONDITION = "CO2", "Stuffy"
DEFINITION = f"state {CONDITION} on {TOPIC} [value > {ENTER:g}; value < {LEAVE:g}] per source"
STATION, BROKER = 27, 24
NODES = (0, 3, 6, 15, 17, 19, 21, 29, 31, 33, 42, 45, 48, 8, 10, 12, 2, 4, 14, 20, 28, 34, 43, 47)
"""The positions of the rooms' motes, spread over the 7 × 7 grid; the first is for the first room."""

Course = Sequence[tuple[Instant, bool]]
"""The times at which a condition starts (true) and ends (false)."""


@dataclass(frozen=True)
class Trace:
    """The readings of the motes, minute by minute."""

    readings: Mapping[NodeId, tuple[float, ...]]
    start: Instant

    def value(self, node: NodeId, now: Instant) -> float:
        return self.readings[node][(now - self.start) // MINUTE]

    def sense(self, node: NodeId, _: Random) -> Sense:
        return lambda now: self.value(node, now)

    def __repr__(self) -> str:
        text = repr(sorted(self.readings.items()))
        return f"Trace({blake2b(text.encode(), digest_size=8).hexdigest()}, {self.start})"


def read(path: Path, rooms: int, hours: int) -> dict[NodeId, tuple[float, ...]]:
    """Return the rooms that vary most, of those with a reading for every minute: the hardest for a filter."""
    import numpy as np
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    begin = np.datetime64(BEGIN, "ns")
    inside = (pc.field("time") >= begin) & (pc.field("time") < begin + np.timedelta64(hours, "h"))
    table = pq.read_table(path, columns=["time", "room", "co2"], filters=inside).sort_by("time")
    complete: dict[str, tuple[float, ...]] = {}
    for room in sorted(table["room"].unique().to_pylist()):
        values = table.filter(pc.equal(table["room"], room))["co2"].to_pylist()
        if len(values) == hours * 60 and all(value is not None and value == value for value in values):
            complete[room] = tuple(round(value, 1) for value in values)
    varying = sorted(complete, key=lambda room: (min(complete[room]) - max(complete[room]), room))
    return {node: complete[room] for node, room in zip(NODES, varying[:rooms], strict=False)}


def turns(values: Sequence[tuple[Instant, float]]) -> list[tuple[Instant, bool]]:
    """Return the starts and ends of the condition in readings with these times."""
    found: list[tuple[Instant, bool]] = []
    holds = False
    for time, value in values:
        if (value < LEAVE) if holds else (value > ENTER):
            holds = not holds
            found.append((time, holds))
    return found


def wrong(truth: Course, belief: Course, end: Instant) -> Instant:
    """Return for how long two courses of a condition differ, up to an end, in µs."""
    times = [*sorted({time for time, _ in (*truth, *belief) if time < end}), end]
    return sum(end - begin for begin, end in pairwise(times) if _at(truth, begin) != _at(belief, begin))


def _at(course: Course, time: Instant) -> bool:
    place = bisect_right(course, time, key=lambda turn: turn[0])
    return bool(place) and course[place - 1][1]


def belief(run: SimulationRun) -> Measured:
    """Return what the base station knew of the rooms, compared with what the motes measured."""
    publisher = run.case.scenario.publishers[0]
    trace, end = publisher.readings["value"], publisher.stop
    assert isinstance(trace, Trace) and end is not None
    ((subscription, expected),) = run.account.expected.items()
    states = not subscription.plain
    phases = {int(event.source): (event.time - trace.start) % MINUTE for event in run.account.published}
    came: dict[NodeId, list[tuple[Instant, Instant]]] = {node: [] for node in trace.readings}
    for each in expected.deliveries.values():
        if each.arrived is not None:
            came[int(each.event.source)].append((each.arrived, each.event.time))
    same, error, transitions = True, 0, 0
    for node, arrivals in came.items():
        began = trace.start + phases[node]
        truth = turns([(began + i * MINUTE, value) for i, value in enumerate(trace.readings[node])])
        transitions += len(truth)
        arrivals.sort()
        if states:
            belief = [(at, _at(truth, time)) for at, time in arrivals]
            same = same and [time for _, time in arrivals] == [time for time, _ in truth]
        else:
            belief = turns([(at, trace.value(node, time)) for at, time in arrivals])
        error += wrong(truth, belief, end)
    hours = len(came) * (end - publisher.start) / (60 * MINUTE)
    return {
        "transitions": transitions,
        "same": float(same) if states else None,
        "wrong s/h": error / SECOND / hours,
        "messages": run.account.messages["Data"] + run.account.messages["Ack"],
        "resting mJ": _resting(run),
    }


def _resting(run: SimulationRun) -> float:
    """Return the energy that all nodes would use if they always slept, in mJ."""
    drawn = draw(run.case.platform, RESTS["sleeping"], CC2420.power_dbm)
    return len(run.network.nodes) * (drawn.radio[LISTEN] + drawn.mcu[REST]) * run.network.now / SECOND
