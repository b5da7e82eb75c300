"""What nodes say to one another; frozen values that msgspec encodes as they stand.

A sample is named by (origin, session, topic, condition, sequence): the thesis numbers nothing, so its ACKs
and repetitions could not be told apart (spec §7, 21).  ``bytes_of`` is what a mote would send.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, get_args

import msgspec

from ...model.event import Status, Value
from ...model.instant import Instant
from ...model.protocol import Peer
from .interest import Constraint
from .level import Level, Threshold
from .topic import TopicId

PLAIN = ""
"""The condition of samples that are just samples."""
EVERY_READER = -1
"""In an ``Unsubscribe``: whatever this subscriber has asked for on the topic."""


class Stream(NamedTuple):
    """What one writer numbers: the samples of a topic, or the transitions of a condition on it."""

    topic: TopicId
    condition: str = PLAIN


class Name(NamedTuple):
    """The name of a sample; of one stream the later is the larger."""

    origin: Peer
    stream: Stream
    session: Instant
    """When its node was started: numbers begin anew after a restart."""
    sequence: int

    @property
    def place(self) -> tuple[Instant, int]:
        """Where it stands in its stream."""
        return (self.session, self.sequence)


class Subscribe(msgspec.Struct, frozen=True, array_like=True, tag="subscribe"):
    """SUBSCRIBE: one reader's wish.  Of two with the same reader the later version counts."""

    topic: TopicId
    subscriber: Peer
    reader: int
    version: Instant
    level: Level
    where: tuple[Constraint, ...] = ()
    condition: str = PLAIN
    hops: int = 0
    """How often it was sent on to another rendezvous node."""


class Unsubscribe(msgspec.Struct, frozen=True, array_like=True, tag="unsubscribe"):
    """A reader, or every reader, wants nothing more."""

    topic: TopicId
    subscriber: Peer
    reader: int
    version: Instant
    hops: int = 0


class Notification(msgspec.Struct, frozen=True, array_like=True, tag="notification"):
    """NOTIFICATION of HyTDDS: the RN tells a publisher of a subscription.  [D42]"""

    wish: Subscribe | Unsubscribe
    asks: bool = False
    """Whether it is a repetition by the RN, which wants to hear that it came."""


class Recognised(msgspec.Struct, frozen=True, array_like=True, tag="recognised"):
    """A publisher has a reliable reader's subscription in its table; until then the RN repeats it."""

    topic: TopicId
    subscriber: Peer
    reader: int
    version: Instant


class Demand(msgspec.Struct, frozen=True, array_like=True, tag="demand"):
    """What subscribers want of a topic's publishers, all together; told where it is not the usual."""

    topic: TopicId
    level: Threshold
    plain: bool = True
    """Whether anybody wants the samples themselves."""
    conditions: tuple[str, ...] = ()
    turns: bool = False
    """Whether somebody needs the samples that start or end a condition."""


class Data(msgspec.Struct, frozen=True, array_like=True, tag="data"):
    """DATA: a sample, with its reliability bit.  [D24]"""

    name: Name
    reliable: bool
    values: Mapping[str, Value]
    time: Instant
    """When it was published."""
    again: bool = False
    """Whether its writer has sent it before."""
    kept: bool = False
    """ARQoS at 100 %: its writer keeps it and answers NACKs."""
    status: Status = "atomic"
    since: Instant | None = None
    demand: int = 0
    """Which demand its publisher knows (``digest``)."""
    forwarded: bool = False
    """Whether it comes from the RN, and so is for a reader."""
    turns: bool = False
    """Whether it starts or ends a condition of its topic."""
    hops: int = 0


class Ack(msgspec.Struct, frozen=True, array_like=True, tag="ack"):
    """ACK: this sample has arrived.  [D25]"""

    name: Name
    complete: bool = False
    """From the RN, for all: it has arrived with everybody who needs it.  [D31]"""
    unread: bool = False
    """From the RN: it knows nobody who wants anything of the topic."""


class Energy(msgspec.Struct, frozen=True, array_like=True, tag="energy"):
    """ENERGY UPDATE: joules that a node has left.  [D47]"""

    topic: TopicId
    node: Peer
    joules: float
    hops: int = 0


class Role(msgspec.Struct, frozen=True, array_like=True, tag="role"):
    """NEW-RN: who is the rendezvous node of a topic now.  Of two the one with the later term counts."""

    topic: TopicId
    term: int
    node: Peer
    fresh: bool = False
    """Whether it knows no subscribers yet: they must subscribe again."""
    readers: tuple[Peer, ...] = ()
    """To who may take its place: the subscribers that it knows."""


class Round(msgspec.Struct, frozen=True, array_like=True, tag="round"):
    """NEW ROUND: the main RN has the RN of a topic look for the next one.  [D48]"""

    topic: TopicId


class Handover(msgspec.Struct, frozen=True, array_like=True, tag="handover"):
    """A piece of the subscriber table for the next RN; with the last one the role is its."""

    topic: TopicId
    term: int
    number: int
    wishes: tuple[Subscribe | Unsubscribe, ...]
    last: bool


class Taken(msgspec.Struct, frozen=True, array_like=True, tag="taken"):
    """A piece of a hand-over has come."""

    topic: TopicId
    term: int
    number: int


class LevelRequest(msgspec.Struct, frozen=True, array_like=True, tag="level"):
    """ARQoS: a receiver asks for a share of the samples, in percent.  [D55, D61]"""

    topic: TopicId
    percent: float
    version: Instant


class Switch(msgspec.Struct, frozen=True, array_like=True, tag="switch"):
    """SWITCH of ARQoS: a receiver orders a publisher to best effort, or to reliable mode.  [D57]"""

    topic: TopicId
    origin: Peer
    receiver: Peer
    reliable: bool


class Heartbeat(msgspec.Struct, frozen=True, array_like=True, tag="heartbeat"):
    """ARQoS at 100 %: the last sample that was sent; who lacks one says so, who lacks none as well."""

    name: Name
    first: int
    """The first that is still kept for the receiver."""


class Have(msgspec.Struct, frozen=True, array_like=True, tag="have"):
    """ARQoS at 100 %: everything up to this sample has arrived."""

    name: Name


class Nack(msgspec.Struct, frozen=True, array_like=True, tag="nack"):
    """NACK: these samples are missing.  [D60]"""

    stream: Stream
    session: Instant
    missing: tuple[int, ...]


Message = (
    Subscribe
    | Unsubscribe
    | Notification
    | Recognised
    | Demand
    | Data
    | Ack
    | Energy
    | Role
    | Round
    | Handover
    | Taken
    | LevelRequest
    | Switch
    | Heartbeat
    | Have
    | Nack
)
MESSAGES: tuple[type, ...] = get_args(Message)

# Bytes on a mote: a kind and flags 1, topic and condition 1, an address 2, a sequence number 2, a session 2
# (seconds), a version 2, a number 4, a constraint 6 (field, comparison, value).

UNIT = 20
"""The message of every experiment of the thesis.  [D9]"""
_WISH, _CONSTRAINT, _NAME, _NUMBER = 12, 6, 9, 4
_PLAIN_SIZES: dict[type, int] = {
    Unsubscribe: 8,
    Recognised: 8,
    Demand: 7,
    Ack: _NAME,
    Energy: 8,
    Round: 2,
    Taken: 5,
    LevelRequest: 5,
    Switch: 6,
    Heartbeat: _NAME + 2,
    Have: _NAME,
}
ENTRIES = 4
"""So many subscriptions fit into one piece of a hand-over, each with a constraint or two."""


def bytes_of(message: Message) -> int:
    """How long a message is on a mote."""
    match message:
        case Data(_, _, values):
            return max(UNIT, _NAME + sum(len(v) if isinstance(v, str) else _NUMBER for v in values.values()))
        case Subscribe(where=where):
            return _WISH + _CONSTRAINT * len(where)
        case Notification(wish):
            return 1 + bytes_of(wish)
        case Handover(wishes=wishes):
            return 6 + sum(bytes_of(wish) for wish in wishes)
        case Role(readers=readers):
            return 6 + 2 * len(readers)
        case Nack(missing=missing):
            return 6 + 2 * len(missing)
    return _PLAIN_SIZES[type(message)]


DISCOVERY = (Subscribe, Unsubscribe, Notification, Demand)
"""What is sent so that publishers and subscribers find each other."""


def cause_of(message: Message) -> str:
    """Under which name the simulator accounts for a message."""
    return "discovery" if isinstance(message, DISCOVERY) else type(message).__name__.lower()
