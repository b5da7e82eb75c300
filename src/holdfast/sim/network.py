"""A network: built from values, booted, run, broken, and read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ..errors import UsageError
from ..model.instant import SECOND, Duration, Instant
from ..model.space import Point
from .chance import derived, stream
from .clock import Clock, Entry, LocalClock
from .energy import Account, Draw, Rest, draw
from .frame import NodeId
from .mac import Csma, Mac, Tdma
from .mac.station import Ledgers
from .mac.tdma import colouring
from .medium import Medium
from .node import Boot, Node
from .platforms import MICAZ, Platform
from .propagation import Hears, LogDistance, Propagation, hearing, interference_rule
from .radio import CC2420, Radio
from .trace import Trace
from .transceiver import Audience, Path, Transceiver


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Everything a run depends on, besides what runs on the nodes."""

    positions: Sequence[Point]
    """Metres, in two or three dimensions; a node's number is its place in the list."""
    propagation: Propagation = field(default_factory=LogDistance)
    radio: Radio = CC2420
    mac: Mac = field(default_factory=Csma)
    platform: Platform = MICAZ
    rest: Rest = field(default_factory=Rest)
    battery_j: float | None = None
    """Joules for each node; none: the supply does not end."""
    batteries: Mapping[NodeId, float | None] = field(default_factory=dict)
    """Joules of single nodes that have another supply."""
    drift_ppm: Mapping[NodeId, float] = field(default_factory=dict)
    """Clocks that run fast or slow, by parts per million."""
    delays: bool = False
    """Whether the processor's time for a frame (``platform.work``) delays it, and not only costs energy."""
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.positions:
            raise UsageError("a network needs at least one node; positions is empty")
        for joules in (self.battery_j, *self.batteries.values()):
            if joules is not None and not joules > 0:
                raise UsageError(
                    f"a battery of {joules} J; it must be above 0, or None for a supply without end"
                )
        for node in (*self.batteries, *self.drift_ppm):
            if not 0 <= node < len(self.positions):
                raise UsageError(f"there is no node {node}; nodes are 0 to {len(self.positions) - 1}")


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts at one moment.  For each pair of lines, what went in is what came out and what is under way."""

    time: Instant
    transmissions: int
    signals: int
    """Signals that reached somebody who could have received them: received + lost + on_air."""
    received: int
    lost: dict[str, int]
    on_air: int
    packets: int
    """Packets to a neighbour: delivered + dropped + waiting."""
    delivered: int
    dropped: dict[str, int]
    waiting: int
    broadcasts: int
    """Packets to all neighbours: aired + not_aired + unaired."""
    aired: int
    not_aired: dict[str, int]
    unaired: int
    events: int
    """What the clock let happen."""

    def conserved(self) -> bool:
        """Whether nothing came from nowhere and nothing went without a cause."""
        return (
            self.signals == self.received + sum(self.lost.values()) + self.on_air
            and self.packets == self.delivered + sum(self.dropped.values()) + self.waiting
            and self.broadcasts == self.aired + sum(self.not_aired.values()) + self.unaired
        )


class Network:
    """Nodes that share the air.  Equal setups, boots and calls give equal runs, bit for bit."""

    def __init__(self, setup: Setup, trace: Trace | None = None) -> None:
        self.setup = setup
        self.clock = Clock()
        self.trace = trace
        self.draw: Draw = draw(setup.platform, setup.rest, setup.radio.power_dbm)
        self.ledgers = Ledgers()
        self.events = 0
        noise, table = interference_rule(setup.propagation, setup.radio)
        self.medium = Medium(self.clock, setup.radio, noise, table, trace)
        self._hearing = list(hearing(setup.propagation, setup.positions, setup.radio, setup.seed))
        self._boot: Boot = lambda _: None
        self._on_death: Callable[[Node], None] = lambda _: None
        self._broken: set[tuple[NodeId, NodeId]] = set()
        self._worse = 0.0
        mac = self._mac()
        self.nodes = [self._node(id, position, mac) for id, position in enumerate(setup.positions)]
        for node in self.nodes:
            self._connect(node.id)

    def _mac(self) -> Mac:
        mac, nodes = self.setup.mac, len(self.setup.positions)
        if not isinstance(mac, Tdma):
            return mac
        if mac.slots is None:
            return replace(mac, slots=colouring(self.hearers()))
        if len(mac.slots) != nodes:
            raise UsageError(
                f"Tdma: {len(mac.slots)} slots for {nodes} nodes; give each node one, or none at all"
            )
        return mac

    def _node(self, id: NodeId, position: Point, mac: Mac) -> Node:
        setup = self.setup
        energy = Account(self.draw)
        battery = setup.batteries.get(id, setup.battery_j)
        if battery is not None:
            energy.supply(battery, self.clock, partial(self._empty, id))
        if self.trace is not None:
            energy.record(id, self.trace)
        radio = Transceiver(id, self.medium, energy.radio, stream(setup.seed, "radio", id))
        return Node(
            id,
            position,
            clock=self.clock,
            local=LocalClock(drift_ppb=round(setup.drift_ppm.get(id, 0.0) * 1000)),
            random=stream(setup.seed, "node", id),
            seed=derived(setup.seed, "machine", id),
            radio=radio,
            energy=energy,
            platform=setup.platform,
            mac=mac,
            ledgers=self.ledgers,
            delays=setup.delays,
        )

    # Running.

    def boot(self, boot: Boot) -> None:
        """Switch all nodes on; ``boot(node)`` installs what runs on one, now and after each restart."""
        self._boot = boot
        for node in self.nodes:
            node.start(boot)

    def at(self, time: Instant, action: Callable[[], None]) -> Entry:
        """Have something done from outside at a time: a failure, a measurement."""
        if time < self.clock.now:
            raise UsageError(f"{time} µs has passed: it is {self.clock.now} µs")
        return self.clock.at(time, lambda _: action())

    def every(self, period: Duration, action: Callable[[], None]) -> None:
        """Have something done again and again, first when one period has passed."""
        if period <= 0:
            raise UsageError(f"a period of {period} µs; it must be above 0")

        def again(_: Any) -> None:
            action()
            self.clock.after(period, again)

        self.clock.after(period, again)

    def run(self, until: Instant) -> None:
        """Let everything happen up to and including a time."""
        self.events += self.clock.run(until)
        for node in self.nodes:
            node.energy.mcu.settle(self.now)

    def stop(self) -> None:
        """End the run after what happens now (called from within it)."""
        self.clock.stop()

    def on_death(self, action: Callable[[Node], None]) -> None:
        """Have ``action(node)`` called when a battery is empty; ``lambda _: network.stop()`` ends the run."""
        self._on_death = action

    @property
    def now(self) -> Instant:
        return self.clock.now

    # What goes wrong.

    def kill(self, id: NodeId) -> None:
        """A node goes down, in the middle of whatever it does.  One that is down stays so."""
        if self._at(id).alive:
            self._at(id).halt()

    def restart(self, id: NodeId) -> None:
        """A node comes up again and remembers nothing; not one whose battery is empty."""
        node = self._at(id)
        if not node.alive and node.died is None:
            node.start(self._boot)

    def cut(self, a: NodeId, b: NodeId, *, both: bool = True) -> None:
        """``b`` no longer hears ``a`` (and the other way round); frames on their way still arrive."""
        self._change([(a, b), (b, a)] if both else [(a, b)], self._broken.add)

    def mend(self, a: NodeId, b: NodeId, *, both: bool = True) -> None:
        """``b`` hears ``a`` again, as well as before."""
        self._change([(a, b), (b, a)] if both else [(a, b)], self._broken.discard)

    def partition(self, *groups: Iterable[NodeId]) -> None:
        """Nodes hear only those of their own group; nodes that are in none form one together."""
        member = {self._at(id).id: i for i, group in enumerate(groups) for id in group}
        pairs = [
            (a.id, hears.node)
            for a in self.nodes
            for hears in self._hearing[a.id]
            if member.get(a.id) != member.get(hears.node)
        ]
        self._change(pairs, self._broken.add)

    def heal(self) -> None:
        """All links are as they were at the beginning."""
        self._change(sorted(self._broken), self._broken.discard)

    def disturb(self, per_us: float) -> None:
        """From now on a µs of a signal is right with a chance worse by this logarithm, on all links."""
        if not per_us <= 0:
            raise UsageError(f"a chance worse by a logarithm of {per_us}; it is 0 or less")
        self._worse = per_us
        for node in self.nodes:
            self._connect(node.id)

    def drift(self, id: NodeId, ppm: float) -> None:
        """From now on a node's clock runs fast (or slow) by parts per million."""
        self._at(id).local.drift(self.now, round(ppm * 1000))

    def _at(self, id: NodeId) -> Node:
        if not 0 <= id < len(self.nodes):
            raise UsageError(f"there is no node {id}; nodes are 0 to {len(self.nodes) - 1}")
        return self.nodes[id]

    def _change(
        self, links: Iterable[tuple[NodeId, NodeId]], change: Callable[[tuple[NodeId, NodeId]], None]
    ) -> None:
        senders = set()
        for sender, receiver in links:
            change((self._at(sender).id, self._at(receiver).id))
            senders.add(sender)
        for sender in senders:
            self._connect(sender)

    def _connect(self, sender: NodeId) -> None:
        heard = [h for h in self._hearing[sender] if (sender, h.node) not in self._broken]
        self.medium.connect(
            sender,
            Audience(
                tuple(
                    Path(self.nodes[h.node].radio, h.power_mw, h.per_us + self._worse, h.quality)
                    for h in heard
                    if h.decodable
                ),
                tuple((self.nodes[h.node].radio, h.power_mw) for h in heard if not h.decodable),
            ),
        )

    def _empty(self, id: NodeId) -> None:
        node = self.nodes[id]
        if node.alive:
            node.died = self.now
            node.halt()
            self._on_death(node)

    # Reading.

    def hearers(self) -> dict[NodeId, set[NodeId]]:
        """For each node, those who can receive from it (while no link is cut)."""
        return {
            id: {hears.node for hears in heard if hears.decodable} for id, heard in enumerate(self._hearing)
        }

    def heard(self, id: NodeId) -> list[Hears]:
        """Who hears a node, and how well."""
        return self._hearing[self._at(id).id]

    def joules(self) -> list[float]:
        """What each node has used so far."""
        return [node.energy.joules(self.now) for node in self.nodes]

    def by_cause(self) -> dict[str, float]:
        """Joules of all nodes, by cause."""
        found: dict[str, float] = {}
        for node in self.nodes:
            for cause, joules in node.energy.by_cause(self.now).items():
                found[cause] = found.get(cause, 0.0) + joules
        return found

    def meter(self, round: Duration = 10 * SECOND) -> None:
        """Write every node's energy to the trace in every round [D38]."""
        if self.trace is None:
            raise UsageError("a meter writes to the trace; make the network with a Trace")
        self.every(round, self._measure)

    def _measure(self) -> None:
        assert self.trace is not None
        for node in self.nodes:
            reading, left = node.energy.read(self.now), node.energy.residual(self.now)
            self.trace.energy.append(
                self.now,
                node.id,
                reading.radio_joules,
                reading.mcu_joules,
                float("nan") if left is None else left,
            )

    def totals(self) -> Totals:
        """The counts so far."""
        medium, unicast, broadcast = self.medium, self.ledgers.unicast, self.ledgers.broadcast
        waiting = [packet for node in self.nodes if node.alive for packet in node.link.in_flight()]
        unaired = sum(self.ledgers.of(packet) is broadcast for packet in waiting)
        return Totals(
            time=self.now,
            transmissions=medium.transmissions,
            signals=medium.reached,
            received=medium.received,
            lost={why: count for why, count in medium.lost.items() if count},
            on_air=medium.in_flight(),
            packets=unicast.sent,
            delivered=unicast.delivered,
            dropped=dict(unicast.dropped),
            waiting=len(waiting) - unaired,
            broadcasts=broadcast.sent,
            aired=broadcast.delivered,
            not_aired=dict(broadcast.dropped),
            unaired=unaired,
            events=self.events,
        )
