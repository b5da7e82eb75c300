"""``relate``: relationships over files of readings, and what watching them in a network would cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from ..errors import UsageError
from .options import Definition, Lets, Maps, OfTopic, TimeFormat, Unit, Zone, load, reading_of, warn

if TYPE_CHECKING:
    from ..files.find import InputFile
    from ..files.reading import Reading
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
    let: Lets = None,
) -> None:
    """Relationships over files of readings, and what each strategy would have cost beside full reporting."""
    from ..files.find import find
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
    _costs(checked, events_of(files, reading))


def events_of(files: list[InputFile], reading: Reading) -> list[Event]:
    """The readings of files, in order of time."""
    from ..files.read import read
    from ..files.tally import Rejects, Tally
    from ..model.batch import to_events

    found = [
        event
        for file in files
        for topic, batch in read(file, reading, Tally(), Rejects())
        for event in to_events(topic, batch)
    ]
    return sorted(found, key=lambda event: event.order)


def _costs(checked: Checked, events: list[Event]) -> None:
    table = Table(title="what agents would have said", title_justify="left")
    for name in ("relationship", "strategy", "readings", "full reporting", "agents", "reports", "saved"):
        table.add_column(name, justify="left" if name in ("relationship", "strategy") else "right")
    for one in checked.relations:
        for line in _lines(one, events):
            table.add_row(one.name, *line)
    Console(stderr=True).print(table)


def _lines(one: Related, events: list[Event]) -> list[tuple[str, ...]]:
    from ..protocols.agents.account import account

    relation = one.relation
    fitting = {
        "distance": ("range_ring", "parallel_line"), "spread": ("centre_of_mass",), "total": ("hierarchy",),
    }.get(relation.kind, ())  # fmt: skip
    if relation.ties is None or relation.enter.hold or relation.exit.hold or not fitting:
        return [("a condition at a broker", "", "", "", "", "")]
    lines = []
    for using in fitting:
        cost, _ = account(relation, using, events)
        numbers = (cost.readings, cost.full, cost.messages, cost.reports)
        lines.append((using, *(f"{n:,}" for n in numbers), f"{cost.saved:.1%}"))
    return lines
