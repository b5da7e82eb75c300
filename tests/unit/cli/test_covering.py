"""``explain`` lists the states that are active only while others are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Engine, Event, check, parse
from holdfast.cli.covering import nested_states

TOPIC = "topic T (value float °C, n int, room text, lit bool)\n"


@pytest.mark.parametrize(
    ("states", "message"),
    [
        (
            ["Warm on T [value > 25; value < 22] per source", "Hot on T [value > 30; 24 > value] per source"],
            ["Hot holds only while Warm does"],
        ),
        (
            [
                "Above on T [n > 10; n <= 10] per source",
                "Odd on T [value > 3; value < 1] per source",
                "Below on T [n <= 20; n > 20] per source",
                "There on T [n > 0 && n < 90; n <= -5] per source",
            ],
            ["There holds only while Above or Below does"],
        ),
        (
            [
                'Hall on T [room == "hall"; room != "hall"] per source',
                'Bright on T [room == "hall" && lit; !lit || room != "hall"] per source',
            ],
            ["Bright holds only while Hall does"],
        ),
        (["Warm on T [value > 25; value < 22] per source", "Hot on T [value > 30; value < 24] per room"], []),
        (
            ["Warm on T [value * 2 > value; n < 22] per source", "Hot on T [value > 30; n < 24] per source"],
            [],
        ),
        (
            ["Warm on T [value > 25; value < 22] per source", "Hot on T [value > 30; value < 20] per source"],
            [],
        ),
    ],
)
def test_covered_states_are_listed_with_their_coverers(states, message):
    assert nested_states(check(parse(TOPIC + "\n".join(f"state {state}" for state in states)))) == message


BOUNDS = st.integers(0, 4)


@given(
    st.lists(st.tuples(BOUNDS, BOUNDS), min_size=2, max_size=4),
    st.lists(st.sampled_from([0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5]), max_size=12),
)
def test_listed_coverings_are_true_for_random_readings(bounds, values):
    text = "topic T (value float)\n" + "\n".join(
        f"state S{i} on T [value > {up}; value <= {down}]" for i, (up, down) in enumerate(bounds)
    )
    app = parse(text)
    around = [output.split(" holds only while ") for output in nested_states(check(app))]
    engine = Engine(app)
    for at, value in enumerate(values):
        engine.push(Event("T", at * 1_000_000_000, "s", {"value": value}))
        holds = {row.subscription for row in engine.holding()}
        for name, others in around:
            words = set(others.replace(",", "").split())
            needed = all if "and" in words else any
            assert name not in holds or needed(w in holds for w in words - {"and", "or", "do", "does"})
