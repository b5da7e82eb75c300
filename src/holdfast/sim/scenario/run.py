"""One run: build the network, let it work, and count."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from statistics import fmean, quantiles
from typing import Any

from ...model.instant import SECOND, Duration, Instant
from .. import metrics
from ..chance import stream
from ..frame import COLLISION
from ..network import Network
from ..node import Node
from ..routing import tempo
from ..routing.ledger import DELIVERED, IN_FLIGHT, Ledger
from ..routing.router import Router
from ..topology import Topology
from ..trace import Trace
from .build import Case, Stream, actions, machine, setup, streams

Row = dict[str, Any]

STEPS = 60
"""Into how many steps a timeline is cut at most; a step is no shorter than any sender's period."""


@dataclass(frozen=True)
class Run:
    """What came of one run: a row of measures, one for each node, one for each step of time."""

    measures: Row
    nodes: list[Row]
    timeline: list[Row]


def run(case: Case, seed: int, trace: Trace | None = None) -> Run:
    """Run a scenario with a seed; the same of both give the same."""
    scenario, placed = case.scenario, case.placed(seed)
    network = Network(setup(case, placed, seed), trace)
    speed = tempo.airing(network.setup.mac, network.setup.radio, network.hearers())
    protocol, flooding = machine(scenario, placed, speed)
    ledger = Ledger(len(placed))
    work: dict[int, list[Stream]] = {}
    for some in streams(scenario, placed, seed):
        work.setdefault(some.source, []).append(some)

    def boot(node: Node) -> None:
        router = Router(node, protocol, ledger, flooding)
        for i, some in enumerate(work.get(node.id, ())):
            _publish(node, router, some, i, seed)

    longest = max((int(flow.every) for flow in scenario.traffic), default=1)
    step = min(max(-(-scenario.duration // STEPS), longest), int(scenario.duration))
    samples = _Samples(network, step, int(scenario.warm_up))
    for at, action in actions(scenario, placed):
        network.at(at, partial(action, network))
    if trace is not None:
        network.meter(step)
    if scenario.until_first_death:
        network.on_death(lambda _: network.stop())
    network.boot(boot)
    network.run(int(scenario.duration))
    if network.now < scenario.warm_up:
        samples.warm()
    return Run(
        _measures(network, ledger, samples, int(scenario.warm_up)),
        _nodes(network, ledger, placed, int(scenario.warm_up)),
        samples.rows(ledger),
    )


def _publish(node: Node, router: Router, some: Stream, i: int, seed: int) -> None:
    """Send again and again, by the node's own clock."""
    flow = some.flow
    period, start = int(flow.every), int(flow.start)
    draw = stream(seed, "publisher", node.id, i, node.boots)
    phase = stream(seed, "phase", node.id, i).randrange(period) if flow.phase == "random" else 0

    def next_time(now: Instant) -> Instant:
        if flow.arrivals == "poisson":
            return max(now, start) + max(1, round(draw.expovariate(1 / period)))
        first = start + phase
        return first if now < first else first + ((now - first) // period + 1) * period

    def publish(_: Any) -> None:
        if flow.stop is not None and node.now >= flow.stop:
            return
        for destination in some.destinations:
            router.send(destination, some.name, None, flow.size, some.name)
        node.at(next_time(node.now), publish)

    node.at(next_time(node.now - 1), publish)


class _Samples:
    """What the network had done at the end of the warm-up, and at the end of each step."""

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
        """What follows is counted."""
        self.totals, self.causes = self._network.totals(), self._network.by_cause()

    def rows(self, ledger: Ledger) -> list[Row]:
        """One row for each step; what was sent in it, and how much of that has arrived whenever."""
        if self._network.now > self._taken[-1][0]:
            self._take()
        sent: Counter[int] = Counter()
        came: Counter[int] = Counter()
        for entry in ledger.entries.values():
            sent[entry.sent // self._step] += entry.expected
            came[entry.sent // self._step] += len(entry.arrivals)
        rows = []
        for i, (before, now) in enumerate(zip(self._taken, self._taken[1:], strict=False)):
            seconds = (now[0] - before[0]) / SECOND
            rows.append(
                {
                    "time_s": before[0] / SECOND,
                    "seconds": seconds,
                    "sent": sent[i],
                    "delivered": came[i],
                    "transmissions": now[1] - before[1],
                    "power_mw": (now[2] - before[2]) / seconds * 1e3,
                    "alive": now[3],
                }
            )
        return rows


def _measures(network: Network, ledger: Ledger, samples: _Samples, warm_up: Instant) -> Row:
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
        "delivery_ratio": _ratio(delivered, expected),
        "delay_ms": fmean(delays) if delays else None,
        "delay_p95_ms": _percentile(delays, 95),
        "hops": fmean(arrival.hops for _, arrival in arrivals) if arrivals else None,
        "throughput_bps": _ratio(8 * sum(entry.size for entry, _ in arrivals), seconds),
        "transmissions": transmissions,
        "transmissions_per_delivery": _ratio(transmissions, delivered),
        "collisions": totals.lost.get(COLLISION, 0) - samples.totals.lost.get(COLLISION, 0),
        "energy_mj": millijoules,
        "energy_per_delivery_mj": _ratio(millijoules, delivered),
        "packets_per_joule": _ratio(delivered, millijoules / 1e3),
        "most_used_mj": max(network.joules()) * 1e3,
        "lifetime_s": None if energy.lifetime is None else energy.lifetime / SECOND,
        "wasted_mj": energy.wasted_mj,
        "alive": sum(node.alive for node in network.nodes),
        "energy_by_cause_mj": causes,
        "rest": energy.rest,
    }


def _nodes(network: Network, ledger: Ledger, placed: Topology, warm_up: Instant) -> list[Row]:
    shares = metrics.relative(network.joules())
    sent: Counter[int] = Counter()
    arrived: Counter[int] = Counter()
    received: Counter[int] = Counter()
    for entry in ledger.since(warm_up):
        sent[entry.origin] += entry.expected
        arrived[entry.origin] += len(entry.arrivals)
        received.update(entry.arrivals.keys())
    rows = []
    for node, share in zip(network.nodes, shares, strict=True):
        reading = node.energy.read(network.now)
        x, y, z = (*node.position, 0.0)[:3]
        rows.append(
            {
                "node": placed.names[node.id],
                "x": float(x),
                "y": float(y),
                "z": float(z),
                "radio_mj": reading.radio_joules * 1e3,
                "mcu_mj": reading.mcu_joules * 1e3,
                "relative": share,
                "alive": node.alive,
                "died_s": None if node.died is None else node.died / SECOND,
                "sent": sent[node.id],
                "arrived": arrived[node.id],
                "received": received[node.id],
            }
        )
    return rows


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _percentile(ordered: list[float], percent: int) -> float | None:
    if len(ordered) < 2:
        return ordered[0] if ordered else None
    return quantiles(ordered, n=100, method="inclusive")[percent - 1]
