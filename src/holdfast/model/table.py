"""Tables: values for each key, which predicates compare readings with."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Any

from .topic import Attribute

DURATION = "duration"
DEFAULT = "*"
"""The key of the row that stands for all that have none."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column as it is declared: of a kind that attributes have, or a ``duration``."""

    name: str
    kind: str
    unit: str | None = None


@dataclass(frozen=True)
class Table:
    """``columns[i]`` of the row of a key is ``data[i]`` there, an Arrow array; keys of several values are
    their texts, and an event is looked up by its attributes ``by``.

    A column goes by the name ``Limits.high``.  Two tables are equal if they hold the same.
    """

    name: str
    by: tuple[str, ...]
    columns: tuple[Attribute, ...]
    keys: tuple[Any, ...] = field(repr=False, compare=False)
    """Arrow arrays of text: the values of the key of each row."""
    data: tuple[Any, ...] = field(repr=False, compare=False)
    digest: str = ""
    durations: frozenset[str] = frozenset()
    """The columns that have lengths of time, in microseconds."""

    @cached_property
    def attributes(self) -> tuple[Attribute, ...]:
        """What an event has because of its row."""
        return tuple(Attribute(f"{self.name}.{a.name}", a.kind, a.unit) for a in self.columns)

    def __len__(self) -> int:
        return len(self.keys[0])


def digest_of(arrays: Any) -> str:
    """Equal for equal columns."""
    found = blake2b(digest_size=16)
    for array in arrays:
        found.update(f"{array.type} {len(array)} {array.offset}".encode())
        for buffer in array.buffers():
            found.update(b"-" if buffer is None else f"{buffer.size} ".encode())
            found.update(b"" if buffer is None else buffer)
    return found.hexdigest()
