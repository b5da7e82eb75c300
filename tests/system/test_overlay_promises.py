"""Every promise of docs/howto/overlay.md has a test; this page lists them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "howto" / "overlay.md"

COMMANDS = "tests/system/test_overlay.py"
SOCKETS = "tests/unit/network/overlay/test_brokers_on_tcp.py"
TCP = "tests/unit/network/overlay/test_tcp.py"
HOSTILE = "tests/unit/network/overlay/test_hostile.py"
TLS = "tests/unit/network/overlay/connection/test_tls.py"
PUBLISHER = "tests/unit/network/overlay/test_publisher.py"
REGIONS = "tests/unit/network/overlay/test_regions.py"
TRAVEL = "tests/unit/network/overlay/test_conditions.py"
PLACES = "tests/unit/network/protocols/cbps/test_placement.py"
CIRCLES = "tests/unit/network/protocols/cbps/test_topology.py"
BORDER = "tests/unit/network/protocols/cbps/test_border.py"
BOUNDS = "tests/unit/network/protocols/cbps/test_bounds.py"

PROMISES = {
    "Sensors that watch one region say the same twice": (
        (PLACES, "test_redundant_sensors_of_a_region_are_combined_at_the_broker_where_they_meet"),
        (TRAVEL, "test_the_regions_of_a_gazetteer_are_sent_with_the_same_meaning"),
    ),
    "A definition that says `scope regions` and has no regions": (
        (COMMANDS, "test_a_broker_provides_the_regions_in_which_sensors_are_redundant"),
        (REGIONS, "test_regions_of_a_network_equal_regions_in_the_definition"),
    ),
    "`subscribe --only NAME` takes some": (
        (COMMANDS, "test_lines_of_standard_input_are_published_as_they_arrive_and_bad_lines_are_named"),
        (COMMANDS, "test_a_subscriber_prints_when_a_condition_starts_and_ends"),
    ),
    "Without a definition": ((COMMANDS, "test_a_content_filter_needs_no_definition_and_works_over_xml"),),
    "`publish --topics APP.hf` declares": (
        (COMMANDS, "test_lines_of_standard_input_are_published_as_they_arrive_and_bad_lines_are_named"),
    ),
    "A line that is no event is named and counted": (
        (COMMANDS, "test_lines_of_standard_input_are_published_as_they_arrive_and_bad_lines_are_named"),
        (COMMANDS, "test_with_strict_the_first_bad_line_ends_the_run"),
        (COMMANDS, "test_a_run_in_which_every_line_is_rejected_fails"),
    ),
    "`publish` advertises each source before its first event": (
        (PUBLISHER, "test_a_publisher_advertises_each_source_before_its_first_event_and_where_it_stays"),
        (PUBLISHER, "test_only_the_topic_is_advertised_for_very_many_sources"),
    ),
    "A broker that is not there is an error": (
        (COMMANDS, "test_an_unreachable_broker_is_named_with_its_address"),
        (COMMANDS, "test_a_publisher_can_wait_for_a_broker_that_starts_later"),
    ),
    "`publish --filter` lets the publisher itself drop": (
        (PLACES, "test_a_filtering_publisher_sends_only_starts_and_ends"),
        (COMMANDS, "test_a_filtering_publisher_sends_only_starts_and_ends"),
    ),
    "However brokers are joined, each subscriber hears an event once": (
        (
            SOCKETS,
            "test_four_brokers_all_joined_and_one_event_give_each_subscriber_one_line_and_fewer_than_500_messages",
        ),
        (
            CIRCLES,
            "test_after_any_changes_of_links_every_reachable_subscriber_receives_each_event_once",
        ),
    ),
    "A spare is used when another connection or broker is lost": (
        (SOCKETS, "test_a_spare_connection_is_used_when_another_is_lost"),
        (CIRCLES, "test_a_broker_that_dies_loses_no_messages_of_the_others"),
    ),
    "A new connection that closes a circle disturbs nobody": (
        (CIRCLES, "test_a_connection_that_closes_a_cycle_has_no_effect_on_others"),
    ),
    "Calling a broker twice": ((SOCKETS, "test_duplicate_calls_and_names_cause_no_reconnection_loop"),),
    "Nothing is delivered twice": (
        (COMMANDS, "test_only_messages_that_cross_a_failure_are_lost_and_none_is_repeated"),
    ),
    "Lost can be only what was on its way": (
        (COMMANDS, "test_only_messages_that_cross_a_failure_are_lost_and_none_is_repeated"),
    ),
    "A publisher that ends in order is no loss": (
        (COMMANDS, "test_three_publishers_in_sequence_cause_a_start_and_an_end"),
    ),
    "If a condition held and events that could have ended it may be lost": (
        (COMMANDS, "test_a_subscriber_survives_the_end_of_its_broker"),
        (COMMANDS, "test_a_condition_restarts_when_the_broker_that_runs_it_dies"),
    ),
    "A broker keeps nothing on disk": ((COMMANDS, "test_a_subscriber_survives_the_end_of_its_broker"),),
    "A peer that says nothing is asked": (
        (TCP, "test_a_silent_peer_is_pinged_and_then_dropped"),
        (TCP, "test_a_peer_that_answers_stays_connected"),
    ),
    "One that sends what is no message is told why and dropped": (
        (TCP, "test_an_unknown_protocol_closes_only_its_connection_with_a_reason"),
        (HOSTILE, "test_a_broker_under_attack_serves_its_clients"),
    ),
    "A name is used once at a time": (
        (TCP, "test_a_second_holder_of_a_name_is_refused_with_the_reason"),
        (SOCKETS, "test_events_of_two_publishers_with_one_name_at_two_brokers_are_delivered"),
    ),
    "A client that calls again": ((TCP, "test_a_new_call_replaces_the_callers_lost_connection"),),
    "A publisher that restarts is heard": (
        (BORDER, "test_events_of_a_publisher_restarted_with_its_clock_set_back_are_delivered"),
    ),
    "Forged names and keys change nothing": (
        (SOCKETS, "test_forged_names_and_keys_change_nothing_for_others"),
        (BORDER, "test_a_forged_name_cannot_withdraw_bundles_of_another_client"),
    ),
    "A client cannot write how its bundles came": (
        (BORDER, "test_only_brokers_write_the_context_of_a_bundle"),
        (BORDER, "test_a_forged_express_slip_delivers_nothing_that_was_not_subscribed"),
        (BORDER, "test_a_client_cannot_act_as_a_broker"),
    ),
    "`travelTime` is the time": (
        (SOCKETS, "test_time_in_the_queue_of_a_slow_consumer_counts_as_time_on_the_way"),
        (SOCKETS, "test_bundles_are_stamped_on_arrival_and_the_clients_context_is_overwritten"),
    ),
    "The longest message that each broker takes": (
        (SOCKETS, "test_a_subscription_refused_by_a_neighbour_affects_no_other_client"),
        (BOUNDS, "test_accepted_bundles_may_grow_on_their_way"),
        (BOUNDS, "test_a_notification_that_is_too_long_is_not_silently_lost"),
    ),
    "A connection that takes less says so": (
        (SOCKETS, "test_a_client_announces_its_message_limit_in_the_greeting"),
    ),
    "A client stores at most": ((BOUNDS, "test_the_bytes_stored_for_a_connection_are_bounded"),),
    "Of a client's definitions": (
        (BOUNDS, "test_invalid_definitions_cost_more_of_a_clients_budget"),
        (BOUNDS, "test_a_refused_definition_is_not_read_again"),
    ),
    "Strangers who have not said who they are": (
        (SOCKETS, "test_silent_strangers_do_not_block_other_clients"),
    ),
    "A publisher is held back": ((TCP, "test_a_broker_that_does_not_read_slows_its_publisher_down"),),
    "A slow consumer loses the oldest": (
        (TCP, "test_a_slow_consumer_loses_the_oldest_readings_and_the_loss_is_counted"),
        (TCP, "test_a_slow_consumer_is_disconnected_where_nothing_may_be_lost"),
    ),
    "With a token both ends prove": ((TCP, "test_the_token_is_never_sent_and_a_proof_cannot_be_reused"),),
    "With TLS nobody is believed": (
        (TLS, "test_a_broker_without_a_signed_certificate_is_refused"),
        (TLS, "test_a_caller_without_a_required_certificate_is_disconnected"),
    ),
}
"""How a promise begins, and the tests that hold it."""


def made() -> list[str]:
    """The promises of the page: its lists."""
    return [line.removeprefix("- ") for line in PAGE.read_text().splitlines() if line.startswith("- ")]


@pytest.mark.parametrize("promise", made())
def test_every_promise_of_the_overlay_page_names_existing_tests(promise):
    held = [tests for begin, tests in PROMISES.items() if promise.startswith(begin)]
    assert len(held) == 1, "add it to the table"
    for path, name in held[0]:
        tree = ast.parse((ROOT / path).read_text())
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, (path, name)


def test_the_table_of_promises_contains_only_promises_of_the_page():
    assert [begin for begin in PROMISES if not any(one.startswith(begin) for one in made())] == []
