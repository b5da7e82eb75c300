"""The simulated network, read during a run and evaluated after a run."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow.compute as pc

from holdfast.model.instant import MILLISECOND, MINUTE, SECOND
from holdfast.network.sim.energy import RECEIVE, TRANSMIT, EnergyReading, Rest
from holdfast.network.sim.frame import Frame
from holdfast.network.sim.mac import Csma
from holdfast.network.sim.network import Network, Setup
from holdfast.network.sim.node import Node
from holdfast.network.sim.platforms import MICAZ
from holdfast.network.sim.propagation import LogDistance
from holdfast.network.sim.trace import Trace, integrate

SUBSCRIBER, RENDEZVOUS, OBSERVED = 0, 1, 2
PLACES = [(0.0, 0.0), (10.0, 0.0), *((20.0, 5.0 * (i - 2)) for i in range(5))]
SIZE, PERIOD = 20, SECOND

SAMPLING = 250 * MILLISECOND
LOAD_SHARE = 0.2327
"""The active share of the processor that the thesis' figures imply [§5.2]; its cause is not stated there."""
TASK = round(LOAD_SHARE * SAMPLING)


@dataclass(frozen=True)
class Afterwards:
    """The energy of the observed publisher in mJ, computed from the trace of a finished run."""

    radio: float
    radio_from_frames: float
    mcu: float


def online(seed: int, minutes: int) -> list[EnergyReading]:
    """Return the observed publisher's account after every minute of a run [D37, D38]."""
    network = _network(seed)
    readings: list[EnergyReading] = []
    network.every(MINUTE, lambda: readings.append(network.nodes[OBSERVED].energy.read(network.now)))
    network.run(minutes * MINUTE)
    return readings


def afterwards(seed: int, minutes: int) -> Afterwards:
    """Return the energy of the observed publisher, computed from the trace alone."""
    trace = Trace(states_of={OBSERVED})
    network = _network(seed, trace)
    network.run(minutes * MINUTE)
    found = integrate(trace.states.table(), network.draw, network.now)
    frames = trace.frames.table()
    sent = frames.filter((pc.field("what") == "transmit") & (pc.field("node") == OBSERVED))
    sending = pc.sum(sent["airtime"]).as_py()
    milliwatts = network.draw.radio
    by_frames = sending * milliwatts[TRANSMIT] + (network.now - sending) * milliwatts[RECEIVE]
    return Afterwards(found[OBSERVED, "radio"] * 1e3, by_frames * 1e-6, found[OBSERVED, "mcu"] * 1e3)


def _network(seed: int, trace: Trace | None = None) -> Network:
    """Return a running network of publishers, rendezvous node and subscriber, all in range of one another."""
    setup = Setup(
        positions=PLACES,
        propagation=LogDistance(3.0),
        mac=Csma(acknowledged=False),
        platform=MICAZ,
        rest=Rest("listen", "idle"),
        seed=seed,
    )
    network = Network(setup, trace)
    network.boot(_boot)
    return network


def _boot(node: Node) -> None:
    if node.id == RENDEZVOUS:

        def forward(frame: Frame) -> None:
            node.link.send(SUBSCRIBER, frame.payload, SIZE, frame.cause)

        node.link.listen(forward)
    elif node.id >= OBSERVED:
        node.after(node.random.randrange(PERIOD), _publish, node)
        node.after(node.random.randrange(SAMPLING), _sample, node)


def _publish(node: Node) -> None:
    node.link.send(RENDEZVOUS, None, SIZE, "reading")
    node.after(PERIOD, _publish, node)


def _sample(node: Node) -> None:
    node.energy.mcu.work(node.clock.now, TASK, "sampling")
    node.after(SAMPLING, _sample, node)
