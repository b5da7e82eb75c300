"""A network of simulated nodes on a shared channel, built from a ``Setup``.

A `Network` boots and runs its nodes, applies failures, and returns counts and energy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ...errors import UsageError
from ...model.instant import SECOND, Duration, Instant
from ...model.space import Point
from .chance import derive_seed, stream
from .clock import Clock, Entry, LocalClock
from .energy import Draw, NodeEnergy, Rest, draw
from .frame import NodeId
from .mac import Csma, Mac, Tdma
from .mac.station import PacketLedgers
from .mac.tdma import colouring
from .medium import Medium
from .node import Boot, Node
from .platforms import MICAZ, Platform
from .propagation import LogDistance, Propagation, Reception, interference_rule, receptions
from .radio import CC2420, Radio
from .trace import Trace
from .transceiver import Audience, Path, Transceiver


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The properties of a run, except the protocols on the nodes."""

    positions: Sequence[Point]
    """The positions of the nodes in metres, in two or three dimensions. A node's number is its index."""
    propagation: Propagation = field(default_factory=LogDistance)
    radio: Radio = CC2420
    mac: Mac = field(default_factory=Csma)
    platform: Platform = MICAZ
    rest: Rest = field(default_factory=Rest)
    battery_j: float | None = None
    """The capacity of each node's battery in joules; ``None`` for an unlimited supply."""
    batteries: Mapping[NodeId, float | None] = field(default_factory=dict)
    """The capacities, in joules, of nodes whose battery differs from ``battery_j``."""
    drift_ppm: Mapping[NodeId, float] = field(default_factory=dict)
    """The deviation of clocks in parts per million, for nodes whose clock is not exact."""
    delays: bool = False
    """Whether the processing time of a frame (``platform.work``) delays it. Its energy is charged in any
    case.
    """
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.positions:
            raise UsageError("a network needs at least one node; positions is empty")
        for joules in (self.battery_j, *self.batteries.values()):
            if joules is not None and not joules > 0:
                why = "it must be above 0, or None for a supply without end"
                raise UsageError(f"a battery of {joules} J; {why}")
        for node in (*self.batteries, *self.drift_ppm):
            if not 0 <= node < len(self.positions):
                raise UsageError(f"there is no node {node}; nodes are 0 to {len(self.positions) - 1}")


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts at one time. Signals, packets and broadcasts each equal the sum of the counts of their
    outcomes.
    """

    time: Instant
    transmissions: int
    signals: int
    """The number of signals, once for each node that could have received them: received + lost + on_air."""
    received: int
    lost: dict[str, int]
    on_air: int
    packets: int
    """The number of packets to one neighbour: delivered + dropped + waiting."""
    delivered: int
    dropped: dict[str, int]
    waiting: int
    broadcasts: int
    """The number of packets to all neighbours: aired + not_aired + unaired."""
    aired: int
    not_aired: dict[str, int]
    unaired: int
    events: int
    """The number of events that the clock processed."""

    def is_conserved(self) -> bool:
        """Return whether every signal and packet is counted under exactly one outcome."""
        return (
            self.signals == self.received + sum(self.lost.values()) + self.on_air
            and self.packets == self.delivered + sum(self.dropped.values()) + self.waiting
            and self.broadcasts == self.aired + sum(self.not_aired.values()) + self.unaired
        )


class Network:
    """Nodes that share a channel. Equal setups, boots and calls give equal runs, bit for bit."""

    def __init__(self, setup: Setup, trace: Trace | None = None) -> None:
        self.setup = setup
        self.clock = Clock()
        self.trace = trace
        self.draw: Draw = draw(setup.platform, setup.rest, setup.radio.power_dbm)
        self.ledgers = PacketLedgers()
        self.events = 0
        noise, table = interference_rule(setup.propagation, setup.radio)
        self.medium = Medium(self.clock, setup.radio, noise, table, trace)
        self._receptions = list(receptions(setup.propagation, setup.positions, setup.radio, setup.seed))
        self._boot: Boot = lambda _: None
        self._on_death: Callable[[Node], None] = lambda _: None
        self._broken: set[tuple[NodeId, NodeId]] = set()
        self._extra_loss = 0.0
        mac = self._assign_slots()
        self.nodes = [self._make_node(id, position, mac) for id, position in enumerate(setup.positions)]
        for node in self.nodes:
            self._connect(node.id)

    def _assign_slots(self) -> Mac:
        """Return the MAC, in which a TDMA without slots gets a slot for each node."""
        mac, nodes = self.setup.mac, len(self.setup.positions)
        if not isinstance(mac, Tdma):
            return mac
        if mac.slots is None:
            return replace(mac, slots=colouring(self.receivers()))
        if len(mac.slots) != nodes:
            why = f"{len(mac.slots)} slots for {nodes} nodes; give each node one, or none at all"
            raise UsageError(f"Tdma: {why}")
        return mac

    def _make_node(self, id: NodeId, position: Point, mac: Mac) -> Node:
        """Build a node with its radio, clock, energy account and random numbers."""
        setup = self.setup
        energy = NodeEnergy(self.draw)
        battery = setup.batteries.get(id, setup.battery_j)
        if battery is not None:
            energy.supply(battery, self.clock, partial(self._on_empty_battery, id))
        if self.trace is not None:
            energy.record(id, self.trace)
        radio = Transceiver(id, self.medium, energy.radio, stream(setup.seed, "radio", id))
        return Node(
            id,
            position,
            clock=self.clock,
            local=LocalClock(drift_ppb=round(setup.drift_ppm.get(id, 0.0) * 1000)),
            random=stream(setup.seed, "node", id),
            seed=derive_seed(setup.seed, "machine", id),
            radio=radio,
            energy=energy,
            platform=setup.platform,
            mac=mac,
            ledgers=self.ledgers,
            delays=setup.delays,
        )

    # Running.

    def boot(self, boot: Boot) -> None:
        """Switch all nodes on. ``boot(node)`` installs the protocols on a node, now and after each
        restart.
        """
        self._boot = boot
        for node in self.nodes:
            node.start(boot)

    def at(self, time: Instant, action: Callable[[], None]) -> Entry:
        """Schedule an action from outside the nodes, such as a failure or a measurement."""
        if time < self.clock.now:
            raise UsageError(f"{time} µs has passed: it is {self.clock.now} µs")
        return self.clock.at(time, lambda _: action())

    def every(self, period: Duration, action: Callable[[], None]) -> None:
        """Call an action periodically, first after one period in µs."""
        if period <= 0:
            raise UsageError(f"a period of {period} µs; it must be above 0")

        def again(_: Any) -> None:
            action()
            self.clock.after(period, again)

        self.clock.after(period, again)

    def run(self, until: Instant) -> None:
        """Process all events up to and including ``until``."""
        self.events += self.clock.run(until)
        for node in self.nodes:
            node.energy.mcu.settle(self.now)

    def stop(self) -> None:
        """End the run after the present event. Call this from an action during a run."""
        self.clock.stop()

    def on_death(self, action: Callable[[Node], None]) -> None:
        """Call ``action(node)`` when a battery is empty. To end the run then, pass ``lambda _:
        network.stop()``.
        """
        self._on_death = action

    @property
    def now(self) -> Instant:
        return self.clock.now

    # Failures.

    def kill(self, id: NodeId) -> None:
        """Take a node down immediately, even while it sends. A node that is down is not affected."""
        if (node := self._existing(id)).alive:
            node.halt()

    def restart(self, id: NodeId) -> None:
        """Start a node again without memory. A node whose battery is empty is not affected."""
        node = self._existing(id)
        if not node.alive and node.died is None:
            node.start(self._boot)

    def cut(self, a: NodeId, b: NodeId, *, both: bool = True) -> None:
        """Break the link from ``a`` to ``b``, and back if ``both``. Frames in transmission still arrive."""
        self._change([(a, b), (b, a)] if both else [(a, b)], self._broken.add)

    def mend(self, a: NodeId, b: NodeId, *, both: bool = True) -> None:
        """Restore the link from ``a`` to ``b``, and back if ``both``, to its original quality."""
        self._change([(a, b), (b, a)] if both else [(a, b)], self._broken.discard)

    def partition(self, *groups: Iterable[NodeId]) -> None:
        """Break all links between groups of nodes. The nodes that are in no group form one further group."""
        member = {self._existing(id).id: i for i, group in enumerate(groups) for id in group}
        pairs = [(a, b.node) for a, in_range in enumerate(self._receptions) for b in in_range]
        apart = [(a, b) for a, b in pairs if member.get(a) != member.get(b)]
        self._change(apart, self._broken.add)

    def heal(self) -> None:
        """Restore all broken links."""
        self._change(sorted(self._broken), self._broken.discard)

    def disturb(self, per_us: float) -> None:
        """Worsen all links from now on.

        ``per_us``, at most 0, is added to the log of the probability that 1 µs of a signal is correct.
        """
        if not per_us <= 0:
            raise UsageError(f"a chance worse by a logarithm of {per_us}; it is 0 or less")
        self._extra_loss = per_us
        for node in self.nodes:
            self._connect(node.id)

    def drift(self, id: NodeId, ppm: float) -> None:
        """Change the deviation of a node's clock from now on, in parts per million."""
        self._existing(id).local.drift(self.now, round(ppm * 1000))

    def _existing(self, id: NodeId) -> Node:
        if not 0 <= id < len(self.nodes):
            raise UsageError(f"there is no node {id}; nodes are 0 to {len(self.nodes) - 1}")
        return self.nodes[id]

    def _change(
        self, links: Iterable[tuple[NodeId, NodeId]], change: Callable[[tuple[NodeId, NodeId]], None]
    ) -> None:
        senders = set()
        for sender, receiver in links:
            change((self._existing(sender).id, self._existing(receiver).id))
            senders.add(sender)
        for sender in senders:
            self._connect(sender)

    def _connect(self, sender: NodeId) -> None:
        """Compute again which nodes a sender's signal reaches."""
        receivers: list[Path] = []
        disturbed: list[tuple[Transceiver, float]] = []
        for reception in self._receptions[sender]:
            radio, power = self.nodes[reception.node].radio, reception.power_mw
            if (sender, reception.node) in self._broken:
                continue
            if reception.decodable:
                per_us = reception.per_us + self._extra_loss
                receivers.append(Path(radio, power, per_us, reception.quality))
            else:
                disturbed.append((radio, power))
        self.medium.connect(sender, Audience(tuple(receivers), tuple(disturbed)))

    def _on_empty_battery(self, id: NodeId) -> None:
        node = self.nodes[id]
        if node.alive:
            node.died = self.now
            node.halt()
            self._on_death(node)

    # Reading.

    def receivers(self) -> dict[NodeId, set[NodeId]]:
        """Return, for each node, the nodes that can receive from it. Cut links count as intact."""
        found = ({each.node for each in in_range if each.decodable} for in_range in self._receptions)
        return dict(enumerate(found))

    def receptions(self, id: NodeId) -> list[Reception]:
        """Return the reception of a node's signal at each node in range."""
        return self._receptions[self._existing(id).id]

    def joules(self) -> list[float]:
        """Return the energy in joules that each node has used."""
        return [node.energy.joules(self.now) for node in self.nodes]

    def by_cause(self) -> dict[str, float]:
        """Return the energy in joules that all nodes have used, by cause."""
        found: Counter[str] = Counter()
        for node in self.nodes:
            found.update(node.energy.by_cause(self.now))
        return dict(found)

    def meter(self, round: Duration = 10 * SECOND) -> None:
        """Write every node's energy to the trace once per ``round`` µs. [D38]"""
        if self.trace is None:
            raise UsageError("a meter writes to the trace; make the network with a Trace")
        self.every(round, self._measure)

    def _measure(self) -> None:
        assert self.trace is not None
        for node in self.nodes:
            reading, left = node.energy.read(self.now), node.energy.residual(self.now)
            residual = float("nan") if left is None else left
            self.trace.energy.append(self.now, node.id, reading.radio_joules, reading.mcu_joules, residual)

    def totals(self) -> Totals:
        """Return the counts up to now."""
        medium, unicast, broadcast = self.medium, self.ledgers.unicast, self.ledgers.broadcast
        waiting = [packet for node in self.nodes if node.alive for packet in node.link.in_flight()]
        unaired = sum(self.ledgers.of(packet) is broadcast for packet in waiting)
        return Totals(
            time=self.now,
            transmissions=medium.transmissions,
            signals=medium.signals,
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
