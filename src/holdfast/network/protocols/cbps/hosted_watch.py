"""A condition that one broker evaluates: the broker furthest from the subscriber that receives all its
events.

A broker that is responsible for the condition checks through which connections its events come. If they come
through one connection, to a broker, it offers the state to that broker and relays its notifications.
Otherwise it evaluates the condition itself, on the events that the brokers above forward.

There is one state, at one broker or on its way between two. The offered broker accepts with a request, which
confirms that it has forwarded every earlier event. The broker that answers stops evaluating, and the broker
that requested the state has recorded later events. When advertisements change, a state is called back in the
same way. Messages of a connection arrive in order, so no event is lost and none is processed twice.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from ....errors import UsageError
from ....model.event import Event, Notification
from ....model.instant import Instant
from ....model.protocol import CancelTimer, Peer, Send, SetTimer
from .condition import HostedCondition
from .content import Content, Filter
from .message import (
    ConditionMessage,
    HostedNotification,
    Interruption,
    ScopePlacement,
    StateHandover,
    StateRequest,
    SubscriptionRef,
)
from .routing import StoredBundle
from .runner import ConditionRunner
from .watch import ConditionWatch, Emitter

StateLocation = Literal["below", "asked for", "here", "above", "called back"]
"""Where the state is, from the view of one broker. In ``asked for`` and ``called back`` it is on its way
here.
"""

PIECE = 1 << 16
"""The number of bytes of a state in one message."""
LARGEST = 1 << 26
"""The largest state, in bytes, that a broker accepts from another broker."""
LONGEST_RECORD = 10_000
"""The greatest number of events to record while the state is on its way here."""


@dataclass(slots=True, eq=False)
class HostedWatch(ConditionWatch):
    """A watch of a condition that this broker or a broker above evaluates.

    ``is_responsible`` is true while the subscriber's side leaves the evaluation to this broker or to the
    brokers above. ``placement_number`` is the number of the last placement that was sent above.
    ``advertisement_counts`` counts the relevant advertisements of each connection. ``peer_above`` is the
    connection above that has the state, that is offered it, or from which it is called back. A state that
    ``has_gap`` has missed an event and is discarded on arrival.
    """

    part: SubscriptionRef
    stored: StoredBundle
    condition: HostedCondition
    where: StateLocation = "below"
    is_responsible: bool = False
    placement_number: int = 0
    advertisement_counts: Counter[Peer] = field(default_factory=Counter)
    peer_above: Peer | None = None
    runner: ConditionRunner | None = None
    record: list[tuple[Instant, Event]] = field(default_factory=list)
    pieces: bytearray = field(default_factory=bytearray)
    has_gap: bool = False

    def __post_init__(self) -> None:
        context = self.stored.bundle.context
        assert context is not None
        if context.hop_count == 1:  # the subscriber itself is below
            self.is_responsible, self.where, self.runner = True, "here", ConditionRunner.start(self.condition)

    @property
    def timer(self) -> str:
        """The name of the timer of this watch."""
        return f"due {self.part.place} {self.part.bundle.sequence} {self.part.bundle.origin}"

    # --- advertisements ---

    def add_advertisement(self, peer: Peer, _advertised: Filter) -> None:
        self.advertisement_counts[peer] += 1

    def remove_advertisement(self, peer: Peer, _advertised: Filter) -> None:
        self.advertisement_counts[peer] -= 1
        self.advertisement_counts += Counter()  # without zeros

    def notify_peers(self, emitter: Emitter) -> None:
        """Offer the state, hand it over or call it back, as advertisements and the placement from below
        require.
        """
        above = self._only_source() if self.is_responsible else None
        if self.where == "above" and above != self.peer_above:
            self._call_back(emitter)
        elif self.where == "here":
            if above != self.peer_above:
                self._offer(above, emitter)
            if not self.is_responsible:
                self._hand_over(self.peer, "below", emitter)

    def _only_source(self) -> Peer | None:
        """Return the only connection from which events come; ``None`` unless it is a broker that can evaluate
        the condition.
        """
        if len(self.advertisement_counts) != 1 or self.subscription.flood_forward:
            return None
        (peer,) = self.advertisement_counts
        return peer if peer in self.stored.sent else None

    def _offer(self, above: Peer | None, emitter: Emitter) -> None:
        """Offer the state to the connection ``above``, and revoke an earlier offer. ``None`` only revokes."""
        if self.peer_above is not None:
            self._place(self.peer_above, None, emitter)
        if above is not None:
            self._place(above, (), emitter)
        self.peer_above = above

    def _place(self, peer: Peer, shared: tuple[()] | None, emitter: Emitter) -> None:
        """Send a placement with a new number: ``()`` offers the state, ``None`` calls it back."""
        self.placement_number += 1
        emitter.emit(Send(peer, ScopePlacement(self.part, shared, self.placement_number)))

    def _call_back(self, emitter: Emitter) -> None:
        """Request the state back from the broker above."""
        assert self.peer_above is not None
        self.where = "called back"
        self._place(self.peer_above, None, emitter)

    def must_stay_at(self, peer: Peer) -> bool:
        """Whether the peer has the state, or has not yet returned it."""
        return self.where in ("above", "called back") and self.peer_above == peer

    def on_withdrawn(self, peer: Peer) -> None:
        if self.peer_above == peer:
            self.peer_above = None

    def on_left(self, peer: Peer, emitter: Emitter) -> None:
        """Restart the condition if the lost connection had the state or delivered its events."""
        if self.must_stay_at(peer):
            if not self.has_gap:
                emitter.emit(Send(self.peer, Interruption(self.part, None)))
            self._start(None, emitter)
        elif self.advertisement_counts[peer] or self.is_flooded_to(peer):
            self.restart_after_loss(emitter)
        self.on_withdrawn(peer)

    # --- events ---

    def view_of(self, content: Content) -> Event | None:
        """Return the event of a notification if it is relevant."""
        event = self.condition.event(content)
        return event if event is not None and self.condition.is_relevant(event) else None

    def should_forward(self, view: Event, sender: Peer, emitter: Emitter) -> bool:
        """Process or record an event; return whether it must be forwarded below."""
        match self.where:
            case "here":
                assert self.runner is not None
                self._send_notifications(self.runner.process(view, emitter.now), emitter)
            case "asked for":
                self._record(view, emitter)
            case "called back" if sender != self.peer_above:
                self._record(view, emitter)
        return self.where in ("below", "asked for")

    def on_forwarded(self, _view: Event, _emitter: Emitter) -> None:
        """Do nothing, because the event was processed or recorded when it arrived."""

    def _record(self, event: Event, emitter: Emitter) -> None:
        """Record an event that arrives before the state."""
        self.record.append((emitter.now, event))
        if len(self.record) > LONGEST_RECORD:
            self.restart_after_loss(emitter)

    def on_undelivered(self, _view: Event, emitter: Emitter) -> None:
        if self.where in ("below", "asked for"):
            self.restart_after_loss(emitter)

    def restart_after_loss(self, emitter: Emitter) -> None:
        """Report all scopes as unknown after a loss, and restart the condition where it is evaluated."""
        emitter.emit(Send(self.peer, Interruption(self.part, None)))
        match self.where:
            case "here":
                self.stop(emitter)
                self.runner = ConditionRunner.start(self.condition)
            case "above":
                self.has_gap = True
                self._call_back(emitter)
            case "asked for" | "called back":
                self.has_gap = True
                self.record.clear()

    def on_timer(self, emitter: Emitter) -> None:
        """Advance the condition when its timer fires."""
        if self.runner is not None:
            self._send_notifications(self.runner.on_timer(emitter.now), emitter)

    def _send_notifications(self, notifications: list[Notification], emitter: Emitter) -> None:
        """Send notifications to the subscriber's side and set the next timer."""
        assert self.runner is not None
        for notification in notifications:
            emitter.emit(Send(self.peer, HostedNotification(self.part, notification), cause="said"))
        if (at := self.runner.next_timer()) is not None:
            emitter.emit(SetTimer(self.timer, at))

    # --- the state goes from one broker to another ---

    def on_subscriber_message(self, message: ConditionMessage, emitter: Emitter) -> None:
        """Handle a placement or a piece of the state from the subscriber's side."""
        match message:
            case ScopePlacement(_, shared, number):
                self.is_responsible = shared is not None
                if self.is_responsible and self.where == "below":
                    self.where = "asked for"
                    emitter.emit(Send(self.peer, StateRequest(self.part, number)))
                elif not self.is_responsible and self.where == "asked for":
                    self.where, self.has_gap = "below", False
                    self.record.clear()
                else:
                    self.notify_peers(emitter)
            case StateHandover() if self.where == "asked for":
                self._on_piece(message, emitter)

    def on_publisher_message(self, sender: Peer, message: ConditionMessage, emitter: Emitter) -> None:
        """Handle a request, a piece of the state, a notification or an interruption from a
        publisher's side.
        """
        match message:
            case StateRequest(_, self.placement_number) if self.where == "here" and sender == self.peer_above:
                self._hand_over(sender, "above", emitter)
            case StateHandover() if self.where == "called back" and sender == self.peer_above:
                self._on_piece(message, emitter)
            case HostedNotification() | Interruption() if self.must_stay_at(sender):
                if not self.has_gap:
                    emitter.emit(Send(self.peer, message, cause="said"))
            case Interruption() if self.where != "above":
                self.restart_after_loss(emitter)

    def _hand_over(self, peer: Peer, to: StateLocation, emitter: Emitter) -> None:
        """Send the state to a peer in pieces and stop evaluating."""
        assert self.runner is not None
        raw, self.where = self.runner.to_bytes(), to
        self.stop(emitter)
        for i in range(0, len(raw), PIECE):
            emitter.emit(Send(peer, StateHandover(self.part, raw[i : i + PIECE], i + PIECE >= len(raw))))

    def _on_piece(self, message: StateHandover, emitter: Emitter) -> None:
        """Collect a piece of the state. With the last piece, start to evaluate."""
        if message.piece is None:
            emitter.emit(Send(self.peer, Interruption(self.part, None)))
            self.has_gap = True
        else:
            self.pieces += message.piece
            if len(self.pieces) > LARGEST:
                raise UsageError(f"the state of '{self.condition.name}' has more than {LARGEST:,} bytes")
            if not message.last:
                return
        self._start(None if self.has_gap else bytes(self.pieces), emitter)
        self.notify_peers(emitter)

    def _start(self, raw: bytes | None, emitter: Emitter) -> None:
        """Start the condition with the state ``raw`` or, if that is ``None``, without state. Then process the
        recorded events.
        """
        runner = ConditionRunner.start(self.condition, raw)
        self.where, self.peer_above, self.has_gap, self.runner = "here", None, False, runner
        record, self.record, self.pieces = self.record, [], bytearray()
        for now, event in record:
            self._send_notifications(runner.process(event, now), emitter)
        self._send_notifications([], emitter)

    def stop(self, emitter: Emitter) -> None:
        """Stop evaluating the condition and cancel its timer."""
        if self.runner is not None and self.runner.timer_at is not None:
            emitter.emit(CancelTimer(self.timer))
        self.runner = None
