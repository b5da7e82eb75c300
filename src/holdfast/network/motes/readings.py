"""Readings of a scenario's sensors: simulated, or played from a file."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import sin, tau
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Annotated, ClassVar, Protocol

from msgspec import Meta

from ...errors import InputError, did_you_mean
from ...files.find import find
from ...files.read import inspect, read
from ...files.reading import Reading, TimeUnit
from ...files.tally import Rejects, Tally
from ...model.batch import to_events
from ...model.event import Event, Value
from ...model.instant import DAY, Duration, Instant
from ...model.topic import Kind, Topic
from ..sim.frame import NodeId
from .fault import ScenarioError

Sense = Callable[[Instant], Value]
"""A function that returns the value of an attribute at a time of the run. Calls must be in the order
of time.
"""
Width = Annotated[float, Meta(ge=0)]


class SensorModel(Protocol):
    """A model that simulates an attribute at every node."""

    def sense(self, node: NodeId, draw: Random) -> Sense:
        """Return the attribute at one node. ``draw`` is a random stream of the node alone."""


@dataclass(frozen=True)
class Constant:
    """A model with a constant value."""

    kind: ClassVar = "constant"
    value: float | str | bool

    def sense(self, _node: NodeId, _draw: Random) -> Sense:
        return lambda _: self.value


@dataclass(frozen=True)
class UniformReadings:
    """A model with independent random numbers between two bounds."""

    kind: ClassVar = "uniform"
    low: float = 0.0
    high: float = 1.0

    def sense(self, _node: NodeId, draw: Random) -> Sense:
        return lambda _: self.low + (self.high - self.low) * draw.random()


@dataclass(frozen=True, kw_only=True)
class RandomWalk:
    """A random walk: normally distributed steps with deviation ``step``, within the bounds."""

    kind: ClassVar = "walk"
    start: float
    step: Width
    low: float = float("-inf")
    high: float = float("inf")

    def sense(self, _node: NodeId, draw: Random) -> Sense:
        here = self.start

        def step(_: Instant) -> float:
            nonlocal here
            here = min(max(here + draw.gauss(0.0, self.step), self.low), self.high)
            return here

        return step


@dataclass(frozen=True, kw_only=True)
class Sine:
    """A sine wave with noise. Each node lags behind by a random time up to ``lag`` µs."""

    kind: ClassVar = "sine"
    mean: float
    swing: Width
    period: Duration = DAY
    noise: Width = 0.0
    lag: Duration = 0

    def __post_init__(self) -> None:
        if self.period <= 0:
            raise ScenarioError("a period takes some time, such as '24 h'", ("period",))

    def sense(self, _node: NodeId, draw: Random) -> Sense:
        behind = draw.random() * self.lag

        def wave(now: Instant) -> float:
            level = self.mean + self.swing * sin((now - behind) / self.period * tau)
            return level + draw.gauss(0.0, self.noise)

        return wave


Readings = Mapping[str, Constant | UniformReadings | RandomWalk | Sine | SensorModel]
"""The models of a sensor's attributes, by the name of the attribute."""
Sample = Callable[[Instant], Mapping[str, Value]]
"""A function that returns the values that a publisher measures at a time of the run. Calls must be in the
order of time.
"""

_FITS: Mapping[Kind, type] = {"text": str, "bool": bool}


def require_fitting(readings: Readings, topic: Topic) -> None:
    """Raise a `ScenarioError` unless the topic has every attribute of ``readings``, with a fitting type."""
    known = {attribute.name: attribute.kind for attribute in topic.attributes}
    for name, each in readings.items():
        if name not in known:
            hint = did_you_mean(name, known) or f"It has {', '.join(known)}."
            raise ScenarioError(f"topic '{topic.name}' has no '{name}'", (name,), hint=hint, key=True)
        fits = _FITS.get(known[name])
        constant = each.value if isinstance(each, Constant) else 0.0
        if not (isinstance(constant, fits) if fits else isinstance(constant, float | int)):
            hint = "A constant can be text, or true."
            raise ScenarioError(f"'{name}' is of kind {known[name]}", (name,), hint=hint)


def simulate_sample(readings: Readings, topic: Topic, node: NodeId, draw: Random) -> Sample:
    """Return the function that simulates the samples of a node's sensor."""
    senses = {name: each.sense(node, draw) for name, each in readings.items()}
    whole = {attribute.name for attribute in topic.attributes if attribute.kind == "int"}

    def sample(now: Instant) -> dict[str, Value]:
        found = {name: sense(now) for name, sense in senses.items()}
        return {n: round(v) if n in whole and isinstance(v, float) else v for n, v in found.items()}

    return sample


def average(sample: Sample, step: Duration, times: int) -> Sample:
    """Return a function for the means of ``times`` samples, ``step`` µs apart, up to the present.

    For values that are not numbers it returns the last one.
    """

    def mean(now: Instant) -> dict[str, Value]:
        read = [sample(now - i * step) for i in reversed(range(times))]
        return {name: _mean([each.get(name) for each in read]) for name in read[-1]}

    return mean


def _mean(values: Sequence[Value]) -> Value:
    last = values[-1]
    if isinstance(last, bool) or not isinstance(last, int | float):
        return last
    mean = fmean(value for value in values if isinstance(value, int | float))
    return round(mean) if isinstance(last, int) else mean


# From a file.


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """Settings of a recording: a CSV, JSON lines or Parquet file with columns for time, source and each
    attribute.

    A node plays the source of its own name. If no source has a node's name, the first node plays the first
    source, and so on.
    """

    file: str
    map: Mapping[str, str] = field(default_factory=dict)
    """The file's column for each attribute whose column has another name."""
    time_unit: TimeUnit | None = None
    """The unit of times that are numbers; ``None`` if the file has none."""


Tape = Sequence[Event]
"""The readings of a source, in the order of time."""


@dataclass(frozen=True)
class Recording:
    """The readings of each source. The first reading of all is played when a publisher starts."""

    tapes: Mapping[str, Tape]

    @property
    def begin(self) -> Instant:
        """The time of the first reading of any source."""
        return min(tape[0].time for tape in self.tapes.values() if tape)

    def readings_per_day(self) -> float:
        """The mean number of readings of a source per day."""
        times = [event.time for tape in self.tapes.values() for event in tape]
        return len(times) * DAY / max(1, max(times) - min(times)) / len(self.tapes)

    def source(self, number: int, name: str, names: Collection[str]) -> str | None:
        """Return the source that a publisher plays; ``None`` if there is none.

        ``number`` and ``name`` are those of the publisher, and ``names`` are the names of all publishers.
        """
        if any(each in self.tapes for each in names):
            return name if name in self.tapes else None
        return list(self.tapes)[number] if number < len(self.tapes) else None

    def sample(self, number: int, name: str, start: Instant) -> Sample:
        """Return the samples of a publisher, by its number and name.

        A sample is the latest reading or, before the first reading, the first one.
        """
        tape = self.tapes.get(name) or list(self.tapes.values())[number % len(self.tapes)]
        begin = self.begin - start

        def sample(now: Instant) -> Mapping[str, Value]:
            place = bisect_right(tape, begin + now, key=lambda event: event.time)
            return tape[max(0, place - 1)].attributes

        return sample


def load_recording(recorded: Recorded, topic: Topic, folder: Path) -> Recording:
    """Load the recording of a topic from a file."""
    (file,) = find([str(folder / recorded.file)])
    reading = Reading((topic,), recorded.map, time_unit=recorded.time_unit)
    inspect(file, reading)
    batches = (batch for _, batch in read(file, reading, Tally(), Rejects()))
    events = [event for batch in batches for event in to_events(topic, batch)]
    if not events:
        raise InputError(f"{file.path}: there is no reading of '{topic.name}' in it")
    return to_recording(events)


def to_recording(events: Iterable[Event], sources: Iterable[str] = ()) -> Recording:
    """Group readings by source, in the order of time. ``sources`` are included even without readings."""
    tapes: dict[str, list[Event]] = {source: [] for source in sources}
    for event in events:
        tapes.setdefault(event.source, []).append(event)
    return Recording({source: sorted(tapes[source], key=lambda each: each.order) for source in sorted(tapes)})
