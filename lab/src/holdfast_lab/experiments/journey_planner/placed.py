"""The journey planner with components placed by the network, on the real roads, without and with radios.

[SPS §5.7, §5.9.2, §5.9.3; F71, F73, F74, F80]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from statistics import fmean
from typing import Any

from holdfast.kinds.component.detector.knowledge import of_event
from holdfast.model.instant import HOUR, MINUTE
from holdfast.network.motes.report.style import COLOURS, new_figure, tidy

from ..data import locate
from ..experiment import Drawing, Experiment, Judged, Progress, Result, Row, Table, to_claims
from . import network
from .central import notifications_of
from .city import BETWEEN, REACH, City, city
from .count import differing, to_compared
from .definition import CONGESTION, NEAR
from .deployment import Host, place_components, segments
from .part import part
from .placing import cheapest_hosts
from .riding import smcs
from .roads import FILE, METADATA, fullest, read_map, read_traffic
from .run import EXPERIMENTS, MAIN, SEED, USERS, JourneyWorld, observe_world
from .scene import Crowd, JourneyScene, user_name
from .scheduled import on_air, on_field

NAME = "journey-network"
TITLE = "the journey planner where the network puts its components, without and with radios  [SPS §5.7]"
FEWER = 100
"""The number of users on nodes without radios in a quick run."""
AROUND, DRIVERS = 2, 20
"""The part of the city with radios: its size in junctions around the first congested road, and its number of
users.
"""
AHEAD, AFTER = 30 * MINUTE, 15 * MINUTE
"""The time before the first and after the last congestion in the part with radios."""

RULES: Mapping[str, str] = {
    "placement-same": "With every component where the network puts it, each of the four says on both days "
    "exactly what pandas says. Rule: nothing differs in component, scope, status, time, since and value.",
    "placement-fewer": "The network's placement needs fewer components and less crosses the network than by "
    "hand. Rule: on both days fewer hosts than 876, fewer events delivered on other nodes, and fewer than "
    "0.01 % of all publications cross the network, as the thesis says of its own.",
    "told-same": "On nodes without radios, with users who go from node to node and are served by proxies, "
    "each user is told exactly what pandas says. Rule: on both days no report differs in user, road, time or "
    "value, and each congestion's start and end came to each user once.",
    "readings-stay": "No reading leaves its sensors' node. Rule: on both days no node was ever asked for a "
    "reading, a start or an end of IL_High or CarSpeed_Slow: what nobody asked for is not sent.",
    "radio": "With radios, in a part of the city. Rule: over all seeds at least 95 % of the reports that "
    "pandas has come, none that it has not, and none twice.",
}
"""The rules were written before the first complete run; only a run with 20 users had tested the code."""


def run(data: Path | None, full: bool, progress: Progress) -> Result:
    """Run the experiment; a quick run has fewer users and seeds."""
    progress("reading")
    map = read_map(locate(METADATA, data))
    world = observe_world(map, read_traffic(locate(FILE, data), map))
    watched = world.traffic.of(world.roads)
    days = {name: fullest(watched, weekday) for name, weekday in EXPERIMENTS.items()}
    return reproduce_placement(world, days, USERS if full else FEWER, range(1, 6 if full else 3), progress)


def reproduce_placement(
    world: JourneyWorld, days: Mapping[str, date], users: int, seeds: Iterable[int], progress: Progress
) -> Result:
    """Run the experiment for a world and named days."""
    rows: list[Row] = []
    for name, day in days.items():
        progress(f"{name}: where components stand")
        rows += compare_costs(name, world.scene(MAIN, day), world)
    for name, day in days.items():
        progress(f"{name}: on nodes")
        rows.append(on_nodes(name, replace(world, users=users).scene(MAIN, day), world))
    last = list(days)[-1]
    some = partial_scene(world.scene(MAIN, days[last]), world)
    for seed in seeds:
        progress(f"{last}: with radios, seed {seed}")
        rows.append(with_radios(last, some, world, seed))
    parameters = {
        "roads, days, limits": "those of journey-planner",
        "nodes": f"where each watched road has its sensors, at each junction, and along streets every "
        f"{BETWEEN:g} m; heard {REACH:g} m far",
        "users": f"{world.users} where components are counted, {users} on nodes without radios",
        "radio": f"the streets within {AROUND} junctions of where the road begins that is congested first on "
        f"the {days[last]:%A}; nodes on a grid; {DRIVERS} users who drive only there; from 30 min before to "
        "15 min after the last end; CC2420 on MicaZ, links as far as above",
        "seed": SEED,
    }
    shown = city(world.map, world.roads)
    return Result(NAME, parameters, rows, to_claims(RULES, _verdicts(rows)), (shown, some))


# --- where components stand ---


def compare_costs(name: str, scene: JourneyScene, world: JourneyWorld) -> list[Row]:
    """Count the traffic of both placements on nodes without a network model."""
    limits = world.limits(MAIN)
    components = smcs(limits)
    users = [user_name(user) for user in range(len(scene.users))]
    roads = [scene.map.roads[i].name for i in scene.roads]
    hosts: dict[str, list[Host]] = {
        "by hand": place_components(components, roads, segments(scene.map, scene.roads), users),
        "by the network": cheapest_hosts(components, scene.map, scene.roads, users),
    }
    notifications = notifications_of(scene, limits)
    rows = []
    for way, some in hosts.items():
        found = network.run(some, map(of_event, scene.events()), scene.last + 1)
        row: Row = {"where": way, "experiment": name, "hosts": len(some)}
        for what in ("published", "disseminated", "delivered"):
            row[what] = getattr(found, what).total()
        row["differ"] = differing(map(to_compared, found.notifications), notifications)
        rows.append(row)
    return rows


# --- on nodes ---


def on_nodes(name: str, scene: JourneyScene, world: JourneyWorld) -> Row:
    """Run a day on nodes without radios; return a row."""
    limits = world.limits(MAIN)
    ride, found = on_field(scene, city(scene.map, scene.roads), limits)
    brokers = [host.state.inner.broker for host in found.hosts.values()]
    asked = {topic for broker in brokers for topic, hosted in broker.topics.items() if hosted.leaf_requests}
    notifications = [one for one in notifications_of(scene, limits) if one.component in (CONGESTION, NEAR)]
    congestions = sum(one.component == CONGESTION for one in notifications)
    return {
        "where": "nodes",
        "experiment": name,
        "nodes": len(ride.city.places),
        "users": len(scene.users),
        "moves": ride.moves,
        "reports": len(ride.reports),
        "differ": differing(ride.reports, (one for one in notifications if one.component == NEAR)),
        "once": set(ride.brought.values()) <= {congestions} and len(ride.brought) == len(scene.users),
        "events": len(ride.received),
        "asked for": sorted(asked),
        "hops": dict(sorted(found.hops.items())),
    }


def partial_scene(scene: JourneyScene, world: JourneyWorld) -> JourneyScene:
    """Return the part of the city and of the day that is simulated with radios."""
    everything = notifications_of(scene, world.limits(MAIN))
    notifications = [notice for notice in everything if notice.component == CONGESTION]
    first, last = min(n.time for n in notifications), max(n.time for n in notifications)
    by_name = {road.name: i for i, road in enumerate(scene.map.roads)}
    centre = by_name[str(min(notifications, key=lambda one: one.time).scope)]
    start = int(scene.times[0])
    hours = tuple(start + (at - start) // (5 * MINUTE) * 5 * MINUTE for at in (first - AHEAD, last + AFTER))
    return part(scene, centre, AROUND, (hours[0], hours[1]), Crowd(DRIVERS, SEED))


def with_radios(name: str, scene: JourneyScene, world: JourneyWorld, seed: int) -> Row:
    """Simulate the part of the city with radios; return a row."""
    limits = world.limits(MAIN)
    ride, measures = on_air(scene, city(scene.map, scene.roads, filled=True), limits, seed)
    due = Counter(one for one in notifications_of(scene, limits) if one.component == NEAR)
    came = Counter(ride.reports)
    causes = measures["energy_by_cause_mj"]
    rounded = {cause: round(mj / 1000, 2) for cause, mj in sorted(causes.items()) if cause != "rest"}
    joules = {cause: used for cause, used in rounded.items() if used}
    return {
        "where": "radio",
        "experiment": name,
        "seed": seed,
        "nodes": len(ride.city.places),
        "roads": len(scene.roads),
        "users": len(scene.users),
        "hours": round((int(scene.times[-1]) - int(scene.times[0])) / HOUR, 2),
        "moves": ride.moves,
        "due": due.total(),
        "came": (due & came).total(),
        "not due": sum(one not in due for one in came),
        "twice": sum(count > due[one] > 0 for one, count in came.items()),
        "delay s": round(fmean(ride.delays()), 2) if ride.received else None,
        "transmissions": measures["transmissions"],
        "joules": {"listening": round(causes.get("rest", 0.0) / 1000, 1), **joules},
    }


# --- claims ---


def _verdicts(rows: list[Row]) -> list[Judged]:
    by: dict[str, list[Row]] = {}
    for row in rows:
        by.setdefault(row["where"], []).append(row)
    hand, ours, nodes, radio = (by[way] for way in ("by hand", "by the network", "nodes", "radio"))
    crossing = [round(100 * row["disseminated"] / row["published"], 4) for row in ours]
    fewer = all(b["hosts"] < 876 and b["delivered"] < a["delivered"] for a, b in zip(hand, ours, strict=True))
    due, came = sum(row["due"] for row in radio), sum(row["came"] for row in radio)
    wrong = sum(row["not due"] + row["twice"] for row in radio)
    asked = [row["asked for"] for row in nodes]
    delivered = [[row["delivered"] for row in rows] for rows in (hand, ours)]
    return [
        Judged("none given", [row["differ"] for row in ours], not any(row["differ"] for row in ours)),
        Judged(
            {"crosses %": [0.0044, 0.0095], "hosts": 876},
            {"crosses %": crossing, "hosts": [row["hosts"] for row in ours], "delivered": delivered},
            fewer and all(share < 0.01 for share in crossing),
        ),
        Judged(
            "none given",
            {"differ": [row["differ"] for row in nodes], "moves": [row["moves"] for row in nodes]},
            all(row["differ"] == 0 and row["once"] for row in nodes),
        ),
        Judged("none given", asked, all(set(topics) <= {CONGESTION} for topics in asked)),
        Judged("none given", {"due": due, "came": came, "wrong": wrong}, came >= 0.95 * due and not wrong),
    ]


def _tables(result: Result) -> list[Table]:
    found = []
    titles = {
        "Where components stand": ("by hand", "by the network"),
        "On nodes without radios": ("nodes",),
        "With radios, in a part of the city": ("radio",),
    }
    for title, ways in titles.items():
        some = [row for row in result.rows if row["where"] in ways]
        if some:
            found.append(Table(title, tuple(some[0]), [tuple(map(_format, row.values())) for row in some]))
    return found


def _format(value: Any) -> Any:
    return ", ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else value


def _draw(result: Result) -> Drawing:
    """Draw the nodes of the town and those with components, and the part with radios."""
    whole: City
    some: JourneyScene
    whole, some = result.exhibit
    figure = new_figure(9.0, 4.6)
    left, right = figure.subplots(1, 2)
    for panel, shown, title in (
        (left, whole, "the town, without radios"),
        (right, city(some.map, some.roads, filled=True), "the part with radios"),
    ):
        hosts = [shown.places[node] for node in shown.sensors.values()]
        panel.scatter(*zip(*shown.places, strict=True), s=4, color="0.75", label="nodes")
        panel.scatter(*zip(*hosts, strict=True), s=12, color=COLOURS[0], label="with components")
        panel.set_aspect("equal")
        tidy(panel, f"{title}: {len(shown.places)} nodes, metres")
    left.legend(loc="lower right", frameon=False)
    return figure


EXPERIMENT = Experiment(NAME, TITLE, run, _tables, _draw)
