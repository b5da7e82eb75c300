"""Random actions in any order: every subscriber receives exactly the matching events, once."""

from __future__ import annotations

from unittest.mock import patch

from hypothesis import given

from holdfast.network.protocols.cbps import routing
from support.overlays import deeds, often, scenarios

QUIET = ("advertise", "subscribe", "withdraw", "withdraw", "publish", "publish", "publish")


def play(world, script):
    """Run a script. After each publication compare the receivers with the oracle."""
    for deed, arguments in script:
        outcome = getattr(world, deed)(*arguments)
        if deed == "publish":
            emitted, expected = outcome
            assert emitted == expected


@often
@given(world=scenarios(), script=deeds(*QUIET))
def test_every_subscriber_receives_exactly_the_matching_events_once(world, script):
    play(world, script)


@often
@given(world=scenarios(), script=deeds(*QUIET, "cut", "join", "join"))
def test_subscribers_receive_matching_events_once_while_links_are_cut_and_networks_joined(world, script):
    play(world, script)


@often
@given(world=scenarios(), script=deeds(*QUIET, "cut", "join"))
def test_subscribers_receive_matching_events_once_at_brokers_that_search_all_connections_at_once(
    world, script
):
    with patch.object(routing, "MANY", 1):
        play(world, script)
        world.withdraw_everything()
        assert world.left_over() == {}


@often
@given(world=scenarios(), script=deeds(*QUIET, "cut", "join"))
def test_brokers_store_nothing_after_everything_is_withdrawn(world, script):
    play(world, script)
    world.withdraw_everything()
    assert world.left_over() == {}


@often
@given(world=scenarios(), script=deeds(*QUIET, "cut", "join"))
def test_the_state_of_brokers_does_not_depend_on_history(world, script):
    play(world, script)
    world.overlay.settle()
    assert world.in_sight() == world.rebuild().in_sight()
