"""A node of the DDS family as a protocol machine: publisher, subscriber, rendezvous node, or all at once.

It decides nothing itself; it brings what comes to the part that it is for.  [D1–D3]
"""

from __future__ import annotations

from collections import deque
from random import Random
from typing import assert_never

from ...model.instant import Instant
from ...model.protocol import Asked, Effect, Fired, Input, Peer, Received, Send, Started
from . import message, request
from .adapting import Originator, Receiver
from .broker import Broker
from .member import Member
from .message import MESSAGES, Data, Message, Stream
from .publisher import Publisher
from .rtdds import answer
from .state import State
from .topic import Topic

Adaptation = message.LevelRequest | message.Switch | message.Have | message.Nack | message.Heartbeat
Rotation = message.Energy | message.Role | message.Round | message.Handover | message.Taken


class Participant(Member, frozen=True):
    """The middleware of one node."""

    def initial(self) -> State:
        return State()

    def handle(self, state: State, given: Input) -> tuple[State, list[Effect]]:
        """What a node says to itself it hears at once, without the radio."""
        effects: list[Effect] = []
        waiting = deque(self._take(state, given))
        while waiting:
            effect = waiting.popleft()
            if isinstance(effect, Send) and effect.to == self.me:
                waiting.extend(self._received(state, given.now, self.me, effect.message))
            else:
                effects.append(effect)
        return state, effects

    def _take(self, state: State, given: Input) -> list[Effect]:
        match given:
            case Started(now, seed):
                state.session = now
                state.chance = Random(f"{self.me} {seed}")
                return self.broker.started(state, now)
            case Asked(now, asked):
                return self._asked(state, now, asked)
            case Received(now, sender, message):
                return self._received(state, now, sender, message)
            case Fired(now, timer):
                kind, _, about = timer.partition("/")
                return self._fired(state, now, kind, about)
        return []

    # The parts of a node.

    @property
    def publisher(self) -> Publisher:
        return Publisher(self.deployment, self.me)

    @property
    def broker(self) -> Broker:
        return Broker(self.deployment, self.me)

    @property
    def receiver(self) -> Receiver:
        return Receiver(self.deployment, self.me)

    @property
    def originator(self) -> Originator:
        return Originator(self.deployment, self.me)

    def _asked(self, state: State, now: Instant, asked: request.Request) -> list[Effect]:
        named = self.deployment.topics.named
        match asked:
            case request.Publish(topic, values):
                return self.publisher.publish(state, now, named(topic), values)
            case request.Advertise(topic):
                return self.publisher.advertise(state, named(topic))
            case request.Subscribe():
                return self.receiver.subscribe(state, now, asked)
            case request.Unsubscribe(name):
                ended = self.receiver.unsubscribe(state, now, name)
                return [*ended, *self.receiver.unassured(state, now)]
            case request.Assure(topic, percent):
                return self.receiver.assure(state, now, named(topic), percent)
            case request.Residual(joules):
                return self.rotation.measured(state, now, joules) if self.mode.rotates else []
        assert_never(asked)

    def _received(self, state: State, now: Instant, sender: Peer, given: Message) -> list[Effect]:
        if not isinstance(given, MESSAGES) or self._about(given) is None:
            state.counted["not understood"] += 1
            return []
        match given:
            case Data():
                return self._data(state, now, sender, given)
            case message.Ack():
                return self._ack(state, now, sender, given)
            case message.Subscribe() | message.Unsubscribe():
                if self.mode.asks == "everybody":
                    return self.publisher.registered(state, now, given)
                return self.broker.wished(state, now, given)
            case message.Notification():
                return self.publisher.notified(state, now, sender, given)
            case message.Recognised():
                return self.broker.recognised(state, sender, given)
            case message.Demand():
                return self.publisher.demanded(state, given)
        return self._adapts(state, now, sender, given)

    def _adapts(self, state: State, now: Instant, sender: Peer, given: Adaptation | Rotation) -> list[Effect]:
        match given:
            case message.LevelRequest():
                return self.originator.leveled(state, sender, given)
            case message.Switch():
                return self.originator.switched(state, given)
            case message.Have():
                return self.originator.confirmed(state, sender, given)
            case message.Nack():
                return self.originator.repair(state, sender, given)
            case message.Heartbeat():
                return self.receiver.heartbeat(state, now, given)
        return self._rotates(state, now, sender, given)

    def _rotates(self, state: State, now: Instant, sender: Peer, given: Rotation) -> list[Effect]:
        if not self.mode.rotates and isinstance(given, message.Role) and given.fresh:
            return self.receiver.called(state, now, given.topic, given.term)
        if not self.mode.rotates:
            state.counted["not understood"] += 1
            return []
        match given:
            case message.Energy():
                return self.rotation.energy(state, now, given)
            case message.Role():
                return self.rotation.role(state, now, sender, given)
            case message.Round():
                return self.rotation.round_begun(state, given.topic, now)
            case message.Handover():
                return self.rotation.handover(state, now, sender, given)
            case message.Taken():
                return self.rotation.taken(state, now, given)
        assert_never(given)

    def _data(self, state: State, now: Instant, sender: Peer, data: Data) -> list[Effect]:
        """To the RN, or to a reader, which delivers it and then acknowledges."""
        terms = self.deployment.reliable
        if self.mode.brokered and not data.forwarded:
            return self.broker.published(state, now, data)
        if self.receiver.is_bound(state, data):
            return [*self.receiver.take(state, data), *answer(data, sender, terms)]
        return [*self.receiver.restate(state, now, data.name.stream.topic), *answer(data, sender, terms)]

    def _ack(self, state: State, now: Instant, sender: Peer, ack: message.Ack) -> list[Effect]:
        """From a subscriber to the RN, from the RN to a publisher, or straight from one to the other."""
        if self.mode.brokered and not ack.complete:
            return self.broker.acknowledged(state, now, sender, ack)
        return self.publisher.acknowledged(state, now, sender, ack)

    def _fired(self, state: State, now: Instant, kind: str, about: str) -> list[Effect]:
        match kind:
            case "rto":
                topic, _, condition = about.partition("/")
                return self.publisher.timed_out(state, now, Stream(int(topic), condition))
            case "slot":
                return self.publisher.slot(state, now)
            case "tell":
                return self.broker.tell(state, now, int(about))
            case "notify":
                return self.broker.notify_again(state, now, int(about))
            case "call":
                return self.broker.call(state, now, int(about))
            case "subscribe":
                return self.receiver.say(state, now, int(about))
            case "level":
                return self.receiver.say_level(state, now, int(about))
            case "adaptive":
                return self.receiver.next_phase(state, now, int(about))
            case "heartbeat":
                return self.originator.beat(state, now, int(about))
        return self.rotation.fired(state, now, kind, int(about))

    def _about(self, given: Message) -> Topic | None:
        """The topic that a message is about, if there is such a one."""
        match given:
            case Data(name) | message.Ack(name) | message.Heartbeat(name) | message.Have(name):
                id = name.stream.topic
            case message.Notification(wish):
                id = wish.topic
            case message.Nack(stream):
                id = stream.topic
            case _:
                id = given.topic
        return self.deployment.topic(id)
