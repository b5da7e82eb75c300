"""A node as subscriber: its readers, how their wishes are told, and what they deliver."""

from __future__ import annotations

from msgspec.structs import replace

from ...errors import UsageError, did_you_mean
from ...model.instant import Instant
from ...model.protocol import EVERYBODY, CancelTimer, Deliver, Effect, Send, SetTimer
from . import request, rtdds
from .eatdds import subscribe_again
from .interest import holds
from .level import TRANSITION
from .member import Member
from .message import EVERY_READER, PLAIN, Data, Subscribe, Unsubscribe, cause_of
from .state import Reader, State
from .topic import TopicId


class Subscriber(Member, frozen=True):
    """``subscribe()``, ``unsubscribe()``, and the ``notify()`` that follows.  [D1]"""

    def subscribe(self, state: State, now: Instant, asked: request.Subscribe) -> list[Effect]:
        """A reader for each topic that the interest concerns.  [D7]"""
        interest, condition = asked.interest, asked.interest.condition
        if any(reader.subscription == asked.name for reader in state.readers.values()):
            raise UsageError(f"node {self.me} has a subscription '{asked.name}'; unsubscribe it first")
        if condition is not None and condition not in self.deployment.conditions:
            known = self.deployment.conditions
            hint = did_you_mean(condition, known) or f"There is {', '.join(known) or 'none'}."
            raise UsageError(f"no condition named '{condition}' was deployed. {hint}")
        effects: list[Effect] = []
        for topic in interest.concerned(self.deployment.topics):
            state.numbered += 1
            level = topic.level if interest.level is None else interest.level
            if level == TRANSITION and not topic.turned and condition is None:
                raise UsageError(f"nothing turns with samples of '{topic.name}': deploy a condition on it")
            version = state.newer(now)
            state.readers[state.numbered] = Reader(
                asked.name,
                Subscribe(
                    topic.id, self.me, state.numbered, version, level, interest.where, condition or PLAIN
                ),
            )
            effects += self.say(state, now, state.numbered)
            if self.mode.rotates:
                effects += self.rotation.signed(state, topic.id, now)
        return effects

    def say(self, state: State, now: Instant, number: int) -> list[Effect]:
        """SUBSCRIBE, ten times [D14], and then as often as the lease needs it."""
        reader, terms = state.readers.get(number), self.deployment.discovery
        if reader is None:
            return []
        reader.said += 1
        effects = self._tell(state, reader.wish, reader.said)
        if reader.said < terms.repeats:
            later = terms.after(now, terms.every, state.chance)
            effects.append(SetTimer(f"subscribe/{number}", later))
        elif terms.renewal is not None:
            effects.append(SetTimer(f"subscribe/{number}", now + terms.renewal))
        return effects

    def called(self, state: State, now: Instant, topic: TopicId, boot: int) -> list[Effect]:
        """An RN says when it was started.  If that is news, it has forgotten what was said before."""
        known, state.boots[topic] = state.boots.get(topic), boot
        repeats = self.deployment.discovery.repeats
        if boot == known or (known is None and all(r.said < repeats for r in state.of_topic(topic))):
            return []
        return subscribe_again(state, topic, now)

    def _tell(self, state: State, wish: Subscribe | Unsubscribe, time: int = 1) -> list[Effect]:
        """A wish goes to who keeps it: the RN, or everybody.

        In EATDDS the RN may be dead: if none has answered the first half of the repetitions, or a sign was
        missing for long, the main RN and its successors are asked in turn as well.
        """
        if self.mode.asks == "everybody":
            return [Send(EVERYBODY, wish, cause_of(wish)), Send(self.me, wish)]
        to = [self.rendezvous(state, wish.topic)]
        if self.mode.rotates:
            unanswered = wish.topic not in state.roles and time > self.deployment.discovery.repeats // 2
            if unanswered or wish.topic in state.lonely:
                to += self.deployment.successors(wish.topic)
        return [Send(to[time % len(to)], wish, cause_of(wish))]

    def unsubscribe(self, state: State, now: Instant, name: str) -> list[Effect]:
        """Said once: who gets something that it does not want says so again (``restate``)."""
        over = [number for number, reader in state.readers.items() if reader.subscription == name]
        if not over:
            raise UsageError(f"node {self.me} has no subscription '{name}'")
        effects: list[Effect] = []
        for number in over:
            topic = state.readers.pop(number).wish.topic
            wish = Unsubscribe(topic, self.me, number, state.newer(now))
            effects += [CancelTimer(f"subscribe/{number}"), *self._tell(state, wish)]
        return effects

    def is_bound(self, state: State, data: Data) -> bool:
        """Whether a reader here is bound to the sample's stream."""
        stream = data.name.stream
        return any(reader.wish.condition == stream.condition for reader in state.of_topic(stream.topic))

    def deliver(self, state: State, data: Data) -> list[Effect]:
        """Once, in order, to each reader whose constraints it satisfies."""
        name = data.name
        if not rtdds.is_new(state.heard, name):
            state.counted["redundant"] += 1
            return [Deliver(request.Repeated(name))]
        state.heard[name.origin, name.stream] = name.place
        topic = self.topic(name.stream.topic)
        found = [
            reader.subscription
            for reader in state.of_topic(name.stream.topic)
            if reader.wish.condition == name.stream.condition and holds(reader.wish.where, data.values)
        ]
        state.counted["delivered"] += bool(found)
        return [
            Deliver(
                request.Notify(
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

    def restate(self, state: State, now: Instant, topic: TopicId) -> list[Effect]:
        """Something came that nobody here wants: say so, and what is wanted."""
        state.counted["unwanted"] += 1
        nothing = Unsubscribe(topic, self.me, EVERY_READER, state.newer(now))
        effects = self._tell(state, nothing)
        for reader in state.of_topic(topic):
            reader.wish = replace(reader.wish, version=state.newer(now))
            effects += self._tell(state, reader.wish)
        return effects
