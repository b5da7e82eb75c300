"""Who walks where, who knows whom, and who is on which broker."""

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
"""Four hours, a reading every half minute: 308,640 in all; the document has 348,112."""

NEAR, FAR = 10.0, 50.0
SHIFT = 200.0
"""So far, in metres, may a walk that is used again lie from where it was."""


@dataclass(frozen=True)
class ProximityScene:
    """``places[u]`` are the positions of user u at every reading; ``home[u]`` is the edge broker."""

    places: NDArray[np.float64]
    home: tuple[int, ...]
    pairs: tuple[tuple[int, int], ...]

    @classmethod
    def draw(cls, data: Path | None) -> ProximityScene:
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
        """The same ways, read so many times as often."""
        at = np.arange(READINGS * times - times + 1) / times
        known = np.arange(READINGS)
        places = np.stack(
            [[np.interp(at, known, axis) for axis in user.T] for user in self.places]
        ).transpose(0, 2, 1)
        return ProximityScene(places, self.home, self.pairs)

    def crossing(self) -> float:
        """The share of relationships whose users are on different brokers."""
        return sum(self.home[a] != self.home[b] for a, b in self.pairs) / len(self.pairs)

    def only(self, count: int) -> ProximityScene:
        """Some of the relationships."""
        return ProximityScene(self.places, self.home, self.pairs[:count])

    def events(self, users: set[int], every: float) -> list[Event]:
        """The readings of some users, in order of time; of one instant by name."""
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
    """Two are near from 10 m on, until they are 50 m apart."""
    named = [(name(a), name(b)) for a, b in pairs]
    ties = tuple(
        Tie(f"{a},{b}", (Participant("User", a), Participant("User", b)), pair=(a, b)) for a, b in named
    )
    return Relation(
        "distance", Test(ReadingRange(high=NEAR)), Test(ReadingRange(low=FAR)), ties, names=("a", "b")
    )


def _walks(data: Path | None) -> list[NDArray[np.float64]]:
    table = pq.read_table(locate("kaist-walks/walks.parquet", data))
    walk = table.column("walk").combine_chunks().dictionary_encode().indices.to_numpy()
    points = np.stack([table.column(axis).to_numpy() for axis in ("x", "y")], axis=1).astype(float)
    return [points[walk == number] for number in range(int(walk.max()) + 1)]
