"""The cost of a hop, that is of one frame between neighbours: tries, receivers and energy.

The model assumes that no other traffic is on the channel. Joules are those above the power of an inactive
node. Every radio in range receives a frame, whatever its destination. [D33-D35]
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import exp
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...errors import UsageError
from ...model.instant import SECOND
from ..motes.spanning import TYPICAL
from ..sim.energy import ACTIVE, LISTEN, RECEIVE, REST, SLEEP, TRANSMIT
from ..sim.frame import NodeId
from ..sim.mac import Aloha, Csma, LowPowerListening
from ..sim.mac.station import ACK_BYTES, DATA_OVERHEAD
from ..sim.network import Network
from ..sim.propagation import LogDistance, Reception
from ..sim.radio import milliwatts

Floats = npt.NDArray[np.float64]

MILLI = 1e-3


class Hop(NamedTuple):
    """The mean cost of sending a message to one neighbour, or to all neighbours."""

    joules: Floats
    """The energy of each node above rest."""
    frames: float
    delivered: float
    """The probability that the neighbour receives the message."""
    known: float
    """The probability that the sender gets an acknowledgement."""
    seconds: float
    """The delay until the message arrives, given that it arrives."""
    airtime: float
    """The time in seconds for which radios transmit."""


@dataclass(frozen=True)
class RadioModel:
    """The nodes of a network, the quality of their links, and the power of their radios and processors."""

    network: Network
    overhears: bool
    """Whether processors also process frames for other nodes."""

    @cached_property
    def nodes(self) -> int:
        return len(self.network.nodes)

    @cached_property
    def near(self) -> list[dict[NodeId, Reception]]:
        """For each node, the neighbours that can decode its frames, with the quality of reception."""
        in_range = map(self.network.receptions, range(self.nodes))
        return [{each.node: each for each in receptions if each.decodable} for receptions in in_range]

    def right(self, sender: NodeId, receiver: NodeId, size: int) -> float:
        """Return the probability that a frame of ``size`` bytes arrives."""
        if (found := self.near[sender].get(receiver)) is None:
            return 0.0
        radio = self.network.setup.radio
        return found.quality * exp(found.per_us * (radio.airtime(size) - radio.synchronisation))

    def usable(self, node: NodeId, least: float) -> dict[NodeId, float]:
        """Return the neighbours to which at least a share ``least`` of frames arrive in both directions, with
        that share.
        """
        both = {to: self.right(node, to, TYPICAL) * self.right(to, node, TYPICAL) for to in self.near[node]}
        return {neighbour: share for neighbour, share in both.items() if share >= least}

    def both_ways(self, a: NodeId, b: NodeId, size: int) -> float:
        return self.right(a, b, size) * self.right(b, a, ACK_BYTES)

    # Power.

    @property
    def rest(self) -> float:
        """The power in W of a node without activity."""
        radio, mcu = self.network.draw.radio, self.network.draw.mcu
        return (self.access.duty * radio[LISTEN] + (1 - self.access.duty) * radio[SLEEP] + mcu[REST]) * MILLI

    @cached_property
    def access(self) -> Access:
        return access(self)

    def above(self, state: int) -> float:
        """Return the power in W of a radio in a state, above its mean power between frames."""
        radio = self.network.draw.radio
        return (radio[state] - radio[SLEEP if self.access.duty < 1 else LISTEN]) * MILLI

    def working(self, micros: float) -> float:
        """Return the energy in joules of a processor that works for ``micros`` µs, above rest."""
        mcu = self.network.draw.mcu
        return micros / SECOND * (mcu[ACTIVE] - mcu[REST]) * MILLI

    def zeros(self) -> Floats:
        return np.zeros(self.nodes)


class Access:
    """The model of a MAC: the cost of sending a frame to a neighbour, or to all neighbours.

    A subclass implements `_unicast`, `_broadcast` and `overhear_probability` for one MAC.
    """

    duty = 1.0
    """The share of time in which an inactive radio listens; 1 for a radio that never sleeps."""

    def __init__(self, model: RadioModel) -> None:
        self.model, self.radio = model, model.network.setup.radio
        work = model.network.setup.platform.work
        self._sending, self._receiving = model.working(work.send), model.working(work.receive)
        """The energy in joules of a processor that sends or receives a frame."""
        self.unit = self.radio.turnaround + self.radio.sensing
        self.patience = self.unit + self.radio.turnaround + self.radio.airtime(ACK_BYTES)
        self.unicast = lru_cache(maxsize=None)(self._unicast)
        self.broadcast = lru_cache(maxsize=None)(self._broadcast)

    def _unicast(self, sender: NodeId, to: NodeId, size: int) -> Hop:
        raise NotImplementedError

    def _broadcast(self, sender: NodeId, size: int) -> Hop:
        raise NotImplementedError

    def overhear_probability(self, sender: NodeId, to: NodeId, size: int, listener: NodeId, /) -> float:
        """Return the probability that ``listener`` overhears the message that ``sender`` sends to ``to``."""
        raise NotImplementedError

    def _add_overhearing(self, joules: Floats, sender: NodeId, to: NodeId, size: int, times: float) -> None:
        """Add the energy of processors that process frames for other nodes, if processors do so in this
        network.
        """
        if self.model.overhears:
            for node in self.model.near[sender]:
                if node != to:
                    joules[node] += times * self.model.right(sender, node, size) * self._receiving


def access(model: RadioModel) -> Access:
    """Return the model of the network's MAC; raise a `UsageError` if no model exists for it."""
    match mac := model.network.setup.mac:
        case Csma():
            return Contention(model, mac)
        case Aloha():
            return Contention(model, Csma(min_exponent=0, max_exponent=0, retries=0, acknowledged=False))
        case LowPowerListening():
            return Listening(model, mac)
    raise UsageError(
        f"what mac '{mac.kind}' takes is not estimated: csma, low-power-listening and aloha are; "
        "'holdfast sim' runs it"
    )


class Contention(Access):
    """The model of a MAC with radios that always listen. A station sends on a clear channel, and repeats a
    frame without an acknowledgement.
    """

    def __init__(self, model: RadioModel, mac: Csma) -> None:
        super().__init__(model)
        self.mac = mac
        self.waits = ((1 << mac.min_exponent) - 1) / 2 * self.unit + self.radio.sensing

    def _frame(self, joules: Floats, sender: NodeId, size: int, times: float) -> None:
        """Add the radio energy of ``times`` frames: the sender transmits, and all nodes in range receive."""
        seconds = times * self.radio.airtime(size) / SECOND
        joules[sender] += seconds * self.model.above(TRANSMIT)
        for node, link in self.model.near[sender].items():
            joules[node] += seconds * link.quality * self.model.above(RECEIVE)

    def _unicast(self, sender: NodeId, to: NodeId, size: int) -> Hop:
        """Return the cost of up to ``retries`` + 1 tries, until data and acknowledgement have arrived.
        [802.15.4, 7.5.6.4]
        """
        size += DATA_OVERHEAD
        there = self.model.right(sender, to, size)
        tries = self.mac.retries + 1 if self.mac.acknowledged else 1
        both = there * self.model.right(to, sender, ACK_BYTES) if self.mac.acknowledged else 1.0
        attempts = (1 - (1 - both) ** tries) / both if both else tries
        joules = self.model.zeros()
        self._frame(joules, sender, size, attempts)
        answers = attempts * there if self.mac.acknowledged else 0.0
        if answers:
            self._frame(joules, to, ACK_BYTES, answers)
        joules[sender] += attempts * self._sending
        joules[to] += attempts * there * self._receiving
        self._add_overhearing(joules, sender, to, size, attempts)
        once = self.waits + self.radio.turnaround + self.radio.airtime(size)
        again = min(attempts, 1 / there if there else tries) - 1
        on_air = attempts * self.radio.airtime(size) + answers * self.radio.airtime(ACK_BYTES)
        return Hop(
            joules,
            attempts + answers,
            1 - (1 - there) ** tries,
            1 - (1 - both) ** tries,
            (once + again * (once + self.patience)) / SECOND,
            on_air / SECOND,
        )

    def overhear_probability(self, sender: NodeId, to: NodeId, size: int, listener: NodeId, /) -> float:
        both = self.model.both_ways(sender, to, size + DATA_OVERHEAD) if self.mac.acknowledged else 1.0
        missed = 1 - self.model.right(sender, listener, size + DATA_OVERHEAD)
        return 1 - self._all_missed(both, missed)

    def _all_missed(self, both: float, missed: float) -> float:
        """Return the probability that a listener misses all tries. A further try follows only a
        failed one.
        """
        tries = self.mac.retries + 1 if self.mac.acknowledged else 1
        last = (1 - both) ** (tries - 1)
        earlier = sum((1 - both) ** k * both * missed ** (k + 1) for k in range(tries - 1))
        return earlier + last * missed**tries

    def _broadcast(self, sender: NodeId, size: int) -> Hop:
        size += DATA_OVERHEAD
        joules = self.model.zeros()
        self._frame(joules, sender, size, 1.0)
        joules[sender] += self._sending
        for node in self.model.near[sender]:
            joules[node] += self.model.right(sender, node, size) * self._receiving
        once = self.waits + self.radio.turnaround + self.radio.airtime(size)
        return Hop(joules, 1.0, 1.0, 1.0, once / SECOND, self.radio.airtime(size) / SECOND)


class Listening(Access):
    """The model of low-power listening: radios sleep and look for a signal once in every interval. A sender
    repeats its frame until its neighbour wakes.
    """

    def __init__(self, model: RadioModel, mac: LowPowerListening) -> None:
        super().__init__(model)
        self.mac = mac
        gap = self.patience + self.unit
        self.check = mac.check or (gap if mac.wake == "strobes" else 2 * self.radio.sensing)
        self.duty = self.check / mac.interval
        self.waits = ((1 << mac.exponent) - 1) / 2 * self.unit + self.check

    def _catches(self, sender: NodeId, node: NodeId, cycle: float) -> float:
        """Return the probability that a node notices strobes in its check. A strobe has to start during the
        check; if the signal makes the channel busy, any time is sufficient.
        """
        by_power = isinstance(self.model.network.setup.propagation, LogDistance)
        strong = not by_power or self.model.near[sender][node].power_mw >= milliwatts(self.radio.carrier_dbm)
        return 1.0 if strong or self.mac.wake == "preamble" else min(1.0, self.check / cycle)

    def overhear_probability(self, sender: NodeId, to: NodeId, size: int, listener: NodeId, /) -> float:
        """Return the probability that ``listener`` overhears the message. The listener also has to wake
        during the burst.
        """
        size += DATA_OVERHEAD
        looks = self._burst(sender, to, size) / self.mac.interval
        right = self.model.right(sender, listener, size)
        return right * self._catches(sender, listener, self._cycle(size)) * min(1.0, looks)

    def _cycle(self, size: int) -> float:
        """Return the µs from one strobe to the next, or the duration of a whole burst with a long
        preamble.
        """
        if self.mac.wake == "preamble":
            return self.mac.interval + self.check + self.radio.airtime(size)
        return self.radio.turnaround + self.radio.airtime(size) + self.patience

    def _burst(self, sender: NodeId, to: NodeId, size: int) -> float:
        """Return the mean duration of a burst in µs: until the neighbour wakes and answers, or to its end."""
        cycle = self._cycle(size)
        if self.mac.wake == "preamble":
            return cycle
        caught = self._catches(sender, to, cycle) * self.model.both_ways(sender, to, size)
        return caught * (self.mac.interval / 2 + cycle) + (1 - caught) * (self.mac.interval + self.check)

    def _on_joules(self, listening: float, receiving: float) -> float:
        """Return the joules of a radio that listens and receives for the given times in µs."""
        return (listening * self.model.above(LISTEN) + receiving * self.model.above(RECEIVE)) / SECOND

    def _unicast(self, sender: NodeId, to: NodeId, size: int) -> Hop:
        """Return the cost of up to ``retries`` + 1 bursts, until data and acknowledgement have arrived."""
        size += DATA_OVERHEAD
        on_air, ack, cycle = self.radio.airtime(size), self.radio.airtime(ACK_BYTES), self._cycle(size)
        notices = self._catches(sender, to, cycle)
        there = notices * self.model.right(sender, to, size)
        both = there * self.model.right(to, sender, ACK_BYTES)
        tries, burst = self.mac.retries + 1, self._burst(sender, to, size)
        bursts = (1 - (1 - both) ** tries) / both if both else tries
        strobes = burst / cycle
        sent = burst if self.mac.wake == "preamble" else strobes * on_air
        wait, reception = (0.0, self.mac.interval / 2 + on_air) if sent == burst else (cycle / 2, on_air)
        looks = burst / self.mac.interval
        transmitting = self.model.above(TRANSMIT) / SECOND
        joules = self.model.zeros()
        joules[sender] += bursts * (sent * transmitting + self._on_joules(self.waits + burst - sent, ack))
        joules[sender] += bursts * self._sending
        for node, link in self.model.near[sender].items():
            if node != to:
                noticed = looks * link.quality * self._catches(sender, node, cycle)
                joules[node] += bursts * noticed * self._on_joules(max(0.0, wait - self.check / 2), reception)
        answering = ack * transmitting + self._on_joules(self.radio.turnaround + self.mac.linger, 0)
        receiving = self._on_joules(max(0.0, wait - self.check / 2), reception)
        joules[to] += bursts * there * (receiving + answering)
        joules[to] += bursts * there * self._receiving
        self._add_overhearing(joules, sender, to, size, bursts * looks)
        last = self.mac.interval / 2 + cycle if self.mac.wake == "strobes" else cycle
        return Hop(
            joules,
            bursts * (strobes + there),
            1 - (1 - there) ** tries,
            1 - (1 - both) ** tries,
            (self.waits + last + (bursts - 1) * (self.waits + self.mac.interval + self.check)) / SECOND,
            bursts * (sent + there * ack) / SECOND,
        )

    def _broadcast(self, sender: NodeId, size: int) -> Hop:
        """Return the cost of a burst of a whole interval. A node that notices it stays on until its end."""
        size += DATA_OVERHEAD
        on_air = self.radio.airtime(size)
        whole = self.mac.interval + self.check
        if self.mac.wake == "strobes":
            cycle = float(self.radio.turnaround + on_air)
            strobes = whole / cycle
            sent, on_time = strobes * on_air, self.mac.interval / 2
            reception, copies = on_time * on_air / cycle, on_time / cycle
        else:
            cycle = strobes = 1.0
            sent, on_time = whole + on_air, self.mac.interval / 2 + on_air
            reception, copies = on_time, 1.0
        joules = self.model.zeros()
        joules[sender] += sent * self.model.above(TRANSMIT) / SECOND + self._sending
        joules[sender] += self._on_joules(self.waits + max(0.0, whole - sent), 0)
        for node, link in self.model.near[sender].items():
            noticed = link.quality * self._catches(sender, node, cycle)
            on_joules = self._on_joules(on_time - reception + self.mac.linger, reception)
            joules[node] += noticed * (on_joules + copies * self._receiving)
        return Hop(joules, strobes, 1.0, 1.0, (self.waits + whole / 2) / SECOND, sent / SECOND)
