"""EATDDS: the role of rendezvous node goes to the node of the cluster with most energy left.  [D46–D51]

The thesis has energy reports, rounds and the rule; what it leaves out (spec §7, 18) is decided here.

* *Rounds* are begun by the main RN (the hash), so they are common to all; the RN of the round elects the
  next.  If the main RN is silent for half a round too long, the RN of the round does not wait for it.
* *Terms* number the holders of a role; of two claims the later term counts, and whoever believes an
  earlier one is told.
* *Hand-over*: the old RN sends its table in pieces, each until it is taken; with the last one the role
  moves.  Until then the old RN serves, so every acknowledged sample has reached all subscribers.  If the
  next RN does not answer, the second best is asked.
* *Who does not know yet*: a former RN sends on what still comes to it, and tells the sender.  The main RN
  (the hash) always knows, so a late joiner finds the way.
* *Death*: an RN shows from time to time that it is there.  If three signs are missing and it does not
  answer either, the main RN takes the role, or the first publisher that is alive; it calls for
  subscriptions and acknowledges nothing until they had time to come.  So does one that was restarted.
  Signs name the readers to those who may follow: who takes over waits for all of them, up to a lease.
* *In no table*: signs go to those in the table; a subscriber that hears none for long subscribes again.
"""

from __future__ import annotations

from collections import deque

import msgspec
from msgspec.structs import replace

from ...model.instant import BEGINNING, SECOND, Instant
from ...model.protocol import EVERYBODY, CancelTimer, Effect, Peer, Send, SetTimer
from .cluster import Cluster, Incoming, Known, Transfer, Wish, elected
from .deployment import Deployment
from .message import Data, Energy, Handover, Role, Round, Subscribe, Taken, cause_of
from .registry import Registry
from .rendezvous import Rendezvous
from .state import State
from .topic import TopicId

SIGNS = 3
"""So many missing signs of life mean that an RN is dead."""
TRIES = 10
"""How often a piece of a hand-over is sent, or an RN asked, until it is given up."""
MOST_HOPS = 4
"""How often a message is sent on from RN to RN; what goes further goes in circles."""


class Eatdds(msgspec.Struct, frozen=True):
    """What one node does for the rotation of roles."""

    deployment: Deployment
    me: Peer

    # Who has the role.

    def known(self, state: State, topic: TopicId) -> Known:
        """As far as this node has heard; at first the main RN."""
        return state.roles.get(topic, Known(0, self.deployment.rendezvous(topic)))

    def started(self, state: State, now: Instant) -> list[Effect]:
        """The main RN begins; silent for a while, since it may have been gone and others know better."""
        effects: list[Effect] = []
        for topic in self.deployment.topics:
            if self.deployment.rendezvous(topic.id) == self.me:
                effects.append(self._timer("round", topic.id, now))
                effects += self._take(state, topic.id, now, 0, self._silent(Registry(topic), now))
            else:
                effects += self._watch(state, topic.id, now)
        return effects

    def _lonely(self, state: State, topic: TopicId, now: Instant) -> list[Effect]:
        """No sign for long: this subscriber is in no table, so it asks the main RN and its successors."""
        if topic in state.rendezvous or not any(True for _ in state.of_topic(topic)):
            return []
        again = subscribe_again(state, topic, now)
        effects = [*again, *self.signed(state, topic, now)]
        state.lonely.add(topic)
        return effects

    def elsewhere(self, state: State, message: Data | Wish | Energy, asker: Peer) -> list[Effect]:
        """What is for the RN goes on to it, and who asked learns who that is."""
        topic = message.name.stream.topic if isinstance(message, Data) else message.topic
        known = self.known(state, topic)
        if message.hops >= MOST_HOPS or known.node == self.me:
            state.counted["gone in circles"] += 1
            return []
        onward = replace(message, hops=message.hops + 1)
        return [Send(known.node, onward, cause_of(message)), *self._tell(asker, topic, known)]

    def role(self, state: State, now: Instant, sender: Peer, role: Role) -> list[Effect]:
        """NEW-RN; or a question to the RN, which may have been restarted and know nothing of its role."""
        topic, told = role.topic, Known(role.term, role.node)
        known = self.known(state, topic)
        if sender == self.me:
            return []
        if told < known:
            wrong = sender in (role.node, known.node)
            return [Send(sender, Role(topic, *known), "role")] if wrong else []
        restarted = role.fresh and told == state.roles.get(topic) == Known(0, sender)
        state.roles[topic] = told
        if role.readers or (sender == role.node and not role.fresh):
            state.predecessors[topic] = role.readers
        if role.node == self.me:
            return self._asked(state, now, sender, role, later=told > known)
        effects: list[Effect] = []
        if told > known:
            effects += self._resign(state, topic, now, told)
            if role.fresh:
                effects += subscribe_again(state, topic, now)
        if sender == role.node:
            effects += [*self._watch(state, topic, now), *self.signed(state, topic, now)]
        if restarted:
            readers = state.predecessors.get(topic, ())
            effects.append(Send(sender, Role(topic, *told, readers=readers), "role"))
        return effects

    def _asked(self, state: State, now: Instant, sender: Peer, role: Role, later: bool) -> list[Effect]:
        """Somebody believes that this node is the RN; if it has forgotten, its table must come again."""
        rn = state.rendezvous.get(role.topic)
        if rn is None or later or (role.term == 0 and now < rn.silent_until):
            return self._take_over(state, role.topic, now)
        return [Send(sender, role, "role")]

    def signed(self, state: State, topic: TopicId, now: Instant) -> list[Effect]:
        """A subscriber hears from the RN, so it is in its table; if that ends, it will subscribe again."""
        state.lonely.discard(topic)
        if not any(True for _ in state.of_topic(topic)):
            return []
        return [SetTimer(f"lonely/{topic}", now + (SIGNS + 1) * self.deployment.rotation.sign)]

    def fired(self, state: State, now: Instant, kind: str, topic: TopicId) -> list[Effect]:
        """One of the rotation's timers."""
        match kind:
            case "handover":
                return self._again(state, topic, now)
            case "lonely":
                return self._lonely(state, topic, now)
            case "watch" if topic not in state.rendezvous:
                return self._suspect(state, topic, now)
            case "round":
                return [self._timer("round", topic, now), *self._begin_round(state, topic, now)]
            case "overdue":
                return self.round_begun(state, topic, now)
            case "sign" if topic in state.clusters:
                return [*self._announce(state, topic), self._timer("sign", topic, now)]
            case "fresh" if topic in state.rendezvous and now < state.rendezvous[topic].silent_until:
                return self._call(state, topic, now)
        return []

    def _timer(self, kind: str, topic: TopicId, now: Instant) -> SetTimer:
        terms = self.deployment.rotation
        overdue = terms.round * 3 // 2
        length = {"round": terms.round, "overdue": overdue, "sign": terms.sign, "fresh": SECOND}[kind]
        return SetTimer(f"{kind}/{topic}", now + length)

    def _watch(self, state: State, topic: TopicId, now: Instant) -> list[Effect]:
        """Successors wait for the next signs of life, the later ones longer."""
        successors = self.deployment.successors(topic)
        state.suspected.pop(topic, None)
        if self.me not in successors or topic in state.rendezvous:
            return []
        patience = (SIGNS + successors.index(self.me)) * self.deployment.rotation.sign
        return [SetTimer(f"watch/{topic}", now + patience)]

    def _silent(self, registry: Registry, now: Instant) -> Rendezvous:
        """An RN that says nothing for a while."""
        return Rendezvous(registry, silent_until=now + self.deployment.rotation.settle)

    def _take(
        self, state: State, topic: TopicId, now: Instant, term: int, rendezvous: Rendezvous
    ) -> list[Effect]:
        """This node has the role now."""
        state.rendezvous[topic] = rendezvous
        state.clusters[topic] = Cluster(attempted=term)
        state.roles[topic] = Known(term, self.me)
        timers = [self._timer("overdue", topic, now), self._timer("sign", topic, now)]
        announced = self._announce(state, topic, fresh=rendezvous.silent_until > BEGINNING)
        return [CancelTimer(f"watch/{topic}"), *timers, *announced]

    def _suspect(self, state: State, topic: TopicId, now: Instant) -> list[Effect]:
        """Signs are missing: ask the RN, and take its place if it never answers."""
        asked = state.suspected[topic] = state.suspected.get(topic, 0) + 1
        if asked > TRIES:
            return self._take_over(state, topic, now)
        role = Role(topic, *self.known(state, topic))
        return [Send(role.node, role, cause_of(role)), SetTimer(f"watch/{topic}", now + SECOND)]

    def _take_over(self, state: State, topic: TopicId, now: Instant) -> list[Effect]:
        """The RN is dead, or has forgotten everything."""
        state.counted["taken over"] += 1
        term = self.known(state, topic).term + 1
        rn = state.rendezvous.get(topic)
        registry = Registry(self.deployment.topics.by_id[topic]) if rn is None else rn.registry
        following = self._silent(registry, now)
        if (lease := self.deployment.discovery.lease) is not None:
            following.expected = set(state.predecessors.get(topic, ()))
            following.expected_until = now + lease
        taken = self._take(state, topic, now, term, following)
        return [*taken, *self._call(state, topic, now), *subscribe_again(state, topic, now)]

    def _call(self, state: State, topic: TopicId, now: Instant) -> list[Effect]:
        """Everybody is to subscribe again."""
        role = Role(topic, *self.known(state, topic), fresh=True)
        return [Send(EVERYBODY, role, cause_of(role)), self._timer("fresh", topic, now)]

    def _resign(self, state: State, topic: TopicId, now: Instant, to: Known) -> list[Effect]:
        """Another has the role; the table goes to it, unless it is on its way already."""
        rn = state.rendezvous.pop(topic, None)
        state.clusters.pop(topic, None)
        if rn is None:
            return []
        timers: list[Effect] = [CancelTimer(f"{kind}/{topic}") for kind in ("overdue", "sign", "fresh")]
        timers += [*self._watch(state, topic, now), *self.signed(state, topic, now)]
        transfer, wishes = state.transfers.get(topic), rn.registry.wishes.values()
        if not wishes or (transfer is not None and transfer.to == to.node):
            return timers
        going = Transfer(topic, to.node, to.term, deque(wishes), role=False)
        return [*timers, *self._transfer(state, now, going)]

    def _announce(self, state: State, topic: TopicId, fresh: bool = False) -> list[Effect]:
        role = Role(topic, *self.known(state, topic), fresh)
        successors = self.deployment.successors(topic)
        informed = replace(role, readers=tuple(state.rendezvous[topic].registry.subscribers()))
        others = dict.fromkeys([*successors, *self._members(state, topic)])
        return [
            Send(peer, informed if peer in successors else role, cause_of(role))
            for peer in others
            if peer != self.me
        ]

    def _tell(self, peer: Peer, topic: TopicId, known: Known) -> list[Effect]:
        role = Role(topic, *known)
        return [Send(peer, role, cause_of(role))] if peer not in (self.me, known.node) else []

    def _members(self, state: State, topic: TopicId) -> list[Peer]:
        """The cluster: the RN, its publishers and its subscribers.  [D46]"""
        subscribers = state.rendezvous[topic].registry.subscribers()
        return list(dict.fromkeys([self.me, *self.deployment.publishers_of(topic), *subscribers]))

    # Energy.

    def measured(self, state: State, now: Instant, joules: float) -> list[Effect]:
        """The node's own reading goes to all rendezvous nodes.  [D47]"""
        state.joules = joules
        for cluster in state.clusters.values():
            cluster.energies[self.me] = (joules, now)
        topics = [topic.id for topic in self.deployment.topics if self._reports(state, topic.id)]
        holders = {self.known(state, topic).node: topic for topic in reversed(topics)}
        return [
            Send(node, Energy(topic, self.me, joules), "energy")
            for node, topic in holders.items()
            if node != self.me
        ]

    def _reports(self, state: State, topic: TopicId) -> bool:
        return (
            self.deployment.rotation.reporters == "all"
            or self.me in self.deployment.publishers_of(topic)
            or any(True for _ in state.of_topic(topic))
        )

    def energy(self, state: State, now: Instant, report: Energy) -> list[Effect]:
        """ENERGY UPDATE from another node."""
        if report.topic not in state.clusters:
            return self.elsewhere(state, report, report.node)
        for cluster in state.clusters.values():
            cluster.energies[report.node] = (report.joules, now)
        return []

    # Rounds and hand-over.

    def _begin_round(self, state: State, topic: TopicId, now: Instant) -> list[Effect]:
        """The main RN begins a round, whoever has the role.  [D48]"""
        if topic in state.clusters:
            return self.round_begun(state, topic, now)
        return [Send(self.known(state, topic).node, Round(topic), "round")]

    def round_begun(self, state: State, topic: TopicId, now: Instant) -> list[Effect]:
        """A round is over, and the next one begins; only who has the role minds."""
        if topic not in state.clusters:
            return []
        state.clusters[topic].failed.clear()
        return self._end_round(state, topic, now)

    def _end_round(self, state: State, topic: TopicId, now: Instant) -> list[Effect]:
        """The node with most energy is nominated; this one goes on if that is itself.  [D49]"""
        terms, cluster = self.deployment.rotation, state.clusters[topic]
        if topic in state.transfers:
            return []
        members = self._members(state, topic)
        fresh = {
            peer: joules
            for peer, (joules, at) in cluster.energies.items()
            if peer in members and peer not in cluster.failed and at >= now - 2 * terms.reports
        }
        chosen = elected(fresh | {self.me: state.joules}, terms.slack, self.deployment.positions, members)
        if chosen == self.me:
            return [self._timer("overdue", topic, now)]
        cluster.attempted += 1
        wishes = state.rendezvous[topic].registry.wishes.values()
        return self._transfer(state, now, Transfer(topic, chosen, cluster.attempted, deque(wishes)))

    def _transfer(self, state: State, now: Instant, transfer: Transfer) -> list[Effect]:
        state.transfers[transfer.topic] = transfer
        return transfer.go_on(now + self.deployment.reliable.rto)

    def changed(self, state: State, wish: Wish) -> None:
        """The table changes while it is handed over."""
        if wish.topic in state.transfers:
            state.transfers[wish.topic].queue.append(wish)

    def _again(self, state: State, topic: TopicId, now: Instant) -> list[Effect]:
        """A piece was not taken in time."""
        transfer = state.transfers.get(topic)
        if transfer is None:
            return []
        transfer.tries += 1
        if transfer.tries < TRIES:
            return transfer.say(now + self.deployment.reliable.rto)
        del state.transfers[topic]
        if topic not in state.clusters:
            return []
        state.clusters[topic].failed.add(transfer.to)
        return self._end_round(state, topic, now)

    def handover(self, state: State, now: Instant, sender: Peer, piece: Handover) -> list[Effect]:
        """A piece of a table comes; with the last one the role, if this node has it not yet."""
        known = self.known(state, piece.topic)
        if piece.term < known.term:
            return []
        taken = Send(sender, Taken(piece.topic, piece.term, piece.number), "taken")
        rn = state.rendezvous.get(piece.topic)
        if rn is not None and piece.term == known.term:
            _enter(rn.registry, piece, now)
            return [taken]
        incoming = state.incoming.get(piece.topic)
        if incoming is None or incoming.term != piece.term:
            topic = self.deployment.topics.by_id[piece.topic]
            incoming = state.incoming[piece.topic] = Incoming(piece.term, Registry(topic))
        if piece.number > incoming.expected:
            return []
        if piece.number == incoming.expected:
            incoming.expected += 1
            _enter(incoming.registry, piece, now)
            if piece.last:
                state.counted["terms"] += 1
                del state.incoming[piece.topic]
                for wish in rn.registry.wishes.values() if rn is not None else ():
                    incoming.registry.add(wish, now)
                begun = self._take(state, piece.topic, now, piece.term, Rendezvous(incoming.registry))
                return [taken, *begun]
        return [taken]

    def taken(self, state: State, now: Instant, taken: Taken) -> list[Effect]:
        """A piece has arrived; after the last one the role is gone."""
        transfer = state.transfers.get(taken.topic)
        if transfer is None or (transfer.term, transfer.number) != (taken.term, taken.number):
            return []
        if transfer.queue:
            return transfer.go_on(now + self.deployment.reliable.rto)
        role = Role(taken.topic, transfer.term, transfer.to)
        given = self.role(state, now, transfer.to, role) if transfer.role else []
        del state.transfers[taken.topic]
        return [CancelTimer(f"handover/{taken.topic}"), *given]


def _enter(registry: Registry, piece: Handover, now: Instant) -> None:
    for wish in piece.wishes:
        registry.add(wish, now) if isinstance(wish, Subscribe) else registry.remove(wish)


def subscribe_again(state: State, topic: TopicId, now: Instant) -> list[Effect]:
    """All readers of a topic say what they want, as often as at first."""
    effects: list[Effect] = []
    for number, reader in state.readers.items():
        if reader.wish.topic == topic:
            reader.said = 0
            effects.append(SetTimer(f"subscribe/{number}", now))
    return effects
