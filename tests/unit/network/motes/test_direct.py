"""Without a middleware every reading goes straight to the subscribers, and conditions are found there."""

from __future__ import annotations

from holdfast.network.motes.run import SimulationRun
from holdfast.network.motes.study import read_text
from support.protocols import scenario_text


def made(text: str, seed: int = 1) -> SimulationRun:
    return SimulationRun(read_text(text).points[0].case, seed)


def test_every_reading_is_one_message_to_each_subscribing_node():
    run = made(
        scenario_text(to="[Warm, T]", more="").replace("  - {node: 4", "  - {node: 6, to: T}\n  - {node: 4")
    )
    outcome = run.finish()
    assert run.account.messages == {"Data": 180}
    assert outcome.measures["sent"] == 180
    rows = {row["subscription"]: row for row in outcome.subscriptions}
    assert (rows["T"]["subscribers"], rows["T"]["messages"]) == (2, 135.0)
    assert (rows["Warm"]["subscribers"], rows["Warm"]["messages"]) == (1, 45.0)
    assert rows["T"]["delivered"] == 180


def test_a_lost_start_makes_later_notifications_unexpected():
    apart = "failures: [{kind: partition, at: 30 s, groups: [[4]]}, {kind: heal, at: 55 s}]\n"
    (row,) = made(scenario_text(more=apart), 4).finish().subscriptions
    assert row["lost"] == {"lost on the way": row["expected"] - row["delivered"]}
    assert row["loss"] > 0.2
    assert row["unexpected"] > 0


def test_a_restarted_subscriber_has_no_active_conditions():
    dies = "failures: [{kind: kill, at: 40 s, nodes: [4]}, {kind: restart, at: 41 s, nodes: [4]}]\n"
    text = scenario_text(more=dies).replace("{kind: uniform}", "{kind: constant, value: 1}")
    run = made(text)
    (row,) = run.finish().subscriptions
    assert (row["expected"], row["delivered"], row["unexpected"]) == (3, 3, 3), "they start again"


def test_timers_within_the_allowance_at_the_end_are_not_expected():
    """'ordered 2 s' decides 2 s later, and a second is left for what may be on its way."""
    ends = scenario_text().replace("per source", "per source ordered 2 s").replace("stop: 80 s", "stop: 90 s")
    run = made(ends)
    (row,) = run.finish().subscriptions
    assert row["lost"] == {}
    assert row["delivered"] == row["expected"] > 5
    assert max(what.event.time for _, _, what in run.account.notifications) < 87_000_000


def test_filters_at_the_source_send_only_state_changes_with_equal_notifications():
    everything, filtered = made(scenario_text()), made(scenario_text("{kind: direct, filters: source}"))
    (whole,), (few,) = everything.finish().subscriptions, filtered.finish().subscriptions
    assert few["expected"] == few["delivered"] == whole["delivered"] == filtered.account.messages["Data"]
    assert everything.account.messages["Data"] == 90 > few["delivered"] > 0
    assert _notified(everything) == _notified(filtered)


def _notified(run: SimulationRun) -> set[tuple[str, int, str]]:
    return {
        (output.event.source, output.event.time, output.status) for _, _, output in run.account.notifications
    }
