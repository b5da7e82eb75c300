"""The journey planner again: by hand on a street, on drawn towns, and in small on the real roads."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import date
from io import StringIO
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from holdfast.errors import InputError
from holdfast.kinds.component.compile import smc
from holdfast.kinds.component.detector.knowledge import Knowledge, of_event
from holdfast.model.instant import MINUTE, SECOND, instant
from holdfast_lab.experiments.experiment import Result, show
from holdfast_lab.experiments.journey_planner import network
from holdfast_lab.experiments.journey_planner import placed as on_network
from holdfast_lab.experiments.journey_planner.central import notifications_of
from holdfast_lab.experiments.journey_planner.city import city
from holdfast_lab.experiments.journey_planner.claim import (
    PAPER,
    RULES,
    crossing,
    identities,
    input_share,
    judge,
    shared,
)
from holdfast_lab.experiments.journey_planner.count import LINES, differing, measure, to_compared
from holdfast_lab.experiments.journey_planner.definition import (
    CONGESTION,
    EVERY,
    HIGH,
    NEAR,
    REACH,
    SLOW,
    Limits,
    components,
    definition,
)
from holdfast_lab.experiments.journey_planner.deployment import in_one_piece, place_components, segments
from holdfast_lab.experiments.journey_planner.layout import layout
from holdfast_lab.experiments.journey_planner.part import part
from holdfast_lab.experiments.journey_planner.placing import cheapest_hosts
from holdfast_lab.experiments.journey_planner.roads import (
    FILE,
    METADATA,
    JourneyMap,
    Road,
    Traffic,
    busiest,
    density,
    fullest,
    hours,
    ordered,
    read_map,
    read_traffic,
)
from holdfast_lab.experiments.journey_planner.run import MAIN, JourneyWorld, observe_world, run_world
from holdfast_lab.experiments.journey_planner.scene import Crowd, JourneyScene, scene, user_name
from holdfast_lab.experiments.journey_planner.scheduled import on_air, on_field
from holdfast_lab.experiments.journey_planner.users import drive, way
from holdfast_lab.experiments.registry import load

pytest.importorskip("pandas")

CLAIMS = [
    "crosses-network",
    "predicate-evaluations",
    "max-knowledge-points",
    "input-cut",
    "sharing",
    "accounting",
    "central-equal",
]
PAGES = Path(__file__).resolve().parents[3] / "docs" / "experiments"
MONDAY = date(2014, 8, 4)
LIMITS = Limits(busy=8.0, slow=40.0, fast=50.0)


def street(junctions: int) -> JourneyMap:
    """Junctions in a row, a road of one kilometre each way between neighbours: 100 s, 36 km/h."""
    ways = [(a, b) for i in range(junctions - 1) for a, b in ((i, i + 1), (i + 1, i))]
    roads = (Road(f"r{a}{b}", a, b, 1000.0, 100.0, 36.0) for a, b in ways)
    degrees = tuple((10.0 + 0.01 * i, 56.0) for i in range(junctions))
    return JourneyMap(tuple(f"j{i}" for i in range(junctions)), degrees, tuple(roads))


def town(side: int) -> JourneyMap:
    """A grid of streets."""
    ways = [
        (x * side + y, u * side + v)
        for x in range(side) for y in range(side) for u in range(side) for v in range(side)
        if abs(x - u) + abs(y - v) == 1
    ]  # fmt: skip
    roads = (Road(str(100_000 + i), a, b, 500.0, 60.0, 30.0) for i, (a, b) in enumerate(ways))
    degrees = tuple((10.0 + 0.01 * (i // side), 56.0 + 0.01 * (i % side)) for i in range(side * side))
    return JourneyMap(tuple(f"j{i}" for i in range(side * side)), degrees, tuple(roads))


def readings(start: int, road: int, vehicles: list[int | None], seconds: list[int]) -> Traffic:
    """The readings of a road of a street every five minutes; none where there is no number."""
    there = [i for i, count in enumerate(vehicles) if count is not None]
    taken = np.array(seconds)[there]
    return Traffic(
        start + np.array(there) * EVERY,
        np.full(len(there), road),
        np.array([vehicles[i] for i in there]),
        taken,
        np.round(3600 / np.maximum(taken, 1)).astype(np.int64),
    )


# --- the town ---


def test_distance_counts_junctions_and_routes_are_the_fastest():
    map = street(6)
    assert map.hops[0].tolist() == [0, 1, 2, 3, 4, 5]
    assert way(map, 0, 3) == [1, 2, 3]
    short = Road("short", 0, 3, 100.0, 10.0, 36.0)
    assert way(replace(map, roads=(*map.roads, short)), 0, 4) == [3, 4]
    assert way(JourneyMap(("a", "b"), ((0, 0), (1, 0)), (Road("r", 0, 1, 1, 1, 1),)), 1, 0) == []


@pytest.mark.parametrize("map", [street(9), town(5)], ids=["street", "town"])
def test_points_are_within_two_exactly_if_their_junctions_are(map):
    points = np.array(layout(map.hops, REACH))
    apart = np.sqrt(((points[:, None] - points[None]) ** 2).sum(-1))
    assert ((apart <= REACH) == (map.hops <= REACH)).all()


@pytest.mark.soak
def test_junctions_that_no_points_distinguish_are_refused():
    hub = np.full((20, 20), 4.0)  # one junction, and 19 near it that are far from one another
    hub[0], hub[:, 0] = 1.0, 1.0
    np.fill_diagonal(hub, 0.0)
    with pytest.raises(InputError, match="no points in space were found for 20 junctions"):
        layout(hub, REACH)


def test_users_drive_along_roads_and_publish_their_last_junction():
    map = town(4)
    times = np.arange(0, 3 * 3600 * SECOND, 20 * SECOND)
    users = drive(map, 3, times, seed=1)
    assert users.shape == (3, len(times))
    for places in users:
        moves = [(a, b) for a, b in pairwise(places.tolist()) if a != b]
        assert set(moves) <= set(map.seconds)  # a road takes 60 s: no junction is left out
        assert len(moves) == pytest.approx(3 * 3600 / 60, abs=1)
    assert (drive(map, 3, times, seed=1) == users).all()
    assert (drive(map, 3, times, seed=2) != users).any()


def test_a_loop_measures_vehicles_per_kilometre():
    traffic = readings(0, 0, [30, 0], [100, 100])  # 30 vehicles in 300 s, each there for 100 s
    assert density(street(2), traffic).tolist() == [10.0, 0.0]


def test_the_day_starts_at_one_in_the_night_of_the_town():
    assert hours(date(2014, 8, 7)) == (instant("2014-08-06T23:00Z"), instant("2014-08-07T19:00Z"))


def test_the_busiest_roads_in_town_are_watched():
    map = street(3)
    fast = replace(map.roads[1], normal=110.0)
    map = replace(map, roads=(map.roads[0], fast, *map.roads[2:]))
    traffic = Traffic(*(np.array(c) for c in ([0] * 4, [0, 1, 2, 3], [5, 99, 7, 6], [1] * 4, [1] * 4)))
    assert busiest(map, traffic, 2) == [2, 3]


def test_segments_are_disjoint_and_of_equal_size():
    map = town(5)  # 80 roads
    pieces = segments(map, range(70))
    assert sorted(len(piece) for piece in pieces) == [4] * 10 + [5] * 6
    assert sorted(name for piece in pieces for name in piece) == sorted(r.name for r in map.roads[:70])


# --- by hand ---


def jam() -> JourneyScene:
    """Road r12 of a street of seven junctions fills at 0:10 and slows down at 0:20; then it is silent, and
    the next driver is fast. A user stands at each junction."""
    map, (start, _) = street(7), hours(MONDAY)
    index = next(i for i, road in enumerate(map.roads) if road.name == "r12")
    #           0    5   10   15   20   25   30   35    40   45  50
    vehicles = [3, 3, 30, 30, 30, 30, 20, None, None, 0, 1]
    seconds = [100, 100, 100, 100, 500, 500, 500, 0, 0, 0, 80]
    traffic = readings(start, index, vehicles, seconds)
    times = np.arange(start, start + 55 * MINUTE, EVERY)
    standing = np.repeat(np.arange(7)[:, None], len(times), axis=1)
    return JourneyScene(MONDAY, map, (index,), traffic, times, standing)


def test_a_jam_follows_from_windows_and_notifies_users_within_two_junctions():
    town_scene = jam()
    start = int(town_scene.times[0])
    notifications = [one._replace(time=one.time - start) for one in notifications_of(town_scene, LIMITS)]
    found = [(one.component, one.status, one.time) for one in notifications if one.component != NEAR]
    assert found == [
        (HIGH, "ingress", 15 * MINUTE + 1),  # 1, 10, 10 at 0:15; a microsecond later the 1 has left
        (SLOW, "ingress", 30 * MINUTE + 1),  # 100, 100, 19, 19, 19; then one 100 less: 39.6 %
        (CONGESTION, "ingress", 30 * MINUTE + 1),
        (HIGH, "egress", 45 * MINUTE),  # the silence before proved nothing
        (SLOW, "egress", 50 * MINUTE),  # 19 and 125
        (CONGESTION, "egress", 50 * MINUTE),
    ]
    published = [one for one in notifications if one.component == NEAR]
    near = [f"user-00{junction + 1},r12" for junction in (0, 1, 2, 3)]  # the road begins at junction 1
    assert [one.scope for one in published] == near * 2
    assert {one.status for one in published} == {"atomic"}
    assert [round(one.value, 2) for one in published] == [39.58] * 4 + [72.22] * 4


def test_one_process_and_nodes_find_the_same_jam_and_count_its_messages():
    town_scene = jam()
    counts = measure(town_scene, LIMITS, segments(town_scene.map, town_scene.roads), in_process=True)
    assert counts["differ process"] == counts["differ nodes"] == 0
    assert (counts[HIGH], counts[SLOW], counts[CONGESTION], counts[NEAR]) == (2, 2, 2, 8)
    assert counts["external"] == 9 + 8 + 7 * 11  # readings, those with vehicles, positions
    assert counts["disseminated"] == 2 + 2 + 2
    assert counts["delivered"] == 16 * (2 + 2) + 7 * 2
    assert counts["local clients"] == 8
    assert counts[f"points {HIGH}"] == 3  # three readings in ten minutes, both ends included
    assert counts[f"points {SLOW}"] == 5
    assert counts[f"received {NEAR}"] == 11 + 2
    assert counts["spawned"] == counts["effective"] == 1
    assert judge(counts)["accounting"]


@pytest.mark.parametrize("seed", [1, 2])
def test_placement_by_the_network_gives_users_equal_notifications(seed):
    """Each part of a congestion is placed beside the sensors of its road; the thesis has 256 parts, mostly
    silent."""
    town_scene = draw_scene(seed)
    smcs = {name: smc(one) for name, one in components(LIMITS).items()}
    users = [user_name(user) for user in range(len(town_scene.users))]
    hosts = cheapest_hosts(smcs, town_scene.map, town_scene.roads, users)
    by_topic = Counter(host.smc.topic for host in hosts)
    roads = len(town_scene.roads)
    assert by_topic == {HIGH: roads, SLOW: roads, CONGESTION: roads, NEAR: len(users)}
    found = network.run(hosts, map(of_event, town_scene.events()), town_scene.last + 1)
    names = [town_scene.map.roads[i].name for i in town_scene.roads]
    by_hand = place_components(smcs, names, segments(town_scene.map, town_scene.roads), users)
    theirs = network.run(by_hand, map(of_event, town_scene.events()), town_scene.last + 1)
    assert differing(map(to_compared, found.notifications), notifications_of(town_scene, LIMITS)) == 0
    assert found.delivered.total() < theirs.delivered.total()
    assert found.delivered[HIGH] == 0  # a congestion stands beside the loop


def test_the_comparison_detects_a_single_changed_notification():
    notifications = notifications_of(jam(), LIMITS)
    assert differing(notifications, notifications) == 0
    assert (
        differing(
            notifications, [*notifications[:-1], notifications[-1]._replace(time=notifications[-1].time + 1)]
        )
        == 2
    )
    assert differing(notifications, notifications[1:]) == 1


def test_an_event_is_compared_with_every_knowledge_point_of_the_other_query():
    """Two roads were slow and one of them no longer is: three knowledge points for an event of a loop."""
    host = in_one_piece(smc(components(LIMITS)[CONGESTION]))
    notifications = [
        Knowledge(SLOW, 1, "c", {"value": 30.0}, None, "a", "ingress", "a"),
        Knowledge(SLOW, 2, "c", {"value": 60.0}, None, "a", "egress", "a"),
        Knowledge(SLOW, 3, "c", {"value": 30.0}, None, "b", "ingress", "b"),
        Knowledge(HIGH, 4, "l", {"value": 9.0}, None, "b", "ingress", "b"),
    ]
    account = network.run([host], notifications, 10)
    assert account.combinations == {CONGESTION: 3}
    assert account.examined == {CONGESTION: 1}  # our machine looks at road b alone
    assert account.points == {CONGESTION: 4}
    assert [(published.event.place, published.event.status) for published in account.notifications] == [
        ("b", "ingress")
    ]


# --- drawn towns ---


def draw_scene(seed: int) -> JourneyScene:
    """Two hours in a town: readings come and go about the limits, some are missing."""
    chance = np.random.default_rng(seed)
    map, (start, _) = town(3), hours(MONDAY)
    times = np.arange(start, start + 120 * MINUTE, EVERY)
    slots, roads = (
        grid.ravel() for grid in np.meshgrid(np.arange(len(times)), range(len(map.roads)), indexing="ij")
    )
    there = chance.random(len(slots)) < 0.85
    slots, roads = slots[there], roads[there]
    moods = chance.integers(0, 2, (len(map.roads), len(times) // 6 + 1))[roads, slots // 6]
    traffic = Traffic(
        times[slots],
        roads,
        chance.integers(0, 4, len(roads)) + 20 * moods,
        chance.integers(60, 70, len(roads)) + 60 * moods,
        chance.integers(9, 24, len(roads)) - 8 * moods,
    )
    return JourneyScene(MONDAY, map, tuple(range(len(map.roads))), traffic, times, drive(map, 6, times, seed))


@pytest.mark.parametrize("seed", range(3))
def test_nodes_and_one_process_agree_with_pandas(seed):
    town_scene = draw_scene(seed)
    counts = measure(town_scene, LIMITS, segments(town_scene.map, town_scene.roads), in_process=True)
    assert counts["differ process"] == counts["differ nodes"] == 0
    assert min(counts[HIGH], counts[SLOW], counts[CONGESTION], counts[NEAR]) > 5
    assert judge(counts)["accounting"]
    assert counts[f"combinations {CONGESTION}"] < counts["whole"]
    assert counts["examined"] <= 4


# --- the thesis ---


def test_the_thesis_own_figures_satisfy_the_rules():
    for counts in PAPER:
        assert all(left == right for left, right in identities(counts).values())
        assert shared(counts) == 376
    assert [round(crossing(counts), 4) for counts in PAPER] == [0.0044, 0.0095]
    assert [round(input_share(counts), 1) for counts in PAPER] == [14.6, 19.5]
    measured = {"shared for twice": 376, "differ nodes": 0, "differ process": 0}
    assert all(all(judge({**counts, **measured}).values()) for counts in PAPER)


# --- the experiment on a small town ---


def small() -> JourneyWorld:
    """Thursday to Saturday on four roads of a town, of which two are jammed on workdays."""
    chance = np.random.default_rng(7)
    map = town(3)
    start = hours(date(2014, 8, 7))[0]
    of_day = [0, *range(90, 130), 239]
    slots, roads = (
        grid.ravel() for grid in np.meshgrid([288 * d + s for d in range(3) for s in of_day], range(4))
    )
    jammed = (slots % 288 > 100) & (slots % 288 < 115) & (roads % 2 == 0) & (slots < 2 * 288)
    traffic = Traffic(
        start + slots * EVERY,
        roads,
        chance.integers(0, 5, len(roads)) + 20 * jammed,
        chance.integers(50, 70, len(roads)) + 200 * jammed,
        chance.integers(25, 35, len(roads)) - 20 * jammed,
    )
    return replace(observe_world(map, ordered(traffic)), users=4, busy=8.0)


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> str:
    return str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def result(cache) -> Result:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_CACHE_HOME", cache)
        return run_world(small(), True, lambda _: None)


def test_stored_days_are_not_computed_again(result, cache, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", cache)
    monkeypatch.setattr(JourneyWorld, "counts", lambda *_, **__: pytest.fail("counted again"))
    assert run_world(small(), True, lambda _: None) == result


def test_the_json_has_the_exact_form(result):
    found = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert list(found) == ["experiment", "parameters", "rows", "claims"]
    assert found["experiment"] == "journey-planner"
    assert all(list(row) == ["setting", "experiment", "day", *LINES] for row in found["rows"])
    assert [claim["id"] for claim in found["claims"]] == CLAIMS == list(RULES)
    for claim in found["claims"]:
        assert claim["holds"] in (True, False)
        assert "Rule:" in claim["claim"]
        assert claim["note"]


def test_every_setting_and_day_is_counted_and_equals_pandas(result):
    assert [row["experiment"] for row in result.rows] == ["Exp1", "Exp2"] * 6 + [""] * 3
    ours = [row for row in result.rows if row["setting"] != "the thesis"]
    assert {row["differ nodes"] for row in ours} == {0}
    saturday, thursday = ours[:2]
    assert saturday[CONGESTION] == 0 < thursday[CONGESTION]


def test_the_result_is_printed_and_drawn(result, tmp_path):
    pytest.importorskip("matplotlib")
    experiment = load("journey-planner")
    console = Console(width=150, record=True, file=StringIO())
    show(experiment, result, console)
    text = console.export_text()
    assert "Table 5.21: communication" in text
    assert "Every day, as described" in text
    path = experiment.figure(result, tmp_path / "figures")
    assert path.read_bytes().startswith(b"\x89PNG")


# --- the real roads ---


def test_missing_and_wrong_files_are_named(tmp_path):
    with pytest.raises(InputError, match=r"needs the data set .*trafficMetaData\.csv.*--data DIR"):
        load("journey-planner").run(tmp_path, False, lambda _: None)
    (tmp_path / "aarhus-traffic").mkdir()
    (tmp_path / METADATA).write_text("a,b\n1,2\n")
    (tmp_path / FILE).write_text("no")
    with pytest.raises(InputError, match="is not the metadata of the road sensors"):
        load("journey-planner").run(tmp_path, False, lambda _: None)
    (tmp_path / METADATA).write_text("REPORT_ID\n")
    with pytest.raises(InputError, match="it has no roads"):
        read_map(tmp_path / METADATA)
    with pytest.raises(InputError, match="is not the readings of the road sensors"):
        read_traffic(tmp_path / FILE, street(2))


@pytest.fixture(scope="module")
def aarhus(data) -> JourneyWorld:
    map = read_map(data / METADATA)
    return observe_world(map, read_traffic(data / FILE, map))


def test_aarhus_has_136_junctions_and_449_roads(aarhus):
    assert (len(aarhus.map.junctions), len(aarhus.map.roads)) == (136, 449)
    assert len(aarhus.roads) == 60
    assert aarhus.busy == 8.7
    watched = aarhus.traffic.of(aarhus.roads)
    assert [fullest(watched, weekday) for weekday in (5, 3)] == [date(2014, 8, 16), date(2014, 8, 7)]


def test_a_real_day_at_a_small_scale_equals_pandas(aarhus):
    """Four of the roads with six users, on the Thursday."""
    town_scene = scene(date(2014, 8, 7), aarhus.map, aarhus.roads[8:12], aarhus.traffic, Crowd(6, seed=1))
    limits = aarhus.limits(replace(MAIN, slow=67.0, fast=85.0))
    counts = measure(town_scene, limits, segments(town_scene.map, town_scene.roads), in_process=True)
    assert counts["differ process"] == counts["differ nodes"] == 0
    assert counts[CONGESTION] > 0
    assert judge(counts)["accounting"]


@pytest.mark.soak
def test_the_whole_run_gives_the_recorded_page(data):
    stored = json.loads((PAGES / "journey-planner.full.json").read_text(encoding="utf-8"))
    found = load("journey-planner").run(data, True, lambda _: None)
    assert found.rows == stored["rows"]
    assert [claim.holds for claim in found.claims] == [claim["holds"] for claim in stored["claims"]]


def test_the_page_shows_the_tables_of_the_stored_run():
    stored = json.loads((PAGES / "journey-planner.full.json").read_text(encoding="utf-8"))
    page = (PAGES / "journey-planner.md").read_text(encoding="utf-8")
    experiment = load("journey-planner")
    console = Console(width=150, record=True, highlight=False, file=StringIO())
    show(experiment, Result(stored["experiment"], stored["parameters"], stored["rows"], ()), console)
    shown = "\n".join(line.rstrip() for line in console.export_text().rstrip().splitlines())
    assert f"```text\n{shown}\n```" in page
    assert f"```hf\n{definition(Limits(8.7, 67.0, 85.0))}```" in page
    for claim in stored["claims"]:
        assert f"| `{claim['id']}` | {'holds' if claim['holds'] else 'does not hold'} |" in page


# --- on nodes ---


@pytest.mark.parametrize("seed", [1, 2])
def test_users_who_move_between_nodes_get_the_notifications_of_pandas(seed):
    town_scene = draw_scene(seed)
    ride, found = on_field(town_scene, city(town_scene.map, town_scene.roads), LIMITS)
    notifications = [
        one for one in notifications_of(town_scene, LIMITS) if one.component in (CONGESTION, NEAR)
    ]
    near = [one for one in notifications if one.component == NEAR]
    assert len(near) > 5
    assert ride.moves > len(town_scene.users)
    assert differing(ride.reports, near) == 0
    assert set(ride.brought.values()) == {len(notifications) - len(near)} == {len(ride.received)}
    brokers = [host.state.inner.broker for host in found.hosts.values()]
    assert {t for broker in brokers for t, hosted in broker.topics.items() if hosted.leaf_requests} == {
        CONGESTION
    }


def test_a_part_of_a_town_has_its_own_streets_and_readings():
    town_scene = draw_scene(1)
    start = int(town_scene.times[0])
    small = part(town_scene, 0, 1, (start, start + 60 * MINUTE), Crowd(3, 1))
    assert len(small.map.junctions) < len(town_scene.map.junctions)
    names = {road.name for road in small.map.roads}
    assert {small.map.roads[i].name for i in small.roads} == names
    stored = [e for e in town_scene.events() if e.place in names and e.time < start + 60 * MINUTE]
    mine = [e for e in small.events() if e.topic != "User"]
    assert [(e.time, e.source, e.attributes) for e in mine] == [
        (e.time, e.source, e.attributes) for e in stored
    ]


def rows_on_nodes(differ=0, came=100, wrong=0, delivered=5, asked=(CONGESTION,)):
    counted = {
        "hosts": 680,
        "published": 100_000,
        "disseminated": 3,
        "delivered": delivered,
        "differ": differ,
    }
    nodes = {"differ": differ, "once": True, "moves": 9, "asked for": list(asked)}
    radio = {"due": 100, "came": came, "not due": wrong, "twice": 0}
    return [
        {"where": "by hand", **counted, "delivered": 10},
        {"where": "by the network", **counted},
        {"where": "nodes", **nodes},
        {"where": "radio", **radio},
    ]


@pytest.mark.parametrize(
    ("rows", "broken"),
    [
        (rows_on_nodes(), set()),
        (rows_on_nodes(differ=1), {"placement-same", "told-same"}),
        (rows_on_nodes(delivered=10), {"placement-fewer"}),
        (rows_on_nodes(asked=("CarSpeed", CONGESTION)), {"readings-stay"}),
        (rows_on_nodes(came=94), {"radio"}),
        (rows_on_nodes(wrong=1), {"radio"}),
    ],
)
def test_each_claim_about_the_network_is_judged_by_its_rule(rows, broken):
    held = dict(zip(on_network.RULES, (each.holds for each in on_network._verdicts(rows)), strict=True))
    assert {name for name, holds in held.items() if not holds} == broken


def test_the_page_of_the_network_lists_every_claim():
    page = (PAGES / "journey-network.md").read_text("utf-8")
    assert all(f"`{each}`" in page for each in on_network.RULES)
    assert load("journey-network").name == on_network.NAME


@pytest.mark.soak
def test_no_notification_over_radios_is_wrong_and_most_arrive():
    town_scene = draw_scene(1)
    ride, _ = on_air(town_scene, city(town_scene.map, town_scene.roads, filled=True), LIMITS, 1)
    due = Counter(one for one in notifications_of(town_scene, LIMITS) if one.component == NEAR)
    came = Counter(ride.reports)
    assert came <= due
    assert came.total() >= 0.9 * due.total()
