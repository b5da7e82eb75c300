"""A node of State-based Publish/Subscribe: a broker with an information space and components.

[F50, F51, F75, F76, F78]  The node subscribes to the inputs of its components and publishes their outputs.
Nodes near by know their definitions. When a host is silent, the node nearest to its position starts its
components again without state; the latest events, which brokers store, restore what is active.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from ....model.instant import SECOND, Duration, Instant
from ....model.protocol import (
    Asked,
    Deliver,
    Effect,
    Fired,
    Input,
    Nearby,
    Received,
    Route,
    SetTimer,
    Started,
)
from ....model.space import Point, Rectangle, contains
from ..qps import request
from ..qps.message import At

INFOS, ALIVE = "infos", "alive"
ASIDE = 1e-6


class ComponentInput(Protocol):
    """An input of a component: a topic in a region."""

    @property
    def topic(self) -> str: ...
    @property
    def region(self) -> Rectangle: ...


class ComponentManager(Protocol):
    """An information space with components, provided by the code that builds the node."""

    def initial(self) -> Any: ...

    def insert(self, state: Any, name: str) -> None:
        """Start a component without state."""

    def take(self, state: Any, event: request.QpsNotify, now: Instant) -> None:
        """Process an event for components."""

    def advance(self, state: Any, now: Instant) -> Iterable[tuple[str, Point, dict[str, Any]]]:
        """Advance time; return the outputs: component, location and values."""

    def due(self, state: Any) -> Instant | None:
        """Return the time of the next call, or ``None``."""

    def needs(self, state: Any, name: str) -> Iterable[ComponentInput]:
        """Return the current inputs of a component."""

    def widened(self, state: Any, name: str) -> bool:
        """Whether a component's inputs cover a wider area from now on, because it has not received a
        match."""

    def topic(self, name: str) -> str:
        """Return the topic of a component's outputs."""

    def speaker(self, name: str, values: dict[str, Any]) -> str:
        """Return the publisher name of an output.

        Conditions that a component separates are publishers of their own, and the latest event of each is
        stored.  [F75]
        """


@dataclass(frozen=True, slots=True)
class InsertComponent:
    """Start a component on this node: ``insertSMC``.  [F51]"""

    name: str
    local: bool = False
    """Whether all its inputs come from publishers of this node, so that no message is needed.  [F74]"""
    region: Rectangle | None = None
    """The region of its outputs; ``None``: anywhere."""


@dataclass(frozen=True, slots=True)
class RemoveComponent:
    """Stop a component."""

    name: str


class LivingSign(msgspec.Struct, frozen=True, array_like=True, tag="living"):
    """A sign of life with the names of hosted components: passive replicas for nodes near by.  [F78]"""

    at: At
    names: tuple[str, ...]


class ReviveRequest(msgspec.Struct, frozen=True, array_like=True, tag="revive"):
    """Sent to the position of a silent host: the nearest node starts its components."""

    at: At
    names: tuple[str, ...]


@dataclass(slots=True)
class SpsState:
    """The state of broker and manager, the hosted components, and the signs of life of nodes near by."""

    broker: Any
    manager: Any
    components: dict[str, tuple[ComponentInput, ...]] = field(default_factory=dict)
    subscribed_at: dict[str, Instant] = field(default_factory=dict)
    """The time of each component's last subscription."""
    local: set[str] = field(default_factory=set)
    """The components whose inputs all come from this node."""
    hosts_near: dict[At, tuple[Instant, tuple[str, ...]]] = field(default_factory=dict)
    spaces: dict[str, Rectangle] = field(default_factory=dict)
    """The region of each component's outputs."""
    advertised_names: dict[str, set[str]] = field(default_factory=dict)
    """The publisher names of each component that have advertised."""


@dataclass(frozen=True)
class SpsNode:
    """The machine; ``broker`` is Quad-PubSub's, with or without its physical layer."""

    broker: Any
    manager: ComponentManager
    at: At
    space: Rectangle
    every: Duration = 10 * SECOND
    """The period of a host's signs of life; after three missing ones it counts as gone."""
    epsilon: float = 1.5

    @property
    def peeks(self) -> bool:
        """Whether the broker inspects messages that pass this node."""
        return bool(getattr(self.broker, "peeks", False))

    def initial(self) -> SpsState:
        """Return the state before the first input."""
        return SpsState(self.broker.initial(), self.manager.initial())

    def handle(self, state: SpsState, given: Input) -> tuple[SpsState, list[Effect]]:
        """Handle one input: update the state and return the effects."""
        effects: list[Effect] = []
        match given:
            case Started(now):
                self._pass_to_broker(state, given, effects)
                effects.append(SetTimer(f"sps/{ALIVE}", now + self.every))
            case Asked(now, InsertComponent() as asked):
                self._insert(state, asked, now, effects)
            case Asked(now, RemoveComponent(name)):
                self._remove(state, name, now, effects)
            case Received(now, _, LivingSign(at, names)):
                state.hosts_near[at] = (now, names)
            case Received(now, _, ReviveRequest() as call):
                self._on_revive(state, call, now, effects)
            case Fired(now, timer) if timer == f"sps/{INFOS}":
                self._publish_outputs(state, now, effects)
            case Fired(now, timer) if timer == f"sps/{ALIVE}":
                self._on_alive_timer(state, now, effects)
            case _:
                self._pass_to_broker(state, given, effects)
        return state, effects

    def _on_revive(self, state: SpsState, call: ReviveRequest, now: Instant, effects: list[Effect]) -> None:
        """Start the components of a silent node that do not run here, unless this is that node."""
        for name in call.names if call.at != self.at else ():
            if name not in state.components:
                self._insert(state, InsertComponent(name), now, effects)

    def _pass_to_broker(self, state: SpsState, given: Input, effects: list[Effect]) -> None:
        """Pass an input to the broker; deliveries for components go to them, all others to the user."""
        state.broker, found = self.broker.handle(state.broker, given)
        if isinstance(given, Asked) and isinstance(given.request, request.QpsPublishRequest):
            self._deliver_locally(state, given.request, given.now, effects)
        for effect in found:
            what = effect.what if isinstance(effect, Deliver) else None
            if isinstance(what, request.QpsNotify) and what.client.startswith("sps/"):
                self.manager.take(state.manager, what, given.now)
                self._set_timer(state, given.now, effects)
            elif not isinstance(what, request.FailedCoverage) or not what.client.startswith("sps/"):
                effects.append(effect)

    def _deliver_locally(
        self, state: SpsState, published: request.QpsPublishRequest, now: Instant, effects: list[Effect]
    ) -> None:
        """Deliver an event of this node's publishers to its local components at once.

        It has the time at which the broker sends it to others.
        """
        time = state.broker.latest
        for name in state.local:
            if any(
                n.topic == published.topic and contains(n.region, published.location)
                for n in state.components[name]
            ):
                event = request.QpsNotify(
                    f"sps/{name}",
                    published.topic,
                    published.location,
                    published.client,
                    time,
                    published.values,
                )
                self.manager.take(state.manager, event, now)
                self._set_timer(state, now, effects)

    def _insert(self, state: SpsState, given: InsertComponent, now: Instant, effects: list[Effect]) -> None:
        """Start a component, in place of one with the same name.  [F53]"""
        name, local = given.name, given.local
        self._remove(state, name, now, effects)
        self.manager.insert(state.manager, name)
        client, topic = f"sps/{name}", self.manager.topic(name)
        state.spaces[name] = given.region or self.space
        self._pass_to_broker(
            state, Asked(now, request.QpsAdvertiseRequest(client, topic, state.spaces[name])), effects
        )
        state.components[name] = ()
        if local:
            state.local.add(name)
            state.components[name] = tuple(self.manager.needs(state.manager, name))
        else:
            self._update_subscriptions(state, name, now, effects)
        effects.append(Nearby(LivingSign(self.at, tuple(state.components)), "living"))
        self._set_timer(state, now, effects)

    def _update_subscriptions(self, state: SpsState, name: str, now: Instant, effects: list[Effect]) -> None:
        """Subscribe to a component's current inputs, then end subscriptions that it does not need any
        more."""
        client, before = f"sps/{name}", dict.fromkeys(state.components[name])
        state.components[name] = tuple(self.manager.needs(state.manager, name))
        state.subscribed_at[name] = now
        needs = dict.fromkeys(state.components[name])
        asked: list[request.QpsRequest] = [
            request.QpsSubscribeRequest(client, need.topic, need.region, self.epsilon)
            for need in needs
            if need not in before
        ]
        asked += [
            request.QpsUnsubscribeRequest(client, need.topic, need.region)
            for need in before
            if need not in needs
        ]
        for each in asked:
            self._pass_to_broker(state, Asked(now, each), effects)

    def _remove(self, state: SpsState, name: str, now: Instant, effects: list[Effect]) -> None:
        """Stop a component and end its subscriptions and advertisements."""
        if name not in state.components:
            return
        client, needs = f"sps/{name}", dict.fromkeys(state.components.pop(name))
        space, topic = state.spaces.pop(name), self.manager.topic(name)
        state.subscribed_at.pop(name, None)
        over: list[request.QpsRequest] = [
            request.QpsUnsubscribeRequest(client, need.topic, need.region)
            for need in needs
            if name not in state.local
        ]
        over += [
            request.QpsUnadvertiseRequest(speaker, topic, space)
            for speaker in sorted(state.advertised_names.pop(name, {client}))
        ]
        state.local.discard(name)
        for each in over:
            self._pass_to_broker(state, Asked(now, each), effects)

    def _set_timer(self, state: SpsState, now: Instant, effects: list[Effect]) -> None:
        """Set the timer for the next evaluation."""
        if (due := self.manager.due(state.manager)) is not None:
            effects.append(SetTimer(f"sps/{INFOS}", max(due, now)))

    def _publish_outputs(self, state: SpsState, now: Instant, effects: list[Effect]) -> None:
        """Publish the outputs of components."""
        for name, where, values in self.manager.advance(state.manager, now):
            if name in state.components:
                speaker, topic = (
                    f"sps/{self.manager.speaker(name, values)}",
                    self.manager.topic(name),
                )
                speaking = state.advertised_names.setdefault(name, {f"sps/{name}"})
                if speaker not in speaking:  # in the place of the component, which is known
                    speaking.add(speaker)
                    advert = request.QpsAdvertiseRequest(speaker, topic, state.spaces[name])
                    self._pass_to_broker(state, Asked(now, advert), effects)
                self._pass_to_broker(
                    state, Asked(now, request.QpsPublishRequest(speaker, topic, where, values)), effects
                )
        self._set_timer(state, now, effects)

    def _on_alive_timer(self, state: SpsState, now: Instant, effects: list[Effect]) -> None:
        """Send a sign of life; revive the components of hosts that were silent too long."""
        effects.append(SetTimer(f"sps/{ALIVE}", now + self.every))
        for name, since in list(state.subscribed_at.items()):
            if since <= now - self.every and self.manager.widened(state.manager, name):
                self._update_subscriptions(state, name, now, effects)
        if state.components:
            effects.append(Nearby(LivingSign(self.at, tuple(state.components)), "living"))
        for at, (last_sign, names) in list(state.hosts_near.items()):
            if last_sign < now - 3 * self.every:
                del state.hosts_near[at]
                effects.append(Route(self._point_beside(at), ReviveRequest(at, names), "revive"))

    def _point_beside(self, at: At) -> At:
        """Return a point slightly beside a host's position, so that exactly one of its neighbours is nearest
        to it."""
        little = ASIDE * (self.space.high[0] - self.space.low[0])
        return (at[0] + little, at[1] + little * 0.618)
