"""A hop: how often a frame is tried, who hears it, and what that takes of whom; nobody else is on the air.

Joules are those above rest.  A radio that hears a frame receives it, whoever it is for.  [D33-D35]
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import exp
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ....errors import UsageError
from ....model.instant import SECOND
from ....sim.energy import ACTIVE, LISTEN, RECEIVE, REST, SLEEP, TRANSMIT
from ....sim.frame import NodeId
from ....sim.mac import Aloha, Csma, LowPowerListening
from ....sim.mac.station import ACK_BYTES, DATA_OVERHEAD
from ....sim.network import Network
from ....sim.propagation import LogDistance
from ....sim.radio import milliwatts

Floats = npt.NDArray[np.float64]

MILLI = 1e-3


class Hop(NamedTuple):
    """What a message to a neighbour, or to all of them, takes on average."""

    joules: Floats
    """Of each node."""
    frames: float
    delivered: float
    """The chance that the neighbour has it."""
    known: float
    """The chance that the sender knows."""
    seconds: float
    """Until it is there, if it is."""
    airtime: float
    """Seconds on the air."""


@dataclass(frozen=True)
class Air:
    """Nodes, how well each hears each, and what their radios and processors draw."""

    network: Network
    overhears: bool
    """Whether processors look at what is for others, too."""

    @cached_property
    def nodes(self) -> int:
        return len(self.network.nodes)

    @cached_property
    def near(self) -> list[dict[NodeId, tuple[float, float]]]:
        """For each node who can receive from it: the share of frames that are heard at all, and the logarithm
        of the chance that a µs of one is right."""
        return [
            {each.node: (each.quality, each.per_us) for each in self.network.heard(node) if each.decodable}
            for node in range(self.nodes)
        ]

    @cached_property
    def power(self) -> list[dict[NodeId, float]]:
        """mW of each node's signal at those who can receive it."""
        return [
            {each.node: each.power_mw for each in self.network.heard(node) if each.decodable}
            for node in range(self.nodes)
        ]

    @property
    def decoded(self) -> bool:
        """Whether it is power that decides; else whoever is in range hears well."""
        return isinstance(self.network.setup.propagation, LogDistance)

    def right(self, sender: NodeId, receiver: NodeId, size: int) -> float:
        """The chance that a frame of so many bytes arrives."""
        quality, per_us = self.near[sender].get(receiver, (0.0, 0.0))
        radio = self.network.setup.radio
        return quality * exp(per_us * (radio.airtime(size) - radio.synchronisation))

    def both_ways(self, a: NodeId, b: NodeId, size: int) -> float:
        return self.right(a, b, size) * self.right(b, a, ACK_BYTES)

    # What is drawn.

    @property
    def rest(self) -> float:
        """Watts of a node to which nothing happens."""
        radio, mcu = self.network.draw.radio, self.network.draw.mcu
        return (self.access.duty * radio[LISTEN] + (1 - self.access.duty) * radio[SLEEP] + mcu[REST]) * MILLI

    @cached_property
    def access(self) -> Access:
        return access(self)

    def above(self, state: int) -> float:
        """Watts of a radio in a state above what it draws between frames."""
        radio = self.network.draw.radio
        return (radio[state] - radio[SLEEP if self.access.duty < 1 else LISTEN]) * MILLI

    def working(self, micros: float) -> float:
        """Joules of a processor that works, above rest."""
        mcu = self.network.draw.mcu
        return micros / SECOND * (mcu[ACTIVE] - mcu[REST]) * MILLI

    def spent(self) -> Floats:
        return np.zeros(self.nodes)


class Access:
    """A MAC: what it takes to bring a frame to a neighbour, or to all."""

    duty = 1.0
    """The share of time in which a radio listens while nothing happens."""

    def __init__(self, air: Air) -> None:
        self.air, self.radio = air, air.network.setup.radio
        self.work = air.network.setup.platform.work
        self.unit = self.radio.turnaround + self.radio.sensing
        self.patience = self.unit + self.radio.turnaround + self.radio.airtime(ACK_BYTES)
        self.unicast = lru_cache(maxsize=None)(self._unicast)
        self.broadcast = lru_cache(maxsize=None)(self._broadcast)

    def _unicast(self, sender: NodeId, to: NodeId, size: int) -> Hop:
        raise NotImplementedError

    def _broadcast(self, sender: NodeId, size: int) -> Hop:
        raise NotImplementedError

    def overheard(self, sender: NodeId, to: NodeId, size: int, listener: NodeId, /) -> float:
        """The chance that somebody hears a node pass a message on to another."""
        raise NotImplementedError

    def _overhear(self, joules: Floats, sender: NodeId, to: NodeId, size: int, times: float) -> None:
        """Processors that look at what is for others."""
        if self.air.overhears:
            for node in self.air.near[sender]:
                if node != to:
                    joules[node] += times * self.air.right(sender, node, size) * self._receiving

    @property
    def _sending(self) -> float:
        return self.air.working(self.work.send)

    @property
    def _receiving(self) -> float:
        return self.air.working(self.work.receive)


def access(air: Air) -> Access:
    """The network's MAC, as far as this is understood here."""
    match mac := air.network.setup.mac:
        case Csma():
            return Contention(air, mac)
        case Aloha():
            return Contention(air, Csma(min_exponent=0, max_exponent=0, retries=0, acknowledged=False))
        case LowPowerListening():
            return Listening(air, mac)
    raise UsageError(
        f"what mac '{mac.kind}' takes is not estimated: csma, low-power-listening and aloha are; "
        "'holdfast sim' runs it"
    )


class Contention(Access):
    """Radios always listen; whoever finds the channel clear sends, again if nobody acknowledges."""

    def __init__(self, air: Air, mac: Csma) -> None:
        super().__init__(air)
        self.mac = mac
        self.waits = ((1 << mac.min_exponent) - 1) / 2 * self.unit + self.radio.sensing

    def _frame(self, joules: Floats, sender: NodeId, size: int, times: float) -> None:
        """A frame is on the air: its sender transmits, all who hear it receive."""
        seconds = times * self.radio.airtime(size) / SECOND
        joules[sender] += seconds * self.air.above(TRANSMIT)
        for node, (quality, _) in self.air.near[sender].items():
            joules[node] += seconds * quality * self.air.above(RECEIVE)

    def _unicast(self, sender: NodeId, to: NodeId, size: int) -> Hop:
        """[802.15.4, 7.5.6.4]  ``retries`` times more, until data and acknowledgement have come through."""
        size += DATA_OVERHEAD
        there = self.air.right(sender, to, size)
        tries = self.mac.retries + 1 if self.mac.acknowledged else 1
        both = there * self.air.right(to, sender, ACK_BYTES) if self.mac.acknowledged else 1.0
        attempts = (1 - (1 - both) ** tries) / both if both else tries
        joules = self.air.spent()
        self._frame(joules, sender, size, attempts)
        answers = attempts * there if self.mac.acknowledged else 0.0
        if answers:
            self._frame(joules, to, ACK_BYTES, answers)
        joules[sender] += attempts * self._sending
        joules[to] += attempts * there * self._receiving
        self._overhear(joules, sender, to, size, attempts)
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

    def overheard(self, sender: NodeId, to: NodeId, size: int, listener: NodeId, /) -> float:
        both = self.air.both_ways(sender, to, size + DATA_OVERHEAD) if self.mac.acknowledged else 1.0
        missed = 1 - self.air.right(sender, listener, size + DATA_OVERHEAD)
        return 1 - self._all_missed(both, missed)

    def _all_missed(self, both: float, missed: float) -> float:
        """The chance that all tries are missed: there is another one only if the one before failed."""
        tries = self.mac.retries + 1 if self.mac.acknowledged else 1
        last = (1 - both) ** (tries - 1)
        return (
            sum((1 - both) ** k * both * missed ** (k + 1) for k in range(tries - 1)) + last * missed**tries
        )

    def _broadcast(self, sender: NodeId, size: int) -> Hop:
        size += DATA_OVERHEAD
        joules = self.air.spent()
        self._frame(joules, sender, size, 1.0)
        joules[sender] += self._sending
        for node in self.air.near[sender]:
            joules[node] += self.air.right(sender, node, size) * self._receiving
        once = self.waits + self.radio.turnaround + self.radio.airtime(size)
        return Hop(joules, 1.0, 1.0, 1.0, once / SECOND, self.radio.airtime(size) / SECOND)


class Listening(Access):
    """Radios sleep, and look for a signal in every interval: a sender goes on until its neighbour looks."""

    def __init__(self, air: Air, mac: LowPowerListening) -> None:
        super().__init__(air)
        self.mac = mac
        gap = self.patience + self.unit
        self.check = mac.check or (gap if mac.wake == "strobes" else 2 * self.radio.sensing)
        self.duty = self.check / mac.interval
        self.waits = ((1 << mac.exponent) - 1) / 2 * self.unit + self.check

    def _catches(self, sender: NodeId, node: NodeId, cycle: float) -> float:
        """The chance that whoever looks notices strobes: one begins while it does or, if the signal makes the
        channel busy, at any time."""
        strong = not self.air.decoded or (self.air.power[sender][node] >= milliwatts(self.radio.carrier_dbm))
        return 1.0 if strong or self.mac.wake == "preamble" else min(1.0, self.check / cycle)

    def overheard(self, sender: NodeId, to: NodeId, size: int, listener: NodeId, /) -> float:
        """Whoever sleeps hears it if it looks in time."""
        size += DATA_OVERHEAD
        looks = self._burst(sender, to, size) / self.mac.interval
        right = self.air.right(sender, listener, size)
        return right * self._catches(sender, listener, self._cycle(size)) * min(1.0, looks)

    def _cycle(self, size: int) -> float:
        """From one strobe to the next; of a long preamble, the whole."""
        if self.mac.wake == "preamble":
            return self.mac.interval + self.check + self.radio.airtime(size)
        return self.radio.turnaround + self.radio.airtime(size) + self.patience

    def _burst(self, sender: NodeId, to: NodeId, size: int) -> float:
        """How long a burst lasts on average: until the neighbour has looked and answered, or to its end."""
        cycle = self._cycle(size)
        if self.mac.wake == "preamble":
            return cycle
        caught = self._catches(sender, to, cycle) * self.air.both_ways(sender, to, size)
        return caught * (self.mac.interval / 2 + cycle) + (1 - caught) * (self.mac.interval + self.check)

    def _awake(self, listening: float, receiving: float) -> float:
        """Joules of a radio that is awake for so many µs."""
        return (listening * self.air.above(LISTEN) + receiving * self.air.above(RECEIVE)) / SECOND

    def _unicast(self, sender: NodeId, to: NodeId, size: int) -> Hop:
        """Bursts until data and acknowledgement have come through, ``retries`` times more."""
        size += DATA_OVERHEAD
        on_air, ack, cycle = self.radio.airtime(size), self.radio.airtime(ACK_BYTES), self._cycle(size)
        notices = self._catches(sender, to, cycle)
        there = notices * self.air.right(sender, to, size)
        both = there * self.air.right(to, sender, ACK_BYTES)
        tries, burst = self.mac.retries + 1, self._burst(sender, to, size)
        bursts = (1 - (1 - both) ** tries) / both if both else tries
        strobes = burst / cycle
        sent = burst if self.mac.wake == "preamble" else strobes * on_air
        wait, heard = (0.0, self.mac.interval / 2 + on_air) if sent == burst else (cycle / 2, on_air)
        looks = burst / self.mac.interval
        transmitting = self.air.above(TRANSMIT) / SECOND
        joules = self.air.spent()
        joules[sender] += bursts * (sent * transmitting + self._awake(self.waits + burst - sent, ack))
        joules[sender] += bursts * self._sending
        for node, (quality, _) in self.air.near[sender].items():
            if node != to:
                noticed = looks * quality * self._catches(sender, node, cycle)
                joules[node] += bursts * noticed * self._awake(max(0.0, wait - self.check / 2), heard)
        answering = ack * transmitting + self._awake(self.radio.turnaround + self.mac.linger, 0)
        joules[to] += bursts * there * (self._awake(max(0.0, wait - self.check / 2), heard) + answering)
        joules[to] += bursts * there * self._receiving
        self._overhear(joules, sender, to, size, bursts * looks)
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
        """For a whole interval; whoever notices stays awake to the end."""
        size += DATA_OVERHEAD
        on_air = self.radio.airtime(size)
        whole = self.mac.interval + self.check
        if self.mac.wake == "strobes":
            cycle = float(self.radio.turnaround + on_air)
            strobes = whole / cycle
            sent, awake = strobes * on_air, self.mac.interval / 2
            heard, copies = awake * on_air / cycle, awake / cycle
        else:
            cycle = strobes = 1.0
            sent, awake = whole + on_air, self.mac.interval / 2 + on_air
            heard, copies = awake, 1.0
        joules = self.air.spent()
        joules[sender] += sent * self.air.above(TRANSMIT) / SECOND + self._sending
        joules[sender] += self._awake(self.waits + max(0.0, whole - sent), 0)
        for node, (quality, _) in self.air.near[sender].items():
            noticed = quality * self._catches(sender, node, cycle)
            awakened = self._awake(awake - heard + self.mac.linger, heard)
            joules[node] += noticed * (awakened + copies * self._receiving)
        return Hop(joules, strobes, 1.0, 1.0, (self.waits + whole / 2) / SECOND, sent / SECOND)
