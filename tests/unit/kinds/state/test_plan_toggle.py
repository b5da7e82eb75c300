"""Which conditions share a machine, and which a filter."""

import pytest

from holdfast.definition.parse import parse
from holdfast.engine.ordered import Ordered
from holdfast.kinds.state.plan_toggle import operators
from holdfast.kinds.state.toggle import MOST, ToggleMachine
from holdfast.model.event import Event

HEAD = """
topic T (v float, n int, k text)
topic U (v float)
region lab
region hall
"""


def made(*lines):
    return operators(parse(HEAD + "\n".join(lines)).check().conditions)


def names(found):
    return [operator.names for operator in found]


def test_equal_filters_share_one_slot():
    found = made(
        "state A on T [v > 25; v < 22] per source",
        "state B on T [v > 25; v < 22] per source",
        "state C on T [v > 26; v < 22] per source",
        "let high = 25",
        "state D on T [v > high; !(v >= 22)] per source",
    )
    assert names(found) == [(("A", "B", "D"), ("C",))]
    assert len(found[0].machine.filters) == 2


def test_equal_numbers_of_different_types_make_different_filters():
    """Above 2**53 an int is compared exactly, a float is not."""
    (operator,) = made(f"filter A on T where n > {2**53}", f"filter B on T where n > {2**53}.0")
    assert operator.names == (("A",), ("B",))
    _, out = operator.machine.react(operator.machine.initial(), Event("T", 0, "s", {"n": 2**53 + 1}))
    assert [t.condition for t in out] == [0]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("on T [v > 25; v < 22] per source", "on U [v > 25; v < 22] per source"),
        ("on T [v > 25; v < 22] per source", "on T [v > 25; v < 22] per k"),
        ("on T [v > 25; v < 22] per source", "on T [v > 25; v < 22]"),
        ("on T [v > 25; v < 22] per source, k", "on T [v > 25; v < 22] per k, source"),
        ("on T [v > 25; v < 22] per source, k", "on T [v > 25; v < 22] per source within k"),
        ("on T [v > 25; v < 22] scope lab", "on T [v > 25; v < 22] scope hall"),
        ("on T [v > 25; v < 22]", "on T [v > 25; v < 22] ordered 1 s"),
        ("on T [v > 25; v < 22] ordered 1 s", "on T [v > 25; v < 22] ordered 2 s"),
        ("on T [v > 25; v < 22] ordered 1 s", "on T [v > 25; v < 22] ordered 1 s late apply"),
    ],
)
def test_another_topic_scope_or_delivery_makes_another_machine(one, other):
    assert names(made(f"state A {one}", f"state B {other}")) == [(("A",),), (("B",),)]


def test_filters_beyond_the_capacity_of_a_machine_are_split():
    found = made(*(f"state c{i} on T [v > {i}; v < {i} - 1] per source" for i in range(2 * MOST + 1)))
    assert [len(operator.names) for operator in found] == [MOST, MOST, 1]
    assert [name for one in found for (name,) in one.names] == [f"c{i}" for i in range(2 * MOST + 1)]


def test_equal_filters_are_counted_once():
    lines = [f"state c{i} on T [v > {i % MOST}; v < 0] per source" for i in range(MOST + 6)]
    (operator,) = made(*lines)
    assert operator.names[0] == ("c0", f"c{MOST}")
    assert len(operator.machine.filters) == MOST


def test_a_wait_makes_an_ordered_machine():
    timely, ordered = made(
        "state A on T [v > 1; v < 0]", "state B on T [v > 1; v < 0] ordered 30 s late apply"
    )
    assert isinstance(timely.machine, ToggleMachine)
    assert timely.machine.traits.lateness is None
    assert isinstance(ordered.machine, Ordered)
    assert (ordered.machine.wait, ordered.machine.late) == (30_000_000, "apply")


@pytest.mark.parametrize(
    ("scope", "depth"),
    [("", 1), ("per k", 1), ("per k, source", 1), ("per k within source", 2), ("scope lab", 1),
     ("per k within source scope lab", 3)],
)  # fmt: skip
def test_a_machine_is_as_deep_as_its_scopes(scope, depth):
    (operator,) = made(f"state A on T [v > 1; v < 0] {scope}")
    assert operator.machine.depth == depth


def test_a_definition_without_states_has_no_machines():
    assert made() == []


def test_the_needed_columns_are_those_of_predicates_keys_and_scopes():
    definition = """
    topic T (value float, note text, room text, spare bool)
    topic U (value float, spare float)
    state A on T [value > 2; value < 1] per room
    state B on U [value > 2; value < 1] scope box
    region box = rectangle (0, 0) (1, 1)
    """
    found = operators(parse(definition).check().conditions)
    assert {topic: names for one in found for topic, names in one.decisive_columns.items()} == {
        "T": {"value", "room"},
        "U": {"value", "place", "x", "y", "z"},
    }
