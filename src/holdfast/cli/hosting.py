"""Who would host which component of an application in a network, why, and what each choice costs a day.

[F71, F73, F74]  ``holdfast explain APP.hf --network SCENARIO``.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..compilers.components.machine import smc
from ..errors import UsageError
from ..lang.condition import Checked
from ..machines.detector.dag import levels
from ..machines.detector.smc import Smc
from ..machines.detector.subscriptions import subscriptions
from ..model.instant import SECOND
from ..model.query import Multiple
from ..model.space import Point, Rectangle
from ..protocols.qps.tree import Tree
from ..protocols.sps.placement import Choice, Ground, Part, Publisher, choices
from ..runtimes.sensornet.case import Case, Plan, planned
from ..runtimes.sensornet.report.style import COLOURS, legend_above, new_figure, tidy
from ..sim.energy import draw
from ..sim.mac.station import DATA_OVERHEAD
from ..sim.radio import Radio
from ..sim.topology import Topology

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DAY = 24 * 3600 * SECOND
MESSAGE = 40
"""Bytes of an event on the air, with what routing writes before it; about."""
SAID = 0.01
"""How often a component says something for a reading that it gets: assumed, and printed."""
LEVELS = 3


class Explained(NamedTuple):
    """What is said of every component; and, to be drawn, where nodes stand and what was chosen, in order."""

    text: str
    places: Sequence[Point]
    chosen: Sequence[tuple[str, Choice]]


def explained(checked: Checked, case: Case, seed: int = 1) -> Explained:
    """All of it."""
    smcs = {each.name: smc(each) for each in checked.components}
    if not smcs:
        raise UsageError("the definition has no component; a 'state' with queries is one")
    plan = planned(case, seed)
    world = _World(plan, case)
    level = levels(smcs.values())
    lines = [
        f"{len(plan.placed)} nodes; a message is heard {world.reach:.0f} m far and takes "
        f"{world.millijoules:.2f} mJ a hop; a component says something for {SAID:.0%} of what it hears"
    ]
    for name in sorted(smcs, key=lambda each: (level[smcs[each].topic], each)):
        lines += world.component(name, smcs[name])
    return Explained("\n".join(lines), world.places, world.chosen)


def drawn(found: Explained) -> Figure:
    """Step by step, level by level: who hosts what on the map, and from where it hears."""
    steps = len(found.chosen)
    columns = min(3, steps)
    rows = math.ceil(steps / columns)
    figure = new_figure(4.2 * columns, 4.2 * rows)
    for number, (name, choice) in enumerate(found.chosen, 1):
        panel = figure.add_subplot(rows, columns, number)
        panel.scatter(*_axes(found.places), 8, "#cccccc")
        for part in choice.parts:
            for one in part.inputs:
                panel.plot(*zip(one.at, part.at, strict=True), color=COLOURS[0], linewidth=0.7)
            panel.plot(
                *zip(part.at, choice.join, strict=True), color=COLOURS[1], linewidth=0.7, linestyle=":"
            )
        heard = {one.at for part in choice.parts for one in part.inputs}
        panel.scatter(*_axes(heard), 16, COLOURS[0], label="publishes")
        hosts = {part.at for part in choice.parts}
        panel.scatter(*_axes(hosts), 60, "none", edgecolors=COLOURS[1], label="hosts")
        panel.set_aspect("equal")
        tidy(panel, f"{number}. {name}: {choice.name}")
    legend_above(figure, figure.axes[0])
    return figure


def _axes(points: Collection[Point]) -> tuple[list[float], list[float]]:
    return [p[0] for p in points], [p[1] for p in points]


class _World:
    """The network, and where components that were looked at already would publish."""

    def __init__(self, plan: Plan, case: Case) -> None:
        self._placed: Topology = plan.placed
        self._recordings = case.recordings
        self.places = self._places = [(float(p[0]), float(p[1])) for p in plan.placed.positions]
        self.chosen: list[tuple[str, Choice]] = []
        low = (min(p[0] for p in self._places), min(p[1] for p in self._places))
        side = max(max(p[axis] for p in self._places) - low[axis] for axis in (0, 1)) or 1.0
        self._tree = Tree(low, side, LEVELS)
        self._space = Rectangle(low, tuple(c + side for c in low))
        self._sources = {each.topic.name: each for each in plan.sources}
        self._subscribers = {wish.name: wish.node for wish in plan.wishes if not wish.plain}
        self._everybody = [wish.node for wish in plan.wishes]
        self._hosts: dict[str, list[Publisher]] = {}
        self.reach = getattr(case.scenario.links, "range_m", None) or _reach(self._places)
        self.millijoules = _millijoules(plan, case)

    def component(self, name: str, of: Smc) -> Iterator[str]:
        inputs = [p for topic in of.topics for p in self._publishers(topic, name, of)]
        who = [self._subscribers[name]] if name in self._subscribers else self._everybody
        if not who:
            raise UsageError("the scenario has no subscriber")
        relative = any(one.query.is_relative for one in of.inputs.values()) or isinstance(of.here, str)
        parameters = [p for one in of.inputs.values() for _, p in one.query.parameters()]
        separate = any(isinstance(p, Multiple) and p.how == "separate" for p in parameters)
        ground = Ground(
            tree=self._tree,
            reach=self.reach,
            subscribers=tuple(self._places[node] for node in who),
            output=SAID,
            joined=not separate,
        )
        found = choices(of.topic, inputs, ground, relative)
        self.chosen.append((name, found[0]))
        yield f"\n{name}, over {', '.join(of.topics)} of {len(inputs)} publishers:"
        for number, choice in enumerate(found):
            joules = choice.messages * self.millijoules / 1000
            mark = "→" if number == 0 else " "
            yield f"{mark} {choice.name}: {choice.messages:,.0f} messages, {joules:,.1f} J a day"
        yield from self._parts(found[0])
        self._hosts[of.topic] = [
            Publisher(f"{name} {i}", of.topic, part.at, part.region or self._space, _rate(part) * SAID)
            for i, part in enumerate(found[0].parts, 1)
        ]

    def _parts(self, choice: Choice) -> Iterator[str]:
        for part in choice.parts[:8]:
            where = "" if len(part.inputs) == 1 or part.region is None else f" {_shown(part.region)},"
            yield f"    node {self._nearest(part.at)}:{where} {part.why}"
        if len(choice.parts) > 8:
            yield f"    … and {len(choice.parts) - 8} more, alike"

    def _nearest(self, at: Point) -> str:
        node = min(range(len(self._places)), key=lambda n: math.dist(self._places[n], at))
        return self._placed.names[node]

    def _publishers(self, topic: str, name: str, of: Smc) -> Sequence[Publisher]:
        if topic in self._hosts:
            return self._hosts[topic]
        source = self._sources.get(topic)
        if source is None:
            raise UsageError(f"'{name}' listens to '{topic}', which nobody publishes in this network")
        here = of.here if isinstance(of.here, tuple) else None
        wanted: list[Rectangle] = []
        for one in of.inputs.values():
            if topic in one.query.topics and not (one.query.is_relative and here is None):
                wanted += [s.region for s in subscriptions(one.query, here, self._space) if s.topic == topic]
        every = source.publisher.every
        a_day = self._recordings[source.place].a_day() if every is None else DAY / every
        return [
            Publisher(self._placed.names[node], topic, at, _spot(at, self._space), a_day)
            for node in source.nodes
            for at in [self._places[node]]
            if not wanted or any(_has(region, at) for region in wanted)
        ]


def _rate(part: Part) -> float:
    return sum(p.a_day for p in part.inputs)


def _reach(places: Sequence[Point]) -> float:
    """How far a message goes at a time: about twice the way to the nearest other node."""
    nearest = [min(math.dist(a, b) for b in places if b != a) for a in places] if len(places) > 1 else [1.0]
    return 2 * sorted(nearest)[len(nearest) // 2]


def _millijoules(plan: Plan, case: Case) -> float:
    """Of one hop: somebody sends, somebody hears."""
    radio: Radio = plan.setup.radio
    power = draw(case.platform, case.scenario.energy.rest, radio.power_dbm).radio
    return radio.airtime(MESSAGE + DATA_OVERHEAD) / SECOND * (power[-1] + power[-2])


def _spot(at: Point, space: Rectangle) -> Rectangle:
    """What a sensor speaks of: the place where it stands."""
    half = (space.high[0] - space.low[0]) / 2000
    return Rectangle(tuple(c - half for c in at), tuple(c + half for c in at))


def _has(region: Rectangle, at: Point) -> bool:
    return all(a <= p <= b for a, p, b in zip(region.low, at, region.high, strict=True))


def _shown(region: Rectangle) -> str:
    (a, b), (c, d) = region.low, region.high
    return f"({a:g}, {b:g}) – ({c:g}, {d:g})"
