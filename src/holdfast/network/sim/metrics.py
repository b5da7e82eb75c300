"""Measures of a network: lifetime, packets per joule, energy used and wasted, and memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...model.instant import Instant
from .network import Network
from .platforms import Platform

STEPS = 20
"""Relative consumption is rounded to steps of 5 % [D65]."""


@dataclass(frozen=True, slots=True)
class EnergyMeasures:
    """The thesis' measures of energy [D64]; each depends on ``rest``, the assumed currents at rest."""

    rest: str
    lifetime: Instant | None
    """NLT: when the first battery was empty; None if all nodes live."""
    total_mj: float
    """TEC: energy used by all nodes."""
    wasted_mj: float | None
    """WE: energy left in all batteries; None with an unlimited supply."""
    packets_per_joule: float | None
    """PPJ: packets received per joule used by all nodes; None if nothing was used."""


def energy(network: Network, received: int) -> EnergyMeasures:
    """NLT, TEC, WE and PPJ now; ``received`` is the application's count of received packets.

    The thesis takes PPJ over the lifetime: to get it, stop the run at the first death (``Network.on_death``).
    """
    total = sum(network.joules())
    capacities = [node.energy.capacity for node in network.nodes]
    supplied = None if None in capacities else sum(c for c in capacities if c is not None)
    return EnergyMeasures(
        rest=str(network.setup.rest),
        lifetime=min((node.died for node in network.nodes if node.died is not None), default=None),
        total_mj=total * 1e3,
        wasted_mj=None if supplied is None else max(0.0, supplied - total) * 1e3,
        packets_per_joule=received / total if total else None,
    )


def relative(consumed: Sequence[float]) -> list[float]:
    """Each node's share of the largest consumption, to the nearest 5 % [D65].

    >>> relative([500.0, 125.0, 0.0])
    [1.0, 0.25, 0.0]
    """
    most = max(consumed, default=0.0)
    return [round(joules / most * STEPS) / STEPS if most else 0.0 for joules in consumed]


@dataclass(frozen=True, slots=True)
class Footprint:
    """An estimate of a node's memory, compared with what its platform has [D70].

    RAM is counted from the run; code size is a measured value given by the caller, since Python code has no
    size on a mote.
    """

    ram: Mapping[str, int]
    rom_bytes: int
    platform: Platform

    @property
    def ram_bytes(self) -> int:
        return sum(self.ram.values())

    @property
    def fits(self) -> bool:
        """Whether the estimate is within the platform's memory."""
        return self.ram_bytes <= self.platform.ram_bytes and self.rom_bytes <= self.platform.rom_bytes


BASE_RAM, BASE_ROM = 1_162, 20_270
"""TinyOS with radio stack and DYMO on TelosB, without middleware: the thesis' baseline application (§3.2)."""

ENTRY_BYTES = 4
"""Bytes of an entry in the table of neighbours' latest sequence numbers."""


def footprint(
    network: Network, protocol: Mapping[str, int] | None = None, rom_bytes: int = BASE_ROM
) -> Footprint:
    """The footprint of the node that needs most: queue and neighbours as used in the run, and the protocol's
    state.

    ``protocol`` gives bytes by name, such as ``{"subscriptions": 12 * 8, "ring buffer": 20 * 20}``.
    """
    longest = network.setup.radio.longest
    queue = max(node.link.most_queued for node in network.nodes) * longest
    neighbours = max(len(node.link.neighbours) for node in network.nodes) * ENTRY_BYTES
    ram = {"system": BASE_RAM, "queue": queue, "neighbours": neighbours, **(protocol or {})}
    return Footprint(ram, rom_bytes, network.setup.platform)
