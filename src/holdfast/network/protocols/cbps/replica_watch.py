"""The replica of a state filter that a broker runs for one of its connections.

A broker sends the subscription to connections above. It also sends each of them the scopes that have
publishers elsewhere too. So every broker knows for which scopes it receives all events.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ....model.protocol import Peer, Send
from .condition import ReplicatedCondition
from .content import Content, Filter
from .message import (
    ConditionMessage,
    Interruption,
    ScopePlacement,
    StateAnswer,
    StateRequest,
    SubscriptionRef,
)
from .replica import ConditionInput, FilterReplica, condition_input
from .routing import StoredBundle
from .scopes import NO_SCOPES, ScopeReach, Scopes, from_wire, to_wire
from .watch import ConditionWatch, Emitter


@dataclass(slots=True, eq=False)
class ReplicaWatch(ConditionWatch):
    """A watch that filters events with a replica.

    It stores the scopes that each other connection reaches, and the placement last sent to each. ``must_ask``
    is true while the bits of scopes have to be requested.
    """

    part: SubscriptionRef
    stored: StoredBundle
    condition: ReplicatedCondition
    replica: FilterReplica = field(init=False)
    reach: ScopeReach = field(default_factory=ScopeReach)
    sent_placements: dict[Peer, Scopes] = field(default_factory=dict)
    must_ask: bool = False

    def __post_init__(self) -> None:
        self.replica = FilterReplica(self.condition)

    # --- advertisements ---

    def add_advertisement(self, peer: Peer, advertised: Filter) -> None:
        new = self.reach.add(peer, self._scopes(advertised))
        self.must_ask |= new != NO_SCOPES and self.replica.forget_bits(new)

    def remove_advertisement(self, peer: Peer, advertised: Filter) -> None:
        self.reach.remove(peer, self._scopes(advertised))

    def _scopes(self, advertised: Filter) -> Scopes:
        """Return the scopes of the events that satisfy both the advertisement and the subscription."""
        subscription = self.subscription.filter
        return self.condition.reach(Filter((*advertised.constraints, *subscription.constraints)))

    def notify_peers(self, emitter: Emitter) -> None:
        """Send changed placements to the connections above and request unknown bits from below."""
        if self.must_ask:
            self.must_ask = False
            self._ask(emitter)
        for peer in self.stored.sent:
            scopes = self._placement(peer)
            if self.sent_placements.get(peer) != scopes:
                self.sent_placements[peer] = scopes
                emitter.emit(Send(peer, ScopePlacement(self.part, to_wire(scopes))))

    def _placement(self, peer: Peer) -> Scopes:
        """Return the shared scopes to send to a connection above; all scopes if the subscription is flooded
        there.
        """
        if self.subscription.flood_forward or self.replica.shared is None:
            return None
        return self.reach.shared(peer, self.replica.shared)

    def must_stay_at(self, _peer: Peer) -> bool:
        return False

    def on_withdrawn(self, peer: Peer) -> None:
        self.sent_placements.pop(peer, None)

    def on_left(self, peer: Peer, emitter: Emitter) -> None:
        """Report the scopes that a lost connection reached as unknown."""
        self._interrupt(None if self.is_flooded_to(peer) else self.reach.through(peer), emitter)
        self.sent_placements.pop(peer, None)

    # --- events ---

    def view_of(self, content: Content) -> ConditionInput | None:
        return condition_input(self.condition, content)

    def should_forward(self, view: ConditionInput, _sender: Peer, _emitter: Emitter) -> bool:
        return self.replica.passes(view)

    def on_forwarded(self, view: ConditionInput, emitter: Emitter) -> None:
        if self.replica.record_output(view):
            self._ask(emitter)

    def on_undelivered(self, view: ConditionInput, emitter: Emitter) -> None:
        """Report the scopes of an undelivered event as unknown and request their bits again."""
        if not view.keys:
            return
        scopes = frozenset(view.keys)
        self._interrupt(scopes, emitter)
        self.must_ask |= self.replica.forget_bits(scopes)
        self.notify_peers(emitter)

    # --- messages between replicas ---

    def on_subscriber_message(self, message: ConditionMessage, emitter: Emitter) -> None:
        match message:
            case ScopePlacement(_, shared):
                self.must_ask |= self.replica.set_shared(from_wire(shared))
                self.notify_peers(emitter)
            case StateAnswer(_, number, bits, doubted) if self.replica.on_answer(number, bits, doubted):
                self.notify_peers(emitter)

    def on_publisher_message(self, sender: Peer, message: ConditionMessage, emitter: Emitter) -> None:
        match message:
            case StateRequest(of, number):
                bits, doubted = sorted(self.replica.bits), sorted(self.replica.uncertain_bits)
                emitter.emit(Send(sender, StateAnswer(of, number, tuple(bits), tuple(doubted))))
            case Interruption(_, scopes):
                self._interrupt(from_wire(scopes), emitter)

    def _ask(self, emitter: Emitter) -> None:
        """Request the bits from the next replica towards the subscriber."""
        emitter.emit(Send(self.peer, StateRequest(self.part, self.replica.ask())))

    def _interrupt(self, scopes: Scopes, emitter: Emitter) -> None:
        """Mark scopes as uncertain, because events may be lost, and inform the subscriber."""
        if scopes == NO_SCOPES:
            return
        self.replica.mark_uncertain(scopes)
        emitter.emit(Send(self.peer, Interruption(self.part, to_wire(scopes))))
        if self.replica.record_output(scopes):
            self._ask(emitter)
