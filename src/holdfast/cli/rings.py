"""A picture of range rings: where two went, how far each might go unsaid, and how far apart they were."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import UsageError
from ..model.instant import MINUTE, Instant
from ..model.relation import Point, Relation, Tie, apart
from ..protocols.agents.account import instants
from ..protocols.agents.library import STRATEGIES
from ..protocols.agents.room import Room
from ..runtimes.sensornet.report.style import COLOURS, INK, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..lang.condition import Related
    from ..model.event import Event


@dataclass(frozen=True, slots=True)
class Moment:
    """After an instant: where both are, whether it holds, and the rings if somebody has spoken."""

    time: Instant
    places: tuple[Point, ...]
    holds: bool
    rings: tuple[tuple[Point, float], ...] = ()


def moments(relation: Relation, tie: Tie, events: Iterable[Event]) -> Iterator[Moment]:
    """What two agents do of readings in order, until the relationship ends for the first time."""
    made = STRATEGIES["range_ring"](relation, tie, ())
    agents = [one.agent for one in made]
    room, holds, said = Room({agent.name: agent for agent in agents}), False, 0
    for time, readings in instants(made, relation.accuracy, events):
        told = [report.status for report in room.instant(readings)]
        holds = told[-1] == "ingress" if told else holds
        if any(agent.mine is None or agent.centre is None for agent in agents):  # type: ignore[attr-defined]
            continue
        places = tuple(agent.mine.at for agent in agents)  # type: ignore[attr-defined]
        spoken, said = room.counted["messages"] > said, room.counted["messages"]
        rings = tuple((agent.centre.at, agent.radius) for agent in agents)  # type: ignore[attr-defined]
        yield Moment(time, places, holds, rings if spoken else ())
        if "egress" in told:
            return


def draw(one: Related, events: Iterable[Event], file: Path) -> None:
    """The first pair that meets, on a map and in time."""
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


def _map(panel: Axes, tie: Tie, way: list[Moment]) -> None:
    from matplotlib.patches import Circle

    tidy(panel, "where they went, and how far each might go unsaid")
    for i, (name, colour) in enumerate(zip(tie.pair, COLOURS, strict=False)):
        points = [moment.places[i] for moment in way]
        panel.plot(*zip(*points, strict=True), color=colour, marker=".", linewidth=1, label=name)
        for moment in way:
            for centre, radius in moment.rings[i : i + 1]:
                line = ":" if moment.holds else "-"
                panel.add_patch(
                    Circle(
                        (centre[0], centre[1]), radius, fill=False, color=colour, alpha=0.5, linestyle=line
                    )
                )
    panel.set_aspect("equal", adjustable="datalim")
    panel.autoscale_view()
    panel.set_xlabel("m", color=INK)
    panel.legend(frameon=False, fontsize=9)


def _distance(panel: Axes, relation: Relation, way: list[Moment]) -> None:
    tidy(panel, "how far they are apart; a mark where somebody speaks")
    minutes = [(moment.time - way[0].time) / MINUTE for moment in way]
    apart_by = [apart(*moment.places) for moment in way]
    panel.plot(minutes, apart_by, color=INK, linewidth=1)
    spoken = [(m, d) for m, d, moment in zip(minutes, apart_by, way, strict=True) if moment.rings]
    panel.plot(*zip(*spoken, strict=True), color=COLOURS[1], marker="o", linestyle="", markersize=4)
    for bound, word in ((relation.enter.within.high, "starts"), (relation.exit.within.low, "ends")):
        panel.axhline(bound, color=INK, linewidth=0.8, linestyle="--")
        panel.annotate(word, (0, bound), fontsize=8, color=INK, va="bottom")
    start = next(m for m, moment in zip(minutes, way, strict=True) if moment.holds)
    panel.axvspan(start, minutes[-1], color=COLOURS[2], alpha=0.15, linewidth=0)
    panel.set_ylim(0)
    panel.set_xlabel("min", color=INK)
    panel.set_ylabel("m", color=INK)
