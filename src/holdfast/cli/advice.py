"""Output of ``advise``: a table of the Pareto front, lines of JSON, and a figure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from ..plan.advise.question import AdviceAnswer
from ..plan.advise.variants import Variant, standing

MOST = 10
"""How many points of the front the table shows."""
COLUMNS = ("enter", "exit", "guard", "starts", "flaps/day", "delay", "excess/day", "in state/day")


def pareto_front(some: Sequence[Variant]) -> list[Variant]:
    """Return the Pareto front, fewest flaps first, with one variant for each combination of costs."""
    front = sorted((one for one in some if one.front), key=lambda one: one.cost)
    return list({one.cost: one for one in reversed(front)}.values())[::-1]


Joules = Callable[[float], float]
"""The energy of a day in a network, by how many starts and ends there are per day."""


def lines(answer: AdviceAnswer, again: Variant | None, joules: Joules | None = None) -> Iterator[str]:
    """Yield every variant as a line of JSON, then the chosen variant over the weeks that were held out."""
    for one in answer.variants:
        yield json.dumps(_line(one, answer.days, joules))
    if again is not None:
        weeks = answer.question.held_out
        yield json.dumps({"held_out": weeks, **_line(again, weeks * 7.0, joules)})


def _line(one: Variant, days: float, joules: Joules | None) -> dict[str, Any]:
    found = {**asdict(one), "messages": one.starts + one.ends}
    return found if joules is None else {**found, "joules": joules((one.starts + one.ends) / days)}


def table(
    front: Sequence[Variant],
    chosen: Variant,
    answer: AdviceAnswer,
    again: Variant | None,
    joules: Joules | None = None,
) -> str:
    """Return the front beside the current state as a table, with the chosen variant over the held-out
    weeks.
    """
    shown = Table(box=None, pad_edge=False, header_style="")
    for name in ("", *COLUMNS, *([] if joules is None else ["J/day"]), ""):
        shown.add_column(name, justify="right" if name else "left")
    some = {round(i * (len(front) - 1) / (MOST - 1)) for i in range(MOST)} | {front.index(chosen)}
    for i in sorted(some):
        cells = _cells(front[i], answer.days, joules)
        shown.add_row(str(i + 1), *cells, "chosen" if front[i] is chosen else "")
    own, weeks = standing_in(answer), answer.question.held_out
    shown.add_row("", *_cells(own, answer.days, joules), "as it stands")
    for one, what in ((again, "chosen"), (answer.again(own) if weeks else None, "as it stands")):
        if one is not None:
            shown.add_row("", *_cells(one, weeks * 7.0, joules), f"{what}, held-out weeks")
    console = Console(width=120, color_system=None, force_terminal=False)
    with console.capture() as captured:
        console.print(shown)
    return "\n".join(row.rstrip() for row in captured.get().splitlines()) + f"\n{_of(answer, len(front))}"


def standing_in(answer: AdviceAnswer) -> Variant:
    """Return the variant with the numbers of the state as it is defined now."""
    return next(one for one in answer.variants if one.numbers == standing(answer.question.found))


def _of(answer: AdviceAnswer, front: int) -> str:
    what = "labels" if answer.question.labels is not None else "stretches as it stands"
    count = f"{len(answer.variants):,} variants over {answer.days:.1f} days"
    return f"{count}, {front:,} worth a choice; {answer.known:,} {what}"


def _cells(one: Variant, days: float, joules: Joules | None) -> list[str]:
    return [
        *("–" if value is None else f"{value:g}" for value in (one.enter, one.exit)),
        _time(one.guard),
        f"{one.starts:,}",
        f"{one.flaps / days:.2f}",
        "–" if one.delay is None else _time(one.delay),
        _time(one.excess / days),
        _time(one.holding / days),
        *([] if joules is None else [f"{joules((one.starts + one.ends) / days):,.4g}"]),
    ]


def _time(seconds: float) -> str:
    """Format a duration in seconds.

    >>> _time(0), _time(45), _time(150), _time(7200), _time(200000)
    ('0 s', '45 s', '2.5 min', '2 h', '2.31 d')
    """
    for size, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if abs(seconds) >= size:
            return f"{seconds / size:.3g} {name}"
    return f"{seconds:.3g} s"


def draw(answer: AdviceAnswer, chosen: Variant, name: str, path: Path) -> None:
    """Write a figure of every variant by delay and flaps. The front is coloured by excess time."""
    from ..network.motes.report.style import COLOURS, INK, new_figure, tidy

    figure = new_figure(6.4, 4.2)
    panel = figure.subplots()
    rest = [one for one in answer.variants if not one.front]
    front = [one for one in answer.variants if one.front]

    def at(some: Sequence[Variant]) -> tuple[list[float], list[float]]:
        return [(one.delay or 0) / 60 for one in some], [one.flaps / answer.days for one in some]

    panel.scatter(*at(rest), s=8, color="#cccccc", label="other variants")
    excess = [one.excess / answer.days / 60 for one in front]
    points = panel.scatter(*at(front), s=22, c=excess, cmap="viridis", label="on the front")
    panel.scatter(
        *at([standing_in(answer)]),
        s=70,
        marker="s",
        facecolors="none",
        edgecolors=COLOURS[1],
        label="as it stands",
    )
    panel.scatter(*at([chosen]), s=90, facecolors="none", edgecolors=COLOURS[0], linewidths=2, label="chosen")
    figure.colorbar(points, label="held in excess (min a day)")
    panel.set_xscale("symlog", linthresh=1)
    panel.set_yscale("symlog", linthresh=0.1)
    panel.set_ylim(bottom=0)
    panel.set_xlim(left=0)
    panel.set_xlabel("delay (min)", fontsize=9, color=INK)
    panel.set_ylabel("flaps a day", fontsize=9, color=INK)
    tidy(panel, f"{len(answer.variants):,} variants of {name}, {answer.days:.1f} days")
    panel.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=110, metadata={} if path.suffix != ".svg" else {"Date": None})
