"""What a run is judged by: the measures of the thesis.  [D44, D45, D63, D64]"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from holdfast.model.instant import MILLISECOND, Duration
from holdfast.network.motes.account import IN_FLIGHT
from holdfast.network.motes.run import SimulationRun
from holdfast.network.sim import metrics
from holdfast.network.sim.metrics import EnergyMeasures
from holdfast.network.sim.statistics import ratio

from .setups import Setup

DELIVERED = "delivered"


@dataclass(frozen=True, slots=True, kw_only=True)
class DdsOutcome:
    """Counts and shares of one run; None where nothing was there to be measured."""

    issued: int
    """Samples that applications published."""
    overflowed: int
    """Of them, dropped because the ring was full."""
    expected: int
    """Deliveries that there should be: one for each sample and subscriber."""
    fates: Mapping[str, int]
    """What became of them; they add up to ``expected``."""
    unexpected: int
    """Deliveries that there should not be."""
    delivered: int

    pdr: float | None
    """Packet delivery ratio: of the expected deliveries."""
    eed_ms: float | None
    """End-to-end delay: mean from publication to first delivery, waiting and repetitions included."""
    dmr: float | None
    """Dropped message ratio: overflow, of what was issued."""
    retx: float | None
    """ReTx/Msg: repetitions by writers for each delivery."""
    rd: float | None
    """Rd/Msg: deliveries beyond the first, for each delivery."""
    retransmitted: int

    discovery_ms: float | None
    """The longest time from a first SUBSCRIBE until all who must know it did."""
    undiscovered: int
    """Subscriptions that somebody who must know never heard of."""
    discovery_messages: int
    """Subscriptions, notifications and, in a flood, each time one is repeated."""

    energy: EnergyMeasures
    """NLT, TEC, WE, PPJ, and the rest state that they depend on."""
    messages: Mapping[str, int]
    """What nodes sent to one another end to end, by kind."""
    transmissions: int
    """Frames on the air."""
    counted: Mapping[str, int]
    """What all nodes' middleware says that it has done."""

    @property
    def in_flight(self) -> int:
        """Deliveries that may still come: the sample waits at its writer, or is on its way."""
        return sum(self.fates.get(fate, 0) for fate in IN_FLIGHT)


def outcome(setup: Setup) -> DdsOutcome:
    """Run a set-up; equal ones give equal outcomes."""
    return finish(setup.run())


def finish(run: SimulationRun) -> DdsOutcome:
    """Let a run happen, and judge it."""
    found = run.finish()
    protocol = {
        "overflowed": 0,
        "retransmitted": 0,
        "redundant": 0,
        "undiscovered": 0,
        "discovery_messages": 0,
    }
    protocol |= found.protocol
    due = [
        (sub, each) for sub, expected in run.account.expected.items() for each in expected.deliveries.values()
    ]
    fates = Counter(
        run.family.fate(sub, each.event) if each.arrived is None else DELIVERED for sub, each in due
    )
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
