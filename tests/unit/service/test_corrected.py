"""The service notifies corrections; it stores and shows the notifications that remain."""

from __future__ import annotations

import random

import pytest

from holdfast.model.batch import from_events
from holdfast.model.event import Event
from holdfast.model.instant import SECOND
from holdfast.model.topic import Attribute, Topic
from holdfast.service.core import Core
from holdfast.service.log.frame import DefinitionEntry, Readings
from holdfast.service.log.log import Appended
from holdfast.service.sinks.delivery import choose
from holdfast.service.sinks.message import alerts, publications
from holdfast.service.store import ServiceStore
from holdfast.service.timeline import Row, Timeline, TimelineView
from holdfast.service.trial import intervals

TOPIC = Topic("T", (Attribute("value", "float"),))
WARM = """topic T (value float)
state Warm on T [value > 25; value < 22] per source ordered 0 s late correct 1 min"""


class CorrectedStore:
    """A core and its notifications, in a store and a timeline."""

    def __init__(self, folder):
        self.core = Core(folder, lambda: 0)
        self.store, self.timeline = ServiceStore(folder / "store.db"), Timeline(folder / "timeline.db")
        self.emissions = []
        self.take(DefinitionEntry(WARM))

    def take(self, entry):
        emitted = self.core.take(Appended(self.core.position, entry))
        fresh = self.store.add(emitted)
        assert len(fresh) == len(emitted), "every word has an id of its own"
        if fresh:
            self.timeline.add(fresh)
        self.emissions += fresh
        return [(one.status, one.time // SECOND, one.since and one.since // SECOND) for one in fresh]

    def read(self, *readings):
        numbers = range(self.core.position, self.core.position + len(readings))
        pairs = zip(numbers, readings, strict=True)
        events = [Event("T", at * SECOND, "s", {"value": value}, i) for i, (at, value) in pairs]
        return self.take(Readings("T", from_events(TOPIC, events)))

    def bars(self, view):
        held = [(Row(*one[:2]), one.since) for one in self.core.engine.holding()]
        rows, _ = self.timeline.rows(view, view.end, held)
        return [tuple(bar[:2]) for row in rows for bar in row["bars"]]


@pytest.fixture
def world(tmp_path):
    found = CorrectedStore(tmp_path)
    yield found
    found.store.close()
    found.timeline.close()


def test_a_start_that_is_retracted_and_repeated_is_stored_each_time(world):
    assert world.read((20, 30.0), (60, 10.0), (70, 23.0)) == [("ingress", 20, None), ("egress", 60, 20)]
    assert world.read((40, 10.0)) == [("reopened", 60, 20), ("egress", 40, 20)]
    assert world.read((30, 23.0), (45, 30.0)) == [("ingress", 45, None), ("egress", 60, 45)]
    assert world.read((15, 30.0))[:3] == [
        ("reopened", 40, 20),
        ("retracted", 20, None),
        ("ingress", 15, None),
    ]
    really = intervals(world.store.notifications_between(0, 100 * SECOND, 99), world.core.corrected)
    found = [(one.start // SECOND, one.end // SECOND) for one in really]
    assert sorted(found) == [(15, 40), (45, 60)]
    assert world.bars(TimelineView(0, 100 * SECOND, 100)) == [
        (15 * SECOND, 40 * SECOND),
        (45 * SECOND, 60 * SECOND),
    ]


def test_a_start_replaces_a_forgotten_one_in_states_without_correction(world):
    world.take(DefinitionEntry(WARM.partition(" ordered")[0].replace("Warm", "W") + " forget after 30 s"))
    world.read((0, 26.0))
    world.read((110, 26.0))
    assert [one[0] for one in world.read((120, 20.0))] == ["egress"]
    found = intervals(world.store.notifications_between(0, 200 * SECOND, 99), world.core.corrected)
    assert [(one.start // SECOND, one.end // SECOND) for one in found] == [(110, 120)]


def test_the_last_notification_is_the_current_state(world):
    world.read((10, 30.0), (20, 10.0), (30, 30.0), (40, 30.0))
    assert world.read((15, 10.0)) == [("reopened", 20, 10), ("egress", 15, 10), ("known", 15, 30)]
    (*_, state) = publications(world.emissions, None, "state/{scope}")
    assert '"holds": true, "since": "1970-01-01T00:00:30.000000Z"' in state.payload
    muted = {("Warm", "s")}
    known = [one for one in world.emissions if one.status == "known"]
    assert len(known) == 1
    stored = choose(known, muted, {}, world.core.corrected)
    assert stored.sent == [], "it starts, for whoever listens"
    assert stored.withheld["Warm", "s"].starts


def test_an_alert_is_over_when_its_start_is_retracted(world):
    world.read((20, 30.0), (21, 23.0))
    assert [(h.scope, h.since // SECOND) for h in world.core.engine.holding()] == [("s", 20)]
    assert world.read((20, 10.0)) == [("egress", 20, 20)]
    world.read((22, 30.0), (23, 23.0))
    emitted = world.read((22, 10.0), (21, 30.0))
    assert ("retracted", 22, None) in emitted
    found = alerts(world.emissions[-len(emitted) :], 99 * SECOND, {})
    assert found
    assert all(one["startsAt"] <= one["endsAt"] for one in found)


@pytest.mark.parametrize("seed", range(3))
def test_charts_and_intervals_equal_those_of_a_replay(world, seed):
    """Late readings arrive in batches of any size."""
    chance, received, now = random.Random(seed), [], 100
    for _ in range(40):
        some = []
        for _ in range(chance.randint(1, 3)):
            now += chance.randint(0, 5)
            some.append((now - chance.choice((0, 0, 10, 30, 55)), chance.choice((10.0, 23.0, 30.0))))
        received += some
        world.read(*some)
    world.read((now + 100, 23.0))
    expected, since = [], None
    for at, value in sorted(received, key=lambda row: row[0]):
        if since is None and value > 25:
            since = at
        elif since is not None and value < 22:
            expected, since = [*expected, (since, at)], None
    held = [one.since // SECOND for one in world.core.engine.holding()]
    assert held == ([] if since is None else [since])
    found = intervals(world.store.notifications_between(0, 10_000 * SECOND, 9_999), world.core.corrected)
    ended = [(one.start // SECOND, one.end // SECOND) for one in found if one.end is not None]
    assert sorted(ended) == expected
    for width in (40, 400, 4_000):
        view = TimelineView(90 * SECOND, (now + 110) * SECOND, width)
        drawn = world.bars(view)
        for instant in range(90, now + 110):
            covered = any(a <= instant * SECOND <= b for a, b in drawn)
            near = [(a, b) for a, b in [*expected, *((s, now + 110) for s in held)]]
            pixel = view.pixel / SECOND
            if covered:
                assert any(a - pixel <= instant <= b + pixel for a, b in near), (width, instant)
            else:
                assert not any(a <= instant <= b for a, b in near), (width, instant)
