"""Positions of nodes, computed by rules or read from files, and measured link qualities."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError, UsageError
from ...model.space import Point

Link = tuple[int, int]
"""The index of the sender and the index of the receiver in the list of nodes."""

ATTEMPTS = 1_000
"""The number of random placements that `uniform` tries."""


@dataclass(frozen=True)
class Topology:
    """The names of nodes with their positions in metres, and measured link qualities."""

    names: tuple[str, ...]
    positions: tuple[Point, ...]
    columns: int | None = None
    """The number of columns of a full grid that is numbered row by row, which ID-based routing requires
    [D52]; ``None`` for other topologies.
    """
    quality: Mapping[Link, float] | None = None
    """The measured share of frames received on each link; ``None`` if it was not measured."""
    located: bool = True
    """Whether the positions are real. Otherwise they only serve to draw a map."""

    def __len__(self) -> int:
        return len(self.names)


def grid(rows: int, columns: int, spacing: float) -> Topology:
    """Place nodes on a grid, named by number from 0, row by row, ``spacing`` metres apart."""
    if rows < 1 or columns < 1 or not (spacing > 0 and math.isfinite(spacing)):
        size = f"{rows} rows and {columns} columns, {spacing} m apart"
        raise UsageError(f"a grid of {size}: each must be above 0")
    places = tuple((column * spacing, row * spacing) for row in range(rows) for column in range(columns))
    return Topology(tuple(map(str, range(len(places)))), places, columns=columns)


def uniform(count: int, width: float, height: float, reach: float, seed: int) -> Topology:
    """Place nodes at random positions in a rectangle. Positions are drawn again until all nodes are connected
    over ``reach`` metres.
    """
    if count < 1 or not min(width, height, reach) > 0:
        size = f"{width} m × {height} m with a reach of {reach} m"
        raise UsageError(f"{count} nodes in {size}: each must be above 0")
    draw = np.random.default_rng(seed)
    for _ in range(ATTEMPTS):
        places = draw.random((count, 2)) * (width, height)
        if components(places, reach) == 1:
            return Topology(tuple(map(str, range(count))), tuple((float(x), float(y)) for x, y in places))
    near = (count - 1) * math.pi * reach**2 / (width * height)
    enough = math.log(count) + 3  # neighbours that a connected random network needs: ln n and a margin
    raise UsageError(
        f"of {ATTEMPTS:,} placements of {count} nodes in {width:g} m × {height:g} m none was connected over "
        f"{reach:g} m: a node has about {near:.1f} neighbours then, and about {enough:.0f} are "
        "needed.  Take more nodes, a smaller area or a longer reach."
    )


def components(positions: NDArray[np.float64], reach: float) -> int:
    """Return the number of connected components if nodes within ``reach`` metres are linked."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import KDTree

    pairs = KDTree(positions).query_pairs(reach, output_type="ndarray")
    size = len(positions)
    edges = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(size, size))
    return int(connected_components(edges, directed=False, return_labels=False))


def from_csv(nodes: Path, links: Path | None = None) -> Topology:
    """Read a table ``node,x,y`` (and ``z``) in metres and, if measured, a table
    ``sender,receiver,quality``.
    """
    places: dict[str, Point] = {}
    for where, row in _table(nodes, ("node", "x", "y"), optional=("z",)):
        name = _name(where, row["node"])
        if name in places:
            raise InputError(f"{where}: node '{name}' stands there already; a node has one row")
        places[name] = tuple(_number(where, axis, row[axis]) for axis in ("x", "y", "z") if axis in row)
    if not places:
        raise InputError(f"{nodes}: there is no node; write one row for each, below node,x,y")
    quality = None if links is None else _qualities(places, _links(links), strict=True)
    return Topology(tuple(places), tuple(places.values()), quality=quality)


def from_links(links: Path) -> Topology:
    """Read a measured table ``sender,receiver,quality`` of nodes without positions. Maps draw the nodes on a
    circle.
    """
    rows = list(_links(links))
    names = list(dict.fromkeys(name for where, *ends, _ in rows for name in (_name(where, e) for e in ends)))
    if not names:
        raise InputError(f"{links}: there is no link; write one row for each, below sender,receiver,quality")
    angles = (math.tau * i / len(names) for i in range(len(names)))
    round_about = tuple((math.cos(angle), math.sin(angle)) for angle in angles)
    return Topology(tuple(names), round_about, quality=_qualities(names, rows, strict=True), located=False)


def intel_lab(locations: Path, connectivity: Path | None = None) -> Topology:
    """Read the motes of the Intel Berkeley lab: ``mote_locs.txt`` and, if measured, ``connectivity.txt``.

    Mote 0 of the connectivity file, the gateway, has no position and is ignored, as is a line without a
    quality.
    """
    places = {}
    for where, row in _words(locations, 3, heading="moteid"):
        places[row[0]] = (_number(where, "x", row[1]), _number(where, "y", row[2]))
    if connectivity is None:
        return Topology(tuple(places), tuple(places.values()))
    links = [(where, row) for where, row in _words(connectivity, 2, heading=None) if len(row) > 2]
    rows = ((where, row[0], row[1], _number(where, "quality", row[2])) for where, row in links)
    return Topology(tuple(places), tuple(places.values()), quality=_qualities(places, rows, strict=False))


_COMPASS = (
    "N", "NNE", "NE", "ENE", "E", "ESE", "SE", "SSE", "S", "SSW", "SW", "WSW", "W", "WNW", "NW", "NNW",
)  # fmt: skip


def redwood(locations: Path, tree: str = "interior") -> Topology:
    """Read one of the two redwoods of Sonoma: motes by height, side of the trunk and distance from it."""
    rows = list(_words(locations, 5, heading="ID"))
    trees = sorted({row[4] for _, row in rows})
    if tree not in trees:
        raise UsageError(f"{locations}: there is no tree '{tree}', only {' and '.join(trees)}")
    places = {row[0]: _around_trunk(where, row) for where, row in rows if row[4] == tree}
    return Topology(tuple(places), tuple(places.values()))


def _around_trunk(where: str, row: list[str]) -> Point:
    if row[2] not in _COMPASS:
        raise InputError(f"{where}: '{row[2]}' is no direction; expected one of {', '.join(_COMPASS)}")
    angle = math.tau * _COMPASS.index(row[2]) / len(_COMPASS)
    distance, height = _number(where, "distance", row[3]), _number(where, "height", row[1])
    return (distance * math.sin(angle), distance * math.cos(angle), height)


_LinkRow = tuple[str, str, str, float]  # file and line, sender, receiver, quality


def _links(path: Path) -> Iterator[_LinkRow]:
    for where, row in _table(path, ("sender", "receiver", "quality")):
        yield where, row["sender"], row["receiver"], _number(where, "quality", row["quality"])


def _qualities(places: Iterable[str], rows: Iterable[_LinkRow], *, strict: bool) -> dict[Link, float]:
    """Return the quality of the links between known nodes. If ``strict``, an unknown node is an error;
    otherwise its links are ignored.
    """
    index = {name: i for i, name in enumerate(places)}
    found: dict[Link, float] = {}
    for where, sender, receiver, quality in rows:
        unknown = [name for name in (sender, receiver) if name not in index]
        if unknown and strict:
            raise InputError(f"{where}: there is no node '{unknown[0]}' among the positions")
        if not 0 <= quality <= 1:
            raise InputError(f"{where}: a quality of {quality:g}; expected a share between 0 and 1")
        if not unknown and sender != receiver and quality > 0:
            found[index[sender], index[receiver]] = quality
    return found


def _table(
    path: Path, required: tuple[str, ...], optional: tuple[str, ...] = ()
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the rows of a CSV file by column, each with its file and line for error messages."""
    with _open(path) as lines:
        reader = csv.reader(lines)
        columns = [name.strip() for name in next(reader, [])]
        missing = [name for name in required if name not in columns]
        if missing:
            expected = ",".join((*required, *(f"[{name}]" for name in optional)))
            raise InputError(f"{path}:1: no column '{missing[0]}'; the first line should say {expected}")
        for row in reader:
            if not any(cell.strip() for cell in row):
                continue
            where = f"{path}:{reader.line_num}"
            if len(row) != len(columns):
                raise InputError(f"{where}: {len(row)} values for {len(columns)} columns")
            yield where, {name: cell.strip() for name, cell in zip(columns, row, strict=True)}


def _words(path: Path, least: int, heading: str | None) -> Iterator[tuple[str, list[str]]]:
    """Yield the blank-separated fields of each line of a file, with file and line for error messages."""
    with _open(path) as lines:
        for number, line in enumerate(lines, 1):
            words = line.split()
            if not words or (number == 1 and words[0] == heading):
                continue
            if len(words) < least:
                raise InputError(f"{path}:{number}: {len(words)} values; expected {least}")
            yield f"{path}:{number}", words


def _open(path: Path) -> TextIO:
    try:
        return path.open(encoding="utf-8", newline="")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error


def _name(where: str, text: str) -> str:
    if not text:
        raise InputError(f"{where}: a node needs a name")
    return text


def _number(where: str, what: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{where}: {what} is '{text}'; expected a number")
    return value
