"""The benchmark of correlated states: both systems get the same input, and the states emit what brute
force finds."""

from holdfast_lab.benchmarks import states


def test_states_are_exact_and_the_rows_have_both_memories(monkeypatch):
    monkeypatch.setattr(states, "ROOMS", 8)
    monkeypatch.setattr(states, "HOURS", 0.5)
    monkeypatch.setattr(states, "OFF", 200)
    monkeypatch.setattr(states, "SIDE", 4)
    rows = states.run(lambda _: None)
    assert rows[0].detail["told"]["ingress"] > 5
    assert rows[2].detail["told"]["atomic"] > 5
    assert [row.unit for row in rows] == ["s", "kB", "s", "kB", "×", "×", "", "roofs", "×", "×", "µs"]
    assert rows[6].met


def test_a_storm_causes_fewer_messages(monkeypatch):
    monkeypatch.setattr(states, "SIDE", 16)
    held, at_once, messages, _ = states.storm(lambda _: None)
    assert held.value == 16 * 16
    assert at_once.value > 4
    assert messages.value > 0


def test_a_pair_missed_by_brute_force_is_reported():
    some = states.Readings(
        states.np.array([0, 5, 10, 15]),
        {"Air": states.np.full((4, states.ROOMS), 1.0), "Door": states.np.full((4, states.ROOMS), 6.0)},
    )
    assert states.by_force(some) == ({"ingress": 0, "egress": 0}, 0)
    some.values["Air"][1:3, 7] = 6.0
    assert states.by_force(some) == ({"ingress": 3, "egress": 3}, 30)
    assert states.job(states.JOBS["states"], some).counts == {"ingress": 3, "egress": 3}
