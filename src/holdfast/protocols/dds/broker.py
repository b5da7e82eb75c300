"""A node as rendezvous node: what it does with wishes, samples and ACKs.  [D11–D13, D31, D42]

Subscriptions are soft state: who gives no sign for a lease is forgotten.  An RN of DefTDDS that starts calls
for subscriptions, with the moment of its start as a boot number, and acknowledges nothing until they had time
to come; EATDDS does the same with its terms.
"""

from __future__ import annotations

from itertools import islice

from ...model.instant import SECOND, Instant
from ...model.protocol import EVERYBODY, Deliver, Effect, Peer, Send, SetTimer
from . import rendezvous
from .member import Member
from .message import Ack, Data, Notification, Recognised, Role, Subscribe, Unsubscribe, cause_of
from .publisher import entered
from .registry import Registry, digest, must_recognise
from .rendezvous import Rendezvous
from .request import Lapsed
from .state import State
from .topic import TopicId

AT_ONCE, PAUSE = 16, SECOND // 4
"""How many publishers are told of a subscription at once: as many frames as wait at a mote's radio; and when
the next are, for these to have left."""
MOST_DOUBLED = 6
"""What a publisher does not recognise is said after ever longer pauses, up to 64 times the first."""


class Broker(Member, frozen=True):
    """The RN's side of DefTDDS, HyTDDS and EATDDS; in BLTDDS nobody is one.  [D41]"""

    def started(self, state: State, now: Instant) -> list[Effect]:
        """The topics whose hash is this node.  [D10]"""
        if self.mode.rotates:
            return self.rotation.started(state, now)
        effects: list[Effect] = []
        for topic in self.deployment.topics if self.mode.brokered else ():
            if self.deployment.rendezvous(topic.id) == self.me:
                rn = state.rendezvous[topic.id] = Rendezvous(Registry(topic))
                if self.deployment.discovery.lease is not None:
                    rn.silent_until = now + self.deployment.rotation.settle
                    effects += self.call(state, now, topic.id)
        return effects

    def call(self, state: State, now: Instant, topic: TopicId) -> list[Effect]:
        """Everybody who does not know that this RN was started is to subscribe again."""
        if now >= state.rendezvous[topic].silent_until:
            return []
        role = Role(topic, state.session, self.me, fresh=True)
        return [Send(EVERYBODY, role, cause_of(role)), SetTimer(f"call/{topic}", now + SECOND)]

    def wished(self, state: State, now: Instant, wish: Subscribe | Unsubscribe) -> list[Effect]:
        """HyTDDS: a NOTIFICATION for each publisher.  DefTDDS, EATDDS: the table."""
        publishers = self.deployment.publishers_of(wish.topic)
        if not self.mode.brokered:
            return self._notified(state, now, wish)
        if (rn := state.rendezvous.get(wish.topic)) is None:
            return self._elsewhere(state, wish, wish.subscriber)
        before = rn.registry.demand()
        effects: list[Effect] = []
        if isinstance(wish, Subscribe):
            effects += entered(rn.registry, wish, now)
        else:
            rn.registry.remove(wish)
            effects += rendezvous.left(rn, wish.subscriber)
        if self.mode.rotates:
            self.rotation.changed(state, wish)
            role = Role(wish.topic, *self.rotation.known(state, wish.topic))
            effects.append(Send(wish.subscriber, role, cause_of(role)))
        if (demand := rn.registry.demand()) != before:
            effects += [Send(publisher, demand, cause_of(demand)) for publisher in publishers]
        return effects

    def published(self, state: State, now: Instant, data: Data) -> list[Effect]:
        """A sample to be forwarded; if its publisher does not know what is wanted of it, it is told."""
        if (rn := state.rendezvous.get(data.name.stream.topic)) is None:
            return self._elsewhere(state, data, data.name.origin)
        effects = [*self._lapse(state, rn, now), *rendezvous.forward(rn, data, now, self.deployment.reliable)]
        if data.demand != digest(demand := rn.registry.demand()):
            effects.append(Send(data.name.origin, demand, cause_of(demand)))
        return effects

    def acknowledged(self, state: State, now: Instant, subscriber: Peer, ack: Ack) -> list[Effect]:
        """An ACK from a subscriber."""
        if (rn := state.rendezvous.get(ack.name.stream.topic)) is None:
            return []
        rn.registry.heard(subscriber, now)
        return rendezvous.acknowledged(rn, ack.name, subscriber)

    def _lapse(self, state: State, rn: Rendezvous, now: Instant) -> list[Effect]:
        """Nobody waits for readers whose lease is over."""
        if (lease := self.deployment.discovery.lease) is None:
            return []
        gone = rn.registry.lapse(now, lease)
        state.counted["lapsed"] += len(gone)
        effects: list[Effect] = []
        for subscriber in gone:
            effects += [Deliver(Lapsed(rn.registry.topic.name, subscriber)), *rendezvous.left(rn, subscriber)]
        return effects

    # HyTDDS: the RN only passes subscriptions on.

    def _notified(self, state: State, now: Instant, wish: Subscribe | Unsubscribe) -> list[Effect]:
        """Publishers are told; of a reliable reader until they have recognised it."""
        publishers = self.deployment.publishers_of(wish.topic)
        keys = [(publisher, wish.subscriber, wish.reader) for publisher in publishers]
        untold = state.untold.setdefault(wish.topic, {})
        is_telling = bool(untold)
        untold.update(dict.fromkeys(keys, wish))
        effects = [] if is_telling else self.tell(state, now, wish.topic)
        if isinstance(wish, Unsubscribe) or not must_recognise(wish):
            return effects
        waiting = state.notices.setdefault(wish.topic, {})
        known = {key: each.version for key, each in waiting.items()} | state.recognised.get(wish.topic, {})
        news = {key: wish for key in keys if known.get(key, 0) < wish.version}
        if not news:
            return effects
        waiting.update(news)
        state.noticed[wish.topic] = 0
        return [*effects, self._again(state, now, wish.topic)]

    def tell(self, state: State, now: Instant, topic: TopicId) -> list[Effect]:
        """Those who have waited longest are told, no more than a queue holds: of the others it would drop
        always the same."""
        untold = state.untold.get(topic, {})
        effects: list[Effect] = []
        for key in list(islice(untold, AT_ONCE)):
            note = Notification(untold.pop(key))
            effects.append(Send(key[0], note, cause_of(note)))
        return [*effects, SetTimer(f"tell/{topic}", now + PAUSE)] if untold else effects

    def _again(self, state: State, now: Instant, topic: TopicId) -> SetTimer:
        pause = self.deployment.discovery.every << min(state.noticed[topic], MOST_DOUBLED)
        return SetTimer(f"notify/{topic}", now + pause)

    def notify_again(self, state: State, now: Instant, topic: TopicId) -> list[Effect]:
        """Somebody has not recognised a subscription."""
        waiting = state.notices.get(topic)
        if not waiting:
            return []
        state.noticed[topic] += 1
        notes = [(to, Notification(wish, asks=True)) for (to, _, _), wish in waiting.items()]
        return [*(Send(to, note, cause_of(note)) for to, note in notes), self._again(state, now, topic)]

    def recognised(self, state: State, publisher: Peer, given: Recognised) -> list[Effect]:
        """A publisher has it in its table."""
        waiting, key = state.notices.get(given.topic, {}), (publisher, given.subscriber, given.reader)
        state.recognised.setdefault(given.topic, {})[key] = given.version
        if key in waiting and waiting[key].version <= given.version:
            del waiting[key]
        return []

    def _elsewhere(self, state: State, what: Data | Subscribe | Unsubscribe, asker: Peer) -> list[Effect]:
        """It is for an RN, and this node is none."""
        if self.mode.rotates:
            return self.rotation.elsewhere(state, what, asker)
        state.counted["not for this node"] += 1
        return []
