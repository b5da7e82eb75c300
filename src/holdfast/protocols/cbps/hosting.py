"""A condition that one broker runs: the last one, from the subscriber towards the publishers, through which
all still comes that the condition looks at.

A broker to which the condition is left looks through which connections that is.  If it is one, and a
broker's, the state is offered to that, and what the condition says is relayed from there.  Otherwise the
broker runs the condition itself, and takes in what those above pass on.

There is one state, at one broker or on its way between two.  An offer is taken by a question, which says
that everything before it has been passed on; who answers it runs the condition no longer, and who asked
has kept what came since.  When advertisements change, a state is called back in the same manner.  Messages
of a connection keep their order, so nothing is lost and nothing is taken twice.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from ...errors import UsageError
from ...model.event import Event, Notification
from ...model.instant import Instant
from ...model.protocol import CancelTimer, Peer, Send, SetTimer
from .condition import Hosted
from .content import Content, Filter
from .message import About, Ask, Handover, Interruption, Part, Placement, Said
from .routing import Stored
from .running import Running
from .watch import Moment, Watch

Where = Literal["below", "asked for", "here", "above", "called back"]
"""Where the state is, as a broker sees it; in two of them it is on its way here."""

PIECE = 1 << 16
"""Bytes of a state that travel in one message."""
LARGEST = 1 << 26
"""Bytes of a state that is taken from elsewhere."""
LONGEST_RECORD = 10_000
"""How many events are kept while the state is on its way here."""


@dataclass(slots=True, eq=False)
class Hosting(Watch):
    """``mine`` says whether the subscriber's side leaves it to us, and to those above, to run it;
    ``turn`` is the number of our last word to those above.

    ``ways`` counts the advertisements of each connection that concern it.  ``other`` is the connection
    above to which it is offered, which has it, or from which it is called back.  A state that is
    ``spoiled`` is not worth its way any more: it has missed something.
    """

    part: Part
    stored: Stored
    condition: Hosted
    where: Where = "below"
    mine: bool = False
    turn: int = 0
    ways: Counter[Peer] = field(default_factory=Counter)
    other: Peer | None = None
    running: Running | None = None
    record: list[tuple[Instant, Event]] = field(default_factory=list)
    pieces: bytearray = field(default_factory=bytearray)
    spoiled: bool = False

    def __post_init__(self) -> None:
        context = self.stored.bundle.context
        assert context is not None
        if context.hop_count == 1:  # the subscriber itself is below
            self.mine, self.where, self.running = True, "here", Running.begun(self.condition)

    @property
    def timer(self) -> str:
        """The name of its timer."""
        return f"due {self.part.place} {self.part.bundle.sequence} {self.part.bundle.origin}"

    # --- who publishes where ---

    def advertised(self, peer: Peer, _advertised: Filter) -> None:
        self.ways[peer] += 1

    def unadvertised(self, peer: Peer, _advertised: Filter) -> None:
        self.ways[peer] -= 1
        self.ways += Counter()  # without zeros

    def tell(self, moment: Moment) -> None:
        above = self._above() if self.mine else None
        if self.where == "above" and above != self.other:
            self._call_back(moment)
        elif self.where == "here":
            if above != self.other:
                self._offer(above, moment)
            if not self.mine:
                self._hand_over(self.peer, "below", moment)

    def _above(self) -> Peer | None:
        """The connection through which all comes that it looks at, if it is a broker that can run it."""
        if len(self.ways) != 1 or self.subscription.flood_forward:
            return None
        (peer,) = self.ways
        return peer if peer in self.stored.sent else None

    def _offer(self, above: Peer | None, moment: Moment) -> None:
        """Offer the state to a connection, and no longer to another."""
        if self.other is not None:
            self._place(self.other, None, moment)
        if above is not None:
            self._place(above, (), moment)
        self.other = above

    def _place(self, peer: Peer, shared: tuple[()] | None, moment: Moment) -> None:
        self.turn += 1
        moment.say(Send(peer, Placement(self.part, shared, self.turn)))

    def _call_back(self, moment: Moment) -> None:
        assert self.other is not None
        self.where = "called back"
        self._place(self.other, None, moment)

    def keeps(self, peer: Peer) -> bool:
        """Until it has given the state back."""
        return self.where in ("above", "called back") and self.other == peer

    def retracted(self, peer: Peer) -> None:
        if self.other == peer:
            self.other = None

    def left(self, peer: Peer, moment: Moment) -> None:
        if self.keeps(peer):
            if not self.spoiled:
                moment.say(Send(self.peer, Interruption(self.part, None)))
            self._begin(None, moment)
        elif self.ways[peer] or (self.subscription.flood_forward and peer in self.stored.sent):
            self.unsaid(moment)
        self.retracted(peer)

    # --- events ---

    def sees(self, content: Content) -> Event | None:
        event = self.condition.event(content)
        return event if event is not None and self.condition.matters(event) else None

    def passes(self, seen: Event, sender: Peer, moment: Moment) -> bool:
        match self.where:
            case "here":
                assert self.running is not None
                self._tell_all(self.running.take(seen, moment.now), moment)
            case "asked for":
                self._keep(seen, moment)
            case "called back" if sender != self.other:
                self._keep(seen, moment)
        return self.where in ("below", "asked for")

    def went(self, _seen: Event, _moment: Moment) -> None:
        """It was taken or kept when it came."""

    def _keep(self, event: Event, moment: Moment) -> None:
        self.record.append((moment.now, event))
        if len(self.record) > LONGEST_RECORD:
            self.unsaid(moment)

    def missed(self, _seen: Event, moment: Moment) -> None:
        if self.where in ("below", "asked for"):
            self.unsaid(moment)

    def unsaid(self, moment: Moment) -> None:
        """Something is lost, so nobody knows what holds: say so, and begin anew."""
        moment.say(Send(self.peer, Interruption(self.part, None)))
        match self.where:
            case "here":
                self.stop(moment)
                self.running = Running.begun(self.condition)
            case "above":
                self.spoiled = True
                self._call_back(moment)
            case "asked for" | "called back":
                self.spoiled = True
                self.record.clear()

    def wake(self, moment: Moment) -> None:
        """The timer has run out."""
        if self.running is not None:
            self._tell_all(self.running.wake(moment.now), moment)

    def _tell_all(self, told: list[Notification], moment: Moment) -> None:
        assert self.running is not None
        for notification in told:
            moment.say(Send(self.peer, Said(self.part, notification), cause="said"))
        if (at := self.running.timer()) is not None:
            moment.say(SetTimer(self.timer, at))

    # --- the state goes from one broker to another ---

    def from_below(self, message: About, moment: Moment) -> None:
        match message:
            case Placement(_, shared, number):
                self.mine = shared is not None
                if self.mine and self.where == "below":
                    self.where = "asked for"
                    moment.say(Send(self.peer, Ask(self.part, number)))
                elif not self.mine and self.where == "asked for":
                    self.where, self.spoiled = "below", False
                    self.record.clear()
                else:
                    self.tell(moment)
            case Handover() if self.where == "asked for":
                self._arrive(message, moment)

    def from_above(self, sender: Peer, message: About, moment: Moment) -> None:
        match message:
            case Ask(_, number) if self.where == "here" and (sender, number) == (self.other, self.turn):
                self._hand_over(sender, "above", moment)
            case Handover() if self.where == "called back" and sender == self.other:
                self._arrive(message, moment)
            case Said() | Interruption() if self.keeps(sender):
                if not self.spoiled:
                    moment.say(Send(self.peer, message, cause="said"))
            case Interruption() if self.where != "above":
                self.unsaid(moment)

    def _hand_over(self, peer: Peer, to: Where, moment: Moment) -> None:
        assert self.running is not None
        raw, self.where = self.running.to_bytes(), to
        self.stop(moment)
        for i in range(0, len(raw), PIECE):
            moment.say(Send(peer, Handover(self.part, raw[i : i + PIECE], i + PIECE >= len(raw))))

    def _arrive(self, message: Handover, moment: Moment) -> None:
        """Take a piece of the state; with the last one run the condition, or pass it on."""
        if message.piece is None:
            moment.say(Send(self.peer, Interruption(self.part, None)))
            self.spoiled = True
        else:
            self.pieces += message.piece
            if len(self.pieces) > LARGEST:
                raise UsageError(f"the state of '{self.condition.name}' has more than {LARGEST:,} bytes")
            if not message.last:
                return
        self._begin(None if self.spoiled else bytes(self.pieces), moment)
        self.tell(moment)

    def _begin(self, raw: bytes | None, moment: Moment) -> None:
        """Run the condition, from a state or anew, with what has come while that was on its way."""
        begun = Running.begun(self.condition) if raw is None else Running.resumed(self.condition, raw)
        self.where, self.other, self.spoiled, self.running = "here", None, False, begun
        record, self.record, self.pieces = self.record, [], bytearray()
        for now, event in record:
            self._tell_all(begun.take(event, now), moment)
        self._tell_all([], moment)

    def stop(self, moment: Moment) -> None:
        """Run it no longer."""
        if self.running is not None and self.running.wakes is not None:
            moment.say(CancelTimer(self.timer))
        self.running = None
