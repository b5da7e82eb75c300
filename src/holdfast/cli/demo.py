"""The command ``demo``: a simulated day of a small building."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .live import streaming
from .options import require_choice, warning

if TYPE_CHECKING:
    from ..demo import Day


def demo(
    engine: Annotated[
        str, typer.Option(metavar="local|spark", help="Where to run; without Spark or Java, in this process.")
    ] = "spark",
) -> None:
    """The main job on generated sensors of a small building; needs no input."""
    from ..demo import DEFINITION, report, run
    from ..errors import Unsupported

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


def _demo_on_spark() -> Day:
    import tempfile

    from ..demo import run_live

    streaming("The live query")  # says what is missing, if something is
    typer.echo("Live on Spark, which needs some seconds to start; a file for each hour arrives:\n")
    with tempfile.TemporaryDirectory(prefix="holdfast-demo-") as folder:
        return run_live(Path(folder), typer.echo)
