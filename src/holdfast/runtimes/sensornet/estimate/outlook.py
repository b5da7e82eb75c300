"""What a network will take with one protocol: all parts together.

Assumed: frames do not collide (the channel is mostly free) but in a protocol's own bursts, links are as good
all the time as their means, routes have settled, nobody fails, and readings come as in the history.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, prod

import numpy as np

from ....model.instant import DAY, SECOND, Instant
from ....sim.frame import NodeId
from ....sim.network import Network
from ..case import Case, Plan, planned
from .aired import aired
from .hop import Air, Floats
from .rates import Kind, Rates
from .rehearsal import Rehearsal, Rehearsed, Sent, rehearse
from .routes import Routes, Trip

A_DAY = DAY / SECOND
TOGETHER = 6
"""So many messages that a protocol sends at a time, by itself, get into one another's way."""


@dataclass(frozen=True)
class Bill:
    """What something takes: joules of each node, frames, seconds on the air."""

    joules: Floats
    frames: float = 0.0
    airtime: float = 0.0

    def __add__(self, other: Bill) -> Bill:
        return Bill(self.joules + other.joules, self.frames + other.frames, self.airtime + other.airtime)

    def times(self, factor: float) -> Bill:
        return Bill(self.joules * factor, self.frames * factor, self.airtime * factor)


@dataclass(frozen=True)
class Reading:
    """What a reading of a kind takes, and how those who are told of it fare."""

    bill: Bill
    told: Mapping[tuple[str, NodeId], tuple[float, float]]
    """By subscription and node: seconds until it is told, and the chance that it ever is."""


@dataclass(frozen=True)
class Outlook:
    """All of it, a day."""

    plan: Plan
    rates: Rates
    rest: float
    """Watts of a node to which nothing happens."""
    start: Bill
    """Once."""
    control: Bill
    """A day: beacons, and processors that sample."""
    idle: Bill
    """A day: what the protocol says when nothing happens."""
    readings: Mapping[Kind, Reading]
    is_aired: bool
    """Whether what is said when nothing happens was put on the air."""

    def caused(self, a_day: Mapping[Kind, float] | None = None) -> Bill:
        """By readings, a day; at other rates, if some are given."""
        zero = Bill(np.zeros_like(self.idle.joules))
        rates = {kind: self.rates.a_day(kind) for kind in self.readings} if a_day is None else a_day
        return sum((self.readings[kind].bill.times(often) for kind, often in rates.items()), zero)

    def by_turns(self, subscription: str, a_day: float) -> float:
        """Joules of all nodes, a day, if a subscription started and ended so often in all."""
        place = self.rates.subscriptions.index(subscription)
        turning, other = (
            [(self.rates.counts[kind], reading.bill.joules.sum()) for kind, reading in self.readings.items()
             if kind.sort[place][0] == turns]
            for turns in (True, False)
        )  # fmt: skip
        more = _mean(turning) - _mean(other) if turning else 0.0
        now = self.rates.turns(subscription) * DAY / self.rates.span
        return float(self.joules().sum() + (a_day - now) * more)

    def joules(self, a_day: Mapping[Kind, float] | None = None) -> Floats:
        """Of each node, a day."""
        return np.asarray(self.rest * A_DAY + self.by_itself.joules + self.caused(a_day).joules)

    @property
    def by_itself(self) -> Bill:
        """What is sent a day if nothing is read."""
        return self.control + self.idle

    @property
    def frames(self) -> float:
        """A day."""
        return self.by_itself.frames + self.caused().frames

    @property
    def busy(self) -> float:
        """The share of time for which somebody is on the air."""
        return (self.by_itself.airtime + self.caused().airtime) / A_DAY

    def days(self, a_day: Mapping[Kind, float] | None = None) -> tuple[float, NodeId] | None:
        """Until the first node dies, and which; nothing where no battery ends."""
        setup = self.plan.setup
        joules = self.joules(a_day)
        found = [
            (float((battery - self.start.joules[node]) / joules[node]), node)
            for node in range(len(joules))
            if (battery := setup.batteries.get(node, setup.battery_j)) is not None
        ]
        return min(found) if found else None

    def delay(self, subscription: str) -> tuple[float, float] | None:
        """Of what starts or ends a subscription: mean seconds until a subscriber is told, and the share of
        which it ever is."""
        place = self.rates.subscriptions.index(subscription)
        weight = seconds = came = 0.0
        for kind, reading in self.readings.items():
            if not kind.sort[place][0]:
                continue
            for (name, _), (after, chance) in reading.told.items():
                if name == subscription:
                    often = self.rates.counts[kind]
                    weight, came = weight + often, came + often * chance
                    seconds += often * chance * after
        return (seconds / came if came else inf, came / weight) if weight else None


def _mean(some: Sequence[tuple[int, float]]) -> float:
    return sum(count * joules for count, joules in some) / (sum(count for count, _ in some) or 1)


def outlook(case: Case, seed: int, rates: Rates) -> Outlook:
    """What a network will take, in which a history is cast whose rates are known."""
    rehearsed = rehearse(case, seed, rates.examples)
    plan = planned(case, seed)
    routes = _routes(case, seed)
    air = routes.air
    every = _Prices(routes, rehearsed)
    found: dict[Kind, list[Reading]] = {}
    for example, sent, told in zip(rates.examples, rehearsed.caused, rehearsed.told, strict=True):
        found.setdefault(example.kind, []).append(every.reading(sent, told))
    timer, read = air.working(plan.setup.platform.work.timer), air.working(case.scenario.energy.sampling)
    names = {name: node for node, name in enumerate(plan.placed.names)}
    often = {each.topic: each.sampled for each in case.scenario.publishers if each.sampled is not None}
    readings = {
        kind: Reading(
            _average(some) + _at(air, names[kind.source], timer + (0.0 if kind.topic in often else read)),
            some[-1].told,
        )
        for kind, some in found.items()
    }
    control, beacons = routes.control()
    said = Bill(control * A_DAY, beacons * A_DAY)
    sensing = Bill(air.spent())
    for topic, pause in often.items():
        for node in (node for each in plan.sources if each.topic.name == topic for node in each.nodes):
            sensing += _at(air, node, (timer + read) * DAY / pause)
    idle = every.bill(rehearsed.idle).times(A_DAY / rehearsed.seconds)
    if is_aired := rehearsed.cycle is not None and rehearsed.together > TOGETHER:
        watts, frames = aired(case, seed, rates.events, rehearsed.cycle, rehearsed.a_second)
        joules = np.maximum((watts - air.rest) * A_DAY - said.joules, 0.0)
        frames = frames * A_DAY - said.frames
        idle = Bill(joules, frames, idle.airtime * frames / idle.frames)
    start = every.bill(rehearsed.start)
    return Outlook(plan, rates, air.rest, start, said + sensing, idle, readings, is_aired)


def _average(some: Sequence[Reading]) -> Bill:
    """Of readings of a kind, which found roles at several nodes; without the first, if there are more:
    it may have had to say what is known since."""
    first, *others = (one.bill for one in some[1:] or some)
    return sum(others, first).times(1 / (1 + len(others)))


def _at(air: Air, node: NodeId, joules: float) -> Bill:
    found = air.spent()
    found[node] = joules
    return Bill(found)


def _routes(case: Case, seed: int) -> Routes:
    """The ways of the network as it is: a rehearsal has another MAC."""
    run = Rehearsal(case, seed)
    machine = run.routes.machine
    network = Network(planned(case, seed).setup)
    return Routes(Air(network, getattr(machine, "overhears", True)), machine)


class _Prices:
    """What messages take."""

    def __init__(self, routes: Routes, rehearsed: Rehearsed) -> None:
        self._routes, self._patience = routes, rehearsed.patience
        self._trips: dict[tuple[object, int, bool, object], Trip] = {}

    def trip(self, sent: Sent) -> Trip:
        key = sent.way, sent.size, sent.flood, sent.more
        if key not in self._trips:
            routes = self._routes
            self._trips[key] = (
                routes.flood(sent.way, sent.size)
                if sent.flood
                else routes.trip(sent.way, sent.size, sent.more)
            )
        return self._trips[key]

    def bill(self, sent: Sequence[Sent]) -> Bill:
        """What some messages take, with all repetitions."""
        total = Bill(self._routes.air.spent())
        for some in _exchanges(sent):
            for each, often in zip(some, self._often(some), strict=True):
                trip = self.trip(each)
                total = total + Bill(trip.joules, trip.frames, trip.airtime).times(often)
        return total

    def _often(self, some: Sequence[Sent]) -> list[float]:
        """How often each message of an exchange is sent: all is begun again until the last has come, or once
        more each time that an answer takes longer than it is waited for."""
        if len(some) == 1 or self._patience is None:
            return [1.0] * len(some)
        chances = [max(self.trip(each).delivered, 1e-3) for each in some]
        rounds = 1 / prod(chances)
        late = sum(self.trip(each).seconds for each in some) // self._patience
        return [(rounds + late) * prod(chances[:i]) for i in range(len(some))]

    def reading(self, sent: Sequence[Sent], told: Mapping[tuple[str, NodeId], Instant]) -> Reading:
        """What a reading takes, and how it comes to those who are told."""
        return Reading(self.bill(sent), {who: self._arrival(who[1], sent, at) for who, at in told.items()})

    def _arrival(self, node: NodeId, sent: Sequence[Sent], at: Instant) -> tuple[float, float]:
        """Seconds and chance, along the messages by which it came."""
        seconds, chance, here = 0.0, 1.0, node
        shared = {id(each): some for some in _exchanges(sent) for each in some}
        for each in reversed([one for one in sent if one.at <= at]):
            if here not in each.ends or each.word == "ack":
                continue
            trip = self.trip(each)
            seconds += sum(self.trip(one).seconds for one in _before(each, sent))
            if len(shared[id(each)]) > 1 and self._patience is not None:
                seconds += (1 / max(trip.delivered, 1e-3) - 1) * self._patience
            else:
                chance *= trip.delivered
            here, at = each.way[0], each.at
        return seconds, chance


def _exchanges(sent: Sequence[Sent]) -> list[list[Sent]]:
    """Messages with those that answer them."""
    found: dict[object, list[Sent]] = {}
    for i, each in enumerate(sent):
        found.setdefault((i,) if each.exchange is None else each.exchange, []).append(each)
    return list(found.values())


def _before(last: Sent, sent: Sequence[Sent]) -> list[Sent]:
    """What two ends say to each other until a message is through: its pieces, one after the other."""
    ends = {last.way[0], last.way[-1]}
    if last.flood:
        return [last]
    return [one for one in sent if {one.way[0], one.way[-1]} == ends and one.at <= last.at]
