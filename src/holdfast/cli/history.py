"""The command ``replay``: run a definition over files of readings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import UsageError, counted
from .inputs import Inputs, logs, reading_bar
from .options import (
    Definition,
    Lets,
    Maps,
    OfTopic,
    TimeFormat,
    Unit,
    Wide,
    Zone,
    load,
    reading_of,
    require_choice,
    warn,
    warning,
)

if TYPE_CHECKING:
    from ..lang.condition import Checked
    from ..runtimes.local.replay import Replay


def replay(
    definition: Definition,
    input: Inputs,
    map: Maps = None,
    topic: OfTopic = None,
    zone: Zone = "UTC",
    time_format: TimeFormat = None,
    time_unit: Unit = None,
    wide: Wide = False,
    engine: Annotated[str, typer.Option(metavar="local|spark", help="Where to run.")] = "local",
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="With --engine spark: its master; local[*] by default.")
    ] = None,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="PATH", help="Where to; - is the terminal.")
    ] = "-",
    format: Annotated[
        str | None, typer.Option(metavar="jsonl|csv|parquet", help="Else by the output's name; jsonl.")
    ] = None,
    form: Annotated[
        str,
        typer.Option(
            "--as", metavar="events|intervals|timeline", help="What a line is; a timeline is a chart."
        ),
    ] = "events",
    rejects: Annotated[
        str | None, typer.Option(metavar="PATH", help="Put rows that cannot be used here.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail at the first row that cannot be used.")
    ] = False,
    memory: Annotated[
        int, typer.Option(metavar="MB", min=1, help="Memory for sorting; beyond it, the disk.")
    ] = 128,
    scratch: Annotated[Path | None, typer.Option(metavar="DIR", help="Where sorting may put files.")] = None,
    let: Lets = None,
) -> None:
    """Run a definition over files of readings: the moments at which conditions start and end."""
    from ..files.find import find
    from ..files.tally import Rejects
    from ..files.write import in_lists, open_writer

    require_choice("--engine", engine, ["local", "spark"])
    if master is not None and engine != "spark":
        raise UsageError("--master is Spark's: add --engine spark")
    if form == "timeline" and format is not None:
        raise UsageError("--as timeline is a chart for people: leave --format out, or take --as intervals")
    written = format or ("jsonl" if form == "timeline" else _format(output))
    checked = load(definition, let)
    warn(checked)
    reading = reading_of(checked, map or [], topic, zone, time_format, time_unit, wide)
    with logs(input) as inputs:
        files = find(inputs, [t.name for t in checked.topics])
        _require_distinct([file.path for file in files], output, rejects)
        with (
            reading_bar(files) as show,
            Rejects(rejects, strict=strict) as put_aside,
        ):
            history: Any
            if engine == "spark":
                history = _on_spark(checked, files, reading, put_aside, master)
            else:
                from ..runtimes.local.replay import Replay

                history = Replay(
                    checked,
                    files,
                    reading,
                    rejects=put_aside,
                    memory=memory << 20,
                    scratch=scratch,
                    progress=show,
                )
            with open_writer(output, written, form, checked.output_topics) as writer:  # type: ignore[arg-type]
                for some in in_lists(history, 1024):
                    writer.write(some)
    _summarise(history)


def _on_spark(checked: Checked, files: Any, reading: Any, rejects: Any, master: str | None) -> Any:
    try:
        from ..runtimes.spark.batch.replay import Replay
    except ModuleNotFoundError as error:
        raise UsageError(f"--engine spark needs {error.name}; install holdfast[spark]") from error
    return Replay(checked, files, reading, rejects=rejects, spark=master)


def _require_distinct(inputs: list[str], output: str, rejects: str | None) -> None:
    """Refuse options with which the command would read and write the same file, or write a file twice."""
    taken = {Path(path).resolve(): "an input" for path in inputs}
    for option, path in (("--output", output), ("--rejects", rejects)):
        if path is None or (path == "-" and option == "--output"):
            continue
        if path == "-":
            raise UsageError("--rejects needs a file; the terminal shows how many there were")
        if (known := taken.get(Path(path).resolve())) is not None:
            raise UsageError(f"{option} {path}: this file is {known} already; name another")
        taken[Path(path).resolve()] = "the output"


_FORMATS = {
    "": "jsonl", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".csv": "csv",
    ".parquet": "parquet", ".pq": "parquet",
}  # fmt: skip


def _format(output: str) -> str:
    """Return the output format by the suffix of a path. The default is JSON lines."""
    suffix = Path(output).suffix.lower()
    if suffix not in _FORMATS:
        raise UsageError(
            f"--output {output}: nothing is written as {suffix}; name it .jsonl, .csv or .parquet, or say "
            "which with --format"
        )
    return _FORMATS[suffix]


def _summarise(history: Replay) -> None:
    """Print the counts of rows and results to standard error."""
    tally = history.tally
    lines = [f"{counted(tally.rows, 'row')} read, {history.kept:,} relevant"]
    lines += [f"{counted(count, 'row')} rejected: {reason}" for reason, count in tally.rejected.most_common()]
    lines += [
        f"{counted(count, 'row')} of topic '{name}', which is not declared"
        for name, count in tally.other_topics.items()
    ]
    lines += [f"{counted(count, 'notification')} of {name}" for name, count in sorted(history.passed.items())]
    lines += [
        f"{counted(count, 'row')} in no scope of {name}"
        for name, count in sorted(history.coverage.outside.items())
    ]
    holding = counted(history.holding(), "condition")
    lines.append(f"{counted(history.passed.total(), 'notification')}; at the end {holding} active")
    typer.echo("\n".join(lines), err=True)
    if tally.twice or tally.never:
        warning(
            f"{counted(tally.twice, 'row')} of a local time that clocks show twice, taken for the first of "
            f"the two, and {tally.never:,} of one that they never show, read as if they were not set yet.  "
            "Write times in UTC or with their offset: 2026-10-25T02:30+02:00"
        )
    for name in history.misplaced():
        warning(
            f"not one row lies in a scope of '{name}'.  A region is found by the column place, by x, y "
            "and z, or by the sources that it lists; a key by its column.  Perhaps: --map place=NAME"
        )
