"""Ties in flat arrays, as the kernel wants them, and what is known of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from ...kernels.relate import NOT

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Layout:
    """Which members each tie has, with scale and alternative, and which ties each member has."""

    starts: Ints
    entries: Ints
    scales: Floats
    reciprocal: NDArray[np.bool_]
    choices: Ints
    touch_starts: Ints
    touches: Ints

    @property
    def size(self) -> int:
        return len(self.starts) - 1

    @classmethod
    def of(cls, ties: Sequence[Sequence[tuple[int, float, bool, int]]], members: int) -> Layout:
        """Of ties as lists of (member, scale, reciprocal, alternative)."""
        flat = [entry for tie in ties for entry in tie]
        member, scale, reciprocal, choice = zip(*flat, strict=True) if flat else ((), (), (), ())
        starts = np.cumsum([0, *map(len, ties)])
        return cls._indexed(
            np.asarray(starts, np.int64),
            np.array(member, np.int64),
            np.array(scale, np.float64),
            np.array(reciprocal, np.bool_),
            np.array(choice, np.int64),
            members,
        )

    @classmethod
    def of_pairs(cls, pairs: Ints, members: int) -> Layout:
        """Of ties that have two members each."""
        flat = pairs.reshape(-1)
        return cls._indexed(
            np.arange(0, len(flat) + 1, 2),
            flat,
            np.ones(len(flat)),
            np.zeros(len(flat), np.bool_),
            np.zeros(len(flat), np.int64),
            members,
        )

    @classmethod
    def _indexed(
        cls,
        starts: Ints,
        entries: Ints,
        scales: Floats,
        reciprocal: NDArray[np.bool_],
        choices: Ints,
        members: int,
    ) -> Layout:
        owner = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        order = np.argsort(entries, kind="stable")
        touched = np.searchsorted(entries[order], np.arange(members + 1))
        return cls(starts, entries, scales, reciprocal, choices, touched, owner[order])


@dataclass
class Bits:
    """What is known of each tie: whether it holds (of the best, which), since when a test has been true,
    and the reading with which it started."""

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
        """Of ties of which nothing is known; ``rest`` is the bit of one that does not hold."""
        none = np.full(count, NOT)
        zero = np.zeros(count, np.int64)
        return cls(
            np.full(count, rest, np.int64), none.copy(), zero.copy(), zero.copy(), none.copy(), zero.copy(),
            zero.copy(), np.full(count, np.nan), np.full(count, np.nan), zero.copy(),
        )  # fmt: skip

    @property
    def columns(self) -> list[NDArray[np.generic]]:
        return [getattr(self, field.name) for field in fields(self)]

    def take(self, which: NDArray[np.intp] | NDArray[np.bool_]) -> Bits:
        return Bits(*(column[which] for column in self.columns))  # type: ignore[arg-type]

    @classmethod
    def joined(cls, some: Iterable[Bits]) -> Bits:
        return cls(*map(np.concatenate, zip(*(one.columns for one in some), strict=True)))


@dataclass
class Members:
    """The latest reading of each member."""

    latest: Ints
    points: Floats
    numbers: Ints
    stamps: Ints

    @classmethod
    def unheard(cls, count: int) -> Members:
        zero = np.zeros(count, np.int64)
        return cls(np.full(count, NOT), np.zeros((count, 4)), zero.copy(), zero.copy())

    @property
    def columns(self) -> list[NDArray[np.generic]]:
        return [self.latest, self.points, self.numbers, self.stamps]

    def grown(self, count: int) -> Members:
        """With room for so many."""
        more = Members.unheard(count - len(self.latest))
        return Members(*(np.concatenate(pair) for pair in zip(self.columns, more.columns, strict=True)))
