"""Run the experiment on memoization: measure each n in turns, format tables, register it."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from ..experiment import Experiment, Progress, Result, Row, Table
from .chain import SORTS, Sort, hub, measure, middle
from .claim import BRANCHES, claims
from .figure import figure

NAME = "memoization"
TITLE = (
    "distributed memoization: what a match costs when the broker before has found it  [Fulcrum, Figures 7-9 "
    "and 7-10, Table 7-10]"
)
TIMED: tuple[Sort, ...] = ("subscription", "notification")
WAYS = [(sort, way) for sort in TIMED for way in ("memoized", "regular")]
PAPER: dict[int, tuple[float, float, float, float]] = {
    250: (6.6712, 12.0681, 5.0213, 10.3241),
    500: (8.5405, 15.9138, 6.2142, 12.1889),
    750: (10.2872, 16.8107, 7.0954, 11.4287),
    1000: (9.4177, 18.8297, 6.8324, 12.5978),
    1250: (9.1486, 19.1029, 6.2126, 13.4933),
    1500: (8.7941, 20.9224, 6.1761, 14.8638),
    1750: (8.0798, 20.7350, 6.2330, 16.2038),
    2000: (8.6184, 24.4546, 6.3105, 17.0936),
}
"""Table 7-10 by n; columns are in the order of ``WAYS``."""
QUICK = (250, 500, 1000, 2000)
SENT = 2_000
REPEATED = 3
AT_A_BRANCH = 200


def run(_: Path | None, full: bool, progress: Progress) -> Result:
    """Measure some values of n with and without memoization; with ``full``, all values of the document."""
    numbers = tuple(PAPER) if full else QUICK
    best = _best(numbers, progress)
    rows = [_row(number, best) for number in numbers]
    times = _at_a_hub(progress)
    regular = times["regular (µs)"]
    alone = times["memoized, nobody else asked (µs)"]
    savings = {"CBPS": 1 - times["memoized (µs)"] / regular, "pure ISCA": 1 - alone / regular}
    rows.append({"n": None, "connections": BRANCHES, **{name: round(t, 1) for name, t in times.items()}})
    return Result(NAME, _parameters(), rows, tuple(claims(rows, savings, times)))


def _best(numbers: Sequence[int], progress: Progress) -> dict[tuple[int, Sort, bool], float]:
    """Return the best of several turns. Each turn measures every n, so that a temporarily faster machine
    favours none.
    """
    best: dict[tuple[int, Sort, bool], float] = {}
    for again, number, memoize in product(range(REPEATED), numbers, (True, False)):
        way = "memoized" if memoize else "regular"
        progress(f"turn {again + 1} of {REPEATED}, n = {number:,}, {way}")
        seconds = asyncio.run(measure(number, SENT, memoize=memoize))
        for sort in SORTS:
            took = middle(seconds[sort])
            best[number, sort, memoize] = min(took, best.get((number, sort, memoize), took))
    return best


def _row(number: int, best: Mapping[tuple[int, Sort, bool], float]) -> Row:
    paper = {f"paper {sort} {way}": each for (sort, way), each in zip(WAYS, PAPER[number], strict=True)}
    ours = {f"{sort} {way} (µs)": round(best[number, sort, way == "memoized"], 1) for sort, way in WAYS}
    return {"n": number, **paper, **ours}


def _at_a_hub(progress: Progress) -> dict[str, float]:
    ways: dict[str, dict[str, Any]] = {
        "regular (µs)": {"memoize": False},
        "memoized (µs)": {"memoize": True},
        "memoized, nobody else asked (µs)": {"memoize": True, "attentive": False},
    }
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(REPEATED):
        for name, how in ways.items():
            progress(f"a broker with {BRANCHES} connections: {name}")
            found[name].append(middle(hub(BRANCHES, AT_A_BRANCH, **how)))
    return {name: min(times) for name, times in found.items()}


def _parameters() -> dict[str, Any]:
    return {
        "overlay": "ping - EB1 - EB2 - EB3 - pong, over TCP on loopback, all in one process",
        "each client": "n advertisements, n subscriptions (Id = A, Source = ping or pong, Count = #), then "
        f"{SENT:,} notifications",
        "timed": "a broker's whole work on one message that came from a broker, in µs of the processor: the "
        "median",
        "memoized": "with express slips, all three brokers",
        "regular": "the same brokers without them",
        "repeated": f"{REPEATED} times, all n in turns; the best counts: others on the machine only disturb",
        "the broker with many connections": f"{BRANCHES} connections, {AT_A_BRANCH} subscriptions each; a "
        "notification is wanted by one; without TCP",
        "machine": f"{platform.machine()}, Python {platform.python_version()}; the document's was a SPARC 10",
    }


def _tables(result: Result) -> list[Table]:
    points = [row for row in result.rows if row["n"] is not None]
    heads = [f"{sort[:5]}. {way}" for sort, way in WAYS]
    (hub_row,) = (row for row in result.rows if row["n"] is None)
    names = [f"paper {sort} {way}" for sort, way in WAYS] + [f"{sort} {way} (µs)" for sort, way in WAYS]
    at_hub = [(name, value) for name, value in hub_row.items() if name.endswith("(µs)")]
    return [
        Table(
            "Time of a message at a broker: the document's (unit not printed), then ours (µs)",
            ("n", *(f"doc. {head}" for head in heads), *(f"ours {head}" for head in heads)),
            [(row["n"], *(row[name] for name in names)) for row in points],
        ),
        Table(f"A notification at a broker with {BRANCHES} connections", ("way", "µs"), at_hub),
    ]


EXPERIMENT = Experiment(NAME, TITLE, run, _tables, figure)
