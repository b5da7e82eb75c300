"""Proxies for mobile subscribers: nodes do not move, so a subscriber's subscriptions stay at a proxy. [F80]

The proxy is the node nearest to a point that the subscriber chose once, such as the place of its first
subscription. It subscribes, hosts the subscriber's components, knows the subscriber's position and forwards
its events. It stores an event until the subscriber has confirmed it. The nodes that the subscriber meets on
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
"""The prefix of the names under which a node subscribes as a proxy."""


class ArriveRequest(msgspec.Struct, frozen=True):
    """Request: a mobile subscriber is at this node. The subscriber repeats it periodically."""

    ticket: Ticket


class GotRequest(msgspec.Struct, frozen=True):
    """Request: the subscriber has received an event."""

    ticket: Ticket
    brought: BroughtEvent


class SubscriberMoved(msgspec.Struct, frozen=True, array_like=True, tag="moved"):
    """Informs the proxy of the subscriber's position and its subscriptions."""

    ticket: Ticket
    at: At


class RedirectedEvent(msgspec.Struct, frozen=True, array_like=True, tag="redirected"):
    """An event that the proxy sends to the subscriber's position."""

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
    """Events with lower numbers are no longer stored, even if the subscriber has not received them."""


class EventArrived(msgspec.Struct, frozen=True, array_like=True, tag="arrived"):
    """Informs the proxy that the subscriber has received the event with this number."""

    client: str
    since: Instant
    number: int


ProxyMessage = SubscriberMoved | RedirectedEvent | EventArrived


def bytes_of(message: ProxyMessage) -> int:
    """Return the size of a message on a mote in bytes. Names and numbers take two bytes."""
    match message:
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
    """A mobile subscriber as its proxy knows it."""

    since: Instant
    """The time at which this node became its proxy. A proxy with a later time takes precedence."""
    ticket: Ticket
    at: At
    last_sign: Instant
    sent: int = 0
    first: int = 0
    """The lowest number of an event that was not dropped for lack of room."""
    waiting: dict[int, RedirectedEvent] = field(default_factory=dict)
    """The events that the subscriber has not confirmed, by number."""


@dataclass(slots=True)
class ProxyState:
    """The state of the inner machine, and the subscribers for which this node is the proxy."""

    inner: Any
    subscribers: dict[str, ProxySubscriber] = field(default_factory=dict)

    @property
    def latest(self) -> Instant:
        """The time of the latest event that this node published."""
        return int(self.inner.latest)


@dataclass(frozen=True)
class ProxyNode:
    """The machine of a node with proxies. ``inner`` is a broker, or a node with components."""

    inner: Any
    at: At
    every: Duration | None = None
    """The period in µs in which subscribers report their position. A subscriber is forgotten after three
    periods without a report; ``None`` means never.
    """
    room: int = 1000
    """The greatest number of stored events per subscriber. A further event replaces the oldest, and the
    subscriber learns how many it has lost.
    """

    def __post_init__(self) -> None:
        if self.room < 1:
            raise UsageError(f"room for {self.room} events; it must be 1 or more")

    @property
    def peeks(self) -> bool:
        """Whether the inner machine inspects messages that this node forwards."""
        return bool(getattr(self.inner, "peeks", False))

    @property
    def deployment(self) -> QpsDeployment:
        """The deployment of the broker inside the inner machine."""
        broker = self.inner.broker if isinstance(self.inner, SpsNode) else self.inner
        found: QpsDeployment = broker.deployment
        return found

    def initial(self) -> ProxyState:
        """Return the state of the machine before its first input."""
        return ProxyState(self.inner.initial())

    def handle(self, state: ProxyState, given: Input) -> tuple[ProxyState, list[Effect]]:
        """Handle one input: change ``state`` in place, and return it with the effects in their order."""
        step = _ProxyStep(self, state, given.now)
        match given:
            case Started():
                step.pass_to_inner(given)
                if self.every is not None:
                    step.set_lease_timer(self.every)
            case Asked(_, ArriveRequest(ticket)):
                self._check_ticket(ticket)
                step.send(ticket.proxy, SubscriberMoved(ticket, self.at))
            case Asked(_, GotRequest(ticket, brought)):
                step.send(ticket.proxy, EventArrived(brought.client, brought.since, brought.number))
            case Received(_, _, SubscriberMoved() | RedirectedEvent() | EventArrived() as message):
                step.on_message(message)
            case Passing(_, _, SubscriberMoved() | RedirectedEvent() | EventArrived() as message):
                step.effects.append(Onward(message))
            case Fired(_, timer) if timer == LEASES and self.every is not None:
                step.forget_silent(self.every)
            case _:
                step.pass_to_inner(given)
        return state, step.effects

    def _check_ticket(self, ticket: Ticket) -> None:
        """Raise a `UsageError` for an impossible request. The check runs here, because the proxy could not
        report it.
        """
        for wish in ticket.wishes:
            self.deployment.topic(wish.topic)
            self.deployment.region(wish.region)
            check_epsilon(wish.epsilon)
        self.deployment.location(ticket.proxy)
        if ticket.components and not isinstance(self.inner, SpsNode):
            client, brought = ticket.client, ticket.components[0]
            raise UsageError(f"nodes here have no components; '{client}' brings {brought}")


class _ProxyStep:
    """Handles one input of a node with proxies, and collects the effects."""

    def __init__(self, node: ProxyNode, state: ProxyState, now: Instant) -> None:
        self.node, self.state, self.now = node, state, now
        self.effects: list[Effect] = []

    # --- the machine below ---

    def ask(self, asked: Any) -> None:
        """Pass a request to the inner machine."""
        self.pass_to_inner(Asked(self.now, asked))

    def pass_to_inner(self, given: Input) -> None:
        """Pass an input to the inner machine, and forward its deliveries for mobile subscribers."""
        self.state.inner, found = self.node.inner.handle(self.state.inner, given)
        for effect in found:
            what = effect.what if isinstance(effect, Deliver) else None
            client = getattr(what, "client", "")
            if not client.startswith(CLIENT):
                self.effects.append(effect)
            elif isinstance(what, request.QpsNotify) and (
                subscriber := self.state.subscribers.get(client[len(CLIENT) :])
            ):
                self._forward_event(subscriber, what)

    def _forward_event(self, subscriber: ProxySubscriber, event: request.QpsNotify) -> None:
        """Number, store and forward an event for a subscriber."""
        about = subscriber.ticket.client, subscriber.since, subscriber.sent
        (x, y), source, time, values = event.location, event.publisher, event.time, event.values
        message = RedirectedEvent(*about, event.topic, (x, y), source, time, values, event.repeated)
        subscriber.sent += 1
        subscriber.waiting[message.number] = message
        if len(subscriber.waiting) > self.node.room:
            subscriber.first = subscriber.waiting.pop(next(iter(subscriber.waiting))).number + 1
        self._send_event(subscriber, message)

    def _send_event(self, subscriber: ProxySubscriber, message: RedirectedEvent) -> None:
        """Send an event to the subscriber's position."""
        self.send(subscriber.at, msgspec.structs.replace(message, first=subscriber.first))

    # --- messages ---

    def send(self, at: At, message: ProxyMessage) -> None:
        """Send a message to the node nearest to a point. If that is this node, handle the message at once."""
        if at == self.node.at:
            self.on_message(message)
        else:
            self.effects.append(Route(at, message, wire_name(message).lower()))

    def on_message(self, message: ProxyMessage) -> None:
        """Handle a message of another proxy or node."""
        match message:
            case SubscriberMoved(ticket, at):
                self._on_moved(ticket, at)
            case EventArrived(client, since, number):
                subscriber = self.state.subscribers.get(client)
                if subscriber is not None and subscriber.since == since:
                    subscriber.waiting.pop(number, None)
            case RedirectedEvent():
                self.effects.append(Deliver(_to_brought(message)))

    def _on_moved(self, ticket: Ticket, at: At) -> None:
        """Update the subscriber's position and subscriptions from its latest message."""
        subscriber = self.state.subscribers.get(ticket.client)
        if subscriber is None:
            subscriber = ProxySubscriber(self.now, _without_wishes(ticket), at, self.now)
            self.state.subscribers[ticket.client] = subscriber
        elif ticket.turn < subscriber.ticket.turn:
            return
        before, subscriber.ticket = subscriber.ticket, ticket
        subscriber.at, subscriber.last_sign = at, self.now
        self._update_requests(before, ticket)
        if not ticket.wishes:
            subscriber.waiting.clear()
        for event in list(subscriber.waiting.values()):
            self._send_event(subscriber, event)

    def _update_requests(self, old: Ticket, new: Ticket) -> None:
        """Start new subscriptions, then end old ones, so that common ones are never interrupted."""
        client, subscribers = CLIENT + new.client, self.state.subscribers
        had = {n for name, each in subscribers.items() if name != new.client for n in each.ticket.components}
        needed = {n for each in subscribers.values() for n in each.ticket.components}
        for name in new.components:
            if name not in old.components and name not in had:
                self.ask(InsertComponent(name))
        for wish in new.wishes:
            if wish not in old.wishes:
                self.ask(request.QpsSubscribeRequest(client, wish.topic, wish.region, wish.epsilon))
        for wish in old.wishes:
            if wish not in new.wishes:
                self.ask(request.QpsUnsubscribeRequest(client, wish.topic, wish.region))
        for name in old.components:
            if name not in needed:
                self.ask(RemoveComponent(name))

    def set_lease_timer(self, every: Duration) -> None:
        """Set the timer for the next check of subscribers."""
        self.effects.append(SetTimer(LEASES, self.now + every))

    def forget_silent(self, every: Duration) -> None:
        """Remove subscribers that have not reported their position for three periods."""
        self.set_lease_timer(every)
        for client, subscriber in list(self.state.subscribers.items()):
            if subscriber.last_sign < self.now - 3 * every:
                del self.state.subscribers[client]
                self._update_requests(subscriber.ticket, _without_wishes(subscriber.ticket))


def _to_brought(given: RedirectedEvent) -> BroughtEvent:
    """Convert an event to the form in which the subscriber's device receives it."""
    about = given.topic, given.location, given.publisher, given.time, given.values
    event = request.QpsNotify(given.client, *about, (), given.repeated)
    return BroughtEvent(given.client, given.since, given.number, event, given.first)


def _without_wishes(ticket: Ticket) -> Ticket:
    return msgspec.structs.replace(ticket, wishes=(), components=())
