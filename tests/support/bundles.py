"""Everything that brokers and clients can send each other, at random."""

from __future__ import annotations

from hypothesis import strategies as st

from holdfast.model import event as model
from holdfast.model.event import STATUSES, Event
from holdfast.network.protocols.cbps.content import Constraint, Filter
from holdfast.network.protocols.cbps.message import (
    KINDS,
    ActiveSubscription,
    Advertisement,
    AgentStrategy,
    Bundle,
    BundleContext,
    BundleKey,
    BundleRefusal,
    CbpsSubscription,
    CodeRequest,
    CodeText,
    ConditionText,
    Echo,
    ExpressSlip,
    HostedNotification,
    Interruption,
    LinkState,
    LinkUse,
    PublishedNotification,
    Registration,
    Renewal,
    RoutingSlip,
    ScopePlacement,
    StateAnswer,
    StateHandover,
    StateRequest,
    SubscriptionRef,
    UnadvertiseBundle,
    UnsubscribeBundle,
)

longs = st.integers(-(2**63), 2**63 - 1)
texts = st.text(max_size=12) | st.sampled_from(
    ["", " ", "a\r\nb", "\0", "<a>&amp;", "]]>", "\x85\u2028", "'\""]
)
names = st.sampled_from(["uid", "X", "temperature"]) | texts.filter(bool)
doubles = st.floats(allow_nan=False)
values = longs | doubles | texts | st.booleans()

numbers = st.sampled_from(["<", "<=", "=", ">=", ">", "!="])
constraints = (
    st.builds(Constraint, names, st.just("long"), numbers, longs)
    | st.builds(Constraint, names, st.just("double"), numbers, doubles)
    | st.builds(Constraint, names, st.just("text"), st.sampled_from(["=", "!=", "prefix"]), texts)
    | st.builds(Constraint, names, st.just("bool"), st.just("="), st.booleans())
    | st.builds(Constraint, names, st.sampled_from(["long", "double", "text", "bool"]), st.just("any"))
)
filters = st.builds(Filter, st.lists(constraints, max_size=4).map(tuple))
addresses = st.builds(Filter, st.lists(constraints, min_size=1, max_size=3).map(tuple))


def few(strategy):
    return st.lists(strategy, max_size=2).map(tuple)


def as_values(content):
    """A content as the address of a slip of type notification: a value for each name."""
    kinds = {bool: "bool", int: "long", float: "double", str: "text"}
    return Filter(tuple(Constraint(name, kinds[type(v)], "=", v) for name, v in content.items()))


contents = st.dictionaries(names, values, max_size=4)
slips = st.builds(RoutingSlip, st.just("subscription"), addresses, st.booleans()) | st.builds(
    RoutingSlip,
    st.just("notification"),
    st.dictionaries(names, values, min_size=1, max_size=3).map(as_values),
    st.booleans(),
)
keys = st.builds(BundleKey, texts, st.integers(0, 2**63 - 1))
parts = st.builds(SubscriptionRef, keys, st.integers(0, 9))
payloads = texts | st.sampled_from(["<a x='1'><b/>t</a>", '<a x="1"><b />t</a>', "<a>", "meaningful stuff"])
scopes = st.none() | few(texts)

bundles = st.builds(
    Bundle,
    keys,
    context=st.none()
    | st.builds(BundleContext, st.none() | texts, st.none() | texts, longs, st.none() | longs, longs),
    incoming=few(filters),
    outgoing=few(filters),
    express=st.none() | st.builds(ExpressSlip, st.sampled_from(["subscription", "notification"]), texts),
    slips=few(slips),
    advertisements=few(st.builds(Advertisement, filters, st.booleans(), st.booleans())),
    subscriptions=few(
        st.builds(
            CbpsSubscription,
            filters,
            st.booleans(),
            st.booleans(),
            st.none() | st.builds(ConditionText, texts),
        )
    ),
    notifications=few(st.builds(PublishedNotification, contents, st.booleans())),
    active=few(
        st.builds(
            ActiveSubscription,
            few(st.builds(AgentStrategy, filters, texts, few(st.tuples(texts, texts)))),
            texts,
            texts,
            st.booleans(),
            st.booleans(),
        )
    ),
    payloads=few(payloads),
    lease=st.none() | st.integers(0, 2**62),
)
events = st.builds(
    Event,
    texts,
    longs,
    texts,
    st.dictionaries(names, values | st.none(), max_size=3),
    longs,
    st.none() | st.tuples(doubles, doubles),
    st.none() | texts,
)
notifications = st.builds(
    model.Notification, texts, events, st.sampled_from(STATUSES), st.none() | texts, st.none() | longs
)
registrations = st.builds(
    Registration, st.lists(st.sampled_from(KINDS), unique=True).map(tuple), st.booleans(), st.booleans()
)
others = (
    st.builds(UnadvertiseBundle, keys)
    | st.builds(UnsubscribeBundle, keys)
    | st.builds(Renewal, few(keys))
    | st.builds(BundleRefusal, keys, texts)
    | st.builds(LinkState, texts, longs, few(st.tuples(texts, longs)), longs)
    | st.builds(Echo, longs)
    | st.builds(LinkUse, texts, longs, longs)
    | st.builds(ScopePlacement, parts, scopes, st.integers(0, 2**63 - 1))
    | st.builds(StateRequest, parts, longs)
    | st.builds(StateAnswer, parts, longs, few(texts), few(texts))
    | st.builds(Interruption, parts, scopes)
    | st.builds(StateHandover, parts, st.none() | st.binary(max_size=40), st.booleans())
    | st.builds(HostedNotification, parts, notifications)
    | st.builds(CodeRequest, texts)
    | st.builds(CodeText, texts, texts)
)
messages = bundles | registrations | others
