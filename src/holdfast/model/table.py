"""Tables: values by key, with which predicates compare readings."""

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
    """A declared column of a table. Its kind is one of those of attributes, or ``duration``."""

    name: str
    kind: str
    unit: str | None = None


@dataclass(frozen=True)
class Table:
    """The values of a table by key. Tables with equal content are equal.

    ``data[i]`` is the Arrow array of ``columns[i]``. Keys of several values are joined to one text. The
    attributes ``by`` of an event are its key in the table. Predicates name a column as ``Limits.high``.
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
        """The attributes that the row of an event adds to the event, such as ``Limits.high``."""
        return tuple(Attribute(f"{self.name}.{a.name}", a.kind, a.unit) for a in self.columns)

    def __len__(self) -> int:
        return len(self.keys[0])


def digest_of(arrays: Any) -> str:
    """Return a digest of columns. Equal columns have equal digests."""
    found = blake2b(digest_size=16)
    for array in arrays:
        found.update(f"{array.type} {len(array)} {array.offset}".encode())
        for buffer in array.buffers():
            found.update(b"-" if buffer is None else f"{buffer.size} ".encode())
            found.update(b"" if buffer is None else buffer)
    return found.hexdigest()
