"""A node of the DDS family as a protocol machine: publisher, subscriber, rendezvous node, or all at once.

It only dispatches inputs to the roles of the node.  [D1–D3]
"""

from __future__ import annotations

from collections import deque
from random import Random
from typing import assert_never

from ....model.instant import Instant
from ....model.protocol import Asked, Effect, Fired, Input, Peer, Received, Send, Started
from . import message, request
from .adaptive import DdsOriginator, DdsReceiver
from .broker import DdsBroker
from .member import DdsRole
from .message import MESSAGES, DataMessage, DdsMessage, SampleStream
from .publisher import DdsPublisher
from .rtdds import answer
from .state import DdsState
from .topic import DdsTopic

Adaptation = message.LevelRequest | message.Switch | message.Have | message.Nack | message.Heartbeat
Rotation = message.EnergyUpdate | message.Role | message.NewRound | message.TableHandover | message.DdsTaken


class DdsParticipant(DdsRole, frozen=True):
    """The middleware of one node."""

    def initial(self) -> DdsState:
        """Return the state before the first input."""
        return DdsState()

    def handle(self, state: DdsState, given: Input) -> tuple[DdsState, list[Effect]]:
        """Handle one input; messages of a node to itself are handled at once, without the radio."""
        effects: list[Effect] = []
        waiting = deque(self._dispatch(state, given))
        while waiting:
            effect = waiting.popleft()
            if isinstance(effect, Send) and effect.to == self.me:
                waiting.extend(self._on_message(state, given.now, self.me, effect.message))
            else:
                effects.append(effect)
        return state, effects

    def _dispatch(self, state: DdsState, given: Input) -> list[Effect]:
        """Dispatch an input."""
        match given:
            case Started(now, seed):
                state.session = now
                state.chance = Random(f"{self.me} {seed}")
                return self.broker.start(state, now)
            case Asked(now, asked):
                return self._on_request(state, now, asked)
            case Received(now, sender, message):
                return self._on_message(state, now, sender, message)
            case Fired(now, timer):
                kind, _, about = timer.partition("/")
                return self._on_timer(state, now, kind, about)
        return []

    # The parts of a node.

    @property
    def publisher(self) -> DdsPublisher:
        """The node's role as publisher."""
        return DdsPublisher(self.deployment, self.me)

    @property
    def broker(self) -> DdsBroker:
        """The node's role as rendezvous node."""
        return DdsBroker(self.deployment, self.me)

    @property
    def receiver(self) -> DdsReceiver:
        """The node's role as subscriber."""
        return DdsReceiver(self.deployment, self.me)

    @property
    def originator(self) -> DdsOriginator:
        """The node's role as publisher in ARQoS."""
        return DdsOriginator(self.deployment, self.me)

    def _on_request(self, state: DdsState, now: Instant, asked: request.DdsRequest) -> list[Effect]:
        """Dispatch a request of the application."""
        named = self.deployment.topics.by_its_name
        match asked:
            case request.DdsPublishRequest(topic, values):
                return self.publisher.publish(state, now, named(topic), values)
            case request.DdsAdvertiseRequest(topic):
                return self.publisher.advertise(state, named(topic))
            case request.DdsSubscribeRequest():
                return self.receiver.subscribe(state, now, asked)
            case request.DdsUnsubscribeRequest(name):
                ended = self.receiver.unsubscribe(state, now, name)
                return [*ended, *self.receiver.end_unused_agreements(state, now)]
            case request.AssureRequest(topic, percent):
                return self.receiver.assure(state, now, named(topic), percent)
            case request.ResidualEnergy(joules):
                return self.rotation.report_energy(state, now, joules) if self.mode.rotates else []
        assert_never(asked)

    def _on_message(self, state: DdsState, now: Instant, sender: Peer, given: DdsMessage) -> list[Effect]:
        """Dispatch a message of another node."""
        if not isinstance(given, MESSAGES) or self._topic_of(given) is None:
            state.counted["not understood"] += 1
            return []
        match given:
            case DataMessage():
                return self._on_data(state, now, sender, given)
            case message.SampleAck():
                return self._on_ack(state, now, sender, given)
            case message.DdsSubscribe() | message.DdsUnsubscribe():
                if self.mode.asks == "everybody":
                    return self.publisher.on_subscription(state, now, given)
                return self.broker.on_subscription(state, now, given)
            case message.DdsNotification():
                return self.publisher.on_notification(state, now, sender, given)
            case message.Recognition():
                return self.broker.on_recognised(state, sender, given)
            case message.Demand():
                return self.publisher.on_demand(state, given)
        return self._on_adaptation(state, now, sender, given)

    def _on_adaptation(
        self, state: DdsState, now: Instant, sender: Peer, given: Adaptation | Rotation
    ) -> list[Effect]:
        """Dispatch a message of ARQoS."""
        match given:
            case message.LevelRequest():
                return self.originator.on_level_request(state, sender, given)
            case message.Switch():
                return self.originator.on_switch(state, given)
            case message.Have():
                return self.originator.on_have(state, sender, given)
            case message.Nack():
                return self.originator.on_nack(state, sender, given)
            case message.Heartbeat():
                return self.receiver.on_heartbeat(state, now, given)
        return self._on_rotation(state, now, sender, given)

    def _on_rotation(self, state: DdsState, now: Instant, sender: Peer, given: Rotation) -> list[Effect]:
        """Dispatch a message of EATDDS."""
        if not self.mode.rotates and isinstance(given, message.Role) and given.fresh:
            return self.receiver.on_call(state, now, given.topic, given.term)
        if not self.mode.rotates:
            state.counted["not understood"] += 1
            return []
        match given:
            case message.EnergyUpdate():
                return self.rotation.on_energy(state, now, given)
            case message.Role():
                return self.rotation.on_role(state, now, sender, given)
            case message.NewRound():
                return self.rotation.on_round(state, given.topic, now)
            case message.TableHandover():
                return self.rotation.on_handover(state, now, sender, given)
            case message.DdsTaken():
                return self.rotation.on_taken(state, now, given)
        assert_never(given)

    def _on_data(self, state: DdsState, now: Instant, sender: Peer, data: DataMessage) -> list[Effect]:
        """Handle a sample: the RN forwards it; a reader delivers and then acknowledges it."""
        terms = self.deployment.reliable
        if self.mode.brokered and not data.forwarded:
            return self.broker.on_data(state, now, data)
        if self.receiver.is_bound(state, data):
            return [*self.receiver.on_data(state, data), *answer(data, sender, terms)]
        return [*self.receiver.restate(state, now, data.name.stream.topic), *answer(data, sender, terms)]

    def _on_ack(self, state: DdsState, now: Instant, sender: Peer, ack: message.SampleAck) -> list[Effect]:
        """Handle an ACK: from a subscriber at the RN, from the RN at a publisher, or directly between the
        two."""
        if self.mode.brokered and not ack.complete:
            return self.broker.on_ack(state, now, sender, ack)
        return self.publisher.on_ack(state, now, sender, ack)

    def _on_timer(self, state: DdsState, now: Instant, kind: str, about: str) -> list[Effect]:
        """Dispatch a timer."""
        match kind:
            case "rto":
                topic, _, condition = about.partition("/")
                return self.publisher.on_timeout(state, now, SampleStream(int(topic), condition))
            case "slot":
                return self.publisher.on_slot(state, now)
            case "tell":
                return self.broker.notify_next(state, now, int(about))
            case "notify":
                return self.broker.notify_again(state, now, int(about))
            case "call":
                return self.broker.call(state, now, int(about))
            case "subscribe":
                return self.receiver.send_subscription(state, now, int(about))
            case "level":
                return self.receiver.send_level(state, now, int(about))
            case "adaptive":
                return self.receiver.next_phase(state, now, int(about))
            case "heartbeat":
                return self.originator.on_timer(state, now, int(about))
        return self.rotation.on_timer(state, now, kind, int(about))

    def _topic_of(self, given: DdsMessage) -> DdsTopic | None:
        """Return the topic of a message, or ``None`` if it is unknown."""
        match given:
            case DataMessage(name) | message.SampleAck(name) | message.Heartbeat(name) | message.Have(name):
                id = name.stream.topic
            case message.DdsNotification(wish):
                id = wish.topic
            case message.Nack(stream):
                id = stream.topic
            case _:
                id = given.topic
        return self.deployment.topic(id)
