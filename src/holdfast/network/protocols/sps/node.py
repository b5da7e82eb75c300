"""A node of State-based Publish/Subscribe: a broker with an information space and components.

[F50, F51, F75, F76, F78] The node subscribes to the inputs of its components and publishes their outputs.
Nearby nodes know the definitions of its components. When a host is silent, the node nearest to its position
restarts its components without state. The latest events, which brokers store, make the same conditions active
again.
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
        """Process an event for the components."""

    def advance(self, state: Any, now: Instant) -> Iterable[tuple[str, Point, dict[str, Any]]]:
        """Advance time; yield the outputs as component, location and values."""

    def due(self, state: Any) -> Instant | None:
        """Return the time at which `advance` must be called next; ``None`` if no component waits."""

    def needs(self, state: Any, name: str) -> Iterable[ComponentInput]:
        """Return the current inputs of a component."""

    def widened(self, state: Any, name: str) -> bool:
        """Widen the inputs of a component that has not received a match; return whether they now cover a
        wider area.
        """

    def topic(self, name: str) -> str:
        """Return the topic of a component's outputs."""

    def speaker(self, name: str, values: dict[str, Any]) -> str:
        """Return the publisher name of an output.

        A component may separate several conditions. Each of them is a publisher of its own, so that brokers
        store its latest event. [F75]
        """


class InsertComponent(msgspec.Struct, frozen=True):
    """Request: start a component on this node (``insertSMC``). [F51]"""

    name: str
    local: bool = False
    """Whether all its inputs come from publishers of this node, so that no message is needed.  [F74]"""
    region: Rectangle | None = None
    """The region of its outputs; ``None`` means anywhere."""


class RemoveComponent(msgspec.Struct, frozen=True):
    """Request: stop a component."""

    name: str


class LivingSign(msgspec.Struct, frozen=True, array_like=True, tag="living"):
    """A sign of life of a host with the names of its components. It makes nearby nodes passive replicas.
    [F78]
    """

    at: At
    names: tuple[str, ...]


class ReviveRequest(msgspec.Struct, frozen=True, array_like=True, tag="revive"):
    """A request to the position of a silent host. The nearest node starts the components of that host."""

    at: At
    names: tuple[str, ...]


@dataclass(slots=True)
class SpsState:
    """The state of broker and manager, the hosted components, and the signs of life of nearby nodes."""

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
    """The publisher names of each component that were advertised."""


@dataclass(frozen=True)
class SpsNode:
    """The machine of a node. ``broker`` is the machine of Quad-PubSub, with or without its physical layer."""

    broker: Any
    manager: ComponentManager
    at: At
    space: Rectangle
    every: Duration = 10 * SECOND
    """The period in µs of a host's signs of life. A host counts as lost after three missing signs."""
    epsilon: float = 1.5

    @property
    def peeks(self) -> bool:
        """Whether the broker inspects messages that this node forwards."""
        return bool(getattr(self.broker, "peeks", False))

    def initial(self) -> SpsState:
        """Return the state of the machine before its first input."""
        return SpsState(self.broker.initial(), self.manager.initial())

    def handle(self, state: SpsState, given: Input) -> tuple[SpsState, list[Effect]]:
        """Handle one input: change ``state`` in place, and return it with the effects in their order."""
        step = _SpsStep(self, state, given.now)
        match given:
            case Started(now):
                step.pass_to_broker(given)
                step.effects.append(SetTimer(f"sps/{ALIVE}", now + self.every))
            case Asked(_, InsertComponent() as asked):
                step.insert(asked)
            case Asked(_, RemoveComponent(name)):
                step.remove(name)
            case Received(now, _, LivingSign(at, names)):
                state.hosts_near[at] = (now, names)
            case Received(_, _, ReviveRequest() as call):
                step.on_revive(call)
            case Fired(_, timer) if timer == f"sps/{INFOS}":
                step.publish_outputs()
            case Fired(_, timer) if timer == f"sps/{ALIVE}":
                step.on_alive_timer()
            case _:
                step.pass_to_broker(given)
        return state, step.effects


class _SpsStep:
    """Handles one input of a node and collects the effects."""

    def __init__(self, node: SpsNode, state: SpsState, now: Instant) -> None:
        self.node, self.manager, self.state, self.now = node, node.manager, state, now
        self.effects: list[Effect] = []

    def on_revive(self, call: ReviveRequest) -> None:
        """Start the components of a silent host that do not run here, unless this node is that host."""
        for name in call.names if call.at != self.node.at else ():
            if name not in self.state.components:
                self.insert(InsertComponent(name))

    def ask(self, asked: request.QpsRequest) -> None:
        """Pass a request of a component to the broker."""
        self.pass_to_broker(Asked(self.now, asked))

    def pass_to_broker(self, given: Input) -> None:
        """Pass an input to the broker. Deliveries for components go to the components, all others to the
        user.
        """
        self.state.broker, found = self.node.broker.handle(self.state.broker, given)
        if isinstance(given, Asked) and isinstance(given.request, request.QpsPublishRequest):
            self._deliver_locally(given.request)
        for effect in found:
            what = effect.what if isinstance(effect, Deliver) else None
            if isinstance(what, request.QpsNotify) and what.client.startswith("sps/"):
                self._process(what)
            elif not isinstance(what, request.FailedCoverage) or not what.client.startswith("sps/"):
                self.effects.append(effect)

    def _deliver_locally(self, published: request.QpsPublishRequest) -> None:
        """Deliver an event of this node's publishers to its local components at once.

        The event has the time at which the broker sends it to other nodes.
        """
        topic, where, time = published.topic, published.location, self.state.broker.latest
        for name in self.state.local:
            needs = self.state.components[name]
            if any(need.topic == topic and contains(need.region, where) for need in needs):
                client, values = f"sps/{name}", published.values
                self._process(request.QpsNotify(client, topic, where, published.client, time, values))

    def _process(self, event: request.QpsNotify) -> None:
        """Pass an event to the components, and set the timer for the next evaluation."""
        self.manager.take(self.state.manager, event, self.now)
        self._set_timer()

    def insert(self, given: InsertComponent) -> None:
        """Start a component; it replaces a component with the same name. [F53]"""
        name, state = given.name, self.state
        self.remove(name)
        self.manager.insert(state.manager, name)
        space = state.spaces[name] = given.region or self.node.space
        self.ask(request.QpsAdvertiseRequest(f"sps/{name}", self.manager.topic(name), space))
        state.components[name] = ()
        if given.local:
            state.local.add(name)
            state.components[name] = tuple(self.manager.needs(state.manager, name))
        else:
            self._update_subscriptions(name)
        self._send_sign()
        self._set_timer()

    def _send_sign(self) -> None:
        """Send a sign of life with the names of the components."""
        sign = LivingSign(self.node.at, tuple(self.state.components))
        self.effects.append(Nearby(sign, "living"))

    def _update_subscriptions(self, name: str) -> None:
        """Subscribe to a component's current inputs, then end the subscriptions that it no longer needs."""
        state, client = self.state, f"sps/{name}"
        before = dict.fromkeys(state.components[name])
        state.components[name] = tuple(self.manager.needs(state.manager, name))
        state.subscribed_at[name] = self.now
        needs = dict.fromkeys(state.components[name])
        for need in [need for need in needs if need not in before]:
            epsilon = self.node.epsilon
            self.ask(request.QpsSubscribeRequest(client, need.topic, need.region, epsilon))
        for need in [need for need in before if need not in needs]:
            self.ask(request.QpsUnsubscribeRequest(client, need.topic, need.region))

    def remove(self, name: str) -> None:
        """Stop a component and end its subscriptions and advertisements."""
        state, client = self.state, f"sps/{name}"
        if name not in state.components:
            return
        needs = dict.fromkeys(state.components.pop(name))
        space, topic = state.spaces.pop(name), self.manager.topic(name)
        state.subscribed_at.pop(name, None)
        speakers = sorted(state.advertised_names.pop(name, {client}))
        is_local = name in state.local
        state.local.discard(name)
        for need in needs if not is_local else ():
            self.ask(request.QpsUnsubscribeRequest(client, need.topic, need.region))
        for speaker in speakers:
            self.ask(request.QpsUnadvertiseRequest(speaker, topic, space))

    def _set_timer(self) -> None:
        """Set the timer for the next evaluation of components, if one is due."""
        if (due := self.manager.due(self.state.manager)) is not None:
            self.effects.append(SetTimer(f"sps/{INFOS}", max(due, self.now)))

    def publish_outputs(self) -> None:
        """Publish the outputs of all components."""
        state = self.state
        for name, where, values in self.manager.advance(state.manager, self.now):
            if name in state.components:
                speaker, topic = f"sps/{self.manager.speaker(name, values)}", self.manager.topic(name)
                speakers = state.advertised_names.setdefault(name, {f"sps/{name}"})
                if speaker not in speakers:  # in the place of the component, which is known
                    speakers.add(speaker)
                    self.ask(request.QpsAdvertiseRequest(speaker, topic, state.spaces[name]))
                self.ask(request.QpsPublishRequest(speaker, topic, where, values))
        self._set_timer()

    def on_alive_timer(self) -> None:
        """Send a sign of life, and revive the components of hosts that were silent for too long."""
        state, every = self.state, self.node.every
        self.effects.append(SetTimer(f"sps/{ALIVE}", self.now + every))
        for name, since in list(state.subscribed_at.items()):
            if since <= self.now - every and self.manager.widened(state.manager, name):
                self._update_subscriptions(name)
        if state.components:
            self._send_sign()
        for at, (last_sign, names) in list(state.hosts_near.items()):
            if last_sign < self.now - 3 * every:
                del state.hosts_near[at]
                self.effects.append(Route(self._point_beside(at), ReviveRequest(at, names), "revive"))

    def _point_beside(self, at: At) -> At:
        """Return a point slightly beside a host's position, so that exactly one of its neighbours is nearest
        to it.
        """
        space = self.node.space
        little = ASIDE * (space.high[0] - space.low[0])
        return (at[0] + little, at[1] + little * 0.618)
