"""The statement of overlaps: its class, parser and printer. A new clause needs a line in each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

from ...errors import DefinitionError, Place
from ...lang.nodes import (
    as_token,
    as_tree,
    coordinate_of,
    duration,
    label_of,
    number_of,
    parts_of,
    place,
    word_of,
)
from ...lang.ops import DerivedStatement
from ...lang.show import label, show_coordinate
from ...model.allen import Allen
from ...model.instant import Duration, show_duration
from ...model.unit import UNITS


@dataclass(frozen=True, slots=True)
class DefineOverlap(DerivedStatement):
    """The statement ``correlate Danger = Smoke, DoorOpen overlapping within 30 s, 50 m per room``.

    It relates conditions that are active at the same time, or whose intervals are in one of Allen's
    relations. ``near`` is in metres, ``within`` in microseconds.
    """

    name: str
    over: tuple[str, ...]
    relation: Allen
    within: Duration | None = None
    near: float | None = None
    per: tuple[str, ...] = ()
    at: Place | None = field(default=None, compare=False, repr=False)

    @property
    def upstreams(self) -> tuple[str, ...]:
        return self.over


def read_overlap(parts: list[Any]) -> DefineOverlap:
    """Parse ``correlate … = Smoke, DoorOpen overlapping …``. Without a name, the overlap is named after its
    conditions."""
    name, aligned, first, second, level = parts
    words = [as_token(part) for part in parts_of(aligned)]
    relation = _RELATIONS.get(aligned.data) or str(words.pop(1))
    over = tuple(map(word_of, words))
    extents = [node for node in (first, second) if node is not None]
    return DefineOverlap(
        "_".join(over) if name is None else label_of(name),
        over,
        cast("Allen", relation),
        *_distances(extents),
        () if level is None else tuple(word_of(as_token(part)) for part in parts_of(level)),
        place(words[0] if name is None else name),
    )


_RELATIONS = {"overlapping": "overlapping", "within_other": "during"}


def _distances(nodes: list[Any]) -> tuple[Duration | None, float | None]:
    """Return the maximal distance in time (microseconds) and in space (metres)."""
    within, near = None, None
    for node in nodes:
        unit = number_of(as_tree(node).children).unit
        is_distance = unit is not None and UNITS[unit].dimension == UNITS["m"].dimension
        if (near if is_distance else within) is not None:
            raise DefinitionError("'within' has one duration and one distance", place(node))
        if is_distance:
            near = coordinate_of(node)
        else:
            within = duration(node, above_zero=True)
    return within, near


def show_align(statement: DefineOverlap) -> str:
    """Return ``correlate Danger = Smoke, DoorOpen overlapping within 30 s, 50 m per room`` as text."""
    names = list(map(label, statement.over))
    relation = statement.relation
    text = f"{', '.join(names)} overlapping" if relation == "overlapping" else f" {relation} ".join(names)
    extents = [] if statement.within is None else [show_duration(statement.within)]
    extents += [] if statement.near is None else [f"{show_coordinate(statement.near)} m"]
    words = [f"correlate {label(statement.name)} = {text}"]
    words += [f"within {', '.join(extents)}"] if extents else []
    words += [f"per {', '.join(map(label, statement.per))}"] if statement.per else []
    return " ".join(words)
