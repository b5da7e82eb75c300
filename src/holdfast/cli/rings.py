"""A figure of range rings: the positions of a pair, its rings, and the distance over time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import UsageError
from ..model.instant import MINUTE, Instant
from ..model.relation import Point, Relation, Tie, apart
from ..network.motes.report.style import COLOURS, INK, new_figure, tidy
from ..network.protocols.agents.account import instants
from ..network.protocols.agents.library import STRATEGIES
from ..network.protocols.agents.room import AgentRoom

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..kinds.relation.condition import RelationCondition
    from ..model.event import Event


@dataclass(frozen=True, slots=True)
class PairMoment:
    """The state of a pair at one time: both positions, whether the relationship is active, and new rings."""

    time: Instant
    places: tuple[Point, ...]
    holds: bool
    rings: tuple[tuple[Point, float], ...] = ()


def moments(relation: Relation, tie: Tie, events: Iterable[Event]) -> Iterator[PairMoment]:
    """Yield the states of a pair of agents for readings in order, up to the first end of the relationship."""
    made = STRATEGIES["range_ring"](relation, tie, ())
    agents = [one.agent for one in made]
    room, holds, message_count = AgentRoom({agent.name: agent for agent in agents}), False, 0
    for time, readings in instants(made, relation.accuracy, events):
        statuses = [report.status for report in room.process(readings)]
        holds = statuses[-1] == "ingress" if statuses else holds
        if any(agent.current is None or agent.own_sent is None for agent in agents):  # type: ignore[attr-defined]
            continue
        places = tuple(agent.current.at for agent in agents)  # type: ignore[attr-defined]
        has_new_rings, message_count = room.counted["messages"] > message_count, room.counted["messages"]
        rings = tuple((agent.own_sent.at, agent.radius) for agent in agents)  # type: ignore[attr-defined]
        yield PairMoment(time, places, holds, rings if has_new_rings else ())
        if "egress" in statuses:
            return


def draw(one: RelationCondition, events: Iterable[Event], file: Path) -> None:
    """Write a figure of the first pair that meets, on a map and over time."""
    relation = one.relation
    if relation.kind != "distance" or relation.ties is None:
        raise UsageError(f"--figure {file}: rings are of two who are named, and '{one.name}' has none")
    events = list(events)
    found = ((tie, list(moments(relation, tie, _of(tie, events)))) for tie in relation.ties)
    tie, way = next(((tie, way) for tie, way in found if any(m.holds for m in way)), (None, []))
    if tie is None:
        raise UsageError(f"--figure {file}: no two of '{one.name}' meet in these readings")
    figure = new_figure(10, 4.6)
    left, right = figure.subplots(1, 2)
    _map(left, tie, way)
    _distance(right, relation, way)
    try:
        figure.savefig(file, dpi=110)
    except (OSError, ValueError) as error:
        raise UsageError(f"--figure {file}: {error}") from error


def _of(tie: Tie, events: Iterable[Event]) -> list[Event]:
    members = {(member.topic, member.source) for member in tie.members}
    return [event for event in events if (event.topic, event.source) in members]


def _map(panel: Axes, tie: Tie, way: list[PairMoment]) -> None:
    from matplotlib.patches import Circle

    tidy(panel, "where they went, and how far each might go unsaid")
    for i, (name, colour) in enumerate(zip(tie.pair, COLOURS, strict=False)):
        points = [step.places[i] for step in way]
        panel.plot(*zip(*points, strict=True), color=colour, marker=".", linewidth=1, label=name)
        for step in way:
            for centre, radius in step.rings[i : i + 1]:
                line = ":" if step.holds else "-"
                panel.add_patch(
                    Circle(
                        (centre[0], centre[1]), radius, fill=False, color=colour, alpha=0.5, linestyle=line
                    )
                )
    panel.set_aspect("equal", adjustable="datalim")
    panel.autoscale_view()
    panel.set_xlabel("m", color=INK)
    panel.legend(frameon=False, fontsize=9)


def _distance(panel: Axes, relation: Relation, way: list[PairMoment]) -> None:
    tidy(panel, "how far they are apart; a mark where somebody speaks")
    minutes = [(step.time - way[0].time) / MINUTE for step in way]
    apart_by = [apart(*step.places) for step in way]
    panel.plot(minutes, apart_by, color=INK, linewidth=1)
    has_new_rings = [(m, d) for m, d, step in zip(minutes, apart_by, way, strict=True) if step.rings]
    panel.plot(*zip(*has_new_rings, strict=True), color=COLOURS[1], marker="o", linestyle="", markersize=4)
    for bound, word in ((relation.enter.within.high, "starts"), (relation.exit.within.low, "ends")):
        panel.axhline(bound, color=INK, linewidth=0.8, linestyle="--")
        panel.annotate(word, (0, bound), fontsize=8, color=INK, va="bottom")
    start = next(m for m, step in zip(minutes, way, strict=True) if step.holds)
    panel.axvspan(start, minutes[-1], color=COLOURS[2], alpha=0.15, linewidth=0)
    panel.set_ylim(0)
    panel.set_xlabel("min", color=INK)
    panel.set_ylabel("m", color=INK)
