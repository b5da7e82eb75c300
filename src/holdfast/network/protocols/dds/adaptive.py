"""The two roles of a node in ARQoS: the receiver measures, the publisher obeys.  [D55–D61]"""

from __future__ import annotations

from ....errors import UsageError
from ....model.instant import Instant
from ....model.protocol import CancelTimer, Effect, Peer, Send, SetTimer
from .arqos import ALL, LevelAgreement, SampleAssembly, SentHistory, check_level, is_adaptive
from .member import DdsRole
from .message import (
    PLAIN,
    DataMessage,
    Have,
    Heartbeat,
    LevelRequest,
    Nack,
    SampleName,
    SampleStream,
    Switch,
    cause_of,
)
from .state import AssuredReceiver, DdsState
from .subscriber import DdsSubscriber
from .topic import DdsTopic, TopicId


class DdsReceiver(DdsSubscriber, frozen=True):
    """The receiver's side: counts samples and requests levels."""

    def assure(self, state: DdsState, now: Instant, topic: DdsTopic, percent: float) -> list[Effect]:
        """Set the level of a topic, initially or while samples arrive.  [D55, D61]"""
        readers = state.of_topic(topic.id)
        if not any(reader.wish.condition == PLAIN and not reader.wish.where for reader in readers):
            raise UsageError(
                f"node {self.me} has no subscription to all samples of '{topic.name}'; subscribe first, "
                "without constraints: a share can be counted only of what was to come"
            )
        effects = self._end(state, topic.id)
        state.agreements[topic.id] = LevelAgreement(check_level(percent), state.newer(now))
        effects += self.send_level(state, now, topic.id)
        return [*effects, *self.next_phase(state, now, topic.id)] if is_adaptive(percent) else effects

    def end_unused_agreements(self, state: DdsState, now: Instant) -> list[Effect]:
        """End agreements whose topic has no reader any more, and inform the publishers."""
        effects: list[Effect] = []
        for topic in [t for t in state.agreements if not any(True for _ in state.of_topic(t))]:
            effects += self._end(state, topic)
            nothing = LevelRequest(topic, 0.0, state.newer(now))
            publishers = self.deployment.publishers_of(topic)
            effects += [Send(publisher, nothing, cause_of(nothing)) for publisher in publishers]
        return effects

    def _end(self, state: DdsState, topic: TopicId) -> list[Effect]:
        """End the agreement of a topic: switch reliable publishers back and drop what was assembled."""
        effects: list[Effect] = [CancelTimer(f"adaptive/{topic}"), CancelTimer(f"level/{topic}")]
        for key in [key for key in state.assemblies if key[1].topic == topic]:
            del state.assemblies[key]
        if (agreement := state.agreements.pop(topic, None)) is not None and is_adaptive(agreement.percent):
            reliable = [origin for origin, mode in agreement.reliable.items() if mode]
            effects += [self._switch_order(state, topic, origin, False) for origin in reliable]
        return effects

    def _switch_order(self, state: DdsState, topic: TopicId, origin: Peer, reliable: bool) -> Send:
        """Return a SWITCH message, addressed to the RN if samples go through it.  [D57]"""
        order = Switch(topic, origin, self.me, reliable)
        return Send(self.rendezvous(state, topic) if self.mode.brokered else origin, order, cause_of(order))

    def send_level(self, state: DdsState, now: Instant, topic: TopicId) -> list[Effect]:
        """Send the level to all publishers, repeated as often as a subscription."""
        agreement, terms = state.agreements[topic], self.deployment.discovery
        agreement.times_sent += 1
        asked = LevelRequest(topic, agreement.percent, agreement.version)
        publishers = self.deployment.publishers_of(topic)
        effects: list[Effect] = [Send(publisher, asked, cause_of(asked)) for publisher in publishers]
        if agreement.times_sent < terms.repeats:
            effects.append(SetTimer(f"level/{topic}", now + terms.every))
        return effects

    def next_phase(self, state: DdsState, now: Instant, topic: TopicId) -> list[Effect]:
        """Enter the next phase: round, assurance interval, pause, and so on.  [D56, D58]"""
        agreement, terms = state.agreements[topic], self.deployment.adaptive
        effects: list[Effect] = []
        match agreement.phase:
            case "pause":
                agreement.phase, length = "round", terms.round
            case "round":
                agreement.close()
                agreement.phase, length = "assurance", terms.assurance
            case "assurance":
                for origin, reliable in agreement.orders(now, terms.margin):
                    effects.append(self._switch_order(state, topic, origin, reliable))
                agreement.phase, length = "pause", terms.pause
        return [*effects, SetTimer(f"adaptive/{topic}", now + length)]

    def on_data(self, state: DdsState, data: DataMessage) -> list[Effect]:
        """Count a sample if there is an agreement, and deliver it."""
        stream = data.name.stream
        agreement = state.agreements.get(stream.topic) if stream.condition == PLAIN else None
        if agreement is None:
            return self.deliver(state, data)
        agreement.count(data)
        return (
            self._assemble(state, agreement, data) if agreement.percent == ALL else self.deliver(state, data)
        )

    def _assemble(self, state: DdsState, agreement: LevelAgreement, data: DataMessage) -> list[Effect]:
        """At 100 %: deliver in order; a sample that came too early waits for the missing ones.  [D60]"""
        name = data.name
        assembly = state.assemblies.get((name.origin, name.stream))
        if assembly is None or assembly.session < name.session:
            asked = LevelRequest(name.stream.topic, agreement.percent, agreement.version)
            again = Send(name.origin, asked, cause_of(asked))
            if not data.is_stored:
                return [*self.deliver(state, data), again]
            assembly = state.assemblies[name.origin, name.stream] = SampleAssembly(name.session)
            return [*self._deliver_ready(state, assembly, data), again]
        if name.place <= (assembly.session, assembly.complete):
            return self.deliver(state, data)
        return [*self._deliver_ready(state, assembly, data), *assembly.ask(data)]

    def _deliver_ready(self, state: DdsState, assembly: SampleAssembly, data: DataMessage) -> list[Effect]:
        """Deliver the samples that are complete with a new one."""
        return [effect for each in assembly.add(data) for effect in self.deliver(state, each)]

    def on_heartbeat(self, state: DdsState, now: Instant, beat: Heartbeat) -> list[Effect]:
        """Handle a writer's report of its last sample and of the first one that it has stored."""
        name = beat.name
        agreement = state.agreements.get(name.stream.topic)
        if agreement is None:
            nothing = LevelRequest(name.stream.topic, 0.0, state.newer(now))
            return [Send(name.origin, nothing, cause_of(nothing))]
        if agreement.percent != ALL:
            return self.send_level(state, now, name.stream.topic)
        key = (name.origin, name.stream)
        assembly = state.assemblies.get(key)
        if assembly is None or name.session > assembly.session:
            assembly = state.assemblies[key] = SampleAssembly(name.session)
        if assembly.session > name.session:
            return []
        delivered = [
            effect for each in assembly.give_up_before(beat.first) for effect in self.deliver(state, each)
        ]
        return [*delivered, *assembly.answer(name)]


class DdsOriginator(DdsRole, frozen=True):
    """The publisher's side: sends at the level that receivers request."""

    def on_level_request(self, state: DdsState, sender: Peer, asked: LevelRequest) -> list[Effect]:
        """Handle the request for a level; at 100 % tell the receiver from which sample on."""
        stream = SampleStream(asked.topic)
        receivers = state.assured_receivers.setdefault(asked.topic, {})
        known = receivers.get(sender)
        if stream not in state.writers or (known is not None and known.version > asked.version):
            return []
        if known is None or known.version < asked.version:
            receivers[sender] = AssuredReceiver(asked.percent, asked.version)
        history = state.histories.setdefault(asked.topic, SentHistory(stream))
        if asked.percent < ALL:
            history.remove_receiver(sender)
            if not history.since:
                del state.histories[asked.topic]
            return []
        last = self._last(state, stream)
        if sender not in history.since:
            history.add_receiver(sender, last.sequence)
        return [history.heartbeat(sender, last)]

    def _last(self, state: DdsState, stream: SampleStream) -> SampleName:
        """Return the name of the last accepted sample."""
        return SampleName(self.me, stream, state.session, state.writers[stream].sequence)

    def on_switch(self, state: DdsState, order: Switch) -> list[Effect]:
        """Handle SWITCH: the RN records it in its table, the publisher sets its bit.  [D57]"""
        if self.mode.brokered and (rn := state.rendezvous.get(order.topic)) is not None:
            rn.registry.reliable_orders[order.receiver, order.origin] = order.reliable
        if order.origin != self.me:
            return [Send(order.origin, order, cause_of(order))] if self.mode.brokered else []
        if order.topic in state.subscribers:
            state.subscribers[order.topic].reliable_orders[order.receiver, self.me] = order.reliable
        if (receiver := state.assured_receivers.get(order.topic, {}).get(order.receiver)) is not None:
            receiver.reliable = order.reliable
        return []

    def on_timer(self, state: DdsState, now: Instant, topic: TopicId) -> list[Effect]:
        """Handle the timeout of stored samples."""
        if (history := state.histories.get(topic)) is None:
            return []
        last = self._last(state, history.stream)
        effects = history.send_heartbeats(now, last, self.deployment.reliable, state.counted)
        if not history.since:
            del state.histories[topic]
        return effects

    def on_have(self, state: DdsState, sender: Peer, have: Have) -> list[Effect]:
        """Record that a receiver has everything up to a sample."""
        history = state.histories.get(have.name.stream.topic)
        if history is not None and have.name.session == state.session:
            history.confirm(sender, have.name.sequence)
        return []

    def on_nack(self, state: DdsState, sender: Peer, asked: Nack) -> list[Effect]:
        """Handle NACK: send the samples that a receiver misses again.  [D60]"""
        history = state.histories.get(asked.stream.topic)
        if history is None or asked.session != state.session:
            return []
        return history.resend(sender, asked.missing, state.counted)
