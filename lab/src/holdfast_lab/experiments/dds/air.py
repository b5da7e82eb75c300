"""The radio models of all simulations, and the reasons for them.

The thesis names a CC2420 and an area of 100 × 100 m. Its TOSSIM had a gain for each link and a trace of
noise, and both are lost. Appendix A says which nodes are in range: the eight neighbours on the grid and no
others. That fixes the path loss.

There are three models. In the *clear* one, links lose only what interference destroys. In the *noisy* one
they lose 5 % more, an assumption. The *fitted* one has what is known of TOSSIM and TinyOS (back-off,
processor time) and a quality for each link. The range of that quality is the only free parameter: it is set
so that five publishers need the two retransmissions per message that the thesis prints (§4.2).
"""

from __future__ import annotations

from dataclasses import replace
from math import log1p, log10, sqrt
from typing import Any

from holdfast.network.protocols.dds.message import UNIT
from holdfast.network.sim.mac import Csma
from holdfast.network.sim.mac.station import DATA_OVERHEAD
from holdfast.network.sim.network import Network
from holdfast.network.sim.propagation import LogDistance, free_space_1m_db
from holdfast.network.sim.radio import CC2420
from holdfast.network.sim.routing.datagram import HEADER

SENSITIVITY = -95.0
"""The sensitivity of the CC2420 in dBm, at 1 % lost frames of 20 bytes."""
REACH = sqrt(2 * sqrt(2))
"""The range of a node in steps of the grid: the geometric mean of a diagonal, which is in range, and of two
steps, which are not."""
CLEAR, NOISY, FITTED = "clear", "noisy", "fitted"
NOISE = {CLEAR: 0.0, NOISY: 0.05, FITTED: 0.0}
"""The share of frames with a sample that noise alone destroys: none, or a round number for good links."""
QUALITY = (0.8, 1.0)
"""The range of link quality in the fitted model. With five publishers, IFS and seeds 101 to 105, runs of 60 s
need 2.04 (IPI 1) and 1.99 (IPI 5) retransmissions per message; with 0.83 in place of 0.8 they need 1.67
and 1.50."""
CONGESTION = (300, 2_500)
"""The back-off of TinyOS after a busy channel, in µs: 10 to 80 ticks of 32 kHz (CC2420CsmaP), as in
TOSSIM."""
FRAME = 32 * (1 + DATA_OVERHEAD + HEADER + UNIT)
"""The duration of a frame with a sample of 20 bytes, without its preamble, in µs."""

TINYOS = Csma(min_exponent=5, max_exponent=5, backoffs=1_000, acknowledged=False)
"""Medium access of TinyOS with a CC2420: 0 to 10 ms before each frame, again while the channel is busy,
without limit. Links do not acknowledge unless asked to, and TinyDDS does not ask."""
TINYOS_FOR_DYMO = Csma(min_exponent=5, max_exponent=5, backoffs=1_000, retries=0)
"""The same with acknowledgements, by which DYMO detects a broken link; the link repeats nothing."""


def path_loss(step: float) -> LogDistance:
    """Return the path loss with which exactly the eight neighbours on a grid are in range of a node.

    >>> round(path_loss(100 / 6).exponent, 2), round(path_loss(100 / 3).exponent, 2)
    (3.79, 3.13)
    """
    budget = CC2420.power_dbm - free_space_1m_db(CC2420.frequency_hz) - SENSITIVITY
    return LogDistance(round(budget / (10 * log10(REACH * step)), 2))


def disturb(network: Network, share: float) -> None:
    """Let noise destroy this share of all frames with a sample from now on, and fewer of the shorter ones."""
    network.disturb(log1p(-share) / FRAME)


def radio(step: float, mac: Csma = TINYOS, air: str = CLEAR) -> dict[str, Any]:
    """Return the parameters that all scenarios with a radio model share, for the functions of ``setups``."""
    if air != FITTED:
        return {"propagation": path_loss(step), "mac": mac}
    return {
        "propagation": replace(path_loss(step), quality=QUALITY),
        "mac": replace(mac, congestion=CONGESTION),
        "delays": True,
    }


def show_link(step: float, mac: Csma = TINYOS) -> dict[str, str]:
    """Return the radio model in words, for the parameters of a result."""
    backoff = (2**mac.max_exponent - 1) * (CC2420.turnaround + CC2420.sensing) / 1000
    return {
        "radio": f"CC2420, {CC2420.power_dbm:g} dBm, 250 kbit/s, sensitivity {SENSITIVITY:g} dBm; what is "
        "received follows from signal, noise and interference",
        "path loss": f"exponent {path_loss(step).exponent:g}, no shadowing: on this grid the eight "
        "neighbours of a node hear it and no others do (App. A)",
        "airs": f"{FITTED}: each link, each way, brings a share of its frames drawn from {QUALITY[0]:g} to "
        f"{QUALITY[1]:g} (the one fitted parameter), {CONGESTION[0] / 1000:g} to {CONGESTION[1] / 1000:g} ms "
        f"after a busy channel, 1.5 ms of processor time at each end of a hop; {CLEAR}: links lose what "
        f"interference destroys; {NOISY}: and {NOISE[NOISY]:.0%} of all frames of 20 bytes",
        "medium access": f"CSMA as TinyOS has it: 0 to {backoff:.1f} ms before each frame, again while the "
        f"channel is busy; links {'acknowledge, for DYMO' if mac.acknowledged else 'do not acknowledge'}",
    }
