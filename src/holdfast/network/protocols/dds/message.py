"""The messages between nodes, as frozen values that msgspec encodes.

The name of a sample is (origin, session, topic, condition, sequence). The thesis numbers no samples, so its
ACKs and repetitions would be ambiguous (spec §7, 21). ``bytes_of`` is the size of a message on a mote. Tags
and the order of fields are the wire format.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, get_args

import msgspec

from ....model.event import Status, Value
from ....model.instant import Instant
from ....model.protocol import Peer
from ..wire_name import wire_name
from .interest import FieldConstraint
from .level import Level, Threshold
from .topic import TopicId

PLAIN = ""
"""The condition name of ordinary samples, which belong to no condition."""
EVERY_READER = -1
"""The reader number of a ``DdsUnsubscribe`` that ends all subscriptions of a subscriber to the topic."""


class SampleStream(NamedTuple):
    """A numbered sequence of one writer: the samples of a topic, or the transitions of a condition on it."""

    topic: TopicId
    condition: str = PLAIN


class SampleName(NamedTuple):
    """The name of a sample. Within a stream, the later name is the larger."""

    origin: Peer
    stream: SampleStream
    session: Instant
    """The start time of its node. It is part of the name because numbers restart with the node."""
    sequence: int

    @property
    def place(self) -> tuple[Instant, int]:
        """The position of the sample in its stream."""
        return (self.session, self.sequence)


class ReaderMessage(msgspec.Struct, frozen=True, array_like=True):
    """A message about the subscription of one reader. ``version`` numbers its changes."""

    topic: TopicId
    subscriber: Peer
    reader: int
    version: Instant


class DdsSubscribe(ReaderMessage, frozen=True, array_like=True, tag="subscribe"):
    """SUBSCRIBE: the subscription of one reader. Of two messages with the same reader, the later version
    counts.
    """

    level: Level
    where: tuple[FieldConstraint, ...] = ()
    condition: str = PLAIN
    hops: int = 0
    """The number of times that it was forwarded to another rendezvous node."""


class DdsUnsubscribe(ReaderMessage, frozen=True, array_like=True, tag="unsubscribe"):
    """Ends the subscription of one reader or of every reader."""

    hops: int = 0


class DdsNotification(msgspec.Struct, frozen=True, array_like=True, tag="notification"):
    """NOTIFICATION of HyTDDS: the RN informs a publisher of a subscription.  [D42]"""

    wish: DdsSubscribe | DdsUnsubscribe
    asks: bool = False
    """Whether the RN repeats the message, so that the publisher must confirm it."""


class Recognition(ReaderMessage, frozen=True, array_like=True, tag="recognised"):
    """Confirms that a publisher has a reliable reader's subscription. The RN repeats the notification until
    then.
    """


class Demand(msgspec.Struct, frozen=True, array_like=True, tag="demand"):
    """The combined demand of all subscribers on a topic's publishers. It is sent only if it is not the
    default.
    """

    topic: TopicId
    level: Threshold
    plain: bool = True
    """Whether any subscriber wants the samples themselves."""
    conditions: tuple[str, ...] = ()
    turns: bool = False
    """Whether any subscriber needs the samples that start or end a condition."""


class DataMessage(msgspec.Struct, frozen=True, array_like=True, tag="data"):
    """DATA: a sample, with its reliability bit.  [D24]"""

    name: SampleName
    reliable: bool
    values: Mapping[str, Value]
    time: Instant
    """The time at which the sample was published."""
    again: bool = False
    """Whether its writer has sent the sample before."""
    is_stored: bool = False
    """For ARQoS at 100 %: whether the writer stores the sample and answers NACKs."""
    status: Status = "atomic"
    since: Instant | None = None
    demand: int = 0
    """The digest of the demand that its publisher knows."""
    forwarded: bool = False
    """Whether the message comes from the RN, and is therefore for a reader."""
    turns: bool = False
    """Whether the sample starts or ends a condition of its topic."""
    hops: int = 0


class SampleAck(msgspec.Struct, frozen=True, array_like=True, tag="ack"):
    """ACK: a sample has arrived.  [D25]"""

    name: SampleName
    complete: bool = False
    """From the RN: whether the sample has arrived at all subscribers that need it. [D31]"""
    unread: bool = False
    """From the RN: whether the topic has no subscriber."""


class EnergyUpdate(msgspec.Struct, frozen=True, array_like=True, tag="energy"):
    """ENERGY UPDATE: the remaining energy of a node in joules. [D47]"""

    topic: TopicId
    node: Peer
    joules: float
    hops: int = 0


class Role(msgspec.Struct, frozen=True, array_like=True, tag="role"):
    """NEW-RN: the rendezvous node of a topic. Of two messages, the one with the later term counts."""

    topic: TopicId
    term: int
    node: Peer
    fresh: bool = False
    """Whether the RN has no subscribers yet, so that they must subscribe again."""
    readers: tuple[Peer, ...] = ()
    """The subscribers in the RN's table, sent to possible successors."""


class NewRound(msgspec.Struct, frozen=True, array_like=True, tag="round"):
    """NEW ROUND: the main RN asks the RN of a topic to elect the next one.  [D48]"""

    topic: TopicId


class TableHandover(msgspec.Struct, frozen=True, array_like=True, tag="handover"):
    """A piece of the subscriber table for the next RN. With the last piece, the role moves."""

    topic: TopicId
    term: int
    number: int
    wishes: tuple[DdsSubscribe | DdsUnsubscribe, ...]
    last: bool


class DdsTaken(msgspec.Struct, frozen=True, array_like=True, tag="taken"):
    """Confirms a piece of a hand-over."""

    topic: TopicId
    term: int
    number: int


class LevelRequest(msgspec.Struct, frozen=True, array_like=True, tag="level"):
    """ARQoS: a receiver requests a share of the samples, in percent.  [D55, D61]"""

    topic: TopicId
    percent: float
    version: Instant


class Switch(msgspec.Struct, frozen=True, array_like=True, tag="switch"):
    """SWITCH of ARQoS: a receiver orders a publisher to use best-effort or reliable mode. [D57]"""

    topic: TopicId
    origin: Peer
    receiver: Peer
    reliable: bool


class Heartbeat(msgspec.Struct, frozen=True, array_like=True, tag="heartbeat"):
    """Announces a writer's last sample, for ARQoS at 100 %. Every receiver answers whether samples are
    missing.
    """

    name: SampleName
    first: int
    """The first sample that the writer still stores for the receiver."""


class Have(msgspec.Struct, frozen=True, array_like=True, tag="have"):
    """Confirms that all samples up to this one have arrived, for ARQoS at 100 %."""

    name: SampleName


class Nack(msgspec.Struct, frozen=True, array_like=True, tag="nack"):
    """NACK: lists the samples that are missing at a receiver. [D60]"""

    stream: SampleStream
    session: Instant
    missing: tuple[int, ...]


DdsMessage = (
    DdsSubscribe
    | DdsUnsubscribe
    | DdsNotification
    | Recognition
    | Demand
    | DataMessage
    | SampleAck
    | EnergyUpdate
    | Role
    | NewRound
    | TableHandover
    | DdsTaken
    | LevelRequest
    | Switch
    | Heartbeat
    | Have
    | Nack
)
MESSAGES: tuple[type, ...] = get_args(DdsMessage)

# Bytes on a mote: a kind and flags 1, topic and condition 1, an address 2, a sequence number 2, a session 2
# (seconds), a version 2, a number 4, a constraint 6 (field, comparison, value).

UNIT = 20
"""The length in bytes of messages in all experiments of the thesis. [D9]"""
_WISH, _CONSTRAINT, _NAME, _NUMBER = 12, 6, 9, 4
_PLAIN_SIZES: dict[type, int] = {
    DdsUnsubscribe: 8,
    Recognition: 8,
    Demand: 7,
    SampleAck: _NAME,
    EnergyUpdate: 8,
    NewRound: 2,
    DdsTaken: 5,
    LevelRequest: 5,
    Switch: 6,
    Heartbeat: _NAME + 2,
    Have: _NAME,
}
ENTRIES = 4
"""The number of subscriptions in one piece of a hand-over. Each has one or two constraints."""


def bytes_of(message: DdsMessage) -> int:
    """Return the size of a message on a mote, in bytes."""
    match message:
        case DataMessage(_, _, values):
            return max(UNIT, _NAME + sum(len(v) if isinstance(v, str) else _NUMBER for v in values.values()))
        case DdsSubscribe(where=where):
            return _WISH + _CONSTRAINT * len(where)
        case DdsNotification(wish):
            return 1 + bytes_of(wish)
        case TableHandover(wishes=wishes):
            return 6 + sum(bytes_of(wish) for wish in wishes)
        case Role(readers=readers):
            return 6 + 2 * len(readers)
        case Nack(missing=missing):
            return 6 + 2 * len(missing)
    return _PLAIN_SIZES[type(message)]


def topic_of(message: DdsMessage) -> TopicId:
    """Return the topic to which a message refers."""
    match message:
        case DataMessage(name) | SampleAck(name) | Heartbeat(name) | Have(name):
            return name.stream.topic
        case DdsNotification(wish):
            return wish.topic
        case Nack(stream):
            return stream.topic
    return message.topic


DISCOVERY = (DdsSubscribe, DdsUnsubscribe, DdsNotification, Demand)
"""Messages by which publishers and subscribers find each other."""


def cause_of(message: DdsMessage) -> str:
    """Return the name under which the simulator accounts for a message."""
    return "discovery" if isinstance(message, DISCOVERY) else message_name(message).lower()


def message_name(message: DdsMessage | type[DdsMessage]) -> str:
    """Return the name of a message, or of its class, for traces and accounts."""
    name = wire_name(message)
    return "LevelRequest" if name == "Level" else name
