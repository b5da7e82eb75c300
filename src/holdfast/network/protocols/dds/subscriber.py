"""A node as subscriber: its readers, the messages for their subscriptions, and deliveries."""

from __future__ import annotations

from msgspec.structs import replace

from ....errors import UsageError, did_you_mean
from ....model.instant import Instant
from ....model.protocol import EVERYBODY, CancelTimer, Deliver, Effect, Send, SetTimer
from . import request, rtdds
from .eatdds import subscribe_again
from .interest import satisfies_all
from .level import TRANSITION
from .member import DdsRole
from .message import EVERY_READER, PLAIN, DataMessage, DdsSubscribe, DdsUnsubscribe, cause_of
from .state import DataReader, DdsState
from .topic import TopicId


class DdsSubscriber(DdsRole, frozen=True):
    """``subscribe()``, ``unsubscribe()``, and the ``notify()`` that follows.  [D1]"""

    def subscribe(self, state: DdsState, now: Instant, asked: request.DdsSubscribeRequest) -> list[Effect]:
        """Create a reader for each topic of the interest.  [D7]"""
        interest, condition = asked.interest, asked.interest.condition
        if any(reader.subscription == asked.name for reader in state.readers.values()):
            raise UsageError(f"node {self.me} has a subscription '{asked.name}'; unsubscribe it first")
        if condition is not None and condition not in self.deployment.conditions:
            known = self.deployment.conditions
            hint = did_you_mean(condition, known) or f"There is {', '.join(known) or 'none'}."
            raise UsageError(f"no condition named '{condition}' was deployed. {hint}")
        effects: list[Effect] = []
        for topic in interest.matching_topics(self.deployment.topics):
            state.last_reader_number += 1
            level = topic.level if interest.level is None else interest.level
            if level == TRANSITION and not topic.transition_conditions and condition is None:
                raise UsageError(f"nothing turns with samples of '{topic.name}': deploy a condition on it")
            version = state.newer(now)
            state.readers[state.last_reader_number] = DataReader(
                asked.name,
                DdsSubscribe(
                    topic.id,
                    self.me,
                    state.last_reader_number,
                    version,
                    level,
                    interest.where,
                    condition or PLAIN,
                ),
            )
            effects += self.send_subscription(state, now, state.last_reader_number)
            if self.mode.rotates:
                effects += self.rotation.on_sign(state, topic.id, now)
        return effects

    def send_subscription(self, state: DdsState, now: Instant, number: int) -> list[Effect]:
        """Send SUBSCRIBE, ten times [D14], and then as often as the lease requires."""
        reader, terms = state.readers.get(number), self.deployment.discovery
        if reader is None:
            return []
        reader.times_sent += 1
        effects = self._send(state, reader.wish, reader.times_sent)
        if reader.times_sent < terms.repeats:
            later = terms.after(now, terms.every, state.chance)
            effects.append(SetTimer(f"subscribe/{number}", later))
        elif terms.renewal is not None:
            effects.append(SetTimer(f"subscribe/{number}", now + terms.renewal))
        return effects

    def on_call(self, state: DdsState, now: Instant, topic: TopicId, boot: int) -> list[Effect]:
        """Handle the start time of an RN: if it is new, the RN has lost earlier subscriptions."""
        known, state.start_times[topic] = state.start_times.get(topic), boot
        repeats = self.deployment.discovery.repeats
        if boot == known or (known is None and all(r.times_sent < repeats for r in state.of_topic(topic))):
            return []
        return subscribe_again(state, topic, now)

    def _send(self, state: DdsState, wish: DdsSubscribe | DdsUnsubscribe, time: int = 1) -> list[Effect]:
        """Send a subscription to the node with the table: the RN, or all nodes.

        In EATDDS the RN may be dead. If none has answered the first half of the repetitions, or signs were
        missing for long, the main RN and its successors are asked in turn as well.
        """
        if self.mode.asks == "everybody":
            return [Send(EVERYBODY, wish, cause_of(wish)), Send(self.me, wish)]
        to = [self.rendezvous(state, wish.topic)]
        if self.mode.rotates:
            unanswered = wish.topic not in state.roles and time > self.deployment.discovery.repeats // 2
            if unanswered or wish.topic in state.without_table:
                to += self.deployment.successors(wish.topic)
        return [Send(to[time % len(to)], wish, cause_of(wish))]

    def unsubscribe(self, state: DdsState, now: Instant, name: str) -> list[Effect]:
        """Remove readers and send this once; a node that receives unwanted samples repeats it
        (``restate``)."""
        over = [number for number, reader in state.readers.items() if reader.subscription == name]
        if not over:
            raise UsageError(f"node {self.me} has no subscription '{name}'")
        effects: list[Effect] = []
        for number in over:
            topic = state.readers.pop(number).wish.topic
            wish = DdsUnsubscribe(topic, self.me, number, state.newer(now))
            effects += [CancelTimer(f"subscribe/{number}"), *self._send(state, wish)]
        return effects

    def is_bound(self, state: DdsState, data: DataMessage) -> bool:
        """Whether a reader here is bound to the sample's stream."""
        stream = data.name.stream
        return any(reader.wish.condition == stream.condition for reader in state.of_topic(stream.topic))

    def deliver(self, state: DdsState, data: DataMessage) -> list[Effect]:
        """Deliver a sample once and in order to each reader whose constraints it satisfies."""
        name = data.name
        if not rtdds.is_new(state.last_delivered, name):
            state.counted["redundant"] += 1
            return [Deliver(request.SampleRepeated(name))]
        state.last_delivered[name.origin, name.stream] = name.place
        topic = self.topic(name.stream.topic)
        found = [
            reader.subscription
            for reader in state.of_topic(name.stream.topic)
            if reader.wish.condition == name.stream.condition
            and satisfies_all(reader.wish.where, data.values)
        ]
        state.counted["delivered"] += bool(found)
        return [
            Deliver(
                request.DdsNotify(
                    subscription,
                    topic.name,
                    name.origin,
                    name,
                    data.values,
                    data.time,
                    topic.instance(data.values),
                    data.status,
                    data.since,
                )
            )
            for subscription in found
        ]

    def restate(self, state: DdsState, now: Instant, topic: TopicId) -> list[Effect]:
        """Repeat the subscriptions to a topic after an unwanted sample."""
        state.counted["unwanted"] += 1
        nothing = DdsUnsubscribe(topic, self.me, EVERY_READER, state.newer(now))
        effects = self._send(state, nothing)
        for reader in state.of_topic(topic):
            reader.wish = replace(reader.wish, version=state.newer(now))
            effects += self._send(state, reader.wish)
        return effects
