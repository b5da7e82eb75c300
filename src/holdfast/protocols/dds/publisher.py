"""A node as publisher: its writers, what subscribers want of them, and the conditions that run here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ...errors import UsageError
from ...model.event import Status, Value
from ...model.instant import Instant
from ...model.protocol import Deliver, Effect, Peer, Send, SetTimer
from . import rtdds
from .level import is_reliable
from .member import Member
from .message import (
    PLAIN,
    Ack,
    Data,
    Demand,
    Name,
    Notification,
    Recognised,
    Stream,
    Subscribe,
    Unsubscribe,
    cause_of,
)
from .registry import Registry, digest, must_recognise, usual
from .request import Accepted, GivenUp, Lapsed, Refused, Registered, Unread
from .state import State
from .topic import Topic, TopicId


class Sample(NamedTuple):
    """What is written: values, and what they mean for those who watch a condition."""

    values: Mapping[str, Value]
    time: Instant
    reliable: bool
    status: Status = "atomic"
    since: Instant | None = None
    turns: bool = False


class Publisher(Member, frozen=True):
    """``advertise()`` and ``publish()``.  [D1]"""

    def advertise(self, state: State, topic: Topic) -> list[Effect]:
        """A writer for the topic, bound to it alone.  [D7]"""
        if self.me not in self.deployment.publishers_of(topic.id):
            raise UsageError(
                f"node {self.me} is no publisher of '{topic.name}'; publishers are known before deployment: "
                f"{', '.join(self.deployment.publishers_of(topic.id)) or 'it has none'}"
            )
        state.writers.setdefault(Stream(topic.id), rtdds.Writer(Stream(topic.id)))
        state.subscribers.setdefault(topic.id, Registry(topic))
        return []

    def publish(self, state: State, now: Instant, topic: Topic, values: Mapping[str, Value]) -> list[Effect]:
        """A sample from the application: sent now or, with IFS, in the node's next slot.  [D32]"""
        if Stream(topic.id) not in state.writers:
            raise UsageError(f"node {self.me} has no writer for '{topic.name}'; advertise the topic first")
        checked = topic.checked(values)
        state.counted["published"] += 1
        schedule = self.deployment.schedule
        if schedule is None or (at := schedule.next(self.me, now)) == now:
            return self._write(state, now, topic, checked, now)
        if len(state.slotted) >= self.deployment.reliable.ring:
            return self._refuse(state, Stream(topic.id), checked, now)
        state.slotted.append((topic.id, checked, now))
        return [SetTimer("slot", at)]

    def slot(self, state: State, now: Instant) -> list[Effect]:
        """The node's slot has come."""
        waiting = list(state.slotted)
        state.slotted.clear()
        return [
            effect
            for topic, values, time in waiting
            for effect in self._write(state, now, self.topic(topic), values, time)
        ]

    def _write(
        self, state: State, now: Instant, topic: Topic, values: Mapping[str, Value], time: Instant
    ) -> list[Effect]:
        """A sample for those who want samples, and what it means for those who watch conditions."""
        known, demand = self.deployment.conditions, self._demand(state, topic)
        effects: list[Effect] = []
        state.placed.place(topic.id, {*demand.conditions, *(topic.turned if demand.turns else ())}, known)
        changes = list(state.placed.react(topic, self.me, values, time, known))
        for condition, change in changes:
            if condition in demand.conditions:
                sample = Sample(values, time, True, change.status, change.since)
                effects += self._offer(state, now, Stream(topic.id, condition), sample)
        if not demand.plain:
            state.counted["filtered at the source"] += 1
            return effects
        ordered = any(receiver.reliable for receiver in state.assured.get(topic.id, {}).values())
        turns = demand.turns and any(condition in topic.turned for condition, _ in changes)
        reliable = ordered or turns or is_reliable(demand.level, values.get(topic.reading), turns)
        sample = Sample(values, time, reliable, turns=turns)
        return [*effects, *self._offer(state, now, Stream(topic.id), sample)]

    def _offer(self, state: State, now: Instant, stream: Stream, sample: Sample) -> list[Effect]:
        """The classifier has set the bit; the writer takes the sample or drops it.  [D19, D24]"""
        topic, terms = self.topic(stream.topic), self.deployment.reliable
        writer = state.writers.setdefault(stream, rtdds.Writer(stream))
        history = state.histories.get(stream.topic) if stream.condition == PLAIN else None
        crowded = history is not None and len(history.sent) >= terms.ring
        full = not writer.has_room(sample.reliable, terms)
        out = writer.give_way() if full and sample.turns else None
        if crowded or (full and out is None):
            return self._refuse(state, stream, sample.values, sample.time)
        writer.sequence += 1
        data = Data(
            name=Name(self.me, stream, state.session, writer.sequence),
            kept=history is not None,
            **sample._asdict(),
            demand=digest(self._demand(state, topic)) if self.mode.brokered else 0,
        )
        state.counted["accepted"] += 1
        accepted = Deliver(Accepted(data.name, sample.values, sample.time, sample.reliable))
        kept = history.keep(data, now, terms) if history is not None else []
        lost = [] if out is None else [Deliver(GivenUp(out.name))]
        state.counted["given up"] += len(lost)
        return [*lost, accepted, *kept, *rtdds.publish(writer, data, self._sending(state, now, stream))]

    def _refuse(
        self, state: State, stream: Stream, values: Mapping[str, Value], time: Instant
    ) -> list[Effect]:
        state.counted["overflowed"] += 1
        return [Deliver(Refused(stream, values, time))]

    def acknowledged(self, state: State, now: Instant, sender: Peer, ack: Ack) -> list[Effect]:
        """An ACK for a writer: from the RN for all, or from a subscriber for itself."""
        writer = state.writers.get(ack.name.stream)
        if writer is None or ack.complete != self.mode.brokered:
            return []
        if not ack.complete:
            state.subscribers[ack.name.stream.topic].heard(sender, now)
        released = rtdds.acknowledged(writer, ack.name, sender, self._sending(state, now, writer.stream))
        if ack.unread and released:
            state.counted["unread"] += 1
            return [Deliver(Unread(ack.name)), *released]
        return released

    def timed_out(self, state: State, now: Instant, stream: Stream) -> list[Effect]:
        """The retransmission timeout."""
        writer, sending = state.writers[stream], self._sending(state, now, stream)
        lapsed = [] if self.mode.brokered else self._lapse(state, now, stream.topic)
        return [*lapsed, *rtdds.timed_out(writer, sending)]

    def _lapse(self, state: State, now: Instant, topic: TopicId) -> list[Effect]:
        """Nobody waits for readers whose lease is over."""
        if (lease := self.deployment.discovery.lease) is None:
            return []
        registry = state.subscribers[topic]
        gone = registry.lapse(now, lease)
        state.counted["lapsed"] += len(gone)
        return [Deliver(Lapsed(registry.topic.name, subscriber)) for subscriber in gone]

    def _sending(self, state: State, now: Instant, stream: Stream) -> rtdds.Sending:
        def to_rendezvous(data: Data) -> Mapping[Peer, bool]:
            return {self.rendezvous(state, stream.topic): data.reliable}

        route = to_rendezvous if self.mode.brokered else state.subscribers[stream.topic].recipients
        return rtdds.Sending(route, now, self.deployment.reliable, state.counted, self.mode.brokered)

    def _demand(self, state: State, topic: Topic) -> Demand:
        """What subscribers want of this publisher, as far as it knows."""
        if not self.mode.brokered:
            return state.subscribers[topic.id].demand()
        return state.demands.get(topic.id, usual(topic))

    def demanded(self, state: State, demand: Demand) -> list[Effect]:
        """The RN says what subscribers want."""
        state.demands[demand.topic] = demand
        return []

    def notified(self, state: State, now: Instant, rn: Peer, note: Notification) -> list[Effect]:
        """HyTDDS: the RN passes a subscription on; of a reliable reader it must know that it came."""
        wish = note.wish
        effects = self.registered(state, now, wish)
        if isinstance(wish, Unsubscribe) or wish.topic not in state.subscribers or not must_recognise(wish):
            return effects
        if not effects and not note.asks:
            return []
        known = Recognised(wish.topic, wish.subscriber, wish.reader, wish.version)
        return [*effects, Send(rn, known, cause_of(known))]

    def registered(self, state: State, now: Instant, wish: Subscribe | Unsubscribe) -> list[Effect]:
        """A publisher learns of a subscription and matches on its own: BLTDDS, HyTDDS.  [D40, D43]

        One that has unsubscribed is not waited for any more: at its timeout a sample has nobody left.
        """
        registry = state.subscribers.get(wish.topic)
        if registry is None:
            return []
        if isinstance(wish, Subscribe):
            return entered(registry, wish, now)
        registry.remove(wish)
        return []


def entered(registry: Registry, wish: Subscribe, now: Instant) -> list[Effect]:
    """A subscription is taken; the host learns of one that is new.  [D44]"""
    if not registry.add(wish, now):
        return []
    return [Deliver(Registered(registry.topic.name, wish.subscriber, wish.version))]
