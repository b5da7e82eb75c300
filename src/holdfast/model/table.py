"""Tables: values by key that predicates compare readings with."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Any

from .topic import Attribute

DURATION = "duration"
DEFAULT = "*"
"""The key of the row for all keys without a row."""


@dataclass(frozen=True, slots=True)
class Column:
    """A declared column: of a kind that attributes have, or a ``duration``."""

    name: str
    kind: str
    unit: str | None = None


@dataclass(frozen=True)
class Table:
    """The values of a table by key. Two tables are equal if they have the same content.

    ``data[i]`` is the Arrow array of ``columns[i]``. Keys of several values are joined to one text. An event
    is looked up by its attributes ``by``. Predicates name a column as ``Limits.high``.
    """

    name: str
    by: tuple[str, ...]
    columns: tuple[Attribute, ...]
    keys: tuple[Any, ...] = field(repr=False, compare=False)
    """Arrow arrays of text: the parts of the key of each row."""
    data: tuple[Any, ...] = field(repr=False, compare=False)
    digest: str = ""
    durations: frozenset[str] = frozenset()
    """The columns with durations, in microseconds."""

    @cached_property
    def attributes(self) -> tuple[Attribute, ...]:
        """The attributes that the row of an event adds to the event."""
        return tuple(Attribute(f"{self.name}.{a.name}", a.kind, a.unit) for a in self.columns)

    def __len__(self) -> int:
        return len(self.keys[0])


def digest_of(arrays: Any) -> str:
    """A digest of columns, equal for equal columns."""
    found = blake2b(digest_size=16)
    for array in arrays:
        found.update(f"{array.type} {len(array)} {array.offset}".encode())
        for buffer in array.buffers():
            found.update(b"-" if buffer is None else f"{buffer.size} ".encode())
            found.update(b"" if buffer is None else buffer)
    return found.hexdigest()
