"""Measures of a network: lifetime, packets per joule, used and wasted energy, and memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...model.instant import Instant
from .network import Network
from .platforms import Platform

STEPS = 20
"""The number of steps for relative consumption, which is rounded to 5 %. [D65]"""


@dataclass(frozen=True, slots=True)
class EnergyMeasures:
    """The energy measures of the thesis [D64]. Each depends on ``rest``, the assumed currents between
    activities.
    """

    rest: str
    lifetime: Instant | None
    """NLT, the network lifetime: the time at which the first battery was empty; ``None`` if no node
    has died.
    """
    total_mj: float
    """TEC, the total energy consumption of all nodes in mJ."""
    wasted_mj: float | None
    """WE, the wasted energy: the energy left in all batteries in mJ; ``None`` with an unlimited supply."""
    packets_per_joule: float | None
    """PPJ: packets received per joule used by all nodes; ``None`` if no energy was used."""


def energy(network: Network, received: int) -> EnergyMeasures:
    """Return the measures NLT, TEC, WE and PPJ now. ``received`` is the application's count of received
    packets.

    The thesis computes PPJ over the lifetime. To do so, stop the run at the first death
    (``Network.on_death``).
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
    """Return each node's share of the largest consumption, rounded to 5 %. [D65]

    >>> relative([500.0, 125.0, 0.0])
    [1.0, 0.25, 0.0]
    """
    most = max(consumed, default=0.0)
    return [round(joules / most * STEPS) / STEPS if most else 0.0 for joules in consumed]


@dataclass(frozen=True, slots=True)
class Footprint:
    """An estimate of a node's memory, compared with the memory of its platform. [D70]

    RAM is counted from the run. The caller measures the code size and passes it, because Python code has no
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
"""The bytes of the thesis' baseline application: TinyOS with radio stack and DYMO on TelosB, without
middleware (§3.2).
"""

ENTRY_BYTES = 4
"""The bytes of an entry in the table of neighbours' latest sequence numbers."""


def footprint(
    network: Network, protocol: Mapping[str, int] | None = None, rom_bytes: int = BASE_ROM
) -> Footprint:
    """Return the memory footprint of the node that needs most.

    It counts queue and neighbours as used in the run, and the protocol's state. ``protocol`` gives bytes by
    name, such as ``{"subscriptions": 12 * 8, "ring buffer": 20 * 20}``.
    """
    longest = network.setup.radio.longest
    queue = max(node.link.most_queued for node in network.nodes) * longest
    neighbours = max(len(node.link.neighbours) for node in network.nodes) * ENTRY_BYTES
    ram = {"system": BASE_RAM, "queue": queue, "neighbours": neighbours, **(protocol or {})}
    return Footprint(ram, rom_bytes, network.setup.platform)
