"""ARQoS: the receiver measures the delivery ratio in rounds and requests reliability as needed. [D55–D61]

    0 %            best effort: nothing is counted or stored
    above 0, below 100 %
                   adaptive: in each round the receiver computes PDR for each originator; below the lower
                   threshold it orders reliable mode (the bit of RTDDS), above the upper one best effort
    100 %          NACK: the writer stores what it sends, the receiver names what is missing

The thesis does not describe "NACK" further. A receiver cannot miss a sample of which it has no trace. So
while a sample is unconfirmed and no other is sent, the writer announces its last sample at every timeout. The
receiver answers with the missing samples, or that none is missing. While samples arrive, they show gaps
themselves; then the writer announces its last sample only when half of its store is full.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from msgspec.structs import replace

from ....errors import UsageError
from ....model.instant import Instant
from ....model.protocol import Deliver, Effect, Peer, Send, SetTimer
from .deployment import ReliableSettings
from .message import DataMessage, Have, Heartbeat, Nack, SampleName, SampleStream
from .request import SampleGivenUp

ALL = 100.0
MOST_EARLY = 20
"""The number of samples that a receiver stores before it knows the first number: the size of a
writer's ring.
"""


def check_level(percent: float) -> float:
    """Return a valid level as a float; raise a `UsageError` for any other.  [D55]"""
    if not 0 <= percent <= ALL:
        raise UsageError(f"a level of {percent} %; it is from 0 (best effort) to 100 (all, by NACK)")
    return float(percent)


def is_adaptive(percent: float) -> bool:
    """Whether a level is between best effort and NACK."""
    return 0 < percent < ALL


# The round algorithm (Figure 70).


@dataclass(slots=True)
class MeasuringRound:
    """The count of one originator's packets in a round: received ones, and missing packet serial numbers
    (PSN).
    """

    received: int = 0
    missing: set[int] = field(default_factory=set)
    last: int | None = None
    """LPSN: the highest packet serial number that was received."""
    closed: bool = False
    """Whether the round is over and only late packets count, as in the assurance interval (ATI). [D58]"""

    def count(self, psn: int, again: bool = False) -> None:
        """Count a packet. A duplicate counts once, and a repetition counts as missing. [D56]

        So in reliable mode PDR is the ratio of first attempts, which best effort would have.
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
        """The share of received packets; ``None`` without packets, because the originator may have sent none.

        >>> round = MeasuringRound()
        >>> for psn in (1, 2, 4, 5, 8):
        ...     round.count(psn)
        >>> round.received, len(round.missing), round.pdr
        (5, 3, 0.625)
        """
        sent = self.received + len(self.missing)
        return self.received / sent if sent else None


# The switching algorithm (Figures 71 and 72).


def thresholds(percent: float, margin: float) -> tuple[float, float]:
    """Return the lower and upper threshold as shares. The upper one stays below 1, so that a ratio can exceed
    it. [D59]

    >>> thresholds(90, 5), thresholds(98, 5)
    ((0.85, 0.95), (0.93, 0.99))
    """
    return max(percent - margin, 0.0) / ALL, min(percent + margin, (percent + ALL) / 2) / ALL


def mode_to_order(pdr: float, reliable: bool, lower: float, upper: float) -> bool | None:
    """Return the mode to order after a round (reliable or not); ``None`` in the switch region.  [D59]"""
    if pdr < lower and not reliable:
        return True
    if pdr > upper and reliable:
        return False
    return None


Phase = Literal["round", "assurance", "pause"]


@dataclass(slots=True)
class LevelAgreement:
    """The level that a receiver requests for a topic, and its measurement by originator."""

    percent: float
    version: Instant
    times_sent: int = 0
    """The number of times that the level was sent to publishers."""
    phase: Phase = "pause"
    rounds: dict[Peer, MeasuringRound] = field(default_factory=dict)
    reliable: dict[Peer, bool] = field(default_factory=dict)
    """The mode of each originator: the bit of its last packet. [D57]"""
    latest: dict[Peer, tuple[Instant, int]] = field(default_factory=dict)
    """The session and the highest PSN of each originator. They are kept between rounds, so that losses at the
    ends of rounds count too.
    """
    measured: list[tuple[Instant, Peer, float, bool]] = field(default_factory=list)
    """For each round: its end, the originator, its PDR, and the mode in which it was counted."""

    def count(self, data: DataMessage) -> None:
        """Count a sample, new or repeated."""
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
            self.rounds.setdefault(origin, MeasuringRound(last=before)).count(psn, data.again)
        elif self.phase == "assurance" and origin in self.rounds:
            self.rounds[origin].count(psn, data.again)
        self.latest[origin] = max(place, latest)

    def close(self) -> None:
        """End the round. Late packets still count."""
        for each in self.rounds.values():
            each.closed = True

    def orders(self, now: Instant, margin: float) -> Iterator[tuple[Peer, bool]]:
        """Yield the originators that must change their mode after the assurance interval, each with the new
        mode.
        """
        lower, upper = thresholds(self.percent, margin)
        for origin in self.latest:
            mode, pdr = self.reliable[origin], self._pdr(origin)
            self.measured.append((now, origin, pdr, mode))
            order = mode_to_order(pdr, mode, lower, upper)
            if order is not None:
                yield origin, order
        self.rounds.clear()

    def _pdr(self, origin: Peer) -> float:
        """Return the PDR of an originator; 0 if it is known and sent no packet in this round.

        If it had nothing to send, reliable mode costs nothing. If all packets were lost, only reliable mode
        helps.
        """
        each = self.rounds.get(origin)
        return 0.0 if each is None or each.pdr is None else each.pdr


# At 100 %: the writer's history, and the receiver's assembly.  [D60]


@dataclass(slots=True)
class SentHistory:
    """The sent samples that not every receiver at 100 % has confirmed."""

    stream: SampleStream
    sent: dict[int, DataMessage] = field(default_factory=dict)
    since: dict[Peer, int] = field(default_factory=dict)
    """For each receiver, the first sample after its request."""
    confirmed: dict[Peer, int] = field(default_factory=dict)
    """For each receiver, the number up to which it has all samples."""
    unanswered: dict[Peer, list[int]] = field(default_factory=dict)
    """For each receiver, the samples of heartbeats that it has not answered. Used if retries are limited."""
    is_timer_set: bool = False
    idle: Instant = 0
    """The time at which the timeout after the last sample ends."""

    @property
    def timer(self) -> str:
        """The name of the timer for heartbeats of the topic."""
        return f"heartbeat/{self.stream.topic}"

    def add_receiver(self, receiver: Peer, last: int) -> None:
        """Store the samples after number ``last`` for a receiver."""
        self.since[receiver], self.confirmed[receiver], self.unanswered[receiver] = last + 1, last, []

    def remove_receiver(self, receiver: Peer) -> None:
        """Stop storing samples for a receiver."""
        for table in (self.since, self.confirmed, self.unanswered):
            table.pop(receiver, None)
        self.trim()

    def store(self, data: DataMessage, now: Instant, terms: ReliableSettings) -> list[Effect]:
        """Store a sample that is sent, and set the timer for heartbeats."""
        self.sent[data.name.sequence] = data
        self.idle = now + terms.rto
        return self._set_timer(self.idle)

    def trim(self) -> None:
        """Drop the samples that every receiver has confirmed."""
        low = min(self.confirmed.values(), default=None)
        for number in [n for n in self.sent if low is None or n <= low]:
            del self.sent[number]

    def send_heartbeats(
        self, now: Instant, last: SampleName, terms: ReliableSettings, counted: Counter[str]
    ) -> list[Effect]:
        """Send a heartbeat to every receiver with unconfirmed samples.

        If retries are limited, give up the samples of a receiver after this number of unanswered heartbeats.
        """
        self.is_timer_set = False
        if now < self.idle and 2 * len(self.sent) < terms.ring:
            return self._set_timer(self.idle)
        most, lost = terms.retries, set[int]()
        for peer, announced in self.unanswered.items():
            if most is not None and len(announced) > most:
                upto = announced.pop(0)
                lost.update(number for number in self.sent if self.confirmed[peer] < number <= upto)
                self.confirmed[peer] = max(upto, self.confirmed[peer])
        counted["given up"] += len(lost)
        effects: list[Effect] = [Deliver(SampleGivenUp(self.sent[n].name)) for n in sorted(lost)]
        self.trim()
        behind = [peer for peer, upto in self.confirmed.items() if upto < last.sequence]
        for peer in behind if most is not None else ():
            self.unanswered[peer].append(last.sequence)
        counted["heartbeats"] += len(behind)
        effects += (self.heartbeat(peer, last) for peer in behind)
        return effects + self._set_timer(now + terms.rto)

    def heartbeat(self, peer: Peer, last: SampleName) -> Send:
        """Return the heartbeat message that announces the last sample to a receiver."""
        first = max(self.since[peer], min(self.sent, default=last.sequence + 1))
        return Send(peer, Heartbeat(last, first), "heartbeat")

    def confirm(self, peer: Peer, upto: int) -> None:
        """Record that a receiver has all samples up to a number."""
        if peer in self.confirmed:
            self.confirmed[peer] = max(upto, self.confirmed[peer])
            self.unanswered[peer].clear()
            self.trim()

    def resend(self, peer: Peer, missing: tuple[int, ...], counted: Counter[str]) -> list[Effect]:
        """Send the requested samples that are still stored directly to the receiver."""
        if peer not in self.confirmed:
            return []
        self.unanswered[peer].clear()
        found = [self.sent[number] for number in missing if number in self.sent]
        counted["retransmitted"] += len(found)
        return [Send(peer, replace(data, reliable=False, forwarded=True), "data") for data in found]

    def _set_timer(self, at: Instant) -> list[Effect]:
        """Return the effect that sets the heartbeat timer, if it is not set and samples are stored."""
        if self.is_timer_set or not self.sent:
            return []
        self.is_timer_set = True
        return [SetTimer(self.timer, at)]


@dataclass(slots=True)
class SampleAssembly:
    """A receiver's samples of an originator: the number up to which all have arrived, and the early
    samples.
    """

    session: Instant
    complete: int = 0
    is_started: bool = False
    """Whether the writer has announced its first stored sample. Until then all samples count as early."""
    early: dict[int, DataMessage] = field(default_factory=dict)
    highest_requested: int = 0
    """The highest number that was seen or requested."""

    def add(self, data: DataMessage) -> list[DataMessage]:
        """Add a sample; return the samples that can be delivered now, in order."""
        number = data.name.sequence
        if number > self.complete:
            self.early.setdefault(number, data)
        return self._ready()

    def _ready(self) -> list[DataMessage]:
        """Return the samples without a gap. Before the first number is known, return the oldest samples above
        the limit.
        """
        if not self.is_started:
            oldest = sorted(self.early)[: max(0, len(self.early) - MOST_EARLY)]
            return [self.early.pop(number) for number in oldest]
        ready = []
        while (following := self.early.pop(self.complete + 1, None)) is not None:
            self.complete += 1
            ready.append(following)
        return ready

    def gaps(self, last: int) -> tuple[int, ...]:
        """Return the missing numbers up to ``last``."""
        return tuple(n for n in range(self.complete + 1, last + 1) if n not in self.early)

    def ask(self, data: DataMessage) -> list[Effect]:
        """Return a NACK for the gap that a sample shows for the first time."""
        number = data.name.sequence
        fresh = tuple(n for n in self.gaps(number) if n > self.highest_requested) if self.is_started else ()
        self.highest_requested = max(self.highest_requested, number)
        return [_nack_message(data.name, fresh)] if fresh else []

    def give_up_before(self, first: int) -> list[DataMessage]:
        """Give up the missing samples before ``first``, which no writer has stored; return the samples to
        deliver.
        """
        self.is_started = True
        ready = [self.early.pop(number) for number in sorted(self.early) if number < first]
        self.complete = max(self.complete, first - 1)
        return [*ready, *self._ready()]

    def answer(self, last: SampleName) -> list[Effect]:
        """Answer a heartbeat with the missing samples, or that none is missing."""
        missing = self.gaps(last.sequence)
        self.highest_requested = max(self.highest_requested, last.sequence)
        if missing:
            return [_nack_message(last, missing)]
        return [Send(last.origin, Have(last), "have")]


def _nack_message(name: SampleName, missing: tuple[int, ...]) -> Send:
    return Send(name.origin, Nack(name.stream, name.session, missing), "nack")
