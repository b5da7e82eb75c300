"""A node of Quad-PubSub as a protocol machine: for its clients, and as logical brokers.  [F21–F43]

It decides nothing itself; it brings what comes to the part that it is for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from random import Random
from typing import assert_never

from ...model.instant import Instant
from ...model.protocol import Asked, Effect, Fired, Input, Received, Route, SetTimer, Started
from ...model.space import Point
from . import message, request
from .deployment import Deployment
from .forwarding import Forwarding
from .hosting import Hosting
from .message import MESSAGES, At, Message
from .state import State
from .tree import Scope


@dataclass(frozen=True)
class Broker:
    """The event broker of a node that stands at a point of the deployment's space."""

    deployment: Deployment
    place: Point

    def __post_init__(self) -> None:
        self.deployment.tree.inside(self.place)

    @property
    def at(self) -> At:
        return (float(self.place[0]), float(self.place[1]))

    @property
    def forwarding(self) -> Forwarding:
        return Forwarding(self.deployment, self.at)

    @property
    def hosting(self) -> Hosting:
        return Hosting(self.deployment, self.at)

    def initial(self) -> State:
        return State()

    def handle(self, state: State, given: Input) -> tuple[State, list[Effect]]:
        """What a node says to itself it hears at once, without the network."""
        effects: list[Effect] = []
        waiting = deque(self._take(state, given))
        while waiting:
            effect = waiting.popleft()
            if isinstance(effect, Route) and effect.to == self.at and self._is(state, effect.message):
                waiting.extend(self._received(state, effect.message, given.now))
            else:
                effects.append(effect)
        return state, effects

    def _is(self, state: State, given: Message) -> bool:
        """Whether a message to this node is for what it is still: brokers may have moved on."""
        return self.deployment.mapping is None or given.to is None or (given.topic, given.to) in state.logical

    def _take(self, state: State, given: Input) -> Iterable[Effect]:
        match given:
            case Started(now, seed):
                state.chance = Random(seed)
                return chain(self._next_renewal(state, now), self._next_attendance(now))
            case Asked(now, asked):
                return self._asked(state, asked, now)
            case Received(now, _, heard):
                return self._received(state, heard, now)
            case Fired(now, timer):
                kind, _, about = timer.partition("/")
                return self._fired(state, kind, about, now)
        return ()

    def _asked(self, state: State, asked: request.Request, now: Instant) -> Iterator[Effect]:
        if self.deployment.attendance is not None:
            state.clients[asked.client] = now
        match asked:
            case request.Publish():
                return self.hosting.publish(state, asked, now)
            case request.Subscribe():
                return self.hosting.subscribe(state, asked, now)
            case request.Unsubscribe():
                return self.hosting.unsubscribe(state, asked, now)
            case request.Advertise():
                return self.hosting.advertise(state, asked, now)
            case request.Unadvertise():
                return self.hosting.unadvertise(state, asked, now)
            case request.Present():
                return iter(())
        assert_never(asked)

    def _received(self, state: State, given: Message, now: Instant) -> Iterator[Effect]:
        """By whom a message is addressed to: this node, or a logical broker.  [F38]"""
        if not isinstance(given, MESSAGES) or given.topic not in self.deployment.topics:
            return iter(())
        return self._for_node(state, given, now) if given.to is None else self._for_broker(state, given, now)

    def _for_node(self, state: State, given: Message, now: Instant) -> Iterator[Effect]:
        match given:
            case message.Publication():
                return self.hosting.notify(state, given, now)
            case message.Subscribe() | message.Unsubscribe():
                return self.hosting.heard(state, given, now)
            case message.Coverage():
                return self.hosting.reported(state, given, now)
        return iter(())

    def _for_broker(self, state: State, given: Message, now: Instant) -> Iterator[Effect]:
        to = given.to
        assert to is not None
        match given:
            case message.Publication():
                return self.forwarding.published(state, given, to)
            case message.Subscribe():
                return self.forwarding.subscribed(state, given, to, now)
            case message.Unsubscribe():
                return self.forwarding.unsubscribed(state, given, to, now)
            case message.Coverage():
                return self.forwarding.covered(state, given, to, now)
            case message.Advertise():
                return self.forwarding.advertised(state, given, now)
            case message.Gone():
                return self.forwarding.gone(state, given, to, now)
        assert_never(given)

    def _fired(self, state: State, kind: str, about: str, now: Instant) -> Iterator[Effect]:
        match kind:
            case "attendance":
                yield from self.hosting.absent(state, now)
                yield from self._next_attendance(now)
            case "renewal":
                yield from self._renewed(state, now)
            case "coverage":
                topic, *numbers = about.rsplit("/", 3)
                role = state.logical.get((topic, Scope(*map(int, numbers))))
                yield from self.forwarding.watch(role, now) if role else ()
            case "covering":
                yield from self.hosting.covering(state, about, now)

    def _renewed(self, state: State, now: Instant) -> Iterator[Effect]:
        yield from self.hosting.renewed(state, now)
        for key, role in list(state.logical.items()):
            yield from self.forwarding.renewed(state, role, now)
            if role.empty and self.deployment.mapping is None:  # with a mapping, roles end by its check
                del state.logical[key]
        yield from self._next_renewal(state, now)

    def _next_attendance(self, now: Instant) -> Iterator[Effect]:
        if self.deployment.attendance is not None:
            yield SetTimer("attendance", now + self.deployment.attendance)

    def _next_renewal(self, state: State, now: Instant) -> Iterator[Effect]:
        if (every := self.deployment.renewal) is not None:
            yield SetTimer("renewal", self.deployment.after(now, every, state.chance))
