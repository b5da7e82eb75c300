"""Ties between all sources. Only pairs that come near one another are measured.

A grid finds the pairs whose members come as near as a relation requires. Such a pair is a tie while it is
active or counts a minimum duration. Afterwards it is dropped.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ...kernels.relate import NOT, approach
from .rows import RelationRows
from .ties import Bits, Floats, Ints

ROOM = 1 << 16
"""The initial number of pairs for which the kernel has room. Pairs may occur more than once until duplicates
are removed."""


@dataclass
class RoamingGrid:
    """The locations of members in a grid, for the search of neighbours.

    `width` is the size of a cell in metres. The arrays are those of the kernel `approach`, indexed by member
    number.
    """

    width: float
    heads: Ints = field(default_factory=lambda: np.full(16, -1))
    following: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    preceding: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    buckets: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    latest: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    points: Floats = field(default_factory=lambda: np.zeros((0, 3)))

    def make_room(self, members: int) -> None:
        """Extend the arrays to a number of members."""
        more = members - len(self.latest)
        if more <= 0:
            return
        self.latest = np.concatenate([self.latest, np.full(more, NOT)])
        self.points = np.concatenate([self.points, np.zeros((more, 3))])
        if 2 * members > len(self.heads):
            self.heads = np.full(1 << int(2 * members).bit_length(), -1)
            self.following, self.preceding, self.buckets = (np.full(members, -1) for _ in range(3))
            self._place(self.latest, self.points)
        else:
            for name in ("following", "preceding", "buckets"):
                setattr(self, name, np.concatenate([getattr(self, name), np.full(more, -1)]))

    def recover(self, latest: Ints, points: Floats) -> None:
        """Set the locations of members from their latest readings, after a restart."""
        self.make_room(len(latest))
        self._place(latest, points)

    def _place(self, latest: Ints, points: Floats) -> None:
        """Put the members that have reported into the grid."""
        members = np.flatnonzero(latest != NOT)
        rows = RelationRows(latest[members], members, members, points[members])
        self._find(rows, np.full(len(latest), -1), -1.0)

    def near(self, rows: RelationRows, sides: Ints, reach: float) -> Ints:
        """Return the pairs of members that come as near as ``reach`` metres while rows are processed.

        `sides` has the role of each member; -1 if both roles have one topic. The locations of members are
        updated.
        """
        found = [np.zeros((0, 2), np.int64)]
        room, start = ROOM, 0
        while start < len(rows.times):
            near, end = self._find(rows.take(slice(start, None)), sides, reach, room)
            room, start = room * (1 if end else 4), start + end
            found.append(np.unique(near, axis=0))
        return np.unique(np.concatenate(found), axis=0)

    def _find(self, rows: RelationRows, sides: Ints, reach: float, room: int = 0) -> tuple[Ints, int]:
        """Process rows with the kernel until `room` pairs are found. Return the pairs and the number of rows
        processed."""
        near = np.empty((room, 2), np.int64)
        found, end = approach(
            rows.times, rows.members, rows.values, sides, reach, self.width, self.heads, self.following,
            self.preceding, self.buckets, self.latest, self.points, near,
        )  # fmt: skip
        return near[:found], int(end)


def with_new(pairs: Ints, bits: Bits, near: Ints) -> tuple[Ints, Bits]:
    """Return the ties and their states, with new ties for the pairs in ``near`` that have none."""
    if not len(near):
        return pairs, bits
    codes, known = (some[:, 0] << 32 | some[:, 1] for some in (near, pairs))
    new = ~np.isin(codes, known)
    return np.concatenate([pairs, near[new]]), Bits.join([bits, Bits.fresh(int(new.sum()), 0)])


def without_rest(pairs: Ints, bits: Bits) -> tuple[Ints, Bits]:
    """Return the ties and their states, without ties that have no state."""
    stays = (bits.bits != 0) | (bits.began != NOT)
    return (pairs, bits) if stays.all() else (pairs[stays], bits.take(stays))
