"""One simulation of an experiment: a point, a seed, and what is kept of it."""

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
"""What tells a point from the others: names and values."""
Measured = dict[str, Any]
"""What was measured, by name; numbers, or lists of them."""

JUDGED, LONG = "as judged", "500 s"
"""How long a run lasts; the thesis' own length stands beside a shorter one, since rings take time to fill."""

RESTS: Mapping[str, Rest] = {"sleeping": Rest("sleep", "sleep"), "listening": Rest("listen", "idle")}
"""Radio and processor asleep between frames, though they hear; or always on, as in Table 9."""


class NoiseChange(NamedTuple):
    """From a second on, links lose this share of their frames to noise."""

    second: float
    share: float


@dataclass(frozen=True)
class Point:
    """A set-up with values for all it depends on but the seed."""

    key: Key
    make: partial[Setup]
    noise: tuple[NoiseChange, ...] = ()
    aside: bool = False
    """Whether it stands beside what is judged: unless everything is run, a few seeds do."""

    @property
    def signature(self) -> str:
        """All of it in words, the same in every process."""
        return repr((self.key, self.make.func.__name__, self.make.args, self.make.keywords, self.noise))


def point(
    key: Mapping[str, Any], set_up: Callable[..., Setup], *given: Any, step: float = SPACING, **more: Any
) -> Point:
    """A set-up on a grid of that step, in the air that the key names; else it is clear."""
    air = key.get("air", CLEAR)
    make = partial(set_up, *given, **radio(step, air=air) | more)
    return Point(tuple(key.items()), make, (NoiseChange(0, NOISE[air]),), aside=air != FITTED)


Extra = Callable[[SimulationRun], Measured]
"""What an experiment wants to know besides."""


def nothing(_: SimulationRun) -> Measured:
    return {}


def measure(extra: Extra, cell: tuple[Point, int]) -> Measured:
    """Run a point with a seed."""
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
    """mJ of all radios and processors, under both rest states: states last as long in either."""
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
    """RAM of the node that needs most.  [D70]"""
    memory = run.family.memory() if isinstance(run.family, DdsNodes) else None
    return {"RAM bytes": footprint(run.network, memory).ram_bytes}


def by_node(run: SimulationRun) -> Measured:
    """mJ of each node, under both rest states."""
    network = run.network
    found: Measured = {}
    for name, rest in RESTS.items():
        drawn = draw(network.setup.platform, rest, CC2420.power_dbm)
        found[f"nodes, {name}"] = [sum(_spent(node, drawn, network.now)) * 1e3 for node in network.nodes]
    return found


def _spent(node: Node, drawn: Draw, now: int) -> tuple[float, float]:
    """J of a node's radio and processor."""
    radio = sum(
        us * mw
        for times in node.energy.radio.times(now).values()
        for us, mw in zip(times, drawn.radio, strict=True)
    )
    active, rest = node.energy.mcu.times(now)
    return radio * JOULES, (sum(active.values()) * drawn.mcu[ACTIVE] + rest * drawn.mcu[REST]) * JOULES
