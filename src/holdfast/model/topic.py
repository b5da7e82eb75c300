"""Topics: the name and the attributes of each kind of event."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

Kind = Literal["float", "int", "text", "bool"]
KINDS: tuple[Kind, ...] = get_args(Kind)

FIXED: dict[str, Kind] = {"source": "text", "place": "text", "x": "float", "y": "float", "z": "float"}
"""Attributes that every event has and that predicates and keys can name."""

RESERVED = frozenset({"time", "topic", "sequence", "location", *FIXED})
"""Names that a topic cannot use for its own attributes."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """A named, typed value of the events of a topic, with an optional unit."""

    name: str
    kind: Kind
    unit: str | None = None


@dataclass(frozen=True)
class Topic:
    """A kind of event: its name and its attributes.

    ``time``, ``source`` and location are part of every event.
    """

    name: str
    attributes: tuple[Attribute, ...] = ()

    @cached_property
    def by_name(self) -> dict[str, Attribute]:
        """Every attribute that a predicate can name, including fixed ones such as ``source``."""
        fixed = {name: Attribute(name, kind) for name, kind in FIXED.items()}
        return fixed | {a.name: a for a in self.attributes}

    def differing(self, other: Topic) -> frozenset[str]:
        """Return the attributes that another topic lacks or has with another kind or unit."""
        return frozenset(one.name for one in self.attributes if other.by_name.get(one.name) != one)
