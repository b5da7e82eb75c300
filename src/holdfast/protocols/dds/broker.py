"""A node as rendezvous node: what it does with wishes, samples and ACKs.  [D11–D13, D31, D42]"""

from __future__ import annotations

from ...model.instant import Instant
from ...model.protocol import Effect, Peer, Send
from . import rendezvous
from .member import Member
from .message import Ack, Data, Notification, Role, Subscribe, Unsubscribe, cause_of
from .publisher import entered
from .registry import Registry, digest
from .rendezvous import Rendezvous
from .state import State


class Broker(Member):
    """The RN's side of DefTDDS, HyTDDS and EATDDS; in BLTDDS nobody is one.  [D41]"""

    __slots__ = ()

    def started(self, state: State, now: Instant) -> list[Effect]:
        """The topics whose hash is this node.  [D10]"""
        if self.mode.rotates:
            return self.rotation.started(state, now)
        if self.mode.brokered:
            for topic in self.deployment.topics:
                if self.deployment.rendezvous(topic.id) == self.me:
                    state.rendezvous[topic.id] = Rendezvous(Registry(topic))
        return []

    def wished(self, state: State, wish: Subscribe | Unsubscribe) -> list[Effect]:
        """HyTDDS: a NOTIFICATION for each publisher.  DefTDDS, EATDDS: the table."""
        publishers = self.deployment.publishers_of(wish.topic)
        if not self.mode.brokered:
            note = Notification(wish)
            return [Send(publisher, note, cause_of(note)) for publisher in publishers]
        if (rn := state.rendezvous.get(wish.topic)) is None:
            return self._elsewhere(state, wish, wish.subscriber)
        before = rn.registry.demand()
        effects: list[Effect] = []
        if isinstance(wish, Subscribe):
            effects += entered(rn.registry, wish)
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
        effects = rendezvous.forward(rn, data, now)
        if data.demand != digest(demand := rn.registry.demand()):
            effects.append(Send(data.name.origin, demand, cause_of(demand)))
        return effects

    def acknowledged(self, state: State, subscriber: Peer, ack: Ack) -> list[Effect]:
        """An ACK from a subscriber."""
        rn = state.rendezvous.get(ack.name.stream.topic)
        return [] if rn is None else rendezvous.acknowledged(rn, ack.name, subscriber)

    def _elsewhere(self, state: State, what: Data | Subscribe | Unsubscribe, asker: Peer) -> list[Effect]:
        """It is for an RN, and this node is none."""
        if self.mode.rotates:
            return self.rotation.elsewhere(state, what, asker)
        state.counted["not for this node"] += 1
        return []
