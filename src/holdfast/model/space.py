"""Points, shapes, regions and their nesting.

A region has a name. It contains events by their coordinates (its shape), by the name of their place, or by
their source, and all events of regions inside it. Shapes are closed: the boundary belongs to them. A shape of
fewer dimensions than a point ignores the further coordinates. A point of fewer dimensions than the shape is
not inside.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import UsageError, did_you_mean

Point = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Rectangle:
    """An interval, rectangle or box, of one to three dimensions, between two opposite corners."""

    low: Point
    high: Point


@dataclass(frozen=True, slots=True)
class Circle:
    """All points within ``radius`` of the centre: an interval, disc or ball."""

    centre: Point
    radius: float


@dataclass(frozen=True, slots=True)
class Polygon:
    """A simple polygon in the plane, given by its corners."""

    corners: tuple[Point, ...]


Shape = Rectangle | Circle | Polygon


def dimensions(shape: Shape) -> int:
    """Return the number of coordinates of a shape."""
    match shape:
        case Rectangle(low, _):
            return len(low)
        case Circle(centre, _):
            return len(centre)
        case Polygon():
            return 2


def contains(shape: Shape, point: Sequence[float] | None) -> bool:
    """Whether a closed shape contains a point. A missing point is in no shape."""
    if point is None or len(point) < dimensions(shape):
        return False
    return bool(inside(shape, [np.float64(c) for c in point]))


def inside(shape: Shape, axes: Sequence[Any]) -> NDArray[np.bool_]:
    """Return the mask of the points in a closed shape. Points are given as one array for each axis."""
    match shape:
        case Rectangle(low, high):
            sides = [(lo <= axis) & (axis <= hi) for lo, hi, axis in zip(low, high, axes, strict=False)]
            return np.logical_and.reduce(sides)
        case Circle(centre, radius):
            with np.errstate(over="ignore"):  # what is too far to square is outside
                squares = [(axis - c) * (axis - c) for c, axis in zip(centre, axes, strict=False)]
                return np.asarray(sum(squares) <= radius * radius)
        case Polygon():
            import shapely

            x, y = axes[:2]
            known = np.isfinite(x) & np.isfinite(y)
            return known & shapely.intersects_xy(
                geometry(shape), np.where(known, x, 0.0), np.where(known, y, 0.0)
            )


def geometry(shape: Shape) -> Any:
    """Return a polygon or rectangle as a shapely geometry. A circle has no such form."""
    import shapely

    match shape:
        case Polygon(corners):
            return shapely.Polygon(corners)
        case Rectangle(low, high):
            return shapely.box(low[0], low[1], high[0], high[1])
        case Circle():
            raise AssertionError("circles are compared exactly, by distance")


# --- how two shapes lie to one another ---------------------------------------------------------

Relation = Literal["disjoint", "inside", "contains", "equal", "overlaps"]
_MIRROR: Mapping[Relation, Relation] = {"inside": "contains", "contains": "inside"}


def relation(a: Shape, b: Shape) -> Relation:
    """Return the relation of shape ``a`` to shape ``b``. Shapes that only touch are disjoint."""
    a, b = _on_a_line(a), _on_a_line(b)
    if a == b:
        return "equal"
    if dimensions(a) < dimensions(b):
        mirrored = relation(b, a)
        return _MIRROR.get(mirrored, mirrored)
    if dimensions(a) > dimensions(b):
        flat = relation(_footprint(a, dimensions(b)), b)
        return {"equal": "inside", "contains": "overlaps"}.get(flat, flat)  # type: ignore[return-value]
    match a, b:
        case Rectangle(), Rectangle():
            return _boxes(a, b)
        case Circle(), Circle():
            return _balls(a, b)
        case Circle(), _:
            return _ball_and(a, b)
        case _, Circle():
            mirrored = _ball_and(b, a)
            return _MIRROR.get(mirrored, mirrored)
        case _:
            return _polygons(a, b)


def _on_a_line(shape: Shape) -> Shape:
    """Return a circle of one dimension as an interval. Other shapes are unchanged."""
    match shape:
        case Circle((centre,), radius):
            return Rectangle((centre - radius,), (centre + radius,))
        case _:
            return shape


def _footprint(shape: Shape, axes: int) -> Shape:
    match shape:
        case Rectangle(low, high):
            return Rectangle(low[:axes], high[:axes])
        case Circle(centre, radius):
            return Circle(centre[:axes], radius)
        case Polygon(corners):
            xs = [c[0] for c in corners]
            return Rectangle((min(xs),), (max(xs),))


def _boxes(a: Rectangle, b: Rectangle) -> Relation:
    sides = list(zip(a.low, a.high, b.low, b.high, strict=True))
    if any(_apart(al, ah, bl, bh) for al, ah, bl, bh in sides):
        return "disjoint"
    if all(bl <= al and ah <= bh for al, ah, bl, bh in sides):
        return "inside"
    if all(al <= bl and bh <= ah for al, ah, bl, bh in sides):
        return "contains"
    return "overlaps"


def _apart(al: float, ah: float, bl: float, bh: float) -> bool:
    """Whether two intervals are disjoint. Intervals that touch are disjoint if both have a length."""
    touching = ah == bl or bh == al
    return ah < bl or bh < al or (touching and al < ah and bl < bh)


def _balls(a: Circle, b: Circle) -> Relation:
    apart = math.dist(a.centre, b.centre)
    if apart >= a.radius + b.radius:
        return "disjoint"
    if apart + a.radius <= b.radius:
        return "inside"
    if apart + b.radius <= a.radius:
        return "contains"
    return "overlaps"


def _ball_and(ball: Circle, other: Shape) -> Relation:
    if isinstance(other, Rectangle):
        gaps = [
            max(lo - c, 0.0, c - hi) for c, lo, hi in zip(ball.centre, other.low, other.high, strict=True)
        ]
        reach = [max(c - lo, hi - c) for c, lo, hi in zip(ball.centre, other.low, other.high, strict=True)]
        margin = min(
            min(c - lo, hi - c) for c, lo, hi in zip(ball.centre, other.low, other.high, strict=True)
        )
        near, far = math.hypot(*gaps), math.hypot(*reach)
    else:
        import shapely

        assert isinstance(other, Polygon)
        polygon, centre = geometry(other), shapely.Point(ball.centre)
        near = polygon.distance(centre)
        far = max(math.dist(ball.centre, corner) for corner in other.corners)
        margin = polygon.exterior.distance(centre) if near == 0 else -1.0
    if near >= ball.radius:
        return "disjoint"
    if margin >= ball.radius:
        return "inside"
    if far <= ball.radius:
        return "contains"
    return "overlaps"


def _polygons(a: Shape, b: Shape) -> Relation:
    first, second = geometry(a), geometry(b)
    if not first.intersects(second) or first.touches(second):
        return "disjoint"
    if first.equals(second):
        return "equal"
    if second.covers(first):
        return "inside"
    return "contains" if first.covers(second) else "overlaps"


# --- named regions -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Region:
    """A named part of the world, given by its shape, by the sources in it, or by its name alone."""

    name: str
    shape: Shape | None = None
    parent: str | None = None
    level: str | None = None
    sources: tuple[str, ...] = ()


@dataclass(frozen=True)
class Gazetteer:
    """The named regions of a world and their nesting, such as room in floor in building."""

    regions: tuple[Region, ...] = ()

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for region in self.regions:
            if region.name in seen:
                raise UsageError(f"region '{region.name}' is declared twice")
            seen.add(region.name)
        for region in self.regions:
            if region.name in self.levels:
                raise UsageError(f"'{region.name}' names both a region and a level of the gazetteer")
            self._check_parent(region)

    def _check_parent(self, region: Region) -> None:
        for ancestor in self.ancestors(region.name):
            if region.shape is None or ancestor.shape is None:
                continue
            if relation(region.shape, ancestor.shape) not in ("inside", "equal"):
                raise UsageError(
                    f"region '{region.name}' is declared to be in '{ancestor.name}', "
                    "but its shape is not inside that shape"
                )

    @cached_property
    def by_name(self) -> dict[str, Region]:
        return {region.name: region for region in self.regions}

    @cached_property
    def levels(self) -> dict[str, tuple[Region, ...]]:
        """The regions of each level, such as ``rooms``, ``floors``, ``building``."""
        found: dict[str, list[Region]] = {}
        for region in self.regions:
            if region.level is not None:
                found.setdefault(region.level, []).append(region)
        return {level: tuple(regions) for level, regions in found.items()}

    def ancestors(self, name: str) -> list[Region]:
        """Return the regions that contain the named one by declaration, nearest first."""
        path: list[Region] = []
        child, parent = name, self.by_name[name].parent
        while parent is not None:
            if parent not in self.by_name:
                hint = did_you_mean(parent, self.by_name)
                raise UsageError(
                    f"region '{child}' is in '{parent}', which is not declared. {hint or ''}".rstrip()
                )
            if parent == name or any(parent == region.name for region in path):
                raise UsageError(f"region '{parent}' is declared to be inside itself")
            path.append(self.by_name[parent])
            child, parent = parent, self.by_name[parent].parent
        return path

    def regions_named(self, name: str) -> tuple[Region, ...] | None:
        """Return the regions of a level, or the region with that name; ``None`` if there is neither."""
        if name in self.levels:
            return self.levels[name]
        region = self.by_name.get(name)
        return None if region is None else (region,)

    @cached_property
    def innermost(self) -> tuple[Region, ...]:
        """The regions that contain no other region.

        A partial overlap raises an error that names both regions.
        """
        around = set(nest(self.regions, self).parents)
        return tuple(region for i, region in enumerate(self.regions) if i not in around)


def load_gazetteer(path: Path) -> Gazetteer:
    """Read a gazetteer file, TOML or JSON: a table for each level, an entry for each region.

    An entry is ``rooms.lab = { in = "floor-1", rectangle = [0, 0, 10, 5] }``, or has ``circle = [x, y,
    radius]``, ``polygon = [[x, y], …]``, ``sources = ["s1", "s2"]``, or only the name.
    """
    try:
        raw = path.read_text(encoding="utf-8")
        tables = (
            json.loads(raw, object_pairs_hook=_distinct) if path.suffix == ".json" else tomllib.loads(raw)
        )
    except OSError as error:
        raise UsageError(f"cannot read the gazetteer {path}: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{path} is not a gazetteer: {error}") from error
    if not isinstance(tables, dict) or not all(isinstance(t, dict) for t in tables.values()):
        raise UsageError(f"{path} is not a gazetteer: expected a table for each level, such as [rooms]")
    try:
        return Gazetteer(
            tuple(
                _region(level, name, entry)
                for level, entries in tables.items()
                for name, entry in entries.items()
            )
        )
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        twice = next(name for name, _ in pairs if [n for n, _ in pairs].count(name) > 1)
        raise ValueError(f"'{twice}' is written twice")
    return table


_ENTRY = ("in", "rectangle", "circle", "polygon", "sources")


def _region(level: str, name: str, entry: Any) -> Region:
    if not isinstance(entry, dict):
        raise UsageError(f"region '{name}' must be a table such as {{ in = \"floor-1\" }}")
    for word in entry:
        if word not in _ENTRY:
            hint = did_you_mean(word, _ENTRY) or f"An entry may have {', '.join(_ENTRY)}."
            raise UsageError(f"region '{name}' has an unknown entry '{word}'. {hint}")
    shapes = [word for word in ("rectangle", "circle", "polygon") if word in entry]
    if len(shapes) > 1:
        raise UsageError(f"region '{name}' has two shapes: {' and '.join(shapes)}")
    parent, sources = entry.get("in"), entry.get("sources", [])
    if not (parent is None or isinstance(parent, str)):
        raise UsageError(f"region '{name}': 'in' must be the name of a region, not {parent!r}")
    if not isinstance(sources, list):
        raise UsageError(f"region '{name}': 'sources' must be a list such as [\"s1\", \"s2\"]")
    try:
        shape = _shape(shapes[0], entry[shapes[0]]) if shapes else None
    except (TypeError, ValueError) as error:
        raise UsageError(f"region '{name}': {error}") from error
    return Region(name, shape, parent, level, tuple(map(str, sources)))


def _shape(word: str, numbers: Any) -> Shape:
    if not isinstance(numbers, list):
        raise ValueError(f"a {word} is written as a list of numbers")
    if word == "polygon":
        return polygon(tuple(float(c) for c in corner) for corner in numbers)
    values = tuple(float(n) for n in numbers)
    if word == "circle":
        return circle(values[:-1], values[-1] if values else math.nan)
    half = len(values) // 2
    return rectangle(values[:half], values[half:])


def rectangle(low: Point, high: Point) -> Rectangle:
    """Return a rectangle from two opposite corners of one to three coordinates.

    Raises ``ValueError`` if they are invalid.
    """
    if not 1 <= len(low) == len(high) <= 3:
        raise ValueError("a rectangle needs its low and its high corner, of one to three coordinates each")
    if any(not (lo <= hi and math.isfinite(hi - lo)) for lo, hi in zip(low, high, strict=True)):
        raise ValueError(f"a rectangle's low corner must not be above its high one: {low} {high}")
    return Rectangle(low, high)


def circle(centre: Point, radius: float) -> Circle:
    """Return a circle from a centre of one to three coordinates and a positive radius.

    Raises ``ValueError`` if invalid.
    """
    if not 1 <= len(centre) <= 3 or not all(math.isfinite(c) for c in centre):
        raise ValueError("a circle needs a centre of one to three coordinates, then its radius")
    if not 0 < radius < math.inf:
        raise ValueError(f"a circle's radius must be above zero, not {radius:g}")
    return Circle(centre, radius)


def polygon(corners: Iterable[Point]) -> Polygon:
    """Return a polygon from three or more corners in the plane. Raises ``ValueError`` if sides cross."""
    import shapely

    shape = Polygon(tuple(corners))
    if len(shape.corners) < 3 or any(len(corner) != 2 for corner in shape.corners):
        raise ValueError("a polygon needs three or more corners of two coordinates each")
    if not all(math.isfinite(c) for corner in shape.corners for c in corner):
        raise ValueError("a polygon's corners must be finite numbers")
    if not geometry(shape).is_valid:
        raise ValueError(f"not a simple polygon: {shapely.is_valid_reason(geometry(shape))}")
    return shape


# --- scopes ------------------------------------------------------------------------------------


class PartialOverlap(UsageError):
    """Raised when two scopes of one subscription overlap and neither contains the other. [F9]"""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(
            f"the scopes '{first}' and '{second}' overlap in part; "
            "scopes of one subscription must be disjoint or nested"
        )


@dataclass(frozen=True)
class Forest:
    """Regions that are disjoint or nested, as trees. [F8, F9, F10]

    ``parents[i]`` is the smallest region around region ``i``, or -1. ``places`` and ``sources`` map each name
    of the gazetteer and each listed source to its region, or -1. ``inner`` has shapes of other regions of the
    gazetteer, each with the region without a shape that contains it.
    """

    regions: tuple[Region, ...]
    parents: tuple[int, ...]
    places: tuple[tuple[str, int], ...] = ()
    sources: tuple[tuple[str, int], ...] = ()
    inner: tuple[tuple[Shape, int], ...] = field(default=(), repr=False)  # what a digest has follows from it

    @cached_property
    def chains(self) -> tuple[tuple[int, ...], ...]:
        """The chain of each region: the region, then the regions that contain it, outermost last."""
        return tuple(self._chain(i) for i in range(len(self.regions)))

    def _chain(self, i: int) -> tuple[int, ...]:
        return (i, *self._chain(self.parents[i])) if i >= 0 else ()

    @cached_property
    def depth(self) -> int:
        """The number of levels of nesting: the length of the longest chain."""
        return max(map(len, self.chains))

    @cached_property
    def innermost_first(self) -> tuple[tuple[Shape, int], ...]:
        """The shapes with their regions. Deeper regions come first, then the order of declaration counts."""
        shaped = [(region.shape, i) for i, region in enumerate(self.regions) if region.shape is not None]
        return tuple(sorted([*shaped, *self.inner], key=lambda found: -len(self.chains[found[1]])))

    @cached_property
    def by_place(self) -> dict[str, int]:
        return dict(self.places)

    @cached_property
    def by_source(self) -> dict[str, int]:
        return dict(self.sources)

    def locate(self, place: str | None, source: str, point: Sequence[float] | None) -> int:
        """Return the smallest region that contains an event, or -1.

        A place of the gazetteer determines it, else a listed source, else the coordinates. A point on a
        boundary that two regions share is in the region that was declared first.
        """
        if place is not None and place in self.by_place:
            return self.by_place[place]
        if source in self.by_source:
            return self.by_source[source]
        for shape, i in self.innermost_first:
            if contains(shape, point):
                return i
        return -1


def nest(regions: Sequence[Region], gazetteer: Gazetteer) -> Forest:
    """Return regions arranged by containment. A partial overlap raises an error that names both regions."""
    around = _around(regions, gazetteer)
    parents = tuple(max(ring, key=lambda j: len(around[j]), default=-1) for ring in around)
    index = {region.name: i for i, region in enumerate(regions)}
    places: dict[str, int] = {}
    sources: dict[str, int] = {}
    inner: list[tuple[Shape, int]] = []
    for region in gazetteer.regions:
        names = [region.name, *(r.name for r in gazetteer.ancestors(region.name))]
        at = places[region.name] = next((index[name] for name in names if name in index), -1)
        if region.shape is not None and at >= 0 and regions[at].shape is None:
            inner.append((region.shape, at))
        for source in region.sources:
            known = sources.get(source, -1)
            if known < 0 or (at >= 0 and len(around[at]) > len(around[known])):
                sources[source] = at
    return Forest(tuple(regions), parents, tuple(places.items()), tuple(sources.items()), tuple(inner))


def _around(regions: Sequence[Region], gazetteer: Gazetteer) -> list[list[int]]:
    """Return for each region the numbers of the regions that contain it, which are nested themselves."""
    members = {r.name: _members(r, gazetteer) for r in regions}
    around: list[list[int]] = [[] for _ in regions]
    for i, a in enumerate(regions):  # every pair: a few thousand regions take some seconds
        for j in range(i + 1, len(regions)):
            how = _regions(a, regions[j], members, gazetteer)
            if how == "overlaps":
                raise PartialOverlap(a.name, regions[j].name)
            if how in ("inside", "equal"):
                around[i].append(j)
            elif how == "contains":
                around[j].append(i)
    for ring in around:  # whatever contains a region must itself be nested
        for i, j in combinations(ring, 2):
            if i not in around[j] and j not in around[i]:
                raise PartialOverlap(regions[i].name, regions[j].name)
    return around


def _members(region: Region, gazetteer: Gazetteer) -> frozenset[str]:
    inner = (
        r.sources
        for r in gazetteer.regions
        if r.sources and any(a.name == region.name for a in gazetteer.ancestors(r.name))
    )
    return frozenset(region.sources).union(*inner)


def _regions(a: Region, b: Region, members: Mapping[str, frozenset[str]], gazetteer: Gazetteer) -> Relation:
    """Return the relation of two regions, by declaration, by sources and by shape."""
    if any(r.name == b.name for r in gazetteer.ancestors(a.name)):
        return "inside"
    if any(r.name == a.name for r in gazetteer.ancestors(b.name)):
        return "contains"
    found: set[Relation] = set()
    if members[a.name] and members[b.name]:
        found.add(_sets(members[a.name], members[b.name]))
    if a.shape is not None and b.shape is not None:
        found.add(relation(a.shape, b.shape))
    found.discard("disjoint")
    if len(found) > 1:
        found.discard("equal")
    if len(found) > 1:
        return "overlaps"
    return found.pop() if found else "disjoint"


def _sets(a: frozenset[str], b: frozenset[str]) -> Relation:
    if not a & b:
        return "disjoint"
    if a == b:
        return "equal"
    return "inside" if a < b else "contains" if b < a else "overlaps"
