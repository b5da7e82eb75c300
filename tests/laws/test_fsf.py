"""Correlation subscriptions through a network: what arrives, and what it costs, for every approach."""

import os
import random
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.network.overlay.memory.fsf import FsfNetwork
from holdfast.network.protocols.fsf.message import SubscriptionRefused
from holdfast.network.protocols.fsf.policy import POLICIES
from support import naive_fsf as naive

few = settings(max_examples=int(os.environ.get("HOLDFAST_EXAMPLES") or 25))

EXACT = ("centralized", "naive", "operator-placement", "fsf-exact")


def network(world, approach, **options):
    made = FsfNetwork(world.links, POLICIES[approach], **options)
    for name, (node, attribute, at) in world.sensors.items():
        made.advertise(node, name, attribute, at)
    for name, (node, wanted) in world.subscriptions.items():
        made.subscribe(node, name, wanted)
    return made


def publish(made, world, events, at_once):
    if at_once:
        made.publish_all(events)
    else:
        for event in events:
            made.publish(world.homes[event.sensor], event)


@few
@given(naive.scenarios(), st.booleans())
def test_users_receive_exactly_the_correlated_events(world, at_once):
    for approach in POLICIES:
        made = network(world, approach)
        publish(made, world, world.events, at_once)
        for name, (_, wanted) in world.subscriptions.items():
            right = naive.participants(wanted, world.events)
            if isinstance(made.answers[name], SubscriptionRefused):
                assert not right
            elif approach in EXACT:
                assert made.delivered[name] == right, approach
            elif approach.startswith("multi-join"):
                assert right <= made.delivered[name] <= naive.matching(wanted, world.events)
            else:
                assert made.delivered[name] <= right


@few
@given(naive.scenarios(identified=True, within=4), st.sampled_from(sorted(naive.FILTERING)), st.booleans())
def test_the_traffic_of_each_link_follows_the_approach(world, approach, at_once):
    made = network(world, approach)
    publish(made, world, world.events, at_once)
    expected = naive.Traffic(world, approach)
    assert made.subscriptions == expected.subscriptions
    assert made.publications == expected.publications
    assert made.delivered == expected.delivered


@few
@given(naive.scenarios())
def test_a_lone_subscription_gets_exactly_the_false_positives_of_its_binary_joins(world):
    for name, (node, wanted) in world.subscriptions.items():
        joined = naive.binary_joins if len(wanted.filters) > 1 else naive.matching
        for approach in ("multi-join", "multi-join-named"):
            made = network(replace(world, subscriptions={name: (node, wanted)}), approach)
            made.publish_all(world.events)
            if not isinstance(made.answers[name], SubscriptionRefused):
                assert made.delivered[name] == joined(wanted, world.events)


@few
@given(naive.scenarios(), st.integers(0, 99), st.sampled_from(sorted(POLICIES)), st.booleans())
def test_the_order_of_events_and_messages_does_not_change_results(world, seed, approach, at_once):
    calm = network(world, approach, validity=100)
    wild = network(world, approach, validity=100, overtaking=True)
    publish(calm, world, world.events, at_once=False)
    publish(wild, world, random.Random(seed).sample(world.events, len(world.events)), at_once)
    assert wild.delivered == calm.delivered
    assert wild.publications == calm.publications


STEPS = (*["subscribe"] * 4, "unsubscribe", "unsubscribe", *["advertise"] * 3, "withdraw", "break")


@few
@given(naive.scenarios(start=100), st.integers(0, 2**32), st.integers(0, 40), st.sampled_from(EXACT))
def test_after_any_changes_results_equal_those_of_a_fresh_start(world, seed, count, approach):
    chance = random.Random(seed)
    made = FsfNetwork(world.links, POLICIES[approach], seed, overtaking=True)
    there, wanted = set(), {}
    for step in chance.choices(STEPS, k=count) + ["advertise"] * len(world.sensors):
        absent, unwanted = sorted(world.sensors.keys() - there), sorted(world.subscriptions.keys() - wanted)
        match step:
            case "advertise" if absent:
                name = chance.choice(absent)
                node, attribute, at = world.sensors[name]
                made.advertise(node, name, attribute, at)
                there.add(name)
            case "withdraw" if there:
                name = chance.choice(sorted(there))
                made.withdraw(name)
                there.remove(name)
            case "subscribe" if unwanted:
                name = chance.choice(unwanted)
                node, wanted[name] = world.subscriptions[name]
                made.subscribe(node, name, wanted[name], pending=True)
            case "unsubscribe" if wanted:
                name = chance.choice(sorted(wanted))
                made.unsubscribe(name)
                del wanted[name]
            case "break":
                link = chance.choice(world.links)
                made.cut(*link)
                made.connect(*link)
    publish(made, world, world.events, at_once=False)
    for name, subscription in wanted.items():
        assert made.delivered[name] == naive.participants(subscription, world.events)
