"""One simulation of an experiment: a point, a seed, and its measurements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from holdfast.model.instant import SECOND
from holdfast.network.motes.dds import DdsNodes
from holdfast.network.motes.run import SimulationRun
from holdfast.network.sim.energy import ACTIVE, JOULES, REST, Draw, Rest, draw
from holdfast.network.sim.metrics import footprint
from holdfast.network.sim.network import Network
from holdfast.network.sim.node import Node
from holdfast.network.sim.radio import CC2420

from .air import CLEAR, FITTED, NOISE, disturb, radio
from .outcome import finish
from .setups import SPACING, Setup

Key = tuple[tuple[str, Any], ...]
"""The names and values that distinguish a point from all others."""
Measured = dict[str, Any]
"""Measurements by name: numbers, or lists of numbers."""

JUDGED, LONG = "as judged", "500 s"
"""The length of a run. A run of the thesis' length is added to a shorter one, because rings take time to
fill."""

RESTS: Mapping[str, Rest] = {"sleeping": Rest("sleep", "sleep"), "listening": Rest("listen", "idle")}
"""The rest states: radio and processor asleep between frames, though they receive; or always on, as in Table
9."""


class NoiseChange(NamedTuple):
    """From this second on, links lose this share of their frames to noise."""

    second: float
    share: float


@dataclass(frozen=True)
class Point:
    """A set-up with values for all its parameters but the seed."""

    key: Key
    make: partial[Setup]
    noise: tuple[NoiseChange, ...] = ()
    aside: bool = False
    """Whether it is shown for comparison only: unless everything is run, it has only a few seeds."""

    @property
    def signature(self) -> str:
        """The point in words, equal in every process."""
        return repr((self.key, self.make.func.__name__, self.make.args, self.make.keywords, self.noise))


def point(
    key: Mapping[str, Any], set_up: Callable[..., Setup], *given: Any, step: float = SPACING, **more: Any
) -> Point:
    """Return a set-up on a grid of that step, with the radio model that the key names, by default the clear
    one."""
    air = key.get("air", CLEAR)
    make = partial(set_up, *given, **radio(step, air=air) | more)
    return Point(tuple(key.items()), make, (NoiseChange(0, NOISE[air]),), aside=air != FITTED)


Extra = Callable[[SimulationRun], Measured]
"""Returns further measurements of an experiment."""


def nothing(_: SimulationRun) -> Measured:
    return {}


def measure(extra: Extra, cell: tuple[Point, int]) -> Measured:
    """Run a point with a seed and return the measurements."""
    point, seed = cell
    run = point.make(seed=seed).run()
    for change in point.noise:
        run.network.at(round(change.second * SECOND), partial(disturb, run.network, change.share))
    found = finish(run)
    assert not found.unexpected, f"{point.key}, seed {seed}: deliveries that nobody asked for"
    return {
        "issued": found.issued,
        "delivered": found.delivered,
        "PDR": found.pdr,
        "EED ms": found.eed_ms,
        "DMR": found.dmr,
        "ReTx/msg": found.retx,
        "Rd/msg": found.rd,
        "ReTx": found.retransmitted,
        "discovery ms": None if found.undiscovered else found.discovery_ms,
        "discovery messages": found.discovery_messages,
        "frames": found.transmissions,
        "NLT s": None if found.energy.lifetime is None else found.energy.lifetime / SECOND,
        "TEC mJ": found.energy.total_mj,
        "WE mJ": found.energy.wasted_mj,
        "PPJ": found.energy.packets_per_joule,
        **energies(run.network),
        **extra(run),
    }


def energies(network: Network) -> Measured:
    """Return the energy of all radios and processors in mJ, under both rest states.

    The rest state does not affect how long a node is in each state.
    """
    found: Measured = {}
    for name, rest in RESTS.items():
        drawn = draw(network.setup.platform, rest, CC2420.power_dbm)
        spent = [_spent(node, drawn, network.now) for node in network.nodes]
        found[f"radio mJ, {name}"] = sum(radio for radio, _ in spent) * 1e3
        found[f"MCU mJ, {name}"] = sum(mcu for _, mcu in spent) * 1e3
        found[f"mJ, {name}"] = found[f"radio mJ, {name}"] + found[f"MCU mJ, {name}"]
    return found


MEMORY = (
    "of the node that needs most: what TinyOS and DYMO need on a TelosB (1,162, L736), its longest queue and "
    "what the middleware keeps, rings and tables as a mote would hold them; a TelosB has 10,240"
)


def memory(run: SimulationRun) -> Measured:
    """Return the RAM of the node that needs most, in bytes. [D70]"""
    memory = run.family.memory() if isinstance(run.family, DdsNodes) else None
    return {"RAM bytes": footprint(run.network, memory).ram_bytes}


def by_node(run: SimulationRun) -> Measured:
    """Return the energy of each node in mJ, under both rest states."""
    network = run.network
    found: Measured = {}
    for name, rest in RESTS.items():
        drawn = draw(network.setup.platform, rest, CC2420.power_dbm)
        found[f"nodes, {name}"] = [sum(_spent(node, drawn, network.now)) * 1e3 for node in network.nodes]
    return found


def _spent(node: Node, drawn: Draw, now: int) -> tuple[float, float]:
    """Return the energy of a node's radio and processor in J."""
    each = node.energy.radio.times(now).values()
    radio = sum(us * mw for times in each for us, mw in zip(times, drawn.radio, strict=True))
    active, rest = node.energy.mcu.times(now)
    return radio * JOULES, (sum(active.values()) * drawn.mcu[ACTIVE] + rest * drawn.mcu[REST]) * JOULES
