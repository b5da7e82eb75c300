"""The role of publisher: its writers, the demand of subscribers, and the conditions that it evaluates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ....errors import UsageError
from ....model.event import Status, Value
from ....model.instant import Instant
from ....model.protocol import Deliver, Peer, SetTimer
from . import rtdds
from .eatdds import RotationStep
from .level import is_reliable
from .message import (
    PLAIN,
    DataMessage,
    DdsNotification,
    DdsSubscribe,
    DdsUnsubscribe,
    Demand,
    Recognition,
    SampleAck,
    SampleName,
    SampleStream,
)
from .registry import SubscriptionTable, default_demand, digest, must_confirm
from .request import (
    DdsAdvertiseRequest,
    DdsPublishRequest,
    SampleAccepted,
    SampleGivenUp,
    SampleRefused,
    SampleUnread,
)
from .topic import DdsTopic


class WrittenSample(NamedTuple):
    """A sample to be written: its values, and the transition that it means for a condition."""

    values: Mapping[str, Value]
    time: Instant
    reliable: bool
    status: Status = "atomic"
    since: Instant | None = None
    turns: bool = False


class PublisherStep(RotationStep):
    """Handles inputs of a publisher: ``advertise()``, ``publish()``, and answers to its messages. [D1]"""

    def advertise(self, asked: DdsAdvertiseRequest) -> None:
        """Create a writer for a topic.  [D7]"""
        topic = self.deployment.topics.by_its_name(asked.topic)
        publishers = self.deployment.publishers_of(topic.id)
        if self.me not in publishers:
            raise UsageError(
                f"node {self.me} is no publisher of '{topic.name}'; publishers are known before deployment: "
                f"{', '.join(publishers) or 'it has none'}"
            )
        stream = SampleStream(topic.id)
        self.state.writers.setdefault(stream, rtdds.ReliableWriter(stream))
        self.state.subscribers.setdefault(topic.id, SubscriptionTable(topic))

    def publish(self, asked: DdsPublishRequest) -> None:
        """Accept a sample of the application. Send it now or, with IFS, in the node's next slot. [D32]"""
        topic, state = self.deployment.topics.by_its_name(asked.topic), self.state
        stream = SampleStream(topic.id)
        if stream not in state.writers:
            raise UsageError(f"node {self.me} has no writer for '{topic.name}'; advertise the topic first")
        values = topic.complete(asked.values)
        state.counted["published"] += 1
        schedule = self.deployment.schedule
        if schedule is None or (at := schedule.next(self.me, self.now)) == self.now:
            self._write(topic, values, self.now)
        elif len(state.waiting_for_slot) >= self.deployment.reliable.ring:
            self._refuse(stream, values, self.now)
        else:
            state.waiting_for_slot.append((topic.id, values, self.now))
            self.emit(SetTimer("slot", at))

    def on_slot(self) -> None:
        """Write the samples that wait for the node's slot."""
        waiting = list(self.state.waiting_for_slot)
        self.state.waiting_for_slot.clear()
        for topic, values, time in waiting:
            self._write(self.deployment.topics.by_id[topic], values, time)

    def _write(self, topic: DdsTopic, values: Mapping[str, Value], time: Instant) -> None:
        """Offer a sample to the writers for subscribers of samples, and for subscribers of conditions that it
        changes.
        """
        state, known, demand = self.state, self.deployment.conditions, self._demand(topic)
        deciding = topic.transition_conditions if demand.turns else ()
        state.placed_conditions.place(topic.id, {*demand.conditions, *deciding}, known)
        changes = list(state.placed_conditions.react(topic, self.me, values, time, known))
        for condition, change in changes:
            if condition in demand.conditions:
                sample = WrittenSample(values, time, True, change.status, change.since)
                self._offer(SampleStream(topic.id, condition), sample)
        if not demand.plain:
            state.counted["filtered at the source"] += 1
            return
        ordered = any(receiver.reliable for receiver in state.assured_receivers.get(topic.id, {}).values())
        turns = demand.turns and any(condition in topic.transition_conditions for condition, _ in changes)
        reliable = ordered or turns or is_reliable(demand.level, values.get(topic.reading), turns)
        self._offer(SampleStream(topic.id), WrittenSample(values, time, reliable, turns=turns))

    def _offer(self, stream: SampleStream, sample: WrittenSample) -> None:
        """Pass a classified sample to its writer, which accepts or drops it.  [D19, D24]"""
        state, terms = self.state, self.deployment.reliable
        writer = state.writers.setdefault(stream, rtdds.ReliableWriter(stream))
        history = state.histories.get(stream.topic) if stream.condition == PLAIN else None
        crowded = history is not None and len(history.sent) >= terms.ring
        full = not writer.has_room(sample.reliable, terms)
        dropped = writer.give_way() if full and sample.turns else None
        if crowded or (full and dropped is None):
            self._refuse(stream, sample.values, sample.time)
            return
        writer.sequence += 1
        topic = self.deployment.topics.by_id[stream.topic]
        demand = digest(self._demand(topic)) if self.mode.brokered else 0
        name, is_stored = SampleName(self.me, stream, state.session, writer.sequence), history is not None
        data = DataMessage(name, is_stored=is_stored, demand=demand, **sample._asdict())
        state.counted["accepted"] += 1
        state.counted["given up"] += dropped is not None
        if dropped is not None:
            self.emit(Deliver(SampleGivenUp(dropped.name)))
        self.emit(Deliver(SampleAccepted(data.name, sample.values, sample.time, sample.reliable)))
        if history is not None:
            self.effects += history.store(data, self.now, terms)
        self.effects += rtdds.publish(writer, data, self._sending_parameters(stream))

    def _refuse(self, stream: SampleStream, values: Mapping[str, Value], time: Instant) -> None:
        """Report a sample that the full ring did not accept."""
        self.state.counted["overflowed"] += 1
        self.emit(Deliver(SampleRefused(stream, values, time)))

    def on_writer_ack(self, sender: Peer, ack: SampleAck) -> None:
        """Handle an ACK for a writer: from the RN for all subscribers, or from one subscriber."""
        writer = self.state.writers.get(ack.name.stream)
        if writer is None or ack.complete != self.mode.brokered:
            return
        if not ack.complete:
            self.state.subscribers[ack.name.stream.topic].record_sign(sender, self.now)
        released = rtdds.on_ack(writer, ack.name, sender, self._sending_parameters(writer.stream))
        if ack.unread and released:
            self.state.counted["unread"] += 1
            self.emit(Deliver(SampleUnread(ack.name)))
        self.effects += released

    def on_timeout(self, stream: SampleStream) -> None:
        """Handle the retransmission timeout of a stream: send the head of its ring again."""
        if not self.mode.brokered:
            list(self.remove_lapsed(self.state.subscribers[stream.topic]))
        self.effects += rtdds.on_timeout(self.state.writers[stream], self._sending_parameters(stream))

    def _sending_parameters(self, stream: SampleStream) -> rtdds.SendingParameters:
        """Return the parameters with which a writer sends now."""

        def to_rendezvous(data: DataMessage) -> Mapping[Peer, bool]:
            return {self.holder(stream.topic).node: data.reliable}

        brokered, counted = self.mode.brokered, self.state.counted
        route = to_rendezvous if brokered else self.state.subscribers[stream.topic].recipients
        return rtdds.SendingParameters(route, self.now, self.deployment.reliable, counted, brokered)

    def _demand(self, topic: DdsTopic) -> Demand:
        """Return the demand of subscribers that this node knows."""
        if not self.mode.brokered:
            return self.state.subscribers[topic.id].demand()
        return self.state.demands.get(topic.id, default_demand(topic))

    def on_demand(self, _sender: Peer, demand: Demand) -> None:
        """Record the demand that the RN reports."""
        self.state.demands[demand.topic] = demand

    def on_notification(self, rn: Peer, note: DdsNotification) -> None:
        """Handle a subscription that the RN forwards in HyTDDS. Confirm it if it is reliable."""
        wish = note.wish
        is_new = self.on_own_subscription(wish)
        if isinstance(wish, DdsUnsubscribe) or wish.topic not in self.state.subscribers:
            return
        if must_confirm(wish) and (is_new or note.asks):
            self.send(rn, Recognition(wish.topic, wish.subscriber, wish.reader, wish.version))

    def on_own_subscription(self, wish: DdsSubscribe | DdsUnsubscribe) -> bool:
        """Update the publisher's own table with a subscription, in BLTDDS and HyTDDS; return whether it is
        new. [D40, D43]

        A writer does not wait for the acknowledgement of a subscriber that has left. At the timeout, a sample
        then has no receiver left.
        """
        table = self.state.subscribers.get(wish.topic)
        return table is not None and self.register(table, wish)
