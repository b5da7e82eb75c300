"""The command ``relate``: relationships over files of readings, and the cost of monitoring them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UsageError, counted
from .inputs import events_of
from .options import Definition, Lets, Maps, OfTopic, TimeFormat, Unit, Zone, load, reading_of, warn

if TYPE_CHECKING:
    from ..kinds.relation.condition import RelationCondition
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
    from ..kinds.relation.condition import RelationCondition
    from ..runtimes.local.replay import Replay

    checked = load(definition, let)
    warn(checked)
    if not checked.of(RelationCondition):
        raise UsageError(
            f"{definition} has no relationship; write one with: relate NAME (a TOPIC, b TOPIC) when …"
        )
    reading = reading_of(checked, map or [], topic, zone, time_format, time_unit, False)
    files = find(input, [t.name for t in checked.topics])
    written = "csv" if output.endswith(".csv") else "parquet" if output.endswith(".parquet") else "jsonl"
    notifications = list(Replay(checked, files, reading))
    with open_writer(output, written, form, checked.output_topics) as writer:  # type: ignore[arg-type]
        writer.write(notifications)
    events = events_of(files, reading, Tally())
    relations = checked.of(RelationCondition)
    _costs(relations, events)
    if figure is not None:
        from .rings import draw

        draw(relations[0], events, figure)


def _costs(relations: Sequence[RelationCondition], events: list[Event]) -> None:
    for relation in relations:
        for line in _lines(relation, events):
            typer.echo(f"{relation.name}: {line}", err=True)


def _lines(one: RelationCondition, events: list[Event]) -> Iterator[str]:
    from ..network.protocols.agents.account import account

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
        traffic = f"{counted(cost.messages, 'message')} between agents and {counted(cost.reports, 'report')}"
        yield f"{using}: {traffic} in place of {counted(cost.full, 'reading')}, {cost.saved:.1%} saved"
