"""ID-based routing with retries: a node forwards by the rules, and overhears whether the next node forwards.
[D54]

The thesis specifies neither the number of resends nor the rule for another path. Here a node sends a datagram
again, at most ``resends`` times, if it does not overhear the next node forward it. Then the datagram goes to
the untried neighbour with the fewest remaining hops, and the silent neighbour is avoided for a time. A node
that receives a datagram that it has already forwarded replies with a short notice. Packet radio networks
(Jubin and Tornow 1987) also used forwarding as acknowledgement in this way.

A datagram is dropped when its destination was silent to two neighbours, or eight nodes on its way were
silent. Failure notices along the way back inform the sender. Each node on that way then drops datagrams to
the destination at once, for a pause that doubles with each failure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from msgspec.structs import replace

from ....model.instant import BEGINNING, MILLISECOND, SECOND, Duration, Instant
from ....model.protocol import Asked, CancelTimer, Deliver, Fired, SetTimer
from ..frame import ACKNOWLEDGED, AIRED, NO_ACK, NodeId, Outcome
from .datagram import (
    ADDRESS,
    HEADER,
    HOP_LIMIT,
    NO_ROUTE,
    Datagram,
    Destination,
    Discard,
    Effects,
    FrameReceived,
    Input,
    Key,
    Relay,
    TransmissionDone,
    Transmit,
    refuses_points,
)
from .grid import candidates

_REMEMBERED = 256
"""The number of datagrams for which a node stores the neighbours that it has tried."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A message that tells a neighbour that its datagram has already been forwarded."""

    key: Key


@dataclass(frozen=True, slots=True)
class Failure:
    """A message that reports to the previous hop that a datagram could not be delivered."""

    key: Key
    destination: NodeId


NOTICE_BYTES = ADDRESS + 2
FAILURE_BYTES = 2 * ADDRESS + 2

SILENT = 8
"""The number of silent nodes after which a datagram is dropped. A silent destination counts for half
of them.
"""
FIRST_PAUSE, LONGEST_PAUSE = 1 * SECOND, 4 * SECOND
"""The shortest and longest time for which a destination is not tried after a failure. The time doubles each
time.
"""


@dataclass(slots=True)
class UnconfirmedHandover:
    """A datagram whose forwarding by the next node has not yet been overheard."""

    datagram: Datagram
    to: NodeId
    resends: int = 0


@dataclass(slots=True)
class OverhearState:
    """The datagrams that a node has forwarded, the neighbours that it tried, and the neighbours that it
    distrusts.
    """

    node: NodeId
    handovers: dict[str, UnconfirmedHandover] = field(default_factory=dict)
    tried: dict[Key, list[NodeId]] = field(default_factory=dict)
    arrived: dict[Key, int] = field(default_factory=dict)
    """The number of hops of the last copy of each datagram."""
    previous_hops: dict[Key, NodeId] = field(default_factory=dict)
    """The neighbour from which each datagram came first."""
    failing: dict[NodeId, tuple[Instant, Duration]] = field(default_factory=dict)
    """The destinations that could not be reached, each with the end of the present pause and its length."""
    distrusted: dict[NodeId, Instant] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class IdGrid:
    """Routing by the rules a–h on a grid of ``rows`` and ``columns``, with retries based on overhearing."""

    rows: int
    columns: int
    resends: int = 3
    """The number of further times that a datagram is sent to the same neighbour. [D54]"""
    patience: Duration = 200 * MILLISECOND
    """The time in µs to wait until the next node is overheard to forward."""
    distrust: Duration = 30 * SECOND
    """The time in µs for which a neighbour that does not forward is avoided."""
    limit: int = 64
    """The number of hops after which a datagram is dropped."""

    def initial(self, node: NodeId) -> OverhearState:
        return OverhearState(node)

    def held(self, state: OverhearState) -> Iterable[Datagram]:
        return [handover.datagram for handover in state.handovers.values()]

    def refuses(self, destination: Destination) -> str | None:
        if isinstance(destination, int) and not 0 <= destination < self.rows * self.columns:
            return f"the grid has {self.rows} × {self.columns} nodes, from 0"
        return refuses_points(destination)

    def handle(self, state: OverhearState, event: Input) -> tuple[OverhearState, Effects]:
        match event:
            case Asked(now, datagram):
                return state, self._forward(state, now, datagram)
            case FrameReceived(now, sender, payload, ours):
                state.distrusted.pop(sender, None)
                state.failing.pop(sender, None)
                if isinstance(payload, Failure):
                    return state, self._on_failure(state, now, payload) if ours else []
                effects = self._on_overheard(state, sender, payload)
                return state, effects + (self._on_frame(state, sender, payload) if ours else [])
            case TransmissionDone(now, token, outcome) if token in state.handovers:
                return state, self._on_outcome(state, now, token, outcome)
            case Fired(now, timer) if timer in state.handovers:
                return state, self._retry(state, now, timer)
        return state, []

    def _forward(self, state: OverhearState, now: Instant, datagram: Datagram) -> Effects:
        """Send a datagram to the best neighbour that has not been tried with it."""
        assert isinstance(datagram.destination, int)
        if state.failing.get(datagram.destination, _NEVER)[0] > now:
            return [Discard(datagram, NO_ROUTE), *self._failure_notice(state, datagram)]
        tried = _remember(state.tried, datagram.key, [])
        around = candidates(state.node, datagram.destination, self.rows, self.columns)
        left = [node for node in around if node not in tried]
        if not left:
            return self._give_up(state, now, datagram)
        failed = state.failing.get(datagram.destination, _NEVER)[0]
        again = now - failed <= self.distrust  # silent nodes are tried after a pause, too: they may be back
        trusted = [node for node in left if again or state.distrusted.get(node, now) <= now]
        to = (trusted or left)[0]
        tried.append(to)
        token = _token(datagram.key, to)
        state.handovers[token] = UnconfirmedHandover(datagram, to)
        return [_transmission(datagram, to, token)]

    def _on_frame(self, state: OverhearState, sender: NodeId, payload: Datagram | Notice) -> Effects:
        """Handle a frame for this node: reply with a notice to a repetition, or deliver or relay the
        datagram.
        """
        if isinstance(payload, Notice):
            return []
        datagram = payload.after_hop()
        if state.arrived.get(datagram.key, 0) >= datagram.hops:
            return [Transmit(sender, Notice(datagram.key), NOTICE_BYTES)]
        state.arrived.pop(datagram.key, None)
        _remember(state.arrived, datagram.key, datagram.hops)
        if datagram.destination == state.node:
            return [Deliver(datagram)]
        if datagram.hops >= self.limit:
            return [Discard(datagram, HOP_LIMIT)]
        _remember(state.tried, datagram.key, []).append(sender)
        _remember(state.previous_hops, datagram.key, sender)
        return [Relay(datagram)]

    def _give_up(self, state: OverhearState, now: Instant, datagram: Datagram) -> Effects:
        """Drop a datagram for which no neighbour is left, and inform the previous hop."""
        assert isinstance(datagram.destination, int)
        self._pause(state, now, datagram.destination)
        return [Discard(datagram, NO_ROUTE), *self._failure_notice(state, datagram)]

    def _pause(self, state: OverhearState, now: Instant, destination: NodeId) -> None:
        until, last = state.failing.get(destination, _NEVER)
        if until <= now:
            again = now - until <= self.distrust
            pause = min(2 * last if again and last else FIRST_PAUSE, LONGEST_PAUSE)
            state.failing[destination] = now + pause, pause

    def _failure_notice(self, state: OverhearState, datagram: Datagram) -> Effects:
        assert isinstance(datagram.destination, int)
        previous_hop = state.previous_hops.get(datagram.key)
        failure = Failure(datagram.key, datagram.destination)
        return [] if previous_hop is None else [Transmit(previous_hop, failure, FAILURE_BYTES)]

    def _on_failure(self, state: OverhearState, now: Instant, failure: Failure) -> Effects:
        """Forward a failure notice to the previous hop of the datagram."""
        self._pause(state, now, failure.destination)
        previous_hop = state.previous_hops.pop(failure.key, None)
        return [] if previous_hop is None else [Transmit(previous_hop, failure, FAILURE_BYTES)]

    def _on_overheard(self, state: OverhearState, sender: NodeId, payload: Datagram | Notice) -> Effects:
        """Finish the handover of a datagram if this frame shows that the next node has forwarded it."""
        token = _token(payload.key, sender)
        handover = state.handovers.get(token)
        if handover is None:
            return []
        if isinstance(payload, Datagram) and payload.hops <= handover.datagram.hops:
            return []
        del state.handovers[token]
        return [CancelTimer(token)]

    def _on_outcome(self, state: OverhearState, now: Instant, token: str, outcome: Outcome) -> Effects:
        handover = state.handovers[token]
        if outcome == NO_ACK:
            return self._retry(state, now, token)
        if outcome in (ACKNOWLEDGED, AIRED) and handover.to == handover.datagram.destination:
            del state.handovers[token]
            return []
        return [SetTimer(token, now + self.patience)]

    def _retry(self, state: OverhearState, now: Instant, token: str) -> Effects:
        """Send a datagram again, or give up the neighbour after the last try."""
        handover = state.handovers[token]
        if handover.resends < self.resends:
            handover.resends += 1
            return [_transmission(handover.datagram, handover.to, token)]
        state.distrusted[handover.to] = now + self.distrust
        del state.handovers[token]
        datagram = handover.datagram
        silent = (datagram.route or 0) + (SILENT // 2 if handover.to == datagram.destination else 1)
        if silent >= SILENT:
            return self._give_up(state, now, datagram)
        return self._forward(state, now, replace(datagram, route=silent))


def _token(key: Key, to: NodeId) -> str:
    return f"{key[0]}.{key[1]} to {to}"


def _transmission(datagram: Datagram, to: NodeId, token: str) -> Transmit:
    return Transmit(to, datagram, HEADER + datagram.size, token)


_NEVER: tuple[Instant, Duration] = (BEGINNING, 0)
_V = TypeVar("_V")


def _remember(memory: dict[Key, _V], key: Key, value: _V) -> _V:
    """Return the value of a key, or store ``value`` for a new key. The oldest entry is removed when memory is
    full.
    """
    found = memory.setdefault(key, value)
    if len(memory) > _REMEMBERED:
        del memory[next(iter(memory))]
    return found
