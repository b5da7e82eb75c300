"""The walks, the relationships, and the broker of each user."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from holdfast.model.event import Event
from holdfast.model.instant import SECOND
from holdfast.model.relation import Participant, ReadingRange, Relation, Test, Tie

from ..data import locate

EDGES = (149, 158, 165, 171)
USERS = sum(EDGES)
BUDDIES = 2165
SEED = 2005
PERIOD = 30
READINGS = 480
"""Four hours with a reading every half minute give 308,640 readings; the document has 348,112."""

NEAR, FAR = 10.0, 50.0
SHIFT = 200.0
"""The greatest offset of a repeated walk, in metres."""


@dataclass(frozen=True)
class ProximityScene:
    """``places[u]`` are the positions of user u at each reading, ``home[u]`` is the edge broker of user u."""

    places: NDArray[np.float64]
    home: tuple[int, ...]
    pairs: tuple[tuple[int, int], ...]

    @classmethod
    def draw(cls, data: Path | None) -> ProximityScene:
        """Draw walks, brokers and relationships with the fixed seed."""
        chance = random.Random(SEED)
        walks = list(_walks(data))
        places = np.empty((USERS, READINGS, 2))
        for user in range(USERS):
            walk = walks[user % len(walks)]
            start = chance.randrange(len(walk))
            places[user] = np.take(walk, range(start, start + READINGS), axis=0, mode="wrap")
            if user >= len(walks):
                places[user] += [chance.uniform(-SHIFT, SHIFT) for _ in range(2)]
        home = [edge for edge, count in enumerate(EDGES) for _ in range(count)]
        chance.shuffle(home)
        pairs: dict[tuple[int, int], None] = {}
        while len(pairs) < BUDDIES:
            a, b = sorted(chance.sample(range(USERS), 2))
            pairs[a, b] = None
        return cls(places, tuple(home), tuple(pairs))

    def faster(self, times: int) -> ProximityScene:
        """Return the same walks with ``times`` as many readings."""
        at = np.arange(READINGS * times - times + 1) / times
        known = np.arange(READINGS)
        places = np.stack([[np.interp(at, known, axis) for axis in user.T] for user in self.places])
        return ProximityScene(places.transpose(0, 2, 1), self.home, self.pairs)

    def crossing(self) -> float:
        """Return the share of relationships whose users are at different brokers."""
        return sum(self.home[a] != self.home[b] for a, b in self.pairs) / len(self.pairs)

    def only(self, count: int) -> ProximityScene:
        """Return the scene with the first ``count`` relationships."""
        return ProximityScene(self.places, self.home, self.pairs[:count])

    def events(self, users: set[int], every: float) -> list[Event]:
        """Return the readings of some users, in order of time and name."""
        length = self.places.shape[1]
        step = round(every * SECOND)
        return [
            Event("User", i * step, name(user), {}, i, tuple(self.places[user, i].tolist()))
            for i in range(length)
            for user in sorted(users)
        ]


def name(user: int) -> str:
    return f"u{user:03d}"


def relation(pairs: tuple[tuple[int, int], ...]) -> Relation:
    """Return the relationship: users are near from 10 m, until they are 50 m apart."""
    named = [(name(a), name(b)) for a, b in pairs]
    users = [(Participant("User", a), Participant("User", b)) for a, b in named]
    ties = tuple(Tie(",".join(pair), both, pair=pair) for pair, both in zip(named, users, strict=True))
    tests = Test(ReadingRange(high=NEAR)), Test(ReadingRange(low=FAR))
    return Relation("distance", *tests, ties, names=("a", "b"))


def _walks(data: Path | None) -> list[NDArray[np.float64]]:
    table = pq.read_table(locate("kaist-walks/walks.parquet", data))
    walk = table.column("walk").combine_chunks().dictionary_encode().indices.to_numpy()
    points = np.stack([table.column(axis).to_numpy() for axis in ("x", "y")], axis=1).astype(float)
    return [points[walk == number] for number in range(int(walk.max()) + 1)]
