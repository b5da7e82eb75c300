"""A node as publisher: its writers, the demand of subscribers, and the conditions that run here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ....errors import UsageError
from ....model.event import Status, Value
from ....model.instant import Instant
from ....model.protocol import Deliver, Effect, Peer, Send, SetTimer
from . import rtdds
from .level import is_reliable
from .member import DdsRole
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
    cause_of,
)
from .registry import SubscriptionTable, default_demand, digest, must_confirm
from .request import (
    SampleAccepted,
    SampleGivenUp,
    SampleRefused,
    SampleUnread,
    SubscriberLapsed,
    SubscriptionRegistered,
)
from .state import DdsState
from .topic import DdsTopic, TopicId


class WrittenSample(NamedTuple):
    """A sample to be written: values, and the transition that they mean for a condition."""

    values: Mapping[str, Value]
    time: Instant
    reliable: bool
    status: Status = "atomic"
    since: Instant | None = None
    turns: bool = False


class DdsPublisher(DdsRole, frozen=True):
    """``advertise()`` and ``publish()``.  [D1]"""

    def advertise(self, state: DdsState, topic: DdsTopic) -> list[Effect]:
        """Create a writer for a topic.  [D7]"""
        if self.me not in self.deployment.publishers_of(topic.id):
            raise UsageError(
                f"node {self.me} is no publisher of '{topic.name}'; publishers are known before deployment: "
                f"{', '.join(self.deployment.publishers_of(topic.id)) or 'it has none'}"
            )
        state.writers.setdefault(SampleStream(topic.id), rtdds.ReliableWriter(SampleStream(topic.id)))
        state.subscribers.setdefault(topic.id, SubscriptionTable(topic))
        return []

    def publish(
        self, state: DdsState, now: Instant, topic: DdsTopic, values: Mapping[str, Value]
    ) -> list[Effect]:
        """Accept a sample of the application: send it now or, with IFS, in the node's next slot.  [D32]"""
        if SampleStream(topic.id) not in state.writers:
            raise UsageError(f"node {self.me} has no writer for '{topic.name}'; advertise the topic first")
        complete_values = topic.complete(values)
        state.counted["published"] += 1
        schedule = self.deployment.schedule
        if schedule is None or (at := schedule.next(self.me, now)) == now:
            return self._write(state, now, topic, complete_values, now)
        if len(state.waiting_for_slot) >= self.deployment.reliable.ring:
            return self._refuse(state, SampleStream(topic.id), complete_values, now)
        state.waiting_for_slot.append((topic.id, complete_values, now))
        return [SetTimer("slot", at)]

    def on_slot(self, state: DdsState, now: Instant) -> list[Effect]:
        """Write the samples that wait for the node's slot."""
        waiting = list(state.waiting_for_slot)
        state.waiting_for_slot.clear()
        return [
            effect
            for topic, values, time in waiting
            for effect in self._write(state, now, self.topic(topic), values, time)
        ]

    def _write(
        self, state: DdsState, now: Instant, topic: DdsTopic, values: Mapping[str, Value], time: Instant
    ) -> list[Effect]:
        """Offer a sample to writers: for subscribers of samples, and for those of conditions that it
        changes."""
        known, demand = self.deployment.conditions, self._demand(state, topic)
        effects: list[Effect] = []
        state.placed_conditions.place(
            topic.id, {*demand.conditions, *(topic.transition_conditions if demand.turns else ())}, known
        )
        changes = list(state.placed_conditions.react(topic, self.me, values, time, known))
        for condition, change in changes:
            if condition in demand.conditions:
                sample = WrittenSample(values, time, True, change.status, change.since)
                effects += self._offer(state, now, SampleStream(topic.id, condition), sample)
        if not demand.plain:
            state.counted["filtered at the source"] += 1
            return effects
        ordered = any(receiver.reliable for receiver in state.assured_receivers.get(topic.id, {}).values())
        turns = demand.turns and any(condition in topic.transition_conditions for condition, _ in changes)
        reliable = ordered or turns or is_reliable(demand.level, values.get(topic.reading), turns)
        sample = WrittenSample(values, time, reliable, turns=turns)
        return [*effects, *self._offer(state, now, SampleStream(topic.id), sample)]

    def _offer(
        self, state: DdsState, now: Instant, stream: SampleStream, sample: WrittenSample
    ) -> list[Effect]:
        """Pass a classified sample to its writer, which accepts or drops it.  [D19, D24]"""
        topic, terms = self.topic(stream.topic), self.deployment.reliable
        writer = state.writers.setdefault(stream, rtdds.ReliableWriter(stream))
        history = state.histories.get(stream.topic) if stream.condition == PLAIN else None
        crowded = history is not None and len(history.sent) >= terms.ring
        full = not writer.has_room(sample.reliable, terms)
        dropped = writer.give_way() if full and sample.turns else None
        if crowded or (full and dropped is None):
            return self._refuse(state, stream, sample.values, sample.time)
        writer.sequence += 1
        data = DataMessage(
            name=SampleName(self.me, stream, state.session, writer.sequence),
            is_stored=history is not None,
            **sample._asdict(),
            demand=digest(self._demand(state, topic)) if self.mode.brokered else 0,
        )
        state.counted["accepted"] += 1
        accepted = Deliver(SampleAccepted(data.name, sample.values, sample.time, sample.reliable))
        timer_effects = history.store(data, now, terms) if history is not None else []
        given_up = [] if dropped is None else [Deliver(SampleGivenUp(dropped.name))]
        state.counted["given up"] += len(given_up)
        return [
            *given_up,
            accepted,
            *timer_effects,
            *rtdds.publish(writer, data, self._sending_parameters(state, now, stream)),
        ]

    def _refuse(
        self, state: DdsState, stream: SampleStream, values: Mapping[str, Value], time: Instant
    ) -> list[Effect]:
        """Report a sample that the full ring did not accept."""
        state.counted["overflowed"] += 1
        return [Deliver(SampleRefused(stream, values, time))]

    def on_ack(self, state: DdsState, now: Instant, sender: Peer, ack: SampleAck) -> list[Effect]:
        """Handle an ACK for a writer: from the RN for all, or from one subscriber."""
        writer = state.writers.get(ack.name.stream)
        if writer is None or ack.complete != self.mode.brokered:
            return []
        if not ack.complete:
            state.subscribers[ack.name.stream.topic].record_sign(sender, now)
        released = rtdds.on_ack(writer, ack.name, sender, self._sending_parameters(state, now, writer.stream))
        if ack.unread and released:
            state.counted["unread"] += 1
            return [Deliver(SampleUnread(ack.name)), *released]
        return released

    def on_timeout(self, state: DdsState, now: Instant, stream: SampleStream) -> list[Effect]:
        """Handle the retransmission timeout."""
        writer, sending = state.writers[stream], self._sending_parameters(state, now, stream)
        lapsed = [] if self.mode.brokered else self._remove_lapsed(state, now, stream.topic)
        return [*lapsed, *rtdds.on_timeout(writer, sending)]

    def _remove_lapsed(self, state: DdsState, now: Instant, topic: TopicId) -> list[Effect]:
        """Remove readers whose lease is over, so that no sample waits for them."""
        if (lease := self.deployment.discovery.lease) is None:
            return []
        registry = state.subscribers[topic]
        gone = registry.remove_lapsed(now, lease)
        state.counted["lapsed"] += len(gone)
        return [Deliver(SubscriberLapsed(registry.topic.name, subscriber)) for subscriber in gone]

    def _sending_parameters(
        self, state: DdsState, now: Instant, stream: SampleStream
    ) -> rtdds.SendingParameters:
        """Return the parameters with which a writer sends now."""

        def to_rendezvous(data: DataMessage) -> Mapping[Peer, bool]:
            return {self.rendezvous(state, stream.topic): data.reliable}

        route = to_rendezvous if self.mode.brokered else state.subscribers[stream.topic].recipients
        return rtdds.SendingParameters(
            route, now, self.deployment.reliable, state.counted, self.mode.brokered
        )

    def _demand(self, state: DdsState, topic: DdsTopic) -> Demand:
        """Return the demand of subscribers as known here."""
        if not self.mode.brokered:
            return state.subscribers[topic.id].demand()
        return state.demands.get(topic.id, default_demand(topic))

    def on_demand(self, state: DdsState, demand: Demand) -> list[Effect]:
        """Record the demand that the RN reports."""
        state.demands[demand.topic] = demand
        return []

    def on_notification(self, state: DdsState, now: Instant, rn: Peer, note: DdsNotification) -> list[Effect]:
        """Handle a subscription that the RN passes on in HyTDDS; confirm it if it is reliable."""
        wish = note.wish
        effects = self.on_subscription(state, now, wish)
        if isinstance(wish, DdsUnsubscribe) or wish.topic not in state.subscribers or not must_confirm(wish):
            return effects
        if not effects and not note.asks:
            return []
        known = Recognition(wish.topic, wish.subscriber, wish.reader, wish.version)
        return [*effects, Send(rn, known, cause_of(known))]

    def on_subscription(
        self, state: DdsState, now: Instant, wish: DdsSubscribe | DdsUnsubscribe
    ) -> list[Effect]:
        """Update the own table with a subscription: BLTDDS, HyTDDS.  [D40, D43]

        An acknowledgement of a subscriber that has left is not awaited; at its timeout a sample has no
        receiver left.
        """
        registry = state.subscribers.get(wish.topic)
        if registry is None:
            return []
        if isinstance(wish, DdsSubscribe):
            return add_to_registry(registry, wish, now)
        registry.remove(wish)
        return []


def add_to_registry(registry: SubscriptionTable, wish: DdsSubscribe, now: Instant) -> list[Effect]:
    """Add a subscription to a table; inform the host if it is new.  [D44]"""
    if not registry.add(wish, now):
        return []
    return [Deliver(SubscriptionRegistered(registry.topic.name, wish.subscriber, wish.version))]
