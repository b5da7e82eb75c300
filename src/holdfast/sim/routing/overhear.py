"""ID-based routing at work: send on by the rules, listen whether the next node does the same [D54].

The thesis gives neither the number of resends nor the rule for another path.  Here: a datagram that the
next node is not heard to forward is sent again, ``resends`` times at most; then to the neighbour with
the fewest hops left that has not been tried with it, and the silent one is passed over for a while.
A node that gets again what it has forwarded says so in a short notice, as in packet radio networks
(Jubin and Tornow 1987), where forwarding was acknowledgement, too.

A datagram is given up when its destination was silent to two neighbours, or eight nodes on its way were.
The sender learns it by failure notices along the way back.  Each node on it then gives up what is for that
destination at once, for a pause that doubles while it fails.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from msgspec.structs import replace

from ...model.instant import BEGINNING, MILLISECOND, SECOND, Duration, Instant
from ...model.protocol import Asked, CancelTimer, Deliver, Fired, SetTimer
from ..frame import ACKNOWLEDGED, AIRED, NO_ACK, NodeId, Outcome
from .datagram import (
    ADDRESS,
    HEADER,
    HOP_LIMIT,
    NO_ROUTE,
    Datagram,
    Destination,
    Discard,
    Effect,
    Heard,
    Input,
    Key,
    Relay,
    Settled,
    Transmit,
    refuses_points,
)
from .grid import candidates

_REMEMBERED = 256
"""How many datagrams a node remembers: by which ways it has sent them."""


@dataclass(frozen=True, slots=True)
class Notice:
    """We have forwarded this already."""

    key: Key


@dataclass(frozen=True, slots=True)
class Failure:
    """What you gave us could not be brought to its destination."""

    key: Key
    destination: NodeId


NOTICE_BYTES = ADDRESS + 2
FAILURE_BYTES = 2 * ADDRESS + 2

SILENT = 8
"""So many silent nodes on its way, and a datagram is given up; its destination counts for half of them."""
FIRST_PAUSE, LONGEST_PAUSE = 1 * SECOND, 4 * SECOND
"""For how long a destination that could not be reached is not tried again; then twice as long each time."""


@dataclass(slots=True)
class Handover:
    """A datagram that the next node has not been heard to forward yet."""

    datagram: Datagram
    to: NodeId
    resends: int = 0


@dataclass(slots=True)
class OverhearState:
    """What a node has handed over, and to whom; whom it distrusts, until when."""

    node: NodeId
    handovers: dict[str, Handover] = field(default_factory=dict)
    tried: dict[Key, list[NodeId]] = field(default_factory=dict)
    arrived: dict[Key, int] = field(default_factory=dict)
    """With how many hops a datagram came last."""
    givers: dict[Key, NodeId] = field(default_factory=dict)
    """From whom a datagram came first."""
    failing: dict[NodeId, tuple[Instant, Duration]] = field(default_factory=dict)
    """Destinations that could not be reached: until when they are not tried, and how long that pause is."""
    distrusted: dict[NodeId, Instant] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class IdGrid:
    """The rules a–h on a grid of so many rows and columns, kept alive by overhearing."""

    rows: int
    columns: int
    resends: int = 3
    """How often a datagram is given to the same neighbour again [D54]."""
    patience: Duration = 200 * MILLISECOND
    """How long to wait until the next node is heard to forward."""
    distrust: Duration = 30 * SECOND
    """How long a neighbour that does not forward is passed over."""
    limit: int = 64
    """The hops after which a datagram is given up."""

    def initial(self, node: NodeId) -> OverhearState:
        return OverhearState(node)

    def held(self, state: OverhearState) -> Iterable[Datagram]:
        return [handover.datagram for handover in state.handovers.values()]

    def refuses(self, destination: Destination) -> str | None:
        if isinstance(destination, int) and not 0 <= destination < self.rows * self.columns:
            return f"the grid has {self.rows} × {self.columns} nodes, from 0"
        return refuses_points(destination)

    def handle(self, state: OverhearState, given: Input) -> tuple[OverhearState, list[Effect]]:
        match given:
            case Asked(now, datagram):
                return state, self._onward(state, now, datagram)
            case Heard(now, sender, what, ours):
                state.distrusted.pop(sender, None)
                state.failing.pop(sender, None)
                if isinstance(what, Failure):
                    return state, self._failed(state, now, what) if ours else []
                heard = self._overheard(state, sender, what)
                return state, heard + (self._arrival(state, sender, what) if ours else [])
            case Settled(now, token, outcome) if token in state.handovers:
                return state, self._settled(state, now, token, outcome)
            case Fired(now, timer) if timer in state.handovers:
                return state, self._again(state, now, timer)
        return state, []

    def _onward(self, state: OverhearState, now: Instant, datagram: Datagram) -> list[Effect]:
        """To the best neighbour that this datagram has not been given to."""
        assert isinstance(datagram.destination, int)
        if state.failing.get(datagram.destination, _NEVER)[0] > now:
            return [Discard(datagram, NO_ROUTE), *self._told_back(state, datagram)]
        tried = _remember(state.tried, datagram.key, [])
        around = candidates(state.node, datagram.destination, self.rows, self.columns)
        left = [node for node in around if node not in tried]
        if not left:
            return self._given_up(state, now, datagram)
        failed = state.failing.get(datagram.destination, _NEVER)[0]
        again = now - failed <= self.distrust  # after a pause silent nodes are tried, too: they may be back
        trusted = [node for node in left if again or state.distrusted.get(node, now) <= now]
        to = (trusted or left)[0]
        tried.append(to)
        token = _token(datagram.key, to)
        state.handovers[token] = Handover(datagram, to)
        return [_transmission(datagram, to, token)]

    def _arrival(self, state: OverhearState, sender: NodeId, what: Datagram | Notice) -> list[Effect]:
        if isinstance(what, Notice):
            return []
        datagram = what.further()
        if state.arrived.get(datagram.key, 0) >= datagram.hops:
            return [Transmit(sender, Notice(datagram.key), NOTICE_BYTES)]
        state.arrived.pop(datagram.key, None)
        _remember(state.arrived, datagram.key, datagram.hops)
        if datagram.destination == state.node:
            return [Deliver(datagram)]
        if datagram.hops >= self.limit:
            return [Discard(datagram, HOP_LIMIT)]
        _remember(state.tried, datagram.key, []).append(sender)
        _remember(state.givers, datagram.key, sender)
        return [Relay(datagram)]

    def _given_up(self, state: OverhearState, now: Instant, datagram: Datagram) -> list[Effect]:
        """Nobody is left to give it to: whoever gave it to us hears of it."""
        assert isinstance(datagram.destination, int)
        self._pause(state, now, datagram.destination)
        return [Discard(datagram, NO_ROUTE), *self._told_back(state, datagram)]

    def _pause(self, state: OverhearState, now: Instant, destination: NodeId) -> None:
        until, last = state.failing.get(destination, _NEVER)
        if until <= now:
            again = now - until <= self.distrust
            pause = min(2 * last if again and last else FIRST_PAUSE, LONGEST_PAUSE)
            state.failing[destination] = now + pause, pause

    def _told_back(self, state: OverhearState, datagram: Datagram) -> list[Effect]:
        assert isinstance(datagram.destination, int)
        giver = state.givers.get(datagram.key)
        failure = Failure(datagram.key, datagram.destination)
        return [] if giver is None else [Transmit(giver, failure, FAILURE_BYTES)]

    def _failed(self, state: OverhearState, now: Instant, failure: Failure) -> list[Effect]:
        """A datagram that went by here could not be brought to its destination: pass that on."""
        self._pause(state, now, failure.destination)
        giver = state.givers.pop(failure.key, None)
        return [] if giver is None else [Transmit(giver, failure, FAILURE_BYTES)]

    def _overheard(self, state: OverhearState, sender: NodeId, what: Datagram | Notice) -> list[Effect]:
        """If this is the next node forwarding what we gave it, we are done with it."""
        token = _token(what.key, sender)
        handover = state.handovers.get(token)
        if handover is None:
            return []
        if isinstance(what, Datagram) and what.hops <= handover.datagram.hops:
            return []
        del state.handovers[token]
        return [CancelTimer(token)]

    def _settled(self, state: OverhearState, now: Instant, token: str, outcome: Outcome) -> list[Effect]:
        handover = state.handovers[token]
        if outcome == NO_ACK:
            return self._again(state, now, token)
        if outcome in (ACKNOWLEDGED, AIRED) and handover.to == handover.datagram.destination:
            del state.handovers[token]
            return []
        return [SetTimer(token, now + self.patience)]

    def _again(self, state: OverhearState, now: Instant, token: str) -> list[Effect]:
        handover = state.handovers[token]
        if handover.resends < self.resends:
            handover.resends += 1
            return [_transmission(handover.datagram, handover.to, token)]
        state.distrusted[handover.to] = now + self.distrust
        del state.handovers[token]
        datagram = handover.datagram
        silent = (datagram.route or 0) + (SILENT // 2 if handover.to == datagram.destination else 1)
        if silent >= SILENT:
            return self._given_up(state, now, datagram)
        return self._onward(state, now, replace(datagram, route=silent))


def _token(key: Key, to: NodeId) -> str:
    return f"{key[0]}.{key[1]} to {to}"


def _transmission(datagram: Datagram, to: NodeId, token: str) -> Transmit:
    return Transmit(to, datagram, HEADER + datagram.size, token)


_NEVER: tuple[Instant, Duration] = (BEGINNING, 0)
_V = TypeVar("_V")


def _remember(memory: dict[Key, _V], key: Key, value: _V) -> _V:
    """What is remembered under the key, now the value if there was nothing; the oldest is forgotten."""
    found = memory.setdefault(key, value)
    if len(memory) > _REMEMBERED:
        del memory[next(iter(memory))]
    return found
