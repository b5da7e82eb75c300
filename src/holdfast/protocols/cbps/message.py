"""What brokers and clients say to one another.

A *bundle* carries advertisements, subscriptions and notifications, slips that say where to, and
whatever else travels with them; it is forwarded whole or not at all [B15].  The other messages are
about a connection or about a bundle that is stored already.  All are frozen values that msgspec
encodes as they stand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, get_args

import msgspec

from ...model import event as model
from ...model.instant import Duration, Instant
from .content import Filter
from .ranges import Value

Kind = Literal[
    "advertisement", "subscription", "notification", "slip", "active subscription", "context", "payload"
]
"""What a bundle may carry, and an end of a connection accept.  [B18]"""

KINDS: tuple[Kind, ...] = get_args(Kind)

SlipType = Literal["subscription", "notification"]

Node = str
"""A broker from its start to its end: another of the same name, or the same started anew, is another."""


class Key(NamedTuple):
    """The name of a bundle: who made it, and its number there, which only grows.

    Nothing with the same key is delivered twice; what is stored is withdrawn by its key.
    """

    origin: str
    sequence: int


class Part(NamedTuple):
    """One subscription of a stored bundle, by its place there."""

    bundle: Key
    place: int


class Advertisement(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a publisher will send, at the least: notifications may have further fields.  [B2, B11]"""

    filter: Filter
    flood_forward: bool = True
    aggregation: bool = True


class StateFilter(msgspec.Struct, frozen=True, omit_defaults=True):
    """A condition in the language of Holdfast: its topics, its regions, and one subscription."""

    definition: str


class Subscription(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a subscriber wants to hear; with a state filter, only what starts or ends its condition."""

    filter: Filter
    flood_forward: bool = False
    aggregation: bool = True
    state: StateFilter | None = None


class Notification(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a publisher says: a value for each name.  [B2]"""

    content: Mapping[str, Value]
    flood_forward: bool = False


class RoutingSlip(msgspec.Struct, frozen=True, omit_defaults=True):
    """An address: the bundle goes where a subscription, or a notification, of this content would.  [B27]"""

    type: SlipType
    filter: Filter
    persistent: bool = True


class Strategy(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which agent to start beside the publisher that the deployment slip describes, and how.  [B29, B31]"""

    slip: Filter
    implementation: str
    parameters: tuple[tuple[str, str], ...] = ()


class ActiveSubscription(msgspec.Struct, frozen=True, omit_defaults=True):
    """Strategies, and the digest of their code if it is shipped, ``signed`` perhaps.  Brokers route and store
    it; it does nothing by itself.  Agents that start ``again`` do not know what was told before them;
    ``disabled``, none do."""

    strategies: tuple[Strategy, ...]
    code: str = ""
    signed: str = ""
    again: bool = False
    disabled: bool = False


class ExpressSlip(msgspec.Struct, frozen=True):
    """The digest of the stored item that the last broker matched; the next one looks that up.  [B46]"""

    type: SlipType
    cache_id: str


class Context(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a bundle came here; what is missing, the first broker fills in.  [B40]"""

    origin: str | None = None
    sender: str | None = None
    hop_count: int = 0
    arrival_time: Instant | None = None
    travel_time: Duration = 0


class Bundle(msgspec.Struct, frozen=True, omit_defaults=True, tag="bundle"):
    """The container of everything that is routed.  [B15]

    ``incoming`` filters are tested against the context of what matches a stored part of the bundle,
    ``outgoing`` ones against its own before it is forwarded; of several, one that passes suffices
    [B41].  What is stored is forgotten after ``lease`` without renewal; without a lease it stays as
    long as the connection.
    """

    key: Key
    context: Context | None = None
    incoming: tuple[Filter, ...] = ()
    outgoing: tuple[Filter, ...] = ()
    express: ExpressSlip | None = None
    slips: tuple[RoutingSlip, ...] = ()
    advertisements: tuple[Advertisement, ...] = ()
    subscriptions: tuple[Subscription, ...] = ()
    notifications: tuple[Notification, ...] = ()
    active: tuple[ActiveSubscription, ...] = ()
    payloads: tuple[str, ...] = ()
    lease: Duration | None = None


class Registration(msgspec.Struct, frozen=True, omit_defaults=True, tag="registration"):
    """Which kinds an end of a connection accepts: it is sent nothing else.  [B18]"""

    accepts: tuple[Kind, ...] = ()
    request: bool = False
    reply: bool = False


class Unadvertise(msgspec.Struct, frozen=True, tag="unadvertise"):
    """The advertisements of a bundle hold no longer."""

    bundle: Key


class Unsubscribe(msgspec.Struct, frozen=True, tag="unsubscribe"):
    """The subscriptions of a bundle, with its slips and active subscriptions, hold no longer."""

    bundle: Key


class Renewal(msgspec.Struct, frozen=True, tag="renewal"):
    """These bundles are still wanted: their leases begin anew.  [F14]"""

    bundles: tuple[Key, ...]


class Refusal(msgspec.Struct, frozen=True, tag="refusal"):
    """A bundle, or a part of it, cannot be stored, and why."""

    bundle: Key
    why: str


class Echo(msgspec.Struct, frozen=True, tag="echo"):
    """From a client: say this back when you have done with all that I said before."""

    number: int


# Brokers among themselves: who is joined to whom, and which connections are used


class Neighbours(msgspec.Struct, frozen=True, omit_defaults=True, tag="neighbours"):
    """Whom a broker is joined to, and since when, as a rank; its numbers only grow.  ``limit`` is the longest
    message that it takes, if there is a bound."""

    node: Node
    number: int
    links: tuple[tuple[Node, int], ...] = ()
    limit: int = 0


class Use(msgspec.Struct, frozen=True, tag="use"):
    """Who I am, the number under which I use this connection (0: it is a spare), and the last of yours that
    I have heard."""

    node: Node
    mine: int
    yours: int


# Conditions.  Of a state filter each broker on the way runs a replica, which may drop events once it knows
# the bits; any other condition is run by one broker, and its state is handed over when that is to be another


class Placement(msgspec.Struct, frozen=True, omit_defaults=True, tag="placement"):
    """From the subscriber's side: which scopes of a condition have publishers elsewhere, so that you must
    not drop for them what may matter; ask me for the bits of the others.  No list is all.

    What has no replicas is one scope: with an empty list ask me for its state, and run it; without a list
    hand it back.
    """

    of: Part
    shared: tuple[str, ...] | None
    number: int = 0


class Ask(msgspec.Struct, frozen=True, tag="ask"):
    """From the publisher's side: which bits are set, or what is the state, when you have heard all that I
    said before this?"""

    of: Part
    number: int


class Answer(msgspec.Struct, frozen=True, omit_defaults=True, tag="answer"):
    """The bits: the scopes in which the condition holds, and those of them that are in doubt."""

    of: Part
    number: int
    bits: tuple[str, ...]
    doubted: tuple[str, ...] = ()


class Interruption(msgspec.Struct, frozen=True, tag="interruption"):
    """From the publisher's side: events of these scopes may be lost, so nobody knows what holds there
    until an event decides.  No list is all."""

    of: Part
    scopes: tuple[str, ...] | None


class Handover(msgspec.Struct, frozen=True, omit_defaults=True, tag="handover"):
    """Run it from now on: the state of a condition, in pieces.  No piece: it is lost, begin anew."""

    of: Part
    piece: bytes | None
    last: bool = True


class Said(msgspec.Struct, frozen=True, tag="said"):
    """From the publisher's side: what the condition says to its subscriber."""

    of: Part
    notification: model.Notification


# Code of strategies: bundles name it by its digest, and who needs it asks the neighbour from whom they came


class Wanted(msgspec.Struct, frozen=True, tag="wanted"):
    """I lack the code of this digest."""

    digest: str


class Code(msgspec.Struct, frozen=True, tag="code"):
    """Here it is.  [B33]"""

    digest: str
    text: str


Message = (
    Bundle
    | Registration
    | Unadvertise
    | Unsubscribe
    | Renewal
    | Refusal
    | Echo
    | Neighbours
    | Use
    | Placement
    | Ask
    | Answer
    | Interruption
    | Handover
    | Said
    | Wanted
    | Code
)

About = Placement | Ask | Answer | Interruption | Handover | Said
"""What is said about a condition that is stored already."""

_encode = msgspec.msgpack.Encoder().encode


def bytes_of(message: Message) -> int:
    """How long a message is as brokers write it."""
    return len(_encode(message))
