"""``relate``: relationships over files of readings, and what watching them in a network would cost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UsageError, counted
from .inputs import events_of
from .options import Definition, Lets, Maps, OfTopic, TimeFormat, Unit, Zone, load, reading_of, warn

if TYPE_CHECKING:
    from ..lang.condition import Checked, Related
    from ..model.event import Event


def relate(
    definition: Definition,
    input: Annotated[
        list[str],
        typer.Option(
            "--input", "-i", metavar="[TOPIC=]PATH", help="A file, folder or glob; may be repeated."
        ),
    ],
    map: Maps = None,
    topic: OfTopic = None,
    zone: Zone = "UTC",
    time_format: TimeFormat = None,
    time_unit: Unit = None,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="PATH", help="Where relationships go; - is the terminal.")
    ] = "-",
    form: Annotated[
        str, typer.Option("--as", metavar="events|intervals", help="What a line is.")
    ] = "intervals",
    figure: Annotated[
        Path | None,
        typer.Option("--figure", metavar="FILE", help="Draw rings of the first two who meet."),
    ] = None,
    let: Lets = None,
) -> None:
    """Relationships over files of readings, and what each strategy would have cost beside full reporting."""
    from ..files.find import find
    from ..files.tally import Tally
    from ..files.write import open_writer
    from ..runtimes.local.replay import Replay

    checked = load(definition, let)
    warn(checked)
    if not checked.relations:
        raise UsageError(
            f"{definition} has no relationship; write one with: relate NAME (a TOPIC, b TOPIC) when …"
        )
    reading = reading_of(checked, map or [], topic, zone, time_format, time_unit, False)
    files = find(input, [t.name for t in checked.topics])
    written = "csv" if output.endswith(".csv") else "parquet" if output.endswith(".parquet") else "jsonl"
    told = list(Replay(checked, files, reading))
    with open_writer(output, written, form, checked.published) as writer:  # type: ignore[arg-type]
        writer.write(told)
    events = events_of(files, reading, Tally())
    _costs(checked, events)
    if figure is not None:
        from .rings import draw

        draw(checked.relations[0], events, figure)


def _costs(checked: Checked, events: list[Event]) -> None:
    for one in checked.relations:
        for line in _lines(one, events):
            typer.echo(f"{one.name}: {line}", err=True)


def _lines(one: Related, events: list[Event]) -> Iterator[str]:
    from ..protocols.agents.account import account

    relation = one.relation
    fitting = {
        "distance": ("range_ring", "parallel_line"), "spread": ("centre_of_mass",), "radius": ("counting",),
        "total": ("hierarchy",), "best": ("hierarchy",),
    }.get(relation.kind, ())  # fmt: skip
    if relation.ties is None or relation.enter.hold or relation.exit.hold or not fitting:
        yield "agents cannot watch it; it runs at one broker, to which all readings go"
        return
    for using in fitting:
        cost, _ = account(relation, using, events, one.settings if using == one.using else ())
        said = f"{counted(cost.messages, 'message')} between agents and {counted(cost.reports, 'report')}"
        yield f"{using}: {said} in place of {counted(cost.full, 'reading')}, {cost.saved:.1%} saved"
