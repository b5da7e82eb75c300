"""``compare``: one definition in three worlds, and what each makes of the same readings."""

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
    from ..runtimes.sensornet.case import Case


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
    from ..lang.check import check
    from ..lang.parse import load
    from ..runtimes.sensornet.play import cast, minds_places, play, stages
    from ..runtimes.sensornet.study import read
    from . import worlds

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

    def where(case: Case, seed: int) -> list[Event]:
        at = stages(case, seed)
        return worlds.placed(events, at) if minds_places(case, seed) else events

    seen = {(i, each): where(case, each) for i, case in enumerate(cases) for each in seeds}
    first = seen[0, seeds[0]]
    ideal = worlds.ideal(app, first)
    if not ideal:
        raise InputError("no condition holds in this history: there is nothing to compare")
    found = [worlds.live(app, first, ideal, late, seeds[0])]
    with progress(len(seen)) as advance:
        for (i, each), here in seen.items():
            knows = ideal if here == first else worlds.ideal(app, here)
            played = play(cases[i], each)
            found.append(worlds.network(study.points[i].settings, each, played, knows, events))
            advance()
    answer = worlds.Answer(events, ideal, found)
    typer.echo(worlds.to_json(answer) if as_json else "\n".join(worlds.spoken(answer)))
    if figure is not None:
        worlds.draw(answer, figure)
