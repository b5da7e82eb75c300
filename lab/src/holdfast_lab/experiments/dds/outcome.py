"""The measures of the thesis for one run. [D44, D45, D63, D64]"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from holdfast.model.instant import MILLISECOND, Duration
from holdfast.network.motes.run import SimulationRun
from holdfast.network.sim import metrics
from holdfast.network.sim.metrics import EnergyMeasures
from holdfast.network.sim.statistics import ratio

from .setups import Setup

DELIVERED = "delivered"


@dataclass(frozen=True, slots=True, kw_only=True)
class DdsOutcome:
    """Counts and shares of one run; ``None`` where there was nothing to be measured."""

    issued: int
    """The number of samples that applications published."""
    overflowed: int
    """The samples dropped because the ring was full."""
    expected: int
    """The expected deliveries: one for each sample and subscriber."""
    fates: Mapping[str, int]
    """The fates of the expected deliveries; they add up to ``expected``."""
    unexpected: int
    """Deliveries that no subscription explains."""
    delivered: int

    pdr: float | None
    """Packet delivery ratio: the share of expected deliveries that arrived."""
    eed_ms: float | None
    """End-to-end delay: the mean time from publication to first delivery, with waiting and repetitions."""
    dmr: float | None
    """Dropped message ratio: the share of issued samples that overflowed."""
    retx: float | None
    """ReTx/Msg: repetitions by writers for each delivery."""
    rd: float | None
    """Rd/Msg: deliveries beyond the first, for each delivery."""
    retransmitted: int

    discovery_ms: float | None
    """The longest time from a first SUBSCRIBE until all nodes that need it have it."""
    undiscovered: int
    """Subscriptions that did not arrive at a node that needs them."""
    discovery_messages: int
    """Subscriptions and notifications, and in a flood each rebroadcast."""

    energy: EnergyMeasures
    """NLT, TEC, WE, PPJ, and the rest state on which they depend."""
    messages: Mapping[str, int]
    """Messages between nodes end to end, by kind."""
    transmissions: int
    """Frames on the air."""
    counted: Mapping[str, int]
    """The counters of the middleware, summed over all nodes."""


def outcome(setup: Setup) -> DdsOutcome:
    """Run a set-up; equal set-ups give equal outcomes."""
    return finish(setup.run())


def finish(run: SimulationRun) -> DdsOutcome:
    """Finish a run and return its measures."""
    found = run.finish()
    names = ("overflowed", "retransmitted", "redundant", "undiscovered", "discovery_messages")
    protocol = dict.fromkeys(names, 0) | found.protocol
    expected = run.account.expected
    due = [(sub, each) for sub, table in expected.items() for each in table.deliveries.values()]
    lost = [run.family.fate(sub, each.event) for sub, each in due if each.arrived is None]
    fates = Counter({DELIVERED: len(due) - len(lost)}) + Counter(lost)
    first: dict[object, Duration] = {}
    for time, sub, what in run.account.notifications:
        first.setdefault((sub, what.event.source, what.event.time), time - what.event.time)
    delivered, issued = fates[DELIVERED], len(run.account.published)
    return DdsOutcome(
        issued=issued,
        overflowed=protocol["overflowed"],
        expected=len(due),
        fates=dict(fates),
        unexpected=sum(row["unexpected"] for row in found.subscriptions),
        delivered=delivered,
        pdr=ratio(delivered, len(due)),
        eed_ms=fmean(first.values()) / MILLISECOND if first else None,
        dmr=ratio(protocol["overflowed"], issued),
        retx=ratio(protocol["retransmitted"], delivered),
        rd=ratio(protocol["redundant"], delivered),
        retransmitted=protocol["retransmitted"],
        discovery_ms=protocol.get("discovery_ms"),
        undiscovered=protocol["undiscovered"],
        discovery_messages=protocol["discovery_messages"],
        energy=metrics.energy(run.network, delivered),
        messages=dict(run.account.messages),
        transmissions=run.network.medium.transmissions,
        counted=found.protocol.get("counted", {}),
    )
