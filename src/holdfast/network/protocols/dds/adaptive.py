"""The two roles of a node in ARQoS: the receiver measures and gives orders, the publisher carries them out.
[D55–D61]
"""

from __future__ import annotations

from collections.abc import Iterable

from ....errors import UsageError
from ....model.protocol import CancelTimer, Peer
from .arqos import ALL, LevelAgreement, SampleAssembly, SentHistory, check_level, is_adaptive
from .message import PLAIN, DataMessage, Have, Heartbeat, LevelRequest, Nack, SampleName, SampleStream, Switch
from .publisher import PublisherStep
from .request import AssureRequest, DdsUnsubscribeRequest
from .state import AssuredReceiver
from .subscriber import SubscriberStep
from .topic import TopicId


class ReceiverStep(SubscriberStep):
    """Handles inputs of a receiver: it counts samples and requests levels."""

    def assure(self, asked: AssureRequest) -> None:
        """Set the level of a topic, initially or while samples arrive. [D55, D61]"""
        topic, state = self.deployment.topics.by_its_name(asked.topic), self.state
        readers = state.of_topic(topic.id)
        if not any(reader.wish.condition == PLAIN and not reader.wish.where for reader in readers):
            raise UsageError(
                f"node {self.me} has no subscription to all samples of '{topic.name}'; subscribe first, "
                "without constraints: a share can be counted only of what was to come"
            )
        self._end_agreement(topic.id)
        state.agreements[topic.id] = LevelAgreement(check_level(asked.percent), state.newer(self.now))
        self.send_level(topic.id)
        if is_adaptive(asked.percent):
            self.next_phase(topic.id)

    def unsubscribe(self, asked: DdsUnsubscribeRequest) -> None:
        """End a subscription, and the agreements whose topic has no reader any more."""
        self.remove_readers(asked.name)
        for topic in [topic for topic in self.state.agreements if not self.state.reads(topic)]:
            self._end_agreement(topic)
            nothing = LevelRequest(topic, 0.0, self.state.newer(self.now))
            self.send_to_all(self.deployment.publishers_of(topic), nothing)

    def _end_agreement(self, topic: TopicId) -> None:
        """End the agreement of a topic: switch reliable publishers back and drop incomplete sequences."""
        self.emit(CancelTimer(f"adaptive/{topic}"))
        self.emit(CancelTimer(f"level/{topic}"))
        for key in [key for key in self.state.assemblies if key[1].topic == topic]:
            del self.state.assemblies[key]
        agreement = self.state.agreements.pop(topic, None)
        if agreement is not None and is_adaptive(agreement.percent):
            for origin, is_reliable in agreement.reliable.items():
                if is_reliable:
                    self._switch(topic, origin, False)

    def _switch(self, topic: TopicId, origin: Peer, reliable: bool) -> None:
        """Send a SWITCH message to a publisher, or to the RN if samples go through it. [D57]"""
        to = self.holder(topic).node if self.mode.brokered else origin
        self.send(to, Switch(topic, origin, self.me, reliable))

    def send_level(self, topic: TopicId) -> None:
        """Send the requested level to all publishers. It is repeated as often as a subscription."""
        agreement, terms = self.state.agreements[topic], self.deployment.discovery
        agreement.times_sent += 1
        asked = LevelRequest(topic, agreement.percent, agreement.version)
        self.send_to_all(self.deployment.publishers_of(topic), asked)
        if agreement.times_sent < terms.repeats:
            self.set_timer(f"level/{topic}", terms.every)

    def next_phase(self, topic: TopicId) -> None:
        """Enter the next phase of measurement: round, assurance interval, or pause. [D56, D58]"""
        agreement, terms = self.state.agreements[topic], self.deployment.adaptive
        match agreement.phase:
            case "pause":
                agreement.phase, length = "round", terms.round
            case "round":
                agreement.close()
                agreement.phase, length = "assurance", terms.assurance
            case "assurance":
                for origin, reliable in agreement.orders(self.now, terms.margin):
                    self._switch(topic, origin, reliable)
                agreement.phase, length = "pause", terms.pause
        self.set_timer(f"adaptive/{topic}", length)

    def on_reader_data(self, data: DataMessage) -> None:
        """Count a sample if its topic has an agreement, and deliver it."""
        stream = data.name.stream
        agreement = self.state.agreements.get(stream.topic) if stream.condition == PLAIN else None
        if agreement is not None:
            agreement.count(data)
        if agreement is not None and agreement.percent == ALL:
            self._assemble(agreement, data)
        else:
            self.deliver(data)

    def _assemble(self, agreement: LevelAgreement, data: DataMessage) -> None:
        """Deliver samples in order at 100 %. A sample that is too early waits for the missing ones. [D60]"""
        name, assemblies = data.name, self.state.assemblies
        assembly = assemblies.get((name.origin, name.stream))
        if assembly is None or assembly.session < name.session:
            if data.is_stored:
                assembly = assemblies[name.origin, name.stream] = SampleAssembly(name.session)
                self._deliver_all(assembly.add(data))
            else:
                self.deliver(data)
            self.send(name.origin, LevelRequest(name.stream.topic, agreement.percent, agreement.version))
        elif name.place <= (assembly.session, assembly.complete):
            self.deliver(data)
        else:
            self._deliver_all(assembly.add(data))
            self.effects += assembly.ask(data)

    def _deliver_all(self, ready: Iterable[DataMessage]) -> None:
        """Deliver samples that are now in sequence."""
        for data in ready:
            self.deliver(data)

    def on_heartbeat(self, _sender: Peer, beat: Heartbeat) -> None:
        """Handle a writer's report of its last sample and of the first sample that it has stored."""
        name, state = beat.name, self.state
        topic, key = name.stream.topic, (name.origin, name.stream)
        agreement = state.agreements.get(topic)
        if agreement is None:
            self.send(name.origin, LevelRequest(topic, 0.0, state.newer(self.now)))
            return
        if agreement.percent != ALL:
            self.send_level(topic)
            return
        assembly = state.assemblies.get(key)
        if assembly is None or name.session > assembly.session:
            assembly = state.assemblies[key] = SampleAssembly(name.session)
        if assembly.session == name.session:
            self._deliver_all(assembly.give_up_before(beat.first))
            self.effects += assembly.answer(name)


class OriginatorStep(PublisherStep):
    """Handles inputs of a publisher, which sends at the level that receivers request."""

    def on_level_request(self, sender: Peer, asked: LevelRequest) -> None:
        """Handle the request for a level. At 100 %, inform the receiver of the first sample that it
        will get.
        """
        state, stream = self.state, SampleStream(asked.topic)
        receivers = state.assured_receivers.setdefault(asked.topic, {})
        known = receivers.get(sender)
        if stream not in state.writers or (known is not None and known.version > asked.version):
            return
        if known is None or known.version < asked.version:
            receivers[sender] = AssuredReceiver(asked.percent, asked.version)
        history = state.histories.setdefault(asked.topic, SentHistory(stream))
        if asked.percent < ALL:
            history.remove_receiver(sender)
            if not history.since:
                del state.histories[asked.topic]
            return
        last = self._last_sample(stream)
        if sender not in history.since:
            history.add_receiver(sender, last.sequence)
        self.emit(history.heartbeat(sender, last))

    def _last_sample(self, stream: SampleStream) -> SampleName:
        """Return the name of the last accepted sample of a stream."""
        return SampleName(self.me, stream, self.state.session, self.state.writers[stream].sequence)

    def on_switch(self, _sender: Peer, order: Switch) -> None:
        """Handle SWITCH: the RN records the order in its table, the publisher sets its bit. [D57]"""
        state, topic, receiver = self.state, order.topic, order.receiver
        if self.mode.brokered and (rn := state.rendezvous.get(topic)) is not None:
            rn.registry.reliable_orders[receiver, order.origin] = order.reliable
        if order.origin != self.me:
            if self.mode.brokered:
                self.send(order.origin, order)
            return
        if topic in state.subscribers:
            state.subscribers[topic].reliable_orders[receiver, self.me] = order.reliable
        if (assured := state.assured_receivers.get(topic, {}).get(receiver)) is not None:
            assured.reliable = order.reliable

    def send_heartbeats(self, topic: TopicId) -> None:
        """Send heartbeats after the timeout of stored samples."""
        state, history = self.state, self.state.histories.get(topic)
        if history is None:
            return
        last = self._last_sample(history.stream)
        self.effects += history.send_heartbeats(self.now, last, self.deployment.reliable, state.counted)
        if not history.since:
            del state.histories[topic]

    def on_have(self, sender: Peer, have: Have) -> None:
        """Record that a receiver has all samples up to a number."""
        history = self.state.histories.get(have.name.stream.topic)
        if history is not None and have.name.session == self.state.session:
            history.confirm(sender, have.name.sequence)

    def on_nack(self, sender: Peer, asked: Nack) -> None:
        """Handle NACK: send the samples again that a receiver misses. [D60]"""
        history = self.state.histories.get(asked.stream.topic)
        if history is not None and asked.session == self.state.session:
            self.effects += history.resend(sender, asked.missing, self.state.counted)
