"""The messages between brokers and clients.

A *bundle* carries advertisements, subscriptions and notifications, slips with its destinations, and other
parts that travel with them; it is forwarded whole or not at all [B15]. The other messages are about a
connection or about a stored bundle. All messages are frozen values that msgspec encodes; their tags and field
names are the wire format.
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
"""The kinds of components of a bundle; a peer announces which of them it accepts.  [B18]"""

KINDS: tuple[Kind, ...] = get_args(Kind)

SlipType = Literal["subscription", "notification"]

Node = str
"""The identity of a broker process: a broker that is restarted under the same name is another node."""


class BundleKey(NamedTuple):
    """The name of a bundle: its maker, and an increasing number.

    No two bundles with the same key are delivered. A stored bundle is withdrawn by its key.
    """

    origin: str
    sequence: int


class SubscriptionRef(NamedTuple):
    """A reference to one subscription of a stored bundle, by its index."""

    bundle: BundleKey
    place: int


class Advertisement(msgspec.Struct, frozen=True, omit_defaults=True):
    """A promise of notifications, which may have further fields.  [B2, B11]"""

    filter: Filter
    flood_forward: bool = True
    aggregation: bool = True


class ConditionText(msgspec.Struct, frozen=True, omit_defaults=True):
    """A condition in the language of Holdfast: its topics, its regions, and one subscription."""

    definition: str


class CbpsSubscription(msgspec.Struct, frozen=True, omit_defaults=True):
    """A request for notifications; with a state filter, only for those that start or end its condition."""

    filter: Filter
    flood_forward: bool = False
    aggregation: bool = True
    state: ConditionText | None = None


class PublishedNotification(msgspec.Struct, frozen=True, omit_defaults=True):
    """A published notification: a value for each name.  [B2]"""

    content: Mapping[str, Value]
    flood_forward: bool = False


class RoutingSlip(msgspec.Struct, frozen=True, omit_defaults=True):
    """An address: the bundle goes to every peer to which a subscription or notification of this content
    would.  [B27]"""

    type: SlipType
    filter: Filter
    persistent: bool = True


class AgentStrategy(msgspec.Struct, frozen=True, omit_defaults=True):
    """The agent to start beside the publisher that the deployment slip describes, and its parameters.  [B29,
    B31]"""

    slip: Filter
    implementation: str
    parameters: tuple[tuple[str, str], ...] = ()


class ActiveSubscription(msgspec.Struct, frozen=True, omit_defaults=True):
    """Strategies, and the digest of their code if it is shipped, which may be ``signed``.

    Brokers route and store it; it does nothing by itself. With ``again``, agents do not know what was
    reported before they started. With ``disabled``, no agents run.
    """

    strategies: tuple[AgentStrategy, ...]
    code: str = ""
    signed: str = ""
    again: bool = False
    disabled: bool = False


class ExpressSlip(msgspec.Struct, frozen=True):
    """The digest of the stored item that the last broker matched; the next broker looks it up.  [B46]"""

    type: SlipType
    cache_id: str


class BundleContext(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a bundle came to a broker; the first broker fills in missing fields.  [B40]"""

    origin: str | None = None
    sender: str | None = None
    hop_count: int = 0
    arrival_time: Instant | None = None
    travel_time: Duration = 0


class Bundle(msgspec.Struct, frozen=True, omit_defaults=True, tag="bundle"):
    """The container of everything that is routed.  [B15]

    ``incoming`` filters apply to the context of messages that match a stored part of the bundle, ``outgoing``
    filters to its own context before it is forwarded; of several filters one must be satisfied [B41]. A
    stored bundle is forgotten after ``lease`` microseconds without renewal; without a lease it stays as long
    as the connection.
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
    """The kinds that one end of a connection accepts; the peer sends no others.  [B18]"""

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
    """Reports that a bundle, or a part of it, cannot be stored, and why."""

    bundle: BundleKey
    why: str


class Echo(msgspec.Struct, frozen=True, tag="echo"):
    """A client's request to be answered when all earlier messages have been processed."""

    number: int


# Between brokers: the topology, and the connections in use.


class LinkState(msgspec.Struct, frozen=True, omit_defaults=True, tag="neighbours"):
    """Link state: the brokers that a broker is connected to, each with the rank of the connection.

    ``number`` increases with each message. ``limit`` is the longest message in bytes that the broker accepts;
    0 means no bound.
    """

    node: Node
    number: int
    links: tuple[tuple[Node, int], ...] = ()
    limit: int = 0


class LinkUse(msgspec.Struct, frozen=True, tag="use"):
    """The sender's identity, the number under which it uses the connection (0: spare), and the peer's last
    number."""

    node: Node
    mine: int
    yours: int


# Conditions.  Of a state filter each broker on the way runs a replica, which may drop events once it knows
# the bits. Any other condition is run by one broker, and its state is handed over to the next one.


class ConditionMessage(msgspec.Struct, frozen=True):
    """A message about the condition of a stored subscription."""

    of: SubscriptionRef


class ScopePlacement(ConditionMessage, frozen=True, omit_defaults=True, tag="placement"):
    """From the subscriber's side: the scopes of a condition that have publishers elsewhere; ``None`` means
    all.

    The receiver must not drop relevant events of these scopes, and requests the bits of all others. A hosted
    condition has one scope: an empty list asks the receiver to request its state and evaluate it, ``None`` to
    hand it back.
    """

    shared: tuple[str, ...] | None
    number: int = 0


class StateRequest(ConditionMessage, frozen=True, tag="ask"):
    """From the publisher's side: requests the bits, or the state, after all earlier messages are
    processed."""

    number: int


class StateAnswer(ConditionMessage, frozen=True, omit_defaults=True, tag="answer"):
    """The bits: the active scopes of a condition, and those of them that are in doubt."""

    number: int
    bits: tuple[str, ...]
    doubted: tuple[str, ...] = ()


class Interruption(ConditionMessage, frozen=True, tag="interruption"):
    """From the publisher's side: events of these scopes may be lost, so they are unknown; ``None``
    means all."""

    scopes: tuple[str, ...] | None


class StateHandover(ConditionMessage, frozen=True, omit_defaults=True, tag="handover"):
    """A piece of the state of a condition. Without a piece the state is lost and the condition starts
    again."""

    piece: bytes | None
    last: bool = True


class HostedNotification(ConditionMessage, frozen=True, tag="said"):
    """From the publisher's side: a notification of the condition for its subscriber."""

    notification: model.Notification


# Code of strategies: bundles name it by its digest; a broker requests it from the sender of the bundle.


class CodeRequest(msgspec.Struct, frozen=True, tag="wanted"):
    """Requests code by its digest."""

    digest: str


class CodeText(msgspec.Struct, frozen=True, tag="code"):
    """The text of code with this digest.  [B33]"""

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
