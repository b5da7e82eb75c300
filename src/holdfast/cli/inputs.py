"""The inputs of commands: files, folders, globs, and logs of a service."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from ..errors import InputError, UsageError, counted
from ..lang.condition import ScopedCondition

if TYPE_CHECKING:
    from ..files.find import InputFile
    from ..files.reading import Reading
    from ..files.tally import Tally
    from ..lang.condition import Checked
    from ..model.event import Event

Inputs = Annotated[
    list[str],
    typer.Option(
        "--input",
        "-i",
        metavar="[TOPIC=]PATH|log:DIR",
        help="A file, folder or glob, or where a service keeps its log; may be repeated.",
    ),
]


@contextmanager
def logs(inputs: list[str]) -> Iterator[list[str]]:
    """Yield the inputs with ``log:DIR`` replaced by the files of that log, including entries that are not
    sealed yet.
    """
    from contextlib import ExitStack

    from ..service.log.damage import damage_of
    from ..service.log.log import is_log
    from ..service.log.seal import history

    with ExitStack() as stack:
        found: list[str] = []
        for text in inputs:
            kind, _, place = text.partition(":")
            if kind != "log":
                found.append(text)
            elif not is_log(Path(place)):
                raise UsageError(
                    f"--input {text}: no service keeps its log there; name the folder of its --data"
                )
            else:
                for damage in damage_of(Path(place)):
                    typer.echo(f"{place}: {damage}; its readings are left out", err=True)
                found += stack.enter_context(history(Path(place)))
        yield found


@contextmanager
def reading_bar(files: Sequence[InputFile]) -> Iterator[Any]:
    """A context with a function that advances a progress bar of the bytes read. Without a terminal it does
    nothing.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("reading", total=sum(file.size for file in files))

        def show(tally: Tally) -> None:
            bar.update(task, completed=tally.bytes)

        yield show


def events_of(files: Sequence[InputFile], reading: Reading, tally: Tally) -> list[Event]:
    """Return the events in files, sorted by time."""
    from ..files.read import read
    from ..files.tally import Rejects
    from ..model.batch import to_events

    found = [
        event
        for file in files
        for topic, batch in read(file, reading, tally, Rejects())
        for event in to_events(topic, batch)
    ]
    return sorted(found, key=lambda event: event.order)


def print_rejected(tally: Tally) -> None:
    """Print the rejected rows by reason to standard error."""
    for reason, count in tally.rejected.most_common():
        typer.echo(f"{counted(count, 'row')} rejected: {reason}", err=True)


# In a network.


def history(checked: Checked, inputs: list[str], reading: Reading) -> list[Event]:
    """Return the events that the nodes of a network replay, sorted by time."""
    from ..files.find import find
    from ..files.tally import Tally

    tally = Tally()
    with logs(inputs) as paths:
        events = events_of(find(paths, [t.name for t in checked.topics]), reading, tally)
    print_rejected(tally)
    if len({event.time for event in events}) < 2:
        raise InputError("the history is too short: it has no two moments at which something was read")
    return events


def require_playable(definition: Path, checked: Checked) -> None:
    """Refuse a definition with features that the nodes of a network lack."""
    if muted := next(filter(None, (condition.mutes for condition in checked.conditions)), None):
        raise UsageError(f"{definition} mutes '{muted}'; nodes of a network do not mute")
    for condition in checked.conditions:
        if isinstance(condition, ScopedCondition) and any("place" in level for level in condition.keys):
            raise UsageError(
                f"the scopes of '{condition.name}' are names of places, which nodes of a network do not have"
            )
