"""EATDDS: the role of rendezvous node (RN) moves to the cluster's node with the most energy. [D46–D51]

The thesis defines energy reports, rounds and the rule of election. This module decides the parts that the
thesis leaves open (spec §7, 18).

* *Rounds* are started by the main RN (the hash), so they are common to all nodes. The RN of the round elects
  the next RN. If the main RN is silent for half a round too long, the RN of the round does not wait for it.
* *Terms* number the holders of a role. Of two claims the later term counts. A node with an earlier term is
  corrected.
* *Hand-over*: the old RN sends its table in pieces and repeats each until it is confirmed. With the last
  piece the role moves. Until then the old RN serves, so every acknowledged sample has reached all
  subscribers. If the next RN does not answer, the node with the second most energy is asked.
* *Redirection*: a former RN forwards messages that still arrive and informs the sender. The main RN (the
  hash) always knows the holder, so a late joiner finds it.
* *Failure*: an RN sends periodic signs of life. If three are missing and it does not answer a question, the
  main RN takes the role, or the first publisher that is alive. The new RN calls for subscriptions and sends
  no ACKs until these had time to arrive. So does a restarted RN. Signs list the readers for possible
  successors, so a successor waits for all of them, up to a lease.
* *Lost subscribers*: signs go to the readers in the table. A subscriber that receives no sign for too long
  subscribes again.
"""

from __future__ import annotations

from collections import deque

from msgspec.structs import replace

from ....model.instant import BEGINNING, SECOND
from ....model.protocol import EVERYBODY, CancelTimer, Peer
from .cluster import EnergyCluster, IncomingTransfer, RoleHolder, TableTransfer, Wish, elect
from .message import (
    ENTRIES,
    DataMessage,
    DdsTaken,
    EnergyUpdate,
    NewRound,
    Role,
    TableHandover,
    topic_of,
)
from .registry import SubscriptionTable
from .rendezvous import Rendezvous
from .request import ResidualEnergy
from .step import DdsStep
from .topic import TopicId

SIGNS = 3
"""The number of missing signs of life after which an RN counts as dead."""
TRIES = 10
"""The number of times that a piece of a hand-over is sent, or an RN is asked, before the node gives up."""
MOST_HOPS = 4
"""The number of times that a message is forwarded from RN to RN. A longer path would be a cycle."""


class RotationStep(DdsStep):
    """Handles the inputs of a node that concern the rotation of roles."""

    # Who has the role.

    def holder(self, topic: TopicId) -> RoleHolder:
        """Return the known holder of a role. Initially, and in other modes always, it is the main RN."""
        return self.state.roles.get(topic, RoleHolder(0, self.deployment.rendezvous(topic)))

    def start_rotation(self) -> None:
        """Start as main RN or as possible successor of topics.

        A main RN sends no ACKs at first, because it may have restarted while other nodes know a later holder.
        """
        for topic in self.deployment.topics:
            if self.deployment.rendezvous(topic.id) == self.me:
                self._start_timer("round", topic.id)
                self._take_role(topic.id, 0, self._silent_rendezvous(SubscriptionTable(topic)))
            else:
                self._watch_holder(topic.id)

    def _find_table(self, topic: TopicId) -> None:
        """Subscribe again at the main RN and its successors. Without signs of life, this subscriber is in no
        table.
        """
        if topic not in self.state.rendezvous and self.state.reads(topic):
            self.subscribe_again(topic)
            self.on_sign(topic)
            self.state.without_table.add(topic)

    def forward_to_holder(self, message: DataMessage | Wish | EnergyUpdate, asker: Peer) -> None:
        """Forward a message to the RN, and inform the message's sender of that node."""
        topic = topic_of(message)
        known = self.holder(topic)
        if message.hops >= MOST_HOPS or known.node == self.me:
            self.state.counted["gone in circles"] += 1
            return
        self.send(known.node, replace(message, hops=message.hops + 1))
        if asker not in (self.me, known.node):
            self.send(asker, Role(topic, *known))

    def on_role(self, sender: Peer, role: Role) -> None:
        """Handle NEW-RN, or a question to an RN that may have restarted and lost its role."""
        topic, claimed, state = role.topic, RoleHolder(role.term, role.node), self.state
        known = self.holder(topic)
        if sender == self.me:
            return
        if claimed < known:
            if sender in (role.node, known.node):
                self.send(sender, Role(topic, *known))
            return
        has_restarted = role.fresh and claimed == state.roles.get(topic) == RoleHolder(0, sender)
        state.roles[topic] = claimed
        if role.readers or (sender == role.node and not role.fresh):
            state.predecessors[topic] = role.readers
        if role.node == self.me:
            self._on_question(sender, role, later=claimed > known)
            return
        if claimed > known:
            self._resign(topic, claimed)
            if role.fresh:
                self.subscribe_again(topic)
        if sender == role.node:
            self._watch_holder(topic)
            self.on_sign(topic)
        if has_restarted:
            self.send(sender, Role(topic, *claimed, readers=state.predecessors.get(topic, ())))

    def _on_question(self, sender: Peer, role: Role, later: bool) -> None:
        """Handle a message that names this node as RN. If this node has lost its table, subscribers must
        subscribe again.
        """
        rn = self.state.rendezvous.get(role.topic)
        if rn is None or later or (role.term == 0 and self.now < rn.silent_until):
            self._take_over(role.topic)
        else:
            self.send(sender, role)

    def on_sign(self, topic: TopicId) -> None:
        """Record a sign of life of the RN. If signs stop, the subscriber will subscribe again."""
        self.state.without_table.discard(topic)
        if self.state.reads(topic):
            self.set_timer(f"lonely/{topic}", (SIGNS + 1) * self.deployment.rotation.sign)

    def on_rotation_timer(self, kind: str, topic: TopicId) -> None:
        """Dispatch a timer of the rotation of roles, for a topic."""
        state = self.state
        match kind:
            case "handover":
                self._repeat_piece(topic)
            case "lonely":
                self._find_table(topic)
            case "watch" if topic not in state.rendezvous:
                self._suspect(topic)
            case "round":
                self._start_timer("round", topic)
                self._begin_round(topic)
            case "overdue":
                self._on_round_over(topic)
            case "sign" if topic in state.clusters:
                self._announce(topic)
                self._start_timer("sign", topic)
            case "fresh" if topic in state.rendezvous and self.now < state.rendezvous[topic].silent_until:
                self._call_subscribers(topic)

    def _start_timer(self, kind: str, topic: TopicId) -> None:
        """Set a timer of the rotation of roles, with the delay of its kind."""
        terms = self.deployment.rotation
        overdue = terms.round * 3 // 2
        delays = {"round": terms.round, "overdue": overdue, "sign": terms.sign, "fresh": SECOND}
        self.set_timer(f"{kind}/{topic}", delays[kind])

    def _watch_holder(self, topic: TopicId) -> None:
        """Wait for the next signs of life as a possible successor. Later successors wait longer."""
        successors = self.deployment.successors(topic)
        self.state.suspected.pop(topic, None)
        if self.me in successors and topic not in self.state.rendezvous:
            signs = SIGNS + successors.index(self.me)
            self.set_timer(f"watch/{topic}", signs * self.deployment.rotation.sign)

    def _silent_rendezvous(self, registry: SubscriptionTable) -> Rendezvous:
        """Return the state of an RN that sends no ACKs until its table can be complete."""
        return Rendezvous(registry, silent_until=self.now + self.deployment.rotation.settle)

    def _take_role(self, topic: TopicId, term: int, rendezvous: Rendezvous) -> None:
        """Take the role of RN for a topic in a term."""
        self.state.rendezvous[topic] = rendezvous
        self.state.clusters[topic] = EnergyCluster(attempted=term)
        self.state.roles[topic] = RoleHolder(term, self.me)
        self.emit(CancelTimer(f"watch/{topic}"))
        self._start_timer("overdue", topic)
        self._start_timer("sign", topic)
        self._announce(topic, fresh=rendezvous.silent_until > BEGINNING)

    def _suspect(self, topic: TopicId) -> None:
        """Ask an RN without signs of life whether it is alive. Take its role if it never answers."""
        asked = self.state.suspected[topic] = self.state.suspected.get(topic, 0) + 1
        if asked > TRIES:
            self._take_over(topic)
        else:
            known = self.holder(topic)
            self.send(known.node, Role(topic, *known))
            self.set_timer(f"watch/{topic}", SECOND)

    def _take_over(self, topic: TopicId) -> None:
        """Take the role of an RN that is dead or has lost its table."""
        state = self.state
        state.counted["taken over"] += 1
        rn = state.rendezvous.get(topic)
        table = SubscriptionTable(self.deployment.topics.by_id[topic]) if rn is None else rn.registry
        rendezvous = self._silent_rendezvous(table)
        if (lease := self.deployment.discovery.lease) is not None:
            rendezvous.expected = set(state.predecessors.get(topic, ()))
            rendezvous.expected_until = self.now + lease
        self._take_role(topic, self.holder(topic).term + 1, rendezvous)
        self._call_subscribers(topic)
        self.subscribe_again(topic)

    def _call_subscribers(self, topic: TopicId) -> None:
        """Ask all subscribers of a topic to subscribe again."""
        self.send(EVERYBODY, Role(topic, *self.holder(topic), fresh=True))
        self._start_timer("fresh", topic)

    def _resign(self, topic: TopicId, to: RoleHolder) -> None:
        """Give up the role. Send the table to the new RN unless a hand-over is in progress."""
        rn = self.state.rendezvous.pop(topic, None)
        self.state.clusters.pop(topic, None)
        if rn is None:
            return
        for kind in ("overdue", "sign", "fresh"):
            self.emit(CancelTimer(f"{kind}/{topic}"))
        self._watch_holder(topic)
        self.on_sign(topic)
        transfer, wishes = self.state.transfers.get(topic), rn.registry.wishes.values()
        if wishes and (transfer is None or transfer.to != to.node):
            self._transfer(TableTransfer(topic, to.node, to.term, deque(wishes), role=False))

    def _announce(self, topic: TopicId, fresh: bool = False) -> None:
        """Send the identity of the holder to the cluster and to possible successors."""
        role = Role(topic, *self.holder(topic), fresh)
        successors = self.deployment.successors(topic)
        with_readers = replace(role, readers=tuple(self.state.rendezvous[topic].registry.subscribers()))
        for peer in dict.fromkeys([*successors, *self._members(topic)]):
            if peer != self.me:
                self.send(peer, with_readers if peer in successors else role)

    def _members(self, topic: TopicId) -> list[Peer]:
        """Return the cluster: the RN, its publishers and its subscribers.  [D46]"""
        subscribers = self.state.rendezvous[topic].registry.subscribers()
        return list(dict.fromkeys([self.me, *self.deployment.publishers_of(topic), *subscribers]))

    def subscribe_again(self, topic: TopicId) -> None:
        """Repeat the subscriptions of all readers of a topic, as often as new subscriptions."""
        for number, reader in self.state.readers.items():
            if reader.wish.topic == topic:
                reader.times_sent = 0
                self.set_timer(f"subscribe/{number}", 0)

    # Energy.

    def report_energy(self, asked: ResidualEnergy) -> None:
        """Record the node's own energy and report it to all rendezvous nodes.  [D47]"""
        if not self.mode.rotates:
            return
        self.state.joules = asked.joules
        for cluster in self.state.clusters.values():
            cluster.energies[self.me] = (asked.joules, self.now)
        topics = [topic.id for topic in self.deployment.topics if self._reports(topic.id)]
        for node, topic in {self.holder(topic).node: topic for topic in reversed(topics)}.items():
            if node != self.me:
                self.send(node, EnergyUpdate(topic, self.me, asked.joules))

    def _reports(self, topic: TopicId) -> bool:
        """Whether this node reports its energy for a topic."""
        return (
            self.deployment.rotation.reporters == "all"
            or self.me in self.deployment.publishers_of(topic)
            or self.state.reads(topic)
        )

    def on_energy(self, _sender: Peer, report: EnergyUpdate) -> None:
        """Handle ENERGY UPDATE of another node: record it as RN, or forward it to the RN."""
        if report.topic not in self.state.clusters:
            self.forward_to_holder(report, report.node)
            return
        for cluster in self.state.clusters.values():
            cluster.energies[report.node] = (report.joules, self.now)

    # Rounds and hand-over.

    def _begin_round(self, topic: TopicId) -> None:
        """Start a round as main RN, whichever node has the role. [D48]"""
        if topic in self.state.clusters:
            self._on_round_over(topic)
        else:
            self.send(self.holder(topic).node, NewRound(topic))

    def on_new_round(self, _sender: Peer, message: NewRound) -> None:
        """Handle NEW ROUND of the main RN: end the present round."""
        self._on_round_over(message.topic)

    def _on_round_over(self, topic: TopicId) -> None:
        """End the round if this node has the role."""
        if topic in self.state.clusters:
            self.state.clusters[topic].failed.clear()
            self._end_round(topic)

    def _end_round(self, topic: TopicId) -> None:
        """Elect the node with the most energy, and hand over the role unless it is this node. [D49]"""
        terms, cluster, state = self.deployment.rotation, self.state.clusters[topic], self.state
        if topic in state.transfers:
            return
        members = self._members(topic)
        fresh = {
            peer: joules
            for peer, (joules, at) in cluster.energies.items()
            if peer in members and peer not in cluster.failed and at >= self.now - 2 * terms.reports
        }
        chosen = elect(fresh | {self.me: state.joules}, terms.slack, self.deployment.positions, members)
        if chosen == self.me:
            self._start_timer("overdue", topic)
        else:
            cluster.attempted += 1
            wishes: deque[Wish] = deque(state.rendezvous[topic].registry.wishes.values())
            self._transfer(TableTransfer(topic, chosen, cluster.attempted, wishes))

    def _transfer(self, transfer: TableTransfer) -> None:
        """Start to hand over a table."""
        self.state.transfers[transfer.topic] = transfer
        self._send_next_piece(transfer)

    def _send_next_piece(self, transfer: TableTransfer) -> None:
        """Send the next piece of a table in a hand-over."""
        queue = transfer.queue
        transfer.piece = tuple(queue.popleft() for _ in range(min(ENTRIES, len(queue))))
        transfer.number += 1
        transfer.tries = 0
        self._send_piece(transfer)

    def _send_piece(self, transfer: TableTransfer) -> None:
        """Send the current piece of a table, and set the timer for its repetition."""
        topic, last = transfer.topic, transfer.role and not transfer.queue
        self.send(transfer.to, TableHandover(topic, transfer.term, transfer.number, transfer.piece, last))
        self.set_timer(f"handover/{topic}", self.deployment.reliable.rto)

    def on_table_changed(self, wish: Wish) -> None:
        """Append a change of the table to a hand-over in progress."""
        if wish.topic in self.state.transfers:
            self.state.transfers[wish.topic].queue.append(wish)

    def _repeat_piece(self, topic: TopicId) -> None:
        """Repeat a piece that was not confirmed in time, or give up and choose another node."""
        transfer = self.state.transfers.get(topic)
        if transfer is None:
            return
        transfer.tries += 1
        if transfer.tries < TRIES:
            self._send_piece(transfer)
            return
        del self.state.transfers[topic]
        if topic in self.state.clusters:
            self.state.clusters[topic].failed.add(transfer.to)
            self._end_round(topic)

    def on_handover(self, sender: Peer, piece: TableHandover) -> None:
        """Handle a piece of a table. With the last piece, take the role unless this node has it already."""
        state, known, topic = self.state, self.holder(piece.topic), piece.topic
        if piece.term < known.term:
            return
        taken = DdsTaken(topic, piece.term, piece.number)
        rn = state.rendezvous.get(topic)
        if rn is not None and piece.term == known.term:
            rn.registry.apply_all(piece.wishes, self.now)
            self.send(sender, taken)
            return
        incoming = state.incoming.get(topic)
        if incoming is None or incoming.term != piece.term:
            table = SubscriptionTable(self.deployment.topics.by_id[topic])
            incoming = state.incoming[topic] = IncomingTransfer(piece.term, table)
        if piece.number > incoming.expected:
            return
        self.send(sender, taken)
        if piece.number == incoming.expected:
            incoming.expected += 1
            incoming.registry.apply_all(piece.wishes, self.now)
            if piece.last:
                state.counted["terms"] += 1
                del state.incoming[topic]
                incoming.registry.apply_all(rn.registry.wishes.values() if rn is not None else (), self.now)
                self._take_role(topic, piece.term, Rendezvous(incoming.registry))

    def on_taken(self, _sender: Peer, taken: DdsTaken) -> None:
        """Handle the confirmation of a piece. After the last one, the role has moved."""
        topic = taken.topic
        transfer = self.state.transfers.get(topic)
        if transfer is None or (transfer.term, transfer.number) != (taken.term, taken.number):
            return
        if transfer.queue:
            self._send_next_piece(transfer)
            return
        self.emit(CancelTimer(f"handover/{topic}"))
        if transfer.role:
            self.on_role(transfer.to, Role(topic, transfer.term, transfer.to))
        del self.state.transfers[topic]
