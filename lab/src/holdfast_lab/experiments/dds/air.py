"""The radio of all simulations, and the reasons for it.

The thesis names a CC2420 and an area of 100 × 100 m.  Its TOSSIM had a gain for each link and a trace of
noise; both are lost.  It does say who hears whom: a node of the grid has its eight neighbours in range and no
others (App. A).  That fixes the path loss.  Of the noise nothing is known, so everything is measured in two
airs: a *clear* one, in which links lose what interference destroys and nothing else, and a *noisy* one, in
which they lose 5 % more.  That share is an assumption; the rest follows from the thesis and the data sheet.
"""

from __future__ import annotations

from math import log1p, log10, sqrt
from typing import Any

from holdfast.protocols.dds.message import UNIT
from holdfast.sim.mac import Csma
from holdfast.sim.mac.station import DATA_OVERHEAD
from holdfast.sim.network import Network
from holdfast.sim.propagation import LogDistance, free_space_1m_db
from holdfast.sim.radio import CC2420
from holdfast.sim.routing.datagram import HEADER
from holdfast.sim.transceiver import Audience, Path

SENSITIVITY = -95.0
"""dBm: the CC2420's, at 1 % lost frames of 20 bytes."""
REACH = sqrt(2 * sqrt(2))
"""How far a node is heard, in steps of the grid: the geometric mean of a diagonal, which is in range, and of
two steps, which are not."""
CLEAR, NOISY = "clear", "noisy"
NOISE = {CLEAR: 0.0, NOISY: 0.05}
"""The share of frames with a sample that noise alone destroys: none, and a round number for good links."""
FRAME = 32 * (1 + DATA_OVERHEAD + HEADER + UNIT)
"""µs of a frame with a sample of 20 bytes, behind its preamble."""

TINYOS = Csma(min_exponent=5, max_exponent=5, backoffs=1_000, acknowledged=False)
"""How TinyOS drives a CC2420: 0 to 10 ms before each frame, again while the channel is busy, without end;
links do not acknowledge unless asked to, and TinyDDS does not ask."""
TINYOS_FOR_DYMO = Csma(min_exponent=5, max_exponent=5, backoffs=1_000, retries=0)
"""The same with acknowledgements, by which DYMO sees that a link is broken; the link repeats nothing."""


def path_loss(step: float) -> LogDistance:
    """The exponent with which exactly the eight neighbours on a grid of that step hear a node well.

    >>> round(path_loss(100 / 6).exponent, 2), round(path_loss(100 / 3).exponent, 2)
    (3.79, 3.13)
    """
    budget = CC2420.power_dbm - free_space_1m_db(CC2420.frequency_hz) - SENSITIVITY
    return LogDistance(round(budget / (10 * log10(REACH * step)), 2))


def disturb(network: Network, share: float) -> None:
    """From now on noise destroys this share of all frames with a sample, and of shorter ones fewer."""
    more = log1p(-share) / FRAME
    for node in network.nodes:
        heard = [(network.nodes[each.node].radio, each) for each in network.heard(node.id)]
        receivers = [Path(r, h.power_mw, h.per_us + more, h.quality) for r, h in heard if h.decodable]
        disturbed = [(r, h.power_mw) for r, h in heard if not h.decodable]
        network.medium.connect(node.id, Audience(tuple(receivers), tuple(disturbed)))


def radio(step: float, mac: Csma = TINYOS) -> dict[str, Any]:
    """What every scenario has in common, for the functions of ``setups``."""
    return {"propagation": path_loss(step), "mac": mac}


def printed(step: float, mac: Csma = TINYOS) -> dict[str, str]:
    """The same in words."""
    backoff = (2**mac.max_exponent - 1) * (CC2420.turnaround + CC2420.sensing) / 1000
    return {
        "radio": f"CC2420, {CC2420.power_dbm:g} dBm, 250 kbit/s, sensitivity {SENSITIVITY:g} dBm; what is "
        "received follows from signal, noise and interference",
        "path loss": f"exponent {path_loss(step).exponent:g}, no shadowing: on this grid the eight "
        "neighbours of a node hear it and no others do (App. A)",
        "noise": f"{CLEAR}: links lose what interference destroys; {NOISY}: and {NOISE[NOISY]:.0%} of all "
        "frames of 20 bytes. The thesis' own is unknown",
        "medium access": f"CSMA as TinyOS has it: 0 to {backoff:.1f} ms before each frame, again while the "
        f"channel is busy; links {'acknowledge, for DYMO' if mac.acknowledged else 'do not acknowledge'}",
    }
