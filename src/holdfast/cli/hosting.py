"""Output of ``explain --network``: the placement of an application's components.

It has reasons and daily costs. [F71, F73, F74]  ``holdfast explain APP.hf --network SCENARIO``.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import UsageError
from ..kinds.component.compile import smc
from ..kinds.component.condition import ComponentCondition
from ..kinds.component.detector.smc import Smc
from ..kinds.component.detector.subscriptions import subscriptions
from ..kinds.component.detector.topic_levels import levels
from ..lang.condition import Checked
from ..model.instant import SECOND
from ..model.query import Multiple
from ..model.space import Point, Rectangle
from ..network.motes.case import RunPlan, SimulationCase, SourceNodes, plan_run
from ..network.motes.report.style import COLOURS, legend_above, new_figure, tidy
from ..network.protocols.qps.tree import ScopeTree
from ..network.protocols.sps.placement import (
    ComponentPart,
    PlacementChoice,
    PlacementGround,
    TopicPublisher,
    choices,
)
from ..network.sim.energy import draw
from ..network.sim.mac.station import DATA_OVERHEAD
from ..network.sim.radio import Radio
from ..network.sim.topology import Topology

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DAY = 24 * 3600 * SECOND
MESSAGE = 40
"""Approximate bytes of an event in a frame, including the header of the routing protocol."""
SAID = 0.01
"""The assumed number of outputs of a component per reading; printed with the result."""
LEVELS = 3


class Chosen(NamedTuple):
    """The position that was chosen for a component, and the receivers of its outputs."""

    name: str
    choice: PlacementChoice
    joined: bool
    subscribers: Sequence[Point]


class Explained(NamedTuple):
    """The explanation as text. For a figure, it also has the positions of nodes and the choices in order."""

    text: str
    places: Sequence[Point]
    chosen: Sequence[Chosen]


def explain(checked: Checked, case: SimulationCase, seed: int = 1) -> Explained:
    """Return an explanation of the placement of all components."""
    smcs = {each.name: smc(each) for each in checked.of(ComponentCondition)}
    if not smcs:
        raise UsageError("the definition has no component; a 'state' with queries is one")
    plan = plan_run(case, seed)
    world = _World(plan, case)
    level = levels(smcs.values())
    lines = [
        f"{len(plan.topology)} nodes; a message is heard {world.reach:.0f} m far and takes "
        f"{world.millijoules:.2f} mJ a hop; a component says something for {SAID:.0%} of what it hears"
    ]
    for name in sorted(smcs, key=lambda each: (level[smcs[each].topic], each)):
        lines += world.component(name, smcs[name])
    return Explained("\n".join(lines), world.places, world.chosen)


def draw_placement(found: Explained) -> Figure:
    """Return a figure that maps each component's hosts and inputs, level by level."""
    steps = len(found.chosen)
    columns = min(3, steps)
    rows = math.ceil(steps / columns)
    figure = new_figure(4.2 * columns, 4.2 * rows)
    for number, chosen in enumerate(found.chosen, 1):
        panel = figure.add_subplot(rows, columns, number)
        _step(panel, chosen, found.places)
        tidy(panel, f"{number}. {chosen.name}: {chosen.choice.name}")
    legend_above(figure, figure.axes[0])
    return figure


def _step(panel: Any, chosen: Chosen, places: Sequence[Point]) -> None:
    """Draw one component: the inputs of its hosts, and the receivers of their outputs."""
    parts, join = chosen.choice.parts, _nearest(places, chosen.choice.join)
    hosts = {part.at: _nearest(places, part.at) for part in parts}
    input_lines = [(one.at, hosts[part.at]) for part in parts for one in part.inputs]
    ends = [join] if chosen.joined else chosen.subscribers
    output_lines = [(host, end) for host in hosts.values() for end in ends]
    output_lines += [(join, end) for end in chosen.subscribers] if chosen.joined else []
    for lines, colour, style in ((input_lines, COLOURS[0], "-"), (output_lines, COLOURS[1], ":")):
        for line in lines:
            panel.plot(*_axes(line), color=colour, linewidth=0.7, linestyle=style)
    rest = [at for at in places if at not in {one.at for part in parts for one in part.inputs}]
    panel.scatter(*_axes(rest), 8, "#cccccc")
    panel.scatter(*_axes({at for at, _ in input_lines}), 16, COLOURS[0], label="publishes", zorder=3)
    ringed = {*hosts.values(), *([join] if chosen.joined else [])}
    panel.scatter(*_axes(ringed), 60, "none", edgecolors=COLOURS[1], label="hosts", zorder=4)
    panel.scatter(*_axes(chosen.subscribers), 40, COLOURS[2], marker="^", label="subscribes", zorder=5)
    panel.set_aspect("equal")


def _nearest(places: Sequence[Point], at: Point) -> Point:
    return min(places, key=lambda place: math.dist(place, at))


def _axes(points: Collection[Point]) -> tuple[list[float], list[float]]:
    return [p[0] for p in points], [p[1] for p in points]


class _World:
    """The nodes of the network, and the publishers of components that were placed earlier."""

    def __init__(self, plan: RunPlan, case: SimulationCase) -> None:
        self._placed: Topology = plan.topology
        self._recordings = case.recordings
        self.places: Sequence[Point] = [(float(p[0]), float(p[1])) for p in plan.topology.positions]
        self.chosen: list[Chosen] = []
        low = (min(p[0] for p in self.places), min(p[1] for p in self.places))
        side = max(max(p[axis] for p in self.places) - low[axis] for axis in (0, 1)) or 1.0
        self._tree = ScopeTree(low, side, LEVELS)
        self._space = Rectangle(low, tuple(c + side for c in low))
        self._sources = {each.topic.name: each for each in plan.sources}
        self._subscribers = {wish.name: wish.node for wish in plan.subscriptions if not wish.plain}
        self._everybody = [wish.node for wish in plan.subscriptions]
        self._hosts: dict[str, list[TopicPublisher]] = {}
        self.reach = getattr(case.scenario.links, "range_m", None) or _reach(self.places)
        self.millijoules = _millijoules(plan, case)

    def component(self, name: str, of: Smc) -> Iterator[str]:
        """Place a component, and yield the lines that explain it."""
        inputs = [p for topic in of.topics for p in self._publishers(topic, name, of)]
        who = [self._subscribers[name]] if name in self._subscribers else self._everybody
        if not who:
            raise UsageError("the scenario has no subscriber")
        relative = any(one.query.is_relative for one in of.inputs.values()) or isinstance(of.here, str)
        parameters = [p for one in of.inputs.values() for _, p in one.query.parameters()]
        separate = any(isinstance(p, Multiple) and p.how == "separate" for p in parameters)
        ground = PlacementGround(
            tree=self._tree,
            reach=self.reach,
            subscribers=tuple(self.places[node] for node in who),
            output=SAID,
            must_join=not separate,
        )
        found = choices(of.topic, inputs, ground, relative)
        joined = ground.must_join and not relative and len(found[0].parts) > 1
        self.chosen.append(Chosen(name, found[0], joined, ground.subscribers))
        yield f"\n{name}, over {', '.join(of.topics)} of {len(inputs)} publishers:"
        for number, choice in enumerate(found):
            joules = choice.messages * self.millijoules / 1000
            mark = "→" if number == 0 else " "
            yield f"{mark} {choice.name}: {choice.messages:,.0f} messages, {joules:,.1f} J a day"
        yield from self._parts(found[0])
        self._hosts[of.topic] = [
            TopicPublisher(f"{name} {i}", of.topic, part.at, part.region or self._space, _rate(part) * SAID)
            for i, part in enumerate(found[0].parts, 1)
        ]

    def _parts(self, choice: PlacementChoice) -> Iterator[str]:
        for part in choice.parts[:8]:
            where = "" if len(part.inputs) == 1 or part.region is None else f" {_format_region(part.region)},"
            yield f"    node {self._nearest(part.at)}:{where} {part.why}"
        if len(choice.parts) > 8:
            yield f"    … and {len(choice.parts) - 8} more, alike"

    def _nearest(self, at: Point) -> str:
        return self._placed.names[self.places.index(_nearest(self.places, at))]

    def _publishers(self, topic: str, name: str, of: Smc) -> Sequence[TopicPublisher]:
        source = self._sources.get(topic)
        if topic not in self._hosts and source is None:
            raise UsageError(f"'{name}' listens to '{topic}', which nobody publishes in this network")
        here = of.here if isinstance(of.here, tuple) else None
        queries = [one.query for one in of.inputs.values() if topic in one.query.topics]
        found = self._hosts[topic] if source is None or topic in self._hosts else self._sensors(source, topic)
        if here is None and any(query.is_relative for query in queries):
            return found
        wanted = [s.region for query in queries for s in subscriptions(query, here, self._space)]
        return [each for each in found if any(_meet(region, each.region) for region in wanted)]

    def _sensors(self, source: SourceNodes, topic: str) -> list[TopicPublisher]:
        every = source.publisher.every
        a_day = self._recordings[source.place].readings_per_day() if every is None else DAY / every
        places = {node: self.places[node] for node in source.nodes}
        return [
            TopicPublisher(self._placed.names[node], topic, at, _spot(at, self._space), a_day)
            for node, at in places.items()
        ]


def _rate(part: ComponentPart) -> float:
    return sum(p.a_day for p in part.inputs)


def _reach(places: Sequence[Point]) -> float:
    """Return an estimate of the radio range: twice the median distance to the nearest node."""
    nearest = [min(math.dist(a, b) for b in places if b != a) for a in places] if len(places) > 1 else [1.0]
    return 2 * sorted(nearest)[len(nearest) // 2]


def _millijoules(plan: RunPlan, case: SimulationCase) -> float:
    """Return the energy of one hop in millijoules: one node sends and one receives."""
    radio: Radio = plan.setup.radio
    power = draw(case.platform, case.scenario.energy.rest, radio.power_dbm).radio
    return radio.airtime(MESSAGE + DATA_OVERHEAD) / SECOND * (power[-1] + power[-2])


def _spot(at: Point, space: Rectangle) -> Rectangle:
    """Return a small region around the position of a sensor."""
    half = (space.high[0] - space.low[0]) / 2000
    return Rectangle(tuple(c - half for c in at), tuple(c + half for c in at))


def _meet(a: Rectangle, b: Rectangle) -> bool:
    return all(
        low <= high for low, high in [*zip(a.low, b.high, strict=True), *zip(b.low, a.high, strict=True)]
    )


def _format_region(region: Rectangle) -> str:
    (a, b), (c, d) = region.low, region.high
    return f"({a:g}, {b:g}) – ({c:g}, {d:g})"
