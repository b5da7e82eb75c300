"""The command ``advise``: choose thresholds and minimum durations of a state from history."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import UsageError
from .inputs import Inputs, history, logs, print_rejected, reading_bar
from .options import (
    Definition,
    Lets,
    Maps,
    OfTopic,
    TimeFormat,
    Unit,
    Wide,
    Zone,
    length,
    parameters,
    reading_of,
    require_choice,
    warn,
    warning,
)

if TYPE_CHECKING:
    from ..definition.app import App
    from ..definition.tune import Tunable
    from ..files.tally import Tally
    from ..model.instant import Duration
    from ..plan.advise.question import MeasuredHistory
    from ..plan.advise.variants import Variant


def advise(
    definition: Definition,
    input: Inputs,
    subscription: Annotated[str, typer.Option("--subscription", "-s", help="The state to be advised.")],
    enter: Annotated[
        str | None,
        typer.Option(metavar="A,B,…|FROM:TO:STEP", help="Entrances; else some around what is written."),
    ] = None,
    exit: Annotated[str | None, typer.Option(metavar="A,B,…|FROM:TO:STEP", help="Exits, likewise.")] = None,
    guard: Annotated[
        str | None, typer.Option(metavar="D,D,…", help="Guards: '0 s,5 min'; else from none to 30 min.")
    ] = None,
    of: Annotated[str | None, typer.Option(help="The attribute, where several are compared.")] = None,
    labels: Annotated[
        Path | None,
        typer.Option(metavar="CSV", help="When it really held: scope,start,end; else as it is defined."),
    ] = None,
    held_out: Annotated[
        int,
        typer.Option(metavar="WEEKS", min=0, help="So many weeks at the end judge the choice, not make it."),
    ] = 0,
    refine: Annotated[int, typer.Option(min=0, max=4, help="How often to look between the best.")] = 1,
    flap: Annotated[
        str, typer.Option(help="What begins again within this time after its end flaps.")
    ] = "5 min",
    pick: Annotated[
        str | None, typer.Option(metavar="best|N", help="Write the definition with that point of the table.")
    ] = None,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="PATH", help="Where --pick writes to; - is the terminal.")
    ] = "-",
    figure: Annotated[Path | None, typer.Option(metavar="PNG|SVG", help="Draw the variants there.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a line of JSON for each variant.")] = False,
    map: Maps = None,
    topic: OfTopic = None,
    zone: Zone = "UTC",
    time_format: TimeFormat = None,
    time_unit: Unit = None,
    wide: Wide = False,
    network: Annotated[
        Path | None,
        typer.Option(metavar="SCENARIO", help="Joules a day of each variant in that network, estimated."),
    ] = None,
    engine: Annotated[str, typer.Option(metavar="local|spark", help="Where to run.")] = "local",
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="With --engine spark: its master; local[*] by default.")
    ] = None,
    let: Lets = None,
) -> None:
    """Try a state with other numbers over a history: flaps, delay and time in state of each."""
    from ..definition.check import check
    from ..definition.parse import load
    from ..definition.tune import tunable, tune
    from ..files.find import find
    from ..files.labels import read_labels
    from ..files.reading import parse_zone
    from ..files.tally import Tally
    from ..plan.advise.question import AdviceQuestion
    from ..plan.advise.variants import best
    from . import advice

    require_choice("--engine", engine, ["local", "spark"])
    if master is not None and engine != "spark":
        raise UsageError("--master is Spark's: add --engine spark")
    if output != "-" and pick is None:
        raise UsageError("--output is of --pick: say which point to write, as in --pick best")
    app, lets = load(definition), parameters(let or [])
    checked = check(app, lets=lets)
    warn(checked)
    found = tunable(checked, subscription, of)
    question = AdviceQuestion(
        found,
        _numbers("--enter", enter),
        _numbers("--exit", exit),
        _lengths("--guard", guard),
        None if labels is None else read_labels(labels, parse_zone(zone)),
        refine,
        length("--flap", flap),
        held_out,
    )
    reading = reading_of(checked, map or [], topic, zone, time_format, time_unit, wide)
    tally = Tally()
    with logs(input) as inputs:
        files = find(inputs, [t.name for t in checked.topics])
        with reading_bar(files) as show:
            answer = question.ask(_history(found, files, reading, tally, show, engine, master))
    print_rejected(tally)
    if not answer.known:
        what = "the labels name no stretch of it" if labels else f"'{subscription}' never holds in it"
        warning(f"nothing in this history tells what is late: {what}.  Name stretches with --labels")
    front = advice.pareto_front(answer.variants)
    chosen = best(front) if pick in (None, "best") else _pick(str(pick), front)
    again = answer.again(chosen) if held_out else None
    joules = None
    if network is not None:
        from .energy import joules_by_turns

        joules = joules_by_turns(definition, network, history(checked, input, reading), subscription, lets)
    if as_json:
        typer.echo("\n".join(advice.lines(answer, again, joules)))
    elif pick is None or output != "-":
        typer.echo(advice.table(front, chosen, answer, again, joules))
    if figure is not None:
        advice.draw(answer, chosen, subscription, figure)
    if pick is not None:
        _write(tune(app, found, chosen.numbers, lets), output, err=as_json)


def _write(app: App, output: str, *, err: bool) -> None:
    """Write a definition to a file or standard output; to standard error if standard output is in use."""
    text = app.text
    if text is None:
        from ..definition.show import show

        warning("the definition is written anew, without comments: its text could not be changed in place")
        text = show(app)
    if output == "-":
        typer.echo(text, nl=False, err=err)
    else:
        Path(output).write_text(text, encoding="utf-8")


def _history(
    found: Tunable, files: Any, reading: Any, tally: Tally, show: Any, engine: str, master: str | None
) -> MeasuredHistory:
    if engine == "local":
        from ..runtimes.local.advise import history as in_process

        return in_process(found, files, reading, tally, progress=show)
    try:
        from ..runtimes.spark.batch.advise import history as on_spark
    except ModuleNotFoundError as error:
        raise UsageError(f"--engine spark needs {error.name}; install holdfast[spark]") from error
    return on_spark(found, files, reading, tally, spark=master)


# --- options -----------------------------------------------------------------------------------------

MOST = 200
"""How many numbers one option may list."""


def _numbers(option: str, text: str | None) -> list[float] | None:
    """Parse a list ``24,25,26`` or a range ``24:26:0.5``; ``None`` if the option is not given."""
    if text is None:
        return None
    try:
        if ":" not in text:
            return [float(part) for part in text.split(",")]
        first, last, step = (Fraction(part.strip()) for part in text.split(":"))
    except (ValueError, ZeroDivisionError):
        raise UsageError(f"{option} {text}: write numbers, as in 24,25,26 or 24:26:0.5") from None
    if step <= 0 or last < first or (last - first) / step > MOST:
        raise UsageError(f"{option} {text}: from low to high, in at most {MOST} steps")
    return [float(first + i * step) for i in range(int((last - first) / step) + 1)]


def _lengths(option: str, text: str | None) -> list[Duration] | None:
    return None if text is None else [length(option, part) for part in text.split(",")]


def _pick(text: str, front: Sequence[Variant]) -> Variant:
    if text.isdecimal() and 1 <= int(text) <= len(front):
        return front[int(text) - 1]
    raise UsageError(f"--pick {text}: say best, or the number of a point of the table, 1 to {len(front)}")
