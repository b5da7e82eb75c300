"""The commands ``run`` and ``status``: run a definition over files as they arrive, and show its progress."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from ..errors import Unsupported, UsageError, counted
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
)


def run(
    definition: Definition,
    source: Annotated[
        list[str],
        typer.Option(
            metavar="dir:[TOPIC=]PATH|log:DIR",
            help="A folder in which files arrive, or the folder of a service's log; may be repeated.",
        ),
    ],
    checkpoint: Annotated[Path, typer.Option(metavar="DIR", help="The folder of the query's checkpoint.")],
    sink: Annotated[
        str, typer.Option(metavar="parquet:PATH|jsonl:PATH|console", help="Where notifications go.")
    ] = "console",
    every: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="How often to look for files.")
    ] = 1.0,
    available_now: Annotated[
        bool, typer.Option("--available-now", help="Process the existing files, and stop.")
    ] = False,
    finish: Annotated[
        bool,
        typer.Option(
            "--finish",
            help="With --available-now: at the end, process readings that ordered conditions hold back.",
        ),
    ] = False,
    map: Maps = None,
    topic: OfTopic = None,
    zone: Zone = "UTC",
    time_format: TimeFormat = None,
    time_unit: Unit = None,
    wide: Wide = False,
    late: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="The file of late events; late.jsonl in DIR by default."),
    ] = None,
    rejects: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="The file of rejected rows; rejects.jsonl in DIR by default."),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first rejected row.")] = False,
    bad_files: Annotated[
        str, typer.Option(metavar="stop|quarantine", help="What to do with a file that cannot be read.")
    ] = "stop",
    settle: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0, help="Do not read a file that changed within this time."),
    ] = 2.0,
    batch: Annotated[
        int, typer.Option(metavar="MB", min=1, help="How much to read in one batch at most.")
    ] = 256,
    idle: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=0,
            help="Advance event time to this long before the wall clock even if no file arrives.",
        ),
    ] = None,
    shards: Annotated[
        int | None,
        typer.Option(
            min=1, max=10_000, help="The number of state shards, fixed for the checkpoint; 16 by default."
        ),
    ] = None,
    stages: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=10,
            help="The least number of stages, as a reserve for components added later.",
        ),
    ] = None,
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="Spark's master; local[*] by default.")
    ] = None,
    let: Lets = None,
) -> None:
    """Run a definition over files as they arrive, on Spark, until stopped; continues after a crash."""
    from ..definition.check import require_final
    from ..definition.parse import load as parsed

    log, live = streaming()
    require_final(parsed(definition), "a live query on Spark")
    checked = load(definition, let)
    warn(checked)
    if finish and not available_now:
        raise UsageError("--finish ends the stream: add --available-now")
    if idle is not None and available_now:
        raise UsageError("--idle lets time go on by the clock, and --available-now does not wait: choose one")
    require_choice("--bad-files", bad_files, ["stop", "quarantine"])
    settings = live.Live(
        checked,
        reading_of(checked, map or [], topic, zone, time_format, time_unit, wide),
        log.folders(source, [t.name for t in checked.topics]),
        checkpoint,
        sink,
        late=late,
        rejects=rejects,
        shards=shards,
        stages=stages,
        every=None if available_now else every,
        finish=finish,
        settle=settle,
        batch_bytes=batch << 20,
        quarantine=bad_files == "quarantine",
        strict=strict,
        idle=idle,
    )
    with _stoppable() as stopped, _progress() as show:
        live.run(settings, master=master, progress=show, is_enough=stopped.is_set)
    typer.echo("\n".join(_standing(checkpoint, most=0)[1:]), err=True)


def streaming(what: str = "holdfast run") -> Any:
    """Import the modules of streaming queries. If Spark is missing, raise an error with the remedy."""
    try:
        from ..runtimes.spark.streaming import log, query
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        raise Unsupported(f"{what} needs {missing}; install holdfast[spark]") from error
    return log, query


@contextmanager
def _stoppable() -> Iterator[Any]:
    """A context with an event that SIGTERM and Ctrl-C set."""
    import signal
    import threading

    is_stopping = threading.Event()
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    for number in before:
        signal.signal(number, lambda *_: is_stopping.set())
    try:
        yield is_stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _progress() -> Iterator[Any]:
    """A context with a function that prints progress.

    On a terminal it changes one line. Elsewhere it prints a line for a batch, at most one in five seconds.
    """
    import time

    console = Console(stderr=True)
    if console.is_terminal:
        with console.status("starting Spark") as line:
            yield lambda batch, record, waiting: line.update(_progress_line(batch, record, waiting))
        return
    last = 0.0

    def show(batch: int, record: Any, waiting: int) -> None:
        nonlocal last
        if time.monotonic() - last > 5:
            last = time.monotonic()
            typer.echo(_progress_line(batch, record, waiting), err=True)

    yield show


def _progress_line(batch: int, record: Any, waiting: int) -> str:
    rate = record.last_rows / max(record.written - record.started, 0.001)
    count = sum(counts.transitions for counts in record.subscriptions.values())
    return (
        f"batch {batch}: {counted(record.rows, 'row')}, {rate:,.0f} a second, "
        f"{counted(waiting, 'file')} waiting, {counted(count, 'notification')}, "
        f"{counted(record.holding, 'condition')} active"
    )


def status(
    checkpoint: Annotated[Path, typer.Option(metavar="DIR", help="The checkpoint of a live query.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    form: Annotated[
        str,
        typer.Option(
            "--as", metavar="list|timeline", help="How to show active conditions; a timeline is a chart."
        ),
    ] = "list",
    most: Annotated[int, typer.Option(min=0, help="How many conditions to list at most.")] = 100,
) -> None:
    """Print the active conditions and the progress of a streaming query, while it runs or after it."""
    require_choice("--as", form, ["list", "timeline"])
    if form == "timeline":
        if as_json:
            raise UsageError("--as timeline is for people, --json for programs: choose one")
        typer.echo("\n".join([*_standing(checkpoint, 0), "", *_chart(checkpoint, most)]))
    elif as_json:
        import json

        from ..runtimes.spark.streaming.status import status as read_status

        typer.echo(json.dumps(read_status(checkpoint, most), indent=2, ensure_ascii=False))
    else:
        typer.echo("\n".join(_standing(checkpoint, most)))


def _chart(checkpoint: Path, most: int) -> Iterator[str]:
    """Yield a chart of the active conditions, with bars from their starts to the watermark."""
    from ..files.interval import Interval
    from ..files.timeline import chart
    from ..runtimes.spark.streaming.checkpoint import Checkpoint
    from ..runtimes.spark.streaming.ledger import read_ledger

    found = read_ledger(Checkpoint(checkpoint).ledger, most)
    watermark = max(found.record.watermarks.values(), default=None)
    held = [Interval(name, scope, since, None, "", None, None) for name, scope, since in found.holding]
    return chart(held, now="now", until=watermark)


def _standing(checkpoint: Path, most: int) -> list[str]:
    """Return the lines that describe the state of a query."""
    from ..runtimes.spark.streaming.status import status as read_status

    it = read_status(checkpoint, most)
    ago = "" if it["seconds_ago"] is None else f", {it['seconds_ago']:,.0f} s ago"
    last = "no batch yet" if it["batch"] is None else f"last batch {it['batch']}{ago}"
    files = it["files"]
    lines = [f"{'running' if it['running'] else 'not running'}; {last}"]
    if (again := it["restarts"])["count"]:
        times, why = counted(again["count"], "time"), " ".join(again["reason"].split())[:200]
        lines.append(f"started again by itself {times}, last {again['seconds_ago']:,.0f} s ago: {why}")
    lines.append(
        f"{counted(files['read'], 'file')} read, {files['waiting']:,} waiting; {counted(it['rows'], 'row')}"
    )
    for kind, words in (
        ("incomplete", "half-written"),
        ("unknown", "of no known format (ignored)"),
        ("quarantined", f"quarantined, see {checkpoint / 'quarantine.jsonl'}"),
    ):
        if files.get(kind):
            lines.append(f"{counted(files[kind], 'file')} {words}")
    lines += [f"{counted(count, 'row')} rejected: {reason}" for reason, count in it["rejected"].items()]
    lines += [
        f"{counted(count, 'row')} of topic '{name}', which is not declared"
        for name, count in it["other_topics"].items()
    ]
    width = max([12, *map(len, it["subscriptions"])])
    lines.append(
        f"{'subscription':<{width}} {'events read':>14} {'passed on':>12} {'notifications':>14} {'late':>8}"
    )
    lines += [
        f"{name:<{width}} {c['read']:>14,} {c['passed']:>12,} {c['transitions']:>14,} {c['late']:>8,}"
        for name, c in it["subscriptions"].items()
    ]
    lines += [
        f"{counted(c['outside'], 'event')} in no scope of {name}"
        for name, c in it["subscriptions"].items()
        if c["outside"]
    ]
    lines.append(f"{counted(it['holding'], 'condition')} active now")
    lines += [
        f"  {c['subscription']} {c['scope'] or ''} since {c['since']}"
        + ("" if c["known"] else ", unknown now")
        for c in it["conditions"]
    ]
    if most and it["holding"] > len(it["conditions"]):
        lines.append(f"  … and {it['holding'] - len(it['conditions']):,} more; --most shows more")
    return lines
