"""Ties and their state in flat arrays, as the kernel requires them.

The order of fields is the order of the kernel's arguments in `kernels/relate.py`, and the order in snapshots.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...kernels.relate import NOT

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TieLayout:
    """The members of each tie, with scale and alternative, and the ties of each member.

    Tie `t` has the entries from `starts[t]` up to `starts[t + 1]`. Member `m` has the ties
    `touches[touch_starts[m]:touch_starts[m + 1]]`.
    """

    starts: Ints
    entries: Ints
    scales: Floats
    reciprocal: NDArray[np.bool_]
    choices: Ints
    touch_starts: Ints
    touches: Ints

    @property
    def size(self) -> int:
        """The number of ties."""
        return len(self.starts) - 1

    @classmethod
    def of(cls, ties: Sequence[Sequence[tuple[int, float, bool, int]]], members: int) -> TieLayout:
        """Return the layout of ties, given as lists of (member, scale, reciprocal, alternative)."""
        flat = [entry for tie in ties for entry in tie]
        columns = zip(*flat, strict=True) if flat else ((), (), (), ())
        types = (np.int64, np.float64, np.bool_, np.int64)
        arrays: list[Any] = [np.array(column, type) for column, type in zip(columns, types, strict=True)]
        return cls._index(members, np.cumsum([0, *map(len, ties)]).astype(np.int64), *arrays)

    @classmethod
    def of_pairs(cls, pairs: Ints, members: int) -> TieLayout:
        """Return the layout of ties with two members each."""
        flat, zeros = pairs.reshape(-1), np.zeros(pairs.size, np.int64)
        starts = np.arange(0, len(flat) + 1, 2)
        return cls._index(members, starts, flat, np.ones(len(flat)), zeros.astype(np.bool_), zeros)

    @classmethod
    def _index(cls, members: int, starts: Ints, entries: Ints, *columns: Any) -> TieLayout:
        """Return the layout with the ties of each member; ``columns`` are the fields after ``entries``."""
        scales, reciprocal, choices = columns
        owner = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        order = np.argsort(entries, kind="stable")
        touched = np.searchsorted(entries[order], np.arange(members + 1))
        return cls(starts, entries, scales, reciprocal, choices, touched, owner[order])


class Bits(NamedTuple):
    """The state of each tie, in columns.

    ``bits`` is 1 for an active tie, or has the current alternative. The columns ``began…`` describe a test
    that counts its minimum duration, the columns ``since…`` the reading that started the tie.
    """

    bits: Ints
    began: Ints
    began_by: Ints
    began_number: Ints
    since: Ints
    since_by: Ints
    since_number: Ints
    since_value: Floats
    measured: Floats
    looked: Ints

    @classmethod
    def fresh(cls, count: int, rest: int) -> Bits:
        """Return the state of new ties; ``rest`` is the bit of an inactive tie."""
        initial = (rest, NOT, 0, 0, NOT, 0, 0, np.nan, np.nan, 0)
        return cls(*(np.full(count, value) for value in initial))

    def take(self, which: NDArray[np.intp] | NDArray[np.bool_]) -> Bits:
        """Return the state of the selected ties."""
        return Bits(*(column[which] for column in self))  # type: ignore[arg-type]

    @classmethod
    def join(cls, parts: Iterable[Bits]) -> Bits:
        """Concatenate the states of ties."""
        return cls(*map(np.concatenate, zip(*parts, strict=True)))


class TieMembers(NamedTuple):
    """The latest reading of each member, in columns."""

    latest: Ints
    points: Floats
    numbers: Ints
    stamps: Ints

    @classmethod
    def empty(cls, count: int) -> TieMembers:
        """Return the columns for members without readings."""
        zero = np.zeros(count, np.int64)
        return cls(np.full(count, NOT), np.zeros((count, 4)), zero.copy(), zero.copy())

    def with_room(self, count: int) -> TieMembers:
        """Return a copy with room for ``count`` members."""
        more = TieMembers.empty(count - len(self.latest))
        return TieMembers(*(np.concatenate(pair) for pair in zip(self, more, strict=True)))
