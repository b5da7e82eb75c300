"""What commands share: arguments, and how they read and speak."""

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
OfTopic = Annotated[str | None, typer.Option("--topic", help="The topic of rows that do not say theirs.")]
Zone = Annotated[str, typer.Option("--zone", help="The time zone of times that do not say theirs.")]
TimeFormat = Annotated[
    str | None, typer.Option("--time-format", help="How times are written, as for strptime.")
]
Unit = Annotated[
    str | None,
    typer.Option("--time-unit", metavar="s|ms|us|ns", help="The unit of times that are numbers since 1970."),
]


Wide = Annotated[
    bool,
    typer.Option("--wide", help="Files have a column for each sensor: every one but the time, and --map's."),
]


def load(path: Path, lets: list[str] | None = None) -> Checked:
    """The definition in a file, checked."""
    from ..lang.check import check
    from ..lang.parse import load

    return check(load(path), lets=parameters(lets or []))


def parameters(lets: list[str]) -> dict[str, Any]:
    """The parameters that ``--let`` sets, as text."""
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
    """How files are to be read, from options."""
    from ..files.reading import Reading, parse_rename, parse_zone

    rename = {ours: theirs for text in maps for ours, theirs in parse_rename(text).items()}
    return Reading(checked.topics, rename, parse_zone(zone), time_format, time_unit, topic, wide)  # type: ignore[arg-type]


def length(option: str, text: str) -> Duration:
    """The duration that an option says."""
    from ..lang.parse import parse_duration

    try:
        return parse_duration(text)
    except DefinitionError as error:
        raise UsageError(f"{option} {text}: {error.message}; write it as 5 min or 0 s") from None


def require_choice(option: str, word: str, choices: list[str]) -> None:
    """Refuse a word that is no choice, with what there is."""
    if word not in choices:
        hint = did_you_mean(word, choices) or f"There is {', '.join(choices)}."
        raise UsageError(f"{option} {word}: there is no such choice here. {hint}")


def warn(checked: Checked) -> None:
    """Say what is probably a mistake in a definition."""
    for caution in checked.warnings:
        warning(str(caution), "")


def warning(message: str, word: str = "warning: ") -> None:
    """Say something that deserves attention."""
    console = Console(stderr=True)
    console.print(f"{word}{message}", style="yellow", markup=False, highlight=False, soft_wrap=True)


def complain(message: str) -> None:
    """Say what went wrong."""
    console = Console(stderr=True)
    console.print(f"error: {message}", style="red", markup=False, highlight=False, soft_wrap=True)
