"""The parts of an experiment: parameters, rows, and claims of a document with a verdict.

The text of a claim states its rule, which is fixed before anything is measured. ``holds`` is ``None`` for a
claim that cannot be judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from rich.console import Console

Progress = Callable[[str], None]
Row = dict[str, Any]
Drawing = Any
"""A figure of matplotlib, which is an optional dependency."""


@dataclass(frozen=True)
class Claim:
    """A claim of a document with the document's figure, ours, and the verdict."""

    id: str
    claim: str
    paper: Any
    ours: Any
    holds: bool | None
    measured: str = ""
    """Further measurements, which are shown with any verdict."""
    why: Mapping[bool | None, str] = field(default_factory=dict)
    """The explanation of each verdict, as far as known."""

    @property
    def note(self) -> str:
        """The text beside the figures: further measurements and the explanation of the verdict."""
        return " ".join(filter(None, (self.measured, self.why.get(self.holds))))

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("id", "claim", "paper", "ours", "holds", "note")}


class Judged(NamedTuple):
    """The verdict of a claim's rule: all fields of a claim after its text."""

    paper: Any
    ours: Any
    holds: bool | None
    measured: str = ""
    why: Mapping[bool | None, str] = {}


def to_claims(rules: Mapping[str, str], verdicts: Iterable[Judged]) -> tuple[Claim, ...]:
    """Combine the rules of an experiment with a verdict for each."""
    found = zip(rules.items(), verdicts, strict=True)
    return tuple(Claim(id, rule, *verdict) for (id, rule), verdict in found)


@dataclass(frozen=True)
class Result:
    """The outcome of an experiment; equal parameters give equal outcomes."""

    experiment: str
    parameters: dict[str, Any]
    rows: list[Row]
    claims: tuple[Claim, ...]
    exhibit: Any = field(default=None, compare=False, repr=False)
    """Data for the figure that the rows do not have; it is not printed."""

    def to_json(self) -> dict[str, Any]:
        found = {"experiment": self.experiment, "parameters": self.parameters, "rows": self.rows}
        return {**found, "claims": [claim.to_json() for claim in self.claims]}


@dataclass(frozen=True)
class Table:
    """A part of a result, formatted for readers."""

    title: str
    columns: Sequence[str]
    lines: Sequence[Sequence[Any]]

    @classmethod
    def of_rows(cls, title: str, rows: Sequence[Mapping[str, Any]]) -> Table:
        """Make a table of rows that have equal keys."""
        return cls(title, list(rows[0]), [list(row.values()) for row in rows])


@dataclass(frozen=True)
class Experiment:
    """A table or figure of a document that can be reproduced.

    ``run(data, full, progress)`` measures, ``tables(result)`` formats the rows, and ``draw(result)`` draws a
    figure.
    """

    name: str
    title: str
    run: Callable[[Path | None, bool, Progress], Result]
    tables: Callable[[Result], Sequence[Table]]
    draw: Callable[[Result], Drawing]

    def figure(self, result: Result, folder: Path) -> Path:
        """Draw a result and save it as a PNG file in a folder; return the file."""
        drawing = self.draw(result)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name}.png"
        drawing.savefig(path, dpi=100, metadata={"Software": None})
        return path


def show(experiment: Experiment, result: Result, console: Console) -> None:
    """Print a result: parameters, the document's figures beside ours, and the claims."""
    from rich.table import Table as Grid
    from rich.text import Text

    console.print(Text(f"{experiment.name}: {experiment.title}", style="bold"))
    settings = Grid.grid(padding=(0, 2))
    for name, value in result.parameters.items():
        settings.add_row(Text(name, style="dim"), Text(format_value(value)))
    console.print(settings)
    for table in experiment.tables(result):
        console.print()
        grid = Grid(title=table.title, title_justify="left", title_style="bold")
        for i, column in enumerate(table.columns):
            grid.add_column(column, justify="right" if i else "left", overflow="fold")
        for line in table.lines:
            grid.add_row(*(Text(format_value(value)) for value in line))
        console.print(grid)
    for claim in result.claims:
        verdict, style = _VERDICTS[claim.holds]
        console.print()
        console.print(Text.assemble((claim.id, "bold"), ": ", (verdict, style)))
        parts = Grid.grid(padding=(0, 2))
        for name, text in (
            ("  claim", claim.claim),
            ("  document", format_value(claim.paper)),
            ("  ours", format_value(claim.ours)),
            ("  note", claim.note),
        ):
            parts.add_row(Text(name, style="dim"), Text(text))
        console.print(parts)


_VERDICTS: Mapping[bool | None, tuple[str, str]] = {
    True: ("holds", "green"),
    False: ("does not hold", "red"),
    None: ("cannot be judged", "yellow"),
}


def format_value(value: Any) -> str:
    """Format a value for readers.

    >>> [format_value(value) for value in (0.0033333, {"sf": 20, "ecf": None}, [1, 2.5], "a")]
    ['0.003333', 'sf 20, ecf –', '1, 2.5', 'a']
    """
    match value:
        case None:
            return "–"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.4g}"
        case dict():
            return ", ".join(f"{name} {format_value(v)}" for name, v in value.items())
        case list() | tuple():
            return ", ".join(map(format_value, value))
    return str(value)
