"""What a network is judged by: lifetime, packets for a joule, energy used and wasted, and memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..model.instant import Instant
from .network import Network
from .platforms import Platform

STEPS = 20
"""Relative consumption is shown in steps of 5 % [D65]."""


@dataclass(frozen=True, slots=True)
class Energy:
    """The thesis' measures of energy [D64]; ``rest`` belongs to every one of them."""

    rest: str
    lifetime: Instant | None
    """NLT: when the first battery was empty; none if all nodes live."""
    total_mj: float
    """TEC: what all nodes have used."""
    wasted_mj: float | None
    """WE: what was left in all batteries; none where the supply does not end."""
    packets_per_joule: float | None
    """PPJ: packets received for a joule used by all; none if nothing was used."""


def energy(network: Network, received: int) -> Energy:
    """NLT, TEC, WE and PPJ now; ``received`` packets are those that the application counts.

    The thesis takes PPJ over the lifetime: stop the run at the first death (``Network.on_death``) to get it.
    """
    total = sum(network.joules())
    capacities = [node.energy.capacity for node in network.nodes]
    supplied = None if None in capacities else sum(c for c in capacities if c is not None)
    return Energy(
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
    """An estimate of the memory that a node needs, beside what its platform has [D70].

    RAM is counted from what the run used; code is what somebody measured, since Python code has no size
    on a mote.
    """

    ram: Mapping[str, int]
    rom_bytes: int
    platform: Platform

    @property
    def ram_bytes(self) -> int:
        return sum(self.ram.values())

    @property
    def fits(self) -> bool:
        """Whether it is within the platform's memory."""
        return self.ram_bytes <= self.platform.ram_bytes and self.rom_bytes <= self.platform.rom_bytes


BASE_RAM, BASE_ROM = 1_162, 20_270
"""TinyOS with radio stack and DYMO on TelosB, no middleware: the thesis' baseline application (L736)."""

ENTRY_BYTES = 4
"""A neighbour in the table of latest sequence numbers."""


def footprint(
    network: Network, protocol: Mapping[str, int] | None = None, rom_bytes: int = BASE_ROM
) -> Footprint:
    """The node that needs most: queue and neighbours as the run used them, and what a protocol says it keeps.

    ``protocol`` gives bytes by name, such as ``{"subscriptions": 12 * 8, "ring buffer": 20 * 20}``.
    """
    longest = network.setup.radio.longest
    queue = max(node.link.most_queued for node in network.nodes) * longest
    neighbours = max(len(node.link.neighbours) for node in network.nodes) * ENTRY_BYTES
    ram = {"system": BASE_RAM, "queue": queue, "neighbours": neighbours, **(protocol or {})}
    return Footprint(ram, rom_bytes, network.setup.platform)
