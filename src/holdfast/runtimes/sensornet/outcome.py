"""What a run is judged by: the measures of the thesis.  [D44, D45, D63, D64]"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean, stdev

from ...sim.metrics import Energy
from .account import IN_FLIGHT


@dataclass(frozen=True, slots=True, order=True)
class Measured:
    """A round of ARQoS: who measured what of whom, and in which mode that was sent."""

    seconds: float
    receiver: int
    origin: int
    pdr: float
    reliable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Counts and shares of one run; None where nothing was there to be measured."""

    issued: int
    """Samples that applications published."""
    overflowed: int
    """Of them, dropped because the ring was full."""
    expected: int
    """Deliveries that there should be: one for each sample and subscriber."""
    fates: Mapping[str, int]
    """What became of them; they add up to ``expected``."""
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
    redundant: int

    discovery_ms: float | None
    """The longest time from a first SUBSCRIBE until all who must know it did."""
    undiscovered: int
    """Subscriptions that somebody who must know never heard of."""
    discovery_messages: int
    """Subscriptions, notifications and, in a flood, each time one is repeated."""

    energy: Energy
    """NLT, TEC, WE, PPJ, and the rest state that they depend on."""
    radio_mj: float
    mcu_mj: float
    joules: tuple[float, ...]
    """What each node has used."""
    dead: tuple[int, ...]
    """Nodes whose battery is empty."""
    seconds: float
    """How long the run was."""

    messages: Mapping[str, int]
    """What nodes sent to one another end to end, by kind."""
    transmissions: int
    """Frames on the air."""
    counted: Mapping[str, int]
    """What all nodes' middleware says that it has done."""
    rounds: tuple[Measured, ...] = ()
    """ARQoS: what receivers measured, in order of time."""

    @property
    def in_flight(self) -> int:
        """Deliveries that may still come: the sample waits at its writer, or is on its way."""
        return sum(self.fates.get(fate, 0) for fate in IN_FLIGHT)

    @property
    def conserved(self) -> bool:
        """Whether every expected delivery has a fate."""
        return sum(self.fates.values()) == self.expected


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean and standard deviation over some runs; the thesis has ten for each point.  [D66]"""

    mean: float
    deviation: float
    runs: int


def spread(values: Iterable[float | None]) -> Spread | None:
    """What runs say together; those without a value are left out.

    >>> spread([1.0, 3.0, None])
    Spread(mean=2.0, deviation=1.4142135623730951, runs=2)
    """
    known = [value for value in values if value is not None]
    if not known:
        return None
    return Spread(fmean(known), stdev(known) if len(known) > 1 else 0.0, len(known))
