"""The commands ``bench`` and ``reproduce``.

Their content is in the lab, a separate distribution that is found by its entry points.
"""

from __future__ import annotations

import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from ..errors import UsageError
from .options import require_choice


def lab(part: str) -> Any:
    """Return a part of the lab: ``experiments`` or ``benchmarks``. Raises ``UsageError`` if the lab is not
    installed.
    """
    for entry in entry_points(group="holdfast.lab", name=part):
        return entry.load()
    raise UsageError(
        f"the {part} are in the distribution holdfast-lab, which is not installed; "
        "in a checkout of Holdfast: pip install ./lab"
    )


def bench(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME …]", help="Which; all by default.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure, beside named peers in the same run."""
    import json

    found = lab("benchmarks").run(names or [], lambda doing: typer.echo(f"… {doing}", err=True))
    if as_json:
        typer.echo(json.dumps(found, indent=2, ensure_ascii=False))
        return
    for name, rows in found["benchmarks"].items():
        typer.echo(f"\n{name}  (load {found['machine']['load']:.1f} on {found['machine']['cores']} cores)")
        for row in rows:
            typer.echo(_format_row(row))


def _format_row(row: dict[str, Any]) -> str:
    if row["value"] is None:
        return f"  {row['what']:<66} {'failed':>16}: {row['detail']['failed']}"
    goal = f"   goal {row['goal']}: {'met' if row['met'] else 'missed'}" if row["goal"] else ""
    times = row["detail"].get("holdfast_is_times_faster")
    beside = f"   holdfast is {times:,.1f} × as fast" if times else ""
    return f"  {row['what']:<66} {row['value']:>16,.1f} {row['unit']}{goal}{beside}"


def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME …]", help="Which; all by default.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, one line for each.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Run everything, not only the quick part.")] = False,
    figure: Annotated[Path | None, typer.Option(metavar="DIR", help="Draw figures there.")] = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The real data sets; else HOLDFAST_DATA, else ../shared/data."),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="local|spark",
            help="Where runs are made: one after the other here, or each as a Spark task; "
            "else as the experiment has it.",
        ),
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="Say which there are, and run none.")] = False,
) -> None:
    """Run tables and figures of the documents again: our figures beside theirs, claims judged.

    Claims that do not hold are said so; the exit status is 0 all the same.
    """
    import json

    require_choice("--engine", engine or "local", ["local", "spark"])
    experiments = lab("experiments")
    terminal = sys.stdout.isatty()
    some = experiments.find_experiments(names or [])
    if listed:
        width = max(len(one.name) for one in some)
        for one in some:
            typer.echo(f"{one.name:<{width}}  {one.title}")
        return
    for experiment in some:
        with experiments.on_engine(engine):
            result = _reproduce(experiment, data, full)
        if as_json:
            typer.echo(json.dumps(result.to_json(), ensure_ascii=False))
        else:
            experiments.show(experiment, result, Console(width=None if terminal else 150, highlight=False))
        if figure:
            typer.echo(f"figure: {experiment.figure(result, figure)}", err=True)


def _reproduce(experiment: Any, data: Path | None, full: bool) -> Any:
    with Console(stderr=True).status(experiment.name) as doing:
        return experiment.run(data, full, lambda what: doing.update(f"{experiment.name}: {what}"))
