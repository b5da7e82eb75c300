"""``demo``, ``bench``, ``reproduce``: what it does, how fast it is, and what the documents say."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from .live import streaming
from .options import require_choice, warning

if TYPE_CHECKING:
    from ..experiments.experiment import Experiment, Result


def demo(
    engine: Annotated[str, typer.Option(metavar="local|spark", help="Where to run.")] = "spark",
) -> None:
    """The main job on generated sensors of a small building; needs no input."""
    from ..errors import Unsupported
    from ..experiments.demo import DEFINITION, report, run

    require_choice("--engine", engine, ["local", "spark"])
    typer.echo(f"A day in a small building.  The definition:\n\n{DEFINITION}")
    day = here = run()
    if engine == "spark":
        try:
            day = _demo_on_spark()
        except Unsupported as missing:
            warning(f"{missing}.  Without it: the same day in this process.")
    for line in report(day):
        typer.echo(line)
    if day is not here:
        same = (day.notifications, day.open) == (here.notifications, here.open)
        typer.echo(f"\nThe same definition in this process says {'the same' if same else 'SOMETHING ELSE'}.")
        if not same:
            raise typer.Exit(1)


def _demo_on_spark() -> Any:
    import tempfile

    from ..experiments.demo import run_live

    streaming()  # says what is missing, if something is
    typer.echo("Live on Spark, which needs some seconds to start; a file for each hour arrives:\n")
    with tempfile.TemporaryDirectory(prefix="holdfast-demo-") as folder:
        return run_live(Path(folder), typer.echo)


def bench(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME …]", help="Which; all by default.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure, beside named peers in the same run."""
    import json

    from ..benchmarks import run

    found = run(names or [], lambda doing: typer.echo(f"… {doing}", err=True))
    if as_json:
        typer.echo(json.dumps(found, indent=2, ensure_ascii=False))
        return
    for name, rows in found["benchmarks"].items():
        typer.echo(f"\n{name}  (load {found['machine']['load']:.1f} on {found['machine']['cores']} cores)")
        for row in rows:
            typer.echo(_measured(row))


def _measured(row: dict[str, Any]) -> str:
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
    listed: Annotated[bool, typer.Option("--list", help="Say which there are, and run none.")] = False,
) -> None:
    """Run tables and figures of the documents again: our figures beside theirs, claims judged.

    Claims that do not hold are said so; the exit status is 0 all the same.
    """
    import json

    from ..experiments.experiment import show
    from ..experiments.registry import chosen

    terminal = sys.stdout.isatty()
    for experiment in chosen(names or []):
        if listed:
            typer.echo(f"{experiment.name:<22} {experiment.title}")
            continue
        result = _reproduced(experiment, data, full)
        if as_json:
            typer.echo(json.dumps(result.to_json(), ensure_ascii=False))
        else:
            show(experiment, result, Console(width=None if terminal else 150, highlight=False))
        for path in experiment.figure(result, figure) if figure else []:
            typer.echo(f"figure: {path}", err=True)


def _reproduced(experiment: Experiment, data: Path | None, full: bool) -> Result:
    with Console(stderr=True).status(experiment.name) as doing:
        return experiment.run(data, full, lambda what: doing.update(f"{experiment.name}: {what}"))
