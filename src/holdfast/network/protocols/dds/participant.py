"""The machine of a node of the DDS family: publisher, subscriber, rendezvous node, or all at once. [D1–D3]

This module only dispatches inputs to the roles of the node. To add a message, a request or a timer, add it to
the tables below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from ....model.protocol import Asked, Effect, Fired, Input, Peer, Received, Send, Started
from . import message, request
from .adaptive import OriginatorStep, ReceiverStep
from .broker import BrokerStep
from .deployment import DdsDeployment
from .message import MESSAGES, DdsMessage, SampleStream, topic_of
from .rtdds import answer
from .state import DdsState


@dataclass(frozen=True)
class DdsParticipant:
    """The middleware of one node."""

    deployment: DdsDeployment
    me: Peer

    def initial(self) -> DdsState:
        """Return the state of the machine before its first input."""
        return DdsState()

    def handle(self, state: DdsState, given: Input) -> tuple[DdsState, list[Effect]]:
        """Handle one input. The node's messages to itself are handled at once, without the radio."""
        step = _Step(self.deployment, self.me, state, given.now)
        step.on_input(given)
        effects: list[Effect] = []
        while step.effects:
            effect = step.effects.popleft()
            if isinstance(effect, Send) and effect.to == self.me:
                step.on_message(self.me, effect.message)
            else:
                effects.append(effect)
        return state, effects


class _Step(ReceiverStep, OriginatorStep, BrokerStep):
    """Handles one input of a node in all its roles."""

    def on_input(self, given: Input) -> None:
        """Dispatch an input to the role that handles it."""
        match given:
            case Started(now, seed):
                self.state.session = now
                self.state.chance = Random(f"{self.me} {seed}")
                self.start()
            case Asked(_, asked):
                REQUESTS[type(asked)](self, asked)
            case Received(_, sender, received):
                self.on_message(sender, received)
            case Fired(_, "slot"):
                self.on_slot()
            case Fired(_, timer):
                kind, _, about = timer.partition("/")
                self._on_timer(kind, about)

    def on_message(self, sender: Peer, given: DdsMessage) -> None:
        """Dispatch a message of another node."""
        if not isinstance(given, MESSAGES) or topic_of(given) not in self.deployment.topics.by_id:
            self.state.counted["not understood"] += 1
        elif not isinstance(given, ROTATION) or self.mode.rotates:
            HANDLERS[type(given)](self, sender, given)
        elif isinstance(given, message.Role) and given.fresh:
            self.on_call(given.topic, given.term)
        else:
            self.state.counted["not understood"] += 1

    def on_subscription(self, _sender: Peer, wish: message.DdsSubscribe | message.DdsUnsubscribe) -> None:
        """Handle a subscription or its end, at a publisher or at the RN."""
        if self.mode.asks == "everybody":
            self.on_own_subscription(wish)
        else:
            self.on_rn_subscription(wish)

    def on_data(self, sender: Peer, data: message.DataMessage) -> None:
        """Handle a sample: the RN forwards it; a reader delivers it and then acknowledges it."""
        if self.mode.brokered and not data.forwarded:
            self.on_rn_data(data)
            return
        if self.is_bound(data):
            self.on_reader_data(data)
        else:
            self.restate(data.name.stream.topic)
        self.effects += answer(data, sender, self.deployment.reliable)

    def on_ack(self, sender: Peer, ack: message.SampleAck) -> None:
        """Handle an ACK: from a subscriber at the RN, from the RN at a publisher, or directly between the
        two.
        """
        if self.mode.brokered and not ack.complete:
            self.on_rn_ack(sender, ack)
        else:
            self.on_writer_ack(sender, ack)

    def _on_timer(self, kind: str, about: str) -> None:
        """Dispatch a timer that is named after a topic or a reader."""
        if kind == "rto":
            topic, _, condition = about.partition("/")
            self.on_timeout(SampleStream(int(topic), condition))
        elif kind in TIMERS:
            TIMERS[kind](self, int(about))
        else:
            self.on_rotation_timer(kind, int(about))


REQUESTS: Mapping[type, Callable[[_Step, Any], None]] = {
    request.DdsPublishRequest: _Step.publish,
    request.DdsAdvertiseRequest: _Step.advertise,
    request.DdsSubscribeRequest: _Step.subscribe,
    request.DdsUnsubscribeRequest: _Step.unsubscribe,
    request.AssureRequest: _Step.assure,
    request.ResidualEnergy: _Step.report_energy,
}
HANDLERS: Mapping[type, Callable[[_Step, Peer, Any], None]] = {
    message.DataMessage: _Step.on_data,
    message.SampleAck: _Step.on_ack,
    message.DdsSubscribe: _Step.on_subscription,
    message.DdsUnsubscribe: _Step.on_subscription,
    message.DdsNotification: _Step.on_notification,
    message.Recognition: _Step.on_recognised,
    message.Demand: _Step.on_demand,
    message.LevelRequest: _Step.on_level_request,
    message.Switch: _Step.on_switch,
    message.Have: _Step.on_have,
    message.Nack: _Step.on_nack,
    message.Heartbeat: _Step.on_heartbeat,
    message.EnergyUpdate: _Step.on_energy,
    message.Role: _Step.on_role,
    message.NewRound: _Step.on_new_round,
    message.TableHandover: _Step.on_handover,
    message.DdsTaken: _Step.on_taken,
}
ROTATION = message.EnergyUpdate, message.Role, message.NewRound, message.TableHandover, message.DdsTaken
"""Messages of EATDDS only. The exception is a fresh ``Role``, with which an RN of DefTDDS calls for
subscriptions.
"""
TIMERS: Mapping[str, Callable[[_Step, int], None]] = {
    "tell": _Step.notify_next,
    "notify": _Step.notify_again,
    "call": _Step.call,
    "subscribe": _Step.send_subscription,
    "level": _Step.send_level,
    "adaptive": _Step.next_phase,
    "heartbeat": _Step.send_heartbeats,
}
