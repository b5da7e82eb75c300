"""EATDDS: the role of rendezvous node moves to the cluster's node with the most energy.  [D46–D51]

The thesis defines energy reports, rounds and the rule. The parts that it leaves out (spec §7, 18) are decided
here.

* *Rounds* are started by the main RN (the hash), so they are common to all nodes; the RN of the round
  elects the next. If the main RN is silent for half a round too long, the RN of the round does not wait for
  it.
* *Terms* number the holders of a role. Of two claims the later term counts, and a node with an earlier one
  is corrected.
* *Hand-over*: the old RN sends its table in pieces, each until it is confirmed; with the last one the role
  moves. Until then the old RN serves, so every acknowledged sample has reached all subscribers. If the next
  RN does not answer, the second best is asked.
* *Redirection*: a former RN forwards messages that still arrive and informs the sender. The main RN (the
  hash) always knows the holder, so a late joiner finds it.
* *Failure*: an RN sends periodic signs of life. If three are missing and it does not answer a question, the
  main RN takes the role, or the first publisher that is alive. It calls for subscriptions and sends no ACKs
  until they had time to arrive; so does a restarted RN. Signs list the readers for possible successors, so
  a successor waits for all of them, up to a lease.
* *Lost subscribers*: signs go to the readers in the table. A subscriber that receives none for long
  subscribes again.
"""

from __future__ import annotations

from collections import deque

import msgspec
from msgspec.structs import replace

from ....model.instant import BEGINNING, SECOND, Instant
from ....model.protocol import EVERYBODY, CancelTimer, Effect, Peer, Send, SetTimer
from .cluster import EnergyCluster, IncomingTransfer, RoleHolder, TableTransfer, Wish, elect
from .deployment import DdsDeployment
from .message import (
    DataMessage,
    DdsSubscribe,
    DdsTaken,
    EnergyUpdate,
    NewRound,
    Role,
    TableHandover,
    cause_of,
)
from .registry import SubscriptionTable
from .rendezvous import Rendezvous
from .state import DdsState
from .topic import TopicId

SIGNS = 3
"""After this many missing signs of life an RN counts as dead."""
TRIES = 10
"""How often a piece of a hand-over is sent, or an RN asked, before giving up."""
MOST_HOPS = 4
"""How often a message is forwarded from RN to RN; a longer path would be a cycle."""


class EatddsRotation(msgspec.Struct, frozen=True):
    """The part of one node in the rotation of roles."""

    deployment: DdsDeployment
    me: Peer

    # Who has the role.

    def holder(self, state: DdsState, topic: TopicId) -> RoleHolder:
        """Return the holder of a role as known here; initially the main RN."""
        return state.roles.get(topic, RoleHolder(0, self.deployment.rendezvous(topic)))

    def start(self, state: DdsState, now: Instant) -> list[Effect]:
        """Start as main RN or as watcher.

        A main RN sends no ACKs at first: it may have been restarted while other nodes know a later holder.
        """
        effects: list[Effect] = []
        for topic in self.deployment.topics:
            if self.deployment.rendezvous(topic.id) == self.me:
                effects.append(self._timer("round", topic.id, now))
                effects += self._take_role(
                    state, topic.id, now, 0, self._silent_rendezvous(SubscriptionTable(topic), now)
                )
            else:
                effects += self._watch_holder(state, topic.id, now)
        return effects

    def _find_table(self, state: DdsState, topic: TopicId, now: Instant) -> list[Effect]:
        """Subscribe again at the main RN and its successors: without signs, this subscriber is in no
        table."""
        if topic in state.rendezvous or not any(True for _ in state.of_topic(topic)):
            return []
        again = subscribe_again(state, topic, now)
        effects = [*again, *self.on_sign(state, topic, now)]
        state.without_table.add(topic)
        return effects

    def forward_to_holder(
        self, state: DdsState, message: DataMessage | Wish | EnergyUpdate, asker: Peer
    ) -> list[Effect]:
        """Forward a message to the RN and tell the sender which node that is."""
        topic = message.name.stream.topic if isinstance(message, DataMessage) else message.topic
        known = self.holder(state, topic)
        if message.hops >= MOST_HOPS or known.node == self.me:
            state.counted["gone in circles"] += 1
            return []
        onward = replace(message, hops=message.hops + 1)
        return [Send(known.node, onward, cause_of(message)), *self._inform(asker, topic, known)]

    def on_role(self, state: DdsState, now: Instant, sender: Peer, role: Role) -> list[Effect]:
        """Handle NEW-RN, or a question to an RN that may have been restarted and lost its role."""
        topic, claimed = role.topic, RoleHolder(role.term, role.node)
        known = self.holder(state, topic)
        if sender == self.me:
            return []
        if claimed < known:
            is_concerned = sender in (role.node, known.node)
            return [Send(sender, Role(topic, *known), "role")] if is_concerned else []
        has_restarted = role.fresh and claimed == state.roles.get(topic) == RoleHolder(0, sender)
        state.roles[topic] = claimed
        if role.readers or (sender == role.node and not role.fresh):
            state.predecessors[topic] = role.readers
        if role.node == self.me:
            return self._on_question(state, now, sender, role, later=claimed > known)
        effects: list[Effect] = []
        if claimed > known:
            effects += self._resign(state, topic, now, claimed)
            if role.fresh:
                effects += subscribe_again(state, topic, now)
        if sender == role.node:
            effects += [*self._watch_holder(state, topic, now), *self.on_sign(state, topic, now)]
        if has_restarted:
            readers = state.predecessors.get(topic, ())
            effects.append(Send(sender, Role(topic, *claimed, readers=readers), "role"))
        return effects

    def _on_question(
        self, state: DdsState, now: Instant, sender: Peer, role: Role, later: bool
    ) -> list[Effect]:
        """Handle a message that names this node as RN; if it has lost its table, subscribers must subscribe
        again."""
        rn = state.rendezvous.get(role.topic)
        if rn is None or later or (role.term == 0 and now < rn.silent_until):
            return self._take_over(state, role.topic, now)
        return [Send(sender, role, "role")]

    def on_sign(self, state: DdsState, topic: TopicId, now: Instant) -> list[Effect]:
        """Record a sign of life of the RN; if these stop, the subscriber will subscribe again."""
        state.without_table.discard(topic)
        if not any(True for _ in state.of_topic(topic)):
            return []
        return [SetTimer(f"lonely/{topic}", now + (SIGNS + 1) * self.deployment.rotation.sign)]

    def on_timer(self, state: DdsState, now: Instant, kind: str, topic: TopicId) -> list[Effect]:
        """Handle a timer of the rotation."""
        match kind:
            case "handover":
                return self._repeat_piece(state, topic, now)
            case "lonely":
                return self._find_table(state, topic, now)
            case "watch" if topic not in state.rendezvous:
                return self._suspect(state, topic, now)
            case "round":
                return [self._timer("round", topic, now), *self._begin_round(state, topic, now)]
            case "overdue":
                return self.on_round(state, topic, now)
            case "sign" if topic in state.clusters:
                return [*self._announce(state, topic), self._timer("sign", topic, now)]
            case "fresh" if topic in state.rendezvous and now < state.rendezvous[topic].silent_until:
                return self._call(state, topic, now)
        return []

    def _timer(self, kind: str, topic: TopicId, now: Instant) -> SetTimer:
        """Return the effect that sets a timer of the rotation."""
        terms = self.deployment.rotation
        overdue = terms.round * 3 // 2
        length = {"round": terms.round, "overdue": overdue, "sign": terms.sign, "fresh": SECOND}[kind]
        return SetTimer(f"{kind}/{topic}", now + length)

    def _watch_holder(self, state: DdsState, topic: TopicId, now: Instant) -> list[Effect]:
        """Wait for the next signs of life as a possible successor; later ones wait longer."""
        successors = self.deployment.successors(topic)
        state.suspected.pop(topic, None)
        if self.me not in successors or topic in state.rendezvous:
            return []
        patience = (SIGNS + successors.index(self.me)) * self.deployment.rotation.sign
        return [SetTimer(f"watch/{topic}", now + patience)]

    def _silent_rendezvous(self, registry: SubscriptionTable, now: Instant) -> Rendezvous:
        """Return an RN that sends no ACKs for a while."""
        return Rendezvous(registry, silent_until=now + self.deployment.rotation.settle)

    def _take_role(
        self, state: DdsState, topic: TopicId, now: Instant, term: int, rendezvous: Rendezvous
    ) -> list[Effect]:
        """Take the role."""
        state.rendezvous[topic] = rendezvous
        state.clusters[topic] = EnergyCluster(attempted=term)
        state.roles[topic] = RoleHolder(term, self.me)
        timers = [self._timer("overdue", topic, now), self._timer("sign", topic, now)]
        announced = self._announce(state, topic, fresh=rendezvous.silent_until > BEGINNING)
        return [CancelTimer(f"watch/{topic}"), *timers, *announced]

    def _suspect(self, state: DdsState, topic: TopicId, now: Instant) -> list[Effect]:
        """Ask an RN without signs of life, and take its role if it never answers."""
        asked = state.suspected[topic] = state.suspected.get(topic, 0) + 1
        if asked > TRIES:
            return self._take_over(state, topic, now)
        role = Role(topic, *self.holder(state, topic))
        return [Send(role.node, role, cause_of(role)), SetTimer(f"watch/{topic}", now + SECOND)]

    def _take_over(self, state: DdsState, topic: TopicId, now: Instant) -> list[Effect]:
        """Take the role of an RN that is dead or has lost its table."""
        state.counted["taken over"] += 1
        term = self.holder(state, topic).term + 1
        rn = state.rendezvous.get(topic)
        registry = SubscriptionTable(self.deployment.topics.by_id[topic]) if rn is None else rn.registry
        rendezvous = self._silent_rendezvous(registry, now)
        if (lease := self.deployment.discovery.lease) is not None:
            rendezvous.expected = set(state.predecessors.get(topic, ()))
            rendezvous.expected_until = now + lease
        role_effects = self._take_role(state, topic, now, term, rendezvous)
        return [*role_effects, *self._call(state, topic, now), *subscribe_again(state, topic, now)]

    def _call(self, state: DdsState, topic: TopicId, now: Instant) -> list[Effect]:
        """Ask all subscribers to subscribe again."""
        role = Role(topic, *self.holder(state, topic), fresh=True)
        return [Send(EVERYBODY, role, cause_of(role)), self._timer("fresh", topic, now)]

    def _resign(self, state: DdsState, topic: TopicId, now: Instant, to: RoleHolder) -> list[Effect]:
        """Give up the role; send the table to the new RN unless a hand-over is in progress."""
        rn = state.rendezvous.pop(topic, None)
        state.clusters.pop(topic, None)
        if rn is None:
            return []
        timers: list[Effect] = [CancelTimer(f"{kind}/{topic}") for kind in ("overdue", "sign", "fresh")]
        timers += [*self._watch_holder(state, topic, now), *self.on_sign(state, topic, now)]
        transfer, wishes = state.transfers.get(topic), rn.registry.wishes.values()
        if not wishes or (transfer is not None and transfer.to == to.node):
            return timers
        going = TableTransfer(topic, to.node, to.term, deque(wishes), role=False)
        return [*timers, *self._transfer(state, now, going)]

    def _announce(self, state: DdsState, topic: TopicId, fresh: bool = False) -> list[Effect]:
        """Send the holder of the role to the cluster and to possible successors."""
        role = Role(topic, *self.holder(state, topic), fresh)
        successors = self.deployment.successors(topic)
        role_with_readers = replace(role, readers=tuple(state.rendezvous[topic].registry.subscribers()))
        receivers = dict.fromkeys([*successors, *self._members(state, topic)])
        return [
            Send(peer, role_with_readers if peer in successors else role, cause_of(role))
            for peer in receivers
            if peer != self.me
        ]

    def _inform(self, peer: Peer, topic: TopicId, known: RoleHolder) -> list[Effect]:
        """Send the holder of the role to a peer that is not the holder."""
        role = Role(topic, *known)
        return [Send(peer, role, cause_of(role))] if peer not in (self.me, known.node) else []

    def _members(self, state: DdsState, topic: TopicId) -> list[Peer]:
        """Return the cluster: the RN, its publishers and its subscribers.  [D46]"""
        subscribers = state.rendezvous[topic].registry.subscribers()
        return list(dict.fromkeys([self.me, *self.deployment.publishers_of(topic), *subscribers]))

    # Energy.

    def report_energy(self, state: DdsState, now: Instant, joules: float) -> list[Effect]:
        """Record the node's own energy and report it to all rendezvous nodes.  [D47]"""
        state.joules = joules
        for cluster in state.clusters.values():
            cluster.energies[self.me] = (joules, now)
        topics = [topic.id for topic in self.deployment.topics if self._reports(state, topic.id)]
        holders = {self.holder(state, topic).node: topic for topic in reversed(topics)}
        return [
            Send(node, EnergyUpdate(topic, self.me, joules), "energy")
            for node, topic in holders.items()
            if node != self.me
        ]

    def _reports(self, state: DdsState, topic: TopicId) -> bool:
        """Whether this node reports its energy for a topic."""
        return (
            self.deployment.rotation.reporters == "all"
            or self.me in self.deployment.publishers_of(topic)
            or any(True for _ in state.of_topic(topic))
        )

    def on_energy(self, state: DdsState, now: Instant, report: EnergyUpdate) -> list[Effect]:
        """Handle ENERGY UPDATE of another node."""
        if report.topic not in state.clusters:
            return self.forward_to_holder(state, report, report.node)
        for cluster in state.clusters.values():
            cluster.energies[report.node] = (report.joules, now)
        return []

    # Rounds and hand-over.

    def _begin_round(self, state: DdsState, topic: TopicId, now: Instant) -> list[Effect]:
        """Start a round as main RN, whichever node has the role.  [D48]"""
        if topic in state.clusters:
            return self.on_round(state, topic, now)
        return [Send(self.holder(state, topic).node, NewRound(topic), "round")]

    def on_round(self, state: DdsState, topic: TopicId, now: Instant) -> list[Effect]:
        """End the round if this node has the role."""
        if topic not in state.clusters:
            return []
        state.clusters[topic].failed.clear()
        return self._end_round(state, topic, now)

    def _end_round(self, state: DdsState, topic: TopicId, now: Instant) -> list[Effect]:
        """Nominate the node with the most energy; continue if that is this node.  [D49]"""
        terms, cluster = self.deployment.rotation, state.clusters[topic]
        if topic in state.transfers:
            return []
        members = self._members(state, topic)
        fresh = {
            peer: joules
            for peer, (joules, at) in cluster.energies.items()
            if peer in members and peer not in cluster.failed and at >= now - 2 * terms.reports
        }
        chosen = elect(fresh | {self.me: state.joules}, terms.slack, self.deployment.positions, members)
        if chosen == self.me:
            return [self._timer("overdue", topic, now)]
        cluster.attempted += 1
        wishes = state.rendezvous[topic].registry.wishes.values()
        return self._transfer(state, now, TableTransfer(topic, chosen, cluster.attempted, deque(wishes)))

    def _transfer(self, state: DdsState, now: Instant, transfer: TableTransfer) -> list[Effect]:
        """Start a hand-over."""
        state.transfers[transfer.topic] = transfer
        return transfer.send_next(now + self.deployment.reliable.rto)

    def on_table_changed(self, state: DdsState, wish: Wish) -> None:
        """Append a change of the table to a hand-over in progress."""
        if wish.topic in state.transfers:
            state.transfers[wish.topic].queue.append(wish)

    def _repeat_piece(self, state: DdsState, topic: TopicId, now: Instant) -> list[Effect]:
        """Repeat a piece that was not confirmed in time, or give up and choose another node."""
        transfer = state.transfers.get(topic)
        if transfer is None:
            return []
        transfer.tries += 1
        if transfer.tries < TRIES:
            return transfer.send_piece(now + self.deployment.reliable.rto)
        del state.transfers[topic]
        if topic not in state.clusters:
            return []
        state.clusters[topic].failed.add(transfer.to)
        return self._end_round(state, topic, now)

    def on_handover(self, state: DdsState, now: Instant, sender: Peer, piece: TableHandover) -> list[Effect]:
        """Handle a piece of a table; with the last one take the role if this node does not have it."""
        known = self.holder(state, piece.topic)
        if piece.term < known.term:
            return []
        taken = Send(sender, DdsTaken(piece.topic, piece.term, piece.number), "taken")
        rn = state.rendezvous.get(piece.topic)
        if rn is not None and piece.term == known.term:
            _apply_piece(rn.registry, piece, now)
            return [taken]
        incoming = state.incoming.get(piece.topic)
        if incoming is None or incoming.term != piece.term:
            topic = self.deployment.topics.by_id[piece.topic]
            incoming = state.incoming[piece.topic] = IncomingTransfer(piece.term, SubscriptionTable(topic))
        if piece.number > incoming.expected:
            return []
        if piece.number == incoming.expected:
            incoming.expected += 1
            _apply_piece(incoming.registry, piece, now)
            if piece.last:
                state.counted["terms"] += 1
                del state.incoming[piece.topic]
                for wish in rn.registry.wishes.values() if rn is not None else ():
                    incoming.registry.add(wish, now)
                role_effects = self._take_role(
                    state, piece.topic, now, piece.term, Rendezvous(incoming.registry)
                )
                return [taken, *role_effects]
        return [taken]

    def on_taken(self, state: DdsState, now: Instant, taken: DdsTaken) -> list[Effect]:
        """Handle the confirmation of a piece; after the last one the role is gone."""
        transfer = state.transfers.get(taken.topic)
        if transfer is None or (transfer.term, transfer.number) != (taken.term, taken.number):
            return []
        if transfer.queue:
            return transfer.send_next(now + self.deployment.reliable.rto)
        role = Role(taken.topic, transfer.term, transfer.to)
        effects = self.on_role(state, now, transfer.to, role) if transfer.role else []
        del state.transfers[taken.topic]
        return [CancelTimer(f"handover/{taken.topic}"), *effects]


def _apply_piece(registry: SubscriptionTable, piece: TableHandover, now: Instant) -> None:
    """Apply the entries of a piece to a table."""
    for wish in piece.wishes:
        registry.add(wish, now) if isinstance(wish, DdsSubscribe) else registry.remove(wish)


def subscribe_again(state: DdsState, topic: TopicId, now: Instant) -> list[Effect]:
    """Repeat the subscriptions of all readers of a topic, as often as at first."""
    effects: list[Effect] = []
    for number, reader in state.readers.items():
        if reader.wish.topic == topic:
            reader.times_sent = 0
            effects.append(SetTimer(f"subscribe/{number}", now))
    return effects
