"""Mobile subscribers: nodes stand still, so a subscriber's subscriptions stay at a proxy.  [F80]

The proxy is the node nearest to a point that the subscriber chose once, such as the place of its first
subscription. It subscribes, hosts the subscriber's components, knows the subscriber's position and forwards
its events; it stores an event until the subscriber has confirmed it. The nodes that the subscriber meets on
its way store nothing: they pass messages between subscriber and proxy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ....errors import UsageError
from ....model.event import Value
from ....model.instant import Duration, Instant
from ....model.protocol import (
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
from ..qps.deployment import QpsDeployment, check_epsilon
from ..qps.message import ADDRESS, At
from ..wire_name import wire_name
from .node import InsertComponent, RemoveComponent, SpsNode
from .traveller import BroughtEvent, Ticket

LEASES = "proxy/leases"
CLIENT = "proxy/"
"""The prefix of the names of clients for which a node is the proxy."""


@dataclass(frozen=True, slots=True)
class ArriveRequest:
    """A mobile subscriber is at this node; it repeats this periodically."""

    ticket: Ticket


@dataclass(frozen=True, slots=True)
class GotRequest:
    """The subscriber has received an event."""

    ticket: Ticket
    brought: BroughtEvent


class SubscriberMoved(msgspec.Struct, frozen=True, array_like=True, tag="moved"):
    """To the proxy: the subscriber's position and its subscriptions."""

    ticket: Ticket
    at: At


class RedirectedEvent(msgspec.Struct, frozen=True, array_like=True, tag="redirected"):
    """From the proxy to the subscriber's position: an event."""

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
    """Events with lower numbers are not stored any more, even if the subscriber has not received them."""


class EventArrived(msgspec.Struct, frozen=True, array_like=True, tag="arrived"):
    """To the proxy: the subscriber has received the event with this number."""

    client: str
    since: Instant
    number: int


ProxyMessage = SubscriberMoved | RedirectedEvent | EventArrived


def bytes_of(word: ProxyMessage) -> int:
    """Return the size on a mote, in bytes: names and numbers in two bytes."""
    match word:
        case SubscriberMoved(ticket=ticket):
            wishes = sum(3 + ADDRESS * len(wish.outline) for wish in ticket.wishes)
            return 2 * ADDRESS + 4 + wishes + len(ticket.components)
        case RedirectedEvent(values=values, first=first):
            attributes = sum(len(v) if isinstance(v, str) else 4 for v in values.values())
            return 2 * ADDRESS + 9 + attributes + (2 if first else 0)
        case EventArrived():
            return ADDRESS + 4


@dataclass(slots=True)
class ProxySubscriber:
    """A subscriber as its proxy knows it."""

    since: Instant
    """Since when this node is its proxy; a later one takes precedence."""
    ticket: Ticket
    at: At
    last_sign: Instant
    sent: int = 0
    first: int = 0
    """The number after that of the last event that was dropped for lack of room."""
    waiting: dict[int, RedirectedEvent] = field(default_factory=dict)
    """Events that the subscriber has not confirmed."""


@dataclass(slots=True)
class ProxyState:
    """The state of the inner machine, and the subscribers for which this node is the proxy."""

    inner: Any
    subscribers: dict[str, ProxySubscriber] = field(default_factory=dict)

    @property
    def latest(self) -> Instant:
        """The time of this node's latest event."""
        return int(self.inner.latest)


@dataclass(frozen=True)
class ProxyNode:
    """The machine; ``inner`` is a broker, or a node with components."""

    inner: Any
    at: At
    every: Duration | None = None
    """The period in which subscribers report their position; one that does not for three periods is
    forgotten.

    ``None``: none is forgotten.
    """
    room: int = 1000
    """The number of stored events per subscriber; further ones replace the oldest, and the subscriber learns
    how many."""

    def __post_init__(self) -> None:
        if self.room < 1:
            raise UsageError(f"room for {self.room} events; it must be 1 or more")

    @property
    def peeks(self) -> bool:
        """Whether the inner machine inspects messages that pass this node."""
        return bool(getattr(self.inner, "peeks", False))

    @property
    def deployment(self) -> QpsDeployment:
        """The deployment of the broker."""
        broker = self.inner.broker if isinstance(self.inner, SpsNode) else self.inner
        found: QpsDeployment = broker.deployment
        return found

    def initial(self) -> ProxyState:
        """Return the state before the first input."""
        return ProxyState(self.inner.initial())

    def handle(self, state: ProxyState, given: Input) -> tuple[ProxyState, list[Effect]]:
        """Handle one input: update the state and return the effects."""
        effects: list[Effect] = []
        match given:
            case Started(now):
                self._pass_to_inner(state, given, effects)
                if self.every is not None:
                    effects.append(SetTimer(LEASES, now + self.every))
            case Asked(now, ArriveRequest(ticket)):
                self._check_ticket(ticket)
                self._send(state, ticket.proxy, SubscriberMoved(ticket, self.at), now, effects)
            case Asked(now, GotRequest(ticket, brought)):
                word = EventArrived(brought.client, brought.since, brought.number)
                self._send(state, ticket.proxy, word, now, effects)
            case Received(now, _, SubscriberMoved() | RedirectedEvent() | EventArrived() as word):
                self._on_message(state, word, now, effects)
            case Passing(_, _, SubscriberMoved() | RedirectedEvent() | EventArrived() as word):
                effects.append(Onward(word))
            case Fired(now, timer) if timer == LEASES:
                self._forget_silent(state, now, effects)
            case _:
                self._pass_to_inner(state, given, effects)
        return state, effects

    # --- the machine below ---

    def _pass_to_inner(self, state: ProxyState, given: Input, effects: list[Effect]) -> None:
        """Pass an input to the inner machine; forward deliveries for mobile subscribers."""
        state.inner, found = self.inner.handle(state.inner, given)
        for effect in found:
            what = effect.what if isinstance(effect, Deliver) else None
            client = getattr(what, "client", "")
            if not client.startswith(CLIENT):
                effects.append(effect)
            elif isinstance(what, request.QpsNotify) and (
                subscriber := state.subscribers.get(client[len(CLIENT) :])
            ):
                self._forward_event(state, subscriber, what, given.now, effects)

    def _forward_event(
        self,
        state: ProxyState,
        subscriber: ProxySubscriber,
        event: request.QpsNotify,
        now: Instant,
        effects: list[Effect],
    ) -> None:
        """Number, store and forward an event for a subscriber."""
        x, y = event.location
        word = RedirectedEvent(
            subscriber.ticket.client,
            subscriber.since,
            subscriber.sent,
            event.topic,
            (x, y),
            event.publisher,
            event.time,
            event.values,
            event.repeated,
        )
        subscriber.sent += 1
        subscriber.waiting[word.number] = word
        if len(subscriber.waiting) > self.room:
            subscriber.first = subscriber.waiting.pop(next(iter(subscriber.waiting))).number + 1
        self._send_event(state, subscriber, word, now, effects)

    def _send_event(
        self,
        state: ProxyState,
        subscriber: ProxySubscriber,
        word: RedirectedEvent,
        now: Instant,
        effects: list[Effect],
    ) -> None:
        """Send an event to the subscriber's position."""
        self._send(state, subscriber.at, msgspec.structs.replace(word, first=subscriber.first), now, effects)

    # --- words ---

    def _send(
        self, state: ProxyState, at: At, word: ProxyMessage, now: Instant, effects: list[Effect]
    ) -> None:
        """Send a message to the node nearest to a point; handle it at once if that is this node."""
        if at == self.at:
            self._on_message(state, word, now, effects)
        else:
            effects.append(Route(at, word, wire_name(word).lower()))

    def _on_message(self, state: ProxyState, word: ProxyMessage, now: Instant, effects: list[Effect]) -> None:
        """Handle a message of another proxy or node."""
        match word:
            case SubscriberMoved():
                self._on_moved(state, word, now, effects)
            case EventArrived(client, since, number):
                subscriber = state.subscribers.get(client)
                if subscriber is not None and subscriber.since == since:
                    subscriber.waiting.pop(number, None)
            case RedirectedEvent():
                effects.append(Deliver(_to_brought(word)))

    def _on_moved(
        self, state: ProxyState, word: SubscriberMoved, now: Instant, effects: list[Effect]
    ) -> None:
        """Update the subscriber's position and subscriptions; the latest message counts."""
        ticket = word.ticket
        subscriber = state.subscribers.get(ticket.client)
        if subscriber is None:
            subscriber = state.subscribers[ticket.client] = ProxySubscriber(
                now, _without_wishes(ticket), word.at, now
            )
        elif ticket.turn < subscriber.ticket.turn:
            return
        before, subscriber.ticket, subscriber.at, subscriber.last_sign = (
            subscriber.ticket,
            ticket,
            word.at,
            now,
        )
        self._update_requests(state, before, ticket, now, effects)
        if not ticket.wishes:
            subscriber.waiting.clear()
        for event in list(subscriber.waiting.values()):
            self._send_event(state, subscriber, event, now, effects)

    def _update_requests(
        self, state: ProxyState, old: Ticket, new: Ticket, now: Instant, effects: list[Effect]
    ) -> None:
        """Start new subscriptions, then end old ones, so that common ones are never interrupted."""
        client = CLIENT + new.client
        had = {
            n
            for name, subscriber in state.subscribers.items()
            if name != new.client
            for n in subscriber.ticket.components
        }
        asked: list[Any] = [
            InsertComponent(n) for n in new.components if n not in old.components and n not in had
        ]
        for wish in new.wishes:
            if wish not in old.wishes:
                asked.append(request.QpsSubscribeRequest(client, wish.topic, wish.region, wish.epsilon))
        for wish in old.wishes:
            if wish not in new.wishes:
                asked.append(request.QpsUnsubscribeRequest(client, wish.topic, wish.region))
        others = {name for subscriber in state.subscribers.values() for name in subscriber.ticket.components}
        asked += [RemoveComponent(name) for name in old.components if name not in others]
        for each in asked:
            self._pass_to_inner(state, Asked(now, each), effects)

    def _forget_silent(self, state: ProxyState, now: Instant, effects: list[Effect]) -> None:
        """Remove subscribers that have not reported their position for long."""
        assert self.every is not None
        effects.append(SetTimer(LEASES, now + self.every))
        for client, subscriber in list(state.subscribers.items()):
            if subscriber.last_sign < now - 3 * self.every:
                del state.subscribers[client]
                self._update_requests(
                    state, subscriber.ticket, _without_wishes(subscriber.ticket), now, effects
                )

    def _check_ticket(self, ticket: Ticket) -> None:
        """Raise a `UsageError` for an impossible request here, because the proxy could not report it."""
        for wish in ticket.wishes:
            self.deployment.topic(wish.topic)
            self.deployment.region(wish.region)
            check_epsilon(wish.epsilon)
        self.deployment.location(ticket.proxy)
        if ticket.components and not isinstance(self.inner, SpsNode):
            raise UsageError(
                f"nodes here have no components; '{ticket.client}' brings {ticket.components[0]}"
            )


def _to_brought(word: RedirectedEvent) -> BroughtEvent:
    event = request.QpsNotify(
        word.client, word.topic, word.location, word.publisher, word.time, word.values, (), word.repeated
    )
    return BroughtEvent(word.client, word.since, word.number, event, word.first)


def _without_wishes(ticket: Ticket) -> Ticket:
    return msgspec.structs.replace(ticket, wishes=(), components=())
