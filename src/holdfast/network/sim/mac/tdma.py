"""Time slots: nodes whose signals would interfere at a receiver send at different times, by their own
clocks.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, ClassVar

from ....errors import UsageError
from ....model.instant import Duration, Instant
from ..clock import Clock, Entry
from ..energy import LISTEN
from ..frame import NodeId
from .station import ACK_BYTES, Station, at_least

if TYPE_CHECKING:
    from ..node import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Tdma:
    """Parameters of TDMA: each node has a slot in a repeating round.

    Without ``slots`` the network assigns different slots to nodes that have a neighbour in common. Without
    ``slot``, a slot lasts as long as the longest frame, its acknowledgement, and twice ``guard``. ``guard``
    is the largest difference between two clocks in µs.
    """

    kind: ClassVar = "tdma"
    slots: tuple[int, ...] | None = None
    """The slot number of each node; ``None`` lets the network assign slots."""
    slot: Duration | None = None
    guard: Duration = 500
    sleep: bool = False
    """Whether radios sleep in slots in which no neighbour sends."""
    retries: int = 3
    queue: int = 16

    def __post_init__(self) -> None:
        at_least(self, guard=0, retries=0, queue=1)
        if self.slots is not None and min(self.slots, default=0) < 0:
            raise UsageError(f"Tdma: a slot is {min(self.slots)}; slots are numbered from 0")


class TdmaStation(Station):
    """A station that sends in its own slot and may sleep in slots in which no neighbour sends."""

    def __init__(self, node: Node, mac: Tdma) -> None:
        super().__init__(node, queue=mac.queue, retries=mac.retries)
        assert mac.slots is not None
        exchange = self.spec.airtime(self.spec.longest) + self.spec.airtime(ACK_BYTES)
        needed = exchange + 2 * self.spec.turnaround + 2 * mac.guard
        self._mac = mac
        self._slot = mac.slot if mac.slot is not None else needed
        if self._slot < needed:
            raise UsageError(
                f"Tdma: a slot of {self._slot} µs is too short; a frame of {self.spec.name} with its "
                f"acknowledgement and guard takes {needed} µs"
            )
        self._round = (max(mac.slots) + 1) * self._slot
        self._own = mac.slots[node.id]
        senders = node.radio.medium.senders(node.id) if mac.sleep else set()
        self._windows = windows({mac.slots[sender] for sender in senders})
        self._window = 0
        self._open_now = False
        self._alarm: Entry | None = None

    def start(self) -> None:
        super().start()
        if self._mac.sleep:
            self._doze()
            self._listen_next()

    # Sending.

    def _contend(self, _: None = None) -> None:
        self._wait(self._until(self._own, self._mac.guard), self._send)
        self._doze()

    def _send(self, _: None) -> None:
        self.radio.on()
        if self.radio.mode == LISTEN:
            self._transmit()
        else:  # another signal occupies our slot, so it is lost
            self._wait(self._slot, self._contend)

    # Listening.

    def _listen_next(self) -> None:
        """Set a timer to wake for the next slots in which a neighbour may send."""
        if self._windows:
            waits = [self._until(first, 0) for first, _ in self._windows]
            self._window = waits.index(min(waits))
            self._alarm = self.clock.after(waits[self._window], self._open)

    def _open(self, _: None) -> None:
        self.radio.on()
        self._open_now = True
        length = self._windows[self._window][1]
        self._alarm = self.clock.after(length * self._slot, self._close)

    def _close(self, _: None) -> None:
        self._open_now = False
        self._doze()
        self._listen_next()

    def _doze(self) -> None:
        """Let the radio sleep, unless a neighbour may send or an acknowledgement is expected."""
        if self._mac.sleep and not self._open_now and self._awaits is None and self.radio.mode == LISTEN:
            self.radio.off()

    def halt(self) -> None:
        super().halt()
        if self._alarm is not None:
            Clock.cancel(self._alarm)

    def _conclude(self, outcome: str) -> None:
        super()._conclude(outcome)
        self._doze()

    def _until(self, slot: int, offset: Duration) -> Duration:
        """Return the time in µs until the next start of a slot plus ``offset``, by the node's clock."""
        local, now = self.node.local, self.clock.now
        shown: Instant = local.local(now)
        start = shown - shown % self._round + slot * self._slot + offset
        return max(0, local.when(start if start >= shown else start + self._round) - now)


def windows(slots: Set[int]) -> list[tuple[int, int]]:
    """Group consecutive slots into windows of (first slot, number of slots).

    >>> windows({0, 1, 2, 5, 7, 8})
    [(0, 3), (5, 1), (7, 2)]
    """
    firsts = sorted(slot for slot in slots if slot - 1 not in slots)
    return [(first, next(n for n in count(1) if first + n not in slots)) for first in firsts]


def colouring(receivers: Mapping[NodeId, Set[NodeId]]) -> tuple[int, ...]:
    """Assign a slot to each node so that neighbours never send at the same time, and no node has two senders
    at once.

    >>> colouring({0: {1}, 1: {0, 2}, 2: {1, 3}, 3: {2}})
    (0, 1, 2, 0)
    """
    senders: dict[NodeId, set[NodeId]] = {node: set() for node in receivers}
    for sender, nodes in receivers.items():
        for receiver in nodes:
            senders[receiver].add(sender)
    slots: dict[NodeId, int] = {}
    for node in sorted(receivers):
        near = receivers[node] | senders[node]
        rivals = set(near).union(*(senders[receiver] for receiver in receivers[node])) - {node}
        taken = {slots[rival] for rival in rivals if rival in slots}
        slots[node] = next(slot for slot in range(len(receivers)) if slot not in taken)
    return tuple(slots[node] for node in sorted(slots))
