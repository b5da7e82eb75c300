"""The command ``compare``: one definition on the same readings in an engine, live, and in a network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InputError, UsageError
from .inputs import Inputs, history, require_playable
from .options import Definition, Maps, OfTopic, TimeFormat, Unit, Wide, Zone, length, reading_of, warn
from .simulate import progress

if TYPE_CHECKING:
    from ..model.event import Event
    from ..network.motes.case import SimulationCase


def compare(
    definition: Definition,
    input: Inputs,
    network: Annotated[
        Path, typer.Option(metavar="SCENARIO.yaml", help="The network; a sweep in it compares several ways.")
    ],
    lateness: Annotated[
        str, typer.Option(metavar="DURATION", help="Live, a reading comes up to so much later than it says.")
    ] = "30 s",
    seed: Annotated[int | None, typer.Option(help="One run of each way, with this seed.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with every alarm.")] = False,
    figure: Annotated[
        Path | None, typer.Option(metavar="PNG|SVG", help="Draw what held in each world there.")
    ] = None,
    map: Maps = None,
    topic: OfTopic = None,
    zone: Zone = "UTC",
    time_format: TimeFormat = None,
    time_unit: Unit = None,
    wide: Wide = False,
) -> None:
    """Which alarms a network, or late arrivals, would lose, delay or double; what a saved joule costs."""
    from ..definition.check import check
    from ..definition.parse import load
    from ..network.motes.play import cast, needs_positions, play, source_positions
    from ..network.motes.study import read
    from . import comparison

    late = length("--lateness", lateness)
    if figure is not None and figure.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise UsageError(f"--figure {figure}: name it .png, .svg or .pdf")
    app = load(definition)
    checked = check(app)
    warn(checked)
    require_playable(definition, checked)
    study = read(network, definition)
    seeds = study.seeds if seed is None else (seed,)
    events = history(
        checked, input, reading_of(checked, map or [], topic, zone, time_format, time_unit, wide)
    )
    cases = [cast(point.case, events) for point in study.points]

    def where(case: SimulationCase, seed: int) -> list[Event]:
        at = source_positions(case, seed)
        return comparison.locate(events, at) if needs_positions(case, seed) else events

    seen = {(i, each): where(case, each) for i, case in enumerate(cases) for each in seeds}
    first = seen[0, seeds[0]]
    ideal = comparison.ideal(app, first)
    if not ideal:
        raise InputError("no condition holds in this history: there is nothing to compare")
    scenarios = [comparison.live(app, first, ideal, late, seeds[0])]
    with progress(len(seen)) as advance:
        for (i, each), located_events in seen.items():
            ideal_here = ideal if located_events == first else comparison.ideal(app, located_events)
            played = play(cases[i], each)
            scenarios.append(comparison.network(study.points[i].settings, each, played, ideal_here, events))
            advance()
    result = comparison.Comparison(events, ideal, scenarios)
    typer.echo(comparison.to_json(result) if as_json else "\n".join(comparison.summary_lines(result)))
    if figure is not None:
        comparison.draw(result, figure)
