"""The outcome of a run: measures of the network and its subscriptions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from ...model.instant import SECOND, Duration, Instant
from ..sim import metrics
from ..sim.frame import COLLISION
from ..sim.network import Network
from ..sim.routing.ledger import DELIVERED, IN_FLIGHT, MessageLedger
from ..sim.statistics import percentile, ratio
from .account import Row

STEPS = 60
"""The greatest number of steps of a timeline. A step is never shorter than the longest period of a sender."""


@dataclass(frozen=True)
class RunOutcome:
    """The measures of a run: one row for the whole run, and rows for each node, time step and subscription.

    ``protocol`` contains the measures of the protocol itself.
    """

    measures: Row
    nodes: list[Row]
    timeline: list[Row]
    subscriptions: list[Row]
    protocol: Row


class Samples:
    """The values of the network's counters at the end of the warm-up, and after each step."""

    def __init__(self, network: Network, step: Duration, warm_up: Instant) -> None:
        self._network = network
        self._step = step
        self._taken = [(0, 0, 0.0, len(network.nodes))]
        self.warm()
        network.every(self._step, self._take)
        if warm_up:
            network.at(warm_up, self.warm)

    def _take(self) -> None:
        network = self._network
        alive = sum(node.alive for node in network.nodes)
        self._taken.append((network.now, network.medium.transmissions, sum(network.joules()), alive))

    def warm(self) -> None:
        """Start to count now. The run calls this at the end of the warm-up."""
        self.totals, self.causes = self._network.totals(), self._network.by_cause()

    def rows(self, ledger: MessageLedger) -> list[Row]:
        """Return a row for each step: the messages sent in it, and the share of these that arrived at any
        time.
        """
        if self._network.now > self._taken[-1][0]:
            self._take()
        sent: Counter[int] = Counter()
        arrived: Counter[int] = Counter()
        for entry in ledger.entries.values():
            sent[entry.sent // self._step] += entry.expected
            arrived[entry.sent // self._step] += len(entry.arrivals)
        rows: list[Row] = []
        for i, (before, now) in enumerate(pairwise(self._taken)):
            seconds = (now[0] - before[0]) / SECOND
            row = {"time_s": before[0] / SECOND, "seconds": seconds}
            row |= {"sent": sent[i], "delivered": arrived[i], "transmissions": now[1] - before[1]}
            row |= {"power_mw": (now[2] - before[2]) / seconds * 1e3, "alive": now[3]}
            rows.append(row)
        return rows


def measure(network: Network, ledger: MessageLedger, samples: Samples, warm_up: Instant) -> Row:
    """Return the measures of all messages and nodes together, since the warm-up."""
    if network.now < warm_up:
        samples.warm()
    fates = ledger.fates(warm_up)
    entries = list(ledger.since(warm_up))
    arrivals = [(entry, arrival) for entry in entries for arrival in entry.arrivals.values()]
    delays = sorted((arrival.at - entry.sent) / 1e3 for entry, arrival in arrivals)
    seconds = max(0, network.now - warm_up) / SECOND
    totals, energy = network.totals(), metrics.energy(network, received=len(arrivals))
    delivered, expected = fates[DELIVERED], sum(fates.values())
    transmissions = totals.transmissions - samples.totals.transmissions
    causes = {
        cause or "rest": (joules - samples.causes.get(cause, 0.0)) * 1e3
        for cause, joules in sorted(network.by_cause().items())
    }
    millijoules = sum(causes.values())
    return {
        "seconds": seconds,
        "sent": expected,
        "delivered": delivered,
        "in_flight": fates[IN_FLIGHT],
        "dropped": {why: n for why, n in sorted(fates.items()) if why not in (DELIVERED, IN_FLIGHT)},
        "duplicates": sum(entry.duplicates for entry in entries),
        "delivery_ratio": ratio(delivered, expected),
        "delay_ms": fmean(delays) if delays else None,
        "delay_p95_ms": percentile(delays, 95),
        "hops": fmean(arrival.hops for _, arrival in arrivals) if arrivals else None,
        "throughput_bps": ratio(8 * sum(entry.size for entry, _ in arrivals), seconds),
        "transmissions": transmissions,
        "transmissions_per_delivery": ratio(transmissions, delivered),
        "collisions": totals.lost.get(COLLISION, 0) - samples.totals.lost.get(COLLISION, 0),
        "energy_mj": millijoules,
        "energy_per_delivery_mj": ratio(millijoules, delivered),
        "packets_per_joule": ratio(delivered, millijoules / 1e3),
        "most_used_mj": max(network.joules()) * 1e3,
        "lifetime_s": None if energy.lifetime is None else energy.lifetime / SECOND,
        "wasted_mj": energy.wasted_mj,
        "alive": sum(node.alive for node in network.nodes),
        "energy_by_cause_mj": causes,
        "rest": energy.rest,
    }


def with_subscribers(measures: Row, deliveries: Sequence[float | None] | None) -> Row:
    """Return the measures of a run, preceded by those of its subscribers.

    ``deliveries`` has the delay in ms of each expected notification, or ``None`` where it did not arrive. It
    is ``None`` without subscribers. With subscribers, costs per delivery refer to received notifications, not
    to the messages that nodes send to one another for them.
    """
    if deliveries is None:
        return {**dict.fromkeys(_RECEIVED), **measures}
    delays = sorted(delay for delay in deliveries if delay is not None)
    received, expected, energy = len(delays), len(deliveries), measures["energy_mj"]
    mean = fmean(delays) if delays else None
    found = (expected, received, ratio(received, expected), mean, percentile(delays, 95))
    return {
        **dict(zip(_RECEIVED, found, strict=True)),
        **measures,
        "transmissions_per_delivery": ratio(measures["transmissions"], received),
        "energy_per_delivery_mj": ratio(energy, received),
        "packets_per_joule": ratio(received, energy / 1e3),
    }


_RECEIVED = ("expected", "received", "received_ratio", "received_delay_ms", "received_delay_p95_ms")


def by_node(network: Network, ledger: MessageLedger, names: Sequence[str], warm_up: Instant) -> list[Row]:
    """Return a row of measures for each node, since the warm-up."""
    shares = metrics.relative(network.joules())
    sent: Counter[int] = Counter()
    arrived: Counter[int] = Counter()
    received: Counter[int] = Counter()
    for entry in ledger.since(warm_up):
        sent[entry.origin] += entry.expected
        arrived[entry.origin] += len(entry.arrivals)
        received.update(entry.arrivals.keys())
    rows: list[Row] = []
    for node, share in zip(network.nodes, shares, strict=True):
        reading, id = node.energy.read(network.now), node.id
        row: Row = {"node": names[id], **dict(zip("xyz", map(float, (*node.position, 0.0)), strict=False))}
        row |= {"radio_mj": reading.radio_joules * 1e3, "mcu_mj": reading.mcu_joules * 1e3}
        row |= {"relative": share, "alive": node.alive}
        row["died_s"] = None if node.died is None else node.died / SECOND
        rows.append(row | {"sent": sent[id], "arrived": arrived[id], "received": received[id]})
    return rows
