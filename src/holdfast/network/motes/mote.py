"""A mote with a broker, clients or both, and with its connections to other motes, as one machine.

Clients and the broker on the same mote exchange messages without a radio.
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
from ..protocols.cbps.context import stamp_arrival
from ..protocols.cbps.message import Bundle
from .connection import End, Terms

BROKER, PUBLISHER, SUBSCRIBER = "broker", "publisher", "subscriber"


@dataclass(slots=True)
class MoteState:
    """The states of the mote's machines, and the ends of its connections by peer."""

    machines: dict[str, Any]
    ends: dict[Peer, End] = field(default_factory=dict)


@dataclass(frozen=True)
class Mote:
    """The machine of a mote. Connections belong to the broker or, without a broker, to the only client.

    A request of a client is passed as ``(name, request)``.
    """

    machines: Mapping[str, ProtocolMachine]
    peers: tuple[Peer, ...]
    terms: Terms

    def initial(self) -> MoteState:
        return MoteState({name: machine.initial() for name, machine in self.machines.items()})

    def handle(self, state: MoteState, event: Input) -> tuple[MoteState, list[Effect]]:
        handler = _InputHandler(self, state, event.now)
        match event:
            case Started(now):
                handler.start(now, event)
            case Received(now, peer, frame):
                handler.handle_outputs(state.ends[peer].on_frame(now, frame))
            case Fired(now, timer):
                owner, _, name = timer.partition(" ")
                if owner in self.machines:
                    handler.todo.append((owner, Fired(now, name)))
                else:
                    handler.handle_outputs(state.ends[name].on_timer(now))
            case Asked(now, (name, request)):
                handler.todo.append((name, Asked(now, request)))
        handler.process()
        return state, handler.effects


class _InputHandler:
    """Processes one input, and all inputs of the mote's machines that result from it."""

    def __init__(self, mote: Mote, state: MoteState, now: Instant) -> None:
        self._machines, self._peers, self._terms = mote.machines, mote.peers, mote.terms
        self._state, self._now = state, now
        self._outward = next(iter(self._machines))
        self.effects: list[Effect] = []
        self.todo: deque[tuple[str, Input]] = deque()

    def start(self, now: Instant, event: Input) -> None:
        """Start all machines of the mote, and open its connections."""
        self.todo.extend((name, event) for name in self._machines)
        for name in self._machines:
            if name != BROKER and BROKER in self._machines:
                self.todo += [(BROKER, Joined(now, name)), (name, Joined(now, BROKER))]
        for peer in self._peers:
            end = self._state.ends[peer] = End(peer, self._terms, now)
            self.handle_outputs(end.open(now))

    def handle_outputs(self, outputs: Iterable[Effect | Input]) -> None:
        """Divide the outputs of a connection into effects and inputs for the machine above."""
        for output in outputs:
            if isinstance(output, Effect):
                self.effects.append(output)
            else:
                self.todo.append((self._outward, output))

    def process(self) -> None:
        """Process all pending inputs of the machines."""
        while self.todo:
            name, event = self.todo.popleft()
            if isinstance(event, Received) and isinstance(event.message, Bundle):
                event = Received(event.now, event.sender, stamp_arrival(event.message, event.now))
            states = self._state.machines
            states[name], effects = self._machines[name].handle(states[name], event)
            for effect in effects:
                self._do(name, effect)

    def _do(self, name: str, effect: Effect) -> None:
        match effect:
            case Send(to, message) if to in self._machines:
                self.todo.append((to, Received(self._now, name, message)))
            case Send(to, message):
                self.handle_outputs(self._state.ends[to].send(self._now, message))
            case SetTimer(timer, at):
                self.effects.append(SetTimer(f"{name} {timer}", at))
            case CancelTimer(timer):
                self.effects.append(CancelTimer(f"{name} {timer}"))
            case _:
                self.effects.append(effect)
