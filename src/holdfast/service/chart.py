"""Readings for a picture: of each source, the least and the greatest of every pixel."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..compilers.columns import keyed
from ..compilers.families import operators
from ..errors import UsageError
from ..lang.condition import Checked
from ..model.batch import conform, times
from ..model.instant import Instant
from ..model.topic import Topic
from .history import stored

SOURCES = 12
"""Lines that one picture shows at most; those with most readings."""
SECONDS = 8.0
"""How long reading may take; what was read till then is shown."""

Mask = Callable[[pa.RecordBatch], NDArray[Any]]


class Grid(NamedTuple):
    """Pixels of a stretch of time."""

    start: Instant
    end: Instant
    width: int

    @property
    def pixel(self) -> float:
        return (self.end - self.start) / self.width

    def columns(self, at: NDArray[Any]) -> NDArray[Any]:
        return np.minimum(((at - self.start) / self.pixel).astype(np.int64), self.width - 1)


def of_scope(checked: Checked, subscription: str, topic: str, scope: str | None) -> Mask:
    """Which readings a condition hears in a scope."""
    for operator in operators(checked):
        if subscription in operator.subscriptions and topic in operator.topics:
            break
    else:
        raise UsageError(f"'{subscription}' does not listen to '{topic}'")

    def mask(batch: pa.RecordBatch) -> NDArray[Any]:
        if scope is None or operator.keyed is None:
            return np.ones(len(batch), bool)
        codes, texts = operator.keys(topic, batch)
        shown = operator.shown or (lambda text: text)
        names = texts.to_pylist() if isinstance(texts, pa.Array) else texts
        wanted = [i for i, text in enumerate(names) if text is not None and shown(text) == scope]
        mine: NDArray[Any] = np.isin(codes, wanted)
        return mine

    return mask


def plottable(topic: Topic) -> list[str]:
    """The attributes that can be drawn as lines."""
    return [one.name for one in topic.attributes if one.kind in ("float", "int", "bool")]


def chart(folder: Path, topic: Topic, attribute: str, grid: Grid, mask: Mask) -> dict[str, Any]:
    """Lines of an attribute: for each pixel of the grid the least and greatest value of each source."""
    if attribute not in plottable(topic):
        raise UsageError(f"'{attribute}' of topic '{topic.name}' cannot be drawn as a line")
    deadline = time.monotonic() + SECONDS
    lines: dict[str, Line] = {}
    found = stored(folder, topic.name, (grid.start, grid.end))
    complete = True
    for batch in found:
        if not (complete := time.monotonic() < deadline):
            break
        for source, at, values in _by_source(topic, attribute, grid, mask, batch):
            lines.setdefault(source, Line(grid.width)).add(grid.columns(at), values)
    shown = sorted(lines, key=lambda name: (-lines[name].count, name))[:SOURCES]
    return {
        "topic": topic.name,
        "attribute": attribute,
        "unit": topic.by_name[attribute].unit,
        "total": sum(line.count for line in lines.values()),
        "sources": len(lines),
        "complete": complete,
        **_drawn(grid, {name: lines[name] for name in sorted(shown)}),
    }


class Line:
    """A source's values on a grid."""

    def __init__(self, width: int) -> None:
        self.low, self.high = np.full(width, np.inf), np.full(width, -np.inf)
        self.count = 0

    def add(self, columns: NDArray[Any], values: NDArray[Any]) -> None:
        np.minimum.at(self.low, columns, values)
        np.maximum.at(self.high, columns, values)
        self.count += len(values)


def _by_source(
    topic: Topic, attribute: str, grid: Grid, mask: Mask, batch: pa.RecordBatch
) -> Iterator[tuple[str, NDArray[Any], NDArray[Any]]]:
    try:
        batch = conform(topic, batch)
    except UsageError:  # the topic had other attributes then
        return
    at = times(batch)
    inside = (at >= grid.start) & (at < grid.end)
    if not inside.any():
        return
    if attribute not in batch.schema.names:
        return
    values = np.asarray(pc.cast(batch.column(attribute), pa.float64()).fill_null(np.nan))
    inside &= mask(batch) & np.isfinite(values)
    codes, sources = keyed(batch.column("source"), len(batch))
    codes, at, values = np.asarray(codes)[inside], at[inside], values[inside]
    names = sources.to_pylist()
    for code in np.unique(codes):
        mine = codes == code
        yield names[code], at[mine], values[mine]


def _drawn(grid: Grid, lines: dict[str, Line]) -> dict[str, Any]:
    """The columns of the grid where something was read, and the lines there."""
    used = np.zeros(grid.width, bool)
    for line in lines.values():
        used |= line.low <= line.high
    at = (grid.start + (np.flatnonzero(used) + 0.5) * grid.pixel).astype(np.int64)
    return {
        "time": at.tolist(),
        "lines": [
            {"source": name, "low": _numbers(line.low[used]), "high": _numbers(line.high[used])}
            for name, line in lines.items()
        ],
    }


def _numbers(values: Iterable[float]) -> list[float | None]:
    return [float(value) if np.isfinite(value) else None for value in values]
