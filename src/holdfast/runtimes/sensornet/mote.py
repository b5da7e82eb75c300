"""A mote with a broker, clients or both, and its connections to other motes, as one machine.

What clients and the broker on their own mote say to each other needs no radio.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...model.instant import Instant
from ...model.protocol import (
    Asked,
    CancelTimer,
    Effect,
    Fired,
    Input,
    Joined,
    Peer,
    ProtocolMachine,
    Received,
    Send,
    SetTimer,
    Started,
)
from ...protocols.cbps.context import stamped
from ...protocols.cbps.message import Bundle
from .connection import End, Terms

BROKER, PUBLISHER, SUBSCRIBER = "broker", "publisher", "subscriber"


@dataclass(slots=True)
class State:
    """What the machines know, and the ends of connections, by peer."""

    machines: dict[str, Any]
    ends: dict[Peer, End] = field(default_factory=dict)


@dataclass(frozen=True)
class Mote:
    """The machine.  Connections to other motes are the broker's or, where there is none, the one client's.

    It is asked on behalf of a client by ``(name, request)``.
    """

    machines: Mapping[str, ProtocolMachine]
    peers: tuple[Peer, ...]
    terms: Terms

    def initial(self) -> State:
        return State({name: machine.initial() for name, machine in self.machines.items()})

    def handle(self, state: State, given: Input) -> tuple[State, list[Effect]]:
        turn = _Turn(self, state, given.now)
        match given:
            case Started(now):
                turn.started(now, given)
            case Received(now, peer, frame):
                turn.connection(state.ends[peer].received(now, frame))
            case Fired(now, timer):
                owner, _, name = timer.partition(" ")
                if owner in self.machines:
                    turn.todo.append((owner, Fired(now, name)))
                else:
                    turn.connection(state.ends[name].fired(now))
            case Asked(now, (name, request)):
                turn.todo.append((name, Asked(now, request)))
        turn.work()
        return state, turn.effects


class _Turn:
    """The work that one input makes."""

    def __init__(self, mote: Mote, state: State, now: Instant) -> None:
        self._machines, self._peers, self._terms = mote.machines, mote.peers, mote.terms
        self._state, self._now = state, now
        self._outward = next(iter(self._machines))
        self.effects: list[Effect] = []
        self.todo: deque[tuple[str, Input]] = deque()

    def started(self, now: Instant, given: Input) -> None:
        """Everything on the mote begins; connections to others are opened."""
        self.todo.extend((name, given) for name in self._machines)
        for name in self._machines:
            if name != BROKER and BROKER in self._machines:
                self.todo += [(BROKER, Joined(now, name)), (name, Joined(now, BROKER))]
        for peer in self._peers:
            end = self._state.ends[peer] = End(peer, self._terms, now)
            self.connection(end.open(now))

    def connection(self, said: Iterable[Effect | Input]) -> None:
        """What an end of a connection wants, and what it says to the machine above."""
        for each in said:
            if isinstance(each, Effect):
                self.effects.append(each)
            else:
                self.todo.append((self._outward, each))

    def work(self) -> None:
        """Let the machines take what there is for them, and what they say to each other."""
        while self.todo:
            name, given = self.todo.popleft()
            if isinstance(given, Received) and isinstance(given.message, Bundle):
                given = Received(given.now, given.sender, stamped(given.message, given.now))
            self._state.machines[name], effects = self._machines[name].handle(
                self._state.machines[name], given
            )
            for effect in effects:
                self._do(name, effect)

    def _do(self, name: str, effect: Effect) -> None:
        match effect:
            case Send(to, message) if to in self._machines:
                self.todo.append((to, Received(self._now, name, message)))
            case Send(to, message):
                self.connection(self._state.ends[to].send(self._now, message))
            case SetTimer(timer, at):
                self.effects.append(SetTimer(f"{name} {timer}", at))
            case CancelTimer(timer):
                self.effects.append(CancelTimer(f"{name} {timer}"))
            case _:
                self.effects.append(effect)
