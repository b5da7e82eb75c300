"""Ties between all sources that come near one another: only those that do are looked at.

A grid finds the pairs that come as near as a relationship wants; they are ties while something is known of
them, and are forgotten when nothing holds.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ...kernels.relate import NOT, approach
from .rows import Rows
from .ties import Bits, Floats, Ints

ROOM = 1 << 16
"""How many pairs the kernel may find before they are made distinct."""


@dataclass
class Grid:
    """Where members are, for those who look for others near them."""

    width: float
    heads: Ints = field(default_factory=lambda: np.full(16, -1))
    following: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    preceding: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    buckets: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    latest: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    points: Floats = field(default_factory=lambda: np.zeros((0, 3)))

    def make_room(self, members: int) -> None:
        """Let there be so many members."""
        more = members - len(self.latest)
        if more <= 0:
            return
        self.latest = np.concatenate([self.latest, np.full(more, NOT)])
        self.points = np.concatenate([self.points, np.zeros((more, 3))])
        if 2 * members > len(self.heads):
            self.heads = np.full(1 << int(2 * members).bit_length(), -1)
            self.following, self.preceding, self.buckets = (np.full(members, -1) for _ in range(3))
            known = np.flatnonzero(self.latest != NOT)
            self._find(Rows(self.latest[known], known, known, self.points[known]), np.full(members, -1), -1.0)
        else:
            for name in ("following", "preceding", "buckets"):
                setattr(self, name, np.concatenate([getattr(self, name), np.full(more, -1)]))

    def recover(self, latest: Ints, points: Floats) -> None:
        """Let members be where they were."""
        self.make_room(len(latest))
        heard = np.flatnonzero(latest != NOT)
        self._find(Rows(latest[heard], heard, heard, points[heard]), np.full(len(latest), -1), -1.0)

    def near(self, rows: Rows, sides: Ints, reach: float) -> Ints:
        """The pairs of members that come as near as ``reach``, each once, while rows are taken."""
        found = [np.zeros((0, 2), np.int64)]
        room, start = ROOM, 0
        while start < len(rows.times):
            near, end = self._find(rows.take(slice(start, None)), sides, reach, room)
            room, start = room * (1 if end else 4), start + end
            found.append(np.unique(near, axis=0))
        return np.unique(np.concatenate(found), axis=0)

    def _find(self, rows: Rows, sides: Ints, reach: float, room: int = 0) -> tuple[Ints, int]:
        near = np.empty((room, 2), np.int64)
        found, end = approach(
            rows.times, rows.members, rows.values, sides, reach, self.width, self.heads, self.following,
            self.preceding, self.buckets, self.latest, self.points, near,
        )  # fmt: skip
        return near[:found], int(end)


def with_new(pairs: Ints, bits: Bits, near: Ints) -> tuple[Ints, Bits]:
    """The ties that are known, and those that come near and are not."""
    if not len(near):
        return pairs, bits
    new = ~_among(near, pairs)
    return np.concatenate([pairs, near[new]]), Bits.joined([bits, Bits.fresh(int(new.sum()), 0)])


def _among(some: Ints, others: Ints) -> NDArray[np.bool_]:
    mine, theirs = (pairs[:, 0] << 32 | pairs[:, 1] for pairs in (some, others))
    return np.isin(mine, theirs)


def without_rest(pairs: Ints, bits: Bits) -> tuple[Ints, Bits]:
    """The ties of which something must be remembered."""
    stays = (bits.bits != 0) | (bits.began != NOT)
    return (pairs, bits) if stays.all() else (pairs[stays], bits.take(stays))
