"""What a study found, in some lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ....sim.statistics import Estimate
from ..results import Results
from .axis import short
from .numbers import shown
from .page import MEASURES, subscriptions

_RECEIVED: Mapping[str, str] = {"received_ratio": "received", "received_delay_ms": "delay (ms)"}
_MAIN: Mapping[str, str] = {
    "delivery_ratio": "delivered",
    "delay_ms": "delay (ms)",
    "hops": "hops",
    "transmissions_per_delivery": "transmissions each",
    "energy_per_delivery_mj": "mJ each",
    "lifetime_s": "lifetime (s)",
}
"""What is told of each point of a sweep, if it was measured; where there are subscribers, of what they
received in place of network messages."""


def spoken(results: Results) -> Iterable[str]:
    """A list for one point, a table for more; with 95 % intervals where there are several seeds."""
    study, rest = results.study, results.runs[0].measures["rest"]
    yield f"{study.name}: {_count(study.points, 'point')}, {_count(study.seeds, 'seed')}; at rest: {rest}"
    found = [results.summary(i) for i in range(len(study.points))]
    if len(study.points) == 1:
        yield from aligned([(MEASURES[name], shown(found[0][name])) for name in MEASURES if name in found[0]])
    else:
        yield from _side_by_side(results, found)
    if results.runs[0].subscriptions:
        yield ""
        heading, *rows = subscriptions(results)
        yield from aligned([list(map(short, heading)), *rows])


def _side_by_side(results: Results, found: Sequence[Mapping[str, Estimate]]) -> Iterable[str]:
    subscribed = any("expected" in some for some in found)
    network = ("delivery_ratio", "delay_ms", "hops") if subscribed else tuple(_RECEIVED)
    titles = {name: title for name, title in {**_RECEIVED, **_MAIN}.items() if name not in network}
    names = [name for name in titles if any(name in some for some in found)]
    heading = [*map(short, results.study.parameters), *(titles[name] for name in names)]
    rows = [
        [*results.settings(i).values(), *(shown(some.get(name)) for name in names)]
        for i, some in enumerate(found)
    ]
    yield from aligned([heading, *rows])


def aligned(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    """
    >>> list(aligned([("every", "hops"), ("10 s", "3")]))
    ['every  hops', '10 s   3']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _count(things: Sequence[object], name: str) -> str:
    return f"{len(things)} {name}{'s' * (len(things) != 1)}"
