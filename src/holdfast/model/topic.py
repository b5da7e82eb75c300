"""Topics: what kind of thing is published, and which attributes it carries."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

Kind = Literal["float", "int", "text", "bool"]
KINDS: tuple[Kind, ...] = get_args(Kind)

FIXED: dict[str, Kind] = {"source": "text", "place": "text", "x": "float", "y": "float", "z": "float"}
"""Attributes that every event has and that predicates and keys may name."""

RESERVED = frozenset({"time", "topic", "sequence", "location", *FIXED})
"""Names that a topic cannot give to an attribute of its own."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """A named, typed value that events of a topic carry; a unit is optional."""

    name: str
    kind: Kind
    unit: str | None = None


@dataclass(frozen=True)
class Topic:
    """A name and its attributes.  ``time``, ``source`` and location are part of every event."""

    name: str
    attributes: tuple[Attribute, ...] = ()

    @cached_property
    def by_name(self) -> dict[str, Attribute]:
        """Every attribute that a predicate may name, the fixed ones included."""
        fixed = {name: Attribute(name, kind) for name, kind in FIXED.items()}
        return fixed | {a.name: a for a in self.attributes}

    def differing(self, other: Topic) -> frozenset[str]:
        """The attributes that have another kind or unit in another topic, or are none there."""
        return frozenset(one.name for one in self.attributes if other.by_name.get(one.name) != one)
