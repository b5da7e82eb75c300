"""The components of a node: an InfoS time for each level, as far behind the clock as events take."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.definition.check import check
from holdfast.definition.parse import parse
from holdfast.errors import UsageError
from holdfast.kinds.component.compile import smc
from holdfast.kinds.component.condition import ComponentCondition
from holdfast.kinds.component.detector.manager import STATUS, TIME, Components
from holdfast.kinds.component.detector.stability import Stability, info_time, interval_for, observe
from holdfast.model.instant import NEVER
from holdfast.model.space import Rectangle
from support.fused import SECOND, machine, reading

TEXT = """
    topic T (value float)
    state First  A = T each location enter A.value > 5 exit A.value < 5
    state Second A = First any location
      enter A.valid && A.status == ingress
      exit A.valid && A.status == egress
"""
SPACE = Rectangle((0.0, 0.0), (64.0, 64.0))


@dataclass
class TimedEvent:
    """An event as a component receives it."""

    client: str
    topic: str
    location: tuple[float, ...]
    publisher: str
    time: int
    values: dict
    repeated: bool = False


def manager(text=TEXT):
    smcs = {one.name: smc(one) for one in check(parse(text)).of(ComponentCondition)}
    return Components(smcs, SPACE, (0.0, 0.0))


@dataclass
class ComponentNode:
    """A manager alone: the output of its components is the input of its components."""

    interval: int
    it: Components = field(default_factory=manager)
    outputs: list = field(default_factory=list)

    def __post_init__(self):
        self.state = self.it.initial()
        for name in ("First", "Second"):
            self.it.insert(self.state, name)

    def receive(self, event, clock):
        self.state.stability = Stability(self.interval)  # as if nothing had been learnt
        values = dict(event.attributes)
        self.it.take(
            self.state, TimedEvent("sps/First", "T", event.location, "s", event.time, values), clock * SECOND
        )
        self.state.stability = Stability(self.interval)
        return self.advance(clock)

    def advance(self, clock):
        """Advance the clock to every time at which the manager wants to be called."""
        before = len(self.outputs)
        while (due := self.it.due(self.state)) is not None and due <= clock * SECOND + 1:
            for name, at, values in self.it.advance(self.state, due):
                self.outputs.append((name, values[STATUS], values[TIME]))
                if name == "First":
                    emitted = TimedEvent(
                        "sps/Second", "First", at, "First", values[TIME], values, repeated=True
                    )
                    self.it.take(self.state, emitted, due)
        return [(name, status, time // SECOND) for name, status, time in self.outputs[before:]]


def test_a_level_is_evaluated_one_stabilization_interval_after_the_one_below():
    node = ComponentNode(2 * SECOND)
    assert node.receive(reading(10, "T", 1, 9.0), clock=12) == [("First", "ingress", 10)]
    assert node.advance(13) == []
    assert node.advance(14) == [("Second", "ingress", 10)]


def test_due_is_the_time_of_the_next_evaluation():
    node = ComponentNode(2 * SECOND)
    assert node.it.due(node.state) is None
    assert node.receive(reading(10, "T", 1, 9.0), clock=10) == []
    assert node.it.due(node.state) == 12 * SECOND + 1
    assert node.advance(13) == [("First", "ingress", 10)]
    assert node.it.due(node.state) == 14 * SECOND + 1


def test_circular_components_are_refused():
    circle = (
        "topic T (value float)\nstate A X = B enter X.value > 1 exit true\n"
        "state B X = A enter X.value > 1 exit true"
    )
    with pytest.raises(UsageError, match="in a circle"):
        manager(circle)


# --- stabilization -----------------------------------------------------------------------------


def test_the_interval_grows_at_once_and_shrinks_after_a_long_time_unused():
    first = Stability()
    assert first.interval == 3 * SECOND
    longer = observe(first, 5 * SECOND, 0)
    assert longer.interval == 5 * SECOND
    for i in range(1, 60):
        longer = observe(longer, SECOND, i * SECOND)
        assert longer.interval == 5 * SECOND
    for i in range(60, 121):
        longer = observe(longer, SECOND, i * SECOND)
    assert longer.interval == SECOND
    assert info_time(Stability(2 * SECOND), 10 * SECOND, 3) == 4 * SECOND


def test_one_distant_publisher_among_many_near_ones_is_never_late_again():
    """The farthest of twelve publishers with readings every five seconds was once always late, because the
    interval followed the mean."""
    stability = Stability()
    for step in range(100):
        for latency in [*range(2, 13), 14]:
            took, now = latency * SECOND // 20, step * 5 * SECOND + latency * SECOND // 20
            assert took < stability.interval
            stability = observe(stability, interval_for(took, took, 1), now)
    assert stability.interval < SECOND


@pytest.mark.parametrize("level", range(1, 12))
def test_waiting_in_lower_levels_does_not_lengthen_the_interval(level):
    """Every level waits as long as the one below, on a node like it."""
    stability, way = Stability(), SECOND // 5
    for step in range(500):
        age = (level - 1) * stability.interval + way
        stability = observe(stability, interval_for(age, way, level), 30 * step * SECOND)
        assert age <= level * stability.interval
    assert stability.interval <= way * (1 + level)


delays = st.lists(
    st.tuples(st.integers(0, 30), st.sampled_from((1, 2)), st.sampled_from((0.0, 9.0)), st.integers(0, 20)),
    max_size=12,
)


@given(delays, st.integers(21, 40))  # longer than every delay
def test_the_interval_changes_when_events_are_emitted_and_not_which_ones(arrivals, interval):
    """With an interval that covers every delay, a node emits what the machine emits for the whole history."""
    node = ComponentNode(interval * SECOND)
    events = sorted(
        ((time + delay, reading(time, "T", where, value)) for time, where, value, delay in arrivals),
        key=lambda pair: pair[0],
    )
    for clock, event in events:
        node.receive(event, clock)
    node.advance(1000)
    it = machine(TEXT)
    state = it.initial()
    for _, event in events:
        state, _ = it.react(state, event)
    _, expected = it.advance(state, NEVER)
    assert sorted(node.outputs) == sorted((t.event.topic, t.status, t.event.time) for t in expected)
