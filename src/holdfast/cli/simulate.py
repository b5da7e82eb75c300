"""The command ``sim``: run simulated sensor networks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.console import Console

from ..errors import UsageError
from .options import require_choice

if TYPE_CHECKING:
    from ..network.motes.results import Form, StudyResults, Sweeper

EXAMPLE = files("holdfast") / "network" / "motes" / "example.yaml"


def sim(
    scenario: Annotated[
        Path | None, typer.Argument(metavar="SCENARIO.yaml", help="The scenario.", show_default=False)
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Put tables, figures and a report there.")
    ] = None,
    tables: Annotated[str, typer.Option(metavar="parquet|csv", help="What tables are.")] = "parquet",
    seed: Annotated[int | None, typer.Option(help="One run of each point, with this seed.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    engine: Annotated[str, typer.Option(metavar="local|spark", help="Where to run.")] = "local",
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="With --engine spark: its master; local[*] by default.")
    ] = None,
    example: Annotated[
        bool, typer.Option("--example", help="Print a scenario to copy, and run nothing.")
    ] = False,
) -> None:
    """Run a simulated sensor network, or a sweep over many: messages, delay, loss, joules, lifetime."""
    if example:
        typer.echo(EXAMPLE.read_text(encoding="utf-8"), nl=False)
        return
    if scenario is None:
        raise UsageError("which scenario?  'holdfast sim --example > my.yaml' makes one to begin with")
    require_choice("--engine", engine, ["local", "spark"])
    require_choice("--tables", tables, ["parquet", "csv"])
    if master is not None and engine != "spark":
        raise UsageError("--master is Spark's: add --engine spark")
    if out is not None and out.exists() and not out.is_dir():
        raise UsageError(f"--out {out}: this is a file; name a folder")
    from ..network.motes.report.terminal import summary_lines
    from ..network.motes.results import collect, to_json
    from ..network.motes.study import read

    study = read(scenario)
    if study.trace and out is None:
        raise UsageError(f"{scenario} wants a trace: say with --out DIR where it goes")
    if seed is not None:
        study = replace(study, seeds=(seed,))
    with _sweeper(engine, master, len(study.points) * len(study.seeds)) as sweeper:
        results = collect(study, sweeper)
    typer.echo(to_json(results) if as_json else "\n".join(summary_lines(results)))
    if out is not None:
        _write_report(results, out, cast("Form", tables))


@contextmanager
def _sweeper(engine: str, master: str | None, runs: int) -> Iterator[Sweeper]:
    """A context with the function that makes runs: one after the other, or on Spark."""
    if engine == "spark":
        try:
            from ..runtimes.spark.sweep import sweep
        except ModuleNotFoundError as error:
            raise UsageError(f"--engine spark needs {error.name}; install holdfast[spark]") from error
        yield partial(sweep, master=master)
        return
    with progress(runs) as advance:
        yield partial(_one_by_one, advance)


def _one_by_one(
    advance: Callable[[], None], function: Callable[[Any], Any], points: Sequence[Any]
) -> Iterable[Any]:
    for point in points:
        yield function(point)
        advance()


@contextmanager
def progress(total: int) -> Iterator[Callable[[], None]]:
    """A context with a function that advances a progress bar. Without a terminal it does nothing."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("runs", total=total)
        yield lambda: bar.update(task, advance=1)


def _write_report(results: StudyResults, folder: Path, form: Form) -> None:
    """Write the report of a study, and print the paths of its files.

    If the scenario asks for it, the trace of the first run is written, too.
    """
    from ..network.motes.report.page import report

    page, *others = report(results, folder, form)
    if results.study.trace:
        others += _trace(results, folder / "trace")
    typer.echo(f"{page}; beside it {', '.join(str(path.relative_to(folder)) for path in others)}", err=True)


def _trace(results: StudyResults, folder: Path) -> list[Path]:
    """Repeat the first run with a trace, and return the files of the trace."""
    from ..network.motes.run import run
    from ..network.sim.trace import Trace

    trace, first = Trace(), results.tasks[0]
    run(first.case, first.seed, trace)
    return trace.write(folder)
