"""The commands people type.  Thin: they read options, call, and show."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sized
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from .errors import HoldfastError, UsageError, did_you_mean

if TYPE_CHECKING:
    from .experiments.experiment import Experiment, Result
    from .files.tally import Tally
    from .lang.condition import Checked
    from .runtimes.local.replay import Replay

app = typer.Typer(
    name="holdfast",
    help="Publish/subscribe for sensor systems, by state: the start and the end of conditions that hold.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Definition = Annotated[Path, typer.Argument(metavar="APP.hf", help="The definition.", show_default=False)]
Lets = Annotated[
    list[str] | None, typer.Option("--let", metavar="NAME=VALUE", help="Set a parameter; may be repeated.")
]

Maps = Annotated[
    list[str] | None,
    typer.Option("--map", metavar="OURS=THEIRS,…", help="Columns by other names: time=ts,source=room."),
]
OfTopic = Annotated[str | None, typer.Option("--topic", help="The topic of rows that do not say theirs.")]
Zone = Annotated[str, typer.Option("--zone", help="The time zone of times that do not say theirs.")]
TimeFormat = Annotated[
    str | None, typer.Option("--time-format", help="How times are written, as for strptime.")
]
Unit = Annotated[
    str | None,
    typer.Option("--time-unit", metavar="s|ms|us|ns", help="The unit of times that are numbers since 1970."),
]


def main() -> None:
    """Run a command; an error is one message and an exit status: 1 a failed run, 2 wrong use."""
    if sys.stdout is None:  # the shell closed it: >&-
        sys.exit(1)
    try:
        app()
    except HoldfastError as error:
        _complain(str(error))
        sys.exit(error.exit_status)
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:  # a full disk, a closed output, a folder that went away
        _complain(f"{error.filename or 'output'}: {error.strerror or error}")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left to flush goes nowhere
        sys.exit(1)


def _complain(message: str) -> None:
    console = Console(stderr=True)
    console.print(f"error: {message}", style="red", markup=False, highlight=False, soft_wrap=True)


def _version(wanted: bool) -> None:
    if wanted:
        from . import __version__

        typer.echo(f"holdfast {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which.")
    ] = False,
) -> None: ...


def _load(path: Path, lets: list[str] | None = None) -> Checked:
    from .lang.check import check
    from .lang.parse import load

    return check(load(path), lets=_parameters(lets or []))


def _parameters(lets: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for let in lets:
        name, equals, text = let.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--let {let}: write it as NAME=VALUE")
        found[name.strip()] = text.strip()
    return found


def _warn(checked: Checked) -> None:
    for caution in checked.warnings:
        _warning(str(caution), "")


def _warning(message: str, word: str = "warning: ") -> None:
    console = Console(stderr=True)
    console.print(f"{word}{message}", style="yellow", markup=False, highlight=False, soft_wrap=True)


@app.command()
def check(definition: Definition, let: Lets = None) -> None:
    """Parse and type-check; list topics and subscriptions; warn of what is probably a mistake."""
    from .lang.ops import DeclareTopic
    from .lang.show import show

    checked = _load(definition, let)
    for topic in checked.topics:
        typer.echo(show(DeclareTopic(topic)))
    for condition in checked.conditions:
        kind = "filter" if condition.momentary else "state"
        typer.echo(f"{kind} {condition.name} on {condition.topic.name}")
    if checked.cases:
        typer.echo(f"{_count(checked.cases, 'case')}; run with: holdfast test {definition}")
    _warn(checked)
    counts = [_count(checked.topics, "topic"), _count(checked.conditions, "subscription")]
    if checked.warnings:
        counts.append(_count(checked.warnings, "warning"))
    typer.echo(f"{definition}: {', '.join(counts)}", err=True)


def _count(things: Sized | int, name: str) -> str:
    number = things if isinstance(things, int) else len(things)
    return f"{number:,} {name}{'s' * (number != 1)}"


@app.command()
def explain(
    definition: Definition,
    engine: Annotated[str, typer.Option(metavar="local|spark", help="The engine to plan for.")] = "local",
    let: Lets = None,
) -> None:
    """The plan: what is pushed where, what is kept in state."""
    from .compilers.explain import explain as plan
    from .compilers.explain import explain_on_spark

    _require_choice("--engine", engine, ["local", "spark"])
    typer.echo((explain_on_spark if engine == "spark" else plan)(_load(definition, let)))


def _require_choice(option: str, word: str, choices: list[str]) -> None:
    if word not in choices:
        hint = did_you_mean(word, choices) or f"There is {', '.join(choices)}."
        raise UsageError(f"{option} {word}: there is no such choice here. {hint}")


@app.command()
def test(definition: Definition, let: Lets = None) -> None:
    """Run the given/expect cases that stand beside the definition."""
    from .runtimes.local.cases import run_cases

    checked = _load(definition, let)
    if not checked.cases:
        raise UsageError(f'{definition} has no cases; write one with: case "name" given … expect …')
    _warn(checked)
    failed = set()
    for outcome in run_cases(checked):
        if not outcome.holds:
            failed.add(outcome.case.name)
            line = outcome.expect.at.line if outcome.expect.at else 0
            typer.echo(f'{definition}:{line}: case "{outcome.case.name}": {outcome}')
    typer.echo(f"{len(checked.cases) - len(failed)} passed, {len(failed)} failed")
    if failed:
        raise typer.Exit(1)


@app.command()
def replay(
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
    engine: Annotated[str, typer.Option(metavar="local|spark", help="Where to run.")] = "local",
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="With --engine spark: its master; local[*] by default.")
    ] = None,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="PATH", help="Where to; - is the terminal.")
    ] = "-",
    format: Annotated[
        str | None, typer.Option(metavar="jsonl|csv|parquet", help="By the output's name, else jsonl.")
    ] = None,
    form: Annotated[str, typer.Option("--as", metavar="events|intervals", help="What a line is.")] = "events",
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
    from .files.find import find
    from .files.tally import Rejects
    from .files.write import open_writer

    _require_choice("--engine", engine, ["local", "spark"])
    if master is not None and engine != "spark":
        raise UsageError("--master is Spark's: add --engine spark")
    checked = _load(definition, let)
    _warn(checked)
    reading = _reading(checked, map or [], topic, zone, time_format, time_unit)
    files = find(input, [t.name for t in checked.topics])
    _require_distinct([file.path for file in files], output, rejects)
    with _progress(sum(file.size for file in files)) as show, Rejects(rejects, strict=strict) as put_aside:
        history: Any
        if engine == "spark":
            history = _on_spark(checked, files, reading, put_aside, master)
        else:
            from .runtimes.local.replay import Replay

            history = Replay(
                checked,
                files,
                reading,
                rejects=put_aside,
                memory=memory << 20,
                scratch=scratch,
                progress=show,
            )
        with open_writer(output, format or _format(output), form, checked.topics) as writer:  # type: ignore[arg-type]
            for some in _gathered(history, 1024):
                writer.write(some)
    _summarise(history)


def _on_spark(checked: Checked, files: Any, reading: Any, rejects: Any, master: str | None) -> Any:
    try:
        from .runtimes.spark.replay import Replay
        from .runtimes.spark.session import session
    except ModuleNotFoundError as error:
        raise UsageError(f"--engine spark needs {error.name}; install holdfast[spark]") from error
    return Replay(checked, files, reading, rejects=rejects, spark=session(master))


def _require_distinct(inputs: list[str], output: str, rejects: str | None) -> None:
    """No file is read and written, or written twice."""
    taken = {Path(path).resolve(): "an input" for path in inputs}
    for option, path in (("--output", output), ("--rejects", rejects)):
        if path is None or (path == "-" and option == "--output"):
            continue
        if path == "-":
            raise UsageError("--rejects needs a file; the terminal shows how many there were")
        if (known := taken.get(Path(path).resolve())) is not None:
            raise UsageError(f"{option} {path}: this file is {known} already; name another")
        taken[Path(path).resolve()] = "the output"


def _format(output: str) -> str:
    suffix = Path(output).suffix.lower()
    return {".csv": "csv", ".parquet": "parquet", ".pq": "parquet"}.get(suffix, "jsonl")


def _reading(
    checked: Checked,
    maps: list[str],
    topic: str | None,
    zone: str,
    time_format: str | None,
    time_unit: str | None,
) -> Any:
    from .files.reading import Reading, parse_rename, parse_zone

    rename = {ours: theirs for text in maps for ours, theirs in parse_rename(text).items()}
    return Reading(checked.topics, rename, parse_zone(zone), time_format, time_unit, topic)  # type: ignore[arg-type]


def _gathered(items: Any, size: int) -> Iterator[list[Any]]:
    """Lists of so many items."""
    some: list[Any] = []
    for item in items:
        some.append(item)
        if len(some) == size:
            yield some
            some = []
    if some:
        yield some


@contextmanager
def _progress(total: int) -> Iterator[Any]:
    """A bar of the bytes read, on a terminal; nothing in a pipe."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda tally: None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("reading", total=total)

        def show(tally: Tally) -> None:
            bar.update(task, completed=tally.bytes)

        yield show


def _summarise(history: Replay) -> None:
    """What was read and what came of it, on the error stream."""
    tally = history.tally
    lines = [f"{_count(tally.rows, 'row')} read, {history.kept:,} could matter"]
    lines += [f"{_count(count, 'row')} rejected: {reason}" for reason, count in tally.rejected.most_common()]
    lines += [
        f"{_count(count, 'row')} of topic '{name}', which is not declared"
        for name, count in tally.other_topics.items()
    ]
    lines += [f"{_count(count, 'notification')} of {name}" for name, count in sorted(history.passed.items())]
    lines += [
        f"{_count(count, 'row')} in no scope of {name}"
        for name, count in sorted(history.coverage.outside.items())
    ]
    holding = _count(history.holding(), "condition")
    lines.append(f"{_count(history.passed.total(), 'notification')}; at the end {holding} held")
    typer.echo("\n".join(lines), err=True)
    for name in history.misplaced():
        _warning(
            f"not one row lies in a scope of '{name}'.  A region is found by the column place, by x, y "
            "and z, or by the sources that it lists; a key by its column.  Perhaps: --map place=NAME"
        )


@app.command()
def run(
    definition: Definition,
    source: Annotated[
        list[str],
        typer.Option(metavar="dir:[TOPIC=]PATH", help="A folder in which files arrive; may be repeated."),
    ],
    checkpoint: Annotated[Path, typer.Option(metavar="DIR", help="Where the query remembers how far it is.")],
    sink: Annotated[
        str, typer.Option(metavar="parquet:PATH|jsonl:PATH|console", help="Where notifications go.")
    ] = "console",
    every: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="How often to look for files.")
    ] = 1.0,
    available_now: Annotated[
        bool, typer.Option("--available-now", help="Read what is there now, and end.")
    ] = False,
    finish: Annotated[
        bool,
        typer.Option(
            "--finish", help="With --available-now: at the end, process what ordered conditions hold back."
        ),
    ] = False,
    map: Maps = None,
    topic: OfTopic = None,
    zone: Zone = "UTC",
    time_format: TimeFormat = None,
    time_unit: Unit = None,
    late: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Put late events here; by default late.jsonl in DIR.")
    ] = None,
    rejects: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH", help="Put rows that cannot be used here; by default rejects.jsonl in DIR."
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at the first row that cannot be used.")
    ] = False,
    bad_files: Annotated[
        str, typer.Option(metavar="stop|quarantine", help="What to do with a file that cannot be read.")
    ] = "stop",
    settle: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="A file that changed so recently is not read yet.")
    ] = 2.0,
    batch: Annotated[
        int, typer.Option(metavar="MB", min=1, help="How much to read in one batch at most.")
    ] = 256,
    shards: Annotated[
        int | None,
        typer.Option(min=1, max=10_000, help="How many states to cut the scopes into, for good; 16."),
    ] = None,
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="Spark's master; local[*] by default.")
    ] = None,
    let: Lets = None,
) -> None:
    """Run a definition over files as they arrive, on Spark, until stopped; it goes on after a crash."""
    log, live = _live()
    checked = _load(definition, let)
    _warn(checked)
    if finish and not available_now:
        raise UsageError("--finish ends the stream: add --available-now")
    _require_choice("--bad-files", bad_files, ["stop", "quarantine"])
    settings = live.Live(
        checked,
        _reading(checked, map or [], topic, zone, time_format, time_unit),
        log.folders(source, [t.name for t in checked.topics]),
        checkpoint,
        sink,
        late=late,
        rejects=rejects,
        shards=shards,
        every=None if available_now else every,
        finish=finish,
        settle=settle,
        batch_bytes=batch << 20,
        quarantine=bad_files == "quarantine",
        strict=strict,
    )
    with _stoppable() as stopped, _shown_progress() as show:
        live.run(settings, master=master, progress=show, is_enough=stopped.is_set)
    typer.echo("\n".join(_standing(checkpoint, most=0)[1:]), err=True)


def _live() -> Any:
    try:
        from .runtimes.spark import log, stream
    except ModuleNotFoundError as error:
        raise UsageError(f"holdfast run needs {error.name}; install holdfast[spark]") from error
    return log, stream


@contextmanager
def _stoppable() -> Iterator[Any]:
    """Whether somebody has asked us to stop: SIGTERM, or Ctrl-C."""
    import signal
    import threading

    asked = threading.Event()
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    for number in before:
        signal.signal(number, lambda *_: asked.set())
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _shown_progress() -> Iterator[Any]:
    """A line that changes, on a terminal; else a line for each batch, at most one in five seconds."""
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
    said = sum(counts.transitions for counts in record.subscriptions.values())
    return (
        f"batch {batch}: {_count(record.rows, 'row')}, {rate:,.0f} a second, "
        f"{_count(waiting, 'file')} waiting, {_count(said, 'notification')}, "
        f"{_count(record.holding, 'condition')} holding"
    )


@app.command()
def status(
    checkpoint: Annotated[Path, typer.Option(metavar="DIR", help="The checkpoint of a live query.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    most: Annotated[int, typer.Option(min=0, help="How many conditions to list at most.")] = 100,
) -> None:
    """The conditions that hold now, and what a live query has done, while it runs or after it."""
    if as_json:
        import json

        from .runtimes.spark.status import status as told

        typer.echo(json.dumps(told(checkpoint, most), indent=2, ensure_ascii=False))
    else:
        typer.echo("\n".join(_standing(checkpoint, most)))


def _standing(checkpoint: Path, most: int) -> list[str]:
    """How a query stands, in lines."""
    from .runtimes.spark.status import status as told

    it = told(checkpoint, most)
    ago = "" if it["seconds_ago"] is None else f", {it['seconds_ago']:,.0f} s ago"
    last = "no batch yet" if it["batch"] is None else f"last batch {it['batch']}{ago}"
    files = it["files"]
    lines = [f"{'running' if it['running'] else 'not running'}; {last}"]
    lines.append(
        f"{_count(files['read'], 'file')} read, {files['waiting']:,} waiting; {_count(it['rows'], 'row')}"
    )
    for kind, words in (
        ("incomplete", "half-written"),
        ("unknown", "of no known format (ignored)"),
        ("quarantined", f"quarantined, see {checkpoint / 'quarantine.jsonl'}"),
    ):
        if files.get(kind):
            lines.append(f"{_count(files[kind], 'file')} {words}")
    lines += [f"{_count(count, 'row')} rejected: {reason}" for reason, count in it["rejected"].items()]
    lines += [
        f"{_count(count, 'row')} of topic '{name}', which is not declared"
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
        f"{_count(c['outside'], 'event')} in no scope of {name}"
        for name, c in it["subscriptions"].items()
        if c["outside"]
    ]
    lines.append(f"{_count(it['holding'], 'condition')} holding now")
    lines += [f"  {c['subscription']} {c['scope'] or ''} since {c['since']}" for c in it["conditions"]]
    if most and it["holding"] > len(it["conditions"]):
        lines.append(f"  … and {it['holding'] - len(it['conditions']):,} more; --most shows more")
    return lines


@app.command()
def demo(
    engine: Annotated[str, typer.Option(metavar="local|spark", help="Where to run.")] = "spark",
) -> None:
    """The main job on generated sensors of a small building; needs no input."""
    from .errors import Unsupported
    from .experiments.demo import DEFINITION, report, run

    _require_choice("--engine", engine, ["local", "spark"])
    typer.echo(f"A day in a small building.  The definition:\n\n{DEFINITION}")
    day = here = run()
    if engine == "spark":
        try:
            day = _demo_on_spark()
        except Unsupported as missing:
            _warning(f"{missing}.  Without it: the same day in this process.")
    for line in report(day):
        typer.echo(line)
    if day is not here:
        same = (day.notifications, day.open) == (here.notifications, here.open)
        typer.echo(f"\nThe same definition in this process says {'the same' if same else 'SOMETHING ELSE'}.")
        if not same:
            raise typer.Exit(1)


def _demo_on_spark() -> Any:
    import tempfile

    from .experiments.demo import run_live

    _live()  # says what is missing, if something is
    typer.echo("Live on Spark, which needs some seconds to start; a file for each hour arrives:\n")
    with tempfile.TemporaryDirectory(prefix="holdfast-demo-") as folder:
        return run_live(Path(folder), typer.echo)


@app.command()
def bench(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME …]", help="Which; all by default.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure, beside named peers in the same run."""
    import json

    from .benchmarks import run

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


@app.command()
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

    from .experiments.experiment import show
    from .experiments.registry import chosen

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
