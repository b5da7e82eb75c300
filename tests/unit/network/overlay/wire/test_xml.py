"""The thesis' XML: its printed samples are understood, and hostile documents are refused."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.network.overlay.wire.fault import WireFault
from holdfast.network.overlay.wire.xml.codec import XmlCodec
from holdfast.network.overlay.wire.xml.markup import Elements
from holdfast.network.protocols.cbps.content import Constraint, Filter
from holdfast.network.protocols.cbps.message import (
    Advertisement,
    AgentStrategy,
    Bundle,
    BundleContext,
    BundleKey,
    CbpsSubscription,
    ExpressSlip,
    PublishedNotification,
    Registration,
    RoutingSlip,
)


def decode(text, largest=1 << 20):
    return list(XmlCodec(largest).receive(text.encode() if isinstance(text, str) else text))


def only(text):
    (parsed,) = decode(text)
    return parsed


UID_A = Constraint("uid", "text", "=", "A")
X, Y = (Constraint(name, "long", "any") for name in "XY")


def test_the_printed_attribute_values_parse_as_a_notification():
    parsed = only("""
        <ISCAMsg><Notification>
        <av name="name" type="string" value="Bob"/>
        <av name="X" type="long" value="123"/>
        <av name="Y" type="long" value="123"/>
        </Notification></ISCAMsg>""")
    assert parsed.notifications == (PublishedNotification({"name": "Bob", "X": 123, "Y": 123}),)


def test_the_printed_subscription_parses_with_its_flag():
    parsed = only("""<ISCAMsg><Subscription floodForward="true">
    <ac name="name" type="string" op="EQ" value="Bob"/>
    <ac name="X" type="long" op="ANY"/>
        <ac name="Y" type="long" op="ANY"/>
        </Subscription></ISCAMsg>""")
    bob = Constraint("name", "text", "=", "Bob")
    assert parsed.subscriptions == (CbpsSubscription(Filter((bob, X, Y)), flood_forward=True),)


def test_the_registration_of_the_listener_asks_for_notifications_t26():
    parsed = only('<ISCAConfig><Registration request="true"><Notification/></Registration></ISCAConfig>')
    assert parsed == Registration(("notification",), request=True)


def test_a_registration_treats_everything_but_true_as_false():
    parsed = only('<ISCAConfig><Registration request="yes" reply="TRUE"><Tea/></Registration></ISCAConfig>')
    assert parsed == Registration(())


def test_the_subscription_of_the_listener_parses_t26():
    parsed = only("""<ISCAMsg><Subscription><ac name="sensor" type="string" op="EQ" value="Hawthorn St"/>
        <ac name="route" type="string" op="EQ" value="5"/>
        <ac name="direction" type="string" op="EQ" value="NORTH"/>
        <ac name="speed" type="long" op="ANY"/></Subscription></ISCAMsg>""")
    (subscription,) = parsed.subscriptions
    assert [c.name for c in subscription.filter.constraints] == ["sensor", "route", "direction", "speed"]


def test_the_proximity_example_of_figure_4_11_parses():
    parsed = only("""
    <MessageBundle>
     <Subscription>
      <ac name="uid" type="string" op="EQ" value="(A.x-B.x)^2 + (A.y-B.y)^2"/>
      <ac name="distance" type="double" op="LE" value="10"/>
     </Subscription>
     <ActiveSubscription>
        <ImplementationStrategy>
           <DeploymentSlip>
             <ac name="uid" type="string" op="EQ" value="A"/>
             <ac name="X" type="long" op="ANY"/>
             <ac name="Y" type="long" op="ANY"/>
           </DeploymentSlip>
           <ImplementationClass name="ISCA.Agent.LocationObserverAgent"/>
           <InitializationParameters>
             <uid value="A"/>
             <partnerUid value="B"/>
             <lowRange value="8"/>
             <highRange value="10"/>
           </InitializationParameters>
        </ImplementationStrategy>
        <ImplementationCode> hex code here </ImplementationCode>
     </ActiveSubscription>
    </MessageBundle>""")
    (subscription,) = parsed.subscriptions
    assert subscription.filter.constraints[1] == Constraint("distance", "double", "<=", 10.0)
    (active,) = parsed.active
    parameters = (("uid", "A"), ("partnerUid", "B"), ("lowRange", "8"), ("highRange", "10"))
    slip = Filter((UID_A, X, Y))
    assert active.strategies == (AgentStrategy(slip, "ISCA.Agent.LocationObserverAgent", parameters),)
    assert active.code.strip() == "hex code here"


def test_the_printed_express_slips_parse():
    slip = (
        '<ExpressForwardingSlip type="subscription"><ac name="cacheId" type="string" op="EQ" value="[AdvA]"/>'
    )
    assert only(f"<ISCAMsg>{slip}</ExpressForwardingSlip></ISCAMsg>").express == ExpressSlip(
        "subscription", "[AdvA]"
    )
    parsed = only("""<ISCAMsg><ExpressForwardingSlip>
        <av name="cacheId" type="string" value="[cacheId]"/>
        </ExpressForwardingSlip><Notification> ... </Notification></ISCAMsg>""")
    assert parsed.express == ExpressSlip("notification", "[cacheId]")
    assert parsed.notifications == (PublishedNotification({}),)


def test_the_printed_context_parses_and_the_rest_is_filled_in_later():
    parsed = only(
        '<ISCAMsg><MessageContext><av name="hopCnt" type="long" value="1"/></MessageContext></ISCAMsg>'
    )
    assert parsed.context == BundleContext(hop_count=1)


def test_an_unknown_attribute_or_node_is_ignored_t27():
    parsed = only("""<ISCAMsg colour="red"><Mystery><ac/></Mystery><Advertisement weight="3">
        <note/><ac name="X" type="long" op="ANY" since="1999"/></Advertisement></ISCAMsg>""")
    assert parsed.advertisements == (Advertisement(Filter((X,))),)
    assert decode('<Connect/><Wrap><ConnectionId value="7"/></Wrap>') == []


def test_content_that_does_not_fit_the_type_of_a_slip_is_discarded_t27():
    parsed = only("""<ISCAMsg>
        <RoutingSlip type="subscription"><ac name="X" type="long" op="ANY"/>
            <av name="Y" type="long" value="1"/></RoutingSlip>
        <RoutingSlip type="notification"><ac name="X" type="long" op="ANY"/></RoutingSlip>
        <RoutingSlip type="postcard"><ac name="X" type="long" op="ANY"/></RoutingSlip>
        </ISCAMsg>""")
    assert parsed.slips == (RoutingSlip("subscription", Filter((X,))),)


def test_flags_follow_the_thesis_and_anything_else_means_the_default():
    parsed = only("""<ISCAMsg><Advertisement floodForward="false" aggregation="no"/>
        <Subscription floodForward="TRUE" aggregation="false"/>
        <RoutingSlip type="subscription" persistent="false"><ac name="X" type="long" op="ANY"/></RoutingSlip>
        </ISCAMsg>""")
    assert parsed.advertisements[0] == Advertisement(Filter(), flood_forward=False, aggregation=True)
    assert parsed.subscriptions[0] == CbpsSubscription(Filter(), flood_forward=False, aggregation=False)
    assert not parsed.slips[0].persistent


def test_bundles_without_a_key_get_unique_keys():
    first, second = decode("<ISCAMsg/><ISCAMsg/>")
    assert first.key.origin == second.key.origin
    assert first.key.sequence < second.key.sequence
    assert only("<ISCAMsg/>").key.origin != first.key.origin
    assert only('<ISCAMsg origin="ping" sequence="7"/>') == Bundle(BundleKey("ping", 7))


def test_a_payload_of_markup_remains_markup():
    sent = XmlCodec(1 << 20).encode(
        only("<ISCAMsg><Payload><reading unit='K'>3</reading></Payload></ISCAMsg>")
    )
    assert b'<Payload><reading unit="K">3</reading></Payload>' in sent
    assert only("<ISCAMsg><Payload> meaningful stuff </Payload></ISCAMsg>").payloads == (
        " meaningful stuff ",
    )


def test_a_declaration_comments_and_blanks_may_stand_between_messages():
    parsed = decode('<?xml version="1.0" encoding="UTF-8"?>\n<!-- <ISCAMsg> --> <ISCAMsg/>\n\n<ISCAMsg/>')
    assert len(parsed) == 2


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))


@pytest.mark.parametrize(
    ("hostile", "reason"),
    [
        (f'<!DOCTYPE l [<!ENTITY l0 "ha">{LAUGHS}]><ISCAMsg>&l9;</ISCAMsg>', "document type"),
        ('<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><ISCAMsg>&e;</ISCAMsg>', "document type"),
        ('<!DOCTYPE x SYSTEM "http://localhost/x.dtd"><ISCAMsg/>', "document type"),
        ('<ISCAMsg><!DOCTYPE x [<!ENTITY e "x">]>&e;</ISCAMsg>', "document type"),
        ('<ISCAMsg><!ENTITY e "x"></ISCAMsg>', "document type"),
        ("<ISCAMsg>&e;</ISCAMsg>", "undefined entity"),
        ("<a>" * 100_000, "32 deep"),
        ("<ISCAMsg><Payload>" + "x" * 5000, "at most 4,096"),
        ('<ISCAMsg x="' + "y" * 5000, "at most 4,096"),
        ("<ISCAMsg><!--" + "y" * 5000, "at most 4,096"),
        ("<ISCAMsg " + " ".join(f'a{i}="1"' for i in range(5000)), "at most 4,096"),
        ("GET / HTTP/1.1\r\nHost: x\r\n\r\n", "text outside"),
        ("</ISCAMsg>", "ends nothing"),
        ("<ISCAMsg><a></ISCAMsg></a>", "mismatched tag"),
        ("<ISCAMsg x=1/>", "not well-formed"),
        ('<ISCAMsg x="1" x="2"/>', "duplicate attribute"),
        (b"<ISCAMsg>\xff\xfe</ISCAMsg>", "not well-formed"),
        ('<ISCAMsg sequence="1e9" origin="a"/>', "not a whole number"),
        ('<ISCAMsg><Subscription><ac name="X" type="long" op="EQ"/></Subscription></ISCAMsg>', "lacks"),
        (
            '<ISCAMsg><Subscription><ac name="X" type="bit" op="ANY"/></Subscription></ISCAMsg>',
            "there is long, double, string, boolean",
        ),
        (
            '<ISCAMsg><Notification><av name="X" type="long" value="9223372036854775808"/>'
            "</Notification></ISCAMsg>",
            "is not a long",
        ),
        (
            '<ISCAMsg><Subscription><ac name="" type="long" op="ANY"/></Subscription></ISCAMsg>',
            "needs the name",
        ),
        ('<Answer json="{"/>', "Answer"),
        ('<Answer json="' + "[" * 3000 + '"/>', "Answer"),
        ('<Hello name.hex="zz"/>', "hex"),
        ("<Hello/>", "lacks the attribute name"),
    ],
)
@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_hostile_xml_is_refused_with_a_reason(hostile, reason, size):
    data = hostile.encode() if isinstance(hostile, str) else hostile
    receiver = XmlCodec(4096)
    pieces = [data[i : i + size] for i in range(0, min(len(data), 50_000), size)]
    with pytest.raises(WireFault, match=reason):
        all(not list(receiver.receive(piece)) for piece in pieces)


@given(
    st.binary(max_size=200) | st.text("<>/!?-[]\"'= ax&;", max_size=100).map(str.encode), st.integers(1, 50)
)
def test_random_brackets_are_parsed_or_refused(noise, size):
    elements = Elements(100)
    with suppress(WireFault):
        for i in range(0, len(noise), size):
            assert all(element.tag for element in elements.receive(noise[i : i + size]))
