"""The forecast of a network with one protocol, which combines all other estimates.

The forecast makes these assumptions:

- The channel is mostly free: frames collide only in bursts of the protocol itself.
- Links always have their mean quality, routes have settled, and no node fails.
- Readings occur as often as in the history.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, prod

import numpy as np

from ...model.instant import DAY, SECOND, Instant
from ..motes.case import RunPlan, SimulationCase, plan_run
from ..sim.frame import NodeId
from ..sim.network import Network
from .hop import Floats, RadioModel
from .rates import Rates, ReadingKind
from .rehearsal import Rehearsal, RehearsalResult, SentMessage, rehearse, simulate_idle
from .routes import NodePath, Routes, Trip

A_DAY = DAY / SECOND
TOGETHER = 6
"""A protocol with more simultaneous messages than this interferes with itself, so its idle traffic is
simulated.
"""


@dataclass(frozen=True)
class Cost:
    """An amount of energy and radio use: joules of each node, number of frames, seconds of transmission."""

    joules: Floats
    frames: float = 0.0
    airtime: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.joules + other.joules, self.frames + other.frames, self.airtime + other.airtime)

    def times(self, factor: float) -> Cost:
        return Cost(self.joules * factor, self.frames * factor, self.airtime * factor)


@dataclass(frozen=True)
class ReadingCost:
    """The cost of a reading of one kind, and its delivery to each subscriber."""

    cost: Cost
    deliveries: Mapping[tuple[str, NodeId], tuple[float, float]]
    """The delay in seconds and the probability of delivery, by subscription and subscribing node."""


@dataclass(frozen=True)
class Forecast:
    """The cost of a network per day with one protocol, and its delivery."""

    plan: RunPlan
    rates: Rates
    rest: float
    """The power in W of a node without activity."""
    start: Cost
    """The cost of starting the network, which occurs once."""
    control: Cost
    """The cost per day of beacons, and of processors that read sensors."""
    idle: Cost
    """The cost per day of the protocol's messages that no reading causes."""
    readings: Mapping[ReadingKind, ReadingCost]
    is_simulated: bool
    """Whether the traffic without readings was simulated frame by frame."""

    def of_readings(self, a_day: Mapping[ReadingKind, float] | None = None) -> Cost:
        """Return the cost of readings per day, at the rates ``a_day`` or, without them, at those of the
        history.
        """
        zero = Cost(np.zeros_like(self.idle.joules))
        rates = {kind: self.rates.a_day(kind) for kind in self.readings} if a_day is None else a_day
        return sum((self.readings[kind].cost.times(often) for kind, often in rates.items()), zero)

    def by_turns(self, subscription: str, a_day: float) -> float:
        """Return the joules of all nodes per day if a subscription started and ended ``a_day`` times in
        total.
        """
        place = self.rates.subscriptions.index(subscription)
        turning, other = (
            [(self.rates.counts[kind], reading.cost.joules.sum()) for kind, reading in self.readings.items()
             if kind.sort[place][0] == turns]
            for turns in (True, False)
        )  # fmt: skip
        more = _mean(turning) - _mean(other) if turning else 0.0
        now = self.rates.turns(subscription) * DAY / self.rates.span
        return float(self.joules().sum() + (a_day - now) * more)

    def joules(self, a_day: Mapping[ReadingKind, float] | None = None) -> Floats:
        """Return the joules of each node per day, at the rates ``a_day`` or, without them, at those of the
        history.
        """
        return np.asarray(self.rest * A_DAY + self.by_itself.joules + self.of_readings(a_day).joules)

    @property
    def by_itself(self) -> Cost:
        """The cost per day without readings."""
        return self.control + self.idle

    @property
    def frames(self) -> float:
        """The number of frames that all nodes send per day."""
        return self.by_itself.frames + self.of_readings().frames

    @property
    def busy(self) -> float:
        """The share of time in which a node transmits."""
        return (self.by_itself.airtime + self.of_readings().airtime) / A_DAY

    def days(self, a_day: Mapping[ReadingKind, float] | None = None) -> tuple[float, NodeId] | None:
        """Return the days until the first node dies, and that node; ``None`` if no node has a battery."""
        setup = self.plan.setup
        joules = self.joules(a_day)
        found = [
            (float((battery - self.start.joules[node]) / joules[node]), node)
            for node in range(len(joules))
            if (battery := setup.batteries.get(node, setup.battery_j)) is not None
        ]
        return min(found) if found else None

    def delay(self, subscription: str) -> tuple[float, float] | None:
        """Return the mean delay in seconds and the share of deliveries for starts and ends of a subscription.
        ``None`` if the history has none.
        """
        place = self.rates.subscriptions.index(subscription)
        weight = seconds = arrived = 0.0
        for kind, reading in self.readings.items():
            if not kind.sort[place][0]:
                continue
            for (name, _), (after, chance) in reading.deliveries.items():
                if name == subscription:
                    often = self.rates.counts[kind]
                    weight, arrived = weight + often, arrived + often * chance
                    seconds += often * chance * after
        return (seconds / arrived if arrived else inf, arrived / weight) if weight else None


def _mean(group: Sequence[tuple[int, float]]) -> float:
    return sum(count * joules for count, joules in group) / (sum(count for count, _ in group) or 1)


def forecast(case: SimulationCase, seed: int, rates: Rates) -> Forecast:
    """Forecast the cost of a case whose publishers replay a history, given the rates of that history."""
    rehearsal = rehearse(case, seed, rates.examples)
    plan = plan_run(case, seed)
    routes = _routes(case, seed)
    model = routes.model
    costs = _MessageCosts(routes, rehearsal)
    found: dict[ReadingKind, list[ReadingCost]] = {}
    rehearsed = zip(rates.examples, rehearsal.by_reading, rehearsal.notified, strict=True)
    for example, sent, deliveries in rehearsed:
        found.setdefault(example.kind, []).append(costs.reading(sent, deliveries))
    timer = model.working(plan.setup.platform.work.timer)
    read = model.working(case.scenario.energy.sampling)
    names = {name: node for node, name in enumerate(plan.topology.names)}
    sampled = {p.topic: p.sampled for p in case.scenario.publishers if p.sampled is not None}
    readings = {}
    for kind, group in found.items():
        work = _at(model, names[kind.source], timer + (0.0 if kind.topic in sampled else read))
        readings[kind] = ReadingCost(_average(group) + work, group[-1].deliveries)
    control, beacons = routes.control()
    beaconing = Cost(control * A_DAY, beacons * A_DAY)
    sensing = Cost(model.zeros())
    for source in plan.sources:
        if (pause := sampled.get(source.topic.name)) is not None:
            for node in source.nodes:
                sensing += _at(model, node, (timer + read) * DAY / pause)
    idle = costs.cost(rehearsal.idle).times(A_DAY / rehearsal.seconds)
    if is_simulated := rehearsal.cycle is not None and rehearsal.together > TOGETHER:
        watts, frames = simulate_idle(case, seed, rates.events, rehearsal.cycle, rehearsal.a_second)
        joules = np.maximum((watts - model.rest) * A_DAY - beaconing.joules, 0.0)
        frames = frames * A_DAY - beaconing.frames
        idle = Cost(joules, frames, idle.airtime * frames / idle.frames)
    start = costs.cost(rehearsal.start)
    return Forecast(plan, rates, model.rest, start, beaconing + sensing, idle, readings, is_simulated)


def _average(group: Sequence[ReadingCost]) -> Cost:
    """Return the mean cost of readings of one kind, whose protocol roles may be at several nodes. The first
    reading is left out if there are more, because it may have caused one-time traffic.
    """
    first, *others = (one.cost for one in group[1:] or group)
    return sum(others, first).times(1 / (1 + len(others)))


def _at(model: RadioModel, node: NodeId, joules: float) -> Cost:
    found = model.zeros()
    found[node] = joules
    return Cost(found)


def _routes(case: SimulationCase, seed: int) -> Routes:
    """Return the paths of the network with its own MAC. The rehearsal itself runs with a different MAC."""
    run = Rehearsal(case, seed)
    machine = run.routes.machine
    network = Network(plan_run(case, seed).setup)
    return Routes(RadioModel(network, getattr(machine, "overhears", True)), machine)


class _MessageCosts:
    """Computes the costs of messages, and stores the trip of each distinct message."""

    def __init__(self, routes: Routes, rehearsal: RehearsalResult) -> None:
        self._routes, self._patience = routes, rehearsal.patience
        self._trips: dict[tuple[NodePath, int, bool, tuple[int, ...]], Trip] = {}

    def trip(self, sent: SentMessage) -> Trip:
        """Return the trip of a message, computed once for equal messages."""
        key = sent.path, sent.size, sent.flood, sent.more
        if key not in self._trips:
            routes = self._routes
            flood = sent.flood
            self._trips[key] = routes.flood(*key[:2]) if flood else routes.trip(*key[:2], sent.more)
        return self._trips[key]

    def cost(self, sent: Sequence[SentMessage]) -> Cost:
        """Return the cost of messages, including repetitions by the protocol."""
        total = Cost(self._routes.model.zeros())
        for group in _exchanges(sent):
            for message, often in zip(group, self._often(group), strict=True):
                trip = self.trip(message)
                total = total + Cost(trip.joules, trip.frames, trip.airtime).times(often)
        return total

    def _often(self, group: Sequence[SentMessage]) -> list[float]:
        """Return how often each message of an exchange is sent. The sender repeats an exchange until its last
        message arrives, and whenever the answer takes longer than its timeout.
        """
        if len(group) == 1 or self._patience is None:
            return [1.0] * len(group)
        chances = [max(self.trip(message).delivered, 1e-3) for message in group]
        rounds = 1 / prod(chances)
        late = sum(self.trip(message).seconds for message in group) // self._patience
        return [(rounds + late) * prod(chances[:i]) for i in range(len(group))]

    def reading(
        self, sent: Sequence[SentMessage], deliveries: Mapping[tuple[str, NodeId], Instant]
    ) -> ReadingCost:
        """Return the cost of a reading, and its delivery to its subscribers."""
        arrivals = {who: self._arrival(who[1], sent, at) for who, at in deliveries.items()}
        return ReadingCost(self.cost(sent), arrivals)

    def _arrival(self, node: NodeId, sent: Sequence[SentMessage], at: Instant) -> tuple[float, float]:
        """Return the delay in seconds and the probability of a delivery at a node. The messages of the
        delivery are traced backwards from that node.
        """
        seconds, chance, here = 0.0, 1.0, node
        shared = {id(message): group for group in _exchanges(sent) for message in group}
        for message in reversed([one for one in sent if one.at <= at]):
            if here not in message.ends or message.word == "ack":
                continue
            trip = self.trip(message)
            seconds += sum(self.trip(one).seconds for one in _before(message, sent))
            if len(shared[id(message)]) > 1 and self._patience is not None:
                seconds += (1 / max(trip.delivered, 1e-3) - 1) * self._patience
            else:
                chance *= trip.delivered
            here, at = message.path[0], message.at
        return seconds, chance


def _exchanges(sent: Sequence[SentMessage]) -> list[list[SentMessage]]:
    """Group messages with those that answer them, such as data and its acknowledgement."""
    found: dict[object, list[SentMessage]] = {}
    for i, message in enumerate(sent):
        found.setdefault((i,) if message.exchange is None else message.exchange, []).append(message)
    return list(found.values())


def _before(last: SentMessage, sent: Sequence[SentMessage]) -> list[SentMessage]:
    """Return the messages between the two nodes of ``last``, up to that message: the parts of one
    transfer.
    """
    ends = {last.path[0], last.path[-1]}
    if last.flood:
        return [last]
    return [one for one in sent if {one.path[0], one.path[-1]} == ends and one.at <= last.at]
