"""Subscribers that move: nodes stand still, so what a subscriber asked for stays with a proxy.  [F80]

A proxy is whoever is nearest to a point that the subscriber chose once, such as where it subscribed first.
It subscribes, has the subscriber's components, knows where the subscriber is and sends on what comes for it;
it keeps an event until the subscriber has said that it has it.  The nodes that the subscriber meets on its
way remember nothing: they pass its words to the proxy, and the proxy's to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ...errors import UsageError
from ...model.event import Value
from ...model.instant import Duration, Instant
from ...model.protocol import (
    Asked,
    Deliver,
    Effect,
    Fired,
    Input,
    Onward,
    Passing,
    Received,
    Route,
    SetTimer,
    Started,
)
from ..qps import request
from ..qps.deployment import Deployment, checked_epsilon
from ..qps.message import ADDRESS, At
from .node import Insert, Node, Remove
from .traveller import Brought, Ticket

LEASES = "proxy/leases"
CLIENT = "proxy/"
"""Before the names of those whom a node subscribes for."""


@dataclass(frozen=True, slots=True)
class Arrive:
    """A subscriber that moves is here now; said again, that it is still."""

    ticket: Ticket


@dataclass(frozen=True, slots=True)
class Got:
    """It has what it was brought."""

    ticket: Ticket
    brought: Brought


class Moved(msgspec.Struct, frozen=True, array_like=True, tag="moved"):
    """To the proxy: where its subscriber is, and what it wants."""

    ticket: Ticket
    at: At


class Redirected(msgspec.Struct, frozen=True, array_like=True, tag="redirected"):
    """From the proxy, to where its subscriber is: an event."""

    client: str
    since: Instant
    number: int
    topic: str
    location: At
    publisher: str
    time: Instant
    values: Mapping[str, Value]
    repeated: bool
    first: int = 0
    """Events of lower numbers do not wait any more, even if the subscriber has not heard them."""


class Arrived(msgspec.Struct, frozen=True, array_like=True, tag="arrived"):
    """To the proxy: its subscriber has the event of that number."""

    client: str
    since: Instant
    number: int


Word = Moved | Redirected | Arrived


def bytes_of(word: Word) -> int:
    """How long it is on a mote: names and numbers in two bytes."""
    match word:
        case Moved(ticket=ticket):
            wishes = sum(3 + ADDRESS * len(wish.outline) for wish in ticket.wishes)
            return 2 * ADDRESS + 4 + wishes + len(ticket.components)
        case Redirected(values=values, first=first):
            told = sum(len(v) if isinstance(v, str) else 4 for v in values.values())
            return 2 * ADDRESS + 9 + told + (2 if first else 0)
        case Arrived():
            return ADDRESS + 4


@dataclass(slots=True)
class Kept:
    """A subscriber, as its proxy knows it."""

    since: Instant
    """Since when this node is its proxy: a later one counts more."""
    ticket: Ticket
    at: At
    heard: Instant
    sent: int = 0
    first: int = 0
    """The number after that of the last event for which there was no room."""
    waiting: dict[int, Redirected] = field(default_factory=dict)
    """Events that it has not said to have."""


@dataclass(slots=True)
class State:
    """What the machine below remembers, and for whom this node is the proxy."""

    inner: Any
    kept: dict[str, Kept] = field(default_factory=dict)

    @property
    def latest(self) -> Instant:
        """The time of the latest event of this node."""
        return int(self.inner.latest)


@dataclass(frozen=True)
class Proxies:
    """The machine; below it a broker, or a node with components."""

    inner: Any
    at: At
    every: Duration | None = None
    """How often subscribers say where they are; who does not for three of them is forgotten.  Never: none
    is."""
    room: int = 1000
    """How many events wait for a subscriber; of more the oldest go, and it gets to know how many."""

    def __post_init__(self) -> None:
        if self.room < 1:
            raise UsageError(f"room for {self.room} events; it must be 1 or more")

    @property
    def peeks(self) -> bool:
        return bool(getattr(self.inner, "peeks", False))

    @property
    def deployment(self) -> Deployment:
        broker = self.inner.broker if isinstance(self.inner, Node) else self.inner
        found: Deployment = broker.deployment
        return found

    def initial(self) -> State:
        return State(self.inner.initial())

    def handle(self, state: State, given: Input) -> tuple[State, list[Effect]]:
        effects: list[Effect] = []
        match given:
            case Started(now):
                self._inner(state, given, effects)
                if self.every is not None:
                    effects.append(SetTimer(LEASES, now + self.every))
            case Asked(now, Arrive(ticket)):
                self._checked(ticket)
                self._to(state, ticket.proxy, Moved(ticket, self.at), now, effects)
            case Asked(now, Got(ticket, brought)):
                word = Arrived(brought.client, brought.since, brought.number)
                self._to(state, ticket.proxy, word, now, effects)
            case Received(now, _, Moved() | Redirected() | Arrived() as word):
                self._received(state, word, now, effects)
            case Passing(_, _, Moved() | Redirected() | Arrived() as word):
                effects.append(Onward(word))
            case Fired(now, timer) if timer == LEASES:
                self._forget(state, now, effects)
            case _:
                self._inner(state, given, effects)
        return state, effects

    # --- the machine below ---

    def _inner(self, state: State, given: Input, effects: list[Effect]) -> None:
        """What it tells those for whom this node is the proxy goes on to them."""
        state.inner, found = self.inner.handle(state.inner, given)
        for effect in found:
            what = effect.what if isinstance(effect, Deliver) else None
            client = getattr(what, "client", "")
            if not client.startswith(CLIENT):
                effects.append(effect)
            elif isinstance(what, request.Notify) and (kept := state.kept.get(client[len(CLIENT) :])):
                self._sent(state, kept, what, given.now, effects)

    def _sent(
        self, state: State, kept: Kept, event: request.Notify, now: Instant, effects: list[Effect]
    ) -> None:
        x, y = event.location
        word = Redirected(
            kept.ticket.client,
            kept.since,
            kept.sent,
            event.topic,
            (x, y),
            event.publisher,
            event.time,
            event.values,
            event.repeated,
        )
        kept.sent += 1
        kept.waiting[word.number] = word
        if len(kept.waiting) > self.room:
            kept.first = kept.waiting.pop(next(iter(kept.waiting))).number + 1
        self._bring(state, kept, word, now, effects)

    def _bring(self, state: State, kept: Kept, word: Redirected, now: Instant, effects: list[Effect]) -> None:
        self._to(state, kept.at, msgspec.structs.replace(word, first=kept.first), now, effects)

    # --- words ---

    def _to(self, state: State, at: At, word: Word, now: Instant, effects: list[Effect]) -> None:
        """To whoever is nearest to a point; what is for this node it hears at once."""
        if at == self.at:
            self._received(state, word, now, effects)
        else:
            effects.append(Route(at, word, type(word).__name__.lower()))

    def _received(self, state: State, word: Word, now: Instant, effects: list[Effect]) -> None:
        match word:
            case Moved():
                self._moved(state, word, now, effects)
            case Arrived(client, since, number):
                kept = state.kept.get(client)
                if kept is not None and kept.since == since:
                    kept.waiting.pop(number, None)
            case Redirected():
                effects.append(Deliver(_brought(word)))

    def _moved(self, state: State, word: Moved, now: Instant, effects: list[Effect]) -> None:
        """Whoever is told where a subscriber is, is its proxy; the latest word counts."""
        ticket = word.ticket
        kept = state.kept.get(ticket.client)
        if kept is None:
            kept = state.kept[ticket.client] = Kept(now, _empty(ticket), word.at, now)
        elif ticket.turn < kept.ticket.turn:
            return
        before, kept.ticket, kept.at, kept.heard = kept.ticket, ticket, word.at, now
        self._asked(state, before, ticket, now, effects)
        if not ticket.wishes:
            kept.waiting.clear()
        for event in list(kept.waiting.values()):
            self._bring(state, kept, event, now, effects)

    def _asked(self, state: State, old: Ticket, new: Ticket, now: Instant, effects: list[Effect]) -> None:
        """Ask for what is new, then end what is over: what both have is had throughout."""
        client = CLIENT + new.client
        had = {n for name, kept in state.kept.items() if name != new.client for n in kept.ticket.components}
        asked: list[Any] = [Insert(n) for n in new.components if n not in old.components and n not in had]
        for wish in new.wishes:
            if wish not in old.wishes:
                asked.append(request.Subscribe(client, wish.topic, wish.region, wish.epsilon))
        for wish in old.wishes:
            if wish not in new.wishes:
                asked.append(request.Unsubscribe(client, wish.topic, wish.region))
        others = {name for kept in state.kept.values() for name in kept.ticket.components}
        asked += [Remove(name) for name in old.components if name not in others]
        for each in asked:
            self._inner(state, Asked(now, each), effects)

    def _forget(self, state: State, now: Instant, effects: list[Effect]) -> None:
        """Who has not said for long where it is has left: what it had ends for it."""
        assert self.every is not None
        effects.append(SetTimer(LEASES, now + self.every))
        for client, kept in list(state.kept.items()):
            if kept.heard < now - 3 * self.every:
                del state.kept[client]
                self._asked(state, kept.ticket, _empty(kept.ticket), now, effects)

    def _checked(self, ticket: Ticket) -> None:
        """What a subscriber asks for must be possible; its proxy could only be silent."""
        for wish in ticket.wishes:
            self.deployment.topic(wish.topic)
            self.deployment.region(wish.region)
            checked_epsilon(wish.epsilon)
        self.deployment.location(ticket.proxy)
        if ticket.components and not isinstance(self.inner, Node):
            raise UsageError(
                f"nodes here have no components; '{ticket.client}' brings {ticket.components[0]}"
            )


def _brought(word: Redirected) -> Brought:
    event = request.Notify(
        word.client, word.topic, word.location, word.publisher, word.time, word.values, (), word.repeated
    )
    return Brought(word.client, word.since, word.number, event, word.first)


def _empty(ticket: Ticket) -> Ticket:
    return msgspec.structs.replace(ticket, wishes=(), components=())
