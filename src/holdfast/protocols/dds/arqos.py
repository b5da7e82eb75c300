"""ARQoS: the receiver measures what arrives, in rounds, and orders reliability as needed.  [D55–D61]

    0 %            best effort: nobody counts, nobody keeps
    above 0, below 100 %
                   adaptive: in each round the receiver computes PDR for each originator; below the lower
                   threshold it orders reliable mode (the bit of RTDDS), above the upper one best effort
    100 %          NACK: the writer keeps what it sends, the receiver names what is missing

The thesis stops at "NACK".  A receiver cannot miss what it never heard of, so while something is
unconfirmed and nothing else is sent, the writer says at every timeout what it sent last; the receiver answers
with what is missing, or that nothing is.  While samples flow they show what is missing themselves; then it is
said only when half of what can be kept is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from msgspec.structs import replace

from ...errors import UsageError
from ...model.instant import Instant
from ...model.protocol import Deliver, Effect, Peer, Send, SetTimer
from .deployment import Reliable
from .message import Data, Have, Heartbeat, Nack, Name, Stream
from .request import GivenUp

ALL = 100.0
MOST_EARLY = 20
"""What a receiver keeps before it knows where to begin: as much as a writer's ring."""


def checked(percent: float) -> float:
    """A level, if it is one.  [D55]"""
    if not 0 <= percent <= ALL:
        raise UsageError(f"a level of {percent} %; it is from 0 (best effort) to 100 (all, by NACK)")
    return float(percent)


def is_adaptive(percent: float) -> bool:
    return 0 < percent < ALL


# The round algorithm (Figure 70).


@dataclass(slots=True)
class Round:
    """What came from one originator: packets received, and packet serial numbers (PSN) that are missing."""

    received: int = 0
    missing: set[int] = field(default_factory=set)
    last: int | None = None
    """LPSN."""
    closed: bool = False
    """Whether the round is over and only late packets count: the assurance interval (ATI).  [D58]"""

    def count(self, psn: int, again: bool = False) -> None:
        """A packet has come; one that comes twice counts once, and one that was sent again as missing.  [D56]

        So in reliable mode PDR is that of first tries: what best effort would give.
        """
        if psn in self.missing and not again:
            self.missing.discard(psn)
            self.received += 1
        elif not self.closed and (self.last is None or psn > self.last):
            self.missing.update(range(psn if self.last is None else self.last + 1, psn))
            self.last = psn
            self.received += not again
            if again:
                self.missing.add(psn)

    @property
    def pdr(self) -> float | None:
        """Received of sent; none if nothing came, which may mean that nothing was sent.

        >>> round = Round()
        >>> for psn in (1, 2, 4, 5, 8):
        ...     round.count(psn)
        >>> round.received, len(round.missing), round.pdr
        (5, 3, 0.625)
        """
        sent = self.received + len(self.missing)
        return self.received / sent if sent else None


# The switching algorithm (Figures 71 and 72).


def thresholds(percent: float, margin: float) -> tuple[float, float]:
    """Lower and upper threshold as shares; the upper one stays below 1, or nothing would exceed it.  [D59]

    >>> thresholds(90, 5), thresholds(98, 5)
    ((0.85, 0.95), (0.93, 0.99))
    """
    return max(percent - margin, 0.0) / ALL, min(percent + margin, (percent + ALL) / 2) / ALL


def switched(pdr: float, reliable: bool, lower: float, upper: float) -> bool | None:
    """The mode to order after a round: reliable or not, or nothing in the switch region.  [D59, AT16]"""
    if pdr < lower and not reliable:
        return True
    if pdr > upper and reliable:
        return False
    return None


Phase = Literal["round", "assurance", "pause"]


@dataclass(slots=True)
class Agreement:
    """A receiver's level for a topic, and the rounds it counts by originator."""

    percent: float
    version: Instant
    said: int = 0
    """How often publishers were told."""
    phase: Phase = "pause"
    rounds: dict[Peer, Round] = field(default_factory=dict)
    reliable: dict[Peer, bool] = field(default_factory=dict)
    """The mode of each originator: the bit of its last packet.  [D57]"""
    latest: dict[Peer, tuple[Instant, int]] = field(default_factory=dict)
    """Session and highest PSN of each originator, also between rounds: losses at their ends count as well."""
    measured: list[tuple[Instant, Peer, float, bool]] = field(default_factory=list)
    """When a round ended, of whom, its PDR, and the mode it was counted in."""

    def count(self, data: Data) -> None:
        """A sample has come, once more or for the first time."""
        origin, place = data.name.origin, data.name.place
        session, psn = place
        latest = self.latest.get(origin, place)
        if session < latest[0]:
            return
        if session > latest[0]:  # it was restarted, and counts anew
            self.rounds.pop(origin, None)
        self.reliable[origin] = data.reliable
        if self.phase == "round":
            before = latest[1] if origin in self.latest and latest[0] == session else None
            self.rounds.setdefault(origin, Round(last=before)).count(psn, data.again)
        elif self.phase == "assurance" and origin in self.rounds:
            self.rounds[origin].count(psn, data.again)
        self.latest[origin] = max(place, latest)

    def close(self) -> None:
        """The round is over; what is late still counts."""
        for each in self.rounds.values():
            each.closed = True

    def orders(self, now: Instant, margin: float) -> Iterator[tuple[Peer, bool]]:
        """After the assurance interval: which originators are to change their mode, and to what."""
        lower, upper = thresholds(self.percent, margin)
        for origin in self.latest:
            mode, pdr = self.reliable[origin], self._pdr(origin)
            self.measured.append((now, origin, pdr, mode))
            order = switched(pdr, mode, lower, upper)
            if order is not None:
                yield origin, order
        self.rounds.clear()

    def _pdr(self, origin: Peer) -> float:
        """Of an originator that was heard before and is silent: none of what it sent, for all that we know.

        If it had nothing to send, reliable mode costs nothing; if everything was lost, nothing else helps.
        """
        each = self.rounds.get(origin)
        return 0.0 if each is None or each.pdr is None else each.pdr


# At 100 %: the writer's history, and the receiver's assembly.  [D60]


@dataclass(slots=True)
class History:
    """What a writer has sent and not everybody has confirmed; those who asked for all, by what they have."""

    stream: Stream
    sent: dict[int, Data] = field(default_factory=dict)
    since: dict[Peer, int] = field(default_factory=dict)
    """The first sample after each receiver's request."""
    confirmed: dict[Peer, int] = field(default_factory=dict)
    """Up to where each has everything."""
    unanswered: dict[Peer, list[int]] = field(default_factory=dict)
    """Of the heartbeats that each has left unanswered the samples that they said were sent last, if somebody
    counts them."""
    beating: bool = False
    idle: Instant = 0
    """When a timeout will have passed since the last sample."""

    @property
    def timer(self) -> str:
        return f"heartbeat/{self.stream.topic}"

    def join(self, receiver: Peer, last: int) -> None:
        """What follows this sample is kept for a receiver."""
        self.since[receiver], self.confirmed[receiver], self.unanswered[receiver] = last + 1, last, []

    def leave(self, receiver: Peer) -> None:
        """Nothing is kept for a receiver any more."""
        for table in (self.since, self.confirmed, self.unanswered):
            table.pop(receiver, None)
        self.trim()

    def keep(self, data: Data, now: Instant, terms: Reliable) -> list[Effect]:
        """A sample is sent; from now on the receivers are asked whether they have it."""
        self.sent[data.name.sequence] = data
        self.idle = now + terms.rto
        return self._beat(self.idle)

    def trim(self) -> None:
        """Forget what everybody has."""
        low = min(self.confirmed.values(), default=None)
        for number in [n for n in self.sent if low is None or n <= low]:
            del self.sent[number]

    def beat(self, now: Instant, last: Name, terms: Reliable, counted: Counter[str]) -> list[Effect]:
        """Say what was sent last to all who lack something; of who never answers give up what so many
        heartbeats have spoken of, if so agreed."""
        self.beating = False
        if now < self.idle and 2 * len(self.sent) < terms.ring:
            return self._beat(self.idle)
        most, lost = terms.retries, set[int]()
        for peer, said in self.unanswered.items():
            if most is not None and len(said) > most:
                upto = said.pop(0)
                lost.update(number for number in self.sent if self.confirmed[peer] < number <= upto)
                self.confirmed[peer] = max(upto, self.confirmed[peer])
        counted["given up"] += len(lost)
        given_up = [Deliver(GivenUp(self.sent[number].name)) for number in sorted(lost)]
        self.trim()
        behind = [peer for peer, upto in self.confirmed.items() if upto < last.sequence]
        for peer in behind if most is not None else ():
            self.unanswered[peer].append(last.sequence)
        counted["heartbeats"] += len(behind)
        return [*given_up, *(self.says(peer, last) for peer in behind), *self._beat(now + terms.rto)]

    def says(self, peer: Peer, last: Name) -> Send:
        """The heartbeat for a receiver."""
        first = max(self.since[peer], min(self.sent, default=last.sequence + 1))
        return Send(peer, Heartbeat(last, first), "heartbeat")

    def confirm(self, peer: Peer, upto: int) -> None:
        """A receiver has everything up to a number."""
        if peer in self.confirmed:
            self.confirmed[peer] = max(upto, self.confirmed[peer])
            self.unanswered[peer].clear()
            self.trim()

    def repair(self, peer: Peer, missing: tuple[int, ...], counted: Counter[str]) -> list[Effect]:
        """Send again, straight to the receiver, what it names and we still have."""
        if peer not in self.confirmed:
            return []
        self.unanswered[peer].clear()
        found = [self.sent[number] for number in missing if number in self.sent]
        counted["retransmitted"] += len(found)
        return [Send(peer, replace(data, reliable=False, forwarded=True), "data") for data in found]

    def _beat(self, at: Instant) -> list[Effect]:
        if self.beating or not self.sent:
            return []
        self.beating = True
        return [SetTimer(self.timer, at)]


@dataclass(slots=True)
class Assembly:
    """What a receiver has of an originator's samples: all up to a number, and some that came too early."""

    session: Instant
    complete: int = 0
    begun: bool = False
    """Whether the writer has said from which sample on it keeps; until then all are early."""
    early: dict[int, Data] = field(default_factory=dict)
    asked: int = 0
    """The highest number that was ever asked for or seen."""

    def take(self, data: Data) -> list[Data]:
        """The samples that can be delivered now, in order."""
        number = data.name.sequence
        if number > self.complete:
            self.early.setdefault(number, data)
        return self._ready()

    def _ready(self) -> list[Data]:
        """What follows without a gap; before anybody knows where it begins, the oldest of too many."""
        if not self.begun:
            oldest = sorted(self.early)[: max(0, len(self.early) - MOST_EARLY)]
            return [self.early.pop(number) for number in oldest]
        ready = []
        while (following := self.early.pop(self.complete + 1, None)) is not None:
            self.complete += 1
            ready.append(following)
        return ready

    def gaps(self, last: int) -> tuple[int, ...]:
        """What is missing up to a number."""
        return tuple(n for n in range(self.complete + 1, last + 1) if n not in self.early)

    def ask(self, data: Data) -> list[Effect]:
        """The NACK for a gap that this sample shows for the first time."""
        number = data.name.sequence
        fresh = tuple(n for n in self.gaps(number) if n > self.asked) if self.begun else ()
        self.asked = max(self.asked, number)
        return [_nack(data.name, fresh)] if fresh else []

    def forgo(self, first: int) -> list[Data]:
        """What is before this and missing nobody has any more; the samples that can be delivered now."""
        self.begun = True
        ready = [self.early.pop(number) for number in sorted(self.early) if number < first]
        self.complete = max(self.complete, first - 1)
        return [*ready, *self._ready()]

    def answer(self, last: Name) -> list[Effect]:
        """To a heartbeat: what is missing, or that nothing is."""
        missing = self.gaps(last.sequence)
        self.asked = max(self.asked, last.sequence)
        if missing:
            return [_nack(last, missing)]
        return [Send(last.origin, Have(last), "have")]


def _nack(name: Name, missing: tuple[int, ...]) -> Send:
    return Send(name.origin, Nack(name.stream, name.session, missing), "nack")
