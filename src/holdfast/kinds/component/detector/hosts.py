"""Moving hosts of a component: their positions over time, and distances from them.

Kernels compute distances up to a small error. Comparisons near a limit are repeated with `query.distance`,
which defines distances.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ....kernels.around import MARGIN, distances, latest_before
from ....kernels.window import by_key
from ....model.batch import AXES
from ....model.instant import Instant
from ....model.query import HERE, Index
from .knowledge import Where, rank
from .query import absolute, distance
from .rows import Ints, Mask, ReadingRows, encode_texts
from .span import Instants

COMPARED = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
"""The comparison function of each sign."""

Hosts = dict[str, tuple[Instant, Where]]
"""The latest location of each source, with its time."""


class Places(NamedTuple):
    """Locations as arrays.

    `dims` is the number of coordinates, `xs` are the coordinates. `numbers` is the index of a named place in
    `names`, or -1.
    """

    dims: Ints
    xs: NDArray[np.float64]
    numbers: Ints
    names: list[str]

    @classmethod
    def of(cls, some: Sequence[Where]) -> Places:
        """Return locations as arrays. Locations that are `None` have neither coordinates nor a name."""
        xs = np.zeros((len(some), len(AXES)))
        for i, at in enumerate(some):
            if isinstance(at, tuple):
                xs[i, : len(at)] = at
        dims = np.array([len(at) if isinstance(at, tuple) else 0 for at in some], np.int64)
        names: dict[str, int] = {}
        numbers = [names.setdefault(at, len(names)) if isinstance(at, str) else -1 for at in some]
        return cls(dims, xs, np.array(numbers, np.int64), list(names))

    @classmethod
    def of_rows(cls, rows: ReadingRows) -> Places:
        """Return the locations of readings: coordinates up to the first missing one, otherwise the named
        place."""
        batch, size = rows.batch, len(rows)
        xs, dims = np.zeros((size, len(AXES))), np.zeros(size, np.int64)
        known: Mask = np.ones(size, np.bool_)
        for axis, name in enumerate(AXES):
            if name in batch.schema.names:
                values = batch.column(name).to_numpy(zero_copy_only=False)
                known = known & (values == values)
                xs[known, axis] = values[known]
                dims[known] = axis + 1
        place = encode_texts(batch, "place")
        return cls(dims, xs, np.where(dims > 0, -1, place.codes), list(place.values))

    def take(self, rows: Ints) -> Places:
        """Return the locations with the indices `rows`."""
        return Places(self.dims[rows], self.xs[rows], self.numbers[rows], self.names)

    def at(self, i: int) -> Where:
        """Return the location with index `i`."""
        if self.dims[i]:
            return tuple(self.xs[i, : self.dims[i]].tolist())
        return self.names[self.numbers[i]] if self.numbers[i] >= 0 else None

    def after(self, first: Where) -> Places:
        """Return the locations with `first` put in front."""
        before = Places.of([first])
        names = [*self.names, *before.names]
        number = names.index(first) if isinstance(first, str) else -1
        dims, xs = np.append(before.dims, self.dims), np.concatenate((before.xs, self.xs))
        return Places(dims, xs, np.append(number, self.numbers), names)

    def far(self, others: Places) -> NDArray[np.float64]:
        """Return the distance from each location (row) to each of `others` (column), up to a relative error
        of `MARGIN`."""
        same = {name: i for i, name in enumerate(others.names)}
        table = np.array([*(same.get(name, -1) for name in self.names), -1])
        found = np.empty(len(self.dims) * len(others.dims))
        distances(found, self.dims, self.xs, table[self.numbers], *others[:3])
        return found.reshape(len(self.dims), len(others.dims))


@dataclass(frozen=True)
class MovingHost:
    """A source that moves: from `times[i]` on, it is at location `i` of `places`."""

    name: str
    times: Ints
    places: Places

    def at(self, now: Instant) -> Where:
        """Return the location at an instant, which must not be before the first move."""
        return self.places.at(int(np.searchsorted(self.times, now, "right")) - 1)

    @property
    def is_known(self) -> bool:
        """Whether every location of the host is known."""
        return bool(((self.places.dims > 0) | (self.places.numbers >= 0)).all())

    def columns(self, at: Ints) -> dict[str, pa.Array]:
        """Return the locations at instants as columns of events."""
        places = self.places.take(np.searchsorted(self.times, at, "right") - 1)
        numbers = pa.array(places.numbers, mask=places.dims > 0)
        found = {"place": pa.array(places.names, pa.string()).take(numbers)}
        for axis, name in enumerate(AXES[: int(places.dims.max(initial=0))]):
            found[name] = pa.array(places.xs[:, axis], mask=places.dims <= axis)
        return found if (places.dims == 0).any() else {name: found[name] for name in found if name != "place"}

    def moves(self, found: Instants) -> Ints:
        """Return the index of the last move at each instant."""
        moves = np.empty(len(found.at), np.int64)
        latest_before(*found, self.times, moves)
        return moves

    def around(self, index: Index, others: Places) -> HostDistances:
        """Return the distances of `others` from `index`, a location relative to the host, after each move."""
        if index == HERE:
            return HostDistances(self.places, others)
        centres = [absolute(index, self.places.at(i)) for i in range(len(self.times))]
        return HostDistances(Places.of(centres), others)


@dataclass(frozen=True)
class HostDistances:
    """Distances of `others` from the host, with a row for each move of the host.

    The distances in `far` are approximate. Comparisons are as exact as `query.distance`.
    """

    centres: Places
    others: Places

    @cached_property
    def far(self) -> NDArray[np.float64]:
        """Distances up to a relative error of `MARGIN`; infinite if a pair has no distance."""
        return self.centres.far(self.others)

    def _exactly(self, move: int, other: int) -> float:
        return distance(self.centres.at(move), self.others.at(other))

    def compare(self, sign: str, limit: float) -> Mask:
        """Return a mask of the locations that satisfy a comparison with `limit`, with a row for each move.

        Pairs without a distance never satisfy a comparison.
        """
        inside, about = self.far < limit * (1 - MARGIN), self.far <= limit * (1 + MARGIN)
        dims = self.centres.dims[:, None]  # with these a pair has a distance, even if it exceeds all floats
        comparable = (self.far < np.inf) | ((dims == self.others.dims) & (dims > 0))
        found: Mask = inside if sign in ("<", "<=") else ~about & comparable
        for move, other in np.argwhere(inside != about).tolist():
            found[move, other] = COMPARED[sign](self._exactly(move, other), limit)
        return found

    def tell_apart(self, moves: Ints) -> None:
        """Replace approximate distances by exact ones, after `moves`, where several locations are about
        equally far."""
        for move in moves.tolist():
            (there,) = np.nonzero(self.far[move] < np.inf)
            order = there[np.argsort(self.far[move, there])]
            near = np.diff(self.far[move, order]) <= MARGIN * self.far[move, order[1:]]
            for other in order[np.append(near, False) | np.append(False, near)].tolist():
                self.far[move, other] = self._exactly(move, other)


def update_hosts(known: Hosts, rows: ReadingRows) -> list[MovingHost]:
    """Return the hosts with their moves in a step, sorted by name. Update `known`, the last position of each
    host."""
    sources, places = encode_texts(rows.batch, "source"), Places.of_rows(rows)
    order = np.argsort(rows.times, kind="stable")
    starts, grouped = np.zeros(len(sources.values) + 1, np.int64), np.empty(len(rows), np.int64)
    by_key(sources.codes[order], starts, grouped)
    found = {name: MovingHost(name, np.array([at]), Places.of([spot])) for name, (at, spot) in known.items()}
    for i, name in enumerate(sources.values):
        mine = order[grouped[starts[i] : starts[i + 1]]]
        mine, times = _least(mine, rows.times[mine], places)
        last = np.append(times[1:] != times[:-1], True)[: len(times)]
        if name in known and len(times):
            last &= times >= known[name][0]
            same = times == known[name][0]
            last[same] &= rank(places.at(mine[same][-1])) <= rank(known[name][1]) if same.any() else False
        if last.any():
            moves, moved = times[last], places.take(mine[last])
            before, known[name] = known.get(name), (int(moves[-1]), moved.at(-1))
            if before is not None and before[0] < moves[0]:  # its position before the step comes first
                moves, moved = np.append(before[0], moves), moved.after(before[1])
            found[name] = MovingHost(name, moves, moved)
    return [found[name] for name in sorted(found)]


def _least(rows: Ints, times: Ints, places: Places) -> tuple[Ints, Ints]:
    """Sort the rows of a source by time. Among rows of equal time, the row with the least location comes
    last."""
    if (times[1:] > times[:-1]).all():
        return rows, times
    ranks = [rank(places.at(row)) for row in rows.tolist()]
    order = sorted(range(len(ranks)), key=ranks.__getitem__, reverse=True)
    order.sort(key=times.__getitem__)
    return rows[order], times[order]


def where(kind: int, point: tuple[float, ...], text: str) -> Where:
    """Return the location that a standing (see `knowledge.standing`) describes."""
    return point if kind == 0 else text if kind == 1 else None
