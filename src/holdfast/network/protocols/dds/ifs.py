"""Interference-free scheduling: adjacent nodes send at different times. [D32]

The thesis gives no rule. Here, nodes of a grid that could disturb each other or a common neighbour have
different slots; nine slots are sufficient. A sample waits for its node's next slot. Its forwarding, ACKs and
repetitions do not wait.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ....errors import UsageError
from ....model.instant import SECOND, Duration, Instant
from ....model.protocol import Peer

SLOTS = 9


@dataclass(frozen=True, slots=True)
class SlotSchedule:
    """The slot of each node in every period. In the thesis, the period is one second."""

    slots: Mapping[Peer, int]
    period: Duration = SECOND

    def __post_init__(self) -> None:
        if self.period < SLOTS:
            raise UsageError(f"Schedule: a period of {self.period} µs; there are {SLOTS} slots in it")
        for node, slot in self.slots.items():
            if not 0 <= slot < SLOTS:
                raise UsageError(f"Schedule: node {node} has slot {slot}; slots are 0 to {SLOTS - 1}")

    def offset(self, node: Peer) -> Duration:
        """Return the start of a node's slot within a period, in µs."""
        return self.slots.get(node, 0) * self.period // SLOTS

    def next(self, node: Peer, now: Instant) -> Instant:
        """Return the next time at which a node may send; ``now`` if its slot begins now.

        >>> SlotSchedule({"7": 3}, period=900).next("7", 1_000)
        1200
        """
        slot_start = now - (now - self.offset(node)) % self.period
        return slot_start if slot_start == now else slot_start + self.period


def grid_slots(rows: int, columns: int) -> dict[Peer, int]:
    """Return slots for a grid with eight neighbours. Nodes with the same slot are more than two hops apart.

    >>> grid_slots(2, 4)["5"], grid_slots(4, 4)["15"]
    (4, 0)
    """
    return {str(r * columns + c): r % 3 * 3 + c % 3 for r in range(rows) for c in range(columns)}
