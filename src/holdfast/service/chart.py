"""Charts of stored readings: for each source, the minimum and maximum in every pixel column."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..errors import UsageError
from ..lang.condition import Checked
from ..lang.expressions.batch import encode_keys
from ..model.batch import conform, times
from ..model.instant import Instant
from ..model.topic import Topic
from ..plan.compile import operators
from .history import read_batches

SOURCES = 12
"""How many lines a chart shows: those of the sources with most readings."""
SECONDS = 8.0
"""How long reading may take; a chart shows what was read until then."""

Mask = Callable[[pa.RecordBatch], NDArray[Any]]


class PixelGrid(NamedTuple):
    """The pixel columns of a chart: a period, and the number of columns that it is divided into."""

    start: Instant
    end: Instant
    width: int

    @property
    def pixel(self) -> float:
        return (self.end - self.start) / self.width

    def columns(self, at: NDArray[Any]) -> NDArray[Any]:
        return np.minimum(((at - self.start) / self.pixel).astype(np.int64), self.width - 1)


def scope_mask(checked: Checked, subscription: str, topic: str, scope: str | None) -> Mask:
    """Return a function that selects the rows of a batch that are in one scope of a condition."""
    for operator in operators(checked):
        if subscription in operator.subscriptions and topic in operator.topics:
            break
    else:
        raise UsageError(f"'{subscription}' does not listen to '{topic}'")

    def mask(batch: pa.RecordBatch) -> NDArray[Any]:
        if scope is None or operator.keyed is None:
            return np.ones(len(batch), bool)
        codes, texts = operator.keys(topic, batch)
        chosen = operator.presentation.label or (lambda text: text)
        names = texts.to_pylist() if isinstance(texts, pa.Array) else texts
        wanted = [i for i, text in enumerate(names) if text is not None and chosen(text) == scope]
        selected: NDArray[Any] = np.isin(codes, wanted)
        return selected

    return mask


def plottable(topic: Topic) -> list[str]:
    """Return the names of the attributes that a chart can draw as lines: numbers and booleans."""
    return [one.name for one in topic.attributes if one.kind in ("float", "int", "bool")]


def chart(folder: Path, topic: Topic, attribute: str, grid: PixelGrid, mask: Mask) -> dict[str, Any]:
    """Return the lines of an attribute for a chart.

    A line has the minimum and maximum of one source in each pixel column.
    """
    if attribute not in plottable(topic):
        raise UsageError(f"'{attribute}' of topic '{topic.name}' cannot be drawn as a line")
    deadline = time.monotonic() + SECONDS
    lines: dict[str, SourceLine] = {}
    found = read_batches(folder, topic.name, (grid.start, grid.end))
    complete = True
    for batch in found:
        if not (complete := time.monotonic() < deadline):
            break
        for source, at, values in _by_source(topic, attribute, grid, mask, batch):
            lines.setdefault(source, SourceLine(grid.width)).add(grid.columns(at), values)
    chosen = sorted(lines, key=lambda name: (-lines[name].count, name))[:SOURCES]
    return {
        "topic": topic.name,
        "attribute": attribute,
        "unit": topic.by_name[attribute].unit,
        "total": sum(line.count for line in lines.values()),
        "sources": len(lines),
        "complete": complete,
        **_to_json(grid, {name: lines[name] for name in sorted(chosen)}),
    }


class SourceLine:
    """The minimum and maximum of one source's values in each pixel column."""

    def __init__(self, width: int) -> None:
        self.low, self.high = np.full(width, np.inf), np.full(width, -np.inf)
        self.count = 0

    def add(self, columns: NDArray[Any], values: NDArray[Any]) -> None:
        np.minimum.at(self.low, columns, values)
        np.maximum.at(self.high, columns, values)
        self.count += len(values)


def _by_source(
    topic: Topic, attribute: str, grid: PixelGrid, mask: Mask, batch: pa.RecordBatch
) -> Iterator[tuple[str, NDArray[Any], NDArray[Any]]]:
    try:
        batch = conform(topic, batch)
    except UsageError:  # the topic had other attributes at that time
        return
    at = times(batch)
    inside = (at >= grid.start) & (at < grid.end)
    if not inside.any():
        return
    if attribute not in batch.schema.names:
        return
    values = np.asarray(pc.cast(batch.column(attribute), pa.float64()).fill_null(np.nan))
    inside &= mask(batch) & np.isfinite(values)
    codes, sources = encode_keys(batch.column("source"), len(batch))
    codes, at, values = np.asarray(codes)[inside], at[inside], values[inside]
    names = sources.to_pylist()
    for code in np.unique(codes):
        selected = codes == code
        yield names[code], at[selected], values[selected]


def _to_json(grid: PixelGrid, lines: dict[str, SourceLine]) -> dict[str, Any]:
    """Return the pixel columns that have readings, with their times and the values of each line there."""
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
