"""A node of State-based Publish/Subscribe: a broker, and beside it an information space and components.

[F50, F51, F75, F76, F78]  What components listen to is subscribed to; what they say is published.  Their
definitions are known to the nodes near by: when a host is silent, whoever is nearest to where it stood begins
them anew, without state; the latest events, which brokers keep, tell them what holds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from ...model.instant import SECOND, Duration, Instant
from ...model.protocol import Asked, Deliver, Effect, Fired, Input, Nearby, Received, Route, SetTimer, Started
from ...model.space import Point, Rectangle, contains
from ..qps import request
from ..qps.message import At

INFOS, ALIVE = "infos", "alive"
ASIDE = 1e-6


class Need(Protocol):
    """What a component listens to."""

    @property
    def topic(self) -> str: ...
    @property
    def region(self) -> Rectangle: ...


class Manager(Protocol):
    """An information space and the components in it, as whoever builds the node has them."""

    def initial(self) -> Any: ...

    def insert(self, state: Any, name: str) -> None:
        """Begin a component, without state."""

    def take(self, state: Any, event: request.Notify, now: Instant) -> None:
        """An event has come for components."""

    def advance(self, state: Any, now: Instant) -> Iterable[tuple[str, Point, dict[str, Any]]]:
        """Let time come so far: the component that says something, where, and what."""

    def due(self, state: Any) -> Instant | None:
        """When it wants to be called again."""

    def needs(self, state: Any, name: str) -> Iterable[Need]:
        """What a component listens to now."""

    def widened(self, state: Any, name: str) -> bool:
        """Whether it is to listen farther away from now on, since it has not heard what it looks for."""

    def topic(self, name: str) -> str:
        """What it publishes."""

    def speaker(self, name: str, values: dict[str, Any]) -> str:
        """Which of a component's conditions says that: those that it keeps apart are publishers of their
        own, and of each the latest event is kept.  [F75]"""


@dataclass(frozen=True, slots=True)
class Insert:
    """Begin a component on this node: ``insertSMC``.  [F51]"""

    name: str
    local: bool = False
    """Whether only publishers of this node speak of what it is about: it needs no message then.  [F74]"""
    region: Rectangle | None = None
    """Where what it says lies; none: anywhere."""


@dataclass(frozen=True, slots=True)
class Remove:
    """End it."""

    name: str


class Living(msgspec.Struct, frozen=True, array_like=True, tag="living"):
    """This node lives, and hosts these: passive replicas for those near by.  [F78]"""

    at: At
    names: tuple[str, ...]


class Revive(msgspec.Struct, frozen=True, array_like=True, tag="revive"):
    """To where a host stood: whoever is nearest begins its components."""

    at: At
    names: tuple[str, ...]


@dataclass(slots=True)
class State:
    """What broker and manager remember, what is hosted here, and who was heard near by."""

    broker: Any
    manager: Any
    hosted: dict[str, tuple[Need, ...]] = field(default_factory=dict)
    asked: dict[str, Instant] = field(default_factory=dict)
    """Since when each listens to that."""
    local: set[str] = field(default_factory=set)
    """Those of them that hear this node alone."""
    near: dict[At, tuple[Instant, tuple[str, ...]]] = field(default_factory=dict)
    spaces: dict[str, Rectangle] = field(default_factory=dict)
    """Where what a component says lies."""
    speaking: dict[str, set[str]] = field(default_factory=dict)
    """Conditions of each component that have advertised."""


@dataclass(frozen=True)
class Node:
    """The machine; ``broker`` is Quad-PubSub's, with or without its physical layer."""

    broker: Any
    manager: Manager
    at: At
    space: Rectangle
    every: Duration = 10 * SECOND
    """How often a host says that it lives; after three of them it is taken for gone."""
    epsilon: float = 1.5

    @property
    def peeks(self) -> bool:
        return bool(getattr(self.broker, "peeks", False))

    def initial(self) -> State:
        return State(self.broker.initial(), self.manager.initial())

    def handle(self, state: State, given: Input) -> tuple[State, list[Effect]]:
        effects: list[Effect] = []
        match given:
            case Started(now):
                self._broker(state, given, effects)
                effects.append(SetTimer(f"sps/{ALIVE}", now + self.every))
            case Asked(now, Insert() as asked):
                self._insert(state, asked, now, effects)
            case Asked(now, Remove(name)):
                self._remove(state, name, now, effects)
            case Received(now, _, Living(at, names)):
                state.near[at] = (now, names)
            case Received(now, _, Revive() as call):
                self._revived(state, call, now, effects)
            case Fired(now, timer) if timer == f"sps/{INFOS}":
                self._evaluated(state, now, effects)
            case Fired(now, timer) if timer == f"sps/{ALIVE}":
                self._alive(state, now, effects)
            case _:
                self._broker(state, given, effects)
        return state, effects

    def _revived(self, state: State, call: Revive, now: Instant, effects: list[Effect]) -> None:
        """Begin what a silent node had, unless one is that node and lives, or has begun it already."""
        for name in call.names if call.at != self.at else ():
            if name not in state.hosted:
                self._insert(state, Insert(name), now, effects)

    def _broker(self, state: State, given: Input, effects: list[Effect]) -> None:
        """Publish/subscribe: what is for components goes to them, everything else to the user."""
        state.broker, found = self.broker.handle(state.broker, given)
        if isinstance(given, Asked) and isinstance(given.request, request.Publish):
            self._at_home(state, given.request, given.now, effects)
        for effect in found:
            what = effect.what if isinstance(effect, Deliver) else None
            if isinstance(what, request.Notify) and what.client.startswith("sps/"):
                self.manager.take(state.manager, what, given.now)
                self._wait(state, given.now, effects)
            elif not isinstance(what, request.FailedCoverage) or not what.client.startswith("sps/"):
                effects.append(effect)

    def _at_home(self, state: State, said: request.Publish, now: Instant, effects: list[Effect]) -> None:
        """A publisher of this node has an event: components that hear this node alone hear it at once, as of
        the time by which the broker tells others of it."""
        time = state.broker.latest
        for name in state.local:
            if any(n.topic == said.topic and contains(n.region, said.location) for n in state.hosted[name]):
                event = request.Notify(
                    f"sps/{name}", said.topic, said.location, said.client, time, said.values
                )
                self.manager.take(state.manager, event, now)
                self._wait(state, now, effects)

    def _insert(self, state: State, given: Insert, now: Instant, effects: list[Effect]) -> None:
        """One of that name is replaced.  [F53]"""
        name, local = given.name, given.local
        self._remove(state, name, now, effects)
        self.manager.insert(state.manager, name)
        client, topic = f"sps/{name}", self.manager.topic(name)
        state.spaces[name] = given.region or self.space
        self._broker(state, Asked(now, request.Advertise(client, topic, state.spaces[name])), effects)
        state.hosted[name] = ()
        if local:
            state.local.add(name)
            state.hosted[name] = tuple(self.manager.needs(state.manager, name))
        else:
            self._listen(state, name, now, effects)
        effects.append(Nearby(Living(self.at, tuple(state.hosted)), "living"))
        self._wait(state, now, effects)

    def _listen(self, state: State, name: str, now: Instant, effects: list[Effect]) -> None:
        """Subscribe to what a component needs now, then end what it does not need any more."""
        client, before = f"sps/{name}", dict.fromkeys(state.hosted[name])
        state.hosted[name] = tuple(self.manager.needs(state.manager, name))
        state.asked[name] = now
        needs = dict.fromkeys(state.hosted[name])
        asked: list[request.Request] = [
            request.Subscribe(client, need.topic, need.region, self.epsilon)
            for need in needs
            if need not in before
        ]
        asked += [
            request.Unsubscribe(client, need.topic, need.region) for need in before if need not in needs
        ]
        for each in asked:
            self._broker(state, Asked(now, each), effects)

    def _remove(self, state: State, name: str, now: Instant, effects: list[Effect]) -> None:
        """It listens no more and says nothing any more."""
        if name not in state.hosted:
            return
        client, needs = f"sps/{name}", dict.fromkeys(state.hosted.pop(name))
        space, topic = state.spaces.pop(name), self.manager.topic(name)
        state.asked.pop(name, None)
        over: list[request.Request] = [
            request.Unsubscribe(client, need.topic, need.region) for need in needs if name not in state.local
        ]
        over += [
            request.Unadvertise(speaker, topic, space)
            for speaker in sorted(state.speaking.pop(name, {client}))
        ]
        state.local.discard(name)
        for each in over:
            self._broker(state, Asked(now, each), effects)

    def _wait(self, state: State, now: Instant, effects: list[Effect]) -> None:
        if (due := self.manager.due(state.manager)) is not None:
            effects.append(SetTimer(f"sps/{INFOS}", max(due, now)))

    def _evaluated(self, state: State, now: Instant, effects: list[Effect]) -> None:
        """Components say what they found."""
        for name, where, values in self.manager.advance(state.manager, now):
            if name in state.hosted:
                speaker, topic = f"sps/{self.manager.speaker(name, values)}", self.manager.topic(name)
                speaking = state.speaking.setdefault(name, {f"sps/{name}"})
                if speaker not in speaking:  # in the place of the component, which is known
                    speaking.add(speaker)
                    advert = request.Advertise(speaker, topic, state.spaces[name])
                    self._broker(state, Asked(now, advert), effects)
                self._broker(state, Asked(now, request.Publish(speaker, topic, where, values)), effects)
        self._wait(state, now, effects)

    def _alive(self, state: State, now: Instant, effects: list[Effect]) -> None:
        """Say so; and where a host was silent too long, have its components begun nearest to it."""
        effects.append(SetTimer(f"sps/{ALIVE}", now + self.every))
        for name, since in list(state.asked.items()):
            if since <= now - self.every and self.manager.widened(state.manager, name):
                self._listen(state, name, now, effects)
        if state.hosted:
            effects.append(Nearby(Living(self.at, tuple(state.hosted)), "living"))
        for at, (heard, names) in list(state.near.items()):
            if heard < now - 3 * self.every:
                del state.near[at]
                effects.append(Route(self._beside(at), Revive(at, names), "revive"))

    def _beside(self, at: At) -> At:
        """So little beside where a host stood that of those round it one is nearest, also in a grid: all of
        them look for it, and only one is to begin."""
        little = ASIDE * (self.space.high[0] - self.space.low[0])
        return (at[0] + little, at[1] + little * 0.618)
