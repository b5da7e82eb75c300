"""The set-ups of the thesis as far as its text gives them; what it omits is chosen with a reason.

Every function takes what its experiment varies and returns a ``Setup``. Further arguments are fields of that,
or of its protocol ``Dds``. Nodes are numbered row by row from 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from holdfast.errors import UsageError
from holdfast.model.instant import MILLISECOND, SECOND, Duration, Instant
from holdfast.network.motes.case import resolve_files
from holdfast.network.motes.dds import Dds
from holdfast.network.motes.direct import Direct
from holdfast.network.motes.failure import Failure
from holdfast.network.motes.nodes import Grid
from holdfast.network.motes.readings import SensorModel, UniformReadings
from holdfast.network.motes.routing import OnDemand, Routing, Static
from holdfast.network.motes.run import SimulationRun
from holdfast.network.motes.scenario import Energy, Publisher, Radio, Scenario, Subscriber
from holdfast.network.protocols.dds.deployment import ModeName, ReliableSettings
from holdfast.network.protocols.dds.level import FULL, Level
from holdfast.network.sim.chance import stream
from holdfast.network.sim.energy import Rest
from holdfast.network.sim.frame import NodeId
from holdfast.network.sim.mac import Csma, Mac
from holdfast.network.sim.propagation import LogDistance, UnitDisk
from holdfast.network.sim.routing import ondemand
from holdfast.network.sim.routing.flooding import FLOODING
from holdfast.network.sim.routing.grid import hops

from .air import FITTED

TOPIC = "reading"
ASLEEP = Rest("sleep", "sleep")
"""The only rest state in which the lifetimes of chapters 6 and 7 make sense (spec §7, 7)."""


@dataclass(frozen=True, kw_only=True)
class Setup:
    """A run on a grid of motes: publishers that sample at the same time, and subscribers."""

    rows: int
    columns: int
    spacing: float
    """The distance of two neighbours in metres."""
    publishers: Mapping[str, tuple[NodeId, ...]]
    """The publishers of each topic, in the order of the topics' hashes."""
    subscribers: tuple[tuple[NodeId, str], ...]
    """The subscribers, each with a topic or condition."""
    protocol: Dds | Direct
    definition: str = ""
    """Conditions on the topics."""
    readings: SensorModel = field(default_factory=UniformReadings)
    """The readings: from 0 to 1, above the threshold 1 - p with probability p."""
    ipi: Duration = 5 * SECOND
    """The time between two samples of a publisher."""
    phase: Literal["together", "random"] = "together"
    """The publishers of the thesis sample at the same time (§4.2.2)."""
    start: Instant = 15 * SECOND
    """When publishers begin; subscriptions are known by then."""
    duration: Duration = 500 * SECOND
    """For how long they publish."""
    drain: Duration = 30 * SECOND
    """How long the run continues after that."""
    joining: Mapping[NodeId, Instant] = field(default_factory=dict)
    """When subscribers start, if not at the beginning."""
    failures: tuple[Failure, ...] = ()
    propagation: LogDistance | UnitDisk | None = None
    """``None``: exactly the eight neighbours of a node are in range. [D52]"""
    radio: Radio = field(default_factory=Radio)
    mac: Mac = field(default_factory=lambda: Csma(acknowledged=False))
    """The default of TinyOS: CSMA, without acknowledgements on links."""
    routing: Routing = field(default_factory=lambda: Static(jitter=FLOODING.jitter))
    rest: Rest = ASLEEP
    battery_j: float | None = None
    delays: bool = False
    """Whether the processor's time for a frame delays it."""
    sampling: Duration = 0
    """How long a publisher's processor works for each reading of its sensor."""
    sampled: Duration | None = None
    """How often the sensor is read; samples are means. [D62]"""
    until_first_death: bool = False
    seed: int = 1

    def scenario(self) -> Scenario:
        """Return the scenario: everything but the seed."""
        topics = "".join(f"topic {name} (value float)\n" for name in self.publishers)
        return Scenario(
            nodes=Grid(self.rows, self.columns, self.spacing),
            links=self.propagation or UnitDisk(1.5 * self.spacing),
            radio=self.radio,
            mac=self.mac,
            routing=self.routing,
            energy=Energy(rest=self.rest, battery=self.battery_j, delays=self.delays, sampling=self.sampling),
            definition=topics + self.definition,
            protocol=self.protocol,
            publishers=tuple(
                Publisher(
                    topic=topic,
                    from_=who,
                    every=self.ipi,
                    sampled=self.sampled,
                    readings={"value": self.readings},
                    phase=self.phase,
                    start=self.start,
                    stop=self.start + self.duration,
                )
                for topic, who in self.publishers.items()
            ),
            subscribers=tuple(
                Subscriber(node=node, to=name, start=self.joining.get(node, 0))
                for node, name in self.subscribers
            ),
            failures=self.failures,
            duration=self.start + self.duration + self.drain,
            until_first_death=self.until_first_death,
        )

    def run(self) -> SimulationRun:
        """Return the run, ready to be finished."""
        return SimulationRun(resolve_files(self.scenario()), self.seed)


def _set_up(dds: Mapping[str, Any], given: Mapping[str, Any]) -> Setup:
    """Return a set-up with a protocol; ``given`` has fields of either."""
    known = {each.name for each in fields(Dds)}
    protocol = {**dds, **{name: value for name, value in given.items() if name in known}}
    rest: dict[str, Any] = {name: value for name, value in given.items() if name not in known}
    return Setup(**{"protocol": Dds(**protocol), **rest})


# Chapter 3: what the middleware costs.  [D67]

_DYMO = ondemand.OnDemand()
DYMO = OnDemand(wait=_DYMO.wait, jitter=_DYMO.jitter)
TYMO = replace(DYMO, keep=30 * SECOND, resends=0, second=False, buffers=1)
"""TinyOS' own DYMO: what a link loses is lost, with the route; it buffers one message of other nodes."""


def middleware_cost(middleware: bool, ipi: Duration = 6 * SECOND, **more: Any) -> Setup:
    """Return 4 × 4 nodes on 100 m × 100 m, publishers 1 and 4, base station 15, best effort over DYMO.

    The rendezvous node is 0, the hash taken literally. DYMO must know which links work, so links acknowledge.
    The rest state is that of the validation in chapter 5: radio and processor always on.
    """
    given: dict[str, Any] = {
        "rows": 4,
        "columns": 4,
        "spacing": 100 / 3,
        "publishers": {TOPIC: (1, 4)},
        "subscribers": ((15, TOPIC),),
        "ipi": ipi,
        "routing": DYMO,
        "mac": Csma(),
        "rest": Rest("listen", "idle"),
        "sampling": 2 * MILLISECOND,
        "sampled": 250 * MILLISECOND,
        "duration": 1000 * SECOND,
        **({} if middleware else {"protocol": Direct()}),
    }
    return _set_up({"rendezvous": (0,)}, given | more)


# Chapter 4: RTDDS.  [D68]

ROWS, COLUMNS, SPACING = 5, 10, 100 / 6
"""50 nodes make no square (spec §7, 10), so there are 5 × 10, as far apart as the 7 × 7 nodes of chapter
6."""
MIDDLE = (2, 4)
"""The position of the rendezvous node: within three hops of 34 others, within five of all."""
STATION_HOPS = 3
TO_ORIGIN = ReliableSettings(acknowledged="end-to-end")
"""The acknowledgement is "sent back to the message origin" (§4.1); chapter 4 has one subscriber. [D25]"""


def acknowledging(air: str, rto: Duration = TO_ORIGIN.rto) -> ReliableSettings:
    """Return the settings of writers in chapter 4: acknowledged by the reader in the fitted model, else by
    the RN."""
    return replace(TO_ORIGIN if air == FITTED else ReliableSettings(), rto=rto)


ACKNOWLEDGED = {
    "acknowledgements": f"{FITTED}: from the base station to the origin (D25); the other airs: by the "
    "rendezvous node"
}
"""The same in words."""


def _at(row: int, column: int) -> NodeId:
    return row * COLUMNS + column


def _rtdds(publishers: tuple[NodeId, ...], station: NodeId, dds: Mapping[str, Any], more: Any) -> Setup:
    given: dict[str, Any] = {
        "rows": ROWS,
        "columns": COLUMNS,
        "spacing": SPACING,
        "publishers": {TOPIC: publishers},
        "subscribers": ((station, TOPIC),),
    }
    return _set_up({"rendezvous": (_at(*MIDDLE),), "ifs": True, **dds}, given | more)


def rtdds_rto(rto: Duration, to_rendezvous: int, **more: Any) -> Setup:
    """Return FRQoS-RTO: two publishers and the base station, each 1 to 5 hops from the RN, one message a
    second.

    The thesis counts hops end to end, twice as many.
    """
    if not 1 <= to_rendezvous <= 5:
        raise UsageError(f"{to_rendezvous} hops to the rendezvous node; from 1 to 5 on this grid")
    row, column = MIDDLE
    aside, there = min(to_rendezvous, 2), column + to_rendezvous
    publishers = (_at(row - aside, there), _at(row, there))
    dds = {"level": FULL, "reliable": ReliableSettings(rto=rto)}
    return _rtdds(publishers, _at(row + aside, there), dds, {"ipi": SECOND, **more})


def rtdds_load(
    publishers: int, ipi: Duration, level: Level = FULL, seed: int = 1, behind: bool = False, **more: Any
) -> Setup:
    """Return FRQoS-IPI and Table 6: publishers within three hops of the RN, drawn by the seed.

    With ``behind``, publishers are drawn from nodes whose shortest path to the base station goes by the RN.
    """
    station = _at(MIDDLE[0], MIDDLE[1] + STATION_HOPS)
    middle = _at(*MIDDLE)
    far = {node: hops(node, middle, COLUMNS) for node in range(ROWS * COLUMNS)}
    near = [node for node in far if node not in (middle, station) and far[node] <= STATION_HOPS]
    if behind:
        near = [node for node in near if hops(node, station, COLUMNS) == far[node] + STATION_HOPS]
    if not 1 <= publishers <= len(near):
        where = "behind it" if behind else "within three hops of the RN"
        raise UsageError(f"{publishers} publishers; from 1 to {len(near)} are {where}")
    chosen = tuple(sorted(stream(seed, "publishers").sample(near, publishers)))
    dds = {"level": level, "reliable": ReliableSettings()}
    return _rtdds(chosen, station, dds, {"ipi": ipi, "seed": seed, **more})


# Chapters 6 and 7: with and without a broker.  [D69]

SQUARE, TRIANGLE, CIRCLE = "square", "triangle", "circle"
SIDE = 7
BASE_STATION, LEFT_ACTUATOR, RIGHT_ACTUATOR = 24, 21, 27
RENDEZVOUS = (22, 26, 10)
"""The rendezvous nodes by hash. The figure is lost. The text has a base station in the middle, RNs with hot
nodes between them and it, and a third RN ("circle") that stays healthy. So two are left and right of the
base station and the third above."""
PUBLISHERS = {SQUARE: (7, 35), TRIANGLE: (13, 41), CIRCLE: (3,)}


def modes(mode: ModeName, ipi: Duration = 2 * SECOND, level: Level = FULL, **more: Any) -> Setup:
    """Return Table 10: 7 × 7 nodes, five publishers, two actuators with a topic each, a base station with all
    three.

    There is no interference-free scheduling (§6.2.3).
    """
    watchers = [(LEFT_ACTUATOR, SQUARE), (RIGHT_ACTUATOR, TRIANGLE)]
    watchers += [(BASE_STATION, name) for name in PUBLISHERS]
    given: dict[str, Any] = {
        "rows": SIDE,
        "columns": SIDE,
        "spacing": 100 / 6,
        "publishers": PUBLISHERS,
        "subscribers": tuple(watchers),
        "ipi": ipi,
        "duration": 1000 * SECOND,
    }
    return _set_up({"mode": mode, "level": level, "rendezvous": RENDEZVOUS}, given | more)


def lifetime(mode: ModeName, ipi: Duration = 2 * SECOND, level: Level = FULL, **more: Any) -> Setup:
    """Return the set-up of chapter 7: as ``modes``, with 1 J for each node, until the first has used it.
    [D50]

    Nodes sleep at rest: with radio or processor on, 1 J does not last for one round of 350 s (spec §7, 7).
    """
    given = {"battery_j": 1.0, "until_first_death": True, "duration": 100_000 * SECOND, "drain": 0}
    return modes(mode, ipi, level, **given | more)
