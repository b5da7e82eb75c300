"""Arguments, options and helpers that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from ..errors import DefinitionError, UsageError, did_you_mean

if TYPE_CHECKING:
    from ..files.reading import Reading
    from ..lang.condition import Checked
    from ..model.instant import Duration

Definition = Annotated[Path, typer.Argument(metavar="APP.hf", help="The definition.", show_default=False)]
Lets = Annotated[
    list[str] | None, typer.Option("--let", metavar="NAME=VALUE", help="Set a parameter; may be repeated.")
]

Maps = Annotated[
    list[str] | None,
    typer.Option("--map", metavar="OURS=THEIRS,…", help="Columns by other names: time=ts,source=room."),
]
OfTopic = Annotated[str | None, typer.Option("--topic", help="The topic of rows without a topic.")]
Zone = Annotated[str, typer.Option("--zone", help="The time zone of times without a zone.")]
TimeFormat = Annotated[
    str | None, typer.Option("--time-format", help="The format of times, as for strptime.")
]
Unit = Annotated[
    str | None,
    typer.Option("--time-unit", metavar="s|ms|us|ns", help="The unit of times that are numbers since 1970."),
]


Wide = Annotated[
    bool,
    typer.Option("--wide", help="Files have a column for each sensor: all but the time and those in --map."),
]


def load(path: Path, lets: list[str] | None = None) -> Checked:
    """Parse and check the definition in a file."""
    from ..definition.check import check
    from ..definition.parse import load

    return check(load(path), lets=parameters(lets or []))


def parameters(lets: list[str]) -> dict[str, Any]:
    """Return the parameters that ``--let`` sets, as text by name."""
    found: dict[str, Any] = {}
    for let in lets:
        name, equals, text = let.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--let {let}: write it as NAME=VALUE")
        found[name.strip()] = text.strip()
    return found


def reading_of(
    checked: Checked,
    maps: list[str],
    topic: str | None,
    zone: str,
    time_format: str | None,
    time_unit: str | None,
    wide: bool,
) -> Reading:
    """Return the options for reading files from command-line options."""
    from ..files.reading import Reading, parse_rename, parse_zone

    rename = {ours: theirs for text in maps for ours, theirs in parse_rename(text).items()}
    return Reading(checked.topics, rename, parse_zone(zone), time_format, time_unit, topic, wide)  # type: ignore[arg-type]


def length(option: str, text: str) -> Duration:
    """Parse the duration of an option and return it in microseconds."""
    from ..lang.grammar import parse_duration

    try:
        return parse_duration(text)
    except DefinitionError as error:
        raise UsageError(f"{option} {text}: {error.message}; write it as 5 min or 0 s") from None


def require_choice(option: str, word: str, choices: list[str]) -> None:
    """Refuse a word that is not among the choices, and list them."""
    if word not in choices:
        hint = did_you_mean(word, choices) or f"There is {', '.join(choices)}."
        raise UsageError(f"{option} {word}: there is no such choice here. {hint}")


def warn(checked: Checked) -> None:
    """Print the warnings of a definition to standard error."""
    for caution in checked.warnings:
        warning(str(caution), "")


def warning(message: str, word: str = "warning: ") -> None:
    """Print a warning to standard error."""
    console = Console(stderr=True)
    console.print(f"{word}{message}", style="yellow", markup=False, highlight=False, soft_wrap=True)


def complain(message: str) -> None:
    """Print an error to standard error."""
    console = Console(stderr=True)
    console.print(f"error: {message}", style="red", markup=False, highlight=False, soft_wrap=True)
