"""Placement of components, and their subscriptions.  [F64, F71, F73, F74]"""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.errors import UsageError
from holdfast.kinds.component.detector.subscriptions import SearchWindow, TopicRegion, subscriptions
from holdfast.model.query import (
    HERE,
    WHOLE,
    Ball,
    Closest,
    Index,
    MemberSet,
    Multiple,
    PooledDimension,
    Query,
    QueryRange,
)
from holdfast.model.space import Rectangle
from holdfast.network.protocols.qps.tree import ScopeTree
from holdfast.network.protocols.sps.placement import PlacementGround, TopicPublisher, choices

SPACE = Rectangle((0.0, 0.0), (64.0, 64.0))
T = Closest(Index("T"))


def regions(location, here=None, window=None):
    return [
        (
            round(s.region.low[0], 6),
            round(s.region.low[1], 6),
            round(s.region.high[0], 6),
            round(s.region.high[1], 6),
        )
        for s in subscriptions(Query(T, location=location), here, SPACE, window)
    ]


def test_a_query_asks_for_each_topic_in_its_region():
    both = Multiple("any", MemberSet((Index("T"), Index("U"))))
    assert subscriptions(Query(both), None, SPACE) == (TopicRegion("T", SPACE), TopicRegion("U", SPACE))
    assert regions(PooledDimension(WHOLE)) == [(0, 0, 64, 64)]
    assert regions(Multiple("any", QueryRange(Index((1.0, 2.0)), Index((3.0, 90.0))))) == [(1, 2, 3, 64)]
    assert regions(Multiple("any", QueryRange(Index((-10.0,)), Index((5.0,))))) == [(0, 0, 5, 64)]
    assert regions(PooledDimension(Ball(Index((10.0, 10.0)), 4.0))) == [(6, 6, 14, 14)]
    assert regions(PooledDimension(MemberSet((Index("kitchen"),)))) == [(0, 0, 64, 64)]
    assert regions(Multiple("any", QueryRange(Index((70.0, 0.0)), Index((80.0, 9.0))))) == []


def test_relative_places_refer_to_the_host():
    near = Multiple("any", QueryRange(Index((-2.0, -2.0), True), Index((2.0, 2.0), True)))
    assert regions(near, here=(10.0, 20.0)) == [(8, 18, 12, 22)]
    with pytest.raises(UsageError, match="where its host is"):
        regions(near)


def test_a_closest_query_has_a_window_that_widens_up_to_a_cap():
    window, found = SearchWindow(4.0, 20.0), []
    while window is not None:
        found += regions(Closest(HERE), (32.0, 32.0), window)
        window = window.wider()
    assert found == [(32 - w, 32 - w, 32 + w, 32 + w) for w in (4, 8, 16, 20)]
    with pytest.raises(UsageError, match="a window of 5"):
        SearchWindow(5.0, 1.0)


GROUND = PlacementGround(
    tree=ScopeTree((0.0, 0.0), 64.0, 3), reach=10.0, subscribers=((60.0, 60.0),), must_join=False
)


def sensor(name, x, y, wide=1.0, a_day=1000.0):
    return TopicPublisher(name, "T", (x, y), Rectangle((x - wide, y - wide), (x + wide, y + wide)), a_day)


def test_disjoint_advertisements_put_each_part_on_its_publishers_node():
    found = choices("Fire", [sensor("a", 5.0, 5.0), sensor("b", 20.0, 5.0)], GROUND)
    best = found[0]
    assert best.name == "cut by advertisements"
    assert [part.at for part in best.parts] == [(5.0, 5.0), (20.0, 5.0)]
    assert "only a speaks of this place" in best.parts[0].why
    prices = {choice.name: choice.messages for choice in found}
    assert prices["cut by advertisements"] < prices["near its inputs"] < prices["at the subscriber"]
    assert prices["at the subscriber"] == 1000 * 8 + 1000 * 7


def test_joined_parts_send_every_evaluation_to_the_join():
    apart = [sensor("a", 5.0, 5.0), sensor("b", 60.0, 5.0)]
    alone = {c.name: c.messages for c in choices("Fire", apart, GROUND)}
    joined = {c.name: c.messages for c in choices("Fire", apart, replace(GROUND, must_join=True))}
    assert joined["cut by advertisements"] > 1000 > alone["cut by advertisements"]
    assert joined["at the subscriber"] == alone["at the subscriber"]


def test_advertisements_that_overlap_are_cut_by_quadrants():
    some = [sensor("a", 5.0, 5.0, 4.0), sensor("b", 7.0, 5.0, 4.0), sensor("c", 60.0, 5.0)]
    (cut,) = [c for c in choices("Fire", some, GROUND) if c.name.startswith("cut")]
    assert cut.name == "cut by quadrants"
    assert [[p.name for p in part.inputs] for part in cut.parts] == [["a", "b"], ["c"]]
    assert all("nearest to its inputs" in part.why for part in cut.parts)


def test_relative_locations_have_a_replica_at_each_publisher():
    (only,) = choices("Near", [sensor("a", 5.0, 5.0), sensor("b", 20.0, 5.0)], GROUND, relative=True)
    assert [part.at for part in only.parts] == [(5.0, 5.0), (20.0, 5.0)]


def test_impossible_placements_are_refused():
    with pytest.raises(UsageError, match="nobody publishes"):
        choices("Fire", [], GROUND)
    with pytest.raises(UsageError, match="reach of 0"):
        PlacementGround(tree=GROUND.tree, reach=0.0, subscribers=((0.0, 0.0),))
