"""The messages between brokers and clients.

A *bundle* carries advertisements, subscriptions, notifications, slips with its destinations, and other
components. A broker forwards it whole or not at all [B15]. The other messages are about a connection or about
a stored bundle. All messages are frozen values that msgspec encodes. Their tags and field names are the wire
format.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, get_args

import msgspec

from ....model import event as model
from ....model.instant import Duration, Instant
from .content import Filter
from .ranges import Value

Kind = Literal[
    "advertisement", "subscription", "notification", "slip", "active subscription", "context", "payload"
]
"""The kinds of components of a bundle. A peer announces the kinds that it accepts. [B18]"""

KINDS: tuple[Kind, ...] = get_args(Kind)

SlipType = Literal["subscription", "notification"]

Node = str
"""The identity of a broker process. A broker that restarts under the same name is another node."""


class BundleKey(NamedTuple):
    """The unique key of a bundle: the name of its maker, and an increasing number.

    Of several bundles with the same key, only the first is delivered. A stored bundle is withdrawn by its
    key.
    """

    origin: str
    sequence: int


class SubscriptionRef(NamedTuple):
    """A reference to one subscription of a stored bundle, by the bundle's key and the subscription's
    index.
    """

    bundle: BundleKey
    place: int


class Advertisement(msgspec.Struct, frozen=True, omit_defaults=True):
    """A promise of notifications. They may have fields that the filter does not mention. [B2, B11]"""

    filter: Filter
    flood_forward: bool = True
    aggregation: bool = True


class ConditionText(msgspec.Struct, frozen=True, omit_defaults=True):
    """A condition in the language of Holdfast: the text of its topics, its regions, and one subscription."""

    definition: str


class CbpsSubscription(msgspec.Struct, frozen=True, omit_defaults=True):
    """A request for notifications. With a ``state``, only notifications that start or end the condition are
    sent.
    """

    filter: Filter
    flood_forward: bool = False
    aggregation: bool = True
    state: ConditionText | None = None


class PublishedNotification(msgspec.Struct, frozen=True, omit_defaults=True):
    """A published notification, which has a value for each field. [B2]"""

    content: Mapping[str, Value]
    flood_forward: bool = False


class RoutingSlip(msgspec.Struct, frozen=True, omit_defaults=True):
    """An address: the bundle goes to every peer that would receive a subscription or notification of this
    content. [B27]
    """

    type: SlipType
    filter: Filter
    persistent: bool = True


class AgentStrategy(msgspec.Struct, frozen=True, omit_defaults=True):
    """The agent to start beside each publisher that the filter ``slip`` describes, with its parameters. [B29,
    B31]
    """

    slip: Filter
    implementation: str
    parameters: tuple[tuple[str, str], ...] = ()


class ActiveSubscription(msgspec.Struct, frozen=True, omit_defaults=True):
    """Strategies, and the digest of their code if the client ships it; ``signed`` is the signature of the
    code.

    Brokers route and store it; it has no other effect on them. With ``again``, agents do not know the reports
    before their start. With ``disabled``, no agents run.
    """

    strategies: tuple[AgentStrategy, ...]
    code: str = ""
    signed: str = ""
    again: bool = False
    disabled: bool = False


class ExpressSlip(msgspec.Struct, frozen=True):
    """The digest of the stored item that the previous broker matched. The next broker looks it up. [B46]"""

    type: SlipType
    cache_id: str


class BundleContext(msgspec.Struct, frozen=True, omit_defaults=True):
    """The path and times of a bundle on its way to a broker. The first broker fills in missing
    fields. [B40]
    """

    origin: str | None = None
    sender: str | None = None
    hop_count: int = 0
    arrival_time: Instant | None = None
    travel_time: Duration = 0


class Bundle(msgspec.Struct, frozen=True, omit_defaults=True, tag="bundle"):
    """The container of everything that brokers route. [B15]

    ``incoming`` filters apply to the context of messages that match a stored part of the bundle. ``outgoing``
    filters apply to the bundle's own context before it is forwarded. Of several filters one must be satisfied
    [B41]. A stored bundle is forgotten after ``lease`` µs without renewal. Without a lease it is stored until
    the connection ends.
    """

    key: BundleKey
    context: BundleContext | None = None
    incoming: tuple[Filter, ...] = ()
    outgoing: tuple[Filter, ...] = ()
    express: ExpressSlip | None = None
    slips: tuple[RoutingSlip, ...] = ()
    advertisements: tuple[Advertisement, ...] = ()
    subscriptions: tuple[CbpsSubscription, ...] = ()
    notifications: tuple[PublishedNotification, ...] = ()
    active: tuple[ActiveSubscription, ...] = ()
    payloads: tuple[str, ...] = ()
    lease: Duration | None = None


class Registration(msgspec.Struct, frozen=True, omit_defaults=True, tag="registration"):
    """The kinds that one end of a connection accepts. The peer sends no other kinds. [B18]"""

    accepts: tuple[Kind, ...] = ()
    request: bool = False
    reply: bool = False


class UnadvertiseBundle(msgspec.Struct, frozen=True, tag="unadvertise"):
    """Withdraws the advertisements of a bundle."""

    bundle: BundleKey


class UnsubscribeBundle(msgspec.Struct, frozen=True, tag="unsubscribe"):
    """Withdraws the subscriptions of a bundle, with its slips and active subscriptions."""

    bundle: BundleKey


class Renewal(msgspec.Struct, frozen=True, tag="renewal"):
    """Restarts the leases of bundles.  [F14]"""

    bundles: tuple[BundleKey, ...]


class BundleRefusal(msgspec.Struct, frozen=True, tag="refusal"):
    """Reports that a bundle, or a part of it, cannot be stored, with the reason."""

    bundle: BundleKey
    why: str


class Echo(msgspec.Struct, frozen=True, tag="echo"):
    """A client's request for an answer after all its earlier messages have been processed."""

    number: int


# Between brokers: the topology, and the connections in use.


class LinkState(msgspec.Struct, frozen=True, omit_defaults=True, tag="neighbours"):
    """Link state: the brokers to which a broker is connected, each with the rank of the connection.

    ``number`` increases with each message. ``limit`` is the longest message in bytes that the broker accepts;
    0 means no limit.
    """

    node: Node
    number: int
    links: tuple[tuple[Node, int], ...] = ()
    limit: int = 0


class LinkUse(msgspec.Struct, frozen=True, tag="use"):
    """The sender's identity and its use of the connection.

    ``mine`` is the number under which the sender uses the connection; 0 means that it is spare. ``yours`` is
    the last number of the peer.
    """

    node: Node
    mine: int
    yours: int


# Conditions.  Of a state filter each broker on the way runs a replica, which may drop events once it knows
# the bits. Any other condition is run by one broker, and its state is handed over to the next one.


class ConditionMessage(msgspec.Struct, frozen=True):
    """A message about the condition of a stored subscription."""

    of: SubscriptionRef


class ScopePlacement(ConditionMessage, frozen=True, omit_defaults=True, tag="placement"):
    """From the subscriber's side: the scopes of a condition that also have publishers elsewhere; ``None``
    means all.

    The receiver must not drop relevant events of these scopes, and requests the bits of all other scopes. A
    hosted condition has one scope: an empty list asks the receiver to request its state and evaluate it,
    ``None`` asks it to hand the state back.
    """

    shared: tuple[str, ...] | None
    number: int = 0


class StateRequest(ConditionMessage, frozen=True, tag="ask"):
    """From the publisher's side: requests the bits, or the state, after all earlier messages are
    processed.
    """

    number: int


class StateAnswer(ConditionMessage, frozen=True, omit_defaults=True, tag="answer"):
    """The bits of a condition: its active scopes, and the uncertain ones among them."""

    number: int
    bits: tuple[str, ...]
    doubted: tuple[str, ...] = ()


class Interruption(ConditionMessage, frozen=True, tag="interruption"):
    """From the publisher's side: events of these scopes may be lost, so their state is unknown. ``None``
    means all scopes.
    """

    scopes: tuple[str, ...] | None


class StateHandover(ConditionMessage, frozen=True, omit_defaults=True, tag="handover"):
    """A piece of the state of a condition. ``None`` means that the state is lost and the condition starts
    again.
    """

    piece: bytes | None
    last: bool = True


class HostedNotification(ConditionMessage, frozen=True, tag="said"):
    """From the publisher's side: a notification of the condition for its subscriber."""

    notification: model.Notification


# Code of strategies: bundles name it by its digest; a broker requests it from the sender of the bundle.


class CodeRequest(msgspec.Struct, frozen=True, tag="wanted"):
    """Requests the code with this digest."""

    digest: str


class CodeText(msgspec.Struct, frozen=True, tag="code"):
    """The source text of the code with this digest. [B33]"""

    digest: str
    text: str


CbpsMessage = (
    Bundle
    | Registration
    | UnadvertiseBundle
    | UnsubscribeBundle
    | Renewal
    | BundleRefusal
    | Echo
    | LinkState
    | LinkUse
    | ScopePlacement
    | StateRequest
    | StateAnswer
    | Interruption
    | StateHandover
    | HostedNotification
    | CodeRequest
    | CodeText
)

_encode = msgspec.msgpack.Encoder().encode


def bytes_of(message: CbpsMessage) -> int:
    """Return the encoded length of a message between brokers."""
    return len(_encode(message))
